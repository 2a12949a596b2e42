// Windows of pooling kernels, and the entry points.
#pragma once

#include "cpu/vec.h"
#include "plan/pool_plan.h"

TT_ISA_BEGIN

// The elements begin, begin + step … below end that window o of dimension d covers; full counts padding too.
struct Window {
  int64_t begin, end, step, full;
  TT_INLINE int64_t count() const { return end > begin ? (end - begin + step - 1) / step : 0; }
};

TT_INLINE Window window(const PoolPlan& p, int d, int64_t o) {
  const int64_t in = p.in[d], out = p.out[d];
  if (p.adaptive) {
    const int64_t begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
    return {begin, end, 1, end - begin};
  }
  int64_t begin = o * p.stride[d] - p.pad[d], end = begin + (p.kernel[d] - 1) * p.dilation[d] + 1;
  const int64_t stop = end < in + p.pad[d] ? end : in + p.pad[d], full = stop - begin;
  if (begin < 0) begin += (-begin + p.dilation[d] - 1) / p.dilation[d] * p.dilation[d];
  return {begin, end < in ? end : in, p.dilation[d], full};
}

// What the sum of a window is divided by.
TT_INLINE int64_t divisor(const PoolPlan& p, const Window& h, const Window& w) {
  if (p.divisor) return p.divisor;
  return p.count_pad ? h.full * w.full : h.count() * w.count();
}

// All windows are 2 x 2, side by side, without padding; `native`: no conversion is needed.
TT_INLINE bool quarters(const PoolPlan& p, bool native) {
  bool all = !p.adaptive && native;
  for (int d = 0; d < 2; d++)
    all &= p.kernel[d] == 2 && p.stride[d] == 2 && !p.pad[d] && p.dilation[d] == 1 && 2 * p.out[d] <= p.in[d];
  return all;
}

// The even (0) or odd (1) ones of the 2 N elements of a and b.
template <int kOdd, class T, int N>
TT_INLINE typename Halves<T, N>::Whole every_second(typename Halves<T, N>::Whole a, typename Halves<T, N>::Whole b) {
  constexpr int o = kOdd;
  if constexpr (N == 16)
    return __builtin_shufflevector(a, b, o, o + 2, o + 4, o + 6, o + 8, o + 10, o + 12, o + 14, o + 16, o + 18, o + 20,
                                   o + 22, o + 24, o + 26, o + 28, o + 30);
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
