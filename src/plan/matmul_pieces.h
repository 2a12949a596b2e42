// Products of float32 and float16 by tiles of AMX, as sums of bf16 (plan/pieces.h): how they are
// cut. CPU only.
//
//   for columns and rows of a block, for positions of k:
//     pack b's columns, 6 or 4 bytes a number, which stay in the second-level cache
//     for each unit, unit_rows x unit_cols: for each panel of 32 rows
//       pack it while the panel before is multiplied
//       for each chain of at most 128 or 256 positions: for each panel of 32 columns: 32 x 32 sums
//
// Chains are added in their order, which depends on the shape alone. Panels of 32 rows are left
// out, and multiplied by vectors afterwards, where their numbers and those of all columns of the
// block have no pieces. A plan of a graph packs panels of rows that are constant once.
#pragma once

#include "plan/matmul_plan.h"
#include "plan/pieces.h"
#include "plan/rooms.h"

namespace TT_NS {

constexpr int64_t kPiecePanel = 32;      // rows or columns
constexpr int64_t kPieceDepth = 512;     // positions of k of a block, at most
constexpr int64_t kPieceMaxRows = 4096;  // rows of a block, at most
constexpr int64_t kPieceMaxRooms = 32;

// Of a dtype of factors.
TT_INLINE constexpr int64_t matmul_pieces_of(int32_t factors) { return factors == TT_F16 ? 2 : 3; }
TT_INLINE constexpr int64_t matmul_number_bytes(int32_t factors) {
  return 2 * matmul_pieces_of(factors);
}
// Positions of a chain, at most, whose rows stay in the first-level cache. Where results are
// float16, the errors of longer sums do not count.
TT_INLINE constexpr int64_t matmul_piece_chain(int32_t factors) {
  return factors == TT_F16 ? 256 : 128;
}
// Columns of a block, at most.
TT_INLINE constexpr int64_t matmul_piece_cols(int32_t factors) {
  return factors == TT_F16 ? 512 : 256;
}

struct MatmulPieces {
  const MatmulPlan* plan;
  int32_t factors;        // dtype of a and b: f32 or f16
  const char *a, *b, *d;  // of this matrix of the batch
  char* c;
  int64_t i0, ni, j0, nj, k0, nk;
  int64_t unit_rows, unit_cols, pack_cols;  // multiples of kPiecePanel
  char* b_pack;                             // [tiles of 16 columns][steps][pieces]
  float* sum;   // of the blocks of k before: [panels of rows][panels of columns][32][32], or NULL
  Rooms rooms;  // of units: two panels of rows, then 32 x 32 sums for each panel of columns
  PieceRange* a_ranges;  // [units of columns][panels of rows], of all positions up to these
  PieceRange* b_ranges;  // of the panels of columns, of these positions
  PieceRange b_range;    // of the block of columns, of all positions up to these
  bool* odd;             // panels of rows that are left out
  // The panels of rows of these positions, packed beforehand, and their ranges; or NULL.
  char* packed_rows;
  PieceRange* packed_ranges;

  TT_INLINE int64_t steps() const { return ceil_div(nk, kPiecePanel); }
  TT_INLINE int64_t panel_bytes() const {
    return steps() * kPiecePanel * kPiecePanel * matmul_number_bytes(factors);
  }
  TT_INLINE int64_t row_panels() const { return ceil_div(ni, kPiecePanel); }
  TT_INLINE int64_t col_panels() const { return ceil_div(nj, kPiecePanel); }
  TT_INLINE int64_t row_units() const { return ceil_div(ni, unit_rows); }
  TT_INLINE int64_t pack_units() const { return ceil_div(nj, pack_cols); }
  TT_INLINE int64_t units() const { return row_units() * ceil_div(nj, unit_cols); }
};

// Rows, columns and positions of a block, at most, and offsets of its memory.
struct MatmulPiecesLayout {
  int64_t rows, cols, depth;
  int64_t rooms, room_bytes;
  int64_t sum, ranges, bytes;  // the columns are at 0, then the rooms; sum is 0 if there is none
};

// Whether the transposed product is computed: the packed operand of rows, which should be the
// larger one, is then one run of memory for each row.
TT_INLINE bool matmul_pieces_turned(const MatmulPlan& p) {
  return p.b_row == 1 && (p.n >= 2 * p.m || p.a_col != 1);
}

namespace matmul_detail {

TT_INLINE MatmulPiecesLayout pieces_layout(int32_t factors, int64_t m, int64_t n, int64_t k) {
  const int64_t bytes = matmul_number_bytes(factors);
  const auto piece_of = [](int64_t size, int64_t most) TT_INLINE_BODY {
    return round_up(ceil_div(size, ceil_div(size, most)), kPiecePanel);
  };
  MatmulPiecesLayout l = {};
  l.rows = piece_of(m, kPieceMaxRows);
  l.cols = piece_of(n, matmul_piece_cols(factors));
  l.depth = piece_of(k, kPieceDepth);
  const int64_t row_panels = l.rows / kPiecePanel;
  const int64_t col_panels = l.cols / kPiecePanel;
  const int64_t sums = kPiecePanel * int64_t(sizeof(float));  // of a column
  l.room_bytes = 2 * kPiecePanel * l.depth * bytes + l.cols * sums;
  l.rooms = l.cols * l.depth * bytes;
  int64_t at = l.rooms + min(kPieceMaxRooms, row_panels * col_panels) * l.room_bytes;
  if (k > l.depth) {
    l.sum = at;
    at += l.rows * l.cols * int64_t(sizeof(float));
  }
  l.ranges = at;
  at += (row_panels + 1) * col_panels * int64_t(sizeof(PieceRange)) + row_panels;
  l.bytes = round_up(at, int64_t(64));
  return l;
}

}  // namespace matmul_detail

// Of the product, or of the transposed one, of k positions.
TT_INLINE MatmulPiecesLayout matmul_pieces_layout(const MatmulPlan& p, int32_t factors, int64_t k) {
  if (matmul_pieces_turned(p)) return matmul_detail::pieces_layout(factors, p.n, p.m, k);
  return matmul_detail::pieces_layout(factors, p.m, p.n, k);
}
// Enough for any part of k: blocks of kPieceDepth positions, and sums of several.
TT_INLINE int64_t matmul_pieces_bytes(const MatmulPlan& p) {
  const int64_t k = p.k > kPieceDepth ? 2 * kPieceDepth : p.k;
  return matmul_pieces_layout(p, p.dtype, k).bytes;
}

}  // namespace TT_NS
