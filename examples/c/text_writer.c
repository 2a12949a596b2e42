#include "text_writer.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_LAYERS = 64 };

struct writer {
  tt_module* gpt;
  tt_compiled* step;
  tt_device device;
  long layers, width, heads, context, length;
  tt_tensor *keys[MAX_LAYERS], *values[MAX_LAYERS]; /* (context, heads, width / heads) */
  tt_tensor* places;                                /* (1, context): 0, 1, … */
};

/* Outs belong to the scope that `step` has opened. */
#define TRY(call)                \
  do {                           \
    const tt_status s_ = (call); \
    if (s_ != TT_OK) return s_;  \
  } while (0)

/* *out = the module at a path below the network, called on x. */
static tt_status layer(tt_ctx* c, const writer* w, const char* path, const tt_tensor* x,
                       tt_tensor** out) {
  tt_module* m;
  TRY(tt_module_get_submodule(c, w->gpt, path, &m));
  const tt_status status = tt_module_call(c, m, x, out);
  tt_module_release(m);
  return status;
}
static tt_status in_block(tt_ctx* c, const writer* w, long i, const char* name, const tt_tensor* x,
                          tt_tensor** out) {
  char path[64];
  snprintf(path, sizeof path, "body.%ld.%s", i, name);
  return layer(c, w, path, x, out);
}

/* (1, width) -> query, key and value, (1, heads, width / heads) each. */
static tt_status project(tt_ctx* c, const writer* w, long i, const tt_tensor* x,
                         tt_tensor* qkv[3]) {
  const int64_t apart[] = {3, 1, w->heads, w->width / w->heads};
  char path[64];
  tt_tensor *weight, *bias, *all;
  snprintf(path, sizeof path, "body.%ld.attention.in_proj_weight", i);
  TRY(tt_module_get_tensor(c, w->gpt, path, &weight));
  snprintf(path, sizeof path, "body.%ld.attention.in_proj_bias", i);
  TRY(tt_module_get_tensor(c, w->gpt, path, &bias));
  TRY(tt_linear(c, x, weight, bias, &all));
  TRY(tt_reshape(c, all, apart, 4, &all));
  for (int k = 0; k < 3; k++) TRY(tt_select(c, all, 0, k, &qkv[k]));
  return TT_OK;
}

/* Attention of the newest symbol to all up to its place; `seen` (1, context) is true for these. */
static tt_status attend(tt_ctx* c, writer* w, long i, const tt_tensor* x, const tt_tensor* at,
                        const tt_tensor* seen, tt_tensor** out) {
  const int64_t to_heads[] = {1, 0, 2}, row[] = {1, w->width};
  tt_tensor *qkv[3], *q, *k, *v, *y;
  TRY(project(c, w, i, x, qkv));
  TRY(tt_index_copy_(c, w->keys[i], 0, at, qkv[1]));
  TRY(tt_index_copy_(c, w->values[i], 0, at, qkv[2]));
  TRY(tt_permute(c, qkv[0], to_heads, 3, &q));
  TRY(tt_permute(c, w->keys[i], to_heads, 3, &k));
  TRY(tt_permute(c, w->values[i], to_heads, 3, &v));
  TRY(tt_scaled_dot_product_attention(c, q, k, v, seen, NULL, &y));
  TRY(tt_permute(c, y, to_heads, 3, &y));
  TRY(tt_reshape(c, y, row, 2, &y));
  return in_block(c, w, i, "attention.out_proj", y, out);
}

static tt_status forward(tt_ctx* c, writer* w, const tt_tensor* const* in, tt_tensor** scores) {
  tt_tensor *x, *h, *seen;
  char path[64];
  TRY(tt_le(c, w->places, in[1], &seen));
  TRY(layer(c, w, "symbols", in[0], &x));
  TRY(layer(c, w, "places", in[1], &h));
  TRY(tt_add(c, x, h, &x));
  for (long i = 0; i < w->layers; i++) {
    TRY(in_block(c, w, i, "norm1", x, &h));
    TRY(attend(c, w, i, h, in[1], seen, &h));
    TRY(tt_add(c, x, h, &x));
    TRY(in_block(c, w, i, "norm2", x, &h));
    TRY(in_block(c, w, i, "mlp", h, &h));
    TRY(tt_add(c, x, h, &x));
  }
  snprintf(path, sizeof path, "body.%ld", w->layers);
  TRY(layer(c, w, path, x, &x));
  return layer(c, w, "head", x, scores);
}

/* in: the symbol and its place, (1) int64 each. */
static tt_status step(void* user, tt_ctx* c, const tt_tensor* const* in, int64_t n,
                      tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  tt_tensor* scores = NULL;
  (void)n;
  (void)cap;
  *n_outs = 0;
  TRY(tt_scope_push(c));
  const tt_status status = forward(c, user, in, &scores);
  TRY(tt_scope_pop(c, &scores, status == TT_OK));
  if (status != TT_OK) return status;
  outs[0] = scores;
  *n_outs = 1;
  return TT_OK;
}

static tt_status open_writer(tt_ctx* c, writer* w) {
  const int64_t shape[] = {w->context, w->heads, w->width / w->heads}, row[] = {1, w->context};
  const tt_scalar zero = {TT_SCALAR_INT, 0, 0, 0, 0};
  const tt_scalar end = {TT_SCALAR_INT, 0, w->context, 0, 0};
  const tt_zeros_opts zeros = {.set = TT_ZEROS_DEVICE, .device = w->device};
  const tt_arange_opts range = {.set = TT_ARANGE_DEVICE, .device = w->device};
  tt_tensor* numbers;
  for (long i = 0; i < w->layers; i++) {
    TRY(tt_zeros(c, shape, 3, &zeros, &w->keys[i]));
    TRY(tt_zeros(c, shape, 3, &zeros, &w->values[i]));
  }
  TRY(tt_arange(c, &zero, &end, &range, &numbers));
  const tt_status status = tt_reshape(c, numbers, row, 2, &w->places);
  tt_tensor_release(numbers);
  TRY(status);
  return tt_compile(c, step, w, NULL, NULL, &w->step);
}

writer* writer_new(tt_ctx* c, tt_module* gpt, tt_device device, long layers, long width, long heads,
                   long context) {
  writer* w = layers <= MAX_LAYERS ? calloc(1, sizeof *w) : NULL;
  if (!w) return NULL;
  w->gpt = gpt;
  w->device = device;
  w->layers = layers;
  w->width = width;
  w->heads = heads;
  w->context = context;
  if (open_writer(c, w) == TT_OK) return w;
  writer_free(w);
  return NULL;
}

void writer_free(writer* w) {
  if (!w) return;
  tt_compiled_release(w->step);
  for (long i = 0; i < w->layers; i++) {
    tt_tensor_release(w->keys[i]);
    tt_tensor_release(w->values[i]);
  }
  tt_tensor_release(w->places);
  free(w);
}

/* *out = one number, (1), on the network's device. */
static tt_status number_on(tt_ctx* c, const writer* w, int64_t number, tt_tensor** out) {
  const tt_to_opts to = {.set = TT_TO_DEVICE, .device = w->device};
  const int64_t one = 1;
  tt_tensor* here;
  TRY(tt_tensor_from_data(c, &number, TT_I64, &one, 1, &here));
  return tt_to(c, here, &to, out);
}

tt_status writer_next(tt_ctx* c, writer* w, int64_t symbol, tt_tensor** scores) {
  tt_tensor *in[2] = {NULL, NULL}, *out = NULL;
  int64_t n;
  tt_status status = number_on(c, w, symbol, &in[0]);
  if (status == TT_OK) status = number_on(c, w, w->length, &in[1]);
  if (status == TT_OK)
    status = tt_compiled_call(c, w->step, (const tt_tensor* const*)in, 2, &out, 1, &n);
  *scores = out;
  w->length += status == TT_OK;
  return status;
}

void writer_restart(writer* w) { w->length = 0; }
long writer_length(const writer* w) { return w->length; }
long writer_replays(tt_ctx* c, const writer* w) {
  tt_compiled_info info;
  return tt_compiled_get_info(c, w->step, &info) == TT_OK ? (long)info.n_replays : 0;
}
