// The numbers of a BlockSpan.
#pragma once

#include "kernels/cpu/quant/blocks.h"
#include "kernels/cpu/simd/bytes.h"

TT_ISA_BEGIN

// Vector v of group g.
TT_INLINE Vec<float> numbers_of(const BlockSpan& s, int64_t g, int v) {
  const auto* const bytes = reinterpret_cast<const char*>(s.q) + g * kGroup + v * kLanes<float>;
  const auto q = converted<Vec<float>>(load_i8(bytes));
  return fma(q, splat(s.scale[g]), splat(s.shift[g]));
}

TT_ISA_END
