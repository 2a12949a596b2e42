// Steps of folds, and the largest or smallest of a run of floats at the speed of memory.
#pragma once

#include "cpu/reduce_load.h"
#include "cpu/reduce_vec.h"

TT_ISA_BEGIN

#if defined(__AVX512F__)
using NanMask = uint32_t;
TT_INLINE NanMask unordered(F32v a, F32v b) { return _mm512_cmp_ps_mask(__m512(a), __m512(b), _CMP_UNORD_Q); }
TT_INLINE bool any(NanMask m) { return m != 0; }
#elif defined(__AVX2__)
using NanMask = I32v;
TT_INLINE NanMask unordered(F32v a, F32v b) { return I32v(_mm256_cmp_ps(__m256(a), __m256(b), _CMP_UNORD_Q)); }
TT_INLINE bool any(NanMask m) { return _mm256_movemask_ps(__m256(m)) != 0; }
#elif defined(__SSE2__)
using NanMask = I32v;
TT_INLINE NanMask unordered(F32v a, F32v b) { return I32v(_mm_cmpunord_ps(__m128(a), __m128(b))); }
TT_INLINE bool any(NanMask m) { return _mm_movemask_ps(__m128(m)) != 0; }
#else
using NanMask = I32v;
TT_INLINE NanMask unordered(F32v a, F32v b) { return (a != a) | (b != b); }
TT_INLINE bool any(NanMask m) {
  int32_t r = 0;
  for (int i = 0; i < kLanes<float>; i++) r |= m[i];
  return r != 0;
}
#endif

template <bool kMax>
TT_INLINE F32v pick(F32v x, F32v m) {
  if constexpr (kMax) return vmax(x, m);
  else return vmin(x, m);
}

// Largest (smallest) of x[0 … n) and start; NaN if some x is NaN and kNan, else NaNs are passed over.
// Of equal zeros of both signs the one that 64 lanes meet first comes out, on every ISA the same.
template <bool kMax, bool kNan>
TT_NOINLINE float extreme(const float* x, int64_t n, float start) {
  constexpr int L = kLanes<float>, N = kBlockLanes / L;
  alignas(64) float lane[kBlockLanes];
  NanMask nan = unordered(F32v{}, F32v{});
  F32v m[N];
#pragma GCC unroll 16
  for (int k = 0; k < N; k++) m[k] = splat(start);
  int64_t i = 0;
  for (; i + kBlockLanes <= n; i += kBlockLanes) {
#pragma GCC unroll 8
    for (int k = 0; k < N; k += 2) {
      const F32v a = load(x + i + k * L), b = load(x + i + (k + 1) * L);
      m[k] = pick<kMax>(a, m[k]), m[k + 1] = pick<kMax>(b, m[k + 1]);
      if constexpr (kNan) nan |= unordered(a, b);
    }
  }
  if (i < n) {
    for (int64_t l = 0; l < kBlockLanes; l++) {
      lane[l] = l < n - i ? x[i + l] : start;
      TT_SCALAR_LOOP;
    }
#pragma GCC unroll 16
    for (int k = 0; k < N; k++) {
      const F32v a = load(lane + k * L);
      m[k] = pick<kMax>(a, m[k]);
      if constexpr (kNan) nan |= unordered(a, a);
    }
  }
#pragma GCC unroll 8
  for (int h = N / 2; h; h /= 2) {
#pragma GCC unroll 16
    for (int k = 0; k < h; k++) m[k] = pick<kMax>(m[k + h], m[k]);
  }
  float two[2];
  fold_lanes<float, L>(m[0], two, [](auto low, auto high) { return (kMax ? high > low : high < low) ? high : low; });
  const float r = (kMax ? two[1] > two[0] : two[1] < two[0]) ? two[1] : two[0];
  return kNan && any(nan) ? __builtin_nanf("") : r;
}

// Steps: T identity(), T step(T accumulated, T x).
template <class E>
constexpr E kLowest = E(E(1) << (8 * sizeof(E) - 1));
template <>
constexpr float kLowest<float> = -__builtin_inff();
template <>
constexpr double kLowest<double> = -__builtin_inf();
template <class E>
constexpr E kHighest = E(~kLowest<E>);
template <>
constexpr float kHighest<float> = __builtin_inff();
template <>
constexpr double kHighest<double> = __builtin_inf();

// A NaN is taken and, since no comparison with it holds, kept.
template <class E>
struct Max {
  using T = E;
  static TT_INLINE T identity() { return kLowest<E>; }
  static TT_INLINE T step(T a, T x) { return ((x > a) | (x != x)) ? x : a; }
};
template <class E>
struct Min {
  using T = E;
  static TT_INLINE T identity() { return kHighest<E>; }
  static TT_INLINE T step(T a, T x) { return ((x < a) | (x != x)) ? x : a; }
};
template <bool kMax, class E>
struct PickStep {
  using type = Max<E>;
};
template <class E>
struct PickStep<false, E> {
  using type = Min<E>;
};

// Steps element i of a block into lane i mod the width. Its callers fold the lanes in order.
template <class S, int kWidth>
TT_NOINLINE void step_lanes(typename S::T* __restrict lane, const typename S::T* x, int64_t n) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth)
    for (int l = 0; l < kWidth; l++) lane[l] = S::step(lane[l], x[i + l]);
  for (int l = 0; i < n; i++, l++) {
    lane[l] = S::step(lane[l], x[i]);
    TT_SCALAR_LOOP;
  }
}

TT_ISA_END
