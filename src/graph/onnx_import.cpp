#include "graph/onnx_import.h"

#include "base/arith.h"
#include "base/name_map.h"
#include "core/graph_hooks.h"
#include "core/shape.h"
#include "graph/capture.h"
#include "ops/gen/ops.h"
#include "plan/recurrent_plan.h"

#include <math.h>
#include <string.h>

namespace TT_NS {

namespace {

// Constants up to this size are computed at once, so that shapes may depend on them.
constexpr int64_t kSmall = 1024;
constexpr int64_t kMaxMade = 1 << 20;      // elements of a constant that a node makes
constexpr int64_t kMaxComputed = 1 << 24;  // of all of them
constexpr int64_t kMaxUnrolled = 4096;     // steps that become nodes of their own
constexpr int64_t kMaxDepth = 8;           // of branches in branches
constexpr int64_t kMaxDims = 16;

[[noreturn]] void fail_format(const char* what) { fail(TT_FORMAT, "not an ONNX model: {}", what); }

// ---- the wire format ----

struct Field {
  int64_t number = 0;
  uint64_t varint = 0;     // wire type 0; the bits of types 1 and 5
  Span<const char> bytes;  // wire type 2
  int wire = 0;
  int64_t integer() const { return int64_t(varint); }
  float real() const {
    const auto bits = uint32_t(varint);
    float v;
    memcpy(&v, &bits, 4);
    return v;
  }
};

// The fields of a message, one after the other.
class Message {
 public:
  explicit Message(Span<const char> bytes) : at_(bytes.ptr), end_(bytes.ptr + bytes.n) {}
  bool next(Field& f) {
    if (at_ == end_) return false;
    const uint64_t tag = varint();
    f.number = int64_t(tag >> 3);
    f.wire = int(tag & 7);
    f.bytes = {};
    f.varint = 0;
    if (f.wire == 0) {
      f.varint = varint();
    } else if (f.wire == 1 || f.wire == 5) {
      memcpy(&f.varint, take(f.wire == 1 ? 8 : 4), f.wire == 1 ? 8 : 4);
    } else if (f.wire == 2) {
      const uint64_t n = varint();
      if (n > uint64_t(end_ - at_)) fail_format("a field is longer than its message");
      f.bytes = {take(int64_t(n)), int64_t(n)};
    } else {
      fail_format("a field has an unknown wire type");
    }
    return true;
  }
  uint64_t varint() {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = uint8_t(*take(1));
      v |= uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80) return v;
    }
    fail_format("a number has more than 10 bytes");
  }
  bool done() const { return at_ == end_; }

 private:
  const char* take(int64_t n) {
    if (n > end_ - at_) fail_format("it ends inside a field");
    const char* p = at_;
    at_ += n;
    return p;
  }
  const char *at_, *end_;
};

// A repeated number: one of the field, or several packed.
template <int N> void add_integers(SmallVec<int64_t, N>& list, const Field& f) {
  if (f.wire != 2) {
    list.push_back(f.integer());
    return;
  }
  for (Message m(f.bytes); !m.done();) list.push_back(int64_t(m.varint()));
}

bool is(Name name, const char* text) { return equal(name, name_of(text)); }

Dtype dtype_of(int64_t type) {
  switch (type) {
    case 1: return Dtype::kF32;
    case 2: return Dtype::kU8;
    case 3: return Dtype::kI8;
    case 5: return Dtype::kI16;
    case 6: return Dtype::kI32;
    case 7: return Dtype::kI64;
    case 9: return Dtype::kBool;
    case 10: return Dtype::kF16;
    case 11: return Dtype::kF64;
    case 16: return Dtype::kBF16;
    default: fail(TT_NOT_IMPLEMENTED, "ONNX's dtype {} has no counterpart", type);
  }
}

TensorRef integers(Ints list) {
  TensorRef t = new_tensor(Ints(&list.n, 1), Dtype::kI64, kCpuDevice);
  if (list.n) memcpy(t->data, list.ptr, size_t(list.n) * 8);
  return t;
}

// A repeated float: one of the field, or several packed.
template <int N> void add_reals(SmallVec<float, N>& list, const Field& f) {
  if (f.wire != 2) {
    list.push_back(f.real());
    return;
  }
  for (int64_t at = 0; at + 4 <= f.bytes.n; at += 4) {
    float v;
    memcpy(&v, f.bytes.ptr + at, 4);
    list.push_back(v);
  }
}

// A TensorProto: its elements are bytes, floats (float32) or integers (all but doubles).
struct TensorMessage {
  explicit TensorMessage(Span<const char> bytes);
  // files: NULL if the tensor must be in the model.
  TensorRef tensor(OnnxFiles* files = nullptr) const;

  Name name = name_of("");

 private:
  void store(Tensor& t) const;
  void read_entry(Span<const char> entry);
  void check_file(OnnxFiles& files, int64_t bytes) const;

  Shape sizes_;
  int64_t type_ = 0;
  bool outside_ = false;  // the elements are in a file, at [offset, offset + length)
  Name file_ = name_of("");
  int64_t offset_ = 0, length_ = -1;
  bool has_raw_ = false;
  Span<const char> raw_;
  SmallVec<int64_t, 8> integers_;
  SmallVec<float, 8> reals_;
};

TensorMessage::TensorMessage(Span<const char> bytes) {
  Field f;
  for (Message m(bytes); m.next(f);) {
    switch (f.number) {
      case 1: add_integers(sizes_, f); break;
      case 2: type_ = f.integer(); break;
      case 4: add_reals(reals_, f); break;
      case 5:
      case 7: add_integers(integers_, f); break;
      case 8: name = f.bytes; break;
      case 9:
      case 10:  // packed doubles
        raw_ = f.bytes;
        has_raw_ = true;
        break;
      case 13: read_entry(f.bytes); break;
      case 14: outside_ = f.integer() == 1; break;
      default: break;
    }
  }
}

// A number without sign; fails unless it is one.
int64_t number_of(Name text) {
  int64_t v = 0;
  if (!text.n || text.n > 18) fail_format("a place in a file is no number");
  for (int64_t i = 0; i < text.n; i++) {
    if (text[i] < '0' || text[i] > '9') fail_format("a place in a file is no number");
    v = v * 10 + (text[i] - '0');
  }
  return v;
}
void TensorMessage::read_entry(Span<const char> entry) {
  Name key = name_of(""), value = name_of("");
  Field f;
  for (Message m(entry); m.next(f);) {
    if (f.number == 1) key = f.bytes;
    if (f.number == 2) value = f.bytes;
  }
  if (is(key, "location")) file_ = value;
  if (is(key, "offset")) offset_ = number_of(value);
  if (is(key, "length")) length_ = number_of(value);
}

// Fails unless the file has the bytes. A path must stay in the folder of the model.
void TensorMessage::check_file(OnnxFiles& files, int64_t bytes) const {
  if (length_ >= 0 && length_ != bytes) fail_format("a tensor has not the bytes of its shape");
  bool plain = file_.n > 0 && file_.n < 512 && file_[0] != '/';
  for (int64_t i = 0; i < file_.n && plain; i++) {
    const bool dots = file_[i] == '.' && i + 1 < file_.n && file_[i + 1] == '.';
    const bool begins = i == 0 || file_[i - 1] == '/';
    plain = uint8_t(file_[i]) >= ' ' && file_[i] != '\\' && file_[i] != ':' && !(dots && begins);
  }
  if (!plain)
    fail_format("the path of a file of tensors must be relative and stay in the model's folder");
  const int64_t size = files.open(files, file_);
  if (offset_ > size || bytes > size - offset_) fail_format("a file of tensors is too short");
}

TensorRef TensorMessage::tensor(OnnxFiles* files) const {
  const Dtype dtype = dtype_of(type_);
  if (sizes_.size() > kMaxDims) fail_format("a tensor has too many dimensions");
  for (const int64_t size : sizes_)
    if (size < 0) fail_format("a tensor has a negative size");
  const int64_t numel = checked_numel(sizes_, dtype, "a tensor of the model");
  if (outside_) {
    if (!files) fail(TT_NOT_IMPLEMENTED, "an attribute's tensor in another file than the model");
    check_file(*files, numel * item_size(dtype));
    TensorRef t = new_tensor(sizes_, dtype, kCpuDevice);
    if (numel) files->read(*files, offset_, t->data, numel * item_size(dtype));
    for (int64_t i = 0; dtype == Dtype::kBool && i < numel; i++) t->data[i] = t->data[i] != 0;
    return t;
  }
  int64_t given = dtype == Dtype::kF32 ? reals_.size() : integers_.size();
  if (dtype == Dtype::kF64) given = 0;
  const bool whole = has_raw_ ? raw_.n == numel * item_size(dtype) : given == numel;
  if (!whole) fail_format("a tensor has not the elements of its shape");
  TensorRef t = new_tensor(sizes_, dtype, kCpuDevice);
  store(*t);
  for (int64_t i = 0; dtype == Dtype::kBool && i < numel; i++) t->data[i] = t->data[i] != 0;
  return t;
}

void TensorMessage::store(Tensor& t) const {
  if (t.numel == 0) return;
  if (has_raw_) {
    memcpy(t.data, raw_.ptr, size_t(raw_.n));
    return;
  }
  const bool bits = t.dtype == Dtype::kF16 || t.dtype == Dtype::kBF16;
  for (int64_t i = 0; i < t.numel; i++) {
    char* to = t.data + i * t.item_size();
    if (bits) memcpy(to, &integers_[i], 2);
    else if (t.dtype == Dtype::kF32) memcpy(to, &reals_[i], 4);
    else store_scalar(to, t.dtype, Scalar(integers_[i]));
  }
}
TensorRef read_tensor(Span<const char> bytes) { return TensorMessage(bytes).tensor(); }

// ---- the nodes ----

struct Attr {
  Name name = name_of("");
  float f = 0;
  int64_t i = 0;
  Span<const char> s, tensor, graph;
  SmallVec<int64_t, 4> ints;
  SmallVec<Name, 2> texts;
};

// A tensor of the model.
struct Item {
  Name name = name_of("");
  TensorRef t;
  bool known = false;  // depends on constants only
};

class Importer {
 public:
  Importer(Span<const char> bytes, int64_t dynamic, OnnxFiles* files)
      : bytes_(bytes), dynamic_(dynamic), files_(files) {}
  ~Importer();
  Importer(const Importer&) = delete;
  Ref<Graph> run();

 private:
  void read_graph(Span<const char> graph);
  void read_input(Span<const char> info, SmallVec<TensorRef, 4>& inputs);
  void read_node(Span<const char> node);
  void read_attr(Span<const char> bytes);
  void read_branch();
  void read_constants(Span<const char> graph);
  void call();
  void add(Name name, TensorRef t, bool known);
  const Item& item(Name name) const;

  // ---- the node at hand ----
  [[noreturn]] void refuse(const char* why) const;
  const Attr* attr(const char* name) const;
  int64_t integer(const char* name, int64_t missing) const;
  double real(const char* name, double missing) const;
  bool text_is(const char* name, const char* wanted, bool missing) const;
  bool has(int64_t i) const { return i >= 0 && i < inputs_.size() && inputs_[i].n > 0; }
  const Tensor& in(int64_t i) const;
  const Tensor* opt(int64_t i) const { return has(i) ? &in(i) : nullptr; }
  Shape numbers(int64_t i) const;                    // of a known input
  Shape numbers(int64_t i, const char* name) const;  // of an input, or of an attribute
  double number(int64_t i, double missing) const;
  int64_t whole_number(int64_t i, int64_t missing) const;
  int64_t dim(int64_t d, int64_t ndim) const;
  void give(TensorRef t, bool known = false);
  bool may_compute() const;

  bool elementwise();
  bool product();
  bool image();
  struct Recurrent;
  bool layer();
  void resize();
  void depth_and_space();
  Shape resized_to(int64_t n) const;
  bool recurrent();
  Recurrent read_recurrent() const;
  void check_recurrent(Recurrent& n) const;
  void place_lengths(Recurrent& n) const;
  TensorTriple direction(const Recurrent& n, int64_t d) const;
  TensorRef unrolled_gru(const Recurrent& n, const Tensor& gates, const Tensor& h0,
                         const Tensor& again, bool reverse) const;
  static TensorRef at_steps(const Tensor& t, const Tensor& steps);
  TensorRef gates_of(int64_t i, int64_t direction, int64_t part, int64_t parts, Ints order) const;
  bool reduction();
  bool arrangement();
  bool indexing();
  bool constant();
  Shape axes_of(int64_t i, int64_t ndim) const;
  Shape pads_of(int64_t n, Ints kernel) const;
  void pool(bool largest);
  TensorRef padded(const Tensor& x, const Shape& pads, double v) const;
  void slice();
  void split();
  void gather();
  TensorRef positions(const Tensor& index, int64_t size) const;
  TensorRef row_numbers(const Tensor& data, const Tensor& index) const;
  void scatter_elements();
  void rows_of_many();
  void one_hot();

  const Span<const char> bytes_;
  const int64_t dynamic_;
  OnnxFiles* const files_;
  int64_t opset_ = 0, at_ = 0, depth_ = 0;
  int64_t computed_ = 0;  // elements of constants that nodes have made
  bool running_ = false;
  Name type_;
  SmallVec<Name, 4> inputs_, outputs_;
  SmallVec<Attr, 4> attrs_;
  int64_t n_given_ = 0;
  SmallVec<Item, 16> items_;
  NameMap map_;
};

Importer::~Importer() {
  if (running_) drop_capture(ctx());
}

void Importer::refuse(const char* why) const {
  Text type;
  for (int64_t i = 0; i < min(type_.n, int64_t(64)); i++) {
    const char c = type_[i];
    type.add({c >= ' ' && c < 127 ? &type_[i] : "?", 1});
  }
  fail(TT_NOT_IMPLEMENTED, "node {}, {}: {}", at_, type.c_str(), why);
}

void Importer::add(Name name, TensorRef t, bool known) {
  map_.make_room();
  const int64_t found = map_.find(name, [&](int64_t i) { return items_[i].name; });
  if (found >= 0) fail(TT_FORMAT, "not an ONNX model: node {} makes a name twice", at_);
  items_.push_back({name, std::move(t), known});
  map_.add(name, items_.size() - 1);
}
const Item& Importer::item(Name name) const {
  const int64_t found = map_.find(name, [&](int64_t i) { return items_[i].name; });
  if (found < 0) fail(TT_FORMAT, "not an ONNX model: node {} reads a name before it is made", at_);
  return items_[found];
}

const Attr* Importer::attr(const char* name) const {
  for (const Attr& a : attrs_)
    if (is(a.name, name)) return &a;
  return nullptr;
}
int64_t Importer::integer(const char* name, int64_t missing) const {
  const Attr* a = attr(name);
  return a ? a->i : missing;
}
double Importer::real(const char* name, double missing) const {
  const Attr* a = attr(name);
  return a ? double(a->f) : missing;
}
bool Importer::text_is(const char* name, const char* wanted, bool missing) const {
  const Attr* a = attr(name);
  return a ? is(a->s, wanted) : missing;
}
const Tensor& Importer::in(int64_t i) const {
  if (!has(i)) fail(TT_FORMAT, "not an ONNX model: node {} lacks input {}", at_, i);
  return *item(inputs_[i]).t;
}
Shape Importer::numbers(int64_t i) const {
  in(i);
  const Item& x = item(inputs_[i]);
  if (!x.known || x.t->numel > kSmall) refuse("a shape or a position that depends on inputs");
  if (x.t->dtype != Dtype::kI64 && x.t->dtype != Dtype::kI32) refuse("a shape of no integers");
  Shape list;
  const bool wide = x.t->dtype == Dtype::kI64;
  const int64_t step = x.t->ndim ? x.t->stride(0) : 1;
  if (x.t->ndim > 1) refuse("a shape that is no vector");
  for (int64_t k = 0; k < x.t->numel; k++)
    list.push_back(wide ? x.t->as<int64_t>()[k * step] : x.t->as<int32_t>()[k * step]);
  return list;
}
Shape Importer::numbers(int64_t i, const char* name) const {
  if (has(i)) return numbers(i);
  const Attr* a = attr(name);
  return a ? Shape(a->ints.span()) : Shape();
}
double Importer::number(int64_t i, double missing) const {
  if (!has(i)) return missing;
  const Item& x = item(inputs_[i]);
  if (!x.known || x.t->numel != 1) refuse("a number that depends on inputs");
  return load_scalar(x.t->data, x.t->dtype).real();
}
int64_t Importer::whole_number(int64_t i, int64_t missing) const {
  if (!has(i)) return missing;
  const Shape list = numbers(i);
  if (list.size() != 1) refuse("an input that is no number");
  return list[0];
}
int64_t Importer::dim(int64_t d, int64_t ndim) const { return wrap_dim(d, ndim, "axis"); }
void Importer::give(TensorRef t, bool known) {
  const int64_t k = n_given_++;
  if (k >= outputs_.size() || outputs_[k].n == 0) return;
  add(outputs_[k], std::move(t), known);
}

// ---- elementwise operators ----

bool Importer::elementwise() {
  static constexpr struct {
    const char* onnx;
    TensorRef (*call)(const Tensor&);
  } kUnary[] = {
      {"Abs", op::abs},
      {"Acos", op::acos},
      {"Acosh", op::acosh},
      {"Asin", op::asin},
      {"Asinh", op::asinh},
      {"Atan", op::atan},
      {"Atanh", op::atanh},
      {"Ceil", op::ceil},
      {"Cos", op::cos},
      {"Cosh", op::cosh},
      {"Erf", op::erf},
      {"Exp", op::exp},
      {"Floor", op::floor},
      {"Log", op::log},
      {"Neg", op::neg},
      {"Relu", op::relu},
      {"Reciprocal", op::reciprocal},
      {"Sigmoid", op::sigmoid},
      {"Sign", op::sign},
      {"Sin", op::sin},
      {"Sinh", op::sinh},
      {"Sqrt", op::sqrt},
      {"Tan", op::tan},
      {"Tanh", op::tanh},
      {"Not", op::logical_not},
      {"IsNaN", op::isnan},
      {"IsInf", op::isinf},
      {"Mish", op::mish},
      {"Softsign", op::softsign},
      {"HardSwish", op::hardswish},
      {"BitwiseNot", op::bitwise_not},
  };
  static constexpr struct {
    const char* onnx;
    TensorRef (*call)(const Tensor&, const Tensor&);
  } kBinary[] = {
      {"Mul", op::mul},
      {"And", op::logical_and},
      {"Or", op::logical_or},
      {"Xor", op::logical_xor},
      {"Equal", op::eq},
      {"Greater", op::gt},
      {"GreaterOrEqual", op::ge},
      {"Less", op::lt},
      {"LessOrEqual", op::le},
      {"BitwiseAnd", op::bitwise_and},
      {"BitwiseOr", op::bitwise_or},
      {"BitwiseXor", op::bitwise_xor},
      {"PRelu",
       [](const Tensor& x, const Tensor& slope) {
         return op::where(*op::lt(x, Scalar(0)), *op::mul(x, slope), x);
       }},
  };
  for (const auto& f : kUnary)
    if (is(type_, f.onnx)) return give(f.call(in(0))), true;
  for (const auto& f : kBinary)
    if (is(type_, f.onnx)) return give(f.call(in(0), in(1))), true;
  const auto sum = [](const Tensor& a, const Tensor& b) { return op::add(a, b); };
  const auto all = [&](auto join) {
    TensorRef y = TensorRef::share(&in(0));
    for (int64_t i = 1; i < inputs_.size(); i++) y = join(*y, in(i));
    return y;
  };
  if (is(type_, "Add") || is(type_, "Sum")) return give(all(sum)), true;
  if (is(type_, "Max")) return give(all(op::maximum)), true;
  if (is(type_, "Min")) return give(all(op::minimum)), true;
  if (is(type_, "Sub")) return give(op::sub(in(0), in(1))), true;
  if (is(type_, "Div")) return give(op::div(in(0), in(1), is_float(in(0).dtype) ? 0 : 2)), true;
  if (is(type_, "Pow")) {
    TensorRef y = op::pow(in(0), in(1));
    return give(y->dtype == in(0).dtype ? y : op::to_dtype(*y, in(0).dtype)), true;
  }
  if (is(type_, "Mod"))
    return give(integer("fmod", 0) ? op::fmod(in(0), in(1)) : op::remainder(in(0), in(1))), true;
  if (is(type_, "Where")) return give(op::where(in(0), in(1), in(2))), true;
  if (is(type_, "Round")) return give(op::round(in(0))), true;
  if (is(type_, "Gelu")) return give(op::gelu(in(0), text_is("approximate", "tanh", false))), true;
  if (is(type_, "Elu")) return give(op::elu(in(0), real("alpha", 1))), true;
  if (is(type_, "Celu")) return give(op::celu(in(0), real("alpha", 1))), true;
  if (is(type_, "LeakyRelu")) return give(op::leaky_relu(in(0), real("alpha", 0.01f))), true;
  if (is(type_, "Softplus")) return give(op::softplus(in(0))), true;
  if (is(type_, "HardSigmoid")) {
    const Scalar zero(0), one(1);
    const TensorRef y = op::mul(in(0), Scalar(real("alpha", 0.2f)));
    return give(op::clamp(*op::add(*y, Scalar(real("beta", 0.5))), &zero, &one)), true;
  }
  if (is(type_, "Clip")) {
    const bool old = opset_ < 11;
    const Scalar low(old ? real("min", 0) : number(1, 0)),
        high(old ? real("max", 0) : number(2, 0));
    const bool has_low = old ? attr("min") != nullptr : has(1);
    const bool has_high = old ? attr("max") != nullptr : has(2);
    if (!has_low && !has_high) return give(TensorRef::share(&in(0))), true;
    return give(op::clamp(in(0), has_low ? &low : nullptr, has_high ? &high : nullptr)), true;
  }
  if (is(type_, "Cast")) return give(op::to_dtype(in(0), dtype_of(integer("to", 0)))), true;
  if (is(type_, "Softmax") || is(type_, "LogSoftmax")) {
    const int64_t d = dim(integer("axis", opset_ < 13 ? 1 : -1), in(0).ndim);
    if (opset_ < 13 && d != in(0).ndim - 1) refuse("several axes, before opset 13");
    return give(is(type_, "Softmax") ? op::softmax(in(0), d) : op::log_softmax(in(0), d)), true;
  }
  return false;
}

// ---- products ----

bool Importer::product() {
  if (is(type_, "MatMul")) {
    // The product with a constant matrix is a linear layer, as tt exports it.
    const bool linear = has(0) && has(1) && item(inputs_[1]).known && in(1).ndim == 2 &&
                        in(0).ndim >= 2 && is_float(in(0).dtype);
    if (linear) {
      const int64_t order[] = {1, 0};
      return give(op::linear(in(0), *op::permute(in(1), Ints(order)))), true;
    }
    return give(op::matmul(in(0), in(1))), true;
  }
  if (is(type_, "Gemm")) {
    const int64_t order[] = {1, 0};
    const double alpha = real("alpha", 1), beta = real("beta", 1);
    if (in(0).ndim != 2 || in(1).ndim != 2) refuse("operands that are no matrices");
    TensorRef a = TensorRef::share(&in(0)), b = TensorRef::share(&in(1));
    if (integer("transA", 0)) a = op::permute(*a, Ints(order));
    if (!integer("transB", 0)) b = op::permute(*b, Ints(order));
    const bool plain = alpha == 1 && beta == 1 && (!has(2) || in(2).ndim == 1);
    if (plain && (!has(2) || in(2).size(0) == b->size(0)))
      return give(op::linear(*a, *b, opt(2))), true;
    TensorRef y = op::linear(*a, *b);
    if (alpha != 1) y = op::mul(*y, Scalar(alpha));
    if (!has(2)) return give(y), true;
    if (beta == 1) return give(op::add(*y, in(2))), true;
    return give(op::add(*y, *op::mul(in(2), Scalar(beta)))), true;
  }
  return false;
}

// ---- images ----

// begin of each of n dims, then end of each. kernel: sizes of the window.
Shape Importer::pads_of(int64_t n, Ints kernel) const {
  const bool upper = text_is("auto_pad", "SAME_UPPER", false);
  const bool none = text_is("auto_pad", "NOTSET", true) || text_is("auto_pad", "VALID", false);
  if (upper || text_is("auto_pad", "SAME_LOWER", false)) {
    const Shape strides = numbers(-1, "strides"), dilations = numbers(-1, "dilations");
    Shape pads;
    pads.resize(2 * n);
    for (int64_t i = 0; i < n && i < kernel.n; i++) {
      const int64_t size = in(0).size(i + 2), step = i < strides.size() ? strides[i] : 1;
      const int64_t spread = i < dilations.size() ? dilations[i] : 1;
      if (step < 1 || spread < 1 || kernel[i] < 1 || kernel[i] > kMaxMade || spread > kMaxMade ||
          step > kMaxMade)
        refuse("a window of another size");
      const int64_t covered = (ceil_div(size, step) - 1) * step + (kernel[i] - 1) * spread + 1;
      const int64_t total = max(covered - size, int64_t(0)), less = total / 2;
      pads[i] = upper ? less : total - less;
      pads[n + i] = total - pads[i];
    }
    return pads;
  }
  if (!none) refuse("auto_pad");
  Shape pads = numbers(-1, "pads");
  if (pads.empty()) pads.resize(2 * n);
  if (pads.size() != 2 * n) refuse("pads of other dimensions");
  return pads;
}
TensorRef Importer::padded(const Tensor& x, const Shape& pads, double v) const {
  const int64_t n = pads.size() / 2;
  Shape list;
  for (int64_t i = n - 1; i >= 0; i--) {
    list.push_back(pads[i]);
    list.push_back(pads[n + i]);
  }
  return op::constant_pad_nd(x, list, Scalar(v));
}

bool Importer::image() {
  if (is(type_, "Conv") || is(type_, "ConvTranspose")) {
    const bool transposed = is(type_, "ConvTranspose");
    const int64_t n = in(0).ndim - 2;
    if (n < 1 || n > 3) refuse("an input without one to three spatial dimensions");
    if (attr("output_shape")) refuse("output_shape");
    if (transposed &&
        (text_is("auto_pad", "SAME_UPPER", false) || text_is("auto_pad", "SAME_LOWER", false)))
      refuse("auto_pad");
    const Ints window = in(1).sizes();
    Shape pads = pads_of(n, window.slice(min(window.n, int64_t(2)), window.n)), ones;
    for (int64_t i = 0; i < n; i++) ones.push_back(1);
    bool even = true;
    for (int64_t i = 0; i < n; i++) even = even && pads[i] == pads[n + i];
    TensorRef x = TensorRef::share(&in(0));
    if (!even && transposed) refuse("pads that differ at the ends");
    if (!even) x = padded(*x, pads, 0);
    Shape padding, zeros;
    for (int64_t i = 0; i < n; i++) padding.push_back(even ? pads[i] : 0);
    zeros.resize(n);
    Shape strides = numbers(-1, "strides"), dilations = numbers(-1, "dilations");
    Shape more = numbers(-1, "output_padding");
    return give(op::convolution(*x, in(1), opt(2), strides.empty() ? ones : strides, padding,
                                dilations.empty() ? ones : dilations, transposed,
                                more.empty() ? zeros : more, integer("group", 1))),
           true;
  }
  if (is(type_, "MaxPool")) return pool(true), true;
  if (is(type_, "AveragePool")) return pool(false), true;
  if (is(type_, "GlobalAveragePool") || is(type_, "GlobalMaxPool")) {
    Shape dims;
    for (int64_t d = 2; d < in(0).ndim; d++) dims.push_back(d);
    if (dims.empty()) refuse("an input without spatial dimensions");
    const bool mean = is(type_, "GlobalAveragePool");
    return give(mean ? op::mean_dim(in(0), dims, true) : op::amax(in(0), dims, true)), true;
  }
  if (is(type_, "BatchNormalization")) {
    if (integer("training_mode", 0)) refuse("training");
    in(3);
    in(4);
    return give(op::batch_norm(in(0), item(inputs_[3]).t.get(), item(inputs_[4]).t.get(), opt(1),
                               opt(2), false, 0.1, real("epsilon", 1e-5f))),
           true;
  }
  if (is(type_, "LayerNormalization")) {
    const int64_t d = dim(integer("axis", -1), in(0).ndim);
    if (outputs_.size() > 1 && (outputs_[1].n || (outputs_.size() > 2 && outputs_[2].n)))
      refuse("mean or deviation as a result");
    const Shape shape(in(0).sizes().slice(d, in(0).ndim));
    return give(op::layer_norm(in(0), shape, opt(1), opt(2), real("epsilon", 1e-5f))), true;
  }
  return false;
}

void Importer::pool(bool largest) {
  const int64_t n = in(0).ndim - 2;
  if (n < 1 || n > 3) refuse("an input without one to three spatial dimensions");
  const bool indexed = outputs_.size() > 1 && outputs_[1].n;
  if (indexed && n != 2) refuse("positions of the maxima, but of images");
  const Shape kernel = numbers(-1, "kernel_shape"), pads = pads_of(n, kernel);
  Shape strides = numbers(-1, "strides"), padding;
  while (strides.size() < n) strides.push_back(1);
  const bool ceil = integer("ceil_mode", 0), counts = integer("count_include_pad", 0);
  const Shape dilations = numbers(-1, "dilations");
  for (int64_t i = 0; i < dilations.size() && !largest; i++)
    if (dilations[i] != 1) refuse("dilations");
  bool even = true;
  for (int64_t i = 0; i < n; i++) even = even && pads[i] == pads[n + i];
  TensorRef x = TensorRef::share(&in(0));
  if (!even) {
    if (indexed || ceil || !is_float(x->dtype) || !(largest || counts))
      refuse("pads that differ at the ends");
    x = padded(*x, pads, largest ? -double(INFINITY) : 0);
  }
  for (int64_t i = 0; i < n; i++) padding.push_back(even ? pads[i] : 0);
  if (indexed) {
    if (integer("storage_order", 0)) refuse("positions by columns");
    TensorPair made = op::max_pool2d_with_indices(*x, kernel, strides, padding, dilations, ceil);
    const int64_t planes = x->size(0) * x->size(1), by_plane[] = {x->size(0), x->size(1), 1, 1};
    const TensorRef first =
        op::arange(Scalar(0), Scalar(planes), Scalar(1), Dtype::kI64, Opt<Device>(kCpuDevice));
    const TensorRef offset =
        op::mul(*op::reshape(*first, Ints(by_plane)), Scalar(x->size(2) * x->size(3)));
    give(std::move(made.first));
    return give(op::add(*made.second, *offset));
  }
  if (largest) {
    if (n == 1) return give(op::max_pool1d(*x, kernel, strides, padding, dilations, ceil));
    if (n == 2) return give(op::max_pool2d(*x, kernel, strides, padding, dilations, ceil));
    return give(op::max_pool3d(*x, kernel, strides, padding, dilations, ceil));
  }
  if (n == 1) return give(op::avg_pool1d(*x, kernel, strides, padding, ceil, counts));
  if (n == 2) return give(op::avg_pool2d(*x, kernel, strides, padding, ceil, counts));
  give(op::avg_pool3d(*x, kernel, strides, padding, ceil, counts));
}

// The sizes of all dims that a Resize node gives.
Shape Importer::resized_to(int64_t n) const {
  const int64_t of_scales = opset_ < 11 ? 1 : 2;
  if (attr("axes")) refuse("axes");
  if (has(3)) {
    if (!text_is("keep_aspect_ratio_policy", "stretch", true)) refuse("a ratio that is kept");
    Shape sizes = numbers(3);
    if (sizes.size() != n) refuse("sizes of other dimensions");
    return sizes;
  }
  const Tensor& scales = in(of_scales);
  if (!item(inputs_[of_scales]).known || scales.ndim != 1 || scales.numel != n ||
      !scales.contiguous())
    refuse("scales that depend on inputs");
  Shape sizes;
  for (int64_t d = 0; d < n; d++) {
    const auto scale =
        float(load_scalar(scales.data + d * scales.item_size(), scales.dtype).real());
    const float size = float(in(0).size(d)) * scale;  // rounded, as 5 * 0.4
    if (!(size >= 1 && size <= float(kMaxMade)) || size != float(int64_t(size)))
      refuse("scales that give no whole sizes");
    sizes.push_back(int64_t(size));
  }
  return sizes;
}

void Importer::resize() {
  const Tensor& x = in(0);
  const int64_t n = x.ndim;
  const Shape sizes = resized_to(n);
  if (n < 3 || sizes[0] != x.size(0) || sizes[1] != x.size(1))
    refuse("a change of other dimensions than the spatial ones");
  const bool old = opset_ < 11;
  const char* const how = "coordinate_transformation_mode";
  const bool corners = text_is(how, "align_corners", false);
  const bool half = text_is(how, "half_pixel", !old) || text_is(how, "pytorch_half_pixel", false);
  const bool asymmetric = text_is(how, "asymmetric", old);
  if (integer("antialias", 0)) refuse("antialias");
  for (int64_t d = 2; d < n; d++)
    if (sizes[d] < 1 || sizes[d] > kMaxMade || x.size(d) < 1) refuse("a size of 0");
  if (text_is("mode", "nearest", true)) {
    const bool floors = text_is("nearest_mode", "floor", old);
    const bool ceils = text_is("nearest_mode", "ceil", false);
    const bool up = text_is("nearest_mode", "round_prefer_ceil", false);
    if (!corners && !half && !asymmetric) refuse(how);
    TensorRef y = TensorRef::share(&x);
    for (int64_t d = 2; d < n; d++) {
      if (sizes[d] == x.size(d)) continue;
      const double step = double(x.size(d)) / double(sizes[d]);
      SmallVec<int64_t, 16> rows;
      for (int64_t i = 0; i < sizes[d]; i++) {
        double at = double(i) * step;
        if (half) at = (double(i) + 0.5) * step - 0.5;
        if (corners)
          at = sizes[d] > 1 ? double(i) * double(x.size(d) - 1) / double(sizes[d] - 1) : 0;
        double place = -::floor(0.5 - at);  // round_prefer_floor
        if (floors) place = ::floor(at);
        if (ceils) place = -::floor(-at);
        if (up) place = ::floor(at + 0.5);
        rows.push_back(clamp(int64_t(place), int64_t(0), x.size(d) - 1));
      }
      y = op::index_select(*y, d, *integers({rows.data(), rows.size()}));
    }
    return give(std::move(y));
  }
  const bool cubic = text_is("mode", "cubic", false);
  if (!cubic && !text_is("mode", "linear", false)) refuse("its mode");
  if ((!corners && !half) || integer("exclude_outside", 0)) refuse(how);
  if (cubic && (n != 4 || real("cubic_coeff_a", -0.75) != -0.75)) refuse("its cubic weights");
  if (n > 5) refuse("more than three spatial dimensions");
  for (int64_t d = 2; d < n && text_is(how, "pytorch_half_pixel", false); d++)
    if (sizes[d] == 1 && x.size(d) != 1) refuse("a size of 1");
  static constexpr int64_t kLinear[] = {1, 2, 6}, kCubic = 5;  // of enum Interpolation
  give(op::interpolate(x, sizes.span().slice(2, n), {}, cubic ? kCubic : kLinear[n - 3],
                       Opt<bool>(corners)));
}

void Importer::depth_and_space() {
  const Tensor& x = in(0);
  const int64_t b = integer("blocksize", 0);
  if (x.ndim != 4 || b < 1 || b > kMaxMade) refuse("its block size, or an input that is no image");
  const int64_t n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3);
  const auto arranged = [&](Ints sizes, Ints order, Ints result) {
    give(op::reshape(*op::permute(*op::reshape(x, sizes), order), result));
  };
  if (is(type_, "SpaceToDepth")) {
    const int64_t sizes[] = {n, c, h / b, b, w / b, b}, order[] = {0, 3, 5, 1, 2, 4};
    const int64_t result[] = {n, c * b * b, h / b, w / b};
    return arranged(Ints(sizes), Ints(order), Ints(result));
  }
  const int64_t parts = c / (b * b), result[] = {n, parts, h * b, w * b};
  if (text_is("mode", "CRD", false)) {
    const int64_t sizes[] = {n, parts, b, b, h, w}, order[] = {0, 1, 4, 2, 5, 3};
    return arranged(Ints(sizes), Ints(order), Ints(result));
  }
  const int64_t sizes[] = {n, b, b, parts, h, w}, order[] = {0, 3, 4, 1, 5, 2};
  arranged(Ints(sizes), Ints(order), Ints(result));
}

bool Importer::layer() {
  if (is(type_, "Resize")) return resize(), true;
  if (is(type_, "DepthToSpace") || is(type_, "SpaceToDepth")) return depth_and_space(), true;
  if (is(type_, "InstanceNormalization"))
    return give(op::instance_norm(in(0), nullptr, nullptr, opt(1), opt(2), true, 0.1,
                                  real("epsilon", 1e-5f))),
           true;
  if (is(type_, "GroupNormalization")) {
    if (in(0).ndim < 2 || !has(1) || in(1).numel != in(0).size(1)) refuse("weights of groups");
    return give(op::group_norm(in(0), integer("num_groups", 1), opt(1), opt(2),
                               real("epsilon", 1e-5f))),
           true;
  }
  if (is(type_, "LRN")) {
    const int64_t size = integer("size", 1);
    if (size % 2 == 0) refuse("an even size");
    return give(op::local_response_norm(in(0), size, real("alpha", 1e-4f), real("beta", 0.75f),
                                        real("bias", 1))),
           true;
  }
  if (is(type_, "Selu")) {
    if (attr("alpha") || attr("gamma")) refuse("other numbers than the usual ones");
    return give(op::selu(in(0))), true;
  }
  if (is(type_, "ThresholdedRelu"))
    return give(op::threshold(in(0), Scalar(real("alpha", 1)), Scalar(0.0))), true;
  if (is(type_, "Shrink")) {
    const double bias = real("bias", 0), lambd = real("lambd", 0.5);
    if (bias != 0 && bias != lambd) refuse("a bias that is neither 0 nor lambd");
    return give(bias == 0 ? op::hardshrink(in(0), lambd) : op::softshrink(in(0), lambd)), true;
  }
  if (is(type_, "Einsum")) {
    const Attr* a = attr("equation");
    SmallVec<const Tensor*, 4> list;
    for (int64_t i = 0; i < inputs_.size(); i++) list.push_back(&in(i));
    if (!a || list.empty()) refuse("no equation");
    return give(op::einsum(a->s, {list.data(), list.size()})), true;
  }
  if (is(type_, "GridSample")) {
    const bool cubic = text_is("mode", "bicubic", false) || text_is("mode", "cubic", false);
    int64_t mode = cubic ? 2 : 0, padding = text_is("padding_mode", "border", false);
    if (text_is("mode", "nearest", false)) mode = 1;
    if (text_is("padding_mode", "reflection", false)) padding = 2;
    return give(op::grid_sample(in(0), in(1), mode, padding,
                                Opt<bool>(integer("align_corners", 0) != 0))),
           true;
  }
  return false;
}

// ---- recurrent layers ----

// Rows of input i (directions, parts * rows, …) in the order that tt has gates in.
TensorRef Importer::gates_of(int64_t i, int64_t direction, int64_t part, int64_t parts,
                             Ints order) const {
  const Tensor& all = in(i);
  const int64_t rows = all.size(1) / parts, each = rows / order.n;
  if (!item(inputs_[i]).known || !all.contiguous()) {
    const TensorRef one = op::select(all, 0, direction);
    TensorList blocks;
    SmallVec<const Tensor*, 4> list;
    for (const int64_t from : order)
      blocks.push_back(op::narrow(*one, 0, part * rows + from * each, each));
    for (const TensorRef& t : blocks) list.push_back(t.get());
    return op::cat({list.data(), list.size()}, 0);
  }
  Shape sizes(all.sizes().slice(1, all.ndim));
  sizes[0] = rows;
  TensorRef t = new_tensor(sizes, all.dtype, kCpuDevice);
  const int64_t row = all.ndim == 3 ? all.size(2) * all.item_size() : all.item_size();
  const char* from = all.data + (direction * parts + part) * rows * row;
  for (int64_t k = 0; k < order.n; k++)
    if (each > 0 && row > 0)
      memcpy(t->data + k * each * row, from + order[k] * each * row, size_t(each * row));
  return t;
}

// A recurrent node.
struct Importer::Recurrent {
  bool lstm = false, gru = false, back = false, both = false;
  bool resets_first = false;  // a GRU whose reset gate scales the state before the product
  int64_t mode = 0, steps = 0, rows = 0, hidden = 0;
  Ints order;
  // Of lengths of sequences: whether a step is inside (steps, rows, 1), the place of each step in
  // the sequence backwards, the last step (1, rows, 1), whether a sequence has steps. NULL: none.
  TensorRef inside, turned, last, filled;
  int64_t total() const { return steps * rows; }
};

Importer::Recurrent Importer::read_recurrent() const {
  // where i f g o and r z n are in i o f c and z r h
  static constexpr int64_t kLstmOrder[] = {0, 2, 3, 1}, kGruOrder[] = {1, 0, 2}, kOne[] = {0};
  Recurrent n;
  n.lstm = is(type_, "LSTM");
  n.gru = is(type_, "GRU");
  n.order = Ints(kOne);
  if (n.lstm) n.order = Ints(kLstmOrder);
  if (n.gru) n.order = Ints(kGruOrder);
  n.both = text_is("direction", "bidirectional", false);
  n.back = text_is("direction", "reverse", false);
  if (!n.both && !n.back && !text_is("direction", "forward", true)) refuse("its direction");
  if (attr("clip") || attr("activation_alpha") || attr("activation_beta") || integer("layout", 0) ||
      integer("input_forget", 0))
    refuse("clip, layout, input_forget or numbers of activations");
  n.resets_first = n.gru && !integer("linear_before_reset", 0);
  if (has(7)) refuse("peepholes");
  n.mode = n.lstm ? kLstm : kRnnTanh;
  if (n.gru) n.mode = kGru;
  const Attr* a = attr("activations");
  if (!a) return n;
  // of an LSTM: f, g, h; of a GRU: f, g
  static constexpr const char* kNames[] = {"Sigmoid", "Tanh", "Tanh"};
  const bool gated = n.lstm || n.gru;
  const bool relu = !gated && a->texts.size() > 0 && is(a->texts[0], "Relu");
  if (relu) n.mode = kRnnRelu;
  for (int64_t i = 0; i < a->texts.size(); i++) {
    const char* want = relu ? "Relu" : "Tanh";
    const int64_t of_gates = i % (n.lstm ? 3 : 2);
    if (!is(a->texts[i], gated ? kNames[of_gates] : want)) refuse("its activations");
  }
  return n;
}

// Sets the sizes; fails unless the operands fit.
void Importer::check_recurrent(Recurrent& n) const {
  const Tensor &x = in(0), &w = in(1), &r = in(2);
  if (x.ndim != 3 || w.ndim != 3 || r.ndim != 3 || !is_float(x.dtype) || w.dtype != x.dtype ||
      r.dtype != x.dtype)
    fail_format("a recurrent node has operands of other shapes or dtypes");
  n.steps = x.size(0);
  n.rows = x.size(1);
  n.hidden = r.size(2);
  if (n.hidden < 1 || n.hidden > kMaxMade || n.steps < 1 || n.steps > kMaxMade)
    refuse("its number of steps or of hidden units");
  if (n.resets_first && n.steps > kMaxUnrolled)
    refuse("linear_before_reset is 0 and there are too many steps");
  checked_numel(Ints(x.sizes().ptr, 2), x.dtype, "input");
  const int64_t width = n.order.n * n.hidden, directions = n.both ? 2 : 1;
  if (w.size(0) != directions || r.size(0) != directions || w.size(1) != width ||
      r.size(1) != width || w.size(2) != x.size(2))
    fail_format("a recurrent node has weights of other shapes");
  if (has(3) && (in(3).ndim != 2 || in(3).size(0) != directions || in(3).size(1) != 2 * width ||
                 in(3).dtype != x.dtype))
    fail_format("a recurrent node has biases of another shape");
  if (has(4) && (in(4).ndim != 1 || in(4).size(0) != n.rows || is_float(in(4).dtype)))
    fail_format("a recurrent node has lengths of another shape or dtype");
  const int64_t state[] = {directions, n.rows, n.hidden};
  for (const int64_t i : {5, 6})
    if (has(i) && (!same(in(i).sizes(), Ints(state)) || in(i).dtype != x.dtype))
      fail_format("a recurrent node has a state of another shape");
}

// A length outside [0, steps] gives a last step that the gather of the last state refuses.
void Importer::place_lengths(Recurrent& n) const {
  const int64_t by_row[] = {1, n.rows, 1}, by_step[] = {n.steps, 1, 1};
  const TensorRef lengths = op::to_dtype(*op::reshape(in(4), Ints(by_row)), Dtype::kI64);
  const TensorRef step = op::reshape(
      *op::arange(Scalar(0), Scalar(n.steps), Scalar(1), Dtype::kI64, Opt<Device>(kCpuDevice)),
      Ints(by_step));
  n.inside = op::lt(*step, *lengths);
  const TensorRef before = op::sub(*lengths, Scalar(1));
  n.turned = op::where(*n.inside, *op::sub(*before, *step), *step);
  n.filled = op::ne(*lengths, Scalar(0));
  n.last = op::where(*n.filled, *before, *lengths);
}

// Elements of t (steps, rows, features) at steps (…, rows, 1).
TensorRef Importer::at_steps(const Tensor& t, const Tensor& steps) {
  const int64_t sizes[] = {steps.size(0), steps.size(1), t.size(2)};
  return op::gather(t, 0, *op::expand(steps, Ints(sizes)));
}

// The states of a GRU whose reset gate scales the state before the product, as single steps.
TensorRef Importer::unrolled_gru(const Recurrent& n, const Tensor& gates, const Tensor& h0,
                                 const Tensor& again, bool reverse) const {
  const TensorRef of_gates = op::narrow(again, 0, 0, 2 * n.hidden);
  const TensorRef of_state = op::narrow(again, 0, 2 * n.hidden, n.hidden);
  TensorRef h = TensorRef::share(&h0);
  TensorList states;
  SmallVec<const Tensor*, 16> list;
  list.resize(n.steps);
  for (int64_t i = 0; i < n.steps; i++) {
    const int64_t step = reverse ? n.steps - 1 - i : i;
    const TensorRef x = op::narrow(gates, 0, step * n.rows, n.rows);
    const TensorRef rz =
        op::sigmoid(*op::add(*op::linear(*h, *of_gates), *op::narrow(*x, 1, 0, 2 * n.hidden)));
    const TensorRef kept = op::mul(*op::narrow(*rz, 1, 0, n.hidden), *h);
    const TensorRef fresh = op::tanh(
        *op::add(*op::linear(*kept, *of_state), *op::narrow(*x, 1, 2 * n.hidden, n.hidden)));
    const TensorRef z = op::narrow(*rz, 1, n.hidden, n.hidden);
    h = op::add(*fresh, *op::mul(*z, *op::sub(*h, *fresh)));
    list[step] = h.get();
    states.push_back(h);
  }
  return op::stack({list.data(), list.size()}, 0);
}

// States (steps, rows, hidden) of one direction, the last ones and those of cells (rows, hidden).
TensorTriple Importer::direction(const Recurrent& n, int64_t d) const {
  const Tensor& x = in(0);
  const bool reverse = n.back || d == 1, turns = reverse && n.turned;
  const TensorRef given = turns ? at_steps(x, *n.turned) : TensorRef::share(&x);
  const int64_t flat[] = {n.total(), x.size(2)}, by_step[] = {n.steps, n.rows, n.hidden};
  const int64_t state[] = {n.rows, n.hidden};
  const auto initial = [&](int64_t i) {
    if (has(i)) return op::select(in(i), 0, d);
    return op::zeros(Ints(state), x.dtype, Opt<Device>(kCpuDevice));
  };
  const TensorRef weight = gates_of(1, d, 0, 1, n.order), again = gates_of(2, d, 0, 1, n.order);
  const bool apart = n.gru && !n.resets_first;  // the reset gate scales the product's bias, too
  TensorRef b_ih, b_hh;
  if (has(3)) {
    b_ih = gates_of(3, d, 0, 2, n.order);
    b_hh = gates_of(3, d, 1, 2, n.order);
    if (!apart) b_ih = op::add(*b_ih, *b_hh);
  }
  const TensorRef gates = op::linear(*op::reshape(*given, Ints(flat)), *weight, b_ih.get());
  const TensorRef h0 = initial(5), c0 = n.lstm ? initial(6) : TensorRef();
  TensorRef states, cells;
  if (n.resets_first) {
    states = unrolled_gru(n, *gates, *h0, *again, reverse && !turns);
  } else {
    SmallVec<int64_t, 16> sizes;
    sizes.resize(n.steps, n.rows);
    TensorTriple made =
        op::recurrent_layer(*gates, *h0, c0.get(), *again, apart ? b_hh.get() : nullptr, nullptr,
                            {sizes.data(), sizes.size()}, n.mode, reverse && !turns);
    states = op::reshape(*made.first, Ints(by_step));
    if (n.lstm) cells = op::reshape(*made.second, Ints(by_step));
  }
  const auto last = [&](const Tensor& all) {
    if (!n.last) return op::select(all, 0, reverse ? 0 : n.steps - 1);
    const TensorRef zero = op::zeros({}, x.dtype, Opt<Device>(kCpuDevice));
    return op::reshape(*op::where(*n.filled, *at_steps(all, *n.last), *zero), Ints(state));
  };
  TensorTriple out;
  out.second = last(*states);
  if (n.lstm) out.third = last(*cells);
  if (turns) states = at_steps(*states, *n.turned);
  if (n.inside)
    states = op::where(*n.inside, *states, *op::zeros({}, x.dtype, Opt<Device>(kCpuDevice)));
  out.first = std::move(states);
  return out;
}

bool Importer::recurrent() {
  if (!is(type_, "LSTM") && !is(type_, "GRU") && !is(type_, "RNN")) return false;
  Recurrent n = read_recurrent();
  check_recurrent(n);
  if (has(4)) place_lengths(n);
  TensorList outputs, last_h, last_c;
  for (int64_t d = 0; d < (n.both ? 2 : 1); d++) {
    TensorTriple made = direction(n, d);
    outputs.push_back(std::move(made.first));
    last_h.push_back(std::move(made.second));
    if (n.lstm) last_c.push_back(std::move(made.third));
  }
  const auto stacked = [](const TensorList& list, int64_t dim) {
    SmallVec<const Tensor*, 2> tensors;
    for (const TensorRef& t : list) tensors.push_back(t.get());
    return op::stack({tensors.data(), tensors.size()}, dim);
  };
  give(stacked(outputs, 1));
  give(stacked(last_h, 0));
  if (n.lstm) give(stacked(last_c, 0));
  return true;
}

// ---- reductions ----

Shape Importer::axes_of(int64_t i, int64_t ndim) const {
  Shape axes = numbers(i, "axes");
  if (axes.empty() && !integer("noop_with_empty_axes", 0))
    for (int64_t d = 0; d < ndim; d++) axes.push_back(d);
  for (int64_t& d : axes) d = dim(d, ndim);
  return axes;
}

bool Importer::reduction() {
  const int64_t n = inputs_.empty() ? 0 : in(0).ndim;
  const bool keep = integer("keepdims", 1);
  if (type_.n > 6 && memcmp(type_.ptr, "Reduce", 6) == 0) {
    const Tensor& x = in(0);
    const Shape axes = axes_of(1, n);
    const Name kind = type_.slice(6, type_.n);
    if (axes.empty()) return give(TensorRef::share(&x)), true;
    if (is(kind, "Sum")) return give(op::sum_dim(x, axes, keep, x.dtype)), true;
    if (is(kind, "Mean")) return give(op::mean_dim(x, axes, keep)), true;
    if (is(kind, "Max")) return give(op::amax(x, axes, keep)), true;
    if (is(kind, "Min")) return give(op::amin(x, axes, keep)), true;
    if (is(kind, "LogSumExp")) return give(op::logsumexp(x, axes, keep)), true;
    if (is(kind, "SumSquare")) return give(op::sum_dim(*op::mul(x, x), axes, keep, x.dtype)), true;
    if (is(kind, "L2")) return give(op::sqrt(*op::sum_dim(*op::mul(x, x), axes, keep))), true;
    if (is(kind, "L1")) return give(op::sum_dim(*op::abs(x), axes, keep, x.dtype)), true;
    if (!is(kind, "Prod")) return false;
    TensorRef y = TensorRef::share(&x);
    Shape order(axes.span());
    for (int64_t a = 0; a < order.size(); a++)  // from the last dimension
      for (int64_t b = a + 1; b < order.size(); b++)
        if (order[b] > order[a]) std::swap(order[a], order[b]);
    for (const int64_t d : order) y = op::prod_dim(*y, d, keep, x.dtype);
    return give(y), true;
  }
  if (is(type_, "ArgMax") || is(type_, "ArgMin")) {
    if (integer("select_last_index", 0)) refuse("select_last_index");
    const Opt<int64_t> d(dim(integer("axis", 0), n));
    return give(is(type_, "ArgMax") ? op::argmax(in(0), d, keep) : op::argmin(in(0), d, keep)),
           true;
  }
  if (is(type_, "CumSum")) {
    const int64_t d[] = {dim(whole_number(1, 0), n)};
    const bool back = integer("reverse", 0);
    const TensorRef x = back ? op::flip(in(0), Ints(d)) : TensorRef::share(&in(0));
    TensorRef y = op::cumsum(*x, d[0], x->dtype);
    if (integer("exclusive", 0)) y = op::sub(*y, *x);
    return give(back ? op::flip(*y, Ints(d)) : std::move(y)), true;
  }
  if (is(type_, "TopK")) {
    TensorPair made = op::topk(in(0), whole_number(1, 1), dim(integer("axis", -1), n),
                               integer("largest", 1), true);
    give(std::move(made.first));
    return give(std::move(made.second)), true;
  }
  return false;
}

// ---- arrangement ----

bool Importer::arrangement() {
  const int64_t n = inputs_.empty() || !has(0) ? 0 : in(0).ndim;
  if (is(type_, "Identity") || is(type_, "Dropout")) {
    TensorRef x = TensorRef::share(&in(0));
    return give(std::move(x), item(inputs_[0]).known), true;
  }
  if (is(type_, "Reshape")) {
    Shape sizes = numbers(1, "shape");
    for (int64_t i = 0; i < sizes.size() && !integer("allowzero", 0); i++)
      if (sizes[i] == 0) sizes[i] = in(0).size(dim(i, n));
    return give(op::reshape(in(0), sizes)), true;
  }
  if (is(type_, "Transpose")) {
    Shape order = numbers(-1, "perm");
    for (int64_t d = n - 1; d >= 0 && !attr("perm"); d--) order.push_back(d);
    return give(op::permute(in(0), order)), true;
  }
  if (is(type_, "Flatten")) {
    const int64_t axis = integer("axis", 1), d = axis == n ? n : dim(axis, n);
    int64_t sizes[2] = {1, 1};
    for (int64_t i = 0; i < n; i++) sizes[i >= d] *= in(0).size(i);
    return give(op::reshape(in(0), Ints(sizes))), true;
  }
  if (is(type_, "Squeeze") || is(type_, "Unsqueeze")) {
    const bool adds = is(type_, "Unsqueeze");
    const Shape axes = numbers(1, "axes");
    const int64_t after = adds ? n + axes.size() : n;
    if (axes.size() > kMaxDims) refuse("too many axes");
    SmallVec<bool, 16> named;
    named.resize(after);
    for (const int64_t d : axes) named[dim(d, after)] = true;
    Shape sizes;
    for (int64_t i = 0, from = 0; i < after; i++) {
      const bool drops_all = !adds && axes.empty();  // of size 1
      const bool one = drops_all ? in(0).size(i) == 1 : named[i];
      if (one && !adds && in(0).size(i) != 1) refuse("an axis whose size is not 1");
      if (one && adds) sizes.push_back(1);
      else if (!one) sizes.push_back(in(0).size(adds ? from++ : i));
    }
    return give(op::reshape(in(0), sizes)), true;
  }
  if (is(type_, "Expand")) {
    Shape sizes = numbers(1);
    while (sizes.size() < n) sizes.insert(0, 1);
    for (int64_t i = 1; i <= n; i++)
      if (sizes[sizes.size() - i] == 1) sizes[sizes.size() - i] = in(0).size(n - i);
    return give(op::expand(in(0), sizes)), true;
  }
  if (is(type_, "Concat")) {
    SmallVec<const Tensor*, 8> list;
    for (int64_t i = 0; i < inputs_.size(); i++) list.push_back(&in(i));
    if (list.empty()) refuse("no inputs");
    return give(op::cat({list.data(), list.size()}, dim(integer("axis", 0), n))), true;
  }
  if (is(type_, "Pad")) {
    int64_t mode = 0;  // of enum Padding
    if (text_is("mode", "reflect", false)) mode = 1;
    if (text_is("mode", "edge", false)) mode = 2;
    if (text_is("mode", "wrap", false)) mode = 3;
    if (!mode && !text_is("mode", "constant", true)) refuse("its mode");
    const Shape pads = numbers(1, "pads");
    Shape axes = has(3) ? numbers(3) : Shape();
    for (int64_t d = 0; d < n && !has(3); d++) axes.push_back(d);
    if (pads.size() != 2 * axes.size()) refuse("pads of other dimensions");
    Shape all;
    all.resize(2 * n);
    for (int64_t i = 0; i < axes.size(); i++) {
      const int64_t d = dim(axes[i], n);
      all[d] = pads[i];
      all[n + d] = pads[axes.size() + i];
    }
    if (!mode) return give(padded(in(0), all, number(2, real("value", 0)))), true;
    Shape list;  // of the dims behind those without pads, from the last one
    int64_t first = 0;
    while (first < n && !all[first] && !all[n + first]) first++;
    for (int64_t d = n - 1; d >= first; d--) {
      list.push_back(all[d]);
      list.push_back(all[n + d]);
    }
    if (list.empty()) return give(TensorRef::share(&in(0))), true;
    return give(op::pad(in(0), list, mode)), true;
  }
  if (is(type_, "Tile")) return give(op::repeat(in(0), numbers(1))), true;
  if (is(type_, "Trilu")) {
    const int64_t k = whole_number(1, 0);
    return give(integer("upper", 1) ? op::triu(in(0), k) : op::tril(in(0), k)), true;
  }
  return false;
}

void Importer::slice() {
  const Shape starts = numbers(1, "starts"), ends = numbers(2, "ends");
  Shape axes = numbers(3, "axes"), steps = numbers(4, "steps");
  if (ends.size() != starts.size()) refuse("starts and ends of other lengths");
  for (int64_t i = axes.size(); i < starts.size(); i++) axes.push_back(i);
  while (steps.size() < starts.size()) steps.push_back(1);
  TensorRef y = TensorRef::share(&in(0));
  for (int64_t i = 0; i < starts.size(); i++) {
    const int64_t d = dim(axes[i], y->ndim), size = y->size(d), step = steps[i];
    if (step == 0 || step == INT64_MIN) refuse("a step of 0");
    const auto place = [&](int64_t v, int64_t low, int64_t high) {
      if (v < 0) v = v < -size ? -1 - size : v + size;
      return clamp(v, low, high);
    };
    if (step > 0) {
      const int64_t start = place(starts[i], 0, size), end = place(ends[i], 0, size);
      y = op::slice(*y, d, Opt<int64_t>(start), Opt<int64_t>(max(start, end)), step);
      continue;
    }
    if (size == 0) continue;
    const int64_t start = place(starts[i], 0, size - 1), end = place(ends[i], -1, size - 1);
    if (size > kMaxMade) refuse("a long slice backwards");
    SmallVec<int64_t, 8> rows;
    for (int64_t at = start; at > end; at += max(step, -size)) rows.push_back(at);
    y = op::index_select(*y, d, *integers({rows.data(), rows.size()}));
  }
  give(y);
}

void Importer::split() {
  const int64_t d = dim(integer("axis", 0), in(0).ndim), size = in(0).size(d);
  Shape parts = numbers(1, "split");
  const int64_t n = outputs_.size();
  const int64_t each = n ? ceil_div(size, n) : 0;
  for (int64_t i = parts.size(); i < n; i++)
    parts.push_back(clamp(size - i * each, int64_t(0), each));
  int64_t at = 0;
  for (int64_t i = 0; i < n; i++) {
    give(op::narrow(in(0), d, at, parts[i]));
    at += parts[i];
  }
}

// index as int64, from the end if it is negative.
TensorRef Importer::positions(const Tensor& index, int64_t size) const {
  TensorRef at = TensorRef::share(&index);
  if (is_float(at->dtype)) refuse("positions that are no integers");
  if (at->dtype != Dtype::kI64) at = op::to_dtype(*at, Dtype::kI64);
  return op::where(*op::lt(*at, Scalar(0)), *op::add(*at, Scalar(size)), *at);
}

void Importer::gather() {
  const int64_t n = in(0).ndim, d = dim(integer("axis", 0), n), size = in(0).size(d);
  const TensorRef index = positions(in(1), size);
  if (is(type_, "GatherElements")) return give(op::gather(in(0), d, *index));
  const int64_t all = index->numel;
  const TensorRef y = op::index_select(in(0), d, *op::reshape(*index, Ints(&all, 1)));
  Shape sizes(in(0).sizes().slice(0, d));
  sizes.append(index->sizes());
  sizes.append(in(0).sizes().slice(d + 1, n));
  give(op::reshape(*y, sizes));
}

void Importer::scatter_elements() {
  const int64_t d = dim(integer("axis", 0), in(0).ndim);
  const TensorRef index = positions(in(1), in(0).size(d));
  static constexpr struct {
    const char* name;
    int64_t reduce;  // of enum ScatterReduce
  } kReductions[] = {{"add", 0}, {"mul", 1}, {"max", 3}, {"min", 4}};
  for (const auto& r : kReductions)
    if (text_is("reduction", r.name, false))
      return give(op::scatter_reduce(in(0), d, *index, in(2), r.reduce));
  if (!text_is("reduction", "none", true)) refuse("its reduction");
  give(op::scatter(in(0), d, *index, in(2)));
}

// The positions (n) among rows of data, all of whose first dims are one, of index (…, dims).
TensorRef Importer::row_numbers(const Tensor& data, const Tensor& index) const {
  const int64_t dims = index.ndim ? index.size(-1) : 0;
  if (dims < 1 || dims > data.ndim || integer("batch_dims", 0)) refuse("its number of dimensions");
  TensorRef at;
  for (int64_t k = 0; k < dims; k++) {
    const TensorRef one = positions(*op::select(index, -1, k), data.size(k));
    at = k ? op::add(*op::mul(*at, Scalar(data.size(k))), *one) : one;
  }
  return op::reshape(*at, Ints(&at->numel, 1));
}

// GatherND and ScatterND.
void Importer::rows_of_many() {
  const Tensor &data = in(0), &index = in(1);
  const TensorRef at = row_numbers(data, index);
  const int64_t dims = index.size(-1);
  const Ints first = data.sizes().slice(0, dims), rest = data.sizes().slice(dims, data.ndim);
  int64_t flat[2] = {1, 1};
  for (const int64_t size : first) flat[0] *= size;
  for (const int64_t size : rest) flat[1] *= size;
  const TensorRef rows = op::reshape(data, Ints(flat));
  if (is(type_, "GatherND")) {
    Shape sizes(index.sizes().slice(0, index.ndim - 1));
    sizes.append(rest);
    return give(op::reshape(*op::index_select(*rows, 0, *at), sizes));
  }
  const int64_t of_updates[] = {at->numel, flat[1]};
  const TensorRef updates = op::reshape(in(2), Ints(of_updates));
  const bool adds = text_is("reduction", "add", false);
  if (!adds && !text_is("reduction", "none", true)) refuse("its reduction");
  const TensorRef y =
      adds ? op::index_add(*rows, 0, *at, *updates) : op::index_copy(*rows, 0, *at, *updates);
  give(op::reshape(*y, data.sizes()));
}

void Importer::one_hot() {
  const int64_t depth = whole_number(1, 0), n = in(0).ndim;
  if (depth < 1 || depth > kMaxMade) refuse("its depth");
  if (in(2).ndim != 1 || in(2).numel != 2) refuse("values that are not two");
  const int64_t d = dim(integer("axis", -1), n + 1);
  const TensorRef index = op::unsqueeze(*positions(in(0), depth), d);
  Shape sizes;
  for (int64_t i = 0; i <= n; i++) sizes.push_back(i == d ? depth : 1);
  const TensorRef classes = op::reshape(
      *op::arange(Scalar(0), Scalar(depth), Scalar(1), Dtype::kI64, Opt<Device>(kCpuDevice)),
      sizes);
  give(op::where(*op::eq(*index, *classes), *op::select(in(2), 0, 1), *op::select(in(2), 0, 0)));
}

bool Importer::indexing() {
  if (is(type_, "Slice")) return slice(), true;
  if (is(type_, "Split")) return split(), true;
  if (is(type_, "Gather") || is(type_, "GatherElements")) return gather(), true;
  if (is(type_, "ScatterElements")) return scatter_elements(), true;
  if (is(type_, "GatherND") || is(type_, "ScatterND")) return rows_of_many(), true;
  if (is(type_, "OneHot")) return one_hot(), true;
  return false;
}

// ---- constants ----

bool Importer::constant() {
  if (is(type_, "Shape")) {
    const int64_t n = in(0).ndim;
    const auto place = [&](int64_t v) { return clamp(v < 0 ? max(v, -n) + n : v, int64_t(0), n); };
    const int64_t start = place(integer("start", 0)), end = place(integer("end", n));
    return give(integers(in(0).sizes().slice(start, max(start, end))), true), true;
  }
  if (is(type_, "Size")) {
    TensorRef t = new_tensor({}, Dtype::kI64, kCpuDevice);
    *t->as<int64_t>() = in(0).numel;
    return give(t, true), true;
  }
  if (is(type_, "Constant")) {
    if (const Attr* a = attr("value")) return give(read_tensor(a->tensor), true), true;
    if (const Attr* a = attr("value_ints")) return give(integers(a->ints.span()), true), true;
    const bool whole = attr("value_int") != nullptr;
    if (!whole && !attr("value_float")) refuse("a constant of another kind");
    TensorRef t = new_tensor({}, whole ? Dtype::kI64 : Dtype::kF32, kCpuDevice);
    const Scalar v = whole ? Scalar(integer("value_int", 0)) : Scalar(real("value_float", 0));
    store_scalar(t->data, t->dtype, v);
    return give(t, true), true;
  }
  if (is(type_, "ConstantOfShape")) {
    const Shape sizes = numbers(0);
    TensorRef one;
    if (const Attr* a = attr("value")) one = read_tensor(a->tensor);
    if (one && one->numel != 1) refuse("a value that is no number");
    const Dtype dtype = one ? one->dtype : Dtype::kF32;
    if (checked_numel(sizes, dtype, "shape") > kMaxMade) refuse("a large constant");
    const Scalar v = one ? load_scalar(one->data, dtype) : Scalar(0.0);
    TensorRef t = new_tensor(sizes, dtype, kCpuDevice);
    for (int64_t i = 0; i < t->numel; i++) store_scalar(t->data + i * item_size(dtype), dtype, v);
    return give(t, true), true;
  }
  if (is(type_, "Range")) {
    const double start = number(0, 0), limit = number(1, 0), step = number(2, 1);
    const double n = step != 0 ? (limit - start) / step : -1;
    const bool whole = !is_float(in(0).dtype);
    const double most = max(fabs(start), fabs(limit));
    if (whole && !(most + fabs(step) < 0x1p53)) refuse("a range of large numbers");
    if (!(n >= 0 && n <= double(kMaxMade))) {
      if (n < 0 && step != 0) return give(new_tensor({}, in(0).dtype, kCpuDevice), true), true;
      refuse("a long range");
    }
    const int64_t count = int64_t(n) + (double(int64_t(n)) < n);
    TensorRef t = new_tensor(Ints(&count, 1), in(0).dtype, kCpuDevice);
    for (int64_t i = 0; i < count; i++) {
      const double v = start + double(i) * step;
      store_scalar(t->data + i * item_size(t->dtype), t->dtype,
                   whole ? Scalar(int64_t(v)) : Scalar(v));
    }
    return give(t, true), true;
  }
  return false;
}

// ---- the graph ----

// Whether the node at hand computes with small constants only, or makes a view of one.
bool Importer::may_compute() const {
  if (inputs_.empty() || computed_ > kMaxComputed) return false;
  for (const char* larger : {"Pad", "Tile", "Expand", "Conv", "ConvTranspose", "MaxPool",
                             "AveragePool", "Resize", "Einsum", "OneHot", "GridSample"})
    if (is(type_, larger)) return false;
  for (const Name& name : inputs_)
    if (name.n && !item(name).known) return false;
  if (is(type_, "Transpose") || is(type_, "Identity")) return true;
  for (const char* view : {"Reshape", "Flatten", "Squeeze", "Unsqueeze"})
    if (is(type_, view)) return in(0).contiguous() || in(0).numel <= kSmall;
  for (const Name& name : inputs_)
    if (name.n && item(name).t->numel > kSmall) return false;
  return true;
}

// Computes in place of recording; what it makes is a constant.
struct Outside {
  Ctx& c = ctx();
  const uint64_t include = c.include;
  Outside() { c.include &= ~bit(kKeyCapture); }
  ~Outside() { c.include = include; }
  Outside(const Outside&) = delete;
};
// Records without running kernels.
struct Dry {
  WorkObserver& work = *ctx().work;
  decltype(work.launch) launch = work.launch;
  decltype(work.check) check = work.check;
  Dry() {
    work.launch = [](WorkObserver&, const Kernel&, const void*, int64_t, int64_t) {
      return int32_t(TT_OK);
    };
    work.check = [](WorkObserver&, const Tensor&, const DeviceCheck&) { return false; };
  }
  ~Dry() {
    if (ctx().work != &work) return;
    work.launch = launch;
    work.check = check;
  }
  Dry(const Dry&) = delete;
};

void Importer::call() {
  n_given_ = 0;
  const int64_t before = items_.size();
  const auto any = [&] {
    return constant() || elementwise() || product() || image() || layer() || recurrent() ||
           reduction() || arrangement() || indexing();
  };
  bool done;
  if (may_compute()) {
    const Outside outside;
    done = any();
    for (int64_t i = before; i < items_.size(); i++) {
      items_[i].known = true;
      computed_ += items_[i].t->numel;
    }
  } else {
    const Dry dry;
    done = any();
  }
  if (!done) refuse("has no counterpart");
  for (int64_t k = n_given_; k < outputs_.size(); k++)
    if (outputs_[k].n) refuse("a result that tt does not compute");
}

void Importer::read_attr(Span<const char> bytes) {
  Attr a;
  Field f;
  for (Message m(bytes); m.next(f);) {
    switch (f.number) {
      case 1: a.name = f.bytes; break;
      case 2: a.f = f.real(); break;
      case 3: a.i = f.integer(); break;
      case 4: a.s = f.bytes; break;
      case 5: a.tensor = f.bytes; break;
      case 6: a.graph = f.bytes; break;
      case 8: add_integers(a.ints, f); break;
      case 9: a.texts.push_back(f.bytes); break;
      default: break;
    }
  }
  attrs_.push_back(std::move(a));
}

void Importer::read_node(Span<const char> node) {
  inputs_.clear();
  outputs_.clear();
  attrs_.clear();
  type_ = {};
  Name domain;
  Field f;
  for (Message m(node); m.next(f);) {
    if (f.number == 1) inputs_.push_back(f.bytes);
    if (f.number == 2) outputs_.push_back(f.bytes);
    if (f.number == 4) type_ = f.bytes;
    if (f.number == 7) domain = f.bytes;
  }
  for (Message m(node); m.next(f);)
    if (f.number == 5) read_attr(f.bytes);
  if (domain.n && !is(domain, "ai.onnx")) refuse("an operator of another domain");
  if (is(type_, "If")) return read_branch();
  call();
  at_++;
}

// The nodes of one branch, if constants decide which; branches in branches are few.
void Importer::read_branch() {
  const Tensor& condition = in(0);
  if (!item(inputs_[0]).known || condition.numel != 1) refuse("a condition that depends on inputs");
  const bool yes = load_scalar(condition.data, condition.dtype).real() != 0;
  const Attr* a = attr(yes ? "then_branch" : "else_branch");
  if (!a || depth_ == kMaxDepth) refuse("no branch, or branches in too many others");
  const Span<const char> graph = a->graph;
  SmallVec<Name, 4> names;
  for (const Name& name : outputs_) names.push_back(name);
  at_++;
  depth_++;
  Field f;
  read_constants(graph);
  for (Message m(graph); m.next(f);)
    if (f.number == 1) read_node(f.bytes);
  depth_--;
  int64_t k = 0;
  for (Message m(graph); m.next(f);) {
    if (f.number != 12) continue;
    Field v;
    Name name = name_of("");
    for (Message info(f.bytes); info.next(v);)
      if (v.number == 1) name = v.bytes;
    TensorRef made = item(name).t;
    const bool known = item(name).known;
    if (k < names.size() && names[k].n) add(names[k], std::move(made), known);
    k++;
  }
}

// A ValueInfoProto of an input that is no constant.
void Importer::read_input(Span<const char> info, SmallVec<TensorRef, 4>& inputs) {
  Name name = name_of("");
  Span<const char> type, tensor, shape;
  int64_t dtype = 0;
  Field f;
  for (Message m(info); m.next(f);) {
    if (f.number == 1) name = f.bytes;
    if (f.number == 2) type = f.bytes;
  }
  if (map_.find(name, [&](int64_t i) { return items_[i].name; }) >= 0) return;
  for (Message m(type); m.next(f);)
    if (f.number == 1) tensor = f.bytes;
  for (Message m(tensor); m.next(f);) {
    if (f.number == 1) dtype = f.integer();
    if (f.number == 2) shape = f.bytes;
  }
  Shape sizes;
  for (Message m(shape); m.next(f);) {
    if (f.number != 1) continue;
    int64_t size = dynamic_;
    Field d;
    for (Message of_dim(f.bytes); of_dim.next(d);)
      if (d.number == 1) size = d.integer();
    sizes.push_back(size);
    if (size < 0 || sizes.size() > kMaxDims) fail_format("an input has no shape");
  }
  const Dtype d = dtype_of(dtype);
  checked_numel(sizes, d, "an input");
  TensorRef t = new_tensor(sizes, d, kCpuDevice);
  inputs.push_back(t);
  add(name, std::move(t), false);
}

void Importer::read_constants(Span<const char> graph) {
  Field f;
  for (Message m(graph); m.next(f);) {
    if (f.number == 15) fail(TT_NOT_IMPLEMENTED, "sparse tensors");
    if (f.number != 5) continue;
    const TensorMessage text(f.bytes);
    add(text.name, text.tensor(files_), true);
  }
}

void Importer::read_graph(Span<const char> graph) {
  Field f;
  SmallVec<TensorRef, 4> inputs, outputs;
  read_constants(graph);
  for (Message m(graph); m.next(f);)
    if (f.number == 11) read_input(f.bytes, inputs);
  SmallVec<const Tensor*, 4> list;
  for (const TensorRef& t : inputs) list.push_back(t.get());
  begin_capture({list.data(), list.size()}, {.allow_reads = true});
  running_ = true;
  for (Message m(graph); m.next(f);)
    if (f.number == 1) read_node(f.bytes);
}

Ref<Graph> Importer::run() {
  Ctx& c = ctx();
  if (c.graph) fail(TT_INVALID_ARG, "a graph is being captured on this ctx");
  Span<const char> graph;
  Field f;
  for (Message m(bytes_); m.next(f);) {
    if (f.number == 7) graph = f.bytes;
    if (f.number != 8) continue;
    Name domain;
    int64_t version = 0;
    Field o;
    for (Message opset(f.bytes); opset.next(o);) {
      if (o.number == 1) domain = o.bytes;
      if (o.number == 2) version = o.integer();
    }
    if (!domain.n || is(domain, "ai.onnx")) opset_ = version;
  }
  if (!graph.n || opset_ < 7) fail_format("no graph, or an opset before 7");
  const MaskGuard no_grad(bit(kKeyAutograd));
  read_graph(graph);
  SmallVec<TensorRef, 4> keep;
  SmallVec<const Tensor*, 4> outputs;
  for (Message m(graph); m.next(f);) {
    if (f.number != 12) continue;
    Field v;
    Name name = name_of("");
    for (Message info(f.bytes); info.next(v);)
      if (v.number == 1) name = v.bytes;
    keep.push_back(item(name).t);
    outputs.push_back(keep.back().get());
  }
  running_ = false;
  return end_capture({outputs.data(), outputs.size()});
}

}  // namespace

Ref<Graph> import_onnx(Span<const char> bytes, int64_t dynamic, OnnxFiles* files) {
  return Importer(bytes, dynamic, files).run();
}

}  // namespace TT_NS
