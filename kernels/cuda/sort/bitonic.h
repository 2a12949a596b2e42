// Sort of few pairs by one block in shared memory: Batcher's bitonic network, "Sorting networks and
// their applications", AFIPS 1968. No two pairs are equal, so that the result is unique.
#pragma once

#include "kernels/cuda/device.h"
#include "kernels/functors/target.h"

namespace TT_NS {
namespace {

constexpr int kBitonicMost = 1024;

// Sorts n pairs, a power of 2, by key, then by `at`. All threads of the block take part; the pairs
// are there after a barrier, and may be read when it returns.
__device__ __forceinline__ void bitonic_sort(uint64_t* key, int32_t* at, int n) {
  for (int length = 2; length <= n; length *= 2) {
    for (int apart = length / 2; apart > 0; apart /= 2) {
      for (int t = int(threadIdx.x); t < n / 2; t += int(blockDim.x)) {
        const int low = t / apart * apart * 2 + t % apart;
        const int high = low + apart;
        const bool ascends = (low & length) == 0;
        const bool greater = key[low] > key[high] || (key[low] == key[high] && at[low] > at[high]);
        if (greater != ascends) continue;
        const uint64_t k = key[low];
        key[low] = key[high];
        key[high] = k;
        const int32_t i = at[low];
        at[low] = at[high];
        at[high] = i;
      }
      __syncthreads();
    }
  }
}

inline int next_power(int64_t n) {
  int p = 1;
  while (p < n) p *= 2;
  return p;
}

}  // namespace
}  // namespace TT_NS
