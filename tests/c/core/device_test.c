/* Devices: names, the loader, and the fake device with its own memory (tests/fake): copies,
   operators, gradients, failures. */
#include "dlpack.h"
#include "support.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* a library that is not tt's; how to remove kNoLibrary */
#if defined(_WIN32)
#define OTHER_LIBRARY "kernel32.dll"
#define REMOVE_NO_LIBRARY() _wremove(L"tt-\xe4.so")
#elif defined(__GLIBC__)
#define OTHER_LIBRARY "libm.so.6"
#else
#define OTHER_LIBRARY "libc.so"
#endif
#ifndef REMOVE_NO_LIBRARY
#define REMOVE_NO_LIBRARY() remove(kNoLibrary)
#endif
/* in UTF-8, as all paths of tt */
static const char kNoLibrary[] = "./tt-\xc3\xa4.so";

#ifndef LEAVE_WITHOUT_FORK /* tests/cross: before there is anything to release */
#define LEAVE_WITHOUT_FORK() (void)0
#endif

static const char* fake_library(void) {
  const char* path = getenv("TT_TEST_FAKE_LIBRARY");
  return path ? path : "libtt_fake.so";
}
static int64_t (*fake_live)(int32_t);
static void (*fake_capacity)(int32_t, int64_t);
static int64_t (*fake_launches)(void);
static int32_t (*fake_measured)(void);
static void (*fake_fail)(int64_t, int32_t, int32_t);
static void (*fake_claim)(uint64_t);

static int open_fake(void** state) {
  void* lib = dlopen(fake_library(), RTLD_NOW | RTLD_LOCAL);
  (void)state;
  if (!lib) {
    printf("%s\n", dlerror());
    return -1;
  }
  *(void**)&fake_live = dlsym(lib, "tt_fake_live");
  *(void**)&fake_capacity = dlsym(lib, "tt_fake_capacity");
  *(void**)&fake_launches = dlsym(lib, "tt_fake_launches");
  *(void**)&fake_measured = dlsym(lib, "tt_fake_measured");
  *(void**)&fake_fail = dlsym(lib, "tt_fake_fail");
  *(void**)&fake_claim = dlsym(lib, "tt_fake_claim");
  return fake_live && fake_capacity && fake_launches && fake_measured && fake_fail && fake_claim
             ? 0
             : -1;
}

static const tt_device kCuda0 = {TT_CUDA, 0};
static const tt_device kCuda1 = {TT_CUDA, 1};
static const tt_device kCpu = {TT_CPU, 0};
static const double k1234[] = {1, 2, 3, 4};

static tt_tensor* move_to(tt_ctx* c, const tt_tensor* t, tt_device device) {
  tt_to_opts o;
  tt_tensor* out = NULL;
  memset(&o, 0, sizeof o);
  o.set = TT_TO_DEVICE;
  o.device = device;
  OK(tt_to(c, t, &o, &out));
  return out;
}

static void test_parse(void** state) {
  static const char* const bad[] = {"",      "cpux",    "cpu:1",   "cpu:",    "meta:1",
                                    "cuda:", "cuda:16", "cuda:-1", "cuda:1x", "cuda:0000001",
                                    "CUDA",  " cpu",    "gpu"};
  CTX;
  tt_device d;
  size_t i;
  OK(tt_device_parse(c, "cpu", &d));
  assert_int_equal(d.type, TT_CPU);
  OK(tt_device_parse(c, "meta", &d));
  assert_int_equal(d.type, TT_META);
  OK(tt_device_parse(c, "cuda", &d));
  assert_true(d.type == TT_CUDA && d.index == 0);
  OK(tt_device_parse(c, "cuda:15", &d));
  assert_true(d.type == TT_CUDA && d.index == 15);
  for (i = 0; i < sizeof bad / sizeof *bad; i++) {
    FAILS(TT_INVALID_ARG, tt_device_parse(c, bad[i], &d));
    SAYS(bad[i]);
    assert_int_equal(d.type, 0);
  }
  FAILS(TT_INVALID_ARG, tt_device_parse(c, NULL, &d));
  FAILS(TT_INVALID_ARG, tt_device_parse(c, "cpu", NULL));
}

/* Runs first: afterwards the process has a backend. */
static void test_loading(void** state) {
  CTX;
  const int64_t shape = 2;
  tt_empty_opts o;
  tt_tensor* t = NULL;
  int32_t n = -1;
  OK(tt_device_count(c, TT_CUDA, &n));
  assert_int_equal(n, 0);
  memset(&o, 0, sizeof o);
  o.set = TT_EMPTY_DEVICE;
  o.device = kCuda0;
  FAILS(TT_DEVICE, tt_empty(c, &shape, 1, &o, &t));
  SAYS("no CUDA backend is loaded");
  FAILS(TT_DEVICE, tt_synchronize(c, &kCuda0));
  OK(tt_synchronize(c, &kCpu));
  OK(tt_synchronize(c, NULL));
  FAILS(TT_IO, tt_load_cuda(c, "/nonexistent/libtt_cuda.so"));
  SAYS("/nonexistent/libtt_cuda.so");
  FAILS(TT_IO, tt_load_cuda(c, NULL));
  SAYS("libtt_cuda.so");
  FAILS(TT_ABI, tt_load_cuda(c, OTHER_LIBRARY));
  SAYS("tt_cuda_backend");
  OK(tt_tensorboard_add_scalar(c, kNoLibrary, "x", 1, 0));
  FAILS(TT_IO, tt_load_cuda(c, kNoLibrary)); /* which is there */
  assert_null(strstr(tt_ctx_error(c)->message, "not found"));
  assert_null(strstr(tt_ctx_error(c)->message, "No such file"));
  assert_int_equal(REMOVE_NO_LIBRARY(), 0);
  fake_claim(12345);
  FAILS(TT_ABI, tt_load_cuda(c, fake_library()));
  SAYS("12345");
  fake_claim(0);
  OK(tt_load_cuda(c, fake_library()));
  OK(tt_load_cuda(c, fake_library())); /* loading again does nothing */
  OK(tt_device_count(c, TT_CUDA, &n));
  assert_int_equal(n, 2);
  OK(tt_device_count(c, TT_CPU, &n));
  assert_int_equal(n, 1);
  OK(tt_device_count(c, TT_EXT, &n));
  assert_int_equal(n, 0);
  FAILS(TT_DEVICE, tt_device_count(c, 9, &n));
  FAILS(TT_INVALID_ARG, tt_device_count(c, TT_CPU, NULL));
  o.device.index = 2;
  FAILS(TT_DEVICE, tt_empty(c, &shape, 1, &o, &t));
}

static void test_copies(void** state) {
  CTX;
  tt_tensor* a = mat(c, k1234, 2, 2);
  tt_tensor* on0 = move_to(c, a, kCuda0);
  tt_tensor* on1;
  tt_tensor* turned = NULL;
  tt_tensor* back;
  tt_memory_stats stats;
  assert_int_equal(tt_tensor_device_type(on0), TT_CUDA);
  HOLDS(on0, 1, 2, 3, 4);
  OK(tt_transpose(c, on0, 0, 1, &turned));
  HOLDS(turned, 1, 3, 2, 4);
  on1 = move_to(c, turned, kCuda1);
  assert_int_equal(tt_tensor_device_index(on1), 1);
  back = move_to(c, on1, kCpu);
  HOLDS(back, 1, 3, 2, 4);
  OK(tt_copy_(c, a, on1));
  HOLDS(a, 1, 3, 2, 4);
  OK(tt_copy_(c, on0, back));
  HOLDS(on0, 1, 3, 2, 4);
  OK(tt_memory(c, &kCuda1, &stats));
  assert_true(stats.in_use > 0 && stats.reserved >= stats.in_use);
  assert_true(fake_live(1) == stats.reserved);
  tt_tensor_release(back);
  FAILS(TT_DEVICE, tt_add(c, on0, on1, &back)); /* two devices */
  assert_null(back);
  tt_tensor_release(a);
  tt_tensor_release(on0);
  tt_tensor_release(on1);
  tt_tensor_release(turned);
  OK(tt_memory(c, &kCuda1, &stats));
  assert_int_equal(stats.in_use, 0);
  assert_true(stats.reserved > 0);
  OK(tt_trim(c));
  assert_int_equal(fake_live(0) + fake_live(1), 0);
}

static void release_nothing(Versioned* v) { (void)v; }

/* Kernels of a device read complex numbers whole: imported memory must be aligned to them. */
static void test_complex_numbers_are_aligned(void** state) {
  CTX;
  const double numbers[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  tt_tensor* whole = vec(c, numbers, 9);
  tt_tensor* on0 = move_to(c, whole, kCuda0);
  int64_t shape[2] = {4, 2};
  void* exported;
  tt_tensor *pairs, *complex = NULL;
  OK(tt_tensor_to_dlpack(c, on0, 1, &exported));
  Versioned* v = (Versioned*)exported;
  Versioned part = {1, 0, NULL, release_nothing, 0, v->t};
  part.t.shape = shape;
  part.t.strides = NULL;
  for (int odd = 0; odd < 2; odd++) {
    part.t.byte_offset = v->t.byte_offset + (odd ? 4 : 8);
    part.t.ndim = 2;
    part.t.code = 2;
    part.t.bits = 32;
    OK(tt_tensor_from_dlpack(c, &part, 1, &pairs));
    if (odd) FAILS(TT_INVALID_ARG, tt_view_as_complex(c, pairs, &complex));
    else OK(tt_view_as_complex(c, pairs, &complex));
    tt_tensor_release(pairs);
    tt_tensor_release(complex);
    part.t.ndim = 1;
    part.t.code = 5;
    part.t.bits = 64;
    if (odd) FAILS(TT_INVALID_ARG, tt_tensor_from_dlpack(c, &part, 1, &complex));
    else OK(tt_tensor_from_dlpack(c, &part, 1, &complex));
    tt_tensor_release(complex);
  }
  v->deleter(v);
  tt_tensor_release(whole);
  tt_tensor_release(on0);
}

/* The same calls on the CPU and on the device. */
static void test_operators(void** state) {
  CTX;
  static const tt_device devices[] = {{TT_CPU, 0}, {TT_CUDA, 0}};
  double got[2][64];
  int64_t launches = fake_launches();
  int d;
  for (d = 0; d < 2; d++) {
    static const double six[] = {0.5, -1, 2, 3, -0.25, 1};
    tt_tensor* h = mat(c, six, 2, 3);
    tt_tensor* x = move_to(c, h, devices[d]);
    tt_tensor* y = NULL;
    tt_tensor* z = NULL;
    tt_tensor* s = NULL;
    double* out = got[d];
    OK(tt_add_f64(c, x, 2, &y)); /* dense, with a host scalar */
    OK(tt_tensor_read(c, y, out, 48));
    tt_tensor_release(y);
    OK(tt_transpose(c, x, 0, 1, &y)); /* strided, with a host scalar */
    OK(tt_mul_f64(c, y, -3, &z));
    OK(tt_tensor_read(c, z, out + 6, 48));
    tt_tensor_release(z);
    OK(tt_matmul(c, x, y, &z));
    OK(tt_tensor_read(c, z, out + 12, 32));
    tt_tensor_release(z);
    OK(tt_sum(c, x, NULL, &s));
    OK(tt_item_f64(c, s, out + 16));
    tt_tensor_release(s);
    {
      const int64_t dim = 1;
      OK(tt_sum_dim(c, x, &dim, 1, NULL, &s));
    }
    OK(tt_tensor_read(c, s, out + 17, 16));
    OK(tt_unsqueeze(c, s, 1, &z));
    OK(tt_div_(c, x, z, NULL)); /* broadcast, in place */
    OK(tt_tensor_read(c, x, out + 19, 48));
    tt_tensor_release(s);
    tt_tensor_release(z);
    tt_tensor_release(y);
    OK(tt_softmax(c, x, 1, NULL, &y));
    OK(tt_tensor_read(c, y, out + 25, 48));
    tt_tensor_release(y);
    OK(tt_exp(c, x, &y));
    OK(tt_tensor_read(c, y, out + 31, 48));
    tt_tensor_release(y);
    tt_tensor_release(x);
    tt_tensor_release(h);
  }
  assert_true(fake_launches() > launches);
  assert_memory_equal(got[0], got[1], 37 * sizeof(double));
}

/* Scratch memory is measured for the device of the operands. */
static void test_scratch_memory(void** state) {
  CTX;
  static const tt_device devices[] = {{TT_CUDA, 0}, {TT_CUDA, 1}};
  int d;
  for (d = 0; d < 2; d++) {
    tt_tensor* h = mat(c, k1234, 2, 2);
    tt_tensor* x = move_to(c, h, devices[d]);
    tt_tensor* y = NULL;
    OK(tt_matmul(c, x, x, &y));
    assert_int_equal(fake_measured(), d);
    tt_tensor_release(y);
    tt_tensor_release(x);
    tt_tensor_release(h);
  }
}

static void test_gradient(void** state) {
  CTX;
  tt_tensor* h = mat(c, k1234, 2, 2);
  tt_tensor* x = move_to(c, h, kCuda0);
  tt_tensor* y = NULL;
  tt_tensor* loss = NULL;
  tt_tensor* grad = NULL;
  OK(tt_requires_grad_(c, x, 1));
  OK(tt_mul(c, x, x, &y));
  OK(tt_sum(c, y, NULL, &loss));
  OK(tt_backward(c, loss, NULL));
  OK(tt_tensor_grad(c, x, &grad));
  assert_int_equal(tt_tensor_device_type(grad), TT_CUDA);
  HOLDS(grad, 2, 4, 6, 8);
  tt_tensor_release(h);
  tt_tensor_release(x);
  tt_tensor_release(y);
  tt_tensor_release(loss);
  tt_tensor_release(grad);
}

static void test_failing_kernels(void** state) {
  CTX;
  tt_tensor* h = mat(c, k1234, 2, 2);
  tt_tensor* x = move_to(c, h, kCuda0);
  tt_tensor* y = NULL;
  double v[4];
  fake_fail(0, TT_INTERNAL, 0); /* at once */
  FAILS(TT_INTERNAL, tt_add(c, x, x, &y));
  assert_null(y);
  SAYS("cuda:0");
  fake_fail(0, TT_INDEX, 1); /* while it runs */
  OK(tt_add(c, x, x, &y));
  FAILS(TT_INDEX, tt_synchronize(c, &kCuda0));
  SAYS("cuda:0");
  OK(tt_synchronize(c, &kCuda0)); /* told once */
  tt_tensor_release(y);
  fake_fail(0, TT_INDEX, 1);
  OK(tt_add(c, x, x, &y));
  FAILS(TT_INDEX, tt_synchronize(c, NULL));
  tt_tensor_release(y);
  fake_fail(0, TT_INDEX, 1);
  OK(tt_add(c, x, x, &y));
  FAILS(TT_INDEX, tt_tensor_read(c, y, v, 32));
  tt_tensor_release(y);
  OK(tt_add(c, x, x, &y));
  HOLDS(y, 2, 4, 6, 8);
  tt_tensor_release(h);
  tt_tensor_release(x);
  tt_tensor_release(y);
}

static void test_memory_runs_out(void** state) {
  CTX;
  const int64_t shape = 1 << 20;
  tt_empty_opts o;
  tt_tensor *t = NULL, *u = NULL;
  memset(&o, 0, sizeof o);
  o.set = TT_EMPTY_DEVICE;
  o.device = kCuda0;
  OK(tt_trim(c));
  fake_capacity(0, 5 << 20);
  OK(tt_empty(c, &shape, 1, &o, &t));
  FAILS(TT_OOM, tt_empty(c, &shape, 1, &o, &u)); /* 4 MiB more than the capacity */
  assert_null(u);
  tt_tensor_release(t); /* cached … */
  {
    const int64_t other = 3 << 18;
    OK(tt_empty(c, &other, 1, &o, &u)); /* … and freed for a block of another size */
  }
  tt_tensor_release(u);
  fake_capacity(0, (int64_t)1 << 31);
  OK(tt_set_memory_limit(c, 8 << 20));
  OK(tt_empty(c, &shape, 1, &o, &t));
  {
    const int64_t big = 2 << 20;
    FAILS(TT_OOM, tt_empty(c, &big, 1, &o, &u));
  }
  tt_tensor_release(t);
}

/* The host cannot dereference the fake device's pointers. */
static void test_host_cannot_read_device_memory(void** state) {
  LEAVE_WITHOUT_FORK();
  CTX;
  tt_tensor* h = mat(c, k1234, 2, 2);
  tt_tensor* x = move_to(c, h, kCuda0);
  const volatile double* p = (const volatile double*)tt_tensor_data(x);
  enum { kRead = 100 };
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    (void)*p;
    _exit(kRead);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != kRead); /* a sanitizer exits */
  tt_tensor_release(h);
  tt_tensor_release(x);
}

/* Device memory outlives the runtime while a tensor holds it. */
static void test_tensor_outlives_runtime(void** state) {
  CTX;
  tt_tensor* h = mat(c, k1234, 2, 2);
  tt_tensor* x = move_to(c, h, kCuda0);
  tt_tensor_release(h);
  tt_ctx_release(e->c);
  tt_runtime_release(e->rt);
  e->c = NULL;
  e->rt = NULL;
  assert_true(fake_live(0) > 0);
  tt_tensor_release(x);
  assert_int_equal(fake_live(0), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_loading),
                                     TEST(test_parse),
                                     TEST(test_copies),
                                     TEST(test_complex_numbers_are_aligned),
                                     TEST(test_operators),
                                     TEST(test_scratch_memory),
                                     TEST(test_gradient),
                                     TEST(test_failing_kernels),
                                     TEST(test_memory_runs_out),
                                     TEST(test_host_cannot_read_device_memory),
                                     TEST(test_tensor_outlives_runtime)};
  return cmocka_run_group_tests(tests, open_fake, NULL);
}
