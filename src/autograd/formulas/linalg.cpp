// Formulas of decompositions A = U diag(s) V^H, k = min(m, n) columns of U and of V.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "autograd/formulas/forward.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::formula {

static TensorRef adjoint(const Tensor& x) { return op::conj(op::transpose(x, -2, -1)); }
static TensorRef skew(const Tensor& x) { return x - adjoint(x); }
static TensorRef column(const Tensor& s) { return op::unsqueeze(s, -1); }
static TensorRef row(const Tensor& s) { return op::unsqueeze(s, -2); }
static TensorRef inverse_or_zero(const Tensor& x) {
  TensorRef none = op::eq(x, 0);
  return op::masked_fill(op::reciprocal(op::masked_fill(x, none, 1)), none, 0);
}
// a may be empty.
static TensorRef sum_of(TensorRef a, TensorRef b) { return a ? a + b : b; }

// The derivative of A -> U V^H in direction e, which is its own adjoint. With w = U^H e V it is
// U ((w - w^H)_ij / (s_i + s_j)) V^H, plus (e V - U w) s^-1 V^H if A is tall, or
// U s^-1 (U^H e - w V^H) if A is wide. It also holds for equal singular values.
static TensorRef polar_derivative(const Tensor& e, const Tensor& a) {
  TensorTriple f = op::native_svd(a);
  const Tensor& u = *f.first;
  const Tensor& s = *f.second;
  const Tensor& vh = *f.third;
  TensorRef uh = adjoint(u);
  TensorRef v = adjoint(vh);
  TensorRef across = op::matmul(uh, e);
  TensorRef w = op::matmul(across, v);
  TensorRef inner = skew(w) * inverse_or_zero(column(s) + row(s));
  TensorRef left = op::matmul(inner, vh);
  if (a.size(-1) > a.size(-2))
    left = left + (across - op::matmul(w, vh)) * column(inverse_or_zero(s));
  TensorRef out = op::matmul(u, left);
  if (a.size(-2) > a.size(-1)) {
    TensorRef rest = op::matmul(e, v) - op::matmul(u, w);
    out = out + op::matmul(rest * row(inverse_or_zero(s)), vh);
  }
  return out;
}

TensorRef nuclear_norm_backward(TensorSpan g, const Tensor& self, const Tensor& polar) {
  TensorRef out;
  if (g[0]) out = polar * op::unsqueeze(op::unsqueeze(*g[0], -1), -1);
  if (g[1]) out = sum_of(std::move(out), polar_derivative(*g[1], self));
  return out;
}

TensorList nuclear_norm_forward(const Tensor& t, const Tensor& self, const Tensor& polar) {
  const int64_t matrix[2] = {-2, -1};
  TensorList both;
  both.push_back(op::real(op::sum_dim(op::conj(polar) * t, matrix)));
  both.push_back(polar_derivative(t, self));
  return both;
}

// Assumes distinct singular values, as PyTorch does. The gradient is U inner V^H with
//   inner_ij = (skew(U^H gU)_ij s_j + s_i skew(V^H gV)_ij) / (s_j^2 - s_i^2),
// on the diagonal gs and, for complex numbers, the common phase of U and V; plus the parts of gU
// and gV outside the spans of U and V.
TensorRef svd_backward(TensorSpan g, const Tensor& u, const Tensor& s, const Tensor& vh) {
  const Tensor* gu = g[0];
  const Tensor* gs = g[1];
  const Tensor* gvh = g[2];
  TensorRef diagonal = TensorRef::share(gs);
  TensorRef inner;
  TensorRef left;
  if (gu || gvh) {
    TensorRef square = s * s;
    if (gu) {
      TensorRef rotation = skew(op::matmul(adjoint(u), *gu));
      inner = rotation * row(s);
      if (is_complex(u.dtype) && gvh)
        diagonal =
            sum_of(std::move(diagonal), op::diagonal(rotation, 0, -2, -1) * inverse_or_zero(2 * s));
    }
    if (gvh) inner = sum_of(std::move(inner), skew(op::matmul(vh, adjoint(*gvh))) * column(s));
    inner = inner * inverse_or_zero(row(square) - column(square));
    left = op::matmul(inner, vh);
  }
  if (diagonal) left = sum_of(std::move(left), vh * column(diagonal));
  if (gvh && vh.size(-1) > vh.size(-2)) {
    TensorRef part = *gvh * column(inverse_or_zero(s));
    left = left + (part - op::matmul(op::matmul(part, adjoint(vh)), vh));
  }
  TensorRef out = op::matmul(u, left);
  if (gu && u.size(-2) > u.size(-1)) {
    TensorRef part = *gu * row(inverse_or_zero(s));
    out = out + op::matmul(part - op::matmul(u, op::matmul(adjoint(u), part)), vh);
  }
  return out;
}

// With P = U^H dA V: dS is its diagonal, dU = U inner_U and dVh = -inner_V Vh with
//   inner_U = (P_ij s_j + s_i P^H_ij) / (s_j^2 - s_i^2),
//   inner_V = (s_i P_ij + P^H_ij s_j) / (s_j^2 - s_i^2),
// for complex numbers the phase of U, and the parts of dA outside the spans of U and V.
TensorList svd_forward(const Tensor& t, const Tensor& u, const Tensor& s, const Tensor& vh) {
  TensorRef v = adjoint(vh);
  TensorRef across = op::matmul(adjoint(u), t);
  TensorRef p = op::matmul(across, v);
  TensorRef ph = adjoint(p);
  TensorRef diagonal = op::diagonal(p, 0, -2, -1);
  TensorRef square = s * s;
  TensorRef inverse_gap = inverse_or_zero(row(square) - column(square));
  TensorRef inner_u = (p * row(s) + ph * column(s)) * inverse_gap;
  TensorRef inner_v = (p * column(s) + ph * row(s)) * inverse_gap;
  if (is_complex(u.dtype)) {
    TensorRef phase = (diagonal - op::conj(diagonal)) * (0.5 * inverse_or_zero(s));
    inner_u = inner_u + op::diag_embed(phase);
  }
  TensorRef du = op::matmul(u, inner_u);
  TensorRef dvh = -op::matmul(inner_v, vh);
  if (u.size(-2) > u.size(-1)) {
    TensorRef outside = op::matmul(t, v) - op::matmul(u, p);
    du = du + outside * row(inverse_or_zero(s));
  }
  if (vh.size(-1) > vh.size(-2)) {
    TensorRef outside = across - op::matmul(p, vh);
    dvh = dvh + outside * column(inverse_or_zero(s));
  }
  TensorList all;
  all.push_back(std::move(du));
  all.push_back(op::real(diagonal));
  all.push_back(std::move(dvh));
  return all;
}

// ---- solutions, determinants and factors; g_X is the gradient of X, X^H its adjoint ----

static TensorRef diagonal_of(const Tensor& x) { return op::diagonal(x, 0, -2, -1); }
static TensorRef as_matrix(const Tensor& x) { return op::unsqueeze(*op::unsqueeze(x, -1), -1); }
static TensorRef times(const Tensor& a, const Tensor& b) { return op::matmul(a, b); }
static bool records() { return !(ctx().exclude & bit(kKeyAutograd)); }
static TensorRef identity_of(const Tensor& x) {
  return op::eye(x.size(-1), x.size(-1), x.dtype, x.device);
}

// Solves A^H X = b with the factors of A, unless gradients of X with respect to A are needed. Small
// matrices are factored again: in double, whereas the factors may be rounded to float.
constexpr int64_t kSmall = 64;
static TensorRef solve_adjoint(const Tensor& a, const Tensor& lu, const Tensor& pivots,
                               const Tensor& b) {
  if (records() || a.size(-1) <= kSmall) return op::native_solve(*adjoint(a), b).first;
  return op::native_lu_solve(lu, pivots, b, true);
}

// ---- solutions ----

TensorPair solve_backward(const Tensor& g, const Tensor& self, const Tensor& result,
                          const Tensor& lu, const Tensor& pivots, Needs needs) {
  TensorRef of_other = solve_adjoint(self, lu, pivots, g);
  TensorRef of_self;
  if (needs[0]) of_self = -*times(*of_other, *adjoint(result));
  return {std::move(of_self), std::move(of_other)};
}
// dX = A^-1 (dB - dA X)
TensorRef solve_forward(TensorSpan tangents, const Tensor& self, const Tensor& result,
                        const Tensor& lu, const Tensor& pivots) {
  TensorRef right = tangents[1] ? TensorRef::share(tangents[1]) : TensorRef();
  if (tangents[0]) {
    TensorRef moved = times(*tangents[0], result);
    right = right ? right - moved : -*moved;
  }
  if (records() || self.size(-1) <= kSmall) return op::native_solve(self, *right).first;
  return op::native_lu_solve(lu, pivots, *right, false);
}
TensorRef lu_solve_backward(const Tensor& g, const Tensor& lu, const Tensor& pivots, bool adjoint) {
  return op::native_lu_solve(lu, pivots, g, !adjoint);
}
TensorRef inv_backward(const Tensor& g, const Tensor& inverse) {
  TensorRef x = adjoint(inverse);
  return -*times(*x, *times(g, *x));
}
TensorRef solve_triangular_forward(TensorSpan tangents, const Tensor& self, const Tensor& result,
                                   bool upper, bool left, bool unit) {
  TensorRef right = tangents[1] ? TensorRef::share(tangents[1]) : TensorRef();
  if (tangents[0]) {
    const int64_t diagonal = unit ? 1 : 0;
    TensorRef t = upper ? op::triu(*tangents[0], diagonal) : op::tril(*tangents[0], -diagonal);
    TensorRef moved = left ? times(*t, result) : times(result, *t);
    right = right ? right - moved : -*moved;
  }
  return op::linalg_solve_triangular(self, *right, upper, left, unit);
}
TensorPair solve_triangular_backward(const Tensor& g, const Tensor& self, const Tensor& result,
                                     bool upper, bool left, bool unit, Needs needs) {
  TensorRef of_other = op::linalg_solve_triangular(*adjoint(self), g, !upper, left, unit);
  TensorRef of_self;
  if (needs[0]) {
    TensorRef x = adjoint(result);
    TensorRef full = -*(left ? times(*of_other, *x) : times(*x, *of_other));
    const int64_t diagonal = unit ? 1 : 0;  // of ones, which are not read
    of_self = upper ? op::triu(*full, diagonal) : op::tril(*full, -diagonal);
  }
  return {std::move(of_self), std::move(of_other)};
}

// ---- determinants ----

// The products of all elements but one along the last dimension.
static TensorRef products_of_others(const Tensor& x) {
  const int64_t last[1] = {x.ndim - 1};
  TensorRef after = op::flip(*products_before(*op::flip(x, last), last[0]), last);
  return products_before(x, last[0]) * after;
}
// A = U diag(s) V^H: the gradient is conj(det U det V^H) U diag(products of the other s) V^H, which
// also holds for singular matrices.
static TensorRef det_backward_singular(const Tensor& g, const Tensor& self) {
  TensorTriple f = op::native_svd(self);
  TensorRef phase = op::native_det(*times(*f.first, *f.third)).first;
  TensorRef factor = op::conj(*phase) * g;
  TensorRef others = *op::unsqueeze(*factor, -1) * products_of_others(*f.second);
  return times(*f.first * op::unsqueeze(*others, -2), *f.third);
}
static bool has_zero(const Tensor& det) {
  if (det.device.type == TT_META || !det.numel) return false;
  MaskGuard no_grad(bit(kKeyAutograd));
  const TensorRef zero = op::eq(det, 0);
  const TensorRef any = op::any(*zero);
  return read_scalar(*any).i != 0;
}
// conj(det) A^-H
TensorRef det_backward(const Tensor& g, const Tensor& self, const Tensor& det, const Tensor& lu,
                       const Tensor& pivots) {
  if (!has_zero(det)) {
    TensorRef factor = as_matrix(*(g * op::conj(det)));
    return solve_adjoint(self, lu, pivots, *(identity_of(self) * factor));
  }
  TensorRef zero = as_matrix(*op::eq(det, 0));
  TensorRef safe = op::where(*zero, *identity_of(self), self);
  TensorRef factor = as_matrix(*(g * op::conj(det)));
  TensorRef usual = op::native_solve(*adjoint(*safe), *(identity_of(self) * factor)).first;
  return op::where(*zero, *det_backward_singular(g, self), *usual);
}
// The gradient of each determinant, which depends on no other matrix, times dA.
TensorRef det_forward(const Tensor& t, const Tensor& self, const Tensor& det, const Tensor& lu,
                      const Tensor& pivots) {
  const int64_t matrix[2] = {-2, -1};
  TensorRef gradient = det_backward(op::ones_like(det), self, det, lu, pivots);
  return op::sum_dim(op::conj(gradient) * t, matrix);
}
// With x = tr(A^-1 dA): re(x), and for complex numbers the turn of the sign, sign i im(x).
TensorList slogdet_forward(const Tensor& t, const Tensor& self, const Tensor& sign) {
  const int64_t last[1] = {-1};
  TensorRef x = op::sum_dim(diagonal_of(op::native_solve(self, t).first), last);
  TensorList both;
  both.push_back(is_complex(t.dtype) ? sign * (x - op::real(x)) : TensorRef());
  both.push_back(op::real(x));
  return both;
}
// g_log A^-H for real matrices; for complex ones also the turn of the sign.
TensorRef slogdet_backward(TensorSpan g, const Tensor& self, const Tensor& sign, const Tensor& lu,
                           const Tensor& pivots) {
  TensorRef factor;
  if (is_complex(self.dtype)) {
    TensorRef turn;
    TensorRef stretch;
    if (g[0]) turn = -*op::imag(*(op::conj(*g[0]) * sign));
    if (g[1]) stretch = TensorRef::share(g[1]);
    if (!turn) turn = op::zeros_like(*stretch);
    if (!stretch) stretch = op::zeros_like(*turn);
    factor = op::complex(*stretch, *turn);
  } else {
    factor = g[1] ? TensorRef::share(g[1]) : op::zeros_like(*g[0]);
  }
  return solve_adjoint(self, lu, pivots, *(identity_of(self) * as_matrix(*factor)));
}

// ---- factors ----

// With phi = tril(L1^H g_L1 - g_U2 U2^H, -1) + triu(g_U1 U1^H - L2^H g_L2), where L1 and U1 are the
// first k rows and columns:
//   g_A = P [L1^-H phi U1^-H, L1^-H g_U2] for wide, P [L1^-H phi; g_L2] U1^-H for tall matrices.
// g: the gradients of L below the diagonal and of U.
TensorRef lu_factor_backward(const Tensor& g, const Tensor& lu, const Tensor& pivots) {
  const int64_t m = lu.size(-2);
  const int64_t n = lu.size(-1);
  const int64_t k = m < n ? m : n;
  TensorTriple f = op::lu_unpack(lu, pivots);
  TensorRef l1 = op::narrow(*f.second, -2, 0, k);
  TensorRef u1 = op::narrow(*f.third, -1, 0, k);
  TensorRef square = op::narrow(*op::narrow(g, -1, 0, k), -2, 0, k);
  TensorRef below = times(*adjoint(*l1), *op::tril(*square, -1));
  TensorRef above = times(*op::triu(*square), *adjoint(*u1));
  TensorRef beside;  // g_L2 or g_U2
  if (m < n) {
    beside = op::narrow(g, -1, k, n - k);
    below = below - times(*beside, *adjoint(*op::narrow(*f.third, -1, k, n - k)));
  } else if (m > n) {
    beside = op::narrow(g, -2, k, m - k);
    above = above - times(*adjoint(*op::narrow(*f.second, -2, k, m - k)), *beside);
  }
  TensorRef phi = op::tril(*below, -1) + op::triu(*above);
  TensorRef l = adjoint(*l1);
  TensorRef u = adjoint(*u1);
  TensorRef out = op::linalg_solve_triangular(*l, *phi, true, true, true);
  if (m > n) {
    const Tensor* parts[2] = {out.get(), beside.get()};
    out = op::cat({parts, 2}, -2);
  }
  out = op::linalg_solve_triangular(*u, *out, false, false);
  if (m < n) {
    TensorRef right = op::linalg_solve_triangular(*l, *beside, true, true, true);
    const Tensor* parts[2] = {out.get(), right.get()};
    out = op::cat({parts, 2}, -1);
  }
  return times(*f.first, *out);
}

// With the square parts of A = P L U and X = L^-1 P^T dA U^-1: dL = L tril(X, -1), dU = triu(X) U,
// and the rest of P^T dA = dL U + L dU. Returns dL + dU.
TensorRef lu_factor_forward(const Tensor& t, const Tensor& lu, const Tensor& pivots) {
  const int64_t m = lu.size(-2);
  const int64_t n = lu.size(-1);
  const int64_t k = m < n ? m : n;
  TensorTriple f = op::lu_unpack(lu, pivots);
  TensorRef moved = times(*op::transpose(*f.first, -2, -1), t);
  TensorRef l1 = op::narrow(*f.second, -2, 0, k);
  TensorRef u1 = op::narrow(*f.third, -1, 0, k);
  TensorRef x = op::narrow(*op::narrow(*moved, -1, 0, k), -2, 0, k);
  x = op::linalg_solve_triangular(*l1, *x, false, true, true);
  x = op::linalg_solve_triangular(*u1, *x, true, false);
  TensorRef dl = times(*l1, *op::tril(*x, -1));
  TensorRef du = times(*op::triu(*x), *u1);
  TensorRef out = dl + du;
  if (m == n) return out;
  TensorRef rest;
  if (m < n) {
    rest = op::narrow(*moved, -1, k, n - k) - times(*dl, *op::narrow(*f.third, -1, k, n - k));
    rest = op::linalg_solve_triangular(*l1, *rest, false, true, true);
  } else {
    rest = op::narrow(*moved, -2, k, m - k) - times(*op::narrow(*f.second, -2, k, m - k), *du);
    rest = op::linalg_solve_triangular(*u1, *rest, true, false);
  }
  const Tensor* parts[2] = {out.get(), rest.get()};
  return op::cat({parts, 2}, m < n ? -1 : -2);
}

// The mean of a matrix and its adjoint: derivatives treat matrices of which one triangle is read as
// Hermitian.
static TensorRef hermitian_part(const Tensor& x) { return 0.5 * (x + adjoint(x)); }

// dL = L phi with phi = the lower triangle of L^-1 dA L^-H, its diagonal halved.
TensorRef cholesky_forward(const Tensor& t, const Tensor& factor, bool upper) {
  TensorRef l = upper ? adjoint(factor) : TensorRef::share(&factor);
  TensorRef x = op::linalg_solve_triangular(*l, *hermitian_part(t), false);
  x = op::linalg_solve_triangular(*adjoint(*l), *x, true, false);
  TensorRef phi = op::tril(*x) - op::diag_embed(0.5 * diagonal_of(*x));
  TensorRef dl = times(*l, *phi);
  return upper ? adjoint(*dl) : std::move(dl);
}
// The derivative of A = L L^H, or U^H U.
static TensorRef product_of_factors(const Tensor& t, const Tensor& factor, bool upper) {
  TensorRef half = upper ? times(*adjoint(factor), t) : times(t, *adjoint(factor));
  return half + adjoint(*half);
}
TensorRef cholesky_solve_forward(TensorSpan tangents, const Tensor& factor, const Tensor& result,
                                 bool upper) {
  TensorRef right = tangents[0] ? TensorRef::share(tangents[0]) : TensorRef();
  if (tangents[1]) {
    TensorRef moved = times(*product_of_factors(*tangents[1], factor, upper), result);
    right = right ? right - moved : -*moved;
  }
  return op::cholesky_solve(*right, factor, upper);
}
TensorRef cholesky_inverse_forward(const Tensor& t, const Tensor& factor, const Tensor& inverse,
                                   bool upper) {
  return -*times(inverse, *times(*product_of_factors(t, factor, upper), inverse));
}

// g_A = L^-H phi L^-1 with phi = the Hermitian part of tril(L^H g_L), its diagonal halved.
TensorRef cholesky_backward(const Tensor& g, const Tensor& factor, bool upper) {
  TensorRef l = upper ? adjoint(factor) : TensorRef::share(&factor);
  TensorRef gl = upper ? adjoint(g) : TensorRef::share(&g);
  TensorRef lh = adjoint(*l);
  TensorRef phi = op::tril(*times(*lh, *gl));
  phi = (phi + adjoint(*op::tril(*phi, -1))) * 0.5;
  phi = op::linalg_solve_triangular(*lh, *phi, true);
  return op::linalg_solve_triangular(*l, *phi, false, false);
}
TensorPair cholesky_solve_backward(const Tensor& g, const Tensor& factor, const Tensor& result,
                                   bool upper, Needs needs) {
  TensorRef of_self = op::cholesky_solve(g, factor, upper);
  TensorRef of_factor;
  if (needs[1]) {
    TensorRef half = times(*of_self, *adjoint(result));
    TensorRef both = half + adjoint(*half);
    of_factor = -*(upper ? times(factor, *both) : times(*both, factor));
  }
  return {std::move(of_self), std::move(of_factor)};
}
TensorRef cholesky_inverse_backward(const Tensor& g, const Tensor& factor, const Tensor& inverse,
                                    bool upper) {
  TensorRef both = times(inverse, *times(*(g + adjoint(g)), inverse));
  return -*(upper ? times(factor, *both) : times(*both, factor));
}

// For m >= n: g_A = (g_Q + Q sym(triu(g_R R^H - Q^H g_Q))) R^-H, where sym adds the adjoint and
// halves the diagonal.
static TensorRef qr_backward_tall(const Tensor* gq, const Tensor* gr, const Tensor& q,
                                  const Tensor& r) {
  TensorRef inner;
  if (gr) inner = times(*gr, *adjoint(r));
  if (gq) {
    TensorRef turn = times(*adjoint(q), *gq);
    inner = inner ? inner - turn : -*turn;
  }
  inner = op::triu(*inner);
  TensorRef diagonal = op::real(*diagonal_of(*inner));
  inner = inner + adjoint(*inner) - op::diag_embed(*diagonal);
  TensorRef out = times(q, *inner);
  if (gq) out = out + *gq;
  return op::linalg_solve_triangular(*adjoint(r), *out, false, false);
}
static void check_qr_mode(int64_t mode, bool tall) {
  if (mode == kQrModeR)
    fail(TT_NOT_IMPLEMENTED, "linalg_qr: mode r has no gradient, which needs Q: use reduced");
  if (mode == kQrModeComplete && tall)
    fail(TT_NOT_IMPLEMENTED,
         "linalg_qr: mode complete has no gradient for matrices with more rows than columns");
}
TensorRef qr_backward(TensorSpan g, const Tensor& q, const Tensor& r, int64_t mode) {
  const int64_t m = q.size(-2);
  const int64_t n = r.size(-1);
  check_qr_mode(mode, m > n);
  if (m >= n) return qr_backward_tall(g[0], g[1], q, r);
  // A = [X, Y], R = [V, W]: W = Q^H Y, and X = Q V
  TensorRef w = op::narrow(r, -1, m, n - m);
  TensorRef gq = TensorRef::share(g[0]);
  if (!g[1]) {
    TensorRef gx = qr_backward_tall(gq.get(), nullptr, q, *op::narrow(r, -1, 0, m));
    TensorRef none = op::zeros_like(*w);
    const Tensor* parts[2] = {gx.get(), none.get()};
    return op::cat({parts, 2}, -1);
  }
  TensorRef gv = op::narrow(*g[1], -1, 0, m);
  TensorRef gw = op::narrow(*g[1], -1, m, n - m);
  TensorRef more = times(*times(q, *w), *adjoint(*gw));
  gq = gq ? gq + more : std::move(more);
  TensorRef gx = qr_backward_tall(gq.get(), gv.get(), q, *op::narrow(r, -1, 0, m));
  TensorRef gy = times(q, *gw);
  const Tensor* parts[2] = {gx.get(), gy.get()};
  return op::cat({parts, 2}, -1);
}

// With X = dA R^-1 and M = triu(sym(Q^H X)), its diagonal halved: dR = M R and dQ = X - Q M; of the
// square part if A is wide, where the rest of dR is Q^H (dA - dQ R).
TensorList qr_forward(const Tensor& t, const Tensor& q, const Tensor& r, int64_t mode) {
  const int64_t m = q.size(-2);
  const int64_t n = r.size(-1);
  check_qr_mode(mode, m > n);
  const int64_t k = m < n ? m : n;
  TensorRef qh = adjoint(q);
  TensorRef r1 = op::narrow(r, -1, 0, k);
  TensorRef x = op::linalg_solve_triangular(*r1, *op::narrow(t, -1, 0, k), true, false);
  TensorRef inner = times(*qh, *x);
  inner = op::triu(*(inner + adjoint(*inner)));
  inner = inner - op::diag_embed(0.5 * op::real(*diagonal_of(*inner)));
  TensorRef dq = x - times(q, *inner);
  TensorRef dr = times(*inner, *r1);
  if (m < n) {
    TensorRef rest = op::narrow(t, -1, k, n - k) - times(*dq, *op::narrow(r, -1, k, n - k));
    rest = times(*qh, *rest);
    const Tensor* parts[2] = {dr.get(), rest.get()};
    dr = op::cat({parts, 2}, -1);
  }
  TensorList both;
  both.push_back(std::move(dq));
  both.push_back(std::move(dr));
  return both;
}

// ---- eigenvectors ----

// 1 / conj(w_j - w_i), and 0 on the diagonal.
static TensorRef inverse_gaps(const Tensor& values) {
  TensorRef gaps = op::unsqueeze(values, -2) - op::unsqueeze(values, -1);
  TensorRef one = op::eye(values.size(-1), values.size(-1), gaps->dtype, gaps->device);
  return op::reciprocal(*(op::conj(*gaps) + one)) - one;
}

// V (diag(g_w) + V^H g_V / (w_j - w_i)) V^H
TensorRef eigh_backward(TensorSpan g, const Tensor& values, const Tensor& vectors) {
  TensorRef vh = adjoint(vectors);
  if (!g[1]) return times(*(vectors * op::unsqueeze(*g[0], -2)), *vh);
  TensorRef inner = times(*vh, *g[1]) * inverse_gaps(values);
  if (g[0]) inner = inner + op::diag_embed(*g[0]);
  TensorRef out = times(vectors, *times(*inner, *vh));
  return 0.5 * (out + adjoint(out));  // one triangle is read for both
}

// With P = V^H dA V: dw is its diagonal, dV = V (P / (w_j - w_i)).
TensorList eigh_forward(const Tensor& t, const Tensor& values, const Tensor& vectors) {
  TensorRef p = times(*adjoint(vectors), *times(*hermitian_part(t), vectors));
  TensorList both;
  both.push_back(op::real(*diagonal_of(*p)));
  both.push_back(times(vectors, *(p * inverse_gaps(values))));
  return both;
}
// With P = V^-1 dA V: dw is its diagonal, dV = V (P / (w_j - w_i)) without what stretches V, whose
// vectors have norm 1.
TensorList eig_forward(const Tensor& t, const Tensor& values, const Tensor& vectors) {
  TensorRef da = op::to_dtype(t, vectors.dtype);
  TensorRef p = op::native_solve(vectors, *times(*da, vectors)).first;
  TensorRef turn = times(vectors, *(p * op::conj(*inverse_gaps(values))));
  const int64_t rows[1] = {-2};
  TensorRef stretch = op::real(*op::sum_dim(*(op::conj(vectors) * turn), rows, true));
  TensorList both;
  both.push_back(TensorRef(diagonal_of(*p)));
  both.push_back(turn - vectors * stretch);
  return both;
}

// V^-H (diag(g_w) + (V^H g_V - V^H V diag(re(V^H g_V))) / conj(w_j - w_i)) V^H, for vectors of
// norm 1.
TensorRef eig_backward(TensorSpan g, const Tensor& values, const Tensor& vectors, Dtype dtype) {
  TensorRef vh = adjoint(vectors);
  TensorRef inner;
  if (g[1]) {
    TensorRef turn = times(*vh, *g[1]);
    TensorRef stretch = op::real(*diagonal_of(*turn));
    TensorRef along = times(*vh, *(vectors * op::unsqueeze(*stretch, -2)));
    inner = (turn - along) * inverse_gaps(values);
    if (g[0]) inner = inner + op::diag_embed(*g[0]);
    inner = times(*inner, *vh);
  } else {
    inner = op::unsqueeze(*g[0], -1) * vh;
  }
  TensorRef out = op::native_solve(*vh, *inner).first;
  return is_complex(dtype) ? std::move(out) : op::real(*out);
}

// ---- pseudo-inverses ----

// For constant rank: Golub & Pereyra, SIAM J. Numer. Anal. 10 (1973).
TensorRef pinv_backward(const Tensor& g, const Tensor& pinv, const Tensor& self) {
  TensorRef ph = adjoint(pinv);
  TensorRef gh = adjoint(g);
  if (self.size(-2) <= self.size(-1)) {
    TensorRef k = times(*gh, pinv);
    TensorRef kp = times(*k, *ph);
    TensorRef first = -*adjoint(*times(pinv, *k));
    TensorRef second = kp - times(*times(self, pinv), *kp);
    TensorRef third = times(*times(*ph, pinv), *(gh - times(*k, self)));
    return first + second + third;
  }
  TensorRef k = times(pinv, *gh);
  TensorRef pk = times(*ph, *k);
  TensorRef first = -*adjoint(*times(*k, pinv));
  TensorRef second = times(*times(*(gh - times(self, *k)), pinv), *ph);
  TensorRef third = pk - times(*times(*pk, pinv), self);
  return first + second + third;
}

// -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P
TensorRef pinv_forward(const Tensor& t, const Tensor& pinv, const Tensor& self) {
  TensorRef ph = adjoint(pinv);
  TensorRef th = adjoint(t);
  TensorRef first = -*times(pinv, *times(t, pinv));
  TensorRef left = times(*times(pinv, *ph), *th);
  TensorRef second = left - times(*times(*left, self), pinv);
  TensorRef right = times(*th, *times(*ph, pinv));
  TensorRef third = right - times(pinv, *times(self, *right));
  return first + second + third;
}

}  // namespace TT_NS::formula
