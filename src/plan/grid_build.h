// Builds a GridPlan.
#pragma once

#include "plan/grid_plan.h"
#include "plan/rows.h"

namespace TT_NS {

// Set before: dtype … points. Sets units, and pointers to NULL.
inline void build_grid(GridPlan* p, bool put) {
  p->x = p->y = p->slopes = nullptr;
  p->grid = nullptr;
  p->tile = 1024;
  p->n_tiles = ceil_div(p->points, p->tile);
  p->n_blocks = ceil_div(p->c, kGridChannels);
  const int64_t units = put ? p->n * p->n_blocks : p->n * p->n_tiles * p->n_blocks;
  one_stage(&p->run, units, 1);
}

}  // namespace TT_NS
