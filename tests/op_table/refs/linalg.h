/* References of linear algebra. */

/* Rotates the columns a and b of m numbers so that they become orthogonal. */
static void make_orthogonal(long double* a, long double* b, int64_t m) {
  long double aa = 0;
  long double bb = 0;
  long double ab = 0;
  for (int64_t i = 0; i < m; i++) {
    aa += a[i] * a[i];
    bb += b[i] * b[i];
    ab += a[i] * b[i];
  }
  if (ab == 0) return;
  const long double zeta = (bb - aa) / (2 * ab);
  const long double tangent = (zeta < 0 ? -1 : 1) / (fabsl(zeta) + sqrtl(1 + zeta * zeta));
  const long double cosine = 1 / sqrtl(1 + tangent * tangent);
  for (int64_t i = 0; i < m; i++) {
    const long double u = a[i];
    const long double v = b[i];
    a[i] = cosine * (u - tangent * v);
    b[i] = cosine * (tangent * u + v);
  }
}
/* The sum of the singular values of n columns of m numbers, by one-sided Jacobi rotations. */
static long double singular_sum(long double* columns, int64_t m, int64_t n) {
  long double sum = 0;
  for (int sweep = 0; sweep < 40; sweep++)
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) make_orthogonal(columns + p * m, columns + q * m, m);
  for (int64_t p = 0; p < n; p++) {
    long double square = 0;
    for (int64_t i = 0; i < m; i++) square += columns[p * m + i] * columns[p * m + i];
    sum += sqrtl(square);
  }
  return sum;
}
static int ref_nuclear_norm(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const tt_value* dim = given(in, "dim");
  const int dims_given = dim && dim->n == 2;
  const int64_t first = dims_given ? wrap(dim->ints[0], x->ndim) : 0;
  const int64_t second = dims_given ? wrap(dim->ints[1], x->ndim) : 1;
  const unsigned mask = 1u << first | 1u << second;
  const int64_t narrow = x->shape[first] > x->shape[second] ? second : first;
  const int64_t wide = narrow == first ? second : first;
  const int64_t m = x->shape[wide];
  const int64_t n = x->shape[narrow];
  long double* columns = scratch((size_t)(m * n) * sizeof *columns);
  Array norms = reduced_zeros(x, mask, 1);
  for (int64_t i = 0; i < norms.n; i++) {
    int64_t index[kMaxDims];
    index_of(&norms, i, index);
    for (int64_t j = 0; j < m * n; j++) {
      index[wide] = j % m;
      index[narrow] = j / m;
      columns[j] = x->data[ravel(x, index)];
    }
    norms.data[i] = (double)singular_sum(columns, m, n);
  }
  *out = reduced_zeros(x, mask, flag_arg(in, "keepdim"));
  memcpy(out->data, norms.data, (size_t)out->n * sizeof *out->data);
  return 1;
}

static const Reference kLinalg[] = {
    {"nuclear_norm", .whole = ref_nuclear_norm},
};
