// Pinned memory: memory of the CPU that CUDA devices copy from and to while the host continues. It
// is cached, and reused only after the copies that use it.
#pragma once

#include "core/cuda_device.h"
#include "core/tensor.h"

namespace TT_NS {

struct Ctx;

// Makes an uninitialised, row-major tensor on the CPU, pinned for the device.
TensorRef new_pinned(CudaDevice&, Ints sizes, Dtype dtype);
bool is_pinned(const Storage&) noexcept;

// Copies between pinned memory and a device without waiting, after the work of the current stream.
// `pinned` is the storage of the side that is on the CPU.
void copy_pinned(Ctx&, char* dst, Device to, const char* src, Device from, int64_t bytes,
                 Storage& pinned);

// Frees the cached blocks of a device that is closed.
void end_pinned(CudaDevice&) noexcept;

}  // namespace TT_NS
