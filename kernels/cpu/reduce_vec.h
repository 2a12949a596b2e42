// Native vectors of this ISA and 64 virtual lanes over them: what reductions and row kernels are written in.
#pragma once

#include "cpu/isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define TT_VEC_BYTES 64
#elif defined(__AVX2__)
#define TT_VEC_BYTES 32
#else
#define TT_VEC_BYTES 16
#endif

TT_ISA_BEGIN

template <class T>
struct VecOf {
  typedef T type __attribute__((vector_size(TT_VEC_BYTES)));
};
template <class T>
using Vec = typename VecOf<T>::type;
using F32v = Vec<float>;
using I32v = Vec<int32_t>;

template <class T>
constexpr int kLanes = TT_VEC_BYTES / int(sizeof(T));

template <class T>
TT_INLINE Vec<T> load(const T* p) {
  Vec<T> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
TT_INLINE void store(T* p, Vec<T> v) {
  __builtin_memcpy(p, &v, sizeof v);
}
template <class T>
TT_INLINE Vec<T> splat(T x) {
  return x - Vec<T>{};
}

// x > m ? x : m, so a NaN in x is passed over. (The unmasked intrinsics of gcc 12 warn of their own undefined operand.)
TT_INLINE F32v vmax(F32v x, F32v m) {
#if defined(__AVX512F__)
  return F32v(_mm512_maskz_max_ps(__mmask16(-1), __m512(x), __m512(m)));
#elif defined(__AVX2__)
  return F32v(_mm256_max_ps(__m256(x), __m256(m)));
#elif defined(__SSE2__)
  return F32v(_mm_max_ps(__m128(x), __m128(m)));
#else
  return x > m ? x : m;
#endif
}
TT_INLINE F32v vmin(F32v x, F32v m) {
#if defined(__AVX512F__)
  return F32v(_mm512_maskz_min_ps(__mmask16(-1), __m512(x), __m512(m)));
#elif defined(__AVX2__)
  return F32v(_mm256_min_ps(__m256(x), __m256(m)));
#elif defined(__SSE2__)
  return F32v(_mm_min_ps(__m128(x), __m128(m)));
#else
  return x < m ? x : m;
#endif
}

// Fused where the ISA has it (avx2 and above, neon).
TT_INLINE F32v vfma(F32v a, F32v b, F32v c) {
#if defined(__AVX512F__)
  return F32v(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
#elif defined(__FMA__)
  return F32v(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
#else
  return a * b + c;
#endif
}

// 64 lanes of T: the unit in which every sum is kept, whatever the ISA's width.
constexpr int kBlockLanes = 64;
template <class T>
struct Lanes {
  static constexpr int kN = kBlockLanes / kLanes<T>;
  Vec<T> v[kN];

  TT_INLINE void fill(T x) {
#pragma GCC unroll 32
    for (int i = 0; i < kN; i++) v[i] = splat(x);
  }
  TT_INLINE void add(const T* p) {
#pragma GCC unroll 32
    for (int i = 0; i < kN; i++) v[i] += load(p + i * kLanes<T>);
  }
  TT_INLINE void add(const Lanes& o) {
#pragma GCC unroll 32
    for (int i = 0; i < kN; i++) v[i] += o.v[i];
  }
  // Folds halves until `parts` lanes are left (2 for complex numbers), which it writes to out.
  TT_INLINE void fold(T* out, int parts) const {
    alignas(64) T a[kBlockLanes];
#pragma GCC unroll 32
    for (int i = 0; i < kN; i++) store(a + i * kLanes<T>, v[i]);
    for (int n = kBlockLanes / 2; n >= kLanes<T> && n >= parts; n /= 2)
      for (int i = 0; i < n; i += kLanes<T>) store(a + i, Vec<T>(load(a + i) + load(a + n + i)));
    for (int n = kLanes<T> / 2; n >= parts; n /= 2)
      for (int i = 0; i < n; i++) a[i] += a[n + i];
    for (int i = 0; i < parts; i++) out[i] = a[i];
  }
};

// Adds p[0 … n) onto the lanes, element i to lane i mod 64, 1024 elements summed on their own at a time.
// A missing element of the last 64 adds zero.
template <class T>
TT_NOINLINE void add_run(Lanes<T>* acc, const T* p, int64_t n) {
  constexpr int64_t kGroup = 16 * kBlockLanes;
  int64_t i = 0;
  Lanes<T> high = *acc, low;
  for (; i + kGroup <= n; i += kGroup) {
    low.fill(0);
    for (int64_t k = 0; k < kGroup; k += kBlockLanes) low.add(p + i + k);
    high.add(low);
  }
  low.fill(0);
  for (; i + kBlockLanes <= n; i += kBlockLanes) low.add(p + i);
  if (i < n) {
    alignas(64) T tail[kBlockLanes] = {};
    for (int64_t k = 0; k < n - i; k++) {
      tail[k] = p[i + k];
      __asm__ volatile("");
    }
    low.add(tail);
  }
  high.add(low);
  *acc = high;
}

// Pairwise sum of a sequence of Lanes: block k meets block k ^ 1 first, as in a binary counter.
template <class T>
struct Cascade {
  static constexpr int kLevels = 40;
  int64_t count = 0;
  Lanes<T> level[kLevels];

  TT_NOINLINE void push(Lanes<T> a) {
    int i = 0;
    for (; count >> i & 1; i++) a.add(level[i]);
    level[i] = a;
    count++;
  }
  Lanes<T> total() const {
    Lanes<T> a;
    a.fill(0);
    for (int i = 0; count >> i; i++)
      if (count >> i & 1) a.add(level[i]);
    return a;
  }
};

TT_ISA_END
