// Losses with linear layers of their own.
#include "nn/adaptive_softmax.h"
#include "nn/gen/layers.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS {

// ---- LinearCrossEntropyLoss ----

void build(Module& m, const LinearCrossEntropyLossArgs& a) {
  const Place place(a.dtype, a.device);
  check_size(a.in_features, "in_features");
  check_size(a.num_classes, "num_classes");
  int64_t classes = a.num_classes;
  for (const int64_t n : a.out_features) {
    check_size(n, "out_features");
    if (mul_overflow(classes, n, &classes))
      fail_arg(TT_INVALID_ARG, "out_features", "out_features is {}: too many classes",
               Ints(a.out_features));
  }
  const Tensor* weight = m.slot_opt(0);
  if (weight && (weight->ndim != 1 || weight->size(0) != a.num_classes))
    fail_arg(TT_SHAPE, "weight", "weight is {}: must be [{}]", weight->sizes(), a.num_classes);
  if (!(a.label_smoothing >= 0 && a.label_smoothing <= 1))
    fail_arg(TT_INVALID_ARG, "label_smoothing", "label_smoothing is {}: must be in [0, 1]",
             a.label_smoothing);
  set_child(m, "linear", *construct(LinearArgs{a.in_features, classes, a.bias, a.device, a.dtype}));
}

TensorList forward_of(Module& m, const LinearCrossEntropyLossArgs& a, TensorSpan in) {
  const ModuleRef linear = m.children[0].module;
  if (linear->slots.empty())
    fail_arg(TT_INVALID_ARG, "m", "linear is a {}: must have a weight", linear->type->name);
  Shape shape;
  shape.push_back(a.num_classes);
  for (const int64_t n : a.out_features) shape.push_back(n);
  const Tensor* bias = linear->slots.size() > 1 ? linear->slot_opt(1) : nullptr;
  const TensorRef biases = bias ? op::reshape(*bias, shape) : TensorRef();
  shape.push_back(a.in_features);
  const TensorRef weights = op::reshape(linear->slot(0), shape);
  return one(op::linear_cross_entropy(*in[0], *weights, *in[1], biases.get(), m.slot_opt(0),
                                      a.ignore_index, a.reduction, a.label_smoothing));
}

// ---- AdaptiveLogSoftmaxWithLoss ----

namespace {

enum Children { kHead, kTail };

// Classes of the clusters: cluster i is [begin, end).
struct Cluster {
  int64_t begin, end;
};
Cluster cluster_of(const AdaptiveLogSoftmaxWithLossArgs& a, int64_t i) {
  return {a.cutoffs[i], i + 1 < a.cutoffs.size() ? a.cutoffs[i + 1] : a.n_classes};
}

void check_target(const Tensor& input, const Tensor& target, int64_t n_classes) {
  if (target.dtype != Dtype::kI64)
    fail_arg(TT_DTYPE, "target", "target is {}: must be int64", fmt(target.dtype));
  if (target.ndim > 1)
    fail_arg(TT_SHAPE, "target", "target is {}: must have 0 or 1 dimensions", target.sizes());
  if (input.ndim != target.ndim + 1)
    fail_arg(TT_SHAPE, "input", "input is {}: must have {} dimensions beside target {}",
             input.sizes(), target.ndim + 1, target.sizes());
  if (target.ndim && input.size(0) != target.size(0))
    fail_arg(TT_SHAPE, "target", "target is {}: must have the {} rows of input", target.sizes(),
             input.size(0));
  if (!target.numel) return;
  const auto least = int64_t(read_scalar(*op::min(target)).real());
  const auto most = int64_t(read_scalar(*op::max(target)).real());
  if (least < 0 || most >= n_classes)
    fail_arg(TT_INDEX, "target", "target has classes from {} to {}: must be in [0, {})", least,
             most, n_classes);
}

// The indices at which a 1-d condition is true.
TensorRef where_true(const Tensor& condition) {
  const int64_t flat[1] = {-1};
  return op::reshape(*op::nonzero(condition), flat);
}
// x[i, columns[i]]
TensorRef pick_columns(const Tensor& x, const Tensor& columns) {
  const int64_t last[1] = {1};
  return op::squeeze_dims(*op::gather(x, 1, *op::unsqueeze(columns, 1)), last);
}

// The clusters, which the application may have replaced.
ModuleRef tail_of(const Module& m, const AdaptiveLogSoftmaxWithLossArgs& a) {
  const ModuleRef& tail = m.children[kTail].module;
  if (tail->children.size() != a.cutoffs.size())
    fail_arg(TT_INVALID_ARG, "m", "tail has {} modules: must have {}, one per cluster",
             tail->children.size(), a.cutoffs.size());
  return tail;
}

TensorRef log_prob(const Module& m, const AdaptiveLogSoftmaxWithLossArgs& a, const Tensor& input) {
  const TensorRef head = op::log_softmax(*call_child(m, kHead, input), 1);
  const ModuleRef tail = tail_of(m, a);
  TensorList parts = one(op::narrow(*head, 1, 0, a.cutoffs[0]));
  for (int64_t i = 0; i < a.cutoffs.size(); i++) {
    const TensorRef own = op::log_softmax(*call_child(*tail, i, input), 1);
    parts.push_back(op::add(*own, *op::narrow(*head, 1, a.cutoffs[0] + i, 1)));
  }
  SmallVec<const Tensor*, 8> list;
  for (const TensorRef& part : parts) list.push_back(part.get());
  return op::cat(list, 1);
}

// Calls f(m, args) for a module of this class.
template <class F> TensorRef as_adaptive(Module& m, const Tensor& input, F f) {
  if (!is_layer(m, "AdaptiveLogSoftmaxWithLoss"))
    fail_arg(TT_INVALID_ARG, "m", "m is a {}: must be an AdaptiveLogSoftmaxWithLoss", m.type->name);
  if (input.ndim != 2)
    fail_arg(TT_SHAPE, "input", "input is {}: must have 2 dimensions", input.sizes());
  const ModuleKeepAlive kept(m);
  return f(args_of<AdaptiveLogSoftmaxWithLossArgs>(m));
}

}  // namespace

void build(Module& m, const AdaptiveLogSoftmaxWithLossArgs& a) {
  const Place place(a.dtype, a.device);
  check_size(a.in_features, "in_features");
  int64_t below = 0;
  for (const int64_t cutoff : a.cutoffs) {
    if (cutoff <= below || cutoff >= a.n_classes)
      fail_arg(TT_INVALID_ARG, "cutoffs",
               "cutoffs is {}: must be increasing, positive and less than n_classes ({})",
               Ints(a.cutoffs), a.n_classes);
    below = cutoff;
  }
  if (!(a.div_value > 0))
    fail_arg(TT_INVALID_ARG, "div_value", "div_value is {}: must be positive", a.div_value);
  const auto linear = [&](int64_t in, int64_t out, bool bias) {
    return construct(LinearArgs{in, out, bias, a.device, a.dtype});
  };
  set_child(m, "head", *linear(a.in_features, a.cutoffs[0] + a.cutoffs.size(), a.head_bias));
  const ModuleRef tail = construct(ModuleListArgs{});
  double divisor = 1;
  for (int64_t i = 0; i < a.cutoffs.size(); i++) {
    const Cluster cluster = cluster_of(a, i);
    divisor *= a.div_value;
    const double share = double(a.in_features) / divisor;
    if (!(share < double(INT64_MAX)))
      fail_arg(TT_INVALID_ARG, "div_value", "div_value is {}: cluster {} has too many features",
               a.div_value, i);
    const auto features = int64_t(share);
    const ModuleRef steps = construct(SequentialArgs{});
    append_child(*steps, Text("0"), *linear(a.in_features, features, false));
    append_child(*steps, Text("1"), *linear(features, cluster.end - cluster.begin, false));
    Text name;
    name.add(i);
    append_child(*tail, name, *steps);
  }
  set_child(m, "tail", *tail);
}

TensorList forward_of(Module& m, const AdaptiveLogSoftmaxWithLossArgs& a, TensorSpan in) {
  check_target(*in[0], *in[1], a.n_classes);
  const bool batched = in[1]->ndim > 0;
  const TensorRef input = batched ? TensorRef::share(in[0]) : op::unsqueeze(*in[0], 0);
  const TensorRef target = batched ? TensorRef::share(in[1]) : op::unsqueeze(*in[1], 0);
  const ModuleRef tail = tail_of(m, a);
  const TensorRef head = op::log_softmax(*call_child(m, kHead, *input), 1);
  TensorRef columns = target;  // of head
  SmallVec<TensorRef, 4> rows;
  SmallVec<TensorRef, 4> of_rows;
  for (int64_t i = 0; i < a.cutoffs.size(); i++) {
    const Cluster cluster = cluster_of(a, i);
    const TensorRef is_in = op::logical_and(*op::ge(*target, Scalar(cluster.begin)),
                                            *op::lt(*target, Scalar(cluster.end)));
    TensorRef found = where_true(*is_in);
    if (!found->numel) continue;
    columns = op::masked_fill(*columns, *is_in, Scalar(a.cutoffs[0] + i));
    const TensorRef own = call_child(*tail, i, *op::index_select(*input, 0, *found));
    const TensorRef classes = op::sub(*op::index_select(*target, 0, *found), Scalar(cluster.begin));
    of_rows.push_back(pick_columns(*op::log_softmax(*own, 1), *classes));
    rows.push_back(std::move(found));
  }
  TensorRef output = pick_columns(*head, *columns);
  for (int64_t i = 0; i < rows.size(); i++)
    output = op::index_add(*output, 0, *rows[i], *of_rows[i]);
  TensorRef loss = op::mean(*op::neg(*output));
  TensorList results = one(batched ? std::move(output) : op::squeeze(*output));
  results.push_back(std::move(loss));
  return results;
}

TensorRef adaptive_log_prob(Module& m, const Tensor& input) {
  return as_adaptive(m, input, [&](const auto& a) { return log_prob(m, a, input); });
}

TensorRef adaptive_predict(Module& m, const Tensor& input) {
  return as_adaptive(m, input, [&](const auto& a) {
    TensorRef best = op::argmax(*call_child(m, kHead, input), 1);
    const TensorRef rows = where_true(*op::ge(*best, Scalar(a.cutoffs[0])));
    if (!rows->numel) return best;
    const TensorRef all = log_prob(m, a, *op::index_select(input, 0, *rows));
    return op::index_copy(*best, 0, *rows, *op::argmax(*all, 1));
  });
}

}  // namespace TT_NS
