// Sliding windows of images as columns (im2col) and their sum (col2im): one strided copy, and one
// strided sum per element of the window.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/image.h"
#include "ops/impl.h"

namespace TT_NS::impl {

// Two numbers: rows and columns.
struct RowsColumns {
  int64_t v[2];

  RowsColumns(Ints list, const char* arg, int64_t fallback, int64_t min_value) : v{} {
    expand_dims_list(list, 2, fallback, min_value, arg, v);
  }
};

struct Windows {
  RowsColumns kernel, dilation, pad, stride;
  int64_t image[2], padded[2], count[2];

  Windows(Ints kernel_size, Ints dilations, Ints padding, Ints strides, const int64_t* size)
      : kernel(kernel_size, "kernel_size", 0, 1),
        dilation(dilations, "dilation", 1, 1),
        pad(padding, "padding", 0, 0),
        stride(strides, "stride", 1, 1) {
    for (int d = 0; d < 2; d++) {
      int64_t span, border;
      image[d] = size[d];
      if (mul_overflow(pad.v[d], 2, &border) || add_overflow(size[d], border, &padded[d]))
        fail_arg(TT_INVALID_ARG, "padding", "padding is {}: the padded size overflows", pad.v[d]);
      if (mul_overflow(kernel.v[d] - 1, dilation.v[d], &span) || span >= padded[d])
        fail_arg(TT_SHAPE, "kernel_size",
                 "a window of {} elements with dilation {} does not fit into {} with padding {}",
                 kernel.v[d], dilation.v[d], size[d], pad.v[d]);
      count[d] = (padded[d] - span - 1) / stride.v[d] + 1;
    }
  }
  int64_t elements() const { return kernel.v[0] * kernel.v[1]; }
  bool has_border() const { return pad.v[0] || pad.v[1]; }
  int64_t step(int d) const { return count[d] > 1 ? stride.v[d] : 1; }
  int64_t gap(int d) const { return kernel.v[d] > 1 ? dilation.v[d] : 1; }
};

// An alias of t with a batch dimension.
static TensorRef batched(const Tensor& t, int64_t ndim) {
  if (t.ndim == ndim) return new_alias(t);
  Shape sizes(t.sizes());
  Shape strides(t.strides());
  sizes.insert(0, 1);
  strides.insert(0, 0);
  return new_alias(t, sizes, strides);
}

TensorRef im2col(Call, const Tensor& self, Ints kernel_size, Ints dilation, Ints padding,
                 Ints stride) {
  MaskGuard no_grad(bit(kKeyAutograd));
  bool good = self.ndim == 3 || self.ndim == 4;
  for (int64_t d = 1; good && d <= 3; d++) good = self.size(-d) > 0;
  if (!good)
    fail_arg(TT_SHAPE, "self", "self is {}: must be (C, H, W) or (N, C, H, W), and only N may be 0",
             self.sizes());
  const int64_t image[2] = {self.size(-2), self.size(-1)};
  const Windows w(kernel_size, dilation, padding, stride, image);
  TensorRef x = batched(self, 4);
  const int64_t n = x->size(0);
  const int64_t c = x->size(1);
  const int64_t sizes[6] = {n, c, w.kernel.v[0], w.kernel.v[1], w.count[0], w.count[1]};
  checked_numel(sizes, self.dtype, "kernel_size");
  if (w.has_border()) {
    const int64_t pad[4] = {w.pad.v[1], w.pad.v[1], w.pad.v[0], w.pad.v[0]};
    x = op::constant_pad_nd(*x, pad, Scalar(0));
  }
  TensorRef columns = new_tensor(sizes, self.dtype, self.device);
  if (columns->numel) {
    const int64_t row = x->stride(2);
    const int64_t column = x->stride(3);
    const int64_t strides[6] = {x->stride(0),      x->stride(1),    w.gap(0) * row,
                                w.gap(1) * column, w.step(0) * row, w.step(1) * column};
    copy_elements(*columns, *new_alias(*x, sizes, strides));
  }
  const int64_t result[3] = {n, c * w.elements(), w.count[0] * w.count[1]};
  return new_alias(*columns, Ints(result + (self.ndim == 3), self.ndim == 3 ? 2 : 3), {});
}

// The image to which columns are added; 16-bit sums are computed in float32.
static TensorRef sum_of_columns(const Tensor& columns, const Windows& w, int64_t n, int64_t c) {
  const Dtype dtype =
      columns.item_size() == 2 && is_float(columns.dtype) ? Dtype::kF32 : columns.dtype;
  const int64_t padded[4] = {n, c, w.padded[0], w.padded[1]};
  checked_numel(padded, dtype, "output_size");
  TensorRef image = new_tensor(padded, dtype, columns.device);
  fill_elements(*image, Scalar(0));
  const int64_t windows[4] = {n, c, w.count[0], w.count[1]};
  const int64_t row = image->stride(2);
  const int64_t strides[4] = {image->stride(0), image->stride(1), w.step(0) * row, w.step(1)};
  const int64_t length = w.count[0] * w.count[1];
  const int64_t column_strides[4] = {c * w.elements() * length, w.elements() * length, w.count[1],
                                     1};
  for (int64_t k = 0; k < w.elements(); k++) {
    const int64_t i = k / w.kernel.v[1];
    const int64_t j = k % w.kernel.v[1];
    const int64_t at = i * w.gap(0) * row + j * w.gap(1);
    TensorRef place =
        new_alias(*image, windows, strides, advance(image->data, at * image->item_size()), dtype);
    TensorRef part =
        new_alias(columns, windows, column_strides,
                  advance(columns.data, k * length * columns.item_size()), columns.dtype);
    op::add_(*place, *part);
  }
  return image;
}

TensorRef col2im(Call, const Tensor& self, Ints output_size, Ints kernel_size, Ints dilation,
                 Ints padding, Ints stride) {
  MaskGuard no_grad(bit(kKeyAutograd));
  if (!output_size.n)
    fail_arg(TT_INVALID_ARG, "output_size", "output_size is empty: must be one or two numbers");
  const RowsColumns size(output_size, "output_size", 0, 1);
  const Windows w(kernel_size, dilation, padding, stride, size.v);
  bool good = self.ndim == 2 || self.ndim == 3;
  for (int64_t d = 1; good && d <= 2; d++) good = self.size(-d) > 0;
  int64_t elements;
  if (!good || mul_overflow(w.kernel.v[0], w.kernel.v[1], &elements) || self.size(-2) % elements)
    fail_arg(TT_SHAPE, "self",
             "self is {}: must be (C * kernel, L) or (N, C * kernel, L) with kernel {} x {}, and "
             "only N may be 0",
             self.sizes(), w.kernel.v[0], w.kernel.v[1]);
  int64_t windows;
  if (mul_overflow(w.count[0], w.count[1], &windows) || self.size(-1) != windows)
    fail_arg(TT_SHAPE, "self", "self is {}: the last size must be {} x {}, the number of windows",
             self.sizes(), w.count[0], w.count[1]);
  const int64_t n = self.ndim == 3 ? self.size(0) : 1;
  const int64_t c = self.size(-2) / elements;
  Shape result{n, c, size.v[0], size.v[1]};
  if (self.ndim == 2) result.erase(0);
  checked_numel(result, self.dtype, "output_size");
  if (self.numel == 0) return op::zeros(result, self.dtype, Opt<Device>(self.device));
  TensorRef image = sum_of_columns(*dense_input(self), w, n, c);
  TensorRef out = new_tensor(result, self.dtype, self.device);
  const int64_t sizes[4] = {n, c, size.v[0], size.v[1]};
  const int64_t border = w.pad.v[0] * image->stride(2) + w.pad.v[1];
  TensorRef inner = new_alias(*image, sizes, image->strides(),
                              advance(image->data, border * image->item_size()), image->dtype);
  copy_elements(*new_alias(*out, sizes, {}), *inner);
  return out;
}

}  // namespace TT_NS::impl
