// Entry points over the plans of resize_plan.h.
#pragma once

#include "kernels/cpu/simd/isa.h"
#include "plan/resize_plan.h"

TT_ENTRY_BEGIN

// ResizePlan
TT_KERNEL(resize)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(resize_backward)(const void* plan, int64_t begin, int64_t end) noexcept;

TT_ENTRY_END
