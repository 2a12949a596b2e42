/* tt_ctx_trace_dispatch: the slots that each operator call passes. */
#include "support.h"

typedef struct Log {
  char text[4096];
  int entries, reenter;
  tt_ctx* c;
  tt_tensor* x;
} Log;

static void note(void* user, const char* op, const char* slot, int32_t depth) {
  Log* l = (Log*)user;
  char line[128];
  snprintf(line, sizeof line, "%d %s %s\n", (int)depth, op, slot);
  if (strlen(l->text) + strlen(line) < sizeof l->text) strcat(l->text, line);
  l->entries++;
  if (l->reenter) {
    tt_tensor* y = NULL;
    assert_int_equal(tt_mul(l->c, l->x, l->x, &y), TT_OK);
    tt_tensor_release(y);
  }
  if (l->reenter == 2) assert_int_equal(tt_ctx_trace_dispatch(l->c, NULL, NULL), TT_OK);
}
static const double k12[] = {1, 2};

static void test_path(void** state) {
  CTX;
  Log l = {{0}, 0, 0, NULL, NULL};
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  OK(tt_ctx_trace_dispatch(c, note, &l));
  OK(tt_add(c, x, x, &y));
  assert_string_equal(l.text, "0 add cpu\n");
  tt_tensor_release(y);
  l.text[0] = 0;
  OK(tt_requires_grad_(c, x, 1));
  OK(tt_add(c, x, x, &y));
  assert_string_equal(l.text, "0 add autograd\n0 add cpu\n");
  tt_tensor_release(y);
  l.text[0] = 0;
  OK(tt_set_grad_enabled(c, 0, NULL));
  OK(tt_add(c, x, x, &y));
  assert_string_equal(l.text, "0 add cpu\n");
  OK(tt_set_grad_enabled(c, 1, NULL));
  tt_tensor_release(y);
  l.text[0] = 0;
  OK(tt_profiler_start(c)); /* wraps the trace */
  OK(tt_reshape(c, x, (const int64_t[]){2, 1}, 2, &y));
  OK(tt_profiler_stop(c));
  assert_true(strncmp(l.text, "0 reshape ", 10) == 0);
  assert_non_null(strstr(l.text, "1 view autograd\n1 view cpu\n"));
  tt_tensor_release(y);
  l.text[0] = 0;
  OK(tt_ctx_trace_dispatch(c, NULL, NULL));
  OK(tt_add(c, x, x, &y));
  assert_string_equal(l.text, "");
  tt_tensor_release(x);
  tt_tensor_release(y);
}

static void test_meta(void** state) {
  CTX;
  Log l = {{0}, 0, 0, NULL, NULL};
  tt_tensor *x = NULL, *y = NULL;
  tt_zeros_opts opts;
  memset(&opts, 0, sizeof opts);
  opts.set = TT_ZEROS_DEVICE;
  opts.device.type = TT_META;
  OK(tt_ctx_trace_dispatch(c, note, &l));
  OK(tt_zeros(c, (const int64_t[]){2}, 1, &opts, &x));
  OK(tt_exp(c, x, &y));
  assert_string_equal(l.text, "0 zeros meta\n0 exp meta\n");
  tt_tensor_release(x);
  tt_tensor_release(y);
}

static void test_failure_keeps_the_depth(void** state) {
  CTX;
  Log l = {{0}, 0, 0, NULL, NULL};
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  OK(tt_ctx_trace_dispatch(c, note, &l));
  FAILS(TT_SHAPE, tt_view(c, x, (const int64_t[]){7}, 1, &y));
  l.text[0] = 0;
  OK(tt_add(c, x, x, &y));
  assert_string_equal(l.text, "0 add cpu\n");
  tt_tensor_release(x);
  tt_tensor_release(y);
}

static void test_reentry(void** state) {
  CTX;
  Log l = {{0}, 0, 1, NULL, NULL};
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  l.c = c;
  l.x = x;
  OK(tt_ctx_trace_dispatch(c, note, &l));
  OK(tt_add(c, x, x, &y));
  tt_tensor_release(y);
  assert_string_equal(l.text, "0 add cpu\n"); /* its own calls are not traced */
  l.reenter = 2;                              /* turns itself off */
  OK(tt_add(c, x, x, &y));
  tt_tensor_release(y);
  OK(tt_add(c, x, x, &y));
  assert_int_equal(l.entries, 2);
  tt_tensor_release(x);
  tt_tensor_release(y);
}

static tt_status twice(void* user, tt_ctx* c, const tt_value* args, int64_t n_args,
                       tt_tensor** outs, int64_t n_outs) {
  (void)user;
  (void)n_args;
  (void)n_outs;
  return tt_add(c, args[0].tensor, args[0].tensor, &outs[0]);
}
static void test_custom_operator(void** state) {
  CTX;
  Log l = {{0}, 0, 0, NULL, NULL};
  tt_op_def d;
  const tt_op* op = NULL;
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  tt_value arg;
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
  OK(tt_ctx_trace_dispatch(c, note, &l));
  OK(tt_op_call(c, op, &arg, 1, &y, 1, &n));
  assert_string_equal(l.text, "0 twice cpu\n1 add cpu\n");
  assert_int_equal(tt_ctx_trace_dispatch(NULL, note, &l), TT_BAD_HANDLE);
  tt_tensor_release(x);
  tt_tensor_release(y);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_path), TEST(test_meta),
                                     TEST(test_failure_keeps_the_depth), TEST(test_reentry),
                                     TEST(test_custom_operator)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
