/* Autograd through the C API: accumulation, lifetimes of graphs, in-place writes, refusals. */
#include "expressions.h"

#include <math.h>

static void backward(const tt_tensor* y) { OK(tt_backward(c, sum_of(y), NULL)); }

/* ---- accumulation ---- */

static void test_gradients_accumulate(void** state) {
  tt_tensor *x = leaf(DATA(1, 2, 3)), *none;
  (void)state;
  OK(tt_tensor_grad(c, x, &none));
  assert_null(none);
  backward(mul(x, x));
  VALUES(grad_of(x), 2, 4, 6);
  backward(times(x, 10));
  VALUES(grad_of(x), 12, 14, 16);
  OK(tt_tensor_set_grad(c, x, NULL));
  backward(times(x, 10));
  VALUES(grad_of(x), 10, 10, 10);
}

static void test_one_input_many_uses(void** state) {
  tt_tensor* x = leaf(DATA(3));
  (void)state;
  backward(add(mul(x, x), mul(x, mul(x, x)))); /* x^2 + x^3 */
  VALUES(grad_of(x), 6 + 27);
}

static void test_gradient_does_not_alias_its_source(void** state) {
  tt_tensor* a = leaf(DATA(1, 2));
  tt_tensor* b = leaf(DATA(3, 4));
  tt_tensor* g = numbers(TT_F64, DATA(1, 1));
  const tt_backward_opts opts = {.set = TT_BACKWARD_GRADIENT, .gradient = g};
  (void)state;
  OK(tt_backward(c, add(a, b), &opts)); /* both gradients are the tensor g itself */
  OK(tt_mul_f64_(c, grad_of(a), 100));
  VALUES(grad_of(b), 1, 1);
  VALUES(g, 1, 1);
}

static void test_broadcast_sums(void** state) {
  tt_tensor* row = param(SHAPE(1, 3), DATA(1, 2, 3));
  tt_tensor* col = param(SHAPE(2, 1), DATA(10, 20));
  tt_tensor* s = param(NULL, 0, DATA(2));
  (void)state;
  backward(mul(mul(row, col), s));
  VALUES(grad_of(row), 60, 60, 60);
  VALUES(grad_of(col), 12, 12);
  VALUES(grad_of(s), 6 * 30);
  assert_int_equal(tt_tensor_ndim(grad_of(s)), 0);
  HAS_SHAPE(grad_of(col), 2, 1);
}

static void test_mixed_dtypes(void** state) {
  tt_tensor* a = numbers(TT_F32, DATA(1, 2));
  tt_tensor* b = leaf(DATA(3, 4));
  tt_tensor* k = numbers(TT_I32, DATA(5, 6));
  (void)state;
  OK(tt_requires_grad_(c, a, 1));
  backward(mul(mul(a, b), k));
  VALUES(grad_of(a), 15, 24);
  assert_int_equal(tt_tensor_dtype(grad_of(a)), TT_F32);
  VALUES(grad_of(b), 5, 12);
}

static void test_backward_inputs_only(void** state) {
  tt_tensor* a = leaf(DATA(1));
  tt_tensor* b = leaf(DATA(2));
  tt_tensor* none;
  const tt_tensor* inputs[] = {a};
  const tt_backward_opts opts = {.set = TT_BACKWARD_INPUTS, .inputs = inputs, .n_inputs = 1};
  (void)state;
  OK(tt_backward(c, mul(a, b), &opts));
  VALUES(grad_of(a), 2);
  OK(tt_tensor_grad(c, b, &none));
  assert_null(none);
}

static void test_backward_needs_a_scalar_or_a_gradient(void** state) {
  tt_tensor* x = leaf(DATA(1, 2));
  tt_tensor* y = times(x, 2);
  tt_backward_opts opts = {.set = TT_BACKWARD_GRADIENT, .gradient = number(TT_F64, 1)};
  (void)state;
  FAILS(tt_backward(c, y, NULL), TT_AUTOGRAD, "[2]");
  FAILS(tt_backward(c, y, &opts), TT_SHAPE, "[2]");
  const tt_tensor* constant = numbers(TT_F64, DATA(1));
  FAILS(tt_backward(c, constant, NULL), TT_AUTOGRAD, "backward: ");
  FAILS(tt_backward_all(c, &constant, NULL, 1, NULL), TT_AUTOGRAD, "backward: ");
  FAILS(tt_backward(c, constant, NULL), TT_AUTOGRAD, "does not require a gradient");
  opts.set = UINT64_C(1) << 40;
  FAILS(tt_backward(c, y, &opts), TT_UNSUPPORTED_OPTION, "40");
  opts.set = TT_BACKWARD_GRADIENT;
  opts.gradient = numbers(TT_F64, DATA(1, 10));
  OK(tt_backward(c, y, &opts));
  VALUES(grad_of(x), 2, 20);
}

/* ---- retain_graph, create_graph ---- */

static void test_graph_is_freed(void** state) {
  tt_tensor* x = leaf(DATA(2));
  tt_tensor* y = mul(x, x);
  tt_backward_opts keep = {.set = TT_BACKWARD_RETAIN_GRAPH, .retain_graph = 1};
  (void)state;
  OK(tt_backward(c, y, &keep));
  OK(tt_backward(c, y, NULL));
  VALUES(grad_of(x), 8);
  FAILS(tt_backward(c, y, NULL), TT_AUTOGRAD, "mul");
  FAILS(tt_backward(c, y, NULL), TT_AUTOGRAD, "retain_graph");
  VALUES(grad_of(x), 8);
}

/* A saved tensor is written in place with a value computed from its own node. A cycle of
   references would be found when the ctx closes. */
static void test_no_graph_owns_itself(void** state) {
  tt_tensor* w = leaf(DATA(2, 3));
  tt_tensor* data = numbers(TT_F64, DATA(5, 7));
  tt_tensor* inner = times(w, 2);
  tt_tensor* e;
  tt_tensor* view;
  (void)state;
  OK(tt_add_(c, data, mul(data, w)));   /* saved: an input without gradient */
  OK(tt_add_(c, inner, mul(inner, w))); /* an inner result */
  OK(tt_exp(c, w, &e));
  OK(tt_mul_(
      c, e,
      mul(e, w))); /* the node's own output, and an input that the in-place form saves itself */
  OK(tt_unsqueeze(c, times(w, 3), 0, &view));
  OK(tt_mul_(c, view, mul(view, w))); /* a view */
  OK(tt_exp_(c, data));
  OK(tt_mul_(c, data, data));
  FAILS(tt_backward(c, sum_of(inner), NULL), TT_AUTOGRAD, "written in place");
}

static void test_grad_does_not_touch_leaves(void** state) {
  tt_tensor *x = leaf(DATA(2, 3)), *none;
  (void)state;
  VALUES(derive(mul(x, x), x, 0), 4, 6);
  OK(tt_tensor_grad(c, x, &none));
  assert_null(none);
}

static void test_third_derivative(void** state) {
  tt_tensor* x = leaf(DATA(2, -1));
  tt_tensor* y = mul(mul(x, x), mul(x, x));
  tt_tensor* d1;
  tt_tensor* d2;
  tt_tensor* d3; /* x^4 */
  (void)state;
  d1 = derive(y, x, 1);
  VALUES(d1, 32, -4);
  assert_int_equal(tt_tensor_requires_grad(d1), 1);
  d2 = derive(d1, x, 1);
  VALUES(d2, 48, 12);
  d3 = derive(d2, x, 1);
  VALUES(d3, 48, -24);
  VALUES(derive(d3, x, 0), 24, 24);
}

static void test_backward_create_graph(void** state) {
  tt_tensor *x = leaf(DATA(3)), *g;
  const tt_backward_opts opts = {.set = TT_BACKWARD_CREATE_GRAPH, .create_graph = 1};
  (void)state;
  OK(tt_backward(c, mul(x, mul(x, x)), &opts));
  g = grad_of(x);
  VALUES(g, 27);
  VALUES(derive(g, x, 0), 18);
  OK(tt_tensor_set_grad(c, x, NULL)); /* breaks the cycle leaf -> grad -> graph -> leaf */
}

static void test_grad_of_non_leaf(void** state) {
  tt_tensor* x = leaf(DATA(2));
  tt_tensor* h = mul(x, x);
  tt_tensor* y = mul(h, times(h, 3));
  tt_tensor* gs[2];
  (void)state;
  OK(tt_grad(c, LIST(y), LIST(h, x), NULL, gs));
  VALUES(gs[0], 24);
  VALUES(gs[1], 96);
}

static void test_grad_several_outputs(void** state) {
  tt_tensor* x = leaf(DATA(1, 2));
  tt_tensor* a = times(x, 3);
  tt_tensor* b = mul(x, x);
  tt_tensor* g = numbers(TT_F64, DATA(1, 10));
  tt_tensor* out;
  const tt_tensor* weights[] = {g, g};
  const tt_grad_opts opts = {
      .set = TT_GRAD_GRAD_OUTPUTS, .grad_outputs = weights, .n_grad_outputs = 2};
  (void)state;
  OK(tt_grad(c, LIST(a, b), LIST(x), &opts, &out));
  VALUES(out, 3 + 2, 30 + 40);
}

static void test_unused_inputs(void** state) {
  tt_tensor* x = leaf(DATA(1));
  tt_tensor* unused = leaf(DATA(1));
  tt_tensor* gs[2];
  const tt_grad_opts allow = {.set = TT_GRAD_ALLOW_UNUSED, .allow_unused = 1};
  (void)state;
  FAILS(tt_grad(c, LIST(times(x, 2)), LIST(x, unused), NULL, gs), TT_AUTOGRAD, "not used");
  assert_null(gs[0]);
  assert_null(gs[1]);
  OK(tt_grad(c, LIST(times(x, 2)), LIST(x, unused), &allow, gs));
  VALUES(gs[0], 2);
  assert_null(gs[1]);
}

static void test_output_is_input(void** state) {
  tt_tensor *x = leaf(DATA(5)), *g;
  (void)state;
  OK(tt_grad(c, LIST(x), LIST(x), NULL, &g));
  VALUES(g, 1);
  OK(tt_backward(c, x, NULL));
  VALUES(grad_of(x), 1);
}

/* ---- grad mode, leaves ---- */

static void test_no_grad(void** state) {
  tt_tensor *x = leaf(DATA(1)), *y;
  int32_t before = -1;
  (void)state;
  OK(tt_set_grad_enabled(c, 0, &before));
  assert_int_equal(before, 1);
  assert_int_equal(tt_grad_enabled(c), 0);
  y = mul(x, x);
  OK(tt_mul_f64_(c, x, 4)); /* as optimizers write */
  OK(tt_set_grad_enabled(c, 1, NULL));
  assert_int_equal(tt_tensor_requires_grad(y), 0);
  VALUES(x, 4);
  assert_int_equal(tt_tensor_requires_grad(x), 1);
  FAILS(tt_backward(c, y, NULL), TT_AUTOGRAD, NULL);
}

static void test_leaves(void** state) {
  tt_tensor* x = leaf(DATA(1));
  tt_tensor* y = times(x, 2);
  tt_tensor* i = numbers(TT_I64, DATA(1));
  tt_tensor* d;
  (void)state;
  assert_int_equal(tt_tensor_is_leaf(x), 1);
  assert_int_equal(tt_tensor_is_leaf(y), 0);
  FAILS(tt_requires_grad_(c, i, 1), TT_DTYPE, "int64");
  FAILS(tt_requires_grad_(c, y, 0), TT_AUTOGRAD, "mul");
  OK(tt_detach(c, y, &d));
  assert_int_equal(tt_tensor_requires_grad(d), 0);
  assert_int_equal(tt_tensor_is_leaf(d), 1);
  assert_ptr_equal(tt_tensor_data(d), tt_tensor_data(y));
  OK(tt_requires_grad_(c, x, 0));
  assert_int_equal(tt_tensor_requires_grad(times(x, 2)), 0);
}

static void test_retain_grad(void** state) {
  tt_tensor* x = leaf(DATA(2));
  tt_tensor* h = mul(x, x);
  tt_tensor* y = mul(h, h);
  tt_tensor* none;
  (void)state;
  OK(tt_retain_grad(c, h));
  OK(tt_backward(c, y, NULL));
  VALUES(grad_of(h), 8);
  VALUES(grad_of(x), 32);
  OK(tt_tensor_grad(c, y, &none));
  assert_null(none);
}

/* ---- in place ---- */

static void test_in_place_on_leaf_is_refused(void** state) {
  tt_tensor* x = leaf(DATA(1, 2));
  tt_tensor* v = pick(x, 0);
  (void)state;
  FAILS(tt_mul_f64_(c, x, 2), TT_AUTOGRAD, "leaf");
  FAILS(tt_zero_(c, v), TT_AUTOGRAD, "leaf");
  VALUES(x, 1, 2);
  assert_int_equal(tt_tensor_version(x), 0);
}

static void test_in_place_chain(void** state) {
  tt_tensor* x = leaf(DATA(3));
  tt_tensor* y = times(x, 2);
  (void)state;
  OK(tt_mul_f64_(c, y, 5));
  OK(tt_add_(c, y, x)); /* 11 x */
  assert_int_equal(tt_tensor_version(y), 2);
  backward(y);
  VALUES(grad_of(x), 11);
}

static void test_in_place_makes_a_leaf_of_none(void** state) {
  tt_tensor* x = leaf(DATA(3));
  tt_tensor* buf = numbers(TT_F64, DATA(10));
  (void)state;
  OK(tt_mul_(c, buf, x));
  assert_int_equal(tt_tensor_requires_grad(buf), 1);
  backward(buf);
  VALUES(grad_of(x), 10);
}

static void test_stale_saved_tensor(void** state) {
  tt_tensor* x = leaf(DATA(1, 2, 3));
  tt_tensor* h = times(x, 2);
  tt_tensor* y = mul(h, h);
  tt_tensor* g;
  (void)state;
  OK(tt_add_f64_(c, h, 1));
  FAILS(tt_grad(c, LIST(sum_of(y)), LIST(x), NULL, &g), TT_AUTOGRAD,
        "mul saved a tensor of shape [3]");
  assert_non_null(strstr(tt_ctx_error(c)->message, "version 1"));
  assert_non_null(strstr(tt_ctx_error(c)->message, "version 0"));
  assert_null(g);
}

static void test_output_overwritten(void** state) {
  tt_tensor *x = leaf(DATA(0.5)), *y, *g;
  (void)state;
  OK(tt_exp(c, x, &y)); /* its formula reads the result */
  OK(tt_mul_f64_(c, y, 3));
  FAILS(tt_grad(c, LIST(y), LIST(x), NULL, &g), TT_AUTOGRAD, "exp");
}

static void test_in_place_reading_result(void** state) {
  tt_tensor* x = leaf(DATA(0.5, -1));
  tt_tensor* y = times(x, 1);
  tt_tensor* d;
  (void)state;
  OK(tt_exp_(c, y));
  d = derive(y, x, 1);
  NEAR(d, 1e-15, exp(0.5), exp(-1));
  NEAR(derive(d, x, 0), 1e-15, exp(0.5), exp(-1));
}

static void test_buffer_element_assigned(void** state) {
  tt_tensor *x = leaf(DATA(2, 3)), *buf, *first, *d;
  const int64_t shape[] = {2, 2};
  (void)state;
  OK(tt_zeros(c, shape, 2, &(tt_zeros_opts){.set = TT_ZEROS_DTYPE, .dtype = TT_F64}, &buf));
  first = pick(buf, 0);
  OK(tt_copy_(c, first, mul(x, x))); /* buf[0] = x * x */
  assert_int_equal(tt_tensor_requires_grad(buf), 1);
  VALUES(buf, 4, 9, 0, 0);
  d = derive(first, x, 1); /* the view itself has this history, too */
  VALUES(d, 4, 6);
  backward(mul(buf, buf)); /* x^4 */
  VALUES(grad_of(x), 32, 108);
}

static void test_in_place_on_view_cuts_old_value(void** state) {
  tt_tensor* x = leaf(DATA(1, 2, 3, 4));
  tt_tensor* y = times(x, 2);
  tt_tensor* part;
  const tt_slice_opts opts = {.set = TT_SLICE_START | TT_SLICE_END, .start = 1, .end = 3};
  (void)state;
  OK(tt_slice(c, y, 0, &opts, &part));
  OK(tt_mul_f64_(c, part, 10));
  VALUES(y, 2, 40, 60, 8);
  backward(y);
  VALUES(grad_of(x), 2, 20, 20, 2);
}

static void test_overwritten_part_has_no_gradient(void** state) {
  tt_tensor* x = leaf(DATA(1, 2));
  tt_tensor* y = times(x, 2);
  (void)state;
  OK(tt_zero_(c, pick(y, 0)));
  backward(y);
  VALUES(grad_of(x), 0, 2);
}

static void test_view_of_changed_base(void** state) {
  tt_tensor* x = leaf(DATA(1, 2));
  tt_tensor* y = times(x, 2);
  tt_tensor* v = pick(y, 1);
  (void)state;
  OK(tt_mul_f64_(c, y, 7)); /* v is stale: its history now leads through the new y */
  VALUES(v, 28);
  backward(v);
  VALUES(grad_of(x), 0, 14);
}

static void test_views_of_views(void** state) {
  tt_tensor* x = param(SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6));
  tt_tensor* y = times(x, 1);
  tt_tensor* t;
  tt_tensor* row;
  tt_tensor* copy;
  tt_tensor* d;
  (void)state;
  OK(tt_t(c, y, &t));
  row = pick(t, 2); /* column 2 of y */
  OK(tt_clone(c, row, NULL, &copy));
  OK(tt_mul_(c, row, copy));
  VALUES(y, 1, 2, 9, 4, 5, 36);
  d = derive(y, x, 1);
  VALUES(d, 1, 1, 6, 1, 1, 12);
  VALUES(derive(d, x, 0), 0, 0, 2, 0, 0, 2);
}

/* What an in-place operator saves of the tensor that it overwrites is stale at once; the graph
   must not own itself through it. */
static void test_in_place_with_itself(void** state) {
  tt_tensor* x = leaf(DATA(1, 2));
  tt_tensor* y = times(x, 2);
  tt_tensor* z = times(x, 2);
  tt_tensor* other;
  tt_tensor* g;
  (void)state;
  OK(tt_view(c, z, SHAPE(2), &other));
  OK(tt_mul_(c, y, y));
  VALUES(y, 4, 16);
  FAILS(tt_grad(c, LIST(sum_of(y)), LIST(x), NULL, &g), TT_AUTOGRAD, "version 1");
  OK(tt_mul_(c, z, other));
  FAILS(tt_grad(c, LIST(sum_of(z)), LIST(x), NULL, &g), TT_AUTOGRAD, "version 1");
}

static void test_view_made_without_grad(void** state) {
  tt_tensor* x = leaf(DATA(1, 2));
  tt_tensor* y = times(x, 2);
  tt_tensor* v;
  (void)state;
  OK(tt_set_grad_enabled(c, 0, NULL));
  v = pick(y, 0);
  OK(tt_set_grad_enabled(c, 1, NULL));
  assert_int_equal(tt_tensor_requires_grad(v), 0);
  OK(tt_set_grad_enabled(c, 0, NULL));
  OK(tt_mul_f64_(c, v, 3)); /* unrecorded write: only its version is seen */
  OK(tt_set_grad_enabled(c, 1, NULL));
  VALUES(y, 6, 4);
  assert_int_equal(tt_tensor_version(y), 1);
}

/* Parameters inside one flat buffer: leaves, though views. */
static void test_leaves_in_a_buffer(void** state) {
  tt_tensor* buf = numbers(TT_F64, DATA(1, 2, 3));
  tt_tensor* p = pick(buf, 1);
  tt_tensor* y;
  (void)state;
  OK(tt_requires_grad_(c, p, 1));
  FAILS(tt_mul_f64_(c, p, 2), TT_AUTOGRAD, "leaf");
  OK(tt_set_grad_enabled(c, 0, NULL));
  OK(tt_mul_f64_(c, buf, 10)); /* the optimizer */
  OK(tt_set_grad_enabled(c, 1, NULL));
  assert_int_equal(tt_tensor_requires_grad(p), 1);
  assert_int_equal(tt_tensor_is_leaf(p), 1);
  y = mul(p, p);
  OK(tt_backward(c, y, NULL));
  VALUES(grad_of(p), 40);
}

/* A leaf over another tensor's memory: its views are views of a leaf, and writes to the memory
   do not change a history. */
static void test_leaf_over_a_part(void** state) {
  tt_tensor *buf = numbers(TT_F64, DATA(1, 2, 3, 4)), *p, *v, *w;
  (void)state;
  OK(tt_view(c, buf, SHAPE(2, 2), &p));
  OK(tt_requires_grad_(c, p, 1));
  OK(tt_select(c, p, 0, 1, &v));
  FAILS(tt_mul_f64_(c, v, 2), TT_AUTOGRAD, "a view of a leaf");
  OK(tt_set_grad_enabled(c, 0, NULL));
  OK(tt_mul_f64_(c, buf, 10));
  OK(tt_mul_f64_(c, v, 2));
  OK(tt_set_grad_enabled(c, 1, NULL));
  assert_int_equal(tt_tensor_requires_grad(v), 1);
  backward(mul(v, v));
  VALUES(grad_of(p), 0, 0, 120, 160);
  OK(tt_tensor_set_data(c, p, numbers(TT_F64, DATA(5, 6))));
  VALUES(buf, 10, 20, 60, 80);
  w = leaf(DATA(3));
  OK(tt_view(c, buf, SHAPE(2, 2), &v));
  OK(tt_mul_(c, buf, w)); /* v has a history then: it is no leaf */
  OK(tt_requires_grad_(c, v, 1));
  backward(v);
  VALUES(grad_of(w), 170);
}

/* The result of detach shares values, not history. */
static void test_detached_is_written_freely(void** state) {
  tt_tensor* x = leaf(DATA(1, 2));
  tt_tensor* d;
  tt_tensor* y = times(x, 3);
  tt_tensor* e;
  (void)state;
  OK(tt_detach(c, x, &d));
  OK(tt_mul_f64_(c, d, 5)); /* no error, no record */
  VALUES(x, 5, 10);
  assert_int_equal(tt_tensor_requires_grad(d), 0);
  OK(tt_detach(c, y, &e));
  OK(tt_mul_(c, e, x)); /* e gets a history of its own, y keeps its own */
  assert_int_equal(tt_tensor_requires_grad(e), 1);
  backward(y);
  VALUES(grad_of(x), 3, 3);
}

static void test_results_partly_used(void** state) {
  tt_tensor *x = leaf(DATA(1, 2, 3, 4)), *parts[2], *m, *i, *sq;
  int64_t n;
  (void)state;
  OK(tt_split(c, x, 2, NULL, parts, 2, &n));
  backward(mul(parts[1], parts[1]));
  VALUES(grad_of(x), 0, 0, 6, 8);
  OK(tt_tensor_set_grad(c, x, NULL));
  OK(tt_view(c, x, SHAPE(2, 2), &sq));
  OK(tt_max_dim(c, sq, 1, NULL, &m, &i));
  assert_int_equal(tt_tensor_requires_grad(i), 0);
  backward(m);
  VALUES(grad_of(x), 0, 1, 0, 1);
}

/* A tensor whose history is another one when backward runs than when it was recorded. */
static void test_retain_grad_follows_in_place(void** state) {
  tt_tensor* x = leaf(DATA(2));
  tt_tensor* y = times(x, 3);
  (void)state;
  OK(tt_retain_grad(c, y));
  OK(tt_mul_f64_(c, y, 5));
  backward(times(y, 7));
  VALUES(grad_of(x), 105);
  VALUES(grad_of(y), 7); /* of y as it is now */
}

static void test_into_is_not_recorded(void** state) {
  tt_tensor* x = leaf(DATA(1));
  tt_tensor* dst = numbers(TT_F64, DATA(0));
  (void)state;
  FAILS(tt_mul_into(c, x, x, dst), TT_AUTOGRAD, "dst");
  VALUES(dst, 0);
  OK(tt_set_grad_enabled(c, 0, NULL));
  OK(tt_mul_into(c, x, x, dst));
  OK(tt_set_grad_enabled(c, 1, NULL));
  VALUES(dst, 1);
  assert_int_equal(tt_tensor_version(dst), 1);
}

static void test_set_data(void** state) {
  tt_tensor* x = leaf(DATA(1, 2));
  tt_tensor* y = times(x, 2);
  tt_tensor* other = numbers(TT_F64, DATA(5, 6, 7));
  (void)state;
  OK(tt_tensor_set_data(c, x, other));
  HAS_SHAPE(x, 3);
  assert_int_equal(tt_tensor_requires_grad(x), 1);
  FAILS(tt_tensor_set_data(c, y, other), TT_AUTOGRAD, "leaf");
  FAILS(tt_tensor_set_data(c, x, numbers(TT_I32, DATA(1))), TT_DTYPE, "int32");
  backward(mul(x, x));
  VALUES(grad_of(x), 10, 12, 14);
}

static void test_set_data_of_a_view(void** state) {
  tt_tensor *x, *v, *other = numbers(TT_F64, DATA(5, 6, 7));
  (void)state;
  x = numbers(TT_F64, DATA(1, 2, 3, 4));
  OK(tt_view(c, x, SHAPE(2, 2), &v));
  OK(tt_tensor_set_data(c, v, other));
  VALUES(v, 5, 6, 7);
  VALUES(x, 1, 2, 3, 4);
  OK(tt_view(c, leaf(DATA(1, 2)), SHAPE(2, 1), &v));
  FAILS(tt_tensor_set_data(c, v, other), TT_AUTOGRAD, "leaf");
}

/* A view of a tiny tensor holds no reference to the storage: the base holds it, whose block the
   data is in. */
static void test_views_keep_their_memory(void** state) {
  tt_tensor *x, *v, *row, *other = numbers(TT_F64, DATA(5, 6, 7));
  (void)state;
  OK(tt_scope_push(c));
  x = numbers(TT_F64, DATA(1, 2, 3, 4));
  OK(tt_view(c, x, SHAPE(2, 2), &v));
  OK(tt_select(c, v, 0, 1, &row));
  OK(tt_tensor_set_data(c, x, other));
  VALUES(x, 5, 6, 7);
  OK(tt_mul_f64_(c, row, 10));
  OK(tt_scope_pop(c, &v, 1)); /* x and its other view are released */
  VALUES(v, 1, 2, 30, 40);
  assert_int_equal(tt_tensor_version(v), 1);
  VALUES(other, 5, 6, 7);
}

/* ---- nodes ---- */

static void test_nodes(void** state) {
  tt_tensor *x = leaf(DATA(1)), *e, *y;
  tt_node *n, *below, *nothing;
  (void)state;
  OK(tt_exp(c, x, &e));
  y = mul(e, x);
  OK(tt_tensor_grad_fn(c, y, &n));
  assert_string_equal(tt_node_name(n), "mul");
  assert_int_equal(tt_node_num_inputs(n), 2);
  OK(tt_node_next(c, n, 0, &below));
  assert_string_equal(tt_node_name(below), "exp");
  OK(tt_node_next(c, n, 1, &nothing));
  assert_null(nothing);
  FAILS(tt_node_next(c, n, 2, &nothing), TT_INDEX, "2");
  tt_node_release(below);
  tt_tensor* accumulated;
  OK(tt_node_leaf(c, n, 0, &accumulated));
  assert_null(accumulated);
  OK(tt_node_leaf(c, n, 1, &accumulated));
  assert_ptr_equal(accumulated, x);
  FAILS(tt_node_leaf(c, n, -1, &accumulated), TT_INDEX, "-1");
  assert_null(accumulated);
  tt_node_release(n);
  OK(tt_tensor_grad_fn(c, x, &n));
  assert_null(n);
}

static void describes(const tt_node* n, const char* want) {
  char text[512];
  int64_t length = 0;
  OK(tt_node_describe(c, n, text, sizeof text, &length));
  assert_string_equal(text, want);
  assert_int_equal(length, strlen(want));
}

static void test_saved_values(void** state) {
  tt_tensor *x = leaf(DATA(1, 2)), *y, *z, *total, *saved;
  tt_node* n;
  int64_t length = 0;
  char small[8];
  (void)state;
  y = mul(x, x);
  OK(tt_tensor_grad_fn(c, y, &n));
  describes(
      n,
      "{\"name\":\"mul\",\"outputs\":[0,0],\"results\":[[2]],\"held\":false,\"released\":false,"
      "\"saved\":{\"self\":{\"tensor\":0},\"other\":{\"tensor\":1}}}");
  FAILS(tt_node_describe(c, n, small, sizeof small, &length), TT_BUFFER_TOO_SMALL, "8 bytes");
  OK(tt_node_saved(c, n, 1, &saved));
  assert_ptr_equal(saved, x);
  FAILS(tt_node_saved(c, n, 2, &saved), TT_INDEX, "2 tensors");
  assert_null(saved);
  OK(tt_sum(c, y, NULL, &total));
  OK(tt_backward(c, total, NULL));
  describes(
      n,
      "{\"name\":\"mul\",\"outputs\":[0,0],\"results\":[[2]],\"held\":false,\"released\":true,"
      "\"saved\":{\"self\":null,\"other\":null}}");
  FAILS(tt_node_saved(c, n, 0, &saved), TT_AUTOGRAD, "freed");
  tt_node_release(n);
  OK(tt_pow_f64(c, x, INFINITY, &z));
  OK(tt_tensor_grad_fn(c, z, &n));
  describes(n,
            "{\"name\":\"pow_number\",\"outputs\":[0],\"results\":[[2]],\"held\":false,"
            "\"released\":false,"
            "\"saved\":{\"self\":{\"tensor\":0},\"exponent\":inf}}");
  tt_node_release(n);
}

/* ---- order and memory ---- */

enum { kUses = 1000, kWide = 16384 };

/* One weight used 1,000 times: its gradient is summed at once, not collected. */
static void test_thousand_uses_hold_two_gradients(void** state) {
  tt_tensor *w, *y;
  const int64_t wide = kWide;
  const int64_t gradient = kWide * 4;
  int64_t held;
  int i;
  (void)state;
  OK(tt_ones(c, &wide, 1, NULL, &w));
  OK(tt_requires_grad_(c, w, 1));
  OK(tt_scope_push(c));
  y = times(w, 2);
  for (i = 1; i < kUses; i++) y = add(y, times(w, 2));
  y = sum_of(y);
  OK(tt_scope_pop(c, &y, 1));
  OK(tt_trim(c));
  held = host.bytes;
  host.peak = held;
  OK(tt_backward(c, y, NULL));
  assert_true(host.peak - held <
              4 * gradient + (512 << 10)); /* the sum, the summand, slabs of small blocks */
  assert_true(value_of(sum_of(grad_of(w))) == 2.0 * kUses * kWide);
}

typedef struct Order {
  int seen[8];
  int n;
} Order;
typedef struct Mark {
  Order* order;
  int id;
} Mark;
static tt_status mark_leaf(void* user, tt_ctx* ctx, const tt_tensor* t) {
  Mark* m = user;
  (void)ctx;
  (void)t;
  m->order->seen[m->order->n++] = m->id;
  return 0;
}
static tt_status mark_grad(void* user, tt_ctx* ctx, const tt_tensor* grad,
                           tt_tensor** replacement) {
  (void)replacement;
  return mark_leaf(user, ctx, grad);
}

/* A leaf's hook runs right after its last consumer: the last layer's before the backward of the
   first layer. */
static void test_leaves_fire_early(void** state) {
  tt_tensor* w1 = leaf(DATA(2));
  tt_tensor* w2 = leaf(DATA(3));
  tt_tensor* w3 = leaf(DATA(4));
  tt_tensor* x = numbers(TT_F64, DATA(1));
  tt_tensor* h1;
  tt_tensor* h2;
  tt_tensor* y;
  Order order = {.n = 0};
  Mark m3 = {&order, 3};
  Mark m2 = {&order, 2};
  Mark h = {&order, 10};
  Mark m1 = {&order, 1};
  int64_t id;
  (void)state;
  h1 = mul(x, w1);
  h2 = mul(h1, w2);
  y = mul(h2, w3);
  OK(tt_register_accumulate_hook(c, w1, mark_leaf, &m1, NULL, &id));
  OK(tt_register_accumulate_hook(c, w2, mark_leaf, &m2, NULL, &id));
  OK(tt_register_accumulate_hook(c, w3, mark_leaf, &m3, NULL, &id));
  OK(tt_register_hook(c, h1, mark_grad, &h, NULL, &id)); /* backward of the first layer */
  OK(tt_backward(c, y, NULL));
  assert_int_equal(order.n, 4);
  assert_int_equal(order.seen[0], 3);
  assert_int_equal(order.seen[1], 2);
  assert_int_equal(order.seen[2], 10);
  assert_int_equal(order.seen[3], 1);
}

static void test_deep_chain(void** state) {
  tt_tensor* x = leaf(DATA(1));
  tt_tensor* y = times(x, 1);
  int i;
  (void)state;
  for (i = 0; i < (is_at_cpu() ? 20000 : 200); i++) { /* the emulation takes its time */
    tt_tensor* next;
    OK(tt_scope_push(c));
    next = times(y, 1);
    OK(tt_scope_pop(c, &next, 1));
    y = next;
  }
  backward(y);
  VALUES(grad_of(x), 1);
}

/* ---- errors leave everything as it was ---- */

static void test_failed_op_leaves_inputs(void** state) {
  tt_tensor* x = leaf(DATA(1, 2, 3));
  tt_tensor* y = times(x, 2);
  tt_tensor* z;
  tt_tensor* b = numbers(TT_F64, DATA(1, 2));
  tt_node* n;
  (void)state;
  FAILS(tt_add(c, y, b, &z), TT_SHAPE, "[3]");
  assert_null(z);
  FAILS(tt_add_(c, y, b), TT_SHAPE, "[2]");
  assert_int_equal(tt_tensor_version(y), 0);
  OK(tt_tensor_grad_fn(c, y, &n));
  assert_string_equal(tt_node_name(n), "mul");
  tt_node_release(n);
  backward(y);
  VALUES(grad_of(x), 2, 2, 2);
}

static void test_complex_gradients(void** state) {
  const double z[] = {3, 4};
  tt_tensor *x, *y, *g;
  (void)state;
  OK(tt_tensor_from_data(c, z, TT_C128, NULL, 0, &x));
  OK(tt_requires_grad_(c, x, 1));
  y = mul(x, x);
  FAILS(tt_grad(c, LIST(y), LIST(x),
                &(tt_grad_opts){.set = TT_GRAD_GRAD_OUTPUTS,
                                .grad_outputs = (const tt_tensor*[]){number(TT_F64, 1)},
                                .n_grad_outputs = 1},
                &g),
        TT_DTYPE, "complex");
  OK(tt_grad(c, LIST(y), LIST(x), NULL, &g));
  VALUES(g, 6); /* conj(2 z) = 6 - 8i */
}

static void test_anomaly_names_the_operator(void** state) {
  (void)state;
  tt_tensor *x = leaf(DATA(0, 4)), *root, *y;
  int32_t before;
  OK(tt_sqrt(c, x, &root));
  OK(tt_mul_f64(c, root, 0, &y)); /* 0 * inf in the gradient of sqrt at 0 */
  const tt_backward_opts keep = {.set = TT_BACKWARD_RETAIN_GRAPH, .retain_graph = 1};
  y = sum_of(y);
  OK(tt_backward(c, y, &keep));
  assert_int_equal(tt_anomaly_enabled(c), 0);
  OK(tt_set_anomaly_enabled(c, 1, &before));
  assert_true(before == 0 && tt_anomaly_enabled(c) == 1);
  FAILS(tt_backward(c, y, &keep), TT_AUTOGRAD,
        "the gradient of sqrt with respect to its input 0 (float64 of shape [2]) has nan");
  OK(tt_set_anomaly_enabled(c, 0, NULL));
  OK(tt_backward(c, y, NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_anomaly_names_the_operator),
      SCOPED(test_gradients_accumulate),
      SCOPED(test_one_input_many_uses),
      SCOPED(test_gradient_does_not_alias_its_source),
      SCOPED(test_broadcast_sums),
      SCOPED(test_mixed_dtypes),
      SCOPED(test_backward_inputs_only),
      SCOPED(test_backward_needs_a_scalar_or_a_gradient),
      SCOPED(test_graph_is_freed),
      SCOPED(test_no_graph_owns_itself),
      SCOPED(test_grad_does_not_touch_leaves),
      SCOPED(test_third_derivative),
      SCOPED(test_backward_create_graph),
      SCOPED(test_grad_of_non_leaf),
      SCOPED(test_grad_several_outputs),
      SCOPED(test_unused_inputs),
      SCOPED(test_output_is_input),
      SCOPED(test_no_grad),
      SCOPED(test_leaves),
      SCOPED(test_retain_grad),
      SCOPED(test_in_place_on_leaf_is_refused),
      SCOPED(test_in_place_chain),
      SCOPED(test_in_place_makes_a_leaf_of_none),
      SCOPED(test_stale_saved_tensor),
      SCOPED(test_output_overwritten),
      SCOPED(test_in_place_reading_result),
      SCOPED(test_buffer_element_assigned),
      SCOPED(test_in_place_on_view_cuts_old_value),
      SCOPED(test_overwritten_part_has_no_gradient),
      SCOPED(test_view_of_changed_base),
      SCOPED(test_views_of_views),
      SCOPED(test_in_place_with_itself),
      SCOPED(test_view_made_without_grad),
      SCOPED(test_into_is_not_recorded),
      SCOPED(test_leaves_in_a_buffer),
      SCOPED(test_detached_is_written_freely),
      SCOPED(test_results_partly_used),
      SCOPED(test_leaf_over_a_part),
      SCOPED(test_retain_grad_follows_in_place),
      SCOPED(test_set_data),
      SCOPED(test_set_data_of_a_view),
      SCOPED(test_views_keep_their_memory),
      SCOPED(test_nodes),
      SCOPED(test_saved_values),
      SCOPED(test_thousand_uses_hold_two_gradients),
      SCOPED(test_leaves_fire_early),
      SCOPED(test_deep_chain),
      SCOPED(test_failed_op_leaves_inputs),
      SCOPED(test_complex_gradients),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
