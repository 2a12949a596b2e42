// Products of 8-bit integers: int_mm, and linear and conv2d of quantised tensors.
#include "base/amx.h"
#include "base/arm.h"
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/image.h"
#include "ops/quant/quant.h"
#include "plan/quant_build.h"

namespace TT_NS::impl {

static bool is_byte(Dtype d) { return d == Dtype::kI8 || d == Dtype::kU8; }

static void check_bytes(const Tensor& t, const char* arg) {
  if (!is_byte(t.dtype))
    fail_arg(TT_DTYPE, arg, "{} is {}: must be int8 or uint8", arg, fmt(t.dtype));
}
static void check_weight(const Tensor& input, const Tensor& weight, int64_t ndim) {
  check_same_device(input, "input", weight, "weight");
  check_bytes(input, "input");
  check_ndim(weight, ndim, "weight");
  if (weight.dtype != Dtype::kI8)
    fail_arg(TT_DTYPE, "weight", "weight is {}: must be int8", fmt(weight.dtype));
}
static void check_bias(const Tensor& input, const Tensor* bias, int64_t channels) {
  if (!bias) return;
  check_same_device(input, "input", *bias, "bias");
  if (bias->dtype != Dtype::kF32)
    fail_arg(TT_DTYPE, "bias", "bias is {}: must be float32", fmt(bias->dtype));
  if (bias->ndim != 1 || bias->numel != channels)
    fail_arg(TT_SHAPE, "bias", "bias is {}: must be ({})", bias->sizes(), channels);
}

// A plan with its workspace. b_k: bytes from an element of the right matrix to the next of its
// column.
class Product {
 public:
  Int8Plan plan;

  Product(int64_t m, int64_t n, int64_t k, int64_t b_k, Device device)
      : bytes_(build(&plan, m, n, k, b_k, device)), workspace_(bytes_, device), device_(device) {
    place_int8(&plan, workspace_.data());
    plan.b_k = b_k;
    for (const Isa isa : {kIsaBaseline, kIsaAvx2, kIsaAvx512})
      plan.vnni |= int32_t(device.type == TT_CPU && has_int8_products(isa)) << isa;
  }
  void run() { launch_stages(kernel_int8_matmul, device_, &plan.run); }

 private:
  static int64_t build(Int8Plan* p, int64_t m, int64_t n, int64_t k, int64_t b_k, Device device) {
    const bool cpu = device.type == TT_CPU;
    const bool amx = cpu && has_amx_products() && Isa(ctx().isa) == kIsaAvx512;
    const bool mmla = cpu && has_arm(kArmByteMatrices);
    const bool columns = cpu && b_k == 1 && has_int8_products(Isa(ctx().isa));
    const int64_t bytes = build_int8(p, m, n, k, amx, mmla, columns);
    if (bytes < 0)
      fail_arg(TT_SHAPE, "weight", "the product of [{},{}] and [{},{}] is too large", m, k, k, n);
    return bytes;
  }
  int64_t bytes_;
  Workspace workspace_;
  Device device_;
};

TensorRef int_mm(Call, const Tensor& self, const Tensor& mat2) {
  check_same_device(self, "self", mat2, "mat2");
  check_ndim(self, 2, "self");
  check_ndim(mat2, 2, "mat2");
  check_bytes(self, "self");
  check_bytes(mat2, "mat2");
  if (self.size(1) != mat2.size(0))
    fail_arg(TT_SHAPE, "mat2",
             "self is {}, mat2 is {}: self.shape[1] ({}) must equal mat2.shape[0] ({})",
             self.sizes(), mat2.sizes(), self.size(1), mat2.size(0));
  const int64_t shape[2] = {self.size(0), mat2.size(1)};
  checked_numel(shape, Dtype::kI32, "result");
  TensorRef out = new_tensor(shape, Dtype::kI32, self.device);
  if (!out->numel) return out;
  Product product(shape[0], shape[1], self.size(1), mat2.byte_stride(0), self.device);
  Int8Plan& plan = product.plan;
  plan.a = self.data;
  plan.a_row = self.byte_stride(0);
  plan.a_k = self.byte_stride(1);
  plan.a_unsigned = self.dtype == Dtype::kU8;
  plan.b = mat2.data;
  plan.b_col = mat2.byte_stride(1);
  plan.b_unsigned = mat2.dtype == Dtype::kU8;
  plan.out = out->data;
  product.run();
  return out;
}

// A scale or zero point: one element, or one for each of n.
struct PerItem {
  TensorRef values;
  int64_t step;

  PerItem(const Tensor& t, const char* arg, Dtype dtype, Ints items, const Tensor& input) {
    check_same_device(input, "input", t, arg);
    if (t.numel != 1 && !same(t.sizes(), items))
      fail_arg(TT_SHAPE, arg, "{} is {}: must have one element or the shape {}", arg, t.sizes(),
               items);
    if (dtype == Dtype::kI32 && !is_integral(t.dtype))
      fail_arg(TT_DTYPE, arg, "{} is {}: must be of integers", arg, fmt(t.dtype));
    if (dtype == Dtype::kF32 && !is_float(t.dtype))
      fail_arg(TT_DTYPE, arg, "{} is {}: must be floating", arg, fmt(t.dtype));
    values = cast_input(t, dtype);
    step = t.numel == 1 ? 0 : 1;
  }
};

TensorRef quantized_linear(Call, const Tensor& input, const Tensor& input_scale,
                           const Tensor& input_zero_point, const Tensor& weight,
                           const Tensor& weight_scale, const Tensor* bias) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_weight(input, weight, 2);
  if (!input.ndim || input.size(-1) != weight.size(1))
    fail_arg(TT_SHAPE, "weight",
             "input is {}, weight is {}: input.shape[-1] must equal weight.shape[1] ({})",
             input.sizes(), weight.sizes(), weight.size(1));
  const int64_t k = weight.size(1);
  const int64_t channels[1] = {weight.size(0)};
  check_bias(input, bias, channels[0]);
  const Ints rows = input.sizes().slice(0, input.ndim - 1);
  const PerItem scale(input_scale, "input_scale", Dtype::kF32, rows, input);
  const PerItem zero(input_zero_point, "input_zero_point", Dtype::kI32, rows, input);
  const PerItem of_weight(weight_scale, "weight_scale", Dtype::kF32, channels, input);
  Shape shape(input.sizes());
  shape[shape.size() - 1] = channels[0];
  checked_numel(shape, Dtype::kF32, "result");
  TensorRef out = new_tensor(shape, Dtype::kF32, input.device);
  if (!out->numel) return out;
  TensorRef x = dense_input(input);
  TensorRef shift = bias ? dense_input(*bias) : TensorRef();
  Product product(out->numel / channels[0], channels[0], k, weight.byte_stride(1), input.device);
  Int8Plan& plan = product.plan;
  plan.a = x->data;
  plan.a_row = k;
  plan.a_k = 1;
  plan.a_unsigned = input.dtype == Dtype::kU8;
  plan.a_zero = zero.values->as<int32_t>();
  plan.a_zero_step = zero.step;
  plan.a_scale = scale.values->as<float>();
  plan.a_scale_step = scale.step;
  plan.b = weight.data;
  plan.b_col = weight.byte_stride(0);
  plan.b_scale = of_weight.values->as<float>();
  plan.b_scale_step = of_weight.step;
  if (shift) {
    plan.bias = shift->as<float>();
    plan.bias_col = 1;
  }
  plan.out = out->data;
  product.run();
  return out;
}

// ---- conv2d: the weight times the windows of each image as columns ----

static void check_image(const Tensor& input, const Tensor& weight, int64_t groups) {
  check_ndim(input, 4, "input");
  const int64_t channels = input.size(1);
  const bool divides = groups > 0 && channels % groups == 0 && weight.size(0) % groups == 0;
  if (!divides)
    fail_arg(TT_INVALID_ARG, "groups",
             "groups is {}: must be positive and divide the {} and {} channels", groups, channels,
             weight.size(0));
  if (channels / groups != weight.size(1))
    fail_arg(TT_SHAPE, "weight", "input is {}, weight is {}, groups is {}: must have {} channels",
             input.sizes(), weight.sizes(), groups, channels / groups);
}

TensorRef quantized_conv2d(Call, const Tensor& input, double input_scale, int64_t input_zero_point,
                           const Tensor& weight, const Tensor& weight_scale, const Tensor* bias,
                           Ints stride, Ints padding, Ints dilation, int64_t groups) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_weight(input, weight, 4);
  check_image(input, weight, groups);
  const int64_t channels[1] = {weight.size(0)};
  check_bias(input, bias, channels[0]);
  if (!(input_scale > 0) || input_scale > 0x1p127)
    fail_arg(TT_INVALID_ARG, "input_scale", "input_scale is {}: must be positive and finite",
             input_scale);
  check_held(input_zero_point, input.dtype, "input_zero_point");
  const PerItem of_weight(weight_scale, "weight_scale", Dtype::kF32, channels, input);
  int64_t border[2], step[2], gap[2];
  expand_dims_list(padding, 2, 0, 0, "padding", border);
  expand_dims_list(stride, 2, 1, 1, "stride", step);
  expand_dims_list(dilation, 2, 1, 1, "dilation", gap);
  // Columns first, before and behind.
  const int64_t pad[4] = {border[1], border[1], border[0], border[0]};
  TensorRef x = op::constant_pad_nd(input, pad, Scalar(input_zero_point));
  const int64_t window[2] = {weight.size(2), weight.size(3)};
  TensorRef columns = op::im2col(*x, window, gap, {}, step);
  int64_t shape[4] = {input.size(0), channels[0], 0, 0};
  for (int64_t d = 0; d < 2; d++)
    shape[2 + d] = (x->size(2 + d) - gap[d] * (window[d] - 1) - 1) / step[d] + 1;
  checked_numel(shape, Dtype::kF32, "result");
  TensorRef out = new_tensor(shape, Dtype::kF32, input.device);
  if (!out->numel) return out;

  columns = dense_input(*columns);
  TensorRef w = dense_input(weight);
  TensorRef shift = bias ? dense_input(*bias) : TensorRef();
  TensorRef scale = op::full({}, Scalar(input_scale), Dtype::kF32, Opt<Device>(input.device));
  TensorRef zero = op::full({}, Scalar(input_zero_point), Dtype::kI32, Opt<Device>(input.device));
  const int64_t pixels = shape[2] * shape[3];
  const int64_t m = channels[0] / groups;
  const int64_t k = weight.size(1) * window[0] * window[1];
  Product product(m, pixels, k, pixels, input.device);
  Int8Plan& plan = product.plan;
  plan.a_row = k;
  plan.a_k = 1;
  plan.a_scale_step = of_weight.step;
  plan.b_col = 1;
  plan.b_unsigned = input.dtype == Dtype::kU8;
  plan.b_zero = zero->as<int32_t>();
  plan.b_scale = scale->as<float>();
  plan.bias_row = shift ? 1 : 0;
  for (int64_t i = 0; i < input.size(0) * groups; i++) {
    const int64_t g = i % groups;
    plan.a = advance(w->data, g * m * k);
    plan.a_scale = of_weight.values->as<float>() + g * m * of_weight.step;
    plan.b = advance(columns->data, i * k * pixels);
    plan.bias = shift ? shift->as<float>() + g * m : nullptr;
    plan.out = advance(out->data, i * m * pixels * int64_t(sizeof(float)));
    product.run();
  }
  return out;
}

}  // namespace TT_NS::impl
