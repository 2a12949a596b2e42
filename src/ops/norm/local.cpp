// Local response normalisation.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"

namespace TT_NS::impl {

// input / (k + alpha * mean of the squares of `size` adjacent channels)^beta.
TensorRef local_response_norm(Call, const Tensor& input, int64_t size, double alpha, double beta,
                              double k) {
  if (input.ndim < 3)
    fail_arg(TT_SHAPE, "input", "input is {}: must be (N, C, …) with at least 3 dimensions",
             input.sizes());
  if (!is_float(input.dtype) && input.dtype != Dtype::kI64)
    fail_arg(TT_NOT_IMPLEMENTED, "input", "input is {}: must be floating or int64",
             fmt(input.dtype));
  if (size < 1) fail_arg(TT_INVALID_ARG, "size", "size is {}: must be at least 1", size);
  if (input.numel == 0) return TensorRef::share(&input);
  const bool narrow = input.item_size() == 2;  // rounded once, at the end
  TensorRef x = narrow ? op::to_dtype(input, Dtype::kF32) : TensorRef::share(&input);
  const int64_t channels = input.size(1);
  const int64_t image[4] = {input.size(0), 1, channels, input.numel / input.size(0) / channels};
  const int64_t border[4] = {0, 0, size / 2, (size - 1) / 2};
  TensorRef squares = op::reshape(*op::mul(*x, *x), image);
  squares = op::constant_pad_nd(*squares, border, Scalar(0));
  const int64_t window[2] = {size, 1};
  const int64_t step[2] = {1, 1};
  TensorRef mean = op::reshape(*op::avg_pool2d(*squares, window, step), input.sizes());
  TensorRef scale = op::pow(*op::add(*op::mul(*mean, Scalar(alpha)), Scalar(k)), Scalar(beta));
  TensorRef y = op::div(*x, *scale);
  return narrow ? op::to_dtype(*y, input.dtype) : std::move(y);
}

}  // namespace TT_NS::impl
