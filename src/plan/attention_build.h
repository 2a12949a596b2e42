// Units and scratch memory of an AttentionPlan.
#pragma once

#include "plan/attention_plan.h"

namespace TT_NS {

namespace attention_detail {
inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Elements of a task's scratch memory, in the order in which the kernels take them.
inline int64_t slot_elements(const AttentionPlan& p, bool backward) {
  const int64_t n = least(kAttentionQueries, attention_lanes(p.queries)), k = least(kAttentionKeys, p.keys);
  const int64_t e = p.width, f = p.value_width, one = 16;  // each part starts on a line of its own
  const int64_t forward = 2 * k * n + e * n + k * e + k * f + 2 * n * (e > f ? e : f) + 7 * one;
  return backward ? forward + f * n + n * e + n * f + k * e + k * f + 6 * one : forward;
}
}  // namespace attention_detail

// Dimensions and dtype are set. Returns the bytes of the workspace.
inline int64_t attention_units(AttentionPlan* p, bool backward) {
  const int64_t blocks = (p->queries + kAttentionQueries - 1) / kAttentionQueries;
  const int64_t units = p->queries == 0 && !backward ? 0 : p->batch * (backward ? p->key_heads : p->heads * blocks);
  p->run.n = 1, p->run.stage = 0;
  p->run.units[0] = units, p->run.units[1] = 0;
  // A task is worth about a million multiply-adds.
  const double rows = backward ? double(p->queries) : double(attention_detail::least(p->queries, kAttentionQueries));
  const double work = double(p->width + p->value_width + 1) * double(p->keys + 1) * (rows + 1);
  const int64_t few = (units + kAttentionSlots - 1) / kAttentionSlots, many = int64_t(1048576.0 / work);
  p->run.grain[0] = few > many ? few : many;
  p->run.grain[1] = 1;
  p->slot_bytes = (attention_detail::slot_elements(*p, backward) * (p->dtype == TT_F64 ? 8 : 4) + 63) / 64 * 64;
  const int64_t slots = (units + p->run.grain[0] - 1) / p->run.grain[0];
  return units ? slots * p->slot_bytes : 0;
}

}  // namespace TT_NS
