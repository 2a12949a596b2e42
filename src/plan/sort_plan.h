// Plans of sorting, and of searching sorted rows. POD, also device code.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

enum SortPath : int32_t {
  // Units are rows. The other paths sort a single long row, `row`.
  kSortRows = 0,
  // Few results: chunks leave their first k items in workspace, which one unit merges.
  kSortFirst = 1,
  // One unit samples splitters, chunks count, chunks fill the buckets, each bucket is sorted.
  kSortBuckets = 2,
};

// Sorts each row of an array [outer][n][inner] (a row: the n elements of one (outer, inner) pair)
// and keeps the first k. The sort is stable, and nan is larger than all other values. The order is
// unique, so it does not depend on the split.
struct SortPlan {
  Stages run;
  int32_t path;   // SortPath
  int32_t dtype;  // any real dtype
  bool descending;
  int64_t outer, n, inner, k;
  const char* in;
  char* values;      // [outer][k][inner] of dtype; NULL: not needed
  int64_t* indices;  // [outer][k][inner]
  char* workspace;
  int64_t slot_bytes;  // kSortRows: workspace of one task
  int64_t row, chunk, n_chunks;
  int64_t buckets;  // a power of 2; 2: the first one is to hold the first k items
};

struct SortItem {
  uint64_t key;  // monotonic in the element
  int64_t index;
};
constexpr int64_t kSortFew = 64;  // rows and results up to this size are sorted by insertion
constexpr int64_t kSortMaxBuckets = 256;    // buckets of a long row
constexpr int64_t kSortSample = 8;          // sampled keys per bucket
constexpr int64_t kSortFirstSample = 4096;  // sampled keys for two buckets

// The workspace of kSortBuckets.
struct SortRoom {
  SortItem *items, *other;  // n each
  int64_t* counts;          // [n_chunks][buckets]
  int64_t* starts;          // of the buckets, and n
  uint64_t* splitter;       // a binary tree: node i has the children 2 i and 2 i + 1; 1 is the root
  uint8_t* bucket;          // of each element
};
TT_INLINE SortRoom sort_room(const SortPlan& p) {
  SortRoom r;
  r.items = reinterpret_cast<SortItem*>(p.workspace);
  r.other = r.items + p.n;
  r.counts = reinterpret_cast<int64_t*>(r.other + p.n);
  r.starts = r.counts + p.n_chunks * p.buckets;
  r.splitter = reinterpret_cast<uint64_t*>(r.starts + p.buckets + 1);
  r.bucket = reinterpret_cast<uint8_t*>(r.splitter + p.buckets);
  return r;
}

enum SelectKind : int32_t {
  kSelectRanks = 0,       // ranks
  kSelectNanOrRanks = 1,  // ranks, or the last element (nan) of a row that has nan
  kSelectMedian = 2,      // the first nan of a row that has nan
  kSelectNanMedian = 3,   // of the elements that are not nan
  kSelectMode = 4,        // the last of the first longest run of equal elements
};

// The elements at m ranks of each row of an array [outer][n][inner], once it is sorted in the order
// of SortPlan. Units: rows, m = 1 unless ranks are given.
struct SelectPlan {
  Stages run;
  int32_t kind;  // SelectKind
  int32_t dtype;
  int64_t outer, n, inner, m;
  const char* in;
  const int64_t* ranks;  // [m], or [outer][inner][m]
  int64_t rank_step;     // 0, or m
  char* values;          // [outer][m][inner] of dtype
  int64_t* indices;      // [outer][m][inner]
  char* workspace;
  int64_t slot_bytes;  // workspace of one task
};

// Finds for each of `total` values the number of elements of its sorted row that precede it: those
// that are less, or with `right` not greater; nan is largest. Rows that are unsorted or contain nan
// are searched as PyTorch does. The values are [rows][row]. Units: blocks of kSearchBlock values.
struct SearchPlan {
  Stages run;
  int32_t dtype;  // of rows and values: f32, f64 or i64
  bool right, narrow;
  int64_t total, row;
  int64_t n;     // elements of a sorted row
  int64_t step;  // from one sorted row to the next: n, or 0 if there is one for all
  const char* sorted;
  // The positions of a row's elements in order, laid out as sorted. NULL: 0, 1, …
  const int64_t* sorter;
  const char* values;
  char* out;  // [total] of i64, or of i32 if narrow
};
constexpr int64_t kSearchBlock = 256;

}  // namespace TT_NS
