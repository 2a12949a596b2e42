// lu_factor and lu_solve, a thread for each matrix, or for each group.
#include "kernels/functors/linalg/lu.h"

#include "kernels/cpu/linalg/groups.h"

TT_ISA_BEGIN

struct LuFactorGroup {
  static constexpr bool kReadsFloats = true;
#if TT_VEC_BYTES > 16
  // room: (m, n). A pivot of 0 leaves its row as it is, which a group cannot.
  static bool run(const MatrixPlan& p, int64_t first, F* a) {
    const int64_t m = p.m;
    const int64_t n = p.n;
    const int64_t steps = m < n ? m : n;
    bool odd[L] = {};
    read_matrices(a, p, first);
    for (int64_t k = 0; k < steps; k++) {
      F* row = a + k * n;
      const F best = exchange(a, k, m, n);
      for (int64_t lane = 0; lane < L; lane++) {
        const int64_t other = int64_t(best[lane]);
        p.pivots[(first + lane) * steps + k] = int32_t(other + 1);
        odd[lane] ^= other != k;
      }
      if (any_of(row[k] == 0)) return false;
      const F by = splat(1.0) / row[k];
      for (int64_t i = k + 1; i < m; i++) {
        F* other = a + i * n;
        other[k] = other[k] * by;
        subtract_numbers(other + k + 1, row + k + 1, n - k - 1, other[k]);
      }
    }
    write_matrices(p, first, a);
    for (int64_t lane = 0; lane < L; lane++) {
      p.info[first + lane] = 0;
      if (!p.det) continue;
      const double* factors = matrix_of<double>(p.a, first + lane, m * n);
      write_determinant(factors, n, odd[lane], p.det + (first + lane) * 6);
    }
    return true;
  }
  // Exchanges row k of each matrix with the first row from k on whose element k is largest, nan
  // only in row k. Returns that row's number.
  static F exchange(F* a, int64_t k, int64_t m, int64_t n) {
    F top = size_of(a[k * n + k]);
    F best = splat(double(k));
    for (int64_t i = k + 1; i < m; i++) {
      const F size = size_of(a[i * n + k]);
      const Mask more = size > top;
      top = chosen(more, size, top);
      best = chosen(more, splat(double(i)), best);
    }
    F* row = a + k * n;
    for (int64_t i = k + 1; i < m; i++) {
      const Mask here = best == splat(double(i));
      if (!any_of(here)) continue;
      F* other = a + i * n;
      for (int64_t j = 0; j < n; j++) {
        const F x = row[j];
        row[j] = chosen(here, other[j], x);
        other[j] = chosen(here, x, other[j]);
      }
    }
    return best;
  }
#endif
};

struct LuSolveGroup {
  static constexpr bool kReadsFloats = false;
#if TT_VEC_BYTES > 16
  // room: (n, n), L and U, and (n, k), B
  static bool run(const MatrixPlan& p, int64_t first, F* a) {
    if (p.adjoint) return false;
    const int64_t n = p.n;
    const int64_t k = p.k;
    F* b = a + n * n;
    double* results = matrix_of<double>(p.b, first, n * k);
    for (int64_t lane = 0; lane < L; lane++)
      for (int64_t i = 0; i < n; i++)
        LuSolve::exchange(Team(), results + lane * n * k, p.pivots + (first + lane) * n, i, n, k);
    read_group(a, matrix_of<double>(p.a, first, n * n), n * n);
    read_group(b, results, n * k);
    for (int64_t i = 1; i < n; i++) subtract_rows(b, i, a + i * n, 0, i, k);
    for (int64_t i = n - 1; i >= 0; i--) {
      subtract_rows(b, i, a + i * n, i + 1, n, k);
      const F by = splat(1.0) / a[i * n + i];
      for (int64_t c = 0; c < k; c++) b[i * k + c] = b[i * k + c] * by;
    }
    write_group(results, b, n * k);
    return true;
  }
#endif
};

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(lu_factor)(const void* plan, int64_t begin, int64_t end) noexcept {
  return in_groups<LuFactorGroup, LuFactor>(plan, begin, end);
}
TT_KERNEL(lu_solve)(const void* plan, int64_t begin, int64_t end) noexcept {
  return in_groups<LuSolveGroup, LuSolve>(plan, begin, end);
}

TT_ENTRY_END
