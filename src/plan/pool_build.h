// Builds the plans of pool_plan.h.
#pragma once

#include "plan/pool_plan.h"
#include "plan/rows.h"

namespace TT_NS {

namespace pool_detail {

inline int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// The most elements of a window along d, and what it spans.
inline int64_t count_of(const PoolPlan& p, int d) {
  return least(p.adaptive ? p.in[d] / p.out[d] + 2 : p.kernel[d], p.in[d]);
}
inline int64_t span_of(const PoolPlan& p, int d) {
  return p.adaptive ? count_of(p, d) : (p.kernel[d] - 1) * p.dilation[d] + 1;
}
inline int64_t stride_of(const PoolPlan& p, int d) {
  return p.adaptive ? up(p.in[d], p.out[d]) : p.stride[d];
}

// Cuts n elements into tiles of about the same even size, at most *tile, or one more.
inline int64_t even_tiles(int64_t n, int64_t* tile) {
  *tile = n ? up(n, up(n, *tile)) : 0;
  *tile += *tile & 1;
  return n ? up(n, *tile) : 0;
}

// Cuts what is few and large; sizes are not 0. A tile's columns, and a part's rows, are many of a
// window's unless each window is read by itself, so that little is read twice.
inline void cut_windows(PoolPlan* p, int64_t images, int64_t deep, int64_t row) {
  const int64_t high = count_of(*p, 0);
  const int64_t wide = count_of(*p, 1);
  const bool few =
      images * p->out[0] * p->out[1] < 32 && wide >= 256 && stride_of(*p, 1) + 2 >= span_of(*p, 1);
  const bool alone = p->channels_last || few || span_of(*p, 1) > kPoolSpan;
  PoolTiles& t = p->tiles;
  int64_t units = images * t.n_rows;
  if (alone) row = p->out[1] * high * wide * deep;
  if (units < 32 && t.rows * row >= 131072) {
    const int64_t own = alone ? 1 : 16 * up(least(span_of(*p, 1), p->in[1]), stride_of(*p, 1));
    t.columns = most(up(p->out[1] * 65536, t.rows * row), own);
    if (2 * t.columns > p->out[1]) t.columns = up(p->out[1], alone ? 2 : 1);
    t.n_columns = up(p->out[1], t.columns);
    units *= t.n_columns;
  }
  if (units >= (alone ? 32 : 8)) return;
  p->part_dim = high < 16;
  const int64_t count = p->part_dim ? wide : high;
  const int64_t read = alone ? (p->part_dim ? high : wide) * deep : up(p->in[1], t.n_columns);
  const int64_t part = most(up(65536, read), alone ? 1 : 2 * t.columns * wide / read);
  if ((p->part_dim && !alone) || count < 2 * part) return;
  p->apart = few;
  p->part = most(part, up(count, up(kMaxRowChunks, units)));
  p->n_parts = up(count, p->part);
}

}  // namespace pool_detail

// What the front knows of the windows is in *p already: dtype, channels_last, adaptive … divisor.
// Sets units and NULLs.
inline void build_pool(PoolPlan* p) {
  p->quarters = !p->adaptive;
  for (int d = 0; d < 2; d++)
    p->quarters &= p->kernel[d] == 2 && p->stride[d] == 2 && !p->pad[d] && p->dilation[d] == 1 &&
                   2 * p->out[d] <= p->in[d];
  p->results = p->n * p->c * p->out[0] * p->out[1];
  p->apart = 0;
  p->x = p->g = nullptr;
  p->y = p->parts = nullptr;
  p->index = nullptr;
  const int64_t images = p->channels_last ? p->n : p->n * p->c;
  const int64_t deep = p->channels_last ? p->c : 1;
  const int64_t height = p->out[0] ? (p->in[0] + p->out[0] - 1) / p->out[0] : 1;
  const int64_t row =
      (p->in[1] * height + p->out[1]) * deep;  // elements that a row of results costs, about
  PoolTiles& t = p->tiles;
  t.rows = row_grain(row);
  if (t.rows > p->out[0]) t.rows = p->out[0] ? p->out[0] : 1;
  t.n_rows = (p->out[0] + t.rows - 1) / t.rows;
  t.columns = p->out[1];
  t.n_columns = p->out[1] ? 1 : 0;
  p->n_parts = 1;
  const int64_t grain = row_grain(t.rows * row);
  if (p->results) pool_detail::cut_windows(p, images, deep, row);
  const int64_t units = images * t.n_rows * t.n_columns;
  one_stage(&p->run, units * p->n_parts, grain);
  if (p->n_parts > 1) {
    p->run.n = 2;
    p->run.units[1] = units;
  }
}
// What is in `parts`: index counts the places of maxima too.
inline int64_t pool_parts_bytes(const PoolPlan* p, bool index) {
  return p->n_parts > 1 ? p->n_parts * p->results * (index ? 16 : 8) : 0;
}

// largest: of maxima. Short windows that lie in several tiles are looked through for each; of tall
// ones in large images stage 0 leaves the index.
inline void build_pool_backward(PoolPlan* p, bool largest) {
  using namespace pool_detail;
  build_pool(p);
  largest &= !p->quarters && p->out[0];
  const int64_t deep = p->channels_last ? kPoolTile : 1;
  const int64_t* in = p->in;
  const int64_t images = p->n * (p->channels_last ? up(p->c, kPoolTile) : p->c);
  const int64_t row = in[1] * deep;
  bool index = false;
  PoolTiles& t = p->spots;
  t.rows = row_chunk(images, in[0], row);
  if (largest && t.rows < in[0]) {
    const int64_t reach = span_of(*p, 0);
    index = reach > in[0] / 8 || (reach > in[0] / 16 && in[0] * row >= 524288);
    t.rows = most(t.rows, index ? least(reach, in[0] / 16) : least(16 * reach, up(in[0], 2)));
  }
  t.n_rows = even_tiles(in[0], &t.rows);
  t.columns = row_chunk(images * t.n_rows, in[1], t.rows * deep);
  if (largest && !index && t.columns < in[1]) {
    const int64_t reach = span_of(*p, 1);
    index = reach > in[1] / 32;
    if (!index) t.columns = most(t.columns, 16 * reach);
  }
  t.n_columns = even_tiles(in[1], &t.columns);
  if (!index) {
    p->n_parts = 1;
    p->run.units[0] = p->run.units[1] = 0;
  }
  p->run.n = 3;
  p->run.units[2] = images * t.n_rows * t.n_columns;
  p->run.grain[2] = row_grain(t.rows * t.columns * deep);
}
// The index of the results, where stage 0 looks for it.
inline int64_t pool_index_bytes(const PoolPlan* p) { return p->run.units[0] ? p->results * 8 : 0; }

}  // namespace TT_NS
