/* Normalisations of channels, pooling, resizing, padding: running statistics, layouts, special
   values, hostile arguments. Values and derivatives are checked by op_table_test. */
#include "harness.h"

#include <math.h>

static tt_tensor* image(const int64_t* shape, int n) {
  tt_tensor* t;
  OK(tt_randn(c, shape, n, NULL, &t));
  return t;
}
#define IMAGE(...) \
  image((const int64_t[]){__VA_ARGS__}, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

static tt_batch_norm_opts training(void) {
  return (tt_batch_norm_opts){
      .set = TT_BATCH_NORM_TRAINING | TT_BATCH_NORM_MOMENTUM, .training = 1, .momentum = 0.5};
}

static void running_statistics_are_updated(void** state) {
  const tt_batch_norm_opts o = training();
  tt_tensor* x = make(TT_F32, SHAPE(4, 2), DATA(1, 0, 3, 0, 5, 8, 7, 8));
  tt_tensor* mean = numbers(TT_F32, DATA(2, 2));
  tt_tensor* var = numbers(TT_F32, DATA(1, 1));
  tt_tensor* y;
  (void)state;
  OK(tt_batch_norm(c, x, mean, var, NULL, NULL, &o, &y));
  VALUES(mean, 3, 3);
  NEAR(var, 1e-6, 0.5 + 0.5 * 20.0 / 3, 0.5 + 0.5 * 64.0 / 3); /* of a sample: divided by n - 1 */
  assert_int_equal(tt_tensor_version(mean), 1);
  OK(tt_batch_norm(c, x, mean, var, NULL, NULL, NULL, &y)); /* they are only read */
  VALUES(mean, 3, 3);
}

static void a_failing_call_updates_nothing(void** state) {
  const tt_batch_norm_opts o = training();
  tt_tensor* x = make(TT_F32, SHAPE(2, 2), DATA(1, 2, 3, 4));
  tt_tensor* mean = numbers(TT_F32, DATA(2, 2));
  tt_tensor* var = numbers(TT_F32, DATA(1, 1));
  tt_tensor* y;
  tt_tensor* three = numbers(TT_F32, DATA(1, 2, 3));
  tt_tensor* one_row = make(TT_F32, SHAPE(1, 2), DATA(1, 2));
  tt_tensor* leaf_mean = numbers(TT_F32, DATA(0, 0));
  (void)state;
  FAILS(tt_batch_norm(c, x, mean, var, three, NULL, &o, &y), TT_SHAPE, "weight is [3]");
  FAILS(tt_batch_norm(c, x, mean, three, NULL, NULL, &o, &y), TT_SHAPE, "running_var is [3]");
  FAILS(tt_batch_norm(c, one_row, mean, var, NULL, NULL, &o, &y), TT_SHAPE, "more than one value");
  FAILS(tt_batch_norm(c, x, mean, NULL, NULL, NULL, &o, &y), TT_INVALID_ARG, "both");
  FAILS(tt_batch_norm(c, x, NULL, NULL, NULL, NULL, NULL, &y), TT_INVALID_ARG, "outside training");
  OK(tt_requires_grad_(c, leaf_mean, 1));
  FAILS(tt_batch_norm(c, x, leaf_mean, var, NULL, NULL, &o, &y), TT_AUTOGRAD,
        "running_mean requires a gradient");
  VALUES(mean, 2, 2);
  VALUES(var, 1, 1);
}

/* Far from zero, a variance from sums of squares would cancel. */
static void statistics_of_values_far_from_zero(void** state) {
  const tt_batch_norm_opts o = training();
  tt_tensor *x = make(TT_F32, SHAPE(4, 1), DATA(1000000, 1000001, 1000002, 1000003)), *y;
  const double scale = 1 / sqrt(1.25 + 1e-5);
  (void)state;
  OK(tt_batch_norm(c, x, NULL, NULL, NULL, NULL, &o, &y));
  NEAR(y, 1e-6, -1.5 * scale, -0.5 * scale, 0.5 * scale, 1.5 * scale);
}

static void results_keep_channels_last(void** state) {
  const int64_t two = 2;
  const int64_t size[2] = {6, 7};
  const int64_t to_last[4] = {0, 2, 3, 1};
  const int64_t back[4] = {0, 3, 1, 2};
  const tt_batch_norm_opts o = training();
  const tt_interpolate_opts linear = {.set = TT_INTERPOLATE_MODE,
                                      .mode = TT_INTERPOLATION_BILINEAR};
  tt_tensor *x = IMAGE(2, 3, 4, 5), *last, *outs[5], *plain[5];
  int i;
  (void)state;
  OK(tt_permute(c, x, to_last, 4, &last));
  OK(tt_contiguous(c, last, &last));
  OK(tt_permute(c, last, back, 4, &last));
  for (i = 0; i < 2; i++) {
    tt_tensor** to = i ? outs : plain;
    tt_tensor* from = i ? last : x;
    OK(tt_max_pool2d(c, from, &two, 1, NULL, &to[0]));
    OK(tt_avg_pool2d(c, from, &two, 1, NULL, &to[1]));
    OK(tt_adaptive_avg_pool2d(c, from, &two, 1, &to[2]));
    OK(tt_interpolate(c, from, size, 2, &linear, &to[3]));
    OK(tt_batch_norm(c, from, NULL, NULL, NULL, NULL, &o, &to[4]));
  }
  for (i = 0; i < 5; i++) {
    double* got = values_of(outs[i]);
    double* want = values_of(plain[i]);
    int64_t k;
    assert_int_equal(tt_tensor_strides(outs[i])[1], 1);
    for (k = 0; k < tt_tensor_numel(outs[i]); k++) assert_true(fabs(got[k] - want[k]) < 1e-5);
    free(got);
    free(want);
  }
}

static void hostile_windows(void** state) {
  static const int64_t kBad[] = {0, -1, INT64_MIN, INT64_MAX};
  const int64_t two = 2;
  const int64_t three[3] = {1, 1, 1};
  const int64_t huge = INT64_MAX;
  const tt_max_pool2d_opts up = {.set = TT_MAX_POOL2D_CEIL_MODE, .ceil_mode = 1};
  const tt_max_pool2d_opts far = {.set = TT_MAX_POOL2D_CEIL_MODE | TT_MAX_POOL2D_STRIDE,
                                  .ceil_mode = 1,
                                  .stride = &huge,
                                  .n_stride = 1};
  const tt_avg_pool2d_opts zero = {.set = TT_AVG_POOL2D_DIVISOR_OVERRIDE, .divisor_override = 0};
  tt_tensor *x = IMAGE(1, 2, 4, 4), *y;
  size_t i;
  (void)state;
  for (i = 0; i < sizeof kBad / sizeof *kBad; i++) {
    const tt_max_pool2d_opts padded = {
        .set = TT_MAX_POOL2D_PADDING, .padding = &kBad[i], .n_padding = 1};
    const tt_max_pool2d_opts dilated = {
        .set = TT_MAX_POOL2D_DILATION, .dilation = &kBad[i], .n_dilation = 1};
    const tt_max_pool2d_opts steps = {
        .set = TT_MAX_POOL2D_STRIDE, .stride = &kBad[i], .n_stride = 1};
    assert_int_not_equal(tt_max_pool2d(c, x, &kBad[i], 1, NULL, &y), TT_OK);
    assert_int_not_equal(tt_avg_pool2d(c, x, &kBad[i], 1, NULL, &y), TT_OK);
    if (kBad[i] != 0) assert_int_not_equal(tt_max_pool2d(c, x, &two, 1, &padded, &y), TT_OK);
    assert_int_not_equal(tt_max_pool2d(c, x, &two, 1, &dilated, &y), TT_OK);
    if (kBad[i] > 0) continue;
    assert_int_not_equal(tt_max_pool2d(c, x, &two, 1, &steps, &y), TT_OK);
    if (kBad[i] < 0) assert_int_not_equal(tt_adaptive_avg_pool2d(c, x, &kBad[i], 1, &y), TT_OK);
  }
  OK(tt_max_pool2d(c, x, &two, 1, &far, &y)); /* one window */
  assert_int_equal(tt_tensor_numel(y), 2);
  OK(tt_max_pool2d(c, x, &huge, 1, &up, &y)); /* one, cut off at the edge */
  assert_int_equal(tt_tensor_numel(y), 2);
  assert_int_not_equal(tt_adaptive_avg_pool2d(c, x, &huge, 1, &y), TT_OK);
  FAILS(tt_max_pool2d(c, x, three, 3, NULL, &y), TT_INVALID_ARG,
        "kernel_size is [1,1,1]: must have 1 or 2 numbers");
  FAILS(tt_max_pool2d(c, x, NULL, 0, NULL, &y), TT_INVALID_ARG, "kernel_size is empty");
  FAILS(tt_avg_pool2d(c, x, &two, 1, &zero, &y), TT_INVALID_ARG, "divisor_override is 0");
  FAILS(tt_max_pool2d(c, IMAGE(4, 4), &two, 1, NULL, &y), TT_SHAPE, "self is [4,4]");
}

static void hostile_sizes(void** state) {
  static const int64_t kBad[] = {0, -1, INT64_MIN, INT64_MAX};
  static const double kFactors[] = {0, -1, 1e300, INFINITY, NAN};
  const int64_t pads[][2] = {
      {INT64_MAX, INT64_MAX}, {INT64_MIN, 0}, {INT64_MIN, INT64_MAX}, {-3, -2}, {0, INT64_MAX}};
  tt_pad_opts mode = {.set = TT_PAD_MODE};
  tt_tensor *x = IMAGE(1, 2, 4, 4), *y;
  size_t i;
  (void)state;
  for (i = 0; i < 4; i++) assert_int_not_equal(tt_interpolate(c, x, &kBad[i], 1, NULL, &y), TT_OK);
  for (i = 0; i < 5; i++) {
    const tt_interpolate_opts o = {.set = TT_INTERPOLATE_SCALE_FACTOR, .scale_factor = kFactors[i]};
    assert_int_not_equal(tt_interpolate(c, x, NULL, 0, &o, &y), TT_OK);
    assert_int_not_equal(tt_constant_pad_nd(c, x, pads[i], 2, NULL, &y), TT_OK);
    for (mode.mode = 0; mode.mode < 4; mode.mode++)
      assert_int_not_equal(tt_pad(c, x, pads[i], 2, &mode, &y), TT_OK);
  }
  FAILS(tt_interpolate(c, x, NULL, 0, NULL, &y), TT_INVALID_ARG, "either size or scale_factor");
  FAILS(tt_constant_pad_nd(c, x, pads[0], 1, NULL, &y), TT_INVALID_ARG, "pad has 1 numbers");
}

/* Gradients of 2 x 2 windows go where the general kernel finds the first of the largest elements,
 * ties and nan included. */
static void test_gradient_of_small_windows(void** state) {
  static const int64_t kSizes[][2] = {{2, 2}, {5, 7}, {8, 64}, {7, 71}, {4, 150}};
  const int64_t two = 2;
  (void)state;
  for (int d = TT_F32; d <= TT_F64; d++) {
    for (size_t i = 0; i < sizeof kSizes / sizeof *kSizes; i++) {
      const int64_t rows = kSizes[i][0];
      const int64_t width = kSizes[i][1];
      const tt_to_opts as = {.set = TT_TO_DTYPE, .dtype = d};
      tt_tensor *drawn, *x, *y, *index, *g, *dx, *want, *flat_g, *flat_i;
      const tt_tensor* inputs[1];
      OK(tt_randint(c, 0, 4, SHAPE(2, 3, rows, width), NULL, &drawn));
      OK(tt_to(c, drawn, &as, &x));
      if (i == 3) OK(tt_index_fill_f64_(c, x, 3, make(TT_I64, SHAPE(2), DATA(0, 9)), NAN));
      OK(tt_requires_grad_(c, x, 1));
      OK(tt_max_pool2d(c, x, &two, 1, NULL, &y));
      OK(tt_randn_like(c, y, NULL, &g));
      inputs[0] = x;
      const tt_tensor* outputs[1] = {y};
      const tt_tensor* starts[1] = {g};
      const tt_grad_opts o = {
          .set = TT_GRAD_GRAD_OUTPUTS, .grad_outputs = starts, .n_grad_outputs = 1};
      OK(tt_grad(c, outputs, 1, inputs, 1, &o, &dx));
      tt_tensor* again;
      OK(tt_max_pool2d_with_indices(c, x, &two, 1, NULL, &again, &index));
      OK(tt_reshape(c, index, SHAPE(6, -1), &flat_i));
      OK(tt_reshape(c, g, SHAPE(6, -1), &flat_g));
      const tt_zeros_opts z = {.set = TT_ZEROS_DTYPE, .dtype = d};
      OK(tt_zeros(c, SHAPE(6, rows * width), &z, &want));
      OK(tt_scatter_add_(c, want, 1, flat_i, flat_g));
      double* a = values_of(dx);
      double* b = values_of(want);
      assert_memory_equal(a, b, (size_t)(6 * rows * width) * sizeof *a);
      free(a);
      free(b);
    }
  }
}

/* Strides beyond any memory: the elements that remain, immediately. */
static void windows_that_reach_far_beyond_the_input(void** state) {
  const int64_t far = (int64_t)1 << 62;
  const int64_t half = far / 2;
  const int64_t end = INT64_MAX;
  const tt_max_pool2d_opts ceil = {
      .set = TT_MAX_POOL2D_STRIDE | TT_MAX_POOL2D_DILATION | TT_MAX_POOL2D_CEIL_MODE,
      .stride = &end,
      .n_stride = 1,
      .dilation = &far,
      .n_dilation = 1,
      .ceil_mode = 1,
  };
  const tt_max_pool2d_opts alone = {
      .set = TT_MAX_POOL2D_DILATION, .dilation = &end, .n_dilation = 1};
  const tt_max_pool2d_opts padded = {
      .set = TT_MAX_POOL2D_PADDING, .padding = &half, .n_padding = 1};
  const tt_max_pool2d_with_indices_opts found = {
      .set = TT_MAX_POOL2D_WITH_INDICES_STRIDE | TT_MAX_POOL2D_WITH_INDICES_DILATION |
             TT_MAX_POOL2D_WITH_INDICES_CEIL_MODE,
      .stride = &end,
      .n_stride = 1,
      .dilation = &far,
      .n_dilation = 1,
      .ceil_mode = 1,
  };
  tt_tensor *x = param(SHAPE(1, 1, 2, 3), DATA(1, 2, 3, 4, 5, 6)), *y, *at, *g;
  (void)state;
  OK(tt_max_pool2d(c, x, SHAPE(2), &ceil, &y));
  VALUES(y, 1);
  g = derive(y, x, 0);
  VALUES(g, 1, 0, 0, 0, 0, 0);
  OK(tt_max_pool2d_with_indices(c, x, SHAPE(2), &found, &y, &at));
  VALUES(y, 1);
  VALUES(at, 0);
  OK(tt_max_pool2d(c, x, SHAPE(1), &alone, &y));
  VALUES(y, 1, 2, 3, 4, 5, 6);
  FAILS(tt_max_pool2d(c, x, SHAPE(2), &alone, &y), TT_INVALID_ARG, "kernel_size");
  OK(tt_max_pool2d(c, x, SHAPE(far), &padded, &y)); /* one window over all */
  VALUES(y, 6);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_gradient_of_small_windows),
                                     SCOPED(running_statistics_are_updated),
                                     SCOPED(a_failing_call_updates_nothing),
                                     SCOPED(statistics_of_values_far_from_zero),
                                     SCOPED(results_keep_channels_last),
                                     SCOPED(hostile_windows),
                                     SCOPED(hostile_sizes),
                                     SCOPED(windows_that_reach_far_beyond_the_input)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
