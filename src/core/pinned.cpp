#include "core/pinned.h"

#include "core/ctx.h"

#include <string.h>

namespace TT_NS {

// Each block is kept in one list of its device, in use or not.
struct PinnedBlock {
  PinnedBlock* next;
  CudaDevice* device;
  char* p;
  size_t bytes;
  void* event;    // of the last copy; NULL: none was ever recorded
  bool recorded;  // the event may be ahead
  bool used;      // a storage has it
};

static PinnedBlock* block_of(const Storage& s) { return static_cast<PinnedBlock*>(s.release_ctx); }

static bool is_idle(const PinnedBlock& b) noexcept {
  return !b.recorded || b.device->backend->event_done(b.device->index, b.event) == 1;
}

static void release_pinned(Storage* s) noexcept {
  PinnedBlock* b = block_of(*s);
  CudaDevice& d = *b->device;
  {
    Lock lock(d.pinned_mutex);
    b->used = false;
  }
  device_alloc_unhold(d.alloc);
}

bool is_pinned(const Storage& s) noexcept { return s.release == release_pinned; }

// Blocks are powers of two from 512 bytes on, so that many requests fit the cached ones.
static size_t rounded(size_t bytes) {
  size_t size = 512;
  while (size < bytes) size *= 2;
  return size;
}

static PinnedBlock* find_block(CudaDevice& d, size_t bytes) noexcept {
  for (PinnedBlock* b = d.pinned; b; b = b->next)
    if (!b->used && b->bytes == bytes && is_idle(*b)) return b;
  return nullptr;
}

static PinnedBlock* take_block(CudaDevice& d, size_t bytes) {
  Lock lock(d.pinned_mutex);
  PinnedBlock* b = find_block(d, bytes);
  if (!b) {
    b = static_cast<PinnedBlock*>(os_alloc(sizeof(PinnedBlock), 64));
    if (!b) fail_oom(int64_t(sizeof(PinnedBlock)));
    memset(static_cast<void*>(b), 0, sizeof *b);
    void* p = nullptr;
    if (d.backend->pinned_alloc(d.index, bytes, &p) != TT_OK) {
      os_free(b);
      fail_oom(int64_t(bytes));
    }
    b->device = &d;
    b->p = static_cast<char*>(p);
    b->bytes = bytes;
    b->next = d.pinned;
    d.pinned = b;
  }
  b->used = true;
  b->recorded = false;
  return b;
}

TensorRef new_pinned(CudaDevice& d, Ints sizes, Dtype dtype) {
  cuda_usable(d);
  if (!d.backend->pinned_alloc || !d.backend->copy_pinned)
    fail(TT_NOT_IMPLEMENTED, "the device library of {} has no pinned memory",
         fmt(Device{TT_CUDA, int8_t(d.index)}));
  const int64_t bytes = checked_numel(sizes, dtype, "t") * item_size(dtype);
  if (bytes > TT_MAX_BYTES) fail_oom(bytes);
  PinnedBlock* b = take_block(d, rounded(size_t(bytes)));
  TensorRef t;
  try {
    t = new_import(b->p, sizes, Ints(), dtype, kCpuDevice, nullptr, nullptr);
  } catch (...) {
    Lock lock(d.pinned_mutex);
    b->used = false;
    throw;
  }
  device_alloc_hold(d.alloc);
  t->storage->release = release_pinned;
  t->storage->release_ctx = b;
  return t;
}

void copy_pinned(Ctx& c, char* dst, Device to, const char* src, Device from, int64_t bytes,
                 Storage& pinned) {
  const bool to_device = to.type == TT_CUDA;
  CudaDevice& d = runtime_cuda(c.rt, to_device ? to.index : from.index);
  cuda_usable(d);
  PinnedBlock& b = *block_of(pinned);
  const DeviceBackend& backend = *d.backend;
  DeviceStream& stream = current_stream(d);
  constexpr const char* kEvent = "recording an event";
  Lock lock(b.device->pinned_mutex);
  if (!b.event) cuda_check(d, backend.event_new(d.index, &b.event), "making an event");
  // One event covers all copies: a later stream waits for the earlier one.
  if (b.recorded) cuda_check(d, backend.stream_wait(d.index, stream.handle, b.event), kEvent);
  cuda_check(d,
             backend.copy_pinned(d.index, dst, src, size_t(bytes),
                                 to_device ? kHostToDevice : kDeviceToHost, stream.handle),
             "a copy of pinned memory");
  b.recorded = true;
  cuda_check(d, backend.event_record(d.index, b.event, stream.handle), kEvent);
}

void end_pinned(CudaDevice& d) noexcept {
  const bool gone = d.lost || !*d.alive;
  while (PinnedBlock* b = d.pinned) {
    d.pinned = b->next;
    if (!gone) {
      if (b->recorded && d.backend->event_sync) d.backend->event_sync(d.index, b->event);
      if (b->event) d.backend->event_free(d.index, b->event);
      d.backend->pinned_free(d.index, b->p);
    }
    os_free(b);
  }
}

}  // namespace TT_NS
