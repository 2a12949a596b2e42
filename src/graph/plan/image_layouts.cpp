#include "graph/plan/image_layouts.h"

#include "ops/gen/kernels.h"
#include "plan/conv_build.h"
#include "plan/elementwise_plan.h"
#include "plan/pool_plan.h"

#include <string.h>

namespace TT_NS {

namespace {

bool is_kernel(const Kernel& k, const char* name) { return !strcmp(k.name, name); }

// Maxima of adjacent windows of 2 x 2 in planes.
bool is_halving(const PoolPlan& p) {
  return p.halving && !p.channels_last && p.n_parts == 1 && p.dtype == TT_F32;
}

}  // namespace

// ---- the first run ----

void ImageLayouts::note_launch(const Kernel& k, const void* plan, int64_t step,
                               const BandLives& lives) {
  Launch l;
  l.use = Use::kOther;
  l.number = n_launches_++;
  l.step = step;
  if (is_kernel(k, "conv_interleave")) {
    const auto& p = *static_cast<const ConvInterleavePlan*>(plan);
    l.use = Use::kInterleave;
    l.data.push_back(p.src);
    const bool border = p.full[0] != p.size[0] || p.full[1] != p.size[1];
    if (!border) {
      l.src = lives.placement_at(p.src);
      l.dst = lives.placement_at(p.dst);
    }
  } else if (is_kernel(k, "conv_interleaved")) {
    const auto& p = *static_cast<const ConvInterleavedPlan*>(plan);
    l.use = p.run.stage == 1 ? Use::kConv : Use::kNone;
    if (p.run.stage == 1) l.data.push_back(p.dst);
  } else if (is_kernel(k, "conv_interleaved_weight")) {
    l.use = Use::kNone;
  } else if (is_kernel(k, "pool_max")) {
    const auto& p = *static_cast<const PoolPlan*>(plan);
    if (is_halving(p)) l.use = Use::kPool;
    l.data.push_back(p.x);
    l.data.push_back(p.y);
  } else if (is_kernel(k, "pool_max_backward")) {
    const auto& p = *static_cast<const PoolPlan*>(plan);
    if (is_halving(p) && p.run.stage == 2) l.use = Use::kPoolBackward;
    l.data.push_back(p.x);
    l.data.push_back(p.g);
    l.data.push_back(p.y);
  } else if (k.rebase == rebase_element_plan && k.rng < 0) {
    const auto& p = *static_cast<const ElementPlan*>(plan);
    if (p.dense) l.use = Use::kElements;
    for (int32_t i = p.n_operands; i-- > 0;)
      if (!p.scalar_in[i]) l.data.push_back(p.ptr[i]);
    if (l.data.size() > 1) {
      l.src = lives.placement_at(p.ptr[1]);
      l.dst = lives.placement_at(p.ptr[0]);
    }
  }
  launches_.push_back(std::move(l));
}

// Blocks of whole images in memory of their own.
bool ImageLayouts::is_images(const IrValue& v) const {
  const IrStorage& s = g_.storages[v.storage];
  if (s.role != IrRole::kMade || s.device.type != TT_CPU || v.dtype != Dtype::kF32 ||
      v.ndim() != 4 || v.offset || v.sizes[0] == 0 || v.sizes[0] % kConvLanes ||
      v.numel() * 4 != s.bytes)
    return false;
  int64_t step = 1;
  for (int64_t d = 4; d-- > 0; step *= v.sizes[d])
    if (v.strides[d] != step) return false;
  return true;
}

int32_t ImageLayouts::storage_at(const char* data, Span<const Value> values) const {
  for (const Value& v : values)
    if (v.data == data && is_images(g_.values[v.value])) return g_.values[v.value].storage;
  return -1;
}

// Whether a node without a launch makes no memory and writes none.
bool ImageLayouts::is_view(const IrNode& n) const {
  if (n.outs.size() != n.n_results) return false;
  for (int64_t k = 0; k < n.n_results; k++)
    if (n.outs[k] >= 0 && !is_view_out(g_, n, k)) return false;
  return true;
}

void ImageLayouts::fix(const IrNode& n) {
  fixed_.resize(g_.storages.size(), false);
  const auto fix = [&](int32_t v) { fixed_[g_.values[v].storage] = true; };
  for_each_value(n, fix);
  for (const int32_t v : n.outs)
    if (v >= 0) fix(v);
}

void ImageLayouts::bind(int32_t storage, int32_t with) {
  if (storage < 0) return;
  if (with < 0) fixed_[storage] = true;
  else bounds_.push_back({storage, with});
}

// Adds the storages that the launch finds in either layout to `flexible`; false: what it reads and
// writes is not known.
bool ImageLayouts::take_launch(const Launch& l, Span<const Value> values,
                               SmallVec<int32_t, 8>* flexible) {
  if (l.use == Use::kNone) return true;
  if (l.use == Use::kOther) return false;
  SmallVec<int32_t, 4> at;
  for (const char* data : l.data) {
    at.push_back(storage_at(data, values));
    if (at.back() >= 0) flexible->push_back(at.back());
  }
  Adapted a;
  a.use = l.use;
  a.number = l.number;
  a.step = l.step;
  if (!at.empty()) a.x = at[0];
  switch (l.use) {
    case Use::kInterleave:
      a.src = l.src;
      a.dst = l.dst;
      break;
    case Use::kConv: break;
    case Use::kPool:
      a.y = at[1];
      bind(a.y, a.x);
      break;
    case Use::kPoolBackward:
      a.y = at[1];
      bind(a.y, a.x);
      bind(a.x, at[2]);
      bind(at[2], a.x);
      break;
    default:
      for (int64_t i = 0; i < at.size(); i++) {
        bind(at[i], at[0]);
        bind(at[0], at[i]);
      }
      return true;
  }
  if (a.x >= 0) adapted_.push_back(a);
  return true;
}

void ImageLayouts::take_node(Span<const Value> values) {
  fixed_.resize(g_.storages.size(), false);
  used_.resize(g_.storages.size(), false);
  SmallVec<int32_t, 8> flexible;
  bool known = true;
  // Other launches see memory of the node alone, whose addresses may be those of its values.
  const bool convolution =
      !launches_.empty() && (launches_[0].use == Use::kInterleave || launches_.size() > 1);
  for (const Launch& l : launches_) {
    known &= take_launch(l, values, &flexible);
    if (convolution)
      known &= l.use == Use::kNone || l.use == Use::kInterleave || l.use == Use::kConv;
  }
  if (launches_.empty()) return;  // a view
  for (const Value& v : values) {
    const int32_t s = g_.values[v.value].storage;
    bool either = known && is_images(g_.values[v.value]);
    if (either) {
      either = false;
      for (const int32_t f : flexible) either |= f == s;
    }
    if (either) used_[s] = true;
    else fixed_[s] = true;
  }
}

// Whether a value of images stays as it was made, and no more nodes than that read it; an output is
// read at the end.
bool ImageLayouts::is_kept(int32_t value, int64_t most_readers) const {
  const int32_t s = g_.values[value].storage;
  const SmallVec<int32_t, 2>& readers = readers_[s];
  return is_images(g_.values[value]) && !written_[s] && readers.size() <= most_readers &&
         (readers.empty() || readers[readers.size() - 1] != g_.nodes.size());
}

// Finds relu whose operand pooling has made, and its gradient before that of the pooling:
//   p = max_pool2d(x), r = relu(p)
//   t = threshold_backward(grad, r, 0), dx = max_pool2d_backward(t, x)
// A window's maximum decides about both, so r can have the memory of p, and t that of grad.
void ImageLayouts::note_relu(const IrNode& n) {
  const auto argument = [&](int32_t k) { return n.args[k].values[0]; };
  const auto find = [](const SmallVec<Pooled, 4>& list, int32_t value) -> const Pooled* {
    for (const Pooled& p : list)
      if (p.value == value) return &p;
    return nullptr;
  };
  constexpr int64_t kAny = INT64_MAX;
  if (launches_.empty() || n.outs.size() != 1) return;
  const Launch& l = launches_[0];
  const bool pools = !adapted_.empty() && adapted_.back().number == l.number;
  const int64_t adapted = adapted_.size() - 1;
  if (l.use == Use::kPool && pools && is_op(n, "max_pool2d")) {
    if (readers_.empty()) {
      readers_ = storage_readers(g_);
      written_ = written_storages(g_);
    }
    if (is_kept(argument(0), kAny))
      pools_.push_back({.value = n.outs[0], .x = argument(0), .adapted = adapted});
  } else if (l.use == Use::kPoolBackward && pools && is_op(n, "max_pool2d_backward")) {
    const Pooled* t = find(gradients_, argument(0));
    if (t && t->x == argument(1)) merged_.push_back({adapted, t->gradient});
  }
  if (l.use != Use::kElements || launches_.size() != 1 || pools_.empty()) return;
  if (l.src < 0 || l.dst < 0 || !is_kept(n.outs[0], kAny)) return;
  const SharedLayouts::Alias alias = {
      .placement = l.dst, .of = l.src, .launch = l.number, .step = l.step};
  if (is_op(n, "relu")) {
    const Pooled* p = find(pools_, argument(0));
    if (!p) return;
    relus_.push_back({.value = n.outs[0], .x = p->x});
    if (is_kept(p->value, 1)) merged_.push_back({p->adapted, alias});
  } else if (is_op(n, "threshold_backward") && n.args[2].scalar.real() == 0) {
    const Pooled* r = find(relus_, argument(1));
    if (r && is_kept(argument(0), kAny) && is_kept(n.outs[0], 1))
      gradients_.push_back({.value = n.outs[0], .x = r->x, .gradient = alias});
  }
}

void ImageLayouts::choose(SharedLayouts& shared, SmallVec<Placement, 1>& placements) {
  fixed_.resize(g_.storages.size(), false);
  used_.resize(g_.storages.size(), false);
  for (const int32_t v : g_.inputs) fixed_[g_.values[v].storage] = true;
  for (const int32_t v : g_.outputs) fixed_[g_.values[v].storage] = true;
  for (int64_t s = 0; s < fixed_.size(); s++) chosen_.push_back(used_[s] && !fixed_[s]);
  bool changed = true;
  const auto apply = [&](const Bound& b) {
    if (!chosen_[b.storage] || chosen_[b.with]) return;
    chosen_[b.storage] = false;
    changed = true;
  };
  while (changed) {  // from both ends: a chain of any length needs two rounds
    changed = false;
    for (const Bound& b : bounds_) apply(b);
    for (int64_t i = bounds_.size(); i-- > 0;) apply(bounds_[i]);
  }
  for (const Merged& m : merged_) {
    Adapted& pool = adapted_[m.adapted];
    if (!chosen_[pool.x]) continue;
    pool.relu = true;
    shared.leave_out(m.alias);
    Placement& kept = placements[m.alias.of];
    kept.death = max(kept.death, placements[m.alias.placement].death);
  }
  for (const Adapted& a : adapted_) {
    if (a.use != Use::kInterleave || !chosen_[a.x] || a.src < 0 || a.dst < 0) continue;
    int64_t src = a.src;
    for (const Merged& m : merged_)
      if (m.alias.placement == src && adapted_[m.adapted].relu) src = m.alias.of;
    shared.leave_out({.placement = a.dst, .of = src, .launch = a.number, .step = a.step});
    overread_.push_back(src);
  }
}

int64_t ImageLayouts::arena_bytes(const SmallVec<Placement, 1>& placements, int64_t bytes) const {
  for (const int64_t i : overread_)
    bytes = max(bytes, round_up(placements[i].offset + placements[i].bytes + kConvOverread * 4,
                                kArenaAlign));
  return bytes;
}

// ---- the second run ----

static void pool_interleaved(PlanStep& step, bool backward, bool y_interleaved, bool relu,
                             Isa isa) {
  static_assert(sizeof(PoolInterleavedPlan) <= sizeof(PoolPlan));
  const auto from = *reinterpret_cast<const PoolPlan*>(step.plan);
  PoolInterleavedPlan p = {};
  p.y_interleaved = y_interleaved;
  p.relu = relu;
  p.n = from.n;
  p.c = from.c;
  for (int d = 0; d < 2; d++) {
    p.in[d] = from.in[d];
    p.out[d] = from.out[d];
  }
  p.x = from.x;
  p.g = from.g;
  p.y = from.y;
  const int64_t blocks = p.n / kConvLanes;
  const int64_t units = blocks * (y_interleaved ? p.out[0] : p.c);
  const int64_t grain = max<int64_t>(step.grain * units / max<int64_t>(step.units, 1), 1);
  one_stage(&p.run, units, grain);
  step.units = units;
  step.grain = grain;
  step.kernel = backward ? &kernel_pool_max_interleaved_backward : &kernel_pool_max_interleaved;
  step.fn = step.kernel->cpu[isa];
  memcpy(step.plan, &p, sizeof p);
}

void ImageLayouts::adapt(PlanStep& step, Isa isa) {
  const int64_t number = n_launches_++;
  while (next_ < adapted_.size() && adapted_[next_].number < number) next_++;
  if (next_ == adapted_.size() || adapted_[next_].number != number) return;
  const Adapted& a = adapted_[next_];
  if (!chosen_[a.x]) return;
  const bool y = a.y >= 0 && chosen_[a.y];
  switch (a.use) {
    case Use::kInterleave:
      reinterpret_cast<ConvInterleavePlan*>(step.plan)->from_interleaved = true;
      return;
    case Use::kConv:
      reinterpret_cast<ConvInterleavedPlan*>(step.plan)->to_interleaved = true;
      return;
    case Use::kPool: return pool_interleaved(step, false, y, a.relu, isa);
    case Use::kPoolBackward: return pool_interleaved(step, true, y, a.relu, isa);
    default: return;
  }
}

}  // namespace TT_NS
