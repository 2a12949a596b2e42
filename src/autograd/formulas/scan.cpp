// Gradients of cumulative sums and products.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "autograd/formulas/forward.h"
#include "autograd/formulas/zeros.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::formula {

TensorRef cumsum_backward(const Tensor& g, int64_t dim) {
  const Ints dims(&dim, 1);
  return op::flip(op::cumsum(op::flip(g, dims), dim), dims);
}

// x from index s along dim on, then zeros.
static TensorRef moved_down(const Tensor& x, int64_t s, int64_t dim) {
  const int64_t n = x.size(dim);
  Shape end(x.sizes());
  end[dim] = s;
  TensorRef zeros = op::zeros(end, x.dtype, x.device);
  TensorRef rest = op::slice(x, dim, s, n);
  const Tensor* const parts[2] = {rest.get(), zeros.get()};
  return op::cat(parts, dim);
}

// S[k] = b[k] + a[k] S[k + 1] in log2(n) steps over pairs: S[k] = b[k] + a[k] S[k + s].
static TensorRef reversed_recurrence(TensorRef b, TensorRef a, int64_t dim) {
  const int64_t n = a->size(dim);
  for (int64_t s = 1; s < n; s *= 2) {
    b = b + a * moved_down(b, s, dim);
    if (2 * s < n) a = a * moved_down(a, s, dim);
  }
  return b;
}

// dx[k] is the sum over i >= k of g[i] times the product of the other elements up to i.
TensorRef cumprod_backward(const Tensor& g, const Tensor& self, const Tensor& y, int64_t dim) {
  if (self.numel <= 1 || self.size(wrap_dim(dim, self.ndim)) == 1) return TensorRef::share(&g);
  const int64_t d = wrap_dim(dim, self.ndim);
  TensorRef x = op::conj(self.dtype == y.dtype ? self : op::to_dtype(self, y.dtype));
  return unless_zero(
      x, [&] { return cumsum_backward(g * op::conj(y), d) / x; },
      [&] {
        TensorRef sums = reversed_recurrence(TensorRef::share(&g), moved_down(x, 1, d), d);
        return products_before(x, d) * sums;
      });
}
// dy[k] = t[k] y[k - 1] + x[k] dy[k - 1]
TensorRef cumprod_forward(const Tensor& t, const Tensor& self, const Tensor& y, int64_t dim) {
  TensorRef dx = op::to_dtype(t, y.dtype);
  if (self.numel <= 1) return dx;
  const int64_t d = wrap_dim(dim, self.ndim);
  TensorRef x = op::to_dtype(self, y.dtype);
  return unless_zero(
      x, [&] { return op::cumsum(dx / x, d) * y; },
      [&] {
        const Ints dims(&d, 1);
        TensorRef terms = op::flip(dx * products_before(x, d), dims);
        return op::flip(reversed_recurrence(terms, op::flip(x, dims), d), dims);
      });
}

// exp(x[k] - y[i]) = left[k] right[i], in double: exponentials shifted by the largest y.
struct ShiftedExponentials {
  TensorRef left, right;
};
static ShiftedExponentials exponentials_of(const Tensor& self, const Tensor& y, int64_t dim) {
  const bool complex = is_complex(self.dtype);
  const Dtype wide = complex ? Dtype::kC128 : Dtype::kF64;
  TensorRef x = op::to_dtype(self, wide);
  TensorRef sums = op::to_dtype(y, wide);
  TensorRef real = op::detach(complex ? op::real(sums) : TensorRef::share(sums.get()));
  const int64_t along[1] = {dim};
  TensorRef top = self.ndim ? op::amax(real, along, true) : real;
  for (double end : {kInf, -kInf}) top = op::masked_fill(top, op::eq(top, end), 0);
  TensorRef below = top - sums;
  const Scalar most = 700;
  if (!complex) below = op::clamp(below, nullptr, &most);
  return {op::exp(x - top), op::exp(below)};
}

// dx[k] is the sum over i >= k of g[i] exp(x[k] - y[i]).
TensorRef logcumsumexp_backward(const Tensor& g, const Tensor& self, const Tensor& y, int64_t dim) {
  if (self.numel == 0) return TensorRef::share(&g);
  const ShiftedExponentials e = exponentials_of(self, y, dim);
  TensorRef weights = op::to_dtype(g, e.left->dtype) * op::conj(e.right);
  return op::to_dtype(op::conj(e.left) * cumsum_backward(weights, dim), g.dtype);
}
// dy[i] is the sum over k <= i of t[k] exp(x[k] - y[i]).
TensorRef logcumsumexp_forward(const Tensor& t, const Tensor& self, const Tensor& y, int64_t dim) {
  if (self.numel == 0) return TensorRef::share(&t);
  const ShiftedExponentials e = exponentials_of(self, y, dim);
  return op::cumsum(op::to_dtype(t, e.left->dtype) * e.left, dim) * e.right;
}

}  // namespace TT_NS::formula
