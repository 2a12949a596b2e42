// Functors on the parts of complex numbers. The numbers themselves: functors/complex_number.h.
#pragma once

#include "kernels/functors/functor.h"

TT_FUNCTORS_BEGIN

struct Conj {
  using OfReals = Identity;
  template <class T> static TT_FN T op(T a, const Param<T>&) { return {a.re, -a.im}; }
};

struct AngleOfReal {  // 0 or pi; nan stays nan
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    const T angle = a < T(0) ? T(3.141592653589793) : T(0);
    return a == a ? angle : a;
  }
};

TT_FUNCTORS_END
