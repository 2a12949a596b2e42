#include "kernels/cpu/simd/isa.h"

#include "kernels/cpu/reduce/extreme.h"

TT_ENTRY_BEGIN

float max_block(const float* x, int64_t n, uint64_t flip) noexcept {
  const float start = kLowest<float>;
  return flip ? -extreme<false, true>(x, n, -start) : extreme<true, true>(x, n, start);
}
double max_block(const double* x, int64_t n, uint64_t flip) noexcept {
  return fold_block<Max<double>, kBlockLanes>(x, n, flip);
}
int32_t max_block(const int32_t* x, int64_t n, uint64_t flip) noexcept {
  return fold_block<Max<int32_t>, kBlockLanes>(x, n, flip);
}
int64_t max_block(const int64_t* x, int64_t n, uint64_t flip) noexcept {
  return fold_block<Max<int64_t>, kBlockLanes>(x, n, flip);
}

TT_ENTRY_END
