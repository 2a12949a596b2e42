#include "harness.h"

#include <math.h>

tt_ctx* c;
Host host;

/* ---- allocator ---- */

static void note_peak(Host* h, int64_t bytes) {
  int64_t seen = __atomic_load_n(&h->peak, __ATOMIC_RELAXED);
  while (seen < bytes && !__atomic_compare_exchange_n(&h->peak, &seen, bytes, 1, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED)) {}
}

static void* host_alloc(void* user, size_t size, size_t align) {
  Host* h = user;
  const int64_t call = h->paused ? 0 : __atomic_add_fetch(&h->calls, 1, __ATOMIC_RELAXED);
  void* p = NULL;
  if (h->fail_at && !h->paused && call >= h->fail_at &&
      (h->fail_n == 0 || call < h->fail_at + h->fail_n)) {
    __atomic_add_fetch(&h->failed, 1, __ATOMIC_RELAXED);
    return NULL;
  }
  if (posix_memalign(&p, align < sizeof(void*) ? sizeof(void*) : align, size ? size : 1))
    return NULL;
  __atomic_add_fetch(&h->blocks, 1, __ATOMIC_RELAXED);
  note_peak(h, __atomic_add_fetch(&h->bytes, (int64_t)size, __ATOMIC_RELAXED));
  return p;
}

static void host_free(void* user, void* p, size_t size, size_t align) {
  Host* h = user;
  (void)align;
  __atomic_sub_fetch(&h->blocks, 1, __ATOMIC_RELAXED);
  __atomic_sub_fetch(&h->bytes, (int64_t)size, __ATOMIC_RELAXED);
  free_aligned(p);
}

const char* device_library(const char* device) {
  if (strcmp(device, "fake") == 0) return getenv("TT_TEST_FAKE_LIBRARY");
  if (strcmp(device, "emu") == 0) return getenv("TT_TEST_EMU_LIBRARY");
  if (strcmp(device, "cuda") == 0) return getenv("TT_TEST_CUDA_LIBRARY");
  return NULL;
}

tt_allocator host_allocator(Host* h) {
  const tt_allocator a = {sizeof a, h, host_alloc, host_free};
  memset(h, 0, sizeof *h);
  return a;
}

/* ---- fixture ---- */

static tt_device home = {TT_CPU, 0};
int is_at_cpu(void) { return home.type == TT_CPU; }
tt_tensor* at_home(tt_tensor* t) {
  const tt_to_opts to = {.set = TT_TO_DEVICE, .device = home};
  tt_tensor* moved;
  if (is_at_cpu()) return t;
  OK(tt_to(c, t, &to, &moved));
  return moved;
}
tt_module* settle(tt_module* m) {
  if (!is_at_cpu()) OK(tt_module_to(c, m, &home, 0));
  return m;
}
static int open_home(void) {
  const char* name = getenv("TT_TEST_DEVICE");
  const char* library = name ? device_library(name) : NULL;
  home.type = TT_CPU;
  if (!library) return 0;
  home.type = TT_CUDA;
  return tt_load_cuda(c, library);
}
int open_plain(void** state) {
  const tt_allocator a = host_allocator(&host);
  const tt_runtime_opts opts = {.struct_size = sizeof opts, .allocator = &a};
  tt_runtime* rt;
  (void)state;
  if (tt_runtime_new(&opts, &rt)) return -1;
  if (tt_runtime_manual_seed(rt, 0) || tt_ctx_new(rt, &c)) return -1;
  tt_runtime_release(rt);
  return open_home() || tt_manual_seed(c, 0) ? -1 : 0;
}
int open_scoped(void** state) { return open_plain(state) || tt_scope_push(c) ? -1 : 0; }

int close_ctx(void** state) {
  (void)state;
  tt_ctx_release(c); /* open scopes go with it */
  c = NULL;
  if (host.blocks)
    print_error("%lld blocks of %lld bytes leaked\n", (long long)host.blocks,
                (long long)host.bytes);
  return host.blocks ? -1 : 0;
}

/* ---- statuses ---- */

void ok_at(tt_ctx* x, tt_status s, const char* what, const char* file, int line) {
  if (s)
    print_error("%s: %s: %s\n", what, tt_status_name(s),
                x && tt_ctx_error(x) ? tt_ctx_error(x)->message : "");
  _assert_int_equal((uint64_t)s, 0, file, line);
}

void fails_at(tt_ctx* x, tt_status s, tt_status want, const char* text, const char* what,
              const char* file, int line) {
  const tt_error* e = tt_ctx_error(x);
  if (s != want)
    print_error("%s: %s, not %s: %s\n", what, tt_status_name(s), tt_status_name(want),
                s ? e->message : "");
  _assert_int_equal((uint64_t)s, (uint64_t)want, file, line);
  _assert_int_equal((uint64_t)e->code, (uint64_t)want, file, line);
  if (text && !strstr(e->message, text)) {
    print_error("%s: message is \"%s\", which has no \"%s\"\n", what, e->message, text);
    _fail(file, line);
  }
}

/* ---- making ---- */

tt_tensor* make(tt_dtype d, const int64_t* shape, int64_t ndim, const double* values, int64_t n) {
  tt_tensor *wide, *out;
  tt_to_opts to = {.set = TT_TO_DTYPE | TT_TO_DEVICE, .dtype = d, .device = home};
  int64_t i, numel = 1;
  for (i = 0; i < ndim; i++) numel *= shape[i];
  assert_int_equal(numel, n);
  OK(tt_tensor_from_data(c, values, TT_F64, shape, ndim, &wide));
  if (d == TT_F64 && home.type == TT_CPU) return wide;
  OK(tt_to(c, wide, &to, &out));
  return out;
}
tt_tensor* numbers(tt_dtype d, const double* values, int64_t n) {
  return make(d, &n, 1, values, n);
}
tt_tensor* number(tt_dtype d, double value) { return make(d, NULL, 0, &value, 1); }
tt_tensor* param(const int64_t* shape, int64_t ndim, const double* values, int64_t n) {
  tt_tensor* t = make(TT_F64, shape, ndim, values, n);
  OK(tt_requires_grad_(c, t, 1));
  return t;
}
tt_tensor* leaf(const double* values, int64_t n) { return param(&n, 1, values, n); }

tt_scalar real_scalar(double v) {
  const tt_scalar s = {TT_SCALAR_FLOAT, 0, 0, v, 0};
  return s;
}
tt_scalar int_scalar(int64_t v) {
  const tt_scalar s = {TT_SCALAR_INT, 0, v, 0, 0};
  return s;
}

/* ---- one-liners ---- */

tt_tensor* sum_of(const tt_tensor* t) {
  tt_tensor* out;
  OK(tt_sum(c, t, NULL, &out));
  return out;
}
tt_tensor* grad_of(const tt_tensor* t) {
  tt_tensor* out;
  OK(tt_tensor_grad(c, t, &out));
  assert_non_null(out);
  return out;
}
tt_tensor* derive(const tt_tensor* y, const tt_tensor* x, int create_graph) {
  const tt_grad_opts opts = {.set = TT_GRAD_CREATE_GRAPH, .create_graph = create_graph};
  tt_tensor *s = sum_of(y), *out;
  OK(tt_grad(c, LIST(s), LIST(x), &opts, &out));
  return out;
}
double value_of(const tt_tensor* t) {
  double v = 0;
  OK(tt_item_f64(c, t, &v));
  return v;
}

double* values_of(const tt_tensor* t) {
  const tt_to_opts to = {.set = TT_TO_DTYPE, .dtype = TT_F64};
  const int64_t n = tt_tensor_numel(t);
  double* out = malloc(sizeof(double) * (size_t)(n ? 2 * n : 1));
  int64_t i;
  if (tt_tensor_dtype(t) == TT_C128) {
    OK(tt_tensor_read(c, t, out, 16 * n));
    for (i = 0; i < n; i++) out[i] = out[2 * i];
  } else if (tt_tensor_dtype(t) == TT_C64) {
    float* f = malloc((size_t)(8 * n + 1));
    OK(tt_tensor_read(c, t, f, 8 * n));
    for (i = 0; i < n; i++) out[i] = f[2 * i];
    free(f);
  } else {
    tt_tensor *wide, *plain;
    OK(tt_scope_push(c));
    OK(tt_detach(c, t, &plain));
    OK(tt_to(c, plain, &to, &wide));
    OK(tt_tensor_read(c, wide, out, 8 * n));
    OK(tt_scope_pop(c, NULL, 0));
  }
  return out;
}

void values_at(const tt_tensor* t, const double* want, int64_t n, double tol, const char* file,
               int line) {
  double* got;
  int64_t i;
  _assert_int_equal((uint64_t)tt_tensor_numel(t), (uint64_t)n, file, line);
  got = values_of(t);
  for (i = 0; i < n; i++) {
    if (got[i] == want[i] || (isnan(got[i]) && isnan(want[i])) || fabs(got[i] - want[i]) <= tol)
      continue;
    print_error("element %lld is %.17g, not %.17g\n", (long long)i, got[i], want[i]);
    free(got);
    _fail(file, line);
    return;
  }
  free(got);
}

void shape_at(const tt_tensor* t, const int64_t* want, int64_t n, const char* file, int line) {
  _assert_int_equal((uint64_t)tt_tensor_ndim(t), (uint64_t)n, file, line);
  for (int64_t i = 0; i < n; i++)
    _assert_int_equal((uint64_t)tt_tensor_shape(t)[i], (uint64_t)want[i], file, line);
}
