// Products of small contiguous tiles, for kernels that hold them in their workspace.
#pragma once

#include "kernels/cpu/simd/isa.h"
#include "plan/matmul_plan.h"

TT_ENTRY_BEGIN
int32_t matmul_small(const void* plan, int64_t begin, int64_t end) noexcept;
TT_ENTRY_END

TT_ISA_BEGIN

// c (m, n) = a (m, k) b (k, n), or += if add. Rows of b and c are pitch elements apart; a_row and
// a_col are strides in elements.
template <class T> TT_INLINE void multiply_small(T* c, const T* a, int64_t a_row, int64_t a_col,
                                                 const T* b, int64_t m, int64_t n, int64_t k,
                                                 bool add, int64_t pitch) {
  MatmulPlan p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a = reinterpret_cast<const char*>(a);
  p.b = reinterpret_cast<const char*>(b);
  p.c = reinterpret_cast<char*>(c);
  p.d = add ? p.c : nullptr;
  p.a_row = a_row;
  p.a_col = a_col;
  p.b_row = pitch;
  p.b_col = 1;
  p.c_row = p.d_row = pitch;
  p.c_col = p.d_col = 1;
  p.dtype = sizeof(T) == 8 ? TT_F64 : TT_F32;
  p.path = kMatmulSmall;
  p.scaled = false;
  p.n_batch = 0;
  p.batch = 1;
  p.alpha = p.beta = {1, 0, 1};
  p.workspace = nullptr;
  p.n_units = matmul_ceil(n, kMatmulSmallCols);
  matmul_small(&p, 0, p.n_units);
}

TT_ISA_END
