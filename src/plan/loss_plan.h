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

// Connectionist temporal classification of sequences [time][batch][classes]. A target of n labels
// has 2 n + 1 states: blank, label 0, blank, label 1, …, blank. Labels are in [0, classes), lengths
// at most time and max_target; those that have changed since they were checked are cut, and such
// labels count as blanks.
//   ctc_loss: log_alpha = the log-probability of all paths to each state at each time; loss = -log
//   of those that end in one of the last two states
//   ctc_loss_backward: dx = scale * (exp(x) - the probability of the class given the target)
// Units: samples.
struct CtcPlan {
  Stages run;
  int32_t dtype;  // of x, loss, scale and dx: f32 f64
  int32_t zero_infinity;
  int64_t time, batch, classes, max_target, blank;
  int64_t n_targets;
  const char* x;
  const int64_t* targets;  // [n_targets]
  const int64_t* offsets;  // [batch]: where the targets of a sample begin
  const int64_t* input_lengths;
  const int64_t* target_lengths;
  double* log_alpha;  // [batch][time][2 max_target + 1]
  double* scratch;    // backward: [batch][2 max_target + 1 + classes]
  char* loss;         // [batch]
  const char* scale;  // backward: [batch]
  char* dx;
};

}  // namespace TT_NS
