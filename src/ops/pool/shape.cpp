// Pooling over one dimension, computed as pooling of images with a single row.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::impl {

// Views (C, L) or (N, C, L) as images.
static TensorRef as_image(const Tensor& self) {
  if (self.ndim != 2 && self.ndim != 3)
    fail_arg(TT_SHAPE, "self", "self is {}: must be (C, L) or (N, C, L)", self.sizes());
  return op::unsqueeze(self, -2);
}
static TensorRef as_line(const Tensor& y) {
  const int64_t row[1] = {-2};
  return op::squeeze_dims(y, row);
}
static void check_float(const Tensor& self) {
  if (!is_float(self.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be floating", fmt(self.dtype));
}

// Extends a parameter of one number for images: prepends `row`, the value for the single row. An
// empty list stays empty, unless the parameter is required.
struct WithRow {
  int64_t v[2];
  int64_t n;
  WithRow(Ints list, const char* arg, int64_t row, bool required = false)
      : v{row, list.n ? list[0] : 0}, n(list.n ? 2 : 0) {
    if (list.n > 1 || (required && !list.n))
      fail_arg(TT_INVALID_ARG, arg, "{} is {}: must be one number", arg, list);
  }
  operator Ints() const { return {v, n}; }
};

TensorRef max_pool1d(Call, const Tensor& self, Ints kernel_size, Ints stride, Ints padding,
                     Ints dilation, bool ceil_mode) {
  check_float(self);
  return as_line(*op::max_pool2d(*as_image(self), WithRow(kernel_size, "kernel_size", 1, true),
                                 WithRow(stride, "stride", 1), WithRow(padding, "padding", 0),
                                 WithRow(dilation, "dilation", 1), ceil_mode));
}
TensorPair max_pool1d_with_indices(Call, const Tensor& self, Ints kernel_size, Ints stride,
                                   Ints padding, Ints dilation, bool ceil_mode) {
  check_float(self);
  TensorPair r = op::max_pool2d_with_indices(
      *as_image(self), WithRow(kernel_size, "kernel_size", 1, true), WithRow(stride, "stride", 1),
      WithRow(padding, "padding", 0), WithRow(dilation, "dilation", 1), ceil_mode);
  return {as_line(*r.first), as_line(*r.second)};
}
TensorRef avg_pool1d(Call, const Tensor& self, Ints kernel_size, Ints stride, Ints padding,
                     bool ceil_mode, bool count_include_pad) {
  return as_line(*op::avg_pool2d(*as_image(self), WithRow(kernel_size, "kernel_size", 1, true),
                                 WithRow(stride, "stride", 1), WithRow(padding, "padding", 0),
                                 ceil_mode, count_include_pad));
}
TensorRef adaptive_avg_pool1d(Call, const Tensor& self, Ints output_size) {
  return as_line(
      *op::adaptive_avg_pool2d(*as_image(self), WithRow(output_size, "output_size", 1, true)));
}
TensorPair adaptive_max_pool1d(Call, const Tensor& self, Ints output_size) {
  TensorPair r =
      op::adaptive_max_pool2d(*as_image(self), WithRow(output_size, "output_size", 1, true));
  return {as_line(*r.first), as_line(*r.second)};
}

}  // namespace TT_NS::impl
