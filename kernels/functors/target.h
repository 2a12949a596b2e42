// What functors are compiled for: TT_ON_DEVICE is 1 under nvcc and in the emulation of its kernels
// (kernels/cuda/device.h), 0 on the CPU.
#pragma once

#include "base/platform.h"

#if defined(__CUDACC__)
#define TT_ON_DEVICE 1
#elif defined(TT_EMULATED)
#define TT_ON_DEVICE 1
#else
#define TT_ON_DEVICE 0
#endif
