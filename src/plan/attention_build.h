// Units and scratch memory of an AttentionPlan.
#pragma once

#include "plan/attention_plan.h"

namespace TT_NS {

namespace attention_detail {
// Elements of the scratch memory of a task, in the order in which the kernels allocate them.
inline int64_t slot_elements(const AttentionPlan& p, bool backward) {
  const int64_t n = min(kAttentionQueries, attention_lanes(p.queries));
  const int64_t k = min(kAttentionKeys, p.keys);
  const int64_t e = p.width;
  const int64_t f = p.value_width;
  const int64_t line = 16;  // each part starts on a new cache line
  const int64_t forward = 2 * k * n + e * n + k * e + k * f + 2 * n * max(e, f) + 7 * line;
  return backward ? forward + f * n + n * e + n * f + k * e + k * f + 6 * line : forward;
}

// The same with tiles; elements are words of 4 bytes.
inline int64_t tile_slot_elements(const AttentionPlan& p, bool backward, bool split) {
  const int64_t n = kAttentionQueries;
  const int64_t k = kAttentionKeys;
  const int64_t e = round_up(p.width, int64_t(32));
  const int64_t f = round_up(p.value_width, int64_t(32));
  const int64_t line = 16;
  if (!backward) {
    const int64_t blocks = kAttentionTileQueries / n;
    return k * (e + f) / 2 + 3 * k * n + blocks * n * (e / 2 + f) + 14 * line;
  }
  const int64_t keys = min(kAttentionTileKeys, round_up(p.keys, k));
  const int64_t of_keys = keys * (e + f / 2 + e + f);
  const int64_t queries = split ? min(p.queries, kAttentionTileQueries) : p.queries;
  const int64_t heads = split ? 1 : p.heads / p.key_heads;
  const int64_t dq = heads * round_up(queries, n) * e;
  return of_keys + n * (e + f) + 6 * k * n + dq + 19 * line;
}
}  // namespace attention_detail

// Sets the units and the grain of a stage: a task is about a million multiply-adds, eight million
// with tiles. Returns the number of tasks.
inline int64_t attention_stage(AttentionPlan* p, int stage, int64_t units, int64_t rows,
                               int64_t columns) {
  const double work =
      double(p->width + p->value_width + 1) * double(rows + 1) * double(columns + 1);
  const int64_t min_grain = max<int64_t>(1, ceil_div(units, kAttentionSlots));
  const int64_t grain = int64_t((p->tiles ? 8388608.0 : 1048576.0) / work);
  p->run.units[stage] = units;
  p->run.grain[stage] = max(min_grain, grain);
  return ceil_div(units, p->run.grain[stage]);
}

// Sets stages, units and slot_bytes; dimensions and dtype must be set. split: backward runs in two
// stages, for more threads than key heads. Returns the size of the workspace in bytes.
inline int64_t attention_units(AttentionPlan* p, bool backward, bool split = false) {
  const int64_t heads = p->batch * p->heads;
  const int64_t key_heads = p->batch * p->key_heads;
  const int64_t blocks = attention_query_blocks(*p);
  const int64_t queries = min(p->queries, p->tiles ? kAttentionTileQueries : kAttentionQueries);
  const int64_t keys = p->tiles ? kAttentionTileKeys : kAttentionKeys;
  p->run.n = split ? 2 : 1;
  p->run.stage = 0;
  p->run.units[1] = 0;
  p->run.grain[1] = 1;
  const int64_t elements = p->tiles ? attention_detail::tile_slot_elements(*p, backward, split)
                                    : attention_detail::slot_elements(*p, backward);
  p->slot_bytes = round_up(elements * (p->dtype == TT_F64 ? 8 : 4), 64);
  const bool by_head = backward && !split;
  int64_t slots = attention_stage(p, 0, by_head ? key_heads : heads * blocks,
                                  by_head ? p->queries : queries, p->keys);
  if (split) {
    const int64_t backward_slots =
        attention_stage(p, 1, key_heads * attention_key_blocks(*p), p->queries, keys);
    slots = max(slots, backward_slots);
  }
  return slots * p->slot_bytes;
}

}  // namespace TT_NS
