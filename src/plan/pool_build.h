// Builds the plans of pool_plan.h.
#pragma once

#include "base/arith.h"
#include "plan/pool_plan.h"
#include "plan/rows.h"

namespace TT_NS {

namespace pool_detail {

// Maximum number of window elements along d.
inline int64_t window_count(const PoolPlan& p, int d) {
  return min(p.adaptive ? p.in[d] / p.out[d] + 2 : p.kernel[d], p.in[d]);
}
// Maximum distance from the first element of a window past its last.
inline int64_t window_span(const PoolPlan& p, int d) {
  return p.adaptive ? window_count(p, d) : (p.kernel[d] - 1) * p.dilation[d] + 1;
}
inline int64_t window_stride(const PoolPlan& p, int d) {
  return p.adaptive ? ceil_div(p.in[d], p.out[d]) : p.stride[d];
}

// Splits n elements into nearly equal tiles of an even size, at most *tile or one more.
inline int64_t even_tiles(int64_t n, int64_t* tile) {
  *tile = n ? ceil_div(n, ceil_div(n, *tile)) : 0;
  *tile += *tile & 1;
  return n ? ceil_div(n, *tile) : 0;
}

// Splits tiles, then windows, if there are too few units for the threads; sizes are not 0.
// image_count: images of units; pixel_items: elements of a pixel; row: cost of a row of results.
// Neighbouring windows share their input unless each is read on its own. The columns of a tile and
// the rows of a part are therefore many times those of a window, so that little is read twice.
inline void cut_windows(PoolPlan* p, int64_t image_count, int64_t pixel_items, int64_t row) {
  const int64_t high = window_count(*p, 0);
  const int64_t wide = window_count(*p, 1);
  const bool one_by_one = image_count * p->out[0] * p->out[1] < 32 && wide >= 256 &&
                          window_stride(*p, 1) + 2 >= window_span(*p, 1);
  const bool alone = p->channels_last || one_by_one || window_span(*p, 1) > kPoolSpan;
  PoolTiles& t = p->y_tiles;
  int64_t units = image_count * t.n_rows;
  if (alone) row = p->out[1] * high * wide * pixel_items;
  if (units < 32 && t.rows * row >= 131072) {
    const int64_t window_columns =
        ceil_div(min(window_span(*p, 1), p->in[1]), window_stride(*p, 1));
    const int64_t min_columns = alone ? 1 : 16 * window_columns;
    t.columns = max(ceil_div(p->out[1] * 65536, t.rows * row), min_columns);
    if (2 * t.columns > p->out[1]) t.columns = ceil_div(p->out[1], alone ? 2 : 1);
    t.n_columns = ceil_div(p->out[1], t.columns);
    units *= t.n_columns;
  }
  if (units >= (alone ? 32 : 8)) return;
  p->part_dim = high < 16;
  if (p->part_dim && !alone) return;
  const int64_t count = p->part_dim ? wide : high;
  const int64_t across = p->part_dim ? high : wide;
  // Elements read per element along part_dim, and the minimum number of elements in a part.
  const int64_t read = alone ? across * pixel_items : ceil_div(p->in[1], t.n_columns);
  const int64_t min_part = alone ? 1 : 2 * t.columns * wide / read;
  const int64_t part = max(ceil_div(65536, read), min_part);
  if (count < 2 * part) return;
  p->one_by_one = one_by_one;
  p->part = max(part, ceil_div(count, ceil_div(kMaxRowChunks, units)));
  p->n_parts = ceil_div(count, p->part);
}

}  // namespace pool_detail

// *p has the windows already: dtype, channels_last, adaptive … divisor. Sets units, and pointers to
// NULL.
inline void build_pool(PoolPlan* p) {
  p->halving = !p->adaptive;
  for (int d = 0; d < 2; d++)
    p->halving &= p->kernel[d] == 2 && p->stride[d] == 2 && !p->pad[d] && p->dilation[d] == 1 &&
                  p->out[d] <= p->in[d] / 2;
  p->results = p->n * p->c * p->out[0] * p->out[1];
  p->one_by_one = 0;
  p->x = p->g = nullptr;
  p->y = p->parts = nullptr;
  p->index = nullptr;
  p->n_parts = 1;
  p->y_tiles = {};
  if (!p->results) return one_stage(&p->run, 0, 1);
  const int64_t image_count = p->channels_last ? p->n : p->n * p->c;
  const int64_t pixel_items = p->channels_last ? p->c : 1;
  const int64_t height = ceil_div(p->in[0], p->out[0]);
  // Approximate cost of a row of results, in elements.
  const int64_t row = (p->in[1] * height + p->out[1]) * pixel_items;
  PoolTiles& t = p->y_tiles;
  t.rows = min(row_grain(row), p->out[0]);
  t.n_rows = ceil_div(p->out[0], t.rows);
  t.columns = p->out[1];
  t.n_columns = 1;
  const int64_t grain = row_grain(t.rows * row);
  pool_detail::cut_windows(p, image_count, pixel_items, row);
  const int64_t units = image_count * t.n_rows * t.n_columns;
  one_stage(&p->run, units * p->n_parts, grain);
  if (p->n_parts > 1) {
    p->run.n = 2;
    p->run.units[1] = units;
  }
}
// Size of `parts` in bytes: values and, with `index`, the indices of maxima.
inline int64_t pool_parts_bytes(const PoolPlan* p, bool index) {
  if (p->n_parts <= 1) return 0;
  return p->n_parts * p->results * (index ? 16 : 8);
}

// maxima: for pool_max_backward. A tile of dx searches all windows that overlap it. If windows are
// tall in large images, much would be searched twice; then stage 0 finds the maxima.
inline void build_pool_backward(PoolPlan* p, bool maxima) {
  using namespace pool_detail;
  build_pool(p);
  maxima &= !p->halving && p->results;
  const int64_t pixel_items = p->channels_last ? kPoolTile : 1;
  const int64_t* in = p->in;
  const int64_t image_count = p->n * (p->channels_last ? ceil_div(p->c, kPoolTile) : p->c);
  const int64_t row = in[1] * pixel_items;
  bool index = false;
  PoolTiles& t = p->dx_tiles;
  t.rows = row_chunk(image_count, in[0], row);
  if (maxima && t.rows < in[0]) {
    const int64_t span = window_span(*p, 0);
    index = span > in[0] / 8 || (span > in[0] / 16 && in[0] * row >= 524288);
    const int64_t min_rows = index ? min(span, in[0] / 16) : min(16 * span, ceil_div(in[0], 2));
    t.rows = max(t.rows, min_rows);
  }
  t.n_rows = even_tiles(in[0], &t.rows);
  t.columns = row_chunk(image_count * t.n_rows, in[1], t.rows * pixel_items);
  if (maxima && !index && t.columns < in[1]) {
    const int64_t span = window_span(*p, 1);
    index = span > in[1] / 32;
    if (!index) t.columns = max(t.columns, 16 * span);
  }
  t.n_columns = even_tiles(in[1], &t.columns);
  if (!index) {
    p->n_parts = 1;
    p->run.units[0] = p->run.units[1] = 0;
  }
  p->run.n = 3;
  p->run.units[2] = image_count * t.n_rows * t.n_columns;
  p->run.grain[2] = row_grain(t.rows * t.columns * pixel_items);
}
// Whether the backward of maxima reads and writes 16-bit elements itself: of whole rows of windows.
inline bool pool_backward_converts(const PoolPlan* p) {
  return p->halving && !p->channels_last && p->dx_tiles.n_columns == 1 && 2 * p->in[1] <= kPoolSpan;
}
// Size of `index` in bytes, for the backward.
inline int64_t pool_index_bytes(const PoolPlan* p) { return p->run.units[0] ? p->results * 8 : 0; }

}  // namespace TT_NS
