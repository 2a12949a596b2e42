/* Captured steps of optimizers and schedulers: every class, replayed beside the same steps of
   operators, and from a file. */
#include "trained_model.h"

#include <unistd.h>

enum { kSteps = 50, kSaved = 20 };
static char path[512];

/* ---- schedules ---- */

static void by_milestones(tt_optimizer* o, tt_scheduler** out) {
  const int64_t at[] = {2, 7, 7, 30};
  OK(tt_lr_multi_step(c, o, at, 4, NULL, out));
}
static void constant(tt_optimizer* o, tt_scheduler** out) { OK(tt_lr_constant(c, o, NULL, out)); }
static void linear(tt_optimizer* o, tt_scheduler** out) {
  const tt_lr_linear_opts opts = {.set = TT_LR_LINEAR_TOTAL_ITERS, .total_iters = 30};
  OK(tt_lr_linear(c, o, &opts, out));
}
static void exponential(tt_optimizer* o, tt_scheduler** out) {
  OK(tt_lr_exponential(c, o, 0.9, NULL, out));
}
static void polynomial(tt_optimizer* o, tt_scheduler** out) {
  const tt_lr_polynomial_opts opts = {
      .set = TT_LR_POLYNOMIAL_TOTAL_ITERS | TT_LR_POLYNOMIAL_POWER, .total_iters = 40, .power = 2};
  OK(tt_lr_polynomial(c, o, &opts, out));
}
static void cosine(tt_optimizer* o, tt_scheduler** out) {
  OK(tt_lr_cosine_annealing(c, o, 15, NULL, out));
}
/* Moves the momentum, too. */
static void one_cycle(tt_optimizer* o, tt_scheduler** out) {
  const double max_lr = 0.1;
  const tt_lr_one_cycle_opts opts = {.set = TT_LR_ONE_CYCLE_TOTAL_STEPS, .total_steps = kSteps};
  OK(tt_lr_one_cycle(c, o, &max_lr, 1, &opts, out));
}
static void restarts(tt_optimizer* o, tt_scheduler** out) {
  OK(tt_lr_cosine_annealing_warm_restarts(c, o, 7, NULL, out));
}
static void cyclic(tt_optimizer* o, tt_scheduler** out) {
  const tt_lr_cyclic_opts opts = {.set = TT_LR_CYCLIC_STEP_SIZE_UP, .step_size_up = 5};
  OK(tt_lr_cyclic(c, o, (const double[]){0.01}, 1, (const double[]){0.1}, 1, &opts, out));
}
static void swa(tt_optimizer* o, tt_scheduler** out) {
  OK(tt_lr_swa(c, o, (const double[]){0.01}, 1, NULL, out));
}
static void chained(tt_optimizer* o, tt_scheduler** out) {
  tt_scheduler* parts[2];
  constant(o, &parts[0]);
  by_milestones(o, &parts[1]);
  OK(tt_lr_chained(c, parts, 2, out));
  tt_scheduler_release(parts[0]);
  tt_scheduler_release(parts[1]);
}
static void sequential(tt_optimizer* o, tt_scheduler** out) {
  tt_scheduler* parts[2];
  const int64_t at = 10;
  linear(o, &parts[0]);
  cosine(o, &parts[1]);
  OK(tt_lr_sequential(c, o, parts, 2, &at, 1, NULL, out));
  tt_scheduler_release(parts[0]);
  tt_scheduler_release(parts[1]);
}
static tt_status factor(void* user, tt_ctx* ctx, int64_t epoch, int64_t group, double* out) {
  (void)user;
  (void)ctx;
  (void)group;
  *out = 1 / (1 + 0.1 * (double)epoch);
  return TT_OK;
}
static void lambda(tt_optimizer* o, tt_scheduler** out) {
  OK(tt_lr_lambda(c, o, factor, NULL, NULL, -1, out));
}
static void multiplicative(tt_optimizer* o, tt_scheduler** out) {
  OK(tt_lr_multiplicative(c, o, factor, NULL, NULL, -1, out));
}
static const struct {
  const char* name;
  Schedule make;
  int calls_application; /* so a file cannot have it */
} kSchedules[] = {{"StepLR", by_steps, 0},
                  {"MultiStepLR", by_milestones, 0},
                  {"ConstantLR", constant, 0},
                  {"LinearLR", linear, 0},
                  {"ExponentialLR", exponential, 0},
                  {"PolynomialLR", polynomial, 0},
                  {"CosineAnnealingLR", cosine, 0},
                  {"OneCycleLR", one_cycle, 0},
                  {"SequentialLR", sequential, 0},
                  {"ChainedScheduler", chained, 0},
                  {"CosineAnnealingWarmRestarts", restarts, 0},
                  {"CyclicLR", cyclic, 0},
                  {"SWALR", swa, 0},
                  {"LambdaLR", lambda, 1},
                  {"MultiplicativeLR", multiplicative, 1}};
enum { kNumSchedules = sizeof kSchedules / sizeof kSchedules[0] };

/* ---- replays ---- */

typedef struct Replay {
  tt_graph* graph;
  tt_plan* plan;
} Replay;
static void drop_replay(Replay* r) {
  tt_plan_release(r->plan);
  tt_graph_release(r->graph);
}

/* The first step is captured while it runs. */
static Replay captured(const Model* m, tt_tensor* x, int with_schedule, tt_tensor** loss) {
  Replay r;
  OK(tt_capture_begin(c, LIST(x), NULL));
  *loss = train(m, x);
  if (with_schedule) OK(tt_scheduler_step(c, m->schedule));
  OK(tt_capture_end(c, LIST(*loss), &r.graph));
  OK(tt_plan_new(c, r.graph, NULL, &r.plan));
  return r;
}
static tt_tensor* run(const Replay* r, const tt_tensor* x, int k) {
  tt_tensor *in, *out;
  int64_t calls;
  OK(tt_plan_slot(c, r->plan, 0, 0, &in));
  OK(tt_plan_slot(c, r->plan, 1, 0, &out));
  OK(tt_copy_(c, in, x));
  OK(tt_manual_seed(c, (uint64_t)k));
  calls = host.calls;
  OK(tt_plan_run(c, r->plan));
  assert_int_equal(host.calls, calls);
  return out;
}
/* A step that goes on where the other one is, with parameters, states and a schedule of its own. */
static Replay reloaded(const Replay* r) {
  Replay other;
  OK(tt_graph_save(c, r->graph, path));
  OK(tt_graph_load(c, path, &other.graph));
  OK(tt_plan_new(c, other.graph, NULL, &other.plan));
  return other;
}

/* Steps after the first are replayed, and later ones also from a file. Learning rates change, and
   so do Adam's bias corrections. */
static void check_steps(const char* name, Construct construct, Schedule schedule, int in_file) {
  Model eager = new_model(construct, schedule), replayed = new_model(construct, schedule);
  Replay r, file = {NULL, NULL};
  tt_tensor *out, *loss;
  int k;
  for (k = 0; k < kSteps; k++) {
    tt_tensor* x = batch(k);
    OK(tt_scope_push(c));
    OK(tt_manual_seed(c, (uint64_t)k));
    loss = train(&eager, x);
    OK(tt_scheduler_step(c, eager.schedule));
    OK(tt_manual_seed(c, (uint64_t)k));
    if (k == 0) r = captured(&replayed, x, 1, &out);
    else out = run(&r, x, k);
    same_bits(name, out, loss);
    same_bits(name, replayed.w, eager.w);
    same_bits(name, replayed.v, eager.v);
    if (file.plan) same_bits("from a file", run(&file, x, k), loss);
    if (k == kSaved && in_file) file = reloaded(&r);
    OK(tt_scope_pop(c, NULL, 0));
  }
  if (!in_file) FAILS(tt_graph_save(c, r.graph, path), TT_NOT_IMPLEMENTED, "calls the application");
  drop_replay(&file);
  drop_replay(&r);
  drop_model(&eager);
  drop_model(&replayed);
}

static void test_classes(void** state) {
  int i;
  (void)state;
  for (i = 0; i < kNumOptimizers; i++)
    check_steps(kOptimizers[i].name, kOptimizers[i].construct, by_steps, 1);
}
/* A schedule outside of the graph moves the captured step, too. */
static void check_outside(void) {
  Model eager = new_model(adam, cosine), replayed = new_model(adam, cosine);
  tt_tensor *x = batch(0), *loss;
  Replay r;
  int k;
  OK(tt_manual_seed(c, 0));
  train(&eager, x);
  OK(tt_manual_seed(c, 0));
  r = captured(&replayed, x, 0, &loss);
  for (k = 1; k < 5; k++) {
    OK(tt_scheduler_step(c, eager.schedule));
    OK(tt_scheduler_step(c, replayed.schedule));
    OK(tt_manual_seed(c, (uint64_t)k));
    loss = train(&eager, x);
    same_bits("outside", run(&r, x, k), loss);
  }
  drop_replay(&r);
  drop_model(&eager);
  drop_model(&replayed);
}
static void test_schedules(void** state) {
  int i;
  (void)state;
  for (i = 0; i < kNumSchedules; i++)
    check_steps(kSchedules[i].name, momentum, kSchedules[i].make, !kSchedules[i].calls_application);
  check_steps("Muon", muon, one_cycle, 1);
  check_outside();
}

/* ---- under a GradScaler ---- */

static tt_grad_scaler* new_scaler(void) {
  const tt_grad_scaler_new_opts opts = {
      .set = TT_GRAD_SCALER_NEW_INIT_SCALE | TT_GRAD_SCALER_NEW_GROWTH_INTERVAL,
      .init_scale = 1024,
      .growth_interval = 3};
  tt_grad_scaler* s;
  OK(tt_grad_scaler_new(c, &opts, &s));
  return s;
}
static tt_tensor* train_scaled(const Model* m, tt_grad_scaler* s, const tt_tensor* x, int clips) {
  tt_tensor *loss = loss_of(m, x), *scaled, *norm;
  tt_tensor* const params[] = {m->w, m->v};
  int32_t took;
  OK(tt_grad_scaler_scale(c, s, loss, &scaled));
  OK(tt_backward(c, scaled, NULL));
  if (clips) {
    OK(tt_grad_scaler_unscale(c, s, m->optimizer));
    OK(tt_clip_grad_norm_(c, params, 2, 0.5, NULL, &norm));
  }
  OK(tt_grad_scaler_step(c, s, m->optimizer, &took));
  OK(tt_grad_scaler_update(c, s, 0));
  return loss;
}
/* The input of a step; that of every `each`th one makes infinite gradients. */
static tt_tensor* scaled_batch(int k, int each) {
  const tt_scalar huge = {.kind = TT_SCALAR_FLOAT, .re = 1e38};
  tt_tensor* x = batch(k);
  if (k % each == 0) OK(tt_mul_scalar_(c, x, &huge));
  if (k % each == 0) OK(tt_mul_scalar_(c, x, &huge));
  return x;
}

/* Replays unscale, skip the steps with infinite gradients, the first one among them, and move the
   scale as eager calls do. Also from a file. */
static void check_scaler(const char* name, Construct construct, int clips, int each) {
  Model eager = new_model(construct, by_steps), replayed = new_model(construct, by_steps);
  tt_grad_scaler *s = new_scaler(), *t = new_scaler();
  Replay r, file = {NULL, NULL};
  int64_t skipped = 0;
  int k;
  for (k = 0; k < kSteps; k++) {
    tt_tensor *x = scaled_batch(k + 1, each), *loss, *out;
    const double before = tt_grad_scaler_get_scale(s);
    OK(tt_scope_push(c));
    OK(tt_manual_seed(c, (uint64_t)k));
    loss = train_scaled(&eager, s, x, clips);
    skipped += tt_grad_scaler_get_scale(s) < before;
    OK(tt_manual_seed(c, (uint64_t)k));
    if (k == 0) {
      OK(tt_capture_begin(c, LIST(x), NULL));
      out = train_scaled(&replayed, t, x, clips);
      OK(tt_capture_end(c, LIST(out), &r.graph));
      OK(tt_plan_new(c, r.graph, NULL, &r.plan));
    } else {
      out = run(&r, x, k);
    }
    same_bits(name, out, loss);
    same_bits(name, replayed.w, eager.w);
    same_bits(name, replayed.v, eager.v);
    assert_true(tt_grad_scaler_get_scale(t) == tt_grad_scaler_get_scale(s));
    if (file.plan) same_bits("from a file", run(&file, x, k), loss);
    if (k == kSaved) file = reloaded(&r);
    OK(tt_scope_pop(c, NULL, 0));
  }
  assert_int_equal(skipped, each == 1 ? kSteps : kSteps / each);
  drop_replay(&file);
  drop_replay(&r);
  tt_grad_scaler_release(s);
  tt_grad_scaler_release(t);
  drop_model(&eager);
  drop_model(&replayed);
}
/* Parts of a scaled step may be outside of the graph. What a graph cannot repeat is refused. */
static void check_parts(void) {
  const tt_capture_opts deferred = {.set = TT_CAPTURE_DEFERRED, .deferred = 1};
  Model m = new_model(adam, by_steps);
  tt_grad_scaler* s = new_scaler();
  tt_tensor *x = batch(0), *loss, *scaled;
  tt_graph* g;
  int32_t took;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_grad_scaler_scale(c, s, loss_of(&m, x), &scaled));
  OK(tt_backward(c, scaled, NULL));
  OK(tt_grad_scaler_step(c, s, m.optimizer, &took));
  OK(tt_capture_end(c, LIST(scaled), &g));
  assert_int_equal(took, 1);
  {
    Replay r = {g, NULL};
    OK(tt_plan_new(c, g, NULL, &r.plan));
    FAILS(tt_plan_run(c, r.plan), TT_INVALID_ARG, "taken its step since the last update");
    OK(tt_grad_scaler_update(c, s, 0));
    OK(tt_plan_run(c, r.plan));
    FAILS(tt_grad_scaler_step(c, s, m.optimizer, &took), TT_INVALID_ARG, "has taken its step");
    drop_replay(&r);
  }
  OK(tt_grad_scaler_update(c, s, 0));
  OK(tt_capture_begin(c, LIST(x), &deferred));
  loss = loss_of(&m, x);
  OK(tt_backward(c, loss, NULL));
  FAILS(tt_grad_scaler_step(c, s, m.optimizer, &took), TT_NOT_IMPLEMENTED, "GradScaler in a def");
  OK(tt_capture_drop(c));
  tt_grad_scaler_release(s);
  drop_model(&m);
}
static void test_scaler(void** state) {
  int i;
  (void)state;
  for (i = 0; i < kNumOptimizers; i++) {
    check_scaler(kOptimizers[i].name, kOptimizers[i].construct, 1, 7);
    check_scaler(kOptimizers[i].name, kOptimizers[i].construct, 0, 2);
  }
  check_parts();
}

/* A replay fails, and changes nothing, once the optimizer has other states than were captured. */
static void test_replaced_state(void** state) {
  Model m = new_model(adam, by_steps);
  tt_graph* g;
  tt_plan* p;
  tt_tensor *x = batch(0), *loss, *other, *before;
  (void)state;
  OK(tt_capture_begin(c, LIST(x), NULL));
  loss = train(&m, x);
  OK(tt_capture_end(c, LIST(loss), &g));
  OK(tt_plan_new(c, g, NULL, &p));
  OK(tt_plan_run(c, p));
  OK(tt_zeros_like(c, m.w, NULL, &other));
  OK(tt_optim_set_state(c, m.optimizer, 0, "exp_avg", other));
  OK(tt_clone(c, m.w, NULL, &before));
  FAILS(tt_plan_run(c, p), TT_INVALID_ARG, "capture it again");
  same_bits("after a failure", m.w, before);
  FAILS(tt_graph_save(c, g, path), TT_INVALID_ARG, "capture it again");
  tt_plan_release(p);
  tt_graph_release(g);
  drop_model(&m);
}

/* Sets a value of both optimizers between the runs, then compares a step. */
static void set_and_step(const Model* eager, const Model* replayed, const Replay* r,
                         const char* name, double value, int k) {
  tt_tensor *x = batch(k), *loss;
  OK(tt_optim_set_f64(c, eager->optimizer, 0, name, value));
  OK(tt_optim_set_f64(c, replayed->optimizer, 0, name, value));
  OK(tt_manual_seed(c, (uint64_t)k));
  loss = train(eager, x);
  same_bits(name, run(r, x, k), loss);
  same_bits(name, replayed->w, eager->w);
}
/* Values that are set between runs: a run reads them, or fails and says which one it cannot. */
static void check_values(Construct construct, const char* const* live, const char* fixed,
                         double value, const char* message) {
  Model eager = new_model(construct, by_steps), replayed = new_model(construct, by_steps);
  tt_tensor *x = batch(0), *loss, *before;
  double was;
  int k = 1;
  Replay r;
  OK(tt_manual_seed(c, 0));
  train(&eager, x);
  OK(tt_manual_seed(c, 0));
  r = captured(&replayed, x, 0, &loss);
  for (; *live; live++, k++) set_and_step(&eager, &replayed, &r, *live, 0.125, k);
  OK(tt_optim_get_f64(c, replayed.optimizer, 0, fixed, &was));
  OK(tt_optim_set_f64(c, replayed.optimizer, 0, fixed, value));
  OK(tt_clone(c, replayed.w, NULL, &before));
  FAILS(tt_plan_run(c, r.plan), TT_INVALID_ARG, message);
  same_bits("a failed run", replayed.w, before);
  OK(tt_optim_set_f64(c, replayed.optimizer, 0, fixed, was));
  set_and_step(&eager, &replayed, &r, "lr", 0.01, k);
  drop_replay(&r);
  drop_model(&eager);
  drop_model(&replayed);
}
static void test_values(void** state) {
  (void)state;
  check_values(sgd, (const char*[]){"lr", "weight_decay", NULL}, "momentum", 0.5,
               "momentum of group 0 is 0.5, in the captured step it was 0.0: capture it again");
  check_values(momentum, (const char*[]){"momentum", "dampening", "nesterov", "maximize", NULL},
               "momentum", 0, "momentum of group 0 is 0.0, in the captured step it was 0.9");
  check_values(adam, (const char*[]){"beta1", "beta2", "eps", "weight_decay", "lr", NULL},
               "amsgrad", 0, "amsgrad of group 0 is 0.0, in the captured step it was 1.0");
  check_values(rmsprop, (const char*[]){"alpha", "lr", NULL}, "centered", 1,
               "centered of group 0 is 1.0");
  check_values(adafactor, (const char*[]){"lr", "weight_decay", NULL}, "d", 2,
               "d of group 0 is 2.0, in the captured step it was 1.0: capture it again");
  check_values(muon, (const char*[]){"lr", "momentum", "weight_decay", NULL}, "ns_steps", 3,
               "ns_steps of group 0 is 3.0, in the captured step it was 5.0");
}

static void on_plateau(tt_optimizer* o, tt_scheduler** out) {
  const tt_lr_reduce_on_plateau_opts opts = {.set = TT_LR_REDUCE_ON_PLATEAU_PATIENCE,
                                             .patience = 0};
  OK(tt_lr_reduce_on_plateau(c, o, &opts, out));
}
/* An average of a module, within the step. */
static tt_tensor* averaged_step(tt_module* m, tt_module* average, tt_optimizer* o,
                                const tt_tensor* x) {
  tt_tensor *y, *loss;
  OK(tt_optim_zero_grad(c, o, 1));
  OK(tt_module_call(c, m, x, &y));
  OK(tt_mul(c, y, y, &y));
  OK(tt_mean(c, y, NULL, &loss));
  OK(tt_backward(c, loss, NULL));
  OK(tt_optim_step(c, o));
  OK(tt_module_average(c, average, m, 0.25, 0));
  return loss;
}
static void test_average(void** state) {
  tt_module *layer[2], *average[2];
  tt_optimizer* o[2];
  Replay r = {NULL, NULL};
  int i, k;
  (void)state;
  for (i = 0; i < 2; i++) {
    tt_tensor* params[2];
    int64_t n;
    OK(tt_manual_seed(c, 5));
    OK(tt_nn_batch_norm1d(c, kIn, NULL, &layer[i]));
    OK(tt_module_copy(c, layer[i], &average[i]));
    OK(tt_module_parameters(c, layer[i], params, 2, &n));
    OK(sgd(params, n, &o[i]));
  }
  for (k = 0; k < 10; k++) {
    tt_tensor *x = batch(k), *a, *b, *loss = averaged_step(layer[0], average[0], o[0], x), *out;
    const char* const names[] = {"weight", "bias", "running_mean", "running_var"};
    if (k) {
      out = run(&r, x, k);
    } else {
      OK(tt_capture_begin(c, LIST(x), NULL));
      out = averaged_step(layer[1], average[1], o[1], x);
      OK(tt_capture_end(c, LIST(out), &r.graph));
      OK(tt_plan_new(c, r.graph, NULL, &r.plan));
    }
    same_bits("loss", out, loss);
    for (i = 0; i < 4; i++) {
      OK(tt_module_get_tensor(c, average[0], names[i], &a));
      OK(tt_module_get_tensor(c, average[1], names[i], &b));
      same_bits(names[i], a, b);
    }
  }
  drop_replay(&r);
  for (i = 0; i < 2; i++) {
    tt_optim_release(o[i]);
    tt_module_release(layer[i]);
    tt_module_release(average[i]);
  }
}

/* A metric is a number of the host: the application reads it between runs, and the next run has the
   learning rate that follows from it. */
static void test_metric(void** state) {
  const double metrics[] = {1, 2, 0.5, 3, 4};
  Model eager = new_model(adam, on_plateau), replayed = new_model(adam, on_plateau);
  tt_tensor *x = batch(0), *loss;
  double lr = 0;
  Replay r;
  int k;
  (void)state;
  OK(tt_manual_seed(c, 0));
  train(&eager, x);
  OK(tt_manual_seed(c, 0));
  OK(tt_capture_begin(c, LIST(x), NULL));
  loss = train(&replayed, x);
  FAILS(tt_scheduler_step_metric(c, replayed.schedule, 1), TT_NOT_IMPLEMENTED, "between the runs");
  OK(tt_capture_end(c, LIST(loss), &r.graph));
  OK(tt_plan_new(c, r.graph, NULL, &r.plan));
  for (k = 0; k < 5; k++) {
    OK(tt_scheduler_step_metric(c, eager.schedule, metrics[k]));
    OK(tt_scheduler_step_metric(c, replayed.schedule, metrics[k]));
    OK(tt_optim_get_f64(c, eager.optimizer, 0, "lr", &lr));
    set_and_step(&eager, &replayed, &r, "lr", lr, k + 1);
  }
  assert_true(lr > 0.9e-6 && lr < 1.1e-6); /* reduced by 0.1 three times from 1e-3 */
  drop_replay(&r);
  drop_model(&eager);
  drop_model(&replayed);
}

/* A step to a given epoch is repeated with that epoch; what else the application sets during a
   capture would not be repeated, so it fails. */
static void test_given_numbers(void** state) {
  Model m = new_model(momentum, exponential);
  const tt_capture_opts reads = {.set = TT_CAPTURE_ALLOW_READS, .allow_reads = 1};
  tt_tensor *x = batch(0), *loss;
  double lr = 0;
  tt_graph* g;
  tt_plan* p;
  int64_t n;
  (void)state;
  OK(tt_capture_begin(c, LIST(x), NULL));
  loss = train(&m, x);
  OK(tt_scheduler_step_to(c, m.schedule, 7));
  FAILS(tt_scheduler_step_to(c, m.schedule, -2), TT_INVALID_ARG, "epoch is -2");
  FAILS(tt_optim_set_f64(c, m.optimizer, 0, "lr", 1), TT_INVALID_ARG, "allow_reads");
  FAILS(tt_optim_set_state(c, m.optimizer, 0, "momentum_buffer", NULL), TT_INVALID_ARG, "is set");
  FAILS(tt_optim_load_number(c, m.optimizer, "0.step", 1), TT_INVALID_ARG, "is set");
  FAILS(tt_scheduler_load_number(c, m.schedule, "last_epoch", 1), TT_INVALID_ARG, "is set");
  OK(tt_capture_end(c, LIST(loss), &g));
  OK(tt_plan_new(c, g, NULL, &p));
  OK(tt_scheduler_step(c, m.schedule));
  OK(tt_plan_run(c, p));
  assert_int_equal(tt_scheduler_last_epoch(m.schedule), 7);
  OK(tt_scheduler_get_last_lr(c, m.schedule, &lr, 1, &n));
  assert_true(lr > 0.0239 && lr < 0.0240); /* 0.05 * 0.9^7 */
  tt_plan_release(p);
  tt_graph_release(g);
  OK(tt_capture_begin(c, LIST(x), &reads));
  OK(tt_optim_set_f64(c, m.optimizer, 0, "lr", 1));
  OK(tt_capture_drop(c));
  drop_model(&m);
}

/* Another node that reads the input, in front. */
static void edit(tt_graph* g) {
  tt_graph_arg arg;
  const tt_op* neg;
  int32_t in, out;
  int64_t n;
  OK(tt_op_find(c, "neg", &neg));
  OK(tt_graph_get_arg(c, g, 0, 0, &arg));
  in = arg.values[0];
  arg = (tt_graph_arg){.tag = TT_VAL_TENSOR, .n_values = 1, .values = &in};
  OK(tt_graph_insert(c, g, 0, neg, &arg, 1, &out, 1, &n));
}

/* An edit counts no step. */
static void test_edit(void** state) {
  Model m = new_model(adam, by_steps);
  tt_tensor *x = batch(0), *loss;
  tt_graph* edited;
  double before, after;
  char name[96];
  Replay r = captured(&m, x, 1, &loss);
  (void)state;
  OK(tt_optim_number_at(c, m.optimizer, 0, name, sizeof name, &before));
  OK(tt_graph_copy(c, r.graph, &edited));
  edit(edited);
  OK(tt_optim_number_at(c, m.optimizer, 0, name, sizeof name, &after));
  assert_true(before == after);
  assert_int_equal(tt_scheduler_last_epoch(m.schedule), 1);
  tt_graph_release(edited);
  drop_replay(&r);
  drop_model(&m);
}

static int seen_steps, seen_norms, seen_scales;
static void note(void* user, const char* op, const char* slot, int32_t depth) {
  (void)user;
  (void)depth;
  if (strcmp(slot, "cpu")) return;
  seen_steps += !strcmp(op, "optim_step");
  seen_norms += !strcmp(op, "clip_norm");
  seen_scales += !strcmp(op, "clip_scale");
}

/* Modes see steps and clipping. */
static void test_modes(void** state) {
  Model m = new_model(adam, by_steps), plain = new_model(adam, by_steps);
  tt_tensor* x = batch(0);
  (void)state;
  OK(tt_manual_seed(c, 1));
  train(&plain, x);
  OK(tt_ctx_trace_dispatch(c, note, NULL));
  OK(tt_manual_seed(c, 1));
  train(&m, x);
  OK(tt_ctx_trace_dispatch(c, NULL, NULL));
  assert_int_equal(seen_steps, 1);
  assert_int_equal(seen_norms, 1);
  assert_int_equal(seen_scales, 1);
  same_bits("traced", m.w, plain.w);
  drop_model(&m);
  drop_model(&plain);
}

/* Takes the step, under a scaler if there is one. */
static tt_status step_of(const Model* m, tt_grad_scaler* scaler) {
  int32_t took;
  return scaler ? tt_grad_scaler_step(c, scaler, m->optimizer, &took)
                : tt_optim_step(c, m->optimizer);
}
/* Every allocation of a captured step failed once: parameters are as before or as after, and the
   next step is right. The scale is a power of 2, which changes no bits. */
static void check_out_of_memory(int is_scaled) {
  Model plain = new_model(adam, by_steps);
  tt_tensor* x = batch(0);
  tt_tensor* start;
  int64_t at;
  OK(tt_clone(c, plain.w, NULL, &start));
  OK(tt_optim_zero_grad(c, plain.optimizer, 1));
  OK(tt_set_grad_enabled(c, 1, NULL));
  {
    tt_tensor* y;
    OK(tt_matmul(c, x, plain.w, &y));
    OK(tt_backward(c, sum_of(y), NULL));
  }
  OK(tt_optim_step(c, plain.optimizer));
  for (at = 1; at < 1000; at++) {
    Model m = new_model(adam, by_steps);
    tt_grad_scaler* scaler = is_scaled ? new_scaler() : NULL;
    const int64_t failed = host.failed;
    tt_tensor* y;
    tt_status s;
    OK(tt_scope_push(c));
    OK(tt_capture_begin(c, LIST(x), NULL));
    OK(tt_matmul(c, x, m.w, &y));
    y = sum_of(y);
    if (scaler) OK(tt_grad_scaler_scale(c, scaler, y, &y));
    OK(tt_backward(c, y, NULL));
    host.fail_at = host.calls + at;
    host.fail_n = 1;
    s = step_of(&m, scaler);
    host.fail_at = 0;
    OK(tt_capture_drop(c));
    if (s != TT_OK) {
      same_bits("unchanged", m.w, start);
      OK(step_of(&m, scaler));
    }
    same_bits("after a failure", m.w, plain.w);
    tt_grad_scaler_release(scaler);
    drop_model(&m);
    OK(tt_scope_pop(c, NULL, 0));
    if (host.failed == failed) break;
  }
  assert_true(at < 1000);
  drop_model(&plain);
}
static void test_out_of_memory(void** state) {
  (void)state;
  check_out_of_memory(0);
  check_out_of_memory(1);
}

static int set_up(void** state) {
  const char* folder = getenv("TMPDIR");
  (void)state;
  snprintf(path, sizeof path, "%s/tt_captured_step_%d.ttg", folder ? folder : "/tmp",
           (int)getpid());
  return 0;
}
static int tear_down(void** state) {
  (void)state;
  unlink(path);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_classes),        SCOPED(test_schedules),     SCOPED(test_scaler),
      SCOPED(test_replaced_state), SCOPED(test_values),        SCOPED(test_average),
      SCOPED(test_metric),         SCOPED(test_given_numbers), SCOPED(test_edit),
      SCOPED(test_modes),          SCOPED(test_out_of_memory)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
