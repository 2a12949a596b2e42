// The gradients of attention of f16 and bf16 by tensor cores. For the products of backward.cu,
//   z = p f,  dv = z^T g,  dz = g v^T,  ds = p (dz f - delta),  dq = ds k scale,  dk = ds^T q scale
// a block has keys, 32 of them for each warp, and goes through the queries of each head that reads
// them, the last tile of kQueries first. score and dz are [keys][queries]: z and ds of a warp,
// rounded to halves, are the left operands of the products for dv and dk, and never leave its
// registers. For dq, which all warps of the block add to, ds goes through shared memory. Rows of
// more than 64 numbers take two passes (flash_passes.h). Where a program asks for it and the device
// is of sm_90, flash_wgmma.h serves both.
//
//   k, v          [kKeys][kWidth]; in shared memory (tile.h)
//   beside        [2] of q and g, [kQueries][kWidth] each, and shift and delta, [kQueries] each:
//                 one is copied while the other is read
//   ds            [kKeys][kQueries]
//   shift, delta  of queries: p = 2^(factor score - shift); [heads][queries padded to kPadding]
//   sums          of dq, [heads][tiles of queries][registers of a thread][threads]
//   turns         [heads][tiles of queries]: how many blocks have added to the tile
//
// Blocks add to a tile of dq in the order of their keys, each when it is its turn; the last one
// stores the result. Blocks take tickets, and a block with earlier keys of the head has an earlier
// ticket: it runs, or has run, so that blocks wait for each other in any order of the device's.
// Neighbours of a ticket are of kHeadsAtOnce heads: who follows another block on the same tiles
// starts later, and finds them done.
#include "kernels/cuda/attention/flash.h"

#include "kernels/cuda/attention/flash_passes.h"
#include "kernels/cuda/attention/flash_wgmma.h"
#include "kernels/cuda/attention/gradients.h"

namespace TT_NS {
namespace {

constexpr int kQueries = 64;

// Rows of scores are keys, columns queries.
struct GradientShape {
  static constexpr int kWidth = 64;
  static constexpr int kRowTiles = 2;
  static constexpr int kKeys = kTileThreads / kWarp * 16 * kRowTiles;
  static constexpr int kColumns = 32;  // queries whose scores are computed at once
  static constexpr int kColumnTiles = kColumns / 8;
  static constexpr int kKeyBytes = kKeys * kWidth * 2;
  static constexpr int kQueryBytes = kQueries * kWidth * 2;
  static constexpr int kNumberBytes = kQueries * 4;
  static constexpr int kBufferBytes = 2 * kQueryBytes + 2 * kNumberBytes;
  static constexpr int kBytes = 2 * kKeyBytes + 2 * kBufferBytes + kKeys * kQueries * 2;
  using Block = float[kRowTiles][kColumnTiles][4];
  using Halves = uint32_t[kRowTiles][kColumnTiles][2];
  using Sum = float[kRowTiles][kWidth / 8][4];
  // A warp sums 32 queries and half of the columns of dq.
  static constexpr int kQuerySumTiles = kWidth / 16;
  using QuerySum = float[2][kQuerySumTiles][4];
};

// The thread's first key and query of a block of scores.
struct GradientPlace {
  int32_t batch, head;
  int32_t key, query;
};

template <class Shape> __device__ __forceinline__ void hide_keys(const AttentionPlan& p,
                                                                 const GradientPlace& at,
                                                                 typename Shape::Block& score) {
  const int left = int(p.keys) - at.key;
  const int ahead = at.query - at.key;
  each_element<Shape>([&](int key, int query, int i, int j, int r) {
    const bool attends = key < left && (!p.causal || key <= query + ahead);
    score[i][j][r] = attends ? score[i][j][r] : kMinusInfinity<float>;
  });
}

template <class Shape> __device__ __forceinline__ void mask_block(const AttentionPlan& p,
                                                                  const GradientPlace& at,
                                                                  typename Shape::Block& score) {
  const int queries = int(p.queries) - at.query;
  const int keys = int(p.keys) - at.key;
  const char* const m = p.mask + at.batch * p.mask_batch + at.head * p.mask_head +
                        at.query * p.mask_query + at.key * p.mask_key;
  each_element<Shape>([&](int key, int query, int i, int j, int r) {
    if (query < queries && key < keys)
      mask_score(m + query * p.mask_query + key * p.mask_key, p.mask_dtype, &score[i][j][r]);
  });
}

// What dropout keeps: a bit for each of the thread's elements. Keys 16 apart share a block of
// random words.
template <class Shape> struct Dropout {
  static constexpr int kItems = Shape::kRowTiles * Shape::kColumnTiles * 4;
  static constexpr int kStep = kItems / Shape::kRowTiles;  // between bits of one block
  static_assert(kItems == 32);
  uint32_t kept;

  __device__ __forceinline__ void draw(const AttentionPlan& p, const GradientPlace& at) {
    const int64_t groups = (p.keys + kSide - 1) / kSide;
    const int64_t first = (int64_t(at.batch) * p.heads + at.head) * p.queries;
    kept = 0;
#pragma unroll 1
    for (int n = 0; n < kStep; n++) {
      const int key = at.key + 8 * (n >> 1 & 1);
      const int query = at.query + n / 4 * 8 + (n & 1);
      const uint64_t group = uint64_t((first + query) * groups + key / kSide);
      const uint64_t counter = p.offset + group * kPhiloxGroup + uint64_t(key % kPhiloxGroup);
      const PhiloxBlock random = philox({{uint32_t(counter), uint32_t(counter >> 32), 0, 0}},
                                        uint32_t(p.seed), uint32_t(p.seed >> 32));
#pragma unroll
      for (int e = 0; e < Shape::kRowTiles; e++) {
        const uint32_t word = word_of(random, key / kPhiloxGroup + e);
        kept |= uint32_t(int32_t(word >> 8) < p.threshold) << (n + e * kStep);
      }
    }
  }
  __device__ __forceinline__ bool has(int i, int j, int r) const {
    return kept >> ((i * Shape::kColumnTiles + j) * 4 + r) & 1;
  }
};

// What the block adds to a tile of dq.
template <class S, class Shape> struct QueryTile {
  static constexpr int kTiles = Shape::kQuerySumTiles;
  typename Shape::QuerySum sum;

  __device__ __forceinline__ static uint4* place(float* sums, int64_t tile) {
    return reinterpret_cast<uint4*>(sums + tile * kQueries * Shape::kWidth) + threadIdx.x;
  }
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
      for (int j = 0; j < kTiles; j++) {
#pragma unroll
        for (int r = 0; r < 4; r++) sum[i][j][r] = 0;
      }
    }
  }
  __device__ __forceinline__ void load(float* sums, int64_t tile) {
    const uint4* const from = place(sums, tile);
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
      for (int j = 0; j < kTiles; j++) {
        const uint4 x = device::load_shared(from + (i * kTiles + j) * kTileThreads);
        sum[i][j][0] = bits_as<float>(x.x);
        sum[i][j][1] = bits_as<float>(x.y);
        sum[i][j][2] = bits_as<float>(x.z);
        sum[i][j][3] = bits_as<float>(x.w);
      }
    }
  }
  __device__ __forceinline__ void store(float* sums, int64_t tile) const {
    uint4* const to = place(sums, tile);
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
      for (int j = 0; j < kTiles; j++) {
        const float(&x)[4] = sum[i][j];
        to[(i * kTiles + j) * kTileThreads] = {bits_as<uint32_t>(x[0]), bits_as<uint32_t>(x[1]),
                                               bits_as<uint32_t>(x[2]), bits_as<uint32_t>(x[3])};
      }
    }
  }
  // sum += ds k.
  __device__ __forceinline__ void add_product(const char* changes, const char* keys) {
    const int lane = int(threadIdx.x) % kWarp;
    const int warp = int(threadIdx.x) / kWarp;
    const int left = pack_place<kQueries>(lane / 16 * 8 + lane % 8, warp % 2 * 4 + lane / 8 % 2);
    const int right = fragment_place<Shape::kWidth>(true) ^ (warp / 2 * kTiles * kPackBytes);
#pragma unroll
    for (int k = 0; k < Shape::kKeys / 16; k++) {
      uint32_t u[2][4];
#pragma unroll
      for (int i = 0; i < 2; i++)
        device::ldmatrix_transposed(u[i], changes, (left ^ 32 * i) + k * 16 * kQueries * 2);
#pragma unroll
      for (int j = 0; j < kTiles; j += 2) {
        uint32_t v[4];
        device::ldmatrix_transposed(v, keys, (right ^ 16 * j) + k * 16 * Shape::kWidth * 2);
        const uint32_t even[2] = {v[0], v[1]};
        const uint32_t odd[2] = {v[2], v[3]};
#pragma unroll
        for (int i = 0; i < 2; i++) {
          mma<S>(sum[i][j], u[i], even);
          mma<S>(sum[i][j + 1], u[i], odd);
        }
      }
    }
  }
  __device__ __forceinline__ void store_result(const AttentionPlan& p, int64_t head,
                                               int first) const {
    const int lane = int(threadIdx.x) % kWarp;
    const int warp = int(threadIdx.x) / kWarp;
    const int width = int(p.width);
    char* const to = p.dq + head * p.queries * width * 2;
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int query = first + warp % 2 * 32 + 16 * i + 8 * half + lane / 4;
        if (query >= p.queries) continue;
#pragma unroll
        for (int j = 0; j < kTiles; j++)
          store_two<S>(to, query, (warp / 2 * kTiles + j) * 8 + lane % 4 * 2, width,
                       sum[i][j][2 * half] * float(p.scale),
                       sum[i][j][2 * half + 1] * float(p.scale));
      }
    }
  }
};

// kPlain: no mask, no dropout, not `scaled`.
template <class S, class Shape, bool kPlain> __global__ void __launch_bounds__(kTileThreads, 2)
    flash_gradients(const __grid_constant__ GradientArguments a) {
  constexpr int kWidth = Shape::kWidth;
  constexpr int kKeys = Shape::kKeys, kColumns = Shape::kColumns;
  constexpr int kRowTiles = Shape::kRowTiles, kColumnTiles = Shape::kColumnTiles;
  TT_SHARED_DYNAMIC(char, memory);
  TT_SHARED(int32_t, ticket, 1);
  const AttentionPlan& p = a.p;
  if (threadIdx.x == 0) ticket[0] = a.ticket ? atomicAdd(a.ticket, 1) : int32_t(blockIdx.x);
  __syncthreads();
  const int heads = int(p.batch * p.key_heads);
  const int heads_before = ticket[0] / (kHeadsAtOnce * a.blocks) * kHeadsAtOnce;
  const int heads_here = int(least(heads - heads_before, kHeadsAtOnce));
  const int block = (ticket[0] - heads_before * a.blocks) / heads_here;
  const int key_head = heads_before + (ticket[0] - heads_before * a.blocks) % heads_here;
  const int first_key = block * kKeys;
  GradientPlace at;
  at.batch = key_head / int(p.key_heads);
  at.head = key_head - at.batch * int(p.key_heads);
  GradientSteps s(p, at.head, p.causal ? first_key / kQueries : 0, a.tiles);

  const TileRows k(p.k, at.batch, at.head, p.width, a.k_packed);
  const TileRows v(p.v, at.batch, at.head, p.value_width, a.v_packed);
  load_tile<kKeys, kWidth>(memory, k, first_key, p.keys);
  load_tile<kKeys, kWidth>(memory + Shape::kKeyBytes, v, first_key, p.keys);
  char* const beside = memory + 2 * Shape::kKeyBytes;
  const auto load_queries = [&](int buffer) {
    char* const to = beside + buffer * Shape::kBufferBytes;
    const TileRows q(p.q, at.batch, s.head, p.width, a.q_packed);
    const TileRows g(p.grad, at.batch, s.head, p.value_width, a.grad_packed);
    load_tile<kQueries, kWidth>(to, q, s.tile * kQueries, p.queries);
    load_tile<kQueries, kWidth>(to + Shape::kQueryBytes, g, s.tile * kQueries, p.queries);
    const int t = int(threadIdx.x);
    if (t < kQueries / 2) {
      const int64_t from =
          (at.batch * p.heads + s.head) * a.padded + s.tile * kQueries + t % (kQueries / 4) * 4;
      const bool is_shift = t < kQueries / 4;
      device::copy_async(to + 2 * Shape::kQueryBytes + t * kPackBytes,
                         (is_shift ? a.shift : a.delta) + from, true);
    }
    device::commit_copies();
  };
  if (s.more()) load_queries(0);

  const int lane = int(threadIdx.x) % kWarp;
  const int warp_row = int(threadIdx.x) / kWarp * 16 * kRowTiles;
  const char* const keys = memory + warp_row * kWidth * 2;
  const char* const values = keys + Shape::kKeyBytes;
  const int warp_first = first_key + warp_row;
  const int warp_last = warp_first + 16 * kRowTiles - 1;
  at.key = warp_first + lane / 4;
  typename Shape::Sum dk, dv;
#pragma unroll
  for (int i = 0; i < kRowTiles; i++) {
#pragma unroll
    for (int j = 0; j < kWidth / 8; j++) {
#pragma unroll
      for (int r = 0; r < 4; r++) {
        dk[i][j][r] = 0;
        dv[i][j][r] = 0;
      }
    }
  }

  int32_t* given = nullptr;  // the turn that the block has to pass on
  for (int buffer = 0; s.more(); buffer ^= 1) {
    device::wait_for_copies<0>();
    __syncthreads();
    if (given && threadIdx.x == 0) device::store_release(given, block + 1);
    at.head = s.head;
    const int tile = s.tile;
    s.next();
    if (s.more()) load_queries(buffer ^ 1);
    const char* const queries = beside + buffer * Shape::kBufferBytes;
    const char* const grads = queries + Shape::kQueryBytes;
    const float* const numbers = reinterpret_cast<const float*>(grads + Shape::kQueryBytes);
    char* const changes = beside + 2 * Shape::kBufferBytes;

#pragma unroll 1
    for (int c = 0; c < kQueries; c += kColumns) {
      typename Shape::Halves halves;
      const int query = tile * kQueries + c;
      if (!p.causal || query + kColumns > warp_first) {
        at.query = query + lane % 4 * 2;
        const char* const queries_here = queries + c * kWidth * 2;
        const char* const grads_here = grads + c * kWidth * 2;
        const float* const numbers_here = numbers + c + lane % 4 * 2;
        typename Shape::Block weight, change;
        multiply_rows<S, Shape>(keys, queries_here, weight);
        if (!kPlain && a.scaled)
          each_element<Shape>(
              [&](int, int, int i, int j, int r) { weight[i][j][r] *= float(p.scale); });
        if (warp_last >= p.keys || (p.causal && query < warp_last)) hide_keys<Shape>(p, at, weight);
        if (!kPlain && p.mask_dtype) mask_block<Shape>(p, at, weight);
        each_element<Shape>([&](int, int column, int i, int j, int r) {
          weight[i][j][r] =
              device::fast_exp2(multiply_add(weight[i][j][r], a.factor, -numbers_here[column]));
        });
        Dropout<Shape> dropout = {};
        const bool drops = !kPlain && p.drop;
        if (drops) dropout.draw(p, at);
        if (drops) {
          each_element<Shape>([&](int, int, int i, int j, int r) {
            change[i][j][r] = dropout.has(i, j, r) ? weight[i][j][r] * float(p.keep_scale) : 0.0f;
          });
          round_block<S, Shape>(change, halves);
        } else {
          round_block<S, Shape>(weight, halves);
        }
        add_rows<S, Shape>(halves, grads_here, dv);
        multiply_rows<S, Shape>(values, grads_here, change);
        if (drops)
          each_element<Shape>([&](int, int, int i, int j, int r) {
            change[i][j][r] *= dropout.has(i, j, r) ? float(p.keep_scale) : 0.0f;
          });
        each_element<Shape>([&](int, int column, int i, int j, int r) {
          change[i][j][r] = weight[i][j][r] * (change[i][j][r] - numbers_here[kQueries + column]);
        });
        round_block<S, Shape>(change, halves);
        add_rows<S, Shape>(halves, queries_here, dk);
      } else {
#pragma unroll
        for (int i = 0; i < kRowTiles; i++) {
#pragma unroll
          for (int j = 0; j < kColumnTiles; j++) {
            halves[i][j][0] = 0;
            halves[i][j][1] = 0;
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kRowTiles; i++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
          const int row = warp_row + 16 * i + 8 * half + lane / 4;
#pragma unroll
          for (int j = 0; j < kColumnTiles; j++)
            *reinterpret_cast<uint32_t*>(changes +
                                         (pack_place<kQueries>(row, 0) ^ (c / 8 + j) * kPackBytes) +
                                         lane % 4 * 4) = halves[i][j][half];
        }
      }
    }
    const int64_t head = int64_t(at.batch) * p.heads + at.head;
    const int64_t at_tile = head * a.tiles + tile;
    if (block && threadIdx.x == kWarp) {
      while (device::load_acquire(a.turns + at_tile) != block) device::pause();
    }
    __syncthreads();
    QueryTile<S, Shape> sum;
    if (block) sum.load(a.sums, at_tile);
    else sum.clear();
    sum.add_product(changes, memory);
    const int last = p.causal ? int(least(a.blocks - 1, tile * kQueries / kKeys)) : a.blocks - 1;
    given = block < last ? a.turns + at_tile : nullptr;
    if (given) sum.store(a.sums, at_tile);
    else sum.store_result(p, head, tile * kQueries);
  }
  device::wait_for_copies<0>();
  if (given) {
    __syncthreads();
    if (threadIdx.x == 0) device::store_release(given, block + 1);
  }

  store_sum<S, Shape>(dk, p.dk + key_head * p.keys * p.width * 2, at.key, p.keys, int(p.width),
                      float(p.scale));
  store_sum<S, Shape>(dv, p.dv + key_head * p.keys * p.value_width * 2, at.key, p.keys,
                      int(p.value_width), 1.0f);
}

// shift and delta of kPadding queries of a head, of the padding such that the weights are 0; a lane
// has a pack of a row. Clears the turns of the block's queries.
template <class S, int kWidth> __global__ void __launch_bounds__(kTileThreads)
    flash_delta(const __grid_constant__ GradientArguments a, float* shift, float* delta) {
  constexpr int kLanes = kWidth / kPack;
  constexpr int kAtOnce = kTileThreads / kLanes;  // rows
  const AttentionPlan& p = a.p;
  const int blocks = a.padded / kPadding;
  const int head = int(blockIdx.x) / blocks;
  const int first = (int(blockIdx.x) - head * blocks) * kPadding;
  const int batch = head / int(p.heads);
  const int pack = int(threadIdx.x) % kLanes;
  const int present = int(p.value_width) - pack * kPack;
  const int64_t column = pack * kPackBytes;
  const char* const g =
      p.grad.p + batch * p.grad.batch + (head - batch * p.heads) * p.grad.head + column;
  const char* const o =
      p.out.p + batch * p.out.batch + (head - batch * p.heads) * p.out.head + column;
  const bool packed = a.grad_packed && a.out_packed;
  if (threadIdx.x < kPadding / kQueries) {
    const int tile = first / kQueries + int(threadIdx.x);
    if (tile < a.tiles) a.turns[int64_t(head) * a.tiles + tile] = 0;
    if (blockIdx.x == 0 && threadIdx.x == 0) *a.ticket = 0;
  }
#pragma unroll 4
  for (int i = int(threadIdx.x) / kLanes; i < kPadding; i += kAtOnce) {
    const int query = first + i;
    float sum = 0;
    if (query < p.queries) {
      struct alignas(16) Pack {
        S of[kPack];
      };
      const char* const g_row = g + query * p.grad.row;
      const char* const o_row = o + query * p.out.row;
      Pack x = {}, y = {};
      if (packed && present > 0) {
        x = *reinterpret_cast<const Pack*>(g_row);
        y = *reinterpret_cast<const Pack*>(o_row);
      }
      if (!packed) {
        for (int e = 0; e < kPack && e < present; e++) {
          x.of[e] = reinterpret_cast<const S*>(g_row)[e];
          y.of[e] = reinterpret_cast<const S*>(o_row)[e];
        }
      }
#pragma unroll
      for (int e = 0; e < kPack; e++) sum = multiply_add(widened(x.of[e]), widened(y.of[e]), sum);
    }
#pragma unroll
    for (int step = kLanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
    if (pack) continue;
    float lse = kMinusInfinity<float>;
    if (query < p.queries)
      lse = reinterpret_cast<const float*>(p.lse)[int64_t(head) * p.queries + query];
    const int64_t at = int64_t(head) * a.padded + query;
    shift[at] = lse == kMinusInfinity<float> ? kHighest<float> : lse * kLog2E;
    delta[at] = sum;
  }
}

int64_t padded_queries(const AttentionPlan& p) { return round_up(p.queries, int64_t(kPadding)); }
bool is_wide(const AttentionPlan& p) { return max(p.width, p.value_width) > GradientShape::kWidth; }

int32_t g_use_wgmma;

// The parts of the workspace, bytes from its beginning.
struct GradientLayout {
  int64_t shift, delta, turns, ticket, sums, bytes;
  explicit GradientLayout(const AttentionPlan& p) {
    const int64_t heads = p.batch * p.heads;
    const int64_t tiles = ceil_div(p.queries, int64_t(kQueries));
    shift = 0;
    delta = shift + heads * padded_queries(p) * 4;
    sums = delta + heads * padded_queries(p) * 4;
    turns = sums;
    if (cuda::flash::serves_wgmma(p))
      turns += heads * padded_queries(p) * (is_wide(p) ? 128 : 64) * 4;
    else if (!is_wide(p)) turns += heads * tiles * kQueries * GradientShape::kWidth * 4;
    ticket = turns + heads * tiles * 4;
    bytes = ticket + 4;
  }
};

template <class S> int32_t launch_gradients(GradientArguments& a, void* stream) {
  using Shape = GradientShape;
  const AttentionPlan& p = a.p;
  a.blocks = int32_t(ceil_div(p.keys, Shape::kKeys));
  const unsigned grid = unsigned(p.batch * p.key_heads * a.blocks);
  if (grid == 0) return TT_OK;
  const bool plain = !p.mask_dtype && !p.drop && !a.scaled;
  const auto kernel = plain ? flash_gradients<S, Shape, true> : flash_gradients<S, Shape, false>;
  return device::launch(kernel, grid, kTileThreads, Shape::kBytes, stream, a);
}

template <class S> int32_t launch_backward(const AttentionPlan& p, void* stream, void* workspace) {
  const GradientLayout layout(p);
  char* const memory = static_cast<char*>(workspace);
  GradientArguments a;
  a.p = p;
  a.padded = int32_t(padded_queries(p));
  a.tiles = int32_t(ceil_div(p.queries, int64_t(kQueries)));
  a.factor = factor_of(p, &a.scaled);
  a.q_packed = is_packed(p.q, p.width);
  a.k_packed = is_packed(p.k, p.width);
  a.v_packed = is_packed(p.v, p.value_width);
  a.grad_packed = is_packed(p.grad, p.value_width);
  a.out_packed = is_packed(p.out, p.value_width);
  float* const shift = reinterpret_cast<float*>(memory + layout.shift);
  float* const delta = reinterpret_cast<float*>(memory + layout.delta);
  a.shift = shift;
  a.delta = delta;
  a.sums = reinterpret_cast<float*>(memory + layout.sums);
  a.turns = reinterpret_cast<int32_t*>(memory + layout.turns);
  const unsigned grid = unsigned(p.batch * p.heads * (a.padded / kPadding));
  a.ticket = grid ? reinterpret_cast<int32_t*>(memory + layout.ticket) : nullptr;
  if (grid) {
    const auto kernel = is_wide(p) ? flash_delta<S, 128> : flash_delta<S, 64>;
    const int32_t status = device::launch(kernel, grid, kTileThreads, 0, stream, a, shift, delta);
    if (status != TT_OK) return status;
  }
  if (cuda::flash::serves_wgmma(p)) {
    if (is_wide(p)) return launch_groups<S, 128>(a, stream);
    return launch_groups<S, 64>(a, stream);
  }
  if (is_wide(p)) return launch_passes<S, 128>(a, stream);
  return launch_gradients<S>(a, stream);
}
}  // namespace

namespace cuda::flash {

bool serves_backward(const AttentionPlan& p) { return serves(p) && p.keys > kSide; }
int32_t backward(const AttentionPlan& p, void* stream, void* workspace) {
  if (p.dtype == TT_F16) return launch_backward<F16>(p, stream, workspace);
  return launch_backward<BF16>(p, stream, workspace);
}
bool serves_wgmma(const AttentionPlan& p) {
  if (!__atomic_load_n(&g_use_wgmma, __ATOMIC_RELAXED)) return false;
  bool scaled;
  factor_of(p, &scaled);
  const bool packed = is_packed(p.q, p.width) && is_packed(p.k, p.width) &&
                      is_packed(p.v, p.value_width) && is_packed(p.grad, p.value_width);
  if (p.mask_dtype || p.drop || scaled || !packed || p.queries == 0) return false;
  const auto kernel = group_gradients<BF16, GroupShape<64>>;
  return device::has_wgmma(reinterpret_cast<const void*>(kernel));
}
void use_wgmma(bool on) { __atomic_store_n(&g_use_wgmma, int32_t(on), __ATOMIC_RELAXED); }
size_t backward_workspace(const AttentionPlan& p) { return size_t(GradientLayout(p).bytes); }

}  // namespace cuda::flash
}  // namespace TT_NS
