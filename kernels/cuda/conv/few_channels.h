// Convolutions of f32 with few channels by kernels of their own, chosen by the shape alone.
#pragma once

#include "base/platform.h"
#include "plan/conv_plan.h"

namespace TT_NS::cuda::few {

bool serves(const ConvPlan& p);
bool serves(const ConvWeightPlan& p);
size_t workspace_bytes(const ConvWeightPlan& p);
int32_t run(const ConvPlan& p, void* stream);
int32_t run(const ConvWeightPlan& p, void* stream, void* workspace);

}  // namespace TT_NS::cuda::few
