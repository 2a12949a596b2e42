// The epilogue of matmul: alpha, the addend d, the conversion to the stored type.
#pragma once

#include "kernels/cpu/simd/isa.h"
#include "plan/matmul_plan.h"

TT_ISA_BEGIN

// Integer products are not part of builds for microcontrollers.
constexpr bool kIntegerProducts = !TT_MINIMAL;

template <class T> TT_INLINE T scalar_of(const MatmulScalar& s) {
  if constexpr (T(0.5) == T(0)) return T(s.i);
  else return T(s.re);
}

TT_ISA_END

TT_ENTRY_BEGIN
// c(i0 + i, j0 + j) = alpha * sum(i, j) + (first ? beta * d(i0 + i, j0 + j) : c(i0 + i, j0 + j))
// sum: [rows][ld] of the compute type; c, d: the matrices, of p.dtype. first: the sums are those of
// the first block of k; later ones add to c.
void matmul_finish(const MatmulPlan& p, char* c, const char* d, int64_t i0, int64_t j0, int rows,
                   int cols, const void* sum, int64_t ld, bool first) noexcept;
TT_ENTRY_END
