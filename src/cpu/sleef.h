// SLEEF as the provider of vector functions in double, for AVX2 and AVX-512. Opened by the first
// operator that needs it; without it the C library is used.
#pragma once

#include "plan/vector_function.h"

namespace TT_NS {

// Opens SLEEF unless that has been tried. Returns true if it is open.
bool sleef_open() noexcept;
// Text for tt_build_info.
const char* sleef_state() noexcept;

}  // namespace TT_NS
