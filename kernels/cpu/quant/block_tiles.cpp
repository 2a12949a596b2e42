// block_linear of many rows by tiles of AMX: products of pieces (kernels/cpu/matmul/amx_pieces.h).
//
// The packed weight is the operand of rows, as a span of each of its rows is unpacked, and sums are
// transposed when they are stored. A span of kSpan numbers is summed up in tiles, spans in float32.
//
//   input   [16 rows][steps of 32 numbers][3 pieces][16 pairs of numbers][16 rows]
//   weight  a span of two tiles of columns: [2][steps][3 pieces][16 columns][16 pairs of numbers]
//   sums    [16 columns][16 rows][16 columns][16 rows]
//
// Rows of the input and columns that pieces cannot express are computed in float32.
#include "kernels/cpu/matmul/amx_pieces.h"
#include "kernels/cpu/quant/span.h"
#include "kernels/cpu/simd/room.h"
#include "kernels/cpu/simd/transpose.h"

#if TT_AMX

TT_ISA_BEGIN

using Floats = Vec<float>;
using Words = Vec<uint32_t>;
constexpr int kL = kLanes<float>;
constexpr int64_t kSpanSteps = kSpan / kPieceStep;
constexpr int64_t kSpanBytes = kSpanSteps * kPieceStepBytes;  // 16 columns of the weight
// Packed bytes of columns so far ahead are prefetched: memory is far from row to row.
constexpr int64_t kFarColumns = 8;
constexpr int64_t kLine = 64;
constexpr int64_t kSums = kAmxRows * kAmxRows;
constexpr int64_t kSumsBelow = kTileRowTiles * kSums;
static_assert(kTileRows == kAmxRows && kTileWeightBytes == 2 * kSpanBytes);

// ---- pieces ----

constexpr uint32_t kLeast = (127u - 100) << 23;  // 2^-100
// Products of pieces must be finite; an integer of a block has at most 7 bits.
constexpr uint32_t kMostInput = (127u + 90) << 23;
constexpr uint32_t kMostScale = (127u + 29) << 23;
constexpr float kEnough = 0x1p-60f;
TT_INLINE Words magnitudes(Floats x) { return Words(x) & 0x7fffffffu; }

// Whether pieces express k numbers: none is beyond kMostInput, and of numbers below kLeast, of
// which pieces lose bits, there are none, or the sum of all but the largest is enough beside them.
bool expresses_row(const float* x, int64_t k) {
  Words most{};
  Words few{};  // all bits of lanes that have such a number
  Floats total{};
  for (int64_t i = 0; i < k; i += kL) {
    const Words m = magnitudes(load(x + i));
    most = chosen(m > most, m, most);
    few |= Words(m < kLeast) & Words(m > 0u);
    total += Floats(m);
  }
  uint32_t largest = 0;
  uint32_t any_few = 0;
  float sum = 0;
  for (int l = 0; l < kL; l++) {
    largest = max(largest, uint32_t(most[l]));
    any_few |= few[l];
    sum += total[l];
  }
  if (largest > kMostInput) return false;
  return !any_few || sum - bit_cast<float>(largest) >= kEnough;
}

// Stage 0: tiles of 16 rows of the input.
void split_tiles(const BlockPlan& p, int64_t begin, int64_t end) {
  const int64_t steps = p.k / kPieceStep;
  for (int64_t t = begin; t < end; t++) {
    const int64_t rows = min<int64_t>(kAmxRows, p.m - t * kAmxRows);
    const float* const x = p.input + t * kAmxRows * p.k;
    bool odd = false;
    for (int64_t r = 0; r < rows; r++) odd |= !expresses_row(x + r * p.k, p.k);
    p.tiles.odd[t] = odd;
    char* out = p.tiles.pieces + t * steps * kPieceStepBytes;
    for (int64_t s = 0; s < steps && !odd; s++, out += kPieceStepBytes) {
      alignas(64) char straight[kPieceStepBytes] = {};
      for (int64_t r = 0; r < rows; r++) {
        const float* const at = x + r * p.k + s * kPieceStep;
        put_pairs_of_pieces(load(at), load(at + kL), straight + r * kAmxRowBytes);
      }
      for (int i = 0; i < kPieces; i++)
        transpose_tile<uint32_t, 16>(out + i * kAmxTileBytes, kAmxRowBytes,
                                     straight + i * kAmxTileBytes, kAmxRowBytes);
    }
  }
}

// Splits a span of a row of the weight into row `column` of tiles; returns whether pieces express
// its scales.
bool put_span(const BlockSpan& s, int64_t items, char* out) {
  const auto beyond = [](const float* factors) TT_INLINE_BODY {
    const Words m = magnitudes(load(factors));
    return Words(m > kMostScale) | (Words(m < kLeast) & Words(m > 0u));
  };
  const Words lost = beyond(s.scale) | beyond(s.shift);
  for (int64_t g = 0; g < items / kGroup; g += 2, out += kPieceStepBytes)
    put_pairs_of_pieces(numbers_of(s, g, 0), numbers_of(s, g + 1, 0), out);
  uint32_t any = 0;
  for (int l = 0; l < int(items / kGroup); l++) any |= lost[l];
  return !any;
}

// ---- products ----

template <int kTile> TT_INLINE void take_sums(float* sums, bool add) {
  alignas(64) float tile[kAmxRows * kAmxRows];
  amx_store<kTile>(add ? tile : sums, kAmxRowBytes);
  if (!add) return;
  for (int i = 0; i < kAmxRows * kAmxRows; i += kL)
    store(sums + i, load(sums + i) + load(tile + i));
}

struct TileProduct {
  const char* w;   // of 16 columns; the next 16 are kSpanBytes behind
  const char* x;   // of 16 rows
  int64_t x_next;  // bytes to the next 16
  int64_t steps;
  float* sums;  // of 16 by 16; those of the next 16 columns are kSumsBelow behind
  bool add;
};
template <int kHigh, int kWide> void multiply_tiles(const TileProduct& t) {
  AmxNothingElse nothing;
  multiply_pieces<kHigh, kWide>({t.w, kSpanBytes}, {t.x, t.x_next}, t.steps, nothing);
  take_sums<0>(t.sums, t.add);
  if constexpr (kWide > 1) take_sums<1>(t.sums + kSums, t.add);
  if constexpr (kHigh > 1) take_sums<2>(t.sums + kSumsBelow, t.add);
  if constexpr (kHigh > 1 && kWide > 1) take_sums<3>(t.sums + kSumsBelow + kSums, t.add);
}

// ---- a unit: a block of columns by a block of rows ----

class TileUnit {
 public:
  TileUnit(const BlockPlan& plan, int64_t unit)
      : p(plan),
        room(plan.tiles.rooms),
        weight(room.as<char>()),
        sums(room.as<float>() + kTileWeightBytes / sizeof(float)),
        column(unit / tile_row_blocks(p) * kTileColumns),
        columns(min(kTileColumns, p.n - column)),
        high(ceil_div(columns, kTileRows)),
        tile(unit % tile_row_blocks(p) * kTileRowTiles),
        wide(min(kTileRowTiles, ceil_div(p.m, kTileRows) - tile)),
        odd{} {}

  void run() {
    for (int64_t at = 0; at < p.k; at += kSpan) {
      const int64_t items = min(kSpan, p.k - at);
      for (int64_t c = 0; c < high; c += 2) {
        unpack(at, items, c);
        multiply(at, items, c);
      }
    }
    for (int64_t t = 0; t < wide; t++) {
      const bool odd_rows = p.tiles.odd[tile + t];
      for (int64_t c = 0; c < high && !odd_rows; c++) store_tile(c, t);
      const int64_t first = (tile + t) * kTileRows;
      for (int64_t c = 0; c < columns; c++)
        if (odd_rows || odd[c]) span_dots(p, column + c, first, min(p.m, first + kTileRows));
    }
  }

 private:
  // Splits a span of the columns of two tiles, and zeros where there are none.
  void unpack(int64_t at, int64_t items, int64_t c) {
    const int64_t row = packed_bytes(p.format, p.k);
    const int64_t bytes = packed_bytes(p.format, items) + kLine;
    const int64_t first = c * kTileRows;
    const char* from = p.packed + (column + first) * row + packed_bytes(p.format, at);
    BlockSpan s = {};
    for (int64_t i = 0; i < min<int64_t>(2, high - c) * kTileRows; i++, from += row) {
      for (int64_t b = 0; b < bytes; b += kLine) TT_PREFETCH_L2(from + kFarColumns * row + b);
      if (first + i < columns) unpack_span(p.format, from, items, s);
      else s = {};
      char* const out = weight + i / kTileRows * kSpanBytes + i % kTileRows * kAmxRowBytes;
      if (!put_span(s, items, out)) odd[first + i] = true;
    }
  }
  void multiply(int64_t at, int64_t items, int64_t c) {
    const int64_t row_bytes = p.k / kPieceStep * kPieceStepBytes;
    for (int64_t t = 0; t < wide; t += 2) {
      const TileProduct product = {
          .w = weight,
          .x = p.tiles.pieces + (tile + t) * row_bytes + at / kPieceStep * kPieceStepBytes,
          .x_next = row_bytes,
          .steps = items / kPieceStep,
          .sums = sums_of(c, t),
          .add = at > 0,
      };
      const bool two_high = c + 1 < high;
      const bool two_wide = t + 1 < wide;
      if (two_high && two_wide) multiply_tiles<2, 2>(product);
      else if (two_high) multiply_tiles<2, 1>(product);
      else if (two_wide) multiply_tiles<1, 2>(product);
      else multiply_tiles<1, 1>(product);
    }
  }
  float* sums_of(int64_t c, int64_t t) const { return sums + (c * kTileRowTiles + t) * kSums; }

  void store_tile(int64_t c, int64_t t) const {
    alignas(64) float turned[kSums];
    transpose_tile<uint32_t, 16>(reinterpret_cast<char*>(turned), kAmxRowBytes,
                                 reinterpret_cast<const char*>(sums_of(c, t)), kAmxRowBytes);
    const int64_t i = (tile + t) * kTileRows;
    const int64_t j = column + c * kTileRows;
    const auto width = int(min(kTileRows, p.n - j));
    const Part<float> part(width);
    const Floats bias = p.bias ? load(p.bias + j, part) : Floats{};
    for (int64_t r = 0; r < min(kTileRows, p.m - i); r++)
      store(p.out + (i + r) * p.n + j, load(turned + r * kTileRows) + bias, part);
  }

  const BlockPlan& p;
  const Room room;
  char* const weight;
  float* const sums;
  const int64_t column, columns;
  const int64_t high;      // tiles of columns
  const int64_t tile;      // the first tile of rows
  const int64_t wide;      // tiles of rows
  bool odd[kTileColumns];  // columns that pieces do not express
};

TT_ISA_END

TT_ENTRY_BEGIN
void block_tiles(const BlockPlan& p, int64_t begin, int64_t end) noexcept {
  if (p.run.stage == 0) return split_tiles(p, begin, end);
  const AmxTiles tiles;
  for (int64_t u = begin; u < end; u++) TileUnit(p, u).run();
}
TT_ENTRY_END

#else  // never called

TT_ENTRY_BEGIN
void block_tiles(const BlockPlan&, int64_t, int64_t) noexcept {}
TT_ENTRY_END

#endif
