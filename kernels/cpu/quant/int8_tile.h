// Tiles of products of 8-bit integers: kRows rows of packed a times a panel of packed b.
//   a: [rows][quads][4] int8      b: [quads][kInt8Panel][4] uint8
// A lane of an accumulator is a column; a quad of a is broadcast to all lanes.
#pragma once

#include "kernels/cpu/quant/int8.h"
#include "kernels/cpu/simd/amx.h"
#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

using Ints32 = Vec<int32_t>;
constexpr int kInt8Lanes = kLanes<int32_t>;
constexpr int kInt8Vectors = int(kInt8Panel) / kInt8Lanes;

TT_INLINE int32_t quad_at(const int8_t* a) {
  int32_t quad;
  memcpy(&quad, a, sizeof quad);
  return quad;
}

// Adds to each lane the sum of four products of bytes, u unsigned and s signed; with kLowersB, of
// u - 128. Exact: pairs are multiplied as words, so that nothing saturates.
struct DotByWords {
  static constexpr bool kLowersB = false;
  Ints32 even, odd;  // bytes 0 and 2, 1 and 3 of a quad, as words
  TT_INLINE explicit DotByWords(const int8_t* a) {
    const int32_t quad = quad_at(a);
    const int32_t low = int32_t(uint32_t(quad) << 8);
    const uint32_t words = 0xff00ff00u;
    // Bytes move to the high half of their words, then an arithmetic shift extends the sign.
    even = shift_words(splat(int32_t(uint32_t(low) & words)));
    odd = shift_words(splat(int32_t(uint32_t(quad) & words)));
  }
  static TT_INLINE Ints32 shift_words(Ints32 v) {
    using Words = Vec<int16_t>;
    return Ints32(Words(v) >> 8);
  }
  TT_INLINE Ints32 add(Ints32 sum, Ints32 u) const {
    const Ints32 mask = splat(int32_t(0x00ff00ff));
    using Unsigned = Vec<uint32_t>;
    const Ints32 high = Ints32(Unsigned(u) >> 8) & mask;
    return sum + dot_words(u & mask, even) + dot_words(high, odd);
  }
};

// sums[r][j] of kRows rows.
template <class Dot, int kRows> TT_INLINE void int8_tile(const int8_t* a, int64_t a_row,
                                                         const uint8_t* b, int64_t quads,
                                                         int32_t* sums) {
  Ints32 acc[kRows][kInt8Vectors] = {};
  for (int64_t q = 0; q < quads; q++, b += kInt8Panel * 4) {
    Ints32 u[kInt8Vectors];
    TT_UNROLL
    for (int v = 0; v < kInt8Vectors; v++)
      u[v] = load(reinterpret_cast<const int32_t*>(b) + v * kInt8Lanes);
    TT_UNROLL
    for (int r = 0; r < kRows; r++) {
      const Dot dot(a + r * a_row + q * 4);
      TT_UNROLL
      for (int v = 0; v < kInt8Vectors; v++) acc[r][v] = dot.add(acc[r][v], u[v]);
    }
  }
  TT_UNROLL
  for (int r = 0; r < kRows; r++)
    for (int v = 0; v < kInt8Vectors; v++) store(sums + r * kInt8Panel + v * kInt8Lanes, acc[r][v]);
}

// Whether bytes of b are multiplied by tiles where they are, signed or not.
TT_INLINE bool has_tile_columns(const Int8Plan& p) { return TT_AMX && p.amx && p.straight; }

// The numbers that complete the sums of a panel's columns. Columns from `width` on are not stored.
struct Int8Columns {
  alignas(64) uint32_t offset[kInt8Panel];  // b + offset is unsigned
  alignas(64) uint32_t sum[kInt8Panel];
  alignas(64) float scale[kInt8Panel];
  alignas(64) float bias[kInt8Panel];

  Int8Columns() = default;
  TT_INLINE Int8Columns(const Int8Plan& p, int64_t j0, int64_t width) {
    const uint32_t shift = p.b_unsigned || has_tile_columns(p) ? 0 : 128;
    for (int64_t c = 0; c < kInt8Panel; c++) {
      const int64_t j = j0 + (c < width ? c : 0);
      const uint32_t zero = p.b_zero ? uint32_t(p.b_zero[j * p.b_zero_step]) : 0;
      offset[c] = shift + zero;
      sum[c] = uint32_t(p.b_sum[j0 + c]);
      scale[c] = p.a_scale ? p.b_scale[j * p.b_scale_step] : 0;
      bias[c] = p.bias && p.bias_col ? p.bias[j * p.bias_col] : 0;
    }
  }
};

// Completes the sums of row i, modulo 2^32, and stores them.
TT_INLINE void int8_store(const Int8Plan& p, const Int8Columns& b, int64_t i, int64_t j0,
                          int64_t width, const int32_t* sums) {
  const uint32_t zero = p.a_zero ? uint32_t(p.a_zero[i * p.a_zero_step]) : 0;
  const uint32_t offset = (p.a_unsigned ? 128u : 0u) - zero;
  const uint32_t row = uint32_t(p.a_sum[i]) + uint32_t(p.k) * offset;
  alignas(64) int32_t whole[kInt8Panel];
  for (int64_t c = 0; c < kInt8Panel; c++)
    whole[c] = int32_t(uint32_t(sums[c]) - b.offset[c] * row + offset * b.sum[c]);
  char* out = p.out + (i * p.n + j0) * 4;
  if (!p.a_scale) {
    memcpy(out, whole, size_t(width) * 4);
    return;
  }
  const float scale = p.a_scale[i * p.a_scale_step];
  const float bias = p.bias && p.bias_row ? p.bias[i * p.bias_row] : 0;
  alignas(64) float y[kInt8Panel];
  for (int64_t c = 0; c < kInt8Panel; c++)
    y[c] = float(whole[c]) * (scale * b.scale[c]) + (b.bias[c] + bias);
  memcpy(out, y, size_t(width) * 4);
}

template <class Dot, int kRows>
TT_INLINE void int8_rows(const Int8Plan& p, const Int8Columns& b, int64_t i, int64_t panel) {
  alignas(64) int32_t sums[kRows * kInt8Panel];
  const int64_t a_row = p.quads * 4;
  int8_tile<Dot, kRows>(p.packed_a + i * a_row, a_row, p.packed_b + panel * a_row * kInt8Panel,
                        p.quads, sums);
  if constexpr (Dot::kLowersB) {
    for (int r = 0; r < kRows; r++) {
      const uint32_t lowered = 128 * uint32_t(p.a_sum[i + r]);
      for (int64_t c = 0; c < kInt8Panel; c++)
        sums[r * kInt8Panel + c] = int32_t(uint32_t(sums[r * kInt8Panel + c]) + lowered);
    }
  }
  const int64_t j = panel * kInt8Panel;
  for (int r = 0; r < kRows; r++)
    int8_store(p, b, i + r, j, min(kInt8Panel, p.n - j), sums + r * kInt8Panel);
}

// Whether sums of b's columns count.
TT_INLINE bool needs_column_sums(const Int8Plan& p) { return p.a_zero || p.a_unsigned; }

// Panels and rows of a unit of the second stage. Neighbouring units share the panels.
struct Int8Unit {
  int64_t panel, last_panel, row, last_row;

  TT_INLINE Int8Unit(const Int8Plan& p, int64_t u)
      : panel(u / int8_blocks(p) * int8_unit_panels(p)),
        last_panel(min(panel + int8_unit_panels(p), int8_panels(p))),
        row(u % int8_blocks(p) * int8_unit_rows(p)),
        last_row(min(row + int8_unit_rows(p), p.m)) {}
};

template <class Dot, int kRows>
TT_INLINE void int8_tiles(const Int8Plan& p, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; u++) {
    const Int8Unit unit(p, u);
    for (int64_t panel = unit.panel; panel < unit.last_panel; panel++) {
      const int64_t j = panel * kInt8Panel;
      const Int8Columns b(p, j, min(kInt8Panel, p.n - j));
      const int64_t last = unit.last_row;
      int64_t i = unit.row;
      for (; i + kRows <= last; i += kRows) int8_rows<Dot, kRows>(p, b, i, panel);
      if constexpr (kRows > 4)
        for (; i + 4 <= last; i += 4) int8_rows<Dot, 4>(p, b, i, panel);
      for (; i < last; i++) int8_rows<Dot, 1>(p, b, i, panel);
    }
  }
}

TT_ISA_END
