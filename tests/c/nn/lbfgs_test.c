/* LBFGS: steps against PyTorch's, state, checkpoints, failures that change nothing. */
#include "harness.h"

#include <math.h>
#include <unistd.h>

enum { kHalf = 2, kAll = 4 };
static tt_tensor* half[2]; /* the parameters: two halves of a point */
static tt_optimizer* opt;

/* What the closure does. */
typedef struct Closure {
  int calls, fail_at; /* the call that fails; 0: none */
  int grow_at;        /* the call that changes the shape of a parameter; 0: none */
  int negate, drops;
} Closure;

/* Rosenbrock's function: sum(100 (x[i+1] - x[i]²)² + (1 - x[i])²). */
static tt_tensor* rosenbrock(tt_ctx* x) {
  const tt_tensor* both[] = {half[0], half[1]};
  tt_tensor *point = NULL, *low = NULL, *high = NULL, *square = NULL, *off = NULL, *rest = NULL;
  tt_tensor *off2 = NULL, *rest2 = NULL, *scaled = NULL, *terms = NULL, *loss = NULL;
  assert_int_equal(tt_scope_push(x), 0);
  assert_int_equal(tt_cat(x, both, 2, NULL, &point), 0);
  assert_int_equal(tt_narrow(x, point, 0, 0, kAll - 1, &low), 0);
  assert_int_equal(tt_narrow(x, point, 0, 1, kAll - 1, &high), 0);
  assert_int_equal(tt_mul(x, low, low, &square), 0);
  assert_int_equal(tt_sub(x, high, square, &off), 0);
  assert_int_equal(tt_mul(x, off, off, &off2), 0);
  assert_int_equal(tt_mul_f64(x, off2, 100, &scaled), 0);
  assert_int_equal(tt_rsub_f64(x, low, 1, &rest), 0);
  assert_int_equal(tt_mul(x, rest, rest, &rest2), 0);
  assert_int_equal(tt_add(x, scaled, rest2, &terms), 0);
  assert_int_equal(tt_sum(x, terms, NULL, &loss), 0);
  assert_int_equal(tt_scope_pop(x, &loss, 1), 0);
  return loss;
}
static tt_status closure(void* user, tt_ctx* x, tt_tensor** loss) {
  Closure* k = user;
  tt_tensor* wide = NULL;
  k->calls++;
  assert_int_equal(tt_optim_zero_grad(x, opt, 1), 0);
  *loss = rosenbrock(x);
  if (k->negate) {
    tt_tensor* negative = NULL;
    assert_int_equal(tt_neg(x, *loss, &negative), 0);
    tt_tensor_release(*loss);
    *loss = negative;
  }
  assert_int_equal(tt_backward(x, *loss, NULL), 0);
  if (k->calls == k->fail_at) {
    tt_tensor_release(*loss);
    *loss = NULL;
    return TT_IO;
  }
  if (k->calls == k->grow_at) {
    const double three[] = {1, 2, 3};
    assert_int_equal(tt_tensor_from_data(x, three, TT_F64, SHAPE(3), &wide), 0);
    assert_int_equal(tt_tensor_set_data(x, half[1], wide), 0);
    tt_tensor_release(wide);
  }
  return TT_OK;
}
static void count_drop(void* user) { ((Closure*)user)->drops++; }

static void start(const tt_optim_lbfgs_opts* opts) {
  half[0] = leaf(DATA(-1.2, 1));
  half[1] = leaf(DATA(-0.5, 0.8));
  OK(tt_optim_lbfgs(c, half, 2, opts, &opt));
}
static double step(Closure* k) {
  tt_tensor* loss = NULL;
  OK(tt_optim_step_closure(c, opt, closure, k, NULL, &loss));
  return value_of(loss);
}
static double number_at_state(const char* name) {
  tt_tensor* t = NULL;
  OK(tt_optim_get_state(c, opt, 0, name, &t));
  assert_non_null(t);
  return value_of(t);
}

/* ---- against PyTorch 2.15 ---- */

typedef struct Step {
  double loss, point[kAll], func_evals, n_iter, t, diagonal;
} Step;
typedef struct Case {
  tt_optim_lbfgs_opts o;
  Step steps[3];
} Case;
static const Case kCases[] = {
    {{.set = TT_OPTIM_LBFGS_LR | TT_OPTIM_LBFGS_MAX_ITER | TT_OPTIM_LBFGS_HISTORY_SIZE,
      .lr = 0.01,
      .max_iter = 7,
      .history_size = 3},
     {{281.7,
       {-1.1778893220297624, 0.9724052871057098, -0.47554124865695857, 0.7708010739416145},
       7,
       7,
       0.01,
       0.0008673602005671591},
      {255.76710058799483,
       {-1.1322465002126456, 0.9600338210572278, -0.22988791283731033, 0.5140371937639697},
       14,
       14,
       0.01,
       0.000374879808252982},
      {170.30267077954136,
       {-1.1155835236581524, 0.9906862248955557, 0.06709491538203471, 0.28397682259682944},
       21,
       21,
       0.01,
       0.0012066836543753476}}},
    {{.set = TT_OPTIM_LBFGS_MAX_ITER | TT_OPTIM_LBFGS_LINE_SEARCH_FN,
      .max_iter = 9,
      .line_search_fn = TT_LINESEARCH_STRONG_WOLFE},
     {{281.7,
       {-0.4274888530921476, 0.19908437947473118, 0.048590669045781874, 0.00035883350146029784},
       10,
       9,
       1,
       0.002690526885988131},
      {3.619483908473169,
       {-0.049430920365824686, -0.019672592993157538, -0.0019019622385076619,
        -0.00032602414481017026},
       22,
       15,
       0.5157174726543035,
       0.004011966407535761},
      {3.1942915865112753,
       {0.501438688248219, 0.2436726710781786, 0.023937049340831802, 0.01708639330249184},
       33,
       23,
       0.2870125388910364,
       0.008137534084924613}}},
    {{.set = TT_OPTIM_LBFGS_LR | TT_OPTIM_LBFGS_MAX_ITER | TT_OPTIM_LBFGS_MAX_EVAL |
             TT_OPTIM_LBFGS_HISTORY_SIZE | TT_OPTIM_LBFGS_LINE_SEARCH_FN,
      .lr = 0.5,
      .max_iter = 30,
      .max_eval = 12,
      .history_size = 4,
      .line_search_fn = TT_LINESEARCH_STRONG_WOLFE},
     {{281.7,
       {-0.6129160328448294, 0.38826183936546227, 0.1585800444858301, 0.02530025549215823},
       12,
       11,
       0.5,
       0.003837626768345278},
      {3.7057121922749667,
       {-0.45900989062629444, 0.21461087426013198, 0.052532651430067384, -0.007052045263933178},
       24,
       18,
       10.626642982550722,
       0.002904977316541865},
      {.n_iter = 0}}},
};

/* Rounding grows from step to step. */
static void near(double got, double want, const char* what) {
  if (!(fabs(got - want) <= 1e-6 * fmax(1e-3, fabs(want))))
    fail_msg("%s is %.17g, PyTorch's is %.17g", what, got, want);
}
static void run_case(const Case* k, int maximize) {
  Closure use = {.negate = maximize};
  tt_optim_lbfgs_opts o = k->o;
  int i, j;
  o.set |= TT_OPTIM_LBFGS_MAXIMIZE;
  o.maximize = maximize;
  start(&o);
  for (i = 0; i < 3 && k->steps[i].n_iter > 0; i++) {
    const Step* want = &k->steps[i];
    near(step(&use), maximize ? -want->loss : want->loss, "the loss");
    for (j = 0; j < kAll; j++) {
      double* v = values_of(half[j / kHalf]);
      near(v[j % kHalf], want->point[j], "a parameter");
      free(v);
    }
    assert_true(number_at_state("func_evals") == want->func_evals);
    assert_true(use.calls == (int)want->func_evals);
    assert_true(number_at_state("n_iter") == want->n_iter);
    near(number_at_state("t"), want->t, "t");
    near(number_at_state("H_diag"), want->diagonal, "H_diag");
  }
  tt_optim_release(opt);
}
static void test_pytorch(void** state) {
  size_t i;
  (void)state;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    print_message("case %d\n", (int)i);
    run_case(&kCases[i], 0);
    run_case(&kCases[i], 1);
  }
}

static void test_minimum(void** state) {
  const tt_optim_lbfgs_opts o = {.set = TT_OPTIM_LBFGS_LINE_SEARCH_FN,
                                 .line_search_fn = TT_LINESEARCH_STRONG_WOLFE};
  Closure k = {0};
  double evals;
  int i;
  (void)state;
  start(&o);
  for (i = 0; i < 6; i++) step(&k);
  NEAR(half[0], 1e-6, 1, 1);
  NEAR(half[1], 1e-6, 1, 1);
  evals = number_at_state("func_evals");
  step(&k); /* the gradient is 0: one evaluation is enough */
  assert_true(number_at_state("func_evals") == evals + 1);
  tt_optim_release(opt);
}

/* ---- failures ---- */

static void test_atomic(void** state) {
  const tt_optim_lbfgs_opts o = {.set = TT_OPTIM_LBFGS_LINE_SEARCH_FN,
                                 .line_search_fn = TT_LINESEARCH_STRONG_WOLFE};
  const int64_t two[] = {2};
  Closure k = {0};
  tt_tensor* loss = NULL;
  double before[2], after[2], n_iter;
  uint32_t version;
  int64_t tensors;
  int i;
  (void)state;
  start(&o);
  step(&k);
  tensors = tt_optim_num_tensors(opt);
  n_iter = number_at_state("n_iter");
  version = tt_tensor_version(half[0]);
  OK(tt_tensor_read(c, half[0], before, sizeof before));
  for (i = 1; i <= 9; i++) {
    Closure bad = {.fail_at = i};
    FAILS(tt_optim_step_closure(c, opt, closure, &bad, count_drop, &loss), TT_CALLBACK, "closure");
    assert_null(loss);
    assert_true(bad.calls == i && bad.drops == 1);
    OK(tt_tensor_read(c, half[0], after, sizeof after));
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(tt_tensor_version(half[0]), version);
    assert_int_equal(tt_optim_num_tensors(opt), tensors);
    assert_true(number_at_state("n_iter") == n_iter);
  }
  {
    Closure grows = {.grow_at = 2};
    tt_tensor* old = NULL;
    OK(tt_clone(c, half[1], NULL, &old));
    OK(tt_detach(c, old, &old));
    FAILS(tt_optim_step_closure(c, opt, closure, &grows, NULL, &loss), TT_INVALID_ARG, "shape");
    OK(tt_tensor_set_data(c, half[1], old));
    HAS_SHAPE(half[1], two[0]);
  }
  FAILS(tt_optim_step(c, opt), TT_INVALID_ARG, "closure");
  tt_optim_release(opt);
}

static void test_hostile(void** state) {
  const tt_optim_lbfgs_opts lr = {.set = TT_OPTIM_LBFGS_LR, .lr = -1};
  const tt_optim_lbfgs_opts iterations = {.set = TT_OPTIM_LBFGS_MAX_ITER, .max_iter = -1};
  const tt_optim_lbfgs_opts history = {.set = TT_OPTIM_LBFGS_HISTORY_SIZE, .history_size = 0};
  const tt_optim_lbfgs_opts search = {.set = TT_OPTIM_LBFGS_LINE_SEARCH_FN, .line_search_fn = 2};
  const double re_im[] = {1, 2};
  tt_optimizer* none = NULL;
  tt_tensor* z = NULL;
  tt_tensor* loss = NULL;
  Closure k = {0};
  (void)state;
  start(NULL);
  FAILS(tt_optim_lbfgs(c, half, 2, &lr, &none), TT_INVALID_ARG, "lr is -1");
  FAILS(tt_optim_lbfgs(c, half, 2, &iterations, &none), TT_INVALID_ARG, "max_iter is -1");
  FAILS(tt_optim_lbfgs(c, half, 2, &history, &none), TT_INVALID_ARG, "history_size is 0");
  FAILS(tt_optim_lbfgs(c, half, 2, &search, &none), TT_INVALID_ARG, "strong_wolfe");
  OK(tt_tensor_from_data(c, re_im, TT_C128, SHAPE(1), &z));
  OK(tt_requires_grad_(c, z, 1));
  FAILS(tt_optim_lbfgs(c, &z, 1, NULL, &none), TT_DTYPE, "complex");
  FAILS(tt_optim_add_param_group(c, opt, &z, 1), TT_INVALID_ARG, "one group");
  OK(tt_optim_set_f64(c, opt, 0, "history_size", NAN));
  FAILS(tt_optim_step_closure(c, opt, closure, &k, NULL, &loss), TT_INVALID_ARG, "history_size");
  assert_int_equal(k.calls, 0);
  tt_optim_release(opt);
  OK(tt_optim_lbfgs(c, NULL, 0, NULL, &opt)); /* without parameters: the loss alone */
  step(&k);
  assert_int_equal(k.calls, 1);
  assert_int_equal(tt_optim_num_numbers(opt), 0);
  tt_optim_release(opt);
}

/* ---- state ---- */

/* An optimizer that has another's state continues bit-equal to it. */
static void test_state(void** state) {
  char name[96], path[64];
  Closure k = {0};
  tt_optimizer *first, *second;
  tt_tensor *t = NULL, *old[2], *other[2];
  double a[2], b[2], v;
  int64_t i, j;
  (void)state;
  start(NULL);
  for (i = 0; i < 2; i++) step(&k);
  first = opt;
  assert_int_equal(tt_optim_num_tensors(first), 2 + 2 * 30); /* of 40 updates, 30 curve upwards */
  for (j = 0; j < 2; j++) {
    double* values = values_of(half[j]);
    old[j] = half[j];
    other[j] = leaf(values, kHalf);
    free(values);
  }
  OK(tt_optim_lbfgs(c, other, 2, NULL, &second));
  for (i = 0; i < tt_optim_num_tensors(first); i++) {
    OK(tt_optim_tensor_at(c, first, i, name, sizeof name, &t));
    OK(tt_optim_load_tensor(c, second, name, t));
  }
  for (i = 0; i < tt_optim_num_numbers(first); i++) {
    OK(tt_optim_number_at(c, first, i, name, sizeof name, &v));
    OK(tt_optim_load_number(c, second, name, v));
  }
  assert_string_equal(name, "param_groups.0.maximize");
  snprintf(path, sizeof path, "/tmp/tt_lbfgs_%ld", (long)getpid());
  {
    const tt_checkpoint parts = {.struct_size = sizeof parts, .optimizer = first};
    OK(tt_checkpoint_save(c, path, &parts));
  }
  step(&k);
  half[0] = other[0];
  half[1] = other[1];
  opt = second;
  step(&k);
  for (i = 0; i < 2; i++) {
    OK(tt_tensor_read(c, old[i], a, sizeof a));
    OK(tt_tensor_read(c, other[i], b, sizeof b));
    assert_memory_equal(a, b, sizeof a);
  }
  {
    const tt_checkpoint parts = {.struct_size = sizeof parts, .optimizer = second};
    const double iterations = number_at_state("n_iter");
    OK(tt_checkpoint_load(c, path, &parts));
    assert_true(number_at_state("n_iter") < iterations);
    assert_int_equal(tt_optim_num_tensors(second), 2 + 2 * 30);
  }
  unlink(path);
  tt_optim_release(first);
  tt_optim_release(second);
}

static void test_parts(void** state) {
  static const char* const bad[] = {"state.0.",          "state.0.old_dirs",
                                    "state.0.old_dirs.", "state.0.old_dirs.x",
                                    "state.0.ro.-1",     "state.0.old_stps.99999999999999999999",
                                    "state.0.exp_avg",   "state.0.old_dirs.1048576"};
  Closure k = {0};
  tt_tensor* loss = NULL;
  tt_tensor* t = NULL;
  tt_tensor* four = numbers(TT_F64, DATA(1, 2, 3, 4));
  size_t i;
  (void)state;
  start(NULL);
  OK(tt_optim_get_state(c, opt, 0, "d", &t));
  assert_null(t);
  for (i = 0; i < sizeof bad / sizeof *bad; i++)
    FAILS(tt_optim_load_tensor(c, opt, bad[i], four), TT_INVALID_ARG, NULL);
  FAILS(tt_optim_load_tensor(c, opt, "state.0.d", half[0]), TT_SHAPE, "4 elements");
  FAILS(tt_optim_load_tensor(c, opt, "state.1.d", four), TT_INVALID_ARG, "parameter 0");
  FAILS(tt_optim_load_tensor(c, opt, "state.2.d", four), TT_INDEX, NULL);
  FAILS(tt_optim_load_number(c, opt, "state.0.n_iter", -1), TT_INVALID_ARG, "n_iter");
  FAILS(tt_optim_load_number(c, opt, "state.0.d", 1), TT_SHAPE, NULL);
  assert_int_equal(tt_optim_num_tensors(opt), 0);
  /* a state in parts is refused by the step, and its parts can be removed again */
  OK(tt_optim_load_tensor(c, opt, "state.0.old_dirs.1", four));
  assert_int_equal(tt_optim_num_tensors(opt), 1);
  OK(tt_optim_load_number(c, opt, "state.0.n_iter", 3));
  FAILS(tt_optim_step_closure(c, opt, closure, &k, NULL, &loss), TT_INVALID_ARG, "load the state");
  assert_int_equal(k.calls, 0);
  OK(tt_optim_set_state(c, opt, 0, "old_dirs.0", NULL));
  OK(tt_optim_set_state(c, opt, 0, "n_iter", NULL));
  assert_int_equal(tt_optim_num_tensors(opt), 0);
  step(&k);
  tt_optim_release(opt);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_pytorch), SCOPED(test_minimum), SCOPED(test_atomic),
      SCOPED(test_hostile), SCOPED(test_state),   SCOPED(test_parts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
