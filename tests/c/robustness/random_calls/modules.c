/* Layers, trees of them, and their hooks. */
#include "program.h"

/* ---- layers ---- */

static tt_module* made_layer(Program* p) {
  tt_ctx* c = p->c;
  tt_module* m = NULL;
  const int64_t a = 1 + below(p, 5), b = 1 + below(p, 5), k[2] = {1 + below(p, 3), 1 + below(p, 3)};
  const int64_t odd = small_int(p);
  switch (below(p, 46)) {
    case 0:
    case 1:
    case 2:
    case 3: CALL(tt_nn_sequential(c, &m)); break;
    case 4:
    case 5: CALL(tt_nn_linear(c, a, b, NULL, &m)); break;
    case 6: CALL(tt_nn_linear(c, odd, b, NULL, &m)); break;
    case 7: CALL(tt_nn_embedding(c, odd, b, NULL, &m)); break;
    case 8: CALL(tt_nn_layer_norm(c, k, below(p, 3), NULL, &m)); break;
    case 9: CALL(tt_nn_dropout(c, NULL, &m)); break;
    case 10: CALL(tt_nn_relu(c, NULL, &m)); break;
    case 11: CALL(tt_nn_gelu(c, NULL, &m)); break;
    case 12: CALL(tt_nn_softmax(c, NULL, &m)); break;
    case 13: CALL(tt_nn_flatten(c, NULL, &m)); break;
    case 14: CALL(tt_nn_mse_loss(c, NULL, &m)); break;
    case 15: CALL(tt_nn_cross_entropy_loss(c, NULL, &m)); break;
    case 16: CALL(tt_nn_multihead_attention(c, odd, 1 + below(p, 2), NULL, &m)); break;
    case 17: CALL(tt_nn_conv1d(c, a, b, k, 1, NULL, &m)); break;
    case 18:
    case 19: CALL(tt_nn_conv2d(c, a, b, k, 1 + below(p, 2), NULL, &m)); break;
    case 20: CALL(tt_nn_conv3d(c, a, b, k, 1, NULL, &m)); break;
    case 21: CALL(tt_nn_conv_transpose2d(c, a, b, k, 1, NULL, &m)); break;
    case 22:
    case 23: CALL(tt_nn_batch_norm1d(c, a, NULL, &m)); break;
    case 24:
    case 25: CALL(tt_nn_batch_norm2d(c, a, NULL, &m)); break;
    case 26: CALL(tt_nn_group_norm(c, a, b, NULL, &m)); break;
    case 27: CALL(tt_nn_rms_norm(c, k, 1, NULL, &m)); break;
    case 28: CALL(tt_nn_max_pool1d(c, k, 1, NULL, &m)); break;
    case 29: CALL(tt_nn_max_pool2d(c, k, 2, NULL, &m)); break;
    case 30: CALL(tt_nn_avg_pool2d(c, k, 1, NULL, &m)); break;
    case 31: CALL(tt_nn_adaptive_avg_pool2d(c, k, 1, &m)); break;
    case 32: CALL(tt_nn_module_list(c, &m)); break;
    case 33: CALL(tt_nn_module_dict(c, &m)); break;
    case 34: CALL(tt_nn_bce_with_logits_loss(c, NULL, &m)); break;
    case 35: CALL(tt_nn_kl_div_loss(c, NULL, &m)); break;
    case 36: CALL(tt_nn_glu(c, NULL, &m)); break;
    case 37: CALL(tt_nn_softplus(c, NULL, &m)); break;
    case 38: CALL(tt_nn_hardtanh(c, NULL, &m)); break;
    case 39: CALL(tt_nn_prelu(c, NULL, &m)); break;
    case 40: CALL(tt_nn_reflection_pad2d(c, k, 1, &m)); break;
    case 41: CALL(tt_nn_instance_norm1d(c, a, NULL, &m)); break;
    case 42: CALL(tt_nn_cross_map_lrn2d(c, odd, NULL, &m)); break;
    case 43: CALL(tt_nn_lp_pool2d(c, 2, k, 2, NULL, &m)); break;
    case 44: CALL(tt_nn_unflatten(c, 0, k, 2, &m)); break;
    default: CALL(tt_nn_identity(c, &m));
  }
  return m;
}

/* ---- of the application ---- */

static tt_status run(void* user, tt_ctx* c, tt_module* m, const tt_tensor* const* in, int64_t n,
                     tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  Program* p = user;
  const tt_status s = reenter(p, c);
  (void)m;
  if (s || !n || !cap || !in[0]) return s ? s : TT_INVALID_ARG;
  if (one_in(p, 20)) *n_outs = small_int(p);
  return tt_neg(c, in[0], &outs[0]);
}
static tt_status copy(void* user, tt_ctx* c, void** out) {
  Program* p = user;
  const tt_status s = reenter(p, c);
  if (s) return s;
  p->registered++; /* the copy drops its user, too */
  *out = user;
  return TT_OK;
}
static tt_module* made_module(Program* p) {
  tt_module_def def = {sizeof def, "Random", p, run, one_in(p, 4) ? NULL : copy, NULL};
  tt_module* m = NULL;
  if (!one_in(p, 6)) return made_layer(p);
  def.drop = counted_drop(p);
  CALL(tt_module_new_custom(p->c, &def, &m));
  return m;
}

static tt_status on_inputs(void* user, tt_ctx* c, tt_module* m, const tt_tensor* const* in,
                           int64_t n, tt_tensor** replacements) {
  Program* p = user;
  const tt_status s = reenter(p, c);
  (void)m;
  if (!s && n && in[0] && one_in(p, 4)) return tt_clone(c, in[0], NULL, &replacements[0]);
  return s;
}
static tt_status on_results(void* user, tt_ctx* c, tt_module* m, const tt_tensor* const* in,
                            int64_t n_in, const tt_tensor* const* outs, int64_t n_outs,
                            tt_tensor** replacements) {
  (void)in;
  (void)n_in;
  return on_inputs(user, c, m, outs, n_outs, replacements);
}
static void add_hook(Program* p, tt_module* m) {
  void (*drop)(void*) = counted_drop(p);
  int64_t id = 0;
  switch (below(p, 4)) {
    case 0: CALL(tt_module_register_forward_pre_hook(p->c, m, on_inputs, p, drop, &id)); break;
    case 1: CALL(tt_module_register_forward_hook(p->c, m, on_results, p, drop, &id)); break;
    case 2:
      CALL(tt_module_register_full_backward_pre_hook(p->c, m, on_inputs, p, drop, &id));
      break;
    default: CALL(tt_module_register_full_backward_hook(p->c, m, on_results, p, drop, &id));
  }
  if (id && one_in(p, 2)) CALL(tt_module_remove_hook(p->c, m, id));
}

/* ---- operations on them ---- */

static void call_module(Program* p, tt_module* m) {
  const tt_tensor* in[3] = {any_tensor(p), NULL, NULL};
  tt_tensor *out = NULL, *outs[4];
  int64_t n = 0, i;
  in[1] = one_in(p, 4) ? NULL : tensor_like(p, in[0]);
  in[2] = one_in(p, 2) ? NULL : tensor_like(p, in[0]);
  switch (below(p, 4)) {
    case 0: {
      const int64_t n_in = 1 + below(p, 3), cap = one_in(p, 10) ? below(p, 2) : 4;
      ATOMIC(tt_module_forward(p->c, m, in, n_in, outs, cap, &n));
      for (i = 0; i < n && i < cap; i++) keep_tensor(p, outs[i]);
      return;
    }
    case 1: {
      tt_tensor* weights = NULL;
      CALL(tt_nn_multihead_attention_forward(p->c, m, in[0], in[0], in[1], NULL, &out, &weights));
      keep_tensor(p, weights);
      break;
    }
    default: ATOMIC(tt_module_call(p->c, m, in[0], &out));
  }
  keep_tensor(p, out);
}
/* Only what cannot get a history. */
static void keep_if_leaf(Program* p, tt_tensor* t) {
  if (tt_tensor_requires_grad(t) && tt_tensor_is_leaf(t)) keep_tensor(p, t);
  else drop_copy(p, t);
}
static void list_parameters(Program* p, tt_module* m) {
  tt_tensor* outs[16];
  int64_t n = 0, i;
  memset(outs, 0, sizeof outs);
  CALL(tt_module_parameters(p->c, m, outs, 16, &n));
  for (i = 0; i < n && i < 16; i++) keep_if_leaf(p, outs[i]);
}
static void read_tree(Program* p, tt_module* m) {
  static const char* const kPaths[] = {"0",   "0.weight", "weight", "running_mean",
                                       "1.0", "",         ".",      "x"};
  const char* path = kPaths[below(p, 8)];
  tt_module* found = NULL;
  tt_tensor* t = NULL;
  char text[400];
  int64_t n;
  switch (below(p, 4)) {
    case 0: CALL(tt_module_child(p->c, m, small_int(p), &found)); break;
    case 1: CALL(tt_module_get_submodule(p->c, m, path, &found)); break;
    case 2: CALL(tt_module_get_tensor(p->c, m, path, &t)); break;
    default: CALL(tt_module_print(p->c, m, text, sizeof text, &n));
  }
  keep_if_leaf(p, t);
  if (found) keep_module(p, found);
}
static void change_tree(Program* p, tt_module* m) {
  static const char* const kNames[] = {"weight", "bias", "a",   "b",           "0",
                                       "1",      "",     "x.y", "running_mean"};
  const char* name = kNames[below(p, 9)];
  tt_module* child = any_module(p);
  tt_tensor* t = one_in(p, 8) ? NULL : private_copy(p, leaf_tensor(p));
  const int32_t persistent = below(p, 2);
  switch (below(p, 5)) {
    case 0:
      if (t && one_in(p, 2)) CALL(tt_requires_grad_(p->c, t, 1));
      ATOMIC(tt_module_register_parameter(p->c, m, name, t));
      break;
    case 1: ATOMIC(tt_module_register_buffer(p->c, m, name, t, persistent)); break;
    case 2: ATOMIC(tt_module_register_module(p->c, m, name, child)); break;
    default: ATOMIC(tt_module_append(p->c, m, child));
  }
  drop_copy(p, t);
}

void act_module(Program* p) {
  tt_module *m = any_module(p), *other = NULL;
  tt_state_dict *state = any_dict(p), *made = NULL;
  const tt_device device = any_device(p);
  const tt_dtype d = one_in(p, 2) ? 0 : any_dtype(p);
  const int32_t on = below(p, 2);
  tt_module_load_state_dict_opts strict = {.set = TT_MODULE_LOAD_STATE_DICT_STRICT, .strict = on};
  switch (below(p, 17)) {
    case 0:
    case 1:
    case 2: keep_module(p, made_module(p)); return;
    case 3:
    case 4:
    case 5: call_module(p, m); return;
    case 6:
    case 7: change_tree(p, m); return;
    case 8: read_tree(p, m); return;
    case 9: list_parameters(p, m); return;
    case 10: ATOMIC(tt_module_train(p->c, m, on)); return;
    case 11: ATOMIC(tt_module_requires_grad_(p->c, m, on)); return;
    case 12: ATOMIC(tt_module_to(p->c, m, one_in(p, 2) ? NULL : &device, d)); return;
    case 13:
      CALL(tt_module_copy(p->c, m, &other));
      if (other) keep_module(p, other);
      return;
    case 14:
      CALL(tt_module_state_dict(p->c, m, &made));
      if (made) keep_dict(p, made);
      return;
    case 15: ATOMIC(tt_module_load_state_dict(p->c, m, state, &strict)); return;
    default: add_hook(p, m);
  }
}
