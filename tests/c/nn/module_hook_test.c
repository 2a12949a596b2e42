/* Backward hooks of modules: the gradients that they get, replacements, absent gradients,
   failures, second derivatives. */
#include "harness.h"

/* ---- a module of two inputs and two results: a b, and a + b ---- */

static tt_status pair_forward(void* user, tt_ctx* x, tt_module* m, const tt_tensor* const* in,
                              int64_t n_in, tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  tt_status s;
  (void)user;
  (void)m;
  (void)n_in;
  (void)cap;
  *n_outs = 2;
  s = tt_mul(x, in[0], in[1], &outs[0]);
  return s ? s : tt_add(x, in[0], in[1], &outs[1]);
}
static tt_module* pair(void) {
  tt_module* m = NULL;
  const tt_module_def def = {sizeof def, "Pair", NULL, pair_forward, NULL, NULL};
  OK(tt_module_new_custom(c, &def, &m));
  return m;
}
static tt_status square_forward(void* user, tt_ctx* x, tt_module* m, const tt_tensor* const* in,
                                int64_t n_in, tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)user;
  (void)m;
  (void)n_in;
  (void)cap;
  (void)n_outs;
  return tt_square(x, in[0], &outs[0]);
}
static tt_module* square(void) {
  tt_module* m = NULL;
  const tt_module_def def = {sizeof def, "Square", NULL, square_forward, NULL, NULL};
  OK(tt_module_new_custom(c, &def, &m));
  return m;
}

/* ---- hooks that record the first element of each gradient; -99: absent ---- */

typedef struct Seen {
  int calls, pre_calls, drops, fail, wrong_shape, by_index,
      by_result; /* by_…: gradient number by_… - 1 becomes ones */
  double result[2], input[2], pre[2], factor, pre_factor; /* factor 0: no replacement */
  int64_t id;
} Seen;
static void note(double* to, const tt_tensor* const* t, int64_t n) {
  int64_t i;
  for (i = 0; i < n && i < 2; i++) {
    double* v = t[i] ? values_of(t[i]) : NULL;
    to[i] = v ? v[0] : -99;
    free(v);
  }
}
static tt_status on_backward(void* user, tt_ctx* x, tt_module* m, const tt_tensor* const* results,
                             int64_t n_results, const tt_tensor* const* inputs, int64_t n_inputs,
                             tt_tensor** replacements) {
  Seen* s = user;
  (void)m;
  s->calls++;
  note(s->result, results, n_results);
  note(s->input, inputs, n_inputs);
  if (s->fail) return TT_INTERNAL;
  if (s->wrong_shape) return tt_ones(x, SHAPE(7), NULL, &replacements[0]);
  if (s->by_index) return tt_ones_like(x, results[0], NULL, &replacements[s->by_index - 1]);
  return s->factor != 0 ? tt_mul_f64(x, inputs[0], s->factor, &replacements[0]) : TT_OK;
}
static tt_status on_backward_pre(void* user, tt_ctx* x, tt_module* m,
                                 const tt_tensor* const* results, int64_t n,
                                 tt_tensor** replacements) {
  Seen* s = user;
  (void)m;
  s->pre_calls++;
  note(s->pre, results, n);
  if (s->by_result) return tt_ones_like(x, results[0], NULL, &replacements[s->by_result - 1]);
  return s->pre_factor != 0 ? tt_mul_f64(x, results[0], s->pre_factor, &replacements[0]) : TT_OK;
}
static void on_drop(void* user) { ((Seen*)user)->drops++; }
static void watch(tt_module* m, Seen* s) {
  OK(tt_module_register_full_backward_hook(c, m, on_backward, s, on_drop, &s->id));
}
static void watch_pre(tt_module* m, Seen* s) {
  int64_t id;
  OK(tt_module_register_full_backward_pre_hook(c, m, on_backward_pre, s, on_drop, &id));
}
static tt_tensor* call(tt_module* m, const tt_tensor* x) {
  tt_tensor* y;
  OK(tt_module_call(c, m, x, &y));
  return y;
}
static void backward(const tt_tensor* y, int retain) {
  const tt_backward_opts o = {.set = TT_BACKWARD_RETAIN_GRAPH, .retain_graph = retain};
  OK(tt_backward(c, sum_of(y), &o));
}

/* Static: recorded calls keep the module and its hooks until the scope is popped. */
static Seen seen[2];
static Seen* fresh(int i) {
  memset(&seen[i], 0, sizeof seen[i]);
  return &seen[i];
}

static void test_values_and_replacements(void** state) {
  Seen* const s = fresh(0);
  tt_module* m = pair();
  tt_tensor* a = leaf(DATA(2, 3));
  tt_tensor* b = leaf(DATA(5, 7));
  tt_tensor* y[2];
  tt_tensor* sum;
  int64_t n;
  (void)state;
  watch(m, s);
  watch_pre(m, s);
  OK(tt_module_forward(c, m, LIST(a, b), y, 2, &n));
  VALUES(y[0], 10, 21);
  VALUES(y[1], 7, 10);
  OK(tt_mul_f64(c, y[1], 100, &sum));
  OK(tt_add(c, y[0], sum, &sum));
  backward(sum, 1);
  assert_true(s->calls == 1 && s->pre_calls == 1 && s->pre[0] == 1 && s->pre[1] == 100 &&
              s->result[0] == 1 && s->result[1] == 100);
  assert_true(s->input[0] == 105 && s->input[1] == 102);
  VALUES(grad_of(a), 105, 107);
  VALUES(grad_of(b), 102, 103);
  s->factor = 2;
  s->pre_factor = 10;
  backward(sum, 0);
  assert_true(s->calls == 2 && s->result[0] == 10 && s->result[1] == 100 && s->input[0] == 150 &&
              s->input[1] == 120);
  VALUES(grad_of(a), 405, 447);
  VALUES(grad_of(b), 222, 233);
  FAILS(tt_backward(c, sum, NULL), TT_AUTOGRAD, NULL);
  OK(tt_module_forward(c, m, LIST(a, b), y, 2, &n)); /* only one result is used */
  s->factor = s->pre_factor = 0;
  backward(y[0], 0);
  assert_true(s->calls == 3 && s->result[0] == 1 && s->result[1] == -99 && s->input[0] == 5);
  OK(tt_module_forward(c, m, LIST(a, b), y, 2, &n)); /* a gradient for a result that got none */
  s->by_result = 2;
  backward(y[0], 0);
  VALUES(grad_of(a), 416, 462);
  tt_module_release(m);
  assert_int_equal(s->drops, 2);
}

static void test_absent_gradients(void** state) {
  Seen* const s = fresh(0);
  tt_module *m = pair(), *l;
  tt_tensor* a = numbers(TT_F64, DATA(2, 3));
  tt_tensor* b = leaf(DATA(5, 7));
  tt_tensor* unused = leaf(DATA(1, 1));
  tt_tensor* y[2];
  tt_tensor* w;
  const tt_nn_linear_opts o = {.set = TT_NN_LINEAR_DTYPE, .dtype = TT_F64};
  int64_t n;
  (void)state;
  watch(m, s);
  OK(tt_module_forward(c, m, LIST(a, b), y, 2, &n));
  backward(y[0], 1);
  assert_true(s->calls == 1 && s->input[0] == 0 && s->input[1] == 2);
  tt_module_release(m);
  m = square();
  watch(m, s);
  OK(tt_module_forward(c, m, LIST(b, unused), y, 2,
                       &n)); /* the hook got zeros and returns another gradient */
  s->by_index = 2;
  backward(y[0], 0);
  VALUES(grad_of(unused), 1, 1);
  assert_true(s->input[0] == 10 && s->input[1] == 0);
  tt_module_release(m);
  OK(tt_nn_linear(c, 2, 2, &o, &l)); /* parameters need gradients, the input does not */
  settle(l);
  s->by_index = 0;
  s->calls = 0;
  watch(l, s);
  backward(call(l, a), 0);
  OK(tt_module_get_tensor(c, l, "weight", &w));
  VALUES(grad_of(w), 2, 3, 2, 3);
  assert_true(s->calls == 1 && s->result[0] == 1 && s->input[0] == -99);
  s->by_index = 1;
  FAILS(tt_backward(c, sum_of(call(l, a)), NULL), TT_CALLBACK,
        "replaced gradient 0, but there is no such gradient");
  s->by_index = s->calls = 0;
  OK(tt_module_requires_grad_(c, l, 0));
  call(l, a); /* nothing to record */
  assert_int_equal(s->calls, 0);
  tt_module_release(l);
}

static void test_failures(void** state) {
  Seen* const s = fresh(0);
  tt_module* m = square();
  tt_tensor *x = leaf(DATA(3)), *y, *g;
  int32_t on;
  (void)state;
  watch(m, s);
  s->fail = 1;
  FAILS(tt_backward(c, call(m, x), NULL), TT_CALLBACK, "full backward hook callback of Square");
  OK(tt_tensor_grad(c, x, &g));
  assert_null(g);
  s->fail = 0;
  s->wrong_shape = 1;
  FAILS(tt_backward(c, call(m, x), NULL), TT_CALLBACK, "[7]");
  s->wrong_shape = 0;
  OK(tt_backward(c, call(m, x), NULL));
  VALUES(grad_of(x), 6);
  FAILS(tt_module_register_full_backward_hook(c, m, NULL, s, on_drop, NULL), TT_INVALID_ARG,
        "fn is NULL");
  assert_int_equal(s->drops, 1);
  y = call(m, x);
  OK(tt_module_remove_hook(
      c, m, s->id)); /* a removed hook does not run, whenever the call was recorded */
  s->calls = 0;
  OK(tt_backward(c, y, NULL));
  assert_true(s->calls == 0 && s->drops == 2);
  watch(m, s);
  OK(tt_set_grad_enabled(c, 0, &on));
  call(m, x);
  OK(tt_set_grad_enabled(c, 1, &on));
  assert_int_equal(s->calls, 0);
  tt_module_release(m);
}

/* ---- the nodes of hooks: a leaf is complete once, second derivatives, no cycles of references
   ---- */

static tt_status count_up(void* user, tt_ctx* x, const tt_tensor* leaf) {
  (void)x;
  (void)leaf;
  ++*(int*)user;
  return TT_OK;
}

static void test_order(void** state) {
  Seen* const s = fresh(0);
  int complete = 0;
  tt_module* m = square();
  tt_tensor *x = leaf(DATA(3)), *y, *z, *g;
  int64_t id;
  (void)state;
  watch(m, s);
  OK(tt_register_accumulate_hook(c, x, count_up, &complete, NULL, &id));
  OK(tt_mul_f64(c, x, 10, &z)); /* a second way to the leaf */
  OK(tt_add(c, call(m, x), z, &y));
  OK(tt_backward(c, y, NULL));
  VALUES(grad_of(x), 16);
  assert_int_equal(complete, 1);
  y = call(m, call(m, x)); /* x^4: the module twice in one graph */
  s->calls = 0;
  g = derive(y, x, 1);
  VALUES(g, 108);
  assert_int_equal(s->calls, 2);
  s->factor = 2; /* doubles each gradient, and is differentiated itself */
  g = derive(call(m, x), x, 1);
  VALUES(g, 12);
  s->factor = 0;
  s->calls = 0;
  VALUES(derive(g, x, 1),
         4); /* reaches the input through its copy, not through the result: no hook runs */
  assert_int_equal(s->calls, 0);
  tt_module_release(m);
}

static void test_sequences(void** state) {
  Seen* const outer = fresh(0);
  Seen* const inner = fresh(1);
  tt_module *m, *r;
  tt_tensor *x = leaf(DATA(-1, 3)), *y;
  (void)state;
  OK(tt_nn_sequential(c, &m));
  OK(tt_nn_relu(c, NULL, &r));
  OK(tt_module_append(c, m, r));
  OK(tt_module_append(c, m, r));
  watch(m, outer);
  watch(r, inner);
  y = call(m, x);
  VALUES(y, 0, 3);
  backward(y, 0);
  VALUES(grad_of(x), 0, 1);
  assert_true(outer->calls == 1 && inner->calls == 2 && outer->result[0] == 1 &&
              outer->input[0] == 0);
  tt_module_release(r);
  tt_module_release(m);
}

/* A module that writes into its input writes into a copy. */
static tt_status in_place_forward(void* user, tt_ctx* x, tt_module* m, const tt_tensor* const* in,
                                  int64_t n_in, tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  tt_status s = tt_mul_f64_(x, (tt_tensor*)(uintptr_t)in[0], 2);
  (void)user;
  (void)m;
  (void)n_in;
  (void)cap;
  (void)n_outs;
  return s ? s : tt_square(x, in[0], &outs[0]);
}
static void test_in_place(void** state) {
  Seen* const s = fresh(0);
  tt_module* m = NULL;
  const tt_module_def def = {sizeof def, "InPlace", NULL, in_place_forward, NULL, NULL};
  tt_tensor *x = leaf(DATA(3)), *y;
  (void)state;
  OK(tt_module_new_custom(c, &def, &m));
  watch(m, s);
  y = call(m, x);
  VALUES(y, 36);
  VALUES(x, 3);
  OK(tt_mul_f64_(c, y, 2)); /* and the result may be written to */
  OK(tt_backward(c, y, NULL));
  VALUES(grad_of(x), 48);
  assert_true(s->calls == 1 && s->result[0] == 2 && s->input[0] == 48);
  tt_module_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_values_and_replacements),
      SCOPED(test_absent_gradients),
      SCOPED(test_failures),
      SCOPED(test_order),
      SCOPED(test_sequences),
      SCOPED(test_in_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
