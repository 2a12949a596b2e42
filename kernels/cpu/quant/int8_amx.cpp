// Tiles of int8_matmul by AMX: 16 quads of 16 rows, and 16 quads of 16 columns of a panel.
#include "kernels/cpu/quant/int8_tile.h"
#include "kernels/cpu/simd/amx.h"

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

TT_ISA_END

TT_ENTRY_BEGIN
bool int8_tiles_amx(const Int8Plan& p, int64_t begin, int64_t end) noexcept {
  if (!p.amx) return false;
  const AmxTiles tiles;
  for (int64_t u = begin; u < end; u++) int8_amx_unit(p, Int8Unit(p, u));
  return true;
}
TT_ENTRY_END

#else

TT_ENTRY_BEGIN
bool int8_tiles_amx(const Int8Plan&, int64_t, int64_t) noexcept { return false; }
TT_ENTRY_END

#endif
