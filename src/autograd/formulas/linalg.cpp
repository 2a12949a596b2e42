// Formulas of decompositions A = U diag(s) V^H, k = min(m, n) columns of U and of V.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"

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
  TensorTriple f = op::svd(a);
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

}  // namespace TT_NS::formula
