// Arena: state shared by the heaps of one runtime. Internal to base.
#pragma once

#include "base/memory/heap.h"
#include "base/os.h"

namespace TT_NS {

constexpr int64_t kHeapAlive = int64_t(1) << 62;
constexpr int64_t kMaxBlock = TT_MAX_BYTES;

// Header of each large block.
struct alignas(64) LargeBlock {
  Arena* arena;
  int64_t total;  // bytes taken from the allocator
  LargeBlock* bin_next;
  LargeBlock* bin_prev;
  LargeBlock* age_next;  // younger
  LargeBlock* age_prev;
  int32_t bin;
};
static_assert(sizeof(LargeBlock) == 64);

// Sizes of large blocks: 16 steps per doubling from 8 KB on.
constexpr int kLargeBins = (47 - 13) * 16 + 2;

struct LargeCache {
  LargeBlock* bins[kLargeBins];  // free blocks; all of one bin have one size; the youngest is first
  LargeBlock* oldest;
  LargeBlock* youngest;
  int64_t cached;  // bytes of free blocks
  int64_t live;    // requested bytes of live blocks
  int64_t peak_live;
  int64_t count;  // live blocks
};

struct QueuedDrop;

struct Arena {
  int32_t refs;
  int32_t life;  // 1 while refs > 0, + 1 per heap, + 1 while large.count > 0; at 0 the arena is
                 // freed
  int32_t pid;
  bool system;  // slabs and large blocks are mapped: the application gave no allocator
  tt_allocator allocator;
  int64_t limit, reserved, peak;  // atomics
  int64_t misaligned;  // (atomic) the alignment that a block of the allocator lacked; 0: none did
  int64_t live[3];     // atomics, by LiveKind, in addition to the counts of the heaps

  Mutex lock;  // guards the fields below
  bool dying;  // refs is 0
  Heap* heaps;
  Heap* abandoned;  // heaps whose threads have ended
  Slab* spare;
  int64_t num_spare, num_slabs;
  char* unused;  // mapped but never touched: the next slabs
  int64_t num_unused;
  LargeCache large;
  bool queue_drops;  // (atomic reads) finalizer.h; the queue, oldest first
  QueuedDrop *drops, *last_drop;
#if TT_CHECKED
  struct {
    void* p;
    size_t bytes;
  } retired[kRetired];  // a ring
  int64_t num_retired;  // number of blocks retired so far
#endif
};

// Takes bytes from the application's allocator, within the limit. Releases caches before it fails.
void* arena_take(Arena*, size_t bytes, size_t align) noexcept;
void arena_give(Arena*, void* p, size_t bytes, size_t align) noexcept;
// The size of a mapped block of at least `bytes`: a last huge page that is nearly full is taken
// whole, since the system only has 4 kB pages for a part of one.
int64_t arena_whole_pages(const Arena*, int64_t bytes) noexcept;
void arena_drop_life(Arena*) noexcept;

Slab* arena_take_slab(Arena*) noexcept;
void arena_give_slab(Arena*, Slab*) noexcept;

void retired_free(Arena*) noexcept;  // (TT_CHECKED) frees all retired blocks

// Returns the arena of a block that heap_alloc returned.
TT_INLINE Arena* block_arena(const void* p, size_t bytes) noexcept {
  const bool large = TT_HEAP_DIRECT || bytes > kSmallMax;
  return large ? (static_cast<const LargeBlock*>(p) - 1)->arena : slab_of(p)->heap->arena;
}

void* large_alloc(Arena*, size_t bytes) noexcept;
void large_free(void* p, size_t bytes) noexcept;
void large_trim(Arena*) noexcept;

// Owner only: reclaims the blocks that other threads have freed and returns slabs without live
// blocks.
void heap_collect(Heap*) noexcept;
// Collects this thread's heap of the arena and the abandoned ones.
void heaps_trim(Arena*) noexcept;
// Takes the heaps away from their threads, since the arena has no reference left; each heap is
// freed with its last block.
void heaps_revoke(Arena*) noexcept;

}  // namespace TT_NS
