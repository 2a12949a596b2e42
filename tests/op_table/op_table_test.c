/* Every operator that hosts can name, on every sample of its family: values against a reference in
   double precision, gradients and second derivatives against finite differences, in place and into
   against pure, other layouts, META, the instruction set (TT_TEST_ISA) against the baseline, a
   device (TT_TEST_DEVICE: fake, ext) against the CPU, two threads against one. */
#include "op_table.h"

#include "ext_backend.h"

#include <float.h>
#include <math.h>

const Row kRows[] = {
#include "op_rows.inc"
};
const int kNumRows = (int)(sizeof kRows / sizeof *kRows);

static int device_type = TT_CPU;
static ExtMemory ext_memory;
static tt_ctx *base_ctx, *two_ctx; /* baseline instruction set; two threads */
static const char* doing = "";     /* for messages */
static int n_samples, n_gradients;

static void lost(const Sample* s, const char* text, double got, double want) {
  print_error("%s, sample \"%s\", %s: %s (%.17g, want %.17g)\n", s->row->name, s->what, doing, text,
              got, want);
  fail();
}
#define DO(s, call)                                                                \
  do {                                                                             \
    if ((call)) {                                                                  \
      print_error("%s, sample \"%s\", %s: %s\n", (s)->row->name, (s)->what, doing, \
                  tt_ctx_error(c)->message);                                       \
      fail();                                                                      \
    }                                                                              \
  } while (0)

static int is_random(const Row* r) { return row_samples(r)->drawn != NULL; }

/* ---- calling ---- */

/* The operator named row->name + suffix with s's arguments and more tensors behind them. */
static tt_status call_variant(const Sample* s, const char* suffix, tt_tensor** more, int n_more,
                              tt_tensor** outs, int64_t* n_outs) {
  tt_value args[kMaxArgs + kMaxOuts];
  char name[96];
  const tt_op* op;
  const int n = s->row->n_args;
  int i;
  snprintf(name, sizeof name, "%s%s", s->row->name, suffix);
  OK(tt_op_find(c, name, &op));
  memcpy(args, s->args, (size_t)n * sizeof *args);
  for (i = 0; i < n; i++)
    if (args[i].tag == TT_VAL_TENSORS) args[i].tensors = s->items;
  for (i = 0; i < n_more; i++) {
    memset(&args[n + i], 0, sizeof *args);
    args[n + i].tag = TT_VAL_TENSOR;
    args[n + i].tensor = more[i];
  }
  if (is_random(s->row)) OK(tt_manual_seed(c, 11));
  return tt_op_call(c, op, args, n + n_more, outs, kMaxOuts, n_outs);
}
static tt_tensor* clone_of(const tt_tensor* t) {
  tt_tensor* out;
  OK(tt_clone(c, t, NULL, &out));
  return out;
}
/* The operator as a function: one without results writes a copy of its first argument. Returns the
 * status; *n results.
 */
static tt_status call(const Sample* s, tt_tensor** outs, int* n) {
  Sample copy = *s;
  int64_t n_outs = 0;
  tt_status st;
  if (s->row->n_outs == 0) copy.args[0].tensor = clone_of(s->args[0].tensor);
  st = call_variant(&copy, "", NULL, 0, outs, &n_outs);
  if (s->row->n_outs == 0) {
    outs[0] = copy.args[0].tensor;
    n_outs = 1;
  }
  *n = (int)n_outs;
  return st;
}

/* ---- tensors of a sample in other forms ---- */

static tt_tensor* cast(const tt_tensor* t, tt_dtype d) {
  const tt_to_opts to = {.set = TT_TO_DTYPE, .dtype = d};
  tt_tensor* out;
  OK(tt_to(c, t, &to, &out));
  return out;
}
static int is_integer(tt_dtype d) { return d >= TT_BOOL && d <= TT_I64; }

static Sample with_dtype(const Sample* s, tt_dtype d) {
  Sample out = *s;
  tt_tensor **places[kMaxArgs + kMaxItems], *scaled;
  int i, n = tensor_places(&out, places);
  for (i = 0; i < n; i++) {
    if (tt_tensor_dtype(*places[i]) != TT_F64) continue;
    if (is_integer(d)) {
      OK(tt_mul_f64(c, *places[i], 4, &scaled)); /* small values would all become 0 and 1 */
      *places[i] = cast(scaled, d);
    } else {
      *places[i] = cast(*places[i], d);
    }
  }
  return out;
}
static int has_float64(const Sample* s) {
  Sample copy = *s;
  tt_tensor** places[kMaxArgs + kMaxItems];
  int i, n = tensor_places(&copy, places);
  for (i = 0; i < n; i++)
    if (tt_tensor_dtype(*places[i]) == TT_F64) return 1;
  return 0;
}

/* Equal values in another layout. 1: columns first; 2: every second element of each row; 3: rows
 * behind an offset. */
static tt_tensor* laid_out(const tt_tensor* t, int how) {
  const int nd = (int)tt_tensor_ndim(t);
  const int64_t* shape = tt_tensor_shape(t);
  int64_t wide[kMaxDims];
  tt_tensor *room, *view;
  const tt_zeros_opts dtype = {.set = TT_ZEROS_DTYPE, .dtype = tt_tensor_dtype(t)};
  int d;
  if (nd == 0) return (tt_tensor*)t;
  memcpy(wide, shape, (size_t)nd * sizeof *wide);
  if (how == 1) {
    for (d = 0; d < nd; d++) wide[d] = nd - 1 - d;
    OK(tt_permute(c, t, wide, nd, &view));
    OK(tt_contiguous(c, view, &room));
    OK(tt_permute(c, room, wide, nd, &view));
    return view;
  }
  wide[how == 2 ? nd - 1 : 0] = how == 2 ? shape[nd - 1] * 2 : shape[0] + 1;
  OK(tt_zeros(c, wide, nd, &dtype, &room));
  {
    const tt_slice_opts every2 = {.set = TT_SLICE_STEP, .step = 2};
    const tt_slice_opts behind = {.set = TT_SLICE_START, .start = 1};
    OK(tt_slice(c, room, how == 2 ? nd - 1 : 0, how == 2 ? &every2 : &behind, &view));
  }
  OK(tt_copy_(c, view, t));
  return view;
}
static Sample with_layout(const Sample* s, int how) {
  Sample out = *s;
  tt_tensor** places[kMaxArgs + kMaxItems];
  int i, n = tensor_places(&out, places);
  for (i = 0; i < n; i++) *places[i] = laid_out(*places[i], how);
  return out;
}
static Sample on_device(const Sample* s, int type) {
  Sample out = *s;
  tt_to_opts to = {.set = TT_TO_DEVICE};
  tt_tensor** places[kMaxArgs + kMaxItems];
  int i, n = tensor_places(&out, places);
  to.device.type = type;
  for (i = 0; i < n; i++) OK(tt_to(c, *places[i], &to, places[i]));
  for (i = 0; i < s->row->n_args; i++) {
    if (strncmp(s->row->args[i].type, "Device", 6) || (n && strcmp(s->row->args[0].name, "size")))
      continue;
    out.args[i].tag = TT_VAL_DEVICE;
    out.args[i].device.type = type;
    out.args[i].device.index = 0;
  }
  return out;
}

/* ---- comparing ---- */

static double epsilon(tt_dtype d) {
  return d == TT_F64 || d == TT_C128  ? DBL_EPSILON
         : d == TT_F32 || d == TT_C64 ? FLT_EPSILON
         : d == TT_F16                ? 0x1p-10
         : d == TT_BF16               ? 0x1p-7
                                      : 0;
}
static double largest(tt_dtype d) {
  return d == TT_F64 || d == TT_C128 ? DBL_MAX : d == TT_F16 ? 65504 : FLT_MAX;
}
static double smallest(tt_dtype d) {
  return d == TT_F64 || d == TT_C128 ? DBL_MIN : d == TT_F16 ? 0x1p-14 : FLT_MIN;
}

static void check_shape(const Sample* s, const tt_tensor* t, const int64_t* shape, int ndim) {
  int d;
  if (tt_tensor_ndim(t) != ndim) lost(s, "number of dimensions", (double)tt_tensor_ndim(t), ndim);
  for (d = 0; d < ndim; d++)
    if (tt_tensor_shape(t)[d] != shape[d])
      lost(s, "size", (double)tt_tensor_shape(t)[d], (double)shape[d]);
}

/* What an integer dtype keeps of w: the low bits. */
static double wrapped(double w, tt_dtype d) {
  const double range = ldexp(1, (int)(8 * tt_dtype_size(d)));
  if (d == TT_BOOL || d == TT_U8 || fabs(w) < range / 2) return w;
  w = fmod(w, range);
  return w >= range / 2 ? w - range : w < -range / 2 ? w + range : w;
}

/* ulps: of each value; share: of the largest value, for what is summed up. */
static void check_close(const Sample* s, const tt_tensor* t, const double* want, int64_t n,
                        double ulps, double share) {
  const tt_dtype d = tt_tensor_dtype(t);
  double* got = values_of(t);
  double scale = 0;
  int64_t i;
  for (i = 0; i < n; i++)
    if (fabs(want[i]) > scale && !isinf(want[i])) scale = fabs(want[i]);
  for (i = 0; i < n; i++) {
    double w = want[i], tol;
    if (is_integer(d)) w = wrapped(trunc(w), d);
    if (!is_integer(d) && fabs(w) > largest(d) * (1 - 2 * epsilon(d))) {
      if (got[i] == copysign(INFINITY, w) || got[i] == w ||
          fabs(got[i]) >= largest(d) * (1 - 4 * epsilon(d)))
        continue;
    }
    tol = epsilon(d) * (ulps * fabs(w) + share * (1 + scale)) + smallest(d) * epsilon(d);
    if (got[i] == w || (isnan(got[i]) && isnan(w)) || fabs(got[i] - w) <= tol) continue;
    print_error("element %lld of %s\n", (long long)i, tt_dtype_name(d));
    lost(s, "value", got[i], w);
  }
  free(got);
}

/* The same dtype, shape and, with ulps = 0, bits (any nan equals any nan). */
static void check_same(const Sample* s, const tt_tensor* a, const tt_tensor* b, double ulps,
                       double share) {
  double* want;
  size_t bytes = (size_t)(tt_tensor_numel(b) * tt_dtype_size(tt_tensor_dtype(b)));
  if (tt_tensor_dtype(a) != tt_tensor_dtype(b))
    lost(s, "dtype", tt_tensor_dtype(a), tt_tensor_dtype(b));
  check_shape(s, a, tt_tensor_shape(b), (int)tt_tensor_ndim(b));
  if (ulps == 0) {
    char* x = malloc(bytes + 1);
    char* y = malloc(bytes + 1);
    int same;
    OK(tt_tensor_read(c, a, x, (int64_t)bytes));
    OK(tt_tensor_read(c, b, y, (int64_t)bytes));
    same = memcmp(x, y, bytes) == 0;
    free(x);
    free(y);
    if (same) return;
  }
  want = values_of(b);
  check_close(s, a, want, tt_tensor_numel(b), ulps, share);
  free(want);
}

/* ---- values against the reference ---- */

static Array array_of(const tt_tensor* t) {
  Array a = {.ndim = (int)tt_tensor_ndim(t), .n = tt_tensor_numel(t)};
  double* v = values_of(t);
  memcpy(a.shape, tt_tensor_shape(t), (size_t)a.ndim * sizeof *a.shape);
  a.data = scratch((size_t)a.n * sizeof(double));
  memcpy(a.data, v, (size_t)a.n * sizeof(double));
  free(v);
  return a;
}
static Inputs inputs_of(const Sample* s) {
  Inputs in;
  int i;
  memset(&in, 0, sizeof in);
  in.sample = s;
  for (i = 0; i < s->row->n_args; i++) {
    const tt_value* v = &s->args[i];
    if (v->tag == TT_VAL_TENSOR) in.tensors[i] = array_of(v->tensor);
    for (; v->tag == TT_VAL_TENSORS && in.n_items < v->n; in.n_items++)
      in.items[in.n_items] = array_of(s->items[in.n_items]);
  }
  return in;
}

static int is_summed(const Row* r) { return row_samples(r)->summed; }

/* ---- random numbers: they have no reference, but a range, a mean and a variance ---- */

static void check_distribution(const Sample* s, const Drawn* want, const double* v, int64_t n) {
  double sum = 0;
  double squares = 0; /* of the distance to the mean */
  int64_t i;
  for (i = 0; i < n; i++) {
    sum += v[i];
    squares += (v[i] - want->mean) * (v[i] - want->mean);
    if (want->has_low && !(v[i] >= want->low && v[i] < want->high))
      lost(s, "range", v[i], want->low);
    if (want->integers && v[i] != trunc(v[i])) lost(s, "an integer", v[i], trunc(v[i]));
  }
  if (n < 1000) return;
  sum /= (double)n;
  squares /= (double)n;
  if (want->has_mean && fabs(sum - want->mean) > want->tolerance) lost(s, "mean", sum, want->mean);
  if (want->has_variance && fabs(squares - want->variance) > want->tolerance * want->variance)
    lost(s, "variance", squares, want->variance);
}
static void check_permutation(const Sample* s, const double* v, int64_t n) {
  char* seen = calloc((size_t)n + 1, 1);
  int64_t i, in_place = 0;
  for (i = 0; i < n; i++) {
    if (!(v[i] >= 0 && v[i] < (double)n) || v[i] != trunc(v[i]) || seen[(int64_t)v[i]]++)
      lost(s, "place", v[i], (double)n);
    in_place += v[i] == (double)i;
  }
  if (n > 1000 && in_place > 20) lost(s, "elements in place", (double)in_place, 1);
  free(seen);
}
/* Positions drawn by weights: their shares, and none twice where each is drawn at most once. */
static void check_weighted(const Sample* s, const Drawn* want, const double* v, int64_t n) {
  const int again = s->args[row_arg(s->row, "replacement")].i != 0;
  int64_t seen[8] = {0};
  double total = 0;
  int64_t i;
  int k;
  for (k = 0; k < want->n_weights; k++) total += want->weights[k];
  for (i = 0; i < n; i++) {
    if (!(v[i] >= 0 && v[i] < want->n_weights) || v[i] != trunc(v[i]))
      lost(s, "position", v[i], want->n_weights);
    seen[(int)v[i]]++;
  }
  for (k = 0; k < want->n_weights; k++) {
    const double share = want->weights[k] / total;
    if (share == 0 && seen[k]) lost(s, "a position of weight 0", k, 0);
    if (!again && seen[k] > 1) lost(s, "drawn twice", k, (double)seen[k]);
    if (n >= 1000 && fabs((double)seen[k] / (double)n - share) > want->tolerance)
      lost(s, "share", (double)seen[k] / (double)n, share);
  }
}
static void check_random(const Sample* s, tt_tensor** outs) {
  const Drawn* want = row_samples(s->row)->drawn;
  double* v = values_of(outs[0]);
  const int64_t n = tt_tensor_numel(outs[0]);
  if (want->permutation) {
    check_permutation(s, v, n);
  } else if (want->n_weights) {
    check_weighted(s, want, v, n);
  } else {
    check_distribution(s, want, v, n);
  }
  free(v);
}

static void check_values(const Sample* s, tt_dtype d, int* exact) {
  Sample t = with_dtype(s, d);
  tt_tensor* outs[kMaxOuts];
  Array want[kMaxOuts];
  Inputs in;
  int n, k, n_want;
  const int summed = is_summed(s->row);
  const tt_status st = call(&t, outs, &n);
  doing = tt_dtype_name(d);
  if (st && is_integer(d) && (st == TT_DTYPE || st == TT_NOT_IMPLEMENTED || st == TT_INVALID_ARG))
    return;
  DO(&t, st);
  if (is_random(s->row)) {
    check_random(&t, outs);
    return;
  }
  in = inputs_of(&t);
  in.integral = is_integer(d);
  n_want = reference(&in, want, exact);
  if (n_want < 0) fail_msg("%s has no reference in refs.c", s->row->name);
  if (n_want != n) lost(s, "number of results", n, n_want);
  for (k = 0; k < n; k++) {
    check_shape(&t, outs[k], want[k].shape, want[k].ndim);
    if (want[k].data) check_close(&t, outs[k], want[k].data, want[k].n, 4, summed ? 16 : 0);
  }
}

/* ---- layouts ---- */

static void check_layouts(const Sample* s, int exact) {
  tt_tensor *want[kMaxOuts], *got[kMaxOuts];
  int how, n, m, k;
  const double ulps = exact && !is_summed(s->row) ? 0 : 8;
  for (k = 0; k < s->row->n_args; k++)
    if (strcmp(s->row->args[k].name, "stride") == 0 && strcmp(s->row->args[k].type, "Int[]"))
      return; /* its meaning is the layout */
  DO(s, call(s, want, &n));
  for (how = 1; how <= 3; how++) {
    Sample t = with_layout(s, how);
    tt_status st;
    static const char* const kHow[] = {"", "columns first", "every second element",
                                       "behind an offset"};
    doing = kHow[how];
    st = call(&t, got, &m);
    if (st == TT_INVALID_ARG && strcmp(s->row->name, "view") == 0) continue;
    DO(&t, st);
    assert_int_equal(m, n);
    for (k = 0; k < n && strncmp(s->row->name, "empty", 5); k++)
      check_same(&t, got[k], want[k], ulps, ulps);
  }
}

/* ---- variants ---- */

static void check_variants(const Sample* s) {
  tt_tensor *want[kMaxOuts], *dst[kMaxOuts];
  int64_t n_none = 0;
  int n, k, d;
  DO(s, call(s, want, &n));
  if (s->row->into) {
    doing = "into";
    for (k = 0; k < n; k++) {
      dst[k] = clone_of(want[k]);
      OK(tt_zero_(c, dst[k]));
    }
    DO(s, call_variant(s, "_into", dst, n, NULL, &n_none));
    for (k = 0; k < n; k++) check_same(s, dst[k], want[k], 0, 0);
    for (k = 0; k < n; k++) {
      if (tt_tensor_version(dst[k]) != 2) lost(s, "version", tt_tensor_version(dst[k]), 2);
      dst[k] = laid_out(dst[k], 1);
    }
    doing = "into columns";
    DO(s, call_variant(s, "_into", dst, n, NULL, &n_none));
    for (k = 0; k < n; k++) check_same(s, dst[k], want[k], 0, 0);
  }
  if (s->row->inplace) {
    Sample t = *s;
    tt_tensor* self = s->args[0].tensor;
    int same = tt_tensor_ndim(self) == tt_tensor_ndim(want[0]);
    for (d = 0; same && d < tt_tensor_ndim(self); d++)
      same = tt_tensor_shape(self)[d] == tt_tensor_shape(want[0])[d];
    doing = "in place";
    t.args[0].tensor = clone_of(self);
    if (!same) {
      tt_status st = call_variant(&t, "_", NULL, 0, NULL, &n_none);
      if (st != TT_SHAPE && st != TT_INVALID_ARG)
        lost(s, "status of a result of another shape", st, TT_SHAPE);
      check_same(s, t.args[0].tensor, self, 0, 0);
      return;
    }
    DO(&t, call_variant(&t, "_", NULL, 0, NULL, &n_none));
    if (tt_tensor_dtype(want[0]) != tt_tensor_dtype(self))
      want[0] = cast(want[0], tt_tensor_dtype(self));
    check_same(s, t.args[0].tensor, want[0], 0, 0);
    if (tt_tensor_version(t.args[0].tensor) == 0) lost(s, "version", 0, 1);
  }
}

/* ---- META, the instruction set, devices, threads ---- */

static void check_meta(const Sample* s) {
  Sample t;
  tt_tensor *want[kMaxOuts], *got[kMaxOuts];
  int n, m, k, d;
  tt_status st;
  doing = "meta";
  t = on_device(s, TT_META);
  DO(s, call(s, want, &n));
  st = call(&t, got, &m);
  if ((st == TT_DEVICE || st == TT_NOT_IMPLEMENTED) && row_samples(s->row)->shape_from_values)
    return;
  DO(&t, st);
  assert_int_equal(m, n);
  for (k = 0; k < n; k++) {
    if (tt_tensor_device_type(got[k]) != TT_META)
      lost(s, "device", tt_tensor_device_type(got[k]), TT_META);
    if (tt_tensor_dtype(got[k]) != tt_tensor_dtype(want[k]))
      lost(s, "dtype", tt_tensor_dtype(got[k]), tt_tensor_dtype(want[k]));
    check_shape(s, got[k], tt_tensor_shape(want[k]), (int)tt_tensor_ndim(want[k]));
    for (d = 0; d < tt_tensor_ndim(want[k]); d++)
      if (tt_tensor_strides(got[k])[d] != tt_tensor_strides(want[k])[d])
        lost(s, "stride", (double)tt_tensor_strides(got[k])[d],
             (double)tt_tensor_strides(want[k])[d]);
  }
}

/* The same call through another ctx, compared. Both ctxs take the CPU's tensors. */
static void check_other_ctx(const Sample* s, tt_ctx* other, double ulps, double share) {
  tt_tensor *want[kMaxOuts], *got[kMaxOuts];
  tt_ctx* mine = c;
  int n, m, k;
  DO(s, call(s, got, &n));
  c = other;
  OK(tt_scope_push(c));
  DO(s, call(s, want, &m));
  c = mine;
  assert_int_equal(m, n);
  for (k = 0; k < n && strncmp(s->row->name, "empty", 5); k++)
    check_same(s, got[k], want[k], ulps, share);
  c = other;
  OK(tt_scope_pop(c, NULL, 0));
  c = mine;
}

static void check_baseline(const Sample* s, tt_dtype d, int exact) {
  const SampleGroup* group = row_samples(s->row);
  const Sample t = with_dtype(s, d);
  tt_tensor* outs[kMaxOuts];
  int n;
  doing = "against the baseline";
  if (call(&t, outs, &n)) return;
  if (is_random(s->row)) {
    check_other_ctx(&t, base_ctx, group->drawn->ulps, group->drawn->share);
  } else {
    check_other_ctx(&t, base_ctx, exact ? 0 : 4, group->summed && !exact ? 16 : 0);
  }
}

static void check_device(const Sample* s, int exact) {
  Sample t = on_device(s, device_type);
  tt_tensor *want[kMaxOuts], *got[kMaxOuts], *back;
  const tt_to_opts home = {.set = TT_TO_DEVICE, .device = {TT_CPU, 0}};
  int n, m, k;
  const double ulps = is_random(s->row) ? row_samples(s->row)->drawn->ulps : exact ? 0 : 8;
  doing = "device";
  DO(s, call(s, want, &n));
  DO(&t, call(&t, got, &m));
  assert_int_equal(m, n);
  for (k = 0; k < n && strncmp(s->row->name, "empty", 5); k++) {
    if (tt_tensor_device_type(got[k]) != device_type)
      lost(s, "device", tt_tensor_device_type(got[k]), device_type);
    OK(tt_to(c, got[k], &home, &back));
    check_same(s, back, want[k], ulps, ulps);
  }
}

/* ---- derivatives ---- */

enum { kMaxLeaves = 6 };
typedef struct Leaves {
  tt_tensor* at[kMaxLeaves];
  int n;
} Leaves;

/* Running statistics and class weights have no gradient, in PyTorch neither. */
static int takes_gradient(const Sample* s, tt_tensor* const* place) {
  const char* const* without = row_samples(s->row)->no_gradient;
  int i;
  for (i = 0; i < 2 && without[i]; i++)
    if (place == (tt_tensor* const*)&s->args[row_arg(s->row, without[i])].tensor) return 0;
  return 1;
}

/* Float64 tensors of s become leaves. `source` are the tensors that they copy. */
static Leaves make_leaves(Sample* s, tt_tensor** source) {
  tt_tensor** places[kMaxArgs + kMaxItems];
  Leaves l = {.n = 0};
  int i, n = tensor_places(s, places);
  for (i = 0; i < n; i++) {
    if (tt_tensor_dtype(*places[i]) != TT_F64 || !takes_gradient(s, places[i])) continue;
    assert_true(l.n < kMaxLeaves);
    if (source) source[l.n] = *places[i];
    *places[i] = clone_of(*places[i]);
    OK(tt_requires_grad_(c, *places[i], 1));
    l.at[l.n++] = *places[i];
  }
  return l;
}
static double weight_at(int64_t i, int k) {
  return 0.5 + fmod(0.6180339887498949 * (double)(i + 1 + 7 * k), 1.0);
}
static tt_tensor* weights_like(const tt_tensor* t, int k) {
  const int64_t n = tt_tensor_numel(t);
  double* v = malloc((size_t)(n + 1) * sizeof *v);
  tt_tensor* w;
  const tt_to_opts there = {.set = TT_TO_DEVICE, .device = {tt_tensor_device_type(t), 0}};
  int64_t i;
  for (i = 0; i < n; i++) v[i] = weight_at(i, k);
  w = make(TT_F64, tt_tensor_shape(t), tt_tensor_ndim(t), v, n);
  free(v);
  OK(tt_to(c, w, &there, &w));
  return w;
}
/* Sum of all floating tensors times fixed weights; NULL if there are none. */
static tt_tensor* weighted(tt_tensor** t, int n) {
  tt_tensor *total = NULL, *p, *s;
  int k;
  for (k = 0; k < n; k++) {
    if (!t[k] || tt_tensor_dtype(t[k]) != TT_F64) continue;
    OK(tt_mul(c, t[k], weights_like(t[k], k), &p));
    OK(tt_sum(c, p, NULL, &s));
    if (total) OK(tt_add(c, total, s, &total));
    else total = s;
  }
  return total;
}
/* Gradients of the weighted sum of the results; NULLs where nothing depends. *sum gets it. */
static void gradients(Sample* s, const Leaves* l, int create_graph, tt_tensor** grads,
                      tt_tensor** sum) {
  const tt_grad_opts opts = {.set = TT_GRAD_CREATE_GRAPH | TT_GRAD_ALLOW_UNUSED,
                             .create_graph = create_graph,
                             .allow_unused = 1};
  tt_tensor *outs[kMaxOuts], *total;
  const tt_tensor* const* in = (const tt_tensor* const*)l->at;
  int n, i;
  DO(s, call(s, outs, &n));
  total = weighted(outs, n);
  for (i = 0; i < l->n; i++) grads[i] = NULL;
  if (sum) *sum = total;
  if (total && tt_tensor_requires_grad(total))
    DO(s, tt_grad(c, LIST(total), in, l->n, &opts, grads));
}

/* The weighted sums as numbers, at s: of the results (order 0) or of their gradients (order 1). */
static double weighted_value(const Sample* s, int order) {
  Sample t = *s;
  tt_tensor *outs[kMaxOuts], *grads[kMaxLeaves], *total;
  double v;
  int n;
  OK(tt_scope_push(c));
  if (order == 0) {
    DO(&t, call(&t, outs, &n));
    total = weighted(outs, n);
  } else {
    Leaves l = make_leaves(&t, NULL);
    gradients(&t, &l, 0, grads, NULL);
    total = weighted(grads, l.n);
  }
  v = total ? value_of(total) : 0;
  OK(tt_scope_pop(c, NULL, 0));
  return v;
}

static void check_against_differences(const Sample* s, Leaves* l, tt_tensor** source,
                                      tt_tensor** grads, int order) {
  const double h = 1e-5;
  int k;
  for (k = 0; k < l->n; k++) {
    double* x = tt_tensor_data(source[k]);
    double* g = grads[k] ? values_of(grads[k]) : NULL;
    int64_t i;
    for (i = 0; i < tt_tensor_numel(source[k]); i++) {
      const double x0 = x[i];
      const double got = g ? g[i] : 0;
      double up, down, want;
      x[i] = x0 + h;
      up = weighted_value(s, order);
      x[i] = x0 - h;
      down = weighted_value(s, order);
      x[i] = x0;
      want = (up - down) / (2 * h);
      if (fabs(got - want) <= 1e-6 * (1 + fabs(want))) continue;
      print_error("argument tensor %d, element %lld\n", k, (long long)i);
      lost(s, order ? "second derivative" : "gradient", got, want);
    }
    free(g);
  }
  n_gradients++;
}

static void check_derivatives(const Sample* s) {
  Sample leaves = *s;
  tt_tensor *source[kMaxLeaves], *first[kMaxLeaves], *second[kMaxLeaves], *sum;
  const tt_grad_opts unused = {.set = TT_GRAD_ALLOW_UNUSED, .allow_unused = 1};
  Leaves l = make_leaves(&leaves, source);
  int k;
  doing = "derivatives";
  if (!l.n) return;
  gradients(&leaves, &l, 1, first, NULL);
  for (k = 0; k < l.n; k++)
    if (first[k]) check_shape(s, first[k], tt_tensor_shape(l.at[k]), (int)tt_tensor_ndim(l.at[k]));
  check_against_differences(s, &l, source, first, 0);
  sum = weighted(first, l.n);
  for (k = 0; k < l.n; k++) second[k] = NULL;
  if (sum && tt_tensor_requires_grad(sum))
    DO(s, tt_grad(c, LIST(sum), (const tt_tensor* const*)l.at, l.n, &unused, second));
  check_against_differences(s, &l, source, second, 1);
}

/* Gradients of the same leaves on the device and on the CPU. */
static void check_device_gradients(const Sample* s) {
  Sample here = *s;
  Sample there = on_device(s, device_type);
  tt_tensor *want[kMaxLeaves], *got[kMaxLeaves], *back;
  const tt_to_opts home = {.set = TT_TO_DEVICE, .device = {TT_CPU, 0}};
  Leaves a = make_leaves(&here, NULL);
  Leaves b = make_leaves(&there, NULL);
  int k;
  doing = "gradients on the device";
  gradients(&here, &a, 0, want, NULL);
  gradients(&there, &b, 0, got, NULL);
  for (k = 0; k < a.n; k++) {
    if (!want[k] != !got[k]) lost(s, "a gradient", !!got[k], !!want[k]);
    if (!want[k]) continue;
    OK(tt_to(c, got[k], &home, &back));
    check_same(s, back, want[k], 16, 16);
  }
}

/* ---- one row ---- */

static void check_sample(const Sample* s, void* user) {
  static const tt_dtype kDtypes[] = {TT_F64, TT_F32, TT_F16, TT_BF16, TT_I32, TT_I64};
  int exact = 1;
  size_t i;
  (void)user;
  n_samples++;
  if (s->big) {
    Sample narrow;
    if (device_type != TT_CPU) return;
    OK(tt_scope_push(c));
    narrow = with_dtype(s, TT_F32);
    doing = "two threads";
    check_other_ctx(&narrow, two_ctx, 0, 0);
    OK(tt_scope_pop(c, NULL, 0));
    return;
  }
  OK(tt_scope_push(c));
  for (i = 0; i < sizeof kDtypes / sizeof *kDtypes; i++) {
    if (i && !has_float64(s)) break;
    if (s->special && is_integer(kDtypes[i])) break;
    OK(tt_scope_push(c));
    check_values(s, kDtypes[i], &exact);
    if (base_ctx && kDtypes[i] != TT_F16) check_baseline(s, kDtypes[i], exact);
    OK(tt_scope_pop(c, NULL, 0));
  }
  if (device_type == TT_CPU) {
    check_layouts(s, exact);
    check_variants(s);
    check_meta(s);
    if (s->smooth && s->row->differentiable) check_derivatives(s);
  } else {
    check_device(s, exact);
    if (s->smooth && s->row->differentiable) check_device_gradients(s);
  }
  OK(tt_scope_pop(c, NULL, 0));
  scratch_clear();
}

static void test_row(void** state) {
  const Row* r = *state;
  const int before = n_samples;
  each_sample(r, check_sample, NULL);
  if (n_samples == before) fail_msg("%s has no sample", r->name);
}

/* ---- set-up ---- */

static int isa_wanted(void) {
  const char* isa = getenv("TT_TEST_ISA");
  return !isa                           ? 0
         : strcmp(isa, "baseline") == 0 ? 1
         : strcmp(isa, "avx2") == 0     ? 2
         : strcmp(isa, "avx512") == 0   ? 3
                                        : 0;
}
static tt_ctx* new_ctx(const tt_allocator* a, int isa, int threads) {
  const tt_runtime_opts opts = {
      .struct_size = sizeof opts, .allocator = a, .isa = isa, .threads = threads};
  tt_runtime* rt;
  tt_ctx* x;
  if (tt_runtime_new(&opts, &rt)) return NULL;
  if (tt_ctx_new(rt, &x)) x = NULL;
  tt_runtime_release(rt);
  tt_manual_seed(x, 0);
  return x;
}

static int open_row(void** state) {
  const tt_allocator a = host_allocator(&host);
  const char* device = getenv("TT_TEST_DEVICE");
  int32_t isa = 0;
  (void)state;
  c = new_ctx(&a, isa_wanted(), 1);
  two_ctx = new_ctx(&a, isa_wanted(), 2);
  if (!c || !two_ctx || tt_ctx_isa(c, &isa)) return -1;
  base_ctx = isa > 1 ? new_ctx(&a, 1, 1) : NULL;
  if (device && strcmp(device, "ext") == 0) {
    const tt_backend_def def = ext_def(&ext_memory, "closed");
    tt_device d;
    if (tt_backend_register(c, &def, &d)) return -1;
    device_type = TT_EXT;
  } else if (device && strcmp(device, "cpu")) {
    const char* path = strcmp(device, "fake") == 0 ? getenv("TT_TEST_FAKE_LIBRARY") : NULL;
    if (tt_load_cuda(c, path)) {
      print_error("%s\n", tt_ctx_error(c)->message);
      return -1;
    }
    device_type = TT_CUDA;
  }
  return 0;
}
static int close_row(void** state) {
  scratch_clear();
  tt_ctx_release(two_ctx);
  tt_ctx_release(base_ctx);
  return close_ctx(state);
}

int main(int argc, char** argv) {
  struct CMUnitTest* tests = calloc((size_t)kNumRows, sizeof *tests);
  int i, n = 0, failed;
  for (i = 0; i < kNumRows; i++) {
    if (argc > 1 && strcmp(argv[1], kRows[i].name)) continue;
    tests[n].name = kRows[i].name;
    tests[n].test_func = test_row;
    tests[n].setup_func = open_row;
    tests[n].teardown_func = close_row;
    tests[n++].initial_state = (void*)&kRows[i];
  }
  failed = _cmocka_run_group_tests("op_table", tests, (size_t)n, NULL, NULL);
  print_message("%d operators, %d samples, %d derivatives\n", n, n_samples, n_gradients);
  free(tests);
  return failed;
}
