// Functors of random operators: they apply a mask that was drawn before.
#pragma once

#include "kernels/functors/functor.h"

TT_FUNCTORS_BEGIN

struct MaskScale {  // param 0: factor where the mask is set, else 0
  static constexpr uint32_t kBoolIn = 1u << 2;
  template <class T> static TT_FN T op(T a, bool mask, const Param<T>& p) {
    return a * (mask ? p.v[0] : T{});
  }
};

TT_FUNCTORS_END
