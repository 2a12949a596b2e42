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

// Whether products of pieces are those of the numbers: tiles take subnormal pieces, products and
// sums as 0, and numbers near the largest one, infinity and NaN have no pieces. What is lost of a
// product is below 2^-26 of it then, and sums of 2^14 products are finite.
TT_INLINE bool pieces_express(PieceRange a, PieceRange b) {
  const auto exponent = [](uint32_t bits) { return int32_t(bits >> 23) - 127; };
  if (exponent(max(a.most, b.most)) > 120 || exponent(a.most) + exponent(b.most) > 110)
    return false;
  if (a.most == 0 || b.most == 0) return true;
  const int32_t x = exponent(a.least);
  const int32_t y = exponent(b.least);
  return min(x, y) >= -100 && x + y >= -100;
}

}  // namespace TT_NS
