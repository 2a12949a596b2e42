#include "autograd/engine.h"

#include "autograd/hook.h"
#include "autograd/saved.h"
#include "gen/ops.h"

namespace TT_NS {

// A node or a leaf that has gradient pending. Owned: what waits cannot be freed.
struct Ready {
  int64_t key;  // nodes: 2 * topo; leaves: 2 * (smallest topo of their consumers) - 1
  uintptr_t target;
};

struct Engine {
  const BackwardArgs& args;
  SmallVec<Ready, 64> heap;      // binary max-heap by key
  SmallVec<Tensor*, 4> foreign;  // leaves whose `pending` another engine holds: ours are beside them
  TensorList foreign_grads;
  TensorList captured;    // tt_grad: one per input
  int64_t stop_topo = 0;  // no node below this is wanted

  explicit Engine(const BackwardArgs& a) : args(a) {}
  ~Engine() { clear(); }
  void clear() noexcept;
  void push(Ready r);
  Ready pop() noexcept;
  void deliver(const Edge& e, TensorRef grad);
  void run_node(Node& n);
  void run_leaf(Tensor& leaf);
  void start();
  void mark_inputs();
  void unmark_inputs() noexcept;
  bool capturing() const { return args.inputs.n > 0; }
  // Other engines may claim a leaf meanwhile, but none takes it from this one.
  bool owns(const AutogradMeta& m) const { return __atomic_load_n(&m.owner, __ATOMIC_RELAXED) == this; }
};

static bool grad_mode() { return !(ctx().exclude & bit(kKeyAutograd)); }

// ---- the heap ----

void Engine::push(Ready r) {
  heap.push_back(r);
  int64_t i = heap.size() - 1;
  for (; i > 0 && heap[(i - 1) / 2].key < heap[i].key; i = (i - 1) / 2) std::swap(heap[i], heap[(i - 1) / 2]);
}
Ready Engine::pop() noexcept {
  Ready top = heap[0];
  heap[0] = heap.back();
  heap.pop_back();
  for (int64_t i = 0;;) {
    int64_t c = 2 * i + 1;
    if (c >= heap.size()) break;
    if (c + 1 < heap.size() && heap[c + 1].key > heap[c].key) c++;
    if (heap[i].key >= heap[c].key) break;
    std::swap(heap[i], heap[c]);
    i = c;
  }
  return top;
}

static void disown(Node& n) noexcept {
  for (int64_t i = 0; i < n.n_outs; i++) n.outs()[i].pending.reset();
  n.in_heap = false, n.owner = nullptr;
}
static void disown(Tensor& leaf) noexcept {
  AutogradMeta* m = find_meta(leaf);
  m->pending.reset();
  m->in_heap = 0;
  __atomic_store_n(&m->owner, nullptr, __ATOMIC_RELEASE);
}

// After a failure: nothing that waited keeps a gradient or an owner.
void Engine::clear() noexcept {
  for (Ready& r : heap) {
    Edge e{r.target, 0};
    if (!e.is_leaf()) {
      disown(*e.node());
    } else if (owns(*find_meta(*e.leaf()))) {
      disown(*e.leaf());
    }
    release_edge(e);
  }
  heap.clear();
}

// ---- delivery ----

// The engine's part of every formula: the shape and dtype that the input had.
static TensorRef fit(TensorRef g, Ints sizes, Dtype dtype, Device device, const char* who) {
  if (!same(g->sizes(), sizes)) {
    if (!broadcastable_to(sizes, g->sizes()))
      fail(TT_AUTOGRAD, "{} returned a gradient of shape {} for an input of shape {}", who, g->sizes(), sizes);
    g = op::sum_to_size(*g, sizes);
  }
  if (g->dtype != dtype)
    g = is_complex(g->dtype) && !is_complex(dtype) ? op::to_dtype(*op::real(*g), dtype) : op::to_dtype(*g, dtype);
  if (!(g->device == device))
    fail(TT_AUTOGRAD, "{} returned a gradient on {} for an input on {}", who, fmt(g->device), fmt(device));
  return g;
}

static void accumulate(TensorRef& sum, TensorRef g) {
  if (!sum) {
    sum = std::move(g);
  } else if (!grad_mode() && sum->refs == 1 && sum->storage->refs == 1 && !sum->base && sum->storage->writable &&
             sum->dense()) {
    op::add_(*sum, *g);
  } else {
    sum = op::add(*sum, *g);
  }
}

void Engine::deliver(const Edge& e, TensorRef grad) {
  if (!e.is_leaf()) {
    Node& n = *e.node();
    NodeOut& o = n.outs()[e.nr];
    if (n.topo < stop_topo) return;
    if (n.owner && n.owner != this)
      fail(TT_AUTOGRAD, "two backward runs meet at {}: graphs may not be shared between them", n.type->name);
    grad = fit(std::move(grad), o.sizes(), o.dtype, o.device, n.type->name);
    if (!n.in_heap) {
      push({2 * n.topo, share_edge(e).target});
      n.in_heap = true, n.owner = this;
    }
    return accumulate(o.pending, std::move(grad));
  }
  Tensor& leaf = *e.leaf();
  AutogradMeta& m = autograd_meta(leaf);
  grad = fit(std::move(grad), leaf.sizes(), leaf.dtype, leaf.device, "backward");
  Engine* none = nullptr;
  bool mine = owns(m) || __atomic_compare_exchange_n(&m.owner, &none, this, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  int64_t key = 2 * __atomic_load_n(&m.min_topo, __ATOMIC_RELAXED) - 1;
  if (mine) {
    if (!m.in_heap) push({key, share_edge(e).target}), m.in_heap = 1;
    return accumulate(m.pending, std::move(grad));
  }
  for (int64_t i = 0; i < foreign.size(); i++)
    if (foreign[i] == &leaf) return accumulate(foreign_grads[i], std::move(grad));
  foreign.reserve(foreign.size() + 1), foreign_grads.reserve(foreign_grads.size() + 1);
  push({key, share_edge(e).target});
  foreign.push_back(&leaf), foreign_grads.push_back(std::move(grad));
}

// ---- running ----

static TensorRef zeros_for(const NodeOut& o) { return op::zeros(o.sizes(), o.dtype, o.device); }

void Engine::run_node(Node& n) {
  SmallVec<TensorRef, 4> grads, outs;
  grads.resize(n.n_outs), outs.resize(n.n_edges);
  for (int64_t i = 0; i < n.n_outs; i++) {
    NodeOut& o = n.outs()[i];
    grads[i] = std::move(o.pending);
    if (grads[i] && n.hooks) run_tensor_hooks(n.hooks, uint32_t(i), grads[i]);
    if (grads[i] && o.retain_for && args.accumulate) {
      AutogradMeta& m = autograd_meta(*o.retain_for);
      m.grad = m.grad ? op::add(*m.grad, *grads[i]) : op::clone(*grads[i]);
    }
  }
  n.in_heap = false, n.owner = nullptr;
  if (n.captured) {
    for (int64_t i = 0; i < args.inputs.n; i++) {
      const Tensor& t = *args.inputs[i];
      if (t.grad_fn == &n && grads[t.output_nr]) captured[i] = grads[t.output_nr];
    }
    if (n.topo <= stop_topo) return;
  }
  if (n.released) fail_graph_freed(n);
  for (int64_t i = 0; i < n.n_outs; i++)
    if (!grads[i] && n.outs()[i].defined && !n.type->takes_undefined && is_differentiable(n.outs()[i].dtype))
      grads[i] = zeros_for(n.outs()[i]);
  if (n.hooks) run_node_hooks(n.hooks, Hook::kNodePre, grads.data(), n.n_outs);
  n.type->apply(n, grads.data(), outs.data());
  if (TT_UNLIKELY(ctx().anomaly != nullptr)) ctx().anomaly(n, outs.data());
  grads.clear();
  if (n.hooks) run_node_hooks(n.hooks, Hook::kNodePost, outs.data(), n.n_edges);
  for (int64_t i = 0; i < n.n_edges; i++)
    if (outs[i] && n.edges()[i]) deliver(n.edges()[i], std::move(outs[i]));
  if (!args.retain_graph) {
    n.type->destroy_saved(n);
    n.released = true;
  }
}

// Steals the gradient if nobody else holds it, else copies or adds; creating a graph keeps the sum's own graph.
static void add_into_grad(AutogradMeta& m, TensorRef g, const Tensor& leaf) {
  if (grad_mode()) {
    m.grad = m.grad ? op::add(*m.grad, *g) : g;
  } else if (m.grad) {
    op::add_(*m.grad, *g);
  } else {
    bool sole =
        g->refs == 1 && g->storage->refs == 1 && g->storage->writable && !g->base && same(g->strides(), leaf.strides());
    m.grad = sole ? std::move(g) : op::clone(*g);
  }
}

void Engine::run_leaf(Tensor& leaf) {
  AutogradMeta& m = autograd_meta(leaf);
  TensorRef g;
  if (owns(m)) {
    g = std::move(m.pending);
    disown(leaf);
  } else {
    for (int64_t i = 0; i < foreign.size(); i++)
      if (foreign[i] == &leaf) {
        g = std::move(foreign_grads[i]);
        foreign.erase(i), foreign_grads.erase(i);
        break;
      }
  }
  if (!g) return;
  run_tensor_hooks(m.hooks, 0, g);
  bool wanted = !capturing();
  for (int64_t i = 0; i < args.inputs.n; i++) {
    if (args.inputs[i] != &leaf) continue;
    wanted = true;
    if (!args.accumulate) captured[i] = g;
  }
  if (!wanted || !args.accumulate) return;
  static constinit Mutex mutex;  // several graphs may end in one leaf
  {
    Lock lock(mutex);
    CommitGuard whole;
    add_into_grad(m, std::move(g), leaf);
  }
  run_accumulate_hooks(m.hooks, leaf);
}

// ---- start and end ----

void Engine::mark_inputs() {
  if (!capturing()) return;
  int64_t lowest = INT64_MAX;
  for (const Tensor* t : args.inputs) {
    if (!requires_grad(*t))
      fail_arg(TT_AUTOGRAD, "inputs", "an input of shape {} does not require a gradient", t->sizes());
    Edge e = gradient_edge(*t);
    int64_t topo = e.is_leaf() ? 0 : e.node()->topo;
    if (!e.is_leaf()) e.node()->captured = true;
    release_edge(e);
    if (topo < lowest) lowest = topo;
  }
  stop_topo = lowest;
}
void Engine::unmark_inputs() noexcept {
  for (const Tensor* t : args.inputs)
    if (t->grad_fn) static_cast<Node*>(t->grad_fn)->captured = false;
}

void Engine::start() {
  for (int64_t i = 0; i < args.outputs.n; i++) {
    const Tensor& t = *args.outputs[i];
    const Tensor* g = i < args.grads.n ? args.grads[i] : nullptr;
    if (!requires_grad(t))
      fail_arg(TT_AUTOGRAD, "outputs", "output {} of shape {} does not require a gradient: nothing was recorded", i,
               t.sizes());
    if (!g && t.numel != 1)
      fail_arg(TT_AUTOGRAD, "outputs", "output {} has shape {}: only outputs of one element may omit their gradient", i,
               t.sizes());
    if (g && !same(g->sizes(), t.sizes()))
      fail_arg(TT_SHAPE, "grads", "gradient {} is {}: must have its output's shape {}", i, g->sizes(), t.sizes());
    if (g && is_complex(g->dtype) != is_complex(t.dtype))
      fail_arg(TT_DTYPE, "grads", "gradient {} is {}, its output {}: both must be real or both complex", i,
               fmt(g->dtype), fmt(t.dtype));
  }
  for (int64_t i = 0; i < args.outputs.n; i++) {
    const Tensor& t = *args.outputs[i];
    const Tensor* g = i < args.grads.n ? args.grads[i] : nullptr;
    TensorRef seed = g ? TensorRef::share(g) : op::ones_like(t);
    Edge e = gradient_edge(t);
    try {
      deliver(e, std::move(seed));
    } catch (...) {
      release_edge(e);
      throw;
    }
    release_edge(e);
  }
}

struct Unmark {
  Engine& e;
  ~Unmark() { e.unmark_inputs(); }
};

TensorList run_backward(const BackwardArgs& a) {
  MaskGuard masks(0);
  if (a.create_graph) {
    ctx().exclude &= ~bit(kKeyAutograd);
  } else {
    ctx().exclude |= bit(kKeyAutograd);
  }
  Engine engine(a);
  engine.captured.resize(a.inputs.n);
  Unmark unmark{engine};
  engine.mark_inputs();
  engine.start();
  while (!engine.heap.empty()) {
    poll_host(false);
    Ready r = engine.pop();
    Edge e{r.target, 0};
    struct Release {
      Edge& e;
      ~Release() { release_edge(e); }
    } release{e};
    if (e.is_leaf()) {
      engine.run_leaf(*e.leaf());
    } else {
      struct Disown {
        Node& n;
        ~Disown() {
          if (n.in_heap) disown(n);
        }
      } guard{*e.node()};
      engine.run_node(*e.node());
    }
  }
  if (!a.accumulate && !a.allow_unused)
    for (int64_t i = 0; i < a.inputs.n; i++)
      if (!engine.captured[i])
        fail_arg(TT_AUTOGRAD, "inputs",
                 "input {} of shape {} was not used in the outputs: set allow_unused to get none", i,
                 a.inputs[i]->sizes());
  return std::move(engine.captured);
}

}  // namespace TT_NS
