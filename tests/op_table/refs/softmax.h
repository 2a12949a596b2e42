/* References of softmax. */

/* exp(x) divided by its sum over dimension d, or the logarithm of that. */
static Array softmax_of(const Array* x, int64_t d, int logarithm) {
  const int64_t inner = inner_size(x, d);
  const int64_t size = size_of(x, d);
  Array out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) {
    const double* row = x->data + i / (inner * size) * inner * size + i % inner;
    double top = -INFINITY;
    double sum = 0;
    for (int64_t k = 0; k < size; k++) top = fmax(top, row[k * inner]);
    for (int64_t k = 0; k < size; k++) sum += exp(row[k * inner] - top);
    out.data[i] = logarithm ? x->data[i] - top - log(sum) : exp(x->data[i] - top) / sum;
  }
  return out;
}
static int ref_softmax(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  *out = softmax_of(x, dim_arg(in, "dim", 0, x->ndim), 0);
  return 1;
}
static int ref_log_softmax(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  *out = softmax_of(x, dim_arg(in, "dim", 0, x->ndim), 1);
  return 1;
}
static int ref_softmin(const Inputs* in, Array* out) {
  const Array x = negated(tensor(in, "input"));
  *out = softmax_of(&x, dim_arg(in, "dim", 0, x.ndim), 0);
  return 1;
}

static const Reference kSoftmax[] = {
    {"softmax", .whole = ref_softmax},
    {"log_softmax", .whole = ref_log_softmax},
    {"softmin", .whole = ref_softmin},
};
