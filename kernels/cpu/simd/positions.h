// Positions of indices in a range, four at a time: if kFindsPositions.
#pragma once

#include "kernels/cpu/simd/intrinsics.h"
#include "kernels/cpu/simd/isa.h"

TT_ISA_BEGIN

#if TT_VEC_BYTES > 16 && !TT_SVE
constexpr bool kFindsPositions = true;

// Bit k is set if index[k], to which size is added where it is negative, is in [low, low + n).
TT_INLINE uint32_t held_of_four(const int64_t* index, int64_t low, int64_t n, int64_t size) {
  const __m256i from = _mm256_set1_epi64x(low);
  const __m256i to = _mm256_set1_epi64x(low + n);
  const __m256i i = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(index));
  const __m256i negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), i);
  const __m256i v = _mm256_add_epi64(i, _mm256_and_si256(_mm256_set1_epi64x(size), negative));
  const __m256i held = _mm256_andnot_si256(_mm256_cmpgt_epi64(from, v), _mm256_cmpgt_epi64(to, v));
  return uint32_t(_mm256_movemask_pd(_mm256_castsi256_pd(held)));
}

// Stores k + p for the set bits p of a number of four bits, in order; at has room for 4.
TT_INLINE void store_positions(int32_t* at, uint32_t bits, int32_t k) {
  // The positions of the set bits of 0 … 15, one per byte.
  static constexpr uint32_t kBits[16] = {0,     0,       1,       0x100,    2,     0x200,
                                         0x201, 0x20100, 3,       0x300,    0x301, 0x30100,
                                         0x302, 0x30200, 0x30201, 0x3020100};
  const __m128i places = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(int(kBits[bits])));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(at), _mm_add_epi32(places, _mm_set1_epi32(k)));
}
#else
constexpr bool kFindsPositions = false;
TT_INLINE uint32_t held_of_four(const int64_t*, int64_t, int64_t, int64_t) { return 0; }
TT_INLINE void store_positions(int32_t*, uint32_t, int32_t) {}
#endif

TT_ISA_END
