// Entry point over an ArangePlan.
#pragma once

#include "kernels/cpu/simd/isa.h"

TT_ENTRY_BEGIN

TT_KERNEL(fill_arange)(const void* plan, int64_t begin, int64_t end) noexcept;  // any dtype

TT_ENTRY_END
