// Attention of f16 and bf16 by tensor cores (Dao, "FlashAttention-2", ICLR 2024): a warp computes
// 16 queries of a block of kSide, by blocks of kSide keys.
//
//   keys     [key][kWidth], then values, transposed: [column][key]; in shared memory
//   query    the warp's 16 queries: fragments of mma.sync.m16n8k16, in registers
//   score    [16 queries][kSide keys]: tile j of 8 keys is a result of mma; two neighbouring tiles,
//            rounded to halves, are the left operand of the product with the values
//   acc      [16 queries][kWidth columns of the values]
//
// Thread (group, pair) of a warp has rows group and group + 8 of a tile, columns 2 pair and
// 2 pair + 1; r counts them.
#include "kernels/cuda/attention/flash.h"

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/matmul/mma.h"

namespace TT_NS {
namespace {

constexpr int kFlashThreads = kSide / 16 * kWarp;
constexpr int kKeyTiles = kSide / 8;

template <int kWidth> struct alignas(16) FlashKeys { uint16_t row[kSide][kWidth + kPack]; };
template <int kWidth> struct alignas(16) FlashValues { uint16_t row[kWidth][kSide + kPack]; };

// kPack halves from column d of row i; zeros outside.
template <class S>
__device__ __forceinline__ uint4 pack_of(const Rows<S>& r, bool packs, int i, int d) {
  uint4 pack = {0, 0, 0, 0};
  if (i >= r.n || d >= r.width) return pack;
  const char* at = r.p + i * r.step + d * int(sizeof(S));
  if (packs && d + kPack <= r.width) return *reinterpret_cast<const uint4*>(at);
  uint16_t item[kPack];
#pragma unroll
  for (int k = 0; k < kPack; k++)
    item[k] = d + k < r.width ? reinterpret_cast<const uint16_t*>(at)[k] : uint16_t(0);
  __builtin_memcpy(&pack, item, sizeof pack);
  return pack;
}
template <class S> __device__ __forceinline__ bool has_packs(const Rows<S>& r) {
  return (uint64_t(reinterpret_cast<uintptr_t>(r.p)) | uint64_t(r.step)) % 16 == 0;
}

template <int kWidth, class S>
__device__ __forceinline__ void load_keys(FlashKeys<kWidth>& shared, const Rows<S>& r) {
  const bool packs = has_packs(r);
#pragma unroll 4
  for (int e = 0; e < kSide * kWidth / kPack / kFlashThreads; e++) {
    const int item = e * kFlashThreads + int(threadIdx.x);
    const int i = item / (kWidth / kPack);
    const int d = item % (kWidth / kPack) * kPack;
    *reinterpret_cast<uint4*>(&shared.row[i][d]) = pack_of(r, packs, i, d);
  }
}
template <int kWidth, class S>
__device__ __forceinline__ void load_values(FlashValues<kWidth>& shared, const Rows<S>& r) {
  const bool packs = has_packs(r);
#pragma unroll 2
  for (int e = 0; e < kSide * kWidth / kPack / kFlashThreads; e++) {
    const int item = e * kFlashThreads + int(threadIdx.x);
    const int i = item % kSide;
    const int d = item / kSide * kPack;
    const uint4 pack = pack_of(r, packs, i, d);
    uint16_t value[kPack];
    __builtin_memcpy(value, &pack, sizeof pack);
#pragma unroll
    for (int k = 0; k < kPack; k++) shared.row[d + k][i] = value[k];
  }
}

template <class S> __device__ __forceinline__ uint32_t halves_of(float low, float high) {
  return uint32_t(narrowed<S>(low).bits) | uint32_t(narrowed<S>(high).bits) << 16;
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(kAllLanes, x, 1);
  return x + __shfl_xor_sync(kAllLanes, x, 2);
}
__device__ __forceinline__ float quad_max(float x) {
#pragma unroll
  for (int other = 1; other <= 2; other *= 2) {
    const float y = __shfl_xor_sync(kAllLanes, x, other);
    x = y > x || y != y ? y : x;
  }
  return x;
}

// The maximum and the sum of exp(score - shift) so far, of a thread's two rows; each thread of four
// has a part of the sum.
struct FlashRow {
  float maximum, sum;
};

// Replaces the scores of a row by exp(score - shift); returns what the earlier sums are multiplied
// with. half: the row's place in a tile, 0 or 1.
__device__ __forceinline__ float exponentials(float (&score)[kKeyTiles][4], int half,
                                              FlashRow* row) {
  float maximum = score[0][2 * half];
#pragma unroll
  for (int j = 0; j < kKeyTiles; j++) {
#pragma unroll
    for (int c = 0; c < 2; c++) {
      const float x = score[j][2 * half + c];
      maximum = x > maximum || x != x ? x : maximum;
    }
  }
  maximum = quad_max(maximum);
  if (!(maximum > row->maximum) && maximum == maximum) maximum = row->maximum;
  const float shift = maximum == kMinusInfinity<float> ? 0.0f : maximum;
  const float rescale = math::exp(row->maximum - shift);
  float sum = 0;
#pragma unroll
  for (int j = 0; j < kKeyTiles; j++) {
#pragma unroll
    for (int c = 0; c < 2; c++) {
      float& x = score[j][2 * half + c];
      x = math::exp(x - shift);
      sum += x;
    }
  }
  row->maximum = maximum;
  row->sum = row->sum * rescale + sum;
  return rescale;
}

template <class S, int kWidth> __global__ void __launch_bounds__(kFlashThreads)
    flash_forward(const __grid_constant__ AttentionPlan p, int64_t blocks) {
  using Keys = FlashKeys<kWidth>;
  using Values = FlashValues<kWidth>;
  constexpr int kSteps = kWidth / 16;
  constexpr int kTiles = kWidth / 8;
  TT_SHARED(Keys, keys, 1);
  TT_SHARED(Values, values, 1);
  const int64_t head = quotient(blockIdx.x, blocks);
  AttentionBlock b;
  b.batch = quotient(head, p.heads);
  b.head = head - b.batch * p.heads;
  b.query = (blockIdx.x - head * blocks) * kSide;
  const int64_t key_head = quotient(b.head, quotient(p.heads, p.key_heads));
  const int64_t queries = least(kSide, p.queries - b.query);
  const int64_t end = p.causal ? least(p.keys, b.query + queries) : p.keys;
  const int lane = int(threadIdx.x) % kWarp;
  const int first = int(threadIdx.x) / kWarp * 16 + lane / 4;  // of the thread's rows
  const int pair = lane % 4;

  uint32_t query[kSteps][4];
  load_keys<kWidth>(keys[0], Rows<S>(p.q, b.batch, b.head, b.query, p.queries, p.width));
  __syncthreads();
#pragma unroll
  for (int q = 0; q < kSteps; q++) {
#pragma unroll
    for (int r = 0; r < 4; r++)
      query[q][r] = word_at(&keys[0].row[first + 8 * (r & 1)][q * 16 + 2 * pair + 8 * (r >> 1)]);
  }
  float acc[kTiles][4];
#pragma unroll
  for (int j = 0; j < kTiles; j++) {
#pragma unroll
    for (int r = 0; r < 4; r++) acc[j][r] = 0;
  }
  FlashRow row[2] = {{kMinusInfinity<float>, 0}, {kMinusInfinity<float>, 0}};

  for (b.key = 0; b.key < end; b.key += kSide) {
    __syncthreads();
    load_keys<kWidth>(keys[0], Rows<S>(p.k, b.batch, key_head, b.key, p.keys, p.width));
    load_values<kWidth>(values[0], Rows<S>(p.v, b.batch, key_head, b.key, p.keys, p.value_width));
    __syncthreads();

    float score[kKeyTiles][4];
#pragma unroll
    for (int j = 0; j < kKeyTiles; j++) {
#pragma unroll
      for (int r = 0; r < 4; r++) score[j][r] = 0;
    }
#pragma unroll
    for (int q = 0; q < kSteps; q++) {
#pragma unroll
      for (int j = 0; j < kKeyTiles; j++) {
        const uint16_t* at = &keys[0].row[j * 8 + lane / 4][q * 16 + 2 * pair];
        const uint32_t v[2] = {word_at(at), word_at(at + 8)};
        mma<S>(score[j], query[q], v);
      }
    }
    const bool whole = b.key + kSide <= p.keys && b.query + kSide <= p.queries &&
                       (!p.causal || b.key + kSide <= b.query + 1);
    const bool plain = whole && !p.mask_dtype;
#pragma unroll
    for (int j = 0; j < kKeyTiles; j++) {
#pragma unroll
      for (int r = 0; r < 4; r++) {
        const int column = j * 8 + 2 * pair + (r & 1);
        score[j][r] = plain ? score[j][r] * float(p.scale)
                            : score_of(p, b, first + 8 * (r >> 1), column, score[j][r]);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const float rescale = exponentials(score, half, &row[half]);
#pragma unroll
      for (int j = 0; j < kTiles; j++) {
        acc[j][2 * half] *= rescale;
        acc[j][2 * half + 1] *= rescale;
      }
    }
    if (p.drop) {
#pragma unroll
      for (int j = 0; j < kKeyTiles; j++) {
#pragma unroll
        for (int r = 0; r < 4; r++)
          score[j][r] *= keep_factor<float>(p, b, first + 8 * (r >> 1), j * 8 + 2 * pair + (r & 1));
      }
    }
#pragma unroll
    for (int k = 0; k < kSide / 16; k++) {
      const float(&low)[4] = score[2 * k];
      const float(&high)[4] = score[2 * k + 1];
      const uint32_t u[4] = {halves_of<S>(low[0], low[1]), halves_of<S>(low[2], low[3]),
                             halves_of<S>(high[0], high[1]), halves_of<S>(high[2], high[3])};
#pragma unroll
      for (int j = 0; j < kTiles; j++) {
        const uint16_t* at = &values[0].row[j * 8 + lane / 4][k * 16 + 2 * pair];
        const uint32_t v[2] = {word_at(at), word_at(at + 8)};
        mma<S>(acc[j], u, v);
      }
    }
  }

#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int i = first + 8 * half;
    const float sum = quad_sum(row[half].sum);
    if (i >= queries) continue;
    const float factor = sum == 0 ? 0.0f : 1.0f / sum;
    S* const out = reinterpret_cast<S*>(p.out.p + b.batch * p.out.batch + b.head * p.out.head +
                                        (b.query + i) * p.out.row);
#pragma unroll
    for (int j = 0; j < kTiles; j++) {
#pragma unroll
      for (int c = 0; c < 2; c++) {
        const int column = j * 8 + 2 * pair + c;
        if (column < p.value_width)
          out[column] = narrowed<S>(sum == 0 ? 0.0f : acc[j][2 * half + c] * factor);
      }
    }
    if (pair == 0)
      reinterpret_cast<float*>(p.lse)[head * p.queries + b.query + i] =
          sum == 0 ? kMinusInfinity<float> : row[half].maximum + math::log(sum);
  }
}

template <class S, int kWidth> int32_t launch_flash(const AttentionPlan& p, void* stream) {
  const int64_t blocks = ceil_div(p.queries, kSide);
  const unsigned grid = unsigned(p.batch * p.heads * blocks);
  return device::launch(flash_forward<S, kWidth>, grid, kFlashThreads, 0, stream, p, blocks);
}
template <class S> int32_t launch_forward(const AttentionPlan& p, void* stream) {
  const int64_t width = max(p.width, p.value_width);
  if (width <= 32) return launch_flash<S, 32>(p, stream);
  if (width <= 64) return launch_flash<S, 64>(p, stream);
  return launch_flash<S, 128>(p, stream);
}

}  // namespace

namespace cuda::flash {

bool serves(const AttentionPlan& p) {
  const bool half = p.dtype == TT_F16 || p.dtype == TT_BF16;
  return half && max(p.width, p.value_width) <= kFlashWidth;
}
int32_t forward(const AttentionPlan& p, void* stream) {
  if (p.dtype == TT_F16) return launch_forward<F16>(p, stream);
  return launch_forward<BF16>(p, stream);
}

}  // namespace cuda::flash
}  // namespace TT_NS
