/* firmware_model CHECKPOINT FOLDER: the network of train_digits in 8-bit integers as C source, with
   images to try it on, and a small network for comparison.

   Writes to FOLDER digits.{c,h} (int8), digits_f32.{c,h}, mlp.{c,h} (64-32-10, untrained) and
   images.h, and prints the accuracy on the 297 test rows in float32 and in integers. */
#include "../c/digits_data.h"
#include "tt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRAIN = 1500, SAMPLES = 200, IMAGES = 20, SIDE = 8 };

#define CHECK(call)                                                        \
  do {                                                                     \
    tt_status status_ = (call);                                            \
    if (status_ != TT_OK) {                                                \
      fprintf(stderr, "firmware_model: %s: %s\n", tt_status_name(status_), \
              tt_ctx_error(c)->message);                                   \
      return -1;                                                           \
    }                                                                      \
  } while (0)

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

/* As in train_digits. */
static int build(tt_ctx* c, tt_module* net) {
  static const int64_t channels[3] = {1, 16, 32};
  static const int64_t window = 3, half = 2, around = 1;
  tt_nn_conv2d_opts same = {0};
  same.set = TT_NN_CONV2D_PADDING;
  same.padding = &around;
  same.n_padding = 1;
  for (int i = 0; i < 2; i++) {
    LAYER(tt_nn_conv2d(c, channels[i], channels[i + 1], &window, 1, &same, &layer));
    LAYER(tt_nn_batch_norm2d(c, channels[i + 1], NULL, &layer));
    LAYER(tt_nn_relu(c, NULL, &layer));
    LAYER(tt_nn_max_pool2d(c, &half, 1, NULL, &layer));
  }
  LAYER(tt_nn_flatten(c, NULL, &layer));
  LAYER(tt_nn_dropout(c, NULL, &layer));
  LAYER(tt_nn_linear(c, channels[2] * 2 * 2, DIGITS_CLASSES, NULL, &layer));
  return 0;
}

static int build_mlp(tt_ctx* c, tt_module* net) {
  LAYER(tt_nn_flatten(c, NULL, &layer));
  LAYER(tt_nn_linear(c, DIGITS_PIXELS, 32, NULL, &layer));
  LAYER(tt_nn_relu(c, NULL, &layer));
  LAYER(tt_nn_linear(c, 32, DIGITS_CLASSES, NULL, &layer));
  return 0;
}

/* The call of a network with one image, with normalizations inside the convolutions. */
static int capture(tt_ctx* c, tt_module* net, tt_graph** out) {
  const tt_graph_optimize_opts passes = {TT_GRAPH_OPTIMIZE_PASSES,
                                         TT_PASS_NORM | TT_PASS_FOLD | TT_PASS_CSE | TT_PASS_DCE};
  const int64_t shape[4] = {1, 1, SIDE, SIDE};
  const tt_tensor* list[1];
  tt_tensor *x, *y;
  tt_graph* g;
  CHECK(tt_module_train(c, net, 0));
  CHECK(tt_zeros(c, shape, 4, NULL, &x));
  list[0] = x;
  CHECK(tt_capture_begin(c, list, 1, NULL));
  CHECK(tt_module_call(c, net, x, &y));
  list[0] = y;
  CHECK(tt_capture_end(c, list, 1, &g));
  tt_status status = tt_graph_optimize(c, g, &passes, out);
  tt_graph_release(g);
  CHECK(status);
  return 0;
}

static int quantize(tt_ctx* c, const tt_graph* g, const digits* d, const int64_t* rows,
                    tt_graph** out) {
  const int64_t shape[4] = {1, 1, SIDE, SIDE};
  tt_tensor* samples[SAMPLES];
  for (int i = 0; i < SAMPLES; i++)
    CHECK(
        tt_tensor_from_data(c, d->pixels + rows[i] * DIGITS_PIXELS, TT_F32, shape, 4, &samples[i]));
  CHECK(tt_graph_quantize(c, g, (const tt_tensor* const*)samples, SAMPLES, NULL, out));
  return 0;
}

/* The scores of n rows, and how many are right; -1: failed. */
static int64_t predict(tt_ctx* c, const tt_graph* g, const digits* d, const int64_t* rows,
                       int64_t n, float* scores) {
  tt_plan* plan;
  tt_tensor *in, *out;
  int64_t right = 0;
  CHECK(tt_plan_new(c, g, NULL, &plan));
  CHECK(tt_plan_slot(c, plan, 0, 0, &in));
  CHECK(tt_plan_slot(c, plan, 1, 0, &out));
  for (int64_t i = 0; i < n; i++) {
    float* y = scores + i * DIGITS_CLASSES;
    int best = 0;
    memcpy(tt_tensor_data(in), d->pixels + rows[i] * DIGITS_PIXELS, DIGITS_PIXELS * sizeof *y);
    CHECK(tt_plan_run(c, plan));
    memcpy(y, tt_tensor_data(out), DIGITS_CLASSES * sizeof *y);
    for (int k = 1; k < DIGITS_CLASSES; k++)
      if (y[k] > y[best]) best = k;
    right += best == d->labels[rows[i]];
  }
  tt_plan_release(plan);
  return right;
}

static int write_images(const char* folder, const digits* d, const int64_t* rows,
                        const float* scores) {
  char path[4096];
  snprintf(path, sizeof path, "%s/images.h", folder);
  FILE* f = fopen(path, "w");
  if (!f) return -1;
  fprintf(f, "/* Test rows of digits.csv: pixels, labels, and what tt computes in integers. */\n");
  fprintf(f, "enum { IMAGES = %d };\nstatic const float images[IMAGES][%d] = {\n", IMAGES,
          DIGITS_PIXELS);
  for (int i = 0; i < IMAGES; i++) {
    fprintf(f, "  {");
    for (int k = 0; k < DIGITS_PIXELS; k++)
      fprintf(f, "%.4ff,", (double)d->pixels[rows[i] * DIGITS_PIXELS + k]);
    fprintf(f, "},\n");
  }
  fprintf(f, "};\nstatic const unsigned char labels[IMAGES] = {");
  for (int i = 0; i < IMAGES; i++) fprintf(f, "%d,", (int)d->labels[rows[i]]);
  fprintf(f, "};\nstatic const float scores[IMAGES][%d] = {\n", DIGITS_CLASSES);
  for (int i = 0; i < IMAGES; i++) {
    fprintf(f, "  {");
    for (int k = 0; k < DIGITS_CLASSES; k++)
      fprintf(f, "%.9ef,", (double)scores[i * DIGITS_CLASSES + k]);
    fprintf(f, "},\n");
  }
  fprintf(f, "};\n");
  return fclose(f);
}

static int make(tt_ctx* c, const char* checkpoint, const char* folder, const digits* d,
                int64_t* rows, float* scores) {
  const int64_t n = d->n - TRAIN;
  tt_checkpoint parts = {sizeof parts, NULL, NULL, NULL, NULL, NULL};
  tt_module* mlp;
  tt_tensor* order;
  tt_graph *g, *q, *small, *small_q;
  int32_t before;
  CHECK(tt_set_grad_enabled(c, 0, &before));
  CHECK(tt_manual_seed(c, 1234)); /* the split of train_digits */
  CHECK(tt_randperm(c, d->n, NULL, &order));
  CHECK(tt_tensor_read(c, order, rows, d->n * 8));
  CHECK(tt_nn_sequential(c, &parts.module));
  CHECK(tt_nn_sequential(c, &mlp));
  if (build(c, parts.module) || build_mlp(c, mlp)) return -1;
  CHECK(tt_checkpoint_load(c, checkpoint, &parts));
  if (capture(c, parts.module, &g) || quantize(c, g, d, rows, &q)) return -1;
  if (capture(c, mlp, &small) || quantize(c, small, d, rows, &small_q)) return -1;
  const int64_t in_float = predict(c, g, d, rows + TRAIN, n, scores);
  const int64_t in_integers = predict(c, q, d, rows + TRAIN, n, scores);
  if (in_float < 0 || in_integers < 0) return -1;
  printf("right of %d: float32 %d, int8 %d\n", (int)n, (int)in_float, (int)in_integers);
  CHECK(tt_graph_export_c(c, q, folder, "digits"));
  CHECK(tt_graph_export_c(c, g, folder, "digits_f32"));
  CHECK(tt_graph_export_c(c, small_q, folder, "mlp"));
  CHECK(tt_graph_export_c(c, small, folder, "mlp_f32"));
  tt_graph_release(g);
  tt_graph_release(q);
  tt_graph_release(small);
  tt_graph_release(small_q);
  tt_module_release(parts.module);
  tt_module_release(mlp);
  return write_images(folder, d, rows + TRAIN, scores);
}

int main(int argc, char** argv) {
  char message[512];
  digits d;
  tt_ctx* c;
  if (argc != 3) {
    fprintf(stderr, "firmware_model CHECKPOINT FOLDER: the digits network as C source in int8\n");
    return 2;
  }
  if (digits_read("examples/data/digits.csv", &d, message, sizeof message)) {
    fprintf(stderr, "firmware_model: %s\n", message);
    return 1;
  }
  int64_t* rows = malloc((size_t)d.n * sizeof *rows);
  float* scores = malloc((size_t)d.n * DIGITS_CLASSES * sizeof *scores);
  int failed = !rows || !scores || d.n < TRAIN + IMAGES || tt_ctx_new(NULL, &c) != TT_OK;
  if (!failed) {
    failed = tt_scope_push(c) != TT_OK || make(c, argv[1], argv[2], &d, rows, scores);
    tt_ctx_release(c);
  }
  free(rows);
  free(scores);
  digits_free(&d);
  return failed ? 1 : 0;
}
