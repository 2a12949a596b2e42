// Norms of matrices and condition numbers.
#include "ops/linalg/matrices.h"

namespace TT_NS::impl {

struct TwoDims {
  int64_t rows, columns;
};
static TwoDims matrix_dims(const Tensor& self, Ints dim) {
  if (self.ndim < 2)
    fail_arg(TT_SHAPE, "self", "self is {}: must have at least two dimensions", self.sizes());
  if (dim.n == 0) return {self.ndim - 2, self.ndim - 1};
  if (dim.n != 2) fail_arg(TT_INVALID_ARG, "dim", "dim is {}: must be two dimensions", dim);
  const TwoDims d = {wrap_dim(dim[0], self.ndim), wrap_dim(dim[1], self.ndim)};
  if (d.rows == d.columns)
    fail_arg(TT_INVALID_ARG, "dim", "dim is {}: its entries must differ", dim);
  return d;
}
static TensorRef norm_input(const Tensor& self, Dtype dtype) {
  check_dtype_float(self, "self");
  if (dtype == Dtype::kNone || dtype == self.dtype) return TensorRef::share(&self);
  if (!is_differentiable(dtype) || is_complex(dtype) != is_complex(self.dtype))
    fail_arg(TT_DTYPE, "dtype", "dtype is {}, self is {}: both must be real or complex", fmt(dtype),
             fmt(self.dtype));
  return op::to_dtype(self, dtype);
}
// The matrices in the last two dimensions.
static TensorRef with_matrices_last(const Tensor& x, TwoDims d) {
  Shape order;
  for (int64_t k = 0; k < x.ndim; k++)
    if (k != d.rows && k != d.columns) order.push_back(k);
  order.push_back(d.rows);
  order.push_back(d.columns);
  return op::permute(x, order);
}
static TensorRef kept(TensorRef norms, const Tensor& x, TwoDims d, bool keepdim) {
  if (!keepdim) return norms;
  Shape shape(x.sizes());
  shape[d.rows] = 1;
  shape[d.columns] = 1;
  return op::reshape(*norms, shape);
}

// The maximum of nothing is 0, that of no norms.
static TensorRef picked(const Tensor& x, int64_t along, bool largest, bool keepdim) {
  const int64_t dim[1] = {along};
  if (largest && x.size(along) == 0) return op::sum_dim(x, dim, keepdim);
  return largest ? op::amax(x, dim, keepdim) : op::amin(x, dim, keepdim);
}
static TensorRef singular_norm(const Tensor& x, TwoDims d, bool largest, bool keepdim) {
  const TensorRef s = op::linalg_svdvals(*with_matrices_last(x, d));
  return kept(picked(*s, -1, largest, false), x, d, keepdim);
}
// The largest or smallest sum of absolute values along `along`.
static TensorRef sum_norm(const Tensor& x, int64_t along, int64_t across, bool largest,
                          bool keepdim) {
  const int64_t summed[1] = {along};
  const TensorRef sums = op::sum_dim(*op::abs(x), summed, true);
  TensorRef norms = picked(*sums, across, largest, true);
  const int64_t both[2] = {along, across};
  return keepdim ? std::move(norms) : op::squeeze_dims(*norms, both);
}

TensorRef linalg_matrix_norm(Call, const Tensor& self, double ord, Ints dim, bool keepdim,
                             Dtype dtype) {
  const TwoDims d = matrix_dims(self, dim);
  const TensorRef x = norm_input(self, dtype);
  const double size = ord < 0 ? -ord : ord;
  if (size == 2) return singular_norm(*x, d, ord > 0, keepdim);
  if (size == 1) return sum_norm(*x, d.rows, d.columns, ord > 0, keepdim);
  if (size == kInf) return sum_norm(*x, d.columns, d.rows, ord > 0, keepdim);
  fail_arg(TT_INVALID_ARG, "ord", "ord is {}: must be 1, -1, 2, -2, inf or -inf for matrices", ord);
}

TensorRef linalg_matrix_norm_str(Call, const Tensor& self, int64_t ord, Ints dim, bool keepdim,
                                 Dtype dtype) {
  const TwoDims d = matrix_dims(self, dim);
  const TensorRef x = norm_input(self, dtype);
  const int64_t both[2] = {d.rows, d.columns};
  if (ord == kMatrixNormFro) return op::norm(*x, 2, both, keepdim);
  check_precise(*x, "self");
  return op::nuclear_norm(*x, both, keepdim);
}

TensorRef linalg_vector_norm(Call, const Tensor& self, double ord, Ints dim, bool keepdim,
                             Dtype dtype) {
  return op::norm(self, ord, dim, keepdim, dtype);
}

TensorRef linalg_norm(Call, const Tensor& self, Opt<double> ord, Ints dim, bool keepdim,
                      Dtype dtype) {
  const int64_t reduced = dim.n ? dim.n : self.ndim;
  if (ord && reduced != 1 && reduced != 2)
    fail_arg(TT_INVALID_ARG, "ord", "ord is {}, {} dimensions are reduced: must be 1 or 2", *ord,
             reduced);
  if (ord && reduced == 2) return op::linalg_matrix_norm(self, *ord, dim, keepdim, dtype);
  return op::norm(self, ord ? *ord : 2.0, dim, keepdim, dtype);
}

// ---- condition numbers ----

static TensorRef no_condition(const Tensor& self) {
  return op::zeros(batch_of(self), real_of(self.dtype), self.device);
}
// The norms of self times those of the inverses; inf where there is none.
template <class Norm> static TensorRef condition(const Tensor& self, const Norm& norm) {
  check_square(self, "self");
  if (!self.size(-1)) return no_condition(self);
  TensorPair f = op::linalg_inv_ex(self);
  const TensorRef singular = op::ne(*f.second, Scalar(0));
  const TensorRef product = op::mul(*norm(self), *norm(*f.first));
  return op::masked_fill(*product, *singular, Scalar(kInf));
}

TensorRef linalg_cond(Call, const Tensor& self, Opt<double> p) {
  check_matrices(self, "self");
  if (p && *p != 2 && *p != -2)
    return condition(self, [&](const Tensor& x) { return op::linalg_matrix_norm(x, *p); });
  const int64_t k = TT_NS::min(self.size(-1), self.size(-2));
  if (!k) return no_condition(self);
  const TensorRef s = op::linalg_svdvals(self);
  const TensorRef top = op::select(*s, -1, 0);
  const TensorRef bottom = op::select(*s, -1, k - 1);
  return p && *p < 0 ? op::div_true(*bottom, *top) : op::div_true(*top, *bottom);
}
TensorRef linalg_cond_str(Call, const Tensor& self, int64_t p) {
  check_matrices(self, "self");
  return condition(self, [&](const Tensor& x) { return op::linalg_matrix_norm_str(x, p); });
}

}  // namespace TT_NS::impl
