// Gradients of arithmetic.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::formula {

// The gradient is 0 where the exponent is 0, also at self = 0, where the product would be nan.
TensorRef pow_backward_self(const Tensor& g, const Tensor& self, const Tensor& exponent) {
  TensorRef slope = exponent * op::pow(self, exponent - 1);
  return op::masked_fill(g * op::conj(slope), op::eq(exponent, 0), 0);
}

// The gradient is 0 where self is 0 and the exponent is not negative.
TensorRef pow_backward_exponent(const Tensor& g, const Tensor& self, const Tensor& exponent,
                                const Tensor& y) {
  TensorRef zero = op::eq(self, 0);
  if (!is_complex(exponent.dtype)) zero = zero * op::ge(exponent, 0);
  TensorRef base = as_dtype(TensorRef::share(&self), y.dtype);  // negative ones have a complex log
  return g * op::masked_fill(op::conj(y * op::log(base)), zero, 0);
}

TensorRef pow_scalar_backward(const Tensor& g, const Tensor& self, const Scalar& exponent) {
  if (exponent.is_zero()) return op::zeros_like(g);
  return g * op::conj(op::pow(self, exponent - 1) * exponent);
}

TensorRef pow_base_backward(const Tensor& g, const Scalar& self, const Tensor& exponent,
                            const Tensor& y) {
  const bool complex = is_complex(exponent.dtype) || self.is_complex();
  TensorRef base = op::full({}, self, complex ? complex_of(y.dtype) : y.dtype, y.device);
  TensorRef slope = op::conj(y * op::log(base));
  if (self.is_zero() && !is_complex(exponent.dtype))
    slope = op::masked_fill(slope, op::ge(exponent, 0), 0);
  return g * slope;
}

TensorRef maximum_backward(const Tensor& g, const Tensor& self, const Tensor& other) {
  return op::greater_share(g, self, other);
}

TensorRef minimum_backward(const Tensor& g, const Tensor& self, const Tensor& other) {
  return op::greater_share(g, other, self);
}

// The gradient at a number is 0, as that of relu is at 0.
TensorRef maximum_backward(const Tensor& g, const Tensor& self, const Scalar& bound) {
  return op::masked_fill(g, op::logical_not(op::gt(self, bound)), 0);
}

TensorRef minimum_backward(const Tensor& g, const Tensor& self, const Scalar& bound) {
  return op::masked_fill(g, op::logical_not(op::lt(self, bound)), 0);
}

// The result is 0 where the weight is 0, also where g is infinite or nan.
TensorRef clamp_share(const Tensor& g, const Tensor& self, const Tensor& min, const Tensor& max,
                      int64_t which) {
  TensorRef weight = op::clamp_weight(self, min, max, which);
  return op::threshold_backward(g * weight, weight);
}

// The gradient at a bound is 0, too.
TensorRef clamp_backward(const Tensor& g, const Tensor& self, const Scalar* min,
                         const Scalar* max) {
  TensorRef out = TensorRef::share(&g);
  if (min) out = op::masked_fill(out, op::logical_not(op::gt(self, *min)), 0);
  if (max) out = op::masked_fill(out, op::logical_not(op::lt(self, *max)), 0);
  return out;
}

// As in PyTorch, the gradient is 0 where both arguments are 0.
TensorRef atan2_backward(const Tensor& g, const Tensor& self, const Tensor& other,
                         const Tensor& across) {
  TensorRef squares = self * self + other * other;
  return g * op::masked_fill(across / squares, op::eq(squares, 0), 0);
}

// The gradient at self = 0 is 0.
TensorRef copysign_backward(const Tensor& g, const Tensor& self, const Tensor& y) {
  return g * op::masked_fill(y / self, op::eq(self, 0), 0);
}

}  // namespace TT_NS::formula
