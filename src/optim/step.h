// One step of an optimizer: what its two forms share, at once (step.cpp) and as an operator that
// modes and graphs see (step_operator.cpp).
#pragma once

#include "ext/mirror.h"
#include "ops/impl.h"
#include "optim/captured.h"

#include <string.h>

namespace TT_NS {

// The tensors that a step makes before it computes: new or relaid states, and copies of tensors
// that do not have their parameter's layout.
struct Change {
  int64_t param;
  int32_t state;     // its number; -1: the tensor is no state
  TensorRef tensor;  // the state, or a temporary copy
  TensorRef target;  // the parameter to which tensor, a dense copy, is written back
  TensorRef on_cpu;  // of a state on a device of the application: its new values
};

// The items of one device and their units.
struct Batch {
  Device device;
  int64_t first, n_items, units, elements;

  // Device of its kernel: devices of the application have none.
  Device place() const { return device.type == TT_EXT ? kCpuDevice : device; }
};

// run takes the gradients, checks, gathers the items of each device (allocating what is missing),
// launches, and commits. Nothing changes before the launch.
class Step {
 public:
  explicit Step(Optimizer& o, StepGate* gate = nullptr) : o_(o), gate_(gate) {}
  void run();

 private:
  void take_grads();
  void check();
  void mirror();
  const Tensor* here(const Tensor* t) { return TT_UNLIKELY(mirrors_) ? mirrors_->on_cpu(t) : t; }
  void gather(Batch* b);
  void set_arrays(int64_t i, uint32_t states, OptimItem* item);
  const Tensor* add_state(int64_t i, int k, const Tensor* old, const Tensor& like);
  OptimPlan plan_of(const Batch& b) const;
  void compute();
  TT_COLD void compute_on_several();
  void update();
  void commit() noexcept;
  TT_COLD void make_states(StepCounter& counter, const Batch& b);
  TT_COLD void run_as_operator();

  Optimizer& o_;
  StepGate* gate_;
  TensorList grads_;  // of each parameter at the start of the step; empty: none
  SmallVec<Change, 2> changes_;
  SmallVec<Batch, 2> batches_;
  ExtMirrors* mirrors_ = nullptr;  // copies of what is on devices of the application; NULL: none is
};

// Returns t itself, or a copy in the layout and the dtype of `like`.
TensorRef with_layout(const Tensor& t, const Tensor& like);
// A launch for the items of a batch.
OptimPlan plan_of_items(const OptimClass& cls, const Batch& b, const OptimItem* items);
void count_step(const OptimClass& cls, const ParamGroup& g, ParamSlot& s) noexcept;
inline bool same_numbers(const ParamSlot& a, const ParamSlot& b) {
  return memcmp(a.number, b.number, sizeof a.number) == 0;
}

}  // namespace TT_NS
