// Builds the plans of pool_plan.h.
#pragma once

#include "plan/pool_plan.h"
#include "plan/row_build.h"

namespace TT_NS {

// What the front knows of the windows is in *p already: dtype, channels_last, adaptive … divisor. Sets units and NULLs.
inline void build_pool(PoolPlan* p) {
  p->x = p->g = nullptr, p->y = nullptr, p->index = nullptr;
  const int64_t planes = p->channels_last ? p->n : p->n * p->c, deep = p->channels_last ? p->c : 1;
  const int64_t row = (p->in[1] + p->out[1]) * deep;  // elements that a row of results costs, about
  p->rows = row_grain(row);
  if (p->rows > p->out[0]) p->rows = p->out[0] ? p->out[0] : 1;
  p->n_tiles = (p->out[0] + p->rows - 1) / p->rows;
  one_stage(&p->run, p->out[1] ? planes * p->n_tiles : 0, row_grain(p->rows * row));
}
inline void build_pool_backward(PoolPlan* p) {
  build_pool(p);
  const int64_t tiles = p->channels_last ? (p->c + kPoolTile - 1) / kPoolTile : p->c;
  one_stage(&p->run, p->n * tiles, row_grain(p->in[0] * p->in[1] * (p->channels_last ? kPoolTile : 1)));
}

}  // namespace TT_NS
