// Helpers of plans over rows. A row is the `dim` elements of one (outer, inner) pair of a
// contiguous array [outer][dim][inner].
#pragma once

#include "plan/stages.h"

namespace TT_NS {

constexpr int64_t kRowTile = 256;  // inner positions per unit
constexpr int64_t kMaxRowChunks = 64;

// Number of units of one row that make a task of about 64K elements.
inline int64_t row_grain(int64_t row_elements) {
  return row_elements < 65536 ? 65536 / (row_elements + 1) : 1;
}

// Chunk size for `units` rows, or groups of `width` columns: dim unless rows are few and long.
// There are at most kMaxRowChunks chunks, since each may add the partial results of all others.
inline int64_t row_chunk(int64_t units, int64_t dim, int64_t width) {
  const int64_t min_chunk = 32768 / width;
  const int64_t part = ceil_div(dim, kMaxRowChunks);
  const int64_t chunk = round_up(max(part, min_chunk), 16);
  return units >= 32 || dim < 2 * chunk ? dim : chunk;
}

// Size of the sums of chunks of both plans, in double.
inline int64_t row_parts_bytes(int64_t rows, int64_t n_chunks) {
  return n_chunks > 1 ? 2 * rows * n_chunks * 8 : 0;
}

}  // namespace TT_NS
