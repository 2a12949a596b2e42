// Plans of the kernels that normalise channels (batch_norm): a dense array seen as
// [outer][channels][inner], inner 1 for channels last. POD, also device code.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

// Sums over each channel. Stage 0 leaves partial sums of chunks in workspace
// [n_chunks][2][channels]; units: inner == 1: [n_chunks], else [n_chunks][channels]. A chunk is
// `chunk` positions of the outer dimension or, where n_parts > 1, one of the n_parts parts of
// `part` inner elements at one position. Stage 1 joins them; units: tiles of kChannelTile channels.
//   without g: mean, rstd = 1 / sqrt(variance + eps) and the variance of the whole population
//   with g: the sums of g and of g (x - mean) rstd
struct ChannelSumPlan {
  Stages run;
  int32_t dtype;  // of x and g: f16 bf16 f32 f64; the other arrays hold what it computes in: f32,
                  // or f64 for f64
  int64_t outer, channels, inner;
  int64_t chunk, n_chunks, part, n_parts;
  double eps;
  const char* x;
  const char* g;     // or NULL
  const char* mean;  // with g
  const char* rstd;  // with g
  char* out;         // [3][channels], with g [2][channels]
  void* workspace;   // channel_workspace_bytes(plan)
};

// channel_affine, forward (g NULL): y = (x - mean) rstd weight + bias.
// Backward: y = rstd weight (g - sums[0] / n - (x - mean) rstd sums[1] / n), without sums: y = rstd
// weight g. Units: inner == 1: chunks of the outer dimension, else [outer][channels][n_parts of
// `part` inner elements].
struct ChannelAffinePlan {
  Stages run;
  int32_t dtype;         // of x, g and y
  int32_t weight_dtype;  // of weight and bias
  int64_t outer, channels, inner;
  int64_t chunk, part, n_parts;
  const char* x;
  const char* g;
  const char* mean;  // these of the dtype of computation
  const char* rstd;
  const char* sums;    // [2][channels] or NULL
  const char* weight;  // NULL: 1
  const char* bias;    // NULL: 0
  char* y;
};

constexpr int64_t kChannelTile = 256;

}  // namespace TT_NS
