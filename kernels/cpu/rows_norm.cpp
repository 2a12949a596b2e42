// layer_norm and its backward.
#include "cpu/rows.h"

#include "cpu/loop.h"
#include "cpu/rows_vec.h"
#include "plan/row_plan.h"

TT_ISA_BEGIN

// Adds the squares of x[i] - center to the lanes, as add_run does the values; n <= kRowBlock.
template <class T>
TT_NOINLINE void add_squares(Lanes<T>* acc, const T* x, T center, int64_t n) {
  constexpr int L = kLanes<T>;
  const Vec<T> c = splat(center);
  Lanes<T> low;
  low.fill(0);
  int64_t i = 0;
  for (; i + kBlockLanes <= n; i += kBlockLanes) {
#pragma GCC unroll 32
    for (int k = 0; k < low.kN; k++) {
      const Vec<T> d = load(x + i + k * L) - c;
      low.v[k] = vfma(d, d, low.v[k]);
    }
  }
  if (i < n) {
    alignas(64) T tail[kBlockLanes];
    for (int64_t k = 0; k < kBlockLanes; k++) {
      tail[k] = k < n - i ? x[i + k] - center : T(0);
      TT_SCALAR_LOOP;
    }
    for (int k = 0; k < low.kN; k++) {
      const Vec<T> d = load(tail + k * L);
      low.v[k] = vfma(d, d, low.v[k]);
    }
  }
  acc->add(low);
}

// y = (x - mean) * rstd * weight + bias; weight and bias may be NULL.
template <class T>
TT_NOINLINE void normalise(T* y, const T* x, T mean, T rstd, const T* weight, const T* bias, int64_t n) {
  if (weight && bias) {
    TT_VECTORIZE
    for (int64_t i = 0; i < n; i++) y[i] = vfma((x[i] - mean) * rstd, weight[i], bias[i]);
  } else if (weight) {
    TT_VECTORIZE
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd * weight[i];
  } else if (bias) {
    TT_VECTORIZE
    for (int64_t i = 0; i < n; i++) y[i] = vfma(x[i] - mean, rstd, bias[i]);
  } else {
    TT_VECTORIZE
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd;
  }
}

template <class T>
inline int32_t forward(const LayerNormPlan& p, int64_t begin, int64_t end) {
  const int64_t n = p.n, item = kItemSize[p.dtype], stat = kItemSize[p.stat_dtype];
  alignas(64) T in[kRowBlock], out[kRowBlock], ws[kRowBlock], bs[kRowBlock];
  const RowIn<T> weight{p.weight, p.weight_dtype}, bias{p.bias, p.weight_dtype};
  for (int64_t r = begin; r < end; r++) {
    const RowIn<T> x{p.x + r * n * item, p.dtype};
    const RowOut<T> y{p.y + r * n * item, p.dtype};
    Lanes<T> lanes;
    lanes.fill(0);
    for_blocks(n, [&](int64_t i, int64_t k) { add_run(&lanes, x.get(i, k, in), k); });
    const T mean = total(lanes) / T(n);
    lanes.fill(0);
    for_blocks(n, [&](int64_t i, int64_t k) { add_squares(&lanes, x.get(i, k, in), mean, k); });
    const T rstd = T(1) / math::sqrt(total(lanes) / T(n) + T(p.eps));
    for_blocks(n, [&](int64_t i, int64_t k) {
      T* d = y.at(i, out);
      normalise(d, x.get(i, k, in), mean, rstd, p.weight ? weight.get(i, k, ws) : nullptr,
                p.bias ? bias.get(i, k, bs) : nullptr, k);
      y.put(i, k, d);
    });
    store_one(p.mean + r * stat, mean, p.stat_dtype);
    store_one(p.rstd + r * stat, rstd, p.stat_dtype);
  }
  return TT_OK;
}

// ---- backward: with h = (x - mean) rstd and u = g weight, dx = rstd (u - mean(u) - h mean(u h)) ----

template <class T>
struct BackwardRow {
  const LayerNormBackwardPlan& p;
  T mean, rstd;
  RowIn<T> g, x, weight;
  alignas(64) T gs[kRowBlock], xs[kRowBlock], ws[kRowBlock], u[kRowBlock], h[kRowBlock];

  // u and h of elements [i, i + k).
  void parts(int64_t i, int64_t k) {
    const T *a = g.get(i, k, gs), *b = x.get(i, k, xs), *w = p.weight ? weight.get(i, k, ws) : nullptr;
    for (int64_t j = 0; j < k; j++) h[j] = (b[j] - mean) * rstd;
    if (w) {
      for (int64_t j = 0; j < k; j++) u[j] = a[j] * w[j];
    } else {
      __builtin_memcpy(u, a, size_t(k) * sizeof(T));
    }
  }

  void input_gradient(char* dx) {
    Lanes<T> su, suh;
    su.fill(0), suh.fill(0);
    for_blocks(p.n, [&](int64_t i, int64_t k) {
      parts(i, k);
      add_run(&su, u, k);
      for (int64_t j = 0; j < k; j++) h[j] *= u[j];
      add_run(&suh, h, k);
    });
    const T mu = total(su) / T(p.n), muh = total(suh) / T(p.n);
    const RowOut<T> out{dx, p.dtype};
    for_blocks(p.n, [&](int64_t i, int64_t k) {
      if (p.n > kRowBlock) parts(i, k);
      else rescale(k);
      T* d = out.at(i, gs);
      for (int64_t j = 0; j < k; j++) d[j] = rstd * (u[j] - mu - h[j] * muh);
      out.put(i, k, d);
    });
  }
  // The row is one block: u is still there, h holds u h.
  void rescale(int64_t k) {
    const T* b = x.get(0, k, xs);
    for (int64_t j = 0; j < k; j++) h[j] = (b[j] - mean) * rstd;
  }

  void add_sums(T* dweight, T* dbias) {
    for_blocks(p.n, [&](int64_t i, int64_t k) {
      const T *a = g.get(i, k, gs), *b = x.get(i, k, xs);
      T *dw = dweight + i, *db = dbias + i;
      TT_VECTORIZE
      for (int64_t j = 0; j < k; j++) {
        dw[j] += a[j] * ((b[j] - mean) * rstd);
        db[j] += a[j];
      }
    });
  }
};

template <class T>
inline void backward_chunk(const LayerNormBackwardPlan& p, int64_t c) {
  const int64_t item = kItemSize[p.dtype], stat = kItemSize[p.stat_dtype];
  const int64_t from = c * p.chunk, to = from + p.chunk < p.rows ? from + p.chunk : p.rows;
  BackwardRow<T> row{p, 0, 0, {}, {}, {p.weight, p.weight_dtype}, {}, {}, {}, {}, {}};
  T* sums = p.run.n == 2 ? static_cast<T*>(p.workspace) + c * 2 * p.n : nullptr;
  if (sums) __builtin_memset(sums, 0, size_t(2 * p.n) * sizeof(T));
  for (int64_t r = from; r < to; r++) {
    row.mean = load_one<T>(p.mean + r * stat, p.stat_dtype);
    row.rstd = load_one<T>(p.rstd + r * stat, p.stat_dtype);
    row.g = {p.g + r * p.n * item, p.dtype}, row.x = {p.x + r * p.n * item, p.dtype};
    if (sums) row.add_sums(sums, sums + p.n);
    if (p.dx) row.input_gradient(p.dx + r * p.n * item);
  }
}

// Columns [from, to) of the sums over chunks; which: 0 dweight, 1 dbias.
template <class T>
inline void sum_chunks(const LayerNormBackwardPlan& p, int which, int64_t from, int64_t to, char* out) {
  alignas(64) T sum[kRowTile];
  for (int64_t j = 0; j < to - from; j++) sum[j] = 0;
  for (int64_t c = 0; c < p.n_chunks; c++) {
    const T* part = static_cast<const T*>(p.workspace) + (2 * c + which) * p.n + from;
    for (int64_t j = 0; j < to - from; j++) sum[j] += part[j];
  }
  store_run(out + from * kItemSize[p.weight_dtype], sum, to - from, p.weight_dtype);
}

template <class T>
inline int32_t backward(const LayerNormBackwardPlan& p, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; u++) {
    if (p.run.stage == 0) {
      backward_chunk<T>(p, u);
      continue;
    }
    const int64_t from = u * kRowTile, to = from + kRowTile < p.n ? from + kRowTile : p.n;
    if (p.dweight) sum_chunks<T>(p, 0, from, to, p.dweight);
    if (p.dbias) sum_chunks<T>(p, 1, from, to, p.dbias);
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(layer_norm)(const void* plan, int64_t begin, int64_t end) noexcept {
  const LayerNormPlan& p = *static_cast<const LayerNormPlan*>(plan);
  return p.dtype == TT_F64 ? forward<double>(p, begin, end) : forward<float>(p, begin, end);
}

TT_KERNEL(layer_norm_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  const LayerNormBackwardPlan& p = *static_cast<const LayerNormBackwardPlan*>(plan);
  return p.dtype == TT_F64 ? backward<double>(p, begin, end) : backward<float>(p, begin, end);
}

TT_ENTRY_END
