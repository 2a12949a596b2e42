// Heaps: all memory of tt. Small blocks come from the slabs of a heap, which is owned by one
// (thread, arena) pair; large ones from the arena's cache over the application's allocator. All
// blocks are 64-byte aligned.
#pragma once

#include "base/error.h"
#include "base/tls.h"

#if TT_CHECKED || TT_MINIMAL || TT_ADDRESS_SANITIZER
// every block comes from the application's allocator, which sees each allocation and each misuse
#define TT_HEAP_DIRECT 1
#else
#define TT_HEAP_DIRECT 0
#endif

namespace TT_NS {

// One per runtime. Lives until its last reference and its last block are gone: blocks may outlive
// the runtime.
struct Arena;

constexpr size_t kSmallMax = 8192;  // bytes; larger blocks bypass the slabs

Arena* arena_new(const tt_allocator* allocator) noexcept;  // NULL: the C allocator. NULL on OOM
// After the last reference no thread may allocate. The memory returns to the application's
// allocator when the last block is freed, on the freeing thread.
void arena_release(Arena*) noexcept;
void arena_set_limit(Arena*, int64_t bytes) noexcept;  // 0 = none
// Returns cached large blocks and empty slabs (of the calling thread and of ended threads).
void arena_trim(Arena*) noexcept;
void arena_stats(Arena*, tt_memory_stats* out) noexcept;  // all but memory of devices

// Returns the calling thread's heap of this arena: found, adopted from an ended thread, or new.
// NULL on OOM.
Heap* arena_heap(Arena*) noexcept;
Arena* heap_arena(Heap*) noexcept;

// ---- the fast path ----

// Slabs are aligned to their size; blocks start after the header.
constexpr size_t kSlabBytes = 64 * 1024;
// Multiples of 64 to 512, then four steps per doubling to kSmallMax.
constexpr int kSmallClasses = 24;

struct TT_MAY_ALIAS FreeBlock {
  FreeBlock* next;
};

struct alignas(64) Slab {
  Heap* heap;
  Slab* next;  // of the heap, or of the arena's spare slabs
  uint32_t block_bytes;
  int32_t cls;
  int32_t carved;  // blocks handed out at least once
  int32_t free;    // scratch of heap_collect
};
static_assert(sizeof(Slab) == 64);

// The header is at one of 16 offsets in the slab's first kilobyte, by the slab's address. At a
// single offset, the headers of all slabs would compete for one set of the L1 cache.
TT_INLINE Slab* slab_of(const void* p) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(p);
  return reinterpret_cast<Slab*>((at & ~(kSlabBytes - 1)) | ((at >> 10) & 0x3c0));
}

struct alignas(64) Heap {
  FreeBlock* free[kSmallClasses];  // owner only
  // Bytes handed out, and bytes freed on the owner's thread; written by the owner. Two counters
  // make two short dependency chains instead of one long one.
  int64_t taken, returned;
  Tls* owner;  // NULL: the thread has ended, or the arena has no reference left
  Arena* arena;
  Slab* fresh[kSmallClasses];  // slab with blocks that were never handed out
  Slab* slabs;                 // all slabs
  int64_t num_slabs, collect_at;
  Heap* next_of_thread;  // in Tls::heaps
  Heap* next_of_arena;
  Heap* next_abandoned;
  Tls* revoked_from;              // (arena_release) the former owner
  int64_t live[3];                // by LiveKind, counted by the owner
  alignas(64) FreeBlock* remote;  // blocks freed by other threads
  // Bytes freed by other threads, minus kHeapAlive while the arena has references, later minus the
  // bytes that were live then: the free that makes it 0 is the last one.
  int64_t remote_freed;
};

struct SmallClassTable {
  uint8_t of[kSmallMax / 64 + 1];  // class by size, in units of 64 bytes rounded up
  uint16_t block_bytes[kSmallClasses];
};
constexpr SmallClassTable make_small_classes() {
  SmallClassTable t = {};
  size_t bytes = 64;
  for (int c = 0; c < kSmallClasses; c++) {
    t.block_bytes[c] = uint16_t(bytes);
    size_t step = 64;
    while (step * 8 <= bytes) step *= 2;
    bytes += step;
  }
  int c = 0;
  for (size_t i = 0; i <= kSmallMax / 64; i++) {
    while (t.block_bytes[c] < i * 64) c++;
    t.of[i] = uint8_t(c);
  }
  return t;
}
inline constexpr SmallClassTable kSmallClass = make_small_classes();
static_assert(kSmallClass.block_bytes[kSmallClasses - 1] == kSmallMax);

constexpr int64_t counted_bytes(size_t bytes) { return int64_t((bytes + 63) & ~size_t(63)); }

TT_INLINE bool heap_is_mine(const Heap* h) { return atomic_load(&h->owner, kRelaxed) == &tls; }

void* heap_alloc_slow(Heap* heap, size_t bytes) noexcept;
void mem_free_slow(void* p, size_t bytes) noexcept;

// Returns a 64-byte aligned block with undefined contents; NULL on OOM. heap_is_mine(heap) must
// hold.
TT_INLINE void* heap_alloc(Heap* heap, size_t bytes) noexcept {
  if (!TT_HEAP_DIRECT && TT_LIKELY(bytes <= kSmallMax)) {
    FreeBlock** list = &heap->free[kSmallClass.of[(bytes + 63) / 64]];
    FreeBlock* b = *list;
    if (TT_LIKELY(b != nullptr)) {
      *list = b->next;
      atomic_store(&heap->taken, heap->taken + counted_bytes(bytes), kRelaxed);
      return b;
    }
  }
  return heap_alloc_slow(heap, bytes);
}

// Callable from any thread, with the size given to heap_alloc. p is not NULL.
TT_INLINE void mem_free(void* p, size_t bytes) noexcept {
  if (!TT_HEAP_DIRECT && TT_LIKELY(bytes <= kSmallMax)) {
    Heap* h = slab_of(p)->heap;
    // in_free is set before the owner is read and cleared after the last access to the heap;
    // arena_release relies on this order to take heaps away from other threads.
    Tls* self = &tls;
    atomic_store(&self->in_free, 1, kRelaxed);
    signal_fence();
    if (TT_LIKELY(atomic_load(&h->owner, kRelaxed) == self)) {
      FreeBlock* b = static_cast<FreeBlock*>(p);
      FreeBlock** list = &h->free[kSmallClass.of[(bytes + 63) / 64]];
      b->next = *list;
      *list = b;
      atomic_store(&h->returned, h->returned + counted_bytes(bytes), kRelaxed);
      atomic_store(&self->in_free, 0, kRelease);
      return;
    }
    atomic_store(&self->in_free, 0, kRelease);
  }
  mem_free_slow(p, bytes);
}

// TT_CHECKED: the block of a released handle stays readable for a while, so that its zeroed tag
// exposes later uses. It is freed when the arena has kRetired younger ones, is trimmed, or loses
// its last reference.
constexpr int kRetired = 512;
void mem_retire_checked(void* p, size_t bytes) noexcept;
TT_INLINE void mem_retire(void* p, size_t bytes) noexcept {
  if (TT_CHECKED) return mem_retire_checked(p, bytes);
  mem_free(p, bytes);
}

// ---- live objects, for tt_memory ----

enum LiveKind { kLiveTensors, kLiveNodes, kLiveHandles };

void count_live_slow(const void* p, size_t bytes, LiveKind kind, int64_t change) noexcept;

// p is a block of `bytes` bytes that holds an object of this kind.
TT_INLINE void count_live(const void* p, size_t bytes, LiveKind kind, int64_t change) noexcept {
  if (!TT_HEAP_DIRECT && TT_LIKELY(bytes <= kSmallMax)) {
    Heap* h = slab_of(p)->heap;
    if (TT_LIKELY(heap_is_mine(h)))
      return atomic_store(&h->live[kind], h->live[kind] + change, kRelaxed);
  }
  count_live_slow(p, bytes, kind, change);
}

// Allocates from the running call's heap; fails with TT_OOM.
TT_INLINE void* mem_alloc(size_t bytes) {
  void* p = heap_alloc(tls.heap, bytes);
  if (TT_UNLIKELY(!p)) fail_oom(int64_t(bytes));
  return p;
}
// The same for a size that a size_t of this target need not hold.
TT_INLINE void* mem_alloc_wide(int64_t bytes) {
  if (TT_UNLIKELY(bytes > TT_MAX_BYTES)) fail_oom(bytes);
  return mem_alloc(size_t(bytes));
}

// ---- arrays, out of line: their users are many and grow seldom ----

// Moves the first `used` items of p, of `item` bytes each, to a new block of `count` items, frees p
// and returns the block; fails with TT_OOM and leaves p as it is. p is a block of `owned` items, or
// memory that is not freed if owned is 0.
void* mem_grow(void* p, int64_t used, int64_t owned, int64_t count, int64_t item);
// Frees p, a block of `owned` items, unless owned is 0.
void mem_free_items(void* p, int64_t owned, int64_t item) noexcept;

}  // namespace TT_NS
