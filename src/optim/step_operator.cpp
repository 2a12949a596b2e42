// A step as the operator optim_step, in graphs and under modes: its argument StepCounter, which
// names the optimizer, and the step's run from tensors alone.
#include "optim/step.h"

#include "core/graph_hooks.h"
#include "ops/elementwise.h"
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"

namespace TT_NS {

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

// Whether the parameter and its states are where they were when the step was recorded.
static bool has_same_memory(const CountedParam& p, const ParamSlot& slot) {
  bool same = slot.param->data == p.data;
  for (int k = 0; k < kOptimStates; k++)
    if (p.states >> k & 1) same &= slot.state[k] && slot.state[k]->data == p.state[k];
  return same;
}

TT_COLD void check_current(const StepCounter& c) {
  const Optimizer& o = *c.optimizer;
  each_outdated(c, [&](int64_t g, int64_t k) {
    fail(TT_INVALID_ARG, "{} of group {} is {}, in the captured step it was {}: capture it again",
         o.cls->values[k].name, g, o.groups[g].value[k], c.values[g * kMaxValues + k]);
  });
  for (const CountedParam& p : c.params)
    if (!has_same_memory(p, o.params[p.param])) fail_other_memory(p.param);
}

bool is_current_step(const Object& object) {
  if (object.destroy_fn != destroy_counter) return true;
  const auto& c = static_cast<const StepCounter&>(object);
  bool current = c.optimizer->params.size() == c.n_params;
  current = current && !each_outdated(c, [](int64_t, int64_t) {});
  for (int64_t i = 0; current && i < c.params.size(); i++) {
    const CountedParam& p = c.params[i];
    current = has_same_memory(p, c.optimizer->params[p.param]);
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

}  // namespace TT_NS
