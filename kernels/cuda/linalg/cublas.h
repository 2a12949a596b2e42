// LU factors of many matrices, and solutions with them, by the functions of cuBLAS that take all of
// them in one call. cuBLAS is opened by the first such call.
#pragma once

#include "base/platform.h"
#include "plan/linalg_plan.h"

namespace TT_NS::cuda::cublas {

// As matmul/lt.h.
void use_library(const char* path);

// Whether the library is there and the plan has several square matrices, neither small nor large.
bool serves(const MatrixPlan& p);
size_t workspace_bytes(const MatrixPlan& p);  // of either function
int32_t lu_factor(const MatrixPlan& p, void* stream, void* workspace);
int32_t lu_solve(const MatrixPlan& p, void* stream, void* workspace);

}  // namespace TT_NS::cuda::cublas
