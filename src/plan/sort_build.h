// Builds the plans of sorting and searching.
#pragma once

#include "plan/rows.h"
#include "plan/sort_plan.h"

namespace TT_NS {

namespace sort_detail {

constexpr int64_t kLong = 32768;  // minimum elements of a row that is split into several tasks
// from this number on, rows are sorted one per task unless they exceed the caches
constexpr int64_t kManyRows = 16;

inline int64_t row_chunks(SortPlan* p, int64_t min_chunk) {
  const int64_t part = (p->n + 127) / 128;
  p->chunk = max(min_chunk, part);
  return p->n_chunks = ceil_div(p->n, p->chunk);
}

inline int64_t first_of_long(SortPlan* p) {
  p->path = kSortFirst;
  one_stage(&p->run, row_chunks(p, 32768), 1);
  p->run.n = 2;
  p->run.units[1] = p->run.grain[1] = 1;
  return p->n_chunks * p->k * int64_t(sizeof(SortItem));
}

// Sets the grain to tasks of at most 16 slots, if possible, and returns their bytes.
inline int64_t slots_of(Stages* run, int64_t rows, int64_t slot_bytes) {
  const int64_t max_slots = (int64_t(1) << 26) / slot_bytes;
  const int64_t slots = clamp<int64_t>(max_slots, 1, 16);
  run->grain[0] = max(run->grain[0], ceil_div(rows, slots));
  return ceil_div(rows, run->grain[0]) * slot_bytes;
}

// Returns -1 if the row is too large.
inline int64_t long_row(SortPlan* p) {
  p->path = kSortBuckets;
  if (p->n > INT64_MAX / 64) return -1;
  for (p->buckets = 16; p->buckets < kSortMaxBuckets && p->n / 4096 >= p->buckets;) p->buckets *= 2;
  if (p->k <= p->n / 128) p->buckets = 2;
  one_stage(&p->run, 1, 1);
  p->run.n = 4;
  p->run.units[1] = p->run.units[2] = row_chunks(p, 16384);
  p->run.units[3] = p->buckets;
  for (int32_t s = 1; s < 4; s++) p->run.grain[s] = 1;
  return p->n * (2 * int64_t(sizeof(SortItem)) + 1) + 8 * (p->buckets * (p->n_chunks + 2) + 1);
}

}  // namespace sort_detail

// Sets all fields but the pointers; row = 0. Returns the size of the workspace in bytes; -1 on
// overflow. splits: long rows may be divided into tasks, one row a launch.
inline int64_t build_sort(SortPlan* p, int32_t dtype, int64_t outer, int64_t n, int64_t inner,
                          int64_t k, bool descending, bool splits = true) {
  p->path = kSortRows;
  p->dtype = dtype;
  p->descending = descending;
  p->outer = outer;
  p->n = n;
  p->inner = inner;
  p->k = k;
  p->workspace = nullptr;
  p->slot_bytes = p->row = p->chunk = p->n_chunks = p->buckets = 0;
  const int64_t rows = outer * inner;
  const int64_t item = sizeof(SortItem);
  const bool many = rows >= sort_detail::kManyRows;
  const bool few = k <= kSortFew && n / 4 >= k;
  one_stage(&p->run, k ? rows : 0, row_grain(4 * min(n, kRowTile * kRowTile)));
  if (n <= kSortFew || k == 0) return 0;
  if (few) return n < 2 * sort_detail::kLong || many || !splits ? 0 : sort_detail::first_of_long(p);
  if (splits && n >= sort_detail::kLong && (!many || n >= 8 * sort_detail::kLong))
    return sort_detail::long_row(p);
  p->slot_bytes = 2 * item * n;
  return sort_detail::slots_of(&p->run, rows, p->slot_bytes);
}

// Sets all fields but the pointers and rank_step. Returns the size of the workspace in bytes; -1 on
// overflow.
inline int64_t build_select(SelectPlan* p, SelectKind kind, int32_t dtype, int64_t outer, int64_t n,
                            int64_t inner, int64_t m) {
  p->kind = kind;
  p->dtype = dtype;
  p->outer = outer;
  p->n = n;
  p->inner = inner;
  p->m = m;
  p->workspace = nullptr;
  p->slot_bytes = 0;
  const int64_t rows = outer * inner;
  one_stage(&p->run, m ? rows : 0, row_grain(4 * min(n, kRowTile * kRowTile)));
  if (n <= kSortFew) return 0;
  if (n > INT64_MAX / 64) return -1;
  p->slot_bytes = n * (kind == kSelectMode ? 2 * int64_t(sizeof(SortItem)) : 16);
  return sort_detail::slots_of(&p->run, rows, p->slot_bytes);
}

// Sets all fields but the pointers; rows: number of sorted rows.
inline void build_search(SearchPlan* p, int32_t dtype, int64_t rows, int64_t n, int64_t total,
                         bool right, bool narrow) {
  p->dtype = dtype;
  p->right = right;
  p->narrow = narrow;
  p->total = total;
  p->row = rows > 1 ? total / rows : total;
  p->n = n;
  p->step = rows > 1 ? n : 0;
  one_stage(&p->run, ceil_div(total, kSearchBlock), 8);
}

}  // namespace TT_NS
