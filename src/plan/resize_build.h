// Builds the plans of resize_plan.h.
#pragma once

#include "base/arith.h"
#include "plan/resize_plan.h"
#include "plan/rows.h"

namespace TT_NS {

inline int64_t resize_table_bytes(const ResizePlan* p) {
  return (p->out[0] + p->out[1]) * kResizeItem;
}

// *p has dtype … scale already. Sets units, and pointers to NULL.
inline void build_resize(ResizePlan* p, bool backward) {
  p->x = nullptr;
  p->y = p->table = nullptr;
  const int64_t planes = p->channels_last ? p->n : p->n * p->c;
  const int64_t pixel_items = p->channels_last ? p->c : 1;
  const int64_t row = (p->in[1] + p->out[1]) * pixel_items;
  p->rows = min(row_grain(row), p->out[0]);
  p->n_tiles = ceil_div(p->out[0], p->rows);
  p->run.n = 2;
  p->run.stage = 0;
  p->run.units[0] = 1;
  p->run.grain[0] = 1;
  if (!backward) {
    p->run.units[1] = planes * p->n_tiles;
    p->run.grain[1] = row_grain(p->rows * row);
    return;
  }
  p->run.units[1] = p->n * (p->channels_last ? ceil_div(p->c, kResizeTile) : p->c);
  p->run.grain[1] = row_grain(p->out[0] * p->out[1] * (p->channels_last ? kResizeTile : 1));
}

}  // namespace TT_NS
