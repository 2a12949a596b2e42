// Operators of the application as steps of a plan. Their callbacks see tensors in its memory;
// what they return is copied to the places of the results.
#include "graph/node_call.h"
#include "graph/plan/plan.h"
#include "ops/elementwise.h"

namespace TT_NS {

void run_host_call(Plan& p, const PlanStep& s) {
  const PlanHostCall& h = p.host_calls[s.host_call];
  const Graph& g = *p.graph;
  const IrNode& n = g.nodes[h.node];
  NodeCall call;
  int64_t next = 0;
  call.set(
      n, [&](int32_t v) { return plan_tensor(p, v, h.args[next++]); },
      [](const IrArg&) { return Rng{}; });
  TensorList outs;
  const MaskGuard plain(~kBackendKeys);
  call.run(*n.op, outs);
  tls.op = n.op->schema->call;
  if (outs.size() != n.n_results)
    fail(TT_INVALID_ARG, "it has {} results, when captured it had {}", outs.size(), n.n_results);
  for (int64_t k = 0; k < outs.size(); k++) {
    if (!h.outs[k] && !outs[k]) continue;
    if (!h.outs[k] || !outs[k])
      fail(TT_INVALID_ARG, "result {} is absent in one of the captured call and this run", k);
    const IrValue& v = g.values[n.outs[k]];
    if (outs[k]->dtype != v.dtype || !same(outs[k]->sizes(), v.sizes) ||
        !(outs[k]->device == g.storages[v.storage].device))
      fail(TT_SHAPE, "result {} is {} {}, when captured it was {} {}", k, fmt(outs[k]->dtype),
           outs[k]->sizes(), fmt(v.dtype), v.sizes.span());
    copy_elements(*plan_tensor(p, n.outs[k], h.outs[k]), *outs[k]);
  }
}

}  // namespace TT_NS
