// MatmulPlan: c = alpha * a·b + beta * d over a nest of batch dimensions. POD, also device code.
#pragma once

#include "plan/cuda_math.h"
#include "plan/kernel.h"

namespace TT_NS {

constexpr int kMaxMatmulBatch = 62;

enum MatmulPath : int32_t {
  // Operands are copied into panels, block by block, in workspace.
  kMatmulPacked = 0,
  // Straight from the operands. A unit is kMatmulSmallCols columns of one matrix.
  kMatmulSmall = 1,
  // Few rows, one of f16 and bf16: b is read once, in the order of its memory. A unit is
  // matmul_rows_unit(plan) columns.
  kMatmulRows = 2,
  // OpenBLAS on fixed tiles.
  kMatmulBlas = 3,
  // Packed f32 and f16 by tiles of AMX (plan/matmul_pieces.h).
  kMatmulPieces = 7,
};

// A scalar in every compute type; the kernel reads the member of its own.
struct MatmulScalar {
  double re, im;
  int64_t i;
};

struct MatmulBatchDim {
  int64_t size;
  int64_t a, b, c, d;  // strides in bytes, 0 = broadcast
};

// a is (m, k), b is (k, n), c and d are (m, n). Strides of matrices count elements; they may be any
// that keep c's elements distinct. d may be c itself, with c's strides.
struct MatmulPlan {
  int64_t m, n, k;
  const char *a, *b, *d;  // d NULL: no addend, beta is ignored
  char* c;
  int64_t a_row, a_col, b_row, b_col, c_row, c_col, d_row, d_col;
  // The dtype of all four: f32 f64 c64 c128 i32 i64, or f16 bf16 (summed in f32, rounded once).
  int32_t dtype;
  int32_t path;   // MatmulPath
  bool scaled;    // alpha != 1
  uint16_t math;  // bits of CudaMath
  int32_t n_batch;
  MatmulScalar alpha, beta;
  int64_t batch;    // number of matrices: the product of batch_dim[].size
  int64_t n_units;  // small and rows paths
  void* workspace;  // matmul_workspace_bytes(plan) of matmul_split.h, 64-byte aligned; NULL if 0
  // dimension 0 is the innermost; the rest left uninitialised
  MatmulBatchDim batch_dim[kMaxMatmulBatch];
};

// --- blocking: fixed, so that a result never depends on the instruction set's panel shape or the
// number of threads ---
constexpr int64_t kMatmulRowBlock = 168;  // rows of a packed block of a, at most
// Columns of a packed block of b: a multiple of every panel width.
constexpr int64_t kMatmulColBlock = 128;
constexpr int64_t kMatmulMaxRows = 4032;  // rows and columns packed at once
constexpr int64_t kMatmulMaxCols = 4096;
// f16, bf16: rows and columns that share the f32 sums in the workspace.
constexpr int64_t kMatmulHalfMax = 1024;
constexpr int64_t kMatmulSmallMax = 256;    // small path: largest m, n and k
constexpr int64_t kMatmulSmallDepth = 128;  // small path: largest k if b's rows are not contiguous
// Small path, f32: the most k positions whose products are added in one chain, and the largest
// m * n whose longer sums are two chains; in the packed path chains cost less.
constexpr int64_t kMatmulSmallChain = 192;
constexpr int64_t kMatmulSmallTwoChains = 32768;
constexpr int64_t kMatmulSmallCols = 64;
constexpr int64_t kMatmulRowsMax = 8;      // rows path: largest m
constexpr int64_t kMatmulDotRowsMax = 16;  // the same if b's columns are contiguous
constexpr int64_t kMatmulHalfRows = 8;     // rows path of f16 and bf16
// Columns of a unit of the rows path, if they are contiguous.
constexpr int64_t kMatmulRowsUnit = 64;
// Otherwise: bytes of the unit's sums, and columns of halves, a page of b at most.
constexpr int64_t kMatmulRowsSums = 16384;
constexpr int64_t kMatmulHalfCols = 2048;

TT_INLINE constexpr bool matmul_is_half(int32_t dtype) {
  return dtype == TT_F16 || dtype == TT_BF16;
}
TT_INLINE constexpr bool matmul_is_complex(int32_t dtype) {
  return dtype == TT_C64 || dtype == TT_C128;
}
// Size in bytes of an element in the compute type.
TT_INLINE constexpr int64_t matmul_compute_size(int32_t dtype) {
  return matmul_is_half(dtype) ? 4 : kItemSize[dtype];
}
// Number of k positions that one pass over packed panels adds.
TT_INLINE constexpr int64_t matmul_depth(int32_t dtype) {
  if (matmul_is_half(dtype)) return 768;
  if (dtype == TT_C64) return 256;
  if (dtype == TT_C128) return 96;
  return matmul_compute_size(dtype) == 8 ? 192 : 512;
}
TT_INLINE constexpr int64_t matmul_min(int64_t x, int64_t y) { return x < y ? x : y; }
TT_INLINE constexpr int64_t matmul_ceil(int64_t x, int64_t unit) { return ceil_div(x, unit); }

// Rows path: returns whether each column of b is one run of memory, so that c's elements are dot
// products.
TT_INLINE constexpr bool matmul_rows_by_dot(const MatmulPlan& p) {
  return p.b_row == 1 && (p.b_col != 1 || p.n == 1);
}
TT_INLINE constexpr int64_t matmul_rows_unit(const MatmulPlan& p) {
  if (matmul_rows_by_dot(p)) return kMatmulRowsUnit;
  if (matmul_is_half(p.dtype)) {
    if (p.m <= 2) return kMatmulHalfCols;
    return p.m <= 4 ? kMatmulHalfCols / 2 : kMatmulHalfCols / 4;
  }
  const int64_t row_bytes = p.m <= 4 ? 4096 : kMatmulRowsSums / kMatmulRowsMax;
  return row_bytes / kItemSize[p.dtype];
}

// How bf16 is multiplied: widened to f32, by groups of k positions (pairs with AVX512_BF16, quads
// with ARM's BFMMLA), or by tiles (AMX).
enum Bf16Products : int32_t { kBf16Widened, kBf16Groups, kBf16Tiles };
constexpr int64_t kMatmulAmxDepth = 32;  // tiles are used from this many k positions on
// Above this many rows they replace the rows path; the second number is for its dot products.
constexpr int64_t kMatmulAmxRowsMax = 4;
constexpr int64_t kMatmulAmxDotsMax = 6;

// A block of one pass of the packed path: columns [j0, j0 + nj), rows [i0, i0 + ni) and positions
// [k0, k0 + nk) of the summed dimension k.
struct MatmulBlock {
  const MatmulPlan* plan;
  const char *a, *b, *d;  // of this matrix of the batch
  char* c;
  int64_t i0, ni, j0, nj, k0, nk;
  char* a_pack;     // panels of rows [r0, r1) start at element (r0 - i0) * nk
  char* b_pack;     // panels of columns [c0, c1) at (c0 - j0) * nk
  char* sum;        // [ni][matmul_sum_pitch(nj)] f32, only if f16 or bf16 and k > depth; else NULL
  int32_t factors;  // dtype of a and b: the plan's, or f16 or bf16 whose sums go to a c of f32
  Bf16Products bf16;
  bool copy_b;  // b's whole panels are packed by the tiles of row block 0, which run first
  // Row blocks are equal pieces, column blocks kMatmulColBlock wide. Units of matmul_pack: the row
  // blocks, then the column blocks; of matmul_tiles: those of row block 0, then [column block][the
  // other row blocks].
  TT_INLINE int64_t row_blocks() const { return matmul_ceil(ni, kMatmulRowBlock); }
  TT_INLINE int64_t col_blocks() const { return matmul_ceil(nj, kMatmulColBlock); }
  struct Place {
    int64_t row, col;
  };
  TT_INLINE Place tile_unit(int64_t u) const {
    const int64_t cols = col_blocks();
    const int64_t more = row_blocks() - 1;
    if (u < cols) return {0, u};
    return {1 + (u - cols) % more, (u - cols) / more};
  }
};

// Row pitch of MatmulBlock::sum.
TT_INLINE constexpr int64_t matmul_sum_pitch(int64_t cols) { return matmul_ceil(cols, 64) * 64; }

// Start of the i-th of n nearly equal pieces of [0, size).
TT_INLINE constexpr int64_t matmul_piece(int64_t size, int64_t n, int64_t i) {
  return size * i / n;
}

}  // namespace TT_NS
