#include "modes/memory_log.h"

#include "core/ctx.h"

namespace TT_NS {

void (*storage_released)(MemoryLog& log, int64_t bytes) noexcept = nullptr;

// The caller holds the mutex.
static void record(MemoryLog& log, int64_t bytes, int64_t parent, Heap* heap) noexcept {
  log.held += bytes;
  if (!log.recording) return;
  Event* e = log.ring.push(heap);
  if (!e) return;
  const int64_t now = log.clock.now();
  *e = Event{.id = 0,
             .parent = parent,
             .begin = now,
             .end = now,
             .name = "[memory]",
             .bytes = bytes,
             .flops = double(log.held),
             .shapes = nullptr,
             .n_shapes = 0,
             .kind = EventKind::kMemory};
}

// Storage::release of a watched storage.
static void release_watched(Storage* s) noexcept {
  auto* log = static_cast<MemoryLog*>(s->release_ctx);
  {
    Lock lock(log->mutex);
    log->watched--;
    record(*log, -s->bytes, 0, nullptr);
  }
  atomic_load(&storage_released, kRelaxed)(*log, s->bytes);
  if (!s->embedded) mem_free(s->data, size_t(s->bytes));
  Ref<MemoryLog>::adopt(log).reset();
}

// Two profilers may see the same storage at the same time.
static constinit Mutex watch_lock;

int64_t watch_storage(MemoryLog& log, Storage& s, int64_t parent) noexcept {
  if (s.device.type != TT_CPU || !s.bytes || s.deleter) return 0;
  Lock watch(watch_lock);
  if (s.release == release_watched || !(s.embedded || s.release)) return 0;
  Lock lock(log.mutex);
  // the release has no heap to allocate from
  if (log.recording && !log.ring.reserve(log.watched + 2, tls.heap)) return 0;
  log.watched++;
  record(log, s.bytes, parent, tls.heap);
  ref_inc(&log.refs);
  s.release_ctx = &log;
  s.release = release_watched;
  return s.bytes;
}

Ref<MemoryLog> new_memory_log() {
  return Ref<MemoryLog>::adopt(new (mem_alloc(sizeof(MemoryLog)))
                                   MemoryLog{1, {}, {}, {}, false, 0, 0});
}

void MemoryLog::destroy(MemoryLog* log) noexcept {
  log->~MemoryLog();
  mem_free(log, sizeof *log);
}

void memory_log_open(MemoryLog& log, int64_t capacity, const Clock& clock) {
  Lock lock(log.mutex);
  log.recording = false;
  log.ring.open(capacity);
  if (!log.ring.reserve(min(capacity, log.watched + 2), tls.heap)) fail_oom(0);
  log.clock = clock;
  log.recording = true;
}

void memory_log_close(MemoryLog& log) noexcept {
  Lock lock(log.mutex);
  log.recording = false;
}

}  // namespace TT_NS
