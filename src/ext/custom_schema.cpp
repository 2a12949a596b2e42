#include "ext/custom_schema.h"

#include <string.h>

namespace TT_NS {

namespace {

// The defaults that a type of argument accepts.
enum Takes : uint8_t { kTakesNone = 1, kTakesInt = 2, kTakesFloat = 4, kTakesBool = 8 };
struct TypeName {
  const char* text;
  ArgType type;
  uint8_t takes;
};
constexpr TypeName kTypes[] = {
    {"Tensor", ArgType::kTensor, 0},
    {"Tensor?", ArgType::kOptTensor, kTakesNone},
    {"Tensor[]", ArgType::kTensorList, 0},
    {"Tensor?[]", ArgType::kOptTensorList, 0},
    {"Scalar", ArgType::kScalar, kTakesInt | kTakesFloat | kTakesBool},
    {"Scalar?", ArgType::kOptScalar, kTakesNone | kTakesInt | kTakesFloat | kTakesBool},
    {"Float", ArgType::kFloat, kTakesInt | kTakesFloat},
    {"Float?", ArgType::kOptFloat, kTakesNone | kTakesInt | kTakesFloat},
    {"Int", ArgType::kInt, kTakesInt},
    {"Int?", ArgType::kOptInt, kTakesNone | kTakesInt},
    {"Bool", ArgType::kBool, kTakesBool},
    {"Bool?", ArgType::kOptBool, kTakesNone | kTakesBool},
    {"Dim", ArgType::kDim, kTakesInt},
    {"Dim?", ArgType::kOptDim, kTakesNone | kTakesInt},
    {"Dims", ArgType::kDims, kTakesNone},
    {"Dims?", ArgType::kOptDims, kTakesNone},
    {"Index", ArgType::kIndex, kTakesInt},
    {"Index?", ArgType::kOptInt, kTakesNone | kTakesInt},
    {"Size", ArgType::kSize, kTakesNone},
    {"Shape", ArgType::kShape, kTakesNone},
    {"Index[]", ArgType::kIndices, 0},
    {"DType", ArgType::kDtype, 0},
    {"DType?", ArgType::kDtype, kTakesNone},
    {"Device", ArgType::kDevice, 0},
    {"Device?", ArgType::kDevice, kTakesNone},
    {"Str", ArgType::kStr, 0},
    {"Generator", ArgType::kGenerator, kTakesNone},
    {"MemoryFormat", ArgType::kMemoryFormat, kTakesInt}};

struct Parser {
  using Str = Span<const char>;
  const char* text;
  const char* p;
  char* names;

  [[noreturn]] TT_COLD void fail_at(const char* want) {
    fail_arg(TT_INVALID_ARG, "schema", "schema \"{}\": at character {}: must be {}", text,
             int64_t(p - text), want);
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
  static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  // Copies an identifier into the names; the name of an operator may contain dots.
  const char* identifier(const char* want, bool dots) {
    skip_space();
    if (!is_letter(*p)) fail_at(want);
    char* begin = names;
    while (is_letter(*p) || is_digit(*p) || (dots && *p == '.')) *names++ = *p++;
    *names++ = 0;
    return begin;
  }
  // Reads the longest run of characters that type names consist of.
  Str word() {
    skip_space();
    const char* begin = p;
    while (is_letter(*p) || *p == '?' || *p == '[' || *p == ']' || *p == '!') p++;
    return {begin, int64_t(p - begin)};
  }
  const TypeName& type();
  void default_value(ArgInfo& a, const TypeName& type);
  void number(ArgInfo& a);
  void argument(ArgInfo& a);
  bool out_type();
  void outs(ParsedSchema& s);

  static bool is(Str w, const char* s) {
    return int64_t(strlen(s)) == w.n && memcmp(w.ptr, s, size_t(w.n)) == 0;
  }
};

const TypeName& Parser::type() {
  const char* begin = (skip_space(), p);
  Str w = word();
  for (const TypeName& t : kTypes)
    if (is(w, t.text)) return t;
  p = begin;
  if (w.n && w.back() == '!')
    fail_at("a type without \"!\": custom operators do not write their arguments");
  fail_at(
      "a type, such as Tensor, Tensor?, Tensor[], Scalar, Float, Int, Bool, Dim, Dims, Size, "
      "DType, Device or Str");
}

// [+-]digits[.digits][e[+-]digits]: an integer, or a float of up to 18 digits.
void Parser::number(ArgInfo& a) {
  const char* begin = p;
  const bool negative = *p == '-';
  if (*p == '-' || *p == '+') p++;
  int64_t mantissa = 0;
  int32_t scale = 0;
  int32_t digits = 0;
  bool real = false;
  for (; is_digit(*p) || (*p == '.' && !real); p++) {
    if (*p == '.') {
      real = true;
    } else {
      if (++digits > 18) {
        p = begin;
        fail_at("a number of at most 18 digits");
      }
      mantissa = mantissa * 10 + (*p - '0');
      scale -= real;
    }
  }
  if (!digits) {
    p = begin;
    fail_at("a number, true, false, None or []");
  }
  if (*p == 'e' || *p == 'E') {
    real = true;
    p++;
    const bool down = *p == '-';
    if (*p == '-' || *p == '+') p++;
    int32_t e = 0;
    if (!is_digit(*p)) fail_at("an exponent");
    for (; is_digit(*p); p++) e = e < 1000 ? e * 10 + (*p - '0') : e;
    scale += down ? -e : e;
  }
  if (!real) {
    a.fallback = ArgDefault::kInt;
    a.value.i = negative ? -mantissa : mantissa;
    return;
  }
  long double v = mantissa, power = 1;  // powers of ten up to 10^27 are exact
  for (int32_t i = 0; i < (scale < 0 ? -scale : scale) && i < 5000; i++) power *= 10;
  v = scale < 0 ? v / power : v * power;
  a.fallback = ArgDefault::kFloat;
  a.value.f = double(negative ? -v : v);
}

void Parser::default_value(ArgInfo& a, const TypeName& type) {
  skip_space();
  if (is_digit(*p) || *p == '-' || *p == '+' || *p == '.') {
    number(a);
  } else {
    const char* begin = p;
    Str w = word();
    if (is(w, "true") || is(w, "false")) {
      a.fallback = ArgDefault::kBool;
      a.value.i = w.n == 4;
    } else if (is(w, "contiguous") || is(w, "preserve")) {
      a.fallback = ArgDefault::kInt;
      a.value.i = w[0] == 'c' ? TT_CONTIGUOUS : TT_PRESERVE;
    } else if (!is(w, "None") && !is(w, "[]")) {
      p = begin;
      fail_at("a number, true, false, None or []");
    }
  }
  constexpr uint8_t kTakes[] = {kTakesNone, kTakesInt, kTakesFloat, kTakesBool};  // by ArgDefault
  if (!(type.takes & kTakes[int(a.fallback)])) fail_at("a default of the argument's type");
  a.has_default = true;
}

void Parser::argument(ArgInfo& a) {
  a = ArgInfo{};
  a.name = identifier("an argument's name", false);
  expect(':', "\":\" and the argument's type");
  const TypeName& t = type();
  a.type = t.type;
  if (accept('=')) {
    default_value(a, t);
  } else if (t.type == ArgType::kDtype || t.type == ArgType::kDevice) {
    a.has_default = t.takes & kTakesNone;  // these types have no separate optional form
  }
}

// Returns whether the output is differentiable.
bool Parser::out_type() {
  const char* begin = (skip_space(), p);
  Str w = word();
  if (is(w, "Tensor")) return true;
  if (!is(w, "IndexTensor") && !is(w, "BoolTensor")) {
    p = begin;
    fail_at("Tensor, IndexTensor, BoolTensor, or a list of them in parentheses");
  }
  return false;
}

void Parser::outs(ParsedSchema& s) {
  s.n_outs = 0;
  s.differentiable = 0;
  if (!accept('(')) {
    s.differentiable = out_type();
    s.n_outs = 1;
    return;
  }
  while (!accept(')')) {
    if (s.n_outs == kMaxCustomOuts) fail_at("at most 32 outputs");
    if (s.n_outs) expect(',', "\",\" or \")\"");
    const char* begin = (skip_space(), p);
    while (is_letter(*p) || is_digit(*p)) p++;  // "name: Tensor": the name is documentation
    if (!accept(':')) p = begin;
    s.differentiable |= uint32_t(out_type()) << s.n_outs++;
  }
}

}  // namespace

int64_t max_schema_args(const char* text) noexcept {
  // One more than possible: the parser fills an argument before it finds the ":" missing.
  int64_t n = 1;
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
      if (!strcmp(s.args[i].name, a.name))
        fail_arg(TT_INVALID_ARG, "schema", "schema \"{}\": two arguments are named {}", text,
                 a.name);
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
