// reduce_min.
#include "kernels/cuda/reduce/fold.h"

namespace TT_NS::cuda {

TT_FOLD(reduce_min, kMin)

}  // namespace TT_NS::cuda
