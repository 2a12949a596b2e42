/* cumprod of long rows and columns on several threads: results are those of multiplication one
   by one, also where products overflow or underflow, and bit-equal for every number of threads. */
#include "everywhere.h"

static double near_one(void) { return 1 + ((double)(draw() % 2001) - 1000) / 1000000; }
static double sign(void) { return draw() % 2 ? 1 : -1; }
static double power(void) { return ldexp(draw() % 2 ? -1 : 1, (int)(draw() % 61) - 30); }
static double around_zero(void) { return ((double)(draw() % 4001) - 2000) / 700; } /* falls to 0 */
static double falling(void) { return 0.99; } /* falls to a denormal, which stays */
static double falling_unevenly(void) { return 0.6 + (double)(draw() % 1000) / 1400; } /* likewise */
static double growing(void) { return (draw() % 2 ? -1 : 1) * (1 + (double)(draw() % 100) / 1000); }
static double swinging(
    void) { /* products of a few factors are out of range, those from the first factor on are not */
  static int up;
  return (up = !up) ? 1e200 : -1e-200;
}
static double counted(void) { return (double)(draw() % 2000 ? draw() % 8 + 1 : 0); }
static double (*const kValues[])(void) = {near_one,         sign,    power,    around_zero, falling,
                                          falling_unevenly, growing, swinging, counted};
enum { kKinds = sizeof kValues / sizeof *kValues };

/* The reference multiplies the stored elements one by one, in double. */
static void check_products(const tt_tensor* t, const tt_tensor* products, int64_t length,
                           int64_t inner) {
  const tt_dtype d = tt_tensor_dtype(products);
  double* v = values_of(t);
  double* got = values_of(products);
  double* product = calloc((size_t)inner, sizeof *product);
  const double eps = 2e-11 + epsilon(d);
  const double narrow_tiny = d == TT_F16 ? 1e-7 : 1e-37;
  const double narrow_huge = d == TT_F16 ? 65504 : 3e38;
  const double tiny = d == TT_F64 ? 1e-310 : narrow_tiny;
  const double huge = d == TT_F64 ? 1e308 : narrow_huge;
  const int64_t n = tt_tensor_numel(t);
  int64_t i;
  for (i = 0; i < n; i++) {
    double* p = &product[i % inner];
    *p = i / inner % length ? *p * v[i] : v[i];
    if (isnan(*p)) assert_true(isnan(got[i]));
    else if (fabs(*p) > huge) assert_true(fabs(got[i]) > huge / 2 && (got[i] > 0) == (*p > 0));
    else assert_true(fabs(got[i] - *p) <= eps * fabs(*p) + tiny && signbit(got[i]) == signbit(*p));
  }
  free(v);
  free(got);
  free(product);
}
static void multiply_up(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const int64_t ndim = tt_tensor_ndim(t);
  const int64_t* shape = tt_tensor_shape(t);
  int64_t inner = 1, d;
  for (d = ndim - 1; d >= 0; inner *= shape[d--]) {
    tt_tensor* products;
    if (shape[d] < 400) continue;
    DO(tt_cumprod(x, t, d, NULL, &products));
    if (alone(x)) check_products(t, products, shape[d], inner);
    keep(b, products);
  }
}
static void test_floats(void** state) {
  static const tt_dtype kDtypes[] = {TT_F32, TT_F64, TT_BF16};
  int d, k;
  (void)state;
  for (d = 0; d < 3; d++)
    for (k = 0; k < kKinds; k++) {
      same_everywhere(multiply_up, filled(SHAPE(140003), kDtypes[d], kValues[k]));
      same_everywhere(multiply_up, filled(SHAPE(2, 40011, 3), kDtypes[d], kValues[k]));
      if (k % 3) continue;
      same_everywhere(multiply_up, filled(SHAPE(12001, 15), kDtypes[d], kValues[k]));
      same_everywhere(multiply_up, filled(SHAPE(5001, 20), kDtypes[d], kValues[k]));
    }
}

/* With few rows and many columns, threads take tiles of columns instead of chunks of rows. */
static void test_columns(void** state) {
  static const int64_t kColumns[] = {16, 17, 64, 255, 256, 300};
  static const tt_dtype kDtypes[] = {TT_F32, TT_F64, TT_F16};
  int d, k;
  (void)state;
  for (d = 0; d < 3; d++)
    for (k = 0; k < 6; k++) {
      const int64_t rows = 150000 / kColumns[k];
      same_everywhere(multiply_up, filled(SHAPE(rows, kColumns[k]), kDtypes[d], near_one));
      same_everywhere(multiply_up, filled(SHAPE(rows, kColumns[k]), kDtypes[d], special));
      same_everywhere(multiply_up, filled(SHAPE(3, rows, kColumns[k]), kDtypes[d], sign));
    }
}

/* 0, infinity and nan in every chunk and around the edges of chunks, while the product is
   normal, 0, constant or infinite. */
static void test_special_factors(void** state) {
  static const double kSpecial[] = {0, -0.0, INFINITY, -INFINITY, NAN, 5e-324, 1.7e308};
  static const int64_t kAt[] = {0, 5, 32767, 32768, 32769, 70000, 140002};
  size_t s, a, second, k;
  (void)state;
  for (s = 0; s < 7; s++)
    for (a = 0; a < 7; a++)
      for (k = 0; k < kKinds; k += 4)
        for (second = 0; second < 2; second++) {
          tt_tensor *t = filled(SHAPE(140003), TT_F64, kValues[k]), *products;
          double* v = tt_tensor_data(t);
          v[kAt[a]] = kSpecial[s];
          if (second && kAt[a] < 100000) v[kAt[a] + 40000] = kSpecial[(s + 2) % 7];
          OK(tt_set_num_threads(c, 1 + (int)(a % 2) * 2));
          OK(tt_cumprod(c, t, 0, NULL, &products));
          check_products(t, products, 140003, 1);
        }
  OK(tt_set_num_threads(c, 1));
}
static void test_special_everywhere(void** state) {
  (void)state;
  same_everywhere(multiply_up, filled(SHAPE(140003), TT_F64, special));
  same_everywhere(multiply_up, filled(SHAPE(30001, 5), TT_F32, special));
}

/* Modulo 2^64. */
static double any_odd(void) { return 2 * (double)draw() + 1; }
static void multiply_integers(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const int64_t n = tt_tensor_numel(t);
  const int64_t inner = tt_tensor_ndim(t) > 1 ? tt_tensor_shape(t)[1] : 1;
  uint64_t product[300];
  const int64_t *v = tt_tensor_data(t), *got;
  tt_tensor* products;
  int64_t i;
  DO(tt_cumprod(x, t, 0, NULL, &products));
  got = tt_tensor_data(products);
  for (i = 0; i < n; i++) {
    product[i % inner] = i < inner ? (uint64_t)v[i] : product[i % inner] * (uint64_t)v[i];
    assert_true((uint64_t)got[i] == product[i % inner]);
  }
  keep(b, products);
}
static void test_integers(void** state) {
  static const int64_t kColumns[] = {16, 17, 64, 255, 256, 300};
  int k;
  (void)state;
  same_everywhere(multiply_integers, filled(SHAPE(140003), TT_I64, any_odd));
  same_everywhere(multiply_integers, filled(SHAPE(30001, 5), TT_I64, any_odd));
  same_everywhere(multiply_integers, filled(SHAPE(9001, 12), TT_I64, wide));
  for (k = 0; k < 6; k++)
    same_everywhere(multiply_integers,
                    filled(SHAPE(150000 / kColumns[k], kColumns[k]), TT_I64, any_odd));
}

/* dx[k] = sum over i >= k of g[i] y[i] / x[k] */
static void go_back(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const tt_backward_opts gradient = {.set = TT_BACKWARD_GRADIENT, .gradient = t};
  const int64_t n = tt_tensor_numel(t);
  tt_tensor *from, *y, *dx;
  DO(tt_clone(x, t, NULL, &from));
  DO(tt_requires_grad_(x, from, 1));
  DO(tt_cumprod(x, from, 0, NULL, &y));
  DO(tt_backward(x, y, &gradient));
  DO(tt_tensor_grad(x, from, &dx));
  keep(b, dx);
  if (alone(x)) {
    double* v = values_of(t);
    double* products = values_of(y);
    double* got = values_of(dx);
    double sum = 0;
    int64_t i;
    for (i = n - 1; i >= 0; i--) {
      sum += v[i] * products[i];
      check_near(got[i], sum / v[i], 1e-9 * fabs(sum));
    }
    free(v);
    free(products);
    free(got);
  }
}
static void test_gradient(void** state) {
  (void)state;
  same_everywhere(go_back, filled(SHAPE(140003), TT_F64, near_one));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_floats),          SCOPED(test_columns),
      SCOPED(test_special_factors), SCOPED(test_special_everywhere),
      SCOPED(test_integers),        SCOPED(test_gradient),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
