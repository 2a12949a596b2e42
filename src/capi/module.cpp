#include "capi/module.h"

#include "base/finalizer.h"
#include "core/callback.h"
#include "nn/adaptive_softmax.h"
#include "nn/attention.h"
#include "nn/averaged_model.h"
#include "nn/batch_norm.h"
#include "nn/custom.h"
#include "nn/distance_loss.h"
#include "nn/hook.h"
#include "nn/lazy.h"

using namespace TT_NS;

static_assert(kLazySize == TT_NN_LAZY);

// ---- state dicts ----

static StateDict* dict_of(const tt_state_dict* h) {
  auto* d = reinterpret_cast<StateDict*>(const_cast<tt_state_dict*>(h));
  return d && d->tag == kTagStateDict ? d : nullptr;
}
StateDict& TT_NS::state_dict_arg(const tt_state_dict* h, const char* arg, int32_t index) {
  if (!dict_of(h)) fail_handle(h, arg, index, "state dict");
  return *dict_of(h);
}
static tt_state_dict* to_handle(StateDictRef&& d) {
  return reinterpret_cast<tt_state_dict*>(d.leak());
}

tt_status tt_state_dict_new(tt_ctx* h, tt_state_dict** out) {
  if (out) *out = nullptr;
  return api_call(h, "state_dict_new", [&](Ctx&) {
    out_arg(out, "out", 1);
    *out = to_handle(new_state_dict());
  });
}
void tt_state_dict_retain(tt_state_dict* h) {
  if (StateDict* d = dict_of(h)) ref_inc_external(&d->refs);
}
void tt_state_dict_release(tt_state_dict* h) {
  if (StateDict* d = dict_of(h)) StateDictRef::adopt(d).reset();
}
int64_t tt_state_dict_size(const tt_state_dict* h) {
  return dict_of(h) ? dict_of(h)->entries.size() : 0;
}
const char* tt_state_dict_name(const tt_state_dict* h, int64_t i) {
  return i >= 0 && i < tt_state_dict_size(h) ? dict_of(h)->entries[i].name.c_str() : nullptr;
}
const char* tt_state_dict_structure(const tt_state_dict* h) {
  return dict_of(h) && !dict_of(h)->structure.empty() ? dict_of(h)->structure.c_str() : nullptr;
}
tt_status tt_state_dict_find(tt_ctx* h, const tt_state_dict* state, const char* name,
                             int64_t* out) {
  if (out) *out = -1;
  return api_call(h, "state_dict_find", [&](Ctx&) {
    const StateDict& d = state_dict_arg(state, "state", 1);
    str_arg(name, "name", 2);
    out_arg(out, "out", 3);
    *out = d.find(name);
    if (*out < 0) fail_arg(TT_INDEX, "name", "the state dict has no tensor \"{}\"", name);
  });
}
tt_status tt_state_dict_get(tt_ctx* h, const tt_state_dict* state, int64_t i, tt_tensor** out) {
  clear_out(out);
  return api_call(h, "state_dict_get", [&](Ctx& c) {
    const StateDict& d = state_dict_arg(state, "state", 1);
    out_arg(out, "out", 3);
    if (i < 0 || i >= d.entries.size())
      fail_arg(TT_INDEX, "i", "i is {}: the state dict has {} tensors", i, d.entries.size());
    give(c, out, TensorRef(d.entries[i].tensor));
  });
}
tt_status tt_state_dict_set(tt_ctx* h, tt_state_dict* state, const char* name,
                            const tt_tensor* tensor) {
  return api_call(h, "state_dict_set", [&](Ctx&) {
    StateDict& d = state_dict_arg(state, "state", 1);
    str_arg(name, "name", 2);
    d.set(name, TensorRef::share(&tensor_arg(tensor, "tensor", 3)));
  });
}

// ---- modules ----

static Module* module_of(const tt_module* h) {
  auto* m = reinterpret_cast<Module*>(const_cast<tt_module*>(h));
  return m && m->tag == kTagModule ? m : nullptr;
}
Module& TT_NS::module_arg(const tt_module* h, const char* arg, int32_t index) {
  if (!module_of(h)) fail_handle(h, arg, index, "module");
  return *module_of(h);
}
static tt_module* to_handle(ModuleRef&& m) { return reinterpret_cast<tt_module*>(m.leak()); }

void tt_module_retain(tt_module* h) {
  if (Module* m = module_of(h)) ref_inc_external(&m->refs);
}
void tt_module_release(tt_module* h) {
  if (Module* m = module_of(h)) ModuleRef::adopt(m).reset();
}
const char* tt_module_type(const tt_module* h) {
  return module_of(h) ? module_of(h)->type->name : nullptr;
}
int32_t tt_module_training(const tt_module* h) { return module_of(h) && module_of(h)->training; }

tt_status tt_module_forward(tt_ctx* h, tt_module* m, const tt_tensor* const* inputs, int64_t n,
                            tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  clear_list(outs, cap, n_outs);
  return api_call(h, "module_forward", [&](Ctx& c) {
    Module& module = module_arg(m);
    const TensorSpan in = tensors_arg(inputs, n, "inputs", 2, true);
    if (cap > 0) out_arg(outs, "outs", 4);
    out_arg(n_outs, "n_outs", 6);
    give_list(c, outs, cap, n_outs, forward(module, in));
  });
}

tt_status tt_module_call(tt_ctx* h, tt_module* m, const tt_tensor* input, tt_tensor** out) {
  clear_out(out);
  return api_call(h, "module_call", [&](Ctx& c) {
    Module& module = module_arg(m);
    const Tensor* in = &tensor_arg(input, "input", 2);
    out_arg(out, "out", 3);
    TensorList results = forward(module, {&in, 1});
    if (results.size() != 1)
      fail_arg(TT_INVALID_ARG, "m", "{} returned {} results: use tt_module_forward",
               module.type->name, results.size());
    give(c, out, std::move(results[0]));
  });
}

tt_status tt_module_train(tt_ctx* h, tt_module* m, int32_t on) {
  return api_call(h, "module_train", [&](Ctx&) { set_training(module_arg(m), on != 0); });
}
tt_status tt_module_freeze(tt_ctx* h, tt_module* m) {
  return api_call(h, "module_freeze", [&](Ctx&) { freeze(module_arg(m)); });
}
int32_t tt_module_frozen(const tt_module* h) { return module_of(h) && module_of(h)->frozen; }
tt_status tt_module_requires_grad_(tt_ctx* h, tt_module* m, int32_t on) {
  return api_call(h, "module_requires_grad_",
                  [&](Ctx&) { set_requires_grad_all(module_arg(m), on != 0); });
}
tt_status tt_module_zero_grad(tt_ctx* h, tt_module* m) {
  return api_call(h, "module_zero_grad", [&](Ctx&) { zero_grad_all(module_arg(m)); });
}
tt_status tt_module_to(tt_ctx* h, tt_module* m, const tt_device* device, tt_dtype dtype) {
  return api_call(h, "module_to", [&](Ctx&) {
    Module& module = module_arg(m);
    const Opt<Device> to = device ? Opt<Device>(device_arg(device, "device", 2)) : Opt<Device>();
    convert(module, dtype ? dtype_arg(dtype, "dtype", 3) : Dtype::kNone, to);
  });
}
tt_status tt_module_average(tt_ctx* h, tt_module* m, const tt_module* model, double share,
                            int32_t use_buffers) {
  return api_call(h, "module_average", [&](Ctx&) {
    average(module_arg(m), module_arg(model, "model", 2), share, use_buffers != 0);
  });
}
tt_status tt_averaged_model(tt_ctx* h, const tt_module* model, const tt_averaged_model_opts* opts,
                            tt_module** out) {
  if (out) *out = nullptr;
  return api_call(h, "averaged_model", [&](Ctx&) {
    Module& module = module_arg(model, "model", 1);
    check_opts(opts, 2);
    out_arg(out, "out", 3);
    Opt<double> decay;
    if (opts_has(opts, 0)) decay = opts->decay;
    *out = to_handle(averaged_model(module, decay, opts_has(opts, 1) && opts->use_buffers));
  });
}
tt_status tt_averaged_model_update_parameters(tt_ctx* h, tt_module* m, const tt_module* model) {
  return api_call(h, "averaged_model_update_parameters",
                  [&](Ctx&) { update_parameters(module_arg(m), module_arg(model, "model", 2)); });
}
tt_status tt_module_update_bn(tt_ctx* h, tt_module* m, tt_epoch_fn fn, void* user,
                              void (*drop)(void*)) {
  const tt_status status = api_call(h, "module_update_bn", [&](Ctx&) {
    Module& module = module_arg(m);
    if (!fn) fail_null("fn", 2);
    const StatisticsUpdate update(module);
    const MaskGuard no_grad(bit(kKeyAutograd));
    run_callback("the epoch", true, [&](tt_ctx* inner) { return fn(user, inner); });
  });
  run_drop(drop, user);
  return status;
}
tt_status tt_module_copy(tt_ctx* h, const tt_module* m, tt_module** out) {
  if (out) *out = nullptr;
  return api_call(h, "module_copy", [&](Ctx&) {
    Module& module = module_arg(m);
    out_arg(out, "out", 2);
    *out = to_handle(deep_copy(module));
  });
}

tt_status tt_module_register_parameter(tt_ctx* h, tt_module* m, const char* name,
                                       const tt_tensor* tensor) {
  return api_call(h, "module_register_parameter", [&](Ctx&) {
    Module& module = module_arg(m);
    str_arg(name, "name", 2);
    set_parameter(module, name, optional_arg(tensor, "tensor", 3));
  });
}
tt_status tt_module_register_buffer(tt_ctx* h, tt_module* m, const char* name,
                                    const tt_tensor* tensor, int32_t persistent) {
  return api_call(h, "module_register_buffer", [&](Ctx&) {
    Module& module = module_arg(m);
    str_arg(name, "name", 2);
    set_buffer(module, name, optional_arg(tensor, "tensor", 3), persistent != 0);
  });
}
tt_status tt_module_register_module(tt_ctx* h, tt_module* m, const char* name, tt_module* child) {
  return api_call(h, "module_register_module", [&](Ctx&) {
    Module& module = module_arg(m);
    str_arg(name, "name", 2);
    set_child(module, name, module_arg(child, "child", 3));
  });
}
tt_status tt_module_append(tt_ctx* h, tt_module* m, tt_module* child) {
  return api_call(h, "module_append", [&](Ctx&) {
    Module& module = module_arg(m);
    Text name;
    name.add(module.children.size());
    set_child(module, name.c_str(), module_arg(child, "child", 2));
  });
}

int64_t tt_module_num_children(const tt_module* h) {
  return module_of(h) ? module_of(h)->children.size() : 0;
}
const char* tt_module_child_name(const tt_module* h, int64_t i) {
  return i >= 0 && i < tt_module_num_children(h) ? module_of(h)->children[i].name.c_str() : nullptr;
}
tt_status tt_module_child(tt_ctx* h, const tt_module* m, int64_t i, tt_module** out) {
  if (out) *out = nullptr;
  return api_call(h, "module_child", [&](Ctx&) {
    Module& module = module_arg(m);
    out_arg(out, "out", 3);
    if (i < 0 || i >= module.children.size())
      fail_arg(TT_INDEX, "i", "i is {}: {} has {} children", i, module.type->name,
               module.children.size());
    *out = to_handle(ModuleRef(module.children[i].module));
  });
}
tt_status tt_module_get_submodule(tt_ctx* h, const tt_module* m, const char* path,
                                  tt_module** out) {
  if (out) *out = nullptr;
  return api_call(h, "module_get_submodule", [&](Ctx&) {
    Module& module = module_arg(m);
    str_arg(path, "path", 2);
    out_arg(out, "out", 3);
    Module* found = find_module(module, path);
    if (!found) fail_arg(TT_INDEX, "path", "{} has no module \"{}\"", module.type->name, path);
    *out = to_handle(ModuleRef::share(found));
  });
}
tt_status tt_module_get_tensor(tt_ctx* h, const tt_module* m, const char* path, tt_tensor** out) {
  clear_out(out);
  return api_call(h, "module_get_tensor", [&](Ctx& c) {
    Module& module = module_arg(m);
    str_arg(path, "path", 2);
    out_arg(out, "out", 3);
    const char* leaf;
    Module* found = find_module(module, path, &leaf);
    for (int64_t i = 0; found && i < found->slots.size(); i++)
      if (found->slots[i].name.is(leaf)) return give(c, out, TensorRef(found->slots[i].tensor));
    fail_arg(TT_INDEX, "path", "{} has no parameter or buffer \"{}\"", module.type->name, path);
  });
}

static tt_status named(tt_ctx* h, const char* call, const tt_module* m, Named which,
                       tt_state_dict** out) {
  if (out) *out = nullptr;
  return api_call(h, call, [&](Ctx&) {
    Module& module = module_arg(m);
    out_arg(out, "out", 2);
    *out = to_handle(named_tensors(module, which));
  });
}
tt_status tt_module_state_dict(tt_ctx* h, const tt_module* m, tt_state_dict** out) {
  return named(h, "module_state_dict", m, Named::kState, out);
}
tt_status tt_module_named_parameters(tt_ctx* h, const tt_module* m, tt_state_dict** out) {
  return named(h, "module_named_parameters", m, Named::kParameters, out);
}
tt_status tt_module_named_buffers(tt_ctx* h, const tt_module* m, tt_state_dict** out) {
  return named(h, "module_named_buffers", m, Named::kBuffers, out);
}
tt_status tt_module_parameters(tt_ctx* h, const tt_module* m, tt_tensor** outs, int64_t cap,
                               int64_t* n_outs) {
  clear_list(outs, cap, n_outs);
  return api_call(h, "module_parameters",
                  [&](Ctx& c) { give_list(c, outs, cap, n_outs, parameters_of(module_arg(m))); });
}
tt_status tt_module_load_state_dict(tt_ctx* h, tt_module* m, const tt_state_dict* state,
                                    const tt_module_load_state_dict_opts* opts) {
  return api_call(h, "module_load_state_dict", [&](Ctx&) {
    Module& module = module_arg(m);
    const StateDict& d = state_dict_arg(state, "state", 2);
    check_opts(opts, 1);
    load_state_dict(module, d, opts_has(opts, 0) ? opts->strict != 0 : true);
  });
}

tt_status tt_module_print(tt_ctx* h, const tt_module* m, char* buffer, int64_t cap, int64_t* n) {
  if (n) *n = 0;
  if (buffer && cap > 0) *buffer = 0;
  return api_call(h, "module_print", [&](Ctx&) {
    Module& module = module_arg(m);
    out_arg(n, "n", 4);
    give_text(describe_tree(module), buffer, cap, n);
  });
}

// ---- losses ----

tt_status tt_nn_adaptive_log_softmax_with_loss_log_prob(tt_ctx* h, tt_module* m,
                                                        const tt_tensor* input, tt_tensor** out) {
  clear_out(out);
  return api_call(h, "nn_adaptive_log_softmax_with_loss_log_prob", [&](Ctx& c) {
    Module& module = module_arg(m);
    const Tensor& in = tensor_arg(input, "input", 2);
    out_arg(out, "out", 3);
    give(c, out, adaptive_log_prob(module, in));
  });
}
tt_status tt_nn_adaptive_log_softmax_with_loss_predict(tt_ctx* h, tt_module* m,
                                                       const tt_tensor* input, tt_tensor** out) {
  clear_out(out);
  return api_call(h, "nn_adaptive_log_softmax_with_loss_predict", [&](Ctx& c) {
    Module& module = module_arg(m);
    const Tensor& in = tensor_arg(input, "input", 2);
    out_arg(out, "out", 3);
    give(c, out, adaptive_predict(module, in));
  });
}

tt_status tt_nn_triplet_margin_with_distance_loss(
    tt_ctx* h, tt_fn fn, void* user, void (*drop)(void*),
    const tt_nn_triplet_margin_with_distance_loss_opts* opts, tt_module** out) {
  if (out) *out = nullptr;
  bool passed_on = false;
  const tt_status status = api_call(h, "nn_triplet_margin_with_distance_loss", [&](Ctx&) {
    check_opts(opts, 3);
    out_arg(out, "out", 5);
    const double margin = opts_has(opts, 0) ? opts->margin : 1;
    const bool swap = opts_has(opts, 1) && opts->swap;
    const int64_t reduction = opts_has(opts, 2) ? opts->reduction : 1;
    if (!(margin > 0))
      fail_arg(TT_INVALID_ARG, "margin", "margin is {}: must be greater than 0", margin);
    if (reduction < 0 || reduction > 2)
      fail_arg(TT_INVALID_ARG, "reduction", "reduction is {}: must be 0, 1 or 2", reduction);
    passed_on = true;
    *out = to_handle(triplet_margin_with_distance_loss({fn, user, drop}, margin, swap, reduction));
  });
  if (!passed_on) run_drop(drop, user);
  return status;
}

// ---- hooks and modules of the application ----

static tt_status add_hook(tt_ctx* h, const char* call, tt_module* m, ModuleHookKind kind, AnyFn fn,
                          void* user, void (*drop)(void*), int64_t* id) {
  if (id) *id = 0;
  bool passed_on = false;
  tt_status status = api_call(h, call, [&](Ctx&) {
    Module& module = module_arg(m);
    if (!fn) fail_null("fn", 2);
    check_not_frozen(module);
    passed_on = true;
    const int64_t made = module.hooks.add(kind, 0, fn, user, drop);
    if (id) *id = made;
  });
  if (!passed_on) run_drop(drop, user);
  return status;
}
static AnyFn any(tt_module_pre_hook fn) { return reinterpret_cast<AnyFn>(fn); }
static AnyFn any(tt_module_hook fn) { return reinterpret_cast<AnyFn>(fn); }
tt_status tt_module_register_forward_pre_hook(tt_ctx* h, tt_module* m, tt_module_pre_hook fn,
                                              void* user, void (*drop)(void*), int64_t* id) {
  return add_hook(h, "module_register_forward_pre_hook", m, kForwardPreHook, any(fn), user, drop,
                  id);
}
tt_status tt_module_register_forward_hook(tt_ctx* h, tt_module* m, tt_module_hook fn, void* user,
                                          void (*drop)(void*), int64_t* id) {
  return add_hook(h, "module_register_forward_hook", m, kForwardHook, any(fn), user, drop, id);
}
tt_status tt_module_register_full_backward_pre_hook(tt_ctx* h, tt_module* m, tt_module_pre_hook fn,
                                                    void* user, void (*drop)(void*), int64_t* id) {
  return add_hook(h, "module_register_full_backward_pre_hook", m, kBackwardPreHook, any(fn), user,
                  drop, id);
}
tt_status tt_module_register_full_backward_hook(tt_ctx* h, tt_module* m, tt_module_hook fn,
                                                void* user, void (*drop)(void*), int64_t* id) {
  return add_hook(h, "module_register_full_backward_hook", m, kBackwardHook, any(fn), user, drop,
                  id);
}
tt_status tt_module_remove_hook(tt_ctx* h, tt_module* m, int64_t id) {
  return api_call(h, "module_remove_hook", [&](Ctx&) {
    if (!module_arg(m).hooks.remove(id))
      fail_arg(TT_INDEX, "id", "id is {}: the module has no such hook", id);
  });
}

tt_status tt_module_new_custom(tt_ctx* h, const tt_module_def* def, tt_module** out) {
  if (out) *out = nullptr;
  bool passed_on = false;
  tt_status status = api_call(h, "module_new_custom", [&](Ctx&) {
    if (!def) fail_null("def", 1);
    if (def->struct_size < sizeof(tt_module_def))
      fail_arg(TT_ABI, "def", "def.struct_size is {}: must be at least {}", def->struct_size,
               sizeof(tt_module_def));
    if (!def->name || !*def->name) fail_arg(TT_INVALID_ARG, "def", "def.name is empty");
    if (!def->forward) fail_arg(TT_INVALID_ARG, "def", "def.forward is NULL: must be a function");
    out_arg(out, "out", 2);
    passed_on = true;
    *out = to_handle(new_custom_module({def->name, def->user, def->forward, def->copy, def->drop}));
  });
  if (!passed_on && def && def->struct_size >= sizeof(tt_module_def))
    run_drop(def->drop, def->user);
  return status;
}

tt_status tt_nn_multihead_attention_forward(tt_ctx* h, tt_module* m, const tt_tensor* query,
                                            const tt_tensor* key, const tt_tensor* value,
                                            const tt_nn_multihead_attention_forward_opts* opts,
                                            tt_tensor** out, tt_tensor** weights) {
  clear_out(out);
  clear_out(weights);
  return api_call(h, "nn_multihead_attention_forward", [&](Ctx& c) {
    Module& module = module_arg(m);
    if (!is_attention(module))
      fail_arg(TT_INVALID_ARG, "m", "m is a {}: must be a MultiheadAttention", module.type->name);
    check_opts(opts, 5);
    const ModuleKeepAlive kept(module);
    AttentionCall call = {&tensor_arg(query, "query", 2), &tensor_arg(key, "key", 3),
                          &tensor_arg(value, "value", 4)};
    if (opts_has(opts, 0))
      call.key_padding_mask = optional_arg(opts->key_padding_mask, "key_padding_mask", 5);
    if (opts_has(opts, 1)) call.need_weights = opts->need_weights != 0;
    if (opts_has(opts, 2)) call.attn_mask = optional_arg(opts->attn_mask, "attn_mask", 5);
    if (opts_has(opts, 3)) call.average_weights = opts->average_attn_weights != 0;
    if (opts_has(opts, 4)) call.is_causal = opts->is_causal != 0;
    out_arg(out, "out", 6);
    if (call.need_weights) out_arg(weights, "weights", 7);
    TensorPair made = attend(module, call);
    give(c, out, std::move(made.first));
    if (made.second) give(c, weights, std::move(made.second));
  });
}
