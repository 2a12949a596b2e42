// NarrowOp: the operators of which 8- and 16-bit numbers have loops of their own
// (kernels/cpu/elementwise/narrow.cpp).
#pragma once

#include "base/platform.h"

namespace TT_NS {

// Ranges of this order are what a dtype has: integers kAnd to kMinimum, halves kNeg to kRelu, bytes
// kEq to kGe, too. The next two are kNeg and kAbs of halves; functions of one number follow
// (narrow_functions.cpp).
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
  kRelu,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kFlipSign,
  kClearSign,
  kClamp,
  kReluOfAll,
  kSign,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kFloor,
  kCeil,
  kTrunc,
  kRound,
};

}  // namespace TT_NS
