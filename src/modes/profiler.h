// Operator profiler: the Profile key and its boxed handler. One per ctx.
#pragma once

#include "core/ctx.h"

namespace TT_NS {

struct ProfileRow {
  const char* op;
  int64_t calls, self_ns, total_ns;
};

void profiler_start(Ctx& c);  // discards earlier rows
void profiler_stop(Ctx& c) noexcept;
// Returns the rows since the last start, largest total time first; valid until the next start.
Span<const ProfileRow> profiler_rows(Ctx& c) noexcept;

}  // namespace TT_NS
