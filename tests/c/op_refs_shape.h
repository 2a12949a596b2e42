/* Part of op_refs.c: references of views, rearrangements, matrix shorthands, creation and indexing beyond the first operators. */

/* ---- views and rearrangements ---- */

static int r_flatten(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const int64_t first = wrap(int_arg(in, "start_dim", 0), x->ndim), last = wrap(int_arg(in, "end_dim", -1), x->ndim);
  int64_t shape[kMaxDims + 1];
  int d, n = 0;
  shape[0] = 1;
  for (d = 0; d < x->ndim; d++) {
    if (d > first && d <= last)
      shape[n - 1] *= x->shape[d];
    else
      shape[n++] = x->shape[d];
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
    for (i = 0; i < sizes->n; i++) shape[n++] = sizes->ints[i] < 0 ? x->shape[d] / known : sizes->ints[i];
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
  const int64_t d = wrap(int_arg(in, "dim", 0), x->ndim), chunks = int_arg(in, "chunks", 1);
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
  const int64_t d = wrap(int_arg(in, "dim", 0), x->ndim), start = int_arg(in, "start", 0);
  return *out = cut_out(x, d, start < 0 ? start + x->shape[d] : start, int_arg(in, "length", 0)), 1;
}
static int r_diagonal(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const int64_t a = wrap(int_arg(in, "dim1", 0), x->ndim), b = wrap(int_arg(in, "dim2", 1), x->ndim),
                offset = int_arg(in, "offset", 0);
  int64_t shape[kMaxDims], i, idx[kMaxDims], from[kMaxDims], k = 0;
  int d, n = 0;
  for (d = 0; d < x->ndim; d++)
    if (d != a && d != b) shape[n++] = x->shape[d];
  while (k - (offset < 0 ? offset : 0) < x->shape[a] && k + (offset > 0 ? offset : 0) < x->shape[b]) k++;
  shape[n++] = k;
  *out = array(shape, n);
  for (i = 0; i < out->n; i++) {
    int e = 0;
    unravel(i, shape, n, idx);
    for (d = 0; d < x->ndim; d++)
      if (d != a && d != b) from[d] = idx[e++];
    from[a] = idx[e] - (offset < 0 ? offset : 0), from[b] = idx[e] + (offset > 0 ? offset : 0);
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
  const tt_value *shifts = given(in, "shifts"), *dims = given(in, "dims");
  const Arr flat = same_order(x, &x->n, 1), *y = !dims || dims->n == 0 ? &flat : x;
  int64_t i, k, idx[kMaxDims];
  *out = array(x->shape, x->ndim);
  for (i = 0; i < x->n; i++) {
    unravel(i, y->shape, y->ndim, idx);
    for (k = 0; k < shifts->n; k++) {
      const int64_t d = y == x ? wrap(dims->ints[k], x->ndim) : 0, n = y->shape[d];
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
    const int own = d - (nd - x->ndim), at = d - (nd - (int)v->n);
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
  const Arr *a = tensor(in, "self"), *b = tensor(in, "vec2");
  int64_t shape[2], i;
  shape[0] = a->n, shape[1] = b->n;
  *out = array(shape, 2);
  for (i = 0; i < out->n; i++) out->v[i] = a->v[i / b->n] * b->v[i % b->n];
  return 1;
}
static int r_baddbmm(const Inputs* in, Arr* out) {
  const Arr* self = tensor(in, "self");
  const double alpha = number_arg(in, "alpha", 1), beta = number_arg(in, "beta", 1);
  int64_t i, idx[kMaxDims];
  *out = product(*tensor(in, "batch1"), *tensor(in, "batch2"));
  for (i = 0; i < out->n; i++) {
    unravel(i, out->shape, out->ndim, idx);
    out->v[i] = alpha * out->v[i] + (beta != 0 ? beta * self->v[broadcast_at(self, idx, out->ndim)] : 0);
  }
  return 1;
}

/* A label per dimension: letters, and digits for what an ellipsis stands for (0 is the last dimension of it). Returns the end. */
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
  labels[n] = l, labels[n + 1] = 0;
}
/* The sum over all values of all labels, straight from the definition. */
static int r_einsum(const Inputs* in, Arr* out) {
  const char* p = given(in, "equation")->str;
  char term[kMaxItems][kMaxDims + 1], all[64] = "", result[64] = "";
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
  for (d = 0; all[d]; d++) shape[d] = size[(int)all[d]], total *= shape[d];
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

#define SHAPE_REFS                                                                                                 \
  {"flatten", 0, r_flatten, 1}, {"unflatten", 0, r_unflatten, 1}, {"unbind", 0, r_unbind, 1}, {"chunk", 0, r_chunk, 1}, \
      {"narrow", 0, r_narrow, 1}, {"diagonal", 0, r_diagonal, 1}, {"flip", 0, r_flip, 1}, {"roll", 0, r_roll, 1},       \
      {"repeat", 0, r_repeat, 1}, {"tile", 0, r_repeat, 1}, {"mm", 0, r_matmul, 0}, {"bmm", 0, r_matmul, 0},            \
      {"mv", 0, r_matmul, 0}, {"dot", 0, r_matmul, 0}, {"outer", 0, r_outer, 1}, {"baddbmm", 0, r_baddbmm, 0},          \
      {"einsum", 0, r_einsum, 0},
