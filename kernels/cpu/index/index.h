// Entry points over the plans of index_plan.h.
#pragma once

#include "kernels/cpu/simd/isa.h"

TT_ENTRY_BEGIN

// IndexPlan, indices already checked. gather, index_select, a[i, j], embedding: index_get; a[i, j]
// = b: index_put; scatter_add, index_add, index_put with accumulate, the gradient of embedding:
// index_accumulate.
TT_KERNEL(index_get)(const void* plan, int64_t begin, int64_t end) noexcept;  // any dtype
TT_KERNEL(index_put)(const void* plan, int64_t begin, int64_t end) noexcept;  // any dtype
TT_KERNEL(index_accumulate)
(const void* plan, int64_t begin, int64_t end) noexcept;  // any dtype; bool: or
// IndexCheckPlan. The second checks too, and writes an offset of 0 for a bad index.
TT_KERNEL(index_check)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(index_offsets)(const void* plan, int64_t begin, int64_t end) noexcept;
// NonzeroPlan, any dtype
TT_KERNEL(nonzero_count)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(nonzero_write)(const void* plan, int64_t begin, int64_t end) noexcept;

TT_ENTRY_END
