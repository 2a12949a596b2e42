// Libraries of NVIDIA's that are opened at first need, on the loader's path. Own kernels serve
// where one is absent.
#pragma once

#include <dlfcn.h>
#include <sched.h>

#include "kernels/cuda/device.h"

namespace TT_NS::cuda {

template <class F> bool find_function(void* library, const char* name, F* f) {
  *f = reinterpret_cast<F>(dlsym(library, name));
  return *f != nullptr;
}

// cuDNN opens the cuBLASLt of its CUDA version when it needs it, and ends the process if it cannot.
// Returns whether there is one, which stays open.
inline bool finds_cublas_lt(void* cudnn) {
  size_t (*version)() = nullptr;  // 13010: 13.1; 0: it does not say
  if (!find_function(cudnn, "cudnnGetCudartVersion", &version)) return true;
  const size_t major = version() / 1000;
  if (!major) return true;
  char name[] = "libcublasLt.so.00";
  name[sizeof name - 3] = char('0' + major / 10 % 10);
  name[sizeof name - 2] = char('0' + major % 10);
  return dlopen(name, RTLD_NOW | RTLD_LOCAL) != nullptr;
}

class OptionalLibrary {
 public:
#if defined(__CUDACC__)
  static constexpr const char* kUsual = "";
#else
  static constexpr const char* kUsual = nullptr;  // the emulation has none
#endif
  // names: of versions, the preferred one first, ended by NULL. find_all: whether all functions
  // were found.
  constexpr OptionalLibrary(const char* const* names, bool (*find_all)(void* library),
                            const char* path = kUsual)
      : names_(names), find_all_(find_all), path_(path) {}

  // Which library serves: NULL means none, "" the system's.
  void use(const char* path) {
    path_ = path;
    __atomic_store_n(&state_, int32_t(kUnknown), __ATOMIC_RELEASE);
  }
  // While another thread opens it, waits: what a plan's workspace was measured for computes it.
  bool is_open() {
    int32_t state = __atomic_load_n(&state_, __ATOMIC_ACQUIRE);
    if (state == kUnknown && __atomic_compare_exchange_n(&state_, &state, int32_t(kOpening), false,
                                                         __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      state = open() ? kOpen : kAbsent;
      __atomic_store_n(&state_, state, __ATOMIC_RELEASE);
    }
    while (state == kOpening) {
      sched_yield();
      state = __atomic_load_n(&state_, __ATOMIC_ACQUIRE);
    }
    return state == kOpen;
  }

 private:
  enum State : int32_t { kUnknown, kOpening, kAbsent, kOpen };

  bool try_open(const char* name) {
    void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    return library && find_all_(library);
  }
  bool open() {
    if (!path_) return false;
    if (*path_) return try_open(path_);
    for (const char* const* name = names_; *name; name++)
      if (try_open(*name)) return true;
    return false;
  }

  const char* const* names_;
  bool (*find_all_)(void*);
  const char* path_;
  int32_t state_ = kUnknown;
};

// Threads wait for each other while one launches by a library, which takes microseconds, or makes a
// plan.
class LaunchLock {
 public:
  explicit LaunchLock(int32_t* busy) : busy_(busy) {
    while (__atomic_exchange_n(busy_, 1, __ATOMIC_ACQUIRE)) sched_yield();
  }
  ~LaunchLock() { __atomic_store_n(busy_, 0, __ATOMIC_RELEASE); }
  LaunchLock(const LaunchLock&) = delete;

 private:
  int32_t* busy_;
};

// Lets the thread make handles and plans, which allocate, while it captures a graph.
class AllowDuringCapture {
#if defined(__CUDACC__)
 public:
  AllowDuringCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~AllowDuringCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
#else
 public:
  AllowDuringCapture() {}
#endif
  AllowDuringCapture(const AllowDuringCapture&) = delete;
};

// Whether a graph records what is launched on the stream. The emulation takes all that runs later
// for it.
inline bool is_captured(void* stream) {
#if defined(__CUDACC__)
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t e = cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status);
  return e != cudaSuccess || status != cudaStreamCaptureStatusNone;
#else
  return emu::late_streams && emu::late_streams->is_later(stream);
#endif
}

constexpr int kMaxLibraryDevices = 16;
// The current device; -1 if there is none that handles are kept for.
inline int32_t library_device() {
  int device = 0;
#if defined(__CUDACC__)
  if (cudaGetDevice(&device) != cudaSuccess) return -1;
#endif
  return device < kMaxLibraryDevices ? device : -1;
}

}  // namespace TT_NS::cuda
