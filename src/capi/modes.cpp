// Profiler and dispatch trace.
#include "capi/api.h"
#include "modes/profiler.h"
#include "modes/trace.h"
#include "tt.h"

#include <string.h>

using namespace TT_NS;

static_assert(sizeof(tt_profile_row) == sizeof(ProfileRow));

tt_status tt_profiler_start(tt_ctx* h) {
  return api_call(h, "profiler_start", [](Ctx& c) { profiler_start(c); });
}
tt_status tt_profiler_stop(tt_ctx* h) {
  return api_call(h, "profiler_stop", [](Ctx& c) { profiler_stop(c); });
}
tt_status tt_profiler_rows(tt_ctx* h, tt_profile_row* rows, int64_t cap, int64_t* n) {
  if (n) *n = 0;
  return api_call(h, "profiler_rows", [&](Ctx& c) {
    out_arg(n, "n", 3);
    Span<const ProfileRow> found = profiler_rows(c);
    *n = found.n;
    if (found.n > cap || (found.n && !rows))
      fail_arg(TT_BUFFER_TOO_SMALL, "rows", "rows has room for {}, there are {}", rows ? cap : 0,
               found.n);
    if (found.n) memcpy(rows, found.ptr, size_t(found.n) * sizeof *rows);
  });
}

tt_status tt_ctx_trace_dispatch(tt_ctx* h, tt_trace_fn fn, void* user) {
  return api_call(h, "ctx_trace_dispatch", [&](Ctx& c) { set_trace(c, fn, user); });
}
