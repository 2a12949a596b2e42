#include "graph/ir.h"

namespace TT_NS {

namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& g) : g_(g) {}
  void run();

 private:
  void check_value(int32_t i) const;
  void check_read(int32_t node, int32_t value) const;
  void check_args(int32_t node) const;
  void take_outs(int32_t node);

  const Graph& g_;
  SmallVec<uint32_t, 16> version_;  // of each storage after the nodes so far
  SmallVec<bool, 16> exists_;
};

void Verifier::check_value(int32_t i) const {
  const IrValue& v = g_.values[i];
  if (v.storage < 0 || v.storage >= g_.storages.size())
    fail(TT_INTERNAL, "value {} has storage {}: there are {}", i, v.storage, g_.storages.size());
  if (v.sizes.size() != v.strides.size() || !valid_dtype(int32_t(v.dtype)))
    fail(TT_INTERNAL, "value {} has {} sizes, {} strides, dtype {}", i, v.sizes.size(),
         v.strides.size(), int32_t(v.dtype));
  if (v.node < -1 || v.node >= g_.nodes.size())
    fail(TT_INTERNAL, "value {} is made by node {}: there are {}", i, v.node, g_.nodes.size());
  if (v.out >= 0 &&
      (v.node < 0 || v.out >= g_.nodes[v.node].outs.size() || g_.nodes[v.node].outs[v.out] != i))
    fail(TT_INTERNAL, "value {} is not result {} of node {}", i, v.out, v.node);
  int64_t low = 0, high = item_size(v.dtype);
  for (int64_t d = 0; d < v.ndim(); d++) {
    int64_t reach;
    if (v.sizes[d] == 0) return;
    if (__builtin_mul_overflow(v.sizes[d] - 1, v.strides[d], &reach) ||
        __builtin_mul_overflow(reach, item_size(v.dtype), &reach) ||
        __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
      fail(TT_INTERNAL, "value {}: {} with strides {} overflows", i, v.sizes.span(),
           v.strides.span());
  }
  if (v.offset + low < 0 || v.offset > g_.storages[v.storage].bytes - high)
    fail(TT_INTERNAL, "value {}: {} with strides {} at byte {} leaves its storage of {} bytes", i,
         v.sizes.span(), v.strides.span(), v.offset, g_.storages[v.storage].bytes);
}

void Verifier::check_read(int32_t node, int32_t value) const {
  if (value < -1 || value >= g_.values.size())
    fail(TT_INTERNAL, "node {} reads value {}: there are {}", node, value, g_.values.size());
  if (value < 0) return;
  const IrValue& v = g_.values[value];
  if (!exists_[v.storage])
    fail(TT_INTERNAL, "node {} reads value {} before it is made", node, value);
  if (v.version != version_[v.storage])
    fail(TT_INTERNAL, "node {} reads value {}, version {} of storage {}: it has version {} then",
         node, value, v.version, v.storage, version_[v.storage]);
}

void Verifier::check_args(int32_t node) const {
  const IrNode& n = g_.nodes[node];
  if (!n.op || n.args.size() != n.op->schema->n_args)
    fail(TT_INTERNAL, "node {} has {} arguments: its operator takes {}", node, n.args.size(),
         n.op ? n.op->schema->n_args : 0);
  for (const IrArg& a : n.args) {
    if (a.kind == Value::kTensor && a.values.size() != 1)
      fail(TT_INTERNAL, "node {}: a tensor argument has {} values", node, a.values.size());
    if (a.kind == Value::kRng && (a.draw < 0 || a.draw >= g_.draws.size()))
      fail(TT_INTERNAL, "node {} uses draw {}: there are {}", node, a.draw, g_.draws.size());
    for (const int32_t v : a.values) check_read(node, v);
  }
  if (n.scope < -1 || n.scope >= g_.scopes.size())
    fail(TT_INTERNAL, "node {} is in scope {}: there are {}", node, n.scope, g_.scopes.size());
}

void Verifier::take_outs(int32_t node) {
  const IrNode& n = g_.nodes[node];
  for (int64_t k = 0; k < n.outs.size(); k++) {
    const int32_t out = n.outs[k];
    if (out < -1 || out >= g_.values.size())
      fail(TT_INTERNAL, "node {} makes value {}: there are {}", node, out, g_.values.size());
    if (out < 0) continue;
    const IrValue& v = g_.values[out];
    if (!exists_[v.storage] && g_.storages[v.storage].role == IrRole::kMade) {
      exists_[v.storage] = true;
      version_[v.storage] = v.version;
    } else if (k >= n.n_results) {
      version_[v.storage] = v.version;
    }
  }
}

void Verifier::run() {
  for (int64_t i = 0; i < g_.storages.size(); i++) {
    const IrStorage& s = g_.storages[i];
    const bool outside = s.role != IrRole::kMade;
    if (outside != bool(s.tensor) || s.bytes < 0)
      fail(TT_INTERNAL, "storage {} ({}) has {} bytes and {} tensor", i, role_name(s.role), s.bytes,
           s.tensor ? "a" : "no");
    version_.push_back(s.version);
    exists_.push_back(outside);
  }
  for (int64_t i = 0; i < g_.values.size(); i++) check_value(int32_t(i));
  for (const int32_t v : g_.inputs) check_read(-1, v);
  for (int64_t i = 0; i < g_.nodes.size(); i++) {
    check_args(int32_t(i));
    take_outs(int32_t(i));
  }
  for (const int32_t v : g_.outputs) check_read(int32_t(g_.nodes.size()), v);
}

}  // namespace

void verify_graph(const Graph& g) { Verifier(g).run(); }

}  // namespace TT_NS
