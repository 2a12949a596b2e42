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
  // To the logger of the running call's runtime; level is a TT_LOG_ value.
  void (*log)(int32_t level, const char* message);
};

// How the allocator cuts blocks out of what raw_alloc returns.
enum BlockRule : int32_t {
  kCutBlocks = 0,   // slabs and segments are cut and merged
  kWholeBlocks = 1  // each block is one raw_alloc: a checker of memory sees its bounds
};

// Functions return 0 or a tt_status unless they say otherwise. TT_DEVICE means that the device is
// lost. A stream of NULL is the one that the library has for the device.
struct DeviceBackend {
  uint64_t build_id;  // always the first field: the only one that may be read from a library of
                      // another build (plan/backend_id.h)
  int32_t n_devices;
  int32_t n_kernels;
  int32_t (*raw_alloc)(int32_t device, size_t bytes, void** out);
  void (*raw_free)(int32_t device, void* p);
  // Without waiting, also if CPU memory is pageable: it is staged when the call returns. A copy
  // from the device to pageable memory waits.
  int32_t (*copy)(int32_t device, void* dst, const void* src, size_t bytes, int32_t kind,
                  void* stream);
  // 0, or the status of work that failed since the last call.
  int32_t (*stream_sync)(int32_t device, void* stream);
  int32_t (*event_new)(int32_t device, void** out);  // without times
  void (*event_free)(int32_t device, void* event);
  int32_t (*event_record)(int32_t device, void* event, void* stream);
  int32_t (*event_done)(int32_t device, void* event);  // 1 yes, 0 no
  // Scratch memory needed by kernels[kernel].
  size_t (*workspace_bytes)(int32_t device, int32_t kernel, const void* plan);
  DeviceKernel kernels[kMaxKernels];  // by Kernel::id; NULL: not implemented

  // ---- optional: a table without stream_new has none of them, and one stream for each device ----
  int32_t block_rule;   // a BlockRule
  int32_t cpu_scratch;  // 1: kernels use the scratch memory that a plan has for those of the CPU
  int32_t (*stream_new)(int32_t device, int32_t priority, void** out);
  void (*stream_free)(int32_t device, void* stream);  // work that it has goes on
  int32_t (*stream_wait)(int32_t device, void* stream, void* event);
  int32_t (*stream_done)(int32_t device, void* stream);  // 1 yes, 0 no
  int32_t (*timed_event_new)(int32_t device, void** out);
  int32_t (*event_sync)(int32_t device, void* event);
  int32_t (*event_elapsed)(int32_t device, void* start, void* end, double* milliseconds);
  // Between two devices, or within one; ordered by the stream of `device`.
  int32_t (*copy_peer)(int32_t device, void* dst, int32_t from, const void* src, size_t bytes,
                       void* stream);
  // CPU memory that devices reach at the same address, and copies from and to which do not wait.
  int32_t (*pinned_alloc)(int32_t device, size_t bytes, void** out);
  void (*pinned_free)(int32_t device, void* p);
  int32_t (*copy_pinned)(int32_t device, void* dst, const void* src, size_t bytes, int32_t kind,
                         void* stream);
  int32_t (*memory_info)(int32_t device, int64_t* free, int64_t* total);
  int32_t (*properties)(int32_t device, tt_device_properties* out);
  int32_t (*peer_access)(int32_t device, int32_t peer);  // 1 yes, 0 no
  int32_t (*capture_begin)(int32_t device, void* stream);
  int32_t (*capture_end)(int32_t device, void* stream, void** graph);
  int32_t (*graph_launch)(int32_t device, void* graph, void* stream);
  void (*graph_free)(int32_t device, void* graph);
  // What the last failure on the calling thread was; "" if there was none.
  const char* (*error_text)();
  // Makes the device the calling thread's current one, for libraries that compute on that.
  int32_t (*make_current)(int32_t device);
};

// The only symbol that a library exports. If build_id is not its own, it returns TT_ABI and sets
// *out to a table in which only build_id is valid. If it finds no usable device, it returns
// TT_DEVICE and sets *out to a table whose build_id and error_text are valid.
using DeviceEntry = int32_t (*)(uint64_t build_id, const DeviceHost* host,
                                const DeviceBackend** out);
constexpr char kCudaEntryName[] = "tt_cuda_backend";

// Registers the backend once per process. Later calls succeed with the same table and fail with
// another.
bool set_cuda_backend(const DeviceBackend* b) noexcept;
const DeviceBackend* cuda_backend() noexcept;  // NULL: none

}  // namespace TT_NS
