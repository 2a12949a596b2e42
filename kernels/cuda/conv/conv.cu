// conv: y from x, or x from y.
//
//   tiles    an implicit matrix product, as in matmul/simt.h: a's rows are pixels of dst and its
//            terms (tap, channel of src), read where they are; b is the weight
//   direct   few channels in a group: a thread for each result
#include "kernels/cuda/conv/conv.h"
#include "kernels/cuda/conv/cudnn.h"
#include "kernels/cuda/conv/few_channels.h"
#include "kernels/cuda/matmul/tile_sums.h"
#include "kernels/cuda/rows.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kFewColumns = 4;

template <class S>
__device__ __forceinline__ void put_result(const ConvArguments& p, int64_t number, int64_t group,
                                           int64_t col, typename SumOf<S>::type sum) {
  const int64_t channels = p.s.groups * p.cols;
  const int64_t channel = group * p.cols + col;
  if (p.bias) sum = sum_of(sum, widened(reinterpret_cast<const S*>(p.bias)[channel]));
  int64_t at = number * channels + channel;
  if (p.planes) {
    const int64_t plane = p.pixels / p.s.n;
    const int64_t image = quotient(number, plane);
    at = (image * channels + channel) * plane + number - image * plane;
  }
  reinterpret_cast<S*>(p.dst)[at] = narrowed<S>(sum);
}

template <class Stored_, int kM_, int kN_, int kThreadM_, int kThreadN_> struct ConvTileShape {
  using Stored = Stored_;
  static constexpr int kM = kM_, kN = kN_, kK = 16, kThreadM = kThreadM_, kThreadN = kThreadN_;
  static constexpr int kColumns = kN / kThreadN;  // of threads
  static constexpr int kThreads = kM / kThreadM * kColumns;
};

template <class Shape> __global__ void __launch_bounds__(Shape::kThreads)
    conv_tiles(const __grid_constant__ ConvArguments p) {
  using S = typename Shape::Stored;
  using T = typename SumOf<S>::type;
  constexpr int kM = Shape::kM, kN = Shape::kN, kK = Shape::kK;
  constexpr int kRows = Shape::kThreadM, kCols = Shape::kThreadN;
  // Rows of a, or columns of b, that are loaded at once.
  constexpr int kStep = Shape::kThreads / kK;
  using ARow = T[kM];
  using BRow = T[kN];
  TT_SHARED(ARow, a_tile, 2 * kK);
  TT_SHARED(BRow, b_tile, 2 * kK);
  TT_SHARED(ConvPixel, pixel, kM);

  const int thread = int(threadIdx.x);
  const int64_t tiles = quotient(blockIdx.x, p.tiles_n);
  const int64_t j0 = (blockIdx.x - tiles * p.tiles_n) * kN;
  const int64_t group = quotient(tiles, p.tiles_m);
  const int64_t i0 = (tiles - group * p.tiles_m) * kM;
  for (int i = thread; i < kM; i += Shape::kThreads) {
    pixel[i].image = -1;
    if (i0 + i < p.pixels) pixel[i] = conv_pixel(p.s, p.mode, p.from.image, i0 + i);
  }
  __syncthreads();

  const int64_t terms = p.taps * p.depth;
  const S* src = reinterpret_cast<const S*>(p.src) + group * p.depth * p.from.channel;
  const S* weight = reinterpret_cast<const S*>(p.weight);
  const int row = thread / Shape::kColumns;
  const int column = thread % Shape::kColumns;
  const int k_here = thread % kK;
  const int across = thread / kK;
  T a_part[kM / kStep], b_part[kN / kStep];
  // A thread loads one term of several pixels and columns.
  const auto load = [&](int64_t k) {
    const int64_t term = k + k_here;
    const bool inside = term < terms;
    const int64_t number = inside ? quotient(term, p.depth) : 0;
    const int64_t channel = term - number * p.depth;
    const ConvTap tap = conv_tap(p.s, number);
#pragma unroll
    for (int e = 0; e < kM / kStep; e++) {
      const ConvPixel at = pixel[e * kStep + across];
      const int64_t from = inside ? conv_source(p.s, p.mode, at, tap, p.from) : -1;
      a_part[e] = from >= 0 ? widened(src[from + channel * p.from.channel]) : T(0);
    }
#pragma unroll
    for (int e = 0; e < kN / kStep; e++) {
      const int64_t col = j0 + e * kStep + across;
      b_part[e] = T(0);
      if (inside && col < p.cols)
        b_part[e] = widened(weight[conv_weight_at(p, group, col, channel, tap)]);
    }
  };
  const auto store = [&](int buffer) {
#pragma unroll
    for (int e = 0; e < kM / kStep; e++)
      a_tile[buffer * kK + k_here][e * kStep + across] = a_part[e];
#pragma unroll
    for (int e = 0; e < kN / kStep; e++)
      b_tile[buffer * kK + k_here][e * kStep + across] = b_part[e];
  };

  T sum[kRows][kCols];
  add_products<kK>(sum, a_tile, b_tile, row, column, terms, load, store);
#pragma unroll
  for (int i = 0; i < kRows; i++) {
#pragma unroll
    for (int j = 0; j < kCols; j++) {
      const int64_t number = i0 + row * kRows + i;
      const int64_t col = j0 + column * kCols + j;
      if (number < p.pixels && col < p.cols) put_result<S>(p, number, group, col, sum[i][j]);
    }
  }
}

template <class S> __global__ void __launch_bounds__(kThreads)
    conv_direct(const __grid_constant__ ConvArguments p) {
  using T = typename SumOf<S>::type;
  const int64_t channels = p.s.groups * p.cols;
  const int64_t taps = p.taps;
  for (int64_t t = first_item(); t < p.pixels * channels; t += item_step()) {
    const int64_t rest = quotient(t, p.planes ? p.pixels : channels);
    const int64_t other = t - rest * (p.planes ? p.pixels : channels);
    const int64_t number = p.planes ? other : rest;
    const int64_t channel = p.planes ? rest : other;
    const int64_t group = quotient(channel, p.cols);
    const int64_t col = channel - group * p.cols;
    const ConvPixel pixel = conv_pixel(p.s, p.mode, p.from.image, number);
    const S* src = reinterpret_cast<const S*>(p.src) + group * p.depth * p.from.channel;
    const S* weight = reinterpret_cast<const S*>(p.weight);
    T sum = 0;
    for (int64_t k = 0; k < taps; k++) {
      const ConvTap tap = conv_tap(p.s, k);
      const int64_t from = conv_source(p.s, p.mode, pixel, tap, p.from);
      if (from < 0) continue;
      for (int64_t c = 0; c < p.depth; c++)
        sum = multiply_add(widened(src[from + c * p.from.channel]),
                           widened(weight[conv_weight_at(p, group, col, c, tap)]), sum);
    }
    put_result<S>(p, number, group, col, sum);
  }
}

// ---- on the host ----

ConvArguments arguments_of(const ConvPlan& p) {
  ConvArguments a;
  a.s = p.s;
  a.mode = p.mode;
  a.src = p.src;
  a.weight = p.weight;
  a.w_co = p.w_co;
  a.w_ci = p.w_ci;
  for (int d = 0; d < kConvDims; d++) a.w_k[d] = p.w_k[d];
  a.bias = p.bias;
  a.dst = p.dst;
  a.planes = p.path == kConvPlanes;
  const bool forward = p.mode == kConvForward;
  const int64_t channels = p.s.groups * conv_depth(p.s, p.mode);
  a.from = conv_layout(forward ? p.s.x : p.s.y, channels, p.channels_first);
  a.taps = p.s.taps();
  a.pixels = conv_pixels(p.s, forward ? p.s.y : p.s.x);
  a.cols = conv_cols(p.s, p.mode);
  a.depth = conv_depth(p.s, p.mode);
  a.tiles_m = a.tiles_n = 0;
  return a;
}

template <class Shape> int32_t launch_tiles(ConvArguments a, void* stream) {
  a.tiles_m = ceil_div(a.pixels, Shape::kM);
  a.tiles_n = ceil_div(a.cols, Shape::kN);
  const unsigned grid = unsigned(a.s.groups * a.tiles_m * a.tiles_n);
  return device::launch(conv_tiles<Shape>, grid, Shape::kThreads, 0, stream, a);
}
template <class S> int32_t launch_conv(const ConvArguments& a, void* stream) {
  if (a.cols <= kFewColumns) {
    const unsigned grid = grid_of(a.pixels * a.s.groups * a.cols, kThreads);
    return device::launch(conv_direct<S>, grid, kThreads, 0, stream, a);
  }
  if constexpr (sizeof(typename SumOf<S>::type) == 4) {
    const int64_t large = a.s.groups * ceil_div(a.pixels, 128) * ceil_div(a.cols, 64);
    if (a.cols >= 48 && large >= 128)
      return launch_tiles<ConvTileShape<S, 128, 64, 8, 4>>(a, stream);
  }
  return launch_tiles<ConvTileShape<S, 32, 32, 4, 4>>(a, stream);
}

bool takes_few(const ConvPlan& p) {
  return cuda::few::serves(p) && !cuda::cudnn::serves_by_tensor_cores(p);
}

}  // namespace

namespace cuda {

size_t conv_workspace(const void* plan) {
  const ConvPlan& p = *static_cast<const ConvPlan*>(plan);
  return !takes_few(p) && cudnn::serves(p) ? cudnn::workspace_bytes(p) : 0;
}
int32_t conv(const void* plan, void* stream, void* workspace) {
  const ConvPlan& p = *static_cast<const ConvPlan*>(plan);
  if (takes_few(p)) return few::run(p, stream);
  if (cudnn::serves(p)) return cudnn::run(p, stream, workspace);
  const ConvArguments a = arguments_of(p);
  if (a.pixels * a.s.groups * a.cols == 0) return TT_OK;
  if (p.dtype == TT_F32) return launch_conv<float>(a, stream);
  if (p.dtype == TT_F64) return launch_conv<double>(a, stream);
  if (p.dtype == TT_F16) return launch_conv<F16>(a, stream);
  if (p.dtype == TT_BF16) return launch_conv<BF16>(a, stream);
  return launch_conv<int64_t>(a, stream);
}

}  // namespace cuda
}  // namespace TT_NS
