/* The operator profiler. */
#include "support.h"

#include <time.h>

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static const tt_profile_row* row(const tt_profile_row* rows, int64_t n, const char* op) {
  int64_t i;
  for (i = 0; i < n; i++)
    if (!strcmp(rows[i].op, op)) return &rows[i];
  return NULL;
}
static const double k12[] = {1, 2};

static void test_counts(void** state) {
  CTX;
  tt_tensor* a = vec(c, k12, 2);
  tt_tensor* b = NULL;
  tt_profile_row rows[64];
  int64_t n = -1, i, began, spent;
  OK(tt_profiler_rows(c, NULL, 0, &n)); /* never started */
  assert_int_equal(n, 0);
  OK(tt_add(c, a, a, &b)); /* before the start */
  tt_tensor_release(b);
  OK(tt_profiler_start(c));
  began = now_ns();
  for (i = 0; i < 10; i++) {
    OK(tt_add(c, a, a, &b));
    tt_tensor_release(b);
  }
  OK(tt_mul_(c, a, a));
  spent = now_ns() - began;
  FAILS(TT_SHAPE, tt_view(c, a, &i, 1, &b)); /* i is 10 */
  OK(tt_profiler_stop(c));
  OK(tt_mul_(c, a, a)); /* after the stop */
  OK(tt_profiler_rows(c, rows, 64, &n));
  assert_non_null(row(rows, n, "add"));
  assert_int_equal(row(rows, n, "add")->calls, 10);
  assert_int_equal(row(rows, n, "mul_")->calls, 1);
  assert_int_equal(row(rows, n, "view")->calls, 1); /* a failed call counts, too */
  assert_true(row(rows, n, "add")->total_ns > 0);
  assert_true(row(rows, n, "add")->total_ns + row(rows, n, "mul_")->total_ns <= spent);
  for (i = 0; i < n; i++) {
    assert_true(rows[i].self_ns >= 0 && rows[i].self_ns <= rows[i].total_ns);
    assert_true(i == 0 || rows[i - 1].total_ns >= rows[i].total_ns);
  }
  FAILS(TT_BUFFER_TOO_SMALL, tt_profiler_rows(c, rows, n - 1, &n));
  assert_true(n >= 3);
  FAILS(TT_INVALID_ARG, tt_profiler_rows(c, rows, 64, NULL));
  OK(tt_profiler_start(c)); /* forgets */
  OK(tt_profiler_rows(c, rows, 64, &n));
  assert_int_equal(n, 0);
  OK(tt_profiler_stop(c));
  tt_tensor_release(a);
}

/* A composite's total time includes its parts, its self time does not. */
static void test_nesting(void** state) {
  CTX;
  const int64_t size = 300000;
  tt_tensor *x = NULL, *y = NULL;
  tt_profile_row rows[64];
  const tt_profile_row* outer;
  int64_t n, i, parts = 0, whole = 0;
  OK(tt_ones(c, &size, 1, NULL, &x));
  OK(tt_profiler_start(c));
  for (i = 0; i < 5; i++) {
    OK(tt_reshape(c, x, (const int64_t[]){1000, 300}, 2, &y));
    tt_tensor_release(y);
  }
  OK(tt_profiler_stop(c));
  OK(tt_profiler_rows(c, rows, 64, &n));
  outer = row(rows, n, "reshape");
  assert_non_null(outer);
  assert_non_null(row(rows, n, "view"));
  assert_true(outer->total_ns >= row(rows, n, "view")->total_ns);
  assert_true(outer->self_ns <= outer->total_ns - row(rows, n, "view")->total_ns);
  for (i = 0; i < n; i++) {
    parts += rows[i].self_ns;
    if (strcmp(rows[i].op, "view")) whole += rows[i].total_ns; /* of the outermost calls */
  }
  assert_int_equal(parts, whole);
  tt_tensor_release(x);
}

static void test_backward(void** state) {
  CTX;
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  tt_tensor* loss = NULL;
  tt_profile_row rows[64];
  int64_t n;
  OK(tt_requires_grad_(c, x, 1));
  OK(tt_tanh(c, x, &y));
  OK(tt_sum(c, y, NULL, &loss));
  OK(tt_profiler_start(c));
  OK(tt_backward(c, loss, NULL));
  OK(tt_profiler_stop(c));
  OK(tt_profiler_rows(c, rows, 64, &n));
  assert_non_null(row(rows, n, "tanh_backward"));
  tt_tensor_release(x);
  tt_tensor_release(y);
  tt_tensor_release(loss);
}

/* Operators called by a callback are recorded; starting and stopping inside a callback is
   harmless. */
static int what_to_do;
static tt_status twice(void* user, tt_ctx* c, const tt_value* args, int64_t n_args,
                       tt_tensor** outs, int64_t n_outs) {
  (void)user;
  (void)n_args;
  (void)n_outs;
  if (what_to_do == 1) OK(tt_profiler_stop(c));
  if (what_to_do == 2) OK(tt_profiler_start(c));
  return tt_add(c, args[0].tensor, args[0].tensor, &outs[0]);
}
static void test_custom_operator(void** state) {
  CTX;
  tt_op_def d;
  const tt_op* op = NULL;
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  tt_value arg;
  tt_profile_row rows[64];
  int64_t n;
  memset(&d, 0, sizeof d);
  memset(&arg, 0, sizeof arg);
  d.struct_size = sizeof d;
  d.schema = "twice(x: Tensor) -> Tensor";
  d.compute = twice;
  OK(tt_op_register(c, &d));
  OK(tt_op_find(c, "twice", &op));
  arg.tag = TT_VAL_TENSOR;
  arg.tensor = x;
  for (what_to_do = 0; what_to_do < 3; what_to_do++) {
    OK(tt_profiler_start(c));
    OK(tt_op_call(c, op, &arg, 1, &y, 1, &n));
    HOLDS(y, 2, 4);
    tt_tensor_release(y);
    OK(tt_mul(c, x, x, &y));
    tt_tensor_release(y);
    OK(tt_profiler_stop(c));
    OK(tt_profiler_rows(c, rows, 64, &n));
    if (what_to_do == 0) {
      assert_int_equal(row(rows, n, "twice")->calls, 1);
      assert_int_equal(row(rows, n, "add")->calls, 1);
      assert_true(row(rows, n, "twice")->total_ns >= row(rows, n, "add")->total_ns);
    }
    if (what_to_do == 1) assert_null(row(rows, n, "mul"));
    if (what_to_do == 2) {
      assert_null(row(rows, n, "twice")); /* forgotten while it ran */
      assert_int_equal(row(rows, n, "add")->calls, 1);
      assert_int_equal(row(rows, n, "mul")->calls, 1);
    }
  }
  tt_tensor_release(x);
}

static void test_two_ctxs(void** state) {
  CTX;
  tt_ctx* other = NULL;
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  tt_profile_row rows[8];
  int64_t n;
  OK(tt_ctx_new(e->rt, &other));
  OK(tt_profiler_start(c));
  assert_int_equal(tt_add(other, x, x, &y), TT_OK);
  OK(tt_profiler_rows(c, rows, 8, &n));
  assert_int_equal(n, 0);
  tt_tensor_release(x);
  tt_tensor_release(y);
  tt_ctx_release(other);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_counts), TEST(test_nesting), TEST(test_backward),
                                     TEST(test_custom_operator), TEST(test_two_ctxs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
