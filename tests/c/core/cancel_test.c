/* A cancellation ends a call between kernels or parts of a long kernel, but never leaves a half-
   committed result: an executor requests it in the k-th parallel region, for every k. */
#include "harness.h"

enum { kLength = 70000, kMany = 4 };

static tt_cancel* token;
static int regions, cancel_in; /* counted while a token is watched (cancel_in >= 0) */

static int32_t exec_threads(void* user) {
  (void)user;
  return 2;
}
static int32_t exec_for(void* user, int64_t n, int64_t grain, tt_range_fn body, void* body_ctx) {
  int64_t i;
  (void)user;
  for (i = 0; i < n; i += grain) body(body_ctx, i, i + grain < n ? i + grain : n);
  if (cancel_in >= 0 && ++regions == cancel_in) tt_cancel_request(token);
  return 0;
}

static int open_executor(void** state) {
  const tt_allocator a = host_allocator(&host);
  const tt_executor e = {sizeof e, NULL, exec_threads, exec_for};
  const tt_runtime_opts opts = {.struct_size = sizeof opts, .allocator = &a, .executor = &e};
  tt_runtime* rt;
  (void)state;
  if (tt_runtime_new(&opts, &rt) || tt_ctx_new(rt, &c) || tt_manual_seed(c, 0)) return -1;
  tt_runtime_release(rt);
  return tt_scope_push(c) ? -1 : 0;
}
#define CANCELLED(f) cmocka_unit_test_setup_teardown(f, open_executor, close_ctx)

static void watch(int at) {
  OK(tt_cancel_new(c, &token));
  OK(tt_ctx_set_cancel(c, token));
  regions = 0;
  cancel_in = at;
}
static void unwatch(void) {
  cancel_in = -1;
  OK(tt_ctx_set_cancel(c, NULL));
  tt_cancel_release(token);
}

/* ---- one long kernel ---- */

static void test_long_kernel(void** state) {
  const tt_zeros_opts bytes = {.set = TT_ZEROS_DTYPE, .dtype = TT_U8};
  tt_tensor *a, *out;
  (void)state;
  OK(tt_zeros(c, SHAPE(70 << 20), &bytes, &a)); /* 2240 ranges */
  regions = cancel_in = 0;
  OK(tt_bitwise_not(c, a, &out));
  assert_int_equal(regions, 1); /* it cannot be cancelled */
  watch(0);
  OK(tt_bitwise_not(c, a, &out));
  assert_int_equal(regions, 3);
  assert_int_equal(((const uint8_t*)tt_tensor_data(out))[(70 << 20) - 1], 255);
  assert_int_equal(((const uint8_t*)tt_tensor_data(out))[40 << 20], 255);
  unwatch();
  watch(2);
  FAILS(tt_bitwise_not(c, a, &out), TT_CANCELLED, "bitwise_not: cancelled");
  assert_int_equal(regions, 2);
  assert_null(out);
  unwatch();
}

static void cancel_product(tt_dtype dtype, int64_t batch, int64_t rows, int64_t depth) {
  const tt_full_opts of = {.set = TT_FULL_DTYPE, .dtype = dtype};
  tt_tensor *a, *b, *out;
  int whole;
  OK(tt_full_f64(c, SHAPE(1, rows, depth), 1, &of, &a));
  OK(tt_expand(c, a, SHAPE(batch, rows, depth), &a));
  OK(tt_transpose(c, a, 1, 2, &b));
  watch(0);
  OK(tt_matmul(c, a, b, &out));
  whole = regions;
  unwatch();
  watch(2);
  FAILS(tt_matmul(c, a, b, &out), TT_CANCELLED, "matmul: cancelled by the application");
  assert_true(regions < whole);
  assert_null(out);
  unwatch();
}
static void test_long_product(void** state) {
  (void)state;
  cancel_product(TT_F32, 1, 512, 2100); /* several passes over the inner dimension */
  if (SLOW_BUILD) return;
  cancel_product(TT_C64, 1, 512, 1100);
  cancel_product(TT_F32, 1, 40, 1000000); /* pieces of it */
  cancel_product(TT_F32, 3000, 64, 100);  /* small ones */
  cancel_product(TT_F32, 60, 8, 300000);  /* rows */
}

/* ---- what a call commits ---- */

typedef struct Scene {
  tt_tensor* changed[kMany]; /* by the call: every element */
  int n;
  tt_tensor* params[kMany];
  tt_tensor* input;
  tt_optimizer* optimizer;
  tt_module* module;
  tt_state_dict* values;
} Scene;

static tt_tensor* filled(double value) {
  tt_tensor* t;
  OK(tt_full_f64(c, SHAPE(kLength), value, NULL, &t));
  return t;
}
static void add_param(Scene* s, tt_tensor* t) {
  tt_tensor* grad;
  OK(tt_requires_grad_(c, t, 1));
  OK(tt_full_like_f64(c, t, 4, NULL, &grad));
  OK(tt_tensor_set_grad(c, t, grad));
  s->params[s->n++] = t;
}

static void build_step(Scene* s) {
  const tt_optim_sgd_opts o = {
      .set = TT_OPTIM_SGD_LR | TT_OPTIM_SGD_MOMENTUM, .lr = 0.5, .momentum = 0.5};
  const tt_slice_opts half = {.set = TT_SLICE_STEP, .step = 2};
  tt_tensor *view, *apart;
  OK(tt_full_f64(c, SHAPE(2 * kLength), 1, NULL, &view));
  OK(tt_slice(c, view, 0, &half, &view));
  OK(tt_detach(c, view, &apart)); /* not dense: computed elsewhere, then copied back */
  add_param(s, apart);
  add_param(s, filled(1));
  OK(tt_optim_sgd(c, s->params, s->n, &o, &s->optimizer));
  memcpy(s->changed, s->params, sizeof s->params);
}
static tt_status step(Scene* s) { return tt_optim_step(c, s->optimizer); }

static void build_clip(Scene* s) {
  int i;
  for (i = 0; i < 3; i++) {
    add_param(s, filled(i + 1));
    s->changed[i] = grad_of(s->params[i]);
  }
}
static tt_status clip_value(Scene* s) { return tt_clip_grad_value_(c, s->params, s->n, 2); }
static tt_status clip_norm(Scene* s) {
  tt_tensor* total;
  return tt_clip_grad_norm_(c, s->params, s->n, 1, NULL, &total);
}

static void build_load(Scene* s) {
  OK(tt_nn_layer_norm(c, SHAPE(kLength), NULL, &s->module));
  OK(tt_module_get_tensor(c, s->module, "weight", &s->changed[s->n++]));
  OK(tt_module_get_tensor(c, s->module, "bias", &s->changed[s->n++]));
  OK(tt_state_dict_new(c, &s->values));
  OK(tt_state_dict_set(c, s->values, "weight", filled(7)));
  OK(tt_state_dict_set(c, s->values, "bias", filled(8)));
}
static tt_status load(Scene* s) { return tt_module_load_state_dict(c, s->module, s->values, NULL); }

static void build_running(Scene* s) {
  s->changed[0] = filled(5);
  s->changed[1] = filled(6);
  s->n = 2;
  OK(tt_full_f64(c, SHAPE(2, kLength), 3, NULL, &s->input));
}
static tt_status running(Scene* s) {
  const tt_batch_norm_opts o = {.set = TT_BATCH_NORM_TRAINING, .training = 1};
  tt_tensor* out;
  return tt_batch_norm(c, s->input, s->changed[0], s->changed[1], NULL, NULL, &o, &out);
}

/* Gradients of the leaves are whole, but a cancelled backward may have added to some of them. */
static void build_backward(Scene* s) {
  build_clip(s);
  OK(tt_mul(c, s->params[0], s->params[1], &s->input));
  OK(tt_add(c, s->input, s->params[2], &s->input));
  OK(tt_sum(c, s->input, NULL, &s->input));
  OK(tt_add_f64(c, s->input, 1, &s->input));
}
static tt_status backward(Scene* s) { return tt_backward(c, s->input, NULL); }

/* 1: its elements are unchanged; 2: none is. */
static int change_of(const tt_tensor* t, const double* before) {
  const int64_t n = tt_tensor_numel(t);
  double* now = values_of(t);
  int64_t i, changed = 0;
  for (i = 0; i < n; i++) changed += now[i] != before[i];
  free(now);
  assert_true(changed == 0 || changed == n);
  return changed ? 2 : 1;
}

static tt_status cancelled_in(int region, void (*build)(Scene* s), tt_status (*act)(Scene* s),
                              int some) {
  Scene s = {.n = 0};
  double* before[kMany];
  int i, seen = 0;
  tt_status status;
  OK(tt_scope_push(c));
  build(&s);
  for (i = 0; i < s.n; i++) before[i] = values_of(s.changed[i]);
  watch(region);
  status = act(&s);
  unwatch();
  for (i = 0; i < s.n; i++) {
    seen |= change_of(s.changed[i], before[i]);
    free(before[i]);
  }
  if (status == TT_OK) assert_int_equal(seen, 2);
  else assert_true(status == TT_CANCELLED && (seen == 1 || some));
  tt_optim_release(s.optimizer);
  tt_module_release(s.module);
  tt_state_dict_release(s.values);
  OK(tt_scope_pop(c, NULL, 0));
  return status;
}

static void test_commits_are_whole(void** state) {
  static const struct {
    void (*build)(Scene* s);
    tt_status (*act)(Scene* s);
    int some, regions; /* at least */
  } kScenes[] = {{build_step, step, 0, 2},       {build_clip, clip_value, 0, 3},
                 {build_clip, clip_norm, 0, 2},  {build_load, load, 0, 2},
                 {build_running, running, 0, 4}, {build_backward, backward, 1, 4}};
  size_t i;
  int k;
  (void)state;
  for (i = 0; i < sizeof kScenes / sizeof *kScenes; i++) {
    for (k = 1; k == 1 || regions >= k - 1; k++)
      (void)cancelled_in(k, kScenes[i].build, kScenes[i].act, kScenes[i].some);
    assert_true(k > kScenes[i].regions);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {CANCELLED(test_long_kernel), CANCELLED(test_long_product),
                                     CANCELLED(test_commits_are_whole)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
