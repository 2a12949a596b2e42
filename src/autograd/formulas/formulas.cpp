// Formulas used by several families.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "autograd/formulas/forward.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::formula {

TensorRef scaled(const Tensor& g, const Scalar& k) {
  return k.is_one() && k.category() <= category(g.dtype) ? TensorRef::share(&g) : g * k;
}

// Shifts x by s indices towards the end of dim and fills the front with ones.
static TensorRef moved_up(const Tensor& x, int64_t dim, int64_t s) {
  Shape front(x.sizes());
  front[dim] = s < x.size(dim) ? s : x.size(dim);
  TensorRef ones = op::ones(front, x.dtype, x.device);
  TensorRef rest = op::slice(x, dim, 0, x.size(dim) - front[dim]);
  const Tensor* const parts[2] = {ones.get(), rest.get()};
  return op::cat(parts, dim);
}
TensorRef products_before(const Tensor& x, int64_t dim) {
  TensorRef r = moved_up(x, dim, 1);
  for (int64_t s = 1; s < x.size(dim); s *= 2) r = r * moved_up(r, dim, s);
  return r;
}

TensorRef pick_backward(const Tensor& g, Ints size, int64_t dim, const Tensor& index,
                        bool keepdim) {
  if (size.n == 0) return TensorRef::share(&g);
  TensorRef zeros = op::zeros(size, g.dtype, g.device);
  if (keepdim) return op::scatter_add(zeros, dim, index, g);
  return op::scatter_add(zeros, dim, op::unsqueeze(index, dim), op::unsqueeze(g, dim));
}

TensorRef sum_along(const Tensor& x, int64_t dim, bool keepdim) {
  return x.ndim ? op::sum_dim(x, Ints(&dim, 1), keepdim) : TensorRef::share(&x);
}

TensorRef picked(const Tensor& t, int64_t dim, const Tensor& index, bool keepdim) {
  if (!t.ndim) return op::view(t, index.sizes());
  if (keepdim) return op::gather(t, dim, index);
  const int64_t d = wrap_dim(dim, t.ndim);
  return op::squeeze_dims(*op::gather(t, d, *op::unsqueeze(index, d)), Ints(&d, 1));
}

TensorRef equal_elements_backward(const Tensor& g, const Tensor& self, const Tensor& y) {
  TensorRef both_nan = op::logical_and(op::isnan(self), op::isnan(y));
  TensorRef hit = op::logical_or(op::eq(self, y), both_nan);
  // A half may be less than their number.
  const Dtype counted = g.item_size() == 2 ? Dtype::kF32 : g.dtype;
  TensorRef share = as_dtype(g / op::to_dtype(op::sum(hit), counted), g.dtype);
  return op::where(hit, share, op::zeros({}, g.dtype, g.device));  // also where g is nan
}

}  // namespace TT_NS::formula
