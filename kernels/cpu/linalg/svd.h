// Entry point over an SvdPlan.
#pragma once

#include "kernels/cpu/simd/isa.h"

TT_ENTRY_BEGIN

TT_KERNEL(svd)(const void* plan, int64_t begin, int64_t end) noexcept;

TT_ENTRY_END
