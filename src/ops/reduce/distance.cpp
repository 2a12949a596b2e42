// Distances and similarities of vectors: dist, pairwise_distance, cosine_similarity, cdist, pdist,
// normalize, renorm.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"

namespace TT_NS::impl {

TensorRef dist(Call, const Tensor& self, const Tensor& other, double p) {
  return op::norm(*op::sub(self, other), p);
}

TensorRef pairwise_distance(Call, const Tensor& x1, const Tensor& x2, double p, double eps,
                            bool keepdim) {
  TensorRef difference = op::add(*op::sub(x1, x2), eps);
  if (difference->ndim == 0)
    fail_arg(TT_SHAPE, "x1", "x1 and x2 are 0-dim: at least one needs a dimension");
  const int64_t last[1] = {-1};
  return op::norm(difference, p, last, keepdim);
}

// The length of each vector, at least eps; the gradient is that of the length.
static TensorRef length_of(const Tensor& x, Ints dim, double eps) {
  TensorRef length = op::norm(x, 2, dim, true);
  const Scalar lower = eps;
  TensorRef more = op::sub(*op::clamp(op::detach(*length), &lower), *op::detach(*length));
  return op::add(length, *more);
}

TensorRef cosine_similarity(Call, const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  const Dtype d = result_type({&x1, &x2});
  if (!is_differentiable(d) || is_complex(d))
    fail_arg(TT_DTYPE, "x1", "x1 is {}, x2 is {}: must promote to a floating dtype", fmt(x1.dtype),
             fmt(x2.dtype));
  check_same_device(x1, "x1", x2, "x2");
  const Shape shape = broadcast_shapes(x1.sizes(), x2.sizes(), "x1", "x2");
  const int64_t along = wrap_dim(dim, shape.size());
  const Ints dims(&along, 1);
  TensorRef a = op::expand(*as_dtype(TensorRef::share(&x1), d), shape);
  TensorRef b = op::expand(*as_dtype(TensorRef::share(&x2), d), shape);
  TensorRef product = op::mul(*op::div_true(a, *length_of(a, dims, eps)),
                              *op::div_true(b, *length_of(b, dims, eps)));
  return op::sum_dim(product, dims);
}

TensorRef normalize(Call, const Tensor& input, double p, int64_t dim, double eps) {
  const int64_t along = wrap_dim(dim, input.ndim);
  const Scalar lower = eps;
  return op::div_true(input, *op::clamp(op::norm(input, p, Ints(&along, 1), true), &lower));
}

// Each slice of dim longer than maxnorm is scaled.
TensorRef renorm(Call, const Tensor& self, double p, int64_t dim, double maxnorm) {
  if (self.ndim < 2)
    fail_arg(TT_SHAPE, "self", "self is {}: must have at least 2 dimensions", self.sizes());
  if (!(p > 0)) fail_arg(TT_INVALID_ARG, "p", "p is {}: must be positive", p);
  if (!(maxnorm >= 0))
    fail_arg(TT_INVALID_ARG, "maxnorm", "maxnorm is {}: must not be negative", maxnorm);
  const int64_t d = wrap_dim(dim, self.ndim);
  Shape others;
  for (int64_t k = 0; k < self.ndim; k++)
    if (k != d) others.push_back(k);
  const bool narrow = self.dtype == Dtype::kF16 || self.dtype == Dtype::kBF16;
  TensorRef length = op::norm(self, p, others, true, narrow ? Dtype::kF32 : Dtype::kNone);
  TensorRef factor = op::mul(*op::reciprocal(*op::add(*length, 1e-7)), maxnorm);
  factor = op::masked_fill(factor, *op::logical_not(*op::gt(*length, maxnorm)), 1);
  return as_dtype(op::mul(self, *factor), self.dtype);
}

// ---- cdist, pdist ----

// sqrt(|x|^2 + |y|^2 - 2 x y) by one product of matrices; the gradient is 0 where the distance is.
static TensorRef euclidean_by_product(const Tensor& x1, const Tensor& x2) {
  const int64_t last[1] = {-1};
  auto with = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    const Tensor* const parts[3] = {&a, &b, &c};
    return op::cat(parts, -1);
  };
  TensorRef n1 = op::sum_dim(op::mul(x1, x1), last, true);
  TensorRef n2 = op::sum_dim(op::mul(x2, x2), last, true);
  TensorRef left = with(*op::mul(x1, -2), *n1, *op::ones_like(*n1));
  TensorRef right = with(x2, *op::ones_like(*n2), *n2);
  TensorRef square = op::matmul(*left, *op::transpose(*right, -2, -1));
  TensorRef none = op::le(*square, 0);
  return op::masked_fill(*op::sqrt(*op::masked_fill(*square, *none, 1)), *none, 0);
}

// The number of elements that are not 0; nan counts as nan.
static TensorRef count_different(const Tensor& difference, Ints dim) {
  const Scalar one(1);
  return op::sum_dim(*op::clamp(*op::ceil(*op::abs(difference)), nullptr, &one), dim);
}
static TensorRef without_nan(const Tensor& t) {
  return op::masked_fill(t, *op::isnan(t), Scalar(0));
}

// The norms of the last dimension. Second derivatives of equal elements are 0, as PyTorch's are;
// those of norm are nan.
static TensorRef distances(TensorRef difference, double p) {
  const int64_t last[1] = {-1};
  if (difference->grad_fn && p != 1 && p != kInf) {
    TensorRef equal = op::eq(*difference, 0);
    if (p == 2) equal = op::all_dim(*equal, last, true);
    difference = op::masked_fill(*difference, *equal, Scalar(0));
  }
  return op::norm(*difference, p, last);
}

// As in PyTorch, the maximum of p = inf ignores nan here, but not in pdist.
TensorRef cdist(Call, const Tensor& x1, const Tensor& x2, double p, int64_t compute_mode) {
  constexpr int64_t kFewRows = 25;  // of which differences are as fast and more precise
  check_same_device(x1, "x1", x2, "x2");
  for (const Tensor* x : {&x1, &x2}) {
    const char* const arg = x == &x1 ? "x1" : "x2";
    check_dtype_float(*x, arg);
    if (x->ndim < 2 || is_complex(x->dtype))
      fail_arg(x->ndim < 2 ? TT_SHAPE : TT_NOT_IMPLEMENTED, arg,
               "{} is {} of {}: must be real with at least 2 dimensions", arg, x->sizes(),
               fmt(x->dtype));
  }
  if (x1.size(-1) != x2.size(-1))
    fail_arg(TT_SHAPE, "x2", "x1 is {}, x2 is {}: the last sizes must be equal", x1.sizes(),
             x2.sizes());
  if (!(p >= 0)) fail_arg(TT_INVALID_ARG, "p", "p is {}: must not be negative", p);
  const bool many = x1.size(-2) > kFewRows || x2.size(-2) > kFewRows;
  const bool by_product = compute_mode == kCdistModeUseMmForEuclidDist ||
                          (compute_mode == kCdistModeUseMmForEuclidDistIfNecessary && many);
  if (p == 2 && by_product) return euclidean_by_product(x1, x2);
  TensorRef difference = op::sub(*op::unsqueeze(x1, -2), *op::unsqueeze(x2, -3));
  const int64_t last[1] = {-1};
  if (x1.size(-1) == 0) return op::sum_dim(op::mul(difference, difference), last);
  if (p == 0) return count_different(*difference, last);
  if (p == kInf) difference = without_nan(*difference);
  return distances(std::move(difference), p);
}

TensorRef pdist(Call, const Tensor& self, double p) {
  if (self.ndim != 2) fail_arg(TT_SHAPE, "self", "self is {}: must be a matrix", self.sizes());
  if (!(p >= 0)) fail_arg(TT_INVALID_ARG, "p", "p is {}: must not be negative", p);
  check_dtype_float(self, "self");
  if (is_complex(self.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be real", fmt(self.dtype));
  const int64_t n = self.size(0);
  TensorRef pairs = op::triu_indices(n, n, 1, Dtype::kI64, self.device);
  TensorRef difference = op::sub(*op::index_select(self, 0, *op::select(*pairs, 0, 0)),
                                 *op::index_select(self, 0, *op::select(*pairs, 0, 1)));
  const int64_t last[1] = {-1};
  if (self.size(1) == 0) return op::sum_dim(difference, last);
  if (p == 0) return count_different(*difference, last);
  return distances(std::move(difference), p);
}

}  // namespace TT_NS::impl
