// 64-bit ARM: SVE where the file is compiled for it, else NEON.
#pragma once

#if TT_SVE
#include "kernels/cpu/simd/sve.h"
#else
#include "kernels/cpu/simd/neon.h"
#endif
