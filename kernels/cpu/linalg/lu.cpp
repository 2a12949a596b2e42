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
    const int64_t steps = min(m, n);
    read_matrices(a, p, first);
    for (int64_t k = 0; k < steps; k++) {
      F pivot = a[k * n + k];
      const F best = find_pivot(a, k, m, n, &pivot);
      for (int64_t lane = 0; lane < L; lane++)
        p.pivots[(first + lane) * steps + k] = int32_t(best[lane]) + 1;
      if (any_of(pivot == 0)) return false;
      eliminate(a, best, pivot, k, m, n);
    }
    write_matrices(p, first, a);
    const int32_t* pivots = p.pivots + first * steps;
    if (p.floats) exchange_factors(float_results(p) + first * m * n, pivots, steps, m, n);
    else exchange_factors(matrix_of<double>(p.a, first, m * n), pivots, steps, m, n);
    for (int64_t lane = 0; lane < L; lane++) {
      p.info[first + lane] = 0;
      if (p.det) write_sign(p, first + lane);
    }
    return true;
  }
  // Returns the first row from k on whose element of column k, the pivot, is largest, nan only in
  // row k. `pivot` is the element of row k before.
  static F find_pivot(const F* a, int64_t k, int64_t m, int64_t n, F* pivot) {
    F number = splat(double(k));
    F best = number;
    F top = size_of(*pivot);
    for (int64_t i = k + 1; i < m; i++) {
      const F x = a[i * n + k];
      const F size = size_of(x);
      const Mask more = size > top;
      number = number + splat(1.0);
      top = chosen(more, size, top);
      best = chosen(more, number, best);
      *pivot = chosen(more, x, *pivot);
    }
    return best;
  }
  // Exchanges row k of each matrix with row `best`, from column k on, and subtracts its multiples
  // from the rows below. The factors left of column k wait for exchange_factors().
  static void eliminate(F* a, F best, F pivot, int64_t k, int64_t m, int64_t n) {
    const F corner = a[k * n + k];
    const F by = splat(1.0) / pivot;
    a[k * n + k] = pivot;
    each_below(best, k, m, [&](int64_t i, Mask here) TT_INLINE_BODY {
      F& factor = a[i * n + k];
      factor = chosen(here, corner, factor) * by;
    });
    constexpr int kWide = TT_VEC_BYTES > 32 ? 8 : 4;
    each_columns<kWide>(n - k - 1, [&]<int kWidth>(int64_t at) TT_INLINE_BODY {
      F* columns = a + k + 1 + at;
      F old[kWidth];
      F top[kWidth];
      for (int c = 0; c < kWidth; c++) old[c] = top[c] = columns[k * n + c];
      each_below(best, k, m, [&](int64_t i, Mask here) TT_INLINE_BODY {
        for (int c = 0; c < kWidth; c++) top[c] = chosen(here, columns[i * n + c], top[c]);
      });
      for (int c = 0; c < kWidth; c++) columns[k * n + c] = top[c];
      each_below(best, k, m, [&](int64_t i, Mask here) TT_INLINE_BODY {
        const F factor = a[i * n + k];
        F* row = columns + i * n;
        for (int c = 0; c < kWidth; c++) row[c] = chosen(here, old[c], row[c]) - factor * top[c];
      });
    });
  }
  // Calls run(i, lanes whose `best` is i) for the rows below row k.
  template <class Run>
  static TT_INLINE void each_below(F best, int64_t k, int64_t m, const Run& run) {
    const F one = splat(1.0);
    F number = splat(double(k + 1));
    for (int64_t i = k + 1; i < m; i++, number = number + one) run(i, best == number);
  }
  // Exchanges what is left of the diagonal in the rows of L matrices.
  template <class T>
  static void exchange_factors(T* a, const int32_t* pivots, int64_t steps, int64_t m, int64_t n) {
    for (int64_t k = 1; k < steps; k++)
      for (int64_t lane = 0; lane < L; lane++) {
        T* matrix = a + lane * m * n;
        const int64_t other = pivots[lane * steps + k] - 1;
        swap_parts(matrix + k * n, matrix + other * n, k);
      }
  }
  template <class T> static TT_INLINE void swap_parts(T* x, T* y, int64_t n) {
    for (int64_t at = 0; at < n; at += kLanes<T>) {
      const Part<T> part(int(min(n - at, int64_t(kLanes<T>))));
      const Vec<T> from = load(x + at, part);
      store(x + at, load(y + at, part), part);
      store(y + at, from, part);
    }
  }
  static void write_sign(const MatrixPlan& p, int64_t at) {
    const int32_t* pivots = p.pivots + at * p.n;
    bool odd = false;
    for (int64_t k = 0; k < p.n; k++) odd ^= pivots[k] != k + 1;
    write_determinant(matrix_of<double>(p.a, at, p.n * p.n), p.n, odd, p.det + at * 6);
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
