// Stable sort of (key, position) pairs in device memory by radix, least significant digit first:
// each pass counts the digits of each piece, scans the counts, and moves the pairs in order.
//
//   counts   [digits][pieces], then where the first pair of (digit, piece) goes
//   piece    kRadixPiece pairs, one block: a warp after the other places 32 neighbours by votes, so
//            that equal digits keep their order
#pragma once

#include "kernels/cuda/nest.h"
#include "kernels/cuda/warp.h"

namespace TT_NS {
namespace {

constexpr int kRadixBits = 4;
constexpr int kDigits = 1 << kRadixBits;
constexpr int kRadixThreads = 256;
constexpr int kRadixEach = 8;  // pairs of a thread
constexpr int64_t kRadixPiece = kRadixThreads * kRadixEach;

struct RadixPair {
  uint64_t key;
  int64_t at;
};

struct RadixArguments {
  const RadixPair* from;
  RadixPair* to;
  int64_t* counts;
  int64_t n, pieces;
  int32_t shift;
  int64_t row_length;  // not 0: digits are those of at / row_length, not of the key
};

__device__ __forceinline__ int digit_of(const RadixArguments& p, const RadixPair& pair) {
  const uint64_t number = p.row_length ? uint64_t(quotient(pair.at, p.row_length)) : pair.key;
  return int(number >> p.shift) & (kDigits - 1);
}

// The lanes of the warp, among those that take part, whose digit is this lane's.
__device__ __forceinline__ uint32_t lanes_of_digit(int digit, bool present) {
  uint32_t same = __ballot_sync(kAllLanes, present);
#pragma unroll
  for (int bit = 0; bit < kRadixBits; bit++) {
    const bool set = digit >> bit & 1;
    const uint32_t votes = __ballot_sync(kAllLanes, set);
    same &= set ? votes : ~votes;
  }
  return same;
}

// Pairs of one piece by digit: shared counts of each warp, [warp][digit].
__global__ void __launch_bounds__(kRadixThreads) radix_count(const RadixArguments p) {
  TT_SHARED(int, counts, kRadixThreads / kWarp * kDigits);
  const int thread = int(threadIdx.x);
  const int warp = thread / kWarp;
  if (thread < kRadixThreads / kWarp * kDigits) counts[thread] = 0;
  __syncthreads();
  for (int e = 0; e < kRadixEach; e++) {
    const int64_t i = int64_t(blockIdx.x) * kRadixPiece + e * kRadixThreads + thread;
    const bool present = i < p.n;
    const int digit = present ? digit_of(p, p.from[i]) : 0;
    const uint32_t same = lanes_of_digit(digit, present);
    if (present && __ffs(int(same)) - 1 == thread % kWarp)
      counts[warp * kDigits + digit] += __popc(same);
    __syncwarp();
  }
  __syncthreads();
  if (thread >= kDigits) return;
  int64_t sum = 0;
  for (int w = 0; w < kRadixThreads / kWarp; w++) sum += counts[w * kDigits + thread];
  p.counts[thread * p.pieces + blockIdx.x] = sum;
}

// Turns n numbers into the sums of those before them, and their sum into *total: one block.
constexpr int kScanThreads = 1024;
__global__ void __launch_bounds__(kScanThreads)
    scan_counts(int64_t* counts, int64_t n, int64_t* total) {
  TT_SHARED(int64_t, warps, kScanThreads / kWarp);
  const int lane = int(threadIdx.x) % kWarp;
  const int warp = int(threadIdx.x) / kWarp;
  const int n_warps = int(blockDim.x) / kWarp;
  int64_t before = 0;
  for (int64_t from = 0; from < n; from += blockDim.x) {
    const int64_t i = from + threadIdx.x;
    const int64_t value = i < n ? counts[i] : 0;
    int64_t sum = value;
#pragma unroll
    for (unsigned delta = 1; delta < kWarp; delta *= 2) {
      const int64_t below = __shfl_up_sync(kAllLanes, sum, delta);
      if (lane >= int(delta)) sum += below;
    }
    if (lane == kWarp - 1) warps[warp] = sum;
    __syncthreads();
    int64_t all = 0;
    for (int w = 0; w < n_warps; w++) {
      if (w < warp) sum += warps[w];
      all += warps[w];
    }
    if (i < n) counts[i] = before + sum - value;
    before += all;
    __syncthreads();
  }
  if (total && threadIdx.x == 0) *total = before;
}

__global__ void __launch_bounds__(kRadixThreads) radix_move(const RadixArguments p) {
  TT_SHARED(int64_t, place, kDigits);
  TT_SHARED(int, counts, kRadixThreads / kWarp * kDigits);
  const int thread = int(threadIdx.x);
  const int warp = thread / kWarp;
  const int lane = thread % kWarp;
  if (thread < kDigits) place[thread] = p.counts[thread * p.pieces + blockIdx.x];
  for (int e = 0; e < kRadixEach; e++) {
    const int64_t i = int64_t(blockIdx.x) * kRadixPiece + e * kRadixThreads + thread;
    const bool present = i < p.n;
    RadixPair pair = {0, 0};
    if (present) pair = p.from[i];
    const int digit = present ? digit_of(p, pair) : 0;
    const uint32_t same = lanes_of_digit(digit, present);
    if (lane < kDigits) counts[warp * kDigits + lane] = 0;
    __syncwarp();
    if (present && __ffs(int(same)) - 1 == lane) counts[warp * kDigits + digit] = __popc(same);
    __syncthreads();
    if (present) {
      int64_t at = place[digit] + __popc(same & ((1u << lane) - 1));
      for (int w = 0; w < warp; w++) at += counts[w * kDigits + digit];
      p.to[at] = pair;
    }
    __syncthreads();
    if (thread < kDigits) {
      int sum = 0;
      for (int w = 0; w < kRadixThreads / kWarp; w++) sum += counts[w * kDigits + thread];
      place[thread] += sum;
    }
    __syncthreads();
  }
}

// ---- on the host ----

inline int64_t radix_pieces(int64_t n) { return ceil_div(n, kRadixPiece); }
// Bytes of the pairs of one array, and of the counts.
inline int64_t radix_pairs_bytes(int64_t n) {
  return round_up(n * int64_t(sizeof(RadixPair)), 256);
}
inline int64_t radix_counts_bytes(int64_t n) {
  return round_up(radix_pieces(n) * kDigits * 8, 256);
}

// Sorts n pairs by the lowest `bits` bits of their keys, or with row_length of at / row_length; the
// result is in *pairs, which may become what *other was.
inline int32_t radix_sort(RadixPair** pairs, RadixPair** other, int64_t* counts, int64_t n,
                          int bits, int64_t row_length, void* stream) {
  for (int shift = 0; shift < bits; shift += kRadixBits) {
    const RadixArguments p = {*pairs, *other, counts, n, radix_pieces(n), shift, row_length};
    const unsigned grid = unsigned(p.pieces);
    int32_t status = device::launch(radix_count, grid, kRadixThreads, 0, stream, p);
    const int64_t numbers = p.pieces * kDigits;
    const unsigned threads = unsigned(min<int64_t>(round_up(numbers, kWarp), kScanThreads));
    if (status == TT_OK)
      status = device::launch(scan_counts, 1, threads, 0, stream, counts, numbers, nullptr);
    if (status == TT_OK) status = device::launch(radix_move, grid, kRadixThreads, 0, stream, p);
    if (status != TT_OK) return status;
    RadixPair* const sorted = *other;
    *other = *pairs;
    *pairs = sorted;
  }
  return TT_OK;
}

// Bits that hold numbers up to `most`.
inline int bits_of(uint64_t most) {
  int bits = 0;
  while (bits < 64 && most >> bits) bits++;
  return bits;
}

}  // namespace
}  // namespace TT_NS
