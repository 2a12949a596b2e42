// Functors of exponentials, logarithms, powers and circular functions. The real functions come from cpu/math.h on the host
// and from CUDA's library on the device, the complex ones from functors/complex_math.h.
#pragma once

#include "functors/functor.h"
#if defined(__CUDACC__)
#include "cuda/math.h"
#else
#include "cpu/math.h"
#endif
#include "functors/complex_math.h"

TT_FUNCTORS_BEGIN

struct Exp {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::exp(a); }
};

TT_FUNCTORS_END
