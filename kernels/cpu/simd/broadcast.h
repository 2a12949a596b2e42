// splat_at(p): a number of memory in every lane.
#pragma once

#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

template <class T> TT_INLINE Vec<T> splat_at(const T* p) {
#if TT_SVE
  // LD1R takes no index: without the address in a register, gcc loads a lane and copies it.
  __asm__("" : "+r"(p));
#endif
  return splat(*p);
}

TT_ISA_END
