// Integer arithmetic that plans, operators and kernels share. Always inlined, so that a kernel's
// instruction set never leaks into another build of the same function.
#pragma once

#include "base/platform.h"

namespace TT_NS {

template <class T> TT_INLINE constexpr T min(T a, T b) { return a < b ? a : b; }
template <class T> TT_INLINE constexpr T max(T a, T b) { return a > b ? a : b; }
// Returns the number in [low, high] that is nearest to value; low <= high.
template <class T> TT_INLINE constexpr T clamp(T value, T low, T high) {
  return value < low ? low : min(value, high);
}

// a / b rounded up, for a >= 0 and b > 0.
TT_INLINE constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
// Returns the smallest multiple of `unit` that is not less than a, for a >= 0 and unit > 0.
TT_INLINE constexpr int64_t round_up(int64_t a, int64_t unit) { return ceil_div(a, unit) * unit; }

// Returns the upper 64 bits of a * b.
TT_INLINE uint64_t mul_high(uint64_t a, uint64_t b) {
#if TT_HAS_UINT128
  return uint64_t(uint128(a) * b >> 64);
#else
  const uint64_t a_lo = uint32_t(a);
  const uint64_t a_hi = a >> 32;
  const uint64_t b_lo = uint32_t(b);
  const uint64_t b_hi = b >> 32;
  const uint64_t carry = (a_lo * b_lo >> 32) + uint32_t(a_hi * b_lo) + uint32_t(a_lo * b_hi);
  return a_hi * b_hi + (a_hi * b_lo >> 32) + (a_lo * b_hi >> 32) + (carry >> 32);
#endif
}

}  // namespace TT_NS
