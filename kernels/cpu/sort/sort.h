// Entry points over a SortPlan, a SelectPlan and a SearchPlan.
#pragma once

#include "kernels/cpu/simd/isa.h"

TT_ENTRY_BEGIN

TT_KERNEL(sort_rows)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(select_rows)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(search_sorted)(const void* plan, int64_t begin, int64_t end) noexcept;

TT_ENTRY_END
