// Guards: what the operators that other operators are made of take for granted about their
// arguments. Operators that applications can call check their arguments themselves.
#pragma once

#include "dispatch/op_info.h"
#include "dispatch/value.h"

namespace TT_NS {

// Whether it can be told what an operator takes for granted. The others are called only with
// arguments like those of their capture.
bool has_guard(const OpSchema& schema);
// Whether an operator is safe to call with these arguments, which come from a file or an edit.
bool is_guarded(const OpSchema& schema, const Value* args);

}  // namespace TT_NS
