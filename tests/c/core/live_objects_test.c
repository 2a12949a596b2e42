/* tt_runtime_live: exact for known sets of objects, without tensors when they are released, and
   not misled by memory that looks like objects. */
#include "harness.h"

enum { kMax = 20000 };
static tt_live_row rows[kMax];
static int64_t list(void) {
  int64_t n = -1;
  OK(tt_runtime_live(c, rows, kMax, &n));
  return n;
}
static const tt_live_row* find(const char* kind) {
  int64_t n = list(), i;
  for (i = 0; i < n; i++)
    if (strcmp(rows[i].kind, kind) == 0) return &rows[i];
  return NULL;
}
static int64_t count_of(const char* kind) {
  int64_t n = list();
  int64_t i;
  int64_t sum = 0;
  for (i = 0; i < n; i++) sum += strcmp(rows[i].kind, kind) == 0 ? rows[i].count : 0;
  return sum;
}
static const tt_live_row* tensor_row(tt_dtype d, int32_t requires_grad, const int64_t* shape,
                                     int64_t ndim) {
  int64_t n = list(), i;
  for (i = 0; i < n; i++)
    if (strcmp(rows[i].kind, "tensor") == 0 && rows[i].dtype == d && rows[i].ndim == ndim &&
        rows[i].requires_grad == requires_grad &&
        (!ndim || memcmp(rows[i].shape, shape, (size_t)(ndim < 8 ? ndim : 8) * 8) == 0))
      return &rows[i];
  return NULL;
}
#define ROW(d, g, ...) tensor_row((d), (g), SHAPE(__VA_ARGS__))

static tt_tensor* made(tt_dtype d, tt_device device, const int64_t* shape, int64_t ndim) {
  const tt_empty_opts o = {.set = TT_EMPTY_DTYPE | TT_EMPTY_DEVICE, .dtype = d, .device = device};
  tt_tensor* t;
  OK(tt_empty(c, shape, ndim, &o, &t));
  return t;
}
static const tt_device kCpu = {TT_CPU, 0};
static const tt_device kMeta = {TT_META, 0};

static void test_known_set(void** state) {
  tt_tensor *t[12], *nine, *view;
  const tt_live_row* r;
  int64_t n;
  int i;
  (void)state;
  assert_int_equal(count_of("tensor"), 0);
  for (i = 0; i < 10; i++)
    t[i] = made(TT_F32, kCpu, SHAPE(3, 4)); /* tiny: data behind the header */
  t[10] = made(TT_F64, kCpu, SHAPE(1000, 1000));
  t[11] = made(TT_F64, kMeta, SHAPE(1000, 1000));
  nine = made(TT_U8, kCpu, SHAPE(1, 2, 1, 2, 1, 2, 1, 2, 3));
  r = ROW(TT_F32, 0, 3, 4);
  assert_non_null(r);
  assert_true(r->count == 10 && r->bytes == 480 && r->device.type == TT_CPU);
  n = list();
  assert_true(n >= 4 && rows[0].bytes == 8000000 &&
              rows[1].bytes == 8000000); /* most bytes first */
  assert_true(rows[0].device.type + rows[1].device.type == TT_CPU + TT_META && rows[0].count == 1);
  r = ROW(TT_U8, 0, 1, 2, 1, 2, 1, 2, 1, 2, 3);
  assert_non_null(r);
  assert_true(r->count == 1 && r->bytes == 48 && r->ndim == 9 && r->shape[7] == 2);
  OK(tt_requires_grad_(c, t[0], 1));
  OK(tt_transpose(c, t[0], 0, 1, &view)); /* requires a gradient through its base */
  r = ROW(TT_F32, 1, 4, 3);
  assert_non_null(r);
  assert_int_equal(r->count, 1);
  assert_int_equal(ROW(TT_F32, 1, 3, 4)->count, 1);
  assert_int_equal(ROW(TT_F32, 0, 3, 4)->count, 9);
  tt_tensor_release(view);
  for (i = 0; i < 12; i++) tt_tensor_release(t[i]);
  tt_tensor_release(nine);
  assert_int_equal(count_of("tensor"), 0);
}

static void test_other_kinds(void** state) {
  tt_tensor *x = leaf(DATA(1, 2, 3)), *y, *params[1];
  tt_optimizer* o;
  tt_module* m;
  tt_generator* g;
  int64_t modules;
  (void)state;
  assert_int_equal(count_of("node"), 0);
  OK(tt_mul(c, x, x, &y));
  OK(tt_sum(c, y, NULL, &y));
  assert_int_equal(count_of("node"), 2);
  assert_int_equal(count_of("ctx"), 1);
  assert_int_equal(count_of("generator"), 1);
  assert_int_equal(count_of("runtime"), 1);
  OK(tt_generator_new(c, 1, &g));
  assert_int_equal(count_of("generator"), 2);
  tt_generator_release(g);
  params[0] = x;
  OK(tt_optim_sgd(c, params, 1, NULL, &o));
  assert_int_equal(count_of("optimizer"), 1);
  tt_optim_release(o);
  assert_null(find("optimizer"));
  assert_null(find("module"));
  OK(tt_nn_linear(c, 3, 4, NULL, &m));
  modules = count_of("module");
  assert_int_equal(modules, 1);
  assert_int_equal(ROW(TT_F32, 1, 4, 3)->count, 1);
  assert_int_equal(ROW(TT_F32, 1, 4)->bytes, 16);
  tt_module_release(m);
  assert_null(find("module"));
}

/* Ten thousand tensors of random shapes, half of them released in between: the count of each
   shape must equal a record. */
static void test_many(void** state) {
  enum { kTensors = 10000, kShapes = 12 };
  static tt_tensor* t[kTensors];
  static int which[kTensors];
  static const tt_dtype kDtypes[] = {TT_F32, TT_F64, TT_I64, TT_BOOL};
  static int64_t want[4][kShapes][kShapes];
  uint32_t seed = 1;
  int64_t all = 0;
  int i, d, a, b;
  (void)state;
  for (i = 0; i < kTensors; i++) {
    seed = seed * 1664525 + 1013904223;
    d = (int)(seed >> 30);
    a = (int)(seed >> 8) % kShapes;
    b = (int)(seed >> 16) % kShapes;
    which[i] = (d * kShapes + a) * kShapes + b;
    t[i] = made(kDtypes[d], kCpu,
                SHAPE(a * a * 3 + 1, b)); /* some tiny, some in blocks of their own */
    want[d][a][b]++;
    if (i % 3 == 0) { /* an older one is released */
      const int k = (int)(seed >> 5) % (i + 1);
      if (!t[k]) continue;
      tt_tensor_release(t[k]);
      t[k] = NULL;
      ((int64_t*)want)[which[k]]--;
    }
  }
  for (d = 0; d < 4; d++)
    for (a = 0; a < kShapes; a++)
      for (b = 0; b < kShapes; b++) all += want[d][a][b];
  assert_int_equal(count_of("tensor"), all);
  for (i = 0; i < kTensors; i += 97) {
    const tt_live_row* r;
    d = which[i] / kShapes / kShapes;
    a = which[i] / kShapes % kShapes;
    b = which[i] % kShapes;
    r = ROW(kDtypes[d], 0, a * a * 3 + 1, b);
    assert_int_equal(r ? r->count : 0, want[d][a][b]);
    if (r)
      assert_int_equal(r->bytes, want[d][a][b] * (a * a * 3 + 1) * b * tt_dtype_size(kDtypes[d]));
  }
  for (i = 0; i < kTensors; i++) tt_tensor_release(t[i]);
  assert_int_equal(count_of("tensor"), 0);
}

/* Data that looks like a tensor, with invalid pointers, is not listed. */
static void test_lookalikes(void** state) {
  tt_tensor* a = made(TT_I32, kCpu, SHAPE(1, 1, 1, 1, 1, 1000));
  tt_tensor* b = made(TT_I32, kCpu, SHAPE(700));
  int32_t* at[2];
  int k, ndim;
  (void)state;
  at[0] = tt_tensor_data(a);
  at[1] = tt_tensor_data(b);
  for (k = 0; k < 2; k++)
    for (ndim = 0; ndim < 256; ndim += 5) {
      memset(at[k], 0x5a, 2800);
      at[k][0] = 0x74740001;
      at[k][1] = 1;
      ((uint8_t*)at[k])[8] = TT_F32;
      ((uint8_t*)at[k])[9] = TT_CPU;
      ((uint8_t*)at[k])[10] = 0;
      ((uint8_t*)at[k])[11] = (uint8_t)ndim;
      ((int64_t*)(void*)at[k])[2] = 1; /* keys */
      assert_int_equal(count_of("tensor"), 2);
    }
  tt_tensor_release(a);
  tt_tensor_release(b);
}

/* Allocating memory for the list trims empty slabs, which must not be read afterwards. The
   memory comes from the system, so that trimmed slabs are unmapped. */
static void test_memory_is_short(void** state) {
  enum { kShapes = 300, kReleased = 2000, kSteps = 64 };
  static tt_tensor *shapes[kShapes], *released[kReleased];
  tt_ctx* counted = c;
  int64_t i, n, fails = 0;
  int step;
  (void)state;
  assert_int_equal(tt_ctx_new(NULL, &c), TT_OK);
  for (i = 0; i < kReleased; i++) { /* slabs to be trimmed before and behind those of the shapes */
    released[i] = made(TT_F32, kCpu, SHAPE(300));
    if (i % 4 == 0 && i / 4 < kShapes) shapes[i / 4] = made(TT_U8, kCpu, SHAPE(i / 4 + 1));
  }
  for (i = 0; i < kReleased; i++) tt_tensor_release(released[i]);
  for (step = 0; step < kSteps; step++) {
    tt_memory_stats now;
    tt_status s;
    OK(tt_trim(c)); /* no large block is left to allocate from */
    for (i = 0; i < kReleased; i++) released[i] = made(TT_F32, kCpu, SHAPE(300));
    for (i = 0; i < kReleased; i++) tt_tensor_release(released[i]);
    OK(tt_memory(c, NULL, &now));
    OK(tt_set_memory_limit(c, now.reserved + 4096 * step));
    s = tt_runtime_live(c, rows, kMax, &n);
    assert_true(s == TT_OK || s == TT_OOM);
    assert_true(s ? n == 0 : n >= kShapes);
    fails += s != TT_OK;
    OK(tt_set_memory_limit(c, 0));
    assert_int_equal(count_of("tensor"), kShapes);
  }
  assert_true(fails < kSteps);
  for (i = 0; i < kShapes; i++) tt_tensor_release(shapes[i]);
  tt_ctx_release(c);
  c = counted;
}

static void test_arguments(void** state) {
  int64_t n = 5;
  tt_tensor* t = made(TT_F32, kCpu, SHAPE(2));
  (void)state;
  FAILS(tt_runtime_live(c, rows, 1, &n), TT_BUFFER_TOO_SMALL, "rows");
  assert_true(n >= 4); /* tensor, ctx, generator, runtime */
  FAILS(tt_runtime_live(c, NULL, 100, &n), TT_BUFFER_TOO_SMALL, "rows");
  FAILS(tt_runtime_live(c, rows, kMax, NULL), TT_INVALID_ARG, "n");
  assert_int_equal(tt_runtime_live(NULL, rows, kMax, &n), TT_BAD_HANDLE);
  assert_int_equal(n, 0);
  tt_tensor_release(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAIN(test_known_set),  SCOPED(test_other_kinds),    PLAIN(test_many),
      PLAIN(test_lookalikes), PLAIN(test_memory_is_short), PLAIN(test_arguments)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
