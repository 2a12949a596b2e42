// Caching allocator of one device, on top of the backend's raw_alloc and raw_free. Freed blocks are
// reused by the stream that they were allocated on at once, since its work is in order, and by
// others never. Blocks may outlive the runtime.
#pragma once

#include "core/backend.h"

namespace TT_NS {

struct DeviceAlloc;

// The free blocks of one stream.
struct DevicePool;

// A block of device memory. 256-byte aligned.
struct DeviceBlock {
  char* p;
  size_t bytes;              // rounded up
  DeviceBlock *prev, *next;  // neighbours in the segment, by address
  DeviceBlock *bin_prev, *bin_next;
  DevicePool* pool;
  int32_t n_events;  // (returned) of other streams that the block waits for
  bool free;         // in a bin
  bool small;        // of a slab
};

constexpr int kMaxStreams = 32;  // of a device; the bits of a mask of users

struct DeviceAllocStats {
  int64_t in_use, peak_in_use;      // bytes of blocks
  int64_t reserved, peak_reserved;  // bytes from raw_alloc
  int64_t limit;
  int64_t allocations;  // calls that returned a block
  int64_t retries;      // times that memory had to be given back first
  int64_t failures;     // calls that returned none
};

// Requires that backend and streams outlive it. `ended` (may be NULL) is called with `user` after
// the last block has been freed. NULL on OOM.
DeviceAlloc* device_alloc_new(const DeviceBackend* backend, int32_t device, void (*ended)(void*),
                              void* user) noexcept;
void device_alloc_release(DeviceAlloc*) noexcept;  // freed with its last block
// For objects that need the device as long as a block does.
void device_alloc_hold(DeviceAlloc*) noexcept;
void device_alloc_unhold(DeviceAlloc*) noexcept;

// Names the stream with this number in [0, kMaxStreams), which then has a pool. Returns NULL on
// OOM.
DevicePool* device_alloc_stream(DeviceAlloc*, int32_t number, void* stream) noexcept;

// Returns NULL if there is no memory left, also after cached memory was given back and all work
// has ended.
DeviceBlock* device_alloc_get(DevicePool*, size_t bytes) noexcept;
// `users` has a bit for each stream with work on the block. The block is reused after the work of
// those other than its own has ended. Does not wait.
void device_alloc_put(DeviceBlock*, uint32_t users) noexcept;
// Gives back what is unused; blocks that wait for events stay.
void device_alloc_trim(DeviceAlloc*) noexcept;
void device_alloc_limit(DeviceAlloc*, int64_t bytes) noexcept;  // 0 = none
// The device is lost: blocks are forgotten from now on, without calls of the backend.
void device_alloc_lose(DeviceAlloc*) noexcept;
void device_alloc_stats(DeviceAlloc*, DeviceAllocStats* out) noexcept;
void device_alloc_reset_peak(DeviceAlloc*) noexcept;

}  // namespace TT_NS
