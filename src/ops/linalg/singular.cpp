// Singular value decompositions, and what they give: ranks, pseudo-inverses, least squares.
#include "ops/linalg/matrices.h"

namespace TT_NS::impl {

static void check_singular_values(const Tensor& s) {
  if (s.device.type == TT_META || !s.numel) return;
  const int64_t last[1] = {-1};
  TensorRef odd;
  {
    MaskGuard no_grad(bit(kKeyAutograd));
    odd = op::to_dtype(*op::any_dim(*op::isnan(s), last), Dtype::kI32);
  }
  check_info(*odd, kNoResult);
}

// The columns of q, (…, m, k), and m - k more that make them a basis.
static TensorRef completed(const Tensor& q) {
  const int64_t missing = q.size(-2) - q.size(-1);
  if (missing == 0) return TensorRef::share(&q);
  TensorRef more;
  {
    MaskGuard no_grad(bit(kKeyAutograd));
    const TensorRef basis = op::native_qr(q, kQrModeComplete).first;
    more = op::contiguous(*op::narrow(*basis, -1, q.size(-1), missing));
  }
  const Tensor* parts[2] = {&q, more.get()};
  return op::cat({parts, 2}, -1);
}

TensorTriple linalg_svd(Call, const Tensor& self, bool full_matrices) {
  check_matrices(self, "self");
  TensorTriple f = op::native_svd(self);
  check_singular_values(*f.second);
  if (!full_matrices) return f;
  checked_numel(matrix_shape(batch_of(self), self.size(-2), self.size(-2)), Dtype::kC128, "U");
  checked_numel(matrix_shape(batch_of(self), self.size(-1), self.size(-1)), Dtype::kC128, "Vh");
  f.first = completed(*f.first);
  f.third = self.size(-1) > self.size(-2) ? adjoint_of(*completed(*adjoint_of(*f.third)))
                                          : std::move(f.third);
  return f;
}
TensorTriple svd(Call, const Tensor& self, bool some, bool compute_uv) {
  TensorTriple f;
  if (!compute_uv) {  // U and V are square, as in PyTorch
    f.second = op::linalg_svdvals(self);
    const Shape u = matrix_shape(batch_of(self), self.size(-2), self.size(-2));
    const Shape v = matrix_shape(batch_of(self), self.size(-1), self.size(-1));
    f.first = op::zeros(u, self.dtype, self.device);
    f.third = op::zeros(v, self.dtype, self.device);
    return f;
  }
  f = op::linalg_svd(self, !some);
  f.third = adjoint_of(*f.third);
  return f;
}
TensorRef linalg_svdvals(Call, const Tensor& self) {
  check_matrices(self, "self");
  TensorRef s = is_tracked(self) ? op::native_svd(self).second : op::native_svdvals(self);
  check_singular_values(*s);
  return s;
}

// ---- ranks and pseudo-inverses ----

static double epsilon_of(Dtype d) { return real_of(d) == Dtype::kF32 ? 0x1p-23 : 0x1p-52; }

static void check_tolerance(const Tensor* t, const char* name, const Tensor& self) {
  if (!t) return;
  check_same_device(self, "self", *t, name);
  if (is_complex(t->dtype)) fail_arg(TT_DTYPE, name, "{} is {}: must be real", name, fmt(t->dtype));
}

// The tolerance of singular values whose largest are `top`, (…, 1).
static TensorRef tolerance(const Tensor& self, const Tensor& top, const Tensor* atol,
                           const Tensor* rtol) {
  check_tolerance(atol, "atol", self);
  check_tolerance(rtol, "rtol", self);
  const double usual = epsilon_of(self.dtype) * double(TT_NS::max(self.size(-1), self.size(-2)));
  TensorRef relative;
  if (rtol) {
    relative = op::mul(top, *op::unsqueeze(*rtol, -1));
  } else {
    relative = op::mul(top, Scalar(usual));
    if (atol)
      relative =
          op::masked_fill(*relative, *op::gt(*op::unsqueeze(*atol, -1), Scalar(0)), Scalar(0));
  }
  return atol ? op::maximum(*relative, *op::unsqueeze(*op::to_dtype(*atol, relative->dtype), -1))
              : std::move(relative);
}
static TensorRef largest(const Tensor& s) {
  const int64_t last[1] = {-1};
  if (s.size(-1)) return op::amax(s, last, true);
  return op::zeros(vector_shape(s.sizes().slice(0, s.ndim - 1), 1), s.dtype, s.device);
}

TensorRef linalg_matrix_rank(Call, const Tensor& self, const Tensor* atol, const Tensor* rtol,
                             bool hermitian) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_matrices(self, "self");
  if (hermitian) check_square(self, "self");
  const TensorRef s = hermitian ? op::abs(*op::linalg_eigvalsh(self)) : op::linalg_svdvals(self);
  const TensorRef large = op::gt(*s, *tolerance(self, *largest(*s), atol, rtol));
  const int64_t last[1] = {-1};
  return op::sum_dim(*large, last, false, Dtype::kI64);
}

TensorRef native_pinv(Call, const Tensor& self, const Tensor* atol, const Tensor* rtol,
                      bool hermitian) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const TensorRef a = cast_input(self, precise(self.dtype));
  TensorRef u, s, vh;
  if (hermitian) {
    TensorPair f = op::native_eigh(*a, false, true);
    s = std::move(f.first);
    vh = adjoint_of(*f.second);
    u = std::move(f.second);
  } else {
    TensorTriple f = op::native_svd(*a);
    u = std::move(f.first);
    s = std::move(f.second);  // nan where a matrix is not finite, and so is its result
    vh = std::move(f.third);
  }
  const TensorRef size = op::abs(*s);
  const TensorRef small = op::le(*size, *tolerance(self, *largest(*size), atol, rtol));
  const TensorRef inverse = op::masked_fill(*op::reciprocal(*s), *small, Scalar(0));
  const TensorRef right = op::mul(*adjoint_of(*vh), *op::unsqueeze(*inverse, -2));
  return converted(op::matmul(*right, *adjoint_of(*u)), self.dtype);
}
TensorRef linalg_pinv(Call, const Tensor& self, const Tensor* atol, const Tensor* rtol,
                      bool hermitian) {
  check_matrices(self, "self");
  if (hermitian) check_square(self, "self");
  return op::native_pinv(self, atol, rtol, hermitian);
}
static TensorRef number_like(const Tensor& self, double value) {
  return op::full(Ints(), Scalar(value), Dtype::kF64, self.device);
}
TensorRef pinverse(Call, const Tensor& self, double rcond) {
  return op::linalg_pinv(self, nullptr, number_like(self, rcond).get());
}

// ---- least squares ----

// The squared lengths of the columns of a @ x - b.
static TensorRef residuals_of(const Tensor& a, const Tensor& x, const Tensor& b) {
  const TensorRef rest = op::sub(*op::matmul(a, x), b);
  const int64_t rows[1] = {-2};
  return op::sum_dim(*op::square(*op::abs(*rest)), rows);
}

// None, but with a gradient like others.
static TensorRef no_residuals(const Tensor& x) {
  const int64_t flat[1] = {x.numel};
  return op::abs(*op::narrow(*op::reshape(x, flat), 0, 0, 0));
}

TensorQuad linalg_lstsq(Call, const Tensor& self, const Tensor& other, Opt<double> rcond,
                        int64_t driver) {
  check_matrices(self, "self");
  check_same_dtype(self, "self", other, "other");
  const bool vector = is_vector_batch(self, other);
  const TensorRef b = vector ? op::unsqueeze(other, -1) : TensorRef::share(&other);
  const int64_t m = self.size(-2);
  const int64_t n = self.size(-1);
  if (b->ndim < 2 || b->size(-2) != m)
    fail_arg(TT_SHAPE, "other", "self is {}, other is {}: must have {} rows", self.sizes(),
             other.sizes(), m);
  const double relative = rcond ? *rcond : epsilon_of(self.dtype) * double(TT_NS::max(m, n));
  const TensorRef rtol = number_like(self, relative);
  const bool by_values = driver == kLeastSquaresGelsd || driver == kLeastSquaresGelss;
  const int64_t none[1] = {0};
  TensorQuad out;
  const TensorRef inverse = op::linalg_pinv(self, nullptr, rtol.get());
  out.first = op::matmul(*inverse, *b);
  out.third = driver == kLeastSquaresGels ? op::zeros(none, Dtype::kI64, self.device)
                                          : op::linalg_matrix_rank(self, nullptr, rtol.get());
  out.fourth = by_values ? op::linalg_svdvals(*op::detach(self))
                         : op::zeros(none, real_of(self.dtype), self.device);
  bool wanted = m > n && driver != kLeastSquaresGelsy;
  if (wanted && by_values && out.third->numel)
    wanted = int64_t(read_scalar(*op::amin(*out.third)).real()) == n;
  out.second = wanted ? residuals_of(self, *out.first, *b) : no_residuals(*out.first);
  if (vector) out.first = without_dim(*out.first, -1);
  return out;
}

}  // namespace TT_NS::impl
