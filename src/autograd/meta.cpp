// State that only differentiable tensors have: gradients, hooks, requires_grad.
#include "autograd/node.h"
#include "core/graph_hooks.h"

namespace TT_NS {

void RetainedGrad::destroy(RetainedGrad* r) noexcept {
  r->~RetainedGrad();
  mem_free(r, sizeof *r);
}

static void destroy_meta(TensorMeta* m) noexcept {
  auto* a = static_cast<AutogradMeta*>(m);
  TensorRef grad;  // it may own the graph that its node is part of
  if (a->retained) {
    Lock lock(shared_lock);
    grad = std::move(a->retained->grad);
    a->retained->wanted = false;
  }
  if (a->packed) a->packed->destroy_fn(a->packed);
  if (Geometry* g = a->first_geometry) {
    g->~Geometry();
    mem_free(g, sizeof *g);
  }
  a->~AutogradMeta();
  mem_free(a, sizeof *a);
}

AutogradMeta& autograd_meta(const Tensor& t) {
  if (AutogradMeta* m = find_meta(t)) return *m;
  auto* a = new (mem_alloc(sizeof(AutogradMeta))) AutogradMeta{};
  a->destroy_fn = destroy_meta;
  a->min_topo = kNeverConsumed;
  TensorMeta* none = nullptr;
  if (!atomic_compare_exchange(&const_cast<Tensor&>(t).meta, &none, a, kAcqRel, kAcquire)) {
    mem_free(a, sizeof *a);
    return *static_cast<AutogradMeta*>(none);
  }
  return *a;
}

// ---- gradients ----

static TensorRef& grad_place(AutogradMeta& m) { return m.retained ? m.retained->grad : m.grad; }

Tensor* borrow_grad(const Lock&, const Tensor& t) {
  AutogradMeta* m = find_meta(t);
  return m ? grad_place(*m).get() : nullptr;
}

TensorRef take_grad(const Lock&, const Tensor& t) {
  AutogradMeta* m = find_meta(t);
  return m ? std::move(grad_place(*m)) : TensorRef();
}

TensorRef grad_of(const Tensor& t) {
  note_grad(t, false);
  if (!find_meta(t)) return {};
  Lock lock(shared_lock);
  return TensorRef::share(borrow_grad(lock, t));
}

void set_grad(const Tensor& t, TensorRef grad) {
  note_grad(t, true);
  if (!grad && !find_meta(t)) return;
  AutogradMeta& m = autograd_meta(t);
  Lock lock(shared_lock);
  std::swap(grad_place(m), grad);
}

void set_grad_place(const Tensor& leaf, TensorRef place) {
  if (place && (!same_geometry(*place, leaf) || place->dtype != leaf.dtype ||
                !(place->device == leaf.device)))
    fail_arg(TT_INVALID_ARG, "place", "place is {} {}, the leaf {} {}: must be alike",
             fmt(place->dtype), place->sizes(), fmt(leaf.dtype), leaf.sizes());
  std::swap(autograd_meta(leaf).place, place);
}

void retain_grad(const Tensor& t) {
  const Edge e = gradient_edge(t);
  struct Release {
    Edge e;
    ~Release() { release_edge(e); }
  } release{e};
  if (!e) fail_arg(TT_AUTOGRAD, "self", "self does not require a gradient");
  if (e.is_leaf()) return;
  auto made =
      Ref<RetainedGrad>::adopt(new (mem_alloc(sizeof(RetainedGrad))) RetainedGrad{1, true, {}});
  AutogradMeta& m = autograd_meta(t);
  Lock lock(shared_lock);
  if (m.retained) return;
  std::swap(made->grad, m.grad);
  m.retained = made;
  atomic_store(&e.node()->outs()[e.nr].retained, made.leak(), kRelaxed);
}

void move_retained(const Lock&, const Tensor& t, Node& to, uint32_t nr) noexcept {
  const AutogradMeta* m = find_meta(t);
  if (!m || !t.grad_fn) return;
  RetainedGrad** from = &static_cast<Node*>(t.grad_fn)->outs()[t.output_nr].retained;
  if (!*from || *from != m->retained.get()) return;
  to.outs()[nr].retained = *from;
  atomic_store(from, nullptr, kRelaxed);
}

// ---- new data ----

static bool has_geometry(const Tensor& t, const Geometry& g) {
  return t.dtype == g.dtype && t.device == g.device && same(t.sizes(), g.sizes) &&
         same(t.strides(), g.strides);
}

void prepare_replace(const Tensor& leaf) {
  AutogradMeta* m = find_meta(leaf);
  if (!m || m->first_geometry) return;
  m->first_geometry = new (mem_alloc(sizeof(Geometry)))
      Geometry{Shape(leaf.sizes()), Shape(leaf.strides()), leaf.dtype, leaf.device};
}

void replace_data(Tensor& leaf, const Tensor& src) {
  const bool same =
      leaf.dtype == src.dtype && leaf.device == src.device && same_geometry(leaf, src);
  if (!same) prepare_replace(leaf);
  set_data(leaf, src);
  AutogradMeta* m = find_meta(leaf);
  if (same || !m) return;
  m->geometries = m->geometries % INT32_MAX + 1;
  m->geometry = has_geometry(leaf, *m->first_geometry) ? 0 : m->geometries;
}

// ---- requires_grad ----

void prepare_requires_grad(Tensor& t, bool on) {
  if (requires_grad(t)) {  // a view of a written base gets its node
    Edge e = gradient_edge(t);
    release_edge(e);
  }
  if (t.grad_fn && !on)
    fail(TT_AUTOGRAD,
         "only leaves can stop requiring a gradient; this is an output of {}: use detach",
         static_cast<Node*>(t.grad_fn)->type->name);
  if (t.grad_fn || !on) return;
  if (!is_differentiable(t.dtype))
    fail(TT_DTYPE, "self is {}: only floating and complex tensors can require gradients",
         fmt(t.dtype));
  autograd_meta(t);
  if (t.base) autograd_meta(*t.base);
}

void set_requires_grad(Tensor& t, bool on) {
  prepare_requires_grad(t, on);
  if (t.grad_fn) return;
  if (on) {
    AutogradMeta& m = autograd_meta(t);
    TensorRef base = leave_base(t);
    if (base && atomic_load(&t.refs, kRelaxed) > 1) {
      atomic_store(&autograd_meta(*base).is_former_base, true, kRelaxed);
      m.former_base = std::move(base);
    }
  }
  t.flags = uint16_t(on ? t.flags | kRequiresGrad : t.flags & ~kRequiresGrad);
  if (on) {
    t.keys |= bit(kKeyAutograd);
  } else if (!t.base) {
    t.keys &= ~bit(kKeyAutograd);
  }
}

}  // namespace TT_NS
