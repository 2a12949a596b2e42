/* Streams, events and memory of CUDA devices, on the fake device (tests/fake), whose streams run
   late and in adverse orders. */
#include "support.h"

#include <dlfcn.h>
#include <pthread.h>
#ifndef _WIN32
#include <sys/mman.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

static void (*fake_late)(uint64_t);
static void (*fake_cut_blocks)(int32_t);
static void (*fake_fail)(int64_t, int32_t, int32_t);
static int64_t (*fake_syncs)(void);
static int64_t (*fake_live)(int32_t);

static const tt_device kCuda0 = {TT_CUDA, 0};
static const tt_device kCuda1 = {TT_CUDA, 1};
static const double k1234[] = {1, 2, 3, 4};

static int open_fake(void** state) {
  const char* path = getenv("TT_TEST_FAKE_LIBRARY");
  void* lib = dlopen(path ? path : "libtt_fake.so", RTLD_NOW | RTLD_LOCAL);
  (void)state;
  if (!lib) {
    printf("%s\n", dlerror());
    return -1;
  }
  *(void**)&fake_late = dlsym(lib, "tt_fake_late");
  *(void**)&fake_cut_blocks = dlsym(lib, "tt_fake_cut_blocks");
  *(void**)&fake_fail = dlsym(lib, "tt_fake_fail");
  *(void**)&fake_syncs = dlsym(lib, "tt_fake_syncs");
  *(void**)&fake_live = dlsym(lib, "tt_fake_live");
  return fake_late && fake_cut_blocks && fake_fail && fake_syncs && fake_live ? 0 : -1;
}
static void load_fake(tt_ctx* c) {
  const char* path = getenv("TT_TEST_FAKE_LIBRARY");
  OK(tt_load_cuda(c, path ? path : "libtt_fake.so"));
}
static tt_tensor* on(tt_ctx* c, const double* values, tt_device device) {
  tt_tensor* a = mat(c, values, 2, 2);
  tt_to_opts o;
  tt_tensor* out = NULL;
  memset(&o, 0, sizeof o);
  o.set = TT_TO_DEVICE;
  o.device = device;
  OK(tt_to(c, a, &o, &out));
  tt_tensor_release(a);
  return out;
}

static void test_handles(void** state) {
  CTX;
  tt_stream *s, *t, *own, *many[32];
  tt_event *early, *later;
  tt_device_properties p;
  double ms = -1;
  int32_t flag = -1;
  int i;
  load_fake(c);
  OK(tt_stream_new(c, NULL, 0, &s));
  OK(tt_stream_new(c, &kCuda1, -1, &t));
  OK(tt_stream_default(c, &kCuda0, &own));
  assert_int_equal(tt_stream_device_index(t), 1);
  assert_non_null(tt_stream_handle(s));
  assert_ptr_not_equal(tt_stream_handle(s), tt_stream_handle(own));
  OK(tt_stream_query(c, s, &flag));
  assert_int_equal(flag, 1);
  OK(tt_stream_synchronize(c, s));
  OK(tt_event_new(c, NULL, 1, &early));
  OK(tt_event_new(c, NULL, 1, &later));
  OK(tt_event_query(c, early, &flag));
  assert_int_equal(flag, 1);
  OK(tt_stream_wait_event(c, s, early)); /* never recorded: nothing to wait for */
  FAILS(TT_INVALID_ARG, tt_event_elapsed(c, early, later, &ms));
  OK(tt_event_record(c, early, s));
  OK(tt_event_record(c, later, NULL));
  OK(tt_event_synchronize(c, later));
  OK(tt_event_elapsed(c, early, later, &ms));
  assert_true(ms >= 0);
  FAILS(TT_DEVICE, tt_event_record(c, early, t)); /* of another device */
  OK(tt_stream_wait_event(c, t, early));
  OK(tt_stream_wait_stream(c, t, s));
  OK(tt_stream_wait_stream(c, t, t));
  FAILS(TT_BAD_HANDLE, tt_stream_set(c, (tt_stream*)early));
  OK(tt_device_get_properties(c, NULL, &p));
  assert_string_equal(p.name, "fake");
  OK(tt_device_can_access_peer(c, &kCuda0, &kCuda1, &flag));
  assert_int_equal(flag, 1);
  for (i = 0; i < 30; i++) OK(tt_stream_new(c, NULL, 0, &many[i]));
  FAILS(TT_DEVICE, tt_stream_new(c, NULL, 0, &many[30]));
  assert_null(many[30]);
  for (i = 0; i < 30; i++) tt_stream_release(many[i]);
  OK(tt_stream_new(c, NULL, 0, &many[0]));
  tt_stream_release(many[0]);
  tt_stream_release(s);
  tt_stream_release(t);
  tt_stream_release(own);
  tt_event_release(early);
  tt_event_release(later);
}

/* A stream of the application, here one that another runtime made: tt computes on it, and leaves it
   when the last reference is dropped. */
static void test_import(void** state) {
  CTX;
  tt_runtime* rt;
  tt_ctx* host;
  tt_stream *theirs, *s, *own;
  tt_tensor *x, *y = NULL, *z = NULL;
  int32_t done = 0;
  load_fake(c);
  OK(tt_runtime_new(NULL, &rt));
  OK(tt_ctx_new(rt, &host));
  load_fake(host);
  OK(tt_stream_new(host, NULL, 0, &theirs));
  FAILS(TT_INVALID_ARG, tt_stream_import(c, NULL, NULL, &s));
  assert_null(s);
  OK(tt_stream_import(c, &kCuda0, tt_stream_handle(theirs), &s));
  assert_ptr_equal(tt_stream_handle(s), tt_stream_handle(theirs));
  OK(tt_stream_default(c, NULL, &own));
  x = on(c, k1234, kCuda0);
  fake_late(7);
  OK(tt_stream_set(c, s));
  OK(tt_add(c, x, x, &y));
  OK(tt_stream_set(c, own));
  OK(tt_mul(c, y, x, &z)); /* waits for s */
  tt_stream_release(s);
  tt_tensor_release(y); /* computed on a stream that tt no longer has */
  HOLDS(z, 2, 8, 18, 32);
  fake_late(0);
  OK(tt_stream_synchronize(host, theirs));
  OK(tt_stream_query(host, theirs, &done));
  assert_int_equal(done, 1);
  tt_tensor_release(x);
  tt_tensor_release(z);
  tt_stream_release(own);
  tt_stream_release(theirs);
  tt_ctx_release(host);
  tt_runtime_release(rt);
}

/* A program on two streams, without a wait of its own: x is written on one stream, read on the
   other, and memory goes from one to the other. */
static void one_program(tt_ctx* c) {
  tt_stream *s, *own;
  int i;
  tt_tensor *x, *sum = NULL, *product = NULL, *twice = NULL;
  OK(tt_stream_default(c, NULL, &own));
  OK(tt_stream_new(c, NULL, 0, &s));
  x = on(c, k1234, kCuda0);
  OK(tt_add_(c, x, x)); /* 2 4 6 8 */
  OK(tt_stream_set(c, s));
  OK(tt_mul(c, x, x, &product)); /* 4 16 36 64, after x */
  for (i = 0; i < 3; i++) {
    tt_tensor* scratch = NULL;
    OK(tt_add(c, product, x, &scratch));
    tt_tensor_release(scratch); /* its memory may be used again on s only */
  }
  OK(tt_stream_set(c, own));
  OK(tt_add(c, product, x, &sum)); /* waits for s */
  HOLDS(product, 4, 16, 36, 64);
  HOLDS(sum, 6, 20, 42, 72);
  OK(tt_add(c, x, x, &twice));
  OK(tt_stream_set(c, s));
  OK(tt_add_(c, product, twice)); /* 8 24 48 80 */
  tt_tensor_release(twice);       /* s still reads it */
  OK(tt_stream_set(c, own));
  for (i = 0; i < 4; i++) {
    tt_tensor* other = NULL;
    OK(tt_zeros_like(c, x, NULL, &other));
    tt_tensor_release(other);
  }
  tt_stream_release(s); /* its work continues */
  HOLDS(product, 8, 24, 48, 80);
  tt_stream_release(own);
  tt_tensor_release(x);
  tt_tensor_release(sum);
  tt_tensor_release(product);
}
static void test_streams_run_late(void** state) {
  CTX;
  uint64_t order;
  load_fake(c);
  for (order = 0; order < 40; order++) {
    fake_late(order);
    one_program(c);
  }
  fake_late(0);
}

/* A stream that takes the place of one that has ended takes its free memory, too, which work of the
   ended one may still use. */
static void test_place_of_an_ended_stream(void** state) {
  CTX;
  uint64_t order;
  load_fake(c);
  for (order = 0; order < 40; order++) {
    tt_stream *ended, *other, *next, *own;
    tt_tensor *x, *y, *twice = NULL, *copy = NULL, *squares = NULL, *sum = NULL;
    fake_late(order);
    OK(tt_stream_default(c, NULL, &own));
    OK(tt_stream_new(c, NULL, 0, &ended));
    OK(tt_stream_new(c, NULL, 0, &other));
    x = on(c, k1234, kCuda0);
    y = on(c, k1234, kCuda0);
    OK(tt_synchronize(c, NULL));
    OK(tt_stream_set(c, ended));
    OK(tt_add(c, x, x, &twice));
    OK(tt_add(c, twice, x, &copy)); /* 3 6 9 12 */
    tt_tensor_release(twice);       /* copy's computation still reads it */
    OK(tt_stream_set(c, own));
    OK(tt_stream_set(c, other));
    tt_stream_release(ended);
    OK(tt_stream_new(c, NULL, 0, &next));
    OK(tt_stream_set(c, next));
    OK(tt_mul(c, y, y, &squares)); /* into the memory of twice */
    OK(tt_stream_set(c, own));
    OK(tt_add(c, copy, squares, &sum));
    HOLDS(copy, 3, 6, 9, 12);
    HOLDS(squares, 1, 4, 9, 16);
    HOLDS(sum, 4, 10, 18, 28);
    tt_stream_release(next);
    tt_stream_release(other);
    tt_stream_release(own);
    tt_tensor_release(x);
    tt_tensor_release(y);
    tt_tensor_release(copy);
    tt_tensor_release(squares);
    tt_tensor_release(sum);
  }
  fake_late(0);
}

/* Views and backward go through the mode, too. */
static void test_gradient_on_a_stream(void** state) {
  CTX;
  uint64_t order;
  load_fake(c);
  for (order = 0; order < 10; order++) {
    tt_stream *s, *own;
    tt_tensor *x, *y = NULL, *flat = NULL, *sum = NULL, *grad = NULL;
    fake_late(order);
    OK(tt_stream_default(c, NULL, &own));
    OK(tt_stream_new(c, NULL, 0, &s));
    x = on(c, k1234, kCuda0);
    OK(tt_requires_grad_(c, x, 1));
    OK(tt_stream_set(c, s));
    OK(tt_mul(c, x, x, &y));
    OK(tt_flatten(c, y, NULL, &flat));
    OK(tt_sum(c, flat, NULL, &sum));
    OK(tt_backward(c, sum, NULL));
    OK(tt_stream_set(c, own));
    OK(tt_tensor_grad(c, x, &grad));
    HOLDS(grad, 2, 4, 6, 8);
    HOLDS(flat, 1, 4, 9, 16);
    tt_stream_release(s);
    tt_stream_release(own);
    tt_tensor_release(x);
    tt_tensor_release(y);
    tt_tensor_release(flat);
    tt_tensor_release(sum);
    tt_tensor_release(grad);
  }
  fake_late(0);
}

/* Blocks are cut and merged while streams run late. */
static void test_memory(void** state) {
  CTX;
  tt_device_memory m;
  tt_stream *s, *own;
  uint64_t order;
  load_fake(c);
  fake_cut_blocks(1);
  for (order = 1; order < 12; order++) {
    fake_late(order);
    one_program(c);
  }
  OK(tt_stream_new(c, NULL, 0, &s));
  OK(tt_stream_default(c, NULL, &own));
  OK(tt_device_memory_stats(c, &kCuda0, &m));
  assert_int_equal(m.allocated, 0);
  assert_true(m.reserved > 0 && m.max_allocated > 0 && m.allocations > 0);
  assert_true(m.total >= m.free && m.total - m.free >= m.reserved);
  OK(tt_device_reset_peak(c, &kCuda0));
  OK(tt_synchronize(c, NULL));
  OK(tt_trim(c));
  OK(tt_device_memory_stats(c, NULL, &m));
  assert_int_equal(m.reserved, 0);
  assert_int_equal(m.max_allocated, 0);
  FAILS(TT_DEVICE, tt_device_memory_stats(c, &(tt_device){TT_CPU, 0}, &m));
  tt_stream_release(s);
  tt_stream_release(own);
  fake_late(0);
  OK(tt_trim(c));
  fake_cut_blocks(0);
}

/* Indices out of range and other values that a call refuses are found while it runs, and reported
   at the next synchronisation: the first one, with operator, argument, position and value. */
static void test_faults_come_late(void** state) {
  CTX;
  static const int64_t kGood[] = {0, 1, 1}, kBad[] = {1, 7, 0};
  const int64_t three = 3;
  const tt_to_opts to = {.set = TT_TO_DEVICE, .device = {TT_CUDA, 0}};
  tt_tensor *x, *host, *good = NULL, *bad = NULL, *y = NULL, *z = NULL, *zero = NULL;
  uint64_t order;
  int64_t read[3];
  int i;
  load_fake(c);
  x = on(c, k1234, kCuda0);
  OK(tt_tensor_from_data(c, kGood, TT_I64, &three, 1, &host));
  OK(tt_to(c, host, &to, &good));
  tt_tensor_release(host);
  OK(tt_tensor_from_data(c, kBad, TT_I64, &three, 1, &host));
  OK(tt_to(c, host, &to, &bad));
  OK(tt_zeros_like(c, bad, NULL, &zero));
  for (order = 0; order < 8; order++) {
    const int64_t before = fake_syncs();
    fake_late(order);
    for (i = 0; i < 20; i++) {
      OK(tt_index_select(c, x, 0, good, &y));
      tt_tensor_release(y);
    }
    OK(tt_index_select(c, x, 1, bad, &y));
    OK(tt_index_select(c, x, 0, bad, &z));
    assert_int_equal(fake_syncs(), before);
    FAILS(TT_INDEX, tt_synchronize(c, &kCuda0));
    SAYS("index_select: index holds 7 at [1]: must be in [0, 2)");
    assert_string_equal(tt_ctx_error(c)->arg, "index");
    OK(tt_synchronize(c, &kCuda0)); /* told once, and only the first one */
    tt_tensor_release(y);
    tt_tensor_release(z);
    OK(tt_floor_divide(c, bad, zero, &y));
    FAILS(TT_INVALID_ARG, tt_tensor_read(c, y, read, sizeof read)); /* waits, too */
    SAYS("integer division by zero: other holds 0 at [0]");
    tt_tensor_release(y);
    for (i = 0; i < 600; i++) { /* more than can be kept */
      OK(tt_index_select(c, x, 0, good, &y));
      tt_tensor_release(y);
    }
    OK(tt_synchronize(c, NULL));
  }
  fake_late(0);
  tt_tensor_release(x);
  tt_tensor_release(host);
  tt_tensor_release(good);
  tt_tensor_release(bad);
  tt_tensor_release(zero);
}

/* Copies from and to pinned memory do not wait; the memory is reused after them. */
static void test_pinned(void** state) {
  CTX;
  uint64_t order;
  load_fake(c);
  for (order = 0; order < 10; order++) {
    const tt_to_opts to = {.set = TT_TO_DEVICE, .device = {TT_CUDA, 0}};
    const int64_t before = fake_syncs();
    tt_stream *s, *own;
    tt_tensor *host = mat(c, k1234, 2, 2), *pinned, *again, *x = NULL, *y = NULL;
    fake_late(order);
    OK(tt_pin_memory(c, host, NULL, &pinned));
    assert_true(tt_tensor_is_pinned(pinned) && !tt_tensor_is_pinned(host));
    assert_int_equal(tt_tensor_device_type(pinned), TT_CPU);
    OK(tt_pin_memory(c, pinned, NULL, &again));
    assert_ptr_equal(again, pinned);
    tt_tensor_release(again);
    OK(tt_to(c, pinned, &to, &x));
    tt_tensor_release(pinned); /* the copy may still be ahead */
    OK(tt_add_(c, host, host));
    OK(tt_pin_memory(c, host, NULL, &pinned));
    OK(tt_stream_new(c, NULL, 0, &s));
    OK(tt_stream_set(c, s));
    OK(tt_mul(c, x, x, &y)); /* 1 4 9 16 */
    OK(tt_copy_non_blocking(c, pinned, y));
    assert_int_equal(fake_syncs(), before);
    OK(tt_stream_synchronize(c, s));
    HOLDS(pinned, 1, 4, 9, 16);
    OK(tt_copy_non_blocking(c, y, pinned));
    OK(tt_copy_non_blocking(c, host, y)); /* pageable: waits */
    HOLDS(host, 1, 4, 9, 16);
    OK(tt_stream_default(c, NULL, &own));
    OK(tt_stream_set(c, own));
    tt_stream_release(own);
    tt_stream_release(s);
    tt_tensor_release(host);
    tt_tensor_release(pinned);
    tt_tensor_release(x);
    tt_tensor_release(y);
  }
  fake_late(0);
}

/* All later calls report the error that lost the device; the process continues. */
static void test_lost_device(void** state) {
  CTX;
  tt_ctx* other;
  tt_tensor *x, *y = NULL, *z = NULL;
  tt_stream* s;
  tt_event* event;
  load_fake(c);
  OK(tt_ctx_new(NULL, &other)); /* a runtime of its own */
  x = on(other, k1234, kCuda1);
  OK(tt_stream_new(other, &kCuda1, 0, &s));
  OK(tt_event_new(other, &kCuda1, 0, &event));
  fake_fail(0, TT_DEVICE, 0);
  assert_int_equal(tt_add(other, x, x, &y), TT_DEVICE);
  assert_non_null(strstr(tt_ctx_error(other)->message, "kernel add on device cuda:1 failed"));
  assert_int_equal(tt_mul(other, x, x, &z), TT_DEVICE);
  assert_non_null(strstr(tt_ctx_error(other)->message, "was lost: kernel add"));
  assert_null(z);
  assert_int_equal(tt_synchronize(other, &kCuda1), TT_DEVICE);
  assert_int_equal(tt_stream_set(other, s), TT_DEVICE);
  assert_int_equal(tt_event_record(other, event, NULL), TT_DEVICE);
  tt_tensor_release(x);
  tt_stream_release(s);
  tt_event_release(event);
  tt_ctx_release(other);
  /* other runtimes have the device still: a real one would refuse them, too */
  x = on(c, k1234, kCuda0);
  OK(tt_add(c, x, x, &y));
  HOLDS(y, 2, 4, 6, 8);
  tt_tensor_release(x);
  tt_tensor_release(y);
}

/* Whether children get no copy of a page for which that is asked. They are recognized by one;
   qemu-user accepts the request and copies it. */
static int pages_are_wiped(void) {
#ifdef MADV_WIPEONFORK
  char* page = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int status = 1;
  pid_t child;
  assert_true(page != MAP_FAILED);
  if (madvise(page, 65536, MADV_WIPEONFORK)) return 0;
  *page = 1;
  child = fork();
  if (child == 0) _exit(*page);
  assert_int_equal(waitpid(child, &status, 0), child);
  munmap(page, 65536);
  return status == 0;
#else
  return 0;
#endif
}

static void test_fork(void** state) {
  if (!pages_are_wiped()) skip();
  CTX;
  tt_tensor* x;
  pid_t child;
  int status = 0;
  load_fake(c);
  x = on(c, k1234, kCuda0);
  child = fork();
  if (child == 0) {
    tt_tensor* y = NULL;
    tt_ctx* fresh = NULL;
    int wrong = tt_add(c, x, x, &y) != TT_DEVICE || !strstr(tt_ctx_error(c)->message, "fork");
    tt_tensor_release(x);
    wrong |= tt_ctx_new(NULL, &fresh) != TT_OK;
    wrong |= tt_synchronize(fresh, &kCuda0) != TT_DEVICE;
    tt_ctx_release(fresh);
    _exit(wrong);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  tt_tensor_release(x);
}

/* Makes and ends streams. */
static void* run_streams(void* user) {
  tt_runtime* rt = user;
  tt_ctx* own;
  int k, bad = tt_ctx_new(rt, &own) != TT_OK;
  for (k = 0; k < 3000 && !bad; k++) {
    tt_stream* s = NULL;
    bad = tt_stream_new(own, &kCuda0, 0, &s) != TT_OK;
    tt_stream_release(s);
  }
  tt_ctx_release(own);
  return bad ? user : NULL;
}
/* Threads wait for the streams that others end meanwhile. */
static void test_wait_for_ending_streams(void** state) {
  CTX;
  pthread_t threads[3];
  tt_runtime* rt;
  void* failed;
  int64_t before;
  int i;
  load_fake(c);
  OK(tt_synchronize(c, &kCuda0));
  before = fake_live(0);
  OK(tt_ctx_runtime(c, &rt));
  for (i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_streams, rt), 0);
  for (i = 0; i < 3000; i++) OK(tt_synchronize(c, &kCuda0));
  for (i = 0; i < 3; i++) {
    assert_int_equal(pthread_join(threads[i], &failed), 0);
    assert_null(failed);
  }
  tt_runtime_release(rt);
  assert_int_equal(fake_live(0), before);
}

/* Streams, events and memory that outlive the runtime. */
static void test_outlive(void** state) {
  const int64_t before = fake_live(1);
  tt_ctx* c;
  tt_stream* s;
  tt_event* e;
  tt_tensor* x;
  (void)state;
  assert_int_equal(tt_ctx_new(NULL, &c), TT_OK);
  load_fake(c);
  OK(tt_stream_new(c, &kCuda1, 0, &s));
  OK(tt_event_new(c, &kCuda1, 0, &e));
  OK(tt_stream_set(c, s));
  x = on(c, k1234, kCuda1);
  tt_ctx_release(c);
  tt_event_release(e);
  tt_stream_release(s);
  tt_tensor_release(x);
  assert_int_equal(fake_live(1), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_handles),
      TEST(test_import),
      TEST(test_streams_run_late),
      TEST(test_place_of_an_ended_stream),
      TEST(test_gradient_on_a_stream),
      TEST(test_memory),
      TEST(test_faults_come_late),
      TEST(test_pinned),
      TEST(test_lost_device),
      TEST(test_fork),
      TEST(test_wait_for_ending_streams),
      cmocka_unit_test(test_outlive),
  };
  return cmocka_run_group_tests(tests, open_fake, NULL);
}
