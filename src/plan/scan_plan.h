// Plans of cumsum and cumprod. POD, also device code.
#pragma once

#include "plan/rows.h"

namespace TT_NS {

// cumsum: the sums of all elements up to each. Rows are cut into chunks of `chunk` elements if
// there are few. Stage 0 (only with several chunks) leaves the sums of chunks, stage 1 adds up the
// chunks before one and then its elements. Units: [outer][n_tiles of kRowTile of the inner
// positions][n_chunks].
struct ScanPlan {
  Stages run;
  int32_t dtype;  // f32 (added up in double), f64 (in pairs of doubles) or i64
  int64_t outer, dim, inner, n_tiles;
  int64_t chunk, n_chunks;
  const char* in;
  char* out;
  char* sums;  // [outer][n_chunks][inner], 16 bytes each
};

// cumprod: the products of all elements up to each, multiplied one by one from the first on; so a
// product that has become 0 stays 0. Long rows, or less than kNarrowProducts columns, are cut into
// chunks of `chunk` elements if there are few. Then stage 0 leaves what chunks multiply by and
// within which bounds, stage 1 finds the product before each chunk and goes itself through those
// that may lead out of the normal numbers, stage 2 goes on from there. Units: [outer][n_tiles of
// `width` inner positions][n_chunks]; of stage 1: [outer]. On one thread stage 1 does all three, to
// the same bits, reading each chunk from memory once. Columns are independent: `width` depends on
// the threads.
struct CumprodPlan {
  Stages run;
  int32_t dtype;  // f16 bf16 f32 f64 (multiplied in double) i64 c64 c128
  int32_t alone;  // on one thread: there is only stage 1
  int64_t outer, dim, inner, n_tiles;
  int64_t width, chunk, n_chunks;
  const char* in;
  char* out;
  char* parts;  // cumprod_workspace_bytes(plan); NULL for 0
};

constexpr int64_t kCumprodPart = 48, kNarrowProducts = 16, kCumprodBlock = 128;

TT_INLINE constexpr int64_t cumprod_blocks(int64_t chunk) { return ceil_div(chunk, kCumprodBlock); }

}  // namespace TT_NS
