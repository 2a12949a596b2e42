#include "models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 4, WIDTH = 256, HEADS = 8, LENGTH = 128, VOCAB = 256, MAX_PARAMS = 128 };

typedef struct block {
  tt_module *ln1, *ln2, *qkv, *proj, *f1, *f2;
} block;
struct model {
  int mode;
  int64_t batch;
  tt_status (*forward)(tt_ctx* c, model* m, tt_tensor** out);
  tt_module *net, *loss;        /* net: of plain sequences; loss of classes */
  tt_module *embed, *ln, *head; /* gpt */
  tt_tensor* pos;
  block blocks[BLOCKS];
  tt_tensor *x, *y;
  tt_optimizer* opt;
  tt_compiled* compiled;
  tt_tensor* params[MAX_PARAMS];
  int64_t n_params;
};

#define TRY(call)                \
  do {                           \
    const tt_status s_ = (call); \
    if (s_ != TT_OK) return s_;  \
  } while (0)

/* Outs belong to the scope that model_run has opened. */
static tt_status plain_forward(tt_ctx* c, model* m, tt_tensor** out) {
  return tt_module_call(c, m->net, m->x, out);
}

static tt_status mha_forward(tt_ctx* c, model* m, tt_tensor** out) {
  tt_nn_multihead_attention_forward_opts o = {0};
  o.set = TT_NN_MULTIHEAD_ATTENTION_FORWARD_NEED_WEIGHTS;
  return tt_nn_multihead_attention_forward(c, m->net, m->x, m->x, m->x, &o, out, NULL);
}

static tt_status attention(tt_ctx* c, const block* b, const tt_tensor* x, tt_tensor** out) {
  const int64_t batch = tt_tensor_size(x, 0);
  const int64_t apart[5] = {batch, LENGTH, 3, HEADS, WIDTH / HEADS};
  const int64_t order[5] = {2, 0, 3, 1, 4};
  const int64_t joint[3] = {batch, LENGTH, WIDTH};
  tt_scaled_dot_product_attention_opts causal = {0};
  tt_tensor *qkv, *q[3], *y;
  causal.set = TT_SCALED_DOT_PRODUCT_ATTENTION_IS_CAUSAL;
  causal.is_causal = 1;
  TRY(tt_module_call(c, b->qkv, x, &qkv));
  TRY(tt_view(c, qkv, apart, 5, &qkv));
  TRY(tt_permute(c, qkv, order, 5, &qkv));
  for (int i = 0; i < 3; i++) TRY(tt_select(c, qkv, 0, i, &q[i]));
  TRY(tt_scaled_dot_product_attention(c, q[0], q[1], q[2], NULL, &causal, &y));
  TRY(tt_transpose(c, y, 1, 2, &y));
  TRY(tt_reshape(c, y, joint, 3, &y));
  return tt_module_call(c, b->proj, y, out);
}

static tt_status gpt_forward(tt_ctx* c, model* m, tt_tensor** out) {
  tt_tensor *x, *h, *y;
  TRY(tt_module_call(c, m->embed, m->x, &x));
  TRY(tt_add(c, x, m->pos, &x));
  for (int i = 0; i < BLOCKS; i++) {
    const block* b = &m->blocks[i];
    TRY(tt_module_call(c, b->ln1, x, &h));
    TRY(attention(c, b, h, &y));
    TRY(tt_add(c, x, y, &x));
    TRY(tt_module_call(c, b->ln2, x, &h));
    TRY(tt_module_call(c, b->f1, h, &h));
    TRY(tt_gelu(c, h, NULL, &h));
    TRY(tt_module_call(c, b->f2, h, &h));
    TRY(tt_add(c, x, h, &x));
  }
  TRY(tt_module_call(c, m->ln, x, &x));
  TRY(tt_module_call(c, m->head, x, &x));
  const int64_t rows[2] = {-1, VOCAB};
  return tt_reshape(c, x, rows, 2, out);
}

/* ---- building ---- */

static tt_status put(tt_ctx* c, tt_module* net, tt_module* layer) {
  const tt_status s = tt_module_append(c, net, layer);
  tt_module_release(layer);
  return s;
}
static tt_status relu(tt_ctx* c, tt_module* net) {
  tt_module* l;
  TRY(tt_nn_relu(c, NULL, &l));
  return put(c, net, l);
}
static tt_status linear(tt_ctx* c, tt_module* net, int64_t in, int64_t out) {
  tt_module* l;
  TRY(tt_nn_linear(c, in, out, NULL, &l));
  return put(c, net, l);
}
/* Convolution, relu, pooling by two. */
static tt_status conv_stage(tt_ctx* c, tt_module* net, int64_t in, int64_t out, int64_t kernel,
                            int64_t padding) {
  const int64_t two = 2;
  tt_nn_conv2d_opts o = {0};
  tt_module* l;
  o.set = TT_NN_CONV2D_PADDING;
  o.padding = &padding;
  o.n_padding = 1;
  TRY(tt_nn_conv2d(c, in, out, &kernel, 1, &o, &l));
  TRY(put(c, net, l));
  TRY(relu(c, net));
  TRY(tt_nn_max_pool2d(c, &two, 1, NULL, &l));
  return put(c, net, l);
}
static tt_status dense(tt_ctx* c, tt_module* net, const int64_t* sizes, int n) {
  for (int i = 0; i + 1 < n; i++) {
    if (i) TRY(relu(c, net));
    TRY(linear(c, net, sizes[i], sizes[i + 1]));
  }
  return TT_OK;
}
static tt_status images(tt_ctx* c, model* m) {
  const int64_t n = m->batch ? m->batch : 64;
  const int64_t shape[4] = {n, 3, 32, 32};
  TRY(tt_randn(c, shape, 4, NULL, &m->x));
  return tt_randint(c, 0, 10, &n, 1, NULL, &m->y);
}
static tt_status flatten(tt_ctx* c, tt_module* net) {
  tt_module* l;
  TRY(tt_nn_flatten(c, NULL, &l));
  return put(c, net, l);
}

static tt_status build_gpt(tt_ctx* c, model* m) {
  const int64_t width = WIDTH;
  const int64_t place[2] = {LENGTH, WIDTH};
  const int64_t tokens[2] = {m->batch ? m->batch : 8, LENGTH};
  const int64_t n = tokens[0] * LENGTH;
  m->forward = gpt_forward;
  TRY(tt_nn_module_list(c, &m->net)); /* holds them all, for the parameters */
  TRY(tt_nn_embedding(c, VOCAB, WIDTH, NULL, &m->embed));
  TRY(tt_module_append(c, m->net, m->embed));
  TRY(tt_randn(c, place, 2, NULL, &m->pos));
  TRY(tt_mul_f64_(c, m->pos, 0.02));
  TRY(tt_requires_grad_(c, m->pos, 1));
  TRY(tt_module_register_parameter(c, m->net, "pos", m->pos));
  for (int i = 0; i < BLOCKS; i++) {
    block* b = &m->blocks[i];
    TRY(tt_nn_layer_norm(c, &width, 1, NULL, &b->ln1));
    TRY(tt_nn_layer_norm(c, &width, 1, NULL, &b->ln2));
    TRY(tt_nn_linear(c, WIDTH, 3 * WIDTH, NULL, &b->qkv));
    TRY(tt_nn_linear(c, WIDTH, WIDTH, NULL, &b->proj));
    TRY(tt_nn_linear(c, WIDTH, 4 * WIDTH, NULL, &b->f1));
    TRY(tt_nn_linear(c, 4 * WIDTH, WIDTH, NULL, &b->f2));
    tt_module* all[6] = {b->ln1, b->ln2, b->qkv, b->proj, b->f1, b->f2};
    for (int k = 0; k < 6; k++) TRY(tt_module_append(c, m->net, all[k]));
  }
  TRY(tt_nn_layer_norm(c, &width, 1, NULL, &m->ln));
  TRY(tt_module_append(c, m->net, m->ln));
  TRY(tt_nn_linear(c, WIDTH, VOCAB, NULL, &m->head));
  TRY(tt_module_append(c, m->net, m->head));
  TRY(tt_randint(c, 0, VOCAB, tokens, 2, NULL, &m->x));
  return tt_randint(c, 0, VOCAB, &n, 1, NULL, &m->y);
}

static tt_status build(tt_ctx* c, const char* net, model* m) {
  m->forward = plain_forward;
  if (strcmp(net, "gpt") == 0) return build_gpt(c, m);
  if (strcmp(net, "mha") == 0) {
    const int64_t shape[3] = {m->batch ? m->batch : 8, LENGTH, WIDTH};
    tt_nn_multihead_attention_opts o = {0};
    o.set = TT_NN_MULTIHEAD_ATTENTION_BATCH_FIRST;
    o.batch_first = 1;
    m->forward = mha_forward;
    TRY(tt_randn(c, shape, 3, NULL, &m->x));
    return tt_nn_multihead_attention(c, WIDTH, HEADS, &o, &m->net);
  }
  TRY(tt_nn_sequential(c, &m->net));
  if (strcmp(net, "tiny") == 0 || strcmp(net, "mlp") == 0) {
    const int64_t sizes[2][4] = {{784, 512, 512, 10}, {8, 16, 16, 4}}, batches[2] = {128, 4};
    const int tiny = net[0] == 't';
    const int64_t shape[2] = {m->batch ? m->batch : batches[tiny], sizes[tiny][0]};
    TRY(tt_randn(c, shape, 2, NULL, &m->x));
    TRY(tt_randint(c, 0, sizes[tiny][3], shape, 1, NULL, &m->y));
    return dense(c, m->net, sizes[tiny], 4);
  }
  TRY(images(c, m));
  if (strcmp(net, "lenet") == 0) {
    const int64_t sizes[4] = {400, 120, 84, 10};
    TRY(conv_stage(c, m->net, 3, 6, 5, 0));
    TRY(conv_stage(c, m->net, 6, 16, 5, 0));
    TRY(flatten(c, m->net));
    return dense(c, m->net, sizes, 4);
  }
  const int64_t sizes[3] = {4096, 128, 10};
  TRY(conv_stage(c, m->net, 3, 32, 3, 1));
  TRY(conv_stage(c, m->net, 32, 64, 3, 1));
  TRY(flatten(c, m->net));
  return dense(c, m->net, sizes, 3);
}

static tt_status move(tt_ctx* c, const tt_device* device, tt_tensor** t) {
  const tt_to_opts o = {.set = TT_TO_DEVICE, .device = *device};
  tt_tensor* moved;
  if (!*t) return TT_OK;
  TRY(tt_to(c, *t, &o, &moved));
  tt_tensor_release(*t);
  *t = moved;
  return TT_OK;
}
static tt_status complete(tt_ctx* c, const char* net, const tt_device* device, model* m) {
  TRY(build(c, net, m));
  if (device) {
    TRY(tt_module_to(c, m->net, device, 0));
    TRY(move(c, device, &m->x));
    TRY(move(c, device, &m->y));
  }
  if (m->y) TRY(tt_nn_cross_entropy_loss(c, NULL, &m->loss));
  TRY(tt_module_parameters(c, m->net, m->params, MAX_PARAMS, &m->n_params));
  if (!m->y || m->mode == MODEL_FORWARD) return TT_OK;
  return m->mode == MODEL_SGD ? tt_optim_sgd(c, m->params, m->n_params, NULL, &m->opt)
                              : tt_optim_adam(c, m->params, m->n_params, NULL, &m->opt);
}

model* model_new(tt_ctx* c, const char* net, int mode) {
  return model_new_on(c, net, mode, NULL, 0);
}
model* model_new_on(tt_ctx* c, const char* net, int mode, const tt_device* device, int64_t batch) {
  model* m = calloc(1, sizeof *m);
  if (!m) return NULL;
  m->mode = mode;
  m->batch = batch;
  if (complete(c, net, device, m) == TT_OK) return m;
  fprintf(stderr, "%s: %s\n", net, tt_ctx_error(c)->message);
  return NULL; /* the worker ends */
}

/* ---- steps ---- */

static tt_status loss_of(tt_ctx* c, model* m, tt_tensor** loss) {
  const tt_tensor* pair[2];
  tt_tensor* scores;
  int64_t n;
  TRY(m->forward(c, m, &scores));
  if (!m->loss) return tt_sum(c, scores, NULL, loss);
  pair[0] = scores;
  pair[1] = m->y;
  return tt_module_forward(c, m->loss, pair, 2, loss, 1, &n);
}

static tt_status cast_loss_of(tt_ctx* c, model* m, tt_tensor** loss) {
  if (m->mode != MODEL_ADAM_BF16) return loss_of(c, m, loss);
  TRY(tt_autocast_push(c, TT_CPU, 1, TT_BF16, 1));
  const tt_status s = loss_of(c, m, loss);
  TRY(tt_autocast_pop(c));
  return s;
}

static tt_status step(tt_ctx* c, model* m, tt_tensor** out) {
  tt_tensor* loss;
  if (m->mode == MODEL_FORWARD) {
    int32_t before;
    TRY(tt_set_grad_enabled(c, 0, &before));
    TRY(m->loss ? loss_of(c, m, &loss) : m->forward(c, m, &loss));
    return tt_set_grad_enabled(c, before, NULL);
  }
  if (m->opt) TRY(tt_optim_zero_grad(c, m->opt, 1));
  TRY(cast_loss_of(c, m, &loss));
  TRY(tt_backward(c, loss, NULL));
  if (m->opt) TRY(tt_optim_step(c, m->opt));
  return out ? tt_detach(c, loss, out) : TT_OK;
}

int model_run(tt_ctx* c, model* m) {
  if (tt_scope_push(c)) return -1;
  const tt_status s = step(c, m, NULL);
  if (s != TT_OK) fprintf(stderr, "model: %s\n", tt_ctx_error(c)->message);
  return tt_scope_pop(c, NULL, 0) || s ? -1 : 0;
}

/* Its inputs are the model's. */
static tt_status recorded_step(void* user, tt_ctx* c, const tt_tensor* const* in, int64_t n,
                               tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  tt_tensor* loss = NULL;
  (void)in;
  (void)n;
  (void)cap;
  *n_outs = 0;
  TRY(tt_scope_push(c));
  const tt_status s = step(c, user, &loss);
  TRY(tt_scope_pop(c, &loss, s == TT_OK));
  if (s != TT_OK) return s;
  outs[0] = loss;
  *n_outs = 1;
  return TT_OK;
}
int model_run_compiled(tt_ctx* c, model* m) {
  const tt_tensor* const in[2] = {m->x, m->y};
  tt_tensor* loss = NULL;
  int64_t n;
  if (!m->compiled && tt_compile(c, recorded_step, m, NULL, NULL, &m->compiled)) return -1;
  const tt_status s = tt_compiled_call(c, m->compiled, in, 2, &loss, 1, &n);
  if (s != TT_OK) fprintf(stderr, "model: %s\n", tt_ctx_error(c)->message);
  tt_tensor_release(loss);
  return s == TT_OK ? 0 : -1;
}

int model_hold(tt_ctx* c, model* m) {
  return m->opt && tt_optim_set_f64(c, m->opt, 0, "lr", 0) ? -1 : 0;
}
