/* Ten thousand training steps: neither tt's memory nor the process grows after the first hundred
   steps. */
#include "harness.h"

#include <unistd.h>

static int64_t resident(void) { /* bytes */
  long pages = 0, ignored;
  FILE* f = fopen("/proc/self/statm", "r");
  if (f) {
    if (fscanf(f, "%ld %ld", &ignored, &pages) != 2) pages = 0;
    fclose(f);
  }
  return pages * (int64_t)sysconf(_SC_PAGESIZE);
}

static void put(tt_module* net, tt_module* layer) {
  OK(tt_module_append(c, net, layer));
  tt_module_release(layer);
}

typedef struct Run {
  tt_module *net, *loss;
  tt_optimizer* opt;
  tt_scheduler* schedule;
  tt_tensor *x, *y;
} Run;

static void step(Run* r) {
  tt_tensor *scores, *loss, *norm, *params[16];
  const tt_tensor* pair[2];
  int64_t n;
  OK(tt_scope_push(c));
  OK(tt_module_call(c, r->net, r->x, &scores));
  pair[0] = scores;
  pair[1] = r->y;
  OK(tt_module_forward(c, r->loss, pair, 2, &loss, 1, &n));
  OK(tt_optim_zero_grad(c, r->opt, 1));
  OK(tt_backward(c, loss, NULL));
  OK(tt_module_parameters(c, r->net, params, 16, &n));
  OK(tt_clip_grad_norm_(c, params, n, 1, NULL, &norm));
  OK(tt_optim_step(c, r->opt));
  OK(tt_scheduler_step(c, r->schedule));
  OK(tt_scope_pop(c, NULL, 0));
}

static void stays_flat(Run* r, int steps) {
  tt_memory_stats before, after;
  tt_tensor* params[16];
  int64_t n;
  OK(tt_nn_cross_entropy_loss(c, NULL, &r->loss));
  OK(tt_module_parameters(c, r->net, params, 16, &n));
  OK(tt_optim_adam(c, params, n, NULL, &r->opt));
  OK(tt_lr_exponential(c, r->opt, 0.9999, NULL, &r->schedule));
  for (int i = 0; i < 100; i++) step(r);
  OK(tt_memory(c, NULL, &before));
  const int64_t start = resident();
  for (int i = 100; i < steps; i++) step(r);
  OK(tt_memory(c, NULL, &after));
  assert_int_equal(after.in_use, before.in_use);
  assert_int_equal(after.reserved, before.reserved);
  assert_int_equal(after.live_tensors, before.live_tensors);
  assert_int_equal(after.live_nodes, before.live_nodes);
  if (!TT_CHECKED)
    assert_true(resident() - start < 256 * 1024); /* which keeps released objects for a while */
  tt_scheduler_release(r->schedule);
  tt_optim_release(r->opt);
  tt_module_release(r->net);
  tt_module_release(r->loss);
}

static void test_perceptron(void** state) {
  (void)state;
  Run r;
  tt_module* layer;
  OK(tt_nn_sequential(c, &r.net));
  OK(tt_nn_linear(c, 8, 16, NULL, &layer));
  put(r.net, layer);
  OK(tt_nn_layer_norm(c, SHAPE(16), NULL, &layer));
  put(r.net, layer);
  OK(tt_nn_gelu(c, NULL, &layer));
  put(r.net, layer);
  OK(tt_nn_dropout(c, NULL, &layer));
  put(r.net, layer);
  OK(tt_nn_linear(c, 16, 4, NULL, &layer));
  put(r.net, layer);
  OK(tt_randn(c, SHAPE(4, 8), NULL, &r.x));
  r.y = make(TT_I64, SHAPE(4), DATA(0, 1, 2, 3));
  stays_flat(&r, 10000);
}

static void test_convolutions(void** state) {
  (void)state;
  Run r;
  tt_module* layer;
  const int64_t three = 3, two = 2;
  OK(tt_nn_sequential(c, &r.net));
  OK(tt_nn_conv2d(c, 1, 8, &three, 1, NULL, &layer));
  put(r.net, layer);
  OK(tt_nn_batch_norm2d(c, 8, NULL, &layer));
  put(r.net, layer);
  OK(tt_nn_relu(c, NULL, &layer));
  put(r.net, layer);
  OK(tt_nn_max_pool2d(c, &two, 1, NULL, &layer));
  put(r.net, layer);
  OK(tt_nn_flatten(c, NULL, &layer));
  put(r.net, layer);
  OK(tt_nn_linear(c, 72, 10, NULL, &layer));
  put(r.net, layer);
  OK(tt_randn(c, SHAPE(8, 1, 8, 8), NULL, &r.x));
  r.y = make(TT_I64, SHAPE(8), DATA(0, 1, 2, 3, 4, 5, 6, 7));
  stays_flat(&r, 2000);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_perceptron), SCOPED(test_convolutions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
