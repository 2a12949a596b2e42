/* One or a few long rows on several threads: sorts, scans, softmax and long dot products are
   right, and bit-equal for every number of threads. */
#include "everywhere.h"

enum { kLength = 70001 };

/* ---- order ---- */

static int goes_before(double a, double b, int descending) { /* nan is the largest */
  if (descending) return isnan(a) ? !isnan(b) : a > b;
  return isnan(b) ? !isnan(a) : a < b;
}
/* The indices sort x, equal values by position; values are those of x at the indices. */
static void check_order(const tt_tensor* x, const tt_tensor* values, const tt_tensor* indices,
                        int descending) {
  double* v = values_of(x);
  double* got = values_of(values);
  const int64_t* at = tt_tensor_data(indices);
  const int64_t n = tt_tensor_numel(x);
  const int64_t k = tt_tensor_numel(indices);
  char* seen = calloc(1, (size_t)n);
  int64_t i;
  for (i = 0; i < k; i++) {
    const double here = v[at[i]];
    const double last = v[at[i ? i - 1 : 0]];
    assert_true(at[i] >= 0 && at[i] < n && !seen[at[i]]);
    seen[at[i]] = 1;
    assert_true(isnan(here) ? isnan(got[i]) : here == got[i]);
    assert_false(goes_before(here, last, descending));
    assert_true(i == 0 || goes_before(last, here, descending) || at[i - 1] < at[i]);
  }
  for (i = 0; i < n && k; i++) /* values that are left out come later */
    assert_true(seen[i] || goes_before(v[at[k - 1]], v[i], descending) ||
                (!goes_before(v[i], v[at[k - 1]], descending) && i > at[k - 1]));
  free(v);
  free(got);
  free(seen);
}

static void order(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const tt_sort_opts down = {.set = TT_SORT_DESCENDING, .descending = 1};
  const tt_topk_opts small = {.set = TT_TOPK_LARGEST, .largest = 0};
  const int64_t n = tt_tensor_numel(t);
  const int64_t k[] = {1, 64, 65, n / 3};
  tt_tensor *values, *indices;
  int way, i;
  for (way = 0; way < 2; way++) {
    DO(tt_sort(x, t, way ? &down : NULL, &values, &indices));
    check_order(t, values, indices, way);
    keep(b, values);
    keep(b, indices);
    for (i = 0; i < 4; i++) {
      DO(tt_topk(x, t, k[i], way ? NULL : &small, &values, &indices));
      check_order(t, values, indices, way);
      keep(b, values);
      keep(b, indices);
    }
  }
  DO(tt_argsort(x, t, NULL, &indices));
  keep(b, indices);
}

static void test_sort(void** state) {
  static double (*const kValues[])(void) = {wide, few, mostly_zero, special};
  static const tt_dtype kDtypes[] = {TT_F32, TT_F64, TT_I64, TT_U8};
  size_t d, k;
  (void)state;
  for (d = 0; d < 4; d++)
    for (k = 0; k < (kDtypes[d] == TT_F32 || kDtypes[d] == TT_F64 ? 4 : 3); k++)
      same_everywhere(order, filled(SHAPE(kLength), kDtypes[d], kValues[k]));
}

static void order_once(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  tt_tensor *values, *indices;
  DO(tt_sort(x, t, NULL, &values, &indices));
  check_order(t, values, indices, 0);
  keep(b, values);
  keep(b, indices);
}
static void test_sort_of_other_dtypes(void** state) {
  static const tt_dtype kDtypes[] = {TT_BOOL, TT_I8, TT_I16, TT_I32, TT_F16, TT_BF16};
  size_t d;
  (void)state;
  for (d = 0; d < sizeof kDtypes / sizeof *kDtypes; d++)
    same_everywhere(order_once, filled(SHAPE(40000), kDtypes[d], wide));
}

/* Strided rows, a few and many: each is sorted as if it were alone. */
static void order_of_columns(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const tt_sort_opts first = {.set = TT_SORT_DIM, .dim = 0};
  const tt_topk_opts top = {.set = TT_TOPK_DIM, .dim = 0};
  tt_tensor *values, *indices, *column, *sorted, *at, *copy, *alone, *alone_at, *values_top,
      *indices_top;
  int64_t j;
  DO(tt_sort(x, t, &first, &values, &indices));
  DO(tt_topk(x, t, 5, &top, &values_top, &indices_top));
  keep(b, values);
  keep(b, indices);
  keep(b, values_top);
  keep(b, indices_top);
  for (j = 0; j < 3; j++) {
    DO(tt_select(x, t, 1, j, &column));
    DO(tt_contiguous(x, column, &copy));
    DO(tt_select(x, values, 1, j, &sorted));
    DO(tt_contiguous(x, sorted, &alone));
    DO(tt_select(x, indices, 1, j, &at));
    DO(tt_contiguous(x, at, &alone_at));
    check_order(copy, alone, alone_at, 0);
    DO(tt_select(x, values_top, 1, j, &sorted));
    DO(tt_contiguous(x, sorted, &alone));
    DO(tt_select(x, indices_top, 1, j, &at));
    DO(tt_contiguous(x, at, &alone_at));
    check_order(copy, alone, alone_at, 1);
  }
}
static void test_sort_of_columns(void** state) {
  (void)state;
  same_everywhere(order_of_columns, filled(SHAPE(kLength, 3), TT_F32, special));
  same_everywhere(order_of_columns, filled(SHAPE(2000, 40), TT_F32, few));
}

static void find_unique(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const tt_unique_opts all = {.set = TT_UNIQUE_RETURN_INVERSE | TT_UNIQUE_RETURN_COUNTS,
                              .return_inverse = 1,
                              .return_counts = 1};
  tt_tensor *values, *inverse, *counts, *back;
  DO(tt_unique(x, t, &all, &values, &inverse, &counts));
  DO(tt_index_select(x, values, 0, inverse, &back));
  assert_memory_equal(tt_tensor_data(back), tt_tensor_data(t), (size_t)(8 * tt_tensor_numel(t)));
  keep(b, values);
  keep(b, inverse);
  keep(b, counts);
}
static void test_unique(void** state) {
  (void)state;
  same_everywhere(find_unique, filled(SHAPE(kLength), TT_I64, wide));
  same_everywhere(find_unique, filled(SHAPE(kLength), TT_I64, few));
}

/* Every allocation of a sort's scratch memory fails once. */
static void test_sort_without_memory(void** state) {
  const tt_tensor* t = filled(SHAPE(kLength), TT_F32, wide);
  tt_status s = TT_OOM;
  int failures = 0;
  (void)state;
  OK(tt_set_num_threads(c, 3));
  while (s) {
    tt_tensor *values, *indices;
    OK(tt_trim(c));
    host.calls = 0;
    host.fail_at = ++failures;
    host.fail_n = 0;
    s = tt_sort(c, t, NULL, &values, &indices);
    host.fail_at = 0;
    if (s) assert_true(s == TT_OOM && !values && !indices);
    if (!s) check_order(t, values, indices, 0);
  }
  assert_true(failures > 1);
  OK(tt_set_num_threads(c, 1));
}

/* ---- running sums ---- */

/* Numbers whose sums are exact: results equal the rounded sums. */
static void check_sums(const tt_tensor* t, const tt_tensor* sums, int64_t length, int64_t inner) {
  const int f32 = tt_tensor_dtype(sums) == TT_F32;
  double* v = values_of(t);
  double* got = values_of(sums);
  double* sum = calloc((size_t)inner, sizeof *sum);
  const int64_t n = tt_tensor_numel(t);
  int64_t i;
  for (i = 0; i < n; i++) {
    double* s = &sum[i % inner];
    if (i / inner % length == 0) *s = 0;
    *s += v[i];
    assert_true(got[i] == (f32 ? (double)(float)*s : *s));
  }
  free(v);
  free(got);
  free(sum);
}
static void sum_up(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const int64_t ndim = tt_tensor_ndim(t);
  const int64_t* shape = tt_tensor_shape(t);
  int64_t d, k;
  for (d = 0; d < ndim; d++) {
    int64_t inner = 1;
    tt_tensor* sums;
    for (k = d + 1; k < ndim; k++) inner *= shape[k];
    DO(tt_cumsum(x, t, d, NULL, &sums));
    check_sums(t, sums, shape[d], inner);
    keep(b, sums);
  }
}
static void test_sums(void** state) {
  static const tt_dtype kDtypes[] = {TT_F32, TT_F64, TT_I64, TT_I32, TT_BOOL};
  size_t d;
  (void)state;
  for (d = 0; d < 5; d++) {
    same_everywhere(sum_up, filled(SHAPE(100003), kDtypes[d], wide));
    same_everywhere(sum_up, filled(SHAPE(3, 30011, 2), kDtypes[d], wide));
    same_everywhere(sum_up, filled(SHAPE(1, 700, 300), kDtypes[d], wide));
    same_everywhere(sum_up, filled(SHAPE(9001, 12), kDtypes[d], wide));
  }
}

static void sum_complex(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const int64_t n = tt_tensor_numel(t);
  tt_tensor *sums, *parts, *sum_parts;
  DO(tt_cumsum(x, t, 0, NULL, &sums));
  DO(tt_tensor_from_data(x, tt_tensor_data(t), TT_F64, SHAPE(n, 2), &parts));
  DO(tt_tensor_from_data(x, tt_tensor_data(sums), TT_F64, SHAPE(n, 2), &sum_parts));
  check_sums(parts, sum_parts, n, 2);
  keep(b, sums);
}
static void test_complex_sums(void** state) {
  const tt_tensor* parts = filled(SHAPE(kLength, 2), TT_F64, wide);
  tt_tensor* t;
  (void)state;
  OK(tt_tensor_from_data(c, tt_tensor_data(parts), TT_C128, SHAPE(kLength), &t));
  same_everywhere(sum_complex, t);
}

/* A million times 0.1: every sum is within a few units in the last place. */
static double tenth(void) { return 0.1; }
static void test_accuracy(void** state) {
  const int64_t n = 1000000;
  int64_t i, inner;
  (void)state;
  for (inner = 1; inner <= 2; inner++) {
    tt_tensor *t = filled((const int64_t[]){n / inner, inner}, 2, TT_F64, tenth), *sums;
    const double* got;
    OK(tt_cumsum(c, t, 0, NULL, &sums));
    got = tt_tensor_data(sums);
    for (i = 0; i < n; i++) {
      const double want = (double)(i / inner + 1) * 0.1;
      assert_true(fabs(got[i] - want) <= 3e-16 * 8 * want);
    }
  }
}

/* An infinite sum stays, and becomes nan after the opposite infinity, on every path. */
static void test_infinite_sums(void** state) {
  const int64_t n = 100000, at = 40000;
  int64_t inner, i;
  (void)state;
  for (inner = 1; inner <= 2; inner++) {
    tt_tensor *t = filled((const int64_t[]){n, inner}, 2, TT_F64, few), *sums;
    double *v = tt_tensor_data(t), *got;
    for (i = 0; i < inner; i++) {
      v[at * inner + i] = INFINITY;
      v[2 * at * inner + i] = -INFINITY;
    }
    OK(tt_cumsum(c, t, 0, NULL, &sums));
    got = values_of(sums);
    for (i = 0; i < at; i++) assert_true(isfinite(got[i * inner]));
    for (; i < 2 * at; i++) assert_true(got[i * inner] == INFINITY);
    for (; i < n; i++) assert_true(isnan(got[i * inner]));
    free(got);
  }
}

/* ---- softmax ---- */

static double holes(void) { return draw() % 3 ? -INFINITY : few(); }

static int64_t softmax_dim;
/* Results y of x, and the gradient dx of x if the gradient of y is x; n elements, `step` apart. */
static void check_softmax_row(const double* x, const double* y, const double* dx, int64_t n,
                              int64_t step, int log_of, double eps) {
  Sum exponentials = {0, 0}, weighted = {0, 0};
  double top = -INFINITY, sizes = 0, sum, mean, log_sum;
  int64_t i;
  for (i = 0; i < n; i++) top = x[i * step] > top ? x[i * step] : top;
  for (i = 0; i < n; i++) {
    const double e = exp(x[i * step] - top);
    const double weight = log_of ? 1 : e;
    add_to(&exponentials, e);
    add_product(&weighted, x[i * step], weight);
    sizes += fabs(x[i * step]) * weight;
  }
  sum = total(exponentials);
  log_sum = log(sum);
  mean = log_of ? total(weighted) : total(weighted) / sum;
  sizes = log_of ? sizes : sizes / sum;
  for (i = 0; i < n; i++) {
    const double g = x[i * step];
    const double logarithm = g - top - log_sum;
    const double soft = exp(g - top) / sum;
    const double want = log_of ? logarithm : soft;
    const double size = fabs(log_of ? logarithm : soft);
    check_near(y[i * step], want,
               eps * 12 * (log_of ? size + fabs(top) + 1 : size * (1 + fabs(g - top))) + 1e-37);
    if (!dx) continue;
    check_near(dx[i * step], log_of ? g - soft * mean : soft * (g - mean),
               eps * (4 * fabs(g) + soft * (12 + fabs(logarithm)) * sizes) + 1e-37);
  }
}
static void soften(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const int64_t* shape = tt_tensor_shape(t);
  const int64_t ndim = tt_tensor_ndim(t);
  const int64_t n = shape[softmax_dim];
  const int64_t all = tt_tensor_numel(t);
  const double eps = epsilon(tt_tensor_dtype(t));
  double* v = values_of(t);
  int64_t inner = 1, i, d;
  int log_of, finite = 1;
  for (d = softmax_dim + 1; d < ndim; d++) inner *= shape[d];
  for (i = 0; i < all; i++) finite &= isfinite(v[i]) != 0;
  for (log_of = 0; log_of < 2; log_of++) {
    const tt_backward_opts gradient = {.set = TT_BACKWARD_GRADIENT, .gradient = t};
    tt_tensor *leaf_of, *y, *dx = NULL;
    double *got, *got_dx = NULL;
    DO(tt_clone(x, t, NULL, &leaf_of));
    DO(tt_requires_grad_(x, leaf_of, 1));
    DO(log_of ? tt_log_softmax(x, leaf_of, softmax_dim, NULL, &y)
              : tt_softmax(x, leaf_of, softmax_dim, NULL, &y));
    got = values_of(y);
    keep(b, y);
    if (finite) {
      DO(tt_backward(x, y, &gradient));
      DO(tt_tensor_grad(x, leaf_of, &dx));
      got_dx = values_of(dx);
      keep(b, dx);
    }
    for (i = 0; i < all / n && alone(x); i++) {
      const int64_t at = i / inner * n * inner + i % inner;
      check_softmax_row(v + at, got + at, got_dx ? got_dx + at : NULL, n, inner, log_of, eps);
    }
    free(got);
    free(got_dx);
  }
  free(v);
}
static void test_softmax(void** state) {
  static const tt_dtype kDtypes[] = {TT_F32, TT_F64, TT_BF16};
  size_t d;
  (void)state;
  for (d = 0; d < 3; d++) {
    softmax_dim = 0;
    same_everywhere(soften, filled(SHAPE(70001, 2), kDtypes[d], few));
    same_everywhere(soften, filled(SHAPE(100003), kDtypes[d], wide));
    same_everywhere(soften, filled(SHAPE(100003), kDtypes[d], holes));
    softmax_dim = 1;
    same_everywhere(soften, filled(SHAPE(2, 80001), kDtypes[d], few));
    same_everywhere(soften, filled(SHAPE(300, 300), kDtypes[d], few));
  }
}

/* ---- sums of products ---- */

static double dots[25], sizes[25]; /* of the rows; the sums of their terms' magnitudes */
/* Dot products of the five rows of t with each other, by every operator with long sums. */
static void multiply(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const tt_addmm_opts twice_and_thrice = {.set = TT_ADDMM_BETA | TT_ADDMM_ALPHA,
                                          .beta = {.kind = TT_SCALAR_FLOAT, .re = 2},
                                          .alpha = {.kind = TT_SCALAR_FLOAT, .re = 3}};
  const double eps = epsilon(tt_tensor_dtype(t));
  tt_tensor *first, *second, *two, *turned, *columns, *out[5];
  int64_t i, o;
  DO(tt_select(x, t, 0, 0, &first));
  DO(tt_select(x, t, 0, 1, &second));
  DO(tt_narrow(x, t, 0, 0, 2, &two));
  DO(tt_transpose(x, t, 0, 1, &turned));
  DO(tt_contiguous(x, turned, &columns));
  DO(tt_dot(x, first, second, &out[0]));
  DO(tt_mv(x, t, first, &out[1]));
  DO(tt_mm(x, t, turned, &out[2]));
  DO(tt_mm(x, two, columns, &out[3]));
  DO(tt_addmm(x, out[2], t, turned, &twice_and_thrice, &out[4]));
  for (o = 0; o < 5; o++) {
    double* got = values_of(out[o]);
    for (i = 0; i < tt_tensor_numel(out[o]) && alone(x); i++) {
      const int64_t row = o == 1 ? i * 5 : i;
      const int64_t at = o == 0 ? 1 : row;
      const double factor = o == 4 ? 5 : 1;
      check_near(got[i], factor * dots[at], factor * eps * 8 * sizes[at]);
    }
    keep(b, out[o]);
    free(got);
  }
}
static void same_products(const int64_t* shape, int64_t ndim, tt_dtype d, double (*value)(void)) {
  const tt_tensor* t = filled(shape, ndim, d, value);
  const int64_t k = shape[1];
  double* v = values_of(t);
  int64_t i, j, p;
  for (i = 0; i < 5; i++)
    for (j = 0; j < 5; j++) {
      Sum dot = {0, 0};
      double size = 0;
      for (p = 0; p < k; p++) {
        add_product(&dot, v[i * k + p], v[j * k + p]);
        size += fabs(v[i * k + p] * v[j * k + p]);
      }
      dots[i * 5 + j] = total(dot);
      sizes[i * 5 + j] = size;
    }
  free(v);
  same_everywhere(multiply, t);
}
static void test_products(void** state) {
  (void)state;
  same_products(SHAPE(5, 300007), TT_F32, few);
  same_products(SHAPE(5, 300007), TT_F32, wide);
  same_products(SHAPE(5, 65536), TT_F64, few);
  same_products(SHAPE(5, 131073), TT_F64, wide);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_sort),
      SCOPED(test_sort_of_other_dtypes),
      SCOPED(test_sort_of_columns),
      SCOPED(test_unique),
      SCOPED(test_sort_without_memory),
      SCOPED(test_sums),
      SCOPED(test_complex_sums),
      SCOPED(test_accuracy),
      SCOPED(test_infinite_sums),
      SCOPED(test_softmax),
      SCOPED(test_products),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
