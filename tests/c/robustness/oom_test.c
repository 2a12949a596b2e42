/* Each allocation of each scenario fails in turn: alone, with the retry that follows it, and
   with all later ones. No crash, no leak, outs are NULL, the failing call changes nothing, and
   the library works afterwards. With TT_CHECKED each block of tt is an allocation of the
   application; otherwise only slabs and large blocks are. */
#include "share.h"
#include "snapshot.h"

#include <unistd.h>

enum { kTensors = 24, kObjects = 4 };
typedef struct Run {
  tt_ctx* x;
  tt_ctx* watcher;
  /* Objects in the snapshot, released at the end. */
  tt_tensor* t[kTensors];
  tt_module* m[kObjects];
  tt_optimizer* opt[kObjects];
  tt_scheduler* sched[kObjects];
  tt_generator* g[kObjects];
  tt_state_dict* dict[kObjects];
  tt_tensor* lent[kTensors]; /* in the snapshot only: owned by a scope */
  int drops;                 /* of deleters and callbacks */
} Run;
typedef tt_status (*Scenario)(Run* r);

/* The snapshot before a call that may fail; empty if no allocation is to fail. */
typedef struct Before {
  Snapshot* all;
  Snapshot* lent;
} Before;
static Watched watched(const Run* r) {
  const Watched w = {r->watcher, r->x,     r->t,     kTensors, r->m, kObjects,
                     r->opt,     kObjects, r->sched, kObjects, r->g, kObjects};
  return w;
}
static Watched watched_lent(const Run* r) {
  const Watched w = {.watcher = r->watcher, .ctx = r->x, .tensors = r->lent, .n_tensors = kTensors};
  return w;
}
static Before watch(const Run* r) {
  const Watched all = watched(r);
  const Watched lent = watched_lent(r);
  Before b = {NULL, NULL};
  if (!host.fail_at) return b;
  b.all = snapshot_take(&all);
  b.lent = snapshot_take(&lent);
  return b;
}
static void end_watch(const Run* r, Before was, tt_status s, const char* call) {
  const Watched all = watched(r);
  const Watched lent = watched_lent(r);
  const char* what = NULL;
  if (s && was.all) what = snapshot_changed(was.all, &all);
  if (s && was.lent && !what) what = snapshot_changed(was.lent, &lent);
  snapshot_free(was.all);
  snapshot_free(was.lent);
  if (what) fail_msg("%s\n  failed: %s\n  but %s", call, tt_ctx_error(r->x)->message, what);
}

/* A call that must change nothing if it fails; its outs in t must be NULL before it. */
#define TRY(...)                          \
  do {                                    \
    const Before was_ = watch(r);         \
    const tt_status s_ = (__VA_ARGS__);   \
    end_watch(r, was_, s_, #__VA_ARGS__); \
    if (s_) return s_;                    \
  } while (0)
#define MAKE(i, ...)      \
  do {                    \
    assert_null(r->t[i]); \
    TRY(__VA_ARGS__);     \
  } while (0)
#define OUT(i) &r->t[i]
/* Work that may be done in part: several calls, or a backward. */
#define PART(...)                       \
  do {                                  \
    const tt_status s_ = (__VA_ARGS__); \
    if (s_) return s_;                  \
  } while (0)

static void count_drop(void* user) { ((Run*)user)->drops++; }

static const float kData[24] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10,  11,  12,
                                -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12};
static tt_status from(Run* r, int i, const int64_t* shape, int64_t ndim) {
  return tt_tensor_from_data(r->x, kData, TT_F32, shape, ndim, OUT(i));
}
static void release_range(Run* r, int begin, int end) {
  for (; begin < end; begin++) {
    tt_tensor_release(r->t[begin]);
    r->t[begin] = NULL;
  }
}
static tt_status param_from(Run* r, int i, const int64_t* shape, int64_t ndim) {
  TRY(from(r, i, shape, ndim));
  return tt_requires_grad_(r->x, r->t[i], 1);
}

/* ---- scenarios ---- */

static tt_status creation(Run* r) {
  const tt_scalar begin = int_scalar(0);
  const tt_scalar end = int_scalar(9);
  const tt_scalar one = real_scalar(1);
  MAKE(0, from(r, 0, SHAPE(2, 3)));
  MAKE(1, tt_zeros(r->x, SHAPE(100, 100), NULL, OUT(1)));
  MAKE(2, tt_ones(r->x, SHAPE(1, 2, 1, 2, 1, 2, 1), NULL,
                  OUT(2))); /* more than 5 dims: sizes in a block of their own */
  MAKE(3, tt_arange(r->x, &begin, &end, NULL, OUT(3)));
  MAKE(4, tt_scalar_tensor(r->x, &one, 0, OUT(4)));
  MAKE(5, tt_rand(r->x, SHAPE(3000), NULL, OUT(5)));
  MAKE(6, tt_empty_like(r->x, r->t[2], NULL, OUT(6)));
  return TT_OK;
}

static tt_status elementwise(Run* r) {
  const tt_to_opts half = {.set = TT_TO_DTYPE, .dtype = TT_BF16};
  const tt_to_opts wide = {.set = TT_TO_DTYPE, .dtype = TT_F64};
  MAKE(0, from(r, 0, SHAPE(4, 6)));
  MAKE(1, tt_to(r->x, r->t[0], &half, OUT(1)));
  MAKE(2, tt_exp(r->x, r->t[1], OUT(2)));
  MAKE(3, tt_add(r->x, r->t[0], r->t[2], OUT(3)));
  MAKE(4, tt_to(r->x, r->t[3], &wide, OUT(4)));
  MAKE(5, tt_gt(r->x, r->t[4], r->t[1], OUT(5)));
  MAKE(6, tt_where(r->x, r->t[5], r->t[0], r->t[4], OUT(6)));
  MAKE(7, tt_div_f64(r->x, r->t[6], 3, NULL, OUT(7)));
  MAKE(8, tt_pow_f64(r->x, r->t[7], 2.5, OUT(8)));
  return TT_OK;
}

static tt_status images(Run* r) {
  const tt_batch_norm_opts training = {.set = TT_BATCH_NORM_TRAINING, .training = 1};
  const tt_interpolate_opts bilinear = {.set = TT_INTERPOLATE_MODE,
                                        .mode = TT_INTERPOLATION_BILINEAR};
  const tt_pad_opts reflect = {.set = TT_PAD_MODE, .mode = TT_PADDING_REFLECT};
  PART(param_from(r, 0, SHAPE(1, 2, 3, 4)));
  MAKE(1, tt_zeros(r->x, SHAPE(2), NULL, OUT(1)));
  MAKE(2, tt_ones(r->x, SHAPE(2), NULL, OUT(2)));
  MAKE(3, tt_batch_norm(r->x, r->t[0], r->t[1], r->t[2], NULL, NULL, &training, OUT(3)));
  MAKE(4, tt_interpolate(r->x, r->t[3], SHAPE(5, 6), &bilinear, OUT(4)));
  MAKE(5, tt_pad(r->x, r->t[4], SHAPE(1, 1, 2, 1), &reflect, OUT(5)));
  MAKE(6, tt_max_pool2d(r->x, r->t[5], SHAPE(2), NULL, OUT(6)));
  MAKE(7, tt_avg_pool2d(r->x, r->t[6], SHAPE(2), NULL, OUT(7)));
  MAKE(8, tt_sum(r->x, r->t[7], NULL, OUT(8)));
  return tt_backward(r->x, r->t[8], NULL);
}

/* Windows that are read in parts, and whose maxima are found before the backward. */
static tt_status huge_windows(Run* r) {
  const int64_t one = 1;
  MAKE(0, tt_zeros(r->x, SHAPE(1, 1, 400, 700), NULL, OUT(0)));
  TRY(tt_requires_grad_(r->x, r->t[0], 1));
  MAKE(1, tt_adaptive_avg_pool2d(r->x, r->t[0], &one, 1, OUT(1)));
  TRY(tt_adaptive_max_pool2d(r->x, r->t[0], &one, 1, OUT(2), OUT(3)));
  MAKE(4, tt_add(r->x, r->t[1], r->t[2], OUT(4)));
  return tt_backward(r->x, r->t[4], NULL);
}

static tt_status broadcast(Run* r) {
  MAKE(0, from(r, 0, SHAPE(1, 2, 1, 2, 1, 3)));
  MAKE(1, from(r, 1, SHAPE(2, 1, 3, 1, 2, 1)));
  MAKE(2, tt_mul(r->x, r->t[0], r->t[1], OUT(2)));
  MAKE(3, tt_permute(r->x, r->t[2], SHAPE(5, 3, 1, 0, 2, 4), OUT(3)));
  MAKE(4, tt_sub(r->x, r->t[3], r->t[3], OUT(4)));
  return TT_OK;
}

static tt_status reductions(Run* r) {
  MAKE(0, from(r, 0, SHAPE(2, 3, 4)));
  MAKE(1, tt_sum_dim(r->x, r->t[0], SHAPE(0, 2), NULL, OUT(1)));
  TRY(tt_max_dim(r->x, r->t[0], 1, NULL, OUT(2), OUT(3)));
  MAKE(4, tt_argmax(r->x, r->t[0], NULL, OUT(4)));
  MAKE(5, tt_transpose(r->x, r->t[0], 0, 2, OUT(5)));
  MAKE(6, tt_mean(r->x, r->t[5], NULL, OUT(6)));
  MAKE(7, tt_softmax(r->x, r->t[5], 1, NULL, OUT(7)));
  return TT_OK;
}

static tt_status products(Run* r) {
  MAKE(0, from(r, 0, SHAPE(2, 3, 4)));
  MAKE(1, tt_transpose(r->x, r->t[0], 1, 2, OUT(1)));
  MAKE(2, tt_matmul(r->x, r->t[0], r->t[1], OUT(2)));
  MAKE(3, tt_ones(r->x, SHAPE(96, 100), NULL, OUT(3)));
  MAKE(4, tt_linear(r->x, r->t[3], r->t[3], NULL, OUT(4)));
  MAKE(5, from(r, 5, SHAPE(4)));
  MAKE(6, tt_matmul(r->x, r->t[0], r->t[5], OUT(6)));
  return TT_OK;
}

static tt_status views(Run* r) {
  const tt_slice_opts every2 = {.set = TT_SLICE_STEP, .step = 2};
  MAKE(0, from(r, 0, SHAPE(2, 3, 4)));
  MAKE(1, tt_view(r->x, r->t[0], SHAPE(1, 2, 1, 3, 1, 4, 1), OUT(1)));
  MAKE(2, tt_permute(r->x, r->t[1], SHAPE(6, 5, 4, 3, 2, 1, 0), OUT(2)));
  MAKE(3, tt_slice(r->x, r->t[2], 1, &every2, OUT(3)));
  MAKE(4, tt_select(r->x, r->t[3], 3, 1, OUT(4)));
  MAKE(5, tt_reshape(r->x, r->t[4], SHAPE(-1), OUT(5)));
  MAKE(6, tt_expand(r->x, r->t[5], SHAPE(3, -1), OUT(6)));
  return TT_OK;
}

static tt_status indexing(Run* r) {
  const int64_t at[] = {1, 0, 1};
  const tt_index mixed[] = {{.kind = TT_IDX_INT, .start = 1},
                            {.kind = TT_IDX_NONE},
                            {.kind = TT_IDX_SLICE, .has = 4, .step = 2}};
  int64_t n = 0;
  MAKE(0, from(r, 0, SHAPE(2, 3)));
  MAKE(1, tt_tensor_from_data(r->x, at, TT_I64, SHAPE(3), OUT(1)));
  MAKE(2, tt_index_select(r->x, r->t[0], 0, r->t[1], OUT(2)));
  MAKE(3, tt_cat(r->x, LIST(r->t[0], r->t[2], r->t[0]), NULL, OUT(3)));
  TRY(tt_split(r->x, r->t[3], 3, NULL, OUT(4), 4, &n));
  MAKE(8, tt_index_get(r->x, r->t[0], mixed, 3, OUT(8)));
  MAKE(9, tt_index_add(r->x, r->t[0], 0, r->t[1], r->t[2], OUT(9)));
  {
    const tt_index tensors[] = {{.kind = TT_IDX_TENSOR, .tensor = r->t[1]}};
    MAKE(10, tt_index_get(r->x, r->t[0], tensors, 1, OUT(10)));
    TRY(tt_index_set(r->x, r->t[0], tensors, 1, r->t[10]));
  }
  return TT_OK;
}

static tt_status in_place(Run* r) {
  MAKE(0, from(r, 0, SHAPE(4, 6)));
  MAKE(1, tt_transpose(r->x, r->t[0], 0, 1, OUT(1)));
  MAKE(2, tt_tensor_from_data(r->x, kData, TT_F32, SHAPE(6, 1), OUT(2)));
  TRY(tt_add_(r->x, r->t[1], r->t[2]));
  assert_int_equal(tt_tensor_version(r->t[0]), 1);
  MAKE(3, tt_matmul(r->x, r->t[0], r->t[1], OUT(3)));
  TRY(tt_addmm_(r->x, r->t[3], r->t[0], r->t[1], NULL));
  TRY(tt_zero_(r->x, r->t[1]));
  return TT_OK;
}

static tt_status in_place_on_view(Run* r) {
  PART(param_from(r, 0, SHAPE(3)));
  MAKE(1, tt_zeros(r->x, SHAPE(2, 3), NULL, OUT(1)));
  MAKE(2, tt_select(r->x, r->t[1], 0, 0, OUT(2)));
  MAKE(3, tt_mul(r->x, r->t[0], r->t[0], OUT(3)));
  TRY(tt_copy_(r->x, r->t[2], r->t[3]));
  TRY(tt_mul_f64_(r->x, r->t[1], 2));
  MAKE(4, tt_sum(r->x, r->t[2], NULL, OUT(4)));
  PART(tt_backward(r->x, r->t[4], NULL));
  MAKE(5, tt_tensor_grad(r->x, r->t[0], OUT(5)));
  return r->t[5] ? TT_OK : TT_INTERNAL;
}

static tt_status network(Run* r, int create_graph) {
  MAKE(0, from(r, 0, SHAPE(4, 3)));
  PART(param_from(r, 1, SHAPE(5, 3)));
  PART(param_from(r, 2, SHAPE(2, 5)));
  PART(param_from(r, 3, SHAPE(5)));
  MAKE(4, tt_linear(r->x, r->t[0], r->t[1], r->t[3], OUT(4)));
  MAKE(5, tt_tanh(r->x, r->t[4], OUT(5)));
  MAKE(6, tt_linear(r->x, r->t[5], r->t[2], NULL, OUT(6)));
  MAKE(7, tt_mul(r->x, r->t[6], r->t[6], OUT(7)));
  MAKE(8, tt_mean(r->x, r->t[7], NULL, OUT(8)));
  if (!create_graph) {
    PART(tt_backward(r->x, r->t[8], NULL));
    MAKE(9, tt_tensor_grad(r->x, r->t[1], OUT(9)));
    return r->t[9] ? TT_OK : TT_INTERNAL;
  }
  {
    const tt_grad_opts opts = {.set = TT_GRAD_CREATE_GRAPH, .create_graph = 1};
    TRY(tt_grad(r->x, LIST(r->t[8]), LIST(r->t[1], r->t[2]), &opts, OUT(9)));
  }
  MAKE(11, tt_sum(r->x, r->t[9], NULL, OUT(11)));
  PART(tt_backward(r->x, r->t[11], NULL));
  return TT_OK;
}
static tt_status backward(Run* r) { return network(r, 0); }
static tt_status second_derivative(Run* r) { return network(r, 1); }

/* A net of convolutions with running statistics and dropout, trained by AdamW. */
static tt_status add_to(Run* r, tt_module* net, tt_module* layer) {
  const tt_status s = tt_module_append(r->x, net, layer);
  tt_module_release(layer);
  return s;
}
static tt_status conv_net(Run* r) {
  const tt_nn_conv2d_opts padded = {
      .set = TT_NN_CONV2D_PADDING, .padding = (const int64_t[]){1}, .n_padding = 1};
  tt_module* layer;
  TRY(tt_nn_sequential(r->x, &r->m[0]));
  TRY(tt_nn_conv2d(r->x, 2, 4, (const int64_t[]){3}, 1, &padded, &layer));
  PART(add_to(r, r->m[0], layer));
  TRY(tt_nn_batch_norm2d(r->x, 4, NULL, &layer));
  PART(add_to(r, r->m[0], layer));
  TRY(tt_nn_relu(r->x, NULL, &layer));
  PART(add_to(r, r->m[0], layer));
  TRY(tt_nn_dropout(r->x, NULL, &layer));
  PART(add_to(r, r->m[0], layer));
  TRY(tt_nn_conv2d(r->x, 4, 3, (const int64_t[]){2}, 1, NULL, &layer));
  return add_to(r, r->m[0], layer);
}
static tt_status train_conv_net(Run* r) {
  tt_tensor** params = &r->t[8];
  int64_t n;
  int step;
  PART(conv_net(r));
  TRY(tt_module_parameters(r->x, r->m[0], params, 8, &n));
  TRY(tt_optim_adamw(r->x, params, n, NULL, &r->opt[0]));
  MAKE(0, tt_randn(r->x, SHAPE(3, 2, 5, 5), NULL, OUT(0)));
  for (step = 0; step < 2; step++) {
    TRY(tt_optim_zero_grad(r->x, r->opt[0], step));
    MAKE(1, tt_module_call(r->x, r->m[0], r->t[0], OUT(1)));
    MAKE(2, tt_mul(r->x, r->t[1], r->t[1], OUT(2)));
    MAKE(3, tt_mean(r->x, r->t[2], NULL, OUT(3)));
    PART(tt_backward(r->x, r->t[3], NULL));
    MAKE(4, tt_clip_grad_norm_(r->x, params, n, 0.01, NULL, OUT(4)));
    TRY(tt_optim_step(r->x, r->opt[0]));
    release_range(r, 1, 5);
  }
  return TT_OK;
}

/* With dropout and an added mask; and its gradient, recorded. */
static tt_status attention(Run* r) {
  const tt_scaled_dot_product_attention_opts drop = {
      .set = TT_SCALED_DOT_PRODUCT_ATTENTION_DROPOUT_P, .dropout_p = 0.5};
  const tt_scaled_dot_product_attention_opts causal = {
      .set = TT_SCALED_DOT_PRODUCT_ATTENTION_IS_CAUSAL, .is_causal = 1};
  const tt_grad_opts opts = {.set = TT_GRAD_CREATE_GRAPH, .create_graph = 1};
  PART(param_from(r, 0, SHAPE(1, 3, 2, 4)));
  PART(param_from(r, 1, SHAPE(3, 3)));
  MAKE(2, tt_transpose(r->x, r->t[0], 1, 2, OUT(2)));
  MAKE(3, tt_scaled_dot_product_attention(r->x, r->t[2], r->t[2], r->t[2], r->t[1], &drop, OUT(3)));
  MAKE(4, tt_sum(r->x, r->t[3], NULL, OUT(4)));
  PART(tt_backward(r->x, r->t[4], NULL));
  MAKE(5, tt_transpose(r->x, r->t[0], 1, 2, OUT(5)));
  MAKE(6, tt_scaled_dot_product_attention(r->x, r->t[5], r->t[5], r->t[5], NULL, &causal, OUT(6)));
  MAKE(7, tt_sum(r->x, r->t[6], NULL, OUT(7)));
  MAKE(8, tt_grad(r->x, LIST(r->t[7]), LIST(r->t[0]), &opts, OUT(8)));
  MAKE(9, tt_sum(r->x, r->t[8], NULL, OUT(9)));
  return tt_backward(r->x, r->t[9], NULL);
}

static tt_status order(Run* r) {
  const tt_unique_opts all = {.set = TT_UNIQUE_RETURN_INVERSE | TT_UNIQUE_RETURN_COUNTS,
                              .return_inverse = 1,
                              .return_counts = 1};
  const tt_multinomial_opts none = {0};
  PART(param_from(r, 0, SHAPE(2, 3, 4)));
  MAKE(1, tt_repeat(r->x, r->t[0], SHAPE(1, 1, 60), OUT(1)));
  TRY(tt_sort(r->x, r->t[1], NULL, OUT(2), OUT(3)));
  TRY(tt_topk(r->x, r->t[2], 2, NULL, OUT(4), OUT(5)));
  MAKE(6, tt_sum(r->x, r->t[4], NULL, OUT(6)));
  PART(tt_backward(r->x, r->t[6], NULL));
  TRY(tt_unique(r->x, r->t[3], &all, OUT(7), OUT(8), OUT(9)));
  MAKE(10, tt_randperm(r->x, 100, NULL, OUT(10)));
  MAKE(11, tt_rand(r->x, SHAPE(2, 5), NULL, OUT(11)));
  MAKE(12, tt_multinomial(r->x, r->t[11], 3, 0, &none, OUT(12)));
  MAKE(13, tt_multinomial(r->x, r->t[11], 30, 1, NULL, OUT(13)));
  return TT_OK;
}

static tt_status square_forward(void* user, tt_ctx* x, tt_function* f, const tt_tensor* const* in,
                                int64_t n_in, tt_tensor** outs, int64_t n_outs) {
  tt_status s = tt_function_save(x, f, in, 1);
  (void)user;
  (void)n_in;
  (void)n_outs;
  return s ? s : tt_mul(x, in[0], in[0], &outs[0]);
}
static tt_status square_backward(void* user, tt_ctx* x, tt_function* f, tt_tensor* const* grads,
                                 int64_t n_outs, tt_tensor** out, int64_t n_in) {
  tt_tensor *saved = NULL, *twice = NULL;
  tt_status s = tt_function_saved(x, f, 0, &saved);
  (void)user;
  (void)n_outs;
  (void)n_in;
  if (!s) s = tt_mul_f64(x, saved, 2, &twice);
  if (!s) s = tt_mul(x, twice, grads[0], &out[0]);
  tt_tensor_release(saved);
  tt_tensor_release(twice);
  return s;
}
static tt_status custom_function(Run* r) {
  const tt_function_def def = {.struct_size = sizeof def,
                               .name = "square",
                               .user = r,
                               .forward = square_forward,
                               .backward = square_backward,
                               .drop = count_drop};
  PART(param_from(r, 0, SHAPE(3)));
  MAKE(1, tt_function_apply(r->x, &def, LIST(r->t[0]), OUT(1), 1));
  MAKE(2, tt_sum(r->x, r->t[1], NULL, OUT(2)));
  PART(tt_backward(r->x, r->t[2], NULL));
  MAKE(3, tt_tensor_grad(r->x, r->t[0], OUT(3)));
  return TT_OK;
}

static tt_status twice_compute(void* user, tt_ctx* x, const tt_value* args, int64_t n_args,
                               tt_tensor** outs, int64_t n_outs) {
  (void)user;
  (void)n_args;
  (void)n_outs;
  return tt_mul_f64(x, args[0].tensor, 2, &outs[0]);
}
static tt_status twice_backward(void* user, tt_ctx* x, tt_tensor* const* grads, int64_t n_outs,
                                const tt_value* args, int64_t n_args, tt_tensor* const* results,
                                tt_tensor** input_grads, int64_t n_inputs) {
  (void)user;
  (void)n_outs;
  (void)args;
  (void)n_args;
  (void)results;
  (void)n_inputs;
  return tt_mul_f64(x, grads[0], 2, &input_grads[0]);
}
static tt_status custom_op(Run* r) {
  const tt_op_def def = {
      sizeof def, "twice(x: Tensor, k: Int = 3) -> Tensor", r, twice_compute, twice_backward, NULL};
  const tt_op* op;
  tt_value v = {0};
  int64_t n = 0;
  tt_status s = tt_op_find(r->x, "twice", &op);
  if (s == TT_NOT_IMPLEMENTED) s = tt_op_register(r->x, &def);
  TRY(s);
  TRY(tt_op_find(r->x, "twice", &op));
  PART(param_from(r, 0, SHAPE(3)));
  v.tag = TT_VAL_TENSOR;
  v.tensor = r->t[0];
  MAKE(1, tt_op_call(r->x, op, &v, 1, OUT(1), 1, &n));
  MAKE(2, tt_sum(r->x, r->t[1], NULL, OUT(2)));
  return tt_backward(r->x, r->t[2], NULL);
}

static tt_status in_scopes(Run* r) {
  tt_tensor* kept = NULL;
  tt_status s;
  int i;
  TRY(tt_scope_push(r->x));
  s = tt_scope_push(r->x);
  for (i = 0; i < 40 && !s; i++) s = tt_ones(r->x, SHAPE(2, 3), NULL, &kept);
  if (!s) s = tt_scope_pop(r->x, &kept, 1);
  if (!s) s = tt_scope_pop(r->x, &kept, 1);
  if (!s) r->t[0] = kept;
  while (!tt_scope_pop(r->x, NULL, 0)) {}
  return s;
}

/* A call whose result finds no room in the scope commits nothing. */
static tt_status loss_of_closure(void* user, tt_ctx* x, tt_tensor** loss) {
  (void)user;
  return tt_zeros(x, NULL, 0, NULL, loss);
}
static tt_status commit_in_scope(Run* r, int which) {
  const tt_batch_norm_opts training = {.set = TT_BATCH_NORM_TRAINING, .training = 1};
  const tt_tensor* input = r->lent[0];
  tt_tensor *out, *outs[2];
  int64_t n;
  switch (which) {
    case 0: TRY(tt_rand(r->x, SHAPE(5), NULL, &out)); break;
    case 1: TRY(tt_dropout(r->x, input, NULL, &out)); break;
    case 2:
      TRY(tt_batch_norm(r->x, input, r->lent[1], r->lent[2], NULL, NULL, &training, &out));
      break;
    case 3: TRY(tt_clip_grad_norm_(r->x, &r->lent[3], 1, 0.5, NULL, &out)); break;
    case 4: TRY(tt_optim_step_closure(r->x, r->opt[0], loss_of_closure, NULL, NULL, &out)); break;
    case 5: TRY(tt_module_call(r->x, r->m[0], input, &out)); break;
    default: TRY(tt_module_forward(r->x, r->m[0], &input, 1, outs, 2, &n));
  }
  return TT_OK;
}
static tt_status commit_in_full_scope(Run* r, int which) {
  enum { kRoom = 32 };
  tt_module* layer;
  tt_tensor* filler;
  int i;
  PART(from(r, 0, SHAPE(4, 6)));
  TRY(tt_zeros(r->x, SHAPE(6), NULL, OUT(1)));
  TRY(tt_ones(r->x, SHAPE(6), NULL, OUT(2)));
  PART(param_from(r, 3, SHAPE(2, 3)));
  PART(from(r, 4, SHAPE(2, 3)));
  TRY(tt_tensor_set_grad(r->x, r->t[3], r->t[4]));
  TRY(tt_optim_adamw(r->x, &r->t[3], 1, NULL, &r->opt[0]));
  TRY(tt_nn_sequential(r->x, &r->m[0]));
  PART(tt_nn_batch_norm1d(r->x, 6, NULL, &layer));
  PART(add_to(r, r->m[0], layer));
  PART(tt_nn_dropout(r->x, NULL, &layer));
  PART(add_to(r, r->m[0], layer));
  PART(tt_scope_push(r->x));
  for (i = 0; i < 5; i++) r->lent[i] = r->t[i];
  for (i = 0; i < kRoom; i++) PART(tt_zeros(r->x, NULL, 0, NULL, &filler));
  return commit_in_scope(r, which);
}
static tt_status full_scope(Run* r, int which) {
  const tt_status s = commit_in_full_scope(r, which);
  if (r->lent[0]) tt_scope_pop(r->x, NULL, 0);
  return s;
}
static tt_status rand_in_full_scope(Run* r) { return full_scope(r, 0); }
static tt_status dropout_in_full_scope(Run* r) { return full_scope(r, 1); }
static tt_status batch_norm_in_full_scope(Run* r) { return full_scope(r, 2); }
static tt_status clip_in_full_scope(Run* r) { return full_scope(r, 3); }
static tt_status closure_in_full_scope(Run* r) { return full_scope(r, 4); }
static tt_status module_call_in_full_scope(Run* r) { return full_scope(r, 5); }
static tt_status module_forward_in_full_scope(Run* r) { return full_scope(r, 6); }

/* Every random operator, with its own generator and with the ctx's. */
static tt_status draws(Run* r) {
  const tt_rand_opts wide = {.set = TT_RAND_DTYPE, .dtype = TT_C128};
  tt_rand_opts own = {.set = TT_RAND_GENERATOR};
  TRY(tt_generator_new(r->x, 5, &r->g[0]));
  own.generator = r->g[0];
  MAKE(0, tt_rand(r->x, SHAPE(3000), &own, OUT(0)));
  MAKE(1, tt_rand(r->x, SHAPE(3, 5), &wide, OUT(1)));
  MAKE(2, tt_rand(r->x, SHAPE(3, 5), NULL, OUT(2)));
  MAKE(3, tt_randn_like(r->x, r->t[2], NULL, OUT(3)));
  MAKE(4, tt_bernoulli(r->x, r->t[2], NULL, OUT(4)));
  MAKE(5, tt_normal(r->x, r->t[3], r->t[2], NULL, OUT(5)));
  MAKE(6, tt_randint(r->x, 0, 10, SHAPE(3, 5), NULL, OUT(6)));
  MAKE(7, tt_randperm(r->x, 1000, NULL, OUT(7)));
  MAKE(8, tt_multinomial(r->x, r->t[2], 3, 0, NULL, OUT(8)));
  MAKE(9, tt_multinomial(r->x, r->t[2], 30, 1, NULL, OUT(9)));
  MAKE(10, tt_t(r->x, r->t[2], OUT(10)));
  TRY(tt_uniform_(r->x, r->t[10], 0, 1, NULL));
  TRY(tt_normal_(r->x, r->t[10], 0, 1, NULL));
  TRY(tt_exponential_(r->x, r->t[10], 1, NULL));
  TRY(tt_random_(r->x, r->t[10], 3, NULL));
  TRY(tt_dropout_(r->x, r->t[10], NULL));
  return TT_OK;
}

static tt_status import(Run* r) {
  static float memory[8];
  const int before = r->drops;
  tt_status s = tt_tensor_import(r->x, memory, TT_F32, SHAPE(1, 2, 1, 2, 1, 2), NULL, 1, count_drop,
                                 r, OUT(0));
  if (s) {
    assert_int_equal(r->drops, before + 1); /* also when the call fails */
    assert_null(r->t[0]);
    return s;
  }
  MAKE(1, tt_select(r->x, r->t[0], 1, 0, OUT(1)));
  TRY(tt_add_f64_(r->x, r->t[1], 1));
  return TT_OK;
}

static tt_status loss_and_step(Run* r) {
  const int64_t classes[] = {0, 2, 1, 0};
  const tt_dropout_opts drop = {0};
  tt_tensor* g = NULL;
  tt_status s;
  MAKE(0, from(r, 0, SHAPE(4, 3)));
  PART(param_from(r, 1, SHAPE(3, 3)));
  MAKE(2, tt_tensor_from_data(r->x, classes, TT_I64, SHAPE(4), OUT(2)));
  MAKE(3, tt_linear(r->x, r->t[0], r->t[1], NULL, OUT(3)));
  MAKE(4, tt_layer_norm(r->x, r->t[3], SHAPE(3), NULL, NULL, NULL, OUT(4)));
  MAKE(5, tt_dropout(r->x, r->t[4], &drop, OUT(5)));
  MAKE(6, tt_cross_entropy(r->x, r->t[5], r->t[2], NULL, OUT(6)));
  PART(tt_backward(r->x, r->t[6], NULL));
  TRY(tt_tensor_grad(r->x, r->t[1], &g));
  s = tt_set_grad_enabled(r->x, 0, NULL);
  if (!s) s = tt_mul_f64(r->x, g, -0.1, OUT(7));
  if (!s) s = tt_add_(r->x, r->t[1], r->t[7]);
  tt_tensor_release(g);
  tt_set_grad_enabled(r->x, 1, NULL);
  return s;
}

static tt_status conv(Run* r) {
  const tt_conv2d_opts padded = {
      .set = TT_CONV2D_PADDING, .padding = (const int64_t[]){1}, .n_padding = 1};
  MAKE(0, from(r, 0, SHAPE(1, 2, 2, 2)));
  PART(param_from(r, 1, SHAPE(2, 2, 2, 1)));
  PART(param_from(r, 2, SHAPE(2)));
  MAKE(3, tt_conv2d(r->x, r->t[0], r->t[1], r->t[2], &padded, OUT(3)));
  MAKE(4, tt_conv2d_padding(r->x, r->t[3], r->t[1], "same", NULL, NULL, OUT(4)));
  MAKE(5, tt_conv_transpose2d(r->x, r->t[4], r->t[1], NULL, NULL, OUT(5)));
  MAKE(6, tt_sum(r->x, r->t[5], NULL, OUT(6)));
  PART(tt_backward(r->x, r->t[6], NULL));
  MAKE(7, tt_tensor_grad(r->x, r->t[1], OUT(7)));
  return r->t[7] ? TT_OK : TT_INTERNAL;
}

/* Two parameters larger than small blocks, one with other strides than its gradient. A failing
   step changes nothing. */
static tt_status factor_of(void* user, tt_ctx* x, int64_t epoch, int64_t group, double* factor) {
  (void)user;
  (void)x;
  *factor = 1.0 / (double)(epoch + group + 1);
  return TT_OK;
}
static tt_status optimizer_step(Run* r) {
  const tt_optim_adam_opts o = {.set = TT_OPTIM_ADAM_AMSGRAD, .amsgrad = 1};
  MAKE(0, tt_ones(r->x, SHAPE(60, 50), NULL, OUT(0)));
  MAKE(1, tt_ones(r->x, SHAPE(50, 60), NULL, OUT(1)));
  MAKE(2, tt_ones(r->x, SHAPE(60, 50), NULL, OUT(2)));
  MAKE(3, tt_t(r->x, r->t[2], OUT(3)));
  TRY(tt_requires_grad_(r->x, r->t[0], 1));
  TRY(tt_requires_grad_(r->x, r->t[1], 1));
  TRY(tt_tensor_set_grad(r->x, r->t[0], r->t[2]));
  TRY(tt_tensor_set_grad(r->x, r->t[1], r->t[3]));
  TRY(tt_optim_adam(r->x, &r->t[0], 1, &o, &r->opt[0]));
  TRY(tt_optim_add_param_group(r->x, r->opt[0], &r->t[1], 1));
  TRY(tt_lr_lambda(r->x, r->opt[0], factor_of, r, count_drop, -1, &r->sched[0]));
  TRY(tt_optim_step(r->x, r->opt[0]));
  MAKE(4, tt_clip_grad_norm_(r->x, r->t, 2, 0.5, NULL, OUT(4)));
  TRY(tt_clip_grad_value_(r->x, r->t, 2, 0.001));
  TRY(tt_optim_step(r->x, r->opt[0]));
  MAKE(5, tt_optim_get_state(r->x, r->opt[0], 1, "exp_avg", OUT(5)));
  TRY(tt_optim_set_state(r->x, r->opt[0], 0, "exp_avg", r->t[2]));
  TRY(tt_optim_zero_grad(r->x, r->opt[0], 0));
  TRY(tt_scheduler_step(r->x, r->sched[0]));
  return TT_OK;
}
/* NAdam keeps a number of each parameter beside its tensors. */
static tt_status optimizer_numbers(Run* r) {
  MAKE(0, tt_ones(r->x, SHAPE(60, 50), NULL, OUT(0)));
  MAKE(1, tt_ones(r->x, SHAPE(60, 50), NULL, OUT(1)));
  TRY(tt_requires_grad_(r->x, r->t[0], 1));
  TRY(tt_tensor_set_grad(r->x, r->t[0], r->t[1]));
  TRY(tt_optim_nadam(r->x, &r->t[0], 1, NULL, &r->opt[0]));
  TRY(tt_optim_step(r->x, r->opt[0]));
  MAKE(2, tt_optim_get_state(r->x, r->opt[0], 0, "mu_product", OUT(2)));
  TRY(tt_optim_step(r->x, r->opt[0]));
  TRY(tt_optim_set_state(r->x, r->opt[0], 0, "mu_product", r->t[2]));
  TRY(tt_optim_step(r->x, r->opt[0]));
  return TT_OK;
}

/* Optimizers that compute with operators change all parameters or none. */
static tt_status optimizers_of_matrices(Run* r) {
  for (int i = 0; i < 2; i++) {
    MAKE(i, tt_ones(r->x, SHAPE(30, 20), NULL, OUT(i)));
    TRY(tt_requires_grad_(r->x, r->t[i], 1));
  }
  MAKE(2, tt_ones(r->x, SHAPE(30, 20), NULL, OUT(2)));
  for (int i = 0; i < 2; i++) TRY(tt_tensor_set_grad(r->x, r->t[i], r->t[2]));
  TRY(tt_optim_muon(r->x, r->t, 2, NULL, &r->opt[0]));
  TRY(tt_optim_adafactor(r->x, r->t, 2, NULL, &r->opt[1]));
  for (int i = 0; i < 2; i++)
    for (int step = 0; step < 2; step++) TRY(tt_optim_step(r->x, r->opt[i]));
  MAKE(3, tt_optim_get_state(r->x, r->opt[1], 1, "row_var", OUT(3)));
  TRY(tt_optim_set_state(r->x, r->opt[1], 0, "row_var", r->t[3]));
  return TT_OK;
}

static tt_status same_gradient(void* user, tt_ctx* x, const tt_tensor* grad,
                               tt_tensor** replacement) {
  (void)user;
  return tt_mul_f64(x, grad, 1, replacement);
}
static tt_status hooks(Run* r) {
  int64_t id;
  const int before = r->drops;
  tt_status s;
  PART(param_from(r, 0, SHAPE(3)));
  MAKE(1, tt_mul(r->x, r->t[0], r->t[0], OUT(1)));
  s = tt_register_hook(r->x, r->t[1], same_gradient, r, count_drop, &id);
  if (s) assert_int_equal(r->drops, before + 1);
  TRY(s);
  TRY(tt_retain_grad(r->x, r->t[1]));
  MAKE(2, tt_sum(r->x, r->t[1], NULL, OUT(2)));
  PART(tt_backward(r->x, r->t[2], NULL));
  MAKE(3, tt_tensor_grad(r->x, r->t[1], OUT(3)));
  return r->t[3] ? TT_OK : TT_INTERNAL;
}

static tt_status profiled(Run* r) {
  tt_status s;
  TRY(tt_profiler_start(r->x));
  s = from(r, 0, SHAPE(3));
  if (!s) s = tt_neg(r->x, r->t[0], OUT(1));
  if (!s) s = tt_sum(r->x, r->t[1], NULL, OUT(2));
  tt_profiler_stop(r->x);
  return s;
}

static tt_status recorded(Run* r) {
  tt_status s;
  tt_profiler_start_opts o;
  int64_t id = 0;
  memset(&o, 0, sizeof o);
  o.set = 31;
  o.capacity = 64;
  o.record_shapes = o.profile_memory = o.with_flops = o.with_modules = 1;
  TRY(tt_profiler_start_ex(r->x, &o));
  s = tt_profiler_begin(r->x, TT_EVENT_REGION, "region", &id);
  if (!s) s = from(r, 0, SHAPE(3));
  if (!s) s = tt_neg(r->x, r->t[0], OUT(1));
  if (!s) s = tt_sum(r->x, r->t[1], NULL, OUT(2));
  tt_profiler_stop(r->x);
  return s;
}

static tt_status objects(Run* r) {
  tt_generator* g = NULL;
  tt_cancel* k = NULL;
  tt_ctx* x = NULL;
  tt_runtime* rt = NULL;
  tt_status s = tt_generator_new(r->x, 1, &g);
  if (!s) s = tt_cancel_new(r->x, &k);
  if (!s) s = tt_ctx_runtime(r->x, &rt);
  if (!s) s = tt_ctx_new(rt, &x);
  if (!s) s = tt_set_num_threads(r->x, 2);
  if (!s) s = tt_set_num_threads(r->x, 1);
  tt_ctx_release(x);
  tt_runtime_release(rt);
  tt_generator_release(g);
  tt_cancel_release(k);
  return s;
}

/* ---- the driver ---- */

/* Saving: whatever fails, the folder contains only the good file. */
static tt_status save_and_load(Run* r) {
  static const char* const kNames[] = {"turned", "number"};
  char path[64];
  tt_safetensors* f = NULL;
  tt_status s;
  snprintf(path, sizeof path, "/tmp/tt_oom_%ld.safetensors", (long)getpid());
  MAKE(0, from(r, 0, SHAPE(4, 6)));
  MAKE(1, tt_t(r->x, r->t[0], OUT(1)));
  MAKE(2, tt_ones(r->x, NULL, 0, NULL, OUT(2)));
  s = tt_safetensors_save(r->x, path, kNames, &r->t[1], 2, NULL);
  if (!s) s = tt_safetensors_open(r->x, path, &f);
  if (!s) s = tt_safetensors_get(r->x, f, 0, OUT(3));
  tt_safetensors_release(f);
  unlink(path);
  return s;
}

/* The same in PyTorch's format. */
static tt_status save_and_load_torch(Run* r) {
  static const char kText[] =
      "{\"dict\":[[\"a\",{\"list\":[{\"parameter\":\"turned\"},{\"float\":\"0x1.8p+1\"}]}],[1,{"
      "\"tensor\":\"number\"}]]"
      "}";
  char path[64];
  tt_state_dict *state = NULL, *back = NULL;
  tt_status s;
  snprintf(path, sizeof path, "/tmp/tt_oom_%ld.pt", (long)getpid());
  PART(param_from(r, 0, SHAPE(4, 6)));
  MAKE(1, tt_t(r->x, r->t[0], OUT(1)));
  MAKE(2, tt_ones(r->x, NULL, 0, NULL, OUT(2)));
  s = tt_state_dict_new(r->x, &state);
  if (!s) s = tt_state_dict_set(r->x, state, "turned", r->t[1]);
  if (!s) s = tt_state_dict_set(r->x, state, "number", r->t[2]);
  if (!s) s = tt_torch_save(r->x, path, state, kText);
  if (!s) s = tt_torch_load(r->x, path, &back);
  if (!s) s = tt_state_dict_get(r->x, back, 0, OUT(3));
  tt_state_dict_release(state);
  tt_state_dict_release(back);
  unlink(path);
  return s;
}

/* ---- modules ---- */

static tt_status doubled(void* user, tt_ctx* x, tt_module* m, const tt_tensor* const* in, int64_t n,
                         tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)user;
  (void)m;
  (void)n;
  (void)cap;
  (void)n_outs;
  return tt_mul_f64(x, in[0], 2, &outs[0]);
}
static tt_status copied(void* user, tt_ctx* x, void** out) {
  tt_tensor* t = NULL;
  const tt_status s =
      tt_zeros(x, SHAPE(3000), NULL, &t); /* a callback that fails half-way leaks nothing */
  tt_tensor_release(t);
  *out = user;
  return s;
}
static tt_status passed(void* user, tt_ctx* x, tt_module* m, const tt_tensor* const* in, int64_t n,
                        tt_tensor** replacements) {
  (void)user;
  (void)m;
  (void)n;
  return tt_clone(x, in[0], NULL, &replacements[0]);
}
static tt_status gradients(void* user, tt_ctx* x, tt_module* m, const tt_tensor* const* in,
                           int64_t n_in, const tt_tensor* const* outs, int64_t n_outs,
                           tt_tensor** replacements) {
  (void)in;
  (void)n_in;
  return outs[0] ? passed(user, x, m, outs, n_outs, replacements) : TT_OK;
}
static tt_status build_tree(Run* r, tt_module** net) {
  const tt_module_def def = {sizeof def, "A module whose name is longer than what fits inline",
                             r,          doubled,
                             copied,     count_drop};
  tt_module* layer;
  TRY(tt_nn_sequential(r->x, net));
  TRY(tt_nn_linear(r->x, 60, 60, NULL, &layer));
  PART(add_to(r, *net, layer));
  TRY(tt_module_new_custom(r->x, &def, &layer));
  PART(add_to(r, *net, layer));
  TRY(tt_nn_batch_norm1d(r->x, 60, NULL, &layer));
  PART(add_to(r, *net, layer)); /* the tree owns it */
  TRY(tt_module_register_full_backward_pre_hook(r->x, layer, passed, r, count_drop, NULL));
  TRY(tt_module_register_full_backward_hook(r->x, layer, gradients, r, count_drop, NULL));
  TRY(tt_module_register_full_backward_hook(r->x, *net, gradients, r, count_drop,
                                            NULL)); /* whose input needs no gradient */
  return tt_module_register_forward_pre_hook(r->x, layer, passed, r, count_drop, NULL);
}
static tt_status modules(Run* r) {
  PART(build_tree(r, &r->m[0]));
  MAKE(0, tt_ones(r->x, SHAPE(60, 60), NULL, OUT(0)));
  MAKE(1, tt_module_call(r->x, r->m[0], r->t[0], OUT(1)));
  MAKE(2, tt_sum(r->x, r->t[1], NULL, OUT(2)));
  PART(tt_backward(r->x, r->t[2], NULL));
  TRY(tt_module_copy(r->x, r->m[0], &r->m[1]));
  TRY(tt_module_state_dict(r->x, r->m[1], &r->dict[0]));
  TRY(tt_module_load_state_dict(r->x, r->m[0], r->dict[0], NULL));
  TRY(tt_module_to(r->x, r->m[0], NULL, TT_F64));
  TRY(tt_module_zero_grad(r->x, r->m[0]));
  return TT_OK;
}

static tt_status multihead_attention(Run* r) {
  const tt_nn_multihead_attention_opts drops = {.set = TT_NN_MULTIHEAD_ATTENTION_DROPOUT,
                                                .dropout = 0.25};
  const tt_nn_multihead_attention_forward_opts o = {
      .set = TT_NN_MULTIHEAD_ATTENTION_FORWARD_KEY_PADDING_MASK, .key_padding_mask = NULL};
  TRY(tt_nn_multihead_attention(r->x, 32, 4, &drops, &r->m[0]));
  MAKE(0, tt_randn(r->x, SHAPE(6, 5, 32), NULL, OUT(0)));
  TRY(tt_nn_multihead_attention_forward(r->x, r->m[0], r->t[0], r->t[0], r->t[0], &o, OUT(1),
                                        OUT(2)));
  MAKE(3, tt_sum(r->x, r->t[1], NULL, OUT(3)));
  return tt_backward(r->x, r->t[3], NULL);
}

static tt_status checkpoint(Run* r) {
  char path[64];
  tt_tensor* params[2] = {NULL, NULL};
  int64_t n;
  tt_status s;
  snprintf(path, sizeof path, "/tmp/tt_oom_checkpoint_%ld", (long)getpid());
  TRY(tt_nn_linear(r->x, 40, 40, NULL, &r->m[0]));
  TRY(tt_module_parameters(r->x, r->m[0], params, 2, &n));
  s = tt_optim_sgd(r->x, params, n, NULL, &r->opt[0]);
  tt_tensor_release(params[0]);
  tt_tensor_release(params[1]);
  PART(s);
  TRY(tt_lr_exponential(r->x, r->opt[0], 0.5, NULL, &r->sched[0]));
  TRY(tt_state_dict_new(r->x, &r->dict[0]));
  MAKE(0, tt_ones(r->x, SHAPE(50), NULL, OUT(0)));
  TRY(tt_state_dict_set(r->x, r->dict[0], "ones", r->t[0]));
  {
    const tt_checkpoint parts = {sizeof parts, r->m[0], r->opt[0], r->sched[0], NULL, r->dict[0]};
    s = tt_checkpoint_save(r->x, path, &parts);
    if (!s) {
      const Before was = watch(r);
      s = tt_checkpoint_load(r->x, path, &parts);
      end_watch(r, was, s, "tt_checkpoint_load");
    }
  }
  unlink(path);
  return s;
}

static tt_status exchanged(Run* r) {
  void* managed = NULL;
  MAKE(0, from(r, 0, SHAPE(1, 2, 1, 2, 1, 3)));
  TRY(tt_tensor_to_dlpack(r->x, r->t[0], 1, &managed));
  const tt_status s = tt_tensor_from_dlpack(r->x, managed, 1, OUT(1));
  if (s)
    ((void (**)(void*))managed)[2](
        managed); /* still owned by the test: version, context, then the deleter */
  return s;
}

/* A registered device: it implements neg, other operators fall back to the CPU. */
static void* ext_take(void* user, int64_t bytes) {
  (void)user;
  return malloc((size_t)bytes);
}
static void ext_give(void* user, void* p, int64_t bytes) {
  (void)user;
  (void)bytes;
  free(p);
}
static tt_status ext_move(void* user, tt_ctx* x, void* dst, const void* src, int64_t bytes,
                          int32_t kind) {
  (void)user;
  (void)x;
  (void)kind;
  memcpy(dst, src, (size_t)bytes);
  return TT_OK;
}
static tt_status ext_negate(void* user, tt_ctx* x, const tt_op* op, const tt_value* args,
                            int64_t n_args, tt_tensor** outs, int64_t n_outs) {
  const tt_tensor* in = n_args == 1 ? args[0].tensor : NULL;
  int64_t i;
  (void)user;
  (void)n_outs;
  if (strcmp(tt_op_name(op), "neg") || !tt_tensor_is_contiguous(in) ||
      tt_tensor_dtype(in) != TT_F32)
    return TT_NOT_IMPLEMENTED;
  PART(tt_empty_like(x, in, NULL, &outs[0]));
  for (i = 0; i < tt_tensor_numel(in); i++)
    ((float*)tt_tensor_data(outs[0]))[i] = -((const float*)tt_tensor_data(in))[i];
  return TT_OK;
}
static const tt_backend_def kPlain = {.struct_size = sizeof kPlain,
                                      .name = "plain",
                                      .alloc = ext_take,
                                      .free = ext_give,
                                      .copy = ext_move,
                                      .compute = ext_negate};
static tt_status on_plain(Run* r, tt_device* device) {
  const tt_status s = tt_device_parse(r->x, "plain", device);
  return s == TT_OK ? s : tt_backend_register(r->x, &kPlain, device);
}
/* Parameters on a registered device, one not dense, one with other strides than its gradient. */
static tt_status train_on_backend(Run* r) {
  tt_to_opts there = {.set = TT_TO_DEVICE};
  tt_tensor* params[3];
  int i, step;
  PART(on_plain(r, &there.device));
  PART(from(r, 0, SHAPE(4, 6)));
  MAKE(1, tt_to(r->x, r->t[0], &there, OUT(1)));
  MAKE(2, tt_clone(r->x, r->t[1], NULL, OUT(2)));
  MAKE(3, tt_slice(r->x, r->t[2], 1, &(tt_slice_opts){.set = TT_SLICE_STEP, .step = 2}, OUT(3)));
  MAKE(4, tt_slice(r->x, r->t[2], 1,
                   &(tt_slice_opts){.set = TT_SLICE_STEP | TT_SLICE_START, .step = 2, .start = 1},
                   OUT(4)));
  MAKE(5, tt_clone(r->x, r->t[3], NULL, OUT(5)));
  MAKE(6, tt_view(r->x, r->t[1], SHAPE(6, 4), OUT(6)));
  MAKE(7, tt_t(r->x, r->t[6], OUT(7)));
  params[0] = r->t[1];
  params[1] = r->t[3];
  params[2] = r->t[4];
  for (i = 0; i < 3; i++) {
    tt_tensor* leaf;
    TRY(tt_detach(r->x, params[i], &leaf));
    params[i] = r->t[10 + i] = leaf;
    TRY(tt_requires_grad_(r->x, leaf, 1));
    TRY(tt_tensor_set_grad(r->x, leaf, i ? r->t[5] : r->t[7]));
  }
  TRY(tt_optim_adamw(r->x, params, 3, NULL, &r->opt[0]));
  for (step = 0; step < 2; step++) {
    TRY(tt_clip_grad_value_(r->x, params, 3, 5));
    MAKE(8, tt_clip_grad_norm_(r->x, params, 3, 0.5, NULL, OUT(8)));
    TRY(tt_optim_step(r->x, r->opt[0]));
    release_range(r, 8, 9);
  }
  TRY(tt_optim_zero_grad(r->x, r->opt[0], 0));
  return TT_OK;
}
static tt_status on_backend(Run* r) {
  tt_to_opts there = {.set = TT_TO_DEVICE};
  tt_to_opts home = {.set = TT_TO_DEVICE, .device = {TT_CPU, 0}};
  tt_live_row rows[32];
  int64_t n;
  PART(on_plain(r, &there.device));
  MAKE(0, from(r, 0, SHAPE(4, 6)));
  MAKE(1, tt_to(r->x, r->t[0], &there, OUT(1)));
  TRY(tt_requires_grad_(r->x, r->t[1], 1));
  MAKE(2, tt_neg(r->x, r->t[1], OUT(2)));
  MAKE(3, tt_transpose(r->x, r->t[2], 0, 1, OUT(3)));
  MAKE(4, tt_matmul(r->x, r->t[2], r->t[3], OUT(4)));
  MAKE(5, tt_softmax(r->x, r->t[4], 0, NULL, OUT(5)));
  MAKE(6, tt_sum(r->x, r->t[5], NULL, OUT(6)));
  PART(tt_backward(r->x, r->t[6], NULL));
  MAKE(7, tt_tensor_grad(r->x, r->t[1], OUT(7)));
  TRY(tt_add_(r->x, r->t[7], r->t[7]));
  MAKE(8, tt_to(r->x, r->t[7], &home, OUT(8)));
  return tt_runtime_live(r->x, rows, 32, &n);
}

static const struct {
  const char* name;
  Scenario run;
} kScenarios[] = {
    {"backend", on_backend},
    {"creation", creation},
    {"elementwise", elementwise},
    {"broadcast", broadcast},
    {"images", images},
    {"reductions", reductions},
    {"huge_windows", huge_windows},
    {"products", products},
    {"views", views},
    {"indexing", indexing},
    {"in place", in_place},
    {"in place on a view", in_place_on_view},
    {"backward", backward},
    {"second derivative", second_derivative},
    {"training of a convolutional net", train_conv_net},
    {"attention", attention},
    {"order", order},
    {"custom function", custom_function},
    {"custom operator", custom_op},
    {"scopes", in_scopes},
    {"rand in a full scope", rand_in_full_scope},
    {"dropout in a full scope", dropout_in_full_scope},
    {"batch_norm in a full scope", batch_norm_in_full_scope},
    {"clip_grad_norm_ in a full scope", clip_in_full_scope},
    {"a closure in a full scope", closure_in_full_scope},
    {"a module's call in a full scope", module_call_in_full_scope},
    {"a module's forward in a full scope", module_forward_in_full_scope},
    {"draws", draws},
    {"training on a backend", train_on_backend},

    {"import", import},
    {"loss and step", loss_and_step},
    {"hooks", hooks},
    {"conv", conv},
    {"optimizer step", optimizer_step},
    {"numbers of an optimizer", optimizer_numbers},
    {"optimizers of matrices", optimizers_of_matrices},
    {"profiler", profiled},
    {"profiler events", recorded},
    {"objects", objects},
    {"save and load", save_and_load},
    {"save and load PyTorch's", save_and_load_torch},
    {"modules", modules},
    {"multihead attention", multihead_attention},
    {"checkpoint", checkpoint},
    {"exchange", exchanged},
};

static tt_status run_once(Scenario s, tt_ctx* x, tt_ctx* watcher) {
  Run r;
  tt_status st;
  int i;
  memset(&r, 0, sizeof r);
  r.x = x;
  r.watcher = watcher;
  st = s(&r);
  for (i = 0; i < kTensors; i++) tt_tensor_release(r.t[i]);
  for (i = 0; i < kObjects; i++) {
    tt_scheduler_release(r.sched[i]);
    tt_optim_release(r.opt[i]);
    tt_module_release(r.m[i]);
    tt_generator_release(r.g[i]);
    tt_state_dict_release(r.dict[i]);
  }
  return st;
}
static int is_oom(const tt_ctx* x, tt_status s) {
  const tt_error* e = tt_ctx_error(x);
  return s == TT_OOM || (s == TT_CALLBACK && e->cause &&
                         (e->cause->code == TT_OOM || e->cause->code == TT_CALLBACK));
}

static int runs;

/* Returns the number of failed allocations: 0 if k is past the last one. */
static int64_t fail_kth(Scenario run, const char* name, int64_t k, int64_t fail_n) {
  const tt_allocator a = host_allocator(&host);
  const tt_runtime_opts opts = {.struct_size = sizeof opts, .allocator = &a};
  tt_runtime* rt;
  tt_ctx* watcher;
  tt_status s;
  int64_t failed;
  runs++;
  assert_int_equal(tt_runtime_new(&opts, &rt), TT_OK);
  assert_int_equal(tt_ctx_new(rt, &c), TT_OK);
  assert_int_equal(tt_ctx_new(rt, &watcher), TT_OK);
  assert_int_equal(tt_manual_seed(c, 0), TT_OK);
  host.fail_at = host.calls + k;
  host.fail_n = fail_n;
  s = run_once(run, c, watcher);
  failed = host.failed;
  host.fail_at = 0;
  if (s && !is_oom(c, s)) {
    print_error("%s, allocation %lld: %s: %s\n", name, (long long)k, tt_status_name(s),
                tt_ctx_error(c)->message);
    fail();
  }
  if (!failed && s) fail_msg("%s fails without a failing allocation", name);
  s = run_once(run, c, watcher);
  if (s) {
    print_error("%s after a failure of allocation %lld: %s: %s\n", name, (long long)k,
                tt_status_name(s), tt_ctx_error(c)->message);
    fail();
  }
  tt_ctx_release(c);
  tt_ctx_release(watcher);
  tt_runtime_release(rt);
  if (host.blocks)
    fail_msg("%s, allocation %lld: %lld blocks leak", name, (long long)k, (long long)host.blocks);
  return failed;
}

static void test_scenario(void** state) {
  const int i = (int)(intptr_t)*state;
  static const int64_t kFail[] = {1, 2, 0};
  int mode;
  for (mode = 0; mode < 3; mode++) {
    int64_t k = 1 + mode % share();
    while (fail_kth(kScenarios[i].run, kScenarios[i].name, k, kFail[mode])) k += share();
#if TT_CHECKED
    assert_true(k > 2); /* every block is an allocation here */
#endif
  }
}

/* Runtimes and ctxs themselves. */
static void test_birth(void** state) {
  int64_t k, failed = 1;
  (void)state;
  for (k = 1; failed; k++) {
    const tt_allocator a = host_allocator(&host);
    const tt_runtime_opts opts = {.struct_size = sizeof opts, .allocator = &a, .threads = 2};
    tt_runtime* rt = NULL;
    tt_ctx* x = NULL;
    tt_status s;
    host.fail_at = k;
    s = tt_runtime_new(&opts, &rt);
    assert_true(s == TT_OK || (s == TT_OOM && !rt));
    if (!s) s = tt_ctx_new(rt, &x);
    assert_true(s == TT_OK || (s == TT_OOM && !x));
    failed = host.failed;
    tt_ctx_release(x);
    tt_runtime_release(rt);
    assert_int_equal(host.blocks, 0);
  }
  assert_true(k > 3);
}

int main(int argc, char** argv) {
  enum { kN = sizeof kScenarios / sizeof *kScenarios };
  struct CMUnitTest tests[kN + 1];
  int i, n = 0;
  memset(tests, 0, sizeof tests);
  for (i = 0; i < kN; i++) {
    if (argc > 1 && strcmp(argv[1], kScenarios[i].name)) continue;
    tests[n].name = kScenarios[i].name;
    tests[n].test_func = test_scenario;
    tests[n++].initial_state = (void*)(intptr_t)i;
  }
  tests[n].name = "birth";
  tests[n++].test_func = test_birth;
  i = _cmocka_run_group_tests("oom", tests, (size_t)n, NULL, NULL);
  print_message("%d scenarios, %d runs\n", n, runs);
  return i;
}
