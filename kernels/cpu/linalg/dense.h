// Entry points over a MatrixPlan, and what they share.
#pragma once

#include "kernels/functors/linalg/team.h"
#include "plan/linalg_plan.h"

TT_ISA_BEGIN

// Calls run(double or c128) for the matrices of a plan.
template <class Run> TT_INLINE int32_t each_matrix(const void* plan, int64_t begin, int64_t end) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  for (int64_t i = begin; i < end; i++) {
    if (p.complex) Run::template run<c128>(Team(), p, i);
    else Run::template run<double>(Team(), p, i);
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(lu_factor)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(lu_solve)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(cholesky)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(solve_triangular)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(householder_qr)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(householder_product)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(eigh)(const void* plan, int64_t begin, int64_t end) noexcept;
// Decomposes a matrix in each lane of a HermitianRoom (lanes.h), whose elements are about 1 or 0.
// Returns the lanes that have converged, as bits.
uint32_t eigh_lanes(double* room, int64_t n, bool complex, bool vectors) noexcept;
TT_KERNEL(eig)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(ldl_factor)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(ldl_solve)(const void* plan, int64_t begin, int64_t end) noexcept;

TT_ENTRY_END
