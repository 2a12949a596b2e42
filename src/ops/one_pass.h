// One pass over elements of the CPU in place of the operators that a function is composed of, with
// the same results: modes and recorders of launches see the operators.
#pragma once

#include "ops/impl.h"

namespace TT_NS {

inline bool takes_one_pass(const Tensor& t) {
  return is_alone(t, kKeyCpu) && !(ctx().watched & kWatchWork);
}

template <class Plan, void (*compute)(const Plan&)>
int32_t run_one_pass(const void* plan, int64_t, int64_t) noexcept {
  compute(*static_cast<const Plan*>(plan));
  return TT_OK;
}
// A kernel with one unit, all of the work.
template <class Plan, void (*compute)(const Plan&)>
constexpr Kernel one_pass_kernel(const char* name) {
  constexpr CpuKernel fn = run_one_pass<Plan, compute>;
  return {{fn, fn, fn}, kNoDevice, sizeof(Plan), name};
}

// Calls f with a value of the type of d: f32, f64, i32 or i64.
template <class F> void with_real_type(Dtype d, const F& f) {
  switch (d) {
    case Dtype::kF32: return f(float());
    case Dtype::kF64: return f(double());
    case Dtype::kI32: return f(int32_t());
    default: return f(int64_t());
  }
}

}  // namespace TT_NS
