// libtt_cuda.so: the DeviceBackend table over the CUDA runtime. The runtime is linked statically;
// the driver is the only library that it needs, and without one there are no devices.
#include <cuda_runtime_api.h>

#include <stdio.h>
#include <string.h>

#include "plan/backend_id.h"

namespace TT_NS {

// ---- the launchers of the kernels, in their own files ----

namespace cuda {
#define TT_CUDA_ROW(name) int32_t name(const void* plan, void* stream, void* workspace);
#define TT_CUDA_ROW_WORKSPACE(name) \
  TT_CUDA_ROW(name)                 \
  size_t name##_workspace(const void* plan);
#include "kernels/cuda/rows.inc"
#undef TT_CUDA_ROW
#undef TT_CUDA_ROW_WORKSPACE
}  // namespace cuda

namespace {

const DeviceHost* g_host;
int32_t g_n_devices;

// ---- errors ----

thread_local char g_text[256];

const char* error_text() { return g_text; }

// Errors after which the context of the device computes nothing more.
bool is_sticky(cudaError_t e) {
  switch (e) {
    case cudaErrorInitializationError:
    case cudaErrorCudartUnloading:
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorSystemNotReady:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown: return true;
    default: break;
  }
  // Only later toolkits name these.
  constexpr int kContained = 226, kTensorMemoryLeak = 721;
  return int(e) == kContained || int(e) == kTensorMemoryLeak;
}

// Returns the status of an error and keeps its text. The runtime's own record of it is cleared: the
// application's next look at it must not find tt's error.
int32_t failed(cudaError_t e) {
  cudaGetLastError();
  snprintf(g_text, sizeof g_text, "CUDA error %d, %s: %s", int(e), cudaGetErrorName(e),
           cudaGetErrorString(e));
  if (e == cudaErrorMemoryAllocation) return TT_OOM;
  return is_sticky(e) ? TT_DEVICE : TT_INTERNAL;
}
int32_t status_of(cudaError_t e) { return e == cudaSuccess ? int32_t(TT_OK) : failed(e); }

// Makes a device the current one of the thread; the application's comes back afterwards.
class Current {
 public:
  explicit Current(int32_t device) {
    error_ = cudaGetDevice(&before_);
    changed_ = error_ == cudaSuccess && before_ != device;
    if (changed_) error_ = cudaSetDevice(device);
  }
  ~Current() {
    if (changed_) cudaSetDevice(before_);
  }
  Current(const Current&) = delete;
  int32_t status() const { return status_of(error_); }
  // Calls f() on the device.
  template <class F> int32_t run(const F& f) {
    return status_of(error_ == cudaSuccess ? f() : error_);
  }

 private:
  cudaError_t error_;
  int before_ = 0;
  bool changed_;
};

int32_t make_current(int32_t device) { return status_of(cudaSetDevice(device)); }

cudaStream_t as_stream(void* s) { return static_cast<cudaStream_t>(s); }
cudaEvent_t as_event(void* e) { return static_cast<cudaEvent_t>(e); }

// ---- memory ----

int32_t raw_alloc(int32_t device, size_t bytes, void** out) {
  *out = nullptr;
  return Current(device).run([&] { return cudaMalloc(out, bytes); });
}
// A failure means that the context is gone, and the memory with it.
void raw_free(int32_t device, void* p) {
  Current(device).run([&] { return cudaFree(p); });
}
int32_t pinned_alloc(int32_t device, size_t bytes, void** out) {
  *out = nullptr;
  return Current(device).run(
      [&] { return cudaHostAlloc(out, bytes, cudaHostAllocPortable | cudaHostAllocMapped); });
}
void pinned_free(int32_t device, void* p) {
  Current(device).run([&] { return cudaFreeHost(p); });
}
int32_t memory_info(int32_t device, int64_t* left, int64_t* total) {
  size_t free_bytes = 0, all_bytes = 0;
  const int32_t status =
      Current(device).run([&] { return cudaMemGetInfo(&free_bytes, &all_bytes); });
  *left = int64_t(free_bytes);
  *total = int64_t(all_bytes);
  return status;
}

// ---- copies ----

cudaMemcpyKind kind_of(int32_t kind) {
  if (kind == kHostToDevice) return cudaMemcpyHostToDevice;
  return kind == kDeviceToHost ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}
int32_t copy_pinned(int32_t device, void* dst, const void* src, size_t bytes, int32_t kind,
                    void* stream) {
  if (!bytes) return TT_OK;
  return Current(device).run(
      [&] { return cudaMemcpyAsync(dst, src, bytes, kind_of(kind), as_stream(stream)); });
}
// From pageable memory the runtime returns when it has staged the bytes. To pageable memory it may
// return before they are there.
int32_t copy(int32_t device, void* dst, const void* src, size_t bytes, int32_t kind, void* stream) {
  if (const int32_t status = copy_pinned(device, dst, src, bytes, kind, stream)) return status;
  if (kind != kDeviceToHost) return TT_OK;
  return Current(device).run([&] { return cudaStreamSynchronize(as_stream(stream)); });
}

// Enables direct access between two devices once; without it, the runtime stages the copy.
void enable_peer(int32_t device, int32_t peer) {
  static char known[kMaxDevices][kMaxDevices];
  char& state = known[device][peer];
  if (__atomic_exchange_n(&state, 1, __ATOMIC_RELAXED)) return;
  int can = 0;
  if (cudaDeviceCanAccessPeer(&can, device, peer) == cudaSuccess && can)
    cudaDeviceEnablePeerAccess(peer, 0);
  cudaGetLastError();
}
int32_t copy_peer(int32_t device, void* dst, int32_t from, const void* src, size_t bytes,
                  void* stream) {
  if (!bytes) return TT_OK;
  Current current(device);
  if (device != from) enable_peer(device, from);
  return current.run(
      [&] { return cudaMemcpyPeerAsync(dst, device, src, from, bytes, as_stream(stream)); });
}
int32_t peer_access(int32_t device, int32_t peer) {
  int can = 0;
  if (cudaDeviceCanAccessPeer(&can, device, peer) != cudaSuccess) cudaGetLastError();
  return can;
}

// ---- streams ----

int32_t stream_new(int32_t device, int32_t priority, void** out) {
  cudaStream_t s = nullptr;
  const int32_t status = Current(device).run(
      [&] { return cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, priority); });
  *out = s;
  return status;
}
void stream_free(int32_t device, void* stream) {
  Current(device).run([&] { return cudaStreamDestroy(as_stream(stream)); });
}
int32_t stream_sync(int32_t device, void* stream) {
  return Current(device).run([&] { return cudaStreamSynchronize(as_stream(stream)); });
}
int32_t stream_wait(int32_t device, void* stream, void* event) {
  return Current(device).run(
      [&] { return cudaStreamWaitEvent(as_stream(stream), as_event(event), 0); });
}
int32_t stream_done(int32_t, void* stream) {
  const cudaError_t e = cudaStreamQuery(as_stream(stream));
  if (e == cudaSuccess) return 1;
  cudaGetLastError();
  return e != cudaErrorNotReady;  // a failure is reported by the next synchronisation
}

// ---- events ----

int32_t make_event(int32_t device, unsigned flags, void** out) {
  cudaEvent_t e = nullptr;
  const int32_t status = Current(device).run([&] { return cudaEventCreateWithFlags(&e, flags); });
  *out = e;
  return status;
}
int32_t event_new(int32_t device, void** out) {
  return make_event(device, cudaEventDisableTiming, out);
}
int32_t timed_event_new(int32_t device, void** out) {
  return make_event(device, cudaEventDefault, out);
}
void event_free(int32_t device, void* event) {
  Current(device).run([&] { return cudaEventDestroy(as_event(event)); });
}
int32_t event_record(int32_t device, void* event, void* stream) {
  return Current(device).run([&] { return cudaEventRecord(as_event(event), as_stream(stream)); });
}
int32_t event_done(int32_t, void* event) {
  const cudaError_t e = cudaEventQuery(as_event(event));
  if (e == cudaSuccess) return 1;
  cudaGetLastError();
  return e != cudaErrorNotReady;
}
int32_t event_sync(int32_t device, void* event) {
  return Current(device).run([&] { return cudaEventSynchronize(as_event(event)); });
}
int32_t event_elapsed(int32_t device, void* start, void* end, double* milliseconds) {
  float ms = 0;
  const int32_t status = Current(device).run(
      [&] { return cudaEventElapsedTime(&ms, as_event(start), as_event(end)); });
  *milliseconds = double(ms);
  return status;
}

// ---- graphs ----

int32_t capture_begin(int32_t device, void* stream) {
  return Current(device).run(
      [&] { return cudaStreamBeginCapture(as_stream(stream), cudaStreamCaptureModeThreadLocal); });
}
int32_t capture_end(int32_t device, void* stream, void** out) {
  *out = nullptr;
  return Current(device).run([&] {
    cudaGraph_t graph = nullptr;
    cudaError_t e = cudaStreamEndCapture(as_stream(stream), &graph);
    if (e != cudaSuccess) return e;
    cudaGraphExec_t exec = nullptr;
    e = cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    *out = exec;
    return e;
  });
}
int32_t graph_launch(int32_t device, void* graph, void* stream) {
  return Current(device).run(
      [&] { return cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), as_stream(stream)); });
}
void graph_free(int32_t device, void* graph) {
  Current(device).run([&] { return cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)); });
}

// ---- facts ----

// The name of a device, which the first thread that asks for it writes.
const char* kept_name(int32_t device, const cudaDeviceProp& p) {
  enum State : int32_t { kUnknown, kBeingWritten, kWritten };
  static int32_t states[kMaxDevices];
  static char names[kMaxDevices][sizeof p.name];
  int32_t state = kUnknown;
  if (__atomic_compare_exchange_n(&states[device], &state, int32_t(kBeingWritten), false,
                                  __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
    memcpy(names[device], p.name, sizeof p.name);
    __atomic_store_n(&states[device], int32_t(kWritten), __ATOMIC_RELEASE);
  }
  while (__atomic_load_n(&states[device], __ATOMIC_ACQUIRE) != kWritten) {}
  return names[device];
}
int32_t properties(int32_t device, tt_device_properties* out) {
  cudaDeviceProp p;
  if (const int32_t status = status_of(cudaGetDeviceProperties(&p, device))) return status;
  *out = {.name = kept_name(device, p),
          .major = p.major,
          .minor = p.minor,
          .multi_processor_count = p.multiProcessorCount,
          .warp_size = p.warpSize,
          .max_threads_per_multi_processor = p.maxThreadsPerMultiProcessor,
          .is_integrated = p.integrated,
          .total_memory = int64_t(p.totalGlobalMem),
          .shared_memory_per_block = int64_t(p.sharedMemPerBlock),
          .shared_memory_per_block_optin = int64_t(p.sharedMemPerBlockOptin),
          .l2_cache_size = p.l2CacheSize};
  return TT_OK;
}

// ---- kernels ----

enum Row : int32_t {
#define TT_KERNEL_ROW(name, kind) kRow_##name,
#include "plan/gen/kernel_rows.inc"
#undef TT_KERNEL_ROW
  kNumRows
};

// A launch that failed is in the runtime's record. It loses the device only if its error does.
int32_t launch_failed(int32_t status) {
  const cudaError_t e = cudaGetLastError();
  if (e != cudaSuccess) return failed(e);
  snprintf(g_text, sizeof g_text, "the kernel returned %d", int(status));
  return status;
}
template <int32_t (*kLaunch)(const void*, void*, void*)>
int32_t launch(int32_t device, const void* plan, void* stream, void* workspace) {
  Current current(device);
  if (const int32_t status = current.status()) return status;
  const int32_t status = kLaunch(plan, stream, workspace);
  return status == TT_OK ? int32_t(TT_OK) : launch_failed(status);
}

// What a row needs may depend on a library, which is asked on the current device. One device is the
// current one always.
size_t bytes_on_current(int32_t kernel, [[maybe_unused]] const void* plan) {
  switch (kernel) {
#define TT_CUDA_ROW(name)
#define TT_CUDA_ROW_WORKSPACE(name) \
  case kRow_##name:                 \
    return cuda::name##_workspace(plan);
#include "kernels/cuda/rows.inc"
#undef TT_CUDA_ROW
#undef TT_CUDA_ROW_WORKSPACE
    default: return 0;
  }
}
size_t workspace_bytes(int32_t device, int32_t kernel, const void* plan) {
  if (g_n_devices == 1) return bytes_on_current(kernel, plan);
  const Current current(device);
  return bytes_on_current(kernel, plan);
}

constexpr DeviceBackend make_table() {
  DeviceBackend b = {};
  b.build_id = kBuildId;
  b.n_kernels = kNumRows;
  b.raw_alloc = raw_alloc;
  b.raw_free = raw_free;
  b.copy = copy;
  b.stream_sync = stream_sync;
  b.event_new = event_new;
  b.event_free = event_free;
  b.event_record = event_record;
  b.event_done = event_done;
  b.workspace_bytes = workspace_bytes;
#define TT_CUDA_ROW(name) b.kernels[kRow_##name] = launch<cuda::name>;
#define TT_CUDA_ROW_WORKSPACE(name) TT_CUDA_ROW(name)
#include "kernels/cuda/rows.inc"
#undef TT_CUDA_ROW
#undef TT_CUDA_ROW_WORKSPACE
  b.block_rule = kCutBlocks;
  b.stream_new = stream_new;
  b.stream_free = stream_free;
  b.stream_wait = stream_wait;
  b.stream_done = stream_done;
  b.timed_event_new = timed_event_new;
  b.event_sync = event_sync;
  b.event_elapsed = event_elapsed;
  b.copy_peer = copy_peer;
  b.pinned_alloc = pinned_alloc;
  b.pinned_free = pinned_free;
  b.copy_pinned = copy_pinned;
  b.memory_info = memory_info;
  b.properties = properties;
  b.peer_access = peer_access;
  b.capture_begin = capture_begin;
  b.capture_end = capture_end;
  b.graph_launch = graph_launch;
  b.graph_free = graph_free;
  b.error_text = error_text;
  b.make_current = make_current;
  return b;
}
constinit DeviceBackend g_table = make_table();

// Returns the status, and in g_text why there is no device.
int32_t count_devices(int* n) {
  const cudaError_t e = cudaGetDeviceCount(n);
  if (e == cudaSuccess && *n > 0) return TT_OK;
  cudaGetLastError();
  if (e == cudaErrorInsufficientDriver) {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    const int built = CUDART_VERSION;
    if (driver == 0)
      snprintf(g_text, sizeof g_text, "the NVIDIA driver is not installed (libcuda.so.1)");
    else
      snprintf(g_text, sizeof g_text,
               "the NVIDIA driver is for CUDA %d.%d: must be for %d.%d or later", driver / 1000,
               driver % 1000 / 10, built / 1000, built % 1000 / 10);
  } else if (e == cudaSuccess || e == cudaErrorNoDevice) {
    snprintf(g_text, sizeof g_text, "the NVIDIA driver finds no device");
  } else {
    failed(e);
  }
  return TT_DEVICE;
}

}  // namespace

}  // namespace TT_NS

extern "C" __attribute__((visibility("default"))) int32_t tt_cuda_backend(
    uint64_t build_id, const TT_NS::DeviceHost* host, const TT_NS::DeviceBackend** out) {
  using namespace TT_NS;
  *out = &g_table;
  if (build_id != kBuildId) return TT_ABI;
  g_host = host;
  int n = 0;
  if (const int32_t status = count_devices(&n)) return status;
  g_n_devices = n < kMaxDevices ? n : kMaxDevices;
  g_table.n_devices = g_n_devices;
  return TT_OK;
}
