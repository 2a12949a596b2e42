/* Matrix products with few results and a long k on several threads: right, and bit-equal for
   every number of threads, in every dtype, in batches, and with more results than fit in a few
   registers. */
#include "everywhere.h"
#include "share.h"

/* For a (2, n, k) tensor: sums[b][i][j] is the dot product of row i of matrix 0 and row j of
   matrix b; sizes: the sum of the magnitudes. */
typedef struct Sums {
  long double *sums, *sizes; /* double would round more than the tolerance */
} Sums;
static Sums sums_of(const tt_tensor* t) {
  const int64_t n = tt_tensor_shape(t)[1];
  const int64_t k = tt_tensor_shape(t)[2];
  Sums s = {calloc((size_t)(2 * n * n), sizeof(long double)),
            calloc((size_t)(2 * n * n), sizeof(long double))};
  double* v = values_of(t);
  int64_t r, i, p;
  for (r = 0; r < 2 * n; r++)
    for (i = 0; i < n; i++) {
      const int64_t at = r / n * n * n + i * n + r % n;
      for (p = 0; p < k; p++) {
        s.sums[at] += (long double)v[i * k + p] * v[r * k + p];
        s.sizes[at] += fabs(v[i * k + p] * v[r * k + p]);
      }
    }
  free(v);
  return s;
}

/* Checks the first `rows` rows of the results, from matrix b on. */
static void check_products(const tt_tensor* got, Sums s, int64_t n, int64_t rows, int64_t b,
                           double factor) {
  double* v = values_of(got);
  const tt_dtype d = tt_tensor_dtype(got);
  const double narrow_last = d == TT_F16 ? 0x1p-10 : 0x1p-7;
  const int narrow = d == TT_F16 || d == TT_BF16;
  const double last =
      narrow ? narrow_last : 0; /* relative rounding of the result and of an addend */
  const double eps = d == TT_F64 || d == TT_C128 ? 0x1p-52 : 0x1p-23;
  int64_t i;
  for (i = 0; i < tt_tensor_numel(got); i++) {
    const int64_t at = b * n * n + i / (rows * n) * n * n + i % (rows * n);
    const double want = (double)(factor * s.sums[at]);
    const double size = fabs(factor) * (double)s.sizes[at];
    if (d == TT_I32 || d == TT_I64) assert_true(v[i] == want);
    else check_near(v[i], want, last * fabs(want) + eps * 8 * size);
  }
  free(v);
}

static Sums expected;
static void multiply(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const tt_dtype d = tt_tensor_dtype(t);
  const int complex = d == TT_C64 || d == TT_C128;
  const int32_t kind = d == TT_I32 || d == TT_I64 ? TT_SCALAR_INT : TT_SCALAR_FLOAT;
  const tt_scalar two = {.kind = kind, .i = 2, .re = 2};
  const tt_scalar three = {.kind = kind, .i = 3, .re = 3};
  const tt_scalar z = {.kind = TT_SCALAR_COMPLEX, .re = 1, .im = 2};
  const tt_addmm_opts sum = {.set = TT_ADDMM_BETA | TT_ADDMM_ALPHA, .beta = two, .alpha = three};
  const tt_baddbmm_opts sums = {
      .set = TT_BADDBMM_BETA | TT_BADDBMM_ALPHA, .beta = two, .alpha = three};
  const double factor = complex ? -3 : 1; /* the real part of (1 + 2i)^2 */
  const int64_t n = tt_tensor_shape(t)[1];
  tt_tensor *u, *first, *second, *down, *columns, *rows, *odd, *stack, *out;
  if (complex) DO(tt_mul_scalar(x, t, &z, &u));
  else DO(tt_detach(x, t, &u));
  DO(tt_select(x, u, 0, 0, &first));
  DO(tt_select(x, u, 0, 1, &second));
  DO(tt_transpose(x, second, 0, 1, &down)); /* contiguous columns */
  DO(tt_contiguous(x, down, &columns));
  DO(tt_mm(x, first, down, &out));
  check_products(out, expected, n, n, 1, factor);
  keep(b, out);
  DO(tt_addmm(x, out, first, columns, &sum, &out));
  check_products(out, expected, n, n, 1, 5 * factor);
  keep(b, out);
  DO(tt_narrow(x, first, 0, 0, 2, &rows));
  DO(tt_mm(x, rows, columns, &out));
  check_products(out, expected, n, 2, 1, factor);
  keep(b, out);
  DO(tt_unsqueeze(x, down, 2, &odd)); /* no unit stride */
  DO(tt_expand(x, odd, SHAPE(tt_tensor_shape(t)[2], n, 2), &odd));
  DO(tt_contiguous(x, odd, &odd));
  DO(tt_select(x, odd, 2, 1, &odd));
  DO(tt_mm(x, first, odd, &out));
  check_products(out, expected, n, n, 1, factor);
  keep(b, out);
  DO(tt_transpose(x, u, 1, 2, &stack));
  DO(tt_matmul(x, first, stack, &out)); /* one factor for both */
  check_products(out, expected, n, n, 0, factor);
  keep(b, out);
  DO(tt_expand(x, first, tt_tensor_shape(u), 3, &rows));
  DO(tt_baddbmm(x, out, rows, stack, &sums, &out));
  check_products(out, expected, n, n, 0, 5 * factor);
  keep(b, out);
}

static void same_products(int64_t n, int64_t k, tt_dtype d, double (*value)(void)) {
  tt_tensor* t;
  if (left_out()) return;
  t = filled(SHAPE(2, n, k), d, value);
  expected = sums_of(t);
  same_everywhere(multiply, t);
  free(expected.sums);
  free(expected.sizes);
}

static double sixteenth(void) { return few() / 16; } /* f16 holds the sums */

static const tt_dtype kDtypes[] = {TT_F32, TT_F64, TT_BF16, TT_F16,
                                   TT_I32, TT_I64, TT_C64,  TT_C128};

static void test_few_results(void** state) {
  size_t d;
  (void)state;
  for (d = 0; d < 8; d++)
    same_products(2, 150001, kDtypes[d], kDtypes[d] == TT_F16 ? sixteenth : few);
}
static void test_more_results(void** state) {
  size_t d;
  (void)state;
  for (d = 0; d < 8; d++)
    same_products(21, 20011, kDtypes[d], kDtypes[d] == TT_F16 ? sixteenth : few);
  same_products(17, 30000, TT_F32, wide);
  same_products(70, 8192, TT_F32, few);
  same_products(131, 300, TT_C64, few); /* whole blocks of tiles */
  same_products(131, 300, TT_C128, few);
}

/* Many products, each too small to be divided among threads. */
static void multiply_many(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const int64_t* shape = tt_tensor_shape(t);
  const int64_t count = shape[0];
  const int64_t n = shape[1];
  const int64_t k = shape[2];
  tt_tensor *turned, *out;
  int64_t q, i, j, p;
  double *v = values_of(t), *got;
  DO(tt_transpose(x, t, 1, 2, &turned));
  DO(tt_bmm(x, t, turned, &out));
  got = values_of(out);
  for (q = 0; q < count; q++)
    for (i = 0; i < n; i++)
      for (j = 0; j < n; j++) {
        double sum = 0;
        for (p = 0; p < k; p++) sum += v[(q * n + i) * k + p] * v[(q * n + j) * k + p];
        check_near(got[(q * n + i) * n + j], sum, fabs(sum) * epsilon(tt_tensor_dtype(t)));
      }
  keep(b, out);
  free(got);
  free(v);
}
static void test_many_products(void** state) {
  static const tt_dtype kKinds[] = {TT_BF16, TT_I32, TT_F32, TT_C64};
  size_t d;
  (void)state;
  for (d = 0; d < 4; d++) {
    same_everywhere(multiply_many, filled(SHAPE(150, 20, 24), kKinds[d], few));
    same_everywhere(multiply_many, filled(SHAPE(33, 17, 300), kKinds[d], few));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_few_results), SCOPED(test_more_results),
                                     SCOPED(test_many_products)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
