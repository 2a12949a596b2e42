// householder_qr and householder_product, a thread for each matrix.
#include "kernels/functors/linalg/qr.h"

#include "kernels/cpu/linalg/dense.h"

TT_ENTRY_BEGIN

TT_KERNEL(householder_qr)(const void* plan, int64_t begin, int64_t end) noexcept {
  return each_matrix<HouseholderQr>(plan, begin, end);
}
TT_KERNEL(householder_product)(const void* plan, int64_t begin, int64_t end) noexcept {
  return each_matrix<HouseholderProduct>(plan, begin, end);
}

TT_ENTRY_END
