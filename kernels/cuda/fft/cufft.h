// Fourier transforms by cuFFT, which is opened by the first one. Its plans are kept by geometry.
#pragma once

#include "base/platform.h"
#include "plan/fft_plan.h"

namespace TT_NS::cuda::cufft {

// As matmul/lt.h.
void use_library(const char* path);

// Whether the library is there and takes the transform.
bool serves(const FftPlan& p);
size_t workspace_bytes(const FftPlan& p);
int32_t run(const FftPlan& p, void* stream, void* workspace);

}  // namespace TT_NS::cuda::cufft
