/* bench LIBRARY SHARE [GROUP...]: times of operators on a CUDA device as lines of JSON:
   {"name": {"us": median, "group": ..., "bytes": moved at least, "flops": ...}}; null instead of
   the object if the operator fails. LIBRARY: a device library, or - for libtt_cuda.so. SHARE: sizes
   are divided by it (1 on a device; large on the emulation). torch_bench.py has the same names.
   TT_GPU_FIRST: a file with the names of the rows that are measured first, one a line. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tt.h"

enum {
  kRounds = 21,
  kSlowRounds = 9,
  kSets = 4, /* operands take turns, so that caches hold none of them */
  kOperands = 6,
  kGradient = 5, /* the operand that is the gradient of the result */
  kResults = 3,
  kDims = 5,
  kTinyCalls = 500 /* fewer than launches can wait, so that the host never waits for the device */
};
static const double kSlowRound = 20e3, kSlowCall = 300e3; /* microseconds */

static tt_ctx* c;
static const tt_device kDevice = {TT_CUDA, 0};
static int64_t share = 1;
static int sets = kSets, rounds = kRounds; /* fewer on the emulation */

/* ---- rows ---- */

typedef struct Row Row;
typedef tt_status (*MakeFn)(const Row* row, tt_tensor** in);
typedef tt_status (*RunFn)(const Row* row, tt_tensor* const* in, tt_tensor** out);
struct Row {
  const char *name, *group;
  MakeFn make;
  RunFn run;
  tt_dtype dtype;
  int64_t n[kDims]; /* sizes, as `make` reads them; 0 ends a shape */
  double bytes, flops;
  int n_grads; /* if positive, backward follows, with gradients of the first n_grads operands */
  int option;  /* dim, causal or order */
};

#define TRY(call)                \
  do {                           \
    const tt_status s_ = (call); \
    if (s_) return s_;           \
  } while (0)

static int64_t scaled(int64_t n) {
  const int64_t small = (n > 1 << 20 ? n / share : n) / share / 16 * 16;
  if (share == 1 || n <= 4) return n;
  if (n <= 16) return 2;
  return small > 16 ? small : 16;
}
/* The shape that n has up to its first 0. */
static int shape_of(const int64_t* n, int64_t* shape) {
  int ndim = 0;
  for (; ndim < kDims && n[ndim]; ndim++) shape[ndim] = scaled(n[ndim]);
  return ndim;
}
static tt_status randn(tt_dtype d, const int64_t* shape, int ndim, tt_tensor** out) {
  const tt_randn_opts o = {.set = TT_RANDN_DTYPE | TT_RANDN_DEVICE, .dtype = d, .device = kDevice};
  return tt_randn(c, shape, ndim, &o, out);
}
static tt_status normal(tt_dtype d, const int64_t* n, tt_tensor** out) {
  int64_t shape[kDims];
  const int ndim = shape_of(n, shape);
  return randn(d, shape, ndim, out);
}
/* Integers below `end`. */
static tt_status below(int64_t end, const int64_t* n, tt_tensor** out) {
  const tt_randint_opts o = {.set = TT_RANDINT_DEVICE, .device = kDevice};
  int64_t shape[kDims];
  const int ndim = shape_of(n, shape);
  return tt_randint(c, 0, scaled(end), shape, ndim, &o, out);
}
#define SHAPE(...) ((const int64_t[kDims]){__VA_ARGS__})

/* ---- operands ---- */

static tt_status make_one(const Row* r, tt_tensor** in) { return normal(r->dtype, r->n, in); }
static tt_status make_two(const Row* r, tt_tensor** in) {
  TRY(normal(r->dtype, r->n, in));
  return normal(r->dtype, r->n, in + 1);
}
static tt_status make_three(const Row* r, tt_tensor** in) {
  TRY(make_two(r, in));
  return normal(r->dtype, r->n, in + 2);
}
static tt_status make_bias(const Row* r, tt_tensor** in) {
  TRY(normal(r->dtype, r->n, in));
  return normal(r->dtype, SHAPE(r->n[1]), in + 1);
}
static tt_status make_classes(const Row* r, tt_tensor** in) {
  TRY(normal(r->dtype, r->n, in));
  return below(r->n[1], SHAPE(r->n[0]), in + 1);
}
static tt_status make_norm(const Row* r, tt_tensor** in) {
  TRY(make_bias(r, in));
  return normal(r->dtype, SHAPE(r->n[1]), in + 2);
}
static tt_status make_batch(const Row* r, tt_tensor** in) {
  TRY(make_norm(r, in));
  TRY(normal(TT_F32, SHAPE(r->n[1]), in + 3)); /* running statistics */
  return normal(TT_F32, SHAPE(r->n[1]), in + 4);
}
/* n: rows, columns of the table, number of indices */
static tt_status make_table(const Row* r, tt_tensor** in) {
  TRY(normal(r->dtype, SHAPE(r->n[0], r->n[1]), in));
  return below(r->n[0], SHAPE(r->n[2]), in + 1);
}
static tt_status make_gather(const Row* r, tt_tensor** in) {
  TRY(normal(r->dtype, r->n, in));
  TRY(below(r->n[1], r->n, in + 1));
  return normal(r->dtype, r->n, in + 2);
}
/* n: m, n, k */
static tt_status make_product(const Row* r, tt_tensor** in) {
  TRY(normal(r->dtype, SHAPE(r->n[0], r->n[2]), in));
  return normal(r->dtype, SHAPE(r->n[2], r->n[1]), in + 1);
}
static tt_status make_linear(const Row* r, tt_tensor** in) {
  TRY(normal(r->dtype, SHAPE(r->n[0], r->n[2]), in));
  TRY(normal(r->dtype, SHAPE(r->n[1], r->n[2]), in + 1));
  return normal(r->dtype, SHAPE(r->n[1]), in + 2);
}
/* n: images, channels in, channels out, height and width, kernel */
static tt_status make_conv(const Row* r, tt_tensor** in) {
  TRY(normal(r->dtype, SHAPE(r->n[0], r->n[1], r->n[3], r->n[3]), in));
  return normal(r->dtype, SHAPE(r->n[2], r->n[1], r->n[4], r->n[4]), in + 1);
}
/* x, weights, the first h and c. n: sequences, steps, size of x and of the state */
static tt_status make_lstm(const Row* r, tt_tensor** in) {
  const int64_t size = scaled(r->n[2]), weight[2] = {4 * size, size};
  TRY(normal(r->dtype, SHAPE(r->n[1], r->n[0], r->n[2]), in));
  for (int k = 1; k < 3; k++) TRY(randn(r->dtype, weight, 2, in + k));
  return normal(r->dtype, SHAPE(1, r->n[0], r->n[2]), in + 3);
}
/* x xᵀ / n + 1, and a right-hand side. n: matrices, size, size */
static tt_status make_definite(const Row* r, tt_tensor** in) {
  const tt_eye_opts o = {.set = TT_EYE_DEVICE, .device = kDevice};
  tt_tensor *x, *one, *sum;
  TRY(tt_scope_push(c));
  TRY(normal(r->dtype, r->n, &x));
  TRY(tt_transpose(c, x, 1, 2, &sum));
  TRY(tt_bmm(c, x, sum, &sum));
  TRY(tt_mul_f64(c, sum, 1.0 / (double)scaled(r->n[1]), &sum));
  TRY(tt_eye(c, scaled(r->n[1]), &o, &one));
  TRY(tt_add(c, sum, one, &sum));
  TRY(tt_scope_pop(c, &sum, 1));
  in[0] = sum;
  return normal(r->dtype, SHAPE(r->n[0], r->n[1], 1), in + 1);
}

/* ---- operators ---- */

#define RUN(name, call)                                                              \
  static tt_status run_##name(const Row* r, tt_tensor* const* in, tt_tensor** out) { \
    (void)r;                                                                         \
    return call;                                                                     \
  }
RUN(add, tt_add(c, in[0], in[1], out))
RUN(gelu, tt_gelu(c, in[0], NULL, out))
RUN(dropout, tt_dropout(c, in[0], NULL, out))
RUN(clone, tt_clone(c, in[0], NULL, out))
RUN(sum, tt_sum(c, in[0], NULL, out))
RUN(sum_dim, tt_sum_dim(c, in[0], SHAPE(r->option), 1, NULL, out))
RUN(max_dim, tt_max_dim(c, in[0], r->option, NULL, out, out + 1))
RUN(var, tt_var(c, in[0], SHAPE(r->option), 1, NULL, out))
RUN(logsumexp, tt_logsumexp(c, in[0], SHAPE(r->option), 1, NULL, out))
RUN(nansum, tt_nansum(c, in[0], SHAPE(r->option), 1, NULL, out))
RUN(softmax, tt_softmax(c, in[0], -1, NULL, out))
RUN(log_softmax, tt_log_softmax(c, in[0], -1, NULL, out))
RUN(cross_entropy, tt_cross_entropy(c, in[0], in[1], NULL, out))
RUN(embedding, tt_embedding(c, in[0], in[1], NULL, out))
RUN(index_select, tt_index_select(c, in[0], 0, in[1], out))
RUN(gather, tt_gather(c, in[0], 1, in[1], out))
RUN(scatter_add, tt_scatter_add(c, in[0], 1, in[1], in[2], out))
RUN(sort, tt_sort(c, in[0], NULL, out, out + 1))
RUN(topk, tt_topk(c, in[0], scaled(64), NULL, out, out + 1))
RUN(cumsum, tt_cumsum(c, in[0], -1, NULL, out))
RUN(matmul, tt_matmul(c, in[0], in[1], out))
RUN(group_norm, tt_group_norm(c, in[0], 16, in[1], in[2], NULL, out))
RUN(linear, tt_linear(c, in[0], in[1], in[2], out))
RUN(bmm, tt_bmm(c, in[0], in[1], out))
RUN(fft, tt_fft_fft(c, in[0], NULL, out))
RUN(rfft, tt_fft_rfft(c, in[0], NULL, out))
RUN(cholesky, tt_linalg_cholesky(c, in[0], NULL, out))
RUN(solve, tt_linalg_solve(c, in[0], in[1], NULL, out))

static tt_status run_mul_(const Row* r, tt_tensor* const* in, tt_tensor** out) {
  (void)r;
  (void)out;
  return tt_mul_(c, in[0], in[1]);
}
static tt_status run_transpose(const Row* r, tt_tensor* const* in, tt_tensor** out) {
  tt_tensor* view;
  (void)r;
  TRY(tt_transpose(c, in[0], 0, 1, &view));
  const tt_status s = tt_contiguous(c, view, out);
  tt_tensor_release(view);
  return s;
}
static tt_status run_cast(const Row* r, tt_tensor* const* in, tt_tensor** out) {
  const tt_to_opts o = {.set = TT_TO_DTYPE, .dtype = TT_BF16};
  (void)r;
  return tt_to(c, in[0], &o, out);
}
static tt_status run_argmax(const Row* r, tt_tensor* const* in, tt_tensor** out) {
  const tt_argmax_opts o = {.set = TT_ARGMAX_DIM, .dim = r->option};
  return tt_argmax(c, in[0], &o, out);
}
static tt_status run_layer_norm(const Row* r, tt_tensor* const* in, tt_tensor** out) {
  const int64_t size = tt_tensor_shape(in[0])[1];
  (void)r;
  return tt_layer_norm(c, in[0], &size, 1, in[1], in[2], NULL, out);
}
static tt_status run_rms_norm(const Row* r, tt_tensor* const* in, tt_tensor** out) {
  const int64_t size = tt_tensor_shape(in[0])[1];
  (void)r;
  return tt_rms_norm(c, in[0], &size, 1, in[1], NULL, out);
}
static tt_status run_vector_norm(const Row* r, tt_tensor* const* in, tt_tensor** out) {
  const int64_t dim = r->option;
  const tt_linalg_vector_norm_opts o = {.set = TT_LINALG_VECTOR_NORM_DIM, .dim = &dim, .n_dim = 1};
  return tt_linalg_vector_norm(c, in[0], &o, out);
}
static tt_status run_batch_norm(const Row* r, tt_tensor* const* in, tt_tensor** out) {
  const tt_batch_norm_opts o = {.set = TT_BATCH_NORM_TRAINING, .training = 1};
  (void)r;
  return tt_batch_norm(c, in[0], in[3], in[4], in[1], in[2], &o, out);
}
static tt_status run_attention(const Row* r, tt_tensor* const* in, tt_tensor** out) {
  const tt_scaled_dot_product_attention_opts o = {.set = TT_SCALED_DOT_PRODUCT_ATTENTION_IS_CAUSAL,
                                                  .is_causal = r->option};
  return tt_scaled_dot_product_attention(c, in[0], in[1], in[2], NULL, &o, out);
}
static tt_status run_conv2d(const Row* r, tt_tensor* const* in, tt_tensor** out) {
  const int64_t padding = r->n[4] / 2;
  const tt_conv2d_opts o = {.set = TT_CONV2D_PADDING, .padding = &padding, .n_padding = 1};
  return tt_conv2d(c, in[0], in[1], NULL, &o, out);
}

static tt_status run_cdist(const Row* r, tt_tensor* const* in, tt_tensor** out) {
  const tt_cdist_opts o = {.set = TT_CDIST_P, .p = r->option};
  return tt_cdist(c, in[0], in[1], &o, out);
}
static tt_status run_lstm(const Row* r, tt_tensor* const* in, tt_tensor** out) {
  const tt_tensor *const state[2] = {in[3], in[3]}, *const weights[2] = {in[1], in[2]};
  (void)r;
  return tt_lstm(c, in[0], state, 2, weights, 2, 0, 1, 0, 0, 0, 0, NULL, out, out + 1, out + 2);
}

/* ---- the table ---- */

#define M26 67108864.0  /* 2^26 */
#define M28 268435456.0 /* 2^28 */
#define BATCH (64.0 * 256 * 56 * 56)
#define CUBE(n) (2.0 * (n) * (n) * (n))
#define ATTENTION(d) (4.0 * 8 * 16 * 2048 * 2048 * (d))
#define CONV(c_in, c_out, size, kernel) \
  (2.0 * 128 * (size) * (size) * (c_in) * (c_out) * (kernel) * (kernel))
#define LSTM (2.0 * 64 * 64 * 4 * 512 * 1024)
/* Bytes: each operand is read once and each result written once; batch_norm reads its images twice.
   Backward of a product takes two products, of attention two and a half times its forward. */
#define SIZES(...) \
  { __VA_ARGS__ }
#define ROW(name, group, make, run, dtype, n, bytes, flops, n_grads, option) \
  { name, group, make_##make, run_##run, TT_##dtype, n, bytes, flops, n_grads, option }
static const Row kRows[] = {
    ROW("add, 2^26 f32", "pointwise", two, add, F32, SIZES(8192, 8192), 12 * M26, 0, 0, 0),
    ROW("add, 2^26 bf16", "pointwise", two, add, BF16, SIZES(8192, 8192), 6 * M26, 0, 0, 0),
    ROW("mul_, 2^26 f32", "pointwise", two, mul_, F32, SIZES(8192, 8192), 12 * M26, 0, 0, 0),
    ROW("add of a bias, 8192 x 8192 f32", "pointwise", bias, add, F32, SIZES(8192, 8192), 8 * M26,
        0, 0, 0),
    ROW("gelu, 2^26 f32", "pointwise", one, gelu, F32, SIZES(8192, 8192), 8 * M26, 0, 0, 0),
    ROW("gelu, 2^26 bf16", "pointwise", one, gelu, BF16, SIZES(8192, 8192), 4 * M26, 0, 0, 0),
    ROW("copy, 2^26 f32", "pointwise", one, clone, F32, SIZES(8192, 8192), 8 * M26, 0, 0, 0),
    ROW("cast f32 to bf16, 2^26", "pointwise", one, cast, F32, SIZES(8192, 8192), 6 * M26, 0, 0, 0),
    ROW("transpose, 8192 x 8192 f32", "copy", one, transpose, F32, SIZES(8192, 8192), 8 * M26, 0, 0,
        0),
    ROW("dropout, 2^26 f32", "random", one, dropout, F32, SIZES(8192, 8192), 8 * M26, 0, 0, 0),
    ROW("sum, 2^26 f32", "reduction", one, sum, F32, SIZES(8192, 8192), 4 * M26, 0, 0, 0),
    ROW("sum over dim 0, 8192 x 8192 f32", "reduction", one, sum_dim, F32, SIZES(8192, 8192),
        4 * M26, 0, 0, 0),
    ROW("sum over dim 1, 8192 x 8192 f32", "reduction", one, sum_dim, F32, SIZES(8192, 8192),
        4 * M26, 0, 0, 1),
    ROW("max over dim 1, 8192 x 8192 f32", "reduction", one, max_dim, F32, SIZES(8192, 8192),
        4 * M26, 0, 0, 1),
    ROW("argmax over dim 1, 8192 x 8192 f32", "reduction", one, argmax, F32, SIZES(8192, 8192),
        4 * M26, 0, 0, 1),
    ROW("var over dim 1, 8192 x 8192 f32", "reduction", one, var, F32, SIZES(8192, 8192), 4 * M26,
        0, 0, 1),
    ROW("norm over dim 1, 8192 x 8192 f32", "reduction", one, vector_norm, F32, SIZES(8192, 8192),
        4 * M26, 0, 0, 1),
    ROW("logsumexp over dim 1, 8192 x 8192 f32", "reduction", one, logsumexp, F32,
        SIZES(8192, 8192), 4 * M26, 0, 0, 1),
    ROW("nansum over dim 1, 8192 x 8192 f32", "reduction", one, nansum, F32, SIZES(8192, 8192),
        4 * M26, 0, 0, 1),
    ROW("softmax, 8192 x 8192 bf16", "rows", one, softmax, BF16, SIZES(8192, 8192), 4 * M26, 0, 0,
        0),
    ROW("softmax, 65536 x 512 f32", "rows", one, softmax, F32, SIZES(65536, 512), 4 * M26, 0, 0, 0),
    ROW("log_softmax, 8192 x 8192 bf16", "rows", one, log_softmax, BF16, SIZES(8192, 8192), 4 * M26,
        0, 0, 0),
    ROW("cross_entropy, 8192 x 32768 bf16", "rows", classes, cross_entropy, BF16,
        SIZES(8192, 32768), 2 * M28, 0, 0, 0),
    ROW("cross_entropy, 8192 x 32768 bf16, with backward", "rows", classes, cross_entropy, BF16,
        SIZES(8192, 32768), 6 * M28, 0, 1, 0),
    ROW("layer_norm, 16384 x 4096 bf16", "rows", one, layer_norm, BF16, SIZES(16384, 4096), 4 * M26,
        0, 0, 0),
    ROW("layer_norm, 16384 x 4096 bf16, with backward", "rows", norm, layer_norm, BF16,
        SIZES(16384, 4096), 10 * M26, 0, 3, 0),
    ROW("rms_norm, 16384 x 4096 bf16", "rows", norm, rms_norm, BF16, SIZES(16384, 4096), 4 * M26, 0,
        0, 0),
    ROW("rms_norm, 16384 x 4096 bf16, with backward", "rows", norm, rms_norm, BF16,
        SIZES(16384, 4096), 10 * M26, 0, 2, 0),
    ROW("group_norm of 16 groups, 64 x 256 x 56 x 56 f32", "rows", norm, group_norm, F32,
        SIZES(64, 256, 56, 56), 8 * BATCH, 0, 0, 0),
    ROW("group_norm of 16 groups, 64 x 256 x 56 x 56 f32, with backward", "rows", norm, group_norm,
        F32, SIZES(64, 256, 56, 56), 20 * BATCH, 0, 3, 0),
    ROW("batch_norm in training, 64 x 256 x 56 x 56 f32", "rows", batch, batch_norm, F32,
        SIZES(64, 256, 56, 56), 12 * BATCH, 0, 0, 0),
    ROW("batch_norm in training, 64 x 256 x 56 x 56 f32, with backward", "rows", batch, batch_norm,
        F32, SIZES(64, 256, 56, 56), 32 * BATCH, 0, 3, 0),
    ROW("batch_norm in training, 200704 x 256 f32", "rows", batch, batch_norm, F32,
        SIZES(200704, 256), 12 * BATCH, 0, 0, 0), /* as images with channels last */
    ROW("batch_norm in training, 200704 x 256 f32, with backward", "rows", batch, batch_norm, F32,
        SIZES(200704, 256), 32 * BATCH, 0, 3, 0),
    ROW("matmul, 4096^3 bf16", "matmul", product, matmul, BF16, SIZES(4096, 4096, 4096), 0,
        CUBE(4096), 0, 0),
    ROW("matmul, 8192^3 bf16", "matmul", product, matmul, BF16, SIZES(8192, 8192, 8192), 0,
        CUBE(8192), 0, 0),
    ROW("matmul, 4096^3 f16", "matmul", product, matmul, F16, SIZES(4096, 4096, 4096), 0,
        CUBE(4096), 0, 0),
    ROW("matmul, 8192^3 f16", "matmul", product, matmul, F16, SIZES(8192, 8192, 8192), 0,
        CUBE(8192), 0, 0),
    ROW("linear with bias, 8192 x 4096 x 4096 bf16", "matmul", linear, linear, BF16,
        SIZES(8192, 4096, 4096), 0, 2 * CUBE(4096), 0, 0),
    ROW("bmm, 64 x 512^3 bf16", "matmul", two, bmm, BF16, SIZES(64, 512, 512), 0, 64 * CUBE(512), 0,
        0),
    ROW("matmul, 4096^3 f32", "matmul f32", product, matmul, F32, SIZES(4096, 4096, 4096), 0,
        CUBE(4096), 0, 0),
    ROW("matmul, 2048^3 f32", "matmul f32", product, matmul, F32, SIZES(2048, 2048, 2048), 0,
        CUBE(2048), 0, 0),
    ROW("attention, d 64 bf16", "attention", three, attention, BF16, SIZES(8, 16, 2048, 64), 0,
        ATTENTION(64), 0, 0),
    ROW("attention, d 64 bf16, with backward", "attention", three, attention, BF16,
        SIZES(8, 16, 2048, 64), 0, ATTENTION(64) * 3.5, 3, 0),
    ROW("attention, d 64 bf16, causal", "attention", three, attention, BF16, SIZES(8, 16, 2048, 64),
        0, ATTENTION(64) / 2, 0, 1),
    ROW("attention, d 64 bf16, causal, with backward", "attention", three, attention, BF16,
        SIZES(8, 16, 2048, 64), 0, ATTENTION(64) * 1.75, 3, 1),
    ROW("attention, d 128 bf16", "attention", three, attention, BF16, SIZES(8, 16, 2048, 128), 0,
        ATTENTION(128), 0, 0),
    ROW("attention, d 128 bf16, with backward", "attention", three, attention, BF16,
        SIZES(8, 16, 2048, 128), 0, ATTENTION(128) * 3.5, 3, 0),
    ROW("attention, d 128 bf16, causal", "attention", three, attention, BF16,
        SIZES(8, 16, 2048, 128), 0, ATTENTION(128) / 2, 0, 1),
    ROW("attention, d 128 bf16, causal, with backward", "attention", three, attention, BF16,
        SIZES(8, 16, 2048, 128), 0, ATTENTION(128) * 1.75, 3, 1),
    ROW("embedding, 65536 of 32768 x 1024 f32", "index", table, embedding, F32,
        SIZES(32768, 1024, 65536), 8 * M26, 0, 0, 0),
    ROW("index_select, 65536 of 32768 x 1024 f32", "index", table, index_select, F32,
        SIZES(32768, 1024, 65536), 8 * M26, 0, 0, 0),
    ROW("gather, 8192 x 8192 f32", "index", gather, gather, F32, SIZES(8192, 8192), 16 * M26, 0, 0,
        0),
    ROW("scatter_add, 4096 x 4096 f32", "index", gather, scatter_add, F32, SIZES(4096, 4096),
        5 * M26, 0, 0, 0),
    ROW("cumsum, 8192 x 8192 f32", "scan", one, cumsum, F32, SIZES(8192, 8192), 8 * M26, 0, 0, 0),
    ROW("sort, 2^24 f32", "sort", one, sort, F32, SIZES(16777216), 4 * M26, 0, 0, 0),
    ROW("sort, 8192 x 2048 f32", "sort", one, sort, F32, SIZES(8192, 2048), 4 * M26, 0, 0, 0),
    ROW("topk 64, 8192 x 8192 f32", "sort", one, topk, F32, SIZES(8192, 8192), 4 * M26, 0, 0, 0),
    ROW("conv2d, 64 to 64, 56 x 56, 3 x 3, bf16", "conv", conv, conv2d, BF16,
        SIZES(128, 64, 64, 56, 3), 0, CONV(64, 64, 56, 3), 0, 0),
    ROW("conv2d, 64 to 64, 56 x 56, 3 x 3, bf16, with backward", "conv", conv, conv2d, BF16,
        SIZES(128, 64, 64, 56, 3), 0, CONV(64, 64, 56, 3) * 3, 2, 0),
    ROW("conv2d, 256 to 256, 14 x 14, 3 x 3, bf16", "conv", conv, conv2d, BF16,
        SIZES(128, 256, 256, 14, 3), 0, CONV(256, 256, 14, 3), 0, 0),
    ROW("conv2d, 256 to 256, 14 x 14, 3 x 3, bf16, with backward", "conv", conv, conv2d, BF16,
        SIZES(128, 256, 256, 14, 3), 0, CONV(256, 256, 14, 3) * 3, 2, 0),
    ROW("conv2d, 256 to 64, 56 x 56, 1 x 1, bf16", "conv", conv, conv2d, BF16,
        SIZES(128, 256, 64, 56, 1), 0, CONV(256, 64, 56, 1), 0, 0),
    ROW("conv2d, 256 to 64, 56 x 56, 1 x 1, bf16, with backward", "conv", conv, conv2d, BF16,
        SIZES(128, 256, 64, 56, 1), 0, CONV(256, 64, 56, 1) * 3, 2, 0),
    ROW("conv2d, 64 to 64, 56 x 56, 3 x 3, f32", "conv f32", conv, conv2d, F32,
        SIZES(128, 64, 64, 56, 3), 0, CONV(64, 64, 56, 3), 0, 0),
    ROW("conv2d, 64 to 64, 56 x 56, 3 x 3, f32, with backward", "conv f32", conv, conv2d, F32,
        SIZES(128, 64, 64, 56, 3), 0, CONV(64, 64, 56, 3) * 3, 2, 0),
    ROW("conv2d, 256 to 256, 14 x 14, 3 x 3, f32", "conv f32", conv, conv2d, F32,
        SIZES(128, 256, 256, 14, 3), 0, CONV(256, 256, 14, 3), 0, 0),
    ROW("conv2d, 256 to 256, 14 x 14, 3 x 3, f32, with backward", "conv f32", conv, conv2d, F32,
        SIZES(128, 256, 256, 14, 3), 0, CONV(256, 256, 14, 3) * 3, 2, 0),
    ROW("conv2d, 256 to 64, 56 x 56, 1 x 1, f32", "conv f32", conv, conv2d, F32,
        SIZES(128, 256, 64, 56, 1), 0, CONV(256, 64, 56, 1), 0, 0),
    ROW("conv2d, 256 to 64, 56 x 56, 1 x 1, f32, with backward", "conv f32", conv, conv2d, F32,
        SIZES(128, 256, 64, 56, 1), 0, CONV(256, 64, 56, 1) * 3, 2, 0),
    ROW("lstm, 64 sequences of 64 steps, 512 to 512, f32", "lstm", lstm, lstm, F32,
        SIZES(64, 64, 512), 0, LSTM, 0, 0),
    ROW("lstm, 64 sequences of 64 steps, 512 to 512, f32, with backward", "lstm", lstm, lstm, F32,
        SIZES(64, 64, 512), 0, LSTM * 3, 3, 0),
    ROW("lstm, 64 sequences of 64 steps, 512 to 512, bf16", "lstm", lstm, lstm, BF16,
        SIZES(64, 64, 512), 0, LSTM, 0, 0),
    ROW("lstm, 64 sequences of 64 steps, 512 to 512, bf16, with backward", "lstm", lstm, lstm, BF16,
        SIZES(64, 64, 512), 0, LSTM * 3, 3, 0),
    ROW("cdist of order 1, 4096 x 4096 rows of 64, f32", "distance", two, cdist, F32,
        SIZES(4096, 64), 4 * 4096.0 * (4096 + 128), 0, 0, 1),
    ROW("cdist of order 1, 4096 x 4096 rows of 64, f32, with backward", "distance", two, cdist, F32,
        SIZES(4096, 64), 12 * 4096.0 * 4096, 0, 2, 1),
    ROW("fft, 16 x 2^20 c64", "fft", one, fft, C64, SIZES(16, 1048576), 4 * M26, 0, 0, 0),
    ROW("rfft, 16 x 2^20 f32", "fft", one, rfft, F32, SIZES(16, 1048576), 2 * M26, 0, 0, 0),
    ROW("cholesky, 4096 x 32 x 32 f32", "linalg", definite, cholesky, F32, SIZES(4096, 32, 32),
        0.5 * M26, 0, 0, 0),
    ROW("cholesky, 64 x 256 x 256 f32", "linalg", definite, cholesky, F32, SIZES(64, 256, 256),
        0.5 * M26, 0, 0, 0),
    ROW("solve, 4096 x 32 x 32 f32", "linalg", definite, solve, F32, SIZES(4096, 32, 32),
        0.25 * M26, 0, 0, 0),
    ROW("solve, 64 x 256 x 256 f32", "linalg", definite, solve, F32, SIZES(64, 256, 256),
        0.25 * M26, 0, 0, 0),
};

/* ---- measuring ---- */

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}
static int by_value(const void* x, const void* y) {
  const double d = *(const double*)x - *(const double*)y;
  return (d > 0) - (d < 0);
}
static double median(double* us, int n) {
  qsort(us, (size_t)n, sizeof *us, by_value);
  return us[n / 2];
}
static void release(tt_tensor** list, int n) {
  for (int i = 0; i < n; i++) {
    tt_tensor_release(list[i]);
    list[i] = NULL;
  }
}

static tt_status call(const Row* r, tt_tensor** in) {
  tt_tensor *out[kResults] = {NULL}, *grads[kOperands] = {NULL};
  tt_status s = r->run(r, in, out);
  if (!s && r->n_grads) {
    const tt_grad_opts o = {.set = TT_GRAD_GRAD_OUTPUTS,
                            .grad_outputs = (const tt_tensor* const*)&in[kGradient],
                            .n_grad_outputs = 1};
    s = tt_grad(c, (const tt_tensor* const*)out, 1, (const tt_tensor* const*)in, r->n_grads, &o,
                grads);
  }
  release(out, kResults);
  release(grads, kOperands);
  return s;
}
static tt_status make(const Row* r, tt_tensor** in) {
  tt_tensor* out[kResults] = {NULL};
  TRY(r->make(r, in));
  if (!r->n_grads) return TT_OK;
  for (int i = 0; i < r->n_grads; i++) TRY(tt_requires_grad_(c, in[i], 1));
  TRY(r->run(r, in, out));
  int64_t shape[kDims] = {0};
  const int ndim = (int)tt_tensor_ndim(out[0]);
  for (int i = 0; i < ndim; i++) shape[i] = tt_tensor_size(out[0], i);
  release(out, kResults);
  return randn(r->dtype, shape, ndim, &in[kGradient]);
}

/* Microseconds of a call, with the device's work, by the clock of the host. */
static tt_status once(const Row* r, tt_tensor** in, double* us) {
  const double begin = now_us();
  TRY(call(r, in));
  TRY(tt_synchronize(c, &kDevice));
  *us = now_us() - begin;
  return TT_OK;
}
static tt_status measure(const Row* r, tt_tensor* in[kSets][kOperands], double* result) {
  double us[kRounds], ms;
  tt_event *start = NULL, *stop = NULL;
  for (int k = 0; k < sets; k++) TRY(once(r, in[k], &us[k]));
  *result = sets > 1 ? median(us + 1, sets - 1) : us[0];
  if (*result > kSlowCall) return TT_OK;
  const int n = *result * sets > kSlowRound && rounds > kSlowRounds ? kSlowRounds : rounds;
  TRY(tt_event_new(c, &kDevice, 1, &start));
  tt_status s = tt_event_new(c, &kDevice, 1, &stop);
  for (int i = 0; !s && i < n; i++) {
    s = tt_event_record(c, start, NULL);
    for (int k = 0; !s && k < sets; k++) s = call(r, in[k]);
    if (!s) s = tt_event_record(c, stop, NULL);
    if (!s) s = tt_event_synchronize(c, stop);
    if (!s) s = tt_event_elapsed(c, start, stop, &ms);
    us[i] = ms * 1000 / sets;
  }
  tt_event_release(start);
  tt_event_release(stop);
  if (!s) *result = median(us, n);
  return s;
}

static void print_row(const char* name, const char* group, double us, double bytes, double flops) {
  printf("{\"%s\": {\"us\": %.3f, \"group\": \"%s\", \"bytes\": %.0f, \"flops\": %.0f}}\n", name,
         us, group, bytes, flops);
  fflush(stdout);
}
/* A failing row is null. The program ends if the device is lost. */
static void print_failure(const char* name) {
  fprintf(stderr, "bench: %s: %s\n", name, tt_ctx_error(c)->message);
  printf("{\"%s\": null}\n", name);
  fflush(stdout);
  if (!tt_synchronize(c, &kDevice)) return;
  if (!tt_synchronize(c, &kDevice)) return; /* the first one has reported a fault in values */
  fprintf(stderr, "bench: the device is lost: %s\n", tt_ctx_error(c)->message);
  exit(1);
}

static void measure_row(const Row* r) {
  tt_tensor* in[kSets][kOperands] = {{NULL}};
  double us = 0;
  tt_status s = TT_OK;
  for (int k = 0; !s && k < sets; k++) s = make(r, in[k]);
  if (!s) s = measure(r, in, &us);
  if (s) {
    print_failure(r->name);
  } else {
    print_row(r->name, r->group, us, r->bytes, r->flops);
  }
  for (int k = 0; k < kSets; k++) release(in[k], kOperands);
  tt_trim(c);
}

/* ---- Adam ---- */

enum { kParams = 8 };
static tt_optimizer* adam;
static tt_status run_adam(const Row* r, tt_tensor* const* in, tt_tensor** out) {
  (void)r;
  (void)in;
  (void)out;
  return tt_optim_step(c, adam);
}
static const Row kAdam = {
    "Adam, 8 x 4096 x 4096 f32", "Adam", NULL, run_adam, TT_F32, {4096, 4096}, 56 * M26, 0, 0, 0};
static tt_status make_adam(tt_tensor** params) {
  for (int k = 0; k < kParams; k++) {
    tt_tensor* grad;
    TRY(normal(TT_F32, kAdam.n, &params[k]));
    TRY(tt_requires_grad_(c, params[k], 1));
    TRY(normal(TT_F32, kAdam.n, &grad));
    const tt_status s = tt_tensor_set_grad(c, params[k], grad);
    tt_tensor_release(grad);
    TRY(s);
  }
  return tt_optim_adam(c, params, kParams, NULL, &adam);
}
static void measure_adam(void) {
  tt_tensor *params[kParams] = {NULL}, *none[kSets][kOperands] = {{NULL}};
  double us = 0;
  if (make_adam(params) || measure(&kAdam, none, &us)) {
    print_failure(kAdam.name);
  } else {
    print_row(kAdam.name, kAdam.group, us, kAdam.bytes, 0);
  }
  tt_optim_release(adam);
  release(params, kParams);
}

/* ---- the host's time of small calls ---- */

static tt_status run_add_(const Row* r, tt_tensor* const* in, tt_tensor** out) {
  (void)r;
  (void)out;
  return tt_add_(c, in[0], in[1]);
}
static tt_status run_recorded_mul(const Row* r, tt_tensor* const* in, tt_tensor** out) {
  (void)r;
  return tt_mul(c, in[2], in[2], out);
}
/* Only the first one has a gate. */
static const Row kTiny[] = {
    {"host time of a tiny add", "tiny add", NULL, run_add, TT_F32, {4, 4}, 0, 0, 0, 0},
    {"host time of a tiny add_", "host", NULL, run_add_, TT_F32, {4, 4}, 0, 0, 0, 0},
    {"host time of a tiny recorded mul",
     "host",
     NULL,
     run_recorded_mul,
     TT_F32,
     {4, 4},
     0,
     0,
     0,
     0},
    {"host time of a tiny matmul", "host", NULL, run_matmul, TT_F32, {4, 4}, 0, 0, 0, 0},
};
static tt_status host_time(const Row* r, tt_tensor** in, double* result) {
  const int calls = share > 1 ? 20 : kTinyCalls;
  double us[kRounds];
  TRY(make_three(r, in));
  TRY(tt_requires_grad_(c, in[2], 1));
  for (int i = 0; i < rounds; i++) {
    TRY(tt_synchronize(c, &kDevice));
    const double begin = now_us();
    for (int k = 0; k < calls; k++) TRY(call(r, in));
    us[i] = (now_us() - begin) / calls;
  }
  *result = median(us, rounds);
  return TT_OK;
}
static void measure_tiny(const Row* r) {
  tt_tensor* in[kOperands] = {NULL};
  double us = 0;
  if (host_time(r, in, &us)) {
    print_failure(r->name);
  } else {
    print_row(r->name, r->group, us, 0, 0);
  }
  release(in, kOperands);
}

/* ---- */

static int asked(const char* group, int n, char** groups) {
  for (int i = 0; i < n; i++)
    if (!strcmp(group, groups[i])) return 1;
  return !n;
}
/* Whether a row is listed in TT_GPU_FIRST. */
static int is_first(const char* name) {
  static char list[1 << 14] = "\n";
  if (!list[1]) {
    const char* path = getenv("TT_GPU_FIRST");
    FILE* file = path ? fopen(path, "r") : NULL;
    if (file) {
      list[1 + fread(list + 1, 1, sizeof list - 2, file)] = 0;
      fclose(file);
    }
  }
  char line[128];
  snprintf(line, sizeof line, "\n%s\n", name);
  return strstr(list, line) != NULL;
}
/* Measures products and convolutions of float32 once more where TF32 is allowed, and gradients of
   attention where sums may have any order. */
static void measure_again(const Row* row) {
  tt_cuda_math_opts math = {
      .set = TT_CUDA_MATH_MATMUL_TF32 | TT_CUDA_MATH_CONV_TF32, .matmul_tf32 = 1, .conv_tf32 = 1};
  const char* how = "TF32";
  char name[96];
  Row again = *row;
  if (!strcmp(row->group, "matmul f32")) again.group = "matmul tf32";
  else if (!strcmp(row->group, "conv f32")) again.group = "conv tf32";
  else if (!strcmp(row->group, "attention") && row->n_grads) {
    math = (tt_cuda_math_opts){.set = TT_CUDA_MATH_DETERMINISTIC, .deterministic = 0};
    how = "any order";
  } else return;
  snprintf(name, sizeof name, "%s (%s)", row->name, how);
  again.name = name;
  if (tt_ctx_set_cuda_math(c, &math)) return;
  measure_row(&again);
  tt_ctx_set_cuda_math(c, NULL);
}

/* Measures the rows that are listed in TT_GPU_FIRST, or the others. */
static void measure_rows(int first, int n, char** groups) {
  for (size_t i = 0; i < sizeof kRows / sizeof *kRows; i++) {
    if (is_first(kRows[i].name) != first || !asked(kRows[i].group, n, groups)) continue;
    measure_row(&kRows[i]);
    measure_again(&kRows[i]);
  }
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: bench LIBRARY|- SHARE [GROUP...]\n");
    return 2;
  }
  share = atoll(argv[2]);
  if (share < 1 || tt_ctx_new(NULL, &c)) return 1;
  if (share > 1) sets = rounds = 1;
  if (tt_load_cuda(c, strcmp(argv[1], "-") ? argv[1] : NULL)) {
    fprintf(stderr, "bench: %s\n", tt_ctx_error(c)->message);
    return 1;
  }
  argc -= 3;
  argv += 3;
  measure_rows(1, argc, argv);
  for (size_t i = 0; i < sizeof kTiny / sizeof *kTiny; i++)
    if (asked(kTiny[i].group, argc, argv)) measure_tiny(&kTiny[i]);
  if (asked(kAdam.group, argc, argv)) measure_adam();
  measure_rows(0, argc, argv);
  tt_ctx_release(c);
  return 0;
}
