// The sums of a block's tile of products, for operands that come through shared memory.
#pragma once

#include "kernels/cuda/device.h"

namespace TT_NS {
namespace {

// Sets sum[i][j] to the products of row `row * kRows + i` of a and column `column * kCols + j` of
// b, over `depth` terms. a and b: two buffers of kK terms each; load(k) reads the terms from k on
// into registers while those before are multiplied, store(buffer) writes them.
template <int kK, class T, int kRows, int kCols, class ATerm, class BTerm, class Load, class Store>
__device__ __forceinline__ void add_products(T (&sum)[kRows][kCols], const ATerm* a, const BTerm* b,
                                             int row, int column, int64_t depth, const Load& load,
                                             const Store& store) {
#pragma unroll
  for (int i = 0; i < kRows; i++) {
#pragma unroll
    for (int j = 0; j < kCols; j++) sum[i][j] = T{};
  }
  int buffer = 0;
  if (depth > 0) {
    load(0);
    store(0);
  }
  for (int64_t k = 0; k < depth; k += kK) {
    __syncthreads();
    const bool more = k + kK < depth;
    if (more) load(k + kK);
#pragma unroll
    for (int q = 0; q < kK; q++) {
      T u[kRows], v[kCols];
#pragma unroll
      for (int i = 0; i < kRows; i++) u[i] = a[buffer * kK + q][row * kRows + i];
#pragma unroll
      for (int j = 0; j < kCols; j++) v[j] = b[buffer * kK + q][column * kCols + j];
#pragma unroll
      for (int i = 0; i < kRows; i++) {
#pragma unroll
        for (int j = 0; j < kCols; j++) sum[i][j] = multiply_add(u[i], v[j], sum[i][j]);
      }
    }
    buffer ^= 1;
    if (more) store(buffer);
  }
}

}  // namespace
}  // namespace TT_NS
