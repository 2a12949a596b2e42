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
  // Few plans have more than kUnrolled dimensions, and code for all would be most of a kernel.
  __device__ __forceinline__ void find(int64_t i, int64_t (&offset)[kOperands]) const {
#pragma unroll
    for (int k = 0; k < kOperands; k++) offset[k] = 0;
    if (wide) {
#pragma unroll 1
      for (int d = 0; d < ndim; d++) {
        const int64_t rest = d + 1 == ndim ? 0 : i / size[d];
        add(d, i - rest * size[d], offset);
        i = rest;
      }
      return;
    }
    uint32_t left = uint32_t(i);
#pragma unroll
    for (int d = 0; d < kUnrolled; d++)
      if (d < ndim) left = step(d, left, offset);
#pragma unroll 1
    for (int d = kUnrolled; d < ndim; d++) left = step(d, left, offset);
  }

 private:
  static constexpr int kUnrolled = 3;

  __device__ __forceinline__ void add(int d, int64_t index, int64_t (&offset)[kOperands]) const {
#pragma unroll
    for (int k = 0; k < kOperands; k++) offset[k] += index * stride[k][d];
  }
  // Returns what is left for the dimensions behind d.
  __device__ __forceinline__ uint32_t step(int d, uint32_t i, int64_t (&offset)[kOperands]) const {
    const uint32_t rest = d + 1 == ndim ? 0 : divisor[d].divide(i);
    add(d, i - rest * divisor[d].d, offset);
    return rest;
  }
};

// A grid of blocks of `threads` with `per_thread` items each.
inline unsigned blocks_for(int64_t items, int64_t threads, int64_t per_thread) {
  const uint64_t each = uint64_t(threads * per_thread);  // unsigned: powers of 2 are shifts
  return unsigned((uint64_t(items) + each - 1) / each);
}

}  // namespace
}  // namespace TT_NS
