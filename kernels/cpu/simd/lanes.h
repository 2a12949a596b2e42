// The primitives of math/math.h, for float and, with AVX-512, for vectors of 16 lanes, which have
// instructions that a vectorised loop over floats does not use (scaling by 2^n, approximate
// reciprocals).
#pragma once

#include "kernels/cpu/simd/intrinsics.h"
#include "kernels/cpu/simd/isa.h"

TT_ISA_BEGIN
namespace math {

#if TT_FUSED
TT_INLINE float fma(float a, float b, float c) { return libm::fmaf(a, b, c); }
#else
TT_INLINE float fma(float a, float b, float c) { return a * b + c; }
#endif

TT_INLINE float bits_f32(uint32_t u) { return bit_cast<float>(u); }
TT_INLINE uint32_t f32_bits(float f) { return bit_cast<uint32_t>(f); }
TT_INLINE double bits_f64(uint64_t u) { return bit_cast<double>(u); }
TT_INLINE uint64_t f64_bits(double f) { return bit_cast<uint64_t>(f); }

// Adding kRound rounds to an integer, which is then in the low bits.
constexpr float kRound = 0x1.8p23f;
constexpr int32_t kRoundBits = 0x4b400000;
// The same; the low bits are those of a float's exponent.
constexpr float kRoundExponent = kRound + 127;

TT_INLINE float power_of_two(int32_t n) { return bits_f32(uint32_t(n + 127) << 23); }
TT_INLINE double power_of_two(int64_t n) { return bits_f64(uint64_t(n + 1023) << 52); }

template <class V> V splat(float);
template <> TT_INLINE float splat<float>(float x) { return x; }
TT_INLINE float at_least(float a, float low) { return a < low ? low : a; }  // nan stays
TT_INLINE float at_most(float a, float high) { return a > high ? high : a; }
TT_INLINE float nearest(float x) { return (x + kRound) - kRound; }  // |x| < 2^22
// x * 2^n, rounded once, for an integer n in [-252, 254].
TT_INLINE float scale(float x, float n) {
  const int32_t k = int32_t(f32_bits(n + kRound)) - kRoundBits;
  const int32_t half = k >> 1;
  return x * power_of_two(half) * power_of_two(k - half);
}
// scale(x, n), or 0 in lanes where `of` is below `low`: where the result would vanish. Scaling to
// nothing takes 150 cycles on some processors.
TT_INLINE float scale_above(float x, float n, float, float) { return scale(x, n); }
// 2^max(n, low), where n = shifted - kRoundExponent is an integer below 128, and low >= -126.
TT_INLINE float exp2_rounded(float shifted, int32_t low) {
  const int32_t n = int32_t(f32_bits(shifted));
  const int32_t low_bits = kRoundBits + 127 + low;
  return bits_f32(uint32_t(max(low_bits, n)) << 23);
}
// 1 / d with a relative error of at most 2^-14.
TT_INLINE float rough_reciprocal(float d) { return 1.0f / d; }
TT_INLINE float abs(float x) { return libm::fabsf(x); }
TT_INLINE float with_sign(float x, float s) { return libm::copysignf(x, s); }
TT_INLINE float if_negative(float x, float a, float b) { return x < 0 ? a : b; }
TT_INLINE float if_nan(float x, float a, float b) { return x != x ? a : b; }

#if TT_VECTOR_MATH
using F32v = __m512;
constexpr int kLanes = 16;

template <> TT_INLINE F32v splat<F32v>(float x) { return _mm512_set1_ps(x); }
TT_INLINE F32v fma(F32v a, F32v b, F32v c) { return _mm512_fmadd_ps(a, b, c); }
TT_INLINE F32v fma(F32v a, float b, F32v c) { return _mm512_fmadd_ps(a, splat<F32v>(b), c); }
TT_INLINE F32v fma(F32v a, F32v b, float c) { return _mm512_fmadd_ps(a, b, splat<F32v>(c)); }
// Both return the second operand if one is NaN.
TT_INLINE F32v at_least(F32v a, float low) { return _mm512_max_ps(splat<F32v>(low), a); }
TT_INLINE F32v at_most(F32v a, float high) { return _mm512_min_ps(splat<F32v>(high), a); }
TT_INLINE F32v nearest(F32v x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
TT_INLINE F32v scale(F32v x, F32v n) { return _mm512_scalef_ps(x, n); }
TT_INLINE F32v scale_above(F32v x, F32v n, F32v of, float low) {
  const __mmask16 some = _mm512_cmp_ps_mask(of, splat<F32v>(low), _CMP_NLT_UQ);  // nan, too
  return _mm512_maskz_scalef_ps(some, x, n);
}
TT_INLINE F32v exp2_rounded(F32v shifted, int32_t low) {
  const __m512i n =
      _mm512_max_epi32(_mm512_castps_si512(shifted), _mm512_set1_epi32(kRoundBits + 127 + low));
  return _mm512_castsi512_ps(_mm512_slli_epi32(n, 23));
}
TT_INLINE F32v rough_reciprocal(F32v d) { return _mm512_rcp14_ps(d); }
TT_INLINE F32v abs(F32v x) { return _mm512_abs_ps(x); }
TT_INLINE F32v with_sign(F32v x, F32v s) {
  const __m512i sign = _mm512_set1_epi32(INT32_MIN);
  return _mm512_castsi512_ps(
      _mm512_ternarylogic_epi32(sign, _mm512_castps_si512(s), _mm512_castps_si512(x), 0xca));
}
TT_INLINE __m512i bits_of(F32v x) { return _mm512_castps_si512(x); }
constexpr __mmask16 kAllLanes = 0xffff;
TT_INLINE __mmask16 less(F32v a, F32v b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
TT_INLINE F32v select(__mmask16 m, F32v a, F32v b) { return _mm512_mask_blend_ps(m, b, a); }
TT_INLINE F32v if_negative(F32v x, F32v a, F32v b) {
  return select(less(x, _mm512_setzero_ps()), a, b);
}
TT_INLINE F32v if_nan(F32v x, F32v a, F32v b) {
  return select(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), a, b);
}
// An entry of a table for each lane: registers hold the table.
constexpr int kTableSize = 32;
TT_INLINE F32v look_up(const float* table, __m512i i) {
  return _mm512_permutex2var_ps(_mm512_load_ps(table), i, _mm512_load_ps(table + 16));
}
TT_INLINE float look_up(const float* table, uint32_t i) { return table[i % kTableSize]; }
// The bits of max(x, low) but the last `dropped`; x and low are not negative.
TT_INLINE __m512i leading_bits(F32v x, float low, int dropped) {
  const __m512i least = _mm512_set1_epi32(int32_t(f32_bits(low)));
  return _mm512_srli_epi32(_mm512_max_epi32(_mm512_castps_si512(x), least), uint32_t(dropped));
}
TT_INLINE uint32_t leading_bits(float x, float low, int dropped) {
  return max(f32_bits(x), f32_bits(low)) >> dropped;
}
TT_INLINE F32v load_lanes(const float* p) { return _mm512_loadu_ps(p); }
TT_INLINE void store_lanes(float* p, F32v v) { _mm512_storeu_ps(p, v); }
#endif

}  // namespace math
TT_ISA_END
