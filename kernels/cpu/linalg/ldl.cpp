// ldl_factor and ldl_solve, a thread for each matrix.
#include "kernels/functors/linalg/ldl.h"

#include "kernels/cpu/linalg/dense.h"

TT_ENTRY_BEGIN

TT_KERNEL(ldl_factor)(const void* plan, int64_t begin, int64_t end) noexcept {
  return each_matrix<LdlFactor>(plan, begin, end);
}
TT_KERNEL(ldl_solve)(const void* plan, int64_t begin, int64_t end) noexcept {
  return each_matrix<LdlSolve>(plan, begin, end);
}

TT_ENTRY_END
