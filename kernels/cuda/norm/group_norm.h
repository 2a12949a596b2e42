// group_norm by the kernels of batch_norm (batch_norm.cu): the groups are channels whose statistics
// the channels of an image share.
#pragma once

#include "plan/norm_plan.h"

#include <stddef.h>

namespace TT_NS::cuda {

// plan.inner is not 0.
int32_t group_norm(const LayerNormPlan& plan, void* stream, void* workspace);
size_t group_norm_workspace(const LayerNormPlan& plan);

}  // namespace TT_NS::cuda
