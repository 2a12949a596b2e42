// Convolutions and their transposes, of one to three spatial dimensions.
#include "nn/gen/layers.h"
#include "nn/lazy.h"
#include "ops/gen/ops.h"

namespace TT_NS {

namespace {

// Source of the padding: the numbers of `padding`, or one of two strings.
enum AutoPadding { kByNumbers, kValid, kSame };

void check_channels(int64_t in, int64_t out, int64_t groups) {
  if (in != kLazySize) check_size(in, "in_channels");
  check_size(out, "out_channels");
  if (groups < 1) fail_arg(TT_INVALID_ARG, "groups", "groups is {}: must be at least 1", groups);
  if (in != kLazySize && in % groups)
    fail_arg(TT_INVALID_ARG, "in_channels", "in_channels is {}: must be divisible by groups ({})",
             in, groups);
  if (out % groups)
    fail_arg(TT_INVALID_ARG, "out_channels", "out_channels is {}: must be divisible by groups ({})",
             out, groups);
}

// The number of dimensions does not depend on a batch, which the input may lack.
template <class A, int kDims, bool kTransposed> constexpr LazyLayer kLazyConv = {
    .weight_ndim = kDims + 2,
    .min_ndim = kDims + 1,
    .max_ndim = kDims + 2,
    .dim = -1 - kDims,
    .construct = construct_sized<A, &A::in_channels>,
    .size_in = [](const Module& m, const Tensor& weight) {
      return kTransposed ? weight.size(0) : weight.size(1) * args_of<A>(m).groups;
    }};

template <class A> void build_conv(Module& m, const A& a, bool transposed, const LazyLayer& lazy) {
  const Place place(a.dtype, a.device);
  check_channels(a.in_channels, a.out_channels, a.groups);
  Shape shape;
  shape.push_back(transposed ? a.in_channels : a.out_channels);
  shape.push_back((transposed ? a.out_channels : a.in_channels) / a.groups);
  for (int64_t size : a.kernel_size)
    if (size < 1)
      fail_arg(TT_INVALID_ARG, "kernel_size", "kernel_size is {}: must be positive",
               Ints(a.kernel_size));
  if (a.in_channels == kLazySize) return make_lazy(m, lazy, place, true, a.bias);
  shape.append(a.kernel_size);
  const double bound = fan_in_bound(shape);
  const int64_t out[1] = {a.out_channels};
  m.slots[0].tensor = uniform_parameter(place, shape, bound, "kernel_size");
  if (a.bias) m.slots[1].tensor = uniform_parameter(place, out, bound, "out_channels");
}

template <int kDims, class A> void build_forward(Module& m, const A& a) {
  if (a.auto_padding == kSame)
    for (int64_t s : a.stride)
      if (s != 1)
        fail_arg(TT_INVALID_ARG, "stride", "stride is {}: must be 1 for padding 'same'",
                 Ints(a.stride));
  build_conv(m, a, false, kLazyConv<A, kDims, false>);
}

template <int kDims, class A> void build_transposed(Module& m, const A& a) {
  if (a.padding_mode)
    fail_arg(TT_INVALID_ARG, "padding_mode",
             "padding_mode must be zeros: transposed convolutions support no other");
  build_conv(m, a, true, kLazyConv<A, kDims, true>);
}

// Computes the padding of each dimension, before and after the input.
template <class A> void padding_of(const A& a, Shape& before, Shape& after) {
  for (int64_t i = 0; i < a.kernel_size.size(); i++) {
    int64_t total = 0;
    if (a.auto_padding == kSame &&
        (sub_overflow(a.kernel_size[i], 1, &total) || mul_overflow(total, a.dilation[i], &total)))
      fail_arg(TT_INVALID_ARG, "dilation", "dilation is {}: the window overflows",
               Ints(a.dilation));
    const bool by_numbers = a.auto_padding == kByNumbers;
    before.push_back(by_numbers ? a.padding[i] : total / 2);
    after.push_back(by_numbers ? a.padding[i] : total - total / 2);
  }
}

constexpr const char* kModes[] = {"zeros", "reflect", "replicate", "circular"};

using Convolution = TensorRef (*)(const Tensor&, const Tensor&, const Tensor*, Ints, Ints, Ints,
                                  int64_t);

template <class A>
TensorList run_conv(Module& m, const A& a, const Tensor& input, Convolution conv) {
  Shape before, after;
  padding_of(a, before, after);
  if (a.padding_mode == 0 && same(before, after))
    return one(conv(input, m.slot(0), m.slot_opt(1), a.stride, before, a.dilation, a.groups));
  Shape pads;  // last dimension first, as for pad
  for (int64_t i = before.size(); i-- > 0;) {
    pads.push_back(before[i]);
    pads.push_back(after[i]);
  }
  TensorRef padded = op::pad(input, pads, a.padding_mode);
  Shape no_padding(before);
  for (int64_t& p : no_padding) p = 0;
  return one(conv(*padded, m.slot(0), m.slot_opt(1), a.stride, no_padding, a.dilation, a.groups));
}

void put_unquoted(Text& t, const char* name, const char* v) {
  put_name(t, name);
  t.add(v);
}

template <class A> void describe_head(const A& a, Text& t) {
  put(t, nullptr, a.in_channels);
  put(t, nullptr, a.out_channels);
  put(t, "kernel_size", a.kernel_size, true);
  put(t, "stride", a.stride, true);
}
// Prints whether there is a bias: a program may have removed or added it.
void describe_bias(const Module& m, Text& t) {
  if (!m.slot_opt(1)) put(t, "bias", false);
}
template <class A> void describe_conv(const Module& m, const A& a, Text& t) {
  describe_head(a, t);
  if (a.auto_padding) put_unquoted(t, "padding", a.auto_padding == kSame ? "same" : "valid");
  else if (differs(a.padding, 0)) put(t, "padding", a.padding, true);
  if (differs(a.dilation, 1)) put(t, "dilation", a.dilation, true);
  if (a.groups != 1) put(t, "groups", a.groups);
  describe_bias(m, t);
  if (a.padding_mode) put_unquoted(t, "padding_mode", kModes[a.padding_mode & 3]);
}
template <class A> void describe_transposed(const Module& m, const A& a, Text& t) {
  describe_head(a, t);
  if (differs(a.padding, 0)) put(t, "padding", a.padding, true);
  if (differs(a.dilation, 1)) put(t, "dilation", a.dilation, true);
  if (differs(a.output_padding, 0)) put(t, "output_padding", a.output_padding, true);
  if (a.groups != 1) put(t, "groups", a.groups);
  describe_bias(m, t);
}

}  // namespace

void build(Module& m, const Conv1dArgs& a) { build_forward<1>(m, a); }
void build(Module& m, const Conv2dArgs& a) { build_forward<2>(m, a); }
void build(Module& m, const Conv3dArgs& a) { build_forward<3>(m, a); }
void build(Module& m, const ConvTranspose1dArgs& a) { build_transposed<1>(m, a); }
void build(Module& m, const ConvTranspose2dArgs& a) { build_transposed<2>(m, a); }
void build(Module& m, const ConvTranspose3dArgs& a) { build_transposed<3>(m, a); }

TensorList forward_of(Module& m, const Conv1dArgs& a, TensorSpan in) {
  return run_conv(m, a, *in[0], op::conv1d);
}
TensorList forward_of(Module& m, const Conv2dArgs& a, TensorSpan in) {
  return run_conv(m, a, *in[0], op::conv2d);
}
TensorList forward_of(Module& m, const Conv3dArgs& a, TensorSpan in) {
  return run_conv(m, a, *in[0], op::conv3d);
}
TensorList forward_of(Module& m, const ConvTranspose1dArgs& a, TensorSpan in) {
  return one(op::conv_transpose1d(*in[0], m.slot(0), m.slot_opt(1), a.stride, a.padding,
                                  a.output_padding, a.groups, a.dilation));
}
TensorList forward_of(Module& m, const ConvTranspose2dArgs& a, TensorSpan in) {
  return one(op::conv_transpose2d(*in[0], m.slot(0), m.slot_opt(1), a.stride, a.padding,
                                  a.output_padding, a.groups, a.dilation));
}
TensorList forward_of(Module& m, const ConvTranspose3dArgs& a, TensorSpan in) {
  return one(op::conv_transpose3d(*in[0], m.slot(0), m.slot_opt(1), a.stride, a.padding,
                                  a.output_padding, a.groups, a.dilation));
}

void describe_of(const Module& m, const Conv1dArgs& a, Text& t) { describe_conv(m, a, t); }
void describe_of(const Module& m, const Conv2dArgs& a, Text& t) { describe_conv(m, a, t); }
void describe_of(const Module& m, const Conv3dArgs& a, Text& t) { describe_conv(m, a, t); }
void describe_of(const Module& m, const ConvTranspose1dArgs& a, Text& t) {
  describe_transposed(m, a, t);
}
void describe_of(const Module& m, const ConvTranspose2dArgs& a, Text& t) {
  describe_transposed(m, a, t);
}
void describe_of(const Module& m, const ConvTranspose3dArgs& a, Text& t) {
  describe_transposed(m, a, t);
}

}  // namespace TT_NS
