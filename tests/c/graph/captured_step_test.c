/* Captured steps of optimizers: every class, replayed beside the same steps of operators. */
#include "harness.h"

enum { kSteps = 50, kRows = 4, kIn = 3, kOut = 5 };

typedef struct Model {
  tt_tensor *w, *v; /* v is not dense */
  tt_optimizer* optimizer;
  tt_scheduler* schedule;
} Model;

typedef tt_status (*Construct)(tt_tensor* const* params, int64_t n, tt_optimizer** out);

static tt_status sgd(tt_tensor* const* params, int64_t n, tt_optimizer** out) {
  const tt_optim_sgd_opts o = {.set = TT_OPTIM_SGD_LR, .lr = 0.05};
  return tt_optim_sgd(c, params, n, &o, out);
}
/* Its first step differs from the others. */
static tt_status momentum(tt_tensor* const* params, int64_t n, tt_optimizer** out) {
  const tt_optim_sgd_opts o = {.set = TT_OPTIM_SGD_LR | TT_OPTIM_SGD_MOMENTUM |
                                      TT_OPTIM_SGD_DAMPENING | TT_OPTIM_SGD_WEIGHT_DECAY,
                               .lr = 0.05,
                               .momentum = 0.9,
                               .dampening = 0.5,
                               .weight_decay = 0.01};
  return tt_optim_sgd(c, params, n, &o, out);
}
static tt_status adam(tt_tensor* const* params, int64_t n, tt_optimizer** out) {
  const tt_optim_adam_opts o = {.set = TT_OPTIM_ADAM_AMSGRAD, .amsgrad = 1};
  return tt_optim_adam(c, params, n, &o, out);
}
#define WITH_DEFAULTS(name, construct)                                             \
  static tt_status name(tt_tensor* const* params, int64_t n, tt_optimizer** out) { \
    return construct(c, params, n, NULL, out);                                     \
  }
WITH_DEFAULTS(adamw, tt_optim_adamw)
WITH_DEFAULTS(rmsprop, tt_optim_rmsprop)
WITH_DEFAULTS(adagrad, tt_optim_adagrad)
WITH_DEFAULTS(adadelta, tt_optim_adadelta)
WITH_DEFAULTS(adamax, tt_optim_adamax)
WITH_DEFAULTS(nadam, tt_optim_nadam)
WITH_DEFAULTS(radam, tt_optim_radam)
WITH_DEFAULTS(asgd, tt_optim_asgd)
WITH_DEFAULTS(rprop, tt_optim_rprop)
static const struct {
  const char* name;
  Construct construct;
} kClasses[] = {{"SGD", sgd},           {"momentum", momentum}, {"Adam", adam},
                {"AdamW", adamw},       {"RMSprop", rmsprop},   {"Adagrad", adagrad},
                {"Adadelta", adadelta}, {"Adamax", adamax},     {"NAdam", nadam},
                {"RAdam", radam},       {"ASGD", asgd},         {"Rprop", rprop}};
enum { kNumClasses = sizeof kClasses / sizeof kClasses[0] };

static tt_tensor* leaf_of(tt_tensor* t) {
  OK(tt_requires_grad_(c, t, 1));
  return t;
}
static Model new_model(Construct construct) {
  Model m;
  tt_tensor* both;
  OK(tt_manual_seed(c, 5));
  OK(tt_randn(c, SHAPE(kIn, kOut), NULL, &m.w));
  leaf_of(m.w);
  OK(tt_randn(c, SHAPE(kOut, 2), NULL, &both));
  OK(tt_select(c, both, 1, 0, &m.v));
  leaf_of(m.v);
  OK(construct((tt_tensor* const[]){m.w, m.v}, 2, &m.optimizer));
  OK(tt_lr_step(c, m.optimizer, 3, NULL, &m.schedule));
  return m;
}
static void drop_model(Model* m) {
  tt_scheduler_release(m->schedule);
  tt_optim_release(m->optimizer);
}

static tt_tensor* train(const Model* m, const tt_tensor* x) {
  tt_tensor *h, *y, *loss, *norm;
  tt_tensor* const params[] = {m->w, m->v};
  OK(tt_optim_zero_grad(c, m->optimizer, 1));
  OK(tt_matmul(c, x, m->w, &h));
  OK(tt_tanh(c, h, &h));
  OK(tt_dropout(c, h, NULL, &h));
  OK(tt_matmul(c, h, m->v, &y));
  OK(tt_mul(c, y, y, &y));
  OK(tt_mean(c, y, NULL, &loss));
  OK(tt_backward(c, loss, NULL));
  OK(tt_clip_grad_norm_(c, params, 2, 0.5, NULL, &norm));
  OK(tt_optim_step(c, m->optimizer));
  return loss;
}

static tt_tensor* batch(int k) {
  tt_tensor* x;
  OK(tt_manual_seed(c, 100 + (uint64_t)k));
  OK(tt_randn(c, SHAPE(kRows, kIn), NULL, &x));
  return x;
}

static void same_bits(const char* what, const tt_tensor* a, const tt_tensor* b) {
  float x[64], y[64];
  const int64_t bytes = tt_tensor_numel(a) * 4;
  OK(tt_tensor_read(c, a, x, bytes));
  OK(tt_tensor_read(c, b, y, bytes));
  if (memcmp(x, y, (size_t)bytes)) fail_msg("%s: a captured step differs", what);
}

/* The first step is captured while it runs; the others are replayed. Learning rates change, and so
   do Adam's bias corrections. */
static void check_class(int i) {
  Model eager = new_model(kClasses[i].construct), replayed = new_model(kClasses[i].construct);
  tt_graph* g = NULL;
  tt_plan* p = NULL;
  tt_tensor *in, *out, *loss;
  int64_t calls;
  int k;
  for (k = 0; k < kSteps; k++) {
    tt_tensor* x = batch(k);
    OK(tt_scope_push(c));
    OK(tt_manual_seed(c, (uint64_t)k));
    loss = train(&eager, x);
    OK(tt_manual_seed(c, (uint64_t)k));
    if (k == 0) {
      OK(tt_capture_begin(c, LIST(x), NULL));
      out = train(&replayed, x);
      OK(tt_capture_end(c, LIST(out), &g));
      OK(tt_plan_new(c, g, NULL, &p));
    } else {
      OK(tt_plan_slot(c, p, 0, 0, &in));
      OK(tt_plan_slot(c, p, 1, 0, &out));
      OK(tt_copy_(c, in, x));
      calls = host.calls;
      OK(tt_plan_run(c, p));
      assert_int_equal(host.calls, calls);
    }
    same_bits(kClasses[i].name, out, loss);
    same_bits(kClasses[i].name, replayed.w, eager.w);
    same_bits(kClasses[i].name, replayed.v, eager.v);
    OK(tt_scheduler_step(c, eager.schedule));
    OK(tt_scheduler_step(c, replayed.schedule));
    OK(tt_scope_pop(c, NULL, 0));
  }
  tt_plan_release(p);
  tt_graph_release(g);
  drop_model(&eager);
  drop_model(&replayed);
}

static void test_classes(void** state) {
  int i;
  (void)state;
  for (i = 0; i < kNumClasses; i++) check_class(i);
}

/* A replay fails, and changes nothing, once the optimizer has other states than were captured. */
static void test_replaced_state(void** state) {
  Model m = new_model(adam);
  tt_graph* g;
  tt_plan* p;
  tt_tensor *x = batch(0), *loss, *other, *before;
  (void)state;
  OK(tt_capture_begin(c, LIST(x), NULL));
  loss = train(&m, x);
  OK(tt_capture_end(c, LIST(loss), &g));
  OK(tt_plan_new(c, g, NULL, &p));
  OK(tt_plan_run(c, p));
  FAILS(tt_graph_save(c, g, "/tmp/tt_captured_step.ttg"), TT_NOT_IMPLEMENTED, "optimizer");
  OK(tt_zeros_like(c, m.w, NULL, &other));
  OK(tt_optim_set_state(c, m.optimizer, 0, "exp_avg", other));
  OK(tt_clone(c, m.w, NULL, &before));
  FAILS(tt_plan_run(c, p), TT_INVALID_ARG, "capture it again");
  same_bits("after a failure", m.w, before);
  tt_plan_release(p);
  tt_graph_release(g);
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
  Model m = new_model(adam), plain = new_model(adam);
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

/* Every allocation of a captured step failed once: parameters are as before or as after, and the
   next step is right. */
static void test_out_of_memory(void** state) {
  Model plain = new_model(adam);
  tt_tensor* x = batch(0);
  tt_tensor* start;
  int64_t at;
  (void)state;
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
    Model m = new_model(adam);
    const int64_t failed = host.failed;
    tt_tensor* y;
    tt_status s;
    OK(tt_scope_push(c));
    OK(tt_capture_begin(c, LIST(x), NULL));
    OK(tt_matmul(c, x, m.w, &y));
    OK(tt_backward(c, sum_of(y), NULL));
    host.fail_at = host.calls + at;
    host.fail_n = 1;
    s = tt_optim_step(c, m.optimizer);
    host.fail_at = 0;
    OK(tt_capture_drop(c));
    if (s != TT_OK) {
      same_bits("unchanged", m.w, start);
      OK(tt_optim_step(c, m.optimizer));
    }
    same_bits("after a failure", m.w, plain.w);
    drop_model(&m);
    OK(tt_scope_pop(c, NULL, 0));
    if (host.failed == failed) break;
  }
  assert_true(at < 1000);
  drop_model(&plain);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_classes), SCOPED(test_replaced_state),
                                     SCOPED(test_modes), SCOPED(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
