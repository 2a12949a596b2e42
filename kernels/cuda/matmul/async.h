// What kernels with tensor cores need beside mma.sync (device.h):
//   copy_async(to, from, present)       16 bytes to shared memory, zeros if not present: cp.async
//   copy_async_word                     the same with 4 bytes
//   commit_copies, wait_for_copies<n>   groups of copies; waits until at most n are not complete
//   ldmatrix(d, base, offset)           four 8 x 8 matrices of halves; lane 8 m + r points at row r
//                                       of matrix m, and gets of each the two neighbouring elements
//                                       2 (lane % 4) of row lane / 4
//   ldmatrix_transposed                 the same of the transposed matrices
//   fast_exp2                           2^x to 2 ulp; results below 2^-126 are 0
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

}  // namespace TT_NS::device

#else
#include "kernels/cuda/emu/async.h"
#endif
