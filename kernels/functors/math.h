// Functors of exponentials, logarithms, powers, circular functions and activations with their
// gradients. The real functions come from cpu/math.h on the host and from CUDA's library on the
// device; complex ones: functors/complex_math.h.
#pragma once

#include "kernels/functors/arith.h"
#include "kernels/functors/complex_math.h"

TT_FUNCTORS_BEGIN

struct Exp {
  template <class V> static TT_FN V lanes(V a) { return math::exp(a); }
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::exp(a); }
};
struct Log {
  static constexpr VectorId kVector = kVectorLog;
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::log(a); }
};
struct Tanh {
  static constexpr VectorId kVector = kVectorTanh;
  template <class V> static TT_FN V lanes(V a) { return math::tanh(a); }
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::tanh(a); }
};
struct Sigmoid {
  template <class V> static TT_FN V lanes(V a) { return math::sigmoid(a); }
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::sigmoid(a); }
};
struct Sqrt {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::sqrt(a); }
};
struct Rsqrt {
  template <class T> static TT_FN T op(T a, const Param<T>& p) {
    return Reciprocal::op(math::sqrt(a), p);
  }
};

// sin and cos of one float are quick while |x| is small; is_hard tells the loops which blocks need
// op_hard.
struct Sin {
  static constexpr VectorId kVector = kVectorSin;
  template <class T> static TT_FN bool is_hard(T a) { return math::is_hard_angle(a); }
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::sin(a); }
  template <class T> static TT_FN T op_hard(T a) { return math::sin_hard(a); }
};
struct Cos {
  static constexpr VectorId kVector = kVectorCos;
  template <class T> static TT_FN bool is_hard(T a) { return math::is_hard_angle(a); }
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::cos(a); }
  template <class T> static TT_FN T op_hard(T a) { return math::cos_hard(a); }
};

struct Relu {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return a < T(0) ? T(0) : a; }
};

// ---- powers ----

// By squaring; integers wrap. A negative exponent gives the truncated quotient 1 / a^|b|, and 0 for
// a = 0.
template <class T> TT_FN T integer_power(T a, T b) {
  if (b < 0) return a == 1 ? T(1) : a == -1 ? (b & 1 ? T(-1) : T(1)) : T(0);
  T r = 1;
  for (T base = a; b > 0; b = T(b >> 1), base = wrap_mul(base, base))
    if (b & 1) r = wrap_mul(r, base);
  return r;
}

struct Pow {
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    if constexpr (kIsInt<T>) return integer_power(a, b);
    else return math::pow(a, b);
  }
};

struct PowInvSqrt {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return T(1) / math::sqrt(a); }
};
struct PowInvSquare {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return T(1) / (a * a); }
};
struct PowCube {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return wrap_mul(wrap_mul(a, a), a); }
};
struct PowAny {
  template <class T> static TT_FN T op(T a, const Param<T>& p) { return Pow::op(a, p.v[0], p); }
};

struct PowScalar {  // a ** param 0; the exponents that PyTorch treats apart have loops of their own
  template <class T, class Run> static TT_FN void pick(const Param<T>& p, Run run) {
    if constexpr (kIsFloat<T>) {
      const T e = p.v[0];
      if (e == T(2)) return run(Square{});
      if (e == T(3)) return run(PowCube{});
      if (e == T(0.5)) return run(Sqrt{});
      if (e == T(-1)) return run(Reciprocal{});
      if (e == T(-0.5)) return run(PowInvSqrt{});
      if (e == T(-2)) return run(PowInvSquare{});
      if (e == T(1)) return run(Conj{});
    } else if constexpr (kIsInt<T>) {
      if (p.v[0] == 2) return run(Square{});
      if (p.v[0] == 3) return run(PowCube{});
    } else {
      if (p.v[0] == T{2, 0}) return run(Square{});
      if (p.v[0] == T{3, 0}) return run(PowCube{});
    }
    run(PowAny{});
  }
};
struct PowScalarBase {  // param 0 ** a
  template <class T> static TT_FN T op(T a, const Param<T>& p) { return Pow::op(p.v[0], a, p); }
};

// ---- gradients in terms of the result y ----

struct SigmoidBackward {  // g * conj(y * (1 - y))
  template <class T> static TT_FN T op(T g, T y, const Param<T>& p) {
    if constexpr (kIsComplex<T>) return g * Conj::op(y * (T{1, 0} - y), p);
    else return g * (T(1) - y) * y;
  }
};
struct TanhBackward {  // g * conj(1 - y^2)
  template <class T> static TT_FN T op(T g, T y, const Param<T>& p) {
    if constexpr (kIsComplex<T>) return g * Conj::op(T{1, 0} - y * y, p);
    else return g * (T(1) - y * y);
  }
};
struct ThresholdBackward {  // g where x > param 0 (0 if absent); nan passes g
  template <class T> static TT_FN T op(T g, T x, const Param<T>& p) {
    return x <= p.v[0] ? T(0) : g;
  }
};

TT_FUNCTORS_END
