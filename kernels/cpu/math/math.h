// Real functions of the host. float: tt's own, branch-free, for every argument, with an error of at
// most 1.5 ulp unless said (tests/cpp/math_ulp_test.cpp). Templates take floats or vectors.
// double: the C library.
//
// Reductions after Cody & Waite, "Software Manual for the Elementary Functions" (1980); error-free
// sums after Dekker, Numer. Math. 18 (1971). Every polynomial is tt's own minimax fit (Remez
// exchange in 40 digits, the weights that make the error relative to the result) rounded to the
// type; the comment gives its error bound.
#pragma once

#include "kernels/cpu/simd/lanes.h"
#if TT_VECTOR_MATH
#include "kernels/cpu/math/tanh_table.h"
#endif

TT_ISA_BEGIN
namespace math {

// ---- exp ----
// x = n ln2 + r, |r| <= ln2/2; exp(x) = 2^n (1 + r + r^2 P(r)); P: 2^-28 relative to exp(r).
// ln2's high part has 15 bits, so n * kLn2Hi is exact without FMA too.
constexpr float kLog2e = 0x1.715476p+0f;
constexpr float kLn2Hi = 0x1.62e4p-1f;
constexpr float kLn2Lo = 0x1.7f7d1cp-20f;

template <class V> TT_INLINE V expm1_of_rest(V r) {
  V p = fma(r, 0x1.6a2366p-10f, splat<V>(0x1.123a6ap-7f));
  p = fma(p, r, 0x1.5558f4p-5f);
  p = fma(p, r, 0x1.55549p-3f);
  p = fma(p, r, 0x1.fffffcp-2f);
  return fma(r * r, p, r);
}
// Returns m - 1 and sets *exponent to n, where exp(x + lost) = 2^n m. lost: what rounding took from
// the caller's x. x is clamped to [-150, 89].
template <class V> TT_INLINE V exp_rest(V x, V lost, V* exponent) {
  const V c = at_most(at_least(x, -150.0f), 89.0f);
  const V n = nearest(c * kLog2e);
  const V r = fma(n, -kLn2Lo, fma(n, -kLn2Hi, c)) + lost;
  *exponent = n;
  return expm1_of_rest(r);
}
template <class V> TT_INLINE V exp_parts(V x, V lost, V* exponent) {
  return exp_rest(x, lost, exponent) + 1.0f;
}
template <class V> TT_INLINE V exp_lanes(V x) {
  V n;
  const V m = exp_parts(x, splat<V>(-0.0f), &n);  // adding -0 is a no-op that the compiler removes
  return scale_above(m, n, x, -104.0f);           // exp(-104) < 2^-150
}

// exp(x) - 1 = 2^n ((1 - 2^-n) + p), where p and the sum have two parts: what rounding takes from
// them is up to 2 ulp of the result for n of 1 and -1. x is clamped to [-25, 89].
template <class V> TT_INLINE V expm1_lanes(V x) {
  const V c = at_most(at_least(x, -25.0f), 89.0f);
  const V n = nearest(c * kLog2e);
  const V above = fma(n, -kLn2Hi, c);
  const V r = fma(n, -kLn2Lo, above);
  const V r_lost = fma(n, -kLn2Lo, above - r);
  V p = fma(r, 0x1.6a2366p-10f, splat<V>(0x1.123a6ap-7f));
  p = fma(p, r, 0x1.5558f4p-5f);
  p = fma(p, r, 0x1.55549p-3f);
  p = fma(p, r, 0x1.fffffcp-2f);
  const V rest = r * r * p;
  const V sum = r + rest;
  const V sum_lost = ((r - sum) + rest) + r_lost;
  const V one = 1.0f - scale(splat<V>(1.0f), -n);
  const V y = one + sum;
  const V y_lost = ((one - y) + sum) + sum_lost;
  return with_sign(scale(y + y_lost, n), x);
}

// 2^x: as exp, with r = (x - n) ln2, where x - n is exact.
template <class V> TT_INLINE V exp2_rest(V x, V* exponent) {
  const V c = at_most(at_least(x, -151.0f), 129.0f);
  const V n = nearest(c);
  *exponent = n;
  return expm1_of_rest((c - n) * 0x1.62e43p-1f);
}
template <class V> TT_INLINE V exp2_lanes(V x) {
  V n;
  const V p = exp2_rest(x, &n);
  return scale(p + 1.0f, n);
}

// exp of doubles, the same way; P: 2^-64. ln2's high part has 41 bits. Returns m - 1.
TT_INLINE double exp_rest(double x, int64_t* exponent) {
  const double not_above = x > 710.0 ? 710.0 : x;
  const double c = x < -746.0 ? -746.0 : not_above;
  const double shifted = c * 0x1.71547652b82fep+0 + 0x1.8p52;
  const double n = shifted - 0x1.8p52;
  const double r = (c - n * 0x1.62e42fefa3000p-1) - n * 0x1.3de6af278ece6p-42;
  const double r2 = r * r;
  const double r4 = r2 * r2;
  const double p01 = 0x1p-1 + r * 0x1.555555555555bp-3;
  const double p23 = 0x1.5555555555502p-5 + r * 0x1.111111110ec1ap-7;
  const double p45 = 0x1.6c16c16c30746p-10 + r * 0x1.a01a01b398cb5p-13;
  const double p67 = 0x1.a01a01360d25fp-16 + r * 0x1.71ddefdcfab96p-19;
  const double p89 = 0x1.27e5b4d149770p-22 + r * 0x1.af6c6064bafd2p-26;
  const double high = (p45 + r2 * p67) + r4 * (p89 + r2 * 0x1.1e3d09f40f638p-29);
  *exponent = int64_t(f64_bits(shifted)) - 0x4338000000000000;
  return r + r2 * ((p01 + r2 * p23) + r4 * high);
}
TT_INLINE double exp(double x) {
  int64_t k;
  const double y = 1.0 + exp_rest(x, &k);
  const int64_t half = k >> 1;
  return y * power_of_two(half) * power_of_two(k - half);
}
// exp(x) - 1 for x <= 0.
TT_INLINE double expm1_of_negative(double x) {
  int64_t k;
  const double rest = exp_rest(x < -60.0 ? -60.0 : x, &k);
  const double power = power_of_two(k);
  return (power - 1.0) + power * rest;
}

// ---- sigmoid, tanh ----
// Quotients of e = exp(-t) = 2^n (1 + p), p = r + r^2 P(r); P: 2^-26 relative to p. One Newton step
// on the quotient corrects the rounding of its parts and of the rough reciprocal.

template <class V> TT_INLINE V expm1_series(V r) {  // P(r)
  const V r2 = r * r;
  const V low = fma(r, 0x1.5554aep-3f, splat<V>(0.5f));
  const V high = fma(r, 0x1.12288p-7f, splat<V>(0x1.555486p-5f));
  return fma(r2, fma(r2, 0x1.6d99bep-10f, high), low);
}

// sigmoid(x + lost) = 1 / (1 + e) = s / (s + 1 + p), s = 2^-n. Returns a rough q; the accurate
// result is (q - q excess) 2^n.
template <class V> TT_INLINE V sigmoid_rough(V x, V lost, V* excess, V* exponent) {
  const V t = at_most(at_least(x, -150.0f), 30.0f);
  const V shifted = fma(t, kLog2e, splat<V>(kRoundExponent));
  const V n = shifted - kRoundExponent;  // minus the n and r of e
  const V r = fma(n, kLn2Lo, fma(n, kLn2Hi, -t)) - lost;
  const V p = fma(r * r, expm1_series(r), r);
  const V s = exp2_rounded(shifted, -60);
  const V q = rough_reciprocal(s + 1.0f + p);
  // q (s + 1 + p) - 1; rounding s + 1 first would cost 1.6 ulp.
  *excess = fma(q, p, fma(q, s, q - 1.0f));
  *exponent = n;
  return q;
}
// The accurate q. Callers scale by 2^n last, so that a subnormal result is rounded once.
template <class V> TT_INLINE V sigmoid_parts(V x, V lost, V* exponent) {
  V excess;
  const V q = sigmoid_rough(x, lost, &excess, exponent);
  return fma(q, -excess, q);
}
template <class V> TT_INLINE V sigmoid_lanes(V x) {
  V n, excess;
  const V rough = sigmoid_rough(x, splat<V>(0), &excess, &n);
  const V q = scale(rough, n);  // in parallel with the excess
  return fma(q, -excess, q);
}

#if TT_VECTOR_MATH
template <class V> TT_INLINE V tanh_lanes(V x) {
  const V t = at_most(abs(x), kTanhLast);
  const auto i = leading_bits(t, kTanhFirst, 21);
  const auto row = [&](TanhRow r) { return look_up(kTanhTable[r], i); };
  const V d = t - row(kTanhCenter);
  V p = fma(row(kTanh5), d, row(kTanh4));
  p = fma(p, d, row(kTanh3));
  p = fma(p, d, row(kTanh2));
  p = fma(p, d, row(kTanh1));
  return with_sign(fma(p, d, row(kTanh0)), x);
}
#else
// tanh(|x|) = (1 - e) / (1 + e), t = 2|x|; h = e - 1.
template <class V> TT_INLINE V tanh_lanes(V x) {
  const V t = at_least(abs(x) * -2.0f, -20.0f);
  const V shifted = fma(t, kLog2e, splat<V>(kRoundExponent));
  const V n = shifted - kRoundExponent;
  const V r = fma(n, -kLn2Lo, fma(n, -kLn2Hi, t));
  const V w = r * r * expm1_series(r);
  const V p = r + w;
  const V p_lo = (r - p) + w;
  const V s = exp2_rounded(shifted, -60);
  const V s1 = s - 1.0f;
  const V h = fma(s, p, s1);
  const V h_lo = fma(s, p_lo, fma(s, p, s1 - h));
  const V q = rough_reciprocal(h + 2.0f);
  const V y = h * q;
  const V rest = fma(-y, h, fma(y, -2.0f, h)) + fma(-y, h_lo, h_lo);  // h - y (2 + h)
  return with_sign(fma(rest, q, y), x);
}
#endif

// ---- what rounding takes from products ----
// a b - p exactly, where p is a b rounded.
#if TT_FUSED
TT_INLINE float product_rest(float a, float b, float p) { return libm::fmaf(a, b, -p); }
TT_INLINE double product_rest(double a, double b, double p) { return libm::fma(a, b, -p); }
#else
TT_INLINE float product_rest(float a, float b, float p) { return float(double(a) * b - double(p)); }
TT_INLINE double product_rest(double a, double b, double p) {  // Dekker; |a|, |b| < 2^990
  const double as = a * 0x1.0000002p27;
  const double ah = as - (as - a);
  const double al = a - ah;
  const double bs = b * 0x1.0000002p27;
  const double bh = bs - (bs - b);
  const double bl = b - bh;
  return ((ah * bh - p) + (ah * bl + al * bh)) + al * bl;
}
#endif
#if TT_VECTOR_MATH
TT_INLINE F32v product_rest(F32v a, F32v b, F32v p) { return fma(a, b, -p); }
#endif

// ---- erf ----
// |x| < 1: x (1 + P(x^2)), P: 2^-29 relative to erf(x). Else 1 - exp(-t Q(t)), t = |x|; t Q(t):
// 2^-31 relative to erf(x). From 4 on erf is 1.
template <class V> TT_INLINE V erf_lanes(V x) {
  const V t = abs(x);
  const V z = x * x;
  V p = fma(z, 0x1.4968p-14f, splat<V>(-0x1.a3f624p-11f));
  p = fma(p, z, 0x1.540592p-8f);
  p = fma(p, z, -0x1.b7f908p-6f);
  p = fma(p, z, 0x1.ce2cf6p-4f);
  p = fma(p, z, -0x1.81273ep-2f);
  p = fma(p, z, 0x1.06eba8p-3f);
  const V near = fma(p, t, t);
  const V far = at_most(t, 4.0f);
  V q = fma(far, 0x1.da0f12p-17f, splat<V>(-0x1.71629cp-12f));
  q = fma(q, far, 0x1.ed6912p-9f);
  q = fma(q, far, -0x1.89a03cp-6f);
  q = fma(q, far, 0x1.b46c4p-4f);
  q = fma(q, far, 0x1.45194cp-1f);
  q = fma(q, far, 0x1.20f24ap+0f);
  V n;
  const V tail = exp_parts(-(q * far), splat<V>(-0.0f), &n);
  return with_sign(if_negative(t - 1.0f, near, V(1.0f - scale(tail, n))), x);
}

// x - tanh(x) = x^3 P(x^2 - 2) for |x| < 2, P: 2^-26. Within 3.5 ulp, 2.5 with fused products.
template <class V> TT_INLINE V tanhshrink_lanes(V x) {
  const V z = x * x;
  const V z_lost = product_rest(x, x, z);
  const V cube = x * z;
  const V cube_lost = product_rest(x, z, cube) + x * z_lost;
  const V w = (z - 2.0f) + z_lost;
  V p = fma(w, 0x1.90d96ep-28f, splat<V>(-0x1.bec4fap-26f));
  p = fma(p, w, 0x1.5a9202p-25f);
  p = fma(p, w, -0x1.847254p-23f);
  p = fma(p, w, 0x1.3eb236p-20f);
  p = fma(p, w, -0x1.63bdeap-18f);
  p = fma(p, w, 0x1.7e0b42p-16f);
  p = fma(p, w, -0x1.aab66ep-14f);
  p = fma(p, w, 0x1.ddb254p-12f);
  p = fma(p, w, -0x1.0ac90cp-9f);
  p = fma(p, w, 0x1.2a1d9ep-7f);
  p = fma(p, w, -0x1.4e0cc6p-5f);
  p = fma(p, w, 0x1.7cbd7ap-3f);
  return if_negative(abs(x) - 2.0f, V(fma(cube, p, cube_lost * p)), V(x - tanh_lanes(x)));
}

TT_INLINE float exp(float x) { return exp_lanes(x); }
TT_INLINE float exp2(float x) { return exp2_lanes(x); }
TT_INLINE float sigmoid(float x) { return sigmoid_lanes(x); }
TT_INLINE float tanh(float x) { return tanh_lanes(x); }
TT_INLINE float expm1(float x) { return expm1_lanes(x); }
TT_INLINE float erf(float x) { return erf_lanes(x); }
TT_INLINE float tanhshrink(float x) { return tanhshrink_lanes(x); }
#if TT_VECTOR_MATH
TT_INLINE F32v exp(F32v x) { return exp_lanes(x); }
TT_INLINE F32v exp2(F32v x) { return exp2_lanes(x); }
TT_INLINE F32v sigmoid(F32v x) { return sigmoid_lanes(x); }
TT_INLINE F32v tanh(F32v x) { return tanh_lanes(x); }
TT_INLINE F32v expm1(F32v x) { return expm1_lanes(x); }
TT_INLINE F32v erf(F32v x) { return erf_lanes(x); }
TT_INLINE F32v tanhshrink(F32v x) { return tanhshrink_lanes(x); }
#endif

// ---- log ----
// x = 2^n (1 + f), 1 + f in [sqrt(1/2), sqrt(2)); log(1 + f) = f - f^2/2 + f^3 Q(f); Q: 2^-30
// relative to log(1 + f).
// Returns log(1 + f) + n ln2. low_part: n ln2 - n kLn2Hi, and what else is added.
TT_INLINE float log_of_fraction(float f, float n, float low_part) {
  const float f2 = f * f;
  float q = 0x1.14622p-4f;
  q = fma(q, f, -0x1.de4ed2p-4f);
  q = fma(q, f, 0x1.e6f604p-4f);
  q = fma(q, f, -0x1.fc1f8ep-4f);
  q = fma(q, f, 0x1.2336e6p-3f);
  q = fma(q, f, -0x1.555c58p-3f);
  q = fma(q, f, 0x1.99a4bcp-3f);
  q = fma(q, f, -0x1.000006p-2f);
  q = fma(q, f, 0x1.555548p-2f);
  const float low = fma(f * f2, q, fma(f2, -0.5f, low_part));
  return fma(n, kLn2Hi, f + low);
}
TT_INLINE float log(float x) {
  const bool tiny = x < 0x1p-126f;
  const uint32_t u = f32_bits(tiny ? x * 0x1p23f : x) - 0x3f3504f3u;
  const float n = float((int32_t(u) >> 23) - (tiny ? 23 : 0));
  const float f = bits_f32((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  const float y = log_of_fraction(f, n, n * kLn2Lo);
  const float negative = x == x ? float(kNan) : x;
  const float not_positive = x == 0 ? -float(kInf) : negative;
  const float positive = x < float(kInf) ? y : x;
  return x > 0 ? positive : not_positive;
}
// By the logarithm of u = 1 + x and what rounding took from u.
TT_INLINE float log1p(float x) {
  const float u = 1.0f + x;
  const float larger = x > 1.0f ? x : 1.0f;
  const float smaller = x > 1.0f ? 1.0f : x;
  const float lost = (smaller - (u - larger)) / u;
  const uint32_t bits = f32_bits(u) - 0x3f3504f3u;
  const float n = float(int32_t(bits) >> 23);
  const float f = bits_f32((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  const float y = libm::copysignf(log_of_fraction(f, n, fma(n, kLn2Lo, lost)), x);
  const float negative = x == x ? float(kNan) : x;
  const float not_positive = u == 0 ? -float(kInf) : negative;
  const float positive = x < float(kInf) ? y : x;
  return u > 0 ? positive : not_positive;
}

// ---- logarithms of sums of exponentials ----

// log(1 + e), e = 2^n (1 + p) <= 1, as 2 artanh(q / 2) with q = 2 e / (2 + e), 2^-31. e and 2 + e
// have two parts each, so that q is almost correctly rounded.
template <class V> TT_INLINE V log1p_of_power(V p, V n) {
  const V s = scale(splat<V>(1.0f), n);
  const V e = fma(s, p, s);
  const V e_low = fma(s, p, s - e);
  const V d = e + 2.0f;
  const V d_low = (2.0f - d) + e + e_low;
  const V inverse = rough_reciprocal(d);
  const V rough = (e + e) * inverse;
  const V rest = fma(-rough, d, e + e) + fma(-rough, d_low, e_low + e_low);
  const V q = fma(rest, inverse, rough);
  const V z = q * q;
  V y = fma(z, 0x1.dba26p-14f, splat<V>(0x1.bc8cf8p-12f));
  y = fma(z, y, 0x1.24c926p-9f);
  y = fma(z, y, 0x1.9998d4p-7f);
  y = fma(z, y, 0x1.555556p-4f);
  return fma(q * z, y, q);
}
template <class V> TT_INLINE V log1p_exp_lanes(V x) {
  V n;
  const V p = exp_rest(x, splat<V>(-0.0f), &n);
  return log1p_of_power(p, n);
}
// log(exp(a) + exp(b)); kTwo: log2(2^a + 2^b). The larger exponent is taken out. The difference is
// nan where the sum of a and b is the result: for equal infinities and nan.
template <bool kTwo, class V> TT_INLINE V log_of_sum(V a, V b) {
  const V difference = a - b;
  const V high = if_negative(difference, b, a);
  const V x = -abs(difference);
  V n;
  V sum;
  if constexpr (kTwo) {
    const V p = exp2_rest(x, &n);
    const V rest = fma(log1p_of_power(p, n), 0x1.715476p+0f, high);
    sum = if_negative(x, rest, V(high + 1.0f));  // exact where a is b
  } else {
    sum = high + log1p_exp_lanes(x);
  }
  return if_nan(difference, V(a + b), sum);
}

// ---- sin, cos ----
// x = n pi/2 + r, |r| <= pi/4, reduced in double; sin(r) = r + r^3 S(r^2): 2^-28, cos(r) = 1 -
// r^2/2 + r^4 C(r^2): 2^-33. Only for |x| <= kEasyAngle; loops use the C library
// for blocks with larger arguments.
constexpr float kEasyAngle = 0x1p30f;

TT_INLINE float sin_or_cos(float x, int32_t quarter) {
  // pi/2 in parts of 22 bits: n times one of the first two is exact.
  const double shifted = double(x) * 0x1.45f306dc9c883p-1 + 0x1.8p52;
  const double n = shifted - 0x1.8p52;
  const double r64 =
      ((double(x) - n * 0x1.921fbp+0) - n * 0x1.5110bp-22) - n * 0x1.18469898cc517p-44;
  const float r = float(r64);
  const float r_lo = float(r64 - double(r));
  const float z = r * r;
  const int32_t k = int32_t(f64_bits(shifted)) + quarter;
  float s = 0x1.6cd5ecp-19f;
  s = fma(s, z, -0x1.a00f94p-13f);
  s = fma(s, z, 0x1.111108p-7f);
  s = fma(s, z, -0x1.555556p-3f);
  s = r + fma(r * z, s, r_lo);
  float c = 0x1.99ff42p-16f;
  c = fma(c, z, -0x1.6c0c82p-10f);
  c = fma(c, z, 0x1.55554ap-5f);
  const float w = fma(z, -0.5f, 1.0f);
  c = w + fma(z * z, c, fma(z, -0.5f, 1.0f - w));
  const uint32_t y = f32_bits(k & 1 ? c : s);
  return bits_f32(y ^ uint32_t(k & 2) << 30);
}

TT_INLINE bool is_hard_angle(float x) { return !(libm::fabsf(x) <= kEasyAngle); }
TT_INLINE float sin(float x) { return x == 0 ? x : sin_or_cos(x, 0); }
TT_INLINE float cos(float x) { return sin_or_cos(x, 1); }
TT_INLINE float sin_hard(float x) { return float(libm::sin(double(x))); }
TT_INLINE float cos_hard(float x) { return float(libm::cos(double(x))); }

// ---- from the C library, and single instructions ----

TT_INLINE double log(double x) { return libm::log(x); }
TT_INLINE double tanh(double x) { return libm::tanh(x); }
TT_INLINE double sigmoid(double x) {
  const double e = exp(-libm::fabs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}
TT_INLINE double sin(double x) { return libm::sin(x); }
TT_INLINE double cos(double x) { return libm::cos(x); }
TT_INLINE bool is_hard_angle(double) { return false; }
TT_INLINE double sin_hard(double x) { return sin(x); }
TT_INLINE double cos_hard(double x) { return cos(x); }
TT_INLINE double pow(double a, double b) { return libm::pow(a, b); }
TT_INLINE float fmod(float a, float b) { return libm::fmodf(a, b); }
TT_INLINE double fmod(double a, double b) { return libm::fmod(a, b); }
// short_fmod is fmod where is_hard_fmod is false: the quotient of the magnitudes is below 2^29, so
// that its products with a float are exact in double. Rounded, it may be 1 too large.
TT_INLINE bool is_hard_fmod(float a, float b) {
  const double size = libm::fabs(double(a));
  const double by = libm::fabs(double(b));
  return !((size < by * 0x1p29) & (by < kInf));
}
TT_INLINE float short_fmod(float a, float b) {
  const double size = libm::fabs(double(a));
  const double by = libm::fabs(double(b));
  const double rest = size - double(int32_t(size / by)) * by;
  return libm::copysignf(float(rest < 0 ? rest + by : rest), a);
}
#if TT_FUSED
// Doubles whose quotient is below 2^52, by a fused product: what it leaves is exact.
TT_INLINE bool is_hard_fmod(double a, double b) {
  const double by = libm::fabs(b);
  return !((libm::fabs(a) < by * 0x1p52) & (by < kInf));
}
TT_INLINE double short_fmod(double a, double b) {
  const double size = libm::fabs(a);
  const double by = libm::fabs(b);
  const double rest = libm::fma(-libm::trunc(size / by), by, size);
  return libm::copysign(rest < 0 ? rest + by : rest, a);
}
#else
TT_INLINE bool is_hard_fmod(double, double) { return true; }
TT_INLINE double short_fmod(double a, double b) { return fmod(a, b); }
#endif
TT_INLINE float hypot(float a, float b) {
  const double s = libm::sqrt(double(a) * a + double(b) * b);  // cannot overflow
  const float inf = float(kInf);
  return libm::fabsf(a) == inf || libm::fabsf(b) == inf ? inf : float(s);
}
TT_INLINE double hypot(double a, double b) { return libm::hypot(a, b); }
#if TT_FUSED
// For loops over vectors. Corrected after Borges, "An improved algorithm for hypot(a, b)" (2019);
// scaled where squares would overflow or lose bits.
TT_INLINE double vector_hypot(double a, double b) {
  const double p = libm::fabs(a);
  const double q = libm::fabs(b);
  const double larger = p > q ? p : q;
  const double from_small = larger < 0x1p-450 ? 0x1p600 : 1.0;
  const double factor = larger > 0x1p500 ? 0x1p-600 : from_small;
  const double to_small = larger < 0x1p-450 ? 0x1p-600 : 1.0;
  const double x = larger * factor;
  const double y = (p > q ? q : p) * factor;
  const double xx = x * x;
  const double h = libm::sqrt(libm::fma(y, y, xx));
  const double hh = h * h;
  const double excess = libm::fma(-y, y, hh - xx) + libm::fma(h, h, -hh) - libm::fma(x, x, -xx);
  const double s = h > 0 ? h - excess / (2.0 * h) : h;
  const double finite = s * (larger > 0x1p500 ? 0x1p600 : to_small);
  const bool is_infinite = (p == kInf) | (q == kInf);
  return is_infinite ? kInf : finite;
}
#else
TT_INLINE double vector_hypot(double a, double b) { return hypot(a, b); }
#endif
TT_INLINE float vector_hypot(float a, float b) { return hypot(a, b); }
TT_INLINE float sqrt(float x) { return libm::sqrtf(x); }
TT_INLINE double sqrt(double x) { return libm::sqrt(x); }
TT_INLINE float trunc(float x) { return libm::truncf(x); }
TT_INLINE double trunc(double x) { return libm::trunc(x); }
TT_INLINE float floor(float x) { return libm::floorf(x); }
TT_INLINE double floor(double x) { return libm::floor(x); }
TT_INLINE float fabs(float x) { return libm::fabsf(x); }
TT_INLINE double fabs(double x) { return libm::fabs(x); }
TT_INLINE float copysign(float x, float s) { return libm::copysignf(x, s); }
TT_INLINE double copysign(double x, double s) { return libm::copysign(x, s); }

}  // namespace math
TT_ISA_END

#include "kernels/cpu/math/gated_product.h"
#include "kernels/cpu/math/through_double.h"

#include "kernels/cpu/math/normal_distribution.h"
