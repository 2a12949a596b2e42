// What products of digits (quant_plan.h) share.
#pragma once

#include "kernels/cpu/quant/blocks.h"
#include "kernels/cpu/simd/bytes.h"
#include "kernels/cpu/simd/load.h"

TT_ISA_BEGIN

#if TT_NIBBLE_DOT

// Stores column j of the result, whose sum is that of all lanes.
TT_INLINE void store_lanes(const BlockPlan& p, int64_t j, Vec<float> lanes) {
  float two[2];
  fold_lanes<float, kLanes<float>>(lanes, two, [](auto x, auto y) { return x + y; });
  p.out[j] = two[0] + two[1] + (p.bias ? p.bias[j] : 0);
}

#endif

TT_ISA_END
