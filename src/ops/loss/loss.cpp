// Negative log likelihood and cross entropy, with PyTorch's reductions.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/index/nest.h"
#include "plan/loss_build.h"

namespace TT_NS::impl {

static int64_t class_dim(const Tensor& input) { return input.ndim == 1 ? 0 : 1; }

// ---- checks ----

static void check_input(const Tensor& input, const Tensor* weight) {
  if (input.ndim == 0)
    fail_arg(TT_SHAPE, "input", "input is 0-dim: must be (C), (N, C) or (N, C, d1, …)");
  if (!is_float(input.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "input", "input is {}: must be floating", fmt(input.dtype));
  if (!weight) return;
  const int64_t classes = input.size(class_dim(input));
  check_same_device(input, "input", *weight, "weight");
  if (weight->ndim != 1 || weight->numel != classes)
    fail_arg(TT_SHAPE, "weight", "weight is {}: must be [{}], one factor per class",
             weight->sizes(), classes);
  if (weight->dtype != input.dtype)
    fail_arg(TT_DTYPE, "weight", "weight is {}, input is {}: must be equal", fmt(weight->dtype),
             fmt(input.dtype));
}
// Returns target, checked. The class of one sample without a batch may be (1) instead of 0-dim.
static TensorRef classes_of(const Tensor& input, const Tensor& target) {
  if (target.dtype != Dtype::kI64 && target.dtype != Dtype::kI32 && target.dtype != Dtype::kU8)
    fail_arg(TT_DTYPE, "target", "target is {}: classes must be int64, int32 or uint8",
             fmt(target.dtype));
  check_same_device(input, "input", target, "target");
  if (input.ndim == 1 && target.ndim == 1 && target.numel == 1) return op::reshape(target, Ints());
  Shape want(input.sizes());
  want.erase(class_dim(input));
  if (!same(want, target.sizes()))
    fail_arg(TT_SHAPE, "target", "target is {}, input is {}: must be {}", target.sizes(),
             input.sizes(), Ints(want));
  return TensorRef::share(&target);
}

// ---- the kernels: one loss per target ----

static Dtype loss_dtype(const Tensor& x) {
  return x.dtype == Dtype::kF64 ? Dtype::kF64 : Dtype::kF32;
}

static ClassLossPlan class_plan(Ints size, Dtype dtype, const Tensor& target, const Tensor* weight,
                                Dtype loss, int64_t ignore_index) {
  const int64_t dim = size.n == 1 ? 0 : 1;
  ClassLossPlan plan;
  build_class_loss(&plan, int32_t(dtype), int32_t(target.dtype),
                   int32_t(weight ? weight->dtype : dtype), int32_t(loss),
                   numel_of(size.slice(0, dim)), size[dim], numel_of(size.slice(dim + 1, size.n)),
                   ignore_index);
  plan.target = target.data;
  if (weight) plan.weight = weight->data;
  return plan;
}

// Returns checked, row-major int64 or int32 classes.
static TensorRef class_indices(const Tensor& input, const Tensor& target, int64_t ignore_index) {
  TensorRef t = target.dtype == Dtype::kU8 ? cast_input(target, Dtype::kI64) : dense_input(target);
  check_indices(*t, "target", 0, input.size(class_dim(input)), ignore_index);
  return t;
}

// Reduces the loss; for the mean, row_weight becomes the share of each target.
static TensorRef finish(TensorRef loss, TensorRef* row_weight, int64_t reduction, Dtype dtype) {
  if (reduction != kReductionNone) {
    MaskGuard no_grad(bit(kKeyAutograd));
    loss = op::sum(*loss);
    if (reduction == kReductionMean) {
      TensorRef total = op::sum(**row_weight);
      loss = op::div(*loss, *total);
      *row_weight = op::div(**row_weight, *total);
    }
  }
  return loss->dtype == dtype ? std::move(loss) : cast_input(*loss, dtype);
}

TensorPair native_nll_loss(Call, const Tensor& input, const Tensor& target, const Tensor* weight,
                           int64_t ignore_index, int64_t reduction) {
  TensorRef t = class_indices(input, target, ignore_index);
  TensorRef x = dense_input(input);
  TensorRef w = weight ? dense_input(*weight) : TensorRef();
  TensorRef loss = new_tensor(t->sizes(), loss_dtype(input), input.device);
  TensorRef row_weight = new_tensor(t->sizes(), loss->dtype, input.device);
  ClassLossPlan plan =
      class_plan(input.sizes(), input.dtype, *t, w.get(), loss->dtype, ignore_index);
  plan.x = x->data;
  plan.loss = loss->data;
  plan.row_weight = row_weight->data;
  if (loss->numel) launch_stages(kernel_nll_loss, input.device, &plan.run);
  loss = finish(std::move(loss), &row_weight, reduction, input.dtype);
  return {std::move(loss), std::move(row_weight)};
}

TensorTriple native_cross_entropy(Call, const Tensor& input, const Tensor& target,
                                  const Tensor* weight, int64_t ignore_index, int64_t reduction) {
  TensorRef t = class_indices(input, target, ignore_index);
  TensorRef x = dense_input(input);
  TensorRef w = weight ? dense_input(*weight) : TensorRef();
  TensorRef loss = new_tensor(t->sizes(), loss_dtype(input), input.device);
  TensorRef row_weight = new_tensor(t->sizes(), loss->dtype, input.device);
  TensorRef lse = new_tensor(t->sizes(), loss->dtype, input.device);
  ClassLossPlan plan =
      class_plan(input.sizes(), input.dtype, *t, w.get(), loss->dtype, ignore_index);
  plan.x = x->data;
  plan.loss = loss->data;
  plan.row_weight = row_weight->data;
  plan.lse = lse->data;
  if (input.numel) split_class_loss(&plan, true);
  Workspace workspace(class_loss_workspace_bytes(&plan), input.device);
  plan.parts = reinterpret_cast<double*>(workspace.data());
  if (loss->numel) launch_stages(kernel_cross_entropy, input.device, &plan.run);
  loss = finish(std::move(loss), &row_weight, reduction, input.dtype);
  return {std::move(loss), std::move(lse), std::move(row_weight)};
}

// Returns the common gradient of all targets, for a sum or mean.
static TensorRef scale_of(const Tensor& grad, Dtype dtype, ClassLossPlan* plan) {
  TensorRef scale = cast_input(grad, dtype);
  plan->scale = scale->data;
  plan->scale_stride = grad.numel == 1 ? 0 : 1;
  return scale;
}

TensorRef nll_loss_backward(Call, const Tensor& grad, const Tensor& input, const Tensor& target,
                            const Tensor& row_weight, int64_t ignore_index) {
  TensorRef t = target.dtype == Dtype::kU8 ? cast_input(target, Dtype::kI64) : dense_input(target);
  TensorRef dx = new_tensor(input.sizes(), input.dtype, input.device);
  ClassLossPlan plan =
      class_plan(input.sizes(), dx->dtype, *t, nullptr, row_weight.dtype, ignore_index);
  TensorRef scale = scale_of(grad, row_weight.dtype, &plan);
  plan.row_weight = row_weight.data;
  plan.dx = dx->data;
  if (dx->numel) split_class_loss(&plan, false);
  if (dx->numel) launch_stages(kernel_nll_loss_backward, grad.device, &plan.run);
  return dx;
}

TensorRef cross_entropy_backward(Call, const Tensor& grad, const Tensor& input,
                                 const Tensor& target, const Tensor& lse, const Tensor& row_weight,
                                 int64_t ignore_index) {
  TensorRef t = target.dtype == Dtype::kU8 ? cast_input(target, Dtype::kI64) : dense_input(target);
  TensorRef x = dense_input(input);
  TensorRef dx = new_tensor(input.sizes(), input.dtype, input.device);
  ClassLossPlan plan =
      class_plan(input.sizes(), input.dtype, *t, nullptr, row_weight.dtype, ignore_index);
  TensorRef scale = scale_of(grad, row_weight.dtype, &plan);
  plan.x = x->data;
  plan.lse = lse.data;
  plan.row_weight = row_weight.data;
  plan.dx = dx->data;
  if (dx->numel) split_class_loss(&plan, false);
  if (dx->numel) launch_stages(kernel_cross_entropy_backward, input.device, &plan.run);
  return dx;
}

// ---- the public operators ----

TensorRef nll_loss(Call, const Tensor& input, const Tensor& target, const Tensor* weight,
                   int64_t ignore_index, int64_t reduction) {
  check_input(input, weight);
  const TensorRef t = classes_of(input, target);
  return op::native_nll_loss(input, *t, weight, ignore_index, reduction).first;
}

// Returns weight as (1, C, 1, …), to multiply input.
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

static TensorRef with_probabilities(const Tensor& input, const Tensor& target, const Tensor* weight,
                                    int64_t reduction, double smoothing) {
  const int64_t dim = class_dim(input);
  const int64_t classes = input.size(dim);
  TensorRef p = TensorRef::share(&target);
  if (smoothing > 0)
    p = op::add(*op::mul(*p, Scalar(1 - smoothing)), Scalar(smoothing / double(classes)));
  TensorRef loss = op::neg(*op::mul(*op::log_softmax(input, dim), *p));
  if (weight) loss = op::mul(*loss, *along_classes(*weight, input));
  if (reduction == kReductionNone) return sum_classes(*loss);
  TensorRef total = op::sum(*loss);
  return reduction == kReductionSum
             ? std::move(total)
             : op::div(*total, Scalar(double(input.numel) / double(classes)));
}

// Class targets with label smoothing: a share of the target is distributed evenly over all classes.
static TensorRef with_smoothing(const Tensor& input, const Tensor& target, const Tensor* weight,
                                int64_t ignore_index, int64_t reduction, double smoothing) {
  const int64_t dim = class_dim(input);
  TensorRef log_p = op::log_softmax(input, dim);
  TensorPair hit = op::native_nll_loss(*log_p, target, weight, ignore_index, kReductionNone);
  TensorRef losses = op::neg(*log_p);
  if (weight) losses = op::mul(*losses, *along_classes(*weight, input));
  TensorRef smooth =
      op::masked_fill(*sum_classes(*losses), *op::eq(target, Scalar(ignore_index)), Scalar(0));
  TensorRef loss = op::add(*op::mul(*hit.first, Scalar(1 - smoothing)),
                           *op::mul(*smooth, Scalar(smoothing / double(input.size(dim)))));
  if (reduction == kReductionNone) return loss;
  TensorRef total = op::sum(*loss);
  return reduction == kReductionSum ? std::move(total)
                                    : op::div(*total, *op::to(*op::sum(*hit.second), input.dtype));
}

// target: probabilities, or classes with smoothing. 16-bit operands are computed in float32 and
// rounded once.
static TensorRef composed(const Tensor& input, const Tensor& target, const Tensor* weight,
                          int64_t ignore_index, int64_t reduction, double smoothing) {
  if (input.dtype == Dtype::kF16 || input.dtype == Dtype::kBF16) {
    TensorRef x = op::to_dtype(input, Dtype::kF32);
    TensorRef w = weight ? op::to_dtype(*weight, Dtype::kF32) : TensorRef();
    return op::to_dtype(*composed(x, target, w.get(), ignore_index, reduction, smoothing),
                        input.dtype);
  }
  if (same(input.sizes(), target.sizes()))
    return with_probabilities(input, *op::to(target, input.dtype), weight, reduction, smoothing);
  return with_smoothing(input, target, weight, ignore_index, reduction, smoothing);
}

TensorRef cross_entropy(Call, const Tensor& input, const Tensor& target, const Tensor* weight,
                        int64_t ignore_index, int64_t reduction, double label_smoothing) {
  check_input(input, weight);
  if (!(label_smoothing >= 0 && label_smoothing <= 1))
    fail_arg(TT_INVALID_ARG, "label_smoothing", "label_smoothing is {}: must be in [0, 1]",
             label_smoothing);
  if (same(input.sizes(), target.sizes())) {
    if (!is_float(target.dtype))
      fail_arg(TT_DTYPE, "target", "target is {}: probabilities must be floating",
               fmt(target.dtype));
    if (ignore_index >= 0)
      fail_arg(TT_INVALID_ARG, "ignore_index",
               "ignore_index is {}: not allowed for probabilities as targets", ignore_index);
    return composed(input, target, weight, ignore_index, reduction, label_smoothing);
  }
  const TensorRef t = classes_of(input, target);
  if (label_smoothing > 0)
    return composed(input, *t, weight, ignore_index, reduction, label_smoothing);
  return op::native_cross_entropy(input, *t, weight, ignore_index, reduction).first;
}

}  // namespace TT_NS::impl
