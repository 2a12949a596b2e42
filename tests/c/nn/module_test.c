/* Modules: trees, state, training mode, freezing, moves, copies, hooks, modules of the
   application, arguments of layers. */
#include "harness.h"
#include <math.h>

static tt_module* linear(int64_t in, int64_t out, int bias) {
  tt_module* m = NULL;
  const tt_nn_linear_opts o = {.set = TT_NN_LINEAR_BIAS, .bias = bias};
  OK(tt_nn_linear(c, in, out, &o, &m));
  return settle(m);
}
static tt_module* relu(void) {
  tt_module* m = NULL;
  OK(tt_nn_relu(c, NULL, &m));
  return m;
}
/* Appends the module and releases the reference. */
static void put(tt_module* to, tt_module* child) {
  OK(tt_module_append(c, to, child));
  tt_module_release(child);
}
static tt_module* mlp(void) {
  tt_module* m = NULL;
  OK(tt_nn_sequential(c, &m));
  put(m, linear(4, 8, 1));
  put(m, relu());
  put(m, linear(8, 2, 0));
  return m;
}
static tt_tensor* tensor_at(const tt_module* m, const char* path) {
  tt_tensor* t = NULL;
  OK(tt_module_get_tensor(c, m, path, &t));
  return t;
}
static void prints(const tt_module* m, const char* want) {
  char text[2048];
  int64_t n;
  OK(tt_module_print(c, m, text, sizeof text, &n));
  assert_string_equal(text, want);
  assert_int_equal(n, strlen(want));
  FAILS(tt_module_print(c, m, text, n, &n), TT_BUFFER_TOO_SMALL, "terminating zero");
}

static void test_linear(void** state) {
  (void)state;
  tt_module* m = linear(3, 2, 1);
  tt_tensor* x = make(TT_F32, SHAPE(1, 3), DATA(1, 2, 3));
  tt_tensor* y;
  tt_tensor* w = tensor_at(m, "weight");
  tt_tensor* want;
  HAS_SHAPE(w, 2, 3);
  assert_true(tt_tensor_requires_grad(w));
  assert_string_equal(tt_module_type(m), "Linear");
  OK(tt_module_call(c, m, x, &y));
  OK(tt_linear(c, x, w, tensor_at(m, "bias"), &want));
  double bound = 1 / sqrt(3.0);
  double* v = values_of(want);
  VALUES(y, v[0], v[1]);
  free(v);
  v = values_of(w);
  for (int i = 0; i < 6; i++) assert_true(v[i] >= -bound && v[i] <= bound && v[i] != 0);
  free(v);
  prints(m, "Linear(in_features=3, out_features=2, bias=True)");
  tt_module_release(m);
}

static void test_tree(void** state) {
  (void)state;
  tt_module* m = mlp();
  tt_module* inner = NULL;
  tt_module* found = NULL;
  prints(m,
         "Sequential(\n  (0): Linear(in_features=4, out_features=8, bias=True)\n  (1): ReLU()\n"
         "  (2): Linear(in_features=8, out_features=2, bias=False)\n)");
  assert_int_equal(tt_module_num_children(m), 3);
  assert_string_equal(tt_module_child_name(m, 2), "2");
  assert_null(tt_module_child_name(m, 3));
  OK(tt_nn_sequential(c, &inner));
  OK(tt_module_register_module(c, inner, "body", m));
  OK(tt_module_get_submodule(c, inner, "body.1", &found));
  assert_string_equal(tt_module_type(found), "ReLU");
  tt_module_release(found);
  FAILS(tt_module_get_submodule(c, inner, "body.7", &found), TT_INDEX, "body.7");
  assert_null(found);
  FAILS(tt_module_register_module(c, m, "loop", inner), TT_INVALID_ARG, "cycles");
  FAILS(tt_module_register_module(c, m, "self", m), TT_INVALID_ARG, "cycles");
  FAILS(tt_module_register_module(c, m, "a.b", inner), TT_INVALID_ARG, "dot");
  FAILS(tt_module_register_module(c, m, "", inner), TT_INVALID_ARG, "empty");
  tt_module_release(m);
  OK(tt_module_child(c, inner, 0, &found)); /* the tree owns it */
  assert_int_equal(tt_module_num_children(found), 3);
  tt_module_release(inner);
  assert_int_equal(tt_module_num_children(found), 3);
  tt_module_release(found);
}

static void test_state_dict(void** state) {
  (void)state;
  tt_module* a = mlp();
  tt_module* b = mlp();
  tt_state_dict *sa, *sb, *bad;
  tt_tensor *x = make(TT_F32, SHAPE(1, 4), DATA(1, -2, 3, 4)), *ya, *yb;
  OK(tt_module_state_dict(c, a, &sa));
  assert_int_equal(tt_state_dict_size(sa), 3);
  assert_string_equal(tt_state_dict_name(sa, 0), "0.weight");
  assert_string_equal(tt_state_dict_name(sa, 1), "0.bias");
  assert_string_equal(tt_state_dict_name(sa, 2), "2.weight");
  OK(tt_module_load_state_dict(c, b, sa, NULL));
  OK(tt_module_call(c, a, x, &ya));
  OK(tt_module_call(c, b, x, &yb));
  double* v = values_of(ya);
  VALUES(yb, v[0], v[1]);
  /* Everything is checked before anything is written. */
  OK(tt_state_dict_new(c, &bad));
  OK(tt_state_dict_set(c, bad, "0.weight", tensor_at(a, "0.weight")));
  FAILS(tt_module_load_state_dict(c, b, bad, NULL), TT_INVALID_ARG, "missing: 0.bias, 2.weight");
  OK(tt_state_dict_set(c, bad, "0.bias", number(TT_F32, 1)));
  OK(tt_state_dict_set(c, bad, "2.weight", number(TT_F32, 1)));
  OK(tt_state_dict_set(c, bad, "3.weight", number(TT_F32, 1)));
  FAILS(tt_module_load_state_dict(c, b, bad, NULL), TT_INVALID_ARG, "unexpected: 3.weight");
  const tt_module_load_state_dict_opts loose = {.set = TT_MODULE_LOAD_STATE_DICT_STRICT,
                                                .strict = 0};
  FAILS(tt_module_load_state_dict(c, b, bad, &loose), TT_SHAPE,
        "0.bias is [] in the state, [8] in the module");
  OK(tt_module_call(c, b, x, &yb));
  VALUES(yb, v[0], v[1]);
  free(v);
  OK(tt_module_state_dict(c, b, &sb));
  tt_tensor* shared;
  OK(tt_state_dict_get(c, sb, 0, &shared));
  assert_ptr_equal(tt_tensor_data(shared), tt_tensor_data(tensor_at(b, "0.weight")));
  tt_state_dict_release(sa);
  tt_state_dict_release(sb);
  tt_state_dict_release(bad);
  tt_module_release(a);
  tt_module_release(b);
}

static void test_shared_parameters(void** state) {
  (void)state;
  tt_module* m = NULL;
  tt_module* a = linear(3, 3, 0);
  tt_module* b = linear(3, 3, 0);
  tt_module* twin;
  tt_tensor* w = tensor_at(a, "weight");
  tt_tensor* list[4];
  tt_tensor* x = make(TT_F32, SHAPE(1, 3), DATA(1, 1, 1));
  tt_tensor* y;
  tt_state_dict* s;
  int64_t n;
  OK(tt_nn_sequential(c, &m));
  OK(tt_module_register_parameter(c, b, "weight", w));
  put(m, a);
  put(m, b);
  OK(tt_module_parameters(c, m, list, 4, &n));
  assert_int_equal(n, 1);
  assert_ptr_equal(list[0], w);
  OK(tt_module_state_dict(c, m, &s));
  assert_int_equal(tt_state_dict_size(s), 2);
  OK(tt_module_copy(c, m, &twin)); /* shares inside the copy, nothing with the original */
  assert_ptr_equal(tensor_at(twin, "0.weight"), tensor_at(twin, "1.weight"));
  assert_ptr_not_equal(tensor_at(twin, "0.weight"), w);
  assert_true(tt_tensor_requires_grad(tensor_at(twin, "0.weight")));
  OK(tt_module_call(c, m, x, &y));
  OK(tt_backward(c, sum_of(y), NULL));
  assert_int_equal(tt_tensor_numel(grad_of(w)), 9);
  OK(tt_module_zero_grad(c, m));
  tt_tensor* g = NULL;
  OK(tt_tensor_grad(c, w, &g));
  assert_null(g);
  tt_state_dict_release(s);
  tt_module_release(m);
  tt_module_release(twin);
}

static void test_freeze_train_and_move(void** state) {
  (void)state;
  tt_module* m = mlp();
  const tt_device meta = {TT_META, 0};
  tt_module* inner;
  tt_tensor* w = tensor_at(m, "0.weight");
  OK(tt_module_child(c, m, 1, &inner));
  assert_int_equal(tt_module_training(inner), 1);
  OK(tt_module_train(c, m, 0));
  assert_int_equal(tt_module_training(inner), 0);
  OK(tt_module_requires_grad_(c, m, 0));
  assert_int_equal(tt_tensor_requires_grad(w), 0);
  OK(tt_module_requires_grad_(c, m, 1));
  tt_tensor *x = make(TT_F32, SHAPE(1, 4), DATA(1, 1, 1, 1)), *y;
  OK(tt_module_call(c, m, x, &y));
  OK(tt_backward(c, sum_of(y), NULL));
  OK(tt_module_to(c, m, NULL, TT_F64)); /* the handle stays valid, its gradient moves along */
  assert_int_equal(tt_tensor_dtype(w), TT_F64);
  assert_int_equal(tt_tensor_dtype(grad_of(w)), TT_F64);
  FAILS(tt_module_to(c, m, NULL, TT_I32), TT_DTYPE, "must be floating");
  OK(tt_module_to(c, m, &meta, 0));
  assert_int_equal(tt_tensor_device_type(w), TT_META);
  tt_module_release(inner);
  tt_module_release(m);
}

/* ---- buffers and parameters of a module of the application ---- */

typedef struct Scale {
  int drops, calls, copies, fail;
} Scale;
static tt_status scale_forward(void* user, tt_ctx* x, tt_module* m, const tt_tensor* const* in,
                               int64_t n, tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  Scale* s = (Scale*)user;
  tt_tensor* w = NULL;
  tt_status status = tt_module_get_tensor(x, m, "scale", &w);
  s->calls++;
  assert_true(n == 1 && cap >= 1 && *n_outs == 1);
  if (!status) status = tt_mul(x, in[0], s->fail ? NULL : w, &outs[0]);
  tt_tensor_release(w);
  return status;
}
static tt_status scale_copy(void* user, tt_ctx* x, void** out) {
  (void)x;
  ((Scale*)user)->copies++;
  *out = user;
  return TT_OK;
}
static void scale_drop(void* user) { ((Scale*)user)->drops++; }
static tt_module* scale(Scale* s) {
  tt_module* m = NULL;
  const tt_module_def def = {sizeof def, "Scale", s, scale_forward, scale_copy, scale_drop};
  OK(tt_module_new_custom(c, &def, &m));
  OK(tt_module_register_parameter(c, m, "scale", leaf(DATA(2, 3))));
  OK(tt_module_register_buffer(c, m, "seen", number(TT_I64, 0), 1));
  OK(tt_module_register_buffer(c, m, "scratch", number(TT_F64, 0), 0));
  OK(tt_module_register_parameter(c, m, "absent", NULL));
  return m;
}

/* A layer whose weight was removed. */
static void test_without_its_weight(void** state) {
  tt_module* m;
  tt_tensor* y;
  (void)state;
  OK(tt_nn_linear(c, 2, 2, NULL, &m));
  settle(m);
  OK(tt_module_register_parameter(c, m, "weight", NULL));
  FAILS(tt_module_call(c, m, numbers(TT_F32, DATA(1, 2)), &y), TT_INVALID_ARG,
        "Linear has no weight");
  tt_module_release(m);
}

static void test_module_of_the_application(void** state) {
  (void)state;
  Scale s = {0};
  tt_module *m = NULL, *twin;
  tt_tensor *x = leaf(DATA(5, 7)), *y;
  tt_state_dict* d;
  OK(tt_nn_sequential(c, &m));
  put(m, scale(&s));
  put(m, relu());
  OK(tt_module_call(c, m, x, &y));
  VALUES(y, 10, 21);
  OK(tt_backward(c, sum_of(y), NULL));
  VALUES(grad_of(tensor_at(m, "0.scale")), 5, 7);
  prints(m, "Sequential(\n  (0): Scale()\n  (1): ReLU()\n)");
  OK(tt_module_state_dict(c, m, &d));
  assert_int_equal(tt_state_dict_size(d),
                   2); /* scale, seen: neither absent nor non-persistent entries */
  assert_null(tensor_at(m, "0.absent"));
  OK(tt_module_copy(c, m, &twin));
  assert_int_equal(s.copies, 1);
  s.fail = 1;
  FAILS(tt_module_call(c, m, x, &y), TT_CALLBACK, "forward callback of Scale");
  assert_string_equal(tt_ctx_error(c)->cause->op, "mul");
  assert_null(y);
  tt_state_dict_release(d);
  tt_module_release(m);
  assert_int_equal(s.drops, 1);
  tt_module_release(twin);
  assert_int_equal(s.drops, 2);
  tt_module_def bad = {sizeof bad, "Bad", &s, NULL, NULL, scale_drop};
  FAILS(tt_module_new_custom(c, &bad, &m), TT_INVALID_ARG, "forward");
  assert_int_equal(s.drops, 3);
}

static tt_status no_results(void* user, tt_ctx* x, tt_module* m, const tt_tensor* const* in,
                            int64_t n, tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)user;
  (void)x;
  (void)m;
  (void)in;
  (void)n;
  (void)outs;
  (void)cap;
  *n_outs = 0;
  return TT_OK;
}
static void test_layers_without_what_they_need(void** state) {
  const tt_nn_multihead_attention_opts apart = {.set = TT_NN_MULTIHEAD_ATTENTION_KDIM, .kdim = 3};
  const tt_module_def def = {sizeof def, "Silent", NULL, no_results, NULL, NULL};
  tt_module *m, *silent;
  tt_tensor* x = make(TT_F32, SHAPE(1, 2), DATA(0, 0));
  tt_tensor* k = make(TT_F32, SHAPE(1, 3), DATA(0, 0, 0));
  tt_tensor* y[2];
  int64_t n;
  (void)state;
  OK(tt_nn_multihead_attention(c, 2, 1, &apart, &m));
  settle(m);
  OK(tt_module_register_parameter(c, m, "k_proj_weight", NULL));
  FAILS(tt_module_forward(c, m, LIST(x, k, x), y, 2, &n), TT_INVALID_ARG, "k_proj_weight");
  tt_module_release(m);
  OK(tt_nn_multihead_attention(c, 2, 1, NULL, &m));
  settle(m);
  OK(tt_module_new_custom(c, &def, &silent));
  OK(tt_module_register_module(c, m, "out_proj", silent));
  FAILS(tt_module_forward(c, m, LIST(x, x, x), y, 2, &n), TT_INVALID_ARG,
        "out_proj returned 0 results");
  tt_module_release(silent);
  tt_module_release(m);
}

static void test_names(void** state) {
  (void)state;
  tt_module* m = linear(2, 2, 1);
  tt_tensor *y, *w = tensor_at(m, "weight");
  OK(tt_add(c, w, w, &y));
  FAILS(tt_module_register_parameter(c, m, "weight", y), TT_AUTOGRAD, "leaves");
  FAILS(tt_module_register_buffer(c, m, "weight", number(TT_F32, 1), 1), TT_INVALID_ARG,
        "parameter");
  OK(tt_module_register_parameter(c, m, "weight", NULL)); /* absent, it may become a buffer */
  OK(tt_module_register_buffer(c, m, "weight", number(TT_F32, 1), 1));
  FAILS(tt_module_register_parameter(c, m, "weight", number(TT_F32, 1)), TT_INVALID_ARG,
        "already a buffer");
  OK(tt_module_register_buffer(c, m, "weight", NULL, 1));
  OK(tt_module_register_parameter(c, m, "weight", w));
  FAILS(tt_module_register_module(c, m, "weight", m), TT_INVALID_ARG, "tensor");
  OK(tt_module_register_parameter(c, m, "bias", NULL));
  tt_tensor* x = make(TT_F32, SHAPE(1, 2), DATA(0, 0));
  OK(tt_module_call(c, m, x, &y));
  VALUES(y, 0, 0);
  FAILS(tt_module_get_tensor(c, m, "nothing", &y), TT_INDEX, "nothing");
  FAILS(tt_module_call(c, (tt_module*)x, x, &y), TT_BAD_HANDLE, "module");
  FAILS(tt_module_call(c, NULL, x, &y), TT_BAD_HANDLE, NULL);
  FAILS(tt_module_forward(c, m, NULL, 0, &y, 1, NULL), TT_INVALID_ARG, NULL);
  tt_module_release(m);
  OK(tt_nn_module_list(c, &m));
  FAILS(tt_module_call(c, m, x, &y), TT_NOT_IMPLEMENTED,
        "ModuleList: a container cannot be called");
  tt_module_release(m);
  tt_module_release(NULL);
  FAILS(tt_nn_linear(c, -1, 2, NULL, &m), TT_SHAPE, NULL);
  FAILS(tt_nn_linear(c, INT64_MAX, INT64_MAX, NULL, &m), TT_SHAPE, NULL);
  assert_null(m);
}

/* ---- hooks ---- */

typedef struct Watch {
  int pre, post, drops;
  int64_t id;
  int remove_self;
} Watch;
static tt_status twice_pre(void* user, tt_ctx* x, tt_module* m, const tt_tensor* const* in,
                           int64_t n, tt_tensor** replacements) {
  Watch* w = (Watch*)user;
  (void)n;
  w->pre++;
  if (w->remove_self) OK(tt_module_remove_hook(x, m, w->id));
  return tt_mul_f64(x, in[0], 2, &replacements[0]);
}
static tt_status plus_post(void* user, tt_ctx* x, tt_module* m, const tt_tensor* const* in,
                           int64_t n_in, const tt_tensor* const* outs, int64_t n_outs,
                           tt_tensor** replacements) {
  (void)m;
  (void)in;
  assert_true(n_in == 1 && n_outs == 1);
  ((Watch*)user)->post++;
  return tt_add_f64(x, outs[0], 1, &replacements[0]);
}
static void watch_drop(void* user) { ((Watch*)user)->drops++; }

static void test_hooks(void** state) {
  (void)state;
  tt_module* m = NULL;
  tt_module* r = relu();
  Watch w = {0};
  tt_tensor *x = leaf(DATA(-1, 3)), *y;
  int64_t post;
  OK(tt_nn_sequential(c, &m));
  OK(tt_module_append(c, m, r));
  OK(tt_module_register_forward_pre_hook(c, r, twice_pre, &w, watch_drop, &w.id));
  OK(tt_module_register_forward_hook(c, m, plus_post, &w, watch_drop, &post));
  OK(tt_module_call(c, m, x, &y));
  VALUES(y, 1, 7);
  w.remove_self = 1;
  OK(tt_module_call(c, m, x, &y));
  VALUES(y, 1, 7);
  assert_int_equal(w.drops, 1);
  OK(tt_module_call(c, m, x, &y));
  VALUES(y, 1, 4);
  assert_true(w.pre == 2 && w.post == 3);
  FAILS(tt_module_remove_hook(c, r, w.id), TT_INDEX, "no such hook");
  FAILS(tt_module_register_forward_hook(c, m, NULL, &w, watch_drop, NULL), TT_INVALID_ARG,
        "fn is NULL");
  assert_int_equal(w.drops, 2);
  tt_module_release(m);
  tt_module_release(r);
  assert_int_equal(w.drops, 3);
}

/* ---- depth: neither calls nor release recurse over sequences ---- */

static void test_deep_nesting(void** state) {
  (void)state;
  tt_module *m = relu(), *outer, *twin;
  tt_tensor *x = leaf(DATA(-1, 3)), *y;
  for (int i = 0; i < 3000; i++) {
    OK(tt_nn_sequential(c, &outer));
    put(outer, m);
    m = outer;
  }
  OK(tt_module_call(c, m, x, &y));
  VALUES(y, 0, 3);
  OK(tt_module_copy(c, m, &twin));
  tt_module_release(m);
  tt_module_release(twin);
}

static void test_losses_and_dropout(void** state) {
  (void)state;
  tt_module *m, *drop;
  tt_tensor* x = make(TT_F32, SHAPE(2, 3), DATA(1, 2, 3, 1, 2, 3));
  tt_tensor* t = make(TT_I64, SHAPE(2), DATA(2, 0));
  tt_tensor* out[2];
  tt_tensor* want;
  tt_tensor* y;
  int64_t n;
  const tt_nn_cross_entropy_loss_opts o = {
      .set = TT_NN_CROSS_ENTROPY_LOSS_WEIGHT | TT_NN_CROSS_ENTROPY_LOSS_REDUCTION,
      .weight = make(TT_F32, SHAPE(3), DATA(1, 2, 3)),
      .reduction = TT_REDUCTION_SUM};
  const tt_cross_entropy_opts plain = {.set = TT_CROSS_ENTROPY_WEIGHT | TT_CROSS_ENTROPY_REDUCTION,
                                       .weight = o.weight,
                                       .reduction = TT_REDUCTION_SUM};
  OK(tt_nn_cross_entropy_loss(c, &o, &m));
  settle(m);
  OK(tt_module_forward(c, m, LIST(x, t), out, 2, &n));
  OK(tt_cross_entropy(c, x, t, &plain, &want));
  VALUES(out[0], value_of(want));
  FAILS(tt_module_call(c, m, x, &y), TT_INVALID_ARG, "CrossEntropyLoss: inputs has length 1");
  tt_module_release(m);
  OK(tt_nn_dropout(c, NULL, &drop));
  OK(tt_module_train(c, drop, 0));
  OK(tt_module_call(c, drop, x, &y));
  VALUES(y, 1, 2, 3, 1, 2, 3);
  prints(drop, "Dropout(p=0.5, inplace=False)");
  tt_module_release(drop);
}

static tt_status see_nothing(void* user, tt_ctx* ctx, tt_module* m, const tt_tensor* const* inputs,
                             int64_t n, tt_tensor** replacements) {
  (void)user, (void)ctx, (void)m, (void)inputs, (void)n, (void)replacements;
  return TT_OK;
}

static void set_values(tt_tensor* t, const double* values, int64_t n) {
  OK(tt_set_grad_enabled(c, 0, NULL));
  OK(tt_copy_(c, t, numbers(TT_F32, values, n)));
  OK(tt_set_grad_enabled(c, 1, NULL));
}

/* A copy follows its model: parameters by a share, buffers as they are or by the same share. */
static void test_averages(void** state) {
  tt_module *model = NULL, *copy = NULL, *narrow = NULL;
  tt_tensor *weight = NULL, *mean = NULL, *average = NULL, *buffer = NULL;
  (void)state;
  OK(tt_nn_batch_norm1d(c, 2, NULL, &model));
  OK(tt_nn_batch_norm1d(c, 3, NULL, &narrow));
  OK(tt_module_copy(c, model, &copy));
  OK(tt_module_get_tensor(c, model, "weight", &weight));
  OK(tt_module_get_tensor(c, model, "running_mean", &mean));
  OK(tt_module_get_tensor(c, copy, "weight", &average));
  OK(tt_module_get_tensor(c, copy, "running_mean", &buffer));
  set_values(weight, DATA(5, 9));
  set_values(mean, DATA(4, 8));
  OK(tt_module_average(c, copy, model, 0.25, 0));
  VALUES(average, 2, 3);
  VALUES(buffer, 4, 8);
  set_values(mean, DATA(0, 0));
  OK(tt_module_average(c, copy, model, 0.5, 1));
  VALUES(average, 3.5, 6);
  VALUES(buffer, 2, 4);
  assert_int_equal(tt_tensor_requires_grad(average), 1);
  FAILS(tt_module_average(c, copy, model, 1.5, 0), TT_INVALID_ARG, "share is 1.5");
  FAILS(tt_module_average(c, copy, narrow, 0.5, 0), TT_SHAPE, "weight is [3]");
  VALUES(average, 3.5, 6);
  tt_module_release(narrow);
  tt_module_release(copy);
  tt_module_release(model);
}

static void test_frozen_modules_do_not_change(void** state) {
  (void)state;
  tt_module *m = mlp(), *inner, *outer, *twin;
  tt_tensor *x = make(TT_F32, SHAPE(1, 4), DATA(1, 1, 1, 1)), *y;
  tt_tensor* w = tensor_at(m, "0.weight");
  tt_state_dict* s;
  int64_t id;
  OK(tt_module_child(c, m, 1, &inner));
  OK(tt_module_register_forward_pre_hook(c, inner, see_nothing, NULL, NULL, &id));
  FAILS(tt_module_freeze(c, m), TT_INVALID_ARG, "has hooks");
  assert_int_equal(tt_module_frozen(m), 0);
  OK(tt_module_remove_hook(c, inner, id));
  OK(tt_module_freeze(c, m));
  OK(tt_module_freeze(c, m));
  assert_int_equal(tt_module_frozen(inner), 1);
  assert_int_equal(tt_module_training(inner), 0);
  OK(tt_module_call(c, m, x, &y));
  OK(tt_module_state_dict(c, m, &s));
  FAILS(tt_module_train(c, m, 1), TT_INVALID_ARG, "Sequential is frozen");
  FAILS(tt_module_requires_grad_(c, m, 0), TT_INVALID_ARG, "is frozen");
  FAILS(tt_module_to(c, m, NULL, TT_F64), TT_INVALID_ARG, "is frozen");
  FAILS(tt_module_load_state_dict(c, m, s, NULL), TT_INVALID_ARG, "is frozen");
  FAILS(tt_module_register_parameter(c, m, "w", w), TT_INVALID_ARG, "is frozen");
  FAILS(tt_module_register_buffer(c, m, "b", w, 1), TT_INVALID_ARG, "is frozen");
  FAILS(tt_module_register_module(c, inner, "child", inner), TT_INVALID_ARG, "is frozen");
  FAILS(tt_module_append(c, m, inner), TT_INVALID_ARG, "is frozen");
  FAILS(tt_module_register_forward_pre_hook(c, inner, see_nothing, NULL, NULL, &id), TT_INVALID_ARG,
        "is frozen");
  OK(tt_nn_sequential(c, &outer)); /* beyond it, a call works without gradients only */
  OK(tt_module_append(c, outer, m));
  OK(tt_module_call(c, outer, x, &y));
  FAILS(tt_module_train(c, outer, 1), TT_INVALID_ARG, "is frozen");
  OK(tt_module_copy(c, m, &twin));
  assert_int_equal(tt_module_frozen(twin), 0);
  OK(tt_module_train(c, twin, 1));
  tt_state_dict_release(s);
  tt_module_release(twin);
  tt_module_release(outer);
  tt_module_release(inner);
  tt_module_release(m);
}

static void test_embedding(void** state) {
  (void)state;
  tt_module* m;
  const tt_nn_embedding_opts o = {.set = TT_NN_EMBEDDING_PADDING_IDX | TT_NN_EMBEDDING_MAX_NORM,
                                  .padding_idx = -1,
                                  .max_norm = 0.25};
  tt_tensor *i = make(TT_I64, SHAPE(2), DATA(1, 4)), *y, *w;
  OK(tt_nn_embedding(c, 5, 3, &o, &m));
  settle(m);
  w = tensor_at(m, "weight");
  OK(tt_module_call(c, m, i, &y));
  double* v = values_of(y);
  double norm = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  assert_true(fabs(norm - 0.25) < 1e-5 && v[3] == 0 && v[4] == 0 && v[5] == 0);
  free(v);
  OK(tt_backward(c, sum_of(y), NULL));
  NEAR(grad_of(w), 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  prints(m, "Embedding(5, 3, padding_idx=4, max_norm=0.25)");
  tt_module_release(m);
  const tt_nn_embedding_opts bad = {.set = TT_NN_EMBEDDING_PADDING_IDX, .padding_idx = 5};
  FAILS(tt_nn_embedding(c, 5, 3, &bad, &m), TT_INVALID_ARG, "padding_idx is 5");
}

/* The child of m at a path, called on x. */
static tt_tensor* through(const tt_module* m, const char* path, const tt_tensor* x) {
  tt_module* child;
  tt_tensor* y;
  OK(tt_module_get_submodule(c, m, path, &child));
  OK(tt_module_call(c, child, x, &y));
  tt_module_release(child);
  return y;
}
static tt_tensor* plus(const tt_tensor* a, const tt_tensor* b) {
  tt_tensor* sum;
  OK(tt_add(c, a, b, &sum));
  return sum;
}
static tt_tensor* attended(const tt_module* m, const char* path, const tt_tensor* q,
                           const tt_tensor* kv, tt_tensor* mask) {
  const tt_nn_multihead_attention_forward_opts o = {
      .set = TT_NN_MULTIHEAD_ATTENTION_FORWARD_ATTN_MASK, .attn_mask = mask};
  tt_module* child;
  tt_tensor *y, *weights;
  OK(tt_module_get_submodule(c, m, path, &child));
  OK(tt_nn_multihead_attention_forward(c, child, q, kv, kv, &o, &y, &weights));
  tt_module_release(child);
  return y;
}
static tt_tensor* fed_forward(const tt_module* m, const tt_tensor* x, int gelu) {
  tt_tensor* h = through(m, "linear1", x);
  if (gelu) OK(tt_gelu(c, h, NULL, &h));
  else OK(tt_relu(c, h, &h));
  return through(m, "linear2", h);
}
static void same_values(const tt_tensor* a, const tt_tensor* b) {
  double* x = values_of(a);
  double* y = values_of(b);
  for (int64_t i = 0; i < tt_tensor_numel(a); i++) assert_true(fabs(x[i] - y[i]) < 1e-5);
  free(x);
  free(y);
}

static void test_layers_of_transformers(void** state) {
  (void)state;
  tt_tensor* mask = make(TT_BOOL, SHAPE(3, 3), DATA(0, 1, 1, 0, 0, 1, 0, 0, 0));
  tt_tensor *x, *memory, *y, *z, *want;
  int64_t n;
  OK(tt_randn(c, SHAPE(3, 2, 4), NULL, &x));
  OK(tt_randn(c, SHAPE(5, 2, 4), NULL, &memory));
  x = at_home(x);
  memory = at_home(memory);
  for (int first = 0; first < 2; first++) {
    tt_module *encoder, *decoder;
    const tt_nn_transformer_encoder_layer_opts e = {
        .set = TT_NN_TRANSFORMER_ENCODER_LAYER_DIM_FEEDFORWARD |
               TT_NN_TRANSFORMER_ENCODER_LAYER_DROPOUT |
               TT_NN_TRANSFORMER_ENCODER_LAYER_ACTIVATION |
               TT_NN_TRANSFORMER_ENCODER_LAYER_NORM_FIRST,
        .dim_feedforward = 6,
        .activation = first ? TT_ACTIVATION_GELU : TT_ACTIVATION_RELU,
        .norm_first = first};
    const tt_nn_transformer_decoder_layer_opts d = {
        .set = TT_NN_TRANSFORMER_DECODER_LAYER_DROPOUT | TT_NN_TRANSFORMER_DECODER_LAYER_NORM_FIRST,
        .norm_first = first};
    OK(tt_nn_transformer_encoder_layer(c, 4, 2, &e, &encoder));
    settle(encoder);
    OK(tt_module_forward(c, encoder, LIST(x, mask), &y, 1, &n));
    if (first) {
      z = through(encoder, "norm1", x);
      z = plus(x, attended(encoder, "self_attn", z, z, mask));
      want = plus(z, fed_forward(encoder, through(encoder, "norm2", z), 1));
    } else {
      z = through(encoder, "norm1", plus(x, attended(encoder, "self_attn", x, x, mask)));
      want = through(encoder, "norm2", plus(z, fed_forward(encoder, z, 0)));
    }
    same_values(y, want);
    OK(tt_backward(c, sum_of(y), NULL));
    assert_non_null(grad_of(tensor_at(encoder, "self_attn.in_proj_weight")));
    if (!first) { /* a module takes the place of the activation */
      tt_module* gelu;
      OK(tt_nn_gelu(c, NULL, &gelu));
      OK(tt_module_register_module(c, encoder, "activation", gelu));
      tt_module_release(gelu);
      OK(tt_module_forward(c, encoder, LIST(x, mask), &y, 1, &n));
      same_values(y, through(encoder, "norm2", plus(z, fed_forward(encoder, z, 1))));
    }
    OK(tt_nn_transformer_decoder_layer(c, 4, 2, &d, &decoder));
    settle(decoder);
    OK(tt_module_forward(c, decoder, (const tt_tensor* const[]){x, memory, mask}, 3, &y, 1, &n));
    if (first) {
      z = through(decoder, "norm1", x);
      z = plus(x, attended(decoder, "self_attn", z, z, mask));
      z = plus(z, attended(decoder, "multihead_attn", through(decoder, "norm2", z), memory, NULL));
      want = plus(z, fed_forward(decoder, through(decoder, "norm3", z), 0));
    } else {
      z = through(decoder, "norm1", plus(x, attended(decoder, "self_attn", x, x, mask)));
      z = through(decoder, "norm2", plus(z, attended(decoder, "multihead_attn", z, memory, NULL)));
      want = through(decoder, "norm3", plus(z, fed_forward(decoder, z, 0)));
    }
    same_values(y, want);
    FAILS(tt_module_call(c, decoder, x, &y), TT_INVALID_ARG, "inputs has length 1");
    tt_module_release(encoder);
    tt_module_release(decoder);
  }
}

static tt_tensor* forwarded(tt_module* m, const tt_tensor* const* inputs, int64_t n) {
  tt_tensor* y;
  int64_t n_outs;
  OK(tt_module_forward(c, m, inputs, n, &y, 1, &n_outs));
  return y;
}
/* Lives as long as m. */
static tt_module* submodule(const tt_module* m, const char* path) {
  tt_module* found;
  OK(tt_module_get_submodule(c, m, path, &found));
  tt_module_release(found);
  return found;
}

/* Layers whose sizes the first input decides. */
static tt_module* lazy_layers(void) {
  tt_module *m, *layer;
  OK(tt_nn_sequential(c, &m));
  OK(tt_nn_conv2d(c, TT_NN_LAZY, 4, SHAPE(3), NULL, &layer));
  put(m, layer);
  OK(tt_nn_batch_norm2d(c, TT_NN_LAZY, NULL, &layer));
  put(m, layer);
  OK(tt_nn_flatten(c, NULL, &layer));
  put(m, layer);
  OK(tt_nn_linear(c, TT_NN_LAZY, 5, NULL, &layer));
  put(m, layer);
  return settle(m);
}
static void test_lazy_layers(void** state) {
  (void)state;
  tt_module* m = lazy_layers();
  tt_module *copied, *other = lazy_layers(), *loaded = lazy_layers();
  tt_tensor *params[8], *x, *y, *wrong, *w = tensor_at(m, "0.weight"), *before;
  tt_state_dict *values, *part;
  tt_optimizer* sgd;
  tt_graph* g;
  int64_t n;
  prints(m,
         "Sequential(\n  (0): LazyConv2d(0, 4, kernel_size=(3, 3), stride=(1, 1))\n"
         "  (1): LazyBatchNorm2d(0, eps=1e-05, momentum=0.1, affine=True, bias=True, "
         "track_running_stats=True)\n  (2): Flatten(start_dim=1, end_dim=-1)\n"
         "  (3): LazyLinear(in_features=0, out_features=5, bias=True)\n)");
  HAS_SHAPE(w, 0, 0, 0, 0);
  OK(tt_module_parameters(c, m, params, 8, &n));
  assert_int_equal(n, 6);
  OK(tt_optim_sgd(c, params, n, NULL, &sgd));
  OK(tt_optim_step(c, sgd));
  OK(tt_module_to(c, m, NULL, TT_F64));
  OK(tt_module_copy(c, m, &copied));
  OK(tt_randn(c, SHAPE(2, 3, 6, 6), NULL, &x));
  OK(tt_to(c, at_home(x), &(tt_to_opts){.set = TT_TO_DTYPE, .dtype = TT_F64}, &x));
  OK(tt_reshape(c, x, SHAPE(1, 2, 3, 36), &wrong));
  OK(tt_unsqueeze(c, wrong, 0, &wrong));
  FAILS(tt_module_call(c, m, wrong, &y), TT_SHAPE, "must have 3 to 4 dimensions");
  OK(tt_capture_begin(c, LIST(x), NULL));
  FAILS(tt_module_call(c, m, x, &y), TT_INVALID_ARG, "LazyConv2d has no parameters before");
  if (tt_capture_end(c, LIST(x), &g) == TT_OK) tt_graph_release(g);
  HAS_SHAPE(w, 0, 0, 0, 0);

  OK(tt_module_call(c, m, x, &y));
  HAS_SHAPE(y, 2, 5);
  assert_ptr_equal(tensor_at(m, "0.weight"), w);
  HAS_SHAPE(w, 4, 3, 3, 3);
  HAS_SHAPE(tensor_at(m, "3.weight"), 5, 64);
  assert_int_equal(tt_tensor_dtype(w), TT_F64);
  assert_true(tt_tensor_requires_grad(w));
  assert_string_equal(tt_module_type(submodule(m, "3")), "Linear");
  OK(tt_backward(c, sum_of(y), NULL));
  OK(tt_clone(c, w, NULL, &before));
  OK(tt_optim_step(c, sgd));
  int32_t equal = 1;
  OK(tt_equal(c, w, before, &equal));
  assert_false(equal);
  tt_optim_release(sgd);

  OK(tt_module_state_dict(c, m, &values));
  OK(tt_state_dict_new(c, &part));
  OK(tt_state_dict_set(c, part, "0.weight", w));
  FAILS(tt_module_load_state_dict(c, copied, part, NULL), TT_INVALID_ARG, "missing: 0.bias");
  OK(tt_state_dict_set(c, part, "3.bias", w));
  const tt_module_load_state_dict_opts loose = {TT_MODULE_LOAD_STATE_DICT_STRICT, 0};
  FAILS(tt_module_load_state_dict(c, copied, part, &loose), TT_SHAPE, "[0] in the module");
  HAS_SHAPE(tensor_at(copied, "0.weight"), 0, 0, 0, 0);
  OK(tt_module_load_state_dict(c, copied, values, NULL));
  HAS_SHAPE(tensor_at(copied, "1.running_mean"), 4);
  OK(tt_module_train(c, m, 0));
  OK(tt_module_train(c, copied, 0));
  OK(tt_module_call(c, m, x, &y));
  same_values(forwarded(copied, (const tt_tensor* const[]){x}, 1), y);
  tt_state_dict_release(values);
  OK(tt_module_state_dict(c, other, &values)); /* a state without sizes */
  OK(tt_module_load_state_dict(c, loaded, values, NULL));
  HAS_SHAPE(tensor_at(loaded, "3.weight"), 0, 0);
  OK(tt_module_freeze(c, other));
  OK(tt_to(c, x, &(tt_to_opts){.set = TT_TO_DTYPE, .dtype = TT_F32}, &x));
  FAILS(tt_module_call(c, other, x, &y), TT_INVALID_ARG, "is frozen");
  OK(tt_module_register_parameter(c, submodule(loaded, "0"), "weight", tensor_at(m, "0.weight")));
  FAILS(tt_module_call(c, loaded, x, &y), TT_INVALID_ARG, "weight of its own");
  tt_state_dict_release(values);
  tt_state_dict_release(part);
  for (int i = 0; i < 4; i++) tt_module_release((tt_module*[]){m, copied, other, loaded}[i]);

  const tt_nn_conv_transpose1d_opts two = {.set = TT_NN_CONV_TRANSPOSE1D_GROUPS, .groups = 2};
  OK(tt_nn_conv_transpose1d(c, TT_NN_LAZY, 4, SHAPE(3), &two, &m));
  settle(m);
  OK(tt_randn(c, SHAPE(3, 7), NULL, &x));
  x = at_home(x);
  FAILS(tt_module_call(c, m, x, &y), TT_INVALID_ARG, "in_channels is 3");
  OK(tt_cat(c, (const tt_tensor* const[]){x, x}, 2, NULL, &x));
  OK(tt_module_call(c, m, x, &y)); /* without a batch */
  HAS_SHAPE(y, 4, 9);
  HAS_SHAPE(tensor_at(m, "weight"), 6, 2, 3);
  tt_module_release(m);
  OK(tt_nn_instance_norm1d(c, TT_NN_LAZY, NULL, &m)); /* has no parameters */
  OK(tt_module_call(c, m, x, &y));
  prints(m,
         "InstanceNorm1d(6, eps=1e-05, momentum=0.1, affine=False, bias=False, "
         "track_running_stats=False)");
  tt_module_release(m);
}

/* A state gives a size by the layer's own tensors; what a call or a capture lends gives none. */
static void test_what_sizes_no_lazy_layer(void** state) {
  (void)state;
  tt_module* m;
  tt_state_dict* part;
  tt_tensor *x, *y, *six;
  tt_graph* g;
  int64_t n;
  const tt_module_load_state_dict_opts loose = {TT_MODULE_LOAD_STATE_DICT_STRICT, 0};
  OK(tt_ones(c, SHAPE(6), NULL, &six));
  OK(tt_ones(c, SHAPE(2, 3), NULL, &x));
  OK(tt_nn_linear(c, TT_NN_LAZY, 4, NULL, &m));
  OK(tt_module_register_buffer(c, m, "other", six, 1)); /* where norms have a mean */
  OK(tt_state_dict_new(c, &part));
  OK(tt_state_dict_set(c, part, "other", six));
  OK(tt_module_load_state_dict(c, m, part, &loose));
  HAS_SHAPE(tensor_at(m, "weight"), 0, 0);
  tt_state_dict_release(part);

  OK(tt_state_dict_new(c, &part));
  OK(tt_state_dict_set(c, part, "weight", x));
  OK(tt_capture_begin(c, LIST(x), NULL));
  FAILS(tt_module_load_state_dict(c, m, part, &loose), TT_INVALID_ARG, "is not recorded");
  if (tt_capture_end(c, LIST(x), &g) == TT_OK) tt_graph_release(g);
  tt_state_dict_release(part);
  OK(tt_module_state_dict(c, m, &part));
  FAILS(tt_functional_call(c, m, part, LIST(x), &y, 1, &n), TT_INVALID_ARG, "no parameters yet");
  tt_state_dict_release(part);
  OK(tt_module_call(c, m, x, &y));
  HAS_SHAPE(tensor_at(m, "weight"), 4, 3);
  tt_module_release(m);

  const tt_nn_batch_norm1d_opts plain = {.set = TT_NN_BATCH_NORM1D_AFFINE, .affine = 0};
  OK(tt_nn_batch_norm1d(c, TT_NN_LAZY, &plain, &m)); /* has no weight */
  OK(tt_state_dict_new(c, &part));
  OK(tt_state_dict_set(c, part, "weight", six));
  OK(tt_ones(c, SHAPE(5), NULL, &y));
  OK(tt_state_dict_set(c, part, "running_mean", y));
  OK(tt_module_load_state_dict(c, m, part, &loose));
  HAS_SHAPE(tensor_at(m, "running_var"), 5);
  tt_state_dict_release(part);
  tt_module_release(m);
}

/* Stacks pass all inputs to their layers in turn, then the result to norm. */
static void test_stacks_of_transformers(void** state) {
  (void)state;
  tt_tensor* mask = make(TT_BOOL, SHAPE(3, 3), DATA(0, 1, 1, 0, 0, 1, 0, 0, 0));
  tt_tensor* hidden = make(TT_BOOL, SHAPE(2, 5), DATA(0, 0, 0, 0, 1, 0, 0, 0, 1, 1));
  tt_tensor *src, *tgt, *memory, *want;
  tt_module *layer, *norm, *stack, *all, *none, *encoder, *decoder, *part[2];
  int64_t i;
  OK(tt_randn(c, SHAPE(5, 2, 4), NULL, &src));
  OK(tt_randn(c, SHAPE(3, 2, 4), NULL, &tgt));
  src = at_home(src);
  tgt = at_home(tgt);

  OK(tt_nn_transformer_encoder_layer(c, 4, 2, NULL, &layer));
  OK(tt_nn_layer_norm(c, SHAPE(4), NULL, &norm));
  const tt_nn_transformer_encoder_opts o = {.set = TT_NN_TRANSFORMER_ENCODER_NORM, .norm = norm};
  OK(tt_nn_transformer_encoder(c, layer, 2, &o, &stack));
  OK(tt_module_train(c, stack, 0));
  settle(stack);
  part[0] = submodule(stack, "layers.0");
  part[1] = submodule(stack, "layers.1");
  assert_ptr_not_equal(tensor_at(part[0], "linear1.weight"), tensor_at(layer, "linear1.weight"));
  want = forwarded(part[0], (const tt_tensor* const[]){src, NULL, hidden}, 3);
  want = forwarded(part[1], (const tt_tensor* const[]){want, NULL, hidden}, 3);
  OK(tt_module_call(c, norm, want, &want));
  same_values(forwarded(stack, (const tt_tensor* const[]){src, NULL, hidden}, 3), want);
  FAILS(tt_nn_transformer_encoder(c, layer, -1, NULL, &none), TT_INVALID_ARG, "num_layers is -1");
  FAILS(tt_nn_transformer_decoder(c, layer, INT64_MAX, NULL, &none), TT_OOM, "");
  FAILS(tt_nn_transformer_encoder(c, NULL, 1, NULL, &none), TT_BAD_HANDLE, "encoder_layer");

  const tt_nn_transformer_opts t = {.set = TT_NN_TRANSFORMER_NUM_ENCODER_LAYERS |
                                           TT_NN_TRANSFORMER_NUM_DECODER_LAYERS |
                                           TT_NN_TRANSFORMER_DIM_FEEDFORWARD,
                                    .num_encoder_layers = 1,
                                    .num_decoder_layers = 2,
                                    .dim_feedforward = 6};
  OK(tt_nn_transformer(c, 4, 2, &t, &all));
  for (i = 0; i < 2; i++) { /* drawn anew, not copied */
    part[i] = submodule(all, i ? "decoder.layers.1" : "decoder.layers.0");
    tt_tensor* weight = tensor_at(part[i], "linear1.weight");
    double* values = values_of(weight);
    for (int64_t k = 0; k < 24; k++) assert_true(fabs(values[k]) <= sqrt(6.0 / 10));
    free(values);
  }
  int32_t same = 1;
  OK(tt_equal(c, tensor_at(part[0], "linear1.weight"), tensor_at(part[1], "linear1.weight"),
              &same));
  assert_false(same);
  OK(tt_module_train(c, all, 0));
  settle(all);
  encoder = submodule(all, "encoder");
  decoder = submodule(all, "decoder");
  memory = forwarded(encoder, (const tt_tensor* const[]){src, NULL, hidden}, 3);
  want = forwarded(decoder, (const tt_tensor* const[]){tgt, memory, mask, NULL, NULL, hidden}, 6);
  same_values(
      forwarded(all, (const tt_tensor* const[]){src, tgt, NULL, mask, NULL, hidden, NULL, hidden},
                8),
      want);
  FAILS(tt_module_forward(c, all, (const tt_tensor* const[]){src, mask}, 2, &want, 1, &i), TT_DTYPE,
        "tgt");
  OK(tt_narrow(c, tgt, 1, 0, 1, &tgt));
  FAILS(tt_module_forward(c, all, (const tt_tensor* const[]){src, tgt}, 2, &want, 1, &i), TT_SHAPE,
        "tgt is [3,1,4], src is [5,2,4]");
  tt_module* const made[] = {layer, norm, stack, all};
  for (i = 0; i < 4; i++) tt_module_release(made[i]);
}

static void test_lstm(void** state) {
  (void)state;
  const tt_nn_lstm_opts o = {
      .set = TT_NN_LSTM_NUM_LAYERS | TT_NN_LSTM_BIDIRECTIONAL, .num_layers = 2, .bidirectional = 1};
  tt_module* m;
  tt_tensor *x, *rows, *packed[3], *plain[3];
  tt_tensor* sizes = make(TT_I64, SHAPE(4), DATA(2, 2, 2, 2));
  const tt_to_opts cpu = {.set = TT_TO_DEVICE, .device = {TT_CPU, 0}};
  int64_t n;
  OK(tt_to(c, sizes, &cpu, &sizes)); /* where the sizes of batches are read */
  OK(tt_nn_lstm(c, 3, 5, &o, &m));
  settle(m);
  prints(m, "LSTM(3, 5, num_layers=2, bidirectional=True)");
  OK(tt_randn(c, SHAPE(4, 2, 3), NULL, &x));
  x = at_home(x);
  OK(tt_reshape(c, x, SHAPE(8, 3), &rows));
  OK(tt_module_forward(c, m, (const tt_tensor* const[]){x}, 1, plain, 3, &n));
  assert_int_equal(n, 3);
  OK(tt_module_forward(c, m, (const tt_tensor* const[]){rows, NULL, NULL, sizes}, 4, packed, 3,
                       &n));
  for (int i = 0; i < 3; i++) same_values(packed[i], plain[i]);
  tt_module_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_linear),
      SCOPED(test_tree),
      SCOPED(test_state_dict),
      SCOPED(test_shared_parameters),
      SCOPED(test_freeze_train_and_move),
      SCOPED(test_averages),
      SCOPED(test_without_its_weight),
      SCOPED(test_module_of_the_application),
      SCOPED(test_layers_without_what_they_need),
      SCOPED(test_names),
      SCOPED(test_hooks),
      SCOPED(test_deep_nesting),
      SCOPED(test_losses_and_dropout),
      SCOPED(test_embedding),
      SCOPED(test_layers_of_transformers),
      SCOPED(test_stacks_of_transformers),
      SCOPED(test_lstm),
      SCOPED(test_lazy_layers),
      SCOPED(test_what_sizes_no_lazy_layer),
      SCOPED(test_frozen_modules_do_not_change),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
