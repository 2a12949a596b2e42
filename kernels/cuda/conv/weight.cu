// conv_weight: the gradient of the weight, sums over the pixels of y, which are split by the shape:
// splits write their sums to the workspace [splits][elements], and join_splits adds them in order.
//
//   tiles    a matrix product: a's rows are (tap, channel of x), its terms pixels; b is y
//   direct   few channels in a group: lanes are elements of the weight, warps share the pixels
#include "kernels/cuda/conv/conv.h"
#include "kernels/cuda/conv/cudnn.h"
#include "kernels/cuda/conv/few_channels.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/warp.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int kSlices = kThreads / kWarp;
constexpr int kSide = 32;    // of a tile of the weight, [kSide rows][kSide columns]
constexpr int kPixels = 16;  // of a step
constexpr int kTileThreads = 64;
constexpr int kThreadSide = 4;

struct WeightArguments {
  ConvShape s;
  const char* x;
  const char* y;
  char* dst;
  char* sums;
  int64_t w_co, w_ci, w_k[kConvDims];
  ConvLayout from_x, from_y;
  int64_t plane;             // pixels of an image of y
  int64_t pixels, elements;  // of y; of the weight
  int64_t taps;
  int64_t splits, split_len;
  int64_t tiles_m, tiles_n;
};

// Where element (group, tap, ci, co), numbered in this order, is in dst.
__device__ __forceinline__ int64_t weight_place(const WeightArguments& p, int64_t i) {
  const int64_t rest = quotient(i, p.s.co);
  const int64_t co = i - rest * p.s.co;
  const int64_t more = quotient(rest, p.s.ci);
  const int64_t ci = rest - more * p.s.ci;
  const int64_t group = quotient(more, p.taps);
  const ConvTap tap = conv_tap(p.s, more - group * p.taps);
  return (group * p.s.co + co) * p.w_co + ci * p.w_ci + tap.k[0] * p.w_k[0] + tap.k[1] * p.w_k[1] +
         tap.k[2] * p.w_k[2];
}
// The element of y at a pixel, before its channel.
__device__ __forceinline__ int64_t pixel_of_y(const WeightArguments& p, int64_t number) {
  const int64_t image = quotient(number, p.plane);
  return image * p.from_y.image + (number - image * p.plane) * p.from_y.pixel;
}
template <class S> __device__ __forceinline__ void put_sum(const WeightArguments& p, int64_t split,
                                                           int64_t i, typename SumOf<S>::type sum) {
  using T = typename SumOf<S>::type;
  if (p.splits > 1) reinterpret_cast<T*>(p.sums)[split * p.elements + i] = sum;
  else reinterpret_cast<S*>(p.dst)[weight_place(p, i)] = narrowed<S>(sum);
}

template <class S> __global__ void __launch_bounds__(kTileThreads)
    weight_tiles(const __grid_constant__ WeightArguments p) {
  using T = typename SumOf<S>::type;
  using Row = T[kSide];
  TT_SHARED(Row, a_tile, kPixels);
  TT_SHARED(Row, b_tile, kPixels);
  TT_SHARED(ConvPixel, pixel, kPixels);
  const int thread = int(threadIdx.x);
  const int64_t rows = p.taps * p.s.ci;
  int64_t rest = quotient(blockIdx.x, p.tiles_n);
  const int64_t j0 = (blockIdx.x - rest * p.tiles_n) * kSide;
  const int64_t more = quotient(rest, p.tiles_m);
  const int64_t i0 = (rest - more * p.tiles_m) * kSide;
  const int64_t group = quotient(more, p.splits);
  const int64_t split = more - group * p.splits;
  const int64_t from = split * p.split_len;
  const int64_t to = least(p.pixels, from + p.split_len);

  // A thread loads one row of a and one column of b at several pixels.
  const int across = thread % kSide;
  const int64_t my_row = i0 + across;
  const int64_t number = my_row < rows ? quotient(my_row, p.s.ci) : 0;
  const int64_t channel = my_row - number * p.s.ci;
  const ConvTap tap = conv_tap(p.s, number);
  const S* x = reinterpret_cast<const S*>(p.x) + (group * p.s.ci + channel) * p.from_x.channel;
  const S* y = reinterpret_cast<const S*>(p.y) + (group * p.s.co + j0 + across) * p.from_y.channel;
  const int row = thread / (kSide / kThreadSide) * kThreadSide;
  const int column = thread % (kSide / kThreadSide) * kThreadSide;
  T sum[kThreadSide][kThreadSide];
#pragma unroll
  for (int i = 0; i < kThreadSide; i++) {
#pragma unroll
    for (int j = 0; j < kThreadSide; j++) sum[i][j] = T(0);
  }
  for (int64_t k = from; k < to; k += kPixels) {
    if (thread < kPixels) {
      pixel[thread].image = -1;
      if (k + thread < to)
        pixel[thread] = conv_pixel(p.s, kConvForward, p.from_x.image, k + thread);
    }
    __syncthreads();
#pragma unroll
    for (int e = thread / kSide; e < kPixels; e += kTileThreads / kSide) {
      int64_t at = -1;
      if (my_row < rows) at = conv_source(p.s, kConvForward, pixel[e], tap, p.from_x);
      a_tile[e][across] = at >= 0 ? widened(x[at]) : T(0);
      const bool inside = k + e < to && j0 + across < p.s.co;
      b_tile[e][across] = inside ? widened(y[pixel_of_y(p, k + e)]) : T(0);
    }
    __syncthreads();
#pragma unroll
    for (int q = 0; q < kPixels; q++) {
#pragma unroll
      for (int i = 0; i < kThreadSide; i++) {
#pragma unroll
        for (int j = 0; j < kThreadSide; j++)
          sum[i][j] = multiply_add(a_tile[q][row + i], b_tile[q][column + j], sum[i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kThreadSide; i++) {
#pragma unroll
    for (int j = 0; j < kThreadSide; j++) {
      const int64_t at_i = i0 + row + i;
      const int64_t at_j = j0 + column + j;
      if (at_i < rows && at_j < p.s.co)
        put_sum<S>(p, split, (group * rows + at_i) * p.s.co + at_j, sum[i][j]);
    }
  }
}

// Grid: [splits][elements by kWarp]. Elements are (tap, ci, co, group): neighbouring lanes read
// neighbouring channels.
template <class S> __global__ void __launch_bounds__(kThreads)
    weight_direct(const __grid_constant__ WeightArguments p) {
  using T = typename SumOf<S>::type;
  TT_SHARED(T, shared, kThreads);
  const int lane = int(threadIdx.x) % kWarp;
  const int slice = int(threadIdx.x) / kWarp;
  const int64_t split = quotient(blockIdx.x, p.tiles_m);
  const int64_t i = (blockIdx.x - split * p.tiles_m) * kWarp + lane;
  const int64_t from = split * p.split_len;
  const int64_t to = least(p.pixels, from + p.split_len);
  int64_t element = 0;
  T sum = 0;
  if (i < p.elements) {
    int64_t rest = quotient(i, p.s.groups);
    const int64_t group = i - rest * p.s.groups;
    const int64_t above = quotient(rest, p.s.co);
    const int64_t co = rest - above * p.s.co;
    const int64_t number = quotient(above, p.s.ci);
    const int64_t ci = above - number * p.s.ci;
    element = ((group * p.taps + number) * p.s.ci + ci) * p.s.co + co;
    const ConvTap tap = conv_tap(p.s, number);
    const S* x = reinterpret_cast<const S*>(p.x) + (group * p.s.ci + ci) * p.from_x.channel;
    const S* y = reinterpret_cast<const S*>(p.y) + (group * p.s.co + co) * p.from_y.channel;
    for (int64_t k = from + slice; k < to; k += kSlices) {
      const ConvPixel pixel = conv_pixel(p.s, kConvForward, p.from_x.image, k);
      const int64_t at = conv_source(p.s, kConvForward, pixel, tap, p.from_x);
      if (at >= 0) sum = multiply_add(widened(x[at]), widened(y[pixel_of_y(p, k)]), sum);
    }
  }
  shared[threadIdx.x] = sum;
  __syncthreads();
  if (slice > 0 || i >= p.elements) return;
  for (int s = 1; s < kSlices; s++) sum = sum_of(sum, shared[s * kWarp + lane]);
  put_sum<S>(p, split, element, sum);
}

template <class S> __global__ void __launch_bounds__(kThreads)
    join_splits(const __grid_constant__ WeightArguments p) {
  using T = typename SumOf<S>::type;
  for (int64_t i = first_item(); i < p.elements; i += item_step()) {
    const T* part = reinterpret_cast<const T*>(p.sums) + i;
    T sum = part[0];
    for (int64_t s = 1; s < p.splits; s++) sum = sum_of(sum, part[s * p.elements]);
    reinterpret_cast<S*>(p.dst)[weight_place(p, i)] = narrowed<S>(sum);
  }
}

// ---- on the host ----

constexpr int64_t kEnoughBlocks = 512;
constexpr int64_t kLeastPixels = 256;

bool is_direct(const ConvShape& s) { return s.co <= 4 || s.ci * s.taps() <= 4; }

// Depends on the shape alone.
WeightArguments arguments_of(const ConvWeightPlan& p, void* workspace) {
  WeightArguments a;
  a.s = p.s;
  a.x = p.src;
  a.y = p.y;
  a.dst = p.dst;
  a.sums = static_cast<char*>(workspace);
  a.w_co = p.w_co;
  a.w_ci = p.w_ci;
  for (int d = 0; d < kConvDims; d++) a.w_k[d] = p.w_k[d];
  a.from_x = conv_layout(p.s.x, p.s.groups * p.s.ci, p.channels_first);
  a.from_y = conv_layout(p.s.y, p.s.groups * p.s.co, p.channels_first);
  a.plane = p.s.y[0] * p.s.y[1] * p.s.y[2];
  a.taps = p.s.taps();
  a.pixels = conv_pixels(p.s, p.s.y);
  a.elements = p.s.groups * p.s.taps() * p.s.ci * p.s.co;
  a.tiles_m = is_direct(p.s) ? ceil_div(a.elements, kWarp) : ceil_div(p.s.taps() * p.s.ci, kSide);
  a.tiles_n = is_direct(p.s) ? 1 : ceil_div(p.s.co, kSide) * p.s.groups;
  const int64_t blocks = max<int64_t>(a.tiles_m * a.tiles_n, 1);
  a.splits = max<int64_t>(min(kEnoughBlocks / blocks, a.pixels / kLeastPixels), 1);
  a.split_len = round_up(ceil_div(max<int64_t>(a.pixels, 1), a.splits), kPixels);
  a.splits = max<int64_t>(ceil_div(a.pixels, a.split_len), 1);
  if (!is_direct(p.s)) a.tiles_n = ceil_div(p.s.co, kSide);
  return a;
}

template <class S> int32_t launch_weight(const WeightArguments& a, void* stream) {
  int32_t status;
  if (is_direct(a.s)) {
    const unsigned grid = unsigned(a.splits * a.tiles_m);
    status = device::launch(weight_direct<S>, grid, kThreads, 0, stream, a);
  } else {
    const unsigned grid = unsigned(a.s.groups * a.splits * a.tiles_m * a.tiles_n);
    status = device::launch(weight_tiles<S>, grid, kTileThreads, 0, stream, a);
  }
  if (status != TT_OK || a.splits == 1) return status;
  return device::launch(join_splits<S>, grid_of(a.elements, kThreads), kThreads, 0, stream, a);
}

const ConvWeightPlan& weight_plan(const void* plan) {
  return *static_cast<const ConvWeightPlan*>(plan);
}
bool takes_few(const ConvWeightPlan& p) {
  return cuda::few::serves(p) && !cuda::cudnn::serves_by_tensor_cores(p);
}

}  // namespace

namespace cuda {

int32_t conv_weight(const void* plan, void* stream, void* workspace) {
  const ConvWeightPlan& p = weight_plan(plan);
  if (takes_few(p)) return few::run(p, stream, workspace);
  if (cudnn::serves(p)) return cudnn::run(p, stream, workspace);
  const WeightArguments a = arguments_of(p, workspace);
  if (a.elements == 0) return TT_OK;
  if (p.dtype == TT_F32) return launch_weight<float>(a, stream);
  if (p.dtype == TT_F64) return launch_weight<double>(a, stream);
  if (p.dtype == TT_F16) return launch_weight<F16>(a, stream);
  if (p.dtype == TT_BF16) return launch_weight<BF16>(a, stream);
  return launch_weight<int64_t>(a, stream);
}
size_t conv_weight_workspace(const void* plan) {
  const ConvWeightPlan& p = weight_plan(plan);
  if (takes_few(p)) return few::workspace_bytes(p);
  if (cudnn::serves(p)) return cudnn::workspace_bytes(p);
  const WeightArguments a = arguments_of(p, nullptr);
  if (a.splits == 1) return 0;
  const int64_t bytes = max<int64_t>(kItemSize[p.dtype], 4);  // of a sum
  return size_t(a.splits * a.elements * bytes);
}

}  // namespace cuda
}  // namespace TT_NS
