/* Steps of the models as operators, as compiled functions and as plans, in turn in one process:
   graphs [MODEL…]. Medians of rounds, in microseconds of the processor, which others disturb
   less than those of a clock. Then what a graph takes to make: milliseconds of a deferred capture,
   and of capture, passes and lowering; its arena beside the most bytes that eager had at once.
*/
#define _POSIX_C_SOURCE 200809L
#include "models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 21, CHAIN = 1000000 };

static tt_ctx* c;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}
static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}
static double median(double* list, int n) {
  qsort(list, (size_t)n, sizeof *list, by_size);
  return list[n / 2];
}

/* ---- memory ---- */

static size_t alive, peak;
static void* take(void* user, size_t bytes, size_t align) {
  (void)user;
  void* p = NULL;
  alive += bytes;
  if (alive > peak) peak = alive;
  return posix_memalign(&p, align < 64 ? 64 : align, bytes) ? NULL : p;
}
static void give_back(void* user, void* p, size_t bytes, size_t align) {
  (void)user;
  (void)align;
  alive -= bytes;
  free(p);
}

/* ---- what is measured ---- */

typedef int (*run_fn)(void* of);
static int eager_model(void* of) { return model_run(c, of); }
static int compiled_model(void* of) { return model_run_compiled(c, of); }
static int plan_run(void* of) { return tt_plan_run(c, of) != TT_OK; }

/* Microseconds a run, of as many runs as take about 20 ms. */
static double timed(run_fn run, void* of, long runs) {
  const double start = now();
  for (long i = 0; i < runs; i++)
    if (run(of)) {
      fprintf(stderr, "graphs: %s\n", tt_ctx_error(c)->message);
      exit(1);
    }
  return (now() - start) / (double)runs;
}
static long runs_of(run_fn run, void* of) {
  timed(run, of, 3);
  const double once = timed(run, of, 3);
  return once > 20000 ? 1 : (long)(20000 / once) + 1;
}

/* Begins the row of a table. */
static void compare(const char* name, run_fn* run, void** of, int n) {
  double list[3][ROUNDS], us[3] = {0};
  long runs[3];
  for (int k = 0; k < n; k++) runs[k] = runs_of(run[k], of[k]);
  for (int r = 0; r < ROUNDS; r++)
    for (int k = 0; k < n; k++) list[k][r] = timed(run[k], of[k], runs[k]);
  for (int k = 0; k < n; k++) us[k] = median(list[k], ROUNDS);
  printf("| %s | %.2f | %.2f | %.2f | %.2f | %.2f |", name, us[0], us[1], us[2], us[0] / us[1],
         us[0] / us[2]);
}

static void check(int failed) {
  if (!failed) return;
  fprintf(stderr, "graphs: %s\n", tt_ctx_error(c)->message);
  exit(1);
}

/* Captures a step without computing it, and lowers its graph. */
static void time_capture(model* m, double* capture_ms, double* whole_ms) {
  const tt_capture_opts opts = {.set = TT_CAPTURE_DEFERRED, .deferred = 1};
  tt_graph *whole, *g;
  tt_plan* p;
  const double start = now();
  check(tt_capture_begin(c, NULL, 0, &opts));
  check(model_run(c, m));
  check(tt_capture_end(c, NULL, 0, &whole));
  *capture_ms = (now() - start) / 1e3;
  check(tt_graph_optimize(c, whole, NULL, &g));
  check(tt_plan_new(c, g, NULL, &p));
  *whole_ms = (now() - start) / 1e3;
  tt_plan_release(p);
  tt_graph_release(g);
  tt_graph_release(whole);
}

static void measure_model(const char* net, int mode, const char* what) {
  model *eager = model_new(c, net, mode), *compiled = model_new(c, net, mode),
        *captured = model_new(c, net, mode), *deferred = model_new(c, net, mode);
  char name[64];
  tt_graph *whole, *g;
  tt_plan* p;
  double capture_ms, whole_ms;
  int64_t arena;
  size_t before = alive;
  check(!eager || !compiled || !captured || !deferred);
  check(model_hold(c, eager));
  check(model_hold(c, compiled));
  check(model_hold(c, captured));
  peak = alive;
  check(model_run(c, eager));
  const double most = (double)(peak - before);
  time_capture(deferred, &capture_ms, &whole_ms);
  check(tt_capture_begin(c, NULL, 0, NULL));
  check(model_run(c, captured));
  check(tt_capture_end(c, NULL, 0, &whole));
  check(tt_graph_optimize(c, whole, NULL, &g));
  check(tt_graph_arena_bytes(c, g, &arena));
  check(tt_plan_new(c, g, NULL, &p));
  tt_graph_release(whole);
  snprintf(name, sizeof name, "%s %s", net, what);
  compare(name, (run_fn[]){eager_model, compiled_model, plan_run}, (void*[]){eager, compiled, p},
          3);
  printf(" %.2f | %.2f | %.2f | %.2f |\n", capture_ms, whole_ms, (double)arena / 1e6,
         (double)arena / most);
  fflush(stdout);
  tt_plan_release(p);
  tt_graph_release(g);
}

/* A runtime of its own for each model: nothing is cached from others. */
static void with_runtime(void (*measure)(const char* net, int mode, const char* what),
                         const char* net, int mode, const char* what) {
  const tt_allocator allocator = {
      .struct_size = sizeof allocator, .alloc = take, .free = give_back};
  const tt_runtime_opts opts = {.struct_size = sizeof opts, .threads = 1, .allocator = &allocator};
  tt_runtime* rt;
  if (tt_runtime_new(&opts, &rt) || tt_ctx_new(rt, &c) || tt_manual_seed(c, 0)) exit(1);
  measure(net, mode, what);
  tt_ctx_release(c);
  tt_runtime_release(rt);
}

/* Five elementwise operators on a million numbers. */
static tt_tensor *chain_x, *chain_y;
static tt_status chain(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                       tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  tt_tensor *a, *b;
  (void)user;
  (void)n;
  (void)cap;
  tt_status s = tt_scope_push(x);
  if (s == TT_OK) s = tt_mul(x, in[0], in[1], &a);
  if (s == TT_OK) s = tt_add(x, a, in[0], &b);
  if (s == TT_OK) s = tt_relu(x, b, &a);
  if (s == TT_OK) s = tt_sub(x, a, in[1], &b);
  if (s == TT_OK) s = tt_mul_f64(x, b, 0.5, &a);
  if (s == TT_OK) s = tt_scope_pop(x, &a, 1);
  if (s == TT_OK) outs[0] = a;
  *n_outs = s == TT_OK;
  return s;
}
static const tt_tensor* chain_inputs[2];
static int chain_eager(void* of) {
  tt_tensor* out = NULL;
  int64_t n;
  (void)of;
  const tt_status s = chain(NULL, c, chain_inputs, 2, &out, 1, &n);
  tt_tensor_release(out);
  return s != TT_OK;
}
static int chain_compiled(void* of) {
  tt_tensor* out = NULL;
  int64_t n;
  const tt_status s = tt_compiled_call(c, of, chain_inputs, 2, &out, 1, &n);
  tt_tensor_release(out);
  return s != TT_OK;
}
static void measure_chain(int64_t size) {
  tt_compiled* f;
  tt_tensor* out;
  tt_graph* g;
  tt_plan* p;
  int64_t n;
  char name[32];
  check(tt_randn(c, &size, 1, NULL, &chain_x));
  check(tt_randn(c, &size, 1, NULL, &chain_y));
  chain_inputs[0] = chain_x;
  chain_inputs[1] = chain_y;
  check(tt_compile(c, chain, NULL, NULL, NULL, &f));
  check(tt_capture_begin(c, chain_inputs, 2, NULL));
  check(chain(NULL, c, chain_inputs, 2, &out, 1, &n));
  check(tt_capture_end(c, (const tt_tensor* const*)&out, 1, &g));
  check(tt_plan_new(c, g, NULL, &p));
  snprintf(name, sizeof name, "chain of five, %ld", (long)size);
  compare(name, (run_fn[]){chain_eager, chain_compiled, plan_run}, (void*[]){NULL, f, p}, 3);
  printf(" | | | |\n");
  tt_plan_release(p);
  tt_graph_release(g);
  tt_compiled_release(f);
  tt_tensor_release(out);
  tt_tensor_release(chain_x);
  tt_tensor_release(chain_y);
}

static void measure_chains(const char* net, int mode, const char* what) {
  (void)net;
  (void)mode;
  (void)what;
  measure_chain(4096);
  measure_chain(CHAIN);
}

int main(int argc, char** argv) {
  static const char* const nets[] = {"tiny", "mlp", "lenet", "cnn", "gpt"};
  printf(
      "| step | eager, µs | compiled, µs | plan, µs "
      "| eager ÷ compiled | eager ÷ plan "
      "| capture, ms | to a plan, ms "
      "| arena, MB | of eager's peak |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n");
  for (int i = 0; i < 5; i++) {
    int asked = argc < 2;
    for (int k = 1; k < argc; k++) asked |= !strcmp(argv[k], nets[i]);
    if (!asked) continue;
    with_runtime(measure_model, nets[i], MODEL_SGD, "sgd");
    with_runtime(measure_model, nets[i], MODEL_ADAM, "adam");
  }
  with_runtime(measure_chains, NULL, 0, NULL);
  return 0;
}
