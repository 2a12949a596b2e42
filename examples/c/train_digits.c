/* Trains a small network on handwritten digits with tt's C API.

   train_digits [--data FILE] [--epochs N] [--lr RATE] [--threads N] [--seed N] [--svg FILE]

   An MLP 64-128-64-10 with dropout; SGD with momentum, written with tt's operators. Shows progress, then the test accuracy and a
   confusion matrix, and writes the loss curve as SVG. */
#include "digits_data.h"
#include "report.h"
#include "tt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRAIN = 1500, BATCH = 50, LAYERS = 3, PARAMS = 2 * LAYERS };

typedef struct options {
  const char *data, *svg;
  long epochs, threads;
  double lr;
  uint64_t seed;
} options;

typedef struct model {
  tt_tensor *params[PARAMS];   /* weight, bias, weight, bias … */
  tt_tensor *velocity[PARAMS];
} model;

/* Every fallible call goes through this: prints what tt says and leaves the function with -1. */
#define CHECK(call)                                                                                     \
  do {                                                                                                  \
    tt_status status_ = (call);                                                                         \
    if (status_ != TT_OK) {                                                                             \
      fprintf(stderr, "train_digits: %s: %s\n", tt_status_name(status_), tt_ctx_error(c)->message);     \
      return -1;                                                                                        \
    }                                                                                                   \
  } while (0)

/* n values of 8 bytes, or NULL with a message. */
static int64_t *new_ints(int64_t n) {
  int64_t *p = malloc((size_t)n * sizeof *p);
  if (!p) fprintf(stderr, "train_digits: out of memory\n");
  return p;
}

/* Kaiming-uniform weights with a = sqrt(5), as PyTorch's Linear has them: U(-1/sqrt(in), 1/sqrt(in)). */
static int init_param(tt_ctx *c, const int64_t *shape, int64_t ndim, double bound, tt_tensor **out) {
  CHECK(tt_rand(c, shape, ndim, NULL, out));
  CHECK(tt_mul_f64_(c, *out, 2 * bound));
  CHECK(tt_sub_f64_(c, *out, bound));
  CHECK(tt_requires_grad_(c, *out, 1));
  return 0;
}

static int model_init(tt_ctx *c, model *m) {
  static const int64_t sizes[LAYERS + 1] = {DIGITS_PIXELS, 128, 64, DIGITS_CLASSES};
  for (int i = 0; i < LAYERS; i++) {
    int64_t shape[2] = {sizes[i + 1], sizes[i]};
    double bound = 1;
    while (bound * bound * (double)sizes[i] > 1) bound *= 0.5; /* a power of two near 1/sqrt(in) */
    if (init_param(c, shape, 2, bound, &m->params[2 * i])) return -1;
    if (init_param(c, shape, 1, bound, &m->params[2 * i + 1])) return -1;
  }
  for (int i = 0; i < PARAMS; i++) CHECK(tt_zeros_like(c, m->params[i], NULL, &m->velocity[i]));
  return 0;
}

static void model_free(model *m) {
  for (int i = 0; i < PARAMS; i++) tt_tensor_release(m->params[i]), tt_tensor_release(m->velocity[i]);
}

/* x: (batch, 64) -> logits: (batch, 10). Intermediate results belong to the open scope. */
static int forward(tt_ctx *c, const model *m, const tt_tensor *x, int training, tt_tensor **logits) {
  const tt_tensor *h = x;
  tt_dropout_opts drop = {0};
  drop.set = TT_DROPOUT_P | TT_DROPOUT_TRAIN, drop.p = 0.2, drop.train = training;
  for (int i = 0; i < LAYERS; i++) {
    tt_tensor *y;
    CHECK(tt_linear(c, h, m->params[2 * i], m->params[2 * i + 1], &y));
    if (i + 1 < LAYERS) {
      CHECK(tt_relu_(c, y));
      CHECK(tt_dropout(c, y, &drop, &y));
    }
    h = y;
    *logits = y;
  }
  return 0;
}

/* v = 0.9 v + g; p = p - lr v. */
static int sgd_step(tt_ctx *c, model *m, double lr) {
  int32_t recorded;
  tt_add_opts opts = {0};
  opts.set = TT_ADD_ALPHA, opts.alpha.kind = TT_SCALAR_FLOAT, opts.alpha.re = -lr;
  CHECK(tt_set_grad_enabled(c, 0, &recorded));
  for (int i = 0; i < PARAMS; i++) {
    tt_tensor *g;
    CHECK(tt_tensor_grad(c, m->params[i], &g));
    CHECK(tt_mul_f64_(c, m->velocity[i], 0.9));
    CHECK(tt_add_(c, m->velocity[i], g));
    CHECK(tt_add_ex_(c, m->params[i], m->velocity[i], &opts));
    CHECK(tt_tensor_set_grad(c, m->params[i], NULL));
  }
  CHECK(tt_set_grad_enabled(c, recorded, NULL));
  return 0;
}

static int train_batch(tt_ctx *c, model *m, const tt_tensor *x, const tt_tensor *y, const int64_t *rows, int64_t n, double lr, double *loss_out) {
  tt_tensor *index, *xb, *yb, *logits, *loss;
  CHECK(tt_scope_push(c));
  CHECK(tt_tensor_from_data(c, rows, TT_I64, &n, 1, &index));
  CHECK(tt_index_select(c, x, 0, index, &xb));
  CHECK(tt_index_select(c, y, 0, index, &yb));
  if (forward(c, m, xb, 1, &logits)) return -1;
  CHECK(tt_cross_entropy(c, logits, yb, NULL, &loss));
  CHECK(tt_backward(c, loss, NULL));
  if (sgd_step(c, m, lr)) return -1;
  CHECK(tt_item_f64(c, loss, loss_out));
  CHECK(tt_scope_pop(c, NULL, 0));
  return 0;
}

static int predict(tt_ctx *c, const model *m, const tt_tensor *x, int64_t *classes) {
  tt_tensor *logits, *best;
  tt_argmax_opts opts = {0};
  opts.set = TT_ARGMAX_DIM, opts.dim = 1;
  CHECK(tt_scope_push(c));
  if (forward(c, m, x, 0, &logits)) return -1;
  CHECK(tt_argmax(c, logits, &opts, &best));
  CHECK(tt_tensor_read(c, best, classes, tt_tensor_numel(best) * 8));
  CHECK(tt_scope_pop(c, NULL, 0));
  return 0;
}

/* A permutation of 0 … n-1 by Fisher and Yates, drawn from tt's generator. */
static int permutation(tt_ctx *c, int64_t n, int64_t *out) {
  tt_tensor *draws;
  const float *u;
  CHECK(tt_rand(c, &n, 1, NULL, &draws));
  u = tt_tensor_data(draws);
  for (int64_t i = 0; i < n; i++) out[i] = i;
  for (int64_t i = n - 1; i > 0; i--) {
    int64_t j = (int64_t)(u[i] * (float)(i + 1)), t = out[i];
    if (j > i) j = i;
    out[i] = out[j], out[j] = t;
  }
  tt_tensor_release(draws);
  return 0;
}

/* order: room for n row numbers. */
static int train(tt_ctx *c, const options *o, model *m, const tt_tensor *x, const tt_tensor *y, int64_t n, int64_t *order, curve *losses) {
  progress bar = progress_start((int)o->epochs);
  for (int epoch = 0; epoch < o->epochs; epoch++) {
    double sum = 0, lr = o->lr * (epoch < o->epochs * 3 / 4 ? 1 : 0.1);
    int64_t batches = 0;
    if (permutation(c, n, order)) return -1;
    for (int64_t i = 0; i < n; i += BATCH, batches++) {
      double loss;
      if (train_batch(c, m, x, y, order + i, n - i < BATCH ? n - i : BATCH, lr, &loss)) return -1;
      sum += loss;
    }
    if (curve_add(losses, sum / (double)batches)) return -1;
    progress_show(&bar, epoch + 1, sum / (double)batches, n);
  }
  return 0;
}

static int split_rows(tt_ctx *c, const digits *d, const int64_t *rows, int64_t n, tt_tensor **x, tt_tensor **y) {
  int64_t shape[2] = {d->n, DIGITS_PIXELS};
  tt_tensor *all_x, *all_y, *index;
  CHECK(tt_tensor_from_data(c, d->pixels, TT_F32, shape, 2, &all_x));
  CHECK(tt_tensor_from_data(c, d->labels, TT_I64, shape, 1, &all_y));
  CHECK(tt_tensor_from_data(c, rows, TT_I64, &n, 1, &index));
  CHECK(tt_index_select(c, all_x, 0, index, x));
  CHECK(tt_index_select(c, all_y, 0, index, y));
  tt_tensor_release(all_x), tt_tensor_release(all_y), tt_tensor_release(index);
  return 0;
}

/* Everything between the data and the report. rows: room for d->n row numbers, truth and guess: for those of the test. */
static int train_and_test(tt_ctx *c, const options *o, const digits *d, int64_t *rows, int64_t *truth, int64_t *guess, curve *losses) {
  model m = {0};
  tt_tensor *x = NULL, *y = NULL, *test_x = NULL, *test_y = NULL;
  const int64_t test_n = d->n - TRAIN;
  CHECK(tt_manual_seed(c, 1234)); /* the split is always the same */
  if (permutation(c, d->n, rows) || split_rows(c, d, rows, TRAIN, &x, &y) || split_rows(c, d, rows + TRAIN, test_n, &test_x, &test_y)) return -1;
  CHECK(tt_manual_seed(c, o->seed));
  if (model_init(c, &m) || train(c, o, &m, x, y, TRAIN, rows, losses)) return -1;
  CHECK(tt_tensor_read(c, test_y, truth, test_n * 8));
  if (predict(c, &m, test_x, guess)) return -1;
  tt_tensor_release(x), tt_tensor_release(y), tt_tensor_release(test_x), tt_tensor_release(test_y);
  model_free(&m);
  return 0;
}

static int run(tt_ctx *c, const options *o, const digits *d) {
  const int64_t test_n = d->n - TRAIN;
  int64_t *rows = new_ints(d->n), *truth = new_ints(test_n), *guess = new_ints(test_n);
  curve losses = {0};
  int status = !rows || !truth || !guess || train_and_test(c, o, d, rows, truth, guess, &losses) ? -1 : 0;
  if (status == 0) {
    print_confusion(truth, guess, test_n, DIGITS_CLASSES);
    if (o->svg && curve_write_svg(&losses, o->svg, "training loss per epoch") == 0) printf("loss curve: %s\n", o->svg);
    printf("test accuracy %.1f %%\n", 100 * accuracy(truth, guess, test_n));
  }
  curve_free(&losses);
  free(rows), free(truth), free(guess);
  return status;
}

static int usage(const char *why, const char *what) {
  fprintf(stderr, "train_digits: %s%s\nusage: train_digits [--data FILE] [--epochs N] [--lr RATE] [--threads N] [--seed N] [--svg FILE]\n", why, what);
  return 2;
}

/* 0, or the exit status. */
static int parse(int argc, char **argv, options *o) {
  for (int i = 1; i < argc; i++) {
    const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
    char *end = NULL;
    if (strcmp(name, "--help") == 0) return usage("trains a network on handwritten digits", ""), 1;
    if (!value) return usage("no value for ", name);
    i++;
    if (strcmp(name, "--data") == 0) o->data = value;
    else if (strcmp(name, "--svg") == 0) o->svg = value;
    else if (strcmp(name, "--epochs") == 0) o->epochs = strtol(value, &end, 10);
    else if (strcmp(name, "--threads") == 0) o->threads = strtol(value, &end, 10);
    else if (strcmp(name, "--seed") == 0) o->seed = strtoull(value, &end, 10);
    else if (strcmp(name, "--lr") == 0) o->lr = strtod(value, &end);
    else return usage("unknown option ", name);
    if (end && (*end || end == value)) return usage("not a number: ", value);
  }
  if (o->epochs < 1 || o->epochs > 1000000 || !(o->lr > 0)) return usage("--epochs (at most 1000000) and --lr must be positive", "");
  if (o->threads < 1 || o->threads > 256) return usage("--threads must be 1 to 256", "");
  return 0;
}

int main(int argc, char **argv) {
  options o = {"examples/data/digits.csv", "digits_loss.svg", 30, 1, 0.1, 0};
  tt_runtime_opts runtime = {0};
  tt_runtime *rt = NULL;
  tt_ctx *c = NULL;
  digits d;
  char message[512];
  int status = parse(argc, argv, &o);
  if (status) return status == 1 ? 0 : status;
  if (digits_read(o.data, &d, message, sizeof message)) {
    fprintf(stderr, "train_digits: %s\n", message);
    return 1;
  }
  if (d.n <= TRAIN) {
    fprintf(stderr, "train_digits: %s:%ld:1: the file ends after %ld rows, more than %d are needed\n", o.data, (long)d.n + 1, (long)d.n, TRAIN);
    digits_free(&d);
    return 1;
  }
  runtime.struct_size = sizeof runtime, runtime.threads = (int32_t)o.threads;
  status = tt_runtime_new(&runtime, &rt) != TT_OK || tt_ctx_new(rt, &c) != TT_OK ? (fprintf(stderr, "train_digits: no memory\n"), -1) : run(c, &o, &d);
  tt_ctx_release(c);
  tt_runtime_release(rt);
  digits_free(&d);
  return status ? 1 : 0;
}
