// Batch and instance normalisation, and the checks of group normalisation, which are alike.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/image.h"
#include "ops/undo.h"
#include "plan/norm_build.h"

namespace TT_NS::impl {

static Dtype compute_dtype(const Tensor& t) {
  return t.dtype == Dtype::kF64 ? Dtype::kF64 : Dtype::kF32;
}

// ---- checks ----

static void check_floating(const Tensor& input) {
  if (!is_float(input.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "input", "input is {}: must be floating", fmt(input.dtype));
}
// Checks a vector of one value per channel: of input's dtype, or float32 for a 16-bit input.
static void check_channels(const Tensor* p, const char* arg, const Tensor& input,
                           int64_t channels) {
  if (!p) return;
  check_same_device(input, "input", *p, arg);
  if (p->ndim != 1 || p->numel != channels)
    fail_arg(TT_SHAPE, arg, "{} is {}: must be [{}], one value per channel", arg, p->sizes(),
             channels);
  const bool mixed = p->dtype == Dtype::kF32 && input.item_size() == 2;
  if (p->dtype != input.dtype && !mixed)
    fail_arg(TT_DTYPE, arg, "{} is {}, input is {}: must be equal, or float32 for a 16-bit input",
             arg, fmt(p->dtype), fmt(input.dtype));
}
static void check_affine(const Tensor* weight, const Tensor* bias, const Tensor& input,
                         int64_t channels) {
  check_channels(weight, "weight", input, channels);
  check_channels(bias, "bias", input, channels);
  if (weight && bias && weight->dtype != bias->dtype)
    fail_arg(TT_DTYPE, "bias", "bias is {}, weight is {}: must be equal", fmt(bias->dtype),
             fmt(weight->dtype));
}

// ---- batch_norm: the kernels ----

// Checks that parameters and statistics have the same dtype.
static void check_alike(const Tensor* a, const Tensor* running) {
  if (a && running && a->dtype != running->dtype)
    fail_arg(TT_DTYPE, "running_mean", "running_mean is {}, the parameters are {}: must be equal",
             fmt(running->dtype), fmt(a->dtype));
}

// input as [outer][channels][inner]; one channel is one plane.
struct Channels {
  bool last;
  int64_t outer, channels, inner;

  explicit Channels(const Tensor& x) : last(channels_last(x)), channels(x.size(1)) {
    inner = last ? 1 : numel_of(x.sizes().slice(2, x.ndim));
    if (channels == 1) inner = x.numel;
    outer = x.numel / (channels * inner);
  }
};

static TensorRef row_of(const Tensor& t, int64_t row) {
  const int64_t n[1] = {t.size(1)};
  const int64_t one[1] = {1};
  return new_alias(t, Ints(n, 1), Ints(one, 1), advance(t.data, row * n[0] * t.item_size()),
                   t.dtype);
}

// stats: mean, 1 / sqrt(variance + eps) and variance of each channel.
static TensorRef new_stats(const Tensor& x, int64_t channels) {
  const int64_t shape[2] = {3, channels};
  return new_tensor(shape, compute_dtype(x), x.device);
}
static TensorRef running_stats(const Tensor& x, int64_t channels, const Tensor& mean,
                               const Tensor& var, double eps) {
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef stats = new_stats(x, channels);
  TensorRef wide = cast_input(var, stats->dtype);
  TensorRef rstd = op::rsqrt(*op::add(*wide, Scalar(eps)));
  copy_elements(*row_of(*stats, 0), mean);
  copy_elements(*row_of(*stats, 1), *rstd);
  copy_elements(*row_of(*stats, 2), *wide);
  return stats;
}

static ChannelAffinePlan affine_plan(const Tensor& x, const Channels& n, const Tensor* weight,
                                     const Tensor* bias, const Tensor& stats) {
  ChannelAffinePlan plan;
  Dtype parameter = x.dtype;  // of weight and bias
  if (bias) parameter = bias->dtype;
  if (weight) parameter = weight->dtype;
  build_channel_affine(&plan, int32_t(x.dtype), int32_t(parameter), n.outer, n.channels, n.inner);
  plan.x = x.data;
  plan.weight = weight ? weight->data : nullptr;
  plan.bias = bias ? bias->data : nullptr;
  plan.mean = stats.data;
  plan.rstd = advance(stats.data, n.channels * stats.item_size());
  return plan;
}

static ChannelSumPlan sum_plan(const Tensor& x, const Channels& n, const Tensor& out, double eps) {
  ChannelSumPlan plan;
  build_channel_sums(&plan, int32_t(x.dtype), n.outer, n.channels, n.inner, eps);
  plan.x = x.data;
  plan.out = out.data;
  return plan;
}
static void launch_sums_and_affine(ChannelSumPlan* sums, ChannelAffinePlan* affine, Device device) {
  Workspace workspace(channel_workspace_bytes(sums), device);
  sums->workspace = workspace.data();
  if (affine && device.type == TT_CPU && is_by_channel(sums)) {
    ChannelNormPlan both;
    build_channel_norm(&both, *sums, *affine);
    return launch_stages(kernel_channel_norm, device, &both.run);
  }
  launch_stages(kernel_channel_sums, device, &sums->run);
  if (affine) launch_stages(kernel_channel_affine, device, &affine->run);
}

TensorPair native_batch_norm(Call, const Tensor& input, const Tensor* weight, const Tensor* bias,
                             const Tensor* running_mean, const Tensor* running_var, bool training,
                             double eps) {
  const Channels n(input);
  TensorRef x = image_input(input, n.last, input.dtype);
  TensorRef w = weight ? dense_input(*weight) : TensorRef();
  TensorRef b = bias ? dense_input(*bias) : TensorRef();
  TensorRef stats = training ? new_stats(*x, n.channels)
                             : running_stats(*x, n.channels, *running_mean, *running_var, eps);
  TensorRef y = new_image(input.sizes(), n.last, input.dtype, input.device);
  ChannelAffinePlan plan = affine_plan(*x, n, w.get(), b.get(), *stats);
  plan.y = y->data;
  if (training) {
    ChannelSumPlan sums = sum_plan(*x, n, *stats, eps);
    launch_sums_and_affine(&sums, &plan, input.device);
  } else {
    launch_stages(kernel_channel_affine, input.device, &plan.run);
  }
  return {std::move(y), std::move(stats)};
}

TensorTriple batch_norm_backward(Call, const Tensor& grad, const Tensor& input,
                                 const Tensor* weight, const Tensor& stats, bool training, double,
                                 bool want_input, bool want_weight, bool want_bias) {
  const Channels n(input);
  TensorRef x = image_input(input, n.last, input.dtype);
  TensorRef g = image_input(grad, n.last, input.dtype);
  TensorRef w = weight ? dense_input(*weight) : TensorRef();
  TensorRef sums, dx, dw, db;
  ChannelAffinePlan affine{};
  if (want_input) {
    dx = new_image(input.sizes(), n.last, input.dtype, input.device);
    affine = affine_plan(*x, n, w.get(), nullptr, stats);
    affine.g = g->data;
    affine.y = dx->data;
  }
  if (want_weight || want_bias || training) {
    const int64_t shape[2] = {2, n.channels};
    sums = new_tensor(shape, stats.dtype, input.device);
    ChannelSumPlan plan = sum_plan(*x, n, *sums, 0);
    plan.g = g->data;
    plan.mean = stats.data;
    plan.rstd = advance(stats.data, n.channels * stats.item_size());
    if (training) affine.sums = sums->data;
    launch_sums_and_affine(&plan, want_input ? &affine : nullptr, input.device);
    const Dtype parameter = weight ? weight->dtype : input.dtype;
    auto taken = [&](int64_t row) {
      TensorRef t = new_tensor(Ints(&n.channels, 1), parameter, input.device);
      copy_elements(*t, *row_of(*sums, row));
      return t;
    };
    if (want_weight) dw = taken(1);
    if (want_bias) db = taken(0);
  } else if (want_input) {
    launch_stages(kernel_channel_affine, input.device, &affine.run);
  }
  return {std::move(dx), std::move(dw), std::move(db)};
}

// ---- batch_norm ----

// running = (1 - momentum) running + momentum value
static TensorRef updated_average(const Tensor& running, const Tensor& value, double factor,
                                 double momentum) {
  TensorRef wide = cast_input(running, value.dtype);
  return op::add(*op::mul(*wide, Scalar(1 - momentum)), value, Scalar(momentum * factor));
}
// Both new values are computed before the first one is written.
static void update_running(Tensor& mean, Tensor& var, const Tensor& stats, int64_t per_channel,
                           double momentum) {
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef m = cast_input(*updated_average(mean, *row_of(stats, 0), 1, momentum), mean.dtype);
  TensorRef v =
      cast_input(*updated_average(var, *row_of(stats, 2),
                                  double(per_channel) / double(per_channel - 1), momentum),
                 var.dtype);
  remember_values(mean);
  remember_values(var);
  CommitGuard whole;
  op::copy_(mean, *m);
  op::copy_(var, *v);
}

// An input without elements: nothing is normalised, but weight and bias get (zero) gradients.
static TensorRef norm_of_empty(const Tensor& input, const Tensor* weight, const Tensor* bias) {
  TensorRef out = op::clone(input);
  auto column = [&](const Tensor& p) { return op::to(*op::sum(p), input.dtype); };
  if (weight) out = op::mul(*out, *column(*weight));
  return bias ? op::add(*out, *column(*bias)) : std::move(out);
}

static void check_running(Tensor* mean, Tensor* var, const Tensor& input, int64_t channels,
                          bool training) {
  if (!mean != !var)
    fail_arg(TT_INVALID_ARG, mean ? "running_var" : "running_mean",
             "only one of running_mean and running_var is given: must be both or neither");
  if (!mean && !training)
    fail_arg(TT_INVALID_ARG, "running_mean",
             "running_mean and running_var must be given outside training");
  check_channels(mean, "running_mean", input, channels);
  check_channels(var, "running_var", input, channels);
  if (mean && mean->dtype != var->dtype)
    fail_arg(TT_DTYPE, "running_var", "running_var is {}, running_mean is {}: must be equal",
             fmt(var->dtype), fmt(mean->dtype));
  if (!mean || !training) return;
  for (Tensor* t : {mean, var}) {
    const char* arg = t == mean ? "running_mean" : "running_var";
    check_writable(*t, arg);
    if ((t->flags & kRequiresGrad) || t->grad_fn)
      fail_arg(TT_AUTOGRAD, arg, "{} requires a gradient: statistics must not", arg);
  }
}

static TensorRef normalised(const Tensor& input, Tensor* running_mean, Tensor* running_var,
                            const Tensor* weight, const Tensor* bias, bool training,
                            double momentum, double eps) {
  if (input.numel == 0) return norm_of_empty(input, weight, bias);
  TensorPair r =
      op::native_batch_norm(input, weight, bias, running_mean, running_var, training, eps);
  if (training && running_mean)
    update_running(*running_mean, *running_var, *r.second, input.numel / input.size(1), momentum);
  return std::move(r.first);
}

TensorRef batch_norm(Call, const Tensor& input, Tensor* running_mean, Tensor* running_var,
                     const Tensor* weight, const Tensor* bias, bool training, double momentum,
                     double eps) {
  if (input.ndim == 1 && input.numel == 0) return op::clone(input);  // as in PyTorch
  if (input.ndim < 2)
    fail_arg(TT_SHAPE, "input", "input is {}: must be (N, C) or (N, C, …)", input.sizes());
  const int64_t channels = input.size(1);
  check_floating(input);
  if (training && channels && input.numel == channels)
    fail_arg(TT_SHAPE, "input", "input is {}: training needs more than one value per channel",
             input.sizes());
  const bool bad_eps = training ? !(eps > 0) : eps < 0;
  if (bad_eps)
    fail_arg(TT_INVALID_ARG, "eps", "eps is {}: must be {}", eps,
             training ? "positive in training" : "at least 0");
  check_running(running_mean, running_var, input, channels, training);
  check_affine(weight, bias, input, channels);
  check_alike(weight ? weight : bias, running_mean);
  return normalised(input, running_mean, running_var, weight, bias, training, momentum, eps);
}

// ---- composites ----

TensorRef group_norm(Call, const Tensor& input, int64_t num_groups, const Tensor* weight,
                     const Tensor* bias, double eps) {
  if (input.ndim < 2)
    fail_arg(TT_SHAPE, "input", "input is {}: must be (N, C) or (N, C, …)", input.sizes());
  const int64_t channels = input.size(1);
  if (num_groups <= 0)
    fail_arg(TT_INVALID_ARG, "num_groups", "num_groups is {}: must be positive", num_groups);
  if (channels % num_groups)
    fail_arg(TT_SHAPE, "num_groups", "num_groups is {}: must divide input's {} channels",
             num_groups, channels);
  check_floating(input);
  check_affine(weight, bias, input, channels);
  for (int64_t d = 1; d < input.ndim; d++)
    if (input.size(d) == 0)
      fail_arg(TT_SHAPE, "input", "input is {}: only its first size may be 0", input.sizes());
  if (input.numel == num_groups)
    fail_arg(TT_SHAPE, "input", "input is {}: more than one value per group is needed",
             input.sizes());
  return op::native_group_norm(input, num_groups, weight, bias, eps).first;
}

// The channels of all images become channels of a single image.
TensorRef instance_norm(Call, const Tensor& input, Tensor* running_mean, Tensor* running_var,
                        const Tensor* weight, const Tensor* bias, bool use_input_stats,
                        double momentum, double eps) {
  if (input.ndim < 2) fail_arg(TT_SHAPE, "input", "input is {}: must be (N, C, …)", input.sizes());
  const int64_t n = input.size(0);
  const int64_t channels = input.size(1);
  check_floating(input);
  if (use_input_stats && numel_of(input.sizes().slice(2, input.ndim)) == 1)
    fail_arg(TT_SHAPE, "input", "input is {}: its statistics need more than one value per channel",
             input.sizes());
  check_running(running_mean, running_var, input, channels, use_input_stats);
  check_affine(weight, bias, input, channels);
  check_alike(weight ? weight : bias, running_mean);
  Shape one(input.sizes());
  one[0] = 1;
  one[1] = n * channels;
  auto repeated = [&](const Tensor* t) { return t ? op::repeat(*t, Ints(&n, 1)) : TensorRef(); };
  TensorRef w = repeated(weight);
  TensorRef b = repeated(bias);
  TensorRef m = repeated(running_mean);
  TensorRef v = repeated(running_var);
  TensorRef y = normalised(*op::reshape(input, one), m.get(), v.get(), w.get(), b.get(),
                           use_input_stats, momentum, eps);
  y = op::reshape(*y, input.sizes());
  if (use_input_stats && running_mean && input.numel) {
    MaskGuard no_grad(bit(kKeyAutograd));
    const int64_t each[2] = {n, channels};
    const int64_t first[1] = {0};
    TensorRef new_m = op::mean_dim(*op::view(*m, each), first);
    TensorRef new_v = op::mean_dim(*op::view(*v, each), first);
    remember_values(*running_mean);
    remember_values(*running_var);
    op::copy_(*running_mean, *new_m);
    op::copy_(*running_var, *new_v);
  }
  return y;
}

}  // namespace TT_NS::impl
