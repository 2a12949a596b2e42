// householder_qr and householder_product.
#include "kernels/functors/linalg/qr.h"

#include "kernels/cuda/linalg/cusolver.h"
#include "kernels/cuda/linalg/dense.h"

namespace TT_NS::cuda {

int32_t householder_qr(const void* plan, void* stream, void* workspace) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  if (cusolver::serves(cusolver::kQr, p)) return cusolver::run(cusolver::kQr, p, stream, workspace);
  return launch_matrices<HouseholderQr>(plan, stream);
}
size_t householder_qr_workspace(const void* plan) {
  return cusolver::workspace_bytes(cusolver::kQr, *static_cast<const MatrixPlan*>(plan));
}
int32_t householder_product(const void* plan, void* stream, void* workspace) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  if (cusolver::serves(cusolver::kProduct, p))
    return cusolver::run(cusolver::kProduct, p, stream, workspace);
  return launch_matrices<HouseholderProduct>(plan, stream);
}
size_t householder_product_workspace(const void* plan) {
  return cusolver::workspace_bytes(cusolver::kProduct, *static_cast<const MatrixPlan*>(plan));
}

}  // namespace TT_NS::cuda
