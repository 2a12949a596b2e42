// Activations that check arguments or combine several operators.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::impl {

static void check_bounds(double min_val, double max_val) {
  if (min_val > max_val)
    fail_arg(TT_INVALID_ARG, "min_val", "min_val is {}, max_val is {}: must not be greater",
             min_val, max_val);
}
TensorRef hardtanh(Call, const Tensor& input, double min_val, double max_val) {
  check_bounds(min_val, max_val);
  return op::native_hardtanh(input, min_val, max_val);
}

TensorRef gelu(Call, const Tensor& input, int64_t approximate) {
  return approximate == kApproximateTanh ? op::gelu_tanh(input) : op::gelu_exact(input);
}

TensorRef glu(Call, const Tensor& input, int64_t dim) {
  if (input.ndim == 0)
    fail_arg(TT_SHAPE, "input", "input is 0-dim: must have at least one dimension");
  const int64_t size = input.size(wrap_dim(dim, input.ndim));
  if (size % 2)
    fail_arg(TT_SHAPE, "dim", "dim is {} and has size {}: must have an even size", dim, size);
  const int64_t halves[2] = {size / 2, size / 2};
  const TensorList parts = op::split_with_sizes(input, halves, dim);
  return op::gated(*parts[0], *parts[1]);
}

// In training, the slope of each element that is not positive is drawn from [lower, upper).
TensorRef rrelu(Call, const Tensor& self, double lower, double upper, bool training,
                Generator* generator) {
  if (!(lower <= upper))
    fail_arg(TT_INVALID_ARG, "lower", "lower is {}, upper is {}: must not be greater", lower,
             upper);
  if (!is_float(self.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be floating", fmt(self.dtype));
  if (!training) return op::leaky_relu(self, (lower + upper) / 2);
  TensorRef slope = op::empty_like(self);
  op::uniform_(*slope, lower, upper, generator);
  return op::mul(self, *op::masked_fill(*slope, *op::gt(self, Scalar(0)), Scalar(1)));
}

TensorRef prelu(Call, const Tensor& self, const Tensor& weight) {
  if (weight.ndim > 1)
    fail_arg(TT_SHAPE, "weight", "weight has {} dimensions: must have 0 or 1", weight.ndim);
  if (weight.numel == 1) return op::prelu_kernel(self, *op::reshape(weight, {}));
  const int64_t channels = self.ndim > 1 ? self.size(1) : 1;
  if (weight.numel != channels)
    fail_arg(TT_SHAPE, "weight", "weight has {} elements: must have 1 or, as self has channels, {}",
             weight.numel, channels);
  Shape shape;
  shape.resize(size_t(self.ndim), 1);
  if (self.ndim > 1) shape[1] = channels;
  return op::prelu_kernel(self, *op::reshape(weight, shape));
}

}  // namespace TT_NS::impl
