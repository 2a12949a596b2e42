// Arena: what the heaps of one runtime share. Internal to base.
#pragma once

#include "base/heap.h"
#include "base/os.h"

namespace TT_NS {

constexpr int64_t kHeapAlive = int64_t(1) << 62;
constexpr int64_t kMaxBlock = int64_t(1) << 47;

// In front of each large block.
struct alignas(64) LargeBlock {
  Arena* arena;
  int64_t total;  // bytes taken from the host allocator
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
  LargeBlock*
      bins[kLargeBins];  // free blocks; all of one bin have one size; the youngest comes first
  LargeBlock* oldest;
  LargeBlock* youngest;
  int64_t cached;  // bytes of free blocks
  int64_t live;    // bytes of live blocks, as asked for
  int64_t peak_live;
  int64_t count;  // live blocks
};

struct QueuedDrop;

struct Arena {
  int32_t refs;
  int32_t life;  // 1 while refs > 0, + 1 per heap, + 1 while large.count > 0; the arena goes with
                 // the last
  int32_t pid;
  bool system;  // the host allocator is the C allocator
  tt_allocator host;
  int64_t limit, reserved, peak;  // atomics
  int64_t live[3];                // atomics: by LiveKind, beside what the heaps count

  Mutex lock;  // guards what follows
  bool dying;  // refs is 0
  Heap* heaps;
  Heap* abandoned;  // their threads have ended
  Slab* spare;
  int64_t num_spare, num_slabs;
  char* unused;  // mapped, but never touched: the next slabs
  int64_t num_unused;
  LargeCache large;
  bool queue_drops;  // (atomic reads) drop.h; the queue, oldest first
  QueuedDrop *drops, *last_drop;
#if TT_CHECKED
  struct {
    void* p;
    size_t bytes;
  } retired[kRetired];  // a ring
  int64_t num_retired;  // so far
#endif
};

// Bytes from the host allocator within the limit; caches are given up before it fails.
void* arena_take(Arena*, size_t bytes, size_t align) noexcept;
void arena_give(Arena*, void* p, size_t bytes, size_t align) noexcept;
void arena_drop_life(Arena*) noexcept;

Slab* arena_take_slab(Arena*) noexcept;
void arena_give_slab(Arena*, Slab*) noexcept;

void retired_free(Arena*) noexcept;  // (TT_CHECKED) all of them

// Of a block that heap_alloc gave.
TT_INLINE Arena* block_arena(const void* p, size_t bytes) noexcept {
  const bool large = TT_HEAP_DIRECT || bytes > kSmallMax;
  return large ? (static_cast<const LargeBlock*>(p) - 1)->arena : slab_of(p)->heap->arena;
}

void* large_alloc(Arena*, size_t bytes) noexcept;
void large_free(void* p, size_t bytes) noexcept;
void large_trim(Arena*) noexcept;

// Owner only: takes back the blocks that other threads have freed and gives up slabs without a live
// block.
void heap_collect(Heap*) noexcept;
// Collects this thread's heap of the arena and the abandoned ones.
void heaps_trim(Arena*) noexcept;
// Takes the heaps from their threads for ever (the arena has no reference any more); each goes with
// its last block.
void heaps_revoke(Arena*) noexcept;

}  // namespace TT_NS
