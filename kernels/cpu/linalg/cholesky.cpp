// cholesky: A = U^H U, the outer products of the rows of U (Golub & Van Loan, "Matrix
// Computations", section 4.2).
//
//   a: (n, n), one triangle of which is read; replaced by U or, unless `upper`, by U^H
//   info: (1): the size of the first leading block that is not positive definite, or 0
//
// solve_triangular: A X = B.
//
//   a: (n, n), one triangle of which is read    b: (n, k), B, replaced by X
#include "kernels/cpu/linalg/dense.h"

TT_ISA_BEGIN

struct Cholesky {
  // Writes the conjugates of one triangle into the other.
  template <class T> static void reflect_triangle(T* a, int64_t n, bool to_upper) {
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < i; j++) {
        if (to_upper) a[j * n + i] = conj_of(a[i * n + j]);
        else a[i * n + j] = conj_of(a[j * n + i]);
      }
  }
  template <class T> static void run(const MatrixPlan& p, int64_t at) {
    const int64_t n = p.n;
    T* a = matrix_of<T>(p.a, at, n * n);
    p.info[at] = 0;
    if (!p.upper) reflect_triangle(a, n, true);
    for (int64_t k = 0; k < n; k++) {
      T* row = a + k * n;
      const double square = real_part(row[k]);
      if (!(square > 0)) {
        p.info[at] = int32_t(k + 1);
        break;
      }
      const double root = __builtin_sqrt(square);
      row[k] = from_real<T>(root);
      multiply_row(row + k + 1, n - k - 1, from_real<T>(1 / root));
      for (int64_t i = k + 1; i < n; i++)
        subtract_row(a + i * n + i, row + i, n - i, conj_of(row[i]));
    }
    if (!p.upper) reflect_triangle(a, n, false);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < i; j++) a[p.upper ? i * n + j : j * n + i] = from_real<T>(0);
  }
};

struct SolveTriangular {
  template <class T> static void run(const MatrixPlan& p, int64_t at) {
    const int64_t n = p.n;
    const int64_t k = p.k;
    const T* a = matrix_of<T>(p.a, at, n * n);
    T* b = matrix_of<T>(p.b, at, n * k);
    for (int64_t step = 0; step < n; step++) {
      const int64_t i = p.upper ? n - 1 - step : step;
      const int64_t from = p.upper ? i + 1 : 0;
      const int64_t to = p.upper ? n : i;
      for (int64_t j = from; j < to; j++) subtract_row(b + i * k, b + j * k, k, a[i * n + j]);
      if (!p.unit) multiply_row(b + i * k, k, from_real<T>(1) / a[i * n + i]);
    }
  }
};

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(cholesky)(const void* plan, int64_t begin, int64_t end) noexcept {
  return each_matrix<Cholesky>(plan, begin, end);
}
TT_KERNEL(solve_triangular)(const void* plan, int64_t begin, int64_t end) noexcept {
  return each_matrix<SolveTriangular>(plan, begin, end);
}

TT_ENTRY_END
