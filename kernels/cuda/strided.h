// Walk of a kernel over the elements of strided operands: from the number of an element to its
// place in each operand. At most kMaxWalkDims dimensions; plans of more are copied first.
#pragma once

#include "kernels/cuda/device.h"
#include "kernels/functors/target.h"
#include "plan/elementwise_plan.h"

namespace TT_NS {
namespace {

constexpr int kMaxWalkDims = 8;

// Division of n < 2^31 by a fixed d >= 1: q = (high half of n m + n) >> s. Granlund & Montgomery,
// "Division by invariant integers using multiplication", PLDI 1994.
struct Divisor {
  uint32_t d, m, s;
  void set(uint32_t divisor) {
    d = divisor;
    s = 0;
    while ((uint64_t(1) << s) < d) s++;
    m = uint32_t(((uint64_t(1) << 32) * ((uint64_t(1) << s) - d)) / d + 1);
  }
  __device__ __forceinline__ uint32_t divide(uint32_t n) const { return (__umulhi(n, m) + n) >> s; }
};

// kOperands places of element i; strides in bytes. wide: sizes or numbers exceed 31 bits.
template <int kOperands> struct Walk {
  int32_t ndim;
  bool wide;
  Divisor divisor[kMaxWalkDims];
  int64_t size[kMaxWalkDims];
  int64_t stride[kOperands][kMaxWalkDims];

  // Dimension 0 is the innermost; unit: elements that are one step of it (vectors).
  void set(const ElementPlan& p, int64_t unit) {
    ndim = p.ndim;
    wide = p.n >= int64_t(1) << 31;
    for (int d = 0; d < ndim; d++) {
      const int64_t step = d == 0 ? unit : 1;
      size[d] = ceil_div(p.size[d], step);  // the last group of a single dimension may be short
      if (!wide) divisor[d].set(uint32_t(size[d]));
      for (int k = 0; k < kOperands; k++) stride[k][d] = p.stride[k][d] * step;
    }
  }
  __device__ __forceinline__ void find(int64_t i, int64_t (&offset)[kOperands]) const {
#pragma unroll
    for (int k = 0; k < kOperands; k++) offset[k] = 0;
#pragma unroll
    for (int d = 0; d < kMaxWalkDims; d++) {
      if (d == ndim) break;
      int64_t rest, index;
      if (d + 1 == ndim) {
        rest = 0;
        index = i;
      } else if (wide) {
        rest = i / size[d];
        index = i - rest * size[d];
      } else {
        rest = divisor[d].divide(uint32_t(i));
        index = uint32_t(i) - uint32_t(rest) * divisor[d].d;
      }
#pragma unroll
      for (int k = 0; k < kOperands; k++) offset[k] += index * stride[k][d];
      i = rest;
    }
  }
};

// A grid of blocks of `threads` with `per_thread` items each.
inline unsigned blocks_for(int64_t items, int64_t threads, int64_t per_thread) {
  return unsigned((items + threads * per_thread - 1) / (threads * per_thread));
}

}  // namespace
}  // namespace TT_NS
