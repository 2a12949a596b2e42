// Views and in-place operators: the history of a view goes through its base.
// In place on a view v of b: b gets a node that puts v's new gradient into b's (CopySlices), and v's own node is
// rebuilt as as_strided of b when it is next asked for.
#include "autograd/node.h"
#include "autograd/formulas.h"
#include "gen/ops.h"
#include "ops/front.h"

namespace TT_NS {

struct ViewGeometry {
  Shape sizes, strides;
  int64_t offset;  // elements from the base's first
};
static ViewGeometry geometry_of(const Tensor& view) {
  return {Shape(view.sizes()), Shape(view.strides()),
          (int64_t(view.data) - int64_t(view.base->data)) / view.item_size()};
}

// The base of a view whose storage was written since: its history leads through that. Else NULL. (A leaf that requires
// a gradient is no view.)
static const Tensor* base_of_stale(const Tensor& t) {
  const Tensor* base = __atomic_load_n(&t.base, __ATOMIC_RELAXED);
  return base && __atomic_load_n(&t.view_version, __ATOMIC_ACQUIRE) != t.version() ? base : nullptr;
}

// The view as as_strided of its base, recorded whatever the ctx's masks. Threads that share the view may all do this,
// while others share its node: the last one's stays.
static void rebuild_view_node(Tensor& t, const Tensor& base) {
  const uint32_t version = t.version();
  const uint64_t keys = bit(kKeyAutograd) | (base.keys & kBackendKeys);
  const auto& op = *__atomic_load_n(&op_of_views, __ATOMIC_RELAXED);
  const TensorRef fresh = redispatch(op, keys, base, t.sizes(), t.strides(), Opt<int64_t>(t.offset()));
  if (!fresh->grad_fn) return;  // base has stopped requiring a gradient
  NodeRef node = NodeRef::share(fresh->grad_fn);
  Lock lock(shared_lock);  // gone before the old node goes
  move_retained(lock, t, as_node(node), fresh->output_nr);
  GraphNode* const old = t.grad_fn;
  __atomic_store_n(&t.grad_fn, node.leak(), __ATOMIC_RELAXED);
  node = NodeRef::adopt(old);
  t.output_nr = fresh->output_nr;
  if (!(t.keys & bit(kKeyAutograd))) t.keys |= bit(kKeyAutograd);
  __atomic_store_n(&t.view_version, version, __ATOMIC_RELEASE);
}

static bool has_node(const Tensor& t) { return __atomic_load_n(&t.grad_fn, __ATOMIC_RELAXED) != nullptr; }

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
  if (t.grad_fn) return {reinterpret_cast<uintptr_t>(NodeRef::share(t.grad_fn).leak()), t.output_nr};
  if (!(t.flags & kRequiresGrad)) return {};
  autograd_meta(t);
  return {reinterpret_cast<uintptr_t>(TensorRef::share(&t).leak()) | 1, 0};
}

// ---- in place ----

struct CopySlicesSaved {
  NodeRef inner;  // the in-place operator's own node, for the view
  ViewGeometry view;
  Shape base_strides;
};
static void copy_slices_apply(Node& n, TensorRef* grads, TensorRef* out) {
  check_not_released(n);
  auto& s = n.saved_as<CopySlicesSaved>();
  Node& inner = as_node(s.inner);
  TensorRef whole = op::restride(*grads[0], s.base_strides);
  TensorRef piece = op::clone(*op::as_strided(whole, s.view.sizes, s.view.strides, s.view.offset));
  inner.type->apply(inner, &piece, out);
  TensorRef self_piece = std::move(out[0]);
  if (!n.needs(0)) return;
  if (!self_piece) self_piece = op::zeros_like(*piece);
  out[0] = op::as_strided_scatter(whole, *self_piece, s.view.sizes, s.view.strides, s.view.offset);
}
static constinit const NodeType kCopySlicesType = {"copy_slices", copy_slices_apply, destroy_saved<CopySlicesSaved>,
                                                   sizeof(CopySlicesSaved), false};

NodeRef prepare_inplace(Tensor& self, const NodeRef& node) {
  const Tensor& owner = self.base ? *self.base : self;
  if ((owner.flags & kRequiresGrad) && !owner.grad_fn)
    fail_arg(TT_AUTOGRAD, "self",
             "self is {}a leaf that requires a gradient: it must not be written in place while gradients are recorded",
             self.base ? "a view of " : "");
  if (!self.base) {
    NodeOut probe{};
    if (self.ndim > kInlineDims) {  // so that commit need not allocate
      probe.more = static_cast<int64_t*>(mem_alloc(size_t(self.ndim) * 8));
      as_node(node).outs()[0].more = probe.more, as_node(node).outs()[0].ndim = self.ndim;
    }
    return node;
  }
  Node& inner = as_node(node);
  NodeRef slices = new_node(&kCopySlicesType, inner.n_edges, 1);
  Node& outer = as_node(slices);
  outer.set_edge(0, *self.base);
  new (outer.saved()) CopySlicesSaved{node, geometry_of(self), Shape(self.base->strides())};
  outer.released = false;
  for (int64_t i = 1; i < inner.n_edges; i++) outer.edges()[i] = share_edge(inner.edges()[i]);
  if (outer.topo < inner.topo) outer.topo = inner.topo;
  const Tensor& base = *self.base;
  if (base.ndim > kInlineDims) {
    outer.outs()[0].more = static_cast<int64_t*>(mem_alloc(size_t(base.ndim) * 8));
    outer.outs()[0].ndim = base.ndim;
  }
  return slices;
}

// set_history with the sizes block allocated by prepare_inplace.
static void relink(Tensor& t, NodeRef&& node) noexcept {
  Node& n = as_node(node);
  NodeOut& o = n.outs()[0];
  o.dtype = t.dtype, o.device = t.device, o.ndim = t.ndim, o.defined = true;
  __builtin_memcpy(t.ndim <= kInlineDims ? o.inline_sizes : o.more, t.sizes_ptr(), size_t(t.ndim) * 8);
  if (t.grad_fn) {  // hooks stay with the node they were put on
    {
      Lock lock(shared_lock);
      move_retained(lock, t, n, 0);
    }
    NodeRef::adopt(t.grad_fn).reset();
  }
  t.keys |= bit(kKeyAutograd), t.output_nr = 0;
  for (int64_t i = 0; i < n.n_edges; i++) {
    Edge& e = n.edges()[i];
    if (!e || !e.is_leaf()) continue;
    AutogradMeta* m = find_meta(*e.leaf());
    for (int64_t seen = __atomic_load_n(&m->min_topo, __ATOMIC_RELAXED);
         seen > n.topo &&
         !__atomic_compare_exchange_n(&m->min_topo, &seen, n.topo, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);) {}
  }
  t.grad_fn = node.leak();
}

void commit_inplace(Tensor& self, NodeRef&& prepared) noexcept {
  if (!self.base) return relink(self, std::move(prepared));
  relink(*self.base, std::move(prepared));
  self.keys |= bit(kKeyAutograd);
  self.view_version = self.version() - 1;  // stale: rebuilt from the base when next asked for
}

}  // namespace TT_NS
