// Special functions of floats, as doubles, where vectors are long: branch-free, with errors below
// 2^-28 of the result but next to its zeros (2^-46). trigamma also serves double. Included by
// functors/special.h, whose functions of double serve the rest.
#pragma once

TT_ISA_BEGIN
namespace math {

// sin(pi r) for |r| <= 1/2: 2^-53.
TT_INLINE double sin_pi_part(double r) {
  return r * polynomial(r * r, 0x1.921fb54442d18p+1, -0x1.4abbce625be52p+2, 0x1.466bc6775aa7dp+1,
                        -0x1.32d2cce627c86p-1, 0x1.5078348551854p-4, -0x1.e3074dfaf87afp-8,
                        0x1.e8f3675ee37ddp-12, -0x1.6f7acdb8f6580p-16, 0x1.9d462020fcc78p-21);
}
// x without the nearest integer: exact.
TT_INLINE double without_period(double x) { return x - libm::floor(x + 0.5); }

// ---- the Gamma function ----
// Asymptotic series serve x >= 10. Smaller arguments are increased by 10: with w = x (x + 9) the
// factors x … x + 9 are, in pairs, w + c with c = 0, 8, 14, 18, 20.

TT_INLINE double lgamma_of_float(double d) {
  const double a = libm::fabs(d);
  const bool low = a < 10;
  const double w = a * (a + 9.0);
  const double product = w * (w + 8.0) * (w + 14.0) * (w + 18.0) * (w + 20.0);
  const double above = low ? a + 10.0 : a;
  const double factors = low ? product : 1.0;
  const double stirling = (above - 0.5) * long_log(above) - above + special::stirling_rest(above);
  const double of_above = stirling + 0x1.d67f1c864beb5p-1;  // log sqrt(2 pi)
  // Below 0: Gamma(-a) Gamma(a) = -pi / (a sin(pi a)).
  const double sine = libm::fabs(sin_pi_part(without_period(a)));
  const double divisor = d < 0 ? factors * kPi / (a * sine) : factors;
  const double difference = of_above - long_log(divisor);
  const double far = d < 0 ? -difference : difference;
  // The Taylor series at the zeros 1 and 2.
  const bool near_one = d < 1.5;
  const double t = d - (near_one ? 1.0 : 2.0);
  const double c1 = near_one ? -0x1.2788cfc6fb619p-1 : 0x1.b0ee6072093cep-2;
  const double c2 = near_one ? 0x1.a51a6625307d3p-1 : 0x1.4a34cc4a60fa6p-2;
  const double c3 = near_one ? -0x1.9a4d55beab2d7p-2 : -0x1.13e001a557607p-4;
  const double c4 = near_one ? 0x1.151322ac7d848p-2 : 0x1.51322ac7d8483p-6;
  const double near = t * polynomial(t, c1, c2, c3, c4);
  const double y = libm::fabs(t) < 0x1p-8 ? near : far;
  const double finite = a < kInf ? y : a;
  const bool is_pole = (d <= 0) & (libm::floor(d) == d);
  return is_pole ? kInf : finite;
}

struct Fraction {
  double top, bottom;
};
// f + numerator / divisor
TT_INLINE Fraction plus_quotient(Fraction f, double numerator, double divisor) {
  return {mul_add(f.top, divisor, f.bottom * numerator), f.bottom * divisor};
}

TT_INLINE double digamma_of_float(double d) {
  const double a = d < 0 ? 1.0 - d : d;
  const bool low = a < 10;
  const double w = a * (a + 9.0);
  // The sum of 1 / (a + k), k < 10, by 2 a + 9, is that of 1 / (w + c).
  Fraction f = {1.0, w};
  f = plus_quotient(f, 1.0, w + 8.0);
  f = plus_quotient(f, 1.0, w + 14.0);
  f = plus_quotient(f, 1.0, w + 18.0);
  f = plus_quotient(f, 1.0, w + 20.0);
  const double sum = (2.0 * a + 9.0) * (f.top / f.bottom);
  const double above = low ? a + 10.0 : a;
  const double y = special::digamma_series(above, long_log(above)) - (low ? sum : 0.0);
  const double r = without_period(d);
  const double cotangent = kPi * sin_pi_part(0.5 - libm::fabs(r)) / sin_pi_part(r);
  const double result = d < 0 ? y - cotangent : y;
  const double finite = a < kInf ? result : a;
  const bool is_pole = (d < 0) & (libm::floor(d) == d);
  return is_pole ? kNan : finite;
}

// f + 1 / (a + k)^2 + 1 / (a + 9 - k)^2, c = k (9 - k)
TT_INLINE Fraction plus_squares(Fraction f, double w, double c) {
  const double divisor = w + c;
  return plus_quotient(f, 2.0 * w + (81.0 - 2.0 * c), divisor * divisor);
}
// The derivative of digamma.
TT_INLINE double trigamma(double x) {
  const double a = x < 0 ? 1.0 - x : x;
  const bool low = a < 10;
  const double w = a * (a + 9.0);
  Fraction f = {2.0 * w + 81.0, w * w};
  f = plus_squares(f, w, 8.0);
  f = plus_squares(f, w, 14.0);
  f = plus_squares(f, w, 18.0);
  f = plus_squares(f, w, 20.0);
  const double above = low ? a + 10.0 : a;
  const double r = 1.0 / above;  // A&S 6.4.12 (functors/special.h)
  const double z = r * r;
  const double series = polynomial(z, 1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66,
                                   -691.0 / 2730, 7.0 / 6, -3617.0 / 510);
  const double of_above = r + z * (0.5 + r * series);
  const double y = low ? of_above + f.top / f.bottom : of_above;
  const double sine = sin_pi_part(without_period(x));
  const double reflected = kPi * kPi / (sine * sine) - y;
  const double result = x < 0 ? reflected : y;
  return x == -kInf ? kInf : result;
}

// ---- the normal distribution ----

TT_INLINE double ndtr_of_float(double x) {
  const double tail = 0.5 * erfc_part(libm::fabs(x) * 0x1.6a09e667f3bcdp-1);
  return x < 0 ? tail : 1.0 - tail;
}

// The inverse of erfc for 1e-46 <= q <= 1/2: t P(1 / (t + 1.25)), t = sqrt(-log(q)); P: 2^-31.
TT_INLINE double erfc_inverse(double q) {
  const double t = libm::sqrt(-long_log(q));
  const double p = polynomial(1.0 / (t + 1.25), 0x1.0008da4a6b8b8p+0, -0x1.164424dc5363fp-6,
                              -0x1.de37e544fbec5p+0, 0x1.244513cf69014p+2, -0x1.1c623bffc8e8bp+5,
                              0x1.65db93f2734b4p+7, -0x1.6e41c20ae614ap+9, 0x1.21ba161027cbcp+11,
                              -0x1.59c32151727b7p+12, 0x1.32950b439ba45p+13, -0x1.869dcbe7c54a1p+13,
                              0x1.54ae705151ec5p+13, -0x1.723a3acf2d56ep+12, 0x1.7e8568dffc4fcp+10);
  return t * p;
}
// The inverse of erf for |y| <= 1/2: 2^-34.
TT_INLINE double erf_inverse(double y) {
  return y * polynomial(y * y, 0x1.c5bf891af8f74p-1, 0x1.db29fddeb64a0p-3, 0x1.053b4cb22775fp-3,
                        0x1.62bb5ca2755a7p-4, 0x1.06cd4924ba7ebp-4, 0x1.dd0ef99599050p-5,
                        0x1.dbfdf76a6c8ddp-7, 0x1.85e6ac585aec5p-4);
}
// The inverse of erf at y = 1 - q or q - 1, whichever has the sign of `sign`.
TT_INLINE double erf_inverse_of(double y, double q, double sign) {
  const double far = libm::copysign(erfc_inverse(q), sign);
  const double inside = q > 0.5 ? erf_inverse(y) : far;
  const double finite = q > 0 ? inside : libm::copysign(kInf, sign);
  return q >= 0 ? finite : kNan;
}
TT_INLINE double erfinv_of_float(double y) { return erf_inverse_of(y, 1.0 - libm::fabs(y), y); }
TT_INLINE double ndtri_of_float(double x) {
  const double y = 2.0 * x;
  const double q = y < 1.0 ? y : 2.0 - y;
  return 0x1.6a09e667f3bcdp+0 * erf_inverse_of(y - 1.0, q, y - 1.0);
}

}  // namespace math
TT_ISA_END

#if TT_VECTOR_MATH
#include "kernels/cpu/math/erfinv.h"
#endif
