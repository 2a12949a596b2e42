// Parses the equation of einsum: the labels of each operand's dimensions.
#pragma once

#include "core/tensor.h"
#include "dispatch/value.h"

namespace TT_NS {

constexpr int kLetters = 52;             // A … Z, a … z
constexpr uint8_t kEllipsis = kLetters;  // any number of dimensions
using Labels = SmallVec<uint8_t, 8>;

struct Equation {
  SmallVec<Labels, 4> terms;  // one per operand
  Labels out;                 // after ->, or implied
};

// Fails with INVALID_ARG, naming the position, unless the text is well-formed and has n_operands
// terms.
Equation parse_equation(Str text, int64_t n_operands);

}  // namespace TT_NS
