// The kinds of optimizer whose kernel is optim_step: checks of their arguments, and the factors of
// a step in PyTorch's order of operations, in double precision.
#include "ops/gen/kernels.h"
#include "optim/captured.h"
#include "optim/rules.h"

#include <math.h>

namespace TT_NS {

static uint32_t sgd_factors(const double* v, double, const double*, OptimItem* item) {
  constexpr auto& t = kSGDValues;
  const double momentum = v[at(t, "momentum")];
  item->factors.sgd.lr = v[at(t, "lr")];
  item->factors.sgd.momentum = momentum;
  item->factors.sgd.gradient_share = 1 - v[at(t, "dampening")];
  item->factors.sgd.weight_decay = v[at(t, "weight_decay")];
  item->flags = ascends(v[at(t, "maximize")]) | (v[at(t, "nesterov")] != 0 ? kOptimNesterov : 0u);
  return momentum != 0;
}

static uint32_t adam_factors(const double* v, double step, const double*, OptimItem* item) {
  constexpr auto& t = kAdamValues;
  const double lr = v[at(t, "lr")];
  const double beta1 = v[at(t, "beta1")];
  const double beta2 = v[at(t, "beta2")];
  const double decay = v[at(t, "weight_decay")];
  const bool decoupled = v[at(t, "decoupled_weight_decay")] != 0;
  item->factors.adam.step_size = lr / (1 - pow(beta1, step));
  item->factors.adam.m_share = 1 - beta1;
  item->factors.adam.beta2 = beta2;
  item->factors.adam.v_share = 1 - beta2;
  item->factors.adam.root_scale = pow(1 - pow(beta2, step), -0.5);
  item->factors.adam.eps = v[at(t, "eps")];
  item->factors.adam.weight_decay = decoupled ? 0 : decay;
  item->factors.adam.shrink = decoupled ? 1 - lr * decay : 1;
  item->flags = ascends(v[at(t, "maximize")]);
  return v[at(t, "amsgrad")] != 0 ? 7 : 3;
}

static uint32_t rmsprop_factors(const double* v, double, const double*, OptimItem* item) {
  constexpr auto& t = kRMSpropValues;
  const double alpha = v[at(t, "alpha")];
  const double momentum = v[at(t, "momentum")];
  item->factors.rmsprop.lr = v[at(t, "lr")];
  item->factors.rmsprop.alpha = alpha;
  item->factors.rmsprop.square_share = 1 - alpha;
  item->factors.rmsprop.eps = v[at(t, "eps")];
  item->factors.rmsprop.weight_decay = v[at(t, "weight_decay")];
  item->factors.rmsprop.momentum = momentum;
  item->flags = ascends(v[at(t, "maximize")]);
  const bool centered = v[at(t, "centered")] != 0;
  return 1u | uint32_t(centered) << 1 | uint32_t(momentum > 0) << 2;
}

static uint32_t adagrad_factors(const double* v, double step, const double*, OptimItem* item) {
  constexpr auto& t = kAdagradValues;
  item->factors.adagrad.lr = v[at(t, "lr")] / (1 + (step - 1) * v[at(t, "lr_decay")]);
  item->factors.adagrad.eps = v[at(t, "eps")];
  item->factors.adagrad.weight_decay = v[at(t, "weight_decay")];
  item->flags = ascends(v[at(t, "maximize")]);
  return 1;
}

// AdamW has Adam's values except the last, which is constant.
static_assert(at(kAdamWValues, "decoupled_weight_decay") ==
              at(kAdamValues, "decoupled_weight_decay"));
static_assert(at(kAdamWValues, "amsgrad") == at(kAdamValues, "amsgrad") &&
              at(kAdamWValues, "maximize") == at(kAdamValues, "maximize"));
static_assert(at(kAdamWValues, "eps") == at(kAdamValues, "eps") &&
              at(kAdamWValues, "weight_decay") == at(kAdamValues, "weight_decay"));

#if TT_MINIMAL
namespace baseline {
int32_t optim_sgd(const void* plan, int64_t begin, int64_t end) noexcept;
int32_t optim_adam(const void* plan, int64_t begin, int64_t end) noexcept;
int32_t optim_rmsprop(const void* plan, int64_t begin, int64_t end) noexcept;
int32_t optim_adagrad(const void* plan, int64_t begin, int64_t end) noexcept;
}  // namespace baseline
#define TT_RULE_KERNEL(rule)                                   \
  static constinit const Kernel kernel_##rule = {              \
      .cpu = {baseline::rule, baseline::rule, baseline::rule}, \
      .id = kNoDevice,                                         \
      .plan_bytes = sizeof(OptimPlan),                         \
      .name = "optim_step"};
TT_RULE_KERNEL(optim_sgd)
TT_RULE_KERNEL(optim_adam)
TT_RULE_KERNEL(optim_rmsprop)
TT_RULE_KERNEL(optim_adagrad)
#else
#define kernel_optim_sgd kernel_optim_step
#define kernel_optim_adam kernel_optim_step
#define kernel_optim_rmsprop kernel_optim_step
#define kernel_optim_adagrad kernel_optim_step
#endif

static constinit const OptimClass kSgd = {
    .name = "SGD",
    .rule = kOptimSgd,
    .kernel = &kernel_optim_sgd,
    .values = kSGDValues,
    .states = {"momentum_buffer"},
    .counts_steps = false,
    .momentum = "momentum",
    .factors = sgd_factors,
};
static constinit const OptimClass kAdam = {
    .name = "Adam",
    .rule = kOptimAdam,
    .kernel = &kernel_optim_adam,
    .values = kAdamValues,
    .states = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
    .counts_steps = true,
    .momentum = "beta1",
    .factors = adam_factors,
};
static constinit const OptimClass kAdamW = {
    .name = "AdamW",
    .rule = kOptimAdam,
    .kernel = &kernel_optim_adam,
    .values = kAdamWValues,
    .states = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
    .counts_steps = true,
    .momentum = "beta1",
    .factors = adam_factors,
};
static constinit const OptimClass kRmsprop = {
    .name = "RMSprop",
    .rule = kOptimRmsprop,
    .kernel = &kernel_optim_rmsprop,
    .values = kRMSpropValues,
    .states = {"square_avg", "grad_avg", "momentum_buffer"},
    .counts_steps = true,
    .momentum = "momentum",
    .factors = rmsprop_factors,
};
static constinit const OptimClass kAdagrad = {
    .name = "Adagrad",
    .rule = kOptimAdagrad,
    .kernel = &kernel_optim_adagrad,
    .values = kAdagradValues,
    .states = {"sum"},
    .counts_steps = true,
    .momentum = nullptr,
    .factors = adagrad_factors,
};

const OptimClass* find_common_class(Span<const char> name) {
  static constexpr const OptimClass* kAll[] = {&kSgd, &kAdam, &kAdamW, &kRmsprop, &kAdagrad};
  return class_named(kAll, name);
}

OptimizerRef construct(const SGDArgs& a) {
  at_least_0(a.lr, "lr");
  at_least_0(a.momentum, "momentum");
  at_least_0(a.weight_decay, "weight_decay");
  if (a.nesterov && (a.momentum <= 0 || a.dampening != 0))
    fail_arg(TT_INVALID_ARG, "nesterov",
             "nesterov is given with momentum {} and dampening {}: needs a positive momentum and "
             "no dampening",
             a.momentum, a.dampening);
  return make(kSgd, a);
}

OptimizerRef construct(const AdamArgs& a) { return make_adam(kAdam, a); }
OptimizerRef construct(const AdamWArgs& a) { return make_adam(kAdamW, a); }

OptimizerRef construct(const RMSpropArgs& a) {
  at_least_0(a.lr, "lr");
  at_least_0(a.eps, "eps");
  at_least_0(a.momentum, "momentum");
  at_least_0(a.weight_decay, "weight_decay");
  at_least_0(a.alpha, "alpha");
  return make(kRmsprop, a);
}

OptimizerRef construct(const AdagradArgs& a) {
  at_least_0(a.lr, "lr");
  at_least_0(a.lr_decay, "lr_decay");
  at_least_0(a.weight_decay, "weight_decay");
  at_least_0(a.initial_accumulator_value, "initial_accumulator_value");
  at_least_0(a.eps, "eps");
  for (const Tensor* p : a.params)
    check_fits(Scalar(a.initial_accumulator_value), p->dtype, "initial_accumulator_value");
  return make(kAdagrad, a, a.initial_accumulator_value);
}

}  // namespace TT_NS
