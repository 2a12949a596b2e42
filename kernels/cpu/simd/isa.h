// Included first by every kernels/cpu/*.cpp: the namespace of this instruction set's build.
// Each file is compiled once per ISA with -DTT_ISA=baseline|avx2|avx512. Entry points live in
// TT_NS::TT_ISA; all else between TT_ISA_BEGIN and TT_ISA_END sits in an unnamed namespace there,
// so no weak symbol can leak out of an ISA build into code that runs on lesser machines. No
// standard-library template may be used.
#pragma once

#include "plan/kernel.h"

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
// Defines an entry point: TT_KERNEL(name)(const void* plan, int64_t begin, int64_t end) noexcept {
// … }
#define TT_KERNEL(name) int32_t name
#define TT_ENTRY_BEGIN \
  namespace TT_NS {    \
  namespace TT_ISA {
#define TT_ENTRY_END \
  }                  \
  }
