// Roots of unity, in vectors of doubles.
#pragma once

#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

struct Roots {
  Vec<double> re, im;
};

// exp(-2 pi i t / n) for integers 0 <= t <= n < 2^50, to 1.5 ulp of 1. The angle is reduced to
// [-pi/4, pi/4] in exact integers; there the Taylor polynomials are exact to 2^-54.
TT_INLINE Roots unit_roots(Vec<double> t, double n) {
  constexpr double kHalfPi = 0x1.921fb54442d18p+0;
  constexpr double kRound = 0x1.8p52;  // adding it rounds to an integer, which is in the low bits
  const Vec<double> shifted = t * (4 / n) + kRound;
  const Vec<double> quarter = shifted - kRound;
  const Vec<double> x = (t * 4 - quarter * n) * (kHalfPi / n);
  const Vec<double> x2 = x * x;
  Vec<double> s = x2 * (1 / 355687428096000.0) - 1 / 1307674368000.0;
  s = s * x2 + 1 / 6227020800.0;
  s = s * x2 - 1 / 39916800.0;
  s = s * x2 + 1 / 362880.0;
  s = s * x2 - 1 / 5040.0;
  s = s * x2 + 1 / 120.0;
  s = s * x2 - 1 / 6.0;
  s = x + x * x2 * s;
  Vec<double> c = x2 * (1 / 20922789888000.0) - 1 / 87178291200.0;
  c = c * x2 + 1 / 479001600.0;
  c = c * x2 - 1 / 3628800.0;
  c = c * x2 + 1 / 40320.0;
  c = c * x2 - 1 / 720.0;
  c = c * x2 + 1 / 24.0;
  c = c * x2 - 0.5;
  c = 1 + x2 * c;
  // A quarter turn maps (cos, sin) to (-sin, cos).
  typedef Vec<int64_t> Bits;
  const Bits turns = (Bits)shifted;
  const Bits swap = -(turns & 1);
  const Bits cosine = ((Bits)c & ~swap) | ((Bits)s & swap);
  const Bits sine = ((Bits)s & ~swap) | ((Bits)c & swap);
  const Bits cosine_sign = ((turns + 1) & 2) << 62;
  const Bits sine_sign = ((turns & 2) ^ 2) << 62;  // of the conjugate
  return {(Vec<double>)(cosine ^ cosine_sign), (Vec<double>)(sine ^ sine_sign)};
}

// Stores a vector of doubles, rounded to T.
TT_INLINE void store_as(double* p, Vec<double> v) { store(p, v); }
TT_INLINE void store_as(float* p, Vec<double> v) { store_as_float(p, v); }

// Writes exp(-2 pi i t(k) / n) for k in [0, count) as pairs.
template <class T, class F>
TT_INLINE void write_roots(T* out, int64_t count, double n, const F& t) {
  constexpr int64_t kN = kLanes<double>;
  for (int64_t k = 0; k < count; k += kN) {
    Vec<double> at = {};
    const int64_t some = min(count - k, kN);
    for (int64_t l = 0; l < some; l++) at[l] = double(t(k + l));
    const Roots w = unit_roots(at, n);
    for (int64_t l = 0; l < some; l++) {
      out[2 * (k + l)] = T(w.re[l]);
      out[2 * (k + l) + 1] = T(w.im[l]);
    }
  }
}

TT_ISA_END
