// Formulas of functions of one tensor.
#include "autograd/formulas.h"

#include "ops/gen/ops.h"

namespace TT_NS::formula {

// y = x / |x| turns only across its own direction: (g - Re(g / y) y) / |x|; 0 where x is. Of real
// numbers it is constant.
TensorRef sgn_backward(const Tensor& g, const Tensor& self, const Tensor& y) {
  if (!is_complex(self.dtype)) return op::zeros_like(g);
  TensorRef modulus = op::abs(self);
  TensorRef along = op::mul(*op::real(op::div_true(g, y)), y);
  return op::masked_fill(*op::div_true(*op::sub(g, along), *modulus), *op::eq(modulus, 0), 0);
}

// g * across / (self^2 + other^2); as PyTorch's, 0 where the squares vanish.
TensorRef atan2_backward(const Tensor& g, const Tensor& self, const Tensor& other,
                         const Tensor& across) {
  TensorRef squares = op::add(*op::mul(self, self), *op::mul(other, other));
  return op::mul(g, *op::masked_fill(*op::div_true(across, *squares), *op::eq(*squares, 0), 0));
}

}  // namespace TT_NS::formula
