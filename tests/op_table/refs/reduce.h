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

static int ref_hash_tensor(const Inputs* in, Array* out) {
  unsigned mask;
  const Array* x = begin_reduction(in, 0, out, &mask);
  uint64_t* hash = calloc((size_t)out->n + 1, sizeof *hash);
  const int floating = dtype_of(in, "self") >= TT_F16;
  for (int64_t i = 0; i < x->n; i++) {
    const int64_t whole = floating ? 0 : (int64_t)x->data[i];
    uint64_t bits;
    memcpy(&bits, floating ? (const void*)&x->data[i] : (const void*)&whole, sizeof bits);
    hash[result_of(x, i, mask)] ^= bits;
  }
  for (int64_t i = 0; i < out->n; i++) out->data[i] = (double)hash[i];
  free(hash);
  return 1;
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

/* ---- counts, extremes, and what skips nan ---- */

static int ref_count_nonzero(const Inputs* in, Array* out) {
  unsigned mask;
  const Array* x = begin_reduction(in, 0, out, &mask);
  for (int64_t i = 0; i < x->n; i++) out->data[result_of(x, i, mask)] += x->data[i] != 0;
  return 1;
}
static int ref_aminmax(const Inputs* in, Array* outs) {
  ref_amin(in, &outs[0]);
  ref_amax(in, &outs[1]);
  return 2;
}
static int ref_std_mean(const Inputs* in, Array* outs) {
  ref_std(in, &outs[0]);
  ref_mean(in, &outs[1]);
  return 2;
}
static int ref_nansum(const Inputs* in, Array* out) {
  unsigned mask;
  const Array* x = begin_reduction(in, 0, out, &mask);
  for (int64_t i = 0; i < x->n; i++)
    if (!isnan(x->data[i])) out->data[result_of(x, i, mask)] += x->data[i];
  return 1;
}
static int ref_nanmean(const Inputs* in, Array* out) {
  unsigned mask;
  Array counts;
  const Array* x = begin_reduction(in, 0, &counts, &mask);
  ref_nansum(in, out);
  for (int64_t i = 0; i < x->n; i++) counts.data[result_of(x, i, mask)] += !isnan(x->data[i]);
  for (int64_t i = 0; i < out->n; i++) out->data[i] /= counts.data[i];
  return 1;
}

/* ---- covariances ---- */

static Array covariances(const Inputs* in) {
  const Array* x = tensor(in, "self");
  const Array* often = tensor(in, "fweights");
  const Array* heavy = tensor(in, "aweights");
  const int64_t rows = x->ndim == 2 ? x->shape[0] : 1;
  const int64_t n = x->n / rows;
  const int64_t shape[2] = {rows, rows};
  const double correction = number_arg(in, "correction", 1);
  double total = 0;
  double squares = 0;
  double means[16] = {0};
  Array out = new_array(shape, rows > 1 ? 2 : 0);
  for (int64_t k = 0; k < n; k++) {
    const double w = (often ? often->data[k] : 1) * (heavy ? heavy->data[k] : 1);
    total += w;
    squares += w * (heavy ? heavy->data[k] : 1);
    for (int64_t i = 0; i < rows; i++) means[i] += w * x->data[i * n + k];
  }
  for (int64_t i = 0; i < rows; i++) means[i] /= total;
  for (int64_t k = 0; k < n; k++) {
    const double w = (often ? often->data[k] : 1) * (heavy ? heavy->data[k] : 1);
    for (int64_t i = 0; i < out.n; i++)
      out.data[i] += w * (x->data[i / rows * n + k] - means[i / rows]) *
                     (x->data[i % rows * n + k] - means[i % rows]);
  }
  for (int64_t i = 0; i < out.n; i++)
    out.data[i] /= total - correction * (heavy ? squares / total : 1);
  return out;
}
static int ref_cov(const Inputs* in, Array* out) {
  *out = covariances(in);
  return 1;
}
static int ref_corrcoef(const Inputs* in, Array* out) {
  const Array c = covariances(in);
  const int64_t rows = c.ndim ? c.shape[0] : 1;
  *out = zeros_like(&c);
  for (int64_t i = 0; i < c.n; i++)
    out->data[i] = c.data[i] / sqrt(c.data[i / rows * (rows + 1)] * c.data[i % rows * (rows + 1)]);
  return 1;
}

/* ---- distances ---- */

/* The p-norm of n numbers, `step` apart. */
static double p_norm(const double* x, int64_t n, int64_t step, double p) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += pow(fabs(x[i * step]), p);
  return pow(sum, 1 / p);
}
static Array difference(const Array* a, const Array* b, double eps) {
  const Array pair[2] = {*a, *b};
  int64_t index[kMaxDims];
  Array out = broadcast_zeros(pair, 2);
  for (int64_t i = 0; i < out.n; i++) {
    index_of(&out, i, index);
    out.data[i] = broadcast_value(a, index, out.ndim) - broadcast_value(b, index, out.ndim) + eps;
  }
  return out;
}
static int ref_dist(const Inputs* in, Array* out) {
  const Array d = difference(tensor(in, "self"), tensor(in, "other"), 0);
  *out = zero_dim(p_norm(d.data, d.n, 1, number_arg(in, "p", 2)));
  return 1;
}
static int ref_pairwise_distance(const Inputs* in, Array* out) {
  const Array d = difference(tensor(in, "x1"), tensor(in, "x2"), number_arg(in, "eps", 1e-6));
  const int64_t n = d.shape[d.ndim - 1];
  *out = reduced_zeros(&d, 1u << (d.ndim - 1), flag_arg(in, "keepdim"));
  for (int64_t i = 0; i < out->n; i++)
    out->data[i] = p_norm(d.data + i * n, n, 1, number_arg(in, "p", 2));
  return 1;
}
static int ref_cosine_similarity(const Inputs* in, Array* out) {
  const Array pair[2] = {*tensor(in, "x1"), *tensor(in, "x2")};
  const Array all = broadcast_zeros(pair, 2);
  const int64_t d = dim_arg(in, "dim", 1, all.ndim);
  Array squares[2];
  int64_t index[kMaxDims];
  *out = reduced_zeros(&all, 1u << d, 0);
  for (int k = 0; k < 2; k++) squares[k] = zeros_like(out);
  for (int64_t i = 0; i < all.n; i++) {
    const int64_t at = result_of(&all, i, 1u << d);
    index_of(&all, i, index);
    const double a = broadcast_value(&pair[0], index, all.ndim);
    const double b = broadcast_value(&pair[1], index, all.ndim);
    out->data[at] += a * b;
    squares[0].data[at] += a * a;
    squares[1].data[at] += b * b;
  }
  for (int64_t i = 0; i < out->n; i++)
    out->data[i] /= sqrt(squares[0].data[i]) * sqrt(squares[1].data[i]);
  return 1;
}
static int ref_normalize(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "input");
  const int64_t d = dim_arg(in, "dim", 1, x->ndim);
  const int64_t inner = inner_size(x, d);
  const int64_t n = x->shape[d];
  *out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) {
    const int64_t from = i / (n * inner) * n * inner + i % inner;
    out->data[i] = x->data[i] / p_norm(x->data + from, n, inner, number_arg(in, "p", 2));
  }
  return 1;
}
static int ref_renorm(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  const double p = number_arg(in, "p", 2);
  const double limit = number_arg(in, "maxnorm", 1);
  int64_t index[kMaxDims];
  double norms[16] = {0};
  *out = copy_of(x);
  for (int64_t i = 0; i < x->n; i++) {
    index_of(x, i, index);
    norms[index[d]] += pow(fabs(x->data[i]), p);
  }
  for (int64_t i = 0; i < x->n; i++) {
    index_of(x, i, index);
    const double norm = pow(norms[index[d]], 1 / p);
    if (norm > limit) out->data[i] *= limit / (norm + 1e-7);
  }
  return 1;
}
static int ref_cdist(const Inputs* in, Array* out) {
  const Array* a = tensor(in, "x1");
  const Array* b = tensor(in, "x2");
  const Array batches[2] = {new_array(a->shape, a->ndim - 2), new_array(b->shape, b->ndim - 2)};
  const Array batch = broadcast_zeros(batches, 2);
  const int64_t n = a->shape[a->ndim - 2];
  const int64_t r = b->shape[b->ndim - 2];
  const int64_t m = a->shape[a->ndim - 1];
  int64_t shape[kMaxDims];
  memcpy(shape, batch.shape, sizeof shape);
  shape[batch.ndim] = n;
  shape[batch.ndim + 1] = r;
  *out = new_array(shape, batch.ndim + 2);
  for (int64_t i = 0; i < out->n; i++) {
    /* one batch dimension at most; a size of 1 broadcasts */
    const double* x = a->data + (batches[0].n == 1 ? 0 : i / (n * r)) * n * m + i / r % n * m;
    const double* y = b->data + (batches[1].n == 1 ? 0 : i / (n * r)) * r * m + i % r * m;
    double between[16];
    for (int64_t k = 0; k < m; k++) between[k] = x[k] - y[k];
    out->data[i] = p_norm(between, m, 1, number_arg(in, "p", 2));
  }
  return 1;
}
static int ref_pdist(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t n = x->shape[0];
  const int64_t m = x->shape[1];
  const int64_t pairs = n * (n - 1) / 2;
  int64_t at = 0;
  *out = new_array(&pairs, 1);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i + 1; j < n; j++) {
      double between[16];
      for (int64_t k = 0; k < m; k++) between[k] = x->data[i * m + k] - x->data[j * m + k];
      out->data[at++] = p_norm(between, m, 1, number_arg(in, "p", 2));
    }
  return 1;
}

static int ref_trace(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  *out = zero_dim(0);
  for (int64_t i = 0; i < x->shape[0] && i < x->shape[1]; i++)
    out->data[0] += x->data[i * (x->shape[1] + 1)];
  return 1;
}

static const Reference kReduce[] = {
    {"sum", .whole = ref_sum, .exact = kExactSum},
    {"mean", .whole = ref_mean, .exact = kExactSum},
    {"prod", .whole = ref_prod},
    {"any", .whole = ref_any, .exact = 1},
    {"all", .whole = ref_all, .exact = 1},
    {"max", .whole = ref_max, .exact = 1},
    {"min", .whole = ref_min, .exact = 1},
    {"amax", .whole = ref_amax, .exact = 1},
    {"amin", .whole = ref_amin, .exact = 1},
    {"hash_tensor", .whole = ref_hash_tensor, .exact = 1},
    {"argmax", .whole = ref_argmax, .exact = 1},
    {"argmin", .whole = ref_argmin, .exact = 1},
    {"logsumexp", .whole = ref_logsumexp},
    {"var_mean", .whole = ref_var_mean},
    {"var", .whole = ref_var},
    {"std", .whole = ref_std},
    {"norm", .whole = ref_norm},
    {"sum_to_size", .whole = ref_sum_to_size, .exact = kExactSum},
    {"trace", .whole = ref_trace, .exact = kExactSum},
    {"count_nonzero", .whole = ref_count_nonzero, .exact = 1},
    {"aminmax", .whole = ref_aminmax, .exact = 1},
    {"std_mean", .whole = ref_std_mean},
    {"nansum", .whole = ref_nansum},
    {"nanmean", .whole = ref_nanmean},
    {"cov", .whole = ref_cov},
    {"corrcoef", .whole = ref_corrcoef},
    {"dist", .whole = ref_dist},
    {"pairwise_distance", .whole = ref_pairwise_distance},
    {"cosine_similarity", .whole = ref_cosine_similarity},
    {"normalize", .whole = ref_normalize},
    {"renorm", .whole = ref_renorm},
    {"cdist", .whole = ref_cdist},
    {"pdist", .whole = ref_pdist},
};
