// cholesky and solve_triangular.
#include "kernels/functors/linalg/cholesky.h"

#include "kernels/cuda/linalg/dense.h"
#include "kernels/cuda/linalg/solver.h"

namespace TT_NS::cuda {

int32_t cholesky(const void* plan, void* stream, void* workspace) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  if (cusolver::serves(cusolver::kCholesky, p))
    return cusolver::run(cusolver::kCholesky, p, stream, workspace);
  return launch_matrices<Cholesky>(plan, stream);
}
size_t cholesky_workspace(const void* plan) {
  return cusolver::workspace_bytes(cusolver::kCholesky, *static_cast<const MatrixPlan*>(plan));
}
int32_t solve_triangular(const void* plan, void* stream, void*) {
  return launch_matrices<SolveTriangular>(plan, stream);
}

}  // namespace TT_NS::cuda
