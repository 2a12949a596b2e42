/* References of reductions and statistics. */

/* ---- which dimensions are reduced, as a mask of bits ---- */

static int is_reduced(unsigned mask, int d) { return (int)(mask >> d & 1); }
/* All of them without a dim argument and for an empty list. */
static unsigned reduced_dims(const Inputs* in, const Array* x) {
  const unsigned all = (1u << x->ndim) - 1;
  const tt_value* dim = given(in, "dim");
  unsigned mask = 0;
  if (!dim || !x->ndim) return all;
  if (dim->tag == TT_VAL_INT) return 1u << wrap(dim->i, x->ndim);
  for (int64_t i = 0; i < dim->n; i++) mask |= 1u << wrap(dim->ints[i], x->ndim);
  return dim->n ? mask : all;
}
static Array reduced_zeros(const Array* x, unsigned mask, int keepdim) {
  int64_t shape[kMaxDims];
  int ndim = 0;
  for (int d = 0; d < x->ndim; d++) {
    if (!is_reduced(mask, d)) shape[ndim++] = x->shape[d];
    else if (keepdim) shape[ndim++] = 1;
  }
  return new_array(shape, ndim);
}
/* The position of element i of x within the dimensions whose bit in the mask is `reduced`. */
static int64_t position_in(const Array* x, int64_t i, unsigned mask, int reduced) {
  int64_t index[kMaxDims];
  int64_t at = 0;
  index_of(x, i, index);
  for (int d = 0; d < x->ndim; d++)
    if (is_reduced(mask, d) == reduced) at = at * x->shape[d] + index[d];
  return at;
}
static int64_t result_of(const Array* x, int64_t i, unsigned mask) {
  return position_in(x, i, mask, 0);
}

/* A reduction of self: *out gets `start` everywhere, *mask the reduced dimensions. Returns self. */
static const Array* begin_reduction(const Inputs* in, double start, Array* out, unsigned* mask) {
  const Array* x = tensor(in, "self");
  *mask = reduced_dims(in, x);
  *out = reduced_zeros(x, *mask, flag_arg(in, "keepdim"));
  fill(out, start);
  return x;
}

/* ---- sums, products, logic ---- */

static int ref_sum(const Inputs* in, Array* out) {
  unsigned mask;
  const Array* x = begin_reduction(in, 0, out, &mask);
  for (int64_t i = 0; i < x->n; i++) out->data[result_of(x, i, mask)] += x->data[i];
  return 1;
}
static int ref_mean(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  ref_sum(in, out);
  for (int64_t i = 0; i < out->n; i++)
    out->data[i] = x->n ? out->data[i] / ((double)x->n / (double)out->n) : NAN;
  return 1;
}
static int ref_prod(const Inputs* in, Array* out) {
  unsigned mask;
  const Array* x = begin_reduction(in, 1, out, &mask);
  for (int64_t i = 0; i < x->n; i++) out->data[result_of(x, i, mask)] *= x->data[i];
  return 1;
}
static int ref_any(const Inputs* in, Array* out) {
  unsigned mask;
  const Array* x = begin_reduction(in, 0, out, &mask);
  for (int64_t i = 0; i < x->n; i++)
    if (x->data[i] != 0) out->data[result_of(x, i, mask)] = 1;
  return 1;
}
static int ref_all(const Inputs* in, Array* out) {
  unsigned mask;
  const Array* x = begin_reduction(in, 1, out, &mask);
  for (int64_t i = 0; i < x->n; i++)
    if (x->data[i] == 0) out->data[result_of(x, i, mask)] = 0;
  return 1;
}

/* ---- extremes: the first of equal values; nan is larger than all numbers ---- */

static int is_larger(double a, double b) { return a > b || (isnan(a) && !isnan(b)); }
static void largest_of(const Inputs* in, const Array* x, Array* values, Array* positions) {
  const unsigned mask = reduced_dims(in, x);
  *values = reduced_zeros(x, mask, flag_arg(in, "keepdim"));
  *positions = zeros_like(values);
  fill(positions, -1);
  for (int64_t i = 0; i < x->n; i++) {
    const int64_t k = result_of(x, i, mask);
    if (positions->data[k] >= 0 && !is_larger(x->data[i], values->data[k])) continue;
    values->data[k] = x->data[i];
    positions->data[k] = (double)position_in(x, i, mask, 1);
  }
}
static void smallest_of(const Inputs* in, const Array* x, Array* values, Array* positions) {
  const Array negative = negated(x);
  largest_of(in, &negative, values, positions);
  *values = negated(values);
}
static int ref_max(const Inputs* in, Array* outs) {
  largest_of(in, tensor(in, "self"), &outs[0], &outs[1]);
  return in->sample->row->n_outs;
}
static int ref_min(const Inputs* in, Array* outs) {
  smallest_of(in, tensor(in, "self"), &outs[0], &outs[1]);
  return in->sample->row->n_outs;
}
static int ref_amax(const Inputs* in, Array* out) {
  Array positions;
  largest_of(in, tensor(in, "self"), out, &positions);
  return 1;
}
static int ref_amin(const Inputs* in, Array* out) {
  Array positions;
  smallest_of(in, tensor(in, "self"), out, &positions);
  return 1;
}
static int ref_argmax(const Inputs* in, Array* out) {
  Array values;
  largest_of(in, tensor(in, "self"), &values, out);
  return 1;
}
static int ref_argmin(const Inputs* in, Array* out) {
  Array values;
  smallest_of(in, tensor(in, "self"), &values, out);
  return 1;
}

/* ---- statistics ---- */

static int ref_logsumexp(const Inputs* in, Array* out) {
  unsigned mask;
  const Array* x = begin_reduction(in, 0, out, &mask);
  for (int64_t i = 0; i < x->n; i++) out->data[result_of(x, i, mask)] += exp(x->data[i]);
  for (int64_t i = 0; i < out->n; i++) out->data[i] = log(out->data[i]);
  return 1;
}
static int ref_var_mean(const Inputs* in, Array* outs) {
  unsigned mask;
  const Array* x = begin_reduction(in, 0, &outs[0], &mask);
  Array* variance = &outs[0];
  Array* mean = &outs[1];
  const double count = (double)x->n / (double)variance->n;
  const double divisor = count - number_arg(in, "correction", 1);
  *mean = zeros_like(variance);
  for (int64_t i = 0; i < x->n; i++) mean->data[result_of(x, i, mask)] += x->data[i] / count;
  for (int64_t i = 0; i < x->n; i++) {
    const int64_t k = result_of(x, i, mask);
    const double distance = x->data[i] - mean->data[k];
    variance->data[k] += distance * distance;
  }
  for (int64_t i = 0; i < variance->n; i++) variance->data[i] /= divisor > 0 ? divisor : 0;
  return 2;
}
static int ref_var(const Inputs* in, Array* out) {
  Array both[2];
  ref_var_mean(in, both);
  *out = both[0];
  return 1;
}
static int ref_std(const Inputs* in, Array* out) {
  ref_var(in, out);
  for (int64_t i = 0; i < out->n; i++) out->data[i] = sqrt(out->data[i]);
  return 1;
}

/* ---- norms of vectors ---- */

static double larger_or_nan(double a, double b) { return isnan(a) || isnan(b) ? NAN : fmax(a, b); }
static double smaller_or_nan(double a, double b) { return isnan(a) || isnan(b) ? NAN : fmin(a, b); }
static int ref_norm(const Inputs* in, Array* out) {
  const double p = number_arg(in, "p", 2);
  unsigned mask;
  const Array* x = begin_reduction(in, p == -INFINITY ? INFINITY : 0, out, &mask);
  for (int64_t i = 0; i < x->n; i++) {
    const double size = fabs(x->data[i]);
    double* result = &out->data[result_of(x, i, mask)];
    if (p == INFINITY) *result = larger_or_nan(*result, size);
    else if (p == -INFINITY) *result = smaller_or_nan(*result, size);
    else if (p == 0) *result += size != 0;
    else *result += pow(size, p);
  }
  for (int64_t i = 0; i < out->n; i++)
    if (!isinf(p) && p != 0) out->data[i] = pow(out->data[i], 1 / p);
  return 1;
}

static int ref_sum_to_size(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const tt_value* size = given(in, "size");
  int64_t index[kMaxDims];
  *out = new_array(size->ints, (int)size->n);
  for (int64_t i = 0; i < x->n; i++) {
    int64_t at = 0;
    index_of(x, i, index);
    for (int d = 0; d < out->ndim; d++) {
      const int64_t own = out->shape[d] == 1 ? 0 : index[x->ndim - out->ndim + d];
      at = at * out->shape[d] + own;
    }
    out->data[at] += x->data[i];
  }
  return 1;
}

static const Reference kReduce[] = {
    {"sum", .whole = ref_sum, .exact = 1},
    {"mean", .whole = ref_mean, .exact = 1},
    {"prod", .whole = ref_prod},
    {"any", .whole = ref_any, .exact = 1},
    {"all", .whole = ref_all, .exact = 1},
    {"max", .whole = ref_max, .exact = 1},
    {"min", .whole = ref_min, .exact = 1},
    {"amax", .whole = ref_amax, .exact = 1},
    {"amin", .whole = ref_amin, .exact = 1},
    {"argmax", .whole = ref_argmax, .exact = 1},
    {"argmin", .whole = ref_argmin, .exact = 1},
    {"logsumexp", .whole = ref_logsumexp},
    {"var_mean", .whole = ref_var_mean},
    {"var", .whole = ref_var},
    {"std", .whole = ref_std},
    {"norm", .whole = ref_norm},
    {"sum_to_size", .whole = ref_sum_to_size, .exact = 1},
};
