// eig: eigenvalues and eigenvectors of square matrices, in complex arithmetic. Householder
// reflections make a Hessenberg matrix H, QR steps with one shift a triangular one, T, and back
// substitution its eigenvectors (Golub & Van Loan, "Matrix Computations", sections 7.4 to 7.6).
//
//   a: (n, n), overwritten    w: (n) complex numbers    b: (n, n), the eigenvectors as columns,
//   if `vectors`    work: (3 n) complex numbers    info: (1)
//
// `real`: the elements of a are real, so eigenvalues are real or pairs of conjugates.
#include "kernels/cpu/linalg/dense.h"

TT_ISA_BEGIN

constexpr int kMaxQrSteps = 60;  // for one eigenvalue; three are usual
constexpr double kEpsilon = 0x1p-52;

TT_INLINE c128 square_root(c128 z) {
  const double size = modulus(z);
  const double x = __builtin_sqrt((size + __builtin_fabs(z.re)) / 2);
  if (x == 0) return {0, 0};
  const double y = z.im / (2 * x);
  if (z.re >= 0) return {x, y};
  return {__builtin_fabs(y), z.im < 0 ? -x : x};
}

struct Schur {
  c128* h;
  c128* z;  // NULL: no vectors
  c128* w;
  c128* work;
  int64_t n;

  c128& at(int64_t i, int64_t j) { return h[i * n + j]; }

  // rows[i] = rows[i] (I - tau v v^H) for rows of `width` elements
  void apply_right(c128* rows, int64_t count, const c128* v, int64_t width, c128 tau) {
    for (int64_t i = 0; i < count; i++) {
      c128* row = rows + i * n;
      c128 sum = {0, 0};
      for (int64_t j = 0; j < width; j++) sum = sum + row[j] * v[j];
      sum = tau * sum;
      for (int64_t j = 0; j < width; j++) row[j] = row[j] - sum * conj_of(v[j]);
    }
  }

  void make_hessenberg() {
    if (z) set_identity(z, n, n);
    c128* v = work;
    for (int64_t k = 0; k + 2 < n; k++) {
      const int64_t rest = n - k - 1;
      for (int64_t i = 0; i < rest; i++) v[i] = at(k + 1 + i, k);
      const c128 tau = reflect(v, rest, 1);
      const c128 beta = v[0];
      v[0] = {1, 0};
      if (size_of(tau) != 0) {
        apply_right(h + k + 1, n, v, rest, tau);
        apply_left(h + (k + 1) * n + k + 1, rest, rest, n, v, 1, conj_of(tau), work + n);
        if (z) apply_right(z + k + 1, n, v, rest, tau);
      }
      at(k + 1, k) = beta;
      for (int64_t i = k + 2; i < n; i++) at(i, k) = {0, 0};
    }
  }

  // The eigenvalue of the last 2 x 2 block that is nearest to its last element.
  c128 shift_of(int64_t last) {
    const c128 a = at(last - 1, last - 1);
    const c128 d = at(last, last);
    const c128 bc = at(last - 1, last) * at(last, last - 1);
    const c128 half = (a - d) * 0.5;
    const c128 root = square_root(half * half + bc);
    const bool same_side = half.re * root.re + half.im * root.im >= 0;
    const c128 below = same_side ? half + root : half - root;
    return size_of(below) == 0 ? d : d - bc / below;
  }

  // One QR step on the block [from, last]: H - s = Q R, then R Q + s.
  void step(int64_t from, int64_t last, c128 s) {
    c128* cosines = work;
    c128* sines = work + n;
    for (int64_t i = from; i <= last; i++) at(i, i) = at(i, i) - s;
    for (int64_t k = from; k < last; k++) {
      const double top = max(modulus(at(k, k)), modulus(at(k + 1, k)));
      const c128 x = at(k, k) * (1 / top);
      const c128 y = at(k + 1, k) * (1 / top);
      const double norm = 1 / __builtin_sqrt(square_of(x) + square_of(y));
      const c128 c = top > 0 ? x * norm : c128{1, 0};
      const c128 r = top > 0 ? y * norm : c128{0, 0};
      cosines[k] = c;
      sines[k] = r;
      for (int64_t j = k; j < n; j++) {
        const c128 u = at(k, j);
        const c128 v = at(k + 1, j);
        at(k, j) = conj_of(c) * u + conj_of(r) * v;
        at(k + 1, j) = c * v - r * u;
      }
    }
    for (int64_t k = from; k < last; k++) {
      rotate_columns(h, k, min(k + 2, last + 1), cosines[k], sines[k]);
      if (z) rotate_columns(z, k, n, cosines[k], sines[k]);
    }
    for (int64_t i = from; i <= last; i++) at(i, i) = at(i, i) + s;
  }
  void rotate_columns(c128* m, int64_t k, int64_t rows, c128 c, c128 r) {
    for (int64_t i = 0; i < rows; i++) {
      c128* pair = m + i * n + k;
      const c128 u = pair[0];
      const c128 v = pair[1];
      pair[0] = u * c + v * r;
      pair[1] = v * conj_of(c) - u * conj_of(r);
    }
  }

  bool make_triangular() {
    int64_t last = n - 1;
    int steps = 0;
    while (last > 0) {
      int64_t from = last;
      while (from > 0) {
        const double beside = size_of(at(from, from - 1));
        const double about = size_of(at(from, from)) + size_of(at(from - 1, from - 1));
        if (beside <= kEpsilon * about || beside < 0x1p-1000) break;
        from--;
      }
      if (from > 0) at(from, from - 1) = {0, 0};
      if (from == last) {
        last--;
        steps = 0;
        continue;
      }
      if (steps++ == kMaxQrSteps) return false;
      const c128 unusual = {size_of(at(last, last - 1)) + at(last, last).re, at(last, last).im};
      step(from, last, steps % 10 ? shift_of(last) : unusual);
    }
    for (int64_t i = 0; i < n; i++) w[i] = at(i, i);
    return true;
  }

  // Solves (T - w[k]) x = 0 with x[k] = 1.
  void back_substitute(int64_t k, c128* x) {
    for (int64_t i = 0; i <= k; i++) x[i] = i == k ? c128{1, 0} : -at(i, k);
    for (int64_t i = k - 1; i >= 0; i--) {
      c128 by = at(i, i) - w[k];
      if (size_of(by) < kEpsilon) by = {kEpsilon, 0};
      x[i] = x[i] / by;
      for (int64_t j = 0; j < i; j++) x[j] = x[j] - x[i] * at(j, i);
      if (size_of(x[i]) < 0x1p300) continue;
      const double shrink = 1 / size_of(x[i]);
      for (int64_t j = 0; j <= k; j++) x[j] = x[j] * shrink;
    }
  }

  // Norm 1, the largest element real.
  static void normalise(c128* v, int64_t n) {
    double top = 0;
    for (int64_t i = 0; i < n; i++) top = max(top, size_of(v[i]));
    double sum = 0;
    int64_t best = 0;
    for (int64_t i = 0; i < n; i++) {
      v[i] = v[i] * (1 / top);
      sum += square_of(v[i]);
      if (square_of(v[i]) > square_of(v[best])) best = i;
    }
    const c128 phase = conj_of(v[best]) * (1 / (modulus(v[best]) * __builtin_sqrt(sum)));
    for (int64_t i = 0; i < n; i++) v[i] = v[i] * phase;
    v[best].im = 0;
  }

  // From the last to the first, so that a vector may take the place of its column.
  void make_vectors() {
    c128* x = work;
    c128* v = work + n;
    for (int64_t k = n - 1; k >= 0; k--) {
      back_substitute(k, x);
      for (int64_t i = 0; i < n; i++) {
        v[i] = {0, 0};
        for (int64_t j = 0; j <= k; j++) v[i] = v[i] + z[i * n + j] * x[j];
      }
      normalise(v, n);
      for (int64_t i = 0; i < n; i++) z[i * n + k] = v[i];
    }
  }

  void copy_conjugate(int64_t to, int64_t from) {
    w[to] = conj_of(w[from]);
    for (int64_t i = 0; z && i < n; i++) z[i * n + to] = conj_of(z[i * n + from]);
  }
  void exchange(int64_t i, int64_t k) {
    swap_rows(w + i, w + k, 1);
    for (int64_t r = 0; z && r < n; r++) swap_rows(z + r * n + i, z + r * n + k, 1);
  }
  // Real matrices: makes the eigenvalues real or neighbouring pairs of conjugates, which they are
  // up to rounding. An eigenvalue is real unless another is nearer to its conjugate.
  void pair_conjugates() {
    for (int64_t i = 0; i < n; i++) {
      int64_t best = i;
      for (int64_t k = i + 1; k < n; k++)
        if (size_of(w[k] - conj_of(w[i])) < size_of(w[best] - conj_of(w[i]))) best = k;
      const bool tiny = __builtin_fabs(w[i].im) < 64 * kEpsilon;  // the matrix is scaled to 1
      if (best == i || tiny) {
        w[i].im = 0;
        for (int64_t r = 0; z && r < n; r++) work[r] = {z[r * n + i].re, 0};
        if (!z) continue;
        normalise(work, n);
        for (int64_t r = 0; r < n; r++) z[r * n + i] = work[r];
        continue;
      }
      if (best != i + 1) exchange(best, i + 1);
      if (w[i].im < 0) exchange(i, i + 1);
      copy_conjugate(i + 1, i);
      i++;
    }
  }

  bool run(bool real) {
    make_hessenberg();
    if (!make_triangular()) return false;
    if (z) make_vectors();
    if (real) pair_conjugates();
    return true;
  }
};

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(eig)(const void* plan, int64_t begin, int64_t end) noexcept {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  const int64_t n = p.n;
  for (int64_t i = begin; i < end; i++) {
    c128* a = matrix_of<c128>(p.a, i, n * n);
    c128* b = p.vectors ? matrix_of<c128>(p.b, i, n * n) : nullptr;
    c128* w = matrix_of<c128>(p.w, i, n);
    const double by = scale_of(reinterpret_cast<double*>(a), 2 * n * n);
    if (by > 0) multiply_row(reinterpret_cast<double*>(a), 2 * n * n, by);
    Schur schur = {a, b, w, reinterpret_cast<c128*>(p.work + i * p.work_size), n};
    p.info[i] = by >= 0 && schur.run(p.real) ? 0 : 1;
    const double back = by > 0 ? 1 / by : 1;
    for (int64_t k = 0; k < n; k++) w[k] = p.info[i] ? c128{__builtin_nan(""), 0} : w[k] * back;
    for (int64_t k = 0; p.info[i] && b && k < n * n; k++) b[k] = {__builtin_nan(""), 0};
  }
  return TT_OK;
}

TT_ENTRY_END
