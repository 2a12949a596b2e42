/* A model of two products with tanh and dropout, and its training step with an optimizer of any
   class, clipping and a schedule. */
#ifndef TT_TEST_TRAINED_MODEL_H
#define TT_TEST_TRAINED_MODEL_H

#include "optimizers.h"

enum { kRows = 4, kIn = 3, kOut = 5 };

typedef void (*Schedule)(tt_optimizer* o, tt_scheduler** out);

typedef struct Model {
  tt_tensor *w, *v; /* v is not dense */
  tt_optimizer* optimizer;
  tt_scheduler* schedule;
} Model;

static void by_steps(tt_optimizer* o, tt_scheduler** out) { OK(tt_lr_step(c, o, 3, NULL, out)); }

static tt_tensor* leaf_of(tt_tensor* t) {
  OK(tt_requires_grad_(c, t, 1));
  return t;
}
static Model new_model(Construct construct, Schedule schedule) {
  Model m;
  tt_tensor* both;
  OK(tt_manual_seed(c, 5));
  OK(tt_randn(c, SHAPE(kIn, kOut), NULL, &m.w));
  m.w = leaf_of(at_home(m.w));
  OK(tt_randn(c, SHAPE(kOut, 2), NULL, &both));
  OK(tt_select(c, at_home(both), 1, 0, &m.v));
  leaf_of(m.v);
  OK(construct((tt_tensor* const[]){m.w, m.v}, 2, &m.optimizer));
  schedule(m.optimizer, &m.schedule);
  return m;
}
static void drop_model(Model* m) {
  tt_scheduler_release(m->schedule);
  tt_optim_release(m->optimizer);
}

static tt_tensor* loss_of(const Model* m, const tt_tensor* x) {
  tt_tensor *h, *y, *loss;
  OK(tt_optim_zero_grad(c, m->optimizer, 1));
  OK(tt_tensor_set_grad(c, m->v, NULL)); /* Muon does not have it */
  OK(tt_matmul(c, x, m->w, &h));
  OK(tt_tanh(c, h, &h));
  OK(tt_dropout(c, h, NULL, &h));
  OK(tt_matmul(c, h, m->v, &y));
  OK(tt_mul(c, y, y, &y));
  OK(tt_mean(c, y, NULL, &loss));
  return loss;
}
static tt_tensor* train(const Model* m, const tt_tensor* x) {
  tt_tensor *loss = loss_of(m, x), *norm;
  tt_tensor* const params[] = {m->w, m->v};
  OK(tt_backward(c, loss, NULL));
  OK(tt_clip_grad_norm_(c, params, 2, 0.5, NULL, &norm));
  OK(tt_optim_step(c, m->optimizer));
  return loss;
}

static tt_tensor* batch(int k) {
  tt_tensor* x;
  OK(tt_manual_seed(c, 100 + (uint64_t)k));
  OK(tt_randn(c, SHAPE(kRows, kIn), NULL, &x));
  return at_home(x);
}

static void same_bits(const char* what, const tt_tensor* a, const tt_tensor* b) {
  float x[64], y[64];
  const int64_t bytes = tt_tensor_numel(a) * 4;
  OK(tt_tensor_read(c, a, x, bytes));
  OK(tt_tensor_read(c, b, y, bytes));
  if (memcmp(x, y, (size_t)bytes)) fail_msg("%s: a captured step differs", what);
}

#endif
