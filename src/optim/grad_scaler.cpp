#include "optim/grad_scaler.h"

#include "autograd/node.h"
#include "ops/gen/ops.h"

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
  return Ref<GradScaler>::adopt(new (mem_alloc(sizeof(GradScaler))) GradScaler{kTagGradScaler,
                                                                               1,
                                                                               enabled,
                                                                               float(scale),
                                                                               growth_factor,
                                                                               backoff_factor,
                                                                               growth_interval,
                                                                               0,
                                                                               false,
                                                                               false,
                                                                               {}});
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

TensorRef scale_loss(const GradScaler& s, const Tensor& t) {
  if (!s.enabled) return TensorRef::share(&t);
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

void unscale(GradScaler& s, Optimizer& o) {
  if (!s.enabled) return;
  GradScaler::Seen& e = seen_of(s, o);
  if (e.stage != GradScaler::kReady)
    fail_arg(TT_INVALID_ARG, "opt",
             e.stage == GradScaler::kUnscaled
                 ? "its gradients have been unscaled since the last update"
                 : "it has taken its step since the last update");
  const auto list = parameters(o);
  const bool any = check_gradients(list, false);
  const bool found = any && unscale_grads(list, factor_of(s));
  e = {OptimizerRef::share(&o), GradScaler::kUnscaled, any, found};
}

bool unscale_list(GradScaler& s, TensorSpan params) {
  if (!s.enabled || !check_gradients(params, true)) return false;
  const bool found = unscale_grads(params, factor_of(s));
  s.checked = true;
  s.found_inf |= found;
  return found;
}

bool scaled_step(GradScaler& s, Optimizer& o) {
  if (!s.enabled) {
    optimizer_step(o);
    return true;
  }
  GradScaler::Seen& e = seen_of(s, o);
  if (e.stage == GradScaler::kStepped)
    fail_arg(TT_INVALID_ARG, "opt", "it has taken its step since the last update");
  if (e.stage == GradScaler::kReady) unscale(s, o);
  if (!e.has_gradients)
    fail_arg(TT_INVALID_ARG, "opt", "no parameter of the optimizer has a gradient");
  const bool steps = !e.found_inf;
  if (steps) optimizer_step(o);
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

void update_scale(GradScaler& s, double new_scale) {
  if (!s.enabled) return;
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

}  // namespace TT_NS
