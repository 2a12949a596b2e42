// More real functions of the host. float: branch-free in double, where the error of every step is
// below 2^-28 of the result, so that only the final rounding matters (tests/cpp/math_ulp_test.cpp).
// double: the C library.
//
// Reductions as in math.h. The coefficients of log, sin and cos are those of Taylor series (log in
// s = f / (2 + f), after Cody & Waite); the others are tt's own interpolations at Chebyshev nodes,
// computed in 50 digits. Included by math.h.
#pragma once

TT_ISA_BEGIN
namespace math {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kPi = 0x1.921fb54442d18p+1;
constexpr double kHalfPi = 0x1.921fb54442d18p+0;

#if TT_FUSED
TT_INLINE double mul_add(double a, double b, double c) { return libm::fma(a, b, c); }
#else
TT_INLINE double mul_add(double a, double b, double c) { return a * b + c; }
#endif
// c0 + c1 x + …, by recursion: gcc does not vectorise a loop that contains a loop over
// coefficients.
TT_INLINE double polynomial(double, double c) { return c; }
template <class... C> TT_INLINE double polynomial(double x, double c, C... more) {
  return mul_add(x, polynomial(x, more...), c);
}

// ---- logarithms ----

// Returns f and sets *n, where x = 2^n (1 + f), 1 + f in [sqrt(1/2), sqrt(2)). x > 0 is normal.
TT_INLINE double fraction_of(double x, double* n) {
  constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcdu, kOne = 0x3ff0000000000000u,
                     kFraction = 0xfffffffffffffu;
  const uint64_t u = f64_bits(x) + (kOne - kRootHalf);
  *n = bits_f64(u >> 52 | 0x4330000000000000u) - (0x1p52 + 1023);
  return bits_f64((u & kFraction) + kRootHalf) - 1.0;
}
// Returns log(1 + f) to 2^-39.
TT_INLINE double log_of_part(double x, double* n) {
  const double f = fraction_of(x, n);
  const double s = f / (2.0 + f);
  const double z = s * s;
  return 2.0 * s + s * z * polynomial(z, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13);
}
// Q(z) in log(1 + f) = 2 s + s z Q(z), where s = f / (2 + f), z = s^2.
TT_INLINE double log_series(double z) {
  return polynomial(z, 0x1.5555555555555p-1, 0x1.9999999999a38p-2, 0x1.2492492476cccp-2,
                    0x1.c71c720159177p-3, 0x1.745cf9048dd93p-3, 0x1.3b1c355a8f7f5p-3,
                    0x1.0fbe95d7158cbp-3, 0x1.0c039c499cc37p-3);
}
// log(x) to 2^-50, or to its last bits. x > 0 is normal.
TT_INLINE double long_log(double x) {
  double n;
  const double f = fraction_of(x, &n);
  const double s = f / (2.0 + f);
  const double z = s * s;
  return mul_add(n, kLn2, 2.0 * s + s * z * log_series(z));
}
// log(1 + e) for 0 <= e <= 1, to 2^-52: by the logarithm of u = 1 + e, as f - (h - s (h + z Q(z)))
// with h = f^2 / 2, and by what rounding took from u.
TT_INLINE double log1p_of_part(double e) {
  const double u = 1.0 + e;
  double n;
  const double f = fraction_of(u, &n);
  const double half = 0.5 * f * f;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double lost = (e - (u - 1.0)) / u + n * 0x1.ef35793c76730p-45;
  const double low = s * (half + z * log_series(z)) + lost;
  return n * 0x1.62e42fefa3800p-1 - ((half - low) - f);
}
// y for finite x > 0, else the special value of a logarithm.
TT_INLINE float log_or_special(double x, double y) {
  const double negative = x == x ? kNan : x;
  const double not_positive = x == 0 ? -kInf : negative;
  const double positive = x < kInf ? y : x;
  return float(x > 0 ? positive : not_positive);
}
TT_INLINE float log2(float x) {
  double n;
  const double y = log_of_part(x, &n) * 0x1.71547652b82fep+0;
  return log_or_special(x, n + y);
}
TT_INLINE float log10(float x) {
  double n;
  const double y = log_of_part(x, &n) * 0x1.bcb7b1526e50ep-2;
  return log_or_special(x, n * 0x1.34413509f79ffp-2 + y);
}

// ---- exponentials ----

TT_INLINE float sinh(float x) {
  const double d = x;
  const double z = d * d;
  const double e = exp(libm::fabs(d));
  const double y = (e - 1.0 / e) * 0.5;
  return float(libm::fabsf(x) < 0x1p-6f ? d * (1.0 + z * (1.0 / 6 + z * (1.0 / 120)))
                                        : libm::copysign(y, d));
}
TT_INLINE float cosh(float x) {
  const double e = exp(libm::fabs(double(x)));
  return float((e + 1.0 / e) * 0.5);
}

// ---- inverse hyperbolic functions: by logarithms, near 0 by their series ----

TT_INLINE float asinh(float x) {
  const double d = x;
  const double z = d * d;
  const double power = libm::fabs(d) + libm::sqrt(z + 1.0);
  double n;
  const double y = log_of_part(power, &n);
  const float large = log_or_special(power, n * kLn2 + y);
  const double small = d * (1.0 - z * (1.0 / 6 - z * (3.0 / 40)));
  return libm::fabsf(x) < 0x1p-7f ? float(small) : libm::copysignf(large, x);
}
TT_INLINE float acosh(float x) {  // x - 1 is exact in double
  const double t = double(x) - 1.0;
  const double power = 1.0 + (t + libm::sqrt(t * (t + 2.0)));
  double n;
  const double y = log_of_part(power, &n);
  return log_or_special(x < 1 ? -1.0 : power, n * kLn2 + y);
}
TT_INLINE float atanh(float x) {
  const double d = x;
  const double z = d * d;
  const double a = libm::fabs(d);
  const double power = (1.0 + a) / (1.0 - a);
  double n;
  const double y = log_of_part(power, &n);
  const float large = log_or_special(power, 0.5 * (n * kLn2 + y));
  const double small = d * (1.0 + z * (1.0 / 3 + z * (1.0 / 5)));
  return libm::fabsf(x) < 0x1p-7f ? float(small) : libm::copysignf(large, x);
}

// ---- powers ----

#if TT_VEC_BYTES > 16
// |a|^b = 2^(b log2 |a|); 2^r with |r| <= 1/2: 2^-34.
TT_INLINE float pow(float a, float b) {
  const double x = a;
  const double y = b;
  const double size = libm::fabs(x);
  double n;
  const double part = log_of_part(size, &n);
  const double not_zero = size < kInf ? n + part * 0x1.71547652b82fep+0 : size;
  const double exponent = y * (size == 0 ? -kInf : not_zero);
  const double not_above = exponent > 160.0 ? 160.0 : exponent;
  const double c = not_above < -160.0 ? -160.0 : not_above;
  const double shifted = c + 0x1.8p52;
  const double r = c - (shifted - 0x1.8p52);
  const double p = polynomial(r, 0x1.ffffffffa7135p-1, 0x1.62e42fef9cc69p-1, 0x1.ebfbe0aa03df0p-3,
                              0x1.c6b08da70cce3p-5, 0x1.3b29d8bb0b97ep-7, 0x1.5d877598350dep-10,
                              0x1.446c79efd4834p-13, 0x1.00c0e4e15189cp-16);
  const double power = p * bits_f64((f64_bits(shifted) << 52) + f64_bits(1.0));
  const double half = y * 0.5;
  const bool is_integer = libm::trunc(y) == y;
  const bool is_odd = is_integer & (libm::trunc(half) != half);
  const double with_sign = libm::copysign(power, is_odd ? x : 1.0);
  const bool is_real = is_integer | !((x < 0) & (size < kInf));
  const bool is_one = (y == 0) | (x == 1) | ((x == -1) & (libm::fabs(y) == kInf));
  const double real = is_real ? with_sign : kNan;
  return float(is_one ? 1.0 : real);
}
#else
TT_INLINE float pow(float a, float b) { return libm::powf(a, b); }
#endif

// ---- tan: for |x| <= kEasyAngle ----

TT_INLINE float tan(float x) {
  const double shifted = double(x) * 0x1.45f306dc9c883p-1 + 0x1.8p52;
  const double n = shifted - 0x1.8p52;
  const double r = ((double(x) - n * 0x1.921fbp+0) - n * 0x1.5110bp-22) - n * 0x1.18469898cc517p-44;
  const double z = r * r;
  const double s =
      r + r * z * polynomial(z, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800);
  const double c = 1.0 + z * polynomial(z, -0.5, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800,
                                        1.0 / 479001600);
  const bool odd = f64_bits(shifted) & 1;
  const double top = odd ? -c : s;
  const double bottom = odd ? s : c;
  const float y = float(top / bottom);
  return x == 0 ? x : y;
}
TT_INLINE float tan_hard(float x) { return float(libm::tan(double(x))); }

// ---- inverse circular functions ----

// asin(s) for 0 <= s <= 1/2, z = s^2: 2^-36.
TT_INLINE double asin_part(double s, double z) {
  return s + s * z *
                 polynomial(z, 0x1.55555554ee47bp-3, 0x1.333334ceb6520p-4, 0x1.6db5cfb6af282p-5,
                            0x1.f208eb1ddd0fbp-6, 0x1.6a9e3262c37dbp-6, 0x1.3c5053c2afce1p-6,
                            0x1.64b97e009bd03p-8, 0x1.e0231588b1e55p-6);
}
// For 0 <= a <= 1: asin(a), or half of acos(a) if a > 1/2.
TT_INLINE double asin_or_half_acos(double a) {
  const double z = a > 0.5 ? (1.0 - a) * 0.5 : a * a;
  return asin_part(a > 0.5 ? libm::sqrt(z) : a, z);
}
TT_INLINE float asin(float x) {
  const double a = libm::fabs(double(x));
  const double p = asin_or_half_acos(a);
  return float(libm::copysign(a > 0.5 ? kHalfPi - 2.0 * p : p, x));
}
TT_INLINE float acos(float x) {
  const double a = libm::fabs(double(x));
  const double p = asin_or_half_acos(a);
  const double outer = x < 0 ? kPi - 2.0 * p : 2.0 * p;
  return float(a > 0.5 ? outer : kHalfPi - libm::copysign(p, x));
}
// atan(t) = t P(t^2) for t <= 1; P: 2^-33.
TT_INLINE float atan(float x) {
  const double a = libm::fabs(double(x));
  const double t = a > 1.0 ? 1.0 / a : a;
  const double z = t * t;
  const double y =
      t * polynomial(z, 0x1.ffffffff64898p-1, -0x1.555553f671b9ap-2, 0x1.999914dc909cfp-3,
                     -0x1.2488519fa5a60p-3, 0x1.c6533dfc9a77bp-4, -0x1.6f95036b2d2f5p-4,
                     0x1.2811fdeff7003p-4, -0x1.ba035c4e8d652p-5, 0x1.151ab904c9279p-5,
                     -0x1.0354cc23b8650p-6, 0x1.3625e8d6eefb9p-8, -0x1.5bcf6e5741041p-11);
  return float(libm::copysign(a > 1.0 ? kHalfPi - y : y, x));
}
// ---- erfc ----

// erfc(a) = exp(-a^2) u P(u), a >= 0, u = 3 / (3 + a): 2^-33 for a <= 10.2, beyond which a float is
// 0.
TT_INLINE double erfc_part(double a) {
  const double u = 3.0 / (3.0 + a);
  const double p = polynomial(u, 0x1.8129b46355957p-3, 0x1.80e66e16f4c71p-3, 0x1.6eca80139e9dfp-3,
                              0x1.2b656d478d7b8p-3, 0x1.696de67d5845cp-3, -0x1.175963a816350p-4,
                              0x1.b4b8be0107f79p-2, -0x1.26bf3d244cf1fp-1, 0x1.5c69d9e56d29cp-1,
                              -0x1.fec4f55796e72p-2, 0x1.7c0cf3bb2bfcdp-3, -0x1.c501e494e31b9p-6);
  return exp(-a * a) * u * p;
}
TT_INLINE float erfc(float x) {
  const double y = erfc_part(libm::fabs(double(x)));
  return float(x < 0 ? 2.0 - y : y);
}

// ---- rounding to integers ----

// Ties to even. A float (double) from 2^23 (2^52) on has no fraction.
TT_INLINE float rint(float x) {
  const float a = libm::fabsf(x);
  const float y = (a + 0x1p23f) - 0x1p23f;
  return a < 0x1p23f ? libm::copysignf(y, x) : x;
}
TT_INLINE double rint(double x) {
  const double a = libm::fabs(x);
  const double y = (a + 0x1p52) - 0x1p52;
  return a < 0x1p52 ? libm::copysign(y, x) : x;
}
TT_INLINE float ceil(float x) { return -floor(-x); }
TT_INLINE double ceil(double x) { return -floor(-x); }

// ---- from the C library ----

#define TT_LIBM(name) \
  TT_INLINE double name(double x) { return __builtin_##name(x); }
TT_LIBM(log2)
TT_LIBM(log10)
TT_LIBM(log1p)
TT_LIBM(exp2)
TT_LIBM(expm1)
TT_LIBM(sinh)
TT_LIBM(cosh)
TT_LIBM(asinh)
TT_LIBM(acosh)
TT_LIBM(atanh)
TT_LIBM(tan)
TT_LIBM(asin)
TT_LIBM(acos)
TT_LIBM(atan)
TT_LIBM(erf)
TT_LIBM(erfc)
#undef TT_LIBM
TT_INLINE double tan_hard(double x) { return tan(x); }
// log(1 + exp(x)) for x <= 0.
TT_INLINE double log1p_exp(double x) { return log1p_of_part(exp(x)); }
TT_INLINE float expm1_of_negative(float x) { return expm1(x); }
#if TT_FUSED
TT_INLINE float log1p_exp(float x) { return log1p_exp_lanes(x); }
#else
TT_INLINE float log1p_exp(float x) { return log1p(exp(x)); }
#endif

}  // namespace math
TT_ISA_END
