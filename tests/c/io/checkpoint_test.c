/* Checkpoints: training resumed from a checkpoint is bit-equal to uninterrupted training; a load
   is all or nothing. */
#include "harness.h"

#include <unistd.h>

static char path[64];
static int new_path(void** state) {
  snprintf(path, sizeof path, "/tmp/tt_checkpoint_%ld", (long)getpid());
  unlink(path);
  return open_scoped(state);
}
static int end(void** state) {
  unlink(path);
  return close_ctx(state);
}
#define WITH_FILE(f) cmocka_unit_test_setup_teardown(f, new_path, end)

/* Training with every kind of state: batch norm, dropout, Adam, a schedule of two parts, random
   data. */
typedef struct Training {
  tt_module* net;
  tt_optimizer* adam;
  tt_scheduler* schedule;
  tt_generator* random;
} Training;

static void put(tt_module* net, tt_module* layer) {
  OK(tt_module_append(c, net, layer));
  tt_module_release(layer);
}
static Training start(uint64_t seed) {
  Training t;
  tt_module* layer;
  tt_tensor* params[8];
  tt_scheduler* parts[2];
  const int64_t turn = 3;
  int64_t n;
  OK(tt_manual_seed(c, seed));
  OK(tt_ctx_generator(c, &t.random));
  OK(tt_nn_sequential(c, &t.net));
  OK(tt_nn_linear(c, 3, 8, NULL, &layer));
  put(t.net, layer);
  OK(tt_nn_batch_norm1d(c, 8, NULL, &layer));
  put(t.net, layer);
  OK(tt_nn_dropout(c, NULL, &layer));
  put(t.net, layer);
  OK(tt_nn_linear(c, 8, 1, NULL, &layer));
  put(t.net, layer);
  OK(tt_module_parameters(c, t.net, params, 8, &n));
  OK(tt_optim_adam(c, params, n, NULL, &t.adam));
  OK(tt_lr_linear(c, t.adam, NULL, &parts[0]));
  OK(tt_lr_exponential(c, t.adam, 0.9, NULL, &parts[1]));
  OK(tt_lr_sequential(c, t.adam, parts, 2, &turn, 1, NULL, &t.schedule));
  tt_scheduler_release(parts[0]);
  tt_scheduler_release(parts[1]);
  return t;
}
static void finish(Training* t) {
  tt_scheduler_release(t->schedule);
  tt_optim_release(t->adam);
  tt_module_release(t->net);
  tt_generator_release(t->random);
}
static double step(Training* t) {
  tt_tensor *x, *y, *loss;
  double value;
  OK(tt_scope_push(c));
  OK(tt_randn(c, SHAPE(6, 3), NULL, &x));
  OK(tt_module_call(c, t->net, x, &y));
  OK(tt_mul(c, y, y, &y));
  OK(tt_mean(c, y, NULL, &loss));
  OK(tt_optim_zero_grad(c, t->adam, 1));
  OK(tt_backward(c, loss, NULL));
  OK(tt_optim_step(c, t->adam));
  OK(tt_scheduler_step(c, t->schedule));
  OK(tt_item_f64(c, loss, &value));
  OK(tt_scope_pop(c, NULL, 0));
  return value;
}
static tt_checkpoint parts_of(const Training* t) {
  const tt_checkpoint p = {sizeof p, t->net, t->adam, t->schedule, t->random, NULL};
  return p;
}
/* All parameters and buffers as one array of doubles; free() it. */
static double* state_of(const Training* t, int64_t* n) {
  tt_state_dict* d;
  double* all = (double*)calloc(1024, sizeof(double));
  *n = 0;
  OK(tt_module_state_dict(c, t->net, &d));
  for (int64_t i = 0; i < tt_state_dict_size(d); i++) {
    tt_tensor* v;
    OK(tt_state_dict_get(c, d, i, &v));
    double* values = values_of(v);
    for (int64_t k = 0; k < tt_tensor_numel(v); k++) all[(*n)++] = values[k];
    free(values);
  }
  tt_state_dict_release(d);
  return all;
}
static void same_state(const Training* a, const Training* b) {
  int64_t na, nb;
  double* va = state_of(a, &na);
  double* vb = state_of(b, &nb);
  assert_int_equal(na, nb);
  assert_memory_equal(va, vb, (size_t)na * sizeof *va);
  free(va);
  free(vb);
}

static void test_resumed_equals_uninterrupted(void** state) {
  (void)state;
  double want[6];
  Training through = start(7);
  for (int i = 0; i < 4; i++) step(&through);
  const tt_checkpoint p = parts_of(&through);
  OK(tt_checkpoint_save(c, path, &p));
  for (int i = 0; i < 6; i++) want[i] = step(&through);
  Training again = start(99); /* other weights, another offset of the generator */
  step(&again);
  const tt_checkpoint q = parts_of(&again);
  OK(tt_checkpoint_load(c, path, &q));
  for (int i = 0; i < 6; i++) {
    const double got = step(&again);
    assert_memory_equal(&got, &want[i], sizeof got);
  }
  same_state(&through, &again);
  finish(&through);
  finish(&again);
}

static void test_before_the_first_step(void** state) {
  (void)state;
  Training a = start(1);
  Training b = start(2);
  const tt_checkpoint p = parts_of(&a);
  const tt_checkpoint q = parts_of(&b);
  OK(tt_checkpoint_save(c, path, &p));
  step(&b);
  OK(tt_checkpoint_load(c, path, &q)); /* b's state of Adam is gone again */
  OK(tt_checkpoint_load(c, path,
                        &p)); /* the generator is the ctx's: both must start at the same offset */
  const double x = step(&a);
  OK(tt_checkpoint_load(c, path, &q));
  const double y = step(&b);
  assert_memory_equal(&x, &y, sizeof x);
  finish(&a);
  finish(&b);
}

static double product_of(const tt_optimizer* nadam) {
  tt_tensor* t = NULL;
  OK(tt_optim_get_state(c, nadam, 0, "mu_product", &t));
  return t ? value_of(t) : -1;
}
/* A checkpoint holds NAdam's number of each parameter; loading one without it removes the
   number. */
static void test_numbers_of_an_optimizer(void** state) {
  (void)state;
  tt_tensor* x = leaf(DATA(1, 2));
  tt_optimizer* nadam;
  tt_checkpoint p = {sizeof p, NULL, NULL, NULL, NULL, NULL};
  OK(tt_tensor_set_grad(c, x, numbers(TT_F64, DATA(1, 1))));
  OK(tt_optim_nadam(c, &x, 1, NULL, &nadam));
  p.optimizer = nadam;
  OK(tt_optim_step(c, nadam));
  const double after_one = product_of(nadam);
  assert_true(after_one > 0);
  OK(tt_checkpoint_save(c, path, &p));
  OK(tt_optim_step(c, nadam));
  assert_true(product_of(nadam) < after_one);
  OK(tt_checkpoint_load(c, path, &p));
  assert_true(product_of(nadam) == after_one);
  tt_optim_release(nadam);
  OK(tt_optim_nadam(c, &x, 1, NULL, &nadam));
  p.optimizer = nadam;
  OK(tt_checkpoint_save(c, path, &p));
  OK(tt_optim_step(c, nadam));
  OK(tt_checkpoint_load(c, path, &p));
  assert_true(product_of(nadam) == -1);
  tt_optim_release(nadam);
}

static void test_own_tensors(void** state) {
  (void)state;
  tt_state_dict *mine, *back;
  tt_tensor* t;
  int64_t i;
  OK(tt_state_dict_new(c, &mine));
  OK(tt_state_dict_set(c, mine, "epoch", number(TT_I64, 12)));
  OK(tt_state_dict_set(c, mine, "history", numbers(TT_F32, DATA(3, 2, 1))));
  tt_checkpoint p = {sizeof p, NULL, NULL, NULL, NULL, mine};
  OK(tt_checkpoint_save(c, path, &p));
  OK(tt_state_dict_new(c, &back));
  OK(tt_state_dict_set(c, back, "epoch", number(TT_I64, 0)));
  OK(tt_state_dict_set(c, back, "kept", number(TT_I64, 5)));
  p.extra = back;
  OK(tt_checkpoint_load(c, path, &p));
  OK(tt_state_dict_get(c, back, 0, &t));
  VALUES(t, 12);
  OK(tt_state_dict_find(c, back, "history", &i));
  OK(tt_state_dict_get(c, back, i, &t));
  VALUES(t, 3, 2, 1);
  assert_int_equal(tt_state_dict_size(back), 3);
  tt_state_dict_release(mine);
  tt_state_dict_release(back);
}

/* A checkpoint that does not fit is refused, and nothing changes. */
static void test_all_or_nothing(void** state) {
  (void)state;
  Training a = start(1);
  Training b = start(2);
  tt_module* other;
  tt_optimizer* sgd;
  tt_tensor* params[8];
  int64_t n;
  double lr;
  step(&a);
  step(&b);
  tt_checkpoint p = parts_of(&a);
  OK(tt_checkpoint_save(c, path, &p));
  OK(tt_nn_linear(c, 3, 8, NULL, &other));
  tt_checkpoint q = parts_of(&b);
  q.module = other; /* found last, after optimizer and schedule were read */
  int64_t before_n, after_n;
  double *before = state_of(&b, &before_n), *after, rate, rate_after;
  OK(tt_optim_get_f64(c, b.adam, 0, "lr", &rate));
  FAILS(tt_checkpoint_load(c, path, &q), TT_INVALID_ARG, "missing: weight, bias");
  after = state_of(&b, &after_n);
  assert_memory_equal(before, after, (size_t)before_n * sizeof *before);
  OK(tt_optim_get_f64(c, b.adam, 0, "lr", &rate_after));
  assert_true(rate == rate_after);
  free(before);
  free(after);
  OK(tt_module_parameters(c, b.net, params, 8, &n));
  OK(tt_optim_sgd(c, params, n, NULL, &sgd));
  q = parts_of(&b);
  q.optimizer = sgd;
  q.scheduler = NULL;
  OK(tt_optim_get_f64(c, sgd, 0, "lr", &lr));
  assert_int_not_equal(tt_checkpoint_load(c, path, &q), TT_OK); /* Adam's state does not fit SGD */
  OK(tt_optim_get_f64(c, sgd, 0, "lr", &rate_after));
  assert_true(lr == rate_after);
  const tt_checkpoint only = {sizeof only, a.net, NULL, NULL, NULL, NULL};
  OK(tt_checkpoint_save(c, path, &only));
  p = parts_of(&a);
  FAILS(tt_checkpoint_load(c, path, &p), TT_FORMAT, "has no ");
  FAILS(tt_checkpoint_load(c, "/nowhere/at/all", &p), TT_IO, "no such file");
  FAILS(tt_checkpoint_save(c, "/nowhere/at/all", &p), TT_IO, NULL);
  p.struct_size = 8;
  FAILS(tt_checkpoint_load(c, path, &p), TT_ABI, "struct_size");
  tt_module_release(other);
  tt_optim_release(sgd);
  finish(&a);
  finish(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {WITH_FILE(test_resumed_equals_uninterrupted),
                                     WITH_FILE(test_before_the_first_step),
                                     WITH_FILE(test_numbers_of_an_optimizer),
                                     WITH_FILE(test_own_tensors), WITH_FILE(test_all_or_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
