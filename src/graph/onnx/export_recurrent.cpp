#include "graph/onnx/exporter.h"
#include "plan/recurrent_plan.h"

#include <string.h>

namespace TT_NS {

// The node that computes the gates of the input, v, by a linear layer; -1: another one does.
int32_t OnnxExporter::gates_of(int32_t v) const {
  const int32_t n = g_.values[v].node;
  if (n < 0 || g_.nodes[n].outs.size() != 1 || g_.nodes[n].outs[0] != v) return -1;
  return strcmp(g_.nodes[n].op->name(), "linear_rows") == 0 ? n : -1;
}

// ONNX's recurrent nodes have the product with the input: those that nothing else reads are left
// out.
void OnnxExporter::find_gates() {
  SmallVec<int32_t, 16> uses;
  uses.resize(g_.values.size());
  skip_.resize(g_.nodes.size());
  for (const IrNode& n : g_.nodes) for_each_value(n, [&](int32_t v) { uses[v]++; });
  for (const int32_t v : g_.outputs) uses[v] += 2;
  for (const IrNode& n : g_.nodes) {
    if (strcmp(n.op->name(), "recurrent_layer") != 0) continue;
    const int32_t v = n.args[0].values[0];
    const int32_t from = gates_of(v);
    if (from >= 0 && uses[v] == 1) skip_[from] = true;
  }
}

// The rows of all gates in another order: ONNX has them as i o f c and as z r h.
ModelValue OnnxExporter::by_gates(int32_t v, Ints order) {
  if (order.n == 1) return of_value(v);
  const IrValue& x = g_.values[v];
  const int64_t each = x.sizes[0] / order.n;
  if (g_.storages[x.storage].role != IrRole::kConstant) {
    SmallVec<int64_t, 16> rows;
    for (const int64_t from : order)
      for (int64_t i = 0; i < each; i++) rows.push_back(from * each + i);
    return node("Gather", {of_value(v), constant({rows.data(), rows.size()})}, x.dtype);
  }
  const char* data = g_.storages[x.storage].tensor->storage->data;
  Bytes dense, sorted;
  each_element(x, [&](int64_t at) { dense.append({data + at, item_size(x.dtype)}); });
  const int64_t bytes = dense.size() / order.n;
  for (const int64_t from : order) sorted.append({dense.data() + from * bytes, bytes});
  return initializer(x.dtype, x.sizes, sorted.data(), sorted.size());
}

// Whether nodes and outputs read v, a matrix without gaps, at rows [begin, end) only.
bool OnnxExporter::reads_only(int32_t v, int64_t begin, int64_t end) const {
  const IrValue& all = g_.values[v];
  const int64_t row = all.strides[0] * item_size(all.dtype);
  const auto inside = [&](int32_t i) {
    const IrValue& x = g_.values[i];
    if (x.storage != all.storage) return true;
    int64_t reach = x.numel() ? 1 : 0;
    for (int64_t d = 0; d < x.ndim() && reach; d++) reach += (x.sizes[d] - 1) * x.strides[d];
    return !reach || (x.offset >= all.offset + begin * row &&
                      x.offset + reach * item_size(x.dtype) <= all.offset + end * row);
  };
  for (const int32_t i : g_.outputs)
    if (!inside(i)) return false;
  for (const IrNode& n : g_.nodes) {
    bool view = n.outs.size() == n.n_results && !n.outs.empty();
    for (int64_t k = 0; k < n.outs.size() && view; k++)
      view = n.outs[k] < 0 || is_view_out(g_, n, k);
    bool fits = true;
    if (!view) for_each_value(n, [&](int32_t i) { fits = fits && inside(i); });
    if (!fits) return false;
  }
  return true;
}

// A matrix of `total` rows of which only those of the last step are known.
ModelValue OnnxExporter::last_rows_only(ModelValue rows, int64_t total, bool reverse) {
  const Dtype d = rows.dtype;
  const IrValue& v = out_value(1);
  const int64_t missing[] = {total, v.sizes[1]};
  if (total == 0) return rows;
  const ModelValue none = node("Expand", {number(0, d), constant(Ints(missing))}, d);
  const AttrWriter axis = AttrWriter().integer("axis", 0);
  return reverse ? node("Concat", {rows, none}, d, axis) : node("Concat", {none, rows}, d, axis);
}

OnnxExporter::RecurrentInput OnnxExporter::recurrent_input(Ints order) {
  const int32_t linear = gates_of(arg("gates").values[0]);
  if (linear < 0 || !skip_[linear]) refuse("gates that no linear layer computes");
  const SmallVec<IrArg, 4>& args = g_.nodes[linear].args;
  const Ints batches = arg("batch_sizes").ints;
  const int64_t width = order.n * value("w_hh").sizes[1];
  const int64_t depth = g_.values[args[1].values[0]].sizes[1];
  const int64_t by_step[] = {batches.n, batches[0], depth};
  const int64_t one[] = {1, width, depth};
  RecurrentInput in;
  in.x = of_value(args[0].values[0]);
  in.w = by_gates(args[1].values[0], order);
  if (args[2].kind == Value::kTensor) in.bias = by_gates(args[2].values[0], order);
  in.x = reshape(in.x, Ints(by_step));
  in.w = reshape(in.w, Ints(one));
  return in;
}

ModelValue OnnxExporter::recurrent_bias(ModelValue b_ih, ModelValue b_hh, Dtype d, int64_t width) {
  if (b_ih.id < 0 && b_hh.id < 0) return ModelValue();
  const int64_t vector[] = {width};
  const int64_t both[] = {1, 2 * width};
  for (ModelValue* half : {&b_ih, &b_hh})
    if (half->id < 0) *half = node("Expand", {number(0, d), constant(Ints(vector))}, d);
  const ModelValue b = along(0, "Concat", {b_ih, b_hh}, d);
  return reshape(b, Ints(both));
}

bool OnnxExporter::emit_recurrent() {
  if (!is("recurrent_layer")) return false;
  static constexpr int64_t kLstmOrder[] = {0, 3, 1, 2};
  static constexpr int64_t kGruOrder[] = {1, 0, 2};
  static constexpr int64_t kOne[] = {0};
  const int64_t mode = integer("mode");
  const bool lstm = mode == kLstm;
  const bool reverse = integer("reverse");
  Ints order(kOne);
  if (lstm) order = Ints(kLstmOrder);
  if (mode == kGru) order = Ints(kGruOrder);
  const Ints batches = arg("batch_sizes").ints;
  for (const int64_t n : batches)
    if (n != batches[0]) refuse("packed sequences");
  if (has("w_hr")) refuse("a projection");
  const int64_t steps = batches.n;
  const int64_t rows = batches[0];
  const int64_t total = steps * rows;
  if (total == 0) refuse("no sequences");
  const IrValue& w_hh = value("w_hh");
  const Dtype d = w_hh.dtype;
  const int64_t hidden = w_hh.sizes[1];
  const int64_t width = order.n * hidden;
  const int64_t end_row = reverse ? 0 : total - rows;  // row of the step that comes last
  if (lstm && at().outs[1] >= 0 && !reads_only(at().outs[1], end_row, end_row + rows))
    refuse("cells of all steps");
  const RecurrentInput in = recurrent_input(order);
  const int64_t matrix[] = {1, width, hidden};
  const int64_t state[] = {1, rows, hidden};
  const int64_t flat[] = {total, hidden};
  const int64_t last[] = {rows, hidden};
  const ModelValue r = reshape(by_gates(arg("w_hh").values[0], order), Ints(matrix));
  ModelValue b_hh;
  if (has("b_hh")) b_hh = by_gates(arg("b_hh").values[0], order);
  const ModelValue b = recurrent_bias(in.bias, b_hh, d, width);
  AttrWriter attrs;
  attrs.integer("hidden_size", hidden).text("direction", reverse ? "reverse" : "forward");
  if (mode == kGru) attrs.integer("linear_before_reset", 1);
  static constexpr const char* kRelu[] = {"Relu"};
  if (mode == kRnnRelu) attrs.texts("activations", {kRelu, 1});
  const ModelValue h0 = reshape(tensor("h0"), Ints(state));
  ModelValue c0;
  if (lstm) c0 = reshape(tensor("c0"), Ints(state));
  const char* type = "RNN";
  if (lstm) type = "LSTM";
  if (mode == kGru) type = "GRU";
  ModelValue outs[3] = {new_tensor(), new_tensor(), new_tensor()};
  for (ModelValue& y : outs) y.dtype = d;
  node_to(type, {in.x, in.w, r, b, ModelValue(), h0, c0},
          Span<const ModelValue>(outs, lstm ? 3 : 2), attrs);
  give(reshape(outs[0], Ints(flat)));
  if (lstm && at().outs[1] >= 0)
    give(last_rows_only(reshape(outs[2], Ints(last)), total - rows, reverse), 1);
  return true;
}

}  // namespace TT_NS
