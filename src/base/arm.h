// What ARM processors have beyond their baseline.
#pragma once

#include "base/cpuid.h"

namespace TT_NS {

// Kernels of SVE, and on 32-bit ARM of NEON, take the place of AVX2's.
constexpr Isa kIsaSve256 = kIsaAvx2;
constexpr Isa kIsaNeon = kIsaAvx2;

enum ArmFeature : uint32_t {
  kArmByteDots = 1,      // SDOT
  kArmByteMatrices = 2,  // SMMLA: products of 2 by 8 and 8 by 2 bytes
  kArmBf16Matrices = 4,  // BFMMLA: of 2 by 4 and 4 by 2 bf16
  kArmSve256 = 8,        // SVE with vectors of 256 bits
  kArmNeon = 16,         // NEON, of which 64-bit ARM's baseline is one
};

// The features as bits, from the system. In os_<system>.cpp.
uint32_t os_arm_features() noexcept;

// Whether this processor has one; asks the system once.
#if defined(__aarch64__) || TT_HAVE_NEON
bool has_arm(ArmFeature) noexcept;
#else
constexpr bool has_arm(ArmFeature) noexcept { return false; }
#endif

}  // namespace TT_NS
