// Convolutions of bf16 by the tiles of AMX; kernels of AVX-512 only.
#pragma once

#include "kernels/cpu/simd/isa.h"
#include "plan/conv_plan.h"

TT_ENTRY_BEGIN

// A unit of conv_weight's stage 0: pixels [from, to), taps [t0, t1), columns [j0, j1) of a group.
// If plan.lines has some, blocks [t0, t1) of 32 channels at all taps.
struct ConvWeightPart {
  int64_t split, group;
  int64_t from, to, t0, t1, j0, j1;
};

void conv_bf16_amx(const ConvPlan& p, int64_t begin, int64_t end) noexcept;
// Units of its stage 1, if plan.lines has some: dst is bf16.
void conv_weight_sum_bf16_amx(const ConvWeightPlan& p, int64_t begin, int64_t end) noexcept;
void conv_weight_bf16_amx(const ConvWeightPlan& p, const ConvWeightPart& part) noexcept;

TT_ENTRY_END
