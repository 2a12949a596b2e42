// Powers, exponentials and products of matrices; systems of tensors.
#include "ops/linalg/matrices.h"

namespace TT_NS::impl {

static void check_square_any(const Tensor& self) {
  if (self.ndim < 2 || self.size(-1) != self.size(-2))
    fail_arg(TT_SHAPE, "self", "self is {}: must be square matrices", self.sizes());
}

TensorRef linalg_matrix_power(Call, const Tensor& self, int64_t n) {
  check_square_any(self);
  if (self.dtype == Dtype::kBool) fail_arg(TT_DTYPE, "self", "self is bool: must be numbers");
  if (n == 0) {
    const int64_t size = self.size(-1);
    const TensorRef one = op::eye(size, size, self.dtype, self.device);
    if (is_tracked(self)) {  // the gradient is 0
      const TensorRef all = op::ones({}, Dtype::kBool, self.device);
      return op::add(*op::masked_fill(self, *all, 0), *one);
    }
    return op::clone(*op::expand(*one, self.sizes()), TT_CONTIGUOUS);
  }
  TensorRef square = n < 0 ? op::linalg_inv(self) : TensorRef::share(&self);
  TensorRef power;
  for (uint64_t left = n < 0 ? 0 - uint64_t(n) : uint64_t(n); left; left >>= 1) {
    if (left & 1) power = power ? op::matmul(*power, *square) : square;
    if (left > 1) square = op::matmul(*square, *square);
  }
  return n == 1 ? op::clone(*power) : std::move(power);
}

// ---- the exponential ----

// How often each matrix is halved so that its 1-norm is at most 1, and squared afterwards; 0 for
// one that is not finite. In double, of shape […,1,1].
static TensorRef squarings_of(const Tensor& x) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const int64_t rows[1] = {-2};
  const int64_t last[1] = {-1};
  const TensorRef sums = op::sum_dim(*op::abs(x), rows, true);
  const TensorRef norms = op::to_dtype(*op::amax(*sums, last, true), Dtype::kF64);
  const TensorRef counts = op::ceil(*op::log2(*norms));
  const TensorRef none = op::logical_not(*op::gt(*counts, 0));
  const TensorRef finite = op::masked_fill(*counts, *op::logical_not(*op::isfinite(*norms)), 0);
  return op::masked_fill(*finite, *none, 0);
}

// The Taylor polynomial of degree 18 by Paterson & Stockmeyer: a polynomial of degree 6 in X^3,
// whose coefficients are polynomials of degree 2 in X. Precise to 2^-53 for norms up to 1 (Bader,
// Blanes & Casas, Mathematics 7 (2019)).
static TensorRef taylor(const Tensor& x) {
  constexpr int kDegree = 18;
  double factorial[kDegree + 1] = {1};
  for (int k = 1; k <= kDegree; k++) factorial[k] = factorial[k - 1] * k;
  const int64_t n = x.size(-1);
  const TensorRef one = op::eye(n, n, x.dtype, x.device);
  const TensorRef square = op::matmul(x, x);
  const TensorRef cube = op::matmul(*square, x);
  TensorRef sum = op::mul(*one, Scalar(1 / factorial[kDegree]));
  for (int k = kDegree - 3; k >= 0; k -= 3) {
    sum =
        k == kDegree - 3 ? op::mul(*cube, Scalar(1 / factorial[kDegree])) : op::matmul(*sum, *cube);
    sum = op::add(*sum, *one, Scalar(1 / factorial[k]));
    sum = op::add(*sum, x, Scalar(1 / factorial[k + 1]));
    sum = op::add(*sum, *square, Scalar(1 / factorial[k + 2]));
  }
  return sum;
}

// exp(X) = exp(X / 2^s)^(2^s), with an s for each matrix. Computed in f64 or c128.
TensorRef matrix_exp(Call, const Tensor& self) {
  check_square_any(self);
  check_dtype_float(self, "self");
  if (!self.numel) return op::clone(self);
  const TensorRef wide = op::to_dtype(self, precise(self.dtype));
  if (self.device.type == TT_META) return converted(taylor(*wide), self.dtype);
  const TensorRef counts = squarings_of(*wide);
  const auto most = int(read_scalar(*op::amax(*counts)).real());
  if (!most) return converted(taylor(*wide), self.dtype);
  TensorRef out = taylor(*op::mul(*wide, *op::exp2(*op::neg(*counts))));
  for (int k = 0; k < most; k++) {
    const TensorRef squared = op::matmul(*out, *out);
    out = counts->numel == 1 ? squared : op::where(*op::gt(*counts, k), *squared, *out);
  }
  return converted(std::move(out), self.dtype);
}

// ---- products ----

TensorRef linalg_multi_dot(Call, TensorSpan tensors) {
  if (tensors.n < 2)
    fail_arg(TT_INVALID_ARG, "tensors", "tensors has {} tensors: must be two or more", tensors.n);
  TensorList matrices;
  const int64_t last = tensors.n - 1;
  const bool row = tensors[0]->ndim == 1;
  const bool column = tensors[last]->ndim == 1;
  for (int64_t i = 0; i <= last; i++) matrices.push_back(TensorRef::share(tensors[i]));
  if (row) matrices[0] = op::unsqueeze(*matrices[0], 0);
  if (column) matrices[last] = op::unsqueeze(*matrices[last], 1);
  SmallVec<const Tensor*, 8> list;
  for (int64_t i = 0; i <= last; i++) list.push_back(matrices[i].get());
  TensorRef out = op::chain_matmul({list.data(), list.size()});
  if (column) out = without_dim(*out, 1);
  if (row) out = without_dim(*out, 0);
  return out;
}

TensorRef linalg_vecdot(Call, const Tensor& self, const Tensor& other, int64_t dim) {
  check_same_dtype(self, "self", other, "other");
  const int64_t along[1] = {dim};
  return op::sum_dim(*op::mul(*op::conj(self), other), along, false, self.dtype);
}

// ---- systems of tensors ----

static int64_t product_of(Ints sizes) {
  int64_t n = 1;
  for (int64_t d = 0; d < sizes.n; d++) n *= sizes[d];
  return n;
}

TensorRef linalg_tensorinv(Call, const Tensor& self, int64_t ind) {
  if (ind <= 0) fail_arg(TT_INVALID_ARG, "ind", "ind is {}: must be positive", ind);
  const int64_t at = TT_NS::min(ind, int64_t(self.ndim));
  const Ints first = self.sizes().slice(0, at);
  const Ints rest = self.sizes().slice(at, self.ndim);
  if (product_of(first) != product_of(rest))
    fail_arg(TT_SHAPE, "self", "self is {}, ind is {}: the products of {} and of {} must be equal",
             self.sizes(), ind, first, rest);
  const int64_t square[2] = {product_of(first), product_of(rest)};
  Shape shape(rest);
  for (int64_t d = 0; d < first.n; d++) shape.push_back(first[d]);
  return op::reshape(*op::linalg_inv(*op::reshape(self, square)), shape);
}

TensorRef linalg_tensorsolve(Call, const Tensor& self, const Tensor& other, Opt<Ints> dims) {
  TensorRef a = TensorRef::share(&self);
  if (dims) {
    Shape last;
    for (int64_t i = 0; i < (*dims).n; i++) last.push_back(self.ndim - (*dims).n + i);
    a = op::movedim(self, *dims, last);
  }
  const int64_t at = int64_t(TT_NS::min(other.ndim, a->ndim));
  const Ints shape = a->sizes().slice(at, a->ndim);
  const int64_t square[2] = {other.numel, product_of(shape)};
  if (square[0] != square[1] || a->numel != square[0] * square[1])
    fail_arg(TT_SHAPE, "other", "self is {}, other is {}: self must have the size of other squared",
             self.sizes(), other.sizes());
  const int64_t flat[1] = {other.numel};
  const TensorRef x = op::linalg_solve(*op::reshape(*a, square), *op::reshape(other, flat));
  return op::reshape(*x, shape);
}

}  // namespace TT_NS::impl
