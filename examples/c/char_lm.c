/* Trains a small GPT on a text, letter by letter, and lets it write.

   char_lm [--text FILE]... [--steps N] [--batch N] [--context N] [--width N]
           [--layers N] [--heads N] [--lr RATE] [--threads N] [--device NAME]
           [--cache 0|1] [--seed N] [--sample N] [--temperature T]
           [--weights q8_0|q4_0] [--checkpoint FILE] [--resume FILE] [--svg FILE]

   Without --text it reads this repository's own documents. Each block of the network is a module of
   this program that holds layers of tt: layer norm, causal attention and a two-layer perceptron,
   each added to its input. AdamW with warm-up and a cosine schedule. --checkpoint saves everything
   every hundred steps; --resume goes on from such a file. --cache 1 writes with a cache of keys and
   values and a recorded step (text_writer.h): the same text, as long as it fits into the context.
   --weights packs the weights of embeddings, perceptrons and head in blocks (packed_weights.h)
   before it writes, and tells the loss with and without. */
#include "packed_weights.h"
#include "report.h"
#include "text_data.h"
#include "text_writer.h"
#include "tt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXTS = 64, MAX_PARAMS = 4096, SAVE_EVERY = 100 };

typedef struct options {
  const char *texts[MAX_TEXTS], *checkpoint, *resume, *svg, *device;
  const char* weights; /* a format of blocks; NULL: as they were trained */
  int n_texts;
  long steps, batch, context, width, layers, heads, threads, sample, cache;
  double lr, temperature;
  uint64_t seed;
} options;

/* All that a training consists of. */
typedef struct trainer {
  tt_module *gpt, *loss;
  tt_optimizer* adamw;
  tt_scheduler* schedule;
  tt_generator* random;
  tt_tensor* mask;  /* (context, context): true above the diagonal */
  tt_device device; /* of the network */
  long done;        /* steps */
  curve losses;     /* one per reported step */
} trainer;

#define CHECK(call)                                                                            \
  do {                                                                                         \
    tt_status status_ = (call);                                                                \
    if (status_ != TT_OK) {                                                                    \
      fprintf(stderr, "char_lm: %s: %s\n", tt_status_name(status_), tt_ctx_error(c)->message); \
      return -1;                                                                               \
    }                                                                                          \
  } while (0)

/* ---- the network: modules of this program over tt's layers ---- */

/* The same inside a callback: returns the status to tt, which reports it. */
#define TRY(call)                   \
  do {                              \
    status = (call);                \
    if (status != TT_OK) goto done; \
  } while (0)

/* *out = the symbols, (rows, length), on the network's device. */
static tt_status symbols_on(tt_ctx* c, tt_device device, const int64_t* symbols,
                            const int64_t shape[2], tt_tensor** out) {
  tt_to_opts to = {0};
  tt_tensor* here;
  tt_status status = tt_tensor_from_data(c, symbols, TT_I64, shape, 2, &here);
  to.set = TT_TO_DEVICE;
  to.device = device;
  return status == TT_OK ? tt_to(c, here, &to, out) : status;
}

/* *out = the child `name` of m, called on x. */
static tt_status child(tt_ctx* c, tt_module* m, const char* name, const tt_tensor* x,
                       tt_tensor** out) {
  tt_module* layer = NULL;
  tt_status status = tt_module_get_submodule(c, m, name, &layer);
  if (status == TT_OK) status = tt_module_call(c, layer, x, out);
  tt_module_release(layer);
  return status;
}

/* x + attention(norm1(x)), then that + mlp(norm2(that)). user: the trainer, which has the mask. */
static tt_status block_forward(void* user, tt_ctx* c, tt_module* m, const tt_tensor* const* in,
                               int64_t n_in, tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  const trainer* t = user;
  tt_tensor *h = NULL, *a = NULL, *x = NULL, *g = NULL, *f = NULL, *mask = NULL, *part = NULL;
  tt_module* attention = NULL;
  tt_nn_multihead_attention_forward_opts opts = {0};
  const int64_t length = tt_tensor_size(in[0], 1);
  tt_status status;
  (void)n_in;
  (void)cap;
  (void)n_outs;
  TRY(child(c, m, "norm1", in[0], &h));
  TRY(tt_narrow(c, t->mask, 0, 0, length, &part));
  TRY(tt_narrow(c, part, 1, 0, length, &mask));
  opts.set = TT_NN_MULTIHEAD_ATTENTION_FORWARD_NEED_WEIGHTS |
             TT_NN_MULTIHEAD_ATTENTION_FORWARD_ATTN_MASK |
             TT_NN_MULTIHEAD_ATTENTION_FORWARD_IS_CAUSAL;
  opts.need_weights = 0;
  opts.attn_mask = mask;
  opts.is_causal = 1;
  TRY(tt_module_get_submodule(c, m, "attention", &attention));
  TRY(tt_nn_multihead_attention_forward(c, attention, h, h, h, &opts, &a, NULL));
  TRY(tt_add(c, in[0], a, &x));
  TRY(child(c, m, "norm2", x, &g));
  TRY(child(c, m, "mlp", g, &f));
  TRY(tt_add(c, x, f, &outs[0]));
done:
  tt_tensor_release(h);
  tt_tensor_release(a);
  tt_tensor_release(x);
  tt_tensor_release(g);
  tt_tensor_release(f);
  tt_tensor_release(mask);
  tt_tensor_release(part);
  tt_module_release(attention);
  return status;
}

/* (batch, length) symbols -> (batch, length, vocabulary) scores. */
static tt_status gpt_forward(void* user, tt_ctx* c, tt_module* m, const tt_tensor* const* in,
                             int64_t n_in, tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  tt_tensor *places = NULL, *x = NULL, *y = NULL, *sum = NULL;
  const tt_scalar zero = {TT_SCALAR_INT, 0, 0, 0, 0};
  const tt_scalar length = {TT_SCALAR_INT, 0, tt_tensor_size(in[0], 1), 0, 0};
  tt_arange_opts there = {0};
  tt_status status;
  there.set = TT_ARANGE_DEVICE;
  there.device = ((const trainer*)user)->device;
  (void)n_in;
  (void)cap;
  (void)n_outs;
  TRY(tt_arange(c, &zero, &length, &there, &places));
  TRY(child(c, m, "symbols", in[0], &x));
  TRY(child(c, m, "places", places, &y));
  TRY(tt_add(c, x, y, &sum));
  tt_tensor_release(x);
  x = NULL;
  TRY(child(c, m, "body", sum, &x));
  TRY(child(c, m, "head", x, &outs[0]));
done:
  tt_tensor_release(places);
  tt_tensor_release(x);
  tt_tensor_release(y);
  tt_tensor_release(sum);
  return status;
}

/* Gives a layer to its parent, under a name or the next number. */
static int give(tt_ctx* c, tt_module* to, const char* name, tt_module* layer) {
  tt_status status =
      name ? tt_module_register_module(c, to, name, layer) : tt_module_append(c, to, layer);
  tt_module_release(layer);
  CHECK(status);
  return 0;
}
#define LAYER(to, name, call)                \
  do {                                       \
    tt_module* layer = NULL;                 \
    CHECK(call);                             \
    if (give(c, to, name, layer)) return -1; \
  } while (0)

static int build_block(tt_ctx* c, const options* o, trainer* t, tt_module* body) {
  const tt_module_def def = {sizeof def, "Block", t, block_forward, NULL, NULL};
  tt_nn_multihead_attention_opts first = {0};
  tt_module *block, *mlp;
  first.set = TT_NN_MULTIHEAD_ATTENTION_BATCH_FIRST;
  first.batch_first = 1;
  CHECK(tt_module_new_custom(c, &def, &block));
  if (give(c, body, NULL, block)) return -1; /* the tree keeps it */
  LAYER(block, "norm1", tt_nn_layer_norm(c, (const int64_t[]){o->width}, 1, NULL, &layer));
  LAYER(block, "attention", tt_nn_multihead_attention(c, o->width, o->heads, &first, &layer));
  LAYER(block, "norm2", tt_nn_layer_norm(c, (const int64_t[]){o->width}, 1, NULL, &layer));
  CHECK(tt_nn_sequential(c, &mlp));
  if (give(c, block, "mlp", mlp)) return -1;
  LAYER(mlp, NULL, tt_nn_linear(c, o->width, 4 * o->width, NULL, &layer));
  LAYER(mlp, NULL, tt_nn_gelu(c, NULL, &layer));
  LAYER(mlp, NULL, tt_nn_linear(c, 4 * o->width, o->width, NULL, &layer));
  return 0;
}

static int build(tt_ctx* c, const options* o, int vocabulary, trainer* t) {
  const tt_module_def def = {sizeof def, "Gpt", t, gpt_forward, NULL, NULL};
  tt_module* body;
  CHECK(tt_module_new_custom(c, &def, &t->gpt));
  LAYER(t->gpt, "symbols", tt_nn_embedding(c, vocabulary, o->width, NULL, &layer));
  LAYER(t->gpt, "places", tt_nn_embedding(c, o->context, o->width, NULL, &layer));
  CHECK(tt_nn_sequential(c, &body));
  if (give(c, t->gpt, "body", body)) return -1;
  for (long i = 0; i < o->layers; i++)
    if (build_block(c, o, t, body)) return -1;
  LAYER(body, NULL, tt_nn_layer_norm(c, (const int64_t[]){o->width}, 1, NULL, &layer));
  LAYER(t->gpt, "head", tt_nn_linear(c, o->width, vocabulary, NULL, &layer));
  return 0;
}

static int trainer_init(tt_ctx* c, const options* o, int vocabulary, trainer* t) {
  static tt_tensor* params[MAX_PARAMS];
  const long warm = o->steps / 20 + 1;
  tt_tensor *all, *above;
  tt_triu_opts strictly = {0};
  tt_to_opts boolean = {0};
  tt_optim_adamw_opts adamw = {0};
  tt_scheduler* parts[2];
  tt_lr_linear_opts rise = {0};
  int64_t n, turn = warm;
  strictly.set = TT_TRIU_DIAGONAL;
  strictly.diagonal = 1;
  boolean.set = TT_TO_DTYPE | TT_TO_DEVICE;
  boolean.dtype = TT_BOOL;
  boolean.device = t->device;
  adamw.set = TT_OPTIM_ADAMW_LR | TT_OPTIM_ADAMW_WEIGHT_DECAY;
  adamw.lr = o->lr;
  adamw.weight_decay = 0.01;
  rise.set = TT_LR_LINEAR_START_FACTOR | TT_LR_LINEAR_TOTAL_ITERS;
  rise.start_factor = 0.05;
  rise.total_iters = warm;
  CHECK(tt_ctx_generator(c, &t->random));
  CHECK(tt_scope_push(c));
  CHECK(tt_ones(c, (const int64_t[]){o->context, o->context}, 2, NULL, &all));
  CHECK(tt_triu(c, all, &strictly, &above));
  CHECK(tt_to(c, above, &boolean, &t->mask));
  CHECK(tt_scope_pop(c, &t->mask, 1));
  if (build(c, o, vocabulary, t)) return -1;
  CHECK(tt_module_to(c, t->gpt, &t->device, 0));
  CHECK(tt_nn_cross_entropy_loss(c, NULL, &t->loss));
  CHECK(tt_scope_push(c));
  CHECK(tt_module_parameters(c, t->gpt, params, MAX_PARAMS, &n));
  CHECK(tt_optim_adamw(c, params, n, &adamw, &t->adamw));
  CHECK(tt_scope_pop(c, NULL, 0));
  CHECK(tt_lr_linear(c, t->adamw, &rise, &parts[0]));
  CHECK(
      tt_lr_cosine_annealing(c, t->adamw, o->steps > warm ? o->steps - warm : 1, NULL, &parts[1]));
  tt_status status = tt_lr_sequential(c, t->adamw, parts, 2, &turn, 1, NULL, &t->schedule);
  tt_scheduler_release(parts[0]);
  tt_scheduler_release(parts[1]);
  CHECK(status);
  return 0;
}

static void trainer_free(trainer* t) {
  tt_scheduler_release(t->schedule);
  tt_optim_release(t->adamw);
  tt_module_release(t->gpt);
  tt_module_release(t->loss);
  tt_generator_release(t->random);
  tt_tensor_release(t->mask);
  curve_free(&t->losses);
}

/* ---- checkpoints ---- */

static int checkpoint(tt_ctx* c, trainer* t, const char* path, int load) {
  const int64_t none = 1;
  const int64_t step = t->done;
  tt_tensor* done;
  tt_state_dict* extra;
  CHECK(tt_scope_push(c));
  CHECK(tt_tensor_from_data(c, &step, TT_I64, &none, 1, &done));
  CHECK(tt_state_dict_new(c, &extra));
  CHECK(tt_state_dict_set(c, extra, "step", done));
  const tt_checkpoint parts = {sizeof parts, t->gpt, t->adamw, t->schedule, t->random, extra};
  tt_status status =
      load ? tt_checkpoint_load(c, path, &parts) : tt_checkpoint_save(c, path, &parts);
  if (status == TT_OK && load) status = tt_state_dict_get(c, extra, 0, &done);
  tt_state_dict_release(extra);
  CHECK(status);
  if (load) {
    int64_t at;
    CHECK(tt_item_i64(c, done, &at));
    t->done = (long)at;
  }
  CHECK(tt_scope_pop(c, NULL, 0));
  return 0;
}

/* ---- training ---- */

/* rows[batch][context + 1]: random pieces of the text. */
static int draw_batch(tt_ctx* c, const options* o, const text* d, int64_t* rows) {
  tt_tensor* starts;
  CHECK(tt_randint(c, 0, d->n - o->context, (const int64_t[]){o->batch}, 1, NULL, &starts));
  for (long b = 0; b < o->batch; b++)
    memcpy(rows + b * (o->context + 1), d->symbols + ((const int64_t*)tt_tensor_data(starts))[b],
           (size_t)(o->context + 1) * sizeof *rows);
  return 0;
}

/* *loss = the mean loss of the letters of rows. */
static int loss_of(tt_ctx* c, const options* o, const text* d, const trainer* t,
                   const int64_t* rows, tt_tensor** loss) {
  const int64_t shape[2] = {o->batch, o->context + 1};
  const int64_t flat[2] = {o->batch * o->context, d->vocabulary};
  const int64_t all[1] = {-1};
  tt_tensor *pieces, *x, *y, *scores;
  const tt_tensor* pair[2];
  int64_t one;
  CHECK(symbols_on(c, t->device, rows, shape, &pieces));
  CHECK(tt_narrow(c, pieces, 1, 0, o->context, &x));
  CHECK(tt_narrow(c, pieces, 1, 1, o->context, &y));
  CHECK(tt_module_call(c, t->gpt, x, &scores));
  CHECK(tt_reshape(c, scores, flat, 2, &scores));
  CHECK(tt_reshape(c, y, all, 1, &y));
  pair[0] = scores;
  pair[1] = y;
  CHECK(tt_module_forward(c, t->loss, pair, 2, loss, 1, &one));
  return 0;
}

static int train_step(tt_ctx* c, const options* o, const text* d, trainer* t, int64_t* rows,
                      double* loss_out) {
  tt_clip_grad_norm_opts two = {0};
  tt_tensor *loss, *norm;
  CHECK(tt_scope_push(c));
  if (draw_batch(c, o, d, rows) || loss_of(c, o, d, t, rows, &loss)) return -1;
  CHECK(tt_optim_zero_grad(c, t->adamw, 1));
  CHECK(tt_backward(c, loss, NULL));
  static tt_tensor* params[MAX_PARAMS];
  int64_t n;
  CHECK(tt_module_parameters(c, t->gpt, params, MAX_PARAMS, &n));
  CHECK(tt_clip_grad_norm_(c, params, n, 1.0, &two, &norm));
  CHECK(tt_optim_step(c, t->adamw));
  CHECK(tt_scheduler_step(c, t->schedule));
  CHECK(tt_item_f64(c, loss, loss_out));
  CHECK(tt_scope_pop(c, NULL, 0));
  return 0;
}

static int train(tt_ctx* c, const options* o, const text* d, trainer* t) {
  const long every = o->steps / 50 + 1;
  progress bar = progress_start("step", (int)t->done, (int)o->steps);
  int64_t* rows = malloc((size_t)(o->batch * (o->context + 1)) * sizeof *rows);
  double sum = 0;
  long n = 0;
  int status = rows ? 0 : -1;
  for (; status == 0 && t->done < o->steps;) {
    double loss;
    status = train_step(c, o, d, t, rows, &loss);
    if (status) break;
    sum += loss;
    n++;
    t->done++;
    if (t->done % every == 0 || t->done == o->steps) {
      progress_show(&bar, (int)t->done, sum / (double)n, o->batch * o->context);
      if (curve_add(&t->losses, sum / (double)n)) status = -1;
      sum = 0;
      n = 0;
    }
    if (o->checkpoint && status == 0 && (t->done % SAVE_EVERY == 0 || t->done == o->steps))
      status = checkpoint(c, t, o->checkpoint, 0);
  }
  free(rows);
  return status;
}

/* ---- packed weights ---- */

/* The mean loss of four batches of pieces that lie evenly in the text. */
static int text_loss(tt_ctx* c, const options* o, const text* d, const trainer* t, double* out) {
  const long length = o->context + 1, pieces = 4 * o->batch;
  int64_t* rows = malloc((size_t)(o->batch * length) * sizeof *rows);
  int status = rows ? 0 : -1;
  *out = 0;
  for (long at = 0; status == 0 && at < pieces; at++) {
    const long row = at % o->batch;
    tt_tensor* loss = NULL;
    double of_batch = 0;
    memcpy(rows + row * length, d->symbols + (d->n - length) / pieces * at,
           (size_t)length * sizeof *rows);
    if (row < o->batch - 1) continue;
    if (tt_scope_push(c) != TT_OK || loss_of(c, o, d, t, rows, &loss) ||
        tt_item_f64(c, loss, &of_batch) != TT_OK || tt_scope_pop(c, NULL, 0) != TT_OK)
      status = -1;
    *out += of_batch / 4;
  }
  free(rows);
  return status;
}

/* Packs the embeddings, the perceptrons of the blocks and the head. */
static int pack_weights(tt_ctx* c, const options* o, const text* d, const trainer* t) {
  const int32_t format = strcmp(o->weights, "q4_0") ? TT_BLOCKFORMAT_Q8_0 : TT_BLOCKFORMAT_Q4_0;
  int32_t recorded;
  double before, after;
  CHECK(tt_set_grad_enabled(c, 0, &recorded));
  if (text_loss(c, o, d, t, &before)) return -1;
  for (long i = 0; i < o->layers; i++) {
    char path[40];
    tt_module* mlp;
    snprintf(path, sizeof path, "body.%ld.mlp", i);
    CHECK(tt_module_get_submodule(c, t->gpt, path, &mlp));
    tt_status status = pack_child(c, mlp, "0", format);
    if (status == TT_OK) status = pack_child(c, mlp, "2", format);
    tt_module_release(mlp);
    CHECK(status);
  }
  CHECK(pack_child(c, t->gpt, "symbols", format));
  CHECK(pack_child(c, t->gpt, "places", format));
  CHECK(pack_child(c, t->gpt, "head", format));
  if (text_loss(c, o, d, t, &after)) return -1;
  CHECK(tt_set_grad_enabled(c, recorded, NULL));
  printf("loss with float32 weights: %.4f, with %s: %.4f\n", before, o->weights, after);
  return 0;
}

/* ---- writing ---- */

/* Draws a symbol by its scores, (1, vocabulary). */
static int draw_symbol(tt_ctx* c, const options* o, const tt_tensor* scores, int64_t* out) {
  tt_tensor *scaled, *p, *draw;
  CHECK(tt_mul_f64(c, scores, 1 / o->temperature, &scaled));
  CHECK(tt_softmax(c, scaled, 1, NULL, &p));
  CHECK(tt_multinomial(c, p, 1, 0, NULL, &draw));
  CHECK(tt_item_i64(c, draw, out));
  return 0;
}

/* Draws the next symbol after seen[0 ... n). */
static int next_symbol(tt_ctx* c, const options* o, const trainer* t, const int64_t* seen,
                       int64_t n, int64_t* out) {
  const int64_t used = n < o->context ? n : o->context;
  const int64_t shape[2] = {1, used};
  tt_tensor *x, *scores, *last;
  CHECK(tt_scope_push(c));
  CHECK(symbols_on(c, t->device, seen + n - used, shape, &x));
  CHECK(tt_module_call(c, t->gpt, x, &scores));
  CHECK(tt_select(c, scores, 1, -1, &last));
  if (draw_symbol(c, o, last, out)) return -1;
  CHECK(tt_scope_pop(c, NULL, 0));
  return 0;
}

/* The same with a cache. Once it is full, the newer half of the text is read into it again. */
static int next_cached(tt_ctx* c, const options* o, writer* w, const int64_t* seen, int64_t n,
                       int64_t* out) {
  tt_tensor* scores = NULL;
  int64_t from = n - 1;
  CHECK(tt_scope_push(c));
  if (writer_length(w) == o->context) {
    writer_restart(w);
    from = n - (o->context + 1) / 2;
  }
  for (; from < n; from++) CHECK(writer_next(c, w, seen[from], &scores));
  if (draw_symbol(c, o, scores, out)) return -1;
  CHECK(tt_scope_pop(c, NULL, 0));
  return 0;
}

static int write_text(tt_ctx* c, const options* o, const text* d, const trainer* t) {
  int64_t* seen = malloc((size_t)(o->sample + 1) * sizeof *seen);
  int status = seen ? 0 : -1;
  writer* w = NULL;
  int32_t recorded;
  CHECK(tt_set_grad_enabled(c, 0, &recorded));
  CHECK(tt_module_train(c, t->gpt, 0));
  if (o->cache) {
    w = writer_new(c, t->gpt, t->device, o->layers, o->width, o->heads, o->context);
    if (!w) status = -1;
  }
  if (seen) seen[0] = d->symbols[0];
  for (int64_t n = 1; status == 0 && n <= o->sample; n++) {
    status = w ? next_cached(c, o, w, seen, n, &seen[n]) : next_symbol(c, o, t, seen, n, &seen[n]);
    if (status == 0) putchar(d->bytes[seen[n]]);
  }
  putchar('\n');
  if (w && status == 0) printf("%ld steps replayed\n", writer_replays(c, w));
  writer_free(w);
  free(seen);
  CHECK(tt_set_grad_enabled(c, recorded, NULL));
  return status;
}

static int run(tt_ctx* c, const options* o, const text* d) {
  trainer t;
  memset(&t, 0, sizeof t);
  CHECK(tt_manual_seed(c, o->seed));
  CHECK(tt_device_parse(c, o->device, &t.device));
  if (t.device.type == TT_CUDA) CHECK(tt_load_cuda(c, NULL));
  int status = trainer_init(c, o, d->vocabulary, &t);
  if (status == 0 && o->resume) status = checkpoint(c, &t, o->resume, 1);
  if (status == 0) {
    printf("%ld letters, %d different ones; entropy of equal chances: %.3f\n", (long)d->n,
           d->vocabulary, log(d->vocabulary));
    status = train(c, o, d, &t);
  }
  if (status == 0 && o->svg && t.losses.n &&
      curve_write_svg(&t.losses, o->svg, "loss per letter") == 0)
    printf("loss curve: %s\n", o->svg);
  if (status == 0 && o->weights) status = pack_weights(c, o, d, &t);
  if (status == 0 && o->sample) {
    printf("--- sample ---\n");
    status = write_text(c, o, d, &t);
  }
  trainer_free(&t);
  return status;
}

/* ---- options ---- */

static int usage(const char* why, const char* what) {
  fprintf(stderr,
          "char_lm: %s%s\n"
          "usage: char_lm [--text FILE]... [--steps N] [--batch N] [--context N] [--width N]\n"
          "               [--layers N] [--heads N] [--lr RATE] [--threads N] [--device NAME]\n"
          "               [--cache 0|1] [--seed N] [--sample N] [--temperature T]\n"
          "               [--weights q8_0|q4_0] [--checkpoint FILE] [--resume FILE] [--svg FILE]\n",
          why, what);
  return 2;
}

static int parse(int argc, char** argv, options* o) {
  const struct {
    const char* name;
    long* to;
  } numbers[] = {{"--steps", &o->steps},     {"--batch", &o->batch},   {"--context", &o->context},
                 {"--width", &o->width},     {"--layers", &o->layers}, {"--heads", &o->heads},
                 {"--threads", &o->threads}, {"--sample", &o->sample}, {"--cache", &o->cache}};
  for (int i = 1; i < argc; i++) {
    const char* name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    char* end = NULL;
    int is_number = 0;
    if (strcmp(name, "--help") == 0) {
      usage("trains a small GPT on a text", "");
      return 1;
    }
    i++;
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
      if (strcmp(name, numbers[k].name) == 0) {
        *numbers[k].to = strtol(value, &end, 10);
        is_number = 1;
      }
    if (strcmp(name, "--text") == 0) {
      if (o->n_texts == MAX_TEXTS) return usage("too many texts", "");
      o->texts[o->n_texts++] = value;
    } else if (strcmp(name, "--lr") == 0) o->lr = strtod(value, &end);
    else if (strcmp(name, "--temperature") == 0) o->temperature = strtod(value, &end);
    else if (strcmp(name, "--seed") == 0) o->seed = strtoull(value, &end, 10);
    else if (strcmp(name, "--checkpoint") == 0) o->checkpoint = value;
    else if (strcmp(name, "--resume") == 0) o->resume = value;
    else if (strcmp(name, "--svg") == 0) o->svg = value;
    else if (strcmp(name, "--device") == 0) o->device = value;
    else if (strcmp(name, "--weights") == 0) o->weights = value;
    else if (!is_number) return usage("unknown option ", name);
    if (i == argc) return usage("no value for ", name);
    if (end && (*end || end == value)) return usage("not a number: ", value);
  }
  for (size_t k = 0; k + 2 < sizeof numbers / sizeof *numbers; k++)
    if (*numbers[k].to < 1 || *numbers[k].to > 1000000)
      return usage("must be 1 to 1000000: ", numbers[k].name);
  if (o->weights && strcmp(o->weights, "q8_0") && strcmp(o->weights, "q4_0"))
    return usage("--weights must be q8_0 or q4_0", "");
  if (o->weights && o->width % 32) return usage("--weights needs a --width of whole blocks", "");
  if (o->cache < 0 || o->cache > 1) return usage("--cache must be 0 or 1", "");
  if (o->sample < 0 || !(o->lr > 0) || !(o->temperature > 0))
    return usage("--lr and --temperature must be positive, --sample not negative", "");
  return 0;
}

int main(int argc, char** argv) {
  static const char* const documents[] = {
      "README.md",     "CHANGELOG.md",  "docs/architecture.md", "docs/contributing.md",
      "docs/style.md", "src/README.md", "src/ops/README.md",    "src/ops/decl/README.md"};
  options o = {
      .device = "cpu",
      .steps = 600,
      .batch = 16,
      .context = 64,
      .width = 96,
      .layers = 3,
      .heads = 4,
      .threads = 1,
      .sample = 400,
      .lr = 3e-3,
      .temperature = 0.8,
  };
  tt_runtime_opts runtime = {0};
  tt_runtime* rt = NULL;
  tt_ctx* c = NULL;
  text d;
  char message[512];
  int status = parse(argc, argv, &o);
  if (status) return status == 1 ? 0 : status;
  if (!o.n_texts)
    for (; o.n_texts < (int)(sizeof documents / sizeof *documents); o.n_texts++)
      o.texts[o.n_texts] = documents[o.n_texts];
  if (text_read(o.texts, o.n_texts, &d, message, sizeof message)) {
    fprintf(stderr, "char_lm: %s\n", message);
    return 1;
  }
  if (d.n <= o.context + 1) {
    fprintf(stderr, "char_lm: %s: %ld letters are too few, more than %ld are needed\n", o.texts[0],
            (long)d.n, o.context + 1);
    text_free(&d);
    return 1;
  }
  runtime.struct_size = sizeof runtime;
  runtime.threads = (int32_t)o.threads;
  if (tt_runtime_new(&runtime, &rt) == TT_OK && tt_ctx_new(rt, &c) == TT_OK) {
    status = run(c, &o, &d);
  } else {
    fprintf(stderr, "char_lm: no memory\n");
    status = -1;
  }
  tt_ctx_release(c);
  tt_runtime_release(rt);
  text_free(&d);
  return status ? 1 : 0;
}
