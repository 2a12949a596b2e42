// What 64-bit ARM processors have beyond their baseline.
#pragma once

#include "base/platform.h"

namespace TT_NS {

// Whether there are dot products of bytes (SDOT). In os_<system>.cpp.
bool os_has_byte_dots() noexcept;

}  // namespace TT_NS
