// Products of f16 and bf16 by tensor cores, mma.sync.m16n8k16, summed in f32.
//
//   block   kM x kN results of one matrix and one piece of k; warps of kWarpM x kWarpN results
//   step    kMmaK positions of k: a's part [kM][kMmaK] and b's [kN][kMmaK], rows kMmaPitch apart,
//           so that the 32 words of a fragment are in 32 banks. Double-buffered, as in simt.h.
#pragma once

#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/warp.h"

namespace TT_NS {
namespace {

constexpr int kMmaK = 32;
constexpr int kMmaPitch = kMmaK + 8;
constexpr int kPack = 8;  // halves in 16 bytes

template <class S_, int kM_, int kN_, int kWarpM_, int kWarpN_> struct MmaShape {
  using S = S_;
  static constexpr int kM = kM_, kN = kN_, kWarpM = kWarpM_, kWarpN = kWarpN_;
  static constexpr int kColumns = kN / kWarpN;  // of warps
  static constexpr int kThreads = kM / kWarpM * kColumns * kWarp;
};

// kWidth rows of a (or columns of b) by kMmaK positions, in packs of 8 elements along the dimension
// whose elements are neighbours in memory.
template <int kWidth, int kThreads> struct MmaPart {
  static constexpr int kEach = kWidth * kMmaK / kPack / kThreads;
  uint4 value[kEach];

  static __device__ __forceinline__ void place(bool along_k, int e, int* across, int* k) {
    const int i = e * kThreads + int(threadIdx.x);
    *across = along_k ? i / (kMmaK / kPack) : i % (kWidth / kPack) * kPack;
    *k = along_k ? i % (kMmaK / kPack) * kPack : i / (kWidth / kPack);
  }
  __device__ __forceinline__ void load(const uint16_t* p, int64_t step, int64_t k_step,
                                       int64_t left, int64_t k_left, bool along_k, bool packs) {
#pragma unroll
    for (int e = 0; e < kEach; e++) {
      int across, k;
      place(along_k, e, &across, &k);
      const uint16_t* at = p + across * step + k * k_step;
      const bool whole =
          along_k ? across < left && k + kPack <= k_left : across + kPack <= left && k < k_left;
      if (packs && whole) {
        value[e] = *reinterpret_cast<const uint4*>(at);
        continue;
      }
      const int64_t next = along_k ? k_step : step;
      int64_t present = along_k ? k_left - k : left - across;
      if (along_k ? across >= left : k >= k_left) present = 0;
      uint16_t item[kPack];
#pragma unroll
      for (int i = 0; i < kPack; i++) item[i] = i < present ? at[i * next] : uint16_t(0);
      __builtin_memcpy(&value[e], item, sizeof item);
    }
  }
  __device__ __forceinline__ void store(uint16_t (*shared)[kMmaPitch], bool along_k) const {
#pragma unroll
    for (int e = 0; e < kEach; e++) {
      int across, k;
      place(along_k, e, &across, &k);
      if (along_k) {
        *reinterpret_cast<uint4*>(&shared[across][k]) = value[e];
        continue;
      }
      uint16_t item[kPack];
      __builtin_memcpy(item, &value[e], sizeof item);
#pragma unroll
      for (int i = 0; i < kPack; i++) shared[across + i][k] = item[i];
    }
  }
};

template <class S>
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (__is_same(S, F16)) device::mma_f16(d, a, b);
  else device::mma_bf16(d, a, b);
}
__device__ __forceinline__ uint32_t word_at(const uint16_t* p) {
  return *reinterpret_cast<const uint32_t*>(p);
}

// 16-byte rows of shared memory.
template <int kRows> struct alignas(16) MmaRows { uint16_t row[kRows][kMmaPitch]; };

template <class Shape> __global__ void __launch_bounds__(Shape::kThreads)
    matmul_mma(const __grid_constant__ MatmulArguments p) {
  using S = typename Shape::S;
  constexpr int kM = Shape::kM, kN = Shape::kN;
  constexpr int kTilesM = Shape::kWarpM / 16, kTilesN = Shape::kWarpN / 8;
  using AShared = MmaRows<kM>;
  using BShared = MmaRows<kN>;
  TT_SHARED(AShared, a_tile, 2);
  TT_SHARED(BShared, b_tile, 2);

  const MatmulTile tile = tile_of(p, blockIdx.x);
  const MatmulMatrix x = matrix_of(p, tile.matrix);
  const int64_t i0 = tile.i * kM;
  const int64_t j0 = tile.j * kN;
  const int64_t k0 = tile.split * p.split_len;
  const int64_t depth = least(p.k - k0, p.split_len);
  const uint16_t* a = reinterpret_cast<const uint16_t*>(x.a) + i0 * p.a_row + k0 * p.a_col;
  const uint16_t* b = reinterpret_cast<const uint16_t*>(x.b) + j0 * p.b_col + k0 * p.b_row;
  const bool a_along = p.a_col == 1;
  const bool b_along = p.b_row == 1;
  const int warp = int(threadIdx.x) / kWarp;
  const int group = int(threadIdx.x) % kWarp / 4;
  const int pair = int(threadIdx.x) % 4;
  const int row = warp / Shape::kColumns * Shape::kWarpM + group;
  const int column = warp % Shape::kColumns * Shape::kWarpN;

  float sum[kTilesM][kTilesN][4];
#pragma unroll
  for (int i = 0; i < kTilesM; i++) {
#pragma unroll
    for (int j = 0; j < kTilesN; j++) {
#pragma unroll
      for (int r = 0; r < 4; r++) sum[i][j][r] = 0;
    }
  }
  MmaPart<kM, Shape::kThreads> a_part;
  MmaPart<kN, Shape::kThreads> b_part;
  const auto load = [&](int64_t k) {
    a_part.load(a + k * p.a_col, p.a_row, p.a_col, p.m - i0, depth - k, a_along, p.a_packs);
    b_part.load(b + k * p.b_row, p.b_col, p.b_row, p.n - j0, depth - k, b_along, p.b_packs);
  };
  const auto store = [&](int buffer) {
    a_part.store(a_tile[buffer].row, a_along);
    b_part.store(b_tile[buffer].row, b_along);
  };
  int buffer = 0;
  if (depth > 0) {
    load(0);
    store(0);
  }
  for (int64_t k = 0; k < depth; k += kMmaK) {
    __syncthreads();
    const bool more = k + kMmaK < depth;
    if (more) load(k + kMmaK);
#pragma unroll
    for (int q = 0; q < kMmaK; q += 16) {
      uint32_t u[kTilesM][4], v[kTilesN][2];
#pragma unroll
      for (int i = 0; i < kTilesM; i++) {
#pragma unroll
        for (int r = 0; r < 4; r++)
          u[i][r] =
              word_at(&a_tile[buffer].row[row + i * 16 + 8 * (r & 1)][q + 2 * pair + 8 * (r >> 1)]);
      }
#pragma unroll
      for (int j = 0; j < kTilesN; j++) {
#pragma unroll
        for (int r = 0; r < 2; r++)
          v[j][r] = word_at(&b_tile[buffer].row[column + j * 8 + group][q + 2 * pair + 8 * r]);
      }
#pragma unroll
      for (int i = 0; i < kTilesM; i++) {
#pragma unroll
        for (int j = 0; j < kTilesN; j++) mma<S>(sum[i][j], u[i], v[j]);
      }
    }
    buffer ^= 1;
    if (more) store(buffer);
  }
#pragma unroll
  for (int i = 0; i < kTilesM; i++) {
#pragma unroll
    for (int j = 0; j < kTilesN; j++) {
#pragma unroll
      for (int r = 0; r < 4; r++) {
        const int64_t at_i = i0 + row + i * 16 + 8 * (r >> 1);
        const int64_t at_j = j0 + column + j * 8 + 2 * pair + (r & 1);
        if (at_i < p.m && at_j < p.n)
          put_sum<S>(p, x, tile.matrix, tile.split, at_i, at_j, sum[i][j][r]);
      }
    }
  }
}

}  // namespace
}  // namespace TT_NS
