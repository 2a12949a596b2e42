#include "packed_weights.h"

#include <stdlib.h>
#include <string.h>

typedef struct packed {
  tt_tensor *weight, *bias; /* bias: NULL if there is none */
  int32_t format, embeds;
} packed;

#define TRY(call)                   \
  do {                              \
    status = (call);                \
    if (status != TT_OK) goto done; \
  } while (0)

static void drop(void* user) {
  packed* p = user;
  tt_tensor_release(p->weight);
  tt_tensor_release(p->bias);
  free(p);
}

static tt_status forward(void* user, tt_ctx* c, tt_module* m, const tt_tensor* const* in,
                         int64_t n_in, tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  const packed* p = user;
  (void)m;
  (void)n_in;
  (void)cap;
  (void)n_outs;
  if (p->embeds) return tt_blockwise_embedding(c, p->weight, in[0], p->format, &outs[0]);
  return tt_blockwise_linear(c, in[0], p->weight, p->bias, p->format, &outs[0]);
}

/* *made = a module with the packed weight of layer. */
static tt_status pack_layer(tt_ctx* c, const tt_module* layer, int32_t format, tt_module** made) {
  packed* p = calloc(1, sizeof *p);
  const tt_module_def def = {sizeof def, "Packed", p, forward, NULL, drop};
  tt_tensor* weight = NULL;
  tt_status status = TT_OOM;
  if (!p) return status;
  p->format = format;
  p->embeds = strcmp(tt_module_type(layer), "Embedding") == 0;
  TRY(tt_module_get_tensor(c, layer, "weight", &weight));
  TRY(tt_quantize_blockwise(c, weight, format, &p->weight));
  if (!p->embeds) TRY(tt_module_get_tensor(c, layer, "bias", &p->bias));
  status = tt_module_new_custom(c, &def, made);
done:
  tt_tensor_release(weight);
  if (status != TT_OK) drop(p);
  return status;
}

tt_status pack_child(tt_ctx* c, tt_module* parent, const char* name, int32_t format) {
  tt_module *layer = NULL, *made = NULL;
  tt_status status;
  TRY(tt_module_get_submodule(c, parent, name, &layer));
  TRY(pack_layer(c, layer, format, &made));
  TRY(tt_module_register_module(c, parent, name, made));
done:
  tt_module_release(layer);
  tt_module_release(made);
  return status;
}
