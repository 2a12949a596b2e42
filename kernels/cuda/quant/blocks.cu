// Rows packed in blocks of 32 or 256 numbers with scales (plan/quant_plan.h): a lane of a warp for
// each number of a block, or of an eighth of it. Packed bytes are those of the CPU, whose
// arithmetic this is.
//
//   input    (n, k), of block_linear (m, k), m <= kBlockRows
//   packed   (n, blocks of k)
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

// ---- number i of a block ----

__device__ __forceinline__ int byte_at(const char* block, int i) { return int(uint8_t(block[i])); }
__device__ __forceinline__ float half_at(const char* block) {
  return widen(F16{uint16_t(byte_at(block, 0) | byte_at(block, 1) << 8)});
}
// Number i of 32 in 16 bytes, and bit i of four bytes.
__device__ __forceinline__ int nibble_at(const char* bytes, int i) {
  return byte_at(bytes, i % 16) >> i / 16 * 4 & 15;
}
__device__ __forceinline__ int bit_at(const char* bytes, int i) {
  return byte_at(bytes, i / 8) >> i % 8 & 1;
}
__device__ __forceinline__ float entry(uint64_t low, uint64_t high, int i) {
  return float(int8_t((i < 8 ? low : high) >> i % 8 * 8));
}

// Blocks of 32.
__device__ __forceinline__ float short_number(int32_t format, const char* b, int i) {
  const float d = half_at(b);
  switch (format) {
    case kBlockQ8_0: return float(int8_t(byte_at(b, 2 + i))) * d;
    case kBlockQ4_0: return float(nibble_at(b + 2, i) - 8) * d;
    case kBlockQ4_1: return ::fmaf(float(nibble_at(b + 4, i)), d, half_at(b + 2));
    case kBlockQ5_0: return float((nibble_at(b + 6, i) | bit_at(b + 2, i) << 4) - 16) * d;
    case kBlockQ5_1:
      return ::fmaf(float(nibble_at(b + 8, i) | bit_at(b + 4, i) << 4), d, half_at(b + 2));
    case kBlockIq4Nl: return entry(kIq4Low, kIq4High, nibble_at(b + 2, i)) * d;
    default: {  // mxfp4: the entries are twice the numbers
      const int e = byte_at(b, 0);
      const uint32_t power = e < 2 ? 0x200000u << e : uint32_t(e - 1) << 23;
      return entry(kMxfp4Low, kMxfp4High, nibble_at(b + 1, i)) * bits_as<float>(power);
    }
  }
}

// Byte and shift of number i of 256, where fields of `bits` bits of 32 bytes are 32 numbers each.
struct Field {
  int byte, shift;
};
__device__ __forceinline__ Field field_of(int i, int bits) {
  const int each = 8 / bits * 32;
  return {i / each * 32 + i % 32, i % each / 32 * bits};
}
__device__ __forceinline__ int field_at(const char* bytes, int i, int bits) {
  const Field f = field_of(i, bits);
  return byte_at(bytes, f.byte) >> f.shift & ((1 << bits) - 1);
}
// Factor g of 8 scales, or with second of 8 shifts, of q4_k and q5_k.
__device__ __forceinline__ int k_factor(const char* bytes, int g, bool second) {
  const int first = byte_at(bytes, g % 4 + (second ? 4 : 0));
  if (g < 4) return first & 63;
  return (byte_at(bytes, 8 + g % 4) >> (second ? 4 : 0) & 15) | first >> 6 << 4;
}
// Factor g of 16 of q3_k.
__device__ __forceinline__ int q3_factor(const char* bytes, int g) {
  const int low = byte_at(bytes, g % 8) >> g / 8 * 4 & 15;
  return (low | (byte_at(bytes, 8 + g % 4) >> g / 4 * 2 & 3) << 4) - 32;
}
__device__ __forceinline__ float long_number(int32_t format, const char* b, int i) {
  switch (format) {
    case kBlockQ2K: {
      const int factors = byte_at(b, i / 16);
      const float shift = float(factors >> 4) * -half_at(b + 82);
      return ::fmaf(float(field_at(b + 16, i, 2)), float(factors & 15) * half_at(b + 80), shift);
    }
    case kBlockQ3K: {
      const int q = (field_at(b + 32, i, 2) | field_at(b, i, 1) << 2) - 4;
      return float(q) * (float(q3_factor(b + 96, i / 16)) * half_at(b + 108));
    }
    case kBlockQ4K:
    case kBlockQ5K: {
      const bool five = format == kBlockQ5K;
      const int q = field_at(b + (five ? 48 : 16), i, 4);
      const int fifth = five ? field_at(b + 16, i, 1) : 0;
      const float shift = float(k_factor(b + 4, i / 32, true)) * -half_at(b + 2);
      return ::fmaf(float(q | fifth << 4), float(k_factor(b + 4, i / 32, false)) * half_at(b),
                    shift);
    }
    case kBlockQ6K: {
      // 64 bytes are the low bits of 128 numbers.
      const int low = byte_at(b, i / 128 * 64 + i % 64) >> i % 128 / 64 * 4 & 15;
      const int q = (low | field_at(b + 128, i, 2) << 4) - 32;
      return float(q) * (float(int8_t(byte_at(b, 192 + i / 16))) * half_at(b + 208));
    }
    default: {  // iq4_xs
      const int g = i / 32;
      const int high = byte_at(b, 2) | byte_at(b, 3) << 8;
      const int factor = (byte_at(b, 4 + g / 2) >> g % 2 * 4 & 15) | (high >> 2 * g & 3) << 4;
      const float x = entry(kIq4Low, kIq4High, nibble_at(b + 8 + 16 * g, i % 32));
      return x * (float(factor - 32) * half_at(b));
    }
  }
}
__device__ __forceinline__ float number_of(int32_t format, BlockLayout layout, const char* row,
                                           int64_t i) {
  const char* const block = row + quotient(i, layout.items) * layout.bytes;
  const int place = int(i % layout.items);
  if (layout.items == kBlockItems) return short_number(format, block, place);
  return long_number(format, block, place);
}

__global__ void __launch_bounds__(kThreads) unpack(const __grid_constant__ BlockPlan p) {
  const int64_t items = p.n * p.k;
  const BlockLayout layout = block_layout(p.format);
  for (int64_t i = first_item(); i < items; i += item_step())
    p.out[i] = number_of(p.format, layout, p.packed, i);
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
  const int64_t bytes = block_layout(p.format).bytes;
  const bool q8 = p.format == kBlockQ8_0;
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
  const BlockLayout layout = block_layout(p.format);
  const int64_t bytes = packed_bytes(p.format, p.k);
  for (int64_t j = first_warp(); j < p.n; j += warp_step()) {
    float sum[kBlockRows];
#pragma unroll
    for (int i = 0; i < int(kBlockRows); i++) sum[i] = 0.0f;
    const char* row = p.packed + j * bytes;
    for (int64_t at = lane; at < p.k; at += kBlockItems) {
      const float w = number_of(p.format, layout, row, at);
#pragma unroll
      for (int i = 0; i < int(kBlockRows); i++)
        if (i < p.m) sum[i] = ::fmaf(p.input[i * p.k + at], w, sum[i]);
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
