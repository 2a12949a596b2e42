// cholesky and solve_triangular, a thread for each matrix, or for each group.
#include "kernels/functors/linalg/cholesky.h"

#include "kernels/cpu/linalg/groups.h"

TT_ISA_BEGIN

struct CholeskyGroup {
  static constexpr bool kReadsFloats = true;
#if TT_VEC_BYTES > 16
  // room: (n, n). A matrix that is not positive definite ends early by itself, so not in a group.
  // Row k of U is row k of A less its products with the rows above, scaled. Where U^T of real
  // matrices is wanted, rows are columns, and the lower triangle is replaced.
  template <class N> static bool run(const MatrixPlan& p, int64_t first, N* a) {
    constexpr bool kTakesLower = kPartsOf<N> == 1;
    const int64_t n = p.n;
    const bool upper = p.upper || !kTakesLower;
    const int64_t across = upper ? 1 : n;
    const int64_t down = upper ? n : 1;
    read_matrices(a, p, first);
    if (upper != p.upper) conjugate_triangle(a, n, true);
    for (int64_t k = 0; k < n; k++) {
      N by = {};
      F root = {};
      const N* above = a + k * across;
      each_columns<kColumns<N>, kShrink<N>>(n - k, [&]<int kWidth>(int64_t at) TT_INLINE_BODY {
        N* row = a + k * down + (k + at) * across;
        N sums[kWidth];
        for (int c = 0; c < kWidth; c++) sums[c] = row[c * across];
        for (int64_t i = 0; i < k; i++) {
          const N factor = conj_of(above[i * down]);
          for (int c = 0; c < kWidth; c++)
            sums[c] = take_product(factor, above[i * down + (at + c) * across], sums[c]);
        }
        if (at == 0) {
          root = vsqrt(real_part(sums[0]));
          by = from_real_lanes<N>(splat(1.0) / root);
        }
        for (int c = 0; c < kWidth; c++) row[c * across] = sums[c] * by;
      });
      if (any_of(~(root > 0))) return false;
      a[k * (n + 1)] = from_real_lanes<N>(root);
    }
    if (upper != p.upper) conjugate_triangle(a, n, false);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < i; j++) a[p.upper ? i * n + j : j * n + i] = N{};
    write_matrices(p, first, a);
    for (int64_t lane = 0; lane < L; lane++) p.info[first + lane] = 0;
    return true;
  }
  template <class N> static void conjugate_triangle(N* a, int64_t n, bool to_upper) {
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < i; j++) {
        if (to_upper) a[j * n + i] = conj_of(a[i * n + j]);
        else a[i * n + j] = conj_of(a[j * n + i]);
      }
  }
#endif
};

struct TriangularGroup {
  static constexpr bool kReadsFloats = false;
#if TT_VEC_BYTES > 16
  // room: (n, n), A, and (n, k), B
  template <class N> static bool run(const MatrixPlan& p, int64_t first, N* a) {
    const int64_t n = p.n;
    const int64_t k = p.k;
    N* b = a + n * n;
    read_numbers(a, p.a, first, n * n);
    read_numbers(b, p.b, first, n * k);
    for (int64_t step = 0; step < n; step++) {
      const int64_t i = p.upper ? n - 1 - step : step;
      const int64_t from = p.upper ? i + 1 : 0;
      const int64_t to = p.upper ? n : i;
      subtract_rows(b, i, a + i * n, from, to, k);
      const N by = inverse_of(a[i * n + i]);
      for (int64_t c = 0; !p.unit && c < k; c++) b[i * k + c] = b[i * k + c] * by;
    }
    write_numbers(p.b, first, b, n * k);
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
