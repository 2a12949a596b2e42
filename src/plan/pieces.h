// Which float32 are sums of three bf16, their pieces, so that tiles of AMX multiply them. CPU only.
#pragma once

#include "base/arith.h"

#include <stdint.h>

namespace TT_NS {

// The bits of the smallest and the largest magnitude of numbers but zeros; of none: ~0 and 0.
struct PieceRange {
  uint32_t least, most;

  TT_INLINE void join(PieceRange other) {
    least = min(least, other.least);
    most = max(most, other.most);
  }
};
constexpr PieceRange kNoPieces = {~0u, 0};

// The exponent of a magnitude's bits.
TT_INLINE int32_t exponent_of_bits(uint32_t bits) { return int32_t(bits >> 23) - 127; }

// Whether products of pieces are those of the numbers: tiles take subnormal pieces, products and
// sums as 0, and numbers near the largest one, infinity and NaN have no pieces. What is lost of a
// product is below 2^-26 of it then, and sums of 2^14 products are finite.
TT_INLINE bool pieces_express(PieceRange a, PieceRange b) {
  const int32_t top_a = exponent_of_bits(a.most);
  const int32_t top_b = exponent_of_bits(b.most);
  if (max(top_a, top_b) > 120 || top_a + top_b > 110) return false;
  if (a.most == 0 || b.most == 0) return true;
  const int32_t low_a = exponent_of_bits(a.least);
  const int32_t low_b = exponent_of_bits(b.least);
  return min(low_a, low_b) >= -100 && low_a + low_b >= -100;
}

}  // namespace TT_NS
