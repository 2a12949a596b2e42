// eigh.
#include "kernels/functors/linalg/eigh.h"

#include "kernels/cuda/linalg/cusolver.h"
#include "kernels/cuda/linalg/dense.h"

namespace TT_NS::cuda {

int32_t eigh(const void* plan, void* stream, void* workspace) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  if (cusolver::serves(cusolver::kEigh, p))
    return cusolver::run(cusolver::kEigh, p, stream, workspace);
  return launch_matrices<Eigh>(plan, stream);
}
size_t eigh_workspace(const void* plan) {
  return cusolver::workspace_bytes(cusolver::kEigh, *static_cast<const MatrixPlan*>(plan));
}

}  // namespace TT_NS::cuda
