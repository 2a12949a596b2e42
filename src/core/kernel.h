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

struct Kernel {
  CpuKernel cpu[kNumIsa];
  int32_t id;  // index in DeviceBackend::kernels
  const char* name;
};

// Item size of a tt_dtype, by code.
constexpr uint8_t kItemSize[16] = {0, 1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 0, 0, 0};

}  // namespace TT_NS
