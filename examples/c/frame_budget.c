/* A network in an engine's loop at 60 Hz: each frame has a little time for it, and no memory.

   frame_budget [--frames N] [--budget MICROSECONDS] [--seed N]

   A guard of a game looks at a picture of 48 x 48 and decides where to go. The network is captured
   once, at load time, and lowered to a plan in an arena of the engine's own. Each frame gives the
   plan its budget (tt_plan_run_for); a decision takes as many frames as it needs, and the loop
   allocates nothing. At the end the decisions are compared with those of the network as it is.
 */
#define _POSIX_C_SOURCE 200809L
#include "tt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE = 48, MOVES = 5, ALIGN = 64, MAX_DECISIONS = 100000 };

#define CHECK(call)                                                               \
  do {                                                                            \
    const tt_status status_ = (call);                                             \
    if (status_ != TT_OK) {                                                       \
      fprintf(stderr, "frame_budget: %s: %s\n", #call, tt_ctx_error(c)->message); \
      return -1;                                                                  \
    }                                                                             \
  } while (0)

/* ---- the engine's memory, which counts ---- */

static long long allocations;
static void* engine_alloc(void* user, size_t size, size_t align) {
  void* p = NULL;
  (void)user;
  allocations++;
  return posix_memalign(&p, align < ALIGN ? ALIGN : align, size) ? NULL : p;
}
static void engine_free(void* user, void* p, size_t size, size_t align) {
  (void)user;
  (void)size;
  (void)align;
  free(p);
}

static double microseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* ---- the network ---- */

typedef struct guard {
  tt_module* net;
  tt_graph* graph;
  tt_plan* plan;
  char* arena; /* of arena_bytes */
  int64_t arena_bytes;
  tt_tensor *picture, *scores; /* in the arena */
} guard;

static tt_status add(tt_ctx* c, tt_module* net, tt_status made, tt_module** layer) {
  const tt_status status = made == TT_OK ? tt_module_append(c, net, *layer) : made;
  tt_module_release(*layer);
  *layer = NULL;
  return status;
}
static int build(tt_ctx* c, guard* g) {
  static const int64_t kernel[] = {3, 3}, two[] = {2, 2};
  static const int channels[] = {1, 8, 16, 16};
  tt_module* layer = NULL;
  CHECK(tt_nn_sequential(c, &g->net));
  for (int i = 0; i < 3; i++) {
    CHECK(add(c, g->net, tt_nn_conv2d(c, channels[i], channels[i + 1], kernel, 2, NULL, &layer),
              &layer));
    CHECK(add(c, g->net, tt_nn_batch_norm2d(c, channels[i + 1], NULL, &layer), &layer));
    CHECK(add(c, g->net, tt_nn_relu(c, NULL, &layer), &layer));
    CHECK(add(c, g->net, tt_nn_max_pool2d(c, two, 2, NULL, &layer), &layer));
  }
  CHECK(add(c, g->net, tt_nn_flatten(c, NULL, &layer), &layer));
  CHECK(add(c, g->net, tt_nn_linear(c, 16 * 4 * 4, MOVES, NULL, &layer), &layer));
  CHECK(tt_module_train(c, g->net, 0));
  return 0;
}

/* Captures the network on a blank picture and lowers it into the engine's arena. */
static int load(tt_ctx* c, guard* g) {
  const int64_t shape[] = {1, 1, SIDE, SIDE};
  tt_tensor *blank, *scores;
  tt_plan_opts opts = {.set = TT_PLAN_ARENA | TT_PLAN_ARENA_BYTES};
  if (build(c, g)) return -1;
  CHECK(tt_scope_push(c));
  CHECK(tt_zeros(c, shape, 4, NULL, &blank));
  CHECK(tt_capture_begin(c, (const tt_tensor* const[]){blank}, 1, NULL));
  CHECK(tt_module_call(c, g->net, blank, &scores));
  CHECK(tt_capture_end(c, (const tt_tensor* const[]){scores}, 1, &g->graph));
  CHECK(tt_scope_pop(c, NULL, 0));
  CHECK(tt_graph_arena_bytes(c, g->graph, &g->arena_bytes));
  g->arena = engine_alloc(NULL, (size_t)g->arena_bytes, ALIGN);
  if (!g->arena) return -1;
  opts.arena = g->arena;
  opts.arena_bytes = g->arena_bytes;
  CHECK(tt_plan_new(c, g->graph, &opts, &g->plan));
  CHECK(tt_plan_slot(c, g->plan, 0, 0, &g->picture));
  CHECK(tt_plan_slot(c, g->plan, 1, 0, &g->scores));
  return 0;
}
static void unload(guard* g) {
  tt_tensor_release(g->picture);
  tt_tensor_release(g->scores);
  tt_plan_release(g->plan);
  tt_graph_release(g->graph);
  tt_module_release(g->net);
  free(g->arena);
}

/* ---- the game ---- */

/* What the guard sees at a time: a light that moves around. */
static void draw_picture(float* pixels, long when) {
  const int x = (int)(when * 7 % SIDE), y = (int)(when * 3 % SIDE);
  for (int i = 0; i < SIDE * SIDE; i++) {
    const int dx = i % SIDE - x, dy = i / SIDE - y;
    pixels[i] = 1.0f / (1.0f + 0.1f * (float)(dx * dx + dy * dy));
  }
}
static int best(const float* scores) {
  int move = 0;
  for (int i = 1; i < MOVES; i++)
    if (scores[i] > scores[move]) move = i;
  return move;
}

typedef struct report {
  long frames, decisions, allocated;
  double longest; /* microseconds of one frame */
  int moves[MAX_DECISIONS];
} report;

/* The loop. Each frame the rest of the engine would run here, too. */
static int play(tt_ctx* c, guard* g, long frames, long budget, report* r) {
  int32_t done = 1;
  const long long before = allocations;
  for (r->frames = 0; r->frames < frames && r->decisions < MAX_DECISIONS; r->frames++) {
    const double start = microseconds();
    if (done) draw_picture(tt_tensor_data(g->picture), r->decisions);
    CHECK(tt_plan_run_for(c, g->plan, budget * 1000, &done));
    if (done) r->moves[r->decisions++] = best(tt_tensor_data(g->scores));
    const double spent = microseconds() - start;
    if (spent > r->longest) r->longest = spent;
  }
  r->allocated = (long)(allocations - before);
  return 0;
}

/* The same decisions by the network as it is. Returns how many differ, or -1. */
static int compare(tt_ctx* c, const guard* g, const report* r) {
  const int64_t shape[] = {1, 1, SIDE, SIDE};
  static float pixels[SIDE * SIDE];
  int differ = 0;
  for (long i = 0; i < r->decisions && i < 50; i++) {
    tt_tensor *picture, *scores;
    CHECK(tt_scope_push(c));
    draw_picture(pixels, i);
    CHECK(tt_tensor_from_data(c, pixels, TT_F32, shape, 4, &picture));
    CHECK(tt_module_call(c, g->net, picture, &scores));
    differ += best(tt_tensor_data(scores)) != r->moves[i];
    CHECK(tt_scope_pop(c, NULL, 0));
  }
  return differ;
}

static int run(tt_ctx* c, long frames, long budget, long seed) {
  static report r;
  guard g = {0};
  int32_t before;
  CHECK(tt_manual_seed(c, (uint64_t)seed));
  CHECK(tt_set_grad_enabled(c, 0, &before));
  int status = load(c, &g);
  if (status == 0) status = play(c, &g, frames, budget, &r);
  if (status == 0) {
    const int differ = compare(c, &g, &r);
    printf("arena: %ld bytes\n", (long)g.arena_bytes);
    printf("%ld frames of at most %ld us: %ld decisions, %.1f frames each\n", r.frames, budget,
           r.decisions, r.decisions ? (double)r.frames / (double)r.decisions : 0);
    printf("allocations in the loop: %ld\n", r.allocated);
    printf("longest frame: %.0f us\n", r.longest);
    printf("decisions that differ from the network's: %d\n", differ);
    status = differ != 0;
  }
  unload(&g);
  return status;
}

static int usage(const char* why) {
  fprintf(stderr,
          "frame_budget: %s\nusage: frame_budget [--frames N] [--budget MICROSECONDS] [--seed N]\n",
          why);
  return 2;
}

int main(int argc, char** argv) {
  long frames = 600, budget = 200, seed = 1;
  tt_allocator allocator = {
      .struct_size = sizeof allocator, .alloc = engine_alloc, .free = engine_free};
  tt_runtime_opts opts = {.struct_size = sizeof opts, .threads = 1, .allocator = &allocator};
  tt_runtime* rt = NULL;
  tt_ctx* c = NULL;
  for (int i = 1; i < argc; i += 2) {
    char* end = NULL;
    long* to = NULL;
    if (!strcmp(argv[i], "--frames")) to = &frames;
    else if (!strcmp(argv[i], "--budget")) to = &budget;
    else if (!strcmp(argv[i], "--seed")) to = &seed;
    else return usage("unknown option");
    if (i + 1 == argc) return usage("the last option has no number");
    *to = strtol(argv[i + 1], &end, 10);
    if (*end || end == argv[i + 1] || *to < 0) return usage("not a number");
  }
  if (tt_runtime_new(&opts, &rt) != TT_OK || tt_ctx_new(rt, &c) != TT_OK) return 1;
  const int status = run(c, frames, budget, seed);
  tt_ctx_release(c);
  tt_runtime_release(rt);
  return status ? 1 : 0;
}
