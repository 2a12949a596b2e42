/* First and second derivatives of a weighted sum of all results, against central differences. No
   two elements have the same weight. */
#include "checks.h"

#include <math.h>

enum { kMaxLeaves = kMaxArgs + kMaxItems };
typedef struct Leaves {
  tt_tensor* leaf[kMaxLeaves];
  tt_tensor* source[kMaxLeaves]; /* the tensors of the sample that they copy */
  int n;
} Leaves;

static int n_derivatives;
int count_derivatives(void) { return n_derivatives; }

/* Running statistics and class weights have no gradient, as in PyTorch. */
static int takes_gradient(const Sample* s, tt_tensor* const* place) {
  const char* const* without = row_samples(s->row)->no_gradient;
  for (int i = 0; i < kMaxNoGradient && without[i]; i++)
    if (place == (tt_tensor* const*)&s->args[row_arg(s->row, without[i])].tensor) return 0;
  return 1;
}
/* Float64 tensors of s become leaves. */
static Leaves make_leaves(Sample* s) {
  tt_tensor** places[kMaxArgs + kMaxItems];
  const int n = tensor_places(s, places);
  Leaves l = {.n = 0};
  for (int i = 0; i < n; i++) {
    if (tt_tensor_dtype(*places[i]) != TT_F64 || !takes_gradient(s, places[i])) continue;
    assert_true(l.n < kMaxLeaves);
    l.source[l.n] = *places[i];
    *places[i] = clone_of(*places[i]);
    OK(tt_requires_grad_(c, *places[i], 1));
    l.leaf[l.n++] = *places[i];
  }
  return l;
}

/* ---- the weighted sum ---- */

/* Weights in [0.5, 1.5): fractions of multiples of the golden ratio, which are evenly
   distributed. */
static double weight_at(int64_t i, int k) {
  return 0.5 + fmod(0.6180339887498949 * (double)(i + 1 + 7 * k), 1.0);
}
static tt_tensor* weights_like(const tt_tensor* t, int k) {
  const tt_to_opts there = {.set = TT_TO_DEVICE, .device = {tt_tensor_device_type(t), 0}};
  const int64_t n = tt_tensor_numel(t);
  double* values = malloc((size_t)(n + 1) * sizeof *values);
  tt_tensor* weights;
  for (int64_t i = 0; i < n; i++) values[i] = weight_at(i, k);
  weights = make(TT_F64, tt_tensor_shape(t), tt_tensor_ndim(t), values, n);
  free(values);
  OK(tt_to(c, weights, &there, &weights));
  return weights;
}
/* NULL if there are no floating tensors. NULL tensors are skipped. */
static tt_tensor* weighted_sum(tt_tensor** t, int n) {
  tt_tensor* total = NULL;
  for (int k = 0; k < n; k++) {
    tt_tensor* term = t[k] ? as_reals(t[k]) : NULL;
    if (!term || tt_tensor_dtype(term) != TT_F64) continue;
    OK(tt_mul(c, term, weights_like(term, k), &term));
    term = sum_of(term);
    if (total) OK(tt_add(c, total, term, &total));
    else total = term;
  }
  return total;
}

/* ---- derivatives of tt ---- */

/* Gradients of a sum; NULL where it does not depend on a leaf. */
static void gradients_of(const Sample* s, tt_tensor* sum, const Leaves* l, int create_graph,
                         tt_tensor** grads) {
  const tt_grad_opts opts = {.set = TT_GRAD_CREATE_GRAPH | TT_GRAD_ALLOW_UNUSED,
                             .create_graph = create_graph,
                             .allow_unused = 1};
  for (int i = 0; i < l->n; i++) grads[i] = NULL;
  if (!sum || !tt_tensor_requires_grad(sum)) return;
  done(s, tt_grad(c, LIST(sum), (const tt_tensor* const*)l->leaf, l->n, &opts, grads));
}
static void first_gradients(const Sample* s, const Leaves* l, int create_graph, tt_tensor** grads) {
  tt_tensor* outs[kMaxOuts];
  int n;
  done(s, call(s, outs, &n));
  gradients_of(s, weighted_sum(outs, n), l, create_graph, grads);
}

/* ---- against differences ---- */

typedef enum Order { kFirst, kSecond } Order;

/* The function that is differentiated: the weighted sum of the results, or of their gradients. */
static double differentiated(const Sample* s, Order order) {
  Sample t = *s;
  tt_tensor* tensors[kMaxLeaves]; /* results, or gradients of all leaves */
  tt_tensor* total;
  int n;
  OK(tt_scope_push(c));
  if (order == kFirst) {
    done(&t, call(&t, tensors, &n));
  } else {
    const Leaves l = make_leaves(&t);
    first_gradients(&t, &l, 0, tensors);
    n = l.n;
  }
  total = weighted_sum(tensors, n);
  const double value = total ? value_of(total) : 0;
  OK(tt_scope_pop(c, NULL, 0));
  return value;
}
static double difference(const Sample* s, double* x, Order order) {
  const double step = 1e-5;
  const double x0 = *x;
  *x = x0 + step;
  const double up = differentiated(s, order);
  *x = x0 - step;
  const double down = differentiated(s, order);
  *x = x0;
  return (up - down) / (2 * step);
}
static void check_differences(const Sample* s, const Leaves* l, tt_tensor** grads, Order order) {
  for (int k = 0; k < l->n; k++) {
    double* x = tt_tensor_data(l->source[k]);
    double* grad = grads[k] ? values_of(grads[k]) : NULL;
    for (int64_t i = 0; i < tt_tensor_numel(l->source[k]); i++) {
      const double got = grad ? grad[i] : 0;
      const double want = difference(s, &x[i], order);
      if (fabs(got - want) <= 1e-6 * (1 + fabs(want))) continue;
      print_error("argument tensor %d, element %lld\n", k, (long long)i);
      lost(s, order == kFirst ? "gradient" : "second derivative", got, want);
    }
    free(grad);
  }
  n_derivatives++;
}
void check_derivatives(const Sample* s) {
  Sample with_leaves = *s;
  const Leaves l = make_leaves(&with_leaves);
  tt_tensor* first[kMaxLeaves];
  tt_tensor* second[kMaxLeaves];
  doing = "derivatives";
  if (!l.n) return;
  first_gradients(&with_leaves, &l, 1, first);
  for (int k = 0; k < l.n; k++)
    if (first[k])
      check_shape(s, first[k], tt_tensor_shape(l.leaf[k]), (int)tt_tensor_ndim(l.leaf[k]));
  check_differences(s, &l, first, kFirst);
  gradients_of(s, weighted_sum(first, l.n), &l, 0, second);
  check_differences(s, &l, second, kSecond);
}

void check_device_gradients(const Sample* s, int device_type) {
  Sample here = *s;
  Sample there = on_device(s, device_type);
  const Leaves on_cpu_leaves = make_leaves(&here);
  const Leaves on_device_leaves = make_leaves(&there);
  tt_tensor* want[kMaxLeaves];
  tt_tensor* got[kMaxLeaves];
  doing = "gradients on the device";
  first_gradients(&here, &on_cpu_leaves, 0, want);
  first_gradients(&there, &on_device_leaves, 0, got);
  for (int k = 0; k < on_cpu_leaves.n; k++) {
    if (!want[k] != !got[k]) lost(s, "a gradient", got[k] != NULL, want[k] != NULL);
    if (want[k]) check_same(s, on_cpu(got[k]), want[k], 16, 16);
  }
}
