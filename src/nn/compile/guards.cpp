// Whether a record holds for a call.
#include "nn/compile/record.h"

#include "autograd/node.h"
#include "modes/autocast.h"

namespace TT_NS {

ModeGuard modes_now() {
  const Ctx& c = ctx();
  ModeGuard g = {c.include & ~bit(kKeyProfile), c.exclude, c.default_float, {}};
  if (!c.autocast) return g;
  constexpr int32_t kTypes[] = {TT_CPU, TT_CUDA};
  for (int i = 0; i < 2; i++)
    if (autocast_enabled(c, kTypes[i])) g.autocast[i] = autocast_dtype(c, kTypes[i]);
  return g;
}

ModeScope::ModeScope(const ModeGuard& modes)
    : include_(ctx().include), exclude_(ctx().exclude), default_float_(ctx().default_float) {
  push_autocast(TT_CPU, modes.autocast[0] != Dtype::kNone, modes.autocast[0], false);
  push_autocast(TT_CUDA, modes.autocast[1] != Dtype::kNone, modes.autocast[1], false);
  ctx().include = modes.include | (include_ & bit(kKeyProfile));
  ctx().exclude = modes.exclude;
  ctx().default_float = modes.default_float;
}
ModeScope::~ModeScope() {
  pop_autocast();
  pop_autocast();
  ctx().include = include_;
  ctx().exclude = exclude_;
  ctx().default_float = default_float_;
}

uint64_t mark_of_hooks(const Lock& locked, const Tensor& leaf) {
  const AutogradMeta* m = find_meta(leaf);
  return m ? m->hooks.mark(locked) : 0;
}

bool is_alone(const Tensor& grad, RefCount refs) {
  return grad.refs == refs && grad.storage->refs == 1;
}

SlotGuard::SlotGuard(const Module::Slot& slot)
    : tensor(slot.tensor.get()), storage(slot.tensor ? slot.tensor->storage : nullptr) {}

Place::Place(const Tensor& t)
    : storage(t.storage), data(t.data), dtype(t.dtype), sizes(t.sizes()), strides(t.strides()) {}

bool Place::holds(const Tensor& t) const {
  return storage == t.storage && data == t.data && dtype == t.dtype && same(sizes, t.sizes()) &&
         same(strides, t.strides());
}

namespace {

bool has_hooks(const Tensor& t) {
  const AutogradMeta* m = find_meta(t);
  return m && !m->hooks.empty();
}
bool fits_hooks(const InputGuard& g, const Tensor& t) {
  if (!has_hooks(t)) return !g.hooks;
  const Lock lock(shared_lock);
  return g.hooks == mark_of_hooks(lock, t);
}

bool fits_but_sizes(const InputGuard& g, const Tensor& t) {
  return g.dtype == t.dtype && g.device == t.device && g.sizes.size() == t.ndim &&
         g.needs_grad == requires_grad(t) && g.has_history == bool(t.grad_fn) &&
         g.writable == t.storage->writable && fits_hooks(g, t);
}
bool fits(const InputGuard& g, const Tensor& t) {
  return same(g.sizes, t.sizes()) && same(g.strides, t.strides()) && fits_but_sizes(g, t);
}

bool fits_hooks(const ModuleGuard& g) {
  if (g.module->hooks.empty()) return !g.hooks;
  const Lock lock(shared_lock);
  return g.hooks == g.module->hooks.mark(lock);
}
bool fits(const ModuleGuard& g) {
  const Module& m = *g.module;
  if (m.training != g.training || m.slots.size() != g.slots.size() || !fits_hooks(g)) return false;
  for (int64_t i = 0; i < g.slots.size(); i++)
    if (!(SlotGuard(m.slots[i]) == g.slots[i])) return false;
  return true;
}

// Whether a gradient that was alone in its memory can be another one now.
bool fits_slot(const CompiledRecord& r, const LeafGuard& g, const Tensor* grad) {
  if (!grad || !r.plan) return grad;
  const Tensor& slot = *r.feeds[g.slot].slot;
  return grad->dtype == slot.dtype && grad->is_cpu() && same(grad->sizes(), slot.sizes()) &&
         same(grad->strides(), slot.strides()) && grad->storage->writable &&
         grad->storage->refs == 1 && !grad->grad_fn && !requires_grad(*grad);
}

bool fits(const CompiledRecord& r, const LeafGuard& g, const Lock& lock, TensorSpan inputs) {
  const Tensor& leaf = g.of(inputs);
  if (g.hooks != mark_of_hooks(lock, leaf)) return false;
  if (g.replaced) return true;
  const Tensor* grad = borrow_grad(lock, leaf);
  if (g.slot >= 0) return fits_slot(r, g, grad);
  return grad ? g.grad.holds(*grad) : !g.grad.storage;
}

// Whether a gradient that is an input of the plan is in memory that something else has, too.
bool is_shared(CompiledRecord& r, const Lock& lock, TensorSpan inputs, int64_t leaf) {
  const Tensor& grad = *borrow_grad(lock, r.leaves[leaf].of(inputs));
  if (is_alone(grad, 1)) return false;
  for (const Tensor* t : inputs)
    if (t->storage == grad.storage) return true;
  for (int64_t k = 0; k < leaf; k++) {
    const Tensor* other = borrow_grad(lock, r.leaves[k].of(inputs));
    if (other && other->storage == grad.storage) return true;
  }
  return r.outside.find(grad.storage) >= 0;
}

bool fits_leaves(CompiledRecord& r, TensorSpan inputs) {
  if (r.leaves.empty()) return true;
  const Lock lock(shared_lock);
  for (const LeafGuard& g : r.leaves)
    if (!fits(r, g, lock, inputs)) return false;
  for (int64_t i = 0; i < r.leaves.size(); i++)
    if (r.leaves[i].slot >= 0 && r.plan && is_shared(r, lock, inputs, i)) return false;
  return true;
}

// All guards but those of inputs.
bool fits_around(CompiledRecord& r, TensorSpan inputs) {
  if (!(r.modes == modes_now())) return false;
  for (const ModuleGuard& g : r.modules)
    if (!fits(g)) return false;
  for (const OutsideGuard& g : r.tensors)
    if (!g.place.holds(*g.tensor) || requires_grad(*g.tensor) != g.needs_grad) return false;
  return fits_leaves(r, inputs);
}

}  // namespace

// A gradient has a reference of the rule's and, if it is still there, one of the leaf's.
bool holds_gradient(const CompiledRecord& r) {
  if (r.grads.empty()) return false;
  const Lock lock(shared_lock);
  for (const GradRule& rule : r.grads) {
    if (!rule.grad || rule.is_new()) continue;
    const RefCount own = borrow_grad(lock, *rule.leaf) == rule.grad.get() ? 2 : 1;
    if (rule.grad->refs > own || rule.grad->storage->refs > 1) return true;
  }
  return false;
}

bool fits(CompiledRecord& r, TensorSpan inputs) {
  if (r.inputs.size() != inputs.n) return false;
  Sharings sharings(inputs);
  for (int64_t i = 0; i < inputs.n; i++)
    if (!fits(r.inputs[i], *inputs[i]) || !(r.inputs[i].sharing == sharings.of(i))) return false;
  return fits_around(r, inputs);
}
bool fits_but_sizes(CompiledRecord& r, TensorSpan inputs) {
  if (r.inputs.size() != inputs.n) return false;
  Sharings sharings(inputs);
  for (int64_t i = 0; i < inputs.n; i++) {
    const InputGuard& g = r.inputs[i];
    if (!fits_but_sizes(g, *inputs[i]) || !(g.sharing == sharings.of(i))) return false;
  }
  return fits_around(r, inputs);
}

}  // namespace TT_NS
