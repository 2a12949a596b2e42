// lu_factor and lu_solve.
#include "kernels/functors/linalg/lu.h"

#include "kernels/cuda/linalg/dense.h"

namespace TT_NS::cuda {

int32_t lu_factor(const void* plan, void* stream, void*) {
  return launch_matrices<LuFactor>(plan, stream);
}
int32_t lu_solve(const void* plan, void* stream, void*) {
  return launch_matrices<LuSolve>(plan, stream);
}

}  // namespace TT_NS::cuda
