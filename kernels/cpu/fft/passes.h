// Stockham's transforms of tiles: one transform per lane, in passes of radix 2, 3, 4, 5, 7, 8 or
// any odd number up to kMaxFftRadix.
//
// A pass of radix r over a tile of n = s r m elements (Swarztrauber, "FFT algorithms for vector
// computers", Parallel Computing 1 (1984)):
//   out[q + s (r p + k)] = w(r m)^(p k) sum_j w(r)^(j k) in[q + s (p + m j)],  q < s, p < m
// with w(n) = exp(-2 pi i / n). The next pass has s r for s. The result is in order.
#pragma once

#include "kernels/cpu/fft/roots.h"
#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/transpose.h"
#include "kernels/cpu/simd/virtual_lanes.h"
#include "plan/fft_plan.h"

TT_ISA_BEGIN

template <class T> constexpr int64_t kTile = kFftTileBytes / int64_t(sizeof(T));  // lanes

// Complex numbers, one per lane.
template <class T> struct Z { Vec<T> re, im; };
template <class T> TT_INLINE Z<T> operator+(Z<T> a, Z<T> b) { return {a.re + b.re, a.im + b.im}; }
template <class T> TT_INLINE Z<T> operator-(Z<T> a, Z<T> b) { return {a.re - b.re, a.im - b.im}; }
template <class T> TT_INLINE Z<T> operator*(Z<T> a, Z<T> b) {
  return {fma(a.re, b.re, -(a.im * b.im)), fma(a.re, b.im, a.im * b.re)};
}
template <class T> TT_INLINE Z<T> operator*(Z<T> a, Vec<T> k) { return {a.re * k, a.im * k}; }
template <class T> TT_INLINE Z<T> minus_i(Z<T> a) { return {a.im, -a.re}; }  // -i a
// a + k b for a number k.
template <class T> TT_INLINE Z<T> plus(Z<T> a, T k, Z<T> b) {
  const Vec<T> all = splat(k);
  return {fma(b.re, all, a.re), fma(b.im, all, a.im)};
}

// Where an element's parts begin. Exchanging the parts before and after a transform conjugates its
// roots.
struct Parts {
  int64_t re, im;
};
template <class T> TT_INLINE Parts parts(bool exchanged) {
  return exchanged ? Parts{kTile<T>, 0} : Parts{0, kTile<T>};
}
template <class T> TT_INLINE Z<T> load_z(const T* p, Parts at) {
  return {load(p + at.re), load(p + at.im)};
}
template <class T> TT_INLINE void store_z(T* p, Parts at, Z<T> v) {
  store(p + at.re, v.re);
  store(p + at.im, v.im);
}

// cos and sin of 2 pi k / r, for odd r.
template <int r> struct OddRoots;
template <> struct OddRoots<3> {
  static constexpr double kCos[3] = {1, -0.5, -0.5};
  static constexpr double kSin[3] = {0, 0.86602540378443864676, -0.86602540378443864676};
};
template <> struct OddRoots<5> {
  static constexpr double kCos[5] = {1, 0.30901699437494742410, -0.80901699437494742410,
                                     -0.80901699437494742410, 0.30901699437494742410};
  static constexpr double kSin[5] = {0, 0.95105651629515357212, 0.58778525229247312917,
                                     -0.58778525229247312917, -0.95105651629515357212};
};
template <> struct OddRoots<7> {
  static constexpr double kCos[7] = {1,
                                     0.62348980185873353053,
                                     -0.22252093395631440429,
                                     -0.90096886790241912624,
                                     -0.90096886790241912624,
                                     -0.22252093395631440429,
                                     0.62348980185873353053};
  static constexpr double kSin[7] = {0,
                                     0.78183148246802980871,
                                     0.97492791218182360702,
                                     0.43388373911755812048,
                                     -0.43388373911755812048,
                                     -0.97492791218182360702,
                                     -0.78183148246802980871};
};

// Transforms x[0 … r - 1]. Odd r: with the sums and differences of x[j] and x[r - j],
// y[k] and y[r - k] are x[0] + sum_j cos(2 pi j k / r) sum[j] -+ i sum_j sin(2 pi j k / r) diff[j].
template <int r, class T> TT_INLINE void butterfly(Z<T>* x) {
  if constexpr (r == 2) {
    const Z<T> a = x[0];
    x[0] = a + x[1];
    x[1] = a - x[1];
  } else if constexpr (r == 4) {
    const Z<T> a = x[0] + x[2];
    const Z<T> b = x[0] - x[2];
    const Z<T> c = x[1] + x[3];
    const Z<T> d = minus_i(x[1] - x[3]);
    x[0] = a + c;
    x[1] = b + d;
    x[2] = a - c;
    x[3] = b - d;
  } else if constexpr (r == 8) {
    Z<T> even[4] = {x[0], x[2], x[4], x[6]};
    Z<T> odd[4] = {x[1], x[3], x[5], x[7]};
    butterfly<4>(even);
    butterfly<4>(odd);
    const Vec<T> half = splat(T(0.70710678118654752440));
    const Z<T> a = {(odd[1].re + odd[1].im) * half, (odd[1].im - odd[1].re) * half};
    const Z<T> b = minus_i(odd[2]);
    const Z<T> c = {(odd[3].im - odd[3].re) * half, (odd[3].re + odd[3].im) * -half};
    x[0] = even[0] + odd[0];
    x[4] = even[0] - odd[0];
    x[1] = even[1] + a;
    x[5] = even[1] - a;
    x[2] = even[2] + b;
    x[6] = even[2] - b;
    x[3] = even[3] + c;
    x[7] = even[3] - c;
  } else {
    constexpr int kHalf = r / 2;
    Z<T> sum[kHalf + 1], diff[kHalf + 1];
    Z<T> all = x[0];
    TT_UNROLL for (int j = 1; j <= kHalf; j++) {
      sum[j] = x[j] + x[r - j];
      diff[j] = x[j] - x[r - j];
      all = all + sum[j];
    }
    const Z<T> first = x[0];
    TT_UNROLL for (int k = 1; k <= kHalf; k++) {
      Z<T> even = first;
      Z<T> odd = diff[1] * splat(T(OddRoots<r>::kSin[k]));
      TT_UNROLL for (int j = 1; j <= kHalf; j++) {
        even = plus(even, T(OddRoots<r>::kCos[j * k % r]), sum[j]);
        if (j > 1) odd = plus(odd, T(OddRoots<r>::kSin[j * k % r]), diff[j]);
      }
      odd = minus_i(odd);
      x[k] = even + odd;
      x[r - k] = even - odd;
    }
    x[0] = all;
  }
}

// ---- pairs ----

// The even or the odd elements of a and b.
template <int n, class V> TT_INLINE V even_of(V a, V b) {
  if constexpr (n == 2) return shuffled<0, 2>(a, b);
  else if constexpr (n == 4) return shuffled<0, 2, 4, 6>(a, b);
  else if constexpr (n == 8) return shuffled<0, 2, 4, 6, 8, 10, 12, 14>(a, b);
  else return shuffled<0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30>(a, b);
}
template <int n, class V> TT_INLINE V odd_of(V a, V b) {
  if constexpr (n == 2) return shuffled<1, 3>(a, b);
  else if constexpr (n == 4) return shuffled<1, 3, 5, 7>(a, b);
  else if constexpr (n == 8) return shuffled<1, 3, 5, 7, 9, 11, 13, 15>(a, b);
  else return shuffled<1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31>(a, b);
}
// kLanes<T> pairs.
template <class T> TT_INLINE Z<T> load_pairs(const T* p) {
  const Vec<T> a = load(p);
  const Vec<T> b = load(p + kLanes<T>);
  return {even_of<kLanes<T>>(a, b), odd_of<kLanes<T>>(a, b)};
}
template <class T> TT_INLINE void store_pairs(T* p, Z<T> z) {
  store(p, interleave<Vec<T>, kLanes<T>>(z.re, z.im, false));
  store(p + kLanes<T>, interleave<Vec<T>, kLanes<T>>(z.re, z.im, true));
}

// ---- passes ----

// What the first and the last pass of a transform do beside: reading elements from pairs in memory,
// and turning them by roots, or writing them as pairs. NULL: nothing. Pairs are `step` numbers
// apart from one element to the next.
template <class T> struct Ends {
  const T* from;
  int64_t from_step;
  const T* turns;
  T* to;
  int64_t to_step;
};
// For these radices the first and the last pass do.
template <class T> constexpr bool kHasEnds = kLanes<T> == kTile<T>;
template <class T> TT_INLINE bool has_ends(int64_t radix) {
  return kHasEnds<T> && (radix == 4 || radix == 8);
}
template <int r, class T> TT_INLINE void exchange_parts(Z<T>* x) {
  TT_UNROLL for (int j = 0; j < r; j++) x[j] = {x[j].im, x[j].re};
}

// Elements 0, step, … of r. Four share their addresses: the compiler would keep one for each of
// them, more than there are registers.
template <int r, class T>
TT_INLINE void load_elements(Z<T>* x, const T* from, int64_t step, Parts at) {
  const T* re = from + at.re;
  const T* im = from + at.im;
  TT_UNROLL for (int j = 0; j < r; j++) {
    if (j % 4 == 0) TT_KEEP_IN_REGISTERS(re, im);
    x[j] = {load(re + j % 4 * step), load(im + j % 4 * step)};
    if (j % 4 == 3) {
      re += 4 * step;
      im += 4 * step;
    }
  }
}
template <int r, class T>
TT_INLINE void store_elements(T* to, int64_t step, Parts at, const Z<T>* x) {
  T* re = to + at.re;
  T* im = to + at.im;
  TT_UNROLL for (int j = 0; j < r; j++) {
    if (j % 4 == 0) TT_KEEP_IN_REGISTERS(re, im);
    store(re + j % 4 * step, x[j].re);
    store(im + j % 4 * step, x[j].im);
    if (j % 4 == 3) {
      re += 4 * step;
      im += 4 * step;
    }
  }
}

// One pass as above, over elements of 2 kTile<T> numbers. The last one (m = 1) has no roots and
// multiplies by `scale`.
template <int r, class T> TT_NOINLINE void pass(const T* in, T* out, int64_t s, int64_t m,
                                                const T* roots, Parts at, T scale,
                                                const Ends<T>& ends) {
  constexpr int64_t kElement = 2 * kTile<T>;
  constexpr bool kEnds = kHasEnds<T> && (r == 4 || r == 8);
  const Vec<T> factor = splat(scale);
  for (int64_t p = 0; p < m; p++, roots += 2 * (r - 1)) {
    for (int64_t q = 0; q < s; q++)
      for (int64_t l = 0; l < kTile<T>; l += kLanes<T>) {
        Z<T> x[r];
        if (kEnds && s == 1 && ends.from) {
          const T* pairs = ends.from + p * ends.from_step;
          TT_UNROLL for (int j = 0; j < r; j++) x[j] = load_pairs(pairs + m * j * ends.from_step);
          if (at.re) exchange_parts<r>(x);
        } else {
          load_elements<r>(x, in + (q + s * p) * kElement + l, s * m * kElement, at);
        }
        butterfly<r>(x);
        T* to = out + (q + s * r * p) * kElement + l;
        if (m > 1) {
          TT_UNROLL for (int k = 1; k < r; k++) x[k] =
              x[k] * Z<T>{splat(roots[2 * k - 2]), splat(roots[2 * k - 1])};
        } else if (kEnds && ends.turns) {
          const T* turns = ends.turns + q * kElement;
          TT_UNROLL for (int k = 0; k < r; k++) x[k] =
              x[k] * load_z(turns + s * k * kElement, parts<T>(false));
        } else {
          TT_UNROLL for (int k = 0; k < r; k++) x[k] = x[k] * factor;
          if (kEnds && ends.to) {
            if (at.re) exchange_parts<r>(x);
            T* pairs = ends.to + q * ends.to_step;
            TT_UNROLL for (int k = 0; k < r; k++) store_pairs(pairs + s * k * ends.to_step, x[k]);
            continue;
          }
        }
        store_elements<r>(to, s * kElement, at, x);
      }
  }
}

// The same for any odd r; own: the r roots of r.
template <class T> TT_NOINLINE void odd_pass(int64_t r, const T* in, T* out, int64_t s, int64_t m,
                                             const T* roots, const T* own, Parts at, T scale) {
  constexpr int64_t kElement = 2 * kTile<T>;
  const int64_t half = r / 2;
  Z<T> sum[kMaxFftRadix / 2 + 1], diff[kMaxFftRadix / 2 + 1];
  for (int64_t u = 0; u < m * s; u++)
    for (int64_t l = 0; l < kTile<T>; l += kLanes<T>) {
      const int64_t p = u / s;
      const T* from = in + u * kElement + l;
      T* to = out + (u + s * (r - 1) * p) * kElement + l;
      const Z<T> first = load_z(from, at);
      Z<T> all = first;
      for (int64_t j = 1; j <= half; j++) {
        const Z<T> a = load_z(from + s * m * j * kElement, at);
        const Z<T> b = load_z(from + s * m * (r - j) * kElement, at);
        sum[j] = a + b;
        diff[j] = a - b;
        all = all + sum[j];
      }
      store_z(to, at, all * splat(scale));
      for (int64_t k = 1; k <= half; k++) {
        Z<T> even = first;
        Z<T> odd = {};
        for (int64_t j = 1, t = k; j <= half; j++) {
          even = plus(even, own[2 * t], sum[j]);
          odd = plus(odd, -own[2 * t + 1], diff[j]);
          t += k;
          if (t >= r) t -= r;
        }
        odd = minus_i(odd);
        const T* w = roots + 2 * (p * (r - 1) + k - 1);
        const T* v = roots + 2 * (p * (r - 1) + r - k - 1);
        const Z<T> low = {splat(w[0] * scale), splat(w[1] * scale)};
        const Z<T> high = {splat(v[0] * scale), splat(v[1] * scale)};
        store_z(to + s * k * kElement, at, (even + odd) * low);
        store_z(to + s * (r - k) * kElement, at, (even - odd) * high);
      }
    }
}

// Fills the tables of all passes (fft_pass_numbers).
template <class T> void fill_pass_roots(const FftPasses& plan, T* roots) {
  int64_t m = plan.n;
  for (int32_t i = 0; i < plan.n_passes; i++) {
    const int64_t r = plan.radix[i];
    m /= r;
    const int64_t others = r - 1;
    write_roots(roots, m * others, double(r * m),
                [&](int64_t k) { return k / others * (k % others + 1); });
    roots += 2 * m * others;
    if (fft_has_code(r)) continue;
    write_roots(roots, r, double(r), [](int64_t k) { return k; });
    roots += 2 * r;
  }
}

// Transforms the tile a; b is another of that size. Returns the one with the result.
template <class T> T* run_passes(const FftPasses& plan, const T* roots, T* a, T* b, Parts at,
                                 double scale, const Ends<T>& ends = {}) {
  constexpr int64_t kElement = 2 * kTile<T>;
  int64_t s = 1;
  int64_t m = plan.n;
  for (int32_t i = 0; i < plan.n_passes; i++) {
    const int64_t r = plan.radix[i];
    m /= r;
    const T factor = m == 1 ? T(scale) : T(1);
    switch (r) {
      case 2: pass<2>(a, b, s, m, roots, at, factor, ends); break;
      case 3: pass<3>(a, b, s, m, roots, at, factor, ends); break;
      case 4: pass<4>(a, b, s, m, roots, at, factor, ends); break;
      case 5: pass<5>(a, b, s, m, roots, at, factor, ends); break;
      case 7: pass<7>(a, b, s, m, roots, at, factor, ends); break;
      case 8: pass<8>(a, b, s, m, roots, at, factor, ends); break;
      default: odd_pass(r, a, b, s, m, roots, roots + 2 * m * (r - 1), at, factor);
    }
    roots += 2 * (m * (r - 1) + (fft_has_code(r) ? 0 : r));
    s *= r;
    T* const result = b;
    b = a;
    a = result;
  }
  if (plan.n_passes == 0)
    for (int64_t l = 0; l < kElement; l += kLanes<T>) store(a + l, load(a + l) * splat(T(scale)));
  return a;
}

TT_ISA_END
