// Functors that select by a mask. They know T by its size only (compute set all).
#pragma once

#include "kernels/functors/functor.h"

TT_FUNCTORS_BEGIN

struct Where {
  static constexpr uint32_t kBoolIn = 1u << 1;
  template <class T> static TT_FN T op(bool c, T a, T b, const Param<T>&) { return c ? a : b; }
};
struct MaskedFill {  // a, or param 0 where the mask is set
  static constexpr uint32_t kBoolIn = 1u << 2;
  template <class T> static TT_FN T op(T a, bool mask, const Param<T>& p) {
    return mask ? p.v[0] : a;
  }
};

TT_FUNCTORS_END
