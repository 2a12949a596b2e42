// Ranks of the items of a block by a digit of their keys, and a stable sort in shared memory made
// of them. Items of a block are in the order (warp, round, lane): a warp has kEach * 32 neighbours.
//
//   counts   [warps][kDigits]: how many of a digit a warp has seen, then those of the warps before
//   lanes    [warps][kDigits]: the lanes of a digit in this round, by which they find each other
//   start    [kDigits]: how many items of the block have a lower digit
#pragma once

#include "kernels/cuda/warp.h"

namespace TT_NS {
namespace {

constexpr int kRadixBits = 8;
constexpr int kDigits = 1 << kRadixBits;

struct DigitRoom {
  uint16_t *counts, *start;
  uint32_t* lanes;
};
inline int64_t digit_room_bytes(int64_t warps) { return (3 * warps + 1) * kDigits * 2; }

// Where item `round` of this thread is in the block.
template <int kEach> __device__ __forceinline__ int item_place(int round) {
  const int thread = int(threadIdx.x);
  return thread / kWarp * (kEach * kWarp) + round * kWarp + thread % kWarp;
}

// Turns kDigits counts into the sums of those before them: by one warp.
__device__ __forceinline__ void scan_digits(uint16_t* counts, int lane) {
  constexpr int kOfLane = kDigits / kWarp;
  uint32_t count[kOfLane];
  uint32_t own = 0;
#pragma unroll
  for (int j = 0; j < kOfLane; j++) {
    count[j] = counts[lane * kOfLane + j];
    own += count[j];
  }
  uint32_t sum = own;
#pragma unroll
  for (unsigned delta = 1; delta < kWarp; delta *= 2) {
    const uint32_t below = __shfl_up_sync(kAllLanes, sum, delta);
    if (lane >= int(delta)) sum += below;
  }
  sum -= own;
#pragma unroll
  for (int j = 0; j < kOfLane; j++) {
    counts[lane * kOfLane + j] = uint16_t(sum);
    sum += count[j];
  }
}

// The places of the items once the block's are sorted by digit, stably. All threads take part. The
// first barrier comes after all items were read, the last one before `start` is read.
template <int kEach> __device__ __forceinline__ void rank_digits(const DigitRoom& room, int warps,
                                                                 const uint32_t (&digit)[kEach],
                                                                 uint32_t (&rank)[kEach]) {
  const int thread = int(threadIdx.x);
  const int lane = thread % kWarp;
  const int warp = thread / kWarp;
  uint16_t* const mine = room.counts + warp * kDigits;
  uint32_t* const lanes = room.lanes + warp * kDigits;
  for (int d = lane; d < kDigits; d += kWarp) {
    mine[d] = 0;
    lanes[d] = 0;
  }
  __syncwarp();
#pragma unroll
  for (int e = 0; e < kEach; e++) {
    atomicOr(&lanes[digit[e]], 1u << lane);
    __syncwarp();
    const uint32_t same = lanes[digit[e]];
    const uint32_t seen = mine[digit[e]];
    rank[e] = seen + uint32_t(__popc(same & ((1u << lane) - 1)));
    __syncwarp();
    if (__ffs(int(same)) - 1 == lane) {
      mine[digit[e]] = uint16_t(seen + uint32_t(__popc(same)));
      lanes[digit[e]] = 0;
    }
    __syncwarp();
  }
  __syncthreads();
  for (int d = thread; d < kDigits; d += int(blockDim.x)) {
    uint32_t sum = 0;
    for (int w = 0; w < warps; w++) {
      const uint32_t count = room.counts[w * kDigits + d];
      room.counts[w * kDigits + d] = uint16_t(sum);
      sum += count;
    }
    room.start[d] = uint16_t(sum);
  }
  __syncthreads();
  if (warp == 0) scan_digits(room.start, lane);
  __syncthreads();
#pragma unroll
  for (int e = 0; e < kEach; e++) rank[e] += uint32_t(room.start[digit[e]]) + mine[digit[e]];
}

// ---- a sort of at most kBlockMost items by one block ----

constexpr int kBlockEach = 8;  // items of a thread
constexpr int kBlockMost = 8192;

template <class K> struct BlockSort {
  K* key;        // [blockDim.x * kBlockEach], behind the items ~K(0)
  uint16_t* at;  // where a key was
  DigitRoom digits;

  __device__ __forceinline__ explicit BlockSort(unsigned char* room) {
    const int places = int(blockDim.x) * kBlockEach;
    key = reinterpret_cast<K*>(room);
    at = reinterpret_cast<uint16_t*>(key + places);
    digits.start = at + places;
    digits.counts = digits.start + kDigits;
    digits.lanes = reinterpret_cast<uint32_t*>(digits.counts + int(blockDim.x) / kWarp * kDigits);
  }
  // By the lowest `bits` bits, which are all ones behind the items only if no others are. Begins
  // and ends with a barrier.
  __device__ __forceinline__ void sort(int bits) const {
    const int warps = int(blockDim.x) / kWarp;
    __syncthreads();
    for (int shift = 0; shift < bits; shift += kRadixBits) {
      K k[kBlockEach];
      uint16_t from[kBlockEach];
      uint32_t digit[kBlockEach], rank[kBlockEach];
#pragma unroll
      for (int e = 0; e < kBlockEach; e++) {
        const int place = item_place<kBlockEach>(e);
        k[e] = key[place];
        from[e] = shift ? at[place] : uint16_t(place);
        digit[e] = uint32_t(k[e] >> shift) & (kDigits - 1);
      }
      rank_digits<kBlockEach>(digits, warps, digit, rank);
#pragma unroll
      for (int e = 0; e < kBlockEach; e++) {
        key[rank[e]] = k[e];
        at[rank[e]] = from[e];
      }
      __syncthreads();
    }
  }
};
inline unsigned block_sort_threads(int64_t n) {
  return unsigned(round_up(ceil_div(max<int64_t>(n, 1), kBlockEach), kWarp));
}
template <class K> size_t block_sort_bytes(int64_t n) {
  const int64_t threads = block_sort_threads(n);
  return size_t(threads * kBlockEach * int64_t(sizeof(K) + 2) + digit_room_bytes(threads / kWarp));
}
// Whether a block can sort n items; those of 64 bits need more room.
inline bool sorts_in_block(int64_t n, bool wide) {
  if (n > kBlockMost) return false;
  const size_t bytes = wide ? block_sort_bytes<uint64_t>(n) : block_sort_bytes<uint32_t>(n);
  return bytes <= device::kAskedShared;
}

}  // namespace
}  // namespace TT_NS
