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

// Fills all but the pointers.
inline void build_softmax(SoftmaxPlan* p, int32_t dtype, int64_t outer, int64_t dim, int64_t inner) {
  p->dtype = dtype;
  p->outer = outer, p->dim = dim, p->inner = inner;
  p->n_tiles = inner == 1 ? 1 : (inner + kRowTile - 1) / kRowTile;
  one_stage(&p->run, dim ? outer * p->n_tiles : 0, row_grain(dim * (inner < kRowTile ? inner : kRowTile)));
}

}  // namespace TT_NS
