// Checks of convolutions, and the public operators: conv1d … conv_transpose3d.
#include "ops/conv/primitives.h"

#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/image.h"

#include <string.h>

namespace TT_NS {

// The last tile of a plan may be this many times as long as its data.
constexpr int64_t kOffsetSlack = 8;

// Returns a * b + c; fails on overflow.
static int64_t mul_add(int64_t a, int64_t b, int64_t c, const char* arg) {
  int64_t r;
  if (mul_overflow(a, b, &r) || add_overflow(r, c, &r))
    fail_arg(TT_INVALID_ARG, arg, "{} is too large: the sizes overflow", arg);
  return r;
}

static void check_operands(const Tensor& input, const Tensor& weight, const Tensor* bias,
                           int64_t out_channels) {
  check_same_device(input, "input", weight, "weight");
  if (input.dtype == Dtype::kBool)
    fail_arg(TT_NOT_IMPLEMENTED, "input",
             "input is bool: convolutions of bool tensors are not defined");
  if (input.dtype != weight.dtype)
    fail_arg(TT_DTYPE, "weight", "input is {}, weight is {}: must have the same dtype",
             fmt(input.dtype), fmt(weight.dtype));
  if (!bias) return;
  check_same_device(input, "input", *bias, "bias");
  if (bias->dtype != input.dtype)
    fail_arg(TT_DTYPE, "bias", "bias is {}, input is {}: must have the same dtype",
             fmt(bias->dtype), fmt(input.dtype));
  if (bias->ndim != 1 || bias->numel != out_channels)
    fail_arg(TT_SHAPE, "bias", "bias is {}: must be [{}], one value per channel of the result",
             bias->sizes(), out_channels);
}

static void check_channels(const Tensor& input, const Tensor& weight, const ConvParams& p) {
  if (p.groups < 1) fail_arg(TT_INVALID_ARG, "groups", "groups is {}: must be positive", p.groups);
  if (weight.size(0) < p.groups || weight.size(0) % p.groups)
    fail_arg(TT_SHAPE, "weight",
             "weight is {}, groups is {}: weight.shape[0] must be a multiple of groups",
             weight.sizes(), p.groups);
  const int64_t channels =
      p.transposed ? weight.size(0) : mul_add(weight.size(1), p.groups, 0, "groups");
  if (input.size(1) != channels)
    fail_arg(TT_SHAPE, "input",
             "input is {}, weight is {}, groups is {}: input must have {} channels", input.sizes(),
             weight.sizes(), p.groups, channels);
}

// Size of the result in dimension d for an input of this size; k, stride, pad and dil are set.
static int64_t result_size(const ConvShape& s, int d, bool transposed, int64_t size,
                           int64_t output_padding) {
  const int64_t window = mul_add(s.dil[d], s.k[d] - 1, 1, "dilation");
  const int64_t both_pads = mul_add(s.pad[d], 2, 0, "padding");
  if (transposed) {
    if (size < 1)
      fail_arg(TT_SHAPE, "input", "input has size {} in spatial dimension {}: must be positive",
               size, d);
    if (output_padding >= s.stride[d] && output_padding >= s.dil[d])
      fail_arg(TT_INVALID_ARG, "output_padding",
               "output_padding is {}, stride is {}, dilation is {}: must be less than stride or "
               "dilation",
               output_padding, s.stride[d], s.dil[d]);
    int64_t full = mul_add(size - 1, s.stride[d], window, "stride");
    full = mul_add(output_padding, 1, full, "output_padding");
    if (full <= both_pads)
      fail_arg(TT_SHAPE, "input", "the result has size {} in a spatial dimension: must be positive",
               full - both_pads);
    return full - both_pads;
  }
  const int64_t padded = mul_add(size, 1, both_pads, "padding");
  if (padded < window)
    fail_arg(TT_SHAPE, "weight",
             "the padded input has size {} in a spatial dimension, the window {}: the window must "
             "not be larger",
             padded, window);
  return (padded - window) / s.stride[d] + 1;
}

// Kernels compute the offset of any position of a window in the padded input, so it must not
// overflow. The stride to a nonexistent second window, or the dilation to a nonexistent second tap,
// is limited to the padded size.
static void check_padded(ConvShape* s, int64_t item, Ints padding) {
  const int64_t channels = mul_add(s->groups, max(s->ci, s->co), 0, "groups");
  int64_t bytes = mul_add(channels, item * kOffsetSlack, 0, "groups");
  bytes = mul_add(bytes, max<int64_t>(s->n, 1), 0, "input");
  for (int d = 0; d < kConvDims; d++) {
    int64_t size;
    if (add_overflow(s->x[d], mul_add(s->pad[d], 2, 1, "padding"), &size) ||
        mul_overflow(bytes, size, &bytes))
      fail_arg(TT_INVALID_ARG, "padding", "padding is {}: the size of the padded input overflows",
               padding);
    if (s->k[d] == 1 && s->dil[d] > size) s->dil[d] = size;
    if (s->y[d] <= 1 && s->stride[d] > size) s->stride[d] = size;
  }
}

// The dtype to which the operands of a convolution are converted.
static Dtype compute_dtype(Dtype d) {
  if (d == Dtype::kF64 || d == Dtype::kC128) return Dtype::kF64;
  return is_differentiable(d) ? Dtype::kF32 : Dtype::kI64;
}

Conv check_conv(const Tensor& input, const Tensor& weight, const Tensor* bias,
                const ConvParams& p) {
  const int64_t nd = weight.ndim - 2;
  const int64_t first = kConvDims - nd;
  if (nd < 1 || nd > kConvDims)
    fail_arg(TT_SHAPE, "weight", "weight is {}: must have 3 to 5 dimensions", weight.sizes());
  if (input.ndim != weight.ndim)
    fail_arg(TT_SHAPE, "input",
             "input is {}, weight is {}: must have the same number of dimensions", input.sizes(),
             weight.sizes());
  Conv c;
  ConvShape& s = c.s;
  int64_t output_padding[kConvDims];
  for (int d = 0; d < first; d++) {
    s.x[d] = s.y[d] = s.k[d] = s.stride[d] = s.dil[d] = 1;
    s.pad[d] = 0;
  }
  expand_dims_list(p.stride, nd, 1, 1, "stride", s.stride + first);
  expand_dims_list(p.padding, nd, 0, 0, "padding", s.pad + first);
  expand_dims_list(p.dilation, nd, 1, 1, "dilation", s.dil + first);
  expand_dims_list(p.output_padding, nd, 0, 0, "output_padding", output_padding + first);
  check_channels(input, weight, p);
  const int64_t channels =
      p.transposed ? mul_add(weight.size(1), p.groups, 0, "groups") : weight.size(0);
  check_operands(input, weight, bias, channels);
  s.n = input.size(0);
  s.groups = p.groups;
  s.ci = weight.size(1);
  s.co = weight.size(0) / p.groups;
  Shape result;
  result.push_back(s.n);
  result.push_back(channels);
  for (int64_t d = first; d < kConvDims; d++) {
    s.k[d] = weight.size(d - first + 2);
    if (s.k[d] < 1)
      fail_arg(TT_SHAPE, "weight", "weight is {}: its spatial sizes must be positive",
               weight.sizes());
    const int64_t size = input.size(d - first + 2);
    const int64_t other = result_size(s, int(d), p.transposed, size, output_padding[d]);
    s.x[d] = p.transposed ? other : size;
    s.y[d] = p.transposed ? size : other;
    result.push_back(other);
  }
  checked_numel(result, input.dtype, "result");
  check_padded(&s, item_size(input.dtype), p.padding);
  c.x = p.transposed ? result : Shape(input.sizes());
  c.y = p.transposed ? Shape(input.sizes()) : result;
  c.w = Shape(weight.sizes());
  c.complex = is_complex(input.dtype);
  c.compute = compute_dtype(input.dtype);
  c.device = input.device;
  c.weight_last = has_channels_last_strides(weight);
  c.last = c.weight_last || has_channels_last_strides(input);
  return c;
}

namespace impl {

// Returns input, of nd spatial dimensions, with a batch dimension.
static TensorRef batched(const Tensor& input, const Tensor& weight, int64_t nd) {
  if (weight.ndim != nd + 2)
    fail_arg(TT_SHAPE, "weight", "weight is {}: must have {} dimensions", weight.sizes(), nd + 2);
  if (input.ndim != nd + 1 && input.ndim != nd + 2)
    fail_arg(TT_SHAPE, "input", "input is {}: must have {} dimensions, or {} without a batch",
             input.sizes(), nd + 2, nd + 1);
  return input.ndim == nd + 1 ? op::unsqueeze(input, 0) : TensorRef::share(&input);
}
static TensorRef conv_nd(int64_t nd, const Tensor& input, const Tensor& weight, const Tensor* bias,
                         const ConvParams& p) {
  TensorRef x = batched(input, weight, nd);
  TensorRef y = op::convolution(*x, weight, bias, p.stride, p.padding, p.dilation, p.transposed,
                                p.output_padding, p.groups);
  return input.ndim == nd + 2 ? std::move(y) : op::view(*y, y->sizes().slice(1, y->ndim));
}

// padding = "same": the result has the size of the input. Half of the padding is on each side; an
// odd zero is appended to the input.
static TensorRef conv_same(int64_t nd, const Tensor& input, const Tensor& weight,
                           const Tensor* bias, Ints stride, Ints dilation, int64_t groups) {
  TensorRef x = batched(input, weight, nd);
  int64_t step[kConvDims], dil[kConvDims], pad[kConvDims];
  expand_dims_list(stride, nd, 1, 1, "stride", step);
  expand_dims_list(dilation, nd, 1, 1, "dilation", dil);
  for (int64_t d = 0; d < nd; d++) {
    if (step[d] != 1)
      fail_arg(TT_INVALID_ARG, "stride", "stride is {}: must be 1 for padding 'same'", stride);
    if (weight.size(d + 2) < 1)
      fail_arg(TT_SHAPE, "weight", "weight is {}: its spatial sizes must be positive",
               weight.sizes());
    const int64_t total = mul_add(dil[d], weight.size(d + 2) - 1, 0, "dilation");
    pad[d] = total / 2;
    if (total % 2 == 0) continue;
    Shape slice(x->sizes());
    slice[d + 2] = 1;
    TensorRef zeros = op::zeros(slice, x->dtype, x->device);
    const Tensor* const parts[2] = {x.get(), zeros.get()};
    x = op::cat(TensorSpan(parts, 2), d + 2);
  }
  TensorRef y =
      op::convolution(*x, weight, bias, stride, Ints(pad, nd), dilation, false, {}, groups);
  return input.ndim == nd + 2 ? std::move(y) : op::view(*y, y->sizes().slice(1, y->ndim));
}
static TensorRef conv_padding(int64_t nd, const Tensor& input, const Tensor& weight, Str padding,
                              const Tensor* bias, Ints stride, Ints dilation, int64_t groups) {
  auto is = [&](const char* name) {
    return padding.n == int64_t(strlen(name)) && memcmp(padding.ptr, name, size_t(padding.n)) == 0;
  };
  if (is("valid"))
    return conv_nd(nd, input, weight, bias, {stride, {}, dilation, false, {}, groups});
  if (!is("same"))
    fail_arg(TT_INVALID_ARG, "padding", "padding is '{}': must be 'valid' or 'same'", padding);
  return conv_same(nd, input, weight, bias, stride, dilation, groups);
}

#define TT_CONV(nd)                                                                               \
  TensorRef conv##nd##d(Call, const Tensor& input, const Tensor& weight, const Tensor* bias,      \
                        Ints stride, Ints padding, Ints dilation, int64_t groups) {               \
    return conv_nd(nd, input, weight, bias, {stride, padding, dilation, false, {}, groups});      \
  }                                                                                               \
  TensorRef conv##nd##d_padding(Call, const Tensor& input, const Tensor& weight, Str padding,     \
                                const Tensor* bias, Ints stride, Ints dilation, int64_t groups) { \
    return conv_padding(nd, input, weight, padding, bias, stride, dilation, groups);              \
  }                                                                                               \
  TensorRef conv_transpose##nd##d(Call, const Tensor& input, const Tensor& weight,                \
                                  const Tensor* bias, Ints stride, Ints padding,                  \
                                  Ints output_padding, int64_t groups, Ints dilation) {           \
    return conv_nd(nd, input, weight, bias,                                                       \
                   {stride, padding, dilation, true, output_padding, groups});                    \
  }
TT_CONV(1)
TT_CONV(2)
TT_CONV(3)
#undef TT_CONV

}  // namespace impl
}  // namespace TT_NS
