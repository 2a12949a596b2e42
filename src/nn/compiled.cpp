#include "nn/compiled.h"

#include "autograd/node.h"
#include "base/finalizer.h"
#include "base/pointer_map.h"
#include "graph/plan/bind.h"
#include "graph/capture.h"
#include "graph/passes/passes.h"
#include "graph/plan/plan.h"
#include "graph/resize.h"
#include "graph/rewrite.h"
#include "modes/autocast.h"
#include "nn/module.h"
#include "ops/elementwise.h"
#include "ops/impl.h"

#include <string.h>

namespace TT_NS {

// ---- what a record holds for ----

// What the ctx does to every operator.
struct ModeGuard {
  uint64_t include, exclude;
  Dtype default_float;
  Dtype autocast[2];  // on the CPU, on CUDA; kNone: off

  bool operator==(const ModeGuard& o) const {
    return include == o.include && exclude == o.exclude && default_float == o.default_float &&
           autocast[0] == o.autocast[0] && autocast[1] == o.autocast[1];
  }
};

struct InputGuard {
  Dtype dtype;
  Device device;
  bool needs_grad, writable;
  Shape sizes, strides;
};

// A module that was called: its mode and the memories of its parameters and buffers.
struct ModuleGuard {
  ModuleRef module;
  bool training;
  SmallVec<const Storage*, 2> slots;
};

// A tensor from outside that an operator reads or writes.
struct OutsideGuard {
  TensorRef tensor;
  const Storage* data;
  bool needs_grad;
};

// A leaf whose gradient the function reads or adds to before it replaces it.
struct LeafGuard {
  TensorRef leaf;
  const Storage* grad;  // NULL: it has none
  bool replaced;        // the function replaces it first: nothing depends on what it was
};

// ---- how a replay gives a result ----

enum class OutKind : uint8_t {
  kCopy,     // of memory of the plan
  kOfInput,  // an alias of an input
  kOutside,  // an alias of a parameter or a constant
};
struct OutRule {
  OutKind kind;
  int32_t input = -1;  // kOfInput
  int32_t value = -1;  // in the graph
};
// The gradient that a leaf has after the call.
struct GradRule {
  TensorRef leaf;
  TensorRef grad;  // in the memory of the plan; empty: none
  int64_t out;     // which output of the plan it is
};
struct InputRule {
  TensorRef slot;
  int64_t bytes = 0;     // of a dense input
  bool written = false;  // by the function
};

struct CompiledRecord {
  ModeGuard modes;
  SmallVec<InputGuard, 2> inputs;
  SmallVec<ModuleGuard, 1> modules;
  SmallVec<OutsideGuard, 1> tensors;
  SmallVec<LeafGuard, 1> leaves;
  Ref<Graph> captured;       // (Compiled::dynamic) before passes
  bool follows = false;      // it was made from records of other sizes
  bool none_follow[2] = {};  // none could be made from it, by one or by two dimensions
  Ref<Plan> plan;            // empty: the function itself runs
  Text reason;               // then: why
  bool thrown_away = false;  // there was no memory for it: the next call tries again
  SmallVec<InputRule, 2> feeds;
  bool writes_inputs = false;
  SmallVec<OutRule, 2> outs;
  SmallVec<GradRule, 1> grads;
  PointerMap outside;  // storages of parameters, state and constants
};

namespace {

constexpr uint64_t kPassingModes = bit(kKeyAutocast) | bit(kKeyProfile);

ModeGuard modes_now() {
  const Ctx& c = ctx();
  ModeGuard g = {c.include & ~bit(kKeyProfile), c.exclude, c.default_float, {}};
  if (!c.autocast) return g;
  constexpr int32_t kTypes[] = {TT_CPU, TT_CUDA};
  for (int i = 0; i < 2; i++)
    if (autocast_enabled(c, kTypes[i])) g.autocast[i] = autocast_dtype(c, kTypes[i]);
  return g;
}

bool fits_but_sizes(const InputGuard& g, const Tensor& t) {
  return g.dtype == t.dtype && g.device == t.device && g.sizes.size() == t.ndim &&
         g.needs_grad == requires_grad(t) && g.writable == t.storage->writable;
}
bool fits(const InputGuard& g, const Tensor& t) {
  return same(g.sizes, t.sizes()) && same(g.strides, t.strides()) && fits_but_sizes(g, t);
}

const Storage* storage_of(const Module::Slot& slot) {
  return slot.tensor ? slot.tensor->storage : nullptr;
}
bool fits(const ModuleGuard& g) {
  const Module& m = *g.module;
  if (m.training != g.training || m.slots.size() != g.slots.size()) return false;
  for (int64_t i = 0; i < g.slots.size(); i++)
    if (storage_of(m.slots[i]) != g.slots[i]) return false;
  return true;
}

bool fits(const SmallVec<LeafGuard, 1>& leaves) {
  if (leaves.empty()) return true;
  const Lock lock(shared_lock);
  for (const LeafGuard& g : leaves) {
    if (g.replaced) continue;
    const Tensor* grad = borrow_grad(lock, *g.leaf);
    if (g.grad != (grad ? grad->storage : nullptr)) return false;
  }
  return true;
}

// All guards but those of inputs.
bool fits_around(const CompiledRecord& r) {
  if (!(r.modes == modes_now())) return false;
  for (const ModuleGuard& g : r.modules)
    if (!fits(g)) return false;
  for (const OutsideGuard& g : r.tensors)
    if (g.tensor->storage != g.data || requires_grad(*g.tensor) != g.needs_grad) return false;
  return fits(r.leaves);
}
bool fits(const CompiledRecord& r, TensorSpan inputs) {
  if (r.inputs.size() != inputs.n) return false;
  for (int64_t i = 0; i < inputs.n; i++)
    if (!fits(r.inputs[i], *inputs[i])) return false;
  return fits_around(r);
}
bool fits_but_sizes(const CompiledRecord& r, TensorSpan inputs) {
  if (r.inputs.size() != inputs.n) return false;
  for (int64_t i = 0; i < inputs.n; i++)
    if (!fits_but_sizes(r.inputs[i], *inputs[i])) return false;
  return fits_around(r);
}

// ---- running without a record ----

TensorList run_function(Compiled& f, TensorSpan inputs) {
  atomic_fetch_add(&f.n_runs, 1, kRelaxed);
  return call_function(f.fn, f.user, inputs);
}
TensorList run_unrecorded(Compiled& f, TensorSpan inputs, const char* reason) {
  f.reason = Text(reason);
  return run_function(f, inputs);
}

// Why the modes of the ctx need the function itself; NULL: they do not.
const char* reason_of_modes() {
  const Ctx& c = ctx();
  if (c.graph) return "a capture is on";
  if (c.vmap) return "vmap is on";
  if ((c.include & ~c.exclude & kModeKeys & ~kPassingModes) || (c.watched & kWatchWork))
    return "a mode that sees every operator is on";
  if (c.anomaly) return "anomaly detection is on";
  if (c.saved_hooks) return "hooks on saved tensors are on";
  return nullptr;
}

bool share_memory(TensorSpan inputs) {
  for (int64_t i = 1; i < inputs.n; i++)
    for (int64_t j = 0; j < i; j++)
      if (inputs[i]->storage == inputs[j]->storage) return true;
  return false;
}

// ---- recording ----

// Notes what the record depends on. Out of memory, and what cannot be told, end the recording.
struct Visitor : CaptureVisitor {
  SmallVec<ModuleGuard, 1> modules;
  SmallVec<OutsideGuard, 1> tensors;
  SmallVec<LeafGuard, 1> leaves;
  PointerMap seen;
  bool failed = false;
};

void visit_grad(CaptureVisitor& visitor, const Tensor& leaf, bool replaces) {
  auto& v = static_cast<Visitor&>(visitor);
  try {
    if (leaf.grad_fn || !v.seen.add(&leaf)) return;
    const Lock lock(shared_lock);
    const Tensor* grad = borrow_grad(lock, leaf);
    v.leaves.push_back({TensorRef::share(&leaf), grad ? grad->storage : nullptr, replaces});
  } catch (...) {
    v.failed = true;
  }
}
void visit_outside(CaptureVisitor& visitor, const Tensor& t) {
  auto& v = static_cast<Visitor&>(visitor);
  try {
    v.tensors.push_back({TensorRef::share(&t), t.storage, requires_grad(t)});
  } catch (...) {
    v.failed = true;
  }
}
void visit_module(CaptureVisitor& visitor, Module& m) {
  auto& v = static_cast<Visitor&>(visitor);
  try {
    if (!v.seen.add(&m)) return;
    ModuleGuard guard = {ModuleRef::share(&m), m.training, {}};
    for (const Module::Slot& slot : m.slots) guard.slots.push_back(storage_of(slot));
    v.modules.push_back(std::move(guard));
  } catch (...) {
    v.failed = true;
  }
}

[[noreturn]] TT_COLD void refuse(const char* why) { fail(TT_NOT_IMPLEMENTED, "{}", why); }

// The bytes [*low, *high) that a value covers in its storage.
void bytes_of(const IrValue& v, int64_t* low, int64_t* high) {
  int64_t reach = v.numel() ? 1 : 0;
  for (int64_t d = 0; d < v.ndim() && reach; d++) reach += (v.sizes[d] - 1) * v.strides[d];
  *low = v.offset;
  *high = v.offset + reach * item_size(v.dtype);
}

// The function sees only what was given: nothing else of the memory of an input.
void check_inputs(const Graph& g) {
  for (const int32_t input : g.inputs) {
    const int32_t storage = g.values[input].storage;
    int64_t low, high;
    bytes_of(g.values[input], &low, &high);
    for (int32_t i = g.storages[storage].last_value; i >= 0; i = g.values[i].previous) {
      int64_t from, to;
      bytes_of(g.values[i], &from, &to);
      if (from < low || to > high) refuse("the function reaches beyond an input, into its memory");
    }
  }
}

void set_out(CompiledRecord& r, const Graph& g, int64_t i) {
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
    for (int64_t k = 0; k < g.outputs.size(); k++)
      if (k != i && g.values[g.outputs[k]].storage == v.storage)
        refuse("two results, or a result and a gradient, share memory");
  }
  r.outs.push_back(rule);
}

void set_feeds(CompiledRecord& r, const Graph& g, TensorSpan inputs) {
  const SmallVec<bool, 16> written = written_storages(g);
  for (int64_t i = 0; i < inputs.n; i++) {
    InputRule rule;
    rule.slot = plan_slot(*r.plan, false, i);
    if (inputs[i]->is_cpu() && inputs[i]->dense())
      rule.bytes = inputs[i]->numel * inputs[i]->item_size();
    rule.written = written[g.values[g.inputs[i]].storage];
    r.writes_inputs |= rule.written;
    r.feeds.push_back(std::move(rule));
  }
}

// Gives the record the plan of a graph; the first n_outs outputs are results of the function.
void set_plan(CompiledRecord& r, const Graph& captured, int64_t n_outs, TensorSpan inputs) {
  const Ref<Graph> graph = optimized(captured, kExactPasses);
  const Graph& g = *graph;
  check_inputs(g);
  r.plan = new_plan(graph, nullptr, 0, n_outs);
  for (int64_t i = 0; i < n_outs; i++) set_out(r, g, i);
  set_feeds(r, g, inputs);
  for (const IrStorage& s : g.storages)
    if (s.tensor && s.role != IrRole::kInput) r.outside.add(s.tensor->storage);
}

class Recording {
 public:
  Recording(Compiled& f, TensorSpan inputs, CompiledRecord& r) : f_(f), inputs_(inputs), r_(r) {}
  TensorList run();

 private:
  void set_guards();
  void finish(const TensorList& outs);
  void keep_guards();
  void make_plan(const TensorList& outs);
  void set_grads(const Graph& g, int64_t n_outs);

  Compiled& f_;
  TensorSpan inputs_;
  CompiledRecord& r_;
  Visitor visitor_ = {};
  SmallVec<TensorRef, 4> grads_;  // of visitor_.leaves, after the call
};

void Recording::set_guards() {
  r_.modes = modes_now();
  for (const Tensor* t : inputs_)
    r_.inputs.push_back({t->dtype, t->device, requires_grad(*t), t->storage->writable,
                         Shape(t->sizes()), Shape(t->strides())});
}

void Recording::set_grads(const Graph& g, int64_t n_outs) {
  int64_t out = n_outs;
  for (int64_t i = 0; i < grads_.size(); i++) {
    const LeafGuard& leaf = visitor_.leaves[i];
    if (!grads_[i]) {
      if (leaf.grad || leaf.replaced) r_.grads.push_back({leaf.leaf, {}, -1});
      continue;
    }
    const int64_t at = out++;
    if (g.storages[g.values[g.outputs[at]].storage].role == IrRole::kMade)
      r_.grads.push_back({leaf.leaf, plan_slot(*r_.plan, true, at), at});
    else if (grads_[i]->storage != leaf.grad)
      refuse("the function sets a gradient to a tensor that it has not computed");
  }
}

void Recording::make_plan(const TensorList& outs) {
  SmallVec<const Tensor*, 8> outputs;
  for (const TensorRef& t : outs) {
    if (requires_grad(*t))
      refuse(
          "a result needs a gradient: compile the whole step, with backward, or turn "
          "gradients off");
    outputs.push_back(t.get());
  }
  for (const TensorRef& t : grads_)
    if (t) outputs.push_back(t.get());
  Text reason;
  const Ref<Graph> captured = end_capture(outputs, &reason);
  if (!captured) refuse(reason.c_str());
  if (visitor_.failed) fail(TT_OOM, "no memory for the guards of a compiled function");
  set_plan(r_, *captured, outs.size(), inputs_);
  set_grads(*r_.plan->graph, outs.size());
  if (f_.dynamic) r_.captured = captured;
}

void Recording::finish(const TensorList& outs) {
  ctx().graph->visitor = nullptr;
  for (const LeafGuard& l : visitor_.leaves) grads_.push_back(TensorRef(grad_of(*l.leaf)));
  make_plan(outs);
}

// They hold for the reason why there is no plan, too.
void Recording::keep_guards() {
  r_.tensors = std::move(visitor_.tensors);
  r_.leaves = std::move(visitor_.leaves);
  r_.modules = std::move(visitor_.modules);
}

// The record is kept unless memory was short; without a plan it says that there is none.
TensorList Recording::run() {
  set_guards();
  visitor_.grad = visit_grad;
  visitor_.outside = visit_outside;
  visitor_.module = visit_module;
  clear_autocast_cache();  // a cast of before would be a constant
  begin_capture(inputs_, {.allow_reads = false, .lenient = true, .visitor = &visitor_});
  struct End {
    ~End() { drop_capture(ctx()); }
  } end;
  TensorList outs = run_function(f_, inputs_);
  try {
    if (!ctx().graph) refuse("the function ended the capture that records it");
    finish(outs);
  } catch (...) {
    r_.plan.reset();
    r_.captured.reset();
    r_.reason = Text(ctx().error.message);
    r_.thrown_away = ctx().error.view.code == TT_OOM || visitor_.failed;
  }
  keep_guards();
  return outs;
}

// ---- replaying ----

// What the function writes is bound only if it is no part of another input.
bool overlaps_others(TensorSpan inputs, int64_t i) {
  const char *low, *high, *from, *to;
  byte_range(*inputs[i], &low, &high);
  for (int64_t k = 0; k < inputs.n; k++) {
    if (k == i) continue;
    byte_range(*inputs[k], &from, &to);
    if (from < high && low < to) return true;
  }
  return false;
}

// Returns whether the plan uses the input where it is.
bool bind_input(const CompiledRecord& r, TensorSpan inputs, int64_t i) {
  SlotBinding& slot = r.plan->bound_inputs[i];
  if (TT_LIKELY(slot.placement < 0)) return false;
  char* const data = inputs[i]->data;
  const bool binds =
      may_bind(*r.plan, slot, data) && !(r.writes_inputs && overlaps_others(inputs, i));
  bind_slot(slot, binds ? data : slot.own);
  return binds;
}

void feed(const InputRule& rule, const Tensor& t) {
  if (TT_LIKELY(rule.bytes != 0)) memcpy(rule.slot->data, t.data, size_t(rule.bytes));
  else if (t.numel) copy_elements(*rule.slot, t);
}

TensorRef new_out(const CompiledRecord& r, const OutRule& rule, TensorSpan inputs) {
  const Graph& g = *r.plan->graph;
  const IrValue& v = g.values[rule.value];
  if (rule.kind == OutKind::kOutside) {
    const Tensor& outside = *g.storages[v.storage].tensor;
    return new_alias(outside, v.sizes, v.strides, outside.storage->data + v.offset, v.dtype);
  }
  if (rule.kind == OutKind::kOfInput) {
    const Tensor& in = *inputs[rule.input];
    const int64_t shift = v.offset - g.values[g.inputs[rule.input]].offset;
    return new_alias(in, v.sizes, v.strides, in.data + shift, v.dtype);
  }
  return new_strided(v.sizes, v.strides, v.dtype, g.storages[v.storage].device);
}

void bind_output(const CompiledRecord& r, int64_t i, const Tensor& to) {
  SlotBinding& slot = r.plan->bound_outputs[i];
  if (TT_LIKELY(slot.placement < 0)) return;
  const bool binds = r.outs[i].kind == OutKind::kCopy && may_bind(*r.plan, slot, to.data);
  bind_slot(slot, binds ? to.data : slot.own);
}
bool is_at(const SlotBinding& slot, const Tensor& t) {
  return slot.placement >= 0 && slot.now == t.data;
}

void copy_out(const CompiledRecord& r, int64_t i, Tensor& to) {
  if (!to.numel) return;
  if (TT_LIKELY(to.is_cpu() && to.dense())) {
    memcpy(to.data, r.plan->outputs[i], size_t(to.numel * to.item_size()));
    return;
  }
  copy_elements(to, *plan_slot(*r.plan, true, i));
}

void set_leaves(const CompiledRecord& r) {
  for (const GradRule& rule : r.grads) {
    {
      const Lock lock(shared_lock);
      if (borrow_grad(lock, *rule.leaf) == rule.grad.get()) continue;
    }
    set_grad(*rule.leaf, rule.grad);
  }
}

TensorList replay(Compiled& f, const CompiledRecord& r, TensorSpan inputs, int64_t cap,
                  int64_t* n_outs) {
  const int64_t n = r.outs.size();
  if (n > cap) {
    *n_outs = n;
    fail_arg(TT_BUFFER_TOO_SMALL, "outs", "outs has room for {}, there are {}", cap, n);
  }
  const MaskGuard no_grad(bit(kKeyAutograd));
  atomic_fetch_add(&f.n_replays, 1, kRelaxed);
  TensorList outs;
  outs.reserve(n);
  for (const OutRule& rule : r.outs) outs.push_back(new_out(r, rule, inputs));
  for (int64_t i = 0; i < inputs.n; i++)
    if (!bind_input(r, inputs, i)) feed(r.feeds[i], *inputs[i]);
  for (int64_t i = 0; i < n; i++) bind_output(r, i, *outs[i]);
  run_plan(*r.plan, -1);
  for (int64_t i = 0; i < inputs.n; i++) {
    if (TT_LIKELY(!r.feeds[i].written)) continue;
    auto& input = const_cast<Tensor&>(*inputs[i]);
    if (!is_at(r.plan->bound_inputs[i], input)) copy_elements(input, *r.feeds[i].slot);
    input.bump_version();
  }
  for (int64_t i = 0; i < n; i++)
    if (r.outs[i].kind == OutKind::kCopy && !is_at(r.plan->bound_outputs[i], *outs[i]))
      copy_out(r, i, *outs[i]);
  if (!r.grads.empty()) set_leaves(r);
  return outs;
}

// ---- the object ----

void free_record(CompiledRecord* r) noexcept {
  r->~CompiledRecord();
  mem_free(r, sizeof *r);
}

// The right to use the records.
class Use {
 public:
  explicit Use(Compiled& f) : f_(f), mine(!atomic_exchange(&f.busy, 1, kAcquire)) {}
  ~Use() {
    if (mine) atomic_store(&f_.busy, 0, kRelease);
  }
  Use(const Use&) = delete;

 private:
  Compiled& f_;

 public:
  const bool mine;
};

class NewRecord {
 public:
  explicit NewRecord(Compiled& f) : f_(f) {
    f.records.reserve(f.records.size() + 1);
    record = new (mem_alloc(sizeof(CompiledRecord))) CompiledRecord{};
  }
  ~NewRecord() {
    if (record) free_record(record);
  }
  NewRecord(const NewRecord&) = delete;
  void keep() { f_.records.push_back(std::exchange(record, nullptr)); }

 private:
  Compiled& f_;

 public:
  CompiledRecord* record;
};

TensorList record(Compiled& f, TensorSpan inputs) {
  NewRecord made(f);
  TensorList outs = Recording(f, inputs, *made.record).run();
  f.reason = Text(made.record->reason.c_str());
  if (!made.record->thrown_away) made.keep();
  return outs;
}

int64_t num_recorded(const Compiled& f) {
  int64_t n = 0;
  for (const CompiledRecord* r : f.records) n += !r->follows;
  return n;
}

// ---- records of other sizes ----

constexpr int64_t kMostFollowing = 16;  // records that follow from others
// A size of 1 broadcasts, and 0 computes nothing: nothing follows from them or for them.
constexpr int64_t kLeastSize = 2;

// Records of one computation: what follows from the graphs of all but the last must be what the
// last one is.
using Family = SmallVec<CompiledRecord*, 5>;
using Graphs = SmallVec<const Graph*, 5>;

bool differs_by_small(const CompiledRecord& r, TensorSpan inputs) {
  for (int64_t i = 0; i < inputs.n; i++)
    for (int64_t d = 0; d < inputs[i]->ndim; d++) {
      const int64_t a = r.inputs[i].sizes[d], b = inputs[i]->sizes()[d];
      if (a != b && min(a, b) < kLeastSize) return true;
    }
  return false;
}

// The first recorded calls of which `inputs` could be another one with other sizes.
SmallVec<CompiledRecord*, 8> relatives_of(const Compiled& f, TensorSpan inputs) {
  constexpr int64_t kMost = 8;
  SmallVec<CompiledRecord*, 8> found;
  for (CompiledRecord* r : f.records)
    if (found.size() < kMost && r->captured && fits_but_sizes(*r, inputs) &&
        !differs_by_small(*r, inputs))
      found.push_back(r);
  return found;
}

// Whether the sizes of both records differ from those of the call in the same proportions.
bool in_line(const CompiledRecord& a, const CompiledRecord& b, TensorSpan inputs) {
  int64_t by_a = 0, by_b = 0;  // how much the first size differs
  for (int64_t i = 0; i < inputs.n; i++)
    for (int64_t d = 0; d < inputs[i]->ndim; d++) {
      const int64_t size = inputs[i]->sizes()[d];
      const int64_t x = a.inputs[i].sizes[d] - size, y = b.inputs[i].sizes[d] - size;
      if (!by_a && !by_b) {
        by_a = x;
        by_b = y;
      }
      if (double(x) * double(by_b) != double(y) * double(by_a)) return false;
    }
  return by_a && by_b && by_a != by_b;
}

Graphs graphs_of(const Family& family, int64_t n) {
  Graphs graphs;
  for (int64_t i = 0; i < n; i++) graphs.push_back(family[i]->captured.get());
  return graphs;
}

// Three calls which differ from this one in one dimension; empty: there are no such.
Family line_of(Span<CompiledRecord* const> relatives, TensorSpan inputs) {
  for (int64_t i = 0; i < relatives.n; i++) {
    Family found({relatives[i]});
    for (int64_t k = i + 1; k < relatives.n && found.size() < 3; k++)
      if (in_line(*relatives[i], *relatives[k], inputs)) found.push_back(relatives[k]);
    if (found.size() == 3) return found;
  }
  return {};
}

// Five calls in which two dimensions differ, of which four tell all factors.
Family plane_of(Span<CompiledRecord* const> relatives) {
  constexpr int64_t kGraphs = 4;
  if (relatives.n <= kGraphs) return {};
  for (int64_t set = 0; set < int64_t(1) << relatives.n; set++) {
    Family found;
    for (int64_t i = 0; i < relatives.n; i++)
      if (set >> i & 1) found.push_back(relatives[i]);
    if (found.size() != kGraphs || !Growth::fits(graphs_of(found, kGraphs))) continue;
    for (int64_t i = 0; i < relatives.n && found.size() == kGraphs; i++)
      if (!(set >> i & 1)) found.push_back(relatives[i]);
    return found.size() > kGraphs ? found : Family();
  }
  return {};
}

// A text has not all digits of numbers.
bool same_numbers(const IrNode& a, const IrNode& b) {
  for (int64_t i = 0; i < a.args.size(); i++) {
    const IrArg &x = a.args[i], &y = b.args[i];
    if (memcmp(&x.f, &y.f, sizeof x.f) || memcmp(&x.scalar.re, &y.scalar.re, sizeof x.scalar.re))
      return false;
  }
  return true;
}
// Whether they compute the same; objects are compared by resize_graph.
bool same_graph(const Graph& a, const Graph& b) {
  if (a.draws.size() != b.draws.size() || a.nodes.size() != b.nodes.size()) return false;
  for (int64_t i = 0; i < a.draws.size(); i++)
    if (a.draws[i].counters != b.draws[i].counters) return false;
  for (int64_t i = 0; i < a.nodes.size(); i++)
    if (a.nodes[i].args.size() != b.nodes[i].args.size() || !same_numbers(a.nodes[i], b.nodes[i]))
      return false;
  Text x, y;
  print_graph(a, x);
  print_graph(b, y);
  return x.is(y.c_str());
}

// The graph of a call with these inputs, empty if it does not follow from the family.
Ref<Graph> following_graph(const Compiled& f, const Family& family, TensorSpan inputs) {
  const int64_t n = family.size() - 1;
  const Graphs graphs = graphs_of(family, n);
  const Graph& check = *family[n]->captured;
  try {
    const Growth growth(graphs);
    Shape checked, sizes;
    for (int64_t i = 0; i < growth.n_dims(); i++) {
      const DynamicDim& d = growth.dim(i);
      checked.push_back(check.values[check.inputs[d.input]].sizes[d.dim]);
      sizes.push_back(inputs[d.input]->sizes()[d.dim]);
    }
    if (!same_graph(*resize_graph(graphs, checked, f.dynamic), check))
      fail(TT_NOT_IMPLEMENTED, "the last size does not follow from the others");
    Ref<Graph> g = resize_graph(graphs, sizes, f.dynamic);
    for (int64_t i = 0; i < inputs.n; i++) {
      const IrValue& v = g->values[g->inputs[i]];
      if (!same(v.sizes, inputs[i]->sizes()) || !same(v.strides, inputs[i]->strides())) return {};
    }
    return g;
  } catch (...) {
    if (ctx().error.view.code == TT_OOM) throw;
    family[0]->none_follow[n > 2] = true;
    return {};
  }
}

void drop_oldest_following(Compiled& f) noexcept {
  int64_t n = 0, oldest = -1;
  for (int64_t i = 0; i < f.records.size(); i++) {
    if (!f.records[i]->follows) continue;
    if (oldest < 0) oldest = i;
    n++;
  }
  if (n < kMostFollowing) return;
  free_record(f.records[oldest]);
  f.records.erase(oldest);
}

void copy_guards(const CompiledRecord& from, TensorSpan inputs, CompiledRecord& to) {
  to.modes = from.modes;
  for (int64_t i = 0; i < inputs.n; i++) {
    InputGuard guard = from.inputs[i];
    guard.sizes = Shape(inputs[i]->sizes());
    guard.strides = Shape(inputs[i]->strides());
    to.inputs.push_back(std::move(guard));
  }
  for (const ModuleGuard& g : from.modules) to.modules.push_back(g);
  for (const OutsideGuard& g : from.tensors) to.tensors.push_back(g);
  for (const LeafGuard& g : from.leaves) to.leaves.push_back(g);
}

// Finds a family from which the graph of a call with these inputs follows.
Ref<Graph> find_following(const Compiled& f, TensorSpan inputs, Family& family) {
  const SmallVec<CompiledRecord*, 8> relatives = relatives_of(f, inputs);
  if (relatives.empty()) return {};
  Ref<Graph> found;
  family = line_of(relatives, inputs);
  if (!family.empty() && !family[0]->none_follow[0]) found = following_graph(f, family, inputs);
  if (found || relatives[0]->none_follow[1]) return found;
  family = plane_of(relatives);
  if (!family.empty()) return following_graph(f, family, inputs);
  if (num_recorded(f) >= f.limit) relatives[0]->none_follow[1] = true;
  return {};
}

// Makes a record for these inputs from those of other sizes. Returns NULL if none follows.
CompiledRecord* follow(Compiled& f, TensorSpan inputs) {
  if (!f.dynamic) return nullptr;
  Family family;
  const Ref<Graph> captured = find_following(f, inputs, family);
  if (!captured) return nullptr;
  const CompiledRecord& first = *family[0];
  NewRecord made(f);
  CompiledRecord& r = *made.record;
  r.follows = true;
  copy_guards(first, inputs, r);
  set_plan(r, *captured, first.outs.size(), inputs);
  for (const GradRule& rule : first.grads)
    r.grads.push_back(
        {rule.leaf, rule.out < 0 ? TensorRef() : plan_slot(*r.plan, true, rule.out), rule.out});
  drop_oldest_following(f);
  made.keep();
  return &r;
}

}  // namespace

Ref<Compiled> new_compiled(ApplicationFn fn, void* user, void (*drop)(void*), int64_t limit,
                           SameObject dynamic) {
  auto* f = new (mem_alloc(sizeof(Compiled))) Compiled{};
  f->tag = kTagCompiled;
  f->refs = 1;
  f->fn = fn;
  f->user = user;
  f->drop = drop;
  f->limit = limit;
  f->dynamic = dynamic;
  return Ref<Compiled>::adopt(f);
}

void Compiled::destroy(Compiled* f) noexcept {
  static_assert(sizeof(Compiled) >= kDropBytes);
  f->tag = 0;
  for (CompiledRecord* r : f->records) free_record(r);
  void (*const drop)(void*) = f->drop;
  void* const user = f->user;
  f->~Compiled();
  drop_and_free(f, sizeof *f, drop, user);
}

static CompiledRecord* find_record(const Compiled& f, TensorSpan inputs) {
  for (CompiledRecord* r : f.records)
    if (fits(*r, inputs)) return r;
  return nullptr;
}

TensorList call_compiled(Compiled& f, TensorSpan inputs, int64_t cap, int64_t* n_outs) {
  const Use use(f);
  if (!use.mine) return run_function(f, inputs);
  if (const char* reason = reason_of_modes()) return run_unrecorded(f, inputs, reason);
  if (share_memory(inputs)) return run_unrecorded(f, inputs, "inputs share memory");
  CompiledRecord* found = find_record(f, inputs);
  if (!found) found = follow(f, inputs);
  if (found) {
    if (!found->plan) return run_unrecorded(f, inputs, found->reason.c_str());
    for (const Tensor* t : inputs)
      if (found->outside.find(t->storage) >= 0)
        return run_unrecorded(f, inputs, "an input shares memory with state of the function");
    return replay(f, *found, inputs, cap, n_outs);
  }
  if (num_recorded(f) >= f.limit)
    return run_unrecorded(f, inputs, "there are as many records as the limit allows");
  return record(f, inputs);
}

int64_t num_plans(const Compiled& f) {
  int64_t n = 0;
  for (const CompiledRecord* r : f.records) n += bool(r->plan);
  return n;
}

void drop_records(Compiled& f) {
  const Use use(f);
  if (!use.mine) fail_arg(TT_INVALID_ARG, "f", "f is running: its records are in use");
  for (CompiledRecord* r : f.records) free_record(r);
  f.records = {};
  f.reason = Text();
}

}  // namespace TT_NS
