// Plans of the kernels over rows: contiguous arrays seen as [outer][dim][inner], a row being the `dim` elements of one
// (outer, inner) pair. POD, also device code.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

// softmax, log_softmax: a = input, out = result. Their backwards: a = gradient of the result, b = the result,
// out = gradient of the input.
// Units: inner == 1: [outer]; else [outer][n_tiles], tiles of kRowTile of the inner positions.
struct SoftmaxPlan {
  Stages run;
  int32_t dtype;  // f16 bf16 f32 f64, of all operands
  int64_t outer, dim, inner, n_tiles;
  const char* a;
  const char* b;
  char* out;
};
constexpr int64_t kRowTile = 256;

}  // namespace TT_NS
