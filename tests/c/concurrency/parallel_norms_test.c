/* One or a few long rows, channels or planes on several threads: normalisation, class losses and
   pooling are right, and bit-equal for every number of threads. */
#include "everywhere.h"

/* The gradient of leaf_of if the gradient of y is g. */
static tt_tensor* gradient_of(tt_ctx* x, const tt_tensor* y, const tt_tensor* leaf_of,
                              const tt_tensor* g) {
  const tt_grad_opts o = {.set = TT_GRAD_GRAD_OUTPUTS | TT_GRAD_RETAIN_GRAPH,
                          .grad_outputs = &g,
                          .n_grad_outputs = 1,
                          .retain_graph = 1};
  tt_tensor* dx;
  DO(tt_grad(x, &y, 1, &leaf_of, 1, &o, &dx));
  return dx;
}
static tt_tensor* leaf_like(tt_ctx* x, const tt_tensor* t) {
  tt_tensor* l;
  DO(tt_clone(x, t, NULL, &l));
  DO(tt_requires_grad_(x, l, 1));
  return l;
}

/* ---- layer_norm: [rows][n]; the gradient of y is x ---- */

typedef struct Norm {
  double *x, *y, *dx;          /* a row of n elements, `step` apart */
  const double *weight, *bias; /* NULL: 1 and 0 */
  Sum *dw, *db;                /* sums over rows, or NULL */
  double* sizes;               /* the magnitude of their terms */
} Norm;
static void check_row(const Norm* r, int64_t n, double eps) {
  Sum sum = {0, 0}, square = {0, 0}, su = {0, 0}, suh = {0, 0};
  double size = 0, size_h = 0, mean, rest, rstd, mean_u, mean_uh;
  int64_t i;
  for (i = 0; i < n; i++) add_to(&sum, r->x[i]);
  mean = total(sum) / (double)n; /* and the rest of the quotient */
  rest = (fma(-mean, (double)n, sum.high) + sum.low) / (double)n;
  for (i = 0; i < n; i++) {
    const double d = r->x[i] - mean - rest;
    add_product(&square, d, d);
  }
  rstd = 1 / sqrt(total(square) / (double)n + 1e-5);
  for (i = 0; i < n; i++) {
    const double h = (r->x[i] - mean - rest) * rstd;
    const double w = r->weight ? r->weight[i] : 1;
    const double u = r->x[i] * w;
    const double want = h * w + (r->bias ? r->bias[i] : 0);
    check_near(r->y[i], want, eps * 16 * (fabs(h * w) + fabs(w) + fabs(want)));
    add_to(&su, u);
    add_product(&suh, u, h);
    size += fabs(u);
    size_h += fabs(u * h);
    if (r->dw) {
      add_product(&r->dw[i], r->x[i], h);
      add_to(&r->db[i], r->x[i]);
      r->sizes[i] += fabs(r->x[i]) * (fabs(h) + 1);
    }
  }
  mean_u = total(su) / (double)n;
  mean_uh = total(suh) / (double)n;
  for (i = 0; i < n; i++) {
    const double h = (r->x[i] - mean - rest) * rstd;
    const double u = r->x[i] * (r->weight ? r->weight[i] : 1);
    const double want = rstd * (u - mean_u - h * mean_uh);
    check_near(r->dx[i], want,
               eps * 16 * rstd * (fabs(u) + size / (double)n + (fabs(h) + 1) * size_h / (double)n));
  }
}

static const tt_tensor *weight, *bias; /* of layer_norm, or NULL */
static void normalise(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const int64_t rows = tt_tensor_shape(t)[0];
  const int64_t n = tt_tensor_shape(t)[1];
  const double eps = epsilon(tt_tensor_dtype(t));
  tt_tensor* in = leaf_like(x, t);
  tt_tensor* w = weight ? leaf_like(x, weight) : NULL;
  tt_tensor* e = bias ? leaf_like(x, bias) : NULL;
  tt_tensor *y, *dx, *dw = NULL, *db = NULL;
  int64_t r;
  DO(tt_layer_norm(x, in, &n, 1, w, e, NULL, &y));
  dx = gradient_of(x, y, in, t);
  keep(b, y);
  keep(b, dx);
  if (w) {
    dw = gradient_of(x, y, w, t);
    keep(b, dw);
  }
  if (e) {
    db = gradient_of(x, y, e, t);
    keep(b, db);
  }
  if (w && e) { /* weight and bias */
    const tt_backward_opts o = {.set = TT_BACKWARD_GRADIENT, .gradient = t};
    tt_tensor* g;
    DO(tt_backward(x, y, &o));
    DO(tt_tensor_grad(x, w, &g));
    assert_memory_equal(tt_tensor_data(g), tt_tensor_data(dw),
                        (size_t)(n * tt_dtype_size(tt_tensor_dtype(g))));
    DO(tt_tensor_grad(x, e, &g));
    assert_memory_equal(tt_tensor_data(g), tt_tensor_data(db),
                        (size_t)(n * tt_dtype_size(tt_tensor_dtype(g))));
  }
  if (!alone(x)) return;
  {
    double* v = values_of(t);
    double* got = values_of(y);
    double* grad = values_of(dx);
    double* factor = w ? values_of(w) : NULL;
    double* shift = e ? values_of(e) : NULL;
    Sum* sums = calloc((size_t)(2 * n), sizeof *sums);
    double* sizes = calloc((size_t)n, sizeof *sizes);
    for (r = 0; r < rows; r++) {
      const Norm row = {v + r * n, got + r * n, grad + r * n, factor, shift, sums, sums + n, sizes};
      check_row(&row, n, eps);
    }
    free(got);
    free(grad);
    free(factor);
    free(shift);
    got = dw ? values_of(dw) : NULL;
    grad = db ? values_of(db) : NULL;
    for (r = 0; r < n; r++) {
      if (dw) check_near(got[r], total(sums[r]), eps * 8 * sizes[r]);
      if (db) check_near(grad[r], total(sums[n + r]), eps * 8 * sizes[r]);
    }
    free(v);
    free(got);
    free(grad);
    free(sums);
    free(sizes);
  }
}
static void test_layer_norm(void** state) {
  static const tt_dtype kDtypes[] = {TT_F32, TT_F64, TT_BF16};
  size_t d;
  (void)state;
  for (d = 0; d < 3; d++) {
    weight = filled(SHAPE(100003), kDtypes[d], few);
    bias = filled(SHAPE(100003), kDtypes[d], few);
    same_everywhere(normalise, filled(SHAPE(1, 100003), kDtypes[d], wide));
    weight = NULL;
    same_everywhere(normalise, filled(SHAPE(1, 100003), kDtypes[d], few));
    weight = filled(SHAPE(70001), kDtypes[d], few);
    bias = NULL;
    same_everywhere(normalise, filled(SHAPE(3, 70001), kDtypes[d], wide));
    weight = filled(SHAPE(9001), kDtypes[d], few);
    bias = filled(SHAPE(9001), kDtypes[d], few);
    same_everywhere(normalise, filled(SHAPE(20, 9001), kDtypes[d], wide));
    weight = filled(SHAPE(3), kDtypes[d], few);
    bias = filled(SHAPE(3), kDtypes[d], few);
    same_everywhere(normalise, filled(SHAPE(40001, 3), kDtypes[d], few));
    weight = bias = NULL;
  }
}

static void normalise_groups(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const int64_t n = tt_tensor_numel(t);
  tt_tensor *in = leaf_like(x, t), *y, *dx;
  DO(tt_group_norm(x, in, 1, NULL, NULL, NULL, &y));
  dx = gradient_of(x, y, in, t);
  keep(b, y);
  keep(b, dx);
  if (alone(x)) {
    double* v = values_of(t);
    double* got = values_of(y);
    double* grad = values_of(dx);
    const Norm row = {v, got, grad, NULL, NULL, NULL, NULL, NULL};
    check_row(&row, n, epsilon(tt_tensor_dtype(t)));
    free(v);
    free(got);
    free(grad);
  }
}
static void test_group_norm(void** state) {
  (void)state;
  same_everywhere(normalise_groups, filled(SHAPE(1, 6, 50, 301), TT_F32, wide));
  same_everywhere(normalise_groups, filled(SHAPE(1, 4, 20001), TT_F64, few));
}

/* ---- losses of classes: [outer][classes][inner] ---- */

static double class_number(void) { return draw() % 5 ? (double)(draw() % 50001) : -100; }
static double small_class(void) { return draw() % 301; }
/* A row: log-sum-exp of the n classes, `step` apart; the loss and its gradient are checked with
   it. */
static void check_classes(const double* x, double loss, const double* dx, int64_t target, int64_t n,
                          int64_t step, int log_of, double eps) {
  Sum sum = {0, 0};
  double top = -INFINITY, lse = 0;
  int64_t i;
  for (i = 0; i < n; i++) top = x[i * step] > top ? x[i * step] : top;
  for (i = 0; i < n; i++) add_to(&sum, exp(x[i * step] - top));
  if (!log_of) lse = top + log(total(sum));
  check_near(loss, target < 0 ? 0 : lse - x[target * step],
             target < 0 ? 0 : eps * 4 * (fabs(lse) + fabs(x[target * step]) + 1));
  for (i = 0; i < n; i++) {
    const double soft = log_of ? 0 : exp(x[i * step] - lse);
    const double want = target < 0 ? 0 : soft - (i == target);
    check_near(dx[i * step], want,
               eps * (1 + fabs(lse) + fabs(x[i * step])) * 4 * soft + eps * (i == target));
  }
}
static const tt_tensor* classes; /* the targets */
static void lose(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const int64_t* shape = tt_tensor_shape(t);
  const int64_t outer = shape[0];
  const int64_t n = shape[1];
  const int64_t all = tt_tensor_numel(t);
  const int64_t inner = all / outer / n;
  const int64_t* target = tt_tensor_data(classes);
  double* v = values_of(t);
  int log_of;
  for (log_of = 0; log_of < 2; log_of++) {
    const tt_cross_entropy_opts each = {.set = TT_CROSS_ENTROPY_REDUCTION,
                                        .reduction = TT_REDUCTION_NONE};
    const tt_nll_loss_opts each_nll = {.set = TT_NLL_LOSS_REDUCTION,
                                       .reduction = TT_REDUCTION_NONE};
    tt_tensor *in = leaf_like(x, t), *y, *ones, *dx;
    int64_t r;
    DO(log_of ? tt_nll_loss(x, in, classes, &each_nll, &y)
              : tt_cross_entropy(x, in, classes, &each, &y));
    DO(tt_ones_like(x, y, NULL, &ones));
    dx = gradient_of(x, y, in, ones);
    keep(b, y);
    keep(b, dx);
    if (alone(x)) {
      double* loss = values_of(y);
      double* grad = values_of(dx);
      for (r = 0; r < outer * inner; r++) {
        const int64_t at = r / inner * n * inner + r % inner;
        check_classes(v + at, loss[r], grad + at, target[r], n, inner, log_of,
                      epsilon(tt_tensor_dtype(t)));
      }
      free(loss);
      free(grad);
    }
  }
  free(v);
}
static void test_losses(void** state) {
  static const tt_dtype kDtypes[] = {TT_F32, TT_F64, TT_BF16};
  size_t d;
  (void)state;
  for (d = 0; d < 3; d++) {
    classes = filled(SHAPE(1), TT_I64, class_number);
    same_everywhere(lose, filled(SHAPE(1, 100003), kDtypes[d], few));
    classes = filled(SHAPE(3), TT_I64, class_number);
    same_everywhere(lose, filled(SHAPE(3, 70001), kDtypes[d], few));
    classes = filled(SHAPE(1, 3), TT_I64, class_number);
    same_everywhere(lose, filled(SHAPE(1, 50001, 3), kDtypes[d], few));
    classes = filled(SHAPE(2, 300), TT_I64, small_class);
    same_everywhere(lose, filled(SHAPE(2, 301, 300), kDtypes[d], few));
  }
}

/* ---- batch_norm: one channel, and a few ---- */

static void normalise_channels(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const tt_batch_norm_opts training = {.set = TT_BATCH_NORM_TRAINING, .training = 1};
  const tt_ones_opts dtype = {.set = TT_ONES_DTYPE, .dtype = tt_tensor_dtype(t)};
  const int64_t* shape = tt_tensor_shape(t);
  const int64_t images = shape[0];
  const int64_t channels = shape[1];
  const int64_t n = tt_tensor_numel(t) / images / channels;
  tt_tensor *in = leaf_like(x, t), *y, *dx, *ones, *w, *e, *dw, *db;
  int64_t i, c1;
  DO(tt_ones(x, SHAPE(channels), &dtype, &ones));
  w = leaf_like(x, ones);
  e = leaf_like(x, ones);
  DO(tt_batch_norm(x, in, NULL, NULL, w, e, &training, &y));
  dx = gradient_of(x, y, in, t);
  dw = gradient_of(x, y, w, t);
  db = gradient_of(x, y, e, t);
  keep(b, y);
  keep(b, dx);
  keep(b, dw);
  keep(b, db);
  if (alone(x)) {
    double* v = values_of(t);
    double* got = values_of(y);
    double* grad = values_of(dx);
    double* gw = values_of(dw);
    double* gb = values_of(db);
    double* all = malloc((size_t)(5 * images * n) * sizeof *all);
    const double eps = epsilon(tt_tensor_dtype(t));
    for (c1 = 0; c1 < channels; c1++) {
      Norm row = {all,
                  all + images * n,
                  all + 2 * images * n,
                  all + 3 * images * n,
                  all + 4 * images * n,
                  0,
                  0,
                  0};
      Sum sum = {0, 0}, product = {0, 0};
      double size = 0;
      for (i = 0; i < images * n; i++) {
        const int64_t at = (i / n * channels + c1) * n + i % n;
        row.x[i] = v[at];
        row.y[i] = got[at];
        row.dx[i] = grad[at];
        all[3 * images * n + i] = all[4 * images * n + i] = 1;
        add_to(&sum, v[at]);
        add_product(&product, v[at], got[at] - 1);
        size += fabs(v[at]) * (2 + fabs(got[at]));
      }
      check_row(&row, images * n, eps);
      check_near(gb[c1], total(sum), eps * 4 * size);
      check_near(gw[c1], total(product), eps * 16 * size);
    }
    free(v);
    free(got);
    free(grad);
    free(gw);
    free(gb);
    free(all);
  }
}
static void test_batch_norm(void** state) {
  static const tt_dtype kDtypes[] = {TT_F32, TT_F64, TT_BF16};
  size_t d;
  (void)state;
  for (d = 0; d < 3; d++) {
    same_everywhere(normalise_channels, filled(SHAPE(1, 1, 300, 401), kDtypes[d], wide));
    same_everywhere(normalise_channels, filled(SHAPE(2, 3, 70001), kDtypes[d], few));
    same_everywhere(normalise_channels, filled(SHAPE(120001, 1), kDtypes[d], few));
    same_everywhere(normalise_channels, filled(SHAPE(60001, 2), kDtypes[d], few));
  }
}

/* ---- pooling of a plane ---- */

typedef enum Pool { kMax3, kMax2, kAverage3, kFewMaxima, kFewAverages, kPools } Pool;
static void pool(tt_ctx* x, Pool kind, const tt_tensor* t, tt_tensor** y) {
  const tt_max_pool2d_opts apart = {.set = TT_MAX_POOL2D_STRIDE | TT_MAX_POOL2D_PADDING,
                                    .stride = (const int64_t[]){2},
                                    .n_stride = 1,
                                    .padding = (const int64_t[]){1},
                                    .n_padding = 1};
  const tt_avg_pool2d_opts beside = {
      .set = TT_AVG_POOL2D_STRIDE, .stride = (const int64_t[]){1}, .n_stride = 1};
  tt_tensor* index;
  if (kind == kMax3) DO(tt_max_pool2d(x, t, SHAPE(3), &apart, y));
  if (kind == kMax2) DO(tt_max_pool2d(x, t, SHAPE(2), NULL, y));
  if (kind == kAverage3) DO(tt_avg_pool2d(x, t, SHAPE(3), &beside, y));
  if (kind == kFewMaxima) DO(tt_adaptive_max_pool2d(x, t, SHAPE(7, 5), y, &index));
  if (kind == kFewAverages) DO(tt_adaptive_avg_pool2d(x, t, SHAPE(7, 5), y));
}
/* Sets *begin and *end to the elements of n that window o of `out` covers. */
static void window_of(Pool kind, int64_t o, int64_t n, int64_t out, int64_t* begin, int64_t* end) {
  static const int64_t kStep[] = {2, 2, 1};
  static const int64_t kSize[] = {3, 2, 3};
  *begin = kind < kFewMaxima ? o * kStep[kind] - (kind == kMax3) : o * n / out;
  *end = kind < kFewMaxima ? *begin + kSize[kind] : ((o + 1) * n + out - 1) / out;
  *begin = *begin < 0 ? 0 : *begin;
  *end = *end < n ? *end : n;
}
/* A plane; dx is the gradient of x if the gradient of y is y. */
static void check_plane(Pool kind, const int64_t* in, const int64_t* out, const double* x,
                        const double* y, const double* dx, double eps) {
  double* want = calloc((size_t)(2 * in[0] * in[1]), sizeof *want);
  double* sizes = want + in[0] * in[1];
  int64_t i, j, h, w;
  for (i = 0; i < out[0] * out[1]; i++) {
    int64_t from[2], to[2], at = -1;
    double sum = 0, size = 0, n;
    window_of(kind, i / out[1], in[0], out[0], &from[0], &to[0]);
    window_of(kind, i % out[1], in[1], out[1], &from[1], &to[1]);
    for (h = from[0]; h < to[0]; h++)
      for (w = from[1]; w < to[1]; w++) {
        j = h * in[1] + w;
        if (at < 0 || x[j] > x[at]) at = j;
        sum += x[j];
        size += fabs(x[j]);
      }
    if (kind == kMax3 || kind == kMax2 || kind == kFewMaxima) {
      assert_true(y[i] == x[at]);
      want[at] += y[i];
      sizes[at] += fabs(y[i]);
      continue;
    }
    n = (double)((to[0] - from[0]) * (to[1] - from[1]));
    check_near(y[i], sum / n, eps * 16 * size / n);
    for (h = from[0]; h < to[0]; h++)
      for (w = from[1]; w < to[1]; w++) {
        want[h * in[1] + w] += y[i] / n;
        sizes[h * in[1] + w] += fabs(y[i] / n);
      }
  }
  for (j = 0; j < in[0] * in[1]; j++) check_near(dx[j], want[j], eps * 16 * sizes[j]);
  free(want);
}
static void pool_planes(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const int64_t* in = tt_tensor_shape(t) + 2;
  Pool kind;
  for (kind = kMax3; kind < kPools; kind++) {
    tt_tensor *from = leaf_like(x, t), *y, *dx;
    pool(x, kind, from, &y);
    dx = gradient_of(x, y, from, y);
    keep(b, y);
    keep(b, dx);
    if (alone(x)) {
      double* v = values_of(t);
      double* got = values_of(y);
      double* grad = values_of(dx);
      check_plane(kind, in, tt_tensor_shape(y) + 2, v, got, grad, epsilon(tt_tensor_dtype(t)));
      free(v);
      free(got);
      free(grad);
    }
  }
}
static void test_pooling(void** state) {
  (void)state;
  same_everywhere(pool_planes, filled(SHAPE(1, 1, 703, 301), TT_F32, wide));
  same_everywhere(pool_planes, filled(SHAPE(1, 1, 640, 256), TT_F64, few));
}
static void pool_pixels(tt_ctx* x, const tt_tensor* t, Bytes* b) { /* the same, channels last */
  tt_tensor* pixels;
  Pool kind;
  DO(tt_permute(x, t, SHAPE(0, 2, 3, 1), &pixels));
  DO(tt_contiguous(x, pixels, &pixels));
  DO(tt_permute(x, pixels, SHAPE(0, 3, 1, 2), &pixels));
  for (kind = kMax3; kind < kPools; kind++) {
    tt_tensor* planes_in = leaf_like(x, t);
    tt_tensor* pixels_in = leaf_like(x, pixels);
    tt_tensor* y;
    tt_tensor* z;
    tt_tensor* dx;
    tt_tensor* dz;
    pool(x, kind, planes_in, &y);
    pool(x, kind, pixels_in, &z);
    dx = gradient_of(x, y, planes_in, y);
    dz = gradient_of(x, z, pixels_in, z);
    keep(b, z);
    keep(b, dz);
    if (alone(x)) {
      double* a = values_of(dx);
      double* e = values_of(dz);
      int64_t i;
      for (i = 0; i < tt_tensor_numel(t); i++) check_near(e[i], a[i], 1e-5 * (fabs(a[i]) + 1));
      free(a);
      free(e);
    }
  }
}
static void test_pooling_of_pixels(void** state) {
  (void)state;
  same_everywhere(pool_pixels, filled(SHAPE(1, 3, 240, 100), TT_F32, wide));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_layer_norm), SCOPED(test_group_norm), SCOPED(test_losses),
      SCOPED(test_batch_norm), SCOPED(test_pooling),    SCOPED(test_pooling_of_pixels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
