// Entry points over a ReducePlan; each runs plan.run.n stages.
#pragma once

#include "kernels/cpu/simd/isa.h"

TT_ENTRY_BEGIN

// Sum divided by plan.divisor. f16, bf16 and f32 are summed in f32, f64 and complex in themselves,
// bool and integers in int64, which out is then, too. Terms (plan.term) are summed in f64 if
// plan.by_output is set, and otherwise in the types of elements: there only nonzero, magnitudes,
// squares and, of long rows of f16, bf16 and f32, numbers are implemented.
TT_KERNEL(reduce_sum)(const void* plan, int64_t begin, int64_t end) noexcept;
// Product, in the same compute types.
TT_KERNEL(reduce_prod)(const void* plan, int64_t begin, int64_t end) noexcept;
// Largest or smallest element in the input's dtype, NaN if there is one. Real dtypes, length > 0.
TT_KERNEL(reduce_max)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(reduce_min)(const void* plan, int64_t begin, int64_t end) noexcept;
// Bool outputs from any dtype.
TT_KERNEL(reduce_any)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(reduce_all)(const void* plan, int64_t begin, int64_t end) noexcept;
// The largest or smallest element, and the position of its first occurrence (of the first NaN if
// there is one). out may be NULL.
TT_KERNEL(reduce_max_index)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(reduce_min_index)(const void* plan, int64_t begin, int64_t end) noexcept;

TT_ENTRY_END
