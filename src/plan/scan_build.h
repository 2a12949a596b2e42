// Builds the plans of cumulative operators.
#pragma once

#include "plan/scan_plan.h"

namespace TT_NS {

// Sets all fields but the pointers.
inline void build_scan(ScanPlan* p, int32_t dtype, int64_t outer, int64_t dim, int64_t inner) {
  p->dtype = dtype;
  p->outer = outer;
  p->dim = dim;
  p->inner = inner;
  p->n_tiles = ceil_div(inner, kRowTile);
  const int64_t units = outer * p->n_tiles;
  const int64_t width = min(inner, kRowTile);
  p->chunk = row_chunk(units, dim, width);
  p->n_chunks = dim ? ceil_div(dim, p->chunk) : 0;
  const int64_t all = units * p->n_chunks;
  int64_t grain = row_grain(p->chunk * width);
  if (inner == 1 && p->n_chunks == 1) grain = round_up(grain, kCumsumRows);
  one_stage(&p->run, p->n_chunks > 1 ? all : 0, grain);
  p->run.n = 2;
  p->run.units[1] = all;
  p->run.grain[1] = grain;
}

inline int64_t scan_workspace_bytes(const ScanPlan* p) {
  return p->run.units[0] ? p->outer * p->n_chunks * p->inner * 16 : 0;
}

// Columns of a tile: kRowTile, or fewer if that leaves threads idle. Threads that write within 128
// bytes of each other (c64: 256) contend for cache lines, and two threads write c128 no faster than
// one (measured on Zen 5).
inline int64_t cumprod_width(int32_t dtype, int64_t outer, int64_t dim, int64_t inner,
                             int64_t threads) {
  constexpr int64_t kMinTile = 32768;  // elements per tile
  const int64_t tiles = ceil_div(inner, kRowTile);
  const int64_t min_width = dtype == TT_C64 ? 32 : 128 / kItemSize[dtype];
  if (threads == 1 || dtype == TT_C128 || outer * tiles >= 4 * threads) return kRowTile;
  const int64_t widths = ceil_div(inner, min_width);
  const int64_t fit = dim * inner / kMinTile;
  int64_t parts = ceil_div(threads, outer);
  parts = min(parts, fit);
  if (parts < tiles) parts = tiles;
  const int64_t width = ceil_div(widths, parts) * min_width;
  return width < kRowTile ? width : kRowTile;
}

// Sets all fields but the pointers. Sizes are not 0.
inline void build_cumprod(CumprodPlan* p, int32_t dtype, int64_t outer, int64_t dim, int64_t inner,
                          int64_t threads) {
  p->dtype = dtype;
  p->outer = outer;
  p->dim = dim;
  p->inner = inner;
  p->width = cumprod_width(dtype, outer, dim, inner, threads);
  p->n_tiles = ceil_div(inner, p->width);
  const int64_t grain = row_grain(dim * min(inner, p->width));
  one_stage(&p->run, outer * p->n_tiles, inner == 1 ? round_up(grain, kCumprodRows) : grain);
}

// Set all fields but the pointers. Sizes are not 0.
inline void build_cum_extreme(CumExtremePlan* p, int32_t dtype, bool smallest, int64_t outer,
                              int64_t dim, int64_t inner) {
  p->dtype = dtype;
  p->smallest = smallest;
  p->outer = outer;
  p->dim = dim;
  p->inner = inner;
  p->n_tiles = ceil_div(inner, kRowTile);
  p->values = nullptr;
  one_stage(&p->run, outer * p->n_tiles, row_grain(dim * min(inner, kRowTile)));
}
inline void build_log_sum(LogSumPlan* p, int32_t dtype, int64_t outer, int64_t dim, int64_t inner) {
  p->dtype = dtype;
  p->outer = outer;
  p->dim = dim;
  p->inner = inner;
  p->n_tiles = ceil_div(inner, kRowTile);
  one_stage(&p->run, outer * p->n_tiles, row_grain(8 * dim * min(inner, kRowTile)));
}

}  // namespace TT_NS
