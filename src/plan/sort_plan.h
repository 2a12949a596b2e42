// Plans of sorting and of drawing by weight. POD, also device code.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

// Orders each row of an array [outer][n][inner] (a row: the n elements of one (outer, inner) pair) and keeps the first
// k. Equal elements keep their order; nan is larger than all else. Units: rows.
struct SortPlan {
  Stages run;
  int32_t dtype;  // any real one
  bool descending;
  int64_t outer, n, inner, k;
  const char* in;
  char* values;      // [outer][k][inner] of dtype; NULL: not wanted
  int64_t* indices;  // [outer][k][inner]
  char* workspace;
  int64_t slot_bytes;  // of one task's part of it
};

struct SortItem {
  uint64_t key;  // monotone in the element
  int64_t index;
};
constexpr int64_t kSortFew = 64;  // rows and results up to here are sorted by insertion

// Draws `samples` positions of each row of n weights, with replacement. Stage 0: sums, units rows; stage 1: units
// [rows][blocks of kDrawBlock samples].
struct DrawPlan {
  Stages run;
  int64_t rows, n, samples;
  double* sums;           // [rows][n]: the weights, which become their sums
  const double* uniform;  // [rows][samples]: in [0, 1)
  int64_t* out;           // [rows][samples]
};
constexpr int64_t kDrawBlock = 4096;

}  // namespace TT_NS
