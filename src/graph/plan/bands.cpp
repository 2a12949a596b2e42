#include "graph/plan/bands.h"

#include "core/ctx.h"
#include "cpu/matmul_run.h"
#include "graph/plan/tiles.h"
#include "plan/elementwise_plan.h"

#include <algorithm>
#include <numeric>
#include <string.h>

namespace TT_NS {

namespace {

constexpr int64_t kMaxSteps = 16;          // of a chain
constexpr int64_t kMinRows = 4;            // fewer would leave too little in the cache
constexpr int64_t kMinBytes = 1 << 18;     // less stays in the cache anyway
constexpr int64_t kBandBytes = 1 << 18;    // that the launches of a band touch
constexpr int64_t kMaxRowBytes = 1 << 20;  // of a row: more would not stay in the cache

// ---- which launches follow each other ----

class Chain {
 public:
  explicit Chain(Span<const LaunchRows> all) : all_(all) {}
  // The longest chain that begins with a step; one step if there is none.
  BandRange from(int64_t first);

 private:
  bool may_follow(int64_t next) const;
  bool reads_chain(const LaunchRows& l) const;
  int64_t bytes() const;

  const Span<const LaunchRows> all_;
  BandRange r_;
};

bool Chain::reads_chain(const LaunchRows& l) const {
  for (int64_t i = r_.first; i < r_.end; i++)
    for (const Access& a : all_[i].list)
      for (const Access& b : l.list)
        if (a.write && a.span && a.at == b.at && a.span == b.span) return true;
  return false;
}

bool Chain::may_follow(int64_t next) const {
  const LaunchRows& l = all_[next];
  if (!l.rows || l.product_row || !reads_chain(l)) return false;
  for (int64_t i = r_.first; i < r_.end; i++)
    for (const Access& a : all_[i].list)
      for (const Access& b : l.list)
        if ((a.write || b.write) && !keeps_order(a, b)) return false;
  return true;
}

// What the launches touch row by row, each memory once.
int64_t Chain::bytes() const {
  int64_t total = 0;
  SmallVec<uint64_t, 32> seen;
  for (int64_t i = r_.first; i < r_.end; i++)
    for (const Access& a : all_[i].list) {
      if (!a.span || std::find(seen.begin(), seen.end(), a.at) != seen.end()) continue;
      seen.push_back(a.at);
      total += a.bytes;
    }
  return total;
}

BandRange Chain::from(int64_t first) {
  r_ = {first, first + 1, all_[first].rows, 0};
  const BandRange alone = r_;
  if (!r_.rows) return alone;
  const int64_t product_row = all_[first].product_row;
  const int64_t threads = ctx().rt->pool ? pool_threads(ctx().rt->pool) : 1;
  int64_t least = max(kMinRows, threads > 1 ? 2 * threads : 1);
  if (product_row) least *= kMatmulRowBlock;
  if (r_.rows < least || product_row * kMatmulRowBlock > kMaxRowBytes) return alone;
  while (r_.end < all_.n && r_.end - first < kMaxSteps && may_follow(r_.end)) {
    const int64_t rows = std::gcd(r_.rows, all_[r_.end].rows);
    // Blocks of a product's rows end anywhere.
    if (rows < (product_row ? r_.rows : least)) break;
    const BandRange before = r_;
    r_.rows = rows;
    r_.end++;
    if (bytes() / rows <= kMaxRowBytes) continue;
    r_ = before;
    break;
  }
  const int64_t total = bytes();
  r_.row_bytes = total / r_.rows;
  if (r_.end - first < 2 || total < kMinBytes) return alone;
  return r_;
}

// ---- replay ----

int32_t run_steps(const BandRegion& r, int64_t begin, int64_t end) {
  for (int64_t i = 0; i < r.n_steps; i++) {
    const BandStep& s = r.steps[i];
    if (const int32_t status = s.fn(s.plan, begin * s.units, end * s.units)) return status;
  }
  return TT_OK;
}

int32_t run_bands(const void* plan, int64_t begin, int64_t end) noexcept {
  const auto& r = *static_cast<const BandRegion*>(plan);
  for (int64_t at = begin; at < end; at += r.band)
    if (const int32_t status = run_steps(r, at, min(at + r.band, end))) return status;
  return TT_OK;
}

int32_t run_product(const void* plan, int64_t, int64_t) noexcept {
  const auto& r = *static_cast<const BandRegion*>(plan);
  const MatmulThen then = {reinterpret_cast<const MatmulPlan*>(r.product), run_bands, plan};
  MatmulPlan p;
  p.path = kMatmulThen;
  p.a = reinterpret_cast<const char*>(&then);
  p.m = p.n = p.batch = 1;
  return r.product_fn(&p, 0, 1);
}

struct BandKernel : Kernel {
  constexpr BandKernel(CpuKernel run, const char* called)
      : Kernel{.cpu = {}, .id = kNoDevice, .plan_bytes = sizeof(BandRegion), .name = called} {
    for (CpuKernel& fn : cpu) fn = run;
  }
};
constinit const BandKernel kernel_bands(run_bands, "bands");
constinit const BandKernel kernel_product(run_product, "matmul");

// ---- the plan ----

class Banding {
 public:
  explicit Banding(Plan& p) : p_(p) {}
  void run();

 private:
  void read(const PlanStep& s);
  void add(const BandRange& r);
  void keep_in_cache(const PlanStep& s, int64_t units) const;

  Plan& p_;
  SmallVec<LaunchRows, 1> all_;
  SmallVec<PlanStep, 1> steps_;
};

// A region of tiles touches what its launches touch but for scratch memory.
void read_region(const TileRegion& r, int64_t units, LaunchRows* out) {
  out->rows = units;
  for (int64_t i = 0; i < r.n_steps; i++) {
    const TileStep& s = r.steps[i];
    const auto& p = *reinterpret_cast<const ElementPlan*>(s.plan);
    for (int32_t k = 0; k < p.n_operands; k++) {
      const int64_t item = kItemSize[p.dtype[k] & 15];
      const int64_t bytes = p.scalar_in[k] ? item : units * item;
      if (s.slot[k] < 0)
        out->list.push_back({address(p.ptr[k]), bytes, p.scalar_in[k] ? 0 : bytes, k == 0});
    }
  }
}

void Banding::read(const PlanStep& s) {
  all_.push_back({});
  LaunchRows& l = all_[all_.size() - 1];
  if (s.kind != StepKind::kLaunch || s.draw >= 0) return;
  if (is_region(s)) return read_region(*reinterpret_cast<const TileRegion*>(s.plan), s.units, &l);
  if (!read_accesses(*s.kernel, s.plan, s.units, &l)) l = {};
}

// Kernels stream results that exceed the cache, which the next launch reads.
void Banding::keep_in_cache(const PlanStep& s, int64_t units) const {
  if (s.kernel->rebase != rebase_element_plan) return;
  auto& p = *reinterpret_cast<ElementPlan*>(s.plan);
  if (p.dense) p.n = min(p.n, units);
}

void Banding::add(const BandRange& range) {
  const bool product = all_[range.first].product_row;
  PlanStep step = p_.steps[range.first];
  BandRegion r;
  r.band = clamp<int64_t>(kBandBytes / max<int64_t>(range.row_bytes, 1), 1, range.rows);
  r.first = p_.band_steps.size();
  r.product = product ? step.plan : nullptr;
  r.product_fn = step.fn;
  step.grain = range.rows;
  for (int64_t i = range.first + product; i < range.end; i++) {
    const PlanStep& s = p_.steps[i];
    const int64_t units = s.units / range.rows;
    p_.band_steps.push_back({s.fn, s.plan, units});
    keep_in_cache(s, units * r.band);
    step.grain = min(step.grain, max<int64_t>(s.grain / units, 1));
  }
  r.n_steps = p_.band_steps.size() - r.first;
  step.grain = round_up(step.grain, r.band);
  step.units = range.rows;
  if (product) step.units = step.grain = 1;
  step.kernel = product ? &kernel_product : &kernel_bands;
  step.fn = product ? run_product : run_bands;
  step.plan = nullptr;
  steps_.push_back(step);
  p_.bands.push_back(r);
}

void Banding::run() {
  const int64_t n = p_.steps.size();
  for (const PlanStep& s : p_.steps) read(s);
  for (int64_t i = 0; i < n;) {
    const BandRange r = Chain({all_.data(), n}).from(i);
    if (r.end - i == 1) steps_.push_back(p_.steps[i]);
    else add(r);
    i = r.end;
  }
  int64_t next = 0;
  for (PlanStep& s : steps_) {
    if (s.kernel != &kernel_bands && s.kernel != &kernel_product) continue;
    BandRegion& r = p_.bands[next++];
    r.steps = p_.band_steps.data() + r.first;
    s.plan = reinterpret_cast<char*>(&r);
  }
  p_.steps = std::move(steps_);
}

}  // namespace

void make_bands(Plan& p) { Banding(p).run(); }

// ---- lives ----

// The first memory in alive_ that begins behind an address.
int64_t BandLives::next_to(uint64_t at) const {
  const auto before = [](uint64_t x, const Alive& a) { return x < a.at; };
  return std::upper_bound(alive_.begin(), alive_.end(), at, before) - alive_.begin();
}
void BandLives::note_placement(int64_t placement, const char* data, int64_t bytes) {
  alive_.insert(next_to(address(data)), {address(data), bytes, placement});
}
void BandLives::note_release(const char* data) {
  const int64_t i = next_to(address(data)) - 1;
  if (i >= 0 && alive_[i].at == address(data)) alive_.erase(i);
}

int64_t BandLives::placement_at(const char* data) const {
  const int64_t i = next_to(address(data)) - 1;
  return i >= 0 && alive_[i].at == address(data) ? alive_[i].placement : -1;
}

// Memory of the arena is named by its placement, since addresses are used again.
constexpr uint64_t kNamed = uint64_t(1) << 63;
constexpr int32_t kNameShift = 40;
constexpr uint64_t kOffsets = (uint64_t(1) << kNameShift) - 1;

uint64_t BandLives::name_of(uint64_t at) const {
  const int64_t i = next_to(at) - 1;
  if (i < 0) return at;
  const Alive& a = alive_[i];
  const bool inside = at - a.at < uint64_t(a.bytes);
  return inside ? kNamed | uint64_t(a.placement) << kNameShift | (at - a.at) : at;
}

void BandLives::note_step(const Kernel* k, const void* plan, int64_t units) {
  steps_.push_back({});
  LaunchRows& l = steps_.back();
  if (!k || !read_accesses(*k, plan, units, &l)) {
    l = {};
    return;
  }
  for (Access& a : l.list) a.at = name_of(a.at);
}

void BandLives::note_shared(int64_t placement, int64_t of) {
  const uint64_t name = kNamed | uint64_t(placement) << kNameShift;
  for (LaunchRows& l : steps_)
    for (Access& a : l.list)
      if ((a.at & ~kOffsets) == name)
        a.at = kNamed | uint64_t(of) << kNameShift | (a.at & kOffsets);
}

// All memory that exists while a chain runs exists from its begin to its end.
void BandLives::extend(SmallVec<Placement, 1>& placements, Span<const int64_t> step_times,
                       const BandRange& r) const {
  const int64_t before = r.first ? step_times[r.first - 1] : -1;
  const int64_t after = step_times[r.end];
  for (Placement& m : placements) {
    if (m.birth >= after || m.death <= before) continue;
    m.birth = min(m.birth, before + 1);
    m.death = max(m.death, after - 1);
  }
}

int64_t BandLives::place(SmallVec<Placement, 1>& placements, Span<const int64_t> step_times,
                         int64_t bytes, int64_t limit) {
  SmallVec<BandRange, 16> chains;
  for (int64_t i = 0; i < steps_.size();) {
    const BandRange r = Chain(steps_).from(i);
    if (r.end - i > 1) chains.push_back(r);
    i = r.end;
  }
  for (int64_t n = chains.size(); n > 0; n /= 2) {
    SmallVec<Placement, 1> longer(placements);
    for (int64_t i = 0; i < n; i++) extend(longer, step_times, chains[i]);
    const int64_t needed = place_greedily({longer.data(), longer.size()});
    if (needed > limit) continue;
    placements = std::move(longer);
    return needed;
  }
  return bytes;
}

}  // namespace TT_NS
