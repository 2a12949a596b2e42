// Positions: indices in tensors, scattered values, extremes and their places, writes to views.
#include "graph/onnx/exporter.h"

namespace TT_NS {

namespace {

IrValue dense_value(Ints sizes, Dtype dtype) {
  IrValue v = {};
  v.dtype = dtype;
  v.sizes = Shape(sizes);
  v.strides.resize(sizes.n);
  contiguous_strides(sizes, v.strides.data());
  return v;
}
Shape with(const Shape& a, const Shape& b) {
  Shape out(a.span());
  out.append(b.span());
  return out;
}

// The order of dims that undoes another one.
Shape inverse(const Shape& order) {
  Shape out;
  out.resize(order.size());
  for (int64_t i = 0; i < order.size(); i++) out[order[i]] = i;
  return out;
}

}  // namespace

int64_t OnnxExporter::dim_of(const char* self) const {
  const int64_t n = value(self).ndim();
  if (n == 0) refuse("a number");
  const int64_t dim = integer("dim");
  return dim < 0 ? dim + n : dim;
}
ModelValue OnnxExporter::transposed(ModelValue x, const Shape& order) {
  bool moves = false;
  for (int64_t i = 0; i < order.size(); i++) moves |= order[i] != i;
  if (!moves) return x;
  return node("Transpose", {x}, x.dtype, AttrWriter().ints("perm", order));
}
ModelValue OnnxExporter::expanded(ModelValue x, Ints sizes) {
  return node("Expand", {x, constant(sizes)}, x.dtype);
}

// ---- extremes, order ----

void OnnxExporter::emit_extreme() {
  const Dtype d = value("self").dtype;
  if (d == Dtype::kBool) refuse("bool");
  const bool largest = is("max_dim");
  const int64_t dim = dim_of("self");
  const int64_t keeps = integer("keepdim");
  give(node(largest ? "ReduceMax" : "ReduceMin", {tensor("self"), constant(Ints(&dim, 1))}, d,
            AttrWriter().integer("keepdims", keeps)));
  give(node(largest ? "ArgMax" : "ArgMin", {tensor("self")}, Dtype::kI64,
            AttrWriter().integer("axis", dim).integer("keepdims", keeps)),
       1);
}

// The elements behind the last -shift, then those before them, in each dimension.
void OnnxExporter::emit_roll() {
  const Ints shifts = arg("shifts").ints;
  const Ints dims = arg("dims").ints;
  ModelValue x = tensor("self");
  const int64_t all = value("self").numel();
  if (!dims.n) x = reshape(x, Ints(&all, 1));
  for (int64_t i = 0; i < shifts.n; i++) {
    const int64_t dim = dims.n ? wrap_dim(dims[i], value("self").ndim()) : 0;
    const int64_t size = dims.n ? value("self").sizes[dim] : all;
    if (!size || shifts[i] % size == 0) continue;
    if (growth_ && (shifts[i] >= size || shifts[i] <= -size)) refuse("a shift of more than a turn");
    const int64_t begin = -(shifts[i] % size);
    const int64_t zero = 0;
    const int64_t end = INT64_MAX;
    const ModelValue at = constant(Ints(&begin, 1));
    const ModelValue axis = constant(Ints(&dim, 1));
    const ModelValue tail = node("Slice", {x, at, constant(Ints(&end, 1)), axis}, x.dtype);
    const ModelValue head = node("Slice", {x, constant(Ints(&zero, 1)), at, axis}, x.dtype);
    x = along(dim, "Concat", {tail, head}, x.dtype);
  }
  give(dims.n ? x : reshape(x, out_value().sizes));
}

// ---- indices ----

// What the tensors of an index say about self.
struct OnnxExporter::Places {
  Shape order;    // dims of self: the indexed ones, then the others
  Shape index;    // the shape of the tensors together
  Shape rest;     // sizes of the other dims
  int64_t n = 0;  // of the indexed ones
  int64_t first = 0;
  bool adjacent = true;

  // For each dim of x[index] its place among the dims of the index, followed by the others: those
  // of the index are where the first indexed one was.
  Shape dims_of_result() const {
    const int64_t before = adjacent ? first : 0;
    Shape dims;
    for (int64_t i = 0; i < before; i++) dims.push_back(index.size() + i);
    for (int64_t i = 0; i < index.size(); i++) dims.push_back(i);
    for (int64_t i = before; i < rest.size(); i++) dims.push_back(index.size() + i);
    return dims;
  }
};
OnnxExporter::Places OnnxExporter::places() const {
  Places p;
  const auto& list = arg("indices").values;
  const IrValue& x = value("self");
  Shape others;
  int64_t last = -1;
  for (int64_t d = 0; d < x.ndim(); d++) {
    if (d >= list.size() || list[d] < 0) {
      others.push_back(d);
      p.rest.push_back(x.sizes[d]);
      continue;
    }
    const IrValue& v = g_.values[list[d]];
    if (!is_integral(v.dtype) || v.dtype == Dtype::kBool) refuse("a mask as an index");
    if (!p.n++) p.first = d;
    p.adjacent &= last < 0 || last == d - 1;
    last = d;
    p.order.push_back(d);
    p.index = p.n == 1 ? Shape(v.sizes.span()) : broadcast_shapes(p.index, v.sizes, "a", "b");
  }
  if (!p.n) refuse("no index");
  p.order = with(p.order, others);
  return p;
}
// The positions of elements in the indexed dims, one vector of n for each.
ModelValue OnnxExporter::coordinates(const Places& p) {
  SmallVec<ModelValue, 4> parts;
  for (const int32_t v : arg("indices").values)
    if (v >= 0) {
      Shape column = p.index;
      column.push_back(1);
      parts.push_back(reshape(expanded(cast(of_value(v), Dtype::kI64), p.index), column));
    }
  if (parts.size() == 1) return parts[0];
  return along(-1, "Concat", Span<const ModelValue>(parts.data(), parts.size()), Dtype::kI64);
}

void OnnxExporter::emit_index() {
  const Places p = places();
  const Dtype d = out_value().dtype;
  if (p.n == 1)
    return give(
        along(p.first, "Gather", {tensor("self"), of_value(arg("indices").values[p.first])}, d));
  const ModelValue y = node("GatherND", {transposed(tensor("self"), p.order), coordinates(p)}, d);
  give(transposed(y, p.dims_of_result()));
}

void OnnxExporter::emit_index_put() {
  const Dtype d = out_value().dtype;
  const auto& list = arg("indices").values;
  if (list.size() == 1 && list[0] >= 0 && g_.values[list[0]].dtype == Dtype::kBool &&
      value("values").numel() == 1 && !integer("accumulate")) {
    Shape mask(g_.values[list[0]].sizes);
    mask.resize(value("self").ndim(), 1);
    const int64_t one = 1;
    return give(node("Where",
                     {reshape(of_value(list[0]), mask),
                      cast(reshape(tensor("values"), Ints(&one, 1)), d), tensor("self")},
                     d));
  }
  const Places p = places();
  const Shape order = p.dims_of_result();
  const Shape by_index = with(p.index, p.rest);
  Shape sizes;
  for (const int64_t dim : order) sizes.push_back(by_index[dim]);
  const ModelValue values = expanded(cast(tensor("values"), d), sizes);
  const ModelValue y = node(
      "ScatterND",
      {transposed(tensor("self"), p.order), coordinates(p), transposed(values, inverse(order))}, d,
      AttrWriter().text("reduction", integer("accumulate") ? "add" : "none"));
  give(transposed(y, inverse(p.order)));
}

// index_add, index_copy and index_fill.
void OnnxExporter::emit_index_rows() {
  const Dtype d = out_value().dtype;
  const int64_t dim = dim_of("self");
  const bool adds = find_arg("alpha") != nullptr;
  Shape order;
  for (int64_t i = 0; i < value("self").ndim(); i++) order.push_back(i);
  std::swap(order[0], order[dim]);
  const int64_t column[] = {value("index").numel(), 1};
  ModelValue source;
  if (has("value")) {
    Shape rows(value("self").sizes);
    rows[dim] = column[0];
    source = expanded(number_of("value", d), rows);
  } else {
    source = cast(tensor("source"), d);
    if (value("source").ndim() == 0) source = reshape(source, Ints(column + 1, 1));
  }
  if (adds && real("alpha") != 1) source = node("Mul", {source, number(real("alpha"), d)}, d);
  const ModelValue y =
      node("ScatterND",
           {transposed(tensor("self"), order), reshape(cast(tensor("index"), Dtype::kI64), column),
            transposed(source, order)},
           d, AttrWriter().text("reduction", adds ? "add" : "none"));
  give(transposed(y, order));
}

// scatter_add, scatter_put and scatter_fill.
void OnnxExporter::emit_scatter() {
  const Dtype d = out_value().dtype;
  const int64_t dim = dim_of("self");
  const Shape& sizes = value("index").sizes;
  ModelValue src;
  if (has("value")) {
    src = expanded(number_of("value", d), sizes);
  } else {
    Shape begin;
    begin.resize(sizes.size());
    src = cast(tensor("src"), d);
    if (!same(value("src").sizes, sizes))
      src = node("Slice", {src, constant(begin), constant(sizes)}, d);
  }
  const bool adds = strncmp(op(), "scatter_add", 11) == 0;
  give(node("ScatterElements", {tensor("self"), tensor("index"), src}, d,
            AttrWriter().integer("axis", dim).text("reduction", adds ? "add" : "none")));
}

// Bags of equal length.
void OnnxExporter::emit_bags() {
  static constexpr const char* kTypes[] = {"ReduceSum", "ReduceMean", "ReduceMax"};
  const Dtype d = out_value().dtype;
  const int64_t bags = integer("bags");
  const int64_t mode = integer("mode");
  const int64_t axis = 1;
  if (has("starts") || integer("skipped") >= 0 || !bags || !value("indices").numel() || mode > 2)
    refuse("bags of several lengths, without rows, or with a row that is left out");
  const int64_t rows[] = {bags, value("indices").numel() / bags};
  ModelValue x = along(0, "Gather", {tensor("weight"), reshape(tensor("indices"), rows)}, d);
  const int64_t factors[] = {rows[0], rows[1], 1};
  if (has("per_sample_weights"))
    x = node("Mul", {x, reshape(tensor("per_sample_weights"), factors)}, d);
  give(node(kTypes[mode], {x, constant(Ints(&axis, 1))}, d, AttrWriter().integer("keepdims", 0)));
}

void OnnxExporter::emit_grid() {
  static constexpr const char* kModes[] = {"linear", "nearest", "cubic"};
  static constexpr const char* kPadding[] = {"zeros", "border", "reflection"};
  const int64_t mode = integer("mode");
  const int64_t padding = integer("padding");
  if (mode < 0 || mode > 2 || padding < 0 || padding > 2) refuse("an unknown mode");
  give(node("GridSample", {tensor("self"), tensor("grid")}, out_value().dtype,
            AttrWriter()
                .text("mode", kModes[mode])
                .text("padding_mode", kPadding[padding])
                .integer("align_corners", integer("align"))));
}

OnnxExporter::Windows OnnxExporter::windows(int64_t height, int64_t width) const {
  const auto item = [&](const char* name, int64_t i, int64_t missing) {
    const Ints list = arg(name).ints;
    if (!list.n) return missing;
    return list[min(i, list.n - 1)];
  };
  Windows w;
  for (int64_t i = 0; i < 2; i++) {
    w.pad[i] = item("padding", i, 0);
    w.size[i] = (i ? width : height) + 2 * w.pad[i];
    w.kernel[i] = item("kernel_size", i, 1);
    w.step[i] = item("stride", i, 1);
    w.dilation[i] = item("dilation", i, 1);
    w.count[i] = (w.size[i] - w.dilation[i] * (w.kernel[i] - 1) - 1) / w.step[i] + 1;
  }
  if (w.kernel[0] * w.kernel[1] > kMaxIndexTable / max<int64_t>(1, w.count[0] * w.count[1]))
    refuse("an image of this size");
  return w;
}
OnnxPositions OnnxExporter::Windows::table() const {
  OnnxPositions list;
  for (int64_t k = 0; k < kernel[0] * kernel[1]; k++)
    for (int64_t w = 0; w < count[0] * count[1]; w++) {
      const int64_t row = w / count[1] * step[0] + k / kernel[1] * dilation[0];
      const int64_t column = w % count[1] * step[1] + k % kernel[1] * dilation[1];
      list.push_back(row * size[1] + column);
    }
  return list;
}

// The elements of all windows, by a table of their places in the padded image.
void OnnxExporter::emit_windows() {
  const Dtype d = out_value().dtype;
  const IrValue& x = value("self");
  if (x.ndim() != 4) refuse("an image without a batch");
  const Windows w = windows(x.sizes[2], x.sizes[3]);
  const int64_t pads[8] = {0, 0, w.pad[0], w.pad[1], 0, 0, w.pad[0], w.pad[1]};
  ModelValue y = tensor("self");
  if (w.pad[0] || w.pad[1]) y = node("Pad", {y, constant(Ints(pads)), number(0, d)}, d);
  const int64_t flat[] = {x.sizes[0], x.sizes[1], w.size[0] * w.size[1]};
  const int64_t places[] = {w.kernel[0] * w.kernel[1], w.count[0] * w.count[1]};
  y = along(2, "Gather", {reshape(y, Ints(flat)), initializer_of(w.table(), Ints(places))}, d);
  give(reshape(y, out_value().sizes));
}

void OnnxExporter::emit_one_hot() {
  if (value("self").ndim() == 0) refuse("a number");
  const int64_t n = out_value().sizes[out_value().ndim() - 1];
  const int64_t off_on[] = {0, 1};
  const int64_t two = 2;
  const ModelValue values = initializer(Dtype::kI64, Ints(&two, 1), off_on, sizeof off_on);
  give(node("OneHot", {cast(tensor("self"), Dtype::kI64), constant(Ints(&n, 1), 0), values},
            Dtype::kI64));
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

bool OnnxExporter::emit_indexing() {
  static constexpr Emitter kTable[] = {
      {"max_dim", &OnnxExporter::emit_extreme},
      {"min_dim", &OnnxExporter::emit_extreme},
      {"roll", &OnnxExporter::emit_roll},
      {"index", &OnnxExporter::emit_index},
      {"index_put", &OnnxExporter::emit_index_put},
      {"index_put_", &OnnxExporter::emit_index_put},
      {"index_add", &OnnxExporter::emit_index_rows},
      {"index_add_", &OnnxExporter::emit_index_rows},
      {"index_copy", &OnnxExporter::emit_index_rows},
      {"index_copy_", &OnnxExporter::emit_index_rows},
      {"index_fill", &OnnxExporter::emit_index_rows},
      {"index_fill_", &OnnxExporter::emit_index_rows},
      {"scatter_add", &OnnxExporter::emit_scatter},
      {"scatter_add_", &OnnxExporter::emit_scatter},
      {"scatter_put", &OnnxExporter::emit_scatter},
      {"scatter_put_", &OnnxExporter::emit_scatter},
      {"scatter_fill", &OnnxExporter::emit_scatter},
      {"scatter_fill_", &OnnxExporter::emit_scatter},
      {"grid_take", &OnnxExporter::emit_grid},
      {"im2col", &OnnxExporter::emit_windows},
      {"one_hot", &OnnxExporter::emit_one_hot},
      {"bag_reduce", &OnnxExporter::emit_bags},
      {"diagonal_backward", &OnnxExporter::emit_diagonal},
      {"diagonal_scatter", &OnnxExporter::emit_diagonal},
      {"slice_scatter", &OnnxExporter::emit_view_put},
      {"select_scatter", &OnnxExporter::emit_view_put},
      {"as_strided_put", &OnnxExporter::emit_view_put},
      {"col2im", &OnnxExporter::emit_fold},
      {"scatter_extreme", &OnnxExporter::emit_scatter_reduce},
      {"scatter_multiply", &OnnxExporter::emit_scatter_reduce},
  };
  return emit_by(kTable);
}

}  // namespace TT_NS
