/* Trees of 100,000 modules, nested or side by side: every operation on a tree takes time
   proportional to its size and a small stack. */
#include "harness.h"
#include "small_stack.h"

#include <pthread.h>
#include <time.h>

enum { kSmall = 12500, kLarge = 100000 };
/* Allowed ratio of the times for eight times as many modules: it is 8 if linear, 64 if
   quadratic; caches cost something. */
static const double kMaxGrowth = 28;

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef tt_module* (*Maker)(int n);

/* time_of returns the time for n modules. It may lack a tick of the clock, which has 16 ms on
   Windows and a nanosecond on Linux. Other programs in the same caches slow the larger tree down
   more, so that one of several tries must be within the ratio. */
static void check_growth(double (*time_of)(Maker make_tree, int n), Maker make_tree) {
  struct timespec tick;
  double small = 0, large = 0;
  int i;
  clock_getres(CLOCK_THREAD_CPUTIME_ID, &tick);
  for (i = 0; i < 5; i++) {
    small = time_of(make_tree, kSmall);
    large = time_of(make_tree, kLarge);
    if (large <= kMaxGrowth * (small + 1e-9 * (double)tick.tv_nsec)) return;
  }
  fail_msg("%d take %g s, %d take %g s", kSmall, small, kLarge, large);
}

/* ---- shapes of trees ---- */

static tt_module* sequence(void) {
  tt_module* m;
  OK(tt_nn_sequential(c, &m));
  return m;
}
static tt_module* layer(void) {
  tt_module* m;
  OK(tt_nn_linear(c, 2, 2, NULL, &m));
  return m;
}
static void append(tt_module* to, tt_module* child) {
  OK(tt_module_append(c, to, child));
  tt_module_release(child);
}
/* Each parent is created with its child. */
static tt_module* from_inside(int n) {
  tt_module* m = layer();
  int i;
  for (i = 0; i < n; i++) {
    tt_module* outer = sequence();
    append(outer, m);
    m = outer;
  }
  return m;
}
/* Each child is added to the innermost module. */
static tt_module* from_outside(int n) {
  tt_module *root = sequence(), *inner = root;
  int i;
  for (i = 0; i < n; i++) {
    tt_module* m = i == n - 1 ? layer() : sequence();
    OK(tt_module_append(c, inner, m));
    tt_module_release(m); /* its parent owns it */
    inner = m;
  }
  return root;
}
static tt_module* side_by_side(int n) {
  tt_module *root = sequence(), *m;
  int i;
  for (i = 0; i < n; i++) {
    char name[32];
    OK(tt_nn_relu(c, NULL, &m));
    snprintf(name, sizeof name, "child%d", i);
    OK(tt_module_register_module(c, root, name, m));
    tt_module_release(m);
  }
  append(root, layer());
  return root;
}
/* Every module contains the next one twice: 2^n paths lead to the last one. */
static tt_module* diamonds(int n) {
  tt_module* m = layer();
  int i;
  for (i = 0; i < n; i++) {
    tt_module* outer = sequence();
    OK(tt_module_register_module(c, outer, "a", m));
    OK(tt_module_register_module(c, outer, "b", m));
    tt_module_release(m);
    m = outer;
  }
  return m;
}

/* ---- operations on them ---- */

static void switch_all(tt_module* m) {
  tt_tensor* params[4];
  tt_state_dict* named;
  int64_t n;
  OK(tt_module_train(c, m, 0));
  OK(tt_module_requires_grad_(c, m, 0));
  OK(tt_module_requires_grad_(c, m, 1));
  OK(tt_module_zero_grad(c, m));
  OK(tt_module_to(c, m, NULL, TT_F64));
  OK(tt_module_parameters(c, m, params, 4, &n));
  assert_int_equal(n, 2);
  assert_int_equal(tt_tensor_dtype(params[1]), TT_F64);
  OK(tt_module_named_parameters(c, m, &named));
  assert_int_equal(tt_state_dict_size(named), 2);
  tt_state_dict_release(named);
}
static void use(tt_module* m) {
  tt_module* twin;
  tt_state_dict* state;
  tt_tensor *in, *out;
  OK(tt_scope_push(c));
  OK(tt_ones(c, SHAPE(1, 2), NULL, &in));
  OK(tt_module_call(c, m, in, &out));
  switch_all(m);
  OK(tt_module_copy(c, m, &twin));
  OK(tt_module_state_dict(c, twin, &state));
  assert_int_equal(tt_state_dict_size(state), 2);
  OK(tt_module_load_state_dict(c, m, state, NULL));
  tt_state_dict_release(state);
  tt_module_release(twin);
  OK(tt_scope_pop(c, NULL, 0));
}

static double time_of_tree(Maker make_tree, int n) {
  const double begin = seconds();
  tt_module* m = make_tree(n);
  use(m);
  tt_module_release(m);
  return seconds() - begin;
}
static void test_from_inside(void** state) {
  (void)state;
  check_growth(time_of_tree, from_inside);
}
static void test_from_outside(void** state) {
  (void)state;
  check_growth(time_of_tree, from_outside);
}
static void test_side_by_side(void** state) {
  (void)state;
  check_growth(time_of_tree, side_by_side);
}
static void test_diamonds(void** state) {
  tt_module* m = diamonds(200);
  (void)state;
  OK(tt_scope_push(c));
  switch_all(m);
  OK(tt_scope_pop(c, NULL, 0));
  tt_module_release(m);
}

/* State dicts filled and read in another order. */
static double time_of_dict(Maker unused, int n) {
  const double begin = seconds();
  tt_state_dict* d;
  tt_tensor* t;
  char name[32];
  int64_t at;
  int i;
  (void)unused;
  OK(tt_zeros(c, NULL, 0, NULL, &t));
  OK(tt_state_dict_new(c, &d));
  for (i = 0; i < n; i++) {
    snprintf(name, sizeof name, "layers.%d.weight", i);
    OK(tt_state_dict_set(c, d, name, t));
  }
  for (i = n; i-- > 0;) {
    snprintf(name, sizeof name, "layers.%d.weight", i);
    OK(tt_state_dict_find(c, d, name, &at));
    assert_int_equal(at, i);
  }
  FAILS(tt_state_dict_find(c, d, "layers.x", &at), TT_INDEX, "layers.x");
  tt_state_dict_release(d);
  tt_tensor_release(t);
  return seconds() - begin;
}
static void test_state_dict(void** state) {
  (void)state;
  check_growth(time_of_dict, NULL);
}

/* A parent that removed its child is no parent any more; a child cannot be its parent's parent. */
static void test_cycles(void** state) {
  tt_module *a = sequence(), *b = sequence(), *other = layer();
  (void)state;
  OK(tt_module_register_module(c, a, "x", b));
  FAILS(tt_module_register_module(c, b, "y", a), TT_INVALID_ARG, "cycles are not allowed");
  FAILS(tt_module_register_module(c, a, "y", a), TT_INVALID_ARG, "cycles are not allowed");
  OK(tt_module_register_module(c, a, "x", other));
  OK(tt_module_register_module(c, b, "y", a));
  FAILS(tt_module_register_module(c, a, "x", b), TT_INVALID_ARG, "cycles are not allowed");
  tt_module_release(a);
  tt_module_release(b);
  tt_module_release(other);
}

static void* run_all(void* failed) {
  const struct CMUnitTest tests[] = {PLAIN(test_from_inside),  PLAIN(test_from_outside),
                                     PLAIN(test_side_by_side), PLAIN(test_diamonds),
                                     PLAIN(test_state_dict),   PLAIN(test_cycles)};
  *(int*)failed = cmocka_run_group_tests(tests, NULL, NULL);
  return NULL;
}

int main(void) {
  const size_t stack = SLOW_BUILD ? 4 << 20 : small_stack(); /* sanitizers make frames larger */
  pthread_attr_t attr;
  pthread_t thread;
  int failed = 1;
  if (pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, stack)) return 1;
  if (pthread_create(&thread, &attr, run_all, &failed)) return 1;
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attr);
  return failed;
}
