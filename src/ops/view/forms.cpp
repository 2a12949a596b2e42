// Views in the shapes that other operators want: atleast_1d … atleast_3d, movedim, ravel, adjoint,
// broadcast_tensors, unfold; narrow_copy.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::impl {

TensorRef ravel(Call, const Tensor& self) {
  const int64_t flat[1] = {self.numel};
  return op::reshape(*op::contiguous(self), flat);
}

TensorRef adjoint(Call, const Tensor& self) {
  if (self.ndim < 2)
    fail_arg(TT_SHAPE, "self", "self is {}: must have at least 2 dimensions", self.sizes());
  return op::conj(*op::transpose(self, -2, -1));
}

TensorRef narrow_copy(Call, const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  return op::clone(*op::narrow(self, dim, start, length), TT_CONTIGUOUS);
}

TensorRef movedim(Call, const Tensor& self, Ints source, Ints destination) {
  if (source.n != destination.n)
    fail_arg(TT_INVALID_ARG, "destination",
             "source is {}, destination is {}: must have equal lengths", source, destination);
  const uint64_t moved = dim_mask(source, self.ndim, false, "source");
  dim_mask(destination, self.ndim, false, "destination");
  Shape order;
  order.resize(self.ndim, -1);
  if (self.ndim == 0) return op::permute(self, order);
  for (int64_t i = 0; i < source.n; i++)
    order[wrap_dim(destination[i], self.ndim)] = wrap_dim(source[i], self.ndim);
  int64_t next = 0;
  for (int64_t& d : order) {
    if (d >= 0) continue;
    while (moved >> next & 1) next++;
    d = next++;
  }
  return op::permute(self, order);
}

TensorRef atleast_1d(Call, const Tensor& self) {
  return self.ndim ? TensorRef::share(&self) : op::unsqueeze(self, 0);
}
TensorRef atleast_2d(Call, const Tensor& self) {
  if (self.ndim >= 2) return TensorRef::share(&self);
  const TensorRef row = op::atleast_1d(self);
  return op::unsqueeze(*row, 0);
}
TensorRef atleast_3d(Call, const Tensor& self) {
  return self.ndim >= 3 ? TensorRef::share(&self) : op::unsqueeze(*op::atleast_2d(self), 2);
}

static TensorList each(TensorSpan tensors, TensorRef (*form)(const Tensor&)) {
  TensorList out;
  out.reserve(tensors.n);
  for (const Tensor* t : tensors) out.push_back(form(*t));
  return out;
}
TensorList atleast_1d_list(Call, TensorSpan tensors) { return each(tensors, op::atleast_1d); }
TensorList atleast_2d_list(Call, TensorSpan tensors) { return each(tensors, op::atleast_2d); }
TensorList atleast_3d_list(Call, TensorSpan tensors) { return each(tensors, op::atleast_3d); }

TensorList broadcast_tensors(Call, TensorSpan tensors) {
  TensorList out;
  if (tensors.n == 0)
    fail_arg(TT_INVALID_ARG, "tensors", "tensors is empty: at least one is needed");
  Shape shape(tensors[0]->sizes());
  for (const Tensor* t : tensors) shape = broadcast_shapes(shape, t->sizes(), "tensors", "tensors");
  out.reserve(tensors.n);
  for (const Tensor* t : tensors) out.push_back(op::expand(*t, shape));
  return out;
}

TensorRef unfold(Call, const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  const int64_t d = wrap_dim(dimension, self.ndim, "dimension");
  const int64_t n = self.ndim ? self.size(d) : 1;
  if (step < 1) fail_arg(TT_INVALID_ARG, "step", "step is {}: must be at least 1", step);
  if (size < 0 || size > n)
    fail_arg(TT_INVALID_ARG, "size", "size is {}: must be in [0, {}], the size of dimension {}",
             size, n, d);
  if (self.ndim == kMaxDims)
    fail_arg(TT_SHAPE, "self", "self has {} dims: no more are supported", self.ndim);
  Shape sizes(self.sizes());
  Shape strides(self.strides());
  const int64_t stride = self.ndim ? strides[d] : 1;
  if (self.ndim) {
    sizes[d] = (n - size) / step + 1;
    // Overflows only in a tensor without elements.
    if (sizes[d] > 1 && mul_overflow(strides[d], step, &strides[d])) strides[d] = kMaxIdleStride;
  }
  sizes.push_back(size);
  strides.push_back(stride);
  return make_view(self, sizes, strides, self.data);
}

}  // namespace TT_NS::impl
