// Tiles of int8_matmul by AMX: 16 quads of 16 rows, and 16 quads of 16 columns of a panel.
#include "kernels/cpu/quant/int8_tile.h"
#include "kernels/cpu/simd/amx.h"
#include "kernels/cpu/simd/transpose.h"

#if TT_AMX

TT_ISA_BEGIN

static_assert(kInt8Panel == kAmxBlock && kInt8AmxRows % kAmxBlock == 0);

// Rows of sums that are stored while the next block is multiplied.
struct PendingSums {
  const Int8Plan& p;
  const Int8Columns* cols;
  int64_t i, j;
  const int32_t* sums;
  int64_t rows;          // left
  int64_t rows_of_step;  // of the next block

  TT_NOINLINE void store_rows(int64_t most) {
    for (int64_t n = min(most, rows); n > 0; n--, i++, rows--, sums += kInt8Panel)
      int8_store(p, *cols, i, j, min(kInt8Panel, p.n - j), sums);
  }
  TT_INLINE void step() {
    if (rows > 0) store_rows(rows_of_step);
  }
};

// A block of rows times some panels, which stay in the second-level cache for the blocks of rows
// that follow.
void int8_amx_unit(const Int8Plan& p, const Int8Unit& unit) {
  alignas(64) int32_t sums[2][kAmxBlock * kInt8Panel];
  Int8Columns cols[kInt8AmxPanels];
  for (int64_t c = unit.panel; c < unit.last_panel; c++)
    cols[c - unit.panel] = Int8Columns(p, c * kInt8Panel, min(kInt8Panel, p.n - c * kInt8Panel));
  const int64_t steps = p.quads / kAmxRows;
  const int64_t panel_bytes = kAmxBlock * p.quads * 4;
  PendingSums pending = {.p = p,
                         .cols = cols,
                         .i = 0,
                         .j = 0,
                         .sums = sums[1],
                         .rows = 0,
                         .rows_of_step = ceil_div(kAmxBlock, steps)};
  int at = 0;
  for (int64_t i = unit.row; i < unit.last_row; i += kAmxBlock)
    for (int64_t c = unit.panel; c < unit.last_panel; c++, at = !at) {
      const int64_t h = min<int64_t>(kAmxBlock, unit.last_row - i);
      const AmxOperands o = {
          .steps = steps,
          .a = p.packed_a + i / kAmxBlock * panel_bytes,
          .a_row = kAmxRowBytes,
          .a_tile = kAmxTileBytes,
          .a_step = 2 * kAmxTileBytes,
          .b = p.packed_b + c * panel_bytes,
          .b_row = kInt8Panel * 4,
          .b_tile = kAmxRowBytes,
          .b_step = kAmxRows * kInt8Panel * 4,
          .out = sums[at],
          .out_row = kInt8Panel * 4,
          .add = false,
      };
      amx_block<AmxSignedUnsigned, kAmxStreamsB>(o, h > kAmxRows, true, pending);
      pending.store_rows(kAmxBlock);
      pending.cols = cols + (c - unit.panel);
      pending.i = i;
      pending.j = c * kInt8Panel;
      pending.sums = sums[at];
      pending.rows = h;
    }
  pending.store_rows(kAmxBlock);
}

// ---- columns where they are ----

// out[32 columns][32 rows]: a panel of b, whose columns are rows of tiles, by 32 rows of a from row
// `first` on, which are columns of tiles.
template <class Products>
void columns_by_rows(const Int8Plan& p, int64_t panel, int64_t first, int64_t rows, int32_t* out) {
  const char* const b = p.b + panel * kInt8Panel * p.b_col;
  const int64_t width = min(kInt8Panel, p.n - panel * kInt8Panel);
  const int64_t steps = p.quads / kAmxRows;
  // Behind the last byte of a column, and behind the last column, nothing may be read.
  const int64_t in_place = width % kAmxRows == 0 ? p.k / kAmxRowBytes : 0;
  AmxOperands o = {
      .steps = in_place,
      .a = b,
      .a_row = p.b_col,
      .a_tile = kAmxRows * p.b_col,
      .a_step = kAmxRowBytes,
      .b = p.packed_a + first * p.quads * 4,
      .b_row = kAmxRowBytes,
      .b_tile = kAmxTileBytes,
      .b_step = 2 * kAmxTileBytes,
      .out = out,
      .out_row = kAmxBlock * 4,
      .add = false,
  };
  const bool high = width > kAmxRows;
  const bool wide = rows > kAmxRows;
  amx_block<Products>(o, high, wide);
  for (int64_t s = in_place; s < steps; s++) {
    alignas(64) char copy[kAmxBlock][kAmxRowBytes] = {};
    const int64_t k = s * kAmxRowBytes;
    for (int64_t c = 0; c < width; c++)
      memcpy(copy[c], b + c * p.b_col + k, size_t(min<int64_t>(kAmxRowBytes, p.k - k)));
    o.steps = 1;
    o.a = copy;
    o.a_row = kAmxRowBytes;
    o.a_tile = kAmxTileBytes;
    o.b = p.packed_a + first * p.quads * 4 + s * o.b_step;
    o.add = true;
    amx_block<Products>(o, high, wide);
  }
}

// The last rows come first: the one behind them has the sums of columns.
void panel_by_rows(const Int8Plan& p, int64_t panel) {
  const int64_t j = panel * kInt8Panel;
  const int64_t width = min(kInt8Panel, p.n - j);
  const int64_t all = p.m + needs_column_sums(p);
  Int8Columns columns;
  for (int64_t first = (all - 1) / kAmxBlock * kAmxBlock; first >= 0; first -= kAmxBlock) {
    alignas(64) int32_t turned[kAmxBlock][kAmxBlock], sums[kAmxBlock][kInt8Panel];
    const int64_t rows = min<int64_t>(kAmxBlock, all - first);
    if (p.b_unsigned) columns_by_rows<AmxUnsignedSigned>(p, panel, first, rows, turned[0]);
    else columns_by_rows<AmxSigned>(p, panel, first, rows, turned[0]);
    for (int64_t r = 0; r < rows; r += kAmxRows)
      for (int64_t c = 0; c < width; c += kAmxRows)
        transpose_tile<uint32_t, kAmxRows>(reinterpret_cast<char*>(&sums[r][c]), kInt8Panel * 4,
                                           reinterpret_cast<const char*>(&turned[c][r]),
                                           kAmxBlock * 4);
    if (first + rows == all) {
      for (int64_t c = 0; c < kInt8Panel; c++)
        p.b_sum[j + c] = needs_column_sums(p) && c < width ? sums[rows - 1][c] : 0;
      columns = Int8Columns(p, j, width);
    }
    for (int64_t r = 0; r < min(rows, p.m - first); r++)
      int8_store(p, columns, first + r, j, width, sums[r]);
  }
}

TT_ISA_END

TT_ENTRY_BEGIN
bool int8_columns_amx(const Int8Plan& p, int64_t begin, int64_t end) noexcept {
  if (!has_tile_columns(p)) return false;
  const AmxTiles tiles;
  for (int64_t u = begin; u < end; u++) {
    const Int8Unit unit(p, u);
    for (int64_t panel = unit.panel; panel < unit.last_panel; panel++) panel_by_rows(p, panel);
  }
  return true;
}
bool int8_tiles_amx(const Int8Plan& p, int64_t begin, int64_t end) noexcept {
  if (!p.amx) return false;
  const AmxTiles tiles;
  for (int64_t u = begin; u < end; u++) int8_amx_unit(p, Int8Unit(p, u));
  return true;
}
TT_ENTRY_END

#else

TT_ENTRY_BEGIN
bool int8_columns_amx(const Int8Plan&, int64_t, int64_t) noexcept { return false; }
bool int8_tiles_amx(const Int8Plan&, int64_t, int64_t) noexcept { return false; }
TT_ENTRY_END

#endif
