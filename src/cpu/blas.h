// OpenBLAS as the second provider of matmul, opened by the first matmul that needs it.
#pragma once

#include "base/os.h"
#include "plan/matmul_plan.h"

namespace TT_NS {

// Returns true if OpenBLAS is the faster provider of this plan on this instruction set and can be
// opened: a single matmul without addend whose factors each have a unit stride.
bool blas_serves(const MatmulPlan& p, Isa isa) noexcept;
// Computes row tiles of c: a CpuKernel. The tiles depend on the shape only.
int64_t blas_units(const MatmulPlan& p) noexcept;
int32_t blas_tiles(const void* plan, int64_t begin, int64_t end) noexcept;
// Returns a function of the library, which is opened first; NULL: there is none.
void* blas_symbol(const char* name) noexcept;
// Held during each call: the serial build shares one buffer between concurrent calls.
Mutex& blas_calls() noexcept;
// Returns the core type that OpenBLAS detected, NULL before it is opened.
const char* blas_core() noexcept;

}  // namespace TT_NS
