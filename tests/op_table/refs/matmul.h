/* References of matrix products. */

static Array transposed(const Array* a) { /* the last two dimensions */
  const int last = a->ndim - 1;
  int64_t shape[kMaxDims];
  memcpy(shape, a->shape, sizeof shape);
  shape[last] = a->shape[last - 1];
  shape[last - 1] = a->shape[last];
  Array out = new_array(shape, a->ndim);
  for (int64_t i = 0; i < a->n; i++) {
    int64_t index[kMaxDims];
    index_of(a, i, index);
    const int64_t column = index[last];
    index[last] = index[last - 1];
    index[last - 1] = column;
    out.data[ravel(&out, index)] = a->data[i];
  }
  return out;
}

/* (m, k) times (k, n); *out starts at zero. */
static void multiply_matrices(const double* x, const double* y, int64_t m, int64_t k, int64_t n,
                              double* out) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++)
      for (int64_t l = 0; l < k; l++) out[i * n + j] += x[i * k + l] * y[l * n + j];
}
/* As torch.matmul: a vector is a row on the left and a column on the right, and the dimensions in
   front are broadcast. */
static Array product(Array a, Array b) {
  const int row = a.ndim == 1;
  const int column = b.ndim == 1;
  if (row) {
    a.shape[1] = a.shape[0];
    a.shape[0] = 1;
    a.ndim = 2;
  }
  if (column) {
    b.shape[1] = 1;
    b.ndim = 2;
  }
  const int64_t m = a.shape[a.ndim - 2];
  const int64_t k = a.shape[a.ndim - 1];
  const int64_t n = b.shape[b.ndim - 1];
  Array batches[2] = {new_array(a.shape, a.ndim - 2), new_array(b.shape, b.ndim - 2)};
  const Array batch = broadcast_zeros(batches, 2);
  int64_t shape[kMaxDims];
  int ndim = batch.ndim;
  memcpy(shape, batch.shape, sizeof shape);
  if (!row) shape[ndim++] = m;
  if (!column) shape[ndim++] = n;
  Array out = new_array(shape, ndim);
  for (int64_t i = 0; i < batches[0].n; i++) batches[0].data[i] = (double)i;
  for (int64_t i = 0; i < batches[1].n; i++) batches[1].data[i] = (double)i;
  for (int64_t i = 0; i < batch.n; i++) {
    int64_t index[kMaxDims];
    index_of(&batch, i, index);
    const int64_t matrix_of_a = (int64_t)broadcast_value(&batches[0], index, batch.ndim);
    const int64_t matrix_of_b = (int64_t)broadcast_value(&batches[1], index, batch.ndim);
    multiply_matrices(a.data + matrix_of_a * m * k, b.data + matrix_of_b * k * n, m, k, n,
                      out.data + i * m * n);
  }
  return out;
}
static int ref_matmul(const Inputs* in, Array* out) {
  *out = product(in->tensors[0], in->tensors[1]);
  return 1;
}
static int ref_outer(const Inputs* in, Array* out) {
  const Array* a = tensor(in, "self");
  const Array* b = tensor(in, "vec2");
  const int64_t shape[] = {a->n, b->n};
  *out = new_array(shape, 2);
  for (int64_t i = 0; i < out->n; i++) out->data[i] = a->data[i / b->n] * b->data[i % b->n];
  return 1;
}
static int ref_bilinear(const Inputs* in, Array* out) {
  const Array* x1 = tensor(in, "input1");
  const Array* x2 = tensor(in, "input2");
  const Array* weight = tensor(in, "weight");
  const Array* bias = tensor(in, "bias");
  const int64_t n1 = weight->shape[1];
  const int64_t n2 = weight->shape[2];
  int64_t shape[kMaxDims];
  memcpy(shape, x1->shape, sizeof shape);
  shape[x1->ndim - 1] = weight->shape[0];
  *out = new_array(shape, x1->ndim);
  for (int64_t i = 0; i < out->n; i++) {
    const int64_t row = i / weight->shape[0];
    const int64_t feature = i % weight->shape[0];
    out->data[i] = bias ? bias->data[feature] : 0;
    for (int64_t k = 0; k < n1 * n2; k++)
      out->data[i] += x1->data[row * n1 + k / n2] * weight->data[feature * n1 * n2 + k] *
                      x2->data[row * n2 + k % n2];
  }
  return 1;
}
static int ref_linear(const Inputs* in, Array* out) {
  const Array* weight = tensor(in, "weight");
  const Array* bias = tensor(in, "bias");
  *out = product(*tensor(in, "input"), weight->ndim == 1 ? *weight : transposed(weight));
  for (int64_t i = 0; bias && i < out->n; i++) out->data[i] += bias->data[i % bias->n];
  return 1;
}

/* alpha and beta, cut to integers for tensors of integers */
static double factor_arg(const Inputs* in, const char* name) {
  const double factor = number_arg(in, name, 1);
  return in->integral ? trunc(factor) : factor;
}
static int add_product(const Inputs* in, const char* a, const char* b, Array* out) {
  const Array* self = tensor(in, "self");
  const double alpha = factor_arg(in, "alpha");
  const double beta = factor_arg(in, "beta");
  *out = product(*tensor(in, a), *tensor(in, b));
  for (int64_t i = 0; i < out->n; i++) {
    int64_t index[kMaxDims];
    index_of(out, i, index);
    const double added = beta != 0 ? beta * broadcast_value(self, index, out->ndim) : 0;
    out->data[i] = alpha * out->data[i] + added;
  }
  return 1;
}
static int ref_addmm(const Inputs* in, Array* out) { return add_product(in, "mat1", "mat2", out); }
static int ref_baddbmm(const Inputs* in, Array* out) {
  return add_product(in, "batch1", "batch2", out);
}

/* ---- einsum: the sum over all values of all labels, straight from the definition ---- */

typedef struct Einsum {
  char operands[kMaxItems][kMaxDims + 1]; /* a label per dimension */
  char result[64];
  char all[64];      /* every label of an operand once */
  int64_t size[128]; /* of the dimensions with that label */
  int ellipsis; /* dimensions of the longest ellipsis, whose labels are digits: 0 is the last */
} Einsum;

static int is_end_of_operand(char c) { return c == 0 || c == ',' || c == '-'; }
static int count_letters(const char* text) {
  int letters = 0;
  for (; !is_end_of_operand(*text); text++) letters += *text != '.' && *text != ' ';
  return letters;
}
/* The labels of one operand of ndim dimensions. Returns the end of its text. */
static const char* read_labels(const char* text, int ndim, char* labels) {
  const int letters = count_letters(text);
  for (; !is_end_of_operand(*text); text++) {
    if (*text == ' ') continue;
    if (*text != '.') {
      *labels++ = *text;
      continue;
    }
    for (int k = ndim - letters - 1; k >= 0; k--) *labels++ = (char)('0' + k);
    text += 2;
  }
  *labels = 0;
  return text;
}
static void add_label(char* labels, char label) {
  const size_t n = strlen(labels);
  labels[n] = label;
  labels[n + 1] = 0;
}
static void read_operand(Einsum* e, const char* labels, const Array* x) {
  for (int d = 0; d < x->ndim; d++) {
    const char label = labels[d];
    if (x->shape[d] != 1) e->size[(int)label] = x->shape[d];
    if (label >= '0' && label <= '9' && label - '0' >= e->ellipsis) e->ellipsis = label - '0' + 1;
    if (!strchr(e->all, label)) add_label(e->all, label);
  }
}
/* Without an arrow the result has the ellipsis and the labels that occur once, in alphabetical
   order. */
static void infer_result(Einsum* e, int n_operands) {
  for (int k = e->ellipsis - 1; k >= 0; k--) add_label(e->result, (char)('0' + k));
  for (char label = 'A'; label <= 'z'; label++) {
    int times = 0;
    for (int k = 0; k < n_operands; k++)
      for (int d = 0; e->operands[k][d]; d++) times += e->operands[k][d] == label;
    if (times == 1) add_label(e->result, label);
  }
}
static Einsum parse_einsum(const Inputs* in) {
  const char* text = given(in, "equation")->str;
  Einsum e = {.ellipsis = 0};
  for (int label = 0; label < 128; label++) e.size[label] = 1;
  for (int k = 0; k < in->n_items; k++) {
    text = read_labels(text, in->items[k].ndim, e.operands[k]);
    if (*text == ',') text++;
    read_operand(&e, e.operands[k], &in->items[k]);
  }
  if (*text == '-') read_labels(text + 2, count_letters(text + 2) + e.ellipsis, e.result);
  else infer_result(&e, in->n_items);
  return e;
}
/* The position in x of the values that the labels of `all` have. */
static int64_t position_of(const Einsum* e, const char* labels, const Array* x,
                           const int64_t* values) {
  int64_t at = 0;
  for (int d = 0; d < x->ndim; d++) {
    const int64_t value = x->shape[d] == 1 ? 0 : values[strchr(e->all, labels[d]) - e->all];
    at = at * x->shape[d] + value;
  }
  return at;
}
static int ref_einsum(const Inputs* in, Array* out) {
  const Einsum e = parse_einsum(in);
  const int labels = (int)strlen(e.all);
  int64_t shape[64];
  int64_t values[64];
  int64_t total = 1;
  for (int d = 0; e.result[d]; d++) shape[d] = e.size[(int)e.result[d]];
  *out = new_array(shape, (int)strlen(e.result));
  for (int d = 0; d < labels; d++) {
    shape[d] = e.size[(int)e.all[d]];
    total *= shape[d];
  }
  for (int64_t i = 0; i < total; i++) {
    double term = 1;
    unravel(i, shape, labels, values);
    for (int k = 0; k < in->n_items; k++)
      term *= in->items[k].data[position_of(&e, e.operands[k], &in->items[k], values)];
    out->data[position_of(&e, e.result, out, values)] += term;
  }
  return 1;
}

/* ---- other forms ---- */

static int ref_addmv(const Inputs* in, Array* out) { return add_product(in, "mat", "vec", out); }
static int ref_addr(const Inputs* in, Array* out) {
  const Array* self = tensor(in, "self");
  const Array* a = tensor(in, "vec1");
  const Array* b = tensor(in, "vec2");
  const int64_t shape[] = {a->n, b->n};
  const double alpha = factor_arg(in, "alpha");
  const double beta = factor_arg(in, "beta");
  *out = new_array(shape, 2);
  for (int64_t i = 0; i < out->n; i++) {
    int64_t index[kMaxDims];
    index_of(out, i, index);
    out->data[i] = alpha * a->data[index[0]] * b->data[index[1]];
    if (beta != 0) out->data[i] += beta * broadcast_value(self, index, 2);
  }
  return 1;
}
static int ref_addbmm(const Inputs* in, Array* out) {
  const Array* self = tensor(in, "self");
  const Array products = product(*tensor(in, "batch1"), *tensor(in, "batch2"));
  const double alpha = factor_arg(in, "alpha");
  const double beta = factor_arg(in, "beta");
  *out = new_array(products.shape + 1, 2);
  for (int64_t i = 0; i < products.n; i++) out->data[i % out->n] += alpha * products.data[i];
  for (int64_t i = 0; beta != 0 && i < out->n; i++) {
    int64_t index[kMaxDims];
    index_of(out, i, index);
    out->data[i] += beta * broadcast_value(self, index, 2);
  }
  return 1;
}
/* Over all indices of both operands: those of the summed dimensions must be equal, or the size 1.
   */
static Array contracted(const Array* a, const Array* b, const int64_t* of_a, const int64_t* of_b,
                        int64_t n) {
  int64_t shape[2 * kMaxDims];
  int64_t ia[kMaxDims];
  int64_t ib[kMaxDims];
  int ndim = 0;
  unsigned summed_a = 0;
  unsigned summed_b = 0;
  for (int64_t k = 0; k < n; k++) {
    summed_a |= 1u << wrap(of_a[k], a->ndim);
    summed_b |= 1u << wrap(of_b[k], b->ndim);
  }
  for (int d = 0; d < a->ndim; d++)
    if (!is_reduced(summed_a, d)) shape[ndim++] = a->shape[d];
  for (int d = 0; d < b->ndim; d++)
    if (!is_reduced(summed_b, d)) shape[ndim++] = b->shape[d];
  Array out = new_array(shape, ndim);
  for (int64_t i = 0; i < a->n; i++)
    for (int64_t j = 0; j < b->n; j++) {
      int meets = 1;
      int64_t at = 0;
      index_of(a, i, ia);
      index_of(b, j, ib);
      for (int64_t k = 0; k < n; k++) {
        const int64_t da = wrap(of_a[k], a->ndim);
        const int64_t db = wrap(of_b[k], b->ndim);
        meets &= a->shape[da] == 1 || b->shape[db] == 1 || ia[da] == ib[db];
      }
      for (int d = 0; d < a->ndim; d++)
        if (!is_reduced(summed_a, d)) at = at * a->shape[d] + ia[d];
      for (int d = 0; d < b->ndim; d++)
        if (!is_reduced(summed_b, d)) at = at * b->shape[d] + ib[d];
      if (meets) out.data[at] += a->data[i] * b->data[j];
    }
  return out;
}
static int ref_tensordot(const Inputs* in, Array* out) {
  const tt_value* of_self = given(in, "dims_self");
  *out = contracted(tensor(in, "self"), tensor(in, "other"), of_self->ints,
                    given(in, "dims_other")->ints, of_self->n);
  return 1;
}
static int ref_inner(const Inputs* in, Array* out) {
  const Array* a = tensor(in, "self");
  const Array* b = tensor(in, "other");
  const int64_t last = -1;
  *out = contracted(a, b, &last, &last, a->ndim && b->ndim);
  return 1;
}
static int ref_kron(const Inputs* in, Array* out) {
  const Array* a = tensor(in, "self");
  const Array* b = tensor(in, "other");
  const int ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  int64_t ia[kMaxDims];
  int64_t ib[kMaxDims];
  int64_t sizes_b[kMaxDims];
  for (int d = 0; d < ndim; d++) {
    const int of_a = d - (ndim - a->ndim);
    const int of_b = d - (ndim - b->ndim);
    sizes_b[d] = of_b < 0 ? 1 : b->shape[of_b];
    shape[d] = (of_a < 0 ? 1 : a->shape[of_a]) * sizes_b[d];
  }
  *out = new_array(shape, ndim);
  for (int64_t i = 0; i < out->n; i++) {
    index_of(out, i, index);
    for (int d = 0; d < ndim; d++) {
      ia[d] = index[d] / sizes_b[d];
      ib[d] = index[d] % sizes_b[d];
    }
    out->data[i] = broadcast_value(a, ia, ndim) * broadcast_value(b, ib, ndim);
  }
  return 1;
}
static int ref_cross(const Inputs* in, Array* out) {
  const Array pair[2] = {*tensor(in, "self"), *tensor(in, "other")};
  int64_t d = 0;
  int64_t index[kMaxDims];
  if (given(in, "dim")) d = dim_arg(in, "dim", 0, pair[0].ndim);
  else
    while (pair[0].shape[d] != 3) d++;
  *out = broadcast_zeros(pair, 2);
  for (int64_t i = 0; i < out->n; i++) {
    index_of(out, i, index);
    const int64_t j = (index[d] + 1) % 3;
    const int64_t k = (index[d] + 2) % 3;
    index[d] = j;
    const double aj = broadcast_value(&pair[0], index, out->ndim);
    const double bj = broadcast_value(&pair[1], index, out->ndim);
    index[d] = k;
    const double ak = broadcast_value(&pair[0], index, out->ndim);
    const double bk = broadcast_value(&pair[1], index, out->ndim);
    out->data[i] = aj * bk - ak * bj;
  }
  return 1;
}
static int ref_chain_matmul(const Inputs* in, Array* out) {
  *out = in->items[0];
  for (int k = 1; k < in->n_items; k++) *out = product(*out, in->items[k]);
  return 1;
}

static const Reference kMatmul[] = {
    {"matmul", .whole = ref_matmul},       {"mm", .whole = ref_matmul},
    {"bmm", .whole = ref_matmul},          {"mv", .whole = ref_matmul},
    {"dot", .whole = ref_matmul},          {"outer", .whole = ref_outer, .exact = 1},
    {"linear", .whole = ref_linear},       {"bilinear", .whole = ref_bilinear},
    {"addmm", .whole = ref_addmm},         {"baddbmm", .whole = ref_baddbmm},
    {"einsum", .whole = ref_einsum},       {"addmv", .whole = ref_addmv},
    {"addr", .whole = ref_addr},           {"addbmm", .whole = ref_addbmm},
    {"vdot", .whole = ref_matmul},         {"inner", .whole = ref_inner},
    {"tensordot", .whole = ref_tensordot}, {"kron", .whole = ref_kron, .exact = 1},
    {"cross", .whole = ref_cross},         {"chain_matmul", .whole = ref_chain_matmul},
};
