// Elementwise kernels of the device: a functor and an ElementPlan, passed by value, make one
// launch.
#pragma once

#include "plan/elementwise_plan.h"

namespace TT_NS::cuda {

static_assert(sizeof(ElementPlan) <= 4096, "a plan is a kernel parameter");

// Launch on the stream (a cudaStream_t); 0 or a tt_status. workspace is unused. The signature is
// that of a device backend's table (core/backend.h).
int32_t add(const void* plan, void* stream, void* workspace);
int32_t exp(const void* plan, void* stream, void* workspace);

}  // namespace TT_NS::cuda
