/* References of indexing. */

/* ---- choices between elements ---- */

static double ref_where(const Inputs* in, const double* x) {
  (void)in;
  return x[0] != 0 ? x[1] : x[2];
}
static double ref_masked_fill(const Inputs* in, const double* x) {
  (void)in;
  return x[1] != 0 ? x[2] : x[0];
}
static int ref_masked_select(const Inputs* in, Array* out) {
  const Array pair[2] = {*tensor(in, "self"), *tensor(in, "mask")};
  const Array all = broadcast_zeros(pair, 2);
  int64_t index[kMaxDims];
  int64_t n = 0;
  for (int64_t i = 0; i < all.n; i++) {
    index_of(&all, i, index);
    if (broadcast_value(&pair[1], index, all.ndim) == 0) continue;
    all.data[n++] = broadcast_value(&pair[0], index, all.ndim);
  }
  *out = new_array(&n, 1);
  memcpy(out->data, all.data, (size_t)n * sizeof(double));
  return 1;
}
static int ref_nonzero(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  int64_t shape[2] = {0, x->ndim};
  int64_t index[kMaxDims];
  double* to;
  for (int64_t i = 0; i < x->n; i++) shape[0] += x->data[i] != 0;
  *out = new_array(shape, 2);
  to = out->data;
  for (int64_t i = 0; i < x->n; i++) {
    if (x->data[i] == 0) continue;
    index_of(x, i, index);
    for (int d = 0; d < x->ndim; d++) *to++ = (double)index[d];
  }
  return 1;
}
static int triangle(const Inputs* in, Array* out, int is_lower) {
  const Array* x = tensor(in, "self");
  const int64_t diagonal = int_arg(in, "diagonal", 0);
  int64_t index[kMaxDims];
  *out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) {
    index_of(x, i, index);
    const int64_t above = index[x->ndim - 1] - index[x->ndim - 2] - diagonal;
    if (is_lower ? above <= 0 : above >= 0) out->data[i] = x->data[i];
  }
  return 1;
}
static int ref_tril(const Inputs* in, Array* out) { return triangle(in, out, 1); }
static int ref_triu(const Inputs* in, Array* out) { return triangle(in, out, 0); }

/* ---- an index per element of the result: gather, take_along_dim ---- */

static int ref_gather(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const Array* positions = tensor(in, "index");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  int64_t index[kMaxDims];
  *out = zeros_like(positions);
  for (int64_t i = 0; i < out->n; i++) {
    index_of(out, i, index);
    index[d] = (int64_t)positions->data[i];
    out->data[i] = x->data[ravel(x, index)];
  }
  return 1;
}
static int ref_take_along_dim(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const Array* positions = tensor(in, "indices");
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  if (!given(in, "dim")) {
    *out = new_array(&positions->n, 1);
    for (int64_t i = 0; i < out->n; i++)
      out->data[i] = x->data[wrap((int64_t)positions->data[i], x->n)];
    return 1;
  }
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  for (int k = 0; k < x->ndim; k++)
    shape[k] = k == d || x->shape[k] == 1 ? positions->shape[k] : x->shape[k];
  *out = new_array(shape, x->ndim);
  for (int64_t i = 0; i < out->n; i++) {
    index_of(out, i, index);
    index[d] = wrap((int64_t)broadcast_value(positions, index, x->ndim), x->shape[d]);
    out->data[i] = broadcast_value(x, index, x->ndim);
  }
  return 1;
}

/* ---- an index per slice of the result: index_select, embedding, one_hot ---- */

static int ref_index_select(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const Array* positions = tensor(in, "index");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  if (x->ndim) shape[d] = positions->n;
  *out = new_array(shape, x->ndim);
  for (int64_t i = 0; i < out->n; i++) {
    index_of(out, i, index);
    if (x->ndim) index[d] = (int64_t)positions->data[index[d]];
    out->data[i] = x->data[ravel(x, index)];
  }
  return 1;
}
/* The shape of positions with one dimension more. */
static Array zeros_behind(const Array* positions, int64_t size) {
  int64_t shape[kMaxDims];
  memcpy(shape, positions->shape, sizeof shape);
  shape[positions->ndim] = size;
  return new_array(shape, positions->ndim + 1);
}
static int ref_embedding(const Inputs* in, Array* out) {
  const Array* weight = tensor(in, "weight");
  const Array* positions = tensor(in, "indices");
  const int64_t width = weight->shape[1];
  *out = zeros_behind(positions, width);
  for (int64_t i = 0; i < out->n; i++) {
    const int64_t row = (int64_t)positions->data[i / width];
    out->data[i] = weight->data[row * width + i % width];
  }
  return 1;
}
static int ref_embedding_renorm(const Inputs* in, Array* out) {
  const Array* positions = tensor(in, "indices");
  const double p = number_arg(in, "norm_type", 2);
  const double bound = number_arg(in, "max_norm", 1);
  *out = copy_of(tensor(in, "self"));
  const int64_t width = out->shape[1];
  for (int64_t i = 0; i < positions->n; i++) {
    double* row = out->data + (int64_t)positions->data[i] * width;
    double sum = 0;
    for (int64_t k = 0; k < width; k++) sum += pow(fabs(row[k]), p);
    const double norm = pow(sum, 1 / p);
    for (int64_t k = 0; norm > bound && k < width; k++) row[k] *= bound / (norm + 1e-7);
  }
  return 1;
}
/* The bag of index i. */
static int64_t bag_of(const Inputs* in, const Array* positions, int64_t i) {
  const Array* offsets = tensor(in, "offsets");
  int64_t bag = -1;
  if (!offsets) return i / positions->shape[1];
  while (bag + 1 < offsets->n && offsets->data[bag + 1] <= (double)i) bag++;
  return bag;
}
static int ref_embedding_bag(const Inputs* in, Array* out) {
  const Array* weight = tensor(in, "weight");
  const Array* positions = tensor(in, "indices");
  const Array* factors = tensor(in, "per_sample_weights");
  const Array* offsets = tensor(in, "offsets");
  const int64_t mode = int_arg(in, "mode", TT_BAGMODE_MEAN);
  const int skips = given(in, "padding_idx") != NULL;
  const int64_t skipped = wrap(int_arg(in, "padding_idx", 0), weight->shape[0]);
  const int64_t width = weight->shape[1];
  const int64_t bags =
      offsets ? offsets->n - flag_arg(in, "include_last_offset") : positions->shape[0];
  const int64_t shape[2] = {bags, width};
  int64_t* counts = new_indices(bags);
  *out = new_array(shape, 2);
  for (int64_t i = 0; i < positions->n; i++) {
    const int64_t row = (int64_t)positions->data[i];
    const int64_t bag = bag_of(in, positions, i);
    if ((skips && row == skipped) || bag >= bags) continue;
    counts[bag]++;
    for (int64_t k = 0; k < width; k++) {
      double* sum = out->data + bag * width + k;
      const double value = weight->data[row * width + k] * (factors ? factors->data[i] : 1);
      if (mode != TT_BAGMODE_MAX) *sum += value;
      else if (counts[bag] == 1 || value > *sum) *sum = value;
    }
  }
  for (int64_t i = 0; mode == TT_BAGMODE_MEAN && i < out->n; i++)
    if (counts[i / width]) out->data[i] /= (double)counts[i / width];
  return 1;
}
static int ref_one_hot(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  int64_t classes = int_arg(in, "num_classes", -1);
  if (classes < 0)
    for (int64_t i = 0; i < x->n; i++)
      if (x->data[i] >= (double)classes) classes = (int64_t)x->data[i] + 1;
  *out = zeros_behind(x, classes);
  for (int64_t i = 0; i < x->n; i++) out->data[i * classes + (int64_t)x->data[i]] = 1;
  return 1;
}

/* ---- an index per element of a source: scatter, scatter_add ---- */

static void scatter_element(double* to, double value, int64_t reduce) {
  if (reduce == TT_SCATTER_ADD) *to += value;
  else if (reduce == TT_SCATTER_MULTIPLY) *to *= value;
  else *to = value;
}
static int scatter(const Inputs* in, Array* out, int64_t reduce) {
  const Array* x = tensor(in, "self");
  const Array* positions = tensor(in, "index");
  const Array* source = tensor(in, "src");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  int64_t index[kMaxDims];
  *out = copy_of(x);
  for (int64_t i = 0; i < positions->n; i++) {
    index_of(positions, i, index);
    const double value = source ? source->data[ravel(source, index)] : number_arg(in, "value", 0);
    index[d] = (int64_t)positions->data[i];
    scatter_element(&out->data[ravel(out, index)], value, reduce);
  }
  return 1;
}
static int ref_scatter(const Inputs* in, Array* out) {
  return scatter(in, out, int_arg(in, "reduce", TT_SCATTER_NONE));
}
static int ref_scatter_add(const Inputs* in, Array* out) {
  return scatter(in, out, TT_SCATTER_ADD);
}

/* ---- an index per slice of a source: index_add, index_copy, index_fill, index_put ---- */

static int ref_index_add(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const Array* positions = tensor(in, "index");
  const Array* source = tensor(in, "source");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  const double alpha = number_arg(in, "alpha", 1);
  int64_t index[kMaxDims];
  *out = copy_of(x);
  for (int64_t i = 0; i < source->n; i++) {
    index_of(source, i, index);
    index[d] = (int64_t)positions->data[index[d]];
    out->data[ravel(out, index)] += alpha * source->data[i];
  }
  return 1;
}
/* The value that index_fill writes, or the element that index_copy takes from slice k of its
   source. */
static double written_value(const Inputs* in, int64_t* index, int64_t d, int64_t k) {
  const Array* source = tensor(in, "source");
  if (tensor(in, "value")) return tensor(in, "value")->data[0];
  if (!source) return number_arg(in, "value", 0);
  if (!source->ndim) return source->data[0];
  index[d] = k;
  return source->data[ravel(source, index)];
}
static int ref_index_write(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const Array* positions = tensor(in, "index");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  int64_t index[kMaxDims] = {0};
  *out = copy_of(x);
  for (int64_t i = 0; i < x->n; i++)
    for (int64_t k = 0; k < positions->n; k++) {
      index_of(x, i, index);
      const int64_t here = x->ndim ? index[d] : 0;
      if (here == wrap((int64_t)positions->data[k], size_of(x, d)))
        out->data[i] = written_value(in, index, d, k);
    }
  return 1;
}
/* Where a mask is true, as positions. */
static Array true_positions(const Array* mask) {
  Array out;
  int64_t n = 0;
  for (int64_t i = 0; i < mask->n; i++) n += mask->data[i] != 0;
  out = new_array(&n, 1);
  n = 0;
  for (int64_t i = 0; i < mask->n; i++)
    if (mask->data[i] != 0) out.data[n++] = (double)i;
  return out;
}
/* Index tensors of one shape for the first dimensions, or one mask of the first dimension. */
static int ref_index_put(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const Array* values = tensor(in, "values");
  const int indexed = in->n_items; /* dimensions */
  const int is_mask = tt_tensor_dtype(in->sample->items[0]) == TT_BOOL;
  Array positions[kMaxItems];
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  int64_t to[kMaxDims];
  for (int k = 0; k < indexed; k++)
    positions[k] = is_mask ? true_positions(&in->items[k]) : in->items[k];
  const int ndim = positions[0].ndim;
  memcpy(shape, positions[0].shape, sizeof shape);
  for (int d = indexed; d < x->ndim; d++) shape[ndim + d - indexed] = x->shape[d];
  const Array written = new_array(shape, ndim + x->ndim - indexed);
  *out = copy_of(x);
  for (int64_t i = 0; i < written.n; i++) {
    const int64_t row = i / (written.n / positions[0].n);
    index_of(&written, i, index);
    for (int d = 0; d < indexed; d++) to[d] = wrap((int64_t)positions[d].data[row], x->shape[d]);
    for (int d = indexed; d < x->ndim; d++) to[d] = index[ndim + d - indexed];
    scatter_element(&out->data[ravel(out, to)], broadcast_value(values, index, written.ndim),
                    flag_arg(in, "accumulate") ? TT_SCATTER_ADD : TT_SCATTER_NONE);
  }
  return 1;
}

/* ---- positions in the flattened array ---- */

static int ref_take(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const Array* index = tensor(in, "index");
  *out = zeros_like(index);
  for (int64_t i = 0; i < index->n; i++)
    out->data[i] = x->data[wrap((int64_t)index->data[i], x->n)];
  return 1;
}
static int ref_put(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const Array* index = tensor(in, "index");
  const Array* source = tensor(in, "source");
  *out = copy_of(x);
  for (int64_t i = 0; i < index->n; i++) {
    double* to = &out->data[wrap((int64_t)index->data[i], x->n)];
    *to = flag_arg(in, "accumulate") ? *to + source->data[i] : source->data[i];
  }
  return 1;
}
static int ref_masked_scatter(const Inputs* in, Array* out) {
  const Array pair[2] = {*tensor(in, "self"), *tensor(in, "mask")};
  const Array* source = tensor(in, "source");
  int64_t index[kMaxDims];
  int64_t next = 0;
  *out = broadcast_zeros(pair, 2);
  for (int64_t i = 0; i < out->n; i++) {
    index_of(out, i, index);
    out->data[i] = broadcast_value(&pair[0], index, out->ndim);
    if (broadcast_value(&pair[1], index, out->ndim) != 0) out->data[i] = source->data[next++];
  }
  return 1;
}
static int ref_nonzero_static(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t size = int_arg(in, "size", 0);
  const int64_t shape[2] = {size, x->ndim};
  Array found;
  ref_nonzero(in, &found);
  *out = new_array(shape, 2);
  fill(out, number_arg(in, "fill_value", -1));
  for (int64_t i = 0; i < out->n && i < found.n; i++) out->data[i] = found.data[i];
  return 1;
}
static int ref_unravel_index(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "indices");
  const tt_value* shape = given(in, "shape");
  int64_t index[kMaxDims];
  for (int64_t d = 0; d < shape->n; d++) outs[d] = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) {
    unravel((int64_t)x->data[i], shape->ints, (int)shape->n, index);
    for (int64_t d = 0; d < shape->n; d++) outs[d].data[i] = (double)index[d];
  }
  return (int)shape->n;
}

/* ---- reductions into positions ---- */

/* What element i of src is combined with: its position in the result. */
static double combined(int64_t kind, double a, double b) {
  if (kind == TT_SCATTERREDUCE_PROD) return a * b;
  if (kind == TT_SCATTERREDUCE_AMAX) return isnan(a) || a > b ? a : b;
  if (kind == TT_SCATTERREDUCE_AMIN) return isnan(a) || a < b ? a : b;
  return a + b;
}
static int reduce_into(const Inputs* in, Array* out, const Array* index, const Array* src,
                       int64_t kind, int by_slice) {
  const Array* x = tensor(in, "self");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  const Array* walked = by_slice ? src : index;
  const Array counts = zeros_like(x);
  const double start = int_arg(in, "include_self", 1);
  int64_t at[kMaxDims] = {0};
  *out = copy_of(x);
  fill((Array*)&counts, start);
  for (int64_t i = 0; i < walked->n; i++) {
    index_of(walked, i, at);
    const double value = src->ndim ? src->data[ravel(src, at)] : src->data[0];
    at[d] = (int64_t)index->data[by_slice ? at[d] : i];
    const int64_t to = x->ndim ? ravel(x, at) : 0;
    out->data[to] = counts.data[to] == 0 ? value : combined(kind, out->data[to], value);
    counts.data[to]++;
  }
  for (int64_t i = 0; kind == TT_SCATTERREDUCE_MEAN && i < out->n; i++) {
    if (counts.data[i] == 0) continue;
    out->data[i] /= counts.data[i];
    if (in->integral) out->data[i] = floor(out->data[i]);
  }
  return 1;
}
static int ref_scatter_reduce(const Inputs* in, Array* out) {
  const int64_t kind = int_arg(in, "reduce", 0);
  return reduce_into(in, out, tensor(in, "index"), tensor(in, "src"), kind, 0);
}
static int ref_index_reduce(const Inputs* in, Array* out) {
  const int64_t kind = int_arg(in, "reduce", 0) + TT_SCATTERREDUCE_PROD;
  return reduce_into(in, out, tensor(in, "index"), tensor(in, "source"), kind, 1);
}

static const Reference kIndex[] = {
    {"where", .elementwise = ref_where, .exact = 1},
    {"masked_fill", .elementwise = ref_masked_fill, .exact = 1},
    {"masked_select", .whole = ref_masked_select, .exact = 1},
    {"nonzero", .whole = ref_nonzero, .exact = 1},
    {"tril", .whole = ref_tril, .exact = 1},
    {"triu", .whole = ref_triu, .exact = 1},
    {"gather", .whole = ref_gather, .exact = 1},
    {"take_along_dim", .whole = ref_take_along_dim, .exact = 1},
    {"index_select", .whole = ref_index_select, .exact = 1},
    {"embedding", .whole = ref_embedding, .exact = 1},
    {"embedding_renorm_", .whole = ref_embedding_renorm},
    {"embedding_bag", .whole = ref_embedding_bag},
    {"one_hot", .whole = ref_one_hot, .exact = 1},
    {"scatter", .whole = ref_scatter, .exact = 1},
    {"scatter_add", .whole = ref_scatter_add, .exact = kExactWide},
    {"index_add", .whole = ref_index_add, .exact = kExactWide},
    {"index_copy", .whole = ref_index_write, .exact = 1},
    {"index_fill", .whole = ref_index_write, .exact = 1},
    {"index_put", .whole = ref_index_put, .exact = 1},
    {"take", .whole = ref_take, .exact = 1},
    {"put", .whole = ref_put, .exact = 1},
    {"masked_scatter", .whole = ref_masked_scatter, .exact = 1},
    {"nonzero_static", .whole = ref_nonzero_static, .exact = 1},
    {"unravel_index", .whole = ref_unravel_index, .exact = 1},
    {"argwhere", .whole = ref_nonzero, .exact = 1},
    {"scatter_reduce", .whole = ref_scatter_reduce},
    {"index_reduce", .whole = ref_index_reduce},
};
