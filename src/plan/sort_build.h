// Builds the plans of sorting and of drawing by weight.
#pragma once

#include "plan/row_build.h"
#include "plan/sort_plan.h"

namespace TT_NS {

// Fills all but the pointers. Returns the bytes of the workspace; -1 if they overflow.
inline int64_t build_sort(SortPlan* p, int32_t dtype, int64_t outer, int64_t n, int64_t inner, int64_t k,
                          bool descending) {
  p->dtype = dtype, p->descending = descending;
  p->outer = outer, p->n = n, p->inner = inner, p->k = k;
  const int64_t rows = outer * inner, item = sizeof(SortItem);
  p->slot_bytes = 0;
  one_stage(&p->run, k ? rows : 0, row_grain(4 * n));
  if (n <= kSortFew || k == 0) return 0;
  if (k <= kSortFew && n / 4 >= k) return 0;
  if (n > INT64_MAX / (2 * item) - 64) return -1;
  p->slot_bytes = 2 * item * n;
  const int64_t most = (int64_t(1) << 26) / p->slot_bytes, slots = most < 1 ? 1 : most > 16 ? 16 : most;
  const int64_t grain = (rows + slots - 1) / slots;
  if (grain > p->run.grain[0]) p->run.grain[0] = grain;
  return (rows + p->run.grain[0] - 1) / p->run.grain[0] * p->slot_bytes;
}

inline void build_draw(DrawPlan* p, int64_t rows, int64_t n, int64_t samples) {
  p->rows = rows, p->n = n, p->samples = samples;
  const int64_t blocks = (samples + kDrawBlock - 1) / kDrawBlock;
  one_stage(&p->run, rows, row_grain(n));
  p->run.n = 2, p->run.units[1] = rows * blocks, p->run.grain[1] = samples < kDrawBlock ? row_grain(16 * samples) : 1;
}

}  // namespace TT_NS
