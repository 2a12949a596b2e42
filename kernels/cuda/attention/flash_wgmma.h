// The gradients of attention of halves by the products of a warpgroup (matmul/wgmma.h), for sm_90a:
// flash_backward.cu's order of work, five products for each block of scores, for rows of up to 128
// numbers. Serves passes without mask, dropout and scores scaled first, with rows of packs.
//
//   k, v      [kKeys][kWidth]: operands of panels of 64 columns, 64 keys for each warpgroup
//   q, g      [2][kQueries][kWidth] each: one is copied while the other is read
//   ds        [kKeys][kQueries]
//   numbers   [2]: shift and delta, [kQueries] each
//
//   score, dz [64 keys][kQueries]  k q^T, v g^T      of a warpgroup, in registers
//   dv, dk    [64 keys][kWidth]    z^T g, ds^T q     the left operand in registers
//   dq        [64][64]             ds k              queries of a warpgroup, or half of the columns
//
// Rows of 64 numbers have 128 queries at once, rows of 128 have 64: both take all registers of 256
// threads. Blocks add to dq in the order of their keys, by the turns and tickets of
// flash_backward.cu: the bits are the same in every run.
#pragma once

#include "kernels/cuda/attention/gradients.h"
#include "kernels/cuda/matmul/wgmma.h"

namespace TT_NS {
namespace {

template <int kWidth_> struct GroupShape {
  static constexpr int kWidth = kWidth_;
  static constexpr int kThreads = 256;
  static constexpr int kKeys = 128;
  static constexpr int kQueries = kWidth == 64 ? 128 : 64;
  static constexpr int kKeyBytes = kKeys * kWidth * 2;
  static constexpr int kQueryBytes = kQueries * kWidth * 2;
  static constexpr int kChangeBytes = kKeys * kQueries * 2;
  static constexpr int kNumberBytes = 2 * kQueries * 4;
  static constexpr int kBytes =
      device::kOperandAlignment + 2 * kKeyBytes + 4 * kQueryBytes + kChangeBytes + 2 * kNumberBytes;
  static_assert(kPadding % kQueries == 0);
};

#if TT_HAS_WGMMA

// As load_tile, in panels of 64 columns; all rows are of packs.
template <class Shape, int kRows>
__device__ __forceinline__ void load_panels(char* tile, const TileRows& r, int64_t first,
                                            int64_t end) {
  constexpr int kPacks = Shape::kWidth / kPack;
  constexpr int kAtOnce = Shape::kThreads / kPacks;  // rows
  static_assert(kAtOnce % 8 == 0 && kRows % kAtOnce == 0);
  const int row = int(threadIdx.x) / kPacks;
  const int pack = int(threadIdx.x) % kPacks;
  char* const to = tile + pack / 8 * kRows * device::kPanelBytes + pack_place<64>(row, pack % 8);
  const char* from = r.p + (first + row) * r.step + pack * kPackBytes;
  const int left = int(least(end - first, kRows)) - row;
  const bool present = pack * kPack < r.width;
#pragma unroll
  for (int i = 0; i < kRows; i += kAtOnce) {
    device::copy_async(to + i * device::kPanelBytes, from, present && i < left);
    from += kAtOnce * r.step;
  }
}

// Rows [first, first + 64) of an operand along its rows, from column 16 step on.
template <int kRows>
__device__ __forceinline__ uint64_t rows_along(const char* tile, int first, int step) {
  return device::operand_along(tile + step / 4 * kRows * device::kPanelBytes +
                               first * device::kPanelBytes + step % 4 * 32);
}
// Rows [16 step, 16 step + 16) of an operand across its rows, from panel `panel` on.
template <int kRows>
__device__ __forceinline__ uint64_t rows_across(const char* tile, int panel, int step) {
  return device::operand_across(tile + (panel * kRows + 16 * step) * device::kPanelBytes,
                                kRows * device::kPanelBytes);
}

// x, a thread's elements of [64][columns], as halves: left operands of 16 columns each.
template <class S, int kElements>
__device__ __forceinline__ void round_sums(const float (&x)[kElements],
                                           uint32_t (&halves)[kElements / 8][4]) {
#pragma unroll
  for (int e = 0; e < kElements; e += 2) halves[e / 8][e / 2 % 4] = two_halves<S>(x[e], x[e + 1]);
}

template <class S, class Shape>
__device__ __forceinline__ void store_group(const float (&sum)[Shape::kWidth / 2], char* to,
                                            int first, int64_t rows, int width, float scale) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int row = first + 8 * half;
    if (row >= rows) continue;
#pragma unroll
    for (int j = 0; j < Shape::kWidth / 8; j++)
      store_two<S>(to, row, 8 * j + int(threadIdx.x) % 4 * 2, width, sum[4 * j + 2 * half] * scale,
                   sum[4 * j + 2 * half + 1] * scale);
  }
}

// Hides keys that are not there or come after the query; key and query are the thread's first ones.
template <int kScores> __device__ __forceinline__ void hide_group(const AttentionPlan& p, int key,
                                                                  int query,
                                                                  float (&score)[kScores]) {
  const int left = int(p.keys) - key;
  const int ahead = query - key;
#pragma unroll
  for (int e = 0; e < kScores; e++) {
    const int after = (e >> 1 & 1) * 8;  // keys
    const bool attends = after < left && (!p.causal || after <= e / 4 * 8 + (e & 1) + ahead);
    score[e] = attends ? score[e] : kMinusInfinity<float>;
  }
}

// Writes ds of a warpgroup to the block's; key is the thread's first one.
template <class Shape, int kTiles>
__device__ __forceinline__ void store_group_changes(const uint32_t (&ds)[kTiles][4], char* changes,
                                                    int key) {
  const int pair = int(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int k = 0; k < kTiles; k++) {
#pragma unroll
    for (int r = 0; r < 4; r++) {
      const int pack = 2 * k + (r >> 1);
      char* const to = changes + pack / 8 * Shape::kKeys * device::kPanelBytes;
      device::store_operand(to + pack_place<64>(key + 8 * (r & 1), pack % 8) + pair * 2, ds[k][r]);
    }
  }
}

// What the block adds to a tile of dq: a warpgroup has [64][64], queries of its own or half of the
// columns.
template <class S, class Shape> struct GroupQueryTile {
  static constexpr bool kSplitsQueries = Shape::kWidth == 64;
  float sum[32];

  __device__ __forceinline__ static uint4* place(float* sums, int64_t tile) {
    return reinterpret_cast<uint4*>(sums + tile * (Shape::kQueries * Shape::kWidth)) + threadIdx.x;
  }
  // Starts sum = ds k.
  __device__ __forceinline__ void begin_product(const char* changes, const char* keys, int group) {
    constexpr int kKeys = Shape::kKeys;
    device::fence_registers();
#pragma unroll
    for (int k = 0; k < kKeys / 16; k++)
      device::Wgmma<S, 64, true, true>::multiply(
          sum, rows_across<kKeys>(changes, kSplitsQueries ? group : 0, k),
          rows_across<kKeys>(keys, kSplitsQueries ? 0 : group, k), k > 0);
    device::commit_products();
  }
  // Waits for the product and adds what earlier blocks have stored at `from`, if there are any.
  __device__ __forceinline__ void end_product(const uint4* from, bool has_earlier) {
    uint4 before[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
      before[i] = {};
      if (has_earlier) before[i] = device::load_shared(from + i * Shape::kThreads);
    }
    device::wait_for_products<0>();
    device::pin(sum);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      sum[4 * i] += bits_as<float>(before[i].x);
      sum[4 * i + 1] += bits_as<float>(before[i].y);
      sum[4 * i + 2] += bits_as<float>(before[i].z);
      sum[4 * i + 3] += bits_as<float>(before[i].w);
    }
  }
  __device__ __forceinline__ void store(uint4* to) const {
#pragma unroll
    for (int i = 0; i < 8; i++)
      to[i * Shape::kThreads] = {bits_as<uint32_t>(sum[4 * i]), bits_as<uint32_t>(sum[4 * i + 1]),
                                 bits_as<uint32_t>(sum[4 * i + 2]),
                                 bits_as<uint32_t>(sum[4 * i + 3])};
  }
  // The queries of the tile begin at `first`; row: the thread's, of 64.
  __device__ __forceinline__ void store_result(const AttentionPlan& p, int64_t head, int first,
                                               int group, int row) const {
    const int pair = int(threadIdx.x) % 4 * 2;
    const int columns = kSplitsQueries ? 0 : 64 * group;
    char* const to = p.dq + head * p.queries * p.width * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int at = first + (kSplitsQueries ? 64 * group : 0) + row + 8 * half;
      if (at >= p.queries) continue;
#pragma unroll
      for (int j = 0; j < 8; j++)
        store_two<S>(to, at, columns + 8 * j + pair, int(p.width),
                     sum[4 * j + 2 * half] * float(p.scale),
                     sum[4 * j + 2 * half + 1] * float(p.scale));
    }
  }
};

#endif

template <class S, class Shape> __global__ void __launch_bounds__(Shape::kThreads, 1)
    group_gradients(const __grid_constant__ GradientArguments a) {
#if TT_HAS_WGMMA
  constexpr int kWidth = Shape::kWidth;
  constexpr int kKeys = Shape::kKeys, kQueries = Shape::kQueries;
  constexpr int kScores = kQueries / 2;  // of a thread
  TT_SHARED_DYNAMIC(char, memory);
  TT_SHARED(int32_t, ticket, 1);
  const AttentionPlan& p = a.p;
  const KeyBlock its = take_keys(a, ticket);
  const int first_key = its.block * kKeys;
  const int tiles = int(p.queries + kQueries - 1) / kQueries;
  GradientSteps s(p, its.head, p.causal ? first_key / kQueries : 0, tiles);

  char* const keys = device::aligned_shared(memory);
  char* const values = keys + Shape::kKeyBytes;
  char* const beside = values + Shape::kKeyBytes;
  char* const changes = beside + 4 * Shape::kQueryBytes;
  char* const numbers = changes + Shape::kChangeBytes;
  const TileRows key_rows(p.k, its.batch, its.head, p.width, true);
  const TileRows value_rows(p.v, its.batch, its.head, p.value_width, true);
  load_panels<Shape, kKeys>(keys, key_rows, first_key, p.keys);
  load_panels<Shape, kKeys>(values, value_rows, first_key, p.keys);
  const auto load_queries = [&](int buffer) {
    char* const to = beside + buffer * 2 * Shape::kQueryBytes;
    const int first = s.tile * kQueries;
    const TileRows q(p.q, its.batch, s.head, p.width, true);
    const TileRows g(p.grad, its.batch, s.head, p.value_width, true);
    load_panels<Shape, kQueries>(to, q, first, p.queries);
    load_panels<Shape, kQueries>(to + Shape::kQueryBytes, g, first, p.queries);
    load_numbers<kQueries>(numbers + buffer * Shape::kNumberBytes, a.shift, a.delta,
                           (its.batch * p.heads + s.head) * a.padded + first);
    device::commit_copies();
  };
  if (s.more()) load_queries(0);

  const int lane = int(threadIdx.x) % kWarp;
  const int group = int(threadIdx.x) / 128;
  const int row = int(threadIdx.x) / kWarp % 4 * 16 + lane / 4;  // of 64
  const int pair = lane % 4 * 2;
  const int key = first_key + 64 * group + row;
  float dk[kWidth / 2], dv[kWidth / 2];
#pragma unroll
  for (int e = 0; e < kWidth / 2; e++) {
    dk[e] = 0;
    dv[e] = 0;
  }

  device::pin(dk);
  device::pin(dv);
  Turn given = {};  // the turn that the block has to pass on
  for (int buffer = 0; s.more(); buffer ^= 1) {
    device::wait_for_copies<0>();
    device::fence_operands();
    __syncthreads();
    given.pass_on(its.block);
    const int64_t head = int64_t(its.batch) * p.heads + s.head;
    const int tile = s.tile;
    const int first = tile * kQueries;
    s.next();
    if (s.more()) load_queries(buffer ^ 1);
    const char* const queries = beside + buffer * 2 * Shape::kQueryBytes;
    const char* const grads = queries + Shape::kQueryBytes;
    const float* const shift =
        reinterpret_cast<const float*>(numbers + buffer * Shape::kNumberBytes) + pair;
    const float* const delta = shift + kQueries;

    float weight[kScores], change[kScores];
    device::fence_registers();
#pragma unroll
    for (int k = 0; k < kWidth / 16; k++)
      device::Wgmma<S, kQueries, false, false>::multiply(
          weight, rows_along<kKeys>(keys, 64 * group, k), rows_along<kQueries>(queries, 0, k),
          k > 0);
    device::commit_products();
    device::fence_registers();
#pragma unroll
    for (int k = 0; k < kWidth / 16; k++)
      device::Wgmma<S, kQueries, false, false>::multiply(change,
                                                         rows_along<kKeys>(values, 64 * group, k),
                                                         rows_along<kQueries>(grads, 0, k), k > 0);
    device::commit_products();
    device::wait_for_products<1>();
    device::pin(weight);
    const bool is_edge = first_key + kKeys > p.keys;
    if (is_edge || (p.causal && first < first_key + kKeys))
      hide_group(p, key, first + pair, weight);
#pragma unroll
    for (int e = 0; e < kScores; e++)
      weight[e] = device::fast_exp2(multiply_add(weight[e], a.factor, -shift[e / 4 * 8 + (e & 1)]));
    uint32_t z[kScores / 8][4];
    round_sums<S>(weight, z);
    device::pin(z);
    device::fence_registers();
#pragma unroll
    for (int k = 0; k < kQueries / 16; k++)
      device::Wgmma<S, kWidth, false, true>::multiply(dv, z[k], rows_across<kQueries>(grads, 0, k),
                                                      true);
    device::commit_products();
    device::wait_for_products<1>();
    device::pin(change);
#pragma unroll
    for (int e = 0; e < kScores; e++)
      change[e] = weight[e] * (change[e] - delta[e / 4 * 8 + (e & 1)]);
    uint32_t ds[kScores / 8][4];
    round_sums<S>(change, ds);
    device::pin(ds);
    store_group_changes<Shape>(ds, changes, 64 * group + row);
    device::fence_registers();
#pragma unroll
    for (int k = 0; k < kQueries / 16; k++)
      device::Wgmma<S, kWidth, false, true>::multiply(dk, ds[k],
                                                      rows_across<kQueries>(queries, 0, k), true);
    device::commit_products();
    const Turn turn = {a.turns + head * a.tiles + tile};
    turn.wait(its.block);
    device::fence_operands();
    __syncthreads();

    GroupQueryTile<S, Shape> sum;
    uint4* const sums = sum.place(a.sums, head * tiles + tile);
    sum.begin_product(changes, keys, group);
    sum.end_product(sums, its.block);
    given = {};
    if (its.block < last_block_of<kKeys>(a, first)) {
      given = turn;
      sum.store(sums);
    } else {
      sum.store_result(p, head, first, group, row);
    }
  }
  device::pin(dk);
  device::pin(dv);
  device::wait_for_copies<0>();
  if (given.count) {
    __syncthreads();
    given.pass_on(its.block);
  }
  store_group<S, Shape>(dk, p.dk + its.key_head * p.keys * p.width * 2, key, p.keys, int(p.width),
                        float(p.scale));
  store_group<S, Shape>(dv, p.dv + its.key_head * p.keys * p.value_width * 2, key, p.keys,
                        int(p.value_width), 1.0f);
#endif
}

template <class S, int kWidth> int32_t launch_groups(GradientArguments& a, void* stream) {
  using Shape = GroupShape<kWidth>;
  const AttentionPlan& p = a.p;
  a.blocks = int32_t(ceil_div(p.keys, Shape::kKeys));
  const unsigned grid = unsigned(p.batch * p.key_heads * a.blocks);
  if (grid == 0) return TT_OK;
  return device::launch(group_gradients<S, Shape>, grid, Shape::kThreads, Shape::kBytes, stream, a);
}

}  // namespace
}  // namespace TT_NS
