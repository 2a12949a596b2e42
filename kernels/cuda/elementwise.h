// Elementwise kernels of the device. A launch runs a functor over an ElementPlan, which is passed
// by value.
#pragma once

#include "plan/elementwise_plan.h"

namespace TT_NS::cuda {

static_assert(sizeof(ElementPlan) <= 4096, "a plan is a kernel parameter");

// Launch on the stream (a cudaStream_t); return 0 or a tt_status. workspace is unused. The
// signature is that of a device backend's table (core/backend.h).
int32_t add(const void* plan, void* stream, void* workspace);
int32_t exp(const void* plan, void* stream, void* workspace);

}  // namespace TT_NS::cuda
