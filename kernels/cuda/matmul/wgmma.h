// Products of halves by the tensor cores of sm_90a, which a warpgroup (four warps, the first one a
// multiple of 4) starts together. They read their right operand, and mostly their left one, from
// shared memory:
//   aligned_shared(p)             the first place of dynamic shared memory from p on at which an
//                                 operand may begin: it has up to 1,008 bytes before it
//   operand_along(p)              an operand of rows along k: 16 k of row i, m or n, in row i
//   operand_across(p, panel)      an operand of rows across k: 16 rows of m or n; panels of 64
//                                 columns follow each other by `panel` bytes
//   Wgmma<S, n, ax, bx>::multiply(d, a, b, adds)   d[64,n] (+)= a[64,16] b[16,n], n 64 or 128; a is
//                                 an operand or four registers of each thread, of which warp w has
//                                 rows 16 w … as those of mma.sync; d[4 j + r] is row
//                                 16 w + lane / 4 + 8 (r / 2), column 8 j + 2 (lane % 4) + r % 2.
//                                 ax, bx: the operand is `across`. Not adds: d is overwritten.
//   fence_registers()             before the first product of a group
//   commit_products()             ends a group
//   wait_for_products<n>()        until at most n groups are not complete: before that nobody reads
//                                 d, nor writes what the products read
//   pin(x)                        of an array of numbers: the compiler moves nothing that writes x
//                                 or reads it across. Before fence_registers for sums and left
//                                 operands that were computed, after a wait for sums that it ends
//   fence_operands()              what the thread wrote to shared memory, or waited for, is seen by
//                                 the products that begin after the next barrier
//   store_operand(p, word)        writes a word that products read
// An operand is in panels of rows of 64 halves, 128 bytes, from a multiple of 1,024 bytes on. Pack
// i of 16 bytes of row r is at place i ^ (r % 8). Row 8 r or pack 2 i begins an operand, too.
#pragma once

#include "kernels/cuda/matmul/async.h"

namespace TT_NS::device {

constexpr int kPanelBytes = 128;  // of a row
constexpr int kOperandAlignment = 1024;

}  // namespace TT_NS::device

#if defined(__CUDACC__)

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TT_HAS_WGMMA 1
#else
#define TT_HAS_WGMMA 0
#endif

#include "kernels/cuda/convert.h"

namespace TT_NS::device {

// Whether the device runs machine code of sm_90a: kernels of products are empty for all others, and
// have few registers.
inline bool has_wgmma(const void* entry) {
  cudaFuncAttributes kernel;
  if (cudaFuncGetAttributes(&kernel, entry) == cudaSuccess) return kernel.numRegs > 64;
  cudaGetLastError();
  return false;
}

#if TT_HAS_WGMMA

__device__ __forceinline__ char* aligned_shared(char* p) {
  return p + (-shared_address(p) & (kOperandAlignment - 1));
}
// Bits 0-13: the address; 16-29: from panel to panel; 32-45: from 8 rows to the next; all in units
// of 16 bytes. 62-63: the order of packs in rows of 128 bytes.
__device__ __forceinline__ uint64_t operand(const void* p, int panel) {
  return uint64_t(1) << 62 | uint64_t(8 * kPanelBytes / 16) << 32 | uint64_t(panel / 16) << 16 |
         (shared_address(p) & 0x3ffff) >> 4;
}
__device__ __forceinline__ uint64_t operand_along(const void* p) { return operand(p, 16); }
__device__ __forceinline__ uint64_t operand_across(const void* p, int panel) {
  return operand(p, panel);
}
__device__ __forceinline__ void fence_registers() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending> __device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
template <int n> __device__ __forceinline__ void pin(float (&x)[n]) {
#pragma unroll
  for (int i = 0; i < n; i++) asm volatile("" : "+f"(x[i])::"memory");
}
template <int n> __device__ __forceinline__ void pin(uint32_t (&x)[n][4]) {
#pragma unroll
  for (int i = 0; i < 4 * n; i++) asm volatile("" : "+r"(x[i / 4][i % 4])::"memory");
}
__device__ __forceinline__ void fence_operands() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void store_operand(void* p, uint32_t word) {
  *static_cast<uint32_t*>(p) = word;
}

template <class S, int kColumns, bool kLeftAcross, bool kRightAcross> struct Wgmma;

// clang-format off
#define TT_SUMS_64 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, " \
  "%8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31}, "
#define TT_SUMS_128 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, " \
  "%8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, " \
  "%40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, " \
  "%56, %57, %58, %59, %60, %61, %62, %63}, "
#define TT_SUM_REGISTERS_64 \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), \
  "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
  "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), \
  "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
  "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), \
  "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
  "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), \
  "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define TT_SUM_REGISTERS_128 \
  TT_SUM_REGISTERS_64, \
  "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), \
  "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), \
  "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), \
  "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
  "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), \
  "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
  "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), \
  "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
// clang-format on
#define TT_WGMMA(S, type, n, left, both, add, left4, both4, add4)                                  \
  template <bool kLeftAcross, bool kRightAcross> struct Wgmma<S, n, kLeftAcross, kRightAcross> {   \
    __device__ __forceinline__ static void multiply(float (&d)[n / 2], uint64_t a, uint64_t b,     \
                                                    bool adds) {                                   \
      asm volatile("{.reg .pred p; setp.ne.b32 p, " add                                            \
                   ", 0; wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type            \
                   " " TT_SUMS_##n left ", p, 1, 1, " both ";}"                                    \
                   : TT_SUM_REGISTERS_##n                                                          \
                   : "l"(a), "l"(b), "r"(int(adds)), "n"(int(kLeftAcross)), "n"(int(kRightAcross)) \
                   : "memory");                                                                    \
    }                                                                                              \
    __device__ __forceinline__ static void multiply(float (&d)[n / 2], const uint32_t (&a)[4],     \
                                                    uint64_t b, bool adds) {                       \
      static_assert(!kLeftAcross);                                                                 \
      asm volatile("{.reg .pred p; setp.ne.b32 p, " add4                                           \
                   ", 0; wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type            \
                   " " TT_SUMS_##n left4 ", p, 1, 1, " both4 ";}"                                  \
                   : TT_SUM_REGISTERS_##n                                                          \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(adds)),           \
                     "n"(int(kRightAcross))                                                        \
                   : "memory");                                                                    \
    }                                                                                              \
  };
TT_WGMMA(F16, "f16", 64, "%32, %33", "%35, %36", "%34", "{%32,%33,%34,%35}, %36", "%38", "%37")
TT_WGMMA(F16, "f16", 128, "%64, %65", "%67, %68", "%66", "{%64,%65,%66,%67}, %68", "%70", "%69")
TT_WGMMA(BF16, "bf16", 64, "%32, %33", "%35, %36", "%34", "{%32,%33,%34,%35}, %36", "%38", "%37")
TT_WGMMA(BF16, "bf16", 128, "%64, %65", "%67, %68", "%66", "{%64,%65,%66,%67}, %68", "%70", "%69")
#undef TT_WGMMA
#undef TT_SUMS_64
#undef TT_SUMS_128
#undef TT_SUM_REGISTERS_64
#undef TT_SUM_REGISTERS_128

#endif
}  // namespace TT_NS::device

#else
#include "kernels/cuda/emu/wgmma.h"
#endif
