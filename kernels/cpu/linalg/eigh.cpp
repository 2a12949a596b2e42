// eigh: eigenvalues and eigenvectors of Hermitian matrices. Householder reflections make a real
// tridiagonal matrix, whose eigenvalues QL steps with implicit shifts find (Golub & Van Loan,
// "Matrix Computations", section 8.3; Bowdler, Martin, Reinsch & Wilkinson, Numer. Math. 11
// (1968)).
//
//   a: (n, n), one triangle of which is read; overwritten    w: (n), ascending
//   b: (n, n), the eigenvectors as columns, if `vectors`    work: (3 n), info: (1)
#include "kernels/cpu/linalg/dense.h"

TT_ISA_BEGIN

constexpr int kMaxSteps = 60;  // for one eigenvalue; two are usual

// p = s x - … : (x, y) = (c x - s y, s x + c y)
template <class T> TT_INLINE void rotate_rows(T* x, T* y, int64_t n, double c, double s) {
  double* p = reinterpret_cast<double*>(x);
  double* q = reinterpret_cast<double*>(y);
  for (int64_t i = 0; i < n * kParts<T>; i++) {
    const double u = p[i];
    const double v = q[i];
    p[i] = c * u - s * v;
    q[i] = s * u + c * v;
  }
}

template <class T> struct Hermitian {
  T* a;
  T* z;  // rows: the eigenvectors; NULL: none
  T* tau;
  T* p;
  double* d;  // the diagonal
  double* e;  // beside it
  int64_t n;

  void fill_other_triangle(bool upper) {
    for (int64_t i = 0; i < n; i++) {
      a[i * n + i] = from_real<T>(real_part(a[i * n + i]));
      for (int64_t j = 0; j < i; j++) {
        if (upper) a[i * n + j] = conj_of(a[j * n + i]);
        else a[j * n + i] = conj_of(a[i * n + j]);
      }
    }
  }

  // Leaves reflector k in row k, right of the diagonal.
  void make_tridiagonal() {
    for (int64_t k = 0; k < n; k++) {
      d[k] = real_part(a[k * n + k]);
      e[k] = 0;
      const int64_t rest = n - k - 1;
      if (rest == 0) break;
      T* v = a + k * n + k + 1;
      T* block = v + n;
      for (int64_t i = 0; i < rest; i++) v[i] = a[(k + 1 + i) * n + k];
      tau[k] = reflect(v, rest, 1);
      e[k] = real_part(v[0]);
      v[0] = from_real<T>(1);
      if (size_of(tau[k]) == 0) continue;
      for (int64_t i = 0; i < rest; i++) {
        const T* row = block + i * n;
        T sum = from_real<T>(0);
        for (int64_t j = 0; j < rest; j++) sum = sum + row[j] * v[j];
        p[i] = tau[k] * sum;
      }
      const T half = tau[k] * dot(p, v, rest) * -0.5;
      for (int64_t i = 0; i < rest; i++) p[i] = p[i] + half * v[i];
      for (int64_t i = 0; i < rest; i++) {
        T* row = block + i * n;
        for (int64_t j = 0; j < rest; j++)
          row[j] = row[j] - (v[i] * conj_of(p[j]) + p[i] * conj_of(v[j]));
      }
    }
  }

  void make_vectors() {
    set_identity(z, n, n);
    for (int64_t k = n - 2; k >= 0; k--) {
      const int64_t rest = n - k - 1;
      const T* v = a + k * n + k + 1;
      for (int64_t r = k + 1; r < n; r++) {
        T* column = z + r * n + k + 1;
        subtract_row(column, v, rest, tau[k] * dot(v, column, rest));
      }
    }
  }

  bool is_split(int64_t i) const {
    const double beside = __builtin_fabs(e[i]);
    return beside <= 0x1p-53 * (__builtin_fabs(d[i]) + __builtin_fabs(d[i + 1])) ||
           beside < 0x1p-1000;
  }

  // One QL step on rows [from, to].
  void step(int64_t from, int64_t to) {
    double g = (d[from + 1] - d[from]) / (2 * e[from]);
    double r = __builtin_sqrt(g * g + 1);
    g = d[to] - d[from] + e[from] / (g + (g < 0 ? -r : r));
    double s = 1;
    double c = 1;
    double shift = 0;
    for (int64_t i = to - 1; i >= from; i--) {
      const double f = s * e[i];
      const double b = c * e[i];
      r = __builtin_sqrt(f * f + g * g);
      e[i + 1] = r;
      if (r == 0) {
        d[i + 1] -= shift;
        e[to] = 0;
        return;
      }
      s = f / r;
      c = g / r;
      g = d[i + 1] - shift;
      r = (d[i] - g) * s + 2 * c * b;
      shift = s * r;
      d[i + 1] = g + shift;
      g = c * r - b;
      if (z) rotate_rows(z + i * n, z + (i + 1) * n, n, c, s);
    }
    d[from] -= shift;
    e[from] = g;
    e[to] = 0;
  }

  bool diagonalise() {
    for (int64_t from = 0; from < n; from++) {
      for (int steps = 0;; steps++) {
        int64_t to = from;
        while (to < n - 1 && !is_split(to)) to++;
        if (to == from) break;
        if (steps == kMaxSteps) return false;
        step(from, to);
      }
    }
    return true;
  }

  void sort() {
    for (int64_t i = 0; i < n; i++) {
      int64_t best = i;
      for (int64_t k = i + 1; k < n; k++) best = d[k] < d[best] ? k : best;
      if (best == i) continue;
      const double t = d[i];
      d[i] = d[best];
      d[best] = t;
      if (z) swap_rows(z + i * n, z + best * n, n);
    }
  }

  void transpose() {
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < i; j++) {
        const T t = z[i * n + j];
        z[i * n + j] = z[j * n + i];
        z[j * n + i] = t;
      }
  }
};

struct Eigh {
  template <class T> static void run(const MatrixPlan& p, int64_t at) {
    const int64_t n = p.n;
    T* work = reinterpret_cast<T*>(p.work + at * p.work_size);
    Hermitian<T> h;
    h.a = matrix_of<T>(p.a, at, n * n);
    h.z = p.vectors ? matrix_of<T>(p.b, at, n * n) : nullptr;
    h.tau = work;
    h.p = work + n;
    h.e = reinterpret_cast<double*>(work + 2 * n);
    h.d = p.w + at * n;
    h.n = n;
    h.fill_other_triangle(p.upper);
    double* parts = reinterpret_cast<double*>(h.a);
    const int64_t n_parts = n * n * kParts<T>;
    const double by = scale_of(parts, n_parts);
    p.info[at] = by >= 0 ? 0 : 1;
    if (by > 0) multiply_row(parts, n_parts, by);
    if (by >= 0) {
      h.make_tridiagonal();
      if (h.z) h.make_vectors();
      if (!h.diagonalise()) p.info[at] = 1;
    }
    if (p.info[at]) {
      for (int64_t i = 0; i < n; i++) h.d[i] = __builtin_nan("");
      for (int64_t i = 0; h.z && i < n * n; i++) h.z[i] = from_real<T>(__builtin_nan(""));
      return;
    }
    h.sort();
    if (h.z) h.transpose();
    for (int64_t i = 0; by > 0 && i < n; i++) h.d[i] /= by;
  }
};

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(eigh)(const void* plan, int64_t begin, int64_t end) noexcept {
  return each_matrix<Eigh>(plan, begin, end);
}

TT_ENTRY_END
