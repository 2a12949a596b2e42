// Adafactor and Muon, which treat a parameter as a matrix, by operators.
#include "core/graph_hooks.h"
#include "ops/gen/ops.h"
#include "ops/undo.h"
#include "optim/rules.h"

#include <math.h>

namespace TT_NS {

namespace {

double scalar_of(const TensorRef& t) { return read_scalar(*t).real(); }

// Returns the square root of the mean of the squares, 0 without elements.
double root_mean_square(const Tensor& t) {
  if (!t.numel) return 0;
  return scalar_of(op::linalg_vector_norm(t)) / sqrt(double(t.numel));
}

void check_real(const Optimizer& o, const Tensor& param, int64_t i) {
  if (is_complex(param.dtype))
    fail_arg(TT_DTYPE, "params", "params[{}] is {}: {} takes no complex parameters", i,
             fmt(param.dtype), o.cls->name);
}

// ---- a step ----

struct NewState {
  int64_t param;
  int k;
  TensorRef tensor;
};

// States are exchanged after the last update, so that a step that fails leaves those of before.
void step_by_operators(Optimizer& o, const TensorList& grads) {
  note_uncaptured_step(o.cls->name);
  const MaskGuard own_dtypes(bit(kKeyAutocast));
  for (int64_t i = 0; i < o.params.size(); i++)
    if (grads[i]) remember_values(*o.params[i].param);
  SmallVec<NewState, 8> made;
  for (const ParamGroup& g : o.groups)
    for (int64_t i = g.begin; i < g.end; i++) {
      if (!grads[i]) continue;
      const ParamSlot& slot = o.params[i];
      TensorRef state[kOptimStates];
      for (int k = 0; k < kOptimStates; k++) state[k] = slot.state[k];
      o.cls->matrix->update(g.value, next_step(slot), *grads[i], *slot.param, state);
      for (int k = 0; k < kOptimStates; k++)
        if (state[k]) made.push_back({i, k, std::move(state[k])});
    }
  for (NewState& s : made) o.params[s.param].state[s.k] = std::move(s.tensor);
  for (int64_t i = 0; i < o.params.size() && o.cls->counts_steps; i++)
    if (grads[i]) o.params[i].step = next_step(o.params[i]);
}

// ---- Adafactor ----

enum AdafactorState { kRowVar, kColVar, kVariance };

double epsilon_of(Dtype d) {
  if (d == Dtype::kF16) return 0x1p-10;
  if (d == Dtype::kBF16) return 0x1p-7;
  return d == Dtype::kF32 ? 0x1p-23 : 0x1p-52;
}

// The means of a matrix's rows are a column, those of its columns a row.
Shape adafactor_sizes(const Tensor& param, int k) {
  Shape sizes(param.sizes());
  if (k == kRowVar && param.ndim > 1) sizes[param.ndim - 1] = 1;
  if (k == kColVar && param.ndim > 1) sizes[param.ndim - 2] = 1;
  return sizes;
}

// Returns the average, moved to `next` by `share`; a first one begins at 0.
TensorRef averaged(const TensorRef& average, const Tensor& next, double share) {
  if (!average) return op::mul(next, Scalar(share));
  return op::lerp(*average, next, Scalar(share));
}

// Returns the estimated mean of the squared gradient, and averages it in `state`.
TensorRef adafactor_variance(const Tensor& grad, double share, double eps, TensorRef* state) {
  const TensorRef square = op::square(grad);
  if (grad.ndim < 2) return state[kVariance] = averaged(state[kVariance], *square, share);
  const int64_t columns[] = {-1};
  const int64_t rows[] = {-2};
  state[kRowVar] = averaged(state[kRowVar], *op::mean_dim(*square, columns, true), share);
  state[kColVar] = averaged(state[kColVar], *op::mean_dim(*square, rows, true), share);
  const TensorRef mean = op::mean_dim(*state[kRowVar], rows, true);
  return op::div(*op::matmul(*state[kRowVar], *state[kColVar]), *op::clamp_min(*mean, Scalar(eps)));
}

void adafactor_update(const double* v, double step, const Tensor& grad, Tensor& param,
                      TensorRef* state) {
  constexpr auto& t = kAdafactorValues;
  const double lr = v[at(t, "lr")];
  const double given = v[at(t, "eps1")];
  const double eps = given == given ? given : epsilon_of(param.dtype);
  const double size = max(v[at(t, "eps2")], root_mean_square(param));
  const double rate = size * min(lr, 1 / sqrt(step));
  const TensorRef g = v[at(t, "maximize")] != 0 ? op::neg(grad) : TensorRef::share(&grad);
  const double share = pow(step, v[at(t, "beta2_decay")]);
  const TensorRef variance = adafactor_variance(*g, share, eps, state);
  const TensorRef scale = op::rsqrt(*op::clamp_min(*variance, Scalar(eps * eps)));
  const TensorRef update = op::mul(*scale, *g);
  const double excess = max(1.0, root_mean_square(*update) / v[at(t, "d")]);
  const double decay = v[at(t, "weight_decay")];
  if (decay != 0) op::mul_(param, Scalar(1 - lr * decay));
  op::add_(param, *update, Scalar(-rate / excess));
}

constinit const MatrixRule kAdafactorRule = {
    .check = check_real,
    .state_sizes = adafactor_sizes,
    .step = step_by_operators,
    .update = adafactor_update,
};
constinit const OptimClass kAdafactor = {
    .name = "Adafactor",
    .rule = {},
    .kernel = nullptr,
    .values = kAdafactorValues,
    .states = {"row_var", "col_var", "variance"},
    .counts_steps = true,
    .momentum = nullptr,
    .factors = nullptr,
    .matrix = &kAdafactorRule,
};

// ---- Muon ----

void check_matrix(const Optimizer& o, const Tensor& param, int64_t i) {
  check_real(o, param, i);
  if (param.ndim != 2)
    fail_arg(TT_INVALID_ARG, "params", "params[{}] is {}: Muon optimizes matrices only", i,
             param.sizes());
}

Shape muon_sizes(const Tensor& param, int) { return Shape(param.sizes()); }

// Returns an approximation of the nearest orthogonal matrix to x, in bfloat16, by ns_steps
// Newton-Schulz iterations.
TensorRef orthogonalized(const Tensor& x, const double* v) {
  constexpr auto& t = kMuonValues;
  const bool tall = x.sizes()[0] > x.sizes()[1];
  TensorRef y = op::to(x, Dtype::kBF16);
  if (tall) y = op::transpose(*y, 0, 1);
  y = op::div(*y, *op::clamp_min(*op::linalg_vector_norm(*y), Scalar(v[at(t, "eps")])));
  for (int i = 0; i < v[at(t, "ns_steps")]; i++) {
    const TensorRef gram = op::mm(*y, *op::transpose(*y, 0, 1));
    const TensorRef powers =
        op::addmm(*gram, *gram, *gram, Scalar(v[at(t, "ns_b")]), Scalar(v[at(t, "ns_c")]));
    y = op::addmm(*y, *powers, *y, Scalar(v[at(t, "ns_a")]));
  }
  return tall ? op::transpose(*y, 0, 1) : y;
}

double shape_factor(const Tensor& param, int64_t adjust_lr_fn) {
  const double rows = double(param.sizes()[0]);
  const double columns = double(param.sizes()[1]);
  if (adjust_lr_fn == kAdjustLrMatchRmsAdamw) return 0.2 * sqrt(max(rows, columns));
  if (adjust_lr_fn == kAdjustLrSpectralUnclamped) return sqrt(rows / columns);
  return sqrt(max(1.0, rows / columns));
}

void muon_update(const double* v, double, const Tensor& grad, Tensor& param, TensorRef* state) {
  constexpr auto& t = kMuonValues;
  const double lr = v[at(t, "lr")];
  const double momentum = v[at(t, "momentum")];
  if (!param.numel) return;
  state[0] = averaged(state[0], grad, 1 - momentum);
  const TensorRef direction =
      v[at(t, "nesterov")] != 0 ? op::lerp(grad, *state[0], Scalar(momentum)) : state[0];
  const TensorRef update = orthogonalized(*direction, v);
  op::mul_(param, Scalar(1 - lr * v[at(t, "weight_decay")]));
  const double size = lr * shape_factor(param, int64_t(v[at(t, "adjust_lr_fn")]));
  op::add_(param, *op::to(*update, param.dtype), Scalar(-size));
}

constinit const MatrixRule kMuonRule = {
    .check = check_matrix,
    .state_sizes = muon_sizes,
    .step = step_by_operators,
    .update = muon_update,
};
constinit const OptimClass kMuon = {
    .name = "Muon",
    .rule = {},
    .kernel = nullptr,
    .values = kMuonValues,
    .states = {"momentum_buffer"},
    .counts_steps = false,
    .momentum = "momentum",
    .factors = nullptr,
    .matrix = &kMuonRule,
};

}  // namespace

OptimizerRef construct(const AdafactorArgs& a) {
  at_least_0(a.lr, "lr");
  if (!(a.beta2_decay <= 0))
    fail_arg(TT_INVALID_ARG, "beta2_decay", "beta2_decay is {}: must be at most 0", a.beta2_decay);
  if (a.eps1.has) at_least_0(a.eps1.value, "eps1");
  at_least_0(a.eps2, "eps2");
  if (!(a.d >= 1)) fail_arg(TT_INVALID_ARG, "d", "d is {}: must be at least 1", a.d);
  at_least_0(a.weight_decay, "weight_decay");
  return make(kAdafactor, a);
}

OptimizerRef construct(const MuonArgs& a) {
  at_least_0(a.lr, "lr");
  at_least_0(a.momentum, "momentum");
  at_least_0(a.weight_decay, "weight_decay");
  if (a.ns_steps >= 100)
    fail_arg(TT_INVALID_ARG, "ns_steps", "ns_steps is {}: must be less than 100", a.ns_steps);
  return make(kMuon, a);
}

}  // namespace TT_NS
