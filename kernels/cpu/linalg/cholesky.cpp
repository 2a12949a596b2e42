// cholesky and solve_triangular, a thread for each matrix.
#include "kernels/functors/linalg/cholesky.h"

#include "kernels/cpu/linalg/dense.h"

TT_ENTRY_BEGIN

TT_KERNEL(cholesky)(const void* plan, int64_t begin, int64_t end) noexcept {
  return each_matrix<Cholesky>(plan, begin, end);
}
TT_KERNEL(solve_triangular)(const void* plan, int64_t begin, int64_t end) noexcept {
  return each_matrix<SolveTriangular>(plan, begin, end);
}

TT_ENTRY_END
