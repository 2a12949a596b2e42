// Connectionist temporal classification.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/index/nest.h"
#include "plan/loss_build.h"

namespace TT_NS::impl {

// ---- the kernels ----

static CtcPlan ctc_plan(const Tensor& x, const Tensor& targets, const Tensor& offsets,
                        const Tensor& input_lengths, const Tensor& target_lengths,
                        int64_t max_target, int64_t blank, bool zero_infinity) {
  CtcPlan p;
  build_ctc(&p, int32_t(x.dtype), x.size(0), x.size(1), x.size(2), max_target, blank,
            zero_infinity);
  p.x = x.data;
  p.n_targets = targets.numel;
  p.targets = targets.as<int64_t>();
  p.offsets = offsets.as<int64_t>();
  p.input_lengths = input_lengths.as<int64_t>();
  p.target_lengths = target_lengths.as<int64_t>();
  return p;
}

TensorPair native_ctc_loss(Call, const Tensor& log_probs, const Tensor& targets,
                           const Tensor& offsets, const Tensor& input_lengths,
                           const Tensor& target_lengths, int64_t max_target, int64_t blank,
                           bool zero_infinity) {
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef x = dense_input(log_probs);
  const int64_t batch[1] = {x->size(1)};
  const int64_t states[3] = {x->size(1), x->size(0), 2 * max_target + 1};
  checked_numel(states, Dtype::kF64, "targets");
  TensorRef loss = new_tensor(batch, x->dtype, x->device);
  TensorRef log_alpha = new_tensor(states, Dtype::kF64, x->device);
  CtcPlan p = ctc_plan(*x, targets, offsets, input_lengths, target_lengths, max_target, blank,
                       zero_infinity);
  p.loss = loss->data;
  p.log_alpha = log_alpha->as<double>();
  if (loss->numel) launch_stages(kernel_ctc_loss, x->device, &p.run);
  return {std::move(loss), std::move(log_alpha)};
}

TensorRef ctc_loss_backward(Call, const Tensor& grad, const Tensor& log_probs,
                            const Tensor& targets, const Tensor& offsets,
                            const Tensor& input_lengths, const Tensor& target_lengths,
                            const Tensor& loss, const Tensor& log_alpha, int64_t max_target,
                            int64_t blank, bool zero_infinity) {
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef x = dense_input(log_probs);
  TensorRef scale = cast_input(grad, x->dtype);
  TensorRef dx = new_tensor(x->sizes(), x->dtype, x->device);
  Workspace scratch((2 * max_target + 1 + x->size(2)) * x->size(1) * 8, x->device);
  CtcPlan p = ctc_plan(*x, targets, offsets, input_lengths, target_lengths, max_target, blank,
                       zero_infinity);
  p.loss = loss.data;
  p.log_alpha = log_alpha.as<double>();
  p.scratch = reinterpret_cast<double*>(scratch.data());
  p.scale = scale->data;
  p.dx = dx->data;
  if (dx->numel) launch_stages(kernel_ctc_loss_backward, x->device, &p.run);
  return dx;
}

// ---- the public operator ----

// Returns a copy as int64, which no other thread can change after the checks; as a part of a graph,
// whose checks run with it, the tensor itself if it is int64.
static TensorRef index_copy_of(const Tensor& t, const char* arg, const Tensor& log_probs) {
  check_index_dtype(t, arg);
  check_same_device(log_probs, "log_probs", t, arg);
  if (ctx().graph) return op::contiguous(*op::to_dtype(t, Dtype::kI64));
  if (stands_for_samples(t)) return op::clone(*op::to_dtype(t, Dtype::kI64));
  TensorRef copy = new_tensor(t.sizes(), Dtype::kI64, t.device);
  copy_elements(*copy, t);
  return copy;
}
static TensorRef lengths_of(const Tensor& t, const char* arg, const Tensor& log_probs,
                            int64_t batch, int64_t last) {
  const bool alone = log_probs.ndim == 2 && t.ndim == 0;
  if (!alone && (t.ndim != 1 || t.numel != batch))
    fail_arg(TT_SHAPE, arg, "{} is {}: must be [{}], one length per sample", arg, t.sizes(), batch);
  TensorRef lengths = index_copy_of(t, arg, log_probs);
  check_indices(*lengths, arg, 0, last + 1);
  return op::reshape(*lengths, Ints(&batch, 1));
}

// The labels of all samples, in one row.
struct CtcTargets {
  TensorRef labels, offsets, lengths;
  int64_t max_length = 0;

  CtcTargets(const Tensor& targets, const Tensor& target_lengths, const Tensor& log_probs,
             int64_t batch) {
    const bool rows = targets.ndim == 2;
    if (!rows && targets.ndim != 1)
      fail_arg(TT_SHAPE, "targets", "targets is {}: must be (N, S) or the labels of all samples",
               targets.sizes());
    if (rows && targets.size(0) != batch)
      fail_arg(TT_SHAPE, "targets", "targets is {}: must have {} rows, one per sample",
               targets.sizes(), batch);
    const int64_t last = rows ? targets.size(1) : targets.numel;
    lengths = lengths_of(target_lengths, "target_lengths", log_probs, batch, last);
    labels = index_copy_of(targets, "targets", log_probs);
    const bool known = log_probs.device.type != TT_META && batch;
    if (rows) {
      max_length = last;
      offsets =
          op::mul(*op::arange(0, batch, 1, Dtype::kI64, Opt<Device>(targets.device)), Scalar(last));
      mask_rest(batch, last);
    } else {
      TensorRef ends = op::cumsum(*lengths, 0);
      offsets = op::sub(*ends, *lengths);
      if (ctx().graph || stands_for_samples(*lengths)) {
        use_all(last);
        check_indices(*labels, "targets", 0, log_probs.size(-1));
        return;
      }
      const int64_t total = known ? read_scalar(*op::sum(*lengths)).i : last;
      if (total > last)
        fail_arg(TT_SHAPE, "targets",
                 "targets has {} labels, target_lengths add up to {}: must have at least as many",
                 last, total);
      labels = op::slice(*labels, 0, 0, total);
      if (known) max_length = read_scalar(*op::max(*lengths)).i;
    }
    check_indices(*labels, "targets", 0, log_probs.size(-1));
  }

 private:
  // The lengths of a graph, or of samples, must not decide sizes: there is room for one target that
  // has all labels.
  void use_all(int64_t last) {
    max_length = last;
    const TensorRef total = op::sum(*lengths);
    require(*op::le(*total, Scalar(last)), TT_SHAPE, "targets",
            "targets has fewer labels than target_lengths add up to: must have at least as many");
    const TensorRef at = op::arange(0, last, 1, Dtype::kI64, Opt<Device>(labels->device));
    labels = op::masked_fill(*labels, *op::ge(*at, *total), Scalar(0));
  }
  // Labels behind the length of a row may have any value.
  void mask_rest(int64_t batch, int64_t row) {
    const int64_t column[2] = {batch, 1};
    TensorRef at = op::arange(0, row, 1, Dtype::kI64, Opt<Device>(labels->device));
    labels = op::masked_fill(*labels, *op::ge(*at, *op::reshape(*lengths, column)), Scalar(0));
  }
};

TensorRef ctc_loss(Call, const Tensor& log_probs, const Tensor& targets,
                   const Tensor& input_lengths, const Tensor& target_lengths, int64_t blank,
                   int64_t reduction, bool zero_infinity) {
  if (log_probs.dtype != Dtype::kF32 && log_probs.dtype != Dtype::kF64)
    fail_arg(TT_NOT_IMPLEMENTED, "log_probs", "log_probs is {}: must be float32 or float64",
             fmt(log_probs.dtype));
  if (log_probs.ndim != 2 && log_probs.ndim != 3)
    fail_arg(TT_SHAPE, "log_probs", "log_probs is {}: must be (T, N, C) or (T, C)",
             log_probs.sizes());
  if (blank < 0 || blank >= log_probs.size(-1))
    fail_arg(TT_INVALID_ARG, "blank", "blank is {}: must be in [0, {})", blank, log_probs.size(-1));
  TensorRef x = log_probs.ndim == 3 ? TensorRef::share(&log_probs) : op::unsqueeze(log_probs, 1);
  const int64_t batch = x->size(1);
  TensorRef times = lengths_of(input_lengths, "input_lengths", log_probs, batch, log_probs.size(0));
  const CtcTargets t(targets, target_lengths, log_probs, batch);
  TensorRef loss = op::native_ctc_loss(*x, *t.labels, *t.offsets, *times, *t.lengths, t.max_length,
                                       blank, zero_infinity)
                       .first;
  if (zero_infinity) loss = op::masked_fill(*loss, *op::isposinf(*loss), Scalar(0));
  if (reduction == kReductionSum) return op::sum(*loss);
  if (reduction == kReductionNone)
    return log_probs.ndim == 3 ? std::move(loss) : op::reshape(*loss, {});
  const Scalar one(1);
  return op::mean(*op::div(*loss, *op::to_dtype(*op::clamp(*t.lengths, &one), loss->dtype)));
}

}  // namespace TT_NS::impl
