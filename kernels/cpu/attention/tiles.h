// Operands of attention's products by the tiles of AMX, for bf16. Factors are packed once, from
// rows of bf16 or from scores:
//
//   left factors, tiles of 16 rows            right factors, pairs of k positions
//     rows_tiles:  rows of x                    pairs_of_rows:     rows of x are k positions
//     turned_tiles: rows of x are k positions   pairs_of_columns:  columns of x are k positions
//
// Scores are computed transposed, [key][query], with the queries in the lanes of vectors. Both
// probabilities and gradients of scores are then factors without a transposition: [key][query] is a
// left factor, and pairs of keys are a right one. Products with the values and with the keys are
// computed transposed, too, [width][query].
#pragma once

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/matmul/bf16_pack.h"
#include "kernels/cpu/simd/amx.h"

#if TT_AMX

TT_ISA_BEGIN

using Words = Vec<int32_t>;
using Floats = Vec<float>;

constexpr int64_t kStep = 32;  // k positions of a tile
constexpr int64_t kRowWords = kStep / 2;
constexpr int64_t kTileWords = kAmxRows * kRowWords;
constexpr int32_t kUpper = int32_t(0xffff0000);  // the second bf16 of a pair, as a float
constexpr int32_t kExponent = 0x7f800000;

// Rows of bf16, `pitch` bytes apart.
struct HalfRows {
  const char* p;
  int64_t pitch;
  TT_INLINE const Bf16* row(int64_t i) const {
    return reinterpret_cast<const Bf16*>(p + i * pitch);
  }
};
TT_INLINE HalfRows half_rows(const AttentionRows& r, int64_t batch, int64_t head, int64_t row) {
  return {rows_at(r, batch, head, row), r.row};
}

// ---- packing ----

TT_INLINE Words words_of(const Bf16* x, int64_t n) {
  return n > 0 ? load_words(x, int(min(n, kStep))) : Words{};
}
TT_INLINE void store_tile(const Words (&r)[kAmxRows], int32_t* out) {
  TT_UNROLL
  for (int i = 0; i < kAmxRows; i++) store(out + i * kRowWords, r[i]);
}

// Whether n rows have no infinities and NaNs. Only such rows may be multiplied by the low terms of
// the other factor, many of which are 0.
TT_NOINLINE bool finite_rows(const HalfRows& x, int64_t n, int64_t width) {
  Words bad{};
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < width; k += kStep) {
      const Words w = words_of(x.row(i) + k, width - k);
      bad |= Words((w & splat(kExponent)) == splat(kExponent));
      bad |= Words((w << 16 & splat(kExponent)) == splat(kExponent));
    }
  return !any_differs(Floats(bad & splat(1)), Floats{});
}

// [tiles of 16 rows][steps of the width][16 rows][16 pairs]; zeros beyond n rows and the width.
TT_NOINLINE void pack_rows_tiles(const HalfRows& x, int64_t n, int64_t width, int32_t* out) {
  for (int64_t i = 0; i < n; i += kAmxRows)
    for (int64_t k = 0; k < width; k += kStep, out += kTileWords)
      for (int64_t r = 0; r < kAmxRows; r++)
        store(out + r * kRowWords, i + r < n ? words_of(x.row(i + r) + k, width - k) : Words{});
}

// [tiles of 16 columns][steps of the rows, pitch_steps apart][16 columns][16 pairs of rows].
TT_NOINLINE void pack_turned_tiles(const HalfRows& x, int64_t n, int64_t width, int64_t pitch_steps,
                                   int32_t* out) {
  for (int64_t i = 0; i < n; i += kStep)
    for (int64_t j = 0; j < width; j += kStep) {
      Words low[kAmxRows], high[kAmxRows];
      for (int64_t r = 0; r < kAmxRows; r++) {
        const int64_t row = i + 2 * r;
        const Words even = row < n ? words_of(x.row(row) + j, width - j) : Words{};
        const Words odd = row + 1 < n ? words_of(x.row(row + 1) + j, width - j) : Words{};
        low[r] = zip_words(even, odd, 0);
        high[r] = zip_words(even, odd, 16);
      }
      transpose<int32_t>(low);
      transpose<int32_t>(high);
      int32_t* to = out + (j / kAmxRows * pitch_steps + i / kStep) * kTileWords;
      store_tile(low, to);
      if (width - j > kAmxRows) store_tile(high, to + pitch_steps * kTileWords);
    }
}

// [pairs of columns, whole steps][n rows, `lanes` apart]; zeros up to 16 rows.
TT_NOINLINE void pack_pairs_of_columns(const HalfRows& x, int64_t n, int64_t width, int64_t lanes,
                                       int32_t* out) {
  for (int64_t i = 0; i < n; i += kAmxRows)
    for (int64_t k = 0; k < width; k += kStep) {
      Words r[kAmxRows];
      for (int64_t q = 0; q < kAmxRows; q++)
        r[q] = i + q < n ? words_of(x.row(i + q) + k, width - k) : Words{};
      transpose<int32_t>(r);
      TT_UNROLL
      for (int q = 0; q < kAmxRows; q++) store(out + (k / 2 + q) * lanes + i, r[q]);
    }
}

// ---- products ----

// A packed factor, with the bytes from row to row of a tile, to the next 16 rows or columns, and to
// the next step.
struct TileFactor {
  const void* p;
  int64_t row, tile, step;
};
TT_INLINE TileFactor tiles_factor(const int32_t* p, int64_t steps) {
  return {p, kAmxRowBytes, steps * kAmxTileBytes, kAmxTileBytes};
}
// Pairs of k positions, `ld` columns.
TT_INLINE TileFactor pairs_factor(const int32_t* p, int64_t ld) {
  return {p, ld * 4, kAmxRowBytes, kRowWords * ld * 4};
}
TT_INLINE const char* tile_at(const TileFactor& f, int64_t tile) {
  return static_cast<const char*>(f.p) + tile * f.tile;
}

// c (rows, columns) = a b, or += if add; rows of c are ld elements apart.
struct TileProduct {
  int64_t rows, columns, steps;
  TileFactor a, b;
  float* c;
  int64_t ld;
  bool add;
};
TT_INLINE void multiply_block(const TileProduct& t, int64_t i, int64_t j, int64_t steps) {
  const AmxOperands o = {.steps = steps,
                         .a = tile_at(t.a, i / kAmxRows),
                         .a_row = t.a.row,
                         .a_tile = t.a.tile,
                         .a_step = t.a.step,
                         .b = tile_at(t.b, j / kAmxRows),
                         .b_row = t.b.row,
                         .b_tile = t.b.tile,
                         .b_step = t.b.step,
                         .out = t.c + i * t.ld + j,
                         .out_row = t.ld * int64_t(sizeof(float)),
                         .add = t.add};
  amx_block<AmxBf16>(o, t.rows - i > kAmxRows, t.columns - j > kAmxRows);
}
TT_INLINE void multiply_tiles(const TileProduct& t) {
  for (int64_t i = 0; i < t.rows; i += kAmxBlock)
    for (int64_t j = 0; j < t.columns; j += kAmxBlock) multiply_block(t, i, j, t.steps);
}

// ---- scores ----

constexpr float kLog2e = 0x1.715476p+0f;

// 2^x for x < 128, 0 below -126.5; NaN stays. The relative error is 2^-18.5, where rounding to bf16
// has 2^-8.
TT_INLINE Floats exp2_of(Floats x) {
  using math::F32v;
  const F32v c = math::at_least(F32v(x), -127.0f);
  const F32v shifted = c + math::splat<F32v>(math::kRoundExponent);
  const F32v r = c - (shifted - math::splat<F32v>(math::kRoundExponent));
  F32v p = math::fma(r, 0x1.3997d6p-7f, math::splat<F32v>(0x1.ca1444p-5f));
  p = math::fma(p, r, 0x1.ec06dap-3f);
  p = math::fma(p, r, 0x1.62e0dcp-1f);
  p = math::fma(p, r, 0x1.ffffe8p-1f);
  return Floats(p) * Floats(Words(Vec<uint32_t>(shifted) << 23));
}

// What rounding x to bf16 has left: 0 where the rounded number is not finite.
TT_INLINE Floats low_term(Floats x, Floats rounded) {
  const Words lost = Words((Words(rounded) & splat(kExponent)) == splat(kExponent));
  return Floats(Words(x - rounded) & ~lost);
}

// The number of keys of the block, its first ones, that queries [lane, lane + 16) of it see.
TT_INLINE int64_t keys_seen(const AttentionPlan& p, const AttentionBlock& b, int64_t lane) {
  if (!p.causal) return b.keys;
  return clamp<int64_t>(b.query + lane + kAmxRows - b.key, 0, b.keys);
}

// The same for the 32 queries of a pair of tiles, to which those of `lane` belong.
TT_INLINE int64_t keys_of_pair(const AttentionPlan& p, const AttentionBlock& b, int64_t lane) {
  const int64_t end = lane / kAmxBlock * kAmxBlock + kAmxBlock;
  return keys_seen(p, b, min(end, b.lanes) - kAmxRows);
}

// The factor of what scores_by_tiles() computes: it applies a scale itself if there is a mask, and
// one that would change the order.
TT_INLINE bool leaves_scale(const AttentionPlan& p) { return !p.mask_dtype && p.scale > 0; }
TT_INLINE float factor_of_scores(const AttentionPlan& p) {
  return leaves_scale(p) ? float(p.scale) : 1.0f;
}

// A product of keys and queries, but for what the causal mask hides from pairs of tiles.
TT_INLINE void multiply_seen(const AttentionPlan& p, const AttentionBlock& b,
                             const TileProduct& t) {
  for (int64_t j = 0; j < b.lanes; j += kAmxBlock)
    for (int64_t i = 0; i < keys_of_pair(p, b, j); i += kAmxBlock) multiply_block(t, i, j, t.steps);
}

// Computes t for the keys that queries see, whose pairs are t.b, and adds the products with the low
// terms of the pairs where the other factor is finite.
TT_INLINE void multiply_pairs(const AttentionPlan& p, const AttentionBlock& b, TileProduct t,
                              const int32_t* low_pairs, bool is_finite) {
  const auto multiply = [&] {
    for (int64_t j = 0; j < b.lanes; j += kAmxBlock)
      for (int64_t i = 0; i < t.rows; i += kAmxBlock)
        multiply_block(t, i, j, ceil_div(keys_of_pair(p, b, j), kStep));
  };
  multiply();
  if (!is_finite) return;
  t.b = pairs_factor(low_pairs, b.lanes);
  t.add = true;
  multiply();
}

// Computes the scores of a block, but for those that the causal mask hides from pairs of tiles.
TT_NOINLINE void scores_by_tiles(const AttentionPlan& p, const AttentionBlock& b,
                                 const TileFactor& keys, const TileFactor& queries, float* s,
                                 float* spare) {
  const int64_t steps = ceil_div(p.width, kStep);
  const TileProduct product = {b.keys, b.lanes, steps, keys, queries, s, b.lanes, false};
  multiply_seen(p, b, product);
  for (int64_t i = 0; !leaves_scale(p) && i < b.keys * b.lanes; i += kAmxRows)
    store(s + i, load(s + i) * splat(float(p.scale)));
  if (p.mask_dtype) attention_add_mask(p, b, s, spare);
  for (int64_t lane = 0; p.causal && lane < b.lanes; lane += kAmxRows) {
    const int64_t first = b.query + lane + 1 - b.key;  // the first key that query `lane` misses
    for (int64_t i = max<int64_t>(first, 0); i < keys_of_pair(p, b, lane); i++)
      store(s + i * b.lanes + lane, splat(kMinusInfinity<float>),
            Part<float>(int(min<int64_t>(i - first + 1, kAmxRows))));
  }
}

// factors[key][query] of dropout.
TT_NOINLINE void dropout_columns(const AttentionPlan& p, const AttentionBlock& b, float* factors) {
  alignas(64) float row[kAttentionKeys];
  for (int64_t j = 0; j < b.lanes; j++) {
    if (j < b.queries) attention_dropout_factors(p, b, j, row);
    for (int64_t i = 0; i < b.keys; i++) factors[i * b.lanes + j] = j < b.queries ? row[i] : 0.0f;
  }
}

TT_INLINE AttentionBlock query_block(const AttentionPlan& p, int64_t head, int64_t query) {
  AttentionBlock b = {};
  b.batch = head / p.heads;
  b.head = head % p.heads;
  b.query = query;
  b.queries = min(kAttentionQueries, p.queries - query);
  b.lanes = attention_lanes(b.queries);
  return b;
}

TT_INLINE int32_t* take_words(Scratch<float>& room, int64_t n) {
  return reinterpret_cast<int32_t*>(room.take(n));
}

// ---- results ----

// Stores n rows, column j of acc times factor[j] each; rows of acc are `lanes` elements apart.
TT_NOINLINE void store_columns(const HalfRows& out, const float* acc, int64_t lanes, int64_t n,
                               int64_t width, const float* factor) {
  for (int64_t j = 0; j < n; j += kAmxRows) {
    const Floats by = load(factor + j);
    for (int64_t d = 0; d < width; d += kStep) {
      Floats low[kAmxRows], high[kAmxRows];
      for (int64_t i = 0; i < kAmxRows; i++) {
        const float* at = acc + (d + i) * lanes + j;
        low[i] = load(at) * by;
        high[i] = d + kAmxRows < width ? load(at + kAmxRows * lanes) * by : Floats{};
      }
      transpose<float>(low);
      transpose<float>(high);
      for (int64_t i = 0; i < min<int64_t>(n - j, kAmxRows); i++)
        store_words(const_cast<Bf16*>(out.row(j + i)) + d, narrow_two(low[i], high[i]),
                    int(min(width - d, kStep)));
    }
  }
}
TT_ISA_END

#endif
