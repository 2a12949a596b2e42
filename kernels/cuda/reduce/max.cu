// reduce_max.
#include "kernels/cuda/reduce/fold.h"

namespace TT_NS::cuda {

TT_FOLD(reduce_max, kMax)

}  // namespace TT_NS::cuda
