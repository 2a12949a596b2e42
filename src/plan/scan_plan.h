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
// 0 stays 0. Long rows, or fewer than kNarrowProducts columns, are split into chunks of `chunk`
// elements if they are few. Stage 0 then computes the factor of each chunk and its bounds; stage 1
// finds the product before each chunk and itself computes chunks that may leave the range of normal
// numbers; stage 2 computes the others.
// Units: [outer][n_tiles of `width` inner positions][n_chunks]; of stage 1: [outer]. On one thread,
// stage 1 does everything, to the same bits, and reads each chunk from memory once. Columns are
// independent, so `width` may depend on the number of threads.
struct CumprodPlan {
  Stages run;
  int32_t dtype;  // f16 bf16 f32 f64 (multiplied in double) i64 c64 c128
  int32_t alone;  // on one thread: only stage 1 runs
  int64_t outer, dim, inner, n_tiles;
  int64_t width, chunk, n_chunks;
  const char* in;
  char* out;
  char* parts;  // cumprod_workspace_bytes(plan); NULL for 0
};

constexpr int64_t kCumprodPart = 48, kNarrowProducts = 16, kCumprodBlock = 128;

TT_INLINE constexpr int64_t cumprod_blocks(int64_t chunk) { return ceil_div(chunk, kCumprodBlock); }

// cummax, cummin: the index of the running extreme; the last of equal ones, and a nan once there is
// one. Units: [outer][n_tiles of kRowTile inner positions].
struct CumExtremePlan {
  Stages run;
  int32_t dtype;     // f32, f64 or i64
  int32_t smallest;  // cummin
  int64_t outer, dim, inner, n_tiles;
  const char* in;
  int64_t* indices;
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
