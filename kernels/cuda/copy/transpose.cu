// Copies from an operand that is dense along columns to one that is dense along rows, tile by tile
// through shared memory, with a bias for each column if there is one.
//
//   in     [batch][rows][columns]    16 bytes of a row at once
//   tile   [rows][columns]           in row r, the 16 bytes c are in place c ^ (r / kVector), so
//                                    that rows and columns alike are spread over all banks
//   out    [batch][columns][rows]    16 bytes of a column at once
//
// A tile is made of squares of 128 bytes by 8 * kVector rows, beside and below each other as the
// sizes ask. Where an operand is not aligned for 16 bytes, threads move 8, or an element.
#include "kernels/cuda/copy/transpose.h"

#include "kernels/cuda/row.h"
#include "kernels/cuda/strided.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int kLine = 128;  // bytes of a side of a square
// Bytes of a tile: an H200 moves halves faster in longer ones.
TT_FN constexpr int tile_bytes(int64_t item) { return item == 2 ? 32768 : 16384; }

struct TransposeArguments {
  const char* in;
  char* out;
  const char* bias;
  int32_t rows, columns;
  int64_t in_pitch, out_pitch;  // bytes from row to row, from column to column
  int32_t in_width, out_width;  // bytes that a thread moves at once
  int32_t below_log2;           // squares of a tile below each other
  Divisor tiles, across;        // of a matrix; beside each other
  int64_t blocks;
  Walk<2> batch;  // of out and in
};

template <int kN> constexpr int kLog2 = 1 + kLog2<kN / 2>;
template <> inline constexpr int kLog2<1> = 0;

template <class E> struct Tile {
  static constexpr int kItem = int(sizeof(E));
  static constexpr int kVector = 16 / kItem;
  static constexpr int kSide = kLine / kItem;
  static constexpr int kBytes = tile_bytes(kItem);
  static constexpr int kSquaresLog2 = kLog2<kBytes / (kLine * kSide)>;

  // Where element (r, c) is.
  static __device__ __forceinline__ int at(int r, int c, int across_log2) {
    const int chunk = c / kVector;
    const int place = (chunk & ~7) | ((chunk ^ (r / kVector)) & 7);
    return (r * kSide << across_log2) + place * kVector + c % kVector;
  }
};

template <class E, int kWidth>
__device__ __forceinline__ void load_tile(const TransposeArguments& a, const char* in, int32_t row,
                                          int32_t column, E* tile) {
  using T = Tile<E>;
  constexpr int kN = kWidth / T::kItem;
  constexpr int kUnits = T::kBytes / kWidth / kThreads;
  constexpr int kAtOnce = kUnits < 8 ? kUnits : 8;
  using Unit = Pack<E, kN>;
  const int across_log2 = T::kSquaresLog2 - a.below_log2;
  const int row_log2 = kLog2<kLine / kWidth> + across_log2;
#pragma unroll 1
  for (int first = 0; first < kUnits; first += kAtOnce) {
    Unit v[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; j++) {
      const int i = (first + j) * kThreads + int(threadIdx.x);
      const int32_t r = row + (i >> row_log2);
      const int32_t c = column + (i & ((1 << row_log2) - 1)) * kN;
      v[j] = {};
      if (r < a.rows && c < a.columns)
        v[j] = *reinterpret_cast<const Unit*>(in + r * a.in_pitch + int64_t(c) * T::kItem);
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; j++) {
      const int i = (first + j) * kThreads + int(threadIdx.x);
      const int c = (i & ((1 << row_log2) - 1)) * kN;
      *reinterpret_cast<Unit*>(tile + T::at(i >> row_log2, c, across_log2)) = v[j];
    }
  }
}

template <class E, bool kBias>
__device__ __forceinline__ E with_bias(E v, const char* bias, int64_t column) {
  if constexpr (kBias)
    return stored_as<E>(number_of(v) + number_of(reinterpret_cast<const E*>(bias)[column]));
  else return v;
}

// The lanes of a warp have neighbouring units of as many columns as that takes.
template <class E, int kWidth, bool kBias>
__device__ __forceinline__ void store_tile(const TransposeArguments& a, char* out, int32_t row,
                                           int32_t column, const E* tile) {
  using T = Tile<E>;
  constexpr int kN = kWidth / T::kItem;
  constexpr int kUnits = T::kBytes / kWidth / kThreads;
  constexpr int kAtOnce = kUnits < 4 ? kUnits : 4;
  constexpr int kLineLog2 = kLog2<kLine / kWidth>;  // units of a column of a square
  constexpr int kLanesLog2 = kLineLog2 < 5 ? kLineLog2 : 5;
  constexpr int kColumnsLog2 = 5 - kLanesLog2;
  using Unit = Pack<E, kN>;
  const int across_log2 = T::kSquaresLog2 - a.below_log2;
#pragma unroll 1
  for (int first = 0; first < kUnits; first += kAtOnce) {
#pragma unroll
    for (int j = 0; j < kAtOnce; j++) {
      const int i = (first + j) * kThreads + int(threadIdx.x);
      const int more_log2 = kLineLog2 - kLanesLog2 + a.below_log2;
      const int warp = i >> 5;
      const int above = warp & ((1 << more_log2) - 1);
      const int r = ((above << kLanesLog2) + (i & ((1 << kLanesLog2) - 1))) * kN;
      const int c = ((warp >> more_log2) << kColumnsLog2) + ((i & 31) >> kLanesLog2);
      if (row + r >= a.rows || column + c >= a.columns) continue;
      Unit v;
#pragma unroll
      for (int k = 0; k < kN; k++)
        v.v[k] = with_bias<E, kBias>(tile[T::at(r + k, c, across_log2)], a.bias, column + c);
      *reinterpret_cast<Unit*>(out + (column + c) * a.out_pitch + int64_t(row + r) * T::kItem) = v;
    }
  }
}

template <class E, bool kBias> __global__ void __launch_bounds__(kThreads)
    transpose_tiles(const __grid_constant__ TransposeArguments a) {
  device::wait_for_previous();
  using T = Tile<E>;
  using Chunk = Pack<E, T::kVector>;
  TT_SHARED(Chunk, chunks, T::kBytes / 16);
  E* const tile = reinterpret_cast<E*>(chunks);
  const uint32_t matrix = a.tiles.divide(blockIdx.x);
  const uint32_t within = blockIdx.x - matrix * a.tiles.d;
  const uint32_t down = a.across.divide(within);
  const uint32_t across = within - down * a.across.d;
  const int32_t row = int32_t(down * uint32_t(T::kSide << a.below_log2));
  const int32_t column = int32_t(across * uint32_t(T::kSide << (T::kSquaresLog2 - a.below_log2)));
  int64_t at[2];
  a.batch.find(matrix, at);
  const char* in = a.in + at[1];
  constexpr int kHalf = T::kItem < 8 ? 8 : 16;
  if (a.in_width == 16) load_tile<E, 16>(a, in, row, column, tile);
  else if (a.in_width == kHalf) load_tile<E, kHalf>(a, in, row, column, tile);
  else load_tile<E, T::kItem>(a, in, row, column, tile);
  __syncthreads();
  char* out = a.out + at[0];
  if (a.out_width == 16) store_tile<E, 16, kBias>(a, out, row, column, tile);
  else if (a.out_width == kHalf) store_tile<E, kHalf, kBias>(a, out, row, column, tile);
  else store_tile<E, T::kItem, kBias>(a, out, row, column, tile);
}

// ---- on the host ----

constexpr int64_t kFewest = 8;        // rows and columns
constexpr int64_t kLeastSize = 4096;  // elements
constexpr int64_t kMostSize = (int64_t(1) << 31) - 4096;
constexpr int64_t kTileUse = 4096;  // bytes of a tile that are used, on an average

// The dimension along which the input is dense; 0: the output's, or none.
int dense_dimension(const ElementPlan& p, int64_t item) {
  if (p.dense || p.stride[1][0] == item || p.stride[0][0] != item) return 0;
  for (int d = 1; d < p.ndim; d++)
    if (p.stride[1][d] == item) return d;
  return 0;
}

// Bytes that a thread moves at once, of runs of `length` elements; strides: all others, or-ed.
int32_t width_of(const char* p, int64_t length, int64_t item, int64_t strides) {
  const uint64_t all =
      uint64_t(reinterpret_cast<uintptr_t>(p)) | uint64_t(length * item) | uint64_t(strides);
  if (all % 16 == 0) return 16;
  return all % 8 == 0 ? 8 : int32_t(item);
}

struct Sizes {
  int64_t rows, columns, batch;
};
// Sets what depends on the sizes; returns whether tiles fit them.
bool set_tiles(TransposeArguments* a, const Sizes& s, int64_t item) {
  const int64_t side = kLine / item;
  const int64_t squares = tile_bytes(item) / (kLine * side);
  int down = 0;
  int across = 0;
  while (int64_t(1) << (down + across) < squares) {
    const bool is_tall = s.rows > side << down && (across > down || s.columns <= side << across);
    if (is_tall) down++;
    else across++;
  }
  const int64_t tiles_down = ceil_div(s.rows, side << down);
  const int64_t tiles_across = ceil_div(s.columns, side << across);
  a->rows = int32_t(s.rows);
  a->columns = int32_t(s.columns);
  a->below_log2 = down;
  const int64_t tiles = tiles_down * tiles_across;
  a->blocks = tiles * s.batch;
  if (s.rows > kMostSize || s.columns > kMostSize || a->blocks > kMostSize) return false;
  a->tiles.set(uint32_t(tiles));
  a->across.set(uint32_t(tiles_across));
  return tiles * kTileUse <= s.rows * s.columns * item;
}

bool set_arguments(TransposeArguments* a, const ElementPlan& p) {
  const int64_t item = kItemSize[p.dtype[0] & 15];
  if (p.n < kLeastSize) return false;
  const int dense = dense_dimension(p, item);
  if (dense == 0 || p.size[0] < kFewest || p.size[dense] < kFewest) return false;
  if (p.ndim - 2 > kMaxWalkDims) return false;
  Walk<2>& batch = a->batch;
  batch.ndim = 0;
  batch.wide = false;
  Sizes sizes = {p.size[0], p.size[dense], 1};
  int64_t strides[2] = {p.stride[0][dense], p.stride[1][0]};
  for (int d = 1; d < p.ndim; d++) {
    if (d == dense) continue;
    if (p.size[d] > kMostSize) return false;
    batch.size[batch.ndim] = p.size[d];
    batch.divisor[batch.ndim].set(uint32_t(p.size[d]));
    for (int k = 0; k < 2; k++) {
      batch.stride[k][batch.ndim] = p.stride[k][d];
      strides[k] |= p.stride[k][d];
    }
    batch.ndim++;
    sizes.batch *= p.size[d];
  }
  a->in = p.ptr[1];
  a->out = p.ptr[0];
  a->bias = nullptr;
  a->in_pitch = p.stride[1][0];
  a->out_pitch = p.stride[0][dense];
  a->in_width = width_of(a->in, sizes.columns, item, strides[1]);
  a->out_width = width_of(a->out, sizes.rows, item, strides[0]);
  return set_tiles(a, sizes, item);
}

template <class E, bool kBias> int32_t launch_tiles(const TransposeArguments& a, void* stream) {
  return device::launch_early(transpose_tiles<E, kBias>, unsigned(a.blocks), kThreads, stream, a);
}
int32_t launch_plain(const TransposeArguments& a, int64_t item, void* stream) {
  switch (item) {
    case 1: return launch_tiles<uint8_t, false>(a, stream);
    case 2: return launch_tiles<uint16_t, false>(a, stream);
    case 4: return launch_tiles<uint32_t, false>(a, stream);
    case 8: return launch_tiles<uint64_t, false>(a, stream);
    default: return launch_tiles<Bytes16, false>(a, stream);
  }
}

}  // namespace

namespace cuda {

bool transpose(const ElementPlan& p, void* stream, int32_t* status) {
  TransposeArguments a;
  if (!set_arguments(&a, p)) return false;
  *status = launch_plain(a, kItemSize[p.dtype[0] & 15], stream);
  return true;
}
int32_t copy_planes(const PlanesCopy& c, void* stream) {
  const int64_t item = kItemSize[c.dtype];
  const int64_t image = c.pixels * c.channels * item;
  TransposeArguments a;
  a.in = c.from;
  a.out = c.to;
  a.bias = c.bias;
  a.in_pitch = c.channels * item;
  a.out_pitch = c.pixels * item;
  a.batch.ndim = 1;
  a.batch.wide = false;
  a.batch.size[0] = c.images;
  a.batch.divisor[0].set(uint32_t(c.images));
  a.batch.stride[0][0] = a.batch.stride[1][0] = image;
  a.in_width = width_of(c.from, c.channels, item, image);
  a.out_width = width_of(c.to, c.pixels, item, image);
  set_tiles(&a, {c.pixels, c.channels, c.images}, item);
  if (a.blocks > kMostSize) return TT_INTERNAL;
  if (!c.bias) return launch_plain(a, item, stream);
  return with_floating(c.dtype, [&](auto s) { return launch_tiles<decltype(s), true>(a, stream); });
}

}  // namespace cuda
}  // namespace TT_NS
