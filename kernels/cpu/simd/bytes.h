// Loads of kLanes<int32_t> bytes as integers: load_i8 of signed ones, load_u8 of unsigned ones.
// byte_bits(p): 32 bytes, of which byte i is bit i of the four bytes at p.
// byte_entries(table, v): of a table of 16 bytes the entry for each of 32 bytes below 16.
// low_nibbles(v, scale): the low four bits of each lane, less 8, times scale.
// If TT_NIBBLE_DOT, products of numbers below 16 and signed bytes, four of them to a lane:
//   load_quads(p)                  runs of 16 bytes, kQuadStep apart: four lanes each
//   dot_nibbles(sum, a, s, b, t)   adds those of a and s, and of b and t
//   spread_quads<g>(v)             lane l is lane kLanes / 4 * g + l / 4 of v
// If TT_NIBBLE_PAIRS, the last one is replaced by those for eight runs, each behind a float16:
//   add_pairs(sum, a, b, factor)   lanes 4 i, 4 i + 1: adds the sums of lanes 4 i and 4 i + 1,
//                                  4 i + 2 and 4 i + 3 of a, times factor; the next two: of b
//   load_pair_scales(p)            lanes 4 i, 4 i + 1: the float16 of run i; the next two: of 4 + i
// and there are functions of 64 bytes:
//   load_twice(p)                  the 32 bytes at p, twice
//   load_two(p, q)                 the 16 bytes at p twice, then those at q twice
//   add_where(v, bits, x)          adds x to byte i if bit i is set
//   byte_entries(table, v)         as above
//   eight_bytes(v)                 bytes as eight integers
//   sixteen_bytes(low, high)       bytes as integers
//   eight_halves(low, high)        words as eight float16
//   spread_eight(v)                lanes 2 i and 2 i + 1 are lane i of v
#pragma once

#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

#if defined(__AVX512F__)

TT_INLINE Vec<int32_t> load_i8(const char* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return Vec<int32_t>(_mm512_maskz_cvtepi8_epi32(0xffff, bytes));
}
TT_INLINE Vec<int32_t> load_u8(const char* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return Vec<int32_t>(_mm512_maskz_cvtepu8_epi32(0xffff, bytes));
}
// The bits of a lane select one of the 16 numbers that there are.
TT_INLINE Vec<float> low_nibbles(Vec<int32_t> v, Vec<float> scale) {
  const Vec<float> steps = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
  return Vec<float>(_mm512_maskz_permutexvar_ps(0xffff, __m512i(v), __m512(steps * scale)));
}

#elif defined(__AVX2__)

TT_INLINE Vec<int32_t> load_i8(const char* p) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return Vec<int32_t>(_mm256_cvtepi8_epi32(bytes));
}
TT_INLINE Vec<int32_t> load_u8(const char* p) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return Vec<int32_t>(_mm256_cvtepu8_epi32(bytes));
}

#elif TT_SSE2

TT_INLINE __m128i four_bytes(const char* p) {
  int32_t bytes;
  memcpy(&bytes, p, sizeof bytes);
  return _mm_cvtsi32_si128(bytes);
}
TT_INLINE Vec<int32_t> load_i8(const char* p) {
  const __m128i bytes = four_bytes(p);
  const __m128i words = _mm_unpacklo_epi8(bytes, bytes);
  return Vec<int32_t>(_mm_srai_epi32(_mm_unpacklo_epi16(words, words), 24));
}
TT_INLINE Vec<int32_t> load_u8(const char* p) {
  const __m128i words = _mm_unpacklo_epi8(four_bytes(p), _mm_setzero_si128());
  return Vec<int32_t>(_mm_unpacklo_epi16(words, _mm_setzero_si128()));
}

#elif TT_SVE

TT_INLINE Vec<int32_t> load_i8(const char* p) {
  return svld1sb_s32(svptrue_b32(), reinterpret_cast<const int8_t*>(p));
}
TT_INLINE Vec<int32_t> load_u8(const char* p) {
  return svreinterpret_s32_u32(svld1ub_u32(svptrue_b32(), reinterpret_cast<const uint8_t*>(p)));
}

#elif defined(__aarch64__)

TT_INLINE Vec<int32_t> load_i8(const char* p) {
  uint32_t bytes;
  memcpy(&bytes, p, sizeof bytes);
  const int16x8_t words = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(bytes)));
  return Vec<int32_t>(vmovl_s16(vget_low_s16(words)));
}
TT_INLINE Vec<int32_t> load_u8(const char* p) {
  uint32_t bytes;
  memcpy(&bytes, p, sizeof bytes);
  const uint16x8_t words = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(bytes)));
  return Vec<int32_t>(vmovl_u16(vget_low_u16(words)));
}

#else

TT_INLINE Vec<int32_t> load_i8(const char* p) {
  Vec<int32_t> v{};
  for (int i = 0; i < kLanes<int32_t>; i++) v[i] = int8_t(p[i]);
  return v;
}
TT_INLINE Vec<int32_t> load_u8(const char* p) {
  Vec<int32_t> v{};
  for (int i = 0; i < kLanes<int32_t>; i++) v[i] = uint8_t(p[i]);
  return v;
}

#endif

TT_INLINE Vector<uint64_t, 4> byte_bits(const char* p) {
#if defined(__AVX512BW__)
  uint32_t bits;
  memcpy(&bits, p, sizeof bits);
  return Vector<uint64_t, 4>(_mm256_maskz_set1_epi8(bits, 1));
#else
  constexpr uint64_t kEachByte = 0x0101010101010101u;
  uint64_t v[4];
  for (int i = 0; i < 4; i++) {
    const uint64_t alone = uint8_t(p[i]) * kEachByte & 0x8040201008040201u;
    v[i] = (alone + 127 * kEachByte) >> 7 & kEachByte;
  }
  return Vector<uint64_t, 4>{v[0], v[1], v[2], v[3]};
#endif
}

TT_INLINE Vector<uint64_t, 4> byte_entries(Vector<uint64_t, 2> table, Vector<uint64_t, 4> v) {
#if defined(__AVX2__)
  const __m256i twice = _mm256_broadcastsi128_si256(__m128i(table));
  return Vector<uint64_t, 4>(_mm256_shuffle_epi8(twice, __m256i(v)));
#elif defined(__aarch64__)
  uint8x16_t entries;
  uint8x16x2_t index;
  memcpy(&entries, &table, sizeof entries);
  memcpy(&index, &v, sizeof index);
  index.val[0] = vqtbl1q_u8(entries, index.val[0]);
  index.val[1] = vqtbl1q_u8(entries, index.val[1]);
  memcpy(&v, &index, sizeof index);
  return v;
#else
  uint8_t entries[16];
  uint8_t index[32];
  memcpy(entries, &table, sizeof entries);
  memcpy(index, &v, sizeof index);
  for (uint8_t& i : index) i = entries[i];
  memcpy(&v, index, sizeof index);
  return v;
#endif
}

constexpr int64_t kQuadStep = 18;

#if defined(__AVX512VNNI__)

#define TT_NIBBLE_DOT 1
#define TT_NIBBLE_PAIRS 1
TT_INLINE Vec<int32_t> load_quads(const char* p) {
  const auto at = [&](int64_t i) TT_INLINE_BODY {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i * kQuadStep));
  };
  const __m256i first = _mm256_inserti128_si256(_mm256_castsi128_si256(at(0)), at(1), 1);
  const __m256i second = _mm256_inserti128_si256(_mm256_castsi128_si256(at(2)), at(3), 1);
  return Vec<int32_t>(_mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1));
}
TT_INLINE Vec<int32_t> dot_nibbles(Vec<int32_t> sum, Vec<int32_t> a, Vec<int32_t> s, Vec<int32_t> b,
                                   Vec<int32_t> t) {
  return dot_bytes(dot_bytes(sum, a, s), b, t);
}
// Lanes and the factor must fit in words.
TT_INLINE Vec<int32_t> add_pairs(Vec<int32_t> sum, Vec<int32_t> a, Vec<int32_t> b, int16_t factor) {
  const __m512i words = _mm512_packs_epi32(__m512i(a), __m512i(b));
  return Vec<int32_t>(_mm512_dpwssd_epi32(__m512i(sum), words, _mm512_set1_epi16(factor)));
}
TT_INLINE Vec<float> load_pair_scales(const char* p) {
  // Runs are nine words apart, and 32 + i is word i of the second four.
  const __m512i words =
      _mm512_set_epi16(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
                       59, 59, 27, 27, 50, 50, 18, 18, 41, 41, 9, 9, 32, 32, 0, 0);
  const __m512i first = _mm512_loadu_si512(p);
  const __m512i second = _mm512_loadu_si512(p + 4 * kQuadStep);
  const __m512i halves = _mm512_permutex2var_epi16(first, words, second);
  return Vec<float>(_mm512_maskz_cvtph_ps(0xffff, _mm512_castsi512_si256(halves)));
}
TT_INLINE Vec<uint64_t> load_twice(const char* p) {
  const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return Vec<uint64_t>(_mm512_maskz_broadcast_i64x4(0xff, v));
}
TT_INLINE Vec<uint64_t> load_two(const char* p, const char* q) {
  const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
  const __m512i v = _mm512_maskz_broadcast_i32x4(0xffff, first);
  return Vec<uint64_t>(_mm512_mask_broadcast_i32x4(v, 0xff00, second));
}
TT_INLINE Vec<uint64_t> add_where(Vec<uint64_t> v, uint64_t bits, int8_t x) {
  return Vec<uint64_t>(_mm512_mask_add_epi8(__m512i(v), bits, __m512i(v), _mm512_set1_epi8(x)));
}
TT_INLINE Vec<uint64_t> byte_entries(Vector<uint64_t, 2> table, Vec<uint64_t> v) {
  const __m512i each = _mm512_maskz_broadcast_i32x4(0xffff, __m128i(table));
  return Vec<uint64_t>(_mm512_shuffle_epi8(each, __m512i(v)));
}
TT_INLINE Vector<int32_t, 8> eight_bytes(uint64_t v) {
  return Vector<int32_t, 8>(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(int64_t(v))));
}
TT_INLINE Vec<int32_t> sixteen_bytes(uint64_t low, uint64_t high) {
  const __m128i bytes = _mm_set_epi64x(int64_t(high), int64_t(low));
  return Vec<int32_t>(_mm512_maskz_cvtepu8_epi32(0xffff, bytes));
}
TT_INLINE Vector<float, 8> eight_halves(uint64_t low, uint64_t high) {
  return Vector<float, 8>(_mm256_cvtph_ps(_mm_set_epi64x(int64_t(high), int64_t(low))));
}
TT_INLINE Vec<float> spread_eight(Vector<float, 8> v) {
  const __m512i lane = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
  return Vec<float>(_mm512_maskz_permutexvar_ps(0xffff, lane, _mm512_castps256_ps512(__m256(v))));
}

#elif defined(__AVX2__) && !defined(__AVX512F__)

#define TT_NIBBLE_DOT 1
TT_INLINE Vec<int32_t> load_quads(const char* p) {
  const auto at = [&](int64_t i) TT_INLINE_BODY {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i * kQuadStep));
  };
  return Vec<int32_t>(_mm256_inserti128_si256(_mm256_castsi128_si256(at(0)), at(1), 1));
}
// Sums of four products of 15 and 128 fit in words.
TT_INLINE Vec<int32_t> dot_nibbles(Vec<int32_t> sum, Vec<int32_t> a, Vec<int32_t> s, Vec<int32_t> b,
                                   Vec<int32_t> t) {
  const __m256i first = _mm256_maddubs_epi16(__m256i(a), __m256i(s));
  const __m256i second = _mm256_maddubs_epi16(__m256i(b), __m256i(t));
  const __m256i words = _mm256_add_epi16(first, second);
  return sum + Vec<int32_t>(_mm256_madd_epi16(words, _mm256_set1_epi16(1)));
}
template <int g> TT_INLINE Vec<float> spread_quads(Vec<float> v) {
  constexpr int i = 2 * g;
  return shuffled<i, i, i, i, i + 1, i + 1, i + 1, i + 1>(v, v);
}

#elif defined(__aarch64__) && TT_BYTE_DOT && !TT_SVE

#define TT_NIBBLE_DOT 1
TT_INLINE Vec<int32_t> load_quads(const char* p) {
  return Vec<int32_t>(vld1q_u8(reinterpret_cast<const uint8_t*>(p)));
}
TT_INLINE Vec<int32_t> dot_nibbles(Vec<int32_t> sum, Vec<int32_t> a, Vec<int32_t> s, Vec<int32_t> b,
                                   Vec<int32_t> t) {
  const int32x4_t first = vdotq_s32(int32x4_t(sum), int8x16_t(a), int8x16_t(s));
  return Vec<int32_t>(vdotq_s32(first, int8x16_t(b), int8x16_t(t)));
}
template <int g> TT_INLINE Vec<float> spread_quads(Vec<float> v) {
  return shuffled<g, g, g, g>(v, v);
}

#else
#define TT_NIBBLE_DOT 0
#endif
#ifndef TT_NIBBLE_PAIRS
#define TT_NIBBLE_PAIRS 0
#endif

#if !defined(__AVX512F__)
TT_INLINE Vec<float> low_nibbles(Vec<int32_t> v, Vec<float> scale) {
  return converted<Vec<float>>((v & 15) - 8) * scale;
}
#endif

TT_ISA_END
