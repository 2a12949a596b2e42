/* Compiled functions whose results require gradients, beside the functions themselves. */
#include "compiled.h"

#include <pthread.h>
#include <string.h>

enum { kRows = 6, kIn = 3, kOut = 2 };

static tt_tensor *weight, *other;

static void add(tt_module* to, tt_module* child) {
  OK(tt_module_append(c, to, child));
  tt_module_release(child);
}
static tt_module* new_model(int with_dropout) {
  tt_module *m, *layer;
  OK(tt_manual_seed(c, 5));
  OK(tt_nn_sequential(c, &m));
  OK(tt_nn_linear(c, kIn, 4, NULL, &layer));
  add(m, layer);
  OK(tt_nn_batch_norm1d(c, 4, NULL, &layer));
  add(m, layer);
  OK(tt_nn_relu(c, NULL, &layer));
  add(m, layer);
  if (with_dropout) {
    OK(tt_nn_dropout(c, NULL, &layer));
    add(m, layer);
  }
  OK(tt_nn_linear(c, 4, kOut, NULL, &layer));
  add(m, layer);
  return m;
}
static tt_status forward(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                         tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  return tt_module_forward(x, user, in, n, outs, cap, n_outs);
}
static tt_tensor* forward_of(tt_module* m, const tt_tensor* x) {
  tt_tensor* out;
  int64_t n;
  OK(tt_module_forward(c, m, LIST(x), &out, 1, &n));
  return out;
}
static tt_tensor* rows(int64_t n, int k) {
  double values[kRows * kIn];
  int i;
  for (i = 0; i < n * kIn; i++) values[i] = (double)((i * 7 + k * 5) % 11) / 4 - 1;
  return make(TT_F32, (const int64_t[]){n, kIn}, 2, values, n * kIn);
}
static int same(const tt_tensor* a, const tt_tensor* b) {
  int32_t equal;
  OK(tt_equal(c, a, b, &equal));
  return equal;
}
static void assert_same_gradients(tt_module* a, tt_module* b) {
  tt_tensor *of_a[16], *of_b[16];
  tt_state_dict *state_a, *state_b;
  int64_t n, i;
  OK(tt_module_parameters(c, a, of_a, 16, &n));
  OK(tt_module_parameters(c, b, of_b, 16, &n));
  for (i = 0; i < n; i++) assert_true(same(grad_of(of_a[i]), grad_of(of_b[i])));
  OK(tt_module_named_buffers(c, a, &state_a));
  OK(tt_module_named_buffers(c, b, &state_b));
  assert_true(tt_state_dict_size(state_a) > 0);
  for (i = 0; i < tt_state_dict_size(state_a); i++) {
    OK(tt_state_dict_get(c, state_a, i, &of_a[0]));
    OK(tt_state_dict_get(c, state_b, i, &of_b[0]));
    assert_true(same(of_a[0], of_b[0]));
  }
  tt_state_dict_release(state_a);
  tt_state_dict_release(state_b);
}
static tt_tensor* square_sum(const tt_tensor* t) {
  tt_tensor* square;
  OK(tt_square(c, t, &square));
  return sum_of(square);
}
static void backward_again(const tt_tensor* loss) {
  const tt_backward_opts opts = {.set = TT_BACKWARD_RETAIN_GRAPH, .retain_graph = 1};
  OK(tt_backward(c, loss, &opts));
}

/* Losses, gradients and statistics of steps, with dropout, have the bits of the module's own. */
static void test_model(void** state) {
  tt_module *a = new_model(1), *b = new_model(1);
  tt_compiled* f = compile(forward, b, 8);
  int k;
  (void)state;
  for (k = 0; k < 8; k++) {
    const tt_tensor* x = rows(kRows, k);
    tt_tensor *of_a, *of_b;
    OK(tt_manual_seed(c, (uint64_t)k));
    of_a = square_sum(forward_of(a, x));
    OK(tt_backward(c, of_a, NULL));
    OK(tt_manual_seed(c, (uint64_t)k));
    of_b = square_sum(call(f, LIST(x)));
    OK(tt_backward(c, of_b, NULL));
    assert_true(same(of_a, of_b));
    assert_same_gradients(a, b);
  }
  assert_int_equal(info_of(f).n_replays, 7);
  tt_compiled_release(f);
  tt_module_release(a);
  tt_module_release(b);
}

/* Several calls wait for one backward; a graph that is kept serves another one. */
static void test_order_of_backwards(void** state) {
  tt_module *a = new_model(0), *b = new_model(0);
  tt_compiled* f = compile(forward, b, 8);
  const tt_tensor *x = rows(kRows, 1), *y = rows(kRows, 2);
  tt_tensor *of_a, *of_b, *first, *second;
  int k;
  (void)state;
  for (k = 0; k < 3; k++) {
    first = square_sum(forward_of(a, x));
    second = sum_of(forward_of(a, y));
    OK(tt_mul(c, first, second, &of_a));
    backward_again(of_a);
    OK(tt_backward(c, of_a, NULL));
    first = square_sum(call(f, LIST(x)));
    second = sum_of(call(f, LIST(y)));
    OK(tt_mul(c, first, second, &of_b));
    backward_again(of_b);
    OK(tt_backward(c, of_b, NULL));
    assert_same_gradients(a, b);
    FAILS(tt_backward(c, of_b, NULL), TT_AUTOGRAD, "freed");
  }
  assert_int_equal(info_of(f).n_replays, 5);
  tt_compiled_release(f);
  tt_module_release(a);
  tt_module_release(b);
}

/* {weight * x, exp(other * x)} */
static tt_status two(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n, tt_tensor** outs,
                     int64_t cap, int64_t* n_outs) {
  tt_tensor* product = NULL;
  tt_status s;
  (void)user;
  (void)n;
  (void)cap;
  *n_outs = 2;
  TRY(tt_mul(x, weight, in[0], &outs[0]));
  TRY(tt_mul(x, other, in[0], &product));
  s = tt_exp(x, product, &outs[1]);
  tt_tensor_release(product);
  return s;
}
static void call_two(tt_compiled* f, const tt_tensor* x, tt_tensor** outs) {
  int64_t n;
  OK(tt_compiled_call(c, f, LIST(x), outs, 2, &n));
  assert_int_equal(n, 2);
}
/* A result that nothing uses gives no gradient to what it alone depends on. */
static void test_parts(void** state) {
  tt_compiled* f = compile(two, NULL, 8);
  tt_tensor *x = leaf(DATA(1, 2)), *outs[2], *grad;
  int k;
  (void)state;
  weight = leaf(DATA(3, 4));
  other = leaf(DATA(0, 0));
  for (k = 0; k < 3; k++) {
    call_two(f, x, outs);
    VALUES(derive(outs[0], x, 0), 3, 4);
    call_two(f, x, outs);
    VALUES(derive(outs[1], other, 0), 1, 2);
    call_two(f, x, outs);
    OK(tt_backward(c, sum_of(outs[0]), NULL));
    OK(tt_tensor_grad(c, other, &grad));
    assert_null(grad);
    VALUES(grad_of(weight), 1 * (k + 1), 2 * (k + 1));
  }
  assert_int_equal(info_of(f).n_replays, 8);
  tt_compiled_release(f);
}

/* What gradients need must not change meanwhile. */
static void test_changes(void** state) {
  tt_compiled* f = compile(two, NULL, 8);
  tt_tensor *x, *outs[2];
  int k;
  (void)state;
  weight = leaf(DATA(3, 4));
  other = leaf(DATA(1, 1));
  for (k = 0; k < 3; k++) {
    x = make(TT_F64, SHAPE(2), DATA(1, 2));
    call_two(f, x, outs);
    OK(tt_fill_f64_(c, x, 5));
    FAILS(tt_backward(c, sum_of(outs[0]), NULL), TT_AUTOGRAD, "written in place");
    call_two(f, x, outs);
    OK(tt_mul_f64_(c, outs[1], 2));
    FAILS(tt_backward(c, sum_of(outs[1]), NULL), TT_AUTOGRAD, "written in place");
    call_two(f, x, outs);
    OK(tt_mul_f64_(c, outs[0], 2));
    OK(tt_tensor_set_grad(c, weight, NULL));
    OK(tt_backward(c, sum_of(outs[0]), NULL));
    VALUES(grad_of(weight), 10, 10);
  }
  assert_int_equal(info_of(f).n_replays, 8);
  tt_compiled_release(f);
}

/* Gradients that are recorded come from another call of the function, if that changes nothing. */
static void test_create_graph(void** state) {
  tt_module* m = new_model(1);
  tt_compiled *f = compile(two, NULL, 8), *g = compile(forward, m, 8);
  const tt_grad_opts opts = {.set = TT_GRAD_CREATE_GRAPH, .create_graph = 1};
  tt_tensor *x, *outs[2], *first, *leaves[16], *grad;
  int64_t n;
  int k;
  (void)state;
  weight = leaf(DATA(3, 4));
  other = leaf(DATA(0, 0));
  for (k = 0; k < 3; k++) {
    x = leaf(DATA(1, 2));
    call_two(f, x, outs);
    first = derive(outs[1], other, 1); /* x exp(other x) */
    VALUES(first, 1, 2);
    VALUES(derive(first, other, 1), 1, 4);
    VALUES(derive(first, x, 0), 1, 1);
  }
  assert_int_equal(info_of(f).n_replays, 2);
  for (k = 0; k < 2; k++) first = sum_of(call(g, LIST(rows(kRows, 1))));
  OK(tt_module_parameters(c, m, leaves, 16, &n));
  FAILS(tt_grad(c, LIST(first), LIST(leaves[0]), &opts, &grad), TT_NOT_IMPLEMENTED,
        "draws random numbers");
  call_two(f, x, outs);
  first = sum_of(outs[1]);
  tt_compiled_release(f);
  FAILS(tt_grad(c, LIST(first), LIST(other), &opts, &grad), TT_NOT_IMPLEMENTED, "does not exist");
  VALUES(derive(first, other, 0), 1, 2);
  tt_compiled_release(g);
  tt_module_release(m);
}

/* The loss of a step, whose backward has run. */
static tt_status step(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                      tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  tt_tensor* product;
  (void)user;
  (void)n;
  (void)cap;
  *n_outs = 1;
  TRY(tt_tensor_set_grad(x, weight, NULL));
  TRY(tt_scope_push(x));
  TRY(tt_mul(x, weight, in[0], &product));
  TRY(tt_exp(x, product, &product));
  TRY(tt_sum(x, product, NULL, outs));
  TRY(tt_backward(x, outs[0], NULL));
  return tt_scope_pop(x, outs, 1);
}
static void test_spent_results(void** state) {
  tt_compiled* f = compile(step, NULL, 8);
  tt_tensor *x = make(TT_F64, SHAPE(2), DATA(1, 2)), *loss;
  int k;
  (void)state;
  weight = leaf(DATA(0, 0));
  for (k = 0; k < 3; k++) {
    loss = call(f, LIST(x));
    assert_true(tt_tensor_requires_grad(loss));
    assert_true(value_of(loss) == 2);
    VALUES(grad_of(weight), 1, 2);
    FAILS(tt_backward(c, loss, NULL), TT_AUTOGRAD, "freed");
  }
  assert_int_equal(info_of(f).n_replays, 2);
  tt_compiled_release(f);
}

static tt_status attend(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                        tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  const tt_scaled_dot_product_attention_opts opts = {
      .set = TT_SCALED_DOT_PRODUCT_ATTENTION_DROPOUT_P, .dropout_p = 0.5};
  (void)user;
  (void)n;
  (void)cap;
  *n_outs = 1;
  return tt_scaled_dot_product_attention(x, in[0], in[0], weight, NULL, &opts, outs);
}
/* The gradients of attention draw the numbers of the call again. */
static void test_drawn_numbers(void** state) {
  tt_compiled* f = compile(attend, NULL, 8);
  tt_tensor *x, *outs[2], *of_calls[2];
  int64_t n;
  int k, i;
  (void)state;
  OK(tt_randn(c, (const int64_t[]){1, 2, 16, 4}, 4, NULL, &x));
  OK(tt_randn(c, (const int64_t[]){1, 2, 16, 4}, 4, NULL, &weight));
  OK(tt_requires_grad_(c, weight, 1));
  for (k = 0; k < 4; k++) {
    OK(tt_manual_seed(c, (uint64_t)k));
    for (i = 0; i < 2; i++) of_calls[i] = call(f, LIST(x));
    OK(tt_manual_seed(c, (uint64_t)k));
    for (i = 0; i < 2; i++) {
      OK(attend(NULL, c, LIST(x), &outs[i], 1, &n));
      assert_true(same(outs[i], of_calls[i]));
    }
    for (i = 0; i < 2; i++)
      assert_true(
          same(derive(square_sum(outs[i]), weight, 0), derive(square_sum(of_calls[i]), weight, 0)));
  }
  assert_int_equal(info_of(f).n_replays, 7);
  tt_compiled_release(f);
}

/* Records for further sizes have gradients, too. */
static void test_sizes(void** state) {
  const tt_compile_opts opts = {.set = TT_COMPILE_DYNAMIC, .dynamic = 1};
  tt_module *a = new_model(0), *b = new_model(0);
  tt_compiled* f;
  int64_t n;
  (void)state;
  OK(tt_module_train(c, a, 0));
  OK(tt_module_train(c, b, 0));
  OK(tt_compile(c, forward, b, NULL, &opts, &f));
  for (n = 2; n <= kRows; n++) {
    const tt_tensor* x = rows(n, (int)n);
    OK(tt_backward(c, square_sum(forward_of(a, x)), NULL));
    OK(tt_backward(c, square_sum(call(f, LIST(x))), NULL));
    assert_same_gradients(a, b);
  }
  assert_int_equal(info_of(f).n_runs, 3);
  assert_int_equal(info_of(f).n_replays, kRows - 4);
  tt_compiled_release(f);
  tt_module_release(a);
  tt_module_release(b);
}

typedef struct Job {
  tt_runtime* rt;
  tt_compiled* f;
  int bad;
} Job;
static void* run_job(void* user) {
  Job* job = user;
  tt_ctx* x;
  tt_tensor *in, *out = NULL, *sum = NULL, *grad = NULL;
  int64_t n;
  int k;
  job->bad = tt_ctx_new(job->rt, &x) != TT_OK;
  for (k = 1; k < 200 && !job->bad; k++) {
    job->bad |= tt_full_f64(x, SHAPE(2), k, NULL, &in) != TT_OK;
    job->bad |=
        tt_compiled_call(x, job->f, (const tt_tensor* const[]){in}, 1, &out, 1, &n) != TT_OK;
    job->bad |= tt_sum(x, out, NULL, &sum) != TT_OK;
    job->bad |= tt_grad(x, (const tt_tensor* const[]){sum}, 1, (const tt_tensor* const[]){weight},
                        1, NULL, &grad) != TT_OK;
    if (job->bad) break;
    job->bad |= ((float*)tt_tensor_data(grad))[1] != (float)k;
    tt_tensor_release(in);
    tt_tensor_release(out);
    tt_tensor_release(sum);
    tt_tensor_release(grad);
  }
  tt_ctx_release(x);
  return NULL;
}
static tt_status scale(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                       tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)user;
  (void)n;
  (void)cap;
  *n_outs = 1;
  return tt_mul(x, weight, in[0], outs);
}
/* Threads run the gradients of one function at the same time. */
static void test_threads(void** state) {
  tt_compiled* f = compile(scale, NULL, 8);
  pthread_t threads[3];
  Job jobs[3];
  tt_runtime* rt;
  int i;
  (void)state;
  weight = numbers(TT_F32, DATA(2, 2));
  OK(tt_requires_grad_(c, weight, 1));
  OK(tt_ctx_runtime(c, &rt));
  host.paused = 1;
  for (i = 0; i < 3; i++) {
    jobs[i] = (Job){rt, f, 0};
    assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
  }
  for (i = 0; i < 3; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(jobs[i].bad, 0);
  }
  host.paused = 0;
  assert_true(info_of(f).n_replays > 0);
  tt_runtime_release(rt);
  tt_compiled_release(f);
}

/* Every allocation of a recorded call, of a replay and of its backward failed once. */
static void test_out_of_memory(void** state) {
  int64_t at;
  int phase;
  (void)state;
  for (phase = 0; phase < 3; phase++)
    for (at = 1;; at += SLOW_BUILD && at > 40 ? 13 : 1) {
      tt_compiled* f = compile(two, NULL, 8);
      const int64_t failed = host.failed;
      tt_tensor *x, *outs[2];
      tt_status s;
      int64_t n;
      OK(tt_scope_push(c));
      weight = leaf(DATA(3, 4));
      other = leaf(DATA(0, 0));
      x = make(TT_F64, SHAPE(2), DATA(1, 2));
      if (phase) call_two(f, x, outs);
      if (phase == 2) call_two(f, x, outs);
      host.fail_at = host.calls + at;
      host.fail_n = 1;
      if (phase < 2) s = tt_compiled_call(c, f, LIST(x), &outs[0], 2, &n);
      else s = tt_backward(c, sum_of(outs[0]), NULL);
      host.fail_at = 0;
      assert_true(s == TT_OK || s == TT_OOM || s == TT_CALLBACK);
      if (phase < 2 && s != TT_OK) assert_null(outs[0]);
      call_two(f, x, outs);
      VALUES(derive(outs[1], other, 0), 1, 2);
      call_two(f, x, outs);
      VALUES(derive(outs[0], weight, 0), 1, 2);
      assert_int_equal(info_of(f).n_records, 1);
      tt_compiled_release(f);
      OK(tt_scope_pop(c, NULL, 0));
      if (host.failed == failed) break;
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_model),         SCOPED(test_order_of_backwards),
                                     SCOPED(test_parts),         SCOPED(test_changes),
                                     SCOPED(test_create_graph),  SCOPED(test_spent_results),
                                     SCOPED(test_drawn_numbers), SCOPED(test_sizes),
                                     SCOPED(test_threads),       SCOPED(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
