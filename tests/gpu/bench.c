/* bench LIBRARY SHARE: times of operators on a CUDA device as lines of JSON, {"name":
   microseconds}. LIBRARY: a device library, or - for libtt_cuda.so. SHARE: elements are divided by
   it (1 on a device; large on the emulation). torch_bench.py has the same names. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tt.h"

enum { kRounds = 21, kSets = 4, kTinyCalls = 2000 };

static tt_ctx* c;
static const tt_device kDevice = {TT_CUDA, 0};
static int64_t share = 1;
static tt_tensor *a[kSets], *b[kSets]; /* operands take turns, so that caches hold none of them */
static tt_optimizer* adam;

static void check(tt_status s, int line) {
  if (!s) return;
  fprintf(stderr, "bench.c:%d: %s: %s\n", line, tt_status_name(s), tt_ctx_error(c)->message);
  exit(1);
}
#define OK(call) check(call, __LINE__)

static int64_t scaled(int64_t n) { return n / share > 16 ? n / share / 16 * 16 : 16; }
static tt_tensor* normal(int64_t rows, int64_t columns, tt_dtype d) {
  const int64_t shape[2] = {rows, columns};
  const tt_randn_opts o = {.set = TT_RANDN_DTYPE | TT_RANDN_DEVICE, .dtype = d, .device = kDevice};
  tt_tensor* t;
  OK(tt_randn(c, shape, 2, &o, &t));
  return t;
}
static void fill(int64_t rows, int64_t columns, tt_dtype d) {
  for (int k = 0; k < kSets; k++) {
    a[k] = normal(rows, columns, d);
    b[k] = normal(rows, columns, d);
  }
}
static void drop(void) {
  for (int k = 0; k < kSets; k++) {
    tt_tensor_release(a[k]);
    tt_tensor_release(b[k]);
  }
}

static void run_add(int k) {
  tt_tensor* out;
  OK(tt_add(c, a[k], b[k], &out));
  tt_tensor_release(out);
}
static void run_gelu(int k) {
  tt_tensor* out;
  OK(tt_gelu(c, a[k], NULL, &out));
  tt_tensor_release(out);
}
static void run_sum(int k) {
  tt_tensor* out;
  OK(tt_sum(c, a[k], NULL, &out));
  tt_tensor_release(out);
}
static void run_softmax(int k) {
  tt_tensor* out;
  OK(tt_softmax(c, a[k], -1, NULL, &out));
  tt_tensor_release(out);
}
static void run_layer_norm(int k) {
  const int64_t size = tt_tensor_shape(a[k])[1];
  tt_tensor* out;
  OK(tt_layer_norm(c, a[k], &size, 1, NULL, NULL, NULL, &out));
  tt_tensor_release(out);
}
static void run_cumsum(int k) {
  tt_tensor* out;
  OK(tt_cumsum(c, a[k], -1, NULL, &out));
  tt_tensor_release(out);
}
static void run_matmul(int k) {
  tt_tensor* out;
  OK(tt_matmul(c, a[k], b[k], &out));
  tt_tensor_release(out);
}
static void run_adam(int k) {
  (void)k;
  OK(tt_optim_step(c, adam));
}

static int by_value(const void* x, const void* y) {
  const double d = *(const double*)x - *(const double*)y;
  return (d > 0) - (d < 0);
}
static void print_median(const char* name, double* us, int n) {
  qsort(us, (size_t)n, sizeof *us, by_value);
  printf("{\"%s\": %.3f}\n", name, us[n / 2]);
  fflush(stdout);
}
static void measure(const char* name, void (*run)(int)) {
  double us[kRounds];
  tt_event *start, *stop;
  OK(tt_event_new(c, &kDevice, 1, &start));
  OK(tt_event_new(c, &kDevice, 1, &stop));
  for (int k = 0; k < kSets; k++) run(k);
  for (int r = 0; r < kRounds; r++) {
    double ms;
    OK(tt_event_record(c, start, NULL));
    for (int k = 0; k < kSets; k++) run(k);
    OK(tt_event_record(c, stop, NULL));
    OK(tt_event_synchronize(c, stop));
    OK(tt_event_elapsed(c, start, stop, &ms));
    us[r] = ms * 1000 / kSets;
  }
  tt_event_release(start);
  tt_event_release(stop);
  print_median(name, us, kRounds);
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}
/* The host's time of a small addition. */
static void measure_tiny(void) {
  const int calls = share > 1 ? 20 : kTinyCalls;
  double us[kRounds];
  tt_event* done;
  OK(tt_event_new(c, &kDevice, 0, &done));
  fill(4, 4, TT_F32);
  for (int r = 0; r < kRounds; r++) {
    const double begin = now_us();
    for (int i = 0; i < calls; i++) run_add(0);
    us[r] = (now_us() - begin) / calls;
    OK(tt_event_record(c, done, NULL));
    OK(tt_event_synchronize(c, done));
  }
  drop();
  tt_event_release(done);
  print_median("host time of a tiny add", us, kRounds);
}
static void measure_adam(void) {
  tt_tensor* params[8];
  for (int k = 0; k < 8; k++) {
    params[k] = normal(scaled(4096), 4096, TT_F32);
    OK(tt_requires_grad_(c, params[k], 1));
    tt_tensor* grad = normal(scaled(4096), 4096, TT_F32);
    OK(tt_tensor_set_grad(c, params[k], grad));
    tt_tensor_release(grad);
  }
  OK(tt_optim_adam(c, params, 8, NULL, &adam));
  measure("Adam, 8 x 4096 x 4096 f32", run_adam);
  tt_optim_release(adam);
  for (int k = 0; k < 8; k++) tt_tensor_release(params[k]);
}

typedef struct Case {
  const char* name;
  int64_t rows, columns;
  tt_dtype dtype;
  void (*run)(int);
} Case;
static const Case kCases[] = {
    {"add, 2^26 f32", 8192, 8192, TT_F32, run_add},
    {"add, 2^26 bf16", 8192, 8192, TT_BF16, run_add},
    {"gelu, 2^26 bf16", 8192, 8192, TT_BF16, run_gelu},
    {"sum, 2^26 f32", 8192, 8192, TT_F32, run_sum},
    {"softmax, 8192 x 8192 bf16", 8192, 8192, TT_BF16, run_softmax},
    {"softmax, 65536 x 512 f32", 65536, 512, TT_F32, run_softmax},
    {"layer_norm, 16384 x 4096 bf16", 16384, 4096, TT_BF16, run_layer_norm},
    {"cumsum, 8192 x 8192 f32", 8192, 8192, TT_F32, run_cumsum},
    {"matmul, 4096^3 bf16", 4096, 4096, TT_BF16, run_matmul},
    {"matmul, 2048^3 f32", 2048, 2048, TT_F32, run_matmul},
};

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: bench LIBRARY|- SHARE\n");
    return 2;
  }
  share = atoll(argv[2]);
  if (share < 1 || tt_ctx_new(NULL, &c)) return 1;
  OK(tt_load_cuda(c, strcmp(argv[1], "-") ? argv[1] : NULL));
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    const Case* t = &kCases[i];
    const int square = t->run == run_matmul;
    const int64_t rows = scaled(t->rows);
    fill(rows, square || share > 1 ? rows : t->columns, t->dtype);
    measure(t->name, t->run);
    drop();
  }
  measure_adam();
  measure_tiny();
  tt_ctx_release(c);
  return 0;
}
