/* tt's worker for side-by-side timing, through the C ABI only. usage: tt_worker THREADS
   Protocol (stdin -> stdout, one line each): "?" -> all workload names; "NAME" -> runs one batch of
   about 30 ms, prints nanoseconds per call. bench/worker_torch.py defines what the names mean. */
#define _POSIX_C_SOURCE 200809L
#include "models.h"
#include "tt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHAIN = 100, GEMV_WEIGHTS = 12, MAX_WORK = 256 };

/* A workload: inputs a, b, the target o of _into calls, and the last result, released by the next
 * call. */
typedef struct work {
  char name[32];
  int (*make)(struct work* w);
  int (*run)(struct work* w);
  int64_t shape[3];
  int ndim;
  const struct conv_shape* conv;
  int last; /* conv: channels_last */
  tt_tensor *a, *b, *o, *extra[GEMV_WEIGHTS], *keep;
  tt_optimizer* opt;
  const char* net; /* models */
  int mode;
  model* model;
  long calls;
} work;

static tt_ctx* c;
static work works[MAX_WORK];
static int n_works;

static int fail(const char* call) {
  fprintf(stderr, "tt_worker: %s: %s\n", call, tt_ctx_error(c)->message);
  return -1;
}
#define CHECK(call)                          \
  do {                                       \
    if ((call) != TT_OK) return fail(#call); \
  } while (0)

/* Seconds of a batch; NULL: 0.03. If it is set, times are those of the processor, which other
   programs do not add to. */
static const char* batch_length(void) { return getenv("TT_BENCH_BATCH"); }

static double now(void) {
  struct timespec t;
  clock_gettime(batch_length() ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
/* The slot of the next result; releases the previous one. */
static tt_tensor** fresh(work* w) {
  tt_tensor_release(w->keep);
  w->keep = NULL;
  return &w->keep;
}

/* ---- inputs ---- */

static int make_abo(work* w) {
  CHECK(tt_randn(c, w->shape, w->ndim, NULL, &w->a));
  CHECK(tt_randn(c, w->shape, w->ndim, NULL, &w->b));
  CHECK(tt_randn(c, w->shape, w->ndim, NULL, &w->o));
  return 0;
}
static int make_grad(work* w) {
  if (make_abo(w)) return -1;
  CHECK(tt_requires_grad_(c, w->a, 1));
  return 0;
}
static int make_grad2(work* w) {
  if (make_grad(w)) return -1;
  CHECK(tt_requires_grad_(c, w->b, 1));
  return 0;
}
static int make_where(work* w) {
  if (make_abo(w)) return -1;
  CHECK(tt_gt_f64(c, w->a, 0, &w->extra[0]));
  return 0;
}
static int make_nothing(work* w) {
  (void)w;
  return 0;
}
static int make_gather(work* w) {
  tt_tensor* u;
  tt_to_opts to = {0};
  CHECK(tt_randn(c, w->shape, 1, NULL, &w->a));
  CHECK(tt_rand(c, w->shape, 1, NULL, &u));
  CHECK(tt_mul_f64_(c, u, (double)w->shape[0] * 0.9999));
  to.set = TT_TO_DTYPE;
  to.dtype = TT_I64;
  CHECK(tt_to(c, u, &to, &w->b));
  tt_tensor_release(u);
  return 0;
}
static int make_layernorm(work* w) {
  if (make_abo(w)) return -1;
  CHECK(tt_randn(c, w->shape + 1, 1, NULL, &w->extra[0]));
  CHECK(tt_randn(c, w->shape + 1, 1, NULL, &w->extra[1]));
  return 0;
}
static int make_xent(work* w) {
  tt_zeros_opts o = {0};
  if (make_abo(w)) return -1;
  o.set = TT_ZEROS_DTYPE;
  o.dtype = TT_I64;
  CHECK(tt_zeros(c, w->shape, 1, &o, &w->extra[0]));
  return 0;
}
/* shape = tensors, elements of each */
static int make_adam(work* w) {
  tt_tensor *params[128], *g;
  for (int64_t i = 0; i < w->shape[0]; i++) {
    CHECK(tt_randn(c, w->shape + 1, 1, NULL, &params[i]));
    CHECK(tt_requires_grad_(c, params[i], 1));
    CHECK(tt_randn(c, w->shape + 1, 1, NULL, &g));
    CHECK(tt_tensor_set_grad(c, params[i], g));
    tt_tensor_release(g);
  }
  CHECK(tt_optim_adam(c, params, w->shape[0], NULL, &w->opt));
  for (int64_t i = 0; i < w->shape[0]; i++) tt_tensor_release(params[i]);
  return 0;
}
/* shape = m, n, k */
static int make_mm(work* w) {
  int64_t a[2] = {w->shape[0], w->shape[2]};
  int64_t b[2] = {w->shape[2], w->shape[1]};
  CHECK(tt_randn(c, a, 2, NULL, &w->a));
  CHECK(tt_randn(c, b, 2, NULL, &w->b));
  return 0;
}
static int make_linear(work* w) {
  int64_t x[2] = {1, w->shape[0]};
  int64_t weight[2] = {w->shape[0], w->shape[0]};
  CHECK(tt_randn(c, x, 2, NULL, &w->a));
  CHECK(tt_randn(c, weight, 2, NULL, &w->b));
  return 0;
}
static int make_gemv(work* w) {
  int64_t x[2] = {1, 1024};
  int64_t weight[2] = {4096, 1024};
  CHECK(tt_randn(c, x, 2, NULL, &w->a));
  for (int i = 0; i < GEMV_WEIGHTS; i++) CHECK(tt_randn(c, weight, 2, NULL, &w->extra[i]));
  return 0;
}
static int make_image(work* w) {
  const int64_t shape[4] = {64, 32, 32, 32};
  CHECK(tt_randn(c, shape, 4, NULL, &w->a));
  return 0;
}
static int make_bf16(work* w) {
  tt_tensor* f;
  tt_to_opts to = {0};
  CHECK(tt_randn(c, w->shape, 2, NULL, &f));
  to.set = TT_TO_DTYPE;
  to.dtype = TT_BF16;
  CHECK(tt_to(c, f, &to, &w->a));
  tt_tensor_release(f);
  return 0;
}

typedef struct conv_shape {
  const char* label;
  int64_t batch, c_in, c_out, size, kernel, stride;
} conv_shape;

static int run_conv(work* w);
/* A random (n, channels, size, size), channels_last or not. */
static int images(int64_t n, int64_t channels, int64_t size, int last, tt_tensor** out) {
  const int64_t rows[4] = {n, channels, size, size};
  const int64_t pixels[4] = {n, size, size, channels};
  const int64_t order[4] = {0, 3, 1, 2};
  tt_tensor* t;
  if (!last) {
    CHECK(tt_randn(c, rows, 4, NULL, out));
    return 0;
  }
  CHECK(tt_randn(c, pixels, 4, NULL, &t));
  CHECK(tt_permute(c, t, order, 4, out));
  tt_tensor_release(t);
  return 0;
}
static int make_conv(work* w) {
  const conv_shape* s = w->conv;
  return images(s->batch, s->c_in, s->size, w->last, &w->a) ||
                 images(s->c_out, s->c_in, s->kernel, w->last, &w->b)
             ? -1
             : 0;
}
static int make_conv_fb(work* w) {
  if (make_conv(w) || run_conv(w)) return -1;
  CHECK(tt_randn_like(c, w->keep, NULL, &w->o));
  CHECK(tt_requires_grad_(c, w->a, 1));
  CHECK(tt_requires_grad_(c, w->b, 1));
  return 0;
}

/* ---- timed functions ---- */

static int run_conv(work* w) {
  const int64_t stride = w->conv->stride;
  const int64_t padding = w->conv->kernel / 2;
  tt_conv2d_opts o = {0};
  o.set = TT_CONV2D_STRIDE | TT_CONV2D_PADDING;
  o.stride = &stride;
  o.n_stride = 1;
  o.padding = &padding;
  o.n_padding = 1;
  CHECK(tt_conv2d(c, w->a, w->b, NULL, &o, fresh(w)));
  return 0;
}
static int run_conv_fb(work* w) {
  const tt_tensor* inputs[2];
  const tt_tensor *outputs[1], *cotangents[1];
  tt_tensor* grads[2];
  tt_grad_opts o = {0};
  if (run_conv(w)) return -1;
  inputs[0] = w->a;
  inputs[1] = w->b;
  outputs[0] = w->keep;
  cotangents[0] = w->o;
  o.set = TT_GRAD_GRAD_OUTPUTS;
  o.grad_outputs = cotangents;
  o.n_grad_outputs = 1;
  CHECK(tt_grad(c, outputs, 1, inputs, 2, &o, grads));
  tt_tensor_release(grads[0]);
  tt_tensor_release(grads[1]);
  return 0;
}

static int run_empty(work* w) {
  CHECK(tt_empty(c, w->shape, w->ndim, NULL, fresh(w)));
  return 0;
}
static int run_add(work* w) {
  CHECK(tt_add(c, w->a, w->b, fresh(w)));
  return 0;
}
static int run_add_(work* w) {
  CHECK(tt_add_(c, w->o, w->b));
  return 0;
}
static int run_addout(work* w) {
  CHECK(tt_add_into(c, w->a, w->b, w->o));
  return 0;
}
static int run_mul(work* w) {
  CHECK(tt_mul(c, w->a, w->b, fresh(w)));
  return 0;
}
static int run_muls(work* w) {
  CHECK(tt_mul_f64(c, w->a, 0.999, fresh(w)));
  return 0;
}
static int run_mm(work* w) {
  CHECK(tt_matmul(c, w->a, w->b, fresh(w)));
  return 0;
}
static int run_mm_self(work* w) {
  CHECK(tt_matmul(c, w->a, w->a, fresh(w)));
  return 0;
}
static int run_view(work* w) {
  int64_t n = 16;
  CHECK(tt_view(c, w->a, &n, 1, fresh(w)));
  return 0;
}
static int run_sum(work* w) {
  CHECK(tt_sum(c, w->a, NULL, fresh(w)));
  return 0;
}
static int run_sumdim0(work* w) {
  int64_t dim = 0;
  CHECK(tt_sum_dim(c, w->a, &dim, 1, NULL, fresh(w)));
  return 0;
}
static int run_max(work* w) {
  CHECK(tt_max(c, w->a, fresh(w)));
  return 0;
}
static int run_exp(work* w) {
  CHECK(tt_exp_into(c, w->a, w->o));
  return 0;
}
static int run_tanh(work* w) {
  CHECK(tt_tanh_into(c, w->a, w->o));
  return 0;
}
static int run_gelu(work* w) {
  CHECK(tt_gelu(c, w->a, NULL, fresh(w)));
  return 0;
}
static int run_sigmoid(work* w) {
  CHECK(tt_sigmoid_into(c, w->a, w->o));
  return 0;
}
static int run_where(work* w) {
  CHECK(tt_where(c, w->extra[0], w->a, w->b, fresh(w)));
  return 0;
}
static int run_dropout(work* w) {
  CHECK(tt_dropout(c, w->a, NULL, fresh(w)));
  return 0;
}
static int run_rand(work* w) {
  CHECK(tt_rand(c, w->shape, w->ndim, NULL, fresh(w)));
  return 0;
}
static int run_randn(work* w) {
  CHECK(tt_randn(c, w->shape, w->ndim, NULL, fresh(w)));
  return 0;
}
static int run_gather(work* w) {
  tt_index i = {0};
  i.kind = TT_IDX_TENSOR;
  i.tensor = w->b;
  CHECK(tt_index_get(c, w->a, &i, 1, fresh(w)));
  return 0;
}
static int run_softmax(work* w) {
  CHECK(tt_softmax(c, w->a, 1, NULL, fresh(w)));
  return 0;
}
static int run_layernorm(work* w) {
  CHECK(tt_layer_norm(c, w->a, w->shape + 1, 1, w->extra[0], w->extra[1], NULL, fresh(w)));
  return 0;
}
static int run_xent(work* w) {
  CHECK(tt_cross_entropy(c, w->a, w->extra[0], NULL, fresh(w)));
  return 0;
}
static int run_argmax(work* w) {
  tt_argmax_opts o = {0};
  o.set = TT_ARGMAX_DIM;
  o.dim = 1;
  CHECK(tt_argmax(c, w->a, &o, fresh(w)));
  return 0;
}
static int run_transpose(work* w) {
  tt_tensor* t;
  CHECK(tt_t(c, w->a, &t));
  tt_status s = tt_contiguous(c, t, fresh(w));
  tt_tensor_release(t);
  CHECK(s);
  return 0;
}
static int run_linear(work* w) {
  CHECK(tt_linear(c, w->a, w->b, NULL, fresh(w)));
  return 0;
}
static int run_step(work* w) {
  CHECK(tt_optim_step(c, w->opt));
  return 0;
}
static int run_gemv(work* w) {
  for (int i = 0; i < GEMV_WEIGHTS; i++) CHECK(tt_linear(c, w->a, w->extra[i], NULL, fresh(w)));
  return 0;
}
static int run_maxpool(work* w) {
  const int64_t two = 2;
  CHECK(tt_max_pool2d(c, w->a, &two, 1, NULL, fresh(w)));
  return 0;
}
static int run_bilinear(work* w) {
  tt_interpolate_opts o = {0};
  o.set = TT_INTERPOLATE_SCALE_FACTOR | TT_INTERPOLATE_MODE;
  o.scale_factor = 2;
  o.mode = TT_INTERPOLATION_BILINEAR;
  CHECK(tt_interpolate(c, w->a, NULL, 0, &o, fresh(w)));
  return 0;
}
static int run_bntrain(work* w) {
  tt_batch_norm_opts o = {0};
  o.set = TT_BATCH_NORM_TRAINING;
  o.training = 1;
  CHECK(tt_batch_norm(c, w->a, NULL, NULL, NULL, NULL, &o, fresh(w)));
  return 0;
}
static int make_sdpa(work* w) {
  int64_t shape[4] = {1, 8, w->shape[0], 64};
  CHECK(tt_randn(c, shape, 4, NULL, &w->a));
  CHECK(tt_randn(c, shape, 4, NULL, &w->b));
  CHECK(tt_randn(c, shape, 4, NULL, &w->o));
  return 0;
}
static int run_sdpa(work* w) {
  CHECK(tt_scaled_dot_product_attention(c, w->a, w->b, w->o, NULL, NULL, fresh(w)));
  return 0;
}
static int run_sdpac(work* w) {
  tt_scaled_dot_product_attention_opts o = {0};
  o.set = TT_SCALED_DOT_PRODUCT_ATTENTION_IS_CAUSAL;
  o.is_causal = 1;
  CHECK(tt_scaled_dot_product_attention(c, w->a, w->b, w->o, NULL, &o, fresh(w)));
  return 0;
}
/* sum of a chain of 100 products */
static int chain(work* w, tt_tensor** out) {
  tt_tensor* z = w->a;
  tt_tensor_retain(z);
  for (int i = 0; i < CHAIN; i++) {
    tt_tensor* next;
    tt_status s = tt_mul(c, z, w->b, &next);
    tt_tensor_release(z);
    CHECK(s);
    z = next;
  }
  tt_status s = tt_sum(c, z, NULL, out);
  tt_tensor_release(z);
  CHECK(s);
  return 0;
}
static int run_chain_fwd(work* w) { return chain(w, fresh(w)); }
static int run_chain_fb(work* w) {
  CHECK(tt_tensor_set_grad(c, w->a, NULL));
  CHECK(tt_tensor_set_grad(c, w->b, NULL));
  if (chain(w, fresh(w))) return -1;
  CHECK(tt_backward(c, w->keep, NULL));
  return 0;
}

/* ---- the list ---- */

static void add_work(const char* name, int (*make)(work*), int (*run)(work*), int64_t s0,
                     int64_t s1, int64_t s2) {
  work* w = &works[n_works++];
  snprintf(w->name, sizeof w->name, "%s", name);
  w->make = make;
  w->run = run;
  w->shape[0] = s0;
  w->shape[1] = s1;
  w->shape[2] = s2;
  w->ndim = s1 ? 2 : 1;
  if (s2) w->ndim = 3;
}

static void list_sized(void) {
  static const struct {
    const char* kind;
    int (*make)(work*), (*run)(work*);
  } kinds[] = {{"addnew", make_abo, run_add},      {"addout", make_abo, run_addout},
               {"exp", make_abo, run_exp},         {"tanh", make_abo, run_tanh},
               {"sigmoid", make_abo, run_sigmoid}, {"gelu", make_abo, run_gelu},
               {"sum", make_abo, run_sum},         {"max", make_abo, run_max},
               {"dropout", make_abo, run_dropout}, {"where", make_where, run_where}};
  int64_t n = 1000;
  for (int e = 3; e <= 7; e++, n *= 10)
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
      char name[32];
      snprintf(name, sizeof name, "%s1e%d", kinds[k].kind, e);
      add_work(name, kinds[k].make, kinds[k].run, n, 0, 0);
    }
  add_work("randn1e6", make_nothing, run_randn, 1000000, 0, 0);
  add_work("rand1e6", make_nothing, run_rand, 1000000, 0, 0);
  add_work("gather1e6", make_gather, run_gather, 1000000, 0, 0);
}

static void list_rows(void) {
  static const int64_t shapes[][2] = {{1024, 1024}, {8192, 1024}, {128, 50257}};
  static const struct {
    const char* kind;
    int (*make)(work*), (*run)(work*);
  } kinds[] = {{"softmax", make_abo, run_softmax},  {"layernorm", make_layernorm, run_layernorm},
               {"sumdim0_", make_abo, run_sumdim0}, {"transpose", make_abo, run_transpose},
               {"argmax", make_abo, run_argmax},    {"xent", make_xent, run_xent}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
      char name[32];
      snprintf(name, sizeof name, "%s%ldx%ld", kinds[k].kind, (long)shapes[s][0],
               (long)shapes[s][1]);
      add_work(name, kinds[k].make, kinds[k].run, shapes[s][0], shapes[s][1], 0);
    }
}

static void list_products(void) {
  static const int64_t mnk[][3] = {{32, 32, 32},       {64, 64, 64},     {128, 128, 128},
                                   {256, 256, 256},    {512, 512, 512},  {1024, 1024, 1024},
                                   {2048, 2048, 2048}, {64, 1024, 1024}, {128, 512, 784}};
  for (size_t i = 0; i < sizeof mnk / sizeof *mnk; i++) {
    char name[32];
    snprintf(name, sizeof name, "mm%ldx%ldx%ld", (long)mnk[i][0], (long)mnk[i][1], (long)mnk[i][2]);
    add_work(name, make_mm, run_mm, mnk[i][0], mnk[i][1], mnk[i][2]);
  }
  add_work("bmm1024x8", make_abo, run_mm_self, 1024, 8, 8);
  add_work("bmm64x64", make_abo, run_mm_self, 64, 64, 64);
  add_work("linear1x1024", make_linear, run_linear, 1024, 0, 0);
  add_work("linear1x4096", make_linear, run_linear, 4096, 0, 0);
  for (int64_t n = 128; n <= 4096; n *= 2) {
    char name[32];
    snprintf(name, sizeof name, "mmbf16_%ld", (long)n);
    add_work(name, make_bf16, run_mm_self, n, n, 0);
  }
  add_work("gemv_dram", make_gemv, run_gemv, 1, 0, 0);
}

static void list_images(void) {
  add_work("maxpool", make_image, run_maxpool, 1, 0, 0);
  add_work("bilinear", make_image, run_bilinear, 1, 0, 0);
  add_work("bntrain", make_image, run_bntrain, 1, 0, 0);
}

static void list_convs(void) {
  static const conv_shape shapes[] = {
      {"c2", 8, 64, 64, 56, 3, 1},     {"c3", 8, 128, 128, 28, 3, 1},
      {"c4", 8, 256, 256, 14, 3, 1},   {"c5", 8, 512, 512, 7, 3, 1},
      {"p1", 8, 256, 64, 56, 1, 1},    {"stem", 8, 3, 64, 224, 7, 2},
      {"cifar", 32, 32, 64, 32, 3, 1}, {"cifar0", 32, 3, 32, 32, 3, 1}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int k = 0; k < 4; k++) {
      char name[32];
      snprintf(name, sizeof name, "conv%s_%s%s", k / 2 ? "NHWC" : "NCHW", shapes[i].label,
               k % 2 ? "_fb" : "");
      add_work(name, k % 2 ? make_conv_fb : make_conv, k % 2 ? run_conv_fb : run_conv, 1, 0, 0);
      works[n_works - 1].conv = &shapes[i];
      works[n_works - 1].last = k / 2;
    }
}

static void list_attention(void) {
  for (int64_t n = 1024; n <= 4096; n *= 4) {
    char name[32];
    snprintf(name, sizeof name, "sdpa%ld", (long)n);
    add_work(name, make_sdpa, run_sdpa, n, 0, 0);
    snprintf(name, sizeof name, "sdpa%ldc", (long)n);
    add_work(name, make_sdpa, run_sdpac, n, 0, 0);
  }
}

static int make_model(work* w) { return (w->model = model_new(c, w->net, w->mode)) ? 0 : -1; }
static int run_model(work* w) { return model_run(c, w->model); }

static void add_model(const char* name, const char* net, int mode) {
  add_work(name, make_model, run_model, 1, 0, 0);
  works[n_works - 1].net = net;
  works[n_works - 1].mode = mode;
}

static void list_models(void) {
  static const char* const nets[] = {"tiny", "mlp", "lenet", "cnn", "gpt"};
  static const char* const modes[] = {"fwd", "sgd", "adam", "bf16"}; /* by MODEL_FORWARD, … */
  char name[32];
  for (size_t net = 0; net < sizeof nets / sizeof *nets; net++)
    for (int mode = MODEL_FORWARD; mode <= MODEL_ADAM_BF16; mode++) {
      snprintf(name, sizeof name, "train_%s_%s", nets[net], modes[mode]);
      add_model(name, nets[net], mode);
    }
  add_model("mha", "mha", MODEL_FORWARD);
  add_model("mha_fb", "mha", MODEL_SGD);
}

static void list_works(void) {
  add_work("empty4x4", make_nothing, run_empty, 4, 4, 0);
  add_work("add4x4", make_abo, run_add, 4, 4, 0);
  add_work("add_4x4", make_abo, run_add_, 4, 4, 0);
  add_work("addout4x4", make_abo, run_addout, 4, 4, 0);
  add_work("mul4x4rg", make_grad, run_mul, 4, 4, 0);
  add_work("muls4x4", make_abo, run_muls, 4, 4, 0);
  add_work("mm8", make_abo, run_mm_self, 8, 8, 0);
  add_work("view4x4", make_abo, run_view, 4, 4, 0);
  add_work("sum4x4", make_abo, run_sum, 4, 4, 0);
  add_work("chain100fwd", make_grad, run_chain_fwd, 4, 4, 0);
  add_work("chain100fb", make_grad, run_chain_fb, 4, 4, 0);
  add_work("chain100fb2", make_grad2, run_chain_fb, 4, 4, 0);
  add_work("adam1e6", make_adam, run_step, 1, 1000000, 0);
  add_work("adam1e7", make_adam, run_step, 1, 10000000, 0);
  add_work("adam100x1e4", make_adam, run_step, 100, 10000, 0);
  add_work("adam6x100", make_adam, run_step, 6, 100, 0);
  list_sized();
  list_rows();
  list_products();
  list_images();
  list_convs();
  list_attention();
  list_models();
}

/* ---- the protocol ---- */

static int run_many(work* w, long n) {
  for (long i = 0; i < n; i++)
    if (w->run(w)) return -1;
  return 0;
}

static double batch_ns(void) { return 1e9 * (batch_length() ? atof(batch_length()) : 0.03); }

static int calibrate(work* w) {
  const double batch = batch_ns();
  double start, once;
  long trial;
  if (w->make(w) || run_many(w, 2)) return -1;
  start = now();
  if (run_many(w, 1)) return -1;
  once = now() - start;
  trial = once > 100 ? (long)(batch / once) : (long)(batch / 100);
  if (trial < 1) trial = 1;
  start = now();
  if (run_many(w, trial)) return -1;
  w->calls = (long)((double)trial * batch / (now() - start));
  if (w->calls < 1) w->calls = 1;
  return 0;
}

static int answer(const char* name) {
  for (int i = 0; i < n_works; i++) {
    work* w = &works[i];
    if (strcmp(name, w->name)) continue;
    if (!w->calls && calibrate(w)) return -1;
    if (w->run(w)) return -1;
    double start = now();
    if (run_many(w, w->calls)) return -1;
    printf("%.2f\n", (now() - start) / (double)w->calls);
    return 0;
  }
  fprintf(stderr, "tt_worker: no workload %s\n", name);
  return -1;
}

int main(int argc, char** argv) {
  tt_runtime_opts opts = {0};
  tt_runtime* rt;
  char line[128];
  opts.struct_size = sizeof opts;
  opts.threads = argc > 1 ? atoi(argv[1]) : 1;
  if (tt_runtime_new(&opts, &rt) != TT_OK || tt_ctx_new(rt, &c) != TT_OK ||
      tt_manual_seed(c, 0) != TT_OK)
    return 1;
  list_works();
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\r\n")] = 0;
    if (strcmp(line, "?") == 0) {
      for (int i = 0; i < n_works; i++) printf("%s ", works[i].name);
      putchar('\n');
    } else if (answer(line)) {
      return 1;
    }
    fflush(stdout);
  }
  tt_ctx_release(c);
  tt_runtime_release(rt);
  return 0;
}
