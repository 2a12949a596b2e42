// CudaDevice: what a runtime keeps of a CUDA device: its memory, its streams, the checks that have
// not been read yet, and its first error if it is lost.
#pragma once

#include "base/os.h"
#include "base/ref.h"
#include "core/device.h"
#include "core/device_alloc.h"

namespace TT_NS {

struct Ctx;
struct Runtime;
struct Storage;
struct Tensor;
struct CudaDevice;
struct PinnedBlock;
class DeviceChecks;

// A stream of a device. Number 0 is the device's own; it lives as long as the device.
struct DeviceStream {
  uint32_t tag;
  RefCount refs;
  CudaDevice* device;
  void* handle;  // what the backend returned; NULL: the library's own
  int32_t number;
  DevicePool* pool;
  bool imported;  // the handle is the application's
  // Guarded by the device's mutex: the threads that use the stream without a reference, and whether
  // the last reference is gone. The stream ends when it is and no such thread remains.
  int32_t borrowers = 0;
  bool released = false;
  static void destroy(DeviceStream*) noexcept;
};

struct DeviceEvent {
  uint32_t tag;
  RefCount refs;
  CudaDevice* device;
  void* handle;
  bool timed;
  bool recorded;
  static void destroy(DeviceEvent*) noexcept;
};

struct CudaDevice {
  const DeviceBackend* backend;
  int32_t index;
  const uint32_t* alive;  // 1; 0 in a child of fork
  int32_t lost;           // the status of the error that lost the device; 0: none. Atomic
  DeviceAlloc* alloc;
  DeviceStream own;                    // number 0
  Mutex mutex;                         // guards what follows
  DeviceStream* streams[kMaxStreams];  // by number; NULL: unused. [0] is `own`
  uint32_t ended;                      // bit n: a stream of number n has ended
  DeviceChecks* checks;                // NULL: none was started yet
  Mutex pinned_mutex;
  PinnedBlock* pinned;    // guarded by pinned_mutex: all blocks (core/pinned.h)
  char first_error[256];  // text of the error that lost the device
};

// Opens the library that is beside libtt or on the loader's path, if there is one; otherwise
// why_no_cuda says why not. Set by the layer that knows libraries.
extern void (*open_cuda_library)();
extern const char* why_no_cuda;

// Opens a device of a runtime, and the library before the first one. Fails with DEVICE or OOM; arg
// names the argument that names the device.
CudaDevice& open_cuda(Runtime*, int32_t index, const char* arg);
// Closes it. Memory, streams and events may outlive the runtime.
void close_cuda(CudaDevice*) noexcept;

// The stream that the running ctx has set for the device, or the device's own.
DeviceStream& side_stream(CudaDevice&);

// Fails unless status is 0. TT_DEVICE loses the device: its text is kept, and later calls fail with
// it. `what` is what was done, as in "copying from cuda:0 to cpu".
[[noreturn]] TT_COLD void fail_cuda(CudaDevice&, int32_t status, const char* what);
inline void cuda_check(CudaDevice& d, int32_t status, const char* what) {
  if (TT_UNLIKELY(status != 0)) fail_cuda(d, status, what);
}
[[noreturn]] TT_COLD void fail_forked();
// Fails if the device is lost, or the process is a child of fork.
[[noreturn]] TT_COLD void fail_unusable(CudaDevice&);
TT_INLINE bool is_usable(const CudaDevice& d) {
  return atomic_load(d.alive, kRelaxed) && !atomic_load(&d.lost, kRelaxed);
}
TT_INLINE void cuda_usable(CudaDevice& d) {
  if (TT_UNLIKELY(!is_usable(d))) fail_unusable(d);
}
// Waits for one stream, or for all; then fails for work that failed and for checks that found
// something. All waiting of libtt for a device goes through here or through cuda_copy.
void cuda_synchronize(CudaDevice&, DeviceStream* only = nullptr);
// Orders the stream after all that `other` has to do so far.
void cuda_wait_stream(DeviceStream& stream, DeviceStream& other);

Ref<DeviceStream> new_stream(CudaDevice&, int32_t priority);
Ref<DeviceStream> import_stream(CudaDevice&, void* handle);  // not NULL
Ref<DeviceStream> own_stream(CudaDevice&);                   // a handle of the device's own stream
Ref<DeviceEvent> new_event(CudaDevice&, bool timed);

// Copies memory on the current streams. From a device to pageable CPU memory it waits, and reports
// checks that found something.
void cuda_copy(Ctx&, char* dst, Device to, const char* src, Device from, int64_t bytes);

// A block for a new storage, on the current stream. NULL: out of memory.
DeviceBlock* cuda_block(CudaDevice&, int64_t bytes) noexcept;
// Fails with OOM and the figures of the allocator.
[[noreturn]] TT_COLD void fail_device_memory(CudaDevice&, int64_t bytes);

// ---- side streams: a storage knows the streams that use it (Storage::users) ----
// The bits of users and, above them, the number of the stream that wrote last.
constexpr int kWriterShift = 32;
// Has the stream wait for the last writer of the storage if that is another stream.
void wait_for_writer(DeviceStream&, const Storage&);
// Has it wait for all other streams that use the storage.
void wait_for_users(DeviceStream&, const Storage&);
void mark_used(DeviceStream&, Storage&, bool written) noexcept;
// Sets the stream of the running ctx for its device.
void set_current_stream(Ctx&, DeviceStream&);

}  // namespace TT_NS
