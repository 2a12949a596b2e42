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

TT_INLINE Wide power_of_two(Bits k) { return Wide((k + 1023) << 52); }
// As exp of a double in cpu/math/math.h.
TT_NOINLINE inline Wide exp(Wide x) {
  static constexpr double kTerms[] = {0.5,
                                      0x1.555555555555bp-3,
                                      0x1.5555555555502p-5,
                                      0x1.111111110ec1ap-7,
                                      0x1.6c16c16c30746p-10,
                                      0x1.a01a01b398cb5p-13,
                                      0x1.a01a01360d25fp-16,
                                      0x1.71ddefdcfab96p-19,
                                      0x1.27e5b4d149770p-22,
                                      0x1.af6c6064bafd2p-26,
                                      0x1.1e3d09f40f638p-29,
                                      0.0};
  const Wide not_above = chosen(x > all(710.0), all(710.0), x);
  const Wide c = chosen(not_above < all(-746.0), all(-746.0), not_above);
  const Wide shifted = c * 0x1.71547652b82fep+0 + 0x1.8p52;
  const Wide n = shifted - 0x1.8p52;
  const Wide r = (c - n * 0x1.62e42fefa3000p-1) - n * 0x1.3de6af278ece6p-42;
  const Wide y = (r + r * r * polynomial(r, kTerms)) + 1.0;
  const Bits k = Bits(shifted) - 0x4338000000000000;
  const Bits half = k >> 1;
  return y * power_of_two(half) * power_of_two(k - half);
}
// log(x) + lost: x = 2^n (1 + f), 1 + f in [sqrt(1/2), sqrt(2)); log(1 + f) = f - (h - s (h +
// z Q(z))), where h = f^2 / 2, s = f / (2 + f), z = s^2. Within 1 ulp. lost: below the last bit of
// the logarithm.
TT_NOINLINE inline Wide log_and(Wide x, Wide lost) {
  static constexpr double kTerms[] = {
      0x1.5555555555555p-1, 0x1.9999999999a38p-2, 0x1.2492492476cccp-2, 0x1.c71c720159177p-3,
      0x1.745cf9048dd93p-3, 0x1.3b1c355a8f7f5p-3, 0x1.0fbe95d7158cbp-3, 0x1.0c039c499cc37p-3};
  constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd;
  constexpr int64_t kOne = 0x3ff0000000000000;
  const auto tiny = x < all(0x1p-1022);
  const auto moved = Vec<uint64_t>(chosen(tiny, x * 0x1p54, x)) + uint64_t(kOne - kRootHalf);
  const Bits u = Bits(moved);  // nan and inf are replaced below
  const Wide exponent = Wide((u >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
  const Wide n = chosen(tiny, exponent - 54.0, exponent);
  const Wide f = Wide((u & 0xfffffffffffff) + kRootHalf) - 1.0;
  const Wide h = f * f * 0.5;
  const Wide s = f / (f + 2.0);
  const Wide z = s * s;
  const Wide low = s * (h + z * polynomial(z, kTerms)) + (n * 0x1.ef35793c76730p-45 + lost);
  const Wide y = n * 0x1.62e42fefa3800p-1 - ((h - low) - f);
  const Wide negative = chosen(x == x, all(kNan), x);
  const Wide not_positive = chosen(x == all(0.0), all(-kInf), negative);
  return chosen(x > all(0.0), chosen(x < all(kInf), y, x), not_positive);
}
TT_INLINE Wide log(Wide x) { return log_and(x, Wide{}); }
// By the logarithm of u = 1 + x and what rounding took from u.
TT_INLINE Wide log1p(Wide x) {
  const Wide u = x + 1.0;
  const Wide larger = chosen(x > all(1.0), x, all(1.0));
  const Wide smaller = chosen(x > all(1.0), all(1.0), x);
  return log_and(u, (smaller - (u - larger)) / u);
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
