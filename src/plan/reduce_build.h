// Builds a ReducePlan from shapes and strides.
#pragma once

#include "base/arith.h"
#include "plan/reduce_plan.h"

namespace TT_NS {

// The reduction. Sizes and strides (bytes) are outermost first, as in a tensor.
struct ReduceArgs {
  int32_t ndim;
  const int64_t* size;
  const int64_t* stride;
  uint64_t reduced;  // bit d: dimension d is reduced
  int32_t dtype, out_dtype;
  // The strides of the kept dimensions in order, without those of keepdim. NULL: contiguous.
  const int64_t* out_stride;
  const int64_t* index_stride;
  bool ordered;  // the sequence must follow the order of dimensions (positions are needed)
  ReduceTerm term = kReduceElements;
};

namespace reduce_detail {

inline void swap(int64_t* a, int i, int j) {
  const int64_t t = a[i];
  a[i] = a[j];
  a[j] = t;
}

inline int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

// Sorts the kept nest by the input's stride, smallest first, and merges dimensions that are one run
// in in, out and index.
inline void order_kept(ReducePlan* p) {
  for (int i = 1; i < p->n_kept; i++)
    for (int j = i; j > 0 && magnitude(p->kept_stride[j]) < magnitude(p->kept_stride[j - 1]); j--) {
      swap(p->kept_size, j, j - 1);
      swap(p->kept_stride, j, j - 1);
      swap(p->out_stride, j, j - 1);
      swap(p->index_stride, j, j - 1);
    }
  int n = 0;
  for (int i = 1; i < p->n_kept; i++) {
    const int64_t s = p->kept_size[n];
    if (p->kept_stride[i] == p->kept_stride[n] * s && p->out_stride[i] == p->out_stride[n] * s &&
        p->index_stride[i] == p->index_stride[n] * s) {
      p->kept_size[n] *= p->kept_size[i];
      continue;
    }
    n++;
    p->kept_size[n] = p->kept_size[i];
    p->kept_stride[n] = p->kept_stride[i];
    p->out_stride[n] = p->out_stride[i];
    p->index_stride[n] = p->index_stride[i];
  }
  if (p->n_kept) p->n_kept = n + 1;
}

inline void order_reduced(ReducePlan* p, bool ordered) {
  for (int i = 1; i < p->n_red && !ordered; i++)
    for (int j = i; j > 0 && magnitude(p->red_stride[j]) < magnitude(p->red_stride[j - 1]); j--) {
      swap(p->red_size, j, j - 1);
      swap(p->red_stride, j, j - 1);
    }
  int n = 0;
  for (int i = 1; i < p->n_red; i++) {
    if (p->red_stride[i] == p->red_stride[n] * p->red_size[n]) {
      p->red_size[n] *= p->red_size[i];
      continue;
    }
    n++;
    p->red_size[n] = p->red_size[i];
    p->red_stride[n] = p->red_stride[i];
  }
  if (p->n_red) p->n_red = n + 1;
}

constexpr int64_t kUnitWork = 65536;  // elements per unit of a split reduction

inline void split_rows(ReducePlan* p) {
  p->splits = 1;
  p->split_len = p->length;
  const int64_t piece = 2 * kUnitWork;
  if (p->n_out < 32 && p->length >= 2 * piece) {
    p->split_len = piece;
    p->splits = ceil_div(p->length, piece);
  }
  p->run.units[0] = p->n_out * p->splits;
  p->run.grain[0] = clamp<int64_t>(kUnitWork / (p->split_len + 1), 1, kUnitWork);
}

// Makes units of about kUnitWork elements. The rows of a unit are limited, so that two levels of
// sums stay accurate.
inline void split_columns(ReducePlan* p) {
  const int64_t columns = p->kept_size[0];
  const bool in_place = p->dtype == TT_F32 && p->kept_stride[0] == 4 && p->term == kReduceElements;
  const int64_t loaded = p->dtype == TT_C128 ? 16 : 8;  // bytes per element
  p->tile = min(columns, in_place ? kReduceMaxTile / 4 : kReduceLoadTile / loaded);
  p->n_tiles = ceil_div(columns, p->tile);
  const int64_t others = p->n_out / columns * p->n_tiles;
  p->splits = 1;
  p->split_len = p->length;
  const int64_t rows = clamp<int64_t>(kUnitWork * 4 / p->tile, 128, kReduceMaxColumnSplit);
  if ((others < 32 && p->length >= 2 * rows) || p->length > kReduceMaxColumnSplit) {
    p->split_len = rows;
    p->splits = ceil_div(p->length, rows);
  }
  p->run.units[0] = others * p->splits;
  p->run.grain[0] = clamp<int64_t>(kUnitWork / (p->split_len * p->tile + 1), 1, kUnitWork);
}

}  // namespace reduce_detail

// Sets all fields but in, out, index, divisor and workspace.
inline void build_reduce(ReducePlan* p, const ReduceArgs& a) {
  using namespace reduce_detail;
  p->dtype = a.dtype;
  p->out_dtype = a.out_dtype;
  p->divisor = 1;
  p->term = a.term;
  p->by_output = false;
  p->root = false;
  p->order = 1;
  p->n_kept = p->n_red = 0;
  p->n_out = p->length = 1;
  const int64_t item = kItemSize[a.dtype];
  int64_t out_run = kItemSize[a.out_dtype];
  int64_t index_run = 8;
  int32_t kept = 0;
  for (int d = 0; d < a.ndim; d++) kept += !(a.reduced >> d & 1);
  for (int d = a.ndim - 1; d >= 0; d--) {
    if (a.reduced >> d & 1) {
      p->length *= a.size[d];
      if (a.size[d] == 1) continue;
      p->red_size[p->n_red] = a.size[d];
      p->red_stride[p->n_red++] = a.stride[d];
      continue;
    }
    kept--;
    p->n_out *= a.size[d];
    if (a.size[d] == 1) continue;
    const int i = p->n_kept++;
    p->kept_size[i] = a.size[d];
    p->kept_stride[i] = a.stride[d];
    p->out_stride[i] = a.out_stride ? a.out_stride[kept] : out_run;
    p->index_stride[i] = a.index_stride ? a.index_stride[kept] : index_run;
    out_run *= a.size[d];
    index_run *= a.size[d];
  }
  if (!p->n_kept) p->out_stride[0] = p->index_stride[0] = 0;  // of the single result
  if (p->n_kept > 1) order_kept(p);
  if (p->n_red > 1) order_reduced(p, a.ordered);
  if (!p->n_red || !p->length) {
    p->n_red = 1;
    p->red_size[0] = 1;
    p->red_stride[0] = item;
  }
  p->run.stage = 0;
  p->run.units[1] = 0;
  p->run.grain[1] = 1;
  const bool columns =
      p->n_out > 1 && p->length > 0 &&
      ((magnitude(p->kept_stride[0]) < magnitude(p->red_stride[0]) && p->kept_size[0] >= 8) ||
       (p->length < 32 && p->kept_size[0] >= 32));
  p->path = columns ? kReduceColumns : kReduceRows;
  p->tile = p->n_tiles = 1;
  if (columns) split_columns(p);
  else split_rows(p);
  if (p->splits > 1) {
    p->run.units[1] = p->n_out;
    p->run.grain[1] = clamp<int64_t>(kUnitWork / p->splits, 1, kUnitWork);
  }
  p->run.n = p->splits > 1 ? 2 : 1;
}

// 16 bytes hold a partial of any kernel.
inline int64_t reduce_workspace_bytes(const ReducePlan* p) {
  return p->splits > 1 ? p->splits * p->n_out * 16 : 0;
}

}  // namespace TT_NS
