#include "kernels/cuda/pointwise.h"
#include "kernels/functors/all.h"

namespace TT_NS::cuda {
#include "kernels/functors/gen/bitwise.inc"
}  // namespace TT_NS::cuda
