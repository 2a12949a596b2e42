#include "graph/dry_run.h"

#include "graph/guards.h"

#include <string.h>

namespace TT_NS {

// Larger memory is not written, so it takes no room where the system commits memory lazily.
constexpr int64_t kZeroedBytes = 1 << 20;

DryRun::DryRun(const Graph& g) : GraphHooks{}, g_(g) {
  if (ctx_->graph) fail(TT_INVALID_ARG, "a graph is being captured on this ctx");
  storages_.resize(g.storages.size());
  draw = [](GraphHooks&, Generator&, uint64_t, Rng (*)(Generator&, uint64_t)) { return Rng{}; };
  place = on_place;
  observer_.launch = [](WorkObserver&, const Kernel&, const void*, int64_t, int64_t) {
    return int32_t(TT_OK);
  };
  observer_.read = on_read;
  observer_.write = [](WorkObserver&, const Tensor&) {};
  observer_.check = [](WorkObserver&, const Tensor&, const DeviceCheck&) { return false; };
  observer_.call = [](WorkObserver&, Object&, HostFn, const Tensor&) {};
  ctx_.begin(*this, observer_);
}
DryRun::~DryRun() { storages_ = {}; }

void DryRun::on_place(GraphHooks&, Storage& s) {
  s.release_ctx = nullptr;
  s.data = static_cast<char*>(mem_alloc(size_t(s.bytes)));
  if (s.bytes <= kZeroedBytes) memset(s.data, 0, size_t(s.bytes));
  s.release = [](Storage* own) noexcept { mem_free(own->data, size_t(own->bytes)); };
}

// No kernel has written what an operator reads on the host: it finds zeros.
void DryRun::on_read(WorkObserver&, const Tensor& t) {
  const int64_t bytes = t.numel * t.item_size();
  if (t.contiguous() && bytes <= kZeroedBytes) memset(t.data, 0, size_t(bytes));
}

TensorRef DryRun::tensor_of(int32_t value) {
  const IrValue& v = g_.values[value];
  TensorRef& all = storages_[v.storage];
  if (!all) all = new_tensor(Ints(&g_.storages[v.storage].bytes, 1), Dtype::kU8, kCpuDevice);
  TensorRef t = new_alias(*all, v.sizes, v.strides, all->storage->data + v.offset, v.dtype);
  const char *lo, *hi;
  byte_range(*t, &lo, &hi);
  if (t->numel && (lo < all->storage->data || hi > all->storage->data + all->storage->bytes))
    fail(TT_FORMAT, "value {} is outside of its storage", value);
  return t;
}

void DryRun::call(const IrNode& n, TensorList& outs) {
  if (n.op->is_custom()) {  // of the application: a run looks at what it returns
    for (int64_t k = 0; k < n.n_results; k++) {
      outs.push_back(TensorRef());
      if (n.outs[k] < 0) continue;
      const IrValue& v = g_.values[n.outs[k]];
      checked_numel(v.sizes, v.dtype, "result");
      outs.back() = new_tensor(v.sizes, v.dtype, kCpuDevice);
    }
    return;
  }
  NodeCall call;
  call.set(
      n, [&](int32_t v) { return tensor_of(v); },
      [&](const IrArg& a) {
        return Rng{0, a.counters_before};
      });
  if (!is_guarded(*n.op->schema, call.values()))
    fail(TT_FORMAT, "its arguments do not fit each other, or it cannot be in a file");
  call.run(*n.op, outs);
}

void DryRun::take(Graph& g, int32_t node, const TensorList& outs, tt_status code) {
  const IrNode& n = g.nodes[node];
  if (outs.size() != n.n_results)
    fail(code, "node {}, {}, has {} results, in the graph {}", node, n.op->name(), outs.size(),
         n.n_results);
  for (int64_t k = 0; k < outs.size(); k++) {
    if ((n.outs[k] >= 0) != bool(outs[k]))
      fail(code, "result {} of node {}, {}, {} in the graph", k, node, n.op->name(),
           outs[k] ? "is missing" : "is only");
    if (!outs[k]) continue;
    const IrValue& v = g.values[n.outs[k]];
    const Tensor& t = *outs[k];
    if (!same(t.sizes(), v.sizes) || !same(t.strides(), v.strides) || t.dtype != v.dtype ||
        !t.is_cpu() || t.data - t.storage->data != v.offset)
      fail(code, "result {} of node {}, {}, is {} {}, in the graph it is {} {}", k, node,
           n.op->name(), fmt(t.dtype), t.sizes(), fmt(v.dtype), v.sizes.span());
    TensorRef& storage = storages_[v.storage];
    if (storage && t.storage != storage->storage)
      fail(code, "result {} of node {}, {}, has memory of its own, in the graph it has not", k,
           node, n.op->name());
    if (storage) continue;
    if (g.storages[v.storage].role != IrRole::kMade)
      fail(code, "result {} of node {}, {}, has new memory, in the graph it is memory from outside",
           k, node, n.op->name());
    const int64_t bytes = t.storage->bytes;
    g.storages[v.storage].bytes = bytes;
    storage = new_alias(t, Ints(&bytes, 1), {}, t.storage->data, Dtype::kU8);
  }
}

namespace {

// The outs of a node behind its results are its written arguments, in order, with new versions.
class WrittenCheck {
 public:
  WrittenCheck(const Graph& g, int32_t node, tt_status code)
      : g_(g), n_(g.nodes[node]), node_(node), next_(n_.n_results), code_(code) {}
  void run() {
    const OpSchema& s = *n_.op->schema;
    for (int32_t i = 0; i < s.n_args; i++) {
      const IrArg& a = n_.args[i];
      const bool tensors = a.kind == Value::kTensor || a.kind == Value::kTensorList;
      if (!s.args[i].mutates || !tensors) continue;
      for (const int32_t v : a.values)
        if (v >= 0) written(v);
    }
    if (next_ != n_.outs.size()) wrong();
  }

 private:
  [[noreturn]] void wrong() const {
    fail(code_, "node {}, {}, does not write what it writes in the graph", node_, n_.op->name());
  }
  void written(int32_t from) {
    if (next_ >= n_.outs.size() || n_.outs[next_] < 0) wrong();
    const IrValue& a = g_.values[from];
    const IrValue& b = g_.values[n_.outs[next_++]];
    const IrStorage& s = g_.storages[a.storage];
    if (a.storage != b.storage || a.dtype != b.dtype || a.offset != b.offset ||
        !same(a.sizes, b.sizes) || !same(a.strides, b.strides) || a.version == b.version ||
        s.role == IrRole::kConstant || !s.writable)
      wrong();
  }

  const Graph& g_;
  const IrNode& n_;
  const int32_t node_;
  int64_t next_;
  const tt_status code_;
};

// In a handler: the operator's error, with the node that it is about.
[[noreturn]] void fail_node(tt_status code, int32_t node, const IrNode& n) {
  if (tls.error->view.code == TT_OOM) throw;
  const Text message(tls.error->message);
  const char* text = message.c_str();
  const char* behind_call = strstr(text, ": ");
  fail(code, "node {}, {}: {}", node, n.op->name(), behind_call ? behind_call + 2 : text);
}

}  // namespace

void dry_run(Graph& g, tt_status code) {
  const auto end = int32_t(g.nodes.size());
  SmallVec<int32_t, 16> last;  // the node that uses a storage last
  last.resize(g.storages.size(), -1);
  const auto each_storage = [&](const IrNode& n, auto f) {
    for_each_value(n, [&](int32_t v) { f(g.values[v].storage); });
    for (const int32_t v : n.outs)
      if (v >= 0) f(g.values[v].storage);
  };
  for (int32_t i = 0; i < end; i++) each_storage(g.nodes[i], [&](int32_t s) { last[s] = i; });
  DryRun run(g);
  for (int32_t i = 0; i < end; i++) {
    TensorList outs;
    try {
      run.call(g.nodes[i], outs);
    } catch (...) {
      fail_node(code, i, g.nodes[i]);
    }
    run.take(g, i, outs, code);
    WrittenCheck(g, i, code).run();
    each_storage(g.nodes[i], [&](int32_t s) {
      if (last[s] == i) run.drop(s);
    });
  }
}

}  // namespace TT_NS
