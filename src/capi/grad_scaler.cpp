#include "capi/api.h"
#include "capi/optim.h"
#include "optim/grad_scaler.h"

using namespace TT_NS;

static GradScaler* scaler_of(const tt_grad_scaler* h) {
  auto* s = reinterpret_cast<GradScaler*>(const_cast<tt_grad_scaler*>(h));
  return s && s->tag == kTagGradScaler ? s : nullptr;
}
static GradScaler& scaler_arg(const tt_grad_scaler* h) {
  if (!scaler_of(h)) fail_handle(h, "s", 1, "grad_scaler");
  return *scaler_of(h);
}

tt_status tt_grad_scaler_new(tt_ctx* h, const tt_grad_scaler_new_opts* opts, tt_grad_scaler** out) {
  if (out) *out = nullptr;
  return api_call(h, "grad_scaler_new", [&](Ctx&) {
    check_opts(opts, 5);
    out_arg(out, "out", 2);
    const double scale = opts_has(opts, 0) ? opts->init_scale : 65536;
    const double growth = opts_has(opts, 1) ? opts->growth_factor : 2;
    const double backoff = opts_has(opts, 2) ? opts->backoff_factor : 0.5;
    const int64_t interval = opts_has(opts, 3) ? opts->growth_interval : 2000;
    const bool disabled = opts_has(opts, 4) && opts->disabled;
    Ref<GradScaler> made = new_grad_scaler(!disabled, scale, growth, backoff, interval);
    *out = reinterpret_cast<tt_grad_scaler*>(made.leak());
  });
}
void tt_grad_scaler_retain(tt_grad_scaler* h) {
  if (GradScaler* s = scaler_of(h)) ref_inc_external(&s->refs);
}
void tt_grad_scaler_release(tt_grad_scaler* h) {
  if (GradScaler* s = scaler_of(h)) Ref<GradScaler>::adopt(s).reset();
}
tt_status tt_grad_scaler_scale(tt_ctx* h, tt_grad_scaler* s, const tt_tensor* loss,
                               tt_tensor** out) {
  if (out) *out = nullptr;
  return api_call(h, "grad_scaler_scale", [&](Ctx& c) {
    GradScaler& scaler = scaler_arg(s);
    const Tensor& t = tensor_arg(loss, "loss", 2);
    out_arg(out, "out", 3);
    give(c, out, scale_loss(scaler, t));
  });
}
tt_status tt_grad_scaler_unscale(tt_ctx* h, tt_grad_scaler* s, tt_optimizer* opt) {
  return api_call(h, "grad_scaler_unscale",
                  [&](Ctx&) { unscale(scaler_arg(s), optimizer_arg(opt, "opt", 2)); });
}
tt_status tt_grad_scaler_unscale_list(tt_ctx* h, tt_grad_scaler* s, tt_tensor* const* params,
                                      int64_t n, int32_t* out) {
  if (out) *out = 0;
  return api_call(h, "grad_scaler_unscale_list", [&](Ctx&) {
    GradScaler& scaler = scaler_arg(s);
    const TensorSpan list = mutables_arg(params, n, "params", 2);
    out_arg(out, "out", 4);
    *out = unscale_list(scaler, list);
  });
}
tt_status tt_grad_scaler_step(tt_ctx* h, tt_grad_scaler* s, tt_optimizer* opt, int32_t* out) {
  if (out) *out = 0;
  return api_call(h, "grad_scaler_step", [&](Ctx&) {
    GradScaler& scaler = scaler_arg(s);
    Optimizer& o = optimizer_arg(opt, "opt", 2);
    out_arg(out, "out", 3);
    *out = scaled_step(scaler, o);
  });
}
tt_status tt_grad_scaler_update(tt_ctx* h, tt_grad_scaler* s, double new_scale) {
  return api_call(h, "grad_scaler_update", [&](Ctx&) { update_scale(scaler_arg(s), new_scale); });
}
tt_status tt_grad_scaler_found_inf(tt_ctx* h, const tt_grad_scaler* s, tt_optimizer* opt,
                                   int64_t* out) {
  if (out) *out = 0;
  return api_call(h, "grad_scaler_found_inf", [&](Ctx&) {
    const GradScaler& scaler = scaler_arg(s);
    const Optimizer& o = optimizer_arg(opt, "opt", 2);
    out_arg(out, "out", 3);
    *out = -1;
    for (const GradScaler::Seen& e : scaler.seen)
      if (e.has_gradients && e.optimizer.get() == &o) *out = e.found_inf;
  });
}
double tt_grad_scaler_get_scale(const tt_grad_scaler* h) {
  const GradScaler* s = scaler_of(h);
  if (!s) return 0;
  return s->enabled ? double(s->scale) : 1;
}
tt_status tt_grad_scaler_state(tt_ctx* h, tt_grad_scaler* s, double state[5]) {
  return api_call(h, "grad_scaler_state", [&](Ctx&) {
    const GradScaler& scaler = scaler_arg(s);
    out_arg(state, "state", 2);
    state[0] = double(scaler.scale);
    state[1] = scaler.growth_factor;
    state[2] = scaler.backoff_factor;
    state[3] = double(scaler.growth_interval);
    state[4] = double(scaler.growth_tracker);
  });
}
tt_status tt_grad_scaler_set_state(tt_ctx* h, tt_grad_scaler* s, const double state[5]) {
  return api_call(h, "grad_scaler_set_state", [&](Ctx&) {
    GradScaler& scaler = scaler_arg(s);
    if (!state) fail_null("state", 2);
    set_scaler_state(scaler, state);
  });
}
