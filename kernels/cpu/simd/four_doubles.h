// Four doubles, in one register or two, and their four floats.
//   pick<i, j, k, l>(a, b)   selects lanes; those of a are 0 … 3, those of b 4 … 7
//   positive(x)              without signs
//   widened, narrowed        from and to four floats
#pragma once

#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

using S4 = Vector<float, 4>;
using U4 = Vector<uint64_t, 4>;
template <class T> TT_INLINE T loaded(const void* p) {
  T v;
  memcpy(&v, p, sizeof v);
  return v;
}
template <class T> TT_INLINE void put(void* p, T v) { memcpy(p, &v, sizeof v); }

#if TT_VEC_BYTES > 16
using D4 = Vector<double, 4>;
TT_INLINE D4 all(double x) { return D4{x, x, x, x}; }
TT_INLINE D4 combined(double a, double b, double c, double d) { return D4{a, b, c, d}; }
template <int i, int j, int k, int l> TT_INLINE D4 pick(D4 a, D4 b) {
  return shuffled<i, j, k, l>(a, b);
}
TT_INLINE D4 positive(D4 x) { return (D4)((U4)x & uint64_t(INT64_MAX)); }
#if TT_SVE
TT_INLINE D4 smaller(D4 a, D4 b) { return vmin(a, b); }
TT_INLINE D4 larger(D4 a, D4 b) { return vmax(a, b); }
TT_INLINE D4 widened(S4 v) { return load_as_double(reinterpret_cast<const float*>(&v)); }
TT_INLINE S4 narrowed(D4 v) {
  S4 x;
  store_as_float(reinterpret_cast<float*>(&x), v);
  return x;
}
#else
TT_INLINE D4 smaller(D4 a, D4 b) { return D4(_mm256_min_pd(__m256d(a), __m256d(b))); }
TT_INLINE D4 larger(D4 a, D4 b) { return D4(_mm256_max_pd(__m256d(a), __m256d(b))); }
TT_INLINE D4 widened(S4 v) { return D4(_mm256_cvtps_pd(__m128(v))); }
TT_INLINE S4 narrowed(D4 v) { return S4(_mm256_cvtpd_ps(__m256d(v))); }
#endif
#else
using D2 = Vector<double, 2>;
struct D4 {  // gcc 12 splits a vector of 32 bytes through memory
  D2 lo, hi;
  TT_INLINE double operator[](int64_t k) const { return k < 2 ? lo[k] : hi[k - 2]; }
};
TT_INLINE D4 operator+(D4 a, D4 b) { return {a.lo + b.lo, a.hi + b.hi}; }
TT_INLINE D4 operator-(D4 a, D4 b) { return {a.lo - b.lo, a.hi - b.hi}; }
TT_INLINE D4 operator*(D4 a, D4 b) { return {a.lo * b.lo, a.hi * b.hi}; }
TT_INLINE D4& operator*=(D4& a, D4 b) { return a = a * b; }
TT_INLINE D4 all(double x) { return {D2{x, x}, D2{x, x}}; }
TT_INLINE D4 combined(double a, double b, double c, double d) { return {D2{a, b}, D2{c, d}}; }
template <int i> TT_INLINE double lane(D4 a, D4 b) { return i < 4 ? a[i & 3] : b[i & 3]; }
template <int i, int j, int k, int l> TT_INLINE D4 pick(D4 a, D4 b) {
  return {D2{lane<i>(a, b), lane<j>(a, b)}, D2{lane<k>(a, b), lane<l>(a, b)}};
}
TT_INLINE D2 positive(D2 x) { return (D2)((Vec<int64_t>)x & INT64_MAX); }
TT_INLINE D4 positive(D4 x) { return {positive(x.lo), positive(x.hi)}; }
TT_INLINE D4 smaller(D4 a, D4 b) { return {vmin(a.lo, b.lo), vmin(a.hi, b.hi)}; }
TT_INLINE D4 larger(D4 a, D4 b) { return {vmax(a.lo, b.lo), vmax(a.hi, b.hi)}; }
#if TT_SSE2
TT_INLINE D4 widened(S4 v) {
  return {D2(_mm_cvtps_pd(__m128(v))), D2(_mm_cvtps_pd(_mm_movehl_ps(__m128(v), __m128(v))))};
}
TT_INLINE S4 narrowed(D4 v) {
  return S4(_mm_movelh_ps(_mm_cvtpd_ps(__m128d(v.lo)), _mm_cvtpd_ps(__m128d(v.hi))));
}
#elif defined(__aarch64__)  // gcc 12 converts lanes one by one
TT_INLINE D4 widened(S4 v) {
  const float32x4_t x = float32x4_t(v);
  return {D2(vcvt_f64_f32(vget_low_f32(x))), D2(vcvt_high_f64_f32(x))};
}
TT_INLINE S4 narrowed(D4 v) {
  return S4(vcvt_high_f32_f64(vcvt_f32_f64(float64x2_t(v.lo)), float64x2_t(v.hi)));
}
#else
TT_INLINE D4 widened(S4 v) { return {D2{v[0], v[1]}, D2{v[2], v[3]}}; }
TT_INLINE S4 narrowed(D4 v) { return S4{float(v[0]), float(v[1]), float(v[2]), float(v[3])}; }
#endif
#endif

TT_ISA_END
