// A step: check everything, allocate everything, one launch per device, commit.
#include "optim/step.h"

#include "autograd/node.h"
#include "core/graph_hooks.h"
#include "ops/elementwise.h"

namespace TT_NS {

// converts: the step converts states to another dtype of their parameter.
static void check_slot(const Optimizer& o, int64_t i, const Tensor& g, bool converts) {
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
    fail(TT_DEVICE, "parameter {} is on {}, its gradient on {}: must be on one device", i,
         fmt(p.device), fmt(g.device));
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
    if (s->dtype != p.dtype && !converts)
      fail(TT_DTYPE, "parameter {} is {}, its {} {}: load the state again", i, fmt(p.dtype),
           o.cls->states[k], fmt(s->dtype));
    if (!(s->device == p.device))
      fail(TT_DEVICE, "parameter {} is on {}, its {} on {}: load the state again", i, fmt(p.device),
           o.cls->states[k], fmt(s->device));
  }
}

bool modes_see_steps() {
  const KeySet seeing = (kModeKeys & ~bit(kKeyAutocast)) | bit(kKeyCapture);
  return ctx().include & ~ctx().exclude & seeing;
}

// Whether t, which has the sizes of `like`, has its layout and its dtype, too.
static bool is_laid_out(const Tensor& t, const Tensor& like) {
  return same(t.strides(), like.strides()) && t.dtype == like.dtype;
}
// Returns t itself, or a copy in the layout and the dtype of `like`.
TensorRef with_layout(const Tensor& t, const Tensor& like) {
  if (is_laid_out(t, like)) return TensorRef::share(&t);
  TensorRef copy = new_strided(like.sizes(), like.strides(), like.dtype, t.device);
  copy_elements(*copy, t);
  return copy;
}

// Adds a state in the layout and the dtype of `like`, the dense parameter, with the values of the
// old one, if any.
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
    if (TT_UNLIKELY(!s || !is_laid_out(*s, *p))) s = add_state(i, k, s, *p);
    item->state[k] = s->data;
  }
  const bool complex = is_complex(p->dtype);
  item->n = p->numel * (complex ? 2 : 1);
  item->dtype = int32_t(real_of(p->dtype));
}

void count_step(const OptimClass& cls, const ParamGroup& g, ParamSlot& s) noexcept {
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
  const bool converts = !o_.cls->matrix && !modes_see_steps();
  for (int64_t i = 0; i < o_.params.size(); i++) {
    const Tensor& p = *o_.params[i].param;
    if (!grads_[i]) continue;
    check_slot(o_, i, *grads_[i], converts);
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

OptimPlan plan_of_items(const OptimClass& cls, const Batch& b, const OptimItem* items) {
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
