// Blocks of images that are interleaved: a vector, or several, hold the same element of kImages
// images (plan/conv_plan.h).
#pragma once

#include "kernels/cpu/simd/transpose.h"
#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

constexpr int kImages = 16;

// to[r * to_step + c] = from[c * from_step + r] for r, c < kImages.
TT_INLINE void transpose_block(float* to, int64_t to_step, const float* from, int64_t from_step) {
  constexpr int kL = kLanes<float>;
  for (int r = 0; r < kImages; r += kL)
    for (int c = 0; c < kImages; c += kL)
      transpose_tile<uint32_t, kL>(reinterpret_cast<char*>(to + r * to_step + c), to_step * 4,
                                   reinterpret_cast<const char*>(from + c * from_step + r),
                                   from_step * 4);
}
TT_INLINE void copy_images(float* to, const float* from) {
  for (int i = 0; i < kImages; i += kLanes<float>) store(to + i, load(from + i));
}

TT_ISA_END
