// A call by the plan of a record.
#include "nn/compile/gradients.h"

#include "autograd/node.h"
#include "graph/plan/bind.h"
#include "ops/elementwise.h"
#include "ops/impl.h"

#include <string.h>

namespace TT_NS {

namespace {

// Inputs that the function lets require gradients. Only `prepare` can fail.
void prepare_leaves(const CompiledRecord& r, TensorSpan inputs) {
  for (int64_t i = 0; i < inputs.n; i++)
    if (r.inputs[i].becomes_leaf) prepare_requires_grad(const_cast<Tensor&>(*inputs[i]), true);
}
void make_leaves(const CompiledRecord& r, TensorSpan inputs) {
  for (int64_t i = 0; i < inputs.n; i++)
    if (r.inputs[i].becomes_leaf) set_requires_grad(const_cast<Tensor&>(*inputs[i]), true);
}

// The tensors of a call: inputs of the function, and the gradients that are inputs of the plan.
class Given {
 public:
  Given(const Replay& r, TensorSpan inputs, TensorList grads = {})
      : r_(r),
        inputs_(inputs),
        grads_(std::move(grads)),
        first_grad_(r.feeds.size() - grads_.size()) {}
  // The tensor in whose memory input k of the plan is.
  const Tensor& tensor(int64_t k) const {
    const InputRule& rule = r_.feeds[k];
    return rule.leaf >= 0 ? *grads_[k - first_grad_] : *inputs_[rule.input];
  }
  char* data(int64_t k) const { return tensor(k).data + r_.feeds[k].shift; }
  // Whether an input of the function shares memory with one that has another storage.
  bool overlaps(int64_t k) const;

 private:
  const Replay& r_;
  const TensorSpan inputs_;
  const TensorList grads_;
  const int64_t first_grad_;
};

TT_INLINE TensorList grads_before(const CompiledRecord& r, TensorSpan inputs) {
  TensorList grads;
  for (const InputRule& rule : r.feeds)
    if (rule.leaf >= 0) grads.push_back(grad_of(r.leaves[rule.leaf].of(inputs)));
  return grads;
}

bool Given::overlaps(int64_t k) const {
  const char *low, *high;
  byte_range(*r_.feeds[k].slot, &low, &high);
  const int64_t bytes = high - low;
  for (int64_t i = 0; i < r_.feeds.size(); i++) {
    if (i == k) continue;
    byte_range(tensor(i), &low, &high);
    if (low < data(k) + bytes && data(k) < high) return true;
  }
  return false;
}

// Lets the plan use its input where it is, and returns whether it may. Inputs that share memory
// with others are copied if the function writes any.
bool bind_input(const Replay& r, const Given& given, int64_t k) {
  SlotBinding& slot = r.plan->bound_inputs[k];
  if (TT_LIKELY(slot.placement < 0)) return false;
  char* const data = given.data(k);
  const bool is_input = r.feeds[k].leaf < 0;
  const bool binds =
      may_bind(*r.plan, slot, data) && !(is_input && r.writes_inputs && given.overlaps(k));
  bind_slot(slot, binds ? data : slot.own);
  return binds;
}

void feed(const InputRule& rule, const Tensor& t) {
  if (TT_LIKELY(rule.bytes != 0)) memcpy(rule.slot->data, t.data + rule.shift, size_t(rule.bytes));
  else if (rule.slot->numel) copy_elements(*rule.slot, t);
}

// Whether it was the gradient of an earlier replay, whose memory the next one has taken.
bool is_in_arena(const Plan& p, const Tensor& t) {
  return t.data >= p.arena && t.data < p.arena + p.arena_bytes;
}

// Gives the tensor what the plan has written into a copy of its memory.
void write_back(const InputRule& rule, Tensor& t) {
  if (rule.bytes != 0) memcpy(t.data + rule.shift, rule.slot->data, size_t(rule.bytes));
  else copy_elements(t, *rule.slot);
}

// Result i, whose memory is new or that of an earlier result.
TensorRef new_shared_out(const Graph& g, const OutRule& rule, const TensorList& outs, int64_t i) {
  const IrValue& v = g.values[rule.value];
  const IrStorage& s = g.storages[v.storage];
  const TensorRef memory = rule.first < i ? TensorRef::share(outs[rule.first].get())
                                          : new_tensor(Ints(&s.bytes, 1), Dtype::kU8, s.device);
  return new_alias(memory, v.sizes, v.strides, memory->storage->data + v.offset, v.dtype);
}

// Memory for a result of its own, which may have gaps between its elements.
TensorRef new_copied_out(const IrValue& v, Device device) {
  int64_t reach = v.numel() ? 1 : 0;
  for (int64_t d = 0; d < v.ndim() && reach; d++) reach += (v.sizes[d] - 1) * v.strides[d];
  if (TT_LIKELY(reach == v.numel())) return new_strided(v.sizes, v.strides, v.dtype, device);
  const int64_t bytes = reach * item_size(v.dtype);
  const TensorRef memory = new_tensor(Ints(&bytes, 1), Dtype::kU8, device);
  return new_alias(memory, v.sizes, v.strides, memory->storage->data, v.dtype);
}

TensorRef new_out(const Replay& r, const TensorList& outs, const Given& given) {
  const Graph& g = *r.plan->graph;
  const int64_t i = outs.size();
  const OutRule& rule = r.outs[i];
  const IrValue& v = g.values[rule.value];
  if (rule.kind == OutKind::kOutside) {
    const Tensor& outside = *g.storages[v.storage].tensor;
    return new_alias(outside, v.sizes, v.strides, outside.storage->data + v.offset, v.dtype);
  }
  if (rule.kind == OutKind::kOfInput) {
    const int64_t shift = v.offset - g.values[g.inputs[rule.input]].offset;
    return new_alias(given.tensor(rule.input), v.sizes, v.strides, given.data(rule.input) + shift,
                     v.dtype);
  }
  if (rule.kind == OutKind::kShared) return new_shared_out(g, rule, outs, i);
  return new_copied_out(v, g.storages[v.storage].device);
}

void bind_output(const Replay& r, int64_t out, bool may, const Tensor& to) {
  SlotBinding& slot = r.plan->bound_outputs[out];
  if (TT_LIKELY(slot.placement < 0)) return;
  const bool binds = may && may_bind(*r.plan, slot, to.data);
  bind_slot(slot, binds ? to.data : slot.own);
}
void bind_grads(const CompiledRecord& r, const TensorList& grads) {
  int64_t next = 0;
  for (const GradRule& rule : r.grads) {
    if (!rule.is_new()) continue;
    const Tensor* grad = grads[next++].get();
    if (grad) bind_output(r, rule.out, rule.result < 0, *grad);
  }
}
bool is_copied(const OutRule& rule) {
  return rule.kind == OutKind::kCopy || rule.kind == OutKind::kShared;
}
bool is_at(const SlotBinding& slot, const Tensor& t) {
  return slot.placement >= 0 && slot.now == t.data;
}

void copy_out(const Replay& r, int64_t i, Tensor& to) {
  if (!to.numel) return;
  if (TT_LIKELY(to.is_cpu() && to.dense())) {
    memcpy(to.data, r.plan->outputs[i], size_t(to.numel * to.item_size()));
    return;
  }
  copy_elements(to, *plan_slot(*r.plan, true, i));
}

// Memory for a gradient that is new in each call: that of a result, or its own.
TensorRef new_grad(const CompiledRecord& r, const GradRule& rule, const TensorList& outs) {
  if (!rule.grad) return {};
  const Graph& g = *r.plan->graph;
  const IrValue& v = g.values[g.outputs[rule.out]];
  if (rule.result < 0) return new_copied_out(v, g.storages[v.storage].device);
  const Tensor& result = *outs[rule.result];
  return new_alias(result, v.sizes, v.strides, result.storage->data + v.offset, v.dtype);
}
TensorList new_grads(const CompiledRecord& r, const TensorList& outs) {
  TensorList grads;
  for (const GradRule& rule : r.grads)
    if (rule.is_new()) grads.push_back(new_grad(r, rule, outs));
  return grads;
}

void set_leaves(const CompiledRecord& r, TensorSpan inputs, TensorList& new_ones) {
  int64_t next = 0;
  for (const GradRule& rule : r.grads) {
    if (rule.is_new()) {
      TensorRef grad = std::move(new_ones[next++]);
      if (grad && grad->numel && !is_at(r.plan->bound_outputs[rule.out], *grad))
        copy_elements(*grad, *rule.grad);
      set_grad(rule.of(inputs), std::move(grad));
      continue;
    }
    {
      const Lock lock(shared_lock);
      if (borrow_grad(lock, *rule.leaf) == rule.grad.get()) continue;
    }
    set_grad(*rule.leaf, rule.grad);
  }
}

// ---- the parts of a replay ----

TT_INLINE TensorList new_outs(const Replay& r, const Given& given) {
  TensorList outs;
  outs.reserve(r.outs.size());
  for (int64_t i = 0; i < r.outs.size(); i++) outs.push_back(new_out(r, outs, given));
  return outs;
}
TT_INLINE void take_inputs(const Replay& r, const Given& given) {
  for (int64_t k = 0; k < r.feeds.size(); k++)
    if (!bind_input(r, given, k)) feed(r.feeds[k], given.tensor(k));
}
TT_INLINE void bind_outs(const Replay& r, const TensorList& outs) {
  for (int64_t i = 0; i < r.outs.size(); i++)
    bind_output(r, i, r.outs[i].kind == OutKind::kCopy, *outs[i]);
}
TT_INLINE void write_inputs(const Replay& r, const Given& given) {
  for (int64_t k = 0; k < r.feeds.size(); k++) {
    if (TT_LIKELY(!r.feeds[k].written)) continue;
    auto& t = const_cast<Tensor&>(given.tensor(k));
    const SlotBinding& slot = r.plan->bound_inputs[k];
    const bool is_bound = slot.placement >= 0 && slot.now == given.data(k);
    if (!is_bound && !is_in_arena(*r.plan, t)) write_back(r.feeds[k], t);
    t.bump_version();
  }
}
TT_INLINE void copy_outs(const Replay& r, const TensorList& outs) {
  for (int64_t i = 0; i < r.outs.size(); i++)
    if (is_copied(r.outs[i]) && !is_at(r.plan->bound_outputs[i], *outs[i]))
      copy_out(r, i, *outs[i]);
}

TensorList run_record(const CompiledRecord& r, TensorSpan inputs) {
  const MaskGuard no_grad(bit(kKeyAutograd));
  const Given given(r, inputs, grads_before(r, inputs));
  prepare_leaves(r, inputs);
  TensorList outs = new_outs(r, given);
  TensorList grads = new_grads(r, outs);
  take_inputs(r, given);
  bind_outs(r, outs);
  bind_grads(r, grads);
  run_plan(*r.plan, -1);
  write_inputs(r, given);
  copy_outs(r, outs);
  make_leaves(r, inputs);
  if (!r.grads.empty()) set_leaves(r, inputs, grads);
  return outs;
}

}  // namespace

TensorList run_replay(const Replay& r, TensorSpan inputs) {
  const MaskGuard no_grad(bit(kKeyAutograd));
  const Given given(r, inputs);
  TensorList outs = new_outs(r, given);
  take_inputs(r, given);
  bind_outs(r, outs);
  run_plan(*r.plan, -1);
  copy_outs(r, outs);
  return outs;
}

TensorList replay(Compiled& f, const CompiledRecord& r, TensorSpan inputs, int64_t cap,
                  int64_t* n_outs) {
  if (r.n_results > cap) {
    *n_outs = r.n_results;
    fail_arg(TT_BUFFER_TOO_SMALL, "outs", "outs has room for {}, there are {}", cap, r.n_results);
  }
  atomic_fetch_add(&f.n_replays, 1, kRelaxed);
  if (TT_LIKELY(!r.gradients && r.spent.empty())) return run_record(r, inputs);
  History history(r, inputs);
  TensorList outs = run_record(r, inputs);
  history.link(outs);
  return outs;
}

}  // namespace TT_NS
