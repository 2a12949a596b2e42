// Dispatch trace: the Trace key and its boxed handler. Tells the host the slots that each operator
// call passes.
#pragma once

#include "core/ctx.h"

namespace TT_NS {

using TraceFn = void (*)(void* user, const char* op, const char* slot, int32_t depth);

// fn NULL: off. A call is told before it runs: its slots from the outermost in, all at the depth of
// the call; operators that it calls follow one deeper. fn may call tt; these calls are not traced.
void set_trace(Ctx& c, TraceFn fn, void* user);

}  // namespace TT_NS
