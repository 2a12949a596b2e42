#include "graph/onnx/importer.h"

#include "core/graph_hooks.h"
#include "graph/capture.h"
#include "graph/onnx/tensor_message.h"

namespace TT_NS {

namespace {

constexpr int64_t kMaxComputed = 1 << 24;  // elements of all constants that nodes make
constexpr int64_t kMaxDepth = 8;           // of branches in branches

// Computes in place of recording; what it makes is a constant.
struct Outside {
  Ctx& c = ctx();
  const KeySet include = c.include;
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

}  // namespace

// ---- the node at hand ----

TensorRef integers(Ints list) {
  TensorRef t = new_tensor(Ints(&list.n, 1), Dtype::kI64, kCpuDevice);
  if (list.n) memcpy(t->data, list.ptr, size_t(list.n) * 8);
  return t;
}

OnnxImporter::~OnnxImporter() {
  if (running_) drop_capture(ctx());
}

void OnnxImporter::refuse(const char* why) const {
  Text type;
  for (int64_t i = 0; i < min(type_.n, int64_t(64)); i++) {
    const char c = type_[i];
    type.add({c >= ' ' && c < 127 ? &type_[i] : "?", 1});
  }
  fail(TT_NOT_IMPLEMENTED, "node {}, {}: {}", at_, type.c_str(), why);
}

void OnnxImporter::add(Name name, TensorRef t, bool known) {
  map_.make_room();
  const int64_t found = map_.find(name, [&](int64_t i) { return items_[i].name; });
  if (found >= 0) fail(TT_FORMAT, "not an ONNX model: node {} makes a name twice", at_);
  items_.push_back({name, std::move(t), known});
  map_.add(name, items_.size() - 1);
}
const ModelTensor& OnnxImporter::item(Name name) const {
  const int64_t found = map_.find(name, [&](int64_t i) { return items_[i].name; });
  if (found < 0) fail(TT_FORMAT, "not an ONNX model: node {} reads a name before it is made", at_);
  return items_[found];
}

const OnnxAttr* OnnxImporter::attr(const char* name) const {
  for (const OnnxAttr& a : attrs_)
    if (is(a.name, name)) return &a;
  return nullptr;
}
int64_t OnnxImporter::integer(const char* name, int64_t missing) const {
  const OnnxAttr* a = attr(name);
  return a ? a->i : missing;
}
double OnnxImporter::real(const char* name, double missing) const {
  const OnnxAttr* a = attr(name);
  return a ? double(a->f) : missing;
}
bool OnnxImporter::text_is(const char* name, const char* wanted, bool missing) const {
  const OnnxAttr* a = attr(name);
  return a ? is(a->s, wanted) : missing;
}
const Tensor& OnnxImporter::in(int64_t i) const {
  if (!has(i)) fail(TT_FORMAT, "not an ONNX model: node {} lacks input {}", at_, i);
  return *item(inputs_[i]).t;
}
Shape OnnxImporter::numbers(int64_t i) const {
  in(i);
  const ModelTensor& x = item(inputs_[i]);
  if (!x.known || x.t->numel > kSmallConstant)
    refuse("a shape or a position that depends on inputs");
  if (x.t->dtype != Dtype::kI64 && x.t->dtype != Dtype::kI32) refuse("a shape of no integers");
  Shape list;
  const bool wide = x.t->dtype == Dtype::kI64;
  const int64_t step = x.t->ndim ? x.t->stride(0) : 1;
  if (x.t->ndim > 1) refuse("a shape that is no vector");
  for (int64_t k = 0; k < x.t->numel; k++)
    list.push_back(wide ? x.t->as<int64_t>()[k * step] : x.t->as<int32_t>()[k * step]);
  return list;
}
Shape OnnxImporter::numbers(int64_t i, const char* name) const {
  if (has(i)) return numbers(i);
  const OnnxAttr* a = attr(name);
  return a ? Shape(a->ints.span()) : Shape();
}
double OnnxImporter::number(int64_t i, double missing) const {
  if (!has(i)) return missing;
  const ModelTensor& x = item(inputs_[i]);
  if (!x.known || x.t->numel != 1) refuse("a number that depends on inputs");
  return load_scalar(x.t->data, x.t->dtype).real();
}
int64_t OnnxImporter::whole_number(int64_t i, int64_t missing) const {
  if (!has(i)) return missing;
  const Shape list = numbers(i);
  if (list.size() != 1) refuse("an input that is no number");
  return list[0];
}
int64_t OnnxImporter::dim(int64_t d, int64_t ndim) const { return wrap_dim(d, ndim, "axis"); }
void OnnxImporter::give(TensorRef t, bool known) {
  const int64_t k = n_given_++;
  if (k >= outputs_.size() || outputs_[k].n == 0) return;
  add(outputs_[k], std::move(t), known);
}

bool OnnxImporter::give_one(Span<const OneResult> readers, bool known) {
  for (const OneResult& r : readers) {
    if (!is(type_, r.type)) continue;
    give(r.read(*this), known);
    return true;
  }
  return false;
}

bool OnnxImporter::read_one(Span<const Reader> readers) {
  for (const Reader& r : readers) {
    if (!is(type_, r.type)) continue;
    r.read(*this);
    return true;
  }
  return false;
}

// ---- the graph ----

// Whether the node at hand computes with small constants only, or makes a view of one.
bool OnnxImporter::may_compute() const {
  if (inputs_.empty() || computed_ > kMaxComputed || is_microsoft_) return false;
  for (const char* larger :
       {"Pad", "Tile", "Expand", "Conv", "ConvTranspose", "MaxPool", "AveragePool", "Resize",
        "Einsum", "OneHot", "GridSample", "ConvInteger", "QLinearConv"})
    if (is(type_, larger)) return false;
  for (const Name& name : inputs_)
    if (name.n && !item(name).known) return false;
  if (is(type_, "Transpose") || is(type_, "Identity")) return true;
  for (const char* view : {"Reshape", "Flatten", "Squeeze", "Unsqueeze"})
    if (is(type_, view)) return in(0).contiguous() || in(0).numel <= kSmallConstant;
  for (const Name& name : inputs_)
    if (name.n && item(name).t->numel > kSmallConstant) return false;
  return true;
}

void OnnxImporter::call() {
  n_given_ = 0;
  const int64_t before = items_.size();
  const auto any = [&] {
    if (is_microsoft_) return microsoft();
    return constant() || elementwise() || quantized() || product() || image() || layer() ||
           recurrent() || reduction() || arrangement() || indexing() || attention_layer();
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

void OnnxImporter::read_attr(Span<const char> bytes) {
  OnnxAttr a;
  ProtoField f;
  for (ProtoMessage m(bytes); m.next(f);) {
    switch (f.number) {
      case 1: a.name = f.bytes; break;
      case 2: a.f = f.real(); break;
      case 3: a.i = f.integer(); break;
      case 4: a.s = f.bytes; break;
      case 5: a.tensor = f.bytes; break;
      case 6: a.graph = f.bytes; break;
      case 7: add_reals(a.reals, f); break;
      case 8: add_integers(a.ints, f); break;
      case 9: a.texts.push_back(f.bytes); break;
      default: break;
    }
  }
  attrs_.push_back(std::move(a));
}

void OnnxImporter::read_node(Span<const char> node) {
  inputs_.clear();
  outputs_.clear();
  attrs_.clear();
  type_ = {};
  Name domain;
  ProtoField f;
  for (ProtoMessage m(node); m.next(f);) {
    if (f.number == 1) inputs_.push_back(f.bytes);
    if (f.number == 2) outputs_.push_back(f.bytes);
    if (f.number == 4) type_ = f.bytes;
    if (f.number == 7) domain = f.bytes;
  }
  for (ProtoMessage m(node); m.next(f);)
    if (f.number == 5) read_attr(f.bytes);
  is_microsoft_ = is(domain, "com.microsoft");
  if (domain.n && !is_microsoft_ && !is(domain, "ai.onnx")) refuse("an operator of another domain");
  if (is(type_, "If")) return read_branch();
  call();
  at_++;
}

// Returns the name in a ValueInfoProto.
static Name name_of_value(Span<const char> info) {
  Name name = name_of("");
  ProtoField f;
  for (ProtoMessage m(info); m.next(f);)
    if (f.number == 1) name = f.bytes;
  return name;
}

// The nodes of one branch, if constants decide which; branches in branches are few.
void OnnxImporter::read_branch() {
  const Tensor& condition = in(0);
  if (!item(inputs_[0]).known || condition.numel != 1) refuse("a condition that depends on inputs");
  const bool yes = load_scalar(condition.data, condition.dtype).real() != 0;
  const OnnxAttr* a = attr(yes ? "then_branch" : "else_branch");
  if (!a || depth_ == kMaxDepth) refuse("no branch, or branches in too many others");
  const Span<const char> graph = a->graph;
  SmallVec<Name, 4> names;
  for (const Name& name : outputs_) names.push_back(name);
  at_++;
  depth_++;
  ProtoField f;
  read_constants(graph);
  for (ProtoMessage m(graph); m.next(f);)
    if (f.number == 1) read_node(f.bytes);
  depth_--;
  int64_t k = 0;
  for (ProtoMessage m(graph); m.next(f);) {
    if (f.number != 12) continue;
    const Name name = name_of_value(f.bytes);
    TensorRef made = item(name).t;
    const bool known = item(name).known;
    if (k < names.size() && names[k].n) add(names[k], std::move(made), known);
    k++;
  }
}

// A ValueInfoProto of an input that is no constant.
void OnnxImporter::read_input(Span<const char> info, SmallVec<TensorRef, 4>& inputs) {
  const Name name = name_of_value(info);
  Span<const char> type, tensor, shape;
  int64_t dtype = 0;
  ProtoField f;
  for (ProtoMessage m(info); m.next(f);)
    if (f.number == 2) type = f.bytes;
  if (map_.find(name, [&](int64_t i) { return items_[i].name; }) >= 0) return;
  for (ProtoMessage m(type); m.next(f);)
    if (f.number == 1) tensor = f.bytes;
  for (ProtoMessage m(tensor); m.next(f);) {
    if (f.number == 1) dtype = f.integer();
    if (f.number == 2) shape = f.bytes;
  }
  Shape sizes;
  for (ProtoMessage m(shape); m.next(f);) {
    if (f.number != 1) continue;
    int64_t size = dynamic_;
    ProtoField d;
    for (ProtoMessage of_dim(f.bytes); of_dim.next(d);)
      if (d.number == 1) size = d.integer();
    sizes.push_back(size);
    if (size < 0 || sizes.size() > kMaxOnnxDims) fail_model("an input has no shape");
  }
  const Dtype d = model_dtype(dtype);
  checked_numel(sizes, d, "an input");
  TensorRef t = new_tensor(sizes, d, kCpuDevice);
  inputs.push_back(t);
  add(name, std::move(t), false);
}

void OnnxImporter::read_constants(Span<const char> graph) {
  ProtoField f;
  for (ProtoMessage m(graph); m.next(f);) {
    if (f.number == 15) fail(TT_NOT_IMPLEMENTED, "sparse tensors");
    if (f.number != 5) continue;
    const TensorMessage text(f.bytes);
    add(text.name, text.tensor(files_), true);
  }
}

void OnnxImporter::read_graph(Span<const char> graph) {
  ProtoField f;
  SmallVec<TensorRef, 4> inputs, outputs;
  read_constants(graph);
  for (ProtoMessage m(graph); m.next(f);)
    if (f.number == 11) read_input(f.bytes, inputs);
  SmallVec<const Tensor*, 4> list;
  for (const TensorRef& t : inputs) list.push_back(t.get());
  begin_capture({list.data(), list.size()}, {.allow_reads = true});
  running_ = true;
  for (ProtoMessage m(graph); m.next(f);)
    if (f.number == 1) read_node(f.bytes);
}

Ref<Graph> OnnxImporter::run() {
  Ctx& c = ctx();
  if (c.graph) fail(TT_INVALID_ARG, "a graph is being captured on this ctx");
  Span<const char> graph;
  ProtoField f;
  for (ProtoMessage m(bytes_); m.next(f);) {
    if (f.number == 7) graph = f.bytes;
    if (f.number != 8) continue;
    Name domain;
    int64_t version = 0;
    ProtoField o;
    for (ProtoMessage opset(f.bytes); opset.next(o);) {
      if (o.number == 1) domain = o.bytes;
      if (o.number == 2) version = o.integer();
    }
    if (!domain.n || is(domain, "ai.onnx")) opset_ = version;
  }
  if (!graph.n || opset_ < 7) fail_model("no graph, or an opset before 7");
  const MaskGuard no_grad(bit(kKeyAutograd));
  read_graph(graph);
  SmallVec<TensorRef, 4> keep;
  SmallVec<const Tensor*, 4> outputs;
  for (ProtoMessage m(graph); m.next(f);) {
    if (f.number != 12) continue;
    keep.push_back(item(name_of_value(f.bytes)).t);
    outputs.push_back(keep.back().get());
  }
  running_ = false;
  return end_capture({outputs.data(), outputs.size()});
}

Ref<Graph> import_onnx(Span<const char> bytes, int64_t dynamic, OnnxFiles* files) {
  return OnnxImporter(bytes, dynamic, files).run();
}

}  // namespace TT_NS
