// pool_max_index and the backwards of pool_max and pool_average.
#include "kernels/cpu/pool/find.h"
#include "kernels/cpu/pool/small_windows.h"
#include "kernels/cpu/simd/row_primitives.h"

TT_ISA_BEGIN

// ---- planes ----

// Adjacent windows of 2 x 2 over rows a and b, `width` elements apart: y = the largest element of
// each window, at = its place in the window.
template <class T> TT_NOINLINE void halve_rows_indexed(T* TT_RESTRICT y, Position* TT_RESTRICT at,
                                                       const T* TT_RESTRICT a,
                                                       const T* TT_RESTRICT b, int64_t n) {
  const Position width = Position(b - a);
  TT_VECTORIZE
  for (int64_t j = 0; j < n; j++) {
    const T v0 = a[2 * j];
    const T v1 = a[2 * j + 1];
    const T v2 = b[2 * j];
    const T v3 = b[2 * j + 1];
    const bool wins1 = beats(v1, v0);
    const T best1 = wins1 ? v1 : v0;
    const Position at1 = wins1 ? 1 : 0;
    const bool wins2 = beats(v2, best1);
    const T best2 = wins2 ? v2 : best1;
    const Position at2 = wins2 ? width : at1;
    const bool wins3 = beats(v3, best2);
    y[j] = wins3 ? v3 : best2;
    at[j] = wins3 ? width + 1 : at2;
  }
}
TT_NOINLINE void halve_indexed(const PoolPlan& p, const PoolTile& t) {
  const int64_t width = p.in[1];
  const auto* x = reinterpret_cast<const float*>(p.x) + t.image * p.in[0] * width;
  Position at[kFound];
  for (int64_t o = t.from; o < t.to; o++)
    for (int64_t o1 = t.left; o1 < t.right; o1 += kFound) {
      const int64_t n = min(t.right - o1, kFound);
      const int64_t first = 2 * (o * width + o1);
      const int64_t r = (t.image * p.out[0] + o) * p.out[1] + o1;
      halve_rows_indexed(reinterpret_cast<float*>(p.y) + r, at, x + first, x + first + width, n);
      if (!p.index) continue;
      int64_t* index = p.index + r;
      TT_VECTORIZE
      for (int64_t j = 0; j < n; j++) index[j] = first + 2 * j + at[j];
    }
}
template <class T>
TT_NOINLINE void index_planes(const PoolPlan& p, const PoolTile& t, Finder<T>& f) {
  if constexpr (kIsSame<T, float>)
    if (p.halving && p.n_parts == 1 && p.in[1] < INT32_MAX) return halve_indexed(p, t);
  f.each(reinterpret_cast<const T*>(p.x) + t.image * p.in[0] * p.in[1], t,
         [&](int64_t o, int64_t o1, int64_t n) TT_INLINE_BODY {
           const int64_t r = (t.image * p.out[0] + o) * p.out[1] + o1;
           store_maxima(p, t.part, r, n, f.top, sizeof(T), f.at);
         });
}

// Adjacent windows of 2 x 2 over rows a and b of x: da and db get g at the largest element of each
// window, else 0. All of n >= N windows, N at a time: the last N again if N does not divide n.
template <class T, int N>
TT_INLINE void halve_backward_by(T* da, T* db, const T* a, const T* b, const T* g, int64_t n) {
  using V = typename Halves<T, N>::Whole;
  auto get = [](const T* p) TT_INLINE_BODY {
    V v;
    memcpy(&v, p, sizeof v);
    return v;
  };
  auto put = [](T* p, V v) TT_INLINE_BODY { memcpy(p, &v, sizeof v); };
  const V none = {};
  for (int64_t j = 0;; j = min(j + N, n - N)) {
    const V a0 = get(a + 2 * j);
    const V a1 = get(a + 2 * j + N);
    const V b0 = get(b + 2 * j);
    const V b1 = get(b + 2 * j + N);
    const V grad = get(g + j);
    const V v0 = every_second<0, T, N>(a0, a1);
    const V v1 = every_second<1, T, N>(a0, a1);
    const V v2 = every_second<0, T, N>(b0, b1);
    const V v3 = every_second<1, T, N>(b0, b1);
    const auto k1 = (v1 > v0) | (v1 != v1);
    const V best1 = chosen(k1, v1, v0);
    const auto k2 = (v2 > best1) | (v2 != v2);
    const V best2 = chosen(k2, v2, best1);
    const auto k3 = (v3 > best2) | (v3 != v3);
    const V g3 = chosen(k3, grad, none);
    const V left3 = chosen(k3, none, grad);
    const V g2 = chosen(k2, left3, none);
    const V left2 = chosen(k2, none, left3);
    const V g1 = chosen(k1, left2, none);
    const V g0 = chosen(k1, none, left2);
    put(da + 2 * j, interleave<0, T, N>(g0, g1));
    put(da + 2 * j + N, interleave<1, T, N>(g0, g1));
    put(db + 2 * j, interleave<0, T, N>(g2, g3));
    put(db + 2 * j + N, interleave<1, T, N>(g2, g3));
    if (j + N >= n) return;
  }
}

// The windows of dimension d that may cover elements [from, to) of a tile of dx.
TT_INLINE PoolRange windows_of_tile(const PoolPlan& p, int d, int64_t from, int64_t to) {
  return whole(p.dx_tiles) ? PoolRange{0, p.out[d]} : windows_over(p, d, from, to);
}
template <class T> TT_INLINE void clear_plane(const PoolPlan& p, T* dx, const PoolTile& t) {
  if (whole(p.dx_tiles)) memset(dx, 0, size_t(p.in[0] * p.in[1]) * sizeof(T));
  else clear_tile(reinterpret_cast<char*>(dx), t, p.in[1], sizeof(T), sizeof(T));
}

template <class T>
TT_INLINE void halve_rows_backward(T* da, T* db, const T* a, const T* b, const T* g, int64_t n) {
  constexpr int L = kLanes<T> < 4 ? 4 : kLanes<T>;
  if (n >= L) return halve_backward_by<T, L>(da, db, a, b, g, n);
  if constexpr (L > 8)
    if (n >= 8) return halve_backward_by<T, 8>(da, db, a, b, g, n);
  if constexpr (L > 4)
    if (n >= 4) return halve_backward_by<T, 4>(da, db, a, b, g, n);
  for (int64_t j = 0; j < n; j++) {
    const T v[4] = {a[2 * j], a[2 * j + 1], b[2 * j], b[2 * j + 1]};
    int at = 0;
    for (int k = 1; k < 4; k++) at = beats(v[k], v[at]) ? k : at;
    da[2 * j] = at == 0 ? g[j] : 0;
    da[2 * j + 1] = at == 1 ? g[j] : 0;
    db[2 * j] = at == 2 ? g[j] : 0;
    db[2 * j + 1] = at == 3 ? g[j] : 0;
  }
}

template <class T> TT_NOINLINE void halve_backward(const PoolPlan& p, const PoolTile& t) {
  const int64_t width = p.in[1];
  const int64_t size = p.in[0] * width;
  const int64_t left = t.left;
  const int64_t across = p.out[1];
  const T* x = reinterpret_cast<const T*>(p.x) + t.image * size;
  const int64_t first = t.from / 2;
  const int64_t last = min(t.to / 2, p.out[0]);
  const int64_t n = min(t.right / 2, across) - left / 2;
  const T* g = reinterpret_cast<const T*>(p.g) + (t.image * p.out[0] + first) * across + left / 2;
  T* dx = reinterpret_cast<T*>(p.y) + t.image * size;
  if (2 * p.out[0] != p.in[0] || 2 * across != width) clear_plane(p, dx, t);
  for (int64_t o = first; o < last; o++, g += across) {
    const int64_t at = 2 * o * width + left;
    halve_rows_backward(dx + at, dx + at + width, x + at, x + at + width, g, n);
  }
}

// The same for 16-bit elements of planes: as many whole rows as fit are converted at once.
TT_NOINLINE void halve_backward_converted(const PoolPlan& p, const PoolTile& t) {
  alignas(64) float x[kPoolSpan];
  alignas(64) float dx[kPoolSpan];
  alignas(64) float g[kPoolSpan / 2];
  const int64_t item = kItemSize[p.dtype];
  const int64_t width = p.in[1];
  const int64_t across = p.out[1];
  const int64_t last = min(t.to / 2, p.out[0]);
  const int64_t at_once = kPoolSpan / (2 * width);
  if (2 * p.out[0] != p.in[0])
    clear_tile(p.y + t.image * p.in[0] * width * item, t, width, item, item);
  const int64_t most = max<int64_t>(min(at_once, last - t.from / 2), 0);  // rows of windows
  if (2 * across != width) memset(dx, 0, size_t(2 * most * width) * sizeof *dx);
  for (int64_t o = t.from / 2; o < last; o += at_once) {
    const int64_t rows = min(at_once, last - o);
    const int64_t first = (t.image * p.in[0] + 2 * o) * width * item;
    load_run(x, p.x + first, item, 2 * rows * width, p.dtype);
    load_run(g, p.g + (t.image * p.out[0] + o) * across * item, item, rows * across, p.dtype);
    for (int64_t r = 0; r < rows; r++) {
      const int64_t upper = 2 * r * width;
      const int64_t lower = upper + width;
      halve_rows_backward(dx + upper, dx + lower, x + upper, x + lower, g + r * across, across);
    }
    store_run(p.y + first, dx, 2 * rows * width, p.dtype);
  }
}

// Whether all elements of a window are in a tile.
TT_INLINE bool inside(const PoolTile& t, const Window& h, const Window& w) {
  return (h.begin >= t.from) & (h.end <= t.to) & (w.begin >= t.left) & (w.end <= t.right);
}
// Whether position `at` of a window that begins in row `top` is in a tile.
TT_INLINE bool is_in_tile(const PoolPlan& p, const PoolTile& t, int64_t top, int64_t at) {
  if (uint64_t(at - t.from * p.in[1]) >= uint64_t((t.to - t.from) * p.in[1])) return false;
  if (p.dx_tiles.n_columns == 1) return true;
  at -= top * p.in[1];
  if (at >= 8 * p.in[1]) at %= p.in[1];
  while (at >= p.in[1]) at -= p.in[1];
  return (at >= t.left) & (at < t.right);
}

// Adds the gradients g of n windows of row o to their maxima in a tile of dx.
template <class T> TT_NOINLINE void add_to_maxima(const PoolPlan& p, const PoolTile& t, int64_t o,
                                                  T* dx, const int64_t* at, const T* g, int64_t n) {
  const Window h = whole(p.dx_tiles) ? Window{} : pool_window(p, 0, o);
  const bool all = inside(t, h, {.begin = 0, .end = p.in[1], .step = 1, .full = 0});
  for (int64_t j = 0; j < n; j++)
    if (all ? at[j] >= 0 : is_in_tile(p, t, h.begin, at[j])) dx[at[j]] += g[j];
}
template <class T>
TT_NOINLINE void max_backward_plane(const PoolPlan& p, const PoolTile& t, Finder<T>& f) {
  if (p.halving && kItemSize[p.dtype] == 2) return halve_backward_converted(p, t);
  if (p.halving) return halve_backward<T>(p, t);
  const int64_t size = p.in[0] * p.in[1];
  const int64_t first = t.image * p.out[0] * p.out[1];
  const T* g = reinterpret_cast<const T*>(p.g) + first;
  T* dx = reinterpret_cast<T*>(p.y) + t.image * size;
  clear_plane(p, dx, t);
  const PoolRange rows = windows_of_tile(p, 0, t.from, t.to);
  const PoolRange columns = windows_of_tile(p, 1, t.left, t.right);
  if (!p.index && f.one_by_one(p)) {
    for (int64_t o = rows.first; o < rows.end; o++) {
      const Window h = window(p, 0, o);
      for (int64_t j = 0; j < p.out[1]; j++) {
        T v;
        const int64_t at = largest(reinterpret_cast<const T*>(p.x) + t.image * size, p.in[1], h,
                                   window(p, 1, j), &v);
        if (is_in_tile(p, t, h.begin, at)) dx[at] += g[o * p.out[1] + j];
      }
    }
    return;
  }
  if (!p.index) {
    const PoolTile windows = {
        .image = t.image,
        .from = rows.first,
        .to = rows.end,
        .left = columns.first,
        .right = columns.end,
        .part = 0,
    };
    return f.each(reinterpret_cast<const T*>(p.x) + t.image * size, windows,
                  [&](int64_t o, int64_t o1, int64_t n) TT_INLINE_BODY {
                    add_to_maxima(p, t, o, dx, f.at, g + o * p.out[1] + o1, n);
                  });
  }
  for (int64_t o = rows.first; o < rows.end; o++) {
    const int64_t r = o * p.out[1] + columns.first;
    add_to_maxima(p, t, o, dx, p.index + first + r, g + r, columns.end - columns.first);
  }
}

// The divisor of the average of a window.
TT_INLINE int64_t divisor(const PoolPlan& p, const Window& h, const Window& w) {
  if (p.divisor) return p.divisor;
  return p.count_pad ? h.full * w.full : h.count() * w.count();
}

// The elements [from, to) that a window without dilation covers.
TT_INLINE PoolRange covered(const Window& w, int64_t from, int64_t to) {
  return {.first = max(w.begin, from), .end = min(w.end, to)};
}

// What a row of windows adds to columns of each row of dx that it covers.
template <class T> struct Shares {
  static constexpr int64_t kColumns = 512;           // of dx, at a time
  static constexpr int64_t kWindows = 2 * kColumns;  // at a time
  static constexpr int64_t kTaps = 8;                // kernels up to this are added tap by tap
  const PoolPlan& p;
  alignas(64) T sum[kColumns];            // the result
  alignas(64) T share[kTaps + kWindows];  // kTaps zeros, then g / divisor of each window
  alignas(64) T across[kWindows];         // columns_counted() of each window

  explicit Shares(const PoolPlan& plan) : p(plan) {
    for (int64_t i = 0; i < kTaps; i++) share[i] = 0;
  }

  // Sums the shares of windows [first, first + n), which count `rows` rows, in columns [from, to).
  TT_NOINLINE void add_up(const T* TT_RESTRICT g, T rows, int64_t first, int64_t n, int64_t from,
                          int64_t to) {
    T* s = share + kTaps;
    TT_VECTORIZE
    for (int64_t j = 0; j < n; j++) s[j] = g[j] / (rows * across[j]);
    if (p.adaptive || p.kernel[1] > kTaps) return by_windows(first, n, from, to);
    const int64_t at = first * p.stride[1] - p.pad[1] - from;
    if (p.stride[1] == 1) slide(n, at, to - from);
    else scatter(n, at, to - from);
  }

  // slide: stride 1; scatter: other strides. A column gets its shares in the order of the windows,
  // that is, from the last tap on. `at`: the first column of the first window.
  TT_NOINLINE void slide(int64_t n, int64_t at, int64_t width) {
    const T* s = share + kTaps - (at + p.kernel[1] - 1);
    for (int64_t j = n; j < width + kTaps; j++) share[kTaps + j] = 0;
    TT_VECTORIZE
    for (int64_t i = 0; i < width; i++) sum[i] = s[i];
    for (int64_t k = 1; k < p.kernel[1]; k++) {
      TT_VECTORIZE
      for (int64_t i = 0; i < width; i++) sum[i] += s[i + k];
    }
  }
  TT_NOINLINE void scatter(int64_t n, int64_t at, int64_t width) {
    const int64_t step = p.stride[1];
    for (int64_t i = 0; i < width; i++) sum[i] = 0;
    for (int64_t k = p.kernel[1] - 1; k >= 0; k--) {
      const int64_t to = at + k;
      const int64_t room = width - to;
      const int64_t begin = to < 0 ? ceil_div(-to, step) : 0;
      const int64_t end = room <= 0 ? 0 : ceil_div(room, step);
      for (int64_t j = begin; j < end && j < n; j++) sum[to + j * step] += share[kTaps + j];
    }
  }
  TT_NOINLINE void by_windows(int64_t first, int64_t n, int64_t from, int64_t to) {
    for (int64_t i = 0; i < to - from; i++) sum[i] = 0;
    for (int64_t j = 0; j < n; j++) {
      const PoolRange w = covered(window(p, 1, first + j), from, to);
      TT_VECTORIZE
      for (int64_t i = w.first; i < w.end; i++) sum[i - from] += share[kTaps + j];
    }
  }
};
template <class T> TT_NOINLINE void add_run(T* TT_RESTRICT d, const T* TT_RESTRICT s, int64_t n) {
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++) d[i] += s[i];
}

template <class T>
TT_NOINLINE void average_backward_plane(const PoolPlan& p, const PoolTile& t, Shares<T>& s) {
  const T* g = reinterpret_cast<const T*>(p.g) + t.image * p.out[0] * p.out[1];
  T* dx = reinterpret_cast<T*>(p.y) + t.image * p.in[0] * p.in[1];
  clear_plane(p, dx, t);
  const PoolRange rows = windows_of_tile(p, 0, t.from, t.to);
  for (int64_t left = t.left; left < t.right; left += s.kColumns) {
    const int64_t right = min(left + s.kColumns, t.right);
    const PoolRange windows = windows_over(p, 1, left, right);
    for (int64_t first = windows.first; first < windows.end; first += s.kWindows) {
      const int64_t n = min(windows.end - first, s.kWindows);
      columns_counted(p, first, n, s.across);
      for (int64_t o = rows.first; o < rows.end; o++) {
        const PoolRange high = covered(window(p, 0, o), t.from, t.to);
        s.add_up(g + o * p.out[1] + first, T(p.divisor ? p.divisor : counted(p, 0, o)), first, n,
                 left, right);
        for (int64_t i = high.first; i < high.end; i++)
          add_run(dx + i * p.in[1] + left, s.sum, right - left);
      }
    }
  }
}

// ---- channels last: up to kPoolTile channels at a time ----

template <class T> struct Pixel {
  T best[kPoolTile];
  int64_t at[kPoolTile];

  // x: the first of the n channels at pixel (0, 0)
  TT_NOINLINE void largest(const PoolPlan& p, const T* x, const Window& h, const Window& w,
                           int64_t n) {
    if (is_empty(h, w)) {
      for (int64_t c = 0; c < n; c++) {
        TT_SCALAR_LOOP;
        best[c] = lowest<T>();
        at[c] = -1;
      }
      return;
    }
    const int64_t start = h.begin * p.in[1] + w.begin;
    memcpy(best, x + start * p.c, size_t(n) * sizeof(T));
    for (int64_t c = 0; c < n; c++) at[c] = start;
    for (int64_t i = h.begin; i < h.end; i += h.step)
      for (int64_t j = w.begin; j < w.end; j += w.step) {
        const int64_t here = i * p.in[1] + j;
        TT_VECTORIZE
        for (int64_t c = 0; c < n; c++) {
          const T v = x[here * p.c + c];
          const bool wins = beats(v, best[c]);
          best[c] = wins ? v : best[c];
          at[c] = wins ? here : at[c];
        }
      }
  }
};

template <class T> TT_NOINLINE void index_pixels(const PoolPlan& p, const PoolTile& t) {
  const T* x = reinterpret_cast<const T*>(p.x) + t.image * p.in[0] * p.in[1] * p.c;
  Pixel<T> pixel;
  for (int64_t o = t.from; o < t.to; o++)
    for (int64_t j = t.left; j < t.right; j++)
      for (int64_t c = 0; c < p.c; c += kPoolTile) {
        const int64_t n = min(p.c - c, kPoolTile);
        const int64_t r = ((t.image * p.out[0] + o) * p.out[1] + j) * p.c + c;
        if (p.run.stage == 1) join_parts(p, r, n, pixel.best, pixel.at);
        else pixel.largest(p, x + c, window_part(p, 0, o, t.part), window_part(p, 1, j, t.part), n);
        store_maxima(p, t.part, r, n, pixel.best, sizeof(T), pixel.at);
      }
}

// Adds the gradients g of a window to its maxima: of kAtTaps channels, the first ones of which are
// x and dx at pixel (0, 0).
constexpr int64_t kAtTaps = 2 * kLanes<float>;
TT_NOINLINE void add_at_taps(const PoolPlan& p, const PoolTile& t, const Window& h, const Window& w,
                             float* dx, const float* x, const float* g) {
  constexpr int L = kLanes<float>;
  constexpr int N = 2;
  const int64_t below = h.step * p.in[1] * p.c;
  const int64_t beside = w.step * p.c;
  const int64_t first = (h.begin * p.in[1] + w.begin) * p.c;
  Vec<float> best[N];
  Vec<int32_t> at[N];
  TT_UNROLL
  for (int l = 0; l < N; l++) {
    best[l] = load(x + first + l * L);
    at[l] = Vec<int32_t>{};
  }
  int32_t k = 0;
  x += first;
  for (int64_t i = h.begin; i < h.end; i += h.step, x += below) {
    const float* pixel = x;
    for (int64_t j = w.begin; j < w.end; j += w.step, pixel += beside, k++) {
      TT_UNROLL
      for (int l = 0; l < N; l++) {
        const Vec<float> v = load(pixel + l * L);
        const auto wins = (v > best[l]) | (v != v);
        best[l] = chosen(wins, v, best[l]);
        at[l] = chosen(wins, splat(k), at[l]);
      }
    }
  }
  k = 0;
  dx += first;
  for (int64_t i = h.begin; i < h.end; i += h.step, dx += below) {
    float* pixel = dx;
    for (int64_t j = w.begin; j < w.end; j += w.step, pixel += beside, k++) {
      if ((i < t.from) | (i >= t.to) | (j < t.left) | (j >= t.right)) continue;
      TT_UNROLL
      for (int l = 0; l < N; l++) {
        const Vec<float> its = chosen(at[l] == splat(k), load(g + l * L), Vec<float>{});
        store(pixel + l * L, load(pixel + l * L) + its);
      }
    }
  }
}

constexpr int64_t kFewTaps = 64;

// Zeroes n channels of the rows of a tile of dx up to row `to`, which leave the tile.
template <class T>
TT_NOINLINE void zero_rows(const PoolPlan& p, PoolTile* rest, int64_t to, T* dx, int64_t n) {
  if (to <= rest->from) return;
  PoolTile rows = *rest;
  rows.to = rest->from = to;
  clear_tile(reinterpret_cast<char*>(dx), rows, p.in[1], p.c * int64_t(sizeof(T)),
             n * int64_t(sizeof(T)));
}

// Channels [c, c + n) of a tile of dx. kMax: backward of pool_max, else of pool_average.
template <class T, bool kMax>
TT_NOINLINE void backward_pixels(const PoolPlan& p, const PoolTile& t, int64_t c, int64_t n) {
  const int64_t size = p.in[0] * p.in[1] * p.c;
  const T* x = reinterpret_cast<const T*>(p.x) + t.image * size + c;
  T* dx = reinterpret_cast<T*>(p.y) + t.image * size + c;
  Pixel<T> pixel;
  PoolTile rest = t;  // what is not zeroed yet: rows are shortly before windows cover them
  const PoolRange rows = windows_of_tile(p, 0, t.from, t.to);
  const PoolRange columns = windows_of_tile(p, 1, t.left, t.right);
  for (int64_t o = rows.first; o < rows.end; o++) {
    const Window h = pool_window(p, 0, o);
    const PoolRange high = covered(h, t.from, t.to);
    zero_rows(p, &rest, high.end, dx, n);
    for (int64_t k = columns.first; k < columns.end; k++) {
      const Window w = pool_window(p, 1, k);
      const int64_t r = ((t.image * p.out[0] + o) * p.out[1] + k) * p.c + c;
      const T* g = reinterpret_cast<const T*>(p.g) + r;
      if constexpr (kMax) {
        int64_t j = 0;
        if constexpr (kIsSame<T, float>)
          if (!p.index && !is_empty(h, w) && h.count() * w.count() <= kFewTaps)
            for (; j + kAtTaps <= n; j += kAtTaps) add_at_taps(p, t, h, w, dx + j, x + j, g + j);
        if (j == n) continue;
        if (!p.index) pixel.largest(p, x, h, w, n);
        const int64_t* at = p.index ? p.index + r : pixel.at;
        const bool all = inside(t, h, w);
        for (; j < n; j++)
          if (all ? at[j] >= 0 : is_in_tile(p, t, h.begin, at[j])) dx[at[j] * p.c + j] += g[j];
      } else {
        const PoolRange wide = covered(w, t.left, t.right);
        for (int64_t j = 0; j < n; j++) pixel.best[j] = g[j] / T(divisor(p, h, w));
        for (int64_t i = high.first; i < high.end; i++)
          for (int64_t column = wide.first; column < wide.end; column++) {
            T* to = dx + (i * p.in[1] + column) * p.c;
            TT_VECTORIZE
            for (int64_t j = 0; j < n; j++) to[j] += pixel.best[j];
          }
      }
    }
  }
  zero_rows(p, &rest, t.to, dx, n);
}

template <class T> inline int32_t index_units(const PoolPlan& p, int64_t begin, int64_t end) {
  Finder<T> f(p);
  for (int64_t u = begin; u < end; u++) {
    const PoolTile t = window_tile(p, u);
    if (p.channels_last) index_pixels<T>(p, t);
    else index_planes<T>(p, t, f);
  }
  return TT_OK;
}

// Whether the units were computed as those of small windows, which only AVX-512 has.
TT_NOINLINE bool max_backward_small(const PoolPlan& p, int64_t begin, int64_t end) {
  if constexpr (kCheapParts && kLanes<float> == 16)
    if (has_small_windows(p)) {
      SmallWindows(p).units(begin, end);
      return true;
    }
  return false;
}

// Planes: Finder or Shares.
template <class T, bool kMax, class Planes>
inline int32_t backward_units(const PoolPlan& p, int64_t begin, int64_t end) {
  if (p.run.stage < 2) return index_units<T>(p, begin, end);
  const int64_t channel_tiles = ceil_div(p.c, kPoolTile);
  Planes planes(p);
  for (int64_t u = begin; u < end; u++) {
    PoolTile t = pool_tile(p.dx_tiles, p.in, u);
    if (p.channels_last) {
      const int64_t c = t.image % channel_tiles * kPoolTile;
      t.image /= channel_tiles;
      backward_pixels<T, kMax>(p, t, c, min(p.c - c, kPoolTile));
    } else if constexpr (kMax) {
      max_backward_plane<T>(p, t, planes);
    } else {
      average_backward_plane<T>(p, t, planes);
    }
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(pool_max_index)(const void* plan, int64_t begin, int64_t end) noexcept {
  const PoolPlan& p = *static_cast<const PoolPlan*>(plan);
  if (p.dtype == TT_I64) return index_units<int64_t>(p, begin, end);
  return is_dtype(p.dtype, TT_F64) ? index_units<double>(p, begin, end)
                                   : index_units<float>(p, begin, end);
}
TT_KERNEL(pool_max_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  const PoolPlan& p = *static_cast<const PoolPlan*>(plan);
  if (max_backward_small(p, begin, end)) return TT_OK;
  return is_dtype(p.dtype, TT_F64) ? backward_units<double, true, Finder<double>>(p, begin, end)
                                   : backward_units<float, true, Finder<float>>(p, begin, end);
}
TT_KERNEL(pool_average_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  const PoolPlan& p = *static_cast<const PoolPlan*>(plan);
  return is_dtype(p.dtype, TT_F64) ? backward_units<double, false, Shares<double>>(p, begin, end)
                                   : backward_units<float, false, Shares<float>>(p, begin, end);
}

TT_ENTRY_END
