/* No call needs more than 64 kB of the calling thread's stack (tt.h). Each case runs on a thread
   with much, where what it writes is measured, and on one with just that, with a guard page behind.
   */
#include "harness.h"

#include <pthread.h>

/* Bytes. kOwn: for the start of the thread and this test's own frames. */
enum { kLimit = 64 << 10, kOwn = 16 << 10, kMuch = 256 << 10, kUnit = 8 };

typedef struct Case {
  const char* name;
  void (*run)(void);
} Case;

static tt_dtype dtype;       /* of the tensors of the running case */
static int is_channels_last; /* and their memory order */

static tt_tensor* random_of(const int64_t* shape, int64_t ndim) {
  const tt_rand_opts opts = {.set = TT_RAND_DTYPE, .dtype = dtype};
  const tt_clone_opts last = {.set = TT_CLONE_MEMORY_FORMAT, .memory_format = TT_CHANNELS_LAST};
  tt_tensor *t, *other;
  OK(tt_rand(c, shape, ndim, &opts, &t));
  if (is_channels_last && ndim == 4) {
    OK(tt_clone(c, t, &last, &other));
    t = other;
  }
  OK(tt_requires_grad_(c, t, 1));
  return t;
}
static void differentiate(const tt_tensor* y) {
  tt_tensor* sum;
  OK(tt_sum(c, y, NULL, &sum));
  OK(tt_backward(c, sum, NULL));
}

/* ---- cases ---- */

/* The sizes lead to every path of the kernels. */
static void run_conv2d(void) {
  static const struct {
    int64_t n, channels, columns, groups, kernel, stride, padding, size;
  } kCases[] = {
      {2, 3, 32, 1, 3, 1, 1, 20},  {1, 64, 64, 1, 3, 1, 1, 14},  {1, 64, 64, 1, 3, 2, 1, 14},
      {1, 64, 64, 1, 1, 1, 0, 14}, {2, 32, 32, 32, 3, 1, 1, 12}, {1, 64, 512, 1, 3, 1, 1, 4},
      {32, 1, 6, 1, 5, 1, 0, 14},  {2, 16, 40, 4, 3, 1, 1, 9},   {1, 3, 8, 1, 7, 2, 3, 40},
      {4, 64, 3, 1, 4, 2, 1, 16},
  };
  size_t i;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    const int64_t stride[] = {kCases[i].stride}, padding[] = {kCases[i].padding};
    const tt_conv2d_opts opts = {
        .set = TT_CONV2D_STRIDE | TT_CONV2D_PADDING | TT_CONV2D_GROUPS,
        .stride = stride,
        .n_stride = 1,
        .padding = padding,
        .n_padding = 1,
        .groups = kCases[i].groups,
    };
    const tt_conv_transpose2d_opts back = {
        .set = TT_CONV_TRANSPOSE2D_STRIDE | TT_CONV_TRANSPOSE2D_PADDING,
        .stride = stride,
        .n_stride = 1,
        .padding = padding,
        .n_padding = 1,
    };
    tt_tensor* x =
        random_of(SHAPE(kCases[i].n, kCases[i].channels, kCases[i].size, kCases[i].size));
    tt_tensor* w = random_of(SHAPE(kCases[i].columns, kCases[i].channels / kCases[i].groups,
                                   kCases[i].kernel, kCases[i].kernel));
    tt_tensor *b = random_of(SHAPE(kCases[i].columns)), *y, *z;
    OK(tt_conv2d(c, x, w, b, &opts, &y));
    differentiate(y);
    if (kCases[i].groups > 1) continue;
    OK(tt_detach(c, y, &y));
    OK(tt_conv_transpose2d(c, y, w, NULL, &back, &z));
    differentiate(z);
  }
}
static void run_conv1d_and_3d(void) {
  tt_tensor* y;
  OK(tt_conv1d(c, random_of(SHAPE(2, 8, 100)), random_of(SHAPE(16, 8, 5)), NULL, NULL, &y));
  differentiate(y);
  OK(tt_conv3d(c, random_of(SHAPE(1, 4, 6, 6, 6)), random_of(SHAPE(8, 4, 3, 3, 3)), NULL, NULL,
               &y));
  differentiate(y);
}

static void run_interpolate(void) {
  static const struct {
    int64_t ndim;
    int mode;
  } kModes[] = {
      {4, TT_INTERPOLATION_NEAREST},       {3, TT_INTERPOLATION_LINEAR},
      {4, TT_INTERPOLATION_BILINEAR},      {4, TT_INTERPOLATION_BICUBIC},
      {4, TT_INTERPOLATION_NEAREST_EXACT}, {4, TT_INTERPOLATION_AREA},
      {5, TT_INTERPOLATION_TRILINEAR},
  };
  const int64_t shape[] = {1, 3, 7, 9, 8}, size[] = {13, 15, 11};
  size_t i;
  for (i = 0; i < sizeof kModes / sizeof *kModes; i++) {
    const tt_interpolate_opts opts = {.set = TT_INTERPOLATE_MODE, .mode = kModes[i].mode};
    tt_tensor* y;
    OK(tt_interpolate(c, random_of(shape, kModes[i].ndim), size, kModes[i].ndim - 2, &opts, &y));
    differentiate(y);
  }
}

static void run_pools(void) {
  const int64_t stride[] = {1}, dilation[] = {2};
  const tt_max_pool2d_opts dense = {.set = TT_MAX_POOL2D_STRIDE, .stride = stride, .n_stride = 1};
  const tt_max_pool2d_opts dilated = {
      .set = TT_MAX_POOL2D_DILATION, .dilation = dilation, .n_dilation = 1};
  tt_tensor *x = random_of(SHAPE(2, 4, 20, 24)), *y, *index;
  OK(tt_max_pool2d(c, x, SHAPE(2), NULL, &y));
  differentiate(y);
  OK(tt_max_pool2d(c, x, SHAPE(3, 5), &dense, &y));
  differentiate(y);
  OK(tt_max_pool2d(c, x, SHAPE(3), &dilated, &y));
  differentiate(y);
  OK(tt_max_pool2d_with_indices(c, x, SHAPE(3), NULL, &y, &index));
  differentiate(y);
  OK(tt_avg_pool2d(c, x, SHAPE(3), NULL, &y));
  differentiate(y);
  OK(tt_adaptive_avg_pool2d(c, x, SHAPE(7), &y));
  differentiate(y);
  OK(tt_adaptive_avg_pool2d(c, x, SHAPE(1), &y));
  differentiate(y);
  OK(tt_adaptive_max_pool2d(c, x, SHAPE(7), &y, &index));
  differentiate(y);
}

static void run_attention(void) {
  const tt_scaled_dot_product_attention_opts opts = {
      .set = TT_SCALED_DOT_PRODUCT_ATTENTION_IS_CAUSAL | TT_SCALED_DOT_PRODUCT_ATTENTION_DROPOUT_P,
      .is_causal = 1,
      .dropout_p = 0.1};
  tt_tensor *q = random_of(SHAPE(1, 2, 70, 40)), *k = random_of(SHAPE(1, 2, 70, 40));
  tt_tensor *v = random_of(SHAPE(1, 2, 70, 40)), *mask = random_of(SHAPE(70, 70)), *y;
  OK(tt_scaled_dot_product_attention(c, q, k, v, NULL, &opts, &y));
  differentiate(y);
  OK(tt_scaled_dot_product_attention(c, q, k, v, mask, NULL, &y));
  differentiate(y);
}

static void run_matmul(void) {
  const int64_t kSizes[][3] = {
      {8, 8, 8}, {1, 300, 300}, {500, 500, 500}, {300, 300, 1}, {130, 140, 150}};
  size_t i;
  tt_tensor* y;
  for (i = 0; i < sizeof kSizes / sizeof *kSizes; i++) {
    OK(tt_matmul(c, random_of(SHAPE(kSizes[i][0], kSizes[i][1])),
                 random_of(SHAPE(kSizes[i][1], kSizes[i][2])), &y));
    differentiate(y);
  }
  OK(tt_matmul(c, random_of(SHAPE(3, 20, 30)), random_of(SHAPE(3, 30, 20)), &y));
  differentiate(y);
}

static void run_complex(void) {
  const tt_dtype was = dtype;
  tt_tensor *x, *y;
  dtype = dtype == TT_F64 ? TT_C128 : TT_C64;
  x = random_of(SHAPE(2, 100, 60));
  OK(tt_cumprod(c, x, 1, NULL, &y));
  OK(tt_matmul(c, x, random_of(SHAPE(2, 60, 70)), &y));
  OK(tt_conv1d(c, x, random_of(SHAPE(8, 100, 3)), NULL, NULL, &y));
  OK(tt_exp(c, x, &y));
  dtype = was;
}

static void run_norms(void) {
  const tt_batch_norm_opts training = {.set = TT_BATCH_NORM_TRAINING, .training = 1};
  tt_tensor *x = random_of(SHAPE(4, 8, 10, 10)), *w = random_of(SHAPE(8)), *b = random_of(SHAPE(8));
  tt_tensor* y;
  OK(tt_batch_norm(c, x, NULL, NULL, w, b, &training, &y));
  differentiate(y);
  OK(tt_group_norm(c, x, 2, w, b, NULL, &y));
  differentiate(y);
  OK(tt_layer_norm(c, random_of(SHAPE(40, 100)), SHAPE(100), random_of(SHAPE(100)),
                   random_of(SHAPE(100)), NULL, &y));
  differentiate(y);
}

static void run_rows(void) {
  const tt_argmax_opts rows = {.set = TT_ARGMAX_DIM, .dim = 0};
  tt_tensor *x = random_of(SHAPE(40, 50)), *wide = random_of(SHAPE(2, 100, 60)), *y, *index;
  OK(tt_softmax(c, x, 1, NULL, &y));
  differentiate(y);
  OK(tt_softmax(c, wide, 1, NULL, &y));
  differentiate(y);
  OK(tt_log_softmax(c, x, 1, NULL, &y));
  differentiate(y);
  OK(tt_cumsum(c, wide, 1, NULL, &y));
  differentiate(y);
  OK(tt_cumprod(c, wide, 1, NULL, &y));
  differentiate(y);
  OK(tt_argmax(c, x, &rows, &index));
  OK(tt_sum_dim(c, wide, SHAPE(1), NULL, &y));
  differentiate(y);
  OK(tt_embedding(c, x, index, NULL, &y));
  differentiate(y);
}

static void run_sorts(void) {
  tt_tensor *x = random_of(SHAPE(3, 5000)), *y, *index, *none;
  OK(tt_sort(c, x, NULL, &y, &index));
  differentiate(y);
  OK(tt_topk(c, x, 5, NULL, &y, &index));
  differentiate(y);
  OK(tt_unique(c, random_of(SHAPE(3000)), NULL, &y, &none, &none));
  OK(tt_sort(c, random_of(SHAPE(200000)), NULL, &y, &index));
}

static void run_svd(void) {
  tt_tensor* y;
  OK(tt_nuclear_norm(c, random_of(SHAPE(40, 30)), NULL, &y));
  differentiate(y);
}

static void run_random(void) {
  tt_tensor *x = random_of(SHAPE(100, 100)), *y;
  OK(tt_dropout(c, x, NULL, &y));
  differentiate(y);
  OK(tt_multinomial(c, x, 10, 1, NULL, &y));
  OK(tt_randperm(c, 1000, NULL, &y));
  OK(tt_randn(c, SHAPE(1000), NULL, &y));
}

static const Case kCases[] = {
    {"conv2d", run_conv2d},
    {"conv1d, conv3d", run_conv1d_and_3d},
    {"interpolate", run_interpolate},
    {"pools", run_pools},
    {"attention", run_attention},
    {"matmul", run_matmul},
    {"norms", run_norms},
    {"rows", run_rows},
    {"sorts", run_sorts},
    {"svd", run_svd},
    {"complex", run_complex},
    {"random", run_random},
};

/* ---- measuring ---- */

static int64_t used; /* bytes of the stack that the last case wrote */

/* Fills the free stack, runs the case, and looks how far down it was overwritten. */
static __attribute__((noinline)) void* measured(void* arg) {
  const uint64_t kPaint = 0x5ca1ab1e0ddba11u;
  volatile uint64_t* const top = (volatile uint64_t*)__builtin_frame_address(0) - 64;
  volatile uint64_t* const bottom = top - (kMuch - kOwn) / kUnit;
  volatile uint64_t* p;
  for (p = bottom; p < top; p++) *p = kPaint;
  ((const Case*)arg)->run();
  for (p = bottom; *p == kPaint;) p++;
  used = (top - p) * kUnit;
  return NULL;
}
static void* unmeasured(void* arg) {
  ((const Case*)arg)->run();
  return NULL;
}

static void run_on_stack(size_t bytes, void* (*run)(void*), const Case* t) {
  pthread_attr_t attr;
  pthread_t thread;
  assert_int_equal(pthread_attr_init(&attr), 0);
  assert_int_equal(pthread_attr_setstacksize(&attr, bytes), 0);
  assert_int_equal(pthread_create(&thread, &attr, run, (void*)t), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  pthread_attr_destroy(&attr);
}

static void each_case(void) {
  static const tt_dtype kDtypes[] = {TT_F32, TT_F64, TT_BF16};
  int64_t most;
  size_t i, d;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    most = 0;
    for (d = 0; d < 3; d++)
      for (is_channels_last = 0; is_channels_last < 2; is_channels_last++) {
        dtype = kDtypes[d];
        if (dtype == TT_BF16 && kCases[i].run == run_svd) continue;
        OK(tt_scope_push(c));
        run_on_stack(kMuch, measured, &kCases[i]);
        if (used <= kLimit) run_on_stack(kLimit + kOwn, unmeasured, &kCases[i]);
        OK(tt_scope_pop(c, NULL, 0));
        if (used > most) most = used;
      }
    print_message("%s: %lld bytes\n", kCases[i].name, (long long)most);
    assert_in_range(most, 1, kLimit);
  }
}

static void each_instruction_set(void** state) {
  tt_runtime_opts opts = {.struct_size = sizeof opts};
  int32_t isa;
  (void)state;
  for (opts.isa = 1; opts.isa <= 3; opts.isa++) {
    tt_runtime* rt;
    if (tt_runtime_new(&opts, &rt)) break; /* the machine has no more */
    assert_int_equal(tt_ctx_new(rt, &c), TT_OK);
    tt_runtime_release(rt);
    OK(tt_ctx_isa(c, &isa));
    print_message("instruction set %d\n", isa);
    each_case();
    tt_ctx_release(c);
  }
  assert_true(opts.isa > 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_instruction_set)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
