// Heaps: all memory of tt. Small blocks come from slabs of a heap that is owned by one (thread, arena) pair;
// large ones from the arena's cache over the host's allocator. All blocks are 64-byte aligned.
#pragma once

#include "base/error.h"
#include "base/tls.h"

namespace TT_NS {

// One per runtime. Lives until its last reference *and* its last block are gone, so blocks may outlive the runtime.
struct Arena;

constexpr size_t kSmallMax = 8192;  // bytes; larger blocks bypass the slabs

Arena* arena_new(const tt_allocator* host) noexcept;  // NULL host: the C allocator. NULL on OOM
void arena_retain(Arena*) noexcept;
void arena_release(Arena*) noexcept;
void arena_set_limit(Arena*, int64_t bytes) noexcept;  // 0 = none
void arena_trim(Arena*) noexcept;                      // gives cached large blocks and empty slabs back
void arena_stats(Arena*, tt_memory_stats* out) noexcept;  // fills in_use, reserved, peak, limit

// The calling thread's heap of this arena: found, adopted from a thread that has ended, or made. NULL on OOM.
Heap* arena_heap(Arena*) noexcept;
Arena* heap_arena(Heap*) noexcept;

// 64-byte aligned; NULL on OOM. The block's first bytes are undefined.
void* heap_alloc(Heap* heap, size_t bytes) noexcept;
// From any thread, with the size given to heap_alloc.
void mem_free(void* p, size_t bytes) noexcept;

// In the running call's heap; fails with OOM.
inline void* mem_alloc(size_t bytes) {
  void* p = heap_alloc(tls.heap, bytes);
  if (TT_UNLIKELY(!p)) fail_oom(int64_t(bytes));
  return p;
}

}  // namespace TT_NS
