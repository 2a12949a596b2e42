// Quantisation of floating numbers, to integers and back: per tensor, per channel, and fake, which
// rounds floating numbers to those that quantised integers represent.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/quant/quant.h"

namespace TT_NS::impl {

// ---- checks ----

static void check_range(int64_t quant_min, int64_t quant_max) {
  if (quant_min > quant_max)
    fail_arg(TT_INVALID_ARG, "quant_min",
             "quant_min is {}, quant_max is {}: quant_min must not be greater", quant_min,
             quant_max);
}

static void check_numbers(double scale, int64_t zero_point, int64_t quant_min, int64_t quant_max) {
  check_range(quant_min, quant_max);
  if (!(scale > 0) || scale > 0x1p127)
    fail_arg(TT_INVALID_ARG, "scale", "scale is {}: must be positive and finite", scale);
  if (zero_point < quant_min || zero_point > quant_max)
    fail_arg(TT_INVALID_ARG, "zero_point", "zero_point is {}: must be in [{}, {}]", zero_point,
             quant_min, quant_max);
}

static void check_input(const Tensor& input) {
  if (!is_float(input.dtype))
    fail_arg(TT_DTYPE, "input", "input is {}: must be floating", fmt(input.dtype));
}

static void check_stored(Dtype dtype, int64_t quant_min, int64_t quant_max) {
  if (!is_integral(dtype))
    fail_arg(TT_DTYPE, "dtype", "dtype is {}: must be an integer dtype", fmt(dtype));
  check_held(quant_min, dtype, "quant_min");
  check_held(quant_max, dtype, "quant_max");
}

// Checks the arguments of dequantisation, whose dtype only repeats that of input.
static void check_integers(const Tensor& input, Dtype dtype, int64_t quant_min, int64_t quant_max) {
  check_range(quant_min, quant_max);
  if (!is_integral(input.dtype))
    fail_arg(TT_DTYPE, "input", "input is {}: must be of integers", fmt(input.dtype));
  if (input.dtype != dtype)
    fail_arg(TT_DTYPE, "dtype", "dtype is {}, input is {}: must be equal", fmt(dtype),
             fmt(input.dtype));
}

static void check_number(const Tensor& t, const char* arg, const Tensor& input) {
  check_same_device(input, "input", t, arg);
  if (t.numel != 1) fail_arg(TT_SHAPE, arg, "{} is {}: must have one element", arg, t.sizes());
}

// ---- scales and zero points ----

static Dtype compute_dtype(const Tensor& input) {
  return input.dtype == Dtype::kF64 ? Dtype::kF64 : Dtype::kF32;
}

static TensorRef number(double value, Dtype dtype, Device device) {
  return op::full({}, Scalar(value), dtype, Opt<Device>(device));
}

// Returns t, with one element for each position of input along axis, in a shape that broadcasts.
static TensorRef along(const Tensor& t, const char* arg, const Tensor& input, int64_t axis) {
  check_same_device(input, "input", t, arg);
  const int64_t d = wrap_dim(axis, input.ndim);
  const int64_t channels = input.ndim ? input.size(d) : 1;
  if (t.ndim != 1 || t.numel != channels)
    fail_arg(TT_SHAPE, arg, "{} is {}: must be ({}), the size of input along axis", arg, t.sizes(),
             channels);
  Shape shape;
  for (int64_t i = 0; i < input.ndim; i++) shape.push_back(i == d ? channels : 1);
  return op::reshape(t, shape);
}

// round(input / scale) + zero_point, not clamped.
static TensorRef positions(const Tensor& input, const Tensor& scale, const Tensor& zero_point) {
  const Dtype dtype = compute_dtype(input);
  TensorRef x = cast_input(input, dtype);
  TensorRef steps = op::mul(*x, *op::reciprocal(*cast_input(scale, dtype)));
  return op::add(*op::round(*steps), *cast_input(zero_point, dtype));
}

static TensorRef clamped(const Tensor& positions, int64_t quant_min, int64_t quant_max) {
  const Scalar low(quant_min);
  const Scalar high(quant_max);
  return op::clamp(positions, &low, &high);
}

static TensorRef numbers_of(const Tensor& integers, const Tensor& scale, const Tensor& zero_point,
                            Dtype dtype) {
  TensorRef x = cast_input(integers, dtype);
  return op::mul(*op::sub(*x, *cast_input(zero_point, dtype)), *cast_input(scale, dtype));
}

// ---- fake quantisation ----

TensorRef fake_quantize(Call, const Tensor& input, const Tensor& scale, const Tensor& zero_point,
                        int64_t quant_min, int64_t quant_max) {
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef q = clamped(*positions(input, scale, zero_point), quant_min, quant_max);
  return cast_input(*numbers_of(*q, scale, zero_point, compute_dtype(input)), input.dtype);
}

TensorRef fake_quantize_mask(Call, const Tensor& input, const Tensor& scale,
                             const Tensor& zero_point, int64_t quant_min, int64_t quant_max) {
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef q = positions(input, scale, zero_point);
  return op::logical_and(*op::ge(*q, Scalar(quant_min)), *op::le(*q, Scalar(quant_max)));
}

TensorRef fake_quantize_per_tensor_affine(Call, const Tensor& input, double scale,
                                          int64_t zero_point, int64_t quant_min,
                                          int64_t quant_max) {
  check_input(input);
  check_numbers(scale, zero_point, quant_min, quant_max);
  const Dtype dtype = compute_dtype(input);
  TensorRef step = number(scale, dtype, input.device);
  TensorRef zero = number(double(zero_point), dtype, input.device);
  return op::fake_quantize(input, *step, *zero, quant_min, quant_max);
}

TensorRef fake_quantize_per_tensor_affine_tensor(Call, const Tensor& input, const Tensor& scale,
                                                 const Tensor& zero_point, int64_t quant_min,
                                                 int64_t quant_max) {
  check_input(input);
  check_range(quant_min, quant_max);
  check_number(scale, "scale", input);
  check_number(zero_point, "zero_point", input);
  TensorRef step = op::reshape(scale, {});
  TensorRef zero = op::reshape(zero_point, {});
  return op::fake_quantize(input, *step, *zero, quant_min, quant_max);
}

TensorRef fake_quantize_per_channel_affine(Call, const Tensor& input, const Tensor& scale,
                                           const Tensor& zero_point, int64_t axis,
                                           int64_t quant_min, int64_t quant_max) {
  check_input(input);
  check_range(quant_min, quant_max);
  TensorRef step = along(scale, "scale", input, axis);
  TensorRef zero = along(zero_point, "zero_point", input, axis);
  return op::fake_quantize(input, *step, *zero, quant_min, quant_max);
}

// ---- integers ----

// Converts positions to integers. float32 cannot hold INT32_MAX: as a bound it would be one more.
static TensorRef integers_of(const Tensor& positions, int64_t quant_min, int64_t quant_max,
                             Dtype dtype) {
  constexpr int64_t kExact = int64_t(1) << 24;  // of float32
  const bool is_wide = quant_max > kExact || quant_min < -kExact;
  TensorRef q = is_wide ? cast_input(positions, Dtype::kF64) : TensorRef::share(&positions);
  return cast_input(*clamped(*q, quant_min, quant_max), dtype);
}

TensorRef quantize_per_tensor(Call, const Tensor& input, double scale, int64_t zero_point,
                              int64_t quant_min, int64_t quant_max, Dtype dtype) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_input(input);
  check_numbers(scale, zero_point, quant_min, quant_max);
  check_stored(dtype, quant_min, quant_max);
  const Dtype compute = compute_dtype(input);
  TensorRef q = positions(input, *number(scale, compute, input.device),
                          *number(double(zero_point), compute, input.device));
  return integers_of(*q, quant_min, quant_max, dtype);
}

TensorRef dequantize_per_tensor(Call, const Tensor& input, double scale, int64_t zero_point,
                                int64_t quant_min, int64_t quant_max, Dtype dtype) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_integers(input, dtype, quant_min, quant_max);
  check_numbers(scale, zero_point, quant_min, quant_max);
  return numbers_of(input, *number(scale, Dtype::kF32, input.device),
                    *number(double(zero_point), Dtype::kF32, input.device), Dtype::kF32);
}

TensorRef quantize_per_channel(Call, const Tensor& input, const Tensor& scales,
                               const Tensor& zero_points, int64_t axis, int64_t quant_min,
                               int64_t quant_max, Dtype dtype) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_input(input);
  check_range(quant_min, quant_max);
  check_stored(dtype, quant_min, quant_max);
  TensorRef q = positions(input, *along(scales, "scales", input, axis),
                          *along(zero_points, "zero_points", input, axis));
  return integers_of(*q, quant_min, quant_max, dtype);
}

TensorRef dequantize_per_channel(Call, const Tensor& input, const Tensor& scales,
                                 const Tensor* zero_points, int64_t axis, int64_t quant_min,
                                 int64_t quant_max, Dtype dtype) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_integers(input, dtype, quant_min, quant_max);
  TensorRef step = along(scales, "scales", input, axis);
  TensorRef zero = zero_points ? along(*zero_points, "zero_points", input, axis)
                               : number(0, Dtype::kF32, input.device);
  return numbers_of(input, *step, *zero, Dtype::kF32);
}

}  // namespace TT_NS::impl
