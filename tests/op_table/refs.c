/* References in double precision, written from the definitions and sharing nothing with tt. */
#include "op_table.h"

#include <float.h>
#include <math.h>

/* ---- scratch memory ---- */

typedef union Block { /* what lies before the memory given out */
  union Block* next;
  long double alignment;
} Block;
static Block* blocks;
void* scratch(size_t bytes) {
  Block* b = calloc(1, sizeof *b + bytes);
  assert_non_null(b);
  b->next = blocks;
  blocks = b;
  return b + 1;
}
void scratch_clear(void) {
  while (blocks) {
    Block* next = blocks->next;
    free(blocks);
    blocks = next;
  }
}

/* ---- arrays ---- */

static Arr array(const int64_t* shape, int ndim) {
  Arr a = {.ndim = ndim, .n = 1};
  int d;
  for (d = 0; d < ndim; d++) {
    a.shape[d] = shape[d];
    a.n *= shape[d];
  }
  a.v = scratch((size_t)a.n * sizeof(double));
  return a;
}
static Arr zero_dim(double v) {
  Arr a = array(NULL, 0);
  a.v[0] = v;
  return a;
}
/* Position in a of the broadcast index idx (of nd dims). */
static int64_t broadcast_at(const Arr* a, const int64_t* idx, int nd) {
  int64_t at = 0;
  int d;
  for (d = 0; d < a->ndim; d++)
    at = at * a->shape[d] + (a->shape[d] == 1 ? 0 : idx[nd - a->ndim + d]);
  return at;
}
static void unravel(int64_t i, const int64_t* shape, int ndim, int64_t* idx) {
  int d;
  for (d = ndim - 1; d >= 0; d--) {
    idx[d] = i % shape[d];
    i /= shape[d];
  }
}
static int64_t ravel(const Arr* a, const int64_t* idx) {
  int64_t at = 0;
  int d;
  for (d = 0; d < a->ndim; d++) at = at * a->shape[d] + idx[d];
  return at;
}
static Arr broadcast_shape(const Arr* in, int n) {
  int64_t shape[kMaxDims];
  int k, d, nd = 0;
  for (k = 0; k < n; k++) nd = in[k].ndim > nd ? in[k].ndim : nd;
  for (d = 0; d < nd; d++) shape[d] = 1;
  for (k = 0; k < n; k++)
    for (d = 0; d < in[k].ndim; d++)
      if (in[k].shape[d] != 1) shape[nd - in[k].ndim + d] = in[k].shape[d];
  return array(shape, nd);
}
static Arr transposed(const Arr* a) { /* the last two dims */
  int64_t shape[kMaxDims], idx[kMaxDims], i, t;
  Arr o;
  memcpy(shape, a->shape, sizeof shape);
  shape[a->ndim - 1] = a->shape[a->ndim - 2];
  shape[a->ndim - 2] = a->shape[a->ndim - 1];
  o = array(shape, a->ndim);
  for (i = 0; i < a->n; i++) {
    unravel(i, a->shape, a->ndim, idx);
    t = idx[a->ndim - 1];
    idx[a->ndim - 1] = idx[a->ndim - 2];
    idx[a->ndim - 2] = t;
    o.v[ravel(&o, idx)] = a->v[i];
  }
  return o;
}

/* ---- arguments ---- */

static const tt_value* given(const Inputs* in, const char* name) {
  const tt_value* v = &in->sample->args[row_arg(in->sample->row, name)];
  return v->tag == TT_VAL_NONE ? NULL : v;
}
static int has(const Inputs* in, const char* name) {
  int i;
  for (i = 0; i < in->sample->row->n_args; i++)
    if (strcmp(in->sample->row->args[i].name, name) == 0) return 1;
  return 0;
}
static double number_arg(const Inputs* in, const char* name, double otherwise) {
  const tt_value* v = has(in, name) ? given(in, name) : NULL;
  if (!v) return otherwise;
  if (v->tag == TT_VAL_FLOAT) return v->f;
  if (v->tag != TT_VAL_SCALAR) return (double)v->i;
  return v->scalar.kind == TT_SCALAR_INT ? (double)v->scalar.i : v->scalar.re;
}
static int64_t int_arg(const Inputs* in, const char* name, int64_t otherwise) {
  return (int64_t)number_arg(in, name, (double)otherwise);
}
static const Arr* tensor(const Inputs* in, const char* name) {
  const Arr* a = &in->t[row_arg(in->sample->row, name)];
  return a->v ? a : NULL;
}
static int64_t wrap(int64_t d, int64_t n) { return d < 0 ? d + (n ? n : 1) : d; }

/* ---- elementwise ---- */

typedef double (*Elementwise)(const Inputs* in, double a, double b, double m);

static double f_neg(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)b;
  (void)m;
  return -a;
}
static double f_copy(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)b;
  (void)m;
  return a;
}
static double f_exp(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)b;
  (void)m;
  return exp(a);
}
static double f_log(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)b;
  (void)m;
  return log(a);
}
static double f_tanh(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)b;
  (void)m;
  return tanh(a);
}
static double f_sigmoid(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)b;
  (void)m;
  return 1 / (1 + exp(-a));
}
static double f_relu(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)b;
  (void)m;
  return a <= 0 ? 0 : a;
}
static double f_add(const Inputs* in, double a, double b, double m) {
  (void)m;
  return a + number_arg(in, "alpha", 1) * b;
}
static double f_sub(const Inputs* in, double a, double b, double m) {
  (void)m;
  return a - number_arg(in, "alpha", 1) * b;
}
static double f_rsub(const Inputs* in, double a, double b, double m) {
  (void)m;
  return b - number_arg(in, "alpha", 1) * a;
}
static double f_mul(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)m;
  return a * b;
}
static double f_div(const Inputs* in, double a, double b, double m) {
  const int64_t mode = int_arg(in, "rounding_mode", 0);
  const double q = a / b;
  const double r = fmod(a, b);
  (void)m;
  if (mode == TT_ROUNDING_TRUNC) return trunc(q);
  if (mode != TT_ROUNDING_FLOOR) return q;
  if (b == 0) return q; /* Python's //, on floats: by the remainder, then rounded to an integer */
  if (isnan(r)) return NAN;
  if (r != 0 && (r < 0) != (b < 0)) return floor((a - r) / b - 1 + 0.5);
  return (a - r) / b == 0 ? copysign(0, q) : floor((a - r) / b + 0.5);
}
static double f_pow(const Inputs* in, double a, double b, double m) {
  (void)m;
  if (in->integral && b < 0 && a == trunc(a) && b == trunc(b))
    return a == 1 ? 1 : a == -1 ? (fmod(b, 2) == 0 ? 1 : -1) : 0;
  if (b == -0.5 && strcmp(in->sample->row->args[1].type, "Scalar") == 0)
    return 1 / sqrt(a); /* so too in PyTorch */
  return pow(a, b);
}
static double f_maximum(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)m;
  return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}
static double f_minimum(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)m;
  return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
}
static double f_eq(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)m;
  return a == b;
}
static double f_ne(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)m;
  return a != b;
}
static double f_lt(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)m;
  return a < b;
}
static double f_le(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)m;
  return a <= b;
}
static double f_gt(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)m;
  return a > b;
}
static double f_ge(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)m;
  return a >= b;
}
static double f_where(const Inputs* in, double mask, double a, double b) {
  (void)in;
  return mask != 0 ? a : b;
}
static double f_masked_fill(const Inputs* in, double a, double mask, double v) {
  (void)in;
  return mask != 0 ? v : a;
}
static double f_zero(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)a;
  (void)b;
  (void)m;
  return 0;
}
static double f_second(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)a;
  (void)m;
  return b;
}

/* Tensor arguments and numbers without a default are the operands, in order. */
static int elementwise(const Inputs* in, Elementwise f, Arr* out) {
  const Row* r = in->sample->row;
  Arr ops[kMaxArgs];
  int64_t i, idx[kMaxDims];
  int k, n = 0;
  for (k = 0; k < r->n_args; k++) {
    if (in->t[k].v) ops[n++] = in->t[k];
    else if (strcmp(r->args[k].type, "Scalar") == 0 && !r->args[k].has_default)
      ops[n++] = zero_dim(number_arg(in, r->args[k].name, 0));
  }
  *out = broadcast_shape(ops, n);
  for (i = 0; i < out->n; i++) {
    double v[3] = {0, 0, 0};
    unravel(i, out->shape, out->ndim, idx);
    for (k = 0; k < n; k++) v[k] = ops[k].v[broadcast_at(&ops[k], idx, out->ndim)];
    out->v[i] = f(in, v[0], v[1], v[2]);
  }
  return 1;
}

static int r_clamp(const Inputs* in, Arr* out) {
  const int tensors = strcmp(in->sample->row->args[1].type, "Scalar?") != 0;
  Arr ops[3] = {*tensor(in, "self"), zero_dim(-INFINITY), zero_dim(INFINITY)};
  int64_t i, idx[kMaxDims];
  int k;
  for (k = 1; k < 3; k++) {
    const char* name = k == 1 ? "min" : "max";
    if (!given(in, name)) continue;
    ops[k] = tensors ? *tensor(in, name) : zero_dim(number_arg(in, name, 0));
  }
  *out = broadcast_shape(ops, 3);
  for (i = 0; i < out->n; i++) {
    double x, lo, hi;
    unravel(i, out->shape, out->ndim, idx);
    x = ops[0].v[broadcast_at(&ops[0], idx, out->ndim)];
    lo = ops[1].v[broadcast_at(&ops[1], idx, out->ndim)];
    hi = ops[2].v[broadcast_at(&ops[2], idx, out->ndim)];
    if (x < lo) x = lo;
    if (x > hi) x = hi;
    out->v[i] = x;
  }
  return 1;
}

/* ---- reductions ---- */

/* Which dims go; all if there is no dim argument or an empty list of them. */
static unsigned reduced_dims(const Inputs* in, const Arr* x) {
  const unsigned all = (1u << x->ndim) - 1;
  const tt_value* v = has(in, "dim") ? given(in, "dim") : NULL;
  unsigned mask = 0;
  int64_t i;
  if (!v) return all;
  if (v->tag == TT_VAL_INT) return x->ndim ? 1u << wrap(v->i, x->ndim) : 0;
  for (i = 0; i < v->n; i++)
    if (x->ndim) mask |= 1u << wrap(v->ints[i], x->ndim);
  return v->n ? mask : all;
}
static Arr reduced_shape(const Arr* x, unsigned mask, int keep) {
  int64_t shape[kMaxDims];
  int d, n = 0;
  for (d = 0; d < x->ndim; d++)
    if (!(mask >> d & 1)) shape[n++] = x->shape[d];
    else if (keep) shape[n++] = 1;
  return array(shape, n);
}
/* Where element i of x goes in out. */
static int64_t reduced_at(const Arr* x, int64_t i, unsigned mask) {
  int64_t idx[kMaxDims], at = 0;
  int d;
  unravel(i, x->shape, x->ndim, idx);
  for (d = 0; d < x->ndim; d++)
    if (!(mask >> d & 1)) at = at * x->shape[d] + idx[d];
  return at;
}
static int64_t position(const Arr* x, int64_t i, unsigned mask) { /* within what is reduced */
  int64_t idx[kMaxDims], at = 0;
  int d;
  unravel(i, x->shape, x->ndim, idx);
  for (d = 0; d < x->ndim; d++)
    if (mask >> d & 1) at = at * x->shape[d] + idx[d];
  return at;
}

static int sum_or_mean(const Inputs* in, Arr* out, int mean) {
  const Arr* x = tensor(in, "self");
  const unsigned mask = reduced_dims(in, x);
  int64_t i;
  *out = reduced_shape(x, mask, (int)int_arg(in, "keepdim", 0));
  for (i = 0; i < x->n; i++) out->v[reduced_at(x, i, mask)] += x->v[i];
  for (i = 0; mean && i < out->n; i++) out->v[i] /= (double)x->n / (double)out->n;
  if (mean && !x->n)
    for (i = 0; i < out->n; i++) out->v[i] = NAN;
  return 1;
}
static int r_sum(const Inputs* in, Arr* out) { return sum_or_mean(in, out, 0); }
static int r_mean(const Inputs* in, Arr* out) { return sum_or_mean(in, out, 1); }
static int r_any(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const unsigned mask = reduced_dims(in, x);
  int64_t i;
  *out = reduced_shape(x, mask, (int)int_arg(in, "keepdim", 0));
  for (i = 0; i < x->n; i++)
    if (x->v[i] != 0) out->v[reduced_at(x, i, mask)] = 1;
  return 1;
}
static void extremes(const Inputs* in, Arr* values, Arr* at) {
  const Arr* x = tensor(in, "self");
  const unsigned mask = reduced_dims(in, x);
  int64_t i;
  *values = reduced_shape(x, mask, (int)int_arg(in, "keepdim", 0));
  *at = array(values->shape, values->ndim);
  for (i = 0; i < values->n; i++) at->v[i] = -1;
  for (i = 0; i < x->n; i++) {
    const int64_t k = reduced_at(x, i, mask);
    if (at->v[k] >= 0 && !(x->v[i] > values->v[k] || (isnan(x->v[i]) && !isnan(values->v[k]))))
      continue;
    values->v[k] = x->v[i];
    at->v[k] = (double)position(x, i, mask);
  }
}
static int r_max(const Inputs* in, Arr* outs) {
  extremes(in, &outs[0], &outs[1]);
  return in->sample->row->n_outs;
}
static int r_min(const Inputs* in, Arr* outs) {
  Inputs negative = *in;
  const int at = row_arg(in->sample->row, "self");
  int64_t i;
  negative.t[at] = array(in->t[at].shape, in->t[at].ndim);
  for (i = 0; i < in->t[at].n; i++) negative.t[at].v[i] = -in->t[at].v[i];
  extremes(&negative, &outs[0], &outs[1]);
  for (i = 0; i < outs[0].n; i++) outs[0].v[i] = -outs[0].v[i];
  return in->sample->row->n_outs;
}
static int r_argmax(const Inputs* in, Arr* outs) {
  Arr values;
  extremes(in, &values, outs);
  return 1;
}

/* ---- products ---- */

static Arr product(Arr a, Arr b) {
  const int row = a.ndim == 1;
  const int column = b.ndim == 1;
  int64_t m, k, n, i, j, l, s, idx[kMaxDims], shape[kMaxDims];
  Arr abatch, bbatch, both[2], out, batch;
  if (row) {
    a.shape[1] = a.shape[0];
    a.shape[0] = 1;
    a.ndim = 2;
  }
  if (column) {
    b.shape[1] = 1;
    b.ndim = 2;
  }
  m = a.shape[a.ndim - 2];
  k = a.shape[a.ndim - 1];
  n = b.shape[b.ndim - 1];
  abatch = array(a.shape, a.ndim - 2);
  bbatch = array(b.shape, b.ndim - 2);
  both[0] = abatch;
  both[1] = bbatch;
  batch = broadcast_shape(both, 2);
  memcpy(shape, batch.shape, sizeof shape);
  i = batch.ndim;
  if (!row) shape[i++] = m;
  if (!column) shape[i++] = n;
  out = array(shape, (int)i);
  for (s = 0; s < batch.n; s++) {
    const double *x, *y;
    unravel(s, batch.shape, batch.ndim, idx);
    x = a.v + broadcast_at(&abatch, idx, batch.ndim) * m * k;
    y = b.v + broadcast_at(&bbatch, idx, batch.ndim) * k * n;
    for (i = 0; i < m; i++)
      for (j = 0; j < n; j++)
        for (l = 0; l < k; l++) out.v[(s * m + i) * n + j] += x[i * k + l] * y[l * n + j];
  }
  return out;
}
static int r_matmul(const Inputs* in, Arr* out) {
  *out = product(in->t[0], in->t[1]);
  return 1;
}
static int r_linear(const Inputs* in, Arr* out) {
  const Arr* w = tensor(in, "weight");
  const Arr* bias = tensor(in, "bias");
  Arr x = *tensor(in, "input");
  int64_t i;
  if (w->ndim == 1) {
    *out = product(x, *w);
  } else {
    *out = product(x, transposed(w));
  }
  for (i = 0; bias && i < out->n; i++) out->v[i] += bias->v[i % bias->n];
  return 1;
}
static double weight_arg(const Inputs* in, const char* name) { /* of integers: cut */
  const double v = number_arg(in, name, 1);
  return in->integral ? trunc(v) : v;
}
static int add_product(const Inputs* in, const char* a, const char* b, Arr* out) {
  const Arr* self = tensor(in, "self");
  const double alpha = weight_arg(in, "alpha");
  const double beta = weight_arg(in, "beta");
  int64_t i, idx[kMaxDims];
  *out = product(*tensor(in, a), *tensor(in, b));
  for (i = 0; i < out->n; i++) {
    unravel(i, out->shape, out->ndim, idx);
    out->v[i] =
        alpha * out->v[i] + (beta != 0 ? beta * self->v[broadcast_at(self, idx, out->ndim)] : 0);
  }
  return 1;
}
static int r_addmm(const Inputs* in, Arr* out) { return add_product(in, "mat1", "mat2", out); }

/* ---- rows ---- */

static Arr soft(const Arr* x, int64_t dim, int logarithm) {
  Arr out = array(x->shape, x->ndim);
  const int64_t d = wrap(dim, x->ndim);
  int64_t inner = 1;
  int64_t size = x->ndim ? x->shape[d] : 1;
  int64_t i;
  int64_t k;
  int e;
  for (e = (int)d + 1; e < x->ndim; e++) inner *= x->shape[e];
  for (i = 0; i < x->n; i++) {
    const int64_t base = (i / (inner * size)) * inner * size + i % inner;
    double top = -INFINITY, sum = 0;
    for (k = 0; k < size; k++) top = fmax(top, x->v[base + k * inner]);
    for (k = 0; k < size; k++) sum += exp(x->v[base + k * inner] - top);
    out.v[i] = logarithm ? x->v[i] - top - log(sum) : exp(x->v[i] - top) / sum;
  }
  return out;
}
static int r_softmax(const Inputs* in, Arr* out) {
  *out = soft(tensor(in, "self"), int_arg(in, "dim", 0), 0);
  return 1;
}
static int r_softmin(const Inputs* in, Arr* out) {
  Arr x = *tensor(in, "input");
  Arr negative = array(x.shape, x.ndim);
  for (int64_t i = 0; i < x.n; i++) negative.v[i] = -x.v[i];
  *out = soft(&negative, int_arg(in, "dim", 0), 0);
  return 1;
}
static int r_log_softmax(const Inputs* in, Arr* out) {
  *out = soft(tensor(in, "self"), int_arg(in, "dim", 0), 1);
  return 1;
}

static int r_layer_norm(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "input");
  const Arr* w = tensor(in, "weight");
  const Arr* bias = tensor(in, "bias");
  const tt_value* shape = given(in, "normalized_shape");
  const double eps = number_arg(in, "eps", 1e-5);
  int64_t size = 1, i, k;
  for (i = 0; i < shape->n; i++) size *= shape->ints[i];
  *out = array(x->shape, x->ndim);
  for (i = 0; i < x->n; i += size) {
    double mean = 0, var = 0;
    for (k = 0; k < size; k++) mean += x->v[i + k];
    mean /= (double)size;
    for (k = 0; k < size; k++) var += (x->v[i + k] - mean) * (x->v[i + k] - mean);
    var /= (double)size;
    for (k = 0; k < size; k++)
      out->v[i + k] =
          (x->v[i + k] - mean) / sqrt(var + eps) * (w ? w->v[k] : 1) + (bias ? bias->v[k] : 0);
  }
  return 1;
}

/* ---- losses ---- */

/* Sums per position; input (C), (N, C) or (N, C, d…): classes are dim 1, or dim 0 of a vector. */
static int loss(const Inputs* in, Arr* out, Arr scores) {
  const Arr* target = tensor(in, "target");
  const Arr* weight = tensor(in, "weight");
  const int axis = scores.ndim > 1;
  const int64_t classes = scores.shape[axis];
  const int64_t ignore = int_arg(in, "ignore_index", -100);
  const int64_t reduction = int_arg(in, "reduction", TT_REDUCTION_MEAN);
  const double smooth = number_arg(in, "label_smoothing", 0);
  const int probabilities = target->ndim == scores.ndim;
  int64_t shape[kMaxDims], inner = 1, i, k;
  double total = 0, weights = 0;
  int d, n = 0;
  for (d = 0; d < scores.ndim; d++)
    if (d != axis) shape[n++] = scores.shape[d];
  for (d = axis + 1; d < scores.ndim; d++) inner *= scores.shape[d];
  *out = array(shape, n);
  for (i = 0; i < out->n; i++) {
    const double* x = scores.v + (i / inner) * classes * inner + i % inner;
    if (probabilities) {
      const double* p = target->v + (i / inner) * classes * inner + i % inner;
      for (k = 0; k < classes; k++)
        out->v[i] -= (p[k * inner] * (1 - smooth) + smooth / (double)classes) * x[k * inner] *
                     (weight ? weight->v[k] : 1);
      weights += 1;
    } else if ((int64_t)target->v[i] != ignore) {
      const int64_t t = (int64_t)target->v[i];
      const double w = weight ? weight->v[t] : 1;
      out->v[i] = -(1 - smooth) * w * x[t * inner];
      for (k = 0; k < classes; k++)
        out->v[i] -= smooth / (double)classes * (weight ? weight->v[k] : 1) * x[k * inner];
      weights += w;
    }
    total += out->v[i];
  }
  if (reduction == TT_REDUCTION_NONE) return 1;
  *out = zero_dim(reduction == TT_REDUCTION_SUM ? total : total / weights);
  return 1;
}
static int r_nll_loss(const Inputs* in, Arr* out) { return loss(in, out, *tensor(in, "input")); }
static int r_cross_entropy(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "input");
  return loss(in, out, soft(x, x->ndim > 1, 1));
}

/* ---- indexing ---- */

static int r_gather(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const Arr* index = tensor(in, "index");
  const int64_t d = wrap(int_arg(in, "dim", 0), x->ndim);
  int64_t i, idx[kMaxDims];
  *out = array(index->shape, index->ndim);
  for (i = 0; i < index->n; i++) {
    unravel(i, index->shape, index->ndim, idx);
    idx[d] = (int64_t)index->v[i];
    out->v[i] = x->v[ravel(x, idx)];
  }
  return 1;
}
static int r_scatter_add(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const Arr* index = tensor(in, "index");
  const Arr* src = tensor(in, "src");
  const int64_t d = wrap(int_arg(in, "dim", 0), x->ndim);
  int64_t i, idx[kMaxDims];
  *out = array(x->shape, x->ndim);
  memcpy(out->v, x->v, (size_t)x->n * sizeof(double));
  for (i = 0; i < index->n; i++) {
    double v;
    unravel(i, index->shape, index->ndim, idx);
    v = src->v[ravel(src, idx)];
    idx[d] = (int64_t)index->v[i];
    out->v[ravel(out, idx)] += v;
  }
  return 1;
}
static int r_index_select(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const Arr* index = tensor(in, "index");
  const int64_t d = wrap(int_arg(in, "dim", 0), x->ndim);
  int64_t shape[kMaxDims], i, idx[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  if (x->ndim) shape[d] = index->n;
  *out = array(shape, x->ndim);
  for (i = 0; i < out->n; i++) {
    unravel(i, out->shape, out->ndim, idx);
    if (x->ndim) idx[d] = (int64_t)index->v[idx[d]];
    out->v[i] = x->v[ravel(x, idx)];
  }
  return 1;
}
static int r_index_add(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const Arr* index = tensor(in, "index");
  const Arr* src = tensor(in, "source");
  const int64_t d = wrap(int_arg(in, "dim", 0), x->ndim);
  int64_t i, idx[kMaxDims];
  *out = array(x->shape, x->ndim);
  memcpy(out->v, x->v, (size_t)x->n * sizeof(double));
  for (i = 0; i < src->n; i++) {
    unravel(i, src->shape, src->ndim, idx);
    idx[d] = (int64_t)index->v[idx[d]];
    out->v[ravel(out, idx)] += number_arg(in, "alpha", 1) * src->v[i];
  }
  return 1;
}
/* Index tensors for the first dims, or one mask over the first dim. */
static int r_index_put(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const Arr* values = tensor(in, "values");
  Arr at[2], where;
  int64_t shape[kMaxDims], i, k, idx[kMaxDims];
  int d, n = in->n_items;
  const int is_mask = n == 1 && tt_tensor_dtype(in->sample->items[0]) == TT_BOOL;
  at[0] = in->items[0];
  at[1] = in->items[1];
  if (is_mask) {
    k = 0;
    for (i = 0; i < at[0].n; i++)
      if (in->items[0].v[i] != 0) k++;
    at[0] = array(&k, 1);
    for (i = k = 0; i < in->items[0].n; i++)
      if (in->items[0].v[i] != 0) at[0].v[k++] = (double)i;
  }
  memcpy(shape, at[0].shape, sizeof shape);
  for (d = n; d < x->ndim; d++) shape[at[0].ndim + d - n] = x->shape[d];
  where = array(shape, at[0].ndim + x->ndim - n);
  *out = array(x->shape, x->ndim);
  memcpy(out->v, x->v, (size_t)x->n * sizeof(double));
  for (i = 0; i < where.n; i++) {
    int64_t to[kMaxDims];
    const int64_t row = i / (where.n / (at[0].n ? at[0].n : 1));
    double v;
    unravel(i, where.shape, where.ndim, idx);
    for (d = 0; d < n; d++) to[d] = wrap((int64_t)at[d].v[row], x->shape[d]);
    for (d = n; d < x->ndim; d++) to[d] = idx[at[0].ndim + d - n];
    v = values->v[broadcast_at(values, idx, where.ndim)];
    if (int_arg(in, "accumulate", 0)) out->v[ravel(out, to)] += v;
    else out->v[ravel(out, to)] = v;
  }
  return 1;
}
static int r_embedding(const Inputs* in, Arr* out) {
  const Arr* w = tensor(in, "weight");
  const Arr* index = tensor(in, "indices");
  int64_t shape[kMaxDims], i;
  if (!w || !index) return 0;
  memcpy(shape, index->shape, sizeof shape);
  shape[index->ndim] = w->shape[1];
  *out = array(shape, index->ndim + 1);
  for (i = 0; i < out->n; i++)
    out->v[i] = w->v[(int64_t)index->v[i / w->shape[1]] * w->shape[1] + i % w->shape[1]];
  return 1;
}

/* ---- joining ---- */

static int join(const Inputs* in, Arr* out, int stacked) {
  int64_t shape[kMaxDims], i, idx[kMaxDims], base = 0;
  const Arr* first = &in->items[0];
  const int nd = first->ndim + stacked;
  const int64_t d = wrap(int_arg(in, "dim", 0), nd);
  int k, e;
  for (e = 0; e < nd; e++) shape[e] = e == d ? 0 : first->shape[stacked && e > d ? e - 1 : e];
  for (k = 0; k < in->n_items; k++) shape[d] += stacked ? 1 : in->items[k].shape[d];
  *out = array(shape, nd);
  for (k = 0; k < in->n_items; k++) {
    const Arr* x = &in->items[k];
    for (i = 0; i < x->n; i++) {
      unravel(i, x->shape, x->ndim, idx);
      if (stacked)
        for (e = nd - 1; e > d; e--) idx[e] = idx[e - 1];
      idx[d] = stacked ? k : idx[d] + base;
      out->v[ravel(out, idx)] = x->v[i];
    }
    if (!stacked) base += x->shape[d];
  }
  return 1;
}
static int r_cat(const Inputs* in, Arr* out) { return join(in, out, 0); }
static int r_stack(const Inputs* in, Arr* out) { return join(in, out, 1); }

static int r_split(const Inputs* in, Arr* outs) {
  const Arr* x = tensor(in, "self");
  const int64_t d = wrap(int_arg(in, "dim", 0), x->ndim);
  const tt_value* sizes = has(in, "split_sizes") ? given(in, "split_sizes") : NULL;
  int64_t begin = 0, i, idx[kMaxDims];
  int n = 0;
  while (sizes ? n < sizes->n : begin < x->shape[d]) {
    int64_t size = sizes ? sizes->ints[n] : int_arg(in, "split_size", 1), shape[kMaxDims];
    if (begin + size > x->shape[d]) size = x->shape[d] - begin;
    memcpy(shape, x->shape, sizeof shape);
    shape[d] = size;
    outs[n] = array(shape, x->ndim);
    for (i = 0; i < outs[n].n; i++) {
      unravel(i, shape, x->ndim, idx);
      idx[d] += begin;
      outs[n].v[i] = x->v[ravel(x, idx)];
    }
    begin += size;
    n++;
  }
  return n;
}

/* ---- views: where an index of the result comes from ---- */

static Arr same_order(const Arr* x, const int64_t* shape, int ndim) {
  Arr out = array(shape, ndim);
  memcpy(out.v, x->v, (size_t)x->n * sizeof(double));
  return out;
}
static int r_view(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const tt_value* v = given(in, has(in, "size") ? "size" : "shape");
  int64_t shape[kMaxDims], known = 1, i;
  for (i = 0; i < v->n; i++) {
    shape[i] = v->ints[i];
    known *= shape[i] < 0 ? 1 : shape[i];
  }
  for (i = 0; i < v->n; i++)
    if (shape[i] < 0) shape[i] = x->n / known;
  *out = same_order(x, shape, (int)v->n);
  return 1;
}
static int r_squeeze(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const unsigned mask = has(in, "dim") && given(in, "dim")->n == 0 ? 0 : reduced_dims(in, x);
  int64_t shape[kMaxDims];
  int d, n = 0;
  for (d = 0; d < x->ndim; d++)
    if (!(mask >> d & 1) || x->shape[d] != 1) shape[n++] = x->shape[d];
  *out = same_order(x, shape, n);
  return 1;
}
static int r_unsqueeze(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const int64_t at = wrap(int_arg(in, "dim", 0), x->ndim + 1);
  int64_t shape[kMaxDims];
  int d;
  for (d = 0; d <= x->ndim; d++) shape[d] = d == at ? 1 : x->shape[d - (d > at)];
  *out = same_order(x, shape, x->ndim + 1);
  return 1;
}
static int permuted(const Arr* x, const int64_t* dims, Arr* out) {
  int64_t shape[kMaxDims], i, idx[kMaxDims], from[kMaxDims];
  int d;
  for (d = 0; d < x->ndim; d++) shape[d] = x->shape[wrap(dims[d], x->ndim)];
  *out = array(shape, x->ndim);
  for (i = 0; i < out->n; i++) {
    unravel(i, shape, x->ndim, idx);
    for (d = 0; d < x->ndim; d++) from[wrap(dims[d], x->ndim)] = idx[d];
    out->v[i] = x->v[ravel(x, from)];
  }
  return 1;
}
static int r_permute(const Inputs* in, Arr* out) {
  return permuted(tensor(in, "self"), given(in, "dims")->ints, out);
}
static int swapped(const Arr* x, int64_t a, int64_t b, Arr* out) {
  int64_t dims[kMaxDims];
  int d;
  for (d = 0; d < x->ndim; d++) dims[d] = d;
  if (x->ndim) {
    dims[a] = b;
    dims[b] = a;
  }
  return permuted(x, dims, out);
}
static int r_transpose(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  return swapped(x, wrap(int_arg(in, "dim0", 0), x->ndim), wrap(int_arg(in, "dim1", 0), x->ndim),
                 out);
}
static int r_t(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  return x->ndim < 2 ? (*out = *x, 1) : swapped(x, 0, 1, out);
}
static int r_expand(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const tt_value* v = given(in, "size");
  int64_t shape[kMaxDims], i, idx[kMaxDims];
  for (i = 0; i < v->n; i++)
    shape[i] = v->ints[i] < 0 ? x->shape[i - (v->n - x->ndim)] : v->ints[i];
  *out = array(shape, (int)v->n);
  for (i = 0; i < out->n; i++) {
    unravel(i, shape, out->ndim, idx);
    out->v[i] = x->v[broadcast_at(x, idx, out->ndim)];
  }
  return 1;
}
static int r_select(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const int64_t d = wrap(int_arg(in, "dim", 0), x->ndim);
  const int64_t at = wrap(int_arg(in, "index", 0), x->shape[d]);
  int64_t i, k = 0, idx[kMaxDims];
  *out = reduced_shape(x, 1u << d, 0);
  for (i = 0; i < x->n; i++) {
    unravel(i, x->shape, x->ndim, idx);
    if (idx[d] == at) out->v[k++] = x->v[i];
  }
  return 1;
}
static int64_t clip(int64_t v, int64_t n) {
  return v < 0 ? (v + n < 0 ? 0 : v + n) : v > n ? n : v;
}
static int r_slice(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const int64_t d = wrap(int_arg(in, "dim", 0), x->ndim);
  const int64_t size = x->shape[d];
  const int64_t begin = clip(int_arg(in, "start", 0), size);
  const int64_t end = clip(int_arg(in, "end", size), size);
  const int64_t step = int_arg(in, "step", 1);
  int64_t i, idx[kMaxDims], shape[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  shape[d] = end > begin ? (end - begin + step - 1) / step : 0;
  *out = array(shape, x->ndim);
  for (i = 0; i < out->n; i++) {
    unravel(i, shape, x->ndim, idx);
    idx[d] = begin + idx[d] * step;
    out->v[i] = x->v[ravel(x, idx)];
  }
  return 1;
}
static int r_as_strided(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const tt_value* size = given(in, "size");
  const tt_value* stride = given(in, "stride");
  int64_t i, d, idx[kMaxDims];
  *out = array(size->ints, (int)size->n);
  for (i = 0; i < out->n; i++) {
    int64_t at = int_arg(in, "storage_offset", 0);
    unravel(i, out->shape, out->ndim, idx);
    for (d = 0; d < size->n; d++) at += idx[d] * stride->ints[d];
    out->v[i] = x->v[at];
  }
  return 1;
}

/* ---- creation ---- */

static int constant(const Inputs* in, Arr* out, double v) {
  int64_t i;
  if (has(in, "self")) *out = array(tensor(in, "self")->shape, tensor(in, "self")->ndim);
  else *out = array(given(in, "size")->ints, (int)given(in, "size")->n);
  for (i = 0; i < out->n; i++) out->v[i] = v;
  return 1;
}
static int r_zeros(const Inputs* in, Arr* out) { return constant(in, out, 0); }
static int r_ones(const Inputs* in, Arr* out) { return constant(in, out, 1); }
static int r_full(const Inputs* in, Arr* out) {
  return constant(in, out, number_arg(in, "fill_value", 0));
}
static int r_empty(const Inputs* in, Arr* out) {
  constant(in, out, 0);
  out->v = NULL;
  return 1;
} /* any values */
static int r_arange(const Inputs* in, Arr* out) {
  const double start = number_arg(in, "start", 0);
  const double end = number_arg(in, "end", 0);
  const double step = number_arg(in, "step", 1);
  const int64_t n = (int64_t)ceil((end - start) / step);
  const int64_t dtype = int_arg(in, "dtype", TT_F32);
  int64_t i;
  *out = array(&n, 1);
  for (i = 0; i < n; i++) {
    double v = start + step * (double)i;
    if (dtype == TT_I64) v = trunc(start) + trunc(step) * (double)i;
    out->v[i] = dtype == TT_BOOL ? v != 0 : v;
  }
  return 1;
}
static int r_to(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const int64_t d = int_arg(in, "dtype", TT_F64);
  int64_t i;
  *out = same_order(x, x->shape, x->ndim);
  for (i = 0; i < x->n; i++) {
    if (d == TT_BOOL) out->v[i] = x->v[i] != 0;
    if (d >= TT_U8 && d <= TT_I64) out->v[i] = trunc(x->v[i]);
  }
  return 1;
}

#include "refs/act.h"
#include "refs/attention.h"
#include "refs/fold.h"
#include "refs/conv.h"
#include "refs/image.h"
#include "refs/math.h"
#include "refs/shape.h"
#include "refs/sort.h"

/* ---- the table ---- */

static const struct {
  const char* name;
  Elementwise element;
  int (*whole)(const Inputs*, Arr*);
  int exact;
} kRefs[] = {{"neg", f_neg, 0, 1},
             {"clone", f_copy, 0, 1},
             {"contiguous", f_copy, 0, 1},
             {"detach", f_copy, 0, 1},
             {"exp", f_exp, 0, 0},
             {"log", f_log, 0, 0},
             {"tanh", f_tanh, 0, 0},
             {"sigmoid", f_sigmoid, 0, 0},
             {"relu", f_relu, 0, 1},
             {"add", f_add, 0, 1},
             {"sub", f_sub, 0, 1},
             {"rsub", f_rsub, 0, 1},
             {"mul", f_mul, 0, 1},
             {"div", f_div, 0, 1},
             {"pow", f_pow, 0, 0},
             {"maximum", f_maximum, 0, 1},
             {"minimum", f_minimum, 0, 1},
             {"eq", f_eq, 0, 1},
             {"ne", f_ne, 0, 1},
             {"lt", f_lt, 0, 1},
             {"le", f_le, 0, 1},
             {"gt", f_gt, 0, 1},
             {"ge", f_ge, 0, 1},
             {"where", f_where, 0, 1},
             {"masked_fill", f_masked_fill, 0, 1},
             {"zero_", f_zero, 0, 1},
             {"fill_", f_second, 0, 1},
             {"copy_", f_second, 0, 1},
             {"clamp", 0, r_clamp, 1},
             {"sum", 0, r_sum, 1},
             {"mean", 0, r_mean, 1},
             {"any", 0, r_any, 1},
             {"max", 0, r_max, 1},
             {"argmax", 0, r_argmax, 1},
             {"min", 0, r_min, 1},
             {"matmul", 0, r_matmul, 0},
             {"linear", 0, r_linear, 0},
             {"addmm", 0, r_addmm, 0},
             {"softmax", 0, r_softmax, 0},
             {"log_softmax", 0, r_log_softmax, 0},
             {"softmin", 0, r_softmin, 0},
             {"layer_norm", 0, r_layer_norm, 0},
             {"nll_loss", 0, r_nll_loss, 0},
             {"cross_entropy", 0, r_cross_entropy, 0},
             {"gather", 0, r_gather, 1},
             {"scatter_add", 0, r_scatter_add, 1},
             {"index_select", 0, r_index_select, 1},
             {"index_add", 0, r_index_add, 1},
             {"index_put", 0, r_index_put, 1},
             {"embedding", 0, r_embedding, 1},
             {"cat", 0, r_cat, 1},
             {"stack", 0, r_stack, 1},
             {"split", 0, r_split, 1},
             {"split_with_sizes", 0, r_split, 1},
             {"view", 0, r_view, 1},
             {"reshape", 0, r_view, 1},
             {"squeeze", 0, r_squeeze, 1},
             {"unsqueeze", 0, r_unsqueeze, 1},
             {"permute", 0, r_permute, 1},
             {"transpose", 0, r_transpose, 1},
             {"t", 0, r_t, 1},
             {"expand", 0, r_expand, 1},
             {"select", 0, r_select, 1},
             {"slice", 0, r_slice, 1},
             {"as_strided", 0, r_as_strided, 1},
             {"zeros", 0, r_zeros, 1},
             {"ones", 0, r_ones, 1},
             {"full", 0, r_full, 1},
             {"empty", 0, r_empty, 1},
             {"zeros_like", 0, r_zeros, 1},
             {"ones_like", 0, r_ones, 1},
             {"full_like", 0, r_full, 1},
             {"empty_like", 0, r_empty, 1},
             {"arange", 0, r_arange, 1},
             {"to", 0, r_to, 1},
             ACT_REFS,
             ATTENTION_REFS FOLD_REFS CONV_REFS MATH_REFS IMAGE_REFS SHAPE_REFS SORT_REFS};

/* An overload has the reference of its family: add_scalar that of add, max_dim that of max. */
int reference(const Inputs* in, Arr* outs, int* exact) {
  char name[64];
  strncpy(name, in->sample->row->name, sizeof name - 1);
  name[sizeof name - 1] = 0;
  for (;;) {
    size_t i;
    char* cut;
    for (i = 0; i < sizeof kRefs / sizeof *kRefs; i++) {
      if (strcmp(kRefs[i].name, name)) continue;
      *exact = kRefs[i].exact;
      return kRefs[i].whole ? kRefs[i].whole(in, outs) : elementwise(in, kRefs[i].element, outs);
    }
    cut = strrchr(name, '_');
    if (!cut) return -1;
    *cut = 0;
  }
}
