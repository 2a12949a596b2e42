// Entry points over a LayerNormPlan and a LayerNormBackwardPlan; each runs plan.run.n stages.
#pragma once

#include "kernels/cpu/simd/isa.h"

TT_ENTRY_BEGIN
TT_KERNEL(layer_norm)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(layer_norm_backward)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_ENTRY_END
