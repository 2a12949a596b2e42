// Functors of one operand: signs, roots, exponentials, logarithms, circular functions, the error
// function, rounding, and tests for nan and infinity.
#pragma once

#include "kernels/functors/arith.h"
#include "kernels/functors/complex.h"
#include "kernels/functors/series.h"

TT_FUNCTORS_BEGIN

struct Abs {  // complex: the modulus as a complex number; its output is stored as a real dtype
  static constexpr NarrowOp kNarrow = NarrowOp::kAbs;
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    if constexpr (kIsComplex<T>) return {math::hypot(a.re, a.im), 0};
    else if constexpr (kIsInt<T>) return a < 0 ? wrap_sub(T(0), a) : a;
    else return math::fabs(a);
  }
};
struct Sign {  // nan gives 0, as PyTorch's
  static constexpr NarrowOp kNarrow = NarrowOp::kSign;
  template <class T> static TT_FN T op(T a, const Param<T>&) { return T((a > 0) - (a < 0)); }
};
struct Sgn {  // a / |a|, and 0 for 0
  using OfReals = Sign;
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    const Real<T> m = math::hypot(a.re, a.im);
    return m == 0 ? T{0, 0} : T{a.re / m, a.im / m};
  }
};
struct Reciprocal {
  static constexpr NarrowOp kNarrow = NarrowOp::kReciprocal;
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    if constexpr (kIsComplex<T>) return T{1, 0} / a;
    else return T(1) / a;
  }
};
struct Sqrt {
  static constexpr NarrowOp kNarrow = NarrowOp::kSqrt;
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::sqrt(a); }
};
struct Rsqrt {
  static constexpr NarrowOp kNarrow = NarrowOp::kRsqrt;
  template <class T> static TT_FN T op(T a, const Param<T>& p) {
    return Reciprocal::op(math::sqrt(a), p);
  }
};

// ---- exponentials and logarithms ----

struct Exp : LongInDouble {
#if TT_LONG_VECTORS
  static TT_INLINE series::Wide wide(series::Wide x, const Param<double>&) {
    return series::inline_exp(x);
  }
#endif
  template <class V> static TT_FN V lanes(V a) { return math::exp(a); }
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::exp(a); }
};
struct Log : Long {
  static constexpr VectorId kVector = kVectorLog;
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::log(a); }
};
struct Tanh : Long {
#if TT_LONG_VECTORS && TT_FUSED
  static TT_INLINE series::Wide wide(series::Wide x, const Param<double>&) {
    return series::tanh(x);
  }
#else
  static constexpr VectorId kVector = kVectorTanh;
#endif
  template <class V> static TT_FN V lanes(V a) { return math::tanh(a); }
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::tanh(a); }
};
struct Sigmoid : LongInDouble {
  template <class V> static TT_FN V lanes(V a) { return math::sigmoid(a); }
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::sigmoid(a); }
#if TT_ON_DEVICE
  static TT_FN float op_half(float a, const Param<float>&) { return math::quick_sigmoid(a); }
#endif
};

// A functor that is one function of namespace math; kVector: in double, SLEEF's.
#define TT_UNARY(functor, function)                                                          \
  struct functor : Long {                                                                    \
    static constexpr VectorId kVector = kVector##functor;                                    \
    template <class T> static TT_FN T op(T a, const Param<T>&) { return math::function(a); } \
  };
TT_UNARY(Log2, log2)
TT_UNARY(Log10, log10)
TT_UNARY(Asin, asin)
TT_UNARY(Acos, acos)
TT_UNARY(Atan, atan)
TT_UNARY(Sinh, sinh)
TT_UNARY(Cosh, cosh)
#undef TT_UNARY
struct Log1p : Long {
#if TT_LONG_VECTORS
  static TT_INLINE series::Wide wide(series::Wide x, const Param<double>&) {
    return series::log1p(x);
  }
#endif
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::log1p(a); }
};
struct Expm1 : Long {
#if TT_LONG_VECTORS
  static TT_INLINE series::Wide wide(series::Wide x, const Param<double>&) {
    return series::expm1(x);
  }
#endif
  template <class V> static TT_FN V lanes(V a) { return math::expm1(a); }
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::expm1(a); }
};
struct Erfc : Long {
#if !TT_ON_DEVICE && TT_VEC_BYTES > 32
  static TT_INLINE series::Wide wide(series::Wide x, const Param<double>&) {
    return series::erfc(x);
  }
#else
  static constexpr VectorId kVector = kVectorErfc;
#endif
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::erfc(a); }
};
struct Erf : Long {
#if !TT_ON_DEVICE
  static TT_INLINE series::Wide wide(series::Wide x, const Param<double>&) {
    return series::erf(x);
  }
#endif
  template <class V> static TT_FN V lanes(V a) { return math::erf(a); }
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::erf(a); }
};
struct Exp2 : Long {
  static constexpr VectorId kVector = kVectorExp2;
  template <class V> static TT_FN V lanes(V a) { return math::exp2(a); }
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::exp2(a); }
};
#define TT_UNARY(functor, function)                                                          \
  struct functor : Long {                                                                    \
    template <class T> static TT_FN T op(T a, const Param<T>&) { return math::function(a); } \
  };
TT_UNARY(Asinh, asinh)
TT_UNARY(Acosh, acosh)
#undef TT_UNARY
struct Atanh : Long {  // in double log1p(t) / 2, t = 2 a / (1 - a) = 2 a + 2 a^2 / (1 - a)
#if !TT_ON_DEVICE
  static TT_INLINE series::Wide wide(series::Wide x, const Param<double>&) {
    const series::Wide a = series::magnitude(x);
    const series::Wide ratio = a / (1.0 - a);
    const series::Wide near = 2.0 * a + 2.0 * a * ratio;
    const series::Wide t = series::chosen(a < series::all(0.5), near, 2.0 * ratio);
    return series::with_sign(0.5 * series::log1p(t), x);
  }
#endif
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::atanh(a); }
};

// log(z / (1 - z)), z = a clamped to [eps, 1 - eps]; param 0 is eps, absent: no clamping.
struct Logit : Long {
#if !TT_ON_DEVICE
  static TT_INLINE series::Wide wide(series::Wide x, const Param<double>& p) {
    if (!p.has[0]) return series::log(x / (1.0 - x));
    const series::Wide low = series::all(p.v[0]);
    const series::Wide z = series::chosen(x < low, low, series::at_most(x, 1.0 - p.v[0]));
    return series::log(z / (1.0 - z));
  }
#endif
  template <class T> static TT_FN T op(T a, const Param<T>& p) {
    const T eps = p.has[0] ? p.v[0] : T(0);
    const T high = a > T(1) - eps ? T(1) - eps : a;
    const T z = a < eps ? eps : high;
    const T x = p.has[0] ? z : a;
    return math::log(x / (T(1) - x));
  }
};
// g / (a (1 - a)) in [eps, 1 - eps]; elsewhere 0, or nan if eps is absent.
struct LogitBackward {
  template <class T> static TT_FN T op(T g, T a, const Param<T>& p) {
    const T eps = p.has[0] ? p.v[0] : T(0);
    const T outside = p.has[0] ? T(0) : T(kNan);
    return a >= eps && a <= T(1) - eps ? g / (a * (T(1) - a)) : outside;
  }
};

// ---- circular functions ----

// sin and cos of one float are quick while |x| is small; is_hard tells the loops which blocks need
// op_hard.
struct Sin : Long {
  static constexpr VectorId kVector = kVectorSin;
  template <class T> static TT_FN bool is_hard(T a) { return math::is_hard_angle(a); }
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::sin(a); }
  template <class T> static TT_FN T op_hard(T a) { return math::sin_hard(a); }
};
struct Cos : Long {
  static constexpr VectorId kVector = kVectorCos;
  template <class T> static TT_FN bool is_hard(T a) { return math::is_hard_angle(a); }
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::cos(a); }
  template <class T> static TT_FN T op_hard(T a) { return math::cos_hard(a); }
};
struct Tan : Long {
  static constexpr VectorId kVector = kVectorTan;
  template <class T> static TT_FN bool is_hard(T a) { return math::is_hard_angle(a); }
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::tan(a); }
  template <class T> static TT_FN T op_hard(T a) { return math::tan_hard(a); }
};

// ---- rounding: integers stay ----

struct Floor {
  using OfIntegers = Identity;
  static constexpr NarrowOp kNarrow = NarrowOp::kFloor;
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::floor(a); }
};
struct Ceil {
  using OfIntegers = Identity;
  static constexpr NarrowOp kNarrow = NarrowOp::kCeil;
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::ceil(a); }
};
struct Trunc {
  using OfIntegers = Identity;
  static constexpr NarrowOp kNarrow = NarrowOp::kTrunc;
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::trunc(a); }
};
struct Frac {  // with the sign of a
  template <class T> static TT_FN T op(T a, const Param<T>&) { return a - math::trunc(a); }
};
struct RoundEven {
  using OfIntegers = Identity;
  static constexpr NarrowOp kNarrow = NarrowOp::kRound;
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::rint(a); }
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

// ---- tests ----

template <class T> TT_FN bool is_infinite(T a) {
  if constexpr (kIsInt<T>) return false;
  else return math::fabs(a) == kHighest<T>;
}
template <class T> TT_FN bool is_finite(T a) {
  if constexpr (kIsInt<T>) return true;
  else return math::fabs(a) < kHighest<T>;
}
struct Isnan {
  static constexpr bool kOfIntegers = false;
  template <class T> static TT_FN bool op(T a, const Param<T>&) { return a != a; }
};
struct Isinf {
  static constexpr bool kOfIntegers = false;
  template <class T> static TT_FN bool op(T a, const Param<T>&) {
    if constexpr (kIsComplex<T>) return is_infinite(a.re) || is_infinite(a.im);
    else return is_infinite(a);
  }
};
struct Isfinite {
  static constexpr bool kOfIntegers = true;
  template <class T> static TT_FN bool op(T a, const Param<T>&) {
    if constexpr (kIsComplex<T>) return is_finite(a.re) && is_finite(a.im);
    else return is_finite(a);
  }
};

struct Isposinf {
  static constexpr bool kOfIntegers = false;
  template <class T> static TT_FN bool op(T a, const Param<T>&) {
    if constexpr (kIsInt<T>) return false;
    else return a == kHighest<T>;
  }
};
struct Isneginf {
  static constexpr bool kOfIntegers = false;
  template <class T> static TT_FN bool op(T a, const Param<T>&) {
    if constexpr (kIsInt<T>) return false;
    else return a == kLowest<T>;
  }
};
struct Isreal {
  static constexpr bool kOfIntegers = true;
  template <class T> static TT_FN bool op(T a, const Param<T>&) {
    if constexpr (kIsComplex<T>) return a.im == 0;
    else return true;
  }
};
struct Signbit {
  template <class T> static TT_FN bool op(T a, const Param<T>&) {
    if constexpr (kIsInt<T>) return a < 0;
    else return math::copysign(T(1), a) < T(0);
  }
};

// ---- replacing what is not finite, in each part of a complex number ----

template <class R> TT_FN R nan_to(R a, R value) { return a == a ? a : value; }
struct ReplaceNan {  // by param 0
  using OfIntegers = Identity;
  static constexpr NarrowOp kNarrow = NarrowOp::kReplaceNan;
  template <class T> static TT_FN T op(T a, const Param<T>& p) {
    if constexpr (kIsComplex<T>) return {nan_to(a.re, p.v[0].re), nan_to(a.im, p.v[0].re)};
    else return nan_to(a, p.v[0]);
  }
};
template <class R> TT_FN R infinity_to(R a, R positive, R negative) {
  const R b = a == kLowest<R> ? negative : a;
  return a == kHighest<R> ? positive : b;
}
struct ReplaceInf {  // inf by param 0, -inf by param 1
  using OfIntegers = Identity;
  static constexpr NarrowOp kNarrow = NarrowOp::kReplaceInf;
  template <class T> static TT_FN T op(T a, const Param<T>& p) {
    if constexpr (kIsComplex<T>)
      return {infinity_to(a.re, p.v[0].re, p.v[1].re), infinity_to(a.im, p.v[0].re, p.v[1].re)};
    else return infinity_to(a, p.v[0], p.v[1]);
  }
};

TT_FUNCTORS_END
