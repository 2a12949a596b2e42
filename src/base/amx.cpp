#include "base/amx.h"

#include "base/cpuid.h"

#if defined(__x86_64__) && TT_HAVE_AVX512
#include <cpuid.h>
#endif

namespace TT_NS {

namespace {

bool detect() {
#if defined(__x86_64__) && TT_HAVE_AVX512
  if (best_isa() != kIsaAvx512) return false;
  uint32_t a, b, c, features, saved, high;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &features)) return false;
  constexpr uint32_t kProducts = 1u << 22 | 1u << 24 | 1u << 25;  // AMX_BF16, AMX_TILE, AMX_INT8
  if ((features & kProducts) != kProducts) return false;
  __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
  constexpr uint32_t kTiles = 3u << 17;  // their configuration and their data
  return (saved & kTiles) == kTiles && os_request_amx();
#else
  return false;
#endif
}

constinit int32_t found = -1;

}  // namespace

bool has_amx_products() noexcept {
  int32_t yes = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (yes < 0) {
    yes = detect();
    __atomic_store_n(&found, yes, __ATOMIC_RELAXED);
  }
  return yes != 0;
}

void assume_amx_products(bool yes) noexcept {
  __atomic_store_n(&found, int32_t(yes), __ATOMIC_RELAXED);
}

}  // namespace TT_NS
