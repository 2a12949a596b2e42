// Plans of layer_norm, group_norm, batch_norm and their gradients. POD, also device code.
#pragma once

#include "plan/rows.h"

namespace TT_NS {

// y = (x - mean) * rstd * weight + bias for each row of n elements; mean and rstd = 1 /
// sqrt(variance + eps) are stored. Units: [rows][n_chunks of `chunk` elements]. If n_chunks > 1,
// three stages: sums, sums of squares, y.
// rms_norm is the same without means. In group_norm a row is a group of an image: n / inner
// channels, each with one weight; row r begins with channel r % groups * (n / inner).
struct LayerNormPlan {
  Stages run;
  int32_t dtype;         // of x and y: f16 bf16 f32 f64
  int32_t weight_dtype;  // of weight and bias
  int32_t stat_dtype;    // of mean and rstd
  int64_t rows, n;
  int64_t groups, inner;  // group_norm: of an image; elements of a channel. Else 1, 0
  int64_t chunk, n_chunks;
  double eps;
  const char* x;
  const char* weight;  // NULL: 1
  const char* bias;    // NULL: 0
  char* y;
  char* mean;  // rows elements; NULL: rows are not centred
  char* rstd;
  double* parts;  // [2][rows][n_chunks]: sums of chunks; NULL if n_chunks is 1
};

// The gradients: dx, and the sums over rows dweight and dbias; any of them may be NULL.
// Stage 0: chunks of rows, units [n_chunks][n_parts of `part` elements of a row], writes partial
// sums to workspace [n_chunks][2][n]. Stage 1 (only if n_parts > 1 and dx is needed): dx, by the
// same units. Stage 2 (only if dweight or dbias is needed and stage 0 has not finished it): tiles
// of kRowTile columns.
struct LayerNormBackwardPlan {
  Stages run;
  // g, x and dx have dtype; dweight and dbias have weight_dtype.
  int32_t dtype, weight_dtype, stat_dtype;
  int64_t rows, n;
  int64_t chunk, n_chunks;
  int64_t part, n_parts;
  const char* g;
  const char* x;
  const char* mean;  // NULL: rows are not centred
  const char* rstd;
  const char* weight;  // NULL: 1
  char* dx;
  char* dweight;
  char* dbias;
  void* workspace;  // layer_norm_backward_workspace_bytes(plan)
  double* parts;    // [2][rows][n_parts]: sums for stage 1; NULL if n_parts is 1
};

// The gradients of group_norm, of a dense array [rows][channels][inner]; any of the results may be
// NULL. Units of stages 0 and 1: [rows][n_chunks of `chunk` channels]. Stage 0 writes for each
// channel of a row the sums of g and g (x - mean) rstd to workspace [2][rows][channels] of the
// compute dtype, and dx unless rows are split. Stage 1 (only if n_chunks > 1 and dx is needed): dx.
// Stage 2 (only if dweight or dbias is needed) sums those of all images; units: tiles of
// kChannelTile of all groups' channels.
struct GroupNormBackwardPlan {
  Stages run;
  int32_t dtype;         // of g, x and dx: f16 bf16 f32 f64; mean and rstd have the compute dtype
  int32_t weight_dtype;  // of weight, dweight and dbias
  int64_t rows, channels, inner;
  int64_t groups;  // rows of an image
  int64_t chunk, n_chunks;
  const char* g;
  const char* x;
  const char* mean;
  const char* rstd;
  const char* weight;  // NULL: 1
  char* dx;
  char* dweight;
  char* dbias;
  void* workspace;  // group_norm_backward_workspace_bytes(plan)
};

// ---- batch_norm: a dense array [outer][channels][inner]; inner is 1 for channels last ----

// Sums over each channel. Stage 0 writes partial sums of chunks to workspace
// [n_chunks][2][channels]; units: [n_chunks] if inner == 1, else [n_chunks][channels]. A chunk is
// `chunk` positions of the outer dimension or, if n_parts > 1, one of the n_parts parts of `part`
// inner elements at one position. Stage 1 joins them; units: tiles of kChannelTile channels.
//   without g: mean, rstd = 1 / sqrt(variance + eps) and the variance of the whole population
//   with g: the sums of g and of g (x - mean) rstd
struct ChannelSumPlan {
  Stages run;
  int32_t dtype;  // of x and g: f16 bf16 f32 f64; the other arrays have the compute dtype: f64 for
                  // f64, else f32
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
// Backward: y = rstd weight (g - sums[0] / n - (x - mean) rstd sums[1] / n); without sums, y = rstd
// weight g. Units: chunks of the outer dimension if inner == 1, else [outer][channels][n_parts of
// `part` inner elements].
struct ChannelAffinePlan {
  Stages run;
  int32_t dtype;         // of x, g and y
  int32_t weight_dtype;  // of weight and bias
  int64_t outer, channels, inner;
  int64_t chunk, part, n_parts;
  const char* x;
  const char* g;
  const char* mean;  // mean, rstd and sums have the compute dtype
  const char* rstd;
  const char* sums;    // [2][channels] or NULL
  const char* weight;  // NULL: 1
  const char* bias;    // NULL: 0
  char* y;
};

// channel_norm: both of the above, channel by channel, with the results of both; their runs do not
// count. Of the CPU alone. Units: channels.
struct ChannelNormPlan {
  Stages run;
  ChannelSumPlan sums;
  ChannelAffinePlan affine;
};

constexpr int64_t kChannelTile = 256;

}  // namespace TT_NS
