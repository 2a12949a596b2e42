// Rows of at most 64 floats, which stay in AVX-512's registers. Their sums are those of Lanes, so
// that results do not depend on the path or the ISA.
#pragma once

#include "kernels/cpu/math/math.h"
#include "kernels/cpu/simd/virtual_lanes.h"

TT_ISA_BEGIN

constexpr int64_t kShortRow = kBlockLanes;

#if TT_VECTOR_MATH
// kN = 1, 2 or 4 vectors, of which the last ones may be partly or wholly empty.
template <int kVectors> struct ShortRow {
  static constexpr int kN = kVectors;
  __mmask16 part[kN];

  TT_INLINE explicit ShortRow(int64_t n) {
    const uint64_t bits = ~uint64_t(0) >> (64 - n);
    TT_UNROLL_BY(4)
    for (int k = 0; k < kN; k++) part[k] = __mmask16(bits >> 16 * k);
  }
  // Vector k of x; 0 after the row's end.
  TT_INLINE F32v get(const float* x, int k) const {
    return F32v(_mm512_maskz_loadu_ps(part[k], x + 16 * k));
  }
  TT_INLINE void put(float* y, int k, F32v v) const {
    _mm512_mask_storeu_ps(y + 16 * k, part[k], __m512(v));
  }
  TT_INLINE F32v within(int k, F32v v) const {
    return F32v(_mm512_maskz_mov_ps(part[k], __m512(v)));
  }
  // The largest element, at least -infinity; NaNs are skipped.
  TT_INLINE float largest(const F32v* v) const {
    const __m512 low = _mm512_set1_ps(-float(kInf));
    __m512 m = low;  // a NaN in the first operand gives the second
    TT_UNROLL_BY(4)
    for (int k = 0; k < kN; k++)
      m = _mm512_max_ps(_mm512_mask_mov_ps(low, part[k], __m512(v[k])), m);
    return _mm512_reduce_max_ps(m);
  }
};

// The lanes of a row whose sums are not yet folded.
template <int kN> TT_INLINE F32v add_vectors(const F32v* v) {
  const F32v zero = splat(0.0f);
  if constexpr (kN == 1) return zero + v[0];
  else if constexpr (kN == 2) return (zero + v[0]) + (zero + v[1]);
  else return ((zero + v[0]) + (zero + v[2])) + ((zero + v[1]) + (zero + v[3]));
}
template <int kN> TT_INLINE float total_of(const F32v* v) {
  float two[2];
  fold_lanes<float, 16>(add_vectors<kN>(v), two, [](auto x, auto y) { return x + y; });
  return two[0] + two[1];
}

// e = exp(v - top), 0 after the row's end, where *top is the largest element; a top of -inf counts
// as 0. Returns the sum of e.
template <int kN>
TT_INLINE float exponentials(const ShortRow<kN>& row, const F32v* v, float* top, F32v* e) {
  *top = row.largest(v);
  const F32v shift = splat(*top == kMinusInfinity<float> ? 0.0f : *top);
  TT_UNROLL_BY(4)
  for (int k = 0; k < kN; k++) e[k] = row.within(k, F32v(math::exp(__m512(v[k] - shift))));
  return total_of<kN>(e);
}

// Calls f with a ShortRow for n <= kShortRow elements.
template <class F> TT_INLINE void with_short_row(int64_t n, const F& f) {
  if (n <= 16) f(ShortRow<1>(n));
  else if (n <= 32) f(ShortRow<2>(n));
  else f(ShortRow<4>(n));
}

// Lane i is the folded sum of add(i), the unfolded lanes of row i, for 16 rows.
template <class F> TT_INLINE F32v fold_rows(const F& add) {
  const auto eights = [&](int i) TT_INLINE_BODY {  // rows i and i + 4
    const __m512 a = __m512(add(i));
    const __m512 b = __m512(add(i + 4));
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  };
  const auto fours = [&](int i) TT_INLINE_BODY {  // rows i, i + 4, i + 8 and i + 12
    const __m512 a = eights(i);
    const __m512 b = eights(i + 8);
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  };
  const auto twos = [&](int i) TT_INLINE_BODY {
    const __m512 a = fours(i);
    const __m512 b = fours(i + 1);
    const __m512 low = _mm512_shuffle_ps(a, b, 0x44);
    return _mm512_add_ps(low, _mm512_shuffle_ps(a, b, 0xee));
  };
  const __m512 a = twos(0);
  const __m512 b = twos(2);
  return F32v(_mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd)));
}
#endif

TT_ISA_END
