/* In-place operators on views, bases of views, tensors with new data and former leaves:
   histories, memory, refusals. tests/op_table/op_in_place_test.c runs every operator through the
   common cases. */
#include "expressions.h"

#include <math.h>

static tt_tensor* part(const tt_tensor* a, int64_t start, int64_t end) {
  const tt_slice_opts opts = {.set = TT_SLICE_START | TT_SLICE_END, .start = start, .end = end};
  tt_tensor* y;
  OK(tt_slice(c, a, 0, &opts, &y));
  return y;
}
static tt_tensor* detached(const tt_tensor* a) {
  tt_tensor* y;
  OK(tt_detach(c, a, &y));
  return y;
}

/* ---- second derivatives ---- */

/* The operator's saved result has its own node as history, not the base's. */
static void test_saved_result_of_a_view(void** state) {
  tt_tensor* x = leaf(DATA(0.5, 1, 2));
  tt_tensor* b = times(x, 1);
  tt_tensor* first;
  const double e = exp(1);
  (void)state;
  OK(tt_exp_(c, part(b, 0, 2)));
  first = derive(mul(b, b), x, 1); /* 2 exp(2x), 2 exp(2x), 2x */
  NEAR(first, 1e-14, 2 * e, 2 * e * e, 4);
  NEAR(derive(first, x, 0), 1e-13, 4 * e, 4 * e * e, 2);
}

/* Only the exponent requires a gradient: the view has none to pass on. */
static void test_exponent_of_a_view(void** state) {
  tt_tensor* y = leaf(DATA(2, 3));
  tt_tensor* b = numbers(TT_F64, DATA(1.5, 2, 7));
  tt_tensor* first;
  const double l = log(1.5);
  const double m = log(2);
  (void)state;
  OK(tt_pow_(c, part(b, 0, 2), y));
  VALUES(b, 2.25, 8, 7);
  first = derive(b, y, 1);
  NEAR(first, 1e-14, 2.25 * l, 8 * m);
  NEAR(derive(first, y, 0), 1e-14, 2.25 * l * l, 8 * m * m);
}

/* The gradient of a leaf that only the view's operator uses is complete when both nodes have
   run. */
static void test_leaf_of_both_nodes(void** state) {
  tt_tensor* x = leaf(DATA(1, 2));
  tt_tensor* w = leaf(DATA(3, 4));
  tt_tensor* b = times(times(times(x, 1), 1), 1);
  tt_tensor* first;
  const tt_grad_opts create = {.set = TT_GRAD_CREATE_GRAPH, .create_graph = 1};
  tt_tensor *grads[2], *seconds[2];
  (void)state;
  OK(tt_pow_(c, part(b, 0, 2), w)); /* x^w */
  OK(tt_grad(c, LIST(sum_of(b)), LIST(x, w), &create, grads));
  NEAR(grads[0], 1e-14, 3, 32);
  first = mul(grads[0], grads[0]); /* w² x^(2w-2) */
  OK(tt_grad(c, LIST(sum_of(first)), LIST(x, w), NULL, seconds));
  NEAR(seconds[0], 1e-12, 36, 3072);
  NEAR(seconds[1], 1e-12, 6, 2 * 4 * 64 + 2 * 16 * 64 * log(2));
}

/* One backward through both: the operator of the view runs for the base and for saved tensors. */
static void test_both_nodes_in_one_backward(void** state) {
  tt_tensor* x = leaf(DATA(0, 1));
  tt_tensor* b = times(x, 1);
  tt_tensor* v = part(b, 0, 1);
  tt_tensor* first;
  (void)state;
  OK(tt_exp_(c, v));
  first = derive(mul(b, b), x, 1);
  OK(tt_add(c, sum_of(first), sum_of(b), &first));
  OK(tt_backward(c, first, NULL));
  NEAR(grad_of(x), 1e-15, 4 + 1, 2 + 1);
  FAILS(tt_backward(c, sum_of(b), NULL), TT_AUTOGRAD, "freed");
}

/* Shapes of more dimensions than a tensor's header holds. */
static void test_many_dims(void** state) {
  tt_tensor* x = param(SHAPE(2, 1, 1, 1, 1, 1, 2), DATA(0, 1, 0, 2));
  tt_tensor* b = times(x, 1);
  tt_tensor* first;
  (void)state;
  OK(tt_mul_f64_(c, b, 2));
  OK(tt_exp_(c, pick(b, 1)));
  first = derive(b, x, 1); /* of 2x in row 0, of exp(2x) in row 1 */
  NEAR(first, 1e-12, 2, 2, 2, 2 * exp(4));
  NEAR(derive(first, x, 0), 1e-12, 0, 0, 4, 4 * exp(4));
}

/* ---- what cannot have a gradient ---- */

static void test_integers_record_nothing(void** state) {
  tt_tensor* x = leaf(DATA(1, 2));
  tt_tensor* b = numbers(TT_I64, DATA(5, 6, 7));
  (void)state;
  OK(tt_copy_(c, part(b, 0, 2), x));
  VALUES(b, 1, 2, 7);
  assert_int_equal(tt_tensor_requires_grad(b), 0);
  OK(tt_copy_(c, b, pick(x, 0)));
  assert_int_equal(tt_tensor_requires_grad(b), 0);
}

/* ---- new data ---- */

/* Sets a tensor's data to a view of itself, twice, and then back to the original. */
static void test_data_is_its_own_view(void** state) {
  tt_tensor* t = numbers(TT_F64, DATA(1, 2, 3, 4));
  tt_tensor* old = detached(t);
  (void)state;
  OK(tt_tensor_set_data(c, t, part(t, 1, 4)));
  OK(tt_tensor_set_data(c, t, t));
  VALUES(t, 2, 3, 4);
  OK(tt_tensor_set_data(c, t, numbers(TT_F64, DATA(7))));
  OK(tt_tensor_set_data(c, t, old));
  VALUES(t, 1, 2, 3, 4);
}

/* A small tensor and its data are one block; a large tensor's data is a block of its own. */
static void test_data_is_swapped(void** state) {
  const int64_t kSizes[][2] = {{2, 3}, {2, 1000}, {1000, 2}, {1000, 2000}};
  size_t i;
  int round;
  (void)state;
  for (i = 0; i < sizeof kSizes / sizeof *kSizes; i++) {
    tt_tensor *a, *b;
    OK(tt_scope_push(c));
    OK(tt_ones(c, &kSizes[i][0], 1, NULL, &a));
    OK(tt_zeros(c, &kSizes[i][1], 1, NULL, &b));
    for (round = 0; round < 3; round++) {
      tt_tensor* was_a = detached(a);
      tt_tensor* was_b = detached(b);
      OK(tt_tensor_set_data(c, a, was_b));
      OK(tt_tensor_set_data(c, b, was_a));
      assert_int_equal(tt_tensor_numel(a), kSizes[i][(round + 1) % 2]);
      assert_true(value_of(pick(b, 0)) == (round + 1) % 2);
    }
    OK(tt_tensor_set_data(c, a, b)); /* both */
    OK(tt_tensor_set_data(c, b, a));
    OK(tt_scope_pop(c, i % 2 ? &a : &b, 1)); /* one outlives the other */
  }
}

/* A view of a tensor's former data is no view of its new data. */
static void test_view_of_former_data(void** state) {
  tt_tensor* t = numbers(TT_F64, DATA(1, 2, 3));
  tt_tensor* v = part(t, 1, 3);
  tt_tensor* x = leaf(DATA(5, 6));
  (void)state;
  OK(tt_tensor_set_data(c, t, numbers(TT_F64, DATA(9))));
  OK(tt_mul_(c, v, x));
  VALUES(v, 10, 18);
  VALUES(t, 9);
  assert_int_equal(tt_tensor_requires_grad(t), 0);
  VALUES(derive(v, x, 1), 2, 3);
  OK(tt_mul_f64_(c, t, 2));
  VALUES(derive(mul(v, v), x, 0), 40, 108);
}

/* A saved leaf must have the shape and strides that it had, or backward refuses. */
static void test_saved_leaf_gets_another_shape(void** state) {
  const tt_grad_opts keep = {.set = TT_GRAD_RETAIN_GRAPH, .retain_graph = 1};
  tt_tensor *w = leaf(DATA(1, 2, 3)), *x = leaf(DATA(4, 5, 6)), *y = mul(w, x), *g;
  const tt_dtype kDtypes[] = {TT_F32, TT_C128};
  size_t i;
  (void)state;
  OK(tt_tensor_set_data(c, w, numbers(TT_F64, DATA(7, 8, 9)))); /* as PyTorch: its values count */
  OK(tt_grad(c, LIST(sum_of(y)), LIST(x), &keep, &g));
  VALUES(g, 7, 8, 9);
  for (i = 0; i < 2; i++) {
    OK(tt_tensor_set_data(c, w, numbers(kDtypes[i], DATA(1, 2, 3))));
    FAILS(tt_grad(c, LIST(sum_of(y)), LIST(x), &keep, &g), TT_AUTOGRAD, "another shape");
  }
  OK(tt_tensor_set_data(c, w, numbers(TT_F64, DATA(1))));
  FAILS(tt_grad(c, LIST(sum_of(y)), LIST(x), &keep, &g), TT_AUTOGRAD, "another shape");
  VALUES(derive(mul(w, x), x, 0), 1, 1, 1);                     /* a new graph is fine */
  OK(tt_tensor_set_data(c, w, numbers(TT_F64, DATA(1, 2, 3)))); /* and the old one, restored */
  OK(tt_grad(c, LIST(sum_of(y)), LIST(x), &keep, &g));
  VALUES(g, 1, 2, 3);
}

/* ---- data whose writes graphs do not heed ---- */

static tt_tensor* data_of(const tt_tensor* a) {
  tt_tensor* y;
  OK(tt_tensor_variable_data(c, a, &y));
  return y;
}

static void test_data_has_a_version_of_its_own(void** state) {
  tt_tensor *x = leaf(DATA(1, 2)), *y = mul(x, x), *z = times(x, 1), *part_of_z = pick(z, 0);
  tt_tensor* data = data_of(x);
  tt_node* node;
  (void)state;
  OK(tt_mul_f64_(c, data, 3));
  OK(tt_mul_f64_(c, part(data, 0, 1), 2));
  OK(tt_mul_f64_(c, detached(data), 1));
  assert_int_equal(tt_tensor_version(x), 0);
  assert_int_equal(tt_tensor_version(data), 3);
  VALUES(x, 6, 6);
  VALUES(derive(y, x, 0), 12, 12); /* by the values of the time of backward */
  OK(tt_mul_f64_(c, data_of(z), 4));
  OK(tt_tensor_grad_fn(c, part_of_z, &node));
  assert_string_equal(tt_node_name(node), "select"); /* not made anew as as_strided */
  tt_node_release(node);
}

static void test_graphs_of_data_heed_its_writes(void** state) {
  tt_tensor *x = leaf(DATA(1, 2)), *w = leaf(DATA(3, 4)), *data = data_of(x), *y = mul(data, w), *g;
  (void)state;
  VALUES(derive(y, w, 0), 1, 2);
  y = mul(data, w);
  OK(tt_mul_f64_(c, data, 3));
  FAILS(tt_grad(c, LIST(sum_of(y)), LIST(w), NULL, &g), TT_AUTOGRAD, "written in place since");
  y = mul(data, w);
  OK(tt_mul_f64_(c, detached(x), 2));
  VALUES(derive(y, w, 0), 6, 12);
  y = mul(x, w);
  OK(tt_mul_f64_(c, detached(x), 2));
  FAILS(tt_grad(c, LIST(sum_of(y)), LIST(w), NULL, &g), TT_AUTOGRAD, "written in place since");
}

static void test_base_of_a_view(void** state) {
  tt_tensor *x = leaf(DATA(1, 2, 3)), *base;
  (void)state;
  OK(tt_tensor_base(c, part(part(x, 0, 2), 1, 2), &base));
  assert_ptr_equal(base, x);
  OK(tt_tensor_base(c, x, &base));
  assert_null(base);
  OK(tt_tensor_base(c, data_of(x), &base));
  assert_null(base);
}

/* ---- former leaves ---- */

static void test_older_view_of_a_former_leaf(void** state) {
  tt_tensor* x = leaf(DATA(1, 2, 3));
  tt_tensor* v = part(x, 0, 2);
  tt_tensor* w = leaf(DATA(4));
  (void)state;
  OK(tt_requires_grad_(c, x, 0));
  FAILS(tt_exp_(c, v), TT_AUTOGRAD, "stopped requiring a gradient");
  FAILS(tt_mul_(c, v, w), TT_AUTOGRAD, "a view of a leaf");
  VALUES(x, 1, 2, 3);
  assert_int_equal(tt_tensor_version(x), 0);
  v = part(x, 0, 2); /* a new view knows nothing of it */
  OK(tt_mul_(c, v, w));
  VALUES(derive(x, w, 0), 3);
}

static void test_former_leaf_takes_no_value_of_its_own(void** state) {
  tt_tensor* x = leaf(DATA(1, 2));
  tt_tensor* y = times(times(x, 3), 2);
  tt_tensor* w = leaf(DATA(5, 6));
  (void)state;
  OK(tt_requires_grad_(c, x, 0));
  FAILS(tt_add_(c, x, y), TT_AUTOGRAD, "detach");
  FAILS(tt_add_(c, pick(x, 0), pick(y, 0)), TT_AUTOGRAD, "detach");
  OK(tt_mul_(c, x, w)); /* another leaf's history is fine */
  FAILS(tt_add_(c, x, y), TT_AUTOGRAD, "detach");
  OK(tt_add_(c, x, detached(y)));
  VALUES(x, 11, 24);
  VALUES(derive(x, w, 0), 1, 2);
}

/* A view that others hold keeps its base when it becomes a leaf. A history of the base that leads
   to the leaf would keep both alive. */
static void test_base_of_a_former_view(void** state) {
  tt_tensor* base = make(TT_F64, SHAPE(3), DATA(1, 2, 3));
  tt_tensor* view = part(base, 0, 3);
  tt_tensor* other = leaf(DATA(4, 5, 6));
  (void)state;
  tt_tensor_retain(view);
  OK(tt_requires_grad_(c, view, 1));
  FAILS(tt_mul_(c, base, view), TT_AUTOGRAD, "of which a leaf was a view");
  VALUES(base, 1, 2, 3);
  OK(tt_mul_(c, base, other)); /* a history that does not lead to the view */
  VALUES(base, 4, 10, 18);
  tt_tensor_release(view);
}

/* ---- views that must not be written while gradients are recorded ---- */

static void set_recording(int on) { OK(tt_set_grad_enabled(c, on, NULL)); }
static tt_tensor* untracked_part(const tt_tensor* a, int64_t start, int64_t end) {
  tt_tensor* v;
  set_recording(0);
  v = part(a, start, end);
  set_recording(1);
  return v;
}

/* The history of the base would miss the write. */
static void test_view_made_without_recording(void** state) {
  static const char kRule[] = "made while gradients were not recorded";
  tt_tensor *x = leaf(DATA(1, 2, 3)), *b = times(x, 1), *w = leaf(DATA(4, 5)), *v, *plain;
  const tt_tensor* bases[2];
  int i;
  (void)state;
  bases[0] = x;
  bases[1] = b;
  for (i = 0; i < 2; i++) {
    const int64_t version = tt_tensor_version(bases[i]);
    v = untracked_part(bases[i], 0, 2);
    assert_int_equal(tt_tensor_requires_grad(v), 0);
    FAILS(tt_mul_f64_(c, v, 2), TT_AUTOGRAD, kRule);
    assert_string_equal(tt_ctx_error(c)->arg, "self");
    assert_non_null(strstr(tt_ctx_error(c)->message, "mul"));
    FAILS(tt_mul_(c, v, w), TT_AUTOGRAD, kRule);
    FAILS(tt_copy_(c, v, w), TT_AUTOGRAD, kRule);
    FAILS(tt_zero_(c, v), TT_AUTOGRAD, kRule);
    FAILS(tt_floor_(c, v), TT_AUTOGRAD, kRule);
    FAILS(tt_exp_(c, part(v, 0, 1)), TT_AUTOGRAD, kRule);
    FAILS(tt_exp_(c, untracked_part(v, 0, 1)), TT_AUTOGRAD, kRule);
    assert_int_equal(tt_tensor_version(bases[i]), version);
    VALUES(bases[i], 1, 2, 3);
    VALUES(mul(v, v), 1, 4);
    OK(tt_mul_f64_(c, detached(v),
                   1)); /* which autograd does not treat as a view of b, as in PyTorch */
    set_recording(0);
    OK(tt_mul_f64_(c, v, 1));
    set_recording(1);
    OK(tt_tensor_set_data(c, v, numbers(TT_F64, DATA(6, 7))));
    OK(tt_mul_(c, v, w));
    VALUES(derive(v, w, 1), 6, 7);
  }
  plain = numbers(TT_F64, DATA(1, 2, 3)); /* a base that requires no gradient */
  v = untracked_part(plain, 0, 2);
  OK(tt_mul_f64_(c, v, 2));
  VALUES(plain, 2, 4, 3);
}

/* As PyTorch; whether the base itself requires a gradient does not matter. */
static void test_views_of_one_call(void** state) {
  static const char kRule[] = "one of the views that a call returned";
  tt_tensor *x = leaf(DATA(1, 2, 3, 4)), *w = leaf(DATA(5, 6)), *parts[4];
  int64_t n;
  int k;
  (void)state;
  for (k = 0; k < 4; k++) {
    tt_tensor* b = k < 3 ? times(x, 1) : numbers(TT_F64, DATA(1, 2, 3, 4));
    const tt_tensor* operand = k == 0 ? pick(w, 0) : w;
    if (k == 0) OK(tt_unbind(c, b, NULL, parts, 4, &n));
    else if (k == 1) OK(tt_chunk(c, b, 2, NULL, parts, 4, &n));
    else OK(tt_split(c, b, 2, NULL, parts, 4, &n));
    assert_int_equal(n, k ? 2 : 4);
    FAILS(tt_mul_(c, parts[1], operand), TT_AUTOGRAD, kRule);
    assert_string_equal(tt_ctx_error(c)->arg, "self");
    if (k) FAILS(tt_mul_(c, part(parts[1], 0, 1), pick(w, 0)), TT_AUTOGRAD, kRule);
    if (k < 3) FAILS(tt_mul_f64_(c, parts[1], 2), TT_AUTOGRAD, kRule);
    if (k < 3) FAILS(tt_zero_(c, parts[1]), TT_AUTOGRAD, kRule);
    else OK(tt_mul_f64_(c, parts[1], 1)); /* nothing is recorded */
    VALUES(b, 1, 2, 3, 4);
    OK(tt_mul_f64_(c, b, 2)); /* the base may be written; the views show it */
    if (k < 3) VALUES(derive(mul(parts[1], operand), x, 1), 0, k ? 0 : 10, k ? 10 : 0, k ? 12 : 0);
    set_recording(0);
    OK(tt_mul_f64_(c, parts[1], 2));
    set_recording(1);
  }
}

/* ---- failures ---- */

/* The data is written only after all memory was allocated. */
static void test_out_of_memory_writes_nothing(void** state) {
  tt_tensor *x = leaf(DATA(2, 3)), *b, *v;
  int64_t k, shape[7] = {2, 1, 1, 1, 1, 1, 2};
  (void)state;
  for (k = 1; k < 200; k++) {
    tt_status s;
    OK(tt_scope_push(c));
    b = make(TT_F64, shape, 7, DATA(2, 3, 4, 5));
    v = pick(times(b, 1), 1);
    host.calls = 0;
    host.fail_at = k;
    s = tt_pow_(c, v, x);
    host.fail_at = 0;
    if (s) assert_int_equal(s, TT_OOM);
    if (s) VALUES(v, 4, 5);
    else VALUES(v, 16, 125);
    OK(tt_scope_pop(c, NULL, 0));
    if (!s) break;
  }
  assert_true(k < 200);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_saved_result_of_a_view),
      SCOPED(test_exponent_of_a_view),
      SCOPED(test_leaf_of_both_nodes),
      SCOPED(test_both_nodes_in_one_backward),
      SCOPED(test_many_dims),
      SCOPED(test_integers_record_nothing),
      SCOPED(test_data_is_its_own_view),
      SCOPED(test_data_is_swapped),
      SCOPED(test_view_of_former_data),
      SCOPED(test_saved_leaf_gets_another_shape),
      SCOPED(test_data_has_a_version_of_its_own),
      SCOPED(test_graphs_of_data_heed_its_writes),
      SCOPED(test_base_of_a_view),
      SCOPED(test_older_view_of_a_former_leaf),
      SCOPED(test_former_leaf_takes_no_value_of_its_own),
      SCOPED(test_base_of_a_former_view),
      SCOPED(test_view_made_without_recording),
      SCOPED(test_views_of_one_call),
      SCOPED(test_out_of_memory_writes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
