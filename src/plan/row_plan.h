// Plans of the kernels over rows: contiguous arrays seen as [outer][dim][inner], a row being the
// `dim` elements of one (outer, inner) pair. POD, also device code.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

// softmax, log_softmax: a = input, out = result. Their backwards: a = gradient of the result, b =
// the result, out = gradient of the input. Units: [outer][n_tiles of kRowTile of the inner
// positions][n_chunks of `chunk` elements of dim]. Where n_chunks > 1, in three stages: largest
// elements (not in a backward) and sums of chunks; those of rows, units [outer][n_tiles]; results.
struct SoftmaxPlan {
  Stages run;
  int32_t dtype;  // of all operands: f16 bf16 f32 f64
  int64_t outer, dim, inner, n_tiles;
  int64_t chunk, n_chunks;
  const char* a;
  const char* b;
  char* out;
  double* parts;  // [2][outer][inner][n_chunks + 1]: largest elements and sums, of rows last; NULL
                  // if n_chunks is 1
};
constexpr int64_t kRowTile = 256, kMostChunks = 64;

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

// y = (x - mean) * rstd * weight + bias for each row of n elements; mean and rstd = 1 /
// sqrt(variance + eps) are kept. Units: [rows][n_chunks of `chunk` elements]. Where n_chunks > 1,
// in three stages: sums, sums of squares, y.
struct LayerNormPlan {
  Stages run;
  int32_t dtype;         // of x and y: f16 bf16 f32 f64
  int32_t weight_dtype;  // of weight and bias
  int32_t stat_dtype;    // of mean and rstd
  int64_t rows, n;
  int64_t chunk, n_chunks;
  double eps;
  const char* x;
  const char* weight;  // NULL: 1
  const char* bias;    // NULL: 0
  char* y;
  char* mean;  // rows elements
  char* rstd;
  double* parts;  // [2][rows][n_chunks]: sums of chunks; NULL if n_chunks is 1
};

// The gradients of that: dx, and the sums over rows dweight, dbias; any of them may be NULL.
// Stage 0: chunks of rows, units [n_chunks][n_parts of `part` elements of a row], which leave
// partial sums in workspace [n_chunks][2][n]; stage 1 (only if n_parts > 1 and dx is wanted): dx by
// the same units; stage 2 (only if dweight or dbias is wanted and not made in place by stage 0):
// tiles of kRowTile columns.
struct LayerNormBackwardPlan {
  Stages run;
  int32_t dtype, weight_dtype,
      stat_dtype;  // g, x and dx have dtype; dweight and dbias have weight_dtype
  int64_t rows, n;
  int64_t chunk, n_chunks;
  int64_t part, n_parts;
  const char* g;
  const char* x;
  const char* mean;
  const char* rstd;
  const char* weight;  // NULL: 1
  char* dx;
  char* dweight;
  char* dbias;
  void* workspace;  // layer_norm_backward_workspace_bytes(plan)
  double* parts;    // [2][rows][n_parts]: what stage 1 adds up; NULL if n_parts is 1
};

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
