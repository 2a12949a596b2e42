// What kernels with tensor cores need beside mma.sync (device.h):
//   copy_async(to, from, present)       16 bytes to shared memory, zeros if not present: cp.async
//   copy_async_word                     the same with 4 bytes
//   commit_copies, wait_for_copies<n>   groups of copies; waits until at most n are not complete
//   ldmatrix(d, base, offset)           four 8 x 8 matrices of halves; lane 8 m + r points at row r
//                                       of matrix m, and gets of each the two neighbouring elements
//                                       2 (lane % 4) of row lane / 4
//   ldmatrix_transposed                 the same of the transposed matrices
//   fast_exp2                           2^x to 2 ulp; results below 2^-126 are 0
//   load_acquire, store_release         of numbers by which blocks of a launch order what they read
//                                       and write; in between they wait by pause, for blocks that
//                                       run already
//   load_shared                         16 bytes that another block may have written
#pragma once

#include "kernels/cuda/device.h"

#if defined(__CUDACC__)

namespace TT_NS::device {

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return uint32_t(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void copy_async(void* to, const void* from, bool present) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(present ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void copy_async_word(void* to, const void* from, bool present) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(present ? 4 : 0)
               : "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kPending> __device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
__device__ __forceinline__ void ldmatrix(uint32_t (&d)[4], const void* base, int offset) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(shared_address(base) + uint32_t(offset))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_transposed(uint32_t (&d)[4], const void* base,
                                                    int offset) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(shared_address(base) + uint32_t(offset))
               : "memory");
}
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ int32_t load_acquire(const int32_t* p) {
  int32_t x;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
  return x;
}
__device__ __forceinline__ void store_release(int32_t* p, int32_t x) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}
__device__ __forceinline__ void pause() { __nanosleep(100); }
__device__ __forceinline__ uint4 load_shared(const uint4* p) {
  uint4 x;
  asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(p)
               : "memory");
  return x;
}

}  // namespace TT_NS::device

#else
#include "kernels/cuda/emu/async.h"
#endif
