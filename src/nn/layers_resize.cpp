// Resizing of images.
#include "nn/gen/layers.h"
#include "ops/gen/ops.h"

namespace TT_NS {

namespace {

constexpr const char* kModes[] = {"nearest", "linear",  "bilinear", "nearest-exact",
                                  "area",    "bicubic", "trilinear"};

void put_if_given(Text& t, const char* name, Opt<double> v) {
  if (v) put(t, name, v);
}

template <class A> void describe_resize(const A& a, Opt<double> scale_d, int64_t mode, Text& t) {
  if (a.size.size()) put(t, "size", a.size);
  put_if_given(t, "scale_factor", a.scale_factor);
  put_if_given(t, "scale_d", scale_d);
  put_if_given(t, "scale_h", a.scale_h);
  put_if_given(t, "scale_w", a.scale_w);
  put(t, "mode", kModes[mode]);
}

template <class A>
TensorList resized_image(const A& a, const Tensor& input, int64_t mode, Opt<bool> align_corners) {
  if (input.ndim != 4)
    fail_arg(TT_SHAPE, "input", "input is {}: must be (N, C, H, W)", input.sizes());
  return one(op::interpolate(input, a.size, a.scale_factor, mode, align_corners, {}, false, {},
                             a.scale_h, a.scale_w));
}

}  // namespace

TensorList forward_of(Module&, const UpsampleArgs& a, TensorSpan in) {
  return one(op::interpolate(*in[0], a.size, a.scale_factor, a.mode, a.align_corners,
                             a.recompute_scale_factor, false, a.scale_d, a.scale_h, a.scale_w));
}
TensorList forward_of(Module&, const UpsamplingNearest2dArgs& a, TensorSpan in) {
  return resized_image(a, *in[0], kInterpolationNearest, {});
}
TensorList forward_of(Module&, const UpsamplingBilinear2dArgs& a, TensorSpan in) {
  return resized_image(a, *in[0], kInterpolationBilinear, true);
}

void describe_of(const Module&, const UpsampleArgs& a, Text& t) {
  describe_resize(a, a.scale_d, a.mode, t);
}
void describe_of(const Module&, const UpsamplingNearest2dArgs& a, Text& t) {
  describe_resize(a, {}, kInterpolationNearest, t);
}
void describe_of(const Module&, const UpsamplingBilinear2dArgs& a, Text& t) {
  describe_resize(a, {}, kInterpolationBilinear, t);
}

}  // namespace TT_NS
