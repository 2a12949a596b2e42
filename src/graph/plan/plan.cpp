// A graph is lowered twice or, where launches may move with bound slots, a third time.
#include "graph/plan/plan.h"

#include "graph/plan/bind.h"
#include "graph/plan/lowering.h"
#include "graph/plan/plan_form.h"
#include "graph/plan/tiles.h"

#include <string.h>

namespace TT_NS {

namespace {

Ref<Plan> measured_plan(const Ref<Graph>& g, Layouts& layouts) {
  auto* p = new (mem_alloc(sizeof(Plan))) Plan{};
  p->tag = kTagPlan;
  p->refs = 1;
  Ref<Plan> plan = Ref<Plan>::adopt(p);
  p->graph = g;
  Lowering(*g, *p, layouts, false).run();
  return plan;
}

// What depends on the slots is what a lowering with slots at other addresses has otherwise.
void find_bindings(const Ref<Graph>& g, Plan& p, Layouts& layouts, int64_t n_bound, int64_t least) {
  const auto place = [&](SlotBinding& b) {
    if (b.placement >= 0) b.own = b.now = p.arena + p.placements[b.placement].offset;
    if (p.device || !p.packed.empty() || b.bytes < least) b.placement = -1;
  };
  for (SlotBinding& b : p.bound_inputs) place(b);
  for (SlotBinding& b : p.bound_outputs) place(b);
  for (int64_t i = n_bound; i < p.bound_outputs.size(); i++) p.bound_outputs[i].placement = -1;
  const int64_t bytes = probe_bytes(p);
  if (!bytes) return;
  const Ref<PlanMemory> moved = new_plan_memory(bytes);
  const Ref<PlanMemory> blob = new_plan_memory(p.blob_bytes);
  memcpy(blob->data, p.blob, size_t(p.blob_bytes));
  Plan probe{};
  probe.placements = p.placements;
  probe.arena = p.arena;
  probe.blob = p.blob;
  probe.blob_bytes = p.blob_bytes;
  move_slots(p, moved->data, probe);
  layouts.second_run();
  Lowering(*g, probe, layouts, true).run();
  find_words(p, probe, blob->data);
}

}  // namespace

void Plan::destroy(Plan* p) noexcept {
  p->tag = 0;
  if (p->device) p->device->destroy(p->device);
  if (p->blob) mem_free(p->blob, size_t(p->blob_bytes));
  for (const PackedMemory& m : p->packed) mem_free(m.data, size_t(m.bytes));
  p->~Plan();
  mem_retire(p, sizeof *p);
}

void PlanMemory::destroy(PlanMemory* m) noexcept {
  if (m->data) mem_free(m->data, size_t(m->bytes));
  mem_free(m, sizeof *m);
}

Ref<PlanMemory> new_plan_memory(int64_t bytes) {
  auto* m = static_cast<PlanMemory*>(mem_alloc(sizeof(PlanMemory)));
  *m = {1, nullptr, 0};
  Ref<PlanMemory> memory = Ref<PlanMemory>::adopt(m);
  m->data = static_cast<char*>(mem_alloc(size_t(bytes)));
  m->bytes = bytes;
  return memory;
}

int64_t needed_arena(const Ref<Graph>& g) {
  Layouts layouts{{}, ImageLayouts(*g)};
  return measured_plan(g, layouts)->arena_bytes;
}

Ref<Plan> new_plan(const Ref<Graph>& g, void* arena, int64_t arena_bytes, int64_t n_bound,
                   int64_t least_bound) {
  Layouts layouts{{}, ImageLayouts(*g)};
  Ref<Plan> plan = measured_plan(g, layouts);
  Plan& p = *plan.get();
  if (arena && arena_bytes < p.arena_bytes)
    fail_arg(TT_BUFFER_TOO_SMALL, "arena", "arena has {} bytes, the plan needs {}", arena_bytes,
             p.arena_bytes);
  if (uintptr_t(arena) % kArenaAlign)
    fail_arg(TT_INVALID_ARG, "arena", "arena must be aligned to {} bytes", kArenaAlign);
  if (p.device) allocate_device(*p.device);
  p.blob = static_cast<char*>(mem_alloc(size_t(p.blob_bytes)));
  memset(p.blob, 0, size_t(p.blob_bytes));
  p.arena = static_cast<char*>(arena);
  if (!arena && p.arena_bytes) {
    p.memory = new_plan_memory(p.arena_bytes);
    p.arena = p.memory->data;
  }
  layouts.second_run();
  Lowering(*g, p, layouts, true).run();
  if (n_bound >= 0) find_bindings(g, p, layouts, n_bound, least_bound);
  make_tiles(p);
  make_bands(p);
  if (p.device) finish_device(p);
  for (const IrStorage& s : g->storages)
    if (s.role == IrRole::kState) p.written.push_back(s.tensor->storage);
  return plan;
}

}  // namespace TT_NS
