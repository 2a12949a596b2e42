// What matmul adds to vec.h: transposes.
#pragma once

#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

// lo and hi are the halves of x0 y0 x1 y1 …
template <class V> TT_INLINE void zip(V x, V y, V* lo, V* hi) {
  if constexpr (sizeof(V) / sizeof(x[0]) == 16) {
    *lo = shuffled<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(x, y);
    *hi = shuffled<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(x, y);
  } else if constexpr (sizeof(V) / sizeof(x[0]) == 8) {
    *lo = shuffled<0, 8, 1, 9, 2, 10, 3, 11>(x, y);
    *hi = shuffled<4, 12, 5, 13, 6, 14, 7, 15>(x, y);
  } else if constexpr (sizeof(V) / sizeof(x[0]) == 4) {
    *lo = shuffled<0, 4, 1, 5>(x, y);
    *hi = shuffled<2, 6, 3, 7>(x, y);
  } else {
    *lo = shuffled<0, 2>(x, y);
    *hi = shuffled<1, 3>(x, y);
  }
}

// Transposes an L x L block in registers: zips row i with row i + L/2, log2(L) times.
template <class T> TT_INLINE void transpose(Vec<T> (&r)[kLanes<T>]) {
  constexpr int kL = kLanes<T>;
  TT_UNROLL
  for (int step = 1; step < kL; step *= 2) {
    Vec<T> t[kL];
    TT_UNROLL
    for (int i = 0; i < kL / 2; i++) zip(r[i], r[i + kL / 2], &t[2 * i], &t[2 * i + 1]);
    TT_UNROLL
    for (int i = 0; i < kL; i++) r[i] = t[i];
  }
}

TT_ISA_END
