// Adafactor and Muon, which treat a parameter as a matrix, by operators.
#include "core/graph_hooks.h"
#include "ops/elementwise.h"
#include "ops/gen/ops.h"
#include "ops/undo.h"
#include "optim/captured.h"
#include "optim/rules.h"

#include <math.h>

namespace TT_NS {

// The factors of a step over one parameter, on its device: in float64, and in the dtype that the
// parameter is computed in. Each run of a captured step sets them anew.
struct MatrixFactors {
  const Tensor &wide, &narrow;
  int64_t first;

  TensorRef operator[](int64_t k) const { return element(wide, k); }
  TensorRef in_own_dtype(int64_t k) const { return element(narrow, k); }

 private:
  TensorRef element(const Tensor& all, int64_t k) const {
    return new_alias(all, {}, {}, all.data + (first + k) * all.item_size(), all.dtype);
  }
};

namespace {

// Returns the square root of the mean of the squares in float64, 0 without elements.
TensorRef root_mean_square(const Tensor& t) {
  const TensorRef norm = op::to(*op::linalg_vector_norm(t), Dtype::kF64);
  return op::div(*norm, Scalar(sqrt(double(max<int64_t>(1, t.numel)))));
}

void check_real(const Optimizer& o, const Tensor& param, int64_t i) {
  if (is_complex(param.dtype))
    fail_arg(TT_DTYPE, "params", "params[{}] is {}: {} takes no complex parameters", i,
             fmt(param.dtype), o.cls->name);
}

// ---- a step ----

// A run of a captured step uses what these values of the groups are by then.
bool is_factor(const char* value) {
  return same_text(value, "lr") || same_text(value, "momentum") || same_text(value, "weight_decay");
}

// In the layout of the parameter if it has its shape.
TensorRef new_zeros(const Tensor& param, const Shape& sizes) {
  const bool alike = param.dense() && same(sizes, param.sizes());
  TensorRef t = alike ? new_strided(sizes, param.strides(), param.dtype, param.device)
                      : new_tensor(sizes, param.dtype, param.device);
  // No operator of a capture: its runs would do it again.
  const MaskGuard not_captured(bit(kKeyCapture));
  if (t->is_cpu()) memset(t->data, 0, size_t(t->numel * t->item_size()));
  else op::zero_(*t);
  return t;
}

bool set_factors(Object& object, char* data) {
  const auto& c = static_cast<const StepCounter&>(object);
  const Optimizer& o = *c.optimizer;
  if (c.skips(false)) return true;
  check_current(c);
  auto* out = reinterpret_cast<double*>(data);
  for (const CountedParam& p : c.params) {
    const ParamSlot& slot = o.params[p.param];
    o.cls->matrix->factors(o.groups[p.group].value, next_step(slot), *slot.param, out);
    out += kMatrixFactors;
  }
  return false;
}

bool count_steps(Object& object, char*) {
  const auto& c = static_cast<const StepCounter&>(object);
  if (c.skips(true)) return false;
  for (const CountedParam& p : c.params) {
    ParamSlot& slot = c.optimizer->params[p.param];
    if (c.optimizer->cls->counts_steps) slot.step = next_step(slot);
  }
  return false;
}

// The tensors may be any: a graph can be edited.
void check_tensors(const Optimizer& o, int64_t i, const Tensor& param, const Tensor& grad,
                   uint32_t states, const Tensor* const* state) {
  o.cls->matrix->check(o, param, i);
  bool fits = same(grad.sizes(), param.sizes()) && grad.dtype == param.dtype;
  for (int k = 0; k < kOptimStates; k++)
    if (states >> k & 1)
      fits &= same(state[k]->sizes(), o.cls->matrix->state_sizes(param, k)) &&
              state[k]->dtype == param.dtype;
  if (!fits)
    fail(TT_INVALID_ARG, "the gradient or a state of parameter {} does not fit: it is {} {}", i,
         fmt(param.dtype), param.sizes());
}

void remember(TensorSpan list) {
  const GraphHooks* hooks = ctx().graph;
  if (hooks && hooks->place) return;  // kernels are left out
  for (const Tensor* t : list) remember_values(const_cast<Tensor&>(*t));
}

void step_by_operators(TensorSpan params, TensorSpan grads, TensorSpan states, StepCounter& c) {
  const MaskGuard own_dtypes(bit(kKeyAutograd) | bit(kKeyAutocast));
  const Optimizer& o = *c.optimizer;
  remember(params);
  remember(states);
  const int64_t n = params.n * kMatrixFactors;
  const TensorRef factors = new_tensor(Ints(&n, 1), Dtype::kF64, kCpuDevice);
  const bool is_left_out = run_on_host(c, set_factors, *factors);
  TensorRef wide = factors;
  TensorRef narrow = factors;
  int64_t next = 0;
  for (int64_t i = 0; i < params.n && !is_left_out; i++) {
    const CountedParam& p = c.params[i];
    Tensor* state[kOptimStates] = {};
    for (int k = 0; k < kOptimStates; k++) {
      if (!(p.states >> k & 1)) continue;
      if (next == states.n) fail(TT_INVALID_ARG, "states are missing");
      state[k] = const_cast<Tensor*>(states.ptr[next++]);
    }
    if (i >= grads.n) fail(TT_INVALID_ARG, "gradients are missing");
    Tensor& param = const_cast<Tensor&>(*params.ptr[i]);
    check_tensors(o, p.param, param, *grads.ptr[i], p.states, state);
    if (!param.numel) continue;
    // A device of a captured step cannot take them from the host's memory as numbers.
    if (!(wide->device == param.device)) wide = op::to_device(*factors, param.device);
    if (!(narrow->device == param.device) || narrow->dtype != widen(param.dtype))
      narrow = op::to(*wide, widen(param.dtype));
    const MatrixFactors f = {*wide, *narrow, i * kMatrixFactors};
    o.cls->matrix->update(o.groups[p.group].value, f, *grads.ptr[i], param, state);
  }
  run_on_host(c, count_steps, *factors);
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

uint32_t adafactor_states(const Tensor& param) {
  return param.ndim < 2 ? 1u << kVariance : 1u << kRowVar | 1u << kColVar;
}

enum AdafactorFactor { kAfShare, kAfRate, kAfLeastSize, kAfKept };

void adafactor_factors(const double* v, double step, const Tensor&, double* out) {
  constexpr auto& t = kAdafactorValues;
  const double lr = v[at(t, "lr")];
  out[kAfShare] = pow(step, v[at(t, "beta2_decay")]);
  out[kAfRate] = min(lr, 1 / sqrt(step));
  out[kAfLeastSize] = v[at(t, "eps2")];
  out[kAfKept] = 1 - lr * v[at(t, "weight_decay")];
}

// Returns the estimated mean of the squared gradient, after it was averaged in `state`.
TensorRef adafactor_variance(const Tensor& grad, const Tensor& share, double eps,
                             Tensor* const* state) {
  const TensorRef square = op::square(grad);
  if (grad.ndim < 2) {
    op::lerp_(*state[kVariance], *square, share);
    return TensorRef::share(state[kVariance]);
  }
  const int64_t columns[] = {-1};
  const int64_t rows[] = {-2};
  op::lerp_(*state[kRowVar], *op::mean_dim(*square, columns, true), share);
  op::lerp_(*state[kColVar], *op::mean_dim(*square, rows, true), share);
  const TensorRef mean = op::mean_dim(*state[kRowVar], rows, true);
  return op::div(*op::matmul(*state[kRowVar], *state[kColVar]), *op::clamp_min(*mean, Scalar(eps)));
}

void adafactor_update(const double* v, const MatrixFactors& f, const Tensor& grad, Tensor& param,
                      Tensor* const* state) {
  constexpr auto& t = kAdafactorValues;
  const double given = v[at(t, "eps1")];
  const double eps = given == given ? given : epsilon_of(param.dtype);
  // A size that is nan is left out, as in PyTorch.
  const TensorRef size = op::fmax(*root_mean_square(param), *f[kAfLeastSize]);
  const TensorRef rate = op::mul(*size, *f[kAfRate]);
  const TensorRef g = v[at(t, "maximize")] != 0 ? op::neg(grad) : TensorRef::share(&grad);
  const TensorRef variance = adafactor_variance(*g, *f.in_own_dtype(kAfShare), eps, state);
  const TensorRef scale = op::rsqrt(*op::clamp_min(*variance, Scalar(eps * eps)));
  const TensorRef update = op::mul(*scale, *g);
  const TensorRef excess = op::div(*root_mean_square(*update), Scalar(v[at(t, "d")]));
  const TensorRef divisor = op::fmax(*excess, *op::full_like(*excess, Scalar(1.0)));
  op::mul_(param, *f.in_own_dtype(kAfKept));
  op::addcmul_(param, *update, *op::to(*op::div(*rate, *divisor), widen(param.dtype)), Scalar(-1));
}

constinit const MatrixRule kAdafactorRule = {
    .check = check_real,
    .state_sizes = adafactor_sizes,
    .states = adafactor_states,
    .new_state = [](const Tensor& t, int k) { return new_zeros(t, adafactor_sizes(t, k)); },
    .step = step_by_operators,
    .factors = adafactor_factors,
    .is_factor = is_factor,
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
uint32_t muon_states(const Tensor&) { return 1; }

// Groups' values may be set, and read from files.
void check_ns_steps(double n) {
  if (!(n < 100)) fail_arg(TT_INVALID_ARG, "ns_steps", "ns_steps is {}: must be less than 100", n);
}

// Returns an approximation of the nearest orthogonal matrix to x, in bfloat16, by ns_steps
// Newton-Schulz iterations.
TensorRef orthogonalized(const Tensor& x, const double* v) {
  constexpr auto& t = kMuonValues;
  const bool tall = x.sizes()[0] > x.sizes()[1];
  TensorRef y = op::to(x, Dtype::kBF16);
  if (tall) y = op::transpose(*y, 0, 1);
  y = op::div(*y, *op::clamp_min(*op::linalg_vector_norm(*y), Scalar(v[at(t, "eps")])));
  const double steps = v[at(t, "ns_steps")];
  check_ns_steps(steps);
  for (int i = 0; i < steps; i++) {
    const TensorRef gram = op::mm(*y, *op::transpose(*y, 0, 1));
    const TensorRef powers =
        op::addmm(*gram, *gram, *gram, Scalar(v[at(t, "ns_b")]), Scalar(v[at(t, "ns_c")]));
    y = op::addmm(*y, *powers, *y, Scalar(v[at(t, "ns_a")]));
  }
  return tall ? op::transpose(*y, 0, 1) : y;
}

double shape_factor(const Tensor& param, double adjust_lr_fn) {
  const double rows = double(param.sizes()[0]);
  const double columns = double(param.sizes()[1]);
  if (adjust_lr_fn == double(kAdjustLrMatchRmsAdamw)) return 0.2 * sqrt(max(rows, columns));
  if (adjust_lr_fn == double(kAdjustLrSpectralUnclamped)) return sqrt(rows / columns);
  return sqrt(max(1.0, rows / columns));
}

enum MuonFactor { kMuonShare, kMuonMomentum, kMuonSize, kMuonKept };

void muon_factors(const double* v, double, const Tensor& param, double* out) {
  constexpr auto& t = kMuonValues;
  const double lr = v[at(t, "lr")];
  out[kMuonMomentum] = v[at(t, "momentum")];
  out[kMuonShare] = 1 - out[kMuonMomentum];
  out[kMuonSize] = lr * shape_factor(param, v[at(t, "adjust_lr_fn")]);
  out[kMuonKept] = 1 - lr * v[at(t, "weight_decay")];
}

void muon_update(const double* v, const MatrixFactors& f, const Tensor& grad, Tensor& param,
                 Tensor* const* state) {
  constexpr auto& t = kMuonValues;
  const Dtype d = param.dtype;
  op::lerp_(*state[0], grad, *f.in_own_dtype(kMuonShare));
  const TensorRef direction = v[at(t, "nesterov")] != 0
                                  ? op::lerp(grad, *state[0], *f.in_own_dtype(kMuonMomentum))
                                  : TensorRef::share(state[0]);
  const TensorRef update = orthogonalized(*direction, v);
  op::mul_(param, *f.in_own_dtype(kMuonKept));
  op::addcmul_(param, *op::to(*update, d), *f.in_own_dtype(kMuonSize), Scalar(-1));
}

constinit const MatrixRule kMuonRule = {
    .check = check_matrix,
    .state_sizes = muon_sizes,
    .states = muon_states,
    .new_state = [](const Tensor& t, int k) { return new_zeros(t, muon_sizes(t, k)); },
    .step = step_by_operators,
    .factors = muon_factors,
    .is_factor = is_factor,
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

const OptimClass* find_matrix_class(Span<const char> name) {
  static constexpr const OptimClass* kAll[] = {&kAdafactor, &kMuon};
  return class_named(kAll, name);
}

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
  check_ns_steps(double(a.ns_steps));
  return make(kMuon, a);
}

}  // namespace TT_NS
