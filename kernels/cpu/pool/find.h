// The largest element of each window of a plane and its position: the first of equal elements, the
// last nan. Adjacent windows overlap, so the largest element of each column of their rows is found
// first, then the largest column of each window:
//
//   x             rows h.begin … h.end, up to kPoolSpan columns
//     | fold      by rows, as vectors
//   best, row     [kPoolSpan], per column: the element, and its row relative to the window
//     | scan      by windows
//   value, high,  [kFound], per window: the element, its row, and its column relative to the window
//   across
//     | add_found
//   top, at       [kFound], per window: the largest so far, and its position in the plane
//
// At most kRows rows are folded at a time, so that row numbers fit in 32 bits.
#pragma once

#include "kernels/cpu/pool/pool.h"

TT_ISA_BEGIN

template <class T> TT_INLINE bool beats(T v, T best) { return (v > best) | (v != v); }

template <class T> TT_INLINE T lowest() {
  if constexpr (T(0.5) == T(0)) return INT64_MIN;
  else return -T(kInf);
}

// Whether all elements are padding, as a large dilation can make them.
TT_INLINE bool is_empty(const Window& h, const Window& w) {
  return (h.begin >= h.end) | (w.begin >= w.end);
}

// Updates the largest element so far and its position with another one; parts of a window may come
// in any order. A position < 0 means none.
template <class T> TT_INLINE void join_position(T v, int64_t at, T* best, int64_t* best_at) {
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
  memcpy(best, part_values<T>(p, 0) + r, size_t(n) * sizeof(T));
  memcpy(at, part_places(p, 0) + r, size_t(n) * sizeof(int64_t));
  for (int64_t k = 1; k < p.n_parts; k++)
    for (int64_t j = 0; j < n; j++)
      join_position(part_values<T>(p, k)[r + j], part_places(p, k)[r + j], best + j, at + j);
}

// Stores the largest element of a window of x and returns its position.
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

using Position = int32_t;

constexpr int64_t kFound = 256;    // results at a time
constexpr int64_t kRows = 4096;    // rows at a time
constexpr int64_t kFew = 32;       // planes with fewer columns are searched window by window
constexpr int64_t kMinLine = 256;  // windows of one row and at least this many columns are folded
constexpr int32_t kNoRow = INT32_MAX;

// Whether v in this row beats the best element of the preceding columns.
template <class T> TT_INLINE bool beats_column(T v, Position row, T best, Position best_row) {
  return (v > best) | ((v == best) & (row < best_row)) |
         ((v != v) & ((best == best) | (row >= best_row)));
}

// Searches n windows one by one.
template <class T> TT_NOINLINE void search_each(const PoolPlan& p, const T* x, const Window& h,
                                                int64_t o1, int64_t part, int64_t n, T* top,
                                                int64_t* at) {
  for (int64_t j = 0; j < n; j++) {
    const Window w = p.n_parts > 1 ? window_part(p, 1, o1 + j, part) : window(p, 1, o1 + j);
    at[j] = largest(x, p.in[1], h, w, top + j);
  }
}

template <class T> TT_NOINLINE void join_row(T* TT_RESTRICT best, Position* TT_RESTRICT row,
                                             const T* TT_RESTRICT x, Position r, int64_t n) {
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++) {
    const T v = x[i];
    const bool wins = beats(v, best[i]);
    best[i] = wins ? v : best[i];
    row[i] = wins ? r : row[i];
  }
}

// Joins column k of n windows, `stride` columns apart. kStride: stride, or 0 for any.
template <int kStride, class T>
TT_NOINLINE void join_column(T* TT_RESTRICT value, Position* TT_RESTRICT high,
                             Position* TT_RESTRICT across, const T* TT_RESTRICT best,
                             const Position* TT_RESTRICT row, Position k, int64_t n,
                             int64_t stride) {
  if (kStride) stride = kStride;
  TT_VECTORIZE
  for (int64_t j = 0; j < n; j++) {
    const T v = best[j * stride + k];
    const Position r = row[j * stride + k];
    const bool wins = beats_column(v, r, value[j], high[j]);
    value[j] = wins ? v : value[j];
    high[j] = wins ? r : high[j];
    across[j] = wins ? k : across[j];
  }
}

template <class T> struct Finder {
  const PoolPlan& p;
  alignas(64) T best[kPoolSpan];
  Position row[kPoolSpan];
  T value[kFound];
  Position high[kFound], across[kFound];
  T top[kFound];
  int64_t at[kFound];

  explicit Finder(const PoolPlan& plan) : p(plan) {}
  // Whether each window is searched by itself; 8-byte elements always are, which saves code.
  static TT_INLINE bool one_by_one(const PoolPlan& p) { return sizeof(T) == 8 || p.in[1] < kFew; }
  void clear(int64_t i, int64_t end) {
    for (; i < end; i++) {
      best[i] = lowest<T>();
      row[i] = kNoRow;
    }
  }
  // Finds the largest elements of n columns in rows h, which are `pitch` elements apart.
  TT_NOINLINE void fold(const T* x, const Window& h, int64_t pitch, int64_t n, int64_t to) {
    const T* line = x + h.begin * pitch;
    memcpy(best + to, line, size_t(n) * sizeof(T));
    for (int64_t i = 0; i < n; i++) row[to + i] = 0;
    Position r = 1;
    for (int64_t i = h.begin + h.step; i < h.end; i += h.step, r++) {
      line += h.step * pitch;
      join_row<T>(best + to, row + to, line, r, n);
    }
  }
  // Window j: the largest of columns from, from + step, … below `to`.
  TT_NOINLINE void scan(int64_t j, int64_t from, int64_t to, int64_t step) {
    T largest = best[from];
    Position its_row = row[from];
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
    across[j] = Position(column - from);
  }
  // The same for n adjacent windows of few columns, for all windows column by column.
  TT_NOINLINE void scan_adjacent(int64_t n, int64_t stride) {
    for (int64_t j = 0; j < n; j++) {
      value[j] = best[j * stride];
      high[j] = row[j * stride];
      across[j] = 0;
    }
    for (int64_t i = 1; i < p.kernel[1]; i++) {
      const Position k = Position(i * p.dilation[1]);
      if (stride == 1) join_column<1, T>(value, high, across, best, row, k, n, stride);
      else if (stride == 2) join_column<2, T>(value, high, across, best, row, k, n, stride);
      else join_column<0, T>(value, high, across, best, row, k, n, stride);
    }
  }
  // Updates n results with the maxima of rows h of their windows. Window j begins at
  // column + j * step.
  TT_NOINLINE void add_found(const Window& h, int64_t column, int64_t step, int64_t n) {
    for (int64_t j = 0; j < n; j++)
      if (high[j] != kNoRow)
        join_position(value[j],
                      (h.begin + high[j] * h.step) * p.in[1] + column + j * step + across[j],
                      top + j, at + j);
  }

  // Rows h of windows [o1, o1 + n), which span at most kPoolSpan columns.
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
        across[j] += Position(w.begin - s.origin);
      }
    } else if (step <= 2 || n > 16 * p.kernel[1]) {
      scan_adjacent(n, step);
    } else {
      for (int64_t j = 0; j < n; j++)
        scan(j, j * step, j * step + (p.kernel[1] - 1) * p.dilation[1] + 1, p.dilation[1]);
    }
    add_found(h, s.origin, step, n);
  }
  // A window of one row of n elements, folded as several rows of `piece` elements.
  TT_NOINLINE void line(const T* x, int64_t column, int64_t n) {
    const int64_t piece = min(round_up(n / 16, 16), kPoolSpan);
    const int64_t rows = n / piece;
    fold(x, {.begin = 0, .end = rows, .step = 1, .full = 0}, piece, piece, 0);
    join_row<T>(best, row, x + rows * piece, Position(rows), n - rows * piece);
    scan(0, 0, piece, 1);
    join_position(value[0], column + high[0] * piece + across[0], top, at);
  }
  // One window.
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

  // Results [o1, o1 + n) of row o of a tile, n <= kFound: a single one, or as many as span
  // kPoolSpan columns.
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
  // Finds all results of a tile, and calls take(o, o1, n) after columns [o1, o1 + n) of row o.
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
