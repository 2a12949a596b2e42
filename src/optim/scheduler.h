// Scheduler: sets the learning rates of an optimizer's groups, step by step.
#pragma once

#include "optim/optimizer.h"

namespace TT_NS {

struct SchedulerClass;
constexpr int32_t kMaxSchedulerDepth = 16;  // of parts in parts

// The application's factor of a group's learning rate.
struct LrLambda {
  tt_status (*fn)(void* user, tt_ctx* ctx, int64_t epoch, int64_t group, double* factor);
  void* user;
  void (*drop)(void* user);
};

// The state of ReduceLROnPlateau.
struct Plateau {
  double best;
  int32_t flags;
  int64_t bad_epochs, cooldown;  // steps without improvement, steps to be ignored
  SmallVec<double, 1> min_lrs;   // one for all groups, or by group
};

struct Scheduler {
  uint32_t tag;
  RefCount refs;
  const SchedulerClass* cls;
  OptimizerRef optimizer;
  int64_t last_epoch, step_count;
  bool initial;                  // during the step that a constructor takes
  SmallVec<double, 1> base_lrs;  // by group, initial
  SmallVec<double, 1> last_lr;
  // Arguments; their meaning depends on the class.
  double real[4];
  int64_t count[2];
  SmallVec<int64_t, 2> milestones;
  LrLambda lambda;
  SmallVec<Ref<Scheduler>, 1> parts;
  int32_t depth;  // nesting depth of parts
  Plateau plateau;
  static void destroy(Scheduler*) noexcept;
};
using SchedulerRef = Ref<Scheduler>;

// The values that a step sets in a group.
struct Rate {
  double lr, momentum;  // momentum nan: unchanged
};
struct SchedulerClass {
  const char* name;
  // Computes the rate after step `epoch` from the current and the initial one.
  Rate (*next)(Scheduler& s, int64_t epoch, int64_t group, double lr, double base);
  // In closed form, as if all steps had been of this class.
  Rate (*closed)(Scheduler& s, int64_t epoch, int64_t group, double lr, double base);
  bool by_metric = false;  // its steps are those of scheduler_step_metric
};

SchedulerRef new_scheduler(const SchedulerClass& cls, Optimizer& o);
// Sets initial_lr of the groups, then takes the first step. Initial rates are those of s.base_lrs
// if the constructor has set them, otherwise those of the groups.
void start_scheduler(Scheduler& s, int64_t last_epoch);
void scheduler_step(Scheduler& s);
void scheduler_step_to(Scheduler& s, int64_t epoch);      // uses the closed form if there is one
void scheduler_step_metric(Scheduler& s, double metric);  // of ReduceLROnPlateau
// The same; while a graph is captured, as the operator schedule_step, which its runs repeat.
void take_scheduler_step(Scheduler& s);
void take_scheduler_step_to(Scheduler& s, int64_t epoch);
void take_scheduler_step_metric(Scheduler& s, double metric);  // fails in a capture

SchedulerRef make_lambda(Optimizer& o, const LrLambda& lambda, bool multiplicative,
                         int64_t last_epoch);

// The state as a list of named numbers.
int64_t num_numbers(const Scheduler& s);
double number_at(const Scheduler& s, int64_t i, char* name, int64_t cap);
void load_number(Scheduler& s, const char* name, double value);

}  // namespace TT_NS
