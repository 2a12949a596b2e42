/* A device of one's own, in a few hundred lines of C: a backend that tt does not know, registered
   at run time.

   log_backend [--steps N] [--quiet]

   The device has its own memory, computes add, sub, mul and matrix products by plain loops and
   leaves the rest to tt, which runs it on the CPU and copies the results back. It logs each
   operator that reaches it: what it was given, and who computed it. A linear regression is trained
   on it, gradients and optimizer included, of which the backend knows nothing. */
#include "own_memory.h"
#include "tt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the device ---- */

enum { OPERATORS = 64 };
typedef struct row {
  char name[48];
  long calls, computed;
} row;
typedef struct device {
  own_memory memory;
  long copies[4]; /* by kind */
  int self, logging, n_rows;
  row rows[OPERATORS];
} device;

static void* device_alloc(void* user, int64_t bytes) {
  return own_memory_take(&((device*)user)->memory, bytes);
}
static void device_free(void* user, void* p, int64_t bytes) {
  own_memory_give(&((device*)user)->memory, p, bytes);
}
static void device_drop(void* user) { own_memory_close(&((device*)user)->memory); }
/* Here the device's memory is the host's; a real one would start a transfer and wait for it. */
static tt_status device_copy(void* user, tt_ctx* c, void* dst, const void* src, int64_t bytes,
                             int32_t kind) {
  device* d = user;
  (void)c;
  d->copies[kind]++;
  memcpy(dst, src, (size_t)bytes);
  return TT_OK;
}

/* ---- its operators: float32, at most two dimensions, any strides ---- */

typedef struct view { /* of a tensor, broadcast to rows x columns */
  const float* data;
  int64_t row, column; /* strides */
} view;
static float at(view v, int64_t i, int64_t j) { return v.data[i * v.row + j * v.column]; }

static int is_ours(const device* d, const tt_value* v) {
  return v->tag == TT_VAL_TENSOR && tt_tensor_device_type(v->tensor) == TT_EXT &&
         tt_tensor_device_index(v->tensor) == d->self && tt_tensor_dtype(v->tensor) == TT_F32 &&
         tt_tensor_ndim(v->tensor) <= 2;
}
static int64_t size_from_end(const tt_tensor* t, int64_t k) {
  return tt_tensor_ndim(t) < k ? 1 : tt_tensor_size(t, -k);
}
static int64_t stride_from_end(const tt_tensor* t, int64_t k) {
  const int64_t n = tt_tensor_ndim(t);
  return size_from_end(t, k) == 1 ? 0 : tt_tensor_strides(t)[n - k];
}
static view view_of(const tt_tensor* t) {
  const view v = {tt_tensor_data(t), stride_from_end(t, 2), stride_from_end(t, 1)};
  return v;
}
/* Row-major, on this device. */
static float* new_result(device* d, tt_ctx* c, const int64_t* shape, int64_t ndim,
                         tt_tensor** out) {
  const tt_empty_opts o = {
      .set = TT_EMPTY_DTYPE | TT_EMPTY_DEVICE, .dtype = TT_F32, .device = {TT_EXT, d->self}};
  return tt_empty(c, shape, ndim, &o, out) ? NULL : tt_tensor_data(*out);
}

static tt_status elementwise(device* d, tt_ctx* c, char what, float factor, const tt_tensor* a,
                             const tt_tensor* b, tt_tensor** out) {
  const int64_t ndim =
      tt_tensor_ndim(a) > tt_tensor_ndim(b) ? tt_tensor_ndim(a) : tt_tensor_ndim(b);
  int64_t size[2], k, i, j;
  const view x = view_of(a);
  const view y = view_of(b);
  float* r;
  for (k = 1; k <= 2; k++) {
    const int64_t m = size_from_end(a, k);
    const int64_t n = size_from_end(b, k);
    if (m != n && m != 1 && n != 1)
      return TT_NOT_IMPLEMENTED; /* wrong shapes: tt has the words for that */
    size[2 - k] = m == 1 ? n : m;
  }
  r = new_result(d, c, size + 2 - ndim, ndim, out);
  if (!r) return TT_OOM;
  for (i = 0; i < size[0]; i++)
    for (j = 0; j < size[1]; j++)
      *r++ = what == '*' ? factor * at(x, i, j) * at(y, i, j) : at(x, i, j) + factor * at(y, i, j);
  return TT_OK;
}

static tt_status matmul(device* d, tt_ctx* c, const tt_tensor* a, const tt_tensor* b,
                        tt_tensor** out) {
  const int64_t n = size_from_end(a, 1);
  const int64_t size[2] = {size_from_end(a, 2), size_from_end(b, 1)};
  const view x = view_of(a);
  const view y = view_of(b);
  int64_t i, j, k;
  float* r;
  if (tt_tensor_ndim(a) != 2 || tt_tensor_ndim(b) != 2 || size_from_end(b, 2) != n)
    return TT_NOT_IMPLEMENTED;
  r = new_result(d, c, size, 2, out);
  if (!r) return TT_OOM;
  for (i = 0; i < size[0]; i++)
    for (j = 0; j < size[1]; j++) {
      double sum = 0;
      for (k = 0; k < n; k++) sum += (double)at(x, i, k) * at(y, k, j);
      *r++ = (float)sum;
    }
  return TT_OK;
}

static double number(const tt_value* v) {
  return v->scalar.kind == TT_SCALAR_FLOAT ? v->scalar.re : (double)v->scalar.i;
}

static tt_status compute(device* d, tt_ctx* c, const char* name, const tt_value* args,
                         int64_t n_args, tt_tensor** outs) {
  const int add = strcmp(name, "add") == 0;
  const int sub = strcmp(name, "sub") == 0;
  if (n_args < 1 || !is_ours(d, &args[0])) return TT_NOT_IMPLEMENTED;
  if (n_args < 2 || !is_ours(d, &args[1])) return TT_NOT_IMPLEMENTED;
  if ((add || sub) && n_args == 3 && args[2].scalar.kind != TT_SCALAR_COMPLEX)
    return elementwise(d, c, '+', (float)((sub ? -1 : 1) * number(&args[2])), args[0].tensor,
                       args[1].tensor, &outs[0]);
  if (strcmp(name, "mul") == 0)
    return elementwise(d, c, '*', 1, args[0].tensor, args[1].tensor, &outs[0]);
  if (strcmp(name, "matmul_stack") == 0)
    return matmul(d, c, args[0].tensor, args[1].tensor, &outs[0]);
  return TT_NOT_IMPLEMENTED;
}

/* ---- the log ---- */

static void print_argument(const tt_value* v) {
  int64_t k;
  if (v->tag == TT_VAL_SCALAR) printf(" %g", number(v));
  if (v->tag != TT_VAL_TENSOR) return;
  for (k = 0; k < tt_tensor_ndim(v->tensor); k++)
    printf("%s%lld", k ? "x" : " ", (long long)tt_tensor_size(v->tensor, k));
  if (!tt_tensor_ndim(v->tensor)) printf(" ()");
}
static row* row_of(device* d, const char* name) {
  int i = 0;
  while (i < d->n_rows && strcmp(d->rows[i].name, name)) i++;
  if (i == OPERATORS) i--; /* the last row takes what has no other */
  if (i == d->n_rows) snprintf(d->rows[d->n_rows++].name, sizeof d->rows[0].name, "%s", name);
  return &d->rows[i];
}
static tt_status logged_compute(void* user, tt_ctx* c, const tt_op* op, const tt_value* args,
                                int64_t n_args, tt_tensor** outs, int64_t n_outs) {
  device* d = user;
  row* const r = row_of(d, tt_op_name(op));
  const tt_status status = compute(d, c, r->name, args, n_args, outs);
  int64_t i;
  (void)n_outs;
  r->calls++;
  r->computed += status == TT_OK;
  if (d->logging) {
    printf("  %-22s", tt_op_name(op));
    for (i = 0; i < n_args; i++) print_argument(&args[i]);
    const char* outcome = status == TT_OK ? "computed" : tt_status_name(status);
    if (status == TT_NOT_IMPLEMENTED) outcome = "left to the CPU";
    printf("  -> %s\n", outcome);
  }
  return status;
}
static void report(const device* d) {
  int i;
  printf("\n%-24s %8s %10s %10s\n", "operator", "calls", "computed", "fallback");
  for (i = 0; i < d->n_rows; i++)
    printf("%-24s %8ld %10ld %10ld\n", d->rows[i].name, d->rows[i].calls, d->rows[i].computed,
           d->rows[i].calls - d->rows[i].computed);
  printf("copies: %ld in, %ld out, %ld within; peak %lld bytes, %lld left\n", d->copies[1],
         d->copies[2], d->copies[3], (long long)d->memory.peak, (long long)d->memory.in_use);
}

/* ---- a linear regression: y = x w + b with a little noise ---- */

#define TRY(call)                                        \
  do {                                                   \
    const tt_status status_ = (call);                    \
    if (status_) {                                       \
      fprintf(stderr, "%s\n", tt_ctx_error(c)->message); \
      return status_;                                    \
    }                                                    \
  } while (0)

enum { POINTS = 64, FEATURES = 3 };
static const float kWeights[FEATURES] = {2, -3.5f, 0.5f};
static const float kBias = 1.25f;

static tt_status make_data(tt_ctx* c, const tt_device* there, tt_tensor** x, tt_tensor** y) {
  static float xs[POINTS][FEATURES], ys[POINTS];
  const int64_t x_shape[2] = {POINTS, FEATURES};
  const int64_t y_shape[2] = {POINTS, 1};
  const tt_to_opts move = {.set = TT_TO_DEVICE, .device = *there};
  int i, k;
  for (i = 0; i < POINTS; i++) {
    ys[i] = kBias + 0.01f * (float)sin(i * 12.9898);
    for (k = 0; k < FEATURES; k++) {
      xs[i][k] = (float)sin(i * (k + 1) + k);
      ys[i] += kWeights[k] * xs[i][k];
    }
  }
  TRY(tt_tensor_from_data(c, xs, TT_F32, x_shape, 2, x));
  TRY(tt_tensor_from_data(c, ys, TT_F32, y_shape, 2, y));
  TRY(tt_to(c, *x, &move, x));
  return tt_to(c, *y, &move, y);
}

static tt_status train_step(tt_ctx* c, tt_optimizer* sgd, const tt_tensor* x, const tt_tensor* y,
                            const tt_tensor* w, const tt_tensor* b, double* loss) {
  tt_tensor* t;
  TRY(tt_scope_push(c));
  TRY(tt_matmul(c, x, w, &t));
  TRY(tt_add(c, t, b, &t));
  TRY(tt_sub(c, t, y, &t));
  TRY(tt_mul(c, t, t, &t));
  TRY(tt_mean(c, t, NULL, &t));
  TRY(tt_item_f64(c, t, loss));
  TRY(tt_optim_zero_grad(c, sgd, 1));
  TRY(tt_backward(c, t, NULL));
  TRY(tt_optim_step(c, sgd));
  return tt_scope_pop(c, NULL, 0);
}

static tt_status train(tt_ctx* c, device* d, const tt_device* there, int steps,
                       tt_optimizer** sgd) {
  const int64_t w_shape[2] = {FEATURES, 1};
  const int64_t b_shape = 1;
  const tt_optim_sgd_opts o = {.set = TT_OPTIM_SGD_LR, .lr = 0.3};
  const tt_zeros_opts on_device = {.set = TT_ZEROS_DEVICE, .device = *there};
  tt_tensor *x, *y, *params[2];
  float found[FEATURES], bias, worst;
  double loss = 0;
  int i;
  TRY(make_data(c, there, &x, &y));
  TRY(tt_zeros(c, w_shape, 2, &on_device, &params[0]));
  TRY(tt_zeros(c, &b_shape, 1, &on_device, &params[1]));
  for (i = 0; i < 2; i++) TRY(tt_requires_grad_(c, params[i], 1));
  TRY(tt_optim_sgd(c, params, 2, &o, sgd));
  for (i = 0; i < steps; i++) {
    if (i == 1) d->logging = 0; /* the first step tells all */
    TRY(train_step(c, *sgd, x, y, params[0], params[1], &loss));
    if (i % (steps / 5 + 1) == 0 || i == steps - 1) printf("step %4d  loss %.6f\n", i, loss);
  }
  TRY(tt_tensor_read(c, params[0], found, sizeof found));
  TRY(tt_tensor_read(c, params[1], &bias, sizeof bias));
  worst = (float)fabs(bias - kBias);
  for (i = 0; i < FEATURES; i++) worst = fmaxf(worst, (float)fabs(found[i] - kWeights[i]));
  printf("found y = %.3f x0 %+.3f x1 %+.3f x2 %+.3f, off by at most %.4f\n", found[0], found[1],
         found[2], bias, worst);
  return TT_OK;
}

/* Returns 0 if the arguments are wrong. */
static int parse(int argc, char** argv, int* steps, int* logging) {
  int i;
  for (i = 1; i < argc; i++) {
    char* end = NULL;
    if (strcmp(argv[i], "--quiet") == 0) {
      *logging = 0;
      continue;
    }
    if (strcmp(argv[i], "--steps") || i + 1 == argc) return 0;
    const long n = strtol(argv[++i], &end, 10);
    if (*end || end == argv[i] || n < 1 || n > 1000000) return 0;
    *steps = (int)n;
  }
  return 1;
}

int main(int argc, char** argv) {
  static device d;
  const tt_backend_def def = {sizeof def,  "log",          &d,         device_alloc, device_free,
                              device_copy, logged_compute, device_drop};
  tt_device there;
  tt_ctx* c = NULL;
  tt_optimizer* sgd = NULL;
  tt_status status;
  int steps = 200;
  d.logging = 1;
  if (!parse(argc, argv, &steps, &d.logging)) {
    fprintf(stderr, "usage: log_backend [--steps N] [--quiet]\n");
    return 2;
  }
  if (!own_memory_open(&d.memory) || tt_ctx_new(NULL, &c)) {
    fprintf(stderr, "out of memory\n");
    return 1;
  }
  status = tt_backend_register(c, &def, &there);
  /* From here on it is a device like any other. */
  if (!status) status = tt_device_parse(c, "log", &there);
  d.self = there.index;
  if (!status) status = tt_scope_push(c);
  if (!status) status = train(c, &d, &there, steps, &sgd);
  tt_optim_release(sgd);
  tt_ctx_release(c); /* and with it the scope's tensors, the runtime and the device */
  report(&d);
  return status || d.memory.bytes ? 1 : 0;
}
