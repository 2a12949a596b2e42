// Functions of vectors of doubles, for functors/series.h.
#pragma once

#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN
namespace series {

using Wide = Vec<double>;
using Bits = Vec<int64_t>;
TT_INLINE Wide all(double x) { return splat(x); }
TT_INLINE Wide square_root(Wide x) { return vsqrt(x); }
TT_INLINE Wide magnitude(Wide x) { return Wide(Bits(x) & INT64_MAX); }
TT_INLINE Wide with_sign(Wide x, Wide sign) {
  return Wide((Bits(x) & INT64_MAX) | (Bits(sign) & INT64_MIN));
}
using TT_NS::TT_ISA::chosen;
TT_INLINE bool is_any(Bits mask) { return sign_bits(mask) != 0; }
TT_INLINE bool is_all(Bits mask) { return sign_bits(~mask) == 0; }
TT_INLINE Wide fused(Wide a, Wide b, Wide c) { return fma(a, b, c); }

// Even and odd powers apart, so that two sums are under way.
TT_NOINLINE inline Wide polynomial_of(Wide x, const double* c, int n) {
  const Wide square = x * x;
  Wide even{};
  Wide odd = all(c[n - 1]);
  for (int k = n - 2; k > 0; k -= 2) {
    even = fma(even, square, all(c[k]));
    odd = fma(odd, square, all(c[k - 1]));
  }
  return fma(fma(even, x, odd), x, all(c[0]));
}
template <int n> TT_INLINE Wide polynomial(Wide x, const double (&c)[n]) {
  static_assert(n % 2 == 0);
  return polynomial_of(x, c, n);
}

// The terms c[kFirst], c[kFirst + kStep], … of powers of x^kStep.
template <int kStep, int kFirst, int n> TT_INLINE Wide terms_of(Wide power, const double (&c)[n]) {
  constexpr int kLast = kFirst + (n - 1 - kFirst) / kStep * kStep;
  Wide y = all(c[kLast]);
  TT_UNROLL_BY(32)
  for (int k = kLast - kStep; k >= kFirst; k -= kStep) y = fma(y, power, all(c[k]));
  return y;
}
// The polynomial without a call: two or, if it is long, four sums are under way.
template <int n> TT_INLINE Wide inline_polynomial(Wide x, const double (&c)[n]) {
  const Wide square = x * x;
  if constexpr (n < 20) {
    return fma(terms_of<2, 1>(square, c), x, terms_of<2, 0>(square, c));
  } else {
    const Wide fourth = square * square;
    const Wide low = fma(terms_of<4, 1>(fourth, c), x, terms_of<4, 0>(fourth, c));
    const Wide high = fma(terms_of<4, 3>(fourth, c), x, terms_of<4, 2>(fourth, c));
    return fma(high, square, low);
  }
}

TT_INLINE Wide power_of_two(Bits k) { return Wide((k + 1023) << 52); }
// What rounding took from square = a^2.
TT_INLINE Wide rest_of_square(Wide a, Wide square) {
#if TT_FUSED
  return fma(a, a, -square);
#else
  const Wide high = Wide(Bits(a) & ~int64_t(0x7ffffff));  // its square is exact
  return (high * high - square) + (a - high) * (a + high);
#endif
}
// NaN stays NaN.
TT_INLINE Wide at_most(Wide x, double most) { return vmin(all(most), x); }
TT_INLINE Wide at_least(Wide x, double least) { return vmax(all(least), x); }
TT_INLINE Wide between(Wide x, double least, double most) {
  return at_least(at_most(x, most), least);
}
// x 2^n for an integer n in [-2044, 2046].
TT_INLINE Wide scaled(Wide x, Wide n) {
#if TT_VEC_BYTES > 32
  return times_power_of_two(x, n);
#else
  const Bits whole = Bits(n + 0x1.8p52) - 0x4338000000000000;
  const Bits half = whole >> 1;
  return x * power_of_two(half) * power_of_two(whole - half);
#endif
}
// As exp of a double in cpu/math/math.h: Q in exp(r) = 1 + r + r^2 / 2 + r^3 Q(r), and the
// reduction.
constexpr double kExpTerms[] = {0x1.555555555555bp-3,  0x1.5555555555502p-5,  0x1.111111110ec1ap-7,
                                0x1.6c16c16c30746p-10, 0x1.a01a01b398cb5p-13, 0x1.a01a01360d25fp-16,
                                0x1.71ddefdcfab96p-19, 0x1.27e5b4d149770p-22, 0x1.af6c6064bafd2p-26,
                                0x1.1e3d09f40f638p-29};
struct Reduced {
  Wide n, rest, lost;  // rest: x - n log(2); lost: what rounding took from it
};
TT_INLINE Reduced reduced_by_log2(Wide x) {
  const Wide shifted = fma(x, all(0x1.71547652b82fep+0), all(0x1.8p52));
  const Wide n = shifted - 0x1.8p52;
  const Wide above = fma(n, all(-0x1.62e42fefa3000p-1), x);
  const Wide rest = fma(n, all(-0x1.3de6af278ece6p-42), above);
  const Wide lost = fma(n, all(-0x1.3de6af278ece6p-42), above - rest);
  return {n, rest, lost};
}
// Returns m - 1 and sets *n, where exp(x + lost) = 2^n m; x in [-746, 710].
TT_INLINE Wide exp_rest(Wide x, Wide lost, Wide* n) {
  const Reduced reduced = reduced_by_log2(x);
  *n = reduced.n;
  const Wide r = reduced.rest + lost;
  return fma(r * r, fma(r, inline_polynomial(r, kExpTerms), all(0.5)), r);
}
#if TT_VEC_BYTES > 32
// 2^(k / 16), k < 16, and what rounding took from it; Q in exp(r) = 1 + r + r^2 Q(r) for |r| <=
// log(2) / 32: 2^-56. exp(x) = 2^n exp(r) for n of sixteenths, within 0.7 ulp.
alignas(64) constexpr double kSixteenths[] = {1.0,
                                              0x1.0b5586cf9890fp+0,
                                              0x1.172b83c7d517bp+0,
                                              0x1.2387a6e756238p+0,
                                              0x1.306fe0a31b715p+0,
                                              0x1.3dea64c123422p+0,
                                              0x1.4bfdad5362a27p+0,
                                              0x1.5ab07dd485429p+0,
                                              0x1.6a09e667f3bcdp+0,
                                              0x1.7a11473eb0187p+0,
                                              0x1.8ace5422aa0dbp+0,
                                              0x1.9c49182a3f090p+0,
                                              0x1.ae89f995ad3adp+0,
                                              0x1.c199bdd85529cp+0,
                                              0x1.d5818dcfba487p+0,
                                              0x1.ea4afa2a490dap+0};
alignas(64) constexpr double kSixteenthsLost[] = {0.0,
                                                  0x1.8a62e4adc610bp-54,
                                                  -0x1.19041b9d78a76p-55,
                                                  0x1.9b07eb6c70573p-54,
                                                  0x1.6f46ad23182e4p-55,
                                                  0x1.ada0911f09ebcp-55,
                                                  0x1.d4397afec42e2p-56,
                                                  0x1.6324c054647adp-54,
                                                  -0x1.bdd3413b26456p-54,
                                                  -0x1.41577ee04992fp-55,
                                                  0x1.6e9f156864b27p-54,
                                                  0x1.c7c46b071f2bep-56,
                                                  0x1.7a1cd345dcc81p-54,
                                                  0x1.11065895048ddp-55,
                                                  0x1.2ed02d75b3707p-55,
                                                  -0x1.e9c23179c2893p-54};
struct Exp {
  Wide whole, part, n;  // 2^n (whole + part), by the floor of n
};
// exp(x + lost), x in [-1000, 710]
TT_INLINE Exp exp_parts(Wide x, Wide lost) {
  const Wide shifted = fma(x, all(0x1.71547652b82fep+0), all(0x1.8p48));
  const Bits entry = Bits(shifted);
  const Wide n = shifted - 0x1.8p48;
  const Wide above = fma(n, all(-0x1.62e42fefa3000p-1), x);
  const Wide r = fma(n, all(-0x1.3de6af278ece6p-42), above) + lost;
  Wide q = fma(r, all(0x1.6c17ec4534374p-10), all(0x1.11123bea4b9eap-7));
  q = fma(q, r, all(0x1.55555554f1a51p-5));
  q = fma(q, r, all(0x1.555555548df4ap-3));
  q = fma(q, r, all(0.5));
  const Wide whole = look_up(kSixteenths, entry);
  const Wide lost_of_whole = look_up(kSixteenthsLost, entry);
  return {whole, fma(whole, fma(r * r, q, r), lost_of_whole), n};
}
TT_INLINE Wide inline_exp(Wide x) {
  const Exp e = exp_parts(between(x, -746.0, 710.0), all(-0.0));  // adding -0 is removed
  return times_power_of_two(e.whole + e.part, e.n);
}
#else
TT_INLINE Wide inline_exp(Wide x) {
  Wide n;
  const Wide rest = exp_rest(between(x, -746.0, 710.0), Wide{}, &n);
  return scaled(rest + 1.0, n);
}
#endif
TT_NOINLINE inline Wide exp(Wide x) { return inline_exp(x); }
struct Expm1 {
  Wide whole, lost, n;  // 2^n (whole + lost); lost: below the last bit of whole
};
// exp(x) - 1 = 2^n ((1 - 2^-n) + p), p = r + r^2 / 2 + r^3 Q(r); sums have two parts.
TT_INLINE Expm1 expm1_parts(Wide x) {
  const Reduced reduced = reduced_by_log2(between(x, -60.0, 710.0));
  const Wide r = reduced.rest;
  const Wide square = r * r;
  const Wide half = 0.5 * square;
  const Wide half_lost = 0.5 * rest_of_square(r, square);
  const Wide third = r * square * inline_polynomial(r, kExpTerms);
  const Wide sum = r + half;
  const Wide sum_lost = ((r - sum) + half) + (half_lost + (third + reduced.lost));
  const Wide power = scaled(all(1.0), -reduced.n);
  const Wide one = 1.0 - power;
  const Wide one_lost = 1.0 - (one + power);
  const Wide y = one + sum;
  const Wide y_lost = ((one - y) + sum) + (sum_lost + one_lost);
  const Wide whole = y + y_lost;
  return {whole, (y - whole) + y_lost, reduced.n};
}
// Within 1 ulp.
TT_INLINE Wide expm1(Wide x) {
  const Expm1 e = expm1_parts(x);
  return with_sign(scaled(e.whole, e.n), x);
}
#if TT_FUSED
// tanh(|x|) = -m / (m + 2), m = exp(-2 |x|) - 1. Both have two parts. What the quotient leaves is
// multiplied by the line that is nearest to 1 / (m + 2) on [1, 2]. Within 0.7 ulp.
TT_INLINE Wide tanh(Wide x) {
  const Expm1 e = expm1_parts(-2.0 * magnitude(x));
  const Wide m = scaled(e.whole, e.n);
  const Wide m_lost = scaled(e.lost, e.n);
  const Wide d = m + 2.0;
  const Wide d_lost = ((2.0 - d) + m) + m_lost;
  const Wide q = m / d;
  const Wide rest = fma(-q, d, m) + (m_lost - q * d_lost);
  return with_sign(fma(rest, 1.45711 - 0.5 * d, q), x);
}
#endif
constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd;
constexpr int64_t kOne = 0x3ff0000000000000;
constexpr double kLogTerms[] = {0x1.5555555555555p-1, 0x1.9999999999a38p-2, 0x1.2492492476cccp-2,
                                0x1.c71c720159177p-3, 0x1.745cf9048dd93p-3, 0x1.3b1c355a8f7f5p-3,
                                0x1.0fbe95d7158cbp-3, 0x1.0c039c499cc37p-3};
// log(x) + lost: x = 2^n (1 + f), 1 + f in [sqrt(1/2), sqrt(2)); log(1 + f) = f - (h - s (h +
// z Q(z))), where h = f^2 / 2, s = f / (2 + f), z = s^2. Within 1 ulp. lost: below the last bit of
// the logarithm.
TT_NOINLINE inline Wide log_and(Wide x, Wide lost) {
  const auto tiny = x < all(0x1p-1022);
  const auto moved = Vec<uint64_t>(chosen(tiny, x * 0x1p54, x)) + uint64_t(kOne - kRootHalf);
  const Bits u = Bits(moved);  // nan and inf are replaced below
  const Wide exponent = Wide((u >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
  const Wide n = chosen(tiny, exponent - 54.0, exponent);
  const Wide f = Wide((u & 0xfffffffffffff) + kRootHalf) - 1.0;
  const Wide h = f * f * 0.5;
  const Wide s = f / (f + 2.0);
  const Wide z = s * s;
  const Wide low = s * (h + z * polynomial(z, kLogTerms)) + (n * 0x1.ef35793c76730p-45 + lost);
  const Wide y = n * 0x1.62e42fefa3800p-1 - ((h - low) - f);
  const Wide negative = chosen(x == x, all(kNan), x);
  const Wide not_positive = chosen(x == all(0.0), all(-kInf), negative);
  return chosen(x > all(0.0), chosen(x < all(kInf), y, x), not_positive);
}
TT_INLINE Wide log(Wide x) { return log_and(x, Wide{}); }
// log(x) for normal x > 0, as whole + part with an absolute error of 2^-53: part is below 1/2.
struct Log {
  Wide whole, part;
};
TT_INLINE Log short_log(Wide x) {
  const Bits u = Bits(x) + (kOne - kRootHalf);
  const Wide n = Wide((u >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
  const Wide f = Wide((u & 0xfffffffffffff) + kRootHalf) - 1.0;
  const Wide s = f / (f + 2.0);
  const Wide z = s * s;
  const Wide part = fma(s * z, inline_polynomial(z, kLogTerms), 2.0 * s);
  return {n * 0x1.62e42fefa3800p-1, fma(n, all(0x1.ef35793c76730p-45), part)};
}
// By the logarithm of u = 1 + x and what rounding took from u. Within 1 ulp.
TT_INLINE Wide log1p(Wide x) {
  const Wide u = x + 1.0;
  const Wide larger = chosen(x > all(1.0), x, all(1.0));
  const Wide smaller = chosen(x > all(1.0), all(1.0), x);
  return with_sign(log_and(u, (smaller - (u - larger)) / u), x);
}
// By Taylor series after a reduction by pi / 2 in three parts, of 22 bits but for the last one; by
// the C library beyond 2^30.
TT_NOINLINE inline void sine_and_cosine(Wide x, Wide* sine, Wide* cosine) {
  static constexpr double kSine[] = {
      -1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
      -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
  static constexpr double kCosine[] = {
      1.0 / 24,        -1.0 / 720,         1.0 / 40320,          -1.0 / 3628800,
      1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000, 0.0};
  const Wide shifted = x * 0x1.45f306dc9c883p-1 + 0x1.8p52;
  const Wide n = shifted - 0x1.8p52;
  const Wide r = ((x - n * 0x1.921fbp+0) - n * 0x1.5110bp-22) - n * 0x1.18469898cc517p-44;
  const Wide z = r * r;
  const Wide s = r + r * z * polynomial(z, kSine);
  const Wide c = (1.0 - 0.5 * z) + z * z * polynomial(z, kCosine);
  const Bits k = Bits(shifted);
  const auto odd = (k & 1) != Bits{};
  const Wide sine_of = chosen(odd, c, s);
  const Wide cosine_of = chosen(odd, s, c);
  *sine = Wide(Bits(sine_of) ^ ((k & 2) << 62));
  *cosine = Wide(Bits(cosine_of) ^ (((k + 1) & 2) << 62));
  for (int l = 0; l < kLanes<double>; l++) {
    const double each = x[l];
    if (TT_LIKELY(each < 0x1p30 && each > -0x1p30)) continue;
    (*sine)[l] = libm::sin(each);
    (*cosine)[l] = libm::cos(each);
  }
}

}  // namespace series
TT_ISA_END

#include "kernels/cpu/math/wide_erf.h"
