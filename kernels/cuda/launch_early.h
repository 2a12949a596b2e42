// launch_early_with(kernel, grid, block, shared_bytes, stream, arguments…): launch_early for
// kernels with dynamic shared memory, at most kAskedShared.
#pragma once

#include "kernels/cuda/device.h"

namespace TT_NS::device {

#if defined(__CUDACC__)

template <class... P, class... A> int32_t launch_early_with(void (*kernel)(P...), dim3 grid,
                                                            dim3 block, size_t shared_bytes,
                                                            void* stream, A&&... a) {
  const void* entry = reinterpret_cast<const void*>(kernel);
  if (shared_bytes > kUsualShared &&
      cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize, int(kAskedShared)) !=
          cudaSuccess)
    return TT_DEVICE;
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &overlap;
  config.numAttrs = can_wait_for_previous(entry);
  const auto start = [&](P... p) {
    void* arguments[] = {static_cast<void*>(&p)..., nullptr};
    return cudaLaunchKernelExC(&config, entry, arguments);
  };
  return start(static_cast<P>(a)...) == cudaSuccess ? TT_OK : TT_DEVICE;
}

#else

template <class... P, class... A> int32_t launch_early_with(void (*kernel)(P...), dim3 grid,
                                                            dim3 block, size_t shared_bytes,
                                                            void* stream, A&&... a) {
  return launch_as(true, kernel, grid, block, shared_bytes, stream, static_cast<A&&>(a)...);
}

#endif

}  // namespace TT_NS::device
