// Plan of softmax, log_softmax and their gradients. POD, also device code.
#pragma once

#include "plan/rows.h"

namespace TT_NS {

// softmax, log_softmax: a = input, out = result. Their backwards: a = gradient of the result, b =
// the result, out = gradient of the input.
// Units: [outer][n_tiles of kRowTile inner positions][n_chunks of `chunk` elements of dim]. If
// n_chunks > 1, three stages: maxima (not in a backward) and sums of chunks; those of rows, units
// [outer][n_tiles]; results.
struct SoftmaxPlan {
  Stages run;
  int32_t dtype;  // of all operands: f16 bf16 f32 f64
  int64_t outer, dim, inner, n_tiles;
  int64_t chunk, n_chunks;
  const char* a;
  const char* b;
  char* out;
  double* parts;  // [2][outer][inner][n_chunks + 1]: maxima and sums of the chunks, then of the
                  // row; NULL if n_chunks is 1
};

}  // namespace TT_NS
