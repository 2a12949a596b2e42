#include "graph/capture.h"

#include "base/memory/blocks.h"
#include "base/pointer_map.h"
#include "core/graph_hooks.h"
#include "dispatch/call.h"
#include "graph/args.h"
#include "ops/gen/ops.h"

#include <string.h>

namespace TT_NS {

namespace {

struct Capture : GraphHooks, WorkObserver {
  Ref<Graph> graph;
  CaptureOptions options;
  int64_t mark = 0;    // of the storages that recorded nodes have made, in Storage::reserved_
  PointerMap outside;  // storage from outside -> its position
  SmallVec<uint32_t, 16> versions;  // of each storage of the graph, after the last node
  int32_t scope = -1;               // the innermost open one
  const char* composite = nullptr;  // the operator of the innermost composite
  bool in_node = false;             // a recorded operator is running
  bool node_reads = false;
  bool refused = false;    // (CaptureOptions::lenient) nothing more is recorded
  tt_status code = TT_OK;  // of the failure that ended the recording, and its message
  char reason[256] = {};
  SmallVec<Rng, 1> drawn;  // of each draw: its begin
  // (CaptureOptions::deferred) generators as they were before the capture drew from them
  struct Drawn {
    Ref<Generator> generator;
    Rng before;
  };
  SmallVec<Drawn, 1> generators;
};

// Lowerings have hooks, too; they place storages.
Capture* of(const Ctx& c) {
  return c.graph && !c.graph->place ? static_cast<Capture*>(c.graph) : nullptr;
}

// Storage::reserved_[0] is `mark` in the storages that this capture has recorded, [1] their
// position. Marks of other captures, and 0, are of storages from outside.
int64_t new_mark() {
  static int64_t last = 0;
  return atomic_add_fetch(&last, 1, kRelaxed);
}

// Runs f, a part of the recording. Returns false if that has failed and the capture is lenient.
template <class F> bool recorded(Capture& c, F f) {
  try {
    f();
    return true;
  } catch (...) {
    if (!c.options.lenient) throw;
    c.refused = true;
    c.code = ctx().error.view.code;
    memcpy(c.reason, ctx().error.message, sizeof c.reason - 1);
    return false;
  }
}

int32_t storage_of(Capture& c, const Tensor& t, uint32_t version, bool made) {
  Storage& s = *t.storage;
  if (s.reserved_[0] == c.mark) return int32_t(s.reserved_[1]);
  Graph& g = *c.graph;
  const auto next = int32_t(g.storages.size());
  if (!made) {
    const int64_t known = c.outside.find(&s);
    if (known >= 0) return int32_t(known);
  }
  IrStorage storage;
  storage.role = made ? IrRole::kMade : IrRole::kConstant;
  storage.writable = s.writable;
  storage.device = s.device;
  storage.bytes = s.bytes;
  storage.version = version;
  if (!made) storage.tensor = new_alias(t);
  c.versions.reserve(next + 1);
  g.storages.push_back(std::move(storage));
  c.versions.push_back(version);
  if (made) {
    s.reserved_[0] = c.mark;
    s.reserved_[1] = next;
  } else {
    c.outside.find_or_add(&s, next);
    if (c.visitor) c.visitor->outside(*c.visitor, t);
  }
  return next;
}

// The last node that wrote the storage at this version; -1: none.
int32_t writer_of(const Graph& g, int32_t storage, uint32_t version) {
  for (int32_t i = g.storages[storage].last_value; i >= 0; i = g.values[i].previous)
    if (g.values[i].version == version) return g.values[i].node;
  return -1;
}

int32_t value_of(Capture& c, const Tensor& t, int32_t storage, uint32_t version, int32_t node,
                 int32_t out) {
  Graph& g = *c.graph;
  const int64_t offset = t.data - t.storage->data;
  // Versions only grow, so values of this one are the newest.
  for (int32_t i = g.storages[storage].last_value; i >= 0; i = g.values[i].previous) {
    const IrValue& v = g.values[i];
    if (v.version < version) break;
    if (v.has_form(version, t.dtype, offset, t.sizes(), t.strides())) return i;
  }
  return g.add_value(storage, version, t.dtype, offset, t.sizes(), t.strides(), node, out);
}

// The version is read once: another thread may write the tensor meanwhile.
int32_t read_value(Capture& c, const Tensor* t) {
  if (!t) return -1;
  const uint32_t version = t->version();
  const int32_t storage = storage_of(c, *t, version, false);
  const uint32_t known = c.versions[storage];
  if (version != known)
    fail(TT_INVALID_ARG,
         "a tensor {} was written during the capture by something that it does not record "
         "(another thread or ctx): it has version {}, the graph knows version {}",
         t->sizes(), version, known);
  const int32_t value =
      value_of(c, *t, storage, version, writer_of(*c.graph, storage, version), -1);
  const Graph& g = *c.graph;
  const IrRole role = g.storages[storage].role;
  const bool is_outside = role == IrRole::kConstant || role == IrRole::kState;
  if (c.visitor && is_outside && g.values[value].out < 0) c.visitor->outside(*c.visitor, *t);
  return value;
}

// ---- arguments ----

int32_t draw_of(const Capture& c, const Rng& rng, uint64_t* before) {
  for (int64_t i = c.drawn.size(); i-- > 0;) {
    const Rng& begin = c.drawn[i];
    *before = rng.offset - begin.offset;
    if (rng.seed == begin.seed && *before <= c.graph->draws[i].counters) return int32_t(i);
  }
  return -1;
}

IrArg record_arg(Capture& c, const Value& v, const OpSchema& schema) {
  IrArg a;
  a.kind = v.kind;
  switch (v.kind) {
    case Value::kNone: break;
    case Value::kTensor: a.values.push_back(read_value(c, v.tensor)); break;
    case Value::kTensorList:
      for (int64_t i = 0; i < v.n; i++) a.values.push_back(read_value(c, v.tensors[i]));
      break;
    case Value::kScalar: a.scalar = *v.scalar; break;
    case Value::kInt:
    case Value::kBool:
    case Value::kDevice: a.i = v.i; break;
    case Value::kFloat: a.f = v.f; break;
    case Value::kInts: a.ints.append({v.ints, v.n}); break;
    case Value::kStr: a.text.add(Span<const char>(v.str, v.n)); break;
    case Value::kGenerator: a.generator = Ref<Generator>::share(v.generator); break;
    case Value::kIndices:
      for (int64_t i = 0; i < v.n; i++) {
        tt_index at = v.indices[i];
        if (at.kind == TT_IDX_TENSOR)
          a.values.push_back(read_value(c, reinterpret_cast<const Tensor*>(at.tensor)));
        at.tensor = nullptr;
        a.index.push_back(at);
      }
      break;
    case Value::kObject: a.object = Ref<Object>::share(v.object); break;
    case Value::kRng:
      a.draw = draw_of(c, *v.rng, &a.counters_before);
      if (a.draw < 0)
        fail(TT_NOT_IMPLEMENTED, "{} uses random numbers that were drawn before the capture",
             schema.call);
      break;
  }
  return a;
}

// ---- nodes ----

void add_written(Capture& c, const Tensor& t, IrNode& node, int32_t at) {
  const uint32_t version = t.version();
  const int32_t storage = storage_of(c, t, version, false);
  IrStorage& s = c.graph->storages[storage];
  if (s.role == IrRole::kConstant) s.role = IrRole::kState;
  node.outs.push_back(value_of(c, t, storage, version, at, int32_t(node.outs.size())));
  c.versions[storage] = version;
}

void add_outs(Capture& c, const Value* args, const TensorList& outs, int64_t first, IrNode& node,
              int32_t at) {
  const OpSchema& schema = *node.op->schema;
  for (int64_t i = first; i < outs.size(); i++) {
    if (!outs[i]) {
      node.outs.push_back(-1);
      continue;
    }
    const Tensor& t = *outs[i];
    const bool known = t.storage->reserved_[0] == c.mark || c.outside.find(t.storage) >= 0;
    const uint32_t version = t.version();
    const int32_t storage = storage_of(c, t, version, !known);
    node.outs.push_back(value_of(c, t, storage, version, at, int32_t(node.outs.size())));
  }
  node.n_results = int32_t(node.outs.size());
  for (int32_t i = 0; i < schema.n_args; i++) {
    if (!schema.args[i].mutates) continue;
    if (args[i].kind == Value::kTensor) add_written(c, *args[i].tensor, node, at);
    if (args[i].kind != Value::kTensorList) continue;
    for (int64_t k = 0; k < args[i].n; k++)
      if (args[i].tensors[k]) add_written(c, *args[i].tensors[k], node, at);
  }
}

// Restores on failure, too.
template <class T> class Restore {
 public:
  Restore(T& place, T value) : place_(place), before_(place) { place = value; }
  ~Restore() { place_ = before_; }
  Restore(const Restore&) = delete;

 private:
  T& place_;
  const T before_;
};

// ---- in place of a device, in a deferred capture ----

constexpr DeviceHooks kIdleDevice = {
    .workspace = [](GraphHooks&, Device, int64_t) {},
    .launch = [](GraphHooks&, const Kernel&, Device, const void*) {},
    .copy = [](GraphHooks&, char*, Device, const char*, Device, int64_t) {},
    .check_place = [](GraphHooks&, Device) -> int64_t* { return nullptr; },
    .check = [](GraphHooks&, Device, int64_t*, DeviceCheck&&) {},
};

void record(Capture& c, Call call, const Value* args, TensorList& outs) {
  const OpSchema& schema = *call.op->schema;
  IrNode node;
  node.op = call.op;
  node.scope = c.scope;
  node.cuda_math = ctx().cuda_math;
  recorded(c, [&] {
    for (int32_t i = 0; i < schema.n_args; i++) node.args.push_back(record_arg(c, args[i], schema));
  });
  const int64_t first = outs.size();
  {
    const MaskGuard quiet(bit(kKeyCapture));
    const Restore<bool> running(c.in_node, true);
    const Restore<const DeviceHooks*> idle(c.device, c.options.deferred ? &kIdleDevice : nullptr);
    c.node_reads = false;
    call.op->call_boxed(call, args, outs);
  }
  if (of(ctx()) != &c || c.refused) return;  // a callback ended the capture
  node.reads = c.node_reads;
  recorded(c, [&] {
    add_outs(c, args, outs, first, node, int32_t(c.graph->nodes.size()));
    c.graph->nodes.push_back(std::move(node));
  });
}

int32_t open_scope(Capture& c, const char* name) {
  IrScope scope;
  scope.name.add(name);
  scope.outer = c.scope;
  c.graph->scopes.push_back(std::move(scope));
  return int32_t(c.graph->scopes.size()) - 1;
}

void capture_slot(Call call, const Value* args, TensorList& outs) {
  Capture* c = of(ctx());
  call.keys &= ~bit(kKeyCapture);
  if (!c || c->refused) return call.op->call_boxed(call, args, outs);
  if (call.op->schema->leaf) return record(*c, call, args, outs);
  const Ref<Graph> keep = c->graph;
  const int32_t outer = c->scope;
  recorded(*c, [&] { c->scope = open_scope(*c, call.op->schema->call); });
  struct Close {
    const Capture* c;
    int32_t outer;
    const char* composite;
    ~Close() {
      Capture* now = of(ctx());
      if (now != c) return;
      now->scope = outer;
      now->composite = composite;
    }
  } close{c, outer, c->composite};
  c->composite = call.op->schema->call;
  call.op->call_boxed(call, args, outs);
}

// ---- hooks ----

void remember(Capture& c, Generator& g) {
  for (const Capture::Drawn& d : c.generators)
    if (d.generator.get() == &g) return;
  c.generators.push_back({Ref<Generator>::share(&g), g.state()});
}

Rng draw_numbers(GraphHooks& hooks, Generator& g, uint64_t counters,
                 Rng (*reserve)(Generator&, uint64_t)) {
  auto& c = static_cast<Capture&>(hooks);
  if (c.options.deferred) remember(c, g);
  const bool quiet = c.in_node || c.refused || !recorded(c, [&] {
                       c.drawn.reserve(c.drawn.size() + 1);
                       IrDraw draw;
                       if (&g != ctx().gen) draw.generator = Ref<Generator>::share(&g);
                       draw.counters = counters;
                       draw.node = int32_t(c.graph->nodes.size());
                       c.graph->draws.push_back(std::move(draw));
                     });
  if (quiet) return reserve(g, counters);
  try {
    const Rng begin = reserve(g, counters);
    c.drawn.push_back(begin);
    return begin;
  } catch (...) {
    c.graph->draws.pop_back();
    throw;
  }
}

Str text_of(const char* s) { return {s, int64_t(strlen(s))}; }

bool check_as_operator(GraphHooks& hooks, const CheckCall& check) {
  const auto& c = static_cast<Capture&>(hooks);
  const Ctx& now = ctx();
  const bool sees = now.include & ~now.exclude & bit(kKeyCapture);
  if (!sees || c.in_node || c.refused || (check.t.keys & bit(kKeyVmap))) return false;
  const Str op = text_of(c.composite ? c.composite : tls.op);
  const Str arg = text_of(check.arg);
  switch (check.kind) {
    case CheckCall::kIndices:
      op::check_indices(check.t, check.low, check.size, check.allowed, arg, op);
      break;
    case CheckCall::kHolds:
      op::check_holds(check.t, check.status, arg, text_of(check.text), op);
      break;
    case CheckCall::kInfo: op::check_info(check.t, check.low, op); break;
  }
  return true;
}

int32_t launch_in_node(WorkObserver& w, const Kernel& k, const void* plan, int64_t units,
                       int64_t grain) {
  auto& c = static_cast<Capture&>(w);
  if (!c.in_node && !c.refused && (ctx().include & bit(kKeyCapture)))
    recorded(c, [&] {
      fail(TT_NOT_IMPLEMENTED,
           "the kernel {} runs outside of operators: a capture cannot record it", k.name);
    });
  if (c.in_node && c.options.deferred) return TT_OK;
  return run_kernel(k, plan, units, grain);
}
// What the application or a composite does next would be frozen into the graph.
void note_read(WorkObserver& w, const Tensor&) {
  auto& c = static_cast<Capture&>(w);
  c.node_reads = true;
  if (c.options.deferred && !c.refused)
    fail(TT_INVALID_ARG, "elements of a tensor are read in a deferred capture: they do not exist");
  if (c.in_node || c.options.allow_reads || c.refused) return;
  recorded(c, [] {
    fail(TT_INVALID_ARG,
         "elements of a tensor are read while a graph is captured: what follows "
         "from them would be frozen (allow_reads permits it)");
  });
}

// Runs would not make the change again.
void note_changed(GraphHooks& hooks, const char* what) {
  auto& c = static_cast<Capture&>(hooks);
  if (c.in_node || c.options.allow_reads || c.refused) return;
  recorded(c, [&] {
    fail(
        TT_INVALID_ARG,
        "{} is set while a graph is captured: runs would not set it again (allow_reads permits it)",
        what);
  });
}

void note_uncaptured_step(GraphHooks& hooks, const char* of) {
  auto& c = static_cast<Capture&>(hooks);
  if (c.in_node || c.refused) return;
  recorded(c, [&] {
    fail(TT_NOT_IMPLEMENTED,
         "a step of {} cannot be captured: what it computes from numbers of the host would be "
         "frozen; take it between the runs",
         of);
  });
}

// ---- what a deferred capture leaves ----

// A tensor for each storage that nodes have made and that is alive.
void find_made(const Capture& c, SmallVec<TensorRef, 16>& found) {
  found.resize(c.graph->storages.size());
  const BlockMap map(ctx().rt->arena, ctx().heap);
  map.each([&](const void* block, size_t bytes) {
    const auto* t = static_cast<const Tensor*>(block);
    if (bytes < sizeof *t || t->tag != kTagTensor || t->refs <= 0) return true;
    if (!map.has(t->storage, sizeof(Storage)) || t->storage->reserved_[0] != c.mark) return true;
    TensorRef& place = found[t->storage->reserved_[1]];
    if (!place) place = TensorRef::share(t);
    return true;
  });
}

// The storage as state that the last node writes, as bytes.
void keep_storage(Graph& g, int32_t made, const Tensor& t) {
  const int64_t bytes = g.storages[made].bytes;
  const int64_t one = 1;
  if (!bytes) return;
  int32_t last = g.storages[made].last_value;
  for (int32_t i = last; i >= 0; i = g.values[i].previous)
    if (g.values[i].version > g.values[last].version) last = i;
  const auto byte_value = [&](int32_t storage, uint32_t version, int32_t node, int32_t out) {
    return g.value(storage, version, Dtype::kU8, 0, Ints(&bytes, 1), Ints(&one, 1), node, out);
  };
  const auto at = int32_t(g.nodes.size());
  const auto kept = int32_t(g.storages.size());
  IrStorage state;
  state.role = IrRole::kState;
  state.device = g.storages[made].device;
  state.bytes = bytes;
  state.version = t.version();
  state.tensor = new_alias(t, Ints(&bytes, 1), Ints(&one, 1), t.storage->data, Dtype::kU8);
  g.storages.push_back(std::move(state));
  IrNode n;
  n.op = &op_copy_.info;
  n.args.push_back(tensor_arg(byte_value(kept, t.version(), -1, -1)));
  n.args.push_back(tensor_arg(byte_value(made, g.values[last].version, g.values[last].node, -1)));
  n.outs.push_back(byte_value(kept, t.version() + 1, at, 0));
  g.nodes.push_back(std::move(n));
}

void keep_made(Capture& c) {
  SmallVec<TensorRef, 16> found;
  find_made(c, found);
  for (int32_t i = 0; i < found.size(); i++)
    if (found[i]) keep_storage(*c.graph, i, *found[i]);
}

// Returns which input it is, or -1 if the memory of t is known already.
int32_t add_input(Capture& c, const Tensor& t) {
  Graph& g = *c.graph;
  if (t.storage->reserved_[0] == c.mark || c.outside.find(t.storage) >= 0) return -1;
  const Restore<CaptureVisitor*> quiet(c.visitor, nullptr);
  g.inputs.reserve(g.inputs.size() + 1);
  const int32_t value = read_value(c, &t);
  g.storages[g.values[value].storage].role = IrRole::kInput;
  g.inputs.push_back(value);
  return int32_t(g.inputs.size()) - 1;
}

void destroy(CtxPart* part) noexcept {
  auto* c = static_cast<Capture*>(part);
  c->~Capture();
  mem_free(c, sizeof *c);
}

}  // namespace

void begin_capture(TensorSpan inputs, const CaptureOptions& options) {
  Ctx& ctx = TT_NS::ctx();
  if (ctx.graph) fail(TT_INVALID_ARG, "a capture is running on this ctx");
  auto* c = new (mem_alloc(sizeof(Capture))) Capture{};
  c->destroy_fn = destroy;
  c->draw = draw_numbers;
  c->check_call = check_as_operator;
  c->change = note_changed;
  c->uncaptured_step = note_uncaptured_step;
  c->launch = launch_in_node;
  c->read = note_read;
  c->write = [](WorkObserver&, const Tensor&) {};
  // Outside of operators a check would not be part of the graph.
  c->check = [](WorkObserver& w, const Tensor& found, const DeviceCheck&) {
    const auto& c = static_cast<Capture&>(w);
    if (!c.in_node) note_read(w, found);
    return !c.options.deferred;
  };
  if (options.deferred) {
    c->call = [](WorkObserver&, Object&, HostFn, const Tensor&) {};
    ctx.embedded_max = -1;  // each tensor has a storage of its own, which keep_made finds
  }
  ctx.graph = c;
  ctx.work = static_cast<WorkObserver*>(c);
  ctx.watched |= kWatchWork;
  try {
    c->graph = new_graph();
    c->options = options;
    c->mark = new_mark();
    for (int64_t i = 0; i < inputs.n; i++)
      if (add_input(*c, *inputs[i]) < 0)
        fail_arg(TT_INVALID_ARG, "inputs", "inputs[{}] shares its memory with another input", i);
    c->visitor = options.visitor;
  } catch (...) {
    drop_capture(ctx);
    throw;
  }
  use_mode(kKeyCapture, &capture_slot);
  ctx.include |= bit(kKeyCapture);
}

int32_t add_capture_input(const Tensor& t) {
  Capture* c = of(ctx());
  return !c || c->refused ? -1 : add_input(*c, t);
}

int64_t num_captured_nodes() {
  const Capture* c = of(ctx());
  return !c || c->refused ? -1 : c->graph->nodes.size();
}

void drop_capture(Ctx& c) noexcept {
  if (!of(c)) return;
  c.include &= ~bit(kKeyCapture);
  c.watched &= uint8_t(~kWatchWork);
  c.work = nullptr;
  const Capture& capture = *of(c);
  if (capture.options.deferred) c.embedded_max = kEmbeddedMax;
  for (const Capture::Drawn& d : capture.generators) d.generator->set(d.before);
  if (GraphHooks* hooks = std::exchange(c.graph, nullptr)) hooks->destroy_fn(hooks);
}

Ref<Graph> end_capture(TensorSpan outputs, Text* reason) {
  Ctx& ctx = TT_NS::ctx();
  Capture* c = of(ctx);
  if (!c) fail(TT_INVALID_ARG, "no capture is running on this ctx");
  struct End {
    Ctx& ctx;
    ~End() { drop_capture(ctx); }
  } end{ctx};
  if (c->code == TT_OOM) fail(TT_OOM, "{}", c->reason);
  if (c->refused) {
    if (reason) reason->add(c->reason);
    return {};
  }
  for (const Tensor* t : outputs) c->graph->outputs.push_back(read_value(*c, t));
  if (c->options.deferred) keep_made(*c);
  verify_graph(*c->graph);
  return c->graph;
}

}  // namespace TT_NS
