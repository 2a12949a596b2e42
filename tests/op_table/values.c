/* Values against the reference in double precision; random operators against their known range
   and statistics. */
#include "checks.h"

#include <float.h>
#include <math.h>

/* ---- the reference ---- */

static Array array_of(const tt_tensor* t) {
  Array a = {.ndim = (int)tt_tensor_ndim(t), .n = tt_tensor_numel(t)};
  double* values = values_of(t);
  memcpy(a.shape, tt_tensor_shape(t), (size_t)a.ndim * sizeof *a.shape);
  a.data = scratch((size_t)a.n * sizeof(double));
  memcpy(a.data, values, (size_t)a.n * sizeof(double));
  free(values);
  return a;
}
static Inputs inputs_of(const Sample* s) {
  Inputs in;
  memset(&in, 0, sizeof in);
  in.sample = s;
  for (int i = 0; i < s->row->n_args; i++) {
    const tt_value* v = &s->args[i];
    if (v->tag == TT_VAL_TENSOR) in.tensors[i] = array_of(v->tensor);
  }
  in.n_items = s->n_items;
  for (int i = 0; i < in.n_items; i++) in.items[i] = array_of(s->items[i]);
  return in;
}

/* ---- random numbers: a range, a mean and a variance ---- */

static const int64_t kMany = 1000; /* numbers, for statistics */

static void check_distribution(const Sample* s, const Drawn* want, const double* values,
                               int64_t n) {
  double mean = 0;
  double variance = 0; /* around the mean wanted */
  for (int64_t i = 0; i < n; i++) {
    const double x = values[i];
    mean += x / (double)n;
    variance += (x - want->mean) * (x - want->mean) / (double)n;
    if (want->has_low && !(x >= want->low && x < want->high)) lost(s, "range", x, want->low);
    if (want->integers && x != trunc(x)) lost(s, "an integer", x, trunc(x));
  }
  if (n < kMany) return;
  if (want->has_mean && fabs(mean - want->mean) > want->tolerance)
    lost(s, "mean", mean, want->mean);
  if (want->has_variance && fabs(variance - want->variance) > want->tolerance * want->variance)
    lost(s, "variance", variance, want->variance);
}
static int is_position(double x, int64_t n) { return x >= 0 && x < (double)n && x == trunc(x); }
static void check_permutation(const Sample* s, const double* values, int64_t n) {
  char* seen = calloc((size_t)n + 1, 1);
  int64_t unmoved = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!is_position(values[i], n)) lost(s, "position", values[i], (double)n);
    if (seen[(int64_t)values[i]]++) lost(s, "a position twice", values[i], (double)n);
    unmoved += values[i] == (double)i;
  }
  if (n > kMany && unmoved > 20) lost(s, "elements in place", (double)unmoved, 1);
  free(seen);
}
/* Positions drawn by weights. */
static void check_weighted(const Sample* s, const Drawn* want, const double* values, int64_t n) {
  const int with_replacement = s->args[row_arg(s->row, "replacement")].i != 0;
  int64_t seen[8] = {0};
  double total = 0;
  for (int k = 0; k < want->n_weights; k++) total += want->weights[k];
  for (int64_t i = 0; i < n; i++) {
    if (!is_position(values[i], want->n_weights)) lost(s, "position", values[i], want->n_weights);
    seen[(int)values[i]]++;
  }
  for (int k = 0; k < want->n_weights; k++) {
    const double share = want->weights[k] / total;
    const double got = (double)seen[k] / (double)n;
    if (share == 0 && seen[k]) lost(s, "a position of weight 0", k, 0);
    if (!with_replacement && seen[k] > 1) lost(s, "a position twice", k, (double)seen[k]);
    if (n >= kMany && fabs(got - share) > want->tolerance) lost(s, "share", got, share);
  }
}
static void check_drawn(const Sample* s, const tt_tensor* result) {
  const Drawn* want = row_samples(s->row)->drawn;
  const int64_t n = tt_tensor_numel(result);
  double* values = values_of(result);
  if (want->permutation) check_permutation(s, values, n);
  else if (want->n_weights) check_weighted(s, want, values, n);
  else check_distribution(s, want, values, n);
  free(values);
}

/* ---- both ---- */

static int is_refusal(tt_status status) {
  return status == TT_DTYPE || status == TT_NOT_IMPLEMENTED || status == TT_INVALID_ARG;
}
static void check_reference(const Sample* s, tt_tensor** outs, int n, int integral, int* exact) {
  Array want[kMaxOuts];
  Inputs in = inputs_of(s);
  in.integral = integral;
  const int n_want = reference(&in, want, exact);
  if (n_want < 0) fail_msg("%s has no reference in refs/", s->row->name);
  if (n_want != n) lost(s, "number of results", n, n_want);
  for (int k = 0; k < n; k++) {
    const int by_parts = want[k].ndim > tt_tensor_ndim(outs[k]);
    const tt_tensor* out = by_parts ? as_reals(outs[k]) : outs[k];
    check_shape(s, out, want[k].shape, want[k].ndim);
    if (!want[k].data) continue;
    check_close(s, out, want[k].data, want[k].n, 4, row_samples(s->row)->summed ? 16 : 0);
  }
}
void check_values(const Sample* s, tt_dtype d, int* exact) {
  const Sample t = with_dtype(s, d);
  tt_tensor* outs[kMaxOuts];
  int n;
  doing = tt_dtype_name(d);
  const tt_status status = call(&t, outs, &n);
  if (is_integer(d) && is_refusal(status)) return;
  done(&t, status);
  if (is_random(s->row)) check_drawn(&t, outs[0]);
  else check_reference(&t, outs, n, is_integer(d), exact);
}

/* The unit roundoff of the dtype that sums of d are computed in, and that of d if it is less. */
static double roundoff(tt_dtype d) {
  if (d == TT_F64) return DBL_EPSILON / 2;
  return is_integer(d) ? 0 : FLT_EPSILON / 2;
}
static double last_rounding(tt_dtype d) {
  if (d == TT_BF16) return 0x1p-7;
  return d == TT_F16 ? 0x1p-10 : 0;
}
void check_sums(const Sample* s, const tt_tensor* got, const tt_tensor* want) {
  const tt_dtype dtype = tt_tensor_dtype(want);
  const int64_t n = tt_tensor_numel(want);
  Array bound[kMaxOuts];
  Inputs in = inputs_of(s);
  Array* x = &in.tensors[0];
  int exact;
  for (int64_t i = 0; i < x->n; i++) x->data[i] = fabs(x->data[i]);
  reference(&in, bound, &exact);
  check_shape(s, got, tt_tensor_shape(want), (int)tt_tensor_ndim(want));
  const double summands = n ? ceil((double)x->n / (double)n) : 0;
  double* is = values_of(got);
  double* should = values_of(want);
  for (int64_t i = 0; i < n; i++) {
    const double allowed =
        summands * roundoff(dtype) * bound[0].data[i] + last_rounding(dtype) * fabs(should[i]);
    const int both_nan = isnan(is[i]) && isnan(should[i]);
    if (is[i] == should[i] || both_nan || fabs(is[i] - should[i]) <= allowed) continue;
    lost(s, "sum", is[i], should[i]);
  }
  free(is);
  free(should);
}
