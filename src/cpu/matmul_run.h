// Runs a MatmulPlan on the CPU: picks the units of its path and runs them on the pool.
#pragma once

#include "base/pool.h"
#include "plan/matmul_build.h"
#include "plan/matmul_split.h"

namespace TT_NS {

// Sets the plan's path to OpenBLAS or to that of tiles where these are faster. Must precede
// matmul_workspace_bytes.
void matmul_pick_provider(MatmulPlan* p, Isa isa) noexcept;

// Called on the calling thread between parts of a long matmul; false stops them.
using MatmulGoOn = bool (*)() noexcept;

// p.workspace holds matmul_workspace_bytes(p). A NULL pool means serial. Returns 0, a tt_status, or
// kKernelEnded if go_on has stopped it. matmul_driver, the kernel matmul of the CPU, calls it with
// the ctx's instruction set, pool and poll.
int32_t run_matmul(const MatmulPlan& p, Isa isa, Pool* pool, MatmulGoOn go_on = nullptr) noexcept;
int32_t matmul_driver(const void* plan, int64_t begin, int64_t end) noexcept;

// ---- b packed beforehand ----

// More paths of MatmulPlan, for plans of graphs: kMatmulPackB leaves the panels of b at c,
// kMatmulPackedB is kMatmulPacked with panels at b.
constexpr int32_t kMatmulPackB = 4;
constexpr int32_t kMatmulPackedB = 5;

// Whether a product, whose path is set, may do with panels of b.
inline bool matmul_can_pack_b(const MatmulPlan& p) {
  const bool plain = p.dtype == TT_F32 || p.dtype == TT_F64;
  return plain && p.path == kMatmulPacked && p.batch == 1 && p.m > 0 && p.n > 0 && p.k > 0 &&
         !matmul_split(p).tasks;
}
// Bytes of the panels of columns [0, column): column begins a piece of matmul_layout(), or is n.
inline int64_t matmul_panel_bytes(const MatmulPlan& p, int64_t column) {
  const int64_t n_j = matmul_ceil(p.n, matmul_layout(p, false).max_cols);
  int64_t columns = 0;
  for (int64_t j = 0; j < n_j && matmul_piece(p.n, n_j, j) < column; j++)
    columns += round_up(matmul_piece(p.n, n_j, j + 1) - matmul_piece(p.n, n_j, j), 64);
  return columns * p.k * matmul_compute_size(p.dtype);
}

// The same of products by tiles of pieces: kMatmulPackPieces leaves a MatmulPackedPieces of b at c,
// in matmul_packed_pieces_bytes(); kMatmulPackedPieces is kMatmulPieces with it at b.
constexpr int32_t kMatmulPackPieces = 8;
constexpr int32_t kMatmulPackedPieces = 9;
struct MatmulPackedPieces {
  const char* b;       // as numbers
  char* panels;        // [blocks of k][panels of 32 columns of b]
  PieceRange* ranges;  // theirs
};
constexpr int64_t kMatmulPackedPiecesHead = 64;

inline bool matmul_can_pack_pieces(const MatmulPlan& p) {
  return p.path == kMatmulPieces && p.batch == 1 && matmul_pieces_turned(p) &&
         !matmul_split(p).tasks;
}
// Bytes of the panels, which the ranges follow.
inline int64_t matmul_piece_panels_bytes(const MatmulPlan& p) {
  return round_up(p.n, kPiecePanel) * round_up(p.k, kPiecePanel) * matmul_number_bytes(p.dtype);
}
inline int64_t matmul_packed_pieces_bytes(const MatmulPlan& p) {
  const int64_t ranges = ceil_div(p.n, kPiecePanel) * ceil_div(p.k, kPiecePanel);
  return kMatmulPackedPiecesHead + matmul_piece_panels_bytes(p) +
         ranges * int64_t(sizeof(PieceRange));
}

// ---- work on rows that are finished ----

// A path of plans of graphs, too: a points to a MatmulThen, whose product is computed; fn is called
// on each block of rows that is complete. m, n and batch are 1.
constexpr int32_t kMatmulThen = 6;
// Rows [begin, end) of c, those of all matrices counted through. Called on the thread that has
// computed them; returns 0 or a tt_status.
using MatmulFinishFn = int32_t (*)(const void* user, int64_t begin, int64_t end) noexcept;
struct MatmulThen {
  const MatmulPlan* product;  // matmul_has_rows
  MatmulFinishFn fn;
  const void* user;
};

// Whether c is a dense array whose rows are finished block by block.
inline bool matmul_has_rows(const MatmulPlan& p) {
  const bool packed = p.path == kMatmulPacked || p.path == kMatmulPackedB;
  if (!packed || (p.dtype != TT_F32 && p.dtype != TT_F64)) return false;
  if (p.batch < 1 || p.m < 1 || p.n < 1 || p.k < 1 || p.c_col != 1 || p.c_row != p.n) return false;
  if (p.n > kMatmulMaxCols) return false;
  MatmulPlan own = p;
  own.path = kMatmulPacked;
  if (matmul_split(own).tasks) return false;
  int64_t step = p.m * p.n * kItemSize[p.dtype];
  for (int32_t i = 0; i < p.n_batch; i++) {
    if (p.batch_dim[i].size > 1 && p.batch_dim[i].c != step) return false;
    step *= p.batch_dim[i].size;
  }
  return true;
}

// Sets how matrices of bf16 are multiplied from kBf16Isa on, a Bf16Products, for tests; -1: as is
// fastest. Small matrices do without tiles.
void assume_bf16_products(int32_t products) noexcept;

}  // namespace TT_NS
