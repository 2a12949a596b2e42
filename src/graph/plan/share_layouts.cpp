#include "graph/plan/share_layouts.h"

#include "graph/rewrite.h"
#include "plan/conv_plan.h"
#include "plan/elementwise_plan.h"

#include <algorithm>
#include <string.h>

namespace TT_NS {

enum ConversionKind { kInterleave, kPad, kCopy };

bool read_conversion(const Kernel& k, const void* plan, Conversion* out) {
  const auto add = [&](const int64_t* list, int64_t n) { out->form.append({list, n}); };
  if (!strcmp(k.name, "conv_interleave")) {
    const auto& p = *static_cast<const ConvInterleavePlan*>(plan);
    out->kind = kInterleave;
    out->src = p.src;
    out->dst = p.dst;
    add(&p.n, 1);
    add(&p.channels, 1);
    add(p.size, 2);
    add(p.lead, 2);
    add(p.full, 2);
    return true;
  }
  if (!strcmp(k.name, "conv_pad")) {
    const auto& p = *static_cast<const ConvPadPlan*>(plan);
    const int64_t form[] = {p.item_size, p.rows, p.from, p.width, p.pad, p.pixel_bytes};
    out->kind = kPad;
    out->src = p.src;
    out->dst = p.dst;
    add(form, 6);
    return true;
  }
  if (strcmp(k.name, "copy")) return false;
  const auto& p = *static_cast<const ElementPlan*>(plan);
  if (p.n_operands != 2 || p.scalar_in[0] || p.scalar_in[1]) return false;
  const int64_t form[] = {p.n, p.dense, p.compute, p.dtype[0], p.dtype[1]};
  out->kind = kCopy;
  out->src = p.ptr[1];
  out->dst = p.ptr[0];
  add(form, 5);
  if (p.dense) return true;
  add(p.size, p.ndim);
  add(p.stride[0], p.ndim);
  add(p.stride[1], p.ndim);
  return true;
}

void SharedLayouts::begin_node(const IrNode& n) {
  on_ = is_op(n, "convolution") || is_op(n, "convolution_backward");
  addresses_ = {};
  pending_ = {};
  first_known_ = known_.size();
}
void SharedLayouts::note_argument(int32_t v, const char* data) {
  if (on_) addresses_.push_back({data, v});
}
void SharedLayouts::note_placement(int64_t placement, const char* data) {
  if (on_) addresses_.push_back({data, -2 - placement});
}

// The newest first: memory is used again within a node.
int64_t SharedLayouts::source_of(const char* data) const {
  for (int64_t i = addresses_.size(); i-- > 0;)
    if (addresses_[i].data == data) return addresses_[i].source;
  return -1;
}

void SharedLayouts::note_launch(const Kernel& k, const void* plan, int64_t step) {
  const int64_t launch = n_launches_++;
  Known now;
  if (!on_ || !read_conversion(k, plan, &now.what)) return;
  now.source = source_of(now.what.src);
  const int64_t to = source_of(now.what.dst);
  if (now.source == -1 || to > -2) return;
  now.placement = -2 - to;
  for (Address& a : addresses_) {  // what it makes is named by what made it first
    if (a.source != to) continue;
    for (int64_t i = 0; i < known_.size(); i++) {
      const Known& old = known_[i];
      if (old.source != now.source || old.what.kind != now.what.kind ||
          !same(old.what.form, now.what.form))
        continue;
      pending_.push_back({launch, step, now.placement, i});
      a.source = -2 - old.placement;
      return;
    }
  }
  known_.push_back(std::move(now));
}

// Memory that outlives the node is a result, which may be written later.
void SharedLayouts::end_node(const SmallVec<Placement, 1>& placements) {
  const auto is_result = [&](int64_t k) { return placements[k].death == INT64_MAX; };
  for (const Pending& p : pending_) {
    const int64_t of = known_[p.known].placement;
    if (!is_result(p.placement) && !is_result(of))
      aliases_.push_back({p.placement, of, p.launch, p.step});
  }
  for (int64_t i = first_known_; i < known_.size(); i++)
    if (is_result(known_[i].placement)) known_[i].source = -1;
  on_ = false;
}

// Whether the placement is among the first n that others take the place of.
bool SharedLayouts::is_left_out(int64_t placement, int64_t n) const {
  for (int64_t i = 0; i < n; i++)
    if (skipped_[i].placement == placement) return true;
  return false;
}

void SharedLayouts::pick(SmallVec<Placement, 1>& placements, int64_t limit) {
  const int64_t n_left_out = skipped_.size();
  for (int64_t i = 0; i < n_left_out; i++) placements[skipped_[i].placement].shared = true;
  const auto is_open = [&](const Alias& a) {
    return !is_left_out(a.placement, n_left_out) && !is_left_out(a.of, n_left_out);
  };
  SmallVec<int64_t, 16> kept;
  for (const Alias& a : aliases_)
    if (is_open(a)) kept.push_back(a.of);
  std::sort(kept.begin(), kept.end(), [&](int64_t a, int64_t b) {
    const int64_t x = placements[a].bytes;
    const int64_t y = placements[b].bytes;
    return x != y ? x > y : a < b;
  });
  int64_t last = -1;
  for (const int64_t of : kept) {
    if (of == last || placements[of].bytes > limit) continue;
    last = of;
    limit -= placements[of].bytes;
    for (const Alias& a : aliases_) {
      if (a.of != of || !is_open(a)) continue;
      placements[of].death = max(placements[of].death, placements[a.placement].death);
      placements[a.placement].shared = true;
      skipped_.push_back(a);
    }
  }
  std::sort(skipped_.begin(), skipped_.end(),
            [](const Alias& a, const Alias& b) { return a.launch < b.launch; });
}
void SharedLayouts::after_placing(SmallVec<Placement, 1>& placements) const {
  for (const Alias& a : skipped_) placements[a.placement].offset = placements[a.of].offset;
}

bool SharedLayouts::skips_next() {
  const int64_t launch = n_launches_++;
  const bool skip = next_ < skipped_.size() && skipped_[next_].launch == launch;
  next_ += skip;
  return skip;
}

}  // namespace TT_NS
