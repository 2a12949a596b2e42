// MemoryLog: when the memory of results was allocated and released, by any thread. Storages that it
// watches hold a reference, so it outlives its profiler.
#pragma once

#include "base/ref.h"
#include "core/tensor.h"
#include "modes/clock.h"
#include "modes/event_ring.h"

namespace TT_NS {

struct MemoryLog {
  RefCount refs;
  Mutex mutex;  // guards the fields below
  EventRing ring;
  Clock clock;
  bool recording;
  int64_t watched;  // live storages that hold a reference
  int64_t held;     // their bytes
  static void destroy(MemoryLog*) noexcept;
};

Ref<MemoryLog> new_memory_log();  // fails with OOM
// Discards earlier events and records from now on; fails with OOM.
void memory_log_open(MemoryLog& log, int64_t capacity, const Clock& clock);
void memory_log_close(MemoryLog& log) noexcept;
// Records the allocation of a CPU storage and, later, its release. Returns its bytes; 0 if it is
// watched already or cannot be. parent: id of the running event.
int64_t watch_storage(MemoryLog& log, Storage& s, int64_t parent) noexcept;
// Called after a release, on the thread that released the storage.
extern void (*storage_released)(MemoryLog& log, int64_t bytes) noexcept;

}  // namespace TT_NS
