// Writes reads, writes, sums and moves of elements by their positions. A position out of range is
// that of the nearest element.
#include "graph/c/exporter.h"
#include "graph/node_call.h"

#include <string.h>

namespace TT_NS {

namespace {

constexpr int64_t kMaxTable = 1 << 16;  // elements of a result that the source has as a table

}  // namespace

// Declares s<dim>, the position along a dimension of `self`, from an element of a tensor.
void CExporter::declare_place(const IrValue& self, int64_t dim, int32_t index, int64_t n_loops) {
  if (!is_integral(value(index).dtype) || value(index).dtype == Dtype::kBool)
    refuse("a mask as an index");
  use("place_in");
  body_.add("const long s").add(dim).add(" = place_in(");
  add_at(body_, index, n_loops);
  body_.add(", ").add(self.ndim() ? self.sizes[dim] : 1).add(");\n    ");
}

// Writes a value to an element: alone ('='), or combined with what is there.
void CExporter::store_by(const Text& place, Dtype dtype, const Text& source, char by) {
  const char* type = c_type(dtype);
  const char sign[] = {' ', by, ' ', 0};
  if (!type) refuse("an argument of another dtype");
  body_.add(place.span()).add(" = ");
  if (by == '=') {
    body_.add("(").add(type).add(")").add(source.span());
  } else if (by == '<' || by == '>') {
    body_.add(source.span()).add(sign).add(place.span());
    if (dtype == Dtype::kF32) body_.add(" || ").add(source.span()).add(" != ").add(source.span());
    body_.add(" ? ").add(source.span()).add(" : ").add(place.span());
  } else {
    const bool wraps = is_integral(dtype) && dtype != Dtype::kBool;
    const char* cast = wraps ? "(uint64_t)" : "";
    body_.add("(").add(type).add(")(").add(cast).add(place.span()).add(sign).add(cast);
    body_.add(source.span()).add(dtype == Dtype::kBool ? " != 0)" : ")");
  }
  body_.add(";\n");
}

// Copies self to the result, whose elements the call then changes; a call in place has no copy.
void CExporter::begin_changes() {
  const int32_t out = node().outs[0];
  if (value(out).storage != value(tensor("self")).storage) emit_copy(tensor("self"), out);
}

// ---- an index in several dimensions ----

CExporter::Places CExporter::places_of(const IrValue& self) {
  Places p;
  int64_t last = -1;
  const auto& list = arg("indices").values;
  for (int64_t d = 0; d < self.ndim(); d++) {
    if (d >= list.size() || list[d] < 0) {
      p.rest.push_back(d);
      continue;
    }
    if (!p.n++) p.begin = d;
    p.adjacent &= last < 0 || last == d - 1;
    last = d;
    p.ndim = max(p.ndim, value(list[d]).ndim());
  }
  if (!p.adjacent) p.begin = 0;
  return p;
}

// Declares the positions s0, s1, … in self of the element of self[indices] in the open loops.
void CExporter::declare_places(const IrValue& self, const Places& p) {
  const auto& list = arg("indices").values;
  int64_t loop = 0;
  for (int64_t d = 0; d < self.ndim(); d++) {
    if (d < list.size() && list[d] >= 0) {
      declare_place(self, d, list[d], p.begin + p.ndim);
      continue;
    }
    if (loop == p.begin) loop += p.ndim;
    body_.add("const long s").add(d).add(" = i").add(loop++).add(";\n    ");
  }
}
// Adds the element of v at the declared positions.
void CExporter::add_place(Text& out, int32_t v) {
  const IrValue& x = value(v);
  add_pointer(out, v);
  out.add("[0");
  for (int64_t d = 0; d < x.ndim(); d++) out.add(" + s").add(d).add(" * ").add(x.strides[d]);
  out.add("]");
}

void CExporter::emit_index() {
  const IrValue& x = value(tensor("self"));
  const IrValue& y = value(node().outs[0]);
  const Places p = places_of(x);
  open_loops(y.sizes);
  declare_places(x, p);
  Text place, source;
  add_at(place, node().outs[0], y.ndim());
  add_place(source, tensor("self"));
  store_by(place, y.dtype, source, '=');
  close_loops(y.ndim());
}

// Writes one number where a mask of the first dims holds. Returns false for other calls.
bool CExporter::emit_masked_put() {
  const int32_t out = node().outs[0];
  const IrValue& y = value(out);
  const IrValue& values = value(tensor("values"));
  const auto& list = arg("indices").values;
  const bool one_mask = list.size() == 1 && list[0] >= 0 && value(list[0]).dtype == Dtype::kBool;
  if (!one_mask || values.numel() != 1 || integer("accumulate")) return false;
  begin_changes();
  Text source, place;
  add_address(source, tensor("values"), values.storage == y.storage, values.dtype);
  source.add("[0]");
  open_loops(y.sizes);
  body_.add("if (");
  add_at(body_, list[0], value(list[0]).ndim());
  body_.add(") ");
  add_at(place, out, y.ndim());
  store_by(place, y.dtype, source, '=');
  close_loops(y.ndim());
  return true;
}

void CExporter::emit_index_put() {
  if (emit_masked_put()) return;
  const int32_t out = node().outs[0];
  const IrValue& y = value(out);
  const IrValue& values = value(tensor("values"));
  const Places p = places_of(y);
  Shape sizes;  // of self[indices]
  Shape index;
  for (const int32_t v : arg("indices").values) {
    if (v < 0) continue;
    if (value(v).dtype == Dtype::kBool) refuse("a mask as an index");
    index = broadcast_shapes(index, value(v).sizes, "indices", "indices");
  }
  for (int64_t i = 0; i < p.rest.size() && i < p.begin; i++) sizes.push_back(y.sizes[p.rest[i]]);
  sizes.append(index.span());
  for (int64_t i = p.begin; i < p.rest.size(); i++) sizes.push_back(y.sizes[p.rest[i]]);
  begin_changes();
  Text source;
  if (values.storage == y.storage) {
    add_dense_copy(source, tensor("values"), values.dtype);
    source.add("[");
    add_dense_index(source, values, sizes.size());
    source.add("]");
  } else {
    add_at(source, tensor("values"), sizes.size());
  }
  open_loops(sizes);
  declare_places(y, p);
  Text place;
  add_place(place, out);
  store_by(place, y.dtype, source, integer("accumulate") ? '+' : '=');
  close_loops(sizes.size());
}

// ---- positions along one dimension ----

// Adds the element of an index for the open loops, or, by rows, for the loop of dimension dim.
void CExporter::add_along(Text& out, int32_t index, bool by_rows, int64_t dim, int64_t n_loops) {
  const IrValue& t = value(index);
  if (!by_rows) return add_at(out, index, n_loops);
  add_pointer(out, index);
  if (t.ndim() && n_loops) out.add("[i").add(dim).add(" * ").add(t.strides[0]).add("]");
  else out.add("[0]");
}

// Adds the element that is written, in loops over n dims: the argument value, or one of a tensor,
// which is copied first where it shares memory with the result y.
void CExporter::add_scattered(Text& out, const IrValue& y, int64_t n) {
  if (node_has("value")) {
    char element[8];
    store_scalar(element, y.dtype, arg("value").scalar);
    add_element(out, y.dtype, element);
    return;
  }
  const int32_t src = tensor(node_has("source") ? "source" : "src");
  const IrValue& x = value(src);
  Shape strides = x.strides;
  if (x.storage == y.storage) {
    add_dense_copy(out, src, x.dtype);
    contiguous_strides(x.sizes, strides.data());
  } else {
    add_pointer(out, src);
  }
  out.add("[0");
  for (int64_t d = 0; d < x.ndim() && d < n; d++) out.add(" + i").add(d).add(" * ").add(strides[d]);
  out.add("]");
}

// Writes to the elements of self at the positions along dim that `index` has: one for each element
// that is written, or one for each row (index_add and so on).
void CExporter::emit_scatter(char by) {
  const int32_t out = node().outs[0];
  const IrValue& y = value(out);
  const int32_t index = tensor("index");
  const int64_t dim = dim_of("self");
  const bool by_rows = strncmp(op(), "index_", 6) == 0;
  Shape sizes = by_rows ? y.sizes : value(index).sizes;
  if (by_rows && y.ndim()) sizes[dim] = value(index).numel();
  if (node_has("include_self") && !integer("include_self"))
    refuse("elements of self that are left out");
  begin_changes();
  Text source;
  add_scattered(source, y, sizes.size());
  if (node_has("alpha") && is_integral(y.dtype)) {
    source.add(" * (uint64_t)");
    add_whole(source, integer("alpha"));
  } else if (node_has("alpha") && number("alpha") != 1) {
    source.add(" * ");
    add_float(source, number("alpha"));
  }
  open_loops(sizes);
  Text place;
  use("place_in");
  body_.add("const long s = place_in(");
  add_along(body_, index, by_rows, dim, y.ndim());
  body_.add(", ").add(y.ndim() ? y.sizes[dim] : 1).add(");\n    ");
  add_pointer(place, out);
  place.add("[s * ").add(y.ndim() ? y.strides[dim] : 0);
  for (int64_t d = 0; d < y.ndim(); d++)
    if (d != dim) place.add(" + i").add(d).add(" * ").add(y.strides[d]);
  place.add("]");
  store_by(place, y.dtype, source, by);
  close_loops(sizes.size());
}

// Reads the elements of self at positions along dim; the index has one for each element of the
// result, or one for each row.
void CExporter::emit_gather(int64_t dim, const char* indices, bool by_rows) {
  const IrValue& x = value(tensor("self"));
  const IrValue& index = value(tensor(indices));
  const IrValue& y = value(node().outs[0]);
  if (dim < 0) dim += x.ndim();
  if (!x.ndim()) dim = 0;
  if (!c_type(x.dtype) || !c_type(index.dtype)) refuse("an argument of another dtype");
  open_loops(y.sizes);
  body_.add("long at = (long)");
  add_along(body_, tensor(indices), by_rows, dim, y.ndim());
  const int64_t last = (x.ndim() ? x.sizes[dim] : 1) - 1;
  body_.add(";\n    if (at < 0) at = 0;\n    if (at > ").add(last).add(") at = ").add(last);
  body_.add(";\n    ");
  add_at(body_, node().outs[0], y.ndim());
  body_.add(" = ");
  add_pointer(body_, tensor("self"));
  body_.add("[at * ").add(x.ndim() ? x.strides[dim] : 0);
  for (int64_t i = 0; i < x.ndim(); i++)
    if (i != dim && x.strides[i]) body_.add(" + i").add(i).add(" * ").add(x.strides[i]);
  body_.add("];\n");
  close_loops(y.ndim());
}

void CExporter::emit_one_hot() {
  const IrValue& y = value(node().outs[0]);
  const int64_t last = y.ndim() - 1;
  open_loops(y.sizes);
  add_at(body_, node().outs[0], y.ndim());
  body_.add(" = ");
  add_at(body_, tensor("self"), last);
  body_.add(" == i").add(last).add(";\n");
  close_loops(y.ndim());
}

// ---- moves ----

// Writes flip and roll: the elements of dims in reverse, or shifted around their ends.
void CExporter::emit_move() {
  const IrValue& x = value(tensor("self"));
  const IrValue& y = value(node().outs[0]);
  const Ints dims = arg("dims").ints;
  if (!dims.n && !is("flip")) return emit_turn();
  Shape shifts;
  SmallVec<bool, 8> turns;
  shifts.resize(x.ndim());
  turns.resize(x.ndim());
  for (int64_t i = 0; i < dims.n; i++) {
    const int64_t dim = wrap_dim(dims[i], x.ndim());
    if (is("flip")) turns[dim] = true;
    else shifts[dim] += arg("shifts").ints[i] % max<int64_t>(x.sizes[dim], 1);
  }
  open_loops(y.sizes);
  for (int64_t d = 0; d < x.ndim(); d++) {
    const int64_t n = max<int64_t>(x.sizes[d], 1);
    const int64_t ahead = (n - shifts[d] % n) % n;
    body_.add("const long s").add(d).add(" = ");
    if (turns[d]) body_.add(n - 1).add(" - i").add(d);
    else body_.add("i").add(d);
    if (ahead) body_.add(" < ").add(n - ahead).add(" ? i").add(d).add(" + ").add(ahead);
    if (ahead) body_.add(" : i").add(d).add(" - ").add(n - ahead);
    body_.add(";\n    ");
  }
  Text place, source;
  add_at(place, node().outs[0], y.ndim());
  add_place(source, tensor("self"));
  store_by(place, y.dtype, source, '=');
  close_loops(y.ndim());
}
// Writes roll without dims, which shifts all elements as one row.
void CExporter::emit_turn() {
  const IrValue& x = value(tensor("self"));
  const IrValue& y = value(node().outs[0]);
  const int64_t n = x.numel();
  if (!is_contiguous(y)) refuse("a result with gaps");
  if (!n) return;
  Text from;
  add_address(from, tensor("self"), true, x.dtype);
  int64_t shift = 0;
  for (const int64_t by : arg("shifts").ints) shift += by % n;
  open_loop(0, n);
  body_.add("    ");
  add_pointer(body_, node().outs[0]);
  body_.add("[i0] = ").add(from.span()).add("[(i0 + ").add((2 * n - shift % n) % n).add(") % ");
  body_.add(n).add("];\n");
  close_loops(1);
}

// Copies self and, over a part of it, src.
void CExporter::emit_part() {
  const IrValue& y = value(node().outs[0]);
  const IrValue& src = value(tensor("src"));
  Shape strides = y.strides;
  int64_t offset = 0;
  if (is("diagonal_scatter")) {
    const int64_t a = wrap_dim(integer("dim1"), y.ndim());
    const int64_t b = wrap_dim(integer("dim2"), y.ndim());
    const int64_t by = integer("offset");
    offset = by < 0 ? -by * y.strides[a] : by * y.strides[b];
    strides.push_back(y.strides[a] + y.strides[b]);
    for (const int64_t d : {max(a, b), min(a, b)}) strides.erase(d);
  } else {
    const bool one = is("select_scatter");
    const int64_t dim = dim_of("self");
    const int64_t n = y.sizes[dim];
    const char* name = one ? "index" : "start";
    const int64_t at = has_arg(name) ? integer(name) : 0;
    offset = clamp(at < 0 ? at + n : at, int64_t(0), n) * y.strides[dim];
    if (one) strides.erase(dim);
    else strides[dim] *= integer("step");
  }
  begin_changes();
  emit_copy(tensor("src"), node().outs[0], src.sizes, 0, offset, strides);
}

// ---- without inputs ----

// Writes the result of an operator without tensors as a table. Returns false for other operators.
bool CExporter::emit_table() {
  const IrNode& n = node();
  if (!takes_no_tensors(n) || n.outs.size() != 1 || n.n_results != 1 || n.outs[0] < 0) return false;
  const IrValue& y = value(n.outs[0]);
  if (!c_type(y.dtype) || y.numel() > kMaxTable || !is_contiguous(y)) return false;
  const TensorList outs = results_without_tensors(n);
  const Tensor& t = *outs[0];
  if (!t.is_cpu() || !t.contiguous()) return false;
  if (!t.numel) return true;
  open_loops({});
  body_.add("static const ").add(c_type(y.dtype)).add(" table[] = {");
  for (int64_t i = 0; i < t.numel; i++) {
    if (i) body_.add(i % 8 ? ", " : ",\n      ");
    add_element(body_, y.dtype, static_cast<const char*>(t.data) + i * t.item_size());
  }
  body_.add("};\n    for (long i = 0; i < ").add(t.numel).add("; i++) ");
  add_pointer(body_, n.outs[0]);
  body_.add("[i] = table[i];\n");
  close_loops(0);
  return true;
}

}  // namespace TT_NS
