// TT_FUSED: 1 where multiplication and addition are rounded once.
#pragma once

#if defined(__FMA__) || (defined(_MSC_VER) && defined(__AVX2__)) || defined(__aarch64__)
#define TT_FUSED 1
#else
#define TT_FUSED 0
#endif
