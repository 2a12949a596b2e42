#include "autograd/engine.h"

#include "autograd/formulas/formulas.h"
#include "autograd/hook.h"
#include "autograd/node_reading.h"
#include "autograd/saved.h"
#include "base/pointer_map.h"
#include "core/graph_hooks.h"
#include "ops/gen/ops.h"

namespace TT_NS {

// A node or leaf with pending gradients. Owned: it cannot be freed while it waits.
struct Ready {
  int64_t key;  // nodes: 2 * topo; leaves: 2 * (smallest topo of their consumers) - 1
  uintptr_t target;
};

// A node through which this backward passes while gradients of an outer one wait at it.
struct WaitingNode {
  Node* node;
  Engine* from;
  int64_t at;  // where its pending gradients begin in `lent`
};

// A call that waits for the end of a backward.
struct EndTask {
  void (*fn)(void* user);
  void (*drop)(void* user) noexcept;
  void* user;
};

struct Engine {
  const BackwardArgs& args;
  SmallVec<Ready, 64> heap;      // binary max-heap by key
  SmallVec<Tensor*, 4> foreign;  // leaves whose `pending` belongs to another engine
  TensorList foreign_grads;      // our gradients of them
  SmallVec<Edge, 4> inputs;      // args.inputs: the edges where their gradients arrive; owned
  TensorList captured;           // tt_grad: one per input
  PointerMap on_path;            // inputs that are leaves, and nodes from which an input is reached
  SmallVec<EndTask, 1> at_end;
  SmallVec<WaitingNode, 1> borrowed;
  TensorList lent;
  Engine* const outer;  // of the backward from which this one was started

  explicit Engine(const BackwardArgs& a) : args(a), outer(ctx().engine) { ctx().engine = this; }
  ~Engine();
  void push(Ready r);
  Ready pop() noexcept;
  void deliver(const Edge& e, TensorRef grad);
  void borrow(Node& n);
  void give_back(const Node& n) noexcept;
  void run_node(Node& n);
  void run_leaf(Tensor& leaf);
  void start();
  void mark_inputs();
  void find_paths(int64_t lowest);
  bool is_input(const Node& n) const;
  bool is_wanted(const Edge& e);
  uint16_t unwanted_edges(Node& n);
  void run_end_tasks();
  void capture(const Edge& at, const TensorRef& grad);
  bool capturing() const { return args.inputs.n > 0; }
  // Other engines may claim a leaf meanwhile, but none takes it away from this one.
  bool owns(const AutogradMeta& m) const { return atomic_load(&m.owner, kRelaxed) == this; }
};

static bool grad_mode() { return !(ctx().exclude & bit(kKeyAutograd)); }

bool is_running_here(uintptr_t claim) noexcept {
  for (const Engine* e = ctx().engine; e; e = e->outer)
    if (claim == reinterpret_cast<uintptr_t>(e)) return true;
  return false;
}

// ---- the heap ----

void Engine::push(Ready r) {
  heap.push_back(r);
  int64_t i = heap.size() - 1;
  for (; i > 0 && heap[(i - 1) / 2].key < heap[i].key; i = (i - 1) / 2)
    std::swap(heap[i], heap[(i - 1) / 2]);
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
  n.in_heap = false;
  give_up_claim(n);
}
static void disown(Tensor& leaf) noexcept {
  AutogradMeta* m = find_meta(leaf);
  m->pending.reset();
  m->in_heap = false;
  atomic_store(&m->owner, nullptr, kRelease);
}

// After a failure, too: nothing pending keeps a gradient or an owner.
Engine::~Engine() {
  ctx().engine = outer;
  // Steps of a training loop number their nodes alike, so that leaves keep their place.
  if (!outer) ctx().newest_topo = 0;
  for (const EndTask& task : at_end) task.drop(task.user);
  for (Ready& r : heap) {
    Edge e{r.target, 0};
    if (!e.is_leaf()) {
      disown(*e.node());
    } else if (owns(*find_meta(*e.leaf()))) {
      disown(*e.leaf());
    }
    release_edge(e);
  }
  for (int64_t i = borrowed.size(); i-- > 0;) give_back(*borrowed[i].node);
  for (Edge& e : inputs) {
    if (!e.is_leaf()) atomic_fetch_sub(&e.node()->captured, 1, kRelaxed);
    release_edge(e);
  }
}

// ---- delivery ----

constexpr bool kComplexIsBuilt = is_built(TT_C64) || is_built(TT_C128);

// Applied by the engine to every gradient: fits it to the shape and dtype of the input.
static TensorRef fit(TensorRef g, Ints sizes, Dtype dtype, Device device, const char* who) {
  if (!same(g->sizes(), sizes)) {
    if (!broadcastable_to(sizes, g->sizes()))
      fail(TT_AUTOGRAD,
           "{} returned a gradient of shape {} for an input of shape {}: must be equal", who,
           g->sizes(), sizes);
    g = op::sum_to_size(*g, sizes);
  }
  if (g->dtype != dtype) {
    if (kComplexIsBuilt && is_complex(g->dtype) && !is_complex(dtype)) g = op::real(*g);
    g = op::to_dtype(*g, dtype);
  }
  if (!(g->device == device))
    fail(TT_AUTOGRAD, "{} returned a gradient on {} for an input on {}: must be on one device", who,
         fmt(g->device), fmt(device));
  return g;
}

static void accumulate(TensorRef& sum, TensorRef g) {
  if (!sum) {
    sum = std::move(g);
  } else if (!grad_mode() && sum->refs == 1 && sum->storage->refs == 1 && !sum->base &&
             sum->storage->writable && sum->dense()) {
    op::add_(*sum, *g);
  } else {
    sum = op::add(*sum, *g);
  }
}

// Takes a node that waits for an outer backward, which cannot go on meanwhile.
void Engine::borrow(Node& n) {
  const uintptr_t claim = atomic_load(&n.claim, kRelaxed);
  Engine* from = outer;
  while (from && claim != reinterpret_cast<uintptr_t>(from)) from = from->outer;
  if (!from) return;
  lent.reserve(lent.size() + n.n_outs);
  borrowed.push_back({&n, from, lent.size()});
  for (int64_t i = 0; i < n.n_outs; i++) lent.push_back(std::move(n.outs()[i].pending));
  n.in_heap = false;
  n.running++;  // so that no other thread claims it in between
  atomic_store(&n.claim, reinterpret_cast<uintptr_t>(this), kRelaxed);
}

void Engine::give_back(const Node& n) noexcept {
  for (int64_t k = borrowed.size(); k-- > 0;) {
    if (borrowed[k].node != &n) continue;
    const WaitingNode b = borrowed[k];
    borrowed.erase(k);
    end_run(*b.node);
    for (int64_t i = 0; i < n.n_outs; i++) b.node->outs()[i].pending = std::move(lent[b.at + i]);
    b.node->in_heap = true;
    atomic_store(&b.node->claim, reinterpret_cast<uintptr_t>(b.from), kRelease);
    return;
  }
}

void Engine::deliver(const Edge& e, TensorRef grad) {
  if (capturing() && !is_wanted(e)) return;
  heap.reserve(heap.size() + 1);  // nothing may fail between a claim and its heap entry
  if (!e.is_leaf()) {
    Node& n = *e.node();
    NodeOut& o = n.outs()[e.nr];
    grad = fit(std::move(grad), o.sizes(), o.dtype, o.device, n.type->name);
    if (outer) borrow(n);
    claim_node(n, this);
    if (!n.in_heap) {
      push({2 * n.topo, share_edge(e).target});
      n.in_heap = true;
    }
    return accumulate(o.pending, std::move(grad));
  }
  Tensor& leaf = *e.leaf();
  AutogradMeta& m = autograd_meta(leaf);
  grad = fit(std::move(grad), leaf.sizes(), leaf.dtype, leaf.device, "backward");
  Engine* none = nullptr;
  bool mine = owns(m) || atomic_compare_exchange(&m.owner, &none, this, kAcqRel, kAcquire);
  int64_t key = 2 * atomic_load(&m.min_topo, kRelaxed) - 1;
  if (mine) {
    if (!m.in_heap) {
      push({key, share_edge(e).target});
      m.in_heap = true;
    }
    return accumulate(m.pending, std::move(grad));
  }
  for (int64_t i = 0; i < foreign.size(); i++)
    if (foreign[i] == &leaf) return accumulate(foreign_grads[i], std::move(grad));
  foreign.reserve(foreign.size() + 1);
  foreign_grads.reserve(foreign_grads.size() + 1);
  push({key, share_edge(e).target});
  foreign.push_back(&leaf);
  foreign_grads.push_back(std::move(grad));
}

// ---- running ----

static TensorRef zeros_for(const NodeOut& o) { return op::zeros(o.sizes(), o.dtype, o.device); }

void Engine::capture(const Edge& at, const TensorRef& grad) {
  for (int64_t i = 0; i < inputs.size(); i++)
    if (inputs[i].target == at.target && inputs[i].nr == at.nr) captured[i] = grad;
}

// Adds g to the retained gradient of a tensor, the result of `o`.
static void add_retained(const NodeOut& o, const TensorRef& g) {
  Ref<RetainedGrad> place;
  TensorRef before;
  {
    Lock lock(shared_lock);
    if (!o.retained || !o.retained->wanted) return;
    place = Ref<RetainedGrad>::share(o.retained);
    before = place->grad;
  }
  TensorRef sum = before ? op::add(*before, *g) : op::clone(*g);
  Lock lock(shared_lock);
  if (place->wanted) std::swap(place->grad, sum);
}

// Nodes of numbers and shapes alone have one of these. Any number of backwards may run them.
constexpr void (*kDestroyNoTensors[])(Node&) noexcept = {
    destroy_parts<0, 0>, destroy_parts<0, 1>, destroy_parts<0, 2>,     destroy_parts<0, 3>,
    destroy_parts<0, 4>, destroy_parts<0, 5>, destroy_saved<ShapeList>};

static bool saves_tensors(const Node& n) {
  for (const auto destroy : kDestroyNoTensors)
    if (n.type->destroy_saved == destroy) return false;
  return true;
}

// The end of the outermost run destroys what the node saved.
static void mark_released(Node& n) noexcept {
  n.doomed = true;
  atomic_store(&n.released, true, kRelaxed);  // for Saved::get of other threads
}

void Engine::run_node(Node& n) {
  SmallVec<TensorRef, 4> grads, outs;
  try {
    grads.reserve(n.n_outs);
  } catch (...) {
    disown(n);
    throw;
  }
  NodeRun run(n);
  for (int64_t i = 0; i < n.n_outs; i++) grads.push_back(std::move(n.outs()[i].pending));
  n.in_heap = false;
  for (int64_t i = 0; i < n.n_outs; i++) {
    if (!grads[i]) continue;
    if (!n.hooks.empty()) run_tensor_hooks(n.hooks, uint32_t(i), grads[i]);
    const NodeOut& o = n.outs()[i];
    if (args.accumulate && atomic_load(&o.retained, kRelaxed)) add_retained(o, grads[i]);
  }
  if (atomic_load(&n.captured, kRelaxed)) {
    for (int64_t i = 0; i < n.n_outs; i++)
      if (grads[i]) capture({reinterpret_cast<uintptr_t>(&n), uint32_t(i)}, grads[i]);
  }
  if (capturing() && on_path.find(&n) < 0) return;
  if (n.released) fail_graph_freed(n);
  for (int64_t i = 0; i < n.n_outs; i++)
    if (!grads[i] && n.outs()[i].defined && !n.type->takes_undefined &&
        is_differentiable(n.outs()[i].dtype))
      grads[i] = zeros_for(n.outs()[i]);
  if (!n.hooks.empty()) run_node_hooks(n, kNodePreHook, grads.data());
  outs.resize(n.n_edges);
  {
    EventScope event(EventKind::kNode, n.type->name);
    const UnwantedEdges unwanted(n, capturing() ? unwanted_edges(n) : 0);
    n.type->apply(n, grads.data(), outs.data());
  }
  if (TT_UNLIKELY(ctx().anomaly != nullptr)) ctx().anomaly(n, outs.data());
  grads.clear();
  if (!n.hooks.empty()) run_node_hooks(n, kNodePostHook, outs.data());
  for (int64_t i = 0; i < n.n_edges; i++)
    if (outs[i] && n.edges()[i]) deliver(n.edges()[i], std::move(outs[i]));
  if (!args.retain_graph && !n.released && !n.part_of_node && saves_tensors(n)) mark_released(n);
}

// Serialises additions to the gradient of a leaf; the wait is at most a kernel. The holder may
// re-enter from a callback.
class AccumulateLock {
 public:
  explicit AccumulateLock(AutogradMeta& m)
      : m_(m), outer_(atomic_load(&m.adder, kRelaxed) == me()) {
    if (outer_) return;
    m_.adding.lock();
    atomic_store(&m_.adder, me(), kRelaxed);
  }
  ~AccumulateLock() {
    if (outer_) return;
    atomic_store(&m_.adder, 0, kRelaxed);
    m_.adding.unlock();
  }
  AccumulateLock(const AccumulateLock&) = delete;

 private:
  static uintptr_t me() { return reinterpret_cast<uintptr_t>(&tls); }
  AutogradMeta& m_;
  bool outer_;
};

// Stores g as the gradient of a leaf without one. Returns false, and leaves g alone, if it has one.
static bool set_first_grad(AutogradMeta& m, TensorRef& g) {
  Lock lock(shared_lock);
  if (m.grad) return false;
  m.grad = std::move(g);
  return true;
}

// The same for a leaf that has given a place to its gradient, of which the first one is a copy.
static void add_into_place(AutogradMeta& m, const Tensor& g, const Tensor& leaf) {
  const AccumulateLock adding(m);
  if (const TensorRef before = grad_of(leaf)) {
    op::add_(*before, g);
    return;
  }
  op::copy_(*m.place, g);
  set_grad(leaf, m.place);
}

// Moves the gradient in if nobody else holds it, else copies or adds it; with create_graph the sum
// keeps its own graph.
static void add_into_grad(AutogradMeta& m, TensorRef g, const Tensor& leaf) {
  note_grad(leaf, false);
  if (TT_UNLIKELY(m.place) && !grad_mode()) return add_into_place(m, *g, leaf);
  bool sole = grad_mode() || (g->refs == 1 && g->storage->refs == 1 && g->storage->writable &&
                              !g->base && same(g->strides(), leaf.strides()));
  while (!sole || !set_first_grad(m, g)) {
    const AccumulateLock adding(m);
    const TensorRef before = grad_of(leaf);
    if (!before) {
      if (!sole) {
        g = op::clone(*g);
        sole = true;
      }
    } else if (grad_mode()) {
      return set_grad(leaf, op::add(*before, *g));
    } else {
      op::add_(*before, *g);
      return;
    }
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
        foreign.erase(i);
        foreign_grads.erase(i);
        break;
      }
  }
  if (!g) return;
  if (!m.hooks.empty()) run_tensor_hooks(m.hooks, 0, g);
  bool wanted = !capturing();
  for (const Tensor* t : args.inputs) wanted |= t == &leaf;
  if (!wanted) return;
  if (!args.accumulate) return capture({reinterpret_cast<uintptr_t>(&leaf) | 1, 0}, g);
  {
    CommitGuard whole;
    add_into_grad(m, std::move(g), leaf);
  }
  if (!m.hooks.empty()) run_accumulate_hooks(m.hooks, leaf);
}

// ---- what tt_grad wants ----

bool Engine::is_wanted(const Edge& e) {
  if (on_path.find(reinterpret_cast<const void*>(e.target)) >= 0) return true;
  if (e.is_leaf() || !atomic_load(&e.node()->captured, kRelaxed)) return false;
  for (const Edge& at : inputs)
    if (at.target == e.target && at.nr == e.nr) return true;
  return false;
}

uint16_t Engine::unwanted_edges(Node& n) {
  uint32_t bits = 0;
  for (int64_t i = 0; i < min<int64_t>(n.n_edges, 16); i++)
    if (n.edges()[i] && !is_wanted(n.edges()[i])) bits |= 1u << i;
  return uint16_t(bits);
}

bool Engine::is_input(const Node& n) const {
  if (!atomic_load(&n.captured, kRelaxed)) return false;
  for (const Edge& e : inputs)
    if (e.target == reinterpret_cast<uintptr_t>(&n)) return true;
  return false;
}

// Fills on_path, by a walk below the outputs. Nodes from `lowest` down reach no input.
void Engine::find_paths(int64_t lowest) {
  for (const Edge& e : inputs)
    if (e.is_leaf()) on_path.add(reinterpret_cast<const void*>(e.target));
  struct Visit {
    Node* node;
    int64_t next;  // the edge to follow
  };
  SmallVec<Visit, 64> open;
  PointerMap seen;
  const auto visit = [&](const Edge& e) {
    if (!e || e.is_leaf() || e.node()->topo <= lowest) return;
    if (args.stop_at_inputs && is_input(*e.node())) return;
    if (seen.add(e.node())) open.push_back({e.node(), 0});
  };
  for (const Tensor* t : args.outputs) {
    Edge output = gradient_edge(*t);
    visit(output);
    release_edge(output);  // the tensor keeps the node
    while (!open.empty()) {
      Node& n = *open.back().node;
      if (open.back().next < n.n_edges) {
        Edge e;
        {
          const Lock lock(shared_lock);
          e = n.edges()[open.back().next++];
        }
        if (e && is_wanted(e)) on_path.add(&n);
        visit(e);
        continue;
      }
      open.pop_back();
      if (!open.empty() && on_path.find(&n) >= 0) on_path.add(open.back().node);
    }
  }
}

// ---- start and end ----

void Engine::mark_inputs() {
  if (!capturing()) return;
  int64_t lowest = INT64_MAX;
  inputs.reserve(args.inputs.n);
  for (const Tensor* t : args.inputs) {
    const Edge e = gradient_edge(*t);
    if (!e)
      fail_arg(TT_AUTOGRAD, "inputs", "an input of shape {} does not require a gradient",
               t->sizes());
    inputs.push_back(e);
    if (!e.is_leaf()) atomic_fetch_add(&e.node()->captured, 1, kRelaxed);
    const int64_t topo = e.is_leaf() ? 0 : e.node()->topo;
    if (topo < lowest) lowest = topo;
  }
  find_paths(lowest);
}

void Engine::start() {
  for (int64_t i = 0; i < args.outputs.n; i++) {
    const Tensor& t = *args.outputs[i];
    const Tensor* g = i < args.grads.n ? args.grads[i] : nullptr;
    if (!requires_grad(t))
      fail_arg(TT_AUTOGRAD, "outputs",
               "output {} of shape {} does not require a gradient: nothing was recorded", i,
               t.sizes());
    if (!g && t.numel != 1)
      fail_arg(TT_AUTOGRAD, "outputs",
               "output {} has shape {}: only outputs of one element may omit their gradient", i,
               t.sizes());
    if (g && !same(g->sizes(), t.sizes()))
      fail_arg(TT_SHAPE, "grads", "gradient {} is {}: must have its output's shape {}", i,
               g->sizes(), t.sizes());
    if (g && is_complex(g->dtype) != is_complex(t.dtype))
      fail_arg(TT_DTYPE, "grads",
               "gradient {} is {}, its output {}: both must be real or both complex", i,
               fmt(g->dtype), fmt(t.dtype));
  }
  for (int64_t i = 0; i < args.outputs.n; i++) {
    const Tensor& t = *args.outputs[i];
    const Tensor* g = i < args.grads.n ? args.grads[i] : nullptr;
    TensorRef seed = g ? TensorRef::share(g) : op::ones_like(t);
    Edge e = gradient_edge(t);
    if (!e) fail_arg(TT_AUTOGRAD, "outputs", "output {} has stopped requiring a gradient", i);
    try {
      deliver(e, std::move(seed));
    } catch (...) {
      release_edge(e);
      throw;
    }
    release_edge(e);
  }
}

void Engine::run_end_tasks() {
  for (int64_t i = 0; i < at_end.size(); i++) {
    const EndTask task = at_end[i];  // fn may add others
    task.fn(task.user);
  }
}

void at_end_of_backward(void (*fn)(void* user), void (*drop)(void* user) noexcept, void* user) {
  Engine* running = ctx().engine;
  if (!running) fail(TT_AUTOGRAD, "no backward is running");
  while (running->outer) running = running->outer;
  running->at_end.push_back({fn, drop, user});
}

bool is_backward_over() noexcept {
  for (const Engine* e = ctx().engine; e; e = e->outer)
    if (!e->heap.empty()) return false;
  return true;
}

TensorList run_backward(const BackwardArgs& a) {
  MaskGuard masks(0);
  if (a.create_graph) {
    ctx().exclude &= ~bit(kKeyAutograd);
  } else {
    ctx().exclude |= bit(kKeyAutograd);
  }
  ctx().include &= ~kAutocastKey;
  Engine engine(a);
  engine.captured.resize(a.inputs.n);
  engine.mark_inputs();
  engine.start();
  CaptureVisitor* const visitor = visitor_of_capture();
  while (!engine.heap.empty()) {
    poll_if_watched(false);
    Ready r = engine.pop();
    Edge e{r.target, 0};
    struct Release {
      Edge& e;
      ~Release() { release_edge(e); }
    } release{e};
    if (e.is_leaf()) {
      engine.run_leaf(*e.leaf());
    } else {
      if (TT_UNLIKELY(visitor)) visitor->node(*visitor, *e.node());
      engine.run_node(*e.node());
      if (engine.borrowed.size() > 0) engine.give_back(*e.node());
    }
  }
  engine.run_end_tasks();
  if (!a.accumulate && !a.allow_unused)
    for (int64_t i = 0; i < a.inputs.n; i++)
      if (!engine.captured[i])
        fail_arg(TT_AUTOGRAD, "inputs",
                 "input {} of shape {} was not used in the outputs: set allow_unused to get none",
                 i, a.inputs[i]->sizes());
  return std::move(engine.captured);
}

}  // namespace TT_NS
