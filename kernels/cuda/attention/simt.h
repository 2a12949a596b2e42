// Attention of floats without tensor cores: tiles in shared memory, and products of them with a
// block of results in the registers of each thread.
//
// A strip is [rows][32] numbers in packs of four. Pack i of row r is at place i ^ swizzle(r / 4):
// threads that read one pack of rows 4 apart, or the packs of one row, use different banks. A tile
// of wider rows is one strip after the other.
//
// Lanes of a warp are (few, many) of 4 x 8. Lanes that read the same place are one or two apart,
// which is when hardware reads 16 bytes for half a warp at once.
#pragma once

#include "kernels/cuda/attention/tile.h"

namespace TT_NS {
namespace {

constexpr int kStrip = 32;      // numbers of a row
constexpr int kStripPacks = 8;  // of four numbers

struct alignas(16) Four {
  float of[4];
};
__device__ __forceinline__ Four four_at(const float* p) {
  return *reinterpret_cast<const Four*>(p);
}

__device__ __forceinline__ int swizzle(int t) { return (t ^ t << 2) & 7; }
__device__ __forceinline__ int strip_place(int row, int pack) {
  return row * kStrip + (pack ^ swizzle(row >> 2)) * 4;
}

struct SimtLane {
  int few, many, warp;
};
__device__ __forceinline__ SimtLane simt_lane() {
  const int lane = int(threadIdx.x) % kWarp;
  return {(lane & 1) | (lane >> 4 & 1) << 1, lane >> 1 & 7, int(threadIdx.x) / kWarp};
}

// Starts to copy 32 columns of the kRows rows from `first` on that are below `end`; zeros outside.
template <int kRows> __device__ __forceinline__ void load_strip(float* strip, const TileRows& r,
                                                                int64_t first, int64_t end,
                                                                int column) {
  constexpr int kAtOnce = kTileThreads / kStripPacks;
  static_assert(kRows % kAtOnce == 0);
  const int pack = int(threadIdx.x) % kStripPacks;
  const int row = int(threadIdx.x) / kStripPacks;
  const int left = int(least(end - first, kRows)) - row;
  const int present = r.width - column - 4 * pack;
  const char* from = r.p + (first + row) * r.step + (column + 4 * pack) * int(sizeof(float));
#pragma unroll
  for (int i = 0; i < kRows; i += kAtOnce) {
    device::copy_async(strip + strip_place(row + i, pack), from, present > 0 && i < left);
    from += kAtOnce * r.step;
  }
}

// sum[i][j] += row i of a · row j of b, along a strip. Place g is that of pack 0 of the thread's
// group g of four rows.
template <int kA, int kB>
__device__ __forceinline__ void add_dots(const float* a, const int (&a_place)[kA / 4],
                                         const float* b, const int (&b_place)[kB / 4],
                                         float (&sum)[kA][kB]) {
#pragma unroll 1
  for (int k = 0; k < kStripPacks; k++) {
    Four u[kA];
#pragma unroll
    for (int i = 0; i < kA; i++) u[i] = four_at(a + (a_place[i / 4] ^ 4 * k) + i % 4 * kStrip);
#pragma unroll
    for (int j = 0; j < kB; j++) {
      const Four v = four_at(b + (b_place[j / 4] ^ 4 * k) + j % 4 * kStrip);
#pragma unroll
      for (int e = 0; e < 4; e++) {
#pragma unroll
        for (int i = 0; i < kA; i++) sum[i][j] = multiply_add(u[i].of[e], v.of[e], sum[i][j]);
      }
    }
  }
}

// sum[i][j] += sum over k of x[row i][k] y[k][column j], over `packs` packs of columns of x from
// pack `first` on. Columns 4 g … of the thread are a pack of strip g of y.
template <int kA, int kB>
__device__ __forceinline__ void add_rows(const float* x, const int (&x_place)[kA / 4], int first,
                                         int packs, const float* y, int y_pack, int y_strip,
                                         float (&sum)[kA][kB]) {
#pragma unroll 1
  for (int k = 0; k < packs; k++) {
    Four u[kA];
#pragma unroll
    for (int i = 0; i < kA; i++)
      u[i] = four_at(x + (x_place[i / 4] ^ 4 * (first + k)) + i % 4 * kStrip);
    const float* const row = y + strip_place(4 * k, y_pack);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      Four v[kB / 4];
#pragma unroll
      for (int g = 0; g < kB / 4; g++) v[g] = four_at(row + e * kStrip + g * y_strip);
#pragma unroll
      for (int i = 0; i < kA; i++) {
#pragma unroll
        for (int j = 0; j < kB; j++)
          sum[i][j] = multiply_add(u[i].of[e], v[j / 4].of[j % 4], sum[i][j]);
      }
    }
  }
}

// sum[i][j] += sum over rows 4 first … kDepth - 1 of x[row][column i] y[row][column j]. Columns
// 4 g … of x are pack x_pack + 4 g, those of y are pack y_pack of strip g.
template <int kDepth, int kA, int kB>
__device__ __forceinline__ void add_columns(const float* x, int x_pack, const float* y, int y_pack,
                                            int first, float (&sum)[kA][kB]) {
#pragma unroll 1
  for (int k = first; k < kDepth / 4; k++) {
    const float* const y_row = y + strip_place(4 * k, y_pack);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      Four u[kA / 4], v[kB / 4];
#pragma unroll
      for (int g = 0; g < kA / 4; g++)
        u[g] = four_at(x + strip_place(4 * k, x_pack + 4 * g) + e * kStrip);
#pragma unroll
      for (int g = 0; g < kB / 4; g++) v[g] = four_at(y_row + e * kStrip + g * kDepth * kStrip);
#pragma unroll
      for (int i = 0; i < kA; i++) {
#pragma unroll
        for (int j = 0; j < kB; j++)
          sum[i][j] = multiply_add(u[i / 4].of[i % 4], v[j / 4].of[j % 4], sum[i][j]);
      }
    }
  }
}

// Where the scores of a thread are in a block of kQueries queries: rows row + row_step g + 0 … 3,
// columns key + key_step g + 0 … 3.
template <int kQueries> struct SimtPlace {
  int row, row_step, key, key_step;

  __device__ __forceinline__ int query_of(int i) const { return row + i / 4 * row_step + i % 4; }
  __device__ __forceinline__ int key_of(int j) const { return key + j / 4 * key_step + j % 4; }
  // Where the pack of columns j … j + 3 of row i is.
  __device__ __forceinline__ int at(int i, int j) const {
    const int column = key_of(j);
    return column / kStrip * kQueries * kStrip + strip_place(query_of(i), column % kStrip / 4);
  }
  template <int kA, int kB>
  __device__ __forceinline__ void store(float* to, const float (&x)[kA][kB]) const {
#pragma unroll
    for (int i = 0; i < kA; i++) {
#pragma unroll
      for (int j = 0; j < kB; j += 4) {
        const Four item = {{x[i][j], x[i][j + 1], x[i][j + 2], x[i][j + 3]}};
        *reinterpret_cast<Four*>(to + at(i, j)) = item;
      }
    }
  }
  template <int kA, int kB>
  __device__ __forceinline__ void load(const float* from, float (&x)[kA][kB]) const {
#pragma unroll
    for (int i = 0; i < kA; i++) {
#pragma unroll
      for (int j = 0; j < kB; j += 4) {
        const Four item = four_at(from + at(i, j));
#pragma unroll
        for (int e = 0; e < 4; e++) x[i][j + e] = item.of[e];
      }
    }
  }
  // x = f(row, column, x) of each, through `memory`, which keeps the code short.
  template <int kA, int kB, class F>
  __device__ __forceinline__ void change(float* memory, float (&x)[kA][kB], const F& f) const {
    store(memory, x);
#pragma unroll 1
    for (int n = 0; n < kA * kB; n++) {
      const int i = n / kB;
      const int j = n % kB;
      float* const item = memory + at(i, j - j % 4) + j % 4;
      *item = f(query_of(i), key_of(j), *item);
    }
    load(memory, x);
  }
};

// The places of pack 0 of a thread's groups of four rows: of its queries, or of its keys.
template <int kQueries, int kGroups>
__device__ __forceinline__ void query_places(const SimtPlace<kQueries>& place,
                                             int (&out)[kGroups]) {
#pragma unroll
  for (int g = 0; g < kGroups; g++) out[g] = strip_place(place.query_of(4 * g), 0);
}
template <int kQueries, int kGroups>
__device__ __forceinline__ void key_places(const SimtPlace<kQueries>& place, int (&out)[kGroups]) {
#pragma unroll
  for (int g = 0; g < kGroups; g++) out[g] = strip_place(place.key_of(4 * g), 0);
}

// Starts to copy all strips of the rows from `first` on.
template <int kRows, int kStrips>
__device__ __forceinline__ void load_strips(float* tile, const TileRows& r, int64_t first,
                                            int64_t end) {
#pragma unroll
  for (int s = 0; s < kStrips; s++)
    load_strip<kRows>(tile + s * kRows * kStrip, r, first, end, s * kStrip);
}

// Stores columns of a row of results, four of each strip from column 4 many on, as f(strip, e)
// gives them for e from 0 to 3.
template <int kStrips, class F>
__device__ __forceinline__ void store_strips(float* row, int many, int64_t width, const F& f) {
#pragma unroll
  for (int s = 0; s < kStrips; s++) {
    Four item;
#pragma unroll
    for (int e = 0; e < 4; e++) item.of[e] = f(s, e);
    const int column = s * kStrip + 4 * many;
    if (column < width) *reinterpret_cast<Four*>(row + column) = item;
  }
}

struct SimtArguments {
  AttentionPlan p;
  int32_t blocks;             // of queries, or of keys
  int32_t padded;             // queries, backward
  int32_t splits;             // of the keys, backward
  float factor;               // weights are 2^(factor score - shift)
  bool scaled;                // scores are scaled and masked one by one
  float *shift, *delta, *dq;  // backward
};
inline SimtArguments simt_arguments(const AttentionPlan& p) {
  SimtArguments a = {};
  a.p = p;
  a.factor = float(p.scale * 1.4426950408889634);
  a.scaled = p.mask_dtype || !(a.factor > 0);
  if (a.scaled) a.factor = kLog2E;
  return a;
}

// Scores that take no part become -infinity.
template <int kQueries, int kA, int kB>
__device__ __forceinline__ void finish_scores(const SimtArguments& a, const AttentionBlock& b,
                                              const SimtPlace<kQueries>& place, float* memory,
                                              float (&score)[kA][kB]) {
  const AttentionPlan& p = a.p;
  if (a.scaled) {
    place.change(memory, score, [&](int row, int column, float x) {
      return score_of<float>(p, b, row, column, x);
    });
    return;
  }
  const bool is_edge = b.key + kSide > p.keys;
  const bool is_diagonal = p.causal && b.key + kSide > b.query + 1;
  if (!is_edge && !is_diagonal) return;
#pragma unroll
  for (int i = 0; i < kA; i++) {
    int end = int(p.keys - b.key);
    if (p.causal) end = int(least(end, b.query - b.key + place.query_of(i) + 1));
#pragma unroll
    for (int j = 0; j < kB; j++)
      score[i][j] = place.key_of(j) < end ? score[i][j] : kMinusInfinity<float>;
  }
}

// The packs of n keys, of which `left` are the first that matter.
__device__ __forceinline__ int packs_of(int left, int n) {
  const int most = left < n ? left : n;
  return most > 0 ? (most + 3) / 4 : 0;
}

// Two bits of the block: warps with less to do are others in other blocks.
__device__ __forceinline__ int block_turn() { return int(blockIdx.x * 0x9E3779B1u >> 30); }

// Adds up, or finds the maximum of, the eight lanes `many`.
__device__ __forceinline__ float many_sum(float x) {
#pragma unroll
  for (int other = 2; other < 16; other *= 2) x += __shfl_xor_sync(kAllLanes, x, other);
  return x;
}
__device__ __forceinline__ float many_max(float x) {
#pragma unroll
  for (int other = 2; other < 16; other *= 2) x = ::fmaxf(x, __shfl_xor_sync(kAllLanes, x, other));
  return x;
}

}  // namespace
}  // namespace TT_NS
