// Cumulative products in four lanes: real numbers in double, integers modulo 2^64, complex numbers
// as separate real and imaginary parts.
#pragma once

#include "kernels/cpu/simd/four_doubles.h"
#include "kernels/cpu/simd/row_primitives.h"
#include "plan/scan_plan.h"

TT_ISA_BEGIN

// Stored as V, multiplied as A: products of float32 may leave the range of float32 on the way, as
// in PyTorch.
template <class V, class A> TT_INLINE A times(A a, V v) { return a * A(v); }
template <> TT_INLINE uint64_t times(uint64_t a, int64_t v) { return a * uint64_t(v); }
template <class R> TT_INLINE C128 times_complex(C128 a, Complex<R> v) {
  return {a.re * double(v.re) - a.im * double(v.im), a.re * double(v.im) + a.im * double(v.re)};
}
template <> TT_INLINE C128 times(C128 a, C64 v) { return times_complex(a, v); }
template <> TT_INLINE C128 times(C128 a, C128 v) { return times_complex(a, v); }
template <class A> constexpr A kOne = A(1);
template <> constexpr C128 kOne<C128> = {1, 0};
template <class V, class A> TT_INLINE V rounded(A a) { return V(a); }
template <> TT_INLINE C64 rounded(C128 a) { return {float(a.re), float(a.im)}; }

// ---- four lanes ----

struct Z4 {
  D4 re, im;
};
TT_INLINE Z4 operator*(Z4 a, Z4 b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// Four contiguous values.
TT_INLINE D4 four(const double* p) { return loaded<D4>(p); }
TT_INLINE D4 four(const float* p) { return widened(loaded<S4>(p)); }
TT_INLINE U4 four(const int64_t* p) { return loaded<U4>(p); }
TT_INLINE U4 four(const uint64_t* p) { return loaded<U4>(p); }
TT_INLINE Z4 four(const C128* p) {
  const D4 a = loaded<D4>(p);
  const D4 b = loaded<D4>(p + 2);
  return {pick<0, 2, 4, 6>(a, b), pick<1, 3, 5, 7>(a, b)};
}
TT_INLINE Z4 four(const C64* p) {
  const S4 a = loaded<S4>(p);
  const S4 b = loaded<S4>(p + 2);
  return {widened(shuffled<0, 2, 4, 6>(a, b)), widened(shuffled<1, 3, 5, 7>(a, b))};
}
TT_INLINE void put_four(double* p, D4 v) { put(p, v); }
TT_INLINE void put_four(float* p, D4 v) { put(p, narrowed(v)); }
TT_INLINE void put_four(int64_t* p, U4 v) { put(p, v); }
TT_INLINE void put_four(uint64_t* p, U4 v) { put(p, v); }
TT_INLINE void put_four(C128* p, Z4 v) {
  put(p, pick<0, 4, 1, 5>(v.re, v.im));
  put(p + 2, pick<2, 6, 3, 7>(v.re, v.im));
}
TT_INLINE void put_four(C64* p, Z4 v) {
  const S4 re = narrowed(v.re);
  const S4 im = narrowed(v.im);
  put(p, shuffled<0, 4, 1, 5>(re, im));
  put(p + 2, shuffled<2, 6, 3, 7>(re, im));
}

// For cumulative products of a vector: lanes moved up, filled with 1; the last lane in all lanes.
TT_INLINE D4 up(D4 v) { return pick<4, 0, 1, 2>(v, all(1)); }
TT_INLINE D4 up_two(D4 v) { return pick<4, 5, 0, 1>(v, all(1)); }
TT_INLINE D4 last(D4 v) { return pick<3, 3, 3, 3>(v, v); }

// Four contiguous values of each of four blocks, `apart` elements apart. x[k]: value k of the
// blocks.
TT_INLINE D4 two(const C128* p) { return loaded<D4>(p); }
TT_INLINE D4 two(const C64* p) { return widened(loaded<S4>(p)); }
TT_INLINE void put_two(C128* p, D4 v) { put(p, v); }
TT_INLINE void put_two(C64* p, D4 v) { put(p, narrowed(v)); }
template <class V> TT_INLINE void take_across(Z4* x, const V* p, int64_t apart) {
  for (int k = 0; k < 4; k += 2) {
    const D4 a = two(p + k);
    const D4 b = two(p + apart + k);
    const D4 c = two(p + 2 * apart + k);
    const D4 d = two(p + 3 * apart + k);
    const D4 re_ab = pick<0, 4, 2, 6>(a, b);
    const D4 im_ab = pick<1, 5, 3, 7>(a, b);
    const D4 re_cd = pick<0, 4, 2, 6>(c, d);
    const D4 im_cd = pick<1, 5, 3, 7>(c, d);
    x[k] = {pick<0, 1, 4, 5>(re_ab, re_cd), pick<0, 1, 4, 5>(im_ab, im_cd)};
    x[k + 1] = {pick<2, 3, 6, 7>(re_ab, re_cd), pick<2, 3, 6, 7>(im_ab, im_cd)};
  }
}
template <class V> TT_INLINE void put_across(V* p, int64_t apart, const Z4* x) {
  for (int k = 0; k < 4; k += 2) {
    const Z4 y = x[k];
    const Z4 z = x[k + 1];
    const D4 ac_y = pick<0, 4, 2, 6>(y.re, y.im);
    const D4 bd_y = pick<1, 5, 3, 7>(y.re, y.im);
    const D4 ac_z = pick<0, 4, 2, 6>(z.re, z.im);
    const D4 bd_z = pick<1, 5, 3, 7>(z.re, z.im);
    put_two(p + k, pick<0, 1, 4, 5>(ac_y, ac_z));
    put_two(p + apart + k, pick<0, 1, 4, 5>(bd_y, bd_z));
    put_two(p + 2 * apart + k, pick<2, 3, 6, 7>(ac_y, ac_z));
    put_two(p + 3 * apart + k, pick<2, 3, 6, 7>(bd_y, bd_z));
  }
}

// ---- factors ----

// Multiplies on: replaces n factors, `step` apart, by their cumulative products from `product` on,
// and returns the last one.
template <class V, class A> TT_INLINE A go_on(A product, V* v, int64_t step, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    product = times(product, v[i * step]);
    v[i * step] = rounded<V>(product);
  }
  return product;
}
// A product of 0 times finite factors stays 0: only the signs of its parts change. Stops at the
// first factor that is not finite and returns its index.
TT_INLINE uint32_t bits_of(float x) { return bit_cast<uint32_t>(x); }
TT_INLINE uint64_t bits_of(double x) { return bit_cast<uint64_t>(x); }
template <class R>
TT_INLINE int64_t go_on_zero(C128* product, Complex<R>* v, int64_t step, int64_t n) {
  const auto minus = bits_of(R(-0.0));
  const auto infinity = bits_of(R(kInf));
  auto re = bits_of(R(product->re));
  auto im = bits_of(R(product->im));
  int64_t i = 0;
  for (; i < n; i++) {
    const auto a = bits_of(v[i * step].re);
    const auto b = bits_of(v[i * step].im);
    if ((a & infinity) == infinity || (b & infinity) == infinity) break;
    const auto next = (re ^ a) & ~(im ^ b) & minus;
    im = (re ^ b) & (im ^ a) & minus;
    re = next;
    v[i * step] = {bit_cast<R>(re), bit_cast<R>(im)};
  }
  *product = {double(bit_cast<R>(re)), double(bit_cast<R>(im))};
  return i;
}
template <class R> TT_INLINE C128 go_on(C128 product, Complex<R>* v, int64_t step, int64_t n) {
  int64_t i = product.re == 0 && product.im == 0 ? go_on_zero(&product, v, step, n) : 0;
  for (; i < n; i++) {
    product = times(product, v[i * step]);
    v[i * step] = rounded<Complex<R>>(product);
  }
  return product;
}

// kGroups x 4 columns, products in registers. Rows are `pitch` elements apart; out may be in.
template <int kGroups, class V, class A>
TT_INLINE void go_on_strip(A* product, const V* in, V* out, int64_t pitch, int64_t rows) {
  decltype(four(product)) group[kGroups];
  for (int g = 0; g < kGroups; g++) group[g] = four(product + 4 * g);
  for (int64_t i = 0; i < rows; i++) {
    TT_UNROLL_BY(4)
    for (int g = 0; g < kGroups; g++) {
      group[g] = group[g] * four(in + i * pitch + 4 * g);
      put_four(out + i * pitch + 4 * g, group[g]);
    }
  }
  for (int g = 0; g < kGroups; g++) put_four(product + 4 * g, group[g]);
}
// Products in memory. Parts of complex numbers are separate arrays: gcc 12 would store Z4 as two
// vectors and read it as one.
template <class F, int64_t kN> struct Held {
  F v[kN];
  TT_INLINE F get(int64_t k) const { return v[k]; }
  TT_INLINE void set(int64_t k, F x) { v[k] = x; }
};
template <int64_t kN> struct Held<Z4, kN> {
  D4 re[kN], im[kN];
  TT_INLINE Z4 get(int64_t k) const { return {re[k], im[k]}; }
  TT_INLINE void set(int64_t k, Z4 x) {
    re[k] = x.re;
    im[k] = x.im;
  }
};
// n <= kRowTile columns, row by row, products in memory.
template <class V, class A>
TT_INLINE void go_on_rows(A* product, const V* in, V* out, int64_t pitch, int64_t rows, int64_t n) {
  Held<decltype(four(product)), kRowTile / 4> held;
  const int64_t groups = n / 4;
  for (int64_t g = 0; g < groups; g++) held.set(g, four(product + 4 * g));
  for (int64_t i = 0; i < rows; i++)
    for (int64_t g = 0; g < groups; g++) {
      const auto next = held.get(g) * four(in + i * pitch + 4 * g);
      held.set(g, next);
      put_four(out + i * pitch + 4 * g, next);
    }
  for (int64_t g = 0; g < groups; g++) put_four(product + 4 * g, held.get(g));
}
// n <= kRowTile columns. A column is computed by the same instructions however a row is cut into
// tiles of whole cache lines: a strip is no longer than a line, and only the last tile has a rest.
template <class V, class A> TT_NOINLINE void go_on_columns(A* product, const V* in, V* out,
                                                           int64_t pitch, int64_t rows, int64_t n,
                                                           bool strips) {
  int64_t j = 0;
  if constexpr (sizeof(A) == 8) {
    constexpr int kGroups = 16 / sizeof(V);
    for (; strips && j + 4 * kGroups <= n; j += 4 * kGroups)
      go_on_strip<kGroups>(product + j, in + j, out + j, pitch, rows);
  }
  if (j + 4 <= n) go_on_rows(product + j, in + j, out + j, pitch, rows, n - j);
  for (j = n / 4 * 4; j < n; j++)
    for (int64_t i = 0; i < rows; i++) {
      product[j] = times(product[j], in[i * pitch + j]);
      out[i * pitch + j] = rounded<V>(product[j]);
    }
}

// kQuads x 4 blocks of kCumprodBlock rows of n columns. before: [kQuads][4][n], the product before
// each block. kN: n, or 0 for any.
template <int kQuads, int kN, class V>
TT_NOINLINE void go_on_blocks(const C128* before, const V* in, V* out, int64_t n) {
  const int64_t apart = kCumprodBlock * n;
  Held<Z4, kN ? kN : kNarrowProducts> product[kQuads];
  for (int q = 0; q < kQuads; q++)
    for (int64_t j = 0; j < n; j++) {
      const C128* a = before + 4 * q * n + j;
      const C128* b = a + n;
      const C128* c = b + n;
      const C128* d = c + n;
      product[q].set(j,
                     {combined(a->re, b->re, c->re, d->re), combined(a->im, b->im, c->im, d->im)});
    }
  for (int64_t i = 0, j = 0; i < apart; i += 4) {
    int64_t column = 0;
    TT_UNROLL_BY(2)
    for (int q = 0; q < kQuads; q++) {
      Z4 x[4];
      take_across(x, in + 4 * q * apart + i, apart);
      column = j;
      TT_UNROLL_BY(4)
      for (int k = 0; k < 4; k++) {
        const int64_t c = kN == 1 ? 0 : column;
        x[k] = product[q].get(c) * x[k];
        product[q].set(c, x[k]);
        column = column + 1 == n ? 0 : column + 1;
      }
      put_across(out + 4 * q * apart + i, apart, x);
    }
    j = column;
  }
}

TT_ISA_END
