// Functors of special functions: Gamma, error and Bessel functions and their relatives. All are
// computed in double; float results are rounded once.
//
// They use series, asymptotic expansions and Newton's method instead of fitted tables: the same
// code serves every argument, at a few dozen operations. Formulas: Abramowitz & Stegun, "Handbook
// of Mathematical Functions" (1964), cited as A&S.
#pragma once

#include "kernels/functors/unary.h"
#include "kernels/functors/series.h"

TT_FUNCTORS_BEGIN
namespace special {

constexpr double kPi = 3.14159265358979323846;

// ---- the Gamma function ----

#if TT_ON_DEVICE
TT_FN double lgamma(double x) { return ::lgamma(x); }
#elif TT_HAS_LGAMMA_R
extern "C" double lgamma_r(double, int*) noexcept;
TT_FN double lgamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}
#else
TT_FN double lgamma(double x) { return libm::lgamma(x); }
#endif

// By Stirling's series (A&S 6.1.41), for x >= 10: log Gamma(x) - ((x - 1/2) log x - x + log
// sqrt(2 pi)).
TT_FN double stirling_rest(double x) {
  const double r = 1.0 / x;
  const double z = r * r;
  const double tail = 1.0 / 1188 - z * (691.0 / 360360 - z * (1.0 / 156));
  return r * (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * tail))));
}

// pi cot(pi x) with the period taken out exactly.
TT_FN double pi_cot(double x) {
  const double part = x - libm::floor(x + 0.5);
  return kPi / libm::tan(kPi * part);
}
// digamma(x) for x >= 10 (A&S 6.3.18); log: that of x.
TT_FN double digamma_series(double x, double log) {
  const double z = 1.0 / (x * x);
  const double tail = 5.0 / 660 - z * (691.0 / 32760 - z * (1.0 / 12));
  const double series =
      z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * tail))));
  return log - 0.5 / x - series;
}
// The derivative of log Gamma: by recurrence to x >= 10; reflection below 0 (A&S 6.3.7).
// The poles are nan; at 0 they are infinite, with the sign of the zero turned.
TT_LONG_FN double digamma(double x) {
  if (x == 0) return -libm::copysign(kInf, x);
  if (x == -kInf || (x < 0 && x == libm::floor(x))) return kNan;
  double sum = 0;
  if (x < 0) {
    sum = -pi_cot(x);
    x = 1.0 - x;
  }
  while (x < 10) {
    sum -= 1.0 / x;
    x += 1.0;
  }
  return sum + digamma_series(x, libm::log(x));
}

// Hurwitz' zeta function, the sum of (q + k)^-s over k >= 0: ten terms and Euler and Maclaurin's
// formula for the rest.
TT_LONGEST_FN double zeta_of_positive(double s, double q) {
  constexpr int kTerms = 10;
  // B(2k) / (2k)!, k = 1 … 12: the weights of Euler and Maclaurin's formula.
  constexpr int kNumBernoulli = 12;
  static constexpr double kBernoulli[kNumBernoulli] = {
      1.0 / 12,
      -1.0 / 720,
      1.0 / 30240,
      -1.0 / 1209600,
      1.0 / 47900160,
      -691.0 / 1307674368000,
      1.0 / 74724249600,
      -3617.0 / 10670622842880000,
      43867.0 / 5109094217170944000,
      -174611.0 / 802857662698291200000.0,
      77683.0 / 14101100039391805440000.0,
      -236364091.0 / 1693824136731743669452800000.0,
  };
  if (q == kInf) return 0;
  double sum = 0;
  double x = q;
  for (int k = 0; k < kTerms; k++) {
    const double term = libm::pow(x, -s);
    sum += term;
    if (term < 0x1p-60 * sum) return sum;
    x += 1.0;
  }
  const double power = libm::pow(x, -s);
  sum += x * power / (s - 1.0) + 0.5 * power;
  double factor = s * power / x;  // s (s + 1) … (s + 2k) x^-(s + 2k + 1)
  for (int k = 0; k < kNumBernoulli; k++) {
    const double term = kBernoulli[k] * factor;
    sum += term;
    if (libm::fabs(term) < 0x1p-60 * sum) break;
    const double m = 2 * k + 1;
    factor *= (s + m) * (s + m + 1.0) / (x * x);
  }
  return sum;
}
// For q < 0 and an even or odd s: the bases before the first positive one, with their sign, are a
// difference of two such sums.
TT_FN double zeta(double s, double q) {
  if (s == 1) return kInf;
  if (!(s > 1) || q != q) return kNan;
  if (q > 0) return zeta_of_positive(s, q);
  if (q == libm::floor(q) || s == kInf) return kInf;  // a base is 0, or inside (-1, 1)
  if (s != libm::floor(s)) return kNan;
  const double part = q - libm::floor(q);
  const double sign = libm::fmod(s, 2.0) == 0 ? 1.0 : -1.0;
  const double below = zeta_of_positive(s, 1.0 - part) - zeta_of_positive(s, 1.0 - q);
  return zeta_of_positive(s, part) + sign * below;
}
// The n-th derivative of digamma (A&S 6.4.10), n >= 1.
TT_FN double polygamma(double n, double x) {
  const double sign = libm::fmod(n, 2.0) == 1.0 ? 1.0 : -1.0;
  return sign * libm::exp(lgamma(n + 1.0)) * zeta(n + 1.0, x);
}

// log(1 + m) - m, |m| <= 1/4.
TT_FN double log1p_rest(double m) {
  double power = -m * m;
  double sum = 0;
  for (int k = 2; k < 32; k++) {
    sum += power / k;
    power *= -m;
  }
  return sum;
}
// x^a e^-x / Gamma(a + 1), without the cancellation of its logarithm's terms for a large a.
TT_FN double gamma_density(double a, double x) {
  if (a < 10) return libm::exp(a * libm::log(x) - x - lgamma(a + 1.0));
  const double m = (x - a) / a;
  const double rest = libm::fabs(m) > 0.25 ? libm::log(x / a) - m : log1p_rest(m);
  const double exponent = a * rest - stirling_rest(a);
  return libm::exp(exponent) / libm::sqrt(2.0 * kPi * a);
}
// P(a, x) by its power series (A&S 6.5.29), for x < a + 1. Here and below, what counts less than
// `least` of the result is left out.
TT_FN double lower_series(double a, double x, double least) {
  double term = 1;
  double sum = 1;
  for (int k = 1; k < 10000 && term > least * sum; k++) {
    term *= x / (a + k);
    sum += term;
  }
  return sum * gamma_density(a, x);
}
// Q(a, x) by its continued fraction (A&S 6.5.31) after Lentz, for x >= a + 1.
TT_FN double upper_fraction(double a, double x, double least) {
  constexpr double kTiny = 0x1p-1000;
  double b = x + 1.0 - a;
  double c = 1.0 / kTiny;
  double d = 1.0 / b;
  double h = d;
  for (int k = 1; k < 10000; k++) {
    const double n = -k * (k - a);
    b += 2.0;
    d = n * d + b;
    d = 1.0 / (libm::fabs(d) < kTiny ? kTiny : d);
    c = b + n / c;
    c = libm::fabs(c) < kTiny ? kTiny : c;
    h *= d * c;
    if (libm::fabs(d * c - 1.0) < 8 * least) break;
  }
  return h * a * gamma_density(a, x);
}
// Q(a, x) for x <= 1 and small a, where 1 - P cancels: 1 - x^a / Gamma(a + 1) - x^a / Gamma(a)
// sum of (-x)^k / (k! (a + k)), k >= 1.
TT_FN double upper_series(double a, double x, double least) {
  double term = 1;
  double sum = 0;
  for (int k = 1; k < 100; k++) {
    term *= -x / k;
    const double part = term / (a + k);
    sum += part;
    if (libm::fabs(part) <= least * libm::fabs(sum)) break;
  }
  const double exponent = a * libm::log(x) - lgamma(a + 1.0);
  return -libm::expm1(exponent) - a * libm::exp(exponent) * sum;
}
// The regularised incomplete Gamma functions: Q, or P = 1 - Q.
TT_LONGEST_FN double incomplete_gamma(double a, double x, bool upper, double least) {
  if (a == kInf && x != kInf && !(x < 0)) return upper ? 1.0 : 0.0;  // as in PyTorch at nan, too
  if (!(a >= 0) || !(x >= 0) || a == kInf) return kNan;
  if (a == 0 && x == 0) return kNan;
  if (a > 1e17 && x > 1e17 && x < kInf) {  // where a double tells the distribution's width no more
    if (a == x) return 0.5;
    return (a < x) == upper ? 0.0 : 1.0;
  }
  if (a == 0 || x == kInf) return upper ? 0.0 : 1.0;
  if (x == 0) return upper ? 1.0 : 0.0;
  if (x >= a + 1.0 && x > 1.0) {
    const double q = upper_fraction(a, x, least);
    return upper ? q : 1.0 - q;
  }
  if (upper && x <= 1.0 && a < 1.0) return upper_series(a, x, least);
  const double p = lower_series(a, x, least);
  return upper ? 1.0 - p : p;
}

}  // namespace special
TT_FUNCTORS_END

// Whether floats have functions of their own.
#define TT_SPECIAL_OF_FLOATS TT_LONG_VECTORS
#if TT_SPECIAL_OF_FLOATS
#include "kernels/cpu/math/special.h"
#endif

TT_FUNCTORS_BEGIN

#define TT_SPECIAL(functor, function, of_floats)                                       \
  struct functor {                                                                     \
    using OfFloats = of_floats;                                                        \
    template <class T> static TT_FN T op(T a, const Param<T>&) { return T(function); } \
  };
#if TT_SPECIAL_OF_FLOATS
#define TT_SPECIAL_TWICE(functor, name)                                                         \
  struct functor##OfFloats : LongInDouble {                                                     \
    static TT_FN double op(double a, const Param<double>&) { return math::name##_of_float(a); } \
  };                                                                                            \
  TT_SPECIAL(functor, special::name(a), functor##OfFloats)
#else
#define TT_SPECIAL_TWICE(functor, name) TT_SPECIAL(functor, special::name(a), functor)
#endif
TT_SPECIAL_TWICE(Lgamma, lgamma)
TT_SPECIAL_TWICE(Digamma, digamma)
#undef TT_SPECIAL_TWICE
#undef TT_SPECIAL

struct OrthogonalPolynomial {  // param 0: a Polynomial, or one plus kShifted; param 1: the order
  using OfFloats = OrthogonalPolynomial;
#if TT_ON_DEVICE
  template <class T> static TT_FN T op(T x, const Param<T>& p) {
    return T(series::orthogonal(double(x), int32_t(p.v[0]), int64_t(p.v[1])));
  }
#else
  static TT_INLINE series::Wide wide(series::Wide x, const Param<double>& p) {
    return series::orthogonal(x, int32_t(p.v[0]), int64_t(p.v[1]));
  }
#endif
};

// A function of doubles of series.h.
#if TT_ON_DEVICE
#define TT_SERIES(functor, ...)                                  \
  struct functor {                                               \
    using OfFloats = functor;                                    \
    template <class T> static TT_FN T op(T a, const Param<T>&) { \
      return T(series::__VA_ARGS__(double(a)));                  \
    }                                                            \
  };
#else
#define TT_SERIES(functor, ...)                                                \
  struct functor {                                                             \
    using OfFloats = functor;                                                  \
    static TT_INLINE series::Wide wide(series::Wide x, const Param<double>&) { \
      return series::__VA_ARGS__(x);                                           \
    }                                                                          \
  };
#endif
#if TT_SPECIAL_OF_FLOATS
#define TT_SERIES_TWICE(functor, name)                                                          \
  struct functor##OfFloats : LongInDouble {                                                     \
    static TT_FN double op(double a, const Param<double>&) { return math::name##_of_float(a); } \
  };                                                                                            \
  struct functor {                                                                              \
    using OfFloats = functor##OfFloats;                                                         \
    static TT_INLINE series::Wide wide(series::Wide x, const Param<double>&) {                  \
      return series::name(x);                                                                   \
    }                                                                                           \
  };
#else
#define TT_SERIES_TWICE(functor, name) TT_SERIES(functor, name)
#endif
#if TT_SPECIAL_OF_FLOATS && TT_VECTOR_MATH
struct Erfinv : Long {
  static TT_INLINE series::Wide wide(series::Wide x, const Param<double>&) {
    return series::erfinv(x);
  }
  template <class V> static TT_FN V lanes(V x) { return math::erfinv(x); }
};
#else
TT_SERIES_TWICE(Erfinv, erfinv)
#endif
TT_SERIES_TWICE(Ndtr, ndtr)
TT_SERIES_TWICE(Ndtri, ndtri)
#undef TT_SERIES_TWICE
TT_SERIES(Erfcx, erfcx)
TT_SERIES(LogNdtr, log_ndtr)
TT_SERIES(I0, bessel_i<0, false>)
TT_SERIES(I0e, bessel_i<0, true>)
TT_SERIES(I1, bessel_i<1, false>)
TT_SERIES(I1e, bessel_i<1, true>)
TT_SERIES(BesselJ0, bessel_j<0>)
TT_SERIES(BesselJ1, bessel_j<1>)
TT_SERIES(BesselY0, bessel_y<0>)
TT_SERIES(BesselY1, bessel_y<1>)
TT_SERIES(BesselK0, bessel_k<0, false>)
TT_SERIES(BesselK1, bessel_k<1, false>)
TT_SERIES(BesselK0e, bessel_k<0, true>)
TT_SERIES(BesselK1e, bessel_k<1, true>)
TT_SERIES(Airy, airy)
#undef TT_SERIES

struct Bessel {  // param 0: a BesselFunction
  using OfFloats = Bessel;
  template <class T, class Run> static TT_FN void each(const Param<T>& p, Run run) {
    switch (int(p.v[0])) {
      case kBesselJ0: return run(BesselJ0{});
      case kBesselJ1: return run(BesselJ1{});
      case kBesselY0: return run(BesselY0{});
      case kBesselY1: return run(BesselY1{});
      case kBesselK0: return run(BesselK0{});
      case kBesselK1: return run(BesselK1{});
      case kBesselK0Scaled: return run(BesselK0e{});
      case kBesselK1Scaled: return run(BesselK1e{});
      default: return run(Airy{});
    }
  }
#if TT_ON_DEVICE
  template <class T> static TT_FN T op(T a, const Param<T>& p) {
    T y;
    each(p, [&](auto f) { y = decltype(f)::op(a, p); });
    return y;
  }
#else
  template <class T, class Run> static TT_FN void pick(const Param<T>& p, Run run) { each(p, run); }
#endif
};
#if TT_SPECIAL_OF_FLOATS
struct Trigamma : LongInDouble {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::trigamma(a); }
};
#endif
struct PolygammaAny {
  template <class T> static TT_FN T op(T a, const Param<T>& p) {
    return T(special::polygamma(double(p.v[0]), a));
  }
};
struct Polygamma : PolygammaAny {  // param 0: the order n >= 1
  using OfFloats = Polygamma;
#if TT_SPECIAL_OF_FLOATS
  template <class T, class Run> static TT_FN void pick(const Param<T>& p, Run run) {
    if (p.v[0] == T(1)) return run(Trigamma{});
    run(PolygammaAny{});
  }
#endif
};
struct Zeta {
  using OfFloats = Zeta;
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return T(special::zeta(a, b)); }
};
template <bool kUpper, bool kOfFloats> struct IncompleteGamma {
  using OfFloats = IncompleteGamma<kUpper, true>;
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    constexpr double kLeast = kOfFloats || sizeof(T) == 4 ? 0x1p-34 : 0x1p-55;
    return T(special::incomplete_gamma(a, b, kUpper, kLeast));
  }
};
struct Igamma : IncompleteGamma<false, false> {};
struct Igammac : IncompleteGamma<true, false> {};

struct Sinc {  // sin(pi a) / (pi a), 1 at 0
  using OfFloats = Sinc;
#if !TT_ON_DEVICE
  static TT_INLINE series::Wide wide(series::Wide x, const Param<double>&) {
    return series::sinc(x);
  }
#endif
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    if constexpr (kIsComplex<T>) {
      const c128 z = {special::kPi * a.re, special::kPi * a.im};
      const c128 y = math::sin(z) / z;
      using R = typename T::Real;
      return a == T{0, 0} ? T{1, 0} : T{R(y.re), R(y.im)};
#if TT_ON_DEVICE
    } else {
      return T(series::sinc(double(a)));
#endif
    }
  }
};
struct Entr : Long {  // -a log(a); 0 at 0, -inf below
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    const T y = -a * math::log(a);
    if (a < T(0)) return kLowest<T>;
    return a == T(0) ? T(0) : y;
  }
};
struct Xlogy : Long {  // a log(b); 0 where a is 0 and b is not nan
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    return a == T(0) && b == b ? T(0) : a * math::log(b);
  }
};
struct Xlog1py : Long {
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    return a == T(0) && b == b ? T(0) : a * math::log1p(b);
  }
};

TT_FUNCTORS_END
