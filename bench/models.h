/* The networks of torch_models.py, built of tt's modules. */
#ifndef BENCH_MODELS_H
#define BENCH_MODELS_H

#include "tt.h"

typedef struct model model;
/* MODEL_ADAM_BF16: with autocast to bfloat16. */
enum { MODEL_FORWARD, MODEL_SGD, MODEL_ADAM, MODEL_ADAM_BF16 };
/* net: tiny, mlp, lenet, cnn, gpt, mha. Returns NULL after printing the error. */
model* model_new(tt_ctx* c, const char* net, int mode);
/* The same on a device (NULL: the CPU) and with a batch of its own (0: that of torch_models.py). */
model* model_new_on(tt_ctx* c, const char* net, int mode, const tt_device* device, int64_t batch);
/* A forward or a whole training step (mha: backward too unless MODEL_FORWARD). 0 or -1. */
int model_run(tt_ctx* c, model* m);
/* The same as a compiled function of the model's input and target. */
int model_run_compiled(tt_ctx* c, model* m);

/* Sets the learning rate to 0: after many steps on one batch numbers would become denormal. */
int model_hold(tt_ctx* c, model* m);

#endif
