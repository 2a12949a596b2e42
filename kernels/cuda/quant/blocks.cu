// Rows packed in blocks of 32 numbers with a scale (plan/quant_plan.h): a lane of a warp for each
// number of a block. Packed bytes are those of the CPU, whose arithmetic this is.
//
//   input    (n, k), of block_linear (m, k), m <= kBlockRows
//   packed   (n, k / 32 blocks)
//   out      (n, k), of block_linear (m, n)
#include <math.h>

#include "kernels/cuda/convert.h"
#include "kernels/cuda/nest.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/warp.h"
#include "plan/quant_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
static_assert(kBlockItems == kWarp);

__device__ __forceinline__ int lane_here() { return int(threadIdx.x) % kWarp; }
__device__ __forceinline__ int64_t first_warp() {
  return int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
}
__device__ __forceinline__ int64_t warp_step() { return int64_t(gridDim.x) * kWarps; }

__device__ __forceinline__ int64_t bytes_of(int32_t format) {
  return format == kQ8Blocks ? kQ8Bytes : kQ4Bytes;
}
__device__ __forceinline__ float scale_of(const char* block) {
  return widen(*reinterpret_cast<const F16*>(block));
}
// Number `lane` of a block, without its scale.
__device__ __forceinline__ float number_of(int32_t format, const char* block, int lane) {
  if (format == kQ8Blocks) return float(*reinterpret_cast<const int8_t*>(block + 2 + lane));
  const int half = lane % int(kBlockItems / 2);
  const int both = *reinterpret_cast<const uint8_t*>(block + 2 + half);
  return float((lane < int(kBlockItems / 2) ? both & 15 : both >> 4) - 8);
}

__global__ void __launch_bounds__(kThreads) unpack(const __grid_constant__ BlockPlan p) {
  const int64_t items = p.n * p.k;
  const int64_t bytes = bytes_of(p.format);
  for (int64_t i = first_item(); i < items; i += item_step()) {
    const char* block = p.packed + quotient(i, kBlockItems) * bytes;
    p.out[i] = number_of(p.format, block, int(i % kBlockItems)) * scale_of(block);
  }
}

// ---- packing ----

struct Extreme {
  float value;
  int32_t lane;
};
__device__ __forceinline__ uint32_t magnitude_bits(float x) {
  return bits_as<uint32_t>(x) & 0x7fffffffu;
}
// The number of largest magnitude, the first one of several; all lanes get it.
__device__ __forceinline__ float extreme(float x) {
  const Extreme most = combine_warp(Extreme{x, lane_here()}, [](Extreme a, Extreme b) {
    const uint32_t of_a = magnitude_bits(a.value);
    const uint32_t of_b = magnitude_bits(b.value);
    return of_b > of_a || (of_b == of_a && b.lane < a.lane) ? b : a;
  });
  return __shfl_sync(kAllLanes, most.value, 0);
}
__device__ __forceinline__ bool is_finite(float x) { return x - x == 0.0f; }
// round(x), halves away from zero, of |x| <= 128.
__device__ __forceinline__ int32_t nearest(float x) {
  const int32_t whole = int32_t(x);
  const float rest = x - float(whole);
  return whole + int32_t(rest >= 0.5f) - int32_t(rest <= -0.5f);
}
__device__ __forceinline__ int32_t nibble(float steps) {
  const int32_t n = int32_t(steps + 8.5f);
  return n < 15 ? n : 15;
}

__global__ void __launch_bounds__(kThreads) pack(const __grid_constant__ BlockPlan p) {
  const int lane = lane_here();
  const int64_t blocks = p.n * quotient(p.k, kBlockItems);
  const int64_t bytes = bytes_of(p.format);
  const bool q8 = p.format == kQ8Blocks;
  for (int64_t b = first_warp(); b < blocks; b += warp_step()) {
    const float x = p.input[b * kBlockItems + lane];
    const float most = extreme(x);
    const float scale = q8 ? bits_as<float>(magnitude_bits(most)) / 127.0f : most / -8.0f;
    const float inverse = 1.0f / scale;
    const bool has_inverse = is_finite(scale) && is_finite(inverse) && inverse != 0.0f;
    char* const block = p.packed + b * bytes;
    if (lane == 0) *reinterpret_cast<F16*>(block) = narrow_f16(scale);
    if (q8) {
      block[2 + lane] = has_inverse ? char(nearest(x * inverse)) : char(0);
      continue;
    }
    const int32_t mine = has_inverse ? nibble(x * inverse) : 8;
    const int32_t high = __shfl_down_sync(kAllLanes, mine, unsigned(kBlockItems / 2));
    if (lane < int(kBlockItems / 2)) block[2 + lane] = char(mine | high << 4);
  }
}

// ---- products of few rows ----

__global__ void __launch_bounds__(kThreads) block_products(const __grid_constant__ BlockPlan p) {
  const int lane = lane_here();
  const int64_t blocks = quotient(p.k, kBlockItems);
  const int64_t bytes = bytes_of(p.format);
  for (int64_t j = first_warp(); j < p.n; j += warp_step()) {
    float sum[kBlockRows];
#pragma unroll
    for (int i = 0; i < int(kBlockRows); i++) sum[i] = 0.0f;
    const char* block = p.packed + j * blocks * bytes;
    for (int64_t b = 0; b < blocks; b++, block += bytes) {
      const float w = number_of(p.format, block, lane) * scale_of(block);
#pragma unroll
      for (int i = 0; i < int(kBlockRows); i++)
        if (i < p.m) sum[i] = ::fmaf(p.input[i * p.k + b * kBlockItems + lane], w, sum[i]);
    }
#pragma unroll
    for (int i = 0; i < int(kBlockRows); i++) {
      if (i >= p.m) continue;
      const float all = combine_warp(sum[i], [](float x, float y) { return x + y; });
      if (lane == 0) p.out[i * p.n + j] = all + (p.bias ? p.bias[j] : 0.0f);
    }
  }
}

int32_t launch_warps(void (*kernel)(BlockPlan), const BlockPlan& p, int64_t warps, void* stream) {
  if (warps == 0) return TT_OK;
  return device::launch(kernel, grid_of(warps, kWarps), kThreads, 0, stream, p);
}
const BlockPlan& plan_of(const void* plan) { return *static_cast<const BlockPlan*>(plan); }

}  // namespace

namespace cuda {

int32_t block_quantize(const void* plan, void* stream, void*) {
  const BlockPlan& p = plan_of(plan);
  return launch_warps(pack, p, p.n * p.k / kBlockItems, stream);
}
int32_t block_dequantize(const void* plan, void* stream, void*) {
  const BlockPlan& p = plan_of(plan);
  const int64_t items = p.n * p.k;
  if (items == 0) return TT_OK;
  return device::launch(unpack, grid_of(items, kThreads), kThreads, 0, stream, p);
}
int32_t block_linear(const void* plan, void* stream, void*) {
  const BlockPlan& p = plan_of(plan);
  return launch_warps(block_products, p, p.n, stream);
}

}  // namespace cuda
}  // namespace TT_NS
