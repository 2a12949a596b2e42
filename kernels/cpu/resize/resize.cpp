// resize and resize_backward. In planes, columns are resized before rows, since one resized row of
// x serves several rows of y:
//
//   x        row `low` and row `high` of y's row, up to kSpan columns
//              | pick: y's columns of a row, by permutations of two vectors of x
//   picked   [2][kOut]: the last even and the last odd row of x
//              | join_rows: low * (1 - weight) + high * weight, as vectors
//   y        [kOut]
//
// With channels last, the (up to) four pixels of x are joined as vectors of channels.
#include "kernels/cpu/resize/resize.h"

#include "base/arith.h"
#include "kernels/cpu/resize/windows.h"
#include "kernels/cpu/simd/row_primitives.h"
#include "kernels/cpu/simd/stream.h"

TT_ISA_BEGIN

// ---- the table: the two elements that each result reads, and the weight of the second ----

template <class T> struct Taps {
  int32_t* low;
  int32_t* high;
  T* weight;  // of high

  TT_INLINE Taps(const ResizePlan& p, int d) {
    char* at = p.table + (d ? p.out[0] * kResizeItem : 0);
    weight = reinterpret_cast<T*>(at);
    low = reinterpret_cast<int32_t*>(at + p.out[d] * 8);
    high = low + p.out[d];
  }
};

// The linear mode copies along a dimension that keeps its size.
TT_INLINE bool interpolates(const ResizePlan& p, int d) {
  return p.mode == kResizeLinear && p.out[d] != p.in[d];
}
// The position in x of result o of the linear mode. Behind the last element the weights are of that
// element twice, so that an infinite one makes no nan.
TT_INLINE double linear_position(const ResizePlan& p, int d, int64_t o) {
  const double at = p.align ? p.scale[d] * double(o) : p.scale[d] * (double(o) + 0.5) - 0.5;
  return clamp(at, 0.0, double(p.in[d]));
}

template <class T> TT_NOINLINE void fill_taps(const ResizePlan& p, int d) {
  const Taps<T> t(p, d);
  const int64_t in = p.in[d];
  const ResizeAxis axis = resize_axis(p, d);
  for (int64_t o = 0; o < p.out[d]; o++) {
    if (!interpolates(p, d)) {
      t.low[o] = t.high[o] = p.mode == kResizeLinear ? int32_t(o) : nearest_element<T>(axis, o);
      t.weight[o] = 0;
      continue;
    }
    const double at = linear_position(p, d, o);
    t.low[o] = min(int32_t(at), int32_t(in - 1));
    t.high[o] = t.low[o] + (t.low[o] < in - 1);
    t.weight[o] = T(at - double(t.low[o]));
  }
}

// ---- rows ----

template <class T> constexpr int64_t kSpan = 8192 / sizeof(T);  // columns of x at a time
template <class T> constexpr int64_t kOut = 4096 / sizeof(T);   // columns of y at a time
// x is prefetched this many bytes ahead: its rows are too short for the hardware prefetcher.
constexpr int64_t kAhead = 4096;
constexpr int64_t kRoom = 32;  // elements that may be read behind a row of x
// Between arrays that are read and written side by side: elements a page apart would make each
// load wait for a store to another one.
template <class T> constexpr int64_t kApart = 256 / sizeof(T);

// Rows of y that read the same two rows of x: y[r * pitch + i] = a[i] (1 - w[r]) + b[i] w[r].
// stream: they are whole cache lines, written by non-temporal stores.
template <class T> TT_INLINE void join_rows(T* TT_RESTRICT y, int64_t pitch, const T* TT_RESTRICT a,
                                            const T* TT_RESTRICT b, const T* w, int64_t rows,
                                            int64_t n, bool stream) {
  constexpr int L = kLanes<T>;
  for (int64_t r = 0; r < rows; r++, y += pitch) {
    const Vec<T> low = splat(1 - w[r]);
    const Vec<T> high = splat(w[r]);
    int64_t i = 0;
    for (; stream && i < n; i += L) {
      const Vec<T> sum = vfma(load(b + i), high, load(a + i) * low);
      if constexpr (kStreams)
        stream_vector(reinterpret_cast<char*>(y + i), reinterpret_cast<const char*>(&sum));
      else store(y + i, sum);
    }
    for (; i + L <= n; i += L) store(y + i, vfma(load(b + i), high, load(a + i) * low));
    for (; i < n; i++) y[i] = vfma(b[i], w[r], a[i] * (1 - w[r]));
  }
}

template <class T> TT_NOINLINE void join_row(T* y, const T* a, const T* b, T w, int64_t n) {
  join_rows(y, 0, a, b, &w, 1, n, false);
}

// The elements of a row of x, from column `origin` on, that columns [o1, o1 + n) of y read.
template <class T> struct Columns {
  static constexpr int L = kLanes<T>;
  const int32_t *low = nullptr, *high;
  const T* weight;
  bool linear;
  int64_t origin, n;
  // For each vector of y: the first element of x that it reads, or -1 if it reads beyond two
  // vectors from there.
  int64_t base[kOut<T> / L];
  // For each column: its two elements, relative to that first one.
  alignas(64) int32_t near[kOut<T> + kApart<int32_t>], far[kOut<T> + kApart<int32_t>];

  void set(const Taps<T>& t, int64_t o1, int64_t columns, int64_t from, bool interpolated) {
    if (low == t.low + o1 && n == columns) return;  // those of the last plane
    low = t.low + o1;
    high = t.high + o1;
    weight = t.weight + o1;
    linear = interpolated;
    origin = from;
    n = columns;
    for (int64_t j = 0; j + L <= n; j += L) {
      base[j / L] = high[j + L - 1] - low[j] < 2 * L ? low[j] - origin : -1;
      for (int64_t i = j; i < j + L; i++) {
        near[i] = low[i] - low[j];
        far[i] = high[i] - low[j];
      }
    }
  }
};

// Computes columns [j, end) of y.
template <class T>
TT_INLINE void pick_each(T* y, const T* x, const Columns<T>& c, int64_t j, int64_t end) {
  x -= c.origin;
  for (; j < end; j++) {
    const T a = x[c.low[j]];
    const T w = c.weight[j];
    y[j] = c.linear ? vfma(x[c.high[j]], w, a * (1 - w)) : a;
  }
}
template <class T> TT_NOINLINE void pick(T* y, const T* x, const Columns<T>& c) {
  pick_each(y, x, c, 0, c.n);
}
#if TT_VEC_BYTES > 16
template <bool kLinear>
TT_INLINE int64_t pick_vectors(float* TT_RESTRICT y, const float* x, const Columns<float>& c) {
  constexpr int L = kLanes<float>;
  static_assert(2 * L <= kRoom);
  const int64_t whole = c.n - c.n % L;
  const float* const weight = c.weight;
  for (int64_t j = 0; j < whole; j += L) {
    const int64_t base = c.base[j / L];
    if (TT_UNLIKELY(base < 0)) {
      pick_each(y, x, c, j, j + L);
      continue;
    }
    const Vec<float> a = load(x + base);
    const Vec<float> b = load(x + base + L);
    Vec<float> r = permute(a, b, load(c.near + j));
    if constexpr (kLinear) {
      const Vec<float> w = load(weight + j);
      r = vfma(permute(a, b, load(c.far + j)), w, r * (splat(1.0f) - w));
    }
    store(y + j, r);
  }
  return whole;
}
TT_INLINE void pick(float* y, const float* x, const Columns<float>& c) {
  const int64_t done = c.linear ? pick_vectors<true>(y, x, c) : pick_vectors<false>(y, x, c);
  pick_each(y, x, c, done, c.n);
}
#endif

template <class T> struct Rows {
  const ResizePlan& p;
  const int64_t item;
  const Taps<T> rows, all_columns;
  const bool linear[2], stream;
  int64_t picked_row[2];  // picked[row % 2] is of this row of x; -1: of none
  Columns<T> columns;
  alignas(64) T x[kSpan<T> + kRoom], picked[2][kOut<T> + kApart<T>], y[kOut<T>];

  explicit Rows(const ResizePlan& q)
      : p(q),
        item(kItemSize[q.dtype]),
        rows(q, 0),
        all_columns(q, 1),
        linear{interpolates(q, 0), interpolates(q, 1)},
        stream(worth_streaming(q.n * q.c * q.out[0] * q.out[1] * item) && is_line_aligned(q.y)) {
    for (int64_t i = 0; i < kSpan<T> + kRoom; i++) x[i] = 0;
  }

  // Returns row `row` of x resized to the columns of y; they read `width` elements.
  TT_INLINE const T* pick_row(int64_t plane, int64_t row, int64_t width) {
    T* to = picked[row & 1];
    if (picked_row[row & 1] == row) return to;
    picked_row[row & 1] = row;
    const int64_t at = (plane * p.in[0] + row) * p.in[1] + columns.origin;
    const T* from = RowIn<T>{p.x, p.dtype}.get(at, width, x);
    for (int64_t i = 0; i < width * item; i += 64) TT_PREFETCH(p.x + at * item + i + kAhead);
    if (from != x && at + width + kRoom > p.n * p.c * p.in[0] * p.in[1]) {
      memcpy(x, from, size_t(width) * sizeof(T));
      from = x;
    }
    pick(to, from, columns);
    return to;
  }
  // Writes rows of y that read the same rows of x: from row o on, from column o1 on.
  TT_INLINE void write(int64_t plane, int64_t o, int64_t count, int64_t o1, int64_t width) {
    const T* low = pick_row(plane, rows.low[o], width);
    const T* high = linear[0] ? pick_row(plane, rows.high[o], width) : low;
    const int64_t n = columns.n;
    const RowOut<T> out{p.y, p.dtype};
    int64_t at = (plane * p.out[0] + o) * p.out[1] + o1;
    const bool lines = out.direct() && stream && ((at | p.out[1] | n) * item & 63) == 0;
    if (linear[0] && out.direct())
      return join_rows(out.at(at, y), p.out[1], low, high, rows.weight + o, count, n, lines);
    for (int64_t r = 0; r < count; r++, at += p.out[1]) {
      T* to = out.at(at, y);
      if (linear[0]) join_row(to, low, high, rows.weight[o + r], n);
      else if (lines)
        stream_copy(reinterpret_cast<char*>(to), reinterpret_cast<const char*>(low), n * item);
      else memcpy(to, low, size_t(n) * sizeof(T));
      out.put(at, n, to);
    }
  }
  void unit(int64_t u) {
    const int64_t plane = u / p.n_tiles;
    const int64_t from = u % p.n_tiles * p.rows;
    const int64_t to = min(from + p.rows, p.out[0]);
    for (int64_t o1 = 0; o1 < p.out[1]; o1 += columns.n) {
      const int64_t origin = all_columns.low[o1];
      int64_t n = min(p.out[1] - o1, kOut<T>);
      while (all_columns.high[o1 + n - 1] - origin >= kSpan<T>) n = (n + 1) / 2;
      columns.set(all_columns, o1, n, origin, linear[1]);
      picked_row[0] = picked_row[1] = -1;
      for (int64_t o = from, next; o < to; o = next) {
        for (next = o + 1; next < to && rows.low[next] == rows.low[o]; next++)
          if (rows.high[next] != rows.high[o]) break;
        write(plane, o, next - o, o1, all_columns.high[o1 + n - 1] - origin + 1);
      }
    }
    if (stream) stream_fence();
  }
};

// ---- channels last ----

// y interpolates the four pixels x[row * 2 + column]; h: weight of the second row, w: of the second
// column.
template <class T>
TT_NOINLINE void join_four(T* TT_RESTRICT y, const T* const* x, T h, T w, int64_t n) {
  const T* TT_RESTRICT x00 = x[0];
  const T* TT_RESTRICT x01 = x[1];
  const T* TT_RESTRICT x10 = x[2];
  const T* TT_RESTRICT x11 = x[3];
  const T g = 1 - h;
  const T v = 1 - w;
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++)
    y[i] = vfma(vfma(x11[i], h, x01[i] * g), w, vfma(x10[i], h, x00[i] * g) * v);
}

template <class T> struct Pixels {
  const ResizePlan& p;
  const int64_t item;
  const Taps<T> rows, columns;
  const bool linear[2];
  alignas(64) T x[4][kOut<T>], y[kOut<T>];

  explicit Pixels(const ResizePlan& q)
      : p(q),
        item(kItemSize[q.dtype]),
        rows(q, 0),
        columns(q, 1),
        linear{interpolates(q, 0), interpolates(q, 1)} {}

  // Channels [c, c + n) of pixel (o, o1) of y.
  void pixel(int64_t image, int64_t o, int64_t o1, int64_t c, int64_t n) {
    const int64_t row[2] = {rows.low[o], rows.high[o]};
    const int64_t column[2] = {columns.low[o1], columns.high[o1]};
    const RowOut<T> out{p.y, p.dtype};
    const int64_t at = ((image * p.out[0] + o) * p.out[1] + o1) * p.c + c;
    const T* from[4];
    const int others = linear[0] ? 4 : 1 + linear[1];
    for (int k = 0; k < others; k++) {
      const int64_t pixel = (image * p.in[0] + row[k / 2]) * p.in[1] + column[k % 2];
      from[k] = RowIn<T>{p.x + (pixel * p.c + c) * item, p.dtype}.get(0, n, x[k]);
    }
    T* d = out.at(at, y);
    if (linear[0] && linear[1]) join_four(d, from, rows.weight[o], columns.weight[o1], n);
    else if (linear[0]) join_row(d, from[0], from[2], rows.weight[o], n);
    else if (linear[1]) join_row(d, from[0], from[1], columns.weight[o1], n);
    else memcpy(d, from[0], size_t(n) * sizeof(T));
    out.put(at, n, d);
  }
  // Whether rows of x are joined whole, with the same results: pixels of few channels.
  bool joins_rows() const {
    return linear[0] && linear[1] && p.c <= 4 && item == int64_t(sizeof(T)) &&
           p.in[1] * p.c <= 4 * kOut<T> && p.in[1] <= 2 * p.out[1];
  }
  // kChannels: p.c, or 0.
  template <int kChannels> TT_NOINLINE void row(int64_t image, int64_t o) {
    const int64_t c = kChannels ? kChannels : p.c;
    const T* const from = reinterpret_cast<const T*>(p.x) + image * p.in[0] * p.in[1] * c;
    const int64_t width = p.in[1] * c;
    T* const joined = x[0];
    join_row(joined, from + rows.low[o] * width, from + rows.high[o] * width, rows.weight[o],
             width);
    T* to = reinterpret_cast<T*>(p.y) + (image * p.out[0] + o) * p.out[1] * c;
    for (int64_t o1 = 0; o1 < p.out[1]; o1++, to += c) {
      const T w = columns.weight[o1];
      const T* const low = joined + columns.low[o1] * c;
      const T* const high = joined + columns.high[o1] * c;
      for (int64_t k = 0; k < c; k++) to[k] = vfma(high[k], w, low[k] * (1 - w));
    }
  }
  void unit(int64_t u) {
    const int64_t image = u / p.n_tiles;
    const int64_t from = u % p.n_tiles * p.rows;
    const int64_t to = min(from + p.rows, p.out[0]);
    if (joins_rows()) {
      for (int64_t o = from; o < to; o++) {
        if (p.c == 3) row<3>(image, o);
        else row<0>(image, o);
      }
      return;
    }
    for (int64_t o = from; o < to; o++)
      for (int64_t o1 = 0; o1 < p.out[1]; o1++)
        for (int64_t c = 0; c < p.c; c += kOut<T>) pixel(image, o, o1, c, min(p.c - c, kOut<T>));
  }
};

// ---- backward ----

// The results along a dimension that read element `at`, from `first` on, and their weights.
// Elements are asked for in ascending order.
template <class T, bool kLinear> struct Readers {
  const Taps<T> taps;
  int64_t first, end;

  TT_INLINE Readers(const ResizePlan& p, int d, int64_t from, int64_t to)
      : taps(p, d), first(from), end(to) {}
  TT_INLINE void move_to(int64_t at) {
    while (first < end && taps.high[first] < at) first++;
  }
  TT_INLINE bool reads(int64_t o, int64_t at) const { return o < end && taps.low[o] <= at; }
  TT_INLINE T weight(int64_t o, int64_t at) const {
    if constexpr (!kLinear) return 1;
    const T low = taps.low[o] == at ? 1 - taps.weight[o] : T(0);
    return taps.high[o] == at ? low + taps.weight[o] : low;
  }
};

// One plane: each row of dx is the sum of the rows of g that read it; then columns are summed.
template <bool kLinear, class T>
TT_NOINLINE void sum_plane(const ResizePlan& p, const T* g, T* dx) {
  alignas(64) T sum[kOut<T>];
  for (int64_t i = 0; i < p.in[0] * p.in[1]; i++) dx[i] = 0;
  for (int64_t o1 = 0; o1 < p.out[1]; o1 += kOut<T>) {
    const int64_t n = min(p.out[1] - o1, kOut<T>);
    Readers<T, kLinear> rows(p, 0, 0, p.out[0]);
    for (int64_t r = 0; r < p.in[0]; r++) {
      rows.move_to(r);
      if (!rows.reads(rows.first, r)) continue;
      for (int64_t i = 0; i < n; i++) sum[i] = 0;
      for (int64_t o = rows.first; rows.reads(o, r); o++) {
        const T w = rows.weight(o, r);
        const T* TT_RESTRICT from = g + o * p.out[1] + o1;
        TT_VECTORIZE
        for (int64_t i = 0; i < n; i++) sum[i] += w * from[i];
      }
      Readers<T, kLinear> columns(p, 1, o1, o1 + n);
      const int64_t last = columns.taps.high[o1 + n - 1];
      for (int64_t i = columns.taps.low[o1]; i <= last; i++) {
        columns.move_to(i);
        T total = dx[r * p.in[1] + i];
        for (int64_t o = columns.first; columns.reads(o, i); o++)
          total += columns.weight(o, i) * sum[o - o1];
        dx[r * p.in[1] + i] = total;
      }
    }
  }
}

// Adds each gradient, times the weights, to the elements that its result read: n adjacent channels
// of pixels that are `step` elements apart.
template <class T> TT_NOINLINE void scatter_gradients(const ResizePlan& p, const T* g, T* dx,
                                                      int64_t step, int64_t n) {
  const Taps<T> rows(p, 0);
  const Taps<T> columns(p, 1);
  for (int64_t i = 0; i < p.in[0] * p.in[1]; i++)
    for (int64_t k = 0; k < n; k++) dx[i * step + k] = 0;
  for (int64_t o = 0; o < p.out[0]; o++)
    for (int64_t j = 0; j < p.out[1]; j++, g += step) {
      const T h = rows.weight[o];
      const T w = columns.weight[j];
      const T weight[4] = {(1 - h) * (1 - w), (1 - h) * w, h * (1 - w), h * w};
      const int64_t low = rows.low[o] * p.in[1];
      const int64_t high = rows.high[o] * p.in[1];
      T* to[4] = {dx + (low + columns.low[j]) * step, dx + (low + columns.high[j]) * step,
                  dx + (high + columns.low[j]) * step, dx + (high + columns.high[j]) * step};
      for (int q = 0; q < (p.mode == kResizeLinear ? 4 : 1); q++) {
        TT_VECTORIZE
        for (int64_t k = 0; k < n; k++) to[q][k] += weight[q] * g[k];
      }
    }
}

// Calls f(images, gradients) for units of the backward: planes, or tiles of adjacent channels.
template <class T, class F>
TT_INLINE void for_gradients(const ResizePlan& p, int64_t begin, int64_t end, const F& f) {
  const int64_t tiles = ceil_div(p.c, kResizeTile);
  const int64_t in = p.in[0] * p.in[1];
  const int64_t out = p.out[0] * p.out[1];
  const T* g = reinterpret_cast<const T*>(p.x);
  T* dx = reinterpret_cast<T*>(p.y);
  for (int64_t u = begin; u < end; u++) {
    if (!p.channels_last) {
      f(g + u * out, dx + u * in, 1, 1);
      continue;
    }
    const int64_t image = u / tiles;
    const int64_t c = u % tiles * kResizeTile;
    f(g + image * out * p.c + c, dx + image * in * p.c + c, p.c, min(p.c - c, kResizeTile));
  }
}

template <class T>
inline int32_t resize_units(const ResizePlan& p, int64_t begin, int64_t end, bool backward) {
  if (p.run.stage == 0) {
    fill_taps<T>(p, 0);
    fill_taps<T>(p, 1);
  } else if (backward) {
    for_gradients<T>(p, begin, end, [&](const T* g, T* dx, int64_t step, int64_t n) {
      if (p.channels_last) scatter_gradients(p, g, dx, step, n);
      else if (p.mode == kResizeLinear) sum_plane<true>(p, g, dx);
      else sum_plane<false>(p, g, dx);
    });
  } else if (p.channels_last) {
    Pixels<T> pixels(p);
    for (int64_t u = begin; u < end; u++) pixels.unit(u);
  } else {
    Rows<T> rows(p);
    for (int64_t u = begin; u < end; u++) rows.unit(u);
  }
  return TT_OK;
}

// E: elements; W: weights.
template <class E, class W>
inline int32_t window_units(const ResizePlan& p, int64_t begin, int64_t end, bool backward) {
  if (p.run.stage == 0) {
    fill_windows<W>(p, 0);
    fill_windows<W>(p, 1);
    return TT_OK;
  }
  if constexpr (sizeof(E) > 1) {
    if (backward) {
      for_gradients<E>(p, begin, end, [&](const E* g, E* dx, int64_t step, int64_t n) {
        spread_windows(p, g, dx, step, n);
      });
      return TT_OK;
    }
  }
  WindowRows<E, W> rows(p);
  for (int64_t u = begin; u < end; u++) rows.unit(u);
  return TT_OK;
}

inline int32_t run_resize(const ResizePlan& p, int64_t begin, int64_t end, bool backward) {
  if (p.dtype == TT_U8) return window_units<uint8_t, int32_t>(p, begin, end, backward);
  const bool windows = resize_has_windows(p);
  if (is_dtype(p.dtype, TT_F64))
    return windows ? window_units<double, double>(p, begin, end, backward)
                   : resize_units<double>(p, begin, end, backward);
  return windows ? window_units<float, float>(p, begin, end, backward)
                 : resize_units<float>(p, begin, end, backward);
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(resize)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_resize(*static_cast<const ResizePlan*>(plan), begin, end, false);
}
TT_KERNEL(resize_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_resize(*static_cast<const ResizePlan*>(plan), begin, end, true);
}

TT_ENTRY_END
