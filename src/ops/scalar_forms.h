// Arithmetic on numbers for gradient formulas: the scalar form of an operator uses the same
// formula, in which these functions replace the operators on tensors.
#pragma once

#include "core/scalar.h"

namespace TT_NS::op {

inline Scalar conj(const Scalar& s) { return TT_NS::conj(s); }
inline Scalar neg(const Scalar& s) { return -s; }
inline Scalar add(const Scalar& a, const Scalar& b) { return a + b; }
inline Scalar sub(const Scalar& a, const Scalar& b) { return a - b; }
inline Scalar mul(const Scalar& a, const Scalar& b) { return a * b; }

}  // namespace TT_NS::op
