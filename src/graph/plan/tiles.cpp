#include "graph/plan/tiles.h"

#include "plan/elementwise_plan.h"

#include <stddef.h>
#include <string.h>

namespace TT_NS {

namespace {

constexpr int32_t kSlots = 8;
constexpr int64_t kSlotBytes = 4096;
constexpr int64_t kMinElements = 2048;  // shorter operands stay in the cache anyway

struct Scratch {
  alignas(64) char slot[kSlots][kSlotBytes];
};

int64_t item_of(const ElementPlan& p, int32_t k) { return kItemSize[p.dtype[k] & 15]; }

int32_t run_tile(const TileStep& s, Scratch& scratch, int64_t at, int64_t n) {
  ElementPlan plan;
  memcpy(&plan, s.plan, offsetof(ElementPlan, size));
  for (int32_t k = 0; k < plan.n_operands; k++) {
    if (s.slot[k] >= 0) plan.ptr[k] = scratch.slot[s.slot[k]];
    else if (!plan.scalar_in[k]) plan.ptr[k] += at * item_of(plan, k);
  }
  // Kernels stream results that exceed the cache, which scratch memory must not be.
  if (s.slot[0] >= 0) plan.n = n;
  return s.fn(&plan, 0, n);
}

int32_t run_region(const void* plan, int64_t begin, int64_t end) noexcept {
  const auto& r = *static_cast<const TileRegion*>(plan);
  Scratch scratch;
  for (int64_t at = begin; at < end; at += r.block) {
    const int64_t n = min(r.block, end - at);
    for (int64_t i = 0; i < r.n_steps; i++)
      if (const int32_t status = run_tile(r.steps[i], scratch, at, n)) return status;
  }
  return TT_OK;
}

struct RegionKernel : Kernel {
  constexpr RegionKernel()
      : Kernel{.cpu = {}, .id = kNoDevice, .plan_bytes = sizeof(TileRegion), .name = "tiles"} {
    for (CpuKernel& fn : cpu) fn = run_region;
  }
};
constinit const RegionKernel kernel_region;

const ElementPlan* dense_plan(const PlanStep& s) {
  if (s.kind != StepKind::kLaunch || s.kernel->rebase != rebase_element_plan ||
      s.kernel->rng >= 0 || s.units < kMinElements)
    return nullptr;
  const auto* p = reinterpret_cast<const ElementPlan*>(s.plan);
  return p->dense && p->n == s.units ? p : nullptr;
}

struct Range {
  const char* begin;
  int64_t bytes;
  int64_t item;  // 0: one element that all positions read
};
Range range_of(const ElementPlan& p, int32_t k) {
  const int64_t item = item_of(p, k);
  if (p.scalar_in[k]) return {p.ptr[k], item, 0};
  return {p.ptr[k], p.n * item, item};
}
// Whether element i of one is touched only where element i of the other is.
bool keeps_order(const Range& a, const Range& b) {
  if (a.begin + a.bytes <= b.begin || b.begin + b.bytes <= a.begin) return true;
  return a.begin == b.begin && a.item == b.item && a.item;
}

// Whether a step before i writes the memory that step i writes. If that got no slot, step i must
// not give it one.
bool written_before(const SmallVec<int64_t, 64>& memory, int64_t i) {
  bool found = false;
  for (int64_t j = 0; j < i; j++) found |= memory[kMaxOperands * j] == memory[kMaxOperands * i];
  return found;
}

class Tiler {
 public:
  explicit Tiler(Plan& p) : p_(p) {}
  void run();

 private:
  bool may_follow(int64_t first, int64_t next) const;
  void add_region(int64_t first, int64_t end);
  int64_t private_at(const char* at, int64_t i, int64_t first, int64_t end) const;
  void assign_slots(TileRegion& r, int64_t first, int64_t end);

  Plan& p_;
  SmallVec<PlanStep, 1> steps_;
};

bool Tiler::may_follow(int64_t first, int64_t next) const {
  const ElementPlan* q = dense_plan(p_.steps[next]);
  if (!q || q->n != p_.steps[first].units) return false;
  for (int64_t i = first; i < next; i++) {
    const auto& p = *reinterpret_cast<const ElementPlan*>(p_.steps[i].plan);
    for (int32_t k = 0; k < q->n_operands; k++)
      if (!keeps_order(range_of(p, 0), range_of(*q, k))) return false;
    for (int32_t k = 1; k < p.n_operands; k++)
      if (!keeps_order(range_of(p, k), range_of(*q, 0))) return false;
  }
  return true;
}

// The placement that begins at this address when step i runs, if it exists during the steps
// [first, end) only; -1: none.
int64_t Tiler::private_at(const char* at, int64_t i, int64_t first, int64_t end) const {
  const int64_t before = first ? p_.step_times[first - 1] : -1;
  const int64_t after = p_.step_times[end];
  const int64_t now = p_.step_times[i];
  for (int64_t k = 0; k < p_.placements.size(); k++) {
    const Placement& m = p_.placements[k];
    if (p_.arena + m.offset == at && m.birth < now && m.death > now)
      return m.birth > before && m.death < after ? k : -1;
  }
  return -1;
}

// memory[kMaxOperands * i + k] is the private memory of operand k of step i of the region, or -1.
// A slot is free from the last step that uses its memory on.
void Tiler::assign_slots(TileRegion& r, int64_t first, int64_t end) {
  SmallVec<int64_t, 64> memory;
  for (int64_t i = first; i < end; i++) {
    const auto& plan = *reinterpret_cast<const ElementPlan*>(p_.steps[i].plan);
    for (int32_t k = 0; k < kMaxOperands; k++) {
      const bool any = k < plan.n_operands && !plan.scalar_in[k];
      memory.push_back(any ? private_at(plan.ptr[k], i, first, end) : -1);
    }
  }
  int64_t owner[kSlots];
  for (int64_t& o : owner) o = -1;
  for (int64_t i = 0; i < end - first; i++) {
    const PlanStep& step = p_.steps[first + i];
    TileStep s;
    s.fn = step.fn;
    s.plan = step.plan;
    const int64_t* own = memory.data() + kMaxOperands * i;
    for (int32_t k = 0; k < kMaxOperands; k++)
      for (int8_t slot = 0; slot < kSlots; slot++)
        if (own[k] >= 0 && owner[slot] == own[k]) s.slot[k] = slot;
    if (s.slot[0] < 0 && own[0] >= 0 && !written_before(memory, i)) {
      for (int8_t slot = kSlots; slot-- > 0;)
        if (owner[slot] < 0) s.slot[0] = slot;
      if (s.slot[0] >= 0) owner[s.slot[0]] = own[0];
    }
    for (int64_t& o : owner) {
      bool used = false;
      for (int64_t j = kMaxOperands * (i + 1); j < memory.size(); j++) used |= memory[j] == o;
      if (!used) o = -1;
    }
    p_.tile_steps.push_back(s);
  }
  r.n_steps = end - first;
}

void Tiler::add_region(int64_t first, int64_t end) {
  PlanStep step = p_.steps[first];
  TileRegion r;
  r.first = p_.tile_steps.size();
  int64_t widest = 1;
  for (int64_t i = first; i < end; i++) {
    const auto& plan = *reinterpret_cast<const ElementPlan*>(p_.steps[i].plan);
    for (int32_t k = 0; k < plan.n_operands; k++) widest = max(widest, item_of(plan, k));
    step.grain = min(step.grain, p_.steps[i].grain);
  }
  r.block = min(kSlotBytes / widest, int64_t(1024));
  assign_slots(r, first, end);
  step.kernel = &kernel_region;
  step.fn = run_region;
  step.plan = nullptr;
  steps_.push_back(step);
  p_.regions.push_back(r);
}

void Tiler::run() {
  constexpr int64_t kMaxSteps = 64;  // of a region
  const int64_t n = p_.steps.size();
  for (int64_t i = 0; i < n;) {
    int64_t end = i + 1;
    if (dense_plan(p_.steps[i]))
      while (end < n && end - i < kMaxSteps && may_follow(i, end)) end++;
    if (end - i == 1) steps_.push_back(p_.steps[i]);
    else add_region(i, end);
    i = end;
  }
  int64_t next = 0;
  for (PlanStep& s : steps_) {
    if (s.kernel != &kernel_region) continue;
    TileRegion& r = p_.regions[next++];
    r.steps = p_.tile_steps.data() + r.first;
    s.plan = reinterpret_cast<char*>(&r);
  }
  p_.steps = std::move(steps_);
}

}  // namespace

bool is_region(const PlanStep& s) { return s.kernel == &kernel_region; }

void make_tiles(Plan& p) {
  Tiler(p).run();
  p.step_times = {};
}

}  // namespace TT_NS
