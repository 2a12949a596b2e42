// Entry points over a SoftmaxPlan; each runs plan.run.n stages.
#pragma once

#include "kernels/cpu/simd/isa.h"

TT_ENTRY_BEGIN
TT_KERNEL(softmax)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(log_softmax)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(softmax_backward)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(log_softmax_backward)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_ENTRY_END
