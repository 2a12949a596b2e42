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

/* ---- stacks ---- */

/* x with dimensions of size 1: `before` in front, then behind it until there are ndim. */
static Array with_ones(const Array* x, int before, int ndim) {
  int64_t shape[kMaxDims];
  for (int d = 0; d < ndim; d++) shape[d] = 1;
  for (int d = 0; d < x->ndim; d++) shape[before + d] = x->shape[d];
  return reshaped(x, shape, before + x->ndim > ndim ? before + x->ndim : ndim);
}
static Array at_least(const Array* x, int ndim) {
  if (x->ndim >= ndim) return *x;
  if (ndim == 1) return with_ones(x, 0, 1);
  if (ndim == 2) return with_ones(x, 1, 2);
  return with_ones(x, x->ndim < 2, 3);
}
static int stacked(const Inputs* in, int ndim, int64_t d, Array* out) {
  Array items[kMaxItems];
  for (int k = 0; k < in->n_items; k++) items[k] = at_least(&in->items[k], ndim);
  *out = joined(items, in->n_items, d < items[0].ndim ? d : 0);
  return 1;
}
static int ref_hstack(const Inputs* in, Array* out) { return stacked(in, 1, 1, out); }
static int ref_vstack(const Inputs* in, Array* out) { return stacked(in, 2, 0, out); }
static int ref_dstack(const Inputs* in, Array* out) { return stacked(in, 3, 2, out); }
static int ref_column_stack(const Inputs* in, Array* out) {
  Array items[kMaxItems];
  for (int k = 0; k < in->n_items; k++) {
    const Array* x = &in->items[k];
    const int64_t column[] = {x->n, 1};
    items[k] = x->ndim < 2 ? reshaped(x, column, 2) : *x;
  }
  *out = joined(items, in->n_items, 1);
  return 1;
}
static int ref_block_diag(const Inputs* in, Array* out) {
  int64_t shape[2] = {0, 0};
  int64_t row = 0;
  int64_t column = 0;
  Array items[kMaxItems];
  for (int k = 0; k < in->n_items; k++) {
    items[k] = at_least(&in->items[k], 2);
    shape[0] += items[k].shape[0];
    shape[1] += items[k].shape[1];
  }
  *out = new_array(shape, 2);
  for (int k = 0; k < in->n_items; k++) {
    const Array* x = &items[k];
    for (int64_t i = 0; i < x->n; i++)
      out->data[(row + i / x->shape[1]) * shape[1] + column + i % x->shape[1]] = x->data[i];
    row += x->shape[0];
    column += x->shape[1];
  }
  return 1;
}

/* ---- splits ---- */

static int split_sections(const Array* x, int64_t d, int64_t sections, Array* outs) {
  int64_t begin = 0;
  for (int64_t k = 0; k < sections; k++) {
    const int64_t size = x->shape[d] / sections + (k < x->shape[d] % sections);
    outs[k] = part_of(x, d, begin, size, 1);
    begin += size;
  }
  return (int)sections;
}
static int split_at(const Array* x, int64_t d, const int64_t* indices, int64_t n, Array* outs) {
  for (int64_t k = 0; k <= n; k++) {
    const int64_t begin = k ? slice_bound(indices[k - 1], x->shape[d]) : 0;
    const int64_t end = k < n ? slice_bound(indices[k], x->shape[d]) : x->shape[d];
    outs[k] = part_of(x, d, begin, end > begin ? end - begin : 0, 1);
  }
  return (int)n + 1;
}
static int split_by_args(const Inputs* in, int64_t d, Array* outs) {
  const Array* x = tensor(in, "self");
  const tt_value* indices = given(in, "indices");
  const Array* values = tensor(in, "tensor_indices_or_sections");
  int64_t at[kMaxOuts];
  if (indices) return split_at(x, d, indices->ints, indices->n, outs);
  if (!values) return split_sections(x, d, int_arg(in, "sections", 1), outs);
  for (int64_t i = 0; i < values->n; i++) at[i] = (int64_t)values->data[i];
  return values->ndim ? split_at(x, d, at, values->n, outs) : split_sections(x, d, at[0], outs);
}
static int ref_tensor_split(const Inputs* in, Array* outs) {
  return split_by_args(in, dim_arg(in, "dim", 0, tensor(in, "self")->ndim), outs);
}
static int ref_hsplit(const Inputs* in, Array* outs) {
  return split_by_args(in, tensor(in, "self")->ndim > 1, outs);
}
static int ref_vsplit(const Inputs* in, Array* outs) { return split_by_args(in, 0, outs); }
static int ref_dsplit(const Inputs* in, Array* outs) { return split_by_args(in, 2, outs); }

/* ---- turns ---- */

static Array flipped(const Array* x, int64_t d) {
  int64_t index[kMaxDims];
  Array out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) {
    index_of(x, i, index);
    index[d] = x->shape[d] - 1 - index[d];
    out.data[ravel(&out, index)] = x->data[i];
  }
  return out;
}
static int ref_fliplr(const Inputs* in, Array* out) {
  *out = flipped(tensor(in, "self"), 1);
  return 1;
}
static int ref_flipud(const Inputs* in, Array* out) {
  *out = flipped(tensor(in, "self"), 0);
  return 1;
}
/* A quarter turn moves (i, j) of an m x n plane to (n - 1 - j, i). */
static int ref_rot90(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const tt_value* dims = given(in, "dims");
  const int64_t a = dims && dims->n ? wrap(dims->ints[0], x->ndim) : 0;
  const int64_t b = dims && dims->n ? wrap(dims->ints[1], x->ndim) : 1;
  *out = copy_of(x);
  for (int64_t turn = 0; turn < modulo(int_arg(in, "k", 1), 4); turn++) {
    Array turned = with_dims_swapped(out, a, b);
    *out = flipped(&turned, a);
  }
  return 1;
}

/* ---- diagonals ---- */

static int ref_diag_embed(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t offset = int_arg(in, "offset", int_arg(in, "diagonal", 0));
  const int ndim = x->ndim + 1;
  const int64_t a = dim_arg(in, "dim1", -2, ndim);
  const int64_t b = dim_arg(in, "dim2", -1, ndim);
  const int64_t side = x->shape[x->ndim - 1] + (offset < 0 ? -offset : offset);
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  int next = 0;
  for (int d = 0; d < ndim; d++) shape[d] = d == a || d == b ? side : x->shape[next++];
  *out = new_array(shape, ndim);
  for (int64_t i = 0; i < out->n; i++) {
    int64_t from[kMaxDims];
    index_of(out, i, index);
    if (index[b] - index[a] != offset) continue;
    next = 0;
    for (int d = 0; d < ndim; d++)
      if (d != a && d != b) from[next++] = index[d];
    from[next] = offset < 0 ? index[b] : index[a];
    out->data[i] = x->data[ravel(x, from)];
  }
  return 1;
}
static int ref_diag(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t offset = int_arg(in, "diagonal", 0);
  int64_t n = 0;
  if (x->ndim == 1) return ref_diag_embed(in, out);
  *out = new_array(&x->n, 1);
  for (int64_t i = 0; i < x->n; i++)
    if (i % x->shape[1] - i / x->shape[1] == offset) out->data[n++] = x->data[i];
  out->shape[0] = out->n = n;
  return 1;
}
static int ref_diagflat(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t offset = int_arg(in, "offset", 0);
  const int64_t n = x->n + (offset < 0 ? -offset : offset);
  const int64_t shape[] = {n, n};
  *out = new_array(shape, 2);
  for (int64_t i = 0; i < x->n; i++) {
    const int64_t row = i + (offset < 0 ? -offset : 0);
    out->data[row * n + row + offset] = x->data[i];
  }
  return 1;
}

/* ---- grids and combinations ---- */

static int ref_meshgrid(const Inputs* in, Array* outs) {
  const int n = in->n_items;
  const int swaps = n > 1 && int_arg(in, "indexing", TT_INDEXING_IJ) == TT_INDEXING_XY;
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  for (int k = 0; k < n; k++) shape[swaps && k < 2 ? 1 - k : k] = in->items[k].n;
  for (int k = 0; k < n; k++) {
    outs[k] = new_array(shape, n);
    for (int64_t i = 0; i < outs[k].n; i++) {
      index_of(&outs[k], i, index);
      outs[k].data[i] = in->items[k].data[index[swaps && k < 2 ? 1 - k : k]];
    }
  }
  return n;
}
static int ref_cartesian_prod(const Inputs* in, Array* out) {
  const int n = in->n_items;
  int64_t lengths[kMaxDims];
  int64_t index[kMaxDims];
  int64_t shape[2] = {1, n};
  for (int k = 0; k < n; k++) {
    lengths[k] = in->items[k].n;
    shape[0] *= lengths[k];
  }
  if (n == 1) {
    *out = in->items[0];
    return 1;
  }
  *out = new_array(shape, 2);
  for (int64_t i = 0; i < shape[0]; i++) {
    unravel(i, lengths, n, index);
    for (int k = 0; k < n; k++) out->data[i * n + k] = in->items[k].data[index[k]];
  }
  return 1;
}
/* Of all n^r choices those whose positions ascend. */
static int ref_combinations(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int r = (int)int_arg(in, "r", 2);
  const int repeats = flag_arg(in, "with_replacement");
  int64_t lengths[kMaxDims];
  int64_t index[kMaxDims];
  int64_t shape[2] = {1, r};
  int64_t total = 1;
  int64_t n = 0;
  for (int k = 0; k < r; k++) {
    lengths[k] = x->n;
    total *= x->n;
  }
  shape[0] = total;
  *out = new_array(shape, 2);
  for (int64_t i = 0; i < total; i++) {
    int ascends = 1;
    unravel(i, lengths, r, index);
    for (int k = 1; k < r; k++) ascends &= index[k] >= index[k - 1] + !repeats;
    if (!ascends) continue;
    for (int k = 0; k < r; k++) out->data[n * r + k] = x->data[index[k]];
    n++;
  }
  out->shape[0] = n;
  out->n = n * r;
  return 1;
}
static int ref_repeat_interleave(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const Array* repeats = tensor(in, "repeats");
  const Array flat = given(in, "dim") ? *x : reshaped(x, &x->n, 1);
  const int64_t d = dim_arg(in, "dim", 0, flat.ndim);
  const int64_t n = flat.shape[d];
  int64_t begin = 0;
  int64_t shape[kMaxDims];
  memcpy(shape, flat.shape, sizeof shape);
  shape[d] = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t k = 0; k < n; k++) {
      int64_t times = int_arg(in, "repeats", 1);
      if (repeats) times = (int64_t)repeats->data[repeats->n == 1 ? 0 : k];
      const Array slice = part_of(&flat, d, k, 1, 1);
      if (!pass) shape[d] += times;
      for (int64_t j = 0; pass && j < times; j++) write_part(out, &slice, d, begin++);
    }
    if (!pass) *out = new_array(shape, flat.ndim);
  }
  return 1;
}

/* Pixel (h, w) of channel c of the larger image is pixel (h / r, w / r) of channel
   c r^2 + h % r * r + w % r of the smaller one. */
static int shuffle_pixels(const Inputs* in, Array* out, int64_t r, int enlarge) {
  const Array* x = tensor(in, "self");
  const int channel = x->ndim - 3;
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  shape[channel] = enlarge ? shape[channel] / r / r : shape[channel] * r * r;
  for (int d = channel + 1; d < x->ndim; d++) shape[d] = enlarge ? shape[d] * r : shape[d] / r;
  *out = new_array(shape, x->ndim);
  const Array* large = enlarge ? out : x;
  const Array* small = enlarge ? x : out;
  for (int64_t i = 0; i < large->n; i++) {
    index_of(large, i, index);
    const int64_t part = index[channel + 1] % r * r + index[channel + 2] % r;
    index[channel] = index[channel] * r * r + part;
    index[channel + 1] /= r;
    index[channel + 2] /= r;
    const int64_t at = ravel(small, index);
    if (enlarge) out->data[i] = x->data[at];
    else out->data[at] = x->data[i];
  }
  return 1;
}
static int ref_pixel_shuffle(const Inputs* in, Array* out) {
  return shuffle_pixels(in, out, int_arg(in, "upscale_factor", 1), 1);
}
static int ref_pixel_unshuffle(const Inputs* in, Array* out) {
  return shuffle_pixels(in, out, int_arg(in, "downscale_factor", 1), 0);
}
static int ref_channel_shuffle(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t groups = int_arg(in, "groups", 1);
  *out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) {
    int64_t index[kMaxDims];
    index_of(x, i, index);
    const int64_t per_group = x->shape[1] / groups;
    index[1] = index[1] % groups * per_group + index[1] / groups;
    out->data[i] = x->data[ravel(x, index)];
  }
  return 1;
}

static const Reference kArrange[] = {
    {"pixel_shuffle", .whole = ref_pixel_shuffle, .exact = 1},
    {"pixel_unshuffle", .whole = ref_pixel_unshuffle, .exact = 1},
    {"channel_shuffle", .whole = ref_channel_shuffle, .exact = 1},
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
    {"hstack", .whole = ref_hstack, .exact = 1},
    {"vstack", .whole = ref_vstack, .exact = 1},
    {"dstack", .whole = ref_dstack, .exact = 1},
    {"column_stack", .whole = ref_column_stack, .exact = 1},
    {"block_diag", .whole = ref_block_diag, .exact = 1},
    {"tensor_split", .whole = ref_tensor_split, .exact = 1},
    {"hsplit", .whole = ref_hsplit, .exact = 1},
    {"vsplit", .whole = ref_vsplit, .exact = 1},
    {"dsplit", .whole = ref_dsplit, .exact = 1},
    {"fliplr", .whole = ref_fliplr, .exact = 1},
    {"flipud", .whole = ref_flipud, .exact = 1},
    {"rot90", .whole = ref_rot90, .exact = 1},
    {"diag", .whole = ref_diag, .exact = 1},
    {"diagflat", .whole = ref_diagflat, .exact = 1},
    {"diag_embed", .whole = ref_diag_embed, .exact = 1},
    {"meshgrid", .whole = ref_meshgrid, .exact = 1},
    {"cartesian_prod", .whole = ref_cartesian_prod, .exact = 1},
    {"combinations", .whole = ref_combinations, .exact = 1},
    {"repeat_interleave", .whole = ref_repeat_interleave, .exact = 1},
};
