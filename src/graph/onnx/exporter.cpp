#include "graph/onnx/exporter.h"

#include "base/text/text.h"
#include "graph/onnx/dtypes.h"

#include <string.h>

namespace TT_NS {

namespace {

constexpr int64_t kOpset = 20;
constexpr int64_t kIrVersion = 9;

uint64_t hash_of(const void* data, int64_t n, uint64_t seed) {
  uint64_t h = seed ^ 0xcbf29ce484222325u;
  const auto* p = static_cast<const unsigned char*>(data);
  for (int64_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3u;
  return h;
}

bool has_order_of(const IrValue& v) { return is_contiguous(v.sizes, v.strides); }

int64_t end_of(const IrValue& v) {
  int64_t last = v.offset;
  for (int64_t d = 0; d < v.ndim(); d++)
    last += (v.sizes[d] - 1) * v.strides[d] * item_size(v.dtype);
  return last + item_size(v.dtype);
}
// Whether the memory of a reaches no further than that of b.
bool is_inside(const IrValue& a, const IrValue& b) {
  return a.numel() == 0 || (a.offset >= b.offset && end_of(a) <= end_of(b));
}

}  // namespace

// ---- nodes ----

void OnnxExporter::refuse(const char* why) const {
  fail(TT_NOT_IMPLEMENTED, "node {}, {}: {}", at_, op(), why);
}
void OnnxExporter::add_name(Text& out, ModelValue t) const {
  if (t.id >= 0) out.add("t").add(int64_t(t.id));
}
void OnnxExporter::node_to(const char* type, Inputs in, Span<const ModelValue> outs,
                           const AttrWriter& attrs) {
  const auto& bytes = attrs.all().all();
  note(Ints(), hash_of(bytes.data(), bytes.size(), uint64_t(strlen(type))));
  add_node(type, in, outs, attrs);
}
void OnnxExporter::add_node(const char* type, Inputs in, Span<const ModelValue> outs,
                            const AttrWriter& attrs) {
  Proto n;
  int64_t count = in.n;
  while (count > 0 && in[count - 1].id < 0) count--;
  for (int64_t i = 0; i < count; i++) {
    Text name;
    add_name(name, in[i]);
    n.text(1, name.c_str());
  }
  for (const ModelValue t : outs) {
    Text name;
    add_name(name, t);
    n.text(2, name.c_str());
  }
  n.text(4, type);
  n.append(attrs.all());
  nodes_.message(1, n);
}
ModelValue OnnxExporter::node(const char* type, Inputs in, Dtype dtype, const AttrWriter& attrs) {
  ModelValue out = new_tensor();
  out.dtype = dtype;
  node_to(type, in, Span<const ModelValue>(&out, 1), attrs);
  return out;
}
ModelValue OnnxExporter::node(const char* type, Inputs in, Dtype dtype) {
  return node(type, in, dtype, AttrWriter());
}
ModelValue OnnxExporter::along(int64_t axis, const char* type, Inputs in, Dtype dtype) {
  AttrWriter attrs;
  attrs.integer("axis", axis);
  return node(type, in, dtype, attrs);
}
ModelValue OnnxExporter::cast(ModelValue x, Dtype to) {
  if (x.dtype == to) return x;
  if (!onnx_type(to)) refuse("ONNX has no such dtype");
  return node("Cast", {x}, to, AttrWriter().integer("to", onnx_type(to)));
}
ModelValue OnnxExporter::initializer(Dtype dtype, Ints sizes, const void* data, int64_t bytes) {
  if (!onnx_type(dtype)) fail(TT_NOT_IMPLEMENTED, "ONNX models have no {}", fmt(dtype));
  if (!in_constant_) note(Ints(), hash_of(data, bytes, uint64_t(sizes.n)));
  ModelValue t = new_tensor();
  t.dtype = dtype;
  Text name;
  add_name(name, t);
  Proto p;
  for (const int64_t size : sizes) p.integer(1, size);
  p.integer(2, onnx_type(dtype));
  p.text(8, name.c_str());
  p.bytes(9, data, bytes);
  initializers_.message(5, p);
  return t;
}
// Records what is written. With dynamic dimensions all graphs must write the same.
void OnnxExporter::note(Ints list, uint64_t rest) {
  const int64_t i = trace.items.size();
  trace.items.push_back({Shape(list), rest});
  if (!traced_) return;
  for (int64_t k = 1; k < graphs_.n; k++) {
    const auto& items = wanted_[k].items;
    if (i >= items.size() || items[i].rest != rest || items[i].list.size() != list.n)
      refuse("depends on the dynamic size in a way that ONNX cannot follow");
  }
}
// A node that computes with sizes: it is not noted.
ModelValue OnnxExporter::sizes_node(const char* type, Inputs in) {
  const ModelValue out = {new_tensor().id, Dtype::kI64};
  add_node(type, in, Span<const ModelValue>(&out, 1), AttrWriter());
  return out;
}
// The list that was noted last, as numbers that follow from the dynamic sizes.
ModelValue OnnxExporter::grown(Ints list) {
  SmallVec<int64_t, 8> factors[Growth::kMaxTerms];
  const int64_t n_terms = growth_->n_terms();
  const int64_t item = trace.items.size() - 1;
  for (int64_t i = 0; i < list.n; i++) {
    int64_t known[Growth::kMaxTerms] = {list[i]};
    Growth::Terms terms;
    for (int64_t k = 1; k < graphs_.n; k++) known[k] = wanted_[k].items[item].list[i];
    if (!growth_->terms(known, terms)) refuse("a size does not grow evenly");
    for (int64_t k = 0; k < n_terms; k++) factors[k].push_back(terms[k]);
  }
  ModelValue sum = plain(factors[0].span(), 1);
  for (int64_t k = 1; k < n_terms; k++) {
    bool used = false;
    for (const int64_t factor : factors[k]) used |= factor != 0;
    if (!used) continue;
    const ModelValue product = sizes_node("Mul", {plain(factors[k].span(), 1), products_[k]});
    sum = sizes_node("Add", {product, sum});
  }
  return sum;
}
// 0 to n - 1, of a vector of one element.
ModelValue OnnxExporter::range(ModelValue n) {
  const int64_t first = 0;
  const int64_t step = 1;
  const ModelValue end = node("Squeeze", {n}, Dtype::kI64);
  return node("Range", {constant(Ints(&first, 1), 0), end, constant(Ints(&step, 1), 0)},
              Dtype::kI64);
}
ModelValue OnnxExporter::number(double v, Dtype dtype) {
  return scalar(is_float(dtype) ? Scalar(v) : Scalar(int64_t(v)), dtype);
}
ModelValue OnnxExporter::scalar(const Scalar& v, Dtype dtype) {
  char data[16];
  store_scalar(data, dtype, v);
  return initializer(dtype, Ints(), data, item_size(dtype));
}
ModelValue OnnxExporter::number_of(const char* name, Dtype dtype) {
  const IrArg& a = arg(name);
  if (a.kind == Value::kScalar && a.scalar.is_int()) return scalar(a.scalar, dtype);
  return number(real(name), dtype);
}
// An initializer that is not noted.
ModelValue OnnxExporter::plain(Ints v, int64_t ndim) {
  in_constant_ = true;
  const ModelValue t = initializer(Dtype::kI64, ndim ? Ints(&v.n, 1) : Ints(), v.ptr, v.n * 8);
  in_constant_ = false;
  return t;
}
ModelValue OnnxExporter::constant(Ints v, int64_t ndim) {
  note(v, 0);
  bool differs = false;
  for (int64_t k = 1; k < graphs_.n && traced_; k++)
    differs |= !same(v, wanted_[k].items[trace.items.size() - 1].list.span());
  if (!differs) return plain(v, ndim);
  if (!ndim) refuse("a position depends on the dynamic size");
  return grown(v);
}

// ---- arguments ----

const IrArg* OnnxExporter::find_arg(const char* name) const {
  const OpSchema& s = *at().op->schema;
  for (int32_t i = 0; i < s.n_args; i++)
    if (strcmp(s.args[i].name, name) == 0) return &at().args[i];
  return nullptr;
}
const IrArg& OnnxExporter::arg(const char* name) const {
  const IrArg* a = find_arg(name);
  if (!a) fail(TT_INTERNAL, "{} has no argument {}", op(), name);
  return *a;
}
double OnnxExporter::real(const char* name) const {
  const IrArg& a = arg(name);
  if (a.kind == Value::kFloat) return a.f;
  if (a.kind == Value::kScalar) return a.scalar.real();
  return double(a.i);
}
void OnnxExporter::give(ModelValue x, int64_t i) {
  if (i < at().outs.size() && at().outs[i] >= 0) of_[at().outs[i]] = cast(x, out_value(i).dtype);
}

// ---- values ----

ModelValue OnnxExporter::of_constant(const IrValue& v) {
  const char* data = g_.storages[v.storage].tensor->storage->data;
  Bytes dense;
  const int64_t size = item_size(v.dtype);
  dense.reserve(v.numel() * size);
  each_element(v, [&](int64_t at) { dense.append({data + at, size}); });
  return initializer(v.dtype, v.sizes, dense.data(), dense.size());
}
ModelValue OnnxExporter::of_value(int32_t i) {
  if (i < 0) return ModelValue();
  if (of_[i].id >= 0) return of_[i];
  const IrValue& v = g_.values[i];
  if (g_.storages[v.storage].role == IrRole::kConstant) return of_[i] = of_constant(v);
  for (int32_t k = g_.storages[v.storage].last_value; k >= 0; k = g_.values[k].previous) {
    const IrValue& other = g_.values[k];
    if (k != i && of_[k].id >= 0 && other.version == v.version && other.dtype == v.dtype &&
        is_inside(v, other))
      return of_[i] = as_view(of_[k], other, v, false);
  }
  return of_[i] = after_writes(v);
}

// The elements of a memory in order, with the writes up to the version of v; of these, v.
ModelValue OnnxExporter::after_writes(const IrValue& v) {
  SmallVec<int32_t, 8> values;  // of the storage, the first one first
  for (int32_t k = g_.storages[v.storage].last_value; k >= 0; k = g_.values[k].previous)
    values.insert(0, k);
  const IrValue* whole = nullptr;
  ModelValue flat;
  uint32_t version = 0;
  for (const int32_t k : values) {
    const IrValue& part = g_.values[k];
    if (of_[k].id < 0 || part.version > v.version || (flat.id >= 0 && part.version <= version))
      continue;
    if (part.dtype != v.dtype) refuse("a view with another dtype");
    const int64_t all = part.numel();
    const bool covers = has_order_of(part) && (!whole || is_inside(*whole, part));
    if (covers) {
      whole = &part;
      flat = reshape(of_[k], Ints(&all, 1));
    } else if (flat.id >= 0) {
      const ModelValue places = initializer_of(positions(*whole, part), Ints(&all, 1));
      flat =
          along(0, "ScatterElements", {flat, places, reshape(of_[k], Ints(&all, 1))}, flat.dtype);
    } else {
      continue;
    }
    version = part.version;
  }
  if (flat.id < 0 || version != v.version)
    refuse("reads memory after a write that ONNX cannot follow");
  if (has_order_of(v) && v.offset == whole->offset && v.numel() == whole->numel())
    return reshape(flat, v.sizes);
  return node("Gather", {flat, initializer_of(positions(*whole, v), v.sizes)}, flat.dtype);
}

// Elements of `from`, a value without gaps, at the addresses of `to`: by a table of positions.
ModelValue OnnxExporter::derived(ModelValue base, const IrValue& from, const IrValue& to) {
  if (!has_order_of(from)) return after_writes(to);
  const OnnxPositions table = positions(from, to);
  const int64_t all = from.numel();
  const ModelValue flat = reshape(base, Ints(&all, 1));
  return node("Gather", {flat, initializer_of(table, to.sizes)}, base.dtype);
}
// Where the elements of `to` are in `from`, a value without gaps.
OnnxPositions OnnxExporter::positions(const IrValue& from, const IrValue& to) const {
  if (to.numel() > kMaxIndexTable) refuse("a view that ONNX cannot express");
  OnnxPositions out;
  bool inside = true;
  each_element(to, [&](int64_t at) {
    const int64_t position = (at - from.offset) / item_size(from.dtype);
    inside = inside && at >= from.offset && position < from.numel();
    out.push_back(position);
  });
  if (!inside) refuse("a view of memory that a write has not covered");
  return out;
}
ModelValue OnnxExporter::initializer_of(const OnnxPositions& list, Ints sizes) {
  return initializer(Dtype::kI64, sizes, list.data(), list.size() * 8);
}

namespace {

// The order of dimensions that makes `to` of `from`; empty: there is none.
Shape permutation(const IrValue& from, const IrValue& to) {
  const int64_t n = from.ndim();
  Shape order;
  SmallVec<bool, 8> used;
  used.resize(n);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < n; k++) {
      if (used[k] || to.sizes[i] != from.sizes[k] || to.strides[i] != from.strides[k]) continue;
      used[k] = true;
      order.push_back(k);
      break;
    }
  return order.size() == n ? order : Shape();
}

// A slice of one dimension.
struct DimSlice {
  int64_t dim = -1;  // -1: it is none
  int64_t start = 0;
  int64_t end = 0;
  int64_t step = 1;
};

// delta: elements from the first one of `from` to that of `to`.
DimSlice slice_of(const IrValue& from, const IrValue& to, int64_t delta) {
  int64_t d = -1;
  for (int64_t i = 0; i < from.ndim(); i++) {
    const bool has_stride = to.strides[i] == from.strides[i] || to.sizes[i] < 2;
    if (to.sizes[i] == from.sizes[i] && has_stride) continue;
    if (d >= 0) return {};
    d = i;
  }
  if (d < 0 || from.strides[d] <= 0 || delta % from.strides[d]) return {};
  DimSlice s;
  const int64_t size = to.sizes[d];
  s.start = delta / from.strides[d];
  if (size >= 2) s.step = to.strides[d] / from.strides[d];
  s.end = s.start + (size - 1) * s.step + 1;
  const bool inside = s.step > 0 && s.start >= 0 && (size == 0 || s.end <= from.sizes[d]);
  const bool even = size < 2 || to.strides[d] == s.step * from.strides[d];
  if (inside && even) s.dim = d;
  return s;
}

// Whether `to` is `from` at one position of dimension d.
bool is_at_position(const IrValue& from, const IrValue& to, int64_t delta, int64_t d) {
  const int64_t stride = from.strides[d];
  if (stride <= 0 || delta < 0 || delta % stride || delta / stride >= from.sizes[d]) return false;
  for (int64_t i = 0, k = 0; i < from.ndim(); i++) {
    if (i == d) continue;
    if (to.sizes[k] != from.sizes[i]) return false;
    if (to.sizes[k] >= 2 && to.strides[k] != from.strides[i]) return false;
    k++;
  }
  return true;
}

// Whether `to` repeats dimensions of `from`, aligned at the last one.
bool is_expanded(const IrValue& from, const IrValue& to) {
  const int64_t n = from.ndim();
  for (int64_t i = 1; i <= to.ndim(); i++) {
    const int64_t size = i <= n ? from.sizes[n - i] : 1;
    const int64_t stride = i <= n ? from.strides[n - i] : 0;
    const int64_t wanted = to.sizes[to.ndim() - i];
    const int64_t step = to.strides[to.ndim() - i];
    const bool repeats = size == 1 && step == 0;
    const bool stays = size == wanted && (size < 2 || stride == step);
    if (!repeats && !stays) return false;
  }
  return true;
}

}  // namespace

// Whether `to` is at the last position of dimension d of `from` for every size of the dynamic
// dimensions, as in x[:, -1].
bool OnnxExporter::is_last(const IrValue& from, const IrValue& to, int64_t d) const {
  bool last = graphs_.n > 1;
  for (const Graph* g : graphs_) {
    const IrValue& a = g->values[&from - g_.values.data()];
    const IrValue& b = g->values[&to - g_.values.data()];
    if (!last || a.ndim() <= d) return false;
    last = b.offset - a.offset == (a.sizes[d] - 1) * a.strides[d] * item_size(a.dtype);
  }
  return last;
}

ModelValue OnnxExporter::as_view(ModelValue base, const IrValue& from, const IrValue& to,
                                 bool keeps_order) {
  if (same(from.sizes, to.sizes) && same(from.strides, to.strides) && from.offset == to.offset)
    return base;
  const bool both_dense = has_order_of(from) && has_order_of(to) && from.offset == to.offset;
  if ((keeps_order || both_dense) && from.numel() == to.numel()) return reshape(base, to.sizes);
  const int64_t n = from.ndim();
  const int64_t delta = (to.offset - from.offset) / item_size(from.dtype);
  if (to.ndim() == n && delta == 0) {
    const Shape order = permutation(from, to);
    if (!order.empty())
      return node("Transpose", {base}, base.dtype, AttrWriter().ints("perm", order));
  }
  if (to.ndim() == n) {
    const DimSlice s = slice_of(from, to, delta);
    if (s.dim >= 0)
      return node("Slice",
                  {base, constant(Ints(&s.start, 1)), constant(Ints(&s.end, 1)),
                   constant(Ints(&s.dim, 1)), constant(Ints(&s.step, 1))},
                  base.dtype);
  }
  for (int64_t d = 0; d < n && to.ndim() == n - 1; d++) {
    if (!is_at_position(from, to, delta, d)) continue;
    const int64_t index = is_last(from, to, d) ? -1 : delta / from.strides[d];
    return along(d, "Gather", {base, constant(Ints(&index, 1), 0)}, base.dtype);
  }
  if (to.ndim() >= n && delta == 0 && is_expanded(from, to))
    return node("Expand", {base, constant(to.sizes)}, base.dtype);
  return derived(base, from, to);
}

bool OnnxExporter::emit_views() {
  static constexpr const char* kKeepOrder[] = {"view",    "reshape",      "flatten",   "unflatten",
                                               "squeeze", "squeeze_dims", "unsqueeze", "detach",
                                               "ravel",   "contiguous"};
  if (at().outs.size() != at().n_results || at().outs.empty()) return false;
  for (int64_t i = 0; i < at().outs.size(); i++)
    if (at().outs[i] >= 0 && !is_view_out(g_, at(), i)) return false;
  int32_t from = -1;
  for_each_value(at(), [&](int32_t v) {
    if (from < 0 && g_.values[v].storage == out_value().storage) from = v;
  });
  bool keeps = false;
  for (const char* name : kKeepOrder) keeps |= is(name);
  const ModelValue base = of_value(from);
  for (int64_t i = 0; i < at().outs.size(); i++) {
    const int32_t out = at().outs[i];
    if (out < 0 || of_[out].id >= 0) continue;
    if (g_.values[out].dtype != g_.values[from].dtype) refuse("a view with another dtype");
    of_[out] = as_view(base, g_.values[from], g_.values[out], keeps);
  }
  return true;
}

// ---- the model ----

bool OnnxExporter::emit_by(Span<const Emitter> table) {
  for (const Emitter& e : table)
    if (is(e.op)) {
      (this->*e.emit)();
      return true;
    }
  return false;
}

void OnnxExporter::emit_node() {
  for (const int32_t v : at().outs)
    if (v >= 0 && g_.storages[g_.values[v].storage].role == IrRole::kState) refuse("writes state");
  for (int64_t i = 0; i < at().outs.size(); i++)
    if (at().outs[i] >= 0 && !onnx_type(out_value(i).dtype)) refuse("ONNX has no such dtype");
  for (const char* check : {"check_indices", "check_holds", "check_info"})
    if (is(check)) return;  // a model does not fail by the values of its inputs
  if (emit_views() || emit_elementwise() || emit_product() || emit_conv() || emit_pool() ||
      emit_resize() || emit_rows() || emit_attention() || emit_recurrent() || emit_reduce() ||
      emit_arrange() || emit_indexing() || emit_copy() || emit_order() || emit_integers() ||
      emit_generated())
    return;
  refuse("has no translation to ONNX");
}

// The sizes of the dynamic dimensions and their products, as nodes.
void OnnxExporter::find_dynamic_sizes() {
  for (int64_t k = 1; k < growth_->n_terms(); k++)
    for (int64_t i = 0; i < growth_->n_dims(); i++) {
      if (!(k >> i & 1)) continue;
      const DynamicDim& dim = growth_->dim(i);
      const int64_t d = dim.dim;
      const int64_t rest = k & (k - 1);
      if (rest) {
        products_[k] = sizes_node("Mul", {products_[k ^ rest], products_[rest]});
        break;
      }
      const ModelValue shape = sizes_node("Shape", {of_[g_.inputs[dim.input]]});
      products_[k] = sizes_node("Gather", {shape, plain(Ints(&d, 1), 1)});
    }
}

void OnnxExporter::value_info(Proto& to, int field, const char* prefix, int64_t i,
                              const SmallVec<int32_t, 4> Graph::*ends) {
  Proto shape, type, tensor, info;
  const IrValue& v = g_.values[(g_.*ends)[i]];
  if (!onnx_type(v.dtype)) fail(TT_NOT_IMPLEMENTED, "ONNX models have no {}", fmt(v.dtype));
  for (int64_t d = 0; d < v.ndim(); d++) {
    Proto dim;
    int64_t sizes[Growth::kMaxTerms];
    Growth::Terms terms;
    bool changes = false;
    const char* name = nullptr;
    for (int64_t k = 0; k < graphs_.n; k++) {
      sizes[k] = graphs_[k]->values[(graphs_[k]->*ends)[i]].sizes[d];
      changes |= sizes[k] != sizes[0];
    }
    if (changes && growth_->terms(sizes, terms)) {
      int64_t sum = 0;
      for (int64_t k = 0; k < growth_->n_terms(); k++) sum += terms[k] < 0 ? 2 : terms[k];
      for (int64_t k = 0; k < growth_->n_dims() && sum == 1; k++)
        if (terms[int64_t(1) << k]) name = dim_names_[k];
    }
    if (changes && !name && field == 11)
      fail(TT_NOT_IMPLEMENTED, "dimension {} of input {} is not one of the dynamic sizes", d, i);
    if (name) dim.text(2, name);
    else if (!changes) dim.integer(1, v.sizes[d]);
    shape.message(1, dim);
  }
  tensor.integer(1, onnx_type(v.dtype));
  tensor.message(2, shape);
  type.message(1, tensor);
  Text name(prefix);
  name.add(i);
  info.text(1, name.c_str());
  info.message(2, type);
  to.message(field, info);
}

void OnnxExporter::identity(const char* from, const char* to) {
  Proto n;
  n.text(1, from);
  n.text(2, to);
  n.text(4, "Identity");
  nodes_.message(1, n);
}

// Writes the graphs of the other sizes for their traces.
void OnnxExporter::follow_others() {
  for (int64_t k = 1; k < graphs_.n; k++) {
    const Graph& other = *graphs_[k];
    Bytes unused;
    SmallVec<const Graph*, 8> turned(graphs_);
    std::swap(turned[0], turned[k]);
    OnnxExporter exporter(turned, growth_, dim_names_);
    exporter.is_trace_ = true;
    exporter.write(unused);
    wanted_[k] = std::move(exporter.trace);
    for (int64_t i = 0; i < g_.outputs.size(); i++)
      if (g_.values[g_.outputs[i]].ndim() != other.values[other.outputs[i]].ndim())
        fail(TT_NOT_IMPLEMENTED, "output {} has other dimensions for the other size", i);
  }
  traced_ = true;
}

void OnnxExporter::add_inputs(Proto& graph) {
  for (int64_t i = 0; i < g_.inputs.size(); i++) {
    const IrValue& v = g_.values[g_.inputs[i]];
    ModelValue t = new_tensor();
    t.dtype = v.dtype;
    Text from("in"), to;
    from.add(i);
    add_name(to, t);
    identity(from.c_str(), to.c_str());
    if (!is_trace_) value_info(graph, 11, "in", i, &Graph::inputs);
    of_[g_.inputs[i]] = t;
  }
}

void OnnxExporter::add_outputs(Proto& graph) {
  for (int64_t i = 0; i < g_.outputs.size(); i++) {
    const ModelValue t = of_value(g_.outputs[i]);
    Text from, to("out");
    add_name(from, t);
    to.add(i);
    identity(from.c_str(), to.c_str());
    if (!is_trace_) value_info(graph, 12, "out", i, &Graph::outputs);
  }
}

void OnnxExporter::write(Bytes& out) {
  of_.resize(g_.values.size());
  if (growth_ && !is_trace_) follow_others();
  Proto ends;
  add_inputs(ends);
  find_gates();
  if (traced_) find_dynamic_sizes();
  for (at_ = 0; at_ < g_.nodes.size(); at_++)
    if (!skip_[at_]) emit_node();
  at_ = int32_t(g_.nodes.size()) - 1;
  add_outputs(ends);
  for (int64_t k = 1; k < graphs_.n && traced_; k++)
    if (trace.items.size() != wanted_[k].items.size())
      fail(TT_NOT_IMPLEMENTED, "the operators depend on the dynamic size");
  Proto graph, opset, model;
  graph.append(nodes_);
  graph.text(2, "tt");
  graph.append(initializers_);
  graph.append(ends);
  opset.text(1, "");
  opset.integer(2, kOpset);
  model.integer(1, kIrVersion);
  model.text(2, "tt");
  model.message(8, opset);
  model.message(7, graph);
  out = model.all();
}

void export_onnx(Span<const Graph* const> graphs, Span<const char* const> dims, Bytes& out) {
  if (graphs.n == 1) return OnnxExporter(graphs, nullptr, {}).write(out);
  const Growth growth(graphs);
  if (growth.n_dims() != dims.n)
    fail(TT_INVALID_ARG, "{} dimensions differ, there are {} names", growth.n_dims(), dims.n);
  OnnxExporter(graphs, &growth, dims).write(out);
}

}  // namespace TT_NS
