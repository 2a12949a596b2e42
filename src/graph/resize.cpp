// Graphs of one computation for two sizes of a dimension: what differs between them, and the graph
// for a third size.
#include "graph/resize.h"

#include "graph/edit.h"
#include "graph/rewrite.h"
#include "plan/attention_plan.h"
#include "plan/random_build.h"

#include <math.h>
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
  if (sub_overflow(vb, va, &change) || change % (b - a)) return false;
  *times = change / (b - a);
  return true;
}

namespace {

// ---- numbers that depend on a count ----

// A number of elements, or a size, for the two sizes and for the new one.
struct Count {
  int64_t a, b, now;
};

bool same_bits(double x, double y) { return !memcmp(&x, &y, sizeof x); }
double nearest(double x) { return floor(x + 0.5); }

// The number of at most nine digits behind the point that x is; 0: there is none.
double short_decimal(double x) {
  double power = 1;
  for (int digits = 0; digits < 10; digits++, power *= 10) {
    const double rounded = nearest(x * power) / power;
    if (rounded != 0 && fabs(rounded / x - 1) < 1e-14) return rounded;
  }
  return 0;
}

// The formulas by which operators make numbers from a count n. Each is tried with every count, and
// has to give both known numbers bit by bit.
bool follows_count(double va, double vb, const Count& n, double* out) {
  const auto fits = [&](auto f) {
    if (!same_bits(f(double(n.a)), va) || !same_bits(f(double(n.b)), vb)) return false;
    *out = f(double(n.now));
    return true;
  };
  // A small integer is divided by n, as by a mean and its gradient.
  constexpr double kMostOver = 1024;
  const double over = nearest(va * double(n.a));
  if (over != 0 && fabs(over) <= kMostOver && fits([&](double q) { return over / q; })) return true;
  // A momentum times n / (n - 1), as of running variances.
  if (n.a < 2 || n.b < 2 || n.now < 2) return false;
  const double momentum = short_decimal(va / (double(n.a) / double(n.a - 1)));
  return momentum != 0 && fits([&](double q) { return momentum * (q / (q - 1)); });
}

// ---- draws ----

// The counters that the first node that takes numbers of the draw reserves; -1: not known.
int64_t counters_taken(const Graph& g, int64_t draw) {
  for (const IrNode& n : g.nodes)
    for (const IrArg& x : n.args) {
      if (x.kind != Value::kRng || x.draw != draw) continue;
      const IrValue& first = g.values[n.args[0].values[0]];
      if (is_op(n, "native_dropout"))
        return int64_t(random_counters(first.numel(), kRandomDropout, int32_t(first.dtype)));
      if (!is_op(n, "native_attention")) return -1;
      const IrValue& keys = g.values[n.args[1].values[0]];
      if (first.ndim() != 4 || keys.ndim() != 4) return -1;
      const int64_t rows = first.sizes[0] * first.sizes[1] * first.sizes[2];
      return rows * (attention_row_words(keys.sizes[2]) / 64) * 16;
    }
  return -1;
}

class Resizing {
 public:
  Resizing(const Graph& a, const Graph& b, int64_t size, SameObject same)
      : a_(a), b_(b), dim_(dynamic_dim(a, b)), size_(size), same_(same) {}
  Ref<Graph> run();

 private:
  [[noreturn]] void refuse(const char* why) const {
    if (at_ < 0) fail(TT_NOT_IMPLEMENTED, "{}", why);
    fail(TT_NOT_IMPLEMENTED, "node {}, {}: {}", at_, a_.nodes[at_].op->name(), why);
  }
  void resize(int64_t& v, int64_t other) const;
  void resize(double& v, double other);
  void resize(Scalar& v, const Scalar& other);
  void resize_draw(Graph& g, int64_t i) const;
  bool same_object(const Object* x, const Object* y) const {
    return x == y || (x && y && same_(*x, *y));
  }
  void add_count(int64_t a, int64_t b);
  void find_counts();
  void resize(int64_t* list, int64_t n, Ints other) const;
  void resize(IrArg& x, const IrArg& y);
  void resize(IrValue& x, const IrValue& y) const;
  void check_storages(Graph& g) const;

  const Graph &a_, &b_;
  const DynamicDim dim_;
  const int64_t size_;
  const SameObject same_;
  int64_t at_ = -1;  // the node at hand
  SmallVec<Count, 16> counts_;
};

// ---- counts ----

void Resizing::add_count(int64_t a, int64_t b) {
  int64_t times, more, now;
  if (a == b || a <= 0 || b <= 0 || !dim_.grows(a, b, &times)) return;
  if (mul_overflow(times, size_ - dim_.a, &more) || add_overflow(a, more, &now) || now <= 0) return;
  for (const Count& c : counts_)
    if (c.a == a && c.b == b) return;
  counts_.push_back({a, b, now});
}

// What numbers may be computed from: sizes, elements, and elements of a channel.
void Resizing::find_counts() {
  if (!counts_.empty()) return;
  add_count(dim_.a, dim_.b);
  for (int64_t i = 0; i < a_.values.size(); i++) {
    const IrValue &x = a_.values[i], &y = b_.values[i];
    if (x.ndim() != y.ndim()) continue;
    add_count(x.numel(), y.numel());
    for (int64_t d = 0; d < x.ndim(); d++) add_count(x.sizes[d], y.sizes[d]);
    if (x.ndim() > 1 && x.sizes[1] > 0 && x.sizes[1] == y.sizes[1])
      add_count(x.numel() / x.sizes[1], y.numel() / y.sizes[1]);
  }
}

void Resizing::resize(double& v, double other) {
  if (same_bits(v, other)) return;
  find_counts();
  for (const Count& n : counts_)
    if (follows_count(v, other, n, &v)) return;
  refuse("a number that is no size depends on the size");
}
void Resizing::resize(Scalar& v, const Scalar& other) {
  if (v.kind != other.kind) refuse("its arguments are others for the two sizes");
  if (v.is_int()) resize(v.i, other.i);
  else if (v.i != other.i) refuse("its arguments are others for the two sizes");
  if (v.is_float()) resize(v.re, other.re);
  else if (!same_bits(v.re, other.re)) refuse("a number that is no size depends on the size");
  if (!same_bits(v.im, other.im)) refuse("a number that is no size depends on the size");
}

void Resizing::resize_draw(Graph& g, int64_t i) const {
  uint64_t& counters = g.draws[i].counters;
  const auto a = int64_t(counters), b = int64_t(b_.draws[i].counters);
  int64_t now = a;
  if (counters_taken(a_, i) == a && counters_taken(b_, i) == b) now = counters_taken(g, i);
  else resize(now, b);
  if (now < 0) refuse("it draws no numbers for that size");
  counters = uint64_t(now);
}

// ---- the graph ----

void Resizing::resize(int64_t& v, int64_t other) const {
  int64_t times, more;
  if (!dim_.grows(v, other, &times)) refuse("a number does not grow evenly with the size");
  if (mul_overflow(times, size_ - dim_.a, &more) || add_overflow(v, more, &v))
    refuse("a number is too large for that size");
}
void Resizing::resize(int64_t* list, int64_t n, Ints other) const {
  if (n != other.n) refuse("a list has other lengths for the two sizes");
  for (int64_t i = 0; i < n; i++) resize(list[i], other[i]);
}

void Resizing::resize(IrArg& x, const IrArg& y) {
  const bool same_rest = x.kind == y.kind && x.values.size() == y.values.size() &&
                         x.index.size() == y.index.size() && x.text.is(y.text.c_str()) &&
                         x.draw == y.draw && same_object(x.object.get(), y.object.get());
  if (!same_rest) refuse("its arguments are others for the two sizes");
  if (x.kind == Value::kFloat) resize(x.f, y.f);
  if (x.kind == Value::kScalar) resize(x.scalar, y.scalar);
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
  // State had other versions when the other graph was captured.
  const auto version = [](const Graph& g, const IrValue& v) {
    return v.version - g.storages[v.storage].version;
  };
  if (x.storage != y.storage || x.dtype != y.dtype || x.node != y.node ||
      version(a_, x) != version(b_, y))
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
  for (int64_t i = 0; i < g.draws.size(); i++) resize_draw(g, i);
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

Ref<Graph> resize_graph(const Graph& a, const Graph& b, int64_t size, SameObject same) {
  if (size < 0) fail_arg(TT_INVALID_ARG, "size", "size is {}: must not be negative", size);
  return Resizing(a, b, size, same).run();
}

}  // namespace TT_NS
