// eig, a thread for each matrix.
#include "kernels/functors/linalg/eig.h"

#include "kernels/cpu/linalg/dense.h"

TT_ENTRY_BEGIN

TT_KERNEL(eig)(const void* plan, int64_t begin, int64_t end) noexcept {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  for (int64_t i = begin; i < end; i++) Eig::run<c128>(Team(), p, i);
  return TT_OK;
}

TT_ENTRY_END
