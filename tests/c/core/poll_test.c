/* Queued drops: callbacks whose owner is released run in tt_runtime_poll. */
#include "harness.h"

#include <pthread.h>

static tt_runtime* rt;

static int open_queueing(void** state) {
  tt_allocator a = host_allocator(&host);
  const tt_runtime_opts opts = {.struct_size = sizeof opts, .allocator = &a, .queue_drops = 1};
  (void)state;
  host = (Host){0};
  return tt_runtime_new(&opts, &rt) != TT_OK || tt_ctx_new(rt, &c) != TT_OK;
}
static int close_queueing(void** state) {
  (void)state;
  tt_ctx_release(c);
  tt_runtime_release(rt);
  c = NULL;
  rt = NULL;
  return host.blocks != 0;
}
#define QUEUED(f) cmocka_unit_test_setup_teardown(f, open_queueing, close_queueing)

/* The drops so far, in order. */
static int dropped[16], n_dropped;
static int numbers_of[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static void drop(void* user) { dropped[n_dropped++] = *(int*)user; }

static tt_tensor* imported(int* user) {
  static float data[4] = {1, 2, 3, 4};
  const int64_t n = 4;
  tt_tensor* t;
  OK(tt_tensor_import(c, data, TT_F32, &n, 1, NULL, 1, drop, user, &t));
  return t;
}

static void test_import(void** state) {
  tt_tensor* a = imported(&numbers_of[1]);
  tt_tensor* b = imported(&numbers_of[2]);
  tt_tensor* view;
  (void)state;
  n_dropped = 0;
  OK(tt_select(c, b, 0, 1, &view));
  tt_tensor_release(b);
  assert_int_equal(tt_runtime_poll(rt), 0); /* the view still uses it */
  tt_tensor_release(a);
  tt_tensor_release(view);
  assert_int_equal(n_dropped, 0);
  assert_int_equal(tt_runtime_poll(rt), 2);
  assert_true(n_dropped == 2 && dropped[0] == 1 && dropped[1] == 2);
  assert_int_equal(tt_runtime_poll(rt), 0);
}

static tt_status no_hook(void* user, tt_ctx* x, const tt_tensor* grad, tt_tensor** out) {
  (void)user;
  (void)x;
  (void)grad;
  (void)out;
  return TT_OK;
}
static tt_status same(void* user, tt_ctx* x, tt_module* m, const tt_tensor* const* in, int64_t n,
                      tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)user;
  (void)x;
  (void)m;
  (void)n;
  (void)cap;
  (void)n_outs;
  tt_tensor_retain((tt_tensor*)in[0]);
  outs[0] = (tt_tensor*)in[0];
  return TT_OK;
}
static tt_status before(void* user, tt_ctx* x, tt_module* m, const tt_tensor* const* in, int64_t n,
                        tt_tensor** out) {
  (void)user;
  (void)x;
  (void)m;
  (void)in;
  (void)n;
  (void)out;
  return TT_OK;
}
static tt_status factor(void* user, tt_ctx* x, int64_t epoch, int64_t group, double* out) {
  (void)user;
  (void)x;
  (void)epoch;
  (void)group;
  *out = 0.5;
  return TT_OK;
}
static tt_status copy_in(void* user, tt_ctx* x, tt_function* f, const tt_tensor* const* in,
                         int64_t n, tt_tensor** outs, int64_t n_outs) {
  (void)user;
  (void)f;
  (void)n;
  (void)n_outs;
  return tt_clone(x, in[0], NULL, &outs[0]);
}
static tt_status no_grads(void* user, tt_ctx* x, tt_function* f, tt_tensor* const* grads,
                          int64_t n_outs, tt_tensor** in, int64_t n) {
  (void)user;
  (void)x;
  (void)f;
  (void)grads;
  (void)n_outs;
  (void)in;
  (void)n;
  return TT_OK;
}

/* The drop of each kind of owner waits, and runs once. */
static void test_every_owner(void** state) {
  const double one[1] = {1};
  tt_tensor *x = leaf(one, 1), *y;
  const tt_tensor* in[1] = {x};
  tt_module_def module = {.struct_size = sizeof module,
                          .name = "Same",
                          .user = &numbers_of[2],
                          .forward = same,
                          .drop = drop};
  tt_function_def function = {.struct_size = sizeof function,
                              .name = "f",
                              .user = &numbers_of[5],
                              .forward = copy_in,
                              .backward = no_grads,
                              .drop = drop};
  tt_module* m;
  tt_optimizer* sgd;
  tt_scheduler* s;
  int64_t id;
  int i;
  (void)state;
  n_dropped = 0;
  OK(tt_register_hook(c, x, no_hook, &numbers_of[1], drop, &id));
  OK(tt_remove_hook(c, x, id));
  OK(tt_module_new_custom(c, &module, &m));
  OK(tt_module_register_forward_pre_hook(c, m, before, &numbers_of[3], drop, &id));
  OK(tt_module_remove_hook(c, m, id));
  tt_module_release(m);
  OK(tt_optim_sgd(c, &x, 1, NULL, &sgd));
  OK(tt_lr_lambda(c, sgd, factor, &numbers_of[4], drop, -1, &s));
  tt_scheduler_release(s);
  tt_optim_release(sgd);
  OK(tt_function_apply(c, &function, in, 1, &y, 1));
  tt_tensor_release(y);
  OK(tt_register_hook(c, x, no_hook, &numbers_of[6], drop, &id));
  tt_tensor_release(x);
  assert_int_equal(n_dropped, 0);
  assert_int_equal(tt_runtime_poll(rt), 6);
  const int order[6] = {1, 3, 2, 4, 5, 6};
  for (i = 0; i < 6; i++) assert_int_equal(dropped[i], order[i]);
}

static tt_tensor* held;
static void drop_held(void* user) {
  drop(user);
  tt_tensor_release(held);
}
/* A drop that releases objects: their drops run in the same poll. */
static void test_nested(void** state) {
  static float data[1];
  const int64_t n = 1;
  tt_tensor* t;
  (void)state;
  n_dropped = 0;
  held = imported(&numbers_of[2]);
  OK(tt_tensor_import(c, data, TT_F32, &n, 1, NULL, 1, drop_held, &numbers_of[1], &t));
  tt_tensor_release(t);
  assert_int_equal(tt_runtime_poll(rt), 2);
  assert_true(n_dropped == 2 && dropped[1] == 2);
}

/* A failing registration drops at once, on the caller's thread. */
static void test_failing_call(void** state) {
  static float data[1];
  const int64_t n = -1;
  tt_tensor* t;
  (void)state;
  n_dropped = 0;
  FAILS(tt_tensor_import(c, data, TT_F32, &n, 1, NULL, 1, drop, &numbers_of[1], &t), TT_SHAPE,
        NULL);
  assert_int_equal(n_dropped, 1);
  assert_int_equal(tt_runtime_poll(rt), 0);
}

/* Pending drops run when the runtime is released; drops of objects that outlive it run at once. */
static void test_end_of_runtime(void** state) {
  tt_tensor* a = imported(&numbers_of[1]);
  tt_tensor* b = imported(&numbers_of[2]);
  (void)state;
  n_dropped = 0;
  tt_tensor_release(a);
  assert_int_equal(n_dropped, 0);
  tt_ctx_release(c);
  tt_runtime_release(rt);
  c = NULL;
  rt = NULL;
  assert_int_equal(n_dropped, 1);
  tt_tensor_release(b);
  assert_true(n_dropped == 2 && dropped[1] == 2);
  assert_int_equal(tt_runtime_poll(NULL), 0);
}

enum { kThreads = 4, kEach = 500 };
static int64_t count;
static void drop_count(void* user) {
  (void)user;
  count++; /* only on the polling thread */
}
static void* release_many(void* user) {
  for (int i = 0; i < kEach; i++) tt_tensor_release(((tt_tensor**)user)[i]);
  return NULL;
}
static void test_threads(void** state) {
  static tt_tensor* t[kThreads][kEach];
  static float data[1];
  const int64_t n = 1;
  pthread_t threads[kThreads];
  int64_t polled = 0;
  int k, i;
  (void)state;
  count = 0;
  for (k = 0; k < kThreads; k++)
    for (i = 0; i < kEach; i++)
      OK(tt_tensor_import(c, data, TT_F32, &n, 1, NULL, 1, drop_count, NULL, &t[k][i]));
  for (k = 0; k < kThreads; k++)
    assert_int_equal(pthread_create(&threads[k], NULL, release_many, t[k]), 0);
  while (polled < kThreads * kEach / 2) polled += tt_runtime_poll(rt);
  for (k = 0; k < kThreads; k++) pthread_join(threads[k], NULL);
  polled += tt_runtime_poll(rt);
  assert_int_equal(polled, kThreads * kEach);
  assert_int_equal(count, polled);
}

int main(void) {
  const struct CMUnitTest tests[] = {QUEUED(test_import),         QUEUED(test_every_owner),
                                     QUEUED(test_nested),         QUEUED(test_failing_call),
                                     QUEUED(test_end_of_runtime), QUEUED(test_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
