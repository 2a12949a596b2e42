// lu_factor and lu_solve, a thread for each matrix, or for each group.
#include "kernels/functors/linalg/lu.h"

#include "kernels/cpu/linalg/groups.h"

TT_ISA_BEGIN

#if TT_VEC_BYTES > 16
// Replaces b, (n, k), by the solution of U X = b.
template <class N> static void substitute_back(N* b, const N* a, int64_t n, int64_t k) {
  for (int64_t i = n - 1; i >= 0; i--) {
    subtract_rows(b, i, a + i * n, i + 1, n, k);
    const N by = inverse_of(a[i * n + i]);
    for (int64_t c = 0; c < k; c++) b[i * k + c] = b[i * k + c] * by;
  }
}
#endif

struct LuFactorGroup {
  static constexpr bool kReadsFloats = true;
#if TT_VEC_BYTES > 16
  // room: (m, n), and (n, k), B, if it is to be solved with. A pivot of 0 leaves its row as it is,
  // which a group cannot.
  template <class N> static bool run(const MatrixPlan& p, int64_t first, N* a) {
    if constexpr (kPartsOf<N> == 2 && L < 8) return false;  // one by one is as quick
    const int64_t m = p.m;
    const int64_t n = p.n;
    const int64_t steps = min(m, n);
    N* const b = a + m * n;
    read_matrices(a, p, first);
    if (p.b) read_sides(b, p, first);
    for (int64_t k = 0; k < steps; k++) {
      N pivot = a[k * n + k];
      const F best = find_pivot(a, k, m, n, &pivot);
      for (int64_t lane = 0; lane < L; lane++)
        p.pivots[(first + lane) * steps + k] = int32_t(best[lane]) + 1;
      if (any_of(size_of(pivot) == 0)) return false;
      make_factors(a, best, pivot, k, m, n);
      eliminate(a + k + 1, n - k - 1, n, best, a + k, k, m, n);
      if (p.b) eliminate(b, p.k, p.k, best, a + k, k, m, n);
    }
    if (p.b) {
      substitute_back(b, a, n, p.k);
      write_results(p, p.b, first, b, n * p.k);
    }
    if (!p.unit) write_factors(p, first, a);
    for (int64_t lane = 0; lane < L; lane++) p.info[first + lane] = 0;
    return true;
  }
  template <class N> static void read_sides(N* b, const MatrixPlan& p, int64_t first) {
    if (p.unit) return set_identities(b, p.n, p.k);
    const int64_t parts = p.n * p.k * kPartsOf<N>;
    if (p.floats) read_group(b, reinterpret_cast<float*>(p.b) + first * parts, parts);
    else read_group(b, p.b + first * parts, parts);
  }
  template <class N> static void write_factors(const MatrixPlan& p, int64_t first, const N* a) {
    write_matrices(p, first, a);
    const int64_t words = kPartsOf<N> * (p.floats ? 1 : 2);
    auto* results = reinterpret_cast<int32_t*>(p.a) + first * p.m * p.n * words;
    exchange_factors(results, p.pivots + first * min(p.m, p.n), p, words);
    if (!p.det) return;
    for (int64_t lane = 0; lane < L; lane++) {
      if constexpr (kPartsOf<N> == 2) write_sign<c128>(p, first + lane);
      else write_sign<double>(p, first + lane);
    }
  }
  // Returns the first row from k on whose element of column k, the pivot, is largest, nan only in
  // row k. `pivot` is the element of row k before.
  template <class N> static F find_pivot(const N* a, int64_t k, int64_t m, int64_t n, N* pivot) {
    F number = splat(double(k));
    F best = number;
    F top = size_of(*pivot);
    for (int64_t i = k + 1; i < m; i++) {
      const N x = a[i * n + k];
      const F size = size_of(x);
      const Mask more = size > top;
      number = number + splat(1.0);
      top = chosen(more, size, top);
      best = chosen(more, number, best);
      *pivot = chosen(more, x, *pivot);
    }
    return best;
  }
  // Makes column k, below the diagonal, the factors of the rows below, after an exchange of row k
  // with row `best`. Those left of column k wait for exchange_factors().
  template <class N>
  static void make_factors(N* a, F best, N pivot, int64_t k, int64_t m, int64_t n) {
    const N corner = a[k * n + k];
    const N by = inverse_of(pivot);
    a[k * n + k] = pivot;
    each_below(best, k, m, [&](int64_t i, Mask here) TT_INLINE_BODY {
      N& factor = a[i * n + k];
      factor = chosen(here, corner, factor) * by;
    });
  }
  // Exchanges row k of `width` columns, of rows `stride` apart, with row `best`, and subtracts its
  // multiples from the rows below, of which the factors are n apart.
  template <class N> static TT_ONE_BODY void eliminate(N* all, int64_t width, int64_t stride,
                                                       F best, const N* factors, int64_t k,
                                                       int64_t m, int64_t n) {
    constexpr int kWide = L == 8 ? kColumns<N> : min(kColumns<N>, 4);
    each_columns<kWide, kShrink<N>>(width, [&]<int kWidth>(int64_t at) TT_INLINE_BODY {
      N* columns = all + at;
      N old[kWidth];
      N top[kWidth];
      for (int c = 0; c < kWidth; c++) old[c] = top[c] = columns[k * stride + c];
      each_below(best, k, m, [&](int64_t i, Mask here) TT_INLINE_BODY {
        for (int c = 0; c < kWidth; c++) top[c] = chosen(here, columns[i * stride + c], top[c]);
      });
      for (int c = 0; c < kWidth; c++) columns[k * stride + c] = top[c];
      each_below(best, k, m, [&](int64_t i, Mask here) TT_INLINE_BODY {
        const N factor = factors[i * n];
        N* row = columns + i * stride;
        for (int c = 0; c < kWidth; c++)
          row[c] = take_product(factor, top[c], chosen(here, old[c], row[c]));
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
  // Exchanges what is left of the diagonal in the rows of L matrices, whose numbers are of `words`
  // words.
  static TT_NOINLINE void exchange_factors(int32_t* a, const int32_t* pivots, const MatrixPlan& p,
                                           int64_t words) {
    const int64_t steps = min(p.m, p.n);
    const int64_t row = p.n * words;
    for (int64_t k = 1; k < steps; k++)
      for (int64_t lane = 0; lane < L; lane++) {
        int32_t* matrix = a + lane * p.m * row;
        const int64_t other = pivots[lane * steps + k] - 1;
        swap_words(matrix + k * row, matrix + other * row, k * words);
      }
  }
  static TT_INLINE void swap_words(int32_t* x, int32_t* y, int64_t n) {
    for (int64_t at = 0; at < n; at += kLanes<int32_t>) {
      const Part<int32_t> part(int(min(n - at, int64_t(kLanes<int32_t>))));
      const Vec<int32_t> from = load(x + at, part);
      store(x + at, load(y + at, part), part);
      store(y + at, from, part);
    }
  }
  template <class T> static void write_sign(const MatrixPlan& p, int64_t at) {
    const int32_t* pivots = p.pivots + at * p.n;
    bool odd = false;
    for (int64_t k = 0; k < p.n; k++) odd ^= pivots[k] != k + 1;
    write_determinant(matrix_of<T>(p.a, at, p.n * p.n), p.n, odd, p.det + at * 6);
  }
#endif
};

struct LuSolveGroup {
  static constexpr bool kReadsFloats = false;
#if TT_VEC_BYTES > 16
  // room: (n, n), L and U, and (n, k), B
  template <class N> static bool run(const MatrixPlan& p, int64_t first, N* a) {
    if (p.adjoint) return false;
    const int64_t n = p.n;
    const int64_t k = p.k;
    const int64_t row = k * kPartsOf<N>;
    N* b = a + n * n;
    for (int64_t at = first; at < first + L; at++)
      for (int64_t i = 0; i < n; i++)
        exchange_rows(Team(), p.b + at * n * row, i, int64_t(p.pivots[at * n + i]) - 1, n, row);
    read_numbers(a, p.a, first, n * n);
    read_numbers(b, p.b, first, n * k);
    for (int64_t i = 1; i < n; i++) subtract_rows(b, i, a + i * n, 0, i, k);
    substitute_back(b, a, n, k);
    write_numbers(p.b, first, b, n * k);
    return true;
  }
#endif
};

// lu_factor of one matrix, and, if there is b, lu_solve.
struct LuFactorAndSolve {
  template <class T> static void run(Team t, const MatrixPlan& p, int64_t at) {
    LuFactor::run<T>(t, p, at);
    if (!p.b) return;
    if (p.unit) set_identity(t, matrix_of<T>(p.b, at, p.n * p.k), p.n, p.k);
    LuSolve::run<T>(t, p, at);
  }
};

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(lu_factor)(const void* plan, int64_t begin, int64_t end) noexcept {
  return in_groups<LuFactorGroup, LuFactorAndSolve>(plan, begin, end);
}
TT_KERNEL(lu_solve)(const void* plan, int64_t begin, int64_t end) noexcept {
  return in_groups<LuSolveGroup, LuSolve>(plan, begin, end);
}

TT_ENTRY_END
