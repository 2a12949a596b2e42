/* Learning-rate schedules: the recursive form against the closed one, restarts, nesting, callbacks,
 * failures that change nothing. */
#include "harness.h"

#include <math.h>

static const double kRates[2] = {0.1, 0.02};
static tt_tensor* leaves[2];

/* SGD with momentum, or Adam: two groups, of rates kRates. */
static tt_optimizer* two_groups(int adam) {
  const tt_optim_sgd_opts o = {.set = TT_OPTIM_SGD_MOMENTUM, .momentum = 0.9};
  tt_optimizer* opt = NULL;
  int i;
  OK(adam ? tt_optim_adam(c, NULL, 0, NULL, &opt) : tt_optim_sgd(c, NULL, 0, &o, &opt));
  for (i = 0; i < 2; i++) {
    leaves[i] = leaf(DATA(1, 2));
    OK(tt_optim_add_param_group(c, opt, &leaves[i], 1));
    OK(tt_optim_set_f64(c, opt, i, "lr", kRates[i]));
  }
  return opt;
}
static double value(const tt_optimizer* opt, int64_t group, const char* name) {
  double v = NAN;
  OK(tt_optim_get_f64(c, opt, group, name, &v));
  return v;
}

typedef tt_status (*Make)(tt_optimizer* opt, tt_scheduler** out);
static tt_status step_lr(tt_optimizer* o, tt_scheduler** s) { return tt_lr_step(c, o, 7, NULL, s); }
static tt_status multi_lr(tt_optimizer* o, tt_scheduler** s) {
  const tt_lr_multi_step_opts x = {.set = TT_LR_MULTI_STEP_GAMMA, .gamma = 0.3};
  return tt_lr_multi_step(c, o, SHAPE(12, 3, 3), &x, s);
}
static tt_status constant_lr(tt_optimizer* o, tt_scheduler** s) {
  const tt_lr_constant_opts x = {.set = 3, .factor = 0.25, .total_iters = 9};
  return tt_lr_constant(c, o, &x, s);
}
static tt_status linear_lr(tt_optimizer* o, tt_scheduler** s) {
  const tt_lr_linear_opts x = {.set = 7, .start_factor = 0.1, .end_factor = 0.8, .total_iters = 11};
  return tt_lr_linear(c, o, &x, s);
}
static tt_status exponential_lr(tt_optimizer* o, tt_scheduler** s) {
  return tt_lr_exponential(c, o, 0.93, NULL, s);
}
static tt_status polynomial_lr(tt_optimizer* o, tt_scheduler** s) {
  const tt_lr_polynomial_opts x = {.set = 3, .total_iters = 14, .power = 1.7};
  return tt_lr_polynomial(c, o, &x, s);
}
static tt_status cosine_lr(tt_optimizer* o, tt_scheduler** s) {
  const tt_lr_cosine_annealing_opts x = {.set = TT_LR_COSINE_ANNEALING_ETA_MIN, .eta_min = 0.01};
  return tt_lr_cosine_annealing(c, o, 6, &x, s);
}
static const struct {
  const char* name;
  Make make;
  double want20; /* factor of the first group's rate after 20 steps, by the definition of the
                    schedule */
} kSchedules[] = {
    {"step", step_lr, 0.01},
    {"multi-step", multi_lr, 0.027},
    {"constant", constant_lr, 1},
    {"linear", linear_lr, 0.8},
    {"exponential", exponential_lr, 0.2342388},
    {"polynomial", polynomial_lr, 0},
    {"cosine", cosine_lr, 0.325},
};

/* 20 single steps equal one jump, and give known rates. */
static void test_closed_forms(void** state) {
  size_t i;
  (void)state;
  for (i = 0; i < sizeof kSchedules / sizeof *kSchedules; i++) {
    tt_optimizer* a = two_groups(0);
    tt_optimizer* b = two_groups(0);
    tt_scheduler *s = NULL, *t = NULL;
    int64_t step, g;
    OK(kSchedules[i].make(a, &s));
    OK(kSchedules[i].make(b, &t));
    for (step = 1; step <= 20; step++) {
      OK(tt_scheduler_step(c, s));
      OK(tt_scheduler_step_to(c, t, step));
      for (g = 0; g < 2; g++)
        if (fabs(value(a, g, "lr") - value(b, g, "lr")) > 1e-12)
          fail_msg("%s: step %d gives %.15g, in closed form %.15g", kSchedules[i].name, (int)step,
                   value(a, g, "lr"), value(b, g, "lr"));
    }
    assert_true(fabs(value(a, 0, "lr") - kRates[0] * kSchedules[i].want20) < 1e-8);
    assert_int_equal(tt_scheduler_last_epoch(s), 20);
    assert_true(value(a, 1, "initial_lr") == kRates[1]);
    tt_scheduler_release(s);
    tt_scheduler_release(t);
    tt_optim_release(a);
    tt_optim_release(b);
  }
}

static void test_one_cycle(void** state) {
  const tt_lr_one_cycle_opts o = {.set = TT_LR_ONE_CYCLE_TOTAL_STEPS |
                                         TT_LR_ONE_CYCLE_ANNEAL_STRATEGY |
                                         TT_LR_ONE_CYCLE_PCT_START,
                                  .total_steps = 11,
                                  .anneal_strategy = TT_ANNEAL_LINEAR,
                                  .pct_start = 0.5};
  const tt_lr_one_cycle_opts none = {.set = TT_LR_ONE_CYCLE_EPOCHS, .epochs = 3};
  const tt_lr_one_cycle_opts huge = {
      .set = TT_LR_ONE_CYCLE_EPOCHS | TT_LR_ONE_CYCLE_STEPS_PER_EPOCH,
      .epochs = INT64_MAX,
      .steps_per_epoch = INT64_MAX};
  tt_optimizer* opt = two_groups(1);
  tt_optimizer* flat = NULL;
  tt_scheduler* s = NULL;
  int i;
  (void)state;
  FAILS(tt_lr_one_cycle(c, opt, DATA(1), &none, &s), TT_INVALID_ARG, "total_steps");
  FAILS(tt_lr_one_cycle(c, opt, DATA(1), &huge, &s), TT_INVALID_ARG, "positive");
  FAILS(tt_lr_one_cycle(c, opt, DATA(1, 2, 3), &o, &s), TT_INVALID_ARG, "3 numbers");
  assert_true(value(opt, 0, "lr") == kRates[0]);
  OK(tt_lr_one_cycle(c, opt, DATA(1, 2), &o, &s));
  assert_true(fabs(value(opt, 1, "lr") - 2.0 / 25) < 1e-15 &&
              fabs(value(opt, 0, "beta1") - 0.95) < 1e-15);
  for (i = 0; i < 5; i++) OK(tt_scheduler_step(c, s)); /* 4.5 steps up, half a step down of 5.5 */
  assert_true(fabs(value(opt, 0, "lr") - (1 - (1 - 1 / 25e4) * 0.5 / 5.5)) < 1e-12);
  assert_true(fabs(value(opt, 0, "beta1") - (0.85 + 0.1 * 0.5 / 5.5)) < 1e-12 &&
              value(opt, 0, "beta2") == 0.999);
  for (i = 0; i < 6; i++) OK(tt_scheduler_step(c, s));
  FAILS(tt_scheduler_step(c, s), TT_INVALID_ARG, "of 11 steps");
  assert_int_equal(tt_scheduler_last_epoch(s), 11);
  tt_scheduler_release(s);
  tt_optim_release(opt);
  OK(tt_optim_adagrad(c, leaves, 1, NULL, &flat));
  FAILS(tt_lr_one_cycle(c, flat, DATA(1), &o, &s), TT_INVALID_ARG, "Adagrad has no momentum");
  tt_optim_release(flat);
}

/* ---- cycles, restarts, averages, plateaus: against PyTorch 2.15 ---- */

static tt_status restarts(tt_optimizer* o, tt_scheduler** s) {
  const tt_lr_cosine_annealing_warm_restarts_opts x = {
      .set = TT_LR_COSINE_ANNEALING_WARM_RESTARTS_T_MULT |
             TT_LR_COSINE_ANNEALING_WARM_RESTARTS_ETA_MIN,
      .T_mult = 2,
      .eta_min = 0.01};
  return tt_lr_cosine_annealing_warm_restarts(c, o, 3, &x, s);
}
static tt_status triangular2(tt_optimizer* o, tt_scheduler** s) {
  const tt_lr_cyclic_opts x = {
      .set = TT_LR_CYCLIC_STEP_SIZE_UP | TT_LR_CYCLIC_STEP_SIZE_DOWN | TT_LR_CYCLIC_MODE,
      .step_size_up = 3,
      .step_size_down = 2,
      .mode = TT_CYCLICMODE_TRIANGULAR2};
  return tt_lr_cyclic(c, o, DATA(0.01, 0.02), DATA(0.1, 0.3), &x, s);
}
static tt_status exp_range(tt_optimizer* o, tt_scheduler** s) {
  const tt_lr_cyclic_opts x = {
      .set = TT_LR_CYCLIC_STEP_SIZE_UP | TT_LR_CYCLIC_MODE | TT_LR_CYCLIC_GAMMA,
      .step_size_up = 4,
      .mode = TT_CYCLICMODE_EXP_RANGE,
      .gamma = 0.9};
  return tt_lr_cyclic(c, o, DATA(0.01), DATA(0.1), &x, s);
}
static tt_status swa(tt_optimizer* o, tt_scheduler** s) {
  const tt_lr_swa_opts x = {.set = TT_LR_SWA_ANNEAL_EPOCHS, .anneal_epochs = 4};
  return tt_lr_swa(c, o, DATA(0.05), &x, s);
}
static tt_status swa_by_lines(tt_optimizer* o, tt_scheduler** s) {
  const tt_lr_swa_opts x = {.set = TT_LR_SWA_ANNEAL_EPOCHS | TT_LR_SWA_ANNEAL_STRATEGY,
                            .anneal_epochs = 3,
                            .anneal_strategy = TT_ANNEAL_LINEAR};
  return tt_lr_swa(c, o, DATA(0.05, 0.5), &x, s);
}

enum { kSteps = 10 };
static const struct {
  const char* name;
  Make make;
  int adam;
  double first[kSteps], second[kSteps], momentum[kSteps]; /* of both groups, of the first */
} kRecorded[] = {
    {"restarts",
     restarts,
     0,
     {0.1, 0.0775, 0.0325, 0.1, 0.0939711431702998, 0.0775, 0.055, 0.0325, 0.0160288568297003, 0.1},
     {0.02, 0.0175, 0.0125, 0.02, 0.0193301270189222, 0.0175, 0.015, 0.0125, 0.0106698729810778,
      0.02},
     {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9}},
    {"triangular2",
     triangular2,
     0,
     {0.01, 0.04, 0.07, 0.1, 0.055, 0.01, 0.025, 0.04, 0.055, 0.0325},
     {0.02, 0.113333333333333, 0.206666666666667, 0.3, 0.16, 0.02, 0.0666666666666667,
      0.113333333333333, 0.16, 0.0900000000000001},
     {0.9, 0.866666666666667, 0.833333333333333, 0.8, 0.85, 0.9, 0.883333333333333,
      0.866666666666667, 0.85, 0.875}},
    {"exp_range",
     exp_range,
     1,
     {0.01, 0.03025, 0.04645, 0.0592075, 0.069049, 0.049858075, 0.033914845, 0.02076168025, 0.01,
      0.0187169610025},
     {0.01, 0.03025, 0.04645, 0.0592075, 0.069049, 0.049858075, 0.033914845, 0.02076168025, 0.01,
      0.0187169610025},
     {0.9, 0.8775, 0.8595, 0.845325, 0.83439, 0.85571325, 0.87342795, 0.8880425775, 0.9,
      0.890314487775}},
    {"swa",
     swa,
     0,
     {0.1, 0.0926776695296637, 0.075, 0.0573223304703363, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05},
     {0.02, 0.0243933982822018, 0.035, 0.0456066017177982, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05},
     {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9}},
    {"swa_by_lines",
     swa_by_lines,
     0,
     {0.1, 0.0833333333333333, 0.0666666666666667, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05},
     {0.02, 0.18, 0.34, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5},
     {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9}},
};

static void test_recorded_schedules(void** state) {
  (void)state;
  for (size_t k = 0; k < sizeof kRecorded / sizeof *kRecorded; k++) {
    tt_optimizer* opt = two_groups(kRecorded[k].adam);
    tt_scheduler* s = NULL;
    OK(kRecorded[k].make(opt, &s));
    for (int i = 0; i < kSteps; i++) {
      const char* momentum = kRecorded[k].adam ? "beta1" : "momentum";
      if (fabs(value(opt, 0, "lr") - kRecorded[k].first[i]) > 1e-14 ||
          fabs(value(opt, 1, "lr") - kRecorded[k].second[i]) > 1e-14 ||
          fabs(value(opt, 0, momentum) - kRecorded[k].momentum[i]) > 1e-14)
        fail_msg("%s: rates %.15g and %.15g, momentum %.15g after step %d", kRecorded[k].name,
                 value(opt, 0, "lr"), value(opt, 1, "lr"), value(opt, 0, momentum), i);
      OK(tt_scheduler_step(c, s));
    }
    tt_scheduler_release(s);
    tt_optim_release(opt);
  }
}

static tt_status plateau(tt_optimizer* o, tt_scheduler** s) {
  static const double kLowest[] = {0.03, 0};
  const tt_lr_reduce_on_plateau_opts x = {
      .set = TT_LR_REDUCE_ON_PLATEAU_FACTOR | TT_LR_REDUCE_ON_PLATEAU_PATIENCE |
             TT_LR_REDUCE_ON_PLATEAU_THRESHOLD | TT_LR_REDUCE_ON_PLATEAU_COOLDOWN |
             TT_LR_REDUCE_ON_PLATEAU_MIN_LR,
      .factor = 0.5,
      .patience = 1,
      .threshold = 0.01,
      .cooldown = 1,
      .min_lr = kLowest,
      .n_min_lr = 2};
  return tt_lr_reduce_on_plateau(c, o, &x, s);
}
/* The state after six steps goes on in another scheduler. */
static void test_plateau(void** state) {
  static const double kMetrics[] = {1,    0.9,  0.95, 0.9,  0.91, 0.8,
                                    0.81, 0.82, 0.83, 0.84, 0.85, 0.86};
  static const double kWant[] = {0.02, 0.02,  0.02,  0.01,  0.01,   0.01,
                                 0.01, 0.005, 0.005, 0.005, 0.0025, 0.0025};
  tt_optimizer* opt = two_groups(0);
  tt_scheduler *s = NULL, *other = NULL;
  char name[96];
  double v = 0;
  (void)state;
  OK(plateau(opt, &s));
  for (int i = 0; i < 6; i++) {
    OK(tt_scheduler_step_metric(c, s, kMetrics[i]));
    assert_true(fabs(value(opt, 1, "lr") - kWant[i]) < 1e-15);
  }
  OK(plateau(opt, &other));
  for (int64_t i = 0; i < tt_scheduler_num_numbers(s); i++) {
    OK(tt_scheduler_number_at(c, s, i, name, sizeof name, &v));
    OK(tt_scheduler_load_number(c, other, name, v));
  }
  for (int i = 6; i < 12; i++) {
    OK(tt_scheduler_step_metric(c, other, kMetrics[i]));
    assert_true(fabs(value(opt, 1, "lr") - kWant[i]) < 1e-15);
  }
  assert_true(fabs(value(opt, 0, "lr") - 0.03) < 1e-15);
  assert_int_equal(tt_scheduler_last_epoch(other), 12);
  tt_scheduler_release(other);
  tt_scheduler_release(s);
  tt_optim_release(opt);
}

static void test_plateau_of_rising_metrics(void** state) {
  const tt_lr_reduce_on_plateau_opts rises = {
      .set = TT_LR_REDUCE_ON_PLATEAU_MODE | TT_LR_REDUCE_ON_PLATEAU_PATIENCE |
             TT_LR_REDUCE_ON_PLATEAU_THRESHOLD | TT_LR_REDUCE_ON_PLATEAU_THRESHOLD_MODE,
      .mode = TT_PLATEAUMODE_MAX,
      .patience = 0,
      .threshold = 0.05,
      .threshold_mode = TT_THRESHOLDMODE_ABS};
  tt_optimizer* opt = two_groups(0);
  tt_scheduler* s = NULL;
  (void)state;
  OK(tt_lr_reduce_on_plateau(c, opt, &rises, &s));
  OK(tt_scheduler_step_metric(c, s, 1));
  assert_true(value(opt, 0, "lr") == 0.1);
  OK(tt_scheduler_step_metric(c, s, 1.04));
  assert_true(fabs(value(opt, 0, "lr") - 0.01) < 1e-15);
  OK(tt_scheduler_step_metric(c, s, NAN)); /* no improvement */
  assert_true(fabs(value(opt, 0, "lr") - 0.001) < 1e-15);
  tt_scheduler_release(s);
  tt_optim_release(opt);
}

static void test_what_takes_a_metric(void** state) {
  const tt_lr_reduce_on_plateau_opts grows = {.set = TT_LR_REDUCE_ON_PLATEAU_FACTOR, .factor = 1};
  tt_optimizer* opt = two_groups(0);
  tt_scheduler *s = NULL, *other = NULL;
  tt_graph* g = NULL;
  (void)state;
  FAILS(tt_lr_reduce_on_plateau(c, opt, &grows, &s), TT_INVALID_ARG, "factor is 1");
  OK(plateau(opt, &s));
  FAILS(tt_scheduler_step(c, s), TT_INVALID_ARG, "needs a metric");
  FAILS(tt_scheduler_step_to(c, s, 3), TT_INVALID_ARG, "needs a metric");
  FAILS(tt_lr_chained(c, &s, 1, &other), TT_INVALID_ARG, "whose steps need a metric");
  OK(tt_capture_begin(c, NULL, 0, NULL));
  FAILS(tt_scheduler_step_metric(c, s, 1), TT_NOT_IMPLEMENTED, "cannot be captured");
  OK(tt_capture_end(c, NULL, 0, &g));
  OK(step_lr(opt, &other));
  FAILS(tt_scheduler_step_metric(c, other, 1), TT_INVALID_ARG, "StepLR takes no metric");
  assert_int_equal(tt_scheduler_last_epoch(s), 0);
  tt_graph_release(g);
  tt_scheduler_release(other);
  tt_scheduler_release(s);
  tt_optim_release(opt);
}

/* A group that is added later has no limits of its own. */
static void test_groups_without_limits(void** state) {
  static const Make kMakes[] = {triangular2, swa};
  (void)state;
  for (int k = 0; k < 2; k++) {
    tt_optimizer* opt = two_groups(0);
    tt_scheduler* s = NULL;
    tt_tensor* more = leaf(DATA(1));
    OK(kMakes[k](opt, &s));
    const double before = value(opt, 0, "lr");
    OK(tt_optim_add_param_group(c, opt, &more, 1));
    FAILS(tt_scheduler_step(c, s), TT_INVALID_ARG, "group 2 has no limits");
    assert_true(value(opt, 0, "lr") == before);
    tt_scheduler_release(s);
    tt_optim_release(opt);
  }
}

/* ---- schedulers of schedulers ---- */

static void test_sequential(void** state) {
  const tt_lr_constant_opts slow = {.set = 3, .factor = 0.1, .total_iters = 2};
  tt_optimizer* opt = two_groups(0);
  tt_optimizer* other = two_groups(0);
  tt_scheduler* parts[2];
  tt_scheduler* s = NULL;
  tt_scheduler* foreign = NULL;
  static const double want[] = {0.01, 0.01, 0.1, 0.1, 0.09, 0.081};
  int i;
  (void)state;
  OK(tt_lr_constant(c, opt, &slow, &parts[0]));
  OK(tt_lr_exponential(c, opt, 0.9, NULL, &parts[1]));
  OK(tt_lr_exponential(c, other, 0.9, NULL, &foreign));
  FAILS(tt_lr_sequential(c, opt, parts, 2, SHAPE(3, 4), NULL, &s), TT_INVALID_ARG,
        "2 milestones for 2");
  FAILS(tt_lr_sequential(c, opt, &foreign, 1, NULL, 0, NULL, &s), TT_INVALID_ARG,
        "another optimizer");
  FAILS(tt_lr_chained(c, NULL, 0, &s), TT_INVALID_ARG, "empty");
  OK(tt_lr_sequential(c, opt, parts, 2, SHAPE(3), NULL, &s));
  tt_scheduler_release(parts[0]);
  tt_scheduler_release(parts[1]); /* s holds them */
  for (i = 0; i < 6; i++) {
    if (fabs(value(opt, 0, "lr") - want[i]) > 1e-15)
      fail_msg("after %d steps: %.15g", i, value(opt, 0, "lr"));
    OK(tt_scheduler_step(c, s));
  }
  tt_scheduler_release(s);
  tt_scheduler_release(foreign);
  tt_optim_release(opt);
  tt_optim_release(other);
}

static void test_chained_and_nested(void** state) {
  tt_optimizer* opt = two_groups(0);
  tt_scheduler *s[20], *step = NULL;
  double lrs[2];
  int64_t n;
  int i;
  (void)state;
  OK(tt_lr_exponential(c, opt, 0.5, NULL, &s[0]));
  OK(step_lr(opt, &step));
  for (i = 1; i <= 16; i++) {
    tt_scheduler* parts[2] = {s[i - 1], step};
    OK(tt_lr_chained(c, parts, i == 1 ? 2 : 1, &s[i]));
  }
  FAILS(tt_lr_chained(c, &s[16], 1, &s[17]), TT_INVALID_ARG, "deep");
  for (i = 0; i < 7; i++) OK(tt_scheduler_step(c, s[16]));
  OK(tt_scheduler_get_last_lr(c, s[16], lrs, 2, &n));
  assert_true(n == 2 && fabs(lrs[1] - 0.02 / 128 * 0.1) < 1e-18);
  FAILS(tt_scheduler_get_last_lr(c, s[16], lrs, 1, &n), TT_BUFFER_TOO_SMALL, "there are 2");
  for (i = 0; i <= 16; i++) tt_scheduler_release(s[i]);
  tt_scheduler_release(step);
  tt_optim_release(opt);
}

/* ---- callbacks ---- */

typedef struct Lambda {
  int calls, drops;
  tt_status answer;
} Lambda;
static tt_status half(void* user, tt_ctx* x, int64_t epoch, int64_t group, double* factor) {
  Lambda* k = user;
  (void)x;
  k->calls++;
  *factor = pow(0.5, (double)epoch) + (double)group;
  return k->answer;
}
static void count_drop(void* user) { ((Lambda*)user)->drops++; }

static void test_lambda(void** state) {
  Lambda k = {0, 0, TT_OK};
  tt_optimizer* opt = two_groups(0);
  tt_scheduler* s = NULL;
  (void)state;
  FAILS(tt_lr_lambda(c, NULL, half, &k, count_drop, -1, &s), TT_BAD_HANDLE, "optimizer");
  FAILS(tt_lr_lambda(c, opt, half, &k, count_drop, 5, &s), TT_INDEX, "initial_lr");
  FAILS(tt_lr_lambda(c, opt, half, &k, count_drop, INT64_MAX, &s), TT_INVALID_ARG, "last_epoch");
  assert_int_equal(k.drops, 3);
  OK(tt_lr_lambda(c, opt, half, &k, count_drop, -1, &s));
  OK(tt_scheduler_step(c, s));
  assert_true(fabs(value(opt, 0, "lr") - 0.05) < 1e-15 && fabs(value(opt, 1, "lr") - 0.03) < 1e-15);
  k.answer = TT_IO;
  FAILS(tt_scheduler_step(c, s), TT_CALLBACK, "learning rate");
  assert_true(fabs(value(opt, 0, "lr") - 0.05) < 1e-15 && tt_scheduler_last_epoch(s) == 1);
  tt_optim_release(opt); /* s holds it */
  k.answer = TT_OK;
  OK(tt_scheduler_step(c, s));
  assert_int_equal(k.drops, 3);
  tt_scheduler_release(s);
  assert_int_equal(k.drops, 4);
}

/* ---- state ---- */

static void test_resume(void** state) {
  size_t i;
  (void)state;
  for (i = 0; i < sizeof kSchedules / sizeof *kSchedules; i++) {
    tt_optimizer* a = two_groups(0);
    tt_optimizer* b = two_groups(0);
    tt_scheduler *s = NULL, *t = NULL;
    char name[32];
    double v;
    int64_t k;
    int step;
    OK(kSchedules[i].make(a, &s));
    for (step = 0; step < 5; step++) OK(tt_scheduler_step(c, s));
    OK(kSchedules[i].make(b, &t));
    for (k = 0; k < 2; k++) OK(tt_optim_set_f64(c, b, k, "lr", value(a, k, "lr")));
    assert_int_equal(tt_scheduler_num_numbers(s), 6);
    for (k = 0; k < 6; k++) {
      OK(tt_scheduler_number_at(c, s, k, name, sizeof name, &v));
      OK(tt_scheduler_load_number(c, t, name, v));
    }
    for (step = 0; step < 12; step++) {
      OK(tt_scheduler_step(c, s));
      OK(tt_scheduler_step(c, t));
      assert_true(value(a, 0, "lr") == value(b, 0, "lr") && value(a, 1, "lr") == value(b, 1, "lr"));
    }
    tt_scheduler_release(s);
    tt_scheduler_release(t);
    tt_optim_release(a);
    tt_optim_release(b);
  }
}

static void test_hostile(void** state) {
  static const char* const bad[] = {"",
                                    "x",
                                    "0.last_epoch",
                                    "base_lrs.2",
                                    "base_lrs.",
                                    "base_lrs.-1",
                                    "_last_lr.99999999999999999999",
                                    "last_epoch.0",
                                    "0",
                                    "."};
  const tt_lr_linear_opts start = {.set = TT_LR_LINEAR_START_FACTOR, .start_factor = 0};
  const tt_lr_linear_opts end = {.set = TT_LR_LINEAR_END_FACTOR, .end_factor = 1.5};
  const tt_lr_constant_opts factor = {.set = TT_LR_CONSTANT_FACTOR, .factor = NAN};
  tt_optimizer* opt = two_groups(0);
  tt_scheduler* s = NULL;
  char name[8];
  double v;
  size_t i;
  (void)state;
  FAILS(tt_lr_step(c, opt, 0, NULL, &s), TT_INVALID_ARG, "step_size");
  FAILS(tt_lr_step(c, opt, INT64_MIN, NULL, &s), TT_INVALID_ARG, "step_size");
  FAILS(tt_lr_cosine_annealing(c, opt, INT64_MAX, NULL, &s), TT_INVALID_ARG, "T_max");
  FAILS(tt_lr_linear(c, opt, &start, &s), TT_INVALID_ARG, "start_factor");
  FAILS(tt_lr_linear(c, opt, &end, &s), TT_INVALID_ARG, "end_factor");
  FAILS(tt_lr_constant(c, opt, &factor, &s), TT_INVALID_ARG, "factor is nan");
  assert_true(value(opt, 0, "lr") == kRates[0]);
  OK(step_lr(opt, &s));
  for (i = 0; i < sizeof bad / sizeof *bad; i++)
    FAILS(tt_scheduler_load_number(c, s, bad[i], 1), TT_INVALID_ARG, NULL);
  FAILS(tt_scheduler_load_number(c, s, "last_epoch", 1e300), TT_INVALID_ARG, NULL);
  FAILS(tt_scheduler_step_to(c, s, -1), TT_INVALID_ARG, "epoch");
  OK(tt_scheduler_step_to(c, s, INT64_MAX - 1));
  OK(tt_scheduler_step(c, s));
  FAILS(tt_scheduler_step(c, s), TT_INVALID_ARG, "largest possible epoch");
  OK(tt_scheduler_step_to(c, s, 0));
  FAILS(tt_scheduler_number_at(c, s, 6, name, sizeof name, &v), TT_INDEX, "there are 6");
  FAILS(tt_scheduler_number_at(c, s, 0, name, sizeof name, &v), TT_BUFFER_TOO_SMALL, NULL);
  OK(tt_optim_add_param_group(c, opt, NULL, 0));
  OK(tt_optim_set_f64(c, opt, 2, "lr", 0.5));
  for (i = 0; i < 7; i++) OK(tt_scheduler_step(c, s)); /* the new group begins with its rate */
  assert_true(fabs(value(opt, 2, "lr") - 0.05) < 1e-15);
  assert_int_equal(tt_scheduler_last_epoch(s), 7);
  tt_scheduler_release(s);
  tt_optim_release(opt);
}

/* A part that cannot step undoes the steps of those before it. */
static void test_failing_part(void** state) {
  tt_optimizer* opt = two_groups(0);
  tt_scheduler *old, *parts[2], *chained;
  Lambda k = {0, 0, TT_OK};
  int i;
  (void)state;
  OK(tt_lr_lambda(c, opt, half, &k, count_drop, -1, &old)); /* knows two groups */
  OK(tt_optim_add_param_group(c, opt, NULL, 0));
  OK(step_lr(opt, &parts[0]));
  parts[1] = old;
  OK(tt_lr_chained(c, parts, 2, &chained));
  for (i = 0; i < 5; i++) /* the rate would change */
    FAILS(tt_scheduler_step(c, chained), TT_INVALID_ARG, "3 groups: it had 2");
  assert_int_equal(tt_scheduler_last_epoch(parts[0]), 0);
  assert_true(value(opt, 0, "lr") == kRates[0]);
  tt_scheduler_release(chained);
  tt_scheduler_release(parts[0]);
  tt_scheduler_release(old);
  tt_optim_release(opt);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_closed_forms),
                                     SCOPED(test_one_cycle),
                                     SCOPED(test_recorded_schedules),
                                     SCOPED(test_plateau),
                                     SCOPED(test_plateau_of_rising_metrics),
                                     SCOPED(test_what_takes_a_metric),
                                     SCOPED(test_groups_without_limits),
                                     SCOPED(test_sequential),
                                     SCOPED(test_chained_and_nested),
                                     SCOPED(test_lambda),
                                     SCOPED(test_resume),
                                     SCOPED(test_hostile),
                                     SCOPED(test_failing_part)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
