// SLEEF as the provider of functions in double, a register at a time, for AVX2 and AVX-512. Opened
// by the first operator that wants it, never before; without it the C library serves.
#pragma once

#include "plan/vector_function.h"

namespace TT_NS {

// Opens SLEEF unless that has been tried. True if it is open.
bool sleef_open() noexcept;
// What tt_build_info says.
const char* sleef_state() noexcept;

}  // namespace TT_NS
