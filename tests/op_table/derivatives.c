/* First and second derivatives of a weighted sum of all results, against central differences. No
   two elements have the same weight. */
#include "checks.h"

#include <math.h>

enum { kMaxLeaves = kMaxTensors };
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
  tt_tensor** places[kMaxTensors];
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
/* ---- forward mode ---- */

/* A sample as a function of its leaves, and the direction of the derivative. */
typedef struct Forward {
  const Sample* sample;
  Leaves leaves; /* leaf: the tangents */
  int in_place;
} Forward;

static tt_status forward_call(void* user, tt_ctx* ctx, const tt_tensor* const* inputs, int64_t n,
                              tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  const Forward* f = user;
  Sample s = *f->sample;
  tt_tensor** places[kMaxTensors];
  int count = 0;
  int k = 0;
  tt_status status;
  (void)cap;
  OK(tt_scope_push(ctx));
  for (int i = 0; i < tensor_places(&s, places); i++)
    if (k < n && *places[i] == f->leaves.source[k]) *places[i] = (tt_tensor*)(uintptr_t)inputs[k++];
  if (f->in_place) {
    outs[0] = s.args[0].tensor = clone_of(s.args[0].tensor);
    count = 1;
    status = call_variant(&s, "_", NULL, 0, NULL, n_outs);
  } else {
    status = call(&s, outs, &count);
  }
  *n_outs = count;
  OK(tt_scope_pop(ctx, outs, status ? 0 : count));
  return status;
}

/* Copies of the results, moved by a step along the tangents. */
static void moved(Forward* f, double step, tt_tensor** outs, int* n) {
  Forward there = *f;
  const tt_tensor* inputs[kMaxLeaves];
  int64_t count = 0;
  for (int k = 0; k < f->leaves.n; k++) {
    tt_tensor* t;
    OK(tt_mul_f64(c, f->leaves.leaf[k], step, &t));
    OK(tt_add(c, f->leaves.source[k], t, &t));
    inputs[k] = t;
  }
  done(f->sample, forward_call(&there, c, inputs, f->leaves.n, outs, kMaxOuts, &count));
  *n = (int)count;
}

/* Products with the Jacobian matrix against differences, and against the gradients of the weighted
   sum. */
static void check_products(Forward* f, tt_tensor* const* grads) {
  const double step = 1e-5;
  tt_tensor *outs[kMaxOuts], *products[kMaxOuts], *up[kMaxOuts], *down[kMaxOuts];
  double by_gradient = 0;
  int64_t n = 0;
  int n_up;
  done(f->sample,
       tt_jvp(c, forward_call, f, NULL, (const tt_tensor* const*)f->leaves.source,
              (const tt_tensor* const*)f->leaves.leaf, f->leaves.n, outs, products, kMaxOuts, &n));
  moved(f, step, up, &n_up);
  moved(f, -step, down, &n_up);
  for (int64_t k = 0; k < n; k++) {
    if (!products[k]) continue;
    tt_tensor* product = as_reals(products[k]);
    if (tt_tensor_dtype(product) != TT_F64) continue;
    double* got = values_of(product);
    double* high = values_of(as_reals(up[k]));
    double* low = values_of(as_reals(down[k]));
    check_shape(f->sample, products[k], tt_tensor_shape(outs[k]), (int)tt_tensor_ndim(outs[k]));
    for (int64_t i = 0; i < tt_tensor_numel(product); i++) {
      const double want = (high[i] - low[i]) / (2 * step);
      if (isnan(got[i]) && isnan(want)) continue;
      if (!(fabs(got[i] - want) <= 1e-6 * (1 + fabs(want)))) {
        print_error("result %lld, element %lld\n", (long long)k, (long long)i);
        lost(f->sample, f->in_place ? "tangent in place" : "tangent", got[i], want);
      }
    }
    free(got);
    free(high);
    free(low);
  }
  if (f->in_place) return;
  tt_tensor* sum = weighted_sum(products, (int)n);
  const double by_products = sum ? value_of(sum) : 0;
  for (int k = 0; k < f->leaves.n; k++) {
    tt_tensor* term;
    if (!grads[k]) continue;
    OK(tt_mul(c, grads[k], f->leaves.leaf[k], &term));
    by_gradient += value_of(sum_of(term));
  }
  if (isnan(by_products)) return; /* of no elements, and equal to the difference */
  if (!(fabs(by_products - by_gradient) <= 1e-8 * (1 + fabs(by_gradient))))
    lost(f->sample, "sum of tangents against the gradient", by_products, by_gradient);
}

/* Of all arguments at once, and of each alone: those without a tangent are treated apart. */
static void check_forward(const Sample* s, const Leaves* l, tt_tensor* const* grads) {
  Forward f = {.sample = s, .leaves = *l};
  doing = "forward mode";
  for (int k = 0; k < l->n; k++) f.leaves.leaf[k] = weights_like(l->source[k], 3 + k);
  tt_tensor* outs[kMaxOuts];
  int n_outs;
  done(s, call(s, outs, &n_outs));
  f.in_place = s->row->inplace && f.leaves.source[0] == s->args[0].tensor &&
               have_equal_shapes(outs[0], s->args[0].tensor) && tt_tensor_dtype(outs[0]) == TT_F64;
  if (f.in_place) check_products(&f, grads);
  f.in_place = 0;
  check_products(&f, grads);
  for (int only = 0; l->n > 1 && only < l->n; only++) {
    Forward one = f;
    for (int k = 0; k < l->n; k++)
      if (k != only) OK(tt_zeros_like(c, l->source[k], NULL, &one.leaves.leaf[k]));
    check_products(&one, grads);
  }
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
  check_forward(s, &l, first);
  doing = "derivatives";
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
