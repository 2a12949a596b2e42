// Rounds vectors of floats to bf16 by AVX512_BF16, which processors with AMX have. The instruction
// is written for the assembler, so compilers need no flag. Subnormal numbers become 0.
#pragma once

#include "kernels/cpu/matmul/pack.h"

#if defined(__AVX512BW__)

TT_ISA_BEGIN

// 32 bf16, rounded to nearest: those of `low`, then those of `high`.
TT_INLINE Vec<int32_t> narrow_two(Vec<float> low, Vec<float> high) {
  __m512i out;
  __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(out) : "v"(__m512(low)), "v"(__m512(high)));
  return Vec<int32_t>(out);
}
// Stores the first n of 32 bf16, or all.
TT_INLINE void store_halves(Bf16* out, Vec<int32_t> halves, int64_t n) {
  if (n < 2 * kLanes<float>) _mm512_mask_storeu_epi16(out, (uint32_t(1) << n) - 1, __m512i(halves));
  else store(reinterpret_cast<int32_t*>(out), halves);
}

TT_ISA_END

#endif
