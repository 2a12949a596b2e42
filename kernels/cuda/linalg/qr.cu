// householder_qr and householder_product.
#include "kernels/functors/linalg/qr.h"

#include "kernels/cuda/linalg/dense.h"

namespace TT_NS::cuda {

int32_t householder_qr(const void* plan, void* stream, void*) {
  return launch_matrices<HouseholderQr>(plan, stream);
}
int32_t householder_product(const void* plan, void* stream, void*) {
  return launch_matrices<HouseholderProduct>(plan, stream);
}

}  // namespace TT_NS::cuda
