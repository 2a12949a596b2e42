/* softmax, losses, layer_norm: values computed by hand, special cases, errors. Derivatives are
   checked by op_table_test. */
#include "harness.h"

#include <math.h>

static tt_tensor* classes(const int64_t* shape, int64_t ndim, const int64_t* values) {
  tt_tensor* t;
  OK(tt_tensor_from_data(c, values, TT_I64, shape, ndim, &t));
  return at_home(t);
}
#define CLASSES(...)                                                                           \
  classes((const int64_t[]){(int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))}, 1, \
          (const int64_t[]){__VA_ARGS__})

static tt_nll_loss_opts nll_opts(int32_t reduction, int64_t ignore, const tt_tensor* weight) {
  tt_nll_loss_opts o = {.set =
                            TT_NLL_LOSS_REDUCTION | TT_NLL_LOSS_IGNORE_INDEX | TT_NLL_LOSS_WEIGHT};
  o.reduction = reduction;
  o.ignore_index = ignore;
  o.weight = weight;
  return o;
}
static tt_cross_entropy_opts ce_opts(int32_t reduction, int64_t ignore, const tt_tensor* weight,
                                     double smoothing) {
  tt_cross_entropy_opts o = {.set = 15};
  o.reduction = reduction;
  o.ignore_index = ignore;
  o.weight = weight;
  o.label_smoothing = smoothing;
  return o;
}

static void softmax_over_each_dimension(void** state) {
  const double l2 = log(2);
  const double l3 = log(3);
  tt_tensor *x = make(TT_F64, SHAPE(2, 2), DATA(0, l3, l2, l2)), *y;
  (void)state;
  OK(tt_softmax(c, x, -1, NULL, &y));
  NEAR(y, 1e-15, 0.25, 0.75, 0.5, 0.5);
  OK(tt_softmax(c, x, 0, NULL, &y));
  NEAR(y, 1e-15, 1.0 / 3, 0.6, 2.0 / 3, 0.4);
  OK(tt_log_softmax(c, x, 1, NULL, &y));
  NEAR(y, 1e-15, log(0.25), log(0.75), -l2, -l2);
  OK(tt_softmax(c, number(TT_F32, 7), 0, NULL, &y));
  VALUES(y, 1);
  OK(tt_log_softmax(c, numbers(TT_F32, DATA(1000, 0)), 0, NULL, &y));
  VALUES(y, 0, -1000);
  FAILS(tt_softmax(c, x, 2, NULL, &y), TT_INDEX, "dim is 2");
  FAILS(tt_softmax(c, numbers(TT_I64, DATA(1, 2)), 0, NULL, &y), TT_NOT_IMPLEMENTED, "int64");
}

static void softmax_converts_first(void** state) {
  const tt_softmax_opts to = {.set = TT_SOFTMAX_DTYPE, .dtype = TT_F64};
  tt_tensor* y;
  (void)state;
  OK(tt_softmax(c, numbers(TT_I64, DATA(3, 3)), 0, &to, &y));
  assert_int_equal(tt_tensor_dtype(y), TT_F64);
  VALUES(y, 0.5, 0.5);
}

static void derivatives_of_softmax(void** state) {
  tt_tensor* x = leaf(DATA(0.5, -1, 2));
  tt_tensor* w = numbers(TT_F64, DATA(1, -2, 3));
  tt_tensor* y;
  tt_tensor* g;
  tt_tensor* gg;
  double *p, dot = 0, *got;
  int i, j;
  (void)state;
  OK(tt_softmax(c, x, 0, NULL, &y));
  p = values_of(y);
  for (i = 0; i < 3; i++) dot += p[i] * (double[]){1, -2, 3}[i];
  OK(tt_mul(c, y, w, &y));
  g = derive(y, x, 1); /* p_i (w_i - <p, w>) */
  NEAR(g, 1e-15, p[0] * (1 - dot), p[1] * (-2 - dot), p[2] * (3 - dot));
  OK(tt_mul(c, g, w, &g));
  gg = derive(g, x, 0);
  got = values_of(gg);
  for (j = 0; j < 3; j++) { /* d/dx_j of sum_i w_i p_i (w_i - <p, w>) */
    const double wj = (double[]){1, -2, 3}[j];
    double mean_square = 0;
    for (i = 0; i < 3; i++) mean_square += p[i] * (double[]){1, 4, 9}[i];
    assert_true(fabs(got[j] - (p[j] * (wj * wj - mean_square) - 2 * dot * p[j] * (wj - dot))) <
                1e-14);
  }
  free(p);
  free(got);
}

static void nll_reductions_weights_and_ignored_targets(void** state) {
  tt_tensor* x = param(SHAPE(3, 2), DATA(-1, -2, -3, -4, -5, -6));
  tt_tensor* t = CLASSES(0, 1, 1);
  tt_tensor* w = numbers(TT_F64, DATA(2, 3));
  tt_tensor* y;
  tt_nll_loss_opts o;
  (void)state;
  OK(tt_nll_loss(c, x, t, NULL, &y));
  NEAR(y, 1e-15, 11.0 / 3);
  o = nll_opts(TT_REDUCTION_NONE, -100, w);
  OK(tt_nll_loss(c, x, t, &o, &y));
  VALUES(y, 2, 12, 18);
  o = nll_opts(TT_REDUCTION_SUM, 0, w);
  OK(tt_nll_loss(c, x, t, &o, &y));
  VALUES(y, 30);
  VALUES(derive(y, x, 0), 0, 0, 0, -3, 0, -3);
  o = nll_opts(TT_REDUCTION_MEAN, -100, w); /* divided by the weights of the targets */
  OK(tt_nll_loss(c, x, t, &o, &y));
  NEAR(y, 1e-15, 32.0 / 8);
  NEAR(derive(y, x, 0), 1e-16, -0.25, 0, 0, -0.375, 0, -0.375);
  o = nll_opts(TT_REDUCTION_MEAN, 1, NULL);
  OK(tt_nll_loss(c, x, CLASSES(1, 1, 1), &o, &y));
  assert_true(isnan(value_of(y)));
  OK(tt_nll_loss(c, numbers(TT_F64, DATA(-1, -2)), number(TT_I64, 1), NULL,
                 &y)); /* one row without a batch */
  VALUES(y, 2);
  OK(tt_nll_loss(c, make(TT_F64, SHAPE(1, 2, 2), DATA(-1, -2, -3, -4)),
                 classes(SHAPE(1, 2), (int64_t[]){1, 0}), NULL, &y));
  VALUES(y, 2.5);
}

static void targets_out_of_range_are_named(void** state) {
  tt_tensor* x = make(TT_F32, SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6));
  tt_tensor* y = x;
  tt_tensor* w = numbers(TT_F32, DATA(1, 2));
  tt_cross_entropy_opts o = ce_opts(TT_REDUCTION_MEAN, -100, w, 0);
  (void)state;
  if (is_at_cpu()) {
    FAILS(tt_cross_entropy(c, x, CLASSES(0, 3), NULL, &y), TT_INDEX,
          "target holds 3 at [1]: must be in [0, 3)");
    assert_null(y);
    FAILS(tt_nll_loss(c, x, CLASSES(-1, 0), NULL, &y), TT_INDEX, "target holds -1 at [0]");
  } else { /* reported when a value is read */
    double value;
    OK(tt_cross_entropy(c, x, CLASSES(0, 3), NULL, &y));
    FAILS(tt_item_f64(c, y, &value), TT_INDEX, "target holds 3 at [1]: must be in [0, 3)");
  }
  OK(tt_nll_loss(c, x, CLASSES(-100, 0), NULL, &y));
  FAILS(tt_cross_entropy(c, x, CLASSES(0), NULL, &y), TT_SHAPE,
        "target is [1], input is [2,3]: must be [2]");
  FAILS(tt_cross_entropy(c, x, numbers(TT_F32, DATA(0, 1)), NULL, &y), TT_DTYPE,
        "target is float32");
  FAILS(tt_cross_entropy(c, x, CLASSES(0, 1), &o, &y), TT_SHAPE, "weight is [2]: must be [3]");
  o = ce_opts(7, -100, NULL, 0);
  FAILS(tt_cross_entropy(c, x, CLASSES(0, 1), &o, &y), TT_INVALID_ARG, "reduction is 7");
  o = ce_opts(TT_REDUCTION_MEAN, -100, NULL, 1.5);
  FAILS(tt_cross_entropy(c, x, CLASSES(0, 1), &o, &y), TT_INVALID_ARG, "label_smoothing is 1.5");
  o = ce_opts(TT_REDUCTION_MEAN, 1, NULL, 0);
  FAILS(tt_cross_entropy(c, x, x, &o, &y), TT_INVALID_ARG, "ignore_index");
  FAILS(tt_cross_entropy(c, CLASSES(1, 2), number(TT_I64, 0), NULL, &y), TT_NOT_IMPLEMENTED,
        "input is int64");
}

/* Class targets, one-hot probabilities and label smoothing agree with nll_loss of log_softmax. */
static void forms_of_cross_entropy_agree(void** state) {
  tt_tensor* x = param(SHAPE(2, 3), DATA(0.3, -1, 2, 1, 0.5, -0.25));
  tt_tensor* t = CLASSES(2, 0);
  tt_tensor* w = numbers(TT_F64, DATA(1, 2, 0.5));
  tt_tensor *hot = make(TT_F64, SHAPE(2, 3), DATA(0, 0, 1, 1, 0, 0)), *log_p, *a, *b, *ga, *gb,
            *smoothing;
  const tt_nll_loss_opts n = nll_opts(TT_REDUCTION_MEAN, -100, w);
  tt_cross_entropy_opts o = ce_opts(TT_REDUCTION_MEAN, -100, w, 0);
  double* v;
  (void)state;
  OK(tt_log_softmax(c, x, 1, NULL, &log_p));
  OK(tt_nll_loss(c, log_p, t, &n, &a));
  OK(tt_cross_entropy(c, x, t, &o, &b));
  NEAR(b, 1e-15, value_of(a));
  ga = derive(a, x, 0);
  gb = derive(b, x, 1);
  v = values_of(ga);
  NEAR(gb, 1e-15, v[0], v[1], v[2], v[3], v[4], v[5]);
  free(v);
  o = ce_opts(TT_REDUCTION_SUM, -100, NULL, 0);
  OK(tt_cross_entropy(c, x, t, &o, &a));
  OK(tt_cross_entropy(c, x, hot, &o, &b));
  NEAR(b, 1e-14, value_of(a));
  o = ce_opts(TT_REDUCTION_SUM, -100, NULL, 0.3);
  OK(tt_cross_entropy(c, x, t, &o, &b));
  OK(tt_mul_f64(c, log_p, -0.1, &smoothing));
  NEAR(b, 1e-14, 0.7 * value_of(a) + value_of(sum_of(smoothing)));
  OK(tt_cross_entropy(c, x, hot, &o, &a));
  NEAR(a, 1e-14, value_of(b));
}

static void second_derivative_of_cross_entropy(void** state) {
  tt_tensor* x = leaf(DATA(1, 2, 4));
  tt_tensor* y;
  tt_tensor* g;
  tt_tensor* p;
  tt_tensor* w = numbers(TT_F64, DATA(1, 0, 2));
  double *v, dot;
  (void)state;
  OK(tt_cross_entropy(c, x, number(TT_I64, 1), NULL, &y));
  OK(tt_softmax(c, x, 0, NULL, &p));
  v = values_of(p);
  dot = v[0] + 2 * v[2];
  OK(tt_mul(c, derive(y, x, 1), w, &g)); /* the Hessian is diag(p) - p p^T */
  NEAR(derive(g, x, 0), 1e-15, v[0] * (1 - dot), v[1] * (0 - dot), v[2] * (2 - dot));
  free(v);
}

static void layer_norm_values_and_errors(void** state) {
  const tt_layer_norm_opts exact = {.set = TT_LAYER_NORM_EPS, .eps = 0};
  tt_tensor* x = make(TT_F64, SHAPE(2, 2), DATA(1, 3, -5, 5));
  tt_tensor* w = numbers(TT_F64, DATA(2, 10));
  tt_tensor* b = numbers(TT_F64, DATA(1, 0));
  tt_tensor* y = x;
  (void)state;
  OK(tt_layer_norm(c, x, SHAPE(2), w, b, &exact, &y));
  VALUES(y, -1, 10, -1, 10);
  OK(tt_layer_norm(c, x, SHAPE(2, 2), NULL, NULL, &exact, &y));
  NEAR(y, 1e-15, 0, 2 / sqrt(14), -6 / sqrt(14), 4 / sqrt(14));
  FAILS(tt_layer_norm(c, x, SHAPE(3), NULL, NULL, NULL, &y), TT_SHAPE,
        "normalized_shape is [3], input is [2,2]");
  assert_null(y);
  FAILS(tt_layer_norm(c, x, NULL, 0, NULL, NULL, NULL, &y), TT_SHAPE, "empty");
  FAILS(tt_layer_norm(c, x, SHAPE(2, 2), w, NULL, NULL, &y), TT_SHAPE, "weight is [2]");
  FAILS(tt_layer_norm(c, x, SHAPE(2), numbers(TT_F32, DATA(1, 1)), NULL, NULL, &y), TT_DTYPE,
        "weight is float32");
  FAILS(tt_layer_norm(c, numbers(TT_I64, DATA(1, 2)), SHAPE(2), NULL, NULL, NULL, &y),
        TT_NOT_IMPLEMENTED, "int64");
}

static void layer_norm_of_nothing(void** state) {
  tt_tensor* x = param(SHAPE(0, 2), NULL, 0);
  tt_tensor* w = leaf(DATA(1, 1));
  tt_tensor* y;
  (void)state;
  OK(tt_layer_norm(c, x, SHAPE(2), w, NULL, NULL, &y));
  HAS_SHAPE(y, 0, 2);
  OK(tt_backward(c, sum_of(y), NULL));
  VALUES(grad_of(w), 0, 0);
}

static void sixteen_bit_inputs(void** state) {
  tt_tensor* x = make(TT_BF16, SHAPE(1, 2), DATA(1, 1));
  tt_tensor* w = numbers(TT_F32, DATA(1, 1));
  tt_tensor* y;
  (void)state;
  OK(tt_softmax(c, x, 1, NULL, &y));
  assert_int_equal(tt_tensor_dtype(y), TT_BF16);
  VALUES(y, 0.5, 0.5);
  OK(tt_cross_entropy(c, x, CLASSES(1), NULL, &y));
  assert_int_equal(tt_tensor_dtype(y), TT_BF16);
  NEAR(y, 2e-3, log(2));
  OK(tt_layer_norm(c, x, SHAPE(2), w, w, NULL, &y)); /* float32 parameters beside them */
  assert_int_equal(tt_tensor_dtype(y), TT_BF16);
  VALUES(y, 1, 1);
}

static void meta_results_have_shapes(void** state) {
  const tt_to_opts to = {.set = TT_TO_DEVICE, .device = {TT_META, 0}};
  tt_tensor *x, *t, *y;
  (void)state;
  OK(tt_to(c, make(TT_F32, SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6)), &to, &x));
  OK(tt_to(c, CLASSES(9, 9), &to, &t));
  OK(tt_softmax(c, x, 0, NULL, &y));
  HAS_SHAPE(y, 2, 3);
  OK(tt_cross_entropy(c, x, t, NULL, &y));
  assert_int_equal(tt_tensor_ndim(y), 0);
  OK(tt_layer_norm(c, x, SHAPE(3), NULL, NULL, NULL, &y));
  HAS_SHAPE(y, 2, 3);
}

/* Attention with dropout: some weights are 0, the fused gradient equals the recorded one, and
   the generator makes both repeatable. */
static tt_tensor* dropped_attention(tt_tensor* const* in, double p, const tt_grad_opts* opts,
                                    tt_tensor** grads) {
  const tt_scaled_dot_product_attention_opts drop = {
      .set = TT_SCALED_DOT_PRODUCT_ATTENTION_DROPOUT_P, .dropout_p = p};
  tt_tensor *y, *square, *sum;
  OK(tt_manual_seed(c, 3));
  OK(tt_scaled_dot_product_attention(c, in[0], in[1], in[2], NULL, &drop, &y));
  OK(tt_mul(c, y, y, &square));
  OK(tt_sum(c, square, NULL, &sum));
  if (grads) OK(tt_grad(c, LIST(sum), (const tt_tensor* const*)in, 3, opts, grads));
  return y;
}
static void attention_drops_weights(void** state) {
  const tt_grad_opts recorded = {.set = TT_GRAD_CREATE_GRAPH, .create_graph = 1};
  const tt_randn_opts wide = {.set = TT_RANDN_DTYPE, .dtype = TT_F64};
  tt_tensor *in[3], *plain[3], *composed[3], *ones, *y;
  double *a, *b, mean = 0;
  int k, i;
  (void)state;
  for (k = 0; k < 3; k++) {
    OK(tt_randn(c, SHAPE(1, 2, 150, 5), &wide, &in[k]));
    OK(tt_requires_grad_(c, in[k], 1));
  }
  y = dropped_attention(in, 0.25, NULL, plain);
  dropped_attention(in, 0.25, &recorded, composed);
  for (k = 0; k < 3; k++) {
    a = values_of(plain[k]);
    b = values_of(composed[k]);
    for (i = 0; i < 1500; i++) assert_true(fabs(a[i] - b[i]) < 1e-9 * (1 + fabs(b[i])));
    free(a);
    free(b);
  }
  a = values_of(y);
  b = values_of(dropped_attention(in, 0.25, NULL, NULL));
  for (i = 0; i < 1500; i++) assert_true(a[i] == b[i]);
  free(a);
  free(b);
  OK(tt_ones_like(c, in[2], NULL, &ones));
  in[2] = ones; /* the sum of the weights that are kept */
  a = values_of(dropped_attention(in, 0.25, NULL, NULL));
  for (i = 0; i < 1500; i++) mean += a[i] / 1500;
  free(a);
  assert_true(fabs(mean - 1) < 0.02);
  a = values_of(dropped_attention(in, 1, NULL, NULL));
  for (i = 0; i < 1500; i++) assert_true(a[i] == 0);
  free(a);
}

/* With more threads than heads the backward is divided differently: the same bits. */
/* No features, no queries, no keys: the shapes of results and gradients. */
static void attention_of_nothing(void** state) {
  static const tt_dtype kDtypes[] = {TT_F32, TT_F64, TT_F16, TT_BF16};
  int which, empty;
  (void)state;
  for (which = 0; which < 4; which++)
    for (empty = 0; empty < 16; empty++) {
      const int64_t e = empty & 1 ? 0 : 3, ev = empty & 2 ? 0 : 5;
      const int64_t l = empty & 4 ? 0 : 2, s = empty & 8 ? 0 : 4;
      const tt_ones_opts opts = {.set = TT_ONES_DTYPE, .dtype = kDtypes[which]};
      tt_tensor *in[3], *mask, *y, *g[3], *sum;
      int i, masked;
      OK(tt_ones(c, SHAPE(1, 2, l, e), &opts, &in[0]));
      OK(tt_ones(c, SHAPE(1, 2, s, e), &opts, &in[1]));
      OK(tt_ones(c, SHAPE(1, 2, s, ev), &opts, &in[2]));
      OK(tt_ones(c, SHAPE(l, s), &opts, &mask));
      for (i = 0; i < 3; i++) OK(tt_requires_grad_(c, in[i], 1));
      for (masked = 0; masked < 2; masked++) {
        OK(tt_scaled_dot_product_attention(c, in[0], in[1], in[2], masked ? mask : NULL, NULL, &y));
        HAS_SHAPE(y, 1, 2, l, ev);
        OK(tt_sum(c, y, NULL, &sum));
        OK(tt_grad(c, LIST(sum), (const tt_tensor* const*)in, 3, NULL, g));
        HAS_SHAPE(g[0], 1, 2, l, e);
        HAS_SHAPE(g[1], 1, 2, s, e);
        HAS_SHAPE(g[2], 1, 2, s, ev);
      }
    }
}

static void attention_gradients_ignore_threads(void** state) {
  const tt_scaled_dot_product_attention_opts opts[] = {
      {.set = 0},
      {.set =
           TT_SCALED_DOT_PRODUCT_ATTENTION_IS_CAUSAL | TT_SCALED_DOT_PRODUCT_ATTENTION_ENABLE_GQA,
       .is_causal = 1,
       .enable_gqa = 1},
      {.set =
           TT_SCALED_DOT_PRODUCT_ATTENTION_DROPOUT_P | TT_SCALED_DOT_PRODUCT_ATTENTION_ENABLE_GQA,
       .dropout_p = 0.3,
       .enable_gqa = 1}};
  const int32_t threads[] = {1, 4};
  size_t k, t, i;
  (void)state;
  for (k = 0; k < sizeof opts / sizeof *opts; k++) {
    tt_tensor *in[3], *y, *sum, *grads[2][3];
    for (i = 0; i < 3; i++) {
      OK(tt_randn(c, SHAPE(1, i || k == 0 ? 1 : 2, i ? 300 : 270, 24), NULL, &in[i]));
      OK(tt_requires_grad_(c, in[i], 1));
    }
    for (t = 0; t < 2; t++) {
      OK(tt_set_num_threads(c, threads[t]));
      OK(tt_manual_seed(c, 3));
      OK(tt_scaled_dot_product_attention(c, in[0], in[1], in[2], NULL, &opts[k], &y));
      OK(tt_mul(c, y, y, &y));
      OK(tt_sum(c, y, NULL, &sum));
      OK(tt_grad(c, LIST(sum), (const tt_tensor* const*)in, 3, NULL, grads[t]));
    }
    for (i = 0; i < 3; i++) {
      double* a = values_of(grads[0][i]);
      double* b = values_of(grads[1][i]);
      assert_memory_equal(a, b, (size_t)tt_tensor_numel(in[i]) * sizeof *a);
      free(a);
      free(b);
    }
  }
  OK(tt_set_num_threads(c, 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(softmax_over_each_dimension),
      SCOPED(softmax_converts_first),
      SCOPED(derivatives_of_softmax),
      SCOPED(nll_reductions_weights_and_ignored_targets),
      SCOPED(targets_out_of_range_are_named),
      SCOPED(forms_of_cross_entropy_agree),
      SCOPED(second_derivative_of_cross_entropy),
      SCOPED(layer_norm_values_and_errors),
      SCOPED(layer_norm_of_nothing),
      SCOPED(sixteen_bit_inputs),
      SCOPED(attention_drops_weights),
      SCOPED(attention_of_nothing),
      SCOPED(attention_gradients_ignore_threads),
      SCOPED(meta_results_have_shapes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
