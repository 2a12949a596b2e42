/* Runs a computation on several numbers of threads, of tt's pool and of an application's
   executor: the results must be bit-equal. */
#ifndef TT_TEST_EVERYWHERE_H
#define TT_TEST_EVERYWHERE_H

#include "harness.h"

#include <math.h>

enum { kMaxBytes = 1 << 24 };

/* ---- executors ---- */

static inline int32_t exec_threads(void* user) {
  (void)user;
  return 3;
}
static inline int32_t exec_for(void* user, int64_t n, int64_t grain, tt_range_fn body,
                               void* body_ctx) {
  int64_t i;
  (void)user;
  for (i = (n - 1) / grain * grain; i >= 0; i -= grain)
    body(body_ctx, i, i + grain < n ? i + grain : n);
  return 0;
}

/* The raw bytes of the results of a computation. */
typedef struct Bytes {
  char* at;
  size_t n;
} Bytes;
static inline void keep(Bytes* b, const tt_tensor* t) {
  const size_t n = (size_t)(tt_tensor_numel(t) * tt_dtype_size(tt_tensor_dtype(t)));
  assert_true(b->n + n <= kMaxBytes);
  memcpy(b->at + b->n, tt_tensor_data(t), n);
  b->n += n;
}

typedef void (*Compute)(tt_ctx* x, const tt_tensor* t, Bytes* b);

/* Runs it on 1, 2, 3 and 5 threads and on the application's executor; all must give the same
   bytes. Slow builds run 3 threads only. */
static inline void same_everywhere(Compute f, const tt_tensor* t) {
#if SLOW_BUILD
  static const int kThreads[] = {3};
#else
  static const int kThreads[] = {1, 2, 3, 5};
#endif
  const size_t own = sizeof kThreads / sizeof *kThreads;
  const tt_executor exec = {sizeof exec, NULL, exec_threads, exec_for};
  const tt_runtime_opts opts = {.struct_size = sizeof opts, .executor = &exec};
  tt_runtime* rt;
  tt_ctx* x;
  Bytes want = {malloc(kMaxBytes), 0};
  Bytes got = {malloc(kMaxBytes), 0};
  size_t i;
  assert_int_equal(tt_runtime_new(&opts, &rt), TT_OK);
  assert_int_equal(tt_ctx_new(rt, &x), TT_OK);
  for (i = 0; i <= own; i++) {
    Bytes* b = i ? &got : &want;
    tt_ctx* on = i < own ? c : x;
    b->n = 0;
    if (i < own) OK(tt_set_num_threads(c, kThreads[i]));
    ok_at(on, tt_scope_push(on), "push", __FILE__, __LINE__);
    f(on, t, b);
    ok_at(on, tt_scope_pop(on, NULL, 0), "pop", __FILE__, __LINE__);
    assert_int_equal(b->n, want.n);
    if (i) assert_memory_equal(got.at, want.at, want.n);
  }
  OK(tt_set_num_threads(c, 1));
  tt_ctx_release(x);
  tt_runtime_release(rt);
  free(want.at);
  free(got.at);
}
#define DO(call) ok_at(x, (call), #call, __FILE__, __LINE__)

/* ---- data ---- */

static uint32_t seed = 1;
static inline uint32_t draw(void) { return (seed = seed * 1664525u + 1013904223u) >> 8; }
static inline double wide(void) { return ((double)(draw() % 2000001) - 1000000) / 1024; }
static inline double few(void) { return (double)(draw() % 7) - 3; }
static inline double mostly_zero(void) { return draw() % 3 ? 0 : wide(); }
static inline double special(void) {
  static const double k[] = {NAN, -NAN, INFINITY, -INFINITY, 0, -0.0, 1e-310, 65504};
  return draw() % 2 ? k[draw() % 8] : wide();
}
static inline tt_tensor* filled(const int64_t* shape, int64_t ndim, tt_dtype d,
                                double (*value)(void)) {
  tt_to_opts o = {.set = TT_TO_DTYPE, .dtype = d};
  int64_t n = 1, i;
  tt_tensor *t, *out;
  double* v;
  for (i = 0; i < ndim; i++) n *= shape[i];
  v = malloc((size_t)n * sizeof *v);
  for (i = 0; i < n; i++) v[i] = value();
  t = make(TT_F64, shape, ndim, v, n);
  free(v);
  OK(tt_to(c, t, &o, &out));
  return out;
}

static inline double epsilon(tt_dtype d) {
  if (d == TT_F64) return 0x1p-52;
  return d == TT_F32 ? 0x1p-23 : 0x1p-8;
}
/* Equal up to rounding of values of magnitude `size`. */
static inline void check_near(double got, double want, double tolerance) {
  assert_true(isnan(want) ? isnan(got) : got == want || fabs(got - want) <= tolerance);
}

/* A sum to about 100 bits on every target: `long double` has no more than double on some. low is
   what rounding took from high. */
typedef struct Sum {
  double high, low;
} Sum;
static inline void add_to(Sum* s, double v) {
  const double high = s->high + v;
  const double before = high - v;
  s->low += (s->high - before) + (v - (high - before));
  s->high = high;
}
static inline void add_product(Sum* s, double a, double b) {
  const double product = a * b;
  add_to(s, product);
  s->low += fma(a, b, -product);
}
static inline double total(Sum s) { return s.high + s.low; }

/* The first run: its results are compared with a reference. */
static inline int alone(const tt_ctx* x) { return x == c && tt_num_threads(x) == 1; }

#endif
