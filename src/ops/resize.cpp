// interpolate, in steps over two dimensions.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/image.h"
#include "plan/resize_build.h"

#include <string.h>

namespace TT_NS::impl {

// ---- the kernel ----

// Returns the number of input elements per result element. factor: out / in given by the caller, or
// 0 to use the sizes. single: computed in float, as PyTorch does.
static double scale_of(int64_t in, int64_t out, double factor, bool align, bool single) {
  if (align) {
    if (out < 2) return 0;
    return single ? double(float(in - 1) / float(out - 1)) : double(in - 1) / double(out - 1);
  }
  if (factor > 0) return 1 / factor;
  return single ? double(float(in) / float(out)) : double(in) / double(out);
}

static TensorRef run_resize(const Kernel& kernel, const Tensor& from, Ints image, Ints size,
                            Ints result, int64_t mode, bool align, double scale_h, double scale_w,
                            bool last, bool backward) {
  const Dtype dtype = backward && from.item_size() == 2 ? Dtype::kF32 : from.dtype;
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
  for (int d = 0; d < 2; d++) {
    p.in[d] = image[2 + d];
    p.out[d] = size[d];
    p.scale[d] = scale_of(p.in[d], p.out[d], factor[d], align,
                          mode != kResizeLinear && dtype != Dtype::kF64);
  }
  build_resize(&p, backward);
  Workspace table(resize_table_bytes(&p), from.device);
  p.x = x->data;
  p.y = y->data;
  p.table = table.data();
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

// ---- bicubic, antialiasing: a matrix product with the weights of each dimension ----

// Keys' kernel with a = -3/4.
static double cubic(double x) {
  const double a = -0.75;
  x = libm::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}
// Without a kernel, so that captured graphs have the weights as a constant.
static TensorRef zeros_on_host(Ints shape) {
  TensorRef w = new_tensor(shape, Dtype::kF64, kCpuDevice);
  if (w->numel) memset(w->data, 0, size_t(w->numel * w->item_size()));
  return w;
}
// [out][in]: the weights of the two or four elements around each result; weights beyond the border
// are added to the border's.
static TensorRef near_weights(int64_t in, int64_t out, double scale, bool bicubic, bool align) {
  const int64_t shape[2] = {out, in};
  checked_numel(shape, Dtype::kF64, "size");
  TensorRef w = zeros_on_host(shape);
  for (int64_t o = 0; o < out; o++) {
    double at = align ? scale * double(o) : scale * (double(o) + 0.5) - 0.5;
    if (!bicubic && at < 0) at = 0;
    const double low = libm::floor(at);
    for (int64_t k = bicubic ? -1 : 0; k < (bicubic ? 3 : 2); k++) {
      const int64_t i = int64_t(low) + k;
      const int64_t inside = clamp<int64_t>(i, 0, in - 1);
      const double distance = at - double(i);
      w->as<double>()[o * in + inside] += bicubic ? cubic(distance) : 1 - libm::fabs(distance);
    }
  }
  return w;
}
// The filters of antialiasing, which are those of PIL: a triangle, and Keys' kernel with a = -1/2.
static double smooth_filter(double x, bool bicubic) {
  const double a = -0.5;
  x = libm::fabs(x);
  if (!bicubic) return x < 1 ? 1 - x : 0;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((x - 5) * x + 8) * x * a - 4 * a;
  return 0;
}
// [out][in]: the filter around each result, as wide as `scale` elements of the input if that is
// more than one; its weights add up to 1.
static TensorRef smooth_weights(int64_t in, int64_t out, double scale, bool bicubic) {
  const int64_t shape[2] = {out, in};
  checked_numel(shape, Dtype::kF64, "size");
  TensorRef w = zeros_on_host(shape);
  const double width = scale > 1 ? scale : 1;
  const double reach = (bicubic ? 2 : 1) * width;
  for (int64_t o = 0; o < out; o++) {
    const double center = scale * (double(o) + 0.5);
    const double last = center + reach + 0.5;
    const int64_t begin = int64_t(clamp(center - reach + 0.5, 0.0, double(in)));
    const int64_t end = last < double(in) ? int64_t(last) : in;
    double* row = w->as<double>() + o * in;
    double total = 0;
    for (int64_t i = begin; i < end; i++) {
      row[i] = smooth_filter((double(i) - center + 0.5) / width, bicubic);
      total += row[i];
    }
    for (int64_t i = begin; total != 0 && i < end; i++) row[i] /= total;
  }
  return w;
}
// Rounds weights to 16-bit integers times the least power of two with which they fit, as PyTorch
// does for bytes.
static void round_weights(const Tensor& w) {
  double* x = w.as<double>();
  double largest = 0;
  for (int64_t i = 0; i < w.numel; i++) largest = x[i] > largest ? x[i] : largest;
  double unit = 1;
  for (int bits = 0; bits < 22 && libm::floor(2 * unit * largest + 0.5) < 0x1p15; bits++) unit *= 2;
  for (int64_t i = 0; i < w.numel; i++)
    x[i] = double(int64_t(x[i] * unit + libm::copysign(0.5, x[i]))) / unit;
}
struct Filter {
  bool bicubic, antialias, align;
  bool bytes = false;

  TensorRef weights(const Tensor& x, int64_t d, int64_t out, double factor) const {
    const int64_t in = x.size(d);
    const double scale = scale_of(in, out, factor, align, false);
    TensorRef w = antialias ? smooth_weights(in, out, scale, bicubic)
                            : near_weights(in, out, scale, bicubic, align);
    if (bytes) round_weights(*w);
    note_host_write(*w);
    MaskGuard no_grad(bit(kKeyAutograd));
    return op::to(*w, x.dtype, Opt<Device>(x.device));
  }
};
static TensorRef filtered(const Tensor& x, Ints size, const Filter& filter, const double* factor) {
  TensorRef rows = filter.weights(x, 2, size[0], factor[0]);
  TensorRef columns = filter.weights(x, 3, size[1], factor[1]);
  return op::matmul(*op::matmul(*rows, x), *op::transpose(*columns, 0, 1));
}

// ---- interpolate ----

// The sizes of the result, and the factors for scale_of().
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
  for (int64_t d = 0; d < t.n; d++) {
    if (input.size(d + 2) < 1 || input.size(d + 2) > INT32_MAX)
      fail_arg(TT_SHAPE, "input", "input is {}: sizes must be in [1, 2^31 - 1]", input.sizes());
    if (size.n) {
      if (size.n != 1 && size.n != t.n)
        fail_arg(TT_INVALID_ARG, "size", "size is {}: must have 1 or {} numbers", size, t.n);
      t.size[d] = size[size.n == 1 ? 0 : d];
      if (t.size[d] < 1) fail_arg(TT_INVALID_ARG, "size", "size is {}: must be at least 1", size);
      continue;
    }
    const Opt<double>& own = scales[3 - t.n + d];
    const double factor = own ? *own : scale_factor.or_else(0);
    t.size[d] = scaled_size(input.size(d + 2), factor, own ? kNames[3 - t.n + d] : "scale_factor",
                            min_size);
    t.factor[d] = recompute ? 0 : factor;
  }
  return t;
}

static int64_t kernel_mode(int64_t mode) {
  if (mode == kInterpolationNearest) return kResizeNearest;
  return mode == kInterpolationNearestExact ? kResizeNearestExact : kResizeLinear;
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
  const bool bicubic = mode == kInterpolationBicubic;
  if (t.n == 2 && (bicubic || t.antialias))
    return filtered(x, Ints(t.size, 2), {bicubic, t.antialias, align}, t.factor);
  if (t.n == 2)
    return op::upsample2d(x, Ints(t.size, 2), kernel_mode(mode), align, t.factor[0], t.factor[1]);
  const int64_t kernel =
      mode == kInterpolationNearest ? int64_t(kResizeNearestScaled) : kernel_mode(mode);
  if (t.n == 1) {
    const int64_t size[2] = {1, t.size[0]};
    const int64_t row[1] = {2};
    return op::squeeze_dims(
        *op::upsample2d(*op::unsqueeze(x, 2), size, kernel, align, 0, t.factor[0]), row);
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

// Resizes images of bytes, here as doubles. Like PyTorch, rows are resized and rounded before
// columns.
static TensorRef resized_bytes(const Tensor& x, const Target& t, bool bicubic, bool align) {
  const Filter filter = {bicubic, t.antialias, align, true};
  TensorRef columns = filter.weights(x, 3, t.size[1], t.factor[1]);
  TensorRef y = rounded(*op::matmul(x, *op::transpose(*columns, 0, 1)));
  TensorRef rows = filter.weights(*y, 2, t.size[0], t.factor[0]);
  return rounded(*op::matmul(*rows, *y));
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
  // Intermediate results of 16-bit dtypes are f32 and are rounded once, at the end.
  const bool steps =
      input.item_size() == 2 && (t.n == 3 || antialias || mode == kInterpolationBicubic);
  if (!bytes && !steps) return resized(input, t, mode, align);
  if (bytes && t.n == 2 && kernel_mode(mode) == kResizeLinear) {
    TensorRef wide = op::to_dtype(input, Dtype::kF64);
    return op::to_dtype(*resized_bytes(*wide, t, mode == kInterpolationBicubic, align),
                        input.dtype);
  }
  TensorRef y = resized(*op::to_dtype(input, Dtype::kF32), t, mode, align);
  return bytes ? op::to_dtype(*rounded(*y), input.dtype) : op::to_dtype(*y, input.dtype);
}

}  // namespace TT_NS::impl
