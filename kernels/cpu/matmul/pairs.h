// Vectors of complex numbers, as pairs of real ones: lanes 2 i and 2 i + 1 are the parts of one.
#pragma once

#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

// The two parts of each number exchanged.
template <class V> TT_INLINE V exchanged_parts(V v) {
  if constexpr (sizeof(V) / sizeof(v[0]) == 16)
    return shuffled<1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14>(v, v);
  else if constexpr (sizeof(V) / sizeof(v[0]) == 8) return shuffled<1, 0, 3, 2, 5, 4, 7, 6>(v, v);
  else if constexpr (sizeof(V) / sizeof(v[0]) == 4) return shuffled<1, 0, 3, 2>(v, v);
  else return shuffled<1, 0>(v, v);
}

TT_ISA_END
