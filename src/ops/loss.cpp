// Negative log likelihood and cross entropy, with PyTorch's reductions.
#include "gen/fronts.h"
#include "gen/ops.h"
#include "ops/front.h"

namespace TT_NS::front {

static int64_t class_dim(const Tensor& input) { return input.ndim == 1 ? 0 : 1; }
static TensorRef squeezed(const Tensor& t, int64_t dim) { return op::squeeze_dims(t, Ints(&dim, 1)); }

static void check_reduction(int64_t reduction) {
  if (reduction < kReductionNone || reduction > kReductionSum)
    fail_arg(TT_INVALID_ARG, "reduction", "reduction is {}: must be none (0), mean (1) or sum (2)", reduction);
}
static TensorRef reduced(TensorRef loss, int64_t reduction) {
  return reduction == kReductionNone ? std::move(loss) : reduction == kReductionSum ? op::sum(*loss) : op::mean(*loss);
}

static void check_input(const Tensor& input, const Tensor* weight) {
  if (input.ndim == 0) fail_arg(TT_SHAPE, "input", "input is 0-dim: must be (C), (N, C) or (N, C, d1, …)");
  if (!is_float(input.dtype)) fail_arg(TT_NOT_IMPLEMENTED, "input", "input is {}: must be floating", fmt(input.dtype));
  if (!weight) return;
  const int64_t classes = input.size(class_dim(input));
  if (weight->ndim != 1 || weight->numel != classes) fail_arg(TT_SHAPE, "weight", "weight is {}: must be [{}], one factor per class", weight->sizes(), classes);
  if (weight->dtype != input.dtype) fail_arg(TT_DTYPE, "weight", "weight is {}, input is {}: must be equal", fmt(weight->dtype), fmt(input.dtype));
}

// Class targets of input's shape without the class dimension.
struct Classes {
  TensorRef index;    // int64, 0 where ignored
  TensorRef ignored;  // bool

  Classes(const Tensor& input, const Tensor& target, int64_t ignore_index) {
    if (target.dtype != Dtype::kI64 && target.dtype != Dtype::kI32 && target.dtype != Dtype::kU8)
      fail_arg(TT_DTYPE, "target", "target is {}: classes must be int64, int32 or uint8", fmt(target.dtype));
    check_same_device(input, "input", target, "target");
    Shape want(input.sizes());
    want.erase(class_dim(input));
    if (!same(want, target.sizes())) fail_arg(TT_SHAPE, "target", "target is {}, input is {}: must be {}", target.sizes(), input.sizes(), Ints(want));
    TensorRef t = op::to(target, Dtype::kI64);
    ignored = op::eq(*t, Scalar(ignore_index));
    index = op::masked_fill(*t, *ignored, Scalar(0));
  }
  TensorRef without_ignored(const Tensor& t) const { return op::masked_fill(t, *ignored, Scalar(0)); }
  // The factor of each target's class.
  TensorRef weights(const Tensor& weight) const {
    const int64_t flat = -1;
    return without_ignored(*op::reshape(*op::index_select(weight, 0, *op::reshape(*index, Ints(&flat, 1))), index->sizes()));
  }
};

static TensorRef nll(const Tensor& input, const Classes& target, const Tensor* weight, int64_t reduction) {
  const int64_t dim = class_dim(input);
  TensorRef picked = squeezed(*op::gather(input, dim, *op::unsqueeze(*target.index, dim)), dim);
  TensorRef loss = op::neg(*target.without_ignored(*picked)), factor = weight ? target.weights(*weight) : TensorRef();
  if (factor) loss = op::mul(*loss, *factor);
  if (reduction != kReductionMean) return reduced(std::move(loss), reduction);
  TensorRef count = factor ? op::sum(*factor) : op::sum(*op::logical_not(*target.ignored), input.dtype);
  return op::div(*op::sum(*loss), *count);
}

TensorRef nll_loss(Call, const Tensor& input, const Tensor& target, const Tensor* weight, int64_t ignore_index, int64_t reduction) {
  check_reduction(reduction);
  check_input(input, weight);
  return nll(input, Classes(input, target, ignore_index), weight, reduction);
}

// weight as (1, C, 1, …) beside input.
static TensorRef along_classes(const Tensor& weight, const Tensor& input) {
  Shape shape;
  shape.resize(input.ndim, 1);
  shape[class_dim(input)] = weight.numel;
  return op::reshape(weight, shape);
}

static TensorRef sum_classes(const Tensor& t) {
  const int64_t dim = class_dim(t);
  return op::sum_dim(t, Ints(&dim, 1));
}

static TensorRef with_probabilities(const Tensor& input, const Tensor& target, const Tensor* weight, int64_t reduction, double smoothing) {
  const int64_t dim = class_dim(input), classes = input.size(dim);
  TensorRef p = TensorRef::share(&target);
  if (smoothing > 0) p = op::add(*op::mul(*p, Scalar(1 - smoothing)), Scalar(smoothing / double(classes)));
  TensorRef loss = op::neg(*op::mul(*op::log_softmax(input, dim), *p));
  if (weight) loss = op::mul(*loss, *along_classes(*weight, input));
  if (reduction == kReductionNone) return sum_classes(*loss);
  TensorRef total = op::sum(*loss);
  return reduction == kReductionSum ? std::move(total) : op::div(*total, Scalar(double(input.numel) / double(classes)));
}

// The part of the loss that label smoothing spreads over all classes.
static TensorRef smooth_part(const Tensor& log_p, const Classes& target, const Tensor* weight, int64_t reduction) {
  TensorRef terms = op::neg(weight ? *op::mul(log_p, *along_classes(*weight, log_p)) : log_p);
  TensorRef loss = target.without_ignored(*sum_classes(*terms));
  if (reduction != kReductionMean) return reduced(std::move(loss), reduction);
  TensorRef count = weight ? op::sum(*target.weights(*weight)) : op::sum(*op::logical_not(*target.ignored), log_p.dtype);
  return op::div(*op::sum(*loss), *count);
}

TensorRef cross_entropy(Call, const Tensor& input, const Tensor& target, const Tensor* weight, int64_t ignore_index, int64_t reduction, double label_smoothing) {
  check_reduction(reduction);
  check_input(input, weight);
  if (!(label_smoothing >= 0 && label_smoothing <= 1)) fail_arg(TT_INVALID_ARG, "label_smoothing", "label_smoothing is {}: must be in [0, 1]", label_smoothing);
  if (same(input.sizes(), target.sizes())) {
    if (!is_float(target.dtype)) fail_arg(TT_DTYPE, "target", "target is {}: probabilities must be floating", fmt(target.dtype));
    if (ignore_index >= 0) fail_arg(TT_INVALID_ARG, "ignore_index", "ignore_index is {}: not for targets that are probabilities", ignore_index);
    return with_probabilities(input, target, weight, reduction, label_smoothing);
  }
  Classes classes(input, target, ignore_index);
  const int64_t dim = class_dim(input), n_classes = input.size(dim);
  TensorRef log_p = op::log_softmax(input, dim), loss = nll(*log_p, classes, weight, reduction);
  if (label_smoothing == 0) return loss;
  TensorRef smooth = smooth_part(*log_p, classes, weight, reduction);
  return op::add(*op::mul(*loss, Scalar(1 - label_smoothing)), *op::mul(*smooth, Scalar(label_smoothing / double(n_classes))));
}

}  // namespace TT_NS::front
