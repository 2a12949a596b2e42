// Sums of the addends of each target, in the same order in every run. Items are sorted by target:
// those of one target are a run of neighbours, in their order:
//
//   pieces    kSegmentPiece sorted items. Threads (first item of a run in its piece, feature) add
//             the run's items in the piece, and finish runs that are inside; sums of runs that
//             cross a border go to parts [piece][before, after][feature]
//   join      thread (piece, feature) adds the parts of the run that begins in its piece and leaves
//             it
//
// A source S, a kernel's argument, has
//   T: type of the sums; kAtOnce: addends that a thread reads at once
//   items, n, features: the sorted items and their number, features
//   Feature feature(f): what a thread needs to know of its feature
//   T addend(i, feature): that of sorted item i
//   T* target(key, feature): where the sum of the key's run is added; NULL: nowhere
#pragma once

#include "kernels/cuda/nest.h"
#include "kernels/cuda/sort/pairs.h"

namespace TT_NS {
namespace {

constexpr int kSegmentThreads = 256;
constexpr int kSegmentPiece = 32;

template <class T> __device__ __forceinline__ T plus(T x, T y) { return T(x + y); }

// sum + value(k) + value(k + 1) … up to `end`; kAtOnce values are read at once.
template <int kAtOnce, class T, class F>
__device__ __forceinline__ T add_all(T sum, int64_t k, int64_t end, const F& value) {
  for (; k < end; k += kAtOnce) {
    T v[kAtOnce] = {};
#pragma unroll
    for (int j = 0; j < kAtOnce; j++)
      if (k + j < end) v[j] = value(k + j);
#pragma unroll
    for (int j = 0; j < kAtOnce; j++)
      if (k + j < end) sum = plus(sum, v[j]);
  }
  return sum;
}

template <class S> __device__ __forceinline__ bool same_run(const S& s, int64_t i, int64_t k) {
  return s.items.key(i) == s.items.key(k);
}
// The sum of a run's items in a piece; side 0: the run began before the piece.
template <class S> __device__ __forceinline__ typename S::T* segment_part(const S& s, void* parts,
                                                                          int64_t piece, int side) {
  return static_cast<typename S::T*>(parts) + (piece * 2 + side) * s.features;
}

template <class S> __global__ void __launch_bounds__(kSegmentThreads)
    add_pieces(const __grid_constant__ S s, void* parts) {
  using T = typename S::T;
  const int64_t step = int64_t(gridDim.x) * blockDim.y;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.y + threadIdx.y; i < s.n; i += step) {
    const int64_t piece = i / kSegmentPiece;
    const int64_t begin = piece * kSegmentPiece;
    const int64_t end = begin + kSegmentPiece < s.n ? begin + kSegmentPiece : s.n;
    const auto key = s.items.key(i);
    const bool starts = i == 0 || s.items.key(i - 1) != key;
    bool goes_on = i + 1 < s.n && s.items.key(i + 1) == key;
    if (!starts && i != begin) continue;
    int64_t last = i + 1;
    while (goes_on && last < end) {
      last++;
      goes_on = last < s.n && s.items.key(last) == key;
    }
    const bool inside = starts && !goes_on;
    for (int64_t f = threadIdx.x; f < s.features; f += blockDim.x) {
      const typename S::Feature feature = s.feature(f);
      const auto addend = [&](int64_t k) { return s.addend(k, feature); };
      T* const to = inside ? s.target(key, feature) : segment_part(s, parts, piece, starts) + f;
      if (!to) continue;
      const T sum = inside ? *to : addend(i);
      *to = add_all<S::kAtOnce>(sum, inside ? i : i + 1, last, addend);
    }
  }
}

// The last piece that the run of item i reaches; it reaches `piece`.
template <class S>
__device__ __forceinline__ int64_t last_piece(const S& s, int64_t i, int64_t piece) {
  const auto reaches = [&](int64_t p) {
    return p * kSegmentPiece < s.n && same_run(s, i, p * kSegmentPiece);
  };
  int64_t step = 1;
  for (; reaches(piece + step); step *= 2) piece += step;
  for (; step > 0; step /= 2)
    if (reaches(piece + step)) piece += step;
  return piece;
}

template <class S> __global__ void __launch_bounds__(kSegmentThreads)
    join_pieces(const __grid_constant__ S s, void* parts) {
  const int64_t step = int64_t(gridDim.x) * blockDim.y;
  for (int64_t p = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;; p += step) {
    const int64_t begin = p * kSegmentPiece;
    const int64_t end = begin + kSegmentPiece;
    if (end >= s.n) break;
    if (!same_run(s, end - 1, end)) continue;
    // The run that leaves the piece must begin in it.
    if (begin > 0 && same_run(s, begin - 1, end)) continue;
    const int64_t last = last_piece(s, end, p + 1);
    for (int64_t f = threadIdx.x; f < s.features; f += blockDim.x) {
      auto* const to = s.target(s.items.key(end), s.feature(f));
      if (!to) continue;
      const auto sum = plus(*to, segment_part(s, parts, p, 1)[f]);
      *to = add_all<S::kAtOnce>(sum, p + 1, last + 1,
                                [&](int64_t q) { return segment_part(s, parts, q, 0)[f]; });
    }
  }
}

// ---- on the host ----

inline int64_t segment_bytes(int64_t n, int64_t features) {  // of `parts`
  return ceil_div(n, kSegmentPiece) * 2 * features * 16;
}
template <class S> int32_t launch_segments(const S& source, void* parts, void* stream) {
  static_assert(sizeof(typename S::T) <= 16);
  const dim3 block = block_of(source.features);
  const unsigned grid = grid_of(source.n, block.y);
  const int32_t status = device::launch(add_pieces<S>, grid, block, 0, stream, source, parts);
  if (status != TT_OK || source.n <= kSegmentPiece) return status;
  const unsigned pieces = grid_of(ceil_div(source.n, kSegmentPiece), block.y);
  return device::launch(join_pieces<S>, pieces, block, 0, stream, source, parts);
}

}  // namespace
}  // namespace TT_NS
