/* A host that keeps tt on a leash: memory from its own allocator, with a limit; work on its own
   threads; messages to its own log.

   embed_host [--limit MB] [--steps N] [--threads N]

   It learns the picture of a disc from points, as a game might learn a level's shape in the
   background, and doubles the number of points of a step until memory runs out in the middle of a
   training step. tt says so by a status; the host drops what the step has made, goes back to fewer
   points and finishes. At the end every byte is back in the allocator.
 */
#define _POSIX_C_SOURCE 200809L
#include "host_pool.h"
#include "tt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the host's services ---- */

typedef struct memory {
  long long in_use, peak, blocks; /* bytes, bytes, blocks alive */
} memory;

static void* host_alloc(void* user, size_t size, size_t align) {
  memory* m = user;
  void* p = NULL;
  if (posix_memalign(&p, align < sizeof p ? sizeof p : align, size)) return NULL;
  long long now = __atomic_add_fetch(&m->in_use, (long long)size, __ATOMIC_RELAXED);
  __atomic_add_fetch(&m->blocks, 1, __ATOMIC_RELAXED);
  if (now > m->peak) m->peak = now;
  return p;
}
static void host_free(void* user, void* p, size_t size, size_t align) {
  memory* m = user;
  (void)align;
  __atomic_sub_fetch(&m->in_use, (long long)size, __ATOMIC_RELAXED);
  __atomic_sub_fetch(&m->blocks, 1, __ATOMIC_RELAXED);
  free(p);
}

/* Keeps warnings and errors; a game would show them in its console. */
typedef struct console {
  int warnings;
  char last[256];
} console;
static void host_log(void* user, int32_t level, const char* message) {
  console* l = user;
  if (level < TT_LOG_WARNING) return;
  l->warnings++;
  snprintf(l->last, sizeof l->last, "%s", message);
}

/* ---- the network ---- */

typedef struct learner {
  tt_module *net, *loss;
  tt_optimizer* adam;
} learner;

#define TRY(call)                         \
  do {                                    \
    const tt_status status_ = (call);     \
    if (status_ != TT_OK) return status_; \
  } while (0)

static tt_status add_layer(tt_ctx* c, tt_module* net, tt_module* layer) {
  tt_status status = tt_module_append(c, net, layer);
  tt_module_release(layer);
  return status;
}

static tt_status learner_new(tt_ctx* c, learner* l) {
  static const int64_t sizes[4] = {2, 64, 64, 1};
  tt_optim_adam_opts adam = {0};
  tt_tensor* params[8];
  tt_module* layer;
  int64_t n;
  TRY(tt_manual_seed(c, 0)); /* the same numbers in every run */
  TRY(tt_nn_sequential(c, &l->net));
  for (int i = 0; i < 3; i++) {
    TRY(tt_nn_linear(c, sizes[i], sizes[i + 1], NULL, &layer));
    TRY(add_layer(c, l->net, layer));
    if (i == 2) break;
    TRY(tt_nn_relu(c, NULL, &layer));
    TRY(add_layer(c, l->net, layer));
  }
  TRY(tt_nn_bce_with_logits_loss(c, NULL, &l->loss));
  adam.set = TT_OPTIM_ADAM_LR;
  adam.lr = 3e-3;
  TRY(tt_scope_push(c));
  TRY(tt_module_parameters(c, l->net, params, 8, &n));
  TRY(tt_optim_adam(c, params, n, &adam, &l->adam));
  return tt_scope_pop(c, NULL, 0);
}

/* Points in the square, and whether each is in the disc of radius 0.7. */
static tt_status draw_points(tt_ctx* c, int64_t n, tt_tensor** points, tt_tensor** inside) {
  const int64_t shape[2] = {n, 2};
  const int64_t across[1] = {1};
  tt_sum_dim_opts keep = {0};
  tt_to_opts number = {0};
  tt_tensor *square, *distance, *hit;
  keep.set = TT_SUM_DIM_KEEPDIM;
  keep.keepdim = 1;
  number.set = TT_TO_DTYPE;
  number.dtype = TT_F32;
  TRY(tt_rand(c, shape, 2, NULL, points));
  TRY(tt_mul_f64_(c, *points, 2));
  TRY(tt_sub_f64_(c, *points, 1));
  TRY(tt_mul(c, *points, *points, &square));
  TRY(tt_sum_dim(c, square, across, 1, &keep, &distance));
  TRY(tt_lt_f64(c, distance, 0.49, &hit));
  return tt_to(c, hit, &number, inside);
}

static tt_status step_body(tt_ctx* c, const learner* l, int64_t points, double* loss_out) {
  tt_tensor *x, *y, *scores, *loss;
  const tt_tensor* pair[2];
  int64_t one;
  TRY(draw_points(c, points, &x, &y));
  TRY(tt_module_call(c, l->net, x, &scores));
  pair[0] = scores;
  pair[1] = y;
  TRY(tt_module_forward(c, l->loss, pair, 2, &loss, 1, &one));
  TRY(tt_optim_zero_grad(c, l->adam, 1));
  TRY(tt_backward(c, loss, NULL));
  TRY(tt_optim_step(c, l->adam));
  return tt_item_f64(c, loss, loss_out);
}

/* Whatever happens inside, the scope takes back what the step has made. */
static tt_status step(tt_ctx* c, const learner* l, int64_t points, double* loss) {
  TRY(tt_scope_push(c));
  tt_status status = step_body(c, l, points, loss);
  char why[256];
  if (status != TT_OK) snprintf(why, sizeof why, "%s", tt_ctx_error(c)->message);
  tt_scope_pop(c, NULL, 0);
  if (status != TT_OK) printf("  %s: %s\n", tt_status_name(status), why);
  return status;
}

static int learn(tt_ctx* c, const learner* l, const memory* m, long steps) {
  int64_t points = 1024;
  double loss = 0;
  int grows = 1, survived = 0;
  printf("%6s %10s %8s %12s\n", "step", "points", "loss", "memory MB");
  for (long i = 1; i <= steps; i++) {
    tt_status status = step(c, l, points, &loss);
    if (status == TT_OOM) { /* half as many from now on */
      survived++;
      grows = 0;
      points /= 2;
      if (tt_optim_zero_grad(c, l->adam, 1) || tt_trim(c) || points < 16) return -1;
      continue;
    }
    if (status != TT_OK) return -1;
    if (i % (steps / 15 + 1) == 0 || i == steps)
      printf("%6ld %10lld %8.4f %12.1f\n", i, (long long)points, loss, (double)m->in_use / 1e6);
    if (grows && i % 5 == 0) points *= 2;
  }
  printf("survived %d out-of-memory, last loss %.4f\n", survived, loss);
  return survived && loss < 0.3 ? 0 : -1;
}

static int host(long limit_mb, long steps, long threads) {
  memory m = {0, 0, 0};
  console log = {0, ""};
  learner l = {NULL, NULL, NULL};
  host_pool* pool = host_pool_new((int)threads - 1);
  if (!pool) {
    fprintf(stderr, "embed_host: no threads\n");
    return 1;
  }
  const tt_allocator allocator = {sizeof allocator, &m, host_alloc, host_free};
  const tt_executor executor = host_pool_executor(pool);
  const tt_logger logger = {sizeof logger, &log, host_log};
  const tt_runtime_opts opts = {.struct_size = sizeof opts,
                                .allocator = &allocator,
                                .executor = &executor,
                                .logger = &logger,
                                .memory_limit = limit_mb * 1000000LL};
  tt_runtime* rt = NULL;
  tt_ctx* c = NULL;
  int status = tt_runtime_new(&opts, &rt) || tt_ctx_new(rt, &c) || learner_new(c, &l)
                   ? -1
                   : learn(c, &l, &m, steps);
  if (status && c) fprintf(stderr, "embed_host: %s\n", tt_ctx_error(c)->message);
  tt_optim_release(l.adam);
  tt_module_release(l.net);
  tt_module_release(l.loss);
  tt_ctx_release(c);
  tt_runtime_release(rt);
  printf("loops on the host's threads: %ld; warnings: %d (%s)\n", host_pool_loops(pool),
         log.warnings, log.last);
  printf("allocator: peak %.1f MB of %ld allowed, %lld bytes in %lld blocks left\n",
         (double)m.peak / 1e6, limit_mb, m.in_use, m.blocks);
  host_pool_free(pool);
  return status || m.in_use ? 1 : 0;
}

int main(int argc, char** argv) {
  long limit_mb = 64, steps = 300, threads = 2;
  for (int i = 1; i < argc; i += 2) {
    long* to = NULL;
    if (strcmp(argv[i], "--limit") == 0) to = &limit_mb;
    if (strcmp(argv[i], "--steps") == 0) to = &steps;
    if (strcmp(argv[i], "--threads") == 0) to = &threads;
    char* end = NULL;
    long value = to && i + 1 < argc ? strtol(argv[i + 1], &end, 10) : 0;
    if (!end || *end || value < 1 || value > 100000) {
      fprintf(
          stderr,
          "embed_host: bad option %s\nusage: embed_host [--limit MB] [--steps N] [--threads N]\n",
          argv[i]);
      return 2;
    }
    *to = value;
  }
  return host(limit_mb, steps, threads);
}
