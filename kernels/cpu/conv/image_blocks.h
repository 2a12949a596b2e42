// Blocks of images that are interleaved: a vector, or several, hold the same element of kImages
// images (plan/conv_plan.h).
#pragma once

#include "kernels/cpu/simd/transpose.h"
#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

constexpr int kImages = 16;

TT_INLINE void copy_images(float* to, const float* from) {
  for (int i = 0; i < kImages; i += kLanes<float>) store(to + i, load(from + i));
}

TT_ISA_END
