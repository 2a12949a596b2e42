// lu_factor and lu_solve, a thread for each matrix.
#include "kernels/functors/linalg/lu.h"

#include "kernels/cpu/linalg/dense.h"

TT_ENTRY_BEGIN

TT_KERNEL(lu_factor)(const void* plan, int64_t begin, int64_t end) noexcept {
  return each_matrix<LuFactor>(plan, begin, end);
}
TT_KERNEL(lu_solve)(const void* plan, int64_t begin, int64_t end) noexcept {
  return each_matrix<LuSolve>(plan, begin, end);
}

TT_ENTRY_END
