// lu_factor and lu_solve.
#include "kernels/functors/linalg/lu.h"

#include "kernels/cuda/linalg/dense.h"
#include "kernels/cuda/linalg/solver.h"

namespace TT_NS::cuda {

int32_t lu_factor(const void* plan, void* stream, void* workspace) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  if (cusolver::serves(cusolver::kLu, p)) return cusolver::run(cusolver::kLu, p, stream, workspace);
  return launch_matrices<LuFactor>(plan, stream);
}
size_t lu_factor_workspace(const void* plan) {
  return cusolver::workspace_bytes(cusolver::kLu, *static_cast<const MatrixPlan*>(plan));
}
int32_t lu_solve(const void* plan, void* stream, void* workspace) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  if (cusolver::serves(cusolver::kLuSolve, p))
    return cusolver::run(cusolver::kLuSolve, p, stream, workspace);
  return launch_matrices<LuSolve>(plan, stream);
}
size_t lu_solve_workspace(const void* plan) {
  return cusolver::workspace_bytes(cusolver::kLuSolve, *static_cast<const MatrixPlan*>(plan));
}

}  // namespace TT_NS::cuda
