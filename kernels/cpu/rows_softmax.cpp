// softmax, log_softmax and their backwards, along any dimension of a contiguous array.
#include "cpu/rows.h"

#include "cpu/loop.h"
#include "cpu/rows_vec.h"
#include "cpu/running_sum.h"
#include "plan/row_plan.h"

TT_ISA_BEGIN

template <class T> constexpr T kMinusInfinity = T(-__builtin_inf());

// ---- steps of a tile of columns, one body for all ----

template <class T> TT_NOINLINE void read_columns(T* v, const char* x, int64_t n, int32_t dtype) {
  load_run(v, x, kItemSize[dtype], n, dtype);
}
template <class T> TT_NOINLINE void raise_tops(T* top, const T* v, int64_t n) {
  for (int64_t j = 0; j < n; j++) top[j] = v[j] > top[j] ? v[j] : top[j];
}
template <class T> TT_NOINLINE void add_up(RunningSum<T>* total, const T* v, int64_t n) {
  for (int64_t j = 0; j < n; j++) total[j].add(double(v[j]));
}

// ---- inner == 1: a row is contiguous ----

template <class T, bool kLog> struct Forward {
  static TT_NOINLINE void finish_log(T* y, const T* x, T top, T log_sum, int64_t n) {
    TT_VECTORIZE
    for (int64_t j = 0; j < n; j++) y[j] = (x[j] - top) - log_sum;
  }
  static void row(const SoftmaxPlan& p, int64_t r) {
    const int64_t n = p.dim, item = kItemSize[p.dtype];
    const RowIn<T> x{p.a + r * n * item, p.dtype};
    const RowOut<T> y{p.out + r * n * item, p.dtype};
    alignas(64) T in[kRowBlock], e[kRowBlock];
    T m = kMinusInfinity<T>;
    for_blocks(n, [&](int64_t i, int64_t k) { m = row_max(x.get(i, k, in), k, m); });
    RowSum<T> sum, unused;
    const bool keep = !kLog && y.direct();
    for_blocks(n, [&](int64_t i, int64_t k) { row_exp(keep ? y.at(i, e) : e, x.get(i, k, in), m, k, &sum); });
    const T last = kLog ? math::log(row_total(sum)) : T(1) / row_total(sum);
    for_blocks(n, [&](int64_t i, int64_t k) {
      T* d = y.at(i, e);
      if constexpr (kLog) {
        finish_log(d, x.get(i, k, in), m, last, k);
      } else {
        if (!keep) row_exp(d, x.get(i, k, in), m, k, &unused);
        row_scale(d, last, k);
      }
      y.put(i, k, d);
    });
  }

  // One stage of a chunk of a row, n elements from the address of `at`. 0: top = the largest; 1: sum of exp(x - top),
  // which softmax keeps in an out that can; 2: out.
  static TT_ONE_BODY void chunk(const SoftmaxPlan& p, int64_t at, int64_t n, int32_t stage, T* top, T* sum) {
    const RowIn<T> x{p.a + at, p.dtype};
    const RowOut<T> y{p.out + at, p.dtype};
    alignas(64) T in[kRowBlock], e[kRowBlock];
    const T m = *top, last = kLog ? math::log(*sum) : T(1) / *sum;
    const bool keep = !kLog && y.direct();
    T most = kMinusInfinity<T>;
    RowSum<T> lanes;
    for_blocks(n, [&](int64_t i, int64_t k) {
      T* d = y.at(i, e);
      if (stage == 2 && keep) return row_scale(d, last, k);
      const T* a = x.get(i, k, in);
      if (stage == 0) {
        most = row_max(a, k, most);
        return;
      }
      if (stage == 1 || !kLog) row_exp(stage == 1 && !keep ? e : d, a, m, k, &lanes);
      if (stage == 1) return;
      if (!kLog) row_scale(d, last, k);
      if (kLog) finish_log(d, a, m, last, k);
      y.put(i, k, d);
    });
    if (stage == 0) *top = most;
    if (stage == 1) *sum = row_total(lanes);
  }

  // Columns [0, n) of a tile, `dim` rows apart by `inner` elements.
  static void tile(const SoftmaxPlan& p, const char* x, const char*, char* out, int64_t n) {
    const int64_t item = kItemSize[p.dtype], step = p.inner * item;
    alignas(64) T m[kRowTile], sum[kRowTile], v[kRowTile];
    RunningSum<T> total[kRowTile];
    const bool again = item < 4;  // a 16-bit out cannot keep exp
    for (int64_t j = 0; j < n; j++) m[j] = kMinusInfinity<T>;
    for (int64_t i = 0; i < p.dim; i++) {
      read_columns(v, x + i * step, n, p.dtype);
      raise_tops(m, v, n);
    }
    for (int64_t i = 0; i < p.dim; i++) {
      read_columns(v, x + i * step, n, p.dtype);
      column_exp(v, m, n);
      if (!kLog && !again) store_run(out + i * step, v, n, p.dtype);
      add_up(total, v, n);
    }
    for (int64_t j = 0; j < n; j++) {
      sum[j] = kLog ? math::log(total[j].with(0)) : T(1) / total[j].with(0);
      TT_SCALAR_LOOP;
    }
    for (int64_t i = 0; i < p.dim; i++) {
      read_columns(v, (kLog || again ? x : out) + i * step, n, p.dtype);
      if (!kLog && again) column_exp(v, m, n);
      for (int64_t j = 0; j < n; j++) v[j] = kLog ? (v[j] - m[j]) - sum[j] : v[j] * sum[j];
      store_run(out + i * step, v, n, p.dtype);
    }
  }
};

// softmax: dx = y (g - sum(g y)); log_softmax: dx = g - exp(y) sum(g).
template <class T, bool kLog> struct Backward {
  // e: exp(y) of log_softmax, else y.
  static TT_NOINLINE void finish(T* dx, const T* g, const T* e, T sum, int64_t n) {
    TT_VECTORIZE
    for (int64_t j = 0; j < n; j++) dx[j] = kLog ? g[j] - e[j] * sum : e[j] * (g[j] - sum);
  }
  static void row(const SoftmaxPlan& p, int64_t r) {
    const int64_t n = p.dim, at = r * n * kItemSize[p.dtype];
    const RowIn<T> g{p.a + at, p.dtype}, y{p.b + at, p.dtype};
    const RowOut<T> dx{p.out + at, p.dtype};
    alignas(64) T gs[kRowBlock], ys[kRowBlock], e[kRowBlock];
    RowSum<T> lanes;
    for_blocks(n, [&](int64_t i, int64_t k) {
      if constexpr (kLog) row_add(&lanes, g.get(i, k, gs), k);
      else row_add_products(&lanes, g.get(i, k, gs), y.get(i, k, ys), k);
    });
    const T sum = row_total(lanes);
    for_blocks(n, [&](int64_t i, int64_t k) {
      const T *a = g.get(i, k, gs), *b = y.get(i, k, ys);
      T* d = dx.at(i, gs);
      if constexpr (kLog) row_exp(e, b, T(0), k, &lanes);
      finish(d, a, kLog ? e : b, sum, k);
      dx.put(i, k, d);
    });
  }

  // The same; stage 1: the sum, 2: dx.
  static TT_ONE_BODY void chunk(const SoftmaxPlan& p, int64_t at, int64_t n, int32_t stage, T*, T* total) {
    const RowIn<T> g{p.a + at, p.dtype}, y{p.b + at, p.dtype};
    const RowOut<T> dx{p.out + at, p.dtype};
    alignas(64) T gs[kRowBlock], ys[kRowBlock], e[kRowBlock];
    const T sum = *total;
    RowSum<T> lanes;
    for_blocks(n, [&](int64_t i, int64_t k) {
      const T *a = g.get(i, k, gs), *b = stage == 1 && kLog ? nullptr : y.get(i, k, ys);
      if (stage == 1) return kLog ? row_add(&lanes, a, k) : row_add_products(&lanes, a, b, k);
      T* d = dx.at(i, gs);
      if constexpr (kLog) row_exp(e, b, T(0), k, &lanes);
      finish(d, a, kLog ? e : b, sum, k);
      dx.put(i, k, d);
    });
    if (stage == 1) *total = row_total(lanes);
  }

  static void tile(const SoftmaxPlan& p, const char* g, const char* y, char* out, int64_t n) {
    const int64_t item = kItemSize[p.dtype], step = p.inner * item;
    alignas(64) T sum[kRowTile], gs[kRowTile], ys[kRowTile];
    alignas(64) const T zero[kRowTile] = {};
    RunningSum<T> total[kRowTile];
    for (int64_t i = 0; i < p.dim; i++) {
      read_columns(gs, g + i * step, n, p.dtype);
      if constexpr (!kLog) {
        read_columns(ys, y + i * step, n, p.dtype);
        for (int64_t j = 0; j < n; j++) gs[j] *= ys[j];
      }
      add_up(total, gs, n);
    }
    for (int64_t j = 0; j < n; j++) sum[j] = total[j].with(0);
    for (int64_t i = 0; i < p.dim; i++) {
      read_columns(gs, g + i * step, n, p.dtype);
      read_columns(ys, y + i * step, n, p.dtype);
      if constexpr (kLog) column_exp(ys, zero, n);
      for (int64_t j = 0; j < n; j++) gs[j] = kLog ? gs[j] - ys[j] * sum[j] : ys[j] * (gs[j] - sum[j]);
      store_run(out + i * step, gs, n, p.dtype);
    }
  }
};

// The running stage of one chunk, after what the stage before left of all chunks of its row.
template <class T, class Op> TT_NOINLINE int32_t run_chunks(const SoftmaxPlan& p, int64_t begin, int64_t end) {
  const int32_t stage = p.run.stage;
  for (int64_t u = begin; u < end; u++) {
    const int64_t c = u % p.n_chunks, row = u - c, first = c * p.chunk, left = p.dim - first;
    double *tops = p.parts, *sums = tops + p.outer * p.n_chunks, most = -__builtin_inf(), total = 0;
    for (int64_t k = row; k < row + p.n_chunks && stage > 0; k++) {
      if (!p.b) most = tops[k] > most ? tops[k] : most;
      if (stage > 1) total += sums[k];
      TT_SCALAR_LOOP;
    }
    T top = T(most), sum = T(total);
    Op::chunk(p, (row / p.n_chunks * p.dim + first) * kItemSize[p.dtype], left < p.chunk ? left : p.chunk, stage, &top,
              &sum);
    if (stage == 0) tops[u] = double(top);
    if (stage == 1) sums[u] = double(sum);
  }
  return TT_OK;
}

template <class T, class Op> inline int32_t run_units(const SoftmaxPlan& p, int64_t begin, int64_t end) {
  if constexpr (sizeof(T) == 4) {  // rows of doubles are not cut
    if (p.n_chunks > 1) return run_chunks<T, Op>(p, begin, end);
  }
  const int64_t item = kItemSize[p.dtype];
  for (int64_t u = begin; u < end; u++) {
    if (p.inner == 1) {
      Op::row(p, u);
      continue;
    }
    const int64_t column = u % p.n_tiles * kRowTile, rest = p.inner - column;
    const int64_t at = (u / p.n_tiles * p.dim * p.inner + column) * item;
    Op::tile(p, p.a + at, p.b ? p.b + at : nullptr, p.out + at, rest < kRowTile ? rest : kRowTile);
  }
  return TT_OK;
}

template <template <class, bool> class Op, bool kLog>
inline int32_t run_softmax(const void* plan, int64_t begin, int64_t end) {
  const SoftmaxPlan& p = *static_cast<const SoftmaxPlan*>(plan);
  if (p.dtype == TT_F64) return run_units<double, Op<double, kLog>>(p, begin, end);
  return run_units<float, Op<float, kLog>>(p, begin, end);
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
