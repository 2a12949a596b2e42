// Distances and similarities of vectors: dist, pairwise_distance, cosine_similarity, cdist, pdist,
// normalize, renorm.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"
#include "plan/reduce_plan.h"

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
  const Scalar zero = 0.0;
  TensorRef missing = op::clamp(op::rsub(*op::detach(*length), eps), &zero);
  return op::add(length, *missing);
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

// ---- the kernels ----

static DistancePlan distance_plan(const Tensor& x1, const Tensor& x2, double p, bool pairs) {
  DistancePlan plan{};
  plan.dtype = int32_t(x1.dtype);
  plan.pairs = pairs;
  plan.p = p;
  plan.batch = x1.size(0);
  plan.n = x1.size(1);
  plan.r = x2.size(1);
  plan.m = x1.size(2);
  plan.x1 = x1.data;
  plan.x2 = x2.data;
  return plan;
}
static int64_t grain_of(int64_t unit_work) { return 65536 / (unit_work + 1) + 1; }

TensorRef row_distances(Call, const Tensor& x1, const Tensor& x2, double p, bool pairs) {
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef a = dense_input(x1);
  TensorRef b = dense_input(x2);
  DistancePlan plan = distance_plan(*a, *b, p, pairs);
  Shape shape{plan.batch};
  if (pairs) {
    shape.push_back(plan.n * (plan.n - 1) / 2);
  } else {
    shape.push_back(plan.n);
    shape.push_back(plan.r);
  }
  TensorRef y = new_tensor(shape, x1.dtype, x1.device);
  if (!y->numel) return y;  // sizes beside a 0 may be any
  plan.y = y->data;
  const int64_t width = kDistancePanel / x1.item_size();
  const int64_t units = plan.batch * ceil_div(plan.n, kDistanceRows) * ceil_div(plan.r, width);
  const int64_t rows = TT_NS::min(plan.n, kDistanceRows);
  one_stage(&plan.run, units, grain_of(rows * width * plan.m));
  launch_stages(kernel_row_distances, x1.device, &plan.run);
  return y;
}

TensorRef row_distances_backward(Call, const Tensor& grad, const Tensor& x1, const Tensor& x2,
                                 const Tensor& y, double p, bool pairs) {
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef g = cast_input(grad, x1.dtype);
  TensorRef a = dense_input(x1);
  TensorRef b = dense_input(x2);
  TensorRef distances = dense_input(y);
  DistancePlan plan = distance_plan(*a, *b, p, pairs);
  TensorRef dx = new_tensor(x1.sizes(), x1.dtype, x1.device);
  if (!dx->numel) return dx;
  plan.y = distances->data;
  plan.grad = g->data;
  plan.dx = dx->data;
  const int64_t rows = pairs ? plan.n : TT_NS::min(plan.n, kDistanceRows);
  const int64_t width = kDistancePanel / x1.item_size();
  const int64_t units =
      plan.batch * ceil_div(plan.n, TT_NS::max<int64_t>(rows, 1)) * ceil_div(plan.m, width);
  one_stage(&plan.run, units, grain_of(rows * width * plan.r));
  launch_stages(kernel_row_distances_backward, x1.device, &plan.run);
  return dx;
}

// ---- cdist, pdist ----

static TensorRef in_batch(const Tensor& x, const Shape& batch) {
  Shape shape(batch);
  shape.push_back(x.size(-2));
  shape.push_back(x.size(-1));
  TensorRef all = op::expand(x, shape);
  const int64_t merged[3] = {numel_of(batch), x.size(-2), x.size(-1)};
  return op::reshape(*all, merged);
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
  const Dtype d = result_type({&x1, &x2});
  const Dtype computed = d == Dtype::kF64 ? d : Dtype::kF32;
  Shape shape = broadcast_shapes(x1.sizes().slice(0, x1.ndim - 2), x2.sizes().slice(0, x2.ndim - 2),
                                 "x1", "x2");
  TensorRef a = in_batch(*as_dtype(TensorRef::share(&x1), computed), shape);
  TensorRef b = in_batch(*as_dtype(TensorRef::share(&x2), computed), shape);
  TensorRef y = op::row_distances(*a, *b, p, false);
  shape.push_back(x1.size(-2));
  shape.push_back(x2.size(-2));
  return as_dtype(op::view(*y, shape), d);
}

TensorRef pdist(Call, const Tensor& self, double p) {
  if (self.ndim != 2) fail_arg(TT_SHAPE, "self", "self is {}: must be a matrix", self.sizes());
  if (!(p >= 0)) fail_arg(TT_INVALID_ARG, "p", "p is {}: must not be negative", p);
  check_dtype_float(self, "self");
  if (is_complex(self.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be real", fmt(self.dtype));
  const Dtype computed = self.dtype == Dtype::kF64 ? self.dtype : Dtype::kF32;
  const int64_t square[2] = {self.size(0), self.size(0)};
  checked_numel(square, computed, "self");
  TensorRef x = op::unsqueeze(*as_dtype(TensorRef::share(&self), computed), 0);
  TensorRef y = op::row_distances(*x, *op::detach(*x), p, true);
  return as_dtype(op::select(*y, 0, 0), self.dtype);
}

}  // namespace TT_NS::impl
