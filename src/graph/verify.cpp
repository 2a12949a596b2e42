#include "graph/ir.h"

namespace TT_NS {

namespace {

class Verifier {
 public:
  Verifier(const Graph& g, tt_status code) : g_(g), code_(code) {}
  void run();

 private:
  void check_value(int32_t i) const;
  void check_read(int32_t node, int32_t value) const;
  void check_input(int32_t value);
  void check_args(int32_t node) const;
  void take_outs(int32_t node);

  const Graph& g_;
  const tt_status code_;
  SmallVec<uint32_t, 16> version_;  // of each storage after the nodes so far
  SmallVec<bool, 16> exists_;
  SmallVec<bool, 16> is_given_;  // the storage is that of an input
};

void Verifier::check_value(int32_t i) const {
  const IrValue& v = g_.values[i];
  if (v.storage < 0 || v.storage >= g_.storages.size())
    fail(code_, "value {} has storage {}: there are {}", i, v.storage, g_.storages.size());
  if (v.sizes.size() != v.strides.size() || !valid_dtype(int32_t(v.dtype)))
    fail(code_, "value {} has {} sizes, {} strides, dtype {}", i, v.sizes.size(), v.strides.size(),
         int32_t(v.dtype));
  if (v.node < -1 || v.node >= g_.nodes.size())
    fail(code_, "value {} is made by node {}: there are {}", i, v.node, g_.nodes.size());
  if (v.out >= 0 &&
      (v.node < 0 || v.out >= g_.nodes[v.node].outs.size() || g_.nodes[v.node].outs[v.out] != i))
    fail(code_, "value {} is not result {} of node {}", i, v.out, v.node);
  const auto overflows = [&] {
    fail(code_, "value {}: {} with strides {} overflows", i, v.sizes.span(), v.strides.span());
  };
  int64_t low = 0;
  int64_t high = item_size(v.dtype);
  for (int64_t d = 0; d < v.ndim(); d++) {
    int64_t reach;
    if (v.sizes[d] == 0) return;
    if (mul_overflow(v.sizes[d] - 1, v.strides[d], &reach) ||
        mul_overflow(reach, item_size(v.dtype), &reach))
      overflows();
    int64_t& bound = reach < 0 ? low : high;
    if (add_overflow(bound, reach, &bound)) overflows();
  }
  if (v.offset + low < 0 || v.offset > g_.storages[v.storage].bytes - high)
    fail(code_, "value {}: {} with strides {} at byte {} leaves its storage of {} bytes", i,
         v.sizes.span(), v.strides.span(), v.offset, g_.storages[v.storage].bytes);
}

void Verifier::check_read(int32_t node, int32_t value) const {
  if (value < -1 || value >= g_.values.size())
    fail(code_, "node {} reads value {}: there are {}", node, value, g_.values.size());
  if (value < 0) return;
  const IrValue& v = g_.values[value];
  if (!exists_[v.storage]) fail(code_, "node {} reads value {} before it is made", node, value);
  if (v.version != version_[v.storage])
    fail(code_, "node {} reads value {}, version {} of storage {}: it has version {} then", node,
         value, v.version, v.storage, version_[v.storage]);
}

// Different inputs have different storages.
void Verifier::check_input(int32_t value) {
  check_read(-1, value);
  const int32_t storage = value < 0 ? -1 : g_.values[value].storage;
  if (storage < 0 || g_.storages[storage].role != IrRole::kInput)
    fail(code_, "value {} is an input, but its storage is not", value);
  if (is_given_[storage]) fail(code_, "two inputs share storage {}", storage);
  is_given_[storage] = true;
}

void Verifier::check_args(int32_t node) const {
  const IrNode& n = g_.nodes[node];
  if (!n.op || n.args.size() != n.op->schema->n_args)
    fail(code_, "node {} has {} arguments: its operator takes {}", node, n.args.size(),
         n.op ? n.op->schema->n_args : 0);
  for (const IrArg& a : n.args) {
    if (a.kind == Value::kTensor && a.values.size() != 1)
      fail(code_, "node {}: a tensor argument has {} values", node, a.values.size());
    if (a.kind == Value::kRng && (a.draw < 0 || a.draw >= g_.draws.size()))
      fail(code_, "node {} uses draw {}: there are {}", node, a.draw, g_.draws.size());
    if (a.kind == Value::kRng && g_.draws[a.draw].node > node)
      fail(code_, "node {} uses draw {} before it is drawn", node, a.draw);
    for (const int32_t v : a.values) check_read(node, v);
  }
  if (n.scope < -1 || n.scope >= g_.scopes.size())
    fail(code_, "node {} is in scope {}: there are {}", node, n.scope, g_.scopes.size());
}

void Verifier::take_outs(int32_t node) {
  const IrNode& n = g_.nodes[node];
  for (int64_t k = 0; k < n.outs.size(); k++) {
    const int32_t out = n.outs[k];
    if (out < -1 || out >= g_.values.size())
      fail(code_, "node {} makes value {}: there are {}", node, out, g_.values.size());
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
      fail(code_, "storage {} ({}) has {} bytes and {} tensor", i, role_name(s.role), s.bytes,
           s.tensor ? "a" : "no");
    version_.push_back(s.version);
    exists_.push_back(outside);
    is_given_.push_back(false);
  }
  for (int64_t i = 0; i < g_.values.size(); i++) check_value(int32_t(i));
  for (int64_t i = 0; i < g_.draws.size(); i++)
    if (g_.draws[i].node < (i ? g_.draws[i - 1].node : 0) || g_.draws[i].node > g_.nodes.size())
      fail(code_, "draw {} is before node {}: out of order", i, g_.draws[i].node);
  for (const int32_t v : g_.inputs) check_input(v);
  for (int64_t i = 0; i < g_.nodes.size(); i++) {
    check_args(int32_t(i));
    take_outs(int32_t(i));
  }
  for (const int32_t v : g_.outputs) check_read(int32_t(g_.nodes.size()), v);
}

}  // namespace

void verify_graph(const Graph& g, tt_status code) { Verifier(g, code).run(); }

}  // namespace TT_NS
