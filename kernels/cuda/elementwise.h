// Elementwise kernels of the device. A launch runs a functor over an ElementPlan, which is passed
// by value.
#pragma once

#include "plan/elementwise_plan.h"

namespace TT_NS::cuda {

static_assert(sizeof(ElementPlan) <= 4096, "a plan is a kernel parameter");

// Launch on a stream (a cudaStream_t) of the current device; return 0 or a tt_status. workspace is
// unused. A device library makes them entries of its table, whose DeviceKernel (core/backend.h)
// also takes the device.
int32_t add(const void* plan, void* stream, void* workspace);
int32_t exp(const void* plan, void* stream, void* workspace);

}  // namespace TT_NS::cuda
