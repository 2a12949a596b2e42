// Products of attention's blocks by the tiles of AMX, for bf16.
//
//   a (f32)  =  high (bf16)  +  low (bf16)          b (f32, holds bf16)
//   probabilities and their gradients have 16       q, k, v and grad
//   significant bits so; q, k, v and grad have
//   no low terms, which then cost nothing
//
//   panel of a: [steps][2][16 rows][32 k]     panel of b: [steps][16 pairs of k][32 columns]
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/matmul/pack.h"
#include "kernels/cpu/simd/amx.h"

#if TT_AMX

TT_ISA_BEGIN

constexpr int64_t kTileDepth = 128;  // k positions of a pass
constexpr int64_t kTileCols = 64;    // columns of a pass
constexpr int64_t kTileStep = 32;    // k positions of a tile
constexpr int kRowWords = 16;        // pairs of k positions of a tile's row
using Words = Vec<int32_t>;

constexpr int32_t kUpper = int32_t(0xffff0000);
constexpr int32_t kExponent = 0x7f800000;
TT_INLINE Words words_at(const float* p, int n) {
  return load(reinterpret_cast<const int32_t*>(p), Part<int32_t>(n));
}
// Pairs of bf16 from the upper halves of two vectors.
TT_INLINE Words pair_uppers(Words even, Words odd) {
  return Words(Vec<uint32_t>(even) >> 16) | (odd & splat(kUpper));
}
// Lanes of infinities and NaNs are -1.
TT_INLINE Words not_finite(Words x) { return Words((x & splat(kExponent)) == splat(kExponent)); }
// The difference of x and its bf16, rounded to bf16.
TT_INLINE Words low_of(Words x) {
  const Words high = x & splat(kUpper);
  const Words low = Words(Vec<float>(x) - Vec<float>(high)) & ~not_finite(x);
  return low + splat(int32_t(0x8000));
}

TT_INLINE bool any_lane(Words x) {
  bool any = false;
  for (int i = 0; i < kLanes<int32_t>; i++) any |= x[i] != 0;
  return any;
}

struct TileRows {
  alignas(64) int32_t high[kTileDepth / 2 * kAmxBlock];
  alignas(64) int32_t low[kTileDepth / 2 * kAmxBlock];
  bool any_low;
};

// Stores a tile from pairs of k positions: r[p] has pair p of 16 rows.
TT_INLINE void store_transposed(Words (&r)[kRowWords], int32_t* tile) {
  transpose<int32_t>(r);
  TT_UNROLL
  for (int i = 0; i < kRowWords; i++) store(tile + i * kRowWords, r[i]);
}

// Rows [0, h) and positions [0, nk) of a; a_row is 1, or a_col is.
void pack_tile_rows(const float* a, int64_t a_row, int64_t a_col, int h, int64_t nk,
                    TileRows* out) {
  Words any = {};
  for (int64_t k = 0; k < nk; k += kTileStep)
    for (int i0 = 0; i0 < kAmxBlock && i0 < round_up(h, kAmxRows); i0 += kAmxRows) {
      const int64_t at = (k / kTileStep * 2 + i0 / kAmxRows) * kAmxRows * kRowWords;
      const int rows = min(h - i0, kAmxRows);
      const int depth = int(min(nk - k, kTileStep));
      Words high[kRowWords] = {}, low[kRowWords] = {};
      if (a_col == 1) {
        // Vectors are positions: pairs are neighbours, of which two vectors fill a row.
        for (int i = 0; i < rows; i++) {
          const float* x = a + (i0 + i) * a_row + k;
          const Words left = words_at(x, min(depth, 16));
          const Words right = depth > 16 ? words_at(x + 16, depth - 16) : Words{};
          high[i] = upper_words(left, right);
          low[i] = upper_words(low_of(left), low_of(right));
          any |= low[i];
        }
        TT_UNROLL
        for (int i = 0; i < kAmxRows; i++) {
          store(out->high + at + i * kRowWords, high[i]);
          store(out->low + at + i * kRowWords, low[i]);
        }
        continue;
      }
      const float* x = a + i0 + k * a_col;
      for (int p = 0; 2 * p < depth; p++, x += 2 * a_col) {
        const Words even = words_at(x, rows);
        const Words odd = 2 * p + 1 < depth ? words_at(x + a_col, rows) : Words{};
        high[p] = pair_uppers(even, odd);
        low[p] = pair_uppers(low_of(even), low_of(odd));
        any |= low[p];
      }
      store_transposed(high, out->high + at);
      store_transposed(low, out->low + at);
    }
  out->any_low = any_lane(any);
}

// Columns [0, w) and positions [0, nk) of b, [positions][ld].
void pack_tile_cols(const float* b, int64_t ld, int w, int64_t nk, int32_t* out) {
  for (int64_t k = 0; k < round_up(nk, kTileStep); k += 2, b += 2 * ld)
    for (int j = 0; j < kAmxBlock; j += 16, out += 16) {
      const int n = clamp(w - j, 0, 16);
      const Words even = k < nk ? words_at(b + j, n) : Words{};
      const Words odd = k + 1 < nk ? words_at(b + ld + j, n) : Words{};
      store(out, pair_uppers(even, odd));
    }
}
// A low term of 0 times infinity would be NaN.
bool all_finite(const float* x, int64_t n) {
  Words bad = {};
  for (int64_t i = 0; i < n; i += kLanes<int32_t>)
    bad |= not_finite(words_at(x + i, int(min<int64_t>(n - i, kLanes<int32_t>))));
  return !any_lane(bad);
}

// A block of c: h rows, w columns, ld elements apart.
void add_tile_block(const int32_t* a, const int32_t* b, int64_t nk, float* c, int64_t ld, int h,
                    int w, bool add) {
  alignas(64) float block[kAmxBlock * kAmxBlock];
  const bool whole = h % kAmxRows == 0 && w % kAmxRows == 0;
  const AmxOperands o = {
      .steps = ceil_div(nk, kTileStep),
      .a = a,
      .a_row = kAmxRowBytes,
      .a_tile = kAmxTileBytes,
      .a_step = 2 * kAmxTileBytes,
      .b = b,
      .b_row = 2 * kAmxRowBytes,
      .b_tile = kAmxRowBytes,
      .b_step = 2 * kAmxTileBytes,
      .out = whole ? c : block,
      .out_row = (whole ? ld : kAmxBlock) * int64_t(sizeof(float)),
      .add = whole && add,
  };
  amx_block<AmxBf16>(o, h > kAmxRows, w > kAmxRows);
  for (int i = 0; !whole && i < h; i++)
    for (int j = 0; j < w; j += 16) {
      const Part<float> part(min(w - j, 16));
      const Vec<float> sum = load(block + i * kAmxBlock + j);
      store(c + i * ld + j, add ? sum + load(c + i * ld + j, part) : sum, part);
    }
}

TT_ISA_END

TT_ENTRY_BEGIN

bool attention_tiles(float* c, const float* a, int64_t a_row, int64_t a_col, const float* b,
                     int64_t m, int64_t n, int64_t k, bool add) noexcept {
  if (m < kAmxRows || n < kAmxRows || k < kAmxRows || !all_finite(b, n * k)) return false;
  TileRows rows;
  alignas(64) int32_t cols[kTileDepth / 2 * kTileCols];
  constexpr int64_t kPanel = kTileDepth / 2 * kAmxBlock;
  const AmxTiles tiles;
  for (int64_t j0 = 0; j0 < n; j0 += kTileCols)
    for (int64_t k0 = 0; k0 < k; k0 += kTileDepth) {
      const int64_t nk = min(k - k0, kTileDepth);
      const int64_t end = min(n, j0 + kTileCols);
      for (int64_t j = j0; j < end; j += kAmxBlock)
        pack_tile_cols(b + k0 * n + j, n, int(min<int64_t>(end - j, kAmxBlock)), nk,
                       cols + (j - j0) / kAmxBlock * kPanel);
      for (int64_t i = 0; i < m; i += kAmxBlock) {
        const int h = int(min<int64_t>(m - i, kAmxBlock));
        pack_tile_rows(a + i * a_row + k0 * a_col, a_row, a_col, h, nk, &rows);
        for (int64_t j = j0; j < end; j += kAmxBlock) {
          const int w = int(min<int64_t>(end - j, kAmxBlock));
          const int32_t* panel = cols + (j - j0) / kAmxBlock * kPanel;
          float* out = c + i * n + j;
          add_tile_block(rows.high, panel, nk, out, n, h, w, add || k0 > 0);
          if (rows.any_low) add_tile_block(rows.low, panel, nk, out, n, h, w, true);
        }
      }
    }
  return true;
}

TT_ENTRY_END

#else  // never called

TT_ENTRY_BEGIN
bool attention_tiles(float*, const float*, int64_t, int64_t, const float*, int64_t, int64_t,
                     int64_t, bool) noexcept {
  return false;
}
TT_ENTRY_END

#endif
