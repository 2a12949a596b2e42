// Gradients of functions of one tensor.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"

namespace TT_NS::formula {

// Only the part of g across y = x / |x| changes y. The gradient is 0 at x = 0, and for real x.
TensorRef sgn_backward(const Tensor& g, const Tensor& self, const Tensor& y) {
  if (!is_complex(self.dtype)) return op::zeros_like(g);
  TensorRef modulus = op::abs(self);
  TensorRef along = op::real(g / y) * y;
  return op::masked_fill((g - along) / modulus, op::eq(modulus, 0), 0);
}

// The derivative of 1 / (x (1 - x)) is (2 x - 1) / (x (1 - x))^2.
TensorRef logit_second(const Tensor& g, const Tensor& x, Opt<double> eps) {
  TensorRef out = op::logit_backward(*op::logit_backward(g * (2 * x - 1), x, eps), x, eps);
  if (eps.has) return out;
  return op::masked_fill(out, op::logical_or(op::lt(x, 0), op::gt(x, 1)), 0);
}

// 1 / sqrt(x^2 - 1) without the rounding of x^2; complex ones in two factors for the branch.
TensorRef acosh_backward(const Tensor& g, const Tensor& self) {
  if (!is_complex(self.dtype)) return g * op::rsqrt((self + 1) * (self - 1) + 0);  // +0 at -1
  return g * op::conj(op::rsqrt(self + 1) * op::rsqrt(self - 1));
}

}  // namespace TT_NS::formula
