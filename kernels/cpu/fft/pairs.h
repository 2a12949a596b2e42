// Complex numbers in memory, as pairs, and in vectors, as parts.
#pragma once

#include "kernels/cpu/fft/passes.h"

TT_ISA_BEGIN

// a in reverse order.
template <int n, class V> TT_INLINE V reversed(V a) {
  if constexpr (n == 2) return shuffled<1, 0>(a, a);
  else if constexpr (n == 4) return shuffled<3, 2, 1, 0>(a, a);
  else if constexpr (n == 8) return shuffled<7, 6, 5, 4, 3, 2, 1, 0>(a, a);
  else return shuffled<15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0>(a, a);
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
