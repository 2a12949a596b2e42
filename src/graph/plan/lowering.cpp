#include "graph/plan/lowering.h"

#include "graph/node_call.h"
#include "graph/plan/plan_form.h"
#include "graph/rewrite.h"
#include "ops/index/checks.h"

#include <string.h>

namespace TT_NS {

namespace {

constexpr int64_t kAlign = kArenaAlign;
// Larger memory is not zeroed: lowering looks at no elements, so that it need not exist yet.
constexpr int64_t kZeroedBytes = 1 << 16;

int64_t new_lowering() {
  static int64_t last = 0;
  return -atomic_add_fetch(&last, 1, kRelaxed);  // marks of captures are positive
}

TensorRef bytes_at(void* data, int64_t bytes, Device device) {
  return new_import(data, Ints(&bytes, 1), {}, Dtype::kU8, device, nullptr, nullptr);
}

// The bytes [low, high) of a storage that values of it lie in.
void byte_span(const Graph& g, int32_t storage, int64_t* low, int64_t* high) {
  *low = g.storages[storage].bytes;
  *high = 0;
  for (int32_t i = g.storages[storage].last_value; i >= 0; i = g.values[i].previous) {
    const IrValue& v = g.values[i];
    int64_t reach = v.numel() ? 1 : 0;
    for (int64_t d = 0; d < v.ndim() && reach; d++) reach += (v.sizes[d] - 1) * v.strides[d];
    *low = min(*low, v.offset);
    *high = max(*high, v.offset + reach * item_size(v.dtype));
  }
  *low = min(*low, *high);
}

}  // namespace

Lowering::Lowering(const Graph& g, Plan& p, Layouts& layouts, bool final)
    : GraphHooks{},
      g_(g),
      p_(p),
      shared_(layouts.shared),
      images_(layouts.images),
      prepacking_(g, p),
      final_(final),
      id_(new_lowering()) {
  draw = on_draw;
  place = on_place;
  place_on_device = on_place_on_device;
  device = &kDeviceHooks;
  observer_.launch = on_launch;
  observer_.read = on_read;
  observer_.write = on_write;
  observer_.check = on_check;
  observer_.call = on_call;
  observer_.lowering = this;
  ctx_.begin(*this, observer_);
  ctx_->embedded_max = -1;
}
Lowering::~Lowering() {
  storages_ = {};
  ctx_->embedded_max = kEmbeddedMax;
}

// ---- memory ----

void Lowering::on_place(GraphHooks& h, Storage& s) {
  auto& l = static_cast<Lowering&>(h);
  const int64_t i = l.n_placed_;
  s.release_ctx = nullptr;
  if (l.final_) {
    if (i >= l.p_.placements.size() || l.p_.placements[i].bytes != s.bytes)
      fail(TT_INTERNAL, "lowering {} twice took different memory",
           l.node_ < l.g_.nodes.size() ? l.g_.nodes[l.node_].op->name() : "a graph");
    const Placement& placement = l.p_.placements[i];
    s.data = placement.at ? placement.at : l.p_.arena + placement.offset;
    if (s.bytes <= kZeroedBytes) memset(s.data, 0, size_t(s.bytes));
  } else {
    l.p_.placements.push_back({s.bytes, l.time_, INT64_MAX, 0});
    s.data = static_cast<char*>(mem_alloc(size_t(s.bytes)));
    if (s.bytes <= kZeroedBytes) memset(s.data, 0, size_t(s.bytes));
    s.release = on_release;
    s.reserved_[0] = l.id_;
    s.reserved_[1] = i;
    l.shared_.note_placement(i, s.data);
    l.lives_.note_placement(i, s.data, s.bytes);
  }
  l.n_placed_++;
  l.time_++;
}
// Tensors may outlive the lowering.
void Lowering::on_release(Storage* s) noexcept {
  auto* l = tls.ctx ? static_cast<Lowering*>(tls.ctx->graph) : nullptr;
  if (l && l->place == on_place && l->id_ == s->reserved_[0]) {
    l->p_.placements[s->reserved_[1]].death = l->time_++;
    l->lives_.note_release(s->data);
  }
  mem_free(s->data, size_t(s->bytes));
}

void Lowering::new_step(const Kernel* k, const void* plan, int64_t units) {
  if (!final_) {
    p_.step_times.push_back(time_);
    lives_.note_step(k, plan, units);
  }
  time_++;
}

char* Lowering::take_blob(int64_t bytes) {
  char* at = p_.blob + blob_used_;
  blob_used_ += round_up(bytes, kAlign);
  return final_ ? at : nullptr;
}

// ---- steps ----

int32_t Lowering::on_launch(WorkObserver& w, const Kernel& k, const void* plan, int64_t units,
                            int64_t grain) {
  Lowering& l = *static_cast<Observer&>(w).lowering;
  if (l.final_ && l.shared_.skips_next()) {
    l.images_.skip_launch();
    return TT_OK;
  }
  if (!l.final_) {
    l.shared_.note_launch(k, plan, l.p_.step_times.size());
    l.images_.note_launch(k, plan, l.p_.step_times.size(), l.lives_);
  }
  if (l.prepacking_.only_packs(k, plan)) {
    if (!l.final_) return TT_OK;
    l.images_.skip_launch();
    l.prepacking_.pack(k, plan, Isa(l.ctx_->isa));
    return TT_OK;
  }
  l.new_step(&k, plan, units);
  const int64_t bytes = used_bytes(k, plan);
  char* copy = l.take_blob(bytes);
  if (!l.final_) return TT_OK;
  memcpy(copy, plan, size_t(bytes));
  if (k.rebase) k.rebase(copy, plan);
  l.prepacking_.use(k, copy, Isa(l.ctx_->isa));
  PlanStep step{.kind = StepKind::kLaunch, .kernel = &k, .fn = k.cpu[l.ctx_->isa], .plan = copy};
  step.units = units;
  step.grain = grain;
  step.node = l.node_;
  l.take_draw(step, k);
  l.images_.adapt(step, Isa(l.ctx_->isa));
  l.p_.steps.push_back(step);
  return TT_OK;
}
void Lowering::take_draw(PlanStep& step, const Kernel& k) {
  if (k.rng < 0) return;
  Rng rng;
  memcpy(&rng, step.plan + k.rng, sizeof rng);
  const uint64_t draw = rng.seed - kDrawSeed;
  if (draw >= uint64_t(p_.draws.size())) return;
  step.draw = int32_t(draw);
  step.offset = rng.offset;
}

void Lowering::on_read(WorkObserver& w, const Tensor&) {
  const Lowering& l = *static_cast<Observer&>(w).lowering;
  fail(TT_NOT_IMPLEMENTED, "{} reads elements on the host: a plan cannot replay it",
       l.g_.nodes[l.node_].op->schema->call);
}

void Lowering::on_write(WorkObserver& w, const Tensor& t) {
  Lowering& l = *static_cast<Observer&>(w).lowering;
  if (!t.is_cpu() || !t.numel) return;
  l.new_step();
  const char *lo, *hi;
  byte_range(t, &lo, &hi);
  char* copy = l.take_blob(hi - lo);
  if (!l.final_) return;
  memcpy(copy, lo, size_t(hi - lo));
  PlanStep step{.kind = StepKind::kWrite, .plan = copy, .to = const_cast<char*>(lo)};
  step.bytes = hi - lo;
  step.node = l.node_;
  l.p_.steps.push_back(step);
}

bool Lowering::on_check(WorkObserver& w, const Tensor& found, const DeviceCheck& check) {
  Lowering& l = *static_cast<Observer&>(w).lowering;
  l.new_step();
  if (!l.final_) return false;
  PlanStep step{.kind = StepKind::kCheck, .check = int32_t(l.p_.checks.size())};
  step.node = l.node_;
  l.p_.steps.push_back(step);
  l.p_.checks.push_back({.found = found.data, .check = l.named(check)});
  return false;
}
// The check, with the name of the operator that it belongs to.
DeviceCheck Lowering::named(const DeviceCheck& check) const {
  DeviceCheck copy = check;
  const IrNode& n = g_.nodes[node_];
  copy.op = n.op->schema->call;
  if (n.outs.empty() &&
      n.args[n.args.size() - 1].kind == Value::kStr) {  // checks say whose they are
    const Text& text = n.args[n.args.size() - 1].text;
    if (const char* op = static_name({text.c_str(), text.size()}); *op) copy.op = op;
  }
  if (const Tensor* v = check.values.get())
    copy.values =
        new_import(v->data, v->sizes(), v->strides(), v->dtype, v->device, nullptr, nullptr);
  return copy;
}

void Lowering::on_call(WorkObserver& w, Object& object, HostFn fn, const Tensor& t) {
  Lowering& l = *static_cast<Observer&>(w).lowering;
  l.new_step();
  if (!l.final_) return;
  PlanStep step{.kind = StepKind::kCall, .to = t.data, .call = fn, .object = &object};
  step.node = l.node_;
  l.p_.steps.push_back(step);
}

int32_t Lowering::add_draw(Ref<Generator> generator, uint64_t counters) {
  const auto at = int32_t(p_.draws.size());
  p_.draws.push_back({std::move(generator), counters, {}});
  new_step();
  if (final_) {
    PlanStep step{.kind = StepKind::kDraw, .draw = at};
    step.node = node_;
    p_.steps.push_back(step);
  }
  return at;
}
Rng Lowering::on_draw(GraphHooks& h, Generator& g, uint64_t counters,
                      Rng (*)(Generator&, uint64_t)) {
  auto& l = static_cast<Lowering&>(h);
  Ref<Generator> own = &g == l.ctx_->gen ? Ref<Generator>() : Ref<Generator>::share(&g);
  return {kDrawSeed + uint64_t(l.add_draw(std::move(own), counters)), 0};
}
void Lowering::add_draws_before(int32_t node) {
  for (; next_draw_ < g_.draws.size() && g_.draws[next_draw_].node <= node; next_draw_++) {
    const IrDraw& d = g_.draws[next_draw_];
    draws_.push_back(add_draw(d.generator, d.counters));
  }
}

// ---- values ----

// Gives inputs a place of their own, for the part that the graph sees. State and constants are used
// where they are, through storages of the lowering's own, so that their versions do not change.
void Lowering::prepare_storages() {
  for (int32_t i = 0; i < g_.storages.size(); i++) {
    const IrStorage& s = g_.storages[i];
    if (s.device.type == TT_CUDA) plan_device(p_, s.device);
    else if (s.device.type != TT_CPU)
      fail(TT_NOT_IMPLEMENTED, "the graph uses {}: plans are for the CPU and CUDA devices",
           fmt(s.device));
    TensorRef t;
    begins_.push_back(0);
    if (s.role == IrRole::kInput) {
      int64_t end = 0;
      byte_span(g_, i, &begins_.back(), &end);
      const int64_t bytes = end - begins_.back();
      t = new_tensor(Ints(&bytes, 1), Dtype::kU8, s.device);
    } else if (s.tensor) {
      t = bytes_at(s.tensor->storage->data, s.bytes, s.device);
    }
    storages_.push_back(std::move(t));
    placed_.push_back(-1);
    note_storage(i);
  }
}

void Lowering::note_storage(int32_t i) {
  if (final_ || !storages_[i] || g_.storages[i].device.type != TT_CPU) return;
  const Storage& s = *storages_[i]->storage;
  if (s.reserved_[0] == id_) placed_[i] = s.reserved_[1];
}

void Lowering::find_last_uses() {
  const int32_t end = int32_t(g_.nodes.size());
  for (const IrStorage& s : g_.storages) last_use_.push_back(s.role == IrRole::kMade ? -1 : end);
  for (int32_t i = 0; i < end; i++) {
    const auto use = [&](int32_t v) {
      int32_t& last = last_use_[g_.values[v].storage];
      last = max(last, i);
    };
    for_each_value(g_.nodes[i], use);
    for (const int32_t v : g_.nodes[i].outs)
      if (v >= 0) use(v);
  }
  for (const int32_t v : g_.outputs) last_use_[g_.values[v].storage] = end;
}

TensorRef Lowering::tensor_of(int32_t value) {
  const IrValue& v = g_.values[value];
  const Tensor& all = *storages_[v.storage];
  return new_alias(all, v.sizes, v.strides, all.storage->data + v.offset - begins_[v.storage],
                   v.dtype);
}

// ---- nodes ----

void Lowering::take_results(int32_t i, const TensorList& outs) {
  const IrNode& n = g_.nodes[i];
  if (outs.size() != n.n_results)
    fail(TT_INTERNAL, "{} has {} results, in the graph {}", n.op->name(), outs.size(), n.n_results);
  for (int64_t k = 0; k < outs.size(); k++) {
    if (n.outs[k] < 0 || !outs[k]) continue;
    const IrValue& v = g_.values[n.outs[k]];
    const Tensor& t = *outs[k];
    TensorRef& storage = storages_[v.storage];
    if (!same(t.sizes(), v.sizes) || !same(t.strides(), v.strides) || t.dtype != v.dtype ||
        (storage && t.data != storage->storage->data + v.offset - begins_[v.storage]))
      fail(TT_INTERNAL, "result {} of {} is {}, in the graph it is {}", k, n.op->name(), t.sizes(),
           v.sizes.span());
    if (storage) continue;
    const int64_t bytes = t.storage->bytes;
    storage = new_alias(t, Ints(&bytes, 1), {}, t.storage->data, Dtype::kU8);
    note_storage(v.storage);
    if (final_ || direct_[v.storage] < 0 || t.storage->reserved_[0] != id_) continue;
    Placement& placement = p_.device->placements[t.storage->reserved_[1]];
    placement.shared = true;
    placement.at = g_.storages[direct_[v.storage]].tensor->storage->data;
  }
}

void Lowering::end_of_storages(int32_t node) {
  const auto end = [&](int32_t v) {
    const int32_t s = g_.values[v].storage;
    if (last_use_[s] == node) storages_[s].reset();
  };
  for_each_value(g_.nodes[node], end);
  for (const int32_t v : g_.nodes[node].outs)
    if (v >= 0) end(v);
}

// An operator of the application: its callback runs in each run of the plan, not here.
void Lowering::run_host_node(int32_t i) {
  const IrNode& n = g_.nodes[i];
  PlanHostCall call;
  call.node = i;
  for_each_value(n, [&](int32_t v) { call.args.push_back(tensor_of(v)->data); });
  for (int64_t k = 0; k < n.n_results; k++) {
    call.outs.push_back(nullptr);
    if (n.outs[k] < 0) continue;
    const IrValue& v = g_.values[n.outs[k]];
    TensorRef& storage = storages_[v.storage];
    if (storage)
      fail(TT_NOT_IMPLEMENTED, "{} returns a tensor that exists: a plan cannot replay it",
           n.op->schema->call);
    const int64_t bytes = g_.storages[v.storage].bytes;
    storage = new_tensor(Ints(&bytes, 1), Dtype::kU8, g_.storages[v.storage].device);
    call.outs.back() = storage->storage->data + v.offset;
  }
  new_step();
  if (final_) {
    PlanStep step{.kind = StepKind::kHost, .run_host = run_host_call};
    step.host_call = int32_t(p_.host_calls.size());
    step.node = i;
    p_.steps.push_back(step);
    p_.host_calls.push_back(std::move(call));
  } else {
    images_.fix(n);
  }
  end_of_storages(i);
}

void Lowering::run_node(int32_t i) {
  const IrNode& n = g_.nodes[i];
  node_ = i;
  add_draws_before(i);
  if (is_left_out_[i]) return end_of_storages(i);
  if (n.op->is_custom()) return run_host_node(i);
  {
    NodeCall call;
    shared_.begin_node(n);
    images_.begin_node();
    prepacking_.begin_node();
    call.set(
        n,
        [&](int32_t v) {
          TensorRef t = tensor_of(v);
          shared_.note_argument(v, t->data);
          prepacking_.note_argument(v, t->data);
          return t;
        },
        [&](const IrArg& a) {
          return Rng{kDrawSeed + uint64_t(draws_[a.draw]), a.counters_before};
        });
    TensorList outs;
    call.run(*n.op, outs);
    take_results(i, outs);
    if (!final_) {
      shared_.end_node(p_.placements);
      images_.end_node(n, [&](int32_t v) { return address_of(v); });
    }
  }
  end_of_storages(i);
}

char* Lowering::address_of(int32_t value) const {
  const IrValue& v = g_.values[value];
  return storages_[v.storage]->storage->data + v.offset - begins_[v.storage];
}
void Lowering::keep_addresses() {
  for (const int32_t v : g_.inputs) p_.inputs.push_back(address_of(v));
  for (const int32_t v : g_.outputs) p_.outputs.push_back(address_of(v));
}

// Outputs can be bound if they are whole memories of their own.
void Lowering::keep_slots() {
  const auto slot_of = [&](int32_t value) {
    const IrValue& v = g_.values[value];
    SlotBinding b;
    const int64_t placement = placed_[v.storage];
    if (placement < 0) return b;
    b.bytes = p_.placements[placement].bytes;
    b.placement = placement;
    return b;
  };
  SmallVec<int32_t, 16> n_outputs;  // in each storage
  n_outputs.resize(g_.storages.size());
  for (const int32_t v : g_.outputs) n_outputs[g_.values[v].storage]++;
  for (const int32_t v : g_.inputs) p_.bound_inputs.push_back(slot_of(v));
  for (int64_t i = 0; i < g_.outputs.size(); i++) {
    const IrValue& v = g_.values[g_.outputs[i]];
    SlotBinding b = slot_of(g_.outputs[i]);
    bool whole = g_.storages[v.storage].role == IrRole::kMade && !v.offset && v.numel();
    int64_t last = 0;
    for (int64_t d = 0; d < v.ndim() && whole; d++) last += (v.sizes[d] - 1) * v.strides[d];
    whole = whole && (last + 1) * item_size(v.dtype) == b.bytes;
    if (!whole || n_outputs[v.storage] > 1) b.placement = -1;
    p_.bound_outputs.push_back(std::move(b));
  }
}

void Lowering::run() {
  prepare_storages();
  find_last_uses();
  find_direct();
  for (int32_t i = 0; i < g_.nodes.size(); i++) run_node(i);
  add_draws_before(int32_t(g_.nodes.size()));
  if (final_) {
    p_.draws_of_graph = draws_;
    return keep_addresses();
  }
  if (p_.device) p_.device->n_checks = n_device_checks_;
  p_.step_times.push_back(time_);
  p_.blob_bytes = blob_used_ + kPlanSlack;
  // Kept conversions may enlarge the arena by a fifth, and by 64 kB in any case.
  constexpr int64_t kKeptShare = 5;
  constexpr int64_t kKeptBytes = 1 << 16;
  constexpr int64_t kChainShare = 32;  // chains of launches, by so much again
  const int64_t least = place_greedily({p_.placements.data(), p_.placements.size()});
  images_.choose(shared_, p_.placements);
  shared_.choose(p_.placements, max(least / kKeptShare, kKeptBytes), [&](int64_t step) {
    p_.step_times.erase(step);
    lives_.drop_step(step);
  });
  shared_.for_each_shared([&](int64_t i, int64_t of) { lives_.note_shared(i, of); });
  const int64_t bytes = place_greedily({p_.placements.data(), p_.placements.size()});
  p_.arena_bytes = lives_.place(p_.placements, p_.step_times, bytes, bytes + bytes / kChainShare);
  p_.arena_bytes = images_.arena_bytes(p_.placements, p_.arena_bytes);
  shared_.after_placing(p_.placements);
  keep_slots();
  p_.draws = {};
}

}  // namespace TT_NS
