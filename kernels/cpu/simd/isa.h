// Included first by every file of kernels/cpu: the namespace of this instruction set's build. Each
// file is compiled once per ISA with -DTT_ISA=baseline|avx2|avx512|sve256. Entry points are in
// TT_NS::TT_ISA; everything else, between TT_ISA_BEGIN and TT_ISA_END, is in an unnamed namespace
// there, so that no weak symbol of an ISA build is linked into code for lesser machines. For the
// same reason no standard-library template may be used.
#pragma once

#include "kernels/cpu/simd/fused.h"
#include "plan/kernel.h"

#include <string.h>

#ifndef TT_ISA
#error "TT_ISA is set by the build"
#endif

#define TT_ISA_BEGIN \
  namespace TT_NS {  \
  namespace TT_ISA { \
  namespace {
#define TT_ISA_END \
  }                \
  }                \
  }
// An entry point: TT_KERNEL(name)(const void* plan, int64_t begin, int64_t end) noexcept { … }
#define TT_KERNEL(name) int32_t name
#define TT_ENTRY_BEGIN \
  namespace TT_NS {    \
  namespace TT_ISA {
#define TT_ENTRY_END \
  }                  \
  }
