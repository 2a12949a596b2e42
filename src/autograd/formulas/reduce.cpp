// Gradients of reductions.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "autograd/formulas/zeros.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::formula {

TensorRef sum_dim_backward(const Tensor& g, Ints size, Ints dim, bool keepdim) {
  if (keepdim) return op::expand(g, size);
  Shape kept(size);
  uint64_t mask = dim_mask(dim, size.n, true);
  for (int64_t d = 0; d < size.n; d++)
    if (mask >> d & 1) kept[d] = 1;
  return op::expand(op::reshape(g, kept), size);
}

TensorRef mean_backward(const Tensor& g, Ints size) {
  return op::expand(g, size) * (1.0 / double(numel_of(size)));
}

TensorRef mean_dim_backward(const Tensor& g, Ints size, Ints dim, bool keepdim) {
  uint64_t mask = dim_mask(dim, size.n, true);
  int64_t n = 1;
  for (int64_t d = 0; d < size.n; d++)
    if (mask >> d & 1) n *= size[d];
  return sum_dim_backward(g, size, dim, keepdim) * (1.0 / double(n));
}

// t with the reduced dimensions restored with size 1.
static TensorRef with_dims(const Tensor& t, Ints size, Ints dim, bool keepdim) {
  if (keepdim || size.n == 0) return TensorRef::share(&t);
  Shape kept(size);
  const uint64_t mask = dim_mask(dim, size.n, true);
  for (int64_t d = 0; d < size.n; d++)
    if (mask >> d & 1) kept[d] = 1;
  return op::reshape(t, kept);
}

TensorRef extreme_dims_backward(const Tensor& g, const Tensor& self, const Tensor& y, Ints dim,
                                bool keepdim) {
  TensorRef hit = op::to_dtype(op::eq(self, with_dims(y, self.sizes(), dim, keepdim)), g.dtype);
  // A half may be less than their number.
  const Dtype counted = g.item_size() == 2 ? Dtype::kF32 : g.dtype;
  TensorRef share = with_dims(g, self.sizes(), dim, keepdim) / op::sum_dim(hit, dim, true, counted);
  return hit * as_dtype(std::move(share), g.dtype);
}

// The result y is rounded: halves of 8 are apart by more than the gradient may be wrong. In a row
// with inf, whose softmax is nan, all finite elements have the gradient 0.
TensorRef logsumexp_backward(const Tensor& g, const Tensor& self, const Tensor& y, Ints dim,
                             bool keepdim) {
  TensorRef gk = with_dims(g, self.sizes(), dim, keepdim);
  const bool is_row = dim.n == 1 || (dim.n == 0 && self.ndim == 1);
  if (is_row && !is_complex(self.dtype)) {
    TensorRef below =
        with_dims(op::masked_fill(y, op::lt(y, kInf), -kInf), self.sizes(), dim, keepdim);
    return op::masked_fill(gk * op::softmax(self, dim.n ? dim[0] : 0), op::lt(self, below), 0);
  }
  const bool half = self.dtype == Dtype::kF16 || self.dtype == Dtype::kBF16;
  TensorRef x = half ? op::to_dtype(self, Dtype::kF32) : TensorRef::share(&self);
  return gk * op::to_dtype(op::conj(op::exp(x - op::logsumexp(x, dim, true))), self.dtype);
}

TensorRef var_backward(const Tensor& g, const Tensor& self, Ints dim, double correction,
                       bool keepdim) {
  const uint64_t mask = dim_mask(dim, self.ndim, true);
  double n = 1;
  for (int64_t d = 0; d < self.ndim; d++)
    if (mask >> d & 1) n *= double(self.size(d));
  const double freedom = n - correction > 0 ? n - correction : 0;
  const bool half = self.dtype == Dtype::kF16 || self.dtype == Dtype::kBF16;
  TensorRef x = half ? op::to_dtype(self, Dtype::kF32) : TensorRef::share(&self);
  TensorRef gk = with_dims(g, self.sizes(), dim, keepdim);
  if (half) gk = op::to_dtype(gk, Dtype::kF32);  // 2 / n is below float16's normal numbers early
  return op::to_dtype((x - op::mean_dim(x, dim, true)) * (gk * (2 / freedom)), self.dtype);
}

// The gradient is 0 where the variance is 0.
TensorRef std_backward(const Tensor& g, const Tensor& y, const Tensor& self, Ints dim,
                       double correction, bool keepdim) {
  TensorRef none = op::eq(y, 0);
  const bool half = g.dtype == Dtype::kF16 || g.dtype == Dtype::kBF16;
  TensorRef wide = half ? op::to_dtype(g, Dtype::kF32) : TensorRef::share(&g);
  TensorRef scaled = op::masked_fill(wide / op::masked_fill(y, none, 1), none, 0);
  return var_backward(scaled * 0.5, self, dim, correction, keepdim);
}

// The product of the other elements is y / x; if there are zeros, it is computed from both sides.
TensorRef prod_dim_backward(const Tensor& g, const Tensor& self, const Tensor& y, int64_t dim,
                            bool keepdim) {
  if (self.ndim == 0) return TensorRef::share(&g);
  const int64_t d = wrap_dim(dim, self.ndim);
  TensorRef x = self.dtype == y.dtype ? TensorRef::share(&self) : op::to_dtype(self, y.dtype);
  TensorRef gk = keepdim ? TensorRef::share(&g) : op::unsqueeze(g, d);
  TensorRef yk = keepdim ? TensorRef::share(&y) : op::unsqueeze(y, d);
  const TensorRef others = unless_zero(
      x, [&] { return yk / x; },
      [&] {
        const Ints dims(&d, 1);
        TensorRef behind = op::flip(products_before(op::flip(x, dims), d), dims);
        return products_before(x, d) * behind;
      });
  return gk * op::conj(others);
}

TensorRef prod_backward(const Tensor& g, const Tensor& self, const Tensor& y) {
  const int64_t flat[1] = {-1};
  TensorRef x = op::reshape(self, flat);
  return op::reshape(prod_dim_backward(g, x, y, 0, false), self.sizes());
}

TensorRef norm_backward(const Tensor& g, const Tensor& self, const Tensor& y, double p, Ints dim,
                        bool keepdim) {
  TensorRef x = TensorRef::share(&self);
  if (real_of(x->dtype) != y.dtype)
    x = op::to_dtype(self, is_complex(self.dtype) ? complex_of(y.dtype) : y.dtype);
  if (p == 0) return op::zeros(self.sizes(), x->dtype, self.device);
  TensorRef gk = with_dims(g, self.sizes(), dim, keepdim);
  TensorRef yk = with_dims(y, self.sizes(), dim, keepdim);
  if (p == 1) return op::sgn(x) * gk;
  if (p == 2) return gk * op::masked_fill(x / yk, op::eq(yk, 0), 0);
  TensorRef size = op::abs(x);
  if (p == kInf || p == -kInf) {
    TensorRef hit = op::to_dtype(op::logical_or(op::eq(size, yk), op::isnan(size)), y.dtype);
    return op::sgn(x) * (gk / op::sum_dim(hit, dim, true) * hit);
  }
  if (p < 1) {
    TensorRef slope = op::masked_fill(op::sgn(x) * op::pow(size, Scalar(p - 1)), op::eq(x, 0), 0);
    return slope * gk * op::pow(yk, Scalar(1 - p));
  }
  TensorRef slope =
      p < 2 ? op::sgn(x) * op::pow(size, Scalar(p - 1)) : x * op::pow(size, Scalar(p - 2));
  return slope * op::masked_fill(gk / op::pow(yk, Scalar(p - 1)), op::eq(yk, 0), 0);
}

// The gradients of differences d (…, m) whose norms are y. At ties of order infinity each element
// has all of it, as in PyTorch. Those of equal elements are 0, where a norm's would be nan.
static TensorRef difference_slopes(const Tensor& g, TensorRef d, const Tensor& y, double p) {
  const int64_t last[1] = {-1};
  TensorRef equal = op::eq(d, 0);
  if (p == kInf) {
    TensorRef hit = op::eq(op::abs(d), op::unsqueeze(y, -1));
    return op::sgn(d) * (op::to_dtype(hit, d->dtype) * op::unsqueeze(g, -1));
  }
  if (p == 2) equal = op::all_dim(equal, last, true);
  TensorRef not_0 = op::masked_fill(y, op::eq(y, 0), 1);  // of equal rows
  return norm_backward(g, op::masked_fill(d, equal, 0), not_0, p, last, false);
}

TensorRef row_distances_slopes(const Tensor& g, const Tensor& x1, const Tensor& x2, const Tensor& y,
                               double p, bool pairs) {
  if (ctx().exclude & bit(kKeyAutograd)) return op::row_distances_backward(g, x1, x2, y, p, pairs);
  const int64_t others[1] = {2};
  if (!pairs) {
    TensorRef d = op::unsqueeze(x1, 2) - op::unsqueeze(x2, 1);
    return op::sum_dim(difference_slopes(g, std::move(d), y, p), others);
  }
  const int64_t n = x1.size(1);
  TensorRef places = op::triu_indices(n, n, 1, Dtype::kI64, x1.device);
  TensorRef first = op::select(places, 0, 0);
  TensorRef second = op::select(places, 0, 1);
  TensorRef d = op::index_select(x1, 1, first) - op::index_select(x1, 1, second);
  TensorRef slopes = difference_slopes(g, std::move(d), y, p);
  TensorRef sum = op::index_add(op::zeros_like(x1), 1, first, slopes);
  return op::index_add(sum, 1, second, slopes, -1);
}

}  // namespace TT_NS::formula
