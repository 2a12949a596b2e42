// Profiler and dispatch trace.
#include "capi/api.h"
#include "io/chrome_trace.h"
#include "modes/profiler.h"
#include "modes/trace.h"
#include "tt.h"

#include <string.h>

using namespace TT_NS;

static_assert(sizeof(tt_profile_row) == sizeof(ProfileRow));
static_assert(sizeof(tt_profile_sum) == sizeof(ProfileSum));
static_assert(sizeof(tt_profile_event) == sizeof(ProfileEvent));
static_assert(TT_EVENT_OP == int32_t(EventKind::kOp));
static_assert(TT_EVENT_REGION == int32_t(EventKind::kRegion));

constexpr int64_t kDefaultEvents = 1 << 20;
constexpr int64_t kMostEvents = int64_t(1) << 31;

tt_status tt_profiler_start(tt_ctx* h) {
  return api_call(h, "profiler_start", [](Ctx& c) { profiler_start(c, ProfilerOptions()); });
}
tt_status tt_profiler_start_ex(tt_ctx* h, const tt_profiler_start_opts* opts) {
  return api_call(h, "profiler_start_ex", [&](Ctx& c) {
    check_opts(opts, 5);
    ProfilerOptions o;
    o.events = true;
    o.capacity = opts_has(opts, 0) ? opts->capacity : kDefaultEvents;
    o.shapes = opts_has(opts, 1) && opts->record_shapes;
    o.memory = opts_has(opts, 2) && opts->profile_memory;
    o.flops = opts_has(opts, 3) && opts->with_flops;
    o.modules = opts_has(opts, 4) && opts->with_modules;
    if (o.capacity < 1 || o.capacity > kMostEvents)
      fail_arg(TT_INVALID_ARG, "capacity", "capacity is {}: must be 1 to {}", o.capacity,
               kMostEvents);
    profiler_start(c, o);
  });
}
tt_status tt_profiler_stop(tt_ctx* h) {
  return api_call(h, "profiler_stop", [](Ctx& c) { profiler_stop(c); });
}
// Copies found rows into those of the caller.
template <class Row, class Found>
static void fill_rows(const Span<Found>& found, Row* rows, int64_t cap, int64_t* n) {
  *n = found.n;
  if (found.n > cap || (found.n && !rows))
    fail_arg(TT_BUFFER_TOO_SMALL, "rows", "rows has room for {}, there are {}", rows ? cap : 0,
             found.n);
  if (found.n) memcpy(rows, found.ptr, size_t(found.n) * sizeof *rows);
}

tt_status tt_profiler_rows(tt_ctx* h, tt_profile_row* rows, int64_t cap, int64_t* n) {
  if (n) *n = 0;
  return api_call(h, "profiler_rows", [&](Ctx& c) {
    out_arg(n, "n", 3);
    fill_rows(profiler_rows(c), rows, cap, n);
  });
}

tt_status tt_profiler_sums(tt_ctx* h, tt_profile_sum* rows, int64_t cap, int64_t* n) {
  if (n) *n = 0;
  return api_call(h, "profiler_sums", [&](Ctx& c) {
    out_arg(n, "n", 3);
    const auto found = profiler_sums(c);
    fill_rows(found.span(), rows, cap, n);
  });
}
tt_status tt_profiler_events(tt_ctx* h, tt_profile_event* rows, int64_t cap, int64_t* n) {
  if (n) *n = 0;
  return api_call(h, "profiler_events", [&](Ctx& c) {
    out_arg(n, "n", 3);
    *n = profiler_num_events(c);
    if (*n > cap || (*n && !rows))
      fail_arg(TT_BUFFER_TOO_SMALL, "rows", "rows has room for {}, there are {}", rows ? cap : 0,
               *n);
    *n = profiler_events(c, {reinterpret_cast<ProfileEvent*>(rows), *n});
  });
}
tt_status tt_profiler_dropped(tt_ctx* h, int64_t* out) {
  if (out) *out = 0;
  return api_call(h, "profiler_dropped", [&](Ctx& c) {
    out_arg(out, "out", 1);
    *out = profiler_dropped(c);
  });
}
tt_status tt_profiler_begin(tt_ctx* h, int32_t kind, const char* name, int64_t* out) {
  if (out) *out = 0;
  return api_call(h, "profiler_begin", [&](Ctx& c) {
    str_arg(name, "name", 2);
    out_arg(out, "out", 3);
    if (kind < TT_EVENT_OP || kind > TT_EVENT_REGION || kind == TT_EVENT_MEMORY)
      fail_arg(TT_INVALID_ARG, "kind", "kind is {}: must be a TT_EVENT_ value but that of memory",
               kind);
    if (c.events) *out = c.events->begin(*c.events, EventKind(kind), name, nullptr);
  });
}
tt_status tt_profiler_end(tt_ctx* h, int64_t event) {
  return api_call(h, "profiler_end", [&](Ctx& c) {
    if (c.events) c.events->end(*c.events, event);
  });
}
tt_status tt_profiler_chrome_trace(tt_ctx* h, const char* path) {
  return api_call(h, "profiler_chrome_trace", [&](Ctx& c) {
    str_arg(path, "path", 1);
    save_chrome_trace(path, c);
  });
}

tt_status tt_ctx_trace_dispatch(tt_ctx* h, tt_trace_fn fn, void* user) {
  return api_call(h, "ctx_trace_dispatch", [&](Ctx& c) { set_trace(c, fn, user); });
}
