/* Re-entrant calls: a trace, poll or hook replaces or releases objects that the running call uses.
   The call continues with the objects that it had, or fails; it never reads freed memory, which the
   builds with sanitizers would report. */
#include "harness.h"

/* The objects of the running test, and the change that is made at every operator. */
static struct {
  tt_module *m, *spare;
  tt_optimizer* optim;
  tt_state_dict* dict;
  tt_tensor *leaf, *other, *out;
  void (*change)(void);
  int changes;
} now;

static void on_op(void* user, const char* op, const char* slot, int32_t depth) {
  (void)user;
  (void)op;
  (void)slot;
  (void)depth;
  now.changes++;
  now.change();
}
static tt_status on_poll(void* user, tt_ctx* x) {
  (void)user;
  (void)x;
  now.changes++;
  now.change();
  return TT_OK;
}
/* Calls inside callbacks: their outs are ours. */
#define IN(call) assert_int_equal((call), TT_OK)

static void start_changes(void (*change)(void)) {
  now.change = change;
  now.changes = 0;
  OK(tt_ctx_trace_dispatch(c, on_op, NULL));
  OK(tt_ctx_set_poll(c, on_poll, NULL, NULL));
}
static void end_changes(void) {
  OK(tt_ctx_trace_dispatch(c, NULL, NULL));
  OK(tt_ctx_set_poll(c, NULL, NULL, NULL));
  assert_true(now.changes > 0);
}

/* Registers another leaf of the same shape under this name. */
static void replace(tt_module* m, const char* name) {
  tt_tensor *old = NULL, *fresh = NULL;
  IN(tt_set_grad_enabled(c, 0, NULL));
  IN(tt_module_get_tensor(c, m, name, &old));
  if (old) {
    IN(tt_clone(c, old, NULL, &fresh));
    IN(tt_requires_grad_(c, fresh, 1));
    IN(tt_module_register_parameter(c, m, name, fresh));
  }
  IN(tt_set_grad_enabled(c, 1, NULL));
  tt_tensor_release(old);
  tt_tensor_release(fresh);
}
static tt_module* linear(int64_t in, int64_t out) {
  tt_module* m;
  OK(tt_nn_linear(c, in, out, NULL, &m));
  return m;
}
static tt_tensor* ones(const int64_t* shape, int64_t n) {
  tt_tensor* t;
  OK(tt_ones(c, shape, n, NULL, &t));
  return t;
}

static const tt_backward_opts kRetain = {.set = TT_BACKWARD_RETAIN_GRAPH, .retain_graph = 1};

/* ---- forward ---- */

static void replace_parameters(void) {
  static const char* const names[] = {"weight",       "bias",   "in_proj_weight",
                                      "in_proj_bias", "bias_k", "bias_v"};
  tt_state_dict* all;
  int64_t at;
  size_t i;
  IN(tt_module_named_parameters(c, now.m, &all));
  for (i = 0; i < sizeof names / sizeof *names; i++)
    if (tt_state_dict_find(c, all, names[i], &at) == TT_OK) replace(now.m, names[i]);
  tt_state_dict_release(all);
}

static void forward_while_parameters_go(tt_module* m, const tt_tensor* const* inputs, int64_t n) {
  tt_tensor* outs[4];
  int64_t n_outs, i;
  now.m = m;
  start_changes(replace_parameters);
  OK(tt_module_forward(c, m, inputs, n, outs, 4, &n_outs));
  end_changes();
  for (i = 0; i < n_outs; i++)
    if (outs[i] && tt_tensor_requires_grad(outs[i])) OK(tt_backward(c, sum_of(outs[i]), &kRetain));
  tt_module_release(m);
}

static void test_parameters(void** state) {
  const tt_nn_multihead_attention_opts mha = {.set = TT_NN_MULTIHEAD_ATTENTION_ADD_BIAS_KV,
                                              .add_bias_kv = 1};
  tt_tensor* x = ones(SHAPE(3, 2, 4));
  tt_tensor* same = ones(SHAPE(3, 2, 4));
  tt_module* m;
  (void)state;
  forward_while_parameters_go(linear(4, 3), LIST(x));
  OK(tt_nn_layer_norm(c, SHAPE(4), NULL, &m));
  forward_while_parameters_go(m, LIST(x));
  OK(tt_nn_batch_norm1d(c, 4, NULL, &m));
  forward_while_parameters_go(m, LIST(ones(SHAPE(5, 4))));
  OK(tt_nn_group_norm(c, 2, 4, NULL, &m));
  forward_while_parameters_go(m, LIST(ones(SHAPE(5, 4))));
  OK(tt_nn_multihead_attention(c, 4, 2, &mha, &m));
  forward_while_parameters_go(m, LIST(x, x, x));
  OK(tt_nn_multihead_attention(c, 4, 2, &mha, &m));
  forward_while_parameters_go(m, LIST(x, same, x));
}

static void replace_children(void) {
  tt_module* child;
  IN(tt_nn_linear(c, 2, 2, NULL, &child));
  IN(tt_module_register_module(c, now.m, "0", child));
  tt_module_release(child);
  IN(tt_nn_linear(c, 2, 2, NULL, &child));
  IN(tt_module_append(c, now.m, child)); /* a few: forward would not end otherwise */
  tt_module_release(child);
  if (tt_module_num_children(now.m) > 6) now.change = replace_parameters;
}
static void test_children(void** state) {
  tt_tensor* y;
  (void)state;
  OK(tt_nn_sequential(c, &now.m));
  now.spare = linear(2, 2);
  OK(tt_module_append(c, now.m, now.spare));
  tt_module_release(now.spare);
  start_changes(replace_children);
  OK(tt_module_call(c, now.m, ones(SHAPE(1, 2)), &y));
  end_changes();
  tt_module_release(now.m);
}

/* ---- whole trees ---- */

static void grow(void) {
  static int n;
  char name[24];
  tt_tensor* t;
  snprintf(name, sizeof name, "p%d", n++ % 40);
  IN(tt_ones(c, SHAPE(2), NULL, &t));
  IN(tt_module_register_parameter(c, now.m, name, t));
  IN(tt_state_dict_set(c, now.dict, name, t));
  IN(tt_state_dict_set(c, now.dict, "weight", t));
  tt_tensor_release(t);
  replace(now.m, "weight");
}
static void test_trees(void** state) {
  tt_module* copy;
  tt_state_dict* had;
  tt_status s;
  (void)state;
  now.m = linear(2, 2);
  OK(tt_state_dict_new(c, &now.dict));
  start_changes(grow);
  OK(tt_module_copy(c, now.m, &copy));
  OK(tt_module_to(c, now.m, NULL, TT_F64));
  OK(tt_ctx_trace_dispatch(c, NULL, NULL));
  OK(tt_module_state_dict(c, copy, &had));
  tt_state_dict_release(now.dict);
  now.dict = had;
  OK(tt_ctx_trace_dispatch(c, on_op, NULL));
  s = tt_module_load_state_dict(c, copy, had, NULL); /* its values change meanwhile */
  assert_true(s == TT_OK || s == TT_SHAPE);
  end_changes();
  tt_state_dict_release(now.dict);
  tt_module_release(now.m);
  tt_module_release(copy);
}

/* ---- gradients ---- */

static void drop_gradients(void) {
  tt_tensor* g;
  IN(tt_tensor_set_grad(c, now.leaf, NULL));
  IN(tt_tensor_set_grad(c, now.other, NULL));
  IN(tt_ones(c, SHAPE(2, 3), &(tt_ones_opts){.set = TT_ONES_DTYPE, .dtype = TT_F64}, &g));
  if (now.changes % 2) IN(tt_tensor_set_grad(c, now.other, g));
  if (now.changes % 3 == 0) IN(tt_tensor_set_grad(c, now.leaf, g));
  tt_tensor_release(g);
}
static tt_tensor* two_by_three(void) { return param(SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6)); }
static tt_tensor* loss_of(void) {
  tt_tensor *e, *y;
  OK(tt_mul(c, now.leaf, now.other, &e));
  OK(tt_exp(c, e, &y));
  return sum_of(y);
}
static void test_gradients(void** state) {
  const tt_backward_opts create = {.set = TT_BACKWARD_CREATE_GRAPH, .create_graph = 1};
  tt_tensor *params[2], *norm, *t;
  int i;
  (void)state;
  params[0] = now.leaf = two_by_three();
  params[1] = now.other = two_by_three();
  OK(tt_optim_adam(c, params, 2, NULL, &now.optim));
  for (i = 0; i < 4; i++) {
    OK(tt_backward(c, loss_of(), i % 2 ? &create : NULL));
    OK(tt_transpose(c, now.leaf, 0, 1, &t)); /* a gradient with other strides than the parameter */
    OK(tt_transpose(c, two_by_three(), 0, 1, &t));
    OK(tt_contiguous(c, t, &t));
    OK(tt_transpose(c, t, 0, 1, &t));
    OK(tt_detach(c, t, &t));
    OK(tt_tensor_set_grad(c, now.leaf, t));
    t = loss_of();
    start_changes(drop_gradients);
    OK(tt_backward(c, t, i % 2 ? &create : NULL));
    OK(tt_optim_step(c, now.optim));
    OK(tt_clip_grad_norm_(c, params, 2, 1, NULL, &norm));
    OK(tt_clip_grad_value_(c, params, 2, 1));
    OK(tt_optim_zero_grad(c, now.optim, 0));
    end_changes();
  }
  tt_optim_release(now.optim);
}

static void add_parameters(void) {
  tt_tensor* t;
  IN(tt_ones(c, SHAPE(2, 3), NULL, &t));
  IN(tt_optim_add_param_group(c, now.optim, &t, 1));
  IN(tt_tensor_set_grad(c, t, t == now.out ? NULL : now.out));
  tt_tensor_release(t);
}
static void test_parameters_of_an_optimizer(void** state) {
  tt_tensor *params[2], *value = two_by_three();
  (void)state;
  params[0] = now.leaf = two_by_three();
  params[1] = now.other = two_by_three();
  now.out = ones(SHAPE(2, 3));
  OK(tt_optim_adam(c, params, 2, NULL, &now.optim));
  OK(tt_backward(c, loss_of(), NULL));
  start_changes(add_parameters);
  OK(tt_optim_step(c, now.optim));
  OK(tt_optim_zero_grad(c, now.optim, 0));
  OK(tt_optim_set_state(c, now.optim, 0, "exp_avg", value));
  OK(tt_optim_set_state(c, now.optim, 0, "step", ones(SHAPE(1))));
  end_changes();
  assert_true(tt_optim_num_params(now.optim) > 6);
  tt_optim_release(now.optim);
}

/* ---- graphs ---- */

static int again; /* 1: keeps the graph; 2: frees it */
static void run_again(void) {
  tt_status s = TT_OK;
  if (again) s = tt_backward(c, now.out, again == 1 ? &kRetain : NULL);
  assert_true(s == TT_OK || s == TT_AUTOGRAD);
}
/* During a backward, at every operator, another backward runs through the same graph. */
static void test_backward_within(void** state) {
  (void)state;
  for (again = 1; again <= 2; again++) {
    tt_status s;
    now.leaf = two_by_three();
    now.other = two_by_three();
    now.out = loss_of();
    start_changes(run_again);
    s = tt_backward(c, now.out, &kRetain);
    assert_true(s == TT_OK || s == TT_AUTOGRAD);
    end_changes();
    now.out = loss_of();
    OK(tt_tensor_set_grad(c, now.leaf, NULL));
    OK(tt_backward(c, now.out, &kRetain));
    assert_true(value_of(sum_of(grad_of(now.leaf))) > 0);
  }
}

static tt_status within(void* user, tt_ctx* x, const tt_tensor* grad, tt_tensor** out) {
  (void)user;
  (void)x;
  (void)grad;
  (void)out;
  return again-- > 0 ? tt_backward(c, now.out, &kRetain) : TT_OK;
}
/* A backward from a hook works, and each run adds its gradient once. */
static void test_backward_within_a_hook(void** state) {
  tt_tensor *h, *y;
  int64_t id;
  (void)state;
  now.leaf = leaf(DATA(1, 2));
  OK(tt_mul_f64(c, now.leaf, 3, &h));
  OK(tt_mul(c, h, h, &y)); /* saves h */
  now.out = sum_of(y);
  OK(tt_register_hook(c, h, within, NULL, NULL, &id));
  again = 3;
  OK(tt_backward(c, now.out, &kRetain));
  VALUES(grad_of(now.leaf), 4 * 18, 4 * 36);
  again = 1; /* the outer run has freed what the node above the hook saved */
  FAILS(tt_backward(c, now.out, NULL), TT_CALLBACK, "");
}

/* A tensor that retains its gradient is released; its node stays. */
static void test_retained(void** state) {
  tt_tensor *h, *y, *g;
  (void)state;
  now.leaf = leaf(DATA(1, 2));
  OK(tt_mul_f64(c, now.leaf, 3, &h));
  tt_tensor_retain(h);
  OK(tt_retain_grad(c, h));
  OK(tt_mul(c, h, h, &y));
  now.out = sum_of(y);
  OK(tt_backward(c, now.out, &kRetain));
  OK(tt_backward(c, now.out, &kRetain));
  VALUES(grad_of(h), 12, 24);
  OK(tt_mul_f64_(c, h, 2)); /* it has another node from now on */
  OK(tt_backward(c, sum_of(h), &kRetain));
  VALUES(grad_of(h), 13, 25);
  OK(tt_tensor_set_grad(c, h, NULL));
  OK(tt_tensor_grad(c, h, &g));
  assert_null(g);
  OK(tt_backward(c, sum_of(h), &kRetain));
  VALUES(grad_of(h), 1, 1);
  tt_tensor_release(h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_parameters),
      SCOPED(test_children),
      SCOPED(test_trees),
      SCOPED(test_gradients),
      SCOPED(test_parameters_of_an_optimizer),
      SCOPED(test_backward_within),
      SCOPED(test_backward_within_a_hook),
      SCOPED(test_retained),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
