// Tiles of transforms: loading and storing them, real and Hermitian ones, Bluestein's algorithm.
#pragma once

#include "kernels/cpu/fft/pairs.h"

TT_ISA_BEGIN

// The transforms of a tile: rows [first, first + n) of [outer][inner].
struct TileRows {
  int64_t first, n, inner;
  // The index of row l's first number in an array [outer][dim][inner].
  TT_INLINE int64_t start(int64_t l, int64_t dim) const {
    const int64_t row = first + l;
    return row / inner * dim * inner + row % inner;
  }
  TT_INLINE bool are_neighbours() const { return first / inner == (first + n - 1) / inner; }
};

template <class T> TT_INLINE void copy_lanes(T* to, const T* from, int64_t n) {
  for (int64_t l = 0; l < n; l++) to[l] = from[l];
}

// tile[step j][l] = in[j * rows.inner] of row l, for j < dim numbers of `parts` reals each, whose
// parts are in successive tile rows. step: tile rows from one real number to the next (2: the
// imaginary parts between are not written).
template <class T, int kParts>
void load_rows(T* tile, int64_t step, const TileRows& rows, const T* in, int64_t dim) {
  constexpr int64_t kL = kTile<T>;
  if (rows.inner == 1) {
    transpose_elements(reinterpret_cast<char*>(tile), step * kFftTileBytes,
                       reinterpret_cast<const char*>(in + rows.first * dim * kParts),
                       dim * kParts * int64_t(sizeof(T)), dim * kParts, rows.n, sizeof(T));
    return;
  }
  if (rows.are_neighbours()) {
    const T* from = in + rows.start(0, dim) * kParts;
    for (int64_t j = 0; j < dim; j++, from += rows.inner * kParts) {
      T* const to = tile + j * kParts * step * kL;
      if constexpr (kParts == 2) split_pairs(to, from, rows.n);
      else copy_lanes(to, from, rows.n);
    }
    return;
  }
  for (int64_t l = 0; l < rows.n; l++) {
    const T* from = in + rows.start(l, dim) * kParts;
    for (int64_t j = 0; j < dim; j++)
      for (int64_t part = 0; part < kParts; part++)
        tile[(j * kParts + part) * step * kL + l] = from[j * rows.inner * kParts + part];
  }
}
// The reverse.
template <class T, int kParts>
void store_rows(T* out, const T* tile, int64_t step, const TileRows& rows, int64_t dim) {
  constexpr int64_t kL = kTile<T>;
  if (rows.inner == 1) {
    transpose_elements(reinterpret_cast<char*>(out + rows.first * dim * kParts),
                       dim * kParts * int64_t(sizeof(T)), reinterpret_cast<const char*>(tile),
                       step * kFftTileBytes, rows.n, dim * kParts, sizeof(T));
    return;
  }
  if (rows.are_neighbours()) {
    T* to = out + rows.start(0, dim) * kParts;
    for (int64_t j = 0; j < dim; j++, to += rows.inner * kParts) {
      const T* from = tile + j * kParts * step * kL;
      if constexpr (kParts == 2) join_pairs(to, from, rows.n);
      else copy_lanes(to, from, rows.n);
    }
    return;
  }
  for (int64_t l = 0; l < rows.n; l++) {
    T* to = out + rows.start(l, dim) * kParts;
    for (int64_t j = 0; j < dim; j++)
      for (int64_t part = 0; part < kParts; part++)
        to[j * rows.inner * kParts + part] = tile[(j * kParts + part) * step * kL + l];
  }
}

template <class T> TT_INLINE void negate_imaginary(T* tile, int64_t n) {
  constexpr int64_t kL = kTile<T>;
  for (int64_t j = 0; j < n; j++)
    for (int64_t l = 0; l < kL; l += kLanes<T>) {
      T* const im = tile + (2 * j + 1) * kL + l;
      store(im, -load(im));
    }
}

// ---- real numbers ----

// Numbers j and h - j of the spectrum of 2 h real numbers, from those of the h complex numbers that
// hold them in pairs; w = exp(-pi i j / h). Even and odd elements have the spectra (a + conj b) / 2
// and (a - conj b) / 2i.
template <class T> struct PackedPair { Z<T> a, b; };
template <class T> TT_INLINE PackedPair<T> unpack(Z<T> a, Z<T> b, Z<T> w) {
  const Vec<T> half = splat(T(0.5));
  const Z<T> even = Z<T>{a.re + b.re, a.im - b.im} * half;
  const Z<T> odd = minus_i(Z<T>{a.re - b.re, a.im + b.im} * half) * w;
  return {even + odd, {even.re - odd.re, odd.im - even.im}};
}
// The reverse, times 2.
template <class T> TT_INLINE PackedPair<T> pack(Z<T> a, Z<T> b, Z<T> w) {
  const Z<T> even = {a.re + b.re, a.im - b.im};
  const Z<T> turned = Z<T>{a.re - b.re, a.im + b.im} * Z<T>{w.re, -w.im};
  const Z<T> odd = {-turned.im, turned.re};
  return {even + odd, {even.re - odd.re, odd.im - even.im}};
}

// z[0 … h - 1] -> out[0 … h], conjugated if `inverse`.
template <class T> void unpack_tile(const T* z, T* out, const T* roots, int64_t h, bool inverse) {
  constexpr int64_t kL = kTile<T>;
  const Parts at = parts<T>(false);
  for (int64_t l = 0; l < kL; l += kLanes<T>) {
    const Z<T> first = load_z(z + l, at);
    store_z(out + l, at, {first.re + first.im, Vec<T>{}});
    store_z(out + 2 * h * kL + l, at, {first.re - first.im, Vec<T>{}});
    for (int64_t j = 1; 2 * j <= h; j++) {
      const Z<T> w = {splat(roots[2 * j]), splat(roots[2 * j + 1])};
      const PackedPair<T> y =
          unpack(load_z(z + 2 * j * kL + l, at), load_z(z + 2 * (h - j) * kL + l, at), w);
      store_z(out + 2 * (h - j) * kL + l, at, y.b);
      store_z(out + 2 * j * kL + l, at, y.a);
    }
  }
  if (inverse) negate_imaginary(out, h + 1);
}
// x[0 … h] -> z[0 … h - 1].
template <class T> void pack_tile(const T* x, T* z, const T* roots, int64_t h) {
  constexpr int64_t kL = kTile<T>;
  const Parts at = parts<T>(false);
  for (int64_t l = 0; l < kL; l += kLanes<T>) {
    const Z<T> first = load_z(x + l, at);
    const Z<T> last = load_z(x + 2 * h * kL + l, at);
    store_z(z + l, at, {first.re + last.re, first.re - last.re});
    for (int64_t j = 1; 2 * j <= h; j++) {
      const Z<T> w = {splat(roots[2 * j]), splat(roots[2 * j + 1])};
      const PackedPair<T> y =
          pack(load_z(x + 2 * j * kL + l, at), load_z(x + 2 * (h - j) * kL + l, at), w);
      store_z(z + 2 * (h - j) * kL + l, at, y.b);
      store_z(z + 2 * j * kL + l, at, y.a);
    }
  }
}
// The imaginary parts that are 0 in the spectrum x[0 … n / 2] of real numbers.
template <class T> void clear_real_ends(T* x, int64_t n) {
  constexpr int64_t kL = kTile<T>;
  for (int64_t l = 0; l < kL; l++) {
    x[kL + l] = 0;
    if (n % 2 == 0) x[(n + 1) * kL + l] = 0;
  }
}
// Completes x[0 … n / 2] to the n numbers whose transform is real.
template <class T> void complete_tile(T* x, int64_t n) {
  constexpr int64_t kL = kTile<T>;
  clear_real_ends(x, n);
  for (int64_t j = 1; 2 * j < n; j++)
    for (int64_t l = 0; l < kL; l++) {
      x[2 * (n - j) * kL + l] = x[2 * j * kL + l];
      x[(2 * (n - j) + 1) * kL + l] = -x[(2 * j + 1) * kL + l];
    }
}

// ---- Bluestein ----

// With j k = (j^2 + k^2 - (k - j)^2) / 2, a transform of any length is a convolution with the chirp
// c[j] = exp(-pi i j^2 / n) (Bluestein, IEEE Trans. Audio Electroacoust. 18 (1970) 451):
//   y[k] = c[k] sum_j (x[j] c[j]) conj c[k - j]
template <class T> void multiply_tile(T* tile, const T* factors, int64_t n, Parts at) {
  constexpr int64_t kL = kTile<T>;
  for (int64_t j = 0; j < n; j++) {
    const Z<T> w = {splat(factors[2 * j]), splat(factors[2 * j + 1])};
    for (int64_t l = 0; l < kL; l += kLanes<T>) {
      T* const p = tile + 2 * j * kL + l;
      store_z(p, at, load_z(p, at) * w);
    }
  }
}
template <class T> void clear_tile(T* tile, int64_t begin, int64_t end) {
  memset(tile + 2 * begin * kTile<T>, 0, size_t((end - begin) * 2 * kFftTileBytes));
}
template <class T> T* chirp_transform(const FftPlan& plan, const T* tables, T* a, T* b, Parts at) {
  const FftTables t = fft_tables(plan);
  const T* chirp = tables + 2 * t.chirp;
  const int64_t n = plan.n;
  const int64_t m = plan.first.n;
  multiply_tile(a, chirp, n, at);
  clear_tile(a, n, m);
  T* y = run_passes(plan.first, tables, a, b, at, 1);
  multiply_tile(y, tables + 2 * t.spectrum, m, at);
  y = run_passes(plan.first, tables, y, y == a ? b : a, Parts{at.im, at.re}, plan.scale);
  multiply_tile(y, chirp, n, at);
  return y;
}
// The chirp, and the spectrum of its conjugate divided by the length of the convolution. a and b
// are tiles.
template <class T> void fill_chirp(const FftPlan& plan, T* tables, T* a, T* b) {
  const FftTables t = fft_tables(plan);
  const int64_t n = plan.n;
  const int64_t m = plan.first.n;
  T* chirp = tables + 2 * t.chirp;
  write_roots(chirp, n, double(2 * n), [&](int64_t j) { return j * j % (2 * n); });
  clear_tile(a, 0, m);
  for (int64_t k = 1 - n; k < n; k++) {
    const int64_t j = k < 0 ? -k : k;
    const int64_t at = k < 0 ? m + k : k;
    a[2 * at * kTile<T>] = chirp[2 * j];
    a[(2 * at + 1) * kTile<T>] = -chirp[2 * j + 1];
  }
  const T* y = run_passes(plan.first, tables, a, b, parts<T>(false), 1.0 / double(m));
  T* spectrum = tables + 2 * t.spectrum;
  for (int64_t j = 0; j < 2 * m; j++) spectrum[j] = y[j * kTile<T>];
}

// ---- a tile from memory to memory ----

template <class T> void run_tile(const FftPlan& plan, int64_t tile, T* a, T* b) {
  const T* tables = reinterpret_cast<const T*>(plan.tables);
  const FftTables t = fft_tables(plan);
  const T* in = reinterpret_cast<const T*>(plan.in);
  T* out = reinterpret_cast<T*>(plan.out);
  const int64_t n = plan.n;
  const int64_t h = plan.length;
  const bool packed = fft_is_packed(plan);
  const TileRows rows = {tile * kTile<T>, min(plan.outer * plan.inner - tile * kTile<T>, kTile<T>),
                         plan.inner};
  if (rows.n < kTile<T> || (plan.kind == kFftReal && !packed)) clear_tile(a, 0, h);
  switch (plan.kind) {
    case kFftComplex: load_rows<T, 2>(a, 1, rows, in, n); break;
    case kFftReal: load_rows<T, 1>(a, packed ? 1 : 2, rows, in, n); break;
    default:
      if (rows.n < kTile<T>) clear_tile(b, 0, n / 2 + 1);
      load_rows<T, 2>(packed ? b : a, 1, rows, in, n / 2 + 1);
      if (!plan.inverse) negate_imaginary(packed ? b : a, n / 2 + 1);
      if (packed) pack_tile(b, a, tables + 2 * t.packing, h);
      else complete_tile(a, n);
  }
  const bool backward = plan.kind == kFftComplex ? plan.inverse : plan.kind == kFftHermitian;
  const Parts at = parts<T>(backward);
  T* y = plan.chirp ? chirp_transform(plan, tables, a, b, at)
                    : run_passes(plan.first, tables + 2 * t.first, a, b, at, plan.scale);
  switch (plan.kind) {
    case kFftComplex: store_rows<T, 2>(out, y, 1, rows, n); break;
    case kFftHermitian: store_rows<T, 1>(out, y, packed ? 1 : 2, rows, n); break;
    default:
      if (packed) {
        T* const spectrum = y == a ? b : a;
        unpack_tile(y, spectrum, tables + 2 * t.packing, h, plan.inverse);
        y = spectrum;
      } else {
        clear_real_ends(y, n);
        if (plan.inverse) negate_imaginary(y, n / 2 + 1);
      }
      store_rows<T, 2>(out, y, 1, rows, n / 2 + 1);
  }
}

TT_ISA_END
