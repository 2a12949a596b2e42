#include "graph/passes/passes.h"

namespace TT_NS {

// From the last node to the first: which values and storages later nodes read.
void remove_dead_code(Graph& g) {
  SmallVec<bool, 16> value_read, storage_read, keep;
  value_read.resize(g.values.size());
  storage_read.resize(g.storages.size());
  keep.resize(g.nodes.size());
  const auto read = [&](int32_t v) {
    value_read[v] = true;
    storage_read[g.values[v].storage] = true;
  };
  for (int64_t i = 0; i < g.storages.size(); i++)
    storage_read[i] = g.storages[i].role != IrRole::kMade;
  for (const int32_t v : g.outputs) read(v);
  for (int64_t i = g.nodes.size(); i-- > 0;) {
    const IrNode& n = g.nodes[i];
    // callbacks of the application may do more than compute
    bool live = n.op->schema->random || n.outs.empty() || n.op->is_custom();
    for (int64_t k = 0; k < n.outs.size(); k++) {
      const int32_t v = n.outs[k];
      if (v < 0) continue;
      const bool view = k < n.n_results && is_view_out(g, n, k);
      live = live || (view ? value_read[v] : storage_read[g.values[v].storage]);
    }
    keep[i] = live;
    if (live) for_each_value(n, read);
  }
  remove_nodes(g, keep);
}

}  // namespace TT_NS
