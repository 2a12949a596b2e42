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
  s->units[0] = units, s->units[1] = 0;
  s->grain[0] = grain, s->grain[1] = 1;
  s->n = 1, s->stage = 0;
}

// Elements of dim in a chunk of one of `units` rows, or groups of `width` columns: dim unless these are few and long.
inline int64_t row_chunk(int64_t units, int64_t dim, int64_t width) {
  const int64_t least = 32768 / width, part = (dim + 511) / 512;
  const int64_t chunk = ((least < part ? part : least) + 15) / 16 * 16;
  return units >= 32 || dim < 2 * chunk ? dim : chunk;
}

// Fills all but the pointers; rows are not cut.
inline void build_softmax(SoftmaxPlan* p, int32_t dtype, int64_t outer, int64_t dim, int64_t inner) {
  p->dtype = dtype;
  p->outer = outer, p->dim = dim, p->inner = inner;
  p->n_tiles = inner == 1 ? 1 : (inner + kRowTile - 1) / kRowTile;
  p->chunk = dim, p->n_chunks = 1, p->parts = nullptr;
  one_stage(&p->run, dim ? outer * p->n_tiles : 0, row_grain(dim * (inner < kRowTile ? inner : kRowTile)));
}
// After it: cuts rows that are few and long, but for doubles, whose code would outgrow its use. Sizes are not 0.
inline void split_softmax(SoftmaxPlan* p, bool backward) {
  p->chunk = p->inner == 1 && p->dtype != TT_F64 ? row_chunk(p->outer, p->dim, 1) : p->dim;
  p->n_chunks = (p->dim + p->chunk - 1) / p->chunk;
  if (p->n_chunks == 1) return;
  p->run.n = 3;
  for (int s = 0; s < 3; s++) p->run.units[s] = p->outer * p->n_chunks, p->run.grain[s] = row_grain(p->chunk);
  if (backward) p->run.units[0] = 0;
}
inline int64_t softmax_workspace_bytes(const SoftmaxPlan* p) {
  return p->n_chunks > 1 ? 2 * p->outer * p->n_chunks * 8 : 0;
}

// Fills all but the pointers.
inline void build_scan(ScanPlan* p, int32_t dtype, int64_t outer, int64_t dim, int64_t inner) {
  p->dtype = dtype;
  p->outer = outer, p->dim = dim, p->inner = inner;
  p->n_tiles = (inner + kRowTile - 1) / kRowTile;
  const int64_t units = outer * p->n_tiles, width = inner < kRowTile ? inner : kRowTile;
  p->chunk = row_chunk(units, dim, width);
  p->n_chunks = dim ? (dim + p->chunk - 1) / p->chunk : 0;
  const int64_t all = units * p->n_chunks, grain = row_grain(p->chunk * width);
  one_stage(&p->run, p->n_chunks > 1 ? all : 0, grain);
  p->run.n = 2, p->run.units[1] = all, p->run.grain[1] = grain;
}
inline int64_t scan_workspace_bytes(const ScanPlan* p) {
  return p->run.units[0] ? p->outer * p->n_chunks * p->inner * 16 : 0;
}

// Fills all but the pointers; weight_dtype counts only where there are weights.
inline void build_layer_norm(LayerNormPlan* p, int32_t dtype, int32_t weight_dtype, int32_t stat_dtype, int64_t rows,
                             int64_t n, double eps) {
  p->dtype = dtype, p->weight_dtype = weight_dtype, p->stat_dtype = stat_dtype;
  p->rows = rows, p->n = n, p->eps = eps;
  one_stage(&p->run, rows, row_grain(n));
}

// Fills all but the pointers; sums: dweight or dbias is wanted.
inline void build_layer_norm_backward(LayerNormBackwardPlan* p, int32_t dtype, int32_t weight_dtype, int32_t stat_dtype,
                                      int64_t rows, int64_t n, bool sums) {
  p->dtype = dtype, p->weight_dtype = weight_dtype, p->stat_dtype = stat_dtype;
  p->rows = rows, p->n = n;
  p->chunk = (rows + 63) / 64 < 16 ? 16 : (rows + 63) / 64;
  p->n_chunks = (rows + p->chunk - 1) / p->chunk;
  one_stage(&p->run, p->n_chunks, row_grain(n * p->chunk));
  if (!sums) return;
  p->run.n = 2;
  p->run.units[1] = (n + kRowTile - 1) / kRowTile;
  p->run.grain[1] = row_grain(p->n_chunks * kRowTile * 2);
}

inline int64_t layer_norm_backward_workspace_bytes(const LayerNormBackwardPlan* p) {
  return p->run.n == 2 ? p->n_chunks * 2 * p->n * (p->dtype == TT_F64 ? 8 : 4) : 0;
}

// Fills all but the pointers, which are NULL; scale_stride 1.
inline void build_class_loss(ClassLossPlan* p, int32_t dtype, int32_t target_dtype, int32_t weight_dtype,
                             int32_t loss_dtype, int64_t outer, int64_t classes, int64_t inner, int64_t ignore_index) {
  p->dtype = dtype, p->target_dtype = target_dtype, p->weight_dtype = weight_dtype, p->loss_dtype = loss_dtype;
  p->outer = outer, p->classes = classes, p->inner = inner, p->ignore_index = ignore_index;
  p->x = p->target = p->weight = p->scale = nullptr;
  p->loss = p->row_weight = p->lse = p->dx = nullptr;
  p->scale_stride = 1;
  p->n_tiles = inner == 1 ? 1 : (inner + kRowTile - 1) / kRowTile;
  one_stage(&p->run, outer * p->n_tiles, row_grain(classes * (inner < kRowTile ? inner : kRowTile)));
}

}  // namespace TT_NS
