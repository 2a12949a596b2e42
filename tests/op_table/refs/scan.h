/* References of cumulative sums and products. */

static Array scanned(const Inputs* in, double (*combine)(double, double)) {
  const Array* x = tensor(in, "self");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  int64_t index[kMaxDims];
  Array out = copy_of(x);
  for (int64_t i = 0; x->ndim && i < x->n; i++) {
    index_of(x, i, index);
    if (index[d] == 0) continue;
    index[d]--;
    out.data[i] = combine(out.data[i], out.data[ravel(&out, index)]);
  }
  return out;
}
static double plus(double a, double b) { return a + b; }
static int ref_cumsum(const Inputs* in, Array* out) {
  *out = scanned(in, plus);
  return 1;
}
static int ref_cumprod(const Inputs* in, Array* out) {
  *out = scanned(in, ref_mul);
  return 1;
}

/* ---- differences and areas ---- */

/* x without its last or its first index of dimension d. */
static Array trimmed(const Array* x, int64_t d, int64_t begin) {
  const int64_t size = x->shape[d] ? x->shape[d] - 1 : 0;
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  shape[d] = size;
  Array out = new_array(shape, x->ndim);
  for (int64_t i = 0; i < out.n; i++) {
    index_of(&out, i, index);
    index[d] += begin;
    out.data[i] = x->data[ravel(x, index)];
  }
  return out;
}
/* The elements of a and then of b along dimension d. */
static Array behind(const Array* a, const Array* b, int64_t d) {
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  memcpy(shape, a->shape, sizeof shape);
  shape[d] += b->shape[d];
  Array out = new_array(shape, a->ndim);
  for (int64_t i = 0; i < out.n; i++) {
    index_of(&out, i, index);
    const int second = index[d] >= a->shape[d];
    if (second) index[d] -= a->shape[d];
    out.data[i] = second ? b->data[ravel(b, index)] : a->data[ravel(a, index)];
  }
  return out;
}
static int ref_diff(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const Array* before = tensor(in, "prepend");
  const Array* after = tensor(in, "append");
  const int64_t d = dim_arg(in, "dim", -1, x->ndim);
  const int64_t n = int_arg(in, "n", 1);
  *out = copy_of(x);
  if (before && n) *out = behind(before, out, d);
  if (after && n) *out = behind(out, after, d);
  for (int64_t k = 0; k < n; k++) {
    const Array early = trimmed(out, d, 0);
    *out = trimmed(out, d, 1);
    for (int64_t i = 0; i < out->n; i++) out->data[i] -= early.data[i];
  }
  return 1;
}
static Array areas(const Inputs* in, int64_t* dim) {
  const Array* y = tensor(in, "y");
  const Array* x = tensor(in, "x");
  const int64_t d = *dim = dim_arg(in, "dim", -1, y->ndim);
  const Array late = trimmed(y, d, 1);
  Array out = trimmed(y, d, 0);
  int64_t index[kMaxDims];
  for (int64_t i = 0; i < out.n; i++) {
    double width = number_arg(in, "dx", 1);
    index_of(&out, i, index);
    if (x && x->ndim == 1) width = x->data[index[d] + 1] - x->data[index[d]];
    if (x && x->ndim > 1) {
      const double from = x->data[ravel(x, index)];
      index[d]++;
      width = x->data[ravel(x, index)] - from;
    }
    out.data[i] = (out.data[i] + late.data[i]) / 2 * width;
  }
  return out;
}
static int ref_trapezoid(const Inputs* in, Array* out) {
  int64_t d;
  const Array parts = areas(in, &d);
  *out = reduced_zeros(&parts, 1u << d, 0);
  for (int64_t i = 0; i < parts.n; i++) out->data[result_of(&parts, i, 1u << d)] += parts.data[i];
  return 1;
}
static int ref_cumulative_trapezoid(const Inputs* in, Array* out) {
  int64_t d;
  int64_t index[kMaxDims];
  *out = areas(in, &d);
  for (int64_t i = 0; i < out->n; i++) {
    index_of(out, i, index);
    if (index[d]-- == 0) continue;
    out->data[i] += out->data[ravel(out, index)];
  }
  return 1;
}
static int ref_vander(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "x");
  const int64_t n = int_arg(in, "N", x->shape[x->ndim - 1]);
  const int increasing = flag_arg(in, "increasing");
  int64_t shape[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  shape[x->ndim] = n;
  *out = new_array(shape, x->ndim + 1);
  for (int64_t i = 0; i < out->n; i++) {
    const int64_t power = increasing ? i % n : n - 1 - i % n;
    out->data[i] = 1;
    for (int64_t k = 0; k < power; k++) out->data[i] *= x->data[i / n];
  }
  return 1;
}

/* ---- running extremes and log-sums ---- */

static int cumulative_extreme(const Inputs* in, Array* outs, int smallest) {
  const Array* x = tensor(in, "self");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  const int64_t inner = inner_size(x, d);
  const int64_t n = size_of(x, d);
  outs[0] = copy_of(x);
  outs[1] = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) {
    const int64_t at = i / inner % n;
    if (at == 0) continue;
    const double before = outs[0].data[i - inner];
    const double value = x->data[i];
    const int beats = smallest ? value <= before : value >= before;
    if (isnan(value) || (beats && !isnan(before))) {
      outs[1].data[i] = (double)at;
    } else {
      outs[0].data[i] = before;
      outs[1].data[i] = outs[1].data[i - inner];
    }
  }
  return 2;
}
static int ref_cummax(const Inputs* in, Array* outs) { return cumulative_extreme(in, outs, 0); }
static int ref_cummin(const Inputs* in, Array* outs) { return cumulative_extreme(in, outs, 1); }
static double log_sum(double a, double b) { /* log(exp(a) + exp(b)) */
  const double top = a > b ? a : b;
  if (isnan(a) || isnan(b)) return NAN;
  return isinf(top) ? top : top + log(exp(a - top) + exp(b - top));
}
static int ref_logcumsumexp(const Inputs* in, Array* out) {
  *out = scanned(in, log_sum);
  return 1;
}

/* ---- gradient ---- */

/* The derivative, at point i of n, of the line or parabola through the points that count; y: their
   values, `step` apart. */
static double slope(const double* y, int64_t step, const double* at, int64_t n, int64_t i,
                    int64_t order) {
  int64_t first = i - 1;
  const int is_edge = i == 0 || i == n - 1;
  if (is_edge && order == 1) {
    first = i ? i - 1 : 0;
    return (y[(first + 1) * step] - y[first * step]) / (at[first + 1] - at[first]);
  }
  if (i == 0) first = 0;
  if (i == n - 1) first = n - 3;
  double sum = 0; /* Lagrange's polynomials */
  for (int64_t j = first; j < first + 3; j++) {
    double weight = 0;
    for (int64_t k = first; k < first + 3; k++) {
      if (k == j) continue;
      const int64_t other = 3 * first + 3 - j - k;
      weight += (at[i] - at[other]) / ((at[j] - at[k]) * (at[j] - at[other]));
    }
    sum += weight * y[j * step];
  }
  return sum;
}
static int ref_gradient(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  const tt_value* dim = given(in, "dim");
  const int n = dim && dim->n ? (int)dim->n : x->ndim;
  for (int o = 0; o < n; o++) {
    const int64_t d = dim && dim->n ? wrap(dim->ints[o], x->ndim) : o;
    const int64_t size = x->shape[d];
    const int64_t step = inner_size(x, d);
    double* at = scratch((size_t)size * sizeof(double));
    for (int64_t i = 0; i < size; i++)
      at[i] = in->items[o].data ? in->items[o].data[i] : (double)i * number_arg(in, "spacing", 1);
    outs[o] = zeros_like(x);
    for (int64_t i = 0; i < x->n; i++) {
      const int64_t k = i / step % size;
      outs[o].data[i] =
          slope(x->data + i - k * step, step, at, size, k, int_arg(in, "edge_order", 1));
    }
  }
  return n;
}

static const Reference kScan[] = {
    {"cumsum", .whole = ref_cumsum},
    {"cumprod", .whole = ref_cumprod},
    {"diff", .whole = ref_diff},
    {"trapezoid", .whole = ref_trapezoid},
    {"cumulative_trapezoid", .whole = ref_cumulative_trapezoid},
    {"vander", .whole = ref_vander},
    {"gradient", .whole = ref_gradient},
    {"cummax", .whole = ref_cummax, .exact = 1},
    {"cummin", .whole = ref_cummin, .exact = 1},
    {"logcumsumexp", .whole = ref_logcumsumexp},
};
