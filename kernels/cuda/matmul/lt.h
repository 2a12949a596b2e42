// Products by cuBLASLt, which is opened by the first product that it can serve. Descriptors and the
// algorithm are kept by geometry. Products of f32 are computed in f32, or in TF32 where the plan
// allows it; no sum is split by atomics, so that results are the same in every run.
#pragma once

#include "base/platform.h"
#include "plan/matmul_plan.h"

namespace TT_NS::cuda::cublas_lt {

constexpr int64_t kWorkspaceBytes = 32 << 20;

// Which library serves: NULL means none (the own kernels), "" the system's. The default is "" on
// devices, NULL in the emulation.
void use_library(const char* path);

// Whether the library is there and can compute the product.
bool serves(const MatmulPlan& p);
// Returns TT_OK, or TT_NOT_IMPLEMENTED if the library has no algorithm: then nothing was launched.
int32_t run(const MatmulPlan& p, void* stream, void* workspace);

}  // namespace TT_NS::cuda::cublas_lt
