// Long transforms in two steps (Bailey, "FFTs in external or hierarchical memory", Journal of
// Supercomputing 4 (1990)): with h = n1 n2, j = j1 n2 + j2 and k = k1 + n1 k2,
//   y[k1 + n1 k2] = sum_j2 w(n2)^(j2 k2) [ w(h)^(j2 k1) sum_j1 w(n1)^(j1 k1) x[j1 n2 + j2] ]
// in: [n1][n2] numbers. A tile of columns has kTile neighbouring j2 as its lanes; it is
// transformed, turned by w(h)^(j2 k1) and transposed to `middle`: [tiles of k1][n2] elements with
// kTile neighbouring k1 as lanes. Those tiles are transformed in turn; out: [n2][n1] numbers.
#pragma once

#include "kernels/cpu/fft/pairs.h"
#include "kernels/cpu/fft/tiles.h"

TT_ISA_BEGIN

template <class T> struct SplitTransform {
  const FftPlan& plan;
  const T* tables;
  const T* in;  // plan.length numbers
  T* out;       // the same
  T* middle;
  T* a;  // three tiles
  T* b;
  T* turns;
  Parts at;
};

// The roots w(h)^(j2 k1) of a tile of columns: [n1] elements. With k1 = kStep a + b, each is a
// product of two, in double.
template <class T> void fill_turns(T* turns, const FftPlan& plan, int64_t tile) {
  constexpr int64_t kL = kTile<T>;
  constexpr int64_t kStep = 16;
  const double h = double(plan.length);
  const int64_t n1 = plan.first.n;
  Vec<double> first = {};
  for (int64_t i = 0; i < kLanes<double>; i++) first[i] = double(i);
  for (int64_t l = 0; l < kL; l += kLanes<double>) {
    const Vec<double> j2 = first + double(tile * kL + l);
    const int64_t steps = min(n1, kStep);
    Z<double> low[kStep];
    for (int64_t b = 0; b < steps; b++) {
      const Roots w = unit_roots(j2 * double(b), h);
      low[b] = {w.re, w.im};
    }
    for (int64_t k1 = 0; k1 < n1; k1 += kStep) {
      const Roots w = unit_roots(j2 * double(k1), h);
      const Z<double> high = {w.re, w.im};
      for (int64_t b = 0; b < min(n1 - k1, kStep); b++) {
        const Z<double> z = high * low[b];
        store_as(turns + 2 * (k1 + b) * kL + l, z.re);
        store_as(turns + (2 * (k1 + b) + 1) * kL + l, z.im);
      }
    }
  }
}

// Fetches a block of `middle`, kTile elements, that will be written: the blocks of a tile of
// columns are far apart, so that the processor does not foresee them.
template <class T> TT_INLINE void prefetch_block(const T* block) {
  for (int64_t line = 0; line < 2 * kTile<T>; line++) TT_PREFETCH_WRITE(block + line * kTile<T>);
}
TT_INLINE int64_t last_radix(const FftPasses& p) {
  return p.n_passes ? p.radix[p.n_passes - 1] : 1;
}
template <class T> void run_columns(const SplitTransform<T>& s, int64_t tile) {
  constexpr int64_t kL = kTile<T>;
  const FftPlan& plan = s.plan;
  const FftTables t = fft_tables(plan);
  const int64_t n1 = plan.first.n;
  const int64_t n2 = plan.second.n;
  const int64_t some = min(n2 - tile * kL, kL);
  const T* turns = s.tables + 2 * (t.turns + tile * n1 * kL);
  if (plan.length > kFftTurnTable) {
    fill_turns(s.turns, plan, tile);
    turns = s.turns;
  }
  Ends<T> ends = {};
  if (some == kL && has_ends<T>(plan.first.radix[0])) {
    ends.from = s.in + 2 * tile * kL;
    ends.from_step = 2 * n2;
  } else {
    for (int64_t j1 = 0; j1 < n1; j1++)
      split_pairs(s.a + 2 * j1 * kL, s.in + 2 * (j1 * n2 + tile * kL), some);
  }
  if (has_ends<T>(last_radix(plan.first))) ends.turns = turns;
  T* const y = run_passes(plan.first, s.tables + 2 * t.first, s.a, s.b, s.at, 1, ends);
  for (int64_t k1 = ends.turns ? n1 : 0; k1 < n1; k1++)
    for (int64_t l = 0; l < kL; l += kLanes<T>) {
      T* const p = y + 2 * k1 * kL + l;
      store_z(p, s.at, load_z(p, s.at) * load_z(turns + 2 * k1 * kL + l, parts<T>(false)));
    }
  T* to = s.middle + 2 * tile * kL * kL;
  prefetch_block(to);
  for (int64_t k1 = 0; k1 < n1; k1 += kL, to += 2 * n2 * kL) {
    if (k1 + kL < n1) prefetch_block(to + 2 * n2 * kL);
    for (int64_t part = 0; part < 2; part++)
      transpose_elements(reinterpret_cast<char*>(to + part * kL), 2 * kFftTileBytes,
                         reinterpret_cast<const char*>(y + (2 * k1 + part) * kL), 2 * kFftTileBytes,
                         some, min(n1 - k1, kL), sizeof(T));
  }
}

template <class T> void run_rows(const SplitTransform<T>& s, int64_t tile) {
  constexpr int64_t kL = kTile<T>;
  const FftPlan& plan = s.plan;
  const int64_t n1 = plan.first.n;
  const int64_t n2 = plan.second.n;
  const int64_t some = min(n1 - tile * kL, kL);
  Ends<T> ends = {};
  if (some == kL && has_ends<T>(last_radix(plan.second))) {
    ends.to = s.out + 2 * tile * kL;
    ends.to_step = 2 * n1;
  }
  const T* y = run_passes(plan.second, s.tables + 2 * fft_tables(plan).second,
                          s.middle + tile * n2 * 2 * kL, s.a, s.at, plan.scale, ends);
  for (int64_t k2 = ends.to ? n2 : 0; k2 < n2; k2++)
    join_pairs(s.out + 2 * (k2 * n1 + tile * kL), y + 2 * k2 * kL, some);
}

// ---- real numbers ----

// Spectra in place: z[0 … h - 1] -> z[0 … h], conjugated if `inverse`. Elements j and h - j are
// computed together, in blocks from both ends as long as these do not meet.
template <class T> TT_INLINE void put_spectrum(T* z, Z<T> v, T sign) {
  store_pairs(z, {v.re, v.im * splat(sign)});
}
template <class T> void unpack_spectrum(T* z, const T* roots, int64_t h, bool inverse) {
  constexpr int64_t kN = kLanes<T>;
  const T sign = inverse ? T(-1) : T(1);
  const T re = z[0];
  const T im = z[1];
  z[0] = re + im;
  z[1] = 0;
  z[2 * h] = re - im;
  z[2 * h + 1] = 0;
  int64_t j = 1;
  for (; 2 * (j + kN - 1) < h - 1; j += kN) {
    T* const a = z + 2 * j;
    T* const b = z + 2 * (h - j - kN + 1);
    const PackedPair<T> y =
        unpack(load_pairs(a), reversed(load_pairs(b)), load_pairs(roots + 2 * j));
    put_spectrum(a, y.a, sign);
    put_spectrum(b, reversed(y.b), sign);
  }
  for (; 2 * j <= h; j++) {
    T* const a = z + 2 * j;
    T* const b = z + 2 * (h - j);
    const T even_re = (a[0] + b[0]) * T(0.5);
    const T even_im = (a[1] - b[1]) * T(0.5);
    const T diff_re = (a[1] + b[1]) * T(0.5);
    const T diff_im = (b[0] - a[0]) * T(0.5);
    const T odd_re = diff_re * roots[2 * j] - diff_im * roots[2 * j + 1];
    const T odd_im = diff_re * roots[2 * j + 1] + diff_im * roots[2 * j];
    b[0] = even_re - odd_re;
    b[1] = (odd_im - even_im) * sign;
    a[0] = even_re + odd_re;
    a[1] = (even_im + odd_im) * sign;
  }
}
template <class T> TT_INLINE Z<T> load_signed(const T* p, T sign) {
  const Z<T> v = load_pairs(p);
  return {v.re, v.im * splat(sign)};
}
// x[0 … h] -> z[0 … h - 1], of the conjugate of x if `forward`.
template <class T> void pack_spectrum(const T* x, T* z, const T* roots, int64_t h, bool forward) {
  constexpr int64_t kN = kLanes<T>;
  const T sign = forward ? T(-1) : T(1);
  z[0] = x[0] + x[2 * h];
  z[1] = x[0] - x[2 * h];
  int64_t j = 1;
  for (; 2 * (j + kN - 1) < h - 1; j += kN) {
    const int64_t k = h - j - kN + 1;
    const PackedPair<T> y = pack(load_signed(x + 2 * j, sign),
                                 reversed(load_signed(x + 2 * k, sign)), load_pairs(roots + 2 * j));
    store_pairs(z + 2 * j, y.a);
    store_pairs(z + 2 * k, reversed(y.b));
  }
  for (; 2 * j <= h; j++) {
    const T* a = x + 2 * j;
    const T* b = x + 2 * (h - j);
    const T even_re = a[0] + b[0];
    const T even_im = (a[1] - b[1]) * sign;
    const T diff_re = a[0] - b[0];
    const T diff_im = (a[1] + b[1]) * sign;
    const T turned_re = diff_re * roots[2 * j] + diff_im * roots[2 * j + 1];
    const T turned_im = diff_im * roots[2 * j] - diff_re * roots[2 * j + 1];
    z[2 * (h - j)] = even_re + turned_im;
    z[2 * (h - j) + 1] = turned_re - even_im;
    z[2 * j] = even_re - turned_im;
    z[2 * j + 1] = even_im + turned_re;
  }
}

TT_ISA_END
