// Differences and sums of areas along a dimension: diff, trapezoid, cumulative_trapezoid; vander.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::impl {

static void check_beside(const Tensor& self, const Tensor& t, int64_t d, const char* arg) {
  bool fits = t.ndim == self.ndim;
  for (int64_t k = 0; fits && k < t.ndim; k++) fits = k == d || t.size(k) == self.size(k);
  if (!fits)
    fail_arg(TT_SHAPE, arg, "{} is {}, self is {}: all sizes except that of dim {} must be equal",
             arg, t.sizes(), self.sizes(), d);
}

TensorRef diff(Call, const Tensor& self, int64_t n, int64_t dim, const Tensor* prepend,
               const Tensor* append) {
  if (self.ndim == 0) fail_arg(TT_SHAPE, "self", "self is 0-dim: must have at least one dimension");
  if (n < 0) fail_arg(TT_INVALID_ARG, "n", "n is {}: must not be negative", n);
  const int64_t d = wrap_dim(dim, self.ndim);
  if (n == 0) return op::clone(self);
  TensorRef x = TensorRef::share(&self);
  const Tensor* parts[3] = {};
  int64_t count = 0;
  if (prepend) check_beside(self, *prepend, d, "prepend");
  if (append) check_beside(self, *append, d, "append");
  if (prepend) parts[count++] = prepend;
  parts[count++] = &self;
  if (append) parts[count++] = append;
  if (count > 1) x = op::cat({parts, count}, d);
  if (x->numel == 0 || n >= x->size(d))
    return op::contiguous(*op::slice(*x, d, 0, n < x->size(d) ? x->size(d) - n : 0));
  for (int64_t k = n; k > 0; k--) {
    TensorRef later = op::slice(*x, d, 1);
    TensorRef earlier = op::slice(*x, d, 0, x->size(d) - 1);
    x = x->dtype == Dtype::kBool ? op::logical_xor(*later, *earlier) : op::sub(*later, *earlier);
  }
  return x;
}

// ---- trapezoid, cumulative_trapezoid ----

// Differences of neighbours of x along dimension d of y.
static TensorRef widths(const Tensor& y, const Tensor& x, int64_t d) {
  if (x.ndim == 0) fail_arg(TT_SHAPE, "x", "x is 0-dim: must have at least one dimension");
  Shape shape;
  if (x.ndim == 1) {
    if (x.numel != y.size(d))
      fail_arg(TT_SHAPE, "x", "x is {}, y is {}: must have {} entries, the size of dimension {}",
               x.sizes(), y.sizes(), y.size(d), d);
    shape.resize(y.ndim, 1);
    shape[d] = x.numel;
  } else {
    shape.resize(x.ndim < y.ndim ? y.ndim - x.ndim : 0, 1);
    shape.append(x.sizes());
  }
  TensorRef points = op::reshape(x, shape);
  return op::diff(*points, 1, d);
}
static TensorRef neighbours(const Tensor& y, int64_t d) {
  return op::add(*op::slice(y, d, 1), *op::slice(y, d, 0, y.size(d) - 1));
}
static int64_t check_points(const Tensor& y, int64_t dim) {
  if (y.ndim == 0) fail_arg(TT_SHAPE, "y", "y is 0-dim: must have at least one dimension");
  if (y.dtype == Dtype::kBool) fail_arg(TT_NOT_IMPLEMENTED, "y", "y is bool: must hold numbers");
  return wrap_dim(dim, y.ndim);
}

TensorRef trapezoid(Call, const Tensor& y, const Tensor* x, const Scalar& dx, int64_t dim) {
  const int64_t d = check_points(y, dim);
  const Ints along(&d, 1);
  if (y.size(d) == 0) return op::sum_dim(y, along, false, y.dtype);
  if (x) return op::mul(*op::sum_dim(op::mul(*neighbours(y, d), *widths(y, *x, d)), along), 0.5);
  TensorRef ends = op::add(*op::select(y, d, 0), *op::select(y, d, -1));
  return op::mul(*op::sub(*op::sum_dim(y, along), *op::mul(*ends, 0.5)), dx);
}

TensorRef cumulative_trapezoid(Call, const Tensor& y, const Tensor* x, const Scalar& dx,
                               int64_t dim) {
  const int64_t d = check_points(y, dim);
  TensorRef sums = neighbours(y, d);
  if (x) return op::mul(*op::cumsum(*op::mul(*sums, *widths(y, *x, d)), d), 0.5);
  return op::cumsum(*op::mul(*op::mul(*sums, 0.5), dx), d);
}

TensorRef vander(Call, const Tensor& x, Opt<int64_t> N, bool increasing) {
  if (x.ndim == 0) fail_arg(TT_SHAPE, "x", "x is 0-dim: must have at least one dimension");
  if (x.dtype == Dtype::kBool) fail_arg(TT_NOT_IMPLEMENTED, "x", "x is bool: must hold numbers");
  const int64_t n = N.or_else(x.size(-1));
  if (n < 0) fail_arg(TT_INVALID_ARG, "N", "N is {}: must not be negative", n);
  if (x.ndim == kMaxDims) fail_arg(TT_SHAPE, "x", "x has {} dims: no more are supported", x.ndim);
  Shape shape(x.sizes());
  shape.push_back(n);
  checked_numel(shape, Dtype::kC128, "N");
  if (n == 0) return op::zeros(shape, category(x.dtype) < 2 ? Dtype::kI64 : x.dtype, x.device);
  shape[x.ndim] = n - 1;
  TensorRef column = op::unsqueeze(x, -1);
  TensorRef one = op::ones_like(*column);
  TensorRef rest = op::expand(*column, shape);
  const Tensor* const parts[2] = {one.get(), rest.get()};
  TensorRef powers = op::cumprod(*op::cat(parts, -1), -1);
  const int64_t last[1] = {-1};
  return increasing ? std::move(powers) : op::flip(*powers, last);
}

}  // namespace TT_NS::impl
