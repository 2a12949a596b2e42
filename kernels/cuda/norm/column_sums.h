// Two sums over a set of positions for each of many columns: of rows of a matrix, or of the
// positions of a channel. Chunks of positions are summed by blocks; with several chunks, a second
// kernel joins them in their order. Chunks depend on the shape alone.
//
//   columns side by side   blockDim.x of them in a block, threadIdx.y walks the positions
//   planes                 a column has runs of `inner` elements; all threads of a block walk them,
//                          a position is a pack of them where runs and arrays are aligned
#pragma once

#include "kernels/cuda/row.h"
#include "kernels/cuda/strided.h"

namespace TT_NS {
namespace {

constexpr int kPositions = 4;  // of a thread, read at once

struct ColumnShape {
  int64_t columns, positions;
  int64_t chunk, n_chunks;  // positions of a chunk
  int64_t inner;            // positions of a run
  int64_t tiles;
  bool planes;
  bool small;   // positions fit 31 bits
  Divisor run;  // of inner, if small
};

// Two sums, [2].
template <class T> struct alignas(2 * sizeof(T)) TwoSums {
  T a, b;
  __device__ __forceinline__ TwoSums operator+(const TwoSums& o) const {
    return {a + o.a, b + o.b};
  }
};

// n numbers, their mean and the sum of squared deviations from it.
template <class T> struct Spread {
  T n, mean, squares;
  // After Chan, Golub, LeVeque (1983).
  __device__ __forceinline__ Spread operator+(const Spread& o) const {
    const T all = n + o.n;
    if (all == 0) return *this;
    const T delta = o.mean - mean;
    const T share = o.n / all;
    return {all, mean + delta * share, squares + o.squares + delta * delta * (n * share)};
  }
};
// The spread of the elements of kMany packs.
template <class S, int kMany, int kN>
__device__ __forceinline__ Spread<Compute<S>> spread_of(const Pack<S, kN> (&x)[kMany]) {
  using T = Compute<S>;
  T sum = 0;
#pragma unroll
  for (int u = 0; u < kMany; u++) {
#pragma unroll
    for (int j = 0; j < kN; j++) sum += number_of(x[u].v[j]);
  }
  Spread<T> s = {T(kMany * kN), sum / T(kMany * kN), 0};
#pragma unroll
  for (int u = 0; u < kMany; u++) {
#pragma unroll
    for (int j = 0; j < kN; j++) {
      const T d = number_of(x[u].v[j]) - s.mean;
      s.squares += d * d;
    }
  }
  return s;
}

// The columns of this block.
struct ColumnWork {
  const ColumnShape& s;
  int64_t column, chunk;
  int64_t from, to;  // positions; empty for a thread without a column
  bool inside;
  int part, parts;

  __device__ __forceinline__ bool leads() const { return part == 0 && inside; }
  // Where position q of the column is.
  __device__ __forceinline__ int64_t place(int64_t q) const {
    if (!s.planes) return q * s.columns + column;
    const int64_t o = s.small ? int64_t(s.run.divide(uint32_t(q))) : q / s.inner;
    return (o * s.columns + column) * s.inner + (q - o * s.inner);
  }
  // Calls f(at, q): the places of kPositions positions or of one, and the first of them; the next
  // ones are `parts` further each.
  template <class F> __device__ __forceinline__ void each(const F& f) const {
    int64_t q = from + part;
    for (; q + (kPositions - 1) * parts < to; q += kPositions * parts) {
      int64_t at[kPositions];
#pragma unroll
      for (int k = 0; k < kPositions; k++) at[k] = place(q + k * parts);
      f(at, q);
    }
    for (; q < to; q += parts) {
      const int64_t at[1] = {place(q)};
      f(at, q);
    }
  }
  template <class P> __device__ __forceinline__ P total(P value, P* shared) const {
    const int stride = s.planes ? 1 : int(blockDim.x);
    const int thread = int(threadIdx.y * blockDim.x + threadIdx.x);
    shared[thread] = value;
    __syncthreads();
    for (int half = parts / 2; half > 0; half /= 2) {
      if (part < half) {
        value = value + shared[thread + half * stride];
        shared[thread] = value;
      }
      __syncthreads();
    }
    value = shared[s.planes ? 0 : int(threadIdx.x)];
    __syncthreads();
    return value;
  }
};

template <class F> __device__ __forceinline__ void for_columns(const ColumnShape& s, const F& f) {
  const int64_t units = s.tiles * s.n_chunks;
  for (int64_t u = blockIdx.x; u < units; u += gridDim.x) {
    const int64_t chunk = u / s.tiles;
    const int64_t tile = u - chunk * s.tiles;
    const bool planes = s.planes;
    const int64_t column = planes ? tile : tile * blockDim.x + threadIdx.x;
    const bool inside = column < s.columns;
    const int64_t from = chunk * s.chunk;
    const int64_t end = from + s.chunk < s.positions ? from + s.chunk : s.positions;
    f(ColumnWork{s, column, chunk, from, inside ? end : from, inside,
                 int(planes ? threadIdx.x : threadIdx.y), int(planes ? blockDim.x : blockDim.y)});
  }
}

// ---- on the host ----

constexpr int64_t kColumnBlocks = 512;  // blocks, about
constexpr int64_t kColumnChunks = 128;  // chunks, at most
constexpr int64_t kColumnPiece = 16;    // positions of a thread, at least, where they are cut

struct ColumnLaunch {
  ColumnShape s;
  dim3 grid, block;
};

// unit: elements of a position, a divisor of inner; 1 without planes (inner is 1 then).
inline ColumnLaunch column_launch(int64_t columns, int64_t outer, int64_t inner, int64_t unit) {
  ColumnLaunch l = {};
  ColumnShape& s = l.s;
  s.columns = columns;
  s.planes = inner > 1;
  s.inner = inner / unit;
  s.positions = outer * s.inner;
  s.small = s.positions < int64_t(1) << 31;
  if (s.small && s.inner) s.run.set(uint32_t(s.inner));
  int64_t x = 1;
  while (x < columns && x < kWarp) x *= 2;
  if (s.planes) x = 1;
  int64_t parts = 1;
  while (parts * x < kRowShared && parts * 4 < s.positions) parts *= 2;
  l.block = s.planes ? dim3(unsigned(parts)) : dim3(unsigned(x), unsigned(parts));
  s.tiles = s.planes ? columns : ceil_div(columns, x);
  const int64_t wanted = min(ceil_div(kColumnBlocks, max<int64_t>(s.tiles, 1)), kColumnChunks);
  const int64_t most = min(wanted, s.positions / (kColumnPiece * parts));
  s.chunk = ceil_div(max<int64_t>(s.positions, 1), max<int64_t>(most, 1));
  s.n_chunks = max<int64_t>(ceil_div(s.positions, s.chunk), 1);
  l.grid = unsigned(min(s.tiles * s.n_chunks, kMaxRowGrid));
  return l;
}

}  // namespace
}  // namespace TT_NS
