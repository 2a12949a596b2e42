/* Optimizers, schedulers and clipping. */
#include "program.h"

static tt_status closure(void* user, tt_ctx* c, tt_tensor** loss) {
  Program* p = user;
  const tt_status s = reenter(p, c);
  return s ? s : tt_zeros(c, NULL, 0, NULL, loss);
}
static tt_status factor_of(void* user, tt_ctx* c, int64_t epoch, int64_t group, double* factor) {
  Program* p = user;
  (void)epoch;
  (void)group;
  *factor = any_real(p);
  return reenter(p, c);
}

static void add_optimizer(Program* p) {
  tt_tensor* params[3];
  const int64_t n = below(p, 4);
  tt_optimizer** place = &p->optimizers[below(p, kOptimizers)];
  tt_optimizer *o = NULL, *old = *place;
  int i;
  for (i = 0; i < 3; i++) params[i] = leaf_tensor(p);
  switch (below(p, 12)) {
    case 0: CALL(tt_optim_sgd(p->c, params, n, NULL, &o)); break;
    case 1: CALL(tt_optim_adam(p->c, params, n, NULL, &o)); break;
    case 2: CALL(tt_optim_adamw(p->c, params, n, NULL, &o)); break;
    case 3: CALL(tt_optim_rmsprop(p->c, params, n, NULL, &o)); break;
    case 4: CALL(tt_optim_adagrad(p->c, params, n, NULL, &o)); break;
    case 5: CALL(tt_optim_adadelta(p->c, params, n, NULL, &o)); break;
    case 6: CALL(tt_optim_adamax(p->c, params, n, NULL, &o)); break;
    case 7: CALL(tt_optim_nadam(p->c, params, n, NULL, &o)); break;
    case 8: CALL(tt_optim_radam(p->c, params, n, NULL, &o)); break;
    case 9: CALL(tt_optim_asgd(p->c, params, n, NULL, &o)); break;
    case 10: CALL(tt_optim_rprop(p->c, params, n, NULL, &o)); break;
    default: CALL(tt_optim_lion(p->c, params, n, NULL, &o));
  }
  if (!o) return;
  if (p->nested && old) {
    tt_optim_release(o);
    return;
  }
  *place = o;
  tt_optim_release(old);
}

static void use_state(Program* p, tt_optimizer* o) {
  static const char* const kNames[] = {"exp_avg", "step", "momentum_buffer", "lr", "weight_decay",
                                       "x",       "sum",  "initial_lr"};
  const char* name = kNames[below(p, 8)];
  const int64_t i = small_int(p);
  const double v = any_real(p);
  tt_tensor *value = leaf_tensor(p), *t = NULL;
  char text[96];
  double number;
  switch (below(p, 8)) {
    case 0: CALL(tt_optim_get_state(p->c, o, i, name, &t)); break;
    case 1: ATOMIC(tt_optim_set_state(p->c, o, i, name, value)); break;
    case 2: CALL(tt_optim_get_f64(p->c, o, i, name, &number)); break;
    case 3: ATOMIC(tt_optim_set_f64(p->c, o, i, name, v)); break;
    case 4: CALL(tt_optim_tensor_at(p->c, o, i, text, sizeof text, &t)); break;
    case 5: CALL(tt_optim_number_at(p->c, o, i, text, one_in(p, 5) ? 4 : 96, &number)); break;
    case 6: ATOMIC(tt_optim_load_tensor(p->c, o, "state.0.exp_avg", value)); break;
    default: ATOMIC(tt_optim_load_number(p->c, o, "param_groups.0.lr", v));
  }
  keep_tensor(p, t);
}

static void clip(Program* p) {
  tt_tensor *params[3], *total = NULL;
  const int64_t n = 1 + below(p, 3);
  const double limit = any_real(p);
  tt_clip_grad_norm_opts opts = {.set = any(p) & 3};
  int i;
  for (i = 0; i < 3; i++) params[i] = leaf_tensor(p);
  opts.norm_type = any_real(p);
  opts.error_if_nonfinite = below(p, 2);
  if (one_in(p, 2)) {
    ATOMIC(tt_clip_grad_value_(p->c, params, n, limit));
    return;
  }
  ATOMIC(tt_clip_grad_norm_(p->c, params, n, limit, &opts, &total));
  keep_tensor(p, total);
}

static void step(Program* p, tt_optimizer* o) {
  tt_tensor *params[2] = {leaf_tensor(p), leaf_tensor(p)}, *loss = NULL;
  const int32_t to_none = below(p, 2);
  switch (below(p, 7)) {
    case 0: ATOMIC(tt_optim_zero_grad(p->c, o, to_none)); break;
    case 1: ATOMIC(tt_optim_add_param_group(p->c, o, params, 1 + to_none)); break;
    case 2: {
      void (*drop)(void*) = counted_drop(p);
      CALL(tt_optim_step_closure(p->c, o, closure, p, drop, &loss));
      keep_tensor(p, loss);
      break;
    }
    default: ATOMIC(tt_optim_step(p->c, o));
  }
}

static void add_scheduler(Program* p, tt_optimizer* o) {
  static const int64_t kMilestones[] = {1, 3, 2};
  tt_scheduler** place = &p->schedulers[below(p, kSchedulers)];
  tt_scheduler *s = NULL, *old = *place, *parts[2];
  const int64_t k = small_int(p);
  const double x = any_real(p);
  parts[0] = p->schedulers[below(p, kSchedulers)];
  parts[1] = p->schedulers[below(p, kSchedulers)];
  switch (below(p, 9)) {
    case 0: CALL(tt_lr_step(p->c, o, k, NULL, &s)); break;
    case 1: CALL(tt_lr_multi_step(p->c, o, kMilestones, 3, NULL, &s)); break;
    case 2: CALL(tt_lr_linear(p->c, o, NULL, &s)); break;
    case 3: CALL(tt_lr_exponential(p->c, o, x, NULL, &s)); break;
    case 4: CALL(tt_lr_cosine_annealing(p->c, o, k, NULL, &s)); break;
    case 5: CALL(tt_lr_one_cycle(p->c, o, &x, 1, NULL, &s)); break;
    case 6: CALL(tt_lr_sequential(p->c, o, parts, 2, kMilestones, 1, NULL, &s)); break;
    case 7: CALL(tt_lr_chained(p->c, parts, 2, &s)); break;
    default: {
      void (*drop)(void*) = counted_drop(p);
      CALL(tt_lr_lambda(p->c, o, factor_of, p, drop, -1, &s));
    }
  }
  if (!s) return;
  if (p->nested && old) {
    tt_scheduler_release(s);
    return;
  }
  *place = s;
  tt_scheduler_release(old);
}
static void use_scheduler(Program* p) {
  tt_scheduler* s = p->schedulers[below(p, kSchedulers)];
  const int64_t k = small_int(p);
  const double x = any_real(p);
  double rates[4], number;
  char name[96];
  int64_t n;
  switch (below(p, 6)) {
    case 0: CALL(tt_scheduler_step_to(p->c, s, k)); break;
    case 1: CALL(tt_scheduler_get_last_lr(p->c, s, rates, 4, &n)); break;
    case 2: CALL(tt_scheduler_number_at(p->c, s, k, name, sizeof name, &number)); break;
    case 3: ATOMIC(tt_scheduler_load_number(p->c, s, "last_epoch", x)); break;
    default: ATOMIC(tt_scheduler_step(p->c, s));
  }
}

void act_training(Program* p) {
  tt_optimizer* o = any_optimizer(p);
  switch (below(p, 9)) {
    case 0: return add_optimizer(p);
    case 1: return use_state(p, o);
    case 2: return clip(p);
    case 3: return add_scheduler(p, o);
    case 4: return use_scheduler(p);
    default: return step(p, o);
  }
}
