// cholesky and solve_triangular, a thread for each matrix, or for each group.
#include "kernels/functors/linalg/cholesky.h"

#include "kernels/cpu/linalg/groups.h"

TT_ISA_BEGIN

struct CholeskyGroup {
  static constexpr bool kReadsFloats = true;
#if TT_VEC_BYTES > 16
  // room: (n, n). A matrix that is not positive definite ends early by itself, so not in a group.
  // Row k of U is row k of A less its products with the rows above, scaled. It replaces the
  // triangle of A that is read; rows are columns there for U^T.
  static bool run(const MatrixPlan& p, int64_t first, F* a) {
    const int64_t n = p.n;
    const int64_t across = p.upper ? 1 : n;
    const int64_t down = p.upper ? n : 1;
    read_matrices(a, p, first);
    for (int64_t k = 0; k < n; k++) {
      F by = {};
      F root = {};
      const F* above = a + k * across;
      each_columns(n - k, [&]<int kWidth>(int64_t at) TT_INLINE_BODY {
        F* row = a + k * down + (k + at) * across;
        F sums[kWidth];
        for (int c = 0; c < kWidth; c++) sums[c] = row[c * across];
        for (int64_t i = 0; i < k; i++)
          for (int c = 0; c < kWidth; c++)
            sums[c] = sums[c] - above[i * down] * above[i * down + (at + c) * across];
        if (at == 0) {
          root = vsqrt(sums[0]);
          by = splat(1.0) / root;
        }
        for (int c = 0; c < kWidth; c++) row[c * across] = sums[c] * by;
      });
      if (any_of(~(root > 0))) return false;
      a[k * (n + 1)] = root;
    }
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < i; j++) a[i * down + j * across] = F{};
    write_matrices(p, first, a);
    for (int64_t lane = 0; lane < L; lane++) p.info[first + lane] = 0;
    return true;
  }
#endif
};

struct TriangularGroup {
  static constexpr bool kReadsFloats = false;
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
