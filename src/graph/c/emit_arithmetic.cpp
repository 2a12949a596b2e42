#include "graph/c/exporter.h"
#include "graph/gen/c_expressions.h"
#include "ops/gen/ops.h"

#include <math.h>
#include <string.h>

namespace TT_NS {

namespace {

// Returns what follows `begin` in text; NULL if text begins in another way.
const char* behind(const char* text, const char* begin) {
  const size_t n = strlen(begin);
  return strncmp(text, begin, n) == 0 ? text + n : nullptr;
}

// Finds the expression of an operator or of its variant in place or `_into`. floor_divide has that
// of div_floor.
const CExpression* find_expression(const char* op) {
  const char* const floors = behind(op, "floor_divide");
  for (const CExpression& e : kCExpressions) {
    const char* const of_floor = floors ? behind(e.op, "div_floor") : nullptr;
    const char* const rest = of_floor ? behind(floors, of_floor) : behind(op, e.op);
    if (rest && (!*rest || !strcmp(rest, "_") || !strcmp(rest, "_into"))) return &e;
  }
  return nullptr;
}

}  // namespace

const char* c_expression_of(const char* op) noexcept {
  const CExpression* e = find_expression(op);
  return e ? e->text : nullptr;
}

// Whether a number is an integer or missing.
static bool is_whole(const IrArg& a) {
  if (a.kind == Value::kScalar) return a.scalar.is_int() || a.scalar.is_bool();
  return a.kind != Value::kFloat;
}
static int64_t integer_of(const IrArg& a) { return a.kind == Value::kScalar ? a.scalar.i : a.i; }

// Whether the expression may overflow: tt's integers wrap around, while overflow of signed ones is
// undefined in C.
static bool may_wrap(const CExpression& e, Dtype result) {
  if (!is_integral(result) || result == Dtype::kBool) return false;
  for (const char* text = e.text; *text; text++) {
    if (strchr("<>=?/", *text)) return false;
  }
  return true;
}

// Whether a value is a number of the program, as 0.5 is in where(mask, x, 0.5).
bool CExporter::is_number(const IrValue& x) const {
  return x.dtype == Dtype::kF64 && x.numel() == 1 &&
         g_.storages[x.storage].role == IrRole::kConstant;
}
// Whether a call computes with float64 that is more than a number of the program.
bool CExporter::has_float64() const {
  bool some = false;
  for_each_value(node(), [&](int32_t v) {
    some = some || (value(v).dtype == Dtype::kF64 && !is_number(value(v)));
  });
  for (const int32_t v : node().outs) some = some || (v >= 0 && value(v).dtype == Dtype::kF64);
  return some;
}

// Of float64 are what variances need: sums, means, arithmetic, roots, comparisons, conversions.
bool CExporter::serves_float64() const {
  static constexpr const char* kServed[] = {
      "sum",  "sum_dim",    "mean",  "mean_dim", "sqrt",  "to_dtype",   "copy_",    "clone",
      "full", "contiguous", "zeros", "ones",     "empty", "empty_like", "full_like"};
  for (const char* name : kServed)
    if (is(name)) return true;
  const CExpression* const e = find_expression(op());
  if (!e || e->calls) return false;
  for (const char* text = e->text; *text; text++)  // a constant of float, such as 6.0f
    if (*text >= '0' && *text <= '9' && text[1] == 'f') return false;
  return true;
}

// The type in which an elementwise call computes with floating numbers.
const char* CExporter::real_type() const { return has_float64() ? "double" : "float"; }
bool CExporter::has_real_result() const { return is_float(value(node().outs[0]).dtype); }

// Declares a variable of the argument's name that has the element of a tensor. type: of the
// variable; NULL: that to which C promotes the element.
void CExporter::declare_element(const char* name, int32_t v, const char* type, int64_t n_loops) {
  const IrValue& x = value(v);
  if (is_number(x)) {
    double number;
    const IrStorage& s = g_.storages[x.storage];
    memcpy(&number, static_cast<const char*>(s.tensor->storage->data) + x.offset, sizeof number);
    body_.add("const ").add(real_type()).add(" ").add(name).add(" = ");
    add_float(body_, number, has_float64() ? Dtype::kF64 : Dtype::kF32);
    body_.add("; ");
    return;
  }
  const char* own = c_type(x.dtype);
  if (!own) refuse("a dtype other than float32, int8 to int64, uint8 and bool");
  if (!type) type = item_size(x.dtype) < 4 ? "int" : own;
  body_.add("const ").add(type).add(" ").add(name).add(" = ");
  if (strcmp(type, own) != 0) body_.add("(").add(type).add(")");
  add_at(body_, v, n_loops);
  body_.add("; ");
}

void CExporter::declare_number(const ArgInfo& info, const IrArg& a, bool as_real,
                               const char* whole_type) {
  const bool is_real = as_real || !is_whole(a);
  if (info.type == ArgType::kOptScalar || info.type == ArgType::kOptFloat) {
    body_.add("const int has_").add(info.name).add(" = ");
    body_.add(int64_t(a.kind != Value::kNone)).add("; ");
  }
  const char* type = is_real ? real_type() : whole_type;
  body_.add("const ").add(type).add(" ").add(info.name).add(" = ");
  if (a.kind == Value::kNone) {
    body_.add("0");
  } else if (is_real) {
    add_real(body_, a, has_float64() ? Dtype::kF64 : Dtype::kF32);
  } else {
    body_.add("(").add(type).add(")");
    add_whole(body_, integer_of(a));
  }
  body_.add("; ");
}

// The expression of a call: the declared one, except for dtypes and numbers that it does not serve.
const char* CExporter::text_of(const CExpression& e) const {
  const auto computes = [&](const char* op) { return strcmp(e.op, op) == 0; };
  const Dtype d = value(node().outs[0]).dtype;
  if (d == Dtype::kBool && computes("bitwise_not")) return "!self";
  if (is_integral(d) && computes("heaviside")) return "self == 0 ? values : self > 0";
  if (is_integral(d) && computes("abs")) return "self > 0 ? (uint64_t)self : 0 - (uint64_t)self";
  if (d == Dtype::kF64 && computes("sqrt")) return "sqrt(self)";
  if (d != Dtype::kF32) return e.text;
  if (computes("clamp_min") && arg("min").kind == Value::kTensor)
    return "self < min || isnan(min) ? min : self";
  if (computes("clamp_max") && arg("max").kind == Value::kTensor)
    return "self > max || isnan(max) ? max : self";
  if (computes("pow_number") && fabs(number("exponent")) == 0.5)
    return "exponent < 0 ? 1.0f / sqrtf(self) : sqrtf(self)";
  return e.text;
}

// Whether a bound of clamp is the number nan, which makes all elements nan.
bool CExporter::clamps_by_nan(const CExpression& e) const {
  if (strncmp(e.op, "clamp", 5) != 0) return false;
  for (const IrArg& a : node().args)
    if (a.kind == Value::kScalar && a.scalar.real() != a.scalar.real()) return true;
  return false;
}

bool CExporter::emit_elementwise() {
  const CExpression* e = find_expression(op());
  if (!e) return false;
  const int32_t out = node().outs[0];
  const IrValue& y = value(out);
  const bool as_real = has_real_result();
  if (as_real && clamps_by_nan(*e)) {
    emit_fill(Scalar(NAN));
    return true;
  }
  const bool wraps = may_wrap(*e, y.dtype);
  const char* type = as_real ? real_type() : nullptr;
  if (wraps) type = "uint64_t";
  const OpSchema& s = *node().op->schema;
  open_loops(y.sizes);
  for (int32_t i = 0; i < s.n_args; i++) {
    const IrArg& a = node().args[i];
    if (strcmp(s.args[i].name, "dst") == 0) continue;
    if (a.kind != Value::kTensor) {
      declare_number(s.args[i], a, as_real, wraps ? type : "int64_t");
      continue;
    }
    if (e->calls && !as_real && value(a.values[0]).dtype != Dtype::kF32)
      refuse("is exported for float32");
    declare_element(s.args[i].name, a.values[0], type, y.ndim());
  }
  body_.add("\n    ");
  add_at(body_, out, y.ndim());
  const bool truth = y.dtype == Dtype::kBool;
  body_.add(" = (").add(c_type(y.dtype)).add(truth ? ")((" : ")(").add(text_of(*e));
  body_.add(truth ? ") != 0);\n" : ");\n");
  close_loops(y.ndim());
  return true;
}

// Writes quotients and remainders of integers; those by 0 are 0. Returns false for other calls.
bool CExporter::emit_division() {
  static constexpr struct {
    const char *op, *text;
  } kDivisions[] = {{"div_floor", "q - (r != 0 && (r < 0) != (b < 0))"},
                    {"floor_divide", "q - (r != 0 && (r < 0) != (b < 0))"},
                    {"div_trunc", "q"},
                    {"fmod", "r"},
                    {"rest_trunc", "r"},
                    {"remainder", "r != 0 && (r < 0) != (b < 0) ? r + b : r"},
                    {"rest_floor", "r != 0 && (r < 0) != (b < 0) ? r + b : r"}};
  const int32_t out = node().outs.empty() ? -1 : node().outs[0];
  if (out < 0 || !is_integral(value(out).dtype) || value(out).dtype == Dtype::kBool) return false;
  const char* text = nullptr;
  for (const auto& d : kDivisions) {
    const char* rest = behind(op(), d.op);
    if (rest && (!*rest || !strcmp(rest, "_") || behind(rest, "_scalar"))) text = d.text;
  }
  if (!text) return false;
  const IrValue& y = value(out);
  const IrArg& divisor = arg("other");
  open_loops(y.sizes);
  declare_element("a", tensor("self"), "int64_t", y.ndim());
  if (divisor.kind == Value::kTensor) {
    declare_element("b", divisor.values[0], "int64_t", y.ndim());
  } else {
    body_.add("const int64_t b = ");
    add_whole(body_, integer_of(divisor));
    body_.add("; ");
  }
  body_.add(
      "\n    int64_t q = 0, r = 0;\n"
      "    if (b == -1) {\n      q = (int64_t)(0 - (uint64_t)a);\n      r = 0;\n"
      "    } else if (b != 0) {\n      q = a / b;\n      r = a % b;\n    }\n"
      "    (void)q;\n    (void)r;\n    ");
  add_at(body_, out, y.ndim());
  body_.add(" = (").add(c_type(y.dtype)).add(")(").add(text).add(");\n");
  close_loops(y.ndim());
  return true;
}

// Shifts of integers: by less than 0 or all bits, to the left they give 0, to the right the sign.
// Returns false for other calls.
bool CExporter::emit_shift() {
  const bool left = behind(op(), "bitwise_left_shift");
  if (!left && !behind(op(), "bitwise_right_shift")) return false;
  const int32_t out = node().outs[0];
  const IrValue& y = value(out);
  const IrArg& by = arg("other");
  if (!is_integral(y.dtype) || y.dtype == Dtype::kBool) refuse("is exported for integers");
  open_loops(y.sizes);
  declare_element("self", tensor("self"), left ? "uint64_t" : "int64_t", y.ndim());
  if (by.kind == Value::kTensor) {
    declare_element("other", by.values[0], "uint64_t", y.ndim());
  } else {
    body_.add("const uint64_t other = (uint64_t)");
    add_whole(body_, integer_of(by));
    body_.add("; ");
  }
  body_.add("\n    ");
  add_at(body_, out, y.ndim());
  body_.add(" = (").add(c_type(y.dtype)).add(")(other < ").add(8 * item_size(y.dtype));
  const char* const shifted = left ? "self << other" : "self >> other";
  const char* const emptied = left ? "0" : "-(self < 0)";
  body_.add(" ? ").add(shifted).add(" : ").add(emptied).add(");\n");
  close_loops(y.ndim());
  return true;
}

// Writes loops that copy `from`, broadcast to these sizes, into a box of `to`. Offsets and strides
// are in elements.
void CExporter::emit_copy(int32_t from, int32_t to, Ints sizes, int64_t from_offset,
                          int64_t to_offset, Ints to_strides) {
  const IrValue& x = value(from);
  const IrValue& y = value(to);
  Text source, place;
  if (x.storage == y.storage) {  // all of it is read before anything is written
    add_dense_copy(source, from, x.dtype);
    add_dense_index(place, x, sizes.n);
  } else {
    add_pointer(source, from, from_offset);
    add_index(place, x.sizes, x.strides, sizes.n);
  }
  open_loops(sizes);
  add_pointer(body_, to, to_offset);
  body_.add("[");
  add_index(body_, sizes, to_strides, sizes.n);
  // A number that a narrow integer cannot have wraps around.
  const bool narrows = is_float(x.dtype) && is_integral(y.dtype) && item_size(y.dtype) < 4;
  body_.add("] = (").add(c_type(y.dtype)).add(")").add(narrows ? "(int32_t)" : "");
  body_.add(y.dtype == Dtype::kBool ? "!!" : "").add("(").add(source.span()).add(")[");
  body_.add(place.span()).add("];\n");
  close_loops(sizes.n);
}
void CExporter::emit_copy(int32_t from, int32_t to) {
  emit_copy(from, to, value(to).sizes, 0, 0, value(to).strides);
}

// Fills the result, which may be larger or smaller than the input, and copies what both have.
void CExporter::emit_pad() {
  const IrValue& x = value(tensor("self"));
  const IrValue& y = value(node().outs[0]);
  emit_fill(arg("value").scalar);
  Shape sizes;
  int64_t from = 0;
  int64_t to = 0;
  for (int64_t d = 0; d < x.ndim(); d++) {
    const int64_t before = pad_before(d);
    const int64_t first = max<int64_t>(before, 0);
    sizes.push_back(min(y.sizes[d], before + x.sizes[d]) - first);
    from += (first - before) * x.strides[d];
    to += first * y.strides[d];
    if (sizes[d] <= 0) return;
  }
  emit_copy(tensor("self"), node().outs[0], sizes, from, to, y.strides);
}
int64_t CExporter::pad_before(int64_t dim) const {
  const Ints pad = arg("pad").ints;
  const int64_t k = 2 * (value(tensor("self")).ndim() - 1 - dim);
  return k < pad.n ? pad[k] : 0;
}

// Pads with elements of the inside: reflected, the nearest, or repeated (of a cropped dimension
// those that remain).
void CExporter::emit_border() {
  const IrValue& x = value(tensor("self"));
  const IrValue& y = value(node().outs[0]);
  if (!c_type(x.dtype)) refuse("a dtype other than float32, int8 to int64, uint8 and bool");
  open_loops(y.sizes);
  for (int64_t d = 0; d < x.ndim(); d++) {
    body_.add("const long s").add(d).add(" = ");
    if (!pad_before(d) && x.sizes[d] == y.sizes[d]) body_.add("i").add(d);
    else if (integer("mode") == kPaddingCircular) add_circular_source(d);
    else add_border_source(d);
    body_.add(";\n    ");
  }
  add_at(body_, node().outs[0], y.ndim());
  body_.add(" = ");
  add_place(body_, tensor("self"));
  body_.add(";\n");
  close_loops(y.ndim());
}

// Writes which element of dimension d of the input the loop's variable stands for.
void CExporter::add_border_source(int64_t d) {
  const int64_t last = value(tensor("self")).sizes[d] - 1;
  const int64_t before = pad_before(d);
  const bool reflects = integer("mode") == kPaddingReflect;
  body_.add("i").add(d).add(" < ").add(before).add(" ? ");
  if (reflects) body_.add(before).add(" - i").add(d);
  else body_.add("0");
  body_.add(" : i").add(d).add(" <= ").add(last + before).add(" ? i").add(d).add(" - ");
  body_.add(before).add(" : ");
  if (reflects) body_.add(2 * last + before).add(" - i").add(d);
  else body_.add(last);
}
void CExporter::add_circular_source(int64_t d) {
  const int64_t n = value(tensor("self")).sizes[d];
  const int64_t after = value(node().outs[0]).sizes[d] - n - pad_before(d);
  const int64_t from = max(-pad_before(d), int64_t(0));
  const int64_t before = max(pad_before(d), int64_t(0));
  const int64_t rest = n - from + min(after, int64_t(0));
  const int64_t shift = round_up(before, rest) - before;
  body_.add(from).add(" + (i").add(d).add(" + ").add(shift).add(") % ").add(rest);
}

void CExporter::emit_fill(const Scalar& v) {
  const IrValue& y = value(node().outs[0]);
  if (!c_type(y.dtype)) refuse("a dtype other than float32, int8 to int64, uint8 and bool");
  char element[8];
  store_scalar(element, y.dtype, v);
  open_loops(y.sizes);
  add_at(body_, node().outs[0], y.ndim());
  body_.add(" = ");
  add_element(body_, y.dtype, element);
  body_.add(";\n");
  close_loops(y.ndim());
}

void CExporter::emit_linear() {
  use("linear");
  const IrValue& w = value(tensor("weight"));
  Text call;
  call.add("  linear(");
  add_address(call, tensor("input"), true);
  call.add(", ");
  add_address(call, tensor("weight"), true);
  call.add(", ");
  add_address(call, tensor("bias"), true);
  call.add(", ");
  add_result(call, node().outs[0]);
  call.add(", ").add(rows_of(value(tensor("input")))).add(", ").add(w.sizes[1]).add(", ");
  call.add(w.sizes[0]);
  end_call(call);
}

// Writes products of stacks of matrices, with one loop for each outer dim of y.
void CExporter::emit_matmul() {
  use("matmul");
  static constexpr struct {
    const char *op, *left, *right;
  } kOperands[] = {{"mm", "self", "mat2"},
                   {"bmm", "self", "mat2"},
                   {"addmm", "mat1", "mat2"},
                   {"baddbmm", "batch1", "batch2"},
                   {"matmul_stack", "self", "other"}};
  const bool adds = is("addmm") || is("baddbmm");
  const char *left = nullptr, *right = nullptr;
  for (const auto& operands : kOperands) {
    if (!is(operands.op)) continue;
    left = operands.left;
    right = operands.right;
  }
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
    const bool column = t.ndim() == 0 || t.sizes[t.ndim() - 1] == 1;
    body_.add(", ").add(row ? 0 : t.strides[n]).add(", ");
    body_.add(column ? 0 : t.strides[t.ndim() - 1]).add(", ");
  };
  open_loops(Ints{y.sizes.data(), outer});
  body_.add("matmul(");
  operand(tensor(left));
  operand(tensor(right));
  if (adds && number("beta") != 0) operand(tensor("self"));
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
  add_at(body_, node().outs[0], 2);
  body_.add(" = (int32_t)sum;\n");
  close_loops(2);
}

}  // namespace TT_NS
