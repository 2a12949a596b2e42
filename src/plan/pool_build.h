// Builds the plans of pool_plan.h.
#pragma once

#include "plan/pool_plan.h"
#include "plan/row_build.h"

namespace TT_NS {

// What the front knows of the windows is in *p already: dtype, channels_last, adaptive … divisor. Sets units and NULLs.
inline void build_pool(PoolPlan* p) {
  p->x = p->g = nullptr, p->y = nullptr, p->index = nullptr;
  const int64_t planes = p->channels_last ? p->n : p->n * p->c, deep = p->channels_last ? p->c : 1;
  const int64_t height = p->out[0] ? (p->in[0] + p->out[0] - 1) / p->out[0] : 1;
  const int64_t row = (p->in[1] * height + p->out[1]) * deep;  // elements that a row of results costs, about
  p->rows = row_grain(row);
  if (p->rows > p->out[0]) p->rows = p->out[0] ? p->out[0] : 1;
  p->n_tiles = (p->out[0] + p->rows - 1) / p->rows;
  one_stage(&p->run, p->out[1] ? planes * p->n_tiles : 0, row_grain(p->rows * row));
}
// largest: of maxima, each of which is looked for again by all tiles that its window meets.
inline void build_pool_backward(PoolPlan* p, bool largest) {
  build_pool(p);
  const int64_t tiles = p->channels_last ? (p->c + kPoolTile - 1) / kPoolTile : p->c, planes = p->n * tiles;
  const int64_t row = p->in[1] * (p->channels_last ? kPoolTile : 1);
  const int64_t height = p->out[0] ? p->in[0] / p->out[0] + 2 : 1;
  const int64_t reach = p->adaptive ? height : (p->kernel[0] - 1) * p->dilation[0] + 1;
  p->rows = row_chunk(planes, p->in[0], row);
  if (largest && p->rows / 16 < reach) p->rows = reach < p->in[0] / 16 ? 16 * reach : p->in[0];
  p->rows += p->rows & 1;
  p->n_tiles = p->rows ? (p->in[0] + p->rows - 1) / p->rows : 0;
  one_stage(&p->run, planes * p->n_tiles, row_grain((p->rows < p->in[0] ? p->rows : p->in[0]) * row));
}

}  // namespace TT_NS
