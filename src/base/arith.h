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

}  // namespace TT_NS
