// Lowering runs the implementation of each node twice, with kernels recorded instead of run: once
// to see how much memory it takes from when to when, once to record launches with addresses in the
// arena.
#include "graph/bands.h"
#include "graph/bind.h"
#include "graph/device_plan.h"
#include "graph/hooked_ctx.h"
#include "graph/image_layouts.h"
#include "graph/node_call.h"
#include "graph/plan.h"
#include "graph/plan_form.h"
#include "graph/prepack.h"
#include "graph/rewrite.h"
#include "graph/share_layouts.h"
#include "graph/tiles.h"
#include "ops/index/checks.h"

#include <algorithm>
#include <string.h>

namespace TT_NS {

constexpr int64_t kAlign = kArenaAlign;
// Larger memory is not zeroed: lowering looks at no elements, so that it need not exist yet.
constexpr int64_t kZeroedBytes = 1 << 16;

int64_t place_greedily(Span<Placement> all, int64_t alignment) {
  SmallVec<int64_t, 16> order;
  for (int64_t i = 0; i < all.n; i++)
    if (!all[i].shared) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return all[a].bytes != all[b].bytes ? all[a].bytes > all[b].bytes : a < b;
  });
  SmallVec<int64_t, 16> placed;  // by offset
  int64_t end = 0;
  for (const int64_t i : order) {
    Placement& p = all[i];
    int64_t at = 0;
    for (const int64_t j : placed) {
      const Placement& q = all[j];
      if (q.birth > p.death || p.birth > q.death) continue;
      if (q.offset >= at + p.bytes) break;
      at = max(at, round_up(q.offset + q.bytes, alignment));
    }
    p.offset = at;
    end = max(end, round_up(at + p.bytes, alignment));
    int64_t k = placed.size();
    while (k > 0 && all[placed[k - 1]].offset > at) k--;
    placed.insert(k, i);
  }
  return end;
}

namespace {

// Rngs of draws have seeds that name them until a run fills in the drawn one.
constexpr uint64_t kDrawSeed = 0x7474647261770000u;

// What the first run learns of layouts for the second.
struct Layouts {
  SharedLayouts shared;
  ImageLayouts images;
  void second_run() {
    shared.second_run();
    images.second_run();
  }
};

class Lowering : public GraphHooks {
 public:
  Lowering(const Graph& g, Plan& p, Layouts& layouts, bool final);
  ~Lowering();
  Lowering(const Lowering&) = delete;
  void run();

 private:
  struct Observer : WorkObserver {
    Lowering* lowering;
  };

  static Rng on_draw(GraphHooks& h, Generator& g, uint64_t counters, Rng (*)(Generator&, uint64_t));
  static void on_place(GraphHooks& h, Storage& s);
  static void on_release(Storage* s) noexcept;
  static void on_place_on_device(GraphHooks& h, Storage& s);
  static void on_release_on_device(Storage* s) noexcept;
  static void on_workspace(GraphHooks& h, Device device, int64_t bytes);
  static void on_device_launch(GraphHooks& h, const Kernel& k, Device device, const void* plan);
  static void on_device_copy(GraphHooks& h, char* dst, Device to, const char* src, Device from,
                             int64_t bytes);
  static int64_t* on_check_place(GraphHooks& h, Device device);
  static void on_device_check(GraphHooks& h, Device device, int64_t* place, DeviceCheck&& check);
  static const DeviceHooks kDeviceHooks;
  static int32_t on_launch(WorkObserver& w, const Kernel& k, const void* plan, int64_t units,
                           int64_t grain);
  static void on_read(WorkObserver& w, const Tensor& t);
  static void on_write(WorkObserver& w, const Tensor& t);
  static bool on_check(WorkObserver& w, const Tensor& found, const DeviceCheck& check);
  static void on_call(WorkObserver& w, Object& object, HostFn fn, const Tensor& t);

  void prepare_storages();
  void find_last_uses();
  void find_direct();
  TensorRef tensor_of(int32_t value);
  void run_node(int32_t i);
  void run_host_node(int32_t i);
  char* take_on_device(PlanDevice& d, int64_t bytes);
  void take_draw(PlanStep& step, const Kernel& k);
  DeviceCheck named(const DeviceCheck& check) const;
  void take_results(int32_t i, const TensorList& outs);
  void add_draws_before(int32_t node);
  int32_t add_draw(Ref<Generator> generator, uint64_t counters);
  void end_of_storages(int32_t node);
  char* address_of(int32_t value) const;
  void keep_addresses();
  void note_storage(int32_t storage);
  void keep_slots();
  void new_step(const Kernel* k = nullptr, const void* plan = nullptr, int64_t units = 0);
  char* take_blob(int64_t bytes);

  const Graph& g_;
  Plan& p_;
  SharedLayouts& shared_;
  ImageLayouts& images_;
  Prepacking prepacking_;
  BandLives lives_;
  const bool final_;  // the second run
  Observer observer_;
  int64_t id_;
  int64_t time_ = 0;
  int64_t n_placed_ = 0;
  int64_t n_placed_on_device_ = 0;
  int64_t n_device_checks_ = 0;
  char* workspace_ = nullptr;  // on a device, of the next launch
  int64_t blob_used_ = 0;
  int32_t node_ = 0;
  int64_t next_draw_ = 0;             // of the graph
  SmallVec<int32_t, 1> draws_;        // of the graph -> of the plan
  SmallVec<TensorRef, 16> storages_;  // bytes of each storage that exists
  SmallVec<int64_t, 16> begins_;      // of each storage: where these begin
  SmallVec<int64_t, 16> placed_;      // of each storage, in the first run: its placement, or -1
  SmallVec<int32_t, 16> last_use_;    // the node that reads or writes a storage last
  SmallVec<int32_t, 16> direct_;      // of each storage: the storage that it is made in, or -1
  SmallVec<bool, 16> is_left_out_;    // of each node

  HookedCtx ctx_;
};

int64_t new_lowering() {
  static int64_t last = 0;
  return -atomic_add_fetch(&last, 1, kRelaxed);  // marks of captures are positive
}

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
    l->lives_.note_release(s->reserved_[1]);
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

// ---- on a device ----

// The first lowering computes nothing: addresses only have to differ.
constexpr uintptr_t kNowhere = uintptr_t(1) << (sizeof(uintptr_t) == 8 ? 40 : 12);

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

bool is_all_bytes(const IrValue& v, const IrStorage& s) {
  return s.bytes && v.dtype == Dtype::kU8 && v.ndim() == 1 && !v.offset && v.sizes[0] == s.bytes;
}

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
  if (!n.op->n_slots) return run_host_node(i);
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
  for (const int32_t v : g_.inputs) p_.bound_inputs.push_back(slot_of(v));
  for (int64_t i = 0; i < g_.outputs.size(); i++) {
    const IrValue& v = g_.values[g_.outputs[i]];
    SlotBinding b = slot_of(g_.outputs[i]);
    bool whole = g_.storages[v.storage].role == IrRole::kMade && !v.offset && v.numel();
    int64_t last = 0;
    for (int64_t d = 0; d < v.ndim() && whole; d++) last += (v.sizes[d] - 1) * v.strides[d];
    whole = whole && (last + 1) * item_size(v.dtype) == b.bytes;
    for (int64_t k = 0; k < g_.outputs.size(); k++)
      whole = whole && (k == i || g_.values[g_.outputs[k]].storage != v.storage);
    if (!whole) b.placement = -1;
    p_.bound_outputs.push_back(std::move(b));
  }
}

void Lowering::run() {
  prepare_storages();
  find_last_uses();
  find_direct();
  for (int32_t i = 0; i < g_.nodes.size(); i++) run_node(i);
  add_draws_before(int32_t(g_.nodes.size()));
  if (final_) return keep_addresses();
  if (p_.device) p_.device->n_checks = n_device_checks_;
  p_.step_times.push_back(time_);
  p_.blob_bytes = blob_used_ + kPlanSlack;
  // Kept conversions may enlarge the arena by a fifth, and by 64 kB in any case.
  constexpr int64_t kKeptShare = 5;
  constexpr int64_t kKeptBytes = 1 << 16;
  constexpr int64_t kChainShare = 32;  // chains of launches, by so much again
  const int64_t least = place_greedily({p_.placements.data(), p_.placements.size()});
  images_.choose(shared_);
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
  if (uintptr_t(arena) % kAlign)
    fail_arg(TT_INVALID_ARG, "arena", "arena must be aligned to {} bytes", kAlign);
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
