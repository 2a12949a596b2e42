// Rows that registers hold, one of each team of threads.
//
//   warps    short rows: a warp for each row, kTeamRows of them in a block
//   blocks   all threads of the block
//
// Thread t has the packs t and t + blockDim.x of its row.
#pragma once

#include "kernels/cuda/row.h"

namespace TT_NS {
namespace {

constexpr int kTeamPacks = 2;      // of each thread, at most
constexpr int kTeamThreads = 512;  // of a block, at most
constexpr int kTeamRows = 8;
// Blocks of a multiprocessor, at least, where memory is what they wait for.
template <class S> constexpr int kTeamBlocks = sizeof(S) == 8 ? 2 : 3;
constexpr int kTeamSlots = 2 * kTeamThreads / kWarp;

template <class S> struct TeamRow {
  static constexpr int kN = kPackOf<S>;
  Pack<S, kN> pack[kTeamPacks];

  // packs: of a row.
  __device__ __forceinline__ void load(const char* rows, int64_t row, int packs) {
    const Pack<S, kN>* const from = reinterpret_cast<const Pack<S, kN>*>(rows) + row * packs;
#pragma unroll
    for (int u = 0; u < kTeamPacks; u++) {
      const int i = int(threadIdx.x + u * blockDim.x);
      if (i < packs) pack[u] = from[i];
    }
  }
  __device__ __forceinline__ Compute<S> number(int u, int j) const {
    return number_of(pack[u].v[j]);
  }
};

// Calls f(u, i) for the packs of this thread, pack u being number i of the row.
template <class F> __device__ __forceinline__ void team_packs(int packs, const F& f) {
#pragma unroll
  for (int u = 0; u < kTeamPacks; u++) {
    const int i = int(threadIdx.x + u * blockDim.x);
    if (i < packs) f(u, i);
  }
}

// The sum of the values of a team, in all its threads. slots: kTeamSlots; calls use halves of them
// by turns, 0 and 1.
template <class P> __device__ __forceinline__ P team_total(P value, P* slots, int turn) {
  const auto plus = [](const P& a, const P& b) { return a + b; };
  value = combine_warp(value, plus);
  const int warps = int(blockDim.x) / kWarp;
  if (warps > 1) {
    P* const half = slots + turn * (kTeamSlots / 2);
    const int lane = int(threadIdx.x) % kWarp;
    if (lane == 0) half[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = lane < warps ? half[lane] : P{};
    value = combine_warp(value, plus);
  }
  return shuffle_from(value, 0);
}

// ---- on the host ----

struct TeamLaunch {
  int packs;  // of a row, 0 where registers do not hold it
  dim3 block;
  int64_t units;  // blocks that have a row for each team
};

// aligned: all rows begin at multiples of 16 bytes.
inline TeamLaunch team_launch(int64_t rows, int64_t n, int64_t item, bool aligned) {
  TeamLaunch l = {};
  const int64_t packs = n * item / 16;
  if (!aligned || n * item % 16 != 0 || packs > kTeamPacks * kTeamThreads) return l;
  l.packs = int(packs);
  const int64_t threads = round_up(ceil_div(packs, int64_t(kTeamPacks)), int64_t(kWarp));
  const int64_t teams = threads == kWarp ? kTeamRows : 1;
  l.block = dim3(unsigned(threads), unsigned(teams));
  l.units = ceil_div(rows, teams);
  return l;
}

}  // namespace
}  // namespace TT_NS
