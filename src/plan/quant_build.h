// Builds the plans of quantised arithmetic.
#pragma once

#include "plan/quant_plan.h"

namespace TT_NS {

// Rows that packed_a has room for.
inline int64_t int8_packed_rows(const Int8Plan& p) {
  if (p.mmla) return round_up(p.m, int64_t(2));
  if (p.amx && p.straight) return round_up(p.m + 1, int64_t(32));  // one more sums columns
  return p.amx ? round_up(p.m, int64_t(32)) : p.m;
}

// Packed bytes of a column of b.
inline int64_t int8_packed_bytes(const Int8Plan& p) { return p.straight ? 0 : p.quads * 4; }

// Sets sizes and stages of a product whose m * n results fit in memory. amx: the processor has
// tiles, which products of some size use; mmla: it has products of 2 by 8 and 8 by 2 bytes. Columns
// of b may be read where they are if `columns`: their bytes are neighbours, and the kernel has dot
// products. Returns the bytes of workspace that place_int8 distributes, or -1 if they overflow.
inline int64_t build_int8(Int8Plan* p, int64_t m, int64_t n, int64_t k, bool amx, bool mmla,
                          bool columns) {
  constexpr int64_t kLimit = int64_t(1) << 40;
  *p = {};
  p->m = m;
  p->n = n;
  p->k = k;
  const bool by_dots = columns && m <= kInt8StraightRows && k >= 64;
  p->amx = amx && m >= 16 && k >= 64 && !by_dots;
  p->straight = by_dots || (p->amx && columns && m <= kInt8AmxRows);
  p->mmla = mmla && !p->straight;
  const bool whole_steps = p->amx || p->straight;
  p->quads = whole_steps ? ceil_div(k, int64_t(64)) * 16 : ceil_div(k, int64_t(4));
  if (p->mmla) p->quads = round_up(p->quads, int64_t(2));
  if (m > kLimit || n > kLimit || k > kLimit) return -1;
  const int64_t panels = int8_panels(*p);
  const int64_t blocks = int8_blocks(*p);
  int64_t of_a, of_b, bytes;
  if (mul_overflow(int8_packed_rows(*p), p->quads * 4 + 4, &of_a) ||
      mul_overflow(panels * kInt8Panel, int8_packed_bytes(*p) + 4, &of_b) ||
      add_overflow(of_a, of_b, &bytes))
    return -1;
  one_stage(&p->run, (p->straight ? 0 : panels) + blocks, 1);
  p->run.n = 2;
  const int64_t unit_panels = int8_unit_panels(*p);
  const int64_t of_unit = int8_unit_rows(*p) * unit_panels * kInt8Panel * k;
  p->run.units[1] = ceil_div(panels, unit_panels) * blocks;
  p->run.grain[1] = max<int64_t>(1, (int64_t(1) << 20) / max<int64_t>(1, of_unit));
  return bytes;
}

inline void place_int8(Int8Plan* p, char* workspace) {
  p->packed_b = reinterpret_cast<uint8_t*>(workspace);
  char* at = workspace + int8_panels(*p) * kInt8Panel * int8_packed_bytes(*p);
  p->packed_a = reinterpret_cast<int8_t*>(at);
  p->a_sum = reinterpret_cast<int32_t*>(at + int8_packed_rows(*p) * p->quads * 4);
  p->b_sum = p->a_sum + p->m;
}

// Sets sizes and stages; a unit is `columns` packed rows.
inline void build_blocks(BlockPlan* p, int32_t format, int64_t m, int64_t n, int64_t k,
                         int64_t columns) {
  *p = {};
  p->format = format;
  p->m = m;
  p->n = n;
  p->k = k;
  constexpr int64_t kTask = int64_t(1) << 19;  // numbers of a task
  const int64_t of_unit = max<int64_t>(1, columns * k * max<int64_t>(1, m / 2));
  one_stage(&p->run, ceil_div(n, columns), max<int64_t>(1, kTask / of_unit));
}

// Whether splitting a row into digits pays on an instruction set: its kernel multiplies them,
// enough columns use them, and few blocks are filled up. The kernel takes a whole run of blocks at
// least.
inline bool digits_pay(const BlockPlan& p, int32_t isa) {
  const int64_t blocks = p.k / kBlockItems;
  return p.dots >> isa & 1 && has_digits(p.format) && p.m == 1 && p.n >= kBlockColumns &&
         blocks >= kDigitRun && digit_blocks(p.k) <= blocks + blocks / 4;
}

// Puts the stage that splits the row before the products.
inline void split_first(BlockPlan* p, int8_t* digits) {
  p->digits = digits;
  p->run.n = 2;
  p->run.units[1] = p->run.units[0];
  p->run.grain[1] = p->run.grain[0];
  p->run.units[0] = digit_blocks(p->k) / kDigitRun;
  p->run.grain[0] = 64;
}

// ---- block_linear by tiles ----

// Sets the stages and, for up to `threads` threads, the rooms; returns the size of place_tiles'
// memory.
inline int64_t build_tiles(BlockPlan* p, int64_t threads) {
  const int64_t tiles = ceil_div(p->m, kTileRows);
  one_stage(&p->run, tiles, 1);
  p->run.n = 2;
  p->run.units[1] = tile_row_blocks(*p) * ceil_div(p->n, kTileColumns);
  const int64_t rooms = build_rooms(&p->tiles.rooms, kTileRoom, threads);
  return rooms + tiles * (kTileRows * p->k * kTilePieceBytes + 1);
}
inline void place_tiles(BlockPlan* p, char* memory) {
  Rooms& rooms = p->tiles.rooms;
  rooms.memory = memory;
  p->tiles.pieces = memory + rooms.n * rooms.bytes;
  const int64_t pieces = round_up(p->m, kTileRows) * p->k * kTilePieceBytes;
  p->tiles.odd = reinterpret_cast<bool*>(p->tiles.pieces + pieces);
}

}  // namespace TT_NS
