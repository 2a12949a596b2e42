// Products of any dtype and stride without tensor cores: tiles through shared memory.
//
//   block   kM x kN results of one matrix and one piece of k; kThreadM x kThreadN a thread
//   step    kK positions of k: a's part [kK][kM] and b's [kK][kN] are loaded into registers while
//           those of the step before are multiplied, then stored in the other of two buffers
#pragma once

#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/matmul/tile_sums.h"

namespace TT_NS {
namespace {

template <class S_, int kM_, int kN_, int kK_, int kThreadM_, int kThreadN_> struct SimtShape {
  using S = S_;
  static constexpr int kM = kM_, kN = kN_, kK = kK_, kThreadM = kThreadM_, kThreadN = kThreadN_;
  static constexpr int kColumns = kN / kThreadN;  // of threads
  static constexpr int kThreads = kM / kThreadM * kColumns;
};

// kWidth rows of a (or columns of b) by kK positions, [kK][kWidth] in shared memory. Threads run
// along the dimension whose elements are neighbours in memory.
template <class S, int kWidth, int kK, int kThreads> struct SimtPart {
  using T = typename SumOf<S>::type;
  static constexpr int kEach = kWidth * kK / kThreads;
  T value[kEach];

  static __device__ __forceinline__ void place(bool along_k, int e, int* across, int* k) {
    const int i = e * kThreads + int(threadIdx.x);
    *across = along_k ? i / kK : i % kWidth;
    *k = along_k ? i % kK : i / kWidth;
  }
  __device__ __forceinline__ void load(const S* p, int64_t step, int64_t k_step, int64_t left,
                                       int64_t k_left, bool along_k) {
#pragma unroll
    for (int e = 0; e < kEach; e++) {
      int across, k;
      place(along_k, e, &across, &k);
      const bool inside = across < left && k < k_left;
      value[e] = inside ? widened(p[across * step + k * k_step]) : T{};
    }
  }
  __device__ __forceinline__ void store(T (*shared)[kWidth], bool along_k) const {
#pragma unroll
    for (int e = 0; e < kEach; e++) {
      int across, k;
      place(along_k, e, &across, &k);
      shared[k][across] = value[e];
    }
  }
};

template <class Shape> __global__ void __launch_bounds__(Shape::kThreads)
    matmul_simt(const __grid_constant__ MatmulArguments p) {
  using S = typename Shape::S;
  using T = typename SumOf<S>::type;
  constexpr int kM = Shape::kM, kN = Shape::kN, kK = Shape::kK;
  constexpr int kRows = Shape::kThreadM, kCols = Shape::kThreadN;
  using APart = SimtPart<S, kM, kK, Shape::kThreads>;
  using BPart = SimtPart<S, kN, kK, Shape::kThreads>;
  using ARow = T[kM];
  using BRow = T[kN];
  TT_SHARED(ARow, a_tile, 2 * kK);
  TT_SHARED(BRow, b_tile, 2 * kK);

  const MatmulTile tile = tile_of(p, blockIdx.x);
  const MatmulMatrix x = matrix_of(p, tile.matrix);
  const int64_t i0 = tile.i * kM;
  const int64_t j0 = tile.j * kN;
  const int64_t k0 = tile.split * p.split_len;
  const int64_t depth = least(p.k - k0, p.split_len);
  const S* a = reinterpret_cast<const S*>(x.a) + i0 * p.a_row + k0 * p.a_col;
  const S* b = reinterpret_cast<const S*>(x.b) + j0 * p.b_col + k0 * p.b_row;
  const bool a_along = p.a_row != 1;
  const bool b_along = p.b_col != 1;
  const int row = int(threadIdx.x) / Shape::kColumns;
  const int column = int(threadIdx.x) % Shape::kColumns;

  APart a_part;
  BPart b_part;
  const auto load = [&](int64_t k) {
    a_part.load(a + k * p.a_col, p.a_row, p.a_col, p.m - i0, depth - k, a_along);
    b_part.load(b + k * p.b_row, p.b_col, p.b_row, p.n - j0, depth - k, b_along);
  };
  const auto store = [&](int buffer) {
    a_part.store(&a_tile[buffer * kK], a_along);
    b_part.store(&b_tile[buffer * kK], b_along);
  };
  T sum[kRows][kCols];
  add_products<kK>(sum, a_tile, b_tile, row, column, depth, load, store);
#pragma unroll
  for (int i = 0; i < kRows; i++) {
#pragma unroll
    for (int j = 0; j < kCols; j++) {
      const int64_t at_i = i0 + row * kRows + i;
      const int64_t at_j = j0 + column * kCols + j;
      if (at_i < p.m && at_j < p.n)
        put_sum<S>(p, x, tile.matrix, tile.split, at_i, at_j, sum[i][j]);
    }
  }
}

}  // namespace
}  // namespace TT_NS
