// Steps of a plan hold addresses in the arena. An input or output that is bound is used where the
// caller has it: the addresses that are in its slot are moved there before a run.
#pragma once

#include "graph/plan/plan.h"

namespace TT_NS {

// After the second lowering of p. Sets the places of a third lowering, `probe`: those of p, but
// bound slots are in `memory` (probe_bytes(p)), each at a distance from its own place that no other
// slot has.
int64_t probe_bytes(const Plan& p);
void move_slots(const Plan& p, char* memory, Plan& probe);
// Finds the addresses in steps that have moved as far as a slot. blob: that of p, whose memory the
// probe has overwritten. Plans have pointers for addresses and nothing else (c.op_launches).
void find_words(Plan& p, const Plan& probe, const char* blob);

// Whether the slot can be at `data` in the next runs.
inline bool may_bind(const Plan& p, const SlotBinding& b, const char* data) {
  if (b.placement < 0 || uintptr_t(data) % kArenaAlign) return false;
  return data + b.bytes <= p.arena || data >= p.arena + p.arena_bytes;
}
// data: memory that may_bind accepts, or b.own.
inline void bind_slot(SlotBinding& b, char* data) {
  if (b.now == data) return;
  for (uintptr_t* word : b.words) *word += uintptr_t(data) - uintptr_t(b.now);
  b.now = data;
}

}  // namespace TT_NS
