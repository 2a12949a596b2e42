// What a kernel reads of its plan: how many bytes, and where these are addresses.
#pragma once

#include "base/small_vec.h"
#include "plan/kernel.h"

namespace TT_NS {

// The bytes of a plan that its kernel reads: arrays for 64 dimensions have mostly unused ends.
int64_t used_bytes(const Kernel& k, const void* plan);
// Bytes behind the last of plans that are kept without these ends: a kernel may copy a whole plan.
extern const int64_t kPlanSlack;

// Appends the positions of the pointers that the kernel reads in the plan. Returns false if it is a
// kernel for the CPU only, of whose plans nothing is known.
bool find_pointers(const Kernel& k, const void* plan, SmallVec<int32_t, 16>& positions);

}  // namespace TT_NS
