// Optimizer: parameters in groups, their values and states; step updates all of them in one kernel.
#pragma once

#include "optim/class.h"
#include "plan/optim_plan.h"

namespace TT_NS {

constexpr int kMaxValues = 10;
constexpr int kOptimNumbers = 2;
struct Kernel;
// Numbers of a group that schedulers keep.
enum GroupExtra { kInitialLr, kMaxLr, kMinLr, kBaseMomentum, kMaxMomentum, kSwaLr, kNumExtras };

struct ParamSlot {
  TensorRef param;
  TensorRef state[kOptimStates];
  double step = -1;    // number of steps taken; -1: none, or the class does not count them
  uint32_t fresh = 0;  // bit k: state k has no values before the next step (a capture made it)
  double number[kOptimNumbers] = {kNan, kNan};  // nan: absent
};
// The number of the step that comes next.
inline double next_step(const ParamSlot& s) { return s.step < 0 ? 1 : s.step + 1; }
struct ParamGroup {
  int64_t begin, end;        // of its parameters
  double value[kMaxValues];  // as OptimClass::values
  double extra[kNumExtras];  // nan: absent
};

// The state of a Solver. It is replaced as a whole and never changed, so others may share it.
struct SolverState {
  RefCount refs;
  void (*free)(SolverState*) noexcept;
  static void destroy(SolverState* s) noexcept { s->free(s); }
};
// One part of it: a tensor, or a number. `index` is that in a list, -1 for parts on their own.
struct StatePart {
  const char* name;
  int64_t index;
  const TensorRef* tensor;  // NULL: a number
  double number;
};

// Evaluates the loss and its gradients again.
struct Evaluation {
  TensorRef (*call)(void* with);
  void* with;
  TensorRef operator()() const { return call(with); }
};

// What a kind of optimizer does that takes all parameters as one vector and evaluates the loss
// several times in a step. Its state is named as that of parameter 0. All of it is behind
// pointers, so that programs without such an optimizer do not link it.
struct Solver {
  // Returns the first loss. If it fails, the undo log of the call restores the parameters.
  TensorRef (*step)(Optimizer& o, const Evaluation& evaluate);
  void (*check)(const Optimizer& o, TensorSpan params);  // of a group that is added
  void (*fail_step)();                                   // a step without evaluation
  // Calls see(with, name, part) for each part of the state until it returns true.
  void (*visit)(const SolverState& s,
                bool (*see)(void* with, const char* name, const StatePart& part), void* with);
  TensorRef (*state)(const SolverState& s, const char* name);  // empty: there is none
  // Sets a part by its name, such as "old_dirs.3"; NULL removes it, and from lists what follows.
  void (*set)(Optimizer& o, int64_t param, const char* name, const Tensor* value);
};

// What a kind of optimizer does that computes with operators, one parameter after another, in place
// of a kernel. All of it is behind pointers, so that programs without such an optimizer do not link
// it.
constexpr int64_t kMatrixFactors = 4;  // of a step over one parameter
struct StepCounter;
struct MatrixFactors;
struct MatrixRule {
  void (*check)(const Optimizer& o, const Tensor& param, int64_t i);  // one that is added
  Shape (*state_sizes)(const Tensor& param, int k);
  uint32_t (*states)(const Tensor& param);             // bit k: it has state k
  TensorRef (*new_state)(const Tensor& param, int k);  // of zeros
  // Updates params and states, as the operator optim_step. If it fails, the undo log of the call
  // restores them.
  void (*step)(TensorSpan params, TensorSpan grads, TensorSpan states, StepCounter& counter);
  // Sets the factors of the step whose number is `step`, on the host.
  void (*factors)(const double* value, double step, const Tensor& param, double* out);
  bool (*is_factor)(const char* value);  // whether the factors, and nothing else, depend on it
  // Updates one parameter, by operators that have the factors as tensors.
  void (*update)(const double* value, const MatrixFactors& f, const Tensor& grad, Tensor& param,
                 Tensor* const* state);
};

// A kind of optimizer. `factors` sets the item's factors and flags for a parameter whose step
// counter becomes `step` and whose numbers are `number`, and returns the bit mask of its states.
// `advance` sets the numbers that the parameter has after that step.
struct OptimClass {
  const char* name;
  OptimRule rule;
  const Kernel* kernel;  // that has the rule
  Span<const ClassValue> values;
  const char* states[kOptimStates];
  bool counts_steps;
  const char* momentum;  // name of the value that schedulers cycle; NULL: none
  uint32_t (*factors)(const double* value, double step, const double* number, OptimItem* item);
  const char* numbers[kOptimNumbers] = {};
  void (*advance)(const double* value, double step, double* number) noexcept = nullptr;
  const Solver* solver = nullptr;      // instead of rule, kernel, states and factors
  const MatrixRule* matrix = nullptr;  // instead of rule, kernel and factors
};

struct Optimizer {
  uint32_t tag;
  RefCount refs;
  const OptimClass* cls;
  double standard[kMaxValues];
  double first_state;  // initial value of state 0 as soon as a parameter is added; nan: created by
                       // the first step
  SmallVec<ParamSlot, 1> params;
  SmallVec<ParamGroup, 1> groups;
  SmallVec<OptimItem, 1> items;  // of the current step
  Ref<SolverState> solved;       // (solver) empty: no step was taken
  static void destroy(Optimizer*) noexcept;
};
using OptimizerRef = Ref<Optimizer>;

void add_param_group(Optimizer& o, TensorSpan params);
struct StepGate;
// gate (captured.h): decides in runs of a captured step whether it is taken; NULL: it always is.
void optimizer_step(Optimizer& o, StepGate* gate = nullptr);
// Evaluates the loss, then takes a step; returns the loss.
TensorRef optimizer_step(Optimizer& o, const Evaluation& evaluate);
void zero_grad(Optimizer& o, bool set_to_none);
// Whether a mode of the ctx is to see steps and clipping as operators.
bool modes_see_steps();
// Whether a graph is being captured: what its runs must repeat has to be an operator then.
inline bool is_captured() {
  const Ctx& c = ctx();
  return c.include & ~c.exclude & bit(kKeyCapture);
}
// Returns the norm of all gradients as one vector, a 0-dim tensor, and clips them to max_norm.
TensorRef clip_grad_norm(TensorSpan params, double max_norm, double norm_type,
                         bool error_if_nonfinite);
void clip_grad_value(TensorSpan params, double clip_value);
struct ScaledStep;
// Multiplies all gradients by factor. Returns whether one had an infinite or nan element. recorded:
// (grad_scaler.h) does so by an operator; NULL: directly.
bool unscale_grads(TensorSpan params, double factor, ScaledStep* recorded = nullptr);

// Returns a value by name, NULL if the class has none of that name.
double* find_value(const Optimizer& o, ParamGroup& g, const char* name);
ParamGroup& group_at(Optimizer& o, int64_t group);
double group_value(Optimizer& o, int64_t group, const char* name);
void set_group_value(Optimizer& o, int64_t group, const char* name, double value);

// The shape of state k of a parameter.
Shape state_sizes(const OptimClass& cls, const Tensor& param, int k);
// Returns a state by name, or an empty reference.
TensorRef param_state(Optimizer& o, int64_t param, const char* name);
void set_param_state(Optimizer& o, int64_t param, const char* name, const Tensor* value);

// The whole state as lists of named tensors and numbers.
constexpr int64_t kStateName = 96;  // maximum bytes of the name of a part
int64_t num_tensors(const Optimizer& o);
int64_t num_numbers(const Optimizer& o);
TensorRef tensor_at(const Optimizer& o, int64_t i, char* name, int64_t cap);
double number_at(const Optimizer& o, int64_t i, char* name, int64_t cap);
void load_tensor(Optimizer& o, const char* name, const Tensor& value);
void load_number(Optimizer& o, const char* name, double value);

}  // namespace TT_NS
