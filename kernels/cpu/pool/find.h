// The largest element of each window of a plane, and its place: the first of equal ones, the last
// nan. Adjacent windows share most of what they read, so the largest element of each column of
// their rows is found first, then that of the columns of each window:
//
//   x             rows h.begin … h.end, up to kPoolSpan columns
//     | fold      by rows, as vectors
//   best, row     [kPoolSpan] of each column: the element, and its row, counted from the window's
//     | scan      by windows
//   value, high,  [kFound] of each window: the element, its row, and its column, counted from the
//   across        window's
//     | add_found
//   top, at       [kFound] of each window: the largest so far, and its place in the plane
//
// Rows come kRows at a time, so that their numbers fit into 32 bits.
#pragma once

#include "kernels/cpu/simd/loop.h"
#include "kernels/cpu/pool/pool.h"

TT_ISA_BEGIN

template <class T> TT_INLINE bool beats(T v, T best) { return (v > best) | (v != v); }

template <class T> TT_INLINE T lowest() {
  if constexpr (T(0.5) == T(0)) return INT64_MIN;
  else return -T(__builtin_inf());
}

// With a large dilation all elements may be padding.
TT_INLINE bool is_empty(const Window& h, const Window& w) {
  return (h.begin >= h.end) | (w.begin >= w.end);
}

// Joins an element of a window and its place with the largest so far, in any order; places of none
// are < 0.
template <class T> TT_INLINE void join_place(T v, int64_t at, T* best, int64_t* best_at) {
  const bool before = at < *best_at;
  const bool wins =
      (v > *best) | ((v == *best) & before) | ((v != v) & ((*best == *best) | !before));
  if ((at >= 0) & (wins | (*best_at < 0))) {
    *best = v;
    *best_at = at;
  }
}

template <class T>
TT_NOINLINE void join_parts(const PoolPlan& p, int64_t r, int64_t n, T* best, int64_t* at) {
  __builtin_memcpy(best, part_values<T>(p, 0) + r, size_t(n) * sizeof(T));
  __builtin_memcpy(at, part_places(p, 0) + r, size_t(n) * sizeof(int64_t));
  for (int64_t k = 1; k < p.n_parts; k++)
    for (int64_t j = 0; j < n; j++)
      join_place(part_values<T>(p, k)[r + j], part_places(p, k)[r + j], best + j, at + j);
}

// Stores the largest element of a window of x and returns its place.
template <class T>
TT_INLINE int64_t largest(const T* x, int64_t width, const Window& h, const Window& w, T* value) {
  if (is_empty(h, w)) {
    *value = lowest<T>();
    return -1;
  }
  int64_t at = h.begin * width + w.begin;
  T best = x[at];
  for (int64_t i = h.begin; i < h.end; i += h.step)
    for (int64_t j = w.begin; j < w.end; j += w.step) {
      const T v = x[i * width + j];
      if (beats(v, best)) {
        best = v;
        at = i * width + j;
      }
    }
  *value = best;
  return at;
}

using Place = int32_t;

constexpr int64_t kFound = 256;    // results at a time
constexpr int64_t kRows = 4096;    // rows at a time
constexpr int64_t kFew = 32;       // images with fewer columns are searched window by window
constexpr int64_t kMinLine = 256;  // windows of one row and at least as many columns are folded
constexpr int32_t kNoRow = INT32_MAX;

// Whether v in this row beats the best element of the columns before.
template <class T> TT_INLINE bool beats_column(T v, Place row, T best, Place best_row) {
  return (v > best) | ((v == best) & (row < best_row)) |
         ((v != v) & ((best == best) | (row >= best_row)));
}

// The maxima of n windows, each by itself.
template <class T> TT_NOINLINE void search_each(const PoolPlan& p, const T* x, const Window& h,
                                                int64_t o1, int64_t part, int64_t n, T* top,
                                                int64_t* at) {
  for (int64_t j = 0; j < n; j++) {
    const Window w = p.n_parts > 1 ? window_part(p, 1, o1 + j, part) : window(p, 1, o1 + j);
    at[j] = largest(x, p.in[1], h, w, top + j);
  }
}

template <class T> TT_NOINLINE void join_row(T* TT_RESTRICT best, Place* TT_RESTRICT row,
                                             const T* TT_RESTRICT x, Place r, int64_t n) {
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++) {
    const T v = x[i];
    const bool wins = beats(v, best[i]);
    best[i] = wins ? v : best[i];
    row[i] = wins ? r : row[i];
  }
}

// Joins column k of n windows that are `stride` columns apart. kStride: stride, or 0 for any.
template <int kStride, class T>
TT_NOINLINE void join_column(T* TT_RESTRICT value, Place* TT_RESTRICT high,
                             Place* TT_RESTRICT across, const T* TT_RESTRICT best,
                             const Place* TT_RESTRICT row, Place k, int64_t n, int64_t stride) {
  if (kStride) stride = kStride;
  TT_VECTORIZE
  for (int64_t j = 0; j < n; j++) {
    const T v = best[j * stride + k];
    const Place r = row[j * stride + k];
    const bool wins = beats_column(v, r, value[j], high[j]);
    value[j] = wins ? v : value[j];
    high[j] = wins ? r : high[j];
    across[j] = wins ? k : across[j];
  }
}

template <class T> struct Finder {
  const PoolPlan& p;
  alignas(64) T best[kPoolSpan];
  Place row[kPoolSpan];
  T value[kFound];
  Place high[kFound], across[kFound];
  T top[kFound];
  int64_t at[kFound];

  explicit Finder(const PoolPlan& plan) : p(plan) {}
  // Whether each window is searched by itself; of 8-byte elements all are, which saves code.
  static TT_INLINE bool one_by_one(const PoolPlan& p) { return sizeof(T) == 8 || p.in[1] < kFew; }
  void clear(int64_t i, int64_t end) {
    for (; i < end; i++) {
      best[i] = lowest<T>();
      row[i] = kNoRow;
    }
  }
  // The largest elements of n columns in the rows of h, which are `pitch` elements apart.
  TT_NOINLINE void fold(const T* x, const Window& h, int64_t pitch, int64_t n, int64_t to) {
    const T* line = x + h.begin * pitch;
    __builtin_memcpy(best + to, line, size_t(n) * sizeof(T));
    for (int64_t i = 0; i < n; i++) row[to + i] = 0;
    Place r = 1;
    for (int64_t i = h.begin + h.step; i < h.end; i += h.step, r++) {
      line += h.step * pitch;
      join_row<T>(best + to, row + to, line, r, n);
    }
  }
  // The largest of columns from, from + step, … below `to`, for window j.
  TT_NOINLINE void scan(int64_t j, int64_t from, int64_t to, int64_t step) {
    T largest = best[from];
    Place its_row = row[from];
    int64_t column = from;
    for (int64_t i = from + step; i < to; i += step) {
      if (best[i] < largest) continue;
      if (beats_column(best[i], row[i], largest, its_row)) {
        largest = best[i];
        its_row = row[i];
        column = i;
      }
    }
    value[j] = largest;
    high[j] = its_row;
    across[j] = Place(column - from);
  }
  // The same for n adjacent windows of few columns, column by column.
  TT_NOINLINE void scan_adjacent(int64_t n, int64_t stride) {
    for (int64_t j = 0; j < n; j++) {
      value[j] = best[j * stride];
      high[j] = row[j * stride];
      across[j] = 0;
    }
    for (int64_t i = 1; i < p.kernel[1]; i++) {
      const Place k = Place(i * p.dilation[1]);
      if (stride == 1) join_column<1, T>(value, high, across, best, row, k, n, stride);
      else if (stride == 2) join_column<2, T>(value, high, across, best, row, k, n, stride);
      else join_column<0, T>(value, high, across, best, row, k, n, stride);
    }
  }
  // Joins the n results with what rows h of their windows have given; window j begins at column +
  // j * step.
  TT_NOINLINE void add_found(const Window& h, int64_t column, int64_t step, int64_t n) {
    for (int64_t j = 0; j < n; j++)
      if (high[j] != kNoRow)
        join_place(value[j], (h.begin + high[j] * h.step) * p.in[1] + column + j * step + across[j],
                   top + j, at + j);
  }

  // Rows h of windows [o1, o1 + n), which lie within kPoolSpan columns.
  TT_NOINLINE void narrow(const T* x, const Window& h, int64_t o1, int64_t n) {
    const PoolColumns s = pool_columns(p, o1, n);
    const int64_t lead = s.begin - s.origin;
    const int64_t step = p.adaptive ? 0 : p.stride[1];
    clear(0, lead);
    clear(lead + s.have, s.width);
    fold(x + s.begin, h, p.in[1], s.have, lead);
    if (p.adaptive) {
      for (int64_t j = 0; j < n; j++) {
        const Window w = pool_window(p, 1, o1 + j);
        scan(j, w.begin - s.origin, w.end - s.origin, 1);
        across[j] += Place(w.begin - s.origin);
      }
    } else if (step <= 2 || n > 16 * p.kernel[1]) {
      scan_adjacent(n, step);
    } else {
      for (int64_t j = 0; j < n; j++)
        scan(j, j * step, j * step + (p.kernel[1] - 1) * p.dilation[1] + 1, p.dilation[1]);
    }
    add_found(h, s.origin, step, n);
  }
  // A window of one row of n elements, as if it had several rows of `piece` elements.
  TT_NOINLINE void line(const T* x, int64_t column, int64_t n) {
    const int64_t piece = min(round_up(n / 16, 16), kPoolSpan);
    const int64_t rows = n / piece;
    fold(x, {.begin = 0, .end = rows, .step = 1, .full = 0}, piece, piece, 0);
    join_row<T>(best, row, x + rows * piece, Place(rows), n - rows * piece);
    scan(0, 0, piece, 1);
    join_place(value[0], column + high[0] * piece + across[0], top, at);
  }
  // One window, by itself.
  TT_NOINLINE void wide(const T* x, const Window& h, const Window& w) {
    if (w.step == 1 && h.begin + h.step >= h.end && w.end - w.begin >= kMinLine) {
      const int64_t first = h.begin * p.in[1] + w.begin;
      return line(x + first, first, w.end - w.begin);
    }
    const int64_t piece = w.step > kPoolSpan ? w.step : kPoolSpan / w.step * w.step;
    for (int64_t i = w.begin; i < w.end; i += piece) {
      int64_t n = min(w.end - i, piece);
      if (n > kPoolSpan) n = 1;
      fold(x + i, h, p.in[1], n, 0);
      scan(0, 0, n, w.step);
      add_found(h, i, 0, 1);
    }
  }

  // The results [o1, o1 + n) of row o of a tile, n <= kFound: a single one, or as many as lie
  // within kPoolSpan columns.
  TT_NOINLINE void find(const T* x, const PoolTile& t, int64_t o, int64_t o1, int64_t n) {
    if (p.run.stage == 1)
      return join_parts(p, (t.image * p.out[0] + o) * p.out[1] + o1, n, top, at);
    const Window all = window_part(p, 0, o, t.part);
    if (one_by_one(p)) return search_each(p, x, all, o1, t.part, n, top, at);
    if constexpr (sizeof(T) == 4) find_wide(x, t.part, all, o1, n);
  }
  TT_NOINLINE void find_wide(const T* x, int64_t part, const Window& all, int64_t o1, int64_t n) {
    for (int64_t j = 0; j < n; j++) {
      top[j] = lowest<T>();
      at[j] = -1;
    }
    for (Window h = all; h.begin < all.end; h.begin = h.end) {
      const bool fits = (all.end - h.begin - 1) / h.step < kRows;
      h.end = fits ? all.end : h.begin + kRows * h.step;
      if (n > 1) narrow(x, h, o1, n);
      else wide(x, h, window_part(p, 1, o1, part));
    }
  }
  // Finds all results of a tile, and calls take(o, o1, n) after each run: columns [o1, o1 + n) of
  // row o.
  template <class F> TT_INLINE void each(const T* x, const PoolTile& t, const F& take) {
    const int64_t first = columns_that_fit(p, t.left, t.right, kFound);
    for (int64_t o = t.from; o < t.to; o++)
      for (int64_t o1 = t.left; o1 < t.right;) {
        const int64_t fit = o1 == t.left ? first : columns_that_fit(p, o1, t.right, kFound);
        const int64_t n = max<int64_t>(fit, 1);
        find(x, t, o, o1, n);
        take(o, o1, n);
        o1 += n;
      }
  }
};

TT_ISA_END
