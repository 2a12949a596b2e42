// Sums of the addends of each target, in the same order in every run. Items are sorted by target:
// those of one target are a run of neighbours, in their order:
//
//   pieces    thread (piece of the sorted items, feature) finishes the runs that are inside its
//             piece; sums of runs that cross a border go to parts [piece][before, after][feature]
//   join      thread (piece, feature) adds the parts of the run that begins in its piece and leaves
//             it
//
// A source S, a kernel's argument, has
//   T: type of the sums; pairs, n, features: the sorted items and their number, features
//   Feature feature(f): what a thread needs to know of its feature
//   T addend(i, feature): that of sorted item i
//   T before(i, feature): what the target of item i has already
//   void finish(i, feature, sum): stores it
#pragma once

#include "kernels/cuda/nest.h"
#include "kernels/cuda/sort/pairs.h"

namespace TT_NS {
namespace {

constexpr int kSegmentThreads = 256;

struct SegmentPieces {
  void* parts;
  int64_t pieces, piece;  // their number, and the items of one
};

template <class T> __device__ __forceinline__ T plus(T x, T y) { return T(x + y); }

template <class S> struct Segments {
  using T = typename S::T;
  const S& s;
  const SegmentPieces& p;
  int64_t piece, feature_number, begin, end;
  typename S::Feature feature;

  __device__ __forceinline__ Segments(const S& source, const SegmentPieces& pieces, int64_t t)
      : s(source), p(pieces) {
    piece = quotient(t, s.features);
    feature_number = t - piece * s.features;
    feature = s.feature(feature_number);
    begin = piece * p.piece;
    end = begin + p.piece < s.n ? begin + p.piece : s.n;
  }
  __device__ __forceinline__ uint64_t key(int64_t i) const { return s.pairs[i].key; }
  // Whether a run goes on from i - 1 to i.
  __device__ __forceinline__ bool goes_on(int64_t i) const {
    return i > 0 && i < s.n && key(i - 1) == key(i);
  }
  __device__ __forceinline__ T* part(int64_t of_piece, int side) const {
    return static_cast<T*>(p.parts) + (of_piece * 2 + side) * s.features + feature_number;
  }
};

template <class S> __global__ void __launch_bounds__(kSegmentThreads)
    add_pieces(const __grid_constant__ S source, const __grid_constant__ SegmentPieces p) {
  for (int64_t t = first_item(); t < p.pieces * source.features; t += item_step()) {
    const Segments<S> s(source, p, t);
    for (int64_t i = s.begin; i < s.end;) {
      const bool before = i == s.begin && s.goes_on(i);
      int64_t last = i + 1;
      while (last < s.end && s.goes_on(last)) last++;
      const bool after = last == s.end && s.goes_on(last);
      const bool inside = !before && !after;
      typename S::T sum = inside ? source.before(i, s.feature) : source.addend(i, s.feature);
      for (int64_t k = i + !inside; k < last; k++) sum = plus(sum, source.addend(k, s.feature));
      if (inside) source.finish(i, s.feature, sum);
      else *s.part(s.piece, before ? 0 : 1) = sum;
      i = last;
    }
  }
}

template <class S> __global__ void __launch_bounds__(kSegmentThreads)
    join_pieces(const __grid_constant__ S source, const __grid_constant__ SegmentPieces p) {
  for (int64_t t = first_item(); t < p.pieces * source.features; t += item_step()) {
    const Segments<S> s(source, p, t);
    if (!s.goes_on(s.end)) continue;
    // The run that leaves the piece must begin in it.
    if (s.goes_on(s.begin) && s.key(s.begin) == s.key(s.end - 1)) continue;
    typename S::T sum = plus(source.before(s.end - 1, s.feature), *s.part(s.piece, 1));
    for (int64_t q = s.piece + 1;; q++) {
      sum = plus(sum, *s.part(q, 0));
      const int64_t end = (q + 1) * p.piece;
      if (end >= source.n || s.key(end) != s.key(s.end)) break;
    }
    source.finish(s.end - 1, s.feature, sum);
  }
}

// ---- on the host ----

inline int64_t segment_piece(int64_t features) { return features >= kWarp ? 256 : 32; }
inline int64_t segment_bytes(int64_t n, int64_t features) {  // of `parts`
  return ceil_div(n, segment_piece(features)) * 2 * features * 16;
}
template <class S> int32_t launch_segments(const S& source, void* parts, void* stream) {
  static_assert(sizeof(typename S::T) <= 16);
  const int64_t piece = segment_piece(source.features);
  const SegmentPieces p = {parts, ceil_div(source.n, piece), piece};
  const unsigned grid = grid_of(p.pieces * source.features, kSegmentThreads);
  const int32_t status = device::launch(add_pieces<S>, grid, kSegmentThreads, 0, stream, source, p);
  if (status != TT_OK || p.pieces == 1) return status;
  return device::launch(join_pieces<S>, grid, kSegmentThreads, 0, stream, source, p);
}

}  // namespace
}  // namespace TT_NS
