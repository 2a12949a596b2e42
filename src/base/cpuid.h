// Detects which instruction-set builds of the kernels this processor can run.
#pragma once

#include "base/platform.h"

namespace TT_NS {

enum Isa : int32_t { kIsaBaseline = 0, kIsaAvx2 = 1, kIsaAvx512 = 2, kNumIsa = 3 };

#if TT_X86_64
struct CpuidWords {
  uint32_t a, b, c, d;
};
// Zeros for a leaf that the processor does not have.
CpuidWords cpuid_words(uint32_t leaf, uint32_t sub) noexcept;
#endif

Isa best_isa() noexcept;  // AVX2 implies FMA, F16C, BMI; AVX-512 implies F, BW, DQ, VL
// The least set of kernels that multiplies bf16 as they are, if has_bf16_products(): AVX512_BF16 in
// addition to AVX-512, BFMMLA in addition to ARM's baseline.
#if defined(__aarch64__)
constexpr Isa kBf16Isa = kIsaBaseline;
#else
constexpr Isa kBf16Isa = kIsaAvx512;
#endif
bool has_bf16_products() noexcept;
// Dot products of bytes: AVX512_VNNI for kIsaAvx512, AVX-VNNI for kIsaAvx2, SDOT for ARM.
bool has_int8_products(Isa) noexcept;
const char* isa_name(Isa) noexcept;
int64_t l3_bytes() noexcept;   // 0 if unknown
bool steady_ticks() noexcept;  // os_ticks has a constant rate and is the same on all cores

}  // namespace TT_NS
