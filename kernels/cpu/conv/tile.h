// Sizes of the micro-tiles of convolutions: kConvMr rows (pixels) by up to two vectors of columns.
#pragma once

#include "kernels/cpu/matmul/pack.h"
#include "plan/conv_plan.h"

TT_ISA_BEGIN

// Types other than f32 are rare enough to be given fewer kernels.
template <class T> constexpr int kConvMr = sizeof(T) == 4 ? kConvTileRows : 4;
template <class T> constexpr int kConvNr = 2 * kLanes<T>;
static_assert(kConvRows % kConvTileRows == 0 && kConvRows % 4 == 0);

// The coordinates of tap `number` of a window of size k.
struct ConvTap {
  int64_t at[kConvDims];
  TT_INLINE ConvTap(int64_t number, const int64_t* k)
      : at{number / k[2] / k[1], number / k[2] % k[1], number % k[2]} {}
};

TT_ISA_END
