/* The start time of an application: start_time LIBRARY loads libtt.so, makes a ctx, adds two
   tensors and reads the sum, and prints the nanoseconds from before the load until the values are
   there. */
#define _POSIX_C_SOURCE 200809L
#include "tt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* A function of the library as the type that tt.h gives it. */
#define LOAD(name) (*(void**)& name##_fn = dlsym(library, #name))
static tt_status (*tt_ctx_new_fn)(tt_runtime*, tt_ctx**);
static tt_status (*tt_tensor_from_data_fn)(tt_ctx*, const void*, tt_dtype, const int64_t*, int64_t,
                                           tt_tensor**);
static tt_status (*tt_add_fn)(tt_ctx*, const tt_tensor*, const tt_tensor*, tt_tensor**);
static tt_status (*tt_tensor_read_fn)(tt_ctx*, const tt_tensor*, void*, int64_t);

int main(int argc, char** argv) {
  const float data[4] = {1, 2, 3, 4};
  const int64_t shape[2] = {2, 2};
  float sum[4];
  void* library;
  tt_ctx* c;
  tt_tensor *a, *b;
  const double start = now_ns();
  if (argc != 2 || !(library = dlopen(argv[1], RTLD_NOW))) return 1;
  if (!LOAD(tt_ctx_new) || !LOAD(tt_tensor_from_data) || !LOAD(tt_add) || !LOAD(tt_tensor_read))
    return 2;
  if (tt_ctx_new_fn(NULL, &c) || tt_tensor_from_data_fn(c, data, TT_F32, shape, 2, &a)) return 3;
  if (tt_add_fn(c, a, a, &b) || tt_tensor_read_fn(c, b, sum, sizeof sum) || sum[3] != 8) return 4;
  printf("%.0f\n", now_ns() - start);
  return 0;
}
