// Windows of pooling kernels, and the entry points.
#pragma once

#include "kernels/cpu/simd/loop.h"
#include "kernels/cpu/simd/vec.h"
#include "plan/pool_plan.h"

TT_ENTRY_BEGIN

// The elements begin, begin + step … below end that window o of dimension d covers; full counts
// padding too.
struct Window {
  int64_t begin, end, step, full;
  TT_INLINE int64_t count() const { return end > begin ? (end - begin + step - 1) / step : 0; }
};
// Rows [from, to) and columns [left, right) of an image; part: of windows.
struct PoolTile {
  int64_t image, from, to, left, right, part;
};
// Of windows of columns side by side, all of them within kPoolSpan: [origin, origin + width), of
// which the image has [begin, begin + have).
struct PoolColumns {
  int64_t origin, width, begin, have;
};
struct PoolRange {
  int64_t first, end;
};

PoolTile pool_tile(const PoolTiles& t, const int64_t* size, int64_t u) noexcept;
// Of stages 0 and 1.
PoolTile window_tile(const PoolPlan& p, int64_t u) noexcept;
// What of window o of dimension d is read: all, or, by stage 0, a part of it.
Window window_part(const PoolPlan& p, int d, int64_t o, int64_t part) noexcept;
Window pool_window(const PoolPlan& p, int d, int64_t o) noexcept;
// The factor of the divisor of averages that dimension d gives, where there is no other divisor.
int64_t counted(const PoolPlan& p, int d, int64_t o) noexcept;
PoolColumns pool_columns(const PoolPlan& p, int64_t o1, int64_t n) noexcept;
// The number of the columns [o1, right) of y, at most `most`, whose windows lie within kPoolSpan: 0
// where not even one does, or where parts of it are better read as if it did not.
int64_t fitting(const PoolPlan& p, int64_t o1, int64_t right, int64_t most) noexcept;
// The windows along d that may meet the elements [from, to).
PoolRange reaching(const PoolPlan& p, int d, int64_t from, int64_t to) noexcept;
// What was found of n results from r on, of `item` bytes: for the next stage, or in y and index.
void keep_found(const PoolPlan& p, int64_t part, int64_t r, int64_t n, const void* best,
                int64_t item, const int64_t* at) noexcept;
// A tile of an image of pixels of `deep` bytes is 0, of each the first n of them.
void clear_tile(char* image, const PoolTile& t, int64_t width, int64_t deep, int64_t n) noexcept;

TT_ENTRY_END

TT_ISA_BEGIN

TT_INLINE Window window(const PoolPlan& p, int d, int64_t o) {
  const int64_t in = p.in[d];
  const int64_t out = p.out[d];
  if (p.adaptive) {
    const int64_t begin = o * in / out;
    const int64_t end = ((o + 1) * in + out - 1) / out;
    return {begin, end, 1, end - begin};
  }
  int64_t begin = o * p.stride[d] - p.pad[d];
  int64_t end = begin + (p.kernel[d] - 1) * p.dilation[d] + 1;
  const int64_t stop = end < in + p.pad[d] ? end : in + p.pad[d];
  const int64_t full = stop - begin;
  if (begin < 0) begin += (-begin + p.dilation[d] - 1) / p.dilation[d] * p.dilation[d];
  return {begin, end < in ? end : in, p.dilation[d], full};
}

TT_INLINE bool whole(const PoolTiles& t) { return t.n_rows * t.n_columns == 1; }
// The running stage leaves parts.
TT_INLINE bool leaves_parts(const PoolPlan& p) { return (p.n_parts > 1) & (p.run.stage == 0); }
template <class T> TT_INLINE T* part_values(const PoolPlan& p, int64_t part) {
  return reinterpret_cast<T*>(p.parts) + part * p.results;
}
TT_INLINE int64_t* part_places(const PoolPlan& p, int64_t part) {
  return reinterpret_cast<int64_t*>(p.parts) + (p.n_parts + part) * p.results;
}

// What counted() gives for the columns of the windows [first, first + n); 1 where there is another
// divisor.
template <class T>
TT_NOINLINE void columns_counted(const PoolPlan& p, int64_t first, int64_t n, T* TT_RESTRICT d) {
  const int64_t step = p.stride[1];
  const int64_t reach = (p.kernel[1] - 1) * p.dilation[1];
  int64_t begin = 0, end = 0;  // windows that lie within the image
  if (!p.divisor && !p.adaptive) {
    begin = (p.pad[1] + step - 1) / step - first;
    begin = begin < 0 ? 0 : begin > n ? n : begin;
    end = (p.in[1] + p.pad[1] - reach - 1 + step) / step - first;
    end = end < begin ? begin : end > n ? n : end;
  }
  const T inside = T(p.kernel[1]);
  TT_VECTORIZE
  for (int64_t j = begin; j < end; j++) d[j] = inside;
  for (int64_t j = 0; j < begin; j++) d[j] = T(counted(p, 1, first + j));
  for (int64_t j = end; j < n; j++) d[j] = T(p.divisor ? 1 : counted(p, 1, first + j));
}

// The even (0) or odd (1) ones of the 2 N elements of a and b.
template <int kOdd, class T, int N>
TT_INLINE typename Halves<T, N>::Whole every_second(typename Halves<T, N>::Whole a,
                                                    typename Halves<T, N>::Whole b) {
  constexpr int o = kOdd;
  if constexpr (N == 16)
    return __builtin_shufflevector(a, b, o, o + 2, o + 4, o + 6, o + 8, o + 10, o + 12, o + 14,
                                   o + 16, o + 18, o + 20, o + 22, o + 24, o + 26, o + 28, o + 30);
  else if constexpr (N == 8)
    return __builtin_shufflevector(a, b, o, o + 2, o + 4, o + 6, o + 8, o + 10, o + 12, o + 14);
  else return __builtin_shufflevector(a, b, o, o + 2, o + 4, o + 6);
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
