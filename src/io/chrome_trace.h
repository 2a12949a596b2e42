// Traces of the profiler as JSON, in the Trace Event Format of Chrome and Perfetto.
#pragma once

#include "core/ctx.h"

namespace TT_NS {

// Writes the events of the last profile to a new file beside path, which then replaces path. Fails
// with IO.
void save_chrome_trace(const char* path, Ctx& c);

}  // namespace TT_NS
