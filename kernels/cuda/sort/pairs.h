// Sorts (key, position) pairs in a workspace, stably: few by one block, others by radix.
#pragma once

#include "kernels/cuda/sort/bitonic.h"
#include "kernels/cuda/sort/radix.h"

namespace TT_NS {
namespace {

constexpr int kPairThreads = 256;

// n pairs, padded to a power of 2; their positions are 0 … n - 1 in order.
__global__ void __launch_bounds__(kPairThreads) sort_block(RadixPair* pairs, int n, int padded) {
  TT_SHARED(uint64_t, key, kBitonicMost);
  TT_SHARED(int32_t, at, kBitonicMost);
  for (int i = int(threadIdx.x); i < padded; i += int(blockDim.x)) {
    key[i] = i < n ? pairs[i].key : ~uint64_t(0);
    at[i] = i;
  }
  __syncthreads();
  bitonic_sort(key, at, padded);
  for (int i = int(threadIdx.x); i < n; i += int(blockDim.x)) pairs[i] = {key[i], at[i]};
}

// Room for n pairs, a second array of them and counts.
struct PairRoom {
  RadixPair *pairs, *other;
  int64_t* counts;

  static int64_t bytes(int64_t n) {
    if (n <= kBitonicMost) return radix_pairs_bytes(n);
    return 2 * radix_pairs_bytes(n) + radix_counts_bytes(n);
  }
  PairRoom(char* workspace, int64_t n)
      : pairs(reinterpret_cast<RadixPair*>(workspace)),
        other(reinterpret_cast<RadixPair*>(workspace + radix_pairs_bytes(n))),
        counts(reinterpret_cast<int64_t*>(workspace + 2 * radix_pairs_bytes(n))) {}

  // By the lowest `bits` bits of the keys, which have no others. The result is in `pairs`.
  int32_t sort(int64_t n, int bits, void* stream) {
    if (n > kBitonicMost) return radix_sort(&pairs, &other, counts, n, bits, 0, stream);
    const int padded = next_power(n);
    const unsigned threads = unsigned(min(max(padded / 2, int(kWarp)), kPairThreads));
    return device::launch(sort_block, 1, threads, 0, stream, pairs, int(n), padded);
  }
};

}  // namespace
}  // namespace TT_NS
