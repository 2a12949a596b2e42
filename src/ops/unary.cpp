// Implementations of unary functions that need more than one kernel.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/one_pass.h"

#include <float.h>

namespace TT_NS::impl {

TensorRef round(Call, const Tensor& self, int64_t decimals) {
  if (decimals == 0) return op::round_even(self);
  if (category(self.dtype) < 2)
    fail_arg(TT_NOT_IMPLEMENTED, "decimals", "decimals is {}, self is {}: must be 0 for integers",
             decimals, fmt(self.dtype));
  double power = 1;
  const bool up = decimals < 0;
  for (int64_t i = 0; i != decimals && i < 400 && i > -400; i += up ? -1 : 1) power *= 10;
  return up ? op::round_up(self, power) : op::round_decimals(self, power);
}

TensorRef positive(Call, const Tensor& self) {
  if (self.dtype == Dtype::kBool)
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is bool: convert it to a number first");
  return TensorRef::share(&self);
}

// The largest finite number of a floating dtype, or of the parts of a complex one.
static double largest_of(Dtype d) {
  if (d == Dtype::kF16) return 65504;
  if (d == Dtype::kBF16) return 0x1.fep127;
  return real_of(d) == Dtype::kF64 ? DBL_MAX : double(FLT_MAX);
}
constexpr Kernel kNanToNum = chain_kernel("nan_to_num");

// Whether nan is replaced before infinity: the second step must not replace what the first one
// wrote, and a number for nan may be infinite.
static bool replaces_nan_first(double above, double below) {
  return above != above || below != below;
}

TensorRef replace_not_finite(Call, const Tensor& self, double nan, double posinf, double neginf) {
  TensorRef out = new_like(self, self.dtype);
  ChainPlan plan;
  const int of_nan = replaces_nan_first(posinf, neginf) ? 0 : 1;
  const int of_inf = 1 - of_nan;
  plan.kernel[of_nan] = &kernel_replace_nan;
  plan.kernel[of_inf] = &kernel_replace_inf;
  set_step(&plan.step[0], nullptr, {&self});
  set_step(&plan.step[1], out.get(), {out.get()});
  plan.step[of_nan].param[0] = Scalar(nan);
  plan.step[of_inf].param[0] = Scalar(posinf);
  plan.step[of_inf].param[1] = Scalar(neginf);
  launch(kNanToNum, kCpuDevice, &plan, self.numel);
  return out;
}

TensorRef nan_to_num(Call, const Tensor& self, Opt<double> nan, Opt<double> posinf,
                     Opt<double> neginf) {
  if (category(self.dtype) < 2) return op::clone(self);
  const double largest = largest_of(self.dtype);
  const double value = nan.or_else(0);
  const double above = posinf.or_else(largest);
  const double below = neginf.or_else(-largest);
  if (self.numel && self.dense() && records_one_pass(self))
    return op::replace_not_finite(self, value, above, below);
  if (replaces_nan_first(above, below))
    return op::replace_inf(*op::replace_nan(self, value), above, below);
  return op::replace_nan(*op::replace_inf(self, above, below), value);
}

}  // namespace TT_NS::impl
