// Gradients of cumulative sums and products.
#include "autograd/expr.h"
#include "autograd/formulas.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::formula {

TensorRef cumsum_backward(const Tensor& g, int64_t dim) {
  const Ints dims(&dim, 1);
  return op::flip(op::cumsum(op::flip(g, dims), dim), dims);
}

// S[k] = g[k] + x[k + 1] S[k + 1] in log2(n) steps over pairs: S[k] = b[k] + a[k] S[k + s].
static TensorRef reversed_recurrence(const Tensor& g, const Tensor& x, int64_t dim) {
  const int64_t n = x.size(dim);
  auto moved_down = [&](const Tensor& t, int64_t s) {  // t from index s on, then zeros
    Shape end(t.sizes());
    end[dim] = s;
    TensorRef zeros = op::zeros(end, t.dtype, t.device);
    TensorRef rest = op::slice(t, dim, s, n);
    const Tensor* const parts[2] = {rest.get(), zeros.get()};
    return op::cat(parts, dim);
  };
  TensorRef a = moved_down(x, 1);
  TensorRef b = TensorRef::share(&g);
  for (int64_t s = 1; s < n; s *= 2) {
    b = b + a * moved_down(b, s);
    if (2 * s < n) a = a * moved_down(a, s);
  }
  return b;
}

// dx[k] is the sum over i >= k of g[i] times the product of the other elements up to i.
TensorRef cumprod_backward(const Tensor& g, const Tensor& self, const Tensor& y, int64_t dim) {
  if (self.numel <= 1 || self.size(wrap_dim(dim, self.ndim)) == 1) return TensorRef::share(&g);
  const int64_t d = wrap_dim(dim, self.ndim);
  TensorRef x = op::conj(self.dtype == y.dtype ? self : op::to_dtype(self, y.dtype));
  if (self.device.type != TT_META && read_scalar(op::any(op::eq(x, 0))).is_zero())
    return cumsum_backward(g * op::conj(y), d) / x;
  return products_before(x, d) * reversed_recurrence(g, x, d);
}

}  // namespace TT_NS::formula
