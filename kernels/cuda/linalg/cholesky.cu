// cholesky and solve_triangular.
#include "kernels/functors/linalg/cholesky.h"

#include "kernels/cuda/linalg/dense.h"

namespace TT_NS::cuda {

int32_t cholesky(const void* plan, void* stream, void*) {
  return launch_matrices<Cholesky>(plan, stream);
}
int32_t solve_triangular(const void* plan, void* stream, void*) {
  return launch_matrices<SolveTriangular>(plan, stream);
}

}  // namespace TT_NS::cuda
