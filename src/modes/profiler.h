// Operator profiler: the Profile key and its boxed handler. One per ctx.
#pragma once

#include "core/ctx.h"

namespace TT_NS {

struct ProfileRow {
  const char* op;
  int64_t calls, self_ns, total_ns;
};

void profiler_start(Ctx& c);  // forgets earlier rows
void profiler_stop(Ctx& c) noexcept;
// The rows since the last start, by total time, largest first; valid until the next start.
Span<const ProfileRow> profiler_rows(Ctx& c) noexcept;

}  // namespace TT_NS
