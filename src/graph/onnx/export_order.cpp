// Running results, and elements by their order.
#include "graph/onnx/exporter.h"

namespace TT_NS {

namespace {

constexpr int64_t kMaxPairs = 1 << 20;  // of elements that are compared with each other

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
      {"mode", &OnnxExporter::emit_mode},
  };
  return emit_by(kTable);
}

}  // namespace TT_NS
