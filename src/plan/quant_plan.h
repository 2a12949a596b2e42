// Plans of quantised arithmetic. POD, also device code.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

// Products of matrices of 8-bit integers. Packed, a is signed and b is unsigned, as the dot
// products of processors want them; the sums of their rows and columns undo that and subtract zero
// points:
//   sum (a + ca)(b - cb) = sum a b - cb sum a + ca sum b - k ca cb        modulo 2^32
// Stages: packing of b's panels and a's blocks, then tiles.
struct Int8Plan {
  Stages run;
  int64_t m, n, k;
  const char* a;  // [m][k], strides in elements
  const char* b;  // [k][n]
  int64_t a_row, a_k, b_k, b_col;
  bool a_unsigned, b_unsigned;
  int32_t vnni;           // (CPU) bit i: kernels of Isa i may use dot products of bytes
  bool amx;               // (CPU) kernels of AVX-512 may use tiles; quads is a multiple of 16 then
  bool mmla;              // (CPU) products of 2 by 8 and 8 by 2 bytes are used; quads is even then
  const int32_t* a_zero;  // zero point of a's rows, a_zero_step apart; NULL: 0
  const int32_t* b_zero;  // of b's columns
  int64_t a_zero_step, b_zero_step;
  // [m][quads][4], zeros behind k; with amx, room for whole tiles of 16 rows; with mmla
  // [m / 2][quads / 2][2][8] and room for an even number of rows
  int8_t* packed_a;
  uint8_t*
      packed_b;    // [panels][quads][kInt8Panel][4]; with mmla [panels][quads / 2][kInt8Panel][8]
  int32_t* a_sum;  // [m] of packed_a
  int32_t* b_sum;  // [panels * kInt8Panel] of packed_b
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

constexpr int64_t kInt8Panel = 32;  // columns of a panel of b
constexpr int64_t kInt8Rows = 48;   // rows of a unit

TT_INLINE int64_t int8_panels(const Int8Plan& p) { return ceil_div(p.n, kInt8Panel); }
TT_INLINE int64_t int8_blocks(const Int8Plan& p) { return ceil_div(p.m, kInt8Rows); }

// Rows packed in blocks of kBlockItems numbers, in the layout of GGML (ggml-org/ggml, docs/gguf.md
// and ggml-common.h):
//   q8_0  float16 scale, 32 int8                 x[i] = scale * q[i]
//   q4_0  float16 scale, 16 bytes of two numbers x[i] = scale * ((q[i] & 15) - 8)
//                                                x[i + 16] = scale * ((q[i] >> 4) - 8)
enum BlockFormat : int32_t { kQ8Blocks, kQ4Blocks };
constexpr int64_t kBlockItems = 32;
constexpr int64_t kQ8Bytes = 34, kQ4Bytes = 18;  // of a block
TT_INLINE int64_t block_bytes(int32_t format) { return format == kQ8Blocks ? kQ8Bytes : kQ4Bytes; }

// Rows of input that block_linear takes; a unit is kBlockColumns rows of the weight.
constexpr int64_t kBlockRows = 8;
constexpr int64_t kBlockColumns = 16;

// block_quantize: packed (n, k / 32 blocks) of input (n, k); a unit is a row. block_dequantize: out
// (n, k) of packed. block_linear: out (m, n) of input (m, k) and packed (n, k / 32 blocks).
//
// (CPU) block_linear of one row and q4_0 has a stage before, whose units are blocks: it splits the
// row into digits, so that products become dot products of bytes. A block of the row is taken as
// integers of 24 bits times a power of two; an integer has three signed digits,
// 65536 a + 256 b + c. The products of nibbles and digits are exact. A row is computed in float32
// if the integers of a block lose more than 2^-15 of its numbers but the largest one, whose weight
// may be 0.
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
  int8_t* digits;  // NULL: products are computed in float32
};
constexpr int64_t kDigitRun = 16;  // the blocks of `digits` are a multiple
enum DigitPlane : int32_t { kDigitPlanes = 6, kOffsetPlane = 6, kScalePlane = 7 };
TT_INLINE int64_t digit_blocks(int64_t k) { return round_up(k / kBlockItems, kDigitRun); }
TT_INLINE int64_t digit_plane(int64_t k) { return digit_blocks(k) * (kBlockItems / 2); }
// Bytes of `digits`: seven planes and the scales.
TT_INLINE int64_t digit_bytes(int64_t k) {
  return kScalePlane * digit_plane(k) + digit_blocks(k) * int64_t(sizeof(float));
}

}  // namespace TT_NS
