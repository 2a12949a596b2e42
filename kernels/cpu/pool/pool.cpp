// pool_max and pool_average. In planes, rows of windows are joined first, as vectors, then columns:
//
//   x      rows of the windows    [h.begin … h.end) x columns of adjacent windows
//            | fold_rows: row by row
//   col    [kPoolSpan]            one row, padding is the identity
//            | join_columns: y[j] = col[j * stride], col[j * stride + dilation], … joined
//   y      [kOut]                 results
//
// With channels last, each window is joined pixel by pixel, as vectors of channels.
#include "kernels/cpu/pool/pool.h"

#include "kernels/cpu/simd/row_primitives.h"

TT_ISA_BEGIN

// Integers wrap around. The divisor b is not 0.
template <class T> TT_INLINE T total(T a, T b) {
  if constexpr (kIsSame<T, int64_t>) return int64_t(uint64_t(a) + uint64_t(b));
  else return a + b;
}
template <class T> TT_INLINE T quotient(T a, T b) {
  if constexpr (kIsSame<T, int64_t>) return b == -1 ? int64_t(0 - uint64_t(a)) : a / b;
  else return a / b;
}

struct Max {
  static constexpr bool kMean = false;
  template <class T> static TT_INLINE T join(T m, T v) { return ((v > m) | (v != v)) ? v : m; }
  template <class T> static TT_INLINE T identity() { return -T(kInf); }
};
struct Sum {
  static constexpr bool kMean = true;
  template <class T> static TT_INLINE T join(T m, T v) { return total(m, v); }
  template <class T> static TT_INLINE T identity() { return 0; }
};

constexpr int64_t kOut = 512;  // output columns at a time

TT_INLINE void store_out(char* p, const float* x, int64_t n, int32_t dtype) {
  store_run(p, x, n, dtype);
}
TT_INLINE void store_out(char* p, const double* x, int64_t n, int32_t dtype) {
  store_run(p, x, n, dtype);
}
TT_INLINE void store_out(char* p, const int64_t* x, int64_t n, int32_t) {
  memcpy(p, x, size_t(n) * 8);
}

template <class T, class Op> TT_NOINLINE void join_rows(T* TT_RESTRICT d, const T* TT_RESTRICT a,
                                                        const T* TT_RESTRICT b, int64_t n) {
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++) d[i] = Op::join(a[i], b[i]);
}
template <class T, class Op>
TT_NOINLINE void join_onto(T* TT_RESTRICT d, const T* TT_RESTRICT b, int64_t n) {
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++) d[i] = Op::join(d[i], b[i]);
}
// Joins four rows of a, `step` elements apart, onto d.
template <class T, class Op>
TT_NOINLINE void join_four_onto(T* TT_RESTRICT d, const T* TT_RESTRICT a, int64_t step, int64_t n) {
  const T* a1 = a + step;
  const T* a2 = a1 + step;
  const T* a3 = a2 + step;
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++)
    d[i] = Op::join(Op::join(Op::join(Op::join(d[i], a[i]), a1[i]), a2[i]), a3[i]);
}
// d = the run at src (first), or d joined with it. 16-bit sources are converted.
template <class T, class Op>
TT_INLINE void join_source(T* d, const char* src, int64_t n, int32_t dtype, T* buffer, bool first) {
  if (kItemSize[dtype] != int64_t(sizeof(T))) {
    if (first) return load_run(d, src, kItemSize[dtype], n, dtype);
    load_run(buffer, src, kItemSize[dtype], n, dtype);
    return join_onto<T, Op>(d, buffer, n);
  }
  if (first) memcpy(d, src, size_t(n) * sizeof(T));
  else join_onto<T, Op>(d, reinterpret_cast<const T*>(src), n);
}

// d = results [r, r + n), joined from the parts of their windows.
template <class T, class Op>
TT_NOINLINE void join_values(const PoolPlan& p, int64_t r, int64_t n, T* d) {
  memcpy(d, part_values<T>(p, 0) + r, size_t(n) * sizeof(T));
  for (int64_t k = 1; k < p.n_parts; k++) join_onto<T, Op>(d, part_values<T>(p, k) + r, n);
}

// ---- planes ----

// y[j] joins columns j * stride + k * dilation of t, k < kernel.
template <class T, class Op> TT_NOINLINE void join_columns(T* TT_RESTRICT y, const T* TT_RESTRICT t,
                                                           int64_t n, int64_t stride,
                                                           int64_t kernel, int64_t dilation) {
  if (stride == 2 && dilation == 1) {
    int64_t k = 1;
    if (kernel == 1) {
      TT_VECTORIZE
      for (int64_t j = 0; j < n; j++) y[j] = t[2 * j];
    } else {
      TT_VECTORIZE
      for (int64_t j = 0; j < n; j++) y[j] = Op::join(t[2 * j], t[2 * j + 1]);
      k = 2;
    }
    for (; k < kernel; k++) {
      TT_VECTORIZE
      for (int64_t j = 0; j < n; j++) y[j] = Op::join(y[j], t[2 * j + k]);
    }
  } else if (stride == 1) {
    int64_t k = 3;
    if (kernel < 3) {
      memcpy(y, t, size_t(n) * sizeof(T));
      k = 1;
    } else {
      TT_VECTORIZE
      for (int64_t j = 0; j < n; j++)
        y[j] = Op::join(Op::join(t[j], t[j + dilation]), t[j + 2 * dilation]);
    }
    for (; k < kernel; k++) {
      TT_VECTORIZE
      for (int64_t j = 0; j < n; j++) y[j] = Op::join(y[j], t[j + k * dilation]);
    }
  } else {
    for (int64_t j = 0; j < n; j++) y[j] = t[j * stride];
    for (int64_t k = 1; k < kernel; k++) {
      TT_VECTORIZE
      for (int64_t j = 0; j < n; j++) y[j] = Op::join(y[j], t[j * stride + k * dilation]);
    }
  }
}

// Adjacent windows of 2 x 2 over rows a and b: all of n >= N results, N at a time; the last N again
// if N does not divide n.
template <class T, int N> TT_INLINE void halve_by(T* y, const T* a, const T* b, int64_t n) {
  using V = typename Halves<T, N>::Whole;
  auto get = [](const T* p) TT_INLINE_BODY {
    V v;
    memcpy(&v, p, sizeof v);
    return v;
  };
  auto join = [](V m, V v) TT_INLINE_BODY {
    const V top = chosen(v > m, v, m);
    return chosen(v != v, v, top);
  };
  for (int64_t j = 0;; j = min(j + N, n - N)) {
    const V low = join(get(a + 2 * j), get(b + 2 * j));
    const V high = join(get(a + 2 * j + N), get(b + 2 * j + N));
    const V r = join(every_second<0, T, N>(low, high), every_second<1, T, N>(low, high));
    memcpy(y + j, &r, sizeof r);
    if (j + N >= n) return;
  }
}
template <class T, class Op> TT_NOINLINE void halve_rows(T* TT_RESTRICT y, const T* TT_RESTRICT a,
                                                         const T* TT_RESTRICT b, int64_t n) {
  constexpr int L = kLanes<T> < 4 ? 4 : kLanes<T>;
  if (n >= L) return halve_by<T, L>(y, a, b, n);
  if constexpr (L > 8)
    if (n >= 8) return halve_by<T, 8>(y, a, b, n);
  if constexpr (L > 4)
    if (n >= 4) return halve_by<T, 4>(y, a, b, n);
  for (int64_t j = 0; j < n; j++)
    y[j] = Op::join(Op::join(a[2 * j], b[2 * j]), Op::join(a[2 * j + 1], b[2 * j + 1]));
}

template <class T, class Op> struct Planes {
  const PoolPlan& p;
  const int64_t item;
  alignas(64) T col[kPoolSpan];     // the joined rows of the windows
  alignas(64) T buffer[kPoolSpan];  // a row of x, converted
  alignas(64) T y[kOut];
  alignas(64) T count[kOut];  // what columns_counted() gives

  explicit Planes(const PoolPlan& plan) : p(plan), item(kItemSize[plan.dtype]) {}

  TT_INLINE const char* row(int64_t plane, int64_t r, int64_t from) const {
    return p.x + ((plane * p.in[0] + r) * p.in[1] + from) * item;
  }

  // d = the rows of window h joined, columns [from, from + n) of x; the identity if there are no
  // rows. onto: joined with d, too.
  TT_NOINLINE void fold_rows(int64_t plane, const Window& h, int64_t from, int64_t n, T* d,
                             bool onto) {
    int64_t r = h.begin;
    if (onto) {
      // d is the first operand
    } else if (r >= h.end) {
      for (int64_t i = 0; i < n; i++) d[i] = Op::template identity<T>();
    } else if (item == int64_t(sizeof(T)) && r + h.step < h.end) {
      join_rows<T, Op>(d, reinterpret_cast<const T*>(row(plane, r, from)),
                       reinterpret_cast<const T*>(row(plane, r + h.step, from)), n);
      r += 2 * h.step;
    } else {
      join_source<T, Op>(d, row(plane, r, from), n, p.dtype, buffer, true);
      r += h.step;
    }
    for (; item == int64_t(sizeof(T)) && r + 3 * h.step < h.end; r += 4 * h.step)
      join_four_onto<T, Op>(d, reinterpret_cast<const T*>(row(plane, r, from)), h.step * p.in[1],
                            n);
    for (; r < h.end; r += h.step)
      join_source<T, Op>(d, row(plane, r, from), n, p.dtype, buffer, false);
  }

  // Stores y, results [o1, o1 + n) of row o, whose windows have the rows h; or parts of them.
  TT_NOINLINE void finish(const PoolTile& t, int64_t o, int64_t o1, int64_t n, const Window& h) {
    const int64_t at = (t.image * p.out[0] + o) * p.out[1] + o1;
    if (leaves_parts(p)) {
      memcpy(part_values<T>(p, t.part) + at, y, size_t(n) * sizeof(T));
      return;
    }
    if constexpr (Op::kMean) {
      T rows = T(p.count_pad ? h.full : h.count());
      if (p.divisor) rows = T(p.divisor);
      TT_VECTORIZE
      for (int64_t j = 0; j < n; j++) y[j] = quotient<T>(y[j], rows * count[j]);
    }
    store_out(p.y + at * item, y, n, p.dtype);
  }

  // Columns [o1, o1 + n) of a tile, whose windows span at most kPoolSpan.
  void narrow(const PoolTile& t, int64_t o1, int64_t n) {
    const PoolColumns s = pool_columns(p, o1, n);
    const int64_t lead = s.begin - s.origin;
    for (int64_t i = 0; i < lead; i++) col[i] = Op::template identity<T>();
    for (int64_t i = lead + s.have; i < s.width; i++) col[i] = Op::template identity<T>();
    for (int64_t o = t.from; o < t.to; o++) {
      const Window h = leaves_parts(p) ? window_part(p, 0, o, t.part) : window(p, 0, o);
      fold_rows(t.image, h, s.begin, s.have, col + lead, false);
      if (p.adaptive) adaptive_columns(s.origin, o1, n);
      else join_columns<T, Op>(y, col, n, p.stride[1], p.kernel[1], p.dilation[1]);
      finish(t, o, o1, n, h);
    }
  }
  // Joins the first n elements of col with each other until at most `left` remain; returns their
  // number.
  TT_INLINE int64_t shrink(int64_t n, int64_t left) {
    for (; n > left; n -= n / 2) join_onto<T, Op>(col, col + (n - n / 2), n / 2);
    return n;
  }
  TT_NOINLINE void adaptive_columns(int64_t origin, int64_t o1, int64_t n) {
    for (int64_t j = 0; j < n; j++) {
      const Window w = window(p, 1, o1 + j);
      const int64_t begin = w.begin - origin;
      const int64_t end = n > 1 ? w.end - origin : shrink(w.end - w.begin, 8);
      T m = col[begin];
      for (int64_t i = begin + 1; i < end; i++) m = Op::join(m, col[i]);
      y[j] = m;
    }
  }

  // Column o1 of a tile, whose window is wider than kPoolSpan: its pieces are joined onto each
  // other, like rows.
  TT_NOINLINE void wide(const PoolTile& t, int64_t o1) {
    const Window w = window_part(p, 1, o1, t.part);
    const int64_t piece = w.step > kPoolSpan ? w.step : kPoolSpan / w.step * w.step;
    for (int64_t o = t.from; o < t.to; o++) {
      const Window h = window_part(p, 0, o, t.part);
      int64_t width = 0;  // of col: that of the first piece, the longest
      for (int64_t i = w.begin; i < w.end; i += piece) {
        int64_t n = min(w.end - i, piece);
        if (n > kPoolSpan) n = 1;
        fold_rows(t.image, h, i, n, col, width > 0);
        if (!width) width = n;
      }
      if (w.step == 1) width = shrink(width, 64);
      T m = Op::template identity<T>();
      for (int64_t j = 0; j < width; j += w.step) m = Op::join(m, col[j]);
      y[0] = m;
      finish(t, o, o1, 1, h);
    }
  }

  // Stage 1: columns [o1, o1 + n) of a tile, from the parts of their windows.
  void join_parts(const PoolTile& t, int64_t o1, int64_t n) {
    for (int64_t o = t.from; o < t.to; o++) {
      join_values<T, Op>(p, (t.image * p.out[0] + o) * p.out[1] + o1, n, y);
      finish(t, o, o1, n, pool_window(p, 0, o));
    }
  }

  // Whether the window of each plane is the whole plane.
  TT_INLINE bool is_global() const {
    return p.adaptive && p.out[0] * p.out[1] == 1 && item == int64_t(sizeof(T)) && p.run.n == 1;
  }
  static TT_NOINLINE T sum_many(const T* x, int64_t n) {
    Lanes<T> acc;
    acc.fill(0);
    add_run(&acc, x, n);
    T r;
    acc.fold(&r, 1);
    return r;
  }
  TT_NOINLINE void means(int64_t begin, int64_t end) {
    const int64_t n = p.in[0] * p.in[1];
    for (int64_t u = begin; u < end; u++) {
      const T* x = reinterpret_cast<const T*>(row(u, 0, 0));
      reinterpret_cast<T*>(p.y)[u] = (n < kFewToSum ? sum_few(x, n) : sum_many(x, n)) / T(n);
    }
  }

  // Windows of 2 x 2, side by side: the rows of a tile.
  TT_NOINLINE void halve(const PoolTile& t) {
    for (int64_t o = t.from; o < t.to; o++)
      halve_rows<T, Op>(reinterpret_cast<T*>(p.y) + (t.image * p.out[0] + o) * p.out[1] + t.left,
                        reinterpret_cast<const T*>(row(t.image, 2 * o, 2 * t.left)),
                        reinterpret_cast<const T*>(row(t.image, 2 * o + 1, 2 * t.left)),
                        t.right - t.left);
  }
  // The same for 16-bit elements: as many whole rows are converted at once as `buffer` holds.
  TT_NOINLINE void halve_converted(const PoolTile& t) {
    const int64_t width = p.in[1];
    const int64_t at_once = kPoolSpan / (2 * width);
    for (int64_t o = t.from; o < t.to; o += at_once) {
      const int64_t rows = min(at_once, t.to - o);
      load_run(buffer, row(t.image, 2 * o, 0), item, 2 * rows * width, p.dtype);
      for (int64_t r = 0; r < rows; r++) {
        const T* upper = buffer + 2 * r * width;
        halve_rows<T, Op>(col + r * p.out[1], upper, upper + width, p.out[1]);
      }
      const int64_t at = (t.image * p.out[0] + o) * p.out[1];
      store_out(p.y + at * item, col, rows * p.out[1], p.dtype);
    }
  }

  void unit(const PoolTile& t) {
    if constexpr (!Op::kMean) {
      if (p.halving && item == int64_t(sizeof(T))) return halve(t);
      if (p.halving && t.right - t.left == p.out[1] && 2 * p.in[1] <= kPoolSpan)
        return halve_converted(t);
    }
    for (int64_t o1 = t.left; o1 < t.right;) {
      int64_t n = columns_that_fit(p, o1, t.right, kOut);
      const bool fits = n > 0;
      if (!fits) n = 1;
      if (Op::kMean) columns_counted(p, o1, n, count);
      if (p.run.stage) join_parts(t, o1, n);
      else if (fits) narrow(t, o1, n);
      else wide(t, o1);
      o1 += n;
    }
  }
};

// ---- channels last ----

template <class T, class Op> struct Pixels {
  const PoolPlan& p;
  const int64_t item;
  alignas(64) T sum[kOut], buffer[kOut];

  explicit Pixels(const PoolPlan& plan) : p(plan), item(kItemSize[plan.dtype]) {}

  void unit(const PoolTile& t) {
    for (int64_t o = t.from; o < t.to; o++) {
      const Window h = window_part(p, 0, o, t.part);
      for (int64_t o1 = t.left; o1 < t.right; o1++) {
        const Window w = window_part(p, 1, o1, t.part);
        for (int64_t c = 0; c < p.c; c += kOut) {
          const int64_t n = min(p.c - c, kOut);
          const int64_t at = ((t.image * p.out[0] + o) * p.out[1] + o1) * p.c + c;
          if (p.run.stage) join_values<T, Op>(p, at, n, sum);
          else window_sum(p.x + (t.image * p.in[0] * p.in[1] * p.c + c) * item, h, w, n);
          finish(t, o, o1, at, n);
        }
      }
    }
  }
  TT_NOINLINE void window_sum(const char* x, const Window& h, const Window& w, int64_t n) {
    bool first = true;
    for (int64_t i = h.begin; i < h.end; i += h.step)
      for (int64_t j = w.begin; j < w.end; j += w.step, first = false)
        join_source<T, Op>(sum, x + (i * p.in[1] + j) * p.c * item, n, p.dtype, buffer, first);
    if (first)
      for (int64_t k = 0; k < n; k++) sum[k] = Op::template identity<T>();
  }
  TT_INLINE void finish(const PoolTile& t, int64_t o, int64_t o1, int64_t at, int64_t n) {
    if (leaves_parts(p)) {
      memcpy(part_values<T>(p, t.part) + at, sum, size_t(n) * sizeof(T));
      return;
    }
    if constexpr (Op::kMean) {
      const T d = T(p.divisor ? p.divisor : counted(p, 0, o) * counted(p, 1, o1));
      TT_VECTORIZE
      for (int64_t k = 0; k < n; k++) sum[k] = quotient(sum[k], d);
    }
    store_out(p.y + at * item, sum, n, p.dtype);
  }
};

template <class T, class Op> inline int32_t pool(const PoolPlan& p, int64_t begin, int64_t end) {
  if (p.channels_last) {
    Pixels<T, Op> pixels(p);
    for (int64_t u = begin; u < end; u++) pixels.unit(window_tile(p, u));
  } else {
    Planes<T, Op> planes(p);
    if constexpr (Op::kMean && T(0.5) != 0)
      if (planes.is_global()) {
        planes.means(begin, end);
        return TT_OK;
      }
    for (int64_t u = begin; u < end; u++) planes.unit(window_tile(p, u));
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(pool_max)(const void* plan, int64_t begin, int64_t end) noexcept {
  const PoolPlan& p = *static_cast<const PoolPlan*>(plan);
  return is_dtype(p.dtype, TT_F64) ? pool<double, Max>(p, begin, end)
                                   : pool<float, Max>(p, begin, end);
}

TT_KERNEL(pool_average)(const void* plan, int64_t begin, int64_t end) noexcept {
  const PoolPlan& p = *static_cast<const PoolPlan*>(plan);
  if (p.dtype == TT_I64) return pool<int64_t, Sum>(p, begin, end);
  return is_dtype(p.dtype, TT_F64) ? pool<double, Sum>(p, begin, end)
                                   : pool<float, Sum>(p, begin, end);
}

TT_ENTRY_END
