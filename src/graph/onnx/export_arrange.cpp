// Reductions, joined and rearranged elements, and results without tensor inputs.
#include "graph/node_call.h"
#include "graph/onnx/exporter.h"
#include "ops/impl.h"

namespace TT_NS {

// ---- reductions ----

void OnnxExporter::emit_position() {
  const bool whole = !has("dim");
  const int64_t all = value("self").numel();
  ModelValue x = tensor("self");
  if (x.dtype == Dtype::kBool) x = cast(x, Dtype::kI32);
  if (whole) x = reshape(x, Ints(&all, 1));
  AttrWriter a;
  a.integer("axis", whole ? 0 : integer("dim"));
  a.integer("keepdims", 0);
  const ModelValue y = node(is("argmax") ? "ArgMax" : "ArgMin", {x}, Dtype::kI64, a);
  give(reshape(y, out_value().sizes));
}

// The reduction of ONNX for the operator at hand; NULL: there is none.
const char* OnnxExporter::reduction() const {
  static constexpr struct {
    const char *tt, *onnx;
  } kSame[] = {{"sum", "ReduceSum"},
               {"sum_dim", "ReduceSum"},
               {"mean", "ReduceMean"},
               {"mean_dim", "ReduceMean"},
               {"amax", "ReduceMax"},
               {"amin", "ReduceMin"},
               {"max", "ReduceMax"},
               {"min", "ReduceMin"},
               {"prod", "ReduceProd"},
               {"prod_dim", "ReduceProd"},
               {"logsumexp", "ReduceLogSumExp"},
               {"any", "ReduceMax"},
               {"any_dim", "ReduceMax"},
               {"all", "ReduceMin"},
               {"all_dim", "ReduceMin"}};
  for (const auto& f : kSame)
    if (is(f.tt)) return f.onnx;
  if (!is("norm")) return nullptr;
  if (real("p") == 1) return "ReduceL1";
  if (real("p") == 2) return "ReduceL2";
  refuse("p other than 1 and 2");
}

bool OnnxExporter::emit_reduce() {
  if (is("argmax") || is("argmin")) {
    emit_position();
    return true;
  }
  const char* const type = reduction();
  if (!type) return false;
  Dtype d = out_value().dtype;
  ModelValue x = tensor("self");
  if (d == Dtype::kBool || strncmp(op(), "any", 3) == 0 || strncmp(op(), "all", 3) == 0) {
    x = cast(cast(x, Dtype::kBool), Dtype::kI32);
    d = Dtype::kI32;
  }
  x = cast(x, d);
  Shape axes;
  if (find_arg("dim") && arg("dim").kind == Value::kInts) axes = Shape(arg("dim").ints.span());
  else if (find_arg("dim") && arg("dim").kind == Value::kInt) axes.push_back(integer("dim"));
  if (value("self").ndim() == 0) axes.clear();
  const ModelValue dims = axes.empty() ? ModelValue() : constant(axes);
  const bool keeps = find_arg("keepdim") && integer("keepdim");
  give(node(type, {x, dims}, d, AttrWriter().integer("keepdims", keeps)));
  return true;
}

// By arrays of differences; sign(d) counts elements.
void OnnxExporter::emit_row_distances() {
  const double p = real("p");
  if (p != 0 && p != 1 && p != 2) refuse("p other than 0, 1 and 2");
  const Dtype d = out_value().dtype;
  const int64_t n = value("x1").sizes[1];
  ModelValue x[2] = {tensor("x1"), tensor("x2")};
  int64_t axis = 3;
  if (integer("pairs")) {
    axis = 2;
    if (n * n > kMaxIndexTable) refuse("a matrix of this size");
    OnnxPositions rows[2];
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = i + 1; j < n; j++) {
        rows[0].push_back(i);
        rows[1].push_back(j);
      }
    const int64_t pairs = n * (n - 1) / 2;
    for (int k = 0; k < 2; k++)
      x[k] = along(1, "Gather", {x[k], initializer_of(rows[k], Ints(&pairs, 1))}, d);
  } else {
    for (int64_t k = 0; k < 2; k++) {
      const int64_t place = 2 - k;
      x[k] = node("Unsqueeze", {x[k], constant(Ints(&place, 1))}, d);
    }
  }
  ModelValue difference = node("Sub", {x[0], x[1]}, d);
  if (p == 0) difference = node("Sign", {difference}, d);
  give(node(p == 2 ? "ReduceL2" : "ReduceL1", {difference, constant(Ints(&axis, 1))}, d,
            AttrWriter().integer("keepdims", 0)));
}

// ---- arrangement ----

void OnnxExporter::emit_cat() {
  const Dtype d = out_value().dtype;
  SmallVec<ModelValue, 8> parts;
  for (const int32_t v : arg("tensors").values)
    if (g_.values[v].ndim() == out_value().ndim()) parts.push_back(cast(of_value(v), d));
  if (parts.size() == 1) return give(parts[0]);
  const Span<const ModelValue> all(parts.data(), parts.size());
  give(along(integer("dim"), "Concat", all, d));
}

void OnnxExporter::emit_embedding() {
  give(along(0, "Gather", {tensor("weight"), tensor("indices")}, out_value().dtype));
}

void OnnxExporter::emit_index_select() {
  if (value("self").ndim() == 0) refuse("a number");
  const int64_t one = 1;
  ModelValue index = tensor("index");
  if (value("index").ndim() == 0) index = reshape(index, Ints(&one, 1));
  give(along(integer("dim"), "Gather", {tensor("self"), index}, out_value().dtype));
}

void OnnxExporter::emit_gather() {
  const IrValue &x = value("self"), &index = value("index");
  if (x.ndim() == 0) refuse("a number");
  const int64_t dim = integer("dim") < 0 ? integer("dim") + x.ndim() : integer("dim");
  for (int64_t i = 0; i < x.ndim(); i++)
    if (i != dim && x.sizes[i] != index.sizes[i]) refuse("an index that is smaller than self");
  give(along(dim, "GatherElements", {tensor("self"), tensor("index")}, out_value().dtype));
}

void OnnxExporter::emit_triangle() {
  const int64_t k = integer("diagonal");
  give(node("Trilu", {tensor("self"), constant(Ints(&k, 1), 0)}, out_value().dtype,
            AttrWriter().integer("upper", is("triu"))));
}

void OnnxExporter::emit_flip() {
  const Dtype d = out_value().dtype;
  const Ints dims = arg("dims").ints;
  if (dims.empty()) return give(node("Identity", {tensor("self")}, d));
  SmallVec<int64_t, 8> last, before_first;
  for (int64_t i = 0; i < dims.n; i++) {
    last.push_back(-1);
    before_first.push_back(INT64_MIN);
  }
  const ModelValue starts = constant(last);
  const ModelValue ends = constant(before_first);
  const ModelValue axes = constant(dims);
  const ModelValue steps = constant(last);
  give(node("Slice", {tensor("self"), starts, ends, axes, steps}, d));
}

// What is before each dimension, then what is behind each.
Shape OnnxExporter::pads() const {
  const int64_t n = value("self").ndim();
  const Ints pad = arg("pad").ints;
  Shape pads;
  pads.resize(2 * n);
  for (int64_t i = 0; i < pad.n / 2; i++) {
    pads[n - 1 - i] = pad[2 * i];
    pads[2 * n - 1 - i] = pad[2 * i + 1];
  }
  return pads;
}
void OnnxExporter::emit_pad() {
  const Dtype d = out_value().dtype;
  give(node("Pad", {tensor("self"), constant(pads()), number_of("value", d)}, d));
}

// topk, sort and argsort.
void OnnxExporter::emit_topk() {
  const bool some = is("topk");
  const int64_t dim = dim_of("self");
  const int64_t k = some ? integer("k") : value("self").sizes[dim];
  ModelValue x = tensor("self");
  if (x.dtype == Dtype::kBool) x = cast(x, Dtype::kI32);
  ModelValue outs[2] = {new_tensor(), new_tensor()};
  outs[0].dtype = x.dtype;
  outs[1].dtype = Dtype::kI64;
  node_to("TopK", {x, constant(Ints(&k, 1))}, Span<const ModelValue>(outs, 2),
          AttrWriter()
              .integer("axis", dim)
              .integer("largest", integer(some ? "largest" : "descending"))
              .integer("sorted", 1));
  if (is("argsort")) return give(outs[1]);
  give(outs[0], 0);
  give(outs[1], 1);
}

void OnnxExporter::emit_border() {
  static constexpr const char* kModes[] = {nullptr, "reflect", "edge", "wrap"};
  const Dtype d = out_value().dtype;
  const int64_t mode = integer("mode");
  if (mode < 1 || mode > 3) refuse("an unknown mode");
  for (const int64_t p : arg("pad").ints)
    if (p < 0) refuse("a border that is cut");
  give(node("Pad", {tensor("self"), constant(pads())}, d, AttrWriter().text("mode", kModes[mode])));
}

void OnnxExporter::emit_filled() {
  const Dtype d = out_value().dtype;
  give(expanded(cast(tensor("value"), d), out_value().sizes));
}

bool OnnxExporter::emit_arrange() {
  static constexpr Emitter kTable[] = {
      {"cat", &OnnxExporter::emit_cat},
      {"row_distances", &OnnxExporter::emit_row_distances},
      {"embedding", &OnnxExporter::emit_embedding},
      {"index_select", &OnnxExporter::emit_index_select},
      {"gather", &OnnxExporter::emit_gather},
      {"tril", &OnnxExporter::emit_triangle},
      {"triu", &OnnxExporter::emit_triangle},
      {"flip", &OnnxExporter::emit_flip},
      {"constant_pad_nd", &OnnxExporter::emit_pad},
      {"topk", &OnnxExporter::emit_topk},
      {"sort", &OnnxExporter::emit_topk},
      {"argsort", &OnnxExporter::emit_topk},
      {"pad_indexed", &OnnxExporter::emit_border},
      {"fill_tensor", &OnnxExporter::emit_filled},
      {"fill_tensor_", &OnnxExporter::emit_filled},
  };
  return emit_by(kTable);
}

bool OnnxExporter::emit_copy() {
  for (const char* name : {"clone", "contiguous", "to_dtype", "positive", "conj_physical"})
    if (is(name)) {
      const ModelValue x = tensor("self");
      give(x.dtype == out_value().dtype ? node("Identity", {x}, x.dtype) : x);
      return true;
    }
  const bool written = !at().outs.empty() && at().outs[0] >= 0;
  if (!written) return false;
  const auto filled_with = [&](ModelValue v) {
    give(node("Expand", {v, constant(out_value().sizes)}, v.dtype));
    return true;
  };
  const auto filled = [&](double v) { return filled_with(number(v, out_value().dtype)); };
  if (is("copy_")) {
    give(node("Expand", {cast(tensor("src"), out_value().dtype), constant(out_value().sizes)},
              out_value().dtype));
    return true;
  }
  for (const char* name : {"empty", "empty_like", "empty_strided"})  // its numbers mean nothing
    if (is(name)) return filled(0);
  if (is("zeros") || is("zeros_like") || is("zero_")) return filled(0);
  if (is("ones") || is("ones_like")) return filled(1);
  if (is("full") || is("full_like")) return filled_with(number_of("fill_value", out_value().dtype));
  if (is("fill_") || is("fill")) return filled_with(number_of("value", out_value().dtype));
  if (is("arange")) {
    const IrValue& y = out_value();
    if (growth_) {
      const Dtype wide = is_float(y.dtype) ? Dtype::kF64 : Dtype::kI64;
      const int64_t n = y.numel();
      const ModelValue count = cast(range(constant(Ints(&n, 1))), wide);
      const ModelValue steps = node("Mul", {count, number(real("step"), wide)}, wide);
      give(node("Add", {steps, number(real("start"), wide)}, wide));
      return true;
    }
    Bytes table;
    for (int64_t i = 0; i < y.numel(); i++) {
      char one[16];
      const double v = real("start") + double(i) * real("step");
      store_scalar(one, y.dtype, is_float(y.dtype) ? Scalar(v) : Scalar(int64_t(v)));
      table.append({one, item_size(y.dtype)});
    }
    of_[at().outs[0]] = initializer(y.dtype, y.sizes, table.data(), table.size());
    return true;
  }
  return false;
}

// ---- without inputs ----

// Results of an operator without tensors, as tables.
bool OnnxExporter::emit_generated() {
  const IrNode& n = at();
  if (!takes_no_tensors(n) || n.outs.empty() || n.outs.size() != n.n_results) return false;
  for (int64_t i = 0; i < n.outs.size(); i++)
    if (n.outs[i] < 0 || out_value(i).numel() > kMaxIndexTable) return false;
  const TensorList outs = results_without_tensors(n);
  for (int64_t i = 0; i < outs.size(); i++) {
    const TensorRef t = dense_input(*outs[i]);
    if (!t->is_cpu() || !t->contiguous()) return false;
    of_[n.outs[i]] = initializer(t->dtype, t->sizes(), t->data, t->numel * t->item_size());
  }
  return true;
}

}  // namespace TT_NS
