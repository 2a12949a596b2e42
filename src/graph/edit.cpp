#include "graph/edit.h"

#include "base/pointer_map.h"
#include "core/graph_hooks.h"
#include "graph/capture.h"
#include "graph/guards.h"
#include "graph/node_call.h"
#include "graph/rewrite.h"

#include <string.h>

namespace TT_NS {

void become(Graph& g, Graph& next) noexcept {
  g.nodes = std::move(next.nodes);
  g.values = std::move(next.values);
  g.storages = std::move(next.storages);
  g.scopes = std::move(next.scopes);
  g.draws = std::move(next.draws);
  g.inputs = std::move(next.inputs);
  g.outputs = std::move(next.outputs);
}

namespace {

// What a value is known by in the rebuilt graph.
struct Key {
  bool exists = false;
  const Storage* outside = nullptr;  // NULL: the storage is made by a node
  int64_t made = 0;                  // then: the position of the storage
  uint32_t version = 0;
  Dtype dtype = Dtype::kNone;
  int64_t offset = 0;
  Shape sizes, strides;
};

class Rebuild {
 public:
  // inserted: a node of which only operator and arguments are known; -1: none.
  Rebuild(Graph& g, int64_t inserted)
      : g_(g), inserted_(inserted), ctx_(ctx()), include_(ctx_.include), exclude_(ctx_.exclude) {}
  ~Rebuild();
  Rebuild(const Rebuild&) = delete;
  // Rebuilds g. `outs` gets the results of the inserted node.
  void run(SmallVec<int32_t, 4>* outs);

 private:
  void prepare_storages();
  TensorRef tensor_of(int32_t value);
  Key key_of(const Tensor& t);
  void keep(int32_t value, const TensorRef& t);
  void add_draws_before(int32_t node);
  SmallVec<TensorRef, 2> written_by(const IrNode& n);
  void run_node(int32_t i);
  bool reads_others(const IrNode& n);
  void take_outs(IrNode& n, const TensorList& outs, Span<const TensorRef> written);
  void keep_numbers(Graph& to);
  void keep_scopes(Graph& to);
  void keep_storages(Graph& to);

  Graph& g_;
  const int64_t inserted_;
  Ctx& ctx_;
  const KeySet include_, exclude_;
  Rng generator_before_;
  bool running_ = false;
  int64_t next_draw_ = 0;
  SmallVec<Rng, 1> draws_;
  SmallVec<TensorRef, 16> memory_;    // of each storage that exists
  SmallVec<const Storage*, 16> own_;  // the storages in memory_ that come from outside
  PointerMap places_;                 // of these in own_
  SmallVec<TensorRef, 16> tensors_;   // of each value that a node made
  SmallVec<Key, 16> keys_;            // of each value
};

Rebuild::~Rebuild() {
  if (running_) {
    drop_capture(ctx_);
    ctx_.gen->set(generator_before_);
  }
  ctx_.include = include_;
  ctx_.exclude = exclude_;
}

void Rebuild::prepare_storages() {
  for (const IrStorage& s : g_.storages) {
    TensorRef t;
    if (s.device.type != TT_CPU)
      fail(TT_NOT_IMPLEMENTED, "the graph uses {}: only graphs of the CPU can be edited",
           fmt(s.device));
    if (s.role == IrRole::kConstant) {
      t = new_alias(*s.tensor, Ints(&s.bytes, 1), {}, s.tensor->storage->data, Dtype::kU8);
    } else if (s.role != IrRole::kMade) {
      t = new_tensor(Ints(&s.bytes, 1), Dtype::kU8, kCpuDevice);
      memset(t->data, 0, size_t(s.bytes));
    }
    if (t) places_.find_or_add(t->storage, own_.size());
    own_.push_back(t ? t->storage : nullptr);
    memory_.push_back(std::move(t));
  }
}

TensorRef Rebuild::tensor_of(int32_t value) {
  if (tensors_[value]) return tensors_[value];
  const IrValue& v = g_.values[value];
  if (!memory_[v.storage]) fail(TT_INVALID_ARG, "value {} is read before it is made", value);
  const Storage& s = *memory_[v.storage]->storage;
  TensorRef t = new_alias(*memory_[v.storage], v.sizes, v.strides, s.data + v.offset, v.dtype);
  const char *low, *high;
  byte_range(*t, &low, &high);
  if (t->numel && (low < s.data || high > s.data + s.bytes))
    fail(TT_INVALID_ARG, "value {} does not fit in its storage any more", value);
  if (own_[v.storage] || !keys_[value].exists) keys_[value] = key_of(*t);
  return t;
}

Key Rebuild::key_of(const Tensor& t) {
  Key k;
  k.exists = true;
  if (places_.find(t.storage) >= 0) k.outside = t.storage;
  if (!k.outside) k.made = t.storage->reserved_[1];
  k.version = t.version();
  k.dtype = t.dtype;
  k.offset = t.data - t.storage->data;
  k.sizes = Shape(t.sizes());
  k.strides = Shape(t.strides());
  return k;
}
void Rebuild::keep(int32_t value, const TensorRef& t) {
  keys_[value] = key_of(*t);
  tensors_[value] = t;
  const int32_t storage = g_.values[value].storage;
  const int64_t bytes = t->storage->bytes;
  if (storage >= 0 && !memory_[storage])
    memory_[storage] = new_alias(*t, Ints(&bytes, 1), {}, t->storage->data, Dtype::kU8);
}

// Kernels that draw do not run: numbers only have to differ from draw to draw.
Rng next_numbers(Generator&, uint64_t) {
  static int64_t last = 0;
  return {uint64_t(atomic_add_fetch(&last, 1, kRelaxed)) << 20, 0};
}
void Rebuild::add_draws_before(int32_t node) {
  for (; next_draw_ < g_.draws.size() && g_.draws[next_draw_].node <= node; next_draw_++) {
    const IrDraw& d = g_.draws[next_draw_];
    Generator& own = d.generator ? *d.generator : *ctx_.gen;
    draws_.push_back(ctx_.graph->draw(*ctx_.graph, own, d.counters, next_numbers));
  }
}

// Restores the observer of launches, checks and calls on the host.
class RestoreObserver {
 public:
  explicit RestoreObserver(WorkObserver& work) : work_(work), before_(work) {}
  ~RestoreObserver() { work_ = before_; }
  RestoreObserver(const RestoreObserver&) = delete;

 private:
  WorkObserver& work_;
  const WorkObserver before_;
};

// The tensors that a node writes.
SmallVec<TensorRef, 2> Rebuild::written_by(const IrNode& n) {
  const OpSchema& s = *n.op->schema;
  SmallVec<TensorRef, 2> written;
  for (int32_t k = 0; k < s.n_args; k++) {
    if (!s.args[k].mutates) continue;
    for (const int32_t v : n.args[k].values)
      if (v >= 0) written.push_back(tensor_of(v));
  }
  return written;
}

void Rebuild::run_node(int32_t i) {
  IrNode& n = g_.nodes[i];
  add_draws_before(i);
  const OpSchema& s = *n.op->schema;
  NodeCall call;
  call.set(
      n, [&](int32_t v) { return tensor_of(v); },
      [&](const IrArg& a) {
        const Rng& begin = draws_[a.draw];
        return Rng{begin.seed, begin.offset + a.counters_before};
      });
  const SmallVec<TensorRef, 2> written = written_by(n);
  TensorList outs;
  WorkObserver& work = *ctx_.work;
  const RestoreObserver restore(work);
  // What the host reads must be computed.
  if (i != inserted_ && !n.reads && !n.op->is_custom())
    work.launch = [](WorkObserver&, const Kernel&, const void*, int64_t, int64_t) {
      return int32_t(TT_OK);
    };
  work.check = [](WorkObserver&, const Tensor&, const DeviceCheck&) { return false; };
  work.call = [](WorkObserver&, Object&, HostFn, const Tensor&) {};  // no step is counted
  const bool fits =
      has_guard(s) ? is_guarded(s, call.values()) : i != inserted_ && !reads_others(n);
  if (!fits)
    fail(TT_INVALID_ARG, "node {}, {}: its arguments do not fit each other any more", i,
         n.op->name());
  call.run(*n.op, outs, bit(kKeyCapture));
  take_outs(n, outs, written.span());
}

// Whether a tensor that the node reads has another shape, layout or dtype than before the edit.
bool Rebuild::reads_others(const IrNode& n) {
  bool found = false;
  for_each_value(n, [&](int32_t i) {
    const IrValue& v = g_.values[i];
    const TensorRef t = tensor_of(i);
    found |= !same(t->sizes(), v.sizes) || !same(t->strides(), v.strides) || t->dtype != v.dtype;
  });
  return found;
}

void Rebuild::take_outs(IrNode& n, const TensorList& outs, Span<const TensorRef> written) {
  if (inserted_ >= 0 && &n == &g_.nodes[inserted_]) {
    n.n_results = int32_t(outs.size());
    for (const TensorRef& t : outs) {
      n.outs.push_back(t ? int32_t(g_.values.size()) : -1);
      if (!t) continue;
      g_.values.push_back(IrValue());
      tensors_.push_back(TensorRef());
      keys_.push_back(Key());
      keep(n.outs.back(), t);
    }
    return;
  }
  if (outs.size() != n.n_results)
    fail(TT_INVALID_ARG, "{} has {} results, before the edit {}", n.op->name(), outs.size(),
         n.n_results);
  for (int64_t k = 0; k < outs.size(); k++)
    if (n.outs[k] >= 0 && outs[k]) keep(n.outs[k], outs[k]);
  for (int64_t k = 0; k < written.n && n.n_results + k < n.outs.size(); k++)
    if (n.outs[n.n_results + k] >= 0) keep(n.outs[n.n_results + k], written[k]);
}

// The value of `to` that has a key, or -1. outside: positions of the storages from outside.
int32_t find(const Graph& to, PointerMap& outside, const Key& k) {
  if (!k.exists) return -1;
  const int64_t storage = k.outside ? outside.find(k.outside) : k.made;
  if (storage < 0 || storage >= to.storages.size()) return -1;
  return to.find_value(int32_t(storage), k.version, k.dtype, k.offset, k.sizes, k.strides);
}

// Rebuilds the list of the values of each storage.
void link_values(Graph& g) {
  for (IrStorage& s : g.storages) s.last_value = -1;
  for (int64_t i = 0; i < g.values.size(); i++) {
    IrStorage& s = g.storages[g.values[i].storage];
    g.values[i].previous = s.last_value;
    s.last_value = int32_t(i);
  }
}

// Replaces each value i by place[i] where it is made, read or returned.
void renumber(Graph& g, const SmallVec<int32_t, 16>& place) {
  const auto move = [&](int32_t& v) {
    if (v >= 0) v = place[v];
  };
  for (IrNode& n : g.nodes) {
    for (int32_t& v : n.outs) move(v);
    for (IrArg& a : n.args)
      for (int32_t& v : a.values) move(v);
  }
  for (int32_t& v : g.inputs) move(v);
  for (int32_t& v : g.outputs) move(v);
}

// Gives values the numbers that they had. Values that are gone are empty ones, of one storage.
void Rebuild::keep_numbers(Graph& to) {
  SmallVec<int32_t, 16> place;  // of each value of `to`
  place.resize(to.values.size(), -1);
  SmallVec<IrValue, 1> values;
  PointerMap outside;
  for (int64_t i = 0; i < to.storages.size(); i++)
    if (to.storages[i].tensor) outside.find_or_add(to.storages[i].tensor->storage, i);
  int32_t nowhere = -1;
  for (int64_t i = 0; i < keys_.size(); i++) {
    const int32_t found = find(to, outside, keys_[i]);
    IrValue v;
    if (found >= 0) {
      v = to.values[found];
      if (place[found] >= 0) v.out = -1;
      else place[found] = int32_t(i);
    } else {
      if (nowhere < 0) {
        nowhere = int32_t(to.storages.size());
        to.storages.push_back(IrStorage());
      }
      v.storage = nowhere;
      v.dtype = Dtype::kU8;
      v.sizes.push_back(0);
      v.strides.push_back(1);
    }
    values.push_back(std::move(v));
  }
  for (int64_t i = 0; i < to.values.size(); i++) {
    if (place[i] >= 0) continue;
    place[i] = int32_t(values.size());
    values.push_back(to.values[i]);
  }
  to.values = std::move(values);
  link_values(to);
  renumber(to, place);
}

void Rebuild::keep_scopes(Graph& to) {
  const auto n_old = int32_t(g_.scopes.size());
  SmallVec<IrScope, 1> scopes(g_.scopes.span());
  for (IrScope& s : to.scopes) {
    if (s.outer >= 0) s.outer += n_old;
    scopes.push_back(std::move(s));
  }
  // Nodes of the inserted operator behind its first one.
  const int64_t parts = to.nodes.size() - g_.nodes.size();
  for (int64_t i = 0; i < to.nodes.size(); i++) {
    IrNode& n = to.nodes[i];
    int64_t from = i;
    if (inserted_ >= 0 && i > inserted_) from = max(inserted_, i - parts);
    const int32_t outer = from < g_.nodes.size() ? g_.nodes[from].scope : -1;
    if (n.scope < 0) {
      n.scope = outer;
      continue;
    }
    n.scope += n_old;
    int32_t root = n.scope;
    while (scopes[root].outer >= n_old) root = scopes[root].outer;
    if (scopes[root].outer < 0) scopes[root].outer = outer;
  }
  to.scopes = std::move(scopes);
}

void Rebuild::keep_storages(Graph& to) {
  for (IrStorage& s : to.storages) {
    const int64_t place = s.tensor ? places_.find(s.tensor->storage) : -1;
    if (place < 0) continue;
    const IrStorage& before = g_.storages[place];
    s.tensor = before.tensor;
    s.name = before.name;
    s.writable = before.writable;
  }
}

void Rebuild::run(SmallVec<int32_t, 4>* outs) {
  tensors_.resize(g_.values.size());
  keys_.resize(g_.values.size());
  prepare_storages();
  SmallVec<TensorRef, 4> given;
  SmallVec<const Tensor*, 4> list;
  for (const int32_t v : g_.inputs) {
    given.push_back(tensor_of(v));
    list.push_back(given.back().get());
  }
  begin_capture({list.data(), list.size()}, {.allow_reads = true});
  running_ = true;
  generator_before_ = ctx_.gen->state();
  ctx_.include = bit(kKeyCapture);
  ctx_.exclude = ~(kBackendKeys | bit(kKeyCapture));
  for (int32_t i = 0; i < g_.nodes.size(); i++) run_node(i);
  add_draws_before(int32_t(g_.nodes.size()));
  given.clear();
  list.clear();
  for (const int32_t v : g_.outputs) {
    given.push_back(tensor_of(v));
    list.push_back(given.back().get());
  }
  Ref<Graph> to = end_capture({list.data(), list.size()});
  running_ = false;
  ctx_.gen->set(generator_before_);
  keep_numbers(*to);
  keep_scopes(*to);
  keep_storages(*to);
  verify_graph(*to);
  if (outs) *outs = SmallVec<int32_t, 4>(g_.nodes[inserted_].outs.span());
  become(g_, *to);
}

void check_value(const Graph& g, int32_t value, const char* arg) {
  if (value < 0 || value >= g.values.size())
    fail_arg(TT_INVALID_ARG, arg, "{} is {}: the graph has {} values", arg, value, g.values.size());
}

}  // namespace

void insert_node(Graph& g, int64_t before, const OpInfo& op, const SmallVec<IrArg, 4>& args,
                 SmallVec<int32_t, 4>& outs) {
  for (int32_t i = 0; i < op.schema->n_args; i++)
    if (op.schema->args[i].mutates)
      fail_arg(TT_INVALID_ARG, "op", "{} writes {}: operators that write cannot be inserted",
               op.name(), op.schema->args[i].name);
  Ref<Graph> next = copy_graph(g);
  IrNode n;
  n.op = &op;
  n.args = args;
  n.scope = before < g.nodes.size() ? g.nodes[before].scope : -1;
  n.cuda_math = ctx().cuda_math;
  next->nodes.insert(before, std::move(n));
  for (IrDraw& d : next->draws) d.node += d.node > before;
  Rebuild(*next, before).run(&outs);
  become(g, *next);
}

void replace_uses(Graph& g, int32_t value, int32_t with) {
  check_value(g, value, "value");
  check_value(g, with, "with");
  const IrValue &x = g.values[value], &y = g.values[with];
  const bool alike = same(x.sizes, y.sizes) && same(x.strides, y.strides) && x.dtype == y.dtype;
  for (int32_t i = y.node + 1; i < g.nodes.size(); i++)
    for_each_value(g.nodes[i], [&](int32_t v) {
      if (v == value && !alike && !has_guard(*g.nodes[i].op->schema))
        fail(TT_NOT_IMPLEMENTED, "node {}, {}, takes only a tensor like %{}, {} {}", i,
             g.nodes[i].op->name(), value, fmt(x.dtype), x.sizes.span());
    });
  Ref<Graph> next = copy_graph(g);
  for_each_read(*next, y.node + 1, [&](int32_t& v) {
    if (v == value) v = with;
  });
  Rebuild(*next, -1).run(nullptr);
  become(g, *next);
}

void remove_node(Graph& g, int64_t node) {
  for (int64_t i = 0; i < g.nodes.size(); i++)
    for_each_value(g.nodes[i], [&](int32_t v) {
      if (i != node && g.values[v].node == node)
        fail_arg(TT_INVALID_ARG, "node", "node {}, {}, is used: node {}, {}, reads %{}", node,
                 g.nodes[node].op->name(), i, g.nodes[i].op->name(), v);
    });
  for (const int32_t v : g.outputs)
    if (g.values[v].node == node)
      fail_arg(TT_INVALID_ARG, "node", "node {}, {}, is used: %{} is an output", node,
               g.nodes[node].op->name(), v);
  Ref<Graph> next = copy_graph(g);
  next->nodes.erase(node);
  for (IrDraw& d : next->draws) d.node -= d.node > node;
  Rebuild(*next, -1).run(nullptr);
  become(g, *next);
}

void rebuild_graph(Graph& g) { Rebuild(g, -1).run(nullptr); }

void set_outputs(Graph& g, Span<const int32_t> values) {
  for (const int32_t v : values) check_value(g, v, "outputs");
  Ref<Graph> next = copy_graph(g);
  next->outputs = SmallVec<int32_t, 4>(values);
  Rebuild(*next, -1).run(nullptr);
  become(g, *next);
}

}  // namespace TT_NS
