// Views of parts of a tensor: flatten, unflatten, unbind, narrow, diagonal.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"

namespace TT_NS::impl {

TensorRef flatten(Call, const Tensor& self, int64_t start_dim, int64_t end_dim) {
  const int64_t first = wrap_dim(start_dim, self.ndim, "start_dim");
  const int64_t last = wrap_dim(end_dim, self.ndim, "end_dim");
  if (first > last)
    fail_arg(TT_INVALID_ARG, "start_dim",
             "start_dim is {}, end_dim is {}: start_dim must not come after end_dim", start_dim,
             end_dim);
  const int64_t one[1] = {1};
  if (self.ndim == 0) return op::reshape(self, one);
  if (first == last) return TensorRef::share(&self);
  Shape shape(self.sizes().slice(0, first));
  shape.push_back(numel_of(self.sizes().slice(first, last + 1)));
  shape.append(self.sizes().slice(last + 1, self.ndim));
  return op::reshape(self, shape);
}

TensorRef unflatten(Call, const Tensor& self, int64_t dim, Ints sizes) {
  if (self.ndim == 0) fail_arg(TT_INDEX, "self", "self is 0-dim: must have at least one dimension");
  const int64_t d = wrap_dim(dim, self.ndim);
  if (sizes.empty())
    fail_arg(TT_INVALID_ARG, "sizes", "sizes is empty: at least one size is needed");
  const Shape parts = infer_size(sizes, self.size(d), "sizes");
  if (self.ndim - 1 + sizes.n > kMaxDims)
    fail_arg(TT_SHAPE, "sizes",
             "sizes has {} entries, self has {} dims: the result would have more than 64", sizes.n,
             self.ndim);
  Shape shape(self.sizes().slice(0, d));
  shape.append(parts);
  shape.append(self.sizes().slice(d + 1, self.ndim));
  return op::view(self, shape);
}

TensorList unbind(Call, const Tensor& self, int64_t dim) {
  if (self.ndim == 0) fail_arg(TT_INDEX, "self", "self is 0-dim: must have at least one dimension");
  const int64_t d = wrap_dim(dim, self.ndim);
  Shape sizes(self.sizes());
  Shape strides(self.strides());
  sizes.erase(d);
  strides.erase(d);
  TensorList out;
  out.reserve(self.size(d));
  for (int64_t i = 0; i < self.size(d); i++)
    out.push_back(make_one_of_views(self, sizes, strides, self.address(d, i)));
  return out;
}

TensorRef narrow(Call, const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  if (self.ndim == 0) fail_arg(TT_SHAPE, "self", "self is 0-dim: must have at least one dimension");
  const int64_t d = wrap_dim(dim, self.ndim);
  const int64_t n = self.size(d);
  if (length < 0) fail_arg(TT_INVALID_ARG, "length", "length is {}: must not be negative", length);
  if (start < -n || start > n)
    fail_arg(TT_INDEX, "start", "start is {}, dimension {} has size {}: must be in [{}, {}]", start,
             d, n, -n, n);
  const int64_t from = start < 0 ? start + n : start;
  if (length > n - from)
    fail_arg(TT_INVALID_ARG, "length",
             "start is {}, length is {}: exceeds the size {} of dimension {}", start, length, n, d);
  return op::slice(self, d, from, from + length);
}

TensorRef diagonal(Call, const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t a = wrap_dim(dim1, self.ndim, "dim1");
  const int64_t b = wrap_dim(dim2, self.ndim, "dim2");
  if (a == b)
    fail_arg(TT_INVALID_ARG, "dim2", "dim1 is {}, dim2 is {}: must be two dimensions", dim1, dim2);
  // An offset beyond the sizes gives an empty diagonal; clamping it avoids overflow.
  const int64_t rows = self.size(a);
  const int64_t columns = self.size(b);
  const int64_t o = clamp(offset, -rows, columns);
  const int64_t down = o < 0 ? rows + o : rows;
  const int64_t right = o < 0 ? columns : columns - o;
  const int64_t n = TT_NS::min(down, right);
  Shape sizes, strides;
  for (int64_t d = 0; d < self.ndim; d++)
    if (d != a && d != b) {
      sizes.push_back(self.size(d));
      strides.push_back(self.stride(d));
    }
  sizes.push_back(n);
  int64_t step;  // overflows only in a tensor without elements
  if (add_overflow(self.stride(a), self.stride(b), &step)) step = kMaxIdleStride;
  strides.push_back(step);
  char* first = self.data;
  if (n) first = o < 0 ? self.address(a, -o) : self.address(b, o);
  return make_view(self, sizes, usable_strides(sizes, strides), first);
}

TensorRef diagonal_backward(Call, const Tensor& grad, Ints size, int64_t offset, int64_t dim1,
                            int64_t dim2) {
  TensorRef out = new_tensor(size, grad.dtype, grad.device);
  fill_elements(*out, 0);
  MaskGuard no_grad(bit(kKeyAutograd));
  copy_elements(*op::diagonal(out, offset, dim1, dim2), grad);
  return out;
}

}  // namespace TT_NS::impl
