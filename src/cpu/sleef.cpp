#include "cpu/sleef.h"

#include "base/error.h"
#include "base/os.h"

#include <float.h>
#include <math.h>

namespace TT_NS {

namespace {

constinit const void* g_function[kNumVectorId][kNumIsa] = {};
constinit const void* g_pair_function[kNumPairVectorId][kNumIsa] = {};
constinit int32_t g_state = 0;  // 0 not tried, 1 open, 2 absent
constinit Mutex g_mutex;

// The baseline has none: with two doubles SLEEF is mostly slower than the C library
// (docs/benchmarks/zen4-sleef.md).
const void* find(void* lib, const char* name, int32_t error, Isa isa) noexcept {
  if (isa == kIsaBaseline) return nullptr;
  char symbol[64];
  int32_t lanes = 4;
  const char* suffix = "avx2";
  if (isa == kIsaAvx512) {
    lanes = 8;
    suffix = "avx512f";
  }
  const FmtArg args[] = {name, lanes, error, suffix};
  format_to(symbol, sizeof symbol, "Sleef_{}d{}_u{}{}", args);
  return os_dlsym(lib, symbol);
}

int32_t open_library() noexcept {
  constexpr const char* kNames[] = {"libsleef.so.3", nullptr};
  void* lib = TT_SLEEF ? os_dlopen(kNames) : nullptr;
  if (!lib) return 2;
  for (int32_t isa = 0; isa < kNumIsa; isa++) {
    for (int32_t id = 0; id < kNumVectorId; id++)
      g_function[id][isa] =
          find(lib, kVectorFunctions[id].name, kVectorFunctions[id].error, Isa(isa));
    for (int32_t id = 0; id < kNumPairVectorId; id++)
      g_pair_function[id][isa] = find(lib, kPairVectorFunctions[id].name, 10, Isa(isa));
  }
  return 1;
}

// SLEEF reduces angles differently beyond 15, and again beyond 1e14.
constexpr double kAngle = 15, kFarAngle = 1e13, kAll = DBL_MAX, kTiny = 0x1p-1000;

}  // namespace

// SLEEF's sinh and cosh are infinite above 709.8; its tan loses the last bit of subnormal numbers.
constinit const VectorFunction kVectorFunctions[kNumVectorId] = {
    {"log", ::log, 0, kAll, kAll},
    {"log2", ::log2, 0, kAll, kAll},
    {"log10", ::log10, 0, kAll, kAll},
    {"exp2", ::exp2, 0, kAll, kAll},
    {"sin", ::sin, 0, kAngle, kFarAngle},
    {"cos", ::cos, 0, kAngle, kFarAngle},
    {"tan", ::tan, kTiny, kAngle, kFarAngle},
    {"asin", ::asin, 0, kAll, kAll},
    {"acos", ::acos, 0, kAll, kAll},
    {"atan", ::atan, 0, kAll, kAll},
    {"sinh", ::sinh, 0, 709, 709},
    {"cosh", ::cosh, 0, 709, 709},
    {"tanh", ::tanh, 0, kAll, kAll},
    {"erfc", ::erfc, 0, kAll, kAll, 15},
};

constinit const PairVectorFunction kPairVectorFunctions[kNumPairVectorId] = {
    {"pow", ::pow},
    {"atan2", ::atan2},
};

bool sleef_open() noexcept {
  int32_t state = atomic_load(&g_state, kAcquire);
  if (TT_LIKELY(state)) return state == 1;
  Lock lock(g_mutex);
  if (!g_state) atomic_store(&g_state, open_library(), kRelease);
  return g_state == 1;
}

const void* sleef_function(VectorId id, Isa isa) noexcept { return g_function[id][isa]; }

const void* sleef_function(PairVectorId id, Isa isa) noexcept { return g_pair_function[id][isa]; }

const char* sleef_state() noexcept {
  const int32_t state = atomic_load(&g_state, kAcquire);
  if (!TT_SLEEF) return "off";
  if (state == 0) return "not loaded";
  return state == 1 ? "open" : "absent";
}

}  // namespace TT_NS
