/* Sums of products of float32 that are or become subnormal, by each instruction set: matrices,
   convolutions and their gradients. NEON of 32-bit ARM has the bits of its baseline for all other
   numbers, too. */
#include "harness.h"

#include <math.h>

#define ROOM 32768

typedef struct Numbers {
  int64_t n;
  float value[ROOM];
} Numbers;
typedef float (*Draw)(void);

static uint32_t state;
static uint32_t next(void) { return (state = state * 1664525u + 1013904223u) >> 8; }

/* Multiples of 2^-140, and whole numbers: sums of products of up to 10^5 pairs are exact. */
static float tiny(void) { return (float)ldexp((int)(next() % 15) - 7, -140); }
static float small(void) { return (float)((int)(next() % 7) - 3); }
/* Multiples of 2^-74: products are multiples of 2^-148. */
static float half_of_tiny(void) { return (float)ldexp((int)(next() % 15) - 7, -74); }
/* Of 40 exponents from the least one on, few zeros, subnormal numbers, infinities and NaN. */
static uint32_t least_exponent;
static float any_number(void) {
  const uint32_t kind = next() % 4096;
  uint32_t bits = next() << 8 ^ next();
  float x;
  if (kind == 0) bits = 0x7f800000u;
  if (kind == 1) bits = 0xffc12345u;
  if (kind > 1 && kind < 40) bits &= 0x80000000u;
  if (kind >= 40) bits = (bits & 0x807fffffu) | (least_exponent + next() % 40) << 23;
  if (kind == 40) bits &= 0x807fffffu;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static tt_tensor* filled(const int64_t* shape, int64_t ndim, Draw draw) {
  float* data;
  tt_tensor* t;
  int64_t i, n = 1;
  for (i = 0; i < ndim; i++) n *= shape[i];
  data = malloc((size_t)n * sizeof *data);
  for (i = 0; i < n; i++) data[i] = draw();
  OK(tt_tensor_from_data(c, data, TT_F32, shape, ndim, &t));
  free(data);
  return t;
}
static void append(Numbers* to, const tt_tensor* t) {
  const int64_t n = tt_tensor_numel(t);
  tt_tensor* dense;
  assert_true(to->n + n <= ROOM);
  OK(tt_contiguous(c, t, &dense));
  memcpy(to->value + to->n, tt_tensor_data(dense), (size_t)n * sizeof(float));
  to->n += n;
}

/* a (m, k) b (k, n), with an addend, and its transposed form. */
static void multiply(Numbers* to, int64_t m, int64_t n, int64_t k, Draw left, Draw right) {
  tt_tensor *a = filled(SHAPE(m, k), left), *b = filled(SHAPE(k, n), right), *y;
  tt_tensor* d = filled(SHAPE(m, n), left == any_number ? any_number : tiny);
  OK(tt_matmul(c, a, b, &y));
  append(to, y);
  OK(tt_addmm(c, d, a, b, NULL, &y));
  append(to, y);
  OK(tt_transpose(c, a, 0, 1, &a));
  OK(tt_contiguous(c, a, &a));
  OK(tt_transpose(c, a, 0, 1, &a));
  OK(tt_matmul(c, a, b, &y));
  append(to, y);
}
typedef struct Images {
  int64_t n, channels, rows, columns, outputs, groups;
} Images;
/* A convolution with windows of 3 x 3, and its gradients. */
static void convolve(Numbers* to, Images s, Draw left, Draw right) {
  const tt_conv2d_opts opts = {.set = TT_CONV2D_GROUPS, .groups = s.groups};
  tt_tensor* x = filled(SHAPE(s.n, s.channels, s.rows, s.columns), left);
  tt_tensor* w = filled(SHAPE(s.outputs, s.channels / s.groups, 3, 3), right);
  tt_tensor* bias = filled(SHAPE(s.outputs), left);
  tt_tensor* weights = filled(SHAPE(s.n, s.outputs, s.rows - 2, s.columns - 2), left);
  tt_tensor *y, *weighted, *grads[2];
  OK(tt_requires_grad_(c, x, 1));
  OK(tt_requires_grad_(c, w, 1));
  OK(tt_conv2d(c, x, w, bias, &opts, &y));
  append(to, y);
  OK(tt_mul(c, y, weights, &weighted));
  OK(tt_grad(c, LIST(sum_of(weighted)), LIST(x, w), NULL, grads));
  append(to, grads[0]);
  /* Products of two of them are zeros, of any sign. */
  if (left != tiny) append(to, grads[1]);
}
static void compute(Numbers* to, Draw left, Draw right) {
  state = 7;
  to->n = 0;
  multiply(to, 5, 9, 7, left, right);
  multiply(to, 13, 21, 200, left, right); /* two chains */
  multiply(to, 33, 14, 300, left, right); /* packed */
  convolve(to, (Images){2, 3, 7, 6, 5, 1}, left, right);
  convolve(to, (Images){2, 20, 7, 6, 18, 1}, left, right);
  convolve(to, (Images){20, 3, 6, 5, 7, 1}, left, right);   /* images side by side */
  convolve(to, (Images){2, 5, 7, 21, 5, 5}, left, right);   /* depthwise, by planes */
  convolve(to, (Images){2, 20, 7, 6, 20, 20}, left, right); /* and with channels last */
}

static void open_isa(int32_t isa) {
  const tt_allocator a = host_allocator(&host);
  const tt_runtime_opts opts = {.struct_size = sizeof opts, .allocator = &a, .isa = isa};
  tt_runtime* rt;
  assert_int_equal(tt_runtime_new(&opts, &rt), 0);
  assert_int_equal(tt_ctx_new(rt, &c), 0);
  tt_runtime_release(rt);
  OK(tt_scope_push(c));
}
/* The bits are equal for all instruction sets that this processor has. */
static void same_bits(Draw left, Draw right) {
  Numbers* want = malloc(sizeof *want);
  Numbers* got = malloc(sizeof *got);
  int32_t isa, best;
  open_isa(0);
  OK(tt_ctx_isa(c, &best));
  assert_int_equal(close_ctx(NULL), 0);
  for (isa = 1; isa <= best; isa++) {
    Numbers* to = isa == 1 ? want : got;
    int64_t i;
    open_isa(isa);
    compute(to, left, right);
    assert_int_equal(close_ctx(NULL), 0);
    assert_int_equal(to->n, want->n);
    for (i = 0; i < to->n; i++)
      if (memcmp(to->value + i, want->value + i, sizeof(float)))
        fail_msg("instruction set %d: number %d is %a, must be %a", (int)isa, (int)i, to->value[i],
                 want->value[i]);
  }
  free(want);
  free(got);
}

static void subnormal_factors(void** unused) {
  (void)unused;
  same_bits(tiny, small);
  same_bits(small, tiny);
}
static void subnormal_products(void** unused) {
  (void)unused;
  same_bits(half_of_tiny, half_of_tiny);
}
/* Products of normal numbers whose sum is subnormal. */
static void subnormal_sums(void** unused) {
  const float x[] = {1.5f, -1.25f}, y[] = {0x1p-126f, 0x1p-126f};
  tt_tensor *a, *b, *out;
  int32_t isa, best = 1;
  (void)unused;
  for (isa = 1; isa <= best; isa++) {
    open_isa(isa);
    OK(tt_tensor_from_data(c, x, TT_F32, SHAPE(1, 2), &a));
    OK(tt_tensor_from_data(c, y, TT_F32, SHAPE(2, 1), &b));
    OK(tt_expand(c, a, SHAPE(24, 2), &a));
    OK(tt_expand(c, b, SHAPE(2, 17), &b));
    OK(tt_matmul(c, a, b, &out));
    OK(tt_sub(c, out, number(TT_F32, 0x1p-128), &out));
    assert_true(value_of(sum_of(out)) == 0);
    assert_int_equal(close_ctx(NULL), 0);
    open_isa(0);
    OK(tt_ctx_isa(c, &best));
    assert_int_equal(close_ctx(NULL), 0);
  }
}
/* Where products are fused, or added in other orders, bits differ. */
static void neon_has_the_bits_of_its_baseline(void** unused) {
  const uint32_t kLeast[] = {47, 63, 108}; /* many, few, and no products are subnormal */
  int i;
  (void)unused;
  if (!strstr(tt_build_info(), "baseline neon")) skip();
  for (i = 0; i < 3; i++) {
    least_exponent = kLeast[i];
    same_bits(any_number, any_number);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(subnormal_factors),
      cmocka_unit_test(subnormal_products),
      cmocka_unit_test(subnormal_sums),
      cmocka_unit_test(neon_has_the_bits_of_its_baseline),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
