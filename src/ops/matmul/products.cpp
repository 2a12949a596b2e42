// Products in other forms: addmv, addr, addbmm, inner, tensordot, vdot, kron, cross, chain_matmul.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/one_pass.h"

namespace TT_NS::impl {

static void check_equal(int64_t a, int64_t b, const char* arg, const char* what) {
  if (a != b) fail_arg(TT_SHAPE, arg, "{}: the sizes {} and {} must be equal", what, a, b);
}

// The vector is a matrix of one column.
TensorRef addmv(Call, const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
                const Scalar& alpha) {
  check_ndim(mat, 2, "mat");
  check_ndim(vec, 1, "vec");
  check_equal(mat.size(1), vec.size(0), "vec", "mat.shape[1] and vec.shape[0]");
  if (self.ndim > 1) check_ndim(self, 1, "self");
  const MaskGuard uncast(mat.is_cpu() ? bit(kKeyAutocast) : 0);  // PyTorch casts it on CUDA alone
  TensorRef column = self.ndim ? op::unsqueeze(self, 1) : TensorRef::share(&self);
  return op::select(*op::addmm(column, mat, *op::unsqueeze(vec, 1), beta, alpha), 1, 0);
}

TensorRef addr(Call, const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
               const Scalar& alpha) {
  check_ndim(vec1, 1, "vec1");
  check_ndim(vec2, 1, "vec2");
  const int64_t shape[2] = {vec1.numel, vec2.numel};
  if (!broadcastable_to(self.sizes(), shape))
    fail_arg(TT_SHAPE, "self", "self is {}: must broadcast to the product's {}", self.sizes(),
             Ints(shape));
  const bool one_dtype = self.dtype == vec1.dtype && self.dtype == vec2.dtype;
  if (one_dtype && (is_float(self.dtype) || is_complex(self.dtype)))  // rounds once
    return op::addmm(self, *op::unsqueeze(vec1, 1), *op::unsqueeze(vec2, 0), beta, alpha);
  TensorRef product = op::outer(vec1, vec2);
  if (self.dtype == Dtype::kBool && product->dtype == Dtype::kBool && beta.category() < 2 &&
      alpha.category() < 2) {  // numbers count by their truth
    if (alpha.is_zero()) product = op::zeros_like(product);
    return beta.is_zero() ? std::move(product) : op::logical_or(self, *product);
  }
  if (beta.is_zero()) return alpha.is_one() ? std::move(product) : op::mul(product, alpha);
  return op::add(beta.is_one() ? self : *op::mul(self, beta), product, alpha);
}

// The sum of the products is one product of matrices side by side.
TensorRef addbmm(Call, const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                 const Scalar& beta, const Scalar& alpha) {
  check_ndim(batch1, 3, "batch1");
  check_ndim(batch2, 3, "batch2");
  check_equal(batch1.size(0), batch2.size(0), "batch2", "the sizes of the batches");
  check_equal(batch1.size(2), batch2.size(1), "batch2", "batch1.shape[2] and batch2.shape[1]");
  const int64_t k = batch1.size(0) * batch1.size(2);
  const int64_t left[2] = {batch1.size(1), k};
  const int64_t right[2] = {k, batch2.size(2)};
  return op::addmm(self, *op::reshape(*op::transpose(batch1, 0, 1), left),
                   *op::reshape(batch2, right), beta, alpha);
}

TensorRef vdot(Call, const Tensor& self, const Tensor& other) {
  check_ndim(self, 1, "self");
  check_ndim(other, 1, "other");
  check_equal(self.numel, other.numel, "other", "self.shape[0] and other.shape[0]");
  const MaskGuard uncast(bit(kKeyAutocast));
  return op::matmul(*op::conj(self), other);
}

// ---- tensordot, inner ----

// The dimensions in the order: those not in `dims`, then dims; or dims first.
static Shape sorted_dims(const Tensor& t, uint64_t mask, Ints dims, bool dims_first) {
  Shape out;
  for (int pass = 0; pass < 2; pass++) {
    const bool summed = (pass == 0) == dims_first;
    if (summed)
      for (int64_t d : dims) out.push_back(wrap_dim(d, t.ndim));
    for (int64_t d = 0; d < t.ndim && !summed; d++)
      if (!(mask >> d & 1)) out.push_back(d);
  }
  return out;
}

TensorRef tensordot(Call, const Tensor& self, const Tensor& other, Ints dims_self,
                    Ints dims_other) {
  if (dims_self.n != dims_other.n)
    fail_arg(TT_INVALID_ARG, "dims_other",
             "dims_self is {}, dims_other is {}: must have equal lengths", dims_self, dims_other);
  const uint64_t of_self = dim_mask(dims_self, self.ndim, false, "dims_self");
  const uint64_t of_other = dim_mask(dims_other, other.ndim, false, "dims_other");
  TensorRef a = TensorRef::share(&self);
  TensorRef b = TensorRef::share(&other);
  int64_t k = 1;
  for (int64_t i = 0; i < dims_self.n && self.ndim; i++) {
    const int64_t da = wrap_dim(dims_self[i], self.ndim);
    const int64_t db = wrap_dim(dims_other[i], other.ndim);
    const int64_t na = self.size(da);
    const int64_t nb = other.ndim ? other.size(db) : 1;
    if (na != nb && na != 1 && nb != 1)
      fail_arg(TT_SHAPE, "dims_other", "self.shape[{}] is {}, other.shape[{}] is {}: must be equal",
               da, na, db, nb);
    // A size of 1 broadcasts: the other operand is summed.
    if (na != nb && na == 1) b = op::sum_dim(b, Ints(&db, 1), true, b->dtype);
    if (na != nb && nb == 1) a = op::sum_dim(a, Ints(&da, 1), true, a->dtype);
    k *= na == nb ? na : 1;
  }
  Shape shape;
  for (int64_t d = 0; d < self.ndim; d++)
    if (!(of_self >> d & 1)) shape.push_back(self.size(d));
  const int64_t kept = shape.size();
  for (int64_t d = 0; d < other.ndim; d++)
    if (!(of_other >> d & 1)) shape.push_back(other.size(d));
  if (shape.size() > kMaxDims)
    fail_arg(TT_SHAPE, "other", "the result would have {} dims, at most {} are supported",
             shape.size(), kMaxDims);
  const int64_t left[2] = {numel_of(Ints(shape).slice(0, kept)), k};
  const int64_t right[2] = {k, numel_of(Ints(shape).slice(kept, shape.size()))};
  if (self.ndim) a = op::permute(a, sorted_dims(self, of_self, dims_self, false));
  if (other.ndim) b = op::permute(b, sorted_dims(other, of_other, dims_other, true));
  return op::reshape(*op::mm(*op::reshape(a, left), *op::reshape(b, right)), shape);
}

TensorRef inner(Call, const Tensor& self, const Tensor& other) {
  if (self.dtype == Dtype::kBool)
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is bool: must hold numbers");
  if (self.ndim == 0 || other.ndim == 0) return op::mul(self, other);
  if (self.size(-1) != other.size(-1))
    fail_arg(TT_SHAPE, "other", "self is {}, other is {}: the last sizes must be equal",
             self.sizes(), other.sizes());
  const int64_t last[1] = {-1};
  const bool is_dot = self.ndim == 1 && other.ndim == 1;
  const MaskGuard uncast(is_dot ? bit(kKeyAutocast) : 0);
  return op::tensordot(self, other, last, last);
}

// ---- kron, cross, chain_matmul ----

// out[i * n + j] = self[i] * other[j] in every dimension: a product that broadcasts.
TensorRef kron(Call, const Tensor& self, const Tensor& other) {
  const int64_t ndim = TT_NS::max(self.ndim, other.ndim);
  if (2 * ndim > kMaxDims)
    fail_arg(TT_SHAPE, "self", "self is {}, other is {}: at most {} dimensions are supported",
             self.sizes(), other.sizes(), kMaxDims / 2);
  Shape a, b, shape;
  for (int64_t d = 0; d < ndim; d++) {
    const int64_t na = d < ndim - self.ndim ? 1 : self.size(d - (ndim - self.ndim));
    const int64_t nb = d < ndim - other.ndim ? 1 : other.size(d - (ndim - other.ndim));
    int64_t n;
    if (mul_overflow(na, nb, &n))
      fail_arg(TT_SHAPE, "other", "self is {}, other is {}: the size of the result overflows",
               self.sizes(), other.sizes());
    a.push_back(na);
    a.push_back(1);
    b.push_back(1);
    b.push_back(nb);
    shape.push_back(n);
  }
  checked_numel(shape, Dtype::kC128, "result");
  return op::reshape(*op::mul(*op::reshape(self, a), *op::reshape(other, b)), shape);
}

// Cross products of n dense vectors.
struct CrossPlan {
  Dtype dtype;
  int64_t n;
  const char *a, *b;
  char* out;
};
template <class T> static void cross_of(const CrossPlan& p) {
  const T* a = reinterpret_cast<const T*>(p.a);
  const T* b = reinterpret_cast<const T*>(p.b);
  T* out = reinterpret_cast<T*>(p.out);
  for (int64_t i = 0; i < p.n; i++, a += 3, b += 3, out += 3) {
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
  }
}
static void cross_vectors(const CrossPlan& p) {
  if (p.dtype == Dtype::kF64) cross_of<double>(p);
  else cross_of<float>(p);
}
constexpr Kernel kCross = one_pass_kernel<CrossPlan, cross_vectors>("cross");

static bool has_cross_kernel(const Tensor& a, const Tensor& b, int64_t d) {
  const bool known = a.dtype == Dtype::kF32 || a.dtype == Dtype::kF64;
  return known && a.dtype == b.dtype && same(a.sizes(), b.sizes()) && a.contiguous() &&
         b.contiguous() && a.numel && d == a.ndim - 1 && takes_one_pass(a) && takes_one_pass(b);
}
static TensorRef cross_in_one_pass(const Tensor& a, const Tensor& b) {
  TensorRef out = new_tensor(a.sizes(), a.dtype, a.device);
  const CrossPlan plan = {
      .dtype = a.dtype, .n = a.numel / 3, .a = a.data, .b = b.data, .out = out->data};
  launch(kCross, kCpuDevice, &plan, 1);
  return out;
}

TensorRef cross(Call, const Tensor& self, const Tensor& other, Opt<int64_t> dim) {
  if (self.ndim != other.ndim)
    fail_arg(TT_SHAPE, "other", "self is {}, other is {}: must have the same number of dimensions",
             self.sizes(), other.sizes());
  int64_t d = 0;
  if (dim.has) {
    d = wrap_dim(dim.value, self.ndim);
  } else {
    while (d < self.ndim && self.size(d) != 3) d++;
    if (d == self.ndim)
      fail_arg(TT_SHAPE, "self", "self is {}: no dimension has size 3", self.sizes());
  }
  if (self.ndim == 0 || self.size(d) != 3 || other.size(d) != 3)
    fail_arg(TT_SHAPE, self.ndim && self.size(d) == 3 ? "other" : "self",
             "self is {}, other is {}: must have size 3 in dimension {}", self.sizes(),
             other.sizes(), d);
  if (has_cross_kernel(self, other, d)) return cross_in_one_pass(self, other);
  const Ints along(&d, 1);
  const int64_t one[1] = {-1};
  const int64_t two[1] = {-2};
  // 16-bit numbers are computed in float32.
  const Dtype common = result_type({&self, &other});
  const bool narrow = common == Dtype::kF16 || common == Dtype::kBF16;
  TensorRef a = narrow ? op::to_dtype(self, Dtype::kF32) : TensorRef::share(&self);
  TensorRef b = narrow ? op::to_dtype(other, Dtype::kF32) : TensorRef::share(&other);
  TensorRef out = op::sub(*op::mul(*op::roll(*a, one, along), *op::roll(*b, two, along)),
                          *op::mul(*op::roll(*a, two, along), *op::roll(*b, one, along)));
  return narrow ? op::to_dtype(*out, common) : std::move(out);
}

// The order with the fewest multiplications, by dynamic programming over the chains i … j.
namespace {
class Chain {
 public:
  explicit Chain(TensorSpan matrices) : m_(matrices), n_(matrices.n) {
    cost_.resize(n_ * n_, 0);
    split_.resize(n_ * n_, 0);
    for (int64_t length = 1; length < n_; length++)
      for (int64_t i = 0; i + length < n_; i++) choose(i, i + length);
  }
  // The product of i … j. Its depth is at most the number of matrices.
  TensorRef product(int64_t i, int64_t j) const {
    if (i == j) return TensorRef::share(m_[i]);
    const int64_t k = split_[i * n_ + j];
    return op::mm(*product(i, k), *product(k + 1, j));
  }

 private:
  void choose(int64_t i, int64_t j) {
    double best = kInf;
    for (int64_t k = i; k < j; k++) {
      const double cost = cost_[i * n_ + k] + cost_[(k + 1) * n_ + j] +
                          double(m_[i]->size(0)) * double(m_[k]->size(1)) * double(m_[j]->size(1));
      if (cost >= best) continue;
      best = cost;
      split_[i * n_ + j] = k;
    }
    cost_[i * n_ + j] = best;
  }

  TensorSpan m_;
  int64_t n_;
  SmallVec<double, 16> cost_;
  SmallVec<int64_t, 16> split_;
};
}  // namespace

TensorRef chain_matmul(Call, TensorSpan matrices) {
  constexpr int64_t kMaxMatrices = 256;
  if (matrices.n == 0 || matrices.n > kMaxMatrices)
    fail_arg(TT_INVALID_ARG, "matrices", "matrices has {} entries: must have 1 to {}", matrices.n,
             kMaxMatrices);
  for (int64_t i = 0; i < matrices.n; i++) {
    check_ndim(*matrices[i], 2, "matrices");
    if (matrices[i]->dtype == Dtype::kBool)
      fail_arg(TT_NOT_IMPLEMENTED, "matrices", "matrix {} is bool: must hold numbers", i);
    if (i && matrices[i]->size(0) != matrices[i - 1]->size(1))
      fail_arg(TT_SHAPE, "matrices",
               "matrices {} and {} are {} and {}: the inner sizes must be equal", i - 1, i,
               matrices[i - 1]->sizes(), matrices[i]->sizes());
  }
  return Chain(matrices).product(0, matrices.n - 1);
}

}  // namespace TT_NS::impl
