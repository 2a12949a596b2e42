/* launch LIBRARY: nanoseconds that tt itself needs for a call on a CUDA device, over a device
   library whose kernels do nothing (null_device.cpp). Medians of 41 rounds. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tt.h"

enum { kRounds = 41, kCalls = 2000 };

static tt_ctx* c;
static tt_tensor *x, *y, *leaf;

static void check(tt_status s) {
  if (!s) return;
  fprintf(stderr, "%s\n", tt_ctx_error(c)->message);
  exit(1);
}
static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void run_empty(void) {
  const int64_t shape[2] = {4, 4};
  const tt_empty_opts o = {.set = TT_EMPTY_DEVICE, .device = {TT_CUDA, 0}};
  tt_tensor* out;
  check(tt_empty(c, shape, 2, &o, &out));
  tt_tensor_release(out);
}
static void run_add(void) {
  tt_tensor* out;
  check(tt_add(c, x, y, &out));
  tt_tensor_release(out);
}
static void run_add_(void) { check(tt_add_(c, x, y)); }
static void run_sum(void) {
  tt_tensor* out;
  check(tt_sum(c, x, NULL, &out));
  tt_tensor_release(out);
}
static void run_matmul(void) {
  tt_tensor* out;
  check(tt_matmul(c, x, y, &out));
  tt_tensor_release(out);
}
static void run_softmax(void) {
  tt_tensor* out;
  check(tt_softmax(c, x, 1, NULL, &out));
  tt_tensor_release(out);
}
static void run_recorded_mul(void) {
  tt_tensor* out;
  check(tt_mul(c, leaf, leaf, &out));
  tt_tensor_release(out);
}

static int by_value(const void* a, const void* b) {
  const double d = *(const double*)a - *(const double*)b;
  return (d > 0) - (d < 0);
}
static double median_ns(void (*run)(void)) {
  double ns[kRounds];
  int r, i;
  for (r = 0; r < kRounds; r++) {
    const double begin = now_ns();
    for (i = 0; i < kCalls; i++) run();
    ns[r] = (now_ns() - begin) / kCalls;
  }
  qsort(ns, kRounds, sizeof *ns, by_value);
  return ns[kRounds / 2];
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } kRows[] = {{"empty", run_empty},
               {"add", run_add},
               {"add_", run_add_},
               {"sum", run_sum},
               {"matmul", run_matmul},
               {"softmax", run_softmax},
               {"mul, recorded", run_recorded_mul}};
  const int64_t shape[2] = {4, 4};
  const tt_empty_opts o = {.set = TT_EMPTY_DEVICE, .device = {TT_CUDA, 0}};
  size_t i;
  if (argc < 2) {
    fprintf(stderr, "usage: launch LIBRARY\n");
    return 2;
  }
  if (tt_ctx_new(NULL, &c)) return 1;
  check(tt_load_cuda(c, argv[1]));
  check(tt_empty(c, shape, 2, &o, &x));
  check(tt_empty(c, shape, 2, &o, &y));
  check(tt_empty(c, shape, 2, &o, &leaf));
  check(tt_requires_grad_(c, leaf, 1));
  for (i = 0; i < sizeof kRows / sizeof *kRows; i++)
    printf("%-14s %6.1f ns\n", kRows[i].name, median_ns(kRows[i].run));
  tt_tensor_release(x);
  tt_tensor_release(y);
  tt_tensor_release(leaf);
  tt_ctx_release(c);
  return 0;
}
