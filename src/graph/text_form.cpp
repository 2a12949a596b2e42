#include "graph/text_form.h"

#include "base/text/format.h"
#include "core/shape.h"
#include "graph/arg_check.h"

#include <string.h>

namespace TT_NS {

static constexpr const char* kRoles[] = {"input", "state", "constant", "made"};

// ---- writing ----

namespace {

class Writer {
 public:
  Writer(const Graph& g, Text& out) : g_(g), out_(out) {}
  void run();

 private:
  template <class T> void list(Span<const T> items);
  void string(Span<const char> s);
  void number(double v);
  void storage(const IrStorage& s);
  void value(const IrValue& v);
  void generator_number(const Ref<Generator>& g);
  void collect(const Ref<Generator>& g);
  void node(const IrNode& n);
  void arg(const IrArg& a);
  void scalar(const Scalar& s);
  Text& word(int64_t v) { return out_.add(" ").add(v); }

  const Graph& g_;
  Text& out_;
  SmallVec<Ref<Generator>, 1> generators_;
};

template <class T> void Writer::list(Span<const T> items) {
  out_.add("[");
  for (int64_t i = 0; i < items.n; i++) out_.add(i ? "," : "").add(int64_t(items[i]));
  out_.add("]");
}
void Writer::string(Span<const char> s) {
  out_.add("\"");
  for (const char c : s) {
    if (uint8_t(c) < 0x20 || c == '"' || c == '\\' || uint8_t(c) >= 0x7f) {
      const char hex[] = {'\\', "0123456789abcdef"[uint8_t(c) >> 4],
                          "0123456789abcdef"[uint8_t(c) & 15]};
      out_.add({hex, 3});
    } else {
      out_.add({&c, 1});
    }
  }
  out_.add("\"");
}
void Writer::number(double v) {
  char digits[32];
  out_.add({digits, format_hex(digits, v)});
}

void Writer::storage(const IrStorage& s) {
  if (s.device.type != TT_CPU)
    fail(TT_NOT_IMPLEMENTED, "the graph uses {}: only graphs of the CPU can be saved",
         fmt(s.device));
  out_.add("storage ").add(kRoles[int(s.role)]);
  word(s.bytes);
  word(s.version);
  word(s.writable);
  out_.add(" ");
  string(s.name.span());
  out_.add("\n");
}
void Writer::value(const IrValue& v) {
  out_.add("value");
  word(v.storage);
  word(v.version);
  const FmtArg dtype[] = {fmt(v.dtype)};
  char name[32];
  out_.add(" ").add({name, format_to(name, sizeof name, "{}", dtype)});
  word(v.offset);
  out_.add(" ");
  list(v.sizes.span());
  out_.add(" ");
  list(v.strides.span());
  word(v.node);
  word(v.out);
  out_.add("\n");
}

void Writer::collect(const Ref<Generator>& g) {
  if (!g) return;
  for (const Ref<Generator>& known : generators_)
    if (known.get() == g.get()) return;
  generators_.push_back(g);
}
void Writer::generator_number(const Ref<Generator>& g) {
  int64_t at = -1;
  for (int64_t i = 0; i < generators_.size(); i++)
    if (generators_[i].get() == g.get()) at = i;
  out_.add(at);
}

void Writer::scalar(const Scalar& s) {
  if (s.is_bool() || s.is_int()) {
    out_.add(s.is_bool() ? "sb" : "si").add(s.i);
    return;
  }
  out_.add(s.is_complex() ? "sc" : "sf");
  number(s.re);
  if (!s.is_complex()) return;
  out_.add(",");
  number(s.im);
}

void Writer::arg(const IrArg& a) {
  switch (a.kind) {
    case Value::kNone: out_.add("none"); return;
    case Value::kTensor: out_.add("%").add(int64_t(a.values[0])); return;
    case Value::kTensorList:
      out_.add("%");
      list(a.values.span());
      return;
    case Value::kScalar: scalar(a.scalar); return;
    case Value::kInt: out_.add("i").add(a.i); return;
    case Value::kFloat:
      out_.add("f");
      number(a.f);
      return;
    case Value::kBool: out_.add("b").add(int64_t(a.i != 0)); return;
    case Value::kInts: list(a.ints.span()); return;
    case Value::kStr: string(a.text.span()); return;
    case Value::kGenerator:
      out_.add("g");
      generator_number(a.generator);
      return;
    case Value::kDevice:
      if (a.i >> 8 != TT_CPU) fail(TT_NOT_IMPLEMENTED, "only graphs of the CPU can be saved");
      out_.add("d").add(a.i >> 8).add(":").add(int64_t(int8_t(a.i & 0xff)));
      return;
    case Value::kIndices:
      out_.add("x[");
      for (int64_t i = 0; i < a.index.size(); i++) {
        const tt_index& at = a.index[i];
        out_.add(i ? "," : "").add(int64_t(at.kind)).add(":").add(int64_t(at.has)).add(":");
        out_.add(at.start).add(":").add(at.stop).add(":").add(at.step);
      }
      out_.add("]@");
      list(a.values.span());
      return;
    case Value::kObject: out_.add("o"); return;
    case Value::kRng:
      out_.add("r").add(int64_t(a.draw)).add("+").add(int64_t(a.counters_before));
      return;
  }
}
void Writer::node(const IrNode& n) {
  out_.add("node ").add(n.op->name());
  word(n.n_results);
  word(n.scope);
  word(n.reads);
  out_.add(" ");
  list(n.outs.span());
  for (int64_t i = 0; i < n.args.size(); i++) {
    out_.add(" ").add(n.op->schema->args[i].name).add("=");
    arg(n.args[i]);
  }
  out_.add("\n");
}

void Writer::run() {
  out_.add("ttg ").add(kGraphFormVersion).add("\n");
  for (const IrStorage& s : g_.storages) storage(s);
  for (const IrValue& v : g_.values) value(v);
  for (const IrScope& s : g_.scopes) {
    out_.add("scope ").add(int64_t(s.outer)).add(" ");
    string(s.name.span());
    out_.add("\n");
  }
  for (const IrDraw& d : g_.draws) collect(d.generator);
  for (const IrNode& n : g_.nodes)
    for (const IrArg& a : n.args) collect(a.generator);
  for (const Ref<Generator>& g : generators_) {
    const Rng state = g->state();
    out_.add("generator ").add(int64_t(state.seed)).add(" ").add(int64_t(state.offset)).add("\n");
  }
  for (const IrDraw& d : g_.draws) {
    out_.add("draw ").add(int64_t(d.counters)).add(" ").add(int64_t(d.node)).add(" ");
    generator_number(d.generator);
    out_.add("\n");
  }
  for (const IrNode& n : g_.nodes) node(n);
  out_.add("inputs ");
  list(g_.inputs.span());
  out_.add("\noutputs ");
  list(g_.outputs.span());
  out_.add("\n");
}

}  // namespace

void write_graph(const Graph& g, Text& out) { Writer(g, out).run(); }

bool has_objects(const Graph& g) noexcept {
  for (const IrNode& n : g.nodes)
    for (const IrArg& a : n.args)
      if (a.kind == Value::kObject) return true;
  return false;
}

// ---- reading ----

Dtype dtype_of_name(Span<const char> name) noexcept {
  for (int d = TT_BOOL; d <= TT_U64; d++) {
    const FmtArg dtype[] = {fmt_dtype(d)};
    char text[32];
    const int64_t n = format_to(text, sizeof text, "{}", dtype);
    if (n == name.n && memcmp(text, name.ptr, size_t(n)) == 0) return Dtype(d);
  }
  return Dtype::kNone;
}

namespace {

class Reader {
 public:
  Reader(const char* path, char* text, const OpFinder& ops, Graph& g)
      : path_(path), p_(text), ops_(ops), g_(g) {}
  void run();

 private:
  [[noreturn]] void bad(const char* why) const {
    fail_arg(TT_FORMAT, "path", "\"{}\": line {} of the graph: {}", path_, line_, why);
  }
  bool at(const char* word);  // skips the word and the space behind it if it is next
  bool skip(char c);
  void need(char c) {
    if (!skip(c)) bad("malformed");
  }
  Span<const char> word();  // up to a space, "=" or the end of the line
  int64_t integer();
  int64_t between(int64_t low, int64_t high, const char* why);
  double number();
  void string(Text& out);
  template <class T, int N> void list(SmallVec<T, N>& out, int64_t low, int64_t high);
  void end_of_line();

  void storage();
  void value();
  void scope();
  void generator();
  void draw();
  void node();
  void arg(const ArgInfo& info, IrArg& a);
  void read_index(IrArg& a);
  void read_scalar(Scalar& s);
  void check_kind(const ArgInfo& info, const IrArg& a) const;
  int64_t n_values() const { return g_.values.size(); }

  const char* path_;
  char* p_;
  const OpFinder& ops_;
  Graph& g_;
  int64_t line_ = 1;
  SmallVec<Ref<Generator>, 1> generators_;
};

bool Reader::skip(char c) {
  if (*p_ != c) return false;
  p_++;
  return true;
}
bool Reader::at(const char* word) {
  const size_t n = strlen(word);
  if (strncmp(p_, word, n) != 0 || p_[n] != ' ') return false;
  p_ += n + 1;
  return true;
}
Span<const char> Reader::word() {
  const char* begin = p_;
  while (*p_ && *p_ != ' ' && *p_ != '=' && *p_ != '\n') p_++;
  if (p_ == begin) bad("a word is missing");
  return {begin, p_ - begin};
}
int64_t Reader::integer() {
  const bool negative = skip('-');
  if (*p_ < '0' || *p_ > '9') bad("expected an integer");
  int64_t v = 0;
  for (; *p_ >= '0' && *p_ <= '9'; p_++) {
    const int64_t digit = negative ? '0' - *p_ : *p_ - '0';
    if (mul_overflow(v, 10, &v) || add_overflow(v, digit, &v)) bad("an integer is too large");
  }
  return v;
}
int64_t Reader::between(int64_t low, int64_t high, const char* why) {
  const int64_t v = integer();
  if (v < low || v > high) bad(why);
  return v;
}
double Reader::number() {
  const char* begin = p_;
  while (*p_ && *p_ != ' ' && *p_ != ',' && *p_ != '\n') p_++;
  double v;
  if (!parse_hex({begin, p_ - begin}, &v)) bad("malformed number");
  return v;
}
static int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
void Reader::string(Text& out) {
  need('"');
  while (*p_ != '"') {
    char c = *p_;
    if (!c || c == '\n') bad("a string has no end");
    p_++;
    if (c == '\\') {
      const int high = digit_of(p_[0]);
      const int low = high < 0 ? -1 : digit_of(p_[1]);
      if (low < 0) bad("malformed escape in a string");
      c = char(high << 4 | low);
      p_ += 2;
    }
    out.add({&c, 1});
  }
  p_++;
}
template <class T, int N> void Reader::list(SmallVec<T, N>& out, int64_t low, int64_t high) {
  need('[');
  if (skip(']')) return;
  for (;;) {
    out.push_back(T(between(low, high, "a position or size is out of range")));
    if (skip(']')) return;
    need(',');
  }
}
void Reader::end_of_line() {
  if (!skip('\n')) bad("text after the end of a record");
  line_++;
}

void Reader::storage() {
  IrStorage s;
  int role = -1;
  for (int k = 0; k < 4 && role < 0; k++)
    if (at(kRoles[k])) role = k;
  if (role < 0) bad("unknown role of a storage");
  s.role = IrRole(role);
  s.bytes = between(0, INT64_MAX / 2, "a storage has a senseless size");
  need(' ');
  s.version = uint32_t(between(0, UINT32_MAX, "a version is out of range"));
  need(' ');
  s.writable = between(0, 1, "expected 0 or 1");
  need(' ');
  string(s.name);
  g_.storages.push_back(std::move(s));
}

void Reader::value() {
  IrValue v;
  v.storage = int32_t(between(0, g_.storages.size() - 1, "a value has no storage"));
  need(' ');
  v.version = uint32_t(between(0, UINT32_MAX, "a version is out of range"));
  need(' ');
  v.dtype = dtype_of_name(word());
  if (v.dtype == Dtype::kNone) bad("unknown dtype");
  if (!is_built(int32_t(v.dtype))) bad("a dtype that this build of tt has not");
  need(' ');
  IrStorage& s = g_.storages[v.storage];
  v.offset = between(0, INT64_MAX / 2, "an offset is out of range");
  if (v.offset % item_size(real_of(v.dtype))) bad("a value is not aligned");
  need(' ');
  list(v.sizes, 0, INT64_MAX / 2);
  need(' ');
  list(v.strides, -kMaxIdleStride, kMaxIdleStride);
  if (v.sizes.size() > kMaxDims || v.sizes.size() != v.strides.size())
    bad("a value has more than 64 dimensions, or not one stride for each");
  int64_t bytes = item_size(v.dtype);
  for (const int64_t size : v.sizes)
    if (mul_overflow(bytes, max<int64_t>(size, 1), &bytes)) bad("a shape overflows");
  need(' ');
  v.node = int32_t(between(-1, INT32_MAX - 1, "a node is out of range"));
  need(' ');
  v.out = int32_t(between(-1, INT32_MAX - 1, "a result is out of range"));
  v.previous = s.last_value;
  s.last_value = int32_t(n_values());
  if (n_values() == INT32_MAX) bad("too many values");
  g_.values.push_back(std::move(v));
}

void Reader::scope() {
  IrScope s;
  s.outer = int32_t(between(-1, g_.scopes.size() - 1, "a scope is out of range"));
  need(' ');
  string(s.name);
  g_.scopes.push_back(std::move(s));
}
void Reader::generator() {
  const int64_t seed = integer();
  need(' ');
  const int64_t offset = integer();
  Ref<Generator> g = new_generator(uint64_t(seed));
  g->set({uint64_t(seed), uint64_t(offset)});
  generators_.push_back(std::move(g));
}
void Reader::draw() {
  IrDraw d;
  d.counters = uint64_t(between(0, INT64_MAX, "a number of counters is out of range"));
  need(' ');
  d.node = int32_t(between(0, INT32_MAX, "a node is out of range"));
  need(' ');
  const int64_t at = between(-1, generators_.size() - 1, "a generator is out of range");
  if (at >= 0) d.generator = generators_[at];
  g_.draws.push_back(std::move(d));
}

void Reader::read_scalar(Scalar& s) {
  switch (*p_++) {
    case 'b': s = Scalar(between(0, 1, "expected 0 or 1") != 0); return;
    case 'i': s = Scalar(integer()); return;
    case 'f': s = Scalar(number()); return;
    case 'c': {
      const double re = number();
      need(',');
      s = Scalar::complex(re, number());
      return;
    }
    default: bad("unknown kind of number");
  }
}
void Reader::read_index(IrArg& a) {
  need('[');
  int64_t tensors = 0;
  while (!skip(']')) {
    if (!a.index.empty()) need(',');
    tt_index at{};
    at.kind = int32_t(between(TT_IDX_INT, TT_IDX_TENSOR, "unknown kind of index"));
    need(':');
    at.has = uint32_t(between(0, 7, "malformed slice"));
    need(':');
    at.start = integer();
    need(':');
    at.stop = integer();
    need(':');
    at.step = integer();
    tensors += at.kind == TT_IDX_TENSOR;
    a.index.push_back(at);
  }
  need('@');
  list(a.values, 0, n_values() - 1);
  if (a.values.size() != tensors) bad("an index has not one value for each tensor");
}

void Reader::arg(const ArgInfo& info, IrArg& a) {
  const Span<const char> name = word();
  if (size_t(name.n) != strlen(info.name) || memcmp(name.ptr, info.name, size_t(name.n)) != 0)
    bad("an argument has another name than in this version of tt");
  need('=');
  const auto is = [&](char c, Value::Kind kind) {
    if (*p_ != c) return false;
    p_++;
    a.kind = kind;
    return true;
  };
  if (strncmp(p_, "none", 4) == 0) {
    p_ += 4;
  } else if (is('%', Value::kTensor)) {
    if (*p_ == '[') {
      a.kind = Value::kTensorList;
      list(a.values, -1, n_values() - 1);
    } else {
      a.values.push_back(int32_t(between(-1, n_values() - 1, "a value is out of range")));
    }
  } else if (is('s', Value::kScalar)) {
    read_scalar(a.scalar);
  } else if (is('i', Value::kInt)) {
    a.i = integer();
  } else if (is('f', Value::kFloat)) {
    a.f = number();
  } else if (is('b', Value::kBool)) {
    a.i = between(0, 1, "expected 0 or 1");
  } else if (*p_ == '[') {
    a.kind = Value::kInts;
    list(a.ints, INT64_MIN, INT64_MAX);
  } else if (*p_ == '"') {
    a.kind = Value::kStr;
    string(a.text);
  } else if (is('g', Value::kGenerator)) {
    const int64_t at = between(-1, generators_.size() - 1, "a generator is out of range");
    if (at >= 0) a.generator = generators_[at];
  } else if (is('d', Value::kDevice)) {
    const int64_t type = integer();
    need(':');
    const int64_t index = between(0, 127, "a device is out of range");
    if (type != TT_CPU) bad("a device other than the CPU");
    a.i = type << 8 | index;
  } else if (is('o', Value::kObject)) {
    // graph_file.cpp has it read
  } else if (is('x', Value::kIndices)) {
    read_index(a);
  } else if (is('r', Value::kRng)) {
    a.draw = int32_t(between(0, g_.draws.size() - 1, "a draw is out of range"));
    need('+');
    a.counters_before = uint64_t(
        between(0, int64_t(g_.draws[a.draw].counters), "numbers behind those that are drawn"));
  } else {
    bad("unknown kind of argument");
  }
  check_kind(info, a);
}

void Reader::check_kind(const ArgInfo& info, const IrArg& a) const {
  if (const char* why = why_not(info, a, ops_.is_enum)) bad(why);
}

void Reader::node() {
  IrNode n;
  n.cuda_math = ctx().cuda_math;  // files do not have it
  Text name;
  name.add(word());
  n.op = ops_.find(ops_.user, name.c_str());
  if (!n.op)
    fail_arg(TT_FORMAT, "path", "\"{}\": line {} of the graph: there is no operator \"{}\"", path_,
             line_, name.c_str());
  const OpSchema& s = *n.op->schema;
  need(' ');
  n.n_results = int32_t(between(0, INT32_MAX, "a number of results is out of range"));
  need(' ');
  n.scope = int32_t(between(-1, g_.scopes.size() - 1, "a scope is out of range"));
  need(' ');
  n.reads = between(0, 1, "expected 0 or 1");
  need(' ');
  list(n.outs, -1, n_values() - 1);
  if (n.n_results > n.outs.size()) bad("a node has more results than outs");
  for (int32_t i = 0; i < s.n_args; i++) {
    if (!skip(' ')) bad("an argument is missing");
    IrArg a;
    arg(s.args[i], a);
    n.args.push_back(std::move(a));
  }
  if (g_.nodes.size() == INT32_MAX) bad("too many nodes");
  g_.nodes.push_back(std::move(n));
}

void Reader::run() {
  if (!at("ttg")) bad("no graph of tt");
  if (integer() != kGraphFormVersion) bad("written by another version of tt");
  end_of_line();
  bool inputs = false;
  bool outputs = false;
  while (*p_ && !outputs) {
    if (at("storage")) {
      storage();
    } else if (at("value")) {
      value();
    } else if (at("scope")) {
      scope();
    } else if (at("generator")) {
      generator();
    } else if (at("draw")) {
      draw();
    } else if (at("node")) {
      node();
    } else if (!inputs && at("inputs")) {
      list(g_.inputs, 0, n_values() - 1);
      inputs = true;
    } else if (inputs && at("outputs")) {
      list(g_.outputs, 0, n_values() - 1);
      outputs = true;
    } else {
      bad("unknown record");
    }
    end_of_line();
  }
  if (*p_ || !outputs) bad("the graph must end with inputs and outputs");
}

}  // namespace

Ref<Graph> read_graph(const char* path, char* text, const OpFinder& ops) {
  Ref<Graph> g = new_graph();
  Reader(path, text, ops, *g.get()).run();
  return g;
}

}  // namespace TT_NS
