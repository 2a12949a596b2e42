// Profiler: the Profile key and its boxed handler, sums per kind and name, and a ring of events.
// One per ctx.
#pragma once

#include "core/ctx.h"

namespace TT_NS {

struct ProfileRow {
  const char* op;
  int64_t calls, self_ns, total_ns;
};

// Has the layout of tt_profile_sum.
struct ProfileSum {
  const char* name;
  EventKind kind;
  int32_t pad;
  int64_t calls, self_ns, total_ns;
  int64_t bytes;
  double flops;
};

// Has the layout of tt_profile_event.
struct ProfileEvent {
  const char* name;
  EventKind kind;
  int32_t n_shapes;
  const int64_t* shapes;
  int64_t id, parent;
  int64_t begin_ns, end_ns;
  int64_t bytes, held;
  double flops;
};

// TT_EVENT_COMMUNICATION: work of another thread.
constexpr EventKind kCommunication = EventKind(8);

struct ProfilerOptions {
  bool events = false;  // false: only operators are counted
  bool shapes = false, memory = false, flops = false, modules = false;
  int64_t capacity = 0;
};

void profiler_start(Ctx& c, const ProfilerOptions& options);  // discards earlier results
void profiler_stop(Ctx& c) noexcept;                          // ends what is still open
// Adds work of another thread that is over to a running profile; never fails. name is static; times
// are those of os_now_ns.
void profiler_add(Ctx& c, const char* name, int64_t begin_ns, int64_t end_ns,
                  int64_t bytes) noexcept;

// The results since the last start are valid until the next start.
Span<const ProfileRow> profiler_rows(Ctx& c);   // operators, largest total time first
SmallVec<ProfileSum, 1> profiler_sums(Ctx& c);  // everything, largest total time first
int64_t profiler_num_events(Ctx& c);
// Writes at most room.n events by their begin and returns their number.
int64_t profiler_events(Ctx& c, Span<ProfileEvent> room);
int64_t profiler_dropped(Ctx& c);  // events that newer ones have replaced

}  // namespace TT_NS
