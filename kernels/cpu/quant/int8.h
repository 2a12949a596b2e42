// Entry points over an Int8Plan.
#pragma once

#include "kernels/cpu/simd/isa.h"

#include "plan/quant_plan.h"

TT_ENTRY_BEGIN
TT_KERNEL(int8_matmul)(const void* plan, int64_t begin, int64_t end) noexcept;
// Computes tiles of the second stage by dot products of bytes; false: this build or the processor
// has none.
bool int8_tiles_vnni(const Int8Plan& p, int64_t begin, int64_t end) noexcept;
// The same by tiles of AMX; plan.amx says whether they may be used.
bool int8_tiles_amx(const Int8Plan& p, int64_t begin, int64_t end) noexcept;
// The second stage with plan.straight by tiles of AMX. False: without plan.amx, or no tiles here.
bool int8_columns_amx(const Int8Plan& p, int64_t begin, int64_t end) noexcept;
// By dot products of bytes. It is never called in builds without them.
void int8_columns(const Int8Plan& p, int64_t begin, int64_t end) noexcept;
// By products of 2 by 8 and 8 by 2 bytes, if plan.mmla; builds with TT_MMLA have it.
void int8_tiles_mmla(const Int8Plan& p, int64_t begin, int64_t end) noexcept;
TT_ENTRY_END
