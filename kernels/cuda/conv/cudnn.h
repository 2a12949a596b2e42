// Convolutions by cuDNN, which is opened by the first one that it can serve. Descriptors and the
// algorithm are kept by geometry. Unless the plan allows more, numbers of f32 are computed in f32,
// and results have the same bits in every run.
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

// Whether it computes f32 by tensor cores: TF32 is allowed, and channels fill their tiles.
template <class Plan> bool serves_by_tensor_cores(const Plan& p) {
  constexpr int64_t kFewest = 16;
  const bool fills = p.s.ci >= kFewest && p.s.co >= kFewest;
  return p.dtype == TT_F32 && (p.math & kTf32Conv) && fills && serves(p);
}

}  // namespace TT_NS::cuda::cudnn
