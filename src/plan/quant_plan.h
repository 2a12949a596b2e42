// Plans of quantised arithmetic. POD, also device code.
#pragma once

#include "plan/rooms.h"
#include "plan/stages.h"

namespace TT_NS {

// Products of matrices of 8-bit integers. Packed, a is signed and b is unsigned, as the dot
// products of processors want them; the sums of their rows and columns undo that and subtract zero
// points:
//   sum (a + ca)(b - cb) = sum a b - cb sum a + ca sum b - k ca cb        modulo 2^32
// Stages: packing of b's panels and a's blocks, then tiles. With `straight`, few rows: b's columns,
// whose bytes are neighbours, are multiplied where they are; by tiles signed or not, as they are.
struct Int8Plan {
  Stages run;
  int64_t m, n, k;
  const char* a;  // [m][k], strides in elements
  const char* b;  // [k][n]
  int64_t a_row, a_k, b_k, b_col;
  bool a_unsigned, b_unsigned;
  int32_t vnni;           // (CPU) bit i: kernels of Isa i may use dot products of bytes
  bool amx;               // (CPU) kernels of AVX-512 may use tiles; quads is a multiple of 16 then
  bool straight;          // (CPU) b is not packed; quads is a multiple of 16 then, amx or not
  bool mmla;              // (CPU) products of 2 by 8 and 8 by 2 bytes are used; quads is even then
  const int32_t* a_zero;  // zero point of a's rows, a_zero_step apart; NULL: 0
  const int32_t* b_zero;  // of b's columns
  int64_t a_zero_step, b_zero_step;
  // [m][quads][4], zeros behind k
  //   amx, in kernels of AVX-512: [panels of 32 rows][quads / 16][2][16 rows][16 quads][4]
  //   amx and straight, there:    [panels of 32 rows][quads / 16][2][16 quads][16 rows][4]
  //   mmla:                       [pairs of rows][quads / 2][2][8]
  // Panels and pairs are whole. With amx and straight row m is 1 and read if sums of columns count;
  // nothing else behind the rows is read.
  int8_t* packed_a;
  // [panels][quads][kInt8Panel][4]; mmla: [panels][quads / 2][kInt8Panel][8]
  uint8_t* packed_b;
  int32_t* a_sum;  // [m] of packed_a
  int32_t* b_sum;  // [panels * kInt8Panel] of packed_b; with straight, of b
  // Without a_scale the result is int32; with it, float32:
  // sum * (a_scale[i] * b_scale[j]) + bias.
  const float* a_scale;
  const float* b_scale;
  int64_t a_scale_step, b_scale_step;
  const float* bias;  // NULL: none
  int64_t bias_row, bias_col;
  char* out;  // [m][n]
  int64_t quads;
};

constexpr int64_t kInt8Panel = 32;         // columns of a panel of b
constexpr int64_t kInt8StraightRows = 12;  // at most, with `straight` and without amx
constexpr int64_t kInt8Rows = 48;          // rows of a unit
// A unit with amx: rows, panels and their bytes, which stay in the second-level cache. With as many
// rows at most b is read where it is: packing takes longer than reading panels once per 32 rows.
constexpr int64_t kInt8AmxRows = 128;
constexpr int64_t kInt8AmxPanels = 16;
constexpr int64_t kInt8AmxBytes = 1 << 20;

TT_INLINE int64_t int8_panels(const Int8Plan& p) { return ceil_div(p.n, kInt8Panel); }
TT_INLINE int64_t int8_unit_rows(const Int8Plan& p) { return p.amx ? kInt8AmxRows : kInt8Rows; }
TT_INLINE int64_t int8_blocks(const Int8Plan& p) { return ceil_div(p.m, int8_unit_rows(p)); }
TT_INLINE int64_t int8_unit_panels(const Int8Plan& p) {
  if (!p.amx) return 1;
  const int64_t most = min(kInt8AmxPanels, kInt8AmxBytes / (kInt8Panel * p.quads * 4));
  // Not so many that few units are left.
  return clamp<int64_t>(int8_panels(p) * int8_blocks(p) / 16, 1, max<int64_t>(most, 1));
}

// Rows packed in blocks of 32 or 256 numbers, in the layouts of GGML (ggml-org/ggml, docs/gguf.md
// and ggml-common.h; d, m are float16):
//   q8_0    d, 32 int8                      x[i] = d * q[i]
//   q4_0    d, 16 bytes of two numbers      x[i] = d * ((q[i] & 15) - 8)
//                                           x[i + 16] = d * ((q[i] >> 4) - 8)
//   q4_1    d, m, 16 bytes                  x[i] = d * (q[i] & 15) + m, and as above
//   q5_0    d, 32 fifth bits, 16 bytes      x[i] = d * (q - 16), q of 5 bits
//   q5_1    d, m, 32 fifth bits, 16 bytes   x[i] = d * q + m
//   iq4_nl  as q4_0                         x[i] = d * an entry of a table of 16
//   mxfp4   exponent of 8 bits, 16 bytes    x[i] = 2^e * a number of 4 bits in floating point
// and of 256 numbers, with a scale s of their own for each 16 or 32 of them:
//   q2_k    16 bytes of s and t, 64, d, m   x[i] = d * s * q - m * t, q of 2 bits
//   q3_k    third bits, 64, 12, d           x[i] = d * (s - 32) * (q - 4), q of 3 bits
//   q4_k    d, m, 12 bytes of s and t, 128  x[i] = d * s * q - m * t, q of 4 bits
//   q5_k    d, m, 12, fifth bits, 128       likewise, q of 5 bits
//   q6_k    128, upper bits, 16 int8 s, d   x[i] = d * s * (q - 32), q of 6 bits
//   iq4_xs  d, upper bits of s, 4, 128      x[i] = d * (s - 32) * an entry of iq4_nl's table
enum BlockFormat : int32_t {
  kBlockQ8_0,
  kBlockQ4_0,
  kBlockQ4_1,
  kBlockQ5_0,
  kBlockQ5_1,
  kBlockQ2K,
  kBlockQ3K,
  kBlockQ4K,
  kBlockQ5K,
  kBlockQ6K,
  kBlockIq4Nl,
  kBlockIq4Xs,
  kBlockMxfp4
};
constexpr int64_t kBlockItems = 32;  // of q8_0 and q4_0; those of all are multiples
constexpr int64_t kMaxBlockItems = 256;
constexpr int64_t kQ8Bytes = 34, kQ4Bytes = 18;  // of a block

struct BlockLayout {
  int64_t items, bytes;
};
TT_FN BlockLayout block_layout(int32_t format) {
  switch (format) {
    case kBlockQ8_0: return {kBlockItems, kQ8Bytes};
    case kBlockQ4_0: return {kBlockItems, kQ4Bytes};
    case kBlockQ4_1: return {kBlockItems, 20};
    case kBlockQ5_0: return {kBlockItems, 22};
    case kBlockQ5_1: return {kBlockItems, 24};
    case kBlockQ2K: return {kMaxBlockItems, 84};
    case kBlockQ3K: return {kMaxBlockItems, 110};
    case kBlockQ4K: return {kMaxBlockItems, 144};
    case kBlockQ5K: return {kMaxBlockItems, 176};
    case kBlockQ6K: return {kMaxBlockItems, 210};
    case kBlockIq4Nl: return {kBlockItems, 18};
    case kBlockIq4Xs: return {kMaxBlockItems, 136};
    default: return {kBlockItems, 17};
  }
}
// Bytes of k numbers, which are whole blocks.
TT_FN int64_t packed_bytes(int32_t format, int64_t k) {
  const BlockLayout of = block_layout(format);
  return k / of.items * of.bytes;
}
// Formats that block_quantize packs; it and block_linear have loops of their own for these.
TT_FN bool is_plain_block(int32_t format) { return format <= kBlockQ4_0; }

// Sixteen int8, the first in the lowest byte: the numbers of iq4_nl and iq4_xs, and those of mxfp4
// times two.
constexpr uint64_t kIq4Low = 0xf6eaddcfbfad9881u, kIq4High = 0x7159453526190d01u;
constexpr uint64_t kMxfp4Low = 0x0c08060403020100u, kMxfp4High = 0xf4f8fafcfdfeff00u;

// Rows of input that block_linear takes; a unit is kBlockColumns rows of the weight.
constexpr int64_t kBlockRows = 8;
constexpr int64_t kBlockColumns = 16;

// (CPU) Memory of block_linear by tiles of AMX: a float32 is three bf16, whose products tiles add.
// A unit is kTileRowTiles * kTileRows rows by kTileColumns columns of the result.
constexpr int64_t kTileRows = 16;
constexpr int64_t kTileRowTiles = 16;
constexpr int64_t kTileColumns = 256;
constexpr int64_t kTilePieceBytes = 6;  // of a number in pieces
// Pieces of kMaxBlockItems numbers of two tiles of columns, then the sums of a unit.
constexpr int64_t kTileWeightBytes = 2 * kTileRows * kMaxBlockItems * kTilePieceBytes;
constexpr int64_t kTileRoom =
    kTileWeightBytes + kTileColumns * kTileRowTiles * kTileRows * int64_t(sizeof(float));
struct BlockTiles {
  char* pieces;  // of the input, its rows filled up to whole tiles
  bool* odd;     // [tiles of rows] whether pieces do not express a row; it is computed in float32
  Rooms rooms;   // kTileRoom
};

// block_quantize: packed (n, blocks of k) of input (n, k); a unit is a row. block_dequantize: out
// (n, k) of packed. block_linear: out (m, n) of input (m, k) and packed (n, blocks of k).
//
// (CPU) block_linear of one row has a stage before, whose units are runs of kDigitRun blocks, for
// formats of has_digits(): it splits the row into digits, so that products become dot products of
// bytes. A block of the row is taken as integers of 24 bits times a power of two; an integer has
// three signed digits, 65536 a + 256 b + c. Products of digits and the weight's integers are exact.
// A row is computed in float32 if the integers of a block lose more than 2^-15 of its numbers but
// the largest one, whose weight may be 0.
struct BlockPlan {
  Stages run;
  int32_t format;  // BlockFormat
  int32_t dots;    // (CPU) bit i: kernels of Isa i multiply digits, if `digits` is there
  int64_t m, n, k;
  const float* input;
  char* packed;
  const float* bias;  // (n); NULL: none
  float* out;
  // [8][planes of kBlockItems / 2 bytes a block], zeros behind the last block:
  // a, b and c of the first half of each block and of the second one: a, a, b, b, c, c; then four
  // int32, -8 times the sum of the eight integers that four bytes of nibbles are multiplied by;
  // then the scale, NaN for a block that digits cannot express. Kernels that add pairs of lanes
  // (simd/bytes.h) have their sums instead of the four, and the scales between, in their order.
  // For formats but q4_0: a, b and c of each block, -digit_offset(format) times the sum of four
  // integers for each four, then for each kGroup numbers their scale and their sum.
  int8_t* digits;  // NULL: products are computed in float32
  // Two stages: tiles of rows are split into pieces, then units. pieces NULL: without tiles.
  BlockTiles tiles;
};
TT_INLINE int64_t tile_row_blocks(const BlockPlan& p) {
  return ceil_div(p.m, kTileRowTiles * kTileRows);
}
constexpr int64_t kDigitRun = 16;  // the blocks of `digits` are a multiple
enum DigitPlane : int32_t { kOffsetPlane = 6, kGroupPlane = 8, kScalePlane = 9 };
// Formats whose integers, or those of half their bits, have at most 6 bits, so that products with
// digits fit. One row of q8_0 takes no longer in float32.
TT_FN bool has_digits(int32_t format) { return format != kBlockQ8_0; }
// Makes the integers of a format unsigned, or the upper halves of those of 8 bits.
TT_INLINE constexpr int32_t digit_offset(int32_t format) {
  switch (format) {
    case kBlockQ3K: return 4;
    case kBlockQ4_0:
    case kBlockIq4Nl:
    case kBlockIq4Xs: return 8;
    case kBlockMxfp4: return 12;
    case kBlockQ5_0: return 16;
    case kBlockQ6K: return 32;
    default: return 0;
  }
}
TT_INLINE int64_t digit_blocks(int64_t k) { return round_up(k / kBlockItems, kDigitRun); }
TT_INLINE int64_t digit_plane(int64_t k) { return digit_blocks(k) * (kBlockItems / 2); }
// Bytes of `digits`: planes and the scales.
TT_INLINE int64_t digit_bytes(int64_t k) {
  return kScalePlane * digit_plane(k) + digit_blocks(k) * int64_t(sizeof(float));
}

}  // namespace TT_NS
