// The standard normal distribution of the host: normal_tail is 1 - Phi(|x|), to a few ulp everywhere, and *bell exp(-x^2 / 2).
// Included by cpu/math.h.
#pragma once

TT_ISA_BEGIN
namespace math {

TT_INLINE float if_negative(float x, float a, float b) { return x < 0 ? a : b; }
#if defined(__AVX512F__)
TT_INLINE F32v if_negative(F32v x, F32v a, F32v b) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), b, a);
}
#endif

// exp(-t^2 / 2) z P(z), z = 1 / (1 + 0.3 t): 2^-28; what t^2 / 2 rounds off goes back in to first order. Behind 15 both are 0.
template <class V>
TT_INLINE V tail_lanes(V x, V* bell) {
  const V t = at_most(abs(x), 15.0f), half = t * 0.5f, square = half * t, lost = fma(half, t, -square);
  const V e = exp_lanes(-square), z = 1.0f / fma(t, 0.3f, splat<V>(1.0f));
  V p = fma(z, -0x1.51e572p-6f, splat<V>(0x1.cc89c2p-4f));
  p = fma(p, z, -0x1.d36234p-3f);
  p = fma(p, z, 0x1.88c71p-3f);
  p = fma(p, z, -0x1.4552c4p-4f);
  p = fma(p, z, 0x1.89dc62p-4f);
  p = fma(p, z, 0x1.41154ap-4f);
  p = fma(p, z, 0x1.c38644p-4f);
  p = fma(p, z, 0x1.e9c422p-4f);
  p = fma(p, z, 0x1.ea3c98p-4f);
  *bell = fma(e, -lost, e);
  return *bell * (p * z);
}
TT_INLINE float normal_tail(float x, float* bell) { return tail_lanes(x, bell); }
#if defined(__AVX512F__)
TT_INLINE F32v normal_tail(F32v x, F32v* bell) { return tail_lanes(x, bell); }
#endif

// erfc(a) / 2 with a = t / sqrt(2); erfc is steep there, so what a rounds off goes back in. Products of parts are exact.
TT_INLINE double normal_lost(double t, double a) {
  constexpr double kHi = 0x1.6a09e6p-1, kLo = 0x1.9fcef32422cbfp-27;
  const double split = t * 0x1.0000002p27, th = split - (split - t), tl = t - th;
  return (th * kHi - a) + (tl * kHi + t * kLo);
}
TT_INLINE double normal_tail(double x, double* bell) {
  const double t = __builtin_fabs(x) > 40.0 ? 40.0 : __builtin_fabs(x), a = t * 0x1.6a09e667f3bcdp-1;
  *bell = exp(-0.5 * t * t);
  return 0.5 * __builtin_erfc(a) - *bell * normal_lost(t, a) * 0x1.20dd750429b6dp-1;
}

}  // namespace math
TT_ISA_END
