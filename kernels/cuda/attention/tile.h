// Tiles of halves in shared memory for kernels with tensor cores: rows of kWidth halves in packs of
// 16 bytes, copied while the kernel computes. Pack i of row r is at place i ^ (r % 8), so that what
// ldmatrix reads at once, eight rows of one pack, is in all 32 banks.
//
// Thread (group, pair) of a warp has rows group and group + 8 of a result of mma.sync.m16n8k16,
// columns 2 pair and 2 pair + 1; r counts them.
#pragma once

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/matmul/async.h"
#include "kernels/cuda/matmul/mma.h"

namespace TT_NS {
namespace {

constexpr int kTileThreads = 128;
constexpr int kPackBytes = 16;
constexpr int kWarpRows = 32;  // two tiles of mma
constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;

// The rows of one head. packed: 16 bytes are copied at once.
struct TileRows {
  const char* p;
  int64_t step;  // bytes
  int32_t width;
  bool packed;

  __device__ __forceinline__ TileRows(const AttentionRows& r, int64_t batch, int64_t head,
                                      int64_t width_, bool packed_)
      : p(r.p + batch * r.batch + head * r.head),
        step(r.row),
        width(int32_t(width_)),
        packed(packed_) {}
};
inline bool is_packed(const AttentionRows& r, int64_t width, int64_t item = 2) {
  const uint64_t all = reinterpret_cast<uintptr_t>(r.p) | uint64_t(r.batch) | uint64_t(r.head) |
                       uint64_t(r.row) | uint64_t(width * item);
  return all % kPackBytes == 0;
}

template <int kWidth> __device__ __forceinline__ int pack_place(int row, int pack) {
  return row * kWidth * 2 + (pack ^ (row & 7)) * kPackBytes;
}

// Starts to copy rows first … first + kRows - 1 of those below `end`; zeros outside.
template <int kRows, int kWidth>
__device__ __forceinline__ void load_tile(char* tile, const TileRows& r, int64_t first,
                                          int64_t end) {
  constexpr int kAtOnce = kTileThreads / (kWidth / kPack);  // rows
  static_assert(kAtOnce % 8 == 0 && kRows % kAtOnce == 0);
  const int row = int(threadIdx.x) / (kWidth / kPack);
  const int pack = int(threadIdx.x) % (kWidth / kPack);
  char* const to = tile + pack_place<kWidth>(row, pack);
  const char* from = r.p + (first + row) * r.step + pack * kPackBytes;
  const int left = int(least(end - first, kRows)) - row;
  const int present = r.width - pack * kPack;
  if (r.packed) {
#pragma unroll
    for (int i = 0; i < kRows; i += kAtOnce) {
      device::copy_async(to + i * kWidth * 2, from, present > 0 && i < left);
      from += kAtOnce * r.step;
    }
    return;
  }
#pragma unroll 1
  for (int i = 0; i < kRows; i += kAtOnce) {
    uint16_t item[kPack];
#pragma unroll
    for (int k = 0; k < kPack; k++)
      item[k] = i < left && k < present ? reinterpret_cast<const uint16_t*>(from)[k] : uint16_t(0);
    __builtin_memcpy(__builtin_assume_aligned(to + i * kWidth * 2, kPackBytes), item, sizeof item);
    from += kAtOnce * r.step;
  }
}

// Starts to copy shift and then delta of kQueries queries, from number `first` on.
template <int kQueries> __device__ __forceinline__ void load_numbers(void* to, const float* shift,
                                                                     const float* delta,
                                                                     int64_t first) {
  const int t = int(threadIdx.x);
  if (t >= kQueries / 2) return;
  const float* const from = t < kQueries / 4 ? shift : delta;
  device::copy_async(static_cast<char*>(to) + t * kPackBytes, from + first + t % (kQueries / 4) * 4,
                     true);
}

// Where a lane reads fragments: 16 rows as left operands (along_rows: the places of columns 0 and 8
// are in lanes 0 and 16) or right ones (in lanes 0 and 8). Column 16 k of row i is at
// (place ^ 32 k) + i * kWidth * 2, i a multiple of 8.
template <int kWidth> __device__ __forceinline__ int fragment_place(bool along_rows) {
  const int lane = int(threadIdx.x) % kWarp;
  if (along_rows) return pack_place<kWidth>(lane % 16, lane / 16);
  return pack_place<kWidth>(lane / 16 * 8 + lane % 8, lane / 8 % 2);
}

// out = x y^T, of rows of kWidth: a warp's 16 kRowTiles rows of x and 8 kColumnTiles rows of y.
template <class S, class Shape>
__device__ __forceinline__ void multiply_rows(const char* x, const char* y,
                                              typename Shape::Block& out) {
  constexpr int kWidth = Shape::kWidth;
  const int left = fragment_place<kWidth>(true);
  const int right = fragment_place<kWidth>(false);
  clear(out);
#pragma unroll
  for (int k = 0; k < kWidth / 16; k++) {
    uint32_t u[Shape::kRowTiles][4];
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; i++)
      device::ldmatrix(u[i], x, (left ^ 32 * k) + i * 16 * kWidth * 2);
#pragma unroll
    for (int j = 0; j < Shape::kColumnTiles; j += 2) {
      uint32_t v[4];
      device::ldmatrix(v, y, (right ^ 32 * k) + j * 8 * kWidth * 2);
      const uint32_t even[2] = {v[0], v[1]};
      const uint32_t odd[2] = {v[2], v[3]};
#pragma unroll
      for (int i = 0; i < Shape::kRowTiles; i++) {
        mma<S>(out[i][j], u[i], even);
        mma<S>(out[i][j + 1], u[i], odd);
      }
    }
  }
}

// low in the lower half.
template <class S> __device__ __forceinline__ uint32_t two_halves(float low, float high) {
#if defined(__CUDA_ARCH__)
  uint32_t both;
  if constexpr (__is_same(S, F16)) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  }
  return both;
#else
  return uint32_t(narrowed<S>(low).bits) | uint32_t(narrowed<S>(high).bits) << 16;
#endif
}

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(kAllLanes, x, 1);
  return x + __shfl_xor_sync(kAllLanes, x, 2);
}
__device__ __forceinline__ float quad_max(float x) {
  x = ::fmaxf(x, __shfl_xor_sync(kAllLanes, x, 1));
  return ::fmaxf(x, __shfl_xor_sync(kAllLanes, x, 2));
}

// e^(score scale) = 2^(score factor) by one multiplication, where the largest score stays the
// largest; else scores are scaled first.
inline float factor_of(const AttentionPlan& p, bool* scaled) {
  *scaled = !(p.scale > 0) || (p.mask_dtype && p.mask_dtype != TT_BOOL);
  return *scaled ? kLog2E : float(p.scale * 1.4426950408889634);
}

// Applies an element of the mask.
__device__ __forceinline__ void mask_score(const char* m, int32_t dtype, float* score) {
  if (dtype == TT_BOOL) {
    *score = *m ? *score : kMinusInfinity<float>;
  } else if (dtype == TT_F32) {
    *score += *reinterpret_cast<const float*>(m);
  } else if (dtype == TT_F64) {
    *score += float(*reinterpret_cast<const double*>(m));
  } else {
    const uint16_t half = *reinterpret_cast<const uint16_t*>(m);
    *score += dtype == TT_F16 ? widen(F16{half}) : widen(BF16{half});
  }
}

// Word `i`, modulo 4, of a block.
__device__ __forceinline__ uint32_t word_of(const PhiloxBlock& random, int i) {
  const uint32_t low = i & 1 ? random.word[1] : random.word[0];
  const uint32_t high = i & 1 ? random.word[3] : random.word[2];
  return i & 2 ? high : low;
}

}  // namespace
}  // namespace TT_NS
