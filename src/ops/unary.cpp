// Implementations of unary functions that need more than one kernel.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"

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

}  // namespace TT_NS::impl
