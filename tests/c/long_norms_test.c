/* One long row, channel or plane (or a few) on several threads: normalisation, losses of classes and pooling are right,
   and equal bit by bit. */
#include "everywhere.h"

/* The gradient of y with respect to leaf_of, where y's is g. */
static tt_tensor* gradient_of(tt_ctx* x, const tt_tensor* y, const tt_tensor* leaf_of, const tt_tensor* g) {
  const tt_grad_opts o = {
      .set = TT_GRAD_GRAD_OUTPUTS | TT_GRAD_RETAIN_GRAPH, .grad_outputs = &g, .n_grad_outputs = 1, .retain_graph = 1};
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
  double *x, *y, *dx;           /* of one row of n elements, `step` apart */
  const double *weight, *bias;  /* NULL: 1 and 0 */
  long double *dw, *db, *sizes; /* sums over rows: what they should be, and of what size their terms are */
} Norm;
static void check_row(const Norm* r, int64_t n, double eps) {
  long double mean = 0, square = 0, su = 0, suh = 0, size = 0, size_h = 0;
  double rstd;
  int64_t i;
  for (i = 0; i < n; i++) mean += r->x[i];
  mean /= n;
  for (i = 0; i < n; i++) square += (r->x[i] - mean) * (r->x[i] - mean);
  rstd = 1 / sqrt((double)(square / n) + 1e-5);
  for (i = 0; i < n; i++) {
    const double h = (double)(r->x[i] - mean) * rstd, w = r->weight ? r->weight[i] : 1, u = r->x[i] * w;
    const double want = h * w + (r->bias ? r->bias[i] : 0);
    check_near(r->y[i], want, eps * 16 * (fabs(h * w) + fabs(w) + fabs(want)));
    su += u, suh += u * h, size += fabs(u), size_h += fabs(u * h);
    if (r->dw) r->dw[i] += r->x[i] * h, r->db[i] += r->x[i], r->sizes[i] += fabs(r->x[i]) * (fabs(h) + 1);
  }
  for (i = 0; i < n; i++) {
    const double h = (double)(r->x[i] - mean) * rstd, u = r->x[i] * (r->weight ? r->weight[i] : 1);
    const double want = rstd * (u - (double)(su / n) - h * (double)(suh / n));
    check_near(r->dx[i], want,
               eps * 16 * rstd * (fabs(u) + (double)size / (double)n + (fabs(h) + 1) * (double)size_h / (double)n));
  }
}

static const tt_tensor *weight, *bias; /* of layer_norm, or NULL */
static void normalise(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const int64_t rows = tt_tensor_shape(t)[0], n = tt_tensor_shape(t)[1];
  const double eps = epsilon(tt_tensor_dtype(t));
  tt_tensor *in = leaf_like(x, t), *w = weight ? leaf_like(x, weight) : NULL, *e = bias ? leaf_like(x, bias) : NULL;
  tt_tensor *y, *dx, *dw = NULL, *db = NULL;
  int64_t r;
  DO(tt_layer_norm(x, in, &n, 1, w, e, NULL, &y));
  dx = gradient_of(x, y, in, t);
  keep(b, y), keep(b, dx);
  if (w) dw = gradient_of(x, y, w, t), keep(b, dw);
  if (e) db = gradient_of(x, y, e, t), keep(b, db);
  if (w && e) { /* both at once */
    const tt_backward_opts o = {.set = TT_BACKWARD_GRADIENT, .gradient = t};
    tt_tensor* g;
    DO(tt_backward(x, y, &o));
    DO(tt_tensor_grad(x, w, &g));
    assert_memory_equal(tt_tensor_data(g), tt_tensor_data(dw), (size_t)(n * tt_dtype_size(tt_tensor_dtype(g))));
    DO(tt_tensor_grad(x, e, &g));
    assert_memory_equal(tt_tensor_data(g), tt_tensor_data(db), (size_t)(n * tt_dtype_size(tt_tensor_dtype(g))));
  }
  if (!alone(x)) return;
  {
    double *v = values_of(t), *got = values_of(y), *grad = values_of(dx), *factor = w ? values_of(w) : NULL,
           *shift = e ? values_of(e) : NULL;
    long double* sums = calloc((size_t)(3 * n), sizeof *sums);
    for (r = 0; r < rows; r++) {
      const Norm row = {v + r * n, got + r * n, grad + r * n, factor, shift, sums, sums + n, sums + 2 * n};
      check_row(&row, n, eps);
    }
    free(got), free(grad), free(factor), free(shift);
    got = dw ? values_of(dw) : NULL, grad = db ? values_of(db) : NULL;
    for (r = 0; r < n; r++) {
      if (dw) check_near(got[r], (double)sums[r], eps * 8 * (double)sums[2 * n + r]);
      if (db) check_near(grad[r], (double)sums[n + r], eps * 8 * (double)sums[2 * n + r]);
    }
    free(v), free(got), free(grad), free(sums);
  }
}
static void test_layer_norm(void** state) {
  static const tt_dtype kDtypes[] = {TT_F32, TT_F64, TT_BF16};
  size_t d;
  (void)state;
  for (d = 0; d < 3; d++) {
    weight = filled(SHAPE(100003), kDtypes[d], few), bias = filled(SHAPE(100003), kDtypes[d], few);
    same_everywhere(normalise, filled(SHAPE(1, 100003), kDtypes[d], wide));
    weight = NULL;
    same_everywhere(normalise, filled(SHAPE(1, 100003), kDtypes[d], few));
    weight = filled(SHAPE(70001), kDtypes[d], few), bias = NULL;
    same_everywhere(normalise, filled(SHAPE(3, 70001), kDtypes[d], wide));
    weight = filled(SHAPE(9001), kDtypes[d], few), bias = filled(SHAPE(9001), kDtypes[d], few);
    same_everywhere(normalise, filled(SHAPE(20, 9001), kDtypes[d], wide));
    weight = filled(SHAPE(3), kDtypes[d], few), bias = filled(SHAPE(3), kDtypes[d], few);
    same_everywhere(normalise, filled(SHAPE(40001, 3), kDtypes[d], few));
    weight = bias = NULL;
  }
}

static void normalise_groups(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const int64_t n = tt_tensor_numel(t);
  tt_tensor *in = leaf_like(x, t), *y, *dx;
  DO(tt_group_norm(x, in, 1, NULL, NULL, NULL, &y));
  dx = gradient_of(x, y, in, t);
  keep(b, y), keep(b, dx);
  if (alone(x)) {
    double *v = values_of(t), *got = values_of(y), *grad = values_of(dx);
    const Norm row = {v, got, grad, NULL, NULL, NULL, NULL, NULL};
    check_row(&row, n, epsilon(tt_tensor_dtype(t)));
    free(v), free(got), free(grad);
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
/* Of one row: log sum exp of the n classes, `step` apart, by which the loss and its gradient are checked. */
static void check_classes(const double* x, double loss, const double* dx, int64_t target, int64_t n, int64_t step,
                          int log_of, double eps) {
  long double sum = 0;
  double top = -INFINITY, lse = 0;
  int64_t i;
  for (i = 0; i < n; i++) top = x[i * step] > top ? x[i * step] : top;
  for (i = 0; i < n; i++) sum += exp(x[i * step] - top);
  if (!log_of) lse = top + log((double)sum);
  check_near(loss, target < 0 ? 0 : lse - x[target * step],
             target < 0 ? 0 : eps * 4 * (fabs(lse) + fabs(x[target * step]) + 1));
  for (i = 0; i < n; i++) {
    const double soft = log_of ? 0 : exp(x[i * step] - lse), want = target < 0 ? 0 : soft - (i == target);
    check_near(dx[i * step], want, eps * (1 + fabs(lse) + fabs(x[i * step])) * 4 * soft + eps * (i == target));
  }
}
static const tt_tensor* classes; /* the targets */
static void lose(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const int64_t *shape = tt_tensor_shape(t), outer = shape[0], n = shape[1], all = tt_tensor_numel(t),
                inner = all / outer / n, *target = tt_tensor_data(classes);
  double* v = values_of(t);
  int log_of;
  for (log_of = 0; log_of < 2; log_of++) {
    const tt_cross_entropy_opts each = {.set = TT_CROSS_ENTROPY_REDUCTION, .reduction = TT_REDUCTION_NONE};
    const tt_nll_loss_opts each_nll = {.set = TT_NLL_LOSS_REDUCTION, .reduction = TT_REDUCTION_NONE};
    tt_tensor *in = leaf_like(x, t), *y, *ones, *dx;
    int64_t r;
    DO(log_of ? tt_nll_loss(x, in, classes, &each_nll, &y) : tt_cross_entropy(x, in, classes, &each, &y));
    DO(tt_ones_like(x, y, NULL, &ones));
    dx = gradient_of(x, y, in, ones);
    keep(b, y), keep(b, dx);
    if (alone(x)) {
      double *loss = values_of(y), *grad = values_of(dx);
      for (r = 0; r < outer * inner; r++) {
        const int64_t at = r / inner * n * inner + r % inner;
        check_classes(v + at, loss[r], grad + at, target[r], n, inner, log_of, epsilon(tt_tensor_dtype(t)));
      }
      free(loss), free(grad);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_layer_norm),
      SCOPED(test_group_norm),
      SCOPED(test_losses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
