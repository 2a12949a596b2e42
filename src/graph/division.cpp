#include "graph/division.h"

#include "graph/rewrite.h"

namespace TT_NS {

namespace {

[[noreturn]] TT_COLD void refuse(const char* why) { fail(TT_NOT_IMPLEMENTED, "{}", why); }

}  // namespace

void GraphDivision::find_makers() {
  for (const IrStorage& s : g_.storages) {
    maker_.push_back(-1);
    version_.push_back(s.version);
    writer_.push_back(-1);
    read_.push_back(false);
  }
  for (int32_t i = 0; i < g_.nodes.size(); i++)
    for (const int32_t out : g_.nodes[i].outs) {
      if (out < 0) continue;
      const IrValue& v = g_.values[out];
      const bool is_made = g_.storages[v.storage].role == IrRole::kMade;
      if (is_made && maker_[v.storage] < 0) maker_[v.storage] = i;
      if (i >= n_first_ || (v.version == version_[v.storage] && maker_[v.storage] != i)) continue;
      version_[v.storage] = v.version;
      writer_[v.storage] = i;
    }
}

void GraphDivision::read(int32_t value) {
  const IrValue& v = g_.values[value];
  const IrStorage& s = g_.storages[v.storage];
  const bool is_made = s.role == IrRole::kMade;
  if (is_made && maker_[v.storage] >= n_first_) return;
  if (v.version != version_[v.storage]) refuse("a gradient needs what was overwritten");
  if (read_[v.storage]) return;
  read_[v.storage] = true;
  if (s.device.type != TT_CPU) refuse("a gradient needs memory of a device");
  if (is_made) memories_.push_back(v.storage);
}

void GraphDivision::read(const IrArg& a) {
  for_each_value(a, [&](int32_t v) { read(v); });
  if (a.kind == Value::kGenerator) refuse("a gradient draws random numbers");
  if (a.kind != Value::kRng) return;
  if (g_.draws[a.draw].node >= n_first_) refuse("a gradient draws random numbers");
  for (const int32_t d : draws_)
    if (d == a.draw) return;
  draws_.push_back(a.draw);
}

GraphDivision::GraphDivision(const Graph& g, int64_t n_nodes, int64_t n_inputs, int64_t n_outputs)
    : g_(g), n_first_(int32_t(n_nodes)), n_inputs_(n_inputs), n_outputs_(n_outputs) {
  find_makers();
  for (int64_t i = n_first_; i < g_.nodes.size(); i++) {
    const IrNode& n = g_.nodes[i];
    bool is_random = n.op->schema->random;
    for (const IrArg& a : n.args) {
      read(a);
      is_random = is_random && a.kind != Value::kRng;
    }
    if (is_random) refuse("a gradient draws random numbers");  // its implementation reserves them
    for (int64_t k = n.n_results; k < n.outs.size(); k++)
      if (n.outs[k] >= 0 && maker_[g_.values[n.outs[k]].storage] < n_first_)
        refuse("a gradient writes memory that it has not made");
  }
  for (int64_t i = n_outputs_; i < g_.outputs.size(); i++) read(g_.outputs[i]);
}

int32_t GraphDivision::whole_value(Graph& g, int32_t storage) const {
  const int64_t one = 1;
  return g.value(storage, version_[storage], Dtype::kU8, 0, Ints(&g.storages[storage].bytes, 1),
                 Ints(&one, 1), writer_[storage], -1);
}

int32_t GraphDivision::value_behind(Graph& g, int32_t input) const {
  const IrValue v = g.values[input];
  return g.value(v.storage, version_[v.storage], v.dtype, v.offset, v.sizes, v.strides,
                 writer_[v.storage], -1);
}

Ref<Graph> GraphDivision::first() const {
  Ref<Graph> out = copy_graph(g_);
  Graph& g = *out;
  g.inputs.resize(n_inputs_);
  g.outputs.resize(n_outputs_);
  for (const int32_t s : memories_) g.outputs.push_back(whole_value(g, s));
  while (!g.draws.empty() && g.draws.back().node > n_first_) g.draws.pop_back();
  SmallVec<bool, 64> keep;
  for (int32_t i = 0; i < g.nodes.size(); i++) keep.push_back(i < n_first_);
  remove_nodes(g, {keep.data(), keep.size()});
  verify_graph(g);
  return out;
}

Ref<Graph> GraphDivision::second() const {
  Ref<Graph> out = copy_graph(g_);
  Graph& g = *out;
  SmallVec<int32_t, 8> inputs;
  for (int64_t k = 0; k < n_inputs_; k++)
    if (read_[g.values[g.inputs[k]].storage]) inputs.push_back(value_behind(g, g.inputs[k]));
  for (const int32_t s : memories_) inputs.push_back(whole_value(g, s));
  for (int64_t k = n_inputs_; k < g.inputs.size(); k++) inputs.push_back(g.inputs[k]);
  for (int32_t i = 0; i < g.storages.size(); i++) {
    IrStorage& s = g.storages[i];
    if (!read_[i]) continue;
    s.version = version_[i];
    if (s.role == IrRole::kState) s.role = IrRole::kConstant;
    if (s.role != IrRole::kMade) continue;
    const int64_t none = 0;
    s.role = IrRole::kInput;
    s.tensor = new_tensor(Ints(&none, 1), Dtype::kU8, kCpuDevice);
  }
  g.inputs.clear();
  for (const int32_t v : inputs) g.inputs.push_back(v);
  g.outputs.clear();
  for (int64_t i = n_outputs_; i < g_.outputs.size(); i++) g.outputs.push_back(g_.outputs[i]);
  while (!g.draws.empty() && g.draws.back().node > n_first_) g.draws.pop_back();
  for (IrDraw& d : g.draws) d.node = 0;
  SmallVec<bool, 64> keep;
  for (int32_t i = 0; i < g.nodes.size(); i++) keep.push_back(i >= n_first_);
  remove_nodes(g, {keep.data(), keep.size()});
  verify_graph(g);
  return out;
}

}  // namespace TT_NS
