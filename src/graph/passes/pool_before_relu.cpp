#include "graph/passes/passes.h"

namespace TT_NS {

namespace {

// before                                       after
//   r = relu(x)                                m = max_pool2d(x)
//   y = max_pool2d(r)                          y = relu(m)
//   b = max_pool2d_backward(grad, r)           b = threshold_backward(grad, y)
//   t = threshold_backward(b, r)               t = max_pool2d_backward(b, x)
//
// relu keeps the order of elements and makes no -0, so y has the same bits. Where the largest
// element of a window is positive, it is at the same place in x; elsewhere the gradient is 0 in
// both.
enum PoolArg { kPoolSelf, kPoolKernel, kPoolStride, kPoolPadding, kPoolDilation, kPoolCeil };
enum PoolBackArg { kBackGrad, kBackSelf, kBackKernel };
enum ThresholdArg { kThresholdGrad, kThresholdY, kThresholdValue };

class Exchange {
 public:
  explicit Exchange(Graph& g)
      : g_(g), written_(written_storages(g)), readers_(storage_readers(g)) {}
  void run();

 private:
  bool match(int32_t node);
  bool match_backward();
  bool alike(int32_t a, int32_t b) const;
  const IrValue& result(int32_t node) const { return g_.values[g_.nodes[node].outs[0]]; }
  Span<const int32_t> readers(const IrValue& v) const {
    const auto& list = readers_[v.storage];
    return {list.data(), list.size()};
  }
  void rewrite();
  void rewrite_backward(int32_t y);
  int32_t value_like(int32_t value, int32_t node);

  Graph& g_;
  SmallVec<bool, 16> written_;
  Readers readers_;
  int32_t relu_ = -1, pool_ = -1;            // nodes of the match
  int32_t pool_back_ = -1, relu_back_ = -1;  // -1: there is no gradient
};

bool Exchange::alike(int32_t a, int32_t b) const {
  const IrValue &x = g_.values[a], &y = g_.values[b];
  return x.dtype == y.dtype && same(x.sizes, y.sizes) && same(x.strides, y.strides);
}

bool same_window(const IrNode& pool, const IrNode& back) {
  for (int32_t k = 0; k < 4; k++)
    if (!same(pool.args[kPoolKernel + k].ints, back.args[kBackKernel + k].ints)) return false;
  return pool.args[kPoolCeil].i == back.args[kBackKernel + 4].i;
}

// A window between taps that are far apart can be all padding, whose largest element is -inf.
bool sees_elements(const IrNode& pool) {
  for (const int64_t d : pool.args[kPoolDilation].ints)
    if (d != 1) return false;
  return true;
}

bool Exchange::match(int32_t node) {
  const IrNode& relu = g_.nodes[node];
  if (!is_op(relu, "relu") || relu.outs.size() != 1 || is_view_out(g_, relu, 0)) return false;
  const IrValue& r = result(node);
  const int32_t x = relu.args[0].values[0];
  const Span<const int32_t> users = readers(r);
  if (written_[r.storage] || written_[g_.values[x].storage] || !alike(x, relu.outs[0]) ||
      users.n == 0 || users[users.n - 1] == g_.nodes.size())
    return false;
  relu_ = node;
  pool_ = users[0];
  pool_back_ = relu_back_ = -1;
  const IrNode& pool = g_.nodes[pool_];
  if (!is_op(pool, "max_pool2d") || pool.args[kPoolSelf].values[0] != relu.outs[0] ||
      !sees_elements(pool))
    return false;
  return users.n == 1 || (users.n == 3 && match_backward());
}

bool Exchange::match_backward() {
  const Span<const int32_t> users = readers(result(relu_));
  pool_back_ = users[1];
  relu_back_ = users[2];
  const IrNode& pool = g_.nodes[pool_];
  const IrNode& back = g_.nodes[pool_back_];
  const IrNode& mask = g_.nodes[relu_back_];
  const int32_t r = g_.nodes[relu_].outs[0];
  if (!is_op(back, "max_pool2d_backward") || !is_op(mask, "threshold_backward")) return false;
  const Scalar& at = mask.args[kThresholdValue].scalar;
  if (back.args[kBackSelf].values[0] != r || mask.args[kThresholdY].values[0] != r ||
      mask.args[kThresholdGrad].values[0] != back.outs[0] || at.real() != 0)
    return false;
  const IrValue& b = result(pool_back_);
  return !written_[b.storage] && readers(b).n == 1 && !written_[result(pool_).storage] &&
         same_window(pool, back) && alike(back.args[kBackGrad].values[0], pool.outs[0]) &&
         alike(back.outs[0], mask.outs[0]) && !is_view_out(g_, back, 0) &&
         !is_view_out(g_, mask, 0);
}

// A value in memory of its own with the geometry of another.
int32_t Exchange::value_like(int32_t value, int32_t node) {
  const IrValue like = g_.values[value];
  const int32_t v = add_made_value(g_, g_.storages[like.storage].bytes, like.dtype, like.sizes,
                                   like.strides, node);
  written_.push_back(false);
  readers_.push_back({});
  return v;
}

void set_tensor(IrNode& n, int32_t arg, int32_t value) { n.args[arg].values[0] = value; }

void Exchange::rewrite_backward(int32_t y) {
  IrNode &first = g_.nodes[pool_back_], &second = g_.nodes[relu_back_];
  std::swap(first.op, second.op);
  std::swap(first.args, second.args);
  const int32_t grad = second.args[kBackGrad].values[0];
  const int32_t masked = value_like(y, pool_back_);
  set_tensor(first, kThresholdGrad, grad);
  set_tensor(first, kThresholdY, y);
  first.outs[0] = masked;
  set_tensor(second, kBackGrad, masked);
  set_tensor(second, kBackSelf, g_.nodes[relu_].args[kPoolSelf].values[0]);
  readers_[g_.values[y].storage].push_back(pool_back_);
}

void Exchange::rewrite() {
  IrNode &first = g_.nodes[relu_], &second = g_.nodes[pool_];
  const int32_t x = first.args[0].values[0];
  const int32_t y = second.outs[0];
  std::swap(first.op, second.op);
  std::swap(first.args, second.args);
  set_tensor(first, kPoolSelf, x);
  first.outs[0] = value_like(y, relu_);
  set_tensor(second, 0, first.outs[0]);
  if (pool_back_ >= 0) rewrite_backward(y);
}

void Exchange::run() {
  bool changed = false;
  for (int32_t i = 0; i < g_.nodes.size(); i++) {
    if (!match(i)) continue;
    rewrite();
    changed = true;
  }
  if (!changed) return;
  SmallVec<bool, 16> keep;  // all: only values without a use go
  keep.resize(g_.nodes.size(), true);
  remove_nodes(g_, keep);
}

}  // namespace

void pool_before_relu(Graph& g) { Exchange(g).run(); }

}  // namespace TT_NS
