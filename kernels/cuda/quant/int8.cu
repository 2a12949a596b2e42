// int8_matmul: products of matrices of 8-bit integers, read as they are (nothing is packed), in
// int32 modulo 2^32. A block computes a tile of kTile x kTile results from tiles of a and b in
// shared memory, less their zero points.
#include "kernels/cuda/device.h"
#include "kernels/cuda/rows.h"
#include "plan/quant_plan.h"

namespace TT_NS {
namespace {

constexpr int kTile = 32;
constexpr int kDepth = 32;  // of k in shared memory
constexpr int kRows = 8;    // threads; each has kTile / kRows rows

struct Int8Arguments {
  int64_t m, n, k;
  const char* a;
  const char* b;
  int64_t a_row, a_k, b_k, b_col;
  bool a_unsigned, b_unsigned;
  const int32_t* a_zero;
  const int32_t* b_zero;
  int64_t a_zero_step, b_zero_step;
  const float* a_scale;
  const float* b_scale;
  int64_t a_scale_step, b_scale_step;
  const float* bias;
  int64_t bias_row, bias_col;
  char* out;
  int64_t tiles;  // of columns
};

__device__ __forceinline__ int32_t byte_at(const char* p, bool is_unsigned) {
  return is_unsigned ? int32_t(*reinterpret_cast<const uint8_t*>(p))
                     : int32_t(*reinterpret_cast<const int8_t*>(p));
}

__global__ void __launch_bounds__(kTile* kRows)
    multiply_bytes(const __grid_constant__ Int8Arguments p) {
  TT_SHARED(int32_t, a_tile, kTile * (kDepth + 1));
  TT_SHARED(int32_t, b_tile, kDepth * (kTile + 1));
  const int64_t i0 = blockIdx.x / p.tiles * kTile;
  const int64_t j0 = blockIdx.x % p.tiles * kTile;
  const int x = int(threadIdx.x);
  const int y = int(threadIdx.y);
  uint32_t sum[kTile / kRows] = {};
  for (int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
    for (int r = y; r < kTile; r += kRows) {
      const int64_t i = i0 + r;
      const bool a_inside = i < p.m && k0 + x < p.k;
      int32_t v = 0;
      if (a_inside) {
        const int32_t zero = p.a_zero ? p.a_zero[i * p.a_zero_step] : 0;
        v = byte_at(p.a + i * p.a_row + (k0 + x) * p.a_k, p.a_unsigned) - zero;
      }
      a_tile[r * (kDepth + 1) + x] = v;
      const int64_t j = j0 + x;
      const bool b_inside = j < p.n && k0 + r < p.k;
      v = 0;
      if (b_inside) {
        const int32_t zero = p.b_zero ? p.b_zero[j * p.b_zero_step] : 0;
        v = byte_at(p.b + (k0 + r) * p.b_k + j * p.b_col, p.b_unsigned) - zero;
      }
      b_tile[r * (kTile + 1) + x] = v;
    }
    __syncthreads();
    for (int k = 0; k < kDepth; k++) {
      const uint32_t b = uint32_t(b_tile[k * (kTile + 1) + x]);
#pragma unroll
      for (int r = 0; r < kTile / kRows; r++)
        sum[r] += uint32_t(a_tile[(y + r * kRows) * (kDepth + 1) + k]) * b;
    }
    __syncthreads();
  }
  const int64_t j = j0 + x;
  if (j >= p.n) return;
#pragma unroll
  for (int r = 0; r < kTile / kRows; r++) {
    const int64_t i = i0 + y + r * kRows;
    if (i >= p.m) break;
    if (!p.a_scale) {
      reinterpret_cast<int32_t*>(p.out)[i * p.n + j] = int32_t(sum[r]);
      continue;
    }
    const float scale = p.a_scale[i * p.a_scale_step] * p.b_scale[j * p.b_scale_step];
    const bool has_bias = p.bias && (p.bias_row || p.bias_col);
    const float bias = has_bias ? p.bias[i * p.bias_row + j * p.bias_col] : 0;
    reinterpret_cast<float*>(p.out)[i * p.n + j] = float(int32_t(sum[r])) * scale + bias;
  }
}

}  // namespace

int32_t cuda::int8_matmul(const void* plan, void* stream, void*) {
  const Int8Plan& p = *static_cast<const Int8Plan*>(plan);
  if (p.m * p.n == 0) return TT_OK;
  const int64_t tiles = ceil_div(p.n, kTile);
  const Int8Arguments a = {p.m,
                           p.n,
                           p.k,
                           p.a,
                           p.b,
                           p.a_row,
                           p.a_k,
                           p.b_k,
                           p.b_col,
                           p.a_unsigned,
                           p.b_unsigned,
                           p.a_zero,
                           p.b_zero,
                           p.a_zero_step,
                           p.b_zero_step,
                           p.a_scale,
                           p.b_scale,
                           p.a_scale_step,
                           p.b_scale_step,
                           p.bias,
                           p.bias_row,
                           p.bias_col,
                           p.out,
                           tiles};
  return device::launch(multiply_bytes, unsigned(ceil_div(p.m, kTile) * tiles), dim3(kTile, kRows),
                        0, stream, a);
}

}  // namespace TT_NS
