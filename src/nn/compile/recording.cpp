// A call of the function itself, captured: its guards and a plan, or why there is none.
#include "nn/compile/gradients.h"

#include "autograd/node.h"
#include "graph/capture.h"
#include "graph/passes/passes.h"
#include "graph/plan/bind.h"
#include "graph/rewrite.h"
#include "modes/autocast.h"

namespace TT_NS {

void refuse_record(const char* why) { fail(TT_NOT_IMPLEMENTED, "{}", why); }

namespace {

// Collects what the record depends on. `failed`: there was no memory for it.
struct Visitor : CaptureVisitor {
  SmallVec<ModuleGuard, 1> modules;
  SmallVec<OutsideGuard, 1> tensors;
  SmallVec<LeafGuard, 1> leaves;
  PointerMap seen;     // leaves and modules
  PointerMap guarded;  // of `tensors`
  TensorSpan inputs;
  bool ran_history = false;  // a backward has left the function through an input
  bool failed = false;
};

TensorRef gradient_now(const Tensor& leaf, LeafGuard& guard) {
  const Lock lock(shared_lock);
  const Tensor* grad = borrow_grad(lock, leaf);
  if (grad) guard.grad = Place(*grad);
  guard.hooks = mark_of_hooks(lock, leaf);
  return TensorRef::share(grad);
}
// Whether only the leaf, and the caller, know the gradient, so that the function reaches it through
// the leaf alone.
bool can_be_slot(const Tensor& grad) {
  return is_alone(grad, 2) && grad.is_cpu() && grad.storage->writable && !grad.grad_fn &&
         !requires_grad(grad) && !grad.base;
}

void visit_grad(CaptureVisitor& visitor, const Tensor& leaf, bool replaces) {
  auto& v = static_cast<Visitor&>(visitor);
  try {
    if (leaf.grad_fn || !v.seen.add(&leaf)) return;
    LeafGuard guard = {TensorRef::share(&leaf), Place(), replaces, 0};
    const TensorRef grad = gradient_now(leaf, guard);
    if (grad && !replaces && can_be_slot(*grad)) guard.slot = add_capture_input(*grad);
    v.leaves.push_back(std::move(guard));
  } catch (...) {
    v.failed = true;
  }
}
void visit_outside(CaptureVisitor& visitor, const Tensor& t) {
  auto& v = static_cast<Visitor&>(visitor);
  try {
    if (v.guarded.add(&t)) v.tensors.push_back({TensorRef::share(&t), Place(t), requires_grad(t)});
  } catch (...) {
    v.failed = true;
  }
}
void visit_module(CaptureVisitor& visitor, Module& m) {
  auto& v = static_cast<Visitor&>(visitor);
  try {
    if (!v.seen.add(&m)) return;
    ModuleGuard guard = {ModuleRef::share(&m), m.training, 0, {}};
    {
      const Lock lock(shared_lock);
      guard.hooks = m.hooks.mark(lock);
    }
    for (const Module::Slot& slot : m.slots) guard.slots.push_back(SlotGuard(slot));
    v.modules.push_back(std::move(guard));
  } catch (...) {
    v.failed = true;
  }
}

void visit_node(CaptureVisitor& visitor, const GraphNode& node) {
  auto& v = static_cast<Visitor&>(visitor);
  for (const Tensor* t : v.inputs) v.ran_history |= t->grad_fn == &node;
}

// The bytes [*low, *high) that a value covers in its storage.
void bytes_of(const IrValue& v, int64_t* low, int64_t* high) {
  int64_t reach = v.numel() ? 1 : 0;
  for (int64_t d = 0; d < v.ndim() && reach; d++) reach += (v.sizes[d] - 1) * v.strides[d];
  *low = v.offset;
  *high = v.offset + reach * item_size(v.dtype);
}

// Refuses functions that reach elements of an input's memory which are not elements of the input:
// replays get the input alone.
void check_inputs(const Graph& g) {
  for (const int32_t input : g.inputs) {
    const int32_t storage = g.values[input].storage;
    int64_t low, high;
    bytes_of(g.values[input], &low, &high);
    for (int32_t i = g.storages[storage].last_value; i >= 0; i = g.values[i].previous) {
      int64_t from, to;
      bytes_of(g.values[i], &from, &to);
      if (from < low || to > high)
        refuse_record("the function reaches beyond an input, into its memory");
    }
  }
}

bool same_memory(const Graph& g, int64_t i, int64_t k) {
  return g.values[g.outputs[i]].storage == g.values[g.outputs[k]].storage;
}

// The first result in the memory of result i, or -1 if it has memory of its own. Only what shared
// memory in the call shares it in replays: passes make one value of equal ones.
int32_t first_in_memory(const Graph& captured, const Graph& g, int64_t i) {
  int32_t first = -1;
  for (int64_t k = 0; k < g.outputs.size(); k++) {
    if (k == i || !same_memory(captured, i, k)) continue;
    if (!same_memory(g, i, k)) refuse_record("two results share memory, which a pass has divided");
    if (first < 0) first = int32_t(min(i, k));
  }
  return first;
}

// The first result of the function in the memory of output i, or -1.
int64_t result_in_memory(const Graph& captured, int64_t n_outs, int64_t i) {
  for (int64_t k = 0; k < n_outs; k++)
    if (same_memory(captured, i, k)) return k;
  return -1;
}

void set_out(Replay& r, const Graph& captured, const Graph& g, int64_t i) {
  const int32_t value = g.outputs[i];
  const IrValue& v = g.values[value];
  OutRule rule = {.kind = OutKind::kCopy, .value = value};
  const IrRole role = g.storages[v.storage].role;
  if (role == IrRole::kInput) {
    rule.kind = OutKind::kOfInput;
    for (int64_t k = 0; k < g.inputs.size(); k++)
      if (g.values[g.inputs[k]].storage == v.storage) rule.input = int32_t(k);
  } else if (role != IrRole::kMade) {
    rule.kind = OutKind::kOutside;
  } else {
    rule.first = first_in_memory(captured, g, i);
    if (rule.first >= 0) rule.kind = OutKind::kShared;
  }
  r.outs.push_back(rule);
}

void set_feeds(CompiledRecord& r, const Graph& g, TensorSpan inputs) {
  const SmallVec<bool, 16> written = written_storages(g);
  const auto is_written = [&](int64_t k) { return written[g.values[g.inputs[k]].storage]; };
  for (const MemoryInput& m : memories_of(inputs)) {
    const bool writes = is_written(r.feeds.size());
    // Another thread may write there meanwhile, which copying the memory back would undo.
    if (writes && m.has_gaps)
      refuse_record("inputs that are written have other memory between them");
    r.writes_inputs |= writes;
    add_feed(r, {.slot = {}, .input = m.input, .shift = m.shift}, writes);
  }
  // Slots have the order of leaves.
  for (int64_t i = 0; i < r.leaves.size(); i++)
    if (r.leaves[i].slot >= 0) add_feed(r, {.slot = {}, .leaf = i}, is_written(r.leaves[i].slot));
}

}  // namespace

void add_feed(Replay& r, InputRule rule, bool written) {
  rule.slot = plan_slot(*r.plan, false, r.feeds.size());
  if (rule.slot->is_cpu() && rule.slot->dense())
    rule.bytes = rule.slot->numel * rule.slot->item_size();
  rule.written = written;
  r.feeds.push_back(std::move(rule));
}

void set_replay(Replay& r, const Graph& captured, const Ref<Graph>& graph, int64_t n_outs) {
  check_inputs(*graph);
  r.plan = new_plan(graph, nullptr, 0, n_outs);
  for (int64_t i = 0; i < n_outs; i++) set_out(r, captured, *graph, i);
}

void set_plan(CompiledRecord& r, const Graph& captured, int64_t n_outs, TensorSpan inputs) {
  const Ref<Graph> graph = optimized(captured, kExactPasses);
  const Graph& g = *graph;
  set_replay(r, captured, graph, n_outs);
  set_feeds(r, g, inputs);
  for (const IrStorage& s : g.storages)
    if (s.tensor && s.role != IrRole::kInput) r.outside.add(s.tensor->storage);
  keep_objects(r, g);
}

void keep_objects(CompiledRecord& r, const Graph& g) {
  for (const IrNode& n : g.nodes)
    for (const IrArg& a : n.args)
      if (a.kind == Value::kObject) r.objects.push_back(Ref<Object>::share(a.object.get()));
}

// The graph holds the memory of the inputs of its call no longer.
void forget_inputs(Graph& g) {
  const int64_t none = 0;
  for (IrStorage& s : g.storages)
    if (s.role == IrRole::kInput && s.device.type == TT_CPU)
      s.tensor = new_tensor(Ints(&none, 1), Dtype::kU8, kCpuDevice);
}

void renew_gradients(CompiledRecord& r) {
  const Ref<Graph>& g = r.plan->graph;
  const Ref<Plan> plan = new_plan(g, nullptr, 0, g->outputs.size());
  SmallVec<TensorRef, 8> slots, grads;
  for (int64_t k = 0; k < r.feeds.size(); k++) slots.push_back(plan_slot(*plan, false, k));
  for (const GradRule& rule : r.grads)
    grads.push_back(rule.grad ? plan_slot(*plan, true, rule.out) : TensorRef());
  for (int64_t k = 0; k < r.feeds.size(); k++) r.feeds[k].slot = std::move(slots[k]);
  for (int64_t i = 0; i < r.grads.size(); i++) {
    r.grads[i].grad = std::move(grads[i]);
    r.grads[i].is_fresh = true;
  }
  r.plan = plan;
}

namespace {

class Recording {
 public:
  Recording(Compiled& f, TensorSpan inputs, CompiledRecord& r) : f_(f), inputs_(inputs), r_(r) {}
  TensorList run();

 private:
  void set_guards();
  void begin();
  void check_inputs_after();
  void finish(const TensorList& outs);
  void keep_guards();
  bool finds_histories(const TensorList& outs);
  TensorList gradients_of(const TensorList& outs);
  void make_plan(const TensorList& outs);
  void set_grads(const Graph& captured, int64_t n_outs);

  Compiled& f_;
  TensorSpan inputs_;
  CompiledRecord& r_;
  Visitor visitor_ = {};
  SmallVec<const GraphNode*, 4> histories_;  // of inputs, before the call
  TensorList grads_;                         // of r_.leaves, after the call
};

void Recording::set_guards() {
  r_.modes = modes_now();
  Sharings sharings(inputs_);
  for (int64_t i = 0; i < inputs_.n; i++) {
    const Tensor& t = *inputs_[i];
    r_.inputs.push_back({t.dtype, t.device, requires_grad(t), bool(t.grad_fn), t.storage->writable,
                         false, sharings.of(i), 0, Shape(t.sizes()), Shape(t.strides())});
    histories_.push_back(t.grad_fn);
    const Lock lock(shared_lock);
    r_.inputs.back().hooks = mark_of_hooks(lock, t);
  }
}

void Recording::set_grads(const Graph& captured, int64_t n_outs) {
  const Graph& g = *r_.plan->graph;
  int64_t out = n_outs;
  for (int64_t i = 0; i < grads_.size(); i++) {
    const LeafGuard& guard = r_.leaves[i];
    GradRule rule = {.leaf = guard.leaf, .grad = {}, .out = -1, .input = guard.input};
    if (!grads_[i]) {
      if (guard.grad.storage || guard.replaced) r_.grads.push_back(std::move(rule));
      continue;
    }
    rule.out = out++;
    if (g.storages[g.values[g.outputs[rule.out]].storage].role == IrRole::kMade) {
      rule.grad = plan_slot(*r_.plan, true, rule.out);
      rule.result = result_in_memory(captured, n_outs, rule.out);
      r_.grads.push_back(std::move(rule));
    } else if (grads_[i]->storage != guard.grad.storage) {
      refuse_record("the function sets a gradient to a tensor that it has not computed");
    }
  }
}

// Sorts the results that require gradients: those whose history the function has freed, and others.
bool Recording::finds_histories(const TensorList& outs) {
  bool found = false;
  for (int64_t i = 0; i < outs.size(); i++) {
    const Tensor& t = *outs[i];
    if (!requires_grad(t)) continue;
    if (!t.grad_fn) refuse_record("a result is a leaf that requires a gradient");
    const Histories histories = look_into(t, inputs_);
    if (histories.freed) {
      r_.spent.push_back(i);
      continue;
    }
    if (histories.watched)
      refuse_record(
          "the history of a result has hooks, functions of the application, or tensors that keep "
          "gradients");
    found = true;
  }
  return found;
}

// The gradients of the results, recorded behind the call.
TensorList Recording::gradients_of(const TensorList& outs) {
  if (!r_.spent.empty()) refuse_record("the function has freed the history of some of its results");
  ctx().graph->visitor = &visitor_;
  TensorList grads = record_gradients(f_, r_, inputs_, outs);
  if (!ctx().graph) refuse_record("a backward ended the capture that records it");
  ctx().graph->visitor = nullptr;
  for (OutsideGuard& guard : visitor_.tensors) r_.tensors.push_back(std::move(guard));
  return grads;
}

void Recording::make_plan(const TensorList& outs) {
  r_.n_results = outs.size();
  const bool has_histories = num_captured_nodes() >= 0 && finds_histories(outs);
  const TensorList grads = has_histories ? gradients_of(outs) : TensorList();
  SmallVec<const Tensor*, 8> outputs;
  const TensorList* const lists[] = {&outs, &grads, &grads_};
  for (const TensorList* list : lists)
    for (const TensorRef& t : *list)
      if (t) outputs.push_back(t.get());
  Text reason;
  const Ref<Graph> captured = end_capture(outputs, &reason);
  if (!captured) refuse_record(reason.c_str());
  forget_inputs(*captured);
  number_inputs_first(*captured);
  if (visitor_.failed) fail(TT_OOM, "no memory for the guards of a compiled function");
  if (has_histories) {
    set_plans(r_, *captured, inputs_);
  } else {
    set_plan(r_, *captured, outs.size(), inputs_);
    set_grads(*captured, outs.size());
  }
  if (f_.dynamic) r_.captured = captured;
}

// What the call has done to inputs besides writing their elements.
void Recording::check_inputs_after() {
  for (int64_t i = 0; i < inputs_.n; i++) {
    const Tensor& t = *inputs_[i];
    InputGuard& guard = r_.inputs[i];
    if (t.grad_fn != histories_[i])
      refuse_record(
          "an input is written while gradients are recorded: it has another history afterwards");
    guard.becomes_leaf = requires_grad(t) && !guard.needs_grad;
    if (guard.needs_grad && !requires_grad(t))
      refuse_record("an input requires a gradient no longer");
  }
  for (const ModuleGuard& m : r_.modules)
    for (const SlotGuard& slot : m.slots)
      for (const Tensor* t : inputs_)
        if (t->storage == slot.storage)
          refuse_record("an input is also a parameter or a buffer of a module");
  for (const LeafGuard& leaf : r_.leaves)
    for (const Tensor* t : inputs_)
      if (!leaf.replaced && t->storage == leaf.grad.storage)
        refuse_record("an input has the memory of a gradient");
}

void Recording::finish(const TensorList& outs) {
  check_inputs_after();
  for (LeafGuard& l : r_.leaves) {
    grads_.push_back(TensorRef(grad_of(*l.leaf)));
    for (int64_t i = 0; i < inputs_.n; i++)
      if (inputs_[i] == l.leaf.get()) l.input = i;
    if (l.input >= 0) l.leaf.reset();
  }
  if (visitor_.ran_history) refuse_record("a backward goes on behind an input, in its history");
  make_plan(outs);
}

// A record without a plan keeps them, too: the reason holds as long as they do.
void Recording::keep_guards() {
  if (ctx().graph) ctx().graph->visitor = nullptr;
  r_.tensors = std::move(visitor_.tensors);
  r_.leaves = std::move(visitor_.leaves);
  r_.modules = std::move(visitor_.modules);
  // Nobody sees the gradient of a leaf that the function has made and dropped.
  for (int64_t i = r_.leaves.size(); i-- > 0;)
    if (r_.leaves[i].leaf->refs == 1 && r_.leaves[i].slot < 0) r_.leaves.erase(i);
}

void Recording::begin() {
  SmallVec<const Tensor*, 4> inputs;
  const SmallVec<MemoryInput, 2> memories = memories_of(inputs_);
  for (const MemoryInput& m : memories) inputs.push_back(m.tensor.get());
  begin_capture(inputs, {.allow_reads = false, .lenient = true, .visitor = &visitor_});
}

// A call that cannot be recorded leaves a record without a plan, which has the reason.
TensorList Recording::run() {
  set_guards();
  visitor_.grad = visit_grad;
  visitor_.outside = visit_outside;
  visitor_.module = visit_module;
  visitor_.node = visit_node;
  visitor_.inputs = inputs_;
  clear_autocast_cache();  // an earlier cast would become a constant
  begin();
  struct End {
    ~End() { drop_capture(ctx()); }
  } end;
  TensorList outs = run_function(f_, inputs_);
  keep_guards();
  try {
    if (!ctx().graph) refuse_record("the function ended the capture that records it");
    finish(outs);
  } catch (...) {
    r_.plan.reset();
    r_.gradients.reset();
    r_.captured.reset();
    r_.reason = Text(ctx().error.message);
    r_.out_of_memory = ctx().error.view.code == TT_OOM || visitor_.failed;
  }
  return outs;
}

}  // namespace

TensorList record(Compiled& f, TensorSpan inputs) {
  NewRecord made(f);
  f.reason = Text();  // none: the function sees that it is being recorded
  TensorList outs = Recording(f, inputs, *made.record).run();
  f.reason = Text(made.record->reason.c_str());
  if (!made.record->out_of_memory) made.keep();
  return outs;
}

}  // namespace TT_NS
