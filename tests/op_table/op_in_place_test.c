/* Every in-place operator, on every smooth sample of its family, on tensors with a history:
   clones of leaves, views of several layouts, bases of views. Values, gradients and second
   derivatives must equal those of the same formula with the pure operator, which op_table_test.c
   compares with finite differences. */
#include "expressions.h"
#include "op_table.h"

#include <float.h>
#include <math.h>

static const char* doing = "";
static int n_samples, n_cases;

static void lost(const Sample* s, const char* text) {
  print_error("%s, sample \"%s\", %s: %s\n", s->row->name, s->what, doing, text);
  fail();
}
#define DO(s, call)                                                         \
  do {                                                                      \
    if ((call)) lost((s), tt_ctx_error(c) ? tt_ctx_error(c)->message : ""); \
  } while (0)

/* ---- operators in one line ---- */

static tt_tensor* clone_of(const tt_tensor* t) {
  tt_tensor* out;
  OK(tt_clone(c, t, NULL, &out));
  return out;
}

/* ---- self as a base or a view ---- */

/* The base of self, and self as a view of it; for kWhole and kBase, the base itself. */
typedef enum Place { kWhole, kBase, kRows1, kColumns2, kTransposed, kView, kNumPlaces } Place;
static const char* const kPlaceNames[] = {"a clone",           "the base of a view",
                                          "a view of rows",    "a view of every second element",
                                          "a transposed view", "a view of all"};

/* The shape of a base that contains self. */
static int base_shape(Place place, const tt_tensor* self, int64_t* shape) {
  const int nd = (int)tt_tensor_ndim(self);
  int d;
  for (d = 0; d < nd; d++) shape[d] = tt_tensor_shape(self)[d];
  if (place == kWhole || place == kBase || place == kView) return nd;
  if (nd == 0) {
    shape[0] = 3;
    return 1;
  }
  if (place == kRows1) shape[0] += 2;
  if (place == kColumns2) shape[nd - 1] = shape[nd - 1] * 2 + 1;
  if (place == kTransposed) {
    for (d = 0; d < nd; d++) shape[d] = tt_tensor_shape(self)[nd - 1 - d];
    shape[0] += 1;
  }
  return nd;
}

/* The part of a base, or of a tensor of its shape, that is self. */
static tt_tensor* part_of(Place place, tt_tensor* base, const tt_tensor* self) {
  const int nd = (int)tt_tensor_ndim(self);
  int64_t back[kMaxDims];
  tt_tensor* out = base;
  int d;
  if (place == kWhole || place == kBase) return base;
  if (place == kView) {
    OK(tt_view(c, base, tt_tensor_shape(base), tt_tensor_ndim(base), &out));
    return out;
  }
  if (nd == 0) {
    OK(tt_select(c, base, 0, 1, &out));
    return out;
  }
  if (place == kRows1) OK(tt_narrow(c, base, 0, 1, tt_tensor_shape(self)[0], &out));
  if (place == kColumns2) {
    const tt_slice_opts odd = {.set = TT_SLICE_START | TT_SLICE_STEP, .start = 1, .step = 2};
    OK(tt_slice(c, base, nd - 1, &odd, &out));
  }
  if (place == kTransposed) {
    OK(tt_narrow(c, base, 0, 1, tt_tensor_shape(self)[nd - 1], &out));
    for (d = 0; d < nd; d++) back[d] = nd - 1 - d;
    OK(tt_permute(c, out, back, nd, &out)); /* a view of a view */
  }
  return out;
}

/* ---- leaves ---- */

static double value_at(int64_t i, int k) {
  return 0.5 + fmod(0.6180339887498949 * (double)(i + 1 + 7 * k), 1.0);
}
static tt_tensor* numbers_of(const int64_t* shape, int nd, int k) {
  int64_t n = 1, i;
  double* v;
  tt_tensor* out;
  int d;
  for (d = 0; d < nd; d++) n *= shape[d];
  v = malloc((size_t)(n + 1) * sizeof *v);
  for (i = 0; i < n; i++) v[i] = value_at(i, k);
  out = make(TT_F64, shape, nd, v, n);
  free(v);
  return out;
}
static tt_tensor* numbers_like(const tt_tensor* t, int k) {
  return numbers_of(tt_tensor_shape(t), (int)tt_tensor_ndim(t), k);
}

enum { kMaxLeaves = kMaxTensors };
typedef struct Leaves {
  tt_tensor*
      at[kMaxLeaves]; /* leaves: of the base and of the other tensors that require a gradient */
  int n;
} Leaves;
typedef enum Wish { kAll, kSelf, kOthers, kNumWishes } Wish; /* what requires a gradient */
static const char* const kWishNames[] = {"", ", only self requires a gradient",
                                         ", self requires none"};

/* The leaf of the base, holding self's values, and s's other float64 tensors as leaves. */
static tt_tensor* make_leaves(Sample* s, Place place, Wish wish, Leaves* l) {
  tt_tensor** places[kMaxTensors];
  int64_t shape[kMaxDims];
  tt_tensor *self = s->args[0].tensor, *base;
  const int nd = base_shape(place, self, shape);
  int i, n = tensor_places(s, places);
  base = numbers_of(shape, nd, 3);
  OK(tt_copy_(c, part_of(place, base, self), self));
  OK(tt_detach(c, base, &base)); /* of version 1, without views */
  OK(tt_clone(c, base, NULL, &base));
  l->n = 0;
  if (wish != kOthers) {
    OK(tt_requires_grad_(c, base, 1));
    l->at[l->n++] = base;
  }
  for (i = 1; i < n; i++) {
    if (wish == kSelf || tt_tensor_dtype(*places[i]) != TT_F64) continue;
    *places[i] = clone_of(*places[i]);
    OK(tt_requires_grad_(c, *places[i], 1));
    l->at[l->n++] = *places[i];
  }
  return base;
}

/* ---- both forms ---- */

static tt_status call_on(const Sample* s, tt_tensor* self, const char* suffix, tt_tensor** outs) {
  tt_value args[kMaxArgs];
  char name[96];
  const tt_op* op;
  int64_t n_outs = 0;
  snprintf(name, sizeof name, "%s%s", s->row->name, suffix);
  OK(tt_op_find(c, name, &op));
  memcpy(args, s->args, sizeof args);
  point_to_items(s, args);
  args[0].tensor = self;
  if (row_samples(s->row)->drawn) OK(tt_manual_seed(c, 11));
  return tt_op_call(c, op, args, s->row->n_args, outs, outs ? kMaxOuts : 0, &n_outs);
}

/* The weighted sum of the squares of the base and of the view: both histories take part, and
   second derivatives are not 0. */
static tt_tensor* loss_of(const tt_tensor* squares, const tt_tensor* of_view) {
  return add(sum_of(squares), sum_of(mul(of_view, numbers_like(of_view, 1))));
}

/* The in-place operator on a part of the base. NULL: it refuses a result of another shape. */
static tt_tensor* in_place(const Sample* s, Place place, tt_tensor* leaf_of_base) {
  tt_tensor *base = clone_of(leaf_of_base), *view = NULL, *self;
  tt_status st;
  if (place == kBase) OK(tt_view(c, base, tt_tensor_shape(base), tt_tensor_ndim(base), &view));
  self = part_of(place, base, s->args[0].tensor);
  st = call_on(s, self, s->row->n_outs ? "_" : "", NULL);
  if (st == TT_SHAPE || st == TT_INVALID_ARG) return NULL;
  DO(s, st);
  return loss_of(mul(mul(base, base), numbers_like(base, 0)), view ? view : self);
}

/* The same with the pure operator: the base's other elements and the result, weighted
   separately. */
static tt_tensor* apart(const Sample* s, Place place, tt_tensor* leaf_of_base) {
  tt_tensor *base = clone_of(leaf_of_base), *self, *outs[kMaxOuts] = {NULL}, *result,
            *w = numbers_like(base, 0), *mine, *rest, *sum;
  const tt_to_opts to = {.set = TT_TO_DTYPE, .dtype = TT_F64};
  self = clone_of(part_of(place, base, s->args[0].tensor));
  DO(s, call_on(s, self, "", s->row->n_outs ? outs : NULL));
  result = s->row->n_outs ? outs[0] : self;
  OK(tt_to(c, result, &to, &result)); /* comparisons give bools */
  mine = clone_of(part_of(place, w, self));
  OK(tt_zero_(c, part_of(place, w, self)));
  rest = sum_of(mul(mul(base, base), w));
  sum = loss_of(mul(mul(result, result), mine), result);
  return add(rest, sum);
}

/* ---- comparing ---- */

static void check_close(const Sample* s, const tt_tensor* got, const tt_tensor* want,
                        const char* what) {
  double *g = got ? values_of(got) : NULL, *w = want ? values_of(want) : NULL;
  const tt_tensor* any = got ? got : want;
  int64_t i;
  for (i = 0; any && i < tt_tensor_numel(any); i++) {
    const double x = g ? g[i] : 0, y = w ? w[i] : 0;
    if (fabs(x - y) <= 1e-11 * (1 + fabs(y))) continue;
    print_error("element %lld is %.17g, not %.17g\n", (long long)i, x, y);
    lost(s, what);
  }
  free(g);
  free(w);
}

/* The weighted sum of the gradients; NULL if there are none. */
static tt_tensor* weighted(tt_tensor** t, int n) {
  tt_tensor* total = NULL;
  int k;
  for (k = 0; k < n; k++) {
    tt_tensor* part;
    if (!t[k]) continue;
    part = sum_of(mul(t[k], numbers_like(t[k], k + 2)));
    total = total ? add(total, part) : part;
  }
  return total;
}

typedef struct Derivatives {
  tt_tensor *value, *first[kMaxLeaves], *second[kMaxLeaves];
} Derivatives;
static void derive_both(const Sample* s, tt_tensor* loss, const Leaves* l, Derivatives* d) {
  const tt_grad_opts create = {
      .set = TT_GRAD_CREATE_GRAPH | TT_GRAD_ALLOW_UNUSED, .create_graph = 1, .allow_unused = 1};
  const tt_grad_opts unused = {.set = TT_GRAD_ALLOW_UNUSED, .allow_unused = 1};
  const tt_tensor* const* in = (const tt_tensor* const*)l->at;
  tt_tensor* sum;
  memset(d, 0, sizeof *d);
  d->value = loss;
  if (!tt_tensor_requires_grad(loss)) return;
  DO(s, tt_grad(c, LIST(loss), in, l->n, &create, d->first));
  sum = weighted(d->first, l->n);
  if (sum && tt_tensor_requires_grad(sum))
    DO(s, tt_grad(c, LIST(sum), in, l->n, &unused, d->second));
}

static void check_case(const Sample* s, Place place, Wish wish) {
  Sample t = *s;
  Leaves l;
  Derivatives got, want;
  tt_tensor *base, *loss;
  static char text[96];
  int k;
  snprintf(text, sizeof text, "on %s%s", kPlaceNames[place], kWishNames[wish]);
  doing = text;
  OK(tt_scope_push(c));
  base = make_leaves(&t, place, wish, &l);
  loss = l.n ? in_place(&t, place, base) : NULL;
  if (loss) {
    n_cases++;
    derive_both(&t, loss, &l, &got);
    derive_both(&t, apart(&t, place, base), &l, &want);
    check_close(&t, got.value, want.value, "value");
    for (k = 0; k < l.n; k++) {
      check_close(&t, got.first[k], want.first[k], "gradient");
      check_close(&t, got.second[k], want.second[k], "second derivative");
    }
  }
  OK(tt_scope_pop(c, NULL, 0));
}

/* A leaf that requires a gradient and its views cannot be written: the call fails and changes
   nothing. */
static void check_leaf(const Sample* s) {
  Sample t = *s;
  Leaves l;
  int place;
  doing = "on a leaf";
  for (place = kWhole; place < kNumPlaces; place++) {
    tt_tensor *leaf_of_base, *before;
    double* values;
    tt_status st;
    OK(tt_scope_push(c));
    leaf_of_base = make_leaves(&t, place, kSelf, &l);
    before = clone_of(leaf_of_base);
    st = call_on(&t, part_of(place, leaf_of_base, s->args[0].tensor), s->row->n_outs ? "_" : "",
                 NULL);
    if (st != TT_AUTOGRAD && st != TT_SHAPE && st != TT_INVALID_ARG) lost(s, "was written");
    if (tt_tensor_version(leaf_of_base) != 0) lost(s, "has another version");
    values = values_of(before);
    values_at(leaf_of_base, values, tt_tensor_numel(before), 0, __FILE__, __LINE__);
    free(values);
    OK(tt_scope_pop(c, NULL, 0));
  }
}

/* ---- rows ---- */

/* A first argument without a gradient has no history to overwrite: a call with one is refused. */
static int takes_self(const Row* r) {
  const char* const* without = row_samples(r)->no_gradient;
  int i;
  if (!r->inplace && r->n_outs) return 0;
  for (i = 0; i < kMaxNoGradient && without[i]; i++)
    if (r->n_args && strcmp(r->args[0].name, without[i]) == 0) return 0;
  return 1;
}

static void check_sample(const Sample* s, void* user) {
  const tt_tensor* self = s->args[0].tensor;
  int place, wish;
  (void)user;
  if (!s->smooth || s->big || !self || tt_tensor_dtype(self) != TT_F64) return;
  n_samples++;
  for (place = kWhole; place < kNumPlaces; place++)
    for (wish = kAll; wish < kNumWishes; wish++) check_case(s, place, wish);
  check_leaf(s);
  scratch_clear();
}

static void test_row(void** state) {
  const Row* r = *state;
  const int before = n_cases;
  each_sample(r, check_sample, NULL);
  if (r->differentiable && n_cases == before)
    fail_msg("%s has no smooth sample that keeps its shape", r->name);
}

int main(int argc, char** argv) {
  struct CMUnitTest* tests = calloc((size_t)kNumRows, sizeof *tests);
  int i, n = 0, failed;
  for (i = 0; i < kNumRows; i++) {
    if (!takes_self(&kRows[i]) || (argc > 1 && strcmp(argv[1], kRows[i].name))) continue;
    tests[n].name = kRows[i].name;
    tests[n].test_func = test_row;
    tests[n].setup_func = open_plain;
    tests[n].teardown_func = close_ctx;
    tests[n++].initial_state = (void*)&kRows[i];
  }
  failed = _cmocka_run_group_tests("op_in_place", tests, (size_t)n, NULL, NULL);
  print_message("%d operators, %d samples, %d cases\n", n, n_samples, n_cases);
  free(tests);
  return failed;
}
