// eigh, a thread for each matrix.
#include "kernels/functors/linalg/eigh.h"

#include "kernels/cpu/linalg/dense.h"

TT_ENTRY_BEGIN

TT_KERNEL(eigh)(const void* plan, int64_t begin, int64_t end) noexcept {
  return each_matrix<Eigh>(plan, begin, end);
}

TT_ENTRY_END
