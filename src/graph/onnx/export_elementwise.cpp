// Elementwise operators: the expressions of their declarations in C become nodes.
#include "graph/c/export.h"
#include "graph/onnx/exporter.h"

#include <string.h>

namespace TT_NS {

namespace {

// A part of an elementwise expression: a number, or a tensor.
struct Term {
  bool is_number = false;
  double number = 0;
  ModelValue tensor;
  bool is_bool() const { return !is_number && tensor.dtype == Dtype::kBool; }
};
Term number_term(double v) { return {true, v, {}}; }
Term tensor_term(ModelValue t) { return {false, 0, t}; }

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
  ModelValue value(const Term& t) {
    return t.is_number ? e_.number(t.number, d_) : e_.cast(t.tensor, d_);
  }
  ModelValue truth(const Term& t) {
    if (t.is_number) return e_.number(t.number != 0, Dtype::kBool);
    if (t.is_bool()) return t.tensor;
    return e_.cast(t.tensor, Dtype::kBool);
  }
  Term whole(const char* type, const Term& a) { return is_float(d_) ? one(type, a) : a; }
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
    double v = 0;
    double scale = 1;
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
    constexpr int64_t kExact = int64_t(1) << 53;  // of a double
    if (a.kind == Value::kScalar && a.scalar.is_int() &&
        (a.scalar.i > kExact || a.scalar.i < -kExact))
      return tensor_term(e_.scalar(a.scalar, d_));
    return number_term(a.kind == Value::kNone ? 0 : e_.real(name.c_str()));
  }
  Term truncated(const Term& a) {
    return where(compare("Less", a, number_term(0)), whole("Ceil", a), whole("Floor", a));
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
  static constexpr double kHalfTurn = 3.141592653589793;
  Term atan2(const Term& y, const Term& x) {
    const Term quotient = one("Atan", divide(y, x));
    const Term left = compare("Less", x, number_term(0));
    const Term turned =
        add(quotient, where(left, signed_like(number_term(kHalfTurn), y), number_term(0)));
    const Term both =
        logic("And", compare("Equal", x, number_term(0)), compare("Equal", y, number_term(0)));
    const Term before = compare("Less", divide(number_term(1), x), number_term(0));
    return where(both, signed_like(where(before, number_term(kHalfTurn), number_term(0)), y),
                 turned);
  }
  Term call(const Text& name) {
    static constexpr struct {
      const char *c, *onnx;
    } kSame[] = {{"fabsf", "Abs"},  {"expf", "Exp"},     {"logf", "Log"},     {"sqrtf", "Sqrt"},
                 {"tanhf", "Tanh"}, {"sinf", "Sin"},     {"cosf", "Cos"},     {"tanf", "Tan"},
                 {"asinf", "Asin"}, {"acosf", "Acos"},   {"atanf", "Atan"},   {"sinhf", "Sinh"},
                 {"coshf", "Cosh"}, {"asinhf", "Asinh"}, {"acoshf", "Acosh"}, {"atanhf", "Atanh"},
                 {"erff", "Erf"}};
    static constexpr struct {
      const char *c, *onnx;
    } kWhole[] = {{"floorf", "Floor"}, {"ceilf", "Ceil"}, {"rintf", "Round"}};
    next("(");
    const Term a = choice();
    Term b;
    const bool pair = next(",");
    if (pair) b = choice();
    if (!next(")")) e_.refuse("its expression has no translation");
    for (const auto& f : kSame)
      if (name.is(f.c)) return one(f.onnx, a);
    for (const auto& f : kWhole)
      if (name.is(f.c)) return whole(f.onnx, a);
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
      return tensor_term(e_.node("Mod", {value(a), value(b)}, d_, AttrWriter().integer("fmod", 1)));
    if (name.is("hypotf")) return one("Sqrt", add(multiply(a, a), multiply(b, b)));
    if (name.is("fmaxf")) return extreme("Greater", a, b);
    if (name.is("fminf")) return extreme("Less", a, b);
    if (name.is("copysignf")) return signed_like(a, b);
    if (name.is("atan2f")) return atan2(a, b);
    e_.refuse("its expression has no translation");
  }

  OnnxExporter& e_;
  const char* p_;
  const Dtype d_;
};

}  // namespace

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
    const ModelValue x = tensor(has("self") ? "self" : "input");
    if (!is_float(x.dtype)) return false;
    AttrWriter attrs;
    if (is("gelu_tanh")) attrs.text("approximate", "tanh");
    if (strcmp(f.tt, "leaky_relu") == 0) attrs.real("alpha", real("negative_slope"));
    if (strcmp(f.tt, "elu") == 0) attrs.real("alpha", real("alpha"));
    give(node(f.onnx, {x}, x.dtype, attrs));
    return true;
  }
  return false;
}

bool OnnxExporter::emit_elementwise() {
  if (is("bitwise_not")) {
    const ModelValue x = tensor("self");
    give(node(x.dtype == Dtype::kBool ? "Not" : "BitwiseNot", {x}, x.dtype));
    return true;
  }
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
    if (bits) d = out_value().dtype;
    else if (!is_float(d)) d = promote(d, Dtype::kI32);  // as tt computes
  }
  if (is_complex(d)) refuse("complex numbers");
  const bool floors = strncmp(op(), "div_floor", 9) == 0 || strncmp(op(), "floor_divide", 12) == 0;
  if (floors && !is_float(d)) {  // Div of ONNX truncates
    const ModelValue x = cast(tensor("self"), d);
    const bool is_tensor = arg("other").kind == Value::kTensor;
    const ModelValue y = is_tensor ? cast(tensor("other"), d) : number_of("other", d);
    // Where the remainders of both kinds differ, it is by y; x less one of them could overflow.
    const ModelValue floor_rest = node("Mod", {x, y}, d);
    const ModelValue rest = node("Mod", {x, y}, d, AttrWriter().integer("fmod", 1));
    const ModelValue less = node("Div", {node("Sub", {rest, floor_rest}, d), y}, d);
    give(node("Add", {node("Div", {x, y}, d), less}, d));
    return true;
  }
  const Term t = Expression(*this, text, d).run();
  ModelValue x = t.is_number ? number(t.number, d) : t.tensor;
  if (t.is_number) x = node("Expand", {x, constant(out_value().sizes)}, x.dtype);
  give(x);
  return true;
}

}  // namespace TT_NS
