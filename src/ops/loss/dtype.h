// The dtype of a loss: 16-bit operands are computed in float32 and rounded once, so differences of
// close numbers are computed in float32 or float64.
#pragma once

#include "ops/gen/ops.h"
#include "ops/elementwise.h"

namespace TT_NS::impl {

struct LossDtype {
  Dtype out, compute;

  explicit LossDtype(Dtype common) : out(common), compute(common) {
    if (common == Dtype::kF16 || common == Dtype::kBF16) compute = Dtype::kF32;
  }
  TensorRef cast(const Tensor& t) const {
    return t.dtype == compute ? TensorRef::share(&t) : op::to_dtype(t, compute);
  }
  TensorRef weighted(TensorRef loss, const Tensor* weight) const {
    return weight ? op::mul(*loss, *cast(*weight)) : std::move(loss);
  }
  TensorRef rounded(TensorRef loss) const {
    return loss->dtype == out ? std::move(loss) : op::to_dtype(*loss, out);
  }
  TensorRef reduced(TensorRef loss, int64_t reduction) const {
    if (reduction == kReductionNone) return rounded(std::move(loss));
    return rounded(reduction == kReductionSum ? op::sum(*loss) : op::mean(*loss));
  }
};

// Fails unless the operands promote to a floating dtype, and returns it.
inline LossDtype floating_loss(const Tensor& input, const Tensor& target) {
  const Dtype common = result_type({input, target});
  if (!is_float(common))
    fail_arg(TT_NOT_IMPLEMENTED, "input", "input is {}, target is {}: must be floating",
             fmt(input.dtype), fmt(target.dtype));
  return LossDtype(common);
}

}  // namespace TT_NS::impl
