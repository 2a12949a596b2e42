// Functors of arithmetic: ring operations, division, signs, and the gradients that are cheaper fused.
#pragma once

#include "functors/functor.h"

TT_FUNCTORS_BEGIN

// Integer arithmetic wraps around.
template <class T> TT_FN T wrap_add(T a, T b) {
  if constexpr (kIsInt<T>) return T(Unsigned<T>(a) + Unsigned<T>(b));
  else return a + b;
}
template <class T> TT_FN T wrap_sub(T a, T b) {
  if constexpr (kIsInt<T>) return T(Unsigned<T>(a) - Unsigned<T>(b));
  else return a - b;
}
template <class T> TT_FN T wrap_mul(T a, T b) {
  if constexpr (kIsInt<T>) return T(Unsigned<T>(a) * Unsigned<T>(b));
  else return a * b;
}

// alpha * b; a missing alpha is 1. A complex alpha with no imaginary part scales both parts, so that 1 is exact.
template <class T> TT_FN T times_alpha(T b, const Param<T>& p) {
  if constexpr (kIsComplex<T>) return !p.has[0] ? b : p.v[0].im == 0 ? b * p.v[0].re : p.v[0] * b;
  else return wrap_mul(p.has[0] ? p.v[0] : T(1), b);
}

struct Add {  // a + alpha * b
  template <class T> static TT_FN T op(T a, T b, const Param<T>& p) { return wrap_add(a, times_alpha(b, p)); }
};
struct Sub {  // a - alpha * b
  template <class T> static TT_FN T op(T a, T b, const Param<T>& p) { return wrap_sub(a, times_alpha(b, p)); }
};
struct Rsub {  // b - alpha * a
  template <class T> static TT_FN T op(T a, T b, const Param<T>& p) { return wrap_sub(b, times_alpha(a, p)); }
};
struct Mul {
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return wrap_mul(a, b); }
};

TT_FUNCTORS_END
