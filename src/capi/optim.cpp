#include "capi/optim.h"

#include "autograd/callback_outs.h"
#include "base/finalizer.h"
#include "core/callback.h"
#include "core/graph_hooks.h"

namespace TT_NS {

static Optimizer* live(const tt_optimizer* h) {
  auto* o = reinterpret_cast<Optimizer*>(const_cast<tt_optimizer*>(h));
  return o && o->tag == kTagOptimizer ? o : nullptr;
}
Optimizer& optimizer_arg(const tt_optimizer* h, const char* arg, int32_t index) {
  Optimizer* o = live(h);
  if (!o) fail_handle(h, arg, index, "optimizer");
  return *o;
}

}  // namespace TT_NS

using namespace TT_NS;

void tt_optim_retain(tt_optimizer* h) {
  if (Optimizer* o = live(h)) ref_inc_external(&o->refs);
}
void tt_optim_release(tt_optimizer* h) {
  if (Optimizer* o = live(h)) OptimizerRef::adopt(o).reset();
}

tt_status tt_optim_add_param_group(tt_ctx* h, tt_optimizer* opt, tt_tensor* const* params,
                                   int64_t n) {
  return api_call(h, "optim_add_param_group", [&](Ctx&) {
    add_param_group(optimizer_arg(opt, "opt", 1), mutables_arg(params, n, "params", 2));
  });
}

tt_status tt_optim_step(tt_ctx* h, tt_optimizer* opt) {
  return api_call(h, "optim_step", [&](Ctx&) { optimizer_step(optimizer_arg(opt, "opt", 1)); });
}

tt_status tt_optim_step_closure(tt_ctx* h, tt_optimizer* opt, tt_optim_closure fn, void* user,
                                void (*drop)(void*), tt_tensor** loss) {
  clear_out(loss);
  tt_status status = api_call(h, "optim_step_closure", [&](Ctx& c) {
    OptimizerRef o = OptimizerRef::share(&optimizer_arg(opt, "opt", 1));
    if (!fn) fail_null("fn", 2);
    out_arg(loss, "loss", 5);
    reserve_outs(c, 1);
    auto evaluate = [&] {
      CallbackOuts outs(1);
      run_callback("the closure", false,
                   [&](tt_ctx* inner) { return fn(user, inner, outs.data()); });
      return std::move(outs.take("the closure", false)[0]);
    };
    using Call = decltype(evaluate);
    const Evaluation calls = {[](void* with) { return (*static_cast<Call*>(with))(); }, &evaluate};
    give(c, loss, optimizer_step(*o.get(), calls));
  });
  run_drop(drop, user);
  return status;
}

tt_status tt_optim_zero_grad(tt_ctx* h, tt_optimizer* opt, int32_t set_to_none) {
  return api_call(h, "optim_zero_grad",
                  [&](Ctx&) { zero_grad(optimizer_arg(opt, "opt", 1), set_to_none != 0); });
}

// ---- groups and values ----

int64_t tt_optim_num_groups(const tt_optimizer* h) { return live(h) ? live(h)->groups.size() : 0; }
int64_t tt_optim_num_params(const tt_optimizer* h) { return live(h) ? live(h)->params.size() : 0; }
int64_t tt_optim_group_size(const tt_optimizer* h, int64_t group) {
  if (group < 0 || group >= tt_optim_num_groups(h)) return 0;
  const ParamGroup& g = live(h)->groups[group];
  return g.end - g.begin;
}
tt_status tt_optim_param(tt_ctx* h, const tt_optimizer* opt, int64_t param, tt_tensor** out) {
  clear_out(out);
  return api_call(h, "optim_param", [&](Ctx& c) {
    Optimizer& o = optimizer_arg(opt, "opt", 1);
    out_arg(out, "out", 3);
    if (param < 0 || param >= o.params.size())
      fail_arg(TT_INDEX, "param", "param is {}: the optimizer has {} parameters", param,
               o.params.size());
    give(c, out, TensorRef(o.params[param].param));
  });
}
tt_status tt_optim_get_f64(tt_ctx* h, const tt_optimizer* opt, int64_t group, const char* name,
                           double* out) {
  return api_call(h, "optim_get_f64", [&](Ctx&) {
    Optimizer& o = optimizer_arg(opt, "opt", 1);
    str_arg(name, "name", 3);
    out_arg(out, "out", 4);
    *out = group_value(o, group, name);
  });
}
tt_status tt_optim_set_f64(tt_ctx* h, tt_optimizer* opt, int64_t group, const char* name,
                           double value) {
  return api_call(h, "optim_set_f64", [&](Ctx&) {
    Optimizer& o = optimizer_arg(opt, "opt", 1);
    str_arg(name, "name", 3);
    note_change("a value of an optimizer");
    set_group_value(o, group, name, value);
  });
}

// ---- state ----

tt_status tt_optim_get_state(tt_ctx* h, const tt_optimizer* opt, int64_t param, const char* name,
                             tt_tensor** out) {
  clear_out(out);
  return api_call(h, "optim_get_state", [&](Ctx& c) {
    Optimizer& o = optimizer_arg(opt, "opt", 1);
    str_arg(name, "name", 3);
    out_arg(out, "out", 4);
    give(c, out, param_state(o, param, name));
  });
}
tt_status tt_optim_set_state(tt_ctx* h, tt_optimizer* opt, int64_t param, const char* name,
                             const tt_tensor* value) {
  return api_call(h, "optim_set_state", [&](Ctx&) {
    Optimizer& o = optimizer_arg(opt, "opt", 1);
    str_arg(name, "name", 3);
    note_change("the state of an optimizer");
    set_param_state(o, param, name, optional_arg(value, "value", 4));
  });
}

int64_t tt_optim_num_tensors(const tt_optimizer* h) { return live(h) ? num_tensors(*live(h)) : 0; }
int64_t tt_optim_num_numbers(const tt_optimizer* h) { return live(h) ? num_numbers(*live(h)) : 0; }

static void check_name(char* name, int64_t cap) {
  if (!name) fail_null("name", 3);
  if (cap < 1) fail_arg(TT_INVALID_ARG, "cap", "cap is {}: must be at least 1", cap);
  name[0] = 0;
}
tt_status tt_optim_tensor_at(tt_ctx* h, const tt_optimizer* opt, int64_t i, char* name, int64_t cap,
                             tt_tensor** out) {
  clear_out(out);
  return api_call(h, "optim_tensor_at", [&](Ctx& c) {
    Optimizer& o = optimizer_arg(opt, "opt", 1);
    check_name(name, cap);
    out_arg(out, "out", 5);
    give(c, out, tensor_at(o, i, name, cap));
  });
}
tt_status tt_optim_number_at(tt_ctx* h, const tt_optimizer* opt, int64_t i, char* name, int64_t cap,
                             double* out) {
  return api_call(h, "optim_number_at", [&](Ctx&) {
    Optimizer& o = optimizer_arg(opt, "opt", 1);
    check_name(name, cap);
    out_arg(out, "out", 5);
    *out = number_at(o, i, name, cap);
  });
}
tt_status tt_optim_load_tensor(tt_ctx* h, tt_optimizer* opt, const char* name,
                               const tt_tensor* value) {
  return api_call(h, "optim_load_tensor", [&](Ctx&) {
    Optimizer& o = optimizer_arg(opt, "opt", 1);
    str_arg(name, "name", 2);
    note_change("the state of an optimizer");
    load_tensor(o, name, tensor_arg(value, "value", 3));
  });
}
tt_status tt_optim_load_number(tt_ctx* h, tt_optimizer* opt, const char* name, double value) {
  return api_call(h, "optim_load_number", [&](Ctx&) {
    Optimizer& o = optimizer_arg(opt, "opt", 1);
    str_arg(name, "name", 2);
    note_change("the state of an optimizer");
    load_number(o, name, value);
  });
}

// ---- clipping ----

tt_status tt_clip_grad_norm_(tt_ctx* h, tt_tensor* const* params, int64_t n, double max_norm,
                             const tt_clip_grad_norm_opts* opts, tt_tensor** total) {
  clear_out(total);
  return api_call(h, "clip_grad_norm_", [&](Ctx& c) {
    const TensorSpan list = mutables_arg(params, n, "params", 1);
    check_opts(opts, 2);
    out_arg(total, "total", 5);
    reserve_outs(c, 1);
    give(c, total,
         clip_grad_norm(list, max_norm, opts_has(opts, 0) ? opts->norm_type : 2.0,
                        opts_has(opts, 1) && opts->error_if_nonfinite));
  });
}
tt_status tt_unscale_grads_(tt_ctx* h, tt_tensor* const* params, int64_t n, double factor,
                            int32_t* found_inf) {
  if (found_inf) *found_inf = 0;
  return api_call(h, "unscale_grads_", [&](Ctx&) {
    const TensorSpan list = mutables_arg(params, n, "params", 1);
    out_arg(found_inf, "found_inf", 4);
    *found_inf = unscale_grads(list, factor);
  });
}
tt_status tt_clip_grad_value_(tt_ctx* h, tt_tensor* const* params, int64_t n, double clip_value) {
  return api_call(h, "clip_grad_value_",
                  [&](Ctx&) { clip_grad_value(mutables_arg(params, n, "params", 1), clip_value); });
}
