/* cumprod of long complex rows and columns on several threads: results are those of
   multiplication one by one, also where products overflow or underflow, and bit-equal for every
   number of threads. */
#include "everywhere.h"
#include "share.h"

typedef struct Z {
  double re, im;
} Z;
static Z polar(double size) {
  const double angle = (double)(draw() % 100000);
  return (Z){size * cos(angle), size * sin(angle)};
}
static Z near_one(void) { return polar(1 + ((double)(draw() % 2001) - 1000) / 1000000); }
static Z axis(void) { /* products are exact */
  static const Z k[] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {2, 0}, {0.5, 0}};
  static int up;
  const uint32_t i = draw() % 5;
  return i == 4 ? k[4 + (up = !up)] : k[i];
}
static Z scattered(void) { /* with some factors near 0 */
  return (Z){((double)(draw() % 20001) - 10000) / 7000, ((double)(draw() % 20001) - 10000) / 7000};
}
static Z falling(void) { return polar(0.99); }
static Z growing(void) { return polar(1.007); }
static int64_t calls;    /* of dipping() or deep() */
static Z dipping(void) { /* falls to 2^-768 in a chunk, to 2^-1408 in the next, and back */
  const int64_t i = calls++ % 98304;
  double step = 0x1p3;
  if (i < 32768) step = 0x1p-3;
  else if (i < 49152) step = 0x1p-5;
  else if (i < 65536) step = 0x1p5;
  return polar(i % 128 ? 1 : step);
}
static Z deep(void) { /* three quarters of a block have a denormal product */
  const int64_t i = calls++ % 1024;
  int power = i < 420;
  double size;
  if (i < 128) power = 4;
  else if (i < 256 && i % 4 == 3) power = 4;
  else if (i < 256) power = i % 16 ? -11 : -12;
  else if (i < 384) power = 3;
  size = ldexp(1 + (double)(draw() % 1000) / 1e8, power);
  return draw() % 2 ? (Z){size, 0} : (Z){0, -size};
}
static Z swinging(
    void) { /* products of a few factors are out of range, those from the first factor on are not */
  static int up;
  up = !up;
  return polar(up ? 1e200 : 1e-200);
}
static Z stretched(void) { /* for float32, too */
  static int up;
  return polar(ldexp(1, (up = !up) ? 60 : -60));
}
static Z special_part(void) { return (Z){special(), draw() % 2 ? special() : 1}; }
static Z (*const kValues[])(void) = {near_one, axis, scattered, falling,   growing,
                                     dipping,  deep, swinging,  stretched, special_part};
enum { kKinds = sizeof kValues / sizeof *kValues };

static tt_tensor* filled_complex(const int64_t* shape, int64_t ndim, tt_dtype d, Z (*value)(void)) {
  const tt_to_opts o = {.set = TT_TO_DTYPE, .dtype = d};
  int64_t n = 1, i;
  tt_tensor *t, *out;
  Z* v;
  for (i = 0; i < ndim; i++) n *= shape[i];
  v = malloc((size_t)n * sizeof *v);
  calls = 0;
  for (i = 0; i < n; i++) v[i] = value();
  OK(tt_tensor_from_data(c, v, TT_C128, shape, ndim, &t));
  OK(tt_to(c, t, &o, &out));
  free(v);
  return out;
}
static Z at(const tt_tensor* t, int64_t i) {
  const float* f = tt_tensor_data(t);
  const double* d = tt_tensor_data(t);
  return tt_tensor_dtype(t) == TT_C64 ? (Z){f[2 * i], f[2 * i + 1]} : (Z){d[2 * i], d[2 * i + 1]};
}

/* A part that has become 0, infinite or nan stays so, and has the sign of the product factor by
   factor. */
static void check_part(double got, double want, double bound, int zero, double huge) {
  if (isnan(want)) assert_true(isnan(got));
  else if (fabs(want) > huge) assert_true(fabs(got) > huge / 2 && (got > 0) == (want > 0));
  else if (zero) assert_true(got == 0 && signbit(got) == signbit(want));
  else assert_true(fabs(got - want) <= bound);
}
/* The reference multiplies the stored elements one by one, in double, which shows overflow and
   0, and in long double. Each product in double has a relative error of at most sqrt(5) 2^-53.
   `falls`: numbers come close to 0, where too few digits are left to compare. */
static void check_products(const tt_tensor* t, const tt_tensor* products, int64_t length,
                           int64_t inner, int falls) {
  const int single = tt_tensor_dtype(t) == TT_C64;
  const double tiny = single ? 1e-37 : 1e-290;
  const double huge = single ? 3e38 : 1e300;
  const double stored = single ? 0x1p-23 : 0x1p-52;
  const double bound = (double)length * 2.24 * 0x1p-53 + stored;
  const int64_t n = tt_tensor_numel(t);
  Z* product = calloc((size_t)inner, sizeof *product);
  long double(*exact)[2] = calloc((size_t)inner, sizeof *exact);
  int64_t i;
  for (i = 0; i < n; i++) {
    const Z v = at(t, i);
    const Z got = at(products, i);
    Z* p = &product[i % inner];
    long double* e = exact[i % inner];
    const Z before = i / inner % length ? *p : (Z){1, 0};
    const long double re = i / inner % length ? e[0] : 1;
    const long double im = i / inner % length ? e[1] : 0;
    *p = (Z){before.re * v.re - before.im * v.im, before.re * v.im + before.im * v.re};
    e[0] = re * v.re - im * v.im;
    e[1] = re * v.im + im * v.re;
    {
      const int zero = p->re == 0 && p->im == 0;
      const int whole = isfinite(p->re) && isfinite(p->im);
      const double size = (double)hypotl(e[0], e[1]);
      if (falls && whole && hypot(p->re, p->im) < tiny) {
        assert_true(hypot(got.re, got.im) < 2 * tiny);
        continue;
      }
      check_part(got.re, whole && !zero ? (double)e[0] : p->re, bound * size + tiny, zero, huge);
      check_part(got.im, whole && !zero ? (double)e[1] : p->im, bound * size + tiny, zero, huge);
    }
  }
  free(product);
  free(exact);
}
static int comes_close_to_0;
static void multiply_up(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const int64_t ndim = tt_tensor_ndim(t);
  const int64_t* shape = tt_tensor_shape(t);
  int64_t inner = 1, d;
  for (d = ndim - 1; d >= 0; inner *= shape[d--]) {
    tt_tensor* products;
    if (shape[d] < 400) continue;
    DO(tt_cumprod(x, t, d, NULL, &products));
    if (alone(x)) check_products(t, products, shape[d], inner, comes_close_to_0);
    keep(b, products);
  }
}
static void test_rows(void** state) {
  static const tt_dtype kDtypes[] = {TT_C64, TT_C128};
  int d, k;
  (void)state;
  for (d = 0; d < 2; d++)
    for (k = 0; k < kKinds; k++) {
      if (left_out()) continue;
      comes_close_to_0 = kValues[k] == falling || kValues[k] == scattered || kValues[k] == dipping;
      same_everywhere(multiply_up, filled_complex(SHAPE(140003), kDtypes[d], kValues[k]));
      same_everywhere(multiply_up, filled_complex(SHAPE(70001, 2), kDtypes[d], kValues[k]));
      if (k % 2) continue;
      same_everywhere(multiply_up, filled_complex(SHAPE(2, 40011, 3), kDtypes[d], kValues[k]));
      same_everywhere(multiply_up, filled_complex(SHAPE(9001, 15), kDtypes[d], kValues[k]));
    }
  comes_close_to_0 = 0;
  same_everywhere(multiply_up, filled_complex(SHAPE(1000000), TT_C64, near_one));
}
static void test_columns(void** state) {
  static const int64_t kColumns[] = {16, 17, 64, 255, 256, 300};
  static const tt_dtype kDtypes[] = {TT_C64, TT_C128};
  int d, k;
  (void)state;
  for (d = 0; d < 2; d++)
    for (k = 0; k < 6; k++) {
      const int64_t rows = 150000 / kColumns[k];
      if (left_out()) continue;
      same_everywhere(multiply_up, filled_complex(SHAPE(rows, kColumns[k]), kDtypes[d], near_one));
      same_everywhere(multiply_up,
                      filled_complex(SHAPE(rows, kColumns[k]), kDtypes[d], special_part));
    }
}

/* 0, infinity and nan in every chunk and around the edges of chunks; 0 before them. */
static void test_special_factors(void** state) {
  static const double kSpecial[] = {0, -0.0, INFINITY, -INFINITY, NAN, 5e-324, 1.7e308};
  static const int64_t kAt[] = {0, 5, 32767, 32768, 32769, 70000, 140002};
  size_t s, a, second;
  (void)state;
  for (s = 0; s < 7; s++)
    for (a = 0; a < 7; a++)
      for (second = 0; second < 3; second++) {
        tt_tensor *t, *products;
        double* v;
        if (left_out()) continue;
        t = filled_complex(SHAPE(140003), TT_C128, near_one);
        v = (double*)tt_tensor_data(t) + 2 * kAt[a];
        v[s % 2] = kSpecial[s];
        v[1 - s % 2] = second ? kSpecial[(s + a) % 7] : 1;
        if (second == 2 && kAt[a] < 100000) v[80000] = kSpecial[(s + 2) % 7];
        OK(tt_set_num_threads(c, 1 + (int)(a % 2) * 2));
        OK(tt_cumprod(c, t, 0, NULL, &products));
        check_products(t, products, 140003, 1, s == 5);
      }
  OK(tt_set_num_threads(c, 1));
}

/* Transposed, and with a step. */
static void multiply_views(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const tt_slice_opts odd = {.set = TT_SLICE_START | TT_SLICE_STEP, .start = 1, .step = 2};
  tt_tensor *turned, *part, *whole, *products, *want;
  DO(tt_transpose(x, t, 0, 1, &turned));
  DO(tt_slice(x, turned, 1, &odd, &part));
  DO(tt_contiguous(x, part, &whole));
  DO(tt_cumprod(x, part, 1, NULL, &products));
  DO(tt_cumprod(x, whole, 1, NULL, &want));
  assert_memory_equal(tt_tensor_data(products), tt_tensor_data(want),
                      (size_t)(tt_tensor_numel(want) * tt_dtype_size(tt_tensor_dtype(want))));
  if (alone(x)) check_products(whole, products, tt_tensor_shape(whole)[1], 1, 0);
  keep(b, products);
}
static void test_views(void** state) {
  (void)state;
  same_everywhere(multiply_views, filled_complex(SHAPE(150001, 3), TT_C64, near_one));
  same_everywhere(multiply_views, filled_complex(SHAPE(150001, 2), TT_C128, near_one));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_rows),
      SCOPED(test_columns),
      SCOPED(test_special_factors),
      SCOPED(test_views),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
