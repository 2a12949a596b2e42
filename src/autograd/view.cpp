// Views and in-place operators: the history of a view leads through its base.
// An in-place write to a view v of b gives b a node that inserts the gradient of v's new value into
// b's (CopySlices). v's own node is rebuilt as as_strided of b when it is next needed.
#include "autograd/node.h"
#include "autograd/formulas/formulas.h"
#include "base/pointer_map.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS {

// Position of a view in its base. If one is complex and the other has the real and imaginary parts
// of its numbers, sizes, strides and offset count parts.
struct ViewGeometry {
  Shape sizes, strides;
  int64_t offset;  // elements from the first of the base
  bool of_parts;   // the base is complex, and the view is not
  bool pairs;      // the view is complex, and the base is not
};
static ViewGeometry geometry_of(const Tensor& view, const Tensor& base) {
  const bool same_dtype = view.dtype == base.dtype;
  const bool pairs = !same_dtype && is_complex(view.dtype);
  // The offset counts the smaller items: a complex view may begin at an odd element of its base.
  const int64_t item = TT_NS::min(view.item_size(), base.item_size());
  ViewGeometry g{Shape(view.sizes()), Shape(view.strides()),
                 (int64_t(view.data) - int64_t(base.data)) / item, !same_dtype && !pairs, pairs};
  if (!pairs) return g;
  for (int64_t& stride : g.strides) stride *= 2;
  g.sizes.push_back(2);
  g.strides.push_back(1);
  return g;
}

// Complex numbers as pairs and pairs as complex numbers, if `wanted`.
static TensorRef as_parts(bool wanted, const Tensor& t) {
  return wanted ? dispatch(*atomic_load(&complex_views.as_real, kRelaxed), t)
                : TensorRef::share(&t);
}
static TensorRef as_numbers(bool wanted, const Tensor& t) {
  return wanted ? dispatch(*atomic_load(&complex_views.as_complex, kRelaxed), t)
                : TensorRef::share(&t);
}

// Returns the base through which the history of a view goes; NULL if t is not a view, or its base
// has another storage by now (set_data).
static Tensor* live_base(const Tensor& t) {
  Tensor* base = atomic_load(&t.base, kRelaxed);
  return base && base->storage == t.storage ? base : nullptr;
}

// Returns the base of a view whose storage was written since, so that its history must be rebuilt;
// else NULL. (A leaf that requires a gradient is not a view.)
static const Tensor* base_of_stale(const Tensor& t) {
  if (!atomic_load(&t.base, kRelaxed)) return nullptr;
  if (atomic_load(&t.view_version, kAcquire) == t.tracked_version()) return nullptr;
  return live_base(t);
}

// Rebuilds the view as as_strided of its base, recorded regardless of the ctx's masks. Several
// threads may do this at once while others share the view's node; the last one wins.
static void rebuild_view_node(Tensor& t, const Tensor& base) {
  const uint32_t version = t.tracked_version();
  const KeySet keys = bit(kKeyAutograd) | (base.keys & kBackendKeys);
  const auto& op = *atomic_load(&op_of_views, kRelaxed);
  const ViewGeometry g = geometry_of(t, base);
  TensorRef whole = TensorRef::share(&base);
  if (g.of_parts) whole = redispatch(*atomic_load(&complex_views.as_real, kRelaxed), keys, base);
  TensorRef fresh =
      redispatch(op, keys, whole, g.sizes, g.strides, Opt<int64_t>(whole->offset() + g.offset));
  if (g.pairs) fresh = redispatch(*atomic_load(&complex_views.as_complex, kRelaxed), keys, fresh);
  if (!fresh->grad_fn) return;  // base no longer requires a gradient
  NodeRef node = NodeRef::share(fresh->grad_fn);
  Lock lock(shared_lock);  // released before the old node is freed
  move_retained(lock, t, as_node(node), fresh->output_nr);
  GraphNode* const old = t.grad_fn;
  atomic_store(&t.grad_fn, node.leak(), kRelaxed);
  node = NodeRef::adopt(old);
  t.output_nr = fresh->output_nr;
  if (!(t.keys & bit(kKeyAutograd))) t.keys |= bit(kKeyAutograd);
  atomic_store(&t.view_version, version, kRelease);
}

static bool has_node(const Tensor& t) { return atomic_load(&t.grad_fn, kRelaxed) != nullptr; }

bool needs_grad_slow(const Tensor& t) {
  if (const Tensor* base = base_of_stale(t)) return needs_grad_slow(*base);
  return has_node(t) || (t.flags & kRequiresGrad);
}
bool requires_grad(const Tensor& t) { return (t.keys & bit(kKeyAutograd)) && needs_grad_slow(t); }

static Edge node_of_view(const Tensor& t) {
  Lock lock(shared_lock);
  return {reinterpret_cast<uintptr_t>(NodeRef::share(t.grad_fn).leak()), t.output_nr};
}

Edge gradient_edge(const Tensor& t) {
  if (const Tensor* base = base_of_stale(t))
    if (needs_grad_slow(*base)) rebuild_view_node(const_cast<Tensor&>(t), *base);
  if (has_node(t) && t.base) return node_of_view(t);
  if (t.grad_fn)
    return {reinterpret_cast<uintptr_t>(NodeRef::share(t.grad_fn).leak()), t.output_nr};
  if (!(t.flags & kRequiresGrad)) return {};
  autograd_meta(t);
  return {reinterpret_cast<uintptr_t>(TensorRef::share(&t).leak()) | 1, 0};
}

// ---- in place ----

struct CopySlicesSaved {
  NodeRef inner;  // the in-place operator's own node, from the old view to the new one
  ViewGeometry view;
  Shape base_strides;
};
static void copy_slices_apply(Node& n, TensorRef* grads, TensorRef* out) {
  check_not_released(n);
  auto& s = n.saved_as<CopySlicesSaved>();
  Node& inner = as_node(s.inner);
  const ViewGeometry& g = s.view;
  const TensorRef whole = as_parts(g.of_parts, *op::restride(*grads[0], s.base_strides));
  TensorRef part = op::as_strided(whole, g.sizes, g.strides, g.offset);
  if (g.pairs) part = op::clone(*part);  // numbers begin at even elements
  TensorRef part_grad = op::clone(*as_numbers(g.pairs, *part));
  inner.type->apply(inner, &part_grad, out);
  TensorRef self_grad = std::move(out[0]);
  if (!n.needs(0)) return;
  if (!self_grad) self_grad = op::zeros_like(*part_grad);
  const TensorRef put =
      op::as_strided_put(whole, *as_parts(g.pairs, *self_grad), g.sizes, g.strides, g.offset);
  out[0] = as_numbers(g.of_parts, *put);
}
static constinit const NodeType kCopySlicesType = {
    .name = "copy_slices",
    .apply = copy_slices_apply,
    .destroy_saved = destroy_saved<CopySlicesSaved>,
    .saved_bytes = sizeof(CopySlicesSaved),
    .takes_undefined = false,
};

// Returns whether the gradient of `from` reaches `leaf`, whose consumers have at least topo
// min_topo, or a leaf that holds it as its former base.
static bool leads_to(Node& from, const Tensor& leaf, int64_t min_topo) {
  SmallVec<Node*, 16> open;
  PointerMap seen;
  open.push_back(&from);
  while (!open.empty()) {
    Node& n = *open.back();
    open.pop_back();
    for (int64_t i = 0; i < n.n_edges; i++) {
      const Edge& e = n.edges()[i];
      if (!e) continue;
      if (e.is_leaf()) {
        const AutogradMeta* m = find_meta(*e.leaf());
        if (e.leaf() == &leaf || (m && m->former_base.get() == &leaf)) return true;
      } else if (e.node()->topo >= min_topo && seen.add(e.node())) {
        open.push_back(e.node());
      }
    }
  }
  return false;
}

// A leaf that stopped requiring a gradient may get a history, but none that leads to itself: graph
// and leaf would own each other. Such a history comes from operators or views recorded before. A
// tensor that a leaf holds as its former base may get none that leads to that leaf.
static void check_no_cycle(const Tensor& owner, Node& node, bool through_view) {
  const AutogradMeta* m = find_meta(owner);
  if (!m) return;
  if (atomic_load(&m->is_former_base, kRelaxed)) {
    if (!leads_to(node, owner, 0)) return;
    fail_arg(TT_AUTOGRAD, "self",
             "self is {}a leaf, or a tensor of which a leaf was a view, and its new values would "
             "depend on that leaf: detach the leaf from it before it requires a gradient",
             through_view ? "a view of " : "");
  }
  const int64_t min_topo = atomic_load(&m->min_topo, kRelaxed);
  if (min_topo == kNeverConsumed || !leads_to(node, owner, min_topo)) return;
  fail_arg(TT_AUTOGRAD, "self",
           "self is {}a leaf that has stopped requiring a gradient, and its new values would "
           "depend on that leaf: detach what was computed from it before",
           through_view ? "a view of " : "");
}

// Turns the node of an in-place operator on a view into a node of the base.
static NodeRef copy_slices_node(const Tensor& self, const Tensor& base, const NodeRef& node) {
  Node& inner = as_node(node);
  NodeRef slices = new_node(&kCopySlicesType, inner.n_edges, 1);
  Node& outer = as_node(slices);
  outer.set_edge(0, base);
  new (outer.saved()) CopySlicesSaved{node, geometry_of(self, base), Shape(base.strides())};
  outer.released = false;
  for (int64_t i = 1; i < inner.n_edges; i++) outer.edges()[i] = share_edge(inner.edges()[i]);
  if (outer.topo <= inner.topo) outer.topo = inner.topo + 1;
  describe_output(outer, 0, base);
  // A result that inner has saved leads to inner, where a second derivative arrives.
  inner.part_of_node = true;
  update_min_topo(inner);
  return slices;
}

void fail_untracked_view() {
  fail_arg(TT_AUTOGRAD, "self",
           "self is a view of a tensor that requires a gradient, made while gradients were not "
           "recorded: it must not be written in place while they are. Make the view and write it "
           "both with or both without recording");
}

NodeRef prepare_inplace(Tensor& self, const NodeRef& node) {
  if (self.flags & kOneOfViews)
    fail_arg(TT_AUTOGRAD, "self",
             "self is one of the views that a call returned (split, chunk, unbind): it must not be "
             "written in place while gradients are recorded");
  if (self.flags & kForeignView)
    fail_arg(TT_AUTOGRAD, "self",
             "self is a view that a custom function returned: it must not be written in place "
             "while gradients are recorded, since the function's backward knows nothing of it");
  const Tensor* base = live_base(self);
  const Tensor& owner = base ? *base : self;
  if ((owner.flags & kRequiresGrad) && !owner.grad_fn)
    fail_arg(TT_AUTOGRAD, "self",
             "self is {}a leaf that requires a gradient: it must not be written in place while "
             "gradients are recorded",
             base ? "a view of " : "");
  describe_output(as_node(node), 0, self);
  NodeRef prepared = base ? copy_slices_node(self, *base, node) : node;
  check_no_cycle(owner, as_node(node), base);
  return prepared;
}

void commit_inplace(Tensor& self, NodeRef&& prepared) noexcept {
  Tensor* base = live_base(self);
  if (!base) return link_output(prepared, self, 0);
  link_output(prepared, *base, 0);
  self.keys |= bit(kKeyAutograd);
  self.view_version = self.tracked_version() - 1;  // stale: rebuilt from the base when next needed
}

}  // namespace TT_NS
