/* Arrays of doubles and the arguments of a sample: what the references share. */

/* ---- arrays ---- */

static Array new_array(const int64_t* shape, int ndim) { /* of zeros */
  Array a = {.ndim = ndim, .n = 1};
  for (int d = 0; d < ndim; d++) {
    a.shape[d] = shape[d];
    a.n *= shape[d];
  }
  a.data = scratch((size_t)a.n * sizeof(double));
  return a;
}
static Array zeros_like(const Array* x) { return new_array(x->shape, x->ndim); }
static Array zero_dim(double value) {
  Array a = new_array(NULL, 0);
  a.data[0] = value;
  return a;
}
/* The elements of x, in the same order, in another shape. */
static Array reshaped(const Array* x, const int64_t* shape, int ndim) {
  Array out = new_array(shape, ndim);
  memcpy(out.data, x->data, (size_t)x->n * sizeof(double));
  return out;
}
static Array copy_of(const Array* x) { return reshaped(x, x->shape, x->ndim); }
static Array negated(const Array* x) {
  Array out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) out.data[i] = -x->data[i];
  return out;
}
static void fill(Array* x, double value) {
  for (int64_t i = 0; i < x->n; i++) x->data[i] = value;
}
static int64_t* new_indices(int64_t n) { return scratch((size_t)n * sizeof(int64_t)); }

/* ---- indices ---- */

/* The index of element i of an array of that shape. */
static void unravel(int64_t i, const int64_t* shape, int ndim, int64_t* index) {
  for (int d = ndim - 1; d >= 0; d--) {
    index[d] = i % shape[d];
    i /= shape[d];
  }
}
static void index_of(const Array* a, int64_t i, int64_t* index) {
  unravel(i, a->shape, a->ndim, index);
}
static int64_t ravel(const Array* a, const int64_t* index) {
  int64_t at = 0;
  for (int d = 0; d < a->ndim; d++) at = at * a->shape[d] + index[d];
  return at;
}
/* The element of a at an index of the ndim dimensions to which a is broadcast. */
static double broadcast_value(const Array* a, const int64_t* index, int ndim) {
  int64_t at = 0;
  for (int d = 0; d < a->ndim; d++) {
    const int64_t own = a->shape[d] == 1 ? 0 : index[ndim - a->ndim + d];
    at = at * a->shape[d] + own;
  }
  return a->data[at];
}
/* Zeros of the shape to which n arrays are broadcast. */
static Array broadcast_zeros(const Array* arrays, int n) {
  int64_t shape[kMaxDims];
  int ndim = 0;
  for (int k = 0; k < n; k++)
    if (arrays[k].ndim > ndim) ndim = arrays[k].ndim;
  for (int d = 0; d < ndim; d++) shape[d] = 1;
  for (int k = 0; k < n; k++)
    for (int d = 0; d < arrays[k].ndim; d++)
      if (arrays[k].shape[d] != 1) shape[ndim - arrays[k].ndim + d] = arrays[k].shape[d];
  return new_array(shape, ndim);
}
/* A dimension, or a position among n, that may count from the end. */
static int64_t wrap(int64_t d, int64_t n) {
  if (d >= 0) return d;
  return d + (n ? n : 1);
}
/* The size of dimension d; an array without dimensions has one element in each. */
static int64_t size_of(const Array* x, int64_t d) { return x->ndim ? x->shape[d] : 1; }
/* The number of elements behind one index of dimension d. */
static int64_t inner_size(const Array* x, int64_t d) {
  int64_t inner = 1;
  for (d++; d < x->ndim; d++) inner *= x->shape[d];
  return inner;
}

/* ---- arguments ---- */

static int has(const Inputs* in, const char* name) {
  for (int i = 0; i < in->sample->row->n_args; i++)
    if (strcmp(in->sample->row->args[i].name, name) == 0) return 1;
  return 0;
}
/* NULL if the operator has no such argument, or the sample does not give it. */
static const tt_value* given(const Inputs* in, const char* name) {
  if (!has(in, name)) return NULL;
  const tt_value* v = &in->sample->args[row_arg(in->sample->row, name)];
  return v->tag == TT_VAL_NONE ? NULL : v;
}
static double number_arg(const Inputs* in, const char* name, double otherwise) {
  const tt_value* v = given(in, name);
  if (!v) return otherwise;
  if (v->tag == TT_VAL_FLOAT) return v->f;
  if (v->tag != TT_VAL_SCALAR) return (double)v->i;
  return v->scalar.kind == TT_SCALAR_INT ? (double)v->scalar.i : v->scalar.re;
}
static int64_t int_arg(const Inputs* in, const char* name, int64_t otherwise) {
  return (int64_t)number_arg(in, name, (double)otherwise);
}
static int flag_arg(const Inputs* in, const char* name) { return int_arg(in, name, 0) != 0; }
static int64_t dim_arg(const Inputs* in, const char* name, int64_t otherwise, int ndim) {
  return wrap(int_arg(in, name, otherwise), ndim);
}
/* NULL as given() is. */
static const Array* tensor(const Inputs* in, const char* name) {
  if (!has(in, name)) return NULL;
  const Array* a = &in->tensors[row_arg(in->sample->row, name)];
  return a->data ? a : NULL;
}
static tt_dtype dtype_of(const Inputs* in, const char* name) {
  return tt_tensor_dtype(in->sample->args[row_arg(in->sample->row, name)].tensor);
}
