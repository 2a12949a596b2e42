// Checks arguments of nodes that come from outside of tt against the schemas of their operators.
#pragma once

#include "graph/ir.h"

namespace TT_NS {

// Whether a number is a value of an enumeration (ArgInfo::enumeration).
using IsEnum = bool (*)(uint8_t enumeration, int64_t value);
// NULL if an operator takes a as the argument that info describes, or why not.
const char* why_not(const ArgInfo& info, const IrArg& a, IsEnum is_enum) noexcept;

}  // namespace TT_NS
