// Activations that check arguments or combine several operators.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"
#include "ops/one_pass.h"

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

// The two halves of a tensor along dim, whose size is even.
static TensorList halves_of(const Tensor& input, int64_t dim) {
  const int64_t half = input.size(wrap_dim(dim, input.ndim)) / 2;
  const int64_t sizes[2] = {half, half};
  return op::split_with_sizes(input, sizes, dim);
}

TensorRef glu(Call, const Tensor& input, int64_t dim) {
  if (input.ndim == 0)
    fail_arg(TT_SHAPE, "input", "input is 0-dim: must have at least one dimension");
  const int64_t size = input.size(wrap_dim(dim, input.ndim));
  if (size % 2)
    fail_arg(TT_SHAPE, "dim", "dim is {} and has size {}: must have an even size", dim, size);
  if (needs_gradient(input) && records_one_pass(input)) return op::glu_kernel(input, dim);
  const TensorList parts = halves_of(input, dim);
  return op::gated(*parts[0], *parts[1]);
}
TensorRef glu_kernel(Call, const Tensor& input, int64_t dim) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const TensorList parts = halves_of(input, dim);
  return op::gated(*parts[0], *parts[1]);
}

// Kernels that write the halves of a gradient where they are.
static constexpr ElementSpec gated_spec(const Kernel* kernel, const char* names) {
  return {
      .kernel = kernel,
      .rule = DtypeRule::kFloat,
      .compute = Compute::kWiden,
      .no_complex = true,
      .promote_params = false,
      .factor = false,
      .masks = 0,
      .no_bool = TT_OK,
      .no_integers = false,
      .names = names,
  };
}
static constexpr ElementSpec kGatedInto = gated_spec(&kernel_gated, "grad\0gate");
static constexpr ElementSpec kGatedSlopeInto = gated_spec(&kernel_gated_slope, "grad\0self\0gate");

TensorRef glu_backward(Call, const Tensor& grad, const Tensor& input, int64_t dim) {
  const TensorList parts = halves_of(input, dim);
  const Tensor& value = *parts[0];
  const Tensor& gate = *parts[1];
  const bool in_place =
      grad.dtype == input.dtype && input.numel && takes_one_pass(grad) && takes_one_pass(input);
  if (!in_place) {
    const TensorRef of_value = op::gated(grad, gate);
    const TensorRef of_gate = op::gated_slope(grad, value, gate);
    const Tensor* const joined[2] = {of_value.get(), of_gate.get()};
    return op::cat(joined, dim);
  }
  TensorRef out = new_tensor(input.sizes(), input.dtype, kCpuDevice);
  const TensorList halves = halves_of(*out, dim);
  element_into(kGatedInto, *halves[0], {grad, gate});
  element_into(kGatedSlopeInto, *halves[1], {grad, value, gate});
  return out;
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
  TensorRef slope = op::empty(self.sizes(), self.dtype, self.device);
  op::uniform_(*slope, lower, upper, generator);
  // The first operand decides on strides: the result is contiguous.
  return op::mul(*op::masked_fill(*slope, *op::gt(self, Scalar(0)), Scalar(1)), self);
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
