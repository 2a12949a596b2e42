// Attention of f16 and bf16 by tensor cores (Dao, "FlashAttention-2", ICLR 2024): a block has
// kFlashQueries queries of a head, each warp 32 of them, and goes through the keys by kSide.
//
//   queries  [kFlashQueries][kWidth], at last the results; in shared memory (tile.h)
//   keys     [2][kSide][kWidth], values [2][kSide][kWidth]: while one is read, the next is copied
//   score    [32 queries][kSide keys] of a warp, in registers: two neighbouring tiles of 8 keys,
//            rounded to halves, are the left operand of the product with the values
//   acc      [32 queries][kWidth columns of the values] of a warp, in registers
#include "kernels/cuda/attention/flash.h"

#include "kernels/cuda/attention/tile.h"

namespace TT_NS {
namespace {

constexpr int kFlashQueries = 128;
constexpr int kRowTiles = kWarpRows / 16;
constexpr int kKeyTiles = kSide / 8;
using Scores = float[kRowTiles][kKeyTiles][4];

template <int kWidth_> struct FlashShape {
  static constexpr int kWidth = kWidth_;
  static constexpr int kRowTiles = kWarpRows / 16;
  static constexpr int kColumnTiles = kKeyTiles;  // of scores
  using Block = Scores;
  static constexpr int kTileBytes = kSide * kWidth * 2;
  static constexpr int kQueryBytes = kFlashQueries * kWidth * 2;
  static constexpr int kBytes = kQueryBytes + 4 * kTileBytes;
  static constexpr int kBlocks = kWidth == 64 ? 3 : 2;  // of a multiprocessor
};

struct FlashArguments {
  AttentionPlan p;
  int32_t blocks;  // of queries
  float factor;    // weights are 2^(factor score - shift)
  bool scaled;     // scores are multiplied by the scale first
  bool q_packed, k_packed, v_packed, out_packed;
};

// 32 bits: registers are what limits the number of warps.
struct FlashBlock {
  int32_t batch, head;
  int32_t query, key;  // the thread's first query, the first key
};

// The maximum so far, and the thread's part of the sum of weights so far.
struct FlashRow {
  float maximum, sum;
};

// acc += weights v.
template <class S, int kWidth>
__device__ __forceinline__ void add_values(const Scores& weight, const char* values,
                                           float (&acc)[kRowTiles][kWidth / 8][4]) {
  const int right = fragment_place<kWidth>(true);  // of transposed tiles
#pragma unroll
  for (int k = 0; k < kSide / 16; k++) {
    uint32_t u[kRowTiles][4];
#pragma unroll
    for (int i = 0; i < kRowTiles; i++) {
      const float(&low)[4] = weight[i][2 * k];
      const float(&high)[4] = weight[i][2 * k + 1];
      u[i][0] = two_halves<S>(low[0], low[1]);
      u[i][1] = two_halves<S>(low[2], low[3]);
      u[i][2] = two_halves<S>(high[0], high[1]);
      u[i][3] = two_halves<S>(high[2], high[3]);
    }
#pragma unroll
    for (int j = 0; j < kWidth / 8; j += 2) {
      uint32_t v[4];
      device::ldmatrix_transposed(v, values, (right ^ 16 * j) + k * 16 * kWidth * 2);
      const uint32_t even[2] = {v[0], v[1]};
      const uint32_t odd[2] = {v[2], v[3]};
#pragma unroll
      for (int i = 0; i < kRowTiles; i++) {
        mma<S>(acc[i][j], u[i], even);
        mma<S>(acc[i][j + 1], u[i], odd);
      }
    }
  }
}

// Calls f(row tile, half of its rows, column, score) for the thread's scores.
template <class F> __device__ __forceinline__ void each_score(Scores& score, const F& f) {
  const int column = int(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int i = 0; i < kRowTiles; i++) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
#pragma unroll
      for (int j = 0; j < kKeyTiles; j++) {
#pragma unroll
        for (int c = 0; c < 2; c++) f(i, half, j * 8 + column + c, score[i][j][2 * half + c]);
      }
    }
  }
}

// Keys that are not there or come after the query.
__device__ __forceinline__ void hide_scores(const AttentionPlan& p, const FlashBlock& b,
                                            Scores& score) {
  const int first = int(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int i = 0; i < kRowTiles; i++) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int end = int(p.keys) - b.key;
      if (p.causal) end = int(least(end, b.query + 16 * i + 8 * half + 1 - b.key));
#pragma unroll
      for (int j = 0; j < kKeyTiles; j++) {
#pragma unroll
        for (int c = 0; c < 2; c++) {
          float& x = score[i][j][2 * half + c];
          x = j * 8 + c < end - first ? x : kMinusInfinity<float>;
        }
      }
    }
  }
}
__device__ __forceinline__ void mask_scores(const AttentionPlan& p, const FlashBlock& b,
                                            Scores& score) {
  const int keys = int(p.keys) - b.key;
  const char* const m = p.mask + b.batch * p.mask_batch + b.head * p.mask_head +
                        b.query * p.mask_query + b.key * p.mask_key;
  each_score(score, [&](int i, int half, int column, float& x) {
    const int row = 16 * i + 8 * half;
    if (b.query + row >= p.queries || column >= keys) return;
    mask_score(m + row * p.mask_query + column * p.mask_key, p.mask_dtype, &x);
  });
}

// Drops weights. A block of random words serves four columns, 16 apart.
__device__ __forceinline__ void drop_weights(const AttentionPlan& p, const FlashBlock& b,
                                             Scores& weight) {
  static_assert(kSide == 4 * kPhiloxGroup);
  const int column = int(threadIdx.x) % 4 * 2;
  const int64_t groups = (p.keys + kSide - 1) / kSide;
  const int64_t first = (int64_t(b.batch) * p.heads + b.head) * p.queries + b.query;
#pragma unroll
  for (int i = 0; i < kRowTiles; i++) {
    uint32_t kept = 0;  // bit 4 j + r
#pragma unroll 1
    for (int n = 0; n < 8; n++) {
      const int64_t row = first + 16 * i + 8 * (n >> 1 & 1);
      const uint64_t group = uint64_t(row * groups + b.key / kSide);
      const uint64_t counter =
          p.offset + group * kPhiloxGroup + uint64_t(n / 4 * 8 + column + (n & 1));
      const PhiloxBlock random = philox({{uint32_t(counter), uint32_t(counter >> 32), 0, 0}},
                                        uint32_t(p.seed), uint32_t(p.seed >> 32));
#pragma unroll
      for (int w = 0; w < 4; w++)
        kept |= uint32_t(int32_t(random.word[w] >> 8) < p.threshold) << (n + 8 * w);
    }
#pragma unroll
    for (int j = 0; j < kKeyTiles; j++) {
#pragma unroll
      for (int r = 0; r < 4; r++)
        weight[i][j][r] *= kept >> (4 * j + r) & 1 ? float(p.keep_scale) : 0.0f;
    }
  }
}

// Replaces the scores of a row by weights; returns what the earlier sums are multiplied with.
__device__ __forceinline__ float weigh(float (&score)[kKeyTiles][4], int half, float factor,
                                       FlashRow* row) {
  float maximum = row->maximum;
#pragma unroll
  for (int j = 0; j < kKeyTiles; j++)
    maximum = ::fmaxf(maximum, ::fmaxf(score[j][2 * half], score[j][2 * half + 1]));
  maximum = quad_max(maximum);
  const float shift = maximum == kMinusInfinity<float> ? 0.0f : maximum * factor;
  const float rescale = device::fast_exp2(row->maximum * factor - shift);
  float sum[2] = {row->sum * rescale, 0};
#pragma unroll
  for (int j = 0; j < kKeyTiles; j++) {
#pragma unroll
    for (int c = 0; c < 2; c++) {
      float& x = score[j][2 * half + c];
      x = device::fast_exp2(multiply_add(x, factor, -shift));
      sum[c] += x;
    }
  }
  row->maximum = maximum;
  row->sum = sum[0] + sum[1];
  return rescale;
}

// The results of a warp, through the place of its queries.
template <class S, int kWidth>
__device__ __forceinline__ void store_results(const FlashArguments& a, const FlashBlock& b,
                                              char* queries, const FlashRow (&row)[kRowTiles][2],
                                              float (&acc)[kRowTiles][kWidth / 8][4]) {
  const AttentionPlan& p = a.p;
  const int lane = int(threadIdx.x) % kWarp;
  const int64_t head = int64_t(b.batch) * p.heads + b.head;
  const int first = b.query - lane / 4;  // of the warp
  const int queries_left = int(p.queries) - first;
  __syncwarp();  // the queries have been read
#pragma unroll
  for (int i = 0; i < kRowTiles; i++) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int at = 16 * i + 8 * half + lane / 4;
      const float sum = quad_sum(row[i][half].sum);
      const float factor = sum == 0 ? 0.0f : 1.0f / sum;
#pragma unroll
      for (int j = 0; j < kWidth / 8; j++) {
        const float low = sum == 0 ? 0.0f : acc[i][j][2 * half] * factor;
        const float high = sum == 0 ? 0.0f : acc[i][j][2 * half + 1] * factor;
        *reinterpret_cast<uint32_t*>(queries + pack_place<kWidth>(at, j) + lane % 4 * 4) =
            two_halves<S>(low, high);
      }
      if (lane % 4 == 0 && at < queries_left) {
        const float lse = row[i][half].maximum * a.factor * kLn2 + math::log(sum);
        reinterpret_cast<float*>(p.lse)[head * p.queries + first + at] =
            sum == 0 ? kMinusInfinity<float> : lse;
      }
    }
  }
  __syncwarp();
  char* const out = p.out.p + b.batch * p.out.batch + b.head * p.out.head;
  constexpr int kPacks = kWidth / kPack;
  const int pack = lane % kPacks;
#pragma unroll 4
  for (int i = lane / kPacks; i < kWarpRows; i += kWarp / kPacks) {
    if (i >= queries_left) continue;
    const char* from = queries + pack_place<kWidth>(i, pack);
    char* const to = out + (first + i) * p.out.row + pack * kPackBytes;
    const int present = int(p.value_width) - pack * kPack;
    if (a.out_packed && present > 0)
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    if (a.out_packed) continue;
    for (int k = 0; k < kPack && k < present; k++)
      reinterpret_cast<uint16_t*>(to)[k] = reinterpret_cast<const uint16_t*>(from)[k];
  }
}

// kPlain: no mask, no dropout, not `scaled`.
template <class S, int kWidth, bool kPlain>
__global__ void __launch_bounds__(kTileThreads, kPlain ? FlashShape<kWidth>::kBlocks : 2)
    flash_forward(const __grid_constant__ FlashArguments a) {
  using Shape = FlashShape<kWidth>;
  TT_SHARED_DYNAMIC(char, memory);
  const AttentionPlan& p = a.p;
  const int head = int(blockIdx.x) / a.blocks;
  FlashBlock b;
  b.batch = head / int(p.heads);
  b.head = head - b.batch * int(p.heads);
  // The last queries of a head have most keys: they come first.
  b.query = (a.blocks - 1 - (int(blockIdx.x) - head * a.blocks)) * kFlashQueries;
  const int key_head = b.head / (int(p.heads) / int(p.key_heads));
  const int end = int(p.causal ? least(p.keys, b.query + kFlashQueries) : p.keys);
  const TileRows k(p.k, b.batch, key_head, p.width, a.k_packed);
  const TileRows v(p.v, b.batch, key_head, p.value_width, a.v_packed);
  char* const keys = memory + Shape::kQueryBytes;
  char* const values = keys + 2 * Shape::kTileBytes;
  load_tile<kFlashQueries, kWidth>(memory, TileRows(p.q, b.batch, b.head, p.width, a.q_packed),
                                   b.query, p.queries);
  load_tile<kSide, kWidth>(keys, k, 0, end);
  load_tile<kSide, kWidth>(values, v, 0, end);
  device::commit_copies();

  const int warp_row = int(threadIdx.x) / kWarp * kWarpRows;
  char* const queries = memory + warp_row * kWidth * 2;
  b.query += warp_row;
  const int last = b.query + kWarpRows - 1;  // of the warp
  b.query += int(threadIdx.x) % kWarp / 4;
  float acc[kRowTiles][kWidth / 8][4];
  FlashRow row[kRowTiles][2];
  clear(acc);
#pragma unroll
  for (int i = 0; i < kRowTiles; i++) {
#pragma unroll
    for (int half = 0; half < 2; half++) row[i][half] = {kMinusInfinity<float>, 0};
  }

  int buffer = 0;
  for (b.key = 0; b.key < end; b.key += kSide) {
    device::wait_for_copies<0>();
    __syncthreads();
    const char* const these_keys = keys + buffer * Shape::kTileBytes;
    const char* const these_values = values + buffer * Shape::kTileBytes;
    buffer ^= 1;
    if (b.key + kSide < end) {
      load_tile<kSide, kWidth>(keys + buffer * Shape::kTileBytes, k, b.key + kSide, end);
      load_tile<kSide, kWidth>(values + buffer * Shape::kTileBytes, v, b.key + kSide, end);
      device::commit_copies();
    }
    if (p.causal && b.key > last) continue;

    Scores score;
    multiply_rows<S, Shape>(queries, these_keys, score);
    if (!kPlain && a.scaled)
      each_score(score, [&](int, int, int, float& x) { x *= float(p.scale); });
    const bool is_diagonal = p.causal && b.key + kSide > last - kWarpRows + 2;
    if (b.key + kSide > p.keys || is_diagonal) hide_scores(p, b, score);
    if (!kPlain && p.mask_dtype) mask_scores(p, b, score);
    bool changes = false;
    float rescale[kRowTiles][2];
#pragma unroll
    for (int i = 0; i < kRowTiles; i++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        rescale[i][half] = weigh(score[i], half, a.factor, &row[i][half]);
        changes = changes || rescale[i][half] != 1.0f;
      }
    }
    if (__any_sync(kAllLanes, changes)) {
#pragma unroll
      for (int i = 0; i < kRowTiles; i++) {
#pragma unroll
        for (int j = 0; j < kWidth / 8; j++) {
#pragma unroll
          for (int r = 0; r < 4; r++) acc[i][j][r] *= rescale[i][r >> 1];
        }
      }
    }
    if (!kPlain && p.drop) drop_weights(p, b, score);
    add_values<S, kWidth>(score, these_values, acc);
  }
  if (end <= 0) {  // no key: what waits are the queries
    device::wait_for_copies<0>();
    __syncthreads();
  }
  store_results<S, kWidth>(a, b, queries, row, acc);
}

template <class S, int kWidth> int32_t launch_flash(const AttentionPlan& p, void* stream) {
  FlashArguments a;
  a.p = p;
  a.blocks = int32_t(ceil_div(p.queries, kFlashQueries));
  a.factor = factor_of(p, &a.scaled);
  a.q_packed = is_packed(p.q, p.width);
  a.k_packed = is_packed(p.k, p.width);
  a.v_packed = is_packed(p.v, p.value_width);
  a.out_packed = is_packed(p.out, p.value_width);
  const unsigned grid = unsigned(p.batch * p.heads * a.blocks);
  const bool plain = !p.mask_dtype && !p.drop && !a.scaled;
  const auto kernel = plain ? flash_forward<S, kWidth, true> : flash_forward<S, kWidth, false>;
  return device::launch(kernel, grid, kTileThreads, FlashShape<kWidth>::kBytes, stream, a);
}
template <class S> int32_t launch_forward(const AttentionPlan& p, void* stream) {
  if (max(p.width, p.value_width) <= 64) return launch_flash<S, 64>(p, stream);
  return launch_flash<S, 128>(p, stream);
}

}  // namespace

namespace cuda::flash {

bool fits(const AttentionPlan& p) {
  const bool is_short = max(p.queries, p.keys) <= kFlashLength && p.batch * p.heads <= kFlashLength;
  return is_short && max(p.width, p.value_width) <= kFlashWidth;
}
bool serves(const AttentionPlan& p) { return (p.dtype == TT_F16 || p.dtype == TT_BF16) && fits(p); }
int32_t forward(const AttentionPlan& p, void* stream) {
  if (p.dtype == TT_F16) return launch_forward<F16>(p, stream);
  return launch_forward<BF16>(p, stream);
}

}  // namespace cuda::flash
}  // namespace TT_NS
