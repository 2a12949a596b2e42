// A call by the plan of a record.
#include "nn/compile/record.h"

#include "autograd/node.h"
#include "graph/plan/bind.h"
#include "ops/elementwise.h"
#include "ops/impl.h"

#include <string.h>

namespace TT_NS {

namespace {

// Whether an input shares memory with another one.
bool overlaps_others(TensorSpan inputs, int64_t i) {
  const char *low, *high, *from, *to;
  byte_range(*inputs[i], &low, &high);
  for (int64_t k = 0; k < inputs.n; k++) {
    if (k == i) continue;
    byte_range(*inputs[k], &from, &to);
    if (from < high && low < to) return true;
  }
  return false;
}

// Lets the plan use the input where it is, and returns whether it may. Inputs that share memory
// with others are copied if the function writes any.
bool bind_input(const CompiledRecord& r, TensorSpan inputs, int64_t i) {
  SlotBinding& slot = r.plan->bound_inputs[i];
  if (TT_LIKELY(slot.placement < 0)) return false;
  char* const data = inputs[i]->data;
  const bool binds =
      may_bind(*r.plan, slot, data) && !(r.writes_inputs && overlaps_others(inputs, i));
  bind_slot(slot, binds ? data : slot.own);
  return binds;
}

void feed(const InputRule& rule, const Tensor& t) {
  if (TT_LIKELY(rule.bytes != 0)) memcpy(rule.slot->data, t.data, size_t(rule.bytes));
  else if (t.numel) copy_elements(*rule.slot, t);
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

TensorRef new_out(const CompiledRecord& r, const TensorList& outs, TensorSpan inputs) {
  const Graph& g = *r.plan->graph;
  const int64_t i = outs.size();
  const OutRule& rule = r.outs[i];
  const IrValue& v = g.values[rule.value];
  if (rule.kind == OutKind::kOutside) {
    const Tensor& outside = *g.storages[v.storage].tensor;
    return new_alias(outside, v.sizes, v.strides, outside.storage->data + v.offset, v.dtype);
  }
  if (rule.kind == OutKind::kOfInput) {
    const Tensor& in = *inputs[rule.input];
    const int64_t shift = v.offset - g.values[g.inputs[rule.input]].offset;
    return new_alias(in, v.sizes, v.strides, in.data + shift, v.dtype);
  }
  if (rule.kind == OutKind::kShared) return new_shared_out(g, rule, outs, i);
  return new_copied_out(v, g.storages[v.storage].device);
}

void bind_output(const CompiledRecord& r, int64_t i, const Tensor& to) {
  SlotBinding& slot = r.plan->bound_outputs[i];
  if (TT_LIKELY(slot.placement < 0)) return;
  const bool binds = r.outs[i].kind == OutKind::kCopy && may_bind(*r.plan, slot, to.data);
  bind_slot(slot, binds ? to.data : slot.own);
}
bool is_copied(const OutRule& rule) {
  return rule.kind == OutKind::kCopy || rule.kind == OutKind::kShared;
}
bool is_at(const SlotBinding& slot, const Tensor& t) {
  return slot.placement >= 0 && slot.now == t.data;
}

void copy_out(const CompiledRecord& r, int64_t i, Tensor& to) {
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
      if (grad && grad->numel) copy_elements(*grad, *rule.grad);
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

}  // namespace

TensorList replay(Compiled& f, const CompiledRecord& r, TensorSpan inputs, int64_t cap,
                  int64_t* n_outs) {
  const int64_t n = r.outs.size();
  if (n > cap) {
    *n_outs = n;
    fail_arg(TT_BUFFER_TOO_SMALL, "outs", "outs has room for {}, there are {}", cap, n);
  }
  const MaskGuard no_grad(bit(kKeyAutograd));
  atomic_fetch_add(&f.n_replays, 1, kRelaxed);
  TensorList outs;
  outs.reserve(n);
  for (int64_t i = 0; i < n; i++) outs.push_back(new_out(r, outs, inputs));
  TensorList grads = new_grads(r, outs);
  for (int64_t i = 0; i < inputs.n; i++)
    if (!bind_input(r, inputs, i)) feed(r.feeds[i], *inputs[i]);
  for (int64_t i = 0; i < n; i++) bind_output(r, i, *outs[i]);
  run_plan(*r.plan, -1);
  for (int64_t i = 0; i < inputs.n; i++) {
    if (TT_LIKELY(!r.feeds[i].written)) continue;
    auto& input = const_cast<Tensor&>(*inputs[i]);
    if (!is_at(r.plan->bound_inputs[i], input)) copy_elements(input, *r.feeds[i].slot);
    input.bump_version();
  }
  for (int64_t i = 0; i < n; i++)
    if (is_copied(r.outs[i]) && !is_at(r.plan->bound_outputs[i], *outs[i]))
      copy_out(r, i, *outs[i]);
  if (!r.grads.empty()) set_leaves(r, inputs, grads);
  return outs;
}

}  // namespace TT_NS
