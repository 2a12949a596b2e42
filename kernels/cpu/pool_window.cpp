// Pooling window by window: indices of the largest elements, and the gradients.
#include "cpu/pool.h"

#include "cpu/loop.h"

TT_ISA_BEGIN

template <class T> TT_INLINE bool beats(T v, T best) { return (v > best) | (v != v); }

// ---- planes ----

template <class T> TT_INLINE T lowest() {
  if constexpr (T(0.5) == T(0)) return INT64_MIN;
  else return -T(__builtin_inf());
}

// Wide steps may miss the whole image.
TT_INLINE bool is_empty(const Window& h, const Window& w) { return (h.begin >= h.end) | (w.begin >= w.end); }

// The largest element of a window of x and its index in the plane: -1 for none.
template <class T> TT_INLINE int64_t largest(const T* x, int64_t width, const Window& h, const Window& w, T* value) {
  if (is_empty(h, w)) {
    *value = lowest<T>();
    return -1;
  }
  int64_t at = h.begin * width + w.begin;
  T best = x[at];
  for (int64_t i = h.begin; i < h.end; i += h.step)
    for (int64_t j = w.begin; j < w.end; j += w.step) {
      const T v = x[i * width + j];
      if (beats(v, best)) best = v, at = i * width + j;
    }
  *value = best;
  return at;
}

template <class T> TT_NOINLINE void index_planes(const PoolPlan& p, int64_t u) {
  const int64_t plane = u / p.n_tiles, from = u % p.n_tiles * p.rows,
                to = from + p.rows < p.out[0] ? from + p.rows : p.out[0];
  const T* x = reinterpret_cast<const T*>(p.x) + plane * p.in[0] * p.in[1];
  for (int64_t o = from; o < to; o++) {
    const Window h = window(p, 0, o);
    const int64_t at = (plane * p.out[0] + o) * p.out[1];
    for (int64_t j = 0; j < p.out[1]; j++) {
      T v;
      const int64_t index = largest(x, p.in[1], h, window(p, 1, j), &v);
      reinterpret_cast<T*>(p.y)[at + j] = v;
      if (p.index) p.index[at + j] = index < 0 ? 0 : index;
    }
  }
}

// The elements of even and odd by turns: the first (0) or second (1) half of them.
template <int kSecond, class T, int N>
TT_INLINE typename Halves<T, N>::Whole by_turns(typename Halves<T, N>::Whole even, typename Halves<T, N>::Whole odd) {
  constexpr int o = kSecond * N / 2;
  if constexpr (N == 16)
    return __builtin_shufflevector(even, odd, o, o + 16, o + 1, o + 17, o + 2, o + 18, o + 3, o + 19, o + 4, o + 20,
                                   o + 5, o + 21, o + 6, o + 22, o + 7, o + 23);
  else if constexpr (N == 8)
    return __builtin_shufflevector(even, odd, o, o + 8, o + 1, o + 9, o + 2, o + 10, o + 3, o + 11);
  else return __builtin_shufflevector(even, odd, o, o + 4, o + 1, o + 5);
}

// Windows of 2 x 2 side by side: of the rows a and b of x; da and db get g where the largest element is, else 0.
template <class T, int N>
TT_INLINE int64_t quarter_backward_by(T* da, T* db, const T* a, const T* b, const T* g, int64_t j, int64_t n) {
  using V = typename Halves<T, N>::Whole;
  auto get = [](const T* p) TT_INLINE_LAMBDA {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  };
  auto put = [](T* p, V v) TT_INLINE_LAMBDA { __builtin_memcpy(p, &v, sizeof v); };
  const V none = {};
  for (; j + N <= n; j += N) {
    const V a0 = get(a + 2 * j), a1 = get(a + 2 * j + N), b0 = get(b + 2 * j), b1 = get(b + 2 * j + N),
            grad = get(g + j);
    const V v0 = every_second<0, T, N>(a0, a1), v1 = every_second<1, T, N>(a0, a1), v2 = every_second<0, T, N>(b0, b1),
            v3 = every_second<1, T, N>(b0, b1);
    const auto k1 = (v1 > v0) | (v1 != v1);
    const V best1 = k1 ? v1 : v0;
    const auto k2 = (v2 > best1) | (v2 != v2);
    const V best2 = k2 ? v2 : best1;
    const auto k3 = (v3 > best2) | (v3 != v3);
    const V g3 = k3 ? grad : none, left3 = k3 ? none : grad, g2 = k2 ? left3 : none, left2 = k2 ? none : left3,
            g1 = k1 ? left2 : none, g0 = k1 ? none : left2;
    put(da + 2 * j, by_turns<0, T, N>(g0, g1)), put(da + 2 * j + N, by_turns<1, T, N>(g0, g1));
    put(db + 2 * j, by_turns<0, T, N>(g2, g3)), put(db + 2 * j + N, by_turns<1, T, N>(g2, g3));
  }
  return j;
}

// The rows [from, to) of dx that a unit makes.
struct Rows {
  int64_t from, to;
  TT_INLINE bool meet(const Window& h) const { return (h.begin < to) & (h.end > from); }
};

template <class T> TT_INLINE void clear_rows(T* dx, Rows r, int64_t width) {
  __builtin_memset(dx + r.from * width, 0, size_t((r.to - r.from) * width) * sizeof(T));
}

template <class T> TT_NOINLINE void quarter_backward(const PoolPlan& p, int64_t plane, Rows r) {
  constexpr int L = kLanes<T> < 4 ? 4 : kLanes<T>;
  const int64_t width = p.in[1], size = p.in[0] * width, n = p.out[1];
  const T* x = reinterpret_cast<const T*>(p.x) + plane * size;
  const int64_t first = r.from / 2, last = r.to / 2 < p.out[0] ? r.to / 2 : p.out[0];
  const T* g = reinterpret_cast<const T*>(p.g) + (plane * p.out[0] + first) * n;
  T* dx = reinterpret_cast<T*>(p.y) + plane * size;
  if (2 * p.out[0] != p.in[0] || 2 * n != width) clear_rows(dx, r, width);
  for (int64_t o = first; o < last; o++, g += n) {
    const T *a = x + 2 * o * width, *b = a + width;
    T *da = dx + 2 * o * width, *db = da + width;
    int64_t j = quarter_backward_by<T, L>(da, db, a, b, g, 0, n);
    if constexpr (L > 8) j = quarter_backward_by<T, 8>(da, db, a, b, g, j, n);
    if constexpr (L > 4) j = quarter_backward_by<T, 4>(da, db, a, b, g, j, n);
    for (; j < n; j++) {
      const T v[4] = {a[2 * j], a[2 * j + 1], b[2 * j], b[2 * j + 1]};
      int at = 0;
      for (int k = 1; k < 4; k++) at = beats(v[k], v[at]) ? k : at;
      da[2 * j] = at == 0 ? g[j] : 0, da[2 * j + 1] = at == 1 ? g[j] : 0, db[2 * j] = at == 2 ? g[j] : 0,
             db[2 * j + 1] = at == 3 ? g[j] : 0;
    }
  }
}

template <class T> TT_NOINLINE void max_backward_plane(const PoolPlan& p, int64_t plane, Rows r) {
  if (quarters(p, true)) return quarter_backward<T>(p, plane, r);
  const int64_t size = p.in[0] * p.in[1];
  const T* x = reinterpret_cast<const T*>(p.x) + plane * size;
  const T* g = reinterpret_cast<const T*>(p.g) + plane * p.out[0] * p.out[1];
  T* dx = reinterpret_cast<T*>(p.y) + plane * size;
  clear_rows(dx, r, p.in[1]);
  const int64_t low = r.from * p.in[1];
  const uint64_t span = uint64_t(r.to * p.in[1] - low);
  for (int64_t o = 0; o < p.out[0]; o++) {
    const Window h = window(p, 0, o);
    if (!r.meet(h)) continue;
    for (int64_t j = 0; j < p.out[1]; j++) {
      T v;
      const int64_t at = largest(x, p.in[1], h, window(p, 1, j), &v);
      if (uint64_t(at - low) < span) dx[at] += g[o * p.out[1] + j];
    }
  }
}

template <class T> TT_NOINLINE void average_backward_plane(const PoolPlan& p, int64_t plane, Rows r) {
  const int64_t size = p.in[0] * p.in[1];
  const T* g = reinterpret_cast<const T*>(p.g) + plane * p.out[0] * p.out[1];
  T* dx = reinterpret_cast<T*>(p.y) + plane * size;
  clear_rows(dx, r, p.in[1]);
  for (int64_t o = 0; o < p.out[0]; o++) {
    const Window h = window(p, 0, o);
    const int64_t first = h.begin > r.from ? h.begin : r.from, last = h.end < r.to ? h.end : r.to;
    if (first >= last) continue;
    for (int64_t k = 0; k < p.out[1]; k++) {
      const Window w = window(p, 1, k);
      const T share = g[o * p.out[1] + k] / T(divisor(p, h, w));
      for (int64_t i = first; i < last; i++) {
        TT_VECTORIZE
        for (int64_t j = w.begin; j < w.end; j++) dx[i * p.in[1] + j] += share;
      }
    }
  }
}

// ---- channels last: up to kPoolTile channels at a time ----

template <class T> struct Pixel {
  T best[kPoolTile];
  int64_t at[kPoolTile];

  // x: the first of the n channels at pixel (0, 0)
  TT_NOINLINE void largest(const PoolPlan& p, const T* x, const Window& h, const Window& w, int64_t n) {
    if (is_empty(h, w)) {
      for (int64_t c = 0; c < n; c++) best[c] = lowest<T>(), at[c] = 0;
      return;
    }
    const int64_t start = h.begin * p.in[1] + w.begin;
    for (int64_t c = 0; c < n; c++) best[c] = x[start * p.c + c], at[c] = start;
    for (int64_t i = h.begin; i < h.end; i += h.step)
      for (int64_t j = w.begin; j < w.end; j += w.step) {
        const int64_t here = i * p.in[1] + j;
        TT_VECTORIZE
        for (int64_t c = 0; c < n; c++) {
          const T v = x[here * p.c + c];
          const bool wins = beats(v, best[c]);
          best[c] = wins ? v : best[c], at[c] = wins ? here : at[c];
        }
      }
  }
};

template <class T> TT_NOINLINE void index_pixels(const PoolPlan& p, int64_t u) {
  const int64_t image = u / p.n_tiles, from = u % p.n_tiles * p.rows,
                to = from + p.rows < p.out[0] ? from + p.rows : p.out[0];
  const T* x = reinterpret_cast<const T*>(p.x) + image * p.in[0] * p.in[1] * p.c;
  Pixel<T> pixel;
  for (int64_t o = from; o < to; o++)
    for (int64_t j = 0; j < p.out[1]; j++)
      for (int64_t c = 0; c < p.c; c += kPoolTile) {
        const int64_t n = p.c - c < kPoolTile ? p.c - c : kPoolTile,
                      at = ((image * p.out[0] + o) * p.out[1] + j) * p.c + c;
        pixel.largest(p, x + c, window(p, 0, o), window(p, 1, j), n);
        __builtin_memcpy(reinterpret_cast<T*>(p.y) + at, pixel.best, size_t(n) * sizeof(T));
        if (p.index) __builtin_memcpy(p.index + at, pixel.at, size_t(n) * sizeof(int64_t));
      }
}

// Channels [c, c + n) of an image; kMax: of the largest elements, else of averages.
template <class T, bool kMax>
TT_NOINLINE void backward_pixels(const PoolPlan& p, int64_t image, int64_t c, int64_t n, Rows r) {
  const int64_t size = p.in[0] * p.in[1] * p.c;
  const T *x = reinterpret_cast<const T*>(p.x) + image * size + c,
          *gradient = reinterpret_cast<const T*>(p.g) + image * p.out[0] * p.out[1] * p.c + c;
  T* dx = reinterpret_cast<T*>(p.y) + image * size + c;
  Pixel<T> pixel;
  const int64_t low = r.from * p.in[1], high = r.to * p.in[1];
  for (int64_t i = low; i < high; i++) __builtin_memset(dx + i * p.c, 0, size_t(n) * sizeof(T));
  for (int64_t o = 0; o < p.out[0]; o++) {
    const Window h = window(p, 0, o);
    const int64_t first = h.begin > r.from ? h.begin : r.from, last = h.end < r.to ? h.end : r.to;
    if (!r.meet(h)) continue;
    const T* g = gradient + o * p.out[1] * p.c;
    for (int64_t k = 0; k < p.out[1]; k++, g += p.c) {
      const Window w = window(p, 1, k);
      if constexpr (kMax) {
        if (is_empty(h, w)) continue;
        pixel.largest(p, x, h, w, n);
        for (int64_t j = 0; j < n; j++)
          if (pixel.at[j] >= low && pixel.at[j] < high) dx[pixel.at[j] * p.c + j] += g[j];
      } else {
        for (int64_t j = 0; j < n; j++) pixel.best[j] = g[j] / T(divisor(p, h, w));
        for (int64_t i = first; i < last; i++)
          for (int64_t l = w.begin; l < w.end; l++) {
            T* to = dx + (i * p.in[1] + l) * p.c;
            TT_VECTORIZE
            for (int64_t j = 0; j < n; j++) to[j] += pixel.best[j];
          }
      }
    }
  }
}

template <class T> inline int32_t index_units(const PoolPlan& p, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; u++) p.channels_last ? index_pixels<T>(p, u) : index_planes<T>(p, u);
  return TT_OK;
}

template <class T, bool kMax> inline int32_t backward_units(const PoolPlan& p, int64_t begin, int64_t end) {
  const int64_t tiles = (p.c + kPoolTile - 1) / kPoolTile;
  for (int64_t u = begin; u < end; u++) {
    const int64_t plane = u / p.n_tiles, from = u % p.n_tiles * p.rows;
    const Rows r = {from, from + p.rows < p.in[0] ? from + p.rows : p.in[0]};
    if (p.channels_last) {
      const int64_t c = plane % tiles * kPoolTile;
      backward_pixels<T, kMax>(p, plane / tiles, c, p.c - c < kPoolTile ? p.c - c : kPoolTile, r);
    } else if constexpr (kMax) {
      max_backward_plane<T>(p, plane, r);
    } else {
      average_backward_plane<T>(p, plane, r);
    }
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(pool_max_index)(const void* plan, int64_t begin, int64_t end) noexcept {
  const PoolPlan& p = *static_cast<const PoolPlan*>(plan);
  if (p.dtype == TT_I64) return index_units<int64_t>(p, begin, end);
  return p.dtype == TT_F64 ? index_units<double>(p, begin, end) : index_units<float>(p, begin, end);
}
TT_KERNEL(pool_max_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  const PoolPlan& p = *static_cast<const PoolPlan*>(plan);
  return p.dtype == TT_F64 ? backward_units<double, true>(p, begin, end) : backward_units<float, true>(p, begin, end);
}
TT_KERNEL(pool_average_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  const PoolPlan& p = *static_cast<const PoolPlan*>(plan);
  return p.dtype == TT_F64 ? backward_units<double, false>(p, begin, end) : backward_units<float, false>(p, begin, end);
}

TT_ENTRY_END
