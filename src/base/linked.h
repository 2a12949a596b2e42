// Functions that a static program may leave out: `if (is_linked(f)) f();`.
#pragma once

#include "base/platform.h"

// Objects of Windows have no undefined weak functions: every program there links them.
#if defined(_WIN32)
#define TT_OPTIONAL
#else
#define TT_OPTIONAL TT_WEAK
#endif

namespace TT_NS {
inline bool is_linked(void (*function)()) { return function != nullptr; }
}  // namespace TT_NS
