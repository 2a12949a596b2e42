// Convolutions of f32 with few channels, of one group and at most two dimensions. Numbers of
// products are small then, and what a library does beside them counts.
//
//   results   a thread has kPixels pixels and all channels of dst, in registers; the weight is in
//             shared memory, [terms][kCols], where terms are (tap, channel of src), and behind it
//             where each term is in a window
//   weight    a matrix product: rows are channels of y, columns are terms (channel of x, tap), and
//             kChunk pixels at a time are copied to shared memory: rows [kM][kChunk], columns
//             [kN][kChunk]. Groups of threads share the pixels of a chunk. Splits of the pixels
//             write their sums to the workspace, [splits][channels of y][terms].
#include "kernels/cuda/conv/few_channels.h"

#include "kernels/cuda/matmul/async.h"
#include "kernels/cuda/nest.h"
#include "kernels/cuda/strided.h"
#include "kernels/cuda/warp.h"
#include "plan/conv_build.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;

// Elements between images, rows, pixels and channels.
struct FewLayout {
  int64_t image, channel;
  int32_t row, pixel;
};
// Windows over images [in1][in2]; out: of results, or of y.
struct FewWindows {
  FewLayout from;
  int32_t in[2], k[2], stride[2], pad[2];
  Divisor by_plane, by_row;  // the pixels of a plane, and of its rows
  uint32_t pixels;           // of all images
};
// The first element of a pixel's window, and the coordinates of that.
struct FewPixel {
  int64_t at;
  uint32_t image, number;  // number in its plane
  int32_t first[2];
};
__device__ __forceinline__ FewPixel few_pixel(const FewWindows& w, uint32_t pixel) {
  FewPixel p;
  p.image = w.by_plane.divide(pixel);
  p.number = pixel - p.image * w.by_plane.d;
  const uint32_t row = w.by_row.divide(p.number);
  p.first[0] = int32_t(row) * w.stride[0] - w.pad[0];
  p.first[1] = int32_t(p.number - row * w.by_row.d) * w.stride[1] - w.pad[1];
  p.at = p.image * w.from.image + p.first[0] * w.from.row + p.first[1] * w.from.pixel;
  return p;
}

constexpr int kMaxTaps = 15;  // of a dimension
// A term: where it is in a window, and the bits of its row and column (taps_inside).
struct FewTap {
  int32_t offset;
  uint32_t needs;
};
__device__ __forceinline__ FewTap few_tap(const FewWindows& w, int32_t channel, int32_t tap) {
  const int32_t row = tap / w.k[1];
  const int32_t column = tap - row * w.k[1];
  return {int32_t(channel * w.from.channel) + row * w.from.row + column * w.from.pixel,
          1u << row | 1u << (16 + column)};
}

// The taps inside [0, in) of a window of k that begins at `first`, as bits.
__device__ __forceinline__ uint32_t taps_inside(int32_t first, int32_t in, int32_t k) {
  const int32_t low = first < 0 ? -first : 0;
  const int32_t high = in - first < k ? in - first : k;
  return ((1u << high) - 1) & ~((1u << low) - 1);
}
__device__ __forceinline__ uint32_t taps_inside(const FewWindows& w, const FewPixel& p) {
  return taps_inside(p.first[0], w.in[0], w.k[0]) | taps_inside(p.first[1], w.in[1], w.k[1]) << 16;
}

// ---- results ----

constexpr int kFewAtOnce = 4;  // terms that are loaded before they are used

struct FewArguments {
  FewWindows windows;
  FewLayout to;
  const float *src, *weight, *bias;
  float* dst;
  int32_t depth, cols;  // channels of src and dst
  int64_t w_col, w_depth, w_k[2];
};

// kShare: threads that share a pixel, each with every kShare'th term; their sums are added in
// order.
template <int kCols, int kPixels, int kShare> __global__ void __launch_bounds__(kThreads)
    conv_few(const __grid_constant__ FewArguments p) {
  constexpr int kSide = kThreads / kShare;
  static_assert(kShare == 1 || kPixels == 1);
  TT_SHARED_DYNAMIC(float, weight);
  const FewWindows& w = p.windows;
  const int32_t within = int32_t(threadIdx.x) % kSide;
  const int32_t part = int32_t(threadIdx.x) / kSide;
  const int32_t terms = w.k[0] * w.k[1] * p.depth;
  FewTap* const tap_of = reinterpret_cast<FewTap*>(weight + terms * kCols);
  float* const parts = weight + terms * (kCols + 2);  // [kShare - 1][kCols][kSide]
#pragma unroll 2
  for (int32_t i = int32_t(threadIdx.x); i < terms * kCols; i += kThreads) {
    const int32_t term = i / kCols;
    const int32_t col = i % kCols;
    const int32_t tap = term / p.depth;
    const int32_t channel = term - tap * p.depth;
    const int32_t row = tap / w.k[1];
    const int64_t at =
        col * p.w_col + channel * p.w_depth + row * p.w_k[0] + (tap - row * w.k[1]) * p.w_k[1];
    weight[i] = col < p.cols ? p.weight[at] : 0.0f;
    if (col == 0) tap_of[term] = few_tap(w, channel, tap);
  }
  __syncthreads();
  const uint32_t tiles = (w.pixels + kSide * kPixels - 1) / (kSide * kPixels);
  for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const float* from[kPixels];
    uint32_t taps[kPixels];
    float sum[kPixels][kCols];
#pragma unroll
    for (int j = 0; j < kPixels; j++) {
      const uint32_t pixel = (tile * kPixels + j) * kSide + within;
      const FewPixel at = few_pixel(w, pixel);
      from[j] = p.src + at.at;
      taps[j] = pixel < w.pixels ? taps_inside(w, at) : 0;
#pragma unroll
      for (int c = 0; c < kCols; c++) sum[j][c] = 0;
    }
#pragma unroll kFewAtOnce
    for (int32_t term = part; term < terms; term += kShare) {
      const FewTap t = tap_of[term];
      const float* b = weight + term * kCols;
      float x[kPixels];
#pragma unroll
      for (int j = 0; j < kPixels; j++)
        x[j] = (taps[j] & t.needs) == t.needs ? from[j][t.offset] : 0.0f;
#pragma unroll
      for (int k = 0; k < kCols; k++) {
        const float y = b[k];
#pragma unroll
        for (int j = 0; j < kPixels; j++) sum[j][k] = ::fmaf(x[j], y, sum[j][k]);
      }
    }
    if constexpr (kShare > 1) {
      if (part > 0) {
#pragma unroll
        for (int k = 0; k < kCols; k++)
          parts[((part - 1) * kCols + k) * kSide + within] = sum[0][k];
      }
      __syncthreads();
      if (part == 0) {
#pragma unroll 1
        for (int g = 0; g < kShare - 1; g++) {
#pragma unroll
          for (int k = 0; k < kCols; k++) sum[0][k] += parts[(g * kCols + k) * kSide + within];
        }
      }
      __syncthreads();
      if (part > 0) continue;
    }
#pragma unroll
    for (int j = 0; j < kPixels; j++) {
      const uint32_t pixel = (tile * kPixels + j) * kSide + within;
      if (pixel >= w.pixels) continue;
      const FewPixel at = few_pixel(w, pixel);
      float* const to = p.dst + at.image * p.to.image + int64_t(at.number) * p.to.pixel;
#pragma unroll
      for (int k = 0; k < kCols; k++)
        if (k < p.cols) to[k * p.to.channel] = p.bias ? sum[j][k] + p.bias[k] : sum[j][k];
    }
  }
}

// ---- the weight's gradient ----

constexpr int kChunk = 64;  // pixels
constexpr int kPitch = kChunk + 4;
constexpr int kStages = 2;
constexpr int kParts = kChunk / kWarp;  // of a chunk, by warps that copy
constexpr int kStep = kWarps / kParts;  // rows that are copied at once

struct FewWeightArguments {
  FewWindows windows;
  FewLayout from_y;
  const float *x, *y;
  float *sums, *dst;
  int32_t co, ci, terms;
  uint32_t splits, split_len;  // in pixels, a multiple of kChunk
  uint32_t tiles_n, tiles;
  int64_t w_co, w_ci, w_k[2];
};
struct alignas(16) Four {
  float v[4];
};

// kHeld: threads keep the terms that they copy in registers.
template <int kM_, int kN_, int kThreadM_, int kThreadN_, bool kHeld_> struct FewTile {
  static constexpr bool kHeld = kHeld_;
  static constexpr int kM = kM_, kN = kN_, kThreadM = kThreadM_, kThreadN = kThreadN_;
  static constexpr int kAcross = kN / kThreadN, kDown = kM / kThreadM;
  static constexpr int kGroups = kThreads / (kAcross * kDown);
  static constexpr int kStage = (kM + kN) * kPitch;  // elements
  static constexpr size_t kBytes = size_t(kStage) * kStages * 4;
  static_assert(kGroups >= 1 && kChunk / 4 % kGroups == 0 && kM * kN <= kStage * kStages);
};

// Where (channel of y, term) is in the gradient.
__device__ __forceinline__ int64_t few_weight_at(const FewWeightArguments& p, int32_t co,
                                                 int32_t term) {
  const int32_t* k = p.windows.k;
  const int32_t ci = term / (k[0] * k[1]);
  const int32_t tap = term - ci * (k[0] * k[1]);
  const int32_t row = tap / k[1];
  return co * p.w_co + ci * p.w_ci + row * p.w_k[0] + (tap - row * k[1]) * p.w_k[1];
}

template <class Tile> __global__ void __launch_bounds__(kThreads, 2)
    weight_few(const __grid_constant__ FewWeightArguments p) {
  constexpr int kM = Tile::kM, kN = Tile::kN, kRows = Tile::kThreadM, kCols = Tile::kThreadN;
  TT_SHARED_DYNAMIC(float, shared);
  TT_SHARED(FewTap, tap_of, kN);
  const FewWindows& w = p.windows;
  const int thread = int(threadIdx.x);
  const int lane = thread % kWarp;
  const int warp = thread / kWarp;
  const uint32_t split = blockIdx.x / p.tiles;
  const uint32_t tile = blockIdx.x - split * p.tiles;
  const int32_t row0 = int32_t(tile / p.tiles_n) * kM;
  const int32_t term0 = int32_t(tile % p.tiles_n) * kN;
  for (int i = thread; i < kN; i += kThreads) {
    const int32_t term = term0 + i;
    const int32_t channel = term / (w.k[0] * w.k[1]);
    const int32_t tap = term - channel * (w.k[0] * w.k[1]);
    tap_of[i] = few_tap(w, channel, tap);
    if (term >= p.terms) tap_of[i].needs = ~0u;
  }
  __syncthreads();
  const uint32_t begin = split * p.split_len;
  const uint32_t end = begin + p.split_len < w.pixels ? begin + p.split_len : w.pixels;
  const uint32_t chunks = (end - begin + kChunk - 1) / kChunk;

  const int part = warp % kParts * kWarp;
  const int first = warp / kParts;
  FewTap held[Tile::kHeld ? kN / kStep : 1];
  if constexpr (Tile::kHeld) {
#pragma unroll
    for (int e = 0; e < kN / kStep; e++) held[e] = tap_of[first + e * kStep];
  }
  const auto load = [&](uint32_t chunk) {
    float* const rows = shared + chunk % kStages * Tile::kStage + part + lane;
    float* const columns = rows + kM * kPitch;
    const uint32_t pixel = begin + chunk * kChunk + part + lane;
    const FewPixel at = few_pixel(w, pixel);
    const bool inside = pixel < end;
    const uint32_t taps = inside ? taps_inside(w, at) : 0;
    const float* y = p.y + at.image * p.from_y.image + int64_t(at.number) * p.from_y.pixel +
                     (row0 + first) * p.from_y.channel;
    const float* x = p.x + at.at;
#pragma unroll
    for (int i = first; i < kM; i += kStep) {
      device::copy_async_word(rows + i * kPitch, y, inside && row0 + i < p.co);
      y += kStep * p.from_y.channel;
    }
#pragma unroll
    for (int e = 0; e < kN / kStep; e++) {
      const int i = first + e * kStep;
      const FewTap t = Tile::kHeld ? held[e] : tap_of[i];
      device::copy_async_word(columns + i * kPitch, x + t.offset, (taps & t.needs) == t.needs);
    }
  };

  const int group = thread / (Tile::kDown * Tile::kAcross);
  const int within = thread % (Tile::kDown * Tile::kAcross);
  const int row = within / Tile::kAcross;
  const int column = within % Tile::kAcross;
  float sum[kRows][kCols];
#pragma unroll
  for (int i = 0; i < kRows; i++) {
#pragma unroll
    for (int j = 0; j < kCols; j++) sum[i][j] = 0;
  }
#pragma unroll 1
  for (int s = 0; s < kStages - 1; s++) {
    if (uint32_t(s) < chunks) load(uint32_t(s));
    device::commit_copies();
  }
#pragma unroll 1
  for (uint32_t chunk = 0; chunk < chunks; chunk++) {
    device::wait_for_copies<kStages - 2>();
    __syncthreads();
    if (chunk + kStages - 1 < chunks) load(chunk + kStages - 1);
    device::commit_copies();
    const float* const rows = shared + chunk % kStages * Tile::kStage;
    const float* const columns = rows + kM * kPitch;
#pragma unroll
    for (int q = 0; q < kChunk / 4; q += Tile::kGroups) {
      const int k = (q + group) * 4;
      Four v[kCols];
#pragma unroll
      for (int j = 0; j < kCols; j++)
        v[j] = *reinterpret_cast<const Four*>(columns + (column + j * Tile::kAcross) * kPitch + k);
#pragma unroll
      for (int i = 0; i < kRows; i++) {
        const Four u = *reinterpret_cast<const Four*>(rows + (row + i * Tile::kDown) * kPitch + k);
#pragma unroll
        for (int e = 0; e < 4; e++) {
#pragma unroll
          for (int j = 0; j < kCols; j++) sum[i][j] = ::fmaf(u.v[e], v[j].v[e], sum[i][j]);
        }
      }
    }
  }
  device::wait_for_copies<0>();
  // The groups' sums, one after the other.
#pragma unroll 1
  for (int g = Tile::kGroups - 1; g >= 0; g--) {
    __syncthreads();
    if (group != g) continue;
#pragma unroll
    for (int i = 0; i < kRows; i++) {
#pragma unroll
      for (int j = 0; j < kCols; j++) {
        float& cell = shared[(row + i * Tile::kDown) * kN + column + j * Tile::kAcross];
        cell = g == Tile::kGroups - 1 ? sum[i][j] : sum[i][j] + cell;
      }
    }
  }
  __syncthreads();
#pragma unroll 1
  for (int i = thread; i < kM * kN; i += kThreads) {
    const int32_t co = row0 + i / kN;
    const int32_t term = term0 + i % kN;
    if (co >= p.co || term >= p.terms) continue;
    if (p.splits == 1) p.dst[few_weight_at(p, co, term)] = shared[i];
    else p.sums[(int64_t(split) * p.co + co) * p.terms + term] = shared[i];
  }
}

constexpr int kJoinSlices = 32;
// A block has kWarp elements, each warp a part of their splits.
__global__ void __launch_bounds__(kWarp* kJoinSlices)
    join_few(const __grid_constant__ FewWeightArguments p) {
  TT_SHARED(float, part, kWarp* kJoinSlices);
  const int lane = int(threadIdx.x) % kWarp;
  const int slice = int(threadIdx.x) / kWarp;
  const int32_t elements = p.co * p.terms;
  const int32_t i = int32_t(blockIdx.x) * kWarp + lane;
  float sum = 0;
  if (i < elements) {
#pragma unroll 4
    for (uint32_t s = slice; s < p.splits; s += kJoinSlices)
      sum += p.sums[int64_t(s) * elements + i];
  }
  part[threadIdx.x] = sum;
  __syncthreads();
  if (slice > 0 || i >= elements) return;
#pragma unroll 4
  for (int s = 1; s < kJoinSlices; s++) sum += part[s * kWarp + lane];
  const int32_t co = i / p.terms;
  p.dst[few_weight_at(p, co, i - co * p.terms)] = sum;
}

// ---- on the host ----

FewLayout layout_of(const int64_t* grid, int64_t channels, bool channels_first) {
  const int64_t plane = grid[1] * grid[2];
  if (channels_first) return {channels * plane, plane, int32_t(grid[2]), 1};
  return {channels * plane, 1, int32_t(grid[2] * channels), int32_t(channels)};
}
// The windows of `grid` results over `in`.
FewWindows windows_of(const ConvShape& s, const int64_t* in, const int64_t* grid) {
  FewWindows w;
  for (int d = 0; d < 2; d++) {
    w.in[d] = int32_t(in[d + 1]);
    w.k[d] = int32_t(s.k[d + 1]);
    w.stride[d] = int32_t(s.stride[d + 1]);
    w.pad[d] = int32_t(s.pad[d + 1]);
  }
  w.by_plane.set(uint32_t(grid[1] * grid[2]));
  w.by_row.set(uint32_t(grid[2]));
  w.pixels = uint32_t(conv_pixels(s, grid));
  return w;
}
// Two dimensions without dilation, and numbers of pixels and elements of an image that an int32_t
// counts, a chunk above them, too.
bool is_plain(const ConvShape& s) {
  constexpr int64_t kMost = int64_t(1) << 28;
  if (s.groups != 1 || s.x[0] != 1 || s.y[0] != 1 || s.k[0] != 1) return false;
  for (int d = 1; d < kConvDims; d++)
    if (s.k[d] > kMaxTaps || s.dil[d] != 1 || s.pad[d] >= s.k[d] || s.stride[d] > kMost ||
        s.x[d] > kMost || s.y[d] > kMost)
      return false;
  const int64_t x = s.x[1] * s.x[2];
  const int64_t y = s.y[1] * s.y[2];
  if (x == 0 || y == 0 || x > kMost || y > kMost || s.n * s.ci * s.co == 0) return false;
  return s.n <= kMost / max(x, y) && x <= kMost / s.ci && y <= kMost / s.co;
}

constexpr int64_t kFewBlocks = 1056;
constexpr int64_t kWeightBlocks = 528;
constexpr int64_t kManyPixels = 1 << 16;
constexpr int64_t kFewWeight = 32768;   // bytes in shared memory that many blocks can hold
constexpr int64_t kMostWeight = 81920;  // and that blocks can hold which have many pixels

int64_t padded_cols(int64_t cols) {
  if (cols <= 8) return 8;
  return cols <= 16 ? 16 : 32;
}
template <int kCols, int kPixels, int kShare>
int32_t launch_few(const FewArguments& a, void* stream) {
  constexpr int kSide = kThreads / kShare;
  const int64_t tiles = ceil_div(a.windows.pixels, kSide * kPixels);
  const int64_t terms = int64_t(a.windows.k[0]) * a.windows.k[1] * a.depth;
  const size_t bytes = size_t(terms * (kCols + 2) + (kShare - 1) * kSide * kCols) * 4;
  return device::launch(conv_few<kCols, kPixels, kShare>, unsigned(min(tiles, kFewBlocks)),
                        kThreads, bytes, stream, a);
}

template <class Tile> int32_t launch_weight(FewWeightArguments a, void* stream) {
  const unsigned grid = unsigned(a.splits * a.tiles);
  return device::launch(weight_few<Tile>, grid, kThreads, Tile::kBytes, stream, a);
}
struct WeightTile {
  int32_t m, n;
};
WeightTile tile_of(const ConvShape& s) {
  if (s.co <= 8) return {8, 80};
  if (s.co <= 16) return {16, 80};
  return s.co <= 32 ? WeightTile{32, 32} : WeightTile{64, 96};
}
FewWeightArguments arguments_of(const ConvWeightPlan& p, void* workspace) {
  const ConvShape& s = p.s;
  FewWeightArguments a;
  a.windows = windows_of(s, s.x, s.y);
  a.windows.from = layout_of(s.x, s.ci, p.channels_first);
  a.from_y = layout_of(s.y, s.co, p.channels_first);
  a.x = reinterpret_cast<const float*>(p.src);
  a.y = reinterpret_cast<const float*>(p.y);
  a.sums = static_cast<float*>(workspace);
  a.dst = reinterpret_cast<float*>(p.dst);
  a.co = int32_t(s.co);
  a.ci = int32_t(s.ci);
  a.terms = int32_t(s.ci * s.taps());
  a.w_co = p.w_co;
  a.w_ci = p.w_ci;
  for (int d = 0; d < 2; d++) a.w_k[d] = p.w_k[d + 1];
  const WeightTile tile = tile_of(s);
  a.tiles_n = uint32_t(ceil_div(a.terms, tile.n));
  a.tiles = a.tiles_n * uint32_t(ceil_div(a.co, tile.m));
  const int64_t pixels = a.windows.pixels;
  const int64_t splits = clamp<int64_t>(kWeightBlocks / a.tiles, 1, ceil_div(pixels, 2 * kChunk));
  a.split_len = uint32_t(round_up(ceil_div(pixels, splits), kChunk));
  a.splits = uint32_t(ceil_div(pixels, a.split_len));
  return a;
}

}  // namespace

namespace cuda::few {

bool serves(const ConvPlan& p) {
  const ConvShape& s = p.s;
  const bool forward = p.mode == kConvForward;
  if (p.dtype != TT_F32 || !is_plain(s)) return false;
  const int64_t cols = conv_cols(s, p.mode);
  const int64_t bytes = s.taps() * conv_depth(s, p.mode) * (padded_cols(cols) + 2) * 4;
  const int64_t pixels = conv_pixels(s, forward ? s.y : s.x);
  if (cols > 32 || bytes > (pixels < kManyPixels ? kFewWeight : kMostWeight)) return false;
  return forward || (s.stride[1] == 1 && s.stride[2] == 1);
}
int32_t run(const ConvPlan& p, void* stream) {
  const ConvShape& s = p.s;
  const bool forward = p.mode == kConvForward;
  FewArguments a;
  a.depth = int32_t(conv_depth(s, p.mode));
  a.cols = int32_t(conv_cols(s, p.mode));
  const auto& from = forward ? s.x : s.y;
  const auto& to = forward ? s.y : s.x;
  a.windows = windows_of(s, from, to);
  a.windows.from = layout_of(from, a.depth, p.channels_first);
  a.to = layout_of(to, a.cols, p.path == kConvPlanes);
  a.src = reinterpret_cast<const float*>(p.src);
  a.weight = reinterpret_cast<const float*>(p.weight);
  a.bias = reinterpret_cast<const float*>(p.bias);
  a.dst = reinterpret_cast<float*>(p.dst);
  a.w_col = forward ? p.w_co : p.w_ci;
  a.w_depth = forward ? p.w_ci : p.w_co;
  for (int d = 0; d < 2; d++) {
    a.w_k[d] = p.w_k[d + 1];
    if (forward) continue;
    // A forward pass by the flipped weight.
    a.weight += (a.windows.k[d] - 1) * a.w_k[d];
    a.w_k[d] = -a.w_k[d];
    a.windows.pad[d] = a.windows.k[d] - 1 - a.windows.pad[d];
  }
  if (a.cols > 16) return launch_few<32, 2, 1>(a, stream);
  const bool many = a.windows.pixels >= (a.cols > 8 ? kManyPixels : 4 * kManyPixels);
  if (a.cols > 8) return many ? launch_few<16, 2, 1>(a, stream) : launch_few<16, 1, 4>(a, stream);
  return many ? launch_few<8, 4, 1>(a, stream) : launch_few<8, 1, 4>(a, stream);
}

bool serves(const ConvWeightPlan& p) {
  return p.dtype == TT_F32 && is_plain(p.s) && p.s.ci <= 64 && p.s.co <= 64;
}
size_t workspace_bytes(const ConvWeightPlan& p) {
  const FewWeightArguments a = arguments_of(p, nullptr);
  if (a.splits == 1) return 0;
  return size_t(a.splits) * size_t(a.co) * size_t(a.terms) * 4;
}
int32_t run(const ConvWeightPlan& p, void* stream, void* workspace) {
  const FewWeightArguments a = arguments_of(p, workspace);
  auto launch = launch_weight<FewTile<64, 96, 8, 6, false>>;
  if (a.co <= 8) launch = launch_weight<FewTile<8, 80, 4, 5, true>>;
  else if (a.co <= 16) launch = launch_weight<FewTile<16, 80, 4, 5, true>>;
  else if (a.co <= 32) launch = launch_weight<FewTile<32, 32, 4, 4, true>>;
  const int32_t status = launch(a, stream);
  if (status != TT_OK || a.splits == 1) return status;
  const unsigned grid = unsigned(ceil_div(int64_t(a.co) * a.terms, kWarp));
  return device::launch(join_few, grid, kWarp * kJoinSlices, 0, stream, a);
}

}  // namespace cuda::few
}  // namespace TT_NS
