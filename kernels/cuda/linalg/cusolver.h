// Decompositions of large matrices by cuSOLVER, which is opened by the first one. A block of the
// own kernels uses one multiprocessor, which is enough for many matrices, not for a large one; for
// Cholesky factors of many, the library has a function of its own.
#pragma once

#include "base/platform.h"
#include "plan/linalg_plan.h"

namespace TT_NS::cuda::cusolver {

enum Task : int32_t { kCholesky, kLu, kLuSolve, kQr, kProduct, kEigh };

// As matmul/lt.h.
void use_library(const char* path);

// Whether the library is there and the matrices are large, and few or of such a function.
bool serves(Task task, const MatrixPlan& p);
size_t workspace_bytes(Task task, const MatrixPlan& p);
int32_t run(Task task, const MatrixPlan& p, void* stream, void* workspace);

}  // namespace TT_NS::cuda::cusolver
