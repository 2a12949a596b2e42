// Functors of one operand beside those of functors/math.h: further exponentials, logarithms,
// circular functions, the error function, rounding, and tests for nan and infinity.
#pragma once

#include "kernels/functors/math.h"

TT_FUNCTORS_BEGIN

// A functor that is one function of namespace math; kVector: in double, SLEEF's.
#define TT_UNARY(functor, function)                                                          \
  struct functor {                                                                           \
    static constexpr VectorId kVector = kVector##functor;                                    \
    template <class T> static TT_FN T op(T a, const Param<T>&) { return math::function(a); } \
  };
TT_UNARY(Expm1, expm1)
TT_UNARY(Log2, log2)
TT_UNARY(Log10, log10)
TT_UNARY(Log1p, log1p)
TT_UNARY(Asin, asin)
TT_UNARY(Acos, acos)
TT_UNARY(Atan, atan)
TT_UNARY(Sinh, sinh)
TT_UNARY(Cosh, cosh)
TT_UNARY(Erf, erf)
#undef TT_UNARY
struct Exp2 {
  static constexpr VectorId kVector = kVectorExp2;
  template <class V> static TT_FN V lanes(V a) { return math::exp2(a); }
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::exp2(a); }
};
struct Erfc {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::erfc(a); }
};

struct Tan {
  static constexpr VectorId kVector = kVectorTan;
  template <class T> static TT_FN bool is_hard(T a) { return math::is_hard_angle(a); }
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::tan(a); }
  template <class T> static TT_FN T op_hard(T a) { return math::tan_hard(a); }
};

struct Sgn {  // a / |a|, and 0 for 0
  template <class T> static TT_FN T op(T a, const Param<T>& p) {
    if constexpr (kIsComplex<T>) {
      const Real<T> m = math::hypot(a.re, a.im);
      return m == 0 ? T{0, 0} : T{a.re / m, a.im / m};
    } else {
      return Sign::op(a, p);
    }
  }
};

// ---- rounding: integers stay ----

struct Floor {
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    if constexpr (kIsInt<T>) return a;
    else return math::floor(a);
  }
};
struct Ceil {
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    if constexpr (kIsInt<T>) return a;
    else return math::ceil(a);
  }
};
struct Trunc {
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    if constexpr (kIsInt<T>) return a;
    else return math::trunc(a);
  }
};
struct RoundEven {
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    if constexpr (kIsInt<T>) return a;
    else return math::rint(a);
  }
};
struct RoundUp {  // tens, hundreds … (param 0 is 10, 100 …)
  template <class T> static TT_FN T op(T a, const Param<T>& p) {
    return math::rint(a / p.v[0]) * p.v[0];
  }
};
struct RoundDecimals {  // tenths, hundredths … (param 0 is 10, 100 …)
  template <class T> static TT_FN T op(T a, const Param<T>& p) {
    return math::rint(a * p.v[0]) / p.v[0];
  }
};

// ---- tests ----

template <class T> TT_FN bool is_infinite(T a) {
  if constexpr (kIsInt<T>) return false;
  else return math::fabs(a) == kHighest<T>;
}
template <class T> TT_FN bool is_finite(T a) {
  if constexpr (kIsInt<T>) return true;
  else return math::fabs(a) < kHighest<T>;
}
struct Isinf {
  template <class T> static TT_FN bool op(T a, const Param<T>&) {
    if constexpr (kIsComplex<T>) return is_infinite(a.re) || is_infinite(a.im);
    else return is_infinite(a);
  }
};
struct Isfinite {
  template <class T> static TT_FN bool op(T a, const Param<T>&) {
    if constexpr (kIsComplex<T>) return is_finite(a.re) && is_finite(a.im);
    else return is_finite(a);
  }
};

TT_FUNCTORS_END
