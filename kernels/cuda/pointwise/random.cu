#include "kernels/cuda/pointwise.h"
#include "kernels/functors/all.h"

namespace TT_NS::cuda {
#include "kernels/functors/gen/random.inc"
}  // namespace TT_NS::cuda
