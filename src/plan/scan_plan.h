// Plans of cumulative operators. POD, also device code.
#pragma once

#include "plan/rows.h"

namespace TT_NS {

// cumsum: the running sums. Rows are split into chunks of `chunk` elements if they are few. Stage 0
// (only with several chunks) computes the sums of chunks; stage 1 adds up the chunks before its
// own, then its elements. Units: [outer][n_tiles of kRowTile inner positions][n_chunks].
struct ScanPlan {
  Stages run;
  int32_t dtype;  // f32 (summed in double), f64 (summed in pairs of doubles) or i64
  int64_t outer, dim, inner, n_tiles;
  int64_t chunk, n_chunks;
  const char* in;
  char* out;
  char* sums;  // [outer][n_chunks][inner], 16 bytes each
};

// cumprod: the running products, multiplied strictly one by one, so that a product that has become
// 0 stays 0. Units: [outer][n_tiles of `width` inner positions]. Columns are independent, so
// `width` may depend on the number of threads.
struct CumprodPlan {
  Stages run;
  int32_t dtype;  // f16 bf16 f32 f64 (multiplied in double) i64 c64 c128
  int64_t outer, dim, inner, n_tiles;
  int64_t width;
  const char* in;
  char* out;
};

// Rows (inner is 1) that are multiplied or, if short, added beside each other. A grain is a
// multiple of it.
constexpr int64_t kCumprodRows = 4;
constexpr int64_t kCumsumRows = 4;

// cummax, cummin: the index of the running extreme; the last of equal ones, and a nan once there is
// one. Units: [outer][n_tiles of kRowTile inner positions].
struct CumExtremePlan {
  Stages run;
  int32_t dtype;     // f32, f64 or i64
  int32_t smallest;  // cummin
  int64_t outer, dim, inner, n_tiles;
  const char* in;
  int64_t* indices;
  char* values;  // those at the indices, of `dtype`; devices do not write them
};

// logcumsumexp: log(sum(exp(x))) of the elements so far. Units as above.
struct LogSumPlan {
  Stages run;
  int32_t dtype;  // f32, f64, c64 or c128
  int64_t outer, dim, inner, n_tiles;
  const char* in;
  char* out;
};

}  // namespace TT_NS
