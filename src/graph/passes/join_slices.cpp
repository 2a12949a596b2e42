#include "graph/passes/passes.h"

#include "graph/args.h"
#include "ops/gen/ops.h"

#include <algorithm>

namespace TT_NS {

namespace {

// before                                      after
//   s = select_backward(a, size, dim, 0)      s = empty_strided(size, stride)
//   t = select_backward(b, size, dim, 1)      add_into(a, 0, s.select(dim, 0))
//   add_(s, t)                                add_into(b, 0, s.select(dim, 1))
//
// and the same for slice_backward, and for longer sums. Adding 0 keeps the bits: the sum makes 0 of
// -0. If s is permuted into a copy and not read otherwise, s has the strides that make the permuted
// view what the copy was. Parts with short runs of neighbours are copied, which is fast for any
// strides, and 0 is added to the whole.
enum SelectArg { kGrad, kSize, kDim, kIndex };
enum SliceArg { kStart = 3, kEnd, kStep };
enum AddArg { kAddSelf, kAddOther, kAddAlpha };

// The gradient of the part [begin, begin + n) of the dimension.
struct Piece {
  int32_t node = -1;  // that puts zeros around it
  int32_t grad = -1;  // value
  int32_t dim = 0;
  bool select = false;
  int64_t begin = 0;
  int64_t n = 0;
};

class Joining {
 public:
  explicit Joining(Graph& g) : g_(g), written_(written_storages(g)), readers_(storage_readers(g)) {}
  void run();

 private:
  bool piece_of(int32_t node, Piece* out) const;
  bool match(int32_t node);
  bool add_piece(int32_t node);
  bool covers() const;
  bool match_copy();
  void permute_strides(const Shape& strides);
  bool try_rewrite();
  void rewrite(bool copies);
  bool has_long_runs(const Piece& p) const;
  void make_empty(int32_t at);
  void write_piece(int64_t k, int32_t before, int32_t at, bool copies);
  void add_zero(int32_t before, int32_t at);
  int32_t part(const Piece& p, uint32_t version, int32_t node, int32_t out);
  void replace_copy();

  Graph& g_;
  SmallVec<bool, 16> written_, keep_;
  const Readers readers_;
  SmallVec<Piece, 4> pieces_;  // of the match, in the order of the sum
  SmallVec<int32_t, 4> adds_;  // nodes; the first piece has none
  int32_t sum_ = -1;           // the value of the whole sum
  int32_t storage_ = -1;
  uint32_t first_ = 0, last_ = 0;     // its versions before the first piece and behind the last
  int32_t permute_ = -1, copy_ = -1;  // nodes; -1: the sum is read as it is
};

bool is_real_float(Dtype d) {
  return d == Dtype::kF32 || d == Dtype::kF64 || d == Dtype::kF16 || d == Dtype::kBF16;
}

int64_t bound(const IrArg& a, int64_t size, int64_t fallback) {
  if (a.kind == Value::kNone) return fallback;
  return clamp<int64_t>(a.i < 0 ? a.i + size : a.i, 0, size);
}

bool Joining::piece_of(int32_t node, Piece* out) const {
  if (node < 0) return false;
  const IrNode& n = g_.nodes[node];
  out->select = is_op(n, "select_backward");
  if (!out->select && !is_op(n, "slice_backward")) return false;
  const IrValue& v = g_.values[n.outs[0]];
  const int64_t dim = n.args[kDim].i;
  out->node = node;
  out->grad = n.args[kGrad].values[0];
  out->dim = int32_t(dim < 0 ? dim + v.ndim() : dim);
  const int64_t size = v.sizes[out->dim];
  if (out->select) {
    const int64_t index = n.args[kIndex].i;
    out->begin = index < 0 ? index + size : index;
    out->n = 1;
  } else {
    if (n.args[kStep].i != 1) return false;
    out->begin = bound(n.args[kStart], size, 0);
    out->n = bound(n.args[kEnd], size, size) - out->begin;
  }
  const Dtype d = g_.values[out->grad].dtype;
  return is_real_float(d) && d == v.dtype && out->n > 0 && !written_[g_.values[out->grad].storage];
}

// Whether a node adds one more piece to the sum.
bool Joining::add_piece(int32_t node) {
  const IrNode& n = g_.nodes[node];
  if (!is_op(n, "add_") || n.args[kAddSelf].values[0] != sum_ ||
      n.args[kAddAlpha].scalar.real() != 1)
    return false;
  const int32_t other = n.args[kAddOther].values[0];
  const IrValue &s = g_.values[sum_], &o = g_.values[other];
  Piece p;
  if (o.out != 0 || !piece_of(o.node, &p) || p.dim != pieces_[0].dim || !same(o.sizes, s.sizes) ||
      !same(o.strides, s.strides) || o.dtype != s.dtype || written_[o.storage] ||
      readers_[o.storage].size() != 1)
    return false;
  pieces_.push_back(p);
  adds_.push_back(node);
  sum_ = n.outs[n.n_results];
  return true;
}

// Whether the pieces are all of the dimension, each place once.
bool Joining::covers() const {
  const int64_t size = g_.values[sum_].sizes[pieces_[0].dim];
  int64_t total = 0;
  for (const Piece& p : pieces_) {
    total += p.n;
    for (const Piece& q : pieces_)
      if (&p != &q && p.begin < q.begin + q.n && q.begin < p.begin + p.n) return false;
  }
  return total == size;
}

bool Joining::match(int32_t node) {
  Piece first;
  if (!piece_of(node, &first)) return false;
  pieces_ = {};
  adds_ = {};
  pieces_.push_back(first);
  sum_ = g_.nodes[node].outs[0];
  storage_ = g_.values[sum_].storage;
  first_ = g_.values[sum_].version;
  if (g_.storages[storage_].device.type != TT_CPU) return false;
  for (const int32_t reader : readers_[storage_])
    if (reader == g_.nodes.size() || pieces_.size() == 64 || !add_piece(reader)) break;
  return pieces_.size() > 1 && covers();
}

// permute and a contiguous copy of the result read the sum, and nothing else does.
bool Joining::match_copy() {
  const auto& readers = readers_[storage_];
  const int64_t n = adds_.size();
  if (readers.size() != n + 2 || readers[n + 1] == g_.nodes.size()) return false;
  const IrNode& permute = g_.nodes[readers[n]];
  const IrNode& copy = g_.nodes[readers[n + 1]];
  if (!is_op(permute, "permute") || permute.args[0].values[0] != sum_ || !is_op(copy, "clone") ||
      copy.args[0].values[0] != permute.outs[0] || copy.outs.size() != 1)
    return false;
  const IrValue &from = g_.values[permute.outs[0]], &to = g_.values[copy.outs[0]];
  permute_ = readers[n];
  copy_ = readers[n + 1];
  return !written_[to.storage] && to.offset == 0 && from.offset == 0 &&
         same(from.sizes, to.sizes) && is_contiguous(to.sizes, to.strides);
}

// Gives the sum the strides that the permuted view of it shall have.
void Joining::permute_strides(const Shape& strides) {
  const Ints order = g_.nodes[permute_].args[1].ints;
  for (int64_t i = 0; i < order.n; i++)
    g_.values[sum_].strides[order[i] < 0 ? order[i] + order.n : order[i]] = strides[i];
}

// The value of a part of the sum.
int32_t Joining::part(const Piece& p, uint32_t version, int32_t node, int32_t out) {
  const IrValue sum = g_.values[sum_];
  Shape sizes, strides;
  for (int64_t d = 0; d < sum.ndim(); d++) {
    if (d == p.dim && p.select) continue;
    sizes.push_back(d == p.dim ? p.n : sum.sizes[d]);
    strides.push_back(sum.strides[d]);
  }
  const int64_t offset = sum.offset + p.begin * sum.strides[p.dim] * item_size(sum.dtype);
  const int32_t v = g_.value(storage_, version, sum.dtype, offset, sizes, strides, node, out);
  g_.values[v].node = node;
  g_.values[v].out = out;
  return v;
}

// Node `at` makes the memory of the sum.
void Joining::make_empty(int32_t at) {
  const IrValue sum = g_.values[sum_];
  IrNode& n = g_.nodes[at];
  n.op = &op_empty_strided.info;
  n.args = {};
  n.args.push_back(ints_arg(sum.sizes));
  n.args.push_back(ints_arg(sum.strides));
  n.args.push_back(int_arg(int64_t(sum.dtype)));
  n.args.push_back(IrArg());
  n.n_results = 1;
  n.outs = {};
  n.outs.push_back(
      g_.value(storage_, first_, sum.dtype, sum.offset, sum.sizes, sum.strides, at, 0));
  g_.values[n.outs[0]].node = at;
  g_.values[n.outs[0]].out = 0;
}

// Whether an elementwise operator over this part of the sum is as fast as over a dense tensor.
bool Joining::has_long_runs(const Piece& p) const {
  constexpr int64_t kLong = 512;  // elements
  const IrValue& sum = g_.values[sum_];
  int64_t run = 1;
  for (int64_t d = sum.ndim(); d-- > 0;) {
    if (d == p.dim && p.select) continue;
    if (sum.strides[d] != run) return run >= kLong;
    run *= d == p.dim ? p.n : sum.sizes[d];
  }
  return true;
}

// Node `at` writes piece k, behind node `before`.
void Joining::write_piece(int64_t k, int32_t before, int32_t at, bool copies) {
  const uint32_t version = first_ + uint32_t(k);
  const bool is_last = k + 1 == pieces_.size() && !copies;
  const int32_t from = part(pieces_[k], version, before, -1);
  const int32_t to = part(pieces_[k], is_last ? last_ : version + 1, at, 0);
  IrNode& n = g_.nodes[at];
  n.args = {};
  if (copies) {
    n.op = &op_copy_.info;
    n.args.push_back(tensor_arg(from));
    n.args.push_back(tensor_arg(pieces_[k].grad));
  } else {
    n.op = &op_add_scalar_into.info;
    n.args.push_back(tensor_arg(pieces_[k].grad));
    n.args.push_back(scalar_arg(0));
    n.args.push_back(scalar_arg(1));
    n.args.push_back(tensor_arg(from));
  }
  n.n_results = 0;
  n.outs = {};
  n.outs.push_back(to);
}

void Joining::add_zero(int32_t before, int32_t at) {
  const uint32_t version = first_ + uint32_t(pieces_.size());
  const IrValue sum = g_.values[sum_];
  IrNode& n = g_.nodes[at];
  n.op = &op_add_scalar_.info;
  n.args = {};
  n.args.push_back(tensor_arg(
      g_.value(storage_, version, sum.dtype, sum.offset, sum.sizes, sum.strides, before, -1)));
  n.args.push_back(scalar_arg(0));
  n.args.push_back(scalar_arg(1));
  n.n_results = 0;
  n.outs = {};
  n.outs.push_back(sum_);
  g_.values[sum_].node = at;
  g_.values[sum_].out = 0;
}

void Joining::replace_copy() {
  const int32_t old = g_.values[g_.nodes[copy_].outs[0]].storage;
  SmallVec<int32_t, 16> stand_in;
  stand_in.resize(g_.values.size(), -1);
  for (int32_t v = g_.storages[old].last_value; v >= 0; v = g_.values[v].previous) {
    const IrValue copy = g_.values[v];
    stand_in[v] = g_.value(storage_, last_, copy.dtype, copy.offset, copy.sizes, copy.strides,
                           g_.values[sum_].node, -1);
  }
  const auto replace = [&](int32_t& v) {
    if (v >= 0 && v < stand_in.size() && stand_in[v] >= 0) v = stand_in[v];
  };
  for_each_read(g_, copy_ + 1, replace);
  for (int64_t i = copy_ + 1; i < g_.nodes.size(); i++)
    for (int32_t& v : g_.nodes[i].outs) replace(v);
  keep_[copy_] = false;
}

// The nodes of the match are used in order: one makes the memory, each of the next writes a piece.
// Those that are left go.
void Joining::rewrite(bool copies) {
  for (int32_t v = g_.storages[storage_].last_value; v >= 0; v = g_.values[v].previous)
    g_.values[v].version += uint32_t(pieces_.size() + 2);  // behind those of the new writes
  last_ = g_.values[sum_].version;
  SmallVec<int32_t, 8> nodes(adds_.span());
  for (const Piece& p : pieces_) nodes.push_back(p.node);
  std::sort(nodes.begin(), nodes.end());
  int64_t next = 0;
  const auto take_behind = [&](int32_t node) {
    while (nodes[next] < node) keep_[nodes[next++]] = false;
    return nodes[next++];
  };
  int32_t before = take_behind(0);
  make_empty(before);
  for (int64_t k = 0; k < pieces_.size(); k++) {
    const int32_t at = take_behind(pieces_[k].node);
    write_piece(k, before, at, copies);
    before = at;
  }
  if (copies) {
    const int32_t at = take_behind(0);
    add_zero(before, at);
    before = at;
  } else {
    g_.values[sum_].node = before;
    g_.values[sum_].out = -1;
  }
  while (next < nodes.size()) keep_[nodes[next++]] = false;
  if (copy_ >= 0) replace_copy();
}

// Picks the strides of the sum and the way to write it.
bool Joining::try_rewrite() {
  const int64_t fewest_to_copy = 3;  // there must be a node for each write
  const Shape strides = g_.values[sum_].strides;
  if (match_copy()) permute_strides(g_.values[g_.nodes[copy_].outs[0]].strides);
  else copy_ = -1;
  bool copies = false;
  for (const Piece& p : pieces_) copies = copies || !has_long_runs(p);
  if (copies && pieces_.size() < fewest_to_copy) {
    g_.values[sum_].strides = strides;
    return false;
  }
  if (copy_ >= 0)
    g_.values[g_.nodes[permute_].outs[0]].strides = g_.values[g_.nodes[copy_].outs[0]].strides;
  rewrite(copies);
  return true;
}

void Joining::run() {
  keep_.resize(g_.nodes.size(), true);
  bool changed = false;
  for (int32_t i = 0; i < g_.nodes.size(); i++) {
    if (match(i) && try_rewrite()) changed = true;
  }
  if (changed) remove_nodes(g_, keep_);
}

}  // namespace

void join_slices(Graph& g) { Joining(g).run(); }

}  // namespace TT_NS
