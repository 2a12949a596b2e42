/* Trains a small convolutional network on handwritten digits with tt's C API.

   train_digits [--data FILE] [--epochs N] [--lr RATE] [--threads N] [--seed N] [--svg FILE]
                [--device NAME] [--isa N] [--checkpoint FILE] [--resume FILE] [--logits FILE]
   train_digits --evaluate CHECKPOINT [--logits FILE]

   Two convolutions with batch normalisation and pooling, then a linear layer; Adam with a cosine
   schedule. Shows progress, then the test accuracy and a confusion matrix, and writes the loss
   curve as SVG. --checkpoint saves everything after each epoch; --resume goes on from such a file
   and ends with the very result of a run that was not interrupted. --evaluate trains nothing and
   tests the model of such a file; --logits writes the scores of the test rows, raw float32 of the
   machine: (297, 10) row-major. */
#include "digits_data.h"
#include "report.h"
#include "tt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRAIN = 1500, BATCH = 50, SIDE = 8 };

typedef struct options {
  const char *data, *svg, *device, *checkpoint, *resume, *evaluate, *logits;
  long epochs, threads, isa;
  double lr;
  uint64_t seed;
} options;

/* All that a training consists of, and that a checkpoint keeps. */
typedef struct trainer {
  tt_module *net, *loss;
  tt_optimizer* adam;
  tt_scheduler* schedule;
  tt_generator* random;
  tt_device device;
  curve losses; /* one per epoch so far */
} trainer;

/* Wraps each call that can fail: on failure prints the error of tt and returns -1. */
#define CHECK(call)                                                      \
  do {                                                                   \
    tt_status status_ = (call);                                          \
    if (status_ != TT_OK) {                                              \
      fprintf(stderr, "train_digits: %s: %s\n", tt_status_name(status_), \
              tt_ctx_error(c)->message);                                 \
      return -1;                                                         \
    }                                                                    \
  } while (0)

/* n values of 8 bytes, or NULL with a message. */
static int64_t* new_ints(int64_t n) {
  int64_t* p = malloc((size_t)n * sizeof *p);
  if (!p) fprintf(stderr, "train_digits: out of memory\n");
  return p;
}

/* Appends a layer and gives the reference to the network. */
static int append(tt_ctx* c, tt_module* net, tt_module* layer) {
  tt_status status = tt_module_append(c, net, layer);
  tt_module_release(layer);
  CHECK(status);
  return 0;
}
#define LAYER(call)                       \
  do {                                    \
    tt_module* layer = NULL;              \
    CHECK(call);                          \
    if (append(c, net, layer)) return -1; \
  } while (0)

/* (N, 1, 8, 8) -> (N, channels[1], 2, 2) -> (N, 10) */
static int build(tt_ctx* c, tt_module* net) {
  static const int64_t channels[3] = {1, 16, 32};
  static const int64_t window = 3;
  static const int64_t half = 2;
  static const int64_t around = 1;
  tt_nn_conv2d_opts same = {0};
  tt_nn_dropout_opts drop = {0};
  same.set = TT_NN_CONV2D_PADDING;
  same.padding = &around;
  same.n_padding = 1;
  drop.set = TT_NN_DROPOUT_P;
  drop.p = 0.3;
  for (int i = 0; i < 2; i++) {
    LAYER(tt_nn_conv2d(c, channels[i], channels[i + 1], &window, 1, &same, &layer));
    LAYER(tt_nn_batch_norm2d(c, channels[i + 1], NULL, &layer));
    LAYER(tt_nn_relu(c, NULL, &layer));
    LAYER(tt_nn_max_pool2d(c, &half, 1, NULL, &layer));
  }
  LAYER(tt_nn_flatten(c, NULL, &layer));
  LAYER(tt_nn_dropout(c, &drop, &layer));
  LAYER(tt_nn_linear(c, channels[2] * 2 * 2, DIGITS_CLASSES, NULL, &layer));
  return 0;
}

static int trainer_init(tt_ctx* c, const options* o, trainer* t) {
  tt_tensor* params[16];
  int64_t n;
  tt_optim_adam_opts adam = {0};
  adam.set = TT_OPTIM_ADAM_LR;
  adam.lr = o->lr;
  CHECK(tt_ctx_generator(c, &t->random));
  CHECK(tt_nn_sequential(c, &t->net));
  if (build(c, t->net)) return -1;
  CHECK(tt_nn_cross_entropy_loss(c, NULL, &t->loss));
  CHECK(tt_module_to(c, t->net, &t->device, 0));
  CHECK(tt_scope_push(c));
  CHECK(tt_module_parameters(c, t->net, params, 16, &n));
  CHECK(tt_optim_adam(c, params, n, &adam, &t->adam));
  CHECK(tt_scope_pop(c, NULL, 0));
  CHECK(tt_lr_cosine_annealing(c, t->adam, o->epochs, NULL, &t->schedule));
  return 0;
}

static void trainer_free(trainer* t) {
  tt_scheduler_release(t->schedule);
  tt_optim_release(t->adam);
  tt_module_release(t->net);
  tt_module_release(t->loss);
  tt_generator_release(t->random);
  curve_free(&t->losses);
}

/* ---- checkpoints: the parts of a training, and the losses of its epochs so far ---- */

static tt_checkpoint parts(const trainer* t, tt_state_dict* extra) {
  tt_checkpoint p = {sizeof p, t->net, t->adam, t->schedule, t->random, extra};
  return p;
}

static int save(tt_ctx* c, const trainer* t, const char* path) {
  const int64_t n = t->losses.n;
  tt_state_dict* extra;
  tt_tensor* losses;
  CHECK(tt_scope_push(c));
  CHECK(tt_tensor_from_data(c, t->losses.values, TT_F64, &n, 1, &losses));
  CHECK(tt_state_dict_new(c, &extra));
  CHECK(tt_state_dict_set(c, extra, "losses", losses));
  tt_checkpoint p = parts(t, extra);
  tt_status status = tt_checkpoint_save(c, path, &p);
  tt_state_dict_release(extra);
  CHECK(status);
  CHECK(tt_scope_pop(c, NULL, 0));
  return 0;
}

static int resume(tt_ctx* c, trainer* t, const char* path) {
  tt_state_dict* extra;
  tt_tensor* losses;
  int64_t i;
  CHECK(tt_scope_push(c));
  CHECK(tt_state_dict_new(c, &extra));
  tt_checkpoint p = parts(t, extra);
  CHECK(tt_checkpoint_load(c, path, &p));
  CHECK(tt_state_dict_find(c, extra, "losses", &i));
  CHECK(tt_state_dict_get(c, extra, i, &losses));
  if (tt_tensor_dtype(losses) != TT_F64) {
    fprintf(stderr, "train_digits: %s: losses are not float64\n", path);
    return -1;
  }
  for (i = 0; i < tt_tensor_numel(losses); i++)
    if (curve_add(&t->losses, ((const double*)tt_tensor_data(losses))[i])) return -1;
  tt_state_dict_release(extra);
  CHECK(tt_scope_pop(c, NULL, 0));
  return 0;
}

/* The model alone. */
static int load_model(tt_ctx* c, const trainer* t, const char* path) {
  tt_checkpoint p = {sizeof p, t->net, NULL, NULL, NULL, NULL};
  CHECK(tt_checkpoint_load(c, path, &p));
  return 0;
}

/* ---- training ---- */

static int train_batch(tt_ctx* c, trainer* t, const tt_tensor* x, const tt_tensor* y,
                       const int64_t* rows, int64_t n, double* loss_out) {
  tt_tensor *index, *xb, *yb, *scores, *loss;
  const tt_tensor* pair[2];
  tt_to_opts to = {0};
  int64_t one;
  to.set = TT_TO_DEVICE;
  to.device = t->device;
  CHECK(tt_scope_push(c));
  CHECK(tt_tensor_from_data(c, rows, TT_I64, &n, 1, &index));
  CHECK(tt_to(c, index, &to, &index));
  CHECK(tt_index_select(c, x, 0, index, &xb));
  CHECK(tt_index_select(c, y, 0, index, &yb));
  CHECK(tt_module_call(c, t->net, xb, &scores));
  pair[0] = scores;
  pair[1] = yb;
  CHECK(tt_module_forward(c, t->loss, pair, 2, &loss, 1, &one));
  CHECK(tt_optim_zero_grad(c, t->adam, 1));
  CHECK(tt_backward(c, loss, NULL));
  CHECK(tt_optim_step(c, t->adam));
  CHECK(tt_item_f64(c, loss, loss_out));
  CHECK(tt_scope_pop(c, NULL, 0));
  return 0;
}

static int write_file(const char* path, const void* data, size_t bytes) {
  FILE* f = fopen(path, "wb");
  int wrong = !f || fwrite(data, 1, bytes, f) != bytes;
  if (f && fclose(f)) wrong = 1;
  if (wrong) fprintf(stderr, "train_digits: %s: cannot be written\n", path);
  return wrong ? -1 : 0;
}

/* Scores of rows as raw float32. */
static int write_logits(tt_ctx* c, const tt_tensor* scores, const char* path) {
  const int64_t bytes = tt_tensor_numel(scores) * 4;
  float* values = malloc((size_t)bytes);
  if (!values) {
    fprintf(stderr, "train_digits: out of memory\n");
    return -1;
  }
  tt_status status = tt_tensor_read(c, scores, values, bytes);
  int wrong = status == TT_OK ? write_file(path, values, (size_t)bytes) : 0;
  free(values);
  CHECK(status);
  return wrong;
}

/* logits may be NULL. */
static int predict(tt_ctx* c, const trainer* t, const tt_tensor* x, int64_t* classes,
                   const char* logits) {
  tt_tensor *scores, *best;
  tt_argmax_opts opts = {0};
  int32_t recorded;
  opts.set = TT_ARGMAX_DIM;
  opts.dim = 1;
  CHECK(tt_scope_push(c));
  CHECK(tt_set_grad_enabled(c, 0, &recorded));
  CHECK(tt_module_train(c, t->net, 0));
  CHECK(tt_module_call(c, t->net, x, &scores));
  CHECK(tt_argmax(c, scores, &opts, &best));
  CHECK(tt_tensor_read(c, best, classes, tt_tensor_numel(best) * 8));
  if (logits && write_logits(c, scores, logits)) return -1;
  CHECK(tt_set_grad_enabled(c, recorded, NULL));
  CHECK(tt_scope_pop(c, NULL, 0));
  return 0;
}

/* A permutation of 0 ... n-1, drawn from the ctx's generator. */
static int permutation(tt_ctx* c, int64_t n, int64_t* out) {
  tt_tensor* order;
  CHECK(tt_randperm(c, n, NULL, &order));
  tt_status status = tt_tensor_read(c, order, out, n * 8);
  tt_tensor_release(order);
  CHECK(status);
  return 0;
}

/* order: room for n row numbers. */
static int train(tt_ctx* c, const options* o, trainer* t, const tt_tensor* x, const tt_tensor* y,
                 int64_t n, int64_t* order) {
  progress bar = progress_start("epoch", t->losses.n, (int)o->epochs);
  for (int epoch = t->losses.n; epoch < o->epochs; epoch++) {
    double sum = 0;
    int64_t batches = 0;
    if (permutation(c, n, order)) return -1;
    for (int64_t i = 0; i < n; i += BATCH, batches++) {
      double loss;
      if (train_batch(c, t, x, y, order + i, n - i < BATCH ? n - i : BATCH, &loss)) return -1;
      sum += loss;
    }
    CHECK(tt_scheduler_step(c, t->schedule));
    if (curve_add(&t->losses, sum / (double)batches)) return -1;
    if (o->checkpoint && save(c, t, o->checkpoint)) return -1;
    progress_show(&bar, epoch + 1, sum / (double)batches, n);
  }
  return 0;
}

static int split_rows(tt_ctx* c, const digits* d, tt_device device, const int64_t* rows, int64_t n,
                      tt_tensor** x, tt_tensor** y) {
  const int64_t shape[4] = {d->n, 1, SIDE, SIDE};
  tt_tensor *all_x, *all_y, *index, *keep[2];
  tt_to_opts to = {0};
  to.set = TT_TO_DEVICE;
  to.device = device;
  CHECK(tt_scope_push(c));
  CHECK(tt_tensor_from_data(c, d->pixels, TT_F32, shape, 4, &all_x));
  CHECK(tt_tensor_from_data(c, d->labels, TT_I64, shape, 1, &all_y));
  CHECK(tt_tensor_from_data(c, rows, TT_I64, &n, 1, &index));
  CHECK(tt_index_select(c, all_x, 0, index, &keep[0]));
  CHECK(tt_index_select(c, all_y, 0, index, &keep[1]));
  CHECK(tt_to(c, keep[0], &to, &keep[0]));
  CHECK(tt_to(c, keep[1], &to, &keep[1]));
  *x = keep[0];
  *y = keep[1];
  CHECK(tt_scope_pop(c, keep, 2));
  return 0;
}

/* Everything between the data and the report. rows: room for d->n row numbers; truth and guess: for
   those of the test. */
static int train_and_test(tt_ctx* c, const options* o, const digits* d, trainer* t, int64_t* rows,
                          int64_t* truth, int64_t* guess) {
  tt_tensor *x = NULL, *y = NULL, *test_x = NULL, *test_y = NULL;
  const int64_t test_n = d->n - TRAIN;
  CHECK(tt_device_parse(c, o->device, &t->device));
  if (t->device.type == TT_CUDA) CHECK(tt_load_cuda(c, NULL));
  CHECK(tt_manual_seed(c, 1234)); /* the split is always the same */
  if (permutation(c, d->n, rows) || split_rows(c, d, t->device, rows, TRAIN, &x, &y) ||
      split_rows(c, d, t->device, rows + TRAIN, test_n, &test_x, &test_y))
    return -1;
  CHECK(tt_manual_seed(c, o->seed));
  if (trainer_init(c, o, t) || (o->resume && resume(c, t, o->resume))) return -1;
  if (o->evaluate ? load_model(c, t, o->evaluate) : train(c, o, t, x, y, TRAIN, rows)) return -1;
  CHECK(tt_tensor_read(c, test_y, truth, test_n * 8));
  if (predict(c, t, test_x, guess, o->logits)) return -1;
  tt_tensor_release(x);
  tt_tensor_release(y);
  tt_tensor_release(test_x);
  tt_tensor_release(test_y);
  return 0;
}

static int run(tt_ctx* c, const options* o, const digits* d) {
  const int64_t test_n = d->n - TRAIN;
  int64_t* rows = new_ints(d->n);
  int64_t* truth = new_ints(test_n);
  int64_t* guess = new_ints(test_n);
  trainer t;
  memset(&t, 0, sizeof t);
  int status = -1;
  if (rows && truth && guess) status = train_and_test(c, o, d, &t, rows, truth, guess);
  if (status == 0) {
    print_confusion(truth, guess, test_n, DIGITS_CLASSES);
    if (o->svg && t.losses.n && curve_write_svg(&t.losses, o->svg, "training loss per epoch") == 0)
      printf("loss curve: %s\n", o->svg);
    printf("test accuracy %.1f %%\n", 100 * accuracy(truth, guess, test_n));
  }
  trainer_free(&t);
  free(rows);
  free(truth);
  free(guess);
  return status;
}

static int usage(const char* why, const char* what) {
  fprintf(stderr,
          "train_digits: %s%s\n"
          "usage: train_digits [--data FILE] [--epochs N] [--lr RATE] [--threads N] [--seed N]\n"
          "                    [--svg FILE] [--device NAME] [--isa N] [--checkpoint FILE]\n"
          "                    [--resume FILE] [--logits FILE]\n"
          "       train_digits --evaluate CHECKPOINT [--logits FILE]\n",
          why, what);
  return 2;
}

/* 0, or the exit status. */
static int parse(int argc, char** argv, options* o) {
  for (int i = 1; i < argc; i++) {
    const char* name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    char* end = NULL;
    if (strcmp(name, "--help") == 0) {
      usage("trains a network on handwritten digits", "");
      return 1;
    }
    i++;
    if (strcmp(name, "--data") == 0) o->data = value;
    else if (strcmp(name, "--svg") == 0) o->svg = value;
    else if (strcmp(name, "--device") == 0) o->device = value;
    else if (strcmp(name, "--checkpoint") == 0) o->checkpoint = value;
    else if (strcmp(name, "--resume") == 0) o->resume = value;
    else if (strcmp(name, "--evaluate") == 0) o->evaluate = value;
    else if (strcmp(name, "--logits") == 0) o->logits = value;
    else if (strcmp(name, "--epochs") == 0) o->epochs = strtol(value, &end, 10);
    else if (strcmp(name, "--threads") == 0) o->threads = strtol(value, &end, 10);
    else if (strcmp(name, "--isa") == 0) o->isa = strtol(value, &end, 10);
    else if (strcmp(name, "--seed") == 0) o->seed = strtoull(value, &end, 10);
    else if (strcmp(name, "--lr") == 0) o->lr = strtod(value, &end);
    else return usage("unknown option ", name);
    if (i == argc) return usage("no value for ", name);
    if (end && (*end || end == value)) return usage("not a number: ", value);
  }
  if (o->epochs < 1 || o->epochs > 1000000 || !(o->lr > 0))
    return usage("--epochs (at most 1000000) and --lr must be positive", "");
  if (o->threads < 1 || o->threads > 256) return usage("--threads must be 1 to 256", "");
  return 0;
}

int main(int argc, char** argv) {
  options o = {
      .data = "examples/data/digits.csv",
      .svg = "digits_loss.svg",
      .device = "cpu",
      .epochs = 30,
      .threads = 1,
      .lr = 0.01,
  };
  tt_runtime_opts runtime = {0};
  tt_runtime* rt = NULL;
  tt_ctx* c = NULL;
  digits d;
  char message[512];
  int status = parse(argc, argv, &o);
  if (status) return status == 1 ? 0 : status;
  if (digits_read(o.data, &d, message, sizeof message)) {
    fprintf(stderr, "train_digits: %s\n", message);
    return 1;
  }
  if (d.n <= TRAIN) {
    fprintf(stderr,
            "train_digits: %s:%ld:1: the file ends after %ld rows, more than %d are needed\n",
            o.data, (long)d.n + 1, (long)d.n, TRAIN);
    digits_free(&d);
    return 1;
  }
  runtime.struct_size = sizeof runtime;
  runtime.threads = (int32_t)o.threads;
  runtime.isa = (int32_t)o.isa;
  if (tt_runtime_new(&runtime, &rt) == TT_OK && tt_ctx_new(rt, &c) == TT_OK) {
    status = run(c, &o, &d);
  } else {
    fprintf(stderr, "train_digits: no memory\n");
    status = -1;
  }
  tt_ctx_release(c);
  tt_runtime_release(rt);
  digits_free(&d);
  return status ? 1 : 0;
}
