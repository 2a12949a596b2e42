#include "nn/compile/gradients.h"

#include "autograd/engine.h"
#include "autograd/hook.h"
#include "autograd/saved.h"
#include "graph/capture.h"
#include "graph/division.h"
#include "graph/passes/passes.h"
#include "ops/elementwise.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

#include <string.h>

namespace TT_NS {

void CompiledGradients::destroy(CompiledGradients* g) noexcept {
  g->~CompiledGradients();
  mem_free(g, sizeof *g);
}

namespace {

Ref<CompiledGradients> new_gradients() {
  auto* g = new (mem_alloc(sizeof(CompiledGradients))) CompiledGradients{};
  g->refs = 1;
  return Ref<CompiledGradients>::adopt(g);
}

}  // namespace

Ref<CompiledGradients> new_gradients_like(const CompiledGradients& g) {
  Ref<CompiledGradients> made = new_gradients();
  made->results = g.results;
  for (const GradTarget& t : g.targets) made->targets.push_back({t.input, t.leaf, {}});
  made->n_nodes = g.n_nodes;
  made->function = g.function;
  made->modes = g.modes;
  return made;
}

// ---- recording ----

namespace {

// The node of edge i of n, if there is one.
NodeRef node_below(Node& n, int64_t i) {
  const Lock lock(shared_lock);
  const Edge& e = n.edges()[i];
  return e && !e.is_leaf() ? NodeRef::share(e.node()) : NodeRef();
}
bool is_watched(Node& n) {
  // A function of the application (an owned type) may have effects, which replays would not repeat.
  if (!n.hooks.empty() || n.type->runs_hooks || n.type->owned) return true;
  for (int64_t i = 0; i < n.n_outs; i++)
    if (atomic_load(&n.outs()[i].retained, kRelaxed)) return true;
  return false;
}

}  // namespace

Histories look_into(const Tensor& result, TensorSpan inputs) {
  Histories found;
  PointerMap seen;
  SmallVec<NodeRef, 32> open;
  const auto visit = [&](NodeRef node) {
    if (node && seen.add(node.get())) open.push_back(std::move(node));
  };
  for (const Tensor* t : inputs)
    if (t->grad_fn) seen.add(t->grad_fn);
  visit(NodeRef::share(result.grad_fn));
  while (!open.empty()) {
    const NodeRef ref = std::move(open.back());
    open.pop_back();
    Node& n = as_node(ref);
    found.freed |= atomic_load(&n.released, kRelaxed);
    found.watched |= is_watched(n);
    for (int64_t i = 0; i < n.n_edges; i++) visit(node_below(n, i));
  }
  return found;
}

namespace {

// A gradient of a result as most backwards give it: with the result's order of elements.
TensorRef new_seed(const Tensor& t) {
  TensorRef seed = t.dense() ? new_strided(t.sizes(), t.strides(), t.dtype, t.device)
                             : new_tensor(t.sizes(), t.dtype, t.device);
  if (seed->numel) memset(seed->data, 0, size_t(seed->numel * seed->item_size()));
  return seed;
}

// Hooks that run with the gradient of t, also if it is not added to the leaf.
bool has_hooks(const Tensor& t) {
  if (t.grad_fn) {
    const HookList& list = static_cast<const Node*>(t.grad_fn)->hooks;
    return bool(list.next(kTensorHook, t.output_nr, 0));
  }
  const AutogradMeta* m = find_meta(t);
  return m && m->hooks.has(kTensorHook);
}

// The inputs and the leaves from outside that require gradients.
SmallVec<GradTarget, 8> targets_of(const CompiledRecord& r, TensorSpan inputs) {
  SmallVec<GradTarget, 8> targets;
  for (int64_t i = 0; i < inputs.n; i++) {
    if (r.inputs[i].becomes_leaf)
      refuse_record("the function lets an input require a gradient, and a result needs one");
    if (!r.inputs[i].needs_grad || r.inputs[i].sharing.same >= 0) continue;
    if (has_hooks(*inputs[i])) refuse_record("an input that requires a gradient has hooks");
    targets.push_back({i, {}, {}});
  }
  for (const OutsideGuard& guard : r.tensors) {
    if (!guard.needs_grad) continue;
    if (guard.tensor->grad_fn) refuse_record("a tensor from outside the function has a history");
    if (has_hooks(*guard.tensor)) refuse_record("a parameter has hooks");
    targets.push_back({-1, guard.tensor, {}});
  }
  return targets;
}

}  // namespace

TensorList record_gradients(const Compiled& f, CompiledRecord& r, TensorSpan inputs,
                            const TensorList& outs) {
  if (!r.leaves.empty())
    refuse_record("a result needs a gradient, and the function uses gradients");
  const Ref<CompiledGradients> made = new_gradients();
  made->n_nodes = num_captured_nodes();
  made->function = f.link;
  made->modes = r.modes;
  SmallVec<const Tensor*, 4> results, wanted;
  TensorList seeds;
  for (int64_t i = 0; i < outs.size(); i++) {
    const Tensor& t = *outs[i];
    if (!requires_grad(t)) continue;
    if (!t.is_cpu()) refuse_record("a result on a device needs a gradient");
    seeds.push_back(new_seed(t));
    if (add_capture_input(*seeds.back()) < 0) refuse_record("the function ended the capture");
    results.push_back(&t);
    made->results.push_back(i);
  }
  const SmallVec<GradTarget, 8> targets = targets_of(r, inputs);
  for (const GradTarget& target : targets)
    wanted.push_back(target.leaf ? target.leaf.get() : inputs[target.input]);
  // The application's nodes are numbered on, as if this backward had not been.
  const int64_t newest_topo = ctx().newest_topo;
  TensorList found = run_backward({.outputs = {results.data(), results.size()},
                                   .grads = Borrowed(seeds),
                                   .inputs = {wanted.data(), wanted.size()},
                                   .retain_graph = true,
                                   .allow_unused = true,
                                   .accumulate = false,
                                   .stop_at_inputs = true});
  ctx().newest_topo = newest_topo;
  TensorList grads;
  for (int64_t i = 0; i < found.size(); i++) {
    if (!found[i]) continue;
    made->targets.push_back(targets[i]);
    grads.push_back(std::move(found[i]));
  }
  if (grads.empty()) refuse_record("no input and no parameter has a gradient");
  r.gradients = made;
  return grads;
}

// ---- plans ----

namespace {

// Which inputs from `first` on each output depends on.
void find_reached(const Graph& g, int64_t first, SmallVec<GradTarget, 4>& targets) {
  const int64_t n = g.inputs.size() - first;
  SmallVec<SmallVec<bool, 2>, 16> reached;  // of each storage
  reached.resize(g.storages.size());
  for (SmallVec<bool, 2>& of : reached) of.resize(n);
  for (int64_t k = 0; k < n; k++) reached[g.values[g.inputs[first + k]].storage][k] = true;
  for (const IrNode& node : g.nodes)
    for (const int32_t out : node.outs) {
      if (out < 0) continue;
      for_each_value(node, [&](int32_t v) {
        const SmallVec<bool, 2>& from = reached[g.values[v].storage];
        for (int64_t k = 0; k < n; k++) reached[g.values[out].storage][k] |= from[k];
      });
    }
  for (int64_t i = 0; i < targets.size(); i++) {
    targets[i].reached = reached[g.values[g.outputs[i]].storage];
    bool any = false;
    for (const bool by : targets[i].reached) any |= by;
    for (bool& by : targets[i].reached) by |= !any;  // zeros, whatever the gradients of results are
  }
}

// The results that share memory with other results.
SmallVec<int64_t, 1> views_among(const CompiledRecord& r) {
  SmallVec<int64_t, 4> sharing;  // for each result: how many are in the memory of which it is first
  sharing.resize(r.n_results);
  const auto is_shared = [&](int64_t i) { return r.outs[i].kind == OutKind::kShared; };
  for (int64_t i = 0; i < r.n_results; i++)
    if (is_shared(i)) sharing[r.outs[i].first]++;
  SmallVec<int64_t, 1> found;
  for (int64_t i = 0; i < r.n_results; i++)
    if (is_shared(i) && sharing[r.outs[i].first] > 1) found.push_back(i);
  return found;
}

// The plan of the gradients.
void set_gradients(CompiledRecord& r, const GraphDivision& parts, const Graph& captured) {
  CompiledGradients& made = *r.gradients;
  const Ref<Graph> second = parts.second();
  const int64_t n_seeds = made.results.size();
  find_reached(*second, second->inputs.size() - n_seeds, made.targets);
  const Ref<Graph> graph = optimized(*second, kExactPasses);
  set_replay(made.replay, *second, graph, graph->outputs.size());
  made.replay.plan->draws_given = true;
  int64_t position = 0;  // in the list that the replay gets
  for (int64_t k = 0; k < captured.inputs.size() - n_seeds; k++) {
    if (!parts.reads(captured.values[captured.inputs[k]].storage)) continue;
    made.inputs.push_back(r.feeds[k].input);
    add_feed(made.replay, {.slot = {}, .input = position++, .shift = r.feeds[k].shift}, false);
  }
  while (position < graph->inputs.size())
    add_feed(made.replay, {.slot = {}, .input = position++}, false);
  PointerMap outside;
  for (const IrStorage& s : graph->storages)
    if (s.tensor && s.role != IrRole::kInput) outside.add(s.tensor->storage);
  for (const OutsideGuard& guard : r.tensors) {
    if (outside.find(guard.place.storage) >= 0) made.outside.push_back(guard.tensor);
    else if (made.runs_again) made.others.push_back(guard.tensor);
  }
  keep_objects(r, *graph);
}

}  // namespace

void set_plans(CompiledRecord& r, const Graph& captured, TensorSpan inputs) {
  CompiledGradients& made = *r.gradients;
  const int64_t n_inputs = captured.inputs.size() - made.results.size();
  const GraphDivision parts(captured, made.n_nodes, n_inputs, r.n_results);
  made.draws.append(parts.draws());
  const Ref<Graph> first = parts.first();
  set_plan(r, *first, first->outputs.size(), inputs);
  for (const int64_t i : made.results)
    if (r.outs[i].kind == OutKind::kOfInput || r.outs[i].kind == OutKind::kOutside)
      refuse_record("a result that needs a gradient is a view of an input or a parameter");
  made.views = views_among(r);
  made.runs_again = r.plan->written.empty() && r.plan->draws.empty() && !r.writes_inputs;
  set_gradients(r, parts, captured);
}

// ---- replays ----

namespace {

struct CompiledSaved {
  Ref<CompiledGradients> gradients;
  SavedList given;    // inputs of the function, then memories
  SavedList outside;  // must be as they were
  SavedList inputs;   // if the function can run again: all of them
  SavedList others;   // and CompiledGradients::others
  SmallVec<Rng, 1> draws;
};

// Lets the plan run, or makes another one while a thread runs it.
class Running {
 public:
  explicit Running(CompiledGradients& g) : g_(g), is_busy_(atomic_exchange(&g.busy, 1, kAcquire)) {
    if (is_busy_) renew();
  }
  ~Running() {
    if (!is_busy_) atomic_store(&g_.busy, 0, kRelease);
  }
  Running(const Running&) = delete;
  const Replay& replay() const { return is_busy_ ? own_ : g_.replay; }

 private:
  void renew();

  CompiledGradients& g_;
  const bool is_busy_;
  Replay own_;
};

void Running::renew() {
  const Ref<Graph>& graph = g_.replay.plan->graph;
  own_.plan = new_plan(graph, nullptr, 0, graph->outputs.size());
  own_.plan->draws_given = true;
  for (const OutRule& rule : g_.replay.outs) own_.outs.push_back(rule);
  for (const InputRule& rule : g_.replay.feeds)
    add_feed(own_, {.slot = {}, .input = rule.input, .shift = rule.shift}, false);
}

// The gradient of a result in the form that the plan takes; zeros if it is undefined.
TensorRef in_form(TensorRef grad, const Tensor& slot) {
  if (grad && same(grad->strides(), slot.strides()) && grad->dtype == slot.dtype) return grad;
  TensorRef copy = new_strided(slot.sizes(), slot.strides(), slot.dtype, slot.device);
  if (grad) copy_elements(*copy, *grad);
  else if (copy->numel) memset(copy->data, 0, size_t(copy->numel * copy->item_size()));
  return copy;
}

Ref<Compiled> function_of(const CompiledGradients& g) {
  const Lock lock(shared_lock);
  Compiled* f = g.function->f;
  // Without references it is about to be freed.
  RefCount refs = f ? atomic_load(&f->refs, kRelaxed) : 0;
  while (refs && !atomic_compare_exchange(&f->refs, &refs, refs + 1, kAcqRel, kRelaxed)) {}
  return refs ? Ref<Compiled>::adopt(f) : Ref<Compiled>();
}

// The gradients by another call of the function; with their history if gradients are recorded.
void backward_of_function(Node& n, Compiled& f, TensorRef* grads, TensorRef* out) {
  auto& saved = n.saved_as<CompiledSaved>();
  const Ref<CompiledGradients> g = saved.gradients;
  TensorList unchanged, inputs, outs;
  saved.outside.get(n, unchanged);
  saved.others.get(n, unchanged);
  saved.inputs.get(n, inputs);
  const bool records = !(ctx().exclude & bit(kKeyAutograd));
  {
    const ModeScope modes(g->modes);
    outs = run_function(f, Borrowed(inputs));
  }
  SmallVec<const Tensor*, 4> results, seeds, wanted;
  for (const int64_t i : g->results) {
    if (!grads[i]) continue;
    if (i >= outs.size() || !requires_grad(*outs[i]))
      fail(TT_AUTOGRAD, "a compiled function has returned other results than before");
    results.push_back(outs[i].get());
    seeds.push_back(grads[i].get());
  }
  for (const GradTarget& t : g->targets)
    wanted.push_back(t.leaf ? t.leaf.get() : inputs[t.input].get());
  TensorList found = run_backward({.outputs = {results.data(), results.size()},
                                   .grads = {seeds.data(), seeds.size()},
                                   .inputs = {wanted.data(), wanted.size()},
                                   .retain_graph = records,
                                   .create_graph = records,
                                   .allow_unused = true,
                                   .accumulate = false,
                                   .stop_at_inputs = true});
  for (int64_t i = 0; i < found.size(); i++) out[i] = std::move(found[i]);
}

void recorded_backward(Node& n, TensorRef* grads, TensorRef* out) {
  const Ref<CompiledGradients> g = n.saved_as<CompiledSaved>().gradients;
  const Ref<Compiled> f = g->runs_again ? function_of(*g) : Ref<Compiled>();
  if (f) return backward_of_function(n, *f, grads, out);
  fail(TT_NOT_IMPLEMENTED,
       "gradients of a compiled function are recorded (create_graph), for which it must run "
       "again: {}",
       g->runs_again ? "it does not exist any longer"
                     : "it draws random numbers, or writes inputs or state");
}

bool is_finite(const Tensor& t) {
  const TensorRef all = op::all(*op::isfinite(t));
  return *all->data != 0;
}

void compiled_backward(Node& n, TensorRef* grads, TensorRef* out) {
  check_not_released(n);
  if (!(ctx().exclude & bit(kKeyAutograd))) return recorded_backward(n, grads, out);
  auto& saved = n.saved_as<CompiledSaved>();
  const Ref<CompiledGradients> g = saved.gradients;
  TensorList unchanged, given, found;
  SmallVec<bool, 4> defined;
  saved.outside.get(n, unchanged);
  saved.given.get(n, given);
  {
    const Running running(*g);
    const Replay& replay = running.replay();
    Plan& plan = *replay.plan;
    for (const int64_t i : g->results) {
      defined.push_back(bool(grads[i]));
      given.push_back(in_form(grads[i], *replay.feeds[given.size()].slot));
    }
    for (int64_t k = 0; k < saved.draws.size(); k++)
      plan.draws[plan.draws_of_graph[g->draws[k]]].begin = saved.draws[k];
    found = run_replay(replay, Borrowed(given));
  }
  bool is_mixed = false;  // a gradient has terms of results without one, which may be 0 times inf
  for (int64_t i = 0; i < found.size(); i++) {
    bool by_defined = false;
    bool by_others = false;
    for (int64_t k = 0; k < defined.size(); k++) {
      if (!g->targets[i].reached[k]) continue;
      by_defined |= defined[k];
      by_others |= !defined[k];
    }
    if (by_defined) out[i] = found[i];
    is_mixed = is_mixed || (by_defined && by_others && !is_finite(*found[i]));
  }
  if (!is_mixed || !g->runs_again) return;
  if (const Ref<Compiled> f = function_of(*g)) backward_of_function(n, *f, grads, out);
}

constinit const NodeType kCompiledType = {
    .name = "compiled_function",
    .apply = compiled_backward,
    .destroy_saved = destroy_saved<CompiledSaved>,
    .saved_bytes = sizeof(CompiledSaved),
    .takes_undefined = true,
};
// Of results whose history has been freed: its nodes are never constructed.
constinit const NodeType kSpentType = {
    .name = "compiled_function",
    .apply = compiled_backward,
    .destroy_saved = destroy_parts<0, 0>,
    .saved_bytes = 0,
};

}  // namespace

History::History(const CompiledRecord& r, TensorSpan inputs) : r_(r), inputs_(inputs) {
  if (!r.spent.empty()) spent_ = new_node(&kSpentType, 0, r.n_results);
  if (!r.gradients) return;
  const CompiledGradients& g = *r.gradients;
  node_ = new_node(&kCompiledType, g.targets.size(), r.n_results);
  Node& n = as_node(node_);
  new (n.saved()) CompiledSaved{r.gradients, {}, {}, {}, {}, {}};
  n.released = false;
  for (int64_t i = 0; i < g.targets.size(); i++) {
    const GradTarget& target = g.targets[i];
    n.set_edge(i, target.leaf ? *target.leaf : *inputs[target.input]);
  }
}

void History::link(TensorList& outs) {
  for (const int64_t i : r_.spent) set_history(spent_, *outs[i], uint32_t(i));
  if (!r_.gradients) return;
  const CompiledGradients& g = *r_.gradients;
  auto& saved = as_node(node_).saved_as<CompiledSaved>();
  SmallVec<const Tensor*, 16> given, outside, others;
  for (const int64_t i : g.inputs) given.push_back(inputs_[i]);
  for (int64_t i = r_.n_results; i < outs.size(); i++) given.push_back(outs[i].get());
  for (const TensorRef& t : g.outside) outside.push_back(t.get());
  for (const TensorRef& t : g.others) others.push_back(t.get());
  saved.given.save({given.data(), given.size()});
  saved.outside.save({outside.data(), outside.size()});
  saved.others.save({others.data(), others.size()});
  if (g.runs_again) saved.inputs.save(inputs_);
  for (const int32_t d : g.draws)
    saved.draws.push_back(r_.plan->draws[r_.plan->draws_of_graph[d]].begin);
  outs.resize(r_.n_results);
  for (const int64_t i : g.views) outs[i]->flags |= kOneOfViews;
  for (const int64_t i : g.results) set_history(node_, *outs[i], uint32_t(i));
}

}  // namespace TT_NS
