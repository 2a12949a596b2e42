// One step: check all, allocate all, one launch per device, commit.
#include "autograd/node.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"
#include "optim/host_arrays.h"
#include "optim/optimizer.h"

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
    if (!same(s->sizes(), p.sizes()))
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

// What a step makes before it computes: states that are new or laid out anew, and copies of what is
// not laid out as its parameter.
struct Change {
  int64_t param;
  int32_t state;     // -1: none
  TensorRef tensor;  // the state, or a copy that only has to live
  TensorRef target;  // the parameter of which tensor is a dense copy, to be written back
};

// The items of one device, and their units.
struct Batch {
  Device device;
  int64_t first, n_items, units, elements;
};

class Step {
 public:
  explicit Step(Optimizer& o) : o_(o) {}
  void run();

 private:
  void take_grads();
  void check();
  void gather(Batch* b);
  void set_arrays(int64_t i, uint32_t states, OptimItem* item);
  TensorRef laid_out(const Tensor& t, const Tensor& like);
  void compute(const Batch& b);
  void commit() noexcept;

  Optimizer& o_;
  TensorList grads_;  // of each parameter as the step began; empty: none
  SmallVec<Change, 2> changes_;
  SmallVec<Batch, 2> batches_;
};

// t itself, or a copy in the layout of `like`.
TensorRef Step::laid_out(const Tensor& t, const Tensor& like) {
  if (same(t.strides(), like.strides())) return TensorRef::share(&t);
  TensorRef copy = new_strided(like.sizes(), like.strides(), t.dtype, t.device);
  copy_elements(*copy, t);
  return copy;
}

void Step::set_arrays(int64_t i, uint32_t states, OptimItem* item) {
  ParamSlot& slot = o_.params[i];
  const Tensor* p = slot.param.get();
  if (TT_UNLIKELY(!p->dense())) {
    TensorRef copy = dense_input(*p);
    p = copy.get();
    changes_.push_back({i, -1, std::move(copy), slot.param});
  }
  const Tensor* g = grads_[i].get();
  if (TT_UNLIKELY(!same(g->strides(), p->strides()))) {
    TensorRef copy = laid_out(*g, *p);
    g = copy.get();
    changes_.push_back({i, -1, std::move(copy), {}});
  }
  item->param = p->data;
  item->grad = g->data;
  item->fresh = 0;
  for (int k = 0; k < kOptimStates; k++) {
    item->state[k] = nullptr;
    if (!(states >> k & 1)) continue;
    const Tensor* s = slot.state[k].get();
    if (TT_UNLIKELY(!s || !same(s->strides(), p->strides()))) {
      TensorRef made =
          s ? laid_out(*s, *p) : new_strided(p->sizes(), p->strides(), p->dtype, p->device);
      if (!s) item->fresh |= 1u << k;
      s = made.get();
      changes_.push_back({i, k, std::move(made), {}});
    }
    item->state[k] = s->data;
  }
  const bool complex = is_complex(p->dtype);
  item->n = p->numel * (complex ? 2 : 1);
  item->dtype = int32_t(real_of(p->dtype));
}

void Step::gather(Batch* b) {
  b->first = o_.items.size();
  for (const ParamGroup& g : o_.groups) {
    double known = -1;  // the step that `item` and `states` are for
    OptimItem item = {};
    uint32_t states = 0;
    for (int64_t i = g.begin; i < g.end; i++) {
      const Tensor& p = *o_.params[i].param;
      if (!(p.device == b->device) || !grads_[i]) continue;
      const double step = o_.params[i].step < 0 ? 1 : o_.params[i].step + 1;
      if (step != known) {
        states = o_.cls->factors(g.value, step, &item);
        known = step;
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
  Lock lock(shared_lock);
  for (const ParamSlot& s : o_.params)
    grads_.push_back(TensorRef::share(borrow_grad(lock, *s.param)));
}

// Checks every parameter that has a gradient, and finds the devices.
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

void Step::compute(const Batch& b) {
  if (!b.units) return;
  OptimPlan plan;
  plan.rule = o_.cls->rule;
  plan.n_items = b.n_items;
  plan.items = o_.items.data() + b.first;
  const int64_t grain = kParallelGrain * b.units / b.elements;
  plan.run = {{b.units, 0}, {grain < 1 ? 1 : grain, 1}, 1, 0};
  HostArrays host;
  const bool apart = b.device.type == TT_EXT;
  for (int64_t i = 0; i < b.n_items && apart; i++) {
    OptimItem& item = o_.items[b.first + i];
    const int64_t bytes = item.n * item_size(Dtype(item.dtype));
    item.param = host.fetch(b.device, item.param, bytes, true);
    item.grad = host.fetch(b.device, const_cast<char*>(item.grad), bytes, false);
    for (char*& state : item.state) state = host.fetch(b.device, state, bytes, true);
  }
  launch_stages(kernel_optim_step, apart ? kCpuDevice : b.device, &plan.run);
  host.put_back();
}

void Step::commit() noexcept {
  for (Change& c : changes_)
    if (c.state >= 0) o_.params[c.param].state[c.state] = std::move(c.tensor);
  for (int64_t i = 0; i < o_.params.size(); i++) {
    ParamSlot& s = o_.params[i];
    if (!grads_[i]) continue;
    if (o_.cls->counts_steps) s.step = s.step < 0 ? 1 : s.step + 1;
    s.param->bump_version();
  }
}

void Step::run() {
  poll_host(true);    // which may still change the optimizer
  CommitGuard whole;  // and from here on nobody does
  take_grads();
  check();
  o_.items.clear();
  for (Batch& b : batches_) gather(&b);
  for (const Batch& b : batches_) compute(b);
  for (const Change& c : changes_)
    if (c.target) copy_elements(*c.target, *c.tensor);
  commit();
}

void optimizer_step(Optimizer& o) {
  MaskGuard quiet(bit(kKeyAutograd));
  Step(o).run();
}

}  // namespace TT_NS
