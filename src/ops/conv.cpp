// The public convolutions and their checks.
#include "ops/conv_primitives.h"

#include "ops/gen/impls.h"
#include "ops/gen/ops.h"

namespace TT_NS {

void spread(Ints list, int64_t n, int64_t fallback, int64_t least, const char* arg, int64_t* out) {
  if (list.n > 1 && list.n != n)
    fail_arg(TT_INVALID_ARG, arg, "{} is {}: must have 1 or {} entries", arg, list, n);
  for (int64_t d = 0; d < n; d++) {
    out[d] = list.n == 0 ? fallback : list[list.n == 1 ? 0 : d];
    if (out[d] < least)
      fail_arg(TT_INVALID_ARG, arg, "{} is {}: its entries must be at least {}", arg, list, least);
  }
}

constexpr int64_t kOffsetSlack =
    8;  // the last tile of a plan may be that much longer than its data

// a * b + c; fails if no int64 has this value.
static int64_t sure(int64_t a, int64_t b, int64_t c, const char* arg) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r) || __builtin_add_overflow(r, c, &r))
    fail_arg(TT_INVALID_ARG, arg, "{} is too large: the sizes overflow", arg);
  return r;
}

// PyTorch's rule (c10/core/MemoryFormat.h): strides as of channels_last; what could be either is
// not.
static bool is_channels_last(const Tensor& t) {
  if (t.ndim < 4 || t.ndim > 5 || t.stride(1) == 0) return false;
  int64_t least = 0;
  for (int64_t i = 0; i < t.ndim; i++) {
    const int64_t d = i == 0 ? 1 : i + 1 == t.ndim ? 0 : t.ndim - i;
    if (t.size(d) == 0 || t.stride(d) < least || (d == 0 && least == t.stride(1))) return false;
    least = t.stride(d);
    if (t.size(d) > 1) least *= t.size(d);
  }
  return true;
}

static void check_operands(const Tensor& input, const Tensor& weight, const Tensor* bias,
                           int64_t out_channels) {
  check_same_device(input, "input", weight, "weight");
  if (input.dtype == Dtype::kBool)
    fail_arg(TT_NOT_IMPLEMENTED, "input",
             "input is bool: convolutions of bool tensors are not defined");
  if (input.dtype != weight.dtype)
    fail_arg(TT_DTYPE, "weight", "input is {}, weight is {}: must have one dtype", fmt(input.dtype),
             fmt(weight.dtype));
  if (!bias) return;
  check_same_device(input, "input", *bias, "bias");
  if (bias->dtype != input.dtype)
    fail_arg(TT_DTYPE, "bias", "bias is {}, input is {}: must have one dtype", fmt(bias->dtype),
             fmt(input.dtype));
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
      p.transposed ? weight.size(0) : sure(weight.size(1), p.groups, 0, "groups");
  if (input.size(1) != channels)
    fail_arg(TT_SHAPE, "input",
             "input is {}, weight is {}, groups is {}: input must have {} channels", input.sizes(),
             weight.sizes(), p.groups, channels);
}

// The size of the result in dimension d; the ConvShape's other members are set.
static int64_t result_size(const ConvShape& s, int d, bool transposed, int64_t size, int64_t more) {
  const int64_t window = sure(s.dil[d], s.k[d] - 1, 1, "dilation");
  const int64_t both = sure(s.pad[d], 2, 0, "padding");
  if (transposed) {
    if (size < 1)
      fail_arg(TT_SHAPE, "input", "input has size {} in spatial dimension {}: must be positive",
               size, d);
    if (more >= s.stride[d] && more >= s.dil[d])
      fail_arg(TT_INVALID_ARG, "output_padding",
               "output_padding is {}, stride {}, dilation {}: must be smaller than either of them",
               more, s.stride[d], s.dil[d]);
    int64_t full = sure(size - 1, s.stride[d], window, "stride");
    full = sure(more, 1, full, "output_padding");
    if (full <= both)
      fail_arg(TT_SHAPE, "input", "the result has size {} in a spatial dimension: must be positive",
               full - both);
    return full - both;
  }
  const int64_t padded = sure(size, 1, both, "padding");
  if (padded < window)
    fail_arg(TT_SHAPE, "weight",
             "padded input has size {} in a spatial dimension, the window {}: must not be larger",
             padded, window);
  return (padded - window) / s.stride[d] + 1;
}

// Kernels take the offset of any coordinate of a window in the padded input: it must be a number. A
// step that nothing takes, to a second window or a second tap, is made no longer than what must be
// passed over.
static void check_padded(ConvShape* s, int64_t item, Ints padding) {
  const int64_t channels = s->ci > s->co ? s->ci : s->co;
  int64_t bytes = sure(sure(s->groups, channels, 0, "groups"), item * kOffsetSlack, 0, "groups");
  bytes = sure(bytes, s->n ? s->n : 1, 0, "input");
  for (int d = 0; d < kConvDims; d++) {
    int64_t size;
    if (__builtin_add_overflow(s->x[d], sure(s->pad[d], 2, 1, "padding"), &size) ||
        __builtin_mul_overflow(bytes, size, &bytes))
      fail_arg(TT_INVALID_ARG, "padding", "padding is {}: the size of the padded input overflows",
               padding);
    if (s->k[d] == 1 && s->dil[d] > size) s->dil[d] = size;
    if (s->y[d] <= 1 && s->stride[d] > size) s->stride[d] = size;
  }
}

Conv check_conv(const Tensor& input, const Tensor& weight, const Tensor* bias,
                const ConvParams& p) {
  const int64_t nd = weight.ndim - 2;
  const int64_t first = kConvDims - nd;
  if (nd < 1 || nd > kConvDims)
    fail_arg(TT_SHAPE, "weight", "weight is {}: must have 3 to 5 dimensions", weight.sizes());
  if (input.ndim != weight.ndim)
    fail_arg(TT_SHAPE, "input", "input is {}, weight is {}: must have as many dimensions",
             input.sizes(), weight.sizes());
  Conv c;
  ConvShape& s = c.s;
  int64_t more[kConvDims];
  for (int d = 0; d < first; d++) {
    s.x[d] = s.y[d] = s.k[d] = s.stride[d] = s.dil[d] = 1;
    s.pad[d] = 0;
  }
  spread(p.stride, nd, 1, 1, "stride", s.stride + first);
  spread(p.padding, nd, 0, 0, "padding", s.pad + first);
  spread(p.dilation, nd, 1, 1, "dilation", s.dil + first);
  spread(p.output_padding, nd, 0, 0, "output_padding", more + first);
  check_channels(input, weight, p);
  const int64_t channels =
      p.transposed ? sure(weight.size(1), p.groups, 0, "groups") : weight.size(0);
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
    const int64_t other = result_size(s, int(d), p.transposed, size, more[d]);
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
  c.compute = input.dtype == Dtype::kF64 || input.dtype == Dtype::kC128 ? Dtype::kF64
              : is_differentiable(input.dtype)                          ? Dtype::kF32
                                                                        : Dtype::kI64;
  c.device = input.device;
  c.weight_last = is_channels_last(weight);
  c.last = c.weight_last || is_channels_last(input);
  return c;
}

namespace impl {

// input with the batch that it may lack; its spatial dimensions are nd.
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

// padding = "same": the window's surplus is shared between the two sides, the right one gets the
// odd zero.
static TensorRef conv_same(int64_t nd, const Tensor& input, const Tensor& weight,
                           const Tensor* bias, Ints stride, Ints dilation, int64_t groups) {
  TensorRef x = batched(input, weight, nd);
  int64_t step[kConvDims], dil[kConvDims], pad[kConvDims];
  spread(stride, nd, 1, 1, "stride", step);
  spread(dilation, nd, 1, 1, "dilation", dil);
  const Shape given(x->sizes());
  for (int64_t d = 0; d < nd; d++) {
    if (step[d] != 1)
      fail_arg(TT_INVALID_ARG, "stride", "stride is {}: must be 1 for padding 'same'", stride);
    if (weight.size(d + 2) < 1)
      fail_arg(TT_SHAPE, "weight", "weight is {}: its spatial sizes must be positive",
               weight.sizes());
    const int64_t total = sure(dil[d], weight.size(d + 2) - 1, 0, "dilation");
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
    return padding.n == int64_t(__builtin_strlen(name)) &&
           __builtin_memcmp(padding.ptr, name, size_t(padding.n)) == 0;
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
