// Entry point over a GroupNormBackwardPlan; it runs plan.run.n stages. layer_norm computes the
// forward pass.
#pragma once

#include "kernels/cpu/simd/isa.h"

TT_ENTRY_BEGIN
TT_KERNEL(group_norm_backward)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_ENTRY_END
