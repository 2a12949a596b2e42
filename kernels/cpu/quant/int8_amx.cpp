// Tiles of int8_matmul by AMX. The packed operands are tiles as they are: 16 quads of 16 rows, and
// 16 quads of 16 columns of a panel.
#include "kernels/cpu/quant/int8_tile.h"
#include "kernels/cpu/simd/amx.h"

#if TT_AMX

TT_ISA_BEGIN

static_assert(kInt8Panel == kAmxBlock && kInt8Rows % kAmxRows == 0);

void int8_block(const Int8Plan& p, const Int8Columns& cols, int64_t i, int64_t rows, int64_t j) {
  alignas(64) int32_t sums[kAmxBlock * kInt8Panel];
  const int64_t a_row = p.quads * 4;
  const AmxOperands o = {
      .steps = p.quads / kAmxRows,
      .a = p.packed_a + i * a_row,
      .a_row = a_row,
      .a_tile = kAmxRows * a_row,
      .a_step = kAmxRowBytes,
      .b = p.packed_b + j * a_row,
      .b_row = kInt8Panel * 4,
      .b_tile = kAmxRowBytes,
      .b_step = kAmxRows * kInt8Panel * 4,
      .out = sums,
      .out_row = kInt8Panel * 4,
      .add = false,
  };
  amx_block<AmxSignedUnsigned>(o, rows > kAmxRows, true);
  for (int64_t r = 0; r < rows; r++)
    int8_store(p, cols, i + r, j, min(kInt8Panel, p.n - j), sums + r * kInt8Panel);
}

TT_ISA_END

TT_ENTRY_BEGIN
bool int8_tiles_amx(const Int8Plan& p, int64_t begin, int64_t end) noexcept {
  if (!p.amx) return false;
  const int64_t blocks = int8_blocks(p);
  const AmxTiles tiles;
  for (int64_t u = begin; u < end; u++) {
    const int64_t j = u / blocks * kInt8Panel;
    const int64_t first = u % blocks * kInt8Rows;
    const int64_t last = min(first + kInt8Rows, p.m);
    const Int8Columns cols(p, j, min(kInt8Panel, p.n - j));
    for (int64_t i = first; i < last; i += kAmxBlock)
      int8_block(p, cols, i, min<int64_t>(kAmxBlock, last - i), j);
  }
  return true;
}
TT_ENTRY_END

#else

TT_ENTRY_BEGIN
bool int8_tiles_amx(const Int8Plan&, int64_t, int64_t) noexcept { return false; }
TT_ENTRY_END

#endif
