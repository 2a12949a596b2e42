// Special functions by polynomials, of doubles: on the host of a vector at a time, on a device of
// one. Both parts of a function of two ranges are computed, with harmless arguments where the
// other one is chosen. Results that the C library's functions do not serve are within a few ulp.
//
// The coefficients of J0, J1, Y0, Y1 and Ai beyond 2.09 are those of the Cephes library of
// S. Moshier; the others are tt's own: interpolations at Chebyshev nodes, computed in 50 digits.
// They are in series_tables.inc.
#pragma once

#include "kernels/functors/functor.h"
#include "plan/special_function.h"
#if !TT_ON_DEVICE
#include "kernels/cpu/math/wide.h"
#endif

// Whether functions of doubles are worth more instructions than the C library's take.
#if !TT_ON_DEVICE && TT_VEC_BYTES > 16
#define TT_LONG_VECTORS 1
#else
#define TT_LONG_VECTORS 0
#endif

// What is inlined where:
//   TT_LONG_FN     hundreds of instructions    called on a device, whose kernels have eight copies
//                                              of what is inlined, which nvcc takes minutes for
//   TT_LONGEST_FN  more than that              called on the host, too: there is a loop for each
//                                              dtype and operator
//   TT_SERIES_FN   all of this file            as TT_LONG_FN
//   TT_SHARED_FN   parts of several functors   called on either side, for the sake of size
#if defined(__CUDACC__)
#define TT_LONG_FN __host__ __device__ __noinline__ inline
#define TT_LONGEST_FN TT_LONG_FN
#else
#define TT_LONG_FN TT_INLINE
#define TT_LONGEST_FN TT_NOINLINE inline
#endif

TT_FUNCTORS_BEGIN
namespace series {

#if TT_ON_DEVICE
using Wide = double;
#define TT_SERIES_FN TT_LONG_FN
#define TT_SHARED_FN TT_LONG_FN
#else
#define TT_SERIES_FN TT_INLINE
#define TT_SHARED_FN TT_NOINLINE inline
#endif

// ---- numbers, on either side ----

#if TT_ON_DEVICE
TT_FN Wide all(double x) { return x; }
TT_FN Wide square_root(Wide x) { return libm::sqrt(x); }
TT_FN Wide magnitude(Wide x) { return libm::fabs(x); }
TT_FN Wide with_sign(Wide x, Wide sign) { return libm::copysign(x, sign); }
TT_FN Wide chosen(bool mask, Wide a, Wide b) { return mask ? a : b; }
TT_FN bool is_any(bool mask) { return mask; }
TT_FN bool is_all(bool mask) { return mask; }
TT_FN Wide fused(Wide a, Wide b, Wide c) { return libm::fma(a, b, c); }
TT_FN Wide at_most(Wide x, double most) { return x > most ? most : x; }
TT_FN Wide at_least(Wide x, double least) { return x < least ? least : x; }
TT_FN Wide exp(Wide x) { return libm::exp(x); }
TT_FN Wide log(Wide x) { return libm::log(x); }
TT_FN void sine_and_cosine(Wide x, Wide* sine, Wide* cosine) {
  *sine = libm::sin(x);
  *cosine = libm::cos(x);
}
template <int n> TT_FN Wide polynomial(Wide x, const double (&c)[n]) {
  Wide y = c[n - 1];
  for (int k = n - 2; k >= 0; k--) y = libm::fma(y, x, c[k]);
  return y;
}
template <int n> TT_FN Wide inline_polynomial(Wide x, const double (&c)[n]) {
  return polynomial(x, c);
}
#endif

// (a + lost) (c + rest) for a small rest.
TT_SERIES_FN Wide times(Wide a, Wide lost, double c, Wide rest) {
  const Wide product = a * c;
  return product + (fused(a, all(c), -product) + (a * rest + lost * (rest + c)));
}

#include "kernels/functors/series_tables.inc"

// ---- elementary functions ----

TT_SERIES_FN Wide tanhshrink(Wide x) {
  const Wide a = magnitude(x);
  const Wide small = at_most(a, 1.0);
  const Wide z = small * small;
  const Wide near = small * z * tanhshrink_near(z);
  const Wide e = exp(-2.0 * a);
  const Wide far = a - (1.0 - e) / (1.0 + e);
  return with_sign(chosen(a > all(1.0), far, near), x);
}
// sin(pi x) / (pi x): the period is taken out exactly, so that it is 0 at integers.
TT_SERIES_FN Wide sinc(Wide x) {
  const Wide a = magnitude(x);
  const Wide shifted = at_most(a, 0x1p51) + 0x1p52;  // a number of this size is an integer
  const Wide r = at_most(a, 0x1p51) - (shifted - 0x1p52);
#if TT_ON_DEVICE
  const bool odd = libm::fmod(shifted, 2.0) == 1.0;
#else
  const auto odd = (Bits(shifted) & 1) != Bits{};
#endif
  const Wide sine = r * sin_pi_part(r * r);
  const Wide y = chosen(odd, -sine, sine) / (3.14159265358979323846 * a);
  const Wide finite = chosen(a == all(0.0), all(1.0), y);
  return chosen(a == all(kInf), all(kNan), finite);
}

// An orthogonal polynomial of order n >= 0.
TT_SERIES_FN Wide orthogonal(Wide at, int32_t kind, int64_t n) {
  const Wide x = kind & kShifted ? at * 2.0 - 1.0 : at;
  kind &= kShifted - 1;
  const PolynomialStep first = first_step(kind);
  Wide before = all(1.0);
  if (n == 0) return before;
  Wide last = x * first.slope + first.offset;
  for (int64_t k = 2; k <= n; k++) {
    const PolynomialStep s = polynomial_step(kind, double(k));
    const Wide next = (x * s.slope + s.offset) * last - s.before * before;
    before = last;
    last = next;
  }
  return last;
}

// ---- modified Bessel functions ----

// I of order 0 or 1, or exp(-|x|) I, of a >= 8.
template <int order, bool scaled> TT_SERIES_FN Wide bessel_i_far(Wide a) {
  const Wide t = 16.0 / a - 1.0;
  const Wide y = (order ? i1_far(t) : i0_far(t)) / square_root(a);
  if constexpr (scaled) return chosen(a == all(kInf), all(0.0), y);
  const Wide half = exp(a * 0.5);  // exp(a) may overflow where the result does not
  return chosen(a == all(kInf), all(kInf), y * half * half);
}
template <int order, bool scaled> TT_SERIES_FN Wide bessel_i(Wide x) {
  const Wide a = magnitude(x);
  const Wide small = at_most(a, 8.0);
  const Wide w = small * small * 0x1p-6;
  Wide y = (order ? i1_near(w) : i0_near(w));
  if constexpr (order) y = y * small;
  if constexpr (scaled) y = y * exp(-small);
  const auto is_far = a > all(8.0);
  if (is_any(is_far)) y = chosen(is_far, bessel_i_far<order, scaled>(at_least(a, 8.0)), y);
  return order ? with_sign(y, x) : y;
}
// K of order 0 or 1, or exp(x) K: nan below 0.
template <int order, bool scaled> TT_SERIES_FN Wide bessel_k(Wide x) {
  const Wide small = at_most(x, 1.0);
  const Wide large = at_least(x, 1.0);
  const Wide w = small * small;
  const Wide log_half = log(small * 0.5);
  const Wide i = (order ? i1_near(w * 0x1p-6) : i0_near(w * 0x1p-6));
  const Wide rest = (order ? k1_near(w) : k0_near(w));
  Wide near = order ? log_half * i * small + rest / small : rest - log_half * i;
  Wide far = (order ? k1_far(4.0 / (large + 1.0) - 1.0) : k0_far(4.0 / (large + 1.0) - 1.0)) /
             square_root(large);
  if constexpr (scaled) near = near * exp(small);
  else far = far * exp(-large);
  const Wide y = chosen(x > all(1.0), far, near);
  const Wide positive = chosen(x == all(kInf), all(0.0), y);
  return chosen(x == all(0.0), all(kInf), positive);
}

// ---- Bessel functions ----

// The forms for large x, with w = 5 / x: (P A + w Q B) / sqrt(pi x), where A and B are sums and
// differences of sin(x) and cos(x), which are a cosine and a sine behind x by a phase.
template <int order, bool second> TT_SERIES_FN Wide bessel_wave(Wide x) {
  const Wide w = 5.0 / x;
  const Wide z = w * w;
  const Wide steady = order ? j1_cos(z) : j0_cos(z);
  const Wide changing = w * (order ? j1_sin(z) : j0_sin(z));
  Wide s, c;
  sine_and_cosine(x, &s, &c);
  const Wide sum = s + c;
  const Wide difference = s - c;
  Wide y;
  if constexpr (order == second) y = steady * sum;
  else y = steady * difference;
  if constexpr (order && second) y = changing * difference - y;
  else if constexpr (order || second) y = y + changing * sum;
  else y = y - changing * difference;
  return y / square_root(x * 3.14159265358979323846);
}
TT_SHARED_FN Wide bessel_j_near(Wide x, int order) {
  const Wide z = x * x;
  if (order) {
    const Wide zeros = (z - 1.46819706421238932572e1) * (z - 4.92184563216946036703e1);
    return x * zeros * j1_near(z);
  }
  const Wide zeros = (z - 5.78318596294678452118) * (z - 3.04712623436620863991e1);
  return zeros * j0_near(z);
}
template <int order> TT_SERIES_FN Wide bessel_j(Wide x) {
  const Wide a = magnitude(x);
  const Wide near = bessel_j_near(at_most(a, 5.0), order);
  const Wide y = chosen(a > all(5.0), bessel_wave<order, false>(at_least(a, 5.0)), near);
  return order ? Wide(chosen(x < all(0.0), -y, y)) : y;
}
template <int order> TT_SERIES_FN Wide bessel_y(Wide x) {
  constexpr double kTwoByPi = 0.63661977236758134308;
  const Wide small = at_most(x, 5.0);
  const Wide z = small * small;
  const Wide j = bessel_j_near(small, order) * log(small);
  Wide near;
  if constexpr (order) near = small * y1_near(z) + kTwoByPi * (j - 1.0 / small);
  else near = y0_near(z) + kTwoByPi * j;
  const Wide y = chosen(x > all(5.0), bessel_wave<order, true>(at_least(x, 5.0)), near);
  return chosen(x == all(0.0), all(-kInf), y);
}
// The Airy function Ai.
TT_SERIES_FN Wide airy(Wide x) {
  constexpr double kLimit = 2.09;
  constexpr double kRootPi = 1.77245385090551602730;
  const Wide a = at_least(magnitude(x), kLimit);
  const Wide root = square_root(a);
  const Wide zeta = a * root * (2.0 / 3);
  const Wide w = 1.0 / zeta;
  const Wide z = w * w;
  const Wide scale = 1.0 / (kRootPi * square_root(root));
  Wide s, c;
  sine_and_cosine(zeta, &s, &c);
  const Wide steady = z * airy_sin(z) + 1.0;
  const Wide changing = w * airy_cos(z);
  const Wide waves = ((s + c) * steady - (c - s) * changing) * 0.70710678118654752440 * scale;
  const Wide decay = airy_right(w) * exp(-zeta) * scale * 0.5;
  const Wide inside = at_least(at_most(x, kLimit), -kLimit);
  const Wide cube = inside * inside * inside;
  const Wide near = airy_even(cube) + inside * airy_odd(cube);
  const Wide left = chosen(x == all(-kInf), all(kNan), waves);
  const Wide right = chosen(x == all(kInf), all(0.0), decay);
  const Wide far = chosen(x < all(0.0), left, right);
  return chosen(magnitude(x) < all(kLimit), near, Wide(chosen(x == x, far, x)));
}

// ---- the error function ----

// exp(a^2) erfc(a), a >= 0.
TT_SHARED_FN Wide erfcx_of_positive(Wide a) {
  const Wide t = chosen(a < all(kInf), 1.0 - 6.0 / (a + 3.0), all(1.0));
  return erfcx_terms(t) / (a + 1.0);
}
#if TT_ON_DEVICE
// What rounding took from square = a^2.
TT_SERIES_FN Wide rest_of_square(Wide a, Wide square) { return libm::fma(a, a, -square); }
#endif
// exp(-a^2 factor), without the rounding of a^2, which would show in the tail.
TT_SHARED_FN Wide bell(Wide a, double factor) {
  const Wide c = at_most(a, 60.0);
  const Wide square = c * c;
  const Wide y = exp(-factor * square);
  return y - y * (factor * rest_of_square(c, square));
}
TT_SERIES_FN Wide erfcx(Wide x) {
  const Wide a = magnitude(x);
  const Wide right = erfcx_of_positive(a);
  const Wide square = a * a;
  const Wide power = exp(square);  // rounding a^2 < 27^2 costs 2^-53 a^2
  const Wide whole = power + power * rest_of_square(a, square);
  const Wide left = chosen(a < all(27.0), 2.0 * whole - right, all(kInf));
  return chosen(x < all(0.0), left, right);
}
// 1 - Phi(a) for the normal distribution's function Phi, a >= 0.
TT_SHARED_FN Wide normal_tail(Wide a) {
  return 0.5 * erfcx_of_positive(a * 0.70710678118654752440) * bell(a, 0.5);
}
TT_SERIES_FN Wide ndtr(Wide x) {
  const Wide tail = normal_tail(magnitude(x));
  return chosen(x < all(0.0), tail, 1.0 - tail);
}
TT_SERIES_FN Wide log_ndtr(Wide x) {
  const Wide a = magnitude(x);
  const Wide scaled = 0.5 * erfcx_of_positive(a * 0.70710678118654752440);
  // Right of -1: log1p(-t), t = 1 - Phi(x), by the logarithm of u = 1 - t and what rounding took.
  const Wide tail = scaled * bell(a, 0.5);
  const Wide t = chosen(x < all(0.0), 1.0 - tail, tail);
  const Wide u = 1.0 - t;
  const Wide y = log(chosen(x < all(-1.0), scaled, u));
  const Wide correct = chosen(u == all(1.0), -t, y * (t / (1.0 - u)));
  return chosen(x < all(-1.0), y - 0.5 * a * a, correct);
}
// The inverse of erfc for 0 < q <= 1/4: s P(t), s = sqrt(-log(q)), t of a + b / (s + 1.25), whose
// zero is factored out.
TT_SHARED_FN Wide erfc_inverse(Wide q) {
  const Wide square = -log(q);
  const Wide s = square_root(square);
  const Wide lost = fused(-s, s, square) / (2.0 * s);
  const Wide u = 1.0 / (s + 1.25);
  const Wide near =
      times_near_inverse(s, lost, -0x1.fb539a391ea31p+0 * (s - 0x1.32111589e0dfp+1) * u);
  const auto is_near = s < all(6.1);
  if (is_all(is_near)) return near;
  const Wide far =
      times_far_inverse(s, lost, -0x1.a8ba2e8ba2e8cp+0 * (s - 0x1.4bd5eaf57abd6p+3) * u);
  return chosen(is_near, near, far);
}
// The inverse of erf at y = 1 - q or q - 1, of y's sign.
TT_SERIES_FN Wide erf_inverse(Wide y, Wide q) {
  const Wide a = at_most(magnitude(y), 0.75);
  const Wide near = odd_erf_inverse(a, all(0.0), a * a);
  const Wide far = erfc_inverse(at_most(q, 0.25));
  const Wide inside = chosen(q > all(0.25), near, far);
  const Wide finite = chosen(q > all(0.0), inside, all(kInf));
  return chosen(q >= all(0.0), with_sign(finite, y), all(kNan));
}
TT_SERIES_FN Wide erfinv(Wide y) {
#if TT_LONG_VECTORS
  const auto is_near = erfinv_distance(y) >= all(kErfinvLeast);
  const Wide near = erfinv_near(y);
  if (TT_LIKELY(is_all(is_near))) return near;
  return chosen(is_near, near, erf_inverse(y, 1.0 - magnitude(y)));
#else
  return erf_inverse(y, 1.0 - magnitude(y));
#endif
}
TT_SERIES_FN Wide ndtri(Wide p) {
  const Wide y = 2.0 * (p - 0.5);
  const Wide q = chosen(p < all(0.5), 2.0 * p, 2.0 - 2.0 * p);
  return 1.41421356237309504880 * erf_inverse(y, q);
}

}  // namespace series
TT_FUNCTORS_END
