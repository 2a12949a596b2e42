// Builds a SoftmaxPlan.
#pragma once

#include "plan/softmax_plan.h"

namespace TT_NS {

// Sets all fields but the pointers; rows are not split.
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

// Then splits rows if they are few and long. Sizes are not 0.
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

}  // namespace TT_NS
