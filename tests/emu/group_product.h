// A product of a warpgroup (kernels/cuda/matmul/wgmma.h) with each layout of its operands, right or
// with a planted fault: the emulation finds them (shim_test.cpp), a device computes the right ones
// (tests/gpu/wgmma_check.cu).
#pragma once

#include <string.h>

#include "kernels/cuda/matmul/wgmma.h"

namespace TT_NS {
namespace {

enum Left { kAlong, kAcross, kRegisters };
enum Fault {
  kNone,
  kUnaligned,
  kOtherOrder,
  kOtherPanels,
  kNoOperandFence,
  kLateFence,
  kNoBarrier,
  kNoRegisterFence,
  kNoCommit,
  kReadsEarly,
  kWritesEarly,
  kNoWait,
  kPlainStores,
  kWarpsDiffer,
};
constexpr int kGroupThreads = 128;
constexpr int kDepth = 64;
constexpr int kPanel = kDepth * 128;  // bytes of 64 rows

template <int n> struct alignas(16) GroupProduct {
  static constexpr int kBytes = kPanel * (1 + n / 64) + 1024;  // of shared memory
  uint16_t a[64 * 64], b[64 * n];
  float want[64 * n];
  int out[kGroupThreads];
};

#if TT_HAS_WGMMA
// Copies rows of 64 halves; pack i of row r to place i ^ r % 8.
__device__ inline void load_panel(char* to, const uint16_t* from, int step, Fault fault) {
  for (int i = int(threadIdx.x); i < 64 * 8; i += kGroupThreads) {
    const int row = i / 8;
    const int place = fault == kOtherOrder ? i % 8 : i % 8 ^ (row & 7);
    char* const at = to + row * 128 + place * 16;
    const uint16_t* const pack = from + row * step + i % 8 * 8;
    if (fault == kPlainStores) memcpy(at, pack, 16);
    else device::copy_async(at, pack, true);
  }
}

#endif

// a[64,64] b[64,n] of f16: a is [64][64], transposed where it is across; b is [n][64], or [64][n]
// across. out[t] is t + 1 if the thread's sums are those of `want`.
template <Left kLeft, bool kRightAcross, int n> __global__ void __launch_bounds__(128)
    multiply_group(GroupProduct<n>* all, [[maybe_unused]] Fault planted) {
#if TT_HAS_WGMMA
#if defined(TT_EMULATED)
  const Fault fault = planted;
#else
  constexpr Fault fault = kNone;
#endif
  const uint16_t* const a = all->a;
  const uint16_t* const b = all->b;
  TT_SHARED_DYNAMIC(char, memory);
  char* const left = fault == kUnaligned ? memory : device::aligned_shared(memory);
  char* const right = left + kPanel;
  load_panel(left, a, 64, kNone);
  for (int panel = 0; panel < n / 64; panel++)
    load_panel(right + panel * kPanel, kRightAcross ? b + panel * 64 : b + panel * 64 * 64,
               kRightAcross ? n : 64, fault);
  device::commit_copies();
  device::wait_for_copies<0>();
  if (fault != kNoOperandFence && fault != kLateFence) device::fence_operands();
  if (fault != kNoBarrier) __syncthreads();
  if (fault == kLateFence) {
    device::fence_operands();
    __syncwarp();  // lets other threads go first, whose fences are late, too
  }
  const int warp = int(threadIdx.x) / 32;
  const int lane = int(threadIdx.x) % 32;
  const int row = 16 * warp + lane / 4;
  float d[n / 2];
  uint32_t fragments[kDepth / 16][4];
  for (int k = 0; k < kDepth / 16; k++)
    for (int r = 0; r < 4; r++)
      memcpy(&fragments[k][r], a + (row + 8 * (r & 1)) * 64 + 16 * k + 8 * (r >> 1) + lane % 4 * 2,
             4);
  device::pin(fragments);
  if (fault != kNoRegisterFence) device::fence_registers();
  for (int k = 0; k < kDepth; k += 16) {
    if (fault == kWarpsDiffer && warp == 3 && k == 48) break;
    const int panel_step = fault == kOtherPanels ? 2 * kPanel : kPanel;
    const uint64_t operand_b = kRightAcross ? device::operand_across(right + k * 128, panel_step)
                                            : device::operand_along(right + k * 2);
    using Product = device::Wgmma<F16, n, kLeft == kAcross, kRightAcross>;
    if constexpr (kLeft == kRegisters) {
      Product::multiply(d, fragments[k / 16], operand_b, k > 0);
    } else {
      const uint64_t operand_a = kLeft == kAcross ? device::operand_across(left + k * 128, kPanel)
                                                  : device::operand_along(left + k * 2);
      Product::multiply(d, operand_a, operand_b, k > 0);
    }
  }
  if (fault != kNoCommit) device::commit_products();
  const float early = d[0];
  if (fault == kWritesEarly) {
    for (int i = int(threadIdx.x); i < kPanel / 4; i += kGroupThreads)
      device::store_operand(right + 4 * i, 0);
    device::fence_operands();
  }
  if (fault != kNoWait) device::wait_for_products<0>();
  device::pin(d);
  if (fault == kReadsEarly) d[0] = early;
  bool is_right = true;
  for (int e = 0; e < n / 2; e++)
    is_right = is_right &&
               d[e] == all->want[(row + 8 * (e >> 1 & 1)) * n + e / 4 * 8 + lane % 4 * 2 + (e & 1)];
  all->out[threadIdx.x] = is_right ? int(threadIdx.x) + 1 : 0;
#else
  all->out[threadIdx.x] = 0;
#endif
}

// Powers of two from 1 to 8 and their product, which is exact in every order.
template <Left kLeft, bool kRightAcross, int n> void fill_product(GroupProduct<n>* p) {
  uint32_t seed = 1;
  const auto next = [&](float* value) {
    seed = seed * 1664525u + 1013904223u;
    const int exponent = int(seed >> 28) % 4;
    *value = float(1 << exponent);
    return uint16_t((15 + exponent) << 10);
  };
  static float left[64][kDepth], right[kDepth][n];
  for (int m = 0; m < 64; m++)
    for (int k = 0; k < kDepth; k++)
      p->a[kLeft == kAcross ? k * 64 + m : m * kDepth + k] = next(&left[m][k]);
  for (int k = 0; k < kDepth; k++)
    for (int j = 0; j < n; j++)
      p->b[kRightAcross ? k * n + j : j * kDepth + k] = next(&right[k][j]);
  for (int m = 0; m < 64; m++) {
    for (int j = 0; j < n; j++) {
      float sum = 0;
      for (int k = 0; k < kDepth; k++) sum += left[m][k] * right[k][j];
      p->want[m * n + j] = sum;
    }
  }
  memset(p->out, 0, sizeof p->out);
}

}  // namespace
}  // namespace TT_NS
