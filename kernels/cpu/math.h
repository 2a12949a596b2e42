// Real functions of the host. float: tt's own, branch-free, for every argument; errors (measured over all floats by
// tests/cpp/math_ulp_test.cpp) stand with each. double: the C library unless said otherwise.
//
// Reductions after Cody & Waite, "Software Manual for the Elementary Functions" (1980); error-free sums after Dekker,
// Numer. Math. 18 (1971). Every polynomial is tt's own minimax fit (Remez exchange in 40 digits, the weights that make
// the error relative to the result) rounded to the type; its error bound stands in the comment.
#pragma once

#include "cpu/isa.h"

TT_ISA_BEGIN
namespace math {

#if defined(__FMA__)
TT_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TT_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
TT_INLINE float fma(float a, float b, float c) { return a * b + c; }
TT_INLINE double fma(double a, double b, double c) { return a * b + c; }
#endif

TT_INLINE float bits_f32(uint32_t u) { return __builtin_bit_cast(float, u); }
TT_INLINE uint32_t f32_bits(float f) { return __builtin_bit_cast(uint32_t, f); }
TT_INLINE double bits_f64(uint64_t u) { return __builtin_bit_cast(double, u); }
TT_INLINE uint64_t f64_bits(double f) { return __builtin_bit_cast(uint64_t, f); }

// ---- exp ----
// x = n ln2 + r, |r| <= ln2/2; exp(x) = 2^n (1 + r + r^2 P(r)); P: 2^-28 relative to exp(r).
// ln2's high part has 15 bits, so n * kLn2Hi is exact without FMA too. 2^n in two factors: subnormals round once.
constexpr float kLog2e = 0x1.715476p+0f, kLn2Hi = 0x1.62e4p-1f, kLn2Lo = 0x1.7f7d1cp-20f;

TT_INLINE float exp(float x) {
  const float c = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;  // nan passes
  const float shifted = fma(c, kLog2e, 0x1.8p23f), n = shifted - 0x1.8p23f;
  const float r = fma(n, -kLn2Lo, fma(n, -kLn2Hi, c));
  float p = 0x1.6a2366p-10f;
  p = fma(p, r, 0x1.123a6ap-7f);
  p = fma(p, r, 0x1.5558f4p-5f);
  p = fma(p, r, 0x1.55549p-3f);
  p = fma(p, r, 0x1.fffffcp-2f);
  const float y = fma(r * r, p, r) + 1.0f;
  const int32_t k = int32_t(f32_bits(shifted)) - 0x4b400000, half = k >> 1;
  return y * bits_f32(uint32_t(half + 127) << 23) * bits_f32(uint32_t(k - half + 127) << 23);
}

TT_INLINE double exp(double x) { return __builtin_exp(x); }

}  // namespace math
TT_ISA_END
