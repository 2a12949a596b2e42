// Events: what the parts of a running call report to a profiler (modes/profiler.h).
#pragma once

#include "base/platform.h"

namespace TT_NS {

// State of a mode on a ctx.
struct CtxPart {
  void (*destroy_fn)(CtxPart*) noexcept;
};

// Values of tt_profile_event.kind.
enum class EventKind : int32_t {
  kOp = 1,
  kKernel = 2,
  kModule = 3,  // name is copied; object is the module
  kNode = 4,    // name is copied
  kMemory = 5,
  kOptimizer = 6,  // name is copied
  kRegion = 7,     // name is copied
};

// Receives the begin and the end of each piece of work on a ctx. Both never fail; what there is no
// memory for is not recorded.
struct EventSink : CtxPart {
  // Returns a token for end.
  int64_t (*begin)(EventSink&, EventKind kind, const char* name, const void* object) noexcept;
  // Ends the event, and those inside it that are still open.
  void (*end)(EventSink&, int64_t token) noexcept;
};

}  // namespace TT_NS
