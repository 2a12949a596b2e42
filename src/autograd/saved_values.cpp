#include "autograd/saved_values.h"

#include "autograd/function.h"
#include "autograd/node_reading.h"
#include "autograd/saved.h"
#include "autograd/wrap.h"
#include "base/text/utf8.h"

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
    align_ = max(align_, layout.align);
    return true;
  }
  // (at the end) the size of a struct of these members
  size_t size() const { return round_up(at_, align_); }
  template <class T> const T& as() const { return *reinterpret_cast<const T*>(value_); }

  SavedKind kind;
  Span<const char> name;

 private:
  const char* text_ = "";
  const char* area_;
  const char* value_ = nullptr;
  size_t at_ = 0;
  size_t align_ = 1;
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
      if (!m.as<Opt<int64_t>>()) break;
      out.add(*m.as<Opt<int64_t>>());
      return;
    case SavedKind::kOptFloat:
      if (!m.as<Opt<double>>()) break;
      out.add_double(*m.as<Opt<double>>());
      return;
    case SavedKind::kRng: break;
  }
  out.add("null");
}

// Fails unless the members are those of the struct that the generator has written for the node.
void check_layout(Node& n) {
  if (!n.type->members) return;
  Members m(n);
  while (m.next()) {}
  if (m.size() != n.type->saved_bytes)
    fail(TT_INTERNAL, "{} saved {} bytes, its members have {}", n.type->name, n.type->saved_bytes,
         m.size());
}

void add_outputs(Text& out, Node& n) {
  Shape outputs;
  outputs.resize(n.n_edges);
  {
    Lock lock(shared_lock);
    for (int64_t i = 0; i < n.n_edges; i++) outputs[i] = n.edges()[i].nr;
  }
  add_ints(out.add(",\"outputs\":"), outputs);
}

void add_results(Text& out, Node& n) {
  const char* before = ",\"results\":[";
  for (int64_t i = 0; i < n.n_outs; i++) {
    const NodeOut& o = n.outs()[i];
    out.add(before);
    if (o.defined) add_ints(out, o.sizes());
    else out.add("null");
    before = ",";
  }
  out.add("]");
}

// readable: the values may be read; they are null otherwise.
void add_saved(Text& out, Node& n, bool readable) {
  int64_t n_tensors = 0;
  const char* before = "\"";
  out.add(",\"saved\":{");
  for (Members m(n); m.next();) {
    out.add(before).add(m.name).add("\":");
    if (readable) add_value(out, m, n_tensors);
    else out.add("null");
    before = ",\"";
  }
  out.add("}");
}

// Returns saved tensor i, without the values if hooks of the application hold them.
Saved find_saved(Node& n, int64_t i) {
  const NodeReading reading(n);
  if (!reading.allowed())
    fail(TT_AUTOGRAD, "a backward of another thread runs {}: its saved tensors cannot be read now",
         n.type->name);
  check_not_released(n);
  int64_t before = 0;
  if (const Function* f = recorded_function(n)) {
    const Span<const Saved> saved = saved_by(*f);
    if (i >= 0 && i < saved.n) return saved[i];
    before = saved.n;
  }
  for (Members m(n); m.next();) {
    if (m.kind == SavedKind::kTensor) {
      if (before++ == i) return m.as<Saved>();
    } else if (m.kind == SavedKind::kTensors) {
      const SavedList& list = m.as<SavedList>();
      if (before <= i && i - before < list.size()) return list[i - before];
      before += list.size();
    }
  }
  fail_arg(TT_INDEX, "i", "i is {}: the node saved {} tensors", i, before);
}

}  // namespace

void print_node(Node& n, Text& out) {
  check_layout(n);
  add_json_string(out.add("{\"name\":"), {n.type->name, int64_t(strlen(n.type->name))});
  add_outputs(out, n);
  add_results(out, n);
  const NodeReading reading(n);
  const bool held = !reading.allowed();
  const bool released = !held && n.released;
  const bool readable = !held && !released;
  out.add(",\"held\":").add(held ? "true" : "false");
  out.add(",\"released\":").add(released ? "true" : "false");
  add_saved(out, n, readable);
  if (const Function* f = recorded_function(n)) {
    const auto user = reinterpret_cast<uintptr_t>(def_of(*f).user);
    out.add(",\"user\":").add(int64_t(user));
    out.add(",\"tensors\":").add(readable ? saved_by(*f).n : 0);
  }
  out.add("}");
}

TensorRef saved_tensor(Node& n, int64_t i) {
  // Hooks of the application unpack the copy, after the reading has ended.
  const Saved found = find_saved(n, i);
  return found.defined() ? found.get(n) : TensorRef();
}

}  // namespace TT_NS
