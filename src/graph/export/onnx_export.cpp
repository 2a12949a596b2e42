#include "graph/export/onnx_export.h"

#include "base/arith.h"
#include "base/text/text.h"
#include "core/half.h"
#include "core/shape.h"
#include "graph/export/c_export.h"
#include "graph/export/proto.h"
#include "graph/resize.h"
#include "plan/recurrent_plan.h"
#include "plan/resize_build.h"

#include <string.h>

namespace TT_NS {

namespace {

constexpr int64_t kOpset = 20;
constexpr int64_t kIrVersion = 9;
constexpr int64_t kMaxResizeWeights = 1 << 24;
constexpr int64_t kMaxIndexTable = 1 << 22;  // elements of a view that is written as a table

int32_t onnx_type(Dtype d) {
  switch (d) {
    case Dtype::kBool: return 9;
    case Dtype::kU8: return 2;
    case Dtype::kI8: return 3;
    case Dtype::kI16: return 5;
    case Dtype::kI32: return 6;
    case Dtype::kI64: return 7;
    case Dtype::kF16: return 10;
    case Dtype::kBF16: return 16;
    case Dtype::kF32: return 1;
    case Dtype::kF64: return 11;
    case Dtype::kU16: return 4;
    case Dtype::kU32: return 12;
    case Dtype::kU64: return 13;
    default: return 0;
  }
}

// Attributes of a node (AttributeProto).
class Attrs {
 public:
  Attrs& integer(const char* name, int64_t v) {
    Proto a;
    a.text(1, name);
    a.integer(3, v);
    a.integer(20, 2);
    all_.message(5, a);
    return *this;
  }
  Attrs& real(const char* name, double v) {
    Proto a;
    a.text(1, name);
    a.real(2, float(v));
    a.integer(20, 1);
    all_.message(5, a);
    return *this;
  }
  Attrs& text(const char* name, const char* v) {
    Proto a;
    a.text(1, name);
    a.text(4, v);
    a.integer(20, 3);
    all_.message(5, a);
    return *this;
  }
  Attrs& texts(const char* name, Span<const char* const> v) {
    Proto a;
    a.text(1, name);
    for (const char* s : v) a.text(9, s);
    a.integer(20, 8);
    all_.message(5, a);
    return *this;
  }
  Attrs& ints(const char* name, Ints v) {
    Proto a;
    a.text(1, name);
    for (const int64_t i : v) a.integer(8, i);
    a.integer(20, 7);
    all_.message(5, a);
    return *this;
  }
  const Proto& all() const { return all_; }

 private:
  Proto all_;
};

// A tensor of the model: its number, and its dtype there.
struct Operand {
  int32_t id = -1;  // -1: absent
  Dtype dtype = Dtype::kNone;
};

// A part of an elementwise expression: a number, or a tensor.
struct Term {
  bool is_number = false;
  double number = 0;
  Operand tensor;
  bool is_bool() const { return !is_number && tensor.dtype == Dtype::kBool; }
};
Term number_term(double v) { return {true, v, {}}; }
Term tensor_term(Operand t) { return {false, 0, t}; }

// What an export has written besides names: lists of sizes and positions, which may grow with a
// dynamic dimension, and everything else, which must not.
struct ExportTrace {
  struct Item {
    Shape list;
    uint64_t rest = 0;
  };
  SmallVec<Item, 16> items;
};
uint64_t hash_of(const void* data, int64_t n, uint64_t seed) {
  uint64_t h = seed ^ 0xcbf29ce484222325u;
  const auto* p = static_cast<const unsigned char*>(data);
  for (int64_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3u;
  return h;
}

class OnnxExporter {
 public:
  // other, dim: of a dynamic dimension; NULL: there is none.
  OnnxExporter(const Graph& g, const Graph* other, const char* dim)
      : g_(g), other_(other), dim_name_(dim) {}
  void write(Bytes& out);
  // What write() would write.
  ExportTrace trace;

  // ---- nodes of the model ----
  using Inputs = std::initializer_list<Operand>;
  Operand node(const char* type, Inputs in, Dtype dtype, const Attrs& attrs = Attrs());
  void node_to(const char* type, Inputs in, Span<const Operand> outs, const Attrs& attrs = Attrs());
  Operand cast(Operand x, Dtype to);
  Operand number(double v, Dtype dtype);
  Operand constant(Ints v, int64_t ndim = 1);
  Operand reshape(Operand x, Ints sizes) {
    return node("Reshape", {x, constant(sizes)}, x.dtype, Attrs().integer("allowzero", 1));
  }
  [[noreturn]] void refuse(const char* why) const;

  // ---- arguments ----
  const IrNode& at() const { return g_.nodes[at_]; }
  const char* op() const { return at().op->name(); }
  bool is(const char* name) const { return strcmp(op(), name) == 0; }
  const IrArg* find_arg(const char* name) const;
  const IrArg& arg(const char* name) const;
  bool has(const char* name) const { return find_arg(name) && arg(name).kind != Value::kNone; }
  double real(const char* name) const;
  int64_t integer(const char* name) const { return int64_t(real(name)); }
  const IrValue& value(const char* name) const { return g_.values[arg(name).values[0]]; }
  const IrValue& out_value(int64_t i = 0) const { return g_.values[at().outs[i]]; }
  Operand tensor(const char* name) { return has(name) ? of_value(arg(name).values[0]) : Operand(); }
  // The result of this node is x, perhaps of another dtype.
  void give(Operand x, int64_t i = 0);

 private:
  Operand new_tensor() { return {n_tensors_++, Dtype::kNone}; }
  void add_name(Text& out, Operand t) const;
  Operand initializer(Dtype dtype, Ints sizes, const void* data, int64_t bytes);
  Operand of_value(int32_t v);
  Operand of_constant(const IrValue& v);
  Operand derived(Operand base, const IrValue& from, const IrValue& to);
  Operand as_view(Operand base, const IrValue& from, const IrValue& to, bool keeps_order);
  bool emit_views();
  void emit_node();
  bool emit_elementwise();
  bool emit_direct();
  bool emit_product();
  bool emit_conv();
  bool emit_pool();
  Operand resize_weights(int d);
  bool emit_resize();
  bool emit_rows();
  bool emit_attention();
  bool emit_recurrent();
  Operand by_gates(int32_t v, Ints order);
  Operand last_rows_only(Operand rows, int64_t total, bool reverse);
  bool reads_only(int32_t v, int64_t begin, int64_t end) const;
  int32_t gates_of(int32_t v) const;
  void find_gates();
  bool emit_reduce();
  bool emit_arrange();
  bool emit_copy();
  void value_info(Proto& to, int field, const char* prefix, int64_t i, const IrValue& v,
                  const IrValue* other);
  void note(Ints list, uint64_t rest);
  Operand grown(Ints list, Ints other);
  Operand plain(Ints v, int64_t ndim);
  void add_node(const char* type, Inputs in, Span<const Operand> outs, const Attrs& attrs);
  void find_dynamic_size();

  const Graph& g_;
  const Graph* const other_;
  const char* const dim_name_;
  DynamicDim dim_ = {};
  ExportTrace wanted_;    // of other_
  Operand dynamic_size_;  // a vector of one element
  bool in_constant_ = false;
  int32_t at_ = 0;
  int32_t n_tensors_ = 0;
  SmallVec<Operand, 16> of_;  // of each value
  SmallVec<bool, 16> skip_;   // nodes that the recurrent layers which read them include
  Proto nodes_, initializers_;
};

// ---- nodes ----

void OnnxExporter::refuse(const char* why) const {
  fail(TT_NOT_IMPLEMENTED, "node {}, {}: {}", at_, op(), why);
}
void OnnxExporter::add_name(Text& out, Operand t) const {
  if (t.id >= 0) out.add("t").add(int64_t(t.id));
}
void OnnxExporter::node_to(const char* type, Inputs in, Span<const Operand> outs,
                           const Attrs& attrs) {
  const auto& bytes = attrs.all().all();
  note(Ints(), hash_of(bytes.data(), bytes.size(), uint64_t(strlen(type))));
  add_node(type, in, outs, attrs);
}
void OnnxExporter::add_node(const char* type, Inputs in, Span<const Operand> outs,
                            const Attrs& attrs) {
  Proto n;
  int64_t count = int64_t(in.size());
  while (count > 0 && in.begin()[count - 1].id < 0) count--;
  for (int64_t i = 0; i < count; i++) {
    Text name;
    add_name(name, in.begin()[i]);
    n.text(1, name.c_str());
  }
  for (const Operand t : outs) {
    Text name;
    add_name(name, t);
    n.text(2, name.c_str());
  }
  n.text(4, type);
  n.append(attrs.all());
  nodes_.message(1, n);
}
Operand OnnxExporter::node(const char* type, Inputs in, Dtype dtype, const Attrs& attrs) {
  Operand out = new_tensor();
  out.dtype = dtype;
  node_to(type, in, Span<const Operand>(&out, 1), attrs);
  return out;
}
Operand OnnxExporter::cast(Operand x, Dtype to) {
  if (x.dtype == to) return x;
  if (!onnx_type(to)) refuse("ONNX has no such dtype");
  return node("Cast", {x}, to, Attrs().integer("to", onnx_type(to)));
}
Operand OnnxExporter::initializer(Dtype dtype, Ints sizes, const void* data, int64_t bytes) {
  if (!onnx_type(dtype)) fail(TT_NOT_IMPLEMENTED, "ONNX models have no {}", fmt(dtype));
  if (!in_constant_) note(Ints(), hash_of(data, bytes, uint64_t(sizes.n)));
  Operand t = new_tensor();
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
// Notes what is written; with a dynamic dimension it must be what the other graph has.
void OnnxExporter::note(Ints list, uint64_t rest) {
  const int64_t i = trace.items.size();
  trace.items.push_back({Shape(list), rest});
  if (!other_) return;
  if (i >= wanted_.items.size() || wanted_.items[i].rest != rest ||
      wanted_.items[i].list.size() != list.n)
    refuse("depends on the dynamic size in a way that ONNX cannot follow");
}
// The list as numbers that follow from the dynamic size.
Operand OnnxExporter::grown(Ints list, Ints other) {
  SmallVec<int64_t, 8> times, rest;
  for (int64_t i = 0; i < list.n; i++) {
    int64_t factor;
    if (!dim_.grows(list[i], other[i], &factor)) refuse("a size does not grow evenly");
    times.push_back(factor);
    rest.push_back(list[i] - factor * dim_.a);
  }
  const auto both = [&](const char* type, Operand a, Operand b) {
    const Operand out = {new_tensor().id, Dtype::kI64};
    add_node(type, {a, b}, Span<const Operand>(&out, 1), Attrs());
    return out;
  };
  const Operand product = both("Mul", plain({times.data(), list.n}, 1), dynamic_size_);
  return both("Add", product, plain({rest.data(), list.n}, 1));
}
Operand OnnxExporter::number(double v, Dtype dtype) {
  char data[16];
  store_scalar(data, dtype, is_float(dtype) ? Scalar(v) : Scalar(int64_t(v)));
  return initializer(dtype, Ints(), data, item_size(dtype));
}
// An initializer that is not noted.
Operand OnnxExporter::plain(Ints v, int64_t ndim) {
  in_constant_ = true;
  const Operand t = initializer(Dtype::kI64, ndim ? Ints(&v.n, 1) : Ints(), v.ptr, v.n * 8);
  in_constant_ = false;
  return t;
}
Operand OnnxExporter::constant(Ints v, int64_t ndim) {
  note(v, 0);
  if (other_ && ndim) {
    const Shape other(wanted_.items[trace.items.size() - 1].list.span());
    if (!same(v, other)) return grown(v, other);
  } else if (other_ && !same(v, wanted_.items[trace.items.size() - 1].list.span())) {
    refuse("a position depends on the dynamic size");
  }
  return plain(v, ndim);
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
void OnnxExporter::give(Operand x, int64_t i) {
  if (i < at().outs.size() && at().outs[i] >= 0) of_[at().outs[i]] = cast(x, out_value(i).dtype);
}

// ---- values ----

// Calls f(byte offset) for each element, in order.
template <class F> void each_element(const IrValue& v, F f) {
  const int64_t n = v.numel(), ndim = v.ndim();
  Shape index;
  index.resize(ndim);
  for (int64_t k = 0; k < n; k++) {
    int64_t at = v.offset;
    for (int64_t d = 0; d < ndim; d++) at += index[d] * v.strides[d] * item_size(v.dtype);
    f(at);
    for (int64_t d = ndim - 1; d >= 0 && ++index[d] == v.sizes[d]; d--) index[d] = 0;
  }
}
Operand OnnxExporter::of_constant(const IrValue& v) {
  const char* data = g_.storages[v.storage].tensor->storage->data;
  Bytes dense;
  const int64_t size = item_size(v.dtype);
  dense.reserve(v.numel() * size);
  each_element(v, [&](int64_t at) { dense.append({data + at, size}); });
  return initializer(v.dtype, v.sizes, dense.data(), dense.size());
}
Operand OnnxExporter::of_value(int32_t i) {
  if (i < 0) return Operand();
  if (of_[i].id >= 0) return of_[i];
  const IrValue& v = g_.values[i];
  if (g_.storages[v.storage].role == IrRole::kConstant) return of_[i] = of_constant(v);
  for (int32_t k = g_.storages[v.storage].last_value; k >= 0; k = g_.values[k].previous) {
    const IrValue& other = g_.values[k];
    if (k != i && of_[k].id >= 0 && other.version == v.version && other.dtype == v.dtype)
      return of_[i] = as_view(of_[k], other, v, false);
  }
  refuse("reads memory after a write that ONNX cannot follow");
}

bool has_order_of(const IrValue& v) { return is_contiguous(v.sizes, v.strides); }

// Elements of `from`, a value without gaps, at the addresses of `to`: by a table of positions.
Operand OnnxExporter::derived(Operand base, const IrValue& from, const IrValue& to) {
  if (!has_order_of(from) || to.numel() > kMaxIndexTable) refuse("a view that ONNX cannot express");
  SmallVec<int64_t, 1> positions;
  bool inside = true;
  each_element(to, [&](int64_t at) {
    const int64_t position = (at - from.offset) / item_size(from.dtype);
    inside = inside && at >= from.offset && position < from.numel();
    positions.push_back(position);
  });
  if (!inside) refuse("a view of memory that a write has not covered");
  const int64_t all = from.numel();
  const Operand flat = reshape(base, Ints(&all, 1));
  const Operand table = initializer(Dtype::kI64, to.sizes, positions.data(), positions.size() * 8);
  return node("Gather", {flat, table}, base.dtype);
}

Operand OnnxExporter::as_view(Operand base, const IrValue& from, const IrValue& to,
                              bool keeps_order) {
  if (same(from.sizes, to.sizes) && same(from.strides, to.strides) && from.offset == to.offset)
    return base;
  const bool both_dense = has_order_of(from) && has_order_of(to) && from.offset == to.offset;
  if ((keeps_order || both_dense) && from.numel() == to.numel()) return reshape(base, to.sizes);
  const int64_t n = from.ndim(), delta = (to.offset - from.offset) / item_size(from.dtype);
  if (to.ndim() == n && delta == 0) {  // a permutation
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
    if (order.size() == n && n)
      return node("Transpose", {base}, base.dtype, Attrs().ints("perm", order));
  }
  int64_t changed = -1, n_changed = 0;  // a slice of one dimension
  for (int64_t d = 0; d < n && to.ndim() == n; d++) {
    if (to.sizes[d] == from.sizes[d] && (to.strides[d] == from.strides[d] || to.sizes[d] < 2))
      continue;
    changed = d;
    n_changed++;
  }
  if (to.ndim() == n && n_changed == 1 && from.strides[changed] > 0 &&
      delta % from.strides[changed] == 0) {
    const int64_t start = delta / from.strides[changed];
    const int64_t step = to.sizes[changed] < 2 ? 1 : to.strides[changed] / from.strides[changed];
    const int64_t end = start + (to.sizes[changed] - 1) * step + 1;
    if (step > 0 && start >= 0 && (to.sizes[changed] == 0 || end <= from.sizes[changed]) &&
        (to.sizes[changed] < 2 || to.strides[changed] == step * from.strides[changed]))
      return node("Slice",
                  {base, constant(Ints(&start, 1)), constant(Ints(&end, 1)),
                   constant(Ints(&changed, 1)), constant(Ints(&step, 1))},
                  base.dtype);
  }
  for (int64_t d = 0; d < n && to.ndim() == n - 1; d++) {  // one position of a dimension
    bool fits = from.strides[d] > 0 && delta % from.strides[d] == 0 && delta >= 0 &&
                delta / from.strides[d] < from.sizes[d];
    for (int64_t i = 0, k = 0; i < n && fits; i++) {
      if (i == d) continue;
      fits = to.sizes[k] == from.sizes[i] && (to.sizes[k] < 2 || to.strides[k] == from.strides[i]);
      k++;
    }
    const int64_t index = fits ? delta / from.strides[d] : 0;
    if (fits)
      return node("Gather", {base, constant(Ints(&index, 1), 0)}, base.dtype,
                  Attrs().integer("axis", d));
  }
  bool expands = to.ndim() >= n && delta == 0;
  for (int64_t i = 1; i <= to.ndim() && expands; i++) {
    const int64_t size = i <= n ? from.sizes[n - i] : 1;
    const int64_t stride = i <= n ? from.strides[n - i] : 0;
    const bool repeats = size == 1 && to.strides[to.ndim() - i] == 0;
    const bool stays =
        size == to.sizes[to.ndim() - i] && (size < 2 || stride == to.strides[to.ndim() - i]);
    expands = repeats || stays;
  }
  if (expands) return node("Expand", {base, constant(to.sizes)}, base.dtype);
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
  const Operand base = of_value(from);
  for (int64_t i = 0; i < at().outs.size(); i++) {
    const int32_t out = at().outs[i];
    if (out < 0 || of_[out].id >= 0) continue;
    if (g_.values[out].dtype != g_.values[from].dtype) refuse("a view with another dtype");
    of_[out] = as_view(base, g_.values[from], g_.values[out], keeps);
  }
  return true;
}

// ---- elementwise operators, from their expressions in C ----

// Translates an expression over the arguments of a node to nodes of ONNX.
class Expression {
 public:
  Expression(OnnxExporter& e, const char* text, Dtype dtype) : e_(e), p_(text), d_(dtype) {}
  Term run() {
    const Term t = choice();
    if (*p_) e_.refuse("its expression has no translation");
    return t;
  }

 private:
  void blanks() {
    while (*p_ == ' ') p_++;
  }
  bool next(const char* token) {
    blanks();
    const size_t n = strlen(token);
    if (strncmp(p_, token, n) != 0) return false;
    if (n == 1 && (*token == '<' || *token == '>' || *token == '&' || *token == '|') &&
        (p_[1] == *token || p_[1] == '='))
      return false;
    p_ += n;
    return true;
  }
  Operand value(const Term& t) {
    return t.is_number ? e_.number(t.number, d_) : e_.cast(t.tensor, d_);
  }
  Operand truth(const Term& t) {
    if (t.is_number) return e_.number(t.number != 0, Dtype::kBool);
    if (t.is_bool()) return t.tensor;
    return e_.cast(t.tensor, Dtype::kBool);
  }
  Term one(const char* type, const Term& a) { return tensor_term(e_.node(type, {value(a)}, d_)); }
  Term two(const char* type, const Term& a, const Term& b) {
    return tensor_term(e_.node(type, {value(a), value(b)}, d_));
  }
  Term logic(const char* type, const Term& a, const Term& b) {
    return tensor_term(e_.node(type, {truth(a), truth(b)}, Dtype::kBool));
  }
  Term compare(const char* type, const Term& a, const Term& b) {
    return tensor_term(e_.node(type, {value(a), value(b)}, Dtype::kBool));
  }
  Term no(const Term& a) { return tensor_term(e_.node("Not", {truth(a)}, Dtype::kBool)); }
  Term where(const Term& c, const Term& a, const Term& b) {
    if (c.is_number) return c.number != 0 ? a : b;
    return tensor_term(e_.node("Where", {truth(c), value(a), value(b)}, d_));
  }
  Term add(const Term& a, const Term& b) {
    if (a.is_number && b.is_number) return number_term(a.number + b.number);
    return two("Add", a, b);
  }
  Term subtract(const Term& a, const Term& b) {
    if (a.is_number && b.is_number) return number_term(a.number - b.number);
    return two("Sub", a, b);
  }
  Term multiply(const Term& a, const Term& b) {
    if (a.is_number && b.is_number) return number_term(a.number * b.number);
    if (a.is_number && a.number == 1) return b;
    if (b.is_number && b.number == 1) return a;
    return two("Mul", a, b);
  }
  Term divide(const Term& a, const Term& b) {
    if (a.is_number && b.is_number) return number_term(a.number / b.number);
    return two("Div", a, b);
  }

  Term choice() {
    const Term c = either();
    if (!next("?")) return c;
    const Term a = choice();
    if (!next(":")) e_.refuse("its expression has no translation");
    const Term b = choice();
    return where(c, a, b);
  }
  Term either() {
    Term a = both();
    while (next("||")) {
      const Term b = both();
      a = a.is_number && b.is_number ? number_term(a.number != 0 || b.number != 0)
                                     : logic("Or", a, b);
    }
    return a;
  }
  Term both() {
    Term a = bits();
    while (next("&&")) {
      const Term b = bits();
      if (a.is_number && a.number == 0) continue;
      if (a.is_number) a = b;
      else a = b.is_number && b.number == 0 ? b : logic("And", a, b);
    }
    return a;
  }
  Term bits() {
    Term a = equality();
    for (;;) {
      const char* type = nullptr;
      if (next("|")) type = "BitwiseOr";
      else if (next("^")) type = "BitwiseXor";
      else if (next("&")) type = "BitwiseAnd";
      if (!type) return a;
      const Term b = equality();
      a = d_ == Dtype::kBool ? logic(type + 7, a, b) : two(type, a, b);
    }
  }
  Term equality() {
    Term a = relation();
    for (;;) {
      const bool equal = next("==");
      if (!equal && !next("!=")) return a;
      const Term b = relation();
      if (a.is_bool() && b.is_bool()) a = equal ? no(logic("Xor", a, b)) : logic("Xor", a, b);
      else a = equal ? compare("Equal", a, b) : no(compare("Equal", a, b));
    }
  }
  Term relation() {
    Term a = sum();
    for (;;) {
      const char* type = nullptr;
      if (next("<=")) type = "LessOrEqual";
      else if (next(">=")) type = "GreaterOrEqual";
      else if (next("<")) type = "Less";
      else if (next(">")) type = "Greater";
      if (!type) return a;
      const Term b = sum();
      a = compare(type, a, b);
    }
  }
  Term sum() {
    Term a = product();
    for (;;) {
      if (next("+")) a = add(a, product());
      else if (next("-")) a = subtract(a, product());
      else return a;
    }
  }
  Term product() {
    Term a = sign();
    for (;;) {
      if (next("*")) a = multiply(a, sign());
      else if (next("/")) a = divide(a, sign());
      else return a;
    }
  }
  Term sign() {
    if (!next("-")) return primary();
    const Term a = sign();
    return a.is_number ? number_term(-a.number) : one("Neg", a);
  }
  Term primary() {
    blanks();
    if (next("(")) {
      const Term a = choice();
      if (!next(")")) e_.refuse("its expression has no translation");
      return a;
    }
    if ((*p_ >= '0' && *p_ <= '9') || *p_ == '.') return literal();
    const char* begin = p_;
    while ((*p_ >= 'a' && *p_ <= 'z') || (*p_ >= '0' && *p_ <= '9') || *p_ == '_') p_++;
    Text name;
    name.add(Span<const char>(begin, p_ - begin));
    if (*p_ == '(') return call(name);
    return argument(name);
  }
  Term literal() {
    double v = 0, scale = 1;
    for (; *p_ >= '0' && *p_ <= '9'; p_++) v = 10 * v + (*p_ - '0');
    if (*p_ == '.')
      for (p_++; *p_ >= '0' && *p_ <= '9'; p_++) v += (*p_ - '0') * (scale /= 10);
    if (*p_ == 'f') p_++;
    return number_term(v);
  }
  Term argument(const Text& name) {
    if (strncmp(name.c_str(), "has_", 4) == 0)
      return number_term(e_.arg(name.c_str() + 4).kind != Value::kNone);
    const IrArg& a = e_.arg(name.c_str());
    if (a.kind == Value::kTensor) return tensor_term(e_.tensor(name.c_str()));
    if (a.kind == Value::kScalar && a.scalar.is_complex()) e_.refuse("a complex number");
    return number_term(a.kind == Value::kNone ? 0 : e_.real(name.c_str()));
  }
  Term truncated(const Term& a) {
    return where(compare("Less", a, number_term(0)), one("Ceil", a), one("Floor", a));
  }
  Term is_nan(const Term& a) { return tensor_term(e_.node("IsNaN", {value(a)}, Dtype::kBool)); }
  Term is_inf(const Term& a) { return tensor_term(e_.node("IsInf", {value(a)}, Dtype::kBool)); }
  // 2 atanh(x / (2 + x)), which is precise near 0.
  Term log_of_more(const Term& x) {
    const Term near = multiply(number_term(2), one("Atanh", divide(x, add(x, number_term(2)))));
    const Term far = one("Log", add(x, number_term(1)));
    return where(compare("Greater", x, number_term(1)), far, near);
  }
  // tanh(x / 2) (exp(x) + 1), which is precise near 0.
  Term exp_minus_one(const Term& x) {
    return multiply(one("Tanh", multiply(x, number_term(0.5))), add(one("Exp", x), number_term(1)));
  }
  Term extreme(const char* compare_type, const Term& a, const Term& b) {
    const Term first = logic("Or", is_nan(b), compare(compare_type, a, b));
    return where(is_nan(a), b, where(first, a, b));
  }
  Term signed_like(const Term& a, const Term& b) {
    const Term below = compare("Less", divide(number_term(1), b), number_term(0));
    const Term negative = logic("Or", compare("Less", b, number_term(0)), below);
    const Term size = one("Abs", a);
    return where(negative, one("Neg", size), size);
  }
  Term call(const Text& name) {
    static constexpr struct {
      const char *c, *onnx;
    } kSame[] = {{"fabsf", "Abs"},  {"expf", "Exp"},     {"logf", "Log"},     {"sqrtf", "Sqrt"},
                 {"tanhf", "Tanh"}, {"sinf", "Sin"},     {"cosf", "Cos"},     {"tanf", "Tan"},
                 {"asinf", "Asin"}, {"acosf", "Acos"},   {"atanf", "Atan"},   {"sinhf", "Sinh"},
                 {"coshf", "Cosh"}, {"asinhf", "Asinh"}, {"acoshf", "Acosh"}, {"atanhf", "Atanh"},
                 {"erff", "Erf"},   {"floorf", "Floor"}, {"ceilf", "Ceil"},   {"rintf", "Round"}};
    next("(");
    const Term a = choice();
    Term b;
    const bool pair = next(",");
    if (pair) b = choice();
    if (!next(")")) e_.refuse("its expression has no translation");
    for (const auto& f : kSame)
      if (name.is(f.c)) return one(f.onnx, a);
    if (name.is("truncf")) return truncated(a);
    if (name.is("expm1f")) return exp_minus_one(a);
    if (name.is("log1pf")) return log_of_more(a);
    if (name.is("erfcf")) return subtract(number_term(1), one("Erf", a));
    if (name.is("exp2f")) return two("Pow", number_term(2), a);
    if (name.is("log2f")) return multiply(one("Log", a), number_term(1.4426950408889634));
    if (name.is("log10f")) return multiply(one("Log", a), number_term(0.4342944819032518));
    if (name.is("isnan")) return is_nan(a);
    if (name.is("isinf")) return is_inf(a);
    if (name.is("isfinite")) return no(logic("Or", is_nan(a), is_inf(a)));
    if (!pair) e_.refuse("its expression has no translation");
    if (name.is("powf")) return two("Pow", a, b);
    if (name.is("fmodf"))
      return tensor_term(e_.node("Mod", {value(a), value(b)}, d_, Attrs().integer("fmod", 1)));
    if (name.is("hypotf")) return one("Sqrt", add(multiply(a, a), multiply(b, b)));
    if (name.is("fmaxf")) return extreme("Greater", a, b);
    if (name.is("fminf")) return extreme("Less", a, b);
    if (name.is("copysignf")) return signed_like(a, b);
    e_.refuse("its expression has no translation");
  }

  OnnxExporter& e_;
  const char* p_;
  const Dtype d_;
};

// Operators that one node of ONNX computes, on floating tensors.
bool OnnxExporter::emit_direct() {
  static constexpr struct {
    const char *tt, *onnx;
  } kSame[] = {{"relu", "Relu"},
               {"sigmoid", "Sigmoid"},
               {"gelu_exact", "Gelu"},
               {"gelu_tanh", "Gelu"},
               {"mish", "Mish"},
               {"softsign", "Softsign"},
               {"hardswish", "HardSwish"},
               {"reciprocal", "Reciprocal"},
               {"leaky_relu", "LeakyRelu"},
               {"elu", "Elu"}};
  for (const auto& f : kSame) {
    const size_t n = strlen(f.tt);
    const char* rest = op() + n;
    if (strncmp(op(), f.tt, n) != 0 || (*rest && strcmp(rest, "_") && strcmp(rest, "_into")))
      continue;
    const Operand x = tensor(has("self") ? "self" : "input");
    if (!is_float(x.dtype)) return false;
    Attrs attrs;
    if (is("gelu_tanh")) attrs.text("approximate", "tanh");
    if (strcmp(f.tt, "leaky_relu") == 0) attrs.real("alpha", real("negative_slope"));
    if (strcmp(f.tt, "elu") == 0) attrs.real("alpha", real("alpha"));
    give(node(f.onnx, {x}, x.dtype, attrs));
    return true;
  }
  return false;
}

bool OnnxExporter::emit_elementwise() {
  const char* text = c_expression_of(op());
  if (!text) return false;
  if (emit_direct()) return true;
  Dtype d = out_value().dtype;
  if (!is_float(d)) {
    bool some = false;
    for (int64_t i = 0; i < at().args.size(); i++) {
      const IrArg& a = at().args[i];
      const bool is_dst = strcmp(at().op->schema->args[i].name, "dst") == 0;
      if (a.kind == Value::kScalar && !some && a.scalar.is_float()) d = Dtype::kF32;
      if (a.kind != Value::kTensor || is_dst) continue;
      const Dtype own = g_.values[a.values[0]].dtype;
      d = some ? promote(d, own) : own;
      some = true;
    }
    for (const IrArg& a : at().args)
      if (a.kind == Value::kScalar && a.scalar.is_float() && !is_float(d)) d = Dtype::kF32;
    const bool bits = strncmp(op(), "bitwise", 7) == 0;
    if (d == Dtype::kBool && !bits) d = Dtype::kI32;
  }
  if (is_complex(d)) refuse("complex numbers");
  const Term t = Expression(*this, text, d).run();
  Operand x = t.is_number ? number(t.number, d) : t.tensor;
  if (t.is_number) x = node("Expand", {x, constant(out_value().sizes)}, x.dtype);
  give(x);
  return true;
}

// ---- products ----

bool OnnxExporter::emit_product() {
  if (is("linear_rows")) {
    const int64_t order[] = {1, 0};
    const Operand w = node("Transpose", {tensor("weight")}, value("weight").dtype,
                           Attrs().ints("perm", Ints(order)));
    Operand y = node("MatMul", {tensor("input"), w}, w.dtype);
    if (has("bias")) y = node("Add", {y, tensor("bias")}, w.dtype);
    give(y);
    return true;
  }
  if (is("mm") || is("bmm") || is("matmul_stack") || is("mv") || is("dot")) {
    const char* second = has("other")  ? "other"
                         : has("mat2") ? "mat2"
                         : has("vec")  ? "vec"
                                       : "tensor";
    if (!has(second) || !has("self")) return false;
    give(node("MatMul", {tensor("self"), tensor(second)}, value("self").dtype));
    return true;
  }
  if (is("addmm") || is("baddbmm")) {
    const bool batches = is("baddbmm");
    const char* one = batches ? "batch1" : "mat1";
    const char* two = batches ? "batch2" : "mat2";
    const Dtype d = value(one).dtype;
    Operand y = node("MatMul", {tensor(one), tensor(two)}, d);
    if (real("alpha") != 1) y = node("Mul", {y, number(real("alpha"), d)}, d);
    if (real("beta") != 0) {
      Operand x = tensor("self");
      if (real("beta") != 1) x = node("Mul", {x, number(real("beta"), d)}, d);
      y = node("Add", {y, x}, d);
    }
    give(y);
    return true;
  }
  return false;
}

// ---- images ----

int64_t item(Ints list, int64_t i, int64_t missing) {
  if (list.n == 0) return missing;
  return list[list.n == 1 ? 0 : i];
}
// One value for each spatial dimension.
Shape per_dim(Ints list, int64_t n, int64_t missing) {
  Shape out;
  for (int64_t i = 0; i < n; i++) out.push_back(item(list, i, missing));
  return out;
}
Shape twice(const Shape& s) {
  Shape out(s.span());
  out.append(s.span());
  return out;
}

bool OnnxExporter::emit_conv() {
  if (!is("convolution")) return false;
  const int64_t n = value("weight").ndim() - 2;
  Attrs a;
  Shape kernel;
  for (int64_t i = 0; i < n; i++) kernel.push_back(value("weight").sizes[2 + i]);
  a.ints("kernel_shape", kernel);
  a.ints("strides", per_dim(arg("stride").ints, n, 1));
  a.ints("pads", twice(per_dim(arg("padding").ints, n, 0)));
  a.ints("dilations", per_dim(arg("dilation").ints, n, 1));
  a.integer("group", integer("groups"));
  const bool transposed = integer("transposed") != 0;
  if (transposed) a.ints("output_padding", per_dim(arg("output_padding").ints, n, 0));
  give(node(transposed ? "ConvTranspose" : "Conv",
            {tensor("input"), tensor("weight"), tensor("bias")}, value("input").dtype, a));
  return true;
}

bool OnnxExporter::emit_pool() {
  const bool max = is("max_pool2d") || is("max_pool2d_with_indices");
  if (max || is("avg_pool2d")) {
    if (max && at().outs.size() > 1 && at().outs[1] >= 0) {
      bool used = false;
      for (const IrNode& n : g_.nodes)
        for_each_value(n, [&](int32_t v) { used |= v == at().outs[1]; });
      for (const int32_t v : g_.outputs) used |= v == at().outs[1];
      if (used) refuse("positions of the maxima");
    }
    const Operand x = tensor("self");
    const bool lone = value("self").ndim() == 3;
    Attrs a;
    const Shape kernel = per_dim(arg("kernel_size").ints, 2, 1);
    a.ints("kernel_shape", kernel);
    Shape strides;
    for (int64_t i = 0; i < 2; i++) strides.push_back(item(arg("stride").ints, i, kernel[i]));
    a.ints("strides", strides);
    a.ints("pads", twice(per_dim(arg("padding").ints, 2, 0)));
    a.integer("ceil_mode", integer("ceil_mode"));
    if (max) a.ints("dilations", per_dim(arg("dilation").ints, 2, 1));
    else a.integer("count_include_pad", integer("count_include_pad"));
    if (!max && has("divisor_override")) refuse("divisor_override");
    Shape sizes(value("self").sizes.span());
    if (lone) sizes.insert(0, 1);
    Operand y = node(max ? "MaxPool" : "AveragePool", {lone ? reshape(x, sizes) : x}, x.dtype, a);
    if (lone) y = reshape(y, out_value().sizes);
    give(y);
    return true;
  }
  if (is("adaptive_avg_pool2d")) {
    const IrValue &x = value("self"), &y = out_value();
    Shape kernel;
    for (int64_t i = 2; i >= 1; i--) {
      const int64_t in = x.sizes[x.ndim() - i], out = y.sizes[y.ndim() - i];
      if (out == 0 || in % out) refuse("sizes that the output size does not divide");
      kernel.push_back(in / out);
    }
    if (x.ndim() != 4) refuse("an image without a batch");
    Attrs a;
    a.ints("kernel_shape", kernel).ints("strides", kernel);
    give(node("AveragePool", {tensor("self")}, x.dtype, a));
    return true;
  }
  return false;
}

// The weights of dimension d of an image as a matrix [out][in].
Operand OnnxExporter::resize_weights(int d) {
  const Dtype dtype = value("self").dtype;
  const int64_t in = value("self").sizes[2 + d];
  const int64_t out = out_value().sizes[2 + d];
  const bool align = integer("align") != 0;
  const double scale = resize_scale(in, out, real(d ? "scale_w" : "scale_h"), align, false);
  const ResizeAxis a = merged_axis(integer("mode"), align, in, out, scale);
  const int64_t sizes[] = {out, in};
  if (in > kMaxResizeWeights / out) refuse("an image of this size");
  Bytes table;
  table.resize(out * in * item_size(dtype), 0);
  for (int64_t o = 0; o < out; o++) {
    const ResizeWindow w = resize_window(a, o);
    const double total = resize_total(a, w);
    for (int64_t k = 0; k < w.count; k++) {
      const double weight = resize_weight(a, w, k) / total;
      const int64_t at = o * in + w.first + k;
      const float single = float(weight);
      if (dtype == Dtype::kF64) memcpy(table.data() + at * 8, &weight, 8);
      else memcpy(table.data() + at * 4, &single, 4);
    }
  }
  return initializer(dtype, Ints(sizes), table.data(), table.size());
}

// Products with the weights of both dimensions.
bool OnnxExporter::emit_resize() {
  if (!is("upsample2d")) return false;
  const Dtype dtype = value("self").dtype;
  const int64_t mode = integer("mode");
  if (mode != kResizeLinear && mode < kResizeCubic) refuse("a mode without weights");
  if (dtype != Dtype::kF32 && dtype != Dtype::kF64) refuse("a dtype other than float32, float64");
  const int64_t order[] = {1, 0};
  const Operand columns =
      node("Transpose", {resize_weights(1)}, dtype, Attrs().ints("perm", Ints(order)));
  const Operand lines = node("MatMul", {tensor("self"), columns}, dtype);
  give(node("MatMul", {resize_weights(0), lines}, dtype));
  return true;
}

// ---- rows ----

bool OnnxExporter::emit_rows() {
  const bool log = is("log_softmax") || is("native_log_softmax");
  if (log || is("softmax") || is("native_softmax")) {
    const Dtype d = out_value().dtype;
    if (out_value().ndim() == 0) refuse("a number");
    give(node(log ? "LogSoftmax" : "Softmax", {cast(tensor("self"), d)}, d,
              Attrs().integer("axis", integer("dim"))));
    return true;
  }
  if (is("native_layer_norm")) {
    const Dtype d = value("input").dtype;
    const Ints shape = arg("normalized_shape").ints;
    Operand scale = tensor("weight");
    if (scale.id < 0) scale = node("Expand", {number(1, d), constant(shape)}, d);
    give(node("LayerNormalization", {tensor("input"), scale, tensor("bias")}, d,
              Attrs().integer("axis", -shape.n).real("epsilon", real("eps"))));
    return true;
  }
  if (is("native_rms_norm")) {
    const Dtype d = value("input").dtype;
    const Dtype wide = d == Dtype::kF64 ? d : Dtype::kF32;
    const Operand x = cast(tensor("input"), wide);
    Shape axes;
    for (int64_t i = -arg("normalized_shape").ints.size(); i < 0; i++) axes.push_back(i);
    const Operand squares = node("ReduceMean", {node("Mul", {x, x}, wide), constant(axes)}, wide,
                                 Attrs().integer("keepdims", 1));
    const Operand rms =
        node("Sqrt", {node("Add", {squares, number(real("eps"), wide)}, wide)}, wide);
    Operand y = node("Div", {x, rms}, wide);
    if (has("weight")) y = node("Mul", {y, cast(tensor("weight"), wide)}, wide);
    give(cast(y, d));
    return true;
  }
  if (is("native_group_norm")) {
    const IrValue& x = value("input");
    const Dtype d = x.dtype;
    if (x.numel() == 0) refuse("an input without elements");
    // -1: the first size follows from the others, also where the number of images is dynamic.
    const int64_t rows[2] = {-1, x.numel() / (x.sizes[0] * integer("num_groups"))};
    Shape image(x.sizes);
    image[0] = -1;
    const Operand scale = node("Expand", {number(1, d), constant(Ints(&rows[1], 1))}, d);
    Operand y = node("LayerNormalization", {reshape(tensor("input"), rows), scale, Operand()}, d,
                     Attrs().integer("axis", -1).real("epsilon", real("eps")));
    y = reshape(y, image);
    Shape column;
    column.resize(x.ndim() - 1, 1);
    column[0] = x.sizes[1];
    if (has("weight")) y = node("Mul", {y, reshape(cast(tensor("weight"), d), column)}, d);
    if (has("bias")) y = node("Add", {y, reshape(cast(tensor("bias"), d), column)}, d);
    give(y);
    return true;
  }
  if (is("native_batch_norm")) {
    if (integer("training")) refuse("training: export the model in eval mode");
    const Dtype d = value("input").dtype;
    const Ints channels(&value("input").sizes[1], 1);
    Operand scale = tensor("weight"), bias = tensor("bias");
    if (scale.id < 0) scale = node("Expand", {number(1, d), constant(channels)}, d);
    if (bias.id < 0) bias = node("Expand", {number(0, d), constant(channels)}, d);
    give(node("BatchNormalization",
              {tensor("input"), scale, bias, cast(tensor("running_mean"), d),
               cast(tensor("running_var"), d)},
              d, Attrs().real("epsilon", real("eps"))));
    return true;
  }
  if (is("cumsum")) {
    const Dtype d = out_value().dtype;
    const int64_t dim = integer("dim");
    if (value("self").ndim() == 0) refuse("a number");
    give(node("CumSum", {cast(tensor("self"), d), constant(Ints(&dim, 1), 0)}, d));
    return true;
  }
  return false;
}

bool OnnxExporter::emit_attention() {
  if (!is("native_attention")) return false;
  if (real("dropout_p") != 0) refuse("dropout: export the model in eval mode");
  const IrValue &q = value("query"), &k = value("key");
  const Dtype d = q.dtype;
  if (q.sizes[1] != k.sizes[1]) refuse("groups of heads");
  const int64_t order[] = {0, 1, 3, 2};
  const Operand keys = node("Transpose", {tensor("key")}, d, Attrs().ints("perm", Ints(order)));
  Operand scores = node("MatMul", {tensor("query"), keys}, d);
  scores = node("Mul", {scores, number(real("scale"), d)}, d);
  if (has("mask")) {
    Operand mask = tensor("mask");
    if (mask.dtype == Dtype::kBool) mask = node("Where", {mask, number(0, d), number(-kInf, d)}, d);
    scores = node("Add", {scores, cast(mask, d)}, d);
  }
  if (integer("causal")) {
    const int64_t m = q.sizes[2], l = k.sizes[2], sizes[] = {m, l};
    Bytes table;
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < l; j++) table.push_back(j <= i);
    const Operand seen = initializer(Dtype::kBool, Ints(sizes), table.data(), table.size());
    scores = node("Where", {seen, scores, number(-kInf, d)}, d);
  }
  const Operand weights = node("Softmax", {scores}, d, Attrs().integer("axis", -1));
  give(node("MatMul", {weights, tensor("value")}, d));
  return true;
}

// ---- recurrent layers ----

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
    const int32_t v = n.args[0].values[0], from = gates_of(v);
    if (from >= 0 && uses[v] == 1) skip_[from] = true;
  }
}

// The rows of all gates in another order: ONNX has them as i o f c and as z r h.
Operand OnnxExporter::by_gates(int32_t v, Ints order) {
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
Operand OnnxExporter::last_rows_only(Operand rows, int64_t total, bool reverse) {
  const Dtype d = rows.dtype;
  const IrValue& v = out_value(1);
  const int64_t missing[] = {total, v.sizes[1]};
  if (total == 0) return rows;
  const Operand none = node("Expand", {number(0, d), constant(Ints(missing))}, d);
  const Attrs axis = Attrs().integer("axis", 0);
  return reverse ? node("Concat", {rows, none}, d, axis) : node("Concat", {none, rows}, d, axis);
}

bool OnnxExporter::emit_recurrent() {
  if (!is("recurrent_layer")) return false;
  static constexpr int64_t kLstmOrder[] = {0, 3, 1, 2}, kGruOrder[] = {1, 0, 2}, kOne[] = {0};
  const int64_t mode = integer("mode");
  const bool lstm = mode == kLstm, reverse = integer("reverse");
  Ints order(kOne);
  if (lstm) order = Ints(kLstmOrder);
  if (mode == kGru) order = Ints(kGruOrder);
  const Ints batches = arg("batch_sizes").ints;
  for (const int64_t n : batches)
    if (n != batches[0]) refuse("packed sequences");
  if (has("w_hr")) refuse("a projection");
  const int64_t steps = batches.n, rows = batches[0], total = steps * rows;
  if (total == 0) refuse("no sequences");
  const IrValue& w_hh = value("w_hh");
  const Dtype d = w_hh.dtype;
  const int64_t hidden = w_hh.sizes[1], width = order.n * hidden;
  const int32_t gates = arg("gates").values[0];
  const int64_t end_row = reverse ? 0 : total - rows;  // row of the step that comes last
  if (lstm && at().outs[1] >= 0 && !reads_only(at().outs[1], end_row, end_row + rows))
    refuse("cells of all steps");
  Operand x, w, b_ih, b_hh;
  if (const int32_t linear = gates_of(gates); linear >= 0 && skip_[linear]) {
    const SmallVec<IrArg, 4>& args = g_.nodes[linear].args;
    x = of_value(args[0].values[0]);
    w = by_gates(args[1].values[0], order);
    if (args[2].kind == Value::kTensor) b_ih = by_gates(args[2].values[0], order);
    const int64_t depth = g_.values[args[1].values[0]].sizes[1];
    const int64_t by_step[] = {steps, rows, depth}, one[] = {1, width, depth};
    x = reshape(x, Ints(by_step));
    w = reshape(w, Ints(one));
  } else {
    refuse("gates that no linear layer computes");
  }
  const int64_t matrix[] = {1, width, hidden}, vector[] = {width}, both[] = {1, 2 * width};
  const int64_t state[] = {1, rows, hidden}, flat[] = {total, hidden}, last[] = {rows, hidden};
  const Operand r = reshape(by_gates(arg("w_hh").values[0], order), Ints(matrix));
  if (has("b_hh")) b_hh = by_gates(arg("b_hh").values[0], order);
  Operand b;
  if (b_ih.id >= 0 || b_hh.id >= 0) {
    // One of them may be missing; the node wants both.
    for (Operand* half : {&b_ih, &b_hh})
      if (half->id < 0) *half = node("Expand", {number(0, d), constant(Ints(vector))}, d);
    b = node("Concat", {b_ih, b_hh}, d, Attrs().integer("axis", 0));
    b = reshape(b, Ints(both));
  }
  Attrs attrs;
  attrs.integer("hidden_size", hidden).text("direction", reverse ? "reverse" : "forward");
  if (mode == kGru) attrs.integer("linear_before_reset", 1);
  static constexpr const char* kRelu[] = {"Relu"};
  if (mode == kRnnRelu) attrs.texts("activations", {kRelu, 1});
  const Operand h0 = reshape(tensor("h0"), Ints(state));
  Operand c0;
  if (lstm) c0 = reshape(tensor("c0"), Ints(state));
  const char* type = "RNN";
  if (lstm) type = "LSTM";
  if (mode == kGru) type = "GRU";
  Operand outs[3] = {new_tensor(), new_tensor(), new_tensor()};
  for (Operand& y : outs) y.dtype = d;
  node_to(type, {x, w, r, b, Operand(), h0, c0}, Span<const Operand>(outs, lstm ? 3 : 2), attrs);
  give(reshape(outs[0], Ints(flat)));
  if (lstm && at().outs[1] >= 0)
    give(last_rows_only(reshape(outs[2], Ints(last)), total - rows, reverse), 1);
  return true;
}

// ---- reductions ----

bool OnnxExporter::emit_reduce() {
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
  const char* type = nullptr;
  for (const auto& f : kSame)
    if (is(f.tt)) type = f.onnx;
  const bool position = is("argmax") || is("argmin");
  if (!type && !position) return false;
  Dtype d = out_value().dtype;
  Operand x = tensor("self");
  if (position) {
    Attrs a;
    const bool whole = !has("dim");
    const int64_t all = value("self").numel();
    if (whole) x = reshape(x, Ints(&all, 1));
    a.integer("axis", whole ? 0 : integer("dim"));
    a.integer("keepdims", 0);
    Operand y = node(is("argmax") ? "ArgMax" : "ArgMin", {x}, Dtype::kI64, a);
    give(reshape(y, out_value().sizes));
    return true;
  }
  if (d == Dtype::kBool) {
    x = cast(cast(x, Dtype::kBool), Dtype::kI32);
    d = Dtype::kI32;
  }
  x = cast(x, d);
  Shape axes;
  if (find_arg("dim") && arg("dim").kind == Value::kInts) axes = Shape(arg("dim").ints.span());
  else if (find_arg("dim") && arg("dim").kind == Value::kInt) axes.push_back(integer("dim"));
  if (value("self").ndim() == 0) axes.clear();
  const Operand dims = axes.empty() ? Operand() : constant(axes);
  const bool keeps = find_arg("keepdim") && integer("keepdim");
  give(node(type, {x, dims}, d, Attrs().integer("keepdims", keeps)));
  return true;
}

// ---- arrangement ----

bool OnnxExporter::emit_arrange() {
  const Dtype d = at().outs.empty() || at().outs[0] < 0 ? Dtype::kNone : out_value().dtype;
  if (is("cat")) {
    SmallVec<Operand, 8> parts;
    for (const int32_t v : arg("tensors").values)
      if (g_.values[v].ndim() == out_value().ndim()) parts.push_back(cast(of_value(v), d));
    Operand y = parts[0];
    for (int64_t i = 1; i < parts.size(); i++)
      y = node("Concat", {y, parts[i]}, d, Attrs().integer("axis", integer("dim")));
    give(y);
    return true;
  }
  if (is("embedding") || is("index_select")) {
    const bool table = is("embedding");
    const int64_t axis = table ? 0 : integer("dim");
    if (!table && value("self").ndim() == 0) refuse("a number");
    const char* positions = table ? "indices" : "index";
    Operand index = tensor(positions);
    const int64_t one = 1;
    if (!table && value(positions).ndim() == 0) index = reshape(index, Ints(&one, 1));
    give(node("Gather", {tensor(table ? "weight" : "self"), index}, d,
              Attrs().integer("axis", axis)));
    return true;
  }
  if (is("gather")) {
    if (value("self").ndim() == 0) refuse("a number");
    const IrValue &x = value("self"), &index = value("index");
    const int64_t dim = integer("dim") < 0 ? integer("dim") + x.ndim() : integer("dim");
    for (int64_t i = 0; i < x.ndim(); i++)
      if (i != dim && x.sizes[i] != index.sizes[i]) refuse("an index that is smaller than self");
    give(
        node("GatherElements", {tensor("self"), tensor("index")}, d, Attrs().integer("axis", dim)));
    return true;
  }
  if (is("tril") || is("triu")) {
    const int64_t k = integer("diagonal");
    give(node("Trilu", {tensor("self"), constant(Ints(&k, 1), 0)}, d,
              Attrs().integer("upper", is("triu"))));
    return true;
  }
  if (is("flip")) {
    SmallVec<int64_t, 8> starts, ends, steps;
    for (int64_t i = 0; i < arg("dims").ints.size(); i++) {
      starts.push_back(-1);
      ends.push_back(INT64_MIN);
      steps.push_back(-1);
    }
    if (starts.empty()) {
      give(node("Identity", {tensor("self")}, d));
      return true;
    }
    give(node("Slice",
              {tensor("self"), constant(starts), constant(ends), constant(arg("dims").ints),
               constant(steps)},
              d));
    return true;
  }
  if (is("constant_pad_nd")) {
    const int64_t n = value("self").ndim();
    const Ints pad = arg("pad").ints;
    Shape pads;
    pads.resize(2 * n);
    for (int64_t i = 0; i < pad.n / 2; i++) {
      pads[n - 1 - i] = pad[2 * i];
      pads[2 * n - 1 - i] = pad[2 * i + 1];
    }
    give(node("Pad", {tensor("self"), constant(pads), number(real("value"), d)}, d));
    return true;
  }
  if (is("topk")) {
    const int64_t k = integer("k");
    Operand outs[2] = {new_tensor(), new_tensor()};
    outs[0].dtype = d;
    outs[1].dtype = Dtype::kI64;
    if (value("self").ndim() == 0) refuse("a number");
    node_to("TopK", {tensor("self"), constant(Ints(&k, 1))}, Span<const Operand>(outs, 2),
            Attrs()
                .integer("axis", integer("dim"))
                .integer("largest", integer("largest"))
                .integer("sorted", 1));
    give(outs[0], 0);
    give(outs[1], 1);
    return true;
  }
  return false;
}

bool OnnxExporter::emit_copy() {
  for (const char* name : {"clone", "contiguous", "to_dtype", "positive", "conj_physical"})
    if (is(name)) {
      const Operand x = tensor("self");
      give(x.dtype == out_value().dtype ? node("Identity", {x}, x.dtype) : x);
      return true;
    }
  const bool written = !at().outs.empty() && at().outs[0] >= 0;
  if (!written) return false;
  const auto filled = [&](double v) {
    give(node("Expand", {number(v, out_value().dtype), constant(out_value().sizes)},
              out_value().dtype));
    return true;
  };
  if (is("copy_")) {
    give(node("Expand", {cast(tensor("src"), out_value().dtype), constant(out_value().sizes)},
              out_value().dtype));
    return true;
  }
  if (is("zeros") || is("zeros_like") || is("zero_")) return filled(0);
  if (is("ones") || is("ones_like")) return filled(1);
  if (is("full") || is("full_like")) return filled(real("fill_value"));
  if (is("fill_") || is("fill")) return filled(real("value"));
  if (is("arange")) {
    const IrValue& y = out_value();
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

void OnnxExporter::emit_node() {
  for (const int32_t v : at().outs)
    if (v >= 0 && g_.storages[g_.values[v].storage].role == IrRole::kState) refuse("writes state");
  for (int64_t i = 0; i < at().outs.size(); i++)
    if (at().outs[i] >= 0 && !onnx_type(out_value(i).dtype)) refuse("ONNX has no such dtype");
  if (emit_views() || emit_elementwise() || emit_product() || emit_conv() || emit_pool() ||
      emit_resize() || emit_rows() || emit_attention() || emit_recurrent() || emit_reduce() ||
      emit_arrange() || emit_copy())
    return;
  refuse("has no translation to ONNX");
}

// ---- the model ----

// The size of the dynamic dimension, as a node.
void OnnxExporter::find_dynamic_size() {
  const int64_t d = dim_.dim;
  const Operand shape = {new_tensor().id, Dtype::kI64};
  dynamic_size_ = {new_tensor().id, Dtype::kI64};
  add_node("Shape", {of_[g_.inputs[dim_.input]]}, Span<const Operand>(&shape, 1), Attrs());
  add_node("Gather", {shape, plain(Ints(&d, 1), 1)}, Span<const Operand>(&dynamic_size_, 1),
           Attrs());
}

void OnnxExporter::value_info(Proto& to, int field, const char* prefix, int64_t i, const IrValue& v,
                              const IrValue* other) {
  Proto shape, type, tensor, info;
  if (!onnx_type(v.dtype)) fail(TT_NOT_IMPLEMENTED, "ONNX models have no {}", fmt(v.dtype));
  for (int64_t d = 0; d < v.ndim(); d++) {
    Proto dim;
    const bool changes = other && other->sizes[d] != v.sizes[d];
    const bool is_dynamic = changes && v.sizes[d] == dim_.a && other->sizes[d] == dim_.b;
    if (changes && !is_dynamic && field == 11)
      fail(TT_NOT_IMPLEMENTED, "input {} has two dynamic sizes", i);
    if (is_dynamic) dim.text(2, dim_name_);
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

void OnnxExporter::write(Bytes& out) {
  of_.resize(g_.values.size());
  if (other_) {
    dim_ = dynamic_dim(g_, *other_);
    Bytes unused;
    OnnxExporter second(*other_, nullptr, "");
    second.write(unused);
    wanted_ = std::move(second.trace);
    for (int64_t i = 0; i < g_.outputs.size(); i++)
      if (g_.values[g_.outputs[i]].ndim() != other_->values[other_->outputs[i]].ndim())
        fail(TT_NOT_IMPLEMENTED, "output {} has other dimensions for the other size", i);
  }
  Proto graph, ends;
  for (int64_t i = 0; i < g_.inputs.size(); i++) {
    const IrValue& v = g_.values[g_.inputs[i]];
    Operand t = new_tensor();
    t.dtype = v.dtype;
    Proto n;
    Text from("in"), to;
    from.add(i);
    add_name(to, t);
    n.text(1, from.c_str());
    n.text(2, to.c_str());
    n.text(4, "Identity");
    nodes_.message(1, n);
    value_info(ends, 11, "in", i, v, other_ ? &other_->values[other_->inputs[i]] : nullptr);
    of_[g_.inputs[i]] = t;
  }
  find_gates();
  if (other_) find_dynamic_size();
  for (at_ = 0; at_ < g_.nodes.size(); at_++)
    if (!skip_[at_]) emit_node();
  at_ = int32_t(g_.nodes.size()) - 1;
  for (int64_t i = 0; i < g_.outputs.size(); i++) {
    const Operand t = of_value(g_.outputs[i]);
    Proto n;
    Text from, to("out");
    add_name(from, t);
    to.add(i);
    n.text(1, from.c_str());
    n.text(2, to.c_str());
    n.text(4, "Identity");
    nodes_.message(1, n);
    value_info(ends, 12, "out", i, g_.values[g_.outputs[i]],
               other_ ? &other_->values[other_->outputs[i]] : nullptr);
  }
  if (other_ && trace.items.size() != wanted_.items.size())
    fail(TT_NOT_IMPLEMENTED, "the operators depend on the dynamic size");
  graph.append(nodes_);
  graph.text(2, "tt");
  graph.append(initializers_);
  graph.append(ends);
  Proto opset, model;
  opset.text(1, "");
  opset.integer(2, kOpset);
  model.integer(1, kIrVersion);
  model.text(2, "tt");
  model.message(8, opset);
  model.message(7, graph);
  out = model.all();
}

}  // namespace

void export_onnx(const Graph& g, const Graph* other, const char* dim, Bytes& out) {
  OnnxExporter(g, other, dim).write(out);
}

}  // namespace TT_NS
