// Entry points over a BlockPlan.
#pragma once

#include "kernels/cpu/simd/isa.h"

#include "plan/quant_plan.h"

TT_ENTRY_BEGIN
TT_KERNEL(block_quantize)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(block_dequantize)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(block_linear)(const void* plan, int64_t begin, int64_t end) noexcept;
// A stage of block_linear with `digits`; false: this build, the processor or, in the second stage,
// a number of the row wants float32.
bool block_digits(const BlockPlan& p, int64_t begin, int64_t end) noexcept;
TT_ENTRY_END
