/* Part of refs.c: references of views, rearrangements, matrix shorthands, creation and indexing
 * beyond the first operators. */

/* ---- views and rearrangements ---- */

static int r_flatten(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const int64_t first = wrap(int_arg(in, "start_dim", 0), x->ndim);
  const int64_t last = wrap(int_arg(in, "end_dim", -1), x->ndim);
  int64_t shape[kMaxDims + 1];
  int d, n = 0;
  shape[0] = 1;
  for (d = 0; d < x->ndim; d++) {
    if (d > first && d <= last) shape[n - 1] *= x->shape[d];
    else shape[n++] = x->shape[d];
  }
  *out = same_order(x, shape, x->ndim ? n : 1);
  return 1;
}
static int r_unflatten(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const tt_value* sizes = given(in, "sizes");
  const int64_t at = wrap(int_arg(in, "dim", 0), x->ndim);
  int64_t shape[kMaxDims], known = 1, i;
  int d, n = 0;
  for (i = 0; i < sizes->n; i++) known *= sizes->ints[i] < 0 ? 1 : sizes->ints[i];
  for (d = 0; d < x->ndim; d++) {
    if (d != at) {
      shape[n++] = x->shape[d];
      continue;
    }
    for (i = 0; i < sizes->n; i++)
      shape[n++] = sizes->ints[i] < 0 ? x->shape[d] / known : sizes->ints[i];
  }
  *out = same_order(x, shape, n);
  return 1;
}
static int r_unbind(const Inputs* in, Arr* outs) {
  const Arr* x = tensor(in, "self");
  const int64_t d = wrap(int_arg(in, "dim", 0), x->ndim);
  int64_t i, k, idx[kMaxDims];
  for (k = 0; k < x->shape[d]; k++) {
    int64_t to = 0;
    outs[k] = reduced_shape(x, 1u << d, 0);
    for (i = 0; i < x->n; i++) {
      unravel(i, x->shape, x->ndim, idx);
      if (idx[d] == k) outs[k].v[to++] = x->v[i];
    }
  }
  return (int)x->shape[d];
}
/* Indices [begin, begin + size) of dim d. */
static Arr cut_out(const Arr* x, int64_t d, int64_t begin, int64_t size) {
  int64_t shape[kMaxDims], i, idx[kMaxDims];
  Arr out;
  memcpy(shape, x->shape, sizeof shape);
  shape[d] = size;
  out = array(shape, x->ndim);
  for (i = 0; i < out.n; i++) {
    unravel(i, shape, x->ndim, idx);
    idx[d] += begin;
    out.v[i] = x->v[ravel(x, idx)];
  }
  return out;
}
static int r_chunk(const Inputs* in, Arr* outs) {
  const Arr* x = tensor(in, "self");
  const int64_t d = wrap(int_arg(in, "dim", 0), x->ndim);
  const int64_t chunks = int_arg(in, "chunks", 1);
  const int64_t size = (x->shape[d] + chunks - 1) / chunks;
  int64_t begin = 0;
  int n = 0;
  if (x->shape[d] == 0) {
    while (n < chunks) outs[n++] = cut_out(x, d, 0, 0);
    return n;
  }
  for (; begin < x->shape[d]; begin += size)
    outs[n++] = cut_out(x, d, begin, begin + size > x->shape[d] ? x->shape[d] - begin : size);
  return n;
}
static int r_narrow(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const int64_t d = wrap(int_arg(in, "dim", 0), x->ndim);
  const int64_t start = int_arg(in, "start", 0);
  *out = cut_out(x, d, start < 0 ? start + x->shape[d] : start, int_arg(in, "length", 0));
  return 1;
}
static int r_diagonal(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const int64_t a = wrap(int_arg(in, "dim1", 0), x->ndim);
  const int64_t b = wrap(int_arg(in, "dim2", 1), x->ndim);
  const int64_t offset = int_arg(in, "offset", 0);
  int64_t shape[kMaxDims], i, idx[kMaxDims], from[kMaxDims], k = 0;
  int d, n = 0;
  for (d = 0; d < x->ndim; d++)
    if (d != a && d != b) shape[n++] = x->shape[d];
  while (k - (offset < 0 ? offset : 0) < x->shape[a] && k + (offset > 0 ? offset : 0) < x->shape[b])
    k++;
  shape[n++] = k;
  *out = array(shape, n);
  for (i = 0; i < out->n; i++) {
    int e = 0;
    unravel(i, shape, n, idx);
    for (d = 0; d < x->ndim; d++)
      if (d != a && d != b) from[d] = idx[e++];
    from[a] = idx[e] - (offset < 0 ? offset : 0);
    from[b] = idx[e] + (offset > 0 ? offset : 0);
    out->v[i] = x->v[ravel(x, from)];
  }
  return 1;
}
static int r_flip(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const tt_value* dims = given(in, "dims");
  int64_t i, k, idx[kMaxDims];
  *out = array(x->shape, x->ndim);
  for (i = 0; i < x->n; i++) {
    unravel(i, x->shape, x->ndim, idx);
    for (k = 0; k < dims->n; k++) {
      const int64_t d = wrap(dims->ints[k], x->ndim);
      if (x->ndim) idx[d] = x->shape[d] - 1 - idx[d];
    }
    out->v[ravel(out, idx)] = x->v[i];
  }
  return 1;
}
static int r_roll(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const tt_value* shifts = given(in, "shifts");
  const tt_value* dims = given(in, "dims");
  const Arr flat = same_order(x, &x->n, 1);
  const Arr* y = !dims || dims->n == 0 ? &flat : x;
  int64_t i, k, idx[kMaxDims];
  *out = array(x->shape, x->ndim);
  for (i = 0; i < x->n; i++) {
    unravel(i, y->shape, y->ndim, idx);
    for (k = 0; k < shifts->n; k++) {
      const int64_t d = y == x ? wrap(dims->ints[k], x->ndim) : 0;
      const int64_t n = y->shape[d];
      idx[d] = ((idx[d] + shifts->ints[k]) % n + n) % n;
    }
    out->v[ravel(y, idx)] = x->v[i];
  }
  return 1;
}
static int r_repeat(const Inputs* in, Arr* out) { /* tile, too */
  const Arr* x = tensor(in, "self");
  const tt_value* v = given(in, has(in, "repeats") ? "repeats" : "dims");
  const int nd = v->n > x->ndim ? (int)v->n : x->ndim;
  int64_t shape[kMaxDims], i, idx[kMaxDims];
  int d;
  for (d = 0; d < nd; d++) {
    const int own = d - (nd - x->ndim);
    const int at = d - (nd - (int)v->n);
    shape[d] = (own < 0 ? 1 : x->shape[own]) * (at < 0 ? 1 : v->ints[at]);
  }
  *out = array(shape, nd);
  for (i = 0; i < out->n; i++) {
    unravel(i, shape, nd, idx);
    for (d = 0; d < x->ndim; d++) idx[d] = idx[d + nd - x->ndim] % x->shape[d];
    out->v[i] = x->v[ravel(x, idx)];
  }
  return 1;
}

/* ---- products ---- */

static int r_outer(const Inputs* in, Arr* out) {
  const Arr* a = tensor(in, "self");
  const Arr* b = tensor(in, "vec2");
  int64_t shape[2], i;
  shape[0] = a->n;
  shape[1] = b->n;
  *out = array(shape, 2);
  for (i = 0; i < out->n; i++) out->v[i] = a->v[i / b->n] * b->v[i % b->n];
  return 1;
}
static int r_baddbmm(const Inputs* in, Arr* out) {
  return add_product(in, "batch1", "batch2", out);
}

/* A label per dimension: letters, and digits for what an ellipsis stands for (0 is the last
 * dimension of it). Returns the end. */
static const char* labels_of(const char* text, int ndim, char* labels) {
  int n = 0, letters = 0;
  const char* p;
  for (p = text; *p && *p != ',' && *p != '-'; p++) letters += *p != '.' && *p != ' ';
  for (p = text; *p && *p != ',' && *p != '-'; p++) {
    int k;
    if (*p == ' ') continue;
    if (*p != '.') {
      labels[n++] = *p;
      continue;
    }
    for (k = ndim - letters - 1; k >= 0; k--) labels[n++] = (char)('0' + k);
    p += 2;
  }
  labels[n] = 0;
  return p;
}
static void add_label(char* labels, char l) {
  const size_t n = strlen(labels);
  labels[n] = l;
  labels[n + 1] = 0;
}
/* The sum over all values of all labels, straight from the definition. */
static int r_einsum(const Inputs* in, Arr* out) {
  const char* p = given(in, "equation")->str;
  char term[kMaxItems][kMaxDims + 1];
  char all[64] = "";
  char result[64] = "";
  int64_t size[128], shape[64], i, total = 1, idx[64];
  int k, d, ellipsis = 0, c;
  for (c = 0; c < 128; c++) size[c] = 1;
  for (k = 0; k < in->n_items; k++) {
    p = labels_of(p, in->items[k].ndim, term[k]);
    if (*p == ',') p++;
    for (d = 0; d < in->items[k].ndim; d++) {
      const char l = term[k][d];
      if (in->items[k].shape[d] != 1) size[(int)l] = in->items[k].shape[d];
      if (l >= '0' && l <= '9' && l - '0' >= ellipsis) ellipsis = l - '0' + 1;
      if (!strchr(all, l)) add_label(all, l);
    }
  }
  if (*p == '-') {
    int letters = 0;
    const char* q;
    for (q = p + 2; *q; q++) letters += *q != '.' && *q != ' ';
    labels_of(p + 2, letters + ellipsis, result);
  } else {
    for (k = ellipsis - 1; k >= 0; k--) result[ellipsis - 1 - k] = (char)('0' + k);
    for (c = 'A'; c <= 'z'; c++) {
      int times = 0;
      const char l = (char)c;
      for (k = 0; k < in->n_items; k++)
        for (d = 0; term[k][d]; d++) times += term[k][d] == l;
      if (times == 1) add_label(result, l);
    }
  }
  for (d = 0; result[d]; d++) shape[d] = size[(int)result[d]];
  *out = array(shape, (int)strlen(result));
  for (d = 0; all[d]; d++) {
    shape[d] = size[(int)all[d]];
    total *= shape[d];
  }
  for (i = 0; i < total; i++) {
    double v = 1;
    int64_t at = 0;
    unravel(i, shape, (int)strlen(all), idx);
    for (k = 0; k < in->n_items; k++) {
      const Arr* x = &in->items[k];
      int64_t from = 0;
      for (d = 0; d < x->ndim; d++)
        from = from * x->shape[d] + (x->shape[d] == 1 ? 0 : idx[strchr(all, term[k][d]) - all]);
      v *= x->v[from];
    }
    for (d = 0; result[d]; d++) at = at * out->shape[d] + idx[strchr(all, result[d]) - all];
    out->v[at] += v;
  }
  return 1;
}

/* ---- creation ---- */

static int r_eye(const Inputs* in, Arr* out) {
  int64_t shape[2], i;
  shape[0] = int_arg(in, "n", 0);
  shape[1] = int_arg(in, "m", shape[0]);
  *out = array(shape, 2);
  for (i = 0; i < out->n; i++) out->v[i] = i / shape[1] == i % shape[1];
  return 1;
}
static int r_linspace(const Inputs* in, Arr* out) {
  const double start = number_arg(in, "start", 0);
  const double end = number_arg(in, "end", 0);
  const int64_t n = int_arg(in, "steps", 0);
  int64_t i;
  *out = array(&n, 1);
  for (i = 0; i < n; i++) {
    const double step = n > 1 ? (end - start) / (double)(n - 1) : 0;
    out->v[i] = n > 1 && i >= n / 2 ? end - step * (double)(n - 1 - i) : start + step * (double)i;
  }
  return 1;
}
static int r_one_hot(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  int64_t classes = int_arg(in, "num_classes", -1), shape[kMaxDims], i;
  for (i = 0; i < x->n && int_arg(in, "num_classes", -1) < 0; i++)
    if (x->v[i] >= (double)classes) classes = (int64_t)x->v[i] + 1;
  memcpy(shape, x->shape, sizeof shape);
  shape[x->ndim] = classes;
  *out = array(shape, x->ndim + 1);
  for (i = 0; i < x->n; i++) out->v[i * classes + (int64_t)x->v[i]] = 1;
  return 1;
}
static int triangle(const Inputs* in, Arr* out, int lower) {
  const Arr* x = tensor(in, "self");
  const int64_t diagonal = int_arg(in, "diagonal", 0);
  int64_t i, idx[kMaxDims];
  *out = array(x->shape, x->ndim);
  for (i = 0; i < x->n; i++) {
    int64_t above;
    unravel(i, x->shape, x->ndim, idx);
    above = idx[x->ndim - 1] - idx[x->ndim - 2] - diagonal;
    if (lower ? above <= 0 : above >= 0) out->v[i] = x->v[i];
  }
  return 1;
}
static int r_tril(const Inputs* in, Arr* out) { return triangle(in, out, 1); }
static int r_triu(const Inputs* in, Arr* out) { return triangle(in, out, 0); }

/* ---- indexing ---- */

static int r_scatter(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const Arr* index = tensor(in, "index");
  const Arr* src = has(in, "src") ? tensor(in, "src") : NULL;
  const int64_t d = wrap(int_arg(in, "dim", 0), x->ndim);
  const int64_t how = int_arg(in, "reduce", 0);
  int64_t i, idx[kMaxDims];
  *out = same_order(x, x->shape, x->ndim);
  for (i = 0; i < index->n; i++) {
    double v, *at;
    unravel(i, index->shape, index->ndim, idx);
    v = src ? src->v[ravel(src, idx)] : number_arg(in, "value", 0);
    idx[d] = (int64_t)index->v[i];
    at = &out->v[ravel(out, idx)];
    *at = how == TT_SCATTER_ADD ? *at + v : how == TT_SCATTER_MULTIPLY ? *at * v : v;
  }
  return 1;
}
/* index_copy, index_fill */
static int r_index_write(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const Arr* index = tensor(in, "index");
  const Arr* src = has(in, "source") ? tensor(in, "source") : NULL;
  const int64_t d = wrap(int_arg(in, "dim", 0), x->ndim);
  int64_t i, k, idx[kMaxDims];
  *out = same_order(x, x->shape, x->ndim);
  for (i = 0; i < x->n; i++) {
    unravel(i, x->shape, x->ndim, idx);
    for (k = 0; k < index->n; k++) {
      const int64_t at = (int64_t)index->v[k] + (index->v[k] < 0 ? x->shape[d] : 0);
      const int64_t here = idx[d];
      if (x->ndim && here != at) continue;
      if (x->ndim) idx[d] = k;
      out->v[i] = src ? src->v[src->ndim ? ravel(src, idx) : 0]
                  : strcmp(in->sample->row->args[3].type, "Tensor") ? number_arg(in, "value", 0)
                                                                    : tensor(in, "value")->v[0];
      if (x->ndim) idx[d] = here;
    }
  }
  return 1;
}
static int r_take_along_dim(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const Arr* index = tensor(in, "indices");
  int64_t i, idx[kMaxDims], shape[kMaxDims], d;
  Arr flat;
  if (!given(in, "dim")) {
    *out = array(&index->n, 1);
    for (i = 0; i < out->n; i++) out->v[i] = x->v[wrap((int64_t)index->v[i], x->n)];
    return 1;
  }
  d = wrap(int_arg(in, "dim", 0), x->ndim);
  for (i = 0; i < x->ndim; i++)
    shape[i] = i == d || x->shape[i] == 1 ? index->shape[i] : x->shape[i];
  *out = array(shape, x->ndim);
  flat = *x;
  for (i = 0; i < out->n; i++) {
    unravel(i, shape, x->ndim, idx);
    idx[d] = wrap((int64_t)index->v[broadcast_at(index, idx, x->ndim)], x->shape[d]);
    out->v[i] = x->v[broadcast_at(&flat, idx, x->ndim)];
  }
  return 1;
}
static int r_masked_select(const Inputs* in, Arr* out) {
  Arr both[2], all;
  int64_t i, n = 0, idx[kMaxDims];
  both[0] = *tensor(in, "self");
  both[1] = *tensor(in, "mask");
  all = broadcast_shape(both, 2);
  for (i = 0; i < all.n; i++) {
    unravel(i, all.shape, all.ndim, idx);
    if (both[1].v[broadcast_at(&both[1], idx, all.ndim)] != 0)
      all.v[n++] = both[0].v[broadcast_at(&both[0], idx, all.ndim)];
  }
  *out = array(&n, 1);
  memcpy(out->v, all.v, (size_t)n * sizeof(double));
  return 1;
}
static int r_nonzero(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  int64_t shape[2] = {0, 0};
  int64_t i;
  int64_t k = 0;
  int64_t d;
  int64_t idx[kMaxDims];
  shape[1] = x->ndim;
  for (i = 0; i < x->n; i++) shape[0] += x->v[i] != 0;
  *out = array(shape, 2);
  for (i = 0; i < x->n; i++) {
    unravel(i, x->shape, x->ndim, idx);
    for (d = 0; x->v[i] != 0 && d < x->ndim; d++) out->v[k++] = (double)idx[d];
  }
  return 1;
}

/* ---- statistics ---- */

static int r_all(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const unsigned mask = reduced_dims(in, x);
  int64_t i;
  *out = reduced_shape(x, mask, (int)int_arg(in, "keepdim", 0));
  for (i = 0; i < out->n; i++) out->v[i] = 1;
  for (i = 0; i < x->n; i++)
    if (x->v[i] == 0) out->v[reduced_at(x, i, mask)] = 0;
  return 1;
}
static int r_prod(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const unsigned mask = reduced_dims(in, x);
  int64_t i;
  *out = reduced_shape(x, mask, (int)int_arg(in, "keepdim", 0));
  for (i = 0; i < out->n; i++) out->v[i] = 1;
  for (i = 0; i < x->n; i++) out->v[reduced_at(x, i, mask)] *= x->v[i];
  return 1;
}
static int r_cumsum(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const int64_t d = wrap(int_arg(in, "dim", 0), x->ndim);
  int64_t i, idx[kMaxDims];
  *out = same_order(x, x->shape, x->ndim);
  for (i = 0; x->ndim && i < x->n; i++) {
    unravel(i, x->shape, x->ndim, idx);
    if (idx[d]-- > 0) out->v[i] += out->v[ravel(out, idx)];
  }
  return 1;
}
static int r_amax(const Inputs* in, Arr* out) {
  Arr at;
  extremes(in, out, &at);
  return 1;
}
static int r_amin(const Inputs* in, Arr* out) {
  Inputs turned = *in;
  Arr at, x = *tensor(in, "self");
  int64_t i;
  x = same_order(&x, x.shape, x.ndim);
  for (i = 0; i < x.n; i++) x.v[i] = -x.v[i];
  turned.t[row_arg(in->sample->row, "self")] = x;
  extremes(&turned, out, &at);
  for (i = 0; i < out->n; i++) out->v[i] = -out->v[i];
  return 1;
}
static int r_logsumexp(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const unsigned mask = reduced_dims(in, x);
  int64_t i;
  *out = reduced_shape(x, mask, (int)int_arg(in, "keepdim", 0));
  for (i = 0; i < x->n; i++) out->v[reduced_at(x, i, mask)] += exp(x->v[i]);
  for (i = 0; i < out->n; i++) out->v[i] = log(out->v[i]);
  return 1;
}
static int r_var_mean(const Inputs* in, Arr* outs) {
  const Arr* x = tensor(in, "self");
  const unsigned mask = reduced_dims(in, x);
  const double n = (double)x->n / (double)(reduced_shape(x, mask, 0).n);
  const double rest = n - number_arg(in, "correction", 1);
  int64_t i;
  outs[0] = reduced_shape(x, mask, (int)int_arg(in, "keepdim", 0));
  outs[1] = array(outs[0].shape, outs[0].ndim);
  for (i = 0; i < x->n; i++) outs[1].v[reduced_at(x, i, mask)] += x->v[i] / n;
  for (i = 0; i < x->n; i++) {
    const int64_t k = reduced_at(x, i, mask);
    outs[0].v[k] += (x->v[i] - outs[1].v[k]) * (x->v[i] - outs[1].v[k]);
  }
  for (i = 0; i < outs[0].n; i++) outs[0].v[i] /= rest > 0 ? rest : 0;
  return in->sample->row->n_outs;
}
static int r_std(const Inputs* in, Arr* outs) {
  Arr both[2];
  int64_t i;
  r_var_mean(in, both);
  for (i = 0; i < both[0].n; i++) both[0].v[i] = sqrt(both[0].v[i]);
  outs[0] = both[0];
  return 1;
}
static int r_var(const Inputs* in, Arr* outs) {
  Arr both[2];
  r_var_mean(in, both);
  outs[0] = both[0];
  return 1;
}

#define SHAPE_REFS                                                                               \
  {"flatten", 0, r_flatten, 1}, {"unflatten", 0, r_unflatten, 1}, {"unbind", 0, r_unbind, 1},    \
      {"chunk", 0, r_chunk, 1}, {"narrow", 0, r_narrow, 1}, {"diagonal", 0, r_diagonal, 1},      \
      {"flip", 0, r_flip, 1}, {"roll", 0, r_roll, 1}, {"repeat", 0, r_repeat, 1},                \
      {"tile", 0, r_repeat, 1}, {"mm", 0, r_matmul, 0}, {"bmm", 0, r_matmul, 0},                 \
      {"mv", 0, r_matmul, 0}, {"dot", 0, r_matmul, 0}, {"outer", 0, r_outer, 1},                 \
      {"baddbmm", 0, r_baddbmm, 0}, {"einsum", 0, r_einsum, 0}, {"eye", 0, r_eye, 1},            \
      {"linspace", 0, r_linspace, 0}, {"one_hot", 0, r_one_hot, 1}, {"tril", 0, r_tril, 1},      \
      {"triu", 0, r_triu, 1}, {"scatter", 0, r_scatter, 1}, {"index_copy", 0, r_index_write, 1}, \
      {"index_fill", 0, r_index_write, 1}, {"take_along_dim", 0, r_take_along_dim, 1},           \
      {"masked_select", 0, r_masked_select, 1}, {"nonzero", 0, r_nonzero, 1},                    \
      {"all", 0, r_all, 1}, {"prod", 0, r_prod, 0}, {"cumsum", 0, r_cumsum, 0},                  \
      {"amax", 0, r_amax, 1}, {"amin", 0, r_amin, 1}, {"logsumexp", 0, r_logsumexp, 0},          \
      {"var_mean", 0, r_var_mean, 0}, {"var", 0, r_var, 0}, {"std", 0, r_std, 0},
