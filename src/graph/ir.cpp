#include "graph/ir.h"

namespace TT_NS {

void Graph::destroy(Graph* g) noexcept {
  g->tag = 0;
  g->~Graph();
  mem_retire(g, sizeof *g);
}

Ref<Graph> new_graph() {
  auto* g = new (mem_alloc(sizeof(Graph))) Graph{};
  g->tag = kTagGraph;
  g->refs = 1;
  return Ref<Graph>::adopt(g);
}

int32_t Graph::find_value(int32_t storage, uint32_t version, Dtype dtype, int64_t offset,
                          Ints sizes, Ints strides) const {
  for (int32_t i = storages[storage].last_value; i >= 0; i = values[i].previous) {
    if (values[i].has_form(version, dtype, offset, sizes, strides)) return i;
  }
  return -1;
}

int32_t Graph::value(int32_t storage, uint32_t version, Dtype dtype, int64_t offset, Ints sizes,
                     Ints strides, int32_t node, int32_t out) {
  const int32_t found = find_value(storage, version, dtype, offset, sizes, strides);
  return found >= 0 ? found : add_value(storage, version, dtype, offset, sizes, strides, node, out);
}

int32_t Graph::add_value(int32_t storage, uint32_t version, Dtype dtype, int64_t offset, Ints sizes,
                         Ints strides, int32_t node, int32_t out) {
  IrValue v;
  v.storage = storage;
  v.version = version;
  v.dtype = dtype;
  v.offset = offset;
  v.sizes = Shape(sizes);
  v.strides = Shape(strides);
  v.node = node;
  v.out = out;
  v.previous = storages[storage].last_value;
  const auto at = int32_t(values.size());
  values.push_back(std::move(v));
  storages[storage].last_value = at;
  return at;
}

bool is_view_out(const Graph& g, const IrNode& n, int64_t out) {
  if (out >= n.n_results || n.outs[out] < 0) return false;
  const int32_t storage = g.values[n.outs[out]].storage;
  bool found = false;
  for_each_value(n, [&](int32_t v) { found |= g.values[v].storage == storage; });
  return found;
}

const char* role_name(IrRole role) noexcept {
  switch (role) {
    case IrRole::kInput: return "input";
    case IrRole::kState: return "state";
    case IrRole::kConstant: return "constant";
    case IrRole::kMade: return "made";
  }
  return "";
}

}  // namespace TT_NS
