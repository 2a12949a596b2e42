// reduce_sum, also of means.
#include "kernels/cuda/reduce/fold.h"

namespace TT_NS::cuda {

TT_FOLD(reduce_sum, kSum)

}  // namespace TT_NS::cuda
