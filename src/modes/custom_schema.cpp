#include "modes/custom_schema.h"

#include <string.h>

namespace TT_NS {

namespace {

struct TypeName {
  const char* text;
  ArgType type;
};
constexpr TypeName kTypes[] = {
    {"Tensor", ArgType::kTensor},   {"Tensor?", ArgType::kOptTensor}, {"Tensor[]", ArgType::kTensorList}, {"Tensor?[]", ArgType::kOptTensorList},
    {"Scalar", ArgType::kScalar},   {"Scalar?", ArgType::kOptScalar}, {"Float", ArgType::kFloat},         {"Float?", ArgType::kOptFloat},
    {"Int", ArgType::kInt},         {"Int?", ArgType::kOptInt},       {"Bool", ArgType::kBool},           {"Bool?", ArgType::kOptBool},
    {"Dim", ArgType::kDim},         {"Dim?", ArgType::kOptDim},       {"Dims", ArgType::kDims},           {"Dims?", ArgType::kOptDims},
    {"Index", ArgType::kIndex},     {"Index?", ArgType::kOptInt},     {"Size", ArgType::kSize},           {"Shape", ArgType::kShape},
    {"Index[]", ArgType::kIndices}, {"DType", ArgType::kDtype},       {"Device", ArgType::kDevice},       {"Str", ArgType::kStr},
    {"Generator", ArgType::kGenerator}, {"MemoryFormat", ArgType::kMemoryFormat}};

struct Parser {
  using Str = Span<const char>;
  const char* text;
  const char* p;
  char* names;

  [[noreturn]] TT_COLD void fail_at(const char* want) {
    fail_arg(TT_INVALID_ARG, "schema", "schema \"{}\": at character {}: must be {}", text, int64_t(p - text), want);
  }
  void skip_space() {
    while (*p == ' ' || *p == '\t' || *p == '\n') p++;
  }
  bool accept(char c) {
    skip_space();
    if (*p != c) return false;
    p++;
    return true;
  }
  void expect(char c, const char* want) {
    if (!accept(c)) fail_at(want);
  }
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  // Copies an identifier into the names; dots may join the parts of an operator's name.
  const char* identifier(const char* want, bool dots) {
    skip_space();
    if (!is_letter(*p)) fail_at(want);
    char* begin = names;
    while (is_letter(*p) || is_digit(*p) || (dots && *p == '.')) *names++ = *p++;
    *names++ = 0;
    return begin;
  }
  // The longest run of characters of a type's name.
  Str word() {
    skip_space();
    const char* begin = p;
    while (is_letter(*p) || *p == '?' || *p == '[' || *p == ']' || *p == '!') p++;
    return {begin, int64_t(p - begin)};
  }
  ArgType type();
  void default_value(ArgInfo& a);
  void number(ArgInfo& a);
  void argument(ArgInfo& a);
  bool out_type();
  void outs(ParsedSchema& s);

  static bool is(Str w, const char* s) { return int64_t(strlen(s)) == w.n && memcmp(w.ptr, s, size_t(w.n)) == 0; }
};

ArgType Parser::type() {
  const char* begin = (skip_space(), p);
  Str w = word();
  for (const TypeName& t : kTypes)
    if (is(w, t.text)) return t.type;
  p = begin;
  if (w.n && w.back() == '!') fail_at("a type without \"!\": custom operators do not write their arguments");
  fail_at("a type, such as Tensor, Tensor?, Tensor[], Scalar, Float, Int, Bool, Dim, Dims, Size, DType, Device or Str");
}

// [+-]digits[.digits][e[+-]digits]: an integer, or a float of up to 18 digits.
void Parser::number(ArgInfo& a) {
  const char* begin = p;
  const bool negative = *p == '-';
  if (*p == '-' || *p == '+') p++;
  int64_t mantissa = 0;
  int32_t scale = 0, digits = 0;
  bool real = false;
  for (; is_digit(*p) || (*p == '.' && !real); p++) {
    if (*p == '.') {
      real = true;
    } else {
      if (++digits > 18) p = begin, fail_at("a number of at most 18 digits");
      mantissa = mantissa * 10 + (*p - '0'), scale -= real;
    }
  }
  if (!digits) p = begin, fail_at("a number, true, false, None or []");
  if (*p == 'e' || *p == 'E') {
    real = true, p++;
    const bool down = *p == '-';
    if (*p == '-' || *p == '+') p++;
    int32_t e = 0;
    if (!is_digit(*p)) fail_at("an exponent");
    for (; is_digit(*p); p++) e = e < 1000 ? e * 10 + (*p - '0') : e;
    scale += down ? -e : e;
  }
  if (!real) {
    a.fallback = {ArgDefault::kInt, 0, negative ? -mantissa : mantissa};
    return;
  }
  long double v = mantissa, power = 1;  // powers of ten up to 10^27 are exact
  for (int32_t i = 0; i < (scale < 0 ? -scale : scale) && i < 5000; i++) power *= 10;
  v = scale < 0 ? v / power : v * power;
  a.fallback = {ArgDefault::kFloat, double(negative ? -v : v), 0};
}

void Parser::default_value(ArgInfo& a) {
  a.has_default = true;
  skip_space();
  if (is_digit(*p) || *p == '-' || *p == '+' || *p == '.') {
    number(a);
  } else {
    const char* begin = p;
    Str w = word();
    if (is(w, "true") || is(w, "false")) a.fallback = {ArgDefault::kBool, 0, w.n == 4};
    else if (is(w, "contiguous") || is(w, "preserve")) a.fallback = {ArgDefault::kInt, 0, w[0] == 'c' ? TT_CONTIGUOUS : TT_PRESERVE};
    else if (!is(w, "None") && !is(w, "[]")) p = begin, fail_at("a number, true, false, None or []");
  }
  const bool is_bool = a.type == ArgType::kBool || a.type == ArgType::kOptBool;
  const bool takes_float = a.type == ArgType::kFloat || a.type == ArgType::kOptFloat || a.type == ArgType::kScalar || a.type == ArgType::kOptScalar;
  const bool takes_int = takes_float || a.type == ArgType::kInt || a.type == ArgType::kOptInt || a.type == ArgType::kDim || a.type == ArgType::kOptDim ||
                         a.type == ArgType::kIndex || a.type == ArgType::kMemoryFormat;
  const ArgDefault::Kind kind = a.fallback.kind;
  const bool fits = kind == ArgDefault::kBool ? is_bool || a.type == ArgType::kScalar : kind == ArgDefault::kFloat ? takes_float : kind == ArgDefault::kInt ? takes_int
                    : a.type != ArgType::kTensor && a.type != ArgType::kTensorList && a.type != ArgType::kInt && a.type != ArgType::kFloat &&
                      a.type != ArgType::kBool && a.type != ArgType::kScalar && a.type != ArgType::kDim && a.type != ArgType::kIndex &&
                      a.type != ArgType::kMemoryFormat;
  if (!fits) fail_at("a default of the argument's type");
  if (a.type == ArgType::kFloat && kind == ArgDefault::kInt) a.fallback = {ArgDefault::kFloat, double(a.fallback.i), 0};
}

void Parser::argument(ArgInfo& a) {
  a = ArgInfo{};
  a.name = identifier("an argument's name", false);
  expect(':', "\":\" and the argument's type");
  a.type = type();
  if (accept('=')) default_value(a);
}

// True for a differentiable output.
bool Parser::out_type() {
  const char* begin = (skip_space(), p);
  Str w = word();
  if (is(w, "Tensor")) return true;
  if (!is(w, "IndexTensor") && !is(w, "BoolTensor")) p = begin, fail_at("Tensor, IndexTensor, BoolTensor, or a list of them in parentheses");
  return false;
}

void Parser::outs(ParsedSchema& s) {
  s.n_outs = 0, s.differentiable = 0;
  if (!accept('(')) {
    s.differentiable = out_type();
    s.n_outs = 1;
    return;
  }
  while (!accept(')')) {
    if (s.n_outs == kMaxCustomOuts) fail_at("at most 32 outputs");
    if (s.n_outs) expect(',', "\",\" or \")\"");
    const char* begin = (skip_space(), p);
    while (is_letter(*p) || is_digit(*p)) p++;  // "name: Tensor": the name is for readers
    if (!accept(':')) p = begin;
    s.differentiable |= uint32_t(out_type()) << s.n_outs++;
  }
}

}  // namespace

int64_t max_schema_args(const char* text) noexcept {
  int64_t n = 1;  // one more than there can be: the parser fills an argument before it misses the ":"
  for (; *text; text++) n += *text == ':';
  return n;
}

void parse_schema(const char* text, ParsedSchema& s) {
  Parser in{text, text, s.names};
  s.name = in.identifier("the operator's name", true);
  s.n_args = 0;
  in.expect('(', "\"(\" and the arguments");
  while (!in.accept(')')) {
    if (s.n_args) in.expect(',', "\",\" or \")\"");
    if (s.n_args == 64) in.fail_at("at most 64 arguments");
    ArgInfo& a = s.args[s.n_args];
    in.argument(a);
    for (int32_t i = 0; i < s.n_args; i++)
      if (!strcmp(s.args[i].name, a.name)) fail_arg(TT_INVALID_ARG, "schema", "schema \"{}\": two arguments are called {}", text, a.name);
    s.n_args++;
  }
  in.skip_space();
  if (in.p[0] != '-' || in.p[1] != '>') in.fail_at("\"->\" and the result's type");
  in.p += 2;
  in.outs(s);
  in.skip_space();
  if (*in.p) in.fail_at("the end");
}

}  // namespace TT_NS
