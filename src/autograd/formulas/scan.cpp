// Gradients of cumulative sums and products.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
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

// dx[k] is the sum over i >= k of g[i] exp(x[k] - y[i]), here of exponentials shifted by the
// largest y, in double.
TensorRef logcumsumexp_backward(const Tensor& g, const Tensor& self, const Tensor& y, int64_t dim) {
  if (self.numel == 0) return TensorRef::share(&g);
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
  TensorRef weights = op::to_dtype(g, wide) * op::conj(op::exp(below));
  TensorRef dx = op::conj(op::exp(x - top)) * cumsum_backward(weights, dim);
  return op::to_dtype(dx, g.dtype);
}

}  // namespace TT_NS::formula
