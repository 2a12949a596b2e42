// What the kernels of convolutions share: their arguments, and the elements that a result reads.
//   forward  y(o) = sum over taps k and channels of x(o * stride - pad + k * dil) * w(k)
//   data     x(i) = sum over taps k and channels of y((i + pad - k * dil) / stride) * w(k), where
//            the division leaves no rest
// Arrays of f16, bf16, f32, f64 or i64 have channels last, or first; halves are summed in f32.
#pragma once

#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/nest.h"
#include "plan/conv_build.h"

namespace TT_NS {
namespace {

// Elements of x or y between its images, rows, pixels and channels.
struct ConvLayout {
  int64_t image, row, pixel, channel;
};
inline ConvLayout conv_layout(const int64_t* grid, int64_t channels, bool channels_first) {
  const int64_t plane = grid[0] * grid[1] * grid[2];
  if (channels_first) return {channels * plane, grid[2], 1, plane};
  return {channels * plane, grid[2] * channels, channels, 1};
}

struct ConvArguments {
  ConvShape s;
  ConvMode mode;
  ConvLayout from;
  const char* src;
  const char* weight;
  int64_t w_co, w_ci, w_k[kConvDims];
  const char* bias;
  char* dst;
  bool planes;  // dst has channels first
  int64_t taps;
  int64_t pixels;       // of dst
  int64_t cols, depth;  // channels of a group of dst, and of src
  int64_t tiles_m, tiles_n;
};

// A pixel of dst: where its image is in src, and its first tap.
struct ConvPixel {
  int64_t image;  // elements; < 0: none
  int32_t at[kConvDims];
};

__device__ __forceinline__ ConvPixel conv_pixel(const ConvShape& s, ConvMode mode, int64_t image,
                                                int64_t number) {
  const int64_t* grid = mode == kConvForward ? s.y : s.x;
  ConvPixel p;
#pragma unroll
  for (int d = kConvDims - 1; d >= 0; d--) {
    const int64_t rest = quotient(number, grid[d]);
    const int64_t o = number - rest * grid[d];
    number = rest;
    p.at[d] = int32_t(mode == kConvForward ? o * s.stride[d] - s.pad[d] : o + s.pad[d]);
  }
  p.image = number * image;
  return p;
}

struct ConvTap {
  int32_t k[kConvDims];
};
__device__ __forceinline__ ConvTap conv_tap(const ConvShape& s, int64_t number) {
  ConvTap t;
#pragma unroll
  for (int d = kConvDims - 1; d >= 0; d--) {
    const int64_t rest = quotient(number, s.k[d]);
    t.k[d] = int32_t(number - rest * s.k[d]);
    number = rest;
  }
  return t;
}

// The element of src that a pixel reads at a tap, before its channel; -1: none.
__device__ __forceinline__ int64_t conv_source(const ConvShape& s, ConvMode mode,
                                               const ConvPixel& p, const ConvTap& t,
                                               const ConvLayout& from) {
  if (p.image < 0) return -1;
  int64_t i[kConvDims];
#pragma unroll
  for (int d = 0; d < kConvDims; d++) {
    const int32_t step = t.k[d] * int32_t(s.dil[d]);
    if (mode == kConvForward) {
      i[d] = p.at[d] + step;
      if (i[d] < 0 || i[d] >= s.x[d]) return -1;
    } else {
      const int32_t at = p.at[d] - step;
      const int32_t stride = int32_t(s.stride[d]);
      if (at < 0 || at % stride != 0) return -1;
      i[d] = at / stride;
      if (i[d] >= s.y[d]) return -1;
    }
  }
  const int64_t rows = mode == kConvForward ? s.x[1] : s.y[1];
  return p.image + (i[0] * rows + i[1]) * from.row + i[2] * from.pixel;
}

// The element of the weight at a tap; `col` and `channel` of the group.
__device__ __forceinline__ int64_t conv_weight_at(const ConvArguments& p, int64_t group,
                                                  int64_t col, int64_t channel, const ConvTap& t) {
  const bool forward = p.mode == kConvForward;
  const int64_t co = group * p.s.co + (forward ? col : channel);
  const int64_t ci = forward ? channel : col;
  return co * p.w_co + ci * p.w_ci + t.k[0] * p.w_k[0] + t.k[1] * p.w_k[1] + t.k[2] * p.w_k[2];
}

}  // namespace
}  // namespace TT_NS
