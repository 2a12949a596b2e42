// Products of tiles of bf16 and of bytes: AMX, which x86-64 processors have in addition to AVX-512.
#pragma once

#include "base/platform.h"

namespace TT_NS {

// Programs of TT_PROFILE=minimal leave the code for tiles out.
constexpr bool kTilesAreBuilt = !TT_MINIMAL;

// Whether kernels of kIsaAvx512 may use tiles. The first call asks the system for the state of the
// tiles, which it saves for processes that asked only.
bool has_amx_products() noexcept;
// Overrides the answer, for tests that emulate the instructions.
void assume_amx_products(bool) noexcept;

// Asks the system. In os_<system>.cpp.
bool os_request_amx() noexcept;

}  // namespace TT_NS
