// Complex numbers in memory, as pairs, and in vectors, as parts.
#pragma once

#include "kernels/cpu/fft/passes.h"
#include "kernels/cpu/simd/transpose.h"

TT_ISA_BEGIN

// The even or the odd elements of a and b; a and b interleaved; a in reverse order.
template <int n, class V> TT_INLINE V even_of(V a, V b) {
  if constexpr (n == 2) return __builtin_shufflevector(a, b, 0, 2);
  else if constexpr (n == 4) return __builtin_shufflevector(a, b, 0, 2, 4, 6);
  else if constexpr (n == 8) return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
  else
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}
template <int n, class V> TT_INLINE V odd_of(V a, V b) {
  if constexpr (n == 2) return __builtin_shufflevector(a, b, 1, 3);
  else if constexpr (n == 4) return __builtin_shufflevector(a, b, 1, 3, 5, 7);
  else if constexpr (n == 8) return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
  else
    return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}
template <int n, class V> TT_INLINE V reversed(V a) {
  if constexpr (n == 2) return __builtin_shufflevector(a, a, 1, 0);
  else if constexpr (n == 4) return __builtin_shufflevector(a, a, 3, 2, 1, 0);
  else if constexpr (n == 8) return __builtin_shufflevector(a, a, 7, 6, 5, 4, 3, 2, 1, 0);
  else return __builtin_shufflevector(a, a, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
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
template <class T> TT_INLINE Z<T> reversed(Z<T> z) {
  return {reversed<kLanes<T>>(z.re), reversed<kLanes<T>>(z.im)};
}

// Writes exp(-2 pi i k / n) for k in [0, count) as pairs.
template <class T> TT_INLINE void write_first_roots(T* out, int64_t count, double n) {
  constexpr int64_t kN = kLanes<double>;
  typedef Vec<double> V;
  V first = {};
  for (int64_t i = 0; i < kN; i++) first[i] = double(i);
  int64_t k = 0;
  for (; k + kN <= count; k += kN) {
    const Roots w = unit_roots(first + double(k), n);
    store_as(out + 2 * k, interleave<V, int(kN)>(w.re, w.im, false));
    store_as(out + 2 * k + kN, interleave<V, int(kN)>(w.re, w.im, true));
  }
  write_roots(out + 2 * k, count - k, n, [k](int64_t i) { return k + i; });
}

// n <= kTile<T> pairs -> an element of a tile, filled with zeros, and back.
template <class T> TT_INLINE void split_pairs(T* element, const T* in, int64_t n) {
  constexpr int64_t kL = kTile<T>;
  if (TT_LIKELY(n == kL)) {
    for (int64_t l = 0; l < kL; l += kLanes<T>)
      store_z(element + l, parts<T>(false), load_pairs(in + 2 * l));
    return;
  }
  for (int64_t l = 0; l < kL; l++) {
    element[l] = l < n ? in[2 * l] : T(0);
    element[kL + l] = l < n ? in[2 * l + 1] : T(0);
  }
}
template <class T> TT_INLINE void join_pairs(T* out, const T* element, int64_t n) {
  constexpr int64_t kL = kTile<T>;
  if (TT_LIKELY(n == kL)) {
    for (int64_t l = 0; l < kL; l += kLanes<T>)
      store_pairs(out + 2 * l, load_z(element + l, parts<T>(false)));
    return;
  }
  for (int64_t l = 0; l < n; l++) {
    out[2 * l] = element[l];
    out[2 * l + 1] = element[kL + l];
  }
}

TT_ISA_END
