// Transforms of functions, hooks on saved tensors, autocast.
#include "autograd/forward.h"

#include "autograd/saved.h"
#include "autograd/saved_hooks.h"
#include "autograd/transform.h"
#include "base/finalizer.h"
#include "capi/api.h"
#include "capi/module.h"
#include "dispatch/op_info.h"
#include "modes/autocast.h"
#include "modes/checkpoint.h"
#include "modes/vmap.h"
#include "nn/functional_call.h"
#include "tt.h"

using namespace TT_NS;

static_assert(TT_NOT_BATCHED == kNotBatched);

namespace {

struct Application {
  tt_fn fn;
  void* user;
  TensorFunction function() {
    return {[](void* self, TensorSpan inputs) {
              const auto& f = *static_cast<const Application*>(self);
              return call_function(f.fn, f.user, inputs);
            },
            this};
  }
};

// Runs a transform of an application's function, whose drop runs at the end.
template <class F>
tt_status transform(tt_ctx* h, const char* name, tt_fn fn, void* user, void (*drop)(void*), F f) {
  const tt_status status = api_call(h, name, [&](Ctx& c) {
    if (!fn) fail_null("fn", 1);
    Application app{fn, user};
    f(c, app.function());
  });
  run_drop(drop, user);
  return status;
}

TensorSpan inputs_arg(const tt_tensor* const* inputs, int64_t n) {
  const TensorSpan list = tensors_arg(inputs, n, "inputs", 4, false);
  if (!n) fail_arg(TT_INVALID_ARG, "inputs", "there are no inputs: at least one is needed");
  return list;
}

// Fails before anything is computed if there is no array for n tensors.
void array_arg(tt_tensor** outs, int64_t n, const char* arg, int32_t index) {
  if (n && !outs) fail_null(arg, index);
}
void clear_array(tt_tensor** outs, int64_t n) {
  for (int64_t i = 0; outs && i < n; i++) outs[i] = nullptr;
}

// Gives two lists, or none.
void give_both(Ctx& c, tt_tensor** outs, int64_t cap, int64_t* n_outs, TensorList&& results,
               tt_tensor** products, int64_t n_products, TensorList&& found) {
  *n_outs = results.size();
  if (results.size() > cap)
    fail_arg(TT_BUFFER_TOO_SMALL, "outs", "outs has room for {}, there are {}", cap,
             results.size());
  reserve_outs(c, results.size() + found.size());
  give_list(c, outs, cap, n_outs, std::move(results));
  int64_t n = 0;
  give_list(c, products, n_products, &n, std::move(found));
}

}  // namespace

static tt_status checkpoint_call(tt_ctx* h, const char* name, tt_fn fn, void* user,
                                 void (*drop)(void*), const tt_tensor* const* inputs,
                                 int64_t n_inputs, const tt_op* const* ops, int64_t n_ops,
                                 tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  clear_list(outs, cap, n_outs);
  bool taken = false;  // by checkpoint(), which drops it
  const tt_status status = api_call(h, name, [&](Ctx& c) {
    if (!fn) fail_null("fn", 1);
    const TensorSpan in = tensors_arg(inputs, n_inputs, "inputs", 4, false);
    if (n_ops < 0 || (n_ops && !ops))
      fail_arg(TT_INVALID_ARG, "ops", "ops is {}, its length is {}", ops ? "a list" : "NULL",
               n_ops);
    const Span<const OpInfo* const> kept = {reinterpret_cast<const OpInfo* const*>(ops), n_ops};
    for (const OpInfo* op : kept)
      if (!op || op->tag != kTagOp) fail_handle(op, "ops", 6, "operator");
    check_list(outs, cap, n_outs);
    taken = true;
    TensorList found = checkpoint({fn, user, drop}, in, kept);
    *n_outs = found.size();
    if (found.size() > cap)
      fail_arg(TT_BUFFER_TOO_SMALL, "outs", "outs has room for {}, there are {}", cap,
               found.size());
    give_list(c, outs, cap, n_outs, std::move(found));
  });
  if (!taken) run_drop(drop, user);
  return status;
}
tt_status tt_checkpoint_function(tt_ctx* h, tt_fn fn, void* user, void (*drop)(void*),
                                 const tt_tensor* const* inputs, int64_t n_inputs, tt_tensor** outs,
                                 int64_t cap, int64_t* n_outs) {
  return checkpoint_call(h, "checkpoint_function", fn, user, drop, inputs, n_inputs, nullptr, 0,
                         outs, cap, n_outs);
}
tt_status tt_selective_checkpoint_function(tt_ctx* h, tt_fn fn, void* user, void (*drop)(void*),
                                           const tt_tensor* const* inputs, int64_t n_inputs,
                                           const tt_op* const* ops, int64_t n_ops, tt_tensor** outs,
                                           int64_t cap, int64_t* n_outs) {
  return checkpoint_call(h, "selective_checkpoint_function", fn, user, drop, inputs, n_inputs, ops,
                         n_ops, outs, cap, n_outs);
}

tt_status tt_vjp(tt_ctx* h, tt_fn fn, void* user, void (*drop)(void*),
                 const tt_tensor* const* inputs, int64_t n_inputs,
                 const tt_tensor* const* cotangents, int64_t n_cotangents, tt_tensor** outs,
                 int64_t cap, int64_t* n_outs, tt_tensor** grads) {
  clear_list(outs, cap, n_outs);
  clear_array(grads, n_inputs);
  return transform(h, "vjp", fn, user, drop, [&](Ctx& c, const TensorFunction& f) {
    const TensorSpan in = inputs_arg(inputs, n_inputs);
    const TensorSpan v = tensors_arg(cotangents, n_cotangents, "cotangents", 6, true);
    check_list(outs, cap, n_outs);
    array_arg(grads, n_inputs, "grads", 11);
    ResultsAndProducts found = vjp(f, in, v);
    give_both(c, outs, cap, n_outs, std::move(found.results), grads, n_inputs,
              std::move(found.products));
  });
}

tt_status tt_jvp(tt_ctx* h, tt_fn fn, void* user, void (*drop)(void*),
                 const tt_tensor* const* inputs, const tt_tensor* const* tangents, int64_t n_inputs,
                 tt_tensor** outs, tt_tensor** products, int64_t cap, int64_t* n_outs) {
  clear_list(outs, cap, n_outs);
  clear_array(products, cap);
  return transform(h, "jvp", fn, user, drop, [&](Ctx& c, const TensorFunction& f) {
    const TensorSpan in = inputs_arg(inputs, n_inputs);
    const TensorSpan v = tensors_arg(tangents, n_inputs, "tangents", 5, true);
    check_list(outs, cap, n_outs);
    array_arg(products, cap, "products", 8);
    ResultsAndProducts found = jvp(f, in, v);
    give_both(c, outs, cap, n_outs, std::move(found.results), products, cap,
              std::move(found.products));
  });
}

tt_status tt_dual_level_push(tt_ctx* h) {
  return api_call(h, "dual_level_push", [](Ctx&) { push_dual_level(); });
}
tt_status tt_dual_level_pop(tt_ctx* h) {
  return api_call(h, "dual_level_pop", [](Ctx&) { pop_dual_level(); });
}
tt_status tt_make_dual(tt_ctx* h, const tt_tensor* primal, const tt_tensor* tangent,
                       tt_tensor** out) {
  clear_out(out);
  return api_call(h, "make_dual", [&](Ctx& c) {
    out_arg(out, "out", 3);
    give(c, out, make_dual(tensor_arg(primal, "primal", 1), tensor_arg(tangent, "tangent", 2)));
  });
}
tt_status tt_unpack_dual(tt_ctx* h, const tt_tensor* self, tt_tensor** primal,
                         tt_tensor** tangent) {
  clear_out(primal);
  clear_out(tangent);
  return api_call(h, "unpack_dual", [&](Ctx& c) {
    out_arg(primal, "primal", 2);
    out_arg(tangent, "tangent", 3);
    PrimalAndTangent both = unpack_dual(tensor_arg(self, "self", 1));
    reserve_outs(c, 2);
    give(c, primal, std::move(both.primal));
    if (both.tangent) give(c, tangent, std::move(both.tangent));
  });
}

tt_status tt_jacobian(tt_ctx* h, tt_fn fn, void* user, void (*drop)(void*),
                      const tt_tensor* const* inputs, int64_t n_inputs, tt_tensor** outs,
                      int64_t cap, int64_t* n_outs) {
  clear_list(outs, cap, n_outs);
  return transform(h, "jacobian", fn, user, drop, [&](Ctx& c, const TensorFunction& f) {
    const TensorSpan in = inputs_arg(inputs, n_inputs);
    check_list(outs, cap, n_outs);
    give_list(c, outs, cap, n_outs, jacobian(f, in));
  });
}

tt_status tt_hessian(tt_ctx* h, tt_fn fn, void* user, void (*drop)(void*),
                     const tt_tensor* const* inputs, int64_t n_inputs, tt_tensor** outs,
                     int64_t cap, int64_t* n_outs) {
  clear_list(outs, cap, n_outs);
  return transform(h, "hessian", fn, user, drop, [&](Ctx& c, const TensorFunction& f) {
    const TensorSpan in = inputs_arg(inputs, n_inputs);
    check_list(outs, cap, n_outs);
    give_list(c, outs, cap, n_outs, hessian(f, in));
  });
}

tt_status tt_vmap(tt_ctx* h, tt_fn fn, void* user, void (*drop)(void*),
                  const tt_tensor* const* inputs, int64_t n_inputs, const tt_vmap_opts* opts,
                  tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  clear_list(outs, cap, n_outs);
  return transform(h, "vmap", fn, user, drop, [&](Ctx& c, const TensorFunction& f) {
    check_opts(opts, 3);
    VmapOptions o;
    const TensorSpan in = inputs_arg(inputs, n_inputs);
    if (opts_has(opts, 0)) o.in_dims = int_list_arg(opts->in_dims, opts->n_in_dims, "in_dims", 6);
    if (opts_has(opts, 1))
      o.out_dims = int_list_arg(opts->out_dims, opts->n_out_dims, "out_dims", 6);
    if (opts_has(opts, 2)) o.randomness = opts->randomness;
    check_list(outs, cap, n_outs);
    give_list(c, outs, cap, n_outs, vmap(f, in, o));
  });
}

tt_status tt_functional_call(tt_ctx* h, tt_module* m, const tt_state_dict* with,
                             const tt_tensor* const* inputs, int64_t n, tt_tensor** outs,
                             int64_t cap, int64_t* n_outs) {
  clear_list(outs, cap, n_outs);
  return api_call(h, "functional_call", [&](Ctx& c) {
    Module& module = module_arg(m, "m", 1);
    const StateDict& tensors = state_dict_arg(with, "with", 2);
    const TensorSpan in = tensors_arg(inputs, n, "inputs", 3, true);
    check_list(outs, cap, n_outs);
    give_list(c, outs, cap, n_outs, functional_call(module, tensors, in));
  });
}

tt_status tt_module_exchange_tensors(tt_ctx* h, tt_module* m, tt_state_dict* with) {
  return api_call(h, "module_exchange_tensors", [&](Ctx&) {
    exchange_tensors(module_arg(m, "m", 1), state_dict_arg(with, "with", 2));
  });
}

tt_status tt_saved_tensors_push(tt_ctx* h, const tt_saved_tensors_def* def) {
  bool passed_on = false;
  const tt_status status = api_call(h, "saved_tensors_push", [&](Ctx&) {
    if (!def) fail_null("def", 1);
    if (def->struct_size < sizeof(tt_saved_tensors_def))
      fail_arg(TT_ABI, "def", "def.struct_size is {}: must be at least {}", def->struct_size,
               sizeof(tt_saved_tensors_def));
    if (!def->pack || !def->unpack)
      fail_arg(TT_INVALID_ARG, "def", "def.{} is NULL: must be a function",
               def->pack ? "unpack" : "pack");
    passed_on = true;
    push_saved_hooks({def->user, def->pack, def->unpack, def->drop_packed, def->drop});
  });
  if (!passed_on && def && def->struct_size >= sizeof(tt_saved_tensors_def))
    run_drop(def->drop, def->user);
  return status;
}
tt_status tt_saved_tensors_pop(tt_ctx* h) {
  return api_call(h, "saved_tensors_pop", [](Ctx&) { pop_saved_hooks(); });
}

// ---- autocast ----

static int32_t autocast_type(tt_device_type type) {
  if (type != TT_CPU && type != TT_CUDA)
    fail_arg(TT_INVALID_ARG, "type", "type is {}: autocast is for TT_CPU and TT_CUDA", type);
  return type;
}

tt_status tt_autocast_push(tt_ctx* h, tt_device_type type, int32_t enabled, tt_dtype dtype,
                           int32_t cache) {
  return api_call(h, "autocast_push", [&](Ctx&) {
    const Dtype d = dtype ? dtype_arg(dtype, "dtype", 3) : Dtype::kNone;
    if (d != Dtype::kNone && d != Dtype::kF16 && d != Dtype::kBF16 && d != Dtype::kF32)
      fail_arg(TT_DTYPE, "dtype", "dtype is {}: must be float16, bfloat16 or float32", fmt(d));
    push_autocast(autocast_type(type), enabled != 0, d, cache != 0);
  });
}
tt_status tt_autocast_pop(tt_ctx* h) {
  return api_call(h, "autocast_pop", [](Ctx&) { pop_autocast(); });
}
tt_status tt_autocast_clear_cache(tt_ctx* h) {
  return api_call(h, "autocast_clear_cache", [](Ctx&) { clear_autocast_cache(); });
}
static const Ctx* live_ctx(const tt_ctx* h) {
  auto* c = reinterpret_cast<const Ctx*>(h);
  return c && c->tag == kTagCtx ? c : nullptr;
}
int32_t tt_autocast_enabled(const tt_ctx* h, tt_device_type type) {
  const Ctx* c = live_ctx(h);
  return c && autocast_enabled(*c, type);
}
tt_dtype tt_autocast_dtype(const tt_ctx* h, tt_device_type type) {
  const Ctx* c = live_ctx(h);
  return c ? tt_dtype(autocast_dtype(*c, type)) : tt_dtype(0);
}
int32_t tt_autocast_cache_enabled(const tt_ctx* h) {
  const Ctx* c = live_ctx(h);
  return c && autocast_cache_enabled(*c);
}
