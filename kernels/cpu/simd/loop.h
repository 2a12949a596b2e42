// Attributes of vector loops.
#pragma once

// Declares the iterations of the next loop independent: an output may be an input, element by
// element, but nothing else overlaps.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"  // loops that call the C library stay scalar
#define TT_VECTORIZE _Pragma("clang loop vectorize(assume_safety) interleave(enable)")
#else
#define TT_VECTORIZE _Pragma("GCC ivdep")
#endif
// Keeps a loop scalar where a vectorised one would be larger and no faster.
#define TT_SCALAR_LOOP __asm__ volatile("")
#define TT_RESTRICT __restrict
#define TT_INLINE_LAMBDA __attribute__((always_inline))
