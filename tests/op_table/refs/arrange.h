/* References of joins, splits, rearrangements and padding. */

/* Writes x into out from index `begin` of dimension d on. */
static void write_part(Array* out, const Array* x, int64_t d, int64_t begin) {
  int64_t index[kMaxDims];
  for (int64_t i = 0; i < x->n; i++) {
    index_of(x, i, index);
    index[d] += begin;
    out->data[ravel(out, index)] = x->data[i];
  }
}
static Array joined(const Array* items, int n_items, int64_t d) {
  int64_t shape[kMaxDims];
  int64_t begin = 0;
  memcpy(shape, items[0].shape, sizeof shape);
  shape[d] = 0;
  for (int k = 0; k < n_items; k++) shape[d] += items[k].shape[d];
  Array out = new_array(shape, items[0].ndim);
  for (int k = 0; k < n_items; k++) {
    write_part(&out, &items[k], d, begin);
    begin += items[k].shape[d];
  }
  return out;
}
static int ref_cat(const Inputs* in, Array* out) {
  *out = joined(in->items, in->n_items, dim_arg(in, "dim", 0, in->items[0].ndim));
  return 1;
}
static int ref_stack(const Inputs* in, Array* out) {
  const int64_t at = dim_arg(in, "dim", 0, in->items[0].ndim + 1);
  Array items[kMaxItems];
  for (int k = 0; k < in->n_items; k++) {
    const Array* x = &in->items[k];
    int64_t shape[kMaxDims];
    for (int d = 0; d <= x->ndim; d++) shape[d] = d == at ? 1 : x->shape[d - (d > at)];
    items[k] = reshaped(x, shape, x->ndim + 1);
  }
  *out = joined(items, in->n_items, at);
  return 1;
}

static int split_evenly(const Array* x, int64_t d, int64_t size, Array* outs) {
  int n = 0;
  for (int64_t begin = 0; begin < x->shape[d]; begin += size) {
    const int64_t left = x->shape[d] - begin;
    outs[n++] = part_of(x, d, begin, left < size ? left : size, 1);
  }
  return n;
}
static int ref_split(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  return split_evenly(x, d, int_arg(in, "split_size", 1), outs);
}
static int ref_split_with_sizes(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  const tt_value* sizes = given(in, "split_sizes");
  int64_t begin = 0;
  for (int k = 0; k < sizes->n; k++) {
    outs[k] = part_of(x, d, begin, sizes->ints[k], 1);
    begin += sizes->ints[k];
  }
  return (int)sizes->n;
}
static int ref_chunk(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  const int64_t chunks = int_arg(in, "chunks", 1);
  if (x->shape[d]) return split_evenly(x, d, (x->shape[d] + chunks - 1) / chunks, outs);
  for (int k = 0; k < chunks; k++) outs[k] = part_of(x, d, 0, 0, 1);
  return (int)chunks;
}

static int ref_flip(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const tt_value* dims = given(in, "dims");
  int64_t index[kMaxDims];
  *out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) {
    index_of(x, i, index);
    for (int64_t k = 0; x->ndim && k < dims->n; k++) {
      const int64_t d = wrap(dims->ints[k], x->ndim);
      index[d] = x->shape[d] - 1 - index[d];
    }
    out->data[ravel(out, index)] = x->data[i];
  }
  return 1;
}
static int64_t modulo(int64_t a, int64_t n) { return (a % n + n) % n; }
static int ref_roll(const Inputs* in, Array* out) { /* without dims: all elements as one row */
  const Array* x = tensor(in, "self");
  const tt_value* shifts = given(in, "shifts");
  const tt_value* dims = given(in, "dims");
  const int by_dims = dims && dims->n > 0;
  const Array rolled = by_dims ? *x : reshaped(x, &x->n, 1);
  int64_t index[kMaxDims];
  *out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) {
    index_of(&rolled, i, index);
    for (int64_t k = 0; k < shifts->n; k++) {
      const int64_t d = by_dims ? wrap(dims->ints[k], x->ndim) : 0;
      index[d] = modulo(index[d] + shifts->ints[k], rolled.shape[d]);
    }
    out->data[ravel(&rolled, index)] = x->data[i];
  }
  return 1;
}
static int ref_repeat(const Inputs* in, Array* out) { /* and tile */
  const Array* x = tensor(in, "self");
  const tt_value* repeats = given(in, has(in, "repeats") ? "repeats" : "dims");
  const int ndim = repeats->n > x->ndim ? (int)repeats->n : x->ndim;
  const int added = ndim - x->ndim;
  const int unrepeated = ndim - (int)repeats->n;
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  for (int d = 0; d < ndim; d++) {
    const int64_t size = d < added ? 1 : x->shape[d - added];
    shape[d] = d < unrepeated ? size : size * repeats->ints[d - unrepeated];
  }
  *out = new_array(shape, ndim);
  for (int64_t i = 0; i < out->n; i++) {
    index_of(out, i, index);
    for (int d = 0; d < x->ndim; d++) index[d] = index[d + added] % x->shape[d];
    out->data[i] = x->data[ravel(x, index)];
  }
  return 1;
}

/* ---- padding ---- */

static int64_t reflected(int64_t at, int64_t n) {
  if (at < 0) return -at;
  return at >= n ? 2 * n - 2 - at : at;
}
static int64_t replicated(int64_t at, int64_t n) {
  if (at < 0) return 0;
  return at >= n ? n - 1 : at;
}
/* What a negative padding crops takes no part in the circle. */
static int64_t circled(int64_t at, int64_t n, int64_t before, int64_t after) {
  const int64_t from = before < 0 ? -before : 0;
  const int64_t length = n - from + (after < 0 ? after : 0);
  return from + modulo(at - from, length);
}
static int ref_pad(const Inputs* in, Array* out) {
  const Array* x = &in->tensors[0];
  const tt_value* pad = given(in, "pad"); /* before and after, the last dimension first */
  const int64_t mode = int_arg(in, "mode", TT_PADDING_CONSTANT);
  int64_t before[kMaxDims] = {0};
  int64_t after[kMaxDims] = {0};
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  for (int d = 0; d < x->ndim; d++) {
    const int k = 2 * (x->ndim - 1 - d);
    if (k + 1 < pad->n) {
      before[d] = pad->ints[k];
      after[d] = pad->ints[k + 1];
    }
    shape[d] = before[d] + x->shape[d] + after[d];
  }
  *out = new_array(shape, x->ndim);
  for (int64_t i = 0; i < out->n; i++) {
    int is_inside = 1;
    index_of(out, i, index);
    for (int d = 0; d < x->ndim; d++) {
      const int64_t n = x->shape[d];
      int64_t at = index[d] - before[d];
      if (mode == TT_PADDING_REFLECT) at = reflected(at, n);
      if (mode == TT_PADDING_REPLICATE) at = replicated(at, n);
      if (mode == TT_PADDING_CIRCULAR) at = circled(at, n, before[d], after[d]);
      if (at < 0 || at >= n) is_inside = 0;
      index[d] = at;
    }
    out->data[i] = is_inside ? x->data[ravel(x, index)] : number_arg(in, "value", 0);
  }
  return 1;
}

static const Reference kArrange[] = {
    {"cat", .whole = ref_cat, .exact = 1},
    {"stack", .whole = ref_stack, .exact = 1},
    {"split", .whole = ref_split, .exact = 1},
    {"split_with_sizes", .whole = ref_split_with_sizes, .exact = 1},
    {"chunk", .whole = ref_chunk, .exact = 1},
    {"flip", .whole = ref_flip, .exact = 1},
    {"roll", .whole = ref_roll, .exact = 1},
    {"repeat", .whole = ref_repeat, .exact = 1},
    {"tile", .whole = ref_repeat, .exact = 1},
    {"pad", .whole = ref_pad, .exact = 1},
    {"constant_pad_nd", .whole = ref_pad, .exact = 1},
};
