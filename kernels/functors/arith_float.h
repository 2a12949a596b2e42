// Functors of arithmetic on floating numbers, and of integers' common divisors and multiples.
#pragma once

#include "kernels/functors/arith.h"
#include "kernels/functors/math.h"

TT_FUNCTORS_BEGIN

// The extreme of two numbers, or the one that is not nan.
struct Fmax {
  using OfIntegers = Maximum;
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    return a >= b || b != b ? a : b;
  }
};
struct Fmin {
  using OfIntegers = Minimum;
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    return a <= b || b != b ? a : b;
  }
};

struct Copysign {
  static constexpr NarrowOp kNarrow = NarrowOp::kCopysign;
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return math::copysign(a, b); }
};
struct Hypot : LongInDouble {
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    return math::vector_hypot(a, b);
  }
};
struct Heaviside {  // 0 below 0, b at 0, 1 above; nan gives 0
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    return a == T(0) ? b : T(a > T(0));
  }
};

// ---- sums of exponentials: the larger exponent is taken out ----

template <class R> TT_FN bool is_nan(Complex<R> z) { return z.re != z.re || z.im != z.im; }
struct Logaddexp : Long {
  template <class R>
  static TT_FN Complex<R> op(Complex<R> a, Complex<R> b, const Param<Complex<R>>&) {
    const bool b_is_larger = a.re < b.re;
    const Complex<R> low = b_is_larger ? a : b;
    const Complex<R> high = b_is_larger ? b : a;
    if (is_nan(low) || is_nan(high)) return {R(kNan), R(kNan)};
    const bool both_infinite = low.re == high.re && low.re - low.re != 0;
    if (both_infinite && low.re < 0) return low;  // of a sum near 0 the angle is arbitrary
    if (both_infinite) return math::log(math::exp(low) + math::exp(high));
    return math::log1p(math::exp(low - high)) + high;
  }
#if !TT_ON_DEVICE && TT_FUSED
  template <class V> static TT_FN V lanes(V a, V b) { return math::log_of_sum<false>(a, b); }
  static TT_FN float op(float a, float b, const Param<float>&) { return lanes(a, b); }
#endif
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    const T high = a > b ? a : b;
    const T sum = high + math::log1p_exp(-math::fabs(a - b));
    return a == b ? a + T(0.6931471805599453) : sum;  // also of equal infinities
  }
};
struct Logaddexp2 : Long {
#if !TT_ON_DEVICE && TT_FUSED
  template <class V> static TT_FN V lanes(V a, V b) { return math::log_of_sum<true>(a, b); }
  static TT_FN float op(float a, float b, const Param<float>&) { return lanes(a, b); }
#elif !TT_ON_DEVICE
  static TT_FN float op(float a, float b, const Param<float>&) {
    const float high = a > b ? a : b;
    const double rest = math::log1p_of_part(math::exp2(-math::fabs(a - b)));
    const double sum = high + rest * 1.4426950408889634;
    return a == b ? a + 1.0f : float(sum);
  }
#endif
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    const T high = a > b ? a : b;
    const T rest = math::log1p(math::exp2(-math::fabs(a - b)));
    return a == b ? a + T(1) : high + rest * T(1.4426950408889634);
  }
};

// ---- neighbours, parts ----

// The next number after a towards b, in the order of the bits of T.
template <class T, class Bits> TT_FN T next_number(T a, T b, Bits step, Bits smallest) {
  if (a != a || b != b) return a + b;
  if (a == b) return b;
  if (a == T(0)) return math::copysign(bit_cast<T>(smallest), b);
  const Bits bits = bit_cast<Bits>(a);
  return bit_cast<T>((a < b) == (a > T(0)) ? Bits(bits + step) : Bits(bits - step));
}
struct Nextafter {
  static TT_FN float op(float a, float b, const Param<float>&) {
    return next_number<float, uint32_t>(a, b, 1, 1);
  }
  static TT_FN double op(double a, double b, const Param<double>&) {
    return next_number<double, uint64_t>(a, b, 1, 1);
  }
};
struct NextBf16 {  // a bfloat16 is the upper half of a float
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    return T(next_number<float, uint32_t>(float(a), float(b), 0x10000, 0x10000));
  }
};

struct NextF16 {  // a float with 13 zeros at its end; below 2^-14 all steps are 2^-24
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    const float x = float(a);
    const float y = float(b);
    const float size = math::fabs(x);
    const bool grows = (x < y) == (x > 0.0f);
    if (x != x || y != y) return a + b;
    if (x == y) return b;
    if (size > 65504.0f) return T(math::copysign(65504.0f, x));
    if (size > 0x1p-14f || (size == 0x1p-14f && grows))
      return T(next_number<float, uint32_t>(x, y, 0x2000, 0x2000));
    const float next = x + (x < y ? 0x1p-24f : -0x1p-24f);
    return T(next == 0.0f ? math::copysign(0.0f, x) : next);
  }
};

// a = mantissa * 2^exponent with |mantissa| in [1/2, 1); 0, inf and nan are their own mantissas
// with exponent 0.
TT_FN int32_t exponent_of(double a) {
  const double x = math::fabs(a);
  const bool is_normal = x >= 0x1p-1022;
  const uint64_t bits = bit_cast<uint64_t>(is_normal ? x : x * 0x1p54);
  const int32_t exponent = int32_t(bits >> 52) - (is_normal ? 1022 : 1076);
  return x > 0 && x < kHighest<double> ? exponent : 0;
}
struct FrexpExponent {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return T(exponent_of(double(a))); }
};
struct FrexpMantissa {
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    const double x = double(a);
    const uint64_t bits = bit_cast<uint64_t>(math::fabs(x) >= 0x1p-1022 ? x : x * 0x1p54);
    const uint64_t half = (bits & 0x800fffffffffffffu) | 0x3fe0000000000000u;
    const bool is_regular = x != 0 && math::fabs(x) < kHighest<double>;
    return is_regular ? T(bit_cast<double>(half)) : a;
  }
};

// ---- products and quotients that are added ----

struct Lerp {  // from the end that is nearer, so that weight 1 gives b exactly
  static constexpr NarrowOp kNarrow = NarrowOp::kLerp;
  template <class R> static TT_FN bool is_near_first(R weight) {
    return math::fabs(weight) < R(0.5);
  }
  template <class R> static TT_FN bool is_near_first(Complex<R> weight) {
    return weight.re * weight.re + weight.im * weight.im < R(0.25);
  }
  template <class T> static TT_FN T op(T a, T b, T weight, const Param<T>&) {
    T one;
    if constexpr (kIsComplex<T>) one = {1, 0};
    else one = T(1);
    return is_near_first(weight) ? a + weight * (b - a) : b - (b - a) * (one - weight);
  }
};
struct Addcmul : Scaled {  // a + alpha * b * c
  static constexpr NarrowOp kNarrow = NarrowOp::kAddcmul;
  template <class T> static TT_FN T op(T a, T b, T c, const Param<T>& p) {
    return wrap_add(a, wrap_mul(times_alpha(b, p), c));
  }
};
struct Addcdiv : Scaled {  // a + alpha * b / c
  static constexpr NarrowOp kNarrow = NarrowOp::kAddcdiv;
  template <class T> static TT_FN T op(T a, T b, T c, const Param<T>& p) {
    return a + times_alpha(b, p) / c;
  }
};

// ---- integers ----

template <class T> TT_FN Unsigned<T> magnitude(T a) {
  if constexpr (T(-1) < T(0)) {
    if (a < 0) return Unsigned<T>(0) - Unsigned<T>(a);
  }
  return Unsigned<T>(a);
}
template <class T> TT_FN Unsigned<T> common_divisor(T a, T b) {  // Euclid's
  Unsigned<T> x = magnitude(a);
  Unsigned<T> y = magnitude(b);
  while (y != 0) {
    const Unsigned<T> rest = x % y;
    x = y;
    y = rest;
  }
  return x;
}
struct Gcd {
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    if constexpr (kIsBool<T>) return a;  // refused before
    else return T(common_divisor(a, b));
  }
};
struct Lcm {  // 0 if both are 0; wraps around
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    if constexpr (kIsBool<T>) {
      return a;  // refused before
    } else {
      const Unsigned<T> divisor = common_divisor(a, b);
      const Unsigned<T> times = divisor == 0 ? Unsigned<T>(0) : magnitude(a) / divisor;
      return T(magnitude(T(times * magnitude(b))));
    }
  }
};

TT_FUNCTORS_END
