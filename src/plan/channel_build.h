// Builds the plans of channel_plan.h.
#pragma once

#include "plan/channel_plan.h"
#include "plan/row_build.h"

namespace TT_NS {

// Outer positions that make about 64K elements: of one channel, or of all if inner is 1, then not
// so many that sums of float32 one by one lose much.
inline int64_t channel_chunk(int64_t channels, int64_t inner) {
  const int64_t g = row_grain(inner == 1 ? channels : inner);
  return inner > 1 ? g : g < 16 ? 16 : g < 1024 ? g : 1024;
}

// Both fill all but the pointers, which are NULL.
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

}  // namespace TT_NS
