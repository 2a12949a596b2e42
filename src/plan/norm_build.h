// Builds the plans of layer_norm, group_norm and batch_norm.
#pragma once

#include "plan/norm_plan.h"

namespace TT_NS {

// Sets all fields but the pointers; weight_dtype matters only if there are weights. Rows are not
// split.
inline void build_layer_norm(LayerNormPlan* p, int32_t dtype, int32_t weight_dtype,
                             int32_t stat_dtype, int64_t rows, int64_t n, double eps) {
  p->dtype = dtype;
  p->weight_dtype = weight_dtype;
  p->stat_dtype = stat_dtype;
  p->rows = rows;
  p->n = n;
  p->groups = 1;
  p->inner = 0;
  p->eps = eps;
  p->chunk = n;
  p->n_chunks = 1;
  p->parts = nullptr;
  one_stage(&p->run, rows, row_grain(n));
}

// Then splits rows if they are few and long. Sizes are not 0.
inline void split_layer_norm(LayerNormPlan* p) {
  p->chunk = row_chunk(p->rows, p->n, 1);
  p->n_chunks = ceil_div(p->n, p->chunk);
  if (p->n_chunks == 1) return;
  p->run.n = 3;
  for (int s = 0; s < 3; s++) {
    p->run.units[s] = p->rows * p->n_chunks;
    p->run.grain[s] = row_grain(p->chunk);
  }
}

// Sets all fields but the pointers; sums: dweight or dbias is needed. Rows are not split.
inline void build_layer_norm_backward(LayerNormBackwardPlan* p, int32_t dtype, int32_t weight_dtype,
                                      int32_t stat_dtype, int64_t rows, int64_t n, bool sums) {
  p->dtype = dtype;
  p->weight_dtype = weight_dtype;
  p->stat_dtype = stat_dtype;
  p->rows = rows;
  p->n = n;
  p->chunk = (rows + 63) / 64 < 16 ? 16 : (rows + 63) / 64;
  p->n_chunks = ceil_div(rows, p->chunk);
  p->part = n;
  p->n_parts = 1;
  p->parts = nullptr;
  one_stage(&p->run, p->n_chunks, row_grain(n * p->chunk));
  p->run.n = 3;
  p->run.units[2] = sums ? ceil_div(n, kRowTile) : 0;
  p->run.grain[2] = row_grain(p->n_chunks * kRowTile * 2);
}

// Then, with the result pointers set, splits rows if they are few and long. The sums of a single
// chunk are computed in place if they have the compute dtype. Sizes are not 0.
inline void split_layer_norm_backward(LayerNormBackwardPlan* p) {
  const int32_t computed = p->dtype == TT_F64 ? TT_F64 : TT_F32;
  if (p->n_chunks == 1 && p->dweight && p->dbias && p->weight_dtype == computed)
    p->run.units[2] = 0;
  const int64_t rows = min(p->rows, p->chunk);
  p->part = row_chunk(p->n_chunks, p->n, rows);
  p->n_parts = ceil_div(p->n, p->part);
  if (p->n_parts == 1) return;
  p->run.units[0] = p->n_chunks * p->n_parts;
  p->run.grain[0] = row_grain(p->part * rows);
  p->run.units[1] = p->dx ? p->run.units[0] : 0;
  p->run.grain[1] = p->run.grain[0];
}

inline int64_t layer_norm_backward_workspace_bytes(const LayerNormBackwardPlan* p) {
  if (!p->run.units[2]) return 0;
  return p->n_chunks * 2 * p->n * (p->dtype == TT_F64 ? 8 : 4);
}

// ---- group_norm ----

// Sets all fields; pointers are NULL. rows: groups of all images, of `channels` channels each.
// sums: dweight or dbias is needed. Sizes are not 0.
inline void build_group_norm_backward(GroupNormBackwardPlan* p, int32_t dtype, int32_t weight_dtype,
                                      int64_t rows, int64_t groups, int64_t channels, int64_t inner,
                                      bool dx, bool sums) {
  *p = GroupNormBackwardPlan{};
  p->dtype = dtype;
  p->weight_dtype = weight_dtype;
  p->rows = rows;
  p->groups = groups;
  p->channels = channels;
  p->inner = inner;
  p->chunk = ceil_div(row_chunk(rows, channels * inner, 1), inner);
  p->n_chunks = ceil_div(channels, p->chunk);
  one_stage(&p->run, rows * p->n_chunks, row_grain(p->chunk * inner));
  p->run.n = 3;
  p->run.units[1] = dx && p->n_chunks > 1 ? p->run.units[0] : 0;
  p->run.grain[1] = p->run.grain[0];
  p->run.units[2] = sums ? ceil_div(groups * channels, kChannelTile) : 0;
  p->run.grain[2] = row_grain(rows / groups * kChannelTile * 2);
}

inline int64_t group_norm_backward_workspace_bytes(const GroupNormBackwardPlan* p) {
  return 2 * p->rows * p->channels * (p->dtype == TT_F64 ? 8 : 4);
}

// ---- batch_norm ----

// Outer positions of about 64K elements: of one channel, or of all channels if inner is 1. They are
// limited in that case, so that sequential sums in float32 stay accurate.
inline int64_t channel_chunk(int64_t channels, int64_t inner) {
  const int64_t g = row_grain(inner == 1 ? channels : inner);
  return inner > 1 ? g : clamp<int64_t>(g, 16, 1024);
}

// Both set all fields; pointers are NULL.
inline void build_channel_sums(ChannelSumPlan* p, int32_t dtype, int64_t outer, int64_t channels,
                               int64_t inner, double eps) {
  *p = ChannelSumPlan{};
  p->dtype = dtype;
  p->outer = outer;
  p->channels = channels;
  p->inner = inner;
  p->eps = eps;
  p->chunk = channel_chunk(channels, inner);
  const int64_t rows = min(p->chunk, outer);
  const int64_t chunks = ceil_div(outer, p->chunk);
  p->part = row_chunk(chunks * channels, inner, 1);
  p->n_parts = ceil_div(inner, p->part);
  p->n_chunks = chunks * p->n_parts;  // more than one part: chunk is 1
  one_stage(&p->run, inner == 1 ? p->n_chunks : p->n_chunks * channels,
            row_grain(rows * (inner == 1 ? channels : p->part)));
  p->run.n = 2;
  p->run.units[1] = ceil_div(channels, kChannelTile);
  p->run.grain[1] = row_grain(p->n_chunks * kChannelTile * 2);
}

inline int64_t channel_workspace_bytes(const ChannelSumPlan* p) {
  return p->n_chunks * 2 * p->channels * (p->dtype == TT_F64 ? 8 : 4);
}

inline void build_channel_affine(ChannelAffinePlan* p, int32_t dtype, int32_t weight_dtype,
                                 int64_t outer, int64_t channels, int64_t inner) {
  *p = ChannelAffinePlan{};
  p->dtype = dtype;
  p->weight_dtype = weight_dtype;
  p->outer = outer;
  p->channels = channels;
  p->inner = inner;
  p->chunk = channel_chunk(channels, inner);
  const int64_t rows = min(p->chunk, outer);
  p->part = row_chunk(outer * channels, inner, 1);
  p->n_parts = ceil_div(inner, p->part);
  if (inner == 1) one_stage(&p->run, ceil_div(outer, p->chunk), row_grain(rows * channels));
  else one_stage(&p->run, outer * channels * p->n_parts, row_grain(p->part));
}

// Whether sums and affine are best computed channel by channel: if what the sums read of a channel
// stays in the second-level cache for the affine, and there are channels for many threads.
inline bool is_by_channel(const ChannelSumPlan* p) {
  constexpr int64_t kCachedBytes = 512 << 10;
  const int64_t arrays = p->g ? 2 : 1;
  const int64_t item = kItemSize[p->dtype];
  return p->inner > 1 && p->channels >= 16 && p->outer * p->inner * item * arrays <= kCachedBytes;
}
// Sets all fields.
inline void build_channel_norm(ChannelNormPlan* p, const ChannelSumPlan& sums,
                               const ChannelAffinePlan& affine) {
  p->sums = sums;
  p->affine = affine;
  one_stage(&p->run, sums.channels, row_grain(2 * sums.outer * sums.inner));
}

}  // namespace TT_NS
