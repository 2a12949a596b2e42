#include "autograd/node.h"

#include "autograd/node_reading.h"
#include "autograd/saved.h"
#include "autograd/saved_hooks.h"
#include "base/os.h"

#include <string.h>

namespace TT_NS {

// ---- nodes ----

static void free_node(Node* n) noexcept {
  if (!n->released) n->type->destroy_saved(*n);
  for (int64_t i = 0; i < n->n_edges; i++) release_edge(n->edges()[i]);
  for (int64_t i = 0; i < n->n_outs; i++) {
    NodeOut& o = n->outs()[i];
    o.pending.reset();
    if (o.retained) Ref<RetainedGrad>::adopt(o.retained).reset();
    if (o.ndim > kInlineDims) mem_free(o.heap_sizes, size_t(o.ndim) * 8);
  }
  n->hooks.clear();
  n->tag = 0;
  const NodeType* type = n->type;
  const size_t bytes = n->bytes();
  count_live(n, bytes, kLiveNodes, -1);
  mem_retire(n, bytes);
  if (type->owned) reinterpret_cast<const OwnedNodeType*>(type)->release(type);
}

// Freeing a node frees the nodes below it. The outermost call does so in a loop, whatever the depth
// of the graph.
static void destroy_node(GraphNode* g) noexcept {
  auto* n = static_cast<Node*>(g);
  n->next_free = static_cast<Node*>(tls.free_list);
  tls.free_list = n;
  if (tls.freeing) return;
  tls.freeing = 1;
  while (auto* top = static_cast<Node*>(tls.free_list)) {
    tls.free_list = top->next_free;
    free_node(top);
  }
  tls.freeing = 0;
}

NodeRef new_node(const NodeType* type, int64_t n_edges, int64_t n_outs) {
  if (n_edges > UINT16_MAX || n_outs > UINT16_MAX)
    fail(TT_INVALID_ARG, "{} inputs and {} outputs: at most {} can be recorded", n_edges, n_outs,
         UINT16_MAX);
  size_t bytes = sizeof(Node) + size_t(n_outs) * sizeof(NodeOut) + size_t(n_edges) * sizeof(Edge) +
                 type->saved_bytes;
  auto* n = static_cast<Node*>(mem_alloc(bytes));
  memset(static_cast<void*>(n), 0, bytes);
  n->tag = kTagNode;
  n->refs = 1;
  n->destroy_fn = destroy_node;
  n->type = type;
  n->n_edges = uint16_t(n_edges);
  n->n_outs = uint16_t(n_outs);
  n->topo = ++ctx().newest_topo;
  count_live(n, bytes, kLiveNodes, 1);
  n->released = true;  // until the caller has constructed the saved area
  return NodeRef::adopt(n);
}

// ---- claims ----

static uintptr_t mark_of_thread() { return reinterpret_cast<uintptr_t>(&tls) | 1; }

static uintptr_t claim_after_readers(Node& n) noexcept {
  for (;;) {
    const uintptr_t claim = atomic_load(&n.claim, kRelaxed);
    if (TT_LIKELY(claim != kReading)) return claim;
    os_yield();
  }
}

void claim_node(Node& n, const Engine* by) {
  const uintptr_t mine = by ? reinterpret_cast<uintptr_t>(by) : mark_of_thread();
  uintptr_t seen = claim_after_readers(n);
  if (seen == mine) return;
  while (seen == 0 || seen == mark_of_thread()) {
    if (atomic_compare_exchange(&n.claim, &seen, mine, kAcquire, kRelaxed)) return;
    seen = claim_after_readers(n);
  }
  fail(TT_AUTOGRAD, "two backward runs meet at {}: graphs may not be shared between them",
       n.type->name);
}
void give_up_claim(Node& n) noexcept {
  atomic_store(&n.claim, n.running ? mark_of_thread() : 0, kRelease);
}

NodeReading::NodeReading(Node& n) noexcept : n_(n) {
  uintptr_t seen = claim_after_readers(n);
  while (seen == 0) {
    marked_ = atomic_compare_exchange(&n.claim, &seen, kReading, kAcquire, kRelaxed);
    if (marked_) break;
    seen = claim_after_readers(n);
  }
  allowed_ = marked_ || seen == mark_of_thread() || is_running_here(seen);
}
NodeReading::~NodeReading() {
  if (marked_) atomic_store(&n_.claim, 0, kRelease);
}

NodeRun::NodeRun(Node& n) noexcept : n_(n) {
  n.running++;
  atomic_store(&n.claim, mark_of_thread(), kRelaxed);
}
void end_run(Node& n) noexcept {
  // Still running: destructors may call the application, which may re-enter.
  if (n.running == 1 && n.doomed) {
    n.doomed = false;
    n.type->destroy_saved(n);
  }
  n.running--;
}
NodeRun::~NodeRun() {
  end_run(n_);
  give_up_claim(n_);
}

void release_edge(Edge& e) noexcept {
  if (!e.target) return;
  if (e.is_leaf()) {
    Ref<Tensor>::adopt(e.leaf()).reset();
  } else {
    NodeRef::adopt(e.node()).reset();
  }
  e.target = 0;
}
Edge share_edge(const Edge& e) {
  if (e.target) ref_inc(e.is_leaf() ? &e.leaf()->refs : &e.node()->refs);
  return e;
}

void Node::set_edge(int64_t i, const Tensor& t) {
  Edge e = gradient_edge(t);
  if (!e) return;
  edges()[i] = e;
  int64_t below = e.is_leaf() ? 0 : e.node()->topo;
  if (below < topo) return;
  topo = below + 1;
  if (topo > ctx().newest_topo) ctx().newest_topo = topo;
}

static void describe_output(Node& n, uint32_t nr, Dtype dtype, Device device, Ints sizes) {
  NodeOut& o = n.outs()[nr];
  if (sizes.n > kInlineDims) o.heap_sizes = static_cast<int64_t*>(mem_alloc(size_t(sizes.n) * 8));
  o.dtype = dtype;
  o.device = device;
  o.ndim = uint8_t(sizes.n);
  o.defined = true;
  memcpy(sizes.n <= kInlineDims ? o.inline_sizes : o.heap_sizes, sizes.ptr, size_t(sizes.n) * 8);
}
void describe_output(Node& n, uint32_t nr, const Tensor& t) {
  describe_output(n, nr, t.dtype, t.device, t.sizes());
}
void describe_output(Node& n, uint32_t nr, const NodeOut& o) {
  describe_output(n, nr, o.dtype, o.device, o.sizes());
}

Edge edge_to(const NodeRef& node, uint32_t nr) {
  return {reinterpret_cast<uintptr_t>(static_cast<Node*>(NodeRef(node).leak())), nr};
}

void update_min_topo(Node& n) {
  for (int64_t i = 0; i < n.n_edges; i++) {
    Edge& e = n.edges()[i];
    if (!e || !e.is_leaf()) continue;
    int64_t* min = &find_meta(*e.leaf())->min_topo;
    for (int64_t seen = atomic_load(min, kRelaxed);
         seen > n.topo && !atomic_compare_exchange_weak(min, &seen, n.topo, kRelaxed, kRelaxed);) {}
  }
}

static TT_INLINE void link(NodeRef&& node, Tensor& t, uint32_t nr) noexcept {
  if (!is_differentiable(t.dtype)) return;
  Node& n = as_node(node);
  NodeRef old = NodeRef::adopt(t.grad_fn);
  if (old) {
    Lock lock(shared_lock);
    move_retained(lock, t, n, nr);
  }
  t.grad_fn = node.leak();
  t.output_nr = nr;
  t.keys |= bit(kKeyAutograd);
  t.flags = uint16_t(t.flags & ~kUntrackedView);
  update_min_topo(n);
}
void link_output(const NodeRef& node, Tensor& t, uint32_t nr) noexcept {
  link(NodeRef(node), t, nr);
}

void set_history(NodeRef&& node, const Tensor& out, uint32_t nr) {
  describe_output(as_node(node), nr, out);
  link(std::move(node), const_cast<Tensor&>(out), nr);
}
void set_history(const NodeRef& node, const Tensor& out, uint32_t nr) {
  set_history(NodeRef(node), out, nr);
}

// ---- saved tensors ----

void fail_graph_freed(Node& n) {
  fail(TT_AUTOGRAD,
       "the graph of {} has been freed: a second backward through it needs retain_graph at the "
       "first",
       n.type->name);
}

SavedHookFunctions saved_hook_functions = {};

bool Saved::packed_from(const Tensor& t) const { return saved_hook_functions.is_from(*t_, t); }

void Saved::save_leaf(const Tensor& t) {
  if (TT_UNLIKELY(ctx().saved_hooks != nullptr)) {
    t_ = saved_hook_functions.pack(t, gradient_edge(t));
    return;
  }
  t_ = TensorRef::share(&t);
  version_ = t.tracked_version();
  output_nr_ = ~number_of_geometry(t);
}

static TT_COLD TensorRef pack(const Tensor& t) {
  const bool tracked = t.keys & bit(kKeyAutograd);
  return saved_hook_functions.pack(t, tracked ? gradient_edge(t) : Edge());
}

TensorRef Saved::snapshot(const Tensor& t) {
  if (TT_UNLIKELY(ctx().saved_hooks != nullptr)) return pack(t);
  TensorRef copy = new_alias(t);
  if (!(t.keys & bit(kKeyAutograd))) return copy;
  Edge e = gradient_edge(t);
  if (!e) return copy;
  if (e.is_leaf()) {  // a leaf refuses writes
    release_edge(e);
    return TensorRef::share(&t);
  }
  copy->grad_fn = e.node();
  copy->output_nr = e.nr;
  copy->keys |= bit(kKeyAutograd);
  return copy;
}

void Saved::save_output(const Tensor& out, uint32_t nr) {
  if (TT_LIKELY(!ctx().saved_hooks)) {
    t_ = new_alias(out);
  } else if (!packed() || !packed_from(out) || output_nr_ >= 0) {
    t_ = saved_hook_functions.pack(out, Edge());
  }
  version_ = out.tracked_version();
  output_nr_ = int32_t(nr);
}

void Saved::check_unchanged(const char* name) const {
  if (packed()) return;  // hooks hold the values
  if (TT_UNLIKELY(t_->tracked_version() != version_))
    fail(TT_AUTOGRAD,
         "{} saved a tensor of shape {} that has been written in place since: it has version {}, "
         "saved was version {}",
         name, t_->sizes(), t_->tracked_version(), version_);
  if (TT_UNLIKELY(output_nr_ < 0 && number_of_geometry(*t_) != ~output_nr_))
    fail(TT_AUTOGRAD,
         "{} saved a leaf that has been given data of another shape, dtype or device since: it "
         "is now {} of shape {}",
         name, fmt(t_->dtype), t_->sizes());
}

TensorRef Saved::get_unlinked(const char* name) const {
  if (!t_) return {};
  if (packed()) return saved_hook_functions.unpack(*t_, Edge());
  check_unchanged(name);
  return t_;
}

TensorRef Saved::get(Node& n) const {
  // Atomic: a copy is read while a backward of another thread may free the node's own.
  if (TT_UNLIKELY(atomic_load(&n.released, kRelaxed))) fail_graph_freed(n);
  if (TT_UNLIKELY(packed())) {
    const Edge own{output_nr_ < 0 ? 0 : reinterpret_cast<uintptr_t>(&n), uint32_t(output_nr_)};
    return saved_hook_functions.unpack(*t_, own);
  }
  check_unchanged(n.type->name);
  if (output_nr_ < 0) return t_;
  if (ctx().exclude & bit(kKeyAutograd)) return t_;
  TensorRef linked = new_alias(*t_);
  linked->grad_fn = NodeRef::share(&n).leak();
  linked->output_nr = uint32_t(output_nr_);
  linked->keys |= bit(kKeyAutograd);
  return linked;
}

}  // namespace TT_NS
