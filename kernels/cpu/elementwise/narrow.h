// What the loops of 8- and 16-bit numbers share.
#pragma once

#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/elementwise/halves.h"

TT_ISA_BEGIN

// a < b, as by elements whose lowest one is `lowest`: the sign bit if they are unsigned.
template <class V> TT_INLINE V less(V a, V b, V lowest) { return V((a ^ lowest) < (b ^ lowest)); }

template <class F> TT_INLINE Floats both(Floats a, Floats b, const F& f) {
  return {f(a.low, b.low), f(a.high, b.high)};
}

TT_ISA_END
