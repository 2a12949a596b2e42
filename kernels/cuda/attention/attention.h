// What the kernels of attention share: blocks of kSide queries and kSide keys, of which the scores
// are in shared memory, [query][key]; products of blocks. Matrices of queries × keys are never
// stored: Dao et al., "FlashAttention" (NeurIPS 2022) and "FlashAttention-2" (ICLR 2024).
#pragma once

#include <math.h>

#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/math.h"
#include "kernels/cuda/nest.h"
#include "kernels/cuda/warp.h"
#include "kernels/functors/philox.h"
#include "plan/attention_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int kSide = 64;
constexpr int kPitch = kSide + 1;  // of a block of scores
constexpr int kDepth = 32;         // numbers of a row that are multiplied at a time
constexpr int kDepthPitch = kDepth + 1;
constexpr int kKeysAtOnce = 16;  // of a product with a block of scores
constexpr int kColumns = 128;    // of its result; rows that are longer take several blocks
constexpr int kRowsEach = 8;     // of its result per thread, and columns
constexpr int kColumnsEach = 4;

template <class T> constexpr T kMinusInfinity = -kHighest<T>;

// The parts of shared memory; x is also the room of a product's rows.
template <class T> struct AttentionShared {
  T *x, *y;   // [kSide][kDepthPitch]
  T *s, *d;   // [kSide][kPitch]; d: backward only
  T* row[3];  // [kSide]; the third: forward only
  static constexpr int64_t kItems = 2 * kSide * kDepthPitch + 2 * kSide;
  // The backward pass of f64 takes all that a block of sm_86 or sm_89 may have.
  static size_t bytes(bool backward) {
    return size_t(kItems + (backward ? 2 * kSide * kPitch : kSide * (kPitch + 1))) * sizeof(T);
  }
  __device__ __forceinline__ AttentionShared(T* all, bool backward) {
    static_assert(kKeysAtOnce * kColumns <= kSide * kDepthPitch);
    x = all;
    y = x + kSide * kDepthPitch;
    row[0] = y + kSide * kDepthPitch;
    row[1] = row[0] + kSide;
    row[2] = backward ? nullptr : row[1] + kSide;
    s = row[1] + (backward ? 1 : 2) * kSide;
    d = backward ? s + kSide * kPitch : nullptr;
  }
};

// n <= kSide rows of `width` elements; zeros outside.
template <class S> struct Rows {
  using T = typename SumOf<S>::type;
  const char* p;
  int64_t step;  // bytes
  int64_t n, width;

  __device__ __forceinline__ Rows(const AttentionRows& r, int64_t batch, int64_t head,
                                  int64_t first, int64_t end, int64_t width_)
      : p(r.p + batch * r.batch + head * r.head + first * r.row),
        step(r.row),
        n(least(end - first, kSide)),
        width(width_) {}
  __device__ __forceinline__ S stored(int64_t i, int64_t d) const {
    if (i >= n || d >= width) return S{};
    return reinterpret_cast<const S*>(p + i * step)[d];
  }
  __device__ __forceinline__ T at(int64_t i, int64_t d) const { return widened(stored(i, d)); }
};

template <class T, int kA, int kB> __device__ __forceinline__ void clear(T (&x)[kA][kB]) {
#pragma unroll
  for (int i = 0; i < kA; i++) {
#pragma unroll
    for (int j = 0; j < kB; j++) x[i][j] = T(0);
  }
}
template <class T, int kA, int kB, int kC>
__device__ __forceinline__ void clear(T (&x)[kA][kB][kC]) {
#pragma unroll
  for (int i = 0; i < kA; i++) clear(x[i]);
}

// c[i][j] = row ty + 16 i of a · row tx + 16 j of b, thread (tx, ty) of 16 x 16.
template <class S, class T>
__device__ __forceinline__ void dot_rows(const AttentionShared<T>& shared, const Rows<S>& a,
                                         const Rows<S>& b, T (&c)[4][4]) {
  const int tx = int(threadIdx.x) % 16;
  const int ty = int(threadIdx.x) / 16;
  clear(c);
  for (int64_t from = 0; from < a.width; from += kDepth) {
#pragma unroll
    for (int e = 0; e < kSide * kDepth / kThreads; e++) {
      const int item = e * kThreads + int(threadIdx.x);
      const int i = item / kDepth;
      const int d = item % kDepth;
      shared.x[i * kDepthPitch + d] = a.at(i, from + d);
      shared.y[i * kDepthPitch + d] = b.at(i, from + d);
    }
    __syncthreads();
#pragma unroll 8
    for (int d = 0; d < kDepth; d++) {
      T u[4], v[4];
#pragma unroll
      for (int i = 0; i < 4; i++) u[i] = shared.x[(ty + 16 * i) * kDepthPitch + d];
#pragma unroll
      for (int j = 0; j < 4; j++) v[j] = shared.y[(tx + 16 * j) * kDepthPitch + d];
#pragma unroll
      for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) c[i][j] = multiply_add(u[i], v[j], c[i][j]);
      }
    }
    __syncthreads();
  }
}

// acc[i][j] += sum over k of w(ty + 8 i, k) * row k of r, column first + tx + 32 j; thread (tx, ty)
// of 32 x 8. w: a block of scores, transposed if kTurned.
template <bool kTurned, class S, class T>
__device__ __forceinline__ void add_product(const AttentionShared<T>& shared, const T* w,
                                            const Rows<S>& r, int64_t first,
                                            T (&acc)[kRowsEach][kColumnsEach]) {
  const int tx = int(threadIdx.x) % 32;
  const int ty = int(threadIdx.x) / 32;
  for (int k0 = 0; k0 < r.n; k0 += kKeysAtOnce) {
#pragma unroll
    for (int e = 0; e < kKeysAtOnce * kColumns / kThreads; e++) {
      const int item = e * kThreads + int(threadIdx.x);
      shared.x[item] = r.at(k0 + item / kColumns, first + item % kColumns);
    }
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < kKeysAtOnce; k++) {
      T v[kColumnsEach];
#pragma unroll
      for (int j = 0; j < kColumnsEach; j++) v[j] = shared.x[k * kColumns + tx + 32 * j];
#pragma unroll
      for (int i = 0; i < kRowsEach; i++) {
        const int row = ty + 8 * i;
        const T u = kTurned ? w[(k0 + k) * kPitch + row] : w[row * kPitch + k0 + k];
#pragma unroll
        for (int j = 0; j < kColumnsEach; j++) acc[i][j] = multiply_add(u, v[j], acc[i][j]);
      }
    }
    __syncthreads();
  }
}
// Calls f(row of the block, column, acc[i][j]) for the present results.
template <class T, class F>
__device__ __forceinline__ void each_result(const T (&acc)[kRowsEach][kColumnsEach], int64_t rows,
                                            int64_t first, int64_t width, const F& f) {
#pragma unroll
  for (int i = 0; i < kRowsEach; i++) {
#pragma unroll
    for (int j = 0; j < kColumnsEach; j++) {
      const int row = int(threadIdx.x) / 32 + 8 * i;
      const int64_t column = first + int(threadIdx.x) % 32 + 32 * j;
      if (row < rows && column < width) f(row, column, acc[i][j]);
    }
  }
}

// The scores of a block; batch, head, query and key are those of its first element.
struct AttentionBlock {
  int64_t batch, head, query, key;
};

// The score of query i and key j of the block from their product; -infinity if i does not attend to
// j.
template <class T> __device__ __forceinline__ T score_of(const AttentionPlan& p,
                                                         const AttentionBlock& b, int i, int j,
                                                         T product) {
  const int64_t query = b.query + i;
  const int64_t key = b.key + j;
  if (query >= p.queries || key >= p.keys || (p.causal && key > query)) return kMinusInfinity<T>;
  T score = product * T(p.scale);
  if (p.mask_dtype) {
    const char* m = p.mask + b.batch * p.mask_batch + b.head * p.mask_head + query * p.mask_query +
                    key * p.mask_key;
    if (p.mask_dtype != TT_BOOL) score += load_element<T>(m, p.mask_dtype);
    else if (*m == 0) score = kMinusInfinity<T>;
  }
  return score;
}

// 0 for a dropped weight, else keep_scale; 1 without dropout.
template <class T> __device__ __forceinline__ T keep_factor(const AttentionPlan& p,
                                                            const AttentionBlock& b, int i, int j) {
  if (!p.drop) return T(1);
  const int64_t row = (b.batch * p.heads + b.head) * p.queries + b.query + i;
  const int64_t words = (p.keys + 63) / 64 * 64;
  const uint32_t word = philox_word(p.seed, p.offset, uint64_t(row * words + b.key + j));
  return int32_t(word >> 8) < p.threshold ? T(p.keep_scale) : T(0);
}

template <class T> __device__ __forceinline__ T sum_warp(T x) {
#pragma unroll
  for (int other = kWarp / 2; other > 0; other /= 2) x += __shfl_xor_sync(kAllLanes, x, other);
  return x;
}
template <class T> __device__ __forceinline__ T max_warp(T x) {
#pragma unroll
  for (int other = kWarp / 2; other > 0; other /= 2) {
    const T y = __shfl_xor_sync(kAllLanes, x, other);
    x = y > x || y != y ? y : x;
  }
  return x;
}

}  // namespace
}  // namespace TT_NS
