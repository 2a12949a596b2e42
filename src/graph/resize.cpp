// Graphs of one computation for several sizes: what differs between them, and the graph for other
// sizes.
#include "graph/resize.h"

#include "graph/edit.h"
#include "graph/rewrite.h"
#include "plan/attention_plan.h"
#include "plan/random_build.h"

#include <math.h>
#include <string.h>
#include <utility>

namespace TT_NS {

// ---- dimensions ----

namespace {

// Solves rows * x = v for the n columns of `rows`, of which there are m, with whole numbers.
// Returns false if there is no solution near whole numbers; the caller checks what is found.
bool solve(double (&rows)[Growth::kMaxTerms][Growth::kMaxTerms + 1], int64_t m, int64_t n,
           Growth::Terms& out) {
  for (int64_t k = 0; k < n; k++) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < m; i++)
      if (fabs(rows[i][k]) > fabs(rows[pivot][k])) pivot = i;
    if (fabs(rows[pivot][k]) < 1e-6) return false;
    for (int64_t j = 0; j <= n; j++) std::swap(rows[k][j], rows[pivot][j]);
    for (int64_t i = 0; i < m; i++) {
      if (i == k) continue;
      const double factor = rows[i][k] / rows[k][k];
      for (int64_t j = k; j <= n; j++) rows[i][j] -= factor * rows[k][j];
    }
  }
  for (int64_t k = 0; k < n; k++) {
    const double x = floor(rows[k][n] / rows[k][k] + 0.5);
    if (!(fabs(x) < 9e15)) return false;
    out[k] = int64_t(x);
  }
  return true;
}

void check_alike(const Graph& a, const Graph& b) {
  if (a.inputs.size() != b.inputs.size() || a.outputs.size() != b.outputs.size())
    fail(TT_INVALID_ARG, "other has other numbers of inputs and outputs than g");
  for (int64_t i = 0; i < a.inputs.size(); i++) {
    const Shape &x = a.values[a.inputs[i]].sizes, &y = b.values[b.inputs[i]].sizes;
    if (x.size() != y.size())
      fail(TT_INVALID_ARG, "input {} is {} in g and {} in other: must have as many dimensions", i,
           Ints(x), Ints(y));
  }
}

}  // namespace

void Growth::find(Span<const Graph* const> graphs) {
  n_graphs_ = graphs.n;
  const Graph& g = *graphs[0];
  for (int64_t i = 0; i < g.inputs.size(); i++)
    for (int64_t d = 0; d < g.values[g.inputs[i]].ndim(); d++) {
      int64_t v[kMaxTerms];
      Terms found;
      for (int64_t k = 0; k < graphs.n; k++)
        v[k] = graphs[k]->values[graphs[k]->inputs[i]].sizes[d];
      if (n_terms() == graphs.n || terms(v, found)) continue;
      for (int64_t k = 0; k < graphs.n; k++) sizes_[k][n_dims_] = v[k];
      dims_[n_dims_++] = {int32_t(i), int32_t(d)};
    }
}

Growth::Growth(Span<const Graph* const> graphs) {
  for (const Graph* other : graphs) check_alike(*graphs[0], *other);
  find(graphs);
  if (!n_dims_) fail(TT_INVALID_ARG, "the inputs of g and other have the same sizes");
  if (n_terms() != graphs.n)
    fail(TT_INVALID_ARG, "{} dimensions differ between {} graphs: there must be {}", n_dims_,
         graphs.n, n_terms());
}

bool Growth::fits(Span<const Graph* const> graphs) {
  Growth growth;
  growth.find(graphs);
  if (!growth.n_dims_ || growth.n_terms() != graphs.n) return false;
  int64_t first[kMaxTerms];
  Terms found;
  for (int64_t i = 0; i < graphs.n; i++) first[i] = growth.sizes_[i][0];
  return growth.terms(first, found);
}

bool Growth::product(Ints sizes, int64_t term, int64_t* out) const {
  *out = 1;
  for (int64_t d = 0; d < n_dims_; d++)
    if (term >> d & 1 && mul_overflow(*out, sizes[d], out)) return false;
  return true;
}

bool Growth::terms(const int64_t* v, Terms& out) const {
  const int64_t n = n_terms();
  double rows[kMaxTerms][kMaxTerms + 1];
  bool differs = false;
  for (int64_t i = 1; i < n_graphs_; i++) differs |= v[i] != v[0];
  for (int64_t k = 0; k < n; k++) out[k] = 0;
  out[0] = v[0];
  if (!differs) return true;
  for (int64_t i = 0; i < n_graphs_; i++) {
    for (int64_t k = 0; k < n; k++) {
      int64_t x;
      if (!product(Ints(sizes_[i], n_dims_), k, &x)) return false;
      rows[i][k] = double(x);
    }
    rows[i][n] = double(v[i]);
  }
  if (!solve(rows, n_graphs_, n, out)) return false;
  for (int64_t i = 0; i < n_graphs_; i++) {
    int64_t x;
    if (!at(Ints(sizes_[i], n_dims_), out, &x) || x != v[i]) return false;
  }
  return true;
}

bool Growth::at(Ints sizes, const Terms& terms, int64_t* out) const {
  *out = 0;
  for (int64_t k = 0; k < n_terms(); k++) {
    int64_t x;
    if (!terms[k]) continue;
    if (!product(sizes, k, &x) || mul_overflow(x, terms[k], &x) || add_overflow(*out, x, out))
      return false;
  }
  return true;
}

namespace {

// ---- numbers that depend on a count ----

// A number of elements, or a size, in each graph and for the new sizes.
struct Count {
  int64_t known[Growth::kMaxTerms];
  int64_t now;
};

bool same_bits(double x, double y) { return !memcmp(&x, &y, sizeof x); }
double nearest(double x) { return floor(x + 0.5); }

// The number with at most nine digits behind the point that x rounds, or 0.
double short_decimal(double x) {
  double power = 1;
  for (int digits = 0; digits < 10; digits++, power *= 10) {
    const double rounded = nearest(x * power) / power;
    if (rounded != 0 && fabs(rounded / x - 1) < 1e-14) return rounded;
  }
  return 0;
}

// The formulas by which operators make numbers from a count n. Each is tried with every count, and
// has to give all known numbers bit by bit.
bool follows_count(Span<const double> known, const Count& n, double* out) {
  const auto fits = [&](auto f) {
    for (int64_t i = 0; i < known.n; i++)
      if (!same_bits(f(double(n.known[i])), known[i])) return false;
    *out = f(double(n.now));
    return true;
  };
  // A small integer is divided by n, as by a mean and its gradient.
  constexpr double kMostOver = 1024;
  const double first = double(n.known[0]);
  const double over = nearest(known[0] * first);
  if (over != 0 && fabs(over) <= kMostOver && fits([&](double q) { return over / q; })) return true;
  // A momentum times n / (n - 1), as of running variances.
  for (int64_t i = 0; i < known.n; i++)
    if (n.known[i] < 2) return false;
  if (n.now < 2) return false;
  const double momentum = short_decimal(known[0] / (first / (first - 1)));
  return momentum != 0 && fits([&](double q) { return momentum * (q / (q - 1)); });
}

constexpr int64_t kMaxRepeats = 1 << 24;  // of a number in a list whose length varies

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
  Resizing(Span<const Graph* const> graphs, Ints sizes, SameObject same)
      : graphs_(graphs), a_(*graphs[0]), growth_(graphs), sizes_(sizes), same_(same) {}
  Ref<Graph> run();

 private:
  [[noreturn]] void refuse(const char* why) const {
    if (at_ < 0) fail(TT_NOT_IMPLEMENTED, "{}", why);
    fail(TT_NOT_IMPLEMENTED, "node {}, {}: {}", at_, a_.nodes[at_].op->name(), why);
  }
  // Set the argument to its value for the new sizes. of(i): its value in graph i.
  template <class F> bool extrapolate(int64_t& v, F of) const;
  template <class F> void resize(int64_t& v, F of) const;
  template <class F> void resize_list(SmallVec<int64_t, 2>& list, F of) const;
  template <class F> void resize_number(double& v, F of);
  template <class F> void resize_scalar(Scalar& v, F of);
  template <class F> void resize_arg(IrArg& x, F of);
  template <class F> void add_count(F of);
  void find_counts();
  bool resize_value(int64_t i, IrValue& x) const;
  void resize_draw(Graph& g, int64_t i) const;
  bool same_object(const Object* x, const Object* y) const {
    return x == y || (x && y && same_(*x, *y));
  }
  bool same_memory(const Tensor& x, const Tensor& y, IrRole role) const;
  void check_storages(Graph& g) const;
  void check_lengths() const;
  void cover_inputs(Graph& g) const;

  const Span<const Graph* const> graphs_;
  const Graph& a_;
  const Growth growth_;
  const Ints sizes_;
  const SameObject same_;
  int64_t at_ = -1;  // the node at hand
  SmallVec<Count, 16> counts_;
  SmallVec<bool, 16> uneven_;  // values whose shape follows from the calls alone
};

// ---- counts ----

template <class F> void Resizing::add_count(F of) {
  Count c;
  Growth::Terms terms;
  bool differs = false;
  for (int64_t i = 0; i < graphs_.n; i++) {
    c.known[i] = of(*graphs_[i]);
    if (c.known[i] <= 0) return;
    differs |= c.known[i] != c.known[0];
  }
  if (!differs || !growth_.terms(c.known, terms) || !growth_.at(sizes_, terms, &c.now)) return;
  if (c.now <= 0) return;
  for (const Count& other : counts_)
    if (same(Ints(other.known, graphs_.n), Ints(c.known, graphs_.n))) return;
  counts_.push_back(c);
}

// What numbers may be computed from: sizes, elements, and elements of a channel.
void Resizing::find_counts() {
  if (!counts_.empty()) return;
  for (int64_t i = 0; i < growth_.n_dims(); i++) {
    const DynamicDim& d = growth_.dim(i);
    add_count([&](const Graph& g) { return g.values[g.inputs[d.input]].sizes[d.dim]; });
  }
  for (int64_t i = 0; i < a_.values.size(); i++) {
    bool alike = true;
    for (const Graph* g : graphs_) alike = alike && g->values[i].ndim() == a_.values[i].ndim();
    if (!alike) continue;
    add_count([&](const Graph& g) { return g.values[i].numel(); });
    for (int64_t d = 0; d < a_.values[i].ndim(); d++)
      add_count([&](const Graph& g) { return g.values[i].sizes[d]; });
    if (a_.values[i].ndim() < 2) continue;
    add_count([&](const Graph& g) {
      const IrValue& v = g.values[i];
      return v.sizes[1] > 0 && v.sizes[1] == a_.values[i].sizes[1] ? v.numel() / v.sizes[1] : 0;
    });
  }
}

template <class F> void Resizing::resize_number(double& v, F of) {
  double known[Growth::kMaxTerms];
  bool differs = false;
  for (int64_t i = 0; i < graphs_.n; i++) {
    known[i] = of(i);
    differs |= !same_bits(known[i], v);
  }
  if (!differs) return;
  find_counts();
  for (const Count& n : counts_)
    if (follows_count(Span<const double>(known, graphs_.n), n, &v)) return;
  refuse("a number that is no size depends on the size");
}
template <class F> void Resizing::resize_scalar(Scalar& v, F of) {
  for (int64_t i = 0; i < graphs_.n; i++) {
    const Scalar& other = of(i);
    if (v.kind != other.kind || (!v.is_int() && v.i != other.i))
      refuse("its arguments are others for the two sizes");
    if (!same_bits(v.im, other.im) || (!v.is_float() && !same_bits(v.re, other.re)))
      refuse("a number that is no size depends on the size");
  }
  if (v.is_int()) resize(v.i, [&](int64_t i) { return of(i).i; });
  if (v.is_float()) resize_number(v.re, [&](int64_t i) { return of(i).re; });
}

void Resizing::resize_draw(Graph& g, int64_t i) const {
  uint64_t& counters = g.draws[i].counters;
  bool known = true;
  for (const Graph* other : graphs_)
    known = known && counters_taken(*other, i) == int64_t(other->draws[i].counters);
  auto now = int64_t(counters);
  if (known) now = counters_taken(g, i);
  else resize(now, [&](int64_t k) { return int64_t(graphs_[k]->draws[i].counters); });
  if (now < 0) refuse("it draws no numbers for that size");
  counters = uint64_t(now);
}

// ---- the graph ----

template <class F> bool Resizing::extrapolate(int64_t& v, F of) const {
  int64_t known[Growth::kMaxTerms];
  Growth::Terms terms;
  for (int64_t i = 0; i < graphs_.n; i++) known[i] = of(i);
  return growth_.terms(known, terms) && growth_.at(sizes_, terms, &v);
}
template <class F> void Resizing::resize(int64_t& v, F of) const {
  if (!extrapolate(v, of)) refuse("a number does not grow evenly with the size");
}
// A list whose length varies has one number as often as that, such as the rows of each step of a
// recurrent layer.
template <class F> void Resizing::resize_list(SmallVec<int64_t, 2>& list, F of) const {
  bool varies = false;
  bool repeats = true;
  for (int64_t k = 0; k < graphs_.n; k++) {
    const Ints other = of(k);
    varies |= other.n != list.size();
    repeats = repeats && other.n;
    for (const int64_t x : other) repeats = repeats && x == other[0];
  }
  if (varies && !repeats) refuse("a list has other lengths for the two sizes");
  if (varies) {
    int64_t n = list.size();
    resize(n, [&](int64_t k) { return of(k).n; });
    if (n < 0 || n > kMaxRepeats) refuse("a list would be too long for that size");
    list.resize(n);
  }
  for (int64_t i = 0; i < list.size(); i++)
    resize(list[i], [&](int64_t k) { return of(k)[varies ? 0 : i]; });
}

template <class F> void Resizing::resize_arg(IrArg& x, F of) {
  for (int64_t k = 0; k < graphs_.n; k++) {
    const IrArg& y = of(k);
    bool same_rest = x.kind == y.kind && x.values.size() == y.values.size() &&
                     x.index.size() == y.index.size() && x.text.is(y.text.c_str()) &&
                     x.draw == y.draw && same_object(x.object.get(), y.object.get()) &&
                     (x.kind == Value::kInt || x.i == y.i);
    for (int64_t i = 0; i < x.index.size() && same_rest; i++) {
      const tt_index &to = x.index[i], &from = y.index[i];
      same_rest = to.kind == from.kind && to.has == from.has && to.step == from.step;
    }
    if (!same_rest) refuse("its arguments are others for the two sizes");
    for (int64_t i = 0; i < x.values.size(); i++)
      if (x.values[i] != y.values[i]) refuse("it reads another value for the other size");
  }
  if (x.kind == Value::kFloat) resize_number(x.f, [&](int64_t k) { return of(k).f; });
  if (x.kind == Value::kScalar)
    resize_scalar(x.scalar, [&](int64_t k) -> const Scalar& { return of(k).scalar; });
  if (x.kind == Value::kInt) resize(x.i, [&](int64_t k) { return of(k).i; });
  resize_list(x.ints, [&](int64_t k) { return of(k).ints.span(); });
  auto before = int64_t(x.counters_before);
  resize(before, [&](int64_t k) { return int64_t(of(k).counters_before); });
  x.counters_before = uint64_t(before);
  for (int64_t i = 0; i < x.index.size(); i++) {
    resize(x.index[i].start, [&](int64_t k) { return of(k).index[i].start; });
    resize(x.index[i].stop, [&](int64_t k) { return of(k).index[i].stop; });
  }
}

// Returns false, and leaves x as it is, if its geometry does not grow evenly.
bool Resizing::resize_value(int64_t i, IrValue& x) const {
  // State had other versions when the other graphs were captured.
  const auto version = [](const Graph& g, const IrValue& v) {
    return v.version - g.storages[v.storage].version;
  };
  for (const Graph* g : graphs_) {
    const IrValue& y = g->values[i];
    if (x.storage != y.storage || x.dtype != y.dtype || x.node != y.node || x.out != y.out ||
        x.ndim() != y.ndim() || version(a_, a_.values[i]) != version(*g, y))
      refuse("a value is another one for the other size");
  }
  IrValue to = x;
  bool even = extrapolate(to.offset, [&](int64_t k) { return graphs_[k]->values[i].offset; });
  for (int64_t d = 0; d < x.ndim() && even; d++)
    even = extrapolate(to.sizes[d], [&](int64_t k) { return graphs_[k]->values[i].sizes[d]; }) &&
           extrapolate(to.strides[d], [&](int64_t k) { return graphs_[k]->values[i].strides[d]; });
  if (even) x = std::move(to);
  return even;
}

// Constants that a function makes in each call are other memories with the same numbers.
bool Resizing::same_memory(const Tensor& x, const Tensor& y, IrRole role) const {
  const Storage &a = *x.storage, &b = *y.storage;
  if (&a == &b) return true;
  return role == IrRole::kConstant && x.is_cpu() && y.is_cpu() && a.bytes == b.bytes &&
         !memcmp(a.data, b.data, size_t(a.bytes));
}

void Resizing::check_storages(Graph& g) const {
  for (int64_t i = 0; i < g.storages.size(); i++) {
    IrStorage& x = g.storages[i];
    for (const Graph* other : graphs_) {
      const IrStorage& y = other->storages[i];
      if (x.role != y.role) refuse("the graphs use different memories");
      if (x.tensor && x.role != IrRole::kInput && !same_memory(*x.tensor, *y.tensor, x.role))
        refuse("a constant of the graphs is not the same memory: make it before both captures");
    }
    const auto bytes = [&](int64_t k) { return graphs_[k]->storages[i].bytes; };
    if (x.role == IrRole::kInput || x.role == IrRole::kMade) extrapolate(x.bytes, bytes);
  }
}

// The memory of an input has at least the elements of the input: those of a square do not grow
// evenly.
void Resizing::cover_inputs(Graph& g) const {
  for (const int32_t input : g.inputs) {
    const IrValue& v = g.values[input];
    int64_t reach = v.numel() ? 1 : 0;
    for (int64_t d = 0; d < v.ndim() && reach; d++) {
      int64_t more;
      if (mul_overflow(v.sizes[d] - 1, v.strides[d], &more) || add_overflow(reach, more, &reach))
        refuse("a number is too large for that size");
    }
    int64_t& bytes = g.storages[v.storage].bytes;
    bytes = max(bytes, v.offset + reach * item_size(v.dtype));
  }
}

void Resizing::check_lengths() const {
  for (const Graph* g : graphs_) {
    if (g->nodes.size() != a_.nodes.size() || g->values.size() != a_.values.size() ||
        g->draws.size() != a_.draws.size())
      refuse("the graphs have different operators");
    if (g->storages.size() != a_.storages.size()) refuse("the graphs use different memories");
  }
}

Ref<Graph> Resizing::run() {
  Ref<Graph> to = copy_graph(a_);
  Graph& g = *to;
  check_lengths();
  check_storages(g);
  for (at_ = 0; at_ < g.nodes.size(); at_++) {
    IrNode& n = g.nodes[at_];
    for (const Graph* other : graphs_) {
      const IrNode& m = other->nodes[at_];
      if (n.op != m.op || n.outs.size() != m.outs.size() || n.args.size() != m.args.size())
        refuse("another operator runs for the other size");
    }
    if (n.reads) refuse("it reads elements on the host");
    for (int64_t k = 0; k < n.args.size(); k++)
      resize_arg(n.args[k],
                 [&](int64_t i) -> const IrArg& { return graphs_[i]->nodes[at_].args[k]; });
  }
  at_ = -1;
  uneven_.resize(g.values.size());
  for (int64_t i = 0; i < g.values.size(); i++) {
    IrValue& v = g.values[i];
    uneven_[i] = !resize_value(i, v);
    // The results of calls follow from their arguments.
    if (uneven_[i] && (v.node < 0 || v.out < 0))
      refuse("a number does not grow evenly with the size");
  }
  cover_inputs(g);
  for (int64_t i = 0; i < g.draws.size(); i++) resize_draw(g, i);
  for (const IrValue& v : g.values)
    for (const int64_t size : v.sizes)
      if (size < 0) refuse("a tensor would have a negative size");
  const SmallVec<IrValue, 1> want(g.values.span());
  const SmallVec<int32_t, 4> outputs(g.outputs.span());
  rebuild_graph(g);
  for (int64_t i = 0; i < outputs.size(); i++)
    if (!uneven_[outputs[i]] && !same(g.values[g.outputs[i]].sizes, want[outputs[i]].sizes))
      refuse("an output does not grow evenly with the size");
  return to;
}

}  // namespace

Ref<Graph> resize_graph(Span<const Graph* const> graphs, Ints sizes, SameObject same) {
  for (const int64_t size : sizes)
    if (size < 0) fail_arg(TT_INVALID_ARG, "size", "size is {}: must not be negative", size);
  return Resizing(graphs, sizes, same).run();
}

}  // namespace TT_NS
