/* Convolutions: values computed by hand, forms, memory formats, bit-equal results for every
   number of threads, errors. Derivatives and other shapes are checked by op_table_test. */
#include "harness.h"

#include <math.h>

#define INTS(field, ...)                   \
  .field = (const int64_t[]){__VA_ARGS__}, \
  .n_##field = (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* A runtime of the instruction set TT_TEST_ISA. Devices are tested by op_table_test. */
static int open_variant(void** state) {
  static const char* const kIsas[] = {"", "baseline", "avx2", "avx512"};
  const char* isa = getenv("TT_TEST_ISA");
  const tt_allocator a = host_allocator(&host);
  tt_runtime_opts opts = {.struct_size = sizeof opts, .allocator = &a};
  tt_runtime* rt;
  int i;
  (void)state;
  for (i = 1; isa && i < 4; i++)
    if (strcmp(isa, kIsas[i]) == 0) opts.isa = i;
  if (tt_runtime_new(&opts, &rt) || tt_ctx_new(rt, &c) || tt_manual_seed(c, 0)) return -1;
  tt_runtime_release(rt);
  return tt_scope_push(c) ? -1 : 0;
}
#define VARIANT(f) cmocka_unit_test_setup_teardown(f, open_variant, close_ctx)

static tt_tensor* random_of(const int64_t* shape, int64_t n) {
  tt_tensor* t;
  OK(tt_randn(c, shape, n, NULL, &t));
  return t;
}
/* The same values, channels last. */
static tt_tensor* channels_last(const tt_tensor* t) {
  tt_tensor *pixels, *dense, *out;
  OK(tt_permute(c, t, SHAPE(0, 2, 3, 1), &pixels));
  OK(tt_contiguous(c, pixels, &dense));
  OK(tt_permute(c, dense, SHAPE(0, 3, 1, 2), &out));
  return out;
}
static void same_bits(const tt_tensor* a, const tt_tensor* b) {
  double* x = values_of(a);
  double* y = values_of(b);
  assert_int_equal(tt_tensor_numel(a), tt_tensor_numel(b));
  assert_memory_equal(x, y, (size_t)tt_tensor_numel(a) * sizeof(double));
  free(x);
  free(y);
}

static void values_of_each_form(void** state) {
  tt_tensor* x = make(TT_F32, SHAPE(1, 1, 5), DATA(1, 2, 3, 4, 5));
  tt_tensor* w = make(TT_F32, SHAPE(1, 1, 2), DATA(1, -10));
  tt_tensor* y;
  (void)state;
  OK(tt_conv1d(c, x, w, NULL, NULL, &y));
  VALUES(y, -19, -28, -37, -46);
  OK(tt_conv1d(c, x, w, numbers(TT_F32, DATA(100)),
               &(tt_conv1d_opts){
                   .set = TT_CONV1D_STRIDE | TT_CONV1D_PADDING, INTS(stride, 2), INTS(padding, 1)},
               &y));
  VALUES(y, 90, 72, 54);
  OK(tt_conv1d(c, x, w, NULL, &(tt_conv1d_opts){.set = TT_CONV1D_DILATION, INTS(dilation, 3)}, &y));
  VALUES(y, -39, -48);
  OK(tt_conv_transpose1d(
      c, x, w, NULL,
      &(tt_conv_transpose1d_opts){.set = TT_CONV_TRANSPOSE1D_STRIDE, INTS(stride, 2)}, &y));
  VALUES(y, 1, -10, 2, -20, 3, -30, 4, -40, 5, -50);
  OK(tt_conv_transpose1d(c, x, w, NULL,
                         &(tt_conv_transpose1d_opts){
                             .set = 7, INTS(stride, 2), INTS(padding, 1), INTS(output_padding, 1)},
                         &y));
  VALUES(y, -10, 2, -20, 3, -30, 4, -40, 5, -50);
  OK(tt_conv1d_padding(c, x, w, "same", NULL, NULL, &y));
  VALUES(y, -19, -28, -37, -46, 5);
  OK(tt_conv1d_padding(c, x, w, "valid", NULL, NULL, &y));
  HAS_SHAPE(y, 1, 1, 4);
  OK(tt_view(c, x, SHAPE(1, 5), &x));
  OK(tt_conv1d(c, x, w, NULL, NULL, &y));
  HAS_SHAPE(y, 1, 4);
}

static void integers_wrap_and_halves_round_once(void** state) {
  tt_tensor* y;
  (void)state;
  OK(tt_conv1d(c, make(TT_I64, SHAPE(1, 1, 2), DATA(3, 4)),
               make(TT_I64, SHAPE(1, 1, 2), DATA(0x1p53, 1)), NULL, NULL, &y));
  VALUES(y, 0x1.8p54 + 4);
  OK(tt_conv1d(c, make(TT_U8, SHAPE(1, 1, 2), DATA(200, 100)),
               make(TT_U8, SHAPE(1, 1, 2), DATA(2, 1)), NULL, NULL, &y));
  VALUES(y, 244);
  OK(tt_conv1d(c, make(TT_BF16, SHAPE(1, 1, 3), DATA(256, 1, 1)),
               make(TT_BF16, SHAPE(1, 1, 3), DATA(1, 1, 1)), NULL, NULL, &y));
  assert_int_equal(tt_tensor_dtype(y), TT_BF16);
  VALUES(y, 258);
}

static void derivatives_of_one_pixel_windows(void** state) {
  const tt_dtype kTypes[] = {TT_F32, TT_BF16};
  int k;
  (void)state;
  for (k = 0; k < 4; k++) {
    const tt_to_opts to = {.set = TT_TO_DTYPE, .dtype = kTypes[k % 2]};
    tt_tensor *x, *w, *y;
    OK(tt_ones(c, SHAPE(2, 3, 8, 8), &(tt_ones_opts){.set = 0}, &x));
    OK(tt_to(c, k < 2 ? x : channels_last(x), &to, &x));
    OK(tt_to(c, make(TT_F32, SHAPE(2, 3, 1, 1), DATA(1, 2, 3, 4, 5, 6)), &to, &w));
    OK(tt_requires_grad_(c, x, 1));
    OK(tt_requires_grad_(c, w, 1));
    OK(tt_conv2d(c, x, w, numbers(kTypes[k % 2], DATA(10, 20)), NULL, &y));
    OK(tt_backward(c, sum_of(y), NULL));
    VALUES(grad_of(w), 128, 128, 128, 128, 128, 128);
    OK(tt_sum_dim(c, grad_of(x), SHAPE(0, 2, 3), NULL, &x));
    VALUES(x, 640, 896, 1152);
    OK(tt_sum_dim(c, y, SHAPE(0, 2, 3), NULL, &y));
    VALUES(y, 2048, 4480);
  }
}

static void result_is_channels_last_iff_an_operand_is(void** state) {
  tt_tensor* x = random_of(SHAPE(2, 3, 6, 5));
  tt_tensor* w = random_of(SHAPE(4, 3, 3, 3));
  tt_tensor* y[4];
  int k, d;
  (void)state;
  for (k = 0; k < 4; k++) {
    const int64_t last[] = {48, 1, 12, 4};
    const int64_t rows[] = {48, 12, 3, 1};
    OK(tt_conv2d(c, k & 1 ? channels_last(x) : x, k & 2 ? channels_last(w) : w, NULL, NULL, &y[k]));
    HAS_SHAPE(y[k], 2, 4, 4, 3);
    for (d = 0; d < 4; d++) assert_int_equal(tt_tensor_strides(y[k])[d], (k ? last : rows)[d]);
    same_bits(y[k], y[0]);
  }
}

/* Weights are packed in another way if the taps of a channel are neighbours. */
static void weights_of_any_order_give_the_same(void** state) {
  static const int64_t kWeights[][4] = {
      {200, 160, 3, 3}, {35, 20, 3, 2}, {70, 33, 1, 3}, {33, 150, 5, 5}, {4, 1, 3, 3}};
  size_t i;
  (void)state;
  for (i = 0; i < sizeof kWeights / sizeof *kWeights; i++) {
    tt_tensor* x = random_of(SHAPE(2, kWeights[i][1], 9, 8));
    tt_tensor* w = random_of(kWeights[i], 4);
    tt_tensor *y, *z;
    OK(tt_conv2d(c, channels_last(x), w, NULL, NULL, &y));
    OK(tt_conv2d(c, channels_last(x), channels_last(w), NULL, NULL, &z));
    same_bits(y, z);
  }
}

/* A convolution and the gradients of the sum of its squares. */
static void derive_conv(const tt_tensor* x, const tt_tensor* w, const tt_conv2d_opts* o,
                        tt_tensor** y, tt_tensor** grads) {
  const tt_tensor *inputs[2], *outputs[1];
  tt_tensor *a, *b;
  OK(tt_detach(c, x, &a));
  OK(tt_detach(c, w, &b));
  OK(tt_requires_grad_(c, a, 1));
  OK(tt_requires_grad_(c, b, 1));
  OK(tt_conv2d(c, a, b, NULL, o, y));
  inputs[0] = a;
  inputs[1] = b;
  OK(tt_mul(c, *y, *y, &a));
  outputs[0] = sum_of(a);
  OK(tt_grad(c, outputs, 1, inputs, 2, NULL, grads));
}
/* Forward and gradients of a convolution, by one thread and by three. */
static void threads_agree(const tt_tensor* x, const tt_tensor* w, int64_t stride, int64_t groups) {
  const tt_conv2d_opts o = {.set = TT_CONV2D_STRIDE | TT_CONV2D_PADDING | TT_CONV2D_GROUPS,
                            INTS(stride, stride),
                            INTS(padding, 1),
                            .groups = groups};
  tt_tensor *y[2], *g[2][2];
  int k;
  for (k = 0; k < 2; k++) {
    OK(tt_set_num_threads(c, k ? 3 : 1));
    derive_conv(x, w, &o, &y[k], g[k]);
  }
  OK(tt_set_num_threads(c, 1));
  same_bits(y[0], y[1]);
  same_bits(g[0][0], g[1][0]);
  same_bits(g[0][1], g[1][1]);
}
static void bits_do_not_depend_on_threads(void** state) {
  (void)state;
  threads_agree(random_of(SHAPE(9, 3, 40, 41)), random_of(SHAPE(20, 3, 3, 3)), 1,
                1); /* few channels: padded rows, scattered gradient */
  threads_agree(random_of(SHAPE(45, 3, 19, 21)), random_of(SHAPE(14, 3, 3, 3)), 1,
                1); /* and many images: batch-interleaved */
  threads_agree(random_of(SHAPE(4, 40, 30, 31)), random_of(SHAPE(50, 40, 3, 3)), 2, 1); /* phases */
  threads_agree(random_of(SHAPE(2, 160, 9, 9)), random_of(SHAPE(200, 160, 3, 3)), 1,
                1); /* large weights */
  threads_agree(random_of(SHAPE(4, 64, 30, 30)), random_of(SHAPE(64, 1, 3, 3)), 1,
                64); /* one channel per group */
}

/* Integers of one digit, whose sums are exact in any order. */
static tt_tensor* digits_of(const int64_t* shape, int64_t n) {
  tt_tensor *twice, *out;
  OK(tt_mul_f64(c, random_of(shape, n), 2, &twice));
  OK(tt_round(c, twice, NULL, &out));
  return out;
}
/* Planes and channels last are computed in different ways. */
static void groups_of_one_channel(void** state) {
  static const int64_t kWindows[][2] = {{3, 3}, {5, 5}, {1, 4}, {8, 7}};
  int64_t i;
  (void)state;
  for (i = 0; i < 16; i++) {
    const int64_t* k = kWindows[i % 4];
    const int64_t stride = 1 + i / 4 % 2;
    const int64_t dilation = 1 + i / 8;
    const int64_t width = i % 3 ? 37 : 7;
    const int64_t groups = i % 5 < 3 ? 5 : 21;
    const tt_conv2d_opts o = {.set = 15,
                              INTS(stride, stride, i % 5 ? stride : 3),
                              INTS(padding, k[0] / 2, 1),
                              INTS(dilation, dilation, 1),
                              .groups = groups};
    tt_tensor* x = digits_of(SHAPE(2, groups, 19, width));
    tt_tensor* w = digits_of(SHAPE(groups, 1, k[0], k[1]));
    tt_tensor *y, *z, *g[2], *h[2];
    derive_conv(x, w, &o, &y, g);
    derive_conv(channels_last(x), w, &o, &z, h);
    same_bits(y, z);
    same_bits(g[0], h[0]);
    same_bits(g[1], h[1]);
  }
  for (i = 1; i <= 41; i += 20) { /* rooms of several blocks of rows; the last one is too large */
    tt_tensor* x = digits_of(SHAPE(1, 2, 90, 130));
    tt_tensor* w = digits_of(SHAPE(2, 1, 3, 3));
    tt_tensor *y, *z, *g[2], *h[2];
    const tt_conv2d_opts o = {
        .set = TT_CONV2D_DILATION | TT_CONV2D_GROUPS, INTS(dilation, i), .groups = 2};
    derive_conv(x, w, &o, &y, g);
    derive_conv(channels_last(x), w, &o, &z, h);
    same_bits(y, z);
    same_bits(g[0], h[0]);
  }
}

static void near_to(const tt_tensor* a, const tt_tensor* b) {
  double* x = values_of(a);
  double* y = values_of(b);
  double largest = 0;
  int64_t i;
  assert_int_equal(tt_tensor_numel(a), tt_tensor_numel(b));
  for (i = 0; i < tt_tensor_numel(b); i++) largest = fabs(y[i]) > largest ? fabs(y[i]) : largest;
  for (i = 0; i < tt_tensor_numel(b); i++) assert_true(fabs(x[i] - y[i]) <= 2e-5 * largest);
  free(x);
  free(y);
}
/* Few channels of many images, batch-interleaved in f32 only: against f64. */
static void images_side_by_side(void** state) {
  static const int64_t kCases[][12] = {
      /* n, ci, co, rows, columns, window, strides, padding, dilation of rows */
      {64, 3, 6, 12, 12, 5, 5, 1, 1, 0, 0, 1}, {16, 6, 16, 14, 14, 5, 5, 1, 1, 0, 0, 1},
      {13, 1, 1, 5, 4, 3, 2, 1, 1, 1, 1, 1},   {32, 5, 13, 9, 17, 3, 3, 2, 1, 1, 2, 1},
      {30, 16, 24, 7, 3, 2, 3, 1, 2, 2, 0, 2}, {16, 2, 7, 1, 40, 1, 5, 1, 3, 0, 4, 1},
      {16, 4, 3, 6, 6, 1, 3, 1, 1, 3, 3, 1},   {16, 1, 2, 3, 3, 3, 3, 1, 1, 9, 9, 1},
  };
  const tt_to_opts to = {.set = TT_TO_DTYPE, .dtype = TT_F64};
  size_t i;
  int k;
  (void)state;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    const int64_t* v = kCases[i];
    const tt_conv2d_opts o = {.set = TT_CONV2D_STRIDE | TT_CONV2D_PADDING | TT_CONV2D_DILATION,
                              INTS(stride, v[7], v[8]),
                              INTS(padding, v[9], v[10]),
                              INTS(dilation, v[11], 1)};
    tt_tensor *x[2], *w[2], *y[2], *g[2][2];
    x[0] = random_of(SHAPE(v[0], v[1], v[3], v[4]));
    w[0] = random_of(SHAPE(v[2], v[1], v[5], v[6]));
    OK(tt_to(c, x[0], &to, &x[1]));
    OK(tt_to(c, w[0], &to, &w[1]));
    for (k = 0; k < 2; k++) derive_conv(x[k], w[k], &o, &y[k], g[k]);
    near_to(y[0], y[1]);
    near_to(g[0][0], g[1][0]);
    near_to(g[0][1], g[1][1]);
  }
}

/* Large weights that few pixels read, packed by columns: taps that lie side by side in memory, and
   those that do not; more taps than a piece has; steps, which the gradient of x sees tap by tap. */
static void layouts_of_large_weights(void** state) {
  static const int64_t kCases[][5] = {/* ci, co, window, stride, padding */
                                      {170, 173, 3, 1, 1},
                                      {173, 170, 3, 2, 1},
                                      {130, 130, 9, 1, 4}};
  size_t i;
  (void)state;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    const int64_t* v = kCases[i];
    const tt_conv2d_opts o = {
        .set = TT_CONV2D_STRIDE | TT_CONV2D_PADDING, INTS(stride, v[3]), INTS(padding, v[4])};
    tt_tensor* x = channels_last(random_of(SHAPE(1, v[0], 7, 6)));
    tt_tensor* w = random_of(SHAPE(v[1], v[0], v[2], v[2]));
    tt_tensor *y, *z, *g[2], *h[2];
    derive_conv(x, w, &o, &y, g);
    derive_conv(x, channels_last(w), &o, &z, h);
    same_bits(y, z);
    same_bits(g[0], h[0]);
  }
}

/* With few channels of y, vectors hold pixels if channels come first, and channels if they come
   last; sums have one order. */
static void vectors_of_pixels(void** state) {
  static const struct {
    int64_t n, ci, co, rows, cols, k1, k2, stride, dilation;
  } cases[] = {
      {1, 3, 6, 32, 32, 5, 5, 1, 1}, {2, 1, 8, 9, 20, 3, 5, 1, 1},  {3, 2, 7, 24, 21, 3, 2, 2, 3},
      {1, 4, 1, 3, 35, 1, 3, 1, 1},  {1, 12, 3, 6, 18, 2, 3, 1, 1},
  };
  size_t i;
  (void)state;
  for (i = 0; i < sizeof cases / sizeof *cases; i++) {
    const int64_t stride[] = {cases[i].stride, 1}, dilation[] = {cases[i].dilation, 1};
    const tt_conv2d_opts o = {.set = TT_CONV2D_STRIDE | TT_CONV2D_DILATION,
                              .stride = stride,
                              .n_stride = 2,
                              .dilation = dilation,
                              .n_dilation = 2};
    tt_tensor* x = random_of(SHAPE(cases[i].n, cases[i].ci, cases[i].rows, cases[i].cols));
    tt_tensor* w = random_of(SHAPE(cases[i].co, cases[i].ci, cases[i].k1, cases[i].k2));
    tt_tensor *bias = random_of(SHAPE(cases[i].co)), *y, *z;
    OK(tt_conv2d(c, x, w, bias, &o, &y));
    OK(tt_conv2d(c, channels_last(x), w, bias, &o, &z));
    same_bits(y, z);
  }
}

/* The same for groups of few channels, and for gradients: the weight's sums have two orders. */
static void groups_of_few_channels(void** state) {
  static const struct {
    int64_t n, groups, ci, co, rows, cols, window, stride, padding;
  } cases[] = {
      {2, 3, 8, 8, 70, 30, 3, 1, 1}, {1, 2, 5, 6, 40, 17, 3, 2, 1},  {1, 2, 3, 2, 8, 33, 2, 2, 0},
      {2, 4, 1, 3, 12, 19, 3, 1, 1}, {1, 2, 16, 16, 7, 23, 3, 1, 2}, {1, 3, 4, 7, 13, 21, 1, 1, 0},
  };
  size_t i;
  (void)state;
  for (i = 0; i < sizeof cases / sizeof *cases; i++) {
    const int64_t groups = cases[i].groups;
    const int64_t window = cases[i].window;
    const tt_conv2d_opts o = {
        .set = TT_CONV2D_STRIDE | TT_CONV2D_PADDING | TT_CONV2D_GROUPS,
        INTS(stride, cases[i].stride),
        INTS(padding, cases[i].padding),
        .groups = groups,
    };
    tt_tensor* x = random_of(SHAPE(cases[i].n, groups * cases[i].ci, cases[i].rows, cases[i].cols));
    tt_tensor* w = random_of(SHAPE(groups * cases[i].co, cases[i].ci, window, window));
    tt_tensor *y, *z, *g[2], *h[2];
    derive_conv(x, w, &o, &y, g);
    derive_conv(channels_last(x), w, &o, &z, h);
    same_bits(y, z);
    same_bits(g[0], h[0]);
    near_to(g[1], h[1]);
  }
}

/* Windows of one pixel, read in place in channels last; weights above 256 kB, in blocks: against
   f64 in rows. */
static void one_pixel_channels_last(void** state) {
  static const int64_t kChannels[][2] = {{48, 64}, {64, 48}, {256, 260}, {260, 256}};
  const tt_to_opts last = {.set = TT_TO_MEMORY_FORMAT, .memory_format = TT_CHANNELS_LAST};
  const tt_to_opts wide = {.set = TT_TO_DTYPE, .dtype = TT_F64};
  size_t i;
  int k;
  (void)state;
  for (i = 0; i < sizeof kChannels / sizeof *kChannels; i++) {
    tt_tensor *rows = random_of(SHAPE(2, kChannels[i][0], 9, 10)), *x[2], *w[2], *y[2], *g[2][2];
    OK(tt_to(c, rows, &last, &x[0]));
    OK(tt_to(c, rows, &wide, &x[1]));
    w[0] = random_of(SHAPE(kChannels[i][1], kChannels[i][0], 1, 1));
    OK(tt_to(c, w[0], &wide, &w[1]));
    for (k = 0; k < 2; k++) derive_conv(x[k], w[k], NULL, &y[k], g[k]);
    near_to(y[0], y[1]);
    near_to(g[0][0], g[1][0]);
    near_to(g[0][1], g[1][1]);
  }
}

static void meta_and_empty(void** state) {
  const tt_to_opts to = {.set = TT_TO_DEVICE, .device = {TT_META, 0}};
  tt_tensor *x, *w, *y;
  (void)state;
  OK(tt_to(c, random_of(SHAPE(2, 3, 8, 8)), &to, &x));
  OK(tt_to(c, random_of(SHAPE(5, 3, 3, 3)), &to, &w));
  OK(tt_conv2d(c, x, w, NULL, NULL, &y));
  HAS_SHAPE(y, 2, 5, 6, 6);
  OK(tt_conv1d(c, make(TT_F32, SHAPE(2, 0, 3), NULL, 0), make(TT_F32, SHAPE(2, 0, 2), NULL, 0),
               numbers(TT_F32, DATA(1, 2)), NULL, &y));
  HAS_SHAPE(y, 2, 2, 2); /* no channels: only the bias */
  VALUES(y, 1, 1, 2, 2, 1, 1, 2, 2);
}

static void errors_of_shapes(void** state) {
  tt_tensor* x = random_of(SHAPE(1, 4, 5, 5));
  tt_tensor* w = random_of(SHAPE(6, 4, 3, 3));
  tt_tensor* y;
  (void)state;
  FAILS(tt_conv2d(c, x, random_of(SHAPE(6, 3, 3, 3)), NULL, NULL, &y), TT_SHAPE,
        "input must have 3 channels");
  FAILS(tt_conv2d(c, x, random_of(SHAPE(6, 4, 3)), NULL, NULL, &y), TT_SHAPE,
        "weight is [6,4,3]: must have 4 dimensions");
  FAILS(tt_conv2d(c, random_of(SHAPE(5, 5)), w, NULL, NULL, &y), TT_SHAPE, "or 3 without a batch");
  FAILS(tt_conv2d(c, x, random_of(SHAPE(6, 4, 6, 3)), NULL, NULL, &y), TT_SHAPE, "the window 6");
  FAILS(tt_conv2d(c, x, random_of(SHAPE(6, 4, 0, 3)), NULL, NULL, &y), TT_SHAPE,
        "must be positive");
  FAILS(tt_conv2d(c, x, w, numbers(TT_F32, DATA(1, 2, 3)), NULL, &y), TT_SHAPE,
        "bias is [3]: must be [6]");
  FAILS(tt_conv2d(c, x, w, random_of(SHAPE(1, 6)), NULL, &y), TT_SHAPE, "bias is [1,6]");
  FAILS(tt_conv2d(c, x, w, numbers(TT_F64, DATA(1, 2, 3, 4, 5, 6)), NULL, &y), TT_DTYPE,
        "bias is float64");
  FAILS(tt_conv2d(c, x, w, NULL, &(tt_conv2d_opts){.set = TT_CONV2D_GROUPS, .groups = 4}, &y),
        TT_SHAPE, "multiple of groups");
  FAILS(tt_conv2d(c, x, w, NULL, &(tt_conv2d_opts){.set = TT_CONV2D_GROUPS, .groups = 2}, &y),
        TT_SHAPE, "8 channels");
  FAILS(tt_conv2d(c, x, w, NULL, &(tt_conv2d_opts){.set = TT_CONV2D_GROUPS, .groups = 0}, &y),
        TT_INVALID_ARG, "groups is 0");
  FAILS(
      tt_conv2d(c, x, w, NULL, &(tt_conv2d_opts){.set = TT_CONV2D_GROUPS, .groups = INT64_MIN}, &y),
      TT_INVALID_ARG, "groups");
  FAILS(tt_conv_transpose2d(c, x, random_of(SHAPE(3, 4, 3, 3)), NULL, NULL, &y), TT_SHAPE,
        "3 channels");
  FAILS(tt_conv_transpose2d(c, random_of(SHAPE(1, 4, 0, 5)), random_of(SHAPE(4, 4, 3, 3)), NULL,
                            NULL, &y),
        TT_SHAPE, "size 0");
  FAILS(tt_conv2d_padding(c, x, w, "reflect", NULL, NULL, &y), TT_INVALID_ARG, "'reflect'");
  FAILS(tt_conv2d_padding(
            c, x, w, "same", NULL,
            &(tt_conv2d_padding_opts){.set = TT_CONV2D_PADDING_STRIDE, INTS(stride, 1, 2)}, &y),
        TT_INVALID_ARG, "must be 1 for padding 'same'");
  FAILS(tt_conv2d(c, make(TT_BOOL, SHAPE(1, 1, 1, 1), DATA(1)),
                  make(TT_BOOL, SHAPE(1, 1, 1, 1), DATA(1)), NULL, NULL, &y),
        TT_NOT_IMPLEMENTED, "bool");
  assert_null(y);
}

/* Every parameter at its extremes: the call gives a status, never a wrong size. */
static void hostile_parameters(void** state) {
  static const int64_t kValues[] = {INT64_MIN,         INT64_MIN + 1, -1,       0, 5, 1 << 20,
                                    INT64_MAX / 2 + 1, INT64_MAX - 1, INT64_MAX};
  tt_tensor* x = random_of(SHAPE(1, 2, 5, 5));
  tt_tensor* w = random_of(SHAPE(2, 2, 3, 3));
  tt_tensor* y;
  size_t i, k;
  (void)state;
  OK(tt_requires_grad_(c, x, 1));
  for (k = 0; k < 7; k++)
    for (i = 0; i < sizeof kValues / sizeof *kValues; i++) {
      tt_conv2d_opts o = {.set = 0,
                          INTS(stride, kValues[i]),
                          INTS(padding, kValues[i]),
                          INTS(dilation, kValues[i])};
      tt_conv_transpose2d_opts t = {.set = 0,
                                    INTS(stride, kValues[i]),
                                    INTS(padding, kValues[i]),
                                    INTS(dilation, kValues[i]),
                                    INTS(output_padding, kValues[i])};
      tt_status s;
      static const uint64_t kTransposed[] = {
          TT_CONV_TRANSPOSE2D_STRIDE, TT_CONV_TRANSPOSE2D_PADDING, TT_CONV_TRANSPOSE2D_DILATION,
          TT_CONV_TRANSPOSE2D_OUTPUT_PADDING};
      if (kValues[i] == 1 << 20) continue; /* a valid size, too large for a test */
      o.set = k < 3 ? UINT64_C(1) << k : 0;
      t.set = k < 3 ? 0 : kTransposed[k - 3];
      s = k < 3 ? tt_conv2d(c, x, w, NULL, &o, &y) : tt_conv_transpose2d(c, x, w, NULL, &t, &y);
      assert_true(s == TT_OK || s == TT_INVALID_ARG || s == TT_SHAPE || s == TT_OOM);
      assert_true(s == TT_OK ? kValues[i] == 0 || kValues[i] == 5 || k == 0 : !y);
      if (s == TT_OK) derive(y, x, 0);
    }
  FAILS(tt_conv2d(c, x, w, NULL, &(tt_conv2d_opts){.set = TT_CONV2D_STRIDE, INTS(stride, 0)}, &y),
        TT_INVALID_ARG, "at least 1");
  FAILS(tt_conv2d(c, x, w, NULL, &(tt_conv2d_opts){.set = TT_CONV2D_PADDING, INTS(padding, 0, -1)},
                  &y),
        TT_INVALID_ARG, "at least 0");
  FAILS(tt_conv2d(c, x, w, NULL,
                  &(tt_conv2d_opts){.set = TT_CONV2D_DILATION, INTS(dilation, 1, 1, 1)}, &y),
        TT_INVALID_ARG, "1 or 2 numbers");
  FAILS(tt_conv_transpose2d(c, x, w, NULL,
                            &(tt_conv_transpose2d_opts){.set = TT_CONV_TRANSPOSE2D_OUTPUT_PADDING,
                                                        INTS(output_padding, 1)},
                            &y),
        TT_INVALID_ARG, "less than stride or dilation");
  FAILS(tt_conv_transpose2d(
            c, x, w, NULL,
            &(tt_conv_transpose2d_opts){.set = TT_CONV_TRANSPOSE2D_PADDING, INTS(padding, 4)}, &y),
        TT_SHAPE, "must be positive");
}

/* Strides beyond any memory: the defined result or an overflow error, immediately. */
static void windows_that_reach_far_beyond_the_input(void** state) {
  const int64_t far = (int64_t)1 << 62;
  const int64_t apart = 1 << 24;
  const tt_conv2d_opts steps = {
      .set = TT_CONV2D_STRIDE | TT_CONV2D_DILATION, INTS(stride, far), INTS(dilation, far)};
  const tt_conv2d_opts wide = {.set = TT_CONV2D_PADDING | TT_CONV2D_DILATION,
                               INTS(padding, apart / 2),
                               INTS(dilation, apart)};
  const tt_conv2d_opts wider = {.set = TT_CONV2D_PADDING | TT_CONV2D_DILATION,
                                INTS(padding, far / 4),
                                INTS(dilation, far / 2)};
  const tt_conv_transpose2d_opts back = {.set = TT_CONV_TRANSPOSE2D_DILATION, INTS(dilation, far)};
  tt_tensor *x = param(SHAPE(1, 1, 2, 2), DATA(1, 2, 3, 4)), *y, *g;
  tt_tensor* one = make(TT_F64, SHAPE(1, 1, 1, 1), DATA(5));
  tt_tensor* row = make(TT_F64, SHAPE(1, 1, 1, 2), DATA(5, 6));
  tt_tensor* square = make(TT_F64, SHAPE(1, 1, 2, 2), DATA(5, 6, 7, 8));
  (void)state;
  OK(tt_conv2d(c, x, one, NULL, &steps, &y));
  VALUES(y, 5);
  g = derive(y, x, 0);
  VALUES(g, 5, 0, 0, 0);
  FAILS(tt_conv2d(c, x, row, NULL, &steps, &y), TT_SHAPE, "window");
  OK(tt_conv_transpose2d(c, x, one, NULL, &back, &y));
  VALUES(y, 5, 10, 15, 20);
  OK(tt_conv2d(c, x, square, NULL, &wide, &y)); /* every tap reads padding */
  VALUES(y, 0, 0, 0, 0);
  g = derive(y, x, 0);
  VALUES(g, 0, 0, 0, 0);
  FAILS(tt_conv2d(c, x, square, NULL, &wider, &y), TT_INVALID_ARG, "padding");
}

int main(void) {
  const struct CMUnitTest tests[] = {VARIANT(values_of_each_form),
                                     VARIANT(integers_wrap_and_halves_round_once),
                                     VARIANT(result_is_channels_last_iff_an_operand_is),
                                     VARIANT(weights_of_any_order_give_the_same),
                                     VARIANT(derivatives_of_one_pixel_windows),
                                     VARIANT(images_side_by_side),
                                     VARIANT(vectors_of_pixels),
                                     VARIANT(groups_of_few_channels),
                                     VARIANT(layouts_of_large_weights),
                                     VARIANT(one_pixel_channels_last),
                                     VARIANT(groups_of_one_channel),
                                     VARIANT(bits_do_not_depend_on_threads),
                                     VARIANT(meta_and_empty),
                                     VARIANT(errors_of_shapes),
                                     VARIANT(hostile_parameters),
                                     VARIANT(windows_that_reach_far_beyond_the_input)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
