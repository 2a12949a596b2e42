#include "dist/sync_norm.h"

#include "autograd/expr.h"
#include "autograd/node.h"
#include "ops/impl.h"

namespace TT_NS {

namespace {

using namespace formula;

// ---- the sum over the ranks, whose gradient is the sum of the gradients of all ranks ----

TensorRef sum_of_ranks(Group& g, const Tensor& t);

void apply_sum(Node& n, TensorRef* grads, TensorRef* out) {
  if (n.needs(0)) out[0] = sum_of_ranks(*n.saved_as<Ref<Group>>(), *grads[0]);
}
const NodeType kSumType = {
    .name = "all_reduce",
    .apply = apply_sum,
    .destroy_saved = destroy_saved<Ref<Group>>,
    .saved_bytes = sizeof(Ref<Group>),
    .takes_undefined = false,
};

TensorRef sum_of_ranks(Group& g, const Tensor& t) {
  NodeRef node;
  const bool records = !(ctx().exclude & bit(kKeyAutograd)) && needs_grad(t);
  if (records) {
    node = new_node(&kSumType, 1, 1);
    new (as_node(node).saved()) Ref<Group>(Ref<Group>::share(&g));
    as_node(node).released = false;
    as_node(node).set_edge(0, t);
  }
  TensorRef sum;
  {
    const MaskGuard no_grad(bit(kKeyAutograd));
    sum = op::clone(t);
    run_work(g, Job{DistCall::kAllReduce, ReduceOp::kSum, 0, 0, sum, sum});
  }
  if (records) set_history(node, *sum, 0);
  return sum;
}

// ---- normalisation ----

// A vector per channel, in a shape that broadcasts over the input.
TensorRef per_channel(const Tensor& vector, const Tensor& input) {
  Shape shape;
  for (int32_t d = 0; d < input.ndim; d++) shape.push_back(d == 1 ? input.size(1) : 1);
  return op::view(vector, shape);
}

// Row r of the result is `mine` of rank r.
TensorRef rows_of_ranks(Group& g, const Tensor& mine) {
  const int64_t above[] = {g.rank, mine.numel};
  const int64_t below[] = {g.size - 1 - g.rank, mine.numel};
  const TensorRef before = op::zeros({above, 2}, mine.dtype, mine.device);
  const TensorRef row = op::unsqueeze(mine, 0);
  const TensorRef after = op::zeros({below, 2}, mine.dtype, mine.device);
  const Tensor* rows[] = {before.get(), row.get(), after.get()};
  return sum_of_ranks(g, *op::cat({rows, 3}, 0));
}

struct Statistics {
  TensorRef mean, variance;
  double count;  // of elements of a channel, on all ranks
};

// Mean and variance of each rank become those of all (Chan, Golub, LeVeque): no large sums cancel.
Statistics statistics_of_ranks(Group& g, const Tensor& x) {
  const int64_t channels = x.size(1);
  const int64_t n = x.numel / max<int64_t>(1, channels);
  Shape dims;
  for (int32_t d = 0; d < x.ndim; d++)
    if (d != 1) dims.push_back(d);
  const double divisor = double(max<int64_t>(1, n));
  const TensorRef mean = op::sum_dim(x, dims) * Scalar(1 / divisor);
  const TensorRef squares = op::sum_dim(*op::square(*(x - *per_channel(*mean, x))), dims);
  const int64_t one = 1;
  const TensorRef count = op::full({&one, 1}, Scalar(double(n)), x.dtype, x.device);
  const Tensor* parts[] = {mean.get(), squares.get(), count.get()};
  const TensorRef rows = rows_of_ranks(g, *op::cat({parts, 3}, 0));
  const TensorRef means = op::narrow(*rows, 1, 0, channels);
  const TensorRef sums = op::narrow(*rows, 1, channels, channels);
  const TensorRef counts = op::detach(*op::narrow(*rows, 1, 2 * channels, 1));
  const int64_t over_ranks = 0;
  const Ints ranks = {&over_ranks, 1};
  Statistics s;
  s.count = read_scalar(*op::sum(*counts)).real();
  if (s.count < 2)
    fail_arg(TT_SHAPE, "input",
             "input is {}: all ranks together need more than one value per channel", x.sizes());
  s.mean = op::sum_dim(*(means * counts), ranks) * Scalar(1 / s.count);
  const TensorRef apart = op::square(*(means - *s.mean));
  s.variance = op::sum_dim(*(sums + *(apart * counts)), ranks) * Scalar(1 / s.count);
  return s;
}

void update_running(const SyncNorm& norm, const Statistics& s) {
  const MaskGuard no_grad(bit(kKeyAutograd));
  const Scalar weight(norm.momentum);
  const Scalar unbiased(s.count / (s.count - 1));
  op::lerp_(*norm.running_mean, *op::to_dtype(*s.mean, norm.running_mean->dtype), weight);
  const TensorRef variance = op::detach(*s.variance) * unbiased;
  op::lerp_(*norm.running_var, *op::to_dtype(*variance, norm.running_var->dtype), weight);
}

}  // namespace

TensorRef sync_batch_norm(Group& g, const Tensor& input, const SyncNorm& norm) {
  if (ctx().graph)
    fail(TT_NOT_IMPLEMENTED, "a capture cannot record statistics of the ranks of a group");
  if (!is_float(input.dtype))
    fail_arg(TT_DTYPE, "input", "input is {}: must be floating", fmt(input.dtype));
  const bool half = item_size(input.dtype) < 4;
  const TensorRef wide = half ? op::to_dtype(input, Dtype::kF32) : TensorRef::share(&input);
  const Tensor& x = *wide;
  const Statistics s = statistics_of_ranks(g, x);
  if (norm.running_mean && norm.running_var) update_running(norm, s);
  TensorRef scale = op::rsqrt(*(*s.variance + Scalar(norm.eps)));
  if (norm.weight) scale = scale * *norm.weight;
  TensorRef y = *(x - *per_channel(*s.mean, x)) * *per_channel(*scale, x);
  if (norm.bias) y = y + *per_channel(*norm.bias, x);
  return y->dtype == input.dtype ? y : op::to_dtype(*y, input.dtype);
}

}  // namespace TT_NS
