// Tiles of AMX: eight registers of 16 rows of 64 bytes. Instructions are written for the assembler,
// so every compiler of x86-64 builds them without a flag; they run only if has_amx_products().
//
//   tile   a: [16][16] groups of a row     b: [16] groups [16] columns     c: [16][16] f32 or i32
//          a group is 4 bytes along k: two bf16 or four bytes
//
// Block of a product, 32 by 32: sums in tiles 0 to 3, rows in 4 and 5, columns in 6 and 7.
#pragma once

#include "kernels/cpu/simd/intrinsics.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/simd/vec.h"

#if defined(__AVX512BW__) && defined(__x86_64__)
#define TT_AMX 1
#else
#define TT_AMX 0
#endif

#if TT_AMX

TT_ISA_BEGIN

constexpr int kAmxRows = 16;
constexpr int kAmxRowBytes = 64;
constexpr int kAmxTileBytes = kAmxRows * kAmxRowBytes;
constexpr int kAmxBlock = 2 * kAmxRows;  // rows and columns of a block

// All tiles whole, from construction to destruction.
class AmxTiles {
 public:
  TT_INLINE AmxTiles() { __asm__ volatile("ldtilecfg %0" : : "m"(kWhole)); }
  TT_INLINE ~AmxTiles() { __asm__ volatile("tilerelease"); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

 private:
  struct Config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  };
  static constexpr Config kWhole = {
      1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
};

template <int kTile> TT_INLINE void amx_load(const void* p, int64_t row_bytes) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2"
                   :
                   : "r"(p), "r"(row_bytes), "i"(kTile)
                   : "memory");
}
// The same for what is read once: the first-level cache keeps the rest.
template <int kTile> TT_INLINE void amx_load_once(const void* p, int64_t row_bytes) {
  __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm%c2"
                   :
                   : "r"(p), "r"(row_bytes), "i"(kTile)
                   : "memory");
}
template <int kTile> TT_INLINE void amx_store(void* p, int64_t row_bytes) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)"
                   :
                   : "r"(p), "r"(row_bytes), "i"(kTile)
                   : "memory");
}
template <int kTile> TT_INLINE void amx_zero() {
  __asm__ volatile("tilezero %%tmm%c0" : : "i"(kTile));
}

// The upper words of 16 lanes, then those of 16 more: a row of bf16 from floats.
TT_INLINE Vec<int32_t> upper_words(Vec<int32_t> first, Vec<int32_t> second) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i words = _mm512_add_epi32(_mm512_mullo_epi32(lane, _mm512_set1_epi32(0x40004)),
                                         _mm512_set1_epi32(0x30001));
  return Vec<int32_t>(_mm512_permutex2var_epi16(__m512i(first), words, __m512i(second)));
}

// Stores the first n <= 32 words.
TT_INLINE void store_words(void* p, Vec<int32_t> v, int n) {
  _mm512_mask_storeu_epi16(p, n < 32 ? (1u << n) - 1 : ~0u, __m512i(v));
}
// The lower or the upper 16 words, as upper halves of floats.
TT_INLINE Vec<float> floats_of_words(Vec<int32_t> words, bool upper) {
  const __m256i half =
      upper ? _mm512_extracti64x4_epi64(__m512i(words), 1) : _mm512_castsi512_si256(__m512i(words));
  return Vec<float>(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}
// 32 bf16, rounded to nearest: those of `low`, then those of `high`. Subnormal numbers become 0.
// The instruction is one of AVX512_BF16, which processors with tiles have.
TT_INLINE Vec<int32_t> narrow_two(Vec<float> low, Vec<float> high) {
  Vec<int32_t> out;
  __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(out) : "v"(low), "v"(high));
  return out;
}
// 16 pairs of bf16: a lane of `even` and one of `odd` each.
TT_INLINE Vec<int32_t> narrow_pairs(Vec<float> even, Vec<float> odd) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i words =
      _mm512_or_si512(lane, _mm512_slli_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(16)), 16));
  return Vec<int32_t>(_mm512_permutexvar_epi16(words, __m512i(narrow_two(even, odd))));
}
// 32 words of 16 bits in the order of store_zipped_quads(): quads i and i + 4 in 128 bits.
TT_INLINE Vec<int32_t> quads_of_words(const void* p) {
  const __m512i quads = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
  return Vec<int32_t>(_mm512_permutexvar_epi64(quads, _mm512_loadu_si512(p)));
}
TT_INLINE void store_zipped_quads(Vec<int32_t> even, Vec<int32_t> odd, void* first, void* last) {
  _mm512_storeu_si512(first, _mm512_unpacklo_epi16(__m512i(even), __m512i(odd)));
  _mm512_storeu_si512(last, _mm512_unpackhi_epi16(__m512i(even), __m512i(odd)));
}
// Stores pairs of words of 16 bits, one of `even` and one of `odd` each: those of the first 16
// words at `first`, those of the other 16 at `last`.
TT_INLINE void store_zipped(const void* even, const void* odd, void* first, void* last) {
  store_zipped_quads(quads_of_words(even), quads_of_words(odd), first, last);
}
// x, but at some lanes the words of y that `from` numbers.
TT_INLINE Vec<int32_t> words_at(Vec<int32_t> x, uint32_t lanes, Vec<int32_t> from, Vec<int32_t> y) {
  return Vec<int32_t>(_mm512_mask_permutexvar_epi16(__m512i(x), lanes, __m512i(from), __m512i(y)));
}
// The larger magnitudes of words of bf16, and whether those are finite.
TT_INLINE Vec<int32_t> larger_magnitudes(Vec<int32_t> seen, Vec<int32_t> words) {
  return Vec<int32_t>(_mm512_max_epu16(__m512i(seen), __m512i(words & 0x7fff7fff)));
}
TT_INLINE bool words_are_finite(Vec<int32_t> seen) {
  return _mm512_cmpge_epu16_mask(__m512i(seen), _mm512_set1_epi16(0x7f80)) == 0;
}
// Whether a lane of x is not equal to that of y.
TT_INLINE bool any_differs(Vec<float> x, Vec<float> y) {
  return _mm512_cmp_ps_mask(__m512(x), __m512(y), _CMP_NEQ_UQ) != 0;
}

// Adds the products of a tile of rows and a tile of columns to a tile of sums.
struct AmxBf16 {  // f32 sums; subnormals are 0
  template <int kSum, int kRow, int kCol> static TT_INLINE void add() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kRow), "i"(kCol));
  }
};
struct AmxSigned {  // rows and columns of int8
  template <int kSum, int kRow, int kCol> static TT_INLINE void add() {
    __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kRow), "i"(kCol));
  }
};
struct AmxUnsignedSigned {  // rows of uint8, columns of int8
  template <int kSum, int kRow, int kCol> static TT_INLINE void add() {
    __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kRow), "i"(kCol));
  }
};
struct AmxSignedUnsigned {  // rows of int8, columns of uint8
  template <int kSum, int kRow, int kCol> static TT_INLINE void add() {
    __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kRow), "i"(kCol));
  }
};

struct AmxOperands {
  int64_t steps;  // tiles along k
  const void* a;  // two tiles of rows: a_row bytes from row to row, a_tile to the second tile,
  int64_t a_row, a_tile, a_step;  // a_step to the next position
  const void* b;                  // columns likewise
  int64_t b_row, b_tile, b_step;
  void* out;  // sums, out_row bytes from row to row
  int64_t out_row;
  bool add;                      // out = addend + a·b, else out = a·b
  const void* addend = nullptr;  // sums, addend_row bytes from row to row; NULL: out
  int64_t addend_row = 0;
  char* copy = nullptr;  // of kAmxCopiesA: the tiles of a are stored here one after the other
};

// What amx_block() is told about its operands.
enum AmxHint : int {
  kAmxPlain = 0,
  kAmxStreamsB = 1,  // b comes from the second-level cache, and a stays in the first
  kAmxCopiesA = 2,
};

// What else amx_block() does at each step: prefetches, of which there is room for a few.
struct AmxNothingElse {
  TT_INLINE void step() {}
};

// kHigh, kWide: 2 or 1 tiles of rows and of columns.
template <class Products, int kHigh, int kWide, int kHints, class Else>
TT_INLINE void amx_block(const AmxOperands& o, Else& other) {
  char* const out = static_cast<char*>(o.out);
  char* const lower = out + kAmxRows * o.out_row;
  if (o.add) {
    const char* const from = o.addend ? static_cast<const char*>(o.addend) : out;
    const int64_t row = o.addend ? o.addend_row : o.out_row;
    const char* const from_lower = from + kAmxRows * row;
    amx_load<0>(from, row);
    if (kWide > 1) amx_load<1>(from + kAmxRowBytes, row);
    if (kHigh > 1) amx_load<2>(from_lower, row);
    if (kHigh > 1 && kWide > 1) amx_load<3>(from_lower + kAmxRowBytes, row);
  } else {
    amx_zero<0>();
    if (kWide > 1) amx_zero<1>();
    if (kHigh > 1) amx_zero<2>();
    if (kHigh > 1 && kWide > 1) amx_zero<3>();
  }
  const char* a = static_cast<const char*>(o.a);
  const char* b = static_cast<const char*>(o.b);
  char* copy = o.copy;
  constexpr bool kOnce = (kHints & kAmxStreamsB) != 0;
  for (int64_t s = o.steps; s > 0; s--, a += o.a_step, b += o.b_step) {
    if constexpr (kOnce) amx_load_once<6>(b, o.b_row);
    else amx_load<6>(b, o.b_row);
    amx_load<4>(a, o.a_row);
    Products::template add<0, 4, 6>();
    if constexpr (kWide > 1) {
      if constexpr (kOnce) amx_load_once<7>(b + o.b_tile, o.b_row);
      else amx_load<7>(b + o.b_tile, o.b_row);
      Products::template add<1, 4, 7>();
    }
    if constexpr (kHigh > 1) {
      amx_load<5>(a + o.a_tile, o.a_row);
      Products::template add<2, 5, 6>();
      if constexpr (kWide > 1) Products::template add<3, 5, 7>();
    }
    if constexpr ((kHints & kAmxCopiesA) != 0) {
      amx_store<4>(copy, kAmxRowBytes);
      if constexpr (kHigh > 1) amx_store<5>(copy + kAmxTileBytes, kAmxRowBytes);
      copy += 2 * kAmxTileBytes;
    }
    other.step();
  }
  amx_store<0>(out, o.out_row);
  if (kWide > 1) amx_store<1>(out + kAmxRowBytes, o.out_row);
  if (kHigh > 1) amx_store<2>(lower, o.out_row);
  if (kHigh > 1 && kWide > 1) amx_store<3>(lower + kAmxRowBytes, o.out_row);
}

template <class Products, int kHints = kAmxPlain, class Else>
TT_INLINE void amx_block(const AmxOperands& o, bool high, bool wide, Else& other) {
  if (high && wide) amx_block<Products, 2, 2, kHints>(o, other);
  else if (high) amx_block<Products, 2, 1, kHints>(o, other);
  else if (wide) amx_block<Products, 1, 2, kHints>(o, other);
  else amx_block<Products, 1, 1, kHints>(o, other);
}
template <class Products> TT_INLINE void amx_block(const AmxOperands& o, bool high, bool wide) {
  AmxNothingElse nothing;
  amx_block<Products, kAmxPlain>(o, high, wide, nothing);
}

TT_ISA_END

#endif
