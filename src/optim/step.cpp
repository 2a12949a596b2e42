// A step: check everything, allocate everything, one launch per device, commit.
#include "autograd/node.h"
#include "core/graph_hooks.h"
#include "ext/mirror.h"
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"
#include "optim/captured.h"

#include <string.h>

namespace TT_NS {

static void check_slot(const Optimizer& o, int64_t i, const Tensor& g) {
  const Tensor& p = *o.params[i].param;
  if (requires_grad(p) && !(p.flags & kRequiresGrad))
    fail(TT_AUTOGRAD,
         "parameter {} has become the result of an operator: only leaves can be optimized", i);
  if (!is_differentiable(p.dtype))
    fail(TT_DTYPE, "parameter {} is {}: must be floating or complex", i, fmt(p.dtype));
  if (!same(g.sizes(), p.sizes()))
    fail(TT_SHAPE, "parameter {} is {}, its gradient {}: must be equal", i, p.sizes(), g.sizes());
  if (g.dtype != p.dtype)
    fail(TT_DTYPE, "parameter {} is {}, its gradient {}: must be equal", i, fmt(p.dtype),
         fmt(g.dtype));
  if (!(g.device == p.device))
    fail(TT_DEVICE, "parameter {} is on {}, its gradient on {}", i, fmt(p.device), fmt(g.device));
  check_writable(p, "params");
  if (p.device.type == TT_EXT) {
    ext_of(p);
    ext_of(g);
  }
  for (int k = 0; k < kOptimStates; k++) {
    const Tensor* s = o.params[i].state[k].get();
    if (!s) continue;
    const bool fits = TT_UNLIKELY(o.cls->matrix != nullptr)
                          ? same(s->sizes(), state_sizes(*o.cls, p, k))
                          : same(s->sizes(), p.sizes());
    if (!fits)
      fail(TT_SHAPE, "parameter {} is {}, its {} {}: load the state again", i, p.sizes(),
           o.cls->states[k], s->sizes());
    if (s->dtype != p.dtype)
      fail(TT_DTYPE, "parameter {} is {}, its {} {}: load the state again", i, fmt(p.dtype),
           o.cls->states[k], fmt(s->dtype));
    if (!(s->device == p.device))
      fail(TT_DEVICE, "parameter {} is on {}, its {} on {}: load the state again", i, fmt(p.device),
           o.cls->states[k], fmt(s->device));
  }
}

// The tensors that a step makes before it computes: new or relaid states, and copies of tensors
// that do not have their parameter's layout.
struct Change {
  int64_t param;
  int32_t state;     // -1: none
  TensorRef tensor;  // the state, or a temporary copy
  TensorRef target;  // the parameter to which tensor, a dense copy, is written back
  TensorRef on_cpu;  // of a state on a device of the application: its new values
};

// The items of one device and their units.
struct Batch {
  Device device;
  int64_t first, n_items, units, elements;

  // Device of its kernel: devices of the application have none.
  Device place() const { return device.type == TT_EXT ? kCpuDevice : device; }
};

bool modes_see_steps() {
  const uint64_t seeing = (kModeKeys & ~bit(kKeyAutocast)) | bit(kKeyCapture);
  return ctx().include & ~ctx().exclude & seeing;
}

class Step {
 public:
  explicit Step(Optimizer& o, StepGate* gate = nullptr) : o_(o), gate_(gate) {}
  void run();

 private:
  void take_grads();
  void check();
  void mirror();
  const Tensor* here(const Tensor* t) { return TT_UNLIKELY(mirrors_) ? mirrors_->on_cpu(t) : t; }
  void gather(Batch* b);
  void set_arrays(int64_t i, uint32_t states, OptimItem* item);
  const Tensor* add_state(int64_t i, int k, const Tensor* old, const Tensor& like);
  OptimPlan plan_of(const Batch& b) const;
  void compute();
  TT_COLD void compute_on_several();
  void update();
  void commit() noexcept;
  TT_COLD void make_states(StepCounter& counter, const Batch& b);
  TT_COLD void run_as_operator();

  Optimizer& o_;
  StepGate* gate_;
  TensorList grads_;  // of each parameter at the start of the step; empty: none
  SmallVec<Change, 2> changes_;
  SmallVec<Batch, 2> batches_;
  // of parameters, gradients and states on devices of the application
  ExtMirrors* mirrors_ = nullptr;
};

// Returns t itself, or a copy in the layout of `like`.
static TensorRef with_layout(const Tensor& t, const Tensor& like) {
  if (same(t.strides(), like.strides())) return TensorRef::share(&t);
  TensorRef copy = new_strided(like.sizes(), like.strides(), t.dtype, t.device);
  copy_elements(*copy, t);
  return copy;
}

// Adds a state in the layout of `like`, the dense parameter, with the values of the old one, if
// any.
const Tensor* Step::add_state(int64_t i, int k, const Tensor* old, const Tensor& like) {
  TensorRef made = old ? with_layout(*old, like)
                       : new_strided(like.sizes(), like.strides(), like.dtype, like.device);
  const Tensor* values = made.get();
  const Device home = o_.params[i].param->device;
  if (home == like.device) {
    changes_.push_back({i, k, std::move(made), {}, {}});
  } else {
    TensorRef there = new_strided(like.sizes(), like.strides(), like.dtype, home);
    changes_.push_back({i, k, std::move(there), {}, std::move(made)});
  }
  return values;
}

void Step::set_arrays(int64_t i, uint32_t states, OptimItem* item) {
  ParamSlot& slot = o_.params[i];
  const Tensor* p = here(slot.param.get());
  if (TT_UNLIKELY(!p->dense())) {
    TensorRef copy = dense_input(*p);
    TensorRef target = TensorRef::share(p);
    p = copy.get();
    changes_.push_back({i, -1, std::move(copy), std::move(target), {}});
  }
  const Tensor* g = here(grads_[i].get());
  if (TT_UNLIKELY(!same(g->strides(), p->strides()))) {
    TensorRef copy = with_layout(*g, *p);
    g = copy.get();
    changes_.push_back({i, -1, std::move(copy), {}, {}});
  }
  item->param = p->data;
  item->grad = g->data;
  item->fresh = slot.fresh;
  for (int k = 0; k < kOptimStates; k++) {
    item->state[k] = nullptr;
    if (!(states >> k & 1)) continue;
    const Tensor* s = slot.state[k].get();
    if (!s) item->fresh |= 1u << k;
    if (s) s = here(s);
    if (TT_UNLIKELY(!s || !same(s->strides(), p->strides()))) s = add_state(i, k, s, *p);
    item->state[k] = s->data;
  }
  const bool complex = is_complex(p->dtype);
  item->n = p->numel * (complex ? 2 : 1);
  item->dtype = int32_t(real_of(p->dtype));
}

static bool same_numbers(const ParamSlot& a, const ParamSlot& b) {
  return memcmp(a.number, b.number, sizeof a.number) == 0;
}

static void count_step(const OptimClass& cls, const ParamGroup& g, ParamSlot& s) noexcept {
  if (cls.advance) cls.advance(g.value, next_step(s), s.number);
  if (cls.counts_steps) s.step = next_step(s);
}

void Step::gather(Batch* b) {
  b->first = o_.items.size();
  for (const ParamGroup& g : o_.groups) {
    const ParamSlot* known = nullptr;  // for whose numbers `item` and `states` were computed
    OptimItem item = {};
    uint32_t states = 0;
    for (int64_t i = g.begin; i < g.end; i++) {
      const Tensor& p = *o_.params[i].param;
      if (!(p.device == b->device) || !grads_[i]) continue;
      const ParamSlot& slot = o_.params[i];
      if (!known || slot.step != known->step || !same_numbers(slot, *known)) {
        states = o_.cls->factors(g.value, next_step(slot), slot.number, &item);
        known = &slot;
      }
      set_arrays(i, states, &item);
      item.first_unit = b->units;
      b->units += optim_units(item.n);
      b->elements += item.n;
      o_.items.push_back(item);
    }
  }
  b->n_items = o_.items.size() - b->first;
}

void Step::take_grads() {
  grads_.reserve(o_.params.size());
  if (TT_UNLIKELY(ctx().graph))
    for (const ParamSlot& s : o_.params) note_grad(*s.param, false);
  Lock lock(shared_lock);
  for (const ParamSlot& s : o_.params)
    grads_.push_back(TensorRef::share(borrow_grad(lock, *s.param)));
}

// Checks every parameter with a gradient, and collects the devices.
void Step::check() {
  for (int64_t i = 0; i < o_.params.size(); i++) {
    const Tensor& p = *o_.params[i].param;
    if (!grads_[i]) continue;
    check_slot(o_, i, *grads_[i]);
    bool known = false;
    for (const Batch& b : batches_) known |= b.device == p.device;
    if (!known) batches_.push_back({p.device, 0, 0, 0, 0});
  }
}

// Copies tensors on devices of the application to the CPU.
void Step::mirror() {
  for (int64_t i = 0; i < o_.params.size(); i++) {
    const ParamSlot& slot = o_.params[i];
    if (!grads_[i]) continue;
    mirrors_->cover(*slot.param, true);
    mirrors_->cover(*grads_[i], false);
    for (const TensorRef& s : slot.state)
      if (s) mirrors_->cover(*s, true);
  }
  mirrors_->fetch();
}

static OptimPlan plan_of_items(const OptimClass& cls, const Batch& b, const OptimItem* items) {
  OptimPlan plan;
  plan.rule = cls.rule;
  plan.n_items = b.n_items;
  plan.items = items;
  const int64_t grain = kParallelGrain * b.units / b.elements;
  plan.run = {{b.units, 0}, {max<int64_t>(1, grain), 1}, 1, 0};
  return plan;
}
OptimPlan Step::plan_of(const Batch& b) const {
  return plan_of_items(*o_.cls, b, o_.items.data() + b.first);
}

void Step::compute() {
  if (TT_UNLIKELY(batches_.size() > 1)) return compute_on_several();
  for (const Batch& b : batches_) {
    if (!b.units) continue;
    OptimPlan plan = plan_of(b);
    launch_stages(*o_.cls->kernel, b.place(), &plan.run);
  }
}

// All devices allocate their scratch memory before the first one starts. The CPU, which cannot
// fail, is last.
void Step::compute_on_several() {
  SmallVec<OptimPlan, 4> plans;
  SmallVec<DeviceWorkspace, 4> workspaces;
  plans.reserve(batches_.size());
  workspaces.reserve(batches_.size());
  for (const Batch& b : batches_) {
    if (!b.units) continue;
    plans.push_back(plan_of(b));
    workspaces.push_back(DeviceWorkspace(*o_.cls->kernel, b.place(), &plans.back()));
  }
  for (int64_t i = 0; i < plans.size(); i++) workspaces[i].launch(*o_.cls->kernel, &plans[i]);
  for (int64_t i = 0; i < plans.size(); i++)
    if (workspaces[i].device().type == TT_CPU)
      launch_stages(*o_.cls->kernel, kCpuDevice, &plans[i].run);
}

void Step::commit() noexcept {
  for (Change& c : changes_)
    if (c.state >= 0) o_.params[c.param].state[c.state] = std::move(c.tensor);
  for (const ParamGroup& g : o_.groups)
    for (int64_t i = g.begin; i < g.end; i++) {
      ParamSlot& s = o_.params[i];
      if (!grads_[i]) continue;
      count_step(*o_.cls, g, s);
      s.fresh = 0;
      s.param->bump_version();
    }
}

void Step::update() {
  o_.items.clear();
  for (Batch& b : batches_) gather(&b);
  compute();  // from here on only a device can fail
  for (const Change& c : changes_)
    if (c.target) copy_elements(*c.target, *c.tensor);
  if (TT_UNLIKELY(mirrors_)) {
    for (const Change& c : changes_)
      if (c.on_cpu)
        ext_copy(ext_of(*c.tensor), c.tensor->data, c.on_cpu->data,
                 c.on_cpu->numel * c.on_cpu->item_size(), kHostToDevice);
    mirrors_->write_back();
  }
  commit();
}

void Step::run() {
  poll_if_watched(true);  // may still change the optimizer
  CommitGuard whole;      // no more changes from here on
  take_grads();
  check();
  bool ext = false;
  for (const Batch& b : batches_) ext |= b.device.type == TT_EXT;
  if (TT_UNLIKELY(o_.cls->matrix != nullptr)) return run_as_operator();
  if (TT_UNLIKELY(modes_see_steps()) && !ext) return run_as_operator();
  if (TT_LIKELY(!ext)) return update();
  ExtMirrors mirrors;
  mirrors_ = &mirrors;
  mirror();
  update();
}

// ---- a step as an operator ----

static StepCounter& counter_of(Object& object) { return static_cast<StepCounter&>(object); }

TT_COLD static void destroy_counter(Object* object) noexcept {
  StepCounter* const counter = &counter_of(*object);
  counter->~StepCounter();
  mem_free(counter, sizeof *counter);
}

// Two steps of one optimizer over the same parameters and states.
static bool same_counter(const StepCounter& a, const StepCounter& b) {
  bool same = a.optimizer.get() == b.optimizer.get() && a.params.size() == b.params.size();
  same = same && bool(a.gate) == bool(b.gate) && (!a.gate || is_same_step(*a.gate, *b.gate));
  for (int64_t i = 0; same && i < a.params.size(); i++) {
    const CountedParam &p = a.params[i], &q = b.params[i];
    same = p.group == q.group && p.param == q.param && p.data == q.data && p.states == q.states;
  }
  return same;
}
bool is_same_step(const Object& a, const Object& b) {
  if (a.destroy_fn != b.destroy_fn) return false;
  if (is_scaled_step(a)) return is_same_scaled_step(a, b);
  if (a.destroy_fn == destroy_counter)
    return same_counter(static_cast<const StepCounter&>(a), static_cast<const StepCounter&>(b));
  const Scheduler* const of = scheduler_of(a);
  return of && of == scheduler_of(b);
}

uint32_t states_of(const OptimClass& cls, const double* value, const ParamSlot& slot,
                   OptimItem* item) {
  if (TT_UNLIKELY(cls.matrix != nullptr)) return cls.matrix->states(*slot.param);
  return cls.factors(value, next_step(slot), slot.number, item);
}

// Whether the step would be recorded in another way with value k of the group, which has changed,
// as it is now and the others as they were.
TT_COLD static bool is_outdated(const StepCounter& c, int64_t group, int64_t k) {
  const Optimizer& o = *c.optimizer;
  const double* const then = c.values.data() + group * kMaxValues;
  const double* const now = o.groups[group].value;
  if (o.cls->matrix) return !o.cls->matrix->is_factor(o.cls->values[k].name);
  double mixed[kMaxValues];
  memcpy(mixed, then, sizeof mixed);
  mixed[k] = now[k];
  OptimItem item = {};
  for (const CountedParam& p : c.params)
    if (p.group == group)
      return o.cls->factors(mixed, next_step(o.params[p.param]), o.params[p.param].number, &item) !=
             p.states;
  return false;
}
// Calls f(group, k) for each value that is outdated; returns whether there is one.
template <class F> static bool each_outdated(const StepCounter& c, const F& f) {
  bool found = false;
  const Optimizer& o = *c.optimizer;
  const int64_t n = o.cls->values.n;
  for (int64_t g = 0; g < c.values.size() / kMaxValues; g++) {
    const double* const then = c.values.data() + g * kMaxValues;
    const double* const now = o.groups[g].value;
    if (memcmp(now, then, size_t(n) * sizeof *now) == 0) continue;
    for (int64_t k = 0; k < n; k++) {
      if (memcmp(now + k, then + k, sizeof *now) == 0 || !is_outdated(c, g, k)) continue;
      f(g, k);
      found = true;
    }
  }
  return found;
}

void fail_other_memory(int64_t param) {
  fail(TT_INVALID_ARG,
       "parameter {} of the optimizer, or its state, has other memory than in the captured step: "
       "capture it again",
       param);
}

TT_COLD void check_current(const StepCounter& c) {
  const Optimizer& o = *c.optimizer;
  each_outdated(c, [&](int64_t g, int64_t k) {
    fail(TT_INVALID_ARG, "{} of group {} is {}, in the captured step it was {}: capture it again",
         o.cls->values[k].name, g, o.groups[g].value[k], c.values[g * kMaxValues + k]);
  });
  for (const CountedParam& p : c.params) {
    const ParamSlot& slot = o.params[p.param];
    bool same = slot.param->data == p.data;
    for (int k = 0; k < kOptimStates; k++)
      if (p.states >> k & 1) same &= slot.state[k] && slot.state[k]->data == p.state[k];
    if (!same) fail_other_memory(p.param);
  }
}

bool is_current_step(const Object& object) {
  if (object.destroy_fn != destroy_counter) return true;
  const auto& c = static_cast<const StepCounter&>(object);
  bool current = c.optimizer->params.size() == c.n_params;
  current = current && !each_outdated(c, [](int64_t, int64_t) {});
  for (int64_t i = 0; current && i < c.params.size(); i++) {
    const CountedParam& p = c.params[i];
    const ParamSlot& slot = c.optimizer->params[p.param];
    current = slot.param->data == p.data;
    for (int k = 0; k < kOptimStates; k++)
      if (p.states >> k & 1)
        current = current && slot.state[k] && slot.state[k]->data == p.state[k];
  }
  return current;
}

TT_COLD Ref<StepCounter> new_counter(Optimizer& o) {
  auto* c = new (mem_alloc(sizeof(StepCounter))) StepCounter{};
  c->refs = 1;
  c->destroy_fn = destroy_counter;
  c->optimizer = OptimizerRef::share(&o);
  c->n_params = o.params.size();
  const Ref<StepCounter> owned = Ref<StepCounter>::adopt(c);
  for (const ParamGroup& g : o.groups) c->values.append({g.value, kMaxValues});
  return owned;
}

// Writes the factors of the next step into the items.
static bool set_factors(Object& object, char* data) {
  const StepCounter& c = counter_of(object);
  if (c.skips(false)) return true;
  const Optimizer& o = *c.optimizer;
  auto* item = reinterpret_cast<OptimItem*>(data);
  const CountedParam* known = nullptr;  // for whose numbers `next` and `states` were computed
  OptimItem next = {};
  uint32_t states = 0;
  for (const CountedParam& p : c.params) {
    const ParamSlot& slot = o.params[p.param];
    const ParamSlot* like = known ? &o.params[known->param] : nullptr;
    if (!like || known->group != p.group || slot.step != like->step || !same_numbers(slot, *like)) {
      states = o.cls->factors(o.groups[p.group].value, next_step(slot), slot.number, &next);
      known = &p;
    }
    item->factors = next.factors;
    item->flags = next.flags;
    bool same_memory = slot.param->data == p.data;
    for (int k = 0; k < kOptimStates; k++)
      if (p.states >> k & 1) same_memory &= slot.state[k] && slot.state[k]->data == item->state[k];
    if (states != p.states || !same_memory) {
      check_current(c);  // names a value, if that is the reason
      fail_other_memory(p.param);
    }
    item->fresh = slot.fresh;
    item++;
  }
  return false;
}

static bool count_steps(Object& object, char*) {
  StepCounter& c = counter_of(object);
  if (c.skips(true)) return false;
  Optimizer& o = *c.optimizer;
  for (const CountedParam& p : c.params) {
    count_step(*o.cls, o.groups[p.group], o.params[p.param]);
    o.params[p.param].fresh = 0;
  }
  return false;
}

// Makes the states of the parameters on b.device that are missing or have another layout, before
// the operator runs.
void Step::make_states(StepCounter& counter, const Batch& b) {
  OptimItem item = {};
  for (int64_t g = 0; g < o_.groups.size(); g++)
    for (int64_t i = o_.groups[g].begin; i < o_.groups[g].end; i++) {
      const ParamSlot& slot = o_.params[i];
      const Tensor& param = *slot.param;
      if (!grads_[i] || !(param.device == b.device)) continue;
      const TensorRef like =
          param.dense() ? slot.param : new_tensor(param.sizes(), param.dtype, b.device);
      CountedParam p = {g, i, param.data, 0, 0, {}};
      p.states = states_of(*o_.cls, o_.groups[g].value, slot, &item);
      for (int k = 0; k < kOptimStates; k++) {
        const Tensor* state = slot.state[k].get();
        if (TT_UNLIKELY(o_.cls->matrix != nullptr)) {
          if ((p.states >> k & 1) && !state)
            changes_.push_back({i, k, o_.cls->matrix->new_state(param, k), {}, {}});
          continue;
        }
        if (!(p.states >> k & 1) || (state && same(state->strides(), like->strides()))) continue;
        if (!state) p.fresh |= 1u << k;
        add_state(i, k, state, *like);
      }
      counter.params.push_back(p);
    }
}

// The states that make_states has made, exchanged with those of before; again at the end, unless
// the step has been done.
class NewStates {
 public:
  NewStates(Optimizer& o, SmallVec<Change, 2>& changes) : o_(o), changes_(changes) { exchange(); }
  ~NewStates() {
    if (!done_) exchange();
    changes_.clear();
  }
  NewStates(const NewStates&) = delete;
  void keep() { done_ = true; }

 private:
  void exchange() {
    for (Change& c : changes_) std::swap(o_.params[c.param].state[c.state], c.tensor);
  }
  Optimizer& o_;
  SmallVec<Change, 2>& changes_;
  bool done_ = false;
};

// Marks the new states as fresh until a step has run; not if the operator fails.
class FreshStates {
 public:
  FreshStates(Optimizer& o, const StepCounter& c) : o_(o), c_(c) {
    for (const CountedParam& p : c_.params) o_.params[p.param].fresh |= p.fresh;
  }
  ~FreshStates() {
    if (done_) return;
    for (const CountedParam& p : c_.params) o_.params[p.param].fresh &= ~p.fresh;
  }
  FreshStates(const FreshStates&) = delete;
  void keep() { done_ = true; }

 private:
  Optimizer& o_;
  const StepCounter& c_;
  bool done_ = false;
};

void Step::run_as_operator() {
  const MatrixRule* const matrix = o_.cls->matrix;
  for (const Batch& b : batches_) {
    const Ref<StepCounter> counter = new_counter(o_);
    if (TT_UNLIKELY(gate_ != nullptr)) counter->gate = Ref<StepGate>::share(gate_);
    make_states(*counter, b);
    NewStates made(o_, changes_);
    FreshStates fresh(o_, *counter);
    SmallVec<const Tensor*, 8> params, grads, states;
    for (CountedParam& p : counter->params) {
      const ParamSlot& slot = o_.params[p.param];
      params.push_back(slot.param.get());
      grads.push_back(grads_[p.param].get());
      for (int k = 0; k < kOptimStates; k++) {
        if (!(p.states >> k & 1)) continue;
        p.state[k] = slot.state[k]->data;
        states.push_back(slot.state[k].get());
      }
    }
    if (TT_UNLIKELY(matrix && !(modes_see_steps() && b.device.type != TT_EXT)))
      matrix->step(params, grads, states, *counter);
    else op::optim_step(params, grads, states, *counter);
    fresh.keep();
    made.keep();
  }
}

// What the operator computes with.
struct StepArrays {
  SmallVec<OptimItem, 8> items;
  TensorList copies;
  SmallVec<Tensor*, 2> targets;  // parameters that are not dense
  TensorList results;            // their new values
  Batch batch;
  void add(Tensor& param, const Tensor& grad);
};

TT_COLD void StepArrays::add(Tensor& param, const Tensor& grad) {
  const Tensor* p = &param;
  if (TT_UNLIKELY(!p->dense())) {
    results.push_back(dense_input(param));
    targets.push_back(&param);
    p = results.back().get();
  }
  copies.push_back(with_layout(grad, *p));
  OptimItem item = {};
  item.param = p->data;
  item.grad = copies.back()->data;
  item.n = p->numel * (is_complex(p->dtype) ? 2 : 1);
  item.dtype = int32_t(real_of(p->dtype));
  item.first_unit = batch.units;
  batch.units += optim_units(item.n);
  batch.elements += item.n;
  items.push_back(item);
}

// An edited graph or one from a file may give it any tensors.
static void check_alike(const Tensor& param, const Tensor* t, const char* what, int64_t i) {
  if (t && t->dtype == param.dtype && t->numel == param.numel) return;
  fail(TT_INVALID_ARG, "{} {} does not have the dtype and the size of its parameter, {} {}", what,
       i, fmt(param.dtype), param.sizes());
}

TT_COLD void impl::optim_step(Call, TensorSpan params, TensorSpan grads, TensorSpan states,
                              Object& object) {
  const MaskGuard no_grad(bit(kKeyAutograd));
  const StepCounter& counter = counter_of(object);
  const OptimClass& cls = *counter.optimizer->cls;
  if (TT_UNLIKELY(cls.matrix != nullptr))
    return cls.matrix->step(params, grads, states, counter_of(object));
  StepArrays arrays;
  arrays.batch = {params.ptr[0]->device, 0, params.n, 0, 0};
  int64_t next_state = 0;
  for (int64_t i = 0; i < params.n; i++) {
    const Tensor& param = *params.ptr[i];
    check_alike(param, i < grads.n ? grads.ptr[i] : nullptr, "gradient", i);
    arrays.add(const_cast<Tensor&>(param), *grads.ptr[i]);
    for (int k = 0; k < kOptimStates; k++) {
      if (!(counter.params[i].states >> k & 1)) continue;
      const Tensor* const state = next_state < states.n ? states.ptr[next_state] : nullptr;
      check_alike(param, state, "state", next_state++);
      arrays.items.back().state[k] = state->data;
    }
  }
  const int64_t bytes = params.n * int64_t(sizeof(OptimItem));
  const TensorRef stored = new_tensor(Ints(&bytes, 1), Dtype::kU8, kCpuDevice);
  memcpy(stored->data, arrays.items.data(), size_t(bytes));
  note_host_write(*stored);
  const bool is_left_out = run_on_host(object, set_factors, *stored);
  if (arrays.batch.units && !is_left_out) {
    OptimPlan plan =
        plan_of_items(cls, arrays.batch, reinterpret_cast<const OptimItem*>(stored->data));
    launch_stages(*cls.kernel, arrays.batch.device, &plan.run);
  }
  for (int64_t i = 0; i < arrays.targets.size() && !is_left_out; i++)
    copy_elements(*arrays.targets[i], *arrays.results[i]);
  run_on_host(object, count_steps, *stored);
  for (const Tensor* t : params) const_cast<Tensor*>(t)->bump_version();
  for (const Tensor* t : states) const_cast<Tensor*>(t)->bump_version();
}

void optimizer_step(Optimizer& o, StepGate* gate) {
  if (TT_UNLIKELY(o.cls->solver != nullptr)) o.cls->solver->fail_step();
  MaskGuard quiet(bit(kKeyAutograd));
  EventScope event(EventKind::kOptimizer, o.cls->name);
  Step(o, gate).run();
}

TensorRef optimizer_step(Optimizer& o, const Evaluation& evaluate) {
  if (o.cls->solver) {
    MaskGuard quiet(bit(kKeyAutograd));
    EventScope event(EventKind::kOptimizer, o.cls->name);
    return o.cls->solver->step(o, evaluate);
  }
  TensorRef loss = evaluate();
  optimizer_step(o);
  return loss;
}

}  // namespace TT_NS
