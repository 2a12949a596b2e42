// Vectors of elements at indices, and whole numbers beside a vector's. TT_GATHERS: 1 where the
// instruction set has them.
#pragma once

#include "kernels/cpu/simd/vec.h"

#if defined(__AVX2__)
#define TT_GATHERS 1

TT_ISA_BEGIN

#if defined(__AVX512F__)
TT_INLINE Vec<float> floor_of(Vec<float> x) {
  return Vec<float>(_mm512_roundscale_ps(__m512(x), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
}
// Halves to even.
TT_INLINE Vec<float> nearest_to(Vec<float> x) {
  return Vec<float>(_mm512_roundscale_ps(__m512(x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
// Elements of x, 0 where the index is negative.
TT_INLINE Vec<float> gathered(const float* x, Vec<int32_t> at) {
  const __mmask16 inside = ~_mm512_movepi32_mask(__m512i(at));
  return Vec<float>(_mm512_mask_i32gather_ps(__m512(), inside, __m512i(at), x, 4));
}
#else
TT_INLINE Vec<float> floor_of(Vec<float> x) { return Vec<float>(_mm256_floor_ps(__m256(x))); }
TT_INLINE Vec<float> nearest_to(Vec<float> x) {
  return Vec<float>(_mm256_round_ps(__m256(x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
TT_INLINE Vec<float> gathered(const float* x, Vec<int32_t> at) {
  const __m256 inside = __m256(at >= 0);
  return Vec<float>(_mm256_mask_i32gather_ps(__m256(), x, __m256i(at), inside, 4));
}
#endif

TT_ISA_END

#else
#define TT_GATHERS 0
#endif
