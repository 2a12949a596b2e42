// Builds the plans of the kernels over rows.
#pragma once

#include "plan/row_plan.h"

namespace TT_NS {

// Units of one row that make a task of about 64K elements.
inline int64_t row_grain(int64_t row_elements) {
  const int64_t g = 65536 / (row_elements + 1);
  return g < 1 ? 1 : g;
}

inline void one_stage(Stages* s, int64_t units, int64_t grain) {
  for (int32_t i = 0; i < kMaxStages; i++) {
    s->units[i] = 0;
    s->grain[i] = 1;
  }
  s->units[0] = units;
  s->grain[0] = grain;
  s->n = 1;
  s->stage = 0;
}

// Elements of dim in a chunk of one of `units` rows, or groups of `width` columns: dim unless these
// are few and long. At most kMostChunks, since each may add up what the others left.
inline int64_t row_chunk(int64_t units, int64_t dim, int64_t width) {
  const int64_t least = 32768 / width;
  const int64_t part = ceil_div(dim, kMostChunks);
  const int64_t chunk = (max(part, least) + 15) / 16 * 16;
  return units >= 32 || dim < 2 * chunk ? dim : chunk;
}

// Fills all but the pointers; rows are not cut.
inline void build_softmax(SoftmaxPlan* p, int32_t dtype, int64_t outer, int64_t dim,
                          int64_t inner) {
  p->dtype = dtype;
  p->outer = outer;
  p->dim = dim;
  p->inner = inner;
  p->n_tiles = inner == 1 ? 1 : ceil_div(inner, kRowTile);
  p->chunk = dim;
  p->n_chunks = 1;
  p->parts = nullptr;
  one_stage(&p->run, dim ? outer * p->n_tiles : 0, row_grain(dim * min(inner, kRowTile)));
}
// After it: cuts rows that are few and long. Sizes are not 0.
inline void split_softmax(SoftmaxPlan* p) {
  const int64_t units = p->outer * p->n_tiles;
  const int64_t width = min(p->inner, kRowTile);
  p->chunk = row_chunk(units, p->dim, width);
  p->n_chunks = ceil_div(p->dim, p->chunk);
  if (p->n_chunks == 1) return;
  one_stage(&p->run, units * p->n_chunks, row_grain(p->chunk * width));
  p->run.n = 3;
  p->run.units[1] = units;
  p->run.units[2] = p->run.units[0];
  p->run.grain[2] = p->run.grain[0];
}
inline int64_t softmax_workspace_bytes(const SoftmaxPlan* p) {
  return p->n_chunks > 1 ? 2 * p->outer * p->inner * (p->n_chunks + 1) * 8 : 0;
}

// Fills all but the pointers.
inline void build_scan(ScanPlan* p, int32_t dtype, int64_t outer, int64_t dim, int64_t inner) {
  p->dtype = dtype;
  p->outer = outer;
  p->dim = dim;
  p->inner = inner;
  p->n_tiles = ceil_div(inner, kRowTile);
  const int64_t units = outer * p->n_tiles;
  const int64_t width = min(inner, kRowTile);
  p->chunk = row_chunk(units, dim, width);
  p->n_chunks = dim ? ceil_div(dim, p->chunk) : 0;
  const int64_t all = units * p->n_chunks;
  const int64_t grain = row_grain(p->chunk * width);
  one_stage(&p->run, p->n_chunks > 1 ? all : 0, grain);
  p->run.n = 2;
  p->run.units[1] = all;
  p->run.grain[1] = grain;
}
inline int64_t scan_workspace_bytes(const ScanPlan* p) {
  return p->run.units[0] ? p->outer * p->n_chunks * p->inner * 16 : 0;
}

// Columns of a tile: kRowTile, or less where that leaves threads idle. Threads that write closer to
// each other than 128 bytes (c64: 256) take the lines from each other, and two write c128 no faster
// than one: measured on Zen 5.
inline int64_t cumprod_width(int32_t dtype, int64_t outer, int64_t dim, int64_t inner,
                             int64_t threads) {
  constexpr int64_t kLeast = 32768;  // elements of a tile
  const int64_t tiles = ceil_div(inner, kRowTile);
  const int64_t least = dtype == TT_C64 ? 32 : 128 / kItemSize[dtype];
  if (threads == 1 || dtype == TT_C128 || inner < kNarrowProducts || outer * tiles >= 4 * threads)
    return kRowTile;
  const int64_t widths = ceil_div(inner, least);
  const int64_t fit = dim * inner / kLeast;
  int64_t parts = ceil_div(threads, outer);
  parts = min(parts, fit);
  if (parts < tiles) parts = tiles;
  const int64_t width = ceil_div(widths, parts) * least;
  return width < kRowTile ? width : kRowTile;
}
// Fills all but the pointers. Sizes are not 0.
inline void build_cumprod(CumprodPlan* p, int32_t dtype, int64_t outer, int64_t dim, int64_t inner,
                          int64_t threads) {
  p->dtype = dtype;
  p->outer = outer;
  p->dim = dim;
  p->inner = inner;
  p->width = cumprod_width(dtype, outer, dim, inner, threads);
  p->n_tiles = ceil_div(inner, p->width);
  const int64_t units = outer * p->n_tiles;
  const int64_t width = min(inner, p->width);
  p->chunk = inner >= kNarrowProducts ? dim : row_chunk(units, dim, width);
  p->n_chunks = ceil_div(dim, p->chunk);
  const int64_t all = units * p->n_chunks;
  const int64_t grain = row_grain(p->chunk * width);
  const bool cut = p->n_chunks > 1;
  p->alone = cut && threads == 1;
  one_stage(&p->run, cut && !p->alone ? all : 0, grain);
  p->run.n = 3;
  p->run.units[1] = cut ? units : 0;
  p->run.units[2] = p->alone ? 0 : all;
  p->run.grain[2] = grain;
}
// [outer][n_chunks][inner] of kCumprodPart bytes, and of complex numbers
// [outer][n_chunks][blocks][inner] products.
inline int64_t cumprod_workspace_bytes(const CumprodPlan* p) {
  const int64_t blocks = p->dtype == TT_C64 || p->dtype == TT_C128 ? cumprod_blocks(p->chunk) : 0;
  return p->n_chunks > 1 ? p->outer * p->n_chunks * p->inner * (kCumprodPart + blocks * 16) : 0;
}

// Fills all but the pointers; weight_dtype counts only where there are weights. Rows are not cut.
inline void build_layer_norm(LayerNormPlan* p, int32_t dtype, int32_t weight_dtype,
                             int32_t stat_dtype, int64_t rows, int64_t n, double eps) {
  p->dtype = dtype;
  p->weight_dtype = weight_dtype;
  p->stat_dtype = stat_dtype;
  p->rows = rows;
  p->n = n;
  p->eps = eps;
  p->chunk = n;
  p->n_chunks = 1;
  p->parts = nullptr;
  one_stage(&p->run, rows, row_grain(n));
}
// After it: cuts rows that are few and long. Sizes are not 0.
inline void split_layer_norm(LayerNormPlan* p) {
  p->chunk = row_chunk(p->rows, p->n, 1);
  p->n_chunks = ceil_div(p->n, p->chunk);
  if (p->n_chunks == 1) return;
  p->run.n = 3;
  for (int s = 0; s < 3; s++) {
    p->run.units[s] = p->rows * p->n_chunks;
    p->run.grain[s] = row_grain(p->chunk);
  }
}

// Fills all but the pointers; sums: dweight or dbias is wanted. Rows are not cut.
inline void build_layer_norm_backward(LayerNormBackwardPlan* p, int32_t dtype, int32_t weight_dtype,
                                      int32_t stat_dtype, int64_t rows, int64_t n, bool sums) {
  p->dtype = dtype;
  p->weight_dtype = weight_dtype;
  p->stat_dtype = stat_dtype;
  p->rows = rows;
  p->n = n;
  p->chunk = (rows + 63) / 64 < 16 ? 16 : (rows + 63) / 64;
  p->n_chunks = ceil_div(rows, p->chunk);
  p->part = n;
  p->n_parts = 1;
  p->parts = nullptr;
  one_stage(&p->run, p->n_chunks, row_grain(n * p->chunk));
  p->run.n = 3;
  p->run.units[2] = sums ? ceil_div(n, kRowTile) : 0;
  p->run.grain[2] = row_grain(p->n_chunks * kRowTile * 2);
}
// After it, the pointers to results being set: cuts rows that are few and long. Both sums of one
// chunk are made in place, if they have the dtype that it computes in. Sizes are not 0.
inline void split_layer_norm_backward(LayerNormBackwardPlan* p) {
  const int32_t computed = p->dtype == TT_F64 ? TT_F64 : TT_F32;
  if (p->n_chunks == 1 && p->dweight && p->dbias && p->weight_dtype == computed)
    p->run.units[2] = 0;
  const int64_t rows = min(p->rows, p->chunk);
  p->part = row_chunk(p->n_chunks, p->n, rows);
  p->n_parts = ceil_div(p->n, p->part);
  if (p->n_parts == 1) return;
  p->run.units[0] = p->n_chunks * p->n_parts;
  p->run.grain[0] = row_grain(p->part * rows);
  p->run.units[1] = p->dx ? p->run.units[0] : 0;
  p->run.grain[1] = p->run.grain[0];
}

// The same for both plans: sums of chunks, in double.
inline int64_t row_parts_bytes(int64_t rows, int64_t n_chunks) {
  return n_chunks > 1 ? 2 * rows * n_chunks * 8 : 0;
}
inline int64_t layer_norm_backward_workspace_bytes(const LayerNormBackwardPlan* p) {
  return p->run.units[2] ? p->n_chunks * 2 * p->n * (p->dtype == TT_F64 ? 8 : 4) : 0;
}

// Fills all but the pointers, which are NULL; scale_stride 1.
inline void build_class_loss(ClassLossPlan* p, int32_t dtype, int32_t target_dtype,
                             int32_t weight_dtype, int32_t loss_dtype, int64_t outer,
                             int64_t classes, int64_t inner, int64_t ignore_index) {
  p->dtype = dtype;
  p->target_dtype = target_dtype;
  p->weight_dtype = weight_dtype;
  p->loss_dtype = loss_dtype;
  p->outer = outer;
  p->classes = classes;
  p->inner = inner;
  p->ignore_index = ignore_index;
  p->x = p->target = p->weight = p->scale = nullptr;
  p->loss = p->row_weight = p->lse = p->dx = nullptr;
  p->parts = nullptr;
  p->scale_stride = 1;
  p->n_tiles = ceil_div(inner, kRowTile);
  p->chunk = classes ? classes : 1;
  p->n_chunks = 1;
  one_stage(&p->run, outer * p->n_tiles, row_grain(classes * min(inner, kRowTile)));
}
// After it: cuts rows that are few and long; joined: what the chunks leave is (cross_entropy).
// Sizes are not 0.
inline void split_class_loss(ClassLossPlan* p, bool joined) {
  const int64_t units = p->run.units[0];
  const int64_t width = min(p->inner, kRowTile);
  p->chunk = row_chunk(units, p->classes, width);
  p->n_chunks = ceil_div(p->classes, p->chunk);
  if (p->n_chunks == 1) return;
  one_stage(&p->run, units * p->n_chunks, row_grain(p->chunk * width));
  if (joined) {
    p->run.n = 2;
    p->run.units[1] = units;
  }
}
inline int64_t class_loss_workspace_bytes(const ClassLossPlan* p) {
  return p->run.n == 2 ? 2 * p->n_chunks * p->outer * p->inner * 8 : 0;
}

}  // namespace TT_NS
