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
  if (threadIdx.x == 0) ticket[0] = atomicAdd(a.ticket, 1);
  __syncthreads();
  const int heads = int(p.batch * p.key_heads);
  const int heads_before = ticket[0] / (kHeadsAtOnce * a.blocks) * kHeadsAtOnce;
  const int heads_here = int(least(heads - heads_before, kHeadsAtOnce));
  const int block = (ticket[0] - heads_before * a.blocks) / heads_here;
  const int key_head = heads_before + (ticket[0] - heads_before * a.blocks) % heads_here;
  const int first_key = block * kKeys;
  const int batch = key_head / int(p.key_heads);
  const int of_keys = key_head - batch * int(p.key_heads);
  const int heads_of_key = int(p.heads) / int(p.key_heads);
  const int tiles = int(p.queries + kQueries - 1) / kQueries;
  GradientSteps s;
  s.first = p.causal ? first_key / kQueries : 0;
  s.last = tiles - 1;
  s.tile = s.last;
  s.head = of_keys * heads_of_key;
  s.last_head = s.head + heads_of_key - 1;

  char* const keys = device::aligned_shared(memory);
  char* const values = keys + Shape::kKeyBytes;
  char* const beside = values + Shape::kKeyBytes;
  char* const changes = beside + 4 * Shape::kQueryBytes;
  char* const numbers = changes + Shape::kChangeBytes;
  load_panels<Shape, kKeys>(keys, TileRows(p.k, batch, of_keys, p.width, true), first_key, p.keys);
  load_panels<Shape, kKeys>(values, TileRows(p.v, batch, of_keys, p.value_width, true), first_key,
                            p.keys);
  const auto load_queries = [&](int buffer) {
    char* const to = beside + buffer * 2 * Shape::kQueryBytes;
    load_panels<Shape, kQueries>(to, TileRows(p.q, batch, s.head, p.width, true), s.tile * kQueries,
                                 p.queries);
    load_panels<Shape, kQueries>(to + Shape::kQueryBytes,
                                 TileRows(p.grad, batch, s.head, p.value_width, true),
                                 s.tile * kQueries, p.queries);
    const int t = int(threadIdx.x);
    if (t < kQueries / 2) {
      const int64_t from =
          (batch * p.heads + s.head) * a.padded + s.tile * kQueries + t % (kQueries / 4) * 4;
      const bool is_shift = t < kQueries / 4;
      device::copy_async(numbers + buffer * Shape::kNumberBytes + t * kPackBytes,
                         (is_shift ? a.shift : a.delta) + from, true);
    }
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
  int32_t* given = nullptr;  // the turn that the block has to pass on
  for (int buffer = 0; s.more(); buffer ^= 1) {
    device::wait_for_copies<0>();
    device::fence_operands();
    __syncthreads();
    if (given && threadIdx.x == 0) device::store_release(given, block + 1);
    const int64_t head = int64_t(batch) * p.heads + s.head;
    const int tile = s.tile;
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
    const int query = tile * kQueries + pair;
    const bool is_edge = first_key + kKeys > p.keys;
    if (is_edge || (p.causal && tile * kQueries < first_key + kKeys)) {
      const int left = int(p.keys) - key;
      const int ahead = query - key;
#pragma unroll
      for (int e = 0; e < kScores; e++) {
        const int after = (e >> 1 & 1) * 8;  // keys
        const bool attends = after < left && (!p.causal || after <= e / 4 * 8 + (e & 1) + ahead);
        weight[e] = attends ? weight[e] : kMinusInfinity<float>;
      }
    }
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
#pragma unroll
    for (int k = 0; k < kScores / 8; k++) {
#pragma unroll
      for (int r = 0; r < 4; r++) {
        const int at = 64 * group + row + 8 * (r & 1);  // the key
        const int pack = 2 * k + (r >> 1);
        char* const to = changes + pack / 8 * kKeys * device::kPanelBytes;
        device::store_operand(to + pack_place<64>(at, pack % 8) + pair * 2, ds[k][r]);
      }
    }
    device::fence_registers();
#pragma unroll
    for (int k = 0; k < kQueries / 16; k++)
      device::Wgmma<S, kWidth, false, true>::multiply(dk, ds[k],
                                                      rows_across<kQueries>(queries, 0, k), true);
    device::commit_products();
    int32_t* const turn = a.turns + head * a.tiles + tile;
    if (block && threadIdx.x == kWarp) {
      while (device::load_acquire(turn) != block) device::pause();
    }
    device::fence_operands();
    __syncthreads();

    float sum[32];
    device::fence_registers();
#pragma unroll
    for (int k = 0; k < kKeys / 16; k++)
      device::Wgmma<S, 64, true, true>::multiply(
          sum, rows_across<kKeys>(changes, kWidth == 64 ? group : 0, k),
          rows_across<kKeys>(keys, kWidth == 64 ? 0 : group, k), k > 0);
    device::commit_products();
    uint4* const sums =
        reinterpret_cast<uint4*>(a.sums + (head * tiles + tile) * (kQueries * kWidth)) +
        threadIdx.x;
    uint4 before[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
      before[i] = {};
      if (block) before[i] = device::load_shared(sums + i * Shape::kThreads);
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
    const int last = p.causal ? int(least(a.blocks - 1, tile * kQueries / kKeys)) : a.blocks - 1;
    given = block < last ? turn : nullptr;
    if (given) {
#pragma unroll
      for (int i = 0; i < 8; i++)
        sums[i * Shape::kThreads] = {
            bits_as<uint32_t>(sum[4 * i]), bits_as<uint32_t>(sum[4 * i + 1]),
            bits_as<uint32_t>(sum[4 * i + 2]), bits_as<uint32_t>(sum[4 * i + 3])};
    } else {
      char* const to = p.dq + head * p.queries * p.width * 2;
      const int columns = kWidth == 64 ? 0 : 64 * group;
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int at = tile * kQueries + (kWidth == 64 ? 64 * group : 0) + row + 8 * half;
        if (at >= p.queries) continue;
#pragma unroll
        for (int j = 0; j < 8; j++)
          store_two<S>(to, at, columns + 8 * j + pair, int(p.width),
                       sum[4 * j + 2 * half] * float(p.scale),
                       sum[4 * j + 2 * half + 1] * float(p.scale));
      }
    }
  }
  device::pin(dk);
  device::pin(dv);
  device::wait_for_copies<0>();
  if (given) {
    __syncthreads();
    if (threadIdx.x == 0) device::store_release(given, block + 1);
  }
  store_group<S, Shape>(dk, p.dk + key_head * p.keys * p.width * 2, key, p.keys, int(p.width),
                        float(p.scale));
  store_group<S, Shape>(dv, p.dv + key_head * p.keys * p.value_width * 2, key, p.keys,
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
