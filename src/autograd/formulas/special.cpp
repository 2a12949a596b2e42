// Gradients of special functions.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"
#include "plan/special_function.h"

namespace TT_NS::formula {

TensorRef polygamma_backward(const Tensor& g, const Tensor& self, int64_t n) {
  return g * op::polygamma_kernel(self, n + 1);
}

// i1' = i0 - i1 / x, which is 1/2 at 0.
TensorRef i1_backward(const Tensor& g, const Tensor& self, const Tensor& y) {
  TensorRef zero = op::eq(self, 0);
  TensorRef x = op::masked_fill(self, zero, 1);
  return g * op::masked_fill(op::i0(self) - y / x, zero, 0.5);
}

// i1e' = i0e - i1e (sign(x) + 1 / x), which is 1/2 at 0.
TensorRef i1e_backward(const Tensor& g, const Tensor& self, const Tensor& y) {
  TensorRef zero = op::eq(self, 0);
  TensorRef x = op::masked_fill(self, zero, 1);
  TensorRef slope = op::i0e(self) - y * (op::sign(self) + op::reciprocal(x));
  return g * op::masked_fill(slope, zero, 0.5);
}

TensorRef bessel_backward(const Tensor& g, const Tensor& self, const Tensor& y, int64_t which) {
  if (which >= kAiry) fail(TT_NOT_IMPLEMENTED, "airy_ai: its derivative is not implemented");
  TensorRef other = op::bessel(self, which ^ 1);  // of order 1, or 0
  switch (which) {
    case kBesselJ1: {
      TensorRef zero = op::eq(self, 0);
      return g * (other - op::masked_fill(y / op::masked_fill(self, zero, 1), zero, 0.5));
    }
    case kBesselY1: return g * (other - y / self);
    case kBesselK1: return -(g * (other + y / self));
    case kBesselK0Scaled: return g * (y - other);
    case kBesselK1Scaled: return g * (y - other - y / self);
    default: return g * -other;
  }
}

// By the derivative of the recurrence.
TensorRef orthogonal_polynomial_backward(const Tensor& g, const Tensor& self, int64_t which,
                                         int64_t n) {
  const auto kind = int32_t(which & (kShifted - 1));
  const bool shifted = (which & kShifted) != 0;
  if (n == 0) return op::zeros_like(g);
  TensorRef x = shifted ? 2 * self - 1 : TensorRef::share(&self);
  const PolynomialStep first = first_step(kind);
  TensorRef before = op::ones_like(x);
  TensorRef last = x * first.slope + first.offset;
  TensorRef slope_before = op::zeros_like(x);
  TensorRef slope = before * first.slope;
  for (int64_t k = 2; k <= n; k++) {
    const PolynomialStep s = polynomial_step(kind, double(k));
    TensorRef factor = x * s.slope + s.offset;
    TensorRef next_slope = last * s.slope + factor * slope - slope_before * s.before;
    TensorRef next = factor * last - before * s.before;
    before = std::move(last);
    last = std::move(next);
    slope_before = std::move(slope);
    slope = std::move(next_slope);
  }
  return g * slope * (shifted ? 2 : 1);
}

// sinc' = (cos(pi x) - sinc(x)) / x, at 0 the tangent -pi^2 x / 3.
TensorRef sinc_backward(const Tensor& g, const Tensor& self) {
  TensorRef zero = op::eq(self, 0);
  TensorRef x = op::masked_fill(self, zero, 1);
  TensorRef slope = (op::cos(3.141592653589793 * self) - op::sinc(self)) / x;
  return g * op::conj(op::where(zero, self * -3.2898681336964529, slope));
}

// The gradient is 0 where self is 0 and the logarithm is nan or -inf.
TensorRef xlogy_backward(const Tensor& g, const Tensor& self, const Tensor& other) {
  TensorRef zero = op::logical_and(op::eq(self, 0), op::le(other, 0));
  return op::masked_fill(g * op::log(other), zero, 0);
}
TensorRef xlogy_backward(const Tensor& g, const Tensor& self, const Scalar& other) {
  return xlogy_backward(g, self, op::full({}, other, g.dtype, g.device));
}
TensorRef xlog1py_backward(const Tensor& g, const Tensor& self, const Tensor& other) {
  TensorRef zero = op::logical_and(op::eq(self, 0), op::le(other, -1));
  return op::masked_fill(g * op::log1p(other), zero, 0);
}
TensorRef xlog1py_backward(const Tensor& g, const Tensor& self, const Scalar& other) {
  return xlog1py_backward(g, self, op::full({}, other, g.dtype, g.device));
}

// dP(a, x) / dx = x^(a - 1) e^-x / Gamma(a).
TensorRef igamma_slope(const Tensor& a, const Tensor& x) {
  return op::exp((a - 1) * op::log(x) - x - op::lgamma(a));
}

}  // namespace TT_NS::formula
