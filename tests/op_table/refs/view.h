/* References of views. */

/* ---- the same elements in the same order ---- */

/* A shape of n elements in which one size may be -1: the remaining factor. */
static int complete_shape(const tt_value* sizes, int64_t n, int64_t* shape) {
  int64_t known = 1;
  for (int64_t i = 0; i < sizes->n; i++)
    if (sizes->ints[i] >= 0) known *= sizes->ints[i];
  for (int64_t i = 0; i < sizes->n; i++) shape[i] = sizes->ints[i] < 0 ? n / known : sizes->ints[i];
  return (int)sizes->n;
}
static int ref_view(const Inputs* in, Array* out) { /* and reshape */
  const Array* x = tensor(in, "self");
  int64_t shape[kMaxDims];
  const int ndim = complete_shape(given(in, has(in, "size") ? "size" : "shape"), x->n, shape);
  *out = reshaped(x, shape, ndim);
  return 1;
}
static int ref_flatten(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t first = dim_arg(in, "start_dim", 0, x->ndim);
  const int64_t last = dim_arg(in, "end_dim", -1, x->ndim);
  int64_t shape[kMaxDims] = {1};
  int ndim = 0;
  for (int d = 0; d < x->ndim; d++) {
    if (d > first && d <= last) shape[ndim - 1] *= x->shape[d];
    else shape[ndim++] = x->shape[d];
  }
  *out = reshaped(x, shape, x->ndim ? ndim : 1);
  return 1;
}
static int ref_unflatten(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t at = dim_arg(in, "dim", 0, x->ndim);
  int64_t shape[kMaxDims];
  int ndim = 0;
  for (int d = 0; d < x->ndim; d++) {
    if (d == at) ndim += complete_shape(given(in, "sizes"), x->shape[d], shape + ndim);
    else shape[ndim++] = x->shape[d];
  }
  *out = reshaped(x, shape, ndim);
  return 1;
}
static int ref_squeeze(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const tt_value* dim = given(in, "dim");
  const unsigned mask = dim && dim->n == 0 ? 0 : reduced_dims(in, x);
  int64_t shape[kMaxDims];
  int ndim = 0;
  for (int d = 0; d < x->ndim; d++)
    if (!is_reduced(mask, d) || x->shape[d] != 1) shape[ndim++] = x->shape[d];
  *out = reshaped(x, shape, ndim);
  return 1;
}
static int ref_unsqueeze(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t at = dim_arg(in, "dim", 0, x->ndim + 1);
  int64_t shape[kMaxDims];
  for (int d = 0; d <= x->ndim; d++) shape[d] = d == at ? 1 : x->shape[d - (d > at)];
  *out = reshaped(x, shape, x->ndim + 1);
  return 1;
}

/* ---- other orders ---- */

static Array permuted(const Array* x, const int64_t* dims) {
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  int64_t from[kMaxDims];
  for (int d = 0; d < x->ndim; d++) shape[d] = x->shape[wrap(dims[d], x->ndim)];
  Array out = new_array(shape, x->ndim);
  for (int64_t i = 0; i < out.n; i++) {
    index_of(&out, i, index);
    for (int d = 0; d < x->ndim; d++) from[wrap(dims[d], x->ndim)] = index[d];
    out.data[i] = x->data[ravel(x, from)];
  }
  return out;
}
static Array with_dims_swapped(const Array* x, int64_t a, int64_t b) {
  int64_t dims[kMaxDims];
  if (!x->ndim) return *x;
  for (int d = 0; d < x->ndim; d++) dims[d] = d;
  dims[a] = b;
  dims[b] = a;
  return permuted(x, dims);
}
static int ref_permute(const Inputs* in, Array* out) {
  *out = permuted(tensor(in, "self"), given(in, "dims")->ints);
  return 1;
}
static int ref_transpose(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t a = dim_arg(in, "dim0", 0, x->ndim);
  const int64_t b = dim_arg(in, "dim1", 0, x->ndim);
  *out = with_dims_swapped(x, a, b);
  return 1;
}
static int ref_t(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  *out = x->ndim < 2 ? *x : with_dims_swapped(x, 0, 1);
  return 1;
}
static int ref_expand(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const tt_value* size = given(in, "size");
  const int added = (int)size->n - x->ndim;
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  for (int d = 0; d < size->n; d++)
    shape[d] = size->ints[d] < 0 ? x->shape[d - added] : size->ints[d];
  *out = new_array(shape, (int)size->n);
  for (int64_t i = 0; i < out->n; i++) {
    index_of(out, i, index);
    out->data[i] = broadcast_value(x, index, out->ndim);
  }
  return 1;
}
static int ref_as_strided(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const tt_value* size = given(in, "size");
  const tt_value* stride = given(in, "stride");
  int64_t index[kMaxDims];
  *out = new_array(size->ints, (int)size->n);
  for (int64_t i = 0; i < out->n; i++) {
    int64_t at = int_arg(in, "storage_offset", 0);
    index_of(out, i, index);
    for (int d = 0; d < size->n; d++) at += index[d] * stride->ints[d];
    out->data[i] = x->data[at];
  }
  return 1;
}

/* ---- parts ---- */

/* Every step-th of the indices begin, begin + step, ... of dimension d, `size` of them. */
static Array part_of(const Array* x, int64_t d, int64_t begin, int64_t size, int64_t step) {
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  shape[d] = size;
  Array out = new_array(shape, x->ndim);
  for (int64_t i = 0; i < out.n; i++) {
    index_of(&out, i, index);
    index[d] = begin + index[d] * step;
    out.data[i] = x->data[ravel(x, index)];
  }
  return out;
}
/* The elements at one index of dimension d, without that dimension. */
static Array selected(const Array* x, int64_t d, int64_t at) {
  const Array part = part_of(x, d, at, 1, 1);
  const Array shape = reduced_zeros(x, 1u << d, 0);
  return reshaped(&part, shape.shape, shape.ndim);
}
static int ref_select(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  *out = selected(x, d, wrap(int_arg(in, "index", 0), x->shape[d]));
  return 1;
}
static int ref_unbind(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  for (int64_t k = 0; k < x->shape[d]; k++) outs[k] = selected(x, d, k);
  return (int)x->shape[d];
}
static int ref_narrow(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  const int64_t start = wrap(int_arg(in, "start", 0), x->shape[d]);
  *out = part_of(x, d, start, int_arg(in, "length", 0), 1);
  return 1;
}
/* A bound of a slice of n: counted from the end if negative, and cut to [0, n]. */
static int64_t slice_bound(int64_t bound, int64_t n) {
  if (bound < 0) bound += n;
  if (bound < 0) return 0;
  return bound > n ? n : bound;
}
static int ref_slice(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  const int64_t begin = slice_bound(int_arg(in, "start", 0), x->shape[d]);
  const int64_t end = slice_bound(int_arg(in, "end", x->shape[d]), x->shape[d]);
  const int64_t step = int_arg(in, "step", 1);
  *out = part_of(x, d, begin, end > begin ? (end - begin + step - 1) / step : 0, step);
  return 1;
}
/* The diagonal of dimensions a and b becomes the last dimension. */
static int ref_diagonal(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t a = dim_arg(in, "dim1", 0, x->ndim);
  const int64_t b = dim_arg(in, "dim2", 1, x->ndim);
  const int64_t offset = int_arg(in, "offset", 0);
  const int64_t first_a = offset < 0 ? -offset : 0;
  const int64_t first_b = offset > 0 ? offset : 0;
  const Array others = reduced_zeros(x, 1u << a | 1u << b, 0);
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  int64_t from[kMaxDims];
  int64_t length = 0;
  while (first_a + length < x->shape[a] && first_b + length < x->shape[b]) length++;
  memcpy(shape, others.shape, sizeof shape);
  shape[others.ndim] = length;
  *out = new_array(shape, others.ndim + 1);
  for (int64_t i = 0; i < out->n; i++) {
    int next = 0;
    index_of(out, i, index);
    for (int d = 0; d < x->ndim; d++)
      if (d != a && d != b) from[d] = index[next++];
    from[a] = first_a + index[next];
    from[b] = first_b + index[next];
    out->data[i] = x->data[ravel(x, from)];
  }
  return 1;
}

static int ref_ravel(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  *out = reshaped(x, &x->n, 1);
  return 1;
}
static int ref_adjoint(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  *out = with_dims_swapped(x, x->ndim - 2, x->ndim - 1);
  return 1;
}
static int ref_broadcast_tensors(const Inputs* in, Array* outs) {
  const Array shape = broadcast_zeros(in->items, in->n_items);
  int64_t index[kMaxDims];
  for (int k = 0; k < in->n_items; k++) {
    outs[k] = zeros_like(&shape);
    for (int64_t i = 0; i < shape.n; i++) {
      index_of(&shape, i, index);
      outs[k].data[i] = broadcast_value(&in->items[k], index, shape.ndim);
    }
  }
  return in->n_items;
}
static int ref_movedim(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const tt_value* source = given(in, "source");
  const tt_value* destination = given(in, "destination");
  int64_t dims[kMaxDims];
  int taken[kMaxDims] = {0};
  int next = 0;
  for (int d = 0; d < x->ndim; d++) dims[d] = -1;
  for (int64_t i = 0; i < source->n; i++) {
    dims[wrap(destination->ints[i], x->ndim)] = wrap(source->ints[i], x->ndim);
    taken[wrap(source->ints[i], x->ndim)] = 1;
  }
  for (int d = 0; d < x->ndim; d++) {
    if (dims[d] >= 0) continue;
    while (taken[next]) next++;
    dims[d] = next++;
  }
  *out = permuted(x, dims);
  return 1;
}
static Array with_at_least(const Array* x, int ndim) {
  int64_t shape[kMaxDims] = {1, 1, 1};
  if (x->ndim >= ndim) return *x;
  for (int d = 0; d < x->ndim; d++) shape[d] = x->shape[d];
  if (x->ndim == 1 && ndim > 1) {
    shape[0] = 1;
    shape[1] = x->n;
  }
  return reshaped(x, shape, ndim);
}
static int each_with_at_least(const Inputs* in, int ndim, Array* outs) {
  const int n = in->n_items ? in->n_items : 1;
  for (int k = 0; k < n; k++)
    outs[k] = with_at_least(in->n_items ? &in->items[k] : tensor(in, "self"), ndim);
  return n;
}
static int ref_atleast_1d(const Inputs* in, Array* outs) { return each_with_at_least(in, 1, outs); }
static int ref_atleast_2d(const Inputs* in, Array* outs) { return each_with_at_least(in, 2, outs); }
static int ref_atleast_3d(const Inputs* in, Array* outs) { return each_with_at_least(in, 3, outs); }
static int ref_unfold(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t d = dim_arg(in, "dimension", 0, x->ndim);
  const int64_t size = int_arg(in, "size", 1);
  const int64_t step = int_arg(in, "step", 1);
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  if (x->ndim) shape[d] = (x->shape[d] - size) / step + 1;
  shape[x->ndim] = size;
  *out = new_array(shape, x->ndim + 1);
  for (int64_t i = 0; i < out->n; i++) {
    index_of(out, i, index);
    if (x->ndim) index[d] = index[d] * step + index[x->ndim];
    out->data[i] = x->data[ravel(x, index)];
  }
  return 1;
}

/* ---- copies with a part replaced ---- */

static int ref_select_scatter(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const Array* src = tensor(in, "src");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  const int64_t at = wrap(int_arg(in, "index", 0), x->shape[d]);
  int64_t index[kMaxDims] = {0};
  *out = copy_of(x);
  for (int64_t i = 0; i < x->n; i++) {
    index_of(x, i, index);
    if (index[d] == at) out->data[i] = src->data[position_in(x, i, 1u << d, 0)];
  }
  return 1;
}
static int ref_slice_scatter(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const Array* src = tensor(in, "src");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  const int64_t begin = slice_bound(int_arg(in, "start", 0), x->shape[d]);
  int64_t index[kMaxDims];
  *out = copy_of(x);
  for (int64_t i = 0; i < src->n; i++) {
    index_of(src, i, index);
    index[d] = begin + index[d] * int_arg(in, "step", 1);
    out->data[ravel(x, index)] = src->data[i];
  }
  return 1;
}
static int ref_as_strided_scatter(const Inputs* in, Array* out) {
  const Array* src = tensor(in, "src");
  const tt_value* stride = given(in, "stride");
  int64_t index[kMaxDims];
  *out = copy_of(tensor(in, "self"));
  for (int64_t i = 0; i < src->n; i++) {
    int64_t at = int_arg(in, "storage_offset", 0);
    index_of(src, i, index);
    for (int d = 0; d < src->ndim; d++) at += index[d] * stride->ints[d];
    out->data[at] = src->data[i];
  }
  return 1;
}
static int ref_diagonal_scatter(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const Array* src = tensor(in, "src");
  const int64_t a = dim_arg(in, "dim1", 0, x->ndim);
  const int64_t b = dim_arg(in, "dim2", 1, x->ndim);
  const int64_t offset = int_arg(in, "offset", 0);
  int64_t index[kMaxDims];
  *out = copy_of(x);
  for (int64_t i = 0; i < x->n; i++) {
    index_of(x, i, index);
    if (index[b] - index[a] != offset) continue;
    int64_t from[kMaxDims];
    int next = 0;
    for (int d = 0; d < x->ndim; d++)
      if (d != a && d != b) from[next++] = index[d];
    from[next] = offset < 0 ? index[b] : index[a];
    out->data[i] = src->data[ravel(src, from)];
  }
  return 1;
}
static const Reference kView[] = {
    {"view", .whole = ref_view, .exact = 1},
    {"reshape", .whole = ref_view, .exact = 1},
    {"flatten", .whole = ref_flatten, .exact = 1},
    {"unflatten", .whole = ref_unflatten, .exact = 1},
    {"squeeze", .whole = ref_squeeze, .exact = 1},
    {"unsqueeze", .whole = ref_unsqueeze, .exact = 1},
    {"permute", .whole = ref_permute, .exact = 1},
    {"transpose", .whole = ref_transpose, .exact = 1},
    {"t", .whole = ref_t, .exact = 1},
    {"expand", .whole = ref_expand, .exact = 1},
    {"as_strided", .whole = ref_as_strided, .exact = 1},
    {"select", .whole = ref_select, .exact = 1},
    {"unbind", .whole = ref_unbind, .exact = 1},
    {"narrow", .whole = ref_narrow, .exact = 1},
    {"slice", .whole = ref_slice, .exact = 1},
    {"diagonal", .whole = ref_diagonal, .exact = 1},
    {"ravel", .whole = ref_ravel, .exact = 1},
    {"adjoint", .whole = ref_adjoint, .exact = 1},
    {"broadcast_to", .whole = ref_expand, .exact = 1},
    {"broadcast_tensors", .whole = ref_broadcast_tensors, .exact = 1},
    {"movedim", .whole = ref_movedim, .exact = 1},
    {"atleast_1d", .whole = ref_atleast_1d, .exact = 1},
    {"atleast_2d", .whole = ref_atleast_2d, .exact = 1},
    {"atleast_3d", .whole = ref_atleast_3d, .exact = 1},
    {"narrow_copy", .whole = ref_narrow, .exact = 1},
    {"unfold", .whole = ref_unfold, .exact = 1},
    {"select_scatter", .whole = ref_select_scatter, .exact = 1},
    {"slice_scatter", .whole = ref_slice_scatter, .exact = 1},
    {"as_strided_scatter", .whole = ref_as_strided_scatter, .exact = 1},
    {"diagonal_scatter", .whole = ref_diagonal_scatter, .exact = 1},
    {"detach", .unary = same, .exact = 1},
};
