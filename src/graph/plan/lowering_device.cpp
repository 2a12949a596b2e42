// The part of a lowering on a CUDA device.
#include "graph/plan/lowering.h"

#include "graph/plan/plan_form.h"
#include "graph/rewrite.h"

#include <string.h>

namespace TT_NS {

namespace {

// The first lowering computes nothing: addresses only have to differ.
constexpr uintptr_t kNowhere = uintptr_t(1) << (sizeof(uintptr_t) == 8 ? 40 : 12);

bool is_all_bytes(const IrValue& v, const IrStorage& s) {
  return s.bytes && v.dtype == Dtype::kU8 && v.ndim() == 1 && !v.offset && v.sizes[0] == s.bytes;
}

}  // namespace

char* Lowering::take_on_device(PlanDevice& d, int64_t bytes) {
  const int64_t i = n_placed_on_device_++;
  time_++;
  if (!final_) {
    const int64_t end = d.placements.empty() ? 0 : d.placements.back().offset;
    d.placements.push_back({bytes, time_ - 1, INT64_MAX, end + round_up(bytes, kDeviceAlign)});
    return reinterpret_cast<char*>(kNowhere + uintptr_t(end));
  }
  if (i >= d.placements.size() || d.placements[i].bytes != bytes)
    fail(TT_INTERNAL, "lowering a graph twice took different memory of {}", fmt(d.device));
  const Placement& placement = d.placements[i];
  return placement.at ? placement.at : d.arena->data + placement.offset;
}
void Lowering::on_place_on_device(GraphHooks& h, Storage& s) {
  auto& l = static_cast<Lowering&>(h);
  PlanDevice& d = plan_device(l.p_, s.device);
  s.data = l.take_on_device(d, s.bytes);
  s.release_ctx = &d;
  if (l.final_) return;
  s.release = on_release_on_device;
  s.reserved_[0] = l.id_;
  s.reserved_[1] = l.n_placed_on_device_ - 1;
}
void Lowering::on_release_on_device(Storage* s) noexcept {
  auto* l = tls.ctx ? static_cast<Lowering*>(tls.ctx->graph) : nullptr;
  if (!l || l->place != on_place || l->id_ != s->reserved_[0]) return;
  l->p_.device->placements[s->reserved_[1]].death = l->time_++;
}
void Lowering::on_workspace(GraphHooks& h, Device device, int64_t bytes) {
  auto& l = static_cast<Lowering&>(h);
  l.workspace_ = l.take_on_device(plan_device(l.p_, device), bytes);
}

void Lowering::on_device_launch(GraphHooks& h, const Kernel& k, Device device, const void* plan) {
  auto& l = static_cast<Lowering&>(h);
  PlanDevice& d = plan_device(l.p_, device);
  char* const workspace = std::exchange(l.workspace_, nullptr);
  l.new_step();
  const int64_t bytes = used_bytes(k, plan);
  char* copy = l.take_blob(bytes);
  // Nothing else was placed since its scratch memory was.
  if (workspace && !l.final_) d.placements.back().death = l.time_;
  l.time_++;
  if (!l.final_) return;
  memcpy(copy, plan, size_t(bytes));
  if (k.rebase) k.rebase(copy, plan);
  PlanStep step{.kind = StepKind::kDeviceLaunch, .kernel = &k, .plan = copy, .to = workspace};
  step.node = l.node_;
  l.take_draw(step, k);
  l.p_.steps.push_back(step);
}

void Lowering::on_device_copy(GraphHooks& h, char* dst, Device to, const char* src, Device from,
                              int64_t bytes) {
  auto& l = static_cast<Lowering&>(h);
  plan_device(l.p_, to.type == TT_CUDA ? to : from);
  l.new_step();
  if (!l.final_) return;
  PlanStep step{.kind = StepKind::kDeviceCopy, .plan = const_cast<char*>(src), .to = dst};
  step.bytes = bytes;
  step.copy_kind = kDeviceToDevice;
  if (to.type == TT_CPU) step.copy_kind = kDeviceToHost;
  if (from.type == TT_CPU) step.copy_kind = kHostToDevice;
  step.node = l.node_;
  l.p_.steps.push_back(step);
}

int64_t* Lowering::on_check_place(GraphHooks& h, Device device) {
  auto& l = static_cast<Lowering&>(h);
  PlanDevice& d = plan_device(l.p_, device);
  const int64_t i = l.n_device_checks_++;
  return l.final_ ? d.checks.places + i : reinterpret_cast<int64_t*>(kNowhere);
}
// What the check looks at stays until the run has ended: who reports it reads a value.
void Lowering::on_device_check(GraphHooks& h, Device device, int64_t*, DeviceCheck&& check) {
  auto& l = static_cast<Lowering&>(h);
  PlanDevice& d = plan_device(l.p_, device);
  if (l.final_) return d.kept.push_back(l.named(check));
  if (!check.values) return;
  Storage& s = *check.values->storage;
  if (s.reserved_[0] == l.id_) s.release = nullptr;
}
constexpr DeviceHooks Lowering::kDeviceHooks = {.workspace = on_workspace,
                                                .launch = on_device_launch,
                                                .copy = on_device_copy,
                                                .check_place = on_check_place,
                                                .check = on_device_check};

// Memory of a device that a node makes and copy_ moves whole into state that nothing else uses, as
// deferred captures do, is made there at once.
void Lowering::find_direct() {
  direct_.resize(g_.storages.size(), -1);
  is_left_out_.resize(g_.nodes.size(), false);
  SmallVec<int32_t, 16> uses;
  uses.resize(g_.storages.size(), 0);
  const auto use = [&](int32_t v) { uses[g_.values[v].storage]++; };
  for (const IrNode& n : g_.nodes) {
    for_each_value(n, use);
    for (const int32_t v : n.outs)
      if (v >= 0) use(v);
  }
  SmallVec<bool, 16> is_output;
  is_output.resize(g_.storages.size(), false);
  for (const int32_t v : g_.outputs) is_output[g_.values[v].storage] = true;
  for (int32_t i = 0; i < g_.nodes.size(); i++) {
    const IrNode& n = g_.nodes[i];
    if (!is_op(n, "copy_")) continue;
    const IrValue& to = g_.values[n.args[0].values[0]];
    const IrValue& from = g_.values[n.args[1].values[0]];
    const IrStorage& state = g_.storages[to.storage];
    const IrStorage& made = g_.storages[from.storage];
    if (state.role != IrRole::kState || made.role != IrRole::kMade) continue;
    if (made.device.type != TT_CUDA || !(made.device == state.device)) continue;
    if (!is_all_bytes(to, state) || !is_all_bytes(from, made)) continue;
    constexpr int32_t kOfCopy = 2;  // it reads the state and writes it
    if (uses[to.storage] != kOfCopy || is_output[to.storage]) continue;
    if (is_output[from.storage] || direct_[from.storage] >= 0) continue;
    bool is_last = true;
    for (int32_t v = made.last_value; v >= 0; v = g_.values[v].previous)
      is_last = is_last && g_.values[v].version <= from.version;
    if (!is_last) continue;
    direct_[from.storage] = to.storage;
    is_left_out_[i] = true;
  }
}

}  // namespace TT_NS
