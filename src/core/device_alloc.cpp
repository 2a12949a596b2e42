#include "core/device_alloc.h"

#include "base/arith.h"
#include "base/os.h"

#include <string.h>

namespace TT_NS {

static const DeviceBackend* g_backend = nullptr;

bool set_cuda_backend(const DeviceBackend* b) noexcept {
  const DeviceBackend* none = nullptr;
  return __atomic_compare_exchange_n(&g_backend, &none, b, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE) ||
         none == b;
}
const DeviceBackend* cuda_backend() noexcept {
  return __atomic_load_n(&g_backend, __ATOMIC_ACQUIRE);
}

// Blocks are rounded up to a class: 4 steps per power of two from 512 B on, so at most 25 % is
// unused.
constexpr int kClasses = 160;

struct FreeBlock {  // CPU-side record of a cached device block
  FreeBlock* next;
  void* p;
};

struct DeviceAlloc {
  Mutex mutex;
  int32_t device;
  bool released;
  int64_t live, in_use, reserved, peak, limit;
  FreeBlock* free_list[kClasses];
};

static int size_class(size_t bytes, size_t* rounded) {
  if (bytes <= 512) {
    *rounded = 512;
    return 0;
  }
  int log = 63 - __builtin_clzll(bytes - 1);
  size_t step = size_t(1) << (log - 2);
  size_t r = round_up(bytes, step);
  *rounded = r;
  return (log - 9) * 4 + int((r - (size_t(1) << log)) / step);
}

DeviceAlloc* device_alloc_new(int32_t device) noexcept {
  if (!cuda_backend()) return nullptr;
  auto* a = static_cast<DeviceAlloc*>(os_alloc(sizeof(DeviceAlloc), 64));
  if (!a) return nullptr;
  memset(static_cast<void*>(a), 0, sizeof *a);
  a->device = device;
  return a;
}

static void trim_locked(DeviceAlloc* a) noexcept {
  for (int c = 0; c < kClasses; c++) {
    size_t bytes = c == 0 ? 512 : (size_t(512) << (c / 4)) / 4 * (4 + size_t(c % 4));
    while (FreeBlock* b = a->free_list[c]) {
      a->free_list[c] = b->next;
      cuda_backend()->raw_free(a->device, b->p);
      a->reserved -= int64_t(bytes);
      os_free(b);
    }
  }
}

static void destroy(DeviceAlloc* a) noexcept {
  trim_locked(a);
  os_free(a);
}

void device_alloc_release(DeviceAlloc* a) noexcept {
  if (!a) return;
  a->mutex.lock();
  a->released = true;
  bool last = a->live == 0;
  a->mutex.unlock();
  if (last) destroy(a);
}

void* device_alloc_get(DeviceAlloc* a, size_t bytes) noexcept {
  Lock lock(a->mutex);
  size_t rounded;
  int c = size_class(bytes, &rounded);
  void* p = nullptr;
  if (c < kClasses && a->free_list[c]) {
    FreeBlock* b = a->free_list[c];
    a->free_list[c] = b->next;
    p = b->p;
    os_free(b);
  } else {
    bool over = a->limit && a->reserved + int64_t(rounded) > a->limit;
    if (over) {
      trim_locked(a);
      over = a->reserved + int64_t(rounded) > a->limit;
    }
    if (over) return nullptr;
    if (cuda_backend()->raw_alloc(a->device, rounded, &p) != 0) {
      trim_locked(a);
      if (cuda_backend()->raw_alloc(a->device, rounded, &p) != 0) return nullptr;
    }
    a->reserved += int64_t(rounded);
    if (a->reserved > a->peak) a->peak = a->reserved;
  }
  a->live++;
  a->in_use += int64_t(rounded);
  return p;
}

void device_alloc_put(DeviceAlloc* a, void* p, size_t bytes) noexcept {
  a->mutex.lock();
  size_t rounded;
  int c = size_class(bytes, &rounded);
  auto* b = c < kClasses ? static_cast<FreeBlock*>(os_alloc(sizeof(FreeBlock), 64)) : nullptr;
  if (b) {
    *b = {a->free_list[c], p};
    a->free_list[c] = b;
  } else {
    cuda_backend()->raw_free(a->device, p);
    a->reserved -= int64_t(rounded);
  }
  a->in_use -= int64_t(rounded);
  bool last = --a->live == 0 && a->released;
  a->mutex.unlock();
  if (last) destroy(a);
}

void device_alloc_trim(DeviceAlloc* a) noexcept {
  Lock lock(a->mutex);
  trim_locked(a);
}
void device_alloc_limit(DeviceAlloc* a, int64_t bytes) noexcept {
  Lock lock(a->mutex);
  a->limit = bytes;
}
void device_alloc_stats(DeviceAlloc* a, tt_memory_stats* out) noexcept {
  Lock lock(a->mutex);
  out->in_use = a->in_use;
  out->reserved = a->reserved;
  out->peak = a->peak;
  out->limit = a->limit;
}

}  // namespace TT_NS
