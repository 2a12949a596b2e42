// Gradients of views.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::formula {

TensorRef permute_backward(const Tensor& g, Ints dims) {
  Shape inverse;
  inverse.resize(dims.n);
  for (int64_t i = 0; i < dims.n; i++) inverse[wrap_dim(dims[i], dims.n)] = i;
  return op::permute(g, inverse);
}

TensorRef squeeze_dim(const Tensor& g, int64_t dim) { return op::squeeze_dims(g, Ints(&dim, 1)); }

static int64_t extent(Ints sizes, Ints strides) {
  int64_t n = 1;
  for (int64_t d = 0; d < sizes.n; d++) {
    if (sizes[d] == 0) return 0;
    n += (sizes[d] - 1) * strides[d];
  }
  return n;
}

// Elements [begin, begin + n) of g along d.
static TensorRef part_of(const Tensor& g, int64_t d, int64_t begin, int64_t n) {
  Shape sizes(g.sizes());
  sizes[d] = n;
  return op::as_strided(g, sizes, g.strides(), g.offset() + begin * g.stride(d));
}

// The sum of g over d, which stays with size 1: halves are added, so an element is rounded as often
// as the size has binary digits.
static TensorRef sum_of_halves(const Tensor& g, int64_t d) {
  TensorRef sum = TensorRef::share(&g);
  TensorRef odd;
  for (int64_t n = g.size(d); n > 1; n /= 2) {
    const int64_t half = n / 2;
    if (n % 2) {
      TensorRef last = part_of(sum, d, n - 1, 1);
      odd = odd ? odd + last : std::move(last);
    }
    sum = part_of(sum, d, 0, half) + part_of(sum, d, half, half);
  }
  return odd ? sum + odd : sum;
}

// A buffer of n zeros, to which g is added in this geometry. Elements that share an address are in
// different slices: as_strided_put writes one slice at a time. (index_add would do, but every
// program with a view would link it.)
static TensorRef spread(int64_t n, const Tensor& g, Ints size, Ints stride, int64_t offset) {
  if (!may_overlap_self(size, stride))
    return op::as_strided_put(op::zeros(Ints(&n, 1), g.dtype, g.device), g, size, stride, offset);
  const int64_t d = dim_to_slice(size, stride);
  Shape slice(size);
  slice[d] = 1;
  if (stride[d] == 0) return spread(n, sum_of_halves(g, d), slice, stride, offset);
  TensorRef sum = spread(n, part_of(g, d, 0, 1), slice, stride, offset);
  for (int64_t i = 1; i < size[d]; i++)
    sum = sum + spread(n, part_of(g, d, i, 1), slice, stride, offset + i * stride[d]);
  return sum;
}

// Adds g to a buffer of the whole storage in the view's geometry, reads the buffer in the base's
// geometry, and divides by the number of times that the base visits an element, as
// torch/csrc/autograd describes its as_strided backward.
TensorRef as_strided_backward(const Tensor& g, Ints base_sizes, Ints base_strides,
                              int64_t base_offset, Ints size, Ints stride,
                              Opt<int64_t> storage_offset) {
  int64_t offset = storage_offset.or_else(base_offset);
  int64_t start = min(offset, base_offset);
  int64_t view_end = offset + extent(size, stride);
  int64_t base_end = base_offset + extent(base_sizes, base_strides);
  const int64_t n = max(view_end, base_end) - start;
  TensorRef sum = op::as_strided(spread(n, g, size, stride, offset - start), base_sizes,
                                 base_strides, base_offset - start);
  if (!may_overlap_self(base_sizes, base_strides)) return sum;
  TensorRef ones = op::ones(base_sizes, g.dtype, g.device);
  TensorRef visits = spread(n, ones, base_sizes, base_strides, base_offset - start);
  return sum / op::as_strided(visits, base_sizes, base_strides, base_offset - start);
}

TensorRef as_strided_put_self(const Tensor& g, Ints strides, Ints size, Ints stride,
                              int64_t offset) {
  return op::as_strided_put(op::restride(g, strides), op::zeros(size, g.dtype, g.device), size,
                            stride, offset);
}

// Every element receives the gradients of all windows that contain it.
TensorRef unfold_backward(const Tensor& g, Ints self_sizes, int64_t dimension, int64_t size,
                          int64_t step) {
  TensorRef zeros = op::zeros(self_sizes, g.dtype, g.device);
  if (g.numel == 0) return zeros;
  if (self_sizes.n == 0) return op::reshape(g, self_sizes);
  const int64_t d = wrap_dim(dimension, self_sizes.n);
  const int64_t windows = g.size(d);
  Shape flat(self_sizes);
  flat[d] = windows * size;
  const int64_t last = -1;
  TensorRef first = op::arange(0, windows, 1, Dtype::kI64, g.device) * step;
  TensorRef index = op::unsqueeze(first, 1) + op::arange(0, size, 1, Dtype::kI64, g.device);
  const int64_t behind = d + 1;
  TensorRef rows = op::reshape(op::movedim(g, Ints(&last, 1), Ints(&behind, 1)), flat);
  const int64_t whole = windows * size;
  return op::index_add(zeros, d, op::reshape(index, Ints(&whole, 1)), rows);
}

}  // namespace TT_NS::formula
