/* Edits of graphs: what is edited replays as the operators that it stands for. */
#include "harness.h"

static tt_tensor* randn(const int64_t* shape, int64_t n) {
  tt_tensor* t;
  OK(tt_randn(c, shape, n, NULL, &t));
  return t;
}
static const tt_op* op(const char* name) {
  const tt_op* found;
  OK(tt_op_find(c, name, &found));
  return found;
}
/* The position of the first node of an operator, -1: none. */
static int64_t find(const tt_graph* g, const char* name) {
  tt_graph_info info;
  tt_graph_node n;
  int64_t i;
  OK(tt_graph_get_info(c, g, &info));
  for (i = 0; i < info.n_nodes; i++) {
    OK(tt_graph_get_node(c, g, i, &n));
    if (strcmp(n.name, name) == 0) return i;
  }
  return -1;
}
static int32_t result_of(const tt_graph* g, int64_t i) {
  tt_graph_node n;
  OK(tt_graph_get_node(c, g, i, &n));
  return n.outs[0];
}
static int32_t argument(const tt_graph* g, int64_t i) {
  tt_graph_arg a;
  OK(tt_graph_get_arg(c, g, i, 0, &a));
  return a.values[0];
}
static tt_graph_arg value_arg(const int32_t* value) {
  return (tt_graph_arg){.tag = TT_VAL_TENSOR, .n_values = 1, .values = value};
}
static void replays(const tt_graph* edited, const tt_tensor* x, const tt_tensor* want) {
  tt_graph* g; /* tensors of a plan hold its graph, which cannot be edited then */
  tt_plan* p;
  tt_tensor *in, *out, *same;
  tt_scalar equal;
  OK(tt_graph_copy(c, edited, &g));
  OK(tt_plan_new(c, g, NULL, &p));
  OK(tt_plan_slot(c, p, 0, 0, &in));
  OK(tt_plan_slot(c, p, 1, 0, &out));
  OK(tt_copy_(c, in, x));
  OK(tt_manual_seed(c, 5));
  OK(tt_plan_run(c, p));
  OK(tt_eq(c, out, want, &same));
  OK(tt_all(c, same, &same));
  OK(tt_item(c, same, &equal));
  assert_true(equal.i);
  assert_int_equal(tt_tensor_numel(out), tt_tensor_numel(want));
  tt_plan_release(p);
  tt_graph_release(g);
}

/* relu(x @ w + b), as rows, its mean of columns. */
static tt_tensor* net(tt_tensor* x, tt_tensor* w, int with_gelu) {
  tt_tensor *h, *a;
  OK(tt_matmul(c, x, w, &h));
  if (with_gelu) OK(tt_gelu(c, h, NULL, &a));
  else OK(tt_relu(c, h, &a));
  OK(tt_view(c, a, SHAPE(2, 8), &a));
  OK(tt_softmax(c, a, -1, NULL, &a));
  return a;
}
static tt_graph* captured(tt_tensor* x, tt_tensor* w) {
  tt_tensor* y;
  tt_graph* g;
  OK(tt_capture_begin(c, LIST(x), NULL));
  y = net(x, w, 0);
  OK(tt_capture_end(c, LIST(y), &g));
  return g;
}

/* In the place of relu comes gelu, a composite, whose result is seen by a view. */
static tt_status replace_relu(tt_graph* g) {
  const int64_t at = find(g, "relu");
  const int32_t from = argument(g, at), old = result_of(g, at);
  const tt_graph_arg args[] = {value_arg(&from)};
  int32_t new = -1;
  int64_t n;
  tt_status s = tt_graph_insert(c, g, at, op("gelu"), args, 1, &new, 1, &n);
  if (!s) s = tt_graph_replace_uses(c, g, old, new);
  if (!s) s = tt_graph_remove(c, g, find(g, "relu"));
  return s;
}
static void test_replace(void** state) {
  tt_tensor *x = randn(SHAPE(4, 3)), *w = randn(SHAPE(3, 4)), *other = randn(SHAPE(4, 3));
  tt_graph* g = captured(x, w);
  (void)state;
  replays(g, other, net(other, w, 0));
  assert_int_equal(replace_relu(g), TT_OK);
  assert_int_equal(find(g, "relu"), -1);
  replays(g, other, net(other, w, 1));
  tt_graph_release(g);
}

/* Shapes follow: a sum without dims becomes one over a dim. */
static void test_shapes_follow(void** state) {
  tt_tensor *x = randn(SHAPE(4, 3)), *y, *want;
  const int64_t dim = 1;
  char text[2048];
  tt_graph* g;
  tt_graph_value value;
  int32_t before, made;
  int64_t n, users[4];
  (void)state;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_exp(c, x, &y));
  OK(tt_sum(c, y, NULL, &want));
  OK(tt_neg(c, want, &want));
  OK(tt_capture_end(c, LIST(want), &g));
  before = argument(g, find(g, "sum"));
  {
    const tt_graph_arg args[] = {value_arg(&before), {.tag = TT_VAL_INTS, .ints = &dim, .n = 1}};
    OK(tt_graph_insert(c, g, find(g, "sum"), op("sum_dim"), args, 2, &made, 1, &n));
  }
  OK(tt_graph_replace_uses(c, g, result_of(g, find(g, "sum")), made));
  OK(tt_graph_remove(c, g, find(g, "sum")));
  OK(tt_graph_print(c, g, text, sizeof text, &n));
  assert_null(strstr(text, "= made")); /* the removed value is in no line */
  OK(tt_graph_dot(c, g, text, sizeof text, &n));
  assert_null(strstr(text, "made"));
  OK(tt_graph_get_value(c, g, made, &value));
  assert_int_equal(value.ndim, 1);
  assert_int_equal(value.sizes[0], 4);
  OK(tt_graph_users(c, g, before, users, 4, &n));
  assert_int_equal(n, 1);
  assert_int_equal(users[0], find(g, "sum_dim"));
  OK(tt_sum_dim(c, y, SHAPE(1), NULL, &want));
  OK(tt_neg(c, want, &want));
  replays(g, x, want);
  tt_graph_release(g);
}

/* Random numbers and state keep their order. */
static void test_draws_and_state(void** state) {
  tt_tensor *x = randn(SHAPE(4, 3)), *total = number(TT_F32, 0), *y, *sum, *want;
  tt_graph* g;
  int32_t value, made, outs[2];
  int64_t n;
  (void)state;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_dropout(c, x, NULL, &y));
  OK(tt_sum(c, y, NULL, &sum));
  OK(tt_add_(c, total, sum));
  OK(tt_dropout(c, y, NULL, &y));
  OK(tt_capture_end(c, LIST(y), &g));
  value = 0;
  {
    const tt_graph_arg args[] = {value_arg(&value), {.tag = TT_VAL_FLOAT, .f = 2}};
    OK(tt_graph_insert(c, g, 0, op("mul_scalar"), args, 2, &made, 1, &n));
  }
  OK(tt_graph_replace_uses(c, g, value, made));
  OK(tt_manual_seed(c, 5));
  OK(tt_mul_f64(c, x, 2, &want));
  OK(tt_dropout(c, want, NULL, &want));
  OK(tt_dropout(c, want, NULL, &want));
  replays(g, x, want);
  assert_true(value_of(total) != 0);
  outs[0] = made;
  outs[1] = value;
  OK(tt_graph_set_outputs(c, g, outs, 2));
  tt_graph_release(g);
}

static void test_refusals(void** state) {
  tt_tensor *x = randn(SHAPE(4, 3)), *w = randn(SHAPE(3, 4));
  tt_graph* g = captured(x, w);
  const int32_t result = result_of(g, find(g, "relu")), out_of_range = 999, zero = 0;
  const tt_graph_arg bad[] = {value_arg(&out_of_range)}, good[] = {value_arg(&zero)};
  const tt_graph_arg text[] = {{.tag = TT_VAL_STR, .str = "x", .n = 1}};
  tt_graph_info info;
  tt_plan* p;
  int32_t made;
  int64_t n;
  (void)state;
  FAILS(tt_graph_remove(c, g, find(g, "relu")), TT_INVALID_ARG, "is used: node");
  FAILS(tt_graph_remove(c, g, 99), TT_INVALID_ARG, "the graph has");
  FAILS(tt_graph_insert(c, g, 99, op("exp"), good, 1, &made, 1, &n), TT_INVALID_ARG, "before is");
  FAILS(tt_graph_insert(c, g, 0, op("exp"), bad, 1, &made, 1, &n), TT_INVALID_ARG, "value 999");
  FAILS(tt_graph_insert(c, g, 0, op("exp"), text, 1, &made, 1, &n), TT_INVALID_ARG, "kind");
  FAILS(tt_graph_insert(c, g, 0, op("exp"), NULL, 0, &made, 1, &n), TT_INVALID_ARG, "self");
  FAILS(tt_graph_insert(c, g, 0, op("exp"), good, 1, NULL, 0, &n), TT_BUFFER_TOO_SMALL, "outs");
  FAILS(tt_graph_insert(c, g, 0, op("exp_"), good, 1, &made, 1, &n), TT_INVALID_ARG, "writes");
  FAILS(tt_graph_insert(c, g, 0, op("exp"), (const tt_graph_arg[]){value_arg(&result)}, 1, &made, 1,
                        &n),
        TT_INVALID_ARG, "before it is made");
  FAILS(tt_graph_replace_uses(c, g, result, 0), TT_SHAPE, NULL); /* 16 elements as rows of 8 */
  FAILS(tt_graph_set_outputs(c, g, &out_of_range, 1), TT_INVALID_ARG, "outputs is 999");
  OK(tt_graph_get_info(c, g, &info));
  assert_int_equal(info.n_nodes, 4);
  OK(tt_plan_new(c, g, NULL, &p));
  FAILS(tt_graph_remove(c, g, 0), TT_INVALID_ARG, "edit a copy");
  tt_plan_release(p);
  replays(g, x, net(x, w, 0));
  tt_graph_release(g);
}

static void test_out_of_memory(void** state) {
  tt_tensor *x = randn(SHAPE(4, 3)), *w = randn(SHAPE(3, 4));
  tt_graph *g = captured(x, w), *copy = NULL;
  int64_t at;
  (void)state;
  for (at = 1; at < 10000; at++) {
    const int64_t failed = host.failed;
    tt_status s;
    host.fail_at = host.calls + at;
    host.fail_n = 1;
    s = tt_graph_copy(c, g, &copy);
    if (!s) s = replace_relu(copy);
    host.fail_at = 0;
    tt_graph_release(copy);
    if (host.failed == failed) break;
    assert_true(s == TT_OOM || !s);
  }
  assert_true(at < 10000);
  tt_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_replace), SCOPED(test_shapes_follow),
                                     SCOPED(test_draws_and_state), SCOPED(test_refusals),
                                     SCOPED(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
