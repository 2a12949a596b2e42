/* Plans where the tensors are: on a device, launches that do not change are replayed as graphs of
   it. Steps of every optimizer, with a schedule, dropout and clipping, beside the same steps of
   operators. */
#include "trained_model.h"

#include <dlfcn.h>

enum { kSteps = 8, kDeviceSteps = 6 };

/* Launches of graphs by the emulated device so far; -1 elsewhere, where nobody counts them. */
static int64_t graphs(void) {
  const char* library = getenv("TT_TEST_EMU_LIBRARY");
  void* emu = library && !is_at_cpu() ? dlopen(library, RTLD_NOW | RTLD_NOLOAD) : NULL;
  int64_t (*count)(void) = emu ? (int64_t(*)(void))dlsym(emu, "tt_fake_graphs") : NULL;
  const int64_t n = count ? count() : -1;
  if (emu) dlclose(emu);
  return n;
}

/* The first step is captured while it runs; the others are replayed. Learning rates change, and so
   do Adam's bias corrections. */
static void check_class(int i) {
  Model eager = new_model(kOptimizers[i].construct, by_steps);
  Model replayed = new_model(kOptimizers[i].construct, by_steps);
  tt_graph* g = NULL;
  tt_plan* p = NULL;
  tt_tensor *in, *out, *loss;
  const int steps = is_at_cpu() ? kSteps : kDeviceSteps;
  const int64_t before = graphs();
  int64_t calls;
  int k;
  for (k = 0; k < steps; k++) {
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
    same_bits(kOptimizers[i].name, out, loss);
    same_bits(kOptimizers[i].name, replayed.w, eager.w);
    same_bits(kOptimizers[i].name, replayed.v, eager.v);
    OK(tt_scheduler_step(c, eager.schedule));
    OK(tt_scheduler_step(c, replayed.schedule));
    OK(tt_scope_pop(c, NULL, 0));
  }
  if (before >= 0) assert_true(graphs() - before >= steps - 2);
  tt_plan_release(p);
  tt_graph_release(g);
  drop_model(&eager);
  drop_model(&replayed);
}

static void test_classes(void** state) {
  int i;
  (void)state;
  for (i = 0; i < kNumOptimizers; i++) check_class(i);
}

/* A deferred capture computes nothing: every step is a run, the first one too. Runs read and write
   the tensors that the capture saw: the batch, the loss, gradients, parameters. */
static void check_deferred(int i) {
  const tt_capture_opts deferred = {.set = TT_CAPTURE_DEFERRED, .deferred = 1};
  Model eager = new_model(kOptimizers[i].construct, by_steps);
  Model replayed = new_model(kOptimizers[i].construct, by_steps);
  tt_tensor *x = batch(0), *drawn, *drawn_before, *out, *loss, *grad, *grad_before;
  tt_graph* g = NULL;
  tt_plan* p = NULL;
  const int64_t before = graphs();
  int k;
  OK(tt_manual_seed(c, 9));
  OK(tt_rand(c, SHAPE(4), NULL, &drawn_before));
  OK(tt_manual_seed(c, 9));
  OK(tt_capture_begin(c, NULL, 0, &deferred));
  out = train(&replayed, x);
  OK(tt_capture_end(c, NULL, 0, &g));
  OK(tt_rand(c, SHAPE(4), NULL, &drawn));
  same_bits("random numbers", drawn, drawn_before);
  same_bits(kOptimizers[i].name, replayed.w, eager.w);
  OK(tt_plan_new(c, g, NULL, &p));
  for (k = 0; k < kDeviceSteps; k++) {
    const tt_tensor* next = batch(k);
    OK(tt_scope_push(c));
    OK(tt_manual_seed(c, (uint64_t)k));
    loss = train(&eager, next);
    OK(tt_manual_seed(c, (uint64_t)k));
    OK(tt_copy_(c, x, next));
    OK(tt_plan_run(c, p));
    same_bits(kOptimizers[i].name, out, loss);
    same_bits(kOptimizers[i].name, replayed.w, eager.w);
    same_bits(kOptimizers[i].name, replayed.v, eager.v);
    OK(tt_tensor_grad(c, eager.w, &grad_before));
    OK(tt_tensor_grad(c, replayed.w, &grad));
    same_bits(kOptimizers[i].name, grad, grad_before);
    OK(tt_scheduler_step(c, eager.schedule));
    OK(tt_scheduler_step(c, replayed.schedule));
    OK(tt_scope_pop(c, NULL, 0));
  }
  if (before >= 0) assert_true(graphs() - before >= kDeviceSteps - 2);
  tt_plan_release(p);
  tt_graph_release(g);
  drop_model(&eager);
  drop_model(&replayed);
}

static void test_deferred(void** state) {
  static const int kSome[] = {1, 2, 8, 13, 14}; /* momentum, Adam, NAdam, Adafactor, Muon */
  size_t i;
  (void)state;
  for (i = 0; i < sizeof kSome / sizeof kSome[0]; i++) check_deferred(kSome[i]);
}

/* A step that was captured and never run leaves the optimizer without values in the states that it
   made: the next step is the first one, whether it is an operator's or a run's. */
static void test_steps_between(void** state) {
  static const int kSome[] = {1, 2, 4, 13}; /* momentum with dampening, Adam, RMSprop, Adafactor */
  const tt_capture_opts deferred = {.set = TT_CAPTURE_DEFERRED, .deferred = 1};
  size_t i;
  int k, runs;
  (void)state;
  for (i = 0; i < 2 * sizeof kSome / sizeof kSome[0]; i++) {
    Model eager = new_model(kOptimizers[kSome[i / 2]].construct, by_steps);
    Model other = new_model(kOptimizers[kSome[i / 2]].construct, by_steps);
    tt_tensor* x = batch(0);
    tt_graph* g = NULL;
    tt_plan* p = NULL;
    OK(tt_capture_begin(c, NULL, 0, &deferred));
    train(&other, x);
    OK(tt_capture_end(c, NULL, 0, &g));
    runs = i % 2; /* else the graph is dropped */
    if (runs) OK(tt_plan_new(c, g, NULL, &p));
    else tt_graph_release(g);
    for (k = 0; k < 3; k++) {
      OK(tt_manual_seed(c, (uint64_t)k));
      train(&eager, x);
      OK(tt_manual_seed(c, (uint64_t)k));
      if (runs && k > 0) OK(tt_plan_run(c, p));
      else train(&other, x);
      same_bits("a step between", other.w, eager.w);
      same_bits("a step between", other.v, eager.v);
    }
    if (runs) tt_graph_release(g);
    tt_plan_release(p);
    drop_model(&eager);
    drop_model(&other);
  }
}

/* Nothing may depend on elements, which do not exist yet. */
static void test_reads_of_deferred(void** state) {
  const tt_capture_opts deferred = {.set = TT_CAPTURE_DEFERRED, .deferred = 1};
  tt_tensor *x = batch(0), *y;
  tt_graph* g = NULL;
  tt_plan* p;
  float values[12];
  (void)state;
  OK(tt_capture_begin(c, NULL, 0, &deferred));
  FAILS(tt_nonzero(c, x, &y), TT_INVALID_ARG,
        "elements of a tensor are read in a deferred capture");
  FAILS(tt_tensor_read(c, x, values, sizeof values), TT_INVALID_ARG, "deferred capture");
  OK(tt_exp(c, x, &y));
  OK(tt_capture_end(c, NULL, 0, &g));
  OK(tt_plan_new(c, g, NULL, &p));
  OK(tt_zero_(c, x));
  OK(tt_plan_run(c, p));
  OK(tt_tensor_read(c, y, values, sizeof values));
  assert_true(values[0] == 1 && values[11] == 1);
  tt_graph_release(g);
  tt_plan_release(p);
  OK(tt_tensor_read(c, y, values, sizeof values)); /* the memory is the tensor's */
  assert_true(values[0] == 1 && values[11] == 1);
}

static tt_status run_and_read(tt_plan* p, tt_tensor* out, float* values, int64_t bytes) {
  const tt_status s = tt_plan_run(c, p);
  return s ? s : tt_tensor_read(c, out, values, bytes);
}

/* A plan checks indices in each run. On a device the next synchronisation reports them, by name,
   position and value, also behind launches that are replayed as a graph. */
static void test_checked_indices(void** state) {
  const double rows[] = {0, 1, 2, 3, 4, 5, 6, 7}, good[] = {1, 3, 0}, bad[] = {1, 4, 0};
  tt_tensor* weight = make(TT_F32, SHAPE(4, 2), rows, 8);
  tt_tensor *index = make(TT_I64, SHAPE(3), good, 3), *wrong = make(TT_I64, SHAPE(3), bad, 3);
  tt_tensor *out, *in;
  tt_graph* g;
  tt_plan* p;
  float values[6];
  int k;
  (void)state;
  OK(tt_capture_begin(c, LIST(index), NULL));
  OK(tt_embedding(c, weight, index, NULL, &out));
  OK(tt_exp(c, out, &out));
  OK(tt_log(c, out, &out));
  OK(tt_capture_end(c, LIST(out), &g));
  OK(tt_plan_new(c, g, NULL, &p));
  OK(tt_plan_slot(c, p, 0, 0, &in));
  OK(tt_plan_slot(c, p, 1, 0, &out));
  for (k = 0; k < 3; k++) {
    OK(tt_copy_(c, in, index));
    OK(run_and_read(p, out, values, sizeof values));
    assert_true(values[0] > 1.99f && values[0] < 2.01f && values[3] > 6.99f && values[5] < 1.01f);
    OK(tt_copy_(c, in, wrong));
    FAILS(run_and_read(p, out, values, sizeof values), TT_INDEX,
          "indices holds 4 at [1]: must be in [0, 4)");
  }
  tt_plan_release(p);
  tt_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_classes), SCOPED(test_deferred),
                                     SCOPED(test_steps_between), SCOPED(test_reads_of_deferred),
                                     SCOPED(test_checked_indices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
