/* Several threads, each with a ctx of its own over one runtime. Also run under ThreadSanitizer. */
#include "harness.h"

#include <pthread.h>

enum { kThreads = 4, kRounds = 60 };

typedef struct Job {
  pthread_t thread;
  tt_runtime* rt;
  tt_tensor* shared[2]; /* leaves */
  int id;
  tt_status status;
  const char* where;
} Job;

#define TRY(call)       \
  do {                  \
    j->status = (call); \
    if (j->status) {    \
      j->where = #call; \
      return;           \
    }                   \
  } while (0)

typedef void (*JobFn)(Job* j, tt_ctx* x);
static JobFn job_fn;
static void* run_job(void* arg) {
  Job* j = arg;
  tt_ctx* x;
  j->status = tt_ctx_new(j->rt, &x);
  if (j->status) return NULL;
  job_fn(j, x);
  if (j->status) print_error("%s: %s\n", j->where, tt_ctx_error(x)->message);
  tt_ctx_release(x);
  return NULL;
}

static void run_all(JobFn fn, tt_tensor* a, tt_tensor* b) {
  Job jobs[kThreads];
  tt_runtime* rt;
  int i, failed = 0;
  OK(tt_ctx_runtime(c, &rt));
  job_fn = fn;
  for (i = 0; i < kThreads; i++) {
    const Job j = {.rt = rt, .shared = {a, b}, .id = i};
    jobs[i] = j;
    assert_int_equal(pthread_create(&jobs[i].thread, NULL, run_job, &jobs[i]), 0);
  }
  for (i = 0; i < kThreads; i++) {
    pthread_join(jobs[i].thread, NULL);
    failed |= jobs[i].status;
  }
  tt_runtime_release(rt);
  assert_int_equal(failed, 0);
}

/* ---- forward and backward of separate graphs with the same leaves ---- */

static void train(Job* j, tt_ctx* x) {
  int i;
  for (i = 0; i < kRounds; i++) {
    tt_tensor *h, *y, *l;
    TRY(tt_scope_push(x));
    TRY(tt_mul(x, j->shared[0], j->shared[1], &h));
    TRY(tt_mul(x, h, j->shared[0], &y)); /* a^2 b */
    TRY(tt_sum(x, y, NULL, &l));
    TRY(tt_backward(x, l, NULL));
    TRY(tt_scope_pop(x, NULL, 0));
  }
}

static void test_shared_leaves(void** state) {
  tt_tensor* a = leaf(DATA(1, 2));
  tt_tensor* b = leaf(DATA(3, 5));
  const double n = kThreads * kRounds;
  (void)state;
  run_all(train, a, b);
  VALUES(grad_of(a), n * 6, n * 20);
  VALUES(grad_of(b), n * 1, n * 4);
}

/* ---- views of a shared leaf, saved tensors, metadata that the first user creates ---- */

static void view_and_differentiate(Job* j, tt_ctx* x) {
  int i;
  for (i = 0; i < kRounds; i++) {
    tt_tensor *v, *e, *l, *g;
    const tt_tensor *out, *in = j->shared[0];
    double got;
    TRY(tt_scope_push(x));
    TRY(tt_select(x, j->shared[0], 0, j->id % 2, &v));
    TRY(tt_mul(x, v, v, &e));
    TRY(tt_sum(x, e, NULL, &l));
    out = l;
    TRY(tt_grad(x, &out, 1, &in, 1, NULL, &g));
    TRY(tt_select(x, g, 0, j->id % 2, &v));
    TRY(tt_item_f64(x, v, &got));
    if (got != (j->id % 2 ? 4 : 2)) {
      j->status = TT_INTERNAL;
      j->where = "gradient";
      return;
    }
    TRY(tt_scope_pop(x, NULL, 0));
  }
}

static void test_views_of_a_shared_leaf(void** state) {
  (void)state;
  run_all(view_and_differentiate, leaf(DATA(1, 2)), NULL);
}

/* ---- tensors made on one thread and released on another ---- */

static tt_tensor* box[kThreads];
static pthread_barrier_t barrier;

static void pass_round(Job* j, tt_ctx* x) {
  int i;
  for (i = 0; i < kRounds; i++) {
    const int64_t shape[] = {1 + (i * 37) % 3000};
    TRY(tt_ones(x, shape, 1, NULL, &box[j->id]));
    pthread_barrier_wait(&barrier);
    tt_tensor_release(box[(j->id + 1) % kThreads]);
    pthread_barrier_wait(&barrier);
  }
}

static void test_released_elsewhere(void** state) {
  (void)state;
  assert_int_equal(pthread_barrier_init(&barrier, NULL, kThreads), 0);
  run_all(pass_round, NULL, NULL);
  pthread_barrier_destroy(&barrier);
}

/* ---- a ctx that moves between threads ---- */

static void* use_ctx(void* arg) {
  tt_ctx* x = arg;
  tt_tensor *t, *u;
  tt_status s = tt_ones(x, SHAPE(10), NULL, &t);
  if (!s) s = tt_neg(x, t, &u);
  if (!s) tt_tensor_release(u);
  tt_tensor_release(t);
  return (void*)(intptr_t)s;
}

static void test_ctx_moves(void** state) {
  int i;
  (void)state;
  for (i = 0; i < 8; i++) {
    pthread_t t;
    void* s;
    assert_int_equal(pthread_create(&t, NULL, use_ctx, c), 0);
    pthread_join(t, &s);
    assert_null(s);
    assert_null(use_ctx(c));
  }
}

/* ---- cancelling from outside ---- */

static volatile int started;
static void* cancel_soon(void* arg) {
  while (!__atomic_load_n(&started, __ATOMIC_ACQUIRE)) {}
  tt_cancel_request(arg);
  return NULL;
}

static void test_cancelled_from_another_thread(void** state) {
  tt_cancel* k;
  tt_tensor *a, *out = NULL;
  tt_status s = TT_OK;
  pthread_t t;
  (void)state;
  a = numbers(TT_F32, DATA(1, 2));
  OK(tt_cancel_new(c, &k));
  OK(tt_ctx_set_cancel(c, k));
  started = 0;
  assert_int_equal(pthread_create(&t, NULL, cancel_soon, k), 0);
  while (!s) {
    s = tt_neg_(c, a);
    __atomic_store_n(&started, 1, __ATOMIC_RELEASE);
  }
  pthread_join(t, NULL);
  assert_int_equal(s, TT_CANCELLED);
  assert_null(out);
  OK(tt_ctx_set_cancel(c, NULL));
  tt_cancel_release(k);
}

/* ---- several threads inside one call: equal bits for every number ---- */

static void compute(tt_tensor** sum, tt_tensor** product, tt_tensor** rnd) {
  tt_tensor *a, *e, *m, *t;
  const int64_t n = 500000;
  OK(tt_manual_seed(c, 3));
  OK(tt_randn(c, &n, 1, NULL, &a));
  OK(tt_exp(c, a, &e));
  OK(tt_sum(c, e, NULL, sum));
  OK(tt_randn(c, SHAPE(150, 170), NULL, &m));
  OK(tt_t(c, m, &t));
  OK(tt_matmul(c, m, t, product));
  *rnd = a;
}

static void test_thread_counts_agree(void** state) {
  tt_tensor *s1, *p1, *r1, *s2, *p2, *r2;
  (void)state;
  compute(&s1, &p1, &r1);
  OK(tt_set_num_threads(c, 3));
  assert_int_equal(tt_num_threads(c), 3);
  compute(&s2, &p2, &r2);
  assert_memory_equal(tt_tensor_data(s1), tt_tensor_data(s2), 4);
  assert_memory_equal(tt_tensor_data(p1), tt_tensor_data(p2), 4 * 150 * 150);
  assert_memory_equal(tt_tensor_data(r1), tt_tensor_data(r2), 4 * 500000);
  FAILS(tt_set_num_threads(c, 0), TT_INVALID_ARG, "0");
  OK(tt_set_num_threads(c, 1));
}

#if TT_CHECKED
/* One ctx used by two threads at once gives a status. */
typedef struct Shared {
  tt_ctx* x;
  int stop, refused;
} Shared;
static tt_status hold(void* user, tt_ctx* x, const tt_tensor* grad, tt_tensor** replacement) {
  Shared* s = user;
  pthread_t t;
  void* out;
  (void)x;
  (void)grad;
  (void)replacement;
  if (pthread_create(&t, NULL, use_ctx, s->x)) return TT_INTERNAL;
  pthread_join(t, &out);
  s->refused = (int)(intptr_t)out;
  return TT_OK;
}

static void test_shared_ctx(void** state) {
  tt_tensor *x = leaf(DATA(1)), *y;
  Shared s = {c, 0, 0};
  int64_t id;
  (void)state;
  OK(tt_mul_f64(c, x, 2, &y));
  OK(tt_register_hook(c, x, hold, &s, NULL, &id));
  OK(tt_backward(c, y, NULL));
  assert_int_equal(s.refused, TT_BAD_HANDLE);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
    SCOPED(test_shared_leaves),
    SCOPED(test_views_of_a_shared_leaf),
    PLAIN(test_released_elsewhere),
    PLAIN(test_ctx_moves),
    SCOPED(test_cancelled_from_another_thread),
    SCOPED(test_thread_counts_agree),
#if TT_CHECKED
    SCOPED(test_shared_ctx),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
