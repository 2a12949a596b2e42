#include "snapshot.h"

struct Snapshot {
  unsigned char* bytes;
  size_t n, cap;
};

/* An entry: this, then n bytes. */
typedef struct Entry {
  char what[72];
  size_t n;
} Entry;

static void put_bytes(Snapshot* s, const void* p, size_t n) {
  if (s->n + n > s->cap) {
    s->cap = (s->n + n) * 2;
    s->bytes = realloc(s->bytes, s->cap);
    assert_non_null(s->bytes);
  }
  if (n) memcpy(s->bytes + s->n, p, n);
  s->n += n;
}
static void put(Snapshot* s, const void* p, size_t n, const char* format, ...) {
  Entry e;
  va_list args;
  memset(&e, 0, sizeof e);
  va_start(args, format);
  vsnprintf(e.what, sizeof e.what, format, args);
  va_end(args);
  e.n = n;
  put_bytes(s, &e, sizeof e);
  put_bytes(s, p, n);
}
static void put_int(Snapshot* s, int64_t v, const char* what, const char* of) {
  put(s, &v, sizeof v, "%s of %s", what, of);
}

static void must(tt_ctx* x, tt_status status) {
  if (status) fail_msg("a snapshot fails: %s", tt_ctx_error(x)->message);
}

static void put_storage(Snapshot* s, const tt_tensor* t, const char* name) {
  const void* data = tt_tensor_storage_data(t);
  put(s, &data, sizeof data, "memory of %s", name);
  put(s, data, data ? (size_t)tt_tensor_storage_bytes(t) : 0, "values of %s", name);
}

static void put_tensor(Snapshot* s, tt_ctx* x, const tt_tensor* t, const char* name) {
  const size_t dims = (size_t)tt_tensor_ndim(t) * sizeof(int64_t);
  tt_tensor* grad = NULL;
  put_int(s, tt_tensor_dtype(t), "dtype", name);
  put_int(s, tt_tensor_device_type(t) * 256 + tt_tensor_device_index(t), "device", name);
  put(s, tt_tensor_shape(t), dims, "shape of %s", name);
  put(s, tt_tensor_strides(t), dims, "strides of %s", name);
  put_int(s, tt_tensor_offset(t), "offset", name);
  put_int(s, tt_tensor_version(t), "version", name);
  put_int(s, tt_tensor_requires_grad(t), "requires_grad", name);
  put_int(s, tt_tensor_is_leaf(t), "is_leaf", name);
  put_int(s, tt_tensor_is_view(t), "is_view", name);
  put_storage(s, t, name);
  must(x, tt_tensor_grad(x, t, &grad));
  put(s, &grad, sizeof grad, "gradient of %s", name);
  if (!grad) return;
  put_int(s, tt_tensor_version(grad), "version of the gradient", name);
  put_storage(s, grad, "a gradient");
  tt_tensor_release(grad);
}

static void put_dict(Snapshot* s, tt_ctx* x, tt_state_dict* d) {
  int64_t i;
  for (i = 0; i < tt_state_dict_size(d); i++) {
    tt_tensor* t;
    must(x, tt_state_dict_get(x, d, i, &t));
    put(s, &t, sizeof t, "%s", tt_state_dict_name(d, i));
    put_tensor(s, x, t, tt_state_dict_name(d, i));
    tt_tensor_release(t);
  }
  tt_state_dict_release(d);
}
static void put_module(Snapshot* s, tt_ctx* x, const tt_module* m) {
  tt_state_dict* d;
  int64_t i;
  must(x, tt_module_named_parameters(x, m, &d));
  put_dict(s, x, d);
  must(x, tt_module_named_buffers(x, m, &d));
  put_dict(s, x, d);
  put_int(s, tt_module_training(m), "training mode", tt_module_type(m));
  put_int(s, tt_module_num_children(m), "number of children", tt_module_type(m));
  for (i = 0; i < tt_module_num_children(m); i++) {
    tt_module* child;
    must(x, tt_module_child(x, m, i, &child));
    put_int(s, tt_module_training(child), "training mode of a child", tt_module_type(m));
    tt_module_release(child);
  }
}

static void put_optimizer(Snapshot* s, tt_ctx* x, const tt_optimizer* o) {
  char name[96];
  double v;
  tt_tensor* t;
  int64_t i;
  put_int(s, tt_optim_num_groups(o), "groups", "the optimizer");
  put_int(s, tt_optim_num_numbers(o), "numbers", "the optimizer");
  put_int(s, tt_optim_num_tensors(o), "tensors", "the optimizer");
  for (i = 0; i < tt_optim_num_numbers(o); i++) {
    must(x, tt_optim_number_at(x, o, i, name, sizeof name, &v));
    put(s, &v, sizeof v, "%s", name);
  }
  for (i = 0; i < tt_optim_num_tensors(o); i++) {
    must(x, tt_optim_tensor_at(x, o, i, name, sizeof name, &t));
    put(s, &t, sizeof t, "%s", name);
    put_tensor(s, x, t, name);
    tt_tensor_release(t);
  }
  for (i = 0; i < tt_optim_num_params(o); i++) {
    snprintf(name, sizeof name, "parameter %d", (int)i);
    must(x, tt_optim_param(x, o, i, &t));
    put_tensor(s, x, t, name);
    tt_tensor_release(t);
  }
}

static void put_scheduler(Snapshot* s, tt_ctx* x, const tt_scheduler* of) {
  char name[96];
  double v;
  int64_t i;
  put_int(s, tt_scheduler_last_epoch(of), "last epoch", "the scheduler");
  for (i = 0; i < tt_scheduler_num_numbers(of); i++) {
    must(x, tt_scheduler_number_at(x, of, i, name, sizeof name, &v));
    put(s, &v, sizeof v, "%s of the scheduler", name);
  }
}

static void put_generator(Snapshot* s, tt_ctx* x, const tt_generator* g, const char* name) {
  uint64_t state[2];
  must(x, tt_generator_state(x, g, state));
  put(s, state, sizeof state, "state of %s", name);
}

Snapshot* snapshot_take(const Watched* w) {
  Snapshot* s = calloc(1, sizeof *s);
  tt_generator* own;
  char name[32];
  int64_t i;
  assert_non_null(s);
  host.paused = 1;
  for (i = 0; i < w->n_tensors; i++) {
    snprintf(name, sizeof name, "tensor %d", (int)i);
    if (w->tensors[i]) put_tensor(s, w->watcher, w->tensors[i], name);
  }
  for (i = 0; i < w->n_modules; i++)
    if (w->modules[i]) put_module(s, w->watcher, w->modules[i]);
  for (i = 0; i < w->n_optimizers; i++)
    if (w->optimizers[i]) put_optimizer(s, w->watcher, w->optimizers[i]);
  for (i = 0; i < w->n_schedulers; i++)
    if (w->schedulers[i]) put_scheduler(s, w->watcher, w->schedulers[i]);
  for (i = 0; i < w->n_generators; i++)
    if (w->generators[i]) put_generator(s, w->watcher, w->generators[i], "a generator");
  put_int(s, tt_grad_enabled(w->ctx), "grad mode", "the ctx");
  must(w->watcher, tt_ctx_generator(w->ctx, &own));
  put_generator(s, w->watcher, own, "the ctx's generator");
  tt_generator_release(own);
  host.paused = 0;
  return s;
}

static const char* first_difference(const Snapshot* a, const Snapshot* b) {
  static char text[256];
  size_t at = 0;
  while (at + sizeof(Entry) <= a->n && at + sizeof(Entry) <= b->n) {
    Entry x, y;
    memcpy(&x, a->bytes + at, sizeof x);
    memcpy(&y, b->bytes + at, sizeof y);
    if (strcmp(x.what, y.what)) {
      snprintf(text, sizeof text, "%s has given way to %s", x.what, y.what);
      return text;
    }
    if (x.n != y.n || memcmp(a->bytes + at + sizeof x, b->bytes + at + sizeof y, x.n)) {
      snprintf(text, sizeof text, "%s has changed", x.what);
      return text;
    }
    at += sizeof x + x.n;
  }
  return a->n == b->n ? NULL : "something has come or gone";
}

const char* snapshot_changed(const Snapshot* was, const Watched* w) {
  Snapshot* now = snapshot_take(w);
  const char* what = first_difference(was, now);
  snapshot_free(now);
  return what;
}

void snapshot_free(Snapshot* s) {
  if (!s) return;
  free(s->bytes);
  free(s);
}
