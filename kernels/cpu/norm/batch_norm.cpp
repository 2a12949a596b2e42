// batch_norm and its backward.
//   x, g, y: (outer, channels, inner)
//   channel_sums, forward   mean, rstd and variance of each channel: out [3][channels]
//   channel_sums, backward  sum of g and sum of g (x - mean) rstd: out [2][channels]
//   channel_affine          y, or dx, from them
//   channel_norm            both, a channel at a time
//
// Stage 0 of channel_sums leaves two sums per chunk and channel in workspace,
// [n_chunks][2][channels]; stage 1 combines them. If inner is 1 (columns), channels are contiguous;
// else planes of inner elements are (planes).
#include "kernels/cpu/norm/batch_norm.h"

#include "kernels/cpu/norm/gradient_pairs.h"
#include "plan/norm_plan.h"

TT_ISA_BEGIN

// Element i of a statistic.
template <class T> TT_INLINE T at(const char* p, int64_t i) {
  return reinterpret_cast<const T*>(p)[i];
}

// ---- planes: inner > 1 ----

template <class T> struct PlaneSums {
  const ChannelSumPlan& p;
  int64_t from, to, channel, first, n;  // inner elements [first, first + n)
  alignas(64) T xs[kRowBlock], gs[kRowBlock];

  // Calls f(x, g, k) for each block of the channel's elements in this chunk; g is NULL in forward.
  template <class F> TT_INLINE void each(const F& f) {
    const int64_t item = kItemSize[p.dtype];
    for (int64_t o = from; o < to; o++) {
      const int64_t start = ((o * p.channels + channel) * p.inner + first) * item;
      const RowIn<T> x{p.x + start, p.dtype};
      const RowIn<T> g{p.g ? p.g + start : nullptr, p.dtype};
      for_blocks(
          n, [&](int64_t i, int64_t k) { f(x.get(i, k, xs), p.g ? g.get(i, k, gs) : nullptr, k); });
    }
  }
  void stats(T* mean, T* squares) {
    RowSum<T> sum, square;
    each([&](const T* x, const T*, int64_t k) { row_add(&sum, x, k); });
    const T m = row_total(sum) / T((to - from) * n);
    each([&](const T* x, const T*, int64_t k) { row_add_squares(&square, x, m, k); });
    *mean = m;
    *squares = row_total(square);
  }
  void sums(T* sum_g, T* sum_gx) {
    RowSum<T> of_g, of_gx;
    const T mean = at<T>(p.mean, channel);
    each([&](const T* x, const T* g, int64_t k) { add_pairs(&of_g, &of_gx, g, x, mean, k); });
    *sum_g = row_total(of_g);
    *sum_gx = row_total(of_gx);
  }
};

// ---- columns: inner == 1 ----

template <class T> struct ColumnSums {
  const ChannelSumPlan& p;
  int64_t from, to;
  alignas(64) T xs[kRowBlock], gs[kRowBlock];

  // Calls f(x, g) with channels [c, c + k) of each row.
  template <class F> TT_INLINE void each(int64_t c, int64_t k, const F& f) {
    const int64_t row = p.channels * kItemSize[p.dtype];
    for (int64_t o = from; o < to; o++) {
      const RowIn<T> x{p.x + o * row, p.dtype};
      const RowIn<T> g{p.g ? p.g + o * row : nullptr, p.dtype};
      f(x.get(c, k, xs), p.g ? g.get(c, k, gs) : nullptr);
    }
  }
  void stats(T* mean, T* squares) {
    for_blocks(p.channels, [&](int64_t c, int64_t k) {
      T* m = mean + c;
      T* s = squares + c;
      for (int64_t j = 0; j < k; j++) m[j] = s[j] = 0;
      each(c, k, [&](const T* x, const T*) TT_INLINE_BODY {
        TT_VECTORIZE
        for (int64_t j = 0; j < k; j++) m[j] += x[j];
      });
      for (int64_t j = 0; j < k; j++) m[j] /= T(to - from);
      each(c, k, [&](const T* x, const T*) TT_INLINE_BODY {
        TT_VECTORIZE
        for (int64_t j = 0; j < k; j++) s[j] = vfma(x[j] - m[j], x[j] - m[j], s[j]);
      });
    });
  }
  void sums(T* sum_g, T* sum_gx) {
    for_blocks(p.channels, [&](int64_t c, int64_t k) {
      T* of_g = sum_g + c;
      T* of_gx = sum_gx + c;
      const T* mean = reinterpret_cast<const T*>(p.mean) + c;
      for (int64_t j = 0; j < k; j++) of_g[j] = of_gx[j] = 0;
      each(c, k, [&](const T* x, const T* g) TT_INLINE_BODY {
        TT_VECTORIZE
        for (int64_t j = 0; j < k; j++) {
          of_g[j] += g[j];
          of_gx[j] = vfma(g[j], x[j] - mean[j], of_gx[j]);
        }
      });
    });
  }
};

// Stage 0: the two sums of unit u, a chunk (of a channel if inner > 1).
template <class T> inline void partial(const ChannelSumPlan& p, int64_t u) {
  const int64_t chunk = p.inner == 1 ? u : u / p.channels;
  const int64_t channel = p.inner == 1 ? 0 : u % p.channels;
  const int64_t from = chunk / p.n_parts * p.chunk;
  const int64_t to = min(from + p.chunk, p.outer);
  T* first = static_cast<T*>(p.workspace) + chunk * 2 * p.channels + channel;
  if (p.inner == 1) {
    ColumnSums<T> s{p, from, to, {}, {}};
    if (p.g) s.sums(first, first + p.channels);
    else s.stats(first, first + p.channels);
  } else {
    const int64_t start = chunk % p.n_parts * p.part;
    const int64_t n = min(p.inner - start, p.part);
    PlaneSums<T> s{p, from, to, channel, start, n, {}, {}};
    if (p.g) s.sums(first, first + p.channels);
    else s.stats(first, first + p.channels);
  }
}

// Stage 1. Means and squared deviations are combined after Chan, Golub, LeVeque (1983).
template <class T> inline void join_stats(const ChannelSumPlan& p, int64_t c) {
  double mean = 0;
  double squares = 0;
  double n = 0;
  for (int64_t k = 0; k < p.n_chunks; k++) {
    const T* part = static_cast<const T*>(p.workspace) + k * 2 * p.channels + c;
    const int64_t row = k / p.n_parts * p.chunk;
    const int64_t rows = min(p.outer - row, p.chunk);
    const int64_t start = k % p.n_parts * p.part;
    const int64_t width = min(p.inner - start, p.part);
    const double m = double(rows) * double(width);
    const double all = n + m;
    const double delta = double(part[0]) - mean;
    mean += delta * (m / all);
    squares += double(part[p.channels]) + delta * delta * (n * m / all);
    n = all;
  }
  T* out = reinterpret_cast<T*>(p.out) + c;
  const double variance = squares / n;
  out[0] = T(mean);
  out[p.channels] = T(1 / math::sqrt(variance + p.eps));
  out[2 * p.channels] = T(variance);
}
template <class T> inline void join_sums(const ChannelSumPlan& p, int64_t c) {
  double sum_g = 0;
  double sum_gx = 0;
  for (int64_t k = 0; k < p.n_chunks; k++) {
    const T* part = static_cast<const T*>(p.workspace) + k * 2 * p.channels + c;
    sum_g += double(part[0]);
    sum_gx += double(part[p.channels]);
  }
  T* out = reinterpret_cast<T*>(p.out) + c;
  out[0] = T(sum_g);
  out[p.channels] = T(sum_gx * double(at<T>(p.rstd, c)));
}

template <class T> inline void join(const ChannelSumPlan& p, int64_t c) {
  if (p.g) join_sums<T>(p, c);
  else join_stats<T>(p, c);
}

template <class T>
inline int32_t channel_units(const ChannelSumPlan& p, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; u++) {
    if (p.run.stage == 0) {
      partial<T>(p, u);
      continue;
    }
    const int64_t last = min((u + 1) * kChannelTile, p.channels);
    for (int64_t c = u * kChannelTile; c < last; c++) join<T>(p, c);
  }
  return TT_OK;
}

// ---- channel_affine: y = (x - mean) x_scale + (g - g_mean) g_scale + shift ----
// Forward: g is NULL. Backward: with sums, x and g count; without (statistics are constants), only
// g.

template <class T> struct Coefficients {
  T mean, x_scale, g_mean, g_scale, shift;

  TT_INLINE Coefficients() {}
  TT_INLINE Coefficients(const ChannelAffinePlan& p, int64_t c) {
    const int64_t item = kItemSize[p.weight_dtype];
    const T w = p.weight ? load_one<T>(p.weight + c * item, p.weight_dtype) : T(1);
    const T scale = at<T>(p.rstd, c) * w;
    mean = at<T>(p.mean, c);
    x_scale = scale;
    g_scale = 0;
    g_mean = 0;
    shift = p.bias ? load_one<T>(p.bias + c * item, p.weight_dtype) : T(0);
    if (!p.g) return;
    x_scale = 0;
    g_scale = scale;
    if (!p.sums) return;
    const T n = T(p.outer) * T(p.inner);
    g_mean = at<T>(p.sums, c) / n;
    x_scale = -scale * at<T>(p.rstd, c) * (at<T>(p.sums, p.channels + c) / n);
  }
};

template <class T> TT_NOINLINE void affine_plane(T* TT_RESTRICT y, const T* TT_RESTRICT x,
                                                 const T* TT_RESTRICT g, Coefficients<T> k,
                                                 int64_t n) {
  if (g) {
    TT_VECTORIZE
    for (int64_t i = 0; i < n; i++)
      y[i] = vfma(x[i] - k.mean, k.x_scale, (g[i] - k.g_mean) * k.g_scale);
  } else {
    TT_VECTORIZE
    for (int64_t i = 0; i < n; i++) y[i] = vfma(x[i] - k.mean, k.x_scale, k.shift);
  }
}
template <class T>
TT_NOINLINE void scale_plane(T* TT_RESTRICT y, const T* TT_RESTRICT g, T factor, int64_t n) {
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++) y[i] = g[i] * factor;
}

template <class T>
inline void affine_planes(const ChannelAffinePlan& p, int64_t begin, int64_t end) {
  const int64_t item = kItemSize[p.dtype];
  alignas(64) T xs[kRowBlock], gs[kRowBlock], ys[kRowBlock];
  for (int64_t u = begin; u < end; u++) {
    const int64_t plane = u / p.n_parts;
    const int64_t first = u % p.n_parts * p.part;
    const Coefficients<T> k(p, plane % p.channels);
    const int64_t start = (plane * p.inner + first) * item;
    const RowIn<T> x{p.x + start, p.dtype};
    const RowIn<T> g{p.g + (p.g ? start : 0), p.dtype};
    const RowOut<T> y{p.y + start, p.dtype};
    for_blocks(min(p.inner - first, p.part), [&](int64_t i, int64_t n) {
      T* d = y.at(i, ys);
      if (p.g && !p.sums) scale_plane(d, g.get(i, n, gs), k.g_scale, n);
      else affine_plane(d, x.get(i, n, xs), p.g ? g.get(i, n, gs) : nullptr, k, n);
      y.put(i, n, d);
    });
  }
}

template <class T> struct ColumnCoefficients {
  alignas(64) T mean[kChannelTile], x_scale[kChannelTile], g_mean[kChannelTile],
      g_scale[kChannelTile], shift[kChannelTile];

  TT_NOINLINE void fill(const ChannelAffinePlan& p, int64_t c, int64_t n) {
    for (int64_t j = 0; j < n; j++) {
      const Coefficients<T> k(p, c + j);
      mean[j] = k.mean;
      x_scale[j] = k.x_scale;
      g_mean[j] = k.g_mean;
      g_scale[j] = k.g_scale;
      shift[j] = k.shift;
    }
  }
  TT_NOINLINE void row(T* TT_RESTRICT y, const T* TT_RESTRICT x, const T* TT_RESTRICT g, bool slope,
                       int64_t n) const {
    if (!g) {
      TT_VECTORIZE
      for (int64_t j = 0; j < n; j++) y[j] = vfma(x[j] - mean[j], x_scale[j], shift[j]);
    } else if (slope) {
      TT_VECTORIZE
      for (int64_t j = 0; j < n; j++)
        y[j] = vfma(x[j] - mean[j], x_scale[j], (g[j] - g_mean[j]) * g_scale[j]);
    } else {
      TT_VECTORIZE
      for (int64_t j = 0; j < n; j++) y[j] = g[j] * g_scale[j];
    }
  }
};

template <class T>
inline void affine_columns(const ChannelAffinePlan& p, int64_t begin, int64_t end) {
  const int64_t row = p.channels * kItemSize[p.dtype];
  alignas(64) T xs[kChannelTile], gs[kChannelTile], ys[kChannelTile];
  ColumnCoefficients<T> k;
  for (int64_t u = begin; u < end; u++) {
    const int64_t from = u * p.chunk;
    const int64_t to = min(from + p.chunk, p.outer);
    for (int64_t c = 0; c < p.channels; c += kChannelTile) {
      const int64_t n = min(p.channels - c, kChannelTile);
      k.fill(p, c, n);
      for (int64_t o = from; o < to; o++) {
        const RowIn<T> x{p.x + o * row, p.dtype};
        const RowIn<T> g{p.g ? p.g + o * row : nullptr, p.dtype};
        const RowOut<T> y{p.y + o * row, p.dtype};
        T* d = y.at(c, ys);
        k.row(d, p.g && !p.sums ? d : x.get(c, n, xs), p.g ? g.get(c, n, gs) : nullptr,
              p.sums != nullptr, n);
        y.put(c, n, d);
      }
    }
  }
}

template <class T> inline int32_t affine(const ChannelAffinePlan& p, int64_t begin, int64_t end) {
  if (p.inner == 1) affine_columns<T>(p, begin, end);
  else affine_planes<T>(p, begin, end);
  return TT_OK;
}

// ---- channel_norm ----

template <class T>
inline int32_t norm_channels(const ChannelNormPlan& p, int64_t begin, int64_t end) {
  const int64_t channels = p.sums.channels;
  const int64_t n_parts = p.affine.n_parts;
  for (int64_t c = begin; c < end; c++) {
    for (int64_t k = 0; k < p.sums.n_chunks; k++) partial<T>(p.sums, k * channels + c);
    join<T>(p.sums, c);
    for (int64_t o = 0; o < p.affine.outer; o++) {
      const int64_t first = (o * channels + c) * n_parts;
      affine_planes<T>(p.affine, first, first + n_parts);
    }
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(channel_sums)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ChannelSumPlan& p = *static_cast<const ChannelSumPlan*>(plan);
  return is_dtype(p.dtype, TT_F64) ? channel_units<double>(p, begin, end)
                                   : channel_units<float>(p, begin, end);
}

TT_KERNEL(channel_affine)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ChannelAffinePlan& p = *static_cast<const ChannelAffinePlan*>(plan);
  return is_dtype(p.dtype, TT_F64) ? affine<double>(p, begin, end) : affine<float>(p, begin, end);
}

TT_KERNEL(channel_norm)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ChannelNormPlan& p = *static_cast<const ChannelNormPlan*>(plan);
  return is_dtype(p.sums.dtype, TT_F64) ? norm_channels<double>(p, begin, end)
                                        : norm_channels<float>(p, begin, end);
}

TT_ENTRY_END
