/* Captures: what they record, what a graph says about it, what they refuse. */
#include "harness.h"

static const double kValues[] = {1, -2, 3, -4, 5, -6, 7, 8, -9, 10, 11, -12};

/* relu(x @ w) summed, and its backward. */
static tt_graph* capture_backward(tt_tensor* x, tt_tensor* w) {
  tt_graph* g;
  tt_tensor *h, *a, *loss;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_matmul(c, x, w, &h));
  OK(tt_relu(c, h, &a));
  loss = sum_of(a);
  OK(tt_backward(c, loss, NULL));
  OK(tt_capture_end(c, LIST(loss), &g));
  return g;
}

static void check_parts(const tt_graph* g, const tt_graph_info* info) {
  int64_t i, k;
  for (i = 0; i < info->n_nodes; i++) {
    tt_graph_node node;
    OK(tt_graph_get_node(c, g, i, &node));
    assert_non_null(node.schema);
    for (k = 0; k < node.n_outs; k++) assert_true(node.outs[k] < info->n_values);
    for (k = 0; k < node.n_args; k++) {
      tt_graph_arg arg;
      OK(tt_graph_get_arg(c, g, i, k, &arg));
      assert_non_null(arg.name);
      if (arg.tag == TT_VAL_TENSOR) assert_int_equal(arg.n_values, 1);
    }
  }
  for (i = 0; i < info->n_values; i++) {
    tt_graph_value value;
    OK(tt_graph_get_value(c, g, i, &value));
    assert_true(value.storage < info->n_storages && value.node < info->n_nodes);
  }
}

static void test_forward_and_backward(void** state) {
  tt_tensor* x = make(TT_F32, SHAPE(2, 3), kValues, 6);
  tt_tensor* w = make(TT_F32, SHAPE(3, 4), kValues, 12);
  tt_graph* g;
  tt_graph_info info;
  tt_graph_storage storage;
  tt_graph_node node;
  char text[8192];
  int64_t n;
  (void)state;
  OK(tt_requires_grad_(c, w, 1));
  g = capture_backward(x, w);
  OK(tt_graph_get_info(c, g, &info));
  assert_int_equal(info.n_inputs, 1);
  assert_int_equal(info.n_outputs, 1);
  assert_true(info.n_nodes >= 5);
  check_parts(g, &info);
  OK(tt_graph_get_storage(c, g, 0, &storage));
  assert_int_equal(storage.role, TT_GRAPH_INPUT);
  OK(tt_graph_get_storage(c, g, 1, &storage));
  assert_int_equal(storage.role, TT_GRAPH_CONSTANT);
  assert_non_null(storage.tensor);
  OK(tt_graph_print(c, g, text, sizeof text, &n));
  assert_non_null(strstr(text, "%0 float32[2,3] = input 0\n"));
  assert_non_null(strstr(text, "relu(self="));
  OK(tt_graph_dot(c, g, text, sizeof text, &n));
  assert_non_null(strstr(text, "digraph"));
  FAILS(tt_graph_print(c, g, text, 10, &n), TT_BUFFER_TOO_SMALL, "needs");
  FAILS(tt_graph_get_node(c, g, info.n_nodes, &node), TT_INVALID_ARG, "nodes");
  tt_graph_release(g);
}

/* A write makes a new version, views of the storage are recorded again, and state is distinguished
   from constants. */
static void test_writes_and_views(void** state) {
  tt_tensor* x = numbers(TT_F32, kValues, 4);
  tt_tensor* sum = numbers(TT_F32, kValues, 4);
  tt_tensor *row, *y;
  tt_graph* g;
  tt_graph_info info;
  tt_graph_storage storage;
  tt_graph_value value;
  char text[4096];
  int64_t n;
  (void)state;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_view(c, sum, SHAPE(2, 2), &row));
  OK(tt_add_(c, sum, x));
  OK(tt_neg(c, row, &y));
  OK(tt_capture_end(c, LIST(y), &g));
  OK(tt_graph_get_info(c, g, &info));
  assert_int_equal(info.n_nodes, 3);
  OK(tt_graph_get_storage(c, g, 1, &storage));
  assert_int_equal(storage.role, TT_GRAPH_STATE);
  OK(tt_graph_print(c, g, text, sizeof text, &n));
  assert_non_null(strstr(text, "view = view("));
  assert_non_null(strstr(text, "written = add_("));
  OK(tt_graph_get_value(c, g, info.outputs[0], &value));
  assert_int_equal(value.node, 2);
  tt_graph_release(g);
}

/* Composites pass through: their parts are nodes, in a scope with their name. */
static void test_composites(void** state) {
  tt_tensor* x = make(TT_F32, SHAPE(2, 3), kValues, 6);
  tt_tensor* y;
  tt_graph* g;
  tt_graph_node node;
  (void)state;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_dropout(c, x, NULL, &y));
  OK(tt_capture_end(c, LIST(y), &g));
  OK(tt_graph_get_node(c, g, 0, &node));
  assert_string_not_equal(node.name, "dropout");
  assert_non_null(node.scope);
  assert_string_equal(node.scope, "dropout");
  tt_graph_release(g);
}

static void test_refusals(void** state) {
  tt_tensor* x = numbers(TT_F32, kValues, 4);
  tt_graph* g;
  (void)state;
  FAILS(tt_capture_end(c, NULL, 0, &g), TT_INVALID_ARG, "no capture is running");
  assert_null(g);
  FAILS(tt_capture_begin(c, LIST(x, x), NULL), TT_INVALID_ARG, "shares its memory");
  OK(tt_capture_begin(c, LIST(x), NULL));
  FAILS(tt_capture_begin(c, LIST(x), NULL), TT_INVALID_ARG, "a capture is running");
  OK(tt_capture_drop(c));
  OK(tt_capture_drop(c));
  OK(tt_capture_begin(c, LIST(x), NULL)); /* the ctx ends it */
}

/* A decision by the values of elements would be frozen: the capture refuses it and names the
   call. */
static void test_reads(void** state) {
  const tt_capture_opts allowing = {.set = TT_CAPTURE_ALLOW_READS, .allow_reads = 1};
  tt_tensor* x = numbers(TT_F32, kValues, 4);
  tt_tensor* y;
  tt_scalar first;
  tt_graph* g;
  void* others;
  const char* name = "x";
  (void)state;
  OK(tt_capture_begin(c, LIST(x), NULL));
  FAILS(tt_tensor_to_dlpack(c, x, 1, &others), TT_INVALID_ARG, "elements of a tensor are read");
  FAILS(tt_safetensors_save(c, "captured.safetensors", &name, &x, 1, NULL), TT_INVALID_ARG,
        "elements of a tensor are read");
  FAILS(tt_item(c, sum_of(x), &first), TT_INVALID_ARG, "item: elements of a tensor are read");
  FAILS(tt_manual_seed(c, 77), TT_INVALID_ARG, "the state of a generator is set");
  OK(tt_exp(c, x, &y)); /* the capture continues */
  OK(tt_capture_end(c, LIST(y), &g));
  tt_graph_release(g);
  OK(tt_item(c, sum_of(x), &first));
  OK(tt_capture_begin(c, LIST(x), &allowing));
  OK(tt_item(c, sum_of(x), &first));
  OK(tt_capture_end(c, LIST(x), &g));
  tt_graph_release(g);
}

/* ---- hooks ---- */

static int hook_calls;
static tt_status double_result(void* user, tt_ctx* x, tt_module* m, const tt_tensor* const* inputs,
                               int64_t n_inputs, const tt_tensor* const* outs, int64_t n_outs,
                               tt_tensor** replacements) {
  (void)user;
  (void)m;
  (void)inputs;
  (void)n_inputs;
  (void)n_outs;
  hook_calls++;
  return tt_mul_f64(x, outs[0], 2, &replacements[0]);
}
static tt_status triple_grad(void* user, tt_ctx* x, const tt_tensor* grad,
                             tt_tensor** replacement) {
  (void)user;
  hook_calls++;
  return tt_mul_f64(x, grad, 3, replacement);
}
static tt_status read_result(void* user, tt_ctx* x, tt_module* m, const tt_tensor* const* inputs,
                             int64_t n_inputs, const tt_tensor* const* outs, int64_t n_outs,
                             tt_tensor** replacements) {
  float read[8];
  (void)user;
  (void)m;
  (void)inputs;
  (void)n_inputs;
  (void)n_outs;
  (void)replacements;
  return tt_tensor_read(x, outs[0], read, sizeof read);
}

static tt_tensor* forward_and_backward(tt_module* m, tt_tensor* x, tt_tensor** grad) {
  tt_tensor *y, *loss, *w;
  int64_t n, id;
  OK(tt_module_zero_grad(c, m));
  OK(tt_module_forward(c, m, LIST(x), &y, 1, &n));
  OK(tt_register_hook(c, y, triple_grad, NULL, NULL, &id));
  OK(tt_mul(c, y, y, &loss));
  loss = sum_of(loss);
  OK(tt_backward(c, loss, NULL));
  OK(tt_module_get_tensor(c, m, "weight", &w));
  OK(tt_tensor_grad(c, w, grad));
  return y;
}

/* Hooks run once, while they are captured. What they compute is part of the graph; what else they
   do is not repeated. */
static void test_hooks(void** state) {
  tt_tensor *x = make(TT_F32, SHAPE(2, 3), kValues, 6), *y, *other, *out[2], *want[2];
  tt_module* m;
  tt_graph* g;
  tt_plan* p;
  int64_t id, n;
  int i;
  (void)state;
  OK(tt_nn_linear(c, 3, 4, NULL, &m));
  OK(tt_module_register_forward_hook(c, m, double_result, NULL, NULL, &id));
  OK(tt_capture_begin(c, LIST(x), NULL));
  out[0] = forward_and_backward(m, x, &out[1]);
  OK(tt_capture_end(c, (const tt_tensor* const*)out, 2, &g));
  assert_int_equal(hook_calls, 2);
  OK(tt_plan_new(c, g, NULL, &p));
  OK(tt_neg(c, x, &other));
  OK(tt_plan_slot(c, p, 0, 0, &y));
  OK(tt_copy_(c, y, other));
  OK(tt_plan_run(c, p));
  assert_int_equal(hook_calls, 2);
  want[0] = forward_and_backward(m, other, &want[1]);
  for (i = 0; i < 2; i++) {
    float a[16], b[16];
    const int64_t bytes = tt_tensor_numel(want[i]) * 4;
    OK(tt_plan_slot(c, p, 1, i, &y));
    OK(tt_tensor_read(c, y, a, bytes));
    OK(tt_tensor_read(c, want[i], b, bytes));
    assert_memory_equal(a, b, (size_t)bytes);
  }
  tt_plan_release(p);
  tt_graph_release(g);
  OK(tt_module_register_forward_hook(c, m, read_result, NULL, NULL, &id));
  OK(tt_capture_begin(c, LIST(x), NULL));
  FAILS(tt_module_forward(c, m, LIST(x), out, 1, &n), TT_CALLBACK, "forward hook");
  OK(tt_capture_drop(c));
  tt_module_release(m);
}

/* What another ctx writes meanwhile is not part of the graph: the next call that reads it fails by
   name, and so does a graph that would return it. */
static void test_writes_of_others(void** state) {
  tt_tensor* x = numbers(TT_F32, kValues, 4);
  tt_tensor* shared = numbers(TT_F32, kValues, 4);
  tt_tensor *y, *z;
  tt_runtime* rt;
  tt_ctx* other;
  tt_graph* g;
  (void)state;
  OK(tt_ctx_runtime(c, &rt));
  OK(tt_ctx_new(rt, &other));
  tt_runtime_release(rt);
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_add(c, x, shared, &y));
  assert_int_equal(tt_add_(other, shared, x), TT_OK);
  FAILS(tt_mul(c, y, shared, &z), TT_INVALID_ARG, "mul: a tensor [4] was written during the capt");
  FAILS(tt_mul_(c, shared, y), TT_INVALID_ARG, "does not record (another thread or ctx)");
  OK(tt_neg(c, y, &z)); /* the capture continues */
  FAILS(tt_capture_end(c, LIST(z, shared), &g), TT_INVALID_ARG, "was written during the capture");
  assert_null(g);
  tt_ctx_release(other);
}

/* Each allocation fails once: the capture ends or continues, and nothing leaks. */
static void test_out_of_memory(void** state) {
  tt_tensor* x = make(TT_F32, SHAPE(2, 3), kValues, 6);
  tt_tensor* w = make(TT_F32, SHAPE(3, 4), kValues, 12);
  int64_t at;
  (void)state;
  for (at = 1; at < 10000; at++) {
    tt_tensor *h = NULL, *a = NULL;
    tt_graph* g = NULL;
    const int64_t failed = host.failed;
    host.fail_at = host.calls + at;
    host.fail_n = 1;
    if (tt_capture_begin(c, LIST(x), NULL) == TT_OK && tt_matmul(c, x, w, &h) == TT_OK &&
        tt_relu(c, h, &a) == TT_OK && tt_capture_end(c, LIST(a), &g))
      assert_null(g);
    host.fail_at = 0;
    OK(tt_capture_drop(c));
    tt_graph_release(g);
    if (host.failed == failed) break;
  }
  assert_true(at > 1 && at < 10000);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_forward_and_backward),
                                     SCOPED(test_writes_and_views),
                                     SCOPED(test_composites),
                                     SCOPED(test_refusals),
                                     SCOPED(test_reads),
                                     SCOPED(test_hooks),
                                     SCOPED(test_writes_of_others),
                                     SCOPED(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
