// Windows and tiles of pooling, and the entry points.
#pragma once

#include "base/arith.h"
#include "kernels/cpu/simd/vec.h"
#include "plan/pool_plan.h"

TT_ENTRY_BEGIN

// The elements of dimension d that window o covers: begin, begin + step, … below end.
struct Window {
  int64_t begin, end, step;
  int64_t full;  // number of elements, padding included
  TT_INLINE int64_t count() const { return end > begin ? ceil_div(end - begin, step) : 0; }
};
// Rows [from, to) and columns [left, right) of an image.
struct PoolTile {
  int64_t image, from, to, left, right;
  int64_t part;  // which part of each window
};
// The columns of adjacent windows, at most kPoolSpan: [origin, origin + width). Columns
// [begin, begin + have) are in the image, the others padding.
struct PoolColumns {
  int64_t origin, width, begin, have;
};
struct PoolRange {
  int64_t first, end;
};

PoolTile pool_tile(const PoolTiles& t, const int64_t* size, int64_t u) noexcept;
// The tile of y of unit u of stages 0 and 1.
PoolTile window_tile(const PoolPlan& p, int64_t u) noexcept;
// The elements of window o of dimension d that this stage reads: all, or one part.
Window window_part(const PoolPlan& p, int d, int64_t o, int64_t part) noexcept;
Window pool_window(const PoolPlan& p, int d, int64_t o) noexcept;
// The number of elements of window o along dimension d that an average divides by.
int64_t counted(const PoolPlan& p, int d, int64_t o) noexcept;
// The columns of windows [o1, o1 + n).
PoolColumns pool_columns(const PoolPlan& p, int64_t o1, int64_t n) noexcept;
// The number of columns from o1 on, below right and at most max_n, whose windows span at most
// kPoolSpan. 0: not even one does, or windows are read one by one.
int64_t columns_that_fit(const PoolPlan& p, int64_t o1, int64_t right, int64_t max_n) noexcept;
// The windows of dimension d that may cover elements of [from, to).
PoolRange windows_over(const PoolPlan& p, int d, int64_t from, int64_t to) noexcept;
// Stores the maxima of results [r, r + n), of `item` bytes each, and their positions `at`: in
// `parts` for the next stage, or in y and index.
void store_maxima(const PoolPlan& p, int64_t part, int64_t r, int64_t n, const void* best,
                  int64_t item, const int64_t* at) noexcept;
// Zeroes the first n of the `pixel_bytes` of each pixel of a tile.
void clear_tile(char* image, const PoolTile& t, int64_t width, int64_t pixel_bytes,
                int64_t n) noexcept;

TT_ENTRY_END

TT_ISA_BEGIN

TT_INLINE Window window(const PoolPlan& p, int d, int64_t o) {
  const int64_t in = p.in[d];
  const int64_t out = p.out[d];
  if (p.adaptive) {
    const int64_t begin = o * in / out;
    const int64_t end = ceil_div((o + 1) * in, out);
    return {.begin = begin, .end = end, .step = 1, .full = end - begin};
  }
  int64_t begin = o * p.stride[d] - p.pad[d];
  int64_t end = begin + (p.kernel[d] - 1) * p.dilation[d] + 1;
  const int64_t full = min(end, in + p.pad[d]) - begin;
  if (begin < 0) begin += round_up(-begin, p.dilation[d]);
  return {.begin = begin, .end = min(end, in), .step = p.dilation[d], .full = full};
}

// Whether images are not cut into tiles.
TT_INLINE bool whole(const PoolTiles& t) { return t.n_rows * t.n_columns == 1; }
// Whether this stage stores results of parts of the windows.
TT_INLINE bool leaves_parts(const PoolPlan& p) { return (p.n_parts > 1) & (p.run.stage == 0); }
template <class T> TT_INLINE T* part_values(const PoolPlan& p, int64_t part) {
  return reinterpret_cast<T*>(p.parts) + part * p.results;
}
TT_INLINE int64_t* part_places(const PoolPlan& p, int64_t part) {
  return reinterpret_cast<int64_t*>(p.parts) + (p.n_parts + part) * p.results;
}

// d[j] = counted() of column window first + j, for j < n; 1 if the plan has a divisor.
template <class T>
TT_NOINLINE void columns_counted(const PoolPlan& p, int64_t first, int64_t n, T* TT_RESTRICT d) {
  const int64_t step = p.stride[1];
  const int64_t reach = (p.kernel[1] - 1) * p.dilation[1];
  int64_t begin = 0, end = 0;  // windows without padding: [begin, end)
  if (!p.divisor && !p.adaptive) {
    begin = clamp<int64_t>(ceil_div(p.pad[1], step) - first, 0, n);
    end = (p.in[1] + p.pad[1] - reach - 1 + step) / step - first;
    end = clamp(end, begin, n);
  }
  const T inside = T(p.kernel[1]);
  TT_VECTORIZE
  for (int64_t j = begin; j < end; j++) d[j] = inside;
  for (int64_t j = 0; j < begin; j++) d[j] = T(counted(p, 1, first + j));
  for (int64_t j = end; j < n; j++) d[j] = T(p.divisor ? 1 : counted(p, 1, first + j));
}

// The even (kOdd = 0) or odd (1) elements of the concatenation of a and b.
template <int kOdd, class T, int N>
TT_INLINE typename Halves<T, N>::Whole every_second(typename Halves<T, N>::Whole a,
                                                    typename Halves<T, N>::Whole b) {
  constexpr int o = kOdd;
  if constexpr (N == 16)
    return shuffled<o, o + 2, o + 4, o + 6, o + 8, o + 10, o + 12, o + 14, o + 16, o + 18, o + 20,
                    o + 22, o + 24, o + 26, o + 28, o + 30>(a, b);
  else if constexpr (N == 8)
    return shuffled<o, o + 2, o + 4, o + 6, o + 8, o + 10, o + 12, o + 14>(a, b);
  else return shuffled<o, o + 2, o + 4, o + 6>(a, b);
}
// The first (kSecond = 0) or second (1) half of even[0] odd[0] even[1] odd[1] ….
template <int kSecond, class T, int N>
TT_INLINE typename Halves<T, N>::Whole interleave(typename Halves<T, N>::Whole even,
                                                  typename Halves<T, N>::Whole odd) {
  constexpr int o = kSecond * N / 2;
  if constexpr (N == 16)
    return shuffled<o, o + 16, o + 1, o + 17, o + 2, o + 18, o + 3, o + 19, o + 4, o + 20, o + 5,
                    o + 21, o + 6, o + 22, o + 7, o + 23>(even, odd);
  else if constexpr (N == 8)
    return shuffled<o, o + 8, o + 1, o + 9, o + 2, o + 10, o + 3, o + 11>(even, odd);
  else return shuffled<o, o + 4, o + 1, o + 5>(even, odd);
}

TT_ISA_END

TT_ENTRY_BEGIN

// PoolPlan
TT_KERNEL(pool_max)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(pool_max_index)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(pool_max_backward)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(pool_average)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(pool_average_backward)(const void* plan, int64_t begin, int64_t end) noexcept;

TT_ENTRY_END
