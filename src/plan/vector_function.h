// Functions of a register of doubles: what kernels ask of the provider (cpu/sleef.h).
#pragma once

#include "plan/kernel.h"

namespace TT_NS {

enum VectorId : int32_t {
  kVectorLog,
  kVectorLog2,
  kVectorLog10,
  kVectorLog1p,
  kVectorExp2,
  kVectorExpm1,
  kVectorSin,
  kVectorCos,
  kVectorTan,
  kVectorAsin,
  kVectorAcos,
  kVectorAtan,
  kVectorSinh,
  kVectorCosh,
  kVectorTanh,
  kVectorErf,
  kNumVectorId
};

// SLEEF takes |x| < near and near <= |x| <= far by different formulas; behind far, for nan and for
// 0 < |x| < least the C library serves. A register with elements of both ranges is computed twice,
// so that no value depends on its neighbours.
struct VectorFunction {
  const char* name;
  double (*scalar)(double);  // the C library's
  double least, near, far;
};
extern const VectorFunction kVectorFunctions[kNumVectorId];

// The function of one register of an instruction set; NULL where the C library serves, and before
// sleef_open.
const void* sleef_function(VectorId id, Isa isa) noexcept;

}  // namespace TT_NS
