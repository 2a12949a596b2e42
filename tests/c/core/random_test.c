/* Random numbers: reproducible values, generators that advance only on success, dropout. */
#include "harness.h"

#include <math.h>

static tt_generator* generator(uint64_t seed) {
  tt_generator* g;
  OK(tt_generator_new(c, seed, &g));
  return g;
}
static uint64_t offset_of(const tt_generator* g) {
  uint64_t state[2];
  OK(tt_generator_state(c, g, state));
  return state[1];
}
static tt_tensor* uniform(int64_t n, tt_dtype d, tt_generator* g) {
  const tt_rand_opts opts = {.set = TT_RAND_DTYPE | TT_RAND_GENERATOR, .dtype = d, .generator = g};
  tt_tensor* t;
  OK(tt_rand(c, &n, 1, &opts, &t));
  return t;
}
static double mean_of(const tt_tensor* t, double* variance) {
  const int64_t n = tt_tensor_numel(t);
  double* v = values_of(t);
  double sum = 0;
  double squares = 0;
  int64_t i;
  for (i = 0; i < n; i++) sum += v[i];
  for (i = 0; i < n; i++) squares += (v[i] - sum / n) * (v[i] - sum / n);
  free(v);
  *variance = squares / n;
  return sum / n;
}
static int same_values(const tt_tensor* a, const tt_tensor* b) {
  double* x = values_of(a);
  double* y = values_of(b);
  const int equal = !memcmp(x, y, sizeof(double) * (size_t)tt_tensor_numel(a));
  free(x);
  free(y);
  return equal;
}

static void equal_seeds_give_equal_values(void** state) {
  tt_generator* a = generator(7);
  tt_generator* b = generator(7);
  tt_generator* other = generator(8);
  tt_generator* own;
  uint64_t saved[2];
  tt_tensor *x, *y;
  (void)state;
  x = uniform(1000, TT_F32, a);
  assert_true(same_values(x, uniform(1000, TT_F32, b)));
  assert_false(same_values(x, uniform(1000, TT_F32, other)));
  OK(tt_generator_state(c, a, saved));
  y = uniform(1000, TT_F32, a);
  assert_false(same_values(x, y));
  OK(tt_generator_set_state(c, a, saved));
  assert_true(same_values(y, uniform(1000, TT_F32, a)));
  OK(tt_manual_seed(c, 7)); /* the ctx's own generator */
  OK(tt_rand(c, SHAPE(1000), NULL, &y));
  assert_true(same_values(x, y));
  OK(tt_ctx_generator(c, &own));
  assert_true(offset_of(own) > 0);
  tt_generator_release(a);
  tt_generator_release(b);
  tt_generator_release(other);
  tt_generator_release(own);
}

static void distributions(void** state) {
  const tt_dtype dtypes[] = {TT_F16, TT_BF16, TT_F32, TT_F64, TT_C64, TT_C128};
  size_t k;
  (void)state;
  for (k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
    const tt_rand_opts u = {.set = TT_RAND_DTYPE, .dtype = dtypes[k]};
    const tt_randn_opts z = {.set = TT_RANDN_DTYPE, .dtype = dtypes[k]};
    const double parts = dtypes[k] >= TT_C64 ? 2 : 1;
    double variance, mean;
    tt_tensor* t;
    OK(tt_rand(c, SHAPE(100, 1000), &u, &t));
    mean = mean_of(t, &variance);
    assert_true(fabs(mean - 0.5) < 0.01 && fabs(variance - 1.0 / 12) < 0.002);
    OK(tt_randn(c, SHAPE(100, 1000), &z, &t));
    mean = mean_of(t, &variance);
    assert_true(fabs(mean) < 0.02 && fabs(variance - 1 / parts) < 0.02);
  }
}

static void bernoulli_follows_its_probabilities(void** state) {
  tt_tensor *p = make(TT_F32, SHAPE(4), DATA(0, 1, 0, 1)), *t, *half;
  const int64_t n = 20000;
  double variance;
  (void)state;
  OK(tt_bernoulli(c, p, NULL, &t));
  VALUES(t, 0, 1, 0, 1);
  assert_int_equal(tt_tensor_dtype(t), TT_F32);
  OK(tt_full_f64(c, &n, 1, 0.25, NULL, &half));
  OK(tt_bernoulli(c, half, NULL, &t));
  assert_true(fabs(mean_of(t, &variance) - 0.25) < 0.02);
  OK(tt_bernoulli_p(c, half, 0.75, NULL, &t));
  assert_true(fabs(mean_of(t, &variance) - 0.75) < 0.02);
  OK(tt_bernoulli_p_(c, half, 1, NULL));
  assert_true(mean_of(half, &variance) == 1);
  FAILS(tt_bernoulli_p(c, p, 1.5, NULL, &t), TT_INVALID_ARG, "p is 1.5");
  FAILS(tt_bernoulli_p(c, p, NAN, NULL, &t), TT_INVALID_ARG, "p is nan");
  FAILS(tt_bernoulli(c, numbers(TT_F64, DATA(0.5, 2)), NULL, &t), TT_INVALID_ARG,
        "outside [0, 1]: self holds 2.0 at [1]");
  FAILS(tt_bernoulli(c, numbers(TT_I64, DATA(1)), NULL, &t), TT_NOT_IMPLEMENTED, "int64");
}

static void a_failing_call_does_not_move_the_generator(void** state) {
  tt_generator* g = generator(1);
  const tt_rand_opts ints = {
      .set = TT_RAND_DTYPE | TT_RAND_GENERATOR, .dtype = TT_I64, .generator = g};
  const tt_rand_opts plain = {.set = TT_RAND_GENERATOR, .generator = g};
  const tt_dropout_opts drop = {.set = TT_DROPOUT_GENERATOR, .generator = g};
  const int64_t n = 4 << 20;
  tt_tensor *t, *x = numbers(TT_F32, DATA(1, 2, 3));
  (void)state;
  FAILS(tt_rand(c, SHAPE(3), &ints, &t), TT_NOT_IMPLEMENTED, "dtype is int64");
  FAILS(tt_rand(c, SHAPE(-3), &plain, &t), TT_SHAPE, "size");
  OK(tt_set_memory_limit(c, 4 << 20));
  FAILS(tt_rand(c, &n, 1, &plain, &t), TT_OOM, NULL);
  OK(tt_set_memory_limit(c, 0));
  FAILS(tt_dropout(c, numbers(TT_I64, DATA(1)), &drop, &t), TT_DTYPE, "int64");
  assert_int_equal(offset_of(g), 0);
  OK(tt_dropout(c, x, &drop, &t));
  assert_int_equal(offset_of(g), 16);
  tt_generator_release(g);
}

static void dropout_scales_what_it_keeps(void** state) {
  const tt_dropout_opts quarter = {.set = TT_DROPOUT_P, .p = 0.25};
  const int64_t n = 40000;
  tt_tensor *x, *y, *g;
  double *v, *d, kept = 0;
  int64_t i;
  (void)state;
  OK(tt_full_f64(c, &n, 1, 3, NULL, &x));
  OK(tt_requires_grad_(c, x, 1));
  OK(tt_dropout(c, x, &quarter, &y));
  g = derive(y, x, 0);
  v = values_of(y);
  d = values_of(g);
  for (i = 0; i < n; i++) {
    assert_true(v[i] == 0 || v[i] == 4);
    assert_true(d[i] == (v[i] ? 4.0f / 3.0f : 0));
    kept += v[i] != 0;
  }
  free(v);
  free(d);
  assert_true(fabs(kept / n - 0.75) < 0.02);
}

static void dropout_may_return_its_input(void** state) {
  const tt_dropout_opts zero = {.set = TT_DROPOUT_P, .p = 0};
  const tt_dropout_opts eval = {.set = TT_DROPOUT_TRAIN, .train = 0};
  const tt_dropout_opts one = {.set = TT_DROPOUT_P, .p = 1};
  const tt_dropout_opts wrong = {.set = TT_DROPOUT_P, .p = 1.01};
  tt_tensor *x = numbers(TT_F32, DATA(1, 2)), *y;
  (void)state;
  OK(tt_dropout(c, x, &zero, &y));
  assert_ptr_equal(y, x);
  OK(tt_dropout(c, x, &eval, &y));
  assert_ptr_equal(y, x);
  OK(tt_dropout(c, x, &one, &y));
  VALUES(y, 0, 0);
  FAILS(tt_dropout(c, x, &wrong, &y), TT_INVALID_ARG, "p is 1.01");
  OK(tt_dropout_(c, x, &one));
  VALUES(x, 0, 0);
}

static void meta_draws_nothing(void** state) {
  tt_generator* g = generator(3);
  const tt_rand_opts meta = {
      .set = TT_RAND_DEVICE | TT_RAND_GENERATOR, .device = {TT_META, 0}, .generator = g};
  const tt_dropout_opts drop = {.set = TT_DROPOUT_GENERATOR, .generator = g};
  tt_tensor* t;
  (void)state;
  OK(tt_rand(c, SHAPE(1000, 1000), &meta, &t));
  OK(tt_dropout(c, t, &drop, &t));
  HAS_SHAPE(t, 1000, 1000);
  assert_int_equal(offset_of(g), 0);
  tt_generator_release(g);
}

/* Calls that fail after their random values were computed. */
static void a_failing_draw_leaves_the_generator(void** state) {
  tt_generator* g = generator(5);
  const tt_normal_mean_opts mean = {.set = TT_NORMAL_MEAN_GENERATOR, .generator = g};
  const tt_uniform__opts even = {.set = TT_UNIFORM__GENERATOR, .generator = g};
  tt_tensor *x, *dst, *wide;
  const uint64_t before = offset_of(g);
  (void)state;
  OK(tt_zeros(c, SHAPE(4), NULL, &x));
  OK(tt_zeros(c, SHAPE(5), NULL, &dst));
  FAILS(tt_normal_mean_into(c, x, 1, &mean, dst), TT_SHAPE, NULL);
  FAILS(tt_uniform_(c, x, 2, 1, &even), TT_INVALID_ARG, NULL);
  OK(tt_expand(c, dst, SHAPE(3, 5), &wide));
  FAILS(tt_uniform_(c, wide, 0, 1, &even), TT_INVALID_ARG, NULL);
  OK(tt_sum(c, x, NULL, &wide));
  assert_true(offset_of(g) == before && value_of(wide) == 0);
  OK(tt_uniform_(c, x, 2, 3, &even));
  OK(tt_min(c, x, &wide));
  assert_true(offset_of(g) > before && value_of(wide) >= 2);
  tt_generator_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(equal_seeds_give_equal_values),
      SCOPED(distributions),
      SCOPED(bernoulli_follows_its_probabilities),
      SCOPED(a_failing_call_does_not_move_the_generator),
      SCOPED(dropout_scales_what_it_keeps),
      SCOPED(dropout_may_return_its_input),
      SCOPED(meta_draws_nothing),
      SCOPED(a_failing_draw_leaves_the_generator),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
