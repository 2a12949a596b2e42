/* References of sort, topk and unique. Included by refs.c. */

static int before(double a, double b, int descending) { /* nan is the largest */
  if (descending) return isnan(a) ? !isnan(b) : a > b;
  return isnan(b) ? !isnan(a) : a < b;
}
/* Positions of n values `step` apart in order, by insertion. */
static void order_values(const double* x, int64_t n, int64_t step, int descending, int64_t* at) {
  int64_t i, j;
  for (i = 0; i < n; i++) {
    for (j = i; j > 0 && before(x[i * step], x[at[j - 1] * step], descending); j--)
      at[j] = at[j - 1];
    at[j] = i;
  }
}

static int ordered_rows(const Inputs* in, int descending, Arr* values, Arr* indices) {
  const Arr* x = &in->t[row_arg(in->sample->row, "self")];
  const int64_t d = wrap(int_arg(in, "dim", -1), x->ndim);
  const int64_t n = x->ndim ? x->shape[d] : 1;
  const int64_t k = int_arg(in, "k", n);
  int64_t shape[kMaxDims];
  int64_t inner = 1;
  int64_t row;
  int64_t i;
  int64_t* at = scratch((size_t)(n + 1) * sizeof *at);
  memcpy(shape, x->shape, sizeof shape);
  for (i = d + 1; i < x->ndim; i++) inner *= shape[i];
  if (x->ndim) shape[d] = k;
  *values = array(shape, x->ndim);
  *indices = array(shape, x->ndim);
  for (row = 0; n && row < x->n / n; row++) {
    const int64_t from = row / inner * n * inner + row % inner;
    const int64_t to = row / inner * k * inner + row % inner;
    order_values(x->v + from, n, inner, descending, at);
    for (i = 0; i < k; i++) {
      values->v[to + i * inner] = x->v[from + at[i] * inner];
      indices->v[to + i * inner] = (double)at[i];
    }
  }
  return 2;
}
static int r_sort(const Inputs* in, Arr* outs) {
  return ordered_rows(in, (int)int_arg(in, "descending", 0), &outs[0], &outs[1]);
}
static int r_argsort(const Inputs* in, Arr* outs) {
  Arr both[2];
  ordered_rows(in, (int)int_arg(in, "descending", 0), &both[0], &both[1]);
  outs[0] = both[1];
  return 1;
}
static int r_topk(const Inputs* in, Arr* outs) {
  return ordered_rows(in, (int)int_arg(in, "largest", 1), &outs[0], &outs[1]);
}

/* Slices of dimension d of x, or its elements: m values each. */
static double slice_value(const Arr* x, int64_t d, int64_t slice, int64_t i) {
  int64_t inner = 1, k;
  if (d < 0) return x->v[slice];
  for (k = d + 1; k < x->ndim; k++) inner *= x->shape[k];
  return x->v[(i / inner * x->shape[d] + slice) * inner + i % inner];
}
static int compare_slices(const Arr* x, int64_t d, int64_t m, int64_t a,
                          int64_t b) { /* 2: differ, but have no order */
  int64_t i;
  int differ = 0;
  for (i = 0; i < m; i++) {
    const double u = slice_value(x, d, a, i);
    const double v = slice_value(x, d, b, i);
    if (before(u, v, 0)) return -1;
    if (before(v, u, 0)) return 1;
    differ |= isnan(u);
  }
  return differ ? 2 : 0;
}
static int r_unique(const Inputs* in, Arr* outs) {
  const Arr* x = &in->t[row_arg(in->sample->row, "self")];
  const tt_value* dim = given(in, "dim");
  const int64_t d = dim ? wrap(dim->i, x->ndim) : -1;
  const int64_t n = d < 0 ? x->n : x->shape[d];
  const int64_t m = d < 0 ? 1 : n ? x->n / n : 0;
  int64_t* at = scratch((size_t)(n + 1) * sizeof *at);
  int64_t* id = scratch((size_t)(n + 1) * sizeof *id);
  int64_t i;
  int64_t j;
  int64_t found = 0;
  int64_t shape[kMaxDims];
  int64_t none = 0;
  Arr counts;
  for (i = 0; i < n; i++) {
    for (j = i; j > 0 && compare_slices(x, d, m, i, at[j - 1]) == -1; j--) at[j] = at[j - 1];
    at[j] = i;
  }
  counts = array(&n, 1);
  for (i = 0; i < n; i++) {
    if (i == 0 || compare_slices(x, d, m, at[i], at[i - 1])) found++;
    id[at[i]] = found - 1;
    counts.v[found - 1]++;
  }
  memcpy(shape, x->shape, sizeof shape);
  shape[d < 0 ? 0 : d] = found;
  outs[0] = array(shape, d < 0 ? 1 : x->ndim);
  outs[1] = !int_arg(in, "return_inverse", 0) ? array(&none, 1)
            : d < 0                           ? array(x->shape, x->ndim)
                                              : array(&n, 1);
  for (i = 0; i < n; i++) {
    int64_t inner = 1, k;
    if (outs[1].n) outs[1].v[i] = (double)id[i];
    for (k = d + 1; d >= 0 && k < x->ndim; k++) inner *= x->shape[k];
    for (k = 0; k < m; k++)
      outs[0].v[d < 0 ? id[i] : (k / inner * found + id[i]) * inner + k % inner] =
          slice_value(x, d, i, k);
  }
  outs[2] = int_arg(in, "return_counts", 0) ? array(&found, 1) : array(&none, 1);
  for (i = 0; i < outs[2].n; i++) outs[2].v[i] = counts.v[i];
  return 3;
}

/* Elements that do not stand behind: of rows in order those in front. */
static int r_searchsorted(const Inputs* in, Arr* out) {
  const int buckets = strcmp(in->sample->row->name, "bucketize") == 0;
  const Arr* sorted = tensor(in, buckets ? "boundaries" : "sorted_sequence");
  const Arr* x = tensor(in, "self");
  const Arr* sorter = buckets ? NULL : tensor(in, "sorter");
  const int right = (int)int_arg(in, "right", 0) || (!buckets && int_arg(in, "side", 0) == 2);
  const int64_t n = sorted->shape[sorted->ndim - 1];
  const int64_t row = sorted->ndim > 1 ? x->shape[x->ndim - 1] : 1;
  int64_t i, k;
  *out = array(x->shape, x->ndim);
  for (i = 0; i < x->n; i++) {
    const int64_t from = sorted->ndim > 1 ? i / row * n : 0;
    for (k = 0; k < n; k++) {
      const double v = sorted->v[from + (sorter ? (int64_t)sorter->v[from + k] : k)];
      out->v[i] += right ? !(v > x->v[i]) : !(v >= x->v[i]);
    }
  }
  return 1;
}

#define SORT_REFS                                                               \
  {"sort", 0, r_sort, 1}, {"argsort", 0, r_argsort, 1}, {"topk", 0, r_topk, 1}, \
      {"unique", 0, r_unique, 1}, {"searchsorted", 0, r_searchsorted, 1},       \
      {"bucketize", 0, r_searchsorted, 1},
