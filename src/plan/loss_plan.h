// Plan of the losses of class indices. POD, also device code.
#pragma once

#include "plan/rows.h"

namespace TT_NS {

// Losses of class indices over an array [outer][classes][inner]; target, loss, row_weight, lse and
// scale are [outer][inner]. A target equal to ignore_index gives loss, weight and gradient 0; all
// others are in [0, classes) (index_check).
//   cross_entropy: x = logits; lse = log sum exp of the classes, loss = (lse - x[target])
//   weight[target] cross_entropy_backward: dx = (exp(x - lse) - [class == target]) scale row_weight
//   nll_loss: x = log-probabilities; loss = -x[target] weight[target]; its backward: dx = -[class
//   == target] scale row_weight
// Units: [outer][n_tiles of kRowTile inner positions][n_chunks of `chunk` classes]. If n_chunks >
// 1, a second stage of cross_entropy joins the chunks, units [outer][n_tiles]; nll_loss is not
// split.
struct ClassLossPlan {
  Stages run;
  int32_t dtype;         // of x and dx: f16 bf16 f32 f64
  int32_t target_dtype;  // i32 or i64
  int32_t weight_dtype;
  // of loss, row_weight and scale; the computation uses the same type as for dtype
  int32_t loss_dtype;
  int64_t outer, classes, inner, n_tiles;
  int64_t chunk, n_chunks;
  int64_t ignore_index;
  const char* x;  // not read by nll_loss_backward
  const char* target;
  const char* weight;  // per class; NULL: 1
  char* loss;
  char* row_weight;      // forward: receives weight[target], unless NULL; backward: read, NULL: 1
  char* lse;             // f32, or f64 for f64; cross_entropy: unless NULL; its backward: read
  const char* scale;     // backward
  int64_t scale_stride;  // elements: 1, or 0 for one value
  char* dx;
  double* parts;  // cross_entropy, split: [2][outer][inner][n_chunks], maxima and sums of chunks;
                  // else NULL
};

}  // namespace TT_NS
