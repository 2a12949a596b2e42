#include "graph/passes/passes.h"

#include <string.h>

namespace TT_NS {

namespace {

class Sharing {
 public:
  explicit Sharing(Graph& g);
  void run();

 private:
  bool may_share(const IrNode& n) const;
  int32_t find_equal(int64_t i) const;
  void replace(const IrNode& from, const IrNode& to);
  void apply(SmallVec<int32_t, 1>& list) const;
  uint64_t hash(const IrNode& n) const;

  Graph& g_;
  SmallVec<bool, 16> written_;
  SmallVec<int32_t, 16> value_;  // what stands for a value
  SmallVec<int32_t, 16> head_;   // of the nodes with a hash, the newest first
  SmallVec<int32_t, 16> next_;
  SmallVec<uint64_t, 16> hash_;
};

Sharing::Sharing(Graph& g) : g_(g), written_(written_storages(g)) {
  int64_t n = 16;
  while (n < 2 * g.nodes.size()) n *= 2;
  head_.resize(n, -1);
  next_.resize(g.nodes.size(), -1);
  hash_.resize(g.nodes.size());
  for (int64_t i = 0; i < g.values.size(); i++) value_.push_back(int32_t(i));
}

bool same_args(const IrArg& a, const IrArg& b) {
  if (a.kind != b.kind || a.i != b.i || a.values.size() != b.values.size() ||
      a.index.size() != b.index.size() || a.draw != b.draw ||
      a.counters_before != b.counters_before || memcmp(&a.f, &b.f, sizeof a.f))
    return false;
  for (int64_t i = 0; i < a.values.size(); i++)
    if (a.values[i] != b.values[i]) return false;
  for (int64_t i = 0; i < a.index.size(); i++) {
    const tt_index &x = a.index[i], &y = b.index[i];
    if (x.kind != y.kind || x.has != y.has || x.start != y.start || x.stop != y.stop ||
        x.step != y.step)
      return false;
  }
  const Scalar &s = a.scalar, &t = b.scalar;
  const bool same_scalars = s.kind == t.kind && s.i == t.i && !memcmp(&s.re, &t.re, 16);
  return same_scalars && same(a.ints, b.ints) && a.text.is(b.text.c_str()) && !a.generator &&
         !b.generator;
}

uint64_t Sharing::hash(const IrNode& n) const {
  uint64_t h = reinterpret_cast<uintptr_t>(n.op.get());
  const auto mix = [&](uint64_t v) { h = (h ^ v ^ h >> 32) * 0x9e3779b97f4a7c15u; };
  for (const IrArg& a : n.args) {
    uint64_t number;
    memcpy(&number, &a.scalar.re, sizeof number);
    mix(number ^ uint64_t(a.i) ^ uint64_t(a.scalar.i));
    for (const int32_t v : a.values) mix(uint64_t(v));
    for (const int64_t v : a.ints) mix(uint64_t(v));
  }
  return h ^ h >> 32;
}

// What draws, writes or makes memory that is written later differs from call to call.
bool Sharing::may_share(const IrNode& n) const {
  if (n.op->is_custom() || n.op->schema->random || n.outs.size() != n.n_results || n.outs.empty())
    return false;
  for (int64_t k = 0; k < n.outs.size(); k++) {
    if (n.outs[k] < 0 || is_view_out(g_, n, k)) continue;
    const int32_t s = g_.values[n.outs[k]].storage;
    if (written_[s] || g_.storages[s].role != IrRole::kMade) return false;
  }
  return true;
}

int32_t Sharing::find_equal(int64_t i) const {
  const IrNode& n = g_.nodes[i];
  for (int32_t j = head_[int64_t(hash_[i] & uint64_t(head_.size() - 1))]; j >= 0; j = next_[j]) {
    const IrNode& m = g_.nodes[j];
    if (hash_[j] != hash_[i] || m.op != n.op || m.outs.size() != n.outs.size()) continue;
    if (m.cuda_math != n.cuda_math) continue;
    bool equal = true;
    for (int64_t k = 0; k < n.args.size(); k++) equal = equal && same_args(m.args[k], n.args[k]);
    for (int64_t k = 0; k < n.outs.size(); k++) equal = equal && (m.outs[k] < 0) == (n.outs[k] < 0);
    if (equal) return j;
  }
  return -1;
}

// Every view of a result of `from` becomes the same view of the result of `to`.
void Sharing::replace(const IrNode& from, const IrNode& to) {
  for (int64_t k = 0; k < from.outs.size(); k++) {
    if (from.outs[k] < 0) continue;
    const int32_t old = g_.values[from.outs[k]].storage;
    const int32_t target = to.outs[k];
    const int32_t storage = g_.values[target].storage;
    if (old == storage) continue;
    for (int32_t v = g_.storages[old].last_value; v >= 0; v = g_.values[v].previous) {
      const IrValue copy = g_.values[v];
      const int32_t stand_in = g_.value(storage, g_.values[target].version, copy.dtype, copy.offset,
                                        copy.sizes, copy.strides, g_.values[target].node, -1);
      if (stand_in == value_.size()) value_.push_back(stand_in);
      value_[v] = stand_in;
    }
  }
}

void Sharing::apply(SmallVec<int32_t, 1>& list) const {
  for (int32_t& v : list)
    if (v >= 0) v = value_[v];
}

void Sharing::run() {
  SmallVec<bool, 16> keep;
  for (int64_t i = 0; i < g_.nodes.size(); i++) {
    IrNode& n = g_.nodes[i];
    for (IrArg& a : n.args) apply(a.values);
    for (int32_t& v : n.outs)
      if (v >= 0) v = value_[v];
    keep.push_back(true);
    if (!may_share(n)) continue;
    hash_[i] = hash(n);
    const int32_t j = find_equal(i);
    if (j >= 0) {
      replace(n, g_.nodes[j]);
      keep[i] = false;
      continue;
    }
    int32_t& head = head_[int64_t(hash_[i] & uint64_t(head_.size() - 1))];
    next_[i] = head;
    head = int32_t(i);
  }
  for (int32_t& v : g_.outputs) v = value_[v];
  remove_nodes(g_, keep);
}

}  // namespace

void share_subexpressions(Graph& g) { Sharing(g).run(); }

}  // namespace TT_NS
