/* Devices registered by the application: names, memory, copies, operators by callback and by CPU
   fallback, gradients, failures. */
#include "ext_backend.h"
#include "harness.h"

#include <math.h>
#include <pthread.h>

/* ---- a backend that adds float64 tensors of one shape itself ---- */

enum { kPlain, kFail, kThrowAway, kOnCpu, kReturnInput, kForget, kCallTt };
typedef struct Backend {
  ExtMemory memory; /* first: the user pointer of the memory callbacks */
  int mode;
  int64_t asked, computed;
  char last[64];
} Backend;
static Backend one, two;
static tt_device dev;

static tt_tensor* new_on(tt_ctx* x, tt_device d, const tt_tensor* like) {
  const tt_empty_opts o = {
      .set = TT_EMPTY_DTYPE | TT_EMPTY_DEVICE, .dtype = tt_tensor_dtype(like), .device = d};
  tt_tensor* out = NULL;
  return tt_empty(x, tt_tensor_shape(like), tt_tensor_ndim(like), &o, &out) ? NULL : out;
}
static int simple(const tt_tensor* t) {
  return tt_tensor_dtype(t) == TT_F64 && tt_tensor_is_contiguous(t) &&
         tt_tensor_device_type(t) == TT_EXT;
}
static int alike(const tt_tensor* a, const tt_tensor* b) {
  int64_t d;
  if (!simple(a) || !simple(b) || tt_tensor_ndim(a) != tt_tensor_ndim(b)) return 0;
  for (d = 0; d < tt_tensor_ndim(a); d++)
    if (tt_tensor_size(a, d) != tt_tensor_size(b, d)) return 0;
  return 1;
}
static double* at(Backend* b, const tt_tensor* t) {
  return (double*)(void*)ext_bytes(&b->memory, tt_tensor_data(t));
}

static tt_status compute(void* user, tt_ctx* x, const tt_op* op, const tt_value* args,
                         int64_t n_args, tt_tensor** outs, int64_t n_outs) {
  Backend* b = user;
  const char* name = tt_op_name(op);
  const int in_place = strcmp(name, "add_") == 0;
  tt_tensor* out;
  int64_t i;
  (void)n_outs;
  b->asked++;
  snprintf(b->last, sizeof b->last, "%s", name);
  if (b->mode == kFail) return tt_item_f64(x, NULL, NULL) ? TT_BAD_HANDLE : TT_OK;
  if ((strcmp(name, "add") && !in_place) || n_args < 3 || args[1].tag != TT_VAL_TENSOR)
    return TT_NOT_IMPLEMENTED;
  if (!alike(args[0].tensor, args[1].tensor)) return TT_NOT_IMPLEMENTED;
  if (b->mode == kForget) return TT_OK;
  if (b->mode == kReturnInput) {
    tt_tensor_retain(args[0].tensor);
    outs[0] = args[0].tensor;
    return TT_OK;
  }
  if (b->mode == kOnCpu) return tt_zeros(x, SHAPE(1), NULL, &outs[0]);
  if (b->mode == kCallTt) { /* through another operator, which falls back to the CPU */
    tt_tensor* minus = NULL;
    tt_status s = tt_neg(x, args[1].tensor, &minus);
    if (!s) s = tt_sub(x, args[0].tensor, minus, &outs[0]);
    tt_tensor_release(minus);
    return s;
  }
  out = in_place ? args[0].tensor : new_on(x, dev, args[0].tensor);
  if (!out) return TT_OOM;
  for (i = 0; i < tt_tensor_numel(out); i++)
    at(b, out)[i] =
        at(b, args[0].tensor)[i] + args[2].scalar.re * at(b, args[1].tensor)[i] +
        (args[2].scalar.kind == TT_SCALAR_INT ? (double)args[2].scalar.i * at(b, args[1].tensor)[i]
                                              : 0);
  if (!in_place) outs[0] = out;
  b->computed++;
  if (b->mode == kThrowAway) return TT_NOT_IMPLEMENTED; /* after creating a result */
  return TT_OK;
}

static tt_device add_backend(tt_ctx* x, Backend* b, const char* name) {
  tt_backend_def def;
  tt_device d = {0, 0};
  memset(b, 0, sizeof *b);
  def = ext_def(&b->memory, name);
  def.compute = compute;
  assert_int_equal(tt_backend_register(x, &def, &d), TT_OK);
  return d;
}
static int open_backend(void** state) {
  if (open_scoped(state)) return -1;
  dev = add_backend(c, &one, "one");
  return 0;
}
static int close_backend(void** state) {
  const int failed = close_ctx(state);
  return failed || one.memory.live || one.memory.blocks || one.memory.dropped != 1 ? -1 : 0;
}
#define ON(f) cmocka_unit_test_setup_teardown(f, open_backend, close_backend)

static tt_tensor* to(tt_device d, const tt_tensor* t) {
  const tt_to_opts o = {.set = TT_TO_DEVICE, .device = d};
  tt_tensor* moved = NULL;
  OK(tt_to(c, t, &o, &moved));
  return moved;
}
static tt_tensor* there(const double* v, int64_t n) { return to(dev, numbers(TT_F64, v, n)); }
#define THERE(...) there(DATA(__VA_ARGS__))

/* ---- registering ---- */

static void test_names(void** state) {
  tt_device d;
  int32_t n;
  char text[16];
  int i;
  (void)state;
  OK(tt_device_parse(c, "one", &d));
  assert_true(d.type == TT_EXT && d.index == 0);
  OK(tt_device_parse(c, "ext:0", &d));
  assert_true(d.type == TT_EXT && d.index == 0);
  FAILS(tt_device_parse(c, "ext:1", &d), TT_INVALID_ARG, "ext:1");
  FAILS(tt_device_parse(c, "two", &d), TT_INVALID_ARG, "two");
  for (i = 1; i < 8; i++) {
    static Backend more[8];
    snprintf(text, sizeof text, "n%d", i);
    d = add_backend(c, &more[i], text);
    assert_int_equal(d.index, i);
  }
  OK(tt_device_count(c, TT_EXT, &n));
  assert_int_equal(n, 8);
  OK(tt_device_parse(c, "n7", &d));
  assert_int_equal(d.index, 7);
}

static void* no_alloc(void* user, int64_t bytes) {
  (void)user;
  (void)bytes;
  return NULL;
}
static void no_free(void* user, void* p, int64_t bytes) {
  (void)user;
  (void)p;
  (void)bytes;
}
static tt_status no_copy(void* user, tt_ctx* x, void* dst, const void* src, int64_t bytes,
                         int32_t kind) {
  (void)user;
  (void)x;
  (void)dst;
  (void)src;
  (void)bytes;
  (void)kind;
  return TT_OK;
}
static void count(void* user) { ++*(int*)user; }

static void test_refused(void** state) {
  static const char* const bad[] = {"",    "cpu", "cuda", "ext", "meta",
                                    "Log", "a b", "1a",   "one", "a23456789012345678901234567890ab",
                                    NULL};
  const tt_empty_opts o = {.set = TT_EMPTY_DEVICE, .device = {TT_EXT, 0}};
  static int dropped; /* the last drop comes with the runtime */
  int want = 0, i;
  tt_backend_def def = {.struct_size = sizeof def,
                        .user = &dropped,
                        .alloc = no_alloc,
                        .free = no_free,
                        .copy = no_copy,
                        .drop = count};
  tt_device d;
  tt_tensor* t;
  (void)state;
  FAILS(tt_empty(c, SHAPE(2), &o, &t), TT_DEVICE, "ext:0");
  OK(tt_device_count(c, TT_EXT, &i));
  assert_int_equal(i, 0);
  def.name = "one";
  OK(tt_backend_register(c, &def, &d)); /* one that stays until the end */
  for (i = 0; i < (int)(sizeof bad / sizeof *bad); i++) {
    def.name = bad[i];
    FAILS(tt_backend_register(c, &def, &d), TT_INVALID_ARG, NULL);
    assert_string_equal(tt_ctx_error(c)->arg, "name");
    assert_int_equal(dropped, ++want);
    assert_int_equal(d.type, 0);
  }
  def.name = "fine";
  def.copy = NULL;
  FAILS(tt_backend_register(c, &def, &d), TT_INVALID_ARG, "copy is NULL");
  def.copy = no_copy;
  FAILS(tt_backend_register(c, &def, NULL), TT_INVALID_ARG, "out");
  assert_int_equal(dropped, want + 2);
  def.struct_size = 8;
  FAILS(tt_backend_register(c, &def, &d), TT_ABI, "struct_size");
  FAILS(tt_backend_register(c, NULL, &d), TT_INVALID_ARG, "def");
  assert_int_equal(tt_backend_register(NULL, NULL, NULL), TT_BAD_HANDLE);
  FAILS(tt_empty(c, SHAPE(2), &o, &t), TT_OOM, NULL);
  OK(tt_empty(c, SHAPE(0), &o, &t)); /* no bytes: alloc is not called */
}

/* ---- memory, copies, views ---- */

static void test_memory(void** state) {
  tt_memory_stats m;
  tt_tensor *a = THERE(1, 2, 3, 4, 5, 6), *v, *w, *n;
  (void)state;
  assert_int_equal(tt_tensor_device_type(a), TT_EXT);
  VALUES(a, 1, 2, 3, 4, 5, 6);
  OK(tt_memory(c, &dev, &m));
  assert_int_equal(m.in_use, 48);
  assert_int_equal(one.memory.copies[1], 1);
  OK(tt_view(c, a, SHAPE(2, 3), &v));
  OK(tt_transpose(c, v, 0, 1, &w));
  OK(tt_select(c, w, 0, 1, &n));
  assert_int_equal(one.asked, 0); /* views call no callback */
  VALUES(w, 1, 4, 2, 5, 3, 6);
  VALUES(n, 2, 5);
  assert_true(value_of(n = to((tt_device){TT_CPU, 0}, sum_of(n))) == 7);
  OK(tt_clone(c, v, NULL, &n));
  assert_int_equal(one.memory.copies[3], 1); /* within the device */
  OK(tt_fill_i64_(c, n, 9));
  OK(tt_copy_(c, v, n));
  VALUES(a, 9, 9, 9, 9, 9, 9);
  OK(tt_copy_(
      c, w,
      to(dev, make(TT_F32, SHAPE(3, 1), DATA(1, 2, 3))))); /* converts, broadcasts, into a view */
  VALUES(a, 1, 2, 3, 1, 2, 3);
  FAILS(tt_item_f64(c, a, &(double){0}), TT_INVALID_ARG, NULL);
  OK(tt_select(c, a, 0, 2, &n));
  assert_true(value_of(n) == 3);
}

static void test_compute(void** state) {
  tt_tensor* a = THERE(1, 2, 3);
  tt_tensor* b = THERE(10, 20, 30);
  tt_tensor* s;
  tt_tensor* m;
  uint32_t version;
  (void)state;
  OK(tt_add(c, a, b, &s));
  assert_true(one.asked == 1 && one.computed == 1);
  VALUES(s, 11, 22, 33);
  version = tt_tensor_version(s);
  OK(tt_add_(c, s, b));
  assert_int_equal(one.computed, 2);
  assert_int_equal(tt_tensor_version(s), version + 1);
  VALUES(s, 21, 42, 63);
  OK(tt_mul(c, a, b, &m)); /* declined */
  assert_int_equal(one.asked, 3);
  assert_string_equal(one.last, "mul");
  VALUES(m, 10, 40, 90);
  assert_int_equal(tt_tensor_device_type(m), TT_EXT);
  version = tt_tensor_version(m);
  OK(tt_mul_(c, m, a));
  assert_int_equal(tt_tensor_version(m), version + 1);
  VALUES(m, 10, 80, 270);
  OK(tt_add_into(c, a, b, m));
  VALUES(m, 11, 22, 33);
  one.mode = kThrowAway;
  OK(tt_add(c, a, b, &s));
  VALUES(s, 11, 22, 33);
  one.mode = kCallTt;
  OK(tt_add(c, a, b, &s));
  VALUES(s, 11, 22, 33);
}

/* Aliases among the arguments mean the same as on the CPU; a read-only or shared target is refused.
 */
static void test_aliases(void** state) {
  tt_tensor *a = THERE(1, 2, 3, 4), *head, *tail, *wide;
  (void)state;
  OK(tt_mul_(c, a, a));
  VALUES(a, 1, 4, 9, 16);
  OK(tt_slice(c, a, 0, &(tt_slice_opts){.set = TT_SLICE_END, .end = 3}, &head));
  OK(tt_slice(c, a, 0, &(tt_slice_opts){.set = TT_SLICE_START, .start = 1}, &tail));
  FAILS(tt_mul_(c, head, tail), TT_INVALID_ARG, "shares memory");
  VALUES(a, 1, 4, 9, 16);
  OK(tt_mul_(c, head, head));
  VALUES(a, 1, 16, 81, 16);
  OK(tt_select(c, a, 0, 1, &tail));
  OK(tt_expand(c, tail, SHAPE(3), &wide));
  FAILS(tt_add_(c, wide, head), TT_INVALID_ARG, NULL);
  FAILS(tt_mul(c, a, head, &wide), TT_SHAPE, NULL);
  FAILS(tt_mul(c, a, numbers(TT_F64, DATA(1, 2, 3, 4)), &wide), TT_DEVICE, "one device");
  OK(tt_mul(c, a, number(TT_F64, 2), &wide));
  VALUES(wide, 2, 32, 162, 32);
}

static void test_gradients(void** state) {
  tt_tensor* x = THERE(1, 2, 3);
  tt_tensor* w = THERE(2, -1, 0.5);
  tt_tensor* y;
  tt_tensor* z;
  tt_tensor* g;
  tt_tensor* gg;
  (void)state;
  OK(tt_requires_grad_(c, x, 1));
  OK(tt_requires_grad_(c, w, 1));
  OK(tt_mul(c, x, w, &y));
  OK(tt_add(c, y, x, &y));
  OK(tt_exp(c, y, &z));
  OK(tt_mul(c, z, x, &z));
  g = derive(z, x, 1);
  assert_int_equal(tt_tensor_device_type(g), TT_EXT);
  {
    const double e0 = exp(3);
    const double e1 = 1;
    const double e2 = exp(4.5);
    NEAR(g, 1e-11 * e2, e0 * (1 + 3), e1 * (1 + 0), e2 * (1 + 3 * 1.5));
    gg = derive(g, w, 1);
    NEAR(gg, 1e-9 * e2, 5 * e0, 2 * 2 * e1, 3 * 6.5 * e2);
  }
  OK(tt_backward(c, sum_of(z), NULL));
  assert_int_equal(tt_tensor_device_type(grad_of(w)), TT_EXT);
}

static void test_random(void** state) {
  tt_tensor *a, *b, *m;
  const tt_rand_opts o = {.set = TT_RAND_DEVICE, .device = dev};
  double *va, *vb;
  uint64_t before[2], after[2];
  tt_generator* gen;
  (void)state;
  OK(tt_manual_seed(c, 5));
  OK(tt_rand(c, SHAPE(100), NULL, &a));
  OK(tt_manual_seed(c, 5));
  OK(tt_rand(c, SHAPE(100), &o, &b));
  assert_int_equal(tt_tensor_device_type(b), TT_EXT);
  va = values_of(a);
  vb = values_of(b);
  assert_memory_equal(va, vb, 100 * sizeof *va);
  free(va);
  free(vb);
  OK(tt_dropout(c, b, NULL, &m));
  OK(tt_ctx_generator(c, &gen));
  OK(tt_generator_state(c, gen, before));
  one.memory.fail_copy = 1; /* of the result: the generator is restored */
  FAILS(tt_rand(c, SHAPE(100), &o, &b), TT_CALLBACK, "copy callback of device one");
  OK(tt_generator_state(c, gen, after));
  assert_memory_equal(before, after, sizeof before);
  tt_generator_release(gen);
}

/* ---- failures ---- */

static void test_failures(void** state) {
  tt_tensor* a = THERE(1, 2, 3);
  tt_tensor* b = THERE(1, 2, 3);
  tt_tensor* out;
  int i;
  (void)state;
  one.mode = kFail;
  FAILS(tt_add(c, a, b, &out), TT_CALLBACK, "compute callback of one");
  assert_non_null(tt_ctx_error(c)->cause);
  assert_int_equal(tt_ctx_error(c)->cause->code, TT_INVALID_ARG);
  assert_null(out);
  one.mode = kOnCpu;
  FAILS(tt_add(c, a, b, &out), TT_CALLBACK, "result on cpu");
  one.mode = kReturnInput;
  FAILS(tt_add(c, a, b, &out), TT_CALLBACK, "returned one of the arguments");
  one.mode = kForget;
  FAILS(tt_add(c, a, b, &out), TT_CALLBACK, "NULL");
  one.mode = kPlain;
  for (i = 1; i <= 3; i++) { /* to the CPU twice, back once */
    one.memory.fail_copy = i;
    FAILS(tt_mul(c, a, b, &out), TT_CALLBACK, "copy callback");
  }
  one.memory.fail_copy = 0;
  one.memory.room = one.memory.live;
  FAILS(tt_mul(c, a, b, &out), TT_OOM, NULL);
  FAILS(tt_add(c, a, b, &out), TT_CALLBACK, NULL);
  assert_int_equal(tt_ctx_error(c)->cause->code, TT_OOM);
  one.memory.room = 0;
  VALUES(a, 1, 2, 3);
}

/* Two runtimes: CPU tensors can be mixed, EXT tensors cannot; memory is freed after the runtime. */
static void test_runtimes(void** state) {
  tt_runtime* rt;
  tt_ctx *other, *mine = c;
  tt_tensor *a, *b = NULL, *sum = NULL, *held;
  const tt_empty_opts o = {.set = TT_EMPTY_DEVICE, .device = {TT_EXT, 0}};
  double v;
  (void)state;
  a = THERE(1, 2, 3);
  assert_int_equal(tt_runtime_new(NULL, &rt), TT_OK);
  assert_int_equal(tt_ctx_new(rt, &other), TT_OK);
  tt_runtime_release(rt);
  c = other;
  FAILS(tt_add(c, a, a, &sum), TT_DEVICE, "another runtime");
  add_backend(c, &two, "two");
  FAILS(tt_add(c, a, a, &sum), TT_DEVICE, "another runtime");
  FAILS(tt_transpose(c, a, 0, 0, &sum), TT_DEVICE, "another runtime");
  FAILS(tt_to(c, a, &(tt_to_opts){.set = TT_TO_DEVICE, .device = {TT_CPU, 0}}, &sum), TT_DEVICE,
        "another runtime");
  FAILS(tt_tensor_read(c, a, &v, 24), TT_DEVICE, "another runtime");
  OK(tt_empty(c, SHAPE(3), &o, &b));
  FAILS(tt_add(c, a, b, &sum), TT_DEVICE, NULL);
  FAILS(tt_copy_(c, b, a), TT_DEVICE, "another runtime");
  OK(tt_zeros(c, SHAPE(4), &(tt_zeros_opts){.set = TT_ZEROS_DEVICE, .device = {TT_EXT, 0}}, &held));
  tt_tensor_release(b);
  tt_ctx_release(other); /* the runtime is released, `held` is not */
  assert_true(two.memory.live > 0 && two.memory.dropped == 0);
  tt_tensor_release(held);
  assert_true(two.memory.live == 0 && two.memory.blocks == 0 && two.memory.dropped == 1);
  c = mine;
}

static void* release_there(void* t) {
  tt_tensor_release(t);
  return NULL;
}
static void test_threads(void** state) {
  pthread_t t;
  tt_tensor* a = NULL;
  const tt_empty_opts o = {.set = TT_EMPTY_DEVICE, .device = dev};
  (void)state;
  OK(tt_scope_push(c));
  OK(tt_empty(c, SHAPE(300), &o, &a));
  tt_tensor_retain(a);
  OK(tt_scope_pop(c, NULL, 0));
  assert_int_equal(one.memory.live, 1200);
  assert_int_equal(pthread_create(&t, NULL, release_there, a), 0);
  pthread_join(t, NULL);
  assert_int_equal(one.memory.live, 0);
}

/* A model, an optimizer and clipping: bit-equal on the device and on the CPU. */
static void train(tt_device d, double* out) {
  tt_tensor* w = to(d, numbers(TT_F64, DATA(0.5, -1, 2)));
  tt_tensor* x = to(d, make(TT_F64, SHAPE(4, 3), DATA(1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 1)));
  tt_tensor *y, *loss, *total, *params[1];
  tt_optimizer* opt;
  int i;
  OK(tt_requires_grad_(c, w, 1));
  params[0] = w;
  OK(tt_optim_adam(c, params, 1, NULL, &opt));
  for (i = 0; i < 5; i++) {
    OK(tt_optim_zero_grad(c, opt, 1));
    OK(tt_matmul(c, x, w, &y));
    OK(tt_tanh(c, y, &y));
    OK(tt_mul(c, y, y, &y));
    OK(tt_mean(c, y, NULL, &loss));
    OK(tt_backward(c, loss, NULL));
    OK(tt_clip_grad_norm_(c, params, 1, 0.01, NULL, &total));
    assert_int_equal(tt_tensor_device_type(total), d.type);
    OK(tt_optim_step(c, opt));
  }
  OK(tt_tensor_read(c, w, out, 24));
  tt_optim_release(opt);
}
static void test_training(void** state) {
  double want[3], got[3];
  (void)state;
  train((tt_device){TT_CPU, 0}, want);
  train(dev, got);
  assert_memory_equal(want, got, sizeof want);
}

/* A 0-dim CPU tensor can be mixed with device tensors as a number; a META one has no value. */
static void test_number_without_a_value(void** state) {
  const tt_zeros_opts meta = {
      .set = TT_ZEROS_DEVICE | TT_ZEROS_DTYPE, .dtype = TT_F64, .device = {TT_META, 0}};
  tt_to_opts there = {.set = TT_TO_DEVICE, .device = dev};
  tt_tensor *x, *none, *out;
  (void)state;
  OK(tt_to(c, make(TT_F64, SHAPE(3), DATA(1, 2, 3)), &there, &x));
  OK(tt_zeros(c, NULL, 0, &meta, &none));
  FAILS(tt_sub(c, x, none, &out), TT_DEVICE, "must be on one device");
  assert_null(out);
  FAILS(tt_sub(c, none, x, &out), TT_DEVICE, "must be on one device");
  FAILS(tt_mul_(c, x, none), TT_DEVICE, "must be on one device");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON(test_names),    SCOPED(test_refused), ON(test_memory),   ON(test_compute),
      ON(test_aliases),  ON(test_gradients),   ON(test_random),   ON(test_failures),
      ON(test_runtimes), ON(test_threads),     ON(test_training), ON(test_number_without_a_value),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
