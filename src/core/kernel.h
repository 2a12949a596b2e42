// Kernel: a named piece of device work, with its CPU builds and its index in device backends'
// tables.
#pragma once

#include "base/cpuid.h"
#include "base/platform.h"
#include "tt_types.h"

namespace TT_NS {

// Computes work units [begin, end) of the plan; returns 0 or a tt_status. The plan defines a unit,
// and the result of a unit does not depend on how units are split.
using CpuKernel = int32_t (*)(const void* plan, int64_t begin, int64_t end) noexcept;

// A kernel that returns this has stopped with an error in the ctx's record.
constexpr int32_t kKernelEnded = -1;

struct Kernel {
  CpuKernel cpu[kNumIsa];
  int32_t id;          // index in DeviceBackend::kernels; kNoDevice
  int32_t plan_bytes;  // size of its plan
  const char* name;
  int32_t rng = -1;  // where its plan has an Rng: the seed, then the offset; -1: nowhere
  // Adjusts a plan that was copied from `from` byte by byte where it points into itself. NULL: a
  // plan of this kernel never does.
  void (*rebase)(void* plan, const void* from) noexcept = nullptr;
};
constexpr int32_t kNoDevice = INT32_MAX;  // the id of a kernel for the CPU only

// Item size of a tt_dtype, by code.
constexpr uint8_t kItemSize[16] = {0, 1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 2, 4, 8};

// The dtypes of this build, bit by code (CMake: TT_DTYPES): all of them unless it says less. No
// tensor has another one, so kernels leave out what would compute it.
#ifndef TT_DTYPE_BITS
#define TT_DTYPE_BITS 0xffffu
#endif
TT_INLINE constexpr bool is_built(int32_t dtype) { return TT_DTYPE_BITS >> dtype & 1; }
// Whether a dtype is this one; false at compile time where the build has no such dtype.
TT_INLINE constexpr bool is_dtype(int32_t dtype, int32_t one) {
  return is_built(one) && dtype == one;
}

}  // namespace TT_NS
