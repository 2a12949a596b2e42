// Checks as operators: those that composites make while a graph is captured.
#pragma once

#include "dispatch/value.h"

namespace TT_NS {

// The same text as a static string: names of operators and arguments that such checks are about.
// "" for others.
const char* static_name(Str name) noexcept;

}  // namespace TT_NS
