// Resizing of images: two rows joined as vectors, then their columns by permutations of the row.
#include "cpu/resize.h"

#include "cpu/loop.h"
#include "cpu/rows_vec.h"
#include "cpu/stream.h"

TT_ISA_BEGIN

// ---- the table: for each result the two elements that it reads, and the weight of the second ----

template <class T>
struct Taps {
  int32_t* low;
  int32_t* high;
  T* weight;  // of high

  TT_INLINE Taps(const ResizePlan& p, int d) {
    char* at = p.table + (d ? p.out[0] * kResizeItem : 0);
    weight = reinterpret_cast<T*>(at);
    low = reinterpret_cast<int32_t*>(at + p.out[d] * 8), high = low + p.out[d];
  }
};

TT_INLINE int32_t below(double x, int64_t n) {
  const double at = double(float(x));  // not negative: truncation is the floor
  return at < double(n) ? int32_t(at) : int32_t(n - 1);
}

// PyTorch's nearest element is that of float arithmetic, but for doubles.
template <class T>
TT_NOINLINE void fill_taps(const ResizePlan& p, int d) {
  const Taps<T> t(p, d);
  const T scale = T(p.scale[d]);
  const int64_t in = p.in[d];
  for (int64_t o = 0; o < p.out[d]; o++) {
    if (p.mode != kResizeLinear) {
      const int64_t times = p.mode != kResizeNearest ? 0 : p.out[d] == in ? 1 : p.out[d] == 2 * in ? 2 : 0;
      const T place = p.mode == kResizeNearestExact ? T(o) + T(0.5) : T(o);
      t.low[o] = t.high[o] = times ? int32_t(o / times) : below(double(scale * place), in);
      t.weight[o] = 0;
      continue;
    }
    double at = p.out[d] == in ? double(o) : p.align ? p.scale[d] * double(o) : p.scale[d] * (double(o) + 0.5) - 0.5;
    at = at < 0 ? 0 : at > double(in - 1) ? double(in - 1) : at;
    t.low[o] = int32_t(at), t.high[o] = t.low[o] + (t.low[o] < in - 1);
    t.weight[o] = T(at - double(t.low[o]));
  }
}

// ---- rows ----

constexpr int64_t kSpan = 2048;  // columns of x at a time
constexpr int64_t kOut = 1024;   // columns of y at a time

template <class T>
TT_NOINLINE void join_two(T* TT_RESTRICT d, const T* TT_RESTRICT a, const T* TT_RESTRICT b, T w, int64_t n) {
  const T v = 1 - w;
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++) d[i] = vfma(b[i], w, a[i] * v);
}

// Columns [j, n) of y from t, whose first element is column `origin` of x.
template <class T>
TT_INLINE void pick_each(T* y, const T* t, const Taps<T>& taps, int64_t o1, int64_t j, int64_t n, int64_t origin, bool linear) {
  for (; j < n; j++) {
    const T a = t[taps.low[o1 + j] - origin], w = taps.weight[o1 + j];
    y[j] = linear ? vfma(t[taps.high[o1 + j] - origin], w, a * (1 - w)) : a;
  }
}
template <class T>
TT_NOINLINE void pick(T* y, const T* t, const Taps<T>& taps, int64_t o1, int64_t n, int64_t origin, bool linear) {
  pick_each(y, t, taps, o1, 0, n, origin, linear);
}
#if defined(__AVX2__)
// t[base + i[k]] for i in [0, 2 lanes).
struct TwoVectors {
  Vec<float> a, b;
  TT_INLINE Vec<float> at(Vec<int32_t> i) const {
#if defined(__AVX512F__)
    return Vec<float>(_mm512_permutex2var_ps(__m512(a), __m512i(i), __m512(b)));
#else
    const __m256 x = _mm256_permutevar8x32_ps(__m256(a), __m256i(i)), y = _mm256_permutevar8x32_ps(__m256(b), __m256i(i));
    return Vec<float>(_mm256_blendv_ps(x, y, _mm256_castsi256_ps(_mm256_cmpgt_epi32(__m256i(i), _mm256_set1_epi32(7)))));
#endif
  }
};
// t has two vectors of room behind it.
TT_NOINLINE void pick(float* y, const float* t, const Taps<float>& taps, int64_t o1, int64_t n, int64_t origin, bool linear) {
  constexpr int L = kLanes<float>;
  int64_t j = 0;
  for (; j + L <= n; j += L) {
    const int32_t *low = taps.low + o1 + j, *high = taps.high + o1 + j, base = low[0];
    if (high[L - 1] - base >= 2 * L) {
      pick_each(y, t, taps, o1, j, j + L, origin, linear);
      continue;
    }
    const TwoVectors two{load(t + base - origin), load(t + base - origin + L)};
    const Vec<int32_t> start = base - Vec<int32_t>{};
    Vec<float> r = two.at(load(low) - start);
    if (linear) {
      const Vec<float> w = load(taps.weight + o1 + j);
      r = vfma(two.at(load(high) - start), w, r * (splat(1.0f) - w));
    }
    store(y + j, r);
  }
  pick_each(y, t, taps, o1, j, n, origin, linear);
}
#endif

template <class T>
struct Rows {
  const ResizePlan& p;
  const int64_t item;
  const Taps<T> rows, columns;
  const bool linear, stream;
  alignas(64) T t[kSpan + 32], a[kSpan], b[kSpan];
  alignas(64) T y[kOut];

  explicit Rows(const ResizePlan& q)
      : p(q), item(kItemSize[q.dtype]), rows(q, 0), columns(q, 1), linear(q.mode == kResizeLinear),
        stream(worth_streaming(q.n * q.c * q.out[0] * q.out[1] * item) && is_line_aligned(q.y)) {
    for (int64_t i = 0; i < kSpan + 32; i++) t[i] = 0;
  }

  TT_INLINE const T* source(int64_t plane, int64_t row, int64_t from, int64_t n, T* buffer) const {
    const RowIn<T> in{p.x + (plane * p.in[0] + row) * p.in[1] * item, p.dtype};
    return in.get(from, n, buffer);
  }
  // Columns [o1, o1 + n) of row o; their sources lie within kSpan columns from `origin` on.
  void tile(int64_t plane, int64_t o, int64_t o1, int64_t n, int64_t origin, int64_t width) {
    const T* first = source(plane, rows.low[o], origin, width, a);
    if (linear)
      join_two(t, first, source(plane, rows.high[o], origin, width, b), rows.weight[o], width);
    else
      __builtin_memcpy(t, first, size_t(width) * sizeof(T));
    const int64_t at = (plane * p.out[0] + o) * p.out[1] + o1;
    const RowOut<T> out{p.y, p.dtype};
    const bool aside = !out.direct() || (stream && ((at | n) * item & 63) == 0);
    T* d = aside ? y : out.at(at, y);
    pick(d, t, columns, o1, n, origin, linear);
    if (!out.direct())
      out.put(at, n, d);
    else if (aside)
      stream_copy(p.y + at * item, reinterpret_cast<const char*>(d), n * item);
  }
  void unit(int64_t u) {
    const int64_t plane = u / p.n_tiles, from = u % p.n_tiles * p.rows, to = from + p.rows < p.out[0] ? from + p.rows : p.out[0];
    for (int64_t o1 = 0; o1 < p.out[1];) {
      const int64_t origin = columns.low[o1];
      int64_t n = p.out[1] - o1 < kOut ? p.out[1] - o1 : kOut;
      while (columns.high[o1 + n - 1] - origin >= kSpan) n = (n + 1) / 2;
      const int64_t width = columns.high[o1 + n - 1] - origin + 1;
      for (int64_t o = from; o < to; o++) tile(plane, o, o1, n, origin, width);
      o1 += n;
    }
    if (stream) stream_fence();
  }
};

// ---- channels last ----

template <class T>
TT_NOINLINE void join_four(T* TT_RESTRICT y, const T* const* x, T h, T w, int64_t n) {
  const T *TT_RESTRICT a = x[0], *TT_RESTRICT b = x[1], *TT_RESTRICT c = x[2], *TT_RESTRICT d = x[3];
  const T g = 1 - h, v = 1 - w;
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++) y[i] = vfma(vfma(d[i], h, b[i] * g), w, vfma(c[i], h, a[i] * g) * v);
}

template <class T>
struct Pixels {
  const ResizePlan& p;
  const int64_t item;
  const Taps<T> rows, columns;
  const bool linear;
  alignas(64) T x[4][kOut], y[kOut];

  explicit Pixels(const ResizePlan& q) : p(q), item(kItemSize[q.dtype]), rows(q, 0), columns(q, 1), linear(q.mode == kResizeLinear) {}

  void pixel(int64_t image, int64_t o, int64_t o1, int64_t c, int64_t n) {
    const int64_t r[2] = {rows.low[o], rows.high[o]}, q[2] = {columns.low[o1], columns.high[o1]};
    const RowOut<T> out{p.y, p.dtype};
    const int64_t at = ((image * p.out[0] + o) * p.out[1] + o1) * p.c + c;
    const T* from[4];
    for (int k = 0; k < (linear ? 4 : 1); k++)
      from[k] = RowIn<T>{p.x + (((image * p.in[0] + r[k / 2]) * p.in[1] + q[k % 2]) * p.c + c) * item, p.dtype}.get(0, n, x[k]);
    T* d = out.at(at, y);
    if (linear)
      join_four(d, from, rows.weight[o], columns.weight[o1], n);
    else
      __builtin_memcpy(d, from[0], size_t(n) * sizeof(T));
    out.put(at, n, d);
  }
  void unit(int64_t u) {
    const int64_t image = u / p.n_tiles, from = u % p.n_tiles * p.rows, to = from + p.rows < p.out[0] ? from + p.rows : p.out[0];
    for (int64_t o = from; o < to; o++)
      for (int64_t o1 = 0; o1 < p.out[1]; o1++)
        for (int64_t c = 0; c < p.c; c += kOut) pixel(image, o, o1, c, p.c - c < kOut ? p.c - c : kOut);
  }
};

// ---- backward: each gradient goes back to what its result read; `step` elements lie between columns, n channels beside each other ----

template <class T>
TT_NOINLINE void spread(const ResizePlan& p, const T* g, T* dx, int64_t step, int64_t n) {
  const Taps<T> rows(p, 0), columns(p, 1);
  for (int64_t i = 0; i < p.in[0] * p.in[1]; i++)
    for (int64_t k = 0; k < n; k++) dx[i * step + k] = 0;
  for (int64_t o = 0; o < p.out[0]; o++)
    for (int64_t j = 0; j < p.out[1]; j++, g += step) {
      const T h = rows.weight[o], w = columns.weight[j], weight[4] = {(1 - h) * (1 - w), (1 - h) * w, h * (1 - w), h * w};
      const int64_t low = rows.low[o] * p.in[1], high = rows.high[o] * p.in[1];
      T* to[4] = {dx + (low + columns.low[j]) * step, dx + (low + columns.high[j]) * step, dx + (high + columns.low[j]) * step,
                  dx + (high + columns.high[j]) * step};
      for (int q = 0; q < (p.mode == kResizeLinear ? 4 : 1); q++) {
        TT_VECTORIZE
        for (int64_t k = 0; k < n; k++) to[q][k] += weight[q] * g[k];
      }
    }
}

template <class T>
inline int32_t resize_units(const ResizePlan& p, int64_t begin, int64_t end, bool backward) {
  if (p.run.stage == 0) {
    fill_taps<T>(p, 0), fill_taps<T>(p, 1);
  } else if (backward) {
    const int64_t tiles = (p.c + kResizeTile - 1) / kResizeTile, in = p.in[0] * p.in[1], out = p.out[0] * p.out[1];
    const T* g = reinterpret_cast<const T*>(p.x);
    T* dx = reinterpret_cast<T*>(p.y);
    for (int64_t u = begin; u < end; u++) {
      if (!p.channels_last) {
        spread(p, g + u * out, dx + u * in, 1, 1);
        continue;
      }
      const int64_t image = u / tiles, c = u % tiles * kResizeTile, n = p.c - c < kResizeTile ? p.c - c : kResizeTile;
      spread(p, g + image * out * p.c + c, dx + image * in * p.c + c, p.c, n);
    }
  } else if (p.channels_last) {
    Pixels<T> pixels(p);
    for (int64_t u = begin; u < end; u++) pixels.unit(u);
  } else {
    Rows<T> rows(p);
    for (int64_t u = begin; u < end; u++) rows.unit(u);
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(resize)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ResizePlan& p = *static_cast<const ResizePlan*>(plan);
  return p.dtype == TT_F64 ? resize_units<double>(p, begin, end, false) : resize_units<float>(p, begin, end, false);
}
TT_KERNEL(resize_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ResizePlan& p = *static_cast<const ResizePlan*>(plan);
  return p.dtype == TT_F64 ? resize_units<double>(p, begin, end, true) : resize_units<float>(p, begin, end, true);
}

TT_ENTRY_END
