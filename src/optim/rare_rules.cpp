// The optimizers whose kernel is optim_rare_step; those of optim_step are in rules.cpp.
#include "ops/gen/kernels.h"
#include "optim/captured.h"
#include "optim/rules.h"

#include <math.h>

namespace TT_NS {

static uint32_t adadelta_factors(const double* v, double, const double*, OptimItem* item) {
  constexpr auto& t = kAdadeltaValues;
  item->factors.adadelta.lr = v[at(t, "lr")];
  item->factors.adadelta.rho = v[at(t, "rho")];
  item->factors.adadelta.square_share = 1 - v[at(t, "rho")];
  item->factors.adadelta.eps = v[at(t, "eps")];
  item->factors.adadelta.weight_decay = v[at(t, "weight_decay")];
  item->flags = ascends(v[at(t, "maximize")]);
  return 3;
}

static uint32_t adamax_factors(const double* v, double step, const double*, OptimItem* item) {
  constexpr auto& t = kAdamaxValues;
  const double beta1 = v[at(t, "beta1")];
  item->factors.adamax.step_size = v[at(t, "lr")] / (1 - pow(beta1, step));
  item->factors.adamax.m_share = 1 - beta1;
  item->factors.adamax.beta2 = v[at(t, "beta2")];
  item->factors.adamax.eps = v[at(t, "eps")];
  item->factors.adamax.weight_decay = v[at(t, "weight_decay")];
  item->flags = ascends(v[at(t, "maximize")]);
  return 3;
}

// NAdam's momentum in a step, and the product of those of all steps up to it. PyTorch keeps the
// product in float32.
static double nadam_mu(const double* v, double step) {
  constexpr auto& t = kNAdamValues;
  return v[at(t, "beta1")] * (1 - 0.5 * pow(0.96, step * v[at(t, "momentum_decay")]));
}
static double nadam_product(const double* v, double step, double before) {
  const float old = before == before ? float(before) : 1.0f;
  return double(old * float(nadam_mu(v, step)));
}
static uint32_t nadam_factors(const double* v, double step, const double* number, OptimItem* item) {
  constexpr auto& t = kNAdamValues;
  const double lr = v[at(t, "lr")];
  const double decay = v[at(t, "weight_decay")];
  const bool decoupled = v[at(t, "decoupled_weight_decay")] != 0;
  const double mu_next = nadam_mu(v, step + 1);
  const double product = nadam_product(v, step, number[0]);
  item->factors.nadam.g_size = lr * (1 - nadam_mu(v, step)) / (1 - product);
  item->factors.nadam.m_size = lr * mu_next / (1 - product * mu_next);
  item->factors.nadam.m_share = 1 - v[at(t, "beta1")];
  item->factors.nadam.beta2 = v[at(t, "beta2")];
  item->factors.nadam.root_scale = pow(1 - pow(v[at(t, "beta2")], step), -0.5);
  item->factors.nadam.eps = v[at(t, "eps")];
  item->factors.nadam.weight_decay = decoupled ? 0 : decay;
  item->factors.nadam.shrink = decoupled ? 1 - lr * decay : 1;
  item->flags = ascends(v[at(t, "maximize")]);
  return 3;
}
static void nadam_advance(const double* v, double step, double* number) noexcept {
  number[0] = nadam_product(v, step, number[0]);
}

static uint32_t radam_factors(const double* v, double step, const double*, OptimItem* item) {
  constexpr auto& t = kRAdamValues;
  const double lr = v[at(t, "lr")];
  const double beta1 = v[at(t, "beta1")];
  const double beta2 = v[at(t, "beta2")];
  const double decay = v[at(t, "weight_decay")];
  const bool decoupled = v[at(t, "decoupled_weight_decay")] != 0;
  // the length of the approximated moving average, at last and in this step
  const double full = 2 / (1 - beta2) - 1;
  const double correction = 1 - pow(beta2, step);
  const double length = full - 2 * step * pow(beta2, step) / correction;
  const bool rectified = length > 5;
  const double rect =
      rectified ? sqrt((length - 4) * (length - 2) * full / ((full - 4) * (full - 2) * length)) : 1;
  item->factors.radam.step_size =
      lr / (1 - pow(beta1, step)) * (rectified ? sqrt(correction) * rect : 1);
  item->factors.radam.m_share = 1 - beta1;
  item->factors.radam.beta2 = beta2;
  item->factors.radam.eps = v[at(t, "eps")];
  item->factors.radam.weight_decay = decoupled ? 0 : decay;
  item->factors.radam.shrink = decoupled ? 1 - lr * decay : 1;
  item->flags = ascends(v[at(t, "maximize")]) | (rectified ? kOptimRectified : 0u);
  return 3;
}

// PyTorch keeps eta and mu, which the step before has computed, in float32.
static uint32_t asgd_factors(const double* v, double, const double* number, OptimItem* item) {
  constexpr auto& t = kASGDValues;
  const double eta = number[0] == number[0] ? number[0] : double(float(v[at(t, "lr")]));
  item->factors.asgd.eta = eta;
  item->factors.asgd.mu = number[1] == number[1] ? number[1] : 1;
  item->factors.asgd.shrink = 1 - v[at(t, "lambd")] * eta;
  item->factors.asgd.weight_decay = v[at(t, "weight_decay")];
  item->flags = ascends(v[at(t, "maximize")]);
  return 1;
}
static void asgd_advance(const double* v, double step, double* number) noexcept {
  constexpr auto& t = kASGDValues;
  const double lr = v[at(t, "lr")];
  const double past = step - v[at(t, "t0")];
  number[0] = double(float(lr / pow(1 + v[at(t, "lambd")] * lr * step, v[at(t, "alpha")])));
  number[1] = double(float(1 / (past > 1 ? past : 1)));
}

static uint32_t rprop_factors(const double* v, double, const double*, OptimItem* item) {
  constexpr auto& t = kRpropValues;
  item->factors.rprop.first = v[at(t, "lr")];
  item->factors.rprop.minus = v[at(t, "etaminus")];
  item->factors.rprop.plus = v[at(t, "etaplus")];
  item->factors.rprop.min_step = v[at(t, "step_size_min")];
  item->factors.rprop.max_step = v[at(t, "step_size_max")];
  item->flags = ascends(v[at(t, "maximize")]);
  return 3;
}

static uint32_t lion_factors(const double* v, double, const double*, OptimItem* item) {
  constexpr auto& t = kLionValues;
  item->factors.lion.lr = v[at(t, "lr")];
  item->factors.lion.near_share = 1 - v[at(t, "beta1")];
  item->factors.lion.far_share = 1 - v[at(t, "beta2")];
  item->factors.lion.shrink = 1 - v[at(t, "lr")] * v[at(t, "weight_decay")];
  item->flags = ascends(v[at(t, "maximize")]);
  return 1;
}

static constinit const OptimClass kAdadelta = {
    .name = "Adadelta",
    .rule = kOptimAdadelta,
    .kernel = &kernel_optim_rare_step,
    .values = kAdadeltaValues,
    .states = {"square_avg", "acc_delta"},
    .counts_steps = true,
    .momentum = nullptr,
    .factors = adadelta_factors,
};
static constinit const OptimClass kAdamax = {
    .name = "Adamax",
    .rule = kOptimAdamax,
    .kernel = &kernel_optim_rare_step,
    .values = kAdamaxValues,
    .states = {"exp_avg", "exp_inf"},
    .counts_steps = true,
    .momentum = "beta1",
    .factors = adamax_factors,
};
static constinit const OptimClass kNadam = {
    .name = "NAdam",
    .rule = kOptimNadam,
    .kernel = &kernel_optim_rare_step,
    .values = kNAdamValues,
    .states = {"exp_avg", "exp_avg_sq"},
    .counts_steps = true,
    .momentum = "beta1",
    .factors = nadam_factors,
    .numbers = {"mu_product"},
    .advance = nadam_advance,
};
static constinit const OptimClass kRadam = {
    .name = "RAdam",
    .rule = kOptimRadam,
    .kernel = &kernel_optim_rare_step,
    .values = kRAdamValues,
    .states = {"exp_avg", "exp_avg_sq"},
    .counts_steps = true,
    .momentum = "beta1",
    .factors = radam_factors,
};
static constinit const OptimClass kAsgd = {
    .name = "ASGD",
    .rule = kOptimAsgd,
    .kernel = &kernel_optim_rare_step,
    .values = kASGDValues,
    .states = {"ax"},
    .counts_steps = true,
    .momentum = nullptr,
    .factors = asgd_factors,
    .numbers = {"eta", "mu"},
    .advance = asgd_advance,
};
static constinit const OptimClass kRprop = {
    .name = "Rprop",
    .rule = kOptimRprop,
    .kernel = &kernel_optim_rare_step,
    .values = kRpropValues,
    .states = {"prev", "step_size"},
    .counts_steps = true,
    .momentum = nullptr,
    .factors = rprop_factors,
};
static constinit const OptimClass kLion = {
    .name = "Lion",
    .rule = kOptimLion,
    .kernel = &kernel_optim_rare_step,
    .values = kLionValues,
    .states = {"exp_avg"},
    .counts_steps = false,
    .momentum = "beta1",
    .factors = lion_factors,
};

const OptimClass* find_rare_class(Span<const char> name) {
  static constexpr const OptimClass* kAll[] = {&kAdadelta, &kAdamax, &kNadam, &kRadam,
                                               &kAsgd,     &kRprop,  &kLion};
  return class_named(kAll, name);
}

OptimizerRef construct(const AdadeltaArgs& a) {
  at_least_0(a.lr, "lr");
  if (!(a.rho >= 0 && a.rho <= 1))
    fail_arg(TT_INVALID_ARG, "rho", "rho is {}: must be in [0, 1]", a.rho);
  at_least_0(a.eps, "eps");
  at_least_0(a.weight_decay, "weight_decay");
  return make(kAdadelta, a);
}

OptimizerRef construct(const AdamaxArgs& a) { return make_adam(kAdamax, a); }
OptimizerRef construct(const NAdamArgs& a) {
  at_least_0(a.momentum_decay, "momentum_decay");
  return make_adam(kNadam, a);
}
OptimizerRef construct(const RAdamArgs& a) { return make_adam(kRadam, a); }

OptimizerRef construct(const ASGDArgs& a) {
  at_least_0(a.lr, "lr");
  at_least_0(a.lambd, "lambd");
  at_least_0(a.alpha, "alpha");
  at_least_0(a.weight_decay, "weight_decay");
  return make(kAsgd, a);
}

OptimizerRef construct(const RpropArgs& a) {
  at_least_0(a.lr, "lr");
  if (!(a.etas.first > 0 && a.etas.first < 1 && a.etas.second > 1))
    fail_arg(TT_INVALID_ARG, "etas",
             "etas are {} and {}: the first must be in (0, 1), the second greater than 1",
             a.etas.first, a.etas.second);
  return make(kRprop, a);
}

OptimizerRef construct(const LionArgs& a) {
  at_least_0(a.lr, "lr");
  check_beta(a.betas.first, 0);
  check_beta(a.betas.second, 1);
  at_least_0(a.weight_decay, "weight_decay");
  return make(kLion, a);
}

}  // namespace TT_NS
