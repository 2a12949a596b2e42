/* References of sort, topk, unique and searchsorted. nan is larger than all numbers. */

static int comes_before(double a, double b, int descending) {
  if (descending) return isnan(a) ? !isnan(b) : a > b;
  return isnan(b) ? !isnan(a) : a < b;
}
/* The positions of n values, `step` apart, in order; equal values keep theirs. */
static int64_t* sorted_positions(const double* x, int64_t n, int64_t step, int descending) {
  int64_t* order = new_indices(n);
  for (int64_t i = 0; i < n; i++) {
    int64_t j = i;
    for (; j > 0 && comes_before(x[i * step], x[order[j - 1] * step], descending); j--)
      order[j] = order[j - 1];
    order[j] = i;
  }
  return order;
}
/* The first k values of each row in order, and their positions. */
static void sort_rows(const Inputs* in, int descending, Array* values, Array* positions) {
  const Array* x = tensor(in, "self");
  const int64_t d = dim_arg(in, "dim", -1, x->ndim);
  const int64_t n = size_of(x, d);
  const int64_t k = int_arg(in, "k", n);
  const int64_t inner = inner_size(x, d);
  int64_t shape[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  if (x->ndim) shape[d] = k;
  *values = new_array(shape, x->ndim);
  *positions = new_array(shape, x->ndim);
  for (int64_t row = 0; n && row < x->n / n; row++) {
    const int64_t from = row / inner * n * inner + row % inner;
    const int64_t to = row / inner * k * inner + row % inner;
    const int64_t* order = sorted_positions(x->data + from, n, inner, descending);
    for (int64_t i = 0; i < k; i++) {
      values->data[to + i * inner] = x->data[from + order[i] * inner];
      positions->data[to + i * inner] = (double)order[i];
    }
  }
}
static int ref_sort(const Inputs* in, Array* outs) {
  sort_rows(in, flag_arg(in, "descending"), &outs[0], &outs[1]);
  return 2;
}
static int ref_argsort(const Inputs* in, Array* out) {
  Array values;
  sort_rows(in, flag_arg(in, "descending"), &values, out);
  return 1;
}
static int ref_topk(const Inputs* in, Array* outs) {
  sort_rows(in, int_arg(in, "largest", 1) != 0, &outs[0], &outs[1]);
  return 2;
}

/* ---- unique ---- */

/* x as slices: elements, or all that has one index of a dimension. */
typedef struct Slices {
  const Array* x;
  int64_t n;     /* slices */
  int64_t size;  /* elements of each */
  int64_t inner; /* elements of a slice that are neighbours in x */
} Slices;

static Slices slices_of(const Array* x, const tt_value* dim) {
  Slices s = {.x = x, .n = x->n, .size = 1, .inner = 1};
  if (!dim) return s;
  const int64_t d = wrap(dim->i, x->ndim);
  s.n = x->shape[d];
  s.size = s.n ? x->n / s.n : 0;
  s.inner = inner_size(x, d);
  return s;
}
/* The offset of element i of a slice among n slices. */
static int64_t slice_element(const Slices* s, int64_t n, int64_t slice, int64_t i) {
  return (i / s->inner * n + slice) * s->inner + i % s->inner;
}
static double slice_value(const Slices* s, int64_t slice, int64_t i) {
  return s->x->data[slice_element(s, s->n, slice, i)];
}
enum {
  kBefore = -1,
  kEqual = 0,
  kBehind = 1,
  kUnordered = 2 /* they differ, as nan from itself */
};
static int compare_slices(const Slices* s, int64_t a, int64_t b) {
  int has_nan = 0;
  for (int64_t i = 0; i < s->size; i++) {
    const double u = slice_value(s, a, i);
    const double v = slice_value(s, b, i);
    if (comes_before(u, v, 0)) return kBefore;
    if (comes_before(v, u, 0)) return kBehind;
    has_nan |= isnan(u);
  }
  return has_nan ? kUnordered : kEqual;
}
static int64_t* sorted_slices(const Slices* s) {
  int64_t* order = new_indices(s->n);
  for (int64_t i = 0; i < s->n; i++) {
    int64_t j = i;
    for (; j > 0 && compare_slices(s, i, order[j - 1]) == kBefore; j--) order[j] = order[j - 1];
    order[j] = i;
  }
  return order;
}
static int ref_unique(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  const tt_value* dim = given(in, "dim");
  const Slices s = slices_of(x, dim);
  const int64_t* order = sorted_slices(&s);
  const int64_t none = 0;
  int64_t* group = new_indices(s.n); /* of equal slices */
  int64_t shape[kMaxDims];
  int64_t found = 0;
  for (int64_t i = 0; i < s.n; i++) {
    if (i == 0 || compare_slices(&s, order[i], order[i - 1]) != kEqual) found++;
    group[order[i]] = found - 1;
  }
  memcpy(shape, x->shape, sizeof shape);
  shape[dim ? wrap(dim->i, x->ndim) : 0] = found;
  outs[0] = new_array(shape, dim ? x->ndim : 1);
  for (int64_t i = 0; i < s.n; i++)
    for (int64_t k = 0; k < s.size; k++)
      outs[0].data[slice_element(&s, found, group[i], k)] = slice_value(&s, i, k);
  outs[1] = new_array(&none, 1);
  if (flag_arg(in, "return_inverse")) {
    outs[1] = dim ? new_array(&s.n, 1) : zeros_like(x);
    for (int64_t i = 0; i < s.n; i++) outs[1].data[i] = (double)group[i];
  }
  outs[2] = new_array(&none, 1);
  if (flag_arg(in, "return_counts")) {
    outs[2] = new_array(&found, 1);
    for (int64_t i = 0; i < s.n; i++) outs[2].data[group[i]]++;
  }
  return 3;
}

/* ---- searchsorted: how many of the sorted values come before ---- */

static int count_before(const Inputs* in, Array* out, const Array* sorted, int is_right) {
  const Array* x = tensor(in, "self");
  const Array* sorter = tensor(in, "sorter");
  const int64_t n = sorted->shape[sorted->ndim - 1];
  const int64_t row_size = sorted->ndim > 1 ? x->shape[x->ndim - 1] : x->n; /* of x */
  *out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) {
    const int64_t from = i / row_size * n;
    for (int64_t k = 0; k < n; k++) {
      const int64_t position = sorter ? (int64_t)sorter->data[from + k] : k;
      const double value = sorted->data[from + position];
      out->data[i] += is_right ? !(value > x->data[i]) : !(value >= x->data[i]);
    }
  }
  return 1;
}
static int ref_searchsorted(const Inputs* in, Array* out) {
  const int is_right = flag_arg(in, "right") || int_arg(in, "side", 0) == TT_SIDE_RIGHT;
  return count_before(in, out, tensor(in, "sorted_sequence"), is_right);
}
static int ref_bucketize(const Inputs* in, Array* out) {
  return count_before(in, out, tensor(in, "boundaries"), flag_arg(in, "right"));
}

static int ref_msort(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t n = size_of(x, 0);
  const int64_t inner = n ? x->n / n : 0;
  *out = zeros_like(x);
  for (int64_t k = 0; k < inner; k++) {
    const int64_t* order = sorted_positions(x->data + k, n, inner, 0);
    for (int64_t i = 0; i < n; i++) out->data[i * inner + k] = x->data[order[i] * inner + k];
  }
  return 1;
}

/* ---- elements by rank ---- */

/* How a row selects an element from its sorted order; *rank counts from 0. */
typedef int64_t (*Choice)(const Inputs* in, const double* x, int64_t step, const int64_t* order,
                          int64_t n);
static int64_t numbers_of(const double* x, int64_t step, int64_t n) {
  int64_t numbers = 0;
  for (int64_t i = 0; i < n; i++) numbers += !isnan(x[i * step]);
  return numbers;
}
static int64_t choose_kth(const Inputs* in, const double* x, int64_t step, const int64_t* order,
                          int64_t n) {
  (void)x, (void)step, (void)n;
  return order[int_arg(in, "k", 1) - 1];
}
static int64_t choose_median(const Inputs* in, const double* x, int64_t step, const int64_t* order,
                             int64_t n) {
  const int64_t numbers = numbers_of(x, step, n);
  (void)in;
  return order[numbers < n ? numbers : (n - 1) / 2];
}
static int64_t choose_nanmedian(const Inputs* in, const double* x, int64_t step,
                                const int64_t* order, int64_t n) {
  const int64_t numbers = numbers_of(x, step, n);
  (void)in, (void)n;
  return order[numbers ? (numbers - 1) / 2 : 0];
}
static int64_t choose_mode(const Inputs* in, const double* x, int64_t step, const int64_t* order,
                           int64_t n) {
  int64_t best = 0;
  int64_t longest = 0;
  (void)in;
  for (int64_t i = 0, length = 0; i < n; i++) {
    length = i && x[order[i] * step] == x[order[i - 1] * step] ? length + 1 : 1;
    if (length <= longest) continue;
    longest = length;
    best = order[i];
  }
  /* the last of its run */
  for (int64_t i = 0; i < n; i++)
    if (x[order[i] * step] == x[best * step]) best = order[i];
  return best;
}
static int chosen(const Inputs* in, Array* outs, Choice choose) {
  const Array* x = tensor(in, "self");
  const int64_t d = has(in, "dim") ? dim_arg(in, "dim", -1, x->ndim) : 0;
  const int64_t n = has(in, "dim") ? size_of(x, d) : x->n;
  const int64_t inner = has(in, "dim") ? inner_size(x, d) : 1;
  const unsigned mask = has(in, "dim") && x->ndim ? 1u << d : (1u << x->ndim) - 1;
  outs[0] = reduced_zeros(x, mask, flag_arg(in, "keepdim"));
  outs[1] = zeros_like(&outs[0]);
  for (int64_t row = 0; row < outs[0].n; row++) {
    const double* from = x->data + row / inner * n * inner + row % inner;
    const int64_t* order = sorted_positions(from, n, inner, 0);
    const int64_t at = choose(in, from, inner, order, n);
    outs[0].data[row] = from[at * inner];
    outs[1].data[row] = (double)at;
  }
  return has(in, "dim") ? 2 : 1;
}
static int ref_kthvalue(const Inputs* in, Array* outs) { return chosen(in, outs, choose_kth); }
static int ref_median(const Inputs* in, Array* outs) { return chosen(in, outs, choose_median); }
static int ref_nanmedian(const Inputs* in, Array* outs) {
  return chosen(in, outs, choose_nanmedian);
}
static int ref_mode(const Inputs* in, Array* outs) { return chosen(in, outs, choose_mode); }

static double one_quantile(const Inputs* in, const double* x, int64_t step, int64_t n, double q,
                           int skips_nan) {
  const int64_t* order = sorted_positions(x, n, step, 0);
  const int64_t numbers = numbers_of(x, step, n);
  const int64_t kind = int_arg(in, "interpolation", TT_QUANTILE_LINEAR);
  if (numbers == 0 || (numbers < n && !skips_nan)) return NAN;
  double rank = q * (double)(numbers - 1);
  if (kind == TT_QUANTILE_LOWER) rank = floor(rank);
  if (kind == TT_QUANTILE_HIGHER) rank = ceil(rank);
  if (kind == TT_QUANTILE_NEAREST) rank = nearbyint(rank);
  const double low = x[order[(int64_t)floor(rank)] * step];
  const double high = x[order[(int64_t)ceil(rank)] * step];
  const double weight = kind == TT_QUANTILE_MIDPOINT ? 0.5 : rank - floor(rank);
  if (weight < 0.5) return low + (high - low) * weight;
  return high - (high - low) * (1 - weight);
}
static int quantiles(const Inputs* in, Array* out, int skips_nan) {
  const Array* x = tensor(in, "self");
  const Array* q = tensor(in, "q");
  const int by_dim = given(in, "dim") != NULL;
  const int64_t d = by_dim ? dim_arg(in, "dim", 0, x->ndim) : 0;
  const int64_t n = by_dim ? size_of(x, d) : x->n;
  const int64_t inner = by_dim ? inner_size(x, d) : 1;
  const unsigned mask = by_dim && x->ndim ? 1u << d : (1u << x->ndim) - 1;
  const Array rows = reduced_zeros(x, mask, flag_arg(in, "keepdim"));
  const int columns = q && q->ndim;
  int64_t shape[kMaxDims];
  if (columns) shape[0] = q->n;
  for (int k = 0; k < rows.ndim; k++) shape[k + columns] = rows.shape[k];
  *out = new_array(shape, rows.ndim + columns);
  for (int64_t i = 0; i < out->n; i++) {
    const int64_t row = i % rows.n;
    const double* from = x->data + row / inner * n * inner + row % inner;
    const double at = q ? q->data[i / rows.n] : number_arg(in, "q", 0);
    out->data[i] = one_quantile(in, from, inner, n, at, skips_nan);
  }
  return 1;
}
static int ref_quantile(const Inputs* in, Array* out) { return quantiles(in, out, 0); }
static int ref_nanquantile(const Inputs* in, Array* out) { return quantiles(in, out, 1); }

/* ---- runs and counts ---- */

static int ref_unique_consecutive(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  const tt_value* dim = given(in, "dim");
  const Slices s = slices_of(x, dim);
  const int64_t none = 0;
  int64_t* group = new_indices(s.n);
  int64_t shape[kMaxDims];
  int64_t found = 0;
  for (int64_t i = 0; i < s.n; i++) {
    if (i == 0 || compare_slices(&s, i, i - 1) != kEqual) found++;
    group[i] = found - 1;
  }
  memcpy(shape, x->shape, sizeof shape);
  shape[dim ? wrap(dim->i, x->ndim) : 0] = found;
  outs[0] = new_array(shape, dim ? x->ndim : 1);
  outs[1] = new_array(&none, 1);
  outs[2] = new_array(&none, 1);
  if (flag_arg(in, "return_inverse")) outs[1] = dim ? new_array(&s.n, 1) : zeros_like(x);
  if (flag_arg(in, "return_counts")) outs[2] = new_array(&found, 1);
  for (int64_t i = 0; i < s.n; i++) {
    for (int64_t k = 0; k < s.size; k++)
      outs[0].data[slice_element(&s, found, group[i], k)] = slice_value(&s, i, k);
    if (flag_arg(in, "return_inverse")) outs[1].data[i] = (double)group[i];
    if (flag_arg(in, "return_counts")) outs[2].data[group[i]]++;
  }
  return 3;
}
static int ref_bincount(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const Array* weights = tensor(in, "weights");
  int64_t n = int_arg(in, "minlength", 0);
  for (int64_t i = 0; i < x->n; i++)
    if ((int64_t)x->data[i] >= n) n = (int64_t)x->data[i] + 1;
  *out = new_array(&n, 1);
  for (int64_t i = 0; i < x->n; i++)
    out->data[(int64_t)x->data[i]] += weights ? weights->data[i] : 1;
  return 1;
}
static int ref_histc(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t bins = int_arg(in, "bins", 100);
  double low = number_arg(in, "min", 0);
  double high = number_arg(in, "max", 0);
  *out = new_array(&bins, 1);
  if (low == high && x->n) {
    low = high = x->data[0];
    for (int64_t i = 0; i < x->n; i++) {
      if (x->data[i] < low) low = x->data[i];
      if (x->data[i] > high) high = x->data[i];
    }
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  for (int64_t i = 0; i < x->n; i++) {
    const int64_t at = (int64_t)((x->data[i] - low) * (double)bins / (high - low));
    if (x->data[i] >= low && x->data[i] <= high) out->data[at < bins ? at : bins - 1]++;
  }
  return 1;
}

static int count_in_bins(const Inputs* in, Array* outs) { /* outs[1]: the edges */
  const Array* x = tensor(in, "self");
  const Array* weight = tensor(in, "weight");
  const double* edges = outs[1].data;
  const int64_t bins = outs[1].n - 1;
  double sum = 0;
  outs[0] = new_array(&bins, 1);
  for (int64_t i = 0; i < x->n; i++) {
    const double value = x->data[i];
    int64_t bin = -1;
    for (int64_t b = 0; b < bins; b++)
      if (value >= edges[b] && value < edges[b + 1]) bin = b;
    if (bins && value == edges[bins]) bin = bins - 1;
    if (bin < 0) continue;
    outs[0].data[bin] += weight ? weight->data[i] : 1;
    sum += weight ? weight->data[i] : 1;
  }
  for (int64_t b = 0; flag_arg(in, "density") && b < bins; b++)
    outs[0].data[b] /= sum * (edges[b + 1] - edges[b]);
  return 2;
}
static int ref_histogram(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  const int64_t n = int_arg(in, "bins", 100) + 1;
  double low = x->n ? x->data[0] : 0;
  double high = x->n ? low : 1;
  for (int64_t i = 0; i < x->n; i++) {
    if (x->data[i] < low) low = x->data[i];
    if (x->data[i] > high) high = x->data[i];
  }
  low = number_arg(in, "lower", low);
  high = number_arg(in, "upper", high);
  if (low == high) {
    low -= 0.5;
    high += 0.5;
  }
  outs[1] = new_array(&n, 1);
  for (int64_t i = 0; i < n; i++)
    outs[1].data[i] = low + (high - low) * (double)i / (double)(n - 1);
  return count_in_bins(in, outs);
}
static int ref_histogram_edges(const Inputs* in, Array* outs) {
  outs[1] = copy_of(tensor(in, "bins"));
  return count_in_bins(in, outs);
}

static const Reference kSort[] = {
    {"sort", .whole = ref_sort, .exact = 1},
    {"argsort", .whole = ref_argsort, .exact = 1},
    {"topk", .whole = ref_topk, .exact = 1},
    {"unique", .whole = ref_unique, .exact = 1},
    {"searchsorted", .whole = ref_searchsorted, .exact = 1},
    {"bucketize", .whole = ref_bucketize, .exact = 1},
    {"msort", .whole = ref_msort, .exact = 1},
    {"kthvalue", .whole = ref_kthvalue, .exact = 1},
    {"median", .whole = ref_median, .exact = 1},
    {"nanmedian", .whole = ref_nanmedian, .exact = 1},
    {"mode", .whole = ref_mode, .exact = 1},
    {"quantile", .whole = ref_quantile},
    {"nanquantile", .whole = ref_nanquantile},
    {"unique_consecutive", .whole = ref_unique_consecutive, .exact = 1},
    {"bincount", .whole = ref_bincount},
    {"histc", .whole = ref_histc, .exact = 1},
    {"histogram", .whole = ref_histogram},
    {"histogram_edges", .whole = ref_histogram_edges},
};
