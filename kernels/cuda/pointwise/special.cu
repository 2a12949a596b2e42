#define TT_STRIDED_GROUPS 0

#include "kernels/cuda/pointwise.h"
#include "kernels/functors/all.h"

namespace TT_NS::cuda {
#include "kernels/functors/gen/special.inc"
}  // namespace TT_NS::cuda
