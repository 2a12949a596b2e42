// Products of bf16 by tiles of AMX: how they are cut into blocks that suit the caches. CPU only.
//
//   for columns, rows and positions of k of a block:
//     pack b's columns, and a's rows unless their elements along k are neighbours
//     for each unit, unit_rows x unit_cols: its packed columns stay in the second-level cache
//       for each panel of 32 rows, for each pass along k: the panel stays in the first-level cache
//         for each panel of 32 columns: a block of 32 x 32 sums
//
// A sum is one chain along k, however that is cut.
#pragma once

#include "plan/matmul_plan.h"

namespace TT_NS {

constexpr int64_t kTilesPanel = 32;                  // rows or columns of a panel: two tiles
constexpr int64_t kTilesStep = 32;                   // positions of k of a tile
constexpr int64_t kTilesPass = 640;                  // positions of a pass, at most
constexpr int64_t kTilesDepth = 2048;                // positions of a block, at most
constexpr int64_t kTilesColBytes = 1 << 20;          // of the packed columns of a unit, at most
constexpr int64_t kTilesMaxCols = 512;               // of a unit
constexpr int64_t kTilesFewRows = 256;               // too few for the packed columns to pay
constexpr int64_t kTilesPackCols = 2 * kTilesPanel;  // columns of a unit of packing

struct MatmulTiles {
  const MatmulPlan* plan;
  const char *a, *b, *d;  // of this matrix of the batch
  char* c;
  int64_t i0, ni, j0, nj, k0, nk;
  int64_t unit_rows, unit_cols;  // multiples of kTilesPanel
  char* b_pack;                  // [tiles of 16 columns][steps][16 pairs of k][16 columns]
  char* a_pack;                  // [panels][steps][2][16 rows][32 k]; NULL: units pack their rows
  char* sum;                     // f32 [ni / 32][nj / 32][32][32], if k has more blocks; else NULL
  char* scratch;                 // unit_bytes for each unit: a panel of a, then sums of 32 rows so
  int64_t unit_bytes;
  bool packs_a;  // the first units of packing are row blocks
  bool rounds;   // AVX512_BF16 converts sums; emulated tiles may be without it

  TT_INLINE int64_t steps() const { return ceil_div(nk, kTilesStep); }
  TT_INLINE int64_t row_blocks() const { return ceil_div(ni, unit_rows); }
  TT_INLINE int64_t col_blocks() const { return ceil_div(nj, unit_cols); }
  TT_INLINE int64_t pack_units() const {
    return (packs_a ? row_blocks() : 0) + ceil_div(nj, kTilesPackCols);
  }
};

// Rows, columns and positions of a block, and offsets of its memory behind the packed columns.
struct MatmulTilesLayout {
  int64_t rows, cols, depth;
  int64_t unit_rows, unit_cols, unit_bytes;
  int64_t a_pack, sum, scratch;  // a_pack or sum is 0 if there is none
};

namespace matmul_detail {

// depth: of a block, at most.
TT_INLINE MatmulTilesLayout tiles_layout(const MatmulPlan& p, int64_t bytes, int64_t threads,
                                         int64_t depth) {
  MatmulTilesLayout l = {};
  const int64_t m = round_up(p.m, kTilesPanel);
  const int64_t n = round_up(p.n, kTilesPanel);
  const int64_t blocks = ceil_div(p.k, depth);
  l.depth = round_up(ceil_div(p.k, blocks), kTilesStep);
  const int64_t wide = clamp(kTilesColBytes / (2 * l.depth), kTilesPanel, kTilesMaxCols);
  const int64_t most = wide / kTilesPanel * kTilesPanel;
  l.cols = round_up(ceil_div(n, ceil_div(n, most)), kTilesPanel);
  l.unit_cols = l.cols;
  l.unit_rows = m >= 512 ? 4 * kTilesPanel : 2 * kTilesPanel;
  if (m <= 2 * kTilesPanel) l.unit_rows = kTilesPanel;
  // Where rows are few, threads share the columns.
  const int64_t parts = threads > 1 ? ceil_div(2 * threads, ceil_div(m, l.unit_rows)) : 1;
  if (parts > 1) l.unit_cols = round_up(ceil_div(l.cols, parts), kTilesPanel);
  if (threads > 8) l.cols = min(n, l.cols * (threads / 8));

  const bool packs = p.a_col != 1;
  const int64_t row_sums = blocks > 1 ? l.cols * int64_t(sizeof(float)) : 0;
  if (!packs) l.unit_bytes = kTilesPanel * l.depth * 2;
  if (l.depth > kTilesPass) l.unit_bytes += kTilesPanel * l.unit_cols * int64_t(sizeof(float));
  const int64_t of_b = l.cols * l.depth * 2;
  const int64_t of_row = (packs ? l.depth * 2 : 0) + row_sums;
  const int64_t of_row_block = ceil_div(l.cols, l.unit_cols) * l.unit_bytes;
  const auto needed = [=](int64_t rows) {
    return of_b + rows * of_row + ceil_div(rows, l.unit_rows) * of_row_block;
  };
  l.rows = m;
  if (needed(m) > bytes) {
    const int64_t row_blocks = (bytes - of_b) / (l.unit_rows * of_row + of_row_block);
    l.rows = max<int64_t>(row_blocks, 0) * l.unit_rows;
  }
  int64_t at = of_b;
  if (packs) l.a_pack = at;
  at += packs ? l.rows * l.depth * 2 : 0;
  if (row_sums) l.sum = at;
  l.scratch = at + l.rows * row_sums;
  return l;
}

}  // namespace matmul_detail

// bytes: of the workspace. rows is 0 if they do not suffice, whatever the number of threads.
TT_INLINE MatmulTilesLayout matmul_tiles_layout(const MatmulPlan& p, int64_t bytes,
                                                int64_t threads) {
  MatmulTilesLayout l = matmul_detail::tiles_layout(p, bytes, threads, kTilesDepth);
  const bool many = l.rows >= p.m || l.rows >= kTilesFewRows;
  if (!many && threads > 1) l = matmul_detail::tiles_layout(p, bytes, 1, kTilesDepth);
  // Beside few columns there is room for shorter blocks only.
  return l.rows ? l : matmul_detail::tiles_layout(p, bytes, 1, kTilesPass);
}

}  // namespace TT_NS
