/* References of norms and scans. Included by refs.c. */

static int r_cumprod(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const int64_t d = wrap(int_arg(in, "dim", 0), x->ndim);
  int64_t i, idx[kMaxDims];
  *out = same_order(x, x->shape, x->ndim);
  for (i = 0; x->ndim && i < x->n; i++) {
    unravel(i, x->shape, x->ndim, idx);
    if (idx[d]-- > 0) out->v[i] *= out->v[ravel(out, idx)];
  }
  return 1;
}

static int r_norm(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const unsigned mask = reduced_dims(in, x);
  const double p = number_arg(in, "p", 2);
  int64_t i;
  *out = reduced_shape(x, mask, (int)int_arg(in, "keepdim", 0));
  for (i = 0; i < out->n; i++) out->v[i] = p == -INFINITY ? INFINITY : 0;
  for (i = 0; i < x->n; i++) {
    double* o = &out->v[reduced_at(x, i, mask)];
    double a = fabs(x->v[i]);
    if (isinf(p)) *o = isnan(a) || isnan(*o) ? NAN : p > 0 ? fmax(*o, a) : fmin(*o, a);
    else *o += p == 0 ? a != 0 : pow(a, p);
  }
  for (i = 0; i < out->n; i++)
    if (!isinf(p) && p != 0) out->v[i] = pow(out->v[i], 1 / p);
  return 1;
}

/* The sum of the singular values of x, columns of m numbers, which become orthogonal: one-sided
 * Jacobi. */
static long double singular_sum(long double* x, int64_t m, int64_t n) {
  long double sum = 0;
  int64_t i, p, q;
  int turn;
  for (turn = 0; turn < 40; turn++)
    for (p = 0; p < n; p++)
      for (q = p + 1; q < n; q++) {
        long double* a = x + p * m;
        long double* b = x + q * m;
        long double aa = 0;
        long double bb = 0;
        long double ab = 0;
        long double z;
        long double t;
        long double cosine;
        for (i = 0; i < m; i++) {
          aa += a[i] * a[i];
          bb += b[i] * b[i];
          ab += a[i] * b[i];
        }
        if (ab == 0) continue;
        z = (bb - aa) / (2 * ab);
        t = (z < 0 ? -1 : 1) / (fabsl(z) + sqrtl(1 + z * z));
        cosine = 1 / sqrtl(1 + t * t);
        for (i = 0; i < m; i++) {
          const long double u = a[i];
          const long double v = b[i];
          a[i] = cosine * (u - t * v);
          b[i] = cosine * (t * u + v);
        }
      }
  for (p = 0; p < n; p++) {
    long double square = 0;
    for (i = 0; i < m; i++) square += x[p * m + i] * x[p * m + i];
    sum += sqrtl(square);
  }
  return sum;
}
static int r_nuclear_norm(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const tt_value* dim = &in->sample->args[row_arg(in->sample->row, "dim")];
  const int given = dim->tag == TT_VAL_INTS && dim->n == 2;
  const int64_t rows = given ? wrap(dim->ints[0], x->ndim) : 0;
  const int64_t columns = given ? wrap(dim->ints[1], x->ndim) : 1;
  const unsigned mask = 1u << rows | 1u << columns;
  const int64_t m = x->shape[rows];
  const int64_t n = x->shape[columns];
  long double* matrix = malloc((size_t)(m * n + 1) * sizeof *matrix);
  int64_t i, j, idx[kMaxDims];
  *out = reduced_shape(x, mask, 1);
  for (i = 0; i < out->n; i++) {
    unravel(i, out->shape, out->ndim, idx);
    for (j = 0; j < m * n; j++) {
      idx[rows] = j % m;
      idx[columns] = j / m;
      matrix[j] = x->v[ravel(x, idx)];
    }
    out->v[i] = (double)(m > n ? singular_sum(matrix, m, n) : 0);
    if (m > n) continue;
    for (j = 0; j < m * n; j++) {
      idx[rows] = j / n;
      idx[columns] = j % n;
      matrix[j] = x->v[ravel(x, idx)];
    }
    out->v[i] = (double)singular_sum(matrix, n, m);
  }
  free(matrix);
  if (!int_arg(in, "keepdim", 0)) {
    const Arr kept = *out;
    *out = reduced_shape(x, mask, 0);
    memcpy(out->v, kept.v, (size_t)out->n * sizeof *out->v);
  }
  return 1;
}

static int r_argmin(const Inputs* in, Arr* outs) {
  Arr both[2];
  Inputs turned = *in;
  Arr x = *tensor(in, "self");
  int64_t i;
  x = same_order(&x, x.shape, x.ndim);
  for (i = 0; i < x.n; i++) x.v[i] = -x.v[i];
  turned.t[row_arg(in->sample->row, "self")] = x;
  extremes(&turned, &both[0], &both[1]);
  outs[0] = both[1];
  return 1;
}

#define FOLD_REFS                                                                               \
  {"cumprod", 0, r_cumprod, 0}, {"norm", 0, r_norm, 0}, {"nuclear_norm", 0, r_nuclear_norm, 0}, \
      {"argmin", 0, r_argmin, 1},
