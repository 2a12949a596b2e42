// ldl_factor and ldl_solve.
#include "kernels/functors/linalg/ldl.h"

#include "kernels/cuda/linalg/dense.h"

namespace TT_NS::cuda {

int32_t ldl_factor(const void* plan, void* stream, void*) {
  return launch_matrices<LdlFactor>(plan, stream);
}
int32_t ldl_solve(const void* plan, void* stream, void*) {
  return launch_matrices<LdlSolve>(plan, stream);
}

}  // namespace TT_NS::cuda
