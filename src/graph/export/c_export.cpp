#include "graph/export/c_export.h"

#include "base/arith.h"
#include "core/shape.h"
#include "graph/export/c_templates.h"
#include "graph/gen/c_expressions.h"
#include "plan/quant_plan.h"
#include "plan/recurrent_plan.h"
#include "plan/resize_build.h"

namespace TT_NS {

namespace {

constexpr int64_t kAlign = 16;
constexpr int64_t kMaxResized = 1 << 24;  // floats number the elements of a row

// One storage that nodes make: its place in the arena while it is in use.
struct Place {
  int64_t offset = -1;
  int64_t bytes = 0;
  int32_t first = -1, last = -1;  // nodes
};

const char* c_type(Dtype d) {
  switch (d) {
    case Dtype::kBool: return "unsigned char";
    case Dtype::kU8: return "uint8_t";
    case Dtype::kI8: return "int8_t";
    case Dtype::kI16: return "int16_t";
    case Dtype::kI32: return "int32_t";
    case Dtype::kI64: return "int64_t";
    case Dtype::kF32: return "float";
    default: return nullptr;
  }
}

bool is_contiguous(const IrValue& v) {
  int64_t step = 1;
  for (int64_t i = v.ndim() - 1; i >= 0; i--) {
    if (v.sizes[i] != 1 && v.strides[i] != step) return false;
    step *= v.sizes[i];
  }
  return true;
}

bool is_name(const char* s) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (!letter(*s)) return false;
  for (; *s; s++)
    if (!letter(*s) && !(*s >= '0' && *s <= '9')) return false;
  return true;
}

// The expression of an operator or of its variant in place or `_into`.
const CExpression* find_expression(const char* op) {
  for (const CExpression& e : kCExpressions) {
    const size_t n = strlen(e.op);
    const char* rest = op + n;
    if (strncmp(e.op, op, n) == 0 && (!*rest || !strcmp(rest, "_") || !strcmp(rest, "_into")))
      return &e;
  }
  return nullptr;
}

class CExporter {
 public:
  CExporter(const Graph& g, const char* name, bool blob) : g_(g), name_(name), blob_(blob) {}
  void write(CFiles& files);

 private:
  const IrValue& value(int32_t v) const { return g_.values[v]; }
  const IrNode& node() const { return g_.nodes[at_]; }
  const char* op() const { return node().op->name(); }
  bool is(const char* name) const { return strcmp(op(), name) == 0; }
  const IrArg& arg(const char* name) const;
  int32_t tensor(const char* name) const;  // its value, -1 if it is absent
  bool has_arg(const char* name) const;
  double number(const char* name) const;
  int64_t integer(const char* name) const { return int64_t(number(name)); }
  // Item i of a list with one item per spatial dim, or one for all; `missing` if it is empty.
  int64_t item(const char* name, int64_t i, int64_t missing) const;

  void check();
  void place_storages();
  int64_t node_scratch(int64_t bytes);
  void emit_node();
  bool emit_elementwise();
  void emit_copy(int32_t from, int32_t to, int64_t to_offset = 0);
  void emit_fill(int32_t to, double v);
  void emit_linear();
  void emit_matmul();
  void emit_conv();
  void add_conv_sizes(Text& call, bool transposed);
  void emit_recurrent();
  void add_state(Text& call, int32_t from);
  void emit_quantize(bool back);
  void emit_fake_quantize();
  void add_grid(const char* scale, const char* zero, int64_t axis, bool inverse);
  void emit_quantized_linear();
  void emit_quantized_conv();
  void emit_int_mm();
  void emit_quantize_blocks();
  void emit_dequantize_blocks();
  void emit_blockwise_linear();
  void add_per_item(Text& call, const char* name, Dtype dtype);
  void begin_pool(const char* function);
  void emit_pool(bool max);
  void emit_adaptive_pool(bool largest);
  ResizeAxis axis(int d) const;
  void emit_resize();
  void add_windows(int d, const char* name);
  void add_places();
  bool has_places() const;
  void emit_softmax(const char* function);
  void emit_layer_norm();
  void emit_rms_norm();
  void emit_group_norm();
  void emit_batch_norm();
  void emit_attention();
  void emit_reduce();
  void emit_cat();
  void emit_rows(const char* table, const char* indices);
  void emit_gather(int64_t dim, const char* indices);
  void emit_floor_division();
  bool only_views() const;

  // A call's argument: the address of a value, NULL if it is absent.
  void add_address(Text& out, int32_t v, bool contiguous = false, Dtype dtype = Dtype::kF32);
  void add_dense_copy(Text& out, int32_t v, Dtype dtype);
  void add_pointer(Text& out, int32_t v, int64_t more_offset = 0);
  void add_list(Text& out, Span<const int64_t> list);
  void add_float(Text& out, double v);
  void add_scalar(Text& out, const IrArg& a, bool as_float);
  void add_constant(Text& out, int32_t storage);
  void add_constants(CFiles& files);
  void add_parameters(Text& out, bool types, bool some);
  void add_signature(Text& out, bool arena);
  enum Use : uint8_t { kUnused, kOnce = 1, kForU8 = 2, kForI8 = 4 };
  void use(const char* name, uint8_t how = kOnce);
  void begin_bytes_call(Text& call, const char* name, Dtype dtype);
  void add_templates(Text& out);
  void open_loops(Ints sizes);
  void close_loops(int64_t n);
  void add_index(Text& out, Ints sizes, Ints strides, int64_t n_loops);
  [[noreturn]] void refuse(const char* why);

  const Graph& g_;
  const char* name_;
  const bool blob_;
  int64_t blob_bytes_ = 0;
  int32_t at_ = 0;
  SmallVec<Place, 8> places_;
  SmallVec<int32_t, 8> out_of_;  // storage -> the output that is computed in place, or -1
  SmallVec<uint8_t, 16> used_;
  int64_t arena_ = 0, scratch_ = 0, max_scratch_ = 0;
  Text body_;
};

void CExporter::refuse(const char* why) {
  fail(TT_NOT_IMPLEMENTED, "node {}, {}: {}", int64_t(at_), op(), why);
}

const IrArg& CExporter::arg(const char* name) const {
  const OpSchema& s = *node().op->schema;
  for (int32_t i = 0; i < s.n_args; i++)
    if (strcmp(s.args[i].name, name) == 0) return node().args[i];
  fail(TT_INTERNAL, "{} has no argument {}", op(), name);
}
bool CExporter::has_arg(const char* name) const { return arg(name).kind != Value::kNone; }
int32_t CExporter::tensor(const char* name) const {
  const IrArg& a = arg(name);
  return a.kind == Value::kTensor ? a.values[0] : -1;
}
double CExporter::number(const char* name) const {
  const IrArg& a = arg(name);
  if (a.kind == Value::kFloat) return a.f;
  if (a.kind == Value::kScalar) return a.scalar.real();
  return double(a.i);
}
int64_t CExporter::item(const char* name, int64_t i, int64_t missing) const {
  const IrArg& a = arg(name);
  if (a.kind == Value::kInt) return a.i;
  if (a.ints.empty()) return missing;
  return a.ints[a.ints.size() == 1 ? 0 : i];
}

// ---- text ----

void CExporter::use(const char* name, uint8_t how) {
  for (int64_t i = 0; i < kNumCTemplates; i++)
    if (strcmp(kCTemplates[i].name, name) == 0) used_[i] |= how;
}
// Begins a call of a function that there is for both dtypes of bytes.
void CExporter::begin_bytes_call(Text& call, const char* name, Dtype dtype) {
  const bool is_unsigned = dtype == Dtype::kU8;
  use(name, is_unsigned ? kForU8 : kForI8);
  call.add("  ").add(name).add(is_unsigned ? "_uint8(" : "_int8(");
}
void CExporter::add_templates(Text& out) {
  constexpr const char* kNames[] = {"", "uint8", "int8"};  // by bit of Use
  for (int64_t i = 0; i < kNumCTemplates; i++)
    for (int32_t how = 0; how < 3; how++) {
      if (!(used_[i] >> how & 1)) continue;
      for (const char* at = kCTemplates[i].text; *at;) {
        const char* mark = strchr(at, '$');
        const int64_t n = mark ? mark - at : int64_t(strlen(at));
        out.add({at, n});
        if (mark) out.add(kNames[how]);
        at += n + (mark ? 2 : 0);
      }
    }
}
void CExporter::add_float(Text& out, double v) {
  if (v != v) {
    out.add("NAN");
  } else if (v - v != 0) {
    out.add(v > 0 ? "INFINITY" : "-INFINITY");
  } else {
    char digits[32];
    out.add({digits, format_double(digits, double(float(v)), true)}).add("f");
  }
}
void CExporter::add_list(Text& out, Span<const int64_t> list) {
  out.add("(const long[]){");
  for (int64_t i = 0; i < list.n; i++) out.add(i ? ", " : "").add(list[i]);
  out.add("}");
}
void CExporter::add_scalar(Text& out, const IrArg& a, bool as_float) {
  double v = 0;
  if (a.kind == Value::kScalar) {
    if (a.scalar.is_complex()) refuse("a complex number");
    if (!as_float && (a.scalar.is_int() || a.scalar.is_bool())) {
      out.add(a.scalar.i);
      return;
    }
    v = a.scalar.real();
  } else if (a.kind == Value::kFloat) {
    v = a.f;
  } else if (as_float) {
    v = double(a.i);
  } else {
    out.add(a.i);
    return;
  }
  add_float(out, v);
}

void CExporter::add_pointer(Text& out, int32_t v, int64_t more_offset) {
  const IrValue& x = value(v);
  const char* type = c_type(x.dtype);
  if (!type) refuse("a dtype other than float32, int8 to int64, uint8 and bool");
  const IrStorage& s = g_.storages[x.storage];
  const int64_t offset = x.offset / item_size(x.dtype) + more_offset;
  out.add("(");
  if (s.role == IrRole::kInput) {
    int64_t n = 0;
    while (value(g_.inputs[n]).storage != x.storage) n++;
    out.add("in").add(n);
  } else if (s.role != IrRole::kMade && blob_) {
    out.add("(const ").add(type).add(" *)(weights + ").add(places_[x.storage].offset).add(")");
  } else if (s.role != IrRole::kMade) {
    out.add("(const ").add(type).add(" *)w").add(int64_t(x.storage));
  } else if (out_of_[x.storage] >= 0) {
    out.add("out").add(int64_t(out_of_[x.storage]));
  } else {
    out.add("(").add(type).add(" *)(arena + ").add(places_[x.storage].offset).add(")");
  }
  out.add(" + ").add(offset).add(")");
}

int64_t CExporter::node_scratch(int64_t bytes) {
  const int64_t offset = scratch_;
  scratch_ += round_up(bytes, kAlign);
  max_scratch_ = max(max_scratch_, scratch_);
  return offset;
}

// A copy of v without gaps in scratch memory; its address goes to out.
void CExporter::add_dense_copy(Text& out, int32_t v, Dtype dtype) {
  const IrValue& x = value(v);
  const char* type = c_type(dtype);
  const int64_t offset = node_scratch(x.numel() * item_size(dtype));
  open_loops(x.sizes);
  body_.add("((").add(type).add(" *)(scratch + ").add(offset).add("))[");
  Shape dense = x.sizes;
  int64_t step = 1;
  for (int64_t i = x.ndim() - 1; i >= 0; i--) {
    dense[i] = step;
    step *= x.sizes[i];
  }
  add_index(body_, x.sizes, dense, x.ndim());
  body_.add("] = (").add(type).add(")");
  add_pointer(body_, v);
  body_.add("[");
  add_index(body_, x.sizes, x.strides, x.ndim());
  body_.add("];\n");
  close_loops(x.ndim());
  out.add("(").add(type).add(" *)(scratch + ").add(offset).add(")");
}

void CExporter::add_address(Text& out, int32_t v, bool contiguous, Dtype dtype) {
  if (v < 0) {
    out.add("NULL");
    return;
  }
  if (value(v).dtype != dtype) {
    if (dtype == Dtype::kF32) refuse("an argument that is not float32");
    refuse("an argument of another dtype");
  }
  if (!contiguous || is_contiguous(value(v))) add_pointer(out, v);
  else add_dense_copy(out, v, dtype);
}

void CExporter::open_loops(Ints sizes) {
  for (int64_t i = 0; i < sizes.n; i++)
    body_.add("  for (long i")
        .add(i)
        .add(" = 0; i")
        .add(i)
        .add(" < ")
        .add(sizes[i])
        .add("; i")
        .add(i)
        .add("++) {\n");
  body_.add("    ");
}
void CExporter::close_loops(int64_t n) {
  body_.add("  ");
  for (int64_t i = 0; i < n; i++) body_.add("}");
  body_.add("\n");
}
// The index of an element, aligned at the last dim; dims of size 1 are broadcast.
void CExporter::add_index(Text& out, Ints sizes, Ints strides, int64_t n_loops) {
  bool some = false;
  for (int64_t i = 0; i < sizes.n; i++) {
    if (sizes[i] == 1 || strides[i] == 0) continue;
    out.add(some ? " + i" : "i").add(i + n_loops - sizes.n).add(" * ").add(strides[i]);
    some = true;
  }
  if (!some) out.add("0");
}

// ---- the arena ----

void CExporter::check() {
  for (const IrStorage& s : g_.storages)
    if (s.role == IrRole::kState)
      fail(TT_NOT_IMPLEMENTED,
           "the graph writes memory from outside ({}): only a graph without state "
           "can be exported to C",
           s.name.empty() ? "without a name" : s.name.c_str());
  for (const int32_t v : g_.inputs)
    if (!is_contiguous(value(v)) || value(v).offset != 0)
      fail(TT_NOT_IMPLEMENTED, "an input is not contiguous");
}

void CExporter::place_storages() {
  const int64_t n = g_.storages.size();
  const int32_t n_nodes = int32_t(g_.nodes.size());
  for (int64_t i = 0; i < n; i++) {
    places_.push_back(Place());
    places_[i].bytes = round_up(max(g_.storages[i].bytes, int64_t(1)), kAlign);
    out_of_.push_back(-1);
  }
  for (at_ = 0; at_ < n_nodes; at_++) {
    const auto touch = [&](int32_t v) {
      Place& p = places_[value(v).storage];
      if (p.first < 0) p.first = at_;
      p.last = at_;
    };
    for_each_value(node(), touch);
    const bool layer = is("recurrent_layer");  // what it saves for gradients is not made
    for (int64_t k = 0; k < node().outs.size(); k++)
      if (node().outs[k] >= 0 && !(layer && k == 2)) touch(node().outs[k]);
  }
  for (int64_t k = 0; k < g_.outputs.size(); k++) {
    const IrValue& v = value(g_.outputs[k]);
    const bool whole = is_contiguous(v) && v.offset == 0 &&
                       g_.storages[v.storage].bytes == v.numel() * item_size(v.dtype);
    const bool made = g_.storages[v.storage].role == IrRole::kMade;
    if (whole && made && out_of_[v.storage] < 0) out_of_[v.storage] = int32_t(k);
    places_[v.storage].last = n_nodes;
  }
  for (int64_t i = 0; blob_ && i < n; i++) {
    const IrRole role = g_.storages[i].role;
    if (role == IrRole::kMade || role == IrRole::kInput || places_[i].last < 0) continue;
    places_[i].offset = blob_bytes_;
    blob_bytes_ += places_[i].bytes;
  }
  // The largest first, each at the lowest place that is free while it is in use.
  for (;;) {
    int32_t next = -1;
    for (int32_t i = 0; i < n; i++) {
      const bool wanted = g_.storages[i].role == IrRole::kMade && places_[i].first >= 0 &&
                          out_of_[i] < 0 && places_[i].offset < 0;
      if (wanted && (next < 0 || places_[i].bytes > places_[next].bytes)) next = i;
    }
    if (next < 0) return;
    Place& p = places_[next];
    int64_t offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (const Place& o : places_) {
        const bool made = g_.storages[&o - places_.data()].role == IrRole::kMade;
        const bool together = made && o.offset >= 0 && o.first <= p.last && p.first <= o.last;
        if (together && o.offset < offset + p.bytes && offset < o.offset + o.bytes) {
          offset = o.offset + o.bytes;
          moved = true;
        }
      }
    }
    p.offset = offset;
    arena_ = max(arena_, offset + p.bytes);
  }
}

// ---- nodes ----

void CExporter::emit_copy(int32_t from, int32_t to, int64_t to_offset) {
  const IrValue& x = value(from);
  const IrValue& y = value(to);
  open_loops(x.sizes);
  add_pointer(body_, to, to_offset);
  body_.add("[");
  add_index(body_, x.sizes, y.strides, x.ndim());
  body_.add("] = (").add(c_type(y.dtype)).add(")").add(y.dtype == Dtype::kBool ? "!!" : "");
  add_pointer(body_, from);
  body_.add("[");
  add_index(body_, x.sizes, x.strides, x.ndim());
  body_.add("];\n");
  close_loops(x.ndim());
}

void CExporter::emit_fill(int32_t to, double v) {
  const IrValue& y = value(to);
  open_loops(y.sizes);
  add_pointer(body_, to);
  body_.add("[");
  add_index(body_, y.sizes, y.strides, y.ndim());
  body_.add("] = ");
  add_float(body_, v);
  body_.add(";\n");
  close_loops(y.ndim());
}

bool CExporter::emit_elementwise() {
  const CExpression* e = find_expression(op());
  if (!e) return false;
  const int32_t out = node().outs[0];
  const IrValue& y = value(out);
  const bool as_float = y.dtype == Dtype::kF32;
  const OpSchema& s = *node().op->schema;
  open_loops(y.sizes);
  for (int32_t i = 0; i < s.n_args; i++) {
    const IrArg& a = node().args[i];
    const char* name = s.args[i].name;
    if (strcmp(name, "dst") == 0) continue;
    if (a.kind == Value::kTensor) {
      const IrValue& x = value(a.values[0]);
      const char* type = c_type(x.dtype);
      if (!type) refuse("a dtype other than float32, int8 to int64, uint8 and bool");
      if (e->calls && !as_float && x.dtype != Dtype::kF32) refuse("is exported for float32");
      body_.add("const ").add(as_float ? "float" : type).add(" ").add(name).add(" = ");
      add_pointer(body_, a.values[0]);
      body_.add("[");
      add_index(body_, x.sizes, x.strides, y.ndim());
      body_.add("]; ");
    } else {
      const ArgType type = s.args[i].type;
      if (type == ArgType::kOptScalar || type == ArgType::kOptFloat)
        body_.add("const int has_")
            .add(name)
            .add(" = ")
            .add(int64_t(a.kind != Value::kNone))
            .add("; ");
      body_.add(as_float ? "const float " : "const int64_t ").add(name).add(" = ");
      if (a.kind == Value::kNone) body_.add("0");
      else add_scalar(body_, a, as_float);
      body_.add("; ");
    }
  }
  body_.add("\n    ");
  add_pointer(body_, out);
  body_.add("[");
  add_index(body_, y.sizes, y.strides, y.ndim());
  body_.add("] = (").add(c_type(y.dtype)).add(")(").add(e->text).add(");\n");
  close_loops(y.ndim());
  return true;
}

void CExporter::emit_linear() {
  use("linear");
  const IrValue& x = value(tensor("input"));
  const int64_t k = x.sizes[x.ndim() - 1];
  const IrValue& w = value(tensor("weight"));
  Text call;
  call.add("  linear(");
  add_address(call, tensor("input"), true);
  call.add(", ");
  add_address(call, tensor("weight"), true);
  call.add(", ");
  add_address(call, tensor("bias"), true);
  call.add(", ");
  add_address(call, node().outs[0]);
  call.add(", ").add(k ? x.numel() / k : 0).add(", ").add(k).add(", ").add(w.sizes[0]).add(");\n");
  body_.add(call.span());
}

// mm, bmm, addmm, baddbmm, matmul_stack: stacks of matrices, one loop for each outer dim of y.
void CExporter::emit_matmul() {
  use("matmul");
  const bool adds = is("addmm") || is("baddbmm");
  const char* left = is("addmm") ? "mat1" : is("baddbmm") ? "batch1" : "self";
  const char* right = is("addmm") || is("mm") ? "mat2"
                      : is("baddbmm")         ? "batch2"
                      : is("bmm")             ? "mat2"
                                              : "other";
  const int32_t out = node().outs[0];
  const IrValue& y = value(out);
  const IrValue& x = value(tensor(left));
  const IrValue& w = value(tensor(right));
  if (x.ndim() < 2 || w.ndim() < 2 || y.ndim() < 2) refuse("a vector among the matrices");
  const int64_t outer = y.ndim() - 2;
  const auto operand = [&](int32_t v) {  // pointer to a matrix of the stack, and its strides
    const IrValue& t = value(v);
    if (t.dtype != Dtype::kF32) refuse("an argument that is not float32");
    const int64_t n = t.ndim() - 2;
    add_pointer(body_, v);
    body_.add(" + ");
    add_index(body_, Ints{t.sizes.data(), max(n, int64_t(0))},
              Ints{t.strides.data(), max(n, int64_t(0))}, outer);
    const bool row = n < 0 || t.sizes[n] == 1;
    const bool column = t.sizes[t.ndim() - 1] == 1;
    body_.add(", ").add(row ? 0 : t.strides[n]).add(", ");
    body_.add(column ? 0 : t.strides[t.ndim() - 1]).add(", ");
  };
  open_loops(Ints{y.sizes.data(), outer});
  body_.add("matmul(");
  operand(tensor(left));
  operand(tensor(right));
  if (adds) operand(tensor("self"));
  else body_.add("NULL, 0, 0, ");
  add_float(body_, adds ? number("beta") : 0);
  body_.add(", ");
  add_float(body_, adds ? number("alpha") : 1);
  body_.add(", ");
  operand(out);
  body_.add(y.sizes[outer]).add(", ").add(x.sizes[x.ndim() - 1]).add(", ");
  body_.add(y.sizes[outer + 1]).add(");\n");
  close_loops(outer);
}

// Strides of n, c, h, w; of one spatial dim: h is 1; of three: d before h.
int64_t add_strides(int64_t* out, const IrValue& v) {
  const bool flat = v.ndim() == 3;
  int64_t n = 0;
  for (int64_t i = 0; i < v.ndim(); i++) {
    if (flat && i == 2) out[n++] = 0;
    out[n++] = v.strides[i];
  }
  return n;
}

// The last two arguments of the functions of convolutions.
void CExporter::add_conv_sizes(Text& call, bool transposed) {
  const IrValue& x = value(tensor("input"));
  const IrValue& w = value(tensor("weight"));
  const IrValue& y = value(node().outs[0]);
  const int64_t given = x.ndim() - 2, groups = integer("groups");
  const int64_t spatial = max(given, int64_t(2)), missing = spatial - given;
  const int64_t in = transposed ? w.sizes[0] / groups : w.sizes[1];
  const int64_t out = transposed ? w.sizes[1] : w.sizes[0] / groups;
  SmallVec<int64_t, 13> sizes{x.sizes[0], groups, in, out};
  SmallVec<int64_t, 9> how;
  for (const IrValue* v : {&x, &w, &y})
    for (int64_t d = 0; d < spatial; d++)
      sizes.push_back(d < missing ? 1 : v->sizes[2 + d - missing]);
  for (const char* name : {"stride", "padding", "dilation"}) {
    const int64_t absent = strcmp(name, "padding") ? 1 : 0;
    for (int64_t d = 0; d < spatial; d++)
      how.push_back(d < missing ? absent : item(name, d - missing, absent));
  }
  add_list(call, sizes);
  call.add(", ");
  add_list(call, how);
}

void CExporter::emit_conv() {
  const bool transposed = integer("transposed");
  const IrValue& x = value(tensor("input"));
  const int64_t spatial = x.ndim() - 2;
  if (spatial < 1 || spatial > 3) refuse("other than one to three spatial dims");
  const char* plane = transposed ? "transposed_conv2d" : "conv2d";
  const char* volume = transposed ? "transposed_conv3d" : "conv3d";
  const char* function = spatial == 3 ? volume : plane;
  use(function);
  int64_t xs[5], ys[5];
  const int64_t n = add_strides(xs, x);
  add_strides(ys, value(node().outs[0]));
  Text call;
  call.add("  ").add(function).add("(");
  add_address(call, tensor("input"));
  call.add(", ");
  add_list(call, {xs, n});
  call.add(", ");
  add_address(call, tensor("weight"), true);
  call.add(", ");
  add_address(call, tensor("bias"), true);
  call.add(", ");
  add_address(call, node().outs[0]);
  call.add(", ");
  add_list(call, {ys, n});
  call.add(", ");
  add_conv_sizes(call, transposed);
  call.add(");\n");
  body_.add(call.span());
}

// ---- recurrent layers ----

// A copy of a state, which the steps overwrite.
void CExporter::add_state(Text& call, int32_t from) {
  if (from < 0) call.add("NULL");
  else add_dense_copy(call, from, Dtype::kF32);
}

void CExporter::emit_recurrent() {
  const IrArg& batch = arg("batch_sizes");
  const IrValue& w = value(tensor("w_hh"));
  const int64_t mode = integer("mode");
  const int64_t gates = recurrent_gates(int32_t(mode));
  const int64_t hidden = w.sizes[0] / gates;
  if (places_[value(node().outs[2]).storage].first >= 0) refuse("is exported without gradients");
  use("recurrent");
  Text call;
  call.add("  recurrent(");
  add_address(call, tensor("gates"), true);
  for (const char* name : {"w_hh", "b_hh", "w_hr"}) {
    call.add(", ");
    add_address(call, tensor(name), true);
  }
  call.add(", ");
  add_state(call, tensor("h0"));
  call.add(", ");
  add_state(call, tensor("c0"));
  call.add(", ");
  add_address(call, node().outs[0]);
  call.add(", ");
  add_address(call, mode == kLstm ? node().outs[1] : -1);
  call.add(", (float *)(scratch + ").add(node_scratch((gates + 1) * hidden * 4)).add("), ");
  add_list(call, {batch.ints.data(), batch.ints.size()});
  call.add(", ").add(batch.ints.size()).add(", ").add(hidden).add(", ").add(w.sizes[1]);
  call.add(", ").add(mode).add(", ").add(integer("reverse")).add(");\n");
  body_.add(call.span());
}

// ---- quantised operators ----

// Opens a statement with the scale and the zero point of the element that the loops are at.
void CExporter::add_grid(const char* scale, const char* zero, int64_t axis, bool inverse) {
  const auto number_at = [&](const char* name) {
    const int32_t v = tensor(name);
    add_pointer(body_, v);
    body_.add("[");
    if (axis >= 0 && value(v).numel() > 1)
      body_.add("i").add(axis).add(" * ").add(value(v).strides[0]);
    else body_.add("0");
    body_.add("]");
  };
  body_.add("const float s = ");
  if (arg(scale).kind != Value::kTensor) {
    const float s = float(number(scale));
    add_float(body_, double(inverse ? 1.0f / s : s));
  } else {
    body_.add(inverse ? "1.0f / (float)" : "(float)");
    number_at(scale);
  }
  body_.add(", z = (float)");
  if (arg(zero).kind == Value::kTensor) number_at(zero);
  else body_.add(has_arg(zero) ? integer(zero) : 0);
  body_.add(";\n    ");
}

void CExporter::emit_quantize(bool back) {
  const bool channels = is("quantize_per_channel") || is("dequantize_per_channel");
  const IrValue& x = value(tensor("input"));
  const IrValue& y = value(node().outs[0]);
  if (!back && x.dtype != Dtype::kF32) refuse("is exported for float32");
  if (!c_type(x.dtype) || !c_type(y.dtype)) refuse("an argument of another dtype");
  int64_t axis = channels ? integer("axis") : -1;
  if (channels && axis < 0) axis += x.ndim();
  open_loops(y.sizes);
  if (channels) add_grid("scales", "zero_points", axis, !back);
  else add_grid("scale", "zero_point", axis, !back);
  const auto element = [&](const IrValue& v, int32_t number) {
    add_pointer(body_, number);
    body_.add("[");
    add_index(body_, v.sizes, v.strides, v.ndim());
    body_.add("]");
  };
  if (back) {
    element(y, node().outs[0]);
    body_.add(" = ((float)");
    element(x, tensor("input"));
    body_.add(" - z) * s;\n");
  } else {
    body_.add("const float v = rintf(");
    element(x, tensor("input"));
    const int64_t low = integer("quant_min"), high = integer("quant_max");
    body_.add(" * s) + z;\n    const float u = v > ").add(low).add(" ? v : ").add(low);
    body_.add(";\n    ");
    element(y, node().outs[0]);
    body_.add(" = (").add(c_type(y.dtype)).add(")(u < ").add(high).add(" ? u : ").add(high);
    body_.add(");\n");
  }
  close_loops(y.ndim());
}

// Scale and zero point broadcast.
void CExporter::emit_fake_quantize() {
  const IrValue& x = value(tensor("input"));
  const IrValue& y = value(node().outs[0]);
  const auto element = [&](const char* name) {
    const IrValue& v = value(tensor(name));
    add_pointer(body_, tensor(name));
    body_.add("[");
    add_index(body_, v.sizes, v.strides, y.ndim());
    body_.add("]");
  };
  if (x.dtype != Dtype::kF32) refuse("is exported for float32");
  open_loops(y.sizes);
  body_.add("const float s = (float)");
  element("scale");
  body_.add(", z = (float)");
  element("zero_point");
  body_.add(", v = rintf(");
  element("input");
  const int64_t low = integer("quant_min"), high = integer("quant_max");
  body_.add(" * (1.0f / s)) + z, u = v < ").add(low).add(" ? ").add(low).add(" : v;\n    ");
  add_pointer(body_, node().outs[0]);
  body_.add("[");
  add_index(body_, y.sizes, y.strides, y.ndim());
  body_.add("] = ((u > ").add(high).add(" ? ").add(high).add(" : u) - z) * s;\n");
  close_loops(y.ndim());
}

// A pointer to scales or zero points and, behind it, the step from one to the next.
void CExporter::add_per_item(Text& call, const char* name, Dtype dtype) {
  const IrValue& v = value(tensor(name));
  if (v.dtype == dtype && is_contiguous(v)) add_pointer(call, tensor(name));
  else add_dense_copy(call, tensor(name), dtype);
}

void CExporter::emit_quantized_linear() {
  const IrValue& x = value(tensor("input"));
  const IrValue& w = value(tensor("weight"));
  const auto step = [&](const char* name) { return int64_t(value(tensor(name)).numel() != 1); };
  if (step("input_scale") != step("input_zero_point"))
    refuse("one scale for several zero points, or several for one");
  Text call;
  begin_bytes_call(call, "quantized_linear", x.dtype);
  add_address(call, tensor("input"), true, x.dtype);
  call.add(", ");
  add_per_item(call, "input_scale", Dtype::kF32);
  call.add(", ");
  add_per_item(call, "input_zero_point", Dtype::kI32);
  call.add(", ").add(step("input_scale")).add(", ");
  add_address(call, tensor("weight"), true, Dtype::kI8);
  call.add(", ");
  add_per_item(call, "weight_scale", Dtype::kF32);
  call.add(", ").add(step("weight_scale")).add(", ");
  add_address(call, tensor("bias"), true);
  call.add(", ");
  add_address(call, node().outs[0]);
  const int64_t k = w.sizes[1];
  call.add(", ").add(k ? x.numel() / k : 0).add(", ").add(k).add(", ").add(w.sizes[0]);
  call.add(");\n");
  body_.add(call.span());
}

void CExporter::emit_quantized_conv() {
  const IrValue& x = value(tensor("input"));
  int64_t xs[4], ys[4];
  add_strides(xs, x);
  add_strides(ys, value(node().outs[0]));
  Text call;
  begin_bytes_call(call, "quantized_conv2d", x.dtype);
  add_pointer(call, tensor("input"));
  call.add(", ");
  add_list(call, {xs, 4});
  call.add(", ");
  add_float(call, number("input_scale"));
  call.add(", ").add(integer("input_zero_point")).add(", ");
  add_address(call, tensor("weight"), true, Dtype::kI8);
  call.add(", ");
  add_per_item(call, "weight_scale", Dtype::kF32);
  call.add(", ").add(int64_t(value(tensor("weight_scale")).numel() != 1)).add(", ");
  add_address(call, tensor("bias"), true);
  call.add(", ");
  add_address(call, node().outs[0]);
  call.add(", ");
  add_list(call, {ys, 4});
  call.add(", ");
  add_conv_sizes(call, false);
  call.add(");\n");
  body_.add(call.span());
}

void CExporter::emit_quantize_blocks() {
  use("quantize_blockwise");
  const IrValue& y = value(node().outs[0]);
  if (!is_contiguous(y)) refuse("a result that is not contiguous");
  Text call;
  call.add("  quantize_blockwise(");
  add_address(call, tensor("input"), true);
  call.add(", ");
  add_address(call, node().outs[0], false, Dtype::kU8);
  call.add(", ").add(value(tensor("input")).numel() / kBlockItems).add(", ");
  call.add(block_bytes(int32_t(integer("format")))).add(");\n");
  body_.add(call.span());
}

void CExporter::emit_dequantize_blocks() {
  use("blocks");
  use("dequantize_blockwise");
  const IrValue& y = value(node().outs[0]);
  if (!is_contiguous(y)) refuse("a result that is not contiguous");
  Text call;
  call.add("  dequantize_blockwise(");
  add_address(call, tensor("input"), true, Dtype::kU8);
  call.add(", ");
  add_address(call, node().outs[0]);
  call.add(", ").add(y.numel() / kBlockItems).add(", ");
  call.add(block_bytes(int32_t(integer("format")))).add(");\n");
  body_.add(call.span());
}

void CExporter::emit_blockwise_linear() {
  use("blocks");
  use("blockwise_linear");
  const IrValue& x = value(tensor("input"));
  const IrValue& w = value(tensor("weight"));
  const int64_t k = x.sizes[x.ndim() - 1];
  Text call;
  call.add("  blockwise_linear(");
  add_address(call, tensor("input"), true);
  call.add(", ");
  add_address(call, tensor("weight"), true, Dtype::kU8);
  call.add(", ");
  add_address(call, tensor("bias"), true);
  call.add(", ");
  add_address(call, node().outs[0]);
  call.add(", ").add(k ? x.numel() / k : 0).add(", ").add(k).add(", ").add(w.sizes[0]);
  call.add(", ").add(block_bytes(int32_t(integer("format")))).add(");\n");
  body_.add(call.span());
}

void CExporter::emit_int_mm() {
  const IrValue& a = value(tensor("self"));
  const IrValue& b = value(tensor("mat2"));
  const IrValue& y = value(node().outs[0]);
  open_loops(y.sizes);
  body_.add("uint32_t sum = 0;\n    for (long l = 0; l < ").add(a.sizes[1]);
  body_.add("; l++) sum += (uint32_t)");
  add_pointer(body_, tensor("self"));
  body_.add("[i0 * ").add(a.strides[0]).add(" + l * ").add(a.strides[1]).add("] * (uint32_t)");
  add_pointer(body_, tensor("mat2"));
  body_.add("[l * ").add(b.strides[0]).add(" + i1 * ").add(b.strides[1]).add("];\n    ");
  add_pointer(body_, node().outs[0]);
  body_.add("[");
  add_index(body_, y.sizes, y.strides, 2);
  body_.add("] = (int32_t)sum;\n");
  close_loops(2);
}

// The call of a pooling function as far as its operands and their sizes.
void CExporter::begin_pool(const char* function) {
  use(function);
  const IrValue& x = value(tensor("self"));
  const IrValue& y = value(node().outs[0]);
  if (x.ndim() != 4) refuse("an input that is not 4-d");
  int64_t xs[4], ys[4];
  add_strides(xs, x);
  add_strides(ys, y);
  const int64_t sizes[] = {x.sizes[0], x.sizes[1], x.sizes[2], x.sizes[3], y.sizes[2], y.sizes[3]};
  body_.add("  ").add(function).add("(");
  add_address(body_, tensor("self"));
  body_.add(", ");
  add_list(body_, {xs, 4});
  body_.add(", ");
  add_address(body_, node().outs[0]);
  body_.add(", ");
  add_list(body_, {ys, 4});
  body_.add(", ");
  add_list(body_, {sizes, 6});
}

// The positions of maxima, the second result.
void CExporter::add_places() {
  const int32_t v = node().outs[1];
  int64_t strides[4];
  add_strides(strides, value(v));
  body_.add(", ");
  add_address(body_, v, false, Dtype::kI64);
  body_.add(", ");
  add_list(body_, {strides, 4});
}
bool CExporter::has_places() const { return node().outs.size() > 1 && node().outs[1] >= 0; }

void CExporter::emit_pool(bool largest) {
  const char* maxima = has_places() ? "max_pool2d_with_indices" : "max_pool2d";
  const char* function = largest ? maxima : "avg_pool2d";
  int64_t how[8];
  for (int64_t i = 0; i < 2; i++) {
    how[i] = item("kernel_size", i, 1);
    how[2 + i] = item("stride", i, how[i]);
    how[4 + i] = item("padding", i, 0);
    how[6 + i] = largest ? item("dilation", i, 1) : 1;
  }
  begin_pool(function);
  if (has_places()) add_places();
  body_.add(", ");
  add_list(body_, {how, 8});
  if (!largest) {
    body_.add(", ").add(integer("count_include_pad")).add(", ");
    body_.add(has_arg("divisor_override") ? integer("divisor_override") : 0);
  }
  body_.add(");\n");
}

void CExporter::emit_adaptive_pool(bool largest) {
  if (largest && !has_places()) refuse("has no positions");
  begin_pool(largest ? "adaptive_max_pool2d" : "adaptive_avg_pool2d");
  if (largest) add_places();
  body_.add(");\n");
}

// Dimension d of the image that a node resizes.
ResizeAxis CExporter::axis(int d) const {
  const int64_t in = value(tensor("self")).sizes[2 + d];
  const int64_t out = value(node().outs[0]).sizes[2 + d];
  const bool align = integer("align") != 0;
  const double scale = resize_scale(in, out, number(d ? "scale_w" : "scale_h"), align, false);
  return merged_axis(integer("mode"), align, in, out, scale);
}

// An array of the windows of dimension d.
void CExporter::add_windows(int d, const char* name) {
  const ResizeAxis a = axis(d);
  if (a.in > kMaxResized || a.out > kMaxResized) refuse("an image of this size");
  const int64_t taps = resize_taps(a);
  body_.add("  static const float ").add(name).add("[] = {\n");
  for (int64_t o = 0; o < a.out; o++) {
    const ResizeWindow w = resize_window(a, o);
    const double total = resize_total(a, w);
    body_.add("    ").add(w.first).add(", ").add(w.count);
    for (int64_t k = 0; k < taps; k++) {
      body_.add(", ");
      add_float(body_, k < w.count ? resize_weight(a, w, k) / total : 0);
    }
    body_.add(",\n");
  }
  body_.add("  };\n");
}

void CExporter::emit_resize() {
  const int64_t mode = integer("mode");
  if (mode != kResizeLinear && mode < kResizeCubic) refuse("a mode without weights");
  if (value(tensor("self")).dtype != Dtype::kF32) refuse("is exported for float32");
  body_.add("  {\n");
  add_windows(0, "rows");
  add_windows(1, "columns");
  begin_pool("resize");
  body_.add(", rows, columns, ");
  const int64_t taps[] = {resize_taps(axis(0)), resize_taps(axis(1))};
  add_list(body_, {taps, 2});
  body_.add(");\n  }\n");
}

void CExporter::emit_softmax(const char* function) {
  use(function);
  const IrValue& x = value(tensor("self"));
  int64_t dim = integer("dim");
  if (dim < 0) dim += x.ndim();
  int64_t outer = 1, inner = 1;
  for (int64_t i = 0; i < dim; i++) outer *= x.sizes[i];
  for (int64_t i = dim + 1; i < x.ndim(); i++) inner *= x.sizes[i];
  if (!is_contiguous(value(node().outs[0]))) refuse("a result that is not contiguous");
  Text call;
  call.add("  ").add(function).add("(");
  add_address(call, tensor("self"), true);
  call.add(", ");
  add_address(call, node().outs[0]);
  call.add(", ").add(outer).add(", ").add(x.ndim() ? x.sizes[dim] : 1).add(", ").add(inner);
  call.add(");\n");
  body_.add(call.span());
}

void CExporter::emit_layer_norm() {
  use("layer_norm");
  const IrValue& x = value(tensor("input"));
  int64_t n = 1;
  for (const int64_t size : arg("normalized_shape").ints) n *= size;
  Text call;
  call.add("  layer_norm(");
  add_address(call, tensor("input"), true);
  call.add(", ");
  add_address(call, tensor("weight"), true);
  call.add(", ");
  add_address(call, tensor("bias"), true);
  for (int64_t i = 0; i < 3; i++) {
    call.add(", ");
    add_address(call, node().outs[i]);
  }
  call.add(", ").add(n ? x.numel() / n : 0).add(", ").add(n).add(", ");
  add_float(call, number("eps"));
  call.add(");\n");
  body_.add(call.span());
}

void CExporter::emit_rms_norm() {
  use("rms_norm");
  const IrValue& x = value(tensor("input"));
  int64_t n = 1;
  for (const int64_t size : arg("normalized_shape").ints) n *= size;
  Text call;
  call.add("  rms_norm(");
  for (const char* name : {"input", "weight"}) {
    add_address(call, tensor(name), true);
    call.add(", ");
  }
  for (int64_t i = 0; i < 2; i++) {
    add_address(call, node().outs[i]);
    call.add(", ");
  }
  call.add(n ? x.numel() / n : 0).add(", ").add(n).add(", ");
  add_float(call, number("eps"));
  call.add(");\n");
  body_.add(call.span());
}

void CExporter::emit_group_norm() {
  use("group_norm");
  const IrValue& x = value(tensor("input"));
  const int64_t groups = integer("num_groups");
  int64_t inner = 1;
  for (int64_t i = 2; i < x.ndim(); i++) inner *= x.sizes[i];
  Text call;
  call.add("  group_norm(");
  for (const char* name : {"input", "weight", "bias"}) {
    add_address(call, tensor(name), true);
    call.add(", ");
  }
  for (int64_t i = 0; i < 3; i++) {
    add_address(call, node().outs[i]);
    call.add(", ");
  }
  call.add(x.sizes[0]).add(", ").add(groups).add(", ").add(x.sizes[1] / groups).add(", ");
  call.add(inner).add(", ");
  add_float(call, number("eps"));
  call.add(");\n");
  body_.add(call.span());
}

void CExporter::emit_batch_norm() {
  if (integer("training")) refuse("training: export the model in eval mode");
  use("batch_norm");
  const IrValue& x = value(tensor("input"));
  const IrValue& y = value(node().outs[0]);
  int64_t inner = 1;
  for (int64_t i = 2; i < x.ndim(); i++) inner *= x.sizes[i];
  const auto strides = [&](const IrValue& v, int64_t* out) {
    out[0] = v.strides[0];
    out[1] = v.strides[1];
    out[2] = v.ndim() > 2 ? v.strides[v.ndim() - 1] : 0;
    for (int64_t i = v.ndim() - 2; i >= 2; i--)
      if (v.strides[i] != v.strides[i + 1] * v.sizes[i + 1]) refuse("an input with gaps");
  };
  int64_t xs[3], ys[3];
  strides(x, xs);
  strides(y, ys);
  Text call;
  call.add("  batch_norm(");
  add_address(call, tensor("input"));
  call.add(", ");
  add_list(call, {xs, 3});
  for (const char* name : {"running_mean", "running_var", "weight", "bias"}) {
    call.add(", ");
    add_address(call, tensor(name), true);
  }
  call.add(", ");
  add_address(call, node().outs[0]);
  call.add(", ");
  add_list(call, {ys, 3});
  call.add(", ").add(x.sizes[0]).add(", ").add(x.sizes[1]).add(", ").add(inner).add(", ");
  add_float(call, number("eps"));
  call.add(");\n");
  body_.add(call.span());
}

void CExporter::emit_attention() {
  if (number("dropout_p") != 0) refuse("dropout: export the model in eval mode");
  use("attention");
  const IrValue& q = value(tensor("query"));
  const IrValue& k = value(tensor("key"));
  const IrValue& v = value(tensor("value"));
  const int64_t d = q.ndim();
  if (d < 3) refuse("fewer than 3 dims");
  if (!is_contiguous(value(node().outs[0]))) refuse("a result that is not contiguous");
  const auto rows = [&](const IrValue& t) { return t.numel() / (t.sizes[d - 2] * t.sizes[d - 1]); };
  int64_t ms[3] = {0, 0, 0};
  if (tensor("mask") >= 0) {
    const IrValue& m = value(tensor("mask"));
    if (m.dtype != Dtype::kF32 || m.ndim() != 2) refuse("a mask other than (m, l) in float32");
    ms[1] = m.strides[0];
    ms[2] = m.strides[1];
  }
  const int64_t scores = node_scratch(k.sizes[d - 2] * 4);
  Text call;
  call.add("  attention(");
  for (const char* name : {"query", "key", "value"}) {
    add_address(call, tensor(name), true);
    call.add(", ");
  }
  add_address(call, tensor("mask"));
  call.add(", ");
  add_list(call, {ms, 3});
  call.add(", ");
  add_address(call, node().outs[0]);
  call.add(", ");
  add_address(call, node().outs[1]);
  call.add(", (float *)(scratch + ").add(scores).add("), ").add(rows(q)).add(", ");
  call.add(q.sizes[d - 2]).add(", ").add(k.sizes[d - 2]).add(", ").add(q.sizes[d - 1]).add(", ");
  call.add(v.sizes[d - 1]).add(", ").add(rows(q) / rows(k)).add(", ").add(integer("causal"));
  call.add(", ");
  add_float(call, number("scale"));
  call.add(");\n");
  body_.add(call.span());
}

// sum, mean, amax, amin over some dims: loops over those that stay around loops over the others.
void CExporter::emit_reduce() {
  const bool largest = is("amax") || is("max"), smallest = is("amin") || is("min");
  const bool mean = is("mean") || is("mean_dim");
  const IrValue& x = value(tensor("self"));
  const IrValue& y = value(node().outs[0]);
  if (x.dtype != Dtype::kF32 || y.dtype != Dtype::kF32) refuse("is exported for float32");
  SmallVec<bool, 8> reduced;
  const bool whole = is("sum") || is("mean") || is("max") || is("min") || arg("dim").ints.empty();
  for (int64_t i = 0; i < x.ndim(); i++) reduced.push_back(whole);
  if (!whole)
    for (const int64_t dim : arg("dim").ints) reduced[dim < 0 ? dim + x.ndim() : dim] = true;
  int64_t count = 1;
  Text target;
  add_pointer(target, node().outs[0]);
  target.add("[0");
  const bool keeps = y.ndim() == x.ndim();
  for (int64_t i = 0, at = 0; i < x.ndim(); i++) {
    if (reduced[i]) {
      count *= x.sizes[i];
      at += keeps;
      continue;
    }
    target.add(" + i").add(i).add(" * ").add(y.strides[at++]);
  }
  target.add("]");
  const auto loop = [&](int64_t i) {
    body_.add("  for (long i").add(i).add(" = 0; i").add(i).add(" < ").add(x.sizes[i]);
    body_.add("; i").add(i).add("++) {\n");
  };
  int64_t open = 0;
  for (int64_t i = 0; i < x.ndim(); i++)
    if (!reduced[i]) loop(i), open++;
  body_.add("    float sum = ").add(largest ? "-INFINITY" : smallest ? "INFINITY" : "0.0f");
  body_.add(";\n");
  for (int64_t i = 0; i < x.ndim(); i++)
    if (reduced[i]) loop(i);
  body_.add("    const float a = ");
  add_pointer(body_, tensor("self"));
  body_.add("[");
  add_index(body_, x.sizes, x.strides, x.ndim());
  body_.add("];\n    ");
  if (largest) body_.add("if (a > sum || a != a) sum = a;\n");
  else if (smallest) body_.add("if (a < sum || a != a) sum = a;\n");
  else body_.add("sum += a;\n");
  close_loops(x.ndim() - open);
  body_.add("    ").add(target.span()).add(" = sum");
  if (mean) body_.add(" / ").add(count).add(".0f");
  body_.add(";\n");
  close_loops(open);
}

void CExporter::emit_cat() {
  const IrValue& y = value(node().outs[0]);
  int64_t dim = integer("dim"), offset = 0;
  if (dim < 0) dim += y.ndim();
  for (const int32_t v : arg("tensors").values) {
    if (value(v).ndim() != y.ndim()) continue;  // an empty vector beside other shapes
    emit_copy(v, node().outs[0], offset);
    offset += value(v).sizes[dim] * y.strides[dim];
  }
}

// Rows of a table by index.
void CExporter::emit_rows(const char* table, const char* indices) {
  const IrValue& t = value(tensor(table));
  const IrValue& index = value(tensor(indices));
  const IrValue& y = value(node().outs[0]);
  if (!is_contiguous(y) || !is_contiguous(t)) refuse("a table or a result that is not contiguous");
  if (!is_contiguous(index)) refuse("indices that are not contiguous");
  const int64_t n = index.numel(), row = t.sizes[0] ? t.numel() / t.sizes[0] : 0;
  body_.add("  for (long i = 0; i < ").add(n).add("; i++) {\n    long row = (long)");
  add_pointer(body_, tensor(indices));
  body_.add("[i];\n    row = row < 0 ? 0 : row >= ").add(t.sizes[0]).add(" ? ");
  body_.add(t.sizes[0] - 1).add(" : row; /* an index out of range reads the nearest row */\n");
  body_.add("    for (long j = 0; j < ").add(row).add("; j++) ");
  add_pointer(body_, node().outs[0]);
  body_.add("[i * ").add(row).add(" + j] = ");
  add_pointer(body_, tensor(table));
  body_.add("[row * ").add(row).add(" + j];\n  }\n");
}

// Of integers by a positive number.
void CExporter::emit_floor_division() {
  const IrValue& x = value(tensor("self"));
  const IrValue& y = value(node().outs[0]);
  const int64_t divisor = integer("other");
  if (divisor <= 0) refuse("a divisor that is not positive");
  open_loops(y.sizes);
  body_.add("const int64_t a = ");
  add_pointer(body_, tensor("self"));
  body_.add("[");
  add_index(body_, x.sizes, x.strides, y.ndim());
  body_.add("];\n    ");
  add_pointer(body_, node().outs[0]);
  body_.add("[");
  add_index(body_, y.sizes, y.strides, y.ndim());
  body_.add("] = (").add(c_type(y.dtype)).add(")(a / ").add(divisor).add(" - (a % ");
  body_.add(divisor).add(" < 0));\n");
  close_loops(y.ndim());
}

// Elements of self by their position along dim; one out of range reads the nearest element.
void CExporter::emit_gather(int64_t dim, const char* indices) {
  const IrValue& x = value(tensor("self"));
  const IrValue& index = value(tensor(indices));
  const IrValue& y = value(node().outs[0]);
  if (dim < 0) dim += x.ndim();
  if (!x.ndim()) refuse("a 0-dim input");
  if (!c_type(x.dtype) || !c_type(index.dtype)) refuse("an argument of another dtype");
  open_loops(y.sizes);
  body_.add("long at = (long)");
  add_pointer(body_, tensor(indices));
  body_.add("[");
  add_index(body_, index.sizes, index.strides, y.ndim());
  const int64_t last = x.sizes[dim] - 1;
  body_.add("];\n    if (at < 0) at = 0;\n    if (at > ").add(last).add(") at = ").add(last);
  body_.add(";\n    ");
  add_pointer(body_, node().outs[0]);
  body_.add("[");
  add_index(body_, y.sizes, y.strides, y.ndim());
  body_.add("] = ");
  add_pointer(body_, tensor("self"));
  body_.add("[at * ").add(x.strides[dim]);
  for (int64_t i = 0; i < x.ndim(); i++)
    if (i != dim && x.strides[i]) body_.add(" + i").add(i).add(" * ").add(x.strides[i]);
  body_.add("];\n");
  close_loops(y.ndim());
}

// Whether all results are views and nothing is written.
bool CExporter::only_views() const {
  if (node().outs.size() != node().n_results) return false;
  for (int64_t i = 0; i < node().outs.size(); i++)
    if (node().outs[i] >= 0 && !is_view_out(g_, node(), i)) return false;
  return true;
}

void CExporter::emit_node() {
  scratch_ = 0;
  if (only_views()) return;
  for (const int32_t v : node().outs)
    if (v >= 0 && g_.storages[value(v).storage].role != IrRole::kMade)
      refuse("writes an input or a constant");
  body_.add("  /* ").add(op()).add(" */\n");
  const bool integers = node().outs[0] >= 0 && is_integral(value(node().outs[0]).dtype);
  if (is("div_floor_scalar") && integers) return emit_floor_division();
  if (emit_elementwise()) return;
  if (is("linear_rows")) return emit_linear();
  if (is("mm") || is("bmm") || is("addmm") || is("baddbmm") || is("matmul_stack"))
    return emit_matmul();
  if (is("convolution")) return emit_conv();
  if (is("recurrent_layer")) return emit_recurrent();
  if (is("quantize_per_tensor") || is("quantize_per_channel")) return emit_quantize(false);
  if (is("dequantize_per_tensor") || is("dequantize_per_channel")) return emit_quantize(true);
  if (is("fake_quantize")) return emit_fake_quantize();
  if (is("quantized_linear")) return emit_quantized_linear();
  if (is("quantized_conv2d")) return emit_quantized_conv();
  if (is("int_mm")) return emit_int_mm();
  if (is("quantize_blockwise")) return emit_quantize_blocks();
  if (is("dequantize_blockwise")) return emit_dequantize_blocks();
  if (is("blockwise_linear")) return emit_blockwise_linear();
  if (is("max_pool2d") || is("max_pool2d_with_indices")) return emit_pool(true);
  if (is("avg_pool2d")) return emit_pool(false);
  if (is("adaptive_avg_pool2d")) return emit_adaptive_pool(false);
  if (is("adaptive_max_pool2d")) return emit_adaptive_pool(true);
  if (is("upsample2d")) return emit_resize();
  if (is("softmax") || is("log_softmax")) return emit_softmax(op());
  if (is("native_layer_norm")) return emit_layer_norm();
  if (is("native_rms_norm")) return emit_rms_norm();
  if (is("native_group_norm")) return emit_group_norm();
  if (is("native_batch_norm")) return emit_batch_norm();
  if (is("native_attention")) return emit_attention();
  for (const char* name : {"sum", "sum_dim", "mean", "mean_dim", "amax", "amin", "max", "min"})
    if (is(name)) return emit_reduce();
  if (is("cat")) return emit_cat();
  if (is("embedding")) return emit_rows("weight", "indices");
  if (is("take_maxima")) return emit_gather(1, "indices");
  if (is("gather")) return emit_gather(integer("dim"), "index");
  for (const char* name : {"clone", "contiguous", "to_dtype"})
    if (is(name)) return emit_copy(tensor("self"), node().outs[0]);
  if (is("copy_")) {
    const IrValue& x = value(tensor("src"));
    if (x.ndim() != value(node().outs[0]).ndim()) refuse("a broadcast copy");
    return emit_copy(tensor("src"), node().outs[0]);
  }
  if (is("zeros") || is("zeros_like")) return emit_fill(node().outs[0], 0);
  if (is("full") || is("full_like")) return emit_fill(node().outs[0], number("fill_value"));
  if (is("fill_")) return emit_fill(node().outs[0], number("value"));
  refuse("has no C template");
}

// ---- the files ----

void CExporter::add_constant(Text& out, int32_t storage) {
  const IrStorage& s = g_.storages[storage];
  Dtype dtype = Dtype::kNone;
  for (const IrValue& v : g_.values)
    if (v.storage == storage) dtype = v.dtype;
  const char* type = c_type(dtype);
  if (!type) fail(TT_NOT_IMPLEMENTED, "a constant that is not float32 or integer");
  const int64_t size = item_size(dtype), n = s.bytes / size;
  out.add("static const ")
      .add(type)
      .add(" w")
      .add(int64_t(storage))
      .add("[")
      .add(max(n, int64_t(1)));
  out.add("] = {");
  const char* data = static_cast<const char*>(s.tensor->storage->data);
  for (int64_t i = 0; i < n; i++) {
    out.add(i ? (i % 8 ? ", " : ",\n  ") : "\n  ");
    if (dtype == Dtype::kF32) {
      float v;
      memcpy(&v, data + i * 4, 4);
      add_float(out, double(v));
      continue;
    }
    int64_t v = 0;  // little-endian, as everywhere in tt
    memcpy(&v, data + i * size, size_t(size));
    const int64_t unused = 64 - 8 * size;
    const bool is_signed = dtype != Dtype::kBool && dtype != Dtype::kU8;
    if (is_signed) v = int64_t(uint64_t(v) << unused) >> unused;
    if (v == INT64_MIN) out.add("INT64_MIN");
    else out.add(v).add(size == 8 ? "LL" : "");
  }
  if (n == 0) out.add("0");
  out.add("};");
  if (!s.name.empty()) out.add("  /* ").add(s.name.span()).add(" */");
  out.add("\n");
}

// The inputs and outputs, with their types for a declaration.
void CExporter::add_parameters(Text& out, bool types, bool some) {
  const auto list = [&](const char* name, const char* what, bool constant,
                        Span<const int32_t> values) {
    for (int64_t i = 0; i < values.n; i++, some = true) {
      const char* type = c_type(value(values[i]).dtype);
      if (!type) fail(TT_NOT_IMPLEMENTED, "{} {} has an unsupported dtype", what, i);
      out.add(some ? ", " : "");
      if (types) out.add(constant ? "const " : "").add(type).add(" *");
      out.add(name).add(i);
    }
  };
  list("in", "input", true, g_.inputs);
  list("out", "output", false, g_.outputs);
}

void CExporter::add_signature(Text& out, bool arena) {
  out.add("void ").add(name_).add(arena ? "_run(void *memory" : "(");
  if (blob_) out.add(arena ? ", " : "").add("const void *blob");
  add_parameters(out, true, arena || blob_);
  out.add(")");
}

// What the graph reads from outside, as arrays or one after the other in a blob.
void CExporter::add_constants(CFiles& files) {
  for (int32_t i = 0; i < g_.storages.size(); i++) {
    const IrStorage& s = g_.storages[i];
    const bool unused = places_[i].first < 0 && places_[i].last < 0;
    if (s.role == IrRole::kMade || s.role == IrRole::kInput || unused) continue;
    if (!blob_) {
      add_constant(files.source, i);
      continue;
    }
    files.blob.append({static_cast<const char*>(s.tensor->storage->data), s.bytes});
    files.blob.resize(places_[i].offset + places_[i].bytes);
  }
}

void CExporter::write(CFiles& files) {
  if (!is_name(name_)) fail_arg(TT_INVALID_ARG, "name", "'{}' is not a C identifier", name_);
  check();
  for (int64_t i = 0; i < kNumCTemplates; i++) used_.push_back(kUnused);
  place_storages();
  const int32_t n = int32_t(g_.nodes.size());
  for (at_ = 0; at_ < n; at_++) emit_node();
  at_ = n - 1;
  for (int64_t k = 0; k < g_.outputs.size(); k++) {
    const int32_t v = g_.outputs[k];
    if (out_of_[value(v).storage] == k) continue;
    const IrValue& x = value(v);
    body_.add("  /* output ").add(k).add(" */\n  { long at = 0;\n");
    open_loops(x.sizes);
    body_.add("out").add(k).add("[at++] = ");
    add_pointer(body_, v);
    body_.add("[");
    add_index(body_, x.sizes, x.strides, x.ndim());
    body_.add("];\n");
    close_loops(x.ndim());
    body_.add("  }\n");
  }

  Text& header = files.header;
  header.add("/* ").add(name_).add(": exported by tt. Tensors are row-major without gaps.\n");
  const auto shapes = [&](const char* what, Span<const int32_t> values) {
    for (int64_t i = 0; i < values.n; i++) {
      header.add("   ").add(what).add(i).add(": ").add(c_type(value(values[i]).dtype)).add(" (");
      const IrValue& v = value(values[i]);
      for (int64_t j = 0; j < v.ndim(); j++) header.add(j ? ", " : "").add(v.sizes[j]);
      header.add(")\n");
    }
  };
  Text signature, with_arena;
  add_signature(signature, false);
  add_signature(with_arena, true);
  shapes("in", g_.inputs);
  shapes("out", g_.outputs);
  if (blob_)
    header.add("   blob: the bytes of ")
        .add(name_)
        .add(".bin, aligned to 16 bytes, little-endian.\n");
  header.add("   Inputs and outputs must not overlap. */\n#ifndef ").add(name_).add("_H\n#define ");
  header.add(name_).add("_H\n#include <stdint.h>\n#define ").add(name_).add("_ARENA_BYTES ");
  header.add(max(arena_ + max_scratch_, kAlign)).add("\n");
  if (blob_) header.add("#define ").add(name_).add("_BLOB_BYTES ").add(blob_bytes_).add("\n");
  header.add(
      "/* In memory of the caller, of that size and aligned to 16 bytes: for several at once. "
      "*/\n");
  header.add(with_arena.span()).add(";\n/* In static memory: one call at a time. */\n");
  header.add(signature.span()).add(";\n#endif\n");

  Text& source = files.source;
  source.add("/* Exported by tt: C99, libm only. */\n#include \"").add(name_).add(".h\"\n\n");
  source.add("#include <math.h>\n#include <stddef.h>\n\n");
  add_constants(files);
  add_templates(source);
  source.add("\n").add(with_arena.span()).add(" {\n  char *const arena = memory;\n");
  source.add("  char *const scratch = arena + ").add(arena_).add(";\n");
  if (blob_) source.add("  const char *const weights = blob;\n  (void)weights;\n");
  source.add("  (void)arena;\n  (void)scratch;\n");
  for (int64_t i = 0; i < g_.inputs.size(); i++) source.add("  (void)in").add(i).add(";\n");
  source.add(body_.span()).add("}\n\n");
  source.add(signature.span()).add(" {\n  static union { float aligned; int64_t too; char bytes[");
  source.add(name_).add("_ARENA_BYTES]; } memory;\n  ").add(name_).add("_run(memory.bytes");
  if (blob_) source.add(", blob");
  add_parameters(source, false, true);
  source.add(");\n}\n");
}

}  // namespace

const char* c_expression_of(const char* op) noexcept {
  const CExpression* e = find_expression(op);
  return e ? e->text : nullptr;
}

void export_c(const Graph& g, const char* name, bool blob, CFiles& files) {
  CExporter(g, name, blob).write(files);
}

}  // namespace TT_NS
