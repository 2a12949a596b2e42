/* Every differentiable operator; before backward, one of its leaves gets data of another shape
   or other strides. Backward fails or does not use the leaf, and reads nothing outside the
   tensors, which a sanitizer checks. */
#include "op_table.h"

static int n_runs, n_refused;

enum { kMaxLeaves = kMaxTensors };

/* The float64 tensors of s as leaves; their number. */
static int make_leaves(Sample* s, tt_tensor** leaves) {
  tt_tensor** places[kMaxLeaves];
  int i, n = tensor_places(s, places), n_leaves = 0;
  for (i = 0; i < n; i++) {
    if (tt_tensor_dtype(*places[i]) != TT_F64) continue;
    OK(tt_clone(c, *places[i], NULL, places[i]));
    OK(tt_requires_grad_(c, *places[i], 1));
    leaves[n_leaves++] = *places[i];
  }
  return n_leaves;
}

/* The sum of all results that have a history; NULL if none has. */
static tt_tensor* total_of(Sample* s) {
  tt_tensor *outs[kMaxOuts] = {NULL}, *total = NULL;
  const tt_op* op;
  int64_t n_outs = 0, k;
  OK(tt_op_find(c, s->row->name, &op));
  point_to_items(s, s->args);
  if (tt_op_call(c, op, s->args, s->row->n_args, outs, kMaxOuts, &n_outs)) return NULL;
  for (k = 0; k < n_outs; k++) {
    tt_tensor* sum;
    if (!outs[k] || !tt_tensor_requires_grad(outs[k])) continue;
    sum = sum_of(outs[k]);
    if (total) OK(tt_add(c, total, sum, &total));
    else total = sum;
  }
  return total;
}

/* Data of another shape or other strides than t's. */
typedef enum Change { kScalar, kOnes, kEmpty, kFloat32, kComplex, kNumChanges } Change;
static tt_tensor* other_data(const tt_tensor* t, Change change) {
  const int64_t ones[kMaxDims] = {1, 1, 1, 1, 1, 1, 1, 1}, empty[] = {0, 0};
  const int64_t* shape = tt_tensor_shape(t);
  int64_t nd = tt_tensor_ndim(t);
  tt_ones_opts opts = {.set = TT_ONES_DTYPE, .dtype = TT_F64};
  tt_tensor* out;
  if (change == kScalar) nd = 0;
  if (change == kOnes) shape = ones;
  if (change == kEmpty) {
    shape = empty;
    nd = 2;
  }
  if (change == kFloat32) opts.dtype = TT_F32;
  if (change == kComplex) opts.dtype = TT_C128;
  OK(tt_ones(c, shape, nd, &opts, &out));
  return out;
}

/* 0: there is no such leaf. */
static int run(const Sample* s, int leaf, Change change) {
  Sample t = *s;
  tt_tensor *leaves[kMaxLeaves], *total;
  int n_leaves;
  OK(tt_scope_push(c));
  n_leaves = make_leaves(&t, leaves);
  total = leaf < n_leaves ? total_of(&t) : NULL;
  if (total) {
    OK(tt_tensor_set_data(c, leaves[leaf], other_data(leaves[leaf], change)));
    n_runs++;
    if (tt_backward(c, total, NULL)) n_refused++;
  }
  OK(tt_scope_pop(c, NULL, 0));
  return leaf < n_leaves;
}

static void check_sample(const Sample* s, void* user) {
  int leaf, change;
  (void)user;
  if (!s->smooth || s->big) return;
  for (change = 0; change < kNumChanges; change++)
    for (leaf = 0; run(s, leaf, change);) leaf++;
  scratch_clear();
}

static void test_row(void** state) { each_sample(*state, check_sample, NULL); }

int main(int argc, char** argv) {
  struct CMUnitTest* tests = calloc((size_t)kNumRows, sizeof *tests);
  int i, n = 0, failed;
  for (i = 0; i < kNumRows; i++) {
    const Row* r = &kRows[i];
    if (!r->differentiable || r->n_outs == 0 || (argc > 1 && strcmp(argv[1], r->name))) continue;
    tests[n].name = r->name;
    tests[n].test_func = test_row;
    tests[n].setup_func = open_plain;
    tests[n].teardown_func = close_ctx;
    tests[n++].initial_state = (void*)r;
  }
  failed = _cmocka_run_group_tests("op_new_data", tests, (size_t)n, NULL, NULL);
  print_message("%d operators, %d runs, %d refused\n", n, n_runs, n_refused);
  free(tests);
  return failed;
}
