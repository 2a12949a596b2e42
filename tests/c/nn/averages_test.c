/* Averages of models: AveragedModel, update_bn; and the losses with linear layers or a distance
   function of their own. */
#include "harness.h"

static tt_tensor* tensor_at(const tt_module* m, const char* path) {
  tt_tensor* t = NULL;
  OK(tt_module_get_tensor(c, m, path, &t));
  return t;
}
static tt_tensor* called(tt_module* m, const tt_tensor* x) {
  tt_tensor* y = NULL;
  OK(tt_module_call(c, m, x, &y));
  return y;
}
static tt_tensor* set_weight(tt_module* m, const char* name, double value) {
  tt_tensor* t = number(TT_F64, value);
  OK(tt_requires_grad_(c, t, 1));
  OK(tt_module_register_parameter(c, m, name, t));
  return t;
}

/* ---- AveragedModel ---- */

static tt_module* averaged(tt_module* model, double decay, int use_buffers) {
  tt_averaged_model_opts o = {0};
  tt_module* m = NULL;
  if (decay >= 0) {
    o.decay = decay;
    o.set |= TT_AVERAGED_MODEL_DECAY;
  }
  o.use_buffers = use_buffers;
  o.set |= TT_AVERAGED_MODEL_USE_BUFFERS;
  OK(tt_averaged_model(c, model, &o, &m));
  return m;
}
static tt_status no_outs(void* user, tt_ctx* ctx, tt_module* m, const tt_tensor* const* inputs,
                         int64_t n, tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)user, (void)ctx, (void)m, (void)inputs, (void)n, (void)outs, (void)cap;
  *n_outs = 0;
  return TT_OK;
}
static tt_status no_epoch(void* user, tt_ctx* ctx) {
  (void)user, (void)ctx;
  return TT_OK;
}
/* Modules of the application with names of layers of tt are none of these. */
static void test_modules_with_names_of_layers(void** state) {
  static const char* const names[] = {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"};
  tt_module_def def = {.struct_size = sizeof def, .forward = no_outs};
  tt_tensor *x = make(TT_F32, SHAPE(1, 1), DATA(0)), *y;
  tt_module* m;
  size_t i;
  (void)state;
  for (i = 0; i < sizeof names / sizeof *names; i++) {
    def.name = names[i];
    OK(tt_module_new_custom(c, &def, &m));
    OK(tt_module_update_bn(c, m, no_epoch, NULL, NULL));
    tt_module_release(m);
  }
  def.name = "AdaptiveLogSoftmaxWithLoss";
  OK(tt_module_new_custom(c, &def, &m));
  FAILS(tt_nn_adaptive_log_softmax_with_loss_log_prob(c, m, x, &y), TT_INVALID_ARG, "must be an");
  FAILS(tt_nn_adaptive_log_softmax_with_loss_predict(c, m, x, &y), TT_INVALID_ARG, "must be an");
  tt_module_release(m);
}
static void test_averaged_model(void** state) {
  tt_module *model = NULL, *mean, *moving, *buffers, *copy = NULL;
  double n;
  (void)state;
  OK(tt_nn_parameter_dict(c, &model));
  set_weight(model, "w", 1);
  OK(tt_module_register_buffer(c, model, "b", number(TT_F64, 10), 1));
  mean = averaged(model, -1, 0);
  moving = averaged(model, 0.75, 0);
  buffers = averaged(model, -1, 1);
  assert_string_equal(tt_module_type(mean), "AveragedModel");
  for (n = 2; n <= 4; n++) { /* the first update copies */
    set_weight(model, "w", n * n);
    OK(tt_module_register_buffer(c, model, "b", number(TT_F64, 10 * n), 1));
    OK(tt_averaged_model_update_parameters(c, mean, model));
    OK(tt_averaged_model_update_parameters(c, moving, model));
    OK(tt_averaged_model_update_parameters(c, buffers, model));
  }
  NEAR(tensor_at(mean, "module.w"), 1e-14, (4 + 9 + 16) / 3.0);
  NEAR(tensor_at(moving, "module.w"), 1e-14, (4 * 0.75 + 9 * 0.25) * 0.75 + 16 * 0.25);
  VALUES(tensor_at(mean, "module.b"), 40);
  NEAR(tensor_at(buffers, "module.b"), 1e-14, 30);
  VALUES(tensor_at(mean, "n_averaged"), 3);
  assert_int_equal(tt_tensor_dtype(tensor_at(mean, "n_averaged")), TT_I64);

  OK(tt_module_copy(c, moving, &copy)); /* continues alone */
  set_weight(model, "w", 0);
  OK(tt_averaged_model_update_parameters(c, copy, model));
  NEAR(tensor_at(copy, "module.w"), 1e-14, 0.75 * ((4 * 0.75 + 9 * 0.25) * 0.75 + 16 * 0.25));
  VALUES(tensor_at(moving, "n_averaged"), 3);

  OK(tt_module_register_parameter(c, model, "other", number(TT_F64, 1)));
  FAILS(tt_averaged_model_update_parameters(c, mean, model), TT_INVALID_ARG, "other");
  VALUES(tensor_at(mean, "n_averaged"), 3);
  NEAR(tensor_at(mean, "module.w"), 1e-14, (4 + 9 + 16) / 3.0);
  FAILS(tt_averaged_model_update_parameters(c, model, model), TT_INVALID_ARG, "AveragedModel");
  {
    const tt_averaged_model_opts o = {TT_AVERAGED_MODEL_DECAY, 1.5, 0};
    tt_module* none = model;
    FAILS(tt_averaged_model(c, model, &o, &none), TT_INVALID_ARG, "decay is 1.5");
    assert_null(none);
  }
  tt_module_release(model);
  tt_module_release(mean);
  tt_module_release(moving);
  tt_module_release(buffers);
  tt_module_release(copy);
}
static void test_averaged_model_calls_its_copy(void** state) {
  tt_module *model = NULL, *mean;
  tt_tensor* x = make(TT_F32, SHAPE(1, 2), DATA(1, 2));
  (void)state;
  OK(tt_nn_linear(c, 2, 1, NULL, &model));
  mean = averaged(model, -1, 0);
  {
    double* want = values_of(called(model, x));
    VALUES(called(mean, x), want[0]);
    free(want);
  }
  OK(tt_module_train(c, mean, 0));
  tt_module_release(model);
  tt_module_release(mean);
}

/* ---- update_bn ---- */

typedef struct Epoch {
  tt_module* model;
  tt_tensor* batches[3];
  int n, drops, fail, was_training, recorded;
} Epoch;
static tt_status run_epoch(void* user, tt_ctx* x) {
  Epoch* e = user;
  int i;
  e->was_training = tt_module_training(e->model);
  for (i = 0; i < e->n; i++) {
    tt_tensor* y = NULL;
    const tt_status s = tt_module_call(x, e->model, e->batches[i], &y);
    if (s) return s;
    e->recorded |= tt_tensor_requires_grad(y);
    tt_tensor_release(y);
  }
  return e->fail ? TT_INTERNAL : TT_OK;
}
static void count_drop(void* user) { ((Epoch*)user)->drops++; }

static void test_update_bn(void** state) {
  tt_module *net = NULL, *norm = NULL, *other = NULL;
  tt_nn_batch_norm1d_opts o = {0};
  Epoch e = {0};
  (void)state;
  OK(tt_nn_sequential(c, &net));
  OK(tt_nn_batch_norm1d(c, 1, NULL, &norm));
  o.track_running_stats = 0;
  o.set = TT_NN_BATCH_NORM1D_TRACK_RUNNING_STATS;
  OK(tt_nn_batch_norm1d(c, 1, &o, &other)); /* has no statistics */
  OK(tt_module_append(c, net, norm));
  OK(tt_module_append(c, net, other));
  e.model = net;
  e.n = 3;
  e.batches[0] = make(TT_F32, SHAPE(2, 1), DATA(0, 2));
  e.batches[1] = make(TT_F32, SHAPE(2, 1), DATA(4, 10));
  e.batches[2] = make(TT_F32, SHAPE(2, 1), DATA(1, 1));
  called(net, e.batches[1]); /* statistics that are forgotten */
  OK(tt_module_train(c, net, 0));
  OK(tt_module_update_bn(c, net, run_epoch, &e, count_drop));
  NEAR(tensor_at(net, "0.running_mean"), 1e-6, (1 + 7 + 1) / 3.0);
  NEAR(tensor_at(net, "0.running_var"), 1e-5, (2 + 18 + 0) / 3.0);
  VALUES(tensor_at(net, "0.num_batches_tracked"), 3);
  assert_true(e.drops == 1 && e.was_training && !e.recorded);
  assert_false(tt_module_training(net));
  assert_false(tt_module_training(norm));

  /* afterwards the momentum is its own again */
  OK(tt_module_train(c, net, 1));
  called(net, e.batches[1]);
  NEAR(tensor_at(net, "0.running_mean"), 1e-6, 0.9 * 3 + 0.1 * 7);

  /* a failure restores statistics and mode */
  OK(tt_module_train(c, net, 0));
  e.fail = 1;
  FAILS(tt_module_update_bn(c, net, run_epoch, &e, count_drop), TT_CALLBACK, NULL);
  assert_int_equal(e.drops, 2);
  NEAR(tensor_at(net, "0.running_mean"), 1e-6, 0.9 * 3 + 0.1 * 7);
  VALUES(tensor_at(net, "0.num_batches_tracked"), 4);
  assert_false(tt_module_training(net));

  FAILS(tt_module_update_bn(c, net, NULL, &e, count_drop), TT_INVALID_ARG, "fn");
  OK(tt_module_register_buffer(c, norm, "num_batches_tracked", NULL, 1));
  FAILS(tt_module_update_bn(c, net, run_epoch, &e, count_drop), TT_INVALID_ARG,
        "num_batches_tracked");
  OK(tt_module_freeze(c, net));
  FAILS(tt_module_update_bn(c, net, run_epoch, &e, count_drop), TT_INVALID_ARG, "frozen");
  assert_int_equal(e.drops, 5);
  tt_module_release(net);
  tt_module_release(norm);
  tt_module_release(other);
}

/* ---- AdaptiveLogSoftmaxWithLoss ---- */

static void test_adaptive_softmax(void** state) {
  tt_module *m = NULL, *other = NULL;
  tt_tensor *x = NULL, *target = make(TT_I64, SHAPE(5), DATA(0, 3, 7, 1, 4)), *all = NULL,
            *chosen = NULL, *best = NULL, *want = NULL, *row = NULL, *one_target = NULL;
  tt_tensor* outs[2] = {0};
  int64_t n = 0;
  (void)state;
  OK(tt_nn_adaptive_log_softmax_with_loss(c, 16, 8, SHAPE(2, 5), NULL, &m));
  HAS_SHAPE(tensor_at(m, "head.weight"), 4, 16);
  HAS_SHAPE(tensor_at(m, "tail.0.0.weight"), 4, 16);
  HAS_SHAPE(tensor_at(m, "tail.0.1.weight"), 3, 4);
  HAS_SHAPE(tensor_at(m, "tail.1.0.weight"), 1, 16);
  HAS_SHAPE(tensor_at(m, "tail.1.1.weight"), 3, 1);
  OK(tt_randn(c, SHAPE(5, 16), NULL, &x));
  OK(tt_mul_f64_(c, x, 5));

  OK(tt_nn_adaptive_log_softmax_with_loss_log_prob(c, m, x, &all));
  HAS_SHAPE(all, 5, 8);
  { /* each row is a distribution, and forward picks from it */
    tt_tensor *p = NULL, *sums = NULL, *columns = NULL, *picked = NULL;
    OK(tt_exp(c, all, &p));
    OK(tt_sum_dim(c, p, SHAPE(1), NULL, &sums));
    NEAR(sums, 1e-5, 1, 1, 1, 1, 1);
    OK(tt_unsqueeze(c, target, 1, &columns));
    OK(tt_gather(c, all, 1, columns, &picked));
    OK(tt_module_forward(c, m, LIST(x, target), outs, 2, &n));
    assert_int_equal(n, 2);
    HAS_SHAPE(outs[0], 5);
    {
      double *a = values_of(outs[0]), *b = values_of(picked);
      double mean = 0;
      int i;
      for (i = 0; i < 5; i++) {
        assert_true(a[i] - b[i] < 1e-5 && b[i] - a[i] < 1e-5);
        mean -= a[i] / 5;
      }
      NEAR(outs[1], 1e-5, mean);
      free(a);
      free(b);
    }
  }
  OK(tt_backward(c, outs[1], NULL));
  assert_true(value_of(sum_of(grad_of(tensor_at(m, "tail.1.1.weight")))) < 1e3);

  OK(tt_argmax(c, all, &(tt_argmax_opts){TT_ARGMAX_DIM, 1, 0}, &want));
  OK(tt_nn_adaptive_log_softmax_with_loss_predict(c, m, x, &best));
  {
    int32_t same = 0;
    OK(tt_equal(c, best, want, &same));
    assert_true(same);
  }

  /* one sample */
  OK(tt_select(c, x, 0, 2, &row));
  OK(tt_select(c, target, 0, 2, &one_target));
  OK(tt_select(c, outs[0], 0, 2, &chosen));
  OK(tt_module_forward(c, m, LIST(row, one_target), outs, 2, &n));
  assert_int_equal(tt_tensor_ndim(outs[0]), 0);
  NEAR(outs[0], 1e-5, value_of(chosen));

  FAILS(tt_module_forward(c, m, LIST(x, numbers(TT_I64, DATA(0, 1, 2, 3, 8))), outs, 2, &n),
        TT_INDEX, "from 0 to 8: must be in [0, 8)");
  FAILS(tt_module_forward(c, m, LIST(x, numbers(TT_F32, DATA(0, 1, 2, 3, 4))), outs, 2, &n),
        TT_DTYPE, "int64");
  FAILS(tt_module_forward(c, m, LIST(x, numbers(TT_I64, DATA(0, 1))), outs, 2, &n), TT_SHAPE,
        "rows of input");
  FAILS(tt_module_forward(c, m, LIST(row, target), outs, 2, &n), TT_SHAPE, "dimensions");
  FAILS(tt_nn_adaptive_log_softmax_with_loss(c, 16, 8, SHAPE(5, 2), NULL, &other), TT_INVALID_ARG,
        "cutoffs is [5,2]");
  FAILS(tt_nn_adaptive_log_softmax_with_loss(c, 16, 8, SHAPE(8), NULL, &other), TT_INVALID_ARG,
        "less than n_classes (8)");
  OK(tt_nn_linear(c, 2, 2, NULL, &other));
  FAILS(tt_nn_adaptive_log_softmax_with_loss_predict(c, other, x, &best), TT_INVALID_ARG,
        "m is a Linear");
  OK(tt_module_register_module(c, m, "tail", other));
  FAILS(tt_module_forward(c, m, LIST(x, target), outs, 2, &n), TT_INVALID_ARG, "tail has 0");
  tt_module_release(m);
  tt_module_release(other);
}

/* ---- LinearCrossEntropyLoss ---- */

static void test_linear_cross_entropy(void** state) {
  tt_nn_linear_cross_entropy_loss_opts o = {0};
  tt_module *m = NULL, *other = NULL;
  tt_tensor *x = NULL, *target = make(TT_I64, SHAPE(3, 2), DATA(0, 4, 1, 2, 3, 3)), *scores = NULL,
            *shaped = NULL, *want = NULL;
  tt_tensor* outs[1] = {0};
  int64_t n = 0;
  (void)state;
  o.bias = 1;
  o.out_features = (const int64_t[]){2};
  o.n_out_features = 1;
  o.weight = numbers(TT_F32, DATA(1, 2, 1, 3, 1));
  o.set = TT_NN_LINEAR_CROSS_ENTROPY_LOSS_BIAS | TT_NN_LINEAR_CROSS_ENTROPY_LOSS_OUT_FEATURES |
          TT_NN_LINEAR_CROSS_ENTROPY_LOSS_WEIGHT;
  OK(tt_nn_linear_cross_entropy_loss(c, 4, 5, &o, &m));
  HAS_SHAPE(tensor_at(m, "linear.weight"), 10, 4);
  VALUES(tensor_at(m, "weight"), 1, 2, 1, 3, 1);
  OK(tt_randn(c, SHAPE(3, 4), NULL, &x));
  OK(tt_module_forward(c, m, LIST(x, target), outs, 1, &n));
  { /* the scores are those of the layer, as (N, classes, out_features) */
    tt_cross_entropy_opts e = {0};
    e.weight = tensor_at(m, "weight");
    e.set = TT_CROSS_ENTROPY_WEIGHT;
    OK(tt_linear(c, x, tensor_at(m, "linear.weight"), tensor_at(m, "linear.bias"), &scores));
    OK(tt_reshape(c, scores, SHAPE(3, 5, 2), &shaped));
    OK(tt_cross_entropy(c, shaped, target, &e, &want));
    NEAR(outs[0], 1e-5, value_of(want));
  }
  OK(tt_backward(c, outs[0], NULL));
  HAS_SHAPE(grad_of(tensor_at(m, "linear.weight")), 10, 4);
  o.weight = numbers(TT_F32, DATA(1, 2));
  FAILS(tt_nn_linear_cross_entropy_loss(c, 4, 5, &o, &other), TT_SHAPE, "must be [5]");
  OK(tt_nn_relu(c, NULL, &other));
  OK(tt_module_register_module(c, m, "linear", other));
  FAILS(tt_module_forward(c, m, LIST(x, target), outs, 1, &n), TT_INVALID_ARG, "linear is a ReLU");
  tt_module_release(m);
  tt_module_release(other);
}

/* ---- TripletMarginWithDistanceLoss ---- */

typedef struct Distance {
  int calls, drops, fail;
} Distance;
static tt_status distance(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                          tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  Distance* d = user;
  tt_tensor *difference = NULL, *size = NULL;
  tt_status s;
  assert_true(n == 2 && cap >= 1);
  d->calls++;
  if (d->fail) return TT_INTERNAL;
  *n_outs = 1;
  s = tt_sub(x, in[0], in[1], &difference);
  if (!s) s = tt_abs(x, difference, &size);
  if (!s) s = tt_sum_dim(x, size, SHAPE(-1), NULL, &outs[0]);
  tt_tensor_release(difference);
  tt_tensor_release(size);
  return s;
}
static void drop_distance(void* user) { ((Distance*)user)->drops++; }

static void test_distance_loss(void** state) {
  tt_nn_triplet_margin_with_distance_loss_opts o = {0};
  Distance d = {0};
  tt_module *m = NULL, *copy = NULL, *plain = NULL, *known = NULL;
  tt_tensor* a = param(SHAPE(2, 2), DATA(0, 0, 1, 1));
  tt_tensor* p = param(SHAPE(2, 2), DATA(1, 2, 1, 1));
  tt_tensor* q = param(SHAPE(2, 2), DATA(0, 3, 3, 3));
  tt_tensor* outs[1] = {0};
  int64_t n = 0;
  (void)state;
  o.reduction = 0;
  o.margin = 2;
  o.set = TT_NN_TRIPLET_MARGIN_WITH_DISTANCE_LOSS_REDUCTION |
          TT_NN_TRIPLET_MARGIN_WITH_DISTANCE_LOSS_MARGIN;
  OK(tt_nn_triplet_margin_with_distance_loss(c, distance, &d, drop_distance, &o, &m));
  assert_string_equal(tt_module_type(m), "TripletMarginWithDistanceLoss");
  OK(tt_module_forward(c, m, LIST(a, p, q), outs, 1, &n));
  VALUES(outs[0], 3 - 3 + 2, 0); /* 0 - 4 + 2 is below 0 */
  OK(tt_backward(c, sum_of(outs[0]), NULL));
  VALUES(grad_of(q), 0, -1, 0, 0);
  assert_int_equal(d.calls, 4 / 2);

  OK(tt_module_copy(c, m, &copy)); /* shares the function */
  tt_module_release(m);
  assert_int_equal(d.drops, 0);
  d.fail = 1;
  FAILS(tt_module_forward(c, copy, LIST(a, p, q), outs, 1, &n), TT_CALLBACK, NULL);
  tt_module_release(copy);
  assert_int_equal(d.drops, 1);

  /* with swap: d(p, q) = 1 + 1 and 4 */
  d.fail = 0;
  o.swap = 1;
  o.reduction = 2;
  o.set |= TT_NN_TRIPLET_MARGIN_WITH_DISTANCE_LOSS_SWAP;
  OK(tt_nn_triplet_margin_with_distance_loss(c, distance, &d, drop_distance, &o, &m));
  OK(tt_module_forward(c, m, LIST(a, p, q), outs, 1, &n));
  VALUES(outs[0], 3 - 2 + 2);
  FAILS(tt_module_forward(c, m, LIST(a, p, numbers(TT_F64, DATA(1, 2))), outs, 1, &n), TT_SHAPE,
        "same number of dimensions");
  tt_module_release(m);

  /* without a function it is the Euclidean distance */
  OK(tt_nn_triplet_margin_with_distance_loss(c, NULL, NULL, NULL, NULL, &plain));
  OK(tt_nn_triplet_margin_loss(c, NULL, &known));
  OK(tt_module_forward(c, known, LIST(a, p, q), outs, 1, &n));
  {
    const double want = value_of(outs[0]);
    OK(tt_module_forward(c, plain, LIST(a, p, q), outs, 1, &n));
    NEAR(outs[0], 1e-12, want);
  }
  o.margin = 0;
  m = known;
  FAILS(tt_nn_triplet_margin_with_distance_loss(c, distance, &d, drop_distance, &o, &m),
        TT_INVALID_ARG, "margin is 0");
  assert_null(m);
  o.margin = 1;
  o.reduction = 3;
  FAILS(tt_nn_triplet_margin_with_distance_loss(c, distance, &d, drop_distance, &o, &m),
        TT_INVALID_ARG, "reduction is 3");
  assert_int_equal(d.drops, 4);
  tt_module_release(plain);
  tt_module_release(known);
}

/* ---- containers of parameters ---- */

static void test_containers_of_parameters(void** state) {
  tt_module *list = NULL, *dict = NULL;
  tt_tensor* params[4] = {0};
  int64_t n = 0;
  (void)state;
  OK(tt_nn_parameter_list(c, &list));
  OK(tt_nn_parameter_dict(c, &dict));
  set_weight(list, "0", 1);
  set_weight(list, "1", 2);
  set_weight(dict, "scale", 3);
  OK(tt_module_register_module(c, list, "more", dict));
  OK(tt_module_parameters(c, list, params, 4, &n));
  assert_int_equal(n, 3);
  VALUES(params[2], 3);
  FAILS(tt_module_forward(c, list, LIST(params[0]), params, 4, &n), TT_NOT_IMPLEMENTED,
        "ParameterList");
  tt_module_release(list);
  tt_module_release(dict);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_averaged_model),
      SCOPED(test_modules_with_names_of_layers),
      SCOPED(test_averaged_model_calls_its_copy),
      SCOPED(test_update_bn),
      SCOPED(test_adaptive_softmax),
      SCOPED(test_linear_cross_entropy),
      SCOPED(test_distance_loss),
      SCOPED(test_containers_of_parameters),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
