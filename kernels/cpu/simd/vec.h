// Vec<T>: the vector of this instruction set, as gcc's and clang's vector extension; load, store,
// splat, halves.
#pragma once

#include "kernels/cpu/simd/isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
#define TT_VEC_BYTES 64
#elif defined(__AVX2__)
#define TT_VEC_BYTES 32
#else
#define TT_VEC_BYTES 16
#endif

#if defined(__clang__)
#define TT_UNROLL _Pragma("unroll")
#else
#define TT_UNROLL _Pragma("GCC unroll 32")
#endif

TT_ISA_BEGIN

template <class T> struct VecOf { typedef T type __attribute__((vector_size(TT_VEC_BYTES))); };
template <class T> using Vec = typename VecOf<T>::type;

template <class T> constexpr int kLanes = TT_VEC_BYTES / int(sizeof(T));

template <class T> constexpr T kMinusInfinity = T(-__builtin_inf());

template <class T> TT_INLINE Vec<T> load(const T* p) {
  Vec<T> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class T> TT_INLINE void store(T* p, Vec<T> v) { __builtin_memcpy(p, &v, sizeof v); }

template <class T> TT_INLINE Vec<T> splat(T x) { return x - Vec<T>{}; }
TT_INLINE Vec<float> splat(float x) {
#if defined(__AVX512F__)
  return Vec<float>(_mm512_set1_ps(x));
#else
  return x - Vec<float>{};
#endif
}
TT_INLINE Vec<double> splat(double x) {
#if defined(__AVX512F__)
  return Vec<double>(_mm512_set1_pd(x));
#else
  return x - Vec<double>{};
#endif
}

// The halves of a vector.
template <class T, int N> struct Halves {
  typedef T Whole __attribute__((vector_size(N * sizeof(T))));
  typedef T Half __attribute__((vector_size(N / 2 * sizeof(T))));
  static TT_INLINE Half low(Whole v) {
    if constexpr (N == 16) return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
    else if constexpr (N == 8) return __builtin_shufflevector(v, v, 0, 1, 2, 3);
    else return __builtin_shufflevector(v, v, 0, 1);
  }
  static TT_INLINE Half high(Whole v) {
    if constexpr (N == 16) return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
    else if constexpr (N == 8) return __builtin_shufflevector(v, v, 4, 5, 6, 7);
    else return __builtin_shufflevector(v, v, 2, 3);
  }
};

// Combines lane l with lane l + N/2, then the results likewise, until two lanes are left: out[2].
template <class T, int N, class Op>
TT_INLINE void fold_lanes(typename Halves<T, N>::Whole v, T* out, const Op& op) {
  if constexpr (N == 2) {
    out[0] = v[0];
    out[1] = v[1];
  } else {
    const auto half = op(Halves<T, N>::low(v), Halves<T, N>::high(v));
    if constexpr (N == 4) {
      out[0] = half[0];
      out[1] = half[1];
    } else {
      fold_lanes<T, N / 2>(half, out, op);
    }
  }
}

TT_ISA_END
