// Entry points over a BlockPlan.
#pragma once

#include "kernels/cpu/simd/isa.h"

#include "plan/quant_plan.h"

TT_ENTRY_BEGIN
TT_KERNEL(block_quantize)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(block_dequantize)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(block_linear)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_ENTRY_END
