// Losses of pairs of elements: checks, the loss of each pair, the reduction.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"
#include "ops/index/nest.h"
#include "ops/loss/dtype.h"

namespace TT_NS::impl {

// ---- shared ----

static void check_same_shape(const Tensor& t, const char* name, const Tensor& other,
                             const char* other_name) {
  if (!same(t.sizes(), other.sizes()))
    fail_arg(TT_SHAPE, name, "{} is {}, {} is {}: must be equal", name, t.sizes(), other_name,
             other.sizes());
}

// Both operands, converted to the dtype of the computation.
struct Pair : LossDtype {
  TensorRef x, y;

  Pair(const Tensor& input, const Tensor& target)
      : LossDtype(floating_loss(input, target)), x(cast(input)), y(cast(target)) {}
};

static void check_weight(const Tensor* weight, const Tensor& input) {
  if (weight) check_same_shape(*weight, "weight", input, "input");
}

// ---- differences ----

// The loss of complex numbers and of integers, whose mean is refused.
static TensorRef l1_composed(const Tensor& input, const Tensor& target, int64_t reduction,
                             const Tensor* weight) {
  TensorRef loss = op::abs(*op::sub(input, target));
  if (weight) loss = op::mul(*loss, *weight);
  if (reduction == kReductionNone) return loss;
  return reduction == kReductionSum ? op::sum(*loss) : op::mean(*loss);
}
TensorRef l1_loss(Call, const Tensor& input, const Tensor& target, int64_t reduction,
                  const Tensor* weight) {
  check_weight(weight, input);
  if (!is_float(result_type({input, target}))) return l1_composed(input, target, reduction, weight);
  const Pair p(input, target);
  return p.reduced(p.weighted(op::absolute_difference(*p.x, *p.y), weight), reduction);
}

TensorRef mse_loss(Call, const Tensor& input, const Tensor& target, int64_t reduction,
                   const Tensor* weight) {
  check_weight(weight, input);
  const Pair p(input, target);
  TensorRef loss = p.weighted(op::squared_difference(*p.x, *p.y), weight);
  if (!weight || reduction != kReductionMean) return p.reduced(std::move(loss), reduction);
  return p.rounded(op::div(*op::sum(*loss), *op::sum(*p.cast(*weight))));
}

TensorRef smooth_l1_loss(Call, const Tensor& input, const Tensor& target, int64_t reduction,
                         double beta) {
  if (!(beta >= 0)) fail_arg(TT_INVALID_ARG, "beta", "beta is {}: must be at least 0", beta);
  const Pair p(input, target);
  return p.reduced(
      beta == 0 ? op::absolute_difference(*p.x, *p.y) : op::smooth_difference(*p.x, *p.y, beta),
      reduction);
}

TensorRef huber_loss(Call, const Tensor& input, const Tensor& target, int64_t reduction,
                     double delta, const Tensor* weight) {
  check_weight(weight, input);
  if (!(delta > 0)) fail_arg(TT_INVALID_ARG, "delta", "delta is {}: must be greater than 0", delta);
  const Pair p(input, target);
  return p.reduced(p.weighted(op::huber_difference(*p.x, *p.y, delta), weight), reduction);
}

// ---- probabilities ----

static void check_probabilities(const Tensor& x) {
  if (x.numel == 0 || x.device.type == TT_META) return;
  MaskGuard no_grad(bit(kKeyAutograd));
  if (checks_later(x))
    return require_each(*op::logical_and(*op::ge(x, 0), *op::le(x, 1)), x, "input",
                        "input has values outside [0, 1]");
  const Scalar low = read_scalar(*op::min(x));
  const Scalar high = read_scalar(*op::max(x));
  if (!(low.re >= 0 && high.re <= 1))
    fail_arg(TT_INVALID_ARG, "input", "input has values from {} to {}: must be in [0, 1]", low.re,
             high.re);
}
static void check_broadcast(const Tensor* t, const char* name, const Tensor& target) {
  if (t && !broadcastable_to(t->sizes(), target.sizes()))
    fail_arg(TT_SHAPE, name, "{} is {}, target is {}: must broadcast to it", name, t->sizes(),
             target.sizes());
}

TensorRef binary_cross_entropy(Call, const Tensor& input, const Tensor& target,
                               const Tensor* weight, int64_t reduction) {
  check_same_shape(target, "target", input, "input");
  check_broadcast(weight, "weight", target);
  const Pair p(input, target);
  check_probabilities(input);
  return p.reduced(p.weighted(op::bernoulli_entropy(*p.x, *p.y), weight), reduction);
}

// (1 - y) x - (1 + (pos_weight - 1) y) log(sigmoid(x)).
TensorRef binary_cross_entropy_with_logits(Call, const Tensor& input, const Tensor& target,
                                           const Tensor* weight, int64_t reduction,
                                           const Tensor* pos_weight) {
  check_same_shape(target, "target", input, "input");
  check_broadcast(weight, "weight", target);
  check_broadcast(pos_weight, "pos_weight", target);
  const Pair p(input, target);
  TensorRef log_p = op::logsigmoid(*p.x);
  if (pos_weight)
    log_p = op::mul(*log_p,
                    *op::add(*op::mul(*op::sub(*p.cast(*pos_weight), Scalar(1)), *p.y), Scalar(1)));
  TensorRef loss = op::sub(*op::mul(*op::rsub(*p.y, Scalar(1)), *p.x), *log_p);
  return p.reduced(p.weighted(std::move(loss), weight), reduction);
}

TensorRef kl_div(Call, const Tensor& input, const Tensor& target, int64_t reduction,
                 bool log_target) {
  const bool batch = reduction == kKlReductionBatchmean;
  const Pair p(input, target);
  TensorRef loss;
  if (log_target) {
    loss = op::mul(*op::exp(*p.y), *op::sub(*p.y, *p.x));
  } else {
    // log(1) in place of log(0)
    TensorRef logs = op::log(*op::masked_fill(*p.y, *op::eq(*p.y, Scalar(0)), Scalar(1)));
    loss = op::sub(*op::mul(*p.y, *logs), *op::mul(*p.y, *p.x));
  }
  if (!batch) return p.reduced(std::move(loss), reduction);
  return p.rounded(op::div(*op::sum(*loss), Scalar(input.ndim ? input.size(0) : 1)));
}

}  // namespace TT_NS::impl
