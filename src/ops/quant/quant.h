// Checks shared by the operators of quantisation.
#pragma once

#include "ops/impl.h"

namespace TT_NS::impl {

// Fails unless the integer dtype holds value, as it is: nothing wraps around.
inline void check_held(int64_t value, Dtype dtype, const char* arg) {
  if (dtype == Dtype::kI64) return;
  const bool is_signed = dtype != Dtype::kU8;
  const int64_t count = int64_t(1) << (8 * item_size(dtype));
  const int64_t low = is_signed ? -count / 2 : 0;
  if (value < low || value >= low + count)
    fail_arg(TT_INVALID_ARG, arg, "{} is {}: must be in [{}, {}], the range of {}", arg, value, low,
             low + count - 1, fmt(dtype));
}

}  // namespace TT_NS::impl
