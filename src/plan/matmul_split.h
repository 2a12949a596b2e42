// Splits a matmul whose result has too few units for the threads into parts: pieces of k, and the
// matrices of the batch.
#pragma once

#include "plan/matmul_pieces.h"

namespace TT_NS {

// Depends on the shape only. Parts are [piece][unit of the path]; a unit of the packed path is one
// matrix of the batch. With several pieces, their sums are stored in the workspace,
// [piece][batch][m][n] of the computed type, and are added in the order of the pieces.
struct MatmulSplit {
  int64_t depth;   // positions of k per piece
  int64_t pieces;  // 1: the parts store results
  int64_t units;   // parts per piece
  int64_t tasks;   // 0: not split. Packed path: each task has its own panels in the workspace
  int64_t flops;   // per task
};

// Sizes in bytes of the panels and sums of a block, and the maximum number of rows and columns that
// share them.
struct MatmulLayout {
  int64_t max_rows, max_cols;
  int64_t a_bytes, b_bytes, sum_bytes;
  TT_INLINE int64_t bytes() const { return a_bytes + b_bytes + sum_bytes; }
};

constexpr int64_t kMatmulTaskFlops = 1 << 20;  // about 5 to 10 µs
// Minimum positions of k per piece; adding a piece's sums costs as much as 50 positions.
constexpr int64_t kMatmulMinDepth = 2048;
constexpr int64_t kMatmulMaxParts = 32;          // number of parts up to which more pieces are made
constexpr int32_t kMatmulMaxTasks = 32;          // bits of a word
constexpr int64_t kMatmulTasksBytes = 16 << 20;  // of panels, if 8 tasks fit

// Bytes of the sums of one piece.
TT_INLINE int64_t matmul_piece_bytes(const MatmulPlan& p) {
  return p.batch * p.m * p.n * matmul_compute_size(p.dtype);
}

// Whether the path packs both operands of a part on the thread or threads that multiply them.
TT_INLINE bool matmul_is_packed(const MatmulPlan& p) {
  return p.path == kMatmulPacked || p.path == kMatmulPieces;
}

// several: there are several pieces with separate sums.
TT_INLINE MatmulLayout matmul_layout(const MatmulPlan& p, bool several) {
  const int64_t depth = matmul_min(p.k, matmul_depth(p.dtype));
  const int64_t size = matmul_compute_size(p.dtype);
  const bool sums = matmul_is_half(p.dtype) && p.k > depth && !several;
  MatmulLayout l;
  l.max_rows = matmul_min(p.m, sums ? kMatmulHalfMax : kMatmulMaxRows);
  l.max_cols = matmul_min(p.n, sums ? kMatmulHalfMax : kMatmulMaxCols);
  const int64_t room = matmul_is_half(p.dtype) ? round_up(depth, kMatmulAmxDepth) : depth;
  l.a_bytes = matmul_ceil(l.max_rows * room * size, 64) * 64;
  l.b_bytes = matmul_ceil(l.max_cols, 64) * 64 * room * size * (matmul_is_complex(p.dtype) ? 2 : 1);
  l.sum_bytes = sums ? l.max_rows * matmul_sum_pitch(l.max_cols) * 4 : 0;
  if (p.path == kMatmulPieces) {
    // Vectors multiply in the same memory what has no pieces, as it is or transposed.
    l.b_bytes += 64 * room * size;
    if (sums) l.sum_bytes = matmul_sum_pitch(l.max_rows) * matmul_sum_pitch(l.max_cols) * 4;
    l.sum_bytes = max(l.sum_bytes, matmul_pieces_bytes(p) - l.a_bytes - l.b_bytes);
  }
  return l;
}

namespace matmul_detail {

// Splits k into pieces of at least min_depth positions; as many as make `parts` parts of `units`
// units.
TT_INLINE void cut_depth(MatmulSplit* s, int64_t k, int64_t units, int64_t min_depth,
                         int64_t parts) {
  min_depth = max(kMatmulMinDepth, min_depth);
  const int64_t pieces = matmul_min(matmul_ceil(parts, units), k / min_depth);
  s->units = units;
  if (pieces < 2) return;
  s->depth = matmul_ceil(matmul_ceil(k, pieces), 512) * 512;
  s->pieces = matmul_ceil(k, s->depth);
}

// Each part of the packed path runs on one thread, which pays off if a single matrix has few
// units.
TT_INLINE void split_packed(const MatmulPlan& p, MatmulSplit* s) {
  // Flops per k position; packing an element costs about as much as 16.
  const int64_t step_flops = 2 * p.m * p.n + 16 * (p.m + p.n);
  const int64_t own = matmul_ceil(p.m, kMatmulRowBlock) * matmul_ceil(p.n, kMatmulColBlock);
  const int64_t tasks = p.batch * p.k * step_flops / kMatmulTaskFlops;
  if (tasks < 4 || own > 8) return;
  cut_depth(s, p.k, p.batch, kMatmulTaskFlops / 2 / step_flops, kMatmulMaxParts);
  if (s->pieces * p.batch < 2 * own) return void(s->pieces = 1);
  const int64_t room = kMatmulTasksBytes / matmul_layout(p, s->pieces > 1).bytes();
  s->tasks = matmul_min(matmul_min(tasks, s->pieces * p.batch),
                        matmul_min(max<int64_t>(8, room), kMatmulMaxTasks));
  s->flops = p.batch * p.k * step_flops / s->tasks;
}

// Adds pieces to the existing units. Reading b takes as long as 8 flops per element. Sums of f16
// and bf16 are not cut: the rows path rounds them.
TT_INLINE void split_rows(const MatmulPlan& p, MatmulSplit* s) {
  if (matmul_is_half(p.dtype)) return;
  const int64_t step_flops = 8 * p.n * p.batch;
  if (p.n_units >= 16 || p.k * step_flops < kMatmulTaskFlops) return;
  cut_depth(s, p.k, p.n_units, kMatmulTaskFlops / 4 / step_flops, 2 * kMatmulMaxParts);
  if (s->pieces > 1) {
    s->tasks = p.n_units * s->pieces;
    s->flops = p.k * step_flops / s->tasks;
  }
}

}  // namespace matmul_detail

TT_INLINE MatmulSplit matmul_split(const MatmulPlan& p) {
  MatmulSplit s = {p.k, 1, 1, 0, 0};
  if (matmul_is_packed(p)) matmul_detail::split_packed(p, &s);
  else if (p.path == kMatmulRows && p.k >= 2 * kMatmulMinDepth) matmul_detail::split_rows(p, &s);
  return s;
}

TT_INLINE int64_t matmul_workspace_bytes(const MatmulPlan& p) {
  if (p.path == kMatmulSmall || p.path == kMatmulBlas || p.batch == 0 || p.m == 0 || p.n == 0 ||
      p.k == 0)
    return 0;
  const MatmulSplit s = matmul_split(p);
  const int64_t sums = s.pieces > 1 ? matmul_ceil(s.pieces * matmul_piece_bytes(p), 64) * 64 : 0;
  if (!matmul_is_packed(p)) return sums;
  return sums + max<int64_t>(s.tasks, 1) * matmul_layout(p, s.pieces > 1).bytes();
}

}  // namespace TT_NS
