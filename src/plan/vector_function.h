// Functions of registers of doubles, as the provider (cpu/sleef.h) offers them to kernels.
#pragma once

#include "plan/kernel.h"

namespace TT_NS {

enum VectorId : int32_t {
  kVectorLog,
  kVectorLog2,
  kVectorLog10,
  kVectorExp2,
  kVectorSin,
  kVectorCos,
  kVectorTan,
  kVectorAsin,
  kVectorAcos,
  kVectorAtan,
  kVectorSinh,
  kVectorCosh,
  kVectorTanh,
  kVectorErfc,
  kNumVectorId
};
// Functions of two registers. SLEEF's have the C library's special values for all arguments, but
// for results near the largest number.
enum PairVectorId : int32_t { kVectorPow, kVectorAtan2, kNumPairVectorId };

// SLEEF uses different formulas for |x| < near and near <= |x| <= far. The C library computes the
// rest: beyond far, nan and 0 < |x| < tiny. A register with elements of both ranges is computed
// twice, so that no value depends on its neighbours.
struct VectorFunction {
  const char* name;
  double (*scalar)(double);  // the C library's
  double tiny, near, far;
  int32_t error = 10;  // SLEEF's bound, in tenths of an ulp
};
extern const VectorFunction kVectorFunctions[kNumVectorId];

struct PairVectorFunction {
  const char* name;
  double (*scalar)(double, double);  // the C library's
};
extern const PairVectorFunction kPairVectorFunctions[kNumPairVectorId];

// Return the function for the registers of an instruction set; NULL if the C library is used, and
// before sleef_open.
const void* sleef_function(VectorId id, Isa isa) noexcept;
const void* sleef_function(PairVectorId id, Isa isa) noexcept;

}  // namespace TT_NS
