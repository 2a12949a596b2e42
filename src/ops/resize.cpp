// interpolate, in steps over two dimensions.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/image.h"
#include "plan/resize_build.h"

namespace TT_NS::impl {

// ---- the kernel ----

static TensorRef run_resize(const Kernel& kernel, const Tensor& from, Ints image, Ints size,
                            Ints result, int64_t mode, bool align, double scale_h, double scale_w,
                            bool last, bool backward) {
  const bool is_wide = backward || mode >= kResizeCubic;
  const Dtype dtype = is_wide && from.item_size() == 2 ? Dtype::kF32 : from.dtype;
  TensorRef x = image_input(from, last, dtype);
  TensorRef y = new_image(result, last, dtype, from.device);
  if (!y->numel) return y;
  ResizePlan p{};
  p.dtype = int32_t(dtype);
  p.channels_last = last;
  p.mode = int32_t(mode);
  p.align = align;
  p.n = image[0];
  p.c = image[1];
  const double factor[2] = {scale_h, scale_w};
  const bool single = mode != kResizeLinear && !resize_has_windows(p) && dtype != Dtype::kF64;
  for (int d = 0; d < 2; d++) {
    p.in[d] = image[2 + d];
    p.out[d] = size[d];
    p.scale[d] = resize_scale(p.in[d], p.out[d], factor[d], align, single);
  }
  build_resize(&p, backward);
  Workspace table(resize_table_bytes(&p), from.device);
  p.x = x->data;
  p.y = y->data;
  p.table = table.data();
  const int64_t threads = y->numel > kParallelGrain ? pool_threads(ctx().rt->pool) : 1;
  const int64_t room = resize_room_bytes(&p, backward);
  Workspace rooms(build_rooms(&p.rooms, room, room ? threads : 1), from.device);
  p.rooms.memory = rooms.data();
  launch_stages(kernel, from.device, &p.run);
  return image_input(*y, last, from.dtype);
}

TensorRef upsample2d(Call, const Tensor& self, Ints size, int64_t mode, bool align, double scale_h,
                     double scale_w) {
  Shape result(self.sizes());
  result[2] = size[0];
  result[3] = size[1];
  checked_numel(result, self.dtype, "size");
  return run_resize(kernel_resize, self, self.sizes(), size, result, mode, align, scale_h, scale_w,
                    channels_last(self), false);
}
TensorRef upsample2d_backward(Call, const Tensor& grad, Ints image, Ints size, int64_t mode,
                              bool align, double scale_h, double scale_w) {
  return run_resize(kernel_resize_backward, grad, image, size, image, mode, align, scale_h, scale_w,
                    channels_last(grad), true);
}

// ---- interpolate ----

// The sizes of the result, and the factors for resize_scale().
struct Target {
  int64_t n;  // dimensions
  int64_t size[3];
  double factor[3];
  bool antialias = false;
};

static int64_t scaled_size(int64_t size, double factor, const char* arg, double min_size) {
  const double n = libm::floor(double(size) * factor);
  if (!(n >= min_size && n < 0x1p31))
    fail_arg(TT_INVALID_ARG, arg, "{} is {}: size {} would become {}: must be in [{}, 2^31 - 1]",
             arg, factor, size, n, min_size);
  return int64_t(n);
}

static Target target_of(const Tensor& input, Ints size, Opt<double> scale_factor,
                        const Opt<double>* scales, bool recompute, double min_size) {
  static const char* const kNames[3] = {"scale_d", "scale_h", "scale_w"};
  Target t{input.ndim - 2, {}, {}, false};
  for (int64_t d = 0; d < 3 - t.n; d++)
    if (scales[d])
      fail_arg(TT_SHAPE, kNames[d], "{} is given: input is {}, which has {} spatial dimensions",
               kNames[d], input.sizes(), t.n);
  for (int64_t d = 0; d < t.n; d++) {
    if (input.size(d + 2) < 1 || input.size(d + 2) > INT32_MAX)
      fail_arg(TT_SHAPE, "input", "input is {}: sizes must be in [1, 2^31 - 1]", input.sizes());
    if (size.n) continue;
    const Opt<double>& own = scales[3 - t.n + d];
    const double factor = own ? *own : scale_factor.or_else(0);
    t.size[d] = scaled_size(input.size(d + 2), factor, own ? kNames[3 - t.n + d] : "scale_factor",
                            min_size);
    t.factor[d] = recompute ? 0 : factor;
  }
  if (size.n) expand_dims_list(size, t.n, 0, 1, "size", t.size);
  return t;
}

static int64_t kernel_mode(int64_t mode, bool antialias) {
  if (mode == kInterpolationNearest) return kResizeNearest;
  if (mode == kInterpolationNearestExact) return kResizeNearestExact;
  if (mode == kInterpolationBicubic) return antialias ? kResizeSmoothCubic : kResizeCubic;
  return antialias ? kResizeSmoothLinear : kResizeLinear;
}

// Resizes three dimensions in two steps: first height and width, of images with depth as channels;
// then depth, of images whose other dimension is height x width.
struct Steps3d {
  int64_t planes[4];     // the shape for the first step
  int64_t deep[4];       // for the second
  int64_t deep_size[2];  // the result of the second
  int64_t result[5];
  Steps3d(const Tensor& x, const Target& t)
      : planes{x.size(0), x.size(1) * x.size(2), x.size(3), x.size(4)},
        deep{x.size(0), x.size(1), x.size(2), t.size[1] * t.size[2]},
        deep_size{t.size[0], deep[3]},
        result{x.size(0), x.size(1), t.size[0], t.size[1], t.size[2]} {}
};

// A single dimension is resized as the columns of images with one row.
static TensorRef resized(const Tensor& x, const Target& t, int64_t mode, bool align) {
  int64_t kernel = kernel_mode(mode, t.antialias);
  if (t.n == 2) return op::upsample2d(x, Ints(t.size, 2), kernel, align, t.factor[0], t.factor[1]);
  if (mode == kInterpolationNearest) kernel = kResizeNearestScaled;
  if (t.n == 1) {
    const int64_t size[2] = {1, t.size[0]};
    const int64_t row[1] = {2};
    const TensorRef images = op::unsqueeze(*op::contiguous(x), 2);
    return op::squeeze_dims(*op::upsample2d(images, size, kernel, align, 0, t.factor[0]), row);
  }
  const Steps3d steps(x, t);
  TensorRef y = op::upsample2d(*op::reshape(x, steps.planes), Ints(t.size + 1, 2), kernel, align,
                               t.factor[1], t.factor[2]);
  y = op::upsample2d(*op::reshape(*y, steps.deep), steps.deep_size, kernel, align, t.factor[0], 0);
  return op::reshape(*y, steps.result);
}
static TensorRef averaged(const Tensor& x, const Target& t) {
  if (t.n == 1) return op::adaptive_avg_pool1d(x, Ints(t.size, 1));
  if (t.n == 2) return op::adaptive_avg_pool2d(x, Ints(t.size, 2));
  const Steps3d steps(x, t);
  TensorRef y = op::adaptive_avg_pool2d(*op::reshape(x, steps.planes), Ints(t.size + 1, 2));
  y = op::adaptive_avg_pool2d(*op::reshape(*y, steps.deep), steps.deep_size);
  return op::reshape(*y, steps.result);
}

// Rounds byte values to nearest, halves up.
static TensorRef rounded(const Tensor& t) {
  const Scalar low(0);
  const Scalar high(255);
  const Scalar half(0.5);
  return op::clamp(*op::floor(*op::add(t, half)), &low, &high);
}

static void check_mode(const Tensor& input, int64_t mode, const Opt<bool>& align_corners) {
  static constexpr int8_t kDims[] = {0, 3, 4, 0, 0, 4, 5};  // of input; 0: any of these
  if (input.ndim < 3 || input.ndim > 5 || (kDims[mode] && kDims[mode] != input.ndim))
    fail_arg(TT_NOT_IMPLEMENTED, "input",
             "input is {}: must have 3 to 5 dimensions, for linear 3, bilinear and bicubic 4, "
             "trilinear 5",
             input.sizes());
  if (!kDims[mode] && align_corners)
    fail_arg(TT_INVALID_ARG, "align_corners", "align_corners is given: this mode does not use it");
}

TensorRef interpolate(Call, const Tensor& input, Ints size, Opt<double> scale_factor, int64_t mode,
                      Opt<bool> align_corners, Opt<bool> recompute_scale_factor, bool antialias,
                      Opt<double> scale_d, Opt<double> scale_h, Opt<double> scale_w) {
  const Opt<double> scales[3] = {scale_d, scale_h, scale_w};
  const bool factors = scale_factor || scale_d || scale_h || scale_w;
  check_mode(input, mode, align_corners);
  if (antialias && mode != kInterpolationBilinear && mode != kInterpolationBicubic)
    fail_arg(TT_INVALID_ARG, "antialias", "antialias is true: mode must be bilinear or bicubic");
  if (factors == (size.n > 0))
    fail_arg(TT_INVALID_ARG, "size", "either size or scale_factor must be given");
  if (size.n && recompute_scale_factor.or_else(false))
    fail_arg(TT_INVALID_ARG, "recompute_scale_factor",
             "recompute_scale_factor is given: it cannot be combined with size");
  const bool bytes =
      input.dtype == Dtype::kU8 && mode != kInterpolationArea && mode != kInterpolationTrilinear;
  if (!is_float(input.dtype) && !bytes)
    fail_arg(TT_NOT_IMPLEMENTED, "input", "input is {}: must be floating, or uint8",
             fmt(input.dtype));
  const bool recompute = recompute_scale_factor.or_else(false) || mode == kInterpolationArea;
  const bool align = align_corners.or_else(false);
  Target t =
      target_of(input, size, scale_factor, scales, recompute, mode == kInterpolationArea ? 0 : 1);
  Shape result(input.sizes().slice(0, 2));
  result.append(Ints(t.size, t.n));
  checked_numel(result, Dtype::kF64, "size");
  t.antialias = antialias;
  if (mode == kInterpolationArea) return averaged(input, t);
  // Intermediate results of 16-bit dtypes, and bytes but those that are resized over windows, are
  // f32 and are rounded once, at the end.
  const bool steps =
      input.item_size() == 2 && (t.n == 3 || antialias || mode == kInterpolationBicubic);
  const bool images = mode == kInterpolationBilinear || mode == kInterpolationBicubic;
  if (bytes ? images : !steps) return resized(input, t, mode, align);
  TensorRef y = resized(*op::to_dtype(input, Dtype::kF32), t, mode, align);
  return bytes ? op::to_dtype(*rounded(*y), input.dtype) : op::to_dtype(*y, input.dtype);
}

}  // namespace TT_NS::impl
