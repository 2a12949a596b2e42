// Rows that registers hold, one of each team of threads.
//
//   warps    short rows: a warp for each row, kTeamRows of them in a block
//   blocks   all threads of the block
//
// Thread t has the packs t and t + blockDim.x of its row.
#pragma once

#include "kernels/cuda/matmul/async.h"
#include "kernels/cuda/row.h"

namespace TT_NS {
namespace {

constexpr int kTeamPacks = 2;      // of each thread, at most
constexpr int kTeamThreads = 512;  // of a block, at most
constexpr int kTeamRows = 8;
// Blocks of a multiprocessor, at least, where memory is what they wait for.
template <class S> constexpr int kTeamBlocks = sizeof(S) == 8 ? 2 : 3;
constexpr int kTeamStages = 3;  // of rows that arrive; 2 where shared memory has room for no more
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

// The rows of a team in kArrays arrays, which arrive in shared memory, stages - 1 of them ahead of
// the row that is computed. Threads read what they have copied themselves, without barriers.
//   shared: [team][stage][array][pack of the row]
template <class S, int kArrays> struct ArrivingRows {
  static constexpr int kN = kPackOf<S>;
  Pack<S, kN>* const mine;  // pack 0 of this thread in array 0 of stage 0
  const int packs, stages;
  int filled = 0;  // the stage that is filled next
  int read = 0;    // the stage that is read next

  __device__ __forceinline__ ArrivingRows(char* shared, int packs, int stages)
      : mine(reinterpret_cast<Pack<S, kN>*>(shared) + int(threadIdx.y) * stages * kArrays * packs +
             threadIdx.x),
        packs(packs),
        stages(stages) {}
  __device__ __forceinline__ Pack<S, kN>* place(int stage, int array) const {
    return mine + (stage * kArrays + array) * packs;
  }
  __device__ __forceinline__ int after(int stage) const {
    return stage + 1 < stages ? stage + 1 : 0;
  }
  // Begins to copy a row, or nothing if there is no such row. It gets the place of the row that was
  // taken before, which is computed by now.
  __device__ __forceinline__ void fetch(const char* const (&rows)[kArrays], int64_t row,
                                        bool exists) {
    if (exists) {
#pragma unroll
      for (int k = 0; k < kArrays; k++) {
        const Pack<S, kN>* const from = reinterpret_cast<const Pack<S, kN>*>(rows[k]) + row * packs;
        Pack<S, kN>* const to = place(filled, k);
        team_packs(packs, [&](int u, int i) {
          device::copy_async(to + u * int(blockDim.x), from + i, true);
        });
      }
    }
    device::commit_copies();
    filled = after(filled);
  }
  // Waits for the row that was fetched stages - 1 calls ago.
  __device__ __forceinline__ void take(TeamRow<S> (&rows)[kArrays]) {
    if (stages == kTeamStages) device::wait_for_copies<kTeamStages - 1>();
    else device::wait_for_copies<1>();
#pragma unroll
    for (int k = 0; k < kArrays; k++) {
      const Pack<S, kN>* const from = place(read, k);
      team_packs(packs, [&](int u, int) { rows[k].pack[u] = from[u * int(blockDim.x)]; });
    }
    read = after(read);
  }
};

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

struct TeamStages {
  int stages;
  size_t shared_bytes;
};
// For rows that are read from `arrays` arrays. There is always room for two stages.
inline TeamStages team_stages(const TeamLaunch& l, int arrays) {
  const size_t bytes = size_t(l.packs) * 16 * size_t(arrays) * l.block.y;
  const int stages = bytes * kTeamStages <= device::kAskedShared ? kTeamStages : 2;
  return {stages, bytes * size_t(stages)};
}

}  // namespace
}  // namespace TT_NS
