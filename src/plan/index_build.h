// Builds the plans of index_plan.h.
#pragma once

#include "plan/index_plan.h"

namespace TT_NS {

// One nest of positions; sizes and strides (bytes) are outermost first. The index's stride is 0 in
// dimensions that it does not depend on.
struct IndexArgs {
  int32_t ndim;
  const int64_t* size;
  const int64_t* a_stride;  // 0 in the dimensions that the index replaces
  const int64_t* b_stride;
  const int64_t* index_stride;
  int64_t a_step, index_size;
  int32_t dtype, index_dtype;
  bool put;             // writes a: index_put, index_accumulate, index_combine
  int32_t combine = 0;  // IndexCombine
  int32_t threads = 1;  // (put) threads that may take ranges of i; the result does not depend on it
  int64_t extent = 0;   // (put) upper bound of i
  int64_t large = 0;  // (put) size of a in bytes from which single elements are divided into ranges
};

namespace index_detail {

// Returns whether units are ranges of i: for rows, and for single elements of a target so large
// that its cache misses cost more than reading all indices in each unit.
inline bool takes_ranges(const IndexPlan& p, const IndexArgs& g) {
  if (g.threads <= 1) return false;
  const int64_t step = g.a_step < 0 ? -g.a_step : g.a_step;
  return p.index_stride[0] == 0 || (p.size[0] >= 1024 && g.extent >= g.large / (step ? step : 1));
}

// Splits the dimension that makes the most pieces; a task has about 64K positions. Rows that have
// one index are not split: a row is one run of memory, and each piece would read all indices.
inline void split_index(IndexPlan* p, const IndexArgs& g) {
  int64_t n = 1;
  for (int i = 0; i < p->ndim; i++) n *= p->size[i];
  p->split = -1;
  p->range = 0;
  for (int i = p->ndim - 1; i >= 0; i--) {
    if (g.put && (p->a_stride[i] == 0 || (i == 0 && p->index_stride[0] == 0))) continue;
    if (p->split < 0 || p->size[i] > p->size[p->split]) p->split = i;
  }
  if (!n) return one_stage(&p->run, 0, 1);
  if (p->split < 0 || n < kIndexTask) {
    const bool ranges = p->split < 0 && n >= kIndexTask && takes_ranges(*p, g);
    if (p->split < 0) p->split = 0;
    p->piece = p->size[p->split];
    if (!ranges) return one_stage(&p->run, 1, 1);
    p->range = ceil_div(g.extent, g.threads);
    return one_stage(&p->run, ceil_div(g.extent, p->range), 1);
  }
  int64_t piece = kIndexTask / (n / p->size[p->split] + 1);
  if (piece < 1) piece = 1;
  if (p->split == 0 && piece < 64) piece = 64;  // whole cache lines of the innermost dimension
  p->piece = piece;
  one_stage(&p->run, ceil_div(p->size[p->split], piece), 1);
}

}  // namespace index_detail

// Sets all fields but a, b and index.
inline void build_index(IndexPlan* p, const IndexArgs& g) {
  p->dtype = g.dtype;
  p->index_dtype = g.index_dtype;
  p->combine = g.combine;
  p->a_step = g.a_step;
  p->index_size = g.index_size;
  p->outside = nullptr;
  p->ndim = 0;
  for (int d = g.ndim - 1; d >= 0; d--) {
    if (g.size[d] == 1) continue;
    const int last = p->ndim - 1;
    if (last >= 0 && g.a_stride[d] == p->a_stride[last] * p->size[last] &&
        g.b_stride[d] == p->b_stride[last] * p->size[last] &&
        g.index_stride[d] == p->index_stride[last] * p->size[last]) {
      p->size[last] *= g.size[d];
      continue;
    }
    const int i = p->ndim++;
    p->size[i] = g.size[d];
    p->a_stride[i] = g.a_stride[d];
    p->b_stride[i] = g.b_stride[d];
    p->index_stride[i] = g.index_stride[d];
  }
  if (!p->ndim) {
    p->ndim = 1;
    p->size[0] = 1;
    p->a_stride[0] = p->b_stride[0] = p->index_stride[0] = 0;
  }
  index_detail::split_index(p, g);
}

// For indices in [-dim_size, dim_size). Sets all fields but index and first_bad (and offsets, step,
// add for index_offsets). Sizes and strides are outermost first.
inline void build_index_check(IndexCheckPlan* p, int32_t ndim, const int64_t* size,
                              const int64_t* stride, int32_t index_dtype, int64_t dim_size) {
  p->index_dtype = index_dtype;
  p->size = dim_size;
  p->low = -dim_size;
  p->allowed = kNoSkip;
  p->ndim = 0;
  p->n = 1;
  p->step = 1;
  p->add = false;
  p->offsets = nullptr;
  for (int d = ndim - 1; d >= 0; d--) {
    p->n *= size[d];
    if (size[d] == 1) continue;
    const int last = p->ndim - 1;
    if (last >= 0 && stride[d] == p->stride[last] * p->dim_size[last]) {
      p->dim_size[last] *= size[d];
      continue;
    }
    p->dim_size[p->ndim] = size[d];
    p->stride[p->ndim++] = stride[d];
  }
  if (!p->ndim) {
    p->ndim = 1;
    p->dim_size[0] = 1;
    p->stride[0] = 0;
  }
  one_stage(&p->run, ceil_div(p->n, kIndexChunk), 4);
}

// Returns the index at a position in logical order, for an error message.
inline int64_t index_at(const IndexCheckPlan* p, int64_t position) {
  const char* at = p->index;
  for (int d = 0; d < p->ndim; d++) {
    at += position % p->dim_size[d] * p->stride[d];
    position /= p->dim_size[d];
  }
  return p->index_dtype == TT_I64 ? *reinterpret_cast<const int64_t*>(at)
                                  : *reinterpret_cast<const int32_t*>(at);
}

// Sets the sizes and the units of n indices in bags.
inline void build_bags(BagPlan* p, int32_t dtype, int32_t index_dtype, int64_t bags, int64_t n,
                       int64_t width) {
  p->dtype = dtype;
  p->index_dtype = index_dtype;
  p->n = n;
  p->width = width;
  const int64_t of_bag = bags ? ceil_div(n, bags) : 1;
  const int64_t work = of_bag > 65536 / (width + 1) ? 65536 : of_bag * width;
  one_stage(&p->run, bags, clamp<int64_t>(65536 / (work + 1), 1, 4096));
}

inline int64_t nonzero_chunks(int64_t n) { return ceil_div(n, kNonzeroChunk); }

// For nonzero_count: sets all fields but x, starts and total.
inline void build_nonzero(NonzeroPlan* p, int32_t dtype, int32_t ndim, const int64_t* size) {
  p->dtype = dtype;
  p->ndim = ndim;
  p->n = 1;
  for (int d = 0; d < ndim; d++) p->n *= p->size[d] = size[d];
  p->out = nullptr;
  p->row_stride = ndim ? ndim : 1;
  p->dim_stride = 1;
  one_stage(&p->run, nonzero_chunks(p->n), 4);
  p->run.n = 2;
  p->run.units[1] = 1;
}
// Then for nonzero_write: the caller sets out and, if needed, its strides.
inline void build_nonzero_write(NonzeroPlan* p) { one_stage(&p->run, nonzero_chunks(p->n), 4); }

}  // namespace TT_NS
