/* Transforms of functions, hooks on saved tensors, autocast: tt_vjp, tt_jvp, tt_jacobian,
   tt_hessian, tt_vmap, tt_functional_call, tt_checkpoint_function, tt_saved_tensors_*,
   tt_autocast_*, dual tensors. */
#include "harness.h"

/* Side effects of the callback, and a record of its arguments. */
typedef struct Function {
  int calls, drops;
  tt_status fail; /* returned at the end */
  int64_t n_outs; /* set instead of the true one; 0: the true one */
  const tt_tensor* captured;
} Function;

static void count_drop(void* user) { ((Function*)user)->drops++; }

/* y = x^3 a, of two inputs, and x; a captured tensor multiplies y. */
static tt_status cube(void* user, tt_ctx* ctx, const tt_tensor* const* in, int64_t n,
                      tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  Function* f = (Function*)user;
  tt_tensor *square = NULL, *third = NULL, *product = NULL;
  tt_status s;
  (void)cap;
  f->calls++;
  *n_outs = f->n_outs ? f->n_outs : 1;
  if ((s = tt_mul(ctx, in[0], in[0], &square)) != TT_OK) return s;
  s = tt_mul(ctx, square, in[0], &third);
  if (!s) s = tt_mul(ctx, third, in[n - 1], &product);
  if (!s && f->captured) {
    tt_tensor* other = NULL;
    s = tt_mul(ctx, product, f->captured, &other);
    tt_tensor_release(product);
    product = other;
  }
  tt_tensor_release(square);
  tt_tensor_release(third);
  outs[0] = product;
  return s ? s : f->fail;
}
/* The sum of cube's result. */
static tt_status cube_sum(void* user, tt_ctx* ctx, const tt_tensor* const* in, int64_t n,
                          tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  tt_tensor* y = NULL;
  tt_status s = cube(user, ctx, in, n, &y, cap, n_outs);
  if (!s) s = tt_sum(ctx, y, NULL, outs);
  tt_tensor_release(y);
  return s;
}

static void test_products(void** state) {
  Function f = {0};
  tt_tensor *x = numbers(TT_F64, DATA(1, 2)), *a = numbers(TT_F64, DATA(3, 5));
  tt_tensor *v = numbers(TT_F64, DATA(1, -1)), *outs[2], *grads[2], *products[2];
  const tt_tensor *in[2], *none[2] = {NULL, NULL}, *cotangent;
  int64_t n = 0;
  (void)state;
  in[0] = x;
  in[1] = a;
  cotangent = v;
  OK(tt_vjp(c, cube, &f, count_drop, in, 2, &cotangent, 1, outs, 2, &n, grads));
  assert_int_equal(n, 1);
  VALUES(outs[0], 3, 40);
  VALUES(grads[0], 9, -60);
  VALUES(grads[1], 1, -8);
  OK(tt_jvp(c, cube, &f, count_drop, in, (const tt_tensor*[]){v, NULL}, 2, outs, products, 2, &n));
  VALUES(products[0], 9, -60);
  OK(tt_jvp(c, cube, &f, count_drop, in, none, 2, outs, products, 2, &n));
  VALUES(products[0], 0, 0);
  assert_int_equal(tt_tensor_requires_grad(outs[0]), 0);
  OK(tt_vjp(c, cube_sum, &f, count_drop, in, 2, NULL, 0, outs, 2, &n, grads));
  VALUES(outs[0], 43);
  VALUES(grads[0], 9, 60);
  assert_int_equal(f.drops, 4);
}

/* Dual tensors of the application: views and writes in place have tangents, gradients too. */
static void test_dual_tensors(void** state) {
  const double values[] = {2, 3};
  tt_tensor *w = leaf(values, 2), *x = numbers(TT_F64, DATA(1, 2)),
            *t = numbers(TT_F64, DATA(1, 3));
  tt_tensor *short_one = numbers(TT_F64, DATA(1)), *whole = numbers(TT_I64, DATA(1, 2));
  tt_tensor *dual, *y, *first, *sum, *grad, *primal, *tangent;
  const tt_tensor *in, *out;
  (void)state;
  FAILS(tt_make_dual(c, x, t, &dual), TT_AUTOGRAD, "no level");
  FAILS(tt_dual_level_pop(c), TT_AUTOGRAD, "no level");
  OK(tt_dual_level_push(c));
  FAILS(tt_dual_level_push(c), TT_AUTOGRAD, "do not nest");
  FAILS(tt_make_dual(c, x, short_one, &dual), TT_SHAPE, "tangent");
  FAILS(tt_make_dual(c, x, whole, &dual), TT_DTYPE, "tangent");
  FAILS(tt_make_dual(c, whole, whole, &dual), TT_DTYPE, "primal");
  OK(tt_make_dual(c, x, t, &dual));
  FAILS(tt_make_dual(c, dual, t, &y), TT_AUTOGRAD, "primal has a tangent");
  FAILS(tt_make_dual(c, x, dual, &y), TT_AUTOGRAD, "tangent has a tangent");
  OK(tt_mul(c, dual, dual, &y));
  OK(tt_select(c, y, 0, 0, &first));
  OK(tt_mul_(c, first, first));
  OK(tt_unpack_dual(c, y, &primal, &tangent));
  VALUES(primal, 1, 4);
  VALUES(tangent, 4, 12);
  OK(tt_mul(c, y, w, &y));
  assert_int_equal(tt_tensor_requires_grad(y), 1);
  FAILS(tt_backward(c, y, NULL), TT_AUTOGRAD, "tangent");
  OK(tt_sum(c, y, NULL, &sum));
  in = w;
  out = sum;
  OK(tt_grad(c, &out, 1, &in, 1, NULL, &grad));
  OK(tt_unpack_dual(c, grad, &primal, &tangent));
  VALUES(primal, 1, 4);
  VALUES(tangent, 4, 12);
  OK(tt_unpack_dual(c, w, &primal, &tangent));
  assert_null(tangent);
  OK(tt_dual_level_pop(c));
  OK(tt_unpack_dual(c, y, &primal, &tangent));
  assert_null(tangent);
}

static void test_matrices(void** state) {
  Function f = {0};
  tt_tensor *x = numbers(TT_F64, DATA(1, 2)), *outs[4];
  const tt_tensor* in = x;
  int64_t n = 0;
  (void)state;
  OK(tt_jacobian(c, cube, &f, NULL, &in, 1, outs, 4, &n));
  HAS_SHAPE(outs[0], 2, 2);
  VALUES(outs[0], 4, 0, 0, 32);
  OK(tt_hessian(c, cube_sum, &f, NULL, &in, 1, outs, 4, &n));
  HAS_SHAPE(outs[0], 2, 2);
  VALUES(outs[0], 12, 0, 0, 48);
  FAILS(tt_jacobian(c, cube, &f, NULL, &in, 1, outs, 0, &n), TT_BUFFER_TOO_SMALL, "outs");
  assert_int_equal(n, 1);
}

/* A result that depends on tensors of the caller is recorded for them; others are not. */
static void test_what_is_recorded(void** state) {
  Function f = {0};
  const double values[] = {2, 3};
  tt_tensor *w = leaf(values, 2), *x = numbers(TT_F64, DATA(1, 2)), *outs[1], *grads[1];
  const tt_tensor* in = x;
  int64_t n = 0;
  int32_t before = 0;
  (void)state;
  OK(tt_vjp(c, cube_sum, &f, NULL, &in, 1, NULL, 0, outs, 1, &n, grads));
  assert_int_equal(tt_tensor_requires_grad(grads[0]), 0);
  f.captured = w;
  OK(tt_vjp(c, cube_sum, &f, NULL, &in, 1, NULL, 0, outs, 1, &n, grads));
  VALUES(grads[0], 8, 96);
  VALUES(derive(grads[0], w, 0), 4, 32);
  OK(tt_set_grad_enabled(c, 0, &before));
  OK(tt_vjp(c, cube_sum, &f, NULL, &in, 1, NULL, 0, outs, 1, &n, grads));
  OK(tt_set_grad_enabled(c, 1, &before));
  VALUES(grads[0], 8, 96);
  assert_int_equal(tt_tensor_requires_grad(grads[0]), 0);
}

static tt_status grad_of_sample(void* user, tt_ctx* ctx, const tt_tensor* const* in, int64_t n,
                                tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  tt_tensor *value = NULL, *grads[2] = {NULL, NULL};
  const tt_status s = tt_vjp(ctx, cube_sum, user, NULL, in, n, NULL, 0, &value, 1, n_outs, grads);
  tt_tensor_release(value);
  tt_tensor_release(grads[1]);
  *n_outs = 1;
  outs[0] = grads[0];
  (void)cap;
  return s;
}

static void test_vmap(void** state) {
  Function f = {0};
  tt_tensor* x = make(TT_F64, SHAPE(3, 2), DATA(1, 2, 3, 4, 5, 6));
  tt_tensor *a = numbers(TT_F64, DATA(1, 2)), *outs[1];
  const tt_tensor* in[2];
  const int64_t dims[2] = {0, TT_NOT_BATCHED}, second[1] = {1};
  tt_vmap_opts o = {TT_VMAP_IN_DIMS, dims, 2, NULL, 0, 0};
  int64_t n = 0;
  (void)state;
  in[0] = x;
  in[1] = a;
  OK(tt_vmap(c, cube, &f, count_drop, in, 2, &o, outs, 1, &n));
  VALUES(outs[0], 1, 16, 27, 128, 125, 432);
  assert_int_equal(f.calls, 1);
  OK(tt_vmap(c, grad_of_sample, &f, count_drop, in, 2, &o, outs, 1, &n));
  VALUES(outs[0], 3, 24, 27, 96, 75, 216);
  o.set |= TT_VMAP_OUT_DIMS;
  o.out_dims = second;
  o.n_out_dims = 1;
  OK(tt_vmap(c, cube, &f, count_drop, in, 2, &o, outs, 1, &n));
  HAS_SHAPE(outs[0], 2, 3);
  o.n_in_dims = 1;
  FAILS(tt_vmap(c, cube, &f, count_drop, in, 2, &o, outs, 1, &n), TT_INVALID_ARG, "in_dims");
  assert_int_equal(f.drops, 4);
}

static void test_functions_that_misbehave(void** state) {
  Function f = {0};
  tt_tensor *x = numbers(TT_F64, DATA(1, 2)), *outs[1], *grads[1];
  const tt_tensor* in = x;
  int64_t n = 7;
  (void)state;
  FAILS(tt_vjp(c, cube, &f, count_drop, &in, 1, NULL, 0, outs, 1, &n, grads), TT_SHAPE,
        "one element");
  FAILS(tt_vjp(c, NULL, &f, count_drop, &in, 1, NULL, 0, outs, 1, &n, grads), TT_INVALID_ARG, "fn");
  FAILS(tt_vjp(c, cube, &f, count_drop, &in, 1, &in, -1, outs, 1, &n, grads), TT_INVALID_ARG,
        "cotangents");
  FAILS(tt_vjp(c, cube, &f, count_drop, NULL, 0, NULL, 0, outs, 1, &n, grads), TT_INVALID_ARG,
        "inputs");
  f.fail = TT_IO;
  FAILS(tt_jacobian(c, cube, &f, count_drop, &in, 1, outs, 1, &n), TT_CALLBACK, "the function");
  f.fail = TT_OK;
  f.n_outs = 5000;
  FAILS(tt_jacobian(c, cube, &f, count_drop, &in, 1, outs, 1, &n), TT_CALLBACK, "n_outs");
  f.n_outs = 2; /* the second is NULL */
  FAILS(tt_jacobian(c, cube, &f, count_drop, &in, 1, outs, 1, &n), TT_CALLBACK, "result 1");
  assert_null(outs[0]);
  assert_int_equal(n, 0);
  assert_int_equal(f.drops, 7);
}

static void test_functional_call(void** state) {
  tt_module* m = NULL;
  tt_state_dict* with = NULL;
  tt_tensor* outs[1];
  tt_tensor* x = make(TT_F32, SHAPE(1, 2), DATA(1, 2));
  const tt_tensor* in = x;
  int64_t n = 0;
  (void)state;
  OK(tt_nn_linear(c, 2, 1, NULL, &m));
  OK(tt_state_dict_new(c, &with));
  OK(tt_state_dict_set(c, with, "weight", make(TT_F32, SHAPE(1, 2), DATA(3, 4))));
  OK(tt_state_dict_set(c, with, "bias", numbers(TT_F32, DATA(5))));
  OK(tt_functional_call(c, m, with, &in, 1, outs, 1, &n));
  VALUES(outs[0], 16);
  OK(tt_state_dict_set(c, with, "other", numbers(TT_F32, DATA(5))));
  FAILS(tt_functional_call(c, m, with, &in, 1, outs, 1, &n), TT_INVALID_ARG, "other");
  tt_state_dict_release(with);
  tt_module_release(m);
}

/* ---- checkpoints of activations ---- */

/* tanh(x a) with half of its elements dropped; in a later call, with a further tanh if f fails. */
static tt_status dropped(void* user, tt_ctx* ctx, const tt_tensor* const* in, int64_t n,
                         tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  Function* f = (Function*)user;
  tt_tensor *product = NULL, *y = NULL, *more = NULL;
  tt_status s;
  (void)n;
  (void)cap;
  *n_outs = 1;
  f->calls++;
  s = tt_mul(ctx, in[0], f->captured, &product);
  if (!s) s = tt_tanh(ctx, product, &y);
  if (!s && f->fail && f->calls > 1) s = tt_tanh(ctx, y, &more);
  if (!s) s = tt_dropout(ctx, y, NULL, outs);
  tt_tensor_release(product);
  tt_tensor_release(more);
  tt_tensor_release(y);
  return s;
}
/* The same, called here or by a checkpoint. */
static tt_tensor* dropped_of(Function* f, int with_checkpoint, const tt_tensor* x) {
  tt_tensor *product = NULL, *y = NULL, *out = NULL;
  int64_t n = 1;
  if (with_checkpoint) {
    OK(tt_checkpoint_function(c, dropped, f, count_drop, &x, 1, &out, 1, &n));
    return out;
  }
  OK(tt_mul(c, x, f->captured, &product));
  OK(tt_tanh(c, product, &y));
  OK(tt_dropout(c, y, NULL, &out));
  return out;
}
/* The gradients of the sum in x and the captured tensor. */
static void gradients_of_dropped(Function* f, int with_checkpoint, const tt_tensor* x,
                                 tt_tensor** grads) {
  const tt_tensor *in[2], *total;
  tt_tensor* y;
  OK(tt_manual_seed(c, 7));
  y = dropped_of(f, with_checkpoint, x);
  in[0] = x;
  in[1] = f->captured;
  OK(tt_randn(c, SHAPE(3), NULL, &grads[0])); /* draws between both calls */
  total = sum_of(y);
  OK(tt_grad(c, &total, 1, in, 2, NULL, grads));
}
static void test_checkpoint_has_the_same_gradients(void** state) {
  tt_tensor *x = leaf(DATA(1, 2, -1, 0.5)), *a = leaf(DATA(2, -1, 1, 3)), *want[2], *got[2];
  Function plain = {.captured = a}, f = {.captured = a};
  (void)state;
  gradients_of_dropped(&plain, 0, x, want);
  OK(tt_scope_push(c));
  gradients_of_dropped(&f, 1, x, got);
  for (int i = 0; i < 2; i++) {
    int32_t same = 0;
    OK(tt_equal(c, want[i], got[i], &same));
    assert_true(same);
  }
  assert_int_equal(f.calls, 2);
  OK(tt_scope_pop(c, NULL, 0));
  assert_int_equal(f.drops, 1);
}
/* Second derivatives of x^3 a b, in x and in b, which the function reaches by itself. */
static void test_checkpoint_of_any_order(void** state) {
  tt_tensor *x = leaf(DATA(2)), *b = leaf(DATA(5)), *a = numbers(TT_F64, DATA(3)), *y = NULL;
  const tt_tensor* in[2] = {x, a};
  Function f = {.captured = b};
  int64_t n = 0;
  (void)state;
  OK(tt_scope_push(c));
  OK(tt_checkpoint_function(c, cube, &f, count_drop, in, 2, &y, 1, &n));
  VALUES(y, 120);
  tt_tensor* slope = derive(y, x, 1); /* 3 x^2 a b */
  VALUES(slope, 180);
  VALUES(derive(slope, x, 1), 180); /* 6 x a b */
  VALUES(derive(slope, b, 1), 36);
  OK(tt_scope_pop(c, NULL, 0));
  assert_int_equal(f.drops, 1);
  OK(tt_set_grad_enabled(c, 0, NULL));
  OK(tt_checkpoint_function(c, cube, &f, count_drop, in, 2, &y, 1, &n));
  OK(tt_set_grad_enabled(c, 1, NULL));
  assert_int_equal(f.drops, 2); /* backward cannot need it */
}
static void test_checkpoint_keeps_no_activations(void** state) {
  enum { kMany = 100000 };
  int64_t kept[2];
  (void)state;
  for (int with = 0; with < 2; with++) {
    tt_tensor *x = NULL, *y = NULL;
    Function f = {0};
    int64_t before;
    OK(tt_scope_push(c));
    OK(tt_rand(c, SHAPE(kMany), NULL, &x));
    OK(tt_requires_grad_(c, x, 1));
    f.captured = x;
    before = host.bytes;
    OK(tt_scope_push(c));
    y = dropped_of(&f, with, x);
    OK(tt_scope_pop(c, &y, 1));
    kept[with] = host.bytes - before;
    OK(tt_scope_pop(c, NULL, 0));
  }
  assert_true(kept[0] - kept[1] >= (int64_t)sizeof(float) * kMany); /* the result of tanh */
}
static void test_checkpoints_that_misbehave(void** state) {
  tt_tensor *x = leaf(DATA(1, 2)), *a = leaf(DATA(2, -1)), *y = NULL, *g = NULL;
  const tt_tensor *in = x, *total;
  Function f = {.captured = a, .fail = TT_IO};
  int64_t n = 0;
  (void)state;
  FAILS(tt_checkpoint_function(c, NULL, &f, count_drop, &in, 1, &y, 1, &n), TT_INVALID_ARG, "fn");
  FAILS(tt_checkpoint_function(c, cube, &f, count_drop, &in, 1, &y, 1, &n), TT_CALLBACK, NULL);
  assert_int_equal(f.drops, 2);
  assert_null(y);
  f.calls = 0;
  OK(tt_scope_push(c));
  OK(tt_checkpoint_function(c, dropped, &f, count_drop, &in, 1, &y, 1, &n));
  total = sum_of(y);
  FAILS(tt_grad(c, &total, 1, &in, 1, NULL, &g), TT_CALLBACK, "when it was called again");
  OK(tt_scope_pop(c, NULL, 0));
  assert_int_equal(f.drops, 3);
}

/* ---- checkpoints that keep the results of some operators ---- */

/* Whether the test calls a function itself, in a scope, which owns the tensors of its calls. */
static int in_scope;
static void release_own(tt_tensor* t) {
  if (!in_scope) tt_tensor_release(t);
}
/* dropout(tanh(x w)) w, and the same through linear, plus 1 in place if f->fail. */
static tt_status network(void* user, tt_ctx* ctx, const tt_tensor* const* in, int64_t n,
                         tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  Function* f = user;
  tt_tensor *h = NULL, *a = NULL, *flat = NULL, *shaped = NULL, *d = NULL, *p = NULL;
  tt_status s;
  (void)n;
  (void)cap;
  *n_outs = 1;
  f->calls++;
  s = tt_matmul(ctx, in[0], f->captured, &h);
  if (!s) s = tt_tanh(ctx, h, &a);
  if (!s && f->fail) s = tt_add_f64_(ctx, a, 1);
  if (!s) s = tt_reshape(ctx, a, SHAPE(4), &flat);
  if (!s) s = tt_reshape(ctx, flat, SHAPE(2, 2), &shaped);
  if (!s) s = tt_dropout(ctx, shaped, NULL, &d);
  if (!s) s = tt_linear(ctx, d, f->captured, NULL, &p);
  if (!s) s = tt_dropout(ctx, p, NULL, outs);
  release_own(h);
  release_own(a);
  release_own(flat);
  release_own(shaped);
  release_own(d);
  release_own(p);
  return s;
}
typedef struct Counted {
  int tanh, dropout;
} Counted;
static void count_operators(void* user, const char* op, const char* slot, int32_t depth) {
  Counted* counts = user;
  (void)depth;
  if (strcmp(slot, "cpu") != 0 && strcmp(slot, "cuda") != 0) return;
  counts->tanh += !strcmp(op, "tanh");
  counts->dropout += !strcmp(op, "dropout");
}
/* Gradients of a network whose operators of these names are kept; those that the second call
   computes. names NULL: it is called without a checkpoint. */
static Counted selective_gradients(const char* const* names, int64_t n_names, tt_tensor** grads) {
  tt_tensor* x = param(SHAPE(2, 2), DATA(1, 2, -1, 0.5));
  tt_tensor* w = param(SHAPE(2, 2), DATA(2, -1, 1, 3));
  const tt_tensor *in[2] = {x, w}, *total;
  const tt_op* ops[4] = {0};
  tt_tensor* y = NULL;
  Function f = {.captured = w};
  Counted counts = {0};
  int64_t i, n = 0;
  OK(tt_manual_seed(c, 7));
  if (!names) {
    in_scope = 1;
    OK(network(&f, c, in, 1, &y, 1, &n));
    in_scope = 0;
  } else {
    for (i = 0; i < n_names; i++) OK(tt_op_find(c, names[i], &ops[i]));
    OK(tt_selective_checkpoint_function(c, network, &f, count_drop, in, 1, ops, n_names, &y, 1,
                                        &n));
  }
  OK(tt_randn(c, SHAPE(3), NULL, &grads[0])); /* draws between both calls */
  total = sum_of(y);
  OK(tt_ctx_trace_dispatch(c, count_operators, &counts));
  OK(tt_grad(c, &total, 1, in, 2, NULL, grads));
  OK(tt_ctx_trace_dispatch(c, NULL, NULL));
  assert_int_equal(f.calls, names ? 2 : 1);
  return counts;
}
static void test_selective_checkpoints(void** state) {
  static const struct {
    const char* names[4];
    int64_t n;
    Counted again; /* computed by the second call */
  } kCases[] = {
      {{0}, 0, {1, 2}},
      {{"matmul"}, 1, {1, 2}},
      {{"tanh"}, 1, {0, 2}},
      {{"dropout"}, 1, {1, 0}},
      {{"linear", "tanh"}, 2, {0, 2}},
      {{"reshape"}, 1, {1, 2}}, /* a view is called again */
      {{"linear", "tanh", "dropout", "matmul"}, 4, {0, 0}},
  };
  tt_tensor *want[2], *got[2];
  size_t k;
  int i;
  (void)state;
  selective_gradients(NULL, 0, want);
  for (k = 0; k < sizeof kCases / sizeof *kCases; k++) {
    const Counted found = selective_gradients(kCases[k].names, kCases[k].n, got);
    for (i = 0; i < 2; i++) {
      int32_t same = 0;
      OK(tt_equal(c, want[i], got[i], &same));
      assert_true(same);
    }
    assert_int_equal(found.tanh, kCases[k].again.tanh);
    assert_int_equal(found.dropout, kCases[k].again.dropout);
  }
}
static void test_selective_checkpoints_of_any_order(void** state) {
  tt_tensor *x = leaf(DATA(2)), *b = leaf(DATA(5)), *a = numbers(TT_F64, DATA(3)), *y = NULL;
  const tt_tensor* in[2] = {x, a};
  const tt_op* mul = NULL;
  Function f = {.captured = b};
  int64_t n = 0;
  (void)state;
  OK(tt_op_find(c, "mul", &mul));
  OK(tt_scope_push(c));
  OK(tt_selective_checkpoint_function(c, cube, &f, count_drop, in, 2, &mul, 1, &y, 1, &n));
  VALUES(y, 120);
  tt_tensor* slope = derive(y, x, 1); /* 3 x^2 a b */
  VALUES(slope, 180);
  VALUES(derive(slope, x, 1), 180); /* 6 x a b */
  VALUES(derive(slope, b, 1), 36);
  OK(tt_scope_pop(c, NULL, 0));
  assert_int_equal(f.drops, 1);
}
/* A checkpoint in a checkpoint: the inner one is computed again by both. */
typedef struct Nested {
  Function f;
  const tt_op* op;
} Nested;
static tt_status nested(void* user, tt_ctx* ctx, const tt_tensor* const* in, int64_t n,
                        tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  Nested* own = user;
  tt_tensor *inner = NULL, *squashed = NULL;
  int64_t count = 0;
  tt_status s = tt_tanh(ctx, in[0], &squashed);
  const tt_tensor* given = squashed;
  const int is_direct = in_scope;
  (void)n;
  (void)cap;
  *n_outs = 1;
  in_scope = 0; /* tt calls network */
  if (!s)
    s = tt_selective_checkpoint_function(ctx, network, &own->f, NULL, &given, 1, &own->op, 1,
                                         &inner, 1, &count);
  in_scope = is_direct;
  if (!s) s = tt_tanh(ctx, inner, outs);
  release_own(inner);
  release_own(squashed);
  return s;
}
static void test_selective_checkpoints_in_one_another(void** state) {
  tt_tensor* x = param(SHAPE(2, 2), DATA(1, 2, -1, 0.5));
  tt_tensor* w = param(SHAPE(2, 2), DATA(2, -1, 1, 3));
  const tt_tensor *in[2] = {x, w}, *total;
  tt_tensor *y = NULL, *want[2], *got[2];
  Nested own = {{.captured = w}, NULL};
  int64_t n = 0;
  int32_t same = 0;
  int i;
  (void)state;
  OK(tt_op_find(c, "tanh", &own.op));
  OK(tt_manual_seed(c, 7));
  in_scope = 1;
  OK(nested(&own, c, in, 1, &y, 1, &n));
  in_scope = 0;
  total = sum_of(y);
  OK(tt_grad(c, &total, 1, in, 2, NULL, want));
  OK(tt_manual_seed(c, 7));
  OK(tt_selective_checkpoint_function(c, nested, &own, NULL, in, 1, &own.op, 1, &y, 1, &n));
  total = sum_of(y);
  OK(tt_grad(c, &total, 1, in, 2, NULL, got));
  for (i = 0; i < 2; i++) {
    OK(tt_equal(c, want[i], got[i], &same));
    assert_true(same);
  }
}
/* The operators of a module of the application count, too. */
static tt_status squash(void* user, tt_ctx* ctx, tt_module* m, const tt_tensor* const* in,
                        int64_t n_in, tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)user;
  (void)m;
  (void)n_in;
  (void)cap;
  (void)n_outs;
  return tt_tanh(ctx, in[0], outs);
}
static tt_status call_module(void* user, tt_ctx* ctx, const tt_tensor* const* in, int64_t n,
                             tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)n;
  (void)cap;
  *n_outs = 1;
  return tt_module_call(ctx, (tt_module*)user, in[0], outs);
}
static void test_selective_checkpoints_of_modules(void** state) {
  const tt_module_def def = {sizeof def, "Squash", NULL, squash, NULL, NULL};
  tt_tensor *x = leaf(DATA(1, 2)), *y = NULL, *g = NULL;
  const tt_tensor *in = x, *total;
  const tt_op* op = NULL;
  tt_module *m = NULL, *net = NULL;
  Counted counts = {0};
  int64_t n = 0;
  (void)state;
  OK(tt_module_new_custom(c, &def, &m));
  OK(tt_nn_sequential(c, &net));
  OK(tt_module_append(c, net, m));
  OK(tt_op_find(c, "tanh", &op));
  OK(tt_selective_checkpoint_function(c, call_module, net, NULL, &in, 1, &op, 1, &y, 1, &n));
  total = sum_of(y);
  OK(tt_ctx_trace_dispatch(c, count_operators, &counts));
  OK(tt_grad(c, &total, 1, &in, 1, NULL, &g));
  OK(tt_ctx_trace_dispatch(c, NULL, NULL));
  assert_int_equal(counts.tanh, 0);
  NEAR(g, 1e-12, 0.41997434161402614, 0.07065082485316443);
  tt_module_release(m);
  tt_module_release(net);
}
static void test_selective_checkpoints_that_misbehave(void** state) {
  tt_tensor* x = param(SHAPE(2, 2), DATA(1, 2, -1, 0.5));
  tt_tensor *y = NULL, *g = NULL;
  const tt_tensor *in = x, *total;
  const tt_op* op = NULL;
  Function f = {.captured = param(SHAPE(2, 2), DATA(2, -1, 1, 3)), .fail = 1};
  int64_t n = 0;
  (void)state;
  FAILS(tt_selective_checkpoint_function(c, network, &f, count_drop, &in, 1, &op, 1, &y, 1, &n),
        TT_BAD_HANDLE, "operator");
  FAILS(tt_selective_checkpoint_function(c, network, &f, count_drop, &in, 1, NULL, 1, &y, 1, &n),
        TT_INVALID_ARG, "ops is NULL, its length is 1");
  assert_int_equal(f.drops, 2);
  OK(tt_op_find(c, "tanh", &op));
  OK(tt_scope_push(c));
  OK(tt_selective_checkpoint_function(c, network, &f, count_drop, &in, 1, &op, 1, &y, 1, &n));
  total = sum_of(y);
  FAILS(tt_grad(c, &total, 1, &in, 1, NULL, &g), TT_CALLBACK, NULL);
  assert_non_null(strstr(tt_ctx_error(c)->cause->message, "a result of tanh"));
  OK(tt_scope_pop(c, NULL, 0));
  assert_int_equal(f.drops, 3);

  /* a further tanh in the second call */
  f = (Function){.captured = numbers(TT_F64, DATA(2, -1)), .fail = TT_IO};
  in = leaf(DATA(1, 2));
  OK(tt_scope_push(c));
  OK(tt_selective_checkpoint_function(c, dropped, &f, count_drop, &in, 1, &op, 1, &y, 1, &n));
  total = sum_of(y);
  FAILS(tt_grad(c, &total, 1, &in, 1, NULL, &g), TT_CALLBACK, NULL);
  assert_non_null(strstr(tt_ctx_error(c)->cause->message, "calls tanh"));
  OK(tt_scope_pop(c, NULL, 0));
  assert_int_equal(f.drops, 1);
}

/* ---- hooks on saved tensors ---- */

typedef struct Packing {
  int packed, unpacked, dropped, drops;
  int wrong_shape;
} Packing;
static Packing* counted; /* for drop_packed, which has no user */

static tt_status pack(void* user, tt_ctx* ctx, const tt_tensor* t, void** packed) {
  tt_tensor* copy = NULL;
  const tt_status s = tt_clone(ctx, t, NULL, &copy);
  if (s) return s;
  ((Packing*)user)->packed++;
  *packed = copy;
  return TT_OK;
}
static tt_status unpack(void* user, tt_ctx* ctx, void* packed, tt_tensor** out) {
  Packing* p = (Packing*)user;
  p->unpacked++;
  if (p->wrong_shape) return tt_unsqueeze(ctx, (tt_tensor*)packed, 0, out);
  tt_tensor_retain((tt_tensor*)packed);
  *out = (tt_tensor*)packed;
  return TT_OK;
}
static void drop_packed(void* packed) {
  counted->dropped++;
  tt_tensor_release((tt_tensor*)packed);
}
static void drop_packing(void* user) { ((Packing*)user)->drops++; }

static void test_saved_tensors(void** state) {
  static Packing p; /* lives longer than the graph */
  const double values[] = {0.5, 2};
  tt_saved_tensors_def def = {sizeof def, &p, pack, unpack, drop_packed, drop_packing};
  tt_tensor *x = leaf(values, 2), *y = NULL, *z = NULL, *g = NULL;
  (void)state;
  counted = &p;
  FAILS(tt_saved_tensors_pop(c), TT_INVALID_ARG, NULL);
  OK(tt_saved_tensors_push(c, &def));
  OK(tt_mul(c, x, x, &y));
  OK(tt_mul(c, y, x, &z));
  OK(tt_saved_tensors_pop(c));
  assert_int_equal(p.packed, 4);
  g = derive(z, x, 1);
  VALUES(g, 0.75, 12);
  VALUES(derive(g, x, 0), 3, 12);
  p.wrong_shape = 1;
  FAILS(tt_grad(c, (const tt_tensor*[]){sum_of(z)}, 1, (const tt_tensor*[]){x}, 1, NULL, &g),
        TT_CALLBACK, "unpack hook");
  assert_true(p.unpacked > 4);
}

/* ---- autocast ---- */

static void test_autocast(void** state) {
  tt_tensor *a = make(TT_F32, SHAPE(1, 2), DATA(1, 2)), *b = make(TT_F32, SHAPE(2, 1), DATA(3, 4));
  tt_tensor *y = NULL, *loss = NULL;
  const int32_t device = is_at_cpu() ? TT_CPU : TT_CUDA;
  const tt_dtype usual = is_at_cpu() ? TT_BF16 : TT_F16;
  const tt_dtype other = is_at_cpu() ? TT_F16 : TT_BF16;
  (void)state;
  FAILS(tt_autocast_pop(c), TT_INVALID_ARG, NULL);
  FAILS(tt_autocast_push(c, TT_META, 1, 0, 1), TT_INVALID_ARG, "type");
  FAILS(tt_autocast_push(c, device, 1, TT_I32, 1), TT_DTYPE, "dtype");
  OK(tt_autocast_push(c, device, 1, 0, 1));
  assert_int_equal(tt_autocast_dtype(c, device), usual);
  OK(tt_matmul(c, a, b, &y));
  assert_int_equal(tt_tensor_dtype(y), usual);
  OK(tt_mse_loss(c, y, y, NULL, &loss));
  assert_int_equal(tt_tensor_dtype(loss), TT_F32);
  OK(tt_autocast_push(c, device, 0, 0, 1));
  assert_int_equal(tt_autocast_enabled(c, device), 0);
  OK(tt_matmul(c, a, b, &y));
  assert_int_equal(tt_tensor_dtype(y), TT_F32);
  OK(tt_autocast_pop(c));
  OK(tt_autocast_push(c, device, 1, other, 1));
  OK(tt_matmul(c, a, b, &y));
  assert_int_equal(tt_tensor_dtype(y), other);
  OK(tt_autocast_pop(c));
  OK(tt_autocast_pop(c));
  assert_int_equal(tt_autocast_enabled(c, device), 0);
}

/* The cast of a weight is made once for two uses, and again when the weight or the grad mode has
   changed, or backward has run through it. */
static void test_casts_of_weights(void** state) {
  tt_tensor *x = make(TT_F32, SHAPE(1, 1), DATA(2)), *w32 = NULL, *y = NULL;
  int32_t before = 0;
  int k;
  (void)state;
  w32 = make(TT_F32, SHAPE(1, 1), DATA(3));
  OK(tt_requires_grad_(c, w32, 1));
  OK(tt_autocast_push(c, is_at_cpu() ? TT_CPU : TT_CUDA, 1, 0, 1));
  OK(tt_set_grad_enabled(c, 0, &before));
  OK(tt_matmul(c, x, w32, &y));
  OK(tt_set_grad_enabled(c, 1, &before));
  for (k = 0; k < 2; k++) {
    OK(tt_matmul(c, x, w32, &y));
    assert_int_equal(tt_tensor_requires_grad(y), 1);
    OK(tt_backward(c, y, NULL));
  }
  VALUES(grad_of(w32), 4);
  OK(tt_set_grad_enabled(c, 0, &before));
  OK(tt_mul_f64_(c, w32, 2));
  OK(tt_set_grad_enabled(c, 1, &before));
  OK(tt_matmul(c, x, w32, &y));
  VALUES(y, 12);
  OK(tt_autocast_pop(c));
}

static void test_unscale(void** state) {
  const double values[] = {1, 2};
  tt_tensor *x = leaf(values, 2), *other = leaf(values, 2);
  tt_tensor* params[2];
  int32_t found = 7;
  (void)state;
  params[0] = x;
  params[1] = other;
  OK(tt_unscale_grads_(c, params, 2, 0.5, &found));
  assert_int_equal(found, 0);
  OK(tt_tensor_set_grad(c, x, numbers(TT_F64, DATA(4, -8))));
  OK(tt_unscale_grads_(c, params, 2, 0.5, &found));
  assert_int_equal(found, 0);
  VALUES(grad_of(x), 2, -4);
  OK(tt_tensor_set_grad(c, other, numbers(TT_F64, DATA(1, 1.0 / 0.0))));
  OK(tt_unscale_grads_(c, params, 2, 0.5, &found));
  assert_int_equal(found, 1);
}

/* Scales, skipped steps and growth as PyTorch 2.15's GradScaler. */
static void test_grad_scaler(void** state) {
  const double values[] = {1, 2};
  const tt_grad_scaler_new_opts opts = {
      .set = TT_GRAD_SCALER_NEW_INIT_SCALE | TT_GRAD_SCALER_NEW_GROWTH_INTERVAL,
      .init_scale = 8,
      .growth_interval = 2};
  const double scales[] = {8, 16, 8, 8, 16};
  const tt_optim_sgd_opts sgd = {.set = TT_OPTIM_SGD_LR, .lr = 0.5};
  tt_tensor *x = leaf(values, 2), *loss;
  tt_optimizer* opt;
  tt_grad_scaler* s;
  double kept[5];
  int32_t took;
  int k;
  (void)state;
  OK(tt_optim_sgd(c, &x, 1, &sgd, &opt));
  OK(tt_grad_scaler_new(c, &opts, &s));
  FAILS(tt_grad_scaler_update(c, s, 0), TT_INVALID_ARG, "no gradients");
  for (k = 0; k < 5; k++) {
    OK(tt_optim_zero_grad(c, opt, 1));
    OK(tt_sum(c, x, NULL, &loss));
    OK(tt_grad_scaler_scale(c, s, loss, &loss));
    OK(tt_backward(c, loss, NULL));
    if (k == 2) OK(tt_tensor_set_grad(c, x, numbers(TT_F64, DATA(1, 1.0 / 0.0))));
    if (k == 3) {
      OK(tt_grad_scaler_unscale(c, s, opt));
      VALUES(grad_of(x), 1, 1);
      FAILS(tt_grad_scaler_unscale(c, s, opt), TT_INVALID_ARG, "unscaled");
    }
    OK(tt_grad_scaler_step(c, s, opt, &took));
    assert_int_equal(took, k != 2);
    FAILS(tt_grad_scaler_step(c, s, opt, &took), TT_INVALID_ARG, "its step");
    OK(tt_grad_scaler_update(c, s, 0));
    assert_true(tt_grad_scaler_get_scale(s) == scales[k]);
  }
  VALUES(x, -1, 0);
  OK(tt_grad_scaler_state(c, s, kept));
  assert_true(kept[0] == 16 && kept[1] == 2 && kept[2] == 0.5 && kept[3] == 2 && kept[4] == 0);
  OK(tt_grad_scaler_update(c, s, 4));
  OK(tt_grad_scaler_set_state(c, s, kept));
  for (int k = 3; k < 5; k++) {
    double bad[5];
    memcpy(bad, kept, sizeof bad);
    bad[k] = 0.0 / 0.0;
    FAILS(tt_grad_scaler_set_state(c, s, bad), TT_INVALID_ARG, "state has nan steps");
  }
  assert_true(tt_grad_scaler_get_scale(s) == 16);
  tt_grad_scaler_release(s);
  tt_optim_release(opt);
}

/* Whatever allocation fails, nothing leaks and the modes are as before. */
static void test_out_of_memory(void** state) {
  int k;
  (void)state;
  for (k = 1;; k++) {
    Function f = {0};
    static Packing p;
    tt_saved_tensors_def def = {sizeof def, &p, pack, unpack, drop_packed, drop_packing};
    const tt_tensor* in = make(TT_F64, SHAPE(3, 2), DATA(1, 2, 3, 4, 5, 6));
    const tt_tensor* x = leaf(DATA(1, 2));
    tt_tensor *outs[1] = {NULL}, *y = NULL;
    int64_t n = 0;
    tt_status s;
    counted = &p;
    host.fail_at = host.calls + k;
    host.fail_n = 1;
    s = tt_vmap(c, grad_of_sample, &f, count_drop, &in, 1, NULL, outs, 1, &n);
    if (!s) s = tt_hessian(c, cube_sum, &f, count_drop, &in, 1, outs, 1, &n);
    if (!s && (s = tt_saved_tensors_push(c, &def)) == TT_OK) {
      s = tt_mul(c, in, in, &y);
      OK(tt_saved_tensors_pop(c));
    }
    if (!s) s = tt_checkpoint_function(c, cube_sum, &f, count_drop, &x, 1, outs, 1, &n);
    if (!s) s = tt_grad(c, (const tt_tensor* const*)outs, 1, &x, 1, NULL, &y);
    if (!s && (s = tt_autocast_push(c, TT_CPU, 1, 0, 1)) == TT_OK) OK(tt_autocast_pop(c));
    if (!s && (s = tt_dual_level_push(c)) == TT_OK) {
      s = tt_make_dual(c, in, in, &y);
      if (!s) s = tt_mul(c, y, y, &y);
      OK(tt_dual_level_pop(c));
    }
    host.fail_at = 0;
    FAILS(tt_autocast_pop(c), TT_INVALID_ARG, NULL); /* none is left */
    if (!s) break;
    assert_int_equal(s, f.calls && s == TT_CALLBACK ? TT_CALLBACK : TT_OOM);
    assert_true(k < 3000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_products),
      SCOPED(test_matrices),
      SCOPED(test_dual_tensors),
      SCOPED(test_what_is_recorded),
      SCOPED(test_vmap),
      SCOPED(test_functional_call),
      SCOPED(test_functions_that_misbehave),
      SCOPED(test_saved_tensors),
      SCOPED(test_checkpoint_has_the_same_gradients),
      SCOPED(test_checkpoint_of_any_order),
      SCOPED(test_checkpoint_keeps_no_activations),
      SCOPED(test_checkpoints_that_misbehave),
      SCOPED(test_selective_checkpoints),
      SCOPED(test_selective_checkpoints_of_any_order),
      SCOPED(test_selective_checkpoints_in_one_another),
      SCOPED(test_selective_checkpoints_of_modules),
      SCOPED(test_selective_checkpoints_that_misbehave),
      SCOPED(test_autocast),
      SCOPED(test_casts_of_weights),
      SCOPED(test_unscale),
      SCOPED(test_grad_scaler),
      SCOPED(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
