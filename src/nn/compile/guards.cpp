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

const Storage* storage_of(const Module::Slot& slot) {
  return slot.tensor ? slot.tensor->storage : nullptr;
}

namespace {

bool fits_but_sizes(const InputGuard& g, const Tensor& t) {
  return g.dtype == t.dtype && g.device == t.device && g.sizes.size() == t.ndim &&
         g.needs_grad == requires_grad(t) && g.has_history == bool(t.grad_fn) &&
         g.writable == t.storage->writable;
}
bool fits(const InputGuard& g, const Tensor& t) {
  return same(g.sizes, t.sizes()) && same(g.strides, t.strides()) && fits_but_sizes(g, t);
}

bool fits(const ModuleGuard& g) {
  const Module& m = *g.module;
  if (m.training != g.training || m.slots.size() != g.slots.size()) return false;
  for (int64_t i = 0; i < g.slots.size(); i++)
    if (storage_of(m.slots[i]) != g.slots[i]) return false;
  return true;
}

bool fits(const SmallVec<LeafGuard, 1>& leaves, TensorSpan inputs) {
  if (leaves.empty()) return true;
  const Lock lock(shared_lock);
  for (const LeafGuard& g : leaves) {
    if (g.replaced) continue;
    const Tensor* grad = borrow_grad(lock, g.of(inputs));
    if (g.grad != (grad ? grad->storage : nullptr)) return false;
  }
  return true;
}

// All guards but those of inputs.
bool fits_around(const CompiledRecord& r, TensorSpan inputs) {
  if (!(r.modes == modes_now())) return false;
  for (const ModuleGuard& g : r.modules)
    if (!fits(g)) return false;
  for (const OutsideGuard& g : r.tensors)
    if (g.tensor->storage != g.data || requires_grad(*g.tensor) != g.needs_grad) return false;
  return fits(r.leaves, inputs);
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

bool fits(const CompiledRecord& r, TensorSpan inputs) {
  if (r.inputs.size() != inputs.n) return false;
  for (int64_t i = 0; i < inputs.n; i++)
    if (!fits(r.inputs[i], *inputs[i])) return false;
  return fits_around(r, inputs);
}
bool fits_but_sizes(const CompiledRecord& r, TensorSpan inputs) {
  if (r.inputs.size() != inputs.n) return false;
  for (int64_t i = 0; i < inputs.n; i++)
    if (!fits_but_sizes(r.inputs[i], *inputs[i])) return false;
  return fits_around(r, inputs);
}

}  // namespace TT_NS
