/* Callbacks of the application: gradient, node and accumulate hooks, executor, logger, polls. */
#include "expressions.h"

#include <math.h>

static tt_tensor* square(const tt_tensor* a) {
  tt_tensor* y;
  OK(tt_mul(c, a, a, &y));
  return y;
}
static void backward(const tt_tensor* y) { OK(tt_backward(c, sum_of(y), NULL)); }

typedef struct Seen {
  int calls, drops;
  double last;
  double factor;    /* 0: no replacement */
  tt_status status; /* what the hook returns */
  int fail_inside;  /* a failing call that the callback makes first */
  int64_t bad_shape;
} Seen;

static void drop_seen(void* user) { ((Seen*)user)->drops++; }

static tt_status on_grad(void* user, tt_ctx* x, const tt_tensor* grad, tt_tensor** replacement) {
  Seen* s = user;
  s->calls++;
  if (tt_tensor_numel(grad) == 1 && tt_item_f64(x, grad, &s->last)) return TT_INTERNAL;
  if (s->fail_inside) {
    tt_tensor* out;
    return tt_view(x, grad, SHAPE(7, 7), &out);
  }
  if (s->bad_shape) return tt_zeros(x, &s->bad_shape, 1, NULL, replacement);
  if (s->factor != 0) {
    tt_status st = tt_mul_f64(x, grad, s->factor, replacement);
    if (st) return st;
  }
  return s->status;
}

/* ---- tensor hooks ---- */

static void test_hook_sees_and_replaces(void** state) {
  tt_tensor* x = leaf(DATA(3));
  tt_tensor* h = times(x, 2);
  tt_tensor* y = square(h);
  Seen on_h = {.factor = 10};
  Seen on_x = {0};
  int64_t id;
  (void)state;
  OK(tt_register_hook(c, h, on_grad, &on_h, NULL, &id));
  OK(tt_register_hook(c, x, on_grad, &on_x, NULL, &id));
  backward(y);
  assert_true(on_h.calls == 1 && on_h.last == 12);
  assert_true(on_x.calls == 1 && on_x.last == 240);
  VALUES(grad_of(x), 240);
}

/* A hook sees the sum over all uses, once. */
static void test_hook_sees_the_whole_gradient(void** state) {
  tt_tensor* x = leaf(DATA(3));
  tt_tensor* h = times(x, 1);
  tt_tensor* y;
  Seen on_h = {0};
  Seen on_x = {0};
  int64_t id;
  (void)state;
  OK(tt_add(c, square(h), times(h, 5), &y));
  OK(tt_register_hook(c, h, on_grad, &on_h, NULL, &id));
  OK(tt_register_hook(c, x, on_grad, &on_x, NULL, &id));
  backward(y);
  assert_true(on_h.calls == 1 && on_h.last == 11);
  assert_true(on_x.calls == 1 && on_x.last == 11);
}

static void test_hooks_run_in_order_and_can_be_removed(void** state) {
  tt_tensor* x;
  Seen first = {.factor = 2};
  Seen second = {.factor = 3};
  Seen third = {.factor = 5};
  int64_t id1, id2, id3;
  (void)state;
  OK(tt_scope_push(c));
  x = leaf(DATA(1));
  OK(tt_register_hook(c, x, on_grad, &first, drop_seen, &id1));
  OK(tt_register_hook(c, x, on_grad, &second, drop_seen, &id2));
  OK(tt_register_hook(c, x, on_grad, &third, drop_seen, &id3));
  backward(times(x, 1));
  assert_true(first.last == 1 && second.last == 2 && third.last == 6);
  VALUES(grad_of(x), 30);
  OK(tt_remove_hook(c, x, id2));
  assert_int_equal(second.drops, 1);
  FAILS(tt_remove_hook(c, x, id2), TT_INVALID_ARG, "hook");
  backward(times(x, 1));
  VALUES(grad_of(x), 40);
  assert_int_equal(second.calls, 1);
  OK(tt_scope_pop(c, NULL, 0));
  assert_true(first.drops == 1 && second.drops == 1 && third.drops == 1);
}

static void test_drop_runs_once(void** state) {
  Seen s = {0};
  Seen refused = {0};
  int64_t id;
  tt_tensor *x, *plain;
  (void)state;
  OK(tt_scope_push(c));
  x = leaf(DATA(1));
  plain = numbers(TT_F64, DATA(1));
  OK(tt_register_hook(c, times(x, 2), on_grad, &s, drop_seen, &id)); /* released with the node */
  FAILS(tt_register_hook(c, plain, on_grad, &refused, drop_seen, &id), TT_AUTOGRAD, "gradient");
  FAILS(tt_register_hook(c, x, NULL, &refused, drop_seen, &id), TT_INVALID_ARG, "fn");
  FAILS(tt_register_hook(c, NULL, on_grad, &refused, drop_seen, &id), TT_BAD_HANDLE, "self");
  FAILS(tt_register_hook(c, x, on_grad, &refused, drop_seen, NULL), TT_INVALID_ARG, "id");
  FAILS(tt_register_accumulate_hook(c, plain, NULL, &refused, drop_seen, &id), TT_INVALID_ARG,
        "fn");
  OK(tt_scope_pop(c, NULL, 0));
  assert_int_equal(s.drops, 1);
  assert_int_equal(s.calls, 0);
  assert_int_equal(refused.drops, 5);
}

static void test_failing_hook(void** state) {
  tt_tensor* x = leaf(DATA(3));
  tt_tensor* h = times(x, 2);
  tt_tensor* y = square(h);
  tt_tensor* none;
  Seen s = {.status = TT_IO};
  int64_t id;
  const tt_error* e = tt_ctx_error(c);
  (void)state;
  OK(tt_register_hook(c, h, on_grad, &s, NULL, &id));
  FAILS(tt_backward(c, y, NULL), TT_CALLBACK, "hook");
  assert_null(e->cause);
  OK(tt_tensor_grad(c, x, &none));
  assert_null(none);
  s.status = TT_OK;
  s.fail_inside = 1;
  y = square(h);
  FAILS(tt_backward(c, y, NULL), TT_CALLBACK, "hook");
  assert_non_null(e->cause);
  assert_int_equal(e->cause->code, TT_SHAPE);
  assert_non_null(strstr(e->cause->message, "view: "));
  s.fail_inside = 0;
  s.bad_shape = 3;
  FAILS(tt_backward(c, square(h), NULL), TT_CALLBACK, "[3]");
  s.bad_shape = 0;
  backward(square(h)); /* the failures leave nothing pending */
  VALUES(grad_of(x), 24);
}

/* A hook may run forward and backward of its own. */
static tt_status backward_inside(void* user, tt_ctx* x, const tt_tensor* grad,
                                 tt_tensor** replacement) {
  Seen* s = user;
  tt_tensor *a = NULL, *y = NULL, *g = NULL;
  const double three = 3;
  int32_t before;
  tt_status st = tt_set_grad_enabled(x, 1, &before);
  (void)grad;
  (void)replacement;
  s->calls++;
  if (!st) st = tt_tensor_from_data(x, &three, TT_F64, NULL, 0, &a);
  if (!st) st = tt_requires_grad_(x, a, 1);
  if (!st) st = tt_mul(x, a, a, &y);
  if (!st) st = tt_backward(x, y, NULL);
  if (!st) st = tt_tensor_grad(x, a, &g);
  if (!st) st = tt_item_f64(x, g, &s->last);
  tt_tensor_release(g);
  tt_tensor_release(y);
  tt_tensor_release(a);
  if (!st) st = tt_set_grad_enabled(x, before, NULL);
  return st;
}

static void test_reentrant_hook(void** state) {
  tt_tensor* x = leaf(DATA(5));
  tt_tensor* y = square(x);
  Seen s = {0};
  int64_t id;
  (void)state;
  OK(tt_register_hook(c, x, backward_inside, &s, NULL, &id));
  OK(tt_backward(c, y, NULL));
  assert_true(s.calls == 1 && s.last == 6);
  VALUES(grad_of(x), 10);
  assert_int_equal(tt_grad_enabled(c), 1);
}

/* A callback does not see the scopes of its caller; it owns the tensors that it creates. */
static tt_status make_and_release(void* user, tt_ctx* x, const tt_tensor* grad,
                                  tt_tensor** replacement) {
  tt_tensor* t;
  tt_status st = tt_neg(x, grad, &t);
  (void)replacement;
  ((Seen*)user)->calls++;
  if (st) return st;
  tt_tensor_release(t);
  return tt_scope_pop(x, NULL, 0) == TT_INVALID_ARG ? TT_OK
                                                    : TT_INTERNAL; /* no scope is open here */
}

static void test_callbacks_start_without_scopes(void** state) {
  tt_tensor* x = leaf(DATA(5));
  tt_tensor* y = square(x);
  Seen s = {0};
  int64_t id;
  (void)state;
  OK(tt_register_hook(c, x, make_and_release, &s, NULL, &id));
  OK(tt_backward(c, y, NULL));
  assert_int_equal(s.calls, 1);
  VALUES(y, 25); /* the scope that owns y is still open */
}

/* A hook that removes itself while it runs. */
typedef struct Self {
  tt_tensor* on;
  int64_t id;
  int calls, drops;
} Self;
static tt_status remove_me(void* user, tt_ctx* x, const tt_tensor* grad, tt_tensor** replacement) {
  Self* s = user;
  (void)grad;
  (void)replacement;
  s->calls++;
  return tt_remove_hook(x, s->on, s->id);
}
static void drop_self(void* user) { ((Self*)user)->drops++; }

static void test_hook_removes_itself(void** state) {
  tt_tensor* x = leaf(DATA(5));
  Self s = {.on = x};
  Seen after = {0};
  int64_t id;
  (void)state;
  OK(tt_register_hook(c, x, remove_me, &s, drop_self, &s.id));
  OK(tt_register_hook(c, x, on_grad, &after, NULL, &id));
  backward(times(x, 2));
  backward(times(x, 2));
  assert_int_equal(s.calls, 1);
  assert_int_equal(s.drops, 1);
  assert_int_equal(after.calls, 2);
}

/* ---- accumulate hooks ---- */

static tt_status on_accumulated(void* user, tt_ctx* x, const tt_tensor* t) {
  Seen* s = user;
  tt_tensor* g;
  tt_status st = tt_tensor_grad(x, t, &g);
  s->calls++;
  if (st) return st;
  if (!g) return TT_INTERNAL;
  st = tt_item_f64(x, g, &s->last);
  tt_tensor_release(g);
  return st ? st : s->status;
}

static void test_accumulate_hook(void** state) {
  tt_tensor* x = leaf(DATA(5));
  Seen s = {0};
  int64_t id;
  (void)state;
  FAILS(tt_register_accumulate_hook(c, times(x, 1), on_accumulated, &s, NULL, &id), TT_AUTOGRAD,
        "leaf");
  OK(tt_register_accumulate_hook(c, x, on_accumulated, &s, NULL, &id));
  backward(times(x, 2));
  backward(times(x, 3));
  assert_true(s.calls == 2 && s.last == 5);
  s.status = TT_IO;
  FAILS(tt_backward(c, times(x, 1), NULL), TT_CALLBACK, NULL);
  VALUES(grad_of(x), 6); /* accumulated before the hook: the header says so */
  OK(tt_remove_hook(c, x, id));
  backward(times(x, 1));
  assert_int_equal(s.calls, 3);
}

/* An optimizer step inside the hook uses each gradient as soon as it is complete. */
static tt_status step(void* user, tt_ctx* x, const tt_tensor* t) {
  tt_tensor *g, *scaled;
  int32_t before;
  tt_status st = tt_tensor_grad(x, t, &g);
  (void)user;
  if (st) return st;
  st = tt_set_grad_enabled(x, 0, &before);
  if (!st) st = tt_mul_f64(x, g, 0.5, &scaled);
  if (!st) {
    st = tt_sub_(x, (tt_tensor*)t, scaled);
    tt_tensor_release(scaled);
  }
  if (!st) st = tt_tensor_set_grad(x, (tt_tensor*)t, NULL);
  tt_tensor_release(g);
  if (!st) st = tt_set_grad_enabled(x, before, NULL);
  return st;
}

static void test_optimizer_in_hook(void** state) {
  tt_tensor *x = leaf(DATA(8)), *none;
  int64_t id;
  int i;
  (void)state;
  OK(tt_register_accumulate_hook(c, x, step, NULL, NULL, &id));
  for (i = 0; i < 3; i++) backward(times(x, 2));
  VALUES(x, 5);
  OK(tt_tensor_grad(c, x, &none));
  assert_null(none);
}

/* ---- the order of leaves ---- */

enum { kLeaves = 5 };
static tt_tensor* ordered[kLeaves];
static int order[64], n_ordered;

static tt_status note_leaf(void* user, tt_ctx* x, const tt_tensor* t) {
  (void)x;
  (void)t;
  if (n_ordered < 64) order[n_ordered++] = *(const int*)user;
  return TT_OK;
}
/* h * w0 * w1 …, one layer a leaf. */
static tt_tensor* layers(tt_tensor* h) {
  for (int i = 0; i < kLeaves; i++) OK(tt_mul(c, h, ordered[i], &h));
  return h;
}
/* Each leaf fires once, in this order. */
static void fires(tt_tensor* y, const int* want) {
  n_ordered = 0;
  backward(y);
  assert_int_equal(n_ordered, kLeaves);
  for (int i = 0; i < kLeaves; i++) assert_int_equal(order[i], want[i]);
}

/* Gradients are complete from the last layer to the first, so that what waits for one, as a
   reduction over processes does, overlaps with the rest: in every step, beside graphs that live on,
   and in graphs that grow from step to step. Depths count from the leaves of each graph, so nothing
   has to be reset between steps. */
static void test_order_of_leaves(void** state) {
  static const int ids[kLeaves] = {0, 1, 2, 3, 4};
  const int last_first[kLeaves] = {4, 3, 2, 1, 0};
  const int shallow[kLeaves] = {3, 2, 1, 4, 0};
  tt_tensor *x = numbers(TT_F64, DATA(1)), *kept, *h;
  int64_t id;
  int k;
  (void)state;
  for (k = 0; k < kLeaves; k++) {
    ordered[k] = leaf(DATA(1));
    OK(tt_register_accumulate_hook(c, ordered[k], note_leaf, (void*)&ids[k], NULL, &id));
  }
  for (k = 0; k < 3; k++) fires(layers(x), last_first);
  kept = layers(x);
  for (k = 0; k < 3; k++) fires(layers(x), last_first);
  fires(kept, last_first);
  h = x;
  for (k = 1; k <= 300; k++) {
    h = layers(h);
    if (k % 100) continue;
    fires(h, last_first);
    OK(tt_detach(c, h, &h));
  }
  /* Used once at a smaller depth, a leaf fires late from then on, once and complete; a new leaf
     with its memory does not. */
  n_ordered = 0;
  backward(times(ordered[4], 2));
  assert_int_equal(n_ordered, 1);
  OK(tt_tensor_set_grad(c, ordered[4], NULL));
  fires(layers(x), shallow);
  VALUES(grad_of(ordered[4]), 1);
  OK(tt_detach(c, ordered[4], &ordered[4]));
  OK(tt_requires_grad_(c, ordered[4], 1));
  OK(tt_register_accumulate_hook(c, ordered[4], note_leaf, (void*)&ids[4], NULL, &id));
  fires(layers(x), last_first);
}

/* ---- node hooks ---- */

typedef struct NodeSeen {
  int calls, drops;
  double values[4];
  int64_t n;
  double factor;
} NodeSeen;
static tt_status on_node(void* user, tt_ctx* x, tt_tensor* const* grads, int64_t n,
                         tt_tensor** replacements) {
  NodeSeen* s = user;
  int64_t i;
  s->calls++;
  s->n = n;
  for (i = 0; i < n; i++) {
    tt_status st;
    if (!grads[i]) continue;
    st = tt_item_f64(x, grads[i], &s->values[i]);
    if (!st && s->factor != 0) st = tt_mul_f64(x, grads[i], s->factor, &replacements[i]);
    if (st) return st;
  }
  return TT_OK;
}
static void drop_node_seen(void* user) { ((NodeSeen*)user)->drops++; }

static void test_node_hooks(void** state) {
  tt_tensor *a, *b, *y;
  NodeSeen pre = {.factor = 10};
  NodeSeen post = {.factor = 2};
  NodeSeen gone = {0};
  tt_node* n;
  int64_t id;
  (void)state;
  OK(tt_scope_push(c));
  a = leaf(DATA(2));
  b = leaf(DATA(3));
  OK(tt_mul(c, a, b, &y));
  OK(tt_tensor_grad_fn(c, y, &n));
  OK(tt_node_register_hook(c, n, 1, on_node, &pre, drop_node_seen, &id));
  OK(tt_node_register_hook(c, n, 0, on_node, &post, drop_node_seen, &id));
  OK(tt_node_register_hook(c, n, 0, on_node, &gone, drop_node_seen, &id));
  OK(tt_node_remove_hook(c, n, id));
  FAILS(tt_node_remove_hook(c, n, id), TT_INVALID_ARG, NULL);
  assert_int_equal(gone.drops, 1);
  tt_node_release(n);
  OK(tt_backward(c, y, NULL));
  assert_true(pre.calls == 1 && pre.n == 1 && pre.values[0] == 1);
  assert_true(post.calls == 1 && post.n == 2 && post.values[0] == 30 && post.values[1] == 20);
  VALUES(grad_of(a), 60);
  VALUES(grad_of(b), 40);
  OK(tt_scope_pop(c, NULL, 0));
  assert_true(pre.drops == 1 && post.drops == 1 && gone.drops == 1);
  assert_int_equal(gone.calls, 0);
}

/* tt_grad computes what leads to its inputs, and nothing else. */
static void test_nodes_off_the_path_do_not_run(void** state) {
  const tt_grad_opts keep = {.set = TT_GRAD_RETAIN_GRAPH, .retain_graph = 1};
  tt_tensor *x, *w, *h, *y, *g;
  Seen on_h = {0};
  Seen on_w = {0};
  NodeSeen post = {0};
  tt_node* n;
  int64_t id;
  (void)state;
  OK(tt_scope_push(c));
  x = leaf(DATA(2));
  w = leaf(DATA(3));
  h = times(w, 5);
  OK(tt_mul(c, x, h, &y));
  OK(tt_register_hook(c, h, on_grad, &on_h, NULL, &id));
  OK(tt_register_hook(c, w, on_grad, &on_w, NULL, &id));
  OK(tt_tensor_grad_fn(c, y, &n));
  OK(tt_node_register_hook(c, n, 0, on_node, &post, drop_node_seen, &id));
  tt_node_release(n);
  OK(tt_grad(c, LIST(y), LIST(x), &keep, &g));
  VALUES(g, 15);
  assert_true(post.calls == 1 && post.values[0] == 15 && post.values[1] == 0); /* absent */
  assert_true(on_h.calls == 0 && on_w.calls == 0);
  OK(tt_grad(c, LIST(y), LIST(h), &keep, &g));
  VALUES(g, 2);
  assert_true(on_h.calls == 1 && on_w.calls == 0);
  OK(tt_grad(c, LIST(y), LIST(w), NULL, &g));
  VALUES(g, 10);
  assert_true(on_h.calls == 2 && on_w.calls == 1);
  OK(tt_scope_pop(c, NULL, 0));
}

/* ---- hooks and create_graph ---- */

static void test_hook_under_create_graph(void** state) {
  tt_tensor* x = leaf(DATA(3));
  tt_tensor* h = times(x, 1);
  tt_tensor* d;
  Seen s = {.factor = 2};
  int64_t id;
  (void)state;
  OK(tt_register_hook(c, h, on_grad, &s, NULL, &id));
  d = derive(square(h), x, 1);
  VALUES(d, 12);
  VALUES(derive(d, x, 0),
         8); /* the replacement is differentiated, too, and the hook runs again meanwhile */
}

/* ---- executor and logger ---- */

typedef struct Exec {
  int regions, bodies;
  int64_t covered;
  int32_t status;
  int64_t left_out; /* ranges at the beginning that it forgets */
} Exec;
static int32_t exec_threads(void* user) {
  (void)user;
  return 4;
}
static int32_t exec_for(void* user, int64_t n, int64_t grain, tt_range_fn body, void* body_ctx) {
  Exec* e = user;
  int64_t i;
  e->regions++;
  if (e->status) return e->status;
  for (i = ((n - 1) / grain) * grain; i >= e->left_out; i -= grain) { /* any order is legal */
    const int64_t end = i + grain < n ? i + grain : n;
    body(body_ctx, i, end);
    e->bodies++;
    e->covered += end - i;
  }
  return 0;
}

static void test_executor_of_the_application(void** state) {
  Exec e = {0};
  Host h;
  const tt_allocator a = host_allocator(&h);
  const tt_executor exec = {sizeof exec, &e, exec_threads, exec_for};
  const tt_runtime_opts opts = {.struct_size = sizeof opts, .allocator = &a, .executor = &exec};
  tt_runtime* rt;
  tt_ctx* x;
  tt_tensor *t, *twice, *sum, *matrix, *none;
  const int64_t shape[] = {3000000};
  double v;
  (void)state;
  assert_int_equal(tt_runtime_new(&opts, &rt), TT_OK);
  assert_int_equal(tt_ctx_new(rt, &x), TT_OK);
  assert_int_equal(tt_num_threads(x), 4);
  ok_at(x, tt_ones(x, shape, 1, NULL, &t), "ones", __FILE__, __LINE__);
  ok_at(x, tt_ones(x, SHAPE(400, 400), NULL, &matrix), "ones", __FILE__, __LINE__);
  ok_at(x, tt_mul_f64(x, t, 2, &twice), "mul", __FILE__, __LINE__);
  ok_at(x, tt_sum(x, twice, NULL, &sum), "sum", __FILE__, __LINE__);
  ok_at(x, tt_item_f64(x, sum, &v), "item", __FILE__, __LINE__);
  assert_true(v == 6e6);
  assert_true(e.regions >= 2 && e.bodies > e.regions);
  e.status = TT_IO;
  assert_int_equal(tt_neg(x, t, &none), TT_IO);
  assert_non_null(strstr(tt_ctx_error(x)->message, "neg: the application's executor returned 7 "));
  assert_null(none);
  e.status = 1000;
  assert_int_equal(tt_neg(x, t, &none), TT_CALLBACK);
  e.status = 0;
  e.left_out = 2;
  assert_int_equal(tt_neg(x, t, &none), TT_CALLBACK);
  assert_non_null(strstr(tt_ctx_error(x)->message, "executor returned 0 after "));
  assert_int_equal(tt_matmul(x, matrix, matrix, &none), TT_CALLBACK);
  assert_non_null(strstr(tt_ctx_error(x)->message, "executor returned 0 after "));
  tt_tensor_release(matrix);
  tt_tensor_release(t);
  tt_tensor_release(twice);
  tt_tensor_release(sum);
  tt_ctx_release(x);
  tt_runtime_release(rt);
  assert_int_equal(h.blocks, 0);
}

typedef struct Log {
  int lines, level;
  char text[512];
} Log;
static void keep_line(void* user, int32_t level, const char* message) {
  Log* log = user;
  log->lines++;
  log->level = level;
  snprintf(log->text, sizeof log->text, "%s", message);
}

static void test_logger_of_the_application(void** state) {
  Log log = {0};
  const tt_logger logger = {sizeof logger, &log, keep_line};
  const tt_runtime_opts opts = {
      .struct_size = sizeof opts, .logger = &logger, .memory_limit = 1 << 20};
  const int64_t shape[] = {2, 3};
  const int64_t wide[] = {4};
  const int64_t huge[] = {1 << 20};
  tt_runtime* rt;
  tt_ctx* x;
  tt_tensor *a, *b, *none;
  (void)state;
  assert_int_equal(tt_runtime_new(&opts, &rt), TT_OK);
  assert_int_equal(log.lines, 1);
  assert_int_equal(log.level, TT_LOG_DEBUG);
  assert_non_null(strstr(log.text, tt_version()));
  assert_int_equal(tt_ctx_new(rt, &x), TT_OK);
  ok_at(x, tt_ones(x, shape, 2, NULL, &a), "ones", __FILE__, __LINE__);
  ok_at(x, tt_ones(x, wide, 1, NULL, &b), "ones", __FILE__, __LINE__);
  assert_int_equal(log.lines, 1); /* calls that succeed are not logged */
  assert_int_equal(tt_add(x, a, b, &none), TT_SHAPE);
  assert_int_equal(log.lines, 2);
  assert_int_equal(log.level, TT_LOG_DEBUG);
  assert_string_equal(log.text, tt_ctx_error(x)->message);
  assert_int_equal(tt_zeros(x, huge, 1, NULL, &none), TT_OOM);
  assert_int_equal(log.lines, 3);
  assert_int_equal(log.level, TT_LOG_WARNING);
  assert_non_null(strstr(log.text, "4194304"));
  tt_tensor_release(a);
  tt_tensor_release(b);
  tt_ctx_release(x);
  tt_runtime_release(rt);
}

static void test_invalid_logger(void** state) {
  const tt_logger silent = {sizeof silent, NULL, NULL};
  const tt_logger old = {1, NULL, keep_line};
  tt_runtime_opts opts = {.struct_size = sizeof opts, .logger = &silent};
  tt_runtime* rt;
  (void)state;
  assert_int_equal(tt_runtime_new(&opts, &rt), TT_INVALID_ARG);
  assert_null(rt);
  opts.logger = &old;
  assert_int_equal(tt_runtime_new(&opts, &rt), TT_INVALID_ARG);
}

/* ---- polls ---- */

static tt_status on_poll(void* user, tt_ctx* x) {
  Seen* s = user;
  tt_tensor* out;
  s->calls++;
  return s->fail_inside ? tt_zeros(x, SHAPE(-1), NULL, &out) : s->status;
}

/* Small kernels until the poll has been asked, or a call fails. */
static tt_status until_polled(const tt_tensor* a, const Seen* s) {
  const int before = s->calls;
  tt_status status = TT_OK;
  while (s->calls == before && status == TT_OK) {
    tt_tensor* out = NULL;
    OK(tt_scope_push(c));
    status = tt_neg(c, a, &out);
    assert_true((status == TT_OK) == (out != NULL));
    OK(tt_scope_pop(c, NULL, 0));
  }
  return status;
}

static void test_poll_ends_a_call(void** state) {
  Seen s = {0};
  tt_tensor *a = numbers(TT_F32, DATA(1)), *out;
  (void)state;
  OK(tt_ctx_set_poll(c, on_poll, &s, drop_seen));
  OK(until_polled(a, &s));
  OK(until_polled(a, &s));
  s.status = TT_INTERNAL;
  assert_int_equal(until_polled(a, &s), TT_CALLBACK);
  assert_string_equal(tt_ctx_error(c)->message, "neg: the poll failed with status 17 (INTERNAL)");
  s.fail_inside = 1;
  assert_int_equal(until_polled(a, &s), TT_CALLBACK);
  assert_int_equal(tt_ctx_error(c)->cause->code, TT_SHAPE);
  s.fail_inside = 0;
  s.status = TT_CANCELLED;
  assert_int_equal(until_polled(a, &s), TT_CANCELLED);
  s.status = TT_OK;
  OK(until_polled(a, &s));
  assert_int_equal(s.drops, 0);
  OK(tt_ctx_set_poll(c, NULL, NULL, NULL));
  assert_int_equal(s.drops, 1);
  OK(tt_neg(c, a, &out));
}

/* Polled before each callback, however little time has passed. */
static void test_poll_before_callbacks(void** state) {
  Seen s = {0};
  Seen hook = {0};
  int64_t id;
  tt_tensor* x = leaf(DATA(3));
  tt_tensor* y = times(x, 2);
  (void)state;
  OK(tt_register_hook(c, x, on_grad, &hook, NULL, &id));
  OK(tt_ctx_set_poll(c, on_poll, &s, NULL));
  for (int k = 0; k < 3; k++) {
    const int before = s.calls;
    OK(tt_backward(c, y, &(tt_backward_opts){.set = TT_BACKWARD_RETAIN_GRAPH, .retain_graph = 1}));
    assert_true(s.calls > before);
  }
  assert_int_equal(hook.calls, 3);
  s.status = TT_INTERNAL;
  FAILS(tt_backward(c, y, NULL), TT_CALLBACK, "the poll failed");
  assert_int_equal(hook.calls, 3);
}

static tt_status on_last_poll(void* user, tt_ctx* x) {
  const Seen* s = user;
  const tt_status status = tt_ctx_set_poll(x, NULL, NULL, NULL);
  assert_int_equal(s->drops, 0); /* it is still running */
  return status;
}

static void test_poll_is_dropped_once(void** state) {
  Seen first = {0};
  Seen second = {0};
  Seen third = {0};
  tt_ctx* other;
  tt_tensor *a = numbers(TT_F32, DATA(1)), *out;
  (void)state;
  OK(tt_ctx_set_poll(c, on_poll, &first, drop_seen));
  OK(tt_ctx_set_poll(c, on_last_poll, &second, drop_seen));
  assert_int_equal(first.drops, 1);
  OK(tt_neg(c, a, &out));
  assert_int_equal(second.drops, 1);
  assert_int_equal(tt_ctx_set_poll(NULL, on_poll, &third, drop_seen), TT_BAD_HANDLE);
  assert_int_equal(third.drops, 1);
  assert_int_equal(tt_ctx_new(NULL, &other), TT_OK);
  assert_int_equal(tt_ctx_set_poll(other, on_poll, &third, drop_seen), TT_OK);
  tt_ctx_release(other);
  assert_int_equal(third.drops, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_hook_sees_and_replaces),
      SCOPED(test_hook_sees_the_whole_gradient),
      SCOPED(test_hooks_run_in_order_and_can_be_removed),
      SCOPED(test_drop_runs_once),
      SCOPED(test_failing_hook),
      SCOPED(test_reentrant_hook),
      SCOPED(test_callbacks_start_without_scopes),
      SCOPED(test_hook_removes_itself),
      SCOPED(test_accumulate_hook),
      SCOPED(test_order_of_leaves),
      SCOPED(test_optimizer_in_hook),
      SCOPED(test_node_hooks),
      SCOPED(test_nodes_off_the_path_do_not_run),
      SCOPED(test_hook_under_create_graph),
      SCOPED(test_poll_ends_a_call),
      SCOPED(test_poll_before_callbacks),
      SCOPED(test_poll_is_dropped_once),
      PLAIN(test_executor_of_the_application),
      PLAIN(test_logger_of_the_application),
      PLAIN(test_invalid_logger),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
