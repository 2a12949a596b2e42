// CudaCalls: what code that every program links calls of core/cuda_device.h and its neighbours. A
// static program that names no device links none of them.
#pragma once

#include "core/cuda_device.h"

namespace TT_NS {

struct DeviceCheck;

struct CudaCalls {
  // core/cuda_device.h
  CudaDevice& (*open)(Runtime*, int32_t index, const char* arg);
  void (*close)(CudaDevice*) noexcept;
  DeviceStream& (*side_stream)(CudaDevice&);
  DeviceBlock* (*block)(CudaDevice&, int64_t bytes) noexcept;
  void (*copy)(Ctx&, char* dst, Device to, const char* src, Device from, int64_t bytes);
  void (*wait_for_writer)(DeviceStream&, const Storage&);
  void (*mark_used)(DeviceStream&, Storage&, bool written) noexcept;
  void (*fail)(CudaDevice&, int32_t status, const char* what);
  void (*fail_memory)(CudaDevice&, int64_t bytes);
  void (*fail_unusable)(CudaDevice&);
  // core/device_alloc.h
  void (*put)(DeviceBlock*, uint32_t users) noexcept;
  // core/pinned.h
  bool (*is_pinned)(const Storage&) noexcept;
  void (*copy_pinned)(Ctx&, char* dst, Device to, const char* src, Device from, int64_t bytes,
                      Storage& pinned);
  // core/device_checks.h
  DeviceChecks* (*checks)(CudaDevice&);
  int64_t* (*place)(DeviceChecks&, CudaDevice&);
  void (*start)(DeviceChecks&, CudaDevice&, int64_t* place, DeviceCheck&&) noexcept;
};

// Set with the first runtime or ctx of a program that links kCudaCalls, which libtt.so always does;
// NULL: the program has no CUDA.
extern const CudaCalls* cuda_calls;
extern const CudaCalls kCudaCalls;

}  // namespace TT_NS
