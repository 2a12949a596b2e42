/* Gradients, hooks, nodes and functions of the application. */
#include "program.h"

/* ---- callbacks ---- */

static tt_status on_grad(void* user, tt_ctx* c, const tt_tensor* grad, tt_tensor** replacement) {
  Program* p = user;
  const tt_status s = reenter(p, c);
  if (!s && one_in(p, 4)) return tt_mul_f64(c, grad, 2, replacement);
  return s;
}
static tt_status on_leaf(void* user, tt_ctx* c, const tt_tensor* leaf) {
  (void)leaf;
  return reenter(user, c);
}
static tt_status on_node(void* user, tt_ctx* c, tt_tensor* const* grads, int64_t n,
                         tt_tensor** replacements) {
  Program* p = user;
  const tt_status s = reenter(p, c);
  if (!s && n && grads[0] && one_in(p, 4)) return tt_neg(c, grads[0], &replacements[0]);
  return s;
}

static tt_status forward(void* user, tt_ctx* c, tt_function* f, const tt_tensor* const* in,
                         int64_t n_in, tt_tensor** outs, int64_t n_outs) {
  Program* p = user;
  tt_status s = reenter(p, c);
  int64_t i;
  if (!s) s = tt_function_save(c, f, in, n_in);
  for (i = 0; i < n_outs && !s; i++) s = tt_mul_f64(c, in[0], 1 + (double)i, &outs[i]);
  return s;
}
static tt_status backward(void* user, tt_ctx* c, tt_function* f, tt_tensor* const* grads,
                          int64_t n_outs, tt_tensor** out, int64_t n_in) {
  Program* p = user;
  tt_tensor* saved = NULL;
  tt_status s = reenter(p, c);
  int64_t i;
  (void)n_outs;
  if (!s) s = tt_function_saved(c, f, 0, &saved);
  for (i = 0; i < n_in && !s && grads[0]; i++)
    if (one_in(p, 2)) s = tt_mul(c, saved, grads[0], &out[i]);
  tt_tensor_release(saved);
  return s;
}

static void apply_function(Program* p) {
  const tt_tensor* in[2] = {any_tensor(p), NULL};
  tt_tensor* outs[2];
  const int64_t n_in = 1 + below(p, 2), n_outs = one_in(p, 20) ? small_int(p) % 3 : 1 + below(p, 2);
  tt_function_def def = {.struct_size = sizeof def,
                         .name = "random",
                         .user = p,
                         .forward = forward,
                         .backward = backward};
  in[1] = tensor_like(p, in[0]);
  def.drop = counted_drop(p);
  memset(outs, 0, sizeof outs);
  CALL(tt_function_apply(p->c, &def, in, n_in, outs, n_outs));
  keep_tensor(p, outs[0]);
  keep_tensor(p, outs[1]);
}

/* ---- backward ---- */

static void run_backward(Program* p, const tt_tensor* t, const tt_tensor* other) {
  const tt_tensor* inputs[2] = {leaf_tensor(p), other};
  const tt_tensor* tensors[2] = {t, other};
  const tt_tensor* grads[2] = {tensor_like(p, t), NULL};
  tt_tensor* out[2] = {NULL, NULL};
  tt_backward_opts o = {.set = any(p) & (one_in(p, 30) ? 255 : 15)};
  tt_grad_opts g = {.set = any(p) & 15};
  o.gradient = grads[0];
  o.retain_graph = below(p, 2);
  o.create_graph = 0; /* it would make leaves and their gradients hold each other */
  o.inputs = inputs;
  o.n_inputs = 1 + below(p, 2);
  g.grad_outputs = grads;
  g.n_grad_outputs = 1;
  g.retain_graph = below(p, 2);
  g.create_graph = one_in(p, 3);
  g.allow_unused = below(p, 2);
  switch (below(p, 4)) {
    case 0: CALL(tt_backward(p->c, t, NULL)); break;
    case 1: CALL(tt_backward(p->c, t, &o)); break;
    case 2: CALL(tt_backward_all(p->c, tensors, grads, 2, &o)); break;
    default:
      CALL(tt_grad(p->c, &t, 1, inputs, 1 + below(p, 2), &g, out));
      keep_tensor(p, out[0]);
      keep_tensor(p, out[1]);
  }
}
static tt_tensor* differentiable(Program* p) {
  const int first = below(p, kTensors);
  int i;
  for (i = 0; i < kTensors; i++) {
    tt_tensor* t = p->tensors[(first + i) % kTensors].t;
    if (tt_tensor_requires_grad(t) && !tt_tensor_is_leaf(t)) return t;
  }
  return any_tensor(p);
}
static void differentiate(Program* p) {
  tt_tensor *t = differentiable(p), *other = differentiable(p), *sum = NULL;
  if (one_in(p, 3)) return run_backward(p, t, other);
  CALL(tt_sum(p->c, t, NULL, &sum));
  if (!sum) return;
  run_backward(p, sum, other);
  keep_tensor(p, sum);
}

/* ---- nodes ---- */

static void use_nodes(Program* p) {
  tt_node** place = &p->nodes[below(p, kNodes)];
  tt_node *node = *place, *next = NULL;
  const tt_tensor* t = differentiable(p);
  int64_t id = below(p, 3);
  switch (below(p, 5)) {
    case 0: CALL(tt_tensor_grad_fn(p->c, t, &next)); break;
    case 1: CALL(tt_node_next(p->c, node, small_int(p), &next)); break;
    case 2: {
      tt_tensor* leaf = NULL;
      CALL(tt_node_leaf(p->c, node, small_int(p), &leaf));
      keep_tensor(p, leaf);
      break;
    }
    case 3: {
      const int32_t pre = below(p, 2);
      void (*drop)(void*) = counted_drop(p);
      CALL(tt_node_register_hook(p->c, node, pre, on_node, p, drop, &id));
      break;
    }
    default:
      CALL(tt_node_remove_hook(p->c, node, id));
      tt_node_name(node);
      tt_node_num_inputs(node);
  }
  if (!next) return;
  if (p->nested && node) {
    tt_node_release(next);
    return;
  }
  *place = next;
  tt_node_release(node);
}

void act_autograd(Program* p) {
  tt_tensor *t = any_tensor(p), *leaf = leaf_tensor(p), *like = tensor_like(p, leaf), *out = NULL;
  const int32_t on = !one_in(p, 4);
  int64_t id = below(p, 50);
  switch (below(p, 14)) {
    case 0:
    case 1:
    case 2: ATOMIC(tt_requires_grad_(p->c, t, on)); break;
    case 3:
    case 4:
    case 5: return differentiate(p);
    case 6: ATOMIC(tt_retain_grad(p->c, t)); break;
    case 7: {
      tt_tensor* grad = NULL;
      CALL(tt_tensor_grad(p->c, leaf, &grad));
      if (grad) out = private_copy(p, grad);
      drop_copy(p, grad);
      break;
    }
    case 8: {
      tt_tensor* grad = one_in(p, 4) ? NULL : private_copy(p, like);
      ATOMIC(tt_tensor_set_grad(p->c, leaf, grad));
      drop_copy(p, grad);
      break;
    }
    case 9: {
      void (*drop)(void*) = counted_drop(p);
      CALL(tt_register_hook(p->c, t, on_grad, p, drop, &id));
      break;
    }
    case 10: {
      void (*drop)(void*) = counted_drop(p);
      CALL(tt_register_accumulate_hook(p->c, leaf, on_leaf, p, drop, &id));
      break;
    }
    case 11: CALL(tt_remove_hook(p->c, t, id)); break;
    case 12: return use_nodes(p);
    default: return apply_function(p);
  }
  keep_tensor(p, out);
}
