// Functors that copy and fill. They know T by its size only (compute set all).
#pragma once

#include "kernels/functors/functor.h"

TT_FUNCTORS_BEGIN

struct Copy {  // between any two dtypes: done by run_copy
  template <class T> static TT_FN T op(T a, const Param<T>&) { return a; }
};
struct Fill {  // param 0
  template <class T> static TT_FN T op(const Param<T>& p) { return p.v[0]; }
};

TT_FUNCTORS_END
