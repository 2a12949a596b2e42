/* Shared by the tests of the C API: a counting allocator under every ctx, short functions that
   make and compare tensors. */
#ifndef TT_TEST_HARNESS_H
#define TT_TEST_HARNESS_H

#include "tt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Builds with sanitizers or checks are slow and look for other faults: long tests do less in
   them. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || TT_CHECKED
#define SLOW_BUILD 1
#else
#define SLOW_BUILD 0
#endif

#ifndef free_aligned /* tests/cross: Windows frees aligned memory by a function of its own */
#define free_aligned free
#endif

/* An allocator that counts, and fails on request. */
typedef struct Host {
  int64_t blocks;  /* alive */
  int64_t bytes;   /* alive */
  int64_t peak;    /* largest `bytes` so far */
  int64_t calls;   /* calls of alloc so far */
  int64_t fail_at; /* the number of the alloc call that returns NULL (1: the first); 0: none */
  int64_t fail_n;  /* how many calls from that one on return NULL; 0: all */
  int64_t failed;  /* calls that returned NULL */
  int paused;      /* calls are neither counted nor failed */
} Host;
tt_allocator host_allocator(Host* h);
/* The library of the device that TT_TEST_DEVICE names, fake, emu or cuda; NULL if
   the environment does not say where it is. */
const char* device_library(const char* device);

/* Programs whose tensors come from `make` and at_home also run on a device that TT_TEST_DEVICE
   names by its library: at_home moves a tensor there, settle a module, is_at_cpu is 0. */
tt_tensor* at_home(tt_tensor* t);
tt_module* settle(tt_module* m); /* returns m */
int is_at_cpu(void);

/* The ctx of the running test, over a runtime with a counted allocator. */
extern tt_ctx* c;
extern Host host;

/* Fixture: opens c with a scope, so that outs need no release; the teardown fails if anything is
 * still allocated. */
int open_scoped(void** state);
int open_plain(void** state); /* without a scope: the test releases its tensors */
int close_ctx(void** state);
#define SCOPED(f) cmocka_unit_test_setup_teardown(f, open_scoped, close_ctx)
#define PLAIN(f) cmocka_unit_test_setup_teardown(f, open_plain, close_ctx)

/* Checks of statuses; a failure shows tt's message. */
void ok_at(tt_ctx* x, tt_status s, const char* what, const char* file, int line);
void fails_at(tt_ctx* x, tt_status s, tt_status want, const char* text, const char* what,
              const char* file, int line);
#define OK(call) ok_at(c, (call), #call, __FILE__, __LINE__)
/* The call fails with status `want` and a message that contains `text` (may be NULL). */
#define FAILS(call, want, text) fails_at(c, (call), (want), (text), #call, __FILE__, __LINE__)

/* Arrays in arguments: pointer and length. */
#define SHAPE(...) \
  (const int64_t[]){__VA_ARGS__}, (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#define DATA(...) \
  (const double[]){__VA_ARGS__}, (int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double))
#define LIST(...)                          \
  (const tt_tensor* const[]){__VA_ARGS__}, \
      (int64_t)(sizeof((const tt_tensor*[]){__VA_ARGS__}) / sizeof(tt_tensor*))

/* New CPU tensors. */
tt_tensor* make(tt_dtype d, const int64_t* shape, int64_t ndim, const double* values, int64_t n);
tt_tensor* numbers(tt_dtype d, const double* values, int64_t n); /* 1-D */
tt_tensor* number(tt_dtype d, double value);                     /* 0-D */
tt_tensor* leaf(const double* values, int64_t n); /* 1-D float64 that requires a gradient */
tt_tensor* param(const int64_t* shape, int64_t ndim, const double* values, int64_t n);

/* One-liners that must succeed. */
tt_tensor* sum_of(const tt_tensor* t);
tt_tensor* grad_of(
    const tt_tensor* t); /* owned by the scope; the test fails if there is no gradient */
tt_tensor* derive(const tt_tensor* y, const tt_tensor* x,
                  int create_graph); /* d sum(y) / dx, through tt_grad */
double value_of(const tt_tensor* t);
tt_scalar real_scalar(double v);
tt_scalar int_scalar(int64_t v);

/* Elements of t in row-major order as doubles (complex: real parts); free() them. */
double* values_of(const tt_tensor* t);
void values_at(const tt_tensor* t, const double* want, int64_t n, double tol, const char* file,
               int line);
#define VALUES(t, ...) values_at((t), DATA(__VA_ARGS__), 0, __FILE__, __LINE__)
#define NEAR(t, tol, ...) values_at((t), DATA(__VA_ARGS__), (tol), __FILE__, __LINE__)
void shape_at(const tt_tensor* t, const int64_t* want, int64_t n, const char* file, int line);
#define HAS_SHAPE(t, ...) shape_at((t), SHAPE(__VA_ARGS__), __FILE__, __LINE__)

#endif
