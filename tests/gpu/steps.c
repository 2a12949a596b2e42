/* steps LIBRARY SHARE [NET...]: times of training steps on a CUDA device as lines of JSON, as
   bench.c's: eager, as compiled functions, and captured as plans, which launch CUDA graphs. Batches
   are those of models.c and 16 times these, divided by SHARE. torch_bench.py has the same names. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "models.h"

enum { kRounds = 9, kWarmUp = 4, kLarge = 16 };
static const double kRound = 20e3; /* microseconds */

static tt_ctx* c;
static const tt_device kDevice = {TT_CUDA, 0};
static int64_t share = 1;

typedef struct Step {
  model* m;
  tt_plan* plan;
} Step;
typedef int (*MakeFn)(Step* s);
typedef int (*RunFn)(Step* s);

static int make_nothing(Step* s) {
  (void)s;
  return 0;
}
/* Eager steps come first, so that the optimizer has its states. */
static int make_plan(Step* s) {
  tt_graph *whole, *g;
  for (int i = 0; i < 2; i++)
    if (model_run(c, s->m)) return 1;
  if (tt_capture_begin(c, NULL, 0, NULL)) return 1;
  if (model_run(c, s->m)) {
    tt_capture_drop(c);
    return 1;
  }
  if (tt_capture_end(c, NULL, 0, &whole)) return 1;
  tt_status failed = tt_graph_optimize(c, whole, NULL, &g);
  tt_graph_release(whole);
  if (failed) return 1;
  failed = tt_plan_new(c, g, NULL, &s->plan);
  tt_graph_release(g);
  return failed != TT_OK;
}
static int run_eager(Step* s) { return model_run(c, s->m); }
static int run_compiled(Step* s) { return model_run_compiled(c, s->m); }
static int run_plan(Step* s) { return tt_plan_run(c, s->plan) != TT_OK; }

static const struct {
  const char *name, *group;
  MakeFn make;
  RunFn run;
} kWays[] = {
    {"eager", "step", make_nothing, run_eager},
    {"compiled", "compiled step", make_nothing, run_compiled},
    {"captured", "captured step", make_plan, run_plan},
};
static const struct {
  const char* name;
  int64_t batch;
} kNets[] = {{"gpt", 8}, {"cnn", 64}, {"lenet", 64}, {"mlp", 128}};

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}
static int by_value(const void* x, const void* y) {
  const double d = *(const double*)x - *(const double*)y;
  return (d > 0) - (d < 0);
}
/* Microseconds of a step, with the device's work. */
static int timed(RunFn run, Step* s, int steps, double* us) {
  const double begin = now_us();
  for (int i = 0; i < steps; i++)
    if (run(s)) return 1;
  if (tt_synchronize(c, &kDevice)) return 1;
  *us = (now_us() - begin) / steps;
  return 0;
}
static int measure(int way, Step* s, double* result) {
  double us[kRounds], call;
  const int rounds = share > 1 ? 1 : kRounds;
  if (kWays[way].make(s)) return 1;
  if (timed(kWays[way].run, s, share > 1 ? 2 : kWarmUp, &call)) return 1; /* graphs need two */
  if (timed(kWays[way].run, s, share > 1 ? 1 : kWarmUp, &call)) return 1;
  const int steps = call < kRound ? (int)(kRound / call) : 1;
  for (int i = 0; i < rounds; i++)
    if (timed(kWays[way].run, s, steps, &us[i])) return 1;
  qsort(us, (size_t)rounds, sizeof *us, by_value);
  *result = us[rounds / 2];
  return 0;
}

static void measure_way(const char* net, int64_t batch, int way) {
  Step s = {model_new_on(c, net, MODEL_ADAM, &kDevice, batch / share ? batch / share : 1), NULL};
  char name[64];
  double us = 0;
  snprintf(name, sizeof name, "%s step, batch %ld, %s", net, (long)batch, kWays[way].name);
  if (!s.m || measure(way, &s, &us)) {
    fprintf(stderr, "steps: %s: %s\n", name, tt_ctx_error(c)->message);
    printf("{\"%s\": null}\n", name);
  } else {
    printf("{\"%s\": {\"us\": %.3f, \"group\": \"%s\"}}\n", name, us, kWays[way].group);
  }
  fflush(stdout);
  tt_plan_release(s.plan);
  tt_synchronize(c, &kDevice);
  if (!tt_synchronize(c, &kDevice)) return; /* the first one reports a fault in values */
  fprintf(stderr, "steps: the device is lost: %s\n", tt_ctx_error(c)->message);
  exit(1);
}

static int asked(const char* net, int n, char** nets) {
  for (int i = 0; i < n; i++)
    if (!strcmp(net, nets[i])) return 1;
  return !n;
}
int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: steps LIBRARY|- SHARE [NET...]\n");
    return 2;
  }
  share = atoll(argv[2]);
  if (share < 1 || tt_ctx_new(NULL, &c)) return 1;
  if (tt_manual_seed(c, 0) || tt_load_cuda(c, strcmp(argv[1], "-") ? argv[1] : NULL)) {
    fprintf(stderr, "steps: %s\n", tt_ctx_error(c)->message);
    return 1;
  }
  for (int64_t factor = 1; factor <= (share > 1 ? 1 : kLarge); factor *= kLarge)
    for (size_t i = 0; i < sizeof kNets / sizeof *kNets; i++)
      for (int way = 0; way < 3; way++)
        if (asked(kNets[i].name, argc - 3, argv + 3))
          measure_way(kNets[i].name, kNets[i].batch * factor, way);
  tt_ctx_release(c);
  return 0;
}
