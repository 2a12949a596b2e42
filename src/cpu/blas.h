// OpenBLAS as the second provider of matrix products. Opened by the first product that wants it,
// never before.
#pragma once

#include "plan/matmul_plan.h"

namespace TT_NS {

// True if OpenBLAS is the faster provider of this plan on this instruction set and can be opened.
// One product, no addend, each factor with one unit stride.
bool blas_serves(const MatmulPlan& p, Isa isa) noexcept;
// Row tiles of the product: a CpuKernel. The tiles depend on the shape only.
int64_t blas_units(const MatmulPlan& p) noexcept;
int32_t blas_tiles(const void* plan, int64_t begin, int64_t end) noexcept;
// The core type that OpenBLAS runs, NULL before it is opened.
const char* blas_core() noexcept;

}  // namespace TT_NS
