// softmax, log_softmax and their backwards, along any dimension of a contiguous array.
//   a, b, out: (outer, dim, inner). Forward: a is x; backward: a is the gradient, b is y
//
// If inner is 1, a row is contiguous. Otherwise kRowTile neighbouring columns are computed at once.
// If dim is long and there are few rows, it is cut into n_chunks; then stage 0 computes the maximum
// and sum of each chunk (parts: [2][outer * inner][n_chunks + 1]), stage 1 combines them, stage 2
// computes the results.
#include "kernels/cpu/softmax/softmax.h"

#include "kernels/cpu/simd/row_primitives.h"
#include "kernels/cpu/simd/short_rows.h"
#include "plan/softmax_plan.h"

TT_ISA_BEGIN

// Steps of a row or tile.
enum Step : int32_t { kMax, kSum, kResult };

// Forward and Backward have
//   row         the steps s of n elements from byte `at` on; kMax sets *top, kSum sets *sum
//   short_rows  all steps of `count` rows of n <= kShortRow floats
//   columns     step kResult of a tile, given its tops and sums

template <class T, bool kLog> struct Forward {
  static TT_NOINLINE void finish_log(T* y, const T* x, T top, T log_sum, int64_t n) {
    TT_VECTORIZE
    for (int64_t j = 0; j < n; j++) y[j] = (x[j] - top) - log_sum;
  }
  // kSum keeps exp(x - top) in `out` if its dtype is T.
  static TT_INLINE void row(const SoftmaxPlan& p, int64_t at, int64_t n, Steps s, T* top, T* sum) {
    const RowIn<T> x{p.a + at, p.dtype};
    const RowOut<T> y{p.out + at, p.dtype};
    alignas(64) T in[kRowBlock], e[kRowBlock];
    const bool keep = !kLog && y.direct();
    if (s.has(kMax)) {
      T largest = kMinusInfinity<T>;
      for_blocks(n, [&](int64_t i, int64_t k) { largest = row_max(x.get(i, k, in), k, largest); });
      *top = largest;
    }
    const T m = *top;
    RowSum<T> lanes;
    if (s.has(kSum)) {
      const T shift = m == kMinusInfinity<T> ? T(0) : m;
      // Prefetches the next row while this one is computed: rows are too short for the hardware to
      // do so.
      const char* next = x.direct() && n <= kRowBlock ? x.p + n * int64_t(sizeof(T)) : nullptr;
      for_blocks(n, [&](int64_t i, int64_t k) {
        row_exp(keep ? y.at(i, e) : e, x.get(i, k, in), shift, k, &lanes, next);
      });
      *sum = row_total(lanes);
    }
    if (!s.has(kResult)) return;
    const T last = kLog ? math::log(*sum) : T(1) / *sum;
    for_blocks(n, [&](int64_t i, int64_t k) {
      T* d = y.at(i, e);
      if constexpr (kLog) {
        finish_log(d, x.get(i, k, in), m, last, k);
      } else {
        if (!keep) row_exp(d, x.get(i, k, in), m, k, &lanes);
        row_scale(d, last, k);
      }
      y.put(i, k, d);
    });
  }

#if TT_VECTOR_MATH
  // Rows whose logarithms are computed as one vector.
  static constexpr int kTogether = 16;
  template <class Row> static TT_INLINE void short_rows(const SoftmaxPlan& p, int64_t at, int64_t n,
                                                        int64_t count, const Row& row) {
    constexpr int N = Row::kN;
    const float* x = reinterpret_cast<const float*>(p.a + at);
    float* y = reinterpret_cast<float*>(p.out + at);
    alignas(64) float tops[kTogether] = {}, sums[kTogether] = {}, logs[kTogether];
    F32v v[N], e[N];
    for (int64_t first = 0; first < count; first += kTogether) {
      const int64_t some = min<int64_t>(count - first, kTogether);
      for (int64_t r = 0; r < some; r++) {
        TT_UNROLL_BY(4)
        for (int k = 0; k < N; k++) v[k] = row.get(x + (first + r) * n, k);
        sums[r] = exponentials(row, v, tops + r, e);
        if constexpr (kLog) continue;
        const F32v factor = splat(1.0f / sums[r]);
        TT_UNROLL_BY(4)
        for (int k = 0; k < N; k++) row.put(y + (first + r) * n, k, e[k] * factor);
      }
      if constexpr (!kLog) continue;
      TT_VECTORIZE
      for (int r = 0; r < kTogether; r++) logs[r] = math::log(sums[r]);
      for (int64_t r = 0; r < some; r++) {
        const F32v top = splat(tops[r]);
        const F32v log = splat(logs[r]);
        TT_UNROLL_BY(4)
        for (int k = 0; k < N; k++)
          row.put(y + (first + r) * n, k, (row.get(x + (first + r) * n, k) - top) - log);
      }
    }
  }
#endif

  static TT_NOINLINE void results(T* y, const T* x, const T* m, const T* last, int64_t n) {
    TT_VECTORIZE
    for (int64_t j = 0; j < n; j++) y[j] = kLog ? (x[j] - m[j]) - last[j] : x[j] * last[j];
  }
  static void columns(const SoftmaxPlan& p, int64_t at, const Columns& c, const T* m,
                      const T* sum) {
    alignas(64) T v[kRowTile], last[kRowTile];
    const bool again = kLog || kItemSize[p.dtype] < 4;  // exp was not kept
    TT_VECTORIZE
    for (int64_t j = 0; j < c.n * c.copies; j++) last[j] = kLog ? math::log(sum[j]) : T(1) / sum[j];
    for_columns(c, [&](int64_t, int64_t i, int64_t n) {
      const T* x = RowIn<T>{(again ? p.a : p.out) + at + i, c.dtype}.get(0, n, v);
      const RowOut<T> out{p.out + at + i, c.dtype};
      T* y = out.at(0, v);
      if (!kLog && again) {
        column_exp(v, x, m, n);
        x = v;
      }
      results(y, x, m, last, n);
      out.put(0, n, y);
    });
  }
};

// softmax: dx = y (g - sum(g y)); log_softmax: dx = g - exp(y) sum(g).
template <class T, bool kLog> struct Backward {
  // e: exp(y) for log_softmax, else y.
  static TT_NOINLINE void dx_of(T* dx, const T* g, const T* e, T sum, int64_t n) {
    TT_VECTORIZE
    for (int64_t j = 0; j < n; j++) dx[j] = kLog ? g[j] - e[j] * sum : e[j] * (g[j] - sum);
  }
  static TT_INLINE void row(const SoftmaxPlan& p, int64_t at, int64_t n, Steps s, T*, T* sum) {
    const RowIn<T> g{p.a + at, p.dtype};
    const RowIn<T> y{p.b + at, p.dtype};
    const RowOut<T> dx{p.out + at, p.dtype};
    alignas(64) T gs[kRowBlock], ys[kRowBlock], e[kRowBlock];
    RowSum<T> lanes;
    if (s.has(kSum)) {
      for_blocks(n, [&](int64_t i, int64_t k) {
        if constexpr (kLog) row_add(&lanes, g.get(i, k, gs), k);
        else row_add_products(&lanes, g.get(i, k, gs), y.get(i, k, ys), k);
      });
      *sum = row_total(lanes);
    }
    if (!s.has(kResult)) return;
    for_blocks(n, [&](int64_t i, int64_t k) {
      const T* a = g.get(i, k, gs);
      const T* b = y.get(i, k, ys);
      T* d = dx.at(i, gs);
      if constexpr (kLog) row_exp(e, b, T(0), k, &lanes);
      dx_of(d, a, kLog ? e : b, *sum, k);
      dx.put(i, k, d);
    });
  }

#if TT_VECTOR_MATH
  template <class Row> static TT_INLINE void short_rows(const SoftmaxPlan& p, int64_t at, int64_t n,
                                                        int64_t count, const Row& row) {
    constexpr int N = Row::kN;
    const float* g = reinterpret_cast<const float*>(p.a + at);
    const float* y = reinterpret_cast<const float*>(p.b + at);
    float* dx = reinterpret_cast<float*>(p.out + at);
    F32v gs[N], ys[N], terms[N];
    for (int64_t r = 0; r < count; r++, g += n, y += n, dx += n) {
      TT_UNROLL_BY(4)
      for (int k = 0; k < N; k++) {
        gs[k] = row.get(g, k);
        ys[k] = row.get(y, k);
        terms[k] = kLog ? gs[k] : gs[k] * ys[k];
        if (kLog) ys[k] = F32v(math::exp(math::F32v(ys[k])));
      }
      const F32v sum = splat(total_of<N>(terms));
      TT_UNROLL_BY(4)
      for (int k = 0; k < N; k++)
        row.put(dx, k, kLog ? gs[k] - ys[k] * sum : ys[k] * (gs[k] - sum));
    }
  }
#endif

  static TT_NOINLINE void results(T* dx, const T* g, const T* e, const T* sum, int64_t n) {
    TT_VECTORIZE
    for (int64_t j = 0; j < n; j++) dx[j] = kLog ? g[j] - e[j] * sum[j] : e[j] * (g[j] - sum[j]);
  }
  static void columns(const SoftmaxPlan& p, int64_t at, const Columns& c, const T*, const T* sum) {
    alignas(64) T gs[kRowTile], ys[kRowTile];
    alignas(64) const T zero[kRowTile] = {};
    for_columns(c, [&](int64_t, int64_t i, int64_t n) {
      const T* g = RowIn<T>{p.a + at + i, c.dtype}.get(0, n, gs);
      const T* y = RowIn<T>{p.b + at + i, c.dtype}.get(0, n, ys);
      const RowOut<T> out{p.out + at + i, c.dtype};
      T* dx = out.at(0, gs);
      if constexpr (kLog) {
        column_exp(ys, y, zero, n);
        y = ys;
      }
      results(dx, g, y, sum, n);
      out.put(0, n, dx);
    });
  }
};

// `count` rows of n elements from byte `at` on.
template <class T, class Op> TT_ONE_BODY void rows(const SoftmaxPlan& p, int64_t at, int64_t n,
                                                   int64_t count, Steps s, T* top, T* sum) {
#if TT_VECTOR_MATH
  if constexpr (sizeof(T) == 4) {
    const bool whole = s.has(kSum) && s.has(kResult);
    if (whole && p.dtype == TT_F32 && n > 0 && n <= kShortRow) {
      with_short_row(n, [&](const auto& row) { Op::short_rows(p, at, n, count, row); });
      return;
    }
  }
#endif
  for (int64_t r = 0; r < count; r++) Op::row(p, at + r * n * kItemSize[p.dtype], n, s, top, sum);
}

template <class T> struct Work {
  bool log;
  // Whether kSum keeps exp(x - top) in out.
  bool keeps(const SoftmaxPlan& p) const {
    return !log && kItemSize[p.dtype] == int64_t(sizeof(T));
  }
  void (*rows)(const SoftmaxPlan& p, int64_t at, int64_t n, int64_t count, Steps s, T* top, T* sum);
  void (*columns)(const SoftmaxPlan& p, int64_t at, const Columns& c, const T* top, const T* sum);
};

// A tile of columns from byte `at` on.
template <class T> TT_ONE_BODY void tile(const SoftmaxPlan& p, const Work<T>& w, int64_t at,
                                         const Columns& c, Steps s, T* top, T* sum) {
  const char* x = p.a + at;
  if (!p.b && s.has(kMax)) columns_max(top, x, c);
  else if (!p.b) columns_repeat(top, c);
  if (!s.has(kSum)) columns_repeat(sum, c);
  else if (p.b) columns_sum(sum, x, w.log ? nullptr : p.b + at, c);
  else columns_sum_exp(sum, top, x, w.keeps(p) ? p.out + at : nullptr, c);
  if (s.has(kResult)) w.columns(p, at, c, top, sum);
}

// Tops and sums of each column: those of the chunks, then the combined ones. p.parts:
// [2][outer * inner][n_chunks + 1].
template <class T> struct Parts {
  const SoftmaxPlan& p;
  const int64_t row, all;  // of outer * inner rows

  double* tops(int64_t j) const { return p.parts + (row + j) * (p.n_chunks + 1); }
  double* sums(int64_t j) const { return tops(all + j); }
  TT_NOINLINE void put(int64_t k, int64_t n, const T* top, const T* sum) const {
    for (int64_t j = 0; j < n; j++) {
      tops(j)[k] = p.b ? 0 : double(top[j]);
      sums(j)[k] = double(sum[j]);
      TT_SCALAR_LOOP;
    }
  }
  // kept: out holds exp(x - the chunk's top), so sum[j] is scaled to match.
  TT_NOINLINE void get(int64_t k, int64_t n, bool kept, T* top, T* sum) const {
    for (int64_t j = 0; j < n; j++) {
      top[j] = T(tops(j)[p.n_chunks]);
      sum[j] = T(kept ? tops(j)[k] : sums(j)[p.n_chunks]);
      TT_SCALAR_LOOP;
    }
    if (!kept) return;
    column_exp(top, top, sum, n);
    for (int64_t j = 0; j < n; j++) {
      sum[j] = T(sums(j)[p.n_chunks]) * top[j];
      TT_SCALAR_LOOP;
    }
  }
  TT_NOINLINE void join(int64_t n) const {
    for (int64_t j = 0; j < n; j++) {
      T top = 0, sum;
      RunningSum<double> total;
      for (int64_t k = 0; k < p.n_chunks && p.b; k++) {
        total.add(sums(j)[k]);
        TT_SCALAR_LOOP;
      }
      if (p.b) sum = T(total.with(0));
      else join_exps(tops(j), sums(j), p.n_chunks, &top, &sum);
      tops(j)[p.n_chunks] = double(top);
      sums(j)[p.n_chunks] = double(sum);
    }
  }
};

// Steps s of chunk k of columns [column, column + n) of outer index o.
template <class T> TT_ONE_BODY void run_chunk(const SoftmaxPlan& p, const Work<T>& w, int64_t o,
                                              int64_t column, int64_t k, Steps s) {
  alignas(64) T top[kRowTile], sum[kRowTile];
  const int64_t first = k * p.chunk;
  const int64_t steps = min(p.dim - first, p.chunk);
  const int64_t at = ((o * p.dim + first) * p.inner + column) * kItemSize[p.dtype];
  const int64_t n = min(p.inner - column, kRowTile);
  const Parts<T> parts{p, o * p.inner + column, p.outer * p.inner};
  if (p.n_chunks > 1 && p.run.stage == 1) return parts.join(n);
  if (s.first == kResult) parts.get(k, n, !p.b && w.keeps(p), top, sum);
  if (p.inner == 1) w.rows(p, at, steps, 1, s, top, sum);
  else tile(p, w, at, columns_of(p.inner, steps, n, p.dtype), s, top, sum);
  if (s.last == kSum) parts.put(k, n, top, sum);
}

template <class T>
TT_NOINLINE int32_t run_units(const SoftmaxPlan& p, const Work<T>& w, int64_t begin, int64_t end) {
  if (p.n_chunks > 1) {
    const int64_t chunks = p.run.stage == 1 ? 1 : p.n_chunks;
    for (int64_t u = begin, t = u / chunks; u < end; u++, t = u / chunks)
      run_chunk(p, w, t / p.n_tiles, t % p.n_tiles * kRowTile, u % chunks,
                p.run.stage ? Steps{kResult, kResult} : Steps{kMax, kSum});
    return TT_OK;
  }
  if (p.inner == 1) {
    T top, sum;
    w.rows(p, begin * p.dim * kItemSize[p.dtype], p.dim, end - begin, {kMax, kResult}, &top, &sum);
    return TT_OK;
  }
  for (int64_t u = begin; u < end; u++)
    run_chunk(p, w, u / p.n_tiles, u % p.n_tiles * kRowTile, 0, {kMax, kResult});
  return TT_OK;
}

template <template <class, bool> class Op, bool kLog>
inline int32_t run_softmax(const void* plan, int64_t begin, int64_t end) {
  const SoftmaxPlan& p = *static_cast<const SoftmaxPlan*>(plan);
  if (is_dtype(p.dtype, TT_F64))
    return run_units<double>(p, {kLog, rows<double, Op<double, kLog>>, Op<double, kLog>::columns},
                             begin, end);
  return run_units<float>(p, {kLog, rows<float, Op<float, kLog>>, Op<float, kLog>::columns}, begin,
                          end);
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(softmax)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_softmax<Forward, false>(plan, begin, end);
}
TT_KERNEL(log_softmax)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_softmax<Forward, true>(plan, begin, end);
}
TT_KERNEL(softmax_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_softmax<Backward, false>(plan, begin, end);
}
TT_KERNEL(log_softmax_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_softmax<Backward, true>(plan, begin, end);
}

TT_ENTRY_END
