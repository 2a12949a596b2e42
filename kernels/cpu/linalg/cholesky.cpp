// cholesky and solve_triangular, a thread for each matrix, or for each group.
#include "kernels/functors/linalg/cholesky.h"

#include "kernels/cpu/linalg/groups.h"

TT_ISA_BEGIN

struct CholeskyGroup {
#if TT_VEC_BYTES > 16
  // room: (n, n). A matrix that is not positive definite ends early by itself, so not in a group.
  static bool run(const MatrixPlan& p, int64_t first, F* a) {
    const int64_t n = p.n;
    double* matrices = matrix_of<double>(p.a, first, n * n);
    read_group(a, matrices, n * n);
    if (!p.upper) copy_triangle(a, n, true);
    for (int64_t k = 0; k < n; k++) {
      F* row = a + k * n;
      if (any_of(~(row[k] > 0))) return false;
      row[k] = vsqrt(row[k]);
      const F by = splat(1.0) / row[k];
      for (int64_t j = k + 1; j < n; j++) row[j] = row[j] * by;
      for (int64_t i = k + 1; i < n; i++) subtract_numbers(a + i * n + i, row + i, n - i, row[i]);
    }
    if (!p.upper) copy_triangle(a, n, false);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < i; j++) a[p.upper ? i * n + j : j * n + i] = F{};
    write_group(matrices, a, n * n);
    for (int64_t lane = 0; lane < L; lane++) p.info[first + lane] = 0;
    return true;
  }
  static void copy_triangle(F* a, int64_t n, bool to_upper) {
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < i; j++) {
        if (to_upper) a[j * n + i] = a[i * n + j];
        else a[i * n + j] = a[j * n + i];
      }
  }
#endif
};

struct TriangularGroup {
#if TT_VEC_BYTES > 16
  // room: (n, n), A, and (n, k), B
  static bool run(const MatrixPlan& p, int64_t first, F* a) {
    const int64_t n = p.n;
    const int64_t k = p.k;
    F* b = a + n * n;
    double* results = matrix_of<double>(p.b, first, n * k);
    read_group(a, matrix_of<double>(p.a, first, n * n), n * n);
    read_group(b, results, n * k);
    for (int64_t step = 0; step < n; step++) {
      const int64_t i = p.upper ? n - 1 - step : step;
      const int64_t from = p.upper ? i + 1 : 0;
      const int64_t to = p.upper ? n : i;
      subtract_rows(b, i, a + i * n, from, to, k);
      const F by = splat(1.0) / a[i * n + i];
      for (int64_t c = 0; !p.unit && c < k; c++) b[i * k + c] = b[i * k + c] * by;
    }
    write_group(results, b, n * k);
    return true;
  }
#endif
};

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(cholesky)(const void* plan, int64_t begin, int64_t end) noexcept {
  return in_groups<CholeskyGroup, Cholesky>(plan, begin, end);
}
TT_KERNEL(solve_triangular)(const void* plan, int64_t begin, int64_t end) noexcept {
  return in_groups<TriangularGroup, SolveTriangular>(plan, begin, end);
}

TT_ENTRY_END
