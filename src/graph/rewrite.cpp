#include "graph/rewrite.h"

#include <algorithm>
#include <string.h>

namespace TT_NS {

Ref<Graph> copy_graph(const Graph& g) {
  Ref<Graph> out = new_graph();
  Graph& to = *out.get();
  to.nodes = g.nodes;
  to.values = g.values;
  to.storages = g.storages;
  to.scopes = g.scopes;
  to.draws = g.draws;
  to.inputs = g.inputs;
  to.outputs = g.outputs;
  return out;
}

void number_inputs_first(Graph& g) {
  SmallVec<int32_t, 16> number;
  number.resize(g.storages.size(), -1);
  int32_t next = 0;
  SmallVec<IrStorage, 1> storages;
  storages.reserve(g.storages.size());
  const auto take = [&](int32_t s) {
    if (number[s] >= 0) return;
    number[s] = next++;
    storages.push_back(std::move(g.storages[s]));
  };
  for (const int32_t v : g.inputs) take(g.values[v].storage);
  for (int32_t s = 0; s < g.storages.size(); s++) take(s);
  g.storages = std::move(storages);
  for (IrValue& v : g.values) v.storage = number[v.storage];
}

SmallVec<bool, 16> written_storages(const Graph& g) {
  SmallVec<bool, 16> written;
  written.resize(g.storages.size());
  for (const IrNode& n : g.nodes)
    for (int64_t k = n.n_results; k < n.outs.size(); k++)
      if (n.outs[k] >= 0) written[g.values[n.outs[k]].storage] = true;
  return written;
}

Readers storage_readers(const Graph& g) {
  Readers readers;
  readers.resize(g.storages.size());
  const auto note = [&](int32_t v, int64_t node) {
    SmallVec<int32_t, 2>& list = readers[g.values[v].storage];
    if (list.empty() || list.back() != node) list.push_back(int32_t(node));
  };
  for (int64_t i = 0; i < g.nodes.size(); i++)
    for_each_value(g.nodes[i], [&](int32_t v) { note(v, i); });
  for (const int32_t v : g.outputs) note(v, g.nodes.size());
  return readers;
}

TensorRef constant_of(const Graph& g, int32_t value) {
  const IrValue& v = g.values[value];
  const Tensor& t = *g.storages[v.storage].tensor;
  return new_alias(t, v.sizes, v.strides, t.storage->data + v.offset, v.dtype);
}

int32_t add_constant(Graph& g, TensorRef t) {
  IrStorage s;
  s.role = IrRole::kConstant;
  s.writable = false;
  s.bytes = t->storage->bytes;
  const int64_t offset = t->data - t->storage->data;
  const Shape sizes(t->sizes()), strides(t->strides());
  const Dtype dtype = t->dtype;
  s.tensor = std::move(t);
  g.storages.push_back(std::move(s));
  return g.value(int32_t(g.storages.size()) - 1, 0, dtype, offset, sizes, strides, -1, -1);
}

int32_t add_made_value(Graph& g, int64_t bytes, Dtype dtype, Ints sizes, Ints strides,
                       int32_t node) {
  IrStorage s;
  s.bytes = bytes;
  g.storages.push_back(std::move(s));
  return g.value(int32_t(g.storages.size()) - 1, 0, dtype, 0, sizes, strides, node, 0);
}

bool is_op(const IrNode& n, const char* name) { return !strcmp(n.op->name(), name); }

namespace {

// Old positions to new ones; -1: removed.
using Map = SmallVec<int32_t, 16>;

int32_t mapped(const Map& map, int32_t i) { return i < 0 ? i : map[i]; }

// Gives the marked elements new positions, in order.
int32_t number(Map& map) {
  int32_t n = 0;
  for (int32_t& m : map) m = m >= 0 ? n++ : -1;
  return n;
}
Map new_map(int64_t n) {
  Map m;
  m.resize(n, -1);
  return m;
}
template <class T, int N> void keep_marked(SmallVec<T, N>& list, const Map& map) {
  int64_t n = 0;
  for (int64_t i = 0; i < list.size(); i++) {
    if (map[i] < 0) continue;
    if (n != i) list[n] = std::move(list[i]);
    n++;
  }
  while (list.size() > n) list.pop_back();
}

class Compactor {
 public:
  explicit Compactor(Graph& g) : g_(g) {}
  void run(Span<const bool> keep);

 private:
  void mark_used();
  void renumber_nodes();
  void find_makers();
  void renumber_values();
  void renumber_scopes();

  Graph& g_;
  Map nodes_, values_, storages_, scopes_;
};

// A value whose node is removed although it is read is another view of one that a kept node made.
void Compactor::find_makers() {
  struct Made {
    int32_t storage;
    uint32_t version;
    int32_t node;
    bool operator<(const Made& o) const {
      if (storage != o.storage) return storage < o.storage;
      return version != o.version ? version < o.version : node < o.node;
    }
  };
  const auto is_removed = [&](int32_t node) { return node >= 0 && nodes_[node] < 0; };
  SmallVec<Made, 1> made;
  bool removes = false;
  for (int32_t i = 0; i < g_.nodes.size(); i++) {
    removes |= is_removed(i);
    for (const int32_t v : g_.nodes[i].outs)
      if (v >= 0 && !is_removed(i)) made.push_back({g_.values[v].storage, g_.values[v].version, i});
  }
  if (!removes) return;
  std::sort(made.begin(), made.end());
  for (IrValue& v : g_.values) {
    if (!is_removed(v.node)) continue;
    const Made first{v.storage, v.version, -1};
    const Made* found = std::lower_bound(made.begin(), made.end(), first);
    if (found == made.end() || found->storage != v.storage || found->version != v.version) continue;
    v.node = found->node;
    v.out = -1;
  }
}

void Compactor::mark_used() {
  const auto use = [&](int32_t v) {
    if (v >= 0) values_[v] = 0;
  };
  for (int64_t i = 0; i < g_.nodes.size(); i++) {
    if (nodes_[i] < 0) continue;
    for_each_value(g_.nodes[i], use);
    for (const int32_t v : g_.nodes[i].outs) use(v);
    for (int32_t s = g_.nodes[i].scope; s >= 0 && scopes_[s] < 0; s = g_.scopes[s].outer)
      scopes_[s] = 0;
  }
  for (const int32_t v : g_.inputs) use(v);
  for (const int32_t v : g_.outputs) use(v);
  for (int64_t v = 0; v < values_.size(); v++)
    if (values_[v] >= 0) storages_[g_.values[v].storage] = 0;
}

void Compactor::renumber_nodes() {
  for (IrDraw& d : g_.draws) {
    int32_t before = 0;
    for (int32_t i = 0; i < d.node; i++) before += nodes_[i] >= 0;
    d.node = before;
  }
  number(nodes_);
  keep_marked(g_.nodes, nodes_);
}

void Compactor::renumber_values() {
  number(values_);
  keep_marked(g_.values, values_);
  for (IrStorage& s : g_.storages) s.last_value = -1;
  for (int64_t i = 0; i < g_.values.size(); i++) {
    IrValue& v = g_.values[i];
    v.node = mapped(nodes_, v.node);
    if (v.node < 0) v.out = -1;
    v.previous = g_.storages[v.storage].last_value;
    g_.storages[v.storage].last_value = int32_t(i);
    v.storage = storages_[v.storage];
  }
  for (IrNode& n : g_.nodes) {
    for (int32_t& v : n.outs) v = mapped(values_, v);
    for (IrArg& a : n.args)
      for (int32_t& v : a.values) v = mapped(values_, v);
  }
  for (int32_t& v : g_.inputs) v = values_[v];
  for (int32_t& v : g_.outputs) v = values_[v];
}

void Compactor::renumber_scopes() {
  number(scopes_);
  keep_marked(g_.scopes, scopes_);
  for (IrScope& s : g_.scopes) s.outer = mapped(scopes_, s.outer);
  for (IrNode& n : g_.nodes) n.scope = mapped(scopes_, n.scope);
}

void Compactor::run(Span<const bool> keep) {
  nodes_ = new_map(g_.nodes.size());
  values_ = new_map(g_.values.size());
  storages_ = new_map(g_.storages.size());
  scopes_ = new_map(g_.scopes.size());
  for (int64_t i = 0; i < keep.n; i++) nodes_[i] = keep[i] ? 0 : -1;
  find_makers();
  mark_used();
  number(storages_);
  renumber_nodes();
  renumber_values();
  keep_marked(g_.storages, storages_);
  renumber_scopes();
}

}  // namespace

void remove_nodes(Graph& g, Span<const bool> keep) { Compactor(g).run(keep); }

}  // namespace TT_NS
