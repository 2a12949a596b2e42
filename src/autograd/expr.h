// Operators on tensors for gradient formulas: `2 + x * (1 - 2 * s)`. Each calls the differentiable
// operator of its name. A number is promoted as a Scalar; on the left of + and * it becomes the
// right operand.
#pragma once

#include "ops/gen/ops.h"

namespace TT_NS::formula {

inline TensorRef operator+(const Tensor& a, const Tensor& b) { return op::add(a, b); }
inline TensorRef operator+(const Tensor& a, const Scalar& b) { return op::add(a, b); }
inline TensorRef operator+(const Scalar& a, const Tensor& b) { return op::add(b, a); }
inline TensorRef operator-(const Tensor& a, const Tensor& b) { return op::sub(a, b); }
inline TensorRef operator-(const Tensor& a, const Scalar& b) { return op::sub(a, b); }
inline TensorRef operator-(const Scalar& a, const Tensor& b) { return op::rsub(b, a); }
inline TensorRef operator-(const Tensor& a) { return op::neg(a); }
inline TensorRef operator*(const Tensor& a, const Tensor& b) { return op::mul(a, b); }
inline TensorRef operator*(const Tensor& a, const Scalar& b) { return op::mul(a, b); }
inline TensorRef operator*(const Scalar& a, const Tensor& b) { return op::mul(b, a); }
inline TensorRef operator/(const Tensor& a, const Tensor& b) { return op::div_true(a, b); }

}  // namespace TT_NS::formula
