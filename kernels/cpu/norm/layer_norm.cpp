// layer_norm and its backward; rms_norm, which has no means; the forward of group_norm.
//   x, y, g, dx: (rows, n); weight, bias, dweight, dbias: (n); mean, rstd: (rows)
//
// If there are few long rows, n is cut into chunks and each step is a stage; the sums between them
// are in parts, [2][rows][n_chunks].
#include "kernels/cpu/norm/layer_norm.h"

#include "kernels/cpu/simd/row_primitives.h"
#include "kernels/cpu/simd/short_rows.h"
#include "plan/norm_plan.h"

TT_ISA_BEGIN

// Steps of a row.
enum Step : int32_t { kSum, kSquares, kNormalize };

// y = (x - mean) * rstd * weight + bias; weight and bias may be NULL.
template <class T> TT_NOINLINE void normalise(T* y, const T* x, T mean, T rstd, const T* weight,
                                              const T* bias, int64_t n) {
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

// group_norm: y of the elements [first, first + n) of row r.
template <class T> TT_NOINLINE void normalise_channels(const LayerNormPlan& p, int64_t r,
                                                       int64_t first, int64_t n, const RowIn<T>& x,
                                                       const RowOut<T>& y, T mean, T rstd) {
  alignas(64) T in[kRowBlock], out[kRowBlock];
  const int64_t item = kItemSize[p.weight_dtype];
  const int64_t of_row = r % p.groups * (p.n / p.inner);
  for (int64_t i = 0; i < n;) {
    const int64_t channel = (first + i) / p.inner;
    const int64_t end = min((channel + 1) * p.inner - first, n);
    const int64_t at = (of_row + channel) * item;
    const T weight = p.weight ? load_one<T>(p.weight + at, p.weight_dtype) : T(1);
    const T bias = p.bias ? load_one<T>(p.bias + at, p.weight_dtype) : T(0);
    const T scale = rstd * weight;
    for (int64_t k; i < end; i += k) {
      k = min(end - i, kRowBlock);
      const T* TT_RESTRICT v = x.get(i, k, in);
      T* TT_RESTRICT d = y.at(i, out);
      TT_VECTORIZE
      for (int64_t j = 0; j < k; j++) d[j] = vfma(v[j] - mean, scale, bias);
      y.put(i, k, d);
    }
  }
}

#if TT_VECTOR_MATH
// Rows [begin, end) of the row's length, with the results of forward().
template <class Row>
TT_INLINE void normalise_rows(const LayerNormPlan& p, const Row& row, int64_t begin, int64_t end) {
  constexpr int N = Row::kN;
  const float* weight = reinterpret_cast<const float*>(p.weight);
  const float* bias = reinterpret_cast<const float*>(p.bias);
  const float n = float(p.n);
  F32v w[N], b[N], v[N], squares[N];
  TT_UNROLL_BY(4)
  for (int k = 0; k < N; k++) {
    w[k] = weight ? row.get(weight, k) : splat(1.0f);
    b[k] = bias ? row.get(bias, k) : splat(0.0f);
  }
  for (int64_t r = begin; r < end; r++) {
    const float* x = reinterpret_cast<const float*>(p.x) + r * p.n;
    float* y = reinterpret_cast<float*>(p.y) + r * p.n;
    TT_UNROLL_BY(4)
    for (int k = 0; k < N; k++) v[k] = row.get(x, k);
    const float mean = p.mean ? total_of<N>(v) / n : 0;
    TT_UNROLL_BY(4)
    for (int k = 0; k < N; k++) {
      v[k] = row.within(k, v[k] - splat(mean));
      squares[k] = v[k] * v[k];
    }
    const float rstd = 1.0f / math::sqrt(total_of<N>(squares) / n + float(p.eps));
    const F32v scale = splat(rstd);
    TT_UNROLL_BY(4)
    for (int k = 0; k < N; k++) {
      if (!bias) row.put(y, k, v[k] * scale * w[k]);
      else if (weight) row.put(y, k, vfma(v[k] * scale, w[k], b[k]));
      else row.put(y, k, vfma(v[k], scale, b[k]));
    }
    if (p.mean) reinterpret_cast<float*>(p.mean)[r] = mean;
    reinterpret_cast<float*>(p.rstd)[r] = rstd;
  }
}
inline bool normalise_short(const LayerNormPlan& p, int64_t begin, int64_t end) {
  const bool plain = !p.weight && !p.bias;
  const bool floats =
      p.dtype == TT_F32 && p.stat_dtype == TT_F32 && (plain || p.weight_dtype == TT_F32);
  if (!floats || p.n > kShortRow || p.n < 1 || p.inner || p.n_chunks > 1) return false;
  with_short_row(p.n, [&](const auto& row) { normalise_rows(p, row, begin, end); });
  return true;
}
#else
inline bool normalise_short(const LayerNormPlan&, int64_t, int64_t) { return false; }
#endif

// Runs steps s of units [begin, end): chunks of rows.
template <class T>
inline int32_t forward(const LayerNormPlan& p, int64_t begin, int64_t end, Steps s) {
  const int64_t item = kItemSize[p.dtype];
  const int64_t stat = kItemSize[p.stat_dtype];
  alignas(64) T in[kRowBlock], out[kRowBlock], ws[kRowBlock], bs[kRowBlock];
  const RowIn<T> weight{p.weight, p.weight_dtype};
  const RowIn<T> bias{p.bias, p.weight_dtype};
  for (int64_t u = begin; u < end; u++) {
    const int64_t r = p.n_chunks > 1 ? u / p.n_chunks : u;
    const int64_t c = u - r * p.n_chunks;
    const int64_t first = c * p.chunk;
    const int64_t n = min(p.n - first, p.chunk);
    const RowIn<T> x{p.x + (r * p.n + first) * item, p.dtype};
    const RowOut<T> y{p.y + (r * p.n + first) * item, p.dtype};
    const RowParts parts{p.parts, p.rows, p.n_chunks, r};
    RowSum<T> sum, squares;
    T total = 0;
    if (s.has(kSum) && p.mean) {
      for_blocks(n, [&](int64_t i, int64_t k) { row_add(&sum, x.get(i, k, in), k); });
      total = row_total(sum);
      if (s.last == kSum) parts.put(0, c, double(total));
    }
    T mean = 0;
    if (p.mean) mean = (s.first > kSum ? T(parts.total(0)) : total) / T(p.n);
    if (s.has(kSquares)) {
      for_blocks(
          n, [&](int64_t i, int64_t k) { row_add_squares(&squares, x.get(i, k, in), mean, k); });
      total = row_total(squares);
      if (s.last == kSquares) parts.put(1, c, double(total));
    }
    if (!s.has(kNormalize)) continue;
    const T rstd =
        T(1) / math::sqrt((s.first > kSquares ? T(parts.total(1)) : total) / T(p.n) + T(p.eps));
    if (p.inner) {
      normalise_channels(p, r, first, n, x, y, mean, rstd);
    } else {
      for_blocks(n, [&](int64_t i, int64_t k) {
        T* d = y.at(i, out);
        normalise(d, x.get(i, k, in), mean, rstd, p.weight ? weight.get(first + i, k, ws) : nullptr,
                  p.bias ? bias.get(first + i, k, bs) : nullptr, k);
        y.put(i, k, d);
      });
    }
    if (c) continue;
    if (p.mean) store_one(p.mean + r * stat, mean, p.stat_dtype);
    store_one(p.rstd + r * stat, rstd, p.stat_dtype);
  }
  return TT_OK;
}

// ---- backward ----
// With h = (x - mean) rstd and u = g weight: dx = rstd (u - mean(u) - h mean(u h)). Step 0 computes
// the sums of u and u h, and dweight and dbias of a chunk of rows; step 1 computes dx.

// The statistics of a row.
template <class T> struct RowStats { T mean, rstd; };

// How many vectors of two sums are kept at a time: with 16 registers (AVX2, SSE2) or 32, both and
// their terms fit.
constexpr int kVectorsOfSums = TT_SSE2 && TT_VEC_BYTES < 64 ? 4 : 8;

// Adds u to *su and u h to *suh. kSums: adds g h to dw and g to db, elementwise.
template <class T, bool kSums> TT_NOINLINE void moments(const T* g, const T* x, const T* weight,
                                                        RowStats<T> s, T* dw, T* db, int64_t n,
                                                        RowSum<T>* su, RowSum<T>* suh) {
  constexpr int L = kLanes<T>;
  constexpr int kAll = kBlockLanes / L;
  constexpr int kSome = min(kAll, kVectorsOfSums);
  const Vec<T> mean = splat(s.mean);
  const Vec<T> rstd = splat(s.rstd);
  const int64_t whole = n / kBlockLanes * kBlockLanes;
  for (int first = 0; whole && first < kAll * L; first += kSome * L) {
    Vec<T> a[kSome], b[kSome];
    TT_UNROLL_BY(8)
    for (int k = 0; k < kSome; k++) {
      a[k] = load(su->lane + first + k * L);
      b[k] = load(suh->lane + first + k * L);
    }
    for (int64_t i = first; i < whole; i += kBlockLanes) {
      TT_UNROLL_BY(8)
      for (int k = 0; k < kSome; k++) {
        const int64_t at = i + k * L;
        const Vec<T> gv = load(g + at);
        const Vec<T> h = (load(x + at) - mean) * rstd;
        const Vec<T> u = gv * load(weight + at);
        a[k] += u;
        b[k] = vfma(u, h, b[k]);
        if constexpr (kSums) {
          store(dw + at, vfma(gv, h, load(dw + at)));
          store(db + at, Vec<T>(load(db + at) + gv));
        }
      }
    }
    TT_UNROLL_BY(8)
    for (int k = 0; k < kSome; k++) {
      store(su->lane + first + k * L, a[k]);
      store(suh->lane + first + k * L, b[k]);
    }
  }
  if (whole == n) return;
  alignas(64) T us[kBlockLanes] = {};
  alignas(64) T uhs[kBlockLanes] = {};
  for (int64_t i = whole, l = 0; i < n; i++, l++) {
    const T h = (x[i] - s.mean) * s.rstd;
    us[l] = g[i] * weight[i];
    uhs[l] = us[l] * h;
    if constexpr (kSums) {
      dw[i] += g[i] * h;
      db[i] += g[i];
    }
    TT_SCALAR_LOOP;
  }
  TT_UNROLL_LANES
  for (int k = 0; k < kBlockLanes; k += L) {
    store(su->lane + k, Vec<T>(load(su->lane + k) + load(us + k)));
    store(suh->lane + k, Vec<T>(load(suh->lane + k) + load(uhs + k)));
  }
}

template <class T> struct BackwardRow {
  const LayerNormBackwardPlan& p;
  const int64_t part, first, n;  // this part of each row: elements [first, first + n)
  const RowIn<T> weight;
  alignas(64) T gs[kRowBlock], xs[kRowBlock], ws[kRowBlock];

  // Weights [i, i + k) of this part; if there is no weight, ws holds ones.
  const T* weights(int64_t i, int64_t k) { return p.weight ? weight.get(first + i, k, ws) : ws; }

  // Row r. dweight and dbias: those of this part, or NULL.
  void run(int64_t r, T* dweight, T* dbias, Steps steps) {
    const int64_t at = (r * p.n + first) * kItemSize[p.dtype];
    const int64_t stat = r * kItemSize[p.stat_dtype];
    const RowIn<T> g{p.g + at, p.dtype};
    const RowIn<T> x{p.x + at, p.dtype};
    const RowStats<T> s{p.mean ? load_one<T>(p.mean + stat, p.stat_dtype) : T(0),
                        load_one<T>(p.rstd + stat, p.stat_dtype)};
    const RowParts parts{p.parts, p.rows, p.n_parts, r};
    T total_u = 0;
    T total_uh = 0;
    if (steps.has(kSum)) {
      RowSum<T> su, suh;
      for_blocks(n, [&](int64_t i, int64_t k) {
        const T* gv = g.get(i, k, gs);
        const T* xv = x.get(i, k, xs);
        const T* w = weights(i, k);
        if (dweight) moments<T, true>(gv, xv, w, s, dweight + i, dbias + i, k, &su, &suh);
        else moments<T, false>(gv, xv, w, s, nullptr, nullptr, k, &su, &suh);
      });
      total_u = row_total(su);
      total_uh = row_total(suh);
      if (steps.last == kSum) {
        parts.put(0, part, double(total_u));
        return parts.put(1, part, double(total_uh));
      }
    } else {
      total_u = T(parts.total(0));
      total_uh = T(parts.total(1));
    }
    if (!p.dx) return;
    const T mean_u = p.mean ? total_u / T(p.n) : T(0);
    const T slope = s.rstd * s.rstd * (total_uh / T(p.n));
    const RowOut<T> dx{p.dx + at, p.dtype};
    alignas(64) T out[kRowBlock];
    for_blocks(n, [&](int64_t i, int64_t k) {
      const T* gv = g.get(i, k, gs);
      const T* xv = x.get(i, k, xs);
      const T* w = weights(i, k);
      T* d = dx.at(i, out);
      // Exactly 0 if n is 1.
      TT_VECTORIZE
      for (int64_t j = 0; j < k; j++)
        d[j] = vfma(s.mean - xv[j], slope, (gv[j] * w[j] - mean_u) * s.rstd);
      dx.put(i, k, d);
    });
  }
};

#if TT_VECTOR_MATH
// Rows [from, to) of n < kShortRow floats: the results of BackwardRow::run. dw, db: NULL or [n].
template <class Row> TT_INLINE void backward_rows(const LayerNormBackwardPlan& p, const Row& row,
                                                  int64_t from, int64_t to, float* dw, float* db) {
  constexpr int N = Row::kN;
  const float* weight = reinterpret_cast<const float*>(p.weight);
  const float n = float(p.n);
  F32v w[N], dws[N], dbs[N], g[N], x[N], us[N], uhs[N];
  TT_UNROLL_BY(4)
  for (int k = 0; k < N; k++) {
    w[k] = weight ? row.get(weight, k) : splat(1.0f);
    dws[k] = dbs[k] = splat(0.0f);
  }
  for (int64_t r = from; r < to; r++) {
    const float mean = p.mean ? reinterpret_cast<const float*>(p.mean)[r] : 0;
    const float rstd = reinterpret_cast<const float*>(p.rstd)[r];
    TT_UNROLL_BY(4)
    for (int k = 0; k < N; k++) {
      g[k] = row.get(reinterpret_cast<const float*>(p.g) + r * p.n, k);
      x[k] = row.get(reinterpret_cast<const float*>(p.x) + r * p.n, k);
      const F32v h = row.within(k, (x[k] - splat(mean)) * splat(rstd));
      us[k] = g[k] * w[k];
      uhs[k] = us[k] * h;
      dws[k] += g[k] * h;
      dbs[k] += g[k];
    }
    if (!p.dx) continue;
    const F32v mean_u = splat(p.mean ? total_of<N>(us) / n : 0.0f);
    const F32v slope = splat(rstd * rstd * (total_of<N>(uhs) / n));
    TT_UNROLL_BY(4)
    for (int k = 0; k < N; k++) {
      const F32v part = (us[k] - mean_u) * splat(rstd);
      row.put(reinterpret_cast<float*>(p.dx) + r * p.n, k, vfma(splat(mean) - x[k], slope, part));
    }
  }
  for (int k = 0; k < N && dw; k++) {
    row.put(dw, k, dws[k]);
    row.put(db, k, dbs[k]);
  }
}
inline bool backward_short(const LayerNormBackwardPlan& p, int64_t from, int64_t to, float* dw,
                           float* db) {
  const bool floats =
      p.dtype == TT_F32 && p.stat_dtype == TT_F32 && (!p.weight || p.weight_dtype == TT_F32);
  if (!floats || p.n >= kShortRow || p.n < 1 || p.n_parts > 1) return false;
  with_short_row(p.n, [&](const auto& row) { backward_rows(p, row, from, to, dw, db); });
  return true;
}
#else
inline bool backward_short(const LayerNormBackwardPlan&, int64_t, int64_t, float*, float*) {
  return false;
}
#endif

template <class T>
inline void backward_chunk(const LayerNormBackwardPlan& p, int64_t c, int64_t part) {
  const int64_t from = c * p.chunk;
  const int64_t to = min(from + p.chunk, p.rows);
  const int64_t first = part * p.part;
  const int64_t n = min(p.n - first, p.part);
  BackwardRow<T> row{p, part, first, n, {p.weight, p.weight_dtype}, {}, {}, {}};
  for (int64_t i = 0; i < kRowBlock; i++) row.ws[i] = 1;
  T* dw = nullptr;
  T* db = nullptr;
  if ((p.dweight || p.dbias) && p.run.stage == 0) {
    const bool joined = p.run.units[2] != 0;
    dw = joined ? static_cast<T*>(p.workspace) + c * 2 * p.n : reinterpret_cast<T*>(p.dweight);
    dw += first;
    db = joined ? dw + p.n : reinterpret_cast<T*>(p.dbias) + first;
    for (int64_t i = 0; i < n; i++) dw[i] = db[i] = 0;
  }
  if constexpr (sizeof(T) == 4)
    if (backward_short(p, from, to, dw, db)) return;
  const Steps steps = p.n_parts > 1 ? Steps{p.run.stage, p.run.stage} : Steps{0, 1};
  for (int64_t r = from; r < to; r++) row.run(r, dw, db, steps);
}

// Columns [from, to) of the sum over chunks of rows; which: 0 dweight, 1 dbias. workspace:
// [n_chunks][2][n].
template <class T> inline void sum_chunks(const LayerNormBackwardPlan& p, int which, int64_t from,
                                          int64_t to, char* out) {
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
    if (p.run.stage < 2) {
      backward_chunk<T>(p, u / p.n_parts, u % p.n_parts);
      continue;
    }
    const int64_t from = u * kRowTile;
    const int64_t to = min(from + kRowTile, p.n);
    if (p.dweight) sum_chunks<T>(p, 0, from, to, p.dweight);
    if (p.dbias) sum_chunks<T>(p, 1, from, to, p.dbias);
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(layer_norm)(const void* plan, int64_t begin, int64_t end) noexcept {
  const LayerNormPlan& p = *static_cast<const LayerNormPlan*>(plan);
  if (normalise_short(p, begin, end)) return TT_OK;
  const Steps s = p.n_chunks > 1 ? Steps{p.run.stage, p.run.stage} : Steps{kSum, kNormalize};
  return is_dtype(p.dtype, TT_F64) ? forward<double>(p, begin, end, s)
                                   : forward<float>(p, begin, end, s);
}

TT_KERNEL(layer_norm_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  const LayerNormBackwardPlan& p = *static_cast<const LayerNormBackwardPlan*>(plan);
  return is_dtype(p.dtype, TT_F64) ? backward<double>(p, begin, end)
                                   : backward<float>(p, begin, end);
}

TT_ENTRY_END
