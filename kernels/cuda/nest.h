// Nests of dimensions with a stride for each operand: a launch covers kNestDims dimensions, the
// host loops over the others (for_outer).
#pragma once

#include "base/arith.h"
#include "kernels/cuda/device.h"
#include "kernels/functors/target.h"

namespace TT_NS {
namespace {

constexpr int kNestDims = 8;

// Division of 64 bits takes tens of instructions; few tensors need it.
TT_FN int64_t quotient(int64_t i, int64_t by) {
  if (uint64_t(i | by) >> 32 == 0) return int64_t(uint32_t(i) / uint32_t(by));
  return i / by;
}

template <int kOperands> struct Nest {
  int32_t ndim;
  int64_t n;                // positions
  int64_t size[kNestDims];  // dimension 0 is the innermost
  int64_t stride[kOperands][kNestDims];

  void clear() {
    ndim = 0;
    n = 1;
  }
  // Returns whether there was room for the dimension.
  bool add(int64_t length, const int64_t (&strides)[kOperands]) {
    if (length == 1) return true;
    if (ndim == kNestDims) return false;
    size[ndim] = length;
    for (int k = 0; k < kOperands; k++) stride[k][ndim] = strides[k];
    ndim++;
    n *= length;
    return true;
  }
  __device__ __forceinline__ void find(int64_t i, int64_t (&offset)[kOperands]) const {
#pragma unroll
    for (int k = 0; k < kOperands; k++) offset[k] = 0;
    for (int d = 0; d < ndim; d++) {
      const int64_t rest = d + 1 < ndim ? quotient(i, size[d]) : 0;
      const int64_t at = i - rest * size[d];
#pragma unroll
      for (int k = 0; k < kOperands; k++) offset[k] += at * stride[k][d];
      i = rest;
    }
  }
};

constexpr int64_t kMostBlocks = int64_t(1) << 30;
// A grid of blocks of `threads`, each thread with one item; kernels loop where items are more.
inline unsigned grid_of(int64_t items, int64_t threads) {
  return unsigned(min(ceil_div(max<int64_t>(items, 1), threads), kMostBlocks));
}
// A block of up to 256 threads: x of them along `inner` positions, y for neighbours of others.
inline dim3 block_of(int64_t inner) {
  constexpr int64_t kMost = 256;
  const int64_t rounds = ceil_div(max<int64_t>(inner, 1), kMost);
  int64_t x = round_up(ceil_div(inner, rounds), 32);
  if (inner < 32)
    for (x = 1; x < inner;) x *= 2;
  return dim3(unsigned(x), unsigned(kMost / x));
}
__device__ __forceinline__ int64_t first_item() {
  return int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t item_step() { return int64_t(gridDim.x) * blockDim.x; }

}  // namespace
}  // namespace TT_NS
