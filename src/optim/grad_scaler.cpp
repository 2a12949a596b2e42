#include "optim/grad_scaler.h"

#include "autograd/node.h"
#include "core/graph_hooks.h"
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"

#include <string.h>

#include <new>

namespace TT_NS {

void GradScaler::destroy(GradScaler* s) noexcept {
  s->tag = 0;
  s->~GradScaler();
  mem_free(s, sizeof *s);
}

static void check_factors(double growth_factor, double backoff_factor) {
  if (!(growth_factor > 1))
    fail_arg(TT_INVALID_ARG, "growth_factor", "growth_factor is {}: must be > 1", growth_factor);
  if (!(backoff_factor < 1))
    fail_arg(TT_INVALID_ARG, "backoff_factor", "backoff_factor is {}: must be < 1", backoff_factor);
}
Ref<GradScaler> new_grad_scaler(bool enabled, double scale, double growth_factor,
                                double backoff_factor, int64_t growth_interval) {
  check_factors(growth_factor, backoff_factor);
  return Ref<GradScaler>::adopt(new (mem_alloc(sizeof(GradScaler))) GradScaler{
      .tag = kTagGradScaler,
      .refs = 1,
      .enabled = enabled,
      .scale = float(scale),
      .growth_factor = growth_factor,
      .backoff_factor = backoff_factor,
      .growth_interval = growth_interval,
      .growth_tracker = 0,
      .checked = false,
      .found_inf = false,
      .seen = {},
  });
}

void set_scaler_state(GradScaler& s, const double state[5]) {
  check_factors(state[1], state[2]);
  for (const double steps : {state[3], state[4]})
    if (!(steps >= 0 && steps < 0x1p53))
      fail_arg(TT_INVALID_ARG, "state", "state has {} steps: must be 0 or more", steps);
  s.scale = float(state[0]);
  s.growth_factor = state[1];
  s.backoff_factor = state[2];
  s.growth_interval = int64_t(state[3]);
  s.growth_tracker = int64_t(state[4]);
}

TensorRef scale_loss(GradScaler& s, const Tensor& t) {
  if (!s.enabled) return TensorRef::share(&t);
  if (TT_UNLIKELY(is_captured())) {
    const TensorRef scale = op::full({}, 1.0, Dtype::kF32, kCpuDevice);
    op::scaler_scale(*scale, *new_scaled_step(s, nullptr));
    return op::mul(t, t.is_cpu() ? *scale : *op::to_device(*scale, t.device));
  }
  const TensorRef scale = op::full({}, double(s.scale), Dtype::kF32, t.device);
  return op::mul(t, *scale);
}

static SmallVec<const Tensor*, 8> parameters(const Optimizer& o) {
  SmallVec<const Tensor*, 8> list;
  for (const ParamSlot& slot : o.params) list.push_back(slot.param.get());
  return list;
}

static GradScaler::Seen& seen_of(GradScaler& s, Optimizer& o) {
  for (GradScaler::Seen& e : s.seen)
    if (e.optimizer.get() == &o) return e;
  s.seen.push_back({OptimizerRef::share(&o), GradScaler::kReady, false, false});
  return s.seen.back();
}

static float factor_of(const GradScaler& s) { return float(1.0 / double(s.scale)); }

// Returns whether a parameter has a gradient.
static bool check_gradients(TensorSpan params, bool allow_f16) {
  bool any = false;
  for (const Tensor* p : params) {
    const TensorRef g = grad_of(*p);
    if (!g) continue;
    any = true;
    if (g->dtype == Dtype::kF16 && !allow_f16)
      fail_arg(
          TT_INVALID_ARG, "params",
          "a gradient is float16: parameters and gradients must be wider, and autocast narrow");
  }
  return any;
}

static void check_not_stepped(const GradScaler::Seen& e) {
  if (e.stage == GradScaler::kStepped)
    fail_arg(TT_INVALID_ARG, "opt", "it has taken its step since the last update");
}
static void check_not_unscaled(const GradScaler::Seen& e) {
  check_not_stepped(e);
  if (e.stage == GradScaler::kUnscaled)
    fail_arg(TT_INVALID_ARG, "opt", "its gradients have been unscaled since the last update");
}
static void set_unscaled(GradScaler& s, Optimizer& o, bool any, bool found) {
  seen_of(s, o) = {OptimizerRef::share(&o), GradScaler::kUnscaled, any, found};
}

// Whether a graph is captured that has room for steps over these tensors.
static bool is_recorded(TensorSpan params) {
  if (TT_LIKELY(!is_captured())) return false;
  bool on_cpu = true;
  for (const Tensor* p : params) on_cpu &= p->is_cpu();
  const WorkObserver* const work = ctx().work;
  const bool computes = !(work && work->call);
  if (!on_cpu) note_uncaptured_step("GradScaler on a device");
  else if (!computes) note_uncaptured_step("GradScaler in a deferred capture");
  return on_cpu && computes;
}

void unscale(GradScaler& s, Optimizer& o) {
  if (!s.enabled) return;
  check_not_unscaled(seen_of(s, o));
  const auto list = parameters(o);
  const bool any = check_gradients(list, false);
  Ref<ScaledStep> recorded;
  if (is_recorded(list)) recorded = new_scaled_step(s, &o);
  const bool found = any && unscale_grads(list, factor_of(s), recorded.get());
  set_unscaled(s, o, any, found);
}

bool unscale_list(GradScaler& s, TensorSpan params) {
  if (!s.enabled || !check_gradients(params, true)) return false;
  Ref<ScaledStep> recorded;
  if (is_recorded(params)) recorded = new_scaled_step(s, nullptr);
  const bool found = unscale_grads(params, factor_of(s), recorded.get());
  s.checked = true;
  s.found_inf |= found;
  return found;
}

bool scaled_step(GradScaler& s, Optimizer& o) {
  if (!s.enabled) {
    optimizer_step(o);
    return true;
  }
  check_not_stepped(seen_of(s, o));
  if (seen_of(s, o).stage == GradScaler::kReady) unscale(s, o);
  const GradScaler::Seen e = seen_of(s, o);
  if (!e.has_gradients)
    fail_arg(TT_INVALID_ARG, "opt", "no parameter of the optimizer has a gradient");
  const bool steps = !e.found_inf;
  if (is_recorded(parameters(o))) optimizer_step(o, new_scaled_step(s, &o).get());
  else if (steps) optimizer_step(o);
  for (GradScaler::Seen& known : s.seen)  // hooks of the step may have added others
    if (known.optimizer.get() == &o) known.stage = GradScaler::kStepped;
  return steps;
}

static void follow_steps(GradScaler& s, bool found_inf) {
  if (found_inf) {
    s.scale = float(double(s.scale) * s.backoff_factor);
    s.growth_tracker = 0;
    return;
  }
  if (++s.growth_tracker != s.growth_interval) return;
  const float grown = float(double(s.scale) * s.growth_factor);
  if (grown - grown == 0) s.scale = grown;
  s.growth_tracker = 0;
}

static void set_scale(GradScaler& s, double new_scale) {
  if (new_scale != 0) {
    s.scale = float(new_scale);
  } else {
    bool checked = s.checked;
    bool found = s.found_inf;
    for (const GradScaler::Seen& e : s.seen) {
      checked |= e.has_gradients;
      found |= e.found_inf;
    }
    if (!checked) fail(TT_INVALID_ARG, "no gradients have been unscaled since the last update");
    follow_steps(s, found);
  }
  const auto gone = std::move(s.seen);  // destructors may call the application
  s.seen = {};
  s.checked = s.found_inf = false;
}

void update_scale(GradScaler& s, double new_scale) {
  if (!s.enabled) return;
  if (TT_LIKELY(!is_captured())) return set_scale(s, new_scale);
  op::scaler_update(*new_scaled_step(s, nullptr), new_scale);
}

// ---- as operators ----

static ScaledStep& scaled(Object& o) { return static_cast<ScaledStep&>(o); }

static void destroy_scaled(Object* object) noexcept {
  ScaledStep* const own = &scaled(*object);
  own->~ScaledStep();
  mem_free(own, sizeof *own);
}

static bool begin_unscale(Object& object, char* data) {
  ScaledStep& own = scaled(object);
  if (own.optimizer) check_not_unscaled(seen_of(*own.scaler, *own.optimizer));
  const UnscaleNumbers numbers = {0, factor_of(*own.scaler)};
  memcpy(data, &numbers, sizeof numbers);
  return false;
}
static bool end_unscale(Object& object, char* data) {
  ScaledStep& own = scaled(object);
  UnscaleNumbers numbers;
  memcpy(&numbers, data, sizeof numbers);
  own.found_inf = numbers.found_inf != 0;
  if (own.optimizer) {
    set_unscaled(*own.scaler, *own.optimizer, true, own.found_inf);
  } else {
    own.scaler->checked = true;
    own.scaler->found_inf |= own.found_inf;
  }
  return false;
}

static bool is_closed(StepGate& gate, bool at_end) {
  ScaledStep& own = scaled(gate);
  GradScaler::Seen& e = seen_of(*own.scaler, *own.optimizer);
  if (!at_end) check_not_stepped(e);
  else e.stage = GradScaler::kStepped;
  return e.found_inf;
}

Ref<ScaledStep> new_scaled_step(GradScaler& s, Optimizer* o) {
  auto* own = new (mem_alloc(sizeof(ScaledStep))) ScaledStep{};
  own->refs = 1;
  own->destroy_fn = destroy_scaled;
  own->is_closed = is_closed;
  own->scaler = Ref<GradScaler>::share(&s);
  if (o) own->optimizer = OptimizerRef::share(o);
  own->begin_unscale = begin_unscale;
  own->end_unscale = end_unscale;
  return Ref<ScaledStep>::adopt(own);
}

bool is_scaled_step(const Object& o) { return o.destroy_fn == destroy_scaled; }
bool is_same_scaled_step(const Object& a, const Object& b) {
  const auto& x = static_cast<const ScaledStep&>(a);
  const auto& y = static_cast<const ScaledStep&>(b);
  return x.scaler.get() == y.scaler.get() && x.optimizer.get() == y.optimizer.get();
}

static bool write_scale(Object& object, char* data) {
  memcpy(data, &scaled(object).scaler->scale, sizeof(float));
  return false;
}
void impl::scaler_scale(Call, Tensor& out, Object& scaler) {
  if (!out.is_cpu() || out.numel != 1 || out.dtype != Dtype::kF32)
    fail_arg(TT_INVALID_ARG, "out", "out is {} {}: must be one float32", fmt(out.dtype),
             out.sizes());
  run_on_host(scaler, write_scale, out);
  out.bump_version();
}

static bool follow(Object& object, char* data) {
  double new_scale;
  memcpy(&new_scale, data, sizeof new_scale);
  set_scale(*scaled(object).scaler, new_scale);
  return false;
}
void impl::scaler_update(Call, Object& scaler, double new_scale) {
  const int64_t bytes = sizeof new_scale;
  const TensorRef stored = new_tensor(Ints(&bytes, 1), Dtype::kU8, kCpuDevice);
  memcpy(stored->data, &new_scale, sizeof new_scale);
  note_host_write(*stored);
  run_on_host(scaler, follow, *stored);
}

}  // namespace TT_NS
