// Heaps: all memory of tt. Small blocks come from slabs of a heap that is owned by one (thread,
// arena) pair; large ones from the arena's cache over the host's allocator. All blocks are 64-byte
// aligned.
#pragma once

#include "base/error.h"
#include "base/tls.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TT_HEAP_DIRECT 1
#endif
#endif
#if TT_CHECKED || defined(__SANITIZE_ADDRESS__)
#define TT_HEAP_DIRECT \
  1  // every block is one of the host allocator's, so that it sees each allocation and each misuse
#elif !defined(TT_HEAP_DIRECT)
#define TT_HEAP_DIRECT 0
#endif

namespace TT_NS {

// One per runtime. Lives until its last reference *and* its last block are gone, so blocks may
// outlive the runtime.
struct Arena;

constexpr size_t kSmallMax = 8192;  // bytes; larger blocks bypass the slabs

Arena* arena_new(const tt_allocator* host) noexcept;  // NULL host: the C allocator. NULL on OOM
void arena_retain(Arena*) noexcept;
// With the last reference, no thread may allocate any more; the memory goes back to the host
// allocator when the last block is freed (on the freeing thread), at once if there is none.
void arena_release(Arena*) noexcept;
void arena_set_limit(Arena*, int64_t bytes) noexcept;  // 0 = none
// Gives cached large blocks and empty slabs back (slabs of the calling thread and of threads that
// have ended).
void arena_trim(Arena*) noexcept;
void arena_stats(Arena*, tt_memory_stats* out) noexcept;  // all but what devices hold

// The calling thread's heap of this arena: found, adopted from a thread that has ended, or made.
// NULL on OOM.
Heap* arena_heap(Arena*) noexcept;
Arena* heap_arena(Heap*) noexcept;

// ---- the fast path ----

constexpr size_t kSlabBytes =
    64 * 1024;  // slabs are aligned to their size; blocks start behind the header
constexpr int kSmallClasses =
    24;  // multiples of 64 to 512, then four steps per doubling to kSmallMax

struct __attribute__((may_alias)) FreeBlock {
  FreeBlock* next;
};

struct alignas(64) Slab {
  Heap* heap;
  Slab* next;  // of the heap, or of the arena's spare ones
  uint32_t block_bytes;
  int32_t cls;
  int32_t carved;  // blocks handed out so far
  int32_t free;    // scratch of heap_collect
};
static_assert(sizeof(Slab) == 64);

// The header lies at one of 16 places of the slab's first kilobyte, by the slab's address: at one
// and the same offset, the headers of all slabs would fall into one set of the first-level cache.
TT_INLINE Slab* slab_of(const void* p) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(p);
  return reinterpret_cast<Slab*>((at & ~(kSlabBytes - 1)) | ((at >> 10) & 0x3c0));
}

struct alignas(64) Heap {
  FreeBlock* free[kSmallClasses];  // owner only
  // Bytes given out, and bytes that came back on the owner's thread; written by the owner. Two
  // counters make two short chains of dependent additions instead of a long one.
  int64_t taken, returned;
  Tls* owner;  // NULL: its thread has ended, or the arena has no reference any more
  Arena* arena;
  Slab* fresh[kSmallClasses];  // slab with blocks never handed out
  Slab* slabs;                 // all of them
  int64_t num_slabs, collect_at;
  Heap* next_of_thread;  // in Tls::heaps
  Heap* next_of_arena;
  Heap* next_abandoned;
  Tls* revoked_from;              // arena_release: the owner that was
  int64_t live[3];                // by LiveKind, counted by the owner
  alignas(64) FreeBlock* remote;  // blocks freed by other threads
  // Bytes freed by other threads, minus kHeapAlive while the arena has references, minus what was
  // live then after that: the free that makes it 0 was the last one.
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

TT_INLINE bool heap_is_mine(const Heap* h) {
  return __atomic_load_n(&h->owner, __ATOMIC_RELAXED) == &tls;
}

void* heap_alloc_slow(Heap* heap, size_t bytes) noexcept;
void mem_free_slow(void* p, size_t bytes) noexcept;

// 64-byte aligned; NULL on OOM. The block's contents are undefined. heap_is_mine(heap) must hold.
TT_INLINE void* heap_alloc(Heap* heap, size_t bytes) noexcept {
  if (!TT_HEAP_DIRECT && TT_LIKELY(bytes <= kSmallMax)) {
    FreeBlock** list = &heap->free[kSmallClass.of[(bytes + 63) / 64]];
    FreeBlock* b = *list;
    if (TT_LIKELY(b != nullptr)) {
      *list = b->next;
      __atomic_store_n(&heap->taken, heap->taken + counted_bytes(bytes), __ATOMIC_RELAXED);
      return b;
    }
  }
  return heap_alloc_slow(heap, bytes);
}

// From any thread, with the size given to heap_alloc. p is not NULL.
TT_INLINE void mem_free(void* p, size_t bytes) noexcept {
  if (!TT_HEAP_DIRECT && TT_LIKELY(bytes <= kSmallMax)) {
    Heap* h = slab_of(p)->heap;
    // in_free is set before the owner is looked at and cleared after the last access to the heap:
    // arena_release takes heaps away from other threads by this order.
    Tls* self = &tls;
    __atomic_store_n(&self->in_free, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (TT_LIKELY(__atomic_load_n(&h->owner, __ATOMIC_RELAXED) == self)) {
      FreeBlock* b = static_cast<FreeBlock*>(p);
      FreeBlock** list = &h->free[kSmallClass.of[(bytes + 63) / 64]];
      b->next = *list;
      *list = b;
      __atomic_store_n(&h->returned, h->returned + counted_bytes(bytes), __ATOMIC_RELAXED);
      __atomic_store_n(&self->in_free, 0, __ATOMIC_RELEASE);
      return;
    }
    __atomic_store_n(&self->in_free, 0, __ATOMIC_RELEASE);
  }
  mem_free_slow(p, bytes);
}

// TT_CHECKED: a released handle's block stays readable for a while, so that its zeroed tag tells
// every later use. Freed when the arena has kRetired younger ones, is trimmed, or loses its last
// reference.
constexpr int kRetired = 512;
void mem_retire_checked(void* p, size_t bytes) noexcept;
TT_INLINE void mem_retire(void* p, size_t bytes) noexcept {
  if (TT_CHECKED) return mem_retire_checked(p, bytes);
  mem_free(p, bytes);
}

// ---- what is alive, for tt_memory ----

enum LiveKind { kLiveTensors, kLiveNodes, kLiveHandles };

void count_live_slow(const void* p, size_t bytes, LiveKind kind, int64_t change) noexcept;

// p: a block of `bytes` bytes that holds such an object.
TT_INLINE void count_live(const void* p, size_t bytes, LiveKind kind, int64_t change) noexcept {
  if (!TT_HEAP_DIRECT && TT_LIKELY(bytes <= kSmallMax)) {
    Heap* h = slab_of(p)->heap;
    if (TT_LIKELY(heap_is_mine(h)))
      return __atomic_store_n(&h->live[kind], h->live[kind] + change, __ATOMIC_RELAXED);
  }
  count_live_slow(p, bytes, kind, change);
}

// In the running call's heap; fails with OOM.
TT_INLINE void* mem_alloc(size_t bytes) {
  void* p = heap_alloc(tls.heap, bytes);
  if (TT_UNLIKELY(!p)) fail_oom(int64_t(bytes));
  return p;
}

}  // namespace TT_NS
