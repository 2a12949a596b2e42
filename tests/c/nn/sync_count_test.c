/* A training step on a device never waits for it: times that the host waits during steps with every
   optimizer, eager and replayed, and during those of layers that look up indices, draw, sort, and
   keep statistics. On the CPU nobody waits, and steps only have to run. */
#include "optimizers.h"

#include <dlfcn.h>

enum {
  kBatch = 4,
  kTokens = 6,
  kWords = 20,
  kWidth = 16,
  kHidden = 8,
  kFeatures = 18,
  kClasses = 5,
  kSteps = 3
};
enum { kEmbedding, kEncoder, kLstm, kConv, kNorm, kRelu, kPool, kLinear, kNumLayers };

static int64_t (*syncs)(void); /* waits so far; NULL: nobody counts them */

static void find_counter(void) {
  const char* device = getenv("TT_TEST_DEVICE");
  const char* path = device && !is_at_cpu() ? device_library(device) : NULL;
  void* library = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
  syncs = library ? (int64_t(*)(void))dlsym(library, "tt_fake_syncs") : NULL;
}
static int64_t waits(void) { return syncs ? syncs() : 0; }

typedef struct Net {
  tt_module* layer[kNumLayers];
  tt_tensor* param[64]; /* of all layers; the first one is a matrix */
  int64_t n_params;
  int first; /* layer, of those that it has */
  tt_tensor *input, *classes;
} Net;

static void add_params(Net* n, tt_module* m) {
  int64_t added;
  OK(tt_module_parameters(c, m, n->param + n->n_params, 64 - n->n_params, &added));
  n->n_params += added;
}
static Net new_net(int first) {
  const tt_nn_transformer_encoder_layer_opts encoder = {
      .set = TT_NN_TRANSFORMER_ENCODER_LAYER_DIM_FEEDFORWARD |
             TT_NN_TRANSFORMER_ENCODER_LAYER_BATCH_FIRST,
      .dim_feedforward = 24,
      .batch_first = 1};
  const tt_nn_lstm_opts lstm = {.set = TT_NN_LSTM_BATCH_FIRST, .batch_first = 1};
  double tokens[kBatch * kTokens];
  const double classes[kBatch] = {0, 4, 2, 2};
  Net n = {.first = first};
  int i;
  OK(tt_nn_embedding(c, kWords, kWidth, NULL, &n.layer[kEmbedding]));
  OK(tt_nn_transformer_encoder_layer(c, kWidth, 2, &encoder, &n.layer[kEncoder]));
  OK(tt_nn_lstm(c, kWidth, kHidden, &lstm, &n.layer[kLstm]));
  OK(tt_nn_conv2d(c, 1, 3, SHAPE(3), NULL, &n.layer[kConv]));
  OK(tt_nn_batch_norm2d(c, 3, NULL, &n.layer[kNorm]));
  OK(tt_nn_relu(c, NULL, &n.layer[kRelu]));
  OK(tt_nn_max_pool2d(c, SHAPE(2), NULL, &n.layer[kPool]));
  OK(tt_nn_linear(c, kFeatures, kClasses, NULL, &n.layer[kLinear]));
  for (i = 0; i < kNumLayers; i++) settle(n.layer[i]);
  for (i = first; i < kNumLayers; i++) add_params(&n, n.layer[i]);
  for (i = 0; i < kBatch * kTokens; i++) tokens[i] = (7 * i) % kWords;
  if (first == kLinear) OK(tt_randn(c, SHAPE(kBatch, kFeatures), NULL, &n.input));
  else n.input = make(TT_I64, SHAPE(kBatch, kTokens), tokens, kBatch * kTokens);
  n.input = at_home(n.input);
  n.classes = at_home(make(TT_I64, SHAPE(kBatch), classes, kBatch));
  return n;
}

static tt_tensor* loss_of(const Net* n) {
  tt_tensor *x = n->input, *outs[3], *loss;
  int64_t n_outs;
  int i;
  for (i = n->first; i < kNumLayers; i++) {
    if (i == kConv) OK(tt_reshape(c, x, SHAPE(kBatch, 1, kTokens, kHidden), &x));
    if (i == kLinear) OK(tt_reshape(c, x, SHAPE(kBatch, kFeatures), &x));
    OK(tt_module_forward(c, n->layer[i], LIST(x), outs, 3, &n_outs));
    x = outs[0];
  }
  OK(tt_cross_entropy(c, x, n->classes, NULL, &loss));
  return loss;
}
static tt_tensor* train(const Net* n, tt_optimizer* o, tt_scheduler* schedule) {
  tt_tensor *loss, *norm;
  OK(tt_optim_zero_grad(c, o, 1));
  loss = loss_of(n);
  OK(tt_backward(c, loss, NULL));
  OK(tt_clip_grad_norm_(c, n->param, n->n_params, 0.5, NULL, &norm));
  OK(tt_optim_step(c, o));
  OK(tt_scheduler_step(c, schedule));
  return loss;
}
static double number_in(const tt_tensor* t) {
  float value;
  OK(tt_tensor_read(c, t, &value, sizeof value));
  return value;
}

static void check_class(int i, int first) {
  const Net n = new_net(first);
  tt_optimizer* o;
  tt_scheduler* schedule;
  tt_tensor* loss = NULL;
  tt_graph* g;
  tt_plan* p;
  int64_t before;
  int k;
  OK(kOptimizers[i].construct(n.param, n.n_params, &o));
  OK(tt_lr_step(c, o, 2, NULL, &schedule));
  find_counter();
  before = waits();
  for (k = 0; k < kSteps; k++) loss = train(&n, o, schedule);
  if (waits() != before)
    fail_msg("%s: %d steps waited %lld times", kOptimizers[i].name, kSteps,
             (long long)(waits() - before));
  assert_true(number_in(loss) > 0);
  assert_true(!syncs || waits() > before); /* the read has waited */
  OK(tt_capture_begin(c, NULL, 0, NULL));
  loss = train(&n, o, schedule);
  OK(tt_capture_end(c, LIST(loss), &g));
  OK(tt_plan_new(c, g, NULL, &p));
  before = waits();
  for (k = 0; k < kSteps; k++) OK(tt_plan_run(c, p));
  if (waits() != before)
    fail_msg("%s: %d runs waited %lld times", kOptimizers[i].name, kSteps,
             (long long)(waits() - before));
  tt_plan_release(p);
  tt_graph_release(g);
  tt_scheduler_release(schedule);
  tt_optim_release(o);
  for (k = 0; k < kNumLayers; k++) tt_module_release(n.layer[k]);
}

static void test_layers(void** state) {
  (void)state;
  check_class(3, kEmbedding); /* AdamW */
}
static void test_optimizers(void** state) {
  int i;
  (void)state;
  for (i = 0; i < kNumOptimizers; i++) {
    OK(tt_scope_push(c));
    check_class(i, kLinear);
    OK(tt_scope_pop(c, NULL, 0));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_layers), SCOPED(test_optimizers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
