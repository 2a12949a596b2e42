// Pooling over the last three dimensions, as pooling of rows and columns, and then of depth: the
// maximum and the sum of a box are those of its planes.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/image.h"
#include "ops/impl.h"

namespace TT_NS::impl {

// ---- geometry ----

// One number per dimension: depth, rows, columns.
struct Three {
  int64_t v[3];
  int64_t n;  // 0: the argument is left out

  Three(Ints list, const char* arg, bool required = false) : v{}, n(list.n ? 3 : 0) {
    if (required && !list.n)
      fail_arg(TT_INVALID_ARG, arg, "{} is empty: must have 1 or 3 numbers", arg);
    // Pooling of planes refuses numbers that are too small.
    expand_dims_list(list, n, 0, INT64_MIN, arg, v);
  }
  Ints plane() const { return {v + 1, n ? 2 : 0}; }
};
// The number of the depth, for images whose columns are not pooled: that of columns is `idle`.
struct Deep {
  int64_t v[2];
  int64_t n;
  Deep(const Three& t, int64_t idle) : v{t.v[0], idle}, n(t.n ? 2 : 0) {}
  operator Ints() const { return {v, n}; }
};

// (C, D, H, W) or (N, C, D, H, W), and the shapes of the two steps.
struct Volume {
  int64_t n, c, depth, height, width;

  explicit Volume(const Tensor& self) {
    if (self.ndim != 4 && self.ndim != 5)
      fail_arg(TT_SHAPE, "self", "self is {}: must be (C, D, H, W) or (N, C, D, H, W)",
               self.sizes());
    n = self.ndim == 5 ? self.size(0) : 1;
    c = self.size(-4);
    depth = self.size(-3);
    height = self.size(-2);
    width = self.size(-1);
    for (int64_t d = self.ndim == 5 ? 1 : 0; d < self.ndim; d++)
      if (self.size(d) == 0)
        fail_arg(TT_SHAPE, "self", "self is {}: only N may be 0", self.sizes());
  }
  // As images of rows and columns.
  TensorRef planes(const Tensor& self) const {
    const int64_t shape[4] = {n, c * depth, height, width};
    return op::reshape(self, shape);
  }
  // Pooled planes as images of depth and pixels.
  TensorRef columns(const Tensor& planes) const {
    const int64_t shape[4] = {n, c, depth, planes.size(2) * planes.size(3)};
    return op::reshape(planes, shape);
  }
  TensorRef result(const Tensor& self, const Tensor& columns, const Tensor& planes) const {
    Shape shape(self.sizes());
    shape[self.ndim - 3] = columns.size(2);
    shape[self.ndim - 2] = planes.size(2);
    shape[self.ndim - 1] = planes.size(3);
    return op::reshape(columns, shape);
  }
};

// Indices of maxima in boxes: `of_planes` in the planes, `of_columns` in depth and pixels.
static TensorRef box_indices(const Volume& volume, const Tensor& of_planes,
                             const Tensor& of_columns) {
  const int64_t pixels = of_columns.size(3);
  const int64_t flat_in[3] = {volume.n, volume.c, volume.depth * pixels};
  const int64_t flat_out[3] = {volume.n, volume.c, of_columns.size(2) * pixels};
  TensorRef at = op::reshape(of_columns, flat_out);
  TensorRef in_plane = op::gather(*op::reshape(of_planes, flat_in), 2, *at);
  TensorRef depth = op::div(*at, Scalar(TT_NS::max<int64_t>(pixels, 1)), kRoundingFloor);
  TensorRef index = op::add(*in_plane, *depth, Scalar(volume.height * volume.width));
  return op::reshape(*index, of_columns.sizes());
}

// ---- max ----

TensorRef max_pool3d(Call, const Tensor& self, Ints kernel_size, Ints stride, Ints padding,
                     Ints dilation, bool ceil_mode) {
  const Volume volume(self);
  const Three kernel(kernel_size, "kernel_size", true);
  const Three step(stride, "stride");
  const Three pad(padding, "padding");
  const Three gap(dilation, "dilation");
  TensorRef planes = op::max_pool2d(*volume.planes(self), kernel.plane(), step.plane(), pad.plane(),
                                    gap.plane(), ceil_mode);
  TensorRef columns = op::max_pool2d(*volume.columns(*planes), Deep(kernel, 1), Deep(step, 1),
                                     Deep(pad, 0), Deep(gap, 1), ceil_mode);
  return volume.result(self, *columns, *planes);
}

TensorPair max_pool3d_with_indices(Call, const Tensor& self, Ints kernel_size, Ints stride,
                                   Ints padding, Ints dilation, bool ceil_mode) {
  const Volume volume(self);
  const Three kernel(kernel_size, "kernel_size", true);
  const Three step(stride, "stride");
  const Three pad(padding, "padding");
  const Three gap(dilation, "dilation");
  TensorPair planes = op::max_pool2d_with_indices(
      *volume.planes(self), kernel.plane(), step.plane(), pad.plane(), gap.plane(), ceil_mode);
  TensorPair columns =
      op::max_pool2d_with_indices(*volume.columns(*planes.first), Deep(kernel, 1), Deep(step, 1),
                                  Deep(pad, 0), Deep(gap, 1), ceil_mode);
  TensorRef index = box_indices(volume, *planes.second, *columns.second);
  return {volume.result(self, *columns.first, *planes.first),
          volume.result(self, *index, *planes.first)};
}

// ---- adaptive ----

// Sizes of the result; a size of 0 is computed as 1 and removed at the end.
struct AdaptiveSizes {
  Three given;
  int64_t v[3];

  explicit AdaptiveSizes(Ints output_size) : given(output_size, "output_size", true), v{} {
    for (int d = 0; d < 3; d++) {
      if (given.v[d] < 0)
        fail_arg(TT_INVALID_ARG, "output_size", "output_size is {}: must be at least 0",
                 output_size);
      v[d] = TT_NS::max<int64_t>(given.v[d], 1);
    }
  }
  Ints plane() const { return {v + 1, 2}; }
  TensorRef cut(TensorRef y) const {
    for (int64_t d = 0; d < 3; d++)
      if (given.v[d] == 0) y = op::slice(*y, d - 3, 0, 0);
    return y;
  }
};

TensorRef adaptive_avg_pool3d(Call, const Tensor& self, Ints output_size) {
  if (!is_float(self.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be floating", fmt(self.dtype));
  const Volume volume(self);
  const AdaptiveSizes size(output_size);
  const bool narrow = self.item_size() == 2;  // rounded once, at the end
  TensorRef x = narrow ? op::to_dtype(self, Dtype::kF32) : TensorRef::share(&self);
  TensorRef planes = op::adaptive_avg_pool2d(*volume.planes(*x), size.plane());
  TensorRef pixels = volume.columns(*planes);
  const int64_t deep[2] = {size.v[0], pixels->size(3)};
  TensorRef y = size.cut(volume.result(self, *op::adaptive_avg_pool2d(*pixels, deep), *planes));
  return narrow ? op::to_dtype(*y, self.dtype) : std::move(y);
}

TensorPair adaptive_max_pool3d(Call, const Tensor& self, Ints output_size) {
  const Volume volume(self);
  const AdaptiveSizes size(output_size);
  TensorPair planes = op::adaptive_max_pool2d(*volume.planes(self), size.plane());
  TensorRef pixels = volume.columns(*planes.first);
  const int64_t deep[2] = {size.v[0], pixels->size(3)};
  TensorPair columns = op::adaptive_max_pool2d(*pixels, deep);
  TensorRef index = box_indices(volume, *planes.second, *columns.second);
  return {size.cut(volume.result(self, *columns.first, *planes.first)),
          size.cut(volume.result(self, *index, *planes.first))};
}

// ---- average ----

// The elements of each window along one dimension: with the padding, which ends at n + pad, or
// without.
static TensorRef window_counts(int64_t n, int64_t windows, int64_t kernel, int64_t stride,
                               int64_t pad, bool count_pad, Device device) {
  TensorRef counts = new_tensor(Ints(&windows, 1), Dtype::kI64, kCpuDevice);
  for (int64_t o = 0; o < windows; o++) {
    const int64_t begin = o * stride - pad;
    const int64_t end = kernel > n + pad - begin ? n + pad : begin + kernel;
    const int64_t inside = TT_NS::min(end, n) - TT_NS::max<int64_t>(begin, 0);
    counts->as<int64_t>()[o] = count_pad ? end - begin : inside;
  }
  note_host_write(*counts);
  return device.type == TT_CPU ? std::move(counts) : op::to_device(*counts, device);
}

TensorRef avg_pool3d(Call, const Tensor& self, Ints kernel_size, Ints stride, Ints padding,
                     bool ceil_mode, bool count_include_pad, Opt<int64_t> divisor_override) {
  if (!is_float(self.dtype) && self.dtype != Dtype::kI64)
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be floating or int64", fmt(self.dtype));
  const Volume volume(self);
  const Three kernel(kernel_size, "kernel_size", true);
  const Three step(stride.n ? stride : kernel_size, "stride");
  const Three pad(padding, "padding");
  int64_t elements;
  if (divisor_override.has && *divisor_override == 0)
    fail_arg(TT_INVALID_ARG, "divisor_override", "divisor_override is 0: must not be 0");
  if (mul_overflow(kernel.v[0], kernel.v[1], &elements) ||
      mul_overflow(elements, kernel.v[2], &elements))
    fail_arg(TT_INVALID_ARG, "kernel_size",
             "kernel_size is {}: the number of elements of a window overflows", kernel_size);
  const bool narrow = self.item_size() == 2;  // rounded once, at the end
  TensorRef x = narrow ? op::to_dtype(self, Dtype::kF32) : TensorRef::share(&self);
  // Divided by 1, averages are sums.
  TensorRef planes = op::avg_pool2d(*volume.planes(*x), kernel.plane(), step.plane(), pad.plane(),
                                    ceil_mode, true, Opt<int64_t>(1));
  TensorRef columns = op::avg_pool2d(*volume.columns(*planes), Deep(kernel, 1), Deep(step, 1),
                                     Deep(pad, 0), ceil_mode, true, Opt<int64_t>(1));
  TensorRef sum = volume.result(self, *columns, *planes);
  const int64_t rounding = is_float(sum->dtype) ? kRoundingNone : kRoundingTrunc;
  TensorRef y;
  if (divisor_override.has) {
    y = op::div(*sum, Scalar(*divisor_override), rounding);
  } else {
    const int64_t in[3] = {volume.depth, volume.height, volume.width};
    TensorRef counts;
    for (int d = 0; d < 3; d++) {
      TensorRef own = window_counts(in[d], sum->size(d - 3), kernel.v[d], step.v[d], pad.v[d],
                                    count_include_pad, self.device);
      counts = d ? op::mul(*op::unsqueeze(*counts, -1), *own) : std::move(own);
    }
    y = op::div(*sum, *op::to_dtype(*counts, sum->dtype), rounding);
  }
  return narrow ? op::to_dtype(*y, self.dtype) : std::move(y);
}

}  // namespace TT_NS::impl
