// reduce_prod.
#include "kernels/cuda/reduce/fold.h"

namespace TT_NS::cuda {

TT_FOLD(reduce_prod, kProd)

}  // namespace TT_NS::cuda
