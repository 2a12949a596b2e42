// The language of device kernels. Under nvcc it is CUDA C++; under g++ with TT_EMULATED it is the
// emulation in kernels/cuda/emu, which runs each thread of a block as a fiber. Kernels use
// threadIdx, blockIdx, blockDim, gridDim, __syncthreads, warp shuffles and votes, atomics, and
//   TT_SHARED(T, name, n)         T name[n], shared by the block
//   TT_SHARED_DYNAMIC(T, name)    T* name: the bytes given to launch
//   launch(kernel, grid, block, shared_bytes, stream, arguments…)  for <<<>>>; 0 or TT_DEVICE
//   launch_early(kernel, grid, block, stream, arguments…)  for kernels that begin with
//   wait_for_previous()           and so may start while the launch before ends
//   mma_bf16, mma_f16             mma.sync.m16n8k16
// and nothing else of CUDA: no CUB, no cooperative groups, no cudart calls.
#pragma once

#include "base/platform.h"
#include "tt_types.h"

namespace TT_NS::device {

// A kernel has 48 kB of shared memory, its own arrays included, unless a launch asks for more. Own
// arrays beside dynamic memory are small: only dynamic memory of more than this is asked for.
constexpr size_t kUsualShared = 32 * 1024;
// Then always so much: threads may launch one kernel at once, and what is asked for holds for all.
constexpr size_t kAskedShared = 92 * 1024;

}  // namespace TT_NS::device

#if defined(__CUDACC__)

#include <cuda_runtime_api.h>

#define TT_SHARED(T, name, n) __shared__ T name[n]
#define TT_SHARED_DYNAMIC(T, name)                            \
  extern __shared__ __align__(16) unsigned char tt_dynamic[]; \
  T* const name = reinterpret_cast<T*>(tt_dynamic)

namespace TT_NS::device {

// Asks for `bytes` of dynamic shared memory for a kernel. Returns whether it may have them.
inline bool may_share(const void* entry, size_t bytes) {
  if (bytes <= kUsualShared) return true;
  const size_t asked = bytes > kAskedShared ? bytes : kAskedShared;
  return cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize, int(asked)) ==
         cudaSuccess;
}
// launch, given the addresses of the arguments: not a template, since kernels are thousands.
TT_NOINLINE inline int32_t launch_entry(const void* entry, dim3 grid, dim3 block,
                                        size_t shared_bytes, void* stream, void** arguments) {
  if (!may_share(entry, shared_bytes)) return TT_DEVICE;
  const cudaError_t status = cudaLaunchKernel(entry, grid, block, arguments, shared_bytes,
                                              static_cast<cudaStream_t>(stream));
  return status == cudaSuccess ? TT_OK : TT_DEVICE;
}
template <class... P, class... A> int32_t launch(void (*kernel)(P...), dim3 grid, dim3 block,
                                                 size_t shared_bytes, void* stream, A&&... a) {
  const auto start = [&](const P&... p) {
    void* arguments[] = {const_cast<P*>(&p)..., nullptr};
    return launch_entry(reinterpret_cast<const void*>(kernel), grid, block, shared_bytes, stream,
                        arguments);
  };
  return start(static_cast<const P&>(a)...);
}

// The first statement of a kernel that launch_early launches: its blocks may start while the kernel
// before it in the stream ends, and go on when that is over and its results are in memory.
__device__ __forceinline__ void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Whether kernels are compiled for devices with that instruction, and all devices are such.
inline bool can_wait_for_previous(const void* entry) {
  enum State : int32_t { kUnknown, kNo, kYes };
  static int32_t known;
  int32_t state = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (state != kUnknown) return state == kYes;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  cudaFuncAttributes kernel;
  int devices = 0, driver = 0;
  bool yes = cudaFuncGetAttributes(&kernel, entry) == cudaSuccess && kernel.ptxVersion >= 90 &&
             cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12030 &&  // for graphs
             cudaGetDeviceCount(&devices) == cudaSuccess;
  for (int d = 0; yes && d < devices; d++) {
    int major = 0;
    yes = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, d) == cudaSuccess &&
          major == kernel.binaryVersion / 10;
  }
  if (!yes) cudaGetLastError();
  cudaThreadExchangeStreamCaptureMode(&mode);
  __atomic_store_n(&known, yes ? kYes : kNo, __ATOMIC_RELAXED);
  return yes;
}
// launch_early, given the addresses of the arguments.
TT_NOINLINE inline int32_t launch_entry_early(const void* entry, dim3 grid, dim3 block,
                                              size_t shared_bytes, void* stream, void** arguments) {
  if (!may_share(entry, shared_bytes)) return TT_DEVICE;
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
  const cudaError_t status = cudaLaunchKernelExC(&config, entry, arguments);
  return status == cudaSuccess ? TT_OK : TT_DEVICE;
}
// As launch. It takes the host less time, too.
template <class... P, class... A> int32_t launch_early_with(void (*kernel)(P...), dim3 grid,
                                                            dim3 block, size_t shared_bytes,
                                                            void* stream, A&&... a) {
  const auto start = [&](const P&... p) {
    void* arguments[] = {const_cast<P*>(&p)..., nullptr};
    return launch_entry_early(reinterpret_cast<const void*>(kernel), grid, block, shared_bytes,
                              stream, arguments);
  };
  return start(static_cast<const P&>(a)...);
}
// Without dynamic shared memory.
template <class... P, class... A>
int32_t launch_early(void (*kernel)(P...), dim3 grid, dim3 block, void* stream, A&&... a) {
  return launch_early_with(kernel, grid, block, 0, stream, static_cast<A&&>(a)...);
}

// d[16,8] += a[16,16] b[16,8]; the fragments are those of PTX's mma.sync.m16n8k16.
__device__ __forceinline__ void mma_bf16(float (&d)[4], const uint32_t (&a)[4],
                                         const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void mma_f16(float (&d)[4], const uint32_t (&a)[4],
                                        const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace TT_NS::device

#elif defined(TT_EMULATED)
#include "kernels/cuda/emu/emu.h"
#else
#error "device kernels are compiled by nvcc, or with TT_EMULATED by g++"
#endif
