// Convolutions by cuDNN, which is opened by the first one that it can serve. Descriptors and the
// algorithm are kept by geometry. Numbers of f32 are computed in f32, not in TF32, and only
// algorithms serve that give the same bits in every run.
#pragma once

#include "base/platform.h"
#include "plan/conv_plan.h"

namespace TT_NS::cuda::cudnn {

// As matmul/lt.h.
void use_library(const char* path);

// Whether the library is there and has an algorithm.
bool serves(const ConvPlan& p);
bool serves(const ConvWeightPlan& p);
size_t workspace_bytes(const ConvPlan& p);
size_t workspace_bytes(const ConvWeightPlan& p);
int32_t run(const ConvPlan& p, void* stream, void* workspace);
int32_t run(const ConvWeightPlan& p, void* stream, void* workspace);

}  // namespace TT_NS::cuda::cudnn
