/* cumprod of long rows and columns on several threads: results are those of multiplication one by
   one in double, also where products overflow or underflow on the way, for every number of
   threads. */
#include "everywhere.h"

static double near_one(void) { return 1 + ((double)(draw() % 2001) - 1000) / 1000000; }
static double power(void) { return ldexp(draw() % 2 ? -1 : 1, (int)(draw() % 61) - 30); }
static double around_zero(void) { return ((double)(draw() % 4001) - 2000) / 700; } /* falls to 0 */
static double falling(void) { return 0.99; } /* falls to a denormal, which stays */
static double growing(void) { return (draw() % 2 ? -1 : 1) * (1 + (double)(draw() % 100) / 1000); }
static double swinging(void) { /* out of the range of float32 at every other element */
  static int up;
  return (up = !up) ? 1e200 : -1e-200;
}
static double counted(void) { return (double)(draw() % 2000 ? draw() % 8 + 1 : 0); }
static double (*const kValues[])(void) = {near_one, power,    around_zero, falling,
                                          growing,  swinging, counted,     special};
enum { kKinds = sizeof kValues / sizeof *kValues };

static int same(double got, double want) {
  return isnan(want) ? isnan(got) : got == want && signbit(got) == signbit(want);
}
/* Multiplies the stored elements one by one. */
static void check_real(const tt_tensor* t, const tt_tensor* products, int64_t length,
                       int64_t inner) {
  const tt_dtype d = tt_tensor_dtype(t);
  const double eps = d == TT_F16 || d == TT_BF16 ? 0x1p-8 : 0;
  double* v = values_of(t);
  double* got = values_of(products);
  double* product = calloc((size_t)inner, sizeof *product);
  const int64_t n = tt_tensor_numel(t);
  int64_t i;
  for (i = 0; i < n; i++) {
    double* p = &product[i % inner];
    double want;
    *p = i / inner % length ? *p * v[i] : v[i];
    want = d == TT_F64 ? *p : (double)(float)*p;
    if (eps == 0) assert_true(same(got[i], want));
    else if (isnan(want)) assert_true(isnan(got[i]));
    else if (isfinite(got[i])) assert_true(fabs(got[i] - want) <= eps * fabs(want) + 1e-7);
    else assert_true(fabs(want) >= 65504 && (got[i] > 0) == (want > 0));
  }
  free(v);
  free(got);
  free(product);
}
/* Complex numbers: pairs of float or double. */
static double part(const tt_tensor* t, int64_t i) {
  if (tt_tensor_dtype(t) == TT_C64) return ((const float*)tt_tensor_data(t))[i];
  return ((const double*)tt_tensor_data(t))[i];
}
static void check_complex(const tt_tensor* t, const tt_tensor* products, int64_t length,
                          int64_t inner) {
  const int single = tt_tensor_dtype(t) == TT_C64;
  double(*product)[2] = calloc((size_t)inner, sizeof *product);
  const int64_t n = tt_tensor_numel(t);
  int64_t i, k;
  for (i = 0; i < n; i++) {
    double* p = product[i % inner];
    const double re = i / inner % length ? p[0] : 1;
    const double im = i / inner % length ? p[1] : 0;
    const double x = part(t, 2 * i);
    const double y = part(t, 2 * i + 1);
    const double terms[] = {re * x, im * y, re * y, im * x};
    p[0] = terms[0] - terms[1];
    p[1] = terms[2] + terms[3];
    for (k = 0; k < 2; k++)
      assert_true(same(part(products, 2 * i + k), single ? (double)(float)p[k] : p[k]));
  }
  free(product);
}
/* The sign of a nan follows from the order of two factors, which compilers choose. */
static tt_tensor* with_equal_nans(tt_ctx* x, const tt_tensor* t) {
  tt_tensor *is_nan, *out;
  DO(tt_isnan(x, t, &is_nan));
  DO(tt_masked_fill_f64(x, t, is_nan, NAN, &out));
  return out;
}
static void multiply_up(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const tt_dtype dtype = tt_tensor_dtype(t);
  const int64_t ndim = tt_tensor_ndim(t);
  const int64_t* shape = tt_tensor_shape(t);
  int64_t inner = 1, d;
  for (d = ndim - 1; d >= 0; inner *= shape[d--]) {
    tt_tensor* products;
    if (shape[d] < 400) continue;
    DO(tt_cumprod(x, t, d, NULL, &products));
    if (alone(x) && (dtype == TT_C64 || dtype == TT_C128))
      check_complex(t, products, shape[d], inner);
    else if (alone(x)) check_real(t, products, shape[d], inner);
    if (dtype <= TT_F64 && dtype >= TT_F16) products = with_equal_nans(x, products);
    keep(b, products);
  }
}
/* A row, several rows, few columns (in registers) and a tile's or more. */
static const int64_t kShapes[][3] = {{1, 60003, 1}, {5, 8011, 1},  {2, 20011, 3},
                                     {1, 4001, 15}, {1, 4001, 20}, {1, 500, 300}};
enum { kNumShapes = sizeof kShapes / sizeof *kShapes };
static void test_floats(void** state) {
  static const tt_dtype kDtypes[] = {TT_F32, TT_F64, TT_BF16, TT_F16};
  int d, k, s;
  (void)state;
  for (d = 0; d < 4; d++)
    for (k = 0; k < kKinds; k++)
      for (s = 0; s < kNumShapes; s++)
        same_everywhere(multiply_up, filled(kShapes[s], 3, kDtypes[d], kValues[k]));
}

/* The numbers of `value` in pairs. */
static tt_tensor* complex_filled(const int64_t* shape, tt_dtype d, double (*value)(void)) {
  const int64_t pairs[] = {shape[0], shape[1], shape[2], 2};
  tt_tensor* out;
  OK(tt_view_as_complex(c, filled(pairs, 4, d == TT_C64 ? TT_F32 : TT_F64, value), &out));
  return out;
}
static void test_complex(void** state) {
  int k, s;
  (void)state;
  for (k = 0; k < kKinds; k++)
    for (s = 0; s < kNumShapes; s++) {
      same_everywhere(multiply_up, complex_filled(kShapes[s], TT_C64, kValues[k]));
      same_everywhere(multiply_up, complex_filled(kShapes[s], TT_C128, kValues[k]));
    }
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
  static const int64_t kColumns[] = {16, 17, 300};
  int k;
  (void)state;
  same_everywhere(multiply_integers, filled(SHAPE(140003), TT_I64, any_odd));
  same_everywhere(multiply_integers, filled(SHAPE(9001, 12), TT_I64, wide));
  for (k = 0; k < 3; k++)
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
      SCOPED(test_floats),
      SCOPED(test_complex),
      SCOPED(test_integers),
      SCOPED(test_gradient),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
