// Running results, order, writes to views, losses by class, and numbers without inputs.
#include "graph/node_call.h"
#include "graph/onnx/exporter.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS {

namespace {

constexpr int64_t kMaxPairs = 1 << 20;  // of elements that are compared with each other

IrValue dense_value(Ints sizes, Dtype dtype) {
  IrValue v = {};
  v.dtype = dtype;
  v.sizes = Shape(sizes);
  v.strides.resize(sizes.n);
  contiguous_strides(sizes, v.strides.data());
  return v;
}

}  // namespace

ModelValue OnnxExporter::sliced(ModelValue x, int64_t dim, int64_t begin, int64_t end) {
  return node("Slice",
              {x, constant(Ints(&begin, 1)), constant(Ints(&end, 1)), constant(Ints(&dim, 1))},
              x.dtype);
}
ModelValue OnnxExporter::reduced(const char* type, ModelValue x, int64_t dim, bool keeps) {
  return node(type, {x, constant(Ints(&dim, 1))}, x.dtype, AttrWriter().integer("keepdims", keeps));
}
ModelValue OnnxExporter::compared(const char* type, ModelValue a, ModelValue b) {
  return node(type, {a, b}, Dtype::kBool);
}
// Where elements are nan; absent for integers.
ModelValue OnnxExporter::nans_of(ModelValue x) {
  return is_float(x.dtype) ? node("IsNaN", {x}, Dtype::kBool) : ModelValue();
}
// 0, 1, … along a dimension of size n, in a tensor of ndim dimensions.
ModelValue OnnxExporter::counted(int64_t n, int64_t dim, int64_t ndim) {
  OnnxPositions list;
  for (int64_t i = 0; i < n; i++) list.push_back(i);
  Shape sizes;
  sizes.resize(ndim, 1);
  sizes[dim] = n;
  return initializer_of(list, sizes);
}
// The size of a dimension on which the number of nodes depends.
int64_t OnnxExporter::fixed_size(const char* name, int64_t dim) const {
  const int64_t size = value(name).sizes[dim];
  for (const Graph* g : graphs_)
    if (g->values[&value(name) - g_.values.data()].sizes[dim] != size)
      refuse("its dimension is dynamic");
  return size;
}

// ---- running results ----

// Combines each element with the one `by` positions before it, for by = 1, 2, 4, …
template <class F>
ModelValue OnnxExporter::running(ModelValue x, int64_t dim, int64_t n, const F& combine) {
  for (int64_t by = 1; by < n; by *= 2) {
    const ModelValue later = combine(sliced(x, dim, 0, n - by), sliced(x, dim, by, n));
    x = along(dim, "Concat", {sliced(x, dim, 0, by), later}, x.dtype);
  }
  return x;
}

void OnnxExporter::emit_cumprod() {
  const Dtype d = out_value().dtype;
  const int64_t dim = dim_of("self");
  give(running(cast(tensor("self"), d), dim, fixed_size("self", dim),
               [&](ModelValue a, ModelValue b) {
                 return node("Mul", {a, b}, d);
               }));
}

// The larger one, and log(1 + exp(-difference)).
void OnnxExporter::emit_logcumsumexp() {
  const Dtype d = out_value().dtype;
  const int64_t dim = dim_of("self");
  const auto join = [&](ModelValue a, ModelValue b) {
    const ModelValue equal = compared("Equal", a, b);
    const ModelValue apart = node("Abs", {node("Sub", {a, b}, d)}, d);
    const ModelValue safe = node("Where", {equal, number(0, d), apart}, d);
    const ModelValue rest = node("Softplus", {node("Neg", {safe}, d)}, d);
    const ModelValue high = node("Where", {compared("Greater", b, a), b, a}, d);
    const ModelValue some = node("Where", {nans_of(b), b, high}, d);
    return node("Add", {some, rest}, d);
  };
  give(running(cast(tensor("self"), d), dim, fixed_size("self", dim), join));
}

// Positions of the extremes so far, of which the last is taken, then the elements there.
void OnnxExporter::emit_running_extreme() {
  const int64_t dim = dim_of("self");
  const int64_t n = fixed_size("self", dim);
  ModelValue x = tensor("self");
  if (x.dtype == Dtype::kBool) x = cast(x, Dtype::kI32);
  const char* const wins = is("cummax") ? "GreaterOrEqual" : "LessOrEqual";
  const auto later = [&](ModelValue a, ModelValue b) {
    const ModelValue old = along(dim, "GatherElements", {x, a}, x.dtype);
    const ModelValue next = along(dim, "GatherElements", {x, b}, x.dtype);
    ModelValue takes = compared(wins, next, old);
    if (const ModelValue nan = nans_of(next); nan.id >= 0) takes = compared("Or", takes, nan);
    return node("Where", {takes, b, a}, Dtype::kI64);
  };
  const ModelValue first = expanded(counted(n, dim, value("self").ndim()), value("self").sizes);
  const ModelValue places = running(first, dim, n, later);
  give(along(dim, "GatherElements", {x, places}, x.dtype));
  give(places, 1);
}

// ---- order ----

// The elements of each row at the ranks among them, where nan counts as inf, and their places.
OnnxExporter::Ranked OnnxExporter::ranked(ModelValue x, int64_t dim, int64_t n, ModelValue ranks) {
  ModelValue key = x;
  if (const ModelValue nan = nans_of(x); nan.id >= 0)
    key = node("Where", {nan, number(kInf, x.dtype), x}, x.dtype);
  ModelValue outs[2] = {new_tensor(), new_tensor()};
  outs[0].dtype = x.dtype;
  outs[1].dtype = Dtype::kI64;
  node_to("TopK", {key, constant(Ints(&n, 1))}, Span<const ModelValue>(outs, 2),
          AttrWriter().integer("axis", dim).integer("largest", 0).integer("sorted", 1));
  const ModelValue places = along(dim, "GatherElements", {outs[1], ranks}, Dtype::kI64);
  return {along(dim, "GatherElements", {x, places}, x.dtype), places};
}

// median, nanmedian and kthvalue, of a dimension or of all.
void OnnxExporter::emit_rank() {
  const bool whole = !find_arg("dim");
  const bool skips = strncmp(op(), "nan", 3) == 0;
  const int64_t all = value("self").numel();
  ModelValue x = tensor("self");
  if (x.dtype == Dtype::kBool) x = cast(x, Dtype::kI32);
  if (whole) x = reshape(x, Ints(&all, 1));
  const int64_t dim = whole ? 0 : dim_of("self");
  const int64_t n = whole ? all : fixed_size("self", dim);
  if (!n) refuse("no element");
  Shape sizes;
  if (whole) sizes.push_back(1);
  else sizes = Shape(value("self").sizes.span());
  sizes[dim] = 1;
  const ModelValue nan = is("kthvalue") ? ModelValue() : nans_of(x);
  ModelValue ranks =
      expanded(number(double(is("kthvalue") ? integer("k") - 1 : (n - 1) / 2), Dtype::kI64), sizes);
  const ModelValue flags = nan.id >= 0 ? cast(nan, Dtype::kI64) : nan;
  if (skips && nan.id >= 0) {  // (n - 1 - nans) / 2, at least 0
    const ModelValue count = reduced("ReduceSum", flags, dim, true);
    const ModelValue last = node("Sub", {number(double(n - 1), Dtype::kI64), count}, Dtype::kI64);
    const ModelValue some = node("Max", {last, number(0, Dtype::kI64)}, Dtype::kI64);
    ranks = node("Div", {some, number(2, Dtype::kI64)}, Dtype::kI64);
  }
  Ranked y = ranked(x, dim, n, ranks);
  if (!skips && nan.id >= 0) {
    const ModelValue any = cast(reduced("ReduceMax", flags, dim, true), Dtype::kBool);
    const ModelValue first = node("ArgMax", {flags}, Dtype::kI64,
                                  AttrWriter().integer("axis", dim).integer("keepdims", 1));
    y.places = node("Where", {any, first, y.places}, Dtype::kI64);
    y.values = along(dim, "GatherElements", {x, y.places}, x.dtype);
  }
  give(reshape(y.values, out_value().sizes));
  if (!whole) give(reshape(y.places, out_value(1).sizes), 1);
}

// The element that most others equal, the least of several, and its last place.
void OnnxExporter::emit_mode() {
  const int64_t last = value("self").ndim();
  const int64_t dim = dim_of("self");
  const int64_t n = fixed_size("self", dim);
  const Dtype d = promote(value("self").dtype, Dtype::kI32);
  if (!n || n * n > kMaxPairs) refuse("no elements, or very many");
  Shape order, row, column;
  for (int64_t i = 0; i < last; i++) order.push_back(i);
  std::swap(order[dim], order[last - 1]);
  for (const int64_t i : order) row.push_back(value("self").sizes[i]);
  column = Shape(row.span());
  column.push_back(1);
  row.insert(last - 1, 1);
  const ModelValue x = transposed(cast(tensor("self"), d), order);
  const ModelValue equal = compared("Equal", reshape(x, column), reshape(x, row));
  const ModelValue counts = reduced("ReduceSum", cast(equal, Dtype::kI64), last, false);
  const ModelValue most = compared("Equal", counts, reduced("ReduceMax", counts, last - 1, true));
  const ModelValue high = reduced("ReduceMax", x, last - 1, true);
  const ModelValue least = reduced("ReduceMin", node("Where", {most, x, high}, d), last - 1, true);
  const ModelValue hits = node(
      "Where", {compared("Equal", x, least), counted(n, last - 1, last), number(-1, Dtype::kI64)},
      Dtype::kI64);
  give(reshape(least, out_value().sizes));
  give(reshape(reduced("ReduceMax", hits, last - 1, true), out_value(1).sizes), 1);
}

// Ranks of quantiles: (m), or those of each row.
void OnnxExporter::emit_select_ranks() {
  const Shape& sizes = out_value().sizes;
  const int64_t dim = sizes.size() - 1;
  const int64_t n = fixed_size("self", dim);
  const ModelValue x = tensor("self");
  Ranked y = ranked(x, dim, n, expanded(cast(tensor("ranks"), Dtype::kI64), sizes));
  if (const ModelValue nan = nans_of(x); integer("nan_last") && nan.id >= 0) {
    const ModelValue any =
        cast(reduced("ReduceMax", cast(nan, Dtype::kI32), dim, true), Dtype::kBool);
    y.values = node("Where", {any, number(kNan, x.dtype), y.values}, x.dtype);
  }
  check_places_unused();
  give(y.values);
}

// How many elements of a sorted row are before each value.
void OnnxExporter::emit_searchsorted() {
  const IrValue& rows = value("sorted_sequence");
  const IrValue& x = value("self");
  const Dtype d = promote(promote(rows.dtype, x.dtype), Dtype::kI32);
  const int64_t last = rows.ndim() - 1;
  ModelValue sequence = cast(tensor("sorted_sequence"), d);
  if (has("sorter")) sequence = along(last, "GatherElements", {sequence, tensor("sorter")}, d);
  Shape column(x.sizes), row(rows.sizes);
  column.push_back(1);
  row.insert(last, 1);
  const bool right = integer("right") || integer("side") == 2;
  const ModelValue behind = compared(right ? "Greater" : "GreaterOrEqual", reshape(sequence, row),
                                     reshape(cast(tensor("self"), d), column));
  const ModelValue before = cast(node("Not", {behind}, Dtype::kBool), Dtype::kI64);
  give(reshape(reduced("ReduceSum", before, -1, false), out_value().sizes));
}

void OnnxExporter::emit_isin() {
  const IrValue &x = value("elements"), &list = value("test_elements");
  const int64_t n = list.numel();
  if (!n || x.numel() > kMaxPairs / n) refuse("no elements to look for, or very many");
  const Dtype d = promote(promote(x.dtype, list.dtype), Dtype::kI32);
  Shape column(x.sizes);
  column.push_back(1);
  const ModelValue hits = compared("Equal", reshape(cast(tensor("elements"), d), column),
                                   reshape(cast(tensor("test_elements"), d), Ints(&n, 1)));
  const ModelValue any =
      cast(reduced("ReduceMax", cast(hits, Dtype::kI32), -1, false), Dtype::kBool);
  give(integer("invert") ? node("Not", {any}, Dtype::kBool) : any);
}

// ---- writes to views ----

// base, of dense elements, with the elements of src at the places of a view of it.
ModelValue OnnxExporter::with_view(ModelValue base, ModelValue src, const IrValue& view, Ints sizes,
                                   const char* reduction) {
  const int64_t n = view.numel();
  int64_t all = 1;
  for (const int64_t size : sizes) all *= size;
  const ModelValue places =
      initializer_of(positions(dense_value(sizes, view.dtype), view), Ints(&n, 1));
  const ModelValue flat =
      node("ScatterElements", {reshape(base, Ints(&all, 1)), places, reshape(src, Ints(&n, 1))},
           base.dtype, AttrWriter().text("reduction", reduction));
  return reshape(flat, sizes);
}

static void move_to_diagonal(IrValue& v, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t a = wrap_dim(dim1, v.ndim());
  const int64_t b = wrap_dim(dim2, v.ndim());
  const int64_t rows = v.sizes[a] - max<int64_t>(-offset, 0);
  const int64_t columns = v.sizes[b] - max<int64_t>(offset, 0);
  v.offset += (offset < 0 ? -offset * v.strides[a] : offset * v.strides[b]) * item_size(v.dtype);
  v.sizes.push_back(max<int64_t>(min(rows, columns), 0));
  v.strides.push_back(v.strides[a] + v.strides[b]);
  for (const int64_t d : {max(a, b), min(a, b)}) {
    v.sizes.erase(d);
    v.strides.erase(d);
  }
}
void OnnxExporter::emit_diagonal() {
  const Dtype d = out_value().dtype;
  const Shape& sizes = out_value().sizes;
  IrValue view = dense_value(sizes, d);
  move_to_diagonal(view, integer("offset"), integer("dim1"), integer("dim2"));
  if (is("diagonal_scatter"))
    return give(with_view(tensor("self"), cast(tensor("src"), d), view, sizes, "none"));
  give(with_view(expanded(number(0, d), sizes), tensor("grad"), view, sizes, "none"));
}
void OnnxExporter::emit_view_put() {
  const Dtype d = out_value().dtype;
  const Shape& sizes = out_value().sizes;
  IrValue view = dense_value(sizes, d);
  if (is("as_strided_put")) {
    view.sizes = Shape(arg("size").ints.span());
    view.strides = Shape(arg("stride").ints.span());
    view.offset = integer("offset") * item_size(d);
  } else {
    const int64_t dim = dim_of("self");
    const int64_t n = sizes[dim];
    const auto place = [&](const char* name, int64_t missing) {
      const int64_t at = has(name) ? integer(name) : missing;
      return clamp(at < 0 ? max(at, -n) + n : at, int64_t(0), n);
    };
    const bool one = is("select_scatter");
    const int64_t start = place(one ? "index" : "start", 0);
    view.offset = start * view.strides[dim] * item_size(d);
    view.sizes[dim] = one ? 1 : value("src").sizes[dim];
    if (!one) view.strides[dim] *= integer("step");
  }
  give(with_view(tensor("self"), cast(tensor("src"), d), view, sizes, "none"));
}

// The sums of the windows of which im2col takes the elements, by a table of their places.
void OnnxExporter::emit_fold() {
  const Dtype d = out_value().dtype;
  const IrValue& x = value("self");
  if (x.ndim() != 3) refuse("windows without a batch");
  const Windows w = windows(arg("output_size").ints[0],
                            arg("output_size").ints[arg("output_size").ints.size() - 1]);
  const int64_t channels = x.sizes[1] / (w.kernel[0] * w.kernel[1]);
  const int64_t area = w.size[0] * w.size[1];
  const int64_t image[] = {x.sizes[0], channels, area};
  const int64_t spread[] = {x.sizes[0], channels, x.sizes[1] / channels * x.sizes[2]};
  const OnnxPositions table = w.table();
  const int64_t row[] = {1, 1, table.size()};
  const ModelValue places = expanded(initializer_of(table, Ints(row)), Ints(spread));
  const ModelValue zeros = expanded(number(0, d), Ints(image));
  ModelValue y = node("ScatterElements", {zeros, places, reshape(tensor("self"), Ints(spread))}, d,
                      AttrWriter().integer("axis", 2).text("reduction", "add"));
  const int64_t padded[] = {x.sizes[0], channels, w.size[0], w.size[1]};
  y = reshape(y, Ints(padded));
  for (int64_t i = 0; i < 2; i++) y = sliced(y, 2 + i, w.pad[i], w.size[i] - w.pad[i]);
  give(y);
}

void OnnxExporter::emit_scatter_reduce() {
  const bool multiplies = is("scatter_multiply");
  if (!multiplies && !integer("include_self")) refuse("elements that are left out");
  const Dtype d = out_value().dtype;
  const Shape& sizes = value("index").sizes;
  Shape begin;
  begin.resize(sizes.size());
  ModelValue src = cast(tensor("src"), d);
  if (!same(value("src").sizes, sizes))
    src = node("Slice", {src, constant(begin), constant(sizes)}, d);
  const char* kind = "mul";
  if (!multiplies) kind = integer("smallest") ? "min" : "max";
  give(node("ScatterElements", {tensor("self"), tensor("index"), src}, d,
            AttrWriter().integer("axis", dim_of("self")).text("reduction", kind)));
}

// ---- losses by class ----

void OnnxExporter::emit_class_loss() {
  const IrValue& x = value("input");
  const Dtype d = is_float(x.dtype) && x.dtype != Dtype::kF64 ? Dtype::kF32 : x.dtype;
  const int64_t dim = x.ndim() == 1 ? 0 : 1;
  for (int64_t i = 1; i < at().outs.size(); i++)
    if (at().outs[i] >= 0 && is_used(at().outs[i])) refuse("weights of rows");
  ModelValue logs = cast(tensor("input"), d);
  if (is("native_cross_entropy")) logs = along(dim, "LogSoftmax", {logs}, d);
  const ModelValue target = cast(tensor("target"), Dtype::kI64);
  const ModelValue ignored =
      compared("Equal", target, number(double(integer("ignore_index")), Dtype::kI64));
  const ModelValue labels = node("Where", {ignored, number(0, Dtype::kI64), target}, Dtype::kI64);
  Shape one(x.sizes);
  one[dim] = 1;
  const ModelValue hit = along(dim, "GatherElements", {logs, reshape(labels, one)}, d);
  ModelValue share = number(1, d);
  if (has("weight")) share = along(0, "Gather", {cast(tensor("weight"), d), labels}, d);
  share = node("Where", {ignored, number(0, d), share}, d);
  const ModelValue losses = node(
      "Where", {ignored, number(0, d), reshape(node("Neg", {hit}, d), value("target").sizes)}, d);
  ModelValue loss = node("Mul", {losses, share}, d);
  const int64_t reduction = integer("reduction");
  const AttrWriter drops = AttrWriter().integer("keepdims", 0);
  if (reduction != kReductionNone) loss = node("ReduceSum", {loss}, d, drops);
  if (reduction == kReductionMean)
    loss = node("Div", {loss, node("ReduceSum", {share}, d, drops)}, d);
  give(loss);
}

// ---- integers ----

// Products with powers of 2, and quotients that are rounded down.
void OnnxExporter::emit_shift() {
  const Dtype d = out_value().dtype;
  const Dtype wide = Dtype::kI64;
  const bool left = strncmp(op(), "bitwise_left", 12) == 0;
  const bool is_tensor = arg("other").kind == Value::kTensor;
  const ModelValue x = cast(tensor("self"), wide);
  const ModelValue by = is_tensor ? cast(tensor("other"), wide) : number(real("other"), wide);
  const int64_t width = 8 * item_size(d) - !left;  // a shift to the right leaves the sign
  const ModelValue over = compared("Or", compared("Less", by, number(0, wide)),
                                   compared("GreaterOrEqual", by, number(double(width), wide)));
  const ModelValue safe = node("Where", {over, number(0, wide), by}, wide);
  const ModelValue power = node("Pow", {number(2, wide), safe}, wide);
  if (left)
    return give(node("Where", {over, number(0, wide), node("Mul", {x, power}, wide)}, wide));
  if (d == Dtype::kU64) refuse("uint64");
  const ModelValue rest = node("Mod", {x, power}, wide);
  const ModelValue quotient = node("Div", {node("Sub", {x, rest}, wide), power}, wide);
  const ModelValue sign = node(
      "Where", {compared("Less", x, number(0, wide)), number(-1, wide), number(0, wide)}, wide);
  give(node("Where", {over, sign, quotient}, wide));
}

void OnnxExporter::emit_fake_quantize() {
  const Dtype d = out_value().dtype;
  const Dtype wide = d == Dtype::kF64 ? d : Dtype::kF32;
  const ModelValue scale = cast(tensor("scale"), wide);
  const ModelValue zero = cast(tensor("zero_point"), wide);
  const ModelValue x = cast(tensor("input"), wide);
  ModelValue q = node("Add", {node("Round", {node("Div", {x, scale}, wide)}, wide), zero}, wide);
  q = node("Min", {q, number(real("quant_max"), wide)}, wide);
  q = node("Max", {q, number(real("quant_min"), wide)}, wide);
  give(node("Mul", {node("Sub", {q, zero}, wide), scale}, wide));
}

// The scale or the zero point of a tensor or of its channels, to be broadcast.
ModelValue OnnxExporter::quantization(const char* name) {
  const Dtype d = Dtype::kF32;
  const bool by_channel = find_arg("scales") != nullptr;
  Text list(name);
  if (by_channel) list.add("s");
  const char* const own = list.c_str();
  if (!by_channel) return number(real(own), d);
  if (!has(own)) return number(0, d);
  Shape sizes;
  sizes.resize(value("input").ndim(), 1);
  sizes[wrap_dim(integer("axis"), sizes.size())] = value(own).numel();
  return reshape(cast(tensor(own), d), sizes);
}
void OnnxExporter::emit_quantize() {
  const Dtype d = Dtype::kF32;
  const ModelValue parts = node("Div", {cast(tensor("input"), d), quantization("scale")}, d);
  ModelValue q = node("Add", {node("Round", {parts}, d), quantization("zero_point")}, d);
  q = node("Min", {q, number(real("quant_max"), d)}, d);
  give(node("Max", {q, number(real("quant_min"), d)}, d));
}
void OnnxExporter::emit_dequantize() {
  const Dtype d = Dtype::kF32;
  const ModelValue q = node("Sub", {cast(tensor("input"), d), quantization("zero_point")}, d);
  give(node("Mul", {q, quantization("scale")}, d));
}

void OnnxExporter::emit_filled() {
  const Dtype d = out_value().dtype;
  give(expanded(cast(tensor("value"), d), out_value().sizes));
}

// ---- without inputs ----

// Results of an operator without tensors, as tables.
bool OnnxExporter::emit_generated() {
  const IrNode& n = at();
  bool lone = n.op->n_slots && !n.op->schema->random && n.outs.size() == n.n_results;
  for_each_value(n, [&](int32_t) { lone = false; });
  for (const IrArg& a : n.args) lone = lone && a.kind != Value::kRng && !a.generator && !a.object;
  for (int64_t i = 0; i < n.outs.size(); i++)
    lone = lone && n.outs[i] >= 0 && out_value(i).numel() <= kMaxIndexTable;
  if (!lone || n.outs.empty()) return false;
  NodeCall call;
  call.set(
      n, [](int32_t) { return TensorRef(); }, [](const IrArg&) { return Rng{}; });
  TensorList outs;
  const MaskGuard plain(~kBackendKeys | bit(kKeyCapture));
  call.run(*n.op, outs);
  for (int64_t i = 0; i < outs.size(); i++) {
    const TensorRef t = dense_input(*outs[i]);
    if (!t->is_cpu() || !t->contiguous()) return false;
    of_[n.outs[i]] = initializer(t->dtype, t->sizes(), t->data, t->numel * t->item_size());
  }
  return true;
}

bool OnnxExporter::emit_order() {
  static constexpr Emitter kTable[] = {
      {"cumprod", &OnnxExporter::emit_cumprod},
      {"logcumsumexp", &OnnxExporter::emit_logcumsumexp},
      {"cummax", &OnnxExporter::emit_running_extreme},
      {"cummin", &OnnxExporter::emit_running_extreme},
      {"kthvalue", &OnnxExporter::emit_rank},
      {"median", &OnnxExporter::emit_rank},
      {"median_dim", &OnnxExporter::emit_rank},
      {"nanmedian", &OnnxExporter::emit_rank},
      {"nanmedian_dim", &OnnxExporter::emit_rank},
      {"select_ranks", &OnnxExporter::emit_select_ranks},
      {"searchsorted", &OnnxExporter::emit_searchsorted},
      {"isin", &OnnxExporter::emit_isin},
      {"diagonal_backward", &OnnxExporter::emit_diagonal},
      {"diagonal_scatter", &OnnxExporter::emit_diagonal},
      {"slice_scatter", &OnnxExporter::emit_view_put},
      {"select_scatter", &OnnxExporter::emit_view_put},
      {"as_strided_put", &OnnxExporter::emit_view_put},
      {"col2im", &OnnxExporter::emit_fold},
      {"scatter_extreme", &OnnxExporter::emit_scatter_reduce},
      {"scatter_multiply", &OnnxExporter::emit_scatter_reduce},
      {"native_nll_loss", &OnnxExporter::emit_class_loss},
      {"native_cross_entropy", &OnnxExporter::emit_class_loss},
      {"bitwise_left_shift", &OnnxExporter::emit_shift},
      {"bitwise_left_shift_scalar", &OnnxExporter::emit_shift},
      {"bitwise_right_shift", &OnnxExporter::emit_shift},
      {"bitwise_right_shift_scalar", &OnnxExporter::emit_shift},
      {"mode", &OnnxExporter::emit_mode},
      {"quantize_per_tensor", &OnnxExporter::emit_quantize},
      {"quantize_per_channel", &OnnxExporter::emit_quantize},
      {"dequantize_per_tensor", &OnnxExporter::emit_dequantize},
      {"dequantize_per_channel", &OnnxExporter::emit_dequantize},
      {"fake_quantize", &OnnxExporter::emit_fake_quantize},
      {"fill_tensor", &OnnxExporter::emit_filled},
      {"fill_tensor_", &OnnxExporter::emit_filled},
  };
  return emit_by(kTable) || emit_generated();
}

}  // namespace TT_NS
