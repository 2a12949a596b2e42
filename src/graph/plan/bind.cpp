#include "graph/plan/bind.h"

#include "base/pointer_map.h"
#include "graph/plan/plan_form.h"

#include <string.h>

namespace TT_NS {

namespace {

template <class F> void for_each_slot(Plan& p, F f) {
  for (SlotBinding& b : p.bound_inputs)
    if (b.placement >= 0) f(b);
  for (SlotBinding& b : p.bound_outputs)
    if (b.placement >= 0) f(b);
}

class Words {
 public:
  Words(Plan& p, const Plan& probe) {
    for_each_slot(p, [&](SlotBinding& b) {
      const uintptr_t distance = uintptr_t(probe.placements[b.placement].at) - uintptr_t(b.own);
      places_.find_or_add(reinterpret_cast<const void*>(distance), slots_.size());
      slots_.push_back(&b);
    });
  }
  // A word of a step that cannot be moved.
  void fix(const void* own, const void* moved) {
    if (own == moved) return;
    if (SlotBinding* b = slot_of(uintptr_t(moved) - uintptr_t(own))) b->placement = -1;
  }
  // moved: what the probe has in the place of *word.
  void add(uintptr_t* word, uintptr_t moved) {
    if (*word == moved) return;
    if (SlotBinding* b = slot_of(moved - *word)) b->words.push_back(word);
  }

 private:
  SlotBinding* slot_of(uintptr_t distance) {
    const int64_t i = places_.find(reinterpret_cast<const void*>(distance));
    return i < 0 ? nullptr : slots_[i];
  }

  SmallVec<SlotBinding*, 8> slots_;
  PointerMap places_;  // of the distances by which slots have moved, in slots_
};

uintptr_t* word_of(char*& pointer) { return reinterpret_cast<uintptr_t*>(&pointer); }

// What is in a slot and cannot be moved: numbers that an implementation has filled in may be
// addresses, as an optimizer's are.
void fix_numbers(Words& words, const char* own, const char* moved, int64_t bytes) {
  for (int64_t i = 0; i + int64_t(sizeof(uintptr_t)) <= bytes; i += sizeof(uintptr_t)) {
    const void *before, *now;
    memcpy(&before, own + i, sizeof before);
    memcpy(&now, moved + i, sizeof now);
    words.fix(before, now);
  }
}

void add_launch(Words& words, const PlanStep& s, const char* moved) {
  SmallVec<int32_t, 16> pointers;
  const int64_t end = used_bytes(*s.kernel, s.plan);
  if (!find_pointers(*s.kernel, s.plan, pointers)) return fix_numbers(words, s.plan, moved, end);
  for (const int32_t at : pointers) {
    if (at + int64_t(sizeof(uintptr_t)) > end) continue;
    uintptr_t now;
    memcpy(&now, moved + at, sizeof now);
    words.add(reinterpret_cast<uintptr_t*>(s.plan + at), now);
  }
}

void add_host_call(Words& words, PlanHostCall& own, const PlanHostCall& moved) {
  for (int64_t k = 0; k < own.args.size(); k++)
    words.add(word_of(own.args[k]), uintptr_t(moved.args[k]));
  for (int64_t k = 0; k < own.outs.size(); k++)
    words.add(word_of(own.outs[k]), uintptr_t(moved.outs[k]));
}

}  // namespace

// Each of n slots skips at most n places, for a distance that no other has.
int64_t probe_bytes(const Plan& p) {
  int64_t bytes = 0;
  int64_t n = 0;
  for_each_slot(const_cast<Plan&>(p), [&](const SlotBinding& b) {
    bytes += round_up(b.bytes, kArenaAlign);
    n++;
  });
  return n ? bytes + n * n * kArenaAlign : 0;
}

void move_slots(const Plan& p, char* memory, Plan& probe) {
  PointerMap distances;
  for_each_slot(const_cast<Plan&>(p), [&](const SlotBinding& b) {
    const auto distance = [&] {
      return reinterpret_cast<const void*>(uintptr_t(memory) - uintptr_t(b.own));
    };
    while (!distances.add(distance())) memory += kArenaAlign;
    probe.placements[b.placement].at = memory;
    memory += round_up(b.bytes, kArenaAlign);
  });
}

void find_words(Plan& p, const Plan& probe, const char* blob) {
  Words words(p, probe);
  const Ref<PlanMemory> moved = new_plan_memory(p.blob_bytes);
  memcpy(moved->data, p.blob, size_t(p.blob_bytes));
  memcpy(p.blob, blob, size_t(p.blob_bytes));
  for (const PlanStep& s : p.steps) {
    const char* now = s.plan ? moved->data + (s.plan - p.blob) : nullptr;
    if (s.kind == StepKind::kLaunch) add_launch(words, s, now);
    else if (s.kind == StepKind::kWrite) fix_numbers(words, s.plan, now, s.bytes);
  }
  for (int64_t i = 0; i < p.steps.size(); i++) words.fix(p.steps[i].to, probe.steps[i].to);
  for (int64_t i = 0; i < p.checks.size(); i++) {
    words.fix(p.checks[i].found, probe.checks[i].found);
    const DeviceCheck &own = p.checks[i].check, &moved = probe.checks[i].check;
    if (own.values) words.add(word_of(own.values->data), uintptr_t(moved.values->data));
  }
  for (int64_t i = 0; i < p.host_calls.size(); i++)
    add_host_call(words, p.host_calls[i], probe.host_calls[i]);
}

}  // namespace TT_NS
