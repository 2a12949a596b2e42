#include "base/amx.h"

#include "base/cpuid.h"

namespace TT_NS {

namespace {

bool detect() {
#if TT_X86_64 && TT_HAVE_AVX512
  if (best_isa() != kIsaAvx512 || !has_bf16_products()) return false;
  constexpr uint32_t kProducts = 1u << 22 | 1u << 24 | 1u << 25;  // AMX_BF16, AMX_TILE, AMX_INT8
  if ((cpuid_words(7, 0).d & kProducts) != kProducts) return false;
  constexpr uint32_t kTiles = 3u << 17;  // their configuration and their data
  return (saved_registers() & kTiles) == kTiles && os_request_amx();
#else
  return false;
#endif
}

constinit int32_t found = -1;

}  // namespace

bool has_amx_products() noexcept {
  int32_t yes = atomic_load(&found, kRelaxed);
  if (yes < 0) {
    yes = detect();
    atomic_store(&found, yes, kRelaxed);
  }
  return yes != 0;
}

void assume_amx_products(bool yes) noexcept { atomic_store(&found, int32_t(yes), kRelaxed); }

}  // namespace TT_NS
