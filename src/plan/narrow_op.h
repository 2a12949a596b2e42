// NarrowOp: the operators of which 8- and 16-bit numbers have loops of their own
// (kernels/cpu/elementwise/narrow.cpp; functions of one number: narrow_functions.cpp; of three:
// narrow_three.cpp; shifts: narrow_shifts.cpp).
#pragma once

#include "base/platform.h"

namespace TT_NS {

// Ranges of this order are what a dtype has: integers kAnd to kMinimum, halves kNeg to kCopysign,
// bytes kEq to kGe, too. The next two are kNeg and kAbs of halves; functions follow from kClamp on,
// those of three numbers from kLerp on, then shifts.
enum class NarrowOp : int32_t {
  kAnd,
  kOr,
  kXor,
  kNeg,
  kAbs,
  kAdd,
  kSub,
  kRSub,
  kMul,
  kMaximum,
  kMinimum,
  kDiv,
  kCopysign,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kFlipSign,
  kClearSign,
  kClamp,
  kRelu,
  kSign,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kFloor,
  kCeil,
  kTrunc,
  kRound,
  kLeakyRelu,
  kReplaceNan,
  kReplaceInf,
  kLerp,
  kAddcmul,
  kAddcdiv,
  kLeftShift,
  kRightShift,
};
TT_INLINE constexpr bool is_narrow_shift(NarrowOp op) { return op >= NarrowOp::kLeftShift; }
TT_INLINE constexpr bool has_three_inputs(NarrowOp op) {
  return op >= NarrowOp::kLerp && !is_narrow_shift(op);
}
TT_INLINE constexpr bool is_narrow_function(NarrowOp op) {
  return op >= NarrowOp::kClamp && op < NarrowOp::kLerp;
}

}  // namespace TT_NS
