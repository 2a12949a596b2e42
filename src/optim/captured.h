// Steps of optimizers and schedulers as nodes of graphs: the objects that the operators optim_step
// and schedule_step take, and their form in files.
#pragma once

#include "graph/text_form.h"
#include "optim/scheduler.h"

namespace TT_NS {

// A parameter of a step that runs as an operator.
struct CountedParam {
  int64_t group, param;             // positions in the optimizer
  const char* data;                 // its memory when the step was recorded
  uint32_t states;                  // bit k: it has state k
  uint32_t fresh;                   // bit k: state k was made for the captured step
  const char* state[kOptimStates];  // their memory when the step was recorded
};
// Decides in each run of a graph whether a step is taken, as a GradScaler does.
struct StepGate : Object {
  // Returns whether the step is left out. at_end: asked after the step, whether it was.
  bool (*is_closed)(StepGate& gate, bool at_end);
};
// The argument of optim_step besides tensors. Each run takes the factors from the optimizer and
// counts its step there, so that schedules continue in a captured step.
struct StepCounter : Object {
  OptimizerRef optimizer;
  int64_t n_params;  // of the optimizer when the step was recorded
  SmallVec<CountedParam, 4> params;
  SmallVec<double, kMaxValues> values;  // of the groups when the step was recorded
  Ref<StepGate> gate;                   // empty: each run takes the step
  bool skips(bool at_end) const {
    return TT_UNLIKELY(bool(gate)) && gate->is_closed(*gate.get(), at_end);
  }
};
Ref<StepCounter> new_counter(Optimizer& o);
// Fails, naming what has changed, unless is_current_step is true or only parameters were added.
void check_current(const StepCounter& c);
[[noreturn]] TT_COLD void fail_other_memory(int64_t param);
// Bit k: a parameter with such values and steps has state k. Sets the factors of a kernel's item.
uint32_t states_of(const OptimClass& cls, const double* value, const ParamSlot& slot,
                   OptimItem* item);

// The argument of schedule_step.
struct ScheduledStep : Object {
  SchedulerRef scheduler;
};
Ref<ScheduledStep> new_scheduled_step(Scheduler& s);
const Scheduler* scheduler_of(const Object& o);  // NULL: it is no ScheduledStep
bool is_scaled_step(const Object& o);            // a ScaledStep (grad_scaler.h)
bool is_same_scaled_step(const Object& a, const Object& b);
// Whether both are steps of one optimizer over the same parameters and states, or of one
// scheduler: the SameObject of graphs.
bool is_same_step(const Object& a, const Object& b);
// Whether a recorded step still holds: the optimizer has the same parameters and states in the same
// memory (loading its state gives it other memory), and no value of a group was set that runs do
// not read or that needs other states.
bool is_current_step(const Object& object);

// The classes by name; NULL: there is none.
const OptimClass* find_common_class(Span<const char> name);  // of rules.cpp
const OptimClass* find_rare_class(Span<const char> name);    // of rare_rules.cpp
const OptimClass* find_matrix_class(Span<const char> name);  // of matrix_rules.cpp
const SchedulerClass* find_schedule(Span<const char> name);
// Schedulers that are made of others.
enum class Composition : uint8_t { kNone, kSequential, kChained };
const SchedulerClass* find_composition(Span<const char> name);
Composition composition_of(const Scheduler& s);
// Whether the constructor of a scheduler allows the numbers that were read from a file.
bool is_valid(const Scheduler& s);
// Whether a scheduler calls the application.
inline bool calls_application(const Scheduler& s) { return s.lambda.fn != nullptr; }

// One record a line:
//   optimizer Adam 2 1        class, parameters, groups
//   group 0 2 0x1.0p-3 …      parameters [begin, end), values, those of schedulers
//   param 0x1p+0 nan nan      steps, numbers; for each parameter of the last optimizer
//   scheduler 0 StepLR 3 4 …  optimizer, class, last epoch, steps, numbers, counts, rates of the
//                             groups, milestones, parts
//   scaler 0x1p+16 …          scale, factors, interval, steps since the scale changed
//   step 0 [0,1]              for each node optim_step: optimizer, parameters; its scaler, if any
//   scaled 0 -1               for each node of a scaler: scaler; optimizer, or -1
//   schedule 0                for each node schedule_step: scheduler
// Parameters and states are arguments of the nodes.
extern const ObjectForms step_forms;

}  // namespace TT_NS
