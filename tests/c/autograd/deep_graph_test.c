/* A graph of a million nodes is built, differentiated and freed on a small stack: nothing recurses
   over user-sized graphs. */
#include "small_stack.h"
#include "tt.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { kNodes = 1000000 };

typedef struct Outcome {
  tt_status status;
  double grad;
  int backward; /* run it, or free the graph unused */
} Outcome;

/* x * 1 * 1 … : dy/dx is 1. */
static tt_status chain(tt_ctx* c, Outcome* o) {
  const double one = 1;
  tt_tensor *x = NULL, *y = NULL, *grad = NULL;
  tt_status s = tt_tensor_from_data(c, &one, TT_F64, NULL, 0, &x);
  int i;
  if (!s) s = tt_requires_grad_(c, x, 1);
  if (!s) s = tt_mul_f64(c, x, 1.0, &y);
  for (i = 1; i < kNodes && !s; i++) {
    tt_tensor* next = NULL;
    s = tt_mul_f64(c, y, 1.0, &next);
    tt_tensor_release(y);
    y = next;
  }
  if (!s && o->backward) {
    s = tt_backward(c, y, NULL);
    if (!s) s = tt_tensor_grad(c, x, &grad);
    if (!s) s = tt_item_f64(c, grad, &o->grad);
  }
  tt_tensor_release(grad);
  tt_tensor_release(y);
  tt_tensor_release(x);
  return s;
}

static void* on_small_stack(void* arg) {
  Outcome* o = arg;
  tt_ctx* c;
  o->status = tt_ctx_new(NULL, &c);
  if (o->status) return NULL;
  o->status = chain(c, o);
  tt_ctx_release(c);
  return NULL;
}

static Outcome run(int backward) {
  Outcome o = {TT_INTERNAL, 0, backward};
  pthread_attr_t attr;
  pthread_t thread;
  assert_int_equal(pthread_attr_init(&attr), 0);
  assert_int_equal(pthread_attr_setstacksize(&attr, small_stack()), 0);
  assert_int_equal(pthread_create(&thread, &attr, on_small_stack, &o), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  pthread_attr_destroy(&attr);
  return o;
}

static void test_backward(void** state) {
  const Outcome o = run(1);
  (void)state;
  assert_int_equal(o.status, TT_OK);
  assert_true(o.grad == 1.0);
}

static void test_freed_unused(void** state) {
  (void)state;
  assert_int_equal(run(0).status, TT_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_backward),
                                     cmocka_unit_test(test_freed_unused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
