// Convolutions of float32 by the tiles of AMX; kernels of AVX-512 only.
#pragma once

#include "kernels/cpu/simd/isa.h"
#include "plan/conv_plan.h"

TT_ENTRY_BEGIN

// The pixels and columns of a unit of kConvPieces, as its phase counts them.
struct ConvPieceArea {
  int64_t phase, group;
  int64_t col_begin, col_end;
  int64_t image, images;
  int64_t depth;
  int64_t row, rows;
  int64_t left, width;  // pixels of a row
};

void conv_f32_amx_pack(const ConvPlan& p, int64_t begin, int64_t end) noexcept;
// False: nothing is computed, since tiles cannot.
bool conv_f32_amx(const ConvPlan& p, const ConvPieceArea& area) noexcept;

TT_ENTRY_END
