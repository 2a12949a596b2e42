/* Trains a small network on handwritten digits in several processes, each on its part of every
   batch, with tt's C API.

   train_ddp [--data FILE] [--epochs N] [--checkpoint FILE] [--resume FILE]

   python3 -m tt.distributed.run --no-python --nproc-per-node 2 build/examples/train_ddp
   mpirun -n 2 build/examples/train_ddp

   Under mpirun the processes talk by MPI, else by Gloo: RANK, WORLD_SIZE, MASTER_ADDR and
   MASTER_PORT say who and where. Without either, there is one process. Rank 0 reports and writes
   the checkpoint; all ranks resume from it. */
#include "digits_data.h"
#include "tt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRAIN = 1500, BATCH = 60, HIDDEN = 64 };

typedef struct options {
  const char *data, *checkpoint, *resume;
  long epochs;
} options;

typedef struct trainer {
  tt_group* group;
  tt_module* net;
  tt_ddp* ddp;
  tt_optimizer* adam;
} trainer;

/* Wraps each call that can fail: on failure prints the error of tt and returns -1. */
#define CHECK(call)                                                                              \
  do {                                                                                           \
    tt_status status_ = (call);                                                                  \
    if (status_ != TT_OK) {                                                                      \
      fprintf(stderr, "train_ddp: %s: %s\n", tt_status_name(status_), tt_ctx_error(c)->message); \
      return -1;                                                                                 \
    }                                                                                            \
  } while (0)

static long number(const char* name, long otherwise) {
  const char* value = getenv(name);
  return value ? strtol(value, NULL, 10) : otherwise;
}

static int connect_group(tt_ctx* c, tt_group** out) {
  const char* host = getenv("MASTER_ADDR");
  char place[300];
  if (!host && (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE"))) {
    CHECK(tt_group_new(c, "mpi", -1, -1, NULL, NULL, out));
    return 0;
  }
  snprintf(place, sizeof place, "tcp://%s:%ld", host ? host : "127.0.0.1",
           number("MASTER_PORT", 0));
  CHECK(tt_group_new(c, "gloo", (int32_t)number("RANK", 0), (int32_t)number("WORLD_SIZE", 1), place,
                     NULL, out));
  return 0;
}

/* Appends a layer and gives the reference to the network. */
static int append(tt_ctx* c, tt_module* net, tt_module* layer) {
  tt_status status = tt_module_append(c, net, layer);
  tt_module_release(layer);
  CHECK(status);
  return 0;
}

static int build(tt_ctx* c, tt_module** net) {
  tt_module* layer;
  CHECK(tt_nn_sequential(c, net));
  CHECK(tt_nn_linear(c, DIGITS_PIXELS, HIDDEN, NULL, &layer));
  if (append(c, *net, layer)) return -1;
  CHECK(tt_nn_relu(c, NULL, &layer));
  if (append(c, *net, layer)) return -1;
  CHECK(tt_nn_linear(c, HIDDEN, DIGITS_CLASSES, NULL, &layer));
  return append(c, *net, layer);
}

static int trainer_init(tt_ctx* c, const options* o, trainer* t) {
  tt_tensor* params[8];
  int64_t n;
  if (connect_group(c, &t->group) || build(c, &t->net)) return -1;
  CHECK(tt_scope_push(c));
  CHECK(tt_module_parameters(c, t->net, params, 8, &n));
  CHECK(tt_optim_adam(c, params, n, NULL, &t->adam));
  CHECK(tt_scope_pop(c, NULL, 0));
  if (o->resume) {
    tt_checkpoint parts = {sizeof parts, t->net, t->adam, NULL, NULL, NULL};
    CHECK(tt_checkpoint_load(c, o->resume, &parts));
  }
  CHECK(tt_ddp_new(c, t->net, t->group, NULL, &t->ddp)); /* all ranks get rank 0's parameters */
  return 0;
}

static void trainer_free(trainer* t) {
  tt_ddp_release(t->ddp);
  tt_optim_release(t->adam);
  tt_module_release(t->net);
  tt_group_release(t->group);
}

/* One step on rows [begin, begin + n) of the data. */
static int step(tt_ctx* c, trainer* t, const digits* d, int64_t begin, int64_t n,
                double* loss_out) {
  const int64_t shape[2] = {n, DIGITS_PIXELS};
  tt_tensor *x, *y, *scores, *loss;
  CHECK(tt_scope_push(c));
  CHECK(tt_tensor_from_data(c, d->pixels + begin * DIGITS_PIXELS, TT_F32, shape, 2, &x));
  CHECK(tt_tensor_from_data(c, d->labels + begin, TT_I64, shape, 1, &y));
  CHECK(tt_module_call(c, t->net, x, &scores));
  CHECK(tt_cross_entropy(c, scores, y, NULL, &loss));
  CHECK(tt_optim_zero_grad(c, t->adam, 1));
  CHECK(tt_backward(c, loss, NULL)); /* ends with the mean of the gradients of all ranks */
  CHECK(tt_optim_step(c, t->adam));
  CHECK(tt_group_all_reduce(c, t->group, loss, TT_REDUCE_MEAN, NULL));
  CHECK(tt_item_f64(c, loss, loss_out));
  CHECK(tt_scope_pop(c, NULL, 0));
  return 0;
}

/* Share of the test rows whose class is found. */
static int accuracy(tt_ctx* c, trainer* t, const digits* d, double* out) {
  const int64_t shape[2] = {d->n - TRAIN, DIGITS_PIXELS};
  tt_tensor *x, *scores, *best;
  tt_argmax_opts opts = {0};
  int64_t* found = malloc((size_t)shape[0] * sizeof *found);
  int64_t i, right = 0;
  if (!found) return -1;
  opts.set = TT_ARGMAX_DIM;
  opts.dim = 1;
  CHECK(tt_scope_push(c));
  CHECK(tt_module_train(c, t->net, 0));
  CHECK(tt_tensor_from_data(c, d->pixels + TRAIN * DIGITS_PIXELS, TT_F32, shape, 2, &x));
  CHECK(tt_module_call(c, t->net, x, &scores));
  CHECK(tt_argmax(c, scores, &opts, &best));
  CHECK(tt_tensor_read(c, best, found, shape[0] * 8));
  CHECK(tt_scope_pop(c, NULL, 0));
  for (i = 0; i < shape[0]; i++) right += found[i] == d->labels[TRAIN + i];
  free(found);
  *out = (double)right / (double)shape[0];
  return 0;
}

static int train(tt_ctx* c, const options* o, trainer* t, const digits* d) {
  const int64_t rank = tt_group_rank(t->group), size = tt_group_size(t->group);
  double loss = 0, right = 0;
  long epoch;
  for (epoch = 1; epoch <= o->epochs; epoch++) {
    int64_t i;
    const int64_t mine = BATCH / size; /* rows of each batch */
    for (i = 0; i + BATCH <= TRAIN; i += BATCH)
      if (step(c, t, d, i + rank * mine, mine, &loss)) return -1;
    if (rank) continue;
    if (o->checkpoint) {
      tt_checkpoint parts = {sizeof parts, t->net, t->adam, NULL, NULL, NULL};
      CHECK(tt_checkpoint_save(c, o->checkpoint, &parts));
    }
    printf("epoch %ld: loss %.4f\n", epoch, loss);
  }
  if (rank) return 0;
  if (accuracy(c, t, d, &right)) return -1;
  printf("%ld processes (%s): test accuracy %.1f %%\n", (long)size,
         size > 1 ? tt_group_backend(t->group) : "alone", 100 * right);
  return 0;
}

static int parse(int argc, char** argv, options* o) {
  int i;
  for (i = 1; i < argc; i += 2) {
    const char* value = i + 1 < argc ? argv[i + 1] : NULL;
    if (!value) break;
    if (!strcmp(argv[i], "--data")) o->data = value;
    else if (!strcmp(argv[i], "--checkpoint")) o->checkpoint = value;
    else if (!strcmp(argv[i], "--resume")) o->resume = value;
    else if (!strcmp(argv[i], "--epochs")) o->epochs = strtol(value, NULL, 10);
    else break;
  }
  if (i >= argc) return 0;
  fprintf(stderr,
          "usage: train_ddp [--data FILE] [--epochs N] [--checkpoint FILE] [--resume FILE]\n");
  return -1;
}

int main(int argc, char** argv) {
  options o = {"examples/data/digits.csv", NULL, NULL, 10};
  tt_runtime_opts runtime = {0};
  tt_runtime* rt = NULL;
  tt_ctx* c = NULL;
  trainer t = {0};
  digits d;
  char message[512];
  int failed;
  if (parse(argc, argv, &o)) return 2;
  if (digits_read(o.data, &d, message, sizeof message)) {
    fprintf(stderr, "train_ddp: %s\n", message);
    return 1;
  }
  runtime.struct_size = sizeof runtime;
  runtime.threads = 1;
  if (d.n <= TRAIN) {
    fprintf(stderr, "train_ddp: %s: more than %d rows are needed\n", o.data, TRAIN);
    failed = 1;
  } else if (tt_runtime_new(&runtime, &rt) != TT_OK || tt_ctx_new(rt, &c) != TT_OK) {
    fprintf(stderr, "train_ddp: out of memory\n");
    failed = 1;
  } else {
    failed = trainer_init(c, &o, &t) || train(c, &o, &t, &d);
  }
  trainer_free(&t);
  tt_ctx_release(c);
  tt_runtime_release(rt);
  digits_free(&d);
  return failed ? 1 : 0;
}
