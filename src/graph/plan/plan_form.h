// What a kernel reads of its plan: how many bytes, and where these are addresses.
#pragma once

#include "base/small_vec.h"
#include "plan/kernel.h"

namespace TT_NS {

// The arrays for up to 64 dimensions are mostly unused: bytes of the plan that its kernel reads.
int64_t used_bytes(const Kernel& k, const void* plan);
// Behind the last plan of a list without unused ends: a kernel may copy a plan whole.
extern const int64_t kPlanSlack;

// Appends the positions of the pointers that the kernel reads in the plan. Returns false if it is a
// kernel for the CPU only, of whose plans nothing is known.
bool find_pointers(const Kernel& k, const void* plan, SmallVec<int32_t, 16>& positions);

}  // namespace TT_NS
