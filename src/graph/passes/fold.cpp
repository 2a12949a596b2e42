#include "graph/node_call.h"
#include "graph/passes/passes.h"

namespace TT_NS {

namespace {

bool is_constant(const Graph& g, int32_t v) {
  return g.storages[g.values[v].storage].role == IrRole::kConstant;
}

TensorRef constant_tensor(const Graph& g, int32_t value) {
  const IrValue& v = g.values[value];
  const Tensor& t = *g.storages[v.storage].tensor;
  return new_alias(t, v.sizes, v.strides, t.storage->data + v.offset, v.dtype);
}

bool may_fold(const Graph& g, const IrNode& n, const SmallVec<bool, 16>& written) {
  bool ok = !n.op->is_custom() && !n.op->schema->random && n.outs.size() == n.n_results &&
            !n.outs.empty();
  for_each_value(n, [&](int32_t v) { ok = ok && is_constant(g, v); });
  for (const IrArg& a : n.args)
    ok = ok && a.kind != Value::kRng && !a.generator &&
         (a.kind != Value::kDevice || Device{int8_t(a.i >> 8), int8_t(a.i)} == kCpuDevice);
  for (const int32_t v : n.outs) ok = ok && v >= 0 && !written[g.values[v].storage];
  return ok;
}

// The values of a storage that has become a constant come from outside.
void become_constant(Graph& g, int32_t value, TensorRef t) {
  IrStorage& s = g.storages[g.values[value].storage];
  s.role = IrRole::kConstant;
  s.writable = false;
  s.bytes = t->storage->bytes;
  s.version = g.values[value].version;
  s.tensor = std::move(t);
  for (int32_t v = s.last_value; v >= 0; v = g.values[v].previous) {
    g.values[v].node = -1;
    g.values[v].out = -1;
  }
}

bool fits(const Tensor& t, const IrValue& v) {
  return t.is_cpu() && t.dtype == v.dtype && same(t.sizes(), v.sizes) &&
         same(t.strides(), v.strides) && t.data - t.storage->data == v.offset;
}

// Returns false, and changes nothing, if the results are not those of the graph.
bool fold(Graph& g, const IrNode& n) {
  NodeCall call;
  call.set(
      n, [&](int32_t v) { return constant_tensor(g, v); }, [](const IrArg&) { return Rng{}; });
  TensorList outs;
  const MaskGuard plain(~kBackendKeys | bit(kKeyCapture));
  call.run(*n.op, outs);
  for (int64_t k = 0; k < n.n_results; k++)
    if (!is_view_out(g, n, k) && !fits(*outs[k], g.values[n.outs[k]])) return false;
  for (int64_t k = 0; k < n.n_results; k++)
    if (!is_view_out(g, n, k)) become_constant(g, n.outs[k], outs[k]);
  return true;
}

}  // namespace

void fold_constants(Graph& g) {
  if (ctx().graph) fail(TT_INVALID_ARG, "constants cannot be folded while a graph is captured");
  const SmallVec<bool, 16> written = written_storages(g);
  SmallVec<bool, 16> keep;
  for (const IrNode& n : g.nodes) {
    const bool folded = may_fold(g, n, written) && fold(g, n);
    for (const int32_t v : n.outs) {
      if (!folded || v < 0) continue;
      g.values[v].node = -1;
      g.values[v].out = -1;
    }
    keep.push_back(!folded);
  }
  for (IrStorage& s : g.storages) s.frozen = s.role == IrRole::kConstant;
  remove_nodes(g, keep);
}

}  // namespace TT_NS
