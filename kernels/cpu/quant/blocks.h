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
// Its columns [begin, end) for formats but q4_0; builds of AVX-512 have it.
void span_digits(const BlockPlan& p, int64_t begin, int64_t end) noexcept;
// block_dequantize and block_linear of the formats that are not plain.
void block_spans_unpack(const BlockPlan& p, int64_t begin, int64_t end) noexcept;
void block_spans_linear(const BlockPlan& p, int64_t begin, int64_t end) noexcept;

// block_linear with plan.tiles.
void block_tiles(const BlockPlan& p, int64_t begin, int64_t end) noexcept;

// A part of a packed row as integers with scales. Number i is, rounded once,
//   q[i] * scale[i / kGroup] + shift[i / kGroup]
// since an integer of at most 7 bits times a scale of 17, or of 6 times 18, is exact in float32.
constexpr int64_t kGroup = 16;
constexpr int64_t kSpan = kMaxBlockItems;
struct BlockSpan {
  alignas(64) int8_t q[kSpan];
  alignas(64) float scale[kSpan / kGroup];
  alignas(64) float shift[kSpan / kGroup];
};
// Unpacks `items` numbers, whole blocks and at most kSpan.
void unpack_span(int32_t format, const char* from, int64_t items, BlockSpan& s) noexcept;
// Computes rows [begin, end) of column j of block_linear's result, of any format.
void span_dots(const BlockPlan& p, int64_t j, int64_t begin, int64_t end) noexcept;
TT_ENTRY_END
