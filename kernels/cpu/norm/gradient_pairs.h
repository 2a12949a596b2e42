// The two sums of a plane that gradients of batch_norm and group_norm need.
#pragma once

#include "kernels/cpu/simd/row_primitives.h"

TT_ISA_BEGIN

// Adds g to *sum_g and g (x - mean) to *sum_gx, element i to lane i % 64.
template <class T> TT_NOINLINE void add_pairs(RowSum<T>* sum_g, RowSum<T>* sum_gx, const T* g,
                                              const T* x, T mean, int64_t n) {
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    TT_VECTORIZE
    for (int l = 0; l < 64; l++) {
      sum_g->lane[l] += g[i + l];
      sum_gx->lane[l] = vfma(g[i + l], x[i + l] - mean, sum_gx->lane[l]);
    }
  }
  for (int l = 0; i < n; i++, l++) {
    sum_g->lane[l] += g[i];
    sum_gx->lane[l] = vfma(g[i], x[i] - mean, sum_gx->lane[l]);
  }
}

TT_ISA_END
