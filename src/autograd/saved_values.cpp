#include "autograd/saved_values.h"

#include "autograd/function.h"
#include "autograd/saved.h"
#include "autograd/wrap.h"

#include <string.h>

namespace TT_NS {

namespace {

struct Layout {
  size_t size, align;
};
template <class T> constexpr Layout layout_as() { return {sizeof(T), alignof(T)}; }
Layout layout_of(SavedKind kind) {
  switch (kind) {
    case SavedKind::kTensor: return layout_as<Saved>();
    case SavedKind::kTensors: return layout_as<SavedList>();
    case SavedKind::kInts: return layout_as<Shape>();
    case SavedKind::kOptInts: return layout_as<SavedInts>();
    case SavedKind::kShapes: return layout_as<ShapeList>();
    case SavedKind::kScalar: return layout_as<Scalar>();
    case SavedKind::kOptScalar: return layout_as<SavedScalar>();
    case SavedKind::kInt: return layout_as<int64_t>();
    case SavedKind::kOptInt: return layout_as<Opt<int64_t>>();
    case SavedKind::kFloat: return layout_as<double>();
    case SavedKind::kOptFloat: return layout_as<Opt<double>>();
    case SavedKind::kBool: return layout_as<bool>();
    case SavedKind::kDtype: return layout_as<Dtype>();
    case SavedKind::kDevice: return layout_as<Device>();
    case SavedKind::kRng: return layout_as<Rng>();
  }
  TT_UNREACHABLE();
}

// The members of a node's struct, one after the other.
class Members {
 public:
  explicit Members(Node& n) : area_(static_cast<const char*>(n.saved())) {
    if (n.type->members) text_ = node_members;
    for (int i = 1; i < n.type->members; i++) text_ += strlen(text_) + 1;
  }
  // Proceeds to the next member; false at the end.
  bool next() {
    if (!*text_) return false;
    kind = SavedKind(*text_++);
    const char* end = text_;
    while (*end && *end != ',') end++;
    name = {text_, end - text_};
    text_ = *end ? end + 1 : end;
    const Layout layout = layout_of(kind);
    at_ = round_up(at_, layout.align);
    value_ = area_ + at_;
    at_ += layout.size;
    return true;
  }
  template <class T> const T& as() const { return *reinterpret_cast<const T*>(value_); }

  SavedKind kind;
  Span<const char> name;

 private:
  const char* text_ = "";
  const char* area_;
  const char* value_ = nullptr;
  size_t at_ = 0;
};

void add_ints(Text& out, Ints ints) {
  const char* before = "[";
  for (int64_t i : ints) {
    out.add(before).add(i);
    before = ",";
  }
  out.add(ints.n ? "]" : "[]");
}

void add_scalar(Text& out, const Scalar& s) {
  if (s.is_complex()) {
    out.add("{\"complex\":[").add_double(s.re).add(",").add_double(s.im).add("]}");
  } else if (s.is_bool()) {
    out.add(s.i ? "true" : "false");
  } else if (s.is_int()) {
    out.add(s.i);
  } else {
    out.add_double(s.re);
  }
}

void add_shapes(Text& out, const ShapeList& shapes) {
  const char* before = "[";
  for (const Shape& s : shapes) {
    add_ints(out.add(before), s);
    before = ",";
  }
  out.add(shapes.empty() ? "[]" : "]");
}

// n_tensors: the number of tensors so far.
void add_value(Text& out, const Members& m, int64_t& n_tensors) {
  switch (m.kind) {
    case SavedKind::kTensor:
      if (m.as<Saved>().defined()) out.add("{\"tensor\":").add(n_tensors).add("}");
      else out.add("null");
      n_tensors++;
      return;
    case SavedKind::kTensors: {
      const int64_t n = m.as<SavedList>().size();
      out.add("{\"tensors\":[").add(n_tensors).add(",").add(n).add("]}");
      n_tensors += n;
      return;
    }
    case SavedKind::kInts: return add_ints(out, m.as<Shape>());
    case SavedKind::kShapes: return add_shapes(out, m.as<ShapeList>());
    case SavedKind::kScalar: return add_scalar(out, m.as<Scalar>());
    case SavedKind::kInt: out.add(m.as<int64_t>()); return;
    case SavedKind::kFloat: out.add_double(m.as<double>()); return;
    case SavedKind::kBool: out.add(m.as<bool>() ? "true" : "false"); return;
    case SavedKind::kDtype: out.add("{\"dtype\":").add(int64_t(m.as<Dtype>())).add("}"); return;
    case SavedKind::kDevice:
      out.add("{\"device\":");
      add_ints(out, Shape({m.as<Device>().type, m.as<Device>().index}));
      out.add("}");
      return;
    case SavedKind::kOptInts:
      if (m.as<SavedInts>().has) return add_ints(out, m.as<SavedInts>().value);
      break;
    case SavedKind::kOptScalar:
      if (m.as<SavedScalar>().has) return add_scalar(out, m.as<SavedScalar>().value);
      break;
    case SavedKind::kOptInt:
      if (m.as<Opt<int64_t>>()) return void(out.add(*m.as<Opt<int64_t>>()));
      break;
    case SavedKind::kOptFloat:
      if (m.as<Opt<double>>()) return void(out.add_double(*m.as<Opt<double>>()));
      break;
    case SavedKind::kRng: break;
  }
  out.add("null");
}

// While it exists, no other thread frees what the node saved.
class Claimed {
 public:
  explicit Claimed(Node& n) : n_(n) { claim_node(n, nullptr); }
  ~Claimed() { give_up_claim(n_); }
  Claimed(const Claimed&) = delete;

 private:
  Node& n_;
};

}  // namespace

void print_node(Node& n, Text& out) {
  const Claimed claimed(n);
  Shape outputs;
  outputs.resize(n.n_edges);
  {
    Lock lock(shared_lock);
    for (int64_t i = 0; i < n.n_edges; i++) outputs[i] = n.edges()[i].nr;
  }
  out.add("{\"name\":\"").add(n.type->name).add("\",\"outputs\":");
  add_ints(out, outputs);
  out.add(",\"released\":").add(n.released ? "true" : "false").add(",\"saved\":{");
  int64_t n_tensors = 0;
  const char* before = "\"";
  for (Members m(n); m.next();) {
    out.add(before).add(m.name).add("\":");
    if (n.released) out.add("null");
    else add_value(out, m, n_tensors);
    before = ",\"";
  }
  out.add("}");
  if (const Function* f = recorded_function(n))
    out.add(",\"user\":").add(int64_t(def_of(*f).user)).add(",\"tensors\":").add(saved_by(*f).n);
  out.add("}");
}

TensorRef saved_tensor(Node& n, int64_t i) {
  const Claimed claimed(n);
  check_not_released(n);
  int64_t before = 0;
  if (const Function* f = recorded_function(n)) {
    const Span<const Saved> saved = saved_by(*f);
    if (i >= 0 && i < saved.n) return saved[i].get_opt(n);
    before = saved.n;
  }
  for (Members m(n); m.next();) {
    if (m.kind == SavedKind::kTensor) {
      if (before++ == i) return m.as<Saved>().get_opt(n);
    } else if (m.kind == SavedKind::kTensors) {
      const SavedList& list = m.as<SavedList>();
      if (before <= i && i - before < list.size()) return list[i - before].get_opt(n);
      before += list.size();
    }
  }
  fail_arg(TT_INDEX, "i", "i is {}: the node saved {} tensors", i, before);
}

}  // namespace TT_NS
