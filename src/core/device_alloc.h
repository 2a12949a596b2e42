// Caching allocator of one device, on top of the backend's raw alloc and free. Blocks may outlive
// the runtime.
#pragma once

#include "core/backend.h"

namespace TT_NS {

struct DeviceAlloc;

DeviceAlloc* device_alloc_new(int32_t device) noexcept;  // NULL on OOM or without a backend
void device_alloc_release(DeviceAlloc*) noexcept;        // freed with its last block
void* device_alloc_get(
    DeviceAlloc*, size_t bytes) noexcept;  // 256-byte aligned; retries after a trim; NULL on OOM
void device_alloc_put(
    DeviceAlloc*, void* p,
    size_t bytes) noexcept;  // stream-ordered: immediately reusable on the same stream
void device_alloc_trim(DeviceAlloc*) noexcept;
void device_alloc_limit(DeviceAlloc*, int64_t bytes) noexcept;  // 0 = none
void device_alloc_stats(DeviceAlloc*, tt_memory_stats* out) noexcept;

}  // namespace TT_NS
