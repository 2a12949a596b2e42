// eigh.
#include "kernels/functors/linalg/eigh.h"

#include "kernels/cuda/linalg/dense.h"

namespace TT_NS::cuda {

int32_t eigh(const void* plan, void* stream, void*) { return launch_matrices<Eigh>(plan, stream); }

}  // namespace TT_NS::cuda
