// softmax, log_softmax and their backwards, along any dimension of a contiguous array.
#include "cpu/rows.h"

#include "cpu/loop.h"
#include "cpu/rows_vec.h"
#include "plan/row_plan.h"

TT_ISA_BEGIN

template <class T>
constexpr T kMinusInfinity = T(-__builtin_inf());

// ---- inner == 1: a row is contiguous ----

template <class T, bool kLog>
struct Forward {
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
        const T* a = x.get(i, k, in);
        TT_VECTORIZE
        for (int64_t j = 0; j < k; j++) d[j] = (a[j] - m) - last;
      } else {
        if (!keep) row_exp(d, x.get(i, k, in), m, k, &unused);
        row_scale(d, last, k);
      }
      y.put(i, k, d);
    });
  }

  // Columns [0, n) of a tile, `dim` rows apart by `inner` elements.
  static void tile(const SoftmaxPlan& p, const char* x, const char*, char* out, int64_t n) {
    const int64_t item = kItemSize[p.dtype], step = p.inner * item;
    alignas(64) T m[kRowTile], sum[kRowTile], v[kRowTile];
    const bool again = item < 4;  // a 16-bit out cannot keep exp
    for (int64_t j = 0; j < n; j++) m[j] = kMinusInfinity<T>, sum[j] = 0;
    for (int64_t i = 0; i < p.dim; i++) {
      load_run(v, x + i * step, item, n, p.dtype);
      for (int64_t j = 0; j < n; j++) m[j] = v[j] > m[j] ? v[j] : m[j];
    }
    for (int64_t i = 0; i < p.dim; i++) {
      load_run(v, x + i * step, item, n, p.dtype);
      column_exp(v, m, n);
      if (!kLog && !again) store_run(out + i * step, v, n, p.dtype);
      for (int64_t j = 0; j < n; j++) sum[j] += v[j];
    }
    for (int64_t j = 0; j < n; j++) {
      sum[j] = kLog ? math::log(sum[j]) : T(1) / sum[j];
      TT_SCALAR_LOOP;
    }
    for (int64_t i = 0; i < p.dim; i++) {
      load_run(v, (kLog || again ? x : out) + i * step, item, n, p.dtype);
      if (!kLog && again) column_exp(v, m, n);
      for (int64_t j = 0; j < n; j++) v[j] = kLog ? (v[j] - m[j]) - sum[j] : v[j] * sum[j];
      store_run(out + i * step, v, n, p.dtype);
    }
  }
};

// softmax: dx = y (g - sum(g y)); log_softmax: dx = g - exp(y) sum(g).
template <class T, bool kLog>
struct Backward {
  static void row(const SoftmaxPlan& p, int64_t r) {
    const int64_t n = p.dim, at = r * n * kItemSize[p.dtype];
    const RowIn<T> g{p.a + at, p.dtype}, y{p.b + at, p.dtype};
    const RowOut<T> dx{p.out + at, p.dtype};
    alignas(64) T gs[kRowBlock], ys[kRowBlock], e[kRowBlock];
    RowSum<T> lanes;
    for_blocks(n, [&](int64_t i, int64_t k) {
      if constexpr (kLog)
        row_add(&lanes, g.get(i, k, gs), k);
      else
        row_add_products(&lanes, g.get(i, k, gs), y.get(i, k, ys), k);
    });
    const T sum = row_total(lanes);
    for_blocks(n, [&](int64_t i, int64_t k) {
      const T *a = g.get(i, k, gs), *b = y.get(i, k, ys);
      T* d = dx.at(i, gs);
      if constexpr (kLog) {
        row_exp(e, b, T(0), k, &lanes);
        TT_VECTORIZE
        for (int64_t j = 0; j < k; j++) d[j] = a[j] - e[j] * sum;
      } else {
        TT_VECTORIZE
        for (int64_t j = 0; j < k; j++) d[j] = b[j] * (a[j] - sum);
      }
      dx.put(i, k, d);
    });
  }

  static void tile(const SoftmaxPlan& p, const char* g, const char* y, char* out, int64_t n) {
    const int64_t item = kItemSize[p.dtype], step = p.inner * item;
    alignas(64) T sum[kRowTile], gs[kRowTile], ys[kRowTile];
    alignas(64) const T zero[kRowTile] = {};
    for (int64_t j = 0; j < n; j++) sum[j] = 0;
    for (int64_t i = 0; i < p.dim; i++) {
      load_run(gs, g + i * step, item, n, p.dtype);
      if constexpr (!kLog) load_run(ys, y + i * step, item, n, p.dtype);
      for (int64_t j = 0; j < n; j++) sum[j] += kLog ? gs[j] : gs[j] * ys[j];
    }
    for (int64_t i = 0; i < p.dim; i++) {
      load_run(gs, g + i * step, item, n, p.dtype);
      load_run(ys, y + i * step, item, n, p.dtype);
      if constexpr (kLog) column_exp(ys, zero, n);
      for (int64_t j = 0; j < n; j++) gs[j] = kLog ? gs[j] - ys[j] * sum[j] : ys[j] * (gs[j] - sum[j]);
      store_run(out + i * step, gs, n, p.dtype);
    }
  }
};

template <class Op>
inline int32_t run_units(const SoftmaxPlan& p, int64_t begin, int64_t end) {
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
  if (p.dtype == TT_F64) return run_units<Op<double, kLog>>(p, begin, end);
  return run_units<Op<float, kLog>>(p, begin, end);
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
