/* Shared by the C tests: a ctx over a counting allocator, so that each test ends with the proof
   that nothing leaked. */
#ifndef TT_TEST_SUPPORT_H
#define TT_TEST_SUPPORT_H

#include "tt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if defined(__GNUC__)
#define MAYBE_UNUSED __attribute__((unused))
#else
#define MAYBE_UNUSED
#endif

typedef struct Env {
  tt_runtime* rt;
  tt_ctx* c;
  int64_t live;  /* bytes allocated and not freed */
  int64_t allow; /* allocations that still succeed; < 0: all */
} Env;

static void* env_alloc(void* user, size_t size, size_t align) {
  Env* e = (Env*)user;
  void* p = NULL;
  if (e->allow == 0) return NULL;
  if (e->allow > 0) e->allow--;
  if (align < sizeof(void*)) align = sizeof(void*);
  if (posix_memalign(&p, align, size)) return NULL;
  __sync_fetch_and_add(&e->live, (int64_t)size);
  return p;
}
static void env_free(void* user, void* p, size_t size, size_t align) {
  Env* e = (Env*)user;
  (void)align;
  __sync_fetch_and_sub(&e->live, (int64_t)size);
  free(p);
}

MAYBE_UNUSED static int env_open(void** state) {
  Env* e = (Env*)calloc(1, sizeof *e);
  tt_allocator a;
  tt_runtime_opts o;
  memset(&a, 0, sizeof a);
  a.struct_size = sizeof a;
  a.user = e;
  a.alloc = env_alloc;
  a.free = env_free;
  memset(&o, 0, sizeof o);
  o.struct_size = sizeof o;
  o.allocator = &a;
  e->allow = -1;
  if (tt_runtime_new(&o, &e->rt) || tt_ctx_new(e->rt, &e->c) || tt_manual_seed(e->c, 0)) return -1;
  *state = e;
  return 0;
}
MAYBE_UNUSED static int env_close(void** state) {
  Env* e = (Env*)*state;
  int64_t left;
  tt_ctx_release(e->c);
  tt_runtime_release(e->rt);
  left = e->live;
  free(e);
  if (left) printf("%lld bytes leaked\n", (long long)left);
  return left ? -1 : 0;
}
#define TEST(name) cmocka_unit_test_setup_teardown(name, env_open, env_close)
#define CTX              \
  Env* e = (Env*)*state; \
  tt_ctx* c = e->c;      \
  (void)c

/* The call must succeed; else tt's message is shown. */
#define OK(call)                                                       \
  do {                                                                 \
    tt_status ok_status = (call);                                      \
    if (ok_status)                                                     \
      fail_msg("%s: %s: %s", #call, tt_status_name(ok_status),         \
               tt_ctx_error(c) ? tt_ctx_error(c)->message : "no ctx"); \
  } while (0)
/* The call must fail with this status. */
#define FAILS(code, call)                                                        \
  do {                                                                           \
    tt_status fails_status = (call);                                             \
    if (fails_status != (code))                                                  \
      fail_msg("%s: is %s, must be %s: %s", #call, tt_status_name(fails_status), \
               tt_status_name(code), tt_ctx_error(c)->message);                  \
  } while (0)
/* The last error's message contains this text. */
#define SAYS(text)                                                         \
  do {                                                                     \
    if (!strstr(tt_ctx_error(c)->message, text))                           \
      fail_msg("\"%s\" is not in \"%s\"", text, tt_ctx_error(c)->message); \
  } while (0)

MAYBE_UNUSED static tt_tensor* vec(tt_ctx* c, const double* v, int64_t n) {
  tt_tensor* t = NULL;
  OK(tt_tensor_from_data(c, v, TT_F64, &n, 1, &t));
  return t;
}
MAYBE_UNUSED static tt_tensor* mat(tt_ctx* c, const double* v, int64_t rows, int64_t cols) {
  int64_t shape[2];
  tt_tensor* t = NULL;
  shape[0] = rows;
  shape[1] = cols;
  OK(tt_tensor_from_data(c, v, TT_F64, shape, 2, &t));
  return t;
}
/* A float64 tensor holds exactly these n values. */
MAYBE_UNUSED static void holds(tt_ctx* c, const tt_tensor* t, const double* want, int64_t n) {
  double got[256];
  int64_t i;
  assert_non_null(t);
  assert_int_equal(tt_tensor_dtype(t), TT_F64);
  assert_int_equal(tt_tensor_numel(t), n);
  OK(tt_tensor_read(c, t, got, n * 8));
  for (i = 0; i < n; i++)
    if (got[i] != want[i]) fail_msg("element %d is %g, must be %g", (int)i, got[i], want[i]);
}
#define HOLDS(t, ...)                                                           \
  do {                                                                          \
    const double holds_want[] = {__VA_ARGS__};                                  \
    holds(c, t, holds_want, (int64_t)(sizeof holds_want / sizeof *holds_want)); \
  } while (0)

#endif
