// DeviceBackend: the POD table that a device library fills. No Tensor, exception or allocation of
// tt crosses it.
#pragma once

#include "core/kernel.h"

namespace TT_NS {

constexpr int kMaxKernels = 512;
constexpr int kMaxDevices = 16;

// Runs all stages of a plan on a stream. Returns 0 or a tt_status. The plan is copied before the
// call returns.
using DeviceKernel = int32_t (*)(int32_t device, const void* plan, void* stream, void* workspace);
enum CopyKind : int32_t { kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3 };

// Functions that libtt provides to the library.
struct DeviceHost {
  size_t struct_size;
  void (*log)(int32_t level,
              const char* message);  // to the logger of the running call's runtime; level is a
                                     // TT_LOG_ value
};

struct DeviceBackend {
  uint64_t build_id;  // always the first field: the only one that may be read from a library of
                      // another build (plan/backend_id.h)
  int32_t n_devices;
  int32_t n_kernels;
  int32_t (*raw_alloc)(int32_t device, size_t bytes, void** out);
  void (*raw_free)(int32_t device, void* p);
  int32_t (*copy)(int32_t device, void* dst, const void* src, size_t bytes, int32_t kind,
                  void* stream);  // async; a copy from device to CPU waits
  int32_t (*stream_sync)(int32_t device,
                         void* stream);  // 0, or the status of work that failed since the last call
  int32_t (*event_new)(int32_t device, void** out);
  void (*event_free)(int32_t device, void* event);
  int32_t (*event_record)(int32_t device, void* event, void* stream);
  int32_t (*event_done)(int32_t device, void* event);  // 1 yes, 0 no
  size_t (*workspace_bytes)(int32_t kernel,
                            const void* plan);  // scratch memory needed by kernels[kernel]
  DeviceKernel kernels[kMaxKernels];            // by Kernel::id; NULL: not implemented
};

// The only symbol that a library exports. If build_id is not its own, it returns TT_ABI and sets
// *out to a table in which only build_id is valid.
using DeviceEntry = int32_t (*)(uint64_t build_id, const DeviceHost* host,
                                const DeviceBackend** out);
constexpr char kCudaEntryName[] = "tt_cuda_backend";

// Registers the backend once per process. Later calls succeed with the same table and fail with
// another.
bool set_cuda_backend(const DeviceBackend* b) noexcept;
const DeviceBackend* cuda_backend() noexcept;  // NULL: none

}  // namespace TT_NS
