// Entry points over a ClassLossPlan; each runs plan.run.n stages.
#pragma once

#include "kernels/cpu/simd/isa.h"

TT_ENTRY_BEGIN
TT_KERNEL(cross_entropy)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(cross_entropy_backward)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(nll_loss)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(nll_loss_backward)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_ENTRY_END
