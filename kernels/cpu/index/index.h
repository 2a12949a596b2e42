// Entry points over the plans of index_plan.h: IndexPlan, IndexCheckPlan, BagPlan,
// NonzeroPlan.
#pragma once

#include "kernels/cpu/simd/isa.h"

TT_ENTRY_BEGIN

// IndexPlan, indices checked before.
//   index_get         gather, index_select, a[i, j], embedding
//   index_put         scatter, index_copy, a[i, j] = b
//   index_accumulate  scatter_add, index_add, index_put with accumulate, the gradient of embedding
//   index_combine     scatter_reduce, index_reduce; complex types: products only
// index_accumulate of bool is `or`.
TT_KERNEL(index_get)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(index_put)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(index_accumulate)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(index_combine)(const void* plan, int64_t begin, int64_t end) noexcept;
// IndexCheckPlan. index_offsets checks, too, and writes offset 0 for a bad index.
TT_KERNEL(index_check)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(index_offsets)(const void* plan, int64_t begin, int64_t end) noexcept;
// BagPlan, of floats.
TT_KERNEL(bag_reduce)(const void* plan, int64_t begin, int64_t end) noexcept;
// NonzeroPlan, any dtype.
TT_KERNEL(nonzero_count)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(nonzero_write)(const void* plan, int64_t begin, int64_t end) noexcept;

TT_ENTRY_END
