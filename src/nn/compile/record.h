// A record of a compiled function: its guards, and the plan that replays run.
#pragma once

#include "base/pointer_map.h"
#include "graph/plan/plan.h"
#include "nn/compile/compiled.h"
#include "nn/module.h"

namespace TT_NS {

// ---- guards: what must be as in the recorded call ----

// What the ctx does to every operator.
struct ModeGuard {
  KeySet include, exclude;
  Dtype default_float;
  Dtype autocast[2];  // on the CPU, on CUDA; kNone: off

  bool operator==(const ModeGuard& o) const {
    return include == o.include && exclude == o.exclude && default_float == o.default_float &&
           autocast[0] == o.autocast[0] && autocast[1] == o.autocast[1];
  }
};

// How an input shares memory with those before it.
struct Sharing {
  int32_t memory = -1;   // the first one in the same memory; -1: none
  int32_t same = -1;     // the first one that is the same tensor; -1: none
  int64_t distance = 0;  // bytes from the first element of `memory` to its own

  bool operator==(const Sharing& o) const {
    return memory == o.memory && same == o.same && distance == o.distance;
  }
};

struct InputGuard {
  Dtype dtype;
  Device device;
  bool needs_grad, has_history, writable;
  bool becomes_leaf = false;  // the function lets it require a gradient
  Sharing sharing;
  uint64_t hooks;  // HookList::mark of a leaf
  Shape sizes, strides;
};

// The tensor in a slot of a module, which may be exchanged for a view of its memory.
struct SlotGuard {
  const Tensor* tensor = nullptr;
  const Storage* storage = nullptr;

  explicit SlotGuard(const Module::Slot& slot);
  bool operator==(const SlotGuard& other) const {
    return tensor == other.tensor && storage == other.storage;
  }
};

// A module that was called: its mode and the memories of its parameters and buffers.
struct ModuleGuard {
  ModuleRef module;
  bool training;
  uint64_t hooks;  // HookList::mark
  SmallVec<SlotGuard, 2> slots;
};

// Where a tensor is, and its form: a tensor can move inside its storage, or be transposed there.
struct Place {
  const Storage* storage = nullptr;  // NULL: there is no tensor
  const char* data = nullptr;
  Dtype dtype = Dtype::kNone;
  Shape sizes, strides;

  Place() = default;
  explicit Place(const Tensor& t);
  bool holds(const Tensor& t) const;
};

// A tensor from outside that an operator reads or writes.
struct OutsideGuard {
  TensorRef tensor;
  Place place;
  bool needs_grad;
};

// A leaf whose gradient the function reads or adds to before it replaces it.
struct LeafGuard {
  TensorRef leaf;
  Place grad;          // in no storage: it has none
  bool replaced;       // the function replaces it first: nothing depends on what it was
  uint64_t hooks;      // HookList::mark
  int32_t slot = -1;   // the input of the plan that the gradient is, in any memory; -1: none
  int64_t input = -1;  // which input it is, then leaf is empty; -1: none

  const Tensor& of(TensorSpan inputs) const { return input < 0 ? *leaf : *inputs[input]; }
};

// ---- how a replay gives a result ----

enum class OutKind : uint8_t {
  kCopy,     // of memory of the plan
  kShared,   // the same, in memory of several results
  kOfInput,  // an alias of an input
  kOutside,  // an alias of a parameter or a constant
};
struct OutRule {
  OutKind kind;
  int32_t input = -1;  // kOfInput
  int32_t first = -1;  // kShared: the first result in that memory
  int32_t value = -1;  // in the graph
};
// The gradient that a leaf has after the call. That of an input, one that the function returns, and
// each one since the application has kept one, is new in each call.
struct GradRule {
  TensorRef leaf;
  TensorRef grad;       // in the memory of the plan; empty: none
  int64_t out;          // which output of the plan it is
  int64_t result = -1;  // the result of the function with which it shares memory; -1: none
  int64_t input = -1;   // the input that is the leaf, which is empty then; -1: none
  bool is_fresh = false;

  const Tensor& of(TensorSpan inputs) const { return input < 0 ? *leaf : *inputs[input]; }
  bool is_new() const { return is_fresh || result >= 0 || input >= 0; }
};
// What an input of the plan is: inputs of the function that share a memory, or a gradient.
struct InputRule {
  TensorRef slot;
  int64_t input = -1;    // of the function, in whose memory it is; -1: the gradient of `leaf`
  int64_t leaf = -1;     // in CompiledRecord::leaves
  int64_t shift = 0;     // bytes from the first element of that tensor to the slot's first one
  int64_t bytes = 0;     // of a dense slot
  bool written = false;  // by the function
};

// A plan, where its inputs come from and how its results are given.
struct Replay {
  Ref<Plan> plan;
  SmallVec<InputRule, 2> feeds;  // those of inputs, then those of gradients
  bool writes_inputs = false;
  SmallVec<OutRule, 2> outs;
};

// ---- gradients of results ----

// What a gradient belongs to: an input of the function, or a leaf from outside.
struct GradTarget {
  int64_t input = -1;
  TensorRef leaf;             // empty for an input
  SmallVec<bool, 2> reached;  // for each of CompiledGradients::results: whether it depends on this
};

// How the node of a call computes gradients, if results of the function require them. The replay
// gets `inputs` of the function, then the memories that the call has made for it, then the
// gradients of `results`. It gives one gradient for each target.
struct CompiledGradients {
  RefCount refs;
  uint32_t busy;  // atomic: a thread runs the plan
  Replay replay;
  SmallVec<int64_t, 2> inputs;
  SmallVec<int64_t, 1> results;
  SmallVec<int64_t, 1> views;      // results in memory of others
  SmallVec<int32_t, 1> draws;      // random numbers of the call that it uses: in Graph::draws
  SmallVec<TensorRef, 4> outside;  // parameters and constants that it reads where they are
  SmallVec<GradTarget, 4> targets;
  int64_t n_nodes;  // of the captured graph: those of the call
  // For gradients that are recorded, the function itself runs again.
  Ref<CompiledLink> function;
  ModeGuard modes;
  bool runs_again = false;        // it may: it draws nothing, and writes no inputs and no state
  SmallVec<TensorRef, 4> others;  // then: what the function reads besides `outside`
  static void destroy(CompiledGradients*) noexcept;
};

struct CompiledRecord : Replay {
  ModeGuard modes;
  SmallVec<InputGuard, 2> inputs;
  SmallVec<ModuleGuard, 1> modules;
  SmallVec<OutsideGuard, 1> tensors;
  SmallVec<LeafGuard, 1> leaves;
  Ref<Graph> captured;               // (Compiled::dynamic) before passes
  bool derived = false;              // from records of other sizes
  bool underivable[2] = {};          // none could be derived from it, by one or by two dimensions
  Text reason;                       // without a plan: why the function itself runs
  bool out_of_memory = false;        // the record is not kept: the next call tries again
  int64_t n_results = 0;             // `outs` has these, then the memories that the gradients need
  Ref<CompiledGradients> gradients;  // empty: no result has gradients
  SmallVec<int64_t, 1> spent;        // results whose history the function has freed
  SmallVec<GradRule, 1> grads;
  PointerMap outside;                // storages of parameters, state and constants
  SmallVec<Ref<Object>, 1> objects;  // that operators of the plan are called with
};

ModeGuard modes_now();
// While it exists, the ctx has these modes.
class ModeScope {
 public:
  explicit ModeScope(const ModeGuard& modes);
  ~ModeScope();
  ModeScope(const ModeScope&) = delete;

 private:
  const KeySet include_, exclude_;
  const Dtype default_float_;
};
uint64_t mark_of_hooks(const Lock& locked, const Tensor& leaf);
// Whether a gradient, of which the caller knows `refs` references, can be an input of the plan:
// nothing else is in its memory.
bool is_alone(const Tensor& grad, RefCount refs);
bool fits(CompiledRecord& r, TensorSpan inputs);
bool fits_but_sizes(CompiledRecord& r, TensorSpan inputs);

// The inputs that share a memory are one input of the plan: the bytes that all of them are in.
struct MemoryInput {
  TensorRef tensor;
  int64_t input = -1;     // one of them
  int64_t shift = 0;      // bytes from its first element to that of `tensor`
  bool has_gaps = false;  // `tensor` has elements that are in no input
};
// How inputs share memory: asked for one after the other, from the first on.
class Sharings {
 public:
  explicit Sharings(TensorSpan inputs) : inputs_(inputs) {}
  Sharing of(int64_t i);

 private:
  static constexpr int64_t kFew = 32;  // compared with each other

  TensorSpan inputs_;
  PointerMap memories_, tensors_;  // the first input that has it
};
SmallVec<MemoryInput, 2> memories_of(TensorSpan inputs);
// Why no plan can get the memories of these inputs, or NULL.
const char* reason_against_memories(TensorSpan inputs);
// Whether inputs of different storages share bytes, as two imports of one array.
bool storages_overlap(TensorSpan inputs);

// Fails: the call cannot be recorded.
[[noreturn]] TT_COLD void refuse_record(const char* why);
TensorList run_function(Compiled& f, TensorSpan inputs);
// Runs the function and keeps a record of the call.
TensorList record(Compiled& f, TensorSpan inputs);
// Whether the application has a gradient of an earlier replay, which the next one would overwrite.
bool holds_gradient(const CompiledRecord& r);
// Replaces the plan by one in other memory, of which each call copies gradients.
void renew_gradients(CompiledRecord& r);
// Gives the record the plan of a graph; the first n_outs outputs are results of the function.
void set_plan(CompiledRecord& r, const Graph& captured, int64_t n_outs, TensorSpan inputs);
// The plan of an optimized graph, with all outputs as results, but without feeds.
void set_replay(Replay& r, const Graph& captured, const Ref<Graph>& optimized, int64_t n_outs);
void add_feed(Replay& r, InputRule rule, bool written);
// The record holds only as long as the objects of the graph are current.
void keep_objects(CompiledRecord& r, const Graph& g);
// Fails with BUFFER_TOO_SMALL, and sets *n_outs, if there are more than cap results.
TensorList replay(Compiled& f, const CompiledRecord& r, TensorSpan inputs, int64_t cap,
                  int64_t* n_outs);
TensorList run_replay(const Replay& r, TensorSpan inputs);
// Derives a record for these inputs from those of other sizes. Returns NULL if it cannot.
CompiledRecord* derive_record(Compiled& f, TensorSpan inputs);

void free_record(CompiledRecord* r) noexcept;
// The number of records of calls of the function, without derived ones.
int64_t num_recorded(const Compiled& f);

// A record that is dropped with its owner unless it is kept.
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

  CompiledRecord* record;

 private:
  Compiled& f_;
};

}  // namespace TT_NS
