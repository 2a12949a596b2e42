// Dispatch trace: the Trace key and its boxed handler. Reports the slots that each operator call
// passes.
#pragma once

#include "core/ctx.h"

namespace TT_NS {

using TraceFn = void (*)(void* user, const char* op, const char* slot, int32_t depth);

// fn NULL disables the trace. A call is reported before it runs: its slots from the outermost in,
// all with the depth of the call; operators that it calls are one deeper. fn may call tt; those
// calls are not traced.
void set_trace(Ctx& c, TraceFn fn, void* user);

}  // namespace TT_NS
