/* Passes and tiles: graphs get smaller, and their plans give the bits of the operators. */
#include "harness.h"

#include <math.h>

enum { kN = 5003, kMaxValues = 40 };

static tt_tensor* ramp(int64_t n) {
  const tt_scalar begin = {.kind = TT_SCALAR_FLOAT},
                  end = {.kind = TT_SCALAR_FLOAT, .re = (double)n};
  tt_tensor* t;
  OK(tt_arange(c, &begin, &end, NULL, &t));
  OK(tt_mul_f64(c, t, 0.37, &t));
  OK(tt_sin(c, t, &t));
  return t;
}

static int64_t count(const tt_graph* g) {
  tt_graph_info info;
  OK(tt_graph_get_info(c, g, &info));
  return info.n_nodes;
}

static tt_graph* optimize(const tt_graph* g, uint64_t passes) {
  const tt_graph_optimize_opts opts = {.set = TT_GRAPH_OPTIMIZE_PASSES, .passes = passes};
  tt_graph* out;
  OK(tt_graph_optimize(c, g, &opts, &out));
  return out;
}

static void same_bits(const tt_tensor* a, const tt_tensor* b) {
  const int64_t bytes = tt_tensor_numel(a) * tt_dtype_size(tt_tensor_dtype(a));
  char *x = malloc((size_t)bytes + 1), *y = malloc((size_t)bytes + 1);
  assert_int_equal(tt_tensor_numel(a), tt_tensor_numel(b));
  OK(tt_tensor_read(c, a, x, bytes));
  OK(tt_tensor_read(c, b, y, bytes));
  assert_memory_equal(x, y, (size_t)bytes);
  free(x);
  free(y);
}

/* Runs a plan of g on x and compares its outputs. The arena is full of nan before each run, so that
   memory that overlaps, or that nothing wrote, shows. The last run is in slices of one step. */
static void check_replay(const tt_graph* g, const tt_tensor* x, tt_tensor** want, int64_t n) {
  tt_plan_opts opts = {.set = TT_PLAN_ARENA | TT_PLAN_ARENA_BYTES};
  tt_plan* p;
  tt_tensor* slot;
  int64_t i;
  int32_t done;
  int run;
  OK(tt_scope_push(c));
  OK(tt_graph_arena_bytes(c, g, &opts.arena_bytes));
  opts.arena = aligned_alloc(64, (size_t)opts.arena_bytes);
  OK(tt_plan_new(c, g, &opts, &p));
  for (run = 0; run < 3; run++) {
    memset(opts.arena, 0xff, (size_t)opts.arena_bytes);
    OK(tt_plan_slot(c, p, 0, 0, &slot));
    OK(tt_copy_(c, slot, x));
    for (done = 0; run == 2 && !done;) OK(tt_plan_run_for(c, p, 0, &done));
    if (run < 2) OK(tt_plan_run(c, p));
    for (i = 0; i < n; i++) {
      OK(tt_plan_slot(c, p, 1, i, &slot));
      same_bits(slot, want[i]);
    }
  }
  OK(tt_scope_pop(c, NULL, 0));
  tt_plan_release(p);
  free_aligned(opts.arena);
}

static uint32_t dice(uint32_t* seed, uint32_t n) {
  *seed = *seed * 1664525u + 1013904223u;
  return (*seed >> 16) % n;
}

/* A random program of elementwise operators, in place and not, with views, sums and comparisons. */
static int64_t random_program(uint32_t seed, tt_tensor* x, tt_tensor** outs) {
  tt_tensor* v[kMaxValues];
  int n = 0, i;
  v[n++] = x;
  OK(tt_mul_f64(c, x, 0.5, &v[n++]));
  for (i = 0; i < 24; i++) {
    tt_tensor *a = v[dice(&seed, (uint32_t)n)], *b = v[dice(&seed, (uint32_t)n)], *t, *u;
    switch (dice(&seed, 9)) {
      case 0: OK(tt_add(c, a, b, &v[n++])); break;
      case 1: OK(tt_tanh(c, a, &v[n++])); break;
      case 2: OK(tt_mul(c, a, b, &v[n++])); break;
      case 3: OK(tt_relu(c, a, &v[n++])); break;
      case 4:
        OK(tt_gt(c, a, b, &t));
        OK(tt_where(c, t, a, b, &v[n++]));
        break;
      case 5:
        if (a != x) OK(tt_add_(c, a, b));
        break;
      case 6:
        OK(tt_clone(c, a, NULL, &t));
        OK(tt_narrow(c, t, 0, (int64_t)dice(&seed, 8), 3000, &u));
        OK(tt_mul_f64_(c, u, 1.5));
        v[n++] = t;
        break;
      case 7:
        OK(tt_sum(c, a, NULL, &t));
        OK(tt_add(c, a, t, &v[n++]));
        break;
      default: OK(tt_sub_f64(c, a, 0.25, &v[n++])); break;
    }
    OK(tt_tanh(c, v[n - 1], &t));
    v[n - 1] = v[n - 1] == x ? v[n - 1] : t;
  }
  outs[0] = v[n - 1];
  outs[1] = v[n / 2];
  return 2;
}

static void test_random_programs(void** state) {
  uint32_t seed;
  const uint32_t n_programs = SLOW_BUILD ? 10 : 40;
  (void)state;
  for (seed = 1; seed <= n_programs; seed++) {
    tt_tensor *x, *y, *outs[2], *want[2];
    tt_graph *g, *small;
    int64_t n;
    OK(tt_scope_push(c));
    x = ramp(kN);
    OK(tt_neg(c, x, &y));
    n = random_program(seed, y, want);
    OK(tt_capture_begin(c, LIST(x), NULL));
    random_program(seed, x, outs);
    OK(tt_capture_end(c, (const tt_tensor* const*)outs, n, &g));
    check_replay(g, y, want, n);
    small = optimize(g, TT_PASS_DCE | TT_PASS_CSE | TT_PASS_FOLD);
    assert_true(count(small) <= count(g));
    check_replay(small, y, want, n);
    tt_graph_release(g);
    tt_graph_release(small);
    OK(tt_scope_pop(c, NULL, 0));
  }
}

static void test_dead_and_common(void** state) {
  tt_tensor *x = ramp(6), *a, *b, *dead, *y;
  tt_graph *g, *less, *least, *none;
  (void)state;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_exp(c, x, &a));
  OK(tt_exp(c, x, &b));
  OK(tt_tanh(c, x, &dead));
  OK(tt_add_f64_(c, dead, 1));
  OK(tt_add(c, a, b, &y));
  OK(tt_capture_end(c, LIST(y), &g));
  assert_int_equal(count(g), 5);
  less = optimize(g, TT_PASS_DCE);
  assert_int_equal(count(less), 3);
  OK(tt_graph_optimize(c, g, NULL, &least));
  assert_int_equal(count(least), 2);
  assert_int_equal(count(g), 5);
  check_replay(least, x, &y, 1);
  FAILS(tt_graph_optimize(
            c, g, &(tt_graph_optimize_opts){.set = TT_GRAPH_OPTIMIZE_PASSES, .passes = 355}, &none),
        TT_INVALID_ARG, "no pass");
  tt_graph_release(g);
  tt_graph_release(less);
  tt_graph_release(least);
}

/* Random numbers are drawn whether or not they are read; equal calls whose results are written in
   place stay separate. */
static void test_effects_stay(void** state) {
  tt_tensor *x = ramp(6), *d, *a, *b, *total = ramp(6);
  tt_graph *g, *less;
  (void)state;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_rand(c, SHAPE(6), NULL, &d));
  OK(tt_exp(c, x, &a));
  OK(tt_exp(c, x, &b));
  OK(tt_add_f64_(c, b, 1));
  OK(tt_add_(c, total, b));
  OK(tt_capture_end(c, LIST(a), &g));
  OK(tt_graph_optimize(c, g, NULL, &less));
  assert_int_equal(count(less), count(g));
  tt_graph_release(g);
  tt_graph_release(less);
}

static void test_fold(void** state) {
  tt_tensor *x = ramp(6), *w = ramp(6), *t, *y;
  tt_graph *g, *less;
  (void)state;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_exp(c, w, &t));
  OK(tt_view(c, t, SHAPE(3, 2), &t));
  OK(tt_transpose(c, t, 0, 1, &t));
  OK(tt_reshape(c, t, SHAPE(6), &t));
  OK(tt_mul(c, x, t, &y));
  OK(tt_capture_end(c, LIST(y), &g));
  less = optimize(g, TT_PASS_FOLD);
  assert_int_equal(count(less), 1);
  check_replay(less, x, &y, 1);
  tt_graph_release(g);
  tt_graph_release(less);
}

static void test_norm_into_conv(void** state) {
  tt_tensor *x, *w, *mean, *var, *weight, *bias, *h, *y, *slot;
  tt_graph *g, *less;
  tt_plan* p;
  int64_t k, n;
  (void)state;
  OK(tt_view(c, ramp(2 * 3 * 5 * 5), SHAPE(2, 3, 5, 5), &x));
  OK(tt_view(c, ramp(4 * 3 * 3 * 3), SHAPE(4, 3, 3, 3), &w));
  mean = ramp(4);
  OK(tt_exp(c, ramp(4), &var));
  weight = ramp(4);
  bias = ramp(4);
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_conv2d(c, x, w, NULL, NULL, &h));
  OK(tt_batch_norm(c, h, mean, var, weight, bias, NULL, &h));
  OK(tt_relu(c, h, &y));
  OK(tt_capture_end(c, LIST(y), &g));
  less = optimize(g, TT_PASS_NORM);
  assert_int_equal(count(less), count(g) - 1);
  OK(tt_plan_new(c, less, NULL, &p));
  OK(tt_plan_slot(c, p, 0, 0, &slot));
  OK(tt_copy_(c, slot, x));
  OK(tt_plan_run(c, p));
  OK(tt_plan_slot(c, p, 1, 0, &slot));
  n = tt_tensor_numel(y);
  for (k = 0; k < n; k++)
    assert_true(fabsf(((float*)tt_tensor_data(y))[k] - ((float*)tt_tensor_data(slot))[k]) < 1e-5f);
  tt_plan_release(p);
  tt_graph_release(g);
  tt_graph_release(less);
}

/* How many nodes of g call an operator. */
static int calls_of(const tt_graph* g, const char* op) {
  tt_graph_info info;
  int64_t i;
  int n = 0;
  OK(tt_graph_get_info(c, g, &info));
  for (i = 0; i < info.n_nodes; i++) {
    tt_graph_node node;
    OK(tt_graph_get_node(c, g, i, &node));
    n += !strcmp(node.name, op);
  }
  return n;
}
/* The first position of an operator in the text of g. */
static int64_t place_of(const tt_graph* g, const char* op) {
  static char text[1 << 16];
  int64_t n;
  const char* at;
  OK(tt_graph_print(c, g, text, sizeof text, &n));
  at = strstr(text, op);
  assert_non_null(at);
  return at - text;
}

/* Numbers with nan, zeros of both signs, and windows without a positive element. */
static tt_tensor* odd_image(int turn) {
  tt_tensor *t, *x = ramp(2 * 3 * 9 * 9);
  float* v = tt_tensor_data(x);
  int64_t i;
  for (i = 0; i < tt_tensor_numel(x); i++) {
    const int64_t k = i * 7 + turn;
    if (k % 5 == 0) v[i] = k % 2 ? 0.0f : -0.0f;
    if (k % 83 == 0) v[i] = NAN;
    if (i % 81 > 40 && v[i] > 0) v[i] = -v[i];
  }
  OK(tt_view(c, x, SHAPE(2, 3, 9, 9), &t));
  return t;
}

/* relu, pooling and the gradient of x; x is a result, so that its gradient is one. */
static void pooled(tt_tensor* x, const tt_max_pool2d_opts* o, int64_t kernel, tt_tensor** outs) {
  tt_tensor *leaf, *h, *y;
  OK(tt_mul_f64(c, x, 1.0, &leaf));
  OK(tt_requires_grad_(c, leaf, 1));
  OK(tt_neg(c, leaf, &h));
  OK(tt_relu(c, h, &h));
  OK(tt_max_pool2d(c, h, &kernel, 1, o, &y));
  OK(tt_mul(c, y, y, &h));
  OK(tt_sub_f64(c, h, 0.25, &h));
  OK(tt_sum(c, h, NULL, &h));
  OK(tt_backward(c, h, NULL));
  OK(tt_detach(c, y, &outs[0]));
  OK(tt_tensor_grad(c, leaf, &outs[1]));
}

static void test_pool_before_relu(void** state) {
  static const int64_t one = 1, two = 2;
  const tt_max_pool2d_opts kinds[] = {
      {0},
      {.set = TT_MAX_POOL2D_STRIDE | TT_MAX_POOL2D_PADDING | TT_MAX_POOL2D_CEIL_MODE,
       .stride = &two,
       .n_stride = 1,
       .padding = &one,
       .n_padding = 1,
       .ceil_mode = 1},
      {.set = TT_MAX_POOL2D_STRIDE, .stride = &one, .n_stride = 1},
      {.set = TT_MAX_POOL2D_DILATION, .dilation = &two, .n_dilation = 1},
  };
  int kind;
  (void)state;
  for (kind = 0; kind < 4; kind++) {
    tt_tensor *x = odd_image(1), *y = odd_image(4), *outs[2], *want[2];
    tt_graph *g, *less;
    const int64_t kernel = kind ? 3 : 2;
    pooled(y, &kinds[kind], kernel, want);
    OK(tt_capture_begin(c, LIST(x), NULL));
    pooled(x, &kinds[kind], kernel, outs);
    OK(tt_capture_end(c, LIST(outs[0], outs[1]), &g));
    less = optimize(g, TT_PASS_POOL);
    assert_int_equal(count(less), count(g));
    assert_true(place_of(g, " relu(") < place_of(g, " max_pool2d("));
    assert_int_equal(place_of(less, " relu(") > place_of(less, " max_pool2d("), kind < 3);
    assert_int_equal(
        place_of(less, " threshold_backward(") < place_of(less, " max_pool2d_backward("), kind < 3);
    check_replay(less, y, want, 2);
    tt_graph_release(g);
    tt_graph_release(less);
  }
}

/* What else reads the result of relu keeps it where it is. */
static void test_pool_stays(void** state) {
  tt_tensor *x = odd_image(1), *h, *y, *z, *last;
  const int64_t two = 2;
  tt_graph *g, *less;
  (void)state;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_relu(c, x, &h));
  OK(tt_max_pool2d(c, h, &two, 1, NULL, &y));
  OK(tt_exp(c, h, &z));
  OK(tt_neg(c, x, &last));
  OK(tt_relu(c, last, &last));
  OK(tt_capture_end(c, LIST(y, z, last), &g));
  less = optimize(g, TT_PASS_POOL);
  assert_true(place_of(less, " relu(") < place_of(less, " max_pool2d("));
  tt_graph_release(g);
  tt_graph_release(less);
}

/* A function of parts of x, and the gradient of x. Kinds: 0 selects all, permuted as in attention;
   1 narrows all; 2 leaves a part out. */
static void sliced(tt_tensor* x, int kind, tt_tensor** outs) {
  const int64_t width = kind == 2 ? 12 : 15;
  tt_tensor *leaf, *h, *total = NULL;
  int64_t i, n = 3;
  OK(tt_mul_f64(c, x, 1.0, &leaf));
  OK(tt_requires_grad_(c, leaf, 1));
  OK(tt_mul_f64(c, leaf, 2.0, &h));
  if (kind == 0) {
    OK(tt_view(c, h, SHAPE(4, 3, 5, 3), &h));
    OK(tt_permute(c, h, SHAPE(2, 0, 1, 3), &h));
    n = 5;
  } else {
    OK(tt_view(c, h, SHAPE(4, 45), &h));
  }
  for (i = 0; i < n; i++) {
    tt_tensor* p;
    if (kind == 0) OK(tt_select(c, h, 0, i - (i > 2 ? 5 : 0), &p));
    else OK(tt_narrow(c, h, 1, width * i, width, &p));
    OK(tt_sin(c, p, &p));
    OK(tt_mul_f64(c, p, (double)i - 1, &p)); /* gradients with zeros of both signs */
    if (total) OK(tt_add(c, total, p, &total));
    else total = p;
  }
  OK(tt_sum(c, total, NULL, &total));
  OK(tt_backward(c, total, NULL));
  OK(tt_tensor_grad(c, leaf, &outs[0]));
}

static void test_join_slices(void** state) {
  int kind;
  (void)state;
  for (kind = 0; kind < 3; kind++) {
    tt_tensor *x = ramp(180), *y, *out, *want;
    tt_graph *g, *less;
    OK(tt_cos(c, x, &y));
    sliced(y, kind, &want);
    OK(tt_capture_begin(c, LIST(x), NULL));
    sliced(x, kind, &out);
    OK(tt_capture_end(c, LIST(out), &g));
    less = optimize(g, TT_PASS_SLICES);
    if (kind < 2) {
      assert_int_equal(calls_of(less, "empty_strided"), 1);
      assert_int_equal(calls_of(less, "copy_"), kind ? 3 : 5);
      assert_int_equal(calls_of(less, "add_scalar_"), 1);
      assert_int_equal(calls_of(less, "select_backward") + calls_of(less, "slice_backward"), 0);
      assert_int_equal(calls_of(less, "clone"), 0);
    } else {
      assert_int_equal(count(less), count(g));
    }
    check_replay(less, y, &want, 1);
    tt_graph_release(g);
    tt_graph_release(less);
  }
}

/* What reads a product's result moves behind it, unless what is between writes what it reads, or
   reads what it writes; a view on the way moves, too. */
static void test_move_epilogues(void** state) {
  enum { kMoveEpilogues = 64 };
  tt_tensor *x = ramp(12 * 20), *y, *w, *rows, *z, *h, *exp, *cosine, *outs[5], *want[5];
  tt_graph *g, *moved;
  int run;
  (void)state;
  OK(tt_cos(c, x, &y));
  OK(tt_view(c, ramp(30 * 20), SHAPE(30, 20), &w));
  for (run = 0; run < 2; run++) {
    tt_tensor** list = run ? outs : want;
    const tt_tensor* in = run ? x : y;
    if (run) OK(tt_capture_begin(c, LIST(x), NULL));
    OK(tt_view(c, in, SHAPE(12, 20), &rows));
    OK(tt_mul_f64(c, w, 2.0, &z));
    OK(tt_linear(c, rows, w, NULL, &h));
    OK(tt_exp(c, rows, &exp));
    OK(tt_relu(c, h, &list[0])); /* moves */
    OK(tt_cos(c, rows, &cosine));
    OK(tt_view(c, list[0], SHAPE(30, 12), &list[1]));
    OK(tt_tanh(c, list[1], &list[1])); /* moves behind relu */
    OK(tt_linear(c, z, w, NULL, &h));
    OK(tt_sin(c, h, &list[2])); /* is there */
    OK(tt_sum(c, h, NULL, &list[3]));
    OK(tt_neg_(c, h)); /* stays: the sum reads h */
    OK(tt_add(c, exp, cosine, &list[4]));
    if (run) OK(tt_capture_end(c, (const tt_tensor* const*)outs, 5, &g));
  }
  moved = optimize(g, kMoveEpilogues);
  assert_int_equal(count(moved), count(g));
  assert_true(place_of(g, " relu(") > place_of(g, " exp("));
  assert_true(place_of(moved, " relu(") < place_of(moved, " exp("));
  assert_true(place_of(g, " tanh(") > place_of(g, " cos("));
  assert_true(place_of(moved, " tanh(") < place_of(moved, " exp("));
  assert_true(place_of(moved, " neg_(") > place_of(moved, " sum("));
  check_replay(moved, y, want, 5);
  tt_graph_release(g);
  tt_graph_release(moved);
}

/* How often a kernel runs in a run of a plan of g. */
static int64_t launches_of(const tt_graph* g, const char* kernel) {
  const tt_profiler_start_opts opts = {.set = 0};
  tt_profile_sum sums[64];
  tt_plan* p;
  int64_t i, n, calls = 0;
  OK(tt_plan_new(c, g, NULL, &p));
  OK(tt_profiler_start_ex(c, &opts));
  OK(tt_plan_run(c, p));
  OK(tt_profiler_stop(c));
  OK(tt_profiler_sums(c, sums, 64, &n));
  for (i = 0; i < n; i++)
    if (sums[i].kind == TT_EVENT_KERNEL && !strcmp(sums[i].name, kernel)) calls += sums[i].calls;
  tt_plan_release(p);
  return calls;
}

/* Two convolutions of the same images and of the same images changed, and the gradients of their
   weights. Interleaved: 16 images of few channels. */
static void convolved(tt_tensor* x, int64_t channels, tt_tensor** outs) {
  tt_tensor *h, *y, *w[2], *total = NULL;
  const int64_t padding = 1;
  const tt_conv2d_opts o = {.set = TT_CONV2D_PADDING, .padding = &padding, .n_padding = 1};
  int i;
  OK(tt_view(c, x, SHAPE(16, channels, 5, 5), &h));
  OK(tt_mul_f64(c, h, 1.0, &h));
  for (i = 0; i < 2; i++) {
    OK(tt_view(c, ramp(2 * channels * 9), SHAPE(2, channels, 3, 3), &w[i]));
    OK(tt_mul_f64(c, w[i], 1.0 + i, &w[i]));
    OK(tt_requires_grad_(c, w[i], 1));
    OK(tt_conv2d(c, h, w[i], NULL, &o, &y));
    OK(tt_sin(c, y, &y));
    if (total) OK(tt_add(c, total, y, &total));
    else total = y;
  }
  OK(tt_sum(c, total, NULL, &y));
  OK(tt_backward(c, y, NULL));
  for (i = 0; i < 2; i++) OK(tt_tensor_grad(c, w[i], &outs[i]));
  OK(tt_add_f64_(c, h, 1.0));
  OK(tt_detach(c, w[0], &w[0]));
  OK(tt_conv2d(c, h, w[0], NULL, &o, &outs[2]));
}

static void test_conversions_once(void** state) {
  static const int64_t channels[] = {2, 40};
  int k;
  (void)state;
  for (k = 0; k < 2; k++) {
    tt_tensor *x = ramp(16 * channels[k] * 25), *y, *outs[3], *want[3];
    tt_graph* g;
    OK(tt_cos(c, x, &y));
    convolved(y, channels[k], want);
    OK(tt_capture_begin(c, LIST(x), NULL));
    convolved(x, channels[k], outs);
    OK(tt_capture_end(c, (const tt_tensor* const*)outs, 3, &g));
    /* The images before and after the change; the gradients of two results. */
    assert_int_equal(launches_of(g, k ? "copy" : "conv_interleave"), 4);
    check_replay(g, y, want, 3);
    tt_graph_release(g);
  }
}

/* Networks of convolutions of few channels, whose images stay interleaved between them, and all
   gradients of weights and of numbers that x is computed from. Weights and most elements are small
   integers, so that windows have equal elements. Kinds: pooling of even and odd sizes and a linear
   layer behind; the same with maxima that are read with and without relu; a residual, and a border;
   28 images, which stay as they are. */
enum { kPooling, kReadTwice, kResidual, kPartOfBlock, kNetworks };
static tt_tensor* small_integers(int64_t n) {
  tt_tensor* t;
  OK(tt_mul_f64(c, ramp(n), 3.0, &t));
  OK(tt_trunc(c, t, &t));
  return t;
}
static tt_tensor* layer(tt_tensor* x, int64_t in, int64_t out, int64_t padding, tt_tensor** w,
                        tt_tensor** b) {
  const tt_conv2d_opts o = {.set = TT_CONV2D_PADDING, .padding = &padding, .n_padding = 1};
  tt_tensor* y;
  OK(tt_view(c, small_integers(in * out * 9), SHAPE(out, in, 3, 3), w));
  *b = small_integers(out);
  OK(tt_requires_grad_(c, *w, 1));
  OK(tt_requires_grad_(c, *b, 1));
  OK(tt_conv2d(c, x, *w, *b, &o, &y));
  return y;
}
static int64_t images_of(int kind) { return kind == kPartOfBlock ? 28 : 32; }
static void network(tt_tensor* x, int kind, tt_tensor** outs) {
  tt_tensor *leaf, *h, *y, *w[3], *b[3], *rows;
  const int64_t two = 2;
  const int64_t n = images_of(kind);
  int i;
  OK(tt_mul_f64(c, x, 1.0, &leaf));
  OK(tt_requires_grad_(c, leaf, 1));
  OK(tt_view(c, leaf, SHAPE(n, 3, 15, 12), &h));
  h = layer(h, 3, 7, kind == kResidual, &w[0], &b[0]);
  if (kind != kReadTwice) OK(tt_relu(c, h, &h));
  if (kind == kResidual) {
    y = layer(h, 7, 7, 1, &w[1], &b[1]);
    OK(tt_add(c, y, h, &h));
    OK(tt_tanh(c, h, &h));
  } else {
    OK(tt_max_pool2d(c, h, &two, 1, NULL, &h)); /* (13, 10) to (6, 5) */
    if (kind == kReadTwice) {
      OK(tt_relu(c, h, &y));
      OK(tt_add(c, h, y, &h));
    }
    h = layer(h, 7, 4, 1, &w[1], &b[1]);
    OK(tt_relu(c, h, &h));
  }
  OK(tt_max_pool2d(c, h, &two, 1, NULL, &h));
  if (kind == kResidual) h = layer(h, 7, 4, 0, &w[2], &b[2]);
  else h = layer(h, 4, 4, 1, &w[2], &b[2]);
  OK(tt_view(c, h, SHAPE(n, -1), &y));
  rows = small_integers(5 * tt_tensor_size(y, 1));
  OK(tt_view(c, rows, SHAPE(5, tt_tensor_size(y, 1)), &rows));
  OK(tt_linear(c, y, rows, NULL, &y));
  OK(tt_sin(c, y, &y));
  OK(tt_sum(c, y, NULL, &y));
  OK(tt_backward(c, y, NULL));
  OK(tt_detach(c, h, &outs[0]));
  OK(tt_tensor_grad(c, leaf, &outs[1]));
  for (i = 0; i < 3; i++) {
    OK(tt_tensor_grad(c, w[i], &outs[2 + 2 * i]));
    OK(tt_tensor_grad(c, b[i], &outs[3 + 2 * i]));
  }
}
static void test_images_stay_interleaved(void** state) {
  static const int64_t pools[kNetworks] = {2, 2, 1, 0};
  /* Those of the input and of the last gradient, and copies that add a border to it. */
  static const int64_t conversions[kNetworks] = {5, 5, 4, 9};
  /* Pooling computes those behind it, tiles those beside a sum. */
  static const int64_t relus[kNetworks] = {0, 0, 1, 2};
  static const int64_t gradients[kNetworks] = {0, 0, 0, 2};
  int kind, threads;
  (void)state;
  for (kind = 0; kind < kNetworks; kind++) {
    tt_tensor *x = small_integers(images_of(kind) * 3 * 15 * 12), *y, *outs[8], *want[8];
    tt_graph *g, *less;
    OK(tt_neg(c, x, &y));
    ((float*)tt_tensor_data(y))[100] = NAN;
    ((float*)tt_tensor_data(y))[777] = -0.0f;
    network(y, kind, want);
    OK(tt_capture_begin(c, LIST(x), NULL));
    network(x, kind, outs);
    OK(tt_capture_end(c, (const tt_tensor* const*)outs, 8, &g));
    OK(tt_graph_optimize(c, g, NULL, &less));
    assert_int_equal(launches_of(less, "pool_max_interleaved"), pools[kind]);
    assert_int_equal(launches_of(less, "pool_max_interleaved_backward"), pools[kind]);
    assert_int_equal(launches_of(less, "conv_interleave"), conversions[kind]);
    assert_int_equal(launches_of(less, "relu"), relus[kind]);
    assert_int_equal(launches_of(less, "threshold_backward"), gradients[kind]);
    for (threads = 1; threads <= 3; threads += 2) {
      OK(tt_set_num_threads(c, threads));
      check_replay(less, y, want, 8);
      check_replay(g, y, want, 8);
    }
    OK(tt_set_num_threads(c, 1));
    tt_graph_release(g);
    tt_graph_release(less);
  }
}

/* A convolution, a product with the weight's rows and one with its columns, large enough for
   panels. */
static tt_tensor* weighed(const tt_tensor* x, const tt_tensor* w, const tt_tensor* rows,
                          const tt_tensor* columns) {
  const tt_conv2d_opts o = {.set = 0};
  tt_tensor *h, *y;
  OK(tt_view(c, x, SHAPE(1, 20, 6, 48), &h));
  OK(tt_conv2d(c, h, w, NULL, &o, &h));
  OK(tt_view(c, h, SHAPE(40, -1), &h));
  OK(tt_linear(c, h, rows, NULL, &y));
  OK(tt_matmul(c, y, columns, &y));
  return y;
}

/* FOLD packs weights once, so writing them later changes nothing; without it they are read. */
static void test_prepacking(void** state) {
  tt_tensor *x = ramp(20 * 6 * 48), *z, *w, *rows, *columns, *y, *want, *changed;
  tt_graph *g, *less;
  tt_plan *p, *q;
  tt_tensor *in, *out, *in_q, *out_q;
  (void)state;
  OK(tt_view(c, ramp(40 * 20 * 9), SHAPE(40, 20, 3, 3), &w));
  OK(tt_view(c, ramp(600 * 184), SHAPE(600, 184), &rows));
  OK(tt_view(c, ramp(600 * 300), SHAPE(600, 300), &columns));
  OK(tt_cos(c, x, &z));
  want = weighed(z, w, rows, columns);
  OK(tt_capture_begin(c, LIST(x), NULL));
  y = weighed(x, w, rows, columns);
  OK(tt_capture_end(c, LIST(y), &g));
  less = optimize(g, TT_PASS_FOLD);
  check_replay(less, z, &want, 1);
  assert_int_equal(launches_of(g, "conv"), 2);
  assert_int_equal(launches_of(less, "conv"), 1);
  OK(tt_plan_new(c, g, NULL, &p));
  OK(tt_plan_new(c, less, NULL, &q));
  OK(tt_plan_slot(c, p, 0, 0, &in));
  OK(tt_plan_slot(c, p, 1, 0, &out));
  OK(tt_plan_slot(c, q, 0, 0, &in_q));
  OK(tt_plan_slot(c, q, 1, 0, &out_q));
  OK(tt_copy_(c, in, z));
  OK(tt_copy_(c, in_q, z));
  OK(tt_mul_f64_(c, w, 2.0));
  OK(tt_mul_f64_(c, rows, 2.0));
  OK(tt_mul_f64_(c, columns, 2.0));
  changed = weighed(z, w, rows, columns);
  OK(tt_plan_run(c, p));
  OK(tt_plan_run(c, q));
  same_bits(out, changed);
  same_bits(out_q, want);
  tt_plan_release(p);
  tt_plan_release(q);
  tt_graph_release(g);
  tt_graph_release(less);
}

/* Bytes of a plan that multiplies n times by one frozen weight of 1 MB. */
static int64_t bytes_of_products(int n) {
  tt_tensor *x = ramp(64 * 512), *w, *y;
  tt_memory_stats before, after;
  tt_graph *g, *less;
  tt_plan* p;
  int i;
  OK(tt_view(c, x, SHAPE(64, 512), &x));
  OK(tt_view(c, ramp(512 * 512), SHAPE(512, 512), &w));
  OK(tt_capture_begin(c, LIST(x), NULL));
  for (y = x, i = 0; i < n; i++) OK(tt_matmul(c, y, w, &y));
  OK(tt_capture_end(c, LIST(y), &g));
  less = optimize(g, TT_PASS_FOLD);
  OK(tt_memory(c, NULL, &before));
  OK(tt_plan_new(c, less, NULL, &p));
  OK(tt_memory(c, NULL, &after));
  tt_plan_release(p);
  tt_graph_release(g);
  tt_graph_release(less);
  return after.in_use - before.in_use;
}
/* A weight is packed once for all products that read it. */
static void test_prepacking_of_one_weight(void** state) {
  const int64_t one = bytes_of_products(1);
  (void)state;
  assert_true(one > 1 << 20);
  assert_true(bytes_of_products(9) < one + (1 << 20));
}

/* Programs whose launches run band by band. */
enum { kProduct, kNorm, kSoftmax, kImages, kPlanes, kChains };
static int64_t chain_items(int kind) {
  static const int64_t items[] = {1400 * 40, 700 * 300, 700 * 300, 64 * 3 * 16 * 16, 12 * 9 * 5000};
  return items[kind];
}
/* The gradients are those of the numbers that x is computed from. */
static void chained(tt_tensor* x, int kind, tt_tensor** outs) {
  tt_tensor *leaf, *h, *y, *w, *b;
  const int64_t two = 2, width = 300, channels = 6;
  OK(tt_mul_f64(c, x, 1.0, &leaf));
  OK(tt_requires_grad_(c, leaf, 1));
  b = ramp(300);
  switch (kind) {
    case kProduct:
      OK(tt_view(c, ramp(300 * 40), SHAPE(300, 40), &w));
      OK(tt_view(c, leaf, SHAPE(1400, 40), &h));
      OK(tt_linear(c, h, w, b, &h));
      OK(tt_silu(c, h, &y));
      break;
    case kNorm:
      OK(tt_view(c, leaf, SHAPE(700, 300), &h));
      OK(tt_mul(c, h, b, &y));
      OK(tt_add(c, h, y, &h));
      OK(tt_layer_norm(c, h, &width, 1, b, NULL, NULL, &y));
      break;
    case kSoftmax:
      OK(tt_view(c, leaf, SHAPE(700, 300), &h));
      OK(tt_add(c, h, b, &y));
      OK(tt_mul_f64(c, y, 3.0, &y));
      OK(tt_softmax(c, y, 1, NULL, &y));
      OK(tt_mul(c, y, h, &h));
      OK(tt_sum_dim(c, h, &(int64_t){1}, 1, NULL, &y));
      break;
    case kImages:
      OK(tt_view(c, leaf, SHAPE(64, 3, 16, 16), &h));
      OK(tt_view(c, ramp(channels * 3 * 9), SHAPE(6, 3, 3, 3), &w));
      OK(tt_conv2d(c, h, w, NULL, NULL, &h));
      OK(tt_max_pool2d(c, h, &two, 1, NULL, &h));
      OK(tt_relu(c, h, &y));
      break;
    default:
      OK(tt_view(c, leaf, SHAPE(12, 9, 50, 100), &h));
      OK(tt_relu(c, h, &h));
      OK(tt_max_pool2d(c, h, &two, 1, NULL, &h));
      OK(tt_permute(c, h, SHAPE(0, 2, 3, 1), &h));
      OK(tt_contiguous(c, h, &h));
      OK(tt_tanh(c, h, &y));
  }
  OK(tt_mul(c, y, y, &h));
  OK(tt_sum(c, h, NULL, &h));
  OK(tt_backward(c, h, NULL));
  OK(tt_detach(c, y, &outs[0]));
  OK(tt_tensor_grad(c, leaf, &outs[1]));
}

static void test_bands(void** state) {
  int kind, threads;
  (void)state;
  for (kind = 0; kind < kChains; kind++) {
    tt_tensor *x = ramp(chain_items(kind)), *y, *outs[2], *want[2];
    tt_graph *g, *less;
    OK(tt_cos(c, x, &y));
    chained(y, kind, want);
    OK(tt_capture_begin(c, LIST(x), NULL));
    chained(x, kind, outs);
    OK(tt_capture_end(c, LIST(outs[0], outs[1]), &g));
    OK(tt_graph_optimize(c, g, NULL, &less));
    assert_int_equal(launches_of(less, "bands") > 0, kind != kProduct);
    if (kind == kProduct) assert_int_equal(launches_of(less, "silu"), 0);
    for (threads = 1; threads <= 3; threads += 2) {
      OK(tt_set_num_threads(c, threads));
      check_replay(less, y, want, 2);
    }
    OK(tt_set_num_threads(c, 1));
    tt_graph_release(g);
    tt_graph_release(less);
  }
}

/* A region of elementwise launches and what reduces its rows are one band. */
static void test_row_sums(void** state) {
  tt_tensor *x = ramp(700 * 300), *y, *outs[2], *want[2];
  const int64_t last = 1;
  tt_graph* g;
  int run;
  (void)state;
  OK(tt_cos(c, x, &y));
  for (run = 0; run < 2; run++) {
    tt_tensor *rows, *h, **list = run ? outs : want;
    if (run) OK(tt_capture_begin(c, LIST(x), NULL));
    OK(tt_view(c, run ? x : y, SHAPE(700, 300), &rows));
    OK(tt_mul(c, rows, rows, &h));
    OK(tt_tanh(c, h, &h));
    OK(tt_add(c, h, rows, &h));
    OK(tt_sum_dim(c, h, &last, 1, NULL, &list[0]));
    OK(tt_amax(c, h, &last, 1, NULL, &list[1]));
    if (run) OK(tt_capture_end(c, LIST(outs[0], outs[1]), &g));
  }
  assert_int_equal(launches_of(g, "bands"), 1);
  assert_int_equal(launches_of(g, "reduce_sum") + launches_of(g, "reduce_max"), 0);
  check_replay(g, y, want, 2);
  tt_graph_release(g);
}

/* Each allocation of each pass fails in turn: there is no graph, and g is unchanged. */
static void test_out_of_memory(void** state) {
  tt_tensor *x, *w, *h, *a, *y, *mean = ramp(4), *var, *dead;
  tt_graph* g;
  const tt_graph_optimize_opts opts = {
      .set = TT_GRAPH_OPTIMIZE_PASSES,
      .passes =
          TT_PASS_DCE | TT_PASS_CSE | TT_PASS_FOLD | TT_PASS_NORM | TT_PASS_POOL | TT_PASS_SLICES,
  };
  int64_t at, nodes;
  (void)state;
  OK(tt_view(c, ramp(2 * 3 * 5 * 5), SHAPE(2, 3, 5, 5), &x));
  OK(tt_view(c, ramp(4 * 3 * 3 * 3), SHAPE(4, 3, 3, 3), &w));
  OK(tt_exp(c, mean, &var));
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_conv2d(c, x, w, NULL, NULL, &h));
  OK(tt_batch_norm(c, h, mean, var, NULL, NULL, NULL, &h));
  OK(tt_exp(c, h, &a));
  OK(tt_exp(c, h, &dead));
  OK(tt_neg(c, var, &dead));
  OK(tt_view(c, dead, SHAPE(4, 1, 1), &dead));
  OK(tt_mul(c, a, dead, &y));
  OK(tt_relu(c, y, &y));
  OK(tt_max_pool2d(c, y, &(int64_t){2}, 1, NULL, &y));
  sliced(ramp(180), 0, &a);
  OK(tt_capture_end(c, LIST(y, a), &g));
  nodes = count(g);
  for (at = 1; at < 100000; at++) {
    tt_graph* out = NULL;
    const int64_t failed = host.failed;
    tt_status s;
    host.fail_at = host.calls + at;
    host.fail_n = 1;
    s = tt_graph_optimize(c, g, &opts, &out);
    host.fail_at = 0;
    assert_true((s == TT_OK) == (out != NULL));
    assert_int_equal(count(g), nodes);
    tt_graph_release(out);
    if (host.failed == failed) break;
  }
  assert_true(at > 1);
  tt_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_random_programs),
      SCOPED(test_dead_and_common),
      SCOPED(test_effects_stay),
      SCOPED(test_fold),
      SCOPED(test_norm_into_conv),
      SCOPED(test_pool_before_relu),
      SCOPED(test_pool_stays),
      SCOPED(test_join_slices),
      SCOPED(test_move_epilogues),
      SCOPED(test_conversions_once),
      SCOPED(test_images_stay_interleaved),
      SCOPED(test_prepacking),
      SCOPED(test_prepacking_of_one_weight),
      SCOPED(test_bands),
      SCOPED(test_row_sums),
      SCOPED(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
