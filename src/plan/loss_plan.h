// Plan of the losses of class indices. POD, also device code.
#pragma once

#include "plan/rows.h"

namespace TT_NS {

// Losses of class indices over an array [outer][classes][inner], with target, loss, row_weight, lse
// and scale [outer][inner]. A target equal to ignore_index gives loss, weight and gradient 0; the
// others lie in [0, classes) (index_check).
//   cross_entropy: x = logits; lse = log sum exp of the classes, loss = (lse - x[target])
//   weight[target] cross_entropy_backward: dx = (exp(x - lse) - [class == target]) scale row_weight
//   nll_loss: x = log-probabilities; loss = -x[target] weight[target]; its backward: dx = -[class
//   == target] scale row_weight
// Units: [outer][n_tiles of kRowTile of the inner positions][n_chunks of `chunk` classes]. Where
// n_chunks > 1, cross_entropy joins what its chunks leave in a stage of units [outer][n_tiles];
// nll_loss is not cut.
struct ClassLossPlan {
  Stages run;
  int32_t dtype;         // of x and dx: f16 bf16 f32 f64
  int32_t target_dtype;  // i32 or i64
  int32_t weight_dtype;
  int32_t loss_dtype;  // of loss, row_weight and scale; it computes in the same type as dtype
  int64_t outer, classes, inner, n_tiles;
  int64_t chunk, n_chunks;
  int64_t ignore_index;
  const char* x;  // not read by nll_loss_backward
  const char* target;
  const char* weight;  // per class; NULL: 1
  char* loss;
  char* row_weight;   // forward: weight[target] is left there, unless NULL; backward: read, NULL: 1
  char* lse;          // f32, or f64 for f64; cross_entropy: unless NULL; its backward: read
  const char* scale;  // backward
  int64_t scale_stride;  // elements: 1, or 0 for one value
  char* dx;
  double* parts;  // cross_entropy, cut: [2][outer][inner][n_chunks], largest elements and sums of
                  // chunks; else NULL
};

}  // namespace TT_NS
