// Graphs of one computation for two sizes of a dimension: what differs between them, and the graph
// for a third size.
#include "graph/resize.h"

#include "graph/edit.h"
#include "graph/rewrite.h"

#include <string.h>

namespace TT_NS {

DynamicDim dynamic_dim(const Graph& a, const Graph& b) {
  if (a.inputs.size() != b.inputs.size() || a.outputs.size() != b.outputs.size())
    fail(TT_INVALID_ARG, "other has other numbers of inputs and outputs than g");
  for (int64_t i = 0; i < a.inputs.size(); i++) {
    const Shape &x = a.values[a.inputs[i]].sizes, &y = b.values[b.inputs[i]].sizes;
    if (x.size() != y.size())
      fail(TT_INVALID_ARG, "input {} is {} in g and {} in other: must have as many dimensions", i,
           Ints(x), Ints(y));
    for (int64_t d = 0; d < x.size(); d++)
      if (x[d] != y[d]) return {int32_t(i), int32_t(d), x[d], y[d]};
  }
  fail(TT_INVALID_ARG, "the inputs of g and other have the same sizes");
}

bool DynamicDim::grows(int64_t va, int64_t vb, int64_t* times) const {
  int64_t change;
  *times = 0;
  if (va == vb) return true;
  if (__builtin_sub_overflow(vb, va, &change) || change % (b - a)) return false;
  *times = change / (b - a);
  return true;
}

namespace {

class Resizing {
 public:
  Resizing(const Graph& a, const Graph& b, int64_t size)
      : a_(a), b_(b), dim_(dynamic_dim(a, b)), size_(size) {}
  Ref<Graph> run();

 private:
  [[noreturn]] void refuse(const char* why) const {
    if (at_ < 0) fail(TT_NOT_IMPLEMENTED, "{}", why);
    fail(TT_NOT_IMPLEMENTED, "node {}, {}: {}", at_, a_.nodes[at_].op->name(), why);
  }
  void resize(int64_t& v, int64_t other) const;
  void resize(int64_t* list, int64_t n, Ints other) const;
  void resize(IrArg& x, const IrArg& y) const;
  void resize(IrValue& x, const IrValue& y) const;
  void check_storages(Graph& g) const;

  const Graph &a_, &b_;
  const DynamicDim dim_;
  const int64_t size_;
  int64_t at_ = -1;  // the node at hand
};

void Resizing::resize(int64_t& v, int64_t other) const {
  int64_t times, more;
  if (!dim_.grows(v, other, &times)) refuse("a number does not grow evenly with the size");
  if (__builtin_mul_overflow(times, size_ - dim_.a, &more) || __builtin_add_overflow(v, more, &v))
    refuse("a number is too large for that size");
}
void Resizing::resize(int64_t* list, int64_t n, Ints other) const {
  if (n != other.n) refuse("a list has other lengths for the two sizes");
  for (int64_t i = 0; i < n; i++) resize(list[i], other[i]);
}

void Resizing::resize(IrArg& x, const IrArg& y) const {
  const bool same_numbers = memcmp(&x.f, &y.f, sizeof x.f) == 0 && x.scalar.kind == y.scalar.kind &&
                            x.scalar.i == y.scalar.i && !memcmp(&x.scalar.re, &y.scalar.re, 16);
  const bool same_rest = x.kind == y.kind && x.values.size() == y.values.size() &&
                         x.index.size() == y.index.size() && x.text.is(y.text.c_str()) &&
                         x.draw == y.draw && x.object.get() == y.object.get();
  if (!same_numbers) refuse("a number that is no size depends on the size");
  if (!same_rest) refuse("its arguments are others for the two sizes");
  for (int64_t i = 0; i < x.values.size(); i++)
    if (x.values[i] != y.values[i]) refuse("it reads another value for the other size");
  if (x.kind == Value::kInt) resize(x.i, y.i);
  else if (x.i != y.i) refuse("its arguments are others for the two sizes");
  resize(x.ints.data(), x.ints.size(), y.ints.span());
  auto before = int64_t(x.counters_before);
  resize(before, int64_t(y.counters_before));
  x.counters_before = uint64_t(before);
  for (int64_t i = 0; i < x.index.size(); i++) {
    tt_index& to = x.index[i];
    const tt_index& from = y.index[i];
    if (to.kind != from.kind || to.has != from.has || to.step != from.step)
      refuse("its arguments are others for the two sizes");
    resize(to.start, from.start);
    resize(to.stop, from.stop);
  }
}

void Resizing::resize(IrValue& x, const IrValue& y) const {
  if (x.storage != y.storage || x.version != y.version || x.dtype != y.dtype || x.node != y.node)
    refuse("a value is another one for the other size");
  resize(x.offset, y.offset);
  resize(x.sizes.data(), x.sizes.size(), y.sizes.span());
  resize(x.strides.data(), x.strides.size(), y.strides.span());
}

void Resizing::check_storages(Graph& g) const {
  if (g.storages.size() != b_.storages.size()) refuse("the graphs use different memories");
  for (int64_t i = 0; i < g.storages.size(); i++) {
    IrStorage& x = g.storages[i];
    const IrStorage& y = b_.storages[i];
    if (x.role != y.role) refuse("the graphs use different memories");
    if (x.role == IrRole::kInput || x.role == IrRole::kMade) {
      resize(x.bytes, y.bytes);
      continue;
    }
    if (x.tensor->storage != y.tensor->storage)
      refuse("a constant of the graphs is not the same memory: make it before both captures");
  }
}

Ref<Graph> Resizing::run() {
  Ref<Graph> to = copy_graph(a_);
  Graph& g = *to;
  if (g.nodes.size() != b_.nodes.size() || g.values.size() != b_.values.size() ||
      g.draws.size() != b_.draws.size())
    refuse("the graphs have different operators");
  check_storages(g);
  for (at_ = 0; at_ < g.nodes.size(); at_++) {
    IrNode& n = g.nodes[at_];
    const IrNode& other = b_.nodes[at_];
    if (n.op != other.op || n.outs.size() != other.outs.size())
      refuse("another operator runs for the other size");
    if (n.reads) refuse("it reads elements on the host");
    for (int64_t k = 0; k < n.args.size(); k++) resize(n.args[k], other.args[k]);
  }
  at_ = -1;
  for (int64_t i = 0; i < g.values.size(); i++) resize(g.values[i], b_.values[i]);
  for (int64_t i = 0; i < g.draws.size(); i++) {
    auto counters = int64_t(g.draws[i].counters);
    resize(counters, int64_t(b_.draws[i].counters));
    if (counters < 0) refuse("it draws no numbers for that size");
    g.draws[i].counters = uint64_t(counters);
  }
  for (const IrValue& v : g.values)
    for (const int64_t size : v.sizes)
      if (size < 0) refuse("a tensor would have a negative size");
  const SmallVec<IrValue, 1> want(g.values.span());
  const SmallVec<int32_t, 4> outputs(g.outputs.span());
  rebuild_graph(g);
  for (int64_t i = 0; i < outputs.size(); i++)
    if (!same(g.values[g.outputs[i]].sizes, want[outputs[i]].sizes))
      refuse("an output does not grow evenly with the size");
  return to;
}

}  // namespace

Ref<Graph> resize_graph(const Graph& a, const Graph& b, int64_t size) {
  if (size < 0) fail_arg(TT_INVALID_ARG, "size", "size is {}: must not be negative", size);
  return Resizing(a, b, size).run();
}

}  // namespace TT_NS
