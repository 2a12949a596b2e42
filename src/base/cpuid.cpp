#include "base/cpuid.h"

#include "base/arith.h"
#include "base/arm.h"

#if TT_X86_64 && !defined(_MSC_VER)
#include <cpuid.h>
#endif

namespace TT_NS {

#if TT_X86_64

CpuidWords cpuid_words(uint32_t leaf, uint32_t sub) noexcept {
  CpuidWords r = {};
#if defined(_MSC_VER)
  int words[4];
  __cpuid(words, int(leaf & 0x80000000));
  if (uint32_t(words[0]) < leaf) return r;
  __cpuidex(words, int(leaf), int(sub));
  r = {uint32_t(words[0]), uint32_t(words[1]), uint32_t(words[2]), uint32_t(words[3])};
#else
  if (!__get_cpuid_count(leaf, sub, &r.a, &r.b, &r.c, &r.d)) r = {};
#endif
  return r;
}

namespace {

constexpr bool has(uint32_t word, int bit) { return (word >> bit) & 1; }

Isa detect() {
  const CpuidWords one = cpuid_words(1, 0);
  const CpuidWords seven = cpuid_words(7, 0);
  const CpuidWords ext = cpuid_words(0x80000001, 0);
  if (!has(one.c, 27)) return kIsaBaseline;  // OSXSAVE
  const uint32_t xcr0 = saved_registers();
  const bool ymm = (xcr0 & 0x6) == 0x6;
  const bool zmm = (xcr0 & 0xe6) == 0xe6;
  const bool avx2 = has(one.c, 28) && has(one.c, 12) && has(one.c, 29) &&  // AVX FMA F16C
                    has(seven.b, 5) && has(seven.b, 3) && has(seven.b, 8) &&
                    has(ext.c, 5);  // AVX2 BMI1 BMI2 LZCNT
  if (!ymm || !avx2) return kIsaBaseline;
  const bool avx512 = has(seven.b, 16) && has(seven.b, 17) &&  // F DQ
                      has(seven.b, 30) && has(seven.b, 31);    // BW VL
  return zmm && avx512 ? kIsaAvx512 : kIsaAvx2;
}

bool detect_bf16() { return cpuid_words(7, 0).a >= 1 && has(cpuid_words(7, 1).a, 5); }

// Bit i is set if there are kernels of Isa i, and they may use dot products of bytes. Those of
// Microsoft's compiler, which has no macros for these instructions, do without.
int32_t detect_int8() {
#if defined(_MSC_VER)
  return 0;
#endif
  const Isa best = best_isa();
  const bool wide = TT_HAVE_AVX512 && best == kIsaAvx512 && has(cpuid_words(7, 0).c, 11);
  const bool narrow =
      TT_HAVE_AVX2 && best >= kIsaAvx2 && cpuid_words(7, 0).a >= 1 && has(cpuid_words(7, 1).a, 4);
  return int32_t(wide) << kIsaAvx512 | int32_t(narrow) << kIsaAvx2;
}

// Reads the cache parameters: leaf 4 (Intel) and 0x8000001d (AMD) have the same layout.
int64_t find_l3(uint32_t n) {
  for (uint32_t i = 0; i < 8; i++) {
    const CpuidWords r = cpuid_words(n, i);
    if ((r.a & 31) == 0) return 0;
    if (((r.a >> 5) & 7) != 3) continue;
    const int64_t ways = (r.b >> 22) + 1;
    const int64_t parts = ((r.b >> 12) & 1023) + 1;
    const int64_t line = (r.b & 4095) + 1;
    return ways * parts * line * (int64_t(r.c) + 1);
  }
  return 0;
}

int64_t detect_l3() {
  const int64_t amd = find_l3(0x8000001d);
  return amd ? amd : find_l3(4);
}

bool detect_steady_ticks() { return has(cpuid_words(0x80000007, 0).d, 8); }

}  // namespace

#else

namespace {

#if TT_HAVE_SVE256
Isa detect() { return has_arm(kArmSve256) ? kIsaSve256 : kIsaBaseline; }
#elif TT_HAVE_NEON
Isa detect() { return has_arm(kArmNeon) ? kIsaNeon : kIsaBaseline; }
#else
Isa detect() { return kIsaBaseline; }
#endif
bool detect_bf16() { return has_arm(kArmBf16Matrices); }
int32_t detect_int8() {
#if defined(__aarch64__)
  // SVE has them since its beginning.
  const int32_t wide = int32_t(best_isa() == kIsaSve256) << kIsaSve256;
  return int32_t(has_arm(kArmByteDots)) << kIsaBaseline | wide;
#else
  return 0;
#endif
}
int64_t detect_l3() { return 0; }
bool detect_steady_ticks() { return true; }

}  // namespace

#endif

#if defined(__aarch64__) || TT_HAVE_NEON
bool has_arm(ArmFeature feature) noexcept {
  constexpr uint32_t kKnown = uint32_t(1) << 31;
  static constinit uint32_t found = 0;
  uint32_t bits = atomic_load(&found, kRelaxed);
  if (!bits) {
    bits = os_arm_features() | kKnown;
    atomic_store(&found, bits, kRelaxed);
  }
  return (bits & feature) != 0;
}
#endif

Isa best_isa() noexcept {
  static constinit int32_t found = -1;
  int32_t isa = atomic_load(&found, kRelaxed);
  if (isa < 0) {
    isa = detect();
    atomic_store(&found, isa, kRelaxed);
  }
  return Isa(isa);
}

bool has_bf16_products() noexcept {
  static constinit int32_t found = -1;
  int32_t yes = atomic_load(&found, kRelaxed);
  if (yes < 0) {
    yes = best_isa() >= kBf16Isa && detect_bf16();
    atomic_store(&found, yes, kRelaxed);
  }
  return yes != 0;
}

bool has_int8_products(Isa isa) noexcept {
  static constinit int32_t found = -1;
  int32_t bits = atomic_load(&found, kRelaxed);
  if (bits < 0) {
    bits = detect_int8();
    atomic_store(&found, bits, kRelaxed);
  }
  return bits >> isa & 1;
}

const char* isa_name(Isa isa) noexcept {
  switch (isa) {
#if defined(__aarch64__)
    case kIsaSve256: return "sve256";
#elif TT_HAVE_NEON
    case kIsaNeon: return "neon";
#else
    case kIsaAvx2: return "avx2";
#endif
    case kIsaAvx512: return "avx512";
    default: return "baseline";
  }
}

// A program has only a part of a larger cache, since other cores and virtual machines use it: on a
// Xeon with 260 MB, copies of 8 MB and more were faster by non-temporal stores even together with a
// pass that then read the copy (docs/benchmarks/xeon.md).
constexpr int64_t kMaxL3 = int64_t(32) << 20;

int64_t l3_bytes() noexcept {
  static constinit int64_t found = -1;
  int64_t n = atomic_load(&found, kRelaxed);
  if (n < 0) {
    n = min(detect_l3(), kMaxL3);
    atomic_store(&found, n, kRelaxed);
  }
  return n;
}

bool steady_ticks() noexcept { return detect_steady_ticks(); }

}  // namespace TT_NS
