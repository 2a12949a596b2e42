// Pooling.
#include "nn/gen/layers.h"
#include "ops/gen/ops.h"

namespace TT_NS {

namespace {

// Replaces negative numbers by the input's own sizes.
Shape adaptive_size(const Shape& wanted, const Tensor& input, int64_t n) {
  Shape out(wanted);
  if (out.size() == 1)
    while (out.size() < n) out.push_back(out[0]);
  for (int64_t i = 0; i < out.size() && out.size() <= input.ndim; i++)
    if (out[i] < 0) out[i] = input.size(i - out.size());
  return out;
}

TensorList both(TensorPair p) {
  TensorList l = one(std::move(p.first));
  l.push_back(std::move(p.second));
  return l;
}

TensorList maxima(TensorPair p, bool return_indices) {
  return return_indices ? both(std::move(p)) : one(std::move(p.first));
}

template <class A> void check_fractional(const A& a) {
  if (!a.output_size.empty() && a.output_ratio)
    fail_arg(TT_INVALID_ARG, "output_ratio", "output_size is given, too: only one is allowed");
  if (a.output_ratio && !(*a.output_ratio > 0 && *a.output_ratio < 1))
    fail_arg(TT_INVALID_ARG, "output_ratio", "output_ratio is {}: must be in (0, 1)",
             *a.output_ratio);
}

// Returns the given output size, or the input's times output_ratio, of n spatial dimensions.
template <class A>
Shape fractional_size(const Module& m, const A& a, const Tensor& input, int64_t n) {
  Shape out(a.output_size);
  if (!a.output_ratio) {
    if (out.empty())
      fail_arg(TT_INVALID_ARG, "m", "{} has neither output_size nor output_ratio", m.type->name);
    expand(out, n, "output_size");
    return out;
  }
  if (input.ndim < n)
    fail_arg(TT_SHAPE, "input", "input is {}: must have {} dimensions or more", input.sizes(), n);
  for (int64_t d = input.ndim - n; d < input.ndim; d++)
    out.push_back(int64_t(double(input.size(d)) * *a.output_ratio));
  return out;
}

}  // namespace

void describe_of(const Module&, const AvgPool1dArgs& a, Text& t) {
  put(t, "kernel_size", a.kernel_size, true);
  put(t, "stride", a.stride, true);
  put(t, "padding", a.padding, true);
}

TensorList forward_of(Module&, const MaxPool1dArgs& a, TensorSpan in) {
  if (a.return_indices)
    return both(op::max_pool1d_with_indices(*in[0], a.kernel_size, a.stride, a.padding, a.dilation,
                                            a.ceil_mode));
  return one(op::max_pool1d(*in[0], a.kernel_size, a.stride, a.padding, a.dilation, a.ceil_mode));
}
TensorList forward_of(Module&, const MaxPool2dArgs& a, TensorSpan in) {
  if (a.return_indices)
    return both(op::max_pool2d_with_indices(*in[0], a.kernel_size, a.stride, a.padding, a.dilation,
                                            a.ceil_mode));
  return one(op::max_pool2d(*in[0], a.kernel_size, a.stride, a.padding, a.dilation, a.ceil_mode));
}
TensorList forward_of(Module&, const AdaptiveAvgPool1dArgs& a, TensorSpan in) {
  return one(op::adaptive_avg_pool1d(*in[0], adaptive_size(a.output_size, *in[0], 1)));
}
TensorList forward_of(Module&, const AdaptiveAvgPool2dArgs& a, TensorSpan in) {
  return one(op::adaptive_avg_pool2d(*in[0], adaptive_size(a.output_size, *in[0], 2)));
}

TensorList forward_of(Module&, const AdaptiveMaxPool1dArgs& a, TensorSpan in) {
  return maxima(op::adaptive_max_pool1d(*in[0], adaptive_size(a.output_size, *in[0], 1)),
                a.return_indices);
}
TensorList forward_of(Module&, const AdaptiveMaxPool2dArgs& a, TensorSpan in) {
  return maxima(op::adaptive_max_pool2d(*in[0], adaptive_size(a.output_size, *in[0], 2)),
                a.return_indices);
}
TensorList forward_of(Module&, const MaxPool3dArgs& a, TensorSpan in) {
  if (a.return_indices)
    return both(op::max_pool3d_with_indices(*in[0], a.kernel_size, a.stride, a.padding, a.dilation,
                                            a.ceil_mode));
  return one(op::max_pool3d(*in[0], a.kernel_size, a.stride, a.padding, a.dilation, a.ceil_mode));
}
TensorList forward_of(Module&, const AdaptiveAvgPool3dArgs& a, TensorSpan in) {
  return one(op::adaptive_avg_pool3d(*in[0], adaptive_size(a.output_size, *in[0], 3)));
}
TensorList forward_of(Module&, const AdaptiveMaxPool3dArgs& a, TensorSpan in) {
  return maxima(op::adaptive_max_pool3d(*in[0], adaptive_size(a.output_size, *in[0], 3)),
                a.return_indices);
}

void build(Module&, const FractionalMaxPool2dArgs& a) { check_fractional(a); }
void build(Module&, const FractionalMaxPool3dArgs& a) { check_fractional(a); }
TensorList forward_of(Module& m, const FractionalMaxPool2dArgs& a, TensorSpan in) {
  return maxima(
      op::fractional_max_pool2d(*in[0], a.kernel_size, fractional_size(m, a, *in[0], 2), nullptr),
      a.return_indices);
}
TensorList forward_of(Module& m, const FractionalMaxPool3dArgs& a, TensorSpan in) {
  return maxima(
      op::fractional_max_pool3d(*in[0], a.kernel_size, fractional_size(m, a, *in[0], 3), nullptr),
      a.return_indices);
}

}  // namespace TT_NS
