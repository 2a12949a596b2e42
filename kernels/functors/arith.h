// Functors of arithmetic: ring operations, division, signs, extremes.
#pragma once

#include "kernels/functors/functor.h"
#if defined(__CUDACC__)
#include "kernels/cuda/math.h"
#else
#include "kernels/cpu/math/math.h"
#endif

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

// Param 0 is alpha, 1 if absent. A complex alpha with no imaginary part scales both parts, so that
// 1 is exact.
struct Scaled {
  template <class T> static TT_FN void prepare(Param<T>& p) {
    if (p.has[0]) return;
    if constexpr (kIsComplex<T>) p.v[0] = {1, 0};
    else p.v[0] = T(1);
  }
  template <class T> static TT_FN T times_alpha(T b, const Param<T>& p) {
    if constexpr (kIsComplex<T>) return p.v[0].im == 0 ? b * p.v[0].re : p.v[0] * b;
    else return wrap_mul(p.v[0], b);
  }
};

struct Add : Scaled {  // a + alpha * b
  template <class T> static TT_FN T op(T a, T b, const Param<T>& p) {
    return wrap_add(a, times_alpha(b, p));
  }
};
struct Sub : Scaled {  // a - alpha * b
  template <class T> static TT_FN T op(T a, T b, const Param<T>& p) {
    return wrap_sub(a, times_alpha(b, p));
  }
};
struct RSub : Scaled {  // b - alpha * a
  template <class T> static TT_FN T op(T a, T b, const Param<T>& p) {
    return wrap_sub(b, times_alpha(a, p));
  }
};
struct Mul {
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return wrap_mul(a, b); }
};
struct Square {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return wrap_mul(a, a); }
};

struct Div {  // true division: floating types
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return a / b; }
};

// Integer division: by zero it is 0, by -1 it is negation, which wraps. The divisor handed to the
// processor never traps.
template <class T> TT_FN T divide_trunc(T a, T b) {
  const bool special = b == 0 || b == -1;
  const T q = T(a / (special ? T(1) : b));
  return b == 0 ? T(0) : b == -1 ? wrap_sub(T(0), a) : q;
}

struct DivTrunc {
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    if constexpr (kIsInt<T>) return divide_trunc(a, b);
    else return math::trunc(a / b);
  }
};

// Floats as Python's //: the quotient that fits the sign-corrected remainder, so that it is exact
// near integers.
struct DivFloor {
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    if constexpr (kIsInt<T>) {
      const T q = divide_trunc(a, b);
      const T rest = wrap_sub(a, wrap_mul(q, b));
      return b != 0 && rest != 0 && (rest < 0) != (b < 0) ? wrap_sub(q, T(1)) : q;
    } else {
      const T rest = math::fmod(a, b);
      const T exact = (a - rest) / b;
      const T q = rest != 0 && (rest < 0) != (b < 0) ? exact - T(1) : exact;
      const T down = math::floor(q);
      const T nearest = q - down > T(0.5) ? down + T(1) : down;
      const T plain = a / b;
      return b == 0 ? plain : q != 0 ? nearest : math::copysign(T(0), plain);
    }
  }
};

struct Neg {
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    if constexpr (kIsInt<T>) return wrap_sub(T(0), a);
    else return -a;
  }
};
struct Conj {
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    if constexpr (kIsComplex<T>) return {a.re, -a.im};
    else return a;
  }
};
struct Abs {  // complex: the modulus as a complex number; its output is stored as a real dtype
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    if constexpr (kIsComplex<T>) return {math::hypot(a.re, a.im), 0};
    else if constexpr (kIsInt<T>) return a < 0 ? wrap_sub(T(0), a) : a;
    else return math::fabs(a);
  }
};
struct Sign {  // nan gives 0, as PyTorch's
  template <class T> static TT_FN T op(T a, const Param<T>&) { return T((a > 0) - (a < 0)); }
};
struct Reciprocal {
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    if constexpr (kIsComplex<T>) return T{1, 0} / a;
    else return T(1) / a;
  }
};

// Extremes and limits propagate nan.
template <class T> TT_FN T at_least(T a, T low) { return a < low || low != low ? low : a; }
template <class T> TT_FN T at_most(T a, T high) { return a > high || high != high ? high : a; }

struct Maximum {
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return at_least(a, b); }
};
struct Minimum {
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return at_most(a, b); }
};
struct ClampNumbers {
  template <class T> static TT_FN T op(T a, const Param<T>& p) {
    const T b = a < p.v[0] ? p.v[0] : a;
    return b > p.v[1] ? p.v[1] : b;
  }
};
struct Nan {
  template <class T> static TT_FN T op(T, const Param<T>&) { return T(__builtin_nan("")); }
};
struct Clamp {  // param 0 = min, param 1 = max, each may be absent; max wins
  template <class T> static TT_FN void prepare(Param<T>& p) {
    if (!p.has[0]) p.v[0] = kLowest<T>;
    if (!p.has[1]) p.v[1] = kHighest<T>;
  }
  template <class T, class Run> static TT_FN void pick(const Param<T>& p, Run run) {
    if constexpr (kIsFloat<T>)
      if (p.v[0] != p.v[0] || p.v[1] != p.v[1]) return run(Nan{});
    run(ClampNumbers{});
  }
};
struct ClampTensor {
  template <class T> static TT_FN T op(T a, T low, T high, const Param<T>&) {
    return a == a ? at_most(at_least(a, low), high) : a;
  }
};

struct MaskScale {  // param 0: factor where the mask is set, else 0
  static constexpr uint32_t kBoolIn = 1u << 2;
  template <class T> static TT_FN T op(T a, bool mask, const Param<T>& p) {
    return a * (mask ? p.v[0] : T{});
  }
};

TT_FUNCTORS_END
