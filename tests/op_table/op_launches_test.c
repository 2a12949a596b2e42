/* Every operator on its samples, forward and backward, optimizers and clipping: each kernel runs
   from a copy of its plan, while the stack of the call is overwritten. The results are those of
   the plain call, so a recorded launch needs nothing that ends with the call. Results share memory
   with arguments where the schema says so. */
#include "checks.h"
#include "observer.h"

enum { kMaxLeaves = kMaxTensors };

static int n_calls, n_reading, n_bound_calls, n_bound;

static void check_alias(const Sample* s, tt_tensor** outs, int n) {
  const tt_op* op;
  tt_value args[kMaxArgs];
  OK(tt_op_find(c, s->row->name, &op));
  memcpy(args, s->args, sizeof args);
  point_to_items(s, args);
  const char* wrong = s->row->n_outs ? wrong_alias(op, args, s->row->n_args, outs, n) : NULL;
  if (!wrong) return;
  print_error("%s, sample \"%s\": %s\n", s->row->name, s->what, wrong);
  fail();
}

static void check_call(const Sample* s) {
  tt_tensor* want[kMaxOuts];
  tt_tensor* got[kMaxOuts];
  int n_want;
  int n;
  doing = "plain";
  done(s, call(s, want, &n_want));
  check_alias(s, want, n_want);
  doing = "from copies of plans";
  observe_launches(c);
  const tt_status status = call(s, got, &n);
  observe_nothing(c);
  done(s, status);
  n_calls++;
  n_reading += count_reads() > 0;
  assert_int_equal(n, n_want);
  for (int k = 0; k < n && has_values(s->row); k++) check_same(s, got[k], want[k], 0, 0);
}

/* Fills leaves with copies of the float64 tensors of s that have gradients; their number. */
static int differentiate(const Sample* s, tt_tensor** leaves) {
  Sample t = *s;
  tt_tensor** places[kMaxLeaves];
  tt_tensor* outs[kMaxOuts] = {NULL};
  tt_tensor* total = NULL;
  int n_outs;
  int n_leaves = 0;
  const int n = tensor_places(&t, places);
  for (int i = 0; i < n; i++) {
    if (tt_tensor_dtype(*places[i]) != TT_F64) continue;
    OK(tt_clone(c, *places[i], NULL, places[i]));
    OK(tt_requires_grad_(c, *places[i], 1));
    leaves[n_leaves++] = *places[i];
  }
  if (call(&t, outs, &n_outs)) return 0;
  for (int k = 0; k < n_outs; k++) {
    if (!outs[k] || !tt_tensor_requires_grad(outs[k])) continue;
    tt_tensor* sum = sum_of(outs[k]);
    if (total) OK(tt_add(c, total, sum, &total));
    else total = sum;
  }
  if (!total || tt_backward(c, total, NULL)) return 0;
  return n_leaves;
}

static void check_gradients(const Sample* s) {
  tt_tensor* want[kMaxLeaves];
  tt_tensor* got[kMaxLeaves];
  const int n_want = differentiate(s, want);
  doing = "gradients from copies of plans";
  observe_launches(c);
  const int n = differentiate(s, got);
  observe_nothing(c);
  assert_int_equal(n, n_want);
  for (int k = 0; k < n; k++) {
    tt_tensor* a = NULL;
    tt_tensor* b = NULL;
    OK(tt_tensor_grad(c, got[k], &a));
    OK(tt_tensor_grad(c, want[k], &b));
    assert_int_equal(a != NULL, b != NULL);
    if (a) check_same(s, a, b, 0, 0);
  }
}

/* As a plan that uses tensors where they are. */
static void check_bound(const Sample* s) {
  Sample t = *s;
  tt_tensor **places[kMaxLeaves], *given[kMaxLeaves], *outs[kMaxOuts] = {NULL};
  tt_graph* g = NULL;
  int n_outs = 0, refused = 0;
  const int n = tensor_places(&t, places);
  doing = "with bound inputs and outputs";
  for (int i = 0; i < n; i++) OK(tt_clone(c, *places[i], NULL, &given[i]));
  for (int i = 0; i < n; i++) OK(tt_clone(c, *places[i], NULL, places[i]));
  {
    const tt_tensor* in[kMaxLeaves];
    for (int i = 0; i < n; i++) in[i] = *places[i];
    OK(tt_manual_seed(c, 11));
    OK(tt_capture_begin(c, in, n, NULL));
  }
  if (call(&t, outs, &n_outs) || tt_capture_end(c, (const tt_tensor* const*)outs, n_outs, &g)) {
    OK(tt_capture_drop(c));
    return;
  }
  OK(tt_manual_seed(c, 11));
  const char* wrong = wrong_bound(c, g, given, n, outs, n_outs, &n_bound, &refused);
  if (wrong) fail_msg("%s (%s): %s", s->row->name, s->what, wrong);
  n_bound_calls += !refused;
  tt_graph_release(g);
}

static void check_sample(const Sample* s, void* user) {
  (void)user;
  if (s->big) return;
  OK(tt_scope_push(c));
  check_call(s);
  if (s->row->n_outs && has_values(s->row)) check_bound(s);
  if (s->smooth && s->row->differentiable && s->row->n_outs) check_gradients(s);
  OK(tt_scope_pop(c, NULL, 0));
  scratch_clear();
}

/* Two steps of a rule, with clipped gradients, from equal parameters. */
static void train(int adam, tt_tensor** params) {
  static const double kValues[] = {1, -2, 3, 0.5, 0.25, -4};
  tt_optimizer* o = NULL;
  tt_tensor* total = NULL;
  params[0] = param(SHAPE(2, 3), kValues, 6);
  params[1] = leaf(kValues, 5);
  if (adam) OK(tt_optim_adam(c, params, 2, NULL, &o));
  else OK(tt_optim_sgd(c, params, 2, NULL, &o));
  for (int step = 0; step < 2; step++) {
    tt_tensor *a, *b, *loss;
    OK(tt_mul(c, params[0], params[0], &a));
    OK(tt_exp(c, params[1], &b));
    OK(tt_add(c, sum_of(a), sum_of(b), &loss));
    OK(tt_optim_zero_grad(c, o, 1));
    OK(tt_backward(c, loss, NULL));
    OK(tt_clip_grad_norm_(c, params, 2, 0.5, NULL, &total));
    OK(tt_optim_step(c, o));
  }
  tt_optim_release(o);
}

static void test_training(void** state) {
  (void)state;
  for (int adam = 0; adam < 2; adam++) {
    tt_tensor* want[2];
    tt_tensor* got[2];
    train(adam, want);
    observe_launches(c);
    train(adam, got);
    observe_nothing(c);
    for (int i = 0; i < 2; i++)
      assert_memory_equal(tt_tensor_data(got[i]), tt_tensor_data(want[i]),
                          (size_t)tt_tensor_numel(want[i]) * 8);
  }
}

static void test_row(void** state) { each_sample(*state, check_sample, NULL); }

int main(int argc, char** argv) {
  struct CMUnitTest* tests = calloc((size_t)kNumRows + 1, sizeof *tests);
  const char* unseen[64];
  int n = 0;
  for (int i = 0; i < kNumRows; i++) {
    if (argc > 1 && strcmp(argv[1], kRows[i].name)) continue;
    tests[n].name = kRows[i].name;
    tests[n].test_func = test_row;
    tests[n].setup_func = open_plain;
    tests[n].teardown_func = close_ctx;
    tests[n++].initial_state = (void*)&kRows[i];
  }
  if (argc < 2) tests[n++] = (struct CMUnitTest)SCOPED(test_training);
  const int failed = _cmocka_run_group_tests("op_launches", tests, (size_t)n, NULL, NULL);
  const int missing = unseen_kernels(unseen, 64);
  print_message(
      "%d operators, %d calls, %d of them read elements, %d plans with %d bound tensors; "
      "kernels not launched:",
      n, n_calls, n_reading, n_bound_calls, n_bound);
  for (int i = 0; i < missing && i < 64; i++) print_message(" %s", unseen[i]);
  print_message("\n");
  free(tests);
  return failed;
}
