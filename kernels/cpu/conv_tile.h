// Micro-kernels of convolutions, and the addresses that they read through.
#pragma once

#include "matmul_pack.h"
#include "plan/conv_plan.h"

TT_ISA_BEGIN

// Tiles of convolutions: kConvMr rows by up to two vectors. Types other than f32 are rare enough to be given fewer
// kernels.
#if defined(__AVX512F__)
constexpr int kConvMaxRows = 14;
#elif defined(__AVX2__)
constexpr int kConvMaxRows = 6;
#else
constexpr int kConvMaxRows = 4;
#endif
template <class T>
constexpr int kConvMr = sizeof(T) == 4 ? kConvMaxRows : 4;
template <class T>
constexpr int kConvNr = 2 * kLanes<T>;
static_assert(kConvRows % kConvMaxRows == 0 && kConvRows % 4 == 0);

// Position of a walk over the pixels of images, in row-major order; or, if n images are given, over the first row of
// all images, then the second: pixels side by side then meet the same padding above and below.
struct ConvWalk {
  int64_t size[kConvDims];
  int64_t at[kConvDims];
  int64_t image, images;

  TT_INLINE void start(const int64_t* grid, int64_t position, int64_t n = 0) {
    images = n;
    for (int d = kConvDims - 1; d >= 0; d--) {
      size[d] = grid[d];
      at[d] = position % grid[d], position /= grid[d];
      if (n && d == kConvDims - 1) image = position % n, position /= n;
    }
    if (!n) image = position;
  }
  // The pixels of this row from here on, at most n.
  TT_INLINE int64_t row(int64_t n) const { return size[2] - at[2] < n ? size[2] - at[2] : n; }
  // Moves n <= row(n) on.
  TT_INLINE void advance(int64_t n) {
    at[2] += n;
    if (at[2] < size[2]) return;
    at[2] = 0;
    if (images && ++image < images) return;
    if (images) image = 0;
    for (int d = kConvDims - 2; d >= 0; d--) {
      if (++at[d] < size[d]) return;
      at[d] = 0;
    }
    if (!images) image++;
  }
};

// The addresses of up to kN pixels (rows) of a source.
template <class T, int kN>
struct ConvSource {
  const T* base;  // of the source and the group
  const T* zeros;
  const ConvGather& g;
  int64_t coord[kConvDims][kN];  // in the source, before a tap is added
  int64_t offset[kN];

  TT_INLINE ConvSource(const ConvGather& gather, const char* src, const char* zero, int64_t group)
      : base(reinterpret_cast<const T*>(src) + group * gather.group),
        zeros(reinterpret_cast<const T*>(zero)),
        g(gather) {}

  // Rows [i, i + n): the pixels at c0, c1, and c2, c2 + step, ….
  TT_INLINE void set(int64_t i, int64_t n, int64_t image, int64_t c0, int64_t c1, int64_t c2, int64_t step) {
    const int64_t row = ((image * g.size[0] + c0) * g.size[1] + c1) * g.row;
    for (int64_t k = i; k < i + n; k++, c2 += step)
      coord[0][k] = c0, coord[1][k] = c1, coord[2][k] = c2, offset[k] = row + c2 * g.pixel;
  }
  // Rows [n, end) read zeros.
  TT_INLINE void fill(int64_t n, int64_t end) {
    for (; n < end; n++) coord[0][n] = coord[1][n] = coord[2][n] = INT64_MIN / 2, offset[n] = 0;
  }
  // The addresses of n rows for a tap that adds o[d] to their coordinates.
  TT_INLINE void addresses(int64_t n, const int64_t* o, const T** out) const {
    const int64_t shift = (o[0] * g.size[1] + o[1]) * g.row + o[2] * g.pixel;
    for (int64_t i = 0; i < n; i++) {
      const bool inside = (uint64_t(coord[0][i] + o[0]) < uint64_t(g.size[0])) &
                          (uint64_t(coord[1][i] + o[1]) < uint64_t(g.size[1])) &
                          (uint64_t(coord[2][i] + o[2]) < uint64_t(g.size[2]));
      out[i] = inside ? base + (offset[i] + shift) : zeros;
    }
  }
};

TT_ISA_END
