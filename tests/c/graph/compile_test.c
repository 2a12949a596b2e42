/* Compiled functions: training curves beside those of operators, guards, failures, threads. */
#include "compiled.h"

#include <pthread.h>

enum { kSteps = 50, kClasses = 10 };

/* A model, its optimizer and a step with them. */
typedef struct Net {
  tt_module* m;
  tt_optimizer* o;
  int runs; /* of the step itself */
  int fails;
} Net;

static void add(tt_module* to, tt_module* child) {
  OK(tt_module_append(c, to, child));
  tt_module_release(child);
}
static tt_module* linear(int64_t in, int64_t out) {
  tt_module* m;
  OK(tt_nn_linear(c, in, out, NULL, &m));
  return m;
}
static tt_module* dropout(void) {
  tt_module* m;
  OK(tt_nn_dropout(c, NULL, &m));
  return m;
}
static tt_module* relu(void) {
  tt_module* m;
  OK(tt_nn_relu(c, NULL, &m));
  return m;
}

static tt_module* mlp(void) {
  tt_module* m;
  OK(tt_nn_sequential(c, &m));
  add(m, linear(8, 16));
  add(m, relu());
  add(m, dropout());
  add(m, linear(16, kClasses));
  return m;
}
static tt_module* cnn(void) {
  tt_module *m, *layer;
  OK(tt_nn_sequential(c, &m));
  OK(tt_nn_conv2d(c, 1, 4, SHAPE(3, 3), NULL, &layer));
  add(m, layer);
  OK(tt_nn_batch_norm2d(c, 4, NULL, &layer));
  add(m, layer);
  add(m, relu());
  OK(tt_nn_max_pool2d(c, SHAPE(2, 2), NULL, &layer));
  add(m, layer);
  OK(tt_nn_flatten(c, NULL, &layer));
  add(m, layer);
  add(m, dropout());
  add(m, linear(36, kClasses));
  return m;
}
static tt_module* gpt(void) {
  tt_module *m, *layer;
  OK(tt_nn_sequential(c, &m));
  OK(tt_nn_embedding(c, kClasses, 8, NULL, &layer));
  add(m, layer);
  OK(tt_nn_transformer_encoder_layer(c, 8, 2, NULL, &layer));
  add(m, layer);
  add(m, linear(8, kClasses));
  return m;
}

static Net new_net(tt_module* (*build)(void)) {
  Net n = {NULL, NULL, 0, 0};
  tt_tensor* params[64];
  int64_t count;
  OK(tt_manual_seed(c, 11));
  n.m = build();
  OK(tt_module_parameters(c, n.m, params, 64, &count));
  OK(tt_optim_adam(c, params, count, NULL, &n.o));
  return n;
}
static void drop_net(Net* n) {
  tt_optim_release(n->o);
  tt_module_release(n->m);
}

/* Keeps what a step makes from outliving it. */
static tt_status compute_step(Net* net, tt_ctx* x, const tt_tensor* const* in, tt_tensor** loss) {
  tt_tensor *y, *rows, *params[64], *norm;
  int64_t n;
  TRY(tt_optim_zero_grad(x, net->o, 1));
  TRY(tt_module_forward(x, net->m, in, 1, &y, 1, &n));
  TRY(tt_reshape(x, y, (const int64_t[]){-1, kClasses}, 2, &rows));
  TRY(tt_cross_entropy(x, rows, in[1], NULL, loss));
  TRY(tt_backward(x, *loss, NULL));
  TRY(tt_module_parameters(x, net->m, params, 64, &n));
  TRY(tt_clip_grad_norm_(x, params, n, 0.5, NULL, &norm));
  TRY(tt_optim_step(x, net->o));
  TRY(tt_detach(x, *loss, loss));
  return net->fails ? TT_INVALID_ARG : TT_OK;
}
static tt_status step(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                      tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  Net* net = user;
  tt_tensor* loss = NULL;
  tt_status s;
  (void)n;
  (void)cap;
  net->runs++;
  TRY(tt_scope_push(x));
  s = compute_step(net, x, in, &loss);
  TRY(tt_scope_pop(x, &loss, s == TT_OK));
  if (s == TT_OK) outs[0] = loss;
  *n_outs = s == TT_OK;
  return s;
}

static void same_bits(const char* what, const tt_tensor* a, const tt_tensor* b) {
  const int64_t bytes = tt_tensor_numel(a) * tt_dtype_size(tt_tensor_dtype(a));
  char *x = malloc((size_t)bytes), *y = malloc((size_t)bytes);
  assert_int_equal(tt_tensor_numel(a), tt_tensor_numel(b));
  OK(tt_tensor_read(c, a, x, bytes));
  OK(tt_tensor_read(c, b, y, bytes));
  if (memcmp(x, y, (size_t)bytes)) fail_msg("%s differs", what);
  free(x);
  free(y);
}
static void same_state(const char* what, const Net* a, const Net* b) {
  tt_tensor *p[64], *q[64];
  tt_state_dict *s, *t;
  int64_t n, i;
  OK(tt_module_state_dict(c, a->m, &s));
  OK(tt_module_state_dict(c, b->m, &t));
  n = tt_state_dict_size(s);
  for (i = 0; i < n; i++) {
    OK(tt_state_dict_get(c, s, i, &p[i]));
    OK(tt_state_dict_get(c, t, i, &q[i]));
    same_bits(what, p[i], q[i]);
  }
  tt_state_dict_release(s);
  tt_state_dict_release(t);
}

/* Inputs of step k: of float32 or, without `floats`, tokens. */
static tt_tensor* inputs(const int64_t* shape, int64_t ndim, int floats, int k) {
  tt_tensor* x;
  OK(tt_manual_seed(c, 1000 + (uint64_t)k));
  if (floats) {
    OK(tt_randn(c, shape, ndim, NULL, &x));
  } else {
    OK(tt_randint(c, 0, kClasses, shape, ndim, NULL, &x));
  }
  return x;
}

static void check_curve(const char* what, tt_module* (*build)(void), const int64_t* shape,
                        int64_t ndim, int floats, int64_t rows) {
  Net eager = new_net(build), compiled = new_net(build);
  tt_compiled* f = compile(step, &compiled, 8);
  int k;
  for (k = 0; k < kSteps; k++) {
    tt_tensor *x, *t, *want = NULL, *got;
    int64_t n;
    OK(tt_scope_push(c));
    x = inputs(shape, ndim, floats, k);
    t = inputs(SHAPE(rows), 0, k + 500);
    OK(tt_manual_seed(c, (uint64_t)k));
    OK(step(&eager, c, LIST(x, t), &want, 1, &n));
    OK(tt_manual_seed(c, (uint64_t)k));
    got = call(f, LIST(x, t));
    same_bits(what, got, want);
    same_state(what, &compiled, &eager);
    OK(tt_scope_pop(c, NULL, 0));
  }
  if (compiled.runs > 1) fail_msg("%s: %s", what, info_of(f).reason);
  assert_int_equal(info_of(f).n_records, 1);
  assert_int_equal(info_of(f).n_replays, kSteps - 1);
  tt_compiled_release(f);
  drop_net(&eager);
  drop_net(&compiled);
}
static void test_curves(void** state) {
  (void)state;
  check_curve("mlp", mlp, SHAPE(4, 8), 1, 4);
  check_curve("cnn", cnn, SHAPE(4, 1, 8, 8), 1, 4);
  check_curve("gpt", gpt, SHAPE(2, 5), 0, 10);
}

/* Another shape and another mode make other records; a reset drops them. */
static void test_guards(void** state) {
  Net eager = new_net(mlp), compiled = new_net(mlp);
  tt_compiled* f = compile(step, &compiled, 3);
  const int64_t rows[] = {4, 2, 4, 2, 4, 6, 6, 7, 7};
  int k;
  (void)state;
  for (k = 0; k < 9; k++) {
    tt_tensor *x, *t, *want, *got;
    int64_t n;
    x = inputs(SHAPE(rows[k], 8), 1, k);
    t = inputs(SHAPE(rows[k]), 0, k + 500);
    if (k == 2 || k == 3) {
      OK(tt_module_train(c, eager.m, k == 3));
      OK(tt_module_train(c, compiled.m, k == 3));
    }
    OK(tt_manual_seed(c, (uint64_t)k));
    OK(step(&eager, c, LIST(x, t), &want, 1, &n));
    OK(tt_manual_seed(c, (uint64_t)k));
    got = call(f, LIST(x, t));
    same_bits("guards", got, want);
    same_state("guards", &compiled, &eager);
  }
  /* records: 4 rows, 2 rows, 4 rows in evaluation; then the limit */
  assert_int_equal(info_of(f).n_records, 3);
  assert_int_equal(info_of(f).n_replays, 2);
  assert_non_null(strstr(info_of(f).reason, "limit"));
  OK(tt_compiled_reset(c, f));
  assert_int_equal(info_of(f).n_records, 0);
  tt_compiled_release(f);
  drop_net(&eager);
  drop_net(&compiled);
}

/* ---- a dimension of any size ---- */

static tt_status compute(Net* net, tt_ctx* x, const tt_tensor* const* in, int with_backward,
                         tt_tensor** out) {
  int64_t n;
  if (with_backward) TRY(tt_optim_zero_grad(x, net->o, 1));
  TRY(tt_module_forward(x, net->m, in, 1, out, 1, &n));
  if (with_backward) {
    TRY(tt_sum(x, *out, NULL, out));
    TRY(tt_backward(x, *out, NULL));
  }
  return tt_detach(x, *out, out);
}
static tt_status forward_of(Net* net, tt_ctx* x, const tt_tensor* const* in, int with_backward,
                            tt_tensor** outs, int64_t* n_outs) {
  tt_tensor* out = NULL;
  tt_status s;
  net->runs++;
  TRY(tt_scope_push(x));
  s = compute(net, x, in, with_backward, &out);
  TRY(tt_scope_pop(x, &out, s == TT_OK));
  if (s == TT_OK) outs[0] = out;
  *n_outs = s == TT_OK;
  return s;
}
/* The module's result. */
static tt_status infer(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                       tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)n;
  (void)cap;
  return forward_of(user, x, in, 0, outs, n_outs);
}
/* Its sum, and gradients in the parameters. */
static tt_status slope(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                       tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)n;
  (void)cap;
  return forward_of(user, x, in, 1, outs, n_outs);
}
/* A number that is 1 / n. */
static tt_status divide(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                        tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)n;
  (void)cap;
  ((Net*)user)->runs++;
  *n_outs = 1;
  return tt_mul_f64(x, in[0], 1.0 / (double)tt_tensor_numel(in[0]), outs);
}

/* A number that follows from the size by no formula that records are tried with. */
static tt_status over_square(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                             tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)n;
  (void)cap;
  ((Net*)user)->runs++;
  *n_outs = 1;
  return tt_mul_f64(x, in[0], 1.0 / (double)(tt_tensor_numel(in[0]) * tt_tensor_numel(in[0])),
                    outs);
}

static tt_tensor* batch_of(const int64_t* shape, int64_t ndim, int64_t rows, int floats, int k) {
  int64_t sizes[8];
  memcpy(sizes, shape, (size_t)ndim * sizeof *shape);
  sizes[0] = rows;
  return inputs(sizes, ndim, floats, k);
}

/* Sizes 1, 2, 5 and 3 run the function; others follow from them, if they do. */
static void check_sizes(const char* what, tt_module* (*build)(void), tt_fn fn, int train,
                        const int64_t* shape, int64_t ndim, int floats, int runs) {
  const tt_compile_opts opts = {.set = TT_COMPILE_DYNAMIC, .dynamic = 1};
  const int64_t rows[] = {1, 2, 5, 3, 4, 64, 2, 7, 1, 64, 33};
  Net eager = new_net(build), compiled = new_net(build);
  tt_tensor *p[64], *q[64], *want, *got, *grad, *other;
  tt_compiled* f;
  int64_t n, i;
  int k;
  OK(tt_compile(c, fn, &compiled, NULL, &opts, &f));
  OK(tt_module_train(c, eager.m, train));
  OK(tt_module_train(c, compiled.m, train));
  for (k = 0; k < 11; k++) {
    tt_tensor* x;
    OK(tt_scope_push(c));
    x = batch_of(shape, ndim, rows[k], floats, k);
    OK(tt_manual_seed(c, (uint64_t)k));
    OK(fn(&eager, c, LIST(x), &want, 1, &n));
    OK(tt_manual_seed(c, (uint64_t)k));
    got = call(f, LIST(x));
    same_bits(what, got, want);
    OK(tt_module_parameters(c, eager.m, p, 64, &n));
    OK(tt_module_parameters(c, compiled.m, q, 64, &n));
    for (i = 0; i < n; i++) {
      OK(tt_tensor_grad(c, p[i], &grad));
      OK(tt_tensor_grad(c, q[i], &other));
      assert_int_equal(!grad, !other);
      if (grad) same_bits(what, grad, other);
    }
    OK(tt_scope_pop(c, NULL, 0));
  }
  if (compiled.runs != runs) fail_msg("%s: %d runs; %s", what, compiled.runs, info_of(f).reason);
  tt_compiled_release(f);
  drop_net(&eager);
  drop_net(&compiled);
}
/* A step of both on the same data and numbers: its result, and what it leaves behind. */
static void same_step(const char* what, tt_compiled* f, Net* compiled, Net* eager, tt_tensor* x,
                      tt_tensor* t, int k) {
  tt_tensor *want = NULL, *got;
  int64_t n;
  OK(tt_manual_seed(c, (uint64_t)k));
  OK(step(eager, c, LIST(x, t), &want, 1, &n));
  OK(tt_manual_seed(c, (uint64_t)k));
  got = call(f, LIST(x, t));
  same_bits(what, got, want);
  same_state(what, compiled, eager);
}
/* Whole steps of training: clipping, Adam, running statistics, dropout, a mean's 1 / n. A batch of
   1 is a record of its own. */
static void check_steps(const char* what, tt_module* (*build)(void), const int64_t* shape,
                        int64_t ndim, int floats, int64_t targets) {
  const tt_compile_opts opts = {.set = TT_COMPILE_DYNAMIC, .dynamic = 1};
  const int64_t rows[] = {2, 5, 3, 4, 2, 1, 33, 7, 1, 64, 65, 4};
  Net eager = new_net(build), compiled = new_net(build);
  tt_compiled* f;
  int k;
  OK(tt_compile(c, step, &compiled, NULL, &opts, &f));
  for (k = 0; k < 12; k++) {
    tt_tensor *x, *t;
    OK(tt_scope_push(c));
    x = batch_of(shape, ndim, rows[k], floats, k);
    t = inputs(SHAPE(rows[k] * targets), 0, k + 500);
    same_step(what, f, &compiled, &eager, x, t, k);
    OK(tt_scope_pop(c, NULL, 0));
  }
  if (compiled.runs != 4) fail_msg("%s: %d runs; %s", what, compiled.runs, info_of(f).reason);
  tt_compiled_release(f);
  drop_net(&eager);
  drop_net(&compiled);
}

/* Steps in which the batch and the length vary: five records, then others follow from them. */
static void check_two_sizes(void) {
  const tt_compile_opts opts = {.set = TT_COMPILE_DYNAMIC, .dynamic = 1};
  static const int64_t sizes[][2] = {{2, 4}, {5, 4}, {2, 7}, {3, 5}, {4, 6},  {7, 3},
                                     {3, 8}, {9, 2}, {2, 4}, {6, 6}, {33, 9}, {7, 3}};
  Net eager = new_net(gpt), compiled = new_net(gpt);
  tt_compiled* f;
  int k;
  OK(tt_compile(c, step, &compiled, NULL, &opts, &f));
  for (k = 0; k < 12; k++) {
    tt_tensor *x, *t;
    OK(tt_scope_push(c));
    x = inputs(sizes[k], 2, 0, k);
    t = inputs(SHAPE(sizes[k][0] * sizes[k][1]), 0, k + 500);
    same_step("two sizes", f, &compiled, &eager, x, t, k);
    OK(tt_scope_pop(c, NULL, 0));
  }
  if (compiled.runs != 5) fail_msg("two sizes: %d runs; %s", compiled.runs, info_of(f).reason);
  tt_compiled_release(f);
  drop_net(&eager);
  drop_net(&compiled);
}

static void test_sizes(void** state) {
  const int each = 8; /* a run for each size */
  (void)state;
  OK(tt_set_grad_enabled(c, 0, NULL));
  check_sizes("mlp", mlp, infer, 0, SHAPE(0, 8), 1, 4);
  check_sizes("cnn", cnn, infer, 0, SHAPE(0, 1, 8, 8), 1, 4);
  check_sizes("gpt", gpt, infer, 0, SHAPE(0, 5), 0, 4);
  check_sizes("1 / n", mlp, divide, 0, SHAPE(0, 8), 1, 4);
  check_sizes("1 / n^2", mlp, over_square, 0, SHAPE(0, 8), 1, each);
  check_sizes("random numbers", mlp, infer, 1, SHAPE(0, 8), 1, 4);
  OK(tt_set_grad_enabled(c, 1, NULL));
  check_sizes("gradients", mlp, slope, 0, SHAPE(0, 8), 1, 4);
  check_steps("mlp", mlp, SHAPE(0, 8), 1, 1);
  check_steps("cnn", cnn, SHAPE(0, 1, 8, 8), 1, 1);
  check_steps("gpt", gpt, SHAPE(0, 5), 0, 5);
  check_two_sizes();
}

static int dropped;
static void count_drop(void* user) {
  (void)user;
  dropped++;
}

/* A function that fails is not recorded; an index out of range fails a replay as the operator. */
static void test_failures(void** state) {
  Net net = new_net(mlp);
  tt_compiled* f = compile(step, &net, 8);
  tt_tensor *x = inputs(SHAPE(4, 8), 1, 0), *t = inputs(SHAPE(4), 0, 1), *bad, *out;
  int64_t n;
  (void)state;
  net.fails = 1;
  FAILS(tt_compiled_call(c, f, LIST(x, t), &out, 1, &n), TT_CALLBACK, "");
  assert_null(out);
  assert_int_equal(info_of(f).n_records, 0);
  net.fails = 0;
  call(f, LIST(x, t));
  assert_int_equal(info_of(f).n_records, 1);
  bad = make(TT_I64, SHAPE(4), (const double[]){1, 12, 1, 1}, 4);
  FAILS(tt_compiled_call(c, f, LIST(x, bad), &out, 1, &n), TT_INDEX, "12");
  assert_null(out);
  call(f, LIST(x, t));
  assert_int_equal(info_of(f).n_replays, 2);
  FAILS(tt_compiled_call(c, f, LIST(x, t), &out, 0, &n), TT_BUFFER_TOO_SMALL, "outs");
  assert_int_equal(n, 1);
  assert_int_equal(info_of(f).n_replays, 2);
  tt_compiled_release(f);
  FAILS(tt_compile(c, NULL, NULL, count_drop, NULL, &f), TT_INVALID_ARG, "fn");
  OK(tt_compile(c, step, &net, count_drop, NULL, &f));
  tt_compiled_release(f);
  assert_int_equal(dropped, 2);
  drop_net(&net);
}

/* Every allocation of the first call and of a replay failed once: the call fails and leaves no
   record, or it succeeds. */
static void test_out_of_memory(void** state) {
  int64_t at = 0, stride = SLOW_BUILD ? 97 : 23;
  int phase;
  (void)state;
  for (phase = 0; phase < 2; phase++)
    for (at = 1;; at += at < 40 ? 1 : stride) {
      Net net = new_net(mlp);
      tt_compiled* f = compile(step, &net, 8);
      tt_tensor *x, *t, *out;
      const int64_t failed = host.failed;
      int64_t n;
      tt_status s;
      OK(tt_scope_push(c));
      x = inputs(SHAPE(4, 8), 1, 0);
      t = inputs(SHAPE(4), 0, 1);
      if (phase) call(f, LIST(x, t));
      host.fail_at = host.calls + at;
      host.fail_n = 1;
      s = tt_compiled_call(c, f, LIST(x, t), &out, 1, &n);
      host.fail_at = 0;
      assert_true((s == TT_OK) == (out != NULL));
      call(f, LIST(x, t));
      call(f, LIST(x, t));
      assert_int_equal(info_of(f).n_records, 1);
      tt_compiled_release(f);
      drop_net(&net);
      OK(tt_scope_pop(c, NULL, 0));
      if (host.failed == failed) break;
    }
}

static tt_tensor* constant;
/* y = 2 x, x itself, x += 1 (written), constant, in one result list */
static tt_status several(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                         tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)user;
  (void)n;
  (void)cap;
  TRY(tt_mul_f64(x, in[0], 2, &outs[0]));
  TRY(tt_view(x, in[0], (const int64_t[]){2, 2}, 2, &outs[1]));
  TRY(tt_add_(x, (tt_tensor*)in[1], in[0]));
  TRY(tt_select(x, constant, 0, 1, &outs[2]));
  *n_outs = 3;
  return TT_OK;
}
/* Results that are inputs and constants, inputs that are written, and inputs that share memory. */
static void test_results(void** state) {
  tt_compiled* f = compile(several, NULL, 8);
  tt_tensor *x = numbers(TT_F32, (const double[]){1, 2, 3, 4}, 4), *w, *outs[4];
  int64_t n;
  int k;
  (void)state;
  constant = numbers(TT_F32, (const double[]){7, 8}, 2);
  OK(tt_zeros_like(c, x, NULL, &w));
  for (k = 1; k <= 3; k++) {
    OK(tt_compiled_call(c, f, LIST(x, w), outs, 4, &n));
    assert_int_equal(n, 3);
    VALUES(outs[0], 2, 4, 6, 8);
    VALUES(outs[1], 1, 2, 3, 4);
    assert_ptr_equal(tt_tensor_data(outs[1]), tt_tensor_data(x));
    VALUES(w, k, 2 * k, 3 * k, 4 * k);
    VALUES(outs[2], 8);
    assert_ptr_equal(tt_tensor_data(outs[2]), (char*)tt_tensor_data(constant) + 4);
  }
  assert_int_equal(info_of(f).n_replays, 2);
  for (k = 2; k <= 8; k *= 2) { /* x is given twice, and doubles */
    OK(tt_compiled_call(c, f, LIST(x, x), outs, 4, &n));
    VALUES(x, k, 2 * k, 3 * k, 4 * k);
    VALUES(outs[1], k, 2 * k, 3 * k, 4 * k);
    VALUES(outs[0], k, 2 * k, 3 * k, 4 * k);
  }
  assert_int_equal(info_of(f).n_replays, 4);
  tt_compiled_release(f);
}

/* y = 2 x, its second half, 2 x once more, y again */
static tt_status parts(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                       tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)user;
  (void)n;
  (void)cap;
  TRY(tt_mul_f64(x, in[0], 2, &outs[0]));
  TRY(tt_narrow(x, outs[0], 0, 2, 2, &outs[1]));
  TRY(tt_mul_f64(x, in[0], 2, &outs[2]));
  TRY(tt_detach(x, outs[0], &outs[3]));
  *n_outs = 4;
  return TT_OK;
}
/* Results that share memory in a call share it in replays, and equal ones do not. */
static void test_shared_results(void** state) {
  tt_compiled* f = compile(parts, NULL, 8);
  tt_tensor *x, *outs[4];
  int64_t n;
  int k;
  (void)state;
  for (k = 1; k <= 3; k++) {
    x = numbers(TT_F32, (const double[]){k, 2, 3, 4}, 4);
    OK(tt_compiled_call(c, f, LIST(x), outs, 4, &n));
    assert_int_equal(n, 4);
    OK(tt_zero_(c, outs[1]));
    VALUES(outs[0], 2 * k, 4, 0, 0);
    VALUES(outs[2], 2 * k, 4, 6, 8);
    VALUES(outs[3], 2 * k, 4, 0, 0);
  }
  assert_int_equal(info_of(f).n_replays, 2);
  tt_compiled_release(f);
}

/* every second row of 2 x, the first column of x + 1, one number of x - 1 as a row */
static tt_status sparse_views(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                              tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  const tt_slice_opts second = {.set = TT_SLICE_STEP, .step = 2};
  tt_tensor *twice = NULL, *more = NULL, *less = NULL, *one = NULL;
  tt_status s = tt_mul_f64(x, in[0], 2, &twice);
  (void)user;
  (void)n;
  (void)cap;
  if (s == TT_OK) s = tt_add_f64(x, in[0], 1, &more);
  if (s == TT_OK) s = tt_sub_f64(x, in[0], 1, &less);
  if (s == TT_OK) s = tt_slice(x, twice, 0, &second, &outs[0]);
  if (s == TT_OK) s = tt_select(x, more, 1, 0, &outs[1]);
  if (s == TT_OK) s = tt_as_strided(x, less, SHAPE(1), SHAPE(1), NULL, &one);
  if (s == TT_OK) s = tt_expand(x, one, SHAPE(3), &outs[2]);
  tt_tensor_release(twice);
  tt_tensor_release(more);
  tt_tensor_release(less);
  tt_tensor_release(one);
  *n_outs = 3;
  return s;
}
/* Results with gaps between their elements have the strides of the call, and memory for them. */
static void test_results_with_gaps(void** state) {
  tt_compiled* f = compile(sparse_views, NULL, 8);
  tt_tensor *x, *outs[4];
  int64_t n;
  int k;
  (void)state;
  for (k = 1; k <= 3; k++) {
    x = numbers(TT_F32, (const double[]){k, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 12);
    OK(tt_view(c, x, SHAPE(4, 3), &x));
    OK(tt_compiled_call(c, f, LIST(x), outs, 4, &n));
    assert_int_equal(n, 3);
    VALUES(outs[0], 2 * k, 4, 6, 14, 16, 18);
    VALUES(outs[1], k + 1, 5, 8, 11);
    VALUES(outs[2], k - 1, k - 1, k - 1);
    assert_int_equal(tt_tensor_strides(outs[0])[0], 6);
    assert_int_equal(tt_tensor_strides(outs[1])[0], 3);
    assert_int_equal(tt_tensor_strides(outs[2])[0], 0);
    assert_true(tt_tensor_storage_bytes(outs[0]) >= 9 * 4);
    assert_true(tt_tensor_storage_bytes(outs[1]) >= 10 * 4);
  }
  assert_int_equal(info_of(f).n_replays, 2);
  tt_compiled_release(f);
}

static tt_tensor* weight;
static tt_status forward(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                         tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)user;
  (void)n;
  (void)cap;
  *n_outs = 1;
  return tt_mul(x, in[0], weight, outs);
}
static tt_status accumulate(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                            tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  tt_tensor *y = NULL, *sum = NULL;
  tt_status s = tt_mul(x, in[0], weight, &y);
  (void)user;
  (void)n;
  (void)cap;
  if (s == TT_OK) s = tt_sum(x, y, NULL, &sum);
  if (s == TT_OK) s = tt_backward(x, sum, NULL);
  if (s == TT_OK) s = tt_detach(x, sum, outs);
  tt_tensor_release(y);
  tt_tensor_release(sum);
  *n_outs = s == TT_OK;
  return s;
}
/* Gradients that a function leaves: set, added to, dropped by the application. */
static void test_gradients(void** state) {
  tt_compiled *f = compile(forward, NULL, 8), *g = compile(accumulate, NULL, 8);
  tt_tensor *x = numbers(TT_F32, (const double[]){1, 2}, 2), *out;
  int k, round;
  (void)state;
  weight = numbers(TT_F32, (const double[]){3, 4}, 2);
  OK(tt_requires_grad_(c, weight, 1));
  out = call(f, LIST(x));
  OK(tt_backward(c, sum_of(out), NULL));
  VALUES(grad_of(weight), 1, 2);
  OK(tt_tensor_set_grad(c, weight, NULL));
  OK(tt_backward(c, sum_of(call(f, LIST(x))), NULL));
  VALUES(grad_of(weight), 1, 2);
  assert_int_equal(info_of(f).n_replays, 1);
  for (round = 0; round < 3; round++) {
    OK(tt_tensor_set_grad(c, weight, NULL));
    for (k = 1; k <= 4; k++) {
      VALUES(call(g, LIST(x)), 11);
      VALUES(grad_of(weight), k, 2 * k);
    }
  }
  assert_true(info_of(g).n_replays >= 6);
  OK(tt_requires_grad_(c, weight, 0));
  OK(tt_tensor_set_grad(c, weight, NULL));
  VALUES(call(f, LIST(x)), 3, 8);
  VALUES(call(f, LIST(x)), 3, 8);
  assert_int_equal(info_of(f).n_replays, 2);
  tt_compiled_release(f);
  tt_compiled_release(g);
}

static tt_status reading(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                         tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  double v;
  (void)user;
  (void)n;
  (void)cap;
  *n_outs = 1;
  TRY(tt_item_f64(x, in[0], &v));
  return tt_mul_f64(x, in[0], v, outs);
}
/* A function that reads elements, and one inside a capture, run as ever. */
static void test_unrecorded(void** state) {
  tt_compiled* f = compile(reading, NULL, 8);
  tt_tensor* x;
  tt_graph* g;
  tt_tensor* out;
  tt_graph_info info;
  int k;
  (void)state;
  for (k = 1; k < 4; k++) {
    x = number(TT_F32, k);
    assert_true(value_of(call(f, LIST(x))) == k * k);
  }
  assert_int_equal(info_of(f).n_records, 0);
  assert_int_equal(info_of(f).n_runs, 3);
  assert_non_null(strstr(info_of(f).reason, "read"));
  tt_compiled_release(f);
  weight = number(TT_F32, 3);
  f = compile(forward, NULL, 8);
  x = number(TT_F32, 2);
  call(f, LIST(x));
  OK(tt_capture_begin(c, LIST(x), NULL));
  out = call(f, LIST(x));
  OK(tt_capture_end(c, LIST(out), &g));
  OK(tt_graph_get_info(c, g, &info));
  assert_int_equal(info.n_nodes, 1);
  tt_graph_release(g);
  tt_compiled_release(f);
}

typedef struct Job {
  tt_runtime* rt;
  tt_compiled* f;
  int bad;
} Job;
static void* run_job(void* user) {
  Job* job = user;
  tt_ctx* x;
  tt_tensor *in, *out;
  int64_t n;
  int k;
  const float two[] = {2, 2};
  job->bad = tt_ctx_new(job->rt, &x) != TT_OK;
  for (k = 0; k < 500 && !job->bad; k++) {
    job->bad |= tt_full_f64(x, SHAPE(2), k, NULL, &in) != TT_OK;
    job->bad |=
        tt_compiled_call(x, job->f, (const tt_tensor* const[]){in}, 1, &out, 1, &n) != TT_OK;
    if (job->bad) break;
    job->bad |= ((float*)tt_tensor_data(out))[1] != two[1] * (float)k;
    tt_tensor_release(in);
    tt_tensor_release(out);
  }
  tt_ctx_release(x);
  return NULL;
}
/* Two threads: one replays, the other runs the function meanwhile. */
static void test_threads(void** state) {
  tt_compiled* f = compile(forward, NULL, 8);
  pthread_t threads[2];
  Job jobs[2];
  tt_runtime* rt;
  int i;
  (void)state;
  weight = numbers(TT_F32, (const double[]){2, 2}, 2);
  OK(tt_ctx_runtime(c, &rt));
  host.paused = 1;
  for (i = 0; i < 2; i++) {
    jobs[i] = (Job){rt, f, 0};
    assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
  }
  for (i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(jobs[i].bad, 0);
  }
  host.paused = 0;
  assert_true(info_of(f).n_replays > 0);
  tt_compiled_release(f);
  tt_runtime_release(rt);
}

/* ---- inputs and results that a plan uses where they are ---- */

static const void* seen; /* the memory of the last argument of `peek` */
static tt_status peek(void* user, tt_ctx* x, const tt_value* args, int64_t n_args, tt_tensor** outs,
                      int64_t n_outs) {
  (void)user;
  (void)n_args;
  (void)n_outs;
  seen = tt_tensor_data(args[0].tensor);
  return tt_neg(x, args[0].tensor, &outs[0]);
}

/* exp(peek(x) * 2), w += x; or, with one argument, the flipped gradient of a product */
static tt_status bound(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                       tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  const tt_op* op;
  tt_value arg = {.tag = TT_VAL_TENSOR, .tensor = (tt_tensor*)in[0]};
  int64_t found;
  (void)user;
  (void)n;
  (void)cap;
  TRY(tt_op_find(x, "peek", &op));
  TRY(tt_op_call(x, op, &arg, 1, outs, 1, &found));
  TRY(tt_mul_f64_(x, outs[0], 2));
  TRY(tt_exp_(x, outs[0]));
  TRY(tt_add_(x, (tt_tensor*)in[1], in[0]));
  *n_outs = 1;
  return TT_OK;
}
static tt_status flipped(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                         tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  const int64_t rows = 0;
  tt_tensor *y, *product, *sum;
  (void)user;
  (void)n;
  (void)cap;
  TRY(tt_tensor_set_grad(x, weight, NULL));
  TRY(tt_flip(x, in[0], &rows, 1, &y));
  TRY(tt_mul(x, y, weight, &product));
  TRY(tt_sum(x, product, NULL, &sum));
  TRY(tt_backward(x, sum, NULL));
  TRY(tt_detach(x, sum, outs));
  tt_tensor_release(y);
  tt_tensor_release(product);
  tt_tensor_release(sum);
  *n_outs = 1;
  return TT_OK;
}

/* By LAPACK or a kernel of the CPU's own, whose plan is not known. */
static tt_status inverse(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                         tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)user;
  (void)n;
  (void)cap;
  *n_outs = 1;
  return tt_linalg_inv(x, in[0], outs);
}

static tt_tensor* ramp(int64_t rows, int64_t columns, double from) {
  tt_tensor* t;
  float* data;
  int64_t i;
  OK(tt_zeros(c, SHAPE(rows, columns), NULL, &t));
  data = tt_tensor_data(t);
  for (i = 0; i < rows * columns; i++) data[i] = (float)(from + (double)i * 1e-4);
  return t;
}

/* Values of a result, a written input and where the operator has seen x. */
static void check_bound(tt_compiled* f, tt_tensor* x, tt_tensor* w, int where) {
  tt_tensor *want, *sum, *got;
  OK(tt_mul_f64(c, x, -2, &want));
  OK(tt_exp(c, want, &want));
  OK(tt_add(c, w, x, &sum));
  got = call(f, LIST(x, w));
  same_bits("a result", got, want);
  same_bits("a written input", w, sum);
  assert_int_equal(seen == tt_tensor_data(x), where);
}

static void test_bound(void** state) {
  static const tt_op_def def = {
      .struct_size = sizeof def, .schema = "peek(x: Tensor) -> Tensor", .compute = peek};
  enum { kRows = 64, kColumns = 96 };
  tt_tensor *x, *w = ramp(kRows, kColumns, 7), *all;
  tt_compiled* f;
  int k;
  (void)state;
  OK(tt_op_register(c, &def));
  f = compile(bound, NULL, 4);
  for (k = 0; k < 4; k++) { /* the first call records */
    x = ramp(kRows, kColumns, k);
    check_bound(f, x, w, 1);
  }
  all = ramp(kRows * kColumns + 1, 1, 5); /* an address that is not aligned is copied */
  OK(tt_narrow(c, all, 0, 1, kRows * kColumns, &x));
  OK(tt_reshape(c, x, SHAPE(kRows, kColumns), &x));
  check_bound(f, x, w, 0);
  check_bound(f, ramp(kRows, kColumns, 2), w, 1);
  assert_int_equal(info_of(f).n_replays, 5);
  tt_compiled_release(f);
  f = compile(inverse, NULL, 4);
  for (k = 0; k < 3; k++) {
    tt_tensor* want;
    OK(tt_eye(c, kColumns, NULL, &x));
    OK(tt_mul_f64(c, x, k + 2, &x));
    OK(tt_linalg_inv(c, x, &want));
    same_bits("an inverse", call(f, LIST(x)), want);
  }
  assert_int_equal(info_of(f).n_replays, 2);
  tt_compiled_release(f);
}

/* A gradient that the application has stays as it is, also as an input of later calls: these give
   the leaf gradients in other memory. */
static void test_held_gradients(void** state) {
  enum { kRows = 64, kColumns = 96 };
  const int64_t rows = 0;
  tt_compiled* f = compile(flipped, NULL, 4);
  tt_tensor *x, *flip[6], *grad[6];
  int i, k;
  (void)state;
  weight = ramp(kRows, kColumns, 3);
  OK(tt_requires_grad_(c, weight, 1));
  OK(tt_scope_push(c));
  x = ramp(kRows, kColumns, 4);
  for (k = 0; k < 4; k++) {
    OK(tt_flip(c, x, &rows, 1, &flip[k]));
    call(f, LIST(x));
    OK(tt_tensor_grad(c, weight, &grad[k]));
    for (i = 0; i <= k; i++) same_bits("a gradient", grad[i], flip[i]);
    if (k) x = grad[k];
  }
  assert_int_equal(info_of(f).n_replays, 3);
  x = ramp(kRows, kColumns, 5);
  for (k = 4; k < 6; k++) {
    call(f, LIST(x));
    OK(tt_tensor_grad(c, weight, &grad[k]));
    for (i = 0; i < 4; i++) same_bits("a gradient", grad[i], flip[i]);
  }
  assert_int_equal(info_of(f).n_replays, 5);
  OK(tt_scope_pop(c, NULL, 0));
  tt_compiled_release(f);
}

/* x, y: y times w; x and y are parts of one batch. */
static tt_status product_of_parts(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                                  tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)user;
  (void)n;
  (void)cap;
  TRY(tt_mul(x, in[0], in[1], &outs[0]));
  *n_outs = 1;
  return TT_OK;
}
static tt_status write_of_parts(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                                tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  TRY(tt_add_(x, (tt_tensor*)in[0], in[1]));
  return product_of_parts(user, x, in, n, outs, cap, n_outs);
}
/* Inputs that share memory, such as a sequence and the same one a step later, have a record, and
   those in memories of their own have another one. */
static void test_inputs_that_share_memory(void** state) {
  tt_tensor *all, *x, *y;
  int k, writes;
  (void)state;
  for (writes = 0; writes < 2; writes++) {
    tt_compiled* f = compile(writes ? write_of_parts : product_of_parts, NULL, 8);
    for (k = 1; k <= 4; k++) {
      all = numbers(TT_F32, (const double[]){k, 2, 3, 4}, 4);
      OK(tt_narrow(c, all, 0, 0, 2, &x));
      OK(tt_narrow(c, all, 0, 2, 2, &y));
      if (k == 4) y = numbers(TT_F32, (const double[]){3, 4}, 2);
      if (writes) VALUES(call(f, LIST(x, y)), 3 * (k + 3), 24);
      else VALUES(call(f, LIST(x, y)), 3 * k, 8);
    }
    assert_int_equal(info_of(f).n_replays, 2);
    x = numbers(TT_F32, (const double[]){1, 2}, 2); /* the call with memory apart was recorded */
    if (writes) VALUES(call(f, LIST(x, y)), 12, 24);
    else VALUES(call(f, LIST(x, y)), 3, 8);
    assert_int_equal(info_of(f).n_replays, 3);
    tt_compiled_release(f);
  }
}

/* Memory between inputs that are written stays another thread's: the function itself runs. */
static void test_written_inputs_with_a_gap(void** state) {
  tt_compiled* f = compile(write_of_parts, NULL, 8);
  int k;
  (void)state;
  for (k = 0; k < 3; k++) {
    tt_tensor* all = numbers(TT_F32, (const double[]){1, 2, 9, 3, 4}, 5);
    tt_tensor *x, *y;
    OK(tt_narrow(c, all, 0, 0, 2, &x));
    OK(tt_narrow(c, all, 0, 3, 2, &y));
    VALUES(call(f, LIST(x, y)), 12, 24);
    VALUES(all, 4, 6, 9, 3, 4);
  }
  assert_int_equal(info_of(f).n_replays, 0);
  assert_non_null(strstr(info_of(f).reason, "other memory between them"));
  tt_compiled_release(f);
}

static tt_status forward_of_module(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                                   tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  return tt_module_forward(x, user, in, n, outs, cap, n_outs);
}
/* A parameter that is exchanged for a view of its memory is another one. */
static void test_exchanged_parameter(void** state) {
  const tt_nn_linear_opts opts = {.set = TT_NN_LINEAR_BIAS, .bias = 0};
  tt_tensor *weight, *turned, *x = numbers(TT_F32, (const double[]){1, 10}, 2);
  tt_module* m;
  tt_compiled* f;
  int k;
  (void)state;
  OK(tt_nn_linear(c, 2, 2, &opts, &m));
  OK(tt_view(c, numbers(TT_F32, (const double[]){1, 2, 3, 4}, 4), SHAPE(2, 2), &weight));
  OK(tt_detach(c, weight, &weight));
  OK(tt_module_register_parameter(c, m, "weight", weight));
  OK(tt_transpose(c, weight, 0, 1, &turned));
  OK(tt_detach(c, turned, &turned));
  f = compile(forward_of_module, m, 8);
  for (k = 0; k < 2; k++) VALUES(call(f, LIST(x)), 21, 43);
  OK(tt_module_register_parameter(c, m, "weight", turned));
  for (k = 0; k < 2; k++) VALUES(call(f, LIST(x)), 31, 42);
  assert_int_equal(info_of(f).n_replays, 2);
  tt_compiled_release(f);
  tt_module_release(m);
}

/* x, y, w: the gradient x y of the leaf w, which is an input */
static tt_status gradient_of_input(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                                   tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  tt_tensor *both = NULL, *product = NULL, *sum = NULL;
  tt_status s = tt_tensor_set_grad(x, (tt_tensor*)in[2], NULL);
  (void)user;
  (void)n;
  (void)cap;
  if (s == TT_OK) s = tt_mul(x, in[0], in[1], &both);
  if (s == TT_OK) s = tt_mul(x, both, in[2], &product);
  if (s == TT_OK) s = tt_sum(x, product, NULL, &sum);
  if (s == TT_OK) s = tt_backward(x, sum, NULL);
  if (s == TT_OK) s = tt_tensor_grad(x, in[2], outs);
  tt_tensor_release(both);
  tt_tensor_release(product);
  tt_tensor_release(sum);
  *n_outs = 1;
  return s;
}
/* A gradient that is returned is the leaf's and new in each call; if memory is short in a replay,
   the leaf keeps the one that it has. */
static void test_returned_gradients(void** state) {
  tt_tensor *x, *y, *w, *out, *grad, *before;
  int64_t at;
  int phase;
  (void)state;
  for (phase = 0; phase < 2; phase++)
    for (at = 1;; at += at < 40 ? 1 : 23) {
      tt_compiled* f = compile(gradient_of_input, NULL, 8);
      const int64_t failed = host.failed;
      int64_t n;
      tt_status s;
      OK(tt_scope_push(c));
      x = numbers(TT_F32, (const double[]){1, 2}, 2);
      y = numbers(TT_F32, (const double[]){3, 4}, 2);
      w = numbers(TT_F32, (const double[]){5, 6}, 2);
      OK(tt_requires_grad_(c, w, 1));
      if (phase) VALUES(call(f, LIST(x, y, w)), 3, 8);
      OK(tt_tensor_grad(c, w, &before));
      OK(tt_fill_f64_(c, x, 2));
      OK(tt_fill_f64_(c, y, 2));
      host.fail_at = host.calls + at;
      host.fail_n = 1;
      s = tt_compiled_call(c, f, LIST(x, y, w), &out, 1, &n);
      host.fail_at = 0;
      assert_true((s == TT_OK) == (out != NULL));
      assert_true(s == TT_OK || s == TT_OOM || s == TT_CALLBACK);
      OK(tt_tensor_grad(c, w, &grad));
      if (s == TT_OK) VALUES(grad, 4, 4);
      else if (phase) VALUES(grad, 3, 8);
      if (phase) VALUES(before, 3, 8);
      VALUES(call(f, LIST(x, y, w)), 4, 4);
      VALUES(call(f, LIST(x, y, w)), 4, 4);
      assert_int_equal(info_of(f).n_records, 1);
      tt_compiled_release(f);
      OK(tt_scope_pop(c, NULL, 0));
      if (host.failed == failed) break;
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_curves),
                                     SCOPED(test_guards),
                                     SCOPED(test_sizes),
                                     SCOPED(test_failures),
                                     SCOPED(test_results),
                                     SCOPED(test_threads),
                                     SCOPED(test_gradients),
                                     SCOPED(test_unrecorded),
                                     SCOPED(test_out_of_memory),
                                     SCOPED(test_bound),
                                     SCOPED(test_shared_results),
                                     SCOPED(test_results_with_gaps),
                                     SCOPED(test_held_gradients),
                                     SCOPED(test_inputs_that_share_memory),
                                     SCOPED(test_written_inputs_with_a_gap),
                                     SCOPED(test_exchanged_parameter),
                                     SCOPED(test_returned_gradients)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
