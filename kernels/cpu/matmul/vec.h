// Vectors of this instruction set for matmul: partial loads and stores, fma, transpose.
#pragma once

#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

// --- partial loads and stores: the first n lanes, 0 <= n <= kLanes<T>; other lanes load 0 ---
#if defined(__AVX512F__)
template <class T> struct Part {
  uint32_t bits;
  TT_INLINE explicit Part(int n) : bits((uint32_t(1) << n) - 1) {}
};
TT_INLINE Vec<float> load(const float* p, Part<float> m) {
  return Vec<float>(_mm512_maskz_loadu_ps(__mmask16(m.bits), p));
}
TT_INLINE Vec<double> load(const double* p, Part<double> m) {
  return Vec<double>(_mm512_maskz_loadu_pd(__mmask8(m.bits), p));
}
TT_INLINE Vec<int32_t> load(const int32_t* p, Part<int32_t> m) {
  return Vec<int32_t>(_mm512_maskz_loadu_epi32(__mmask16(m.bits), p));
}
TT_INLINE Vec<int64_t> load(const int64_t* p, Part<int64_t> m) {
  return Vec<int64_t>(_mm512_maskz_loadu_epi64(__mmask8(m.bits), p));
}
TT_INLINE void store(float* p, Vec<float> v, Part<float> m) {
  _mm512_mask_storeu_ps(p, __mmask16(m.bits), __m512(v));
}
TT_INLINE void store(double* p, Vec<double> v, Part<double> m) {
  _mm512_mask_storeu_pd(p, __mmask8(m.bits), __m512d(v));
}
TT_INLINE void store(int32_t* p, Vec<int32_t> v, Part<int32_t> m) {
  _mm512_mask_storeu_epi32(p, __mmask16(m.bits), __m512i(v));
}
TT_INLINE void store(int64_t* p, Vec<int64_t> v, Part<int64_t> m) {
  _mm512_mask_storeu_epi64(p, __mmask8(m.bits), __m512i(v));
}
#elif defined(__AVX2__)
template <class T> struct Part {
  __m256i bits;
  TT_INLINE explicit Part(int n) {
    if constexpr (sizeof(T) == 4)
      bits = _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    else bits = _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
  }
};
TT_INLINE Vec<float> load(const float* p, Part<float> m) {
  return Vec<float>(_mm256_maskload_ps(p, m.bits));
}
TT_INLINE Vec<double> load(const double* p, Part<double> m) {
  return Vec<double>(_mm256_maskload_pd(p, m.bits));
}
TT_INLINE Vec<int32_t> load(const int32_t* p, Part<int32_t> m) {
  return Vec<int32_t>(_mm256_maskload_epi32(p, m.bits));
}
TT_INLINE Vec<int64_t> load(const int64_t* p, Part<int64_t> m) {
  return Vec<int64_t>(_mm256_maskload_epi64(reinterpret_cast<const long long*>(p), m.bits));
}
TT_INLINE void store(float* p, Vec<float> v, Part<float> m) {
  _mm256_maskstore_ps(p, m.bits, __m256(v));
}
TT_INLINE void store(double* p, Vec<double> v, Part<double> m) {
  _mm256_maskstore_pd(p, m.bits, __m256d(v));
}
TT_INLINE void store(int32_t* p, Vec<int32_t> v, Part<int32_t> m) {
  _mm256_maskstore_epi32(p, m.bits, __m256i(v));
}
TT_INLINE void store(int64_t* p, Vec<int64_t> v, Part<int64_t> m) {
  _mm256_maskstore_epi64(reinterpret_cast<long long*>(p), m.bits, __m256i(v));
}
#else
template <class T> struct Part {
  int n;
  TT_INLINE explicit Part(int lanes) : n(lanes) {}
};
template <class T> TT_INLINE Vec<T> load(const T* p, Part<T> m) {
  Vec<T> v = {};
  for (int i = 0; i < kLanes<T>; i++)
    if (i < m.n) v[i] = p[i];
  return v;
}
template <class T> TT_INLINE void store(T* p, Vec<T> v, Part<T> m) {
  for (int i = 0; i < kLanes<T>; i++)
    if (i < m.n) p[i] = v[i];
}
#endif

// x * y + z: fused where the instruction set has it; integers wrap.
TT_INLINE Vec<float> fma(Vec<float> x, Vec<float> y, Vec<float> z) {
#if defined(__AVX512F__)
  return Vec<float>(_mm512_fmadd_ps(__m512(x), __m512(y), __m512(z)));
#elif defined(__FMA__)
  return Vec<float>(_mm256_fmadd_ps(__m256(x), __m256(y), __m256(z)));
#elif defined(__aarch64__)
  return Vec<float>(vfmaq_f32(float32x4_t(z), float32x4_t(x), float32x4_t(y)));
#else
  return x * y + z;
#endif
}
TT_INLINE Vec<double> fma(Vec<double> x, Vec<double> y, Vec<double> z) {
#if defined(__AVX512F__)
  return Vec<double>(_mm512_fmadd_pd(__m512d(x), __m512d(y), __m512d(z)));
#elif defined(__FMA__)
  return Vec<double>(_mm256_fmadd_pd(__m256d(x), __m256d(y), __m256d(z)));
#elif defined(__aarch64__)
  return Vec<double>(vfmaq_f64(float64x2_t(z), float64x2_t(x), float64x2_t(y)));
#else
  return x * y + z;
#endif
}
TT_INLINE Vec<int32_t> fma(Vec<int32_t> x, Vec<int32_t> y, Vec<int32_t> z) {
  using U = Vec<uint32_t>;
  return Vec<int32_t>(U(x) * U(y) + U(z));
}
TT_INLINE Vec<int64_t> fma(Vec<int64_t> x, Vec<int64_t> y, Vec<int64_t> z) {
  using U = Vec<uint64_t>;
  return Vec<int64_t>(U(x) * U(y) + U(z));
}

// Two bf16, the first in the low half. fma adds both products to one f32 lane and treats subnormal
// factors as 0.
using Bf16Pair = uint32_t;
#if defined(__AVX512BF16__)
TT_INLINE Vec<float> fma(Vec<Bf16Pair> x, Vec<Bf16Pair> y, Vec<float> z) {
  return Vec<float>(_mm512_dpbf16_ps(__m512(z), __m512bh(x), __m512bh(y)));
}
#endif

// z - x * y
template <class T> TT_INLINE Vec<T> fnma(Vec<T> x, Vec<T> y, Vec<T> z) { return fma(-x, y, z); }

// lo and hi are the halves of x0 y0 x1 y1 …
template <class V> TT_INLINE void zip(V x, V y, V* lo, V* hi) {
  if constexpr (sizeof(V) / sizeof(x[0]) == 16) {
    *lo = __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    *hi =
        __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  } else if constexpr (sizeof(V) / sizeof(x[0]) == 8) {
    *lo = __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11);
    *hi = __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15);
  } else if constexpr (sizeof(V) / sizeof(x[0]) == 4) {
    *lo = __builtin_shufflevector(x, y, 0, 4, 1, 5);
    *hi = __builtin_shufflevector(x, y, 2, 6, 3, 7);
  } else {
    *lo = __builtin_shufflevector(x, y, 0, 2);
    *hi = __builtin_shufflevector(x, y, 1, 3);
  }
}

// Transposes an L x L block in registers: zips row i with row i + L/2, log2(L) times.
template <class T> TT_INLINE void transpose(Vec<T> (&r)[kLanes<T>]) {
  constexpr int kL = kLanes<T>;
  TT_UNROLL
  for (int step = 1; step < kL; step *= 2) {
    Vec<T> t[kL];
    TT_UNROLL
    for (int i = 0; i < kL / 2; i++) zip(r[i], r[i + kL / 2], &t[2 * i], &t[2 * i + 1]);
    TT_UNROLL
    for (int i = 0; i < kL; i++) r[i] = t[i];
  }
}

TT_ISA_END
