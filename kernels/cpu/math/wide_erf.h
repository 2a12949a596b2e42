// erf, gelu and the inverse of erf, of vectors of doubles. The coefficients are tt's own: rational
// ones interpolate at Chebyshev nodes of (a - 3) / (a + 3), others at those of their argument,
// computed in 50 digits. Included by wide.h.
#pragma once

#if TT_VEC_BYTES > 32
#include "kernels/cpu/math/erf_table.h"
#endif

TT_ISA_BEGIN
namespace series {

// kErfcTop(a) / kErfcBottom(a) is exp(a^2) erfc(a) for 0 <= a <= 30, within 2^-55. kTailTop(t) /
// kTailBottom(t) is exp(t^2 / 2) (1 - Phi(t)), of t = sqrt(2) a.
constexpr double kErfcTop[] = {1.0,
                               0x1.394bb1504b2ddp+1,
                               0x1.7a90b6f49319cp+1,
                               0x1.24d732d2846a7p+1,
                               0x1.3eb38195f73d2p+0,
                               0x1.fc1c9dbce394ap-2,
                               0x1.2c58b897f4f26p-3,
                               0x1.04954114f366ep-5,
                               0x1.3f428db1ff30bp-8,
                               0x1.f773229c62660p-12,
                               0x1.8a9768157f519p-16};
constexpr double kErfcBottom[] = {1.0,
                                  0x1.c9ba6bd26009cp+1,
                                  0x1.7f8733b4fc360p+2,
                                  0x1.8e772d886070dp+2,
                                  0x1.1dee586b9b861p+2,
                                  0x1.2a88165533c55p+1,
                                  0x1.d084996ff1aa4p-1,
                                  0x1.0e932353810c0p-2,
                                  0x1.d15b6a7e15b70p-5,
                                  0x1.1b9eaa798cc9ap-7,
                                  0x1.be2bb463ef606p-11,
                                  0x1.5db292bce85b9p-15};
constexpr double kTailTop[] = {0x1.0000000000000p-1,  0x1.bb11265dff2ddp-1,  0x1.7a90b6f49319cp-1,
                               0x1.9e23a0feb9b40p-2,  0x1.3eb38195f73d2p-3,  0x1.674a0eaf573aap-5,
                               0x1.2c58b897f4f26p-7,  0x1.708521ced28bep-10, 0x1.3f428db1ff30bp-13,
                               0x1.63fe238d9d326p-17, 0x1.8a9768157f519p-22};
constexpr double kTailBottom[] = {1.0,
                                  0x1.43a9a7fe50709p+1,
                                  0x1.7f8733b4fc360p+1,
                                  0x1.19c1f79a2933ep+1,
                                  0x1.1dee586b9b861p+0,
                                  0x1.a62ffb0cc140bp-2,
                                  0x1.d084996ff1aa4p-4,
                                  0x1.7ea686a662f7fp-6,
                                  0x1.d15b6a7e15b70p-9,
                                  0x1.911954e79763ap-12,
                                  0x1.be2bb463ef606p-16,
                                  0x1.ee8c0982b8d6dp-21};
// exp(-factor a^2) Top(a) / Bottom(a); factor is a power of two.
template <int n, int m>
TT_INLINE Wide tail(Wide a, double factor, const double (&top)[n], const double (&bottom)[m]) {
  const Wide square = a * a;
  Wide power;
  const Wide e = exp_rest(-factor * square, -factor * rest_of_square(a, square), &power);
  const Wide p = inline_polynomial(a, top);
  return scaled(fma(p, e, p) / inline_polynomial(a, bottom), power);
}
TT_INLINE Wide erfc_of_positive(Wide a) {
  return tail(at_most(a, 28.0), 1.0, kErfcTop, kErfcBottom);
}
#if TT_VEC_BYTES > 32
// P(u) by the coefficients of each lane's entry.
template <int n>
TT_INLINE Wide look_up_polynomial(const double (&rows)[n][16], int first, Bits entry, Wide u) {
  Wide p = look_up(rows[n - 1], entry);
  TT_UNROLL_BY(32)
  for (int k = n - 2; k >= first; k--) p = fma(p, u, look_up(rows[k], entry));
  return p;
}
// erf is within 0.7 ulp, erfc within 1.1.
TT_INLINE Wide erf(Wide x) {
  const Wide a = at_most(magnitude(x), kErfLast);
  const Bits entry = converted<Bits>(a * kErfPerOne);
  const Wide u = a - look_up(kErfTable[kErfCenter], entry);
  const Wide p = look_up_polynomial(kErfTable, kErfFirst, entry, u);
  const Wide top = chosen(a < all(kErfFirstEnd), a, look_up(kErfTable[kErfTop], entry));
  return with_sign(fma(u, p, top), x);
}
TT_INLINE Wide erfc(Wide x) {
  const Wide a = at_most(magnitude(x), kErfcLast);
  const Bits entry = Bits(a + 2.0) >> 50;
  const Wide u = a - look_up(kErfcxTable[kErfcxCenter], entry);
  const Wide p = look_up_polynomial(kErfcxTable, kErfcxFirst, entry, u);
  const Wide top = look_up(kErfcxTable[kErfcxTop], entry);
  const Wide rest = u * p;
  const Wide square = a * a;
  const Exp e = exp_parts(-square, fma(-a, a, square));
  const Wide product = top * e.whole;  // the largest of four, the only one whose rounding shows
  const Wide lost = fma(top, e.whole, -product);
  const Wide others = fma(rest, e.whole, fma(top + rest, e.part, lost));
  const Wide y = times_power_of_two(product + others, e.n);
  return chosen(x < all(0.0), 2.0 - y, y);
}
#else
// erf(a) / a - 1, of a^2 up to 1, within 2^-56 of erf(a)
constexpr double kErfNear[] = {
    0x1.06eba8214db68p-3,  -0x1.812746b0379bdp-2,  0x1.ce2f21a040d14p-4,  -0x1.b82ce311fa8c0p-6,
    0x1.565bccf92a3ddp-8,  -0x1.c02db03db5753p-11, 0x1.f9a2baa61464bp-14, -0x1.f4ca4d45a777ep-17,
    0x1.b97fd25b64e36p-20, -0x1.5c071e62f8eccp-23, 0x1.d71ad77ba22cdp-27, -0x1.abadac1e78c2ap-31};
TT_INLINE Wide erf(Wide x) {
  const Wide a = magnitude(x);
  const Wide near = fma(a, inline_polynomial(a * a, kErfNear), a);
  const Wide far = 1.0 - erfc_of_positive(a);
  return with_sign(chosen(a < all(1.0), near, far), x);
}
#endif
// x Phi(x); nan at -inf, as in PyTorch.
TT_INLINE Wide gelu(Wide x) {
  const Wide t = magnitude(x);
  const Wide y = tail(at_most(t, 40.0), 0.5, kTailTop, kTailBottom);
  return x * chosen(x < all(0.0), y, 1.0 - y);
}

// erfinv(y) / y = c + w (d + P(w - 3.125)), where w = -log(1 - y^2) is at most 6.25 and c is
// sqrt(pi) / 2: 2^-56. c has two parts, d too, whose second one is in P.
constexpr double kErfinvFirst = 0x1.c5bf891b4ef6bp-1;
constexpr double kErfinvFirstLow = -0x1.618f13eb7ca89p-55;
constexpr double kErfinvSecond = 0x1.f6f0fe0a1d402p-3;
constexpr double kErfinvTerms[] = {
    -0x1.93019e2c4eb0ep-57, -0x1.c68cde90dc3dep-10, -0x1.68af564e32cc5p-10, 0x1.aa46bc94b8c5fp-13,
    -0x1.62fb9e3d2b465p-18, -0x1.710f9037e48c9p-19, 0x1.db9fbe3393ad2p-22,  -0x1.ac61bb1ebea95p-28,
    -0x1.f62eb3763d833p-28, 0x1.190a3fa5fe055p-30,  0x1.444d18607484bp-37,  -0x1.64af7a1e0183dp-36,
    0x1.48a23198dcb22p-39,  0x1.a9b7ecc20d0ccp-44,  -0x1.f99cf4e4d7153p-45, 0x1.73bf38c8a6722p-48,
    0x1.00657068ef311p-51,  -0x1.65e901808b78cp-53, 0x1.63ba3638b8d5ap-57,  0x1.18253a4292cfcp-59,
    -0x1.9d13c2ac1ba32p-62, -0x1.b417a67c7818fp-76, 0x1.2b1bb99f4f6abp-68,  -0x1.15bf6871bda18p-72};
constexpr double kErfinvLeast = 0x1p-9;  // of 1 - y^2, there

TT_INLINE Wide erfinv_distance(Wide y) {  // 1 - y^2
  const Wide a = magnitude(y);
  return (1.0 - a) * (1.0 + a);
}
// The inverse of erf where erfinv_distance(y) >= kErfinvLeast, within 1 ulp; elsewhere a number.
TT_INLINE Wide erfinv_near(Wide y) {
  const Wide distance = erfinv_distance(y);
  const Log log = short_log(chosen(distance >= all(kErfinvLeast), distance, all(1.0)));
  const Wide w = -(log.whole + log.part);
  const Wide w_lost = -log.part - (w + log.whole);
  const Wide change = w * kErfinvSecond;
  const Wide change_lost = fma(w, all(kErfinvSecond), -change) + w_lost * kErfinvSecond;
  const Wide q = kErfinvFirst + change;
  const Wide q_lost = ((kErfinvFirst - q) + change) + (change_lost + kErfinvFirstLow);
  const Wide rest = fma(w, inline_polynomial(w - 3.125, kErfinvTerms), q_lost);
  return with_sign(fma(y, q, y * rest), y);  // of y = -0, too
}

}  // namespace series
TT_ISA_END
