// Guards: what the operators that other operators are made of take for granted about their
// arguments. Operators that applications can call check their arguments themselves.
#pragma once

#include "graph/ir.h"

namespace TT_NS {

// Whether a node that a file contains is safe to call.
bool is_guarded(const Graph& g, const IrNode& n);

}  // namespace TT_NS
