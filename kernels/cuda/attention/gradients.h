// What the ways to the gradients of attention of halves share: products of tiles (tile.h), whose
// results a warp has in registers, and stores of these; which keys a block has, and the order in
// which blocks add to dq. flash_backward.cu writes the last two itself, since a kernel of it spills
// registers with the functions here. A Shape has the rows and columns of a block of scores.
#pragma once

#include "kernels/cuda/attention/tile.h"

namespace TT_NS {
namespace {

constexpr int kPadding = 128;  // queries of a head in shift and delta are padded to this
constexpr int kHeadsAtOnce = 32;

struct GradientArguments {
  AttentionPlan p;
  const float *shift, *delta;
  float* sums;
  int32_t* turns;
  int32_t* ticket;  // NULL without queries
  int32_t padded;   // queries
  int32_t tiles;    // of queries
  int32_t blocks;   // of keys
  float factor;     // of a score
  bool scaled;      // scores are multiplied by the scale first
  bool q_packed, k_packed, v_packed, grad_packed, out_packed;
};

// The keys of a block, and its order among the blocks of their head.
struct KeyBlock {
  int block;
  int key_head;     // of all batches
  int batch, head;  // head: of the batch
};
// Takes the next ticket (flash_backward.cu); `ticket` is in shared memory.
__device__ __forceinline__ KeyBlock take_keys(const GradientArguments& a, int32_t* ticket) {
  const AttentionPlan& p = a.p;
  if (threadIdx.x == 0) *ticket = a.ticket ? atomicAdd(a.ticket, 1) : int32_t(blockIdx.x);
  __syncthreads();
  const int heads = int(p.batch * p.key_heads);
  const int heads_before = *ticket / (kHeadsAtOnce * a.blocks) * kHeadsAtOnce;
  const int heads_here = int(least(heads - heads_before, kHeadsAtOnce));
  const int here = *ticket - heads_before * a.blocks;
  KeyBlock k;
  k.block = here / heads_here;
  k.key_head = heads_before + here % heads_here;
  k.batch = k.key_head / int(p.key_heads);
  k.head = k.key_head - k.batch * int(p.key_heads);
  return k;
}

// The tiles of queries that a block goes through, those of each head that reads its keys, the last
// one first.
struct GradientSteps {
  int head, last_head;
  int tile, first, last;
  __device__ __forceinline__ GradientSteps(const AttentionPlan& p, int key_head, int first_tile,
                                           int tiles)
      : tile(tiles - 1), first(first_tile), last(tiles - 1) {
    const int group = int(p.heads) / int(p.key_heads);
    head = key_head * group;
    last_head = head + group - 1;
  }
  __device__ __forceinline__ bool more() const { return head <= last_head && first <= last; }
  __device__ __forceinline__ void next() {
    if (tile-- > first) return;
    tile = last;
    head++;
  }
};

// A tile of dq that the blocks of a head add to in the order of their keys.
struct Turn {
  int32_t* count;  // how many blocks have added
  __device__ __forceinline__ void wait(int block) const {
    if (block == 0 || threadIdx.x != kWarp) return;
    while (device::load_acquire(count) != block) device::pause();
  }
  // Lets the next block add, after a barrier of the block. NULL: there is none.
  __device__ __forceinline__ void pass_on(int block) const {
    if (count && threadIdx.x == 0) device::store_release(count, block + 1);
  }
};
// The last block that adds to the queries from `first` on.
template <int kKeys>
__device__ __forceinline__ int last_block_of(const GradientArguments& a, int first) {
  return a.p.causal ? int(least(a.blocks - 1, first / kKeys)) : a.blocks - 1;
}

// sum += w y.
template <class S, class Shape>
__device__ __forceinline__ void add_rows(const typename Shape::Halves& w, const char* y,
                                         typename Shape::Sum& sum) {
  constexpr int kWidth = Shape::kWidth;
  const int right = fragment_place<kWidth>(true);  // of transposed tiles
#pragma unroll
  for (int k = 0; k < Shape::kColumns / 16; k++) {
#pragma unroll
    for (int j = 0; j < kWidth / 8; j += 2) {
      uint32_t v[4];
      device::ldmatrix_transposed(v, y, (right ^ 16 * j) + k * 16 * kWidth * 2);
      const uint32_t even[2] = {v[0], v[1]};
      const uint32_t odd[2] = {v[2], v[3]};
#pragma unroll
      for (int i = 0; i < Shape::kRowTiles; i++) {
        const uint32_t u[4] = {w[i][2 * k][0], w[i][2 * k][1], w[i][2 * k + 1][0],
                               w[i][2 * k + 1][1]};
        mma<S>(sum[i][j], u, even);
        mma<S>(sum[i][j + 1], u, odd);
      }
    }
  }
}

// The elements of a thread as halves.
template <class S, class Shape>
__device__ __forceinline__ void round_block(const typename Shape::Block& x,
                                            typename Shape::Halves& halves) {
#pragma unroll
  for (int i = 0; i < Shape::kRowTiles; i++) {
#pragma unroll
    for (int j = 0; j < Shape::kColumnTiles; j++) {
      halves[i][j][0] = two_halves<S>(x[i][j][0], x[i][j][1]);
      halves[i][j][1] = two_halves<S>(x[i][j][2], x[i][j][3]);
    }
  }
}

// Calls f(row, column, i, j, r) for the thread's elements: their distances from its place, and
// where they are.
template <class Shape, class F> __device__ __forceinline__ void each_element(const F& f) {
#pragma unroll
  for (int i = 0; i < Shape::kRowTiles; i++) {
#pragma unroll
    for (int j = 0; j < Shape::kColumnTiles; j++) {
#pragma unroll
      for (int r = 0; r < 4; r++) f(16 * i + 8 * (r >> 1), 8 * j + (r & 1), i, j, r);
    }
  }
}

// Two neighbours of row `row` of a result, width numbers a row, from column `column` on.
template <class S> __device__ __forceinline__ void store_two(char* to, int64_t row, int column,
                                                             int width, float low, float high) {
  uint16_t* const at = reinterpret_cast<uint16_t*>(to) + row * width + column;
  const uint32_t both = two_halves<S>(low, high);
  if (width % 2 == 0) {
    if (column < width) *reinterpret_cast<uint32_t*>(at) = both;
    return;
  }
  if (column < width) at[0] = uint16_t(both);
  if (column + 1 < width) at[1] = uint16_t(both >> 16);
}

// sum * scale to the rows of `to`.
template <class S, class Shape>
__device__ __forceinline__ void store_sum(const typename Shape::Sum& sum, char* to, int first,
                                          int64_t rows, int width, float scale) {
  const int column = int(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int i = 0; i < Shape::kRowTiles; i++) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int row = first + 16 * i + 8 * half;
      if (row >= rows) continue;
#pragma unroll
      for (int j = 0; j < Shape::kWidth / 8; j++)
        store_two<S>(to, row, 8 * j + column, width, sum[i][j][2 * half] * scale,
                     sum[i][j][2 * half + 1] * scale);
    }
  }
}

}  // namespace
}  // namespace TT_NS
