// Entry points over a ChannelSumPlan, a ChannelAffinePlan and a ChannelNormPlan; each runs
// plan.run.n stages.
#pragma once

#include "kernels/cpu/simd/isa.h"

TT_ENTRY_BEGIN
TT_KERNEL(channel_sums)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(channel_affine)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(channel_norm)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_ENTRY_END
