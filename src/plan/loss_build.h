// Builds a ClassLossPlan.
#pragma once

#include "plan/loss_plan.h"

namespace TT_NS {

// Sets all fields; pointers are NULL and scale_stride is 1.
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
  if (!outer || !inner) {
    p->n_tiles = p->chunk = p->n_chunks = 1;
    return one_stage(&p->run, 0, 1);
  }
  p->n_tiles = ceil_div(inner, kRowTile);
  p->chunk = classes ? classes : 1;
  p->n_chunks = 1;
  one_stage(&p->run, outer * p->n_tiles, row_grain(classes * min(inner, kRowTile)));
}

// Then splits rows if they are few and long; joined: the partial results of chunks are joined
// (cross_entropy). Sizes are not 0.
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

// Sets the sizes and the units; pointers are NULL.
inline void build_ctc(CtcPlan* p, int32_t dtype, int64_t time, int64_t batch, int64_t classes,
                      int64_t max_target, int64_t blank, bool zero_infinity) {
  *p = CtcPlan{};
  p->dtype = dtype;
  p->zero_infinity = zero_infinity;
  p->time = time;
  p->batch = batch;
  p->classes = classes;
  p->max_target = max_target;
  p->blank = blank;
  one_stage(&p->run, batch, 1);
}

}  // namespace TT_NS
