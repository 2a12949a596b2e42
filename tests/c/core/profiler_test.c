/* The operator profiler. */
#include "support.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static const tt_profile_row* row(const tt_profile_row* rows, int64_t n, const char* op) {
  int64_t i;
  for (i = 0; i < n; i++)
    if (!strcmp(rows[i].op, op)) return &rows[i];
  return NULL;
}
static const double k12[] = {1, 2};

static void test_counts(void** state) {
  CTX;
  tt_tensor* a = vec(c, k12, 2);
  tt_tensor* b = NULL;
  tt_profile_row rows[64];
  int64_t n = -1, i, began, spent;
  OK(tt_profiler_rows(c, NULL, 0, &n)); /* never started */
  assert_int_equal(n, 0);
  OK(tt_add(c, a, a, &b)); /* before the start */
  tt_tensor_release(b);
  OK(tt_profiler_start(c));
  began = now_ns();
  for (i = 0; i < 10; i++) {
    OK(tt_add(c, a, a, &b));
    tt_tensor_release(b);
  }
  OK(tt_mul_(c, a, a));
  spent = now_ns() - began;
  FAILS(TT_SHAPE, tt_view(c, a, &i, 1, &b)); /* i is 10 */
  OK(tt_profiler_stop(c));
  OK(tt_mul_(c, a, a)); /* after the stop */
  OK(tt_profiler_rows(c, rows, 64, &n));
  assert_non_null(row(rows, n, "add"));
  assert_int_equal(row(rows, n, "add")->calls, 10);
  assert_int_equal(row(rows, n, "mul_")->calls, 1);
  assert_int_equal(row(rows, n, "view")->calls, 1); /* a failed call counts, too */
  assert_true(row(rows, n, "add")->total_ns > 0);
  assert_true(row(rows, n, "add")->total_ns + row(rows, n, "mul_")->total_ns <= spent);
  for (i = 0; i < n; i++) {
    assert_true(rows[i].self_ns >= 0 && rows[i].self_ns <= rows[i].total_ns);
    assert_true(i == 0 || rows[i - 1].total_ns >= rows[i].total_ns);
  }
  FAILS(TT_BUFFER_TOO_SMALL, tt_profiler_rows(c, rows, n - 1, &n));
  assert_true(n >= 3);
  FAILS(TT_INVALID_ARG, tt_profiler_rows(c, rows, 64, NULL));
  OK(tt_profiler_start(c)); /* forgets */
  OK(tt_profiler_rows(c, rows, 64, &n));
  assert_int_equal(n, 0);
  OK(tt_profiler_stop(c));
  tt_tensor_release(a);
}

/* A composite's total time includes its parts, its self time does not. */
static void test_nesting(void** state) {
  CTX;
  const int64_t size = 300000;
  tt_tensor *x = NULL, *y = NULL;
  tt_profile_row rows[64];
  const tt_profile_row* outer;
  int64_t n, i, parts = 0, whole = 0;
  OK(tt_ones(c, &size, 1, NULL, &x));
  OK(tt_profiler_start(c));
  for (i = 0; i < 5; i++) {
    OK(tt_reshape(c, x, (const int64_t[]){1000, 300}, 2, &y));
    tt_tensor_release(y);
  }
  OK(tt_profiler_stop(c));
  OK(tt_profiler_rows(c, rows, 64, &n));
  outer = row(rows, n, "reshape");
  assert_non_null(outer);
  assert_non_null(row(rows, n, "view"));
  assert_true(outer->total_ns >= row(rows, n, "view")->total_ns);
  assert_true(outer->self_ns <= outer->total_ns - row(rows, n, "view")->total_ns);
  for (i = 0; i < n; i++) {
    parts += rows[i].self_ns;
    if (strcmp(rows[i].op, "view")) whole += rows[i].total_ns; /* of the outermost calls */
  }
  assert_int_equal(parts, whole);
  tt_tensor_release(x);
}

static void test_backward(void** state) {
  CTX;
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  tt_tensor* loss = NULL;
  tt_profile_row rows[64];
  int64_t n;
  OK(tt_requires_grad_(c, x, 1));
  OK(tt_tanh(c, x, &y));
  OK(tt_sum(c, y, NULL, &loss));
  OK(tt_profiler_start(c));
  OK(tt_backward(c, loss, NULL));
  OK(tt_profiler_stop(c));
  OK(tt_profiler_rows(c, rows, 64, &n));
  assert_non_null(row(rows, n, "tanh_backward"));
  tt_tensor_release(x);
  tt_tensor_release(y);
  tt_tensor_release(loss);
}

/* Operators called by a callback are recorded; starting and stopping inside a callback is
   harmless. */
static int what_to_do;
static tt_status twice(void* user, tt_ctx* c, const tt_value* args, int64_t n_args,
                       tt_tensor** outs, int64_t n_outs) {
  (void)user;
  (void)n_args;
  (void)n_outs;
  if (what_to_do == 1) OK(tt_profiler_stop(c));
  if (what_to_do == 2) OK(tt_profiler_start(c));
  return tt_add(c, args[0].tensor, args[0].tensor, &outs[0]);
}
static void test_custom_operator(void** state) {
  CTX;
  tt_op_def d;
  const tt_op* op = NULL;
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  tt_value arg;
  tt_profile_row rows[64];
  int64_t n;
  memset(&d, 0, sizeof d);
  memset(&arg, 0, sizeof arg);
  d.struct_size = sizeof d;
  d.schema = "twice(x: Tensor) -> Tensor";
  d.compute = twice;
  OK(tt_op_register(c, &d));
  OK(tt_op_find(c, "twice", &op));
  arg.tag = TT_VAL_TENSOR;
  arg.tensor = x;
  for (what_to_do = 0; what_to_do < 3; what_to_do++) {
    OK(tt_profiler_start(c));
    OK(tt_op_call(c, op, &arg, 1, &y, 1, &n));
    HOLDS(y, 2, 4);
    tt_tensor_release(y);
    OK(tt_mul(c, x, x, &y));
    tt_tensor_release(y);
    OK(tt_profiler_stop(c));
    OK(tt_profiler_rows(c, rows, 64, &n));
    if (what_to_do == 0) {
      assert_int_equal(row(rows, n, "twice")->calls, 1);
      assert_int_equal(row(rows, n, "add")->calls, 1);
      assert_true(row(rows, n, "twice")->total_ns >= row(rows, n, "add")->total_ns);
    }
    if (what_to_do == 1) assert_null(row(rows, n, "mul"));
    if (what_to_do == 2) {
      assert_null(row(rows, n, "twice")); /* forgotten while it ran */
      assert_int_equal(row(rows, n, "add")->calls, 1);
      assert_int_equal(row(rows, n, "mul")->calls, 1);
    }
  }
  tt_tensor_release(x);
}

static void test_two_ctxs(void** state) {
  CTX;
  tt_ctx* other = NULL;
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  tt_profile_row rows[8];
  int64_t n;
  OK(tt_ctx_new(e->rt, &other));
  OK(tt_profiler_start(c));
  assert_int_equal(tt_add(other, x, x, &y), TT_OK);
  OK(tt_profiler_rows(c, rows, 8, &n));
  assert_int_equal(n, 0);
  tt_tensor_release(x);
  tt_tensor_release(y);
  tt_ctx_release(other);
}

/* ---- events ---- */

enum { kMost = 4096 };
static tt_profile_event events[kMost];

static int64_t read_events(tt_ctx* c) {
  int64_t n = -1;
  assert_int_equal(tt_profiler_events(c, events, kMost, &n), TT_OK);
  return n;
}
static const tt_profile_event* event(int64_t n, int32_t kind, const char* name) {
  int64_t i;
  for (i = 0; i < n; i++)
    if (events[i].kind == kind && !strcmp(events[i].name, name)) return &events[i];
  return NULL;
}
static const tt_profile_event* by_id(int64_t n, int64_t id) {
  int64_t i;
  for (i = 0; i < n; i++)
    if (events[i].id == id && id) return &events[i];
  return NULL;
}
static tt_profiler_start_opts all_options(void) {
  tt_profiler_start_opts o;
  memset(&o, 0, sizeof o);
  o.set = 31;
  o.capacity = kMost / 2;
  o.record_shapes = o.profile_memory = o.with_flops = o.with_modules = 1;
  return o;
}
static tt_tensor* matrix(tt_ctx* c, int64_t rows, int64_t columns) {
  const int64_t size[] = {rows, columns};
  tt_tensor* out = NULL;
  assert_int_equal(tt_ones(c, size, 2, NULL, &out), TT_OK);
  return out;
}

/* A step of training: every kind of event, each inside its parent. */
static void test_events(void** state) {
  CTX;
  const tt_profiler_start_opts o = all_options();
  tt_module *model = NULL, *layer = NULL;
  tt_optimizer* opt = NULL;
  tt_tensor *x = matrix(c, 8, 5), *y = NULL, *loss = NULL, *params[8];
  const tt_profile_event *region, *module, *product, *kernel, *node, *step;
  int64_t n = 0, n_params = 0, i, id = 0;
  double held = 0;
  OK(tt_nn_sequential(c, &model));
  for (i = 0; i < 2; i++) {
    OK(tt_nn_linear(c, i ? 3 : 5, 3, NULL, &layer));
    OK(tt_module_append(c, model, layer));
    tt_module_release(layer);
  }
  OK(tt_module_parameters(c, model, params, 8, &n_params));
  OK(tt_optim_sgd(c, params, n_params, NULL, &opt));
  for (i = 0; i < n_params; i++) tt_tensor_release(params[i]);
  OK(tt_profiler_begin(c, TT_EVENT_REGION, "before", &id));
  assert_int_equal(id, 0);
  OK(tt_profiler_start_ex(c, &o));
  OK(tt_profiler_begin(c, TT_EVENT_REGION, "step 1", &id));
  assert_true(id > 0);
  OK(tt_module_call(c, model, x, &y));
  OK(tt_sum(c, y, NULL, &loss));
  OK(tt_backward(c, loss, NULL));
  OK(tt_optim_step(c, opt));
  OK(tt_profiler_end(c, id));
  OK(tt_profiler_end(c, id)); /* has ended */
  tt_tensor_release(y);
  tt_tensor_release(loss);
  OK(tt_profiler_stop(c));
  n = read_events(c);
  for (i = 0; i < n; i++) {
    const tt_profile_event* e = &events[i];
    const tt_profile_event* parent = by_id(n, e->parent);
    assert_true(e->end_ns >= e->begin_ns);
    assert_true(i == 0 || e->begin_ns >= e[-1].begin_ns);
    assert_true(e->parent == 0 || parent != NULL);
    if (parent) assert_true(parent->begin_ns <= e->begin_ns && parent->end_ns >= e->end_ns);
    if (e->kind == TT_EVENT_MEMORY) {
      held += (double)e->bytes;
      assert_true((double)e->held == held);
    }
  }
  region = event(n, TT_EVENT_REGION, "step 1");
  module = event(n, TT_EVENT_MODULE, "Linear_1");
  product = event(n, TT_EVENT_OP, "linear_rows");
  kernel = event(n, TT_EVENT_KERNEL, "matmul");
  node = event(n, TT_EVENT_NODE, "sum");
  step = event(n, TT_EVENT_OPTIMIZER, "SGD");
  assert_non_null(region);
  assert_non_null(module);
  assert_non_null(event(n, TT_EVENT_MODULE, "Linear_0"));
  assert_null(event(n, TT_EVENT_MODULE, "Linear_2"));
  assert_non_null(product);
  assert_non_null(kernel);
  assert_non_null(node);
  assert_non_null(step);
  assert_int_equal(by_id(n, module->parent)->kind, TT_EVENT_MODULE);
  assert_string_equal(by_id(n, module->parent)->name, "Sequential_0");
  assert_int_equal(step->parent, region->id);
  assert_int_equal(by_id(n, kernel->parent)->kind, TT_EVENT_OP);
  assert_true(product->flops == 2.0 * 8 * 5 * 3);
  assert_true(module->flops == 2.0 * 8 * 3 * 3);
  assert_true(region->flops > product->flops + module->flops); /* backward, too */
  assert_int_equal(product->n_shapes, 3 + 3 + 2);
  assert_int_equal(product->shapes[0], 2);
  assert_int_equal(product->shapes[1], 8);
  assert_int_equal(product->shapes[2], 5);
  assert_int_equal(product->bytes, 8 * 3 * 4);
  FAILS(TT_BUFFER_TOO_SMALL, tt_profiler_events(c, events, n - 1, &i));
  assert_int_equal(i, n);
  tt_tensor_release(x);
  tt_module_release(model);
  tt_optim_release(opt);
}

/* Sums do not depend on the ring. */
static void test_full_ring(void** state) {
  CTX;
  tt_profiler_start_opts o = all_options();
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  tt_profile_sum sums[16];
  int64_t n, dropped = -1, i, id = 0;
  o.profile_memory = 0;
  o.capacity = 5;
  OK(tt_profiler_start_ex(c, &o));
  OK(tt_profiler_begin(c, TT_EVENT_REGION, "all", &id));
  for (i = 0; i < 10; i++) {
    OK(tt_add(c, x, x, &y));
    tt_tensor_release(y);
  }
  OK(tt_profiler_end(c, id));
  n = read_events(c);
  OK(tt_profiler_dropped(c, &dropped));
  assert_int_equal(n, 5);
  assert_int_equal(dropped, 1 + 20 - 5);
  assert_string_equal(events[4].name, "add");
  for (i = 1; i < n; i++) assert_int_equal(events[i].id, events[i - 1].id + 1);
  OK(tt_profiler_sums(c, sums, 16, &n));
  assert_int_equal(n, 3);
  assert_string_equal(sums[0].name, "all");
  assert_int_equal(sums[0].calls, 1);
  assert_true(sums[0].flops == 20);
  for (i = 1; i < 3; i++) assert_int_equal(sums[i].calls, 10);
  OK(tt_profiler_start_ex(c, &o)); /* begins at the beginning of the ring */
  OK(tt_mul(c, x, x, &y));
  tt_tensor_release(y);
  n = read_events(c);
  assert_int_equal(n, 2);
  assert_string_equal(events[0].name, "mul");
  OK(tt_profiler_stop(c));
  o.capacity = 0;
  FAILS(TT_INVALID_ARG, tt_profiler_start_ex(c, &o));
  o.capacity = INT64_MAX;
  FAILS(TT_INVALID_ARG, tt_profiler_start_ex(c, &o));
  o.set = 32;
  FAILS(TT_UNSUPPORTED_OPTION, tt_profiler_start_ex(c, &o));
  FAILS(TT_INVALID_ARG, tt_profiler_begin(c, TT_EVENT_MEMORY, "x", &id));
  FAILS(TT_INVALID_ARG, tt_profiler_begin(c, 8, "x", &id));
  tt_tensor_release(x);
}

/* Events that are left open, ended out of order, or deeper than the profiler follows. */
static void test_open_events(void** state) {
  CTX;
  int64_t ids[600], n, i;
  OK(tt_profiler_start_ex(c, NULL));
  for (i = 0; i < 3; i++) OK(tt_profiler_begin(c, TT_EVENT_REGION, "r", &ids[i]));
  OK(tt_profiler_end(c, ids[1])); /* and the one inside */
  OK(tt_profiler_end(c, ids[2]));
  OK(tt_profiler_end(c, -1));
  OK(tt_profiler_end(c, INT64_MAX));
  n = read_events(c);
  assert_int_equal(n, 3);
  assert_int_equal(events[0].end_ns, 0);
  assert_true(events[1].end_ns > 0 && events[2].end_ns > 0);
  OK(tt_profiler_stop(c));
  read_events(c);
  assert_true(events[0].end_ns > 0);
  OK(tt_profiler_end(c, ids[0]));
  OK(tt_profiler_start_ex(c, NULL));
  OK(tt_profiler_end(c, ids[0])); /* of the profile before */
  for (i = 0; i < 600; i++) OK(tt_profiler_begin(c, TT_EVENT_MODULE + 4, "deep", &ids[i]));
  assert_int_equal(ids[599], 0);
  OK(tt_profiler_end(c, ids[599]));
  OK(tt_profiler_end(c, ids[0]));
  n = read_events(c);
  assert_true(n > 100 && n < 600);
  for (i = 0; i < n; i++) assert_true(events[i].end_ns > 0);
  OK(tt_profiler_stop(c));
}

/* Memory that outlives the profile, or is released by another profile of another ctx. */
static void test_memory(void** state) {
  CTX;
  const tt_profiler_start_opts o = all_options();
  tt_ctx* other = NULL;
  tt_tensor *small = NULL, *large = NULL, *view = NULL;
  int64_t n, i, bytes = 0;
  OK(tt_ctx_new(e->rt, &other));
  OK(tt_profiler_start_ex(c, &o));
  small = matrix(c, 4, 4);
  large = matrix(c, 100, 100);
  OK(tt_view(c, large, (const int64_t[]){10000}, 1, &view)); /* no memory of its own */
  OK(tt_add_(c, large, large));
  n = read_events(c);
  for (i = 0; i < n; i++)
    if (events[i].kind == TT_EVENT_MEMORY) bytes += events[i].bytes;
  assert_int_equal(bytes, 64 + 40000);
  assert_int_equal(tt_profiler_start_ex(other, &o), TT_OK);
  assert_int_equal(tt_add_(other, small, small), TT_OK);
  tt_tensor_release(small);
  tt_tensor_release(large);
  tt_tensor_release(view);
  n = read_events(c);
  for (i = 0, bytes = 0; i < n; i++)
    if (events[i].kind == TT_EVENT_MEMORY) bytes += events[i].bytes;
  assert_int_equal(bytes, 0);
  large = matrix(c, 100, 100);
  OK(tt_profiler_stop(c));
  tt_tensor_release(large); /* not recorded any more */
  n = read_events(c);
  for (i = 0, bytes = 0; i < n; i++)
    if (events[i].kind == TT_EVENT_MEMORY) bytes += events[i].bytes;
  assert_int_equal(bytes, 40000);
  OK(tt_profiler_start_ex(c, &o));
  large = matrix(c, 100, 100);
  tt_ctx_release(other);
  tt_tensor_retain(large);
  tt_tensor_release(large);
  OK(tt_profiler_start(c)); /* the counting profile takes over */
  tt_tensor_release(large);
}

static void test_chrome_trace(void** state) {
  CTX;
  const tt_profiler_start_opts o = all_options();
  char path[64], text[8192], missing[96];
  FILE* file;
  size_t bytes;
  int64_t id = 0;
  tt_tensor* x = matrix(c, 4, 4);
  tt_tensor* y = NULL;
  snprintf(path, sizeof path, "/tmp/tt_trace_%ld.json", (long)getpid());
  snprintf(missing, sizeof missing, "%s/below/a/file", path);
  OK(tt_profiler_chrome_trace(c, path)); /* nothing was recorded */
  OK(tt_profiler_start_ex(c, &o));
  OK(tt_profiler_begin(c, TT_EVENT_REGION, "a \"b\"\n\xff", &id));
  OK(tt_matmul(c, x, x, &y));
  OK(tt_profiler_stop(c));
  OK(tt_profiler_chrome_trace(c, path));
  file = fopen(path, "r");
  assert_non_null(file);
  bytes = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[bytes] = 0;
  assert_non_null(strstr(text, "\"name\":\"a \\\"b\\\"\\u000a?\""));
  assert_non_null(strstr(text, "\"cat\":\"cpu_op\",\"name\":\"matmul\""));
  assert_non_null(strstr(text, "\"Input Dims\":[[4,4],[4,4]]"));
  assert_non_null(strstr(text, "\"flops\":128"));
  FAILS(TT_IO, tt_profiler_chrome_trace(c, missing));
  FAILS(TT_IO, tt_profiler_chrome_trace(c, "/tmp"));
  FAILS(TT_INVALID_ARG, tt_profiler_chrome_trace(c, NULL));
  remove(path);
  tt_tensor_release(x);
  tt_tensor_release(y);
}

typedef struct Thread {
  pthread_t thread;
  tt_ctx* c;
  tt_tensor* shared;
  int64_t adds, events;
} Thread;
static void* profiled_thread(void* arg) {
  Thread* t = arg;
  const tt_profiler_start_opts o = all_options();
  tt_tensor* y = NULL;
  int64_t i;
  if (tt_profiler_start_ex(t->c, &o)) return arg;
  for (i = 0; i < t->adds; i++) {
    if (tt_add(t->c, t->shared, t->shared, &y)) return arg;
    tt_tensor_release(y);
  }
  if (tt_profiler_stop(t->c)) return arg;
  tt_profiler_events(t->c, NULL, 0, &t->events);
  return NULL;
}
static void test_threads(void** state) {
  CTX;
  Thread threads[4];
  tt_tensor* x = vec(c, k12, 2);
  void* failed = NULL;
  int i;
  for (i = 0; i < 4; i++) {
    threads[i].adds = 20 * (i + 1);
    threads[i].shared = x;
    OK(tt_ctx_new(e->rt, &threads[i].c));
    assert_int_equal(pthread_create(&threads[i].thread, NULL, profiled_thread, &threads[i]), 0);
  }
  for (i = 0; i < 4; i++) {
    pthread_join(threads[i].thread, &failed);
    assert_null(failed);
    /* the operator, its kernel, its result's memory and its release */
    assert_int_equal(threads[i].events, 4 * threads[i].adds);
    tt_ctx_release(threads[i].c);
  }
  tt_tensor_release(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_counts),          TEST(test_nesting),     TEST(test_backward),
      TEST(test_custom_operator), TEST(test_two_ctxs),    TEST(test_events),
      TEST(test_full_ring),       TEST(test_open_events), TEST(test_memory),
      TEST(test_chrome_trace),    TEST(test_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
