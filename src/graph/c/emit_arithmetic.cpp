#include "graph/c/exporter.h"
#include "graph/gen/c_expressions.h"

#include <string.h>

namespace TT_NS {

namespace {

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

// The element of a tensor, as a variable of the argument's name.
void CExporter::declare_element(const char* name, int32_t v, bool as_float, int64_t n_loops) {
  const IrValue& x = value(v);
  const char* type = c_type(x.dtype);
  if (!type) refuse("a dtype other than float32, int8 to int64, uint8 and bool");
  body_.add("const ").add(as_float ? "float" : type).add(" ").add(name).add(" = ");
  add_pointer(body_, v);
  body_.add("[");
  add_index(body_, x.sizes, x.strides, n_loops);
  body_.add("]; ");
}

void CExporter::declare_number(const ArgInfo& info, const IrArg& a, bool as_float) {
  const bool is_float = as_float || !is_whole(a);
  if (info.type == ArgType::kOptScalar || info.type == ArgType::kOptFloat) {
    body_.add("const int has_").add(info.name).add(" = ");
    body_.add(int64_t(a.kind != Value::kNone)).add("; ");
  }
  body_.add(is_float ? "const float " : "const int64_t ").add(info.name).add(" = ");
  if (a.kind == Value::kNone) body_.add("0");
  else add_scalar(body_, a, is_float);
  body_.add("; ");
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
    if (strcmp(s.args[i].name, "dst") == 0) continue;
    if (a.kind != Value::kTensor) {
      declare_number(s.args[i], a, as_float);
      continue;
    }
    if (e->calls && !as_float && value(a.values[0]).dtype != Dtype::kF32)
      refuse("is exported for float32");
    declare_element(s.args[i].name, a.values[0], as_float, y.ndim());
  }
  body_.add("\n    ");
  add_pointer(body_, out);
  body_.add("[");
  add_index(body_, y.sizes, y.strides, y.ndim());
  body_.add("] = (").add(c_type(y.dtype)).add(")(").add(e->text).add(");\n");
  close_loops(y.ndim());
  return true;
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

}  // namespace TT_NS
