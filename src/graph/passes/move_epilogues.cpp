#include "graph/passes/passes.h"

#include <algorithm>

namespace TT_NS {

namespace {

// before                                   after
//   d = matmul_stack(grad, w)                d = matmul_stack(grad, w)
//   dw = matmul_stack(x, grad)               t = threshold_backward(d, y)
//   db = sum_dim(grad)                       dw = matmul_stack(x, grad)
//   t = threshold_backward(d, y)             db = sum_dim(grad)
//
// Plans run what follows a product on its rows while they are in the cache (graph/plan/bands.h). No
// call changes, and none moves across one that writes what it reads or reads what it writes.
constexpr int32_t kReach = 32;  // nodes behind a product that are looked at

class Epilogues {
 public:
  explicit Epilogues(Graph& g) : g_(g) {}
  void run();

 private:
  bool makes_rows(const IrNode& n) const;
  bool may_follow(const IrNode& n) const;
  bool reads_chain(const IrNode& n) const;
  bool makes(const IrNode& n, int32_t storage) const;
  bool reads(const IrNode& n, int32_t storage) const;
  bool conflict(const IrNode& first, const IrNode& second) const;
  bool may_move(int32_t from, int32_t to) const;
  void move(int32_t from, int32_t to);
  void renumber();
  int32_t gather(int32_t product);
  int32_t storage_of(int32_t value) const { return g_.values[value].storage; }

  Graph& g_;
  SmallVec<int32_t, 8> chain_;   // storages: of the product and of what follows it
  int64_t numel_ = 0;            // of their values
  SmallVec<int32_t, 1> before_;  // the former number of each node
};

bool is_pure_view(const Graph& g, const IrNode& n) {
  if (n.op->schema->kind != OpKind::kView || n.outs.size() != n.n_results) return false;
  for (int64_t k = 0; k < n.n_results; k++)
    if (n.outs[k] < 0 || !is_view_out(g, n, k)) return false;
  return n.n_results > 0;
}

bool Epilogues::makes_rows(const IrNode& n) const {
  const OpKind kind = n.op->schema->kind;
  return (kind == OpKind::kProduct || kind == OpKind::kConv) && n.outs.size() == 1 &&
         n.outs[0] >= 0 && n.n_results == 1 && !is_view_out(g_, n, 0);
}

bool Epilogues::may_follow(const IrNode& n) const {
  const OpSchema& s = *n.op->schema;
  if (is_pure_view(g_, n)) return true;
  return s.kind == OpKind::kElementwise && !s.random && !n.reads && !n.outs.empty() &&
         n.outs[0] >= 0 && g_.values[n.outs[0]].numel() == numel_;
}

bool Epilogues::reads_chain(const IrNode& n) const {
  bool found = false;
  for_each_value(n, [&](int32_t v) {
    for (const int32_t s : chain_) found |= s == storage_of(v);
  });
  return found;
}

// Makes, writes or views it.
bool Epilogues::makes(const IrNode& n, int32_t storage) const {
  for (const int32_t v : n.outs)
    if (v >= 0 && storage_of(v) == storage) return true;
  return false;
}
bool Epilogues::reads(const IrNode& n, int32_t storage) const {
  bool found = false;
  for_each_value(n, [&](int32_t v) { found |= storage_of(v) == storage; });
  return found;
}
bool Epilogues::conflict(const IrNode& first, const IrNode& second) const {
  bool found = false;
  for_each_value(second, [&](int32_t v) { found |= makes(first, storage_of(v)); });
  for (const int32_t v : second.outs)
    if (v >= 0) found |= makes(first, storage_of(v)) || reads(first, storage_of(v));
  return found;
}

bool Epilogues::may_move(int32_t from, int32_t to) const {
  for (int32_t i = to; i < from; i++)
    if (conflict(g_.nodes[i], g_.nodes[from])) return false;
  return true;
}

void Epilogues::move(int32_t from, int32_t to) {
  if (from == to) return;
  IrNode* const nodes = g_.nodes.data();
  int32_t* const before = before_.data();
  std::rotate(nodes + to, nodes + from, nodes + from + 1);
  std::rotate(before + to, before + from, before + from + 1);
}

// Gives values and draws the new numbers of their nodes.
void Epilogues::renumber() {
  SmallVec<int32_t, 1> now;
  now.resize(before_.size(), 0);
  for (int32_t i = 0; i < before_.size(); i++) now[before_[i]] = i;
  for (IrValue& v : g_.values)
    if (v.node >= 0) v.node = now[v.node];
  // A draw stays behind every node that was before it.
  int32_t i = 0;
  int32_t behind = 0;
  for (IrDraw& d : g_.draws) {
    for (; i < d.node; i++) behind = max(behind, now[i] + 1);
    d.node = behind;
  }
}

// Returns the last node of the chain.
int32_t Epilogues::gather(int32_t product) {
  const int32_t result = g_.nodes[product].outs[0];
  chain_ = {};
  chain_.push_back(storage_of(result));
  numel_ = g_.values[result].numel();
  int32_t end = product + 1;
  for (int32_t i = end; i < g_.nodes.size() && i < product + kReach; i++) {
    const IrNode& n = g_.nodes[i];
    if (!may_follow(n) || !reads_chain(n) || !may_move(i, end)) continue;
    chain_.push_back(storage_of(n.outs[0]));
    move(i, end++);
  }
  return end - 1;
}

void Epilogues::run() {
  for (int32_t i = 0; i < g_.nodes.size(); i++) before_.push_back(i);
  for (int32_t i = 0; i < g_.nodes.size(); i++)
    if (makes_rows(g_.nodes[i])) i = gather(i);
  renumber();
}

}  // namespace

void move_epilogues(Graph& g) { Epilogues(g).run(); }

}  // namespace TT_NS
