// The rows of a device's table that have a kernel here (rows.inc). A row launches on a stream (a
// cudaStream_t) of the current device and returns 0 or a tt_status; the plan may change once it has
// returned. A device library makes them entries of its DeviceBackend (core/backend.h).
#pragma once

#include "base/platform.h"

namespace TT_NS::cuda {

#define TT_CUDA_ROW(name) int32_t name(const void* plan, void* stream, void* workspace);
#define TT_CUDA_ROW_WORKSPACE(name) \
  TT_CUDA_ROW(name)                 \
  size_t name##_workspace(const void* plan);  // bytes at `workspace`
#include "kernels/cuda/rows.inc"
#undef TT_CUDA_ROW
#undef TT_CUDA_ROW_WORKSPACE

}  // namespace TT_NS::cuda
