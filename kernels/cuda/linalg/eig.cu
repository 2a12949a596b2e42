// eig, in complex arithmetic.
#include "kernels/functors/linalg/eig.h"

#include "kernels/cuda/linalg/dense.h"

namespace TT_NS::cuda {

int32_t eig(const void* plan, void* stream, void*) {
  return launch_matrices_of<Eig, c128>(plan, stream);
}

}  // namespace TT_NS::cuda
