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

/* ---- batches of matrices ---- */

/* Zeros with the batch of x and up to two more sizes. */
static Array batch_zeros(const Array* x, int n_more, int64_t first, int64_t second) {
  int64_t shape[kMaxDims];
  const int ndim = x->ndim - 2;
  memcpy(shape, x->shape, sizeof shape);
  if (n_more > 0) shape[ndim] = first;
  if (n_more > 1) shape[ndim + 1] = second;
  return new_array(shape, ndim + n_more);
}
static int64_t rows_of(const Array* x) { return x->shape[x->ndim - 2]; }
static int64_t columns_of(const Array* x) { return x->shape[x->ndim - 1]; }
static int64_t batch_count(const Array* x) {
  int64_t n = 1;
  for (int d = 0; d < x->ndim - 2; d++) n *= x->shape[d];
  return n;
}
static double* matrix_at(const Array* x, int64_t i) {
  return x->data + i * rows_of(x) * columns_of(x);
}
static Array transpose_of(const Array* x) {
  const int64_t m = rows_of(x);
  const int64_t n = columns_of(x);
  Array out = batch_zeros(x, 2, n, m);
  for (int64_t i = 0; i < out.n; i++) {
    const int64_t at = i % (m * n);
    out.data[i] = x->data[i - at + at % m * n + at / m];
  }
  return out;
}
static Array identity_like(const Array* x, int64_t m, int64_t n) {
  Array out = batch_zeros(x, 2, m, n);
  for (int64_t i = 0; i < out.n; i++) out.data[i] = i / n % m == i % n;
  return out;
}
/* Products of matrices; the batches broadcast. */
static Array times(const Array* a, const Array* b) {
  const int64_t k = columns_of(a);
  Array batches[2] = {*a, *b};
  for (int i = 0; i < 2; i++) {
    batches[i].shape[batches[i].ndim - 1] = 1;
    batches[i].shape[batches[i].ndim - 2] = 1;
  }
  Array out = broadcast_zeros(batches, 2);
  out.shape[out.ndim - 2] = rows_of(a);
  out.shape[out.ndim - 1] = columns_of(b);
  out = new_array(out.shape, out.ndim);
  for (int64_t i = 0; i < out.n; i++) {
    int64_t index[kMaxDims];
    int64_t other[kMaxDims];
    long double sum = 0;
    index_of(&out, i, index);
    memcpy(other, index, sizeof other);
    for (int64_t j = 0; j < k; j++) {
      index[out.ndim - 1] = j;
      other[out.ndim - 2] = j;
      sum += (long double)broadcast_value(a, index, out.ndim) * broadcast_value(b, other, out.ndim);
    }
    out.data[i] = (double)sum;
  }
  return out;
}

/* ---- factors ---- */

/* Replaces a (m, n) by L and U. Returns the sign of the permutation. */
static int factor_lu(double* a, int64_t m, int64_t n, double* pivots, double* info) {
  int sign = 1;
  for (int64_t k = 0; k < m && k < n; k++) {
    int64_t best = k;
    for (int64_t i = k + 1; i < m; i++)
      if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
    pivots[k] = (double)best + 1;
    for (int64_t j = 0; best != k && j < n; j++) {
      const double t = a[k * n + j];
      a[k * n + j] = a[best * n + j];
      a[best * n + j] = t;
    }
    if (best != k) sign = -sign;
    if (a[k * n + k] == 0) {
      if (*info == 0) *info = (double)k + 1;
      continue;
    }
    for (int64_t i = k + 1; i < m; i++) {
      a[i * n + k] /= a[k * n + k];
      for (int64_t j = k + 1; j < n; j++) a[i * n + j] -= a[i * n + k] * a[k * n + j];
    }
  }
  return sign;
}
static int lu_factors(const Array* x, Array* outs) {
  const int64_t m = rows_of(x);
  const int64_t n = columns_of(x);
  const int64_t k = m < n ? m : n;
  outs[0] = copy_of(x);
  outs[1] = batch_zeros(x, 1, k, 0);
  outs[2] = batch_zeros(x, 0, 0, 0);
  for (int64_t i = 0; i < outs[2].n; i++)
    factor_lu(matrix_at(&outs[0], i), m, n, outs[1].data + i * k, outs[2].data + i);
  return 3;
}
static int ref_lu_factor_ex(const Inputs* in, Array* outs) {
  return lu_factors(tensor(in, "self"), outs);
}
static int ref_lu_factor(const Inputs* in, Array* outs) { return ref_lu_factor_ex(in, outs) - 1; }
/* P, L and U of packed factors. */
static int unpack_lu(const Array* lu, const Array* pivots, Array* outs) {
  const int64_t m = rows_of(lu);
  const int64_t n = columns_of(lu);
  const int64_t k = m < n ? m : n;
  outs[0] = identity_like(lu, m, m);
  outs[1] = batch_zeros(lu, 2, m, k);
  outs[2] = batch_zeros(lu, 2, k, n);
  for (int64_t i = 0; i < batch_count(lu); i++) {
    const double* a = matrix_at(lu, i);
    double* p = matrix_at(&outs[0], i);
    for (int64_t s = k - 1; s >= 0; s--) {
      const int64_t row = (int64_t)pivots->data[i * k + s] - 1;
      for (int64_t j = 0; j < m; j++) {
        const double t = p[s * m + j];
        p[s * m + j] = p[row * m + j];
        p[row * m + j] = t;
      }
    }
    for (int64_t r = 0; r < m; r++)
      for (int64_t j = 0; j < k; j++)
        matrix_at(&outs[1], i)[r * k + j] = r > j ? a[r * n + j] : r == j;
    for (int64_t r = 0; r < k; r++)
      for (int64_t j = r; j < n; j++) matrix_at(&outs[2], i)[r * n + j] = a[r * n + j];
  }
  return 3;
}
static int ref_linalg_lu(const Inputs* in, Array* outs) {
  Array f[3];
  lu_factors(tensor(in, "self"), f);
  return unpack_lu(&f[0], &f[1], outs);
}
static int ref_lu_unpack(const Inputs* in, Array* outs) {
  const int64_t none[1] = {0};
  unpack_lu(tensor(in, "LU_data"), tensor(in, "LU_pivots"), outs);
  if (!int_arg(in, "unpack_pivots", 1)) outs[0] = new_array(none, 1);
  if (!int_arg(in, "unpack_data", 1)) outs[1] = outs[2] = new_array(none, 1);
  return 3;
}
static Array product_of_lu(const Array* lu, const Array* pivots) {
  Array f[3];
  unpack_lu(lu, pivots, f);
  const Array lower = times(&f[0], &f[1]);
  return times(&lower, &f[2]);
}

/* By Gauss & Jordan; inf where there is none. */
static Array inverse_of(const Array* x) {
  const int64_t n = rows_of(x);
  Array out = batch_zeros(x, 2, n, n);
  for (int64_t i = 0; i < batch_count(x); i++) {
    long double* a = scratch((size_t)(2 * n * n) * sizeof *a);
    for (int64_t j = 0; j < n * n; j++) {
      a[j / n * 2 * n + j % n] = matrix_at(x, i)[j];
      a[j / n * 2 * n + n + j % n] = j / n == j % n;
    }
    for (int64_t k = 0; k < n; k++) {
      int64_t best = k;
      for (int64_t r = k + 1; r < n; r++)
        if (fabsl(a[r * 2 * n + k]) > fabsl(a[best * 2 * n + k])) best = r;
      for (int64_t j = 0; j < 2 * n; j++) {
        const long double t = a[k * 2 * n + j];
        a[k * 2 * n + j] = a[best * 2 * n + j];
        a[best * 2 * n + j] = t;
      }
      const long double pivot = a[k * 2 * n + k];
      for (int64_t j = 0; j < 2 * n; j++) a[k * 2 * n + j] /= pivot;
      for (int64_t r = 0; r < n; r++) {
        const long double factor = r == k ? 0 : a[r * 2 * n + k];
        for (int64_t j = 0; j < 2 * n; j++) a[r * 2 * n + j] -= factor * a[k * 2 * n + j];
      }
    }
    for (int64_t j = 0; j < n * n; j++)
      matrix_at(&out, i)[j] = (double)a[j / n * 2 * n + n + j % n];
  }
  return out;
}
/* A @ X = b or, unless left, X @ A = b. */
static Array solution(const Array* a, const Array* b, int left) {
  const Array inverse = inverse_of(a);
  return left ? times(&inverse, b) : times(b, &inverse);
}

static int ref_solve_ex(const Inputs* in, Array* outs) {
  const Array* a = tensor(in, "self");
  Array b = *tensor(in, "other");
  const int vector = b.ndim == 1 || b.ndim == a->ndim - 1;
  if (b.ndim == 2 && a->ndim == 3 && vector && b.shape[0] != a->shape[0]) return -1;
  if (vector) b.shape[b.ndim++] = 1;
  outs[0] = solution(a, &b, (int)int_arg(in, "left", 1));
  if (vector) outs[0].ndim--;
  outs[1] = batch_zeros(a, 0, 0, 0);
  return 2;
}
static int ref_solve(const Inputs* in, Array* outs) { return ref_solve_ex(in, outs) - 1; }
static int ref_inv_ex(const Inputs* in, Array* outs) {
  outs[0] = inverse_of(tensor(in, "self"));
  outs[1] = batch_zeros(&outs[0], 0, 0, 0);
  return 2;
}
static int ref_inv(const Inputs* in, Array* outs) { return ref_inv_ex(in, outs) - 1; }
static int ref_linalg_lu_solve(const Inputs* in, Array* outs) {
  Array a = product_of_lu(tensor(in, "LU"), tensor(in, "pivots"));
  if (flag_arg(in, "adjoint")) a = transpose_of(&a);
  outs[0] = solution(&a, tensor(in, "other"), (int)int_arg(in, "left", 1));
  return 1;
}
static int ref_lu_solve(const Inputs* in, Array* outs) {
  const Array a = product_of_lu(tensor(in, "LU_data"), tensor(in, "LU_pivots"));
  outs[0] = solution(&a, tensor(in, "self"), 1);
  return 1;
}

/* The sign and the absolute value of the determinants. */
static void determinants(const Array* x, Array* sign, Array* size) {
  const int64_t n = rows_of(x);
  Array lu = copy_of(x);
  *sign = batch_zeros(x, 0, 0, 0);
  *size = batch_zeros(x, 0, 0, 0);
  double* pivots = scratch((size_t)n * sizeof *pivots);
  for (int64_t i = 0; i < sign->n; i++) {
    double info = 0;
    double* a = matrix_at(&lu, i);
    long double det = factor_lu(a, n, n, pivots, &info);
    for (int64_t k = 0; k < n; k++) det *= a[k * n + k];
    sign->data[i] = (det > 0) - (det < 0);
    size->data[i] = (double)fabsl(det);
  }
}
static int ref_det(const Inputs* in, Array* outs) {
  Array size;
  determinants(tensor(in, "self"), &outs[0], &size);
  for (int64_t i = 0; i < size.n; i++) outs[0].data[i] *= size.data[i];
  return 1;
}
static int ref_slogdet(const Inputs* in, Array* outs) {
  determinants(tensor(in, "self"), &outs[0], &outs[1]);
  for (int64_t i = 0; i < outs[1].n; i++) outs[1].data[i] = log(outs[1].data[i]);
  return 2;
}
static int ref_logdet(const Inputs* in, Array* outs) {
  Array sign;
  determinants(tensor(in, "self"), &sign, &outs[0]);
  for (int64_t i = 0; i < sign.n; i++)
    outs[0].data[i] = sign.data[i] < 0 ? NAN : log(outs[0].data[i]);
  return 1;
}

static int ref_cholesky_ex(const Inputs* in, Array* outs) {
  const int upper = flag_arg(in, "upper");
  const Array x = upper ? transpose_of(tensor(in, "self")) : *tensor(in, "self");
  const int64_t n = rows_of(&x);
  outs[0] = batch_zeros(&x, 2, n, n);
  outs[1] = batch_zeros(&x, 0, 0, 0);
  for (int64_t b = 0; b < outs[1].n; b++) {
    const double* a = matrix_at(&x, b);
    double* l = matrix_at(&outs[0], b);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j <= i; j++) {
        long double sum = a[i * n + j];
        for (int64_t k = 0; k < j; k++) sum -= (long double)l[i * n + k] * l[j * n + k];
        l[i * n + j] = (double)(i == j ? sqrtl(sum) : sum / l[j * n + j]);
      }
  }
  if (upper) outs[0] = transpose_of(&outs[0]);
  return 2;
}
static int ref_cholesky(const Inputs* in, Array* outs) { return ref_cholesky_ex(in, outs) - 1; }
/* The matrix with the triangle of x that is read, its diagonal 1 if unit. */
static Array triangle_of(const Array* x, int upper, int unit) {
  Array out = copy_of(x);
  const int64_t n = rows_of(x);
  for (int64_t i = 0; i < out.n; i++) {
    const int64_t row = i / n % n;
    const int64_t column = i % n;
    if (upper ? row > column : row < column) out.data[i] = 0;
    if (unit && row == column) out.data[i] = 1;
  }
  return out;
}
static Array square_of_factor(const Array* factor, int upper) {
  const Array l = triangle_of(factor, upper, 0);
  const Array lt = transpose_of(&l);
  return upper ? times(&lt, &l) : times(&l, &lt);
}
static int ref_cholesky_solve(const Inputs* in, Array* outs) {
  const Array a = square_of_factor(tensor(in, "input2"), flag_arg(in, "upper"));
  outs[0] = solution(&a, tensor(in, "self"), 1);
  return 1;
}
static int ref_cholesky_inverse(const Inputs* in, Array* outs) {
  const Array a = square_of_factor(tensor(in, "self"), flag_arg(in, "upper"));
  outs[0] = inverse_of(&a);
  return 1;
}
static int ref_solve_triangular(const Inputs* in, Array* outs) {
  const Array a =
      triangle_of(tensor(in, "self"), flag_arg(in, "upper"), flag_arg(in, "unitriangular"));
  outs[0] = solution(&a, tensor(in, "other"), (int)int_arg(in, "left", 1));
  return 1;
}
static int ref_triangular_solve(const Inputs* in, Array* outs) {
  Array a =
      triangle_of(tensor(in, "A"), (int)int_arg(in, "upper", 1), flag_arg(in, "unitriangular"));
  if (flag_arg(in, "transpose")) a = transpose_of(&a);
  outs[0] = solution(&a, tensor(in, "self"), 1);
  outs[1] = copy_of(tensor(in, "A"));
  return 2;
}

/* R and the reflectors of x, with LAPACK's signs. */
static void reflectors(const Array* x, Array* a, Array* tau) {
  const int64_t m = rows_of(x);
  const int64_t n = columns_of(x);
  const int64_t steps = m < n ? m : n;
  *a = copy_of(x);
  *tau = batch_zeros(x, 1, steps, 0);
  for (int64_t i = 0; i < batch_count(x) * steps; i++) {
    const int64_t k = i % steps;
    double* c = matrix_at(a, i / steps) + k * n + k;
    long double square = 0;
    for (int64_t r = 1; r < m - k; r++) square += (long double)c[r * n] * c[r * n];
    if (square == 0) continue;
    const double norm = (double)sqrtl(square + (long double)c[0] * c[0]);
    const double beta = c[0] < 0 ? norm : -norm;
    tau->data[i] = (beta - c[0]) / beta;
    for (int64_t r = 1; r < m - k; r++) c[r * n] /= c[0] - beta;
    c[0] = beta;
    for (int64_t j = 1; j < n - k; j++) {
      long double along = c[j];
      for (int64_t r = 1; r < m - k; r++) along += (long double)c[r * n] * c[r * n + j];
      for (int64_t r = 0; r < m - k; r++)
        c[r * n + j] -= (double)(tau->data[i] * along * (r ? c[r * n] : 1));
    }
  }
}
/* The first `width` columns of the product of the reflections in the columns of a. */
static Array product_of_reflections(const Array* a, const Array* tau, int64_t width) {
  const int64_t m = rows_of(a);
  const int64_t n = columns_of(a);
  const int64_t steps = tau->shape[tau->ndim - 1];
  Array q = identity_like(a, m, width);
  for (int64_t i = 0; i < batch_count(a); i++)
    for (int64_t k = steps - 1; k >= 0; k--)
      for (int64_t j = 0; j < width; j++) {
        const double* c = matrix_at(a, i) + k * n + k;
        double* out = matrix_at(&q, i) + k * width + j;
        long double along = out[0];
        for (int64_t r = 1; r < m - k; r++) along += (long double)c[r * n] * out[r * width];
        for (int64_t r = 0; r < m - k; r++)
          out[r * width] -= (double)(tau->data[i * steps + k] * along * (r ? c[r * n] : 1));
      }
  return q;
}
static int ref_geqrf(const Inputs* in, Array* outs) {
  reflectors(tensor(in, "self"), &outs[0], &outs[1]);
  return 2;
}
static int qr_factors(const Array* x, int mode, Array* outs) {
  const int64_t none[1] = {0};
  const int64_t m = rows_of(x);
  const int64_t n = columns_of(x);
  const int64_t k = mode == 1 || m < n ? m : n;
  Array a;
  Array tau;
  reflectors(x, &a, &tau);
  outs[0] = mode == 2 ? new_array(none, 1) : product_of_reflections(&a, &tau, k);
  outs[1] = batch_zeros(x, 2, k, n);
  for (int64_t i = 0; i < outs[1].n; i++) {
    const int64_t row = i / n % k;
    if (i % n >= row) outs[1].data[i] = matrix_at(&a, i / (k * n))[row * n + i % n];
  }
  return 2;
}
static int ref_linalg_qr(const Inputs* in, Array* outs) {
  return qr_factors(tensor(in, "self"), (int)int_arg(in, "mode", 0), outs);
}
static int ref_qr(const Inputs* in, Array* outs) {
  return qr_factors(tensor(in, "self"), !int_arg(in, "some", 1), outs);
}
static int ref_householder_product(const Inputs* in, Array* outs) {
  const Array* a = tensor(in, "self");
  outs[0] = product_of_reflections(a, tensor(in, "tau"), columns_of(a));
  return 1;
}
static int ref_orgqr(const Inputs* in, Array* outs) {
  const Array* a = tensor(in, "self");
  outs[0] = product_of_reflections(a, tensor(in, "input2"), columns_of(a));
  return 1;
}

/* D is diagonal in the samples; tests/python/tensor/test_linalg.py compares other factors. */
static int ref_ldl_factor_ex(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  outs[0] = *x;
  outs[0].data = NULL;
  outs[1] = batch_zeros(x, 1, rows_of(x), 0);
  outs[1].data = NULL;
  outs[2] = batch_zeros(x, 0, 0, 0);
  return 3;
}
static int ref_ldl_factor(const Inputs* in, Array* outs) { return ref_ldl_factor_ex(in, outs) - 1; }
static int ref_ldl_solve(const Inputs* in, Array* outs) {
  const Array* f = tensor(in, "LD");
  const Array lower = triangle_of(f, 0, 1);
  const Array upper = transpose_of(&lower);
  Array scaled = copy_of(&lower);
  const int64_t n = rows_of(f);
  for (int64_t i = 0; i < scaled.n; i++) scaled.data[i] *= f->data[i % n * n + i % n];
  const Array a = times(&scaled, &upper);
  outs[0] = solution(&a, tensor(in, "other"), 1);
  return 1;
}

/* ---- eigenvalues and singular values ---- */

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}
static int descending(const void* a, const void* b) { return ascending(b, a); }

/* By two-sided Jacobi rotations. */
static void symmetric_eigenvalues(long double* a, int64_t n, double* values) {
  for (int sweep = 0; sweep < 40; sweep++)
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) {
        if (a[p * n + q] == 0) continue;
        const long double theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
        const long double t = (theta < 0 ? -1 : 1) / (fabsl(theta) + sqrtl(theta * theta + 1));
        const long double c = 1 / sqrtl(t * t + 1);
        for (int64_t k = 0; k < n; k++) {
          const long double x = a[k * n + p];
          const long double y = a[k * n + q];
          a[k * n + p] = c * (x - t * y);
          a[k * n + q] = c * (t * x + y);
        }
        for (int64_t k = 0; k < n; k++) {
          const long double x = a[p * n + k];
          const long double y = a[q * n + k];
          a[p * n + k] = c * (x - t * y);
          a[q * n + k] = c * (t * x + y);
        }
      }
  for (int64_t k = 0; k < n; k++) values[k] = (double)a[k * n + k];
  qsort(values, (size_t)n, sizeof *values, ascending);
}
static int ref_eigvalsh(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  const int upper = int_arg(in, "UPLO", 0) != 0;
  const int64_t n = rows_of(x);
  outs[0] = batch_zeros(x, 1, n, 0);
  long double* a = scratch((size_t)(n * n) * sizeof *a);
  for (int64_t i = 0; i < batch_count(x); i++) {
    for (int64_t j = 0; j < n * n; j++) {
      const int64_t row = j / n;
      const int64_t column = j % n;
      const int read = upper ? row <= column : row >= column;
      a[j] = matrix_at(x, i)[read ? j : column * n + row];
    }
    symmetric_eigenvalues(a, n, outs[0].data + i * n);
  }
  return 1;
}
static int ref_eigh(const Inputs* in, Array* outs) {
  ref_eigvalsh(in, outs);
  outs[1] = *tensor(in, "self");
  outs[1].data = NULL; /* unique up to signs */
  return 2;
}
/* Shapes only: complex numbers in no order. tests/python/tensor/test_linalg.py compares them. */
static int ref_eig(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  const int64_t n = rows_of(x);
  outs[0] = batch_zeros(x, 2, n, 2);
  outs[1] = *x;
  outs[1].shape[outs[1].ndim++] = 2;
  outs[0].data = outs[1].data = NULL;
  return 2;
}
static int ref_eigvals(const Inputs* in, Array* outs) { return ref_eig(in, outs) - 1; }

static Array singular_values_of(const Array* x) {
  const int wide = rows_of(x) < columns_of(x);
  const Array columns = wide ? *x : transpose_of(x);
  const int64_t n = rows_of(&columns);
  const int64_t m = columns_of(&columns);
  Array out = batch_zeros(x, 1, n, 0);
  long double* a = scratch((size_t)(m * n) * sizeof *a);
  for (int64_t i = 0; i < batch_count(x); i++) {
    for (int64_t j = 0; j < m * n; j++) a[j] = matrix_at(&columns, i)[j];
    singular_sum(a, m, n);
    for (int64_t j = 0; j < n; j++) {
      long double square = 0;
      for (int64_t k = 0; k < m; k++) square += a[j * m + k] * a[j * m + k];
      out.data[i * n + j] = (double)sqrtl(square);
    }
    qsort(out.data + i * n, (size_t)n, sizeof(double), descending);
  }
  return out;
}
static int ref_svdvals(const Inputs* in, Array* outs) {
  outs[0] = singular_values_of(tensor(in, "self"));
  return 1;
}
/* The singular vectors are unique up to signs. */
static int svd_shapes(const Array* x, int full, int transposed, Array* outs) {
  const int64_t m = rows_of(x);
  const int64_t n = columns_of(x);
  const int64_t k = m < n ? m : n;
  outs[0] = batch_zeros(x, 2, m, full ? m : k);
  outs[1] = singular_values_of(x);
  const int64_t vectors = full ? n : k;
  outs[2] = transposed ? batch_zeros(x, 2, n, vectors) : batch_zeros(x, 2, vectors, n);
  outs[0].data = outs[2].data = NULL;
  return 3;
}
static int ref_linalg_svd(const Inputs* in, Array* outs) {
  return svd_shapes(tensor(in, "self"), (int)int_arg(in, "full_matrices", 1), 0, outs);
}
static int ref_svd(const Inputs* in, Array* outs) {
  const int full = !int_arg(in, "some", 1) || !int_arg(in, "compute_uv", 1);
  return svd_shapes(tensor(in, "self"), full, 1, outs);
}

static int ref_matrix_rank(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  const Array s = singular_values_of(x);
  const int64_t k = columns_of(x) < rows_of(x) ? columns_of(x) : rows_of(x);
  const Array* atol = tensor(in, "atol");
  const Array* rtol = tensor(in, "rtol");
  outs[0] = batch_zeros(x, 0, 0, 0);
  const double without = atol ? 0 : 1e-10;
  for (int64_t i = 0; i < s.n; i++) {
    const double relative = rtol ? rtol->data[0] : without;
    const double low = fmax(atol ? atol->data[0] : 0, relative * s.data[i / k * k]);
    outs[0].data[i / k] += s.data[i] > low;
  }
  return 1;
}
/* Of matrices of full rank. */
static Array pseudo_inverse(const Array* x) {
  const Array t = transpose_of(x);
  const int tall = rows_of(x) > columns_of(x);
  const Array square = tall ? times(&t, x) : times(x, &t);
  const Array inverse = inverse_of(&square);
  return tall ? times(&inverse, &t) : times(&t, &inverse);
}
static int ref_pinv(const Inputs* in, Array* outs) {
  outs[0] = pseudo_inverse(tensor(in, "self"));
  return 1;
}
static int ref_lstsq(const Inputs* in, Array* outs) {
  const Array* a = tensor(in, "self");
  const Array* b = tensor(in, "other");
  const int64_t none[1] = {0};
  const int64_t driver = int_arg(in, "driver", 0);
  const Array inverse = pseudo_inverse(a);
  outs[0] = times(&inverse, b);
  outs[1] = outs[2] = outs[3] = new_array(none, 1);
  if (rows_of(a) > columns_of(a) && driver != 0) {
    const Array y = times(a, &outs[0]);
    outs[1] = batch_zeros(b, 1, columns_of(b), 0);
    for (int64_t i = 0; i < y.n; i++)
      outs[1].data[i % columns_of(b)] += (y.data[i] - b->data[i]) * (y.data[i] - b->data[i]);
  }
  if (driver >= 2) outs[3] = singular_values_of(a);
  if (driver == 1) return 4;
  outs[2] = batch_zeros(a, 0, 0, 0);
  fill(&outs[2], (double)(rows_of(a) < columns_of(a) ? rows_of(a) : columns_of(a)));
  return 4;
}

/* ---- norms ---- */

/* The norms of the matrices in the last two dimensions. ord: 0 Frobenius, 10 nuclear. */
static Array matrix_norms(const Array* x, double ord) {
  Array out = batch_zeros(x, 0, 0, 0);
  const int64_t m = rows_of(x);
  const int64_t n = columns_of(x);
  for (int64_t i = 0; i < out.n; i++) {
    const double* a = matrix_at(x, i);
    double best = ord < 0 ? INFINITY : 0;
    long double square = 0;
    for (int64_t j = 0; j < m * n; j++) square += (long double)a[j] * a[j];
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t r = 0; r < m; r++) sum += fabs(a[r * n + j]);
      best = ord < 0 ? fmin(best, sum) : fmax(best, sum);
    }
    out.data[i] = ord == 0 ? (double)sqrtl(square) : best;
  }
  if (ord != 10) return out;
  const Array s = singular_values_of(x);
  const int64_t k = m < n ? m : n;
  fill(&out, 0);
  for (int64_t i = 0; i < s.n; i++) out.data[i / k] += s.data[i];
  return out;
}
/* dim may be absent: the last two. */
static Array norms_along(const Inputs* in, const Array* x, double ord) {
  const tt_value* dim = given(in, "dim");
  const int two = dim && dim->n == 2;
  const int64_t rows = two ? wrap(dim->ints[0], x->ndim) : x->ndim - 2;
  const int64_t columns = two ? wrap(dim->ints[1], x->ndim) : x->ndim - 1;
  int64_t order[kMaxDims];
  int64_t shape[kMaxDims];
  int n = 0;
  for (int d = 0; d < x->ndim; d++)
    if (d != rows && d != columns) order[n++] = d;
  order[n++] = rows;
  order[n++] = columns;
  for (int d = 0; d < n; d++) shape[d] = x->shape[order[d]];
  Array moved = new_array(shape, n);
  for (int64_t i = 0; i < moved.n; i++) {
    int64_t index[kMaxDims];
    int64_t from[kMaxDims];
    index_of(&moved, i, index);
    for (int d = 0; d < n; d++) from[order[d]] = index[d];
    moved.data[i] = x->data[ravel(x, from)];
  }
  const Array norms = matrix_norms(&moved, ord);
  Array out = reduced_zeros(x, 1u << rows | 1u << columns, flag_arg(in, "keepdim"));
  memcpy(out.data, norms.data, (size_t)out.n * sizeof *out.data);
  return out;
}
static int ref_matrix_norm(const Inputs* in, Array* outs) {
  outs[0] = norms_along(in, tensor(in, "self"), number_arg(in, "ord", 0));
  return 1;
}
static int ref_matrix_norm_str(const Inputs* in, Array* outs) {
  outs[0] = norms_along(in, tensor(in, "self"), int_arg(in, "ord", 0) ? 10 : 0);
  return 1;
}
static int ref_vector_norm(const Inputs* in, Array* outs) {
  const double p = number_arg(in, "ord", 2);
  unsigned mask;
  const Array* x = begin_reduction(in, 0, outs, &mask);
  for (int64_t i = 0; i < x->n; i++) {
    const double size = fabs(x->data[i]);
    outs->data[result_of(x, i, mask)] += p == 0 ? size != 0 : pow(size, p);
  }
  for (int64_t i = 0; p != 0 && i < outs->n; i++) outs->data[i] = pow(outs->data[i], 1 / p);
  return 1;
}
static int ref_linalg_norm(const Inputs* in, Array* outs) {
  const tt_value* dim = given(in, "dim");
  const int64_t n = dim && dim->n ? (int64_t)dim->n : tensor(in, "self")->ndim;
  const int of_matrix = given(in, "ord") && n == 2;
  return of_matrix ? ref_matrix_norm(in, outs) : ref_vector_norm(in, outs);
}
static int ref_cond(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  const double p = number_arg(in, "p", 2);
  if (fabs(p) == 2) {
    const Array s = singular_values_of(x);
    const double ratio = s.data[0] / s.data[s.n - 1];
    outs[0] = zero_dim(p > 0 ? ratio : 1 / ratio);
    return 1;
  }
  const Array inverse = inverse_of(x);
  outs[0] = matrix_norms(x, p);
  outs[0].data[0] *= matrix_norms(&inverse, p).data[0];
  return 1;
}
static int ref_cond_str(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  const Array inverse = inverse_of(x);
  outs[0] = matrix_norms(x, 0);
  outs[0].data[0] *= matrix_norms(&inverse, 0).data[0];
  return 1;
}

/* ---- products ---- */

static int ref_matrix_power(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  outs[0] = identity_like(x, rows_of(x), rows_of(x));
  for (int64_t k = 0; k < int_arg(in, "n", 0); k++) outs[0] = times(&outs[0], x);
  return 1;
}
static void multiply_wide(const Wide* a, const Wide* b, int64_t n, Wide* out) {
  for (int64_t i = 0; i < n * n; i++) {
    out[i] = wide(0);
    for (int64_t k = 0; k < n; k++)
      out[i] = wide_add(out[i], wide_times(a[i / n * n + k], b[k * n + i % n]));
  }
}
/* Taylor's series of X / 64, squared six times. */
static int ref_matrix_exp(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  const int64_t n = rows_of(x);
  Wide* m = scratch((size_t)(4 * n * n) * sizeof *m);
  Wide* term = m + n * n;
  Wide* sum = term + n * n;
  Wide* next = sum + n * n;
  outs[0] = batch_zeros(x, 2, n, n);
  for (int64_t b = 0; b < batch_count(x); b++) {
    for (int64_t i = 0; i < n * n; i++) {
      m[i] = wide(matrix_at(x, b)[i] / 64);
      term[i] = sum[i] = wide(i / n == i % n);
    }
    for (int k = 1; k < 30; k++) {
      multiply_wide(term, m, n, next);
      for (int64_t i = 0; i < n * n; i++) {
        term[i] = wide_over(next[i], wide(k));
        sum[i] = wide_add(sum[i], term[i]);
      }
    }
    for (int k = 0; k < 6; k++) {
      multiply_wide(sum, sum, n, next);
      memcpy(sum, next, (size_t)(n * n) * sizeof *sum);
    }
    for (int64_t i = 0; i < n * n; i++) matrix_at(&outs[0], b)[i] = narrow(sum[i]);
  }
  return 1;
}
static int ref_multi_dot(const Inputs* in, Array* outs) {
  Array items[kMaxItems];
  const int last = in->n_items - 1;
  memcpy(items, in->items, sizeof items);
  const int row = items[0].ndim == 1;
  const int column = items[last].ndim == 1;
  if (row) {
    const int64_t shape[2] = {1, items[0].n};
    items[0] = reshaped(&items[0], shape, 2);
  }
  if (column) {
    const int64_t shape[2] = {items[last].n, 1};
    items[last] = reshaped(&items[last], shape, 2);
  }
  outs[0] = items[0];
  for (int k = 1; k <= last; k++) outs[0] = times(&outs[0], &items[k]);
  if (row && column) outs[0].ndim = 0;
  return 1;
}
static int ref_vecdot(const Inputs* in, Array* outs) {
  Array both[2] = {*tensor(in, "self"), *tensor(in, "other")};
  Array whole = broadcast_zeros(both, 2);
  const int64_t dim = dim_arg(in, "dim", -1, whole.ndim);
  outs[0] = reduced_zeros(&whole, 1u << dim, 0);
  for (int64_t i = 0; i < whole.n; i++) {
    int64_t index[kMaxDims];
    index_of(&whole, i, index);
    const double x = broadcast_value(&both[0], index, whole.ndim);
    const double y = broadcast_value(&both[1], index, whole.ndim);
    outs[0].data[result_of(&whole, i, 1u << dim)] += x * y;
  }
  return 1;
}
static int ref_linalg_vander(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "x");
  int64_t shape[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  shape[x->ndim] = int_arg(in, "N", x->shape[x->ndim - 1]);
  outs[0] = new_array(shape, x->ndim + 1);
  for (int64_t i = 0; i < outs[0].n; i++)
    outs[0].data[i] = pow(x->data[i / shape[x->ndim]], (double)(i % shape[x->ndim]));
  return 1;
}
/* x as a square matrix whose rows are the first `first` dimensions. */
static Array as_square(const Array* x, int first) {
  int64_t rows = 1;
  for (int d = 0; d < first; d++) rows *= x->shape[d];
  const int64_t shape[2] = {rows, rows};
  return reshaped(x, shape, 2);
}
static int ref_tensorinv(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  const int ind = (int)int_arg(in, "ind", 2);
  const Array square = as_square(x, ind);
  const Array inverse = inverse_of(&square);
  int64_t shape[kMaxDims];
  for (int d = 0; d < x->ndim; d++) shape[d] = x->shape[(d + ind) % x->ndim];
  outs[0] = reshaped(&inverse, shape, x->ndim);
  return 1;
}
static int ref_tensorsolve(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "self");
  const Array* b = tensor(in, "other");
  const tt_value* dims = given(in, "dims");
  Array square = as_square(x, b->ndim);
  if (dims && dims->n) square = transpose_of(&square);
  const int64_t column[2] = {b->n, 1};
  const Array right = reshaped(b, column, 2);
  const Array flat = solution(&square, &right, 1);
  outs[0] = reshaped(&flat, x->shape + b->ndim, x->ndim - b->ndim);
  return 1;
}

static const Reference kLinalg[] = {
    {"nuclear_norm", .whole = ref_nuclear_norm},
    {"linalg_lu_factor_ex", .whole = ref_lu_factor_ex},
    {"linalg_lu_factor", .whole = ref_lu_factor},
    {"linalg_lu", .whole = ref_linalg_lu},
    {"lu_unpack", .whole = ref_lu_unpack},
    {"linalg_lu_solve", .whole = ref_linalg_lu_solve},
    {"lu_solve", .whole = ref_lu_solve},
    {"linalg_solve_ex", .whole = ref_solve_ex},
    {"linalg_solve", .whole = ref_solve},
    {"linalg_inv_ex", .whole = ref_inv_ex},
    {"linalg_inv", .whole = ref_inv},
    {"inverse", .whole = ref_inv},
    {"linalg_det", .whole = ref_det},
    {"det", .whole = ref_det},
    {"linalg_slogdet", .whole = ref_slogdet},
    {"slogdet", .whole = ref_slogdet},
    {"logdet", .whole = ref_logdet},
    {"linalg_cholesky_ex", .whole = ref_cholesky_ex},
    {"linalg_cholesky", .whole = ref_cholesky},
    {"cholesky", .whole = ref_cholesky},
    {"cholesky_solve", .whole = ref_cholesky_solve},
    {"cholesky_inverse", .whole = ref_cholesky_inverse},
    {"linalg_solve_triangular", .whole = ref_solve_triangular},
    {"triangular_solve", .whole = ref_triangular_solve},
    {"linalg_qr", .whole = ref_linalg_qr},
    {"qr", .whole = ref_qr},
    {"geqrf", .whole = ref_geqrf},
    {"linalg_householder_product", .whole = ref_householder_product},
    {"orgqr", .whole = ref_orgqr},
    {"linalg_ldl_factor_ex", .whole = ref_ldl_factor_ex},
    {"linalg_ldl_factor", .whole = ref_ldl_factor},
    {"linalg_ldl_solve", .whole = ref_ldl_solve},
    {"linalg_eigvalsh", .whole = ref_eigvalsh},
    {"linalg_eigh", .whole = ref_eigh},
    {"linalg_eig", .whole = ref_eig},
    {"linalg_eigvals", .whole = ref_eigvals},
    {"linalg_svdvals", .whole = ref_svdvals},
    {"linalg_svd", .whole = ref_linalg_svd},
    {"svd", .whole = ref_svd},
    {"linalg_matrix_rank", .whole = ref_matrix_rank},
    {"linalg_pinv", .whole = ref_pinv},
    {"pinverse", .whole = ref_pinv},
    {"linalg_lstsq", .whole = ref_lstsq},
    {"linalg_vector_norm", .whole = ref_vector_norm},
    {"linalg_norm", .whole = ref_linalg_norm},
    {"linalg_matrix_norm", .whole = ref_matrix_norm},
    {"linalg_matrix_norm_str", .whole = ref_matrix_norm_str},
    {"linalg_cond", .whole = ref_cond},
    {"linalg_cond_str", .whole = ref_cond_str},
    {"linalg_matrix_power", .whole = ref_matrix_power},
    {"matrix_power", .whole = ref_matrix_power},
    {"matrix_exp", .whole = ref_matrix_exp},
    {"linalg_multi_dot", .whole = ref_multi_dot},
    {"linalg_vecdot", .whole = ref_vecdot},
    {"linalg_vander", .whole = ref_linalg_vander},
    {"linalg_tensorinv", .whole = ref_tensorinv},
    {"linalg_tensorsolve", .whole = ref_tensorsolve},
};
